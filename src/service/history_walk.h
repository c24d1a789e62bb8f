/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk over the lists of a history (memory/history.h) in the order of time, for tail and query:
 * what is there, and, if wanted, what comes, also from a writer that was started anew or made its
 * files anew.
 */
#pragma once

#include "memory/history.h"

struct pl_history_walk_options {
	const char *from; /* folder or file */
	unsigned int
		kinds;  /* bits by enum pl_record_kind; 0: paths and events, or what the file has */
	uint32_t list;  /* of a file with several */
	uint64_t first; /* number of the entry to begin at; of one kind */
	bool told;      /* which files cannot be read was said already */
	uint64_t since_ns, until_ns; /* of the records' times; until 0: no end */
};

struct pl_history_walk {
	struct pl_history_walk_options options;
	struct pl_history *history;
	unsigned int kinds; /* those that are there and asked for */
	unsigned int n;     /* readers */
	bool partial;       /* what was asked for is not all there: a file cannot be read */
	struct pl_history_reader readers[PL_KINDS_KEPT];
	struct pl_history_record records[PL_KINDS_KEPT]; /* each reader's next */
	bool has[PL_KINDS_KEPT];
	/* Of readers that are gone. */
	uint64_t overrun, damaged, without_hops, restarts;
};

/* Tells on standard error which files of a history cannot be read. Whether any of `stores`, bits by
 * enum pl_history_store, is among them. */
bool pl_history_tell_troubles(const struct pl_history *h, unsigned int stores);

/* Complains; an exit code, 0 when good. A walk is large: not for the stack. */
int pl_history_walk_open(struct pl_history_walk *w, const struct pl_history_walk_options *options);
void pl_history_walk_close(struct pl_history_walk *w);

/* The next record within the times, until the next call; NULL: nothing more is there now. */
const struct pl_history_record *pl_history_walk_next(struct pl_history_walk *w);

/* To be called now and then while nothing comes: when the files were replaced, goes on with the new
 * ones from their beginning. True then. */
bool pl_history_walk_renew(struct pl_history_walk *w);

/* Entries that were overwritten before they were read. */
uint64_t pl_history_walk_overrun(const struct pl_history_walk *w);

/* The number of the entry behind the last one read; of a walk over one kind. */
uint64_t pl_history_walk_cursor(const struct pl_history_walk *w);

/* Tells on standard error what was lost. False when entries are damaged, or a file that was asked
 * for cannot be read. */
bool pl_history_walk_tell(const struct pl_history_walk *w);
