/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers over stores in memory: everything signalled is handed out once, lists in order, whatever
 * the pool; signals that mean nothing are counted. */
#include "remote/workers.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "memory/append.h"
#include "memory/key_write.h"
#include "memory/region.h"

#define LISTS   8
#define ENTRIES 20000u
#define SLOTS   64

static const struct pl_store_params params[] = {
	{ .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.append = { .slots = 1u << 16,
			.lists = LISTS,
			.entry_bytes = 4,
			.batch_max = 16,
			.sealed = 1 } },
	{ .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.key_write = { .slots = SLOTS, .value_bytes = 4, .copies = 1 } },
	{ .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.counters = { .width = 16, .rows = 2 } },
};

static struct pl_worker_store stores[3];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next[LISTS], wrong, values, cells;

static void out(void *arg, const struct pl_worker_item *items, uint32_t n)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_worker_item *x = &items[i];
		uint32_t word = 0;

		if (x->len == 4)
			memcpy(&word, x->bytes, 4);
		if (x->store == 0) {
			wrong += x->index >= LISTS || word != next[x->index] || x->number != word;
			next[x->index & (LISTS - 1)]++;
		} else if (x->store == 1) {
			values++;
			wrong += word != 0x01020304;
		} else {
			cells++;
			wrong += x->bytes != NULL || x->index != 9;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void make_stores(void)
{
	uint64_t bytes;

	for (int i = 0; i < 3; i++) {
		free(stores[i].base);
		ok(pl_store_bytes(&params[i], &bytes, NULL) == 0, "a store");
		stores[i] = (struct pl_worker_store){ params[i], aligned_alloc(64, bytes), NULL };
		memset(stores[i].base, 0, bytes);
	}
	memset(next, 0, sizeof(next));
	wrong = values = cells = 0;
}

static uint32_t handed_out(uint32_t list)
{
	uint32_t n;

	pthread_mutex_lock(&lock);
	n = next[list];
	pthread_mutex_unlock(&lock);
	return n;
}

/* held: the workers hand nothing out while the first half is signalled, so that queues are full. */
static void test_lists(unsigned int n, uint32_t queue, bool held)
{
	const struct pl_workers_options options = {
		.n = n, .queue = queue, .stores = stores, .n_stores = 3, .out = out
	};
	struct pl_workers *w = NULL;
	struct pl_workers_stats s;
	struct pl_append a;
	uint64_t sum = 0;

	make_stores();
	if (held)
		pthread_mutex_lock(&lock);
	ok(pl_append_init(&a, &params[0], stores[0].base) == 0 &&
			pl_workers_open(&w, &options, NULL) == 0,
		"%u workers", n);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		const uint32_t list = i % LISTS, entry = i / LISTS;

		(void)pl_append_put(&a, list, &entry, 1);
		pl_workers_signal(w, 0, PL_APPEND << 28 | list, pl_clock_mono_ns());
		if (i % 5000 == 0)
			usleep(2000); /* they may sleep */
		if (held && i == ENTRIES / 2)
			pthread_mutex_unlock(&lock);
	}
	/* Whoever found the queue full had its entry left to a later signal. */
	for (uint32_t i = 0; held && i < LISTS; i++)
		(void)eventually(handed_out(i) == ENTRIES / LISTS,
			pl_workers_signal(w, 0, PL_APPEND << 28 | i, pl_clock_mono_ns()));
	pl_workers_close(w, &s);
	sum = 0;
	for (uint32_t i = 0; i < LISTS; i++)
		sum += next[i];
	eq(sum, ENTRIES, "every entry was handed out");
	eq(wrong, 0, "each once, in its order");
	eq(s.items, ENTRIES, "and counted");
	eq(s.signals, s.taken + s.full + s.strange, "every signal is accounted for");
	ok(held ? s.full > 0 : s.full == 0 || queue < ENTRIES, "full: %u", (unsigned int)s.full);
	eq(pl_hist_count(&s.latency_ns), s.taken, "and has its latency");
	ok(s.awoken <= s.signals, "awoken: %u", (unsigned int)s.awoken);
}

/* ---- sleep ---- */

static sem_t taken;

static void out_one(void *arg, const struct pl_worker_item *items, uint32_t n)
{
	(void)arg;
	(void)items;
	(void)n;
	sem_post(&taken);
}

/* Ten signals with pauses between them, each waited for, so that one that woke nobody is seen. How
 * many found the worker asleep. */
static uint64_t wakes(uint32_t pause_ms)
{
	const struct pl_workers_options options = {
		.n = 1, .stores = stores, .n_stores = 3, .out = out_one
	};
	struct pl_workers *w = NULL;
	struct pl_workers_stats s;
	struct timespec until;
	uint32_t reached = 0;

	ok(sem_init(&taken, 0, 0) == 0 && pl_workers_open(&w, &options, NULL) == 0, "a worker");
	for (uint32_t i = 0; i < 10; i++) {
		pl_workers_signal(w, 2, PL_COUNTERS << 28 | 9, pl_clock_mono_ns());
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += PL_TEST_PATIENCE_S;
		reached += sem_timedwait(&taken, &until) == 0;
		usleep(pause_ms * 1000);
	}
	pl_workers_close(w, &s);
	eq(reached, 10, "each signal reaches its worker");
	ok(s.awoken <= s.signals, "asleep or not: %u awoken", (unsigned int)s.awoken);
	sem_destroy(&taken);
	return s.awoken;
}

/* However busy the machine is, a worker sleeps after one of the pauses. */
static void test_wake(void)
{
	uint64_t awoken = 0;

	for (uint32_t ms = 1; ms <= 8 || (ms <= 8192 && awoken == 0); ms *= 2)
		awoken += wakes(ms);
	ok(awoken > 0, "some signals find it asleep");
}

static void test_others(void)
{
	const struct pl_workers_options options = {
		.n = 2, .stores = stores, .n_stores = 3, .out = out
	};
	static const struct {
		uint32_t store, imm;
	} strange[] = { { 0, PL_KEY_WRITE << 28 }, { 0, PL_APPEND << 28 | LISTS },
		{ 1, PL_KEY_WRITE << 28 | SLOTS }, { 1, 0 }, { 2, 0xffffffff } };
	struct pl_key_write kw;
	struct pl_workers *w = NULL;
	struct pl_workers_stats s;
	struct pl_key key;

	make_stores();
	ok(pl_key_write_init(&kw, &params[1], stores[1].base) == 0 &&
			pl_workers_open(&w, &options, NULL) == 0,
		"two workers");
	key = pl_key_write_key(&kw, "k", 1);
	pl_key_write_put(&kw, key, &(uint32_t){ 0x01020304 }, 1);
	for (uint32_t i = 0; i < SLOTS; i++)
		pl_workers_signal(w, 1, PL_KEY_WRITE << 28 | i, pl_clock_mono_ns());
	pl_workers_signal(w, 2, PL_COUNTERS << 28 | 9, pl_clock_mono_ns());
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		pl_workers_signal(w, strange[i].store, strange[i].imm, pl_clock_mono_ns());
	pl_workers_close(w, &s);
	eq(values, 1, "the value that is there");
	eq(s.damaged, SLOTS - 1, "the slots that are empty");
	eq(cells, 1, "a cell is told by its number");
	eq(s.strange, sizeof(strange) / sizeof(strange[0]), "what means nothing");
	eq(wrong, 0, "nothing else");
}

/* ---- epochs ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static uint32_t got[SLOTS];
static _Atomic uint32_t entered;

/* Held up as long as the gate is closed. */
static void out_epochs(void *arg, const struct pl_worker_item *items, uint32_t n)
{
	(void)arg;
	atomic_fetch_add(&entered, 1);
	pthread_mutex_lock(&gate);
	for (uint32_t i = 0; i < n; i++)
		memcpy(&got[items[i].index], items[i].bytes, 4);
	pthread_mutex_unlock(&gate);
}

/* Without a key: a worker reads the slot that was named. */
static void put_slot(struct pl_region *g, uint32_t slot, uint32_t value)
{
	uint32_t *at = pl_region_store(g, pl_region_epoch(g));

	__atomic_store_n(&at[2 * slot], 1, __ATOMIC_RELAXED);
	__atomic_store_n(&at[2 * slot + 1], value, __ATOMIC_RELAXED);
}

/* A worker that is held up reads each value where it was signalled; where that was emptied
 * meanwhile, nothing. */
static void test_epochs(void)
{
	const struct pl_region_options halves = { .halves = 2 };
	struct pl_worker_store store = { .params = params[1] };
	const struct pl_workers_options options = {
		.n = 1, .stores = &store, .n_stores = 1, .out = out_epochs
	};
	struct pl_workers *w = NULL;
	struct pl_workers_stats s;
	struct pl_region *g = NULL;
	uint32_t bad = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/tmp/pathline-workers-%d", (int)getpid());
	(void)unlink(path);
	ok(pl_region_create(&g, path, &params[1], &halves, NULL) == 0, "two halves");
	(void)unlink(path);
	store.region = g;
	store.base = pl_region_store(g, 0);
	ok(pl_workers_open(&w, &options, NULL) == 0, "a worker");
	memset(got, 0, sizeof(got));
	pthread_mutex_lock(&gate);
	for (uint32_t epoch = 0; epoch < 4; epoch++) {
		for (uint32_t i = 0; i < 10; i++) {
			const uint32_t slot = 1 + 10 * epoch + i;

			put_slot(g, slot, 100 * epoch + i + 1);
			pl_workers_signal(w, 0, PL_KEY_WRITE << 28 | slot, pl_clock_mono_ns());
		}
		/* At the first slot it waits: only that one was read in its time. */
		if (epoch == 0)
			(void)eventually(atomic_load(&entered) > 0);
		if (epoch < 3)
			eq((uint64_t)pl_region_next_epoch(g, NULL), 0, "epoch %u", epoch + 1);
	}
	/* The same slots, with other values: who reads the present half has these. */
	for (uint32_t i = 21; i <= 30; i++)
		put_slot(g, i, 9999);
	pthread_mutex_unlock(&gate);
	pl_workers_close(w, &s);
	for (uint32_t slot = 1; slot <= 40; slot++) {
		const uint32_t epoch = (slot - 1) / 10, i = (slot - 1) % 10;

		bad += got[slot] != (epoch >= 2 || slot == 1 ? 100 * epoch + i + 1 : 0);
	}
	eq(bad, 0, "of two epochs all values, of those before what was read in time");
	eq(s.items, 21, "handed out");
	eq(s.gone, 19, "and what was emptied is counted");
	eq(s.damaged, 0, "as that");
	eq(s.signals, s.taken + s.full + s.strange, "every signal is accounted for");
	(void)pl_region_close(g);
}

int main(void)
{
	struct pl_workers_options options = { .n = 0, .stores = stores, .n_stores = 3, .out = out };
	struct pl_workers *w;
	struct pl_diag diag;
	struct pl_workers_stats s;

	make_stores();
	eq((uint64_t)pl_workers_open(&w, &options, &diag), (uint64_t)-EINVAL, "%s", diag.text);
	options.n = PL_SIGNAL_WORKERS_MAX + 1;
	eq((uint64_t)pl_workers_open(&w, &options, &diag), (uint64_t)-EINVAL, "%s", diag.text);
	pl_workers_close(NULL, &s);
	test_lists(1, 1u << 15, false);
	test_lists(3, 1u << 15, false);
	test_lists(2, 16, true);
	test_wake();
	test_others();
	test_epochs();
	for (int i = 0; i < 3; i++)
		free(stores[i].base);
	return pl_test_done();
}
