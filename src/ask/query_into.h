/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rows of a query to an output (tapout/result_out.h) or as JSON lines to standard output. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "query/query.h"
#include "runtime/runtime.h"
#include "tapout/result_out.h"

struct pl_query_into {
	const struct pl_query *query;
	const char *uri;  /* "-": standard output */
	const char *name; /* of the question, in its rows */
	uint64_t limit;   /* 0: none */
	struct pl_result_out *out;
	struct pl_buf key, line, text; /* text: for standard output */
	uint64_t rows, incomplete;
	bool gone, began;
	int error;
};

/* Writes the output of the rows into *ret, of --into or of INTO in the question, which exclude each
 * other; NULL without either. Returns 0, or prints the error and returns an exit code. */
int pl_query_into_choose(const char **ret, const char *option, const struct pl_query *query);

/* Checks the URI, which the caller keeps, and opens nothing. Returns 0, or prints the error and
 * returns an exit code. */
int pl_query_into_init(struct pl_query_into *into, const struct pl_query *query, const char *uri,
	const char *name, uint64_t limit);
/* Opens the output when no runtime does. Returns 0, or prints the error and returns an exit
 * code. */
int pl_query_into_open(struct pl_query_into *into);
/* Opens the output within a runtime; then it is used as the other. */
extern const struct pl_service_ops pl_query_into_service;

void pl_query_into_add(struct pl_query_into *into, const struct pl_query_row *row);
void pl_query_into_turn(struct pl_query_into *into);
bool pl_query_into_full(const struct pl_query_into *into);
/* Sends the rows that wait, reports lost ones, and writes counters, unless they are NULL, to
 * standard output. Returns false when rows were lost. */
bool pl_query_into_end(struct pl_query_into *into, const struct pl_query_stats *stats);
void pl_query_into_done(struct pl_query_into *into);
