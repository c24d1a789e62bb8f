/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The least that a detector is, for benchmarks in the kernel and in user space: one form of report at places known
 * beforehand, and for each of its hops an entry with a count, two means and a threshold. No paths, no numbers of
 * reports, no clocks, no events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/report_cursor.h"

#define PL_LEAST_HOPS  3
#define PL_LEAST_BLOCK 24 /* node, ports, latency, queue, both times of 32 bits */
#define PL_LEAST_STACK (42 + 16 + 14 + 20 + 8 + 4 + 8)
#define PL_LEAST_BYTES (PL_LEAST_STACK + PL_LEAST_HOPS * PL_LEAST_BLOCK)
#define PL_LEAST_NODES 65536

struct pl_least_node {
	uint64_t reports, above;
	uint32_t latency_mean, depth_mean;
};

/* Ethernet and IPv4, UDP, report v1.0; in it UDP and INT v1.0 with so many words. There are PL_LEAST_BYTES. */
PL_CORE_INLINE bool pl_least_form(const uint8_t *p)
{
	return pl_frame_be32(p + 12) == 0x08004500 && p[23] == 17 && p[42] >> 4 == 1 &&
	       p[100] == 1 && p[102] == 3 + PL_LEAST_HOPS * PL_LEAST_BLOCK / 4;
}

PL_CORE_INLINE void pl_least_step(struct pl_least_node *n, const uint8_t *block)
{
	const uint32_t latency = pl_frame_be32(block + 8),
		       depth = pl_frame_be32(block + 12) & 0xffffff;

	n->reports++;
	n->latency_mean += (uint32_t)((int32_t)(latency - n->latency_mean) >> 4);
	n->depth_mean += (uint32_t)((int32_t)(depth - n->depth_mean) >> 4);
	n->above += latency > 1000000 || depth > 1000000;
}
