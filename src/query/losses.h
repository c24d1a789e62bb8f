/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times at which records were left out, to mark exactly the windows that lost one. They are kept as
 * stretches of time, more than `near` apart; a window that is not shorter than `near` does not fit
 * between two times of one stretch. There is room for a number of stretches: for another one the
 * two earliest, whose windows close first, become one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LOSSES_MAX 64u

struct losses {
	int64_t near;
	uint32_t n;
	struct loss {
		int64_t from, to;
	} at[LOSSES_MAX + 1]; /* in their order */
};

/* Adds the times from `from` to `to`. */
void pl_query_losses_add(struct losses *l, int64_t from, int64_t to);
/* Returns true when a time of [start, end) was added, or of a stretch between two such times. */
bool pl_query_losses_within(const struct losses *l, int64_t start, int64_t end);
