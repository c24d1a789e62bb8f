/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records to standard output, in the form asked for, filtered and counted: what read and listen share.
 * Written in large pieces. A reader that went away (EPIPE) is no error, only the end; any other failure to
 * write is.
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

struct pl_record_out {
	enum pl_out_form form;
	bool lines;             /* JSON: objects one per line instead of an array */
	struct pl_where *where; /* NULL = everything */
	uint64_t limit;         /* 0 = none */
	uint64_t printed;
	bool begun;
	bool gone; /* nobody reads any more */
	int error; /* negative errno of the first failed write */
	struct pl_buf buf;
};

/* form: one of pl_out_forms. where may be NULL. Complains and returns an exit code, 0 when good. */
int pl_record_out_init(
	struct pl_record_out *out, const char *form, const char *where, uint64_t limit);
void pl_record_out_done(struct pl_record_out *out);

/* pl_record_batch's flush: arg is the pl_record_out. Prints what matches and empties the batch. */
void pl_record_out_flush_batch(struct pl_record_batch *batch, void *arg);

/* No more is wanted: the limit is reached, nobody reads, or writing failed. */
bool pl_record_out_full(const struct pl_record_out *out);

/* Hands everything gathered to the system. */
void pl_record_out_write(struct pl_record_out *out);

/* Behind the last record: closes what is open (the array) and writes. */
void pl_record_out_end(struct pl_record_out *out);

/* Complains about a failed write; false then. */
bool pl_record_out_good(const struct pl_record_out *out);
