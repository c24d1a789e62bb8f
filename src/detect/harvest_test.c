/* SPDX-License-Identifier: BSD-2-Clause */
/* Aggregates that the steps keep, harvested now and then, against those out of records of the same
 * reports. */
#include "detect/harvest.h"

#include <inttypes.h>

#include "detect/batch_maker.h"
#include "detect/tables.h"

#define SECOND ((uint64_t)1000000000)

static struct pl_record_batch batch;
static struct pl_event_batch out;
static struct pl_detect *det;
static struct pl_harvest *harvest;
static struct pl_aggregate *records, *harvested;
static struct pl_rng rng;

static void begin(struct pl_detect_options o, struct pl_aggregate_options a)
{
	o.aggregates = true;
	if (pl_detect_new(&det, &o) < 0 || pl_harvest_new(&harvest, det) < 0 ||
		pl_aggregate_new(&records, &a) < 0 || pl_aggregate_new(&harvested, &a) < 0)
		abort();
}

static void end(void)
{
	pl_harvest_free(harvest);
	pl_detect_free(det);
	pl_aggregate_free(records);
	pl_aggregate_free(harvested);
}

static void take(uint64_t now_ns)
{
	pl_aggregate_tick(harvested, now_ns);
	pl_harvest_take(harvest, det, harvested, now_ns, now_ns);
}

/* A path of three hops over few nodes; some hops lack something, some reports are copies, parts, or
 * dropped. */
static void random_report(uint64_t ts_ns)
{
	static const uint16_t flags[] = { PL_FLAG_COPY, PL_FLAG_PARTIAL, PL_FLAG_DROPPED,
		PL_FLAG_INTERMEDIATE };
	uint64_t nodes = 0;
	struct pl_path *p = add_path(&batch, 0);

	p->present = PL_PATH_HAS_src | PL_PATH_HAS_path_id;
	p->flags = pl_rng_below(&rng, 8) == 0 ? flags[pl_rng_below(&rng, 4)] : 0;
	p->ts_ns = ts_ns;
	if (pl_rng_below(&rng, 8) != 0) {
		p->present |= PL_PATH_HAS_latency_ns;
		p->latency_ns = pl_rng_u64(&rng) >> (28 + pl_rng_below(&rng, 36));
	}
	for (unsigned int k = 0; k < 3; k++) {
		uint32_t lacks = pl_rng_below(&rng, 6) == 0 ? (uint32_t)pl_rng_u64(&rng) : 0;
		struct pl_hop *h = add_hop(&batch, pl_rng_below(&rng, 4),
			PL_HOP_HAS_node | ((PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port |
						   PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth |
						   PL_HOP_HAS_hop_latency_ns | PL_HOP_HAS_tx_util |
						   PL_HOP_HAS_clock | PL_HOP_HAS_link_latency_ns) &
						  ~lacks));

		h->index = (uint8_t)k;
		h->ingress_port = (uint32_t)pl_rng_below(&rng, 2);
		h->egress_port = (uint32_t)pl_rng_below(&rng, 4);
		h->queue = (uint16_t)pl_rng_below(&rng, 2);
		h->queue_depth = (uint32_t)(pl_rng_u64(&rng) >> (32 + pl_rng_below(&rng, 32)));
		h->hop_latency_ns = (uint32_t)(pl_rng_u64(&rng) >> (32 + pl_rng_below(&rng, 32)));
		h->tx_util = (uint32_t)pl_rng_below(&rng, 100);
		h->clock = (uint8_t)pl_rng_below(&rng, PL_CLOCK_MAX);
		h->link_latency_ns = (int32_t)pl_rng_below(&rng, 100000);
		if (k == 0)
			h->present &= ~(uint32_t)(PL_HOP_HAS_clock | PL_HOP_HAS_link_latency_ns);
		nodes = nodes << 8 | h->node;
	}
	p->path_id = nodes + 1;
}

/* At powers of two, where both have bounds, and in all. */
static bool same_hist(const struct pl_hist *a, const struct pl_hist *b)
{
	uint64_t in_a = 0, in_b = 0;
	bool good = a->sum == b->sum;

	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		in_a += a->buckets[i];
		in_b += b->buckets[i];
		/* What the steps have beyond 2^32 is in one bucket. */
		if (i % PL_HIST_PER_OCTAVE == 0 && i < 32 * PL_HIST_PER_OCTAVE)
			good = good && in_a == in_b;
	}
	return good && in_a == in_b;
}

static bool same_max(const struct pl_slot_max *a, const struct pl_slot_max *b)
{
	uint32_t x, y;
	bool has = pl_aggregate_max(records, a, &x);

	return has == pl_aggregate_max(harvested, b, &y) && (!has || x == y);
}

static void same_queues(void)
{
	const struct pl_agg_queue *want, *got;
	uint32_t pos = 0;

	while ((want = pl_aggregate_queue(records, &pos)) != NULL) {
		got = pl_aggregate_find(harvested, PL_AGG_QUEUES, &want->key);
		ok(got != NULL && got->packets == want->packets &&
				got->has_depth == want->has_depth &&
				got->last_depth == want->last_depth &&
				same_max(&want->depth_max, &got->depth_max) &&
				same_hist(&want->latency, &got->latency) &&
				same_hist(&want->depth, &got->depth),
			"queue %u of port %u of node %" PRIu64, want->key.queue, want->key.port,
			want->key.node);
	}
}

static void same_ports(void)
{
	const struct pl_agg_port *want, *got;
	uint32_t pos = 0;

	while ((want = pl_aggregate_port(records, &pos)) != NULL) {
		got = pl_aggregate_find(harvested, PL_AGG_PORTS, &want->key);
		/* Packets with utilization but without a port: copies of them are no packets either
		 * way. */
		ok(got != NULL && got->packets == want->packets &&
				got->has_util == want->has_util &&
				got->last_util == want->last_util &&
				same_max(&want->util_max, &got->util_max),
			"port %u of node %" PRIu64, want->key.port, want->key.node);
	}
}

static void same_links_and_paths(void)
{
	const struct pl_agg_link *link, *l;
	const struct pl_agg_path *path, *p;
	uint32_t pos = 0;
	bool good = true;

	while ((link = pl_aggregate_link(records, &pos)) != NULL) {
		l = pl_aggregate_find(harvested, PL_AGG_LINKS, &link->key);
		/* A link of which there are copies only has a cell and nothing in it. */
		good = good &&
		       (l != NULL ? l->reports == link->reports &&
					       same_hist(&link->latency, &l->latency) &&
					       memcmp(l->clock, link->clock, sizeof(l->clock)) == 0
				  : link->reports == 0);
	}
	ok(good && pos > 0, "links");
	good = true;
	for (pos = 0; (path = pl_aggregate_path(records, &pos)) != NULL;) {
		p = pl_aggregate_find(harvested, PL_AGG_PATHS, &path->key);
		good = good && p != NULL && p->reports == path->reports &&
		       p->hop_count == path->hop_count && p->steps[0].node == path->steps[0].node &&
		       p->steps[2].node == path->steps[2].node && p->steps[3].node == 0 &&
		       same_hist(&path->latency, &p->latency);
	}
	ok(good && pos > 30, "paths with their nodes");
	eq(pl_aggregate_count(harvested, PL_AGG_PATHS), pl_aggregate_count(records, PL_AGG_PATHS),
		"no path more");
}

static void random_reports(uint64_t seed)
{
	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	begin((struct pl_detect_options){ 0 }, (struct pl_aggregate_options){ 0 });
	for (unsigned int i = 0; i < 1000; i++) {
		uint64_t now_ns = SECOND + i * (SECOND / 50);

		pl_record_batch_clear(&batch);
		for (unsigned int n = 0; n < 20; n++)
			random_report(now_ns);
		pl_aggregate_tick(records, now_ns);
		pl_aggregate_batch(records, &batch);
		pl_detect_batch(det, &batch, now_ns, &out);
		if (i % 7 == 0)
			take(now_ns);
	}
	take(SECOND * 21);
	pl_aggregate_tick(records, SECOND * 21);
	same_queues();
	same_ports();
	same_links_and_paths();
	take(SECOND * 21);
	same_links_and_paths();
	end();
}

static void one_report(uint64_t node, uint64_t now_ns)
{
	struct pl_hop *h;

	pl_record_batch_clear(&batch);
	add_path(&batch, 0)->ts_ns = now_ns;
	h = add_hop(&batch, node, PL_HOP_HAS_node | PL_HOP_HAS_queue_depth);
	h->queue_depth = 5;
	pl_detect_batch(det, &batch, now_ns, &out);
}

static uint64_t packets_of(uint64_t node)
{
	const struct pl_queue_key key = { .node = node };
	const struct pl_agg_queue *q = pl_aggregate_find(harvested, PL_AGG_QUEUES, &key);

	return q != NULL ? q->packets : 0;
}

/* An entry ages out and is made anew: the counter goes on. */
static void entries_that_go(void)
{
	begin((struct pl_detect_options){ .forget_ns = 2 * SECOND },
		(struct pl_aggregate_options){ 0 });
	for (int i = 0; i < 10; i++)
		one_report(7, SECOND);
	take(SECOND);
	eq(packets_of(7), 10, "ten packets");
	pl_detect_tick(det, 10 * SECOND, 1, &out);
	eq(pl_detect_present(det, PL_CORE_T_place), 0, "its entry is gone");
	take(10 * SECOND);
	eq(packets_of(7), 10, "its counter is not");
	for (int i = 0; i < 4; i++)
		one_report(7, 11 * SECOND);
	take(11 * SECOND);
	eq(packets_of(7), 14, "and goes on with the new entry");
	for (int i = 0; i < 30; i++)
		one_report(7, 12 * SECOND);
	take(12 * SECOND);
	eq(packets_of(7), 44, "also when that has more");
	end();
}

/* Idle cells go from the aggregate while their entries are still there, and come back with what is
 * new. */
static void cells_that_go(void)
{
	begin((struct pl_detect_options){ 0 }, (struct pl_aggregate_options){ .idle_ns = SECOND });
	one_report(7, SECOND);
	take(SECOND);
	for (uint64_t i = 2; i < 20; i++)
		take(i * SECOND);
	eq(pl_aggregate_count(harvested, PL_AGG_QUEUES), 0, "an idle queue has no series");
	one_report(7, 20 * SECOND);
	take(20 * SECOND);
	eq(packets_of(7), 1, "it begins anew");
	end();
}

static void too_many(void)
{
	begin((struct pl_detect_options){ 0 }, (struct pl_aggregate_options){ .max_queues = 4 });
	for (uint64_t node = 1; node <= 10; node++) {
		for (int i = 0; i < 3; i++)
			one_report(node, SECOND);
		take(SECOND);
	}
	for (uint64_t node = 1; node <= 4; node++)
		eq(packets_of(node), 3, "the first ones keep their series");
	eq(pl_aggregate_queue_overflow(harvested)->packets, 18, "the others share one");
	eq(pl_aggregate_totals(harvested)->overflow[PL_AGG_QUEUES], 18, "reading by reading");
	end();
}

int main(void)
{
	if (pl_record_batch_init(&batch, 512, 1024) < 0 || pl_event_batch_init(&out, 512) < 0)
		return EXIT_FAILURE;
	random_reports(6);
	random_reports(7);
	entries_that_go();
	cells_that_go();
	too_many();
	pl_record_batch_done(&batch);
	pl_event_batch_done(&out);
	return pl_test_done();
}
