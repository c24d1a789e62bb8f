/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Histories: what was put comes back, in order and by key, after a restart, after the writer was
 * killed at any moment, and while it is overwritten; what has another shape or another writer is
 * refused and left alone.
 */
#include "memory/history.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/test.h"

static char folder[80], path_of_file[112];

static const char *file(const char *name)
{
	snprintf(path_of_file, sizeof(path_of_file), "%s/%s", folder, name);
	return path_of_file;
}

static void empty_folder(void)
{
	static const char *const files[] = { "events.region", "paths.region", "hops.region",
		"flows.region", "queues.region", "drops.region" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(file(files[i]));
	rmdir(folder);
}

static const struct pl_history_options sizes = {
	.slots = { 256, 512, 4096, 4096, 4096, 1024 },
	.seed = 5, /* drawn, one run in a hundred would lose a flow to others */
};

/* Everything of record number i follows from it: a path of i mod 9 hops. */
static void make_path(uint64_t i, struct pl_path *p, struct pl_hop *hops)
{
	*p = (struct pl_path){
		.ts_ns = 1000 + i,
		.report_id = 0x5000 + i,
		.node = i % 7,
		.drop_reason = (uint8_t)(i % 3),
		.flags = i % 4 == 0 ? PL_FLAG_DROPPED : 0,
		.hop_count = (uint8_t)(i % 9),
		.sport = (uint16_t)(i % 50),
		.dport = 80,
		.proto = 17,
		.record_version = 1,
		.latency_ns = i * i,
		.present = PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_node |
			   PL_PATH_HAS_drop_reason | PL_PATH_HAS_latency_ns,
	};
	for (unsigned int k = 0; k < p->hop_count; k++) {
		hops[k] = (struct pl_hop){
			.ts_ns = p->ts_ns,
			.report_id = p->report_id,
			.node = i % 7 + k,
			.egress_port = 10 + k,
			.queue = (uint16_t)(i % 2),
			.index = (uint8_t)k,
			.queue_depth = (uint32_t)(i * 3 + k),
			.record_version = 1,
			.present = PL_HOP_HAS_node | PL_HOP_HAS_egress_port | PL_HOP_HAS_queue |
				   PL_HOP_HAS_queue_depth,
		};
	}
}

static void make_event(uint64_t i, struct pl_event *e)
{
	*e = (struct pl_event){ .ts_ns = 1000 + i,
		.event = PL_EVENT_QUEUE_DEPTH,
		.node = i % 7,
		.value = i * 11,
		.record_version = 1,
		.present = PL_EVENT_HAS_node | PL_EVENT_HAS_value };
}

/* Paths number from to from + n - 1. */
static void put_paths(struct pl_history *h, uint64_t from, uint32_t n)
{
	struct pl_record_batch b;

	if (pl_record_batch_init(&b, 64, 1024) < 0)
		abort();
	while (n > 0) {
		uint32_t m = n < 64 ? n : 64;

		pl_record_batch_clear(&b);
		for (uint32_t i = 0; i < m; i++) {
			/* A gap, as a filter leaves it. */
			b.n_hops += b.n_hops > 0;
			b.first_hop[i] = b.n_hops;
			make_path(from + i, &b.paths[i], &b.hops[b.n_hops]);
			b.n_hops += b.paths[i].hop_count;
		}
		b.n_paths = m;
		pl_history_put_paths(h, &b);
		from += m;
		n -= m;
	}
	pl_record_batch_done(&b);
}

static void put_events(struct pl_history *h, uint64_t from, uint32_t n)
{
	struct pl_event events[64];

	while (n > 0) {
		uint32_t m = n < 64 ? n : 64;

		for (uint32_t i = 0; i < m; i++)
			make_event(from + i, &events[i]);
		pl_history_put_events(h, events, m);
		from += m;
		n -= m;
	}
}

static void put(struct pl_history *h, uint64_t from, uint32_t n)
{
	put_paths(h, from, n);
	put_events(h, from, n);
}

static struct pl_history *begin(const struct pl_history_options *options)
{
	struct pl_diag diag = { .text = "" };
	struct pl_history *h;

	if (pl_history_begin(&h, folder, options, &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
	return h;
}

static struct pl_history *reader_of(const char *path)
{
	struct pl_diag diag = { .text = "" };
	struct pl_history *h;

	if (pl_history_open(&h, path, &diag) < 0) {
		printf("# %s\n", diag.text);
		abort();
	}
	return h;
}

struct tally {
	uint64_t records, hops, first, wrong, gaps;
};

static bool is_right(const struct pl_history_record *rec)
{
	struct pl_hop hops[16];
	struct pl_event event;
	struct pl_path path;

	if (rec->kind == PL_KIND_EVENT) {
		make_event(rec->number, &event);
		return memcmp(&event, &rec->event, sizeof(event)) == 0;
	}
	make_path(rec->number, &path, hops);
	return memcmp(&path, &rec->path, sizeof(path)) == 0 &&
	       (rec->n_hops == 0 || rec->n_hops == path.hop_count) &&
	       memcmp(hops, rec->hops, rec->n_hops * sizeof(hops[0])) == 0;
}

/* Whatever is there now. */
static void drain(struct pl_history_reader *r, struct tally *t)
{
	static _Thread_local struct pl_history_record rec;
	uint64_t next = UINT64_MAX;

	while (pl_history_next(r, &rec)) {
		if (t->records++ == 0)
			t->first = rec.number;
		t->gaps += next != UINT64_MAX && rec.number != next;
		next = rec.number + 1;
		t->hops += rec.n_hops;
		t->wrong += !is_right(&rec);
	}
}

static uint64_t hops_until(uint64_t from, uint64_t to)
{
	uint64_t sum = 0;

	for (uint64_t i = from; i < to; i++)
		sum += i % 9;
	return sum;
}

static void comes_back(void)
{
	struct pl_history *w = begin(&sizes), *h;
	struct pl_history_reader r;
	struct tally t = { 0 };

	put(w, 0, 200);
	h = reader_of(folder);
	eq(pl_history_reader_init(&r, h, PL_HISTORY_PATHS, 0, 0), 0);
	drain(&r, &t);
	ok(t.records == 200 && t.hops == hops_until(0, 200) && t.wrong == 0,
		"all paths with their hops, while it is written");
	put(w, 200, 5);
	drain(&r, &t);
	ok(t.records == 205 && t.wrong == 0 && r.without_hops == 0, "and those that come");
	eq(pl_history_close(w), 0);
	w = begin(&sizes);
	put(w, 205, 20);
	drain(&r, &t);
	ok(t.records == 225 && t.hops == hops_until(0, 225) && t.wrong == 0,
		"those of the next writer, in the same reader");
	ok(!pl_history_replaced(h), "the files are the same");
	t = (struct tally){ 0 };
	eq(pl_history_reader_init(&r, h, PL_HISTORY_EVENTS, 0, 100), 0);
	drain(&r, &t);
	ok(t.first == 100 && t.records == 125 && t.wrong == 0, "events from a number on");
	eq(-pl_history_reader_init(&r, h, PL_HISTORY_FLOWS, 0, 0), ENOENT, "flows are no list");
	eq(-pl_history_reader_init(&r, h, PL_HISTORY_HOPS, 1, 0), ERANGE, "there is one list");
	pl_history_close(h);
	h = reader_of(file("events.region"));
	t = (struct tally){ 0 };
	eq(pl_history_reader_init(&r, h, PL_HISTORY_EVENTS, 0, 0), 0, "one file");
	drain(&r, &t);
	ok(t.records == 225 && t.wrong == 0);
	pl_history_close(h);
	pl_history_close(w);
	empty_folder();
}

static void wraps(void)
{
	struct pl_history *w = begin(&sizes), *h;
	struct pl_history_reader r;
	struct tally t = { 0 };

	h = reader_of(folder);
	eq(pl_history_reader_init(&r, h, PL_HISTORY_PATHS, 0, 0), 0);
	put(w, 0, 10);
	drain(&r, &t);
	put(w, 10, 990);
	drain(&r, &t);
	ok(t.records + r.list.overrun == 1000 && r.list.overrun == 1000 - 10 - 512,
		"what was overwritten unread is counted");
	ok(t.wrong == 0 && r.list.damaged == 0, "nothing is wrong");
	eq(r.without_hops, 0, "there are hops for all paths");
	pl_history_close(h);
	pl_history_close(w);
	empty_folder();
	{
		struct pl_history_options few = sizes;

		few.slots[PL_HISTORY_HOPS] = 300;
		w = begin(&few);
		put(w, 0, 400);
		h = reader_of(folder);
		t = (struct tally){ 0 };
		eq(pl_history_reader_init(&r, h, PL_HISTORY_PATHS, 0, 0), 0);
		drain(&r, &t);
		ok(t.records == 400 && t.wrong == 0, "paths outlive their hops");
		ok(r.without_hops > 250 && t.hops >= 290 && t.hops < 300 + 2 * 64,
			"and it is told: %" PRIu64 " without, %" PRIu64 " hops", r.without_hops,
			t.hops);
		pl_history_close(h);
		pl_history_close(w);
		empty_folder();
	}
}

static void asked_by_key(void)
{
	static struct pl_history_record rec;
	struct pl_history_flow values[50];
	struct pl_key_write_result results[50];
	struct pl_key keys[50];
	struct pl_history *w = begin(&sizes), *h;
	struct pl_hop hops[16], hop;
	unsigned int good = 0;
	struct pl_path path;
	uint64_t drops = 0, drops_of_two = 0;
	double total;

	put(w, 0, 400);
	h = reader_of(folder);
	for (uint64_t i = 0; i < 50; i++) {
		make_path(350 + i, &path, hops);
		path.ts_ns = path.report_id = 1; /* not of the key */
		keys[i] = pl_history_flow_key(h, &path);
	}
	pl_history_flows(h, keys, 50, results, values);
	for (uint64_t i = 0; i < 50; i++) {
		make_path(350 + i, &path, hops);
		if (results[i].answer != PL_FOUND)
			continue;
		pl_history_flow_record(h, &values[i], &rec);
		good += memcmp(&rec.path, &path, sizeof(path)) == 0 &&
			rec.n_hops == path.hop_count &&
			memcmp(rec.hops, hops, rec.n_hops * sizeof(hops[0])) == 0;
	}
	eq(good, 50, "every flow's last path, with all of up to eight hops");
	path.dport = 81;
	keys[0] = pl_history_flow_key(h, &path);
	pl_history_flows(h, keys, 1, results, values);
	eq(results[0].answer, PL_NOT_FOUND, "a flow that never was");

	keys[0] = pl_history_queue_key(h, 3, PL_HISTORY_ANY, PL_HISTORY_ANY);
	pl_history_queues(h, keys, 1, results, &hop);
	ok(results[0].answer == PL_FOUND && hop.node == 3 && hop.report_id == 0x5000 + 395,
		"the last hop of a node");
	keys[0] = pl_history_queue_key(h, 3, 10, 0);
	pl_history_queues(h, keys, 1, results, &hop);
	/* The last even number with node 3 first in the path: 394 has rest 2, 388 and 381... */
	ok(results[0].answer == PL_FOUND && hop.node == 3 && hop.egress_port == 10 &&
			hop.queue == 0 && hop.report_id == 0x5000 + 388,
		"of a queue: %#llx", (unsigned long long)hop.report_id);
	keys[0] = pl_history_queue_key(h, 3, 10, 5);
	pl_history_queues(h, keys, 1, results, &hop);
	eq(results[0].answer, PL_NOT_FOUND, "of one that never was");

	for (uint64_t i = 0; i < 400; i++) {
		drops += i % 4 == 0 && i % 7 == 4;
		drops_of_two += i % 4 == 0 && i % 7 == 4 && i % 3 == 2;
	}
	total = pl_history_drops_total(h);
	ok(total == 200, "a hundred drops, by node and by reason");
	eq(pl_history_drops(h, pl_history_drops_key(h, 4, PL_HISTORY_ANY), total).value, drops,
		"of a node");
	eq(pl_history_drops(h, pl_history_drops_key(h, 4, 2), total).value, drops_of_two,
		"for a reason");
	eq(pl_history_drops(h, pl_history_drops_key(h, 8, 2), total).value, 0, "of another");
	pl_history_close(h);
	pl_history_close(w);
	empty_folder();
}

static void refused(void)
{
	struct pl_history *w = begin(&sizes), *other = NULL;
	struct pl_history_options changed = sizes, no_hops = { .slots = { 0, 64 } };
	struct pl_diag diag = { .text = "" };

	eq(-pl_history_begin(&other, folder, &sizes, &diag), EBUSY, "a second writer");
	ok(strstr(diag.text, "is being written by process") != NULL, "is told who writes: %s",
		diag.text);
	pl_history_close(w);
	changed.slots[PL_HISTORY_HOPS] *= 2;
	eq(-pl_history_begin(&other, folder, &changed, &diag), EINVAL, "another size");
	ok(strstr(diag.text, "hops.region was made for another size than 8192") != NULL, "%s",
		diag.text);
	eq(access(file("events.region"), F_OK), 0, "what was there stays");
	eq(-pl_history_begin(&other, folder, &no_hops, &diag), EINVAL, "paths without hops");

	unlink(file("events.region"));
	eq(-pl_history_begin(&other, folder, &changed, &diag), EINVAL);
	ok(access(file("events.region"), F_OK) < 0 && access(file("paths.region"), F_OK) == 0,
		"what was made on the way is taken away, what was there is not");
	unlink(file("paths.region"));
	{
		char from[112];

		snprintf(from, sizeof(from), "%s", file("hops.region"));
		eq(rename(from, file("paths.region")), 0);
	}
	eq(pl_history_open(&other, folder, &diag), 0);
	ok(pl_history_region(other, PL_HISTORY_PATHS) == NULL &&
			strstr(pl_history_trouble(other, PL_HISTORY_PATHS),
				"no records of a history") != NULL,
		"among others: %s", pl_history_trouble(other, PL_HISTORY_PATHS));
	pl_history_close(other);
	eq(truncate(file("paths.region"), 9000), 0);
	for (unsigned int s = PL_HISTORY_FLOWS; s < PL_HISTORY_MAX; s++) {
		char name[32];

		snprintf(name, sizeof(name), "%s.region", pl_history_store_name(s));
		unlink(file(name));
	}
	eq(-pl_history_open(&other, folder, &diag), ERANGE, "nothing but a cut file: %s",
		diag.text);
	ok(strstr(diag.text, "paths.region") != NULL);
	empty_folder();
	eq(-pl_history_open(&other, folder, &diag), ENOENT, "nothing: %s", diag.text);
	eq(mkdir(folder, 0700), 0);
	eq(-pl_history_open(&other, folder, &diag), ENOENT, "an empty folder: %s", diag.text);
	eq(rmdir(folder), 0);
	eq(-pl_history_begin(&other, "/proc/no/such", &sizes, &diag), ENOENT, "no place: %s",
		diag.text);
}

/* ---- one file is damaged ---- */

static char told[3][512];
static unsigned int n_told;

static void note(const char *text)
{
	snprintf(told[n_told++ % 3], sizeof(told[0]), "%s", text);
}

static void cut(const char *name, off_t bytes)
{
	eq(truncate(file(name), bytes), 0, "%s is cut", name);
}

/* Events, and queues, of the first hundred reports. */
static void rest_is_read(unsigned int trouble)
{
	struct pl_history *h = reader_of(folder);
	struct pl_key_write_result result;
	struct tally tally = { 0 };
	struct pl_history_reader r;
	struct pl_key key;
	struct pl_hop hop;

	for (unsigned int s = 0; s < PL_HISTORY_MAX; s++)
		eq(pl_history_trouble(h, s) != NULL, s == trouble, "%s", pl_history_store_name(s));
	ok(trouble == PL_HISTORY_MAX ||
			strstr(pl_history_trouble(h, trouble), "paths.region") != NULL,
		"with its name");
	eq(pl_history_reader_init(&r, h, PL_HISTORY_EVENTS, 0, 0), 0);
	drain(&r, &tally);
	ok(tally.records == 100 && tally.wrong == 0, "events are read");
	key = pl_history_queue_key(h, 3, PL_HISTORY_ANY, PL_HISTORY_ANY);
	pl_history_queues(h, &key, 1, &result, &hop);
	eq(result.answer, PL_FOUND, "queues are asked");
	pl_history_close(h);
}

static void one_is_damaged(void)
{
	struct pl_history_options options = sizes, changed = sizes;
	struct pl_history *w = begin(&sizes), *h;
	struct pl_diag diag = { .text = "" };
	struct pl_history_reader r;
	struct stat st;

	options.tell = changed.tell = note;
	put(w, 0, 100);
	pl_history_close(w);
	cut("paths.region", 9000);
	rest_is_read(PL_HISTORY_PATHS);

	/* Another file's fault: it has its name back. */
	changed.slots[PL_HISTORY_QUEUES] *= 2;
	eq(-pl_history_begin(&w, folder, &changed, &diag), EINVAL, "%s", diag.text);
	ok(n_told == 0 && stat(file("paths.region"), &st) == 0 && st.st_size == 9000 &&
			access(file("paths.region.damaged"), F_OK) < 0,
		"nothing was done");

	eq(pl_history_begin(&w, folder, &options, &diag), 0, "a writer goes on: %s", diag.text);
	eq(n_told, 1, "is told once");
	ok(strstr(told[0], "paths.region: the file is truncated") != NULL &&
			strstr(told[0], "it was renamed to") != NULL &&
			strstr(told[0], "paths.region.damaged") != NULL,
		"%s", told[0]);
	ok(stat(file("paths.region.damaged"), &st) == 0 && st.st_size == 9000,
		"nothing is deleted");
	put_paths(w, 100, 10);
	h = reader_of(folder);
	ok(pl_history_trouble(h, PL_HISTORY_PATHS) == NULL &&
			pl_history_reader_init(&r, h, PL_HISTORY_PATHS, 0, 0) == 0 &&
			pl_append_head(r.list.a, 0) == 10,
		"a new list");
	pl_history_close(h);
	pl_history_close(w);
	rest_is_read(PL_HISTORY_MAX);

	/* A second time, by a header that says nothing and by one that was never written. */
	cut("paths.region", 0);
	cut("paths.region", 8192);
	eq(pl_history_begin(&w, folder, &options, &diag), 0);
	ok(n_told == 2 && strstr(told[1], "paths.region.damaged-2") != NULL, "%s", told[1]);
	pl_history_close(w);
	ok(stat(file("paths.region.damaged"), &st) == 0 && st.st_size == 9000,
		"the first one stays");
	unlink(file("paths.region.damaged"));
	unlink(file("paths.region.damaged-2"));

	/* One of a newer version is none of ours to put away. */
	{
		int fd = open(file("paths.region"), O_WRONLY);

		eq(pwrite(fd, "\x02", 1, 8), 1);
		close(fd);
	}
	eq(-pl_history_begin(&w, folder, &options, &diag), EPROTO, "%s", diag.text);
	eq(n_told, 2);
	empty_folder();
}

/* A file of a folder by itself. */
static void by_file(void)
{
	struct pl_history *w = begin(&sizes), *h;
	struct pl_diag diag = { .text = "" };

	put(w, 0, 400);
	pl_history_close(w);
	eq(pl_history_open(&h, file("drops.region"), &diag), 0, "drops by the file: %s", diag.text);
	ok(pl_history_region(h, PL_HISTORY_DROPS) != NULL && pl_history_drops_total(h) == 200,
		"as from the folder");
	pl_history_close(h);
	empty_folder();
}

static void is_replaced(void)
{
	struct pl_history *w = begin(&sizes), *h = reader_of(folder);

	pl_history_close(w);
	empty_folder();
	ok(pl_history_replaced(h), "files that are gone");
	w = begin(&sizes);
	ok(pl_history_replaced(h), "or others");
	pl_history_close(h);
	pl_history_close(w);
	empty_folder();
}

/* ---- killed, and raced ---- */

/* Goes on with both lists where they end until it is killed. */
static _Noreturn void write_until_killed(
	const struct pl_history_options *options, uint64_t paths, uint64_t events, int begun)
{
	struct pl_history *h = begin(options);

	for (;; paths += 7, events += 5) {
		put_paths(h, paths, 7);
		put_events(h, events, 5);
		(void)!write(begun, "", 1);
	}
}

static void killed(void)
{
	uint64_t wrong = 0, paths = 0, events = 0, lost = 0;
	struct pl_history_reader r;
	struct pl_history *h;
	char byte;

	for (unsigned int round = 0; round < 10; round++) {
		struct tally of_paths = { 0 }, of_events = { 0 };
		int begun[2];
		pid_t child;

		if (pipe(begun) < 0)
			abort();
		child = fork();
		if (child == 0)
			write_until_killed(&sizes, paths, events, begun[1]);
		(void)!read(begun[0], &byte, 1);
		usleep(100 * (1 + round * 3));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(begun[0]);
		close(begun[1]);
		h = reader_of(folder);
		eq(pl_history_reader_init(&r, h, PL_HISTORY_PATHS, 0, 0), 0);
		drain(&r, &of_paths);
		wrong += of_paths.wrong + of_paths.gaps + r.list.damaged;
		lost += r.without_hops;
		paths = r.list.cursor;
		eq(pl_history_reader_init(&r, h, PL_HISTORY_EVENTS, 0, 0), 0);
		drain(&r, &of_events);
		wrong += of_events.wrong + of_events.gaps + r.list.damaged;
		events = r.list.cursor;
		pl_history_close(h);
	}
	printf("# %" PRIu64 " paths, %" PRIu64 " events\n", paths, events);
	ok(paths >= 70 && events >= 50);
	eq(wrong, 0, "ten writers killed: every entry is whole, and in its place");
	eq(lost, 0, "and every path has its hops");
	empty_folder();
}

struct race {
	struct pl_history *h;
	enum pl_history_store store;
	uint64_t total;
	struct tally tally;
	uint64_t begun, overrun, damaged;
};

static void *race_reader(void *arg)
{
	struct race *race = arg;
	struct pl_history_reader r;

	if (pl_history_reader_init(&r, race->h, race->store, 0, 0) < 0)
		abort();
	/* On a busy machine the oldest entries may be gone by now. */
	race->begun = r.list.cursor;
	while (r.list.cursor < race->total) {
		drain(&r, &race->tally);
		sched_yield();
	}
	drain(&r, &race->tally);
	race->overrun = r.list.overrun;
	race->damaged = r.list.damaged;
	return NULL;
}

static void raced(void)
{
	enum { N = 30000 };
	struct pl_history *w = begin(&sizes);
	struct race races[2] = { { reader_of(folder), PL_HISTORY_PATHS, N, { 0 }, 0, 0, 0 },
		{ reader_of(folder), PL_HISTORY_EVENTS, N, { 0 }, 0, 0, 0 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, race_reader, &races[i]);
	for (uint64_t i = 0; i < N; i += 50) {
		put(w, i, 50);
		if (i % 400 == 0)
			sched_yield();
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		printf("# %" PRIu64 " read, %" PRIu64 " overrun\n", races[i].tally.records,
			races[i].overrun);
		eq(races[i].begun + races[i].tally.records + races[i].overrun, N,
			"read and overrun are all since it began");
		ok(races[i].tally.wrong == 0 && races[i].damaged == 0, "none torn, none another's");
		pl_history_close(races[i].h);
	}
	pl_history_close(w);
	empty_folder();
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%.40s/pl-history-%ld", tmp != NULL ? tmp : "/tmp",
		(long)getpid());
	comes_back();
	wraps();
	asked_by_key();
	refused();
	one_is_damaged();
	by_file();
	is_replaced();
	killed();
	raced();
	return pl_test_done();
}
