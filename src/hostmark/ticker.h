/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the tick (mark/tick.h) of programs that read no clock: a thread sets it when the part of the
 * block changes, by CLOCK_TAI. Whoever reads blocks sets it too, before, so that it knows of every
 * block of which the word was too old, also of those that another process left behind.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_ticker;

struct pl_ticker_options {
	uint64_t *tick; /* the word; 0: nobody has set it yet */
	/* Counts of blocks up to this one are of no known block; 0: of none. It outlives us with the
	 * word. */
	uint64_t *unsure;
	uint64_t period_ns, guard_ns;
	uint64_t (*now_ns)(void); /* NULL: CLOCK_TAI; for tests */
};

struct pl_ticker_state {
	uint64_t unsure;   /* as in the options */
	uint64_t late;     /* times that the word was set too late */
	uint64_t worst_ns; /* the most that it was behind, also where that was within its slack */
};

/* Sets the word. -ENOMEM with diag. */
int pl_ticker_new(
	struct pl_ticker **ret, const struct pl_ticker_options *options, struct pl_diag *diag);
/* From now on by a thread, too. Negative errno with diag. */
int pl_ticker_start(struct pl_ticker *t, struct pl_diag *diag);
void pl_ticker_free(struct pl_ticker *t); /* NULL is allowed */

/* Sets the word to the time, and says what is known of blocks. Any thread. */
struct pl_ticker_state pl_ticker_set(struct pl_ticker *t);
