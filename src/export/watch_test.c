/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/test.h"
#include "export/watch_state.h"

#define SECOND UINT64_C(1000000000)

struct fixture {
	struct pl_export *e;
	struct pl_watch *live;
	unsigned int wakes;
	int wants; /* last call of `want`; -1: none */
};

static void wake(void *arg)
{
	((struct fixture *)arg)->wakes++;
}

static void want(void *arg, bool paths)
{
	((struct fixture *)arg)->wants = paths;
}

static void setup(struct fixture *f, unsigned int clients, uint32_t recent)
{
	struct pl_watch_options options = {
		.max_clients = clients, .buffer_bytes = 1, .recent_events = recent
	};

	*f = (struct fixture){ .wants = -1 };
	eq(pl_watch_new(&f->e, &f->live, &options), 0);
	pl_watch_set_hooks(f->live, &(struct pl_watch_hooks){ wake, want, f });
}

static struct pl_event event(uint64_t node)
{
	return (struct pl_event){ .ts_ns = node,
		.event = PL_EVENT_QUEUE_DEPTH,
		.node = node,
		.present = PL_EVENT_HAS_node };
}

static void send_events(struct fixture *f, unsigned int n, uint64_t node)
{
	struct pl_event e = event(node);

	for (unsigned int i = 0; i < n; i++)
		pl_export_write_events(f->e, &e, 1, 0);
}

static struct pl_watch_client *open_client(struct fixture *f, struct pl_watch_request r)
{
	struct pl_watch_client *c = NULL;
	struct pl_diag diag = { .text = "" };

	eq(pl_watch_open(&c, f->live, &r, 0, &diag), 0, "%s", diag.text);
	return c;
}

/* Reads all data there is; terminated. */
static size_t drain(struct pl_watch_client *c, char *dst, size_t cap, uint64_t now)
{
	size_t n = 0, r;

	while ((r = pl_watch_read(c, dst + n, cap - 1 - n < 1000 ? cap - 1 - n : 1000, now)) > 0)
		n += r;
	dst[n] = '\0';
	return n;
}

static unsigned int count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

static void kinds_and_filters(void)
{
	struct fixture f;
	struct pl_watch_client *all, *three, *paths;
	struct pl_watch_stats s;
	static char text[200000];

	setup(&f, 3, 0);
	all = open_client(&f, (struct pl_watch_request){ 0 });
	eq(f.wants, 1, "somebody wants paths");
	three = open_client(&f, (struct pl_watch_request){ .events = true, .where = "node == 3" });
	paths = open_client(&f, (struct pl_watch_request){ .where = "hops.node == 3" });
	send_events(&f, 5, 3);
	send_events(&f, 7, 4);
	drain(all, text, sizeof(text), 0);
	eq(count(text, "\"kind\":\"event\""), 12);
	drain(three, text, sizeof(text), 0);
	eq(count(text, "\"node\":3"), 5);
	eq(count(text, "\n"), 5);
	eq(drain(paths, text, sizeof(text), 0), 0, "an expression of paths means paths");
	ok(pl_watch_stats(f.live, 1, &s), "the second client");
	eq(s.seen, 12);
	eq(s.filtered, 7);
	eq(s.sent, 5);
	ok(!pl_watch_stats(f.live, 3, &s), "there are three");
	eq(pl_counter_read(&f.e->stats.accepted), 12);
	eq(pl_counter_read(&f.e->stats.delivered), 12);
	pl_watch_close(all);
	eq(f.wants, 1, "another still wants paths");
	pl_watch_close(paths);
	eq(f.wants, 0, "nobody does");
	pl_watch_close(three);
	send_events(&f, 3, 1);
	eq(pl_counter_read(&f.e->stats.delivered), 15, "what nobody wants is delivered");
	pl_export_close(f.e);
}

static void refusals(void)
{
	static const struct {
		struct pl_watch_request r;
		int want;
	} rows[] = {
		{ { .where = "nod == 3" }, -EINVAL },
		{ { .events = true, .where = "hops.node == 3" }, -EINVAL },
		{ { .events = true, .paths = true, .where = "hops.node == 3" }, -EINVAL },
		{ { .form = PL_WATCH_CSV }, -EINVAL },
		{ { .form = PL_WATCH_CSV, .events = true }, 0 },
	};
	struct pl_diag diag = { .text = "" };
	struct pl_watch_client *c;
	struct fixture f;

	setup(&f, 1, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		eq(pl_watch_open(&c, f.live, &rows[i].r, 0, &diag), rows[i].want, "request %zu: %s",
			i, diag.text);
	/* The last client has the only place. */
	eq(pl_watch_open(&c, f.live, &rows[4].r, 0, &diag), -EBUSY);
	pl_export_close(f.e);
}

/* Every entry is in the stream or in a report of drops, in order. */
static void slow(void)
{
	static char text[400000];
	struct fixture f;
	struct pl_watch_client *c;
	struct pl_watch_stats s;
	uint64_t told = 0;
	char *at;

	setup(&f, 2, 0);
	c = open_client(&f, (struct pl_watch_request){ .events = true });
	send_events(&f, 3000, 1);
	eq(pl_watch_stats(f.live, 0, &s), true);
	eq(s.seen, s.sent + s.dropped);
	ok(s.dropped > 0 && s.waiting_bytes <= 65536, "the buffer is bounded");
	eq(pl_counter_read(&f.e->stats.accepted), 3000);
	eq(pl_counter_read(&f.e->stats.delivered) +
			pl_counter_read(&f.e->stats.dropped[PL_EXPORT_QUEUE_FULL]),
		3000);
	drain(c, text, sizeof(text), 0);
	send_events(&f, 10, 2);
	drain(c, text + strlen(text), sizeof(text) - strlen(text), 0);
	for (at = text; (at = strstr(at, "\"count\":")) != NULL; at++)
		told += strtoull(at + 8, NULL, 10);
	eq(told + count(text, "\"kind\":\"event\""), 3010, "all are accounted for");
	ok(strstr(text, "\"kind\":\"dropped\"") < strstr(text, "\"node\":2"),
		"the gap stands where it was");
	eq(count(text, "\n{\"kind\":\"dropped\",\"count\":"), 1);
	pl_watch_close(c);
	pl_export_close(f.e);
}

static void notices(void)
{
	struct fixture f;
	struct pl_watch_client *c;
	char text[1000];

	setup(&f, 2, 0);
	pl_watch_missed(f.live, 3, 5, 0);
	c = open_client(&f, (struct pl_watch_request){ .events = true });
	ok(!pl_watch_ready(c, SECOND), "what was lost before it came is not its");
	eq(drain(c, text, sizeof(text), SECOND), 0);
	send_events(&f, 1, 1);
	send_events(&f, 1, 1);
	eq(f.wakes, 1, "woken once");
	drain(c, text, sizeof(text), SECOND);
	pl_watch_missed(f.live, 7, 5, 0);
	ok(!pl_watch_ready(c, SECOND), "paths that it did not ask for");
	pl_watch_missed(f.live, 7, 9, 0);
	ok(pl_watch_ready(c, SECOND), "lost in the queue");
	drain(c, text, sizeof(text), SECOND);
	streq(text, "{\"kind\":\"dropped\",\"count\":4,\"cause\":\"queue_full\"}\n");
	ok(!pl_watch_ready(c, 10 * SECOND), "quiet");
	ok(pl_watch_ready(c, 11 * SECOND), "ten seconds of nothing");
	drain(c, text, sizeof(text), 11 * SECOND);
	ok(strncmp(text, "{\"kind\":\"alive\",\"time\":\"20", 25) == 0 && count(text, "\n") == 1,
		"a sign of life");
	ok(!pl_watch_ready(c, 12 * SECOND), "and again ten seconds");
	pl_watch_close(c);
	pl_export_close(f.e);
}

static void recent(void)
{
	struct pl_event got[8];
	uint64_t total;
	struct fixture f;

	setup(&f, 1, 4);
	eq(pl_watch_events(f.live, got, 8, &total), 0);
	for (uint64_t i = 1; i <= 6; i++)
		send_events(&f, 1, i);
	eq(pl_watch_events(f.live, got, 8, &total), 4);
	eq(total, 6);
	eq(got[0].node, 6);
	eq(got[3].node, 3);
	eq(pl_watch_events(f.live, got, 2, &total), 2);
	eq(got[1].node, 5);
	pl_export_close(f.e);
}

static void forms(void)
{
	static const char *const begins[PL_WATCH_FORM_MAX] = { "{\"kind\":\"event\",\"time\":",
		"{\"kind\":\"event\",\"ts_ns\":7,", "TIME", "TIME", "ts_ns,", "event ts_ns=7 ",
		"event 0700000000000000" };
	char text[4000];
	struct fixture f;

	setup(&f, 1, 0);
	for (unsigned int i = 0; i < PL_WATCH_FORM_MAX; i++) {
		struct pl_watch_client *c =
			open_client(&f, (struct pl_watch_request){ .events = true, .form = i });

		send_events(&f, 1, 7);
		drain(c, text, sizeof(text), 0);
		ok(strncmp(text, begins[i], strlen(begins[i])) == 0, "%s: %.20s",
			pl_watch_form_name(i), text);
		pl_watch_close(c);
	}
	pl_export_close(f.e);
}

/* One thread writes, another opens, reads and closes; for the thread sanitizer, and the sums. */
static void *writer(void *arg)
{
	send_events(arg, 20000, 3);
	return NULL;
}

static void threads(void)
{
	static char text[100000];
	struct pl_watch_client *c;
	struct fixture f;
	pthread_t t;
	uint64_t told = 0;

	setup(&f, 2, 0);
	c = open_client(&f, (struct pl_watch_request){ .events = true });
	eq(pthread_create(&t, NULL, writer, &f), 0);
	for (int i = 0; i < 200; i++) {
		struct pl_watch_client *other =
			open_client(&f, (struct pl_watch_request){ .events = true });

		drain(other, text, sizeof(text), 0);
		pl_watch_close(other);
	}
	pthread_join(t, NULL);
	do {
		struct pl_watch_stats s;

		ok(pl_watch_stats(f.live, 0, &s), "still there");
		eq(s.seen, 20000);
		eq(s.seen, s.sent + s.dropped);
		drain(c, text, sizeof(text), 0);
		told++;
	} while (told < 2);
	pl_watch_close(c);
	pl_export_close(f.e);
}

/* A tap waits for no reader, and formats nothing for one that does not read. */
static void packets(void)
{
	static struct pl_pkt96 some[600];
	static char text[200000];
	struct pl_watch_client *c, *slow_one;
	struct pl_watch_stats s;
	struct fixture f;

	setup(&f, 3, 0);
	ok(!pl_watch_wants_tapped(f.live));
	pl_watch_tapped(f.live, PL_FLAT_PKT96, some, 5);
	c = open_client(&f,
		(struct pl_watch_request){ .flat = 1u << PL_FLAT_PKT96, .form = PL_WATCH_RECORD });
	slow_one = open_client(&f, (struct pl_watch_request){ .flat = 1u << PL_FLAT_PKT96,
					   .form = PL_WATCH_JSONL,
					   .where = "dport == 7" });
	ok(pl_watch_wants_tapped(f.live) && !pl_watch_ready(c, 0), "none from before it came");
	some[1].dport = 7;
	pl_watch_tapped(f.live, PL_FLAT_PKT96, some, 3);
	pthread_mutex_lock(&f.live->lock);
	for (unsigned int i = 0; i < 10; i++)
		pl_watch_tapped(f.live, PL_FLAT_PKT96, some, 410);
	pthread_mutex_unlock(&f.live->lock);
	drain(c, text, sizeof(text), 0);
	eq(count(text, "packet 0000"), 3);
	ok(strstr(text, "\"count\":4,\"cause\":\"queue_full\"") != NULL,
		"it did not wait, and says what it did not keep");
	pl_watch_turned(f.live);
	drain(c, text, sizeof(text), 0);
	ok(count(text, "packet 0000") > 250, "what it kept comes with the next, as there is room");
	pl_watch_tapped(f.live, PL_FLAT_FLOW288, &(struct pl_flow288){ 0 }, 1);
	ok(pl_watch_stats(f.live, 0, &s));
	eq(s.flat, 1u << PL_FLAT_PKT96);
	eq(s.seen, 4099, "flows are not packets");
	for (unsigned int i = 0; i < 600; i++)
		some[i].dport = 7;
	pl_watch_tapped(f.live, PL_FLAT_PKT96, some, 600);
	for (unsigned int i = 0; i < 2; i++) {
		ok(pl_watch_stats(f.live, i, &s));
		eq(s.seen, s.filtered + s.sent + s.dropped);
		ok(s.dropped > 0, "client %u: %" PRIu64 " of %" PRIu64 " have no room", i,
			s.dropped, s.seen);
	}
	pl_watch_close(c);
	ok(pl_watch_wants_tapped(f.live), "another one is there");
	pl_watch_close(slow_one);
	ok(!pl_watch_wants_tapped(f.live));
	pl_export_close(f.e);
}

/* Tap records of each kind go to the clients of that kind, whether the lock is free or not. */
static void every_kind(void)
{
	static char text[200000];
	struct pl_watch_client *c[PL_FLAT_MAX] = { NULL };
	const struct pl_watch_kind *kind;
	struct pl_watch_stats s;
	struct fixture f;
	/* A record of zeros, of any kind. */
	static const uint8_t records[6 * 288];
	unsigned int n;

	setup(&f, 8, 0);
	for (n = 0; (kind = pl_watch_kind_at(n)) != NULL; n++)
		c[n] = open_client(&f, (struct pl_watch_request){
					       .flat = 1u << kind->flat, .form = PL_WATCH_RECORD });
	for (unsigned int i = 0; (kind = pl_watch_kind_at(i)) != NULL; i++) {
		pl_watch_tapped(f.live, kind->flat, records, 2);
		pthread_mutex_lock(&f.live->lock);
		pl_watch_tapped(f.live, kind->flat, records, 1 + i);
		pthread_mutex_unlock(&f.live->lock);
	}
	pl_watch_tapped(f.live, PL_FLAT_LINK128, records, 1);
	pl_watch_turned(f.live);
	for (unsigned int i = 0; (kind = pl_watch_kind_at(i)) != NULL; i++) {
		drain(c[i], text, sizeof(text), 0);
		eq(count(text, "\n"), 3 + i, "%s", kind->name);
		eq(count(text, kind->word), 3 + i, "%s", kind->name);
		eq(strcspn(text, "\n"), strlen(kind->word) + 2 * (size_t)pl_flat(kind->flat)->size);
		ok(pl_watch_stats(f.live, i, &s));
		eq(s.sent, 3 + i);
	}
	for (unsigned int i = 0; i < n; i++)
		pl_watch_close(c[i]);
	ok(n > 1 && !pl_watch_wants_tapped(f.live));
	pl_export_close(f.e);
}

/* Records of taps and of the collector in one stream, each counted once. */
static void together(void)
{
	static char text[200000];
	static const uint8_t records[10 * 288];
	const uint32_t both = 1u << PL_FLAT_PKT96 | 1u << PL_FLAT_MARK128;
	const struct pl_watch_request bad[] = {
		{ .events = true, .flat = both, .form = PL_WATCH_JSONL },
		{ .flat = both, .form = PL_WATCH_JSONL },
		{ .flat = both, .form = PL_WATCH_RECORD, .where = "point == 1" },
	};
	struct pl_diag diag = { .text = "" };
	struct pl_watch_client *c;
	struct pl_watch_stats s;
	struct fixture f;

	setup(&f, 1, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		eq(pl_watch_open(&c, f.live, &bad[i], 0, &diag), -EINVAL, "request %zu", i);
	c = open_client(&f,
		(struct pl_watch_request){ .events = true, .flat = both, .form = PL_WATCH_RECORD });
	send_events(&f, 3, 1);
	pl_watch_tapped(f.live, PL_FLAT_PKT96, records, 2);
	pl_watch_tapped(f.live, PL_FLAT_MARK128, records, 4);
	pl_watch_tapped(f.live, PL_FLAT_SEG192, records, 1);
	drain(c, text, sizeof(text), 0);
	eq(count(text, "event 01"), 3);
	eq(count(text, "packet 00"), 2);
	eq(count(text, "mark 00"), 4);
	eq(count(text, "segment "), 0);
	pthread_mutex_lock(&f.live->lock);
	for (unsigned int i = 0; i < 900; i++) {
		pl_watch_tapped(f.live, PL_FLAT_PKT96, records, 10);
		pl_watch_tapped(f.live, PL_FLAT_MARK128, records, 10);
	}
	pthread_mutex_unlock(&f.live->lock);
	drain(c, text, sizeof(text), 0);
	ok(strstr(text, "\"count\":10832,\"cause\":\"queue_full\"") != NULL,
		"those of both kinds that were not kept: %.90s", text);
	ok(pl_watch_stats(f.live, 0, &s));
	eq(s.flat, both);
	eq(s.seen, 9);
	pl_watch_close(c);
	ok(!pl_watch_wants_tapped(f.live));
	pl_export_close(f.e);
}

int main(void)
{
	packets();
	every_kind();
	together();
	kinds_and_filters();
	refusals();
	slow();
	notices();
	recent();
	forms();
	threads();
	return pl_test_done();
}
