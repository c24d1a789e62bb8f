/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The least that a detector is, for benchmarks in the kernel and in user space: one form of report
 * at places known beforehand, and for each of its hops an entry with a count, two means and a
 * threshold. No paths, no numbers of reports, no clocks, no events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/report_cursor.h"

#define PL_LEAST_HOPS  3
#define PL_LEAST_BLOCK 24 /* node, ports, latency, queue, both times of 32 bits */
#define PL_LEAST_STACK (42 + 16 + 14 + 20 + 8 + 4 + 8)
#define PL_LEAST_BYTES (PL_LEAST_STACK + PL_LEAST_HOPS * PL_LEAST_BLOCK)
#define PL_LEAST_NODES 65536

struct pl_least_node {
	uint64_t reports, above;
	uint32_t latency_mean, depth_mean;
};

/*
 * The least for reports of node ids only, of 3 hops or 6, with nothing new in them: its exporter
 * with the report's number and its flow with its path, one entry each. `reports` of a flow is what
 * sums by path begin with: nodes and links would have theirs from it when they are harvested.
 */
#define PL_LEAST_FLOWS 262144

struct pl_least_exporter {
	uint32_t source, next_seq;
	uint64_t reports, gaps;
};

struct pl_least_flow {
	uint64_t key[2]; /* addresses; ports and protocol */
	uint32_t path[6];
	uint32_t pad[2];
	uint64_t reports, last;
};

/* Ethernet and IPv4, UDP to 32766, report v1.0; in it IPv4, UDP and INT v1.0 with node ids. How
 * many, or 0. */
PL_CORE_INLINE uint32_t pl_least_ids(const uint8_t *p)
{
	if (pl_frame_be32(p + 12) != 0x08004500 || p[23] != 17 || p[36] != 0x7f || p[37] != 0xfe ||
		p[42] >> 4 != 1 || pl_frame_be32(p + 70) >> 8 != 0x080045 || p[81] != 17 ||
		p[100] != 1 || p[108] != 0x80 || p[109] != 0)
		return 0;
	return p[102] == 6 ? 3 : p[102] == 9 ? 6 : 0;
}

/* Ethernet and IPv4, UDP, report v1.0; in it UDP and INT v1.0 with so many words. There are
 * PL_LEAST_BYTES. */
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
