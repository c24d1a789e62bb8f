/* SPDX-License-Identifier: BSD-2-Clause */
/* The sums and histograms that the steps keep beside their state, as the cells that pages and exporters read. */
#include "detect/aggregate.h"
#include "detect/tables.h"

static uint16_t key_has(uint16_t has)
{
	return (uint16_t)((has & PL_CORE_HAS_PORT ? PL_KEY_HAS_PORT : 0) |
			  (has & PL_CORE_HAS_QUEUE ? PL_KEY_HAS_QUEUE : 0));
}

static struct pl_queue_key queue_key(const struct pl_core_place_key *k)
{
	return (struct pl_queue_key){
		.node = k->node, .port = k->port, .queue = k->queue, .has = key_has(k->has)
	};
}

static void hist_of(struct pl_hist *h, const struct pl_core_hist *from, uint64_t sum)
{
	pl_hist_add_log2(h, from->count, PL_CORE_HIST, sum);
}

static void place(struct pl_aggregate *into, const struct pl_core_place *p)
{
	struct pl_agg_queue cell = { .key = queue_key(&p->key), .packets = p->packets };

	if (p->q[1].n > 0) {
		cell.has_depth = true;
		cell.last_depth = p->q[1].last;
	}
	hist_of(&cell.latency, &p->hist[0], p->q[0].sum);
	hist_of(&cell.depth, &p->hist[1], p->q[1].sum);
	pl_aggregate_add(into, PL_AGG_QUEUES, &cell);
}

static void gauge(struct pl_aggregate *into, const struct pl_core_gauge *g)
{
	struct pl_agg_port cell = {
		.key = queue_key(&g->key),
		.packets = g->packets,
		.has_util = g->q.n > 0,
		.last_util = g->q.last,
	};

	/* Buffers have no series of their own. */
	if (!(g->key.has & PL_CORE_HAS_BUFFER))
		pl_aggregate_add(into, PL_AGG_PORTS, &cell);
}

static void link(struct pl_aggregate *into, const struct pl_core_link *l)
{
	struct pl_agg_link cell = {
		.key = {
			.a = l->key.peer,
			.b = l->key.node,
			.a_port = l->key.peer_port,
			.b_port = l->key.ingress_port,
			.has = (l->key.has & PL_CORE_HAS_BEFORE ? PL_KEY_HAS_PORT : 0) |
			       (l->key.has & PL_CORE_HAS_PORT ? PL_KEY_HAS_INGRESS : 0),
		},
		.reports = l->packets,
	};

	for (unsigned int i = 0; i < PL_CLOCK_MAX; i++)
		cell.clock[i] = l->clock[i];
	hist_of(&cell.latency, &l->hist, l->q.sum);
	pl_aggregate_add(into, PL_AGG_LINKS, &cell);
}

static void route(struct pl_aggregate *into, const struct pl_core_route *r)
{
	struct pl_agg_path cell = {
		.key = { .path_id = r->path_id },
		.reports = r->packets,
		.hop_count = (uint8_t)r->hop_count,
	};

	hist_of(&cell.latency, &r->hist, r->latency_sum);
	pl_aggregate_add(into, PL_AGG_PATHS, &cell);
}

#define EACH(t, name, step)                                                                        \
	do {                                                                                       \
		for (uint32_t i = 0; i < (t)->sets[PL_CORE_T_##name] * PL_CORE_WAYS; i++) {        \
			const struct pl_core_##name##_set *s = &(t)->name[i / PL_CORE_WAYS];       \
			if (pl_way_live(s->way[i % PL_CORE_WAYS]))                                 \
				step(into, &s->e[i % PL_CORE_WAYS]);                               \
		}                                                                                  \
	} while (0)

void pl_detect_harvest(const struct pl_detect *det, struct pl_aggregate *into)
{
	const struct pl_tables *t = pl_detect_tables(det);

	EACH(t, place, place);
	EACH(t, gauge, gauge);
	EACH(t, link, link);
	EACH(t, route, route);
}
