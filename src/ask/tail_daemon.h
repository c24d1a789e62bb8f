/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline tail: prints the stream of a running daemon, which filters and formats. Connects again
 * after a lost connection; lines about the stream itself are counted, and not printed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/watch.h"
#include "web/client.h"

struct pl_tail_daemon {
	const struct pl_client_args *client;
	const char *where, *form;
	bool events, paths, values;         /* none: all of them */
	const struct pl_watch_kind *tapped; /* records of taps, alone; NULL: none */
	bool community_id;                  /* of taps: a column for it */
	bool show_loss;                     /* dropped entries are reported in the stream */
	uint64_t limit;                     /* 0: none */
	volatile int *stopped;              /* set by a signal */
};

/* Returns the number of kinds in the options; 0: all kinds. */
unsigned int pl_tail_kinds(const struct pl_tail_daemon *args);

/* Gives up privileges, and prints until no more is wanted. Returns an exit code; prints errors. */
int pl_tail_daemon(const struct pl_tail_daemon *args);
