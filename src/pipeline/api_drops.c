/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the rows of the API's table of drops: packets lost, by place and cause. */
#include "pipeline/api_tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "pipeline/metrics.h"

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

struct drop_row {
	uint32_t present, zero;
	uint64_t count;
	char place[16], name[96], cause[32];
};

static const struct pl_field drop_fields[] = {
	PL_API_COLUMN(drop_row, place, TEXT, 0, "",
		"network, socket, sender, decode, detect, output, series"),
	PL_API_COLUMN(drop_row, name, TEXT, 0, "", "name of the place"),
	PL_API_COLUMN(drop_row, cause, TEXT, 0, "", "why"),
	PL_API_COLUMN(drop_row, count, U64, 0, "", "number of drops since the start"),
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

/* Adds drops by sender; "others" are senders that shared a lane or are forgotten. */
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
		add_drop(&d, "series", pl_agg_table_name(t), "limited", pl_api_overflow(walk, t));
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

const struct pl_api_table pl_api_table_drops = {
	.name = "drops",
	.help = "drops by place and cause",
	.fields = drop_fields,
	.n_fields = PL_API_COUNT(drop_fields),
	.row_size = sizeof(struct drop_row),
	.sort = "-count",
	.begin = begin_drops,
	.next = next_drop,
};
