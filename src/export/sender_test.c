/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender with a scripted server, without a network: entries are delivered, and each is
 * accounted for, whatever the server does. tests/net/influx.py has a network. */
#include "export/test_sender.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/dead_letter.h"

/* ---- the sender ---- */

static void test_plain(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	restart(FINE);
	e = sender(&o);
	for (unsigned int i = 0; i < 100; i++) {
		offer(e, i * 100, 100);
		usleep(500);
	}
	ok(drained(e), "everything is sent");
	eq(stored(10000, 1) + dropped(e, PL_EXPORT_MEMORY), 10000, "each value once");
	ok(server.largest <= 4096 + 10, "batches are bounded");
	balanced(e, "fine");
	pl_export_close(e);
}

static void test_format(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_event events[5] = { { .value = 1 }, { .value = 2, .seq = 1 },
		{ .value = 3, .seq = 2 }, { .value = 4, .seq = 3 }, { .value = 5 } };
	struct pl_export *e;

	restart(FINE);
	e = sender(&o);
	pl_export_write_events(e, events, 5, pl_clock_mono_ns());
	ok(drained(e), "good ones are sent");
	eq(stored(10, 1), 2, "two of five");
	eq(dropped(e, PL_EXPORT_TIME), 1);
	eq(dropped(e, PL_EXPORT_EMPTY), 1);
	eq(dropped(e, PL_EXPORT_FORMAT), 1);
	balanced(e, "unformattable ones");
	pl_export_close(e);
}

static void test_away(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export_words words;
	struct pl_export *e;

	restart(AWAY);
	e = sender(&o);
	offer(e, 0, 300);
	ok(requests(5), "it tries again and again");
	eq(atomic_load(&e->stats.last_error), ECONNREFUSED);
	e->ops->words(e, &words);
	streq(words.trouble, "nobody there");
	become(FINE);
	ok(drained(e), "it comes back");
	eq(stored(300, 1), 300, "nothing is missing, nothing twice");
	eq(atomic_load(&e->stats.last_error), 0);
	become(AWAY);
	offer(e, 1000, 5000);
	balanced(e, "away");
	ok(dropped(e, PL_EXPORT_MEMORY) > 3000, "without a spool the oldest give way");
	ok(atomic_load(&e->stats.queued) >= 500, "the newest stay");
	become(FINE);
	ok(drained(e), "and come");
	eq(stored(VALUES, 1), 300 + 5000 - dropped(e, PL_EXPORT_MEMORY), "to the entry");
	eq(server.got[5999], 1, "the newest is among them");
	balanced(e, "back");
	pl_export_close(e);
}

static void test_busy(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	restart(BUSY);
	e = sender(&o);
	offer(e, 0, 10);
	ok(drained(e), "busy once");
	ok(server.back_ns - server.busy_ns >= 300 * MS, "Retry-After is kept");
	pl_export_close(e);
}

/* Without flushes, the sender's thread takes the batch when it is old enough. */
static void test_unflushed(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	restart(FINE);
	e = sender(&o);
	offer(e, 0, 3);
	ok(eventually(stored(3, 1) == 3), "a batch leaves without a flush");
	pl_export_close(e);
}

static void test_locked(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;
	uint64_t start;

	restart(LOCKED);
	e = sender(&o);
	start = pl_clock_mono_ns();
	offer(e, 0, 500);
	ok(drained(e), "credentials are read anew until they fit");
	ok(pl_clock_mono_ns() - start >= 40 * MS, "no sooner than after the stated time");
	eq(server.credentials, 2);
	eq(stored(500, 1), 500, "nothing is lost over it");
	balanced(e, "locked");
	pl_export_close(e);
}

/* Bad entries are found in each way a server refuses them. */
static void test_refused(void)
{
	static const struct {
		enum mode mode;
		const char *name;
		bool once; /* good ones are stored exactly once */
	} table[] = {
		{ REFUSES_BAD, "refuses", true },
		{ PARTIAL, "stores a part", false },
		{ DOUBTS_BAD, "answers 500", true },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *path = pl_test_fresh("refused");
		struct pl_sender_options o = quick(path);
		char letters[192];
		struct pl_export *e;

		restart(table[i].mode);
		e = sender(&o);
		offer(e, 0, 5000);
		ok(drained(e), "%s: all is settled", table[i].name);
		eq(dropped(e, PL_EXPORT_REJECTED), 5, "%s: the bad ones", table[i].name);
		eq(stored(5000, 255), 4995, "%s: all others are there", table[i].name);
		if (table[i].once)
			eq(stored(5000, 1), 4995, "%s: once", table[i].name);
		eq(pl_counter_read(&e->stats.dead_letters), 5);
		snprintf(letters, sizeof(letters), "%s/dead-letter.jsonl", path);
		eq(lines_with(letters, "\"entry\":\"v"), 5, "%s: letters", table[i].name);
		eq(lines_with(letters, "\"entry\":\"v1777\\n\"}"), 1);
		eq(lines_with(letters, "\"output\":\"test\",\"kind\":\"test\",\"status\":"), 5);
		balanced(e, table[i].name);
		pl_export_close(e);
	}
}

/* A server that answers 500 to one bad value proves that it works by taking a part of the batch; no
 * other batch is needed. */
static void test_doubted_last(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	restart(AWAY);
	e = sender(&o);
	offer(e, 0, 100);
	offer(e, 700, 100);
	offer(e, 1700, 100);
	become(DOUBTS_BAD);
	ok(drained(e), "bad ones that came last are found");
	eq(dropped(e, PL_EXPORT_REJECTED), 2, "both");
	eq(stored(VALUES, 1), 298, "all others are there, once");
	balanced(e, "bad ones last");
	pl_export_close(e);
}

/* The same with the bad value first, so that halving leads to it alone: the others of its batch go
 * first. */
static void test_doubted_first(void)
{
	for (int spooled = 0; spooled < 2; spooled++) {
		const char *where = spooled ? "spool" : "memory";
		struct pl_sender_options o = quick(spooled ? pl_test_fresh("first") : NULL);
		struct pl_export *e;

		restart(AWAY);
		e = sender(&o);
		offer(e, 777, 100);
		become(DOUBTS_BAD);
		ok(drained(e), "%s: a bad one that stands first is found", where);
		eq(dropped(e, PL_EXPORT_REJECTED), 1, "%s: it alone", where);
		eq(stored(VALUES, 1), 99, "%s: all others are there, once", where);
		become(AWAY);
		offer(e, 1777, 100);
		offer(e, 2777, 100);
		offer(e, 3777, 100);
		become(DOUBTS_BAD);
		ok(drained(e), "%s: first of several batches", where);
		eq(dropped(e, PL_EXPORT_REJECTED), 4, "%s: all of them", where);
		eq(stored(VALUES, 1), 4 * 99, "%s: and no other", where);
		balanced(e, where);
		pl_export_close(e);
	}
}

/* With in_order the bad value stays first until another batch comes; then it is found. */
static void test_doubted_in_order(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	o.in_order = true;
	restart(DOUBTS_BAD);
	e = sender(&o);
	offer(e, 777, 50);
	ok(requests(20), "a batch in order whose first is bad is tried again and again");
	eq(stored(VALUES, 1) + dropped(e, PL_EXPORT_REJECTED), 0, "none of it goes before another");
	offer(e, 0, 50);
	ok(drained(e), "the bad one is found when others come");
	eq(dropped(e, PL_EXPORT_REJECTED), 1, "it alone");
	eq(stored(VALUES, 1), 99, "all others are there, once");
	balanced(e, "bad one first, in order");
	pl_export_close(e);
}

static void test_all_bad(void)
{
	const char *path = pl_test_fresh("all-bad");
	struct pl_sender_options o = quick(path);
	struct pl_export *e;
	char letters[192];

	o.dead_letter_bytes = 20000;
	restart(ALL_BAD);
	e = sender(&o);
	offer(e, 0, 1000);
	ok(drained(e), "every entry is refused in the end");
	eq(dropped(e, PL_EXPORT_REJECTED), 1000);
	ok(server.requests < 1500, "bad ones together cost about a request each: %u",
		server.requests);
	ok(pl_counter_read(&e->stats.dead_letters) > 100 &&
			pl_counter_read(&e->stats.dead_letters) < 1000,
		"the dead-letter file is bounded");
	snprintf(letters, sizeof(letters), "%s/dead-letter.jsonl", path);
	eq(lines_with(letters, "bad? value"), pl_counter_read(&e->stats.dead_letters));
	balanced(e, "all bad");
	pl_export_close(e);
}

/* A killed process leaves half a line, which the next letter does not continue. */
static void test_torn_letter(void)
{
	static const struct pl_dead_letter letter = {
		.output = "o", .kind = "k", .status = 400, .answer = "no", .entry = "e", .len = 1
	};
	static const char half[] = "{\"time\":1.5,\"out";
	const char *path = pl_test_fresh("torn-letter");
	struct pl_dead_letters *letters;
	FILE *f = fopen(path, "w");
	char line[512];

	if (f == NULL || fputs(half, f) < 0 || fclose(f) != 0 ||
		pl_dead_letters_open(&letters, path, 4096, NULL) < 0)
		abort();
	ok(pl_dead_letters_put(letters, &letter) && pl_dead_letters_put(letters, &letter));
	pl_dead_letters_close(letters);
	f = fopen(path, "r");
	if (f == NULL)
		abort();
	ok(fgets(line, sizeof(line), f) != NULL && line[strcspn(line, "\n")] == '\n' &&
			strncmp(line, half, strlen(half)) == 0 && strlen(line) == strlen(half) + 1,
		"half a line stays as it is");
	for (int i = 0; i < 2; i++)
		ok(fgets(line, sizeof(line), f) != NULL && line[0] == '{' &&
				strcmp(line + strlen(line) - 2, "}\n") == 0,
			"behind it is a whole letter");
	ok(fgets(line, sizeof(line), f) == NULL, "and nothing else");
	fclose(f);
}

/* 500 to everything is an outage: nothing is dropped. */
static void test_ill(void)
{
	struct pl_sender_options o = quick(pl_test_fresh("ill"));
	struct pl_export *e;

	restart(ILL);
	e = sender(&o);
	offer(e, 0, 5000);
	ok(requests(60), "an ill server is tried on");
	eq(dropped(e, PL_EXPORT_REJECTED), 0, "and nothing is given up");
	balanced(e, "ill");
	become(FINE);
	ok(drained(e), "until it is well");
	eq(stored(5000, 1), 5000, "everything once");
	balanced(e, "well");
	pl_export_close(e);
}

static void test_limited(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	restart(LIMITED);
	e = sender(&o);
	offer(e, 0, 400);
	ok(drained(e), "413: smaller until it fits");
	eq(stored(400, 1), 400, "everything once");
	ok(server.requests < 40, "the limit is remembered: %u requests", server.requests);
	balanced(e, "limited");
	pl_export_close(e);
}

static void test_spool(bool in_order)
{
	struct pl_sender_options o = quick(pl_test_fresh("spool"));
	struct pl_export *e;

	o.in_order = in_order;
	restart(AWAY);
	e = sender(&o);
	offer(e, 0, 20000);
	ok(atomic_load(&e->stats.spooled) > 15000, "what memory cannot hold is on disk");
	balanced(e, "spooled");
	pl_export_finish(e);
	eq(atomic_load(&e->stats.queued), 0, "a stop puts away the rest");
	eq(atomic_load(&e->stats.spooled), 20000);
	balanced(e, "finished");
	pl_export_close(e);

	restart(FINE);
	e = sender(&o);
	eq(pl_counter_read(&e->stats.recovered), 20000, "another run finds it");
	offer(e, 20000, 200);
	ok(drained(e), "and delivers it");
	eq(stored(20200, 1), 20200, "each once");
	if (in_order)
		ok(server.ordered, "in order");
	balanced(e, "recovered");
	pl_export_close(e);
}

/* New entries need not wait until the spool is empty. */
static void test_newest(void)
{
	struct pl_sender_options o = quick(pl_test_fresh("newest"));
	struct pl_export *e;
	uint64_t left = 0;

	restart(AWAY);
	e = sender(&o);
	offer(e, 0, 50000);
	pl_export_finish(e);
	pl_export_close(e);
	restart(HANGS);
	o.spool_within_ns = UINT64_MAX; /* so that it stays in memory */
	e = sender(&o);
	offer(e, 100000, 100);
	pl_export_flush(e, pl_clock_mono_ns() + 1000 * MS, false);
	become(FINE);
	(void)eventually(stored(VALUES, 255) >= 1000);
	left = atomic_load(&e->stats.spooled);
	eq(server.got[100050], 1, "the newest came while %llu were spooled",
		(unsigned long long)left);
	ok(drained(e), "and the old ones after it");
	balanced(e, "newest");
	pl_export_close(e);
}

/* Entries accepted longer than spool_within_ns ago survive kill -9: in memory, in flight, behind
 * others in the spool. */
static void test_killed(enum mode mode, uint64_t spooled, bool in_order)
{
	struct pl_sender_options o = quick(pl_test_fresh("killed"));
	struct pl_export *e;
	int status = 0;
	pid_t child;

	o.in_order = in_order;
	o.memory_bytes = 1 << 20;
	o.spool_within_ns = 1000 * MS;
	if (spooled > 0) {
		restart(AWAY);
		e = sender(&o);
		offer(e, 0, spooled);
		pl_export_finish(e);
		pl_export_close(e);
	}
	restart(mode);
	child = fork();
	if (child == 0) {
		e = sender(&o);
		offer(e, spooled, 730);
		pl_export_flush(e, pl_clock_mono_ns() + 300 * MS, false);
		if (!requests(1))
			_exit(1);
		pl_export_flush(e, pl_clock_mono_ns() + 800 * MS, false);
		raise(SIGKILL);
	}
	waitpid(child, &status, 0);
	ok(WIFSIGNALED(status), "killed while the server %s", mode == AWAY ? "is away" : "hangs");
	restart(FINE);
	e = sender(&o);
	ok(drained(e), "another run delivers");
	eq(stored(spooled + 730, 255), spooled + 730, "all of it, %llu in the spool before",
		(unsigned long long)spooled);
	balanced(e, "killed");
	pl_export_close(e);
}

/* A server that never answers: batches still move to the spool, and a stop ends. */
static void test_hangs(bool in_order)
{
	struct pl_sender_options o = quick(pl_test_fresh("hangs"));
	struct pl_export *e;

	o.in_order = in_order;
	restart(HANGS);
	e = sender(&o);
	offer(e, 0, 200);
	pl_export_flush(e, pl_clock_mono_ns() + 1000 * MS, false);
	ok(requests(1), "a request hangs");
	offer(e, 200, 20000);
	ok(!was_aborted(), "who offers does not wait for it");
	balanced(e, "hanging");
	pl_export_finish(e);
	ok(was_aborted(), "nor does who stops: the request is given up");
	eq(atomic_load(&e->stats.spooled), 20200);
	pl_export_close(e);
	restart(FINE);
	e = sender(&o);
	ok(drained(e), "later it is delivered");
	eq(stored(20200, 1), 20200, "each once");
	if (in_order)
		ok(server.ordered, "in order, the one that hung first");
	pl_export_close(e);
}

static void test_spool_full(bool newest)
{
	struct pl_sender_options o = quick(pl_test_fresh("full"));
	struct pl_export *e;
	uint64_t gone;

	o.spool_bytes = 1 << 21;
	o.spool_drop_newest = newest;
	restart(AWAY);
	e = sender(&o);
	for (unsigned int i = 0; i < 6; i++)
		offer(e, 0, VALUES);
	gone = dropped(e, PL_EXPORT_SPOOL_FULL);
	ok(gone > 0, "a full spool drops and counts");
	ok(atomic_load(&e->stats.spooled_bytes) <= 1 << 21, "and keeps its size");
	balanced(e, "spool full");
	become(FINE);
	ok(drained(e), "what it held is delivered");
	eq(pl_counter_read(&e->stats.delivered), 6 * VALUES - dropped(e, PL_EXPORT_SPOOL_FULL));
	balanced(e, "spool full, then empty");
	pl_export_close(e);
}

/* A batch that the spool removed while it was being sent is not on disk, and not counted there. */
static void test_spool_full_end(void)
{
	struct pl_sender_options o = quick(pl_test_fresh("end"));
	struct pl_export *e;
	uint64_t left;

	o.spool_bytes = 1 << 21;
	restart(AWAY);
	e = sender(&o);
	offer(e, 0, 20000);
	ok(requests(1), "the oldest is being sent");
	for (unsigned int i = 0; i < 6; i++)
		offer(e, 0, VALUES);
	pl_export_finish(e);
	left = atomic_load(&e->stats.spooled);
	ok(left > 0, "the spool is full");
	balanced(e, "the end with a full spool");
	pl_export_close(e);
	restart(AWAY);
	e = sender(&o);
	eq(pl_counter_read(&e->stats.recovered), left, "the next one finds all of them");
	pl_export_finish(e);
	pl_export_close(e);
}

/* The disk is full: entries are counted, and stored again once there is room. */
static void test_disk_full(void)
{
	struct pl_sender_options o = quick(pl_test_fresh("disk"));
	struct rlimit before, tight = { .rlim_cur = 100000 };
	struct pl_export *e;
	uint64_t spooled, lost;

	restart(AWAY);
	o.batch_bytes = 4096;
	e = sender(&o);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	tight.rlim_max = before.rlim_max;
	/* Each file may have 100 kB: the first spool file fills up, later the next. */
	setrlimit(RLIMIT_FSIZE, &tight);
	offer(e, 0, 60000);
	balanced(e, "no room for a file");
	tight.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &tight);
	offer(e, 60000, 20000);
	lost = dropped(e, PL_EXPORT_NO_SPACE);
	ok(lost > 15000, "what finds no room is dropped by that cause");
	ok(atomic_load(&e->stats.last_error) != 0, "and it shows");
	balanced(e, "no room at all");
	setrlimit(RLIMIT_FSIZE, &before);
	spooled = atomic_load(&e->stats.spooled);
	offer(e, 80000, 20000);
	eq(dropped(e, PL_EXPORT_NO_SPACE), lost, "nothing is lost when there is room again");
	ok(atomic_load(&e->stats.spooled) > spooled + 15000, "the spool takes again");
	become(FINE);
	ok(drained(e), "and all of it comes");
	eq(stored(VALUES, 1), 100000 - lost, "to the entry");
	balanced(e, "room again");
	pl_export_close(e);
}

/* A mark is settled when all before it is delivered, on disk or dropped. */
static void test_marks(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	restart(HANGS);
	e = sender(&o);
	pl_export_mark(e);
	ok(pl_export_settled(e), "nothing came: nothing waits");
	offer(e, 0, 250);
	ok(pl_export_settled(e), "what comes behind a mark is none of its");
	pl_export_mark(e);
	ok(!pl_export_settled(e), "what waits in memory is not settled");
	pl_export_flush(e, pl_clock_mono_ns() + 1000 * MS, false);
	ok(requests(1) && !pl_export_settled(e), "nor what is being sent");
	become(FINE);
	ok(drained(e) && pl_export_settled(e), "what is delivered is");
	restart(AWAY);
	offer(e, 250, 1);
	pl_export_mark(e);
	pl_export_flush(e, pl_clock_mono_ns() + 1000 * MS, false);
	ok(requests(1), "a server that is away");
	offer(e, 251, 20000);
	ok(pl_counter_read(&e->stats.dropped[PL_EXPORT_MEMORY]) > 0, "costs entries");
	ok(!pl_export_settled(e), "the one that is being sent stays, and is before them all");
	become(FINE);
	ok(drained(e) && pl_export_settled(e), "until the server is back");
	pl_export_close(e);
}

/* A batch that steps aside keeps the mark unsettled. */
static void test_mark_aside(void)
{
	struct pl_sender_options o = quick(NULL);
	struct pl_export *e;

	o.memory_bytes = 1 << 20;
	o.doubt_after = 1;
	restart(ILL);
	e = sender(&o);
	offer(e, 0, 100);
	pl_export_mark(e);
	offer(e, 100, 300);
	pl_export_flush(e, pl_clock_mono_ns() + 1000 * MS, false);
	ok(requests(8), "all of them were doubted, and stood behind others");
	ok(!pl_export_settled(e), "the first ones are not settled");
	become(FINE);
	ok(drained(e) && pl_export_settled(e), "and then they are");
	pl_export_close(e);
}

static void test_mark_spooled(void)
{
	struct pl_sender_options o = quick(pl_test_fresh("marked"));
	struct pl_export *e;

	restart(AWAY);
	e = sender(&o);
	offer(e, 0, 20000);
	pl_export_mark(e);
	ok(!pl_export_settled(e), "some is on disk, and some in memory");
	pl_export_flush(e, pl_clock_mono_ns() + 2000 * MS, false);
	ok(pl_export_settled(e), "all is on the device");
	eq(pl_counter_read(&e->stats.delivered), 0, "though nothing is delivered");
	pl_export_finish(e);
	pl_export_close(e);
}

static void test_kind(void)
{
	struct pl_sender_options o = quick(pl_test_fresh("kind"));
	struct pl_export *e, *second = NULL;
	struct pl_diag diag = { .text = "" };

	restart(AWAY);
	e = sender(&o);
	offer(e, 0, 10);
	eq(pl_sender_open(&second, &o, &ops, NULL, 0, &diag), -EBUSY, "one writer for a spool");
	pl_export_finish(e);
	pl_export_close(e);
	eq(pl_sender_open(&second, &o, &other_ops, NULL, 0, &diag), -EINVAL,
		"entries of another kind are not sent anywhere");
	ok(strstr(diag.text, "another kind") != NULL, "%s", diag.text);
}

int main(void)
{
	if (!pl_test_folder_make())
		return EXIT_FAILURE;
	pthread_mutex_init(&server.lock, NULL);
	pthread_cond_init(&server.wake, NULL);
	test_plain();
	test_format();
	test_away();
	test_busy();
	test_unflushed();
	test_locked();
	test_refused();
	test_doubted_last();
	test_doubted_first();
	test_doubted_in_order();
	test_all_bad();
	test_torn_letter();
	test_ill();
	test_limited();
	test_spool(false);
	test_spool(true);
	test_newest();
	test_marks();
	test_mark_aside();
	test_mark_spooled();
	for (unsigned int i = 0; i < 8; i++)
		test_killed((i & 1) != 0 ? AWAY : HANGS, (i & 2) != 0 ? 500 : 0, (i & 4) != 0);
	test_hangs(false);
	test_hangs(true);
	test_spool_full(false);
	test_spool_full(true);
	test_spool_full_end();
	test_disk_full();
	test_kind();
	pl_test_remove(pl_test_folder);
	return pl_test_done();
}
