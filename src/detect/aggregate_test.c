/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/aggregate.h"

#include <errno.h>

#include "detect/batch_maker.h"

#define SECOND ((uint64_t)1000000000)

static struct pl_record_batch batch;

/* --- a slow, plain model ------------------------------------------------------------------------------ */

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
	/* all readings of the last two slots, by cell: kept as (slot, value) pairs would be; the model
	 * keeps the two maxima apart from the code under test's structure */
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

/* --- comparison --------------------------------------------------------------------------------------- */

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

static void random_batch(struct pl_rng *rng, uint64_t ts_ns, uint32_t nodes)
{
	static const unsigned int some_flags[] = { 0, 0, 0, 0, PL_FLAG_COPY, PL_FLAG_PARTIAL,
		PL_FLAG_DROPPED, PL_FLAG_TRACKED, PL_FLAG_INTERMEDIATE };
	uint32_t n = (uint32_t)pl_rng_below(rng, 200);

	pl_record_batch_clear(&batch);
	for (uint32_t i = 0; i < n; i++) {
		struct pl_path *p = add_path(&batch, some_flags[pl_rng_below(rng, 9)]);
		unsigned int hops = (unsigned int)pl_rng_below(rng, 6);

		p->ts_ns = ts_ns + i;
		for (unsigned int h = 0; h < hops; h++) {
			uint32_t all = PL_HOP_HAS_egress_port | PL_HOP_HAS_ingress_port |
				       PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth |
				       PL_HOP_HAS_tx_util | PL_HOP_HAS_hop_latency_ns |
				       PL_HOP_HAS_clock;
			uint32_t has = some_of(rng, all) | PL_HOP_HAS_node;
			struct pl_hop *hop;

			if (pl_rng_below(rng, 20) == 0)
				has &= ~(uint32_t)PL_HOP_HAS_node;
			hop = add_hop(
				&batch, has & PL_HOP_HAS_node ? pl_rng_below(rng, nodes) : 0, has);
			if (has & PL_HOP_HAS_egress_port)
				hop->egress_port = (uint32_t)pl_rng_below(rng, 3);
			if (has & PL_HOP_HAS_ingress_port)
				hop->ingress_port = (uint32_t)pl_rng_below(rng, 2);
			if (has & PL_HOP_HAS_queue) {
				hop->queue = (uint16_t)pl_rng_below(rng, 3);
				hop->queue_depth =
					(uint32_t)(pl_rng_u64(rng) >> (32 + pl_rng_below(rng, 32)));
			}
			if (has & PL_HOP_HAS_tx_util)
				hop->tx_util = (uint32_t)pl_rng_below(rng, 10000);
			if (has & PL_HOP_HAS_hop_latency_ns)
				hop->hop_latency_ns = (uint32_t)pl_rng_below(rng, 1000000);
			if (has & PL_HOP_HAS_clock) {
				hop->clock = (uint8_t)pl_rng_below(rng, PL_CLOCK_MAX);
				if (hop->clock == PL_CLOCK_OK) {
					hop->present |= PL_HOP_HAS_link_latency_ns;
					hop->link_latency_ns = (int64_t)pl_rng_below(rng, 100000);
				}
			}
		}
		if (hops > 0 && pl_rng_below(rng, 10) != 0)
			set_path_id(&batch);
		if (pl_rng_below(rng, 3) != 0) {
			p->present |= PL_PATH_HAS_latency_ns;
			p->latency_ns = pl_rng_u64(rng) >> pl_rng_below(rng, 64);
		}
	}
}

static void against_model(
	uint64_t seed, const struct pl_aggregate_options *options, uint32_t nodes, const char *name)
{
	struct pl_aggregate *agg, *copy;
	struct pl_rng rng;
	uint64_t now = 1000 * SECOND;
	bool good = true, copied = true;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	memset(&model, 0, sizeof(model));
	model.limit[0] = options->max_queues;
	model.limit[1] = options->max_ports;
	model.limit[2] = options->max_links;
	model.limit[3] = options->max_paths;
	model.idle_ns = options->idle_ns;
	model.slot_ns = options->slot_ns;
	eq(pl_aggregate_new(&agg, options), 0, "%s: made", name);
	eq(pl_aggregate_new(&copy, options), 0, "%s: made again", name);
	for (unsigned int round = 0; round < 400 && good; round++) {
		now += pl_rng_below(&rng, 2 * SECOND);
		/* all parts of the sweep, so that what is idle is gone */
		for (unsigned int i = 0; i < 40; i++)
			pl_aggregate_tick(agg, now);
		model_tick(now);
		random_batch(&rng, now, nodes);
		pl_aggregate_batch(agg, &batch);
		model_batch(&batch);
		good &= same(agg);
		if (round % 40 == 0) {
			pl_aggregate_copy(copy, agg);
			copied &= same(copy);
		}
	}
	ok(good, "%s: same as the model", name);
	ok(copied, "%s: copies too", name);
	pl_aggregate_copy(copy, agg);
	pl_aggregate_reset(copy);
	eq(pl_aggregate_count(copy, PL_AGG_QUEUES), 0, "%s: empty after reset", name);
	pl_aggregate_merge(copy, agg);
	ok(same(copy), "%s: merged into an empty one it is the same", name);
	pl_aggregate_free(agg);
	pl_aggregate_free(copy);
}

/* Two workers' shares, merged, are what one worker with all of it has. */
static const struct pl_agg_jitter *jitter_at(
	const struct pl_aggregate *agg, enum pl_agg_table table, const void *key)
{
	static const struct pl_agg_jitter none;
	const void *cell = pl_aggregate_find(agg, table, key);

	if (cell == NULL)
		return &none;
	return table == PL_AGG_QUEUES ? &((const struct pl_agg_queue *)cell)->jitter
				      : &((const struct pl_agg_link *)cell)->jitter;
}

/* Jitter is no sum: it is that of the part which heard last. So the model has it from there. */
static bool jitter_of_the_last(struct pl_aggregate *const part[2], const struct pl_aggregate *sum)
{
	bool good = true;

	for (unsigned int table = 0; table < PL_AGG_TABLE_MAX; table++) {
		for (uint32_t i = 0; i < model.n[table]; i++) {
			const void *key = table == PL_AGG_QUEUES ? (void *)&model.queues[i].key
								 : (void *)&model.links[i].key;
			const struct pl_agg_jitter *a, *b, *s;

			if (table != PL_AGG_QUEUES && table != PL_AGG_LINKS)
				continue;
			a = jitter_at(part[0], table, key);
			b = jitter_at(part[1], table, key);
			s = jitter_at(sum, table, key);
			good &= memcmp(s, b->ts_ns >= a->ts_ns ? b : a, sizeof(*s)) == 0;
			if (table == PL_AGG_QUEUES)
				model.queues[i].jitter = *s;
			else
				model.links[i].jitter = *s;
		}
	}
	return good;
}

static void merge_is_sum(void)
{
	struct pl_aggregate_options o = { .max_queues = 2000,
		.max_ports = 2000,
		.max_links = 3000,
		.max_paths = 4000,
		.slot_ns = 5 * SECOND };
	struct pl_aggregate *part[2] = { NULL, NULL }, *sum = NULL;
	struct pl_rng rng;
	uint64_t now = 77 * SECOND;
	bool good = true;

	printf("# seed 5\n");
	pl_rng_seed(&rng, 5);
	memset(&model, 0, sizeof(model));
	model.limit[0] = model.limit[1] = model.limit[2] = model.limit[3] = MODEL_MAX - 1;
	model.idle_ns = 1000 * SECOND;
	model.slot_ns = o.slot_ns;
	good &= pl_aggregate_new(&part[0], &o) == 0 && pl_aggregate_new(&part[1], &o) == 0 &&
		pl_aggregate_new(&sum, &o) == 0;
	for (unsigned int round = 0; round < 30; round++) {
		now += pl_rng_below(&rng, 3 * SECOND);
		model_tick(now);
		for (unsigned int w = 0; w < 2; w++) {
			pl_aggregate_tick(part[w], now);
			random_batch(&rng, now + 1000 * w, 6);
			/* what path a cell describes first is the only thing order decides: here
			 * equal ids have equal steps */
			pl_aggregate_batch(part[w], &batch);
			model_batch(&batch);
		}
		pl_aggregate_reset(sum);
		pl_aggregate_merge(sum, part[0]);
		pl_aggregate_merge(sum, part[1]);
		good &= jitter_of_the_last(part, sum) && same(sum);
	}
	ok(good, "two workers merged are one");
	pl_aggregate_free(part[0]);
	pl_aggregate_free(part[1]);
	pl_aggregate_free(sum);
}

/* Merging into smaller tables: the surplus is in the overflow cells, nothing is lost. */
static void merge_overflow(void)
{
	struct pl_aggregate_options big = { .max_queues = 1000 }, small = { .max_queues = 10 };
	struct pl_aggregate *from, *into;
	const struct pl_agg_queue *c;
	uint64_t packets = 0;
	uint32_t pos = 0;

	eq(pl_aggregate_new(&from, &big), 0, "big one made");
	eq(pl_aggregate_new(&into, &small), 0, "small one made");
	pl_record_batch_clear(&batch);
	for (uint32_t i = 0; i < 100; i++) {
		add_path(&batch, 0);
		add_hop(&batch, i, PL_HOP_HAS_node | PL_HOP_HAS_queue_depth)->queue_depth = i;
	}
	pl_aggregate_batch(from, &batch);
	pl_aggregate_merge(into, from);
	eq(pl_aggregate_count(into, PL_AGG_QUEUES), 10, "the small one is full");
	while ((c = pl_aggregate_queue(into, &pos)) != NULL)
		packets += c->packets;
	c = pl_aggregate_queue_overflow(into);
	eq(c->packets, 90, "the rest overflowed");
	eq(packets + c->packets, 100, "no packet was lost in the merge");
	eq(pl_hist_count(&c->depth), 90, "nor any depth");
	pl_aggregate_free(from);
	pl_aggregate_free(into);
}

static void refused(void)
{
	struct pl_aggregate_options o = { .max_links = (1 << 20) + 1 };
	struct pl_aggregate_options none = { 0 };
	struct pl_aggregate *agg = NULL;

	eq(pl_aggregate_new(&agg, &o), -EINVAL, "a limit above 2^20");
	ok(agg == NULL, "nothing made");
	pl_aggregate_free(NULL);
	eq(pl_aggregate_new(&agg, &none), 0, "all defaults");
	eq(pl_aggregate_limit(agg, PL_AGG_PATHS), 4096, "the default limit");
	pl_record_batch_clear(&batch);
	pl_aggregate_batch(agg, &batch);
	add_path(&batch, 0);
	pl_aggregate_batch(agg, &batch);
	eq(pl_aggregate_totals(agg)->reports, 1, "a report without hops counts");
	eq(pl_aggregate_totals(agg)->reports_without_path, 1, "and has no path");
	for (unsigned int t = 0; t < PL_AGG_TABLE_MAX; t++)
		eq(pl_aggregate_count(agg, t), 0, "no cell in %s", pl_agg_table_name(t));
	ok(pl_aggregate_memory(&none) > 4096 * 4 * sizeof(struct pl_agg_port), "memory is stated");
	pl_aggregate_free(agg);
}

/* 255 hops, the most a record can have: more than a chunk's rest. */
static void longest_path(void)
{
	struct pl_aggregate_options none = { 0 };
	struct pl_aggregate *agg;

	eq(pl_aggregate_new(&agg, &none), 0, "made");
	pl_record_batch_clear(&batch);
	for (unsigned int p = 0; p < 3; p++) {
		add_path(&batch, 0);
		for (unsigned int h = 0; h < 255; h++)
			add_hop(&batch, h, PL_HOP_HAS_node);
		set_path_id(&batch);
	}
	pl_aggregate_batch(agg, &batch);
	eq(pl_aggregate_totals(agg)->hops, 765, "all hops");
	eq(pl_aggregate_count(agg, PL_AGG_LINKS), 254, "all links");
	eq(pl_aggregate_count(agg, PL_AGG_PATHS), 1, "one path");
	pl_aggregate_free(agg);
}

/* Two scrapers, a second apart: both see the maximum, and neither takes it from the other. */
static void two_scrapers(void)
{
	struct pl_aggregate_options o = { .slot_ns = 10 * SECOND };
	struct pl_aggregate *agg;
	uint32_t pos = 0, v = 0;
	const struct pl_agg_queue *c;

	eq(pl_aggregate_new(&agg, &o), 0, "made");
	pl_aggregate_tick(agg, 100 * SECOND);
	pl_record_batch_clear(&batch);
	add_path(&batch, 0);
	add_hop(&batch, 1, PL_HOP_HAS_node | PL_HOP_HAS_queue_depth)->queue_depth = 500;
	pl_aggregate_batch(agg, &batch);
	batch.hops[0].queue_depth = 3;
	pl_aggregate_batch(agg, &batch);
	c = pl_aggregate_queue(agg, &pos);
	ok(pl_aggregate_max(agg, &c->depth_max, &v) && v == 500, "first scraper");
	ok(pl_aggregate_max(agg, &c->depth_max, &v) && v == 500, "second scraper");
	eq(c->last_depth, 3, "last value");
	pl_aggregate_tick(agg, 119 * SECOND);
	ok(pl_aggregate_max(agg, &c->depth_max, &v) && v == 500, "still there in the next slot");
	pl_aggregate_tick(agg, 120 * SECOND);
	ok(!pl_aggregate_max(agg, &c->depth_max, &v), "absent, not zero, in the one after");
	pl_aggregate_tick(agg, 5 * SECOND);
	ok(!pl_aggregate_max(agg, &c->depth_max, &v), "time going back changes nothing");
	pl_aggregate_free(agg);
}

/* A report of one hop without ports of node 0, the key that is all zeros, on path 1. */
static void zero_key(struct pl_aggregate *agg)
{
	struct pl_path *p;

	pl_record_batch_clear(&batch);
	p = add_path(&batch, 0);
	add_hop(&batch, 0, PL_HOP_HAS_node);
	p->path_id = 1;
	p->present |= PL_PATH_HAS_path_id;
	pl_aggregate_batch(agg, &batch);
}

/* Exactly one queue, that of node 0, with so many packets. */
static void one_queue(const struct pl_aggregate *agg, uint64_t packets, const char *when)
{
	const struct pl_agg_queue *q;
	uint32_t pos = 0;

	eq(pl_aggregate_count(agg, PL_AGG_QUEUES), 1, "%s: one queue", when);
	q = pl_aggregate_queue(agg, &pos);
	ok(q != NULL, "%s: it is there", when);
	if (q != NULL)
		eq(q->packets, packets, "%s: its packets", when);
}

/* What is remembered of a path's cells is no cell once these are gone, whatever stands in them. */
static void remembered(void)
{
	const struct pl_aggregate_options options = { .idle_ns = SECOND };
	struct pl_aggregate *agg, *copy;

	if (pl_aggregate_new(&agg, &options) < 0 || pl_aggregate_new(&copy, &options) < 0)
		abort();
	pl_aggregate_tick(agg, SECOND);
	zero_key(agg);
	zero_key(agg);
	one_queue(agg, 2, "remembered");
	for (uint64_t t = 3; t < 40; t++)
		pl_aggregate_tick(agg, t * SECOND);
	eq(pl_aggregate_count(agg, PL_AGG_QUEUES), 0, "aged away");
	zero_key(agg);
	one_queue(agg, 1, "after ageing");
	pl_aggregate_reset(agg);
	zero_key(agg);
	one_queue(agg, 1, "after a reset");
	/* A copy of an aggregate that never had the cell. */
	zero_key(copy);
	pl_aggregate_reset(agg);
	pl_aggregate_copy(copy, agg);
	zero_key(copy);
	one_queue(copy, 1, "after a copy");
	pl_aggregate_free(agg);
	pl_aggregate_free(copy);
}

/* By hand: 100, 200, 200 ns. */
static void jitter(void)
{
	struct pl_agg_jitter j = { 0 }, other = { 0 };
	struct pl_hist delays = { 0 };
	double ns;
	uint64_t variation;

	ok(!pl_agg_jitter(&j, &delays, &ns), "no delay, no jitter");
	ok(!pl_agg_variation(&delays, 0.99, &variation), "nor a variation");
	pl_core_jitter_step(&j.at, 100);
	pl_hist_add(&delays, 100);
	ok(!pl_agg_jitter(&j, &delays, &ns), "nor of one delay");
	pl_core_jitter_step(&j.at, 200);
	pl_hist_add(&delays, 200);
	ok(pl_agg_jitter(&j, &delays, &ns) && ns == 100.0 / 16, "a sixteenth of the distance");
	pl_core_jitter_step(&j.at, 200);
	ok(pl_agg_jitter(&j, &delays, &ns) && ns == 94.0 / 16, "and it falls");
	for (unsigned int i = 0; i < 1000; i++)
		pl_core_jitter_step(&other.at, i % 2 == 0 ? 0 : UINT32_MAX);
	ok(pl_agg_jitter(&other, &delays, &ns) && ns > 0.999 * UINT32_MAX &&
			ns < 1.001 * UINT32_MAX,
		"the widest swing is its own mean distance");
	pl_hist_add(&delays, 100000);
	ok(pl_agg_variation(&delays, 1, &variation) && variation > 90000 && variation < 200000,
		"the largest above the smallest");
}

int main(void)
{
	jitter();
	struct pl_aggregate_options roomy = { .max_queues = 2000,
		.max_ports = 2000,
		.max_links = 3000,
		.max_paths = 4000,
		.idle_ns = 8 * SECOND,
		.slot_ns = 3 * SECOND };
	struct pl_aggregate_options tight = { .max_queues = 7,
		.max_ports = 5,
		.max_links = 11,
		.max_paths = 13,
		.idle_ns = 3 * SECOND,
		.slot_ns = SECOND };
	struct pl_aggregate_options churn = { .max_queues = 50,
		.max_ports = 50,
		.max_links = 50,
		.max_paths = 50,
		.idle_ns = SECOND / 2,
		.slot_ns = SECOND };

	if (pl_record_batch_init(&batch, 512, 2048) < 0)
		return EXIT_FAILURE;
	refused();
	two_scrapers();
	longest_path();
	remembered();
	merge_overflow();
	against_model(1, &roomy, 4, "roomy");
	against_model(2, &tight, 6, "tight");
	against_model(3, &churn, 40, "churn");
	merge_is_sum();
	pl_record_batch_done(&batch);
	return pl_test_done();
}
