/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints records on standard output in a form, filtered and counted, for read, listen, tail, query
 * and region. Writes large pieces. A reader that went away (EPIPE) is no error, only the end; any
 * other failure to write is one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "record/record.h"
#include "record/where.h"

enum pl_out_form {
	PL_OUT_TABLE,
	PL_OUT_WIDE,
	PL_OUT_JSON, /* one array; one object per line when other objects follow (lines) */
	PL_OUT_JSONL,
	PL_OUT_CSV,
	PL_OUT_TEXT,
};

/* Choices for PL_OPT_CHOICE, in the order of the enum, NULL behind the last. */
extern const char *const pl_out_forms[];

#define PL_OUT_PATHS  (1u << PL_KIND_PATH)
#define PL_OUT_HOPS   (1u << PL_KIND_HOP)
#define PL_OUT_EVENTS (1u << PL_KIND_EVENT)

struct pl_record_out {
	enum pl_out_form form;
	bool lines;             /* JSON: objects one per line instead of an array */
	unsigned int kinds;     /* PL_OUT_PATHS and so on: kinds that may come */
	struct pl_where *where; /* for paths; NULL: all */
	struct pl_where *event_where, *hop_where;
	uint64_t limit; /* 0 = none */
	uint64_t printed;
	bool begun;
	bool gone; /* the reader of standard output is gone */
	int error; /* negative errno of the first failed write */
	struct pl_buf buf;
};

/* Prints the error of an expression of --where, with a mark under the character at fault. */
void pl_where_complain(const char *text, const struct pl_diag *diag);

/* Begins the output of paths. form: one of pl_out_forms. where may be NULL. Prints the error and
 * returns an exit code, 0 when good. */
int pl_record_out_init(
	struct pl_record_out *out, const char *form, const char *where, uint64_t limit);
/* Opens the output for other kinds than paths. kinds 0: paths and events, or those of the two to
 * which the expression applies; then CSV, which has one header, is refused. */
int pl_record_out_init_kinds(struct pl_record_out *out, const char *form, unsigned int kinds,
	const char *where, uint64_t limit);
void pl_record_out_done(struct pl_record_out *out);

/* Prints a record that matches the expression of its kind; n: hops of the path that are present. */
void pl_record_out_path(
	struct pl_record_out *out, const struct pl_path *path, const struct pl_hop *hops, size_t n);
void pl_record_out_hop(struct pl_record_out *out, const struct pl_hop *hop);
void pl_record_out_event(struct pl_record_out *out, const struct pl_event *event);

/* Prints matching records and empties the batch, as pl_record_batch's flush; arg: the
 * pl_record_out. */
void pl_record_out_flush_batch(struct pl_record_batch *batch, void *arg);

/* Returns true when no more is to be written: the limit is reached, the reader is gone, or writing
 * failed. */
bool pl_record_out_full(const struct pl_record_out *out);

/* Writes the gathered records. */
void pl_record_out_write(struct pl_record_out *out);

/* Ends the output: closes the array, if one is open, and writes. */
void pl_record_out_end(struct pl_record_out *out);

/* Prints the error of a failed write, and returns false then. */
bool pl_record_out_good(const struct pl_record_out *out);

/* Prints a record of a history by its kind. */
struct pl_history_record;
void pl_record_out_history(struct pl_record_out *out, const struct pl_history_record *record);
