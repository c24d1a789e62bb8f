/* SPDX-License-Identifier: BSD-2-Clause */
/* Zero marking: packets that a hash chooses at every point (RFC 5475; RFC 9342 7.2.2), their delays and
 * losses between points. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mark/correlate.h"

/* What one point chose: samples of each flow and block. */
struct pl_mark_hashes;

struct pl_mark_hashes *pl_mark_hashes_new(uint32_t room); /* NULL: out of memory */
void pl_mark_hashes_free(struct pl_mark_hashes *h);
/* False: there is no memory, or no room for another flow's block. */
bool pl_mark_hashes_add(struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block,
	uint32_t hash, uint64_t time_ns);

struct pl_mark_capture;

struct pl_mark_hash_question {
	const struct pl_mark_capture *captures; /* point n is captures[n - 1] */
	const struct pl_mark_segment *segments;
	uint32_t n_segments;
	uint64_t period_ns;
	uint32_t tai_offset;
	const char *form; /* one of pl_out_forms */
};

/* Prints a row of each flow, block and segment. Complains; an exit code. */
int pl_mark_hash_print(const struct pl_mark_hash_question *q);
