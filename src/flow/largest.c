/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the largest flows by a heap whose root is the smallest of those found so far. */
#include "flow/largest.h"

#include <stdlib.h>

#include "flow/cache_state.h"

static uint64_t bytes_of(const struct pl_flow288 *f)
{
	return f->bytes_fwd + f->bytes_rev;
}

static void swap(struct pl_flow288 *a, struct pl_flow288 *b)
{
	const struct pl_flow288 c = *a;

	*a = *b;
	*b = c;
}

static void sift_up(struct pl_flow288 *heap, uint32_t at)
{
	for (; at > 0 && bytes_of(&heap[at]) < bytes_of(&heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&heap[at], &heap[(at - 1) / 2]);
}

static void sift_down(struct pl_flow288 *heap, uint32_t n)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
			if (bytes_of(&heap[child]) < bytes_of(&heap[least]))
				least = child;
		}
		if (least == at)
			return;
		swap(&heap[at], &heap[least]);
		at = least;
	}
}

static int larger_first(const void *a, const void *b)
{
	const uint64_t x = bytes_of(a), y = bytes_of(b);

	return (x < y) - (x > y);
}

uint32_t pl_flow_cache_largest(
	const struct pl_flow_cache *cache, struct pl_flow288 *ret, uint32_t max)
{
	uint32_t n = 0;

	for (uint64_t slot = 0; max > 0 && slot < (uint64_t)cache->n_buckets * PL_FLOW_WAYS;
		slot++) {
		const struct pl_flow_entry *f = &cache->flows[slot];
		const uint32_t tag = cache->buckets[slot / PL_FLOW_WAYS].tag[slot % PL_FLOW_WAYS];

		if (tag == 0 || pl_flow_is_empty(f) ||
			(n == max && f->bytes[0] + f->bytes[1] <= bytes_of(&ret[0])) ||
			pl_flow_is_over(cache, f, cache->kept->clock_ns))
			continue;
		if (n < max) {
			pl_flow_make_record(cache, &ret[n], f, (enum pl_flow_end)0, 0);
			sift_up(ret, n++);
		} else {
			pl_flow_make_record(cache, &ret[0], f, (enum pl_flow_end)0, 0);
			sift_down(ret, n);
		}
	}
	qsort(ret, n, sizeof(*ret), larger_first);
	return n;
}

uint32_t pl_flow_cache_room(const struct pl_flow_cache *cache)
{
	return cache->n_buckets * PL_FLOW_WAYS;
}

uint64_t pl_flow_cache_clock(const struct pl_flow_cache *cache)
{
	return cache->kept->clock_ns;
}
