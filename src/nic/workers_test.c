/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers over stores in memory: everything signalled is handed out once, lists in order, whatever the pool; signals that
 * mean nothing are counted. */
#include "nic/workers.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "memory/append.h"
#include "memory/key_write.h"

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
static bool slow;

static void out(void *arg, const struct pl_worker_item *items, uint32_t n)
{
	(void)arg;
	if (slow)
		usleep(200);
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
		stores[i] = (struct pl_worker_store){ params[i], aligned_alloc(64, bytes) };
		memset(stores[i].base, 0, bytes);
	}
	memset(next, 0, sizeof(next));
	wrong = values = cells = 0;
}

static void test_lists(unsigned int n, uint32_t queue, bool is_slow)
{
	const struct pl_workers_options options = {
		.n = n, .queue = queue, .stores = stores, .n_stores = 3, .out = out
	};
	struct pl_workers *w = NULL;
	struct pl_workers_stats s;
	struct pl_append a;
	uint64_t sum = 0;

	make_stores();
	slow = is_slow;
	ok(pl_append_init(&a, &params[0], stores[0].base) == 0 &&
			pl_workers_open(&w, &options, NULL) == 0,
		"%u workers", n);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		const uint32_t list = i % LISTS, entry = i / LISTS;

		(void)pl_append_put(&a, list, &entry, 1);
		pl_workers_signal(w, 0, PL_APPEND << 28 | list, pl_clock_mono_ns());
		if (i % 5000 == 0)
			usleep(2000); /* let them sleep */
	}
	/* Whoever found the queue full had its entry left to a later signal. */
	while (is_slow && sum < LISTS) {
		usleep(20000);
		pl_workers_signal(w, 0, PL_APPEND << 28 | (uint32_t)sum, pl_clock_mono_ns());
		sum++;
	}
	pl_workers_close(w, &s);
	sum = 0;
	for (uint32_t i = 0; i < LISTS; i++)
		sum += next[i];
	eq(sum, ENTRIES, "every entry was handed out");
	eq(wrong, 0, "each once, in its order");
	eq(s.items, ENTRIES, "and counted");
	eq(s.signals, s.taken + s.full + s.strange, "every signal is accounted for");
	ok(is_slow ? s.full > 0 : s.full == 0 || queue < ENTRIES, "full: %u", (unsigned int)s.full);
	eq(pl_hist_count(&s.latency_ns), s.taken, "and has its latency");
	ok(s.awoken > 0, "sleepers were woken");
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
	slow = false;
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

int main(void)
{
	struct pl_workers_options options = { .n = 0, .stores = stores, .n_stores = 3, .out = out };
	struct pl_workers *w;
	struct pl_diag diag;
	struct pl_workers_stats s;

	make_stores();
	eq((uint64_t)pl_workers_open(&w, &options, &diag), (uint64_t)-EINVAL, "%s", diag.text);
	options.n = PL_WORKERS_MAX + 1;
	eq((uint64_t)pl_workers_open(&w, &options, &diag), (uint64_t)-EINVAL, "%s", diag.text);
	pl_workers_close(NULL, &s);
	test_lists(1, 1u << 15, false);
	test_lists(3, 1u << 15, false);
	test_lists(2, 16, true);
	test_others();
	for (int i = 0; i < 3; i++)
		free(stores[i].base);
	return pl_test_done();
}
