/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the senders of most datagrams: addresses, and IPv6 networks of 64 bits, because one host
 * can use all addresses of its network. It is the algorithm of Misra and Gries: a count is never
 * too high, and too low by at most 1 / (PL_HEAVY_ROOM + 1) of the datagrams, whatever the senders
 * do. No allocation; one thread.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"
#include "wire/packet.h"

#define PL_HEAVY_ROOM   16
#define PL_HEAVY_SAMPLE 1024 /* datagrams that suffice for a result */
#define PL_HEAVY_PART   8    /* a heavy sender sends at least one datagram in this number */

/* The counts of one kind of sender, by PL_HEAVY_ROOM names. */
struct pl_heavy_counts {
	struct pl_addr name[PL_HEAVY_ROOM];
	uint32_t count[PL_HEAVY_ROOM];
};

struct pl_heavy {
	struct pl_heavy_counts addresses, networks; /* all zero: nothing counted yet */
	uint32_t sampled;
};

/* Counts the sources of datagrams. */
void pl_heavy_add(struct pl_heavy *h, const struct pl_packet *packets, uint32_t n);

/*
 * Lists the heavy senders among the counted datagrams, heaviest first: addresses, and networks that
 * are heavy even without their heavy addresses. At most cap entries (2 * PL_HEAVY_PART suffice);
 * returns their number.
 */
uint32_t pl_heavy_senders(const struct pl_heavy *h, struct pl_prefix *ret, uint32_t cap);
