/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/ring.h"

#include <pthread.h>
#include <sched.h>

#include "base/rng.h"
#include "base/test.h"

#define ITEMS 400000
#define BATCH 37

struct item {
	uint64_t n, check, fill;
};

static void *produce(void *arg)
{
	struct pl_ring *ring = arg;
	struct item batch[BATCH];
	struct pl_rng rng;
	uint64_t next = 0;

	pl_rng_seed(&rng, 1);
	while (next < ITEMS) {
		size_t n = 1 + pl_rng_below(&rng, BATCH), pushed;

		if (n > ITEMS - next)
			n = ITEMS - next;
		for (size_t i = 0; i < n; i++)
			batch[i] = (struct item){ next + i, ~(next + i), i };
		pushed = pl_ring_push(ring, batch, n);
		if (pushed == 0)
			sched_yield();
		next += pushed;
	}
	return NULL;
}

static void stress(size_t slots)
{
	struct pl_ring ring;
	struct item batch[BATCH];
	struct pl_rng rng;
	pthread_t thread;
	uint64_t want = 0;
	bool good = true;

	pl_rng_seed(&rng, 2);
	eq(pl_ring_init(&ring, slots, sizeof(struct item)), 0);
	if (!ok(pthread_create(&thread, NULL, produce, &ring) == 0))
		return;
	while (want < ITEMS) {
		size_t n = pl_ring_pop(&ring, batch, 1 + pl_rng_below(&rng, BATCH));

		if (n == 0)
			sched_yield();
		for (size_t i = 0; i < n; i++, want++)
			good = good && batch[i].n == want && batch[i].check == ~want;
	}
	pthread_join(thread, NULL);
	ok(good && want == ITEMS, "%d items through %zu slots, in order and whole (seeds 1, 2)",
		ITEMS, slots);
	eq(pl_ring_used(&ring), 0, "empty at the end");
	pl_ring_done(&ring);
}

static void alone(void)
{
	struct pl_ring ring;
	uint32_t in[16], out[16];

	for (uint32_t i = 0; i < 16; i++)
		in[i] = i;
	eq(pl_ring_init(&ring, 0, 4), (uint64_t)-EINVAL, "no slots");
	eq(pl_ring_init(&ring, 4, 0), (uint64_t)-EINVAL, "no size");
	eq(pl_ring_init(&ring, ((size_t)1 << 30) + 1, 4), (uint64_t)-EINVAL, "too many");
	eq(pl_ring_init(&ring, 5, sizeof(uint32_t)), 0);
	eq(pl_ring_capacity(&ring), 8, "rounded up");
	eq(pl_ring_pop(&ring, out, 16), 0, "empty");
	eq(pl_ring_push(&ring, in, 0), 0, "nothing to push");
	eq(pl_ring_push(&ring, in, 6), 6);
	eq(pl_ring_push(&ring, in + 6, 10), 2, "only what fits");
	eq(pl_ring_push(&ring, in, 1), 0, "full");
	eq(pl_ring_used(&ring), 8);
	eq(pl_ring_pop(&ring, out, 5), 5);
	memeq(out, in, 5 * sizeof(uint32_t), "oldest first");
	eq(pl_ring_push(&ring, in + 8, 8), 5, "around the end");
	eq(pl_ring_pop(&ring, out, 16), 8);
	memeq(out, in + 5, 8 * sizeof(uint32_t), "in order around the end");
	eq(pl_ring_used(&ring), 0);
	pl_ring_done(&ring);
	ok(offsetof(struct pl_ring, popped) - offsetof(struct pl_ring, pushed) >= PL_RING_APART,
		"the two sides are apart");
}

int main(void)
{
	alone();
	stress(1);
	stress(64);
	stress(1024);
	return pl_test_done();
}
