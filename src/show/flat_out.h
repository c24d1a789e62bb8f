/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints records of packets, flows and other kinds (record/packet.h) on standard output: rows of
 * their fields, in the forms of row_out.h. The form table shows the most used fields, wide all of
 * them.
 */
#pragma once

#include "record/packet.h"
#include "record/where.h"
#include "show/row_out.h"

#define PL_FLAT_COLUMNS_MAX 96

struct pl_flat_out {
	const struct pl_flat *flat;
	enum pl_flat_kind kind;
	bool community_id;            /* the last column is community_id, no field of the record */
	const struct pl_where *where; /* records to print; NULL: all */
	struct pl_column columns[PL_FLAT_COLUMNS_MAX];
	struct pl_row_out rows;
	uint64_t limit; /* 0 = none */
};

/* form: one of pl_out_forms. */
void pl_flat_out_init(
	struct pl_flat_out *out, enum pl_flat_kind kind, const char *form, uint64_t limit);
/* Prints only records that match an expression over the fields of the kind, which must outlive
 * it. */
void pl_flat_out_where(struct pl_flat_out *out, const struct pl_where *where);
/* Adds a column community_id for packets or flows; to be called before the first record. */
void pl_flat_out_community_id(struct pl_flat_out *out);
/* Adds n records, up to the limit. */
void pl_flat_out_add(struct pl_flat_out *out, const void *records, uint32_t n);
/* Writes the gathered records. */
void pl_flat_out_write(struct pl_flat_out *out);
bool pl_flat_out_full(const struct pl_flat_out *out);
/* Ends the output, as pl_row_out_end. */
bool pl_flat_out_end(struct pl_flat_out *out);
