/* SPDX-License-Identifier: BSD-2-Clause */
/* The aggregates against a slow, plain model (test_aggregate.h), and what no model tells. */
#include "detect/test_aggregate.h"

#include <errno.h>

static struct pl_record_batch batch;

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

/* Two workers saw a queue; one sees it no more. The sum does not fall, until nobody sees it. */
static void sum_does_not_fall(void)
{
	const uint64_t second = 1000000000;
	const struct pl_aggregate_options o = { .idle_ns = 10 * second };
	struct pl_aggregate *part[2], *copy[2], *sum;
	uint64_t least = UINT64_MAX;

	if (pl_aggregate_new(&sum, &o) < 0)
		abort();
	for (unsigned int i = 0; i < 2; i++) {
		if (pl_aggregate_new(&part[i], &o) < 0 || pl_aggregate_new(&copy[i], &o) < 0)
			abort();
		pl_aggregate_tick(part[i], 100 * second);
		zero_key(part[i]);
	}
	for (uint64_t s = 100; s < 200; s++) {
		const struct pl_agg_queue *q;
		uint32_t pos = 0;

		if (s < 150) {
			pl_aggregate_tick(part[1], s * second);
			zero_key(part[1]);
		}
		pl_aggregate_reset(sum);
		pl_aggregate_tick(sum, s * second);
		for (unsigned int i = 0; i < 2; i++) {
			pl_aggregate_tick(part[i], s * second);
			pl_aggregate_heed(part[i], copy[i]);
			pl_aggregate_copy(copy[i], part[i]);
			pl_aggregate_merge(sum, copy[i]);
		}
		pl_aggregate_expire(sum);
		for (unsigned int i = 0; i < 2; i++)
			pl_aggregate_note_seen(copy[i], sum);
		q = pl_aggregate_queue(sum, &pos);
		if (q != NULL) {
			ok(least == UINT64_MAX || q->packets >= least,
				"second %u: it does not fall", (unsigned int)s);
			least = q->packets;
		}
		if (s >= 162)
			ok(q == NULL, "second %u: it is gone", (unsigned int)s);
	}
	for (unsigned int i = 0; i < 2; i++) {
		pl_aggregate_free(part[i]);
		pl_aggregate_free(copy[i]);
	}
	pl_aggregate_free(sum);
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
	sum_does_not_fall();
	pl_record_batch_done(&batch);
	return pl_test_done();
}
