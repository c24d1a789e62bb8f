/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the threads that signals of peers wake. */
#include "remote/workers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ring.h"
#include "base/thread.h"
#include "memory/append.h"
#include "memory/key_write.h"

#define QUEUE_DEFAULT 4096
#define QUEUE_MAX     (1u << 20)
#define POP           64
#define ITEMS         64 /* given to `out` at once */
#define LISTS_MAX     (UINT64_C(1) << 24)
#define INDEX_MASK    0x0fffffffu

struct signal {
	uint64_t ns, epoch;
	uint32_t store, imm;
};

struct store {
	struct pl_worker_store from;
	struct pl_append append;
	struct pl_append_reader *readers; /* one for each list; used by the list's worker only */
	struct pl_key_write values;
};

struct worker {
	struct pl_workers *all;
	pthread_t thread;
	bool started;
	int wake_fd;
	_Atomic bool asleep, stop;
	struct pl_ring ring;
	/* counters of this worker, read by others when it has ended */
	struct pl_workers_stats stats;
	uint8_t *bytes; /* of items */
	struct pl_worker_item items[ITEMS];
};

struct pl_workers {
	struct pl_workers_options options;
	struct store *stores;
	struct worker *workers;
	uint64_t signals, full, awoken; /* of the signalling thread */
};

/* ---- what a worker does ---- */

static void hand_out(struct worker *w, uint32_t n)
{
	assert(n > 0 && n <= ITEMS);
	w->stats.items += n;
	w->all->options.out(w->all->options.arg, w->items, n);
}

/* Reads all new entries of a list. */
static void read_list(struct worker *w, uint32_t store, uint32_t list)
{
	const struct store *s = &w->all->stores[store];
	struct pl_append_reader *r = &s->readers[list];
	const uint64_t overrun = r->overrun, damaged = r->damaged;
	uint64_t numbers[ITEMS];
	size_t n;

	while ((n = pl_append_read(r, w->bytes, numbers, ITEMS)) > 0) {
		for (size_t i = 0; i < n; i++)
			w->items[i] = (struct pl_worker_item){ .store = store,
				.primitive = PL_APPEND,
				.index = list,
				.number = numbers[i],
				.bytes = w->bytes + i * s->append.entry_bytes,
				.len = s->append.entry_bytes };
		hand_out(w, (uint32_t)n);
	}
	w->stats.overrun += r->overrun - overrun;
	w->stats.damaged += r->damaged - damaged;
}

static void read_slot(struct worker *w, uint32_t store, uint64_t slot, uint64_t epoch)
{
	const struct store *s = &w->all->stores[store];
	const struct pl_region *region = s->from.region;
	struct pl_key_write values = s->values;
	uint32_t check;
	bool whole;

	if (region != NULL)
		values.base = pl_region_store(region, epoch);
	whole = values.base != NULL && pl_key_write_slot(&values, slot, &check, w->bytes);
	/* Checked after reading: a value of an epoch that was emptied meanwhile means nothing. */
	if (region != NULL && !pl_region_has_epoch(region, epoch)) {
		w->stats.gone++;
		return;
	}
	if (!whole) {
		w->stats.damaged++;
		return;
	}
	w->items[0] = (struct pl_worker_item){ .store = store,
		.primitive = PL_KEY_WRITE,
		.index = slot,
		.bytes = w->bytes,
		.len = s->from.params.key_write.value_bytes };
	hand_out(w, 1);
}

static void take(struct worker *w, const struct signal *signal)
{
	const struct store *s = &w->all->stores[signal->store];
	const struct pl_store_params *p = &s->from.params;
	const uint32_t index = signal->imm & INDEX_MASK;
	const uint64_t now = pl_clock_mono_ns();

	/* The immediate value is the peer's; the store is ours. */
	assert(signal->store < w->all->options.n_stores);
	if (signal->imm >> 28 != p->primitive ||
		(p->primitive == PL_APPEND && index >= p->append.lists) ||
		(p->primitive == PL_KEY_WRITE &&
			(index >= p->key_write.slots || p->key_write.slots > INDEX_MASK))) {
		w->stats.strange++;
		return;
	}
	w->stats.taken++;
	pl_hist_add(&w->stats.latency_ns, now > signal->ns ? now - signal->ns : 0);
	if (p->primitive == PL_APPEND) {
		read_list(w, signal->store, index);
	} else if (p->primitive == PL_KEY_WRITE) {
		read_slot(w, signal->store, index, signal->epoch);
	} else {
		w->items[0] = (struct pl_worker_item){
			.store = signal->store, .primitive = p->primitive, .index = index
		};
		hand_out(w, 1);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct signal signals[POP];
	uint64_t times;

	for (;;) {
		/* Read before the queue, so that signals pushed before the stop are taken. */
		const bool stop = atomic_load(&w->stop);
		const size_t n = pl_ring_pop(&w->ring, signals, POP);

		for (size_t i = 0; i < n; i++)
			take(w, &signals[i]);
		if (n > 0)
			continue;
		if (stop)
			return NULL;
		atomic_store(&w->asleep, true);
		atomic_thread_fence(memory_order_seq_cst);
		/* A thread that pushed before it could see `asleep` did not wake this one. */
		if (pl_ring_used(&w->ring) == 0 && !atomic_load(&w->stop))
			(void)!read(w->wake_fd, &times, sizeof(times));
		atomic_store(&w->asleep, false);
	}
}

/* ---- from outside ---- */

static void wake(struct worker *w)
{
	const uint64_t one = 1;

	(void)!write(w->wake_fd, &one, sizeof(one));
}

void pl_workers_signal(struct pl_workers *w, uint32_t store, uint32_t imm, uint64_t ns)
{
	const struct pl_region *region = w->stores[store].from.region;
	const struct signal signal = { .ns = ns,
		.epoch = region != NULL ? pl_region_epoch(region) : 0,
		.store = store,
		.imm = imm };
	struct worker *to = &w->workers[((imm & INDEX_MASK) + store) % w->options.n];

	assert(store < w->options.n_stores);
	w->signals++;
	if (pl_ring_push(&to->ring, &signal, 1) == 0)
		w->full++;
	/* Fence between push and look, in both threads: one of them sees the other. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&to->asleep)) {
		w->awoken++;
		wake(to);
	}
}

static int open_store(struct store *s, const struct pl_worker_store *from)
{
	s->from = *from;
	if (from->params.primitive == PL_KEY_WRITE)
		return pl_key_write_init(&s->values, &from->params, from->base);
	if (from->params.primitive != PL_APPEND)
		return 0;
	if (from->params.append.lists > LISTS_MAX)
		return -E2BIG;
	s->readers = calloc(from->params.append.lists, sizeof(*s->readers));
	if (s->readers == NULL)
		return -ENOMEM;
	if (pl_append_init(&s->append, &from->params, from->base) < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < from->params.append.lists; i++)
		pl_append_reader_init(&s->readers[i], &s->append, i, pl_append_head(&s->append, i));
	return 0;
}

static int start(struct pl_workers *all, struct worker *w)
{
	const uint32_t queue = all->options.queue == 0 ? QUEUE_DEFAULT : all->options.queue;
	int r;

	w->all = all;
	w->bytes = malloc((size_t)ITEMS * PL_ENTRY_MAX);
	w->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (w->bytes == NULL || w->wake_fd < 0)
		return w->bytes == NULL ? -ENOMEM : -errno;
	r = pl_ring_init(&w->ring, queue, sizeof(struct signal));
	if (r == 0)
		r = pl_thread_start(&w->thread, "pl-nic", work, w);
	w->started = r == 0;
	return r;
}

int pl_workers_open(
	struct pl_workers **ret, const struct pl_workers_options *options, struct pl_diag *diag)
{
	struct pl_workers *all = calloc(1, sizeof(*all));
	struct pl_workers_stats none;
	int r = -ENOMEM;

	if (all == NULL)
		goto fail;
	all->options = *options;
	if (options->n == 0 || options->n > PL_SIGNAL_WORKERS_MAX || options->queue > QUEUE_MAX) {
		r = -EINVAL;
		goto fail;
	}
	all->stores = calloc(options->n_stores, sizeof(*all->stores));
	all->workers = aligned_alloc(PL_RING_APART, options->n * sizeof(*all->workers));
	if (all->stores == NULL || all->workers == NULL)
		goto fail;
	memset(all->workers, 0, options->n * sizeof(*all->workers));
	for (unsigned int i = 0; i < options->n; i++)
		all->workers[i].wake_fd = -1;
	r = 0;
	for (uint32_t i = 0; r == 0 && i < options->n_stores; i++)
		r = open_store(&all->stores[i], &options->stores[i]);
	for (unsigned int i = 0; r == 0 && i < options->n; i++)
		r = start(all, &all->workers[i]);
	if (r < 0)
		goto fail;
	*ret = all;
	return 0;
fail:
	pl_diag_set(diag, "workers: %s", strerror(-r));
	pl_workers_close(all, &none);
	return r;
}

static void end(struct worker *w, struct pl_workers_stats *ret)
{
	if (w->started) {
		atomic_store(&w->stop, true);
		wake(w);
		pthread_join(w->thread, NULL);
	}
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	pl_ring_done(&w->ring);
	free(w->bytes);
	ret->taken += w->stats.taken;
	ret->strange += w->stats.strange;
	ret->items += w->stats.items;
	ret->gone += w->stats.gone;
	ret->overrun += w->stats.overrun;
	ret->damaged += w->stats.damaged;
	pl_hist_merge(&ret->latency_ns, &w->stats.latency_ns);
}

void pl_workers_close(struct pl_workers *all, struct pl_workers_stats *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (all == NULL)
		return;
	for (unsigned int i = 0; all->workers != NULL && i < all->options.n; i++)
		end(&all->workers[i], ret);
	ret->signals = all->signals;
	ret->full = all->full;
	ret->awoken = all->awoken;
	for (uint32_t i = 0; all->stores != NULL && i < all->options.n_stores; i++)
		free(all->stores[i].readers);
	free(all->stores);
	free(all->workers);
	free(all);
}
