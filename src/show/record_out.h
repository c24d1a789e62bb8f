/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records to standard output, in the form asked for, filtered and counted: what read, listen, tail,
 * query and region share. Written in large pieces. A reader that went away (EPIPE) is no error,
 * only the end; any other failure to write is.
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

/* For PL_OPT_CHOICE, in the order of the enum, NULL behind the last. */
extern const char *const pl_out_forms[];

#define PL_OUT_PATHS  (1u << PL_KIND_PATH)
#define PL_OUT_HOPS   (1u << PL_KIND_HOP)
#define PL_OUT_EVENTS (1u << PL_KIND_EVENT)

struct pl_record_out {
	enum pl_out_form form;
	bool lines;             /* JSON: objects one per line instead of an array */
	unsigned int kinds;     /* PL_OUT_PATHS and so on: which may come */
	struct pl_where *where; /* of paths; NULL = everything */
	struct pl_where *event_where, *hop_where;
	uint64_t limit; /* 0 = none */
	uint64_t printed;
	bool begun;
	bool gone; /* nobody reads any more */
	int error; /* negative errno of the first failed write */
	struct pl_buf buf;
};

/* What is wrong with an expression of --where, with a mark under the character at fault. */
void pl_where_complain(const char *text, const struct pl_diag *diag);

/* form: one of pl_out_forms. where may be NULL. Complains and returns an exit code, 0 when good. */
int pl_record_out_init(
	struct pl_record_out *out, const char *form, const char *where, uint64_t limit);
/* The same for other kinds than paths. 0: paths and events, or those of them that the expression
 * can be asked of; then CSV, which has one header, is refused. */
int pl_record_out_init_kinds(struct pl_record_out *out, const char *form, unsigned int kinds,
	const char *where, uint64_t limit);
void pl_record_out_done(struct pl_record_out *out);

/* One record, printed if it satisfies the expression of its kind; n hops of a path are there. */
void pl_record_out_path(
	struct pl_record_out *out, const struct pl_path *path, const struct pl_hop *hops, size_t n);
void pl_record_out_hop(struct pl_record_out *out, const struct pl_hop *hop);
void pl_record_out_event(struct pl_record_out *out, const struct pl_event *event);

/* pl_record_batch's flush: arg is the pl_record_out. Prints what matches and empties the batch. */
void pl_record_out_flush_batch(struct pl_record_batch *batch, void *arg);

/* No more is wanted: the limit is reached, nobody reads, or writing failed. */
bool pl_record_out_full(const struct pl_record_out *out);

/* Hands everything gathered to the system. */
void pl_record_out_write(struct pl_record_out *out);

/* Behind the last record: closes the array, if one is open, and writes. */
void pl_record_out_end(struct pl_record_out *out);

/* Complains about a failed write; false then. */
bool pl_record_out_good(const struct pl_record_out *out);

/* A record of a history, of its kind. */
struct pl_history_record;
void pl_record_out_history(struct pl_record_out *out, const struct pl_history_record *record);
