/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints facts about a region: its geometry, its writer, its epoch. */
#include "ask/region_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock_kind.h"
#include "base/exit_code.h"
#include "memory/sketch.h"
#include "record/rows.h"
#include "show/row_out.h"

#define CELL 80

const char *const pl_region_contents[] = { "bytes", "path", "hop", "event", "pkt64", "pkt96",
	"dns64", "flow128", "mark128", "seg192", "link128", "sent128", "drop168", "flow288", NULL };
_Static_assert(
	sizeof(pl_region_contents) / sizeof(pl_region_contents[0]) == PL_CONTENT_MAX + 1, "");

/* Facts about a region: name and value of each, which may be a number. */
struct facts {
	struct pl_column columns[24];
	char text[24][CELL];
	const char *values[24];
	unsigned int n;
};

__attribute__((format(printf, 4, 5))) static void fact(
	struct facts *f, const char *name, bool number, const char *fmt, ...)
{
	va_list ap;

	if (f->n == sizeof(f->columns) / sizeof(f->columns[0]))
		return;
	va_start(ap, fmt);
	vsnprintf(f->text[f->n], CELL, fmt, ap);
	va_end(ap);
	f->columns[f->n] = (struct pl_column){ name, -16, number, false };
	f->values[f->n] = f->text[f->n];
	f->n++;
}

static void flag_fact(struct facts *f, const char *name, bool v)
{
	fact(f, name, false, "%s", v ? "yes" : "no");
	f->columns[f->n - 1].flag = strcmp(f->columns[f->n - 1].name, name) == 0;
}

static void number_fact(struct facts *f, const char *name, uint64_t v)
{
	fact(f, name, true, "%" PRIu64, v);
}

static void store_facts(struct facts *f, const struct pl_store_params *p)
{
	switch (p->primitive) {
	case PL_KEY_WRITE:
		number_fact(f, "slots", p->key_write.slots);
		number_fact(f, "value_bytes", p->key_write.value_bytes);
		number_fact(f, "copies", p->key_write.copies);
		break;
	case PL_APPEND:
		number_fact(f, "lists", p->append.lists);
		number_fact(f, "slots", p->append.slots);
		number_fact(f, "entry_bytes", p->append.entry_bytes);
		number_fact(f, "batch", p->append.batch_max);
		flag_fact(f, "sealed", p->append.sealed != 0);
		break;
	case PL_COUNTERS:
		number_fact(f, "rows", p->counters.rows);
		number_fact(f, "width", p->counters.width);
		flag_fact(f, "shared", p->counters.shared != 0);
		break;
	case PL_POSTCARDS:
		number_fact(f, "chunks", p->postcards.chunks);
		number_fact(f, "hops", p->postcards.hops);
		number_fact(f, "copies", p->postcards.copies);
		break;
	default:
		fact(f, "kind", false, "%s",
			p->sketch.kind == PL_SKETCH_HYPERLOGLOG ? "hyperloglog" : "count-min");
		number_fact(f, "columns", p->sketch.columns);
		number_fact(f, "rows", p->sketch.rows);
		number_fact(f, "cell_bytes", p->sketch.cell_bytes);
	}
}

/* Adds the complete columns of the present sketch. */
static void sketch_facts(struct facts *f, const struct pl_region *g)
{
	struct pl_sketch s;
	void *base = pl_region_store(g, pl_region_epoch(g));
	uint64_t complete = 0;

	if (base != NULL && pl_sketch_init(&s, pl_region_params(g), base) == 0)
		complete = pl_sketch_completed(&s);
	number_fact(f, "complete", complete);
	flag_fact(f, "whole", complete == pl_region_params(g)->sketch.columns);
}

static void gather(struct facts *f, const char *path, const struct pl_region_info *info)
{
	char time[PL_TIME_TEXT_MAX];

	f->n = 0;
	fact(f, "file", false, "%s", path);
	fact(f, "primitive", false, "%s", pl_primitive_name(info->params.primitive));
	fact(f, "hash", false, "%s", info->params.hash == PL_HASH_DTA ? "dta" : "pathline");
	store_facts(f, &info->params);
	if (info->params.content < PL_CONTENT_MAX)
		fact(f, "content", false, "%s", pl_region_contents[info->params.content]);
	fact(f, "id", false, "%016" PRIx64, info->id);
	(void)pl_time_text(time, info->created_ns);
	fact(f, "created", false, "%s", time);
	number_fact(f, "file_bytes", info->file_bytes);
	number_fact(f, "data_offset", info->data_offset);
	number_fact(f, "halves", info->halves);
	number_fact(f, "epoch", info->epoch);
	flag_fact(f, "clean", info->clean);
	number_fact(f, "writer_pid", info->writer_pid);
	number_fact(f, "sync_failures", info->sync_failures);
	if (info->params.content >= PL_CONTENT_FLAT)
		fact(f, "clock", false, "%s",
			info->clocks != 0 ? pl_clock_name(pl_clock_of(info->clocks)) : "unknown");
}

static bool print_facts(const struct facts *f, const char *form)
{
	struct pl_row_out out;

	if (strcmp(form, "table") == 0 || strcmp(form, "wide") == 0) {
		for (unsigned int i = 0; i < f->n; i++)
			printf("%-14s %s\n", f->columns[i].name, f->values[i]);
		return fflush(stdout) == 0;
	}
	pl_row_out_init(&out, form, f->columns, f->n);
	pl_row_out_add(&out, f->values);
	return pl_row_out_end(&out);
}

int pl_region_describe(const struct pl_region *g, const char *path, const char *form)
{
	struct pl_region_info i;
	struct facts f;

	pl_region_get_info(g, &i);
	gather(&f, path, &i);
	if (i.params.primitive == PL_SKETCH)
		sketch_facts(&f, g);
	return print_facts(&f, form) ? PL_EXIT_OK : PL_EXIT_FAILED;
}
