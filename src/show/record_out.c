/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints paths, hops and events in a form. */
#include "show/record_out.h"

#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/opt.h"
#include "memory/history.h"
#include "record/json.h"
#include "record/table.h"
#include "record/text.h"
#include "show/stdout.h"

#define WRITE_AT (64 * 1024)

const char *const pl_out_forms[] = {
	[PL_OUT_TABLE] = "table",
	[PL_OUT_WIDE] = "wide",
	[PL_OUT_JSON] = "json",
	[PL_OUT_JSONL] = "jsonl",
	[PL_OUT_CSV] = "csv",
	[PL_OUT_TEXT] = "text",
	NULL,
};

void pl_where_complain(const char *text, const struct pl_diag *diag)
{
	if (diag->column == 0)
		pl_complain("--where: %s", diag->text);
	else
		pl_complain_at("--where, ", diag, text);
}

static void init(struct pl_record_out *out, const char *form, unsigned int kinds, uint64_t limit)
{
	memset(out, 0, sizeof(*out));
	pl_buf_init(&out->buf);
	out->form = (enum pl_out_form)pl_opt_place(pl_out_forms, form);
	out->lines = out->form == PL_OUT_JSONL;
	out->kinds = kinds;
	out->limit = limit;
}

static int make_where(
	struct pl_where **ret, enum pl_record_kind kind, const char *text, struct pl_diag *diag)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	return pl_where_new_over(ret, fields, n, text, diag);
}

/* Compiles the expression for each kind. Of several errors the one for paths is reported, which
 * have more names. */
static int make_wheres(struct pl_record_out *out, bool any, const char *text)
{
	struct pl_diag diag = { .text = "" };
	int p = 0, h = 0, e = 0;

	if ((out->kinds & PL_OUT_HOPS) != 0)
		h = make_where(&out->hop_where, PL_KIND_HOP, text, &diag);
	if ((out->kinds & PL_OUT_EVENTS) != 0)
		e = make_where(&out->event_where, PL_KIND_EVENT, text, &diag);
	if ((out->kinds & PL_OUT_PATHS) != 0)
		p = pl_where_new(&out->where, text, &diag);
	if (any && (p == 0 || e == 0)) {
		out->kinds = (p == 0 ? PL_OUT_PATHS : 0) | (e == 0 ? PL_OUT_EVENTS : 0);
		return 0;
	}
	if (p == 0 && h == 0 && e == 0)
		return 0;
	pl_where_complain(text, &diag);
	return PL_EXIT_USAGE;
}

int pl_record_out_init_kinds(struct pl_record_out *out, const char *form, unsigned int kinds,
	const char *where, uint64_t limit)
{
	init(out, form, kinds != 0 ? kinds : PL_OUT_PATHS | PL_OUT_EVENTS, limit);
	if (out->form == PL_OUT_CSV && (out->kinds & (out->kinds - 1)) != 0)
		return pl_fail(PL_EXIT_USAGE, "CSV has one header: select one kind of records");
	return where != NULL ? make_wheres(out, kinds == 0, where) : 0;
}

int pl_record_out_init(
	struct pl_record_out *out, const char *form, const char *where, uint64_t limit)
{
	return pl_record_out_init_kinds(out, form, PL_OUT_PATHS, where, limit);
}

void pl_record_out_done(struct pl_record_out *out)
{
	pl_where_free(out->where);
	pl_where_free(out->event_where);
	pl_where_free(out->hop_where);
	pl_buf_done(&out->buf);
}

void pl_record_out_write(struct pl_record_out *out)
{
	pl_stdout_flush(&out->buf, &out->gone, &out->error);
}

static void table_headers(struct pl_record_out *out)
{
	if ((out->kinds & PL_OUT_PATHS) != 0)
		pl_path_table_header(&out->buf, out->form == PL_OUT_WIDE);
	if ((out->kinds & PL_OUT_HOPS) != 0)
		pl_hop_table_header(&out->buf);
	if ((out->kinds & PL_OUT_EVENTS) != 0)
		pl_event_table_header(&out->buf);
}

static void csv_header(struct pl_record_out *out)
{
	if (out->kinds == PL_OUT_PATHS)
		pl_path_csv_header(&out->buf);
	else if (out->kinds == PL_OUT_HOPS)
		pl_hop_csv_header(&out->buf);
	else
		pl_event_csv_header(&out->buf);
}

static void begin(struct pl_record_out *out)
{
	if (out->begun)
		return;
	out->begun = true;
	switch (out->form) {
	case PL_OUT_TABLE:
	case PL_OUT_WIDE:
		table_headers(out);
		break;
	case PL_OUT_CSV:
		csv_header(out);
		break;
	case PL_OUT_JSON:
		if (!out->lines)
			pl_buf_str(&out->buf, "[");
		break;
	case PL_OUT_JSONL:
	case PL_OUT_TEXT:
		break;
	}
}

static void add_path(
	struct pl_record_out *out, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	struct pl_buf *buf = &out->buf;

	switch (out->form) {
	case PL_OUT_TABLE:
	case PL_OUT_WIDE:
		pl_path_table(buf, path, hops, n, out->form == PL_OUT_WIDE);
		break;
	case PL_OUT_JSON:
	case PL_OUT_JSONL:
		pl_path_json(buf, path, hops, n);
		break;
	case PL_OUT_CSV:
		pl_path_csv(buf, path, hops, n);
		break;
	case PL_OUT_TEXT:
		pl_path_text(buf, path, hops, n);
		break;
	}
}

static void add_hop(struct pl_record_out *out, const struct pl_hop *hop)
{
	switch (out->form) {
	case PL_OUT_TABLE:
	case PL_OUT_WIDE:
		pl_hop_table(&out->buf, hop);
		break;
	case PL_OUT_JSON:
	case PL_OUT_JSONL:
		pl_hop_json(&out->buf, hop);
		break;
	case PL_OUT_CSV:
		pl_hop_csv(&out->buf, hop);
		break;
	case PL_OUT_TEXT:
		pl_hop_text(&out->buf, hop);
		break;
	}
}

static void add_event(struct pl_record_out *out, const struct pl_event *event)
{
	switch (out->form) {
	case PL_OUT_TABLE:
	case PL_OUT_WIDE:
		pl_event_table(&out->buf, event);
		break;
	case PL_OUT_JSON:
	case PL_OUT_JSONL:
		pl_event_json(&out->buf, event);
		break;
	case PL_OUT_CSV:
		pl_event_csv(&out->buf, event);
		break;
	case PL_OUT_TEXT:
		pl_event_text(&out->buf, event);
		break;
	}
}

/* `before` and `behind` write the text around a record. */
static void before(struct pl_record_out *out)
{
	begin(out);
	if (out->form == PL_OUT_JSON && !out->lines)
		pl_buf_str(&out->buf, out->printed > 0 ? ",\n" : "\n");
}

static void behind(struct pl_record_out *out)
{
	if (out->lines && (out->form == PL_OUT_JSON || out->form == PL_OUT_JSONL))
		pl_buf_chr(&out->buf, '\n');
	out->printed++;
	if (out->buf.len >= WRITE_AT || out->buf.failed)
		pl_record_out_write(out);
}

void pl_record_out_path(
	struct pl_record_out *out, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	if (out->where != NULL && !pl_where_match(out->where, path, hops, n))
		return;
	before(out);
	add_path(out, path, hops, n);
	behind(out);
}

void pl_record_out_hop(struct pl_record_out *out, const struct pl_hop *hop)
{
	if (out->hop_where != NULL && !pl_where_match_row(out->hop_where, hop, hop->present))
		return;
	before(out);
	add_hop(out, hop);
	behind(out);
}

void pl_record_out_event(struct pl_record_out *out, const struct pl_event *event)
{
	if (out->event_where != NULL &&
		!pl_where_match_row(out->event_where, event, event->present))
		return;
	before(out);
	add_event(out, event);
	behind(out);
}

bool pl_record_out_full(const struct pl_record_out *out)
{
	return out->gone || out->error != 0 || (out->limit != 0 && out->printed >= out->limit);
}

void pl_record_out_flush_batch(struct pl_record_batch *batch, void *arg)
{
	struct pl_record_out *out = arg;

	for (uint32_t i = 0; i < batch->n_paths && !pl_record_out_full(out); i++) {
		const struct pl_path *path = &batch->paths[i];

		pl_record_out_path(out, path, batch->hops + batch->first_hop[i], path->hop_count);
	}
	pl_record_batch_clear(batch);
}

void pl_record_out_end(struct pl_record_out *out)
{
	begin(out);
	if (out->form == PL_OUT_JSON && !out->lines)
		pl_buf_str(&out->buf, out->printed > 0 ? "\n]\n" : "]\n");
	pl_record_out_write(out);
}

bool pl_record_out_good(const struct pl_record_out *out)
{
	if (out->error == 0)
		return true;
	return pl_fail(false, "standard output: %s", strerror(-out->error));
}

void pl_record_out_history(struct pl_record_out *out, const struct pl_history_record *record)
{
	if (record->kind == PL_KIND_PATH)
		pl_record_out_path(out, &record->path, record->hops, record->n_hops);
	else if (record->kind == PL_KIND_HOP)
		pl_record_out_hop(out, &record->hop);
	else
		pl_record_out_event(out, &record->event);
}
