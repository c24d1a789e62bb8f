/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints records of packets, flows and other kinds in a form of row_out.h. */
#include "show/flat_out.h"

#include <assert.h>
#include <string.h>

#include "record/community_id.h"
#include "record/put.h"
#include "record/rows.h"

static const char *const first_seen[] = { "ts_ns", "src", "dst", "sport", "dport", "proto",
	"tcp_flags", "wire_len", "first_ts", "end_reason", "pkts_fwd", "pkts_rev", "bytes_fwd",
	"bytes_rev", "rtt_min_us", "client", "server", "qtype", "name_len", "answer", "block",
	"from_point", "to_point", "sent", "received", "loss", "delay_ns", "mean_ns", "alarms",
	"reason", "interface", "place" };

static bool seen_first(const char *name)
{
	for (size_t i = 0; i < sizeof(first_seen) / sizeof(first_seen[0]); i++) {
		if (strcmp(first_seen[i], name) == 0)
			return true;
	}
	return false;
}

static int width_of(const struct pl_field *f)
{
	const int name = (int)strlen(f->name), least = f->form == PL_FORM_ADDR  ? 15
						       : f->form == PL_FORM_U64 ? 10
										: 5;

	if (f->form == PL_FORM_DROP_REASON)
		return -20;
	if (f->form == PL_FORM_TEXT)
		return -(f->text_bytes / 2 + 4);
	return f->form == PL_FORM_ADDR ? -least : name > least ? name : least;
}

static bool is_time(const struct pl_field *f)
{
	return strcmp(f->unit, "ns") == 0;
}

static bool is_number(const struct pl_field *f)
{
	return f->form == PL_FORM_U8 || f->form == PL_FORM_U16 || f->form == PL_FORM_U32 ||
	       f->form == PL_FORM_U64 || f->form == PL_FORM_S64;
}

void pl_flat_out_init(
	struct pl_flat_out *out, enum pl_flat_kind kind, const char *form, uint64_t limit)
{
	*out = (struct pl_flat_out){ .flat = pl_flat(kind), .kind = kind, .limit = limit };
	assert(out->flat->n_fields < PL_FLAT_COLUMNS_MAX);
	for (uint32_t i = 0; i < out->flat->n_fields; i++) {
		const struct pl_field *f = &out->flat->fields[i];

		out->columns[i] = (struct pl_column){ .name = f->name,
			.width = is_time(f) ? -30 : width_of(f),
			.number = is_number(f),
			.wide = !seen_first(f->name) };
	}
	pl_row_out_init(&out->rows, form, out->columns, out->flat->n_fields);
}

void pl_flat_out_where(struct pl_flat_out *out, const struct pl_where *where)
{
	out->where = where;
}

void pl_flat_out_community_id(struct pl_flat_out *out)
{
	assert(pl_community_id_of_kind(out->kind));
	out->columns[out->rows.n++] = (struct pl_column){
		.name = "community_id", .width = -(PL_COMMUNITY_ID_MAX - 1), .wide = true
	};
	out->community_id = true;
}

/* Adds a row: tables have times as text, forms for programs numbers. */
static void add_row(struct pl_flat_out *out, const void *record)
{
	const bool people = out->rows.form == PL_OUT_TABLE || out->rows.form == PL_OUT_WIDE;
	char text[PL_FLAT_COLUMNS_MAX][PUT_LONG_MAX];
	char community_id[PL_COMMUNITY_ID_MAX];
	const char *values[PL_FLAT_COLUMNS_MAX];
	const uint32_t present = pl_flat_present(out->flat, record);

	for (uint32_t i = 0; i < out->flat->n_fields; i++) {
		const struct pl_field *f = &out->flat->fields[i];

		values[i] = NULL;
		if (!put_has(f, record, present))
			continue;
		if (people && is_time(f))
			(void)pl_time_text(text[i], put_load(f, record));
		else
			*put_value(text[i], f, record, false) = '\0';
		values[i] = text[i];
	}
	if (out->community_id)
		values[out->flat->n_fields] =
			pl_community_id(community_id, out->kind, record) ? community_id : NULL;
	pl_row_out_add(&out->rows, values);
}

void pl_flat_out_add(struct pl_flat_out *out, const void *records, uint32_t n)
{
	const uint8_t *p = records;

	for (uint32_t i = 0; i < n && !pl_flat_out_full(out); i++, p += out->flat->size) {
		if (out->where == NULL ||
			pl_where_match_row(out->where, p, pl_flat_present(out->flat, p)))
			add_row(out, p);
	}
}

void pl_flat_out_write(struct pl_flat_out *out)
{
	pl_row_out_write(&out->rows);
}

bool pl_flat_out_full(const struct pl_flat_out *out)
{
	return pl_row_out_full(&out->rows) || (out->limit != 0 && out->rows.rows >= out->limit);
}

bool pl_flat_out_end(struct pl_flat_out *out)
{
	return pl_row_out_end(&out->rows);
}
