/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds captures whose clocks are two periods or more apart. Packets of block k at one point are in
 * block k + n at the other, and look on time if n is even: the counts of a block are then of
 * different packets, and may differ arbitrarily. But flows begin and end n blocks apart.
 */
#pragma once

#include "ask/mark_capture.h"
#include "mark/correlate.h"

/* Sets ret[] for each segment: most flows that begin and end while both ends captured indicate that
 * its ends' clocks are apart. Point n is captures[n - 1]. Returns false without memory. */
bool pl_mark_find_apart(bool *ret, const struct pl_mark_capture *captures,
	const struct pl_mark_segment *segments, uint32_t n_segments,
	const struct pl_mark128 *records, size_t n);
