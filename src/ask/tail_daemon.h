/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline tail: the stream of a running daemon, which filters and formats. A connection that is
 * lost is made again; lines about the stream itself are counted, and not printed.
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
	bool show_loss;                     /* entries that were dropped are told in the stream */
	uint64_t limit;                     /* 0: none */
	volatile int *stopped;              /* set by a signal */
};

/* The number of kinds that are asked for; 0 is all of them. */
unsigned int pl_tail_kinds(const struct pl_tail_daemon *args);

/* Gives up rights, and prints until no more is wanted. An exit code; complains. */
int pl_tail_daemon(const struct pl_tail_daemon *args);
