/* SPDX-License-Identifier: BSD-2-Clause */
/* The network on the metrics page: queues, ports, links, paths, out of the merged aggregates. */
#include <stdio.h>

#include "base/num.h"
#include "detect/units.h"
#include "pipeline/metrics.h"
#include "pipeline/metrics_page.h"

/* What a page is made of: the merged state and how fine its histograms are. */
struct network {
	const struct pl_aggregate *a;
	struct pl_exposition_bounds latency, depth;
	struct pl_core_units units;
};

static void network_bounds(struct network *n, const struct pl_config *config)
{
	static const uint8_t steps[] = { PL_HIST_PER_OCTAVE * 2, PL_HIST_PER_OCTAVE,
		PL_HIST_PER_OCTAVE / 2, PL_HIST_PER_OCTAVE / 4 };

	n->latency = pl_bounds_latency;
	n->depth = pl_bounds_depth;
	n->latency.step = n->depth.step = steps[config->metrics.buckets];
	/* Between powers of two the kernel has nothing to tell. */
	if (pl_config_harvests(config) && n->latency.step < PL_HIST_PER_OCTAVE)
		n->latency.step = n->depth.step = PL_HIST_PER_OCTAVE;
}

/* "10.0.0.1:4096>10.0.0.2:80/6", "[2001:db8::1]:1>[2001:db8::2]:2/17" */
#define FLOW_TEXT_MAX (2 * (PL_ADDR_TEXT_MAX + 8) + 8)

static void flow_text(char dst[FLOW_TEXT_MAX], const struct pl_exemplar *x)
{
	const struct pl_addr *addrs[] = { &x->src, &x->dst };
	const uint16_t ports[] = { x->sport, x->dport };
	size_t n = 0;

	for (unsigned int i = 0; i < 2; i++) {
		char addr[PL_ADDR_TEXT_MAX];
		bool v6;

		pl_format_addr(addr, addrs[i]);
		v6 = strchr(addr, ':') != NULL;
		if ((x->has & PL_EXEMPLAR_PORTS) == 0)
			n += (size_t)snprintf(
				dst + n, FLOW_TEXT_MAX - n, "%s%s", i == 0 ? "" : ">", addr);
		else
			n += (size_t)snprintf(dst + n, FLOW_TEXT_MAX - n, "%s%s%s%s:%u",
				i == 0 ? "" : ">", v6 ? "[" : "", addr, v6 ? "]" : "", ports[i]);
	}
	snprintf(dst + n, FLOW_TEXT_MAX - n, "/%u", x->proto);
}

static void write_hist(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	const struct pl_hist *hist, const struct pl_exposition_bounds *bounds,
	const struct pl_exemplar *x)
{
	char flow[FLOW_TEXT_MAX];
	struct pl_label l[2] = { TEXT("flow", flow) };
	struct pl_exposition_exemplar e = { .labels = l, .n = 1 };

	if (x == NULL || page->format == PL_EXPOSITION_TEXT) {
		pl_exposition_hist(page, labels, n, hist, bounds, NULL);
		return;
	}
	flow_text(flow, x);
	if ((x->has & PL_EXEMPLAR_PATH) != 0)
		l[e.n++] = (struct pl_label)HEX("path_id", x->path_id);
	e.value = x->value;
	e.ts_ns = x->ts_ns;
	pl_exposition_hist(page, labels, n, hist, bounds, &e);
}

/* Numbers as label texts: empty where the key has none, "other" in the overflow series. */
struct port_labels {
	char node[24], port[16], queue[16];
	struct pl_label l[3];
};

static void port_labels(struct port_labels *t, const struct pl_queue_key *key, bool other)
{
	snprintf(t->node, sizeof(t->node), other ? "other" : "%llu", (unsigned long long)key->node);
	t->port[0] = t->queue[0] = '\0';
	if (other || (key->has & PL_KEY_HAS_PORT) != 0)
		snprintf(t->port, sizeof(t->port), other ? "other" : "%u", key->port);
	if (other || (key->has & PL_KEY_HAS_QUEUE) != 0)
		snprintf(t->queue, sizeof(t->queue), other ? "other" : "%u", key->queue);
	t->l[0] = (struct pl_label)TEXT("node", t->node);
	t->l[1] = (struct pl_label)TEXT("port", t->port);
	t->l[2] = (struct pl_label)TEXT("queue", t->queue);
}

enum queue_family {
	QUEUE_PACKETS,
	QUEUE_DEPTH,
	QUEUE_DEPTH_MAX,
	QUEUE_BYTES,
	QUEUE_BYTES_MAX,
	QUEUE_OCCUPANCY,
	QUEUE_LATENCY,
	QUEUE_JITTER,
	QUEUE_FAMILIES
};

static void write_queue(const struct network *net, const struct pl_agg_queue *q, bool other,
	enum queue_family family, struct pl_exposition *page)
{
	const uint64_t unit = other ? 0 : pl_units_queue(&net->units, q->key.node);
	struct port_labels t;
	double jitter_ns;
	uint32_t max;

	port_labels(&t, &q->key, other);
	if (family == QUEUE_PACKETS)
		pl_exposition_u64(page, t.l, 3, q->packets);
	else if (family == QUEUE_DEPTH && q->has_depth)
		pl_exposition_u64(page, t.l, 3, q->last_depth);
	else if (family == QUEUE_DEPTH_MAX && pl_aggregate_max(net->a, &q->depth_max, &max))
		pl_exposition_u64(page, t.l, 3, max);
	else if (family == QUEUE_BYTES && q->has_depth && unit != 0)
		pl_exposition_u64(page, t.l, 3, q->last_depth * unit);
	else if (family == QUEUE_BYTES_MAX && unit != 0 &&
		 pl_aggregate_max(net->a, &q->depth_max, &max))
		pl_exposition_u64(page, t.l, 3, max * unit);
	else if (family == QUEUE_OCCUPANCY)
		write_hist(page, t.l, 3, &q->depth, &net->depth,
			pl_exemplar_show(
				&q->depth_gate, &q->depth_exemplars, pl_aggregate_slot(net->a)));
	else if (family == QUEUE_LATENCY)
		write_hist(page, t.l, 3, &q->latency, &net->latency,
			pl_exemplar_show(&q->latency_gate, &q->latency_exemplars,
				pl_aggregate_slot(net->a)));
	else if (family == QUEUE_JITTER && !other &&
		 pl_agg_jitter(&q->jitter, &q->latency, &jitter_ns))
		pl_exposition_double(page, t.l, 3, jitter_ns * 1e-9);
}

static void write_queues(const struct network *net, struct pl_exposition *page)
{
	const struct pl_aggregate *a = net->a;
	static const struct {
		const char *name, *unit, *help;
		enum pl_metric_type type;
	} rows[QUEUE_FAMILIES] = {
		{ "pathline_queue_packets", NULL,
			"Packets reported through a queue. At most aggregate.max_queues series, and other.",
			PL_METRIC_COUNTER },
		{ "pathline_queue_depth", NULL,
			"Last reported occupancy, in the node's unit (bytes, cells or packets).",
			PL_METRIC_GAUGE },
		{ "pathline_queue_depth_max", NULL,
			"Largest occupancy of this and the last slot of aggregate.slot, in the node's unit.",
			PL_METRIC_GAUGE },
		{ "pathline_queue_depth_bytes", "bytes",
			"Last reported occupancy, of nodes whose unit is configured (units).",
			PL_METRIC_GAUGE },
		{ "pathline_queue_depth_max_bytes", "bytes",
			"Largest occupancy of this and the last slot of aggregate.slot, of nodes whose unit is configured.",
			PL_METRIC_GAUGE },
		{ "pathline_queue_occupancy", NULL,
			"Occupancies reported, in the node's unit; the sum divided by the count is their mean.",
			PL_METRIC_HISTOGRAM },
		{ "pathline_hop_latency_seconds", "seconds",
			"Time within the node of packets through a queue.", PL_METRIC_HISTOGRAM },
		{ "pathline_hop_jitter_seconds", "seconds",
			"Jitter of the hop latency (RFC 3550, 6.4.1).", PL_METRIC_GAUGE },
	};
	const struct pl_agg_queue *q, *over = pl_aggregate_queue_overflow(a);

	for (unsigned int k = 0; k < QUEUE_FAMILIES; k++) {
		uint32_t pos = 0;

		pl_exposition_family(page, rows[k].name, rows[k].type, rows[k].unit, rows[k].help);
		while ((q = pl_aggregate_queue(a, &pos)) != NULL)
			write_queue(net, q, false, k, page);
		if (over->seen_ns != 0)
			write_queue(net, over, true, k, page);
	}
}

static void write_ports(const struct network *net, struct pl_exposition *page)
{
	const struct pl_aggregate *a = net->a;
	const struct pl_agg_port *x, *over = pl_aggregate_port_overflow(a);
	struct port_labels t;
	uint32_t pos = 0, max;

	counter(page, "pathline_port_packets", NULL,
		"Packets reported out of a port. At most aggregate.max_ports series, and other.");
	while ((x = pl_aggregate_port(a, &pos)) != NULL) {
		port_labels(&t, &x->key, false);
		pl_exposition_u64(page, t.l, 2, x->packets);
	}
	if (over->seen_ns != 0) {
		port_labels(&t, &over->key, true);
		pl_exposition_u64(page, t.l, 2, over->packets);
	}
	gauge(page, "pathline_port_utilization", NULL,
		"Last reported utilization of an egress port, in the exporter's unit.");
	for (pos = 0; (x = pl_aggregate_port(a, &pos)) != NULL;) {
		port_labels(&t, &x->key, false);
		if (x->has_util)
			pl_exposition_u64(page, t.l, 2, x->last_util);
	}
	gauge(page, "pathline_port_utilization_max", NULL,
		"Largest utilization of this and the last slot of aggregate.slot, in the exporter's unit.");
	for (pos = 0; (x = pl_aggregate_port(a, &pos)) != NULL;) {
		port_labels(&t, &x->key, false);
		if (pl_aggregate_max(a, &x->util_max, &max))
			pl_exposition_u64(page, t.l, 2, max);
	}
}

struct link_labels {
	char text[4][24];
	struct pl_label l[5];
};

static void link_labels(struct link_labels *t, const struct pl_link_key *key, bool other)
{
	static const char *const names[] = { "node", "port", "peer", "peer_port" };

	memset(t->text, 0, sizeof(t->text));
	snprintf(t->text[0], sizeof(t->text[0]), other ? "other" : "%llu",
		(unsigned long long)key->a);
	if (other || (key->has & PL_KEY_HAS_PORT) != 0)
		snprintf(t->text[1], sizeof(t->text[1]), other ? "other" : "%u", key->a_port);
	snprintf(t->text[2], sizeof(t->text[2]), other ? "other" : "%llu",
		(unsigned long long)key->b);
	if (other || (key->has & PL_KEY_HAS_INGRESS) != 0)
		snprintf(t->text[3], sizeof(t->text[3]), other ? "other" : "%u", key->b_port);
	for (unsigned int i = 0; i < 4; i++)
		t->l[i] = (struct pl_label)TEXT(names[i], t->text[i]);
}

static void write_link(const struct network *net, const struct pl_agg_link *x, bool other,
	unsigned int family, struct pl_exposition *page)
{
	struct link_labels t;
	double jitter_ns;

	link_labels(&t, &x->key, other);
	if (family == 0)
		pl_exposition_u64(page, t.l, 4, x->reports);
	if (family == 1) {
		for (unsigned int c = 0; c < PL_CLOCK_MAX; c++) {
			t.l[4] = (struct pl_label)TEXT("clock", pl_clock_quality_name(c));
			pl_exposition_u64(page, t.l, 5, x->clock[c]);
		}
	}
	if (family == 2)
		write_hist(page, t.l, 4, &x->latency, &net->latency,
			pl_exemplar_show(&x->latency_gate, &x->latency_exemplars,
				pl_aggregate_slot(net->a)));
	if (family == 3 && !other && pl_agg_jitter(&x->jitter, &x->latency, &jitter_ns))
		pl_exposition_double(page, t.l, 4, jitter_ns * 1e-9);
}

static void write_links(const struct network *net, struct pl_exposition *page)
{
	const struct pl_aggregate *a = net->a;
	static const struct {
		const char *name, *unit, *help;
		enum pl_metric_type type;
	} rows[] = {
		{ "pathline_link_packets", NULL,
			"Packets reported over a link. At most aggregate.max_links series, and other.",
			PL_METRIC_COUNTER },
		{ "pathline_link_clock_readings", NULL,
			"Link latencies read, by quality of the clocks of the two nodes; only ok ones are in pathline_link_latency_seconds.",
			PL_METRIC_COUNTER },
		{ "pathline_link_latency_seconds", "seconds",
			"Time from a node's egress to the next one's ingress, by the two nodes' clocks.",
			PL_METRIC_HISTOGRAM },
		{ "pathline_link_jitter_seconds", "seconds",
			"Jitter of the link latency (RFC 3550, 6.4.1).", PL_METRIC_GAUGE },
	};
	const struct pl_agg_link *x, *over = pl_aggregate_link_overflow(a);

	for (unsigned int k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		uint32_t pos = 0;

		pl_exposition_family(page, rows[k].name, rows[k].type, rows[k].unit, rows[k].help);
		while ((x = pl_aggregate_link(a, &pos)) != NULL)
			write_link(net, x, false, k, page);
		if (over->seen_ns != 0)
			write_link(net, over, true, k, page);
	}
}

void pl_metrics_path_text(const struct pl_agg_path *x, char *dst, size_t cap)
{
	size_t n = 0;

	dst[0] = '\0';
	for (unsigned int i = 0; i < x->hop_count && i < PL_PATH_STEPS_MAX && n < cap; i++)
		n += (size_t)snprintf(dst + n, cap - n, i == 0 ? "%llu" : ">%llu",
			(unsigned long long)x->steps[i].node);
	if (x->hop_count > PL_PATH_STEPS_MAX && n < cap)
		snprintf(dst + n, cap - n, ">…");
}

static void write_path(const struct network *net, const struct pl_agg_path *x, bool other,
	unsigned int family, struct pl_exposition *page)
{
	char nodes[PL_PATH_STEPS_MAX * 21 + 8];
	struct pl_label l[2] = { HEX("path_id", x->key.path_id), TEXT("nodes", nodes) };

	if (other)
		l[0] = (struct pl_label)TEXT("path_id", "other");
	if (family == 0)
		pl_exposition_u64(page, l, 1, x->reports);
	if (family == 1 && !other) {
		pl_metrics_path_text(x, nodes, sizeof(nodes));
		pl_exposition_u64(page, l, 2, x->hop_count);
	}
	if (family == 2)
		write_hist(page, l, 1, &x->latency, &net->latency,
			pl_exemplar_show(&x->latency_gate, &x->latency_exemplars,
				pl_aggregate_slot(net->a)));
}

static void write_paths(const struct network *net, struct pl_exposition *page)
{
	const struct pl_aggregate *a = net->a;
	static const struct {
		const char *name, *unit, *help;
		enum pl_metric_type type;
	} rows[] = {
		{ "pathline_path_packets", NULL,
			"Packets reported over a path. At most aggregate.max_paths series, and other.",
			PL_METRIC_COUNTER },
		{ "pathline_path_hops", NULL, "Hops of a path, with its nodes in order.",
			PL_METRIC_GAUGE },
		{ "pathline_path_latency_seconds", "seconds",
			"Sum of a packet's hop latencies, where every hop gave one.",
			PL_METRIC_HISTOGRAM },
	};
	const struct pl_agg_path *x, *over = pl_aggregate_path_overflow(a);

	for (unsigned int k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		uint32_t pos = 0;

		pl_exposition_family(page, rows[k].name, rows[k].type, rows[k].unit, rows[k].help);
		while ((x = pl_aggregate_path(a, &pos)) != NULL)
			write_path(net, x, false, k, page);
		if (over->seen_ns != 0)
			write_path(net, over, true, k, page);
	}
}

void pl_metrics_network(const struct pl_aggregate *merged, const struct pl_config *config,
	struct pl_exposition *page)
{
	struct network net = { .a = merged };

	network_bounds(&net, config);
	/* It was checked when the file was read. */
	(void)pl_config_units(config, &net.units, NULL);
	write_queues(&net, page);
	write_ports(&net, page);
	write_links(&net, page);
	write_paths(&net, page);
}

/* Samples of one histogram: its buckets, +Inf, sum and count. */
static uint64_t hist_series(const struct pl_exposition_bounds *b)
{
	return (uint64_t)(b->last - b->first) / b->step + 1 + 3;
}

uint64_t pl_metrics_network_series(const struct pl_config *config)
{
	struct network net;
	uint64_t latency, depth;

	network_bounds(&net, config);
	latency = hist_series(&net.latency);
	depth = hist_series(&net.depth);
	return (QUEUE_FAMILIES - 2 + latency + depth) * (config->aggregate.max_queues + 1) +
	       3 * (config->aggregate.max_ports + 1) +
	       (1 + PL_CLOCK_MAX + latency) * (config->aggregate.max_links + 1) +
	       (2 + latency) * (config->aggregate.max_paths + 1);
}
