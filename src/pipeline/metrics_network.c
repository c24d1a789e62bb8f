/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes queues, ports, links and paths on the metrics page, from the merged aggregates. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "detect/cells.h"
#include "pipeline/metrics.h"
#include "pipeline/metrics_page.h"

/* Input of a page: the merged state, and the resolution of its histograms. */
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
	/* The kernel counts by powers of two: a finer resolution means nothing. */
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

/* Labels of a cell: empty when its key lacks a part, "other" for the overflow cell. One more place
 * is for a column or an exemplar. */
struct labels {
	char text[PL_CELL_KEYS_MAX][24];
	struct pl_label l[PL_CELL_KEYS_MAX + 1];
	unsigned int n;
};

static void make_labels(
	struct labels *t, const struct pl_cell_table *table, const struct pl_cell *c, bool other)
{
	t->n = 0;
	for (unsigned int i = 0; i < table->n; i++) {
		char *text = t->text[t->n];

		if (table->columns[i].kind != PL_COLUMN_KEY)
			continue;
		text[0] = '\0';
		if (other)
			snprintf(text, sizeof(t->text[0]), "other");
		else if ((c->present & UINT32_C(1) << i) != 0)
			snprintf(text, sizeof(t->text[0]),
				table->fields[i].form == PL_FORM_HEX64 ? "%016llx" : "%llu",
				(unsigned long long)c->value[i]);
		t->l[t->n++] = (struct pl_label)TEXT(table->fields[i].name, text);
	}
}

/* A family of a table: column i, a histogram, or the jitter. */
enum family { FAMILY_DEPTHS = PL_CELL_COLUMNS_MAX, FAMILY_DELAYS, FAMILY_JITTER, FAMILIES };

static void write_number(struct pl_exposition *page, struct labels *t,
	const struct pl_column *column, const struct pl_cell *c, unsigned int i, const void *cell)
{
	char nodes[sizeof(c->nodes)];

	if ((c->present & UINT32_C(1) << i) == 0)
		return;
	if (column->label != NULL && column->text == NULL)
		pl_cell_path_nodes(cell, nodes, sizeof(nodes));
	if (column->label != NULL)
		t->l[t->n++] = (struct pl_label)TEXT(
			column->label, column->text != NULL ? column->text : nodes);
	pl_exposition_u64(page, t->l, t->n, c->value[i]);
}

static void write_cell(const struct network *net, enum pl_agg_table table, const void *cell,
	bool other, unsigned int family, struct pl_exposition *page)
{
	const uint64_t slot = pl_aggregate_slot(net->a);
	struct pl_cell c;
	struct labels t;
	double ns;

	pl_cell_read(&c, net->a, table, cell, other, &net->units);
	make_labels(&t, &pl_cell_tables[table], &c, other);
	if (family == FAMILY_DEPTHS)
		write_hist(page, t.l, t.n, c.depths, &net->depth,
			pl_exemplar_show(c.depths_gate, c.depths_exemplars, slot));
	else if (family == FAMILY_DELAYS)
		write_hist(page, t.l, t.n, c.delays, &net->latency,
			pl_exemplar_show(c.delays_gate, c.delays_exemplars, slot));
	else if (family != FAMILY_JITTER)
		write_number(page, &t, &pl_cell_tables[table].columns[family], &c, family, cell);
	else if (c.jitter != NULL && pl_agg_jitter(c.jitter, c.delays, &ns))
		pl_exposition_double(page, t.l, t.n, ns * 1e-9);
}

/* Writes a column's family; its help becomes a sentence. */
static void column_family(
	struct pl_exposition *page, const struct pl_column *column, const struct pl_field *field)
{
	char help[256];

	snprintf(help, sizeof(help), "%s.", field->help);
	help[0] = (char)toupper((unsigned char)help[0]);
	pl_exposition_family(page, column->family,
		column->kind == PL_COLUMN_COUNTER ? PL_METRIC_COUNTER : PL_METRIC_GAUGE,
		field->unit[0] != '\0' ? field->unit : NULL, help);
}

/* Begins a family. Returns false when the table has no such family. */
static bool begin_family(
	const struct pl_cell_table *t, unsigned int family, struct pl_exposition *page)
{
	if (family == FAMILY_DEPTHS && t->depths != NULL)
		pl_exposition_family(page, t->depths, PL_METRIC_HISTOGRAM, NULL, t->depths_help);
	else if (family == FAMILY_DELAYS && t->delays != NULL)
		pl_exposition_family(
			page, t->delays, PL_METRIC_HISTOGRAM, "seconds", t->delays_help);
	else if (family == FAMILY_JITTER && t->jitter != NULL)
		pl_exposition_family(page, t->jitter, PL_METRIC_GAUGE, "seconds", t->jitter_help);
	else if (family >= t->n || t->columns[family].family == NULL)
		return false;
	else if (family == 0 || t->columns[family - 1].family == NULL ||
		 strcmp(t->columns[family - 1].family, t->columns[family].family) != 0)
		column_family(page, &t->columns[family], &t->fields[family]);
	return true;
}

static void write_table(
	const struct network *net, enum pl_agg_table table, struct pl_exposition *page)
{
	const void *cell, *over = pl_cell_overflow(net->a, table);

	for (unsigned int k = 0; k < FAMILIES; k++) {
		uint32_t pos = 0;

		if (!begin_family(&pl_cell_tables[table], k, page))
			continue;
		while ((cell = pl_cell_next(net->a, table, &pos)) != NULL)
			write_cell(net, table, cell, false, k, page);
		if (over != NULL)
			write_cell(net, table, over, true, k, page);
	}
}

void pl_metrics_network(const struct pl_aggregate *merged, const struct pl_config *config,
	struct pl_exposition *page)
{
	struct network net = { .a = merged };

	network_bounds(&net, config);
	/* Checked when the file was read. */
	(void)pl_config_units(config, &net.units, NULL);
	for (unsigned int table = 0; table < PL_AGG_TABLE_MAX; table++)
		write_table(&net, table, page);
}

/* Number of samples of a histogram: its buckets, +Inf, sum and count. */
static uint64_t hist_series(const struct pl_exposition_bounds *b)
{
	return (uint64_t)(b->last - b->first) / b->step + 1 + 3;
}

/* Number of samples of a cell. */
static uint64_t cell_series(const struct pl_cell_table *t, const struct network *net)
{
	uint64_t n = t->jitter != NULL;

	for (unsigned int i = 0; i < t->n; i++)
		n += t->columns[i].family != NULL;
	n += t->delays != NULL ? hist_series(&net->latency) : 0;
	return n + (t->depths != NULL ? hist_series(&net->depth) : 0);
}

uint64_t pl_metrics_network_series(const struct pl_config *config)
{
	const uint64_t cells[PL_AGG_TABLE_MAX] = {
		[PL_AGG_QUEUES] = config->aggregate.max_queues,
		[PL_AGG_PORTS] = config->aggregate.max_ports,
		[PL_AGG_LINKS] = config->aggregate.max_links,
		[PL_AGG_PATHS] = config->aggregate.max_paths,
	};
	struct network net;
	uint64_t n = 0;

	network_bounds(&net, config);
	for (unsigned int i = 0; i < PL_AGG_TABLE_MAX; i++)
		n += cell_series(&pl_cell_tables[i], &net) * (cells[i] + 1);
	return n;
}
