/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads cells of the aggregate into the columns of cells.def. */
#include "detect/cells.h"

#include <stdio.h>
#include <string.h>

#include "detect/units.h"

static const struct pl_column columns[PL_CELL_COLUMNS] = {
#define PL_CELL_KEY(table, name, ...) { .kind = PL_COLUMN_KEY },
#define PL_CELL_NUMBER(table, name, type, unit, o, point, fam, lab, txt, ...)                      \
	{ .kind = PL_COLUMN_##type,                                                                \
		.other = (o),                                                                      \
		.field = (point),                                                                  \
		.family = (fam),                                                                   \
		.label = (lab),                                                                    \
		.text = (txt) },
#define PL_CELL_SHOWN(table, name, ...) { .kind = PL_COLUMN_SHOWN },
#include "detect/cells.def"
#undef PL_CELL_KEY
#undef PL_CELL_NUMBER
#undef PL_CELL_SHOWN
};

#define FIELD(table, n, f, u, h)                                                                   \
	{ .name = #n,                                                                              \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = PL_FORM_##f == PL_FORM_TEXT                                              \
				  ? offsetof(struct pl_cell, nodes)                                \
				  : (uint16_t)(offsetof(struct pl_cell, value) +                   \
					       8 * (PL_CELL_AT_##table##_##n -                     \
							   PL_CELL_FIRST_##table)),                \
		.form = PL_FORM_##f,                                                               \
		.present = UINT32_C(1) << (PL_CELL_AT_##table##_##n - PL_CELL_FIRST_##table) },
const struct pl_field pl_cell_fields[PL_CELL_COLUMNS] = {
#define PL_CELL_KEY(table, name, form, help) FIELD(table, name, form, "", help)
#define PL_CELL_NUMBER(table, name, type, unit, o, point, fam, lab, txt, help)                     \
	FIELD(table, name, U64, unit, help)
#define PL_CELL_SHOWN(table, name, form, unit, help) FIELD(table, name, form, unit, help)
#include "detect/cells.def"
#undef PL_CELL_KEY
#undef PL_CELL_NUMBER
#undef PL_CELL_SHOWN
};

#define COLUMNS(table, end)                                                                        \
	.name = #table, .columns = columns + PL_CELL_FIRST_##table,                                \
	.fields = pl_cell_fields + PL_CELL_FIRST_##table, .n = (end)-PL_CELL_FIRST_##table
const struct pl_cell_table pl_cell_tables[PL_AGG_TABLE_MAX] = {
	[PL_AGG_QUEUES] = { COLUMNS(queue, PL_CELL_FIRST_port),
		.delays = "pathline_hop_latency_seconds",
		.delays_help = "Time within the node of packets through a queue.",
		.jitter = "pathline_hop_jitter_seconds",
		.jitter_help = "Jitter of the hop latency (RFC 3550, 6.4.1).",
		.depths = "pathline_queue_occupancy",
		.depths_help =
			"Occupancies reported, in the node's unit; the sum divided by the count is their mean." },
	[PL_AGG_PORTS] = { COLUMNS(port, PL_CELL_FIRST_link) },
	[PL_AGG_LINKS] = { COLUMNS(link, PL_CELL_FIRST_path),
		.delays = "pathline_link_latency_seconds",
		.delays_help =
			"Time from a node's egress to the next one's ingress, by the two nodes' clocks.",
		.jitter = "pathline_link_jitter_seconds",
		.jitter_help = "Jitter of the link latency (RFC 3550, 6.4.1)." },
	[PL_AGG_PATHS] = { COLUMNS(path, PL_CELL_COLUMNS),
		.delays = "pathline_path_latency_seconds",
		.delays_help = "Sum of a packet's hop latencies, where every hop gave one." },
};
_Static_assert(PL_CELL_FIRST_port - PL_CELL_FIRST_queue <= PL_CELL_COLUMNS_MAX &&
		       PL_CELL_FIRST_path - PL_CELL_FIRST_link <= PL_CELL_COLUMNS_MAX,
	"room for the columns of every table");

/* ---- the tables of the aggregate ---- */

const void *pl_cell_next(const struct pl_aggregate *agg, enum pl_agg_table table, uint32_t *pos)
{
	switch (table) {
	case PL_AGG_QUEUES:
		return pl_aggregate_queue(agg, pos);
	case PL_AGG_PORTS:
		return pl_aggregate_port(agg, pos);
	case PL_AGG_LINKS:
		return pl_aggregate_link(agg, pos);
	default:
		return pl_aggregate_path(agg, pos);
	}
}

const void *pl_cell_overflow(const struct pl_aggregate *agg, enum pl_agg_table table)
{
	const struct pl_agg_queue *queue = pl_aggregate_queue_overflow(agg);
	const struct pl_agg_port *port = pl_aggregate_port_overflow(agg);
	const struct pl_agg_link *link = pl_aggregate_link_overflow(agg);
	const struct pl_agg_path *path = pl_aggregate_path_overflow(agg);

	switch (table) {
	case PL_AGG_QUEUES:
		return queue->seen_ns != 0 ? queue : NULL;
	case PL_AGG_PORTS:
		return port->seen_ns != 0 ? port : NULL;
	case PL_AGG_LINKS:
		return link->seen_ns != 0 ? link : NULL;
	default:
		return path->seen_ns != 0 ? path : NULL;
	}
}

/* ---- a cell ---- */

static void put(struct pl_cell *c, unsigned int i, uint64_t value)
{
	c->value[i] = value;
	c->present |= UINT32_C(1) << i;
}

#define PUT(table, name, value) put(c, PL_CELL_AT_##table##_##name - PL_CELL_FIRST_##table, (value))

static void read_queue(struct pl_cell *c, const struct pl_aggregate *agg,
	const struct pl_agg_queue *q, uint64_t unit)
{
	uint32_t max;

	PUT(queue, node, q->key.node);
	if ((q->key.has & PL_KEY_HAS_PORT) != 0)
		PUT(queue, port, q->key.port);
	if ((q->key.has & PL_KEY_HAS_QUEUE) != 0)
		PUT(queue, queue, q->key.queue);
	PUT(queue, packets, q->packets);
	if (q->has_depth) {
		PUT(queue, depth, q->last_depth);
		PUT(queue, last_ts_ns, q->last_ts_ns);
	}
	if (q->has_depth && unit != 0)
		PUT(queue, depth_bytes, q->last_depth * unit);
	if (pl_aggregate_max(agg, &q->depth_max, &max)) {
		PUT(queue, depth_max, max);
		if (unit != 0)
			PUT(queue, depth_max_bytes, max * unit);
	}
	c->delays = &q->latency;
	c->delays_gate = &q->latency_gate;
	c->delays_exemplars = &q->latency_exemplars;
	c->jitter = &q->jitter;
	c->depths = &q->depth;
	c->depths_gate = &q->depth_gate;
	c->depths_exemplars = &q->depth_exemplars;
}

static void read_port(
	struct pl_cell *c, const struct pl_aggregate *agg, const struct pl_agg_port *x)
{
	uint32_t max;

	PUT(port, node, x->key.node);
	if ((x->key.has & PL_KEY_HAS_PORT) != 0)
		PUT(port, port, x->key.port);
	PUT(port, packets, x->packets);
	if (x->has_util) {
		PUT(port, utilization, x->last_util);
		PUT(port, last_ts_ns, x->last_ts_ns);
	}
	if (pl_aggregate_max(agg, &x->util_max, &max))
		PUT(port, utilization_max, max);
}

static void read_link(struct pl_cell *c, const struct pl_agg_link *x)
{
	PUT(link, node, x->key.a);
	if ((x->key.has & PL_KEY_HAS_PORT) != 0)
		PUT(link, port, x->key.a_port);
	PUT(link, peer, x->key.b);
	if ((x->key.has & PL_KEY_HAS_INGRESS) != 0)
		PUT(link, peer_port, x->key.b_port);
	PUT(link, packets, x->reports);
	PUT(link, clock_ok, x->clock[PL_CLOCK_OK]);
	PUT(link, clock_skewed, x->clock[PL_CLOCK_SKEWED]);
	PUT(link, clock_implausible, x->clock[PL_CLOCK_IMPLAUSIBLE]);
	PUT(link, clock_mixed, x->clock[PL_CLOCK_MIXED]);
	c->delays = &x->latency;
	c->delays_gate = &x->latency_gate;
	c->delays_exemplars = &x->latency_exemplars;
	c->jitter = &x->jitter;
}

static void read_path(struct pl_cell *c, const struct pl_agg_path *x)
{
	PUT(path, path_id, x->key.path_id);
	PUT(path, hop_count, x->hop_count);
	PUT(path, packets, x->reports);
	PUT(path, last_ts_ns, x->last_ts_ns);
	c->delays = &x->latency;
	c->delays_gate = &x->latency_gate;
	c->delays_exemplars = &x->latency_exemplars;
}

/* Removes the values that mean nothing for many queues together, such as the last occupancy. */
static void leave_out(struct pl_cell *c, const struct pl_cell_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if (!t->columns[i].other)
			c->present &= ~(UINT32_C(1) << i);
	}
	c->jitter = NULL;
}

void pl_cell_read(struct pl_cell *c, const struct pl_aggregate *agg, enum pl_agg_table table,
	const void *cell, bool other, const struct pl_core_units *units)
{
	memset(c, 0, sizeof(*c));
	if (table == PL_AGG_QUEUES) {
		const struct pl_agg_queue *q = cell;

		read_queue(c, agg, q, other ? 0 : pl_units_queue(units, q->key.node));
	} else if (table == PL_AGG_PORTS) {
		read_port(c, agg, cell);
	} else if (table == PL_AGG_LINKS) {
		read_link(c, cell);
	} else {
		read_path(c, cell);
	}
	if (other)
		leave_out(c, &pl_cell_tables[table]);
}

void pl_cell_path_nodes(const struct pl_agg_path *x, char *dst, size_t cap)
{
	size_t n = 0;

	dst[0] = '\0';
	for (unsigned int i = 0; i < x->hop_count && i < PL_PATH_STEPS_MAX && n < cap; i++)
		n += (size_t)snprintf(dst + n, cap - n, i == 0 ? "%llu" : ">%llu",
			(unsigned long long)x->steps[i].node);
	if (x->hop_count > PL_PATH_STEPS_MAX && n < cap)
		snprintf(dst + n, cap - n, ">…");
}

/* Adds median, 99th percentile, jitter and variation, in the order of every table. */
static void add_delays(struct pl_cell *c, unsigned int first, bool variation)
{
	uint64_t p99;
	double ns;

	if (pl_hist_count(c->delays) > 0) {
		put(c, first, pl_hist_quantile(c->delays, 0.5));
		put(c, first + 1, pl_hist_quantile(c->delays, 0.99));
	}
	if (!variation)
		return;
	if (pl_agg_jitter(c->jitter, c->delays, &ns))
		put(c, first + 2, (uint64_t)(ns + 0.5));
	if (pl_agg_variation(c->delays, 0.99, &p99))
		put(c, first + 3, p99);
}

void pl_cell_add_shown(struct pl_cell *c, enum pl_agg_table table, const void *cell)
{
	if (table == PL_AGG_QUEUES)
		add_delays(c, PL_CELL_AT_queue_hop_latency_p50_ns - PL_CELL_FIRST_queue, true);
	else if (table == PL_AGG_LINKS)
		add_delays(c, PL_CELL_AT_link_latency_p50_ns - PL_CELL_FIRST_link, true);
	if (table != PL_AGG_PATHS)
		return;
	add_delays(c, PL_CELL_AT_path_latency_p50_ns - PL_CELL_FIRST_path, false);
	pl_cell_path_nodes(cell, c->nodes, sizeof(c->nodes));
	PUT(path, nodes, 0);
}
