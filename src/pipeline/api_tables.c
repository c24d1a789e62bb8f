/* SPDX-License-Identifier: BSD-2-Clause */
#include "pipeline/api_tables.h"
#include "base/num.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect/units.h"
#include "pipeline/metrics.h"
#include "record/path_book.h"

/* A column: member, form, presence mask (0 = always), unit, help. Its name is the member's. */
#define COLUMN(st, member, f, has, u, h)                                                           \
	{                                                                                          \
		.name = #member, .unit = (u), .help = (h), .offset = offsetof(struct st, member),  \
		.form = PL_FORM_##f, .present = (has)                                              \
	}
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

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

static uint64_t overflow_of(const struct pl_api_walk *walk, enum pl_agg_table table)
{
	const struct pl_pipeline *p = walk->pipeline;
	uint64_t sum = 0;

	if (p == NULL)
		return pl_aggregate_totals(walk->aggregate)->overflow[table];
	for (unsigned int i = 0; i < p->n_workers; i++)
		sum += pl_aggregate_totals(p->workers[i]->engine->aggregate_copy)->overflow[table];
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
	COLUMN(queue_row, node, U64, 0, "", "node id"),
	COLUMN(queue_row, port, U32, HAS_PORT, "", "egress port"),
	COLUMN(queue_row, queue, U16, HAS_QUEUE, "", "queue id"),
	COLUMN(queue_row, packets, U64, 0, "", "packets reported through it"),
	COLUMN(queue_row, depth, U32, HAS_A, "", "last reported occupancy, in the node's unit"),
	COLUMN(queue_row, depth_max, U32, HAS_B, "",
		"largest occupancy of this and the last slot of aggregate.slot, in the node's unit"),
	COLUMN(queue_row, depth_bytes, U64, HAS_F, "bytes",
		"last reported occupancy, where the node's unit is configured"),
	COLUMN(queue_row, depth_max_bytes, U64, HAS_G, "bytes", "largest occupancy, likewise"),
	COLUMN(queue_row, hop_latency_p50_ns, U64, HAS_C, "ns", "median of the hop latencies"),
	COLUMN(queue_row, hop_latency_p99_ns, U64, HAS_C, "ns",
		"99th percentile of the hop latencies"),
	COLUMN(queue_row, jitter_ns, U64, HAS_D, "ns", "jitter of the hop latency (RFC 3550)"),
	COLUMN(queue_row, variation_p99_ns, U64, HAS_E, "ns",
		"99th percentile of the hop latency variation (RFC 5481)"),
	COLUMN(queue_row, last_ts_ns, U64, HAS_A, "ns", "time of the last occupancy"),
};

static int begin_queues(struct pl_api_walk *walk)
{
	walk->overflow = overflow_of(walk, PL_AGG_QUEUES);
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
	COLUMN(port_row, node, U64, 0, "", "node id"),
	COLUMN(port_row, port, U32, HAS_PORT, "", "egress port"),
	COLUMN(port_row, packets, U64, 0, "", "packets reported out of it"),
	COLUMN(port_row, utilization, U32, HAS_A, "",
		"last reported utilization, in the exporter's unit"),
	COLUMN(port_row, utilization_max, U32, HAS_B, "",
		"largest utilization of this and the last slot of aggregate.slot"),
	COLUMN(port_row, last_ts_ns, U64, HAS_A, "ns", "time of the last utilization"),
};

static int begin_ports(struct pl_api_walk *walk)
{
	walk->overflow = overflow_of(walk, PL_AGG_PORTS);
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
	COLUMN(link_row, node, U64, 0, "", "node it leaves"),
	COLUMN(link_row, port, U32, HAS_PORT, "", "egress port there"),
	COLUMN(link_row, peer, U64, 0, "", "node it comes to"),
	COLUMN(link_row, peer_port, U32, HAS_PEER_PORT, "", "ingress port there"),
	COLUMN(link_row, packets, U64, 0, "", "packets reported over it"),
	COLUMN(link_row, latency_p50_ns, U64, HAS_A, "ns", "median of the link latencies"),
	COLUMN(link_row, latency_p99_ns, U64, HAS_A, "ns", "99th percentile of the link latencies"),
	COLUMN(link_row, jitter_ns, U64, HAS_D, "ns", "jitter of the link latency (RFC 3550)"),
	COLUMN(link_row, variation_p99_ns, U64, HAS_E, "ns",
		"99th percentile of the link latency variation (RFC 5481)"),
	COLUMN(link_row, clock_ok, U64, 0, "", "readings with two clocks that agree"),
	COLUMN(link_row, clock_skewed, U64, 0, "", "readings below zero: not in the latencies"),
	COLUMN(link_row, clock_implausible, U64, 0, "",
		"readings above the limit: not in the latencies"),
	COLUMN(link_row, clock_mixed, U64, 0, "",
		"readings of two widths or units: not in the latencies"),
};

static int begin_links(struct pl_api_walk *walk)
{
	walk->overflow = overflow_of(walk, PL_AGG_LINKS);
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
	COLUMN(path_row, path_id, HEX64, 0, "", "hash of the nodes and ports in order"),
	COLUMN(path_row, nodes, TEXT, 0, "", "nodes of the path, source first"),
	COLUMN(path_row, hop_count, U8, 0, "", "hops"),
	COLUMN(path_row, packets, U64, 0, "", "packets reported over it"),
	COLUMN(path_row, latency_p50_ns, U64, HAS_A, "ns", "median of the sum of hop latencies"),
	COLUMN(path_row, latency_p99_ns, U64, HAS_A, "ns",
		"99th percentile of the sum of hop latencies"),
	COLUMN(path_row, last_ts_ns, U64, 0, "ns", "time of its last report"),
};

static int begin_paths(struct pl_api_walk *walk)
{
	walk->overflow = overflow_of(walk, PL_AGG_PATHS);
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
	uint8_t hw_id, report_version, unsequenced;
};

static const struct pl_field exporter_fields[] = {
	COLUMN(exporter_row, exporter, ADDR, 0, "", "source address of its reports"),
	COLUMN(exporter_row, node, U64, 0, "", "reporting node"),
	COLUMN(exporter_row, hw_id, U8, 0, "", "hardware unit"),
	COLUMN(exporter_row, report_version, REPORT_VERSION, 0, "", "of its last report"),
	COLUMN(exporter_row, reports, U64, 0, "", "reports that came"),
	COLUMN(exporter_row, lost, U64, HAS_A, "", "reports missing in the sequence"),
	COLUMN(exporter_row, reordered, U64, HAS_A, "", "reports that came after a later one"),
	COLUMN(exporter_row, duplicates, U64, HAS_A, "", "duplicate reports"),
	COLUMN(exporter_row, restarts, U64, HAS_A, "", "times the sequence restarted"),
	COLUMN(exporter_row, unsequenced, U8, 0, "",
		"1: sends a constant sequence number, its losses cannot be measured"),
	COLUMN(exporter_row, last_seq, U32, 0, "", "last sequence number"),
	COLUMN(exporter_row, first_ts_ns, U64, 0, "ns", "time of its first report"),
	COLUMN(exporter_row, last_ts_ns, U64, 0, "ns", "time of its last report"),
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
		.present = x->unsequenced ? 0 : HAS_A,
		.exporter = x->addr,
		.node = x->node,
		.hw_id = x->hw_id,
		.report_version = x->report_version,
		.unsequenced = x->unsequenced,
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
	/* The only one of another meaning: a value without its unit would mislead. */
	{ .name = "unit",
		.unit = "",
		.help = "bytes: of value and threshold, occupancies in bytes",
		.offset = EVENT_OFFSET + UNIT_OFFSET,
		.form = PL_FORM_UNIT,
		.present = PL_EVENT_HAS_unit },
	COLUMN(event_row, path_nodes, TEXT, HAS_PATHS, "", "nodes of the path now, source first"),
	COLUMN(event_row, old_path_nodes, TEXT, HAS_PATHS, "", "nodes of the path before"),
};

/* ---- flows ---- */

struct flow_row {
	uint32_t present, vni;
	struct pl_addr src, dst;
	uint16_t sport, dport, vlan;
	uint8_t proto;
	uint64_t packets, bytes, path_id, duration_ns, idle_ns, lost, reordered;
};

#define FLOW(member, n, f, has, h)                                                                 \
	{                                                                                          \
		.name = (n), .unit = "", .help = (h), .offset = offsetof(struct flow_row, member), \
		.form = PL_FORM_##f, .present = (has)                                              \
	}

static const struct pl_field flow_fields[] = {
	FLOW(src, "flow.src", ADDR, 0, "source"),
	FLOW(dst, "flow.dst", ADDR, 0, "destination"),
	FLOW(sport, "flow.sport", U16, HAS_PORT, "source port"),
	FLOW(dport, "flow.dport", U16, HAS_PORT, "destination port"),
	FLOW(proto, "flow.proto", U8, 0, "transport protocol number"),
	FLOW(vlan, "flow.vlan", U16, HAS_A, "VLAN id"),
	FLOW(vni, "flow.vni", U32, HAS_B, "VXLAN or Geneve network, or GRE key"),
	COLUMN(flow_row, packets, U64, 0, "", "packets reported of it"),
	COLUMN(flow_row, bytes, U64, HAS_C, "", "their bytes"),
	COLUMN(flow_row, path_id, HEX64, HAS_D, "", "its last complete path"),
	COLUMN(flow_row, lost, U64, HAS_E, "",
		"packets missing by the flow's own numbers, where it has some"),
	COLUMN(flow_row, reordered, U64, HAS_E, "", "packets reordered by those numbers"),
	COLUMN(flow_row, duration_ns, U64, 0, "ns", "from its first to its last report"),
	COLUMN(flow_row, idle_ns, U64, 0, "ns", "since its last report"),
};

struct flow_at {
	struct pl_flow_seen seen;
	uint64_t now_ns;
};

static int by_flow(const void *a, const void *b)
{
	return memcmp(&((const struct flow_at *)a)->seen.key,
		&((const struct flow_at *)b)->seen.key, sizeof(struct pl_flow_key));
}

/* Two workers know the same flow when two exporters report of it. */
static size_t fold_flows(struct flow_at *f, size_t n)
{
	size_t kept = 0;

	qsort(f, n, sizeof(*f), by_flow);
	for (size_t i = 0; i < n; i++) {
		struct pl_flow_seen *to = kept > 0 ? &f[kept - 1].seen : NULL;

		if (to == NULL || by_flow(&f[kept - 1], &f[i]) != 0) {
			f[kept++] = f[i];
			continue;
		}
		to->packets += f[i].seen.packets;
		to->bytes += f[i].seen.bytes;
		to->numbered |= f[i].seen.numbered;
		to->lost += f[i].seen.lost;
		to->reordered += f[i].seen.reordered;
		if (f[i].seen.first_ns < to->first_ns)
			to->first_ns = f[i].seen.first_ns;
		if (f[i].seen.last_ns > to->last_ns) {
			to->last_ns = f[i].seen.last_ns;
			to->path_id = f[i].seen.path_id;
		}
	}
	return kept;
}

static int begin_flows(struct pl_api_walk *walk)
{
	const struct pl_pipeline *p = walk->pipeline;
	struct flow_at *rows = calloc((size_t)p->n_workers * PL_TOP_FLOWS + 1, sizeof(*rows));
	uint64_t known = 0;
	size_t n = 0;

	if (rows == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_snapshot *s = &p->workers[i]->snap;

		known += s->flows;
		for (uint32_t k = 0; k < s->n_top; k++)
			rows[n++] = (struct flow_at){ s->top[k], s->now_ns };
	}
	walk->rows = rows;
	walk->overflow = known > n ? known - n : 0;
	walk->n_rows = fold_flows(rows, n);
	return 0;
}

static bool next_flow(struct pl_api_walk *walk, void *row)
{
	const struct flow_at *f = walk->rows;
	struct flow_row *r = row;

	if (walk->pos >= walk->n_rows)
		return false;
	f += walk->pos++;
	*r = (struct flow_row){
		.present = ((f->seen.key.has & PL_FLOW_KEY_HAS_PORTS) != 0 ? HAS_PORT : 0) |
			   ((f->seen.key.has & PL_FLOW_KEY_HAS_VLAN) != 0 ? HAS_A : 0) |
			   ((f->seen.key.has & PL_FLOW_KEY_HAS_VNI) != 0 ? HAS_B : 0) |
			   (f->seen.bytes > 0 ? HAS_C : 0) | (f->seen.path_id != 0 ? HAS_D : 0) |
			   (f->seen.numbered ? HAS_E : 0),
		.lost = f->seen.lost,
		.reordered = f->seen.reordered,
		.src = f->seen.key.src,
		.dst = f->seen.key.dst,
		.sport = f->seen.key.sport,
		.dport = f->seen.key.dport,
		.proto = f->seen.key.proto,
		.vlan = f->seen.key.vlan,
		.vni = f->seen.key.vni,
		.packets = f->seen.packets,
		.bytes = f->seen.bytes,
		.path_id = f->seen.path_id,
		.duration_ns = f->seen.last_ns - f->seen.first_ns,
		.idle_ns = f->now_ns > f->seen.last_ns ? f->now_ns - f->seen.last_ns : 0,
	};
	return true;
}

/* ---- drops ---- */

struct drop_row {
	uint32_t present, zero;
	uint64_t count;
	char place[16], name[96], cause[32];
};

static const struct pl_field drop_fields[] = {
	COLUMN(drop_row, place, TEXT, 0, "",
		"network, socket, sender, decode, detect, output, series"),
	COLUMN(drop_row, name, TEXT, 0, "", "name of the place"),
	COLUMN(drop_row, cause, TEXT, 0, "", "why"),
	COLUMN(drop_row, count, U64, 0, "", "number of drops since the start"),
};

enum {
	DROPS_PER_WORKER = 4 + PL_PORT_FLOODS,
	DROPS_OTHER = 16,
};

struct drops {
	struct drop_row *rows;
	size_t n, cap;
};

static void add_drop(
	struct drops *d, const char *place, const char *name, const char *cause, uint64_t count)
{
	struct drop_row *r;

	if (count == 0 || d->n == d->cap)
		return;
	r = &d->rows[d->n++];
	snprintf(r->place, sizeof(r->place), "%s", place);
	snprintf(r->name, sizeof(r->name), "%s", name);
	snprintf(r->cause, sizeof(r->cause), "%s", cause);
	r->count = count;
}

/* By sender; those of one that shared a lane, or is forgotten, are of "others". */
static void flood_drops(struct drops *d, const struct pl_snapshot *s)
{
	uint64_t others = s->port.flood_drops;

	for (uint32_t i = 0; i < s->n_floods; i++) {
		char who[PL_ADDR_TEXT_MAX + 4];

		pl_port_flood_text(who, sizeof(who), &s->floods[i]);
		add_drop(d, "sender", who, "flood", s->floods[i].drops);
		others -= s->floods[i].drops;
	}
	add_drop(d, "sender", "others", "flood", others);
}

static void socket_drops(struct drops *d, const struct pl_pipeline *p)
{
	for (unsigned int i = 0; i < p->n_workers; i++) {
		const struct pl_worker *w = p->workers[i];
		char name[96];

		snprintf(name, sizeof(name), "%s#%u", w->name, w->index);
		add_drop(d, "socket", name, "buffer_full",
			w->snap.port.kernel_drops - w->snap.port.flood_drops);
		flood_drops(d, &w->snap);
		add_drop(d, "socket", name, "cut", w->snap.port.cut);
		add_drop(d, "socket", name, "errors", w->snap.port.errors);
	}
}

static void total_drops(struct drops *d, const struct pl_totals *t)
{
	for (unsigned int v = 0; v < PL_V_MAX; v++) {
		if (v != PL_V_OK)
			add_drop(d, "decode", "packets", pl_verdict_name(v), t->verdicts[v]);
	}
	add_drop(d, "network", "reports", "missing_in_sequence", t->lost);
	add_drop(d, "decode", "exporters", "untracked", t->exporters_full);
	add_drop(d, "decode", "exporters", "displaced", t->exporters_gone);
	add_drop(d, "decode", "reports", "unproven", t->unproven);
	add_drop(d, "decode", "paths", "uninterned", t->paths_full);
	add_drop(d, "detect", "events", "no_room", t->events_dropped);
	add_drop(d, "detect", "flows", "evicted", t->flows_evicted);
	add_drop(d, "detect", "levels", "unfollowed", t->queues_full);
	for (unsigned int k = 0; k < PL_EVENT_KIND_MAX; k++)
		add_drop(d, "detect", pl_event_kind_name(k), "limited", t->events_limited[k]);
}

static void output_drops(struct drops *d, struct pl_pipeline *p)
{
	for (unsigned int i = 0; i < p->n_outputs; i++) {
		struct pl_output_stats s;

		pl_output_stats(p->outputs[i], &s);
		for (unsigned int c = 0; c < PL_EXPORT_DROP_MAX; c++)
			add_drop(d, "output", pl_output_name(p->outputs[i]), pl_export_drop_name(c),
				s.dropped[c]);
	}
}

static int begin_drops(struct pl_api_walk *walk)
{
	struct pl_pipeline *p = walk->pipeline;
	struct drops d = { .cap = PL_V_MAX + PL_EVENT_KIND_MAX + PL_AGG_TABLE_MAX + DROPS_OTHER +
				  (size_t)DROPS_PER_WORKER * p->n_workers +
				  (size_t)PL_EXPORT_DROP_MAX * p->n_outputs };
	struct pl_totals totals = p->gone;

	d.rows = calloc(d.cap, sizeof(*d.rows));
	if (d.rows == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < p->n_workers; i++)
		pl_totals_add(&totals, &p->workers[i]->snap.totals);
	add_drop(&d, "socket", "closed ones", "buffer_full", p->gone_ports.kernel_drops);
	socket_drops(&d, p);
	total_drops(&d, &totals);
	output_drops(&d, p);
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		add_drop(&d, "series", pl_agg_table_name(t), "limited", overflow_of(walk, t));
	walk->rows = d.rows;
	walk->n_rows = d.n;
	return 0;
}

static bool next_drop(struct pl_api_walk *walk, void *row)
{
	if (walk->pos >= walk->n_rows)
		return false;
	memcpy(row, (struct drop_row *)walk->rows + walk->pos++, sizeof(struct drop_row));
	return true;
}

/* ---- all of them ---- */

#define TABLE(n, st, order, r, h)                                                                  \
	{                                                                                          \
		.name = #n "s", .help = (h), .fields = n##_fields, .n_fields = COUNT(n##_fields),  \
		.row_size = sizeof(struct st), .sort = (order), .begin = begin_##n##s,             \
		.next = next_##n, .recorded = (r)                                                  \
	}

static const struct pl_api_table tables[] = {
	TABLE(queue, queue_row, "-depth_max", true, "queues of the network"),
	TABLE(link, link_row, "-packets", true, "links of the network"),
	TABLE(port, port_row, "-packets", true, "egress ports of the network"),
	TABLE(path, path_row, "-packets", true, "paths that packets took"),
	TABLE(exporter, exporter_row, "-reports", false, "exporters that send reports"),
	TABLE(event, event_row, "-ts_ns", true, "the latest events"),
	TABLE(drop, drop_row, "-count", false, "drops by place and cause"),
	{ .name = "flows",
		.help = "flows with the most packets, of each worker",
		.fields = flow_fields,
		.n_fields = COUNT(flow_fields),
		.row_size = sizeof(struct flow_row),
		.sort = "-packets",
		.flows = true,
		.begin = begin_flows,
		.next = next_flow },
};

const struct pl_api_table *const pl_api_tables[] = { &tables[0], &tables[1], &tables[2], &tables[3],
	&tables[4], &tables[5], &tables[6], &tables[7], &pl_api_table_regions,
	&pl_api_table_values };
const unsigned int pl_api_n_tables = COUNT(pl_api_tables);

_Static_assert(sizeof(struct path_row) <= PL_API_ROW_MAX &&
		       sizeof(struct event_row) <= PL_API_ROW_MAX &&
		       sizeof(struct exporter_row) <= PL_API_ROW_MAX,
	"room for every row");
_Static_assert(COUNT(tables) == 8, "all of them are listed");
