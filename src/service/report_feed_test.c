/* SPDX-License-Identifier: BSD-2-Clause */
/* Records, events and values handed to another thread: all of them, in their order, or counted. */
#include "service/report_feed.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "base/test.h"

enum { HOPS = 3, PATHS = 100, EVENTS = 50, VALUES = 70, GIVEN = PATHS + EVENTS + VALUES };

struct seen {
	uint64_t paths, hops, events, values, next_path, next_event, next_value;
	bool good;
};

static void reports(void *arg, const struct pl_record_batch *b)
{
	struct seen *s = arg;

	for (uint32_t i = 0; i < b->n_paths; i++) {
		s->good &= b->paths[i].ts_ns >= s->next_path;
		s->next_path = b->paths[i].ts_ns + 1;
		for (uint32_t k = 0; k < b->paths[i].hop_count; k++)
			s->good &= b->hops[b->first_hop[i] + k].node == b->paths[i].ts_ns * 10 + k;
		s->hops += b->paths[i].hop_count;
	}
	s->paths += b->n_paths;
}

static void events(void *arg, const struct pl_event *e, uint32_t n)
{
	struct seen *s = arg;

	for (uint32_t i = 0; i < n; i++) {
		s->good &= e[i].ts_ns >= s->next_event;
		s->next_event = e[i].ts_ns + 1;
	}
	s->events += n;
}

static void values(void *arg, const struct pl_value *v, uint32_t n)
{
	struct seen *s = arg;

	for (uint32_t i = 0; i < n; i++) {
		s->good &= v[i].ts_ns >= s->next_value;
		s->next_value = v[i].ts_ns + 1;
	}
	s->values += n;
}

static uint64_t all_of(const struct seen *s)
{
	return s->paths + s->events + s->values;
}

static bool readable(const struct pl_report_feed *feed)
{
	struct pollfd fd = { .fd = pl_report_feed_fd(feed), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* Gives the exporter reports with hop_count hops, events and values; times continue from *ts. */
static void give(struct pl_export *e, uint64_t *ts, uint32_t hop_count)
{
	static struct pl_record_batch batch;
	static struct pl_event some[EVENTS];
	static struct pl_value found[VALUES];

	if (batch.paths == NULL)
		ok(pl_record_batch_init(&batch, PATHS, PATHS * HOPS) == 0, "there is memory");
	pl_record_batch_clear(&batch);
	for (uint32_t i = 0; i < PATHS; i++) {
		batch.paths[i] =
			(struct pl_path){ .ts_ns = ++*ts, .hop_count = (uint8_t)hop_count };
		batch.first_hop[i] = batch.n_hops;
		for (uint32_t k = 0; k < hop_count; k++)
			batch.hops[batch.n_hops++] = (struct pl_hop){ .node = *ts * 10 + k };
	}
	batch.n_paths = PATHS;
	for (uint32_t i = 0; i < EVENTS; i++)
		some[i] = (struct pl_event){ .ts_ns = ++*ts };
	pl_export_write_paths(e, &batch, 0);
	pl_export_write_events(e, some, EVENTS, 0);
	for (uint32_t i = 0; i < VALUES; i++)
		found[i] = (struct pl_value){ .ts_ns = ++*ts };
	pl_export_write_values(e, found, VALUES, 0);
}

static void check(const struct pl_export *e, uint64_t given, uint64_t taken, const char *when)
{
	const uint64_t dropped = pl_counter_read(&e->stats.dropped[PL_EXPORT_QUEUE_FULL]);

	eq(pl_counter_read(&e->stats.accepted), given, "%s: all are accounted for", when);
	eq(pl_counter_read(&e->stats.delivered), taken, "%s: those that were taken", when);
	eq(atomic_load(&e->stats.queued), given - taken - dropped, "%s: and those that wait", when);
}

struct taker {
	struct pl_report_feed *feed;
	struct seen *seen;
	_Atomic bool stop;
	uint64_t begun_ns, longest_ns; /* longest: between one take and the next */
};

/* Takes entries from time to time, like a thread with other work. */
static void *take_late(void *arg)
{
	struct taker *t = arg;
	const struct pl_report_feed_sink sink = { reports, events, values, t->seen };
	uint64_t last_ns = t->begun_ns;

	while (!t->stop) {
		const uint64_t begun_ns = last_ns;

		usleep(100000);
		last_ns = pl_clock_mono_ns();
		pl_report_feed_take(t->feed, &sink);
		if (pl_clock_mono_ns() - begun_ns > t->longest_ns)
			t->longest_ns = pl_clock_mono_ns() - begun_ns;
	}
	return NULL;
}

/* Gives more than there is room for while another thread takes it: nothing is dropped, unless that
 * thread is delayed beyond the exporter's wait, on a busy machine. */
static void give_many(struct pl_export *e, struct pl_report_feed *feed, struct seen *s,
	uint64_t *ts, uint64_t *given)
{
	struct taker t = { .feed = feed, .seen = s, .begun_ns = pl_clock_mono_ns() };
	uint64_t dropped = pl_counter_read(&e->stats.dropped[PL_EXPORT_QUEUE_FULL]);
	pthread_t thread;

	ok(pthread_create(&thread, NULL, take_late, &t) == 0, "a thread takes them late");
	for (int i = 0; i < 300; i++)
		give(e, ts, HOPS);
	*given += 300 * GIVEN;
	atomic_store(&t.stop, true);
	pthread_join(thread, NULL);
	pl_report_feed_take(feed, &(struct pl_report_feed_sink){ reports, events, values, s });
	check(e, *given, all_of(s), "of those that waited");
	ok(s->good, "and they came in their order");
	dropped = pl_counter_read(&e->stats.dropped[PL_EXPORT_QUEUE_FULL]) - dropped;
	ok(dropped == 0 || t.longest_ns >= UINT64_C(1000000000),
		"%llu are dropped while somebody takes them, %llu ms apart at most",
		(unsigned long long)dropped, (unsigned long long)(t.longest_ns / 1000000));
}

int main(void)
{
	struct seen s = { .good = true };
	const struct pl_report_feed_sink sink = { reports, events, values, &s };
	struct pl_report_feed *feed;
	uint64_t ts = 0, given = 0;
	struct pl_export *e;

	ok(pl_report_feed_new(&e, &feed) == 0, "it is made");
	give(e, &ts, HOPS);
	given += GIVEN;
	pl_report_feed_take(feed, &sink);
	eq(all_of(&s), 0, "without room nothing is kept");
	eq(pl_counter_read(&e->stats.dropped[PL_EXPORT_QUEUE_FULL]), given, "which is counted");
	ok(pl_report_feed_make_room(feed) == 0 && pl_report_feed_make_room(feed) == 0,
		"room is made");
	ok(!readable(feed), "nothing waits");

	for (int turn = 0; turn < 3; turn++) {
		const uint64_t before = all_of(&s);

		give(e, &ts, HOPS);
		give(e, &ts, 0);
		given += 2 * GIVEN;
		ok(readable(feed), "something waits");
		check(e, given, before, "before they are taken");
		pl_report_feed_take(feed, &sink);
		eq(all_of(&s) - before, 2 * GIVEN, "all came");
		ok(s.good && !readable(feed), "in their order, and nothing waits");
		check(e, given, all_of(&s), "afterwards");
	}
	eq(s.hops, 3 * PATHS * HOPS, "with their hops");

	/* More than there is room for: entries that are kept are complete. */
	for (int i = 0; i < 200; i++)
		give(e, &ts, HOPS);
	given += 200 * GIVEN;
	pl_report_feed_take(feed, &sink);
	check(e, given, all_of(&s), "of too many");
	ok(pl_counter_read(&e->stats.dropped[PL_EXPORT_QUEUE_FULL]) > GIVEN, "some found no room");
	ok(s.good, "and the others are whole and in their order");
	give(e, &ts, HOPS);
	given += GIVEN;
	pl_report_feed_take(feed, &sink);
	check(e, given, all_of(&s), "behind these");
	give_many(e, feed, &s, &ts, &given);
	pl_export_close(e);
	return pl_test_done();
}
