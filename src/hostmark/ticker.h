/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the tick (mark/tick.h) of programs that read no clock: a thread sets it when the part of
 * the block changes, by CLOCK_TAI. The reader of blocks sets it too, before reading, so that it
 * knows every block in which the word was too old, also of an earlier process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"

struct pl_ticker;

struct pl_ticker_options {
	uint64_t *tick; /* the word; 0: not set yet */
	/* Counts up to this block may be of another block; 0: none. Outlives the ticker, with the
	 * word. */
	uint64_t *unsure;
	uint64_t period_ns, guard_ns;
	uint64_t (*now_ns)(void); /* NULL: CLOCK_TAI; for tests */
};

struct pl_ticker_state {
	uint64_t unsure;   /* as in the options */
	uint64_t late;     /* number of times that the word was set too late */
	uint64_t worst_ns; /* largest delay of the word, also within its slack */
};

/* Makes a ticker and sets the word. Returns -ENOMEM with diag. */
int pl_ticker_new(
	struct pl_ticker **ret, const struct pl_ticker_options *options, struct pl_diag *diag);
/* Starts a thread that sets the word. Returns negative errno with diag. */
int pl_ticker_start(struct pl_ticker *t, struct pl_diag *diag);
void pl_ticker_free(struct pl_ticker *t); /* NULL is allowed */

/* Sets the word to the time, and returns the state of blocks. Any thread. */
struct pl_ticker_state pl_ticker_set(struct pl_ticker *t);
