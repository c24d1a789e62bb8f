/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the rows of the API's tables. */
#include "pipeline/api_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/units.h"
#include "pipeline/metrics.h"
#include "record/path_book.h"

enum {
	HAS_PORT = 1,
	HAS_QUEUE = 2,
	HAS_PEER_PORT = 4,
	HAS_A = 8,
	HAS_B = 16,
	HAS_C = 32,
	HAS_D = 64,
	HAS_E = 128,
	HAS_F = 256,
	HAS_G = 512
};

static uint32_t key_bits(uint64_t has)
{
	return ((has & PL_KEY_HAS_PORT) != 0 ? HAS_PORT : 0) |
	       ((has & PL_KEY_HAS_QUEUE) != 0 ? HAS_QUEUE : 0) |
	       ((has & PL_KEY_HAS_INGRESS) != 0 ? HAS_PEER_PORT : 0);
}

uint64_t pl_api_overflow(const struct pl_api_walk *walk, enum pl_agg_table table)
{
	const struct pl_pipeline *p = walk->pipeline;
	uint64_t sum = 0;

	if (p == NULL)
		return pl_aggregate_totals(walk->aggregate)->overflow[table];
	for (unsigned int i = 0; i < p->n_workers; i++)
		sum += p->workers[i]->snap.aggregate.overflow[table];
	return sum;
}

/* Median, 99th percentile and number of a histogram; `has` when there are any. */
static uint32_t quantiles(const struct pl_hist *h, uint32_t has, uint64_t *p50, uint64_t *p99)
{
	if (pl_hist_count(h) == 0)
		return 0;
	*p50 = pl_hist_quantile(h, 0.5);
	*p99 = pl_hist_quantile(h, 0.99);
	return has;
}

/* Jitter (HAS_D) and the 99th percentile of the variation (HAS_E). */
static uint32_t jitters(const struct pl_agg_jitter *j, const struct pl_hist *delays,
	uint64_t *ret_jitter, uint64_t *ret_p99)
{
	double ns;
	uint32_t has = pl_agg_jitter(j, delays, &ns) ? HAS_D : 0;

	*ret_jitter = (uint64_t)(ns + 0.5);
	return has | (pl_agg_variation(delays, 0.99, ret_p99) ? HAS_E : 0);
}

/* ---- queues ---- */

struct queue_row {
	uint32_t present, port;
	uint64_t node, packets, last_ts_ns;
	uint64_t hop_latency_p50_ns, hop_latency_p99_ns, jitter_ns, variation_p99_ns;
	uint64_t depth_bytes, depth_max_bytes;
	uint32_t depth, depth_max;
	uint16_t queue;
};

static const struct pl_field queue_fields[] = {
	PL_API_COLUMN(queue_row, node, U64, 0, "", "node id"),
	PL_API_COLUMN(queue_row, port, U32, HAS_PORT, "", "egress port"),
	PL_API_COLUMN(queue_row, queue, U16, HAS_QUEUE, "", "queue id"),
	PL_API_COLUMN(queue_row, packets, U64, 0, "", "packets reported through it"),
	PL_API_COLUMN(
		queue_row, depth, U32, HAS_A, "", "last reported occupancy, in the node's unit"),
	PL_API_COLUMN(queue_row, depth_max, U32, HAS_B, "",
		"largest occupancy of this and the last slot of aggregate.slot, in the node's unit"),
	PL_API_COLUMN(queue_row, depth_bytes, U64, HAS_F, "bytes",
		"last reported occupancy, where the node's unit is configured"),
	PL_API_COLUMN(
		queue_row, depth_max_bytes, U64, HAS_G, "bytes", "largest occupancy, likewise"),
	PL_API_COLUMN(
		queue_row, hop_latency_p50_ns, U64, HAS_C, "ns", "median of the hop latencies"),
	PL_API_COLUMN(queue_row, hop_latency_p99_ns, U64, HAS_C, "ns",
		"99th percentile of the hop latencies"),
	PL_API_COLUMN(
		queue_row, jitter_ns, U64, HAS_D, "ns", "jitter of the hop latency (RFC 3550)"),
	PL_API_COLUMN(queue_row, variation_p99_ns, U64, HAS_E, "ns",
		"99th percentile of the hop latency variation (RFC 5481)"),
	PL_API_COLUMN(queue_row, last_ts_ns, U64, HAS_A, "ns", "time of the last occupancy"),
};

static int begin_queues(struct pl_api_walk *walk)
{
	walk->overflow = pl_api_overflow(walk, PL_AGG_QUEUES);
	/* It was checked when the file was read; of records nothing is known but what they say. */
	if (walk->pipeline != NULL)
		(void)pl_config_units(&walk->pipeline->config, &walk->units, NULL);
	return 0;
}

static bool next_queue(struct pl_api_walk *walk, void *row)
{
	const struct pl_aggregate *a = walk->aggregate;
	const struct pl_agg_queue *q = pl_aggregate_queue(a, &walk->pos);
	struct queue_row *r = row;
	uint64_t unit;

	if (q == NULL)
		return false;
	unit = pl_units_queue(&walk->units, q->key.node);
	r->present = key_bits(q->key.has);
	r->node = q->key.node;
	r->port = q->key.port;
	r->queue = q->key.queue;
	r->packets = q->packets;
	if (q->has_depth) {
		r->depth = q->last_depth;
		r->depth_bytes = q->last_depth * unit;
		r->last_ts_ns = q->last_ts_ns;
		r->present |= HAS_A | (unit != 0 ? HAS_F : 0);
	}
	if (pl_aggregate_max(a, &q->depth_max, &r->depth_max)) {
		r->depth_max_bytes = r->depth_max * unit;
		r->present |= HAS_B | (unit != 0 ? HAS_G : 0);
	}
	r->present |=
		quantiles(&q->latency, HAS_C, &r->hop_latency_p50_ns, &r->hop_latency_p99_ns) |
		jitters(&q->jitter, &q->latency, &r->jitter_ns, &r->variation_p99_ns);
	return true;
}

/* ---- ports ---- */

struct port_row {
	uint32_t present, port;
	uint64_t node, packets, last_ts_ns;
	uint32_t utilization, utilization_max;
};

static const struct pl_field port_fields[] = {
	PL_API_COLUMN(port_row, node, U64, 0, "", "node id"),
	PL_API_COLUMN(port_row, port, U32, HAS_PORT, "", "egress port"),
	PL_API_COLUMN(port_row, packets, U64, 0, "", "packets reported out of it"),
	PL_API_COLUMN(port_row, utilization, U32, HAS_A, "",
		"last reported utilization, in the exporter's unit"),
	PL_API_COLUMN(port_row, utilization_max, U32, HAS_B, "",
		"largest utilization of this and the last slot of aggregate.slot"),
	PL_API_COLUMN(port_row, last_ts_ns, U64, HAS_A, "ns", "time of the last utilization"),
};

static int begin_ports(struct pl_api_walk *walk)
{
	walk->overflow = pl_api_overflow(walk, PL_AGG_PORTS);
	return 0;
}

static bool next_port(struct pl_api_walk *walk, void *row)
{
	const struct pl_aggregate *a = walk->aggregate;
	const struct pl_agg_port *x = pl_aggregate_port(a, &walk->pos);
	struct port_row *r = row;

	if (x == NULL)
		return false;
	r->present = key_bits(x->key.has);
	r->node = x->key.node;
	r->port = x->key.port;
	r->packets = x->packets;
	if (x->has_util) {
		r->utilization = x->last_util;
		r->last_ts_ns = x->last_ts_ns;
		r->present |= HAS_A;
	}
	if (pl_aggregate_max(a, &x->util_max, &r->utilization_max))
		r->present |= HAS_B;
	return true;
}

/* ---- links ---- */

struct link_row {
	uint32_t present, port, peer_port;
	uint64_t node, peer, packets;
	uint64_t latency_p50_ns, latency_p99_ns, jitter_ns, variation_p99_ns;
	uint64_t clock_ok, clock_skewed, clock_implausible, clock_mixed;
};

static const struct pl_field link_fields[] = {
	PL_API_COLUMN(link_row, node, U64, 0, "", "node it leaves"),
	PL_API_COLUMN(link_row, port, U32, HAS_PORT, "", "egress port there"),
	PL_API_COLUMN(link_row, peer, U64, 0, "", "node it comes to"),
	PL_API_COLUMN(link_row, peer_port, U32, HAS_PEER_PORT, "", "ingress port there"),
	PL_API_COLUMN(link_row, packets, U64, 0, "", "packets reported over it"),
	PL_API_COLUMN(link_row, latency_p50_ns, U64, HAS_A, "ns", "median of the link latencies"),
	PL_API_COLUMN(link_row, latency_p99_ns, U64, HAS_A, "ns",
		"99th percentile of the link latencies"),
	PL_API_COLUMN(
		link_row, jitter_ns, U64, HAS_D, "ns", "jitter of the link latency (RFC 3550)"),
	PL_API_COLUMN(link_row, variation_p99_ns, U64, HAS_E, "ns",
		"99th percentile of the link latency variation (RFC 5481)"),
	PL_API_COLUMN(link_row, clock_ok, U64, 0, "", "readings with two clocks that agree"),
	PL_API_COLUMN(
		link_row, clock_skewed, U64, 0, "", "readings below zero: not in the latencies"),
	PL_API_COLUMN(link_row, clock_implausible, U64, 0, "",
		"readings above the limit: not in the latencies"),
	PL_API_COLUMN(link_row, clock_mixed, U64, 0, "",
		"readings of two widths or units: not in the latencies"),
};

static int begin_links(struct pl_api_walk *walk)
{
	walk->overflow = pl_api_overflow(walk, PL_AGG_LINKS);
	return 0;
}

static bool next_link(struct pl_api_walk *walk, void *row)
{
	const struct pl_agg_link *x = pl_aggregate_link(walk->aggregate, &walk->pos);
	struct link_row *r = row;

	if (x == NULL)
		return false;
	r->present = key_bits(x->key.has);
	r->node = x->key.a;
	r->port = x->key.a_port;
	r->peer = x->key.b;
	r->peer_port = x->key.b_port;
	r->packets = x->reports;
	r->clock_ok = x->clock[PL_CLOCK_OK];
	r->clock_skewed = x->clock[PL_CLOCK_SKEWED];
	r->clock_implausible = x->clock[PL_CLOCK_IMPLAUSIBLE];
	r->clock_mixed = x->clock[PL_CLOCK_MIXED];
	r->present |= quantiles(&x->latency, HAS_A, &r->latency_p50_ns, &r->latency_p99_ns) |
		      jitters(&x->jitter, &x->latency, &r->jitter_ns, &r->variation_p99_ns);
	return true;
}

/* ---- paths ---- */

struct path_row {
	uint32_t present;
	uint8_t hop_count;
	uint64_t path_id, packets, last_ts_ns;
	uint64_t latency_p50_ns, latency_p99_ns;
	char nodes[PL_PATH_STEPS_MAX * 21 + 8];
};

static const struct pl_field path_fields[] = {
	PL_API_COLUMN(path_row, path_id, HEX64, 0, "", "hash of the nodes and ports in order"),
	PL_API_COLUMN(path_row, nodes, TEXT, 0, "", "nodes of the path, source first"),
	PL_API_COLUMN(path_row, hop_count, U8, 0, "", "hops"),
	PL_API_COLUMN(path_row, packets, U64, 0, "", "packets reported over it"),
	PL_API_COLUMN(
		path_row, latency_p50_ns, U64, HAS_A, "ns", "median of the sum of hop latencies"),
	PL_API_COLUMN(path_row, latency_p99_ns, U64, HAS_A, "ns",
		"99th percentile of the sum of hop latencies"),
	PL_API_COLUMN(path_row, last_ts_ns, U64, 0, "ns", "time of its last report"),
};

static int begin_paths(struct pl_api_walk *walk)
{
	walk->overflow = pl_api_overflow(walk, PL_AGG_PATHS);
	return 0;
}

static bool next_path(struct pl_api_walk *walk, void *row)
{
	const struct pl_agg_path *x = pl_aggregate_path(walk->aggregate, &walk->pos);
	struct path_row *r = row;

	if (x == NULL)
		return false;
	r->path_id = x->key.path_id;
	r->hop_count = x->hop_count;
	r->packets = x->reports;
	r->last_ts_ns = x->last_ts_ns;
	pl_metrics_path_text(x, r->nodes, sizeof(r->nodes));
	r->present = quantiles(&x->latency, HAS_A, &r->latency_p50_ns, &r->latency_p99_ns);
	return true;
}

/* ---- exporters ---- */

struct exporter_row {
	uint32_t present, last_seq;
	struct pl_addr exporter;
	uint64_t node, reports, lost, reordered, duplicates, restarts, first_ts_ns, last_ts_ns;
	uint8_t hw_id, report_version, unsequenced, shared;
};

static const struct pl_field exporter_fields[] = {
	PL_API_COLUMN(exporter_row, exporter, ADDR, 0, "", "source address of its reports"),
	PL_API_COLUMN(exporter_row, node, U64, 0, "", "reporting node"),
	PL_API_COLUMN(exporter_row, hw_id, U8, 0, "", "hardware unit"),
	PL_API_COLUMN(exporter_row, report_version, REPORT_VERSION, 0, "", "of its last report"),
	PL_API_COLUMN(exporter_row, reports, U64, 0, "", "reports that came"),
	PL_API_COLUMN(exporter_row, lost, U64, HAS_A, "", "reports missing in the sequence"),
	PL_API_COLUMN(
		exporter_row, reordered, U64, HAS_A, "", "reports that came after a later one"),
	PL_API_COLUMN(exporter_row, duplicates, U64, HAS_A, "", "duplicate reports"),
	PL_API_COLUMN(exporter_row, restarts, U64, HAS_A, "", "times the sequence restarted"),
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
		.present = x->unsequenced || x->shared ? 0 : HAS_A,
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

/* Beyond the bits that an event has. */
#define HAS_PATHS (UINT32_C(1) << 31)

/* A record's `present` is not its first member: the row is the event behind one. */
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
#define UNIT_OFFSET  offsetof(struct pl_event, hw_id) /* in whose place it is */
static const struct pl_field event_fields[] = {
#define PL_EVENT_FIELD(off, id, type, f, presence, n, u, h)                                        \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = EVENT_OFFSET + (off),                                                    \
		.form = PL_FORM_##f,                                                               \
		.present = PL_EVENT_HAS_##id },
#include "record/fields.def"
#undef PL_EVENT_FIELD
	/* Of another meaning: a value without its unit would mislead, and so would an event without
	 * its query or its region. */
	{ .name = "unit",
		.unit = "",
		.help = "bytes: of value and threshold, occupancies in bytes",
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

/* ---- all of them ---- */

#define TABLE(n, st, order, r, h)                                                                  \
	{                                                                                          \
		.name = #n "s", .help = (h), .fields = n##_fields,                                 \
		.n_fields = PL_API_COUNT(n##_fields), .row_size = sizeof(struct st),               \
		.sort = (order), .begin = begin_##n##s, .next = next_##n, .recorded = (r)          \
	}

static const struct pl_api_table tables[] = {
	TABLE(queue, queue_row, "-depth_max", true, "queues of the network"),
	TABLE(link, link_row, "-packets", true, "links of the network"),
	TABLE(port, port_row, "-packets", true, "egress ports of the network"),
	TABLE(path, path_row, "-packets", true, "paths that packets took"),
	TABLE(exporter, exporter_row, "-reports", false, "exporters that send reports"),
	TABLE(event, event_row, "-ts_ns", true, "the latest events"),
};

const struct pl_api_table *const pl_api_tables[] = { &tables[0], &tables[1], &tables[2], &tables[3],
	&tables[4], &tables[5], &pl_api_table_drops, &pl_api_table_flows, &pl_api_table_regions,
	&pl_api_table_values };
const unsigned int pl_api_n_tables = PL_API_COUNT(pl_api_tables);

_Static_assert(sizeof(struct path_row) <= PL_API_ROW_MAX &&
		       sizeof(struct event_row) <= PL_API_ROW_MAX &&
		       sizeof(struct exporter_row) <= PL_API_ROW_MAX,
	"room for every row");
_Static_assert(PL_API_COUNT(tables) == 6, "all of them are listed");
