/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk over the lists of a history (memory/history.h) in the order of time, for tail and query:
 * over the entries that are there and, if wanted, over new ones, also when their writer restarts or
 * creates its files again.
 */
#pragma once

#include "memory/history.h"

struct pl_history_walk_options {
	const char *from; /* folder or file */
	unsigned int
		kinds;  /* bits by enum pl_record_kind; 0: paths and events, or the file's kinds */
	uint32_t list;  /* number of the list, in a file with several */
	uint64_t first; /* number of the first entry; with one kind only */
	bool told;      /* the caller has reported files that cannot be read */
	uint64_t since_ns, until_ns; /* range of the records' times; until 0: no end */
};

struct pl_history_walk {
	struct pl_history_walk_options options;
	struct pl_history *history;
	unsigned int kinds; /* kinds that are asked for and present */
	unsigned int n;     /* readers */
	bool partial;       /* a file of a kind asked for cannot be read */
	struct pl_history_reader readers[PL_KINDS_KEPT];
	struct pl_history_record records[PL_KINDS_KEPT]; /* the next record of each reader */
	bool has[PL_KINDS_KEPT];
	/* Counters of readers that were closed. */
	uint64_t overrun, damaged, without_hops, restarts;
};

/* Reports files of a history that cannot be read on standard error. Returns whether one of
 * `stores`, bits 1 << enum pl_history_store, is among them. */
bool pl_history_tell_troubles(const struct pl_history *h, unsigned int stores);

/* Reports errors on stderr; returns an exit code, 0 on success. Not for the stack: too large. */
int pl_history_walk_open(struct pl_history_walk *w, const struct pl_history_walk_options *options);
void pl_history_walk_close(struct pl_history_walk *w);

/* Returns the next record within the times, until the next call; NULL: no more are there now. */
const struct pl_history_record *pl_history_walk_next(struct pl_history_walk *w);

/* Checks whether files were replaced; if so, continues at the beginning of the new ones and returns
 * true. Call it from time to time while there is no record. */
bool pl_history_walk_renew(struct pl_history_walk *w);

/* Number of entries overwritten before they were read. */
uint64_t pl_history_walk_overrun(const struct pl_history_walk *w);

/* Number of the entry behind the last one read; of a walk over one kind. */
uint64_t pl_history_walk_cursor(const struct pl_history_walk *w);

/* Reports losses on standard error. Returns false when entries are damaged, pages are missing, or a
 * file of a kind asked for cannot be read. */
bool pl_history_walk_tell(const struct pl_history_walk *w);
