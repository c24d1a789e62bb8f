/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline region dump: prints all entries that are not empty, as rows, or as records when the
 * region holds records. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/region_read.h"
#include "ask/region_values.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"
#include "memory/words.h"
#include "show/flat_out.h"
#include "show/row_out.h"

#define NUMBER 24

/* ---- records ---- */

/* Prints a value that begins with a record; paths without their hops. */
static void add_record(struct pl_record_out *out, uint32_t content, const void *bytes)
{
	union {
		struct pl_event event;
		struct pl_path path;
		struct pl_hop hop;
	} record;

	memcpy(&record, bytes, sizeof(record));
	if (content == PL_CONTENT_EVENT)
		pl_record_out_event(out, &record.event);
	else if (content == PL_CONTENT_PATH)
		pl_record_out_path(out, &record.path, NULL, 0);
	else
		pl_record_out_hop(out, &record.hop);
}

static unsigned int kinds_of(uint32_t content)
{
	return content == PL_CONTENT_EVENT ? PL_OUT_EVENTS
	       : content == PL_CONTENT_HOP ? PL_OUT_HOPS
					   : PL_OUT_PATHS;
}

/* ---- rows ---- */

struct dump {
	const struct pl_region_args *args;
	struct pl_row_out rows;
	struct pl_record_out records;
	struct pl_flat_out flat;
	uint32_t content; /* bytes: rows; PL_CONTENT_FLAT and up: flat */
	uint64_t n;
	char hex[2 * PL_ENTRY_MAX + 1];
};

/* Returns true when no more is wanted. */
static bool full(const struct dump *d)
{
	return pl_row_out_full(&d->rows) || pl_record_out_full(&d->records) ||
	       (d->content >= PL_CONTENT_FLAT && pl_flat_out_full(&d->flat)) ||
	       (d->args->count != 0 && d->n >= d->args->count);
}

/* Prints a value with two numbers: as a record, or as a row whose last column is its bytes. */
static void add_bytes(struct dump *d, uint64_t a, uint64_t b, const uint8_t *bytes, size_t n)
{
	char text[2][NUMBER];
	const char *values[] = { text[0], text[1], d->hex };

	d->n++;
	if (d->content >= PL_CONTENT_FLAT) {
		pl_flat_out_add(&d->flat, bytes, 1);
		pl_flat_out_write(&d->flat);
		return;
	}
	if (d->content != PL_CONTENT_BYTES) {
		add_record(&d->records, d->content, bytes);
		return;
	}
	snprintf(text[0], NUMBER, "%" PRIu64, a);
	snprintf(text[1], NUMBER, "%" PRIu64, b);
	(void)pl_hex_text(d->hex, bytes, n);
	pl_row_out_add(&d->rows, values);
}

/* Prints a cell. `last`: the column behind the value, or NULL. */
static void add_cell(struct dump *d, uint64_t a, uint64_t b, uint64_t v, const char *last)
{
	char text[3][NUMBER];
	const char *values[] = { text[0], text[1], text[2], last };

	if (v == 0)
		return;
	d->n++;
	snprintf(text[0], NUMBER, "%" PRIu64, a);
	snprintf(text[1], NUMBER, "%" PRIu64, b);
	snprintf(text[2], NUMBER, "%" PRIu64, v);
	pl_row_out_add(&d->rows, values);
}

static const struct pl_column columns[][4] = {
	[PL_KEY_WRITE] = { { "slot", 12, true, false }, { "check", 10, true, false },
		{ "value", -8, false, false } },
	[PL_APPEND] = { { "list", 8, true, false }, { "number", 14, true, false },
		{ "value", -8, false, false } },
	[PL_COUNTERS] = { { "row", 4, true, false }, { "cell", 14, true, false },
		{ "value", 20, true, false } },
	[PL_POSTCARDS] = { { "chunk", 12, true, false }, { "hops", 5, true, false },
		{ "words", -8, false, false } },
	[PL_SKETCH] = { { "column", 14, true, false }, { "row", 4, true, false },
		{ "value", 20, true, false }, { "present", -7, false, false, .flag = true } },
};

static void dump_key_write(struct dump *d, const struct pl_store_params *params, void *base)
{
	uint8_t value[PL_VALUE_MAX];
	struct pl_key_write kw;
	uint32_t check;

	if (pl_key_write_init(&kw, params, base) < 0)
		return;
	for (uint64_t i = d->args->from; i < kw.slots && !full(d); i++) {
		if (pl_key_write_slot(&kw, i, &check, value))
			add_bytes(d, i, check, value, kw.value_bytes);
	}
}

static void dump_append(struct dump *d, const struct pl_store_params *params, void *base)
{
	static uint8_t entries[64 * PL_ENTRY_MAX];
	struct pl_append_reader r;
	uint64_t numbers[64], oldest;
	struct pl_append a;
	uint32_t list = (uint32_t)d->args->list;
	size_t n;

	if (pl_append_init(&a, params, base) < 0 || d->args->list >= a.lists)
		return;
	oldest = pl_append_oldest(&a, list);
	pl_append_reader_init(&r, &a, list, d->args->from > oldest ? d->args->from : oldest);
	while (r.cursor < pl_append_head(&a, list) && !full(d)) {
		n = pl_append_read(&r, entries, numbers, 64);
		for (size_t i = 0; i < n && !full(d); i++)
			add_bytes(d, list, numbers[i], entries + i * a.entry_bytes, a.entry_bytes);
	}
	if (r.damaged > 0)
		pl_complain("%" PRIu64 " entries are damaged and left out", r.damaged);
	if (r.overrun > 0)
		pl_complain("%" PRIu64 " entries were overwritten while reading", r.overrun);
}

static void dump_counters(struct dump *d, const struct pl_store_params *params, const void *base)
{
	const uint64_t *cells = base;
	uint64_t width = params->counters.width;
	uint64_t n = width * (params->counters.shared != 0 ? 1 : params->counters.rows);

	for (uint64_t i = d->args->from; i < n && !full(d); i++)
		add_cell(d, i / width, i % width, __atomic_load_n(&cells[i], __ATOMIC_RELAXED),
			NULL);
}

static bool empty(const uint8_t *p, size_t n)
{
	while (n > 0 && *p == 0) {
		p++;
		n--;
	}
	return n == 0;
}

static void dump_postcards(
	struct dump *d, const struct pl_store_params *params, const uint8_t *base)
{
	uint32_t bytes = pl_postcards_chunk_bytes(params->hash, params->postcards.hops);

	for (uint64_t i = d->args->from; i < params->postcards.chunks && !full(d); i++) {
		if (!empty(base + i * bytes, bytes))
			add_bytes(d, i, params->postcards.hops, base + i * bytes,
				(size_t)4 * params->postcards.hops);
	}
}

/* Prints the cells. The least count of complete columns during the reading is used: cells read
 * before then belong to the present sketch. */
static void dump_sketch(struct dump *d, const struct pl_store_params *params, void *base)
{
	uint32_t bytes = params->sketch.cell_bytes, rows = params->sketch.rows;
	struct pl_sketch s;
	uint64_t complete;

	(void)pl_sketch_init(&s, params, base);
	complete = pl_sketch_completed(&s);
	for (uint64_t i = d->args->from; i < s.columns * rows && !full(d); i++) {
		uint64_t v = 0, now;

		memcpy(&v, s.base + PL_SKETCH_CELLS_AT + i * bytes, bytes);
		pl_words_acquire();
		now = pl_sketch_completed(&s);
		complete = now < complete ? now : complete;
		add_cell(d, i / rows, i % rows, v, i / rows < complete ? "yes" : "no");
	}
	pl_region_tell_whole(&s, complete);
}

static void dump_store(struct dump *d, const struct pl_store_params *params, void *base)
{
	switch (params->primitive) {
	case PL_KEY_WRITE:
		dump_key_write(d, params, base);
		break;
	case PL_APPEND:
		dump_append(d, params, base);
		break;
	case PL_COUNTERS:
		dump_counters(d, params, base);
		break;
	case PL_POSTCARDS:
		dump_postcards(d, params, base);
		break;
	default:
		dump_sketch(d, params, base);
	}
}

int pl_region_dump(const struct pl_region *g, const struct pl_region_args *args)
{
	const struct pl_store_params *params = pl_region_params(g);
	void *base = pl_region_store_of(g, args);
	struct dump *d;
	uint64_t n;
	bool good;

	if (base == NULL)
		return PL_EXIT_NOTHING;
	if (params->primitive == PL_APPEND && args->list >= params->append.lists)
		return pl_fail(PL_EXIT_USAGE, "the region has lists 0 to %" PRIu32,
			params->append.lists - 1);
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	d->args = args;
	d->content = params->content;
	pl_row_out_init(&d->rows, args->form, columns[params->primitive],
		params->primitive == PL_SKETCH ? 4 : 3);
	(void)pl_record_out_init_kinds(&d->records, args->form, kinds_of(params->content), NULL, 0);
	if (d->content >= PL_CONTENT_FLAT)
		pl_flat_out_init(
			&d->flat, (enum pl_flat_kind)(d->content - PL_CONTENT_FLAT), args->form, 0);
	dump_store(d, params, base);
	n = d->n;
	if (d->content >= PL_CONTENT_FLAT) {
		pl_buf_done(&d->rows.buf);
		good = pl_flat_out_end(&d->flat);
	} else if (d->content != PL_CONTENT_BYTES) {
		pl_buf_done(&d->rows.buf);
		pl_record_out_end(&d->records);
		good = pl_record_out_good(&d->records);
	} else {
		good = pl_row_out_end(&d->rows);
	}
	pl_record_out_done(&d->records);
	free(d);
	return !good ? PL_EXIT_FAILED : n > 0 ? PL_EXIT_OK : PL_EXIT_NOTHING;
}
