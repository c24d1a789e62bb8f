/* SPDX-License-Identifier: BSD-2-Clause */
/* Zero marking: delays and losses between points, of packets that a hash chooses
 * (ask/mark_hashes.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ask/mark_hashes.h"

struct pl_mark_capture;

struct pl_mark_hash_question {
	const struct pl_mark_capture *captures; /* point n is captures[n - 1] */
	const struct pl_mark_segment *segments;
	uint32_t n_segments;
	uint64_t period_ns;
	uint32_t tai_offset;
	const char *form; /* one of pl_out_forms */
};

/* Prints a row for each flow, block and segment. Returns an exit code; prints errors. */
int pl_mark_hash_print(const struct pl_mark_hash_question *q);
