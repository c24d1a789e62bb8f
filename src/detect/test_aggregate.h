/* SPDX-License-Identifier: BSD-2-Clause */
/* A slow, plain model of the aggregates, and comparison with it; for aggregate_test.c. */
#pragma once

#include "detect/aggregate.h"
#include "detect/batch_maker.h"

#define SECOND    ((uint64_t)1000000000)

/* --- a slow, plain model ---------------------------------------------------------------------- */

#define MODEL_MAX 4096

struct model {
	uint32_t limit[PL_AGG_TABLE_MAX];
	uint64_t now_ns, idle_ns, slot;
	uint64_t slot_ns;
	struct pl_agg_queue queues[MODEL_MAX];
	struct pl_agg_port ports[MODEL_MAX];
	struct pl_agg_link links[MODEL_MAX];
	struct pl_agg_path paths[MODEL_MAX];
	uint32_t n[PL_AGG_TABLE_MAX];
	/* all readings of the last two slots, by cell: kept as (slot, value) pairs would be; the
	 * model keeps the two maxima apart from the code under test's structure */
	struct {
		uint64_t slot[2];
		uint32_t value[2];
		bool has[2];
	} depth[MODEL_MAX], util[MODEL_MAX];
	struct pl_agg_totals totals;
	struct pl_agg_queue queue_over;
	struct pl_agg_port port_over;
	struct pl_agg_link link_over;
	struct pl_agg_path path_over;
};

static struct model model;

static struct pl_agg_queue *model_queue(struct pl_queue_key k, uint32_t *ret_i)
{
	uint32_t n = model.n[PL_AGG_QUEUES];

	for (uint32_t i = 0; i < n; i++) {
		*ret_i = i;
		if (memcmp(&model.queues[i].key, &k, sizeof(k)) == 0)
			return &model.queues[i];
	}
	if (n == model.limit[PL_AGG_QUEUES]) {
		model.totals.overflow[PL_AGG_QUEUES]++;
		*ret_i = MODEL_MAX - 1;
		return &model.queue_over;
	}
	*ret_i = n;
	memset(&model.depth[n], 0, sizeof(model.depth[n]));
	model.queues[n] = (struct pl_agg_queue){ .key = k };
	return &model.queues[model.n[PL_AGG_QUEUES]++];
}

static struct pl_agg_port *model_port(struct pl_queue_key k, uint32_t *ret_i)
{
	uint32_t n = model.n[PL_AGG_PORTS];

	for (uint32_t i = 0; i < n; i++) {
		*ret_i = i;
		if (memcmp(&model.ports[i].key, &k, sizeof(k)) == 0)
			return &model.ports[i];
	}
	if (n == model.limit[PL_AGG_PORTS]) {
		model.totals.overflow[PL_AGG_PORTS]++;
		*ret_i = MODEL_MAX - 1;
		return &model.port_over;
	}
	*ret_i = n;
	memset(&model.util[n], 0, sizeof(model.util[n]));
	model.ports[n] = (struct pl_agg_port){ .key = k };
	return &model.ports[model.n[PL_AGG_PORTS]++];
}

static struct pl_agg_link *model_link(struct pl_link_key k)
{
	uint32_t n = model.n[PL_AGG_LINKS];

	for (uint32_t i = 0; i < n; i++) {
		if (memcmp(&model.links[i].key, &k, sizeof(k)) == 0)
			return &model.links[i];
	}
	if (n == model.limit[PL_AGG_LINKS]) {
		model.totals.overflow[PL_AGG_LINKS]++;
		return &model.link_over;
	}
	model.links[n] = (struct pl_agg_link){ .key = k };
	return &model.links[model.n[PL_AGG_LINKS]++];
}

static struct pl_agg_path *model_path(uint64_t path_id)
{
	uint32_t n = model.n[PL_AGG_PATHS];

	for (uint32_t i = 0; i < n; i++) {
		if (model.paths[i].key.path_id == path_id)
			return &model.paths[i];
	}
	if (n == model.limit[PL_AGG_PATHS]) {
		model.totals.overflow[PL_AGG_PATHS]++;
		return &model.path_over;
	}
	model.paths[n] = (struct pl_agg_path){ .key.path_id = path_id };
	return &model.paths[model.n[PL_AGG_PATHS]++];
}

#define MODEL_MAXIMUM(m, i, v)                                                                     \
	do {                                                                                       \
		unsigned int at = model.slot % 2;                                                  \
		if ((m)[i].slot[at] != model.slot || !(m)[i].has[at] || (m)[i].value[at] < (v))    \
			(m)[i].value[at] = (v);                                                    \
		(m)[i].slot[at] = model.slot;                                                      \
		(m)[i].has[at] = true;                                                             \
	} while (0)

/* RFC 3550 A.8, as it stands there. */
static void model_jitter(struct pl_agg_jitter *j, uint64_t delay, uint64_t ts_ns)
{
	if (j->at.last != 0) {
		int64_t d = (int64_t)delay - (int64_t)(j->at.last - 1);

		if (d < 0)
			d = -d;
		j->at.sixteenths += (uint64_t)d - (j->at.sixteenths + 8) / 16;
	}
	j->at.last = delay + 1;
	j->ts_ns = ts_ns;
}

static void model_hop(const struct pl_path *p, const struct pl_hop *prev, const struct pl_hop *h)
{
	bool copy = p->flags & PL_FLAG_COPY;
	bool has_port = h->present & PL_HOP_HAS_egress_port;
	uint32_t i;

	model.totals.hops++;
	if (!(h->present & PL_HOP_HAS_node)) {
		model.totals.hops_without_node++;
		return;
	}
	struct pl_queue_key qk = { h->node, has_port ? h->egress_port : 0,
		h->present & PL_HOP_HAS_queue ? h->queue : 0,
		(has_port ? PL_KEY_HAS_PORT : 0) |
			(h->present & PL_HOP_HAS_queue ? PL_KEY_HAS_QUEUE : 0) };
	struct pl_agg_queue *q = model_queue(qk, &i);
	q->seen_ns = model.now_ns;
	if (!copy)
		q->packets++;
	if (h->present & PL_HOP_HAS_queue_depth) {
		q->last_depth = h->queue_depth;
		q->last_ts_ns = p->ts_ns;
		q->has_depth = true;
		MODEL_MAXIMUM(model.depth, i, h->queue_depth);
		if (!copy)
			pl_hist_add(&q->depth, h->queue_depth);
	}
	if (!copy && (h->present & PL_HOP_HAS_hop_latency_ns)) {
		pl_hist_add(&q->latency, h->hop_latency_ns);
		model_jitter(&q->jitter, h->hop_latency_ns, p->ts_ns);
	}

	if (has_port || (h->present & PL_HOP_HAS_tx_util)) {
		struct pl_queue_key tk = { h->node, has_port ? h->egress_port : 0, 0,
			has_port ? PL_KEY_HAS_PORT : 0 };
		struct pl_agg_port *t = model_port(tk, &i);

		t->seen_ns = model.now_ns;
		if (!copy)
			t->packets++;
		if (h->present & PL_HOP_HAS_tx_util) {
			t->last_util = h->tx_util;
			t->last_ts_ns = p->ts_ns;
			t->has_util = true;
			MODEL_MAXIMUM(model.util, i, h->tx_util);
		}
	}
	if (prev != NULL && (prev->present & PL_HOP_HAS_node) &&
		(!(p->flags & PL_FLAG_PARTIAL) || (h->present & PL_HOP_HAS_clock))) {
		bool out = prev->present & PL_HOP_HAS_egress_port;
		bool in = h->present & PL_HOP_HAS_ingress_port;
		struct pl_link_key lk = { prev->node, h->node, out ? prev->egress_port : 0,
			in ? h->ingress_port : 0,
			(out ? PL_KEY_HAS_PORT : 0) | (in ? PL_KEY_HAS_INGRESS : 0) };
		struct pl_agg_link *l = model_link(lk);

		l->seen_ns = model.now_ns;
		if (!copy) {
			l->reports++;
			if (h->present & PL_HOP_HAS_clock)
				l->clock[h->clock]++;
			if (h->present & PL_HOP_HAS_link_latency_ns) {
				pl_hist_add(&l->latency, (uint64_t)h->link_latency_ns);
				model_jitter(&l->jitter, (uint64_t)h->link_latency_ns, p->ts_ns);
			}
		}
	}
}

static void model_batch(const struct pl_record_batch *b)
{
	for (uint32_t i = 0; i < b->n_paths; i++) {
		const struct pl_path *p = &b->paths[i];
		const struct pl_hop *hops = b->hops + b->first_hop[i];

		model.totals.reports++;
		model.totals.copies += (p->flags & PL_FLAG_COPY) != 0;
		if (!(p->present & PL_PATH_HAS_path_id) ||
			(p->flags & (PL_FLAG_PARTIAL | PL_FLAG_COPY | PL_FLAG_DROPPED |
					    PL_FLAG_INTERMEDIATE))) {
			model.totals.reports_without_path++;
		} else {
			struct pl_agg_path *c = model_path(p->path_id);

			if (c->reports == 0 && c != &model.path_over) {
				c->hop_count = p->hop_count;
				for (unsigned int h = 0; h < p->hop_count && h < 16; h++)
					c->steps[h] = (struct pl_path_step){ hops[h].node,
						hops[h].ingress_port, hops[h].egress_port };
			}
			c->reports++;
			c->seen_ns = model.now_ns;
			c->last_ts_ns = p->ts_ns;
			if (p->present & PL_PATH_HAS_latency_ns)
				pl_hist_add(&c->latency, p->latency_ns);
		}
		for (unsigned int h = 0; h < p->hop_count; h++)
			model_hop(p, h > 0 ? &hops[h - 1] : NULL, &hops[h]);
	}
}

#define MODEL_AGE(table, cells, moved)                                                             \
	for (uint32_t i = 0; i < model.n[table];) {                                                \
		if (model.now_ns - (cells)[i].seen_ns <= model.idle_ns) {                          \
			i++;                                                                       \
			continue;                                                                  \
		}                                                                                  \
		model.totals.aged[table]++;                                                        \
		model.n[table]--;                                                                  \
		(cells)[i] = (cells)[model.n[table]];                                              \
		moved;                                                                             \
	}

static void model_tick(uint64_t now_ns)
{
	model.now_ns = now_ns;
	model.slot = now_ns / model.slot_ns;
	MODEL_AGE(PL_AGG_QUEUES, model.queues, model.depth[i] = model.depth[model.n[PL_AGG_QUEUES]])
	MODEL_AGE(PL_AGG_PORTS, model.ports, model.util[i] = model.util[model.n[PL_AGG_PORTS]])
	MODEL_AGE(PL_AGG_LINKS, model.links, (void)0)
	MODEL_AGE(PL_AGG_PATHS, model.paths, (void)0)
}

/* --- comparison ------------------------------------------------------------------------------- */

static bool same_hist(const struct pl_hist *a, const struct pl_hist *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

#define MODEL_SAME_MAX(agg, max, m, i, good)                                                       \
	do {                                                                                       \
		uint32_t got = 0, want = 0;                                                        \
		bool has = false;                                                                  \
		for (unsigned int s = 0; s < 2; s++) {                                             \
			if (!(m)[i].has[s] || (m)[i].slot[s] + 1 < model.slot)                     \
				continue;                                                          \
			if (!has || (m)[i].value[s] > want)                                        \
				want = (m)[i].value[s];                                            \
			has = true;                                                                \
		}                                                                                  \
		good &= pl_aggregate_max(agg, max, &got) == has && got == want;                    \
	} while (0)

static bool same_queues(const struct pl_aggregate *agg)
{
	const struct pl_agg_queue *c;
	uint32_t pos = 0, n = 0, i = 0;
	bool good = true;

	while ((c = pl_aggregate_queue(agg, &pos)) != NULL) {
		const struct pl_agg_queue *m = model_queue(c->key, &i);

		good &= i < model.n[PL_AGG_QUEUES] && m != &model.queue_over;
		good &= c->seen_ns == m->seen_ns && c->packets == m->packets &&
			c->last_depth == m->last_depth && c->has_depth == m->has_depth &&
			c->last_ts_ns == m->last_ts_ns;
		good &= same_hist(&c->depth, &m->depth) && same_hist(&c->latency, &m->latency);
		MODEL_SAME_MAX(agg, &c->depth_max, model.depth, i, good);
		n++;
	}
	c = pl_aggregate_queue_overflow(agg);
	return good && n == model.n[PL_AGG_QUEUES] && n == pl_aggregate_count(agg, PL_AGG_QUEUES) &&
	       c->packets == model.queue_over.packets &&
	       same_hist(&c->depth, &model.queue_over.depth) &&
	       same_hist(&c->latency, &model.queue_over.latency);
}

static bool same_ports(const struct pl_aggregate *agg)
{
	const struct pl_agg_port *c;
	uint32_t pos = 0, n = 0, i = 0;
	bool good = true;

	while ((c = pl_aggregate_port(agg, &pos)) != NULL) {
		const struct pl_agg_port *m = model_port(c->key, &i);

		good &= i < model.n[PL_AGG_PORTS] && m != &model.port_over;
		good &= c->seen_ns == m->seen_ns && c->packets == m->packets &&
			c->last_util == m->last_util && c->has_util == m->has_util &&
			c->last_ts_ns == m->last_ts_ns;
		MODEL_SAME_MAX(agg, &c->util_max, model.util, i, good);
		n++;
	}
	return good && n == model.n[PL_AGG_PORTS] &&
	       pl_aggregate_port_overflow(agg)->packets == model.port_over.packets;
}

static bool same_links(const struct pl_aggregate *agg)
{
	const struct pl_agg_link *c;
	uint32_t pos = 0, n = 0;
	bool good = true;

	while ((c = pl_aggregate_link(agg, &pos)) != NULL) {
		good &= memcmp(c, model_link(c->key), sizeof(*c)) == 0;
		n++;
	}
	c = pl_aggregate_link_overflow(agg);
	return good && n == model.n[PL_AGG_LINKS] && c->reports == model.link_over.reports &&
	       same_hist(&c->latency, &model.link_over.latency);
}

static bool same_paths(const struct pl_aggregate *agg)
{
	const struct pl_agg_path *c;
	uint32_t pos = 0, n = 0;
	bool good = true;

	while ((c = pl_aggregate_path(agg, &pos)) != NULL) {
		const struct pl_agg_path *m = model_path(c->key.path_id);

		good &= c->seen_ns == m->seen_ns && c->reports == m->reports &&
			c->last_ts_ns == m->last_ts_ns && c->hop_count == m->hop_count &&
			memcmp(c->steps, m->steps, sizeof(m->steps)) == 0 &&
			same_hist(&c->latency, &m->latency);
		n++;
	}
	return good && n == model.n[PL_AGG_PATHS] &&
	       pl_aggregate_path_overflow(agg)->reports == model.path_over.reports;
}

static bool same(const struct pl_aggregate *agg)
{
	struct pl_agg_totals before = model.totals;
	bool good = memcmp(pl_aggregate_totals(agg), &model.totals, sizeof(model.totals)) == 0;

	good &= same_queues(agg);
	good &= same_ports(agg);
	good &= same_links(agg);
	good &= same_paths(agg);
	/* looking for a cell that the model does not have would have counted */
	return good && memcmp(&before, &model.totals, sizeof(before)) == 0;
}
