/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short forms: pathline query events|paths|hops FROM is the question SELECT * FROM events … over a
 * history, whose records are printed whole, in the forms of record_out.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct pl_query_list {
	unsigned int kind; /* PL_OUT_EVENTS, PL_OUT_PATHS or PL_OUT_HOPS */
	const char *from;  /* the history; NULL: with `explain` */
	const char *form;  /* one of pl_out_forms */
	const char *where, *since, *until;
	uint64_t count; /* 0: all */
	uint64_t list, first, last;
	bool show_next, explain;
};

/* Prints the list. Returns an exit code; prints errors. */
int pl_query_list(const struct pl_query_list *args);
