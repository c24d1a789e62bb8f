/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps packets that a hash chooses at every point (RFC 5475; RFC 9342 7.2.2), without a mark or
 * beside a colour, and finds their delays between points. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mark/correlate.h"
#include "mark/select.h"

/* Samples of one point, by flow and block. */
struct pl_mark_hashes;

struct pl_mark_hashes *pl_mark_hashes_new(uint32_t room); /* NULL: out of memory */
void pl_mark_hashes_free(struct pl_mark_hashes *h);
/* Adds a packet. Returns false without memory, or without room for another flow's block. */
bool pl_mark_hashes_add(struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block,
	uint32_t hash, uint64_t time_ns);

/* Number of flows' blocks that it has, and the i-th of them. */
struct pl_mark_hashes_key {
	uint64_t block;
	struct pl_mark_flow flow;
};
uint32_t pl_mark_hashes_count(const struct pl_mark_hashes *h);
struct pl_mark_hashes_key pl_mark_hashes_key(const struct pl_mark_hashes *h, uint32_t i);

struct pl_mark_chosen {
	struct pl_mark_matched matched;
	int64_t least_ns, mean_ns, median_ns, most_ns; /* of matched.matched packets, if any */
};

/* Working memory of comparisons; begins as zeros. */
struct pl_mark_chooser {
	struct pl_mark_samples from, to;
	size_t room; /* of both, and of delays */
	int64_t *delays;
};

struct pl_mark_capture;

/*
 * Compares the samples of a flow's block: those at the points where the segment begins with those
 * where it ends, in that block and `around` more before and behind it. Point n is captures[n - 1].
 * Returns false without memory.
 */
bool pl_mark_choose(struct pl_mark_chooser *c, struct pl_mark_chosen *ret,
	const struct pl_mark_capture *captures, const struct pl_mark_segment *segment,
	const struct pl_mark_hashes_key *key, uint32_t around);
void pl_mark_chooser_done(struct pl_mark_chooser *c);
