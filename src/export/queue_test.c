/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/queue.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "base/rng.h"
#include "base/test.h"
#include "raw/message.h"

static struct pl_record_batch in, out;
static struct pl_event events[64];

static void add(uint64_t id, unsigned int hops)
{
	in.paths[in.n_paths] = (struct pl_path){ .report_id = id, .hop_count = (uint8_t)hops };
	in.first_hop[in.n_paths++] = in.n_hops;
	for (unsigned int h = 0; h < hops; h++)
		in.hops[in.n_hops++] = (struct pl_hop){ .report_id = id, .index = (uint8_t)h };
}

/* Returns true when path i of `out` is unchanged and has all its hops. */
static bool whole(uint32_t i)
{
	const struct pl_path *p = &out.paths[i];
	bool good = out.first_hop[i] + p->hop_count <= out.n_hops;

	for (unsigned int h = 0; good && h < p->hop_count; h++) {
		const struct pl_hop *hop = &out.hops[out.first_hop[i] + h];

		good = hop->report_id == p->report_id && hop->index == h;
	}
	return good;
}

static struct pl_value values[64];
static struct pl_export_taken rest;

static uint32_t take(struct pl_export_queue *q)
{
	rest = (struct pl_export_taken){
		.events = events, .values = values, .cap_events = 64, .cap_values = 2
	};
	return pl_export_queue_take(q, &out, &rest);
}

static void limits(void)
{
	struct pl_export_queue *q = NULL;

	eq(pl_export_queue_new(&q, (1U << 24) + 1), -EINVAL, "too many records");
	pl_export_queue_free(NULL);
	eq(pl_export_queue_new(&q, 1), 0, "rounded up");
	eq(take(q), 0, "nothing in it");
	/* 255 hops: four reports fill the 1024 slots exactly */
	pl_record_batch_clear(&in);
	for (unsigned int i = 0; i < 5; i++)
		add(i, 255);
	pl_export_queue_put_paths(q, &in);
	eq(pl_counter_read(&pl_export_queue_stats(q)->accepted), 4, "four fit");
	eq(pl_counter_read(&pl_export_queue_stats(q)->full_paths), 1, "the fifth is counted");
	pl_export_queue_put_events(q, events, 1);
	eq(pl_counter_read(&pl_export_queue_stats(q)->full_events), 1, "no event fits either");
	pl_export_queue_put_values(q, values, 2);
	eq(pl_counter_read(&pl_export_queue_stats(q)->full_values), 2, "nor a value");
	eq(pl_export_queue_waiting(q), 4, "four wait");
	pl_record_batch_clear(&out);
	out.cap_hops = 256;
	eq(take(q), 1, "one at a time with small room");
	ok(whole(0), "it is whole");
	out.cap_hops = 2048;
	eq(take(q), 3, "then the rest");
	ok(whole(1) && whole(2) && whole(3), "they are whole");
	eq(pl_export_queue_waiting(q), 0, "empty");
	for (unsigned int i = 0; i < 3; i++)
		values[i].number = 70 + i;
	pl_export_queue_put_values(q, values, 3);
	pl_export_queue_put_events(q, events, 1);
	memset(values, 0, sizeof(values));
	eq(take(q), 2, "as many values as there is room for");
	ok(rest.n_values == 2 && values[0].number == 70 && values[1].number == 71, "in order");
	eq(take(q), 2, "then the rest");
	ok(rest.n_values == 1 && values[0].number == 72 && rest.n_events == 1, "of both kinds");
	pl_export_queue_free(q);
}

static void *produce(void *arg)
{
	struct pl_export_queue *q = arg;
	struct pl_event event = { .record_version = PL_RECORD_VERSION };
	struct pl_rng rng;
	uint64_t id = 0;

	pl_rng_seed(&rng, 7);
	for (unsigned int round = 0; round < 20000; round++) {
		pl_record_batch_clear(&in);
		for (uint64_t n = pl_rng_below(&rng, 8); n > 0; n--)
			add(id++, (unsigned int)pl_rng_below(&rng, 12));
		pl_export_queue_put_paths(q, &in);
		event.report_id = id++;
		pl_export_queue_put_events(q, &event, 1);
		if (pl_export_queue_waiting(q) > 100 && pl_rng_below(&rng, 20) != 0)
			sched_yield(); /* slows down, so that most entries fit */
	}
	return NULL;
}

/* One thread puts faster than the other takes: order, entries and sum are kept. */
static void two_threads(void)
{
	struct pl_export_queue *q;
	const struct pl_export_queue_stats *s;
	uint64_t paths = 0, told = 0, last = 0, last_event = 0;
	uint32_t taken;
	bool good = true, running = true;
	pthread_t thread;

	eq(pl_export_queue_new(&q, 1024), 0, "made");
	s = pl_export_queue_stats(q);
	if (!ok(pthread_create(&thread, NULL, produce, q) == 0, "producer started"))
		return;
	do {
		if (running && pl_export_queue_waiting(q) == 0 &&
			pthread_tryjoin_np(thread, NULL) == 0)
			running = false;
		pl_record_batch_clear(&out);
		taken = take(q);
		for (uint32_t i = 0; i < out.n_paths; i++) {
			good &= whole(i) && (paths + i == 0 || out.paths[i].report_id > last);
			last = out.paths[i].report_id;
		}
		for (uint32_t i = 0; i < rest.n_events; i++) {
			good &= events[i].report_id > last_event;
			last_event = events[i].report_id;
		}
		paths += out.n_paths;
		told += rest.n_events;
		good &= taken == out.n_paths + rest.n_events;
	} while (running || taken > 0);
	ok(good, "whole and in order");
	eq(paths + told, pl_counter_read(&s->taken), "taken is what came");
	eq(pl_counter_read(&s->taken), pl_counter_read(&s->accepted), "accepted is taken");
	printf("# %" PRIu64 " entries, %" PRIu64 " did not fit\n", paths + told,
		pl_counter_read(&s->full_paths) + pl_counter_read(&s->full_events));
	pl_export_queue_free(q);
}

/* Packets of every length among events, around the ring's end and longer than the ring. */
static void packets(void)
{
	static uint8_t body[2048], taken[1 << 16];
	static struct pl_batch batch;
	struct pl_export_queue *q = NULL;
	uint64_t put = 0, got = 0, wrong = 0, events_got = 0;

	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 7);
	eq(pl_export_queue_new(&q, 1), 0, "a queue of 1024 slots");
	for (unsigned int round = 0; round < 500; round++) {
		batch.n = 3;
		for (unsigned int i = 0; i < batch.n; i++, put++)
			batch.pkts[i] = (struct pl_packet){ .data = body + put % 100,
				.len = (uint32_t)(put * 37 % 1500),
				.ts_ns = put,
				.link = PL_LINK_UDP };
		pl_export_queue_put_packets(q, &batch);
		pl_export_queue_put_events(q, events, 1);
		rest = (struct pl_export_taken){ .events = events,
			.cap_events = 64,
			.packets = taken,
			.cap_packets = sizeof(taken) };
		pl_record_batch_clear(&out);
		wrong += pl_export_queue_take(q, &out, &rest) != 4;
		events_got += rest.n_events;
		for (size_t at = 0; at < rest.packets_bytes; got++) {
			struct pl_packet p;

			if (pl_raw_next(taken, rest.packets_bytes, &at, &p) != 1)
				break;
			wrong += p.ts_ns != got || p.len != got * 37 % 1500 ||
				 memcmp(p.data, body + got % 100, p.len) != 0;
		}
	}
	eq(got, put, "all packets come out");
	eq(wrong, 0, "as they went in");
	eq(events_got, 500, "with the events between them");
	batch.n = PL_BATCH_MAX;
	for (unsigned int i = 0; i < batch.n; i++)
		batch.pkts[i] = (struct pl_packet){ .data = body, .len = 1000, .ts_ns = i };
	pl_export_queue_put_packets(q, &batch);
	eq(pl_counter_read(&pl_export_queue_stats(q)->full_packets), 256 - 1024 / 9,
		"nine slots each: what does not fit is counted");
	rest = (struct pl_export_taken){ .packets = taken, .cap_packets = 2000 };
	eq(pl_export_queue_take(q, &out, &rest), 1, "no more than there is room for");
	rest = (struct pl_export_taken){ .packets = taken, .cap_packets = sizeof(taken) };
	eq(pl_export_queue_take(q, &out, &rest), sizeof(taken) / 1064, "and then the others");
	pl_export_queue_free(q);
}

int main(void)
{
	if (pl_record_batch_init(&in, 64, 2048) < 0 || pl_record_batch_init(&out, 64, 2048) < 0)
		return EXIT_FAILURE;
	limits();
	two_threads();
	packets();
	pl_record_batch_done(&in);
	pl_record_batch_done(&out);
	return pl_test_done();
}
