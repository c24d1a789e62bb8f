/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from a region's lists for a question; a tap wrote them to region:PATH. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/packet.h"

#define PL_QUERY_REGION "region:"

struct pl_query_region {
	bool (*reads)(void *arg, enum pl_flat_kind kind); /* returns true when the question reads
							   * the kind */
	void (*feed)(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);
	void (*clocks)(void *arg, uint32_t clocks); /* bits 1 << enum pl_clock_kind; 0: not known */
	bool (*full)(void *arg);
	void *arg;
};

/* Gives the entries in the regions of these sources, region:PATH, those of all lists in the order
 * of their times. Returns 0, or prints the error and returns an exit code. */
int pl_query_read_regions(const char *const *sources, size_t n, const struct pl_query_region *to);
