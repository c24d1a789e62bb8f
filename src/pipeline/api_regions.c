/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the API about telemetry memory: regions that are read, and their latest values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/api_tables.h"
#include "pipeline/region_source.h"

#define COLUMN(member, f, has, u, h)                                                               \
	{                                                                                          \
		.name = #member, .unit = (u), .help = (h),                                         \
		.offset = offsetof(struct region_row, member), .form = PL_FORM_##f,                \
		.present = (has)                                                                   \
	}

enum { HAS_VALUE = 1, HAS_MAX = 2, HAS_INCREASE = 4, HAS_LAST = 8, HAS_TROUBLE = 16, HAS_USE = 32 };

/* ---- regions ---- */

struct region_row {
	uint32_t present;
	uint8_t primitive;
	char region[32], writer[8], state[16], trouble[192];
	uint64_t slots, in_use, found, told, counted, overrun, damaged, repeated, keyed, invalid;
	uint64_t skipped, unsettled, losses, value, value_number, value_max, max_number, increase;
	uint64_t last_ts_ns;
};

static const struct pl_field region_fields[] = {
	COLUMN(region, TEXT, 0, "", "name of the region"),
	COLUMN(primitive, PRIMITIVE, 0, "", "kind of store it has"),
	COLUMN(writer, TEXT, 0, "", "its writer: dta, rdma, other"),
	COLUMN(state, TEXT, 0, "", "ok, or lost: it cannot be read"),
	COLUMN(trouble, TEXT, HAS_TROUBLE, "", "why it cannot be read"),
	COLUMN(slots, U64, 0, "", "entries, slots, cells, chunks or columns it has room for"),
	COLUMN(in_use, U64, HAS_USE, "", "slots in use when they were last walked; not of lists"),
	COLUMN(found, U64, 0, "",
		"new entries, changed slots and cells: found = told + counted + all that was dropped"),
	COLUMN(told, U64, 0, "", "given to the outputs"),
	COLUMN(counted, U64, 0, "", "only counted (read.tell: false)"),
	COLUMN(overrun, U64, 0, "", "dropped: overwritten before they were read"),
	COLUMN(damaged, U64, 0, "", "dropped: entries whose seal does not fit"),
	COLUMN(repeated, U64, 0, "", "dropped: other copies of values that were told"),
	COLUMN(keyed, U64, 0, "",
		"dropped: paths of postcards, which cannot be read without their flow"),
	COLUMN(invalid, U64, 0, "", "dropped: no record"),
	COLUMN(skipped, U64, 0, "",
		"entries of lists from before this process began to read them, not told"),
	COLUMN(unsettled, U64, 0, "",
		"slots left to the next time, because they were being written"),
	COLUMN(losses, U64, 0, "", "times the file was lost"),
	COLUMN(value, U64, HAS_VALUE, "", "the newest number"),
	COLUMN(value_number, U64, HAS_VALUE, "", "number of its entry, slot or cell"),
	COLUMN(value_max, U64, HAS_MAX, "",
		"largest number of this and the last slot of aggregate.slot; of counters the largest increase"),
	COLUMN(max_number, U64, HAS_MAX, "", "number of its entry, slot or cell"),
	COLUMN(increase, U64, HAS_INCREASE, "", "of counters: sum of all additions"),
	COLUMN(last_ts_ns, U64, HAS_LAST, "ns", "when something new was found last"),
};

static int begin_regions(struct pl_api_walk *walk)
{
	struct pl_region_source *source = walk->pipeline->regions;
	struct pl_region_input_stats *s;

	if (source == NULL)
		return 0;
	s = calloc(PL_CONFIG_REGIONS_MAX, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	while (walk->n_rows < PL_CONFIG_REGIONS_MAX &&
		pl_region_source_stats(source, (unsigned int)walk->n_rows, &s[walk->n_rows]))
		walk->n_rows++;
	walk->rows = s;
	return 0;
}

static bool next_region(struct pl_api_walk *walk, void *row)
{
	static const char *const writers[] = { "other", "dta", "rdma", "output" };
	const struct pl_region_input_stats *s = walk->rows;
	struct region_row *r = row;

	if (walk->pos >= walk->n_rows)
		return false;
	s += walk->pos++;
	*r = (struct region_row){
		.present = (s->has_value ? HAS_VALUE : 0) | (s->has_max ? HAS_MAX : 0) |
			   (s->primitive == PL_COUNTERS ? HAS_INCREASE : 0) |
			   (s->last_ts_ns != 0 ? HAS_LAST : 0) | (s->readable ? 0 : HAS_TROUBLE) |
			   (s->primitive != PL_APPEND ? HAS_USE : 0),
		.primitive = (uint8_t)s->primitive,
		.slots = s->slots,
		.in_use = s->in_use,
		.found = s->found,
		.told = s->told,
		.counted = s->counted,
		.overrun = s->dropped[PL_REGION_OVERRUN],
		.damaged = s->dropped[PL_REGION_DAMAGED],
		.repeated = s->dropped[PL_REGION_REPEATED],
		.keyed = s->dropped[PL_REGION_KEYED],
		.invalid = s->dropped[PL_REGION_INVALID],
		.skipped = s->skipped,
		.unsettled = s->unsettled,
		.losses = s->lost,
		.value = s->value,
		.value_number = s->value_number,
		.value_max = s->max,
		.max_number = s->max_number,
		.increase = s->increase,
		.last_ts_ns = s->last_ts_ns,
	};
	snprintf(r->region, sizeof(r->region), "%s", s->name);
	snprintf(r->writer, sizeof(r->writer), "%s", writers[s->writer]);
	snprintf(r->state, sizeof(r->state), "%s", s->readable ? "ok" : "lost");
	snprintf(r->trouble, sizeof(r->trouble), "%s", s->trouble);
	return true;
}

/* ---- values ---- */

/* A row must begin with `present`, which is not the first member of a record. */
struct value_row {
	uint32_t present, zero;
	struct pl_value value;
};

static int begin_values(struct pl_api_walk *walk)
{
	uint64_t total = 0;
	uint32_t most;

	if (walk->live == NULL)
		return 0;
	most = pl_watch_events_max(walk->live);
	walk->rows = calloc(most, sizeof(struct pl_value));
	if (walk->rows == NULL)
		return -ENOMEM;
	walk->n_rows = pl_watch_values(walk->live, walk->rows, most, &total);
	walk->overflow = total - walk->n_rows;
	return 0;
}

static bool next_value(struct pl_api_walk *walk, void *row)
{
	const struct pl_value *values = walk->rows;
	struct value_row *r = row;

	if (walk->pos >= walk->n_rows)
		return false;
	r->value = values[walk->pos++];
	r->present = r->value.present;
	return true;
}

#define VALUE_OFFSET offsetof(struct value_row, value)
static const struct pl_field value_fields[] = {
#define PL_VALUE_FIELD(off, id, type, f, presence, n, u, h)                                        \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = VALUE_OFFSET + (off),                                                    \
		.form = PL_FORM_##f,                                                               \
		.present = PL_VALUE_HAS_##id },
#define PL_VALUE_ALIAS(off, type, f, presence, id, n, u, h)                                        \
	PL_VALUE_FIELD(off, id, type, f, presence, n, u, h)
#include "record/fields.def"
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

const struct pl_api_table pl_api_table_regions = {
	.name = "regions",
	.help = "regions of telemetry memory that are read",
	.fields = region_fields,
	.n_fields = COUNT(region_fields),
	.row_size = sizeof(struct region_row),
	.sort = "region",
	.begin = begin_regions,
	.next = next_region,
};

const struct pl_api_table pl_api_table_values = {
	.name = "values",
	.help = "the latest values read from regions",
	.fields = value_fields,
	.n_fields = COUNT(value_fields),
	.row_size = sizeof(struct value_row),
	.sort = "-ts_ns",
	.begin = begin_values,
	.next = next_value,
};

_Static_assert(
	sizeof(struct region_row) <= PL_API_ROW_MAX && sizeof(struct value_row) <= PL_API_ROW_MAX,
	"room for every row");
