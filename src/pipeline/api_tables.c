/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the rows of the API's tables. */
#include "pipeline/api_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/cells.h"
#include "pipeline/metrics.h"
#include "record/path_book.h"

/* ---- queues, ports, links, paths ---- */

static int begin_cells(struct pl_api_walk *walk)
{
	walk->overflow = pl_api_overflow(walk, walk->table->cells);
	/* Checked when the file was read. A history has no units, only its records. */
	if (walk->pipeline != NULL)
		(void)pl_config_units(&walk->pipeline->config, &walk->units, NULL);
	return 0;
}

static bool next_cell(struct pl_api_walk *walk, void *row)
{
	const enum pl_agg_table table = walk->table->cells;
	const void *cell = pl_cell_next(walk->aggregate, table, &walk->pos);

	if (cell == NULL)
		return false;
	pl_cell_read(row, walk->aggregate, table, cell, false, &walk->units);
	pl_cell_add_shown(row, table, cell);
	return true;
}

/* ---- exporters ---- */

struct exporter_row {
	uint32_t present, last_seq;
	struct pl_addr exporter;
	uint64_t node, reports, lost, reordered, duplicates, restarts, first_ts_ns, last_ts_ns;
	uint8_t hw_id, report_version, unsequenced, shared;
};

#define HAS_NUMBERS 1 /* its sequence numbers show losses */

static const struct pl_field exporter_fields[] = {
	PL_API_COLUMN(exporter_row, exporter, ADDR, 0, "", "source address of its reports"),
	PL_API_COLUMN(exporter_row, node, U64, 0, "", "reporting node"),
	PL_API_COLUMN(exporter_row, hw_id, U8, 0, "", "hardware unit"),
	PL_API_COLUMN(exporter_row, report_version, REPORT_VERSION, 0, "", "of its last report"),
	PL_API_COLUMN(exporter_row, reports, U64, 0, "", "reports that came"),
	PL_API_COLUMN(exporter_row, lost, U64, HAS_NUMBERS, "", "reports missing in the sequence"),
	PL_API_COLUMN(exporter_row, reordered, U64, HAS_NUMBERS, "",
		"reports that came after a later one"),
	PL_API_COLUMN(exporter_row, duplicates, U64, HAS_NUMBERS, "", "duplicate reports"),
	PL_API_COLUMN(exporter_row, restarts, U64, HAS_NUMBERS, "", "times the sequence restarted"),
	PL_API_COLUMN(exporter_row, unsequenced, U8, 0, "",
		"1: sends a constant sequence number, its losses cannot be measured"),
	PL_API_COLUMN(exporter_row, shared, U8, 0, "",
		"1: several senders number their reports under this identity, their losses cannot be measured"),
	PL_API_COLUMN(exporter_row, last_seq, U32, 0, "", "last sequence number"),
	PL_API_COLUMN(exporter_row, first_ts_ns, U64, 0, "ns", "time of its first report"),
	PL_API_COLUMN(exporter_row, last_ts_ns, U64, 0, "ns", "time of its last report"),
};

static int begin_exporters(struct pl_api_walk *walk)
{
	struct pl_exporters all;
	int r = pl_metrics_exporters(walk->pipeline, &all);

	if (r < 0)
		return r;
	walk->rows = all.list;
	walk->n_rows = all.n;
	walk->overflow = all.others.reports;
	return 0;
}

static bool next_exporter(struct pl_api_walk *walk, void *row)
{
	const struct pl_exporter *x = walk->rows;
	struct exporter_row *r = row;

	if (walk->pos >= walk->n_rows)
		return false;
	x += walk->pos++;
	*r = (struct exporter_row){
		.present = x->unsequenced || x->shared ? 0 : HAS_NUMBERS,
		.exporter = x->addr,
		.node = x->node,
		.hw_id = x->hw_id,
		.report_version = x->report_version,
		.unsequenced = x->unsequenced,
		.shared = x->shared,
		.reports = x->reports,
		.lost = x->skipped - x->recovered,
		.reordered = x->reordered,
		.duplicates = x->duplicates,
		.restarts = x->restarts,
		.last_seq = x->last_seq,
		.first_ts_ns = x->first_ts_ns,
		.last_ts_ns = x->last_ts_ns,
	};
	return true;
}

/* ---- events ---- */

static int begin_events(struct pl_api_walk *walk)
{
	const struct pl_api_records *records = walk->records;
	uint64_t total = 0;

	if (records != NULL) {
		walk->rows = calloc(records->n_events + 1, sizeof(struct pl_event));
		if (walk->rows == NULL)
			return -ENOMEM;
		if (records->n_events > 0)
			memcpy(walk->rows, records->events,
				records->n_events * sizeof(struct pl_event));
		walk->n_rows = records->n_events;
		walk->overflow = records->events_before;
		return 0;
	}
	if (walk->live == NULL)
		return 0;
	walk->rows = calloc(pl_watch_events_max(walk->live), sizeof(struct pl_event));
	if (walk->rows == NULL)
		return -ENOMEM;
	walk->n_rows =
		pl_watch_events(walk->live, walk->rows, pl_watch_events_max(walk->live), &total);
	walk->overflow = total - walk->n_rows;
	return 0;
}

/* Bit beyond those of an event. */
#define HAS_PATHS (UINT32_C(1) << 31)

/* A row must begin with `present`, which is not the first member of a record. */
struct event_row {
	uint32_t present, zero;
	struct pl_event event;
	char path_nodes[PL_PATH_NODES_TEXT], old_path_nodes[PL_PATH_NODES_TEXT];
};

static bool next_event(struct pl_api_walk *walk, void *row)
{
	const struct pl_event *events = walk->rows;
	struct event_row *r = row;
	struct pl_path_nodes now, old;

	if (walk->pos >= walk->n_rows)
		return false;
	r->event = events[walk->pos++];
	r->present = r->event.present;
	if (pl_event_paths(&r->event, &now, &old)) {
		(void)pl_path_nodes_text(r->path_nodes, &now);
		(void)pl_path_nodes_text(r->old_path_nodes, &old);
		r->present |= HAS_PATHS;
	}
	return true;
}

#define EVENT_OFFSET offsetof(struct event_row, event)
#define UNIT_OFFSET  offsetof(struct pl_event, hw_id) /* shares the place of hw_id */
static const struct pl_field event_fields[] = {
#define PL_EVENT_FIELD(off, id, type, f, presence, n, u, h)                                        \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = EVENT_OFFSET + (off),                                                    \
		.form = PL_FORM_##f,                                                               \
		.present = PL_EVENT_HAS_##id },
#include "record/fields.def"
	/* Members with other meanings: a value would mislead without its unit, an event without its
	 * query or region. */
	{ .name = "unit",
		.unit = "",
		.help = "unit of value and threshold: bytes for an occupancy in bytes",
		.offset = EVENT_OFFSET + UNIT_OFFSET,
		.form = PL_FORM_UNIT,
		.present = PL_EVENT_HAS_unit },
	{ .name = "query",
		.unit = "",
		.help = "standing query that found it",
		.offset = EVENT_OFFSET + offsetof(struct pl_event, node),
		.form = PL_FORM_TEXT,
		.present = PL_EVENT_HAS_query },
	{ .name = "key",
		.unit = "",
		.help = "key of the group that the query found, or of the value in the region",
		.offset = EVENT_OFFSET + offsetof(struct pl_event, path_id),
		.form = PL_FORM_TEXT,
		.present = PL_EVENT_HAS_key },
	{ .name = "region",
		.unit = "",
		.help = "region that the value is in",
		.offset = EVENT_OFFSET + offsetof(struct pl_event, src),
		.form = PL_FORM_TEXT,
		.present = PL_EVENT_HAS_region },
	{ .name = "place",
		.unit = "",
		.help = "slot, cell or list of the region",
		.offset = EVENT_OFFSET + offsetof(struct pl_event, node),
		.form = PL_FORM_U64,
		.present = PL_EVENT_HAS_region },
	PL_API_COLUMN(
		event_row, path_nodes, TEXT, HAS_PATHS, "", "nodes of the path now, source first"),
	PL_API_COLUMN(event_row, old_path_nodes, TEXT, HAS_PATHS, "", "nodes of the path before"),
};

/* ---- list of tables ---- */

#define CELLS(n, next_table, agg, order, h)                                                        \
	{                                                                                          \
		.name = #n "s", .help = (h), .fields = pl_cell_fields + PL_CELL_FIRST_##n,         \
		.n_fields = (next_table)-PL_CELL_FIRST_##n, .row_size = sizeof(struct pl_cell),    \
		.sort = (order), .begin = begin_cells, .next = next_cell, .recorded = true,        \
		.cells = (agg)                                                                     \
	}
#define TABLE(n, order, r, h)                                                                      \
	{                                                                                          \
		.name = #n "s", .help = (h), .fields = n##_fields,                                 \
		.n_fields = PL_API_COUNT(n##_fields), .row_size = sizeof(struct n##_row),          \
		.sort = (order), .begin = begin_##n##s, .next = next_##n, .recorded = (r)          \
	}

static const struct pl_api_table tables[] = {
	CELLS(queue, PL_CELL_FIRST_port, PL_AGG_QUEUES, "-depth_max", "queues of the network"),
	CELLS(link, PL_CELL_FIRST_path, PL_AGG_LINKS, "-packets", "links of the network"),
	CELLS(port, PL_CELL_FIRST_link, PL_AGG_PORTS, "-packets", "egress ports of the network"),
	CELLS(path, PL_CELL_COLUMNS, PL_AGG_PATHS, "-packets", "paths that packets took"),
	TABLE(exporter, "-reports", false, "exporters that send reports"),
	TABLE(event, "-ts_ns", true, "the latest events"),
};

const struct pl_api_table *const pl_api_tables[] = { &tables[0], &tables[1], &tables[2], &tables[3],
	&tables[4], &tables[5], &pl_api_table_drops, &pl_api_table_flows, &pl_api_table_regions,
	&pl_api_table_values };
const unsigned int pl_api_n_tables = PL_API_COUNT(pl_api_tables);

_Static_assert(sizeof(struct pl_cell) <= PL_API_ROW_MAX &&
		       sizeof(struct event_row) <= PL_API_ROW_MAX &&
		       sizeof(struct exporter_row) <= PL_API_ROW_MAX,
	"room for every row");
_Static_assert(PL_API_COUNT(tables) == 6, "all of them are listed");
