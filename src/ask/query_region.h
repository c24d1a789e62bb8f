/* SPDX-License-Identifier: BSD-2-Clause */
/* Records in a region's lists as a source of a question: a tap wrote them into region:PATH. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/packet.h"

#define PL_QUERY_REGION "region:"

struct pl_query_region {
	bool (*reads)(void *arg, enum pl_flat_kind kind); /* whether the question does */
	void (*feed)(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);
	void (*clocks)(void *arg, uint32_t clocks); /* bits 1 << enum pl_clock_kind; 0: not told */
	bool (*full)(void *arg);
	void *arg;
};

/* Gives the entries that are in the region, those of several lists by their times. 0, or an exit
 * code after complaining. */
int pl_query_read_region(const char *path, const struct pl_query_region *to);
