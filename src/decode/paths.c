/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned paths: what a path id stands for, and how often it was seen. The counters are in the
 * slots, which are touched per report; the shapes are touched once, when a path is new. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/prefetch.h"
#include "decode/internal.h"

#define PREFETCH_AHEAD  8
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/*
 * Zeroed, each slot on one line; in huge pages as far as the kernel gives them, since slots are
 * visited at random. There is a power of two of them: a table of that size or more is whole huge
 * pages. Only what is touched takes memory, as with calloc().
 */
static struct path_slot *new_slots(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (bytes >= HUGE_PAGE_BYTES)
		(void)madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}

static size_t slots_bytes(const struct paths *p)
{
	return ((size_t)p->mask + 1) * sizeof(*p->slots);
}

int paths_init(struct paths *p, uint32_t max)
{
	uint32_t slots = slots_for(max);

	*p = (struct paths){ .max = max, .mask = slots - 1, .seed = pl_hash_seed() };
	p->slots = new_slots(slots_bytes(p));
	p->shapes = calloc(max, sizeof(*p->shapes));
	p->order = calloc(max, sizeof(*p->order));
	for (unsigned int i = 0; i < 1 << PATHS_RECENT_BITS; i++)
		p->recent[i] = p->slots;
	return p->slots == NULL || p->shapes == NULL || p->order == NULL ? -ENOMEM : 0;
}

void paths_done(struct paths *p)
{
	if (p->slots != NULL)
		munmap(p->slots, slots_bytes(p));
	free(p->shapes);
	free(p->order);
}

uint64_t paths_memory(uint32_t max)
{
	return slots_for(max) * (uint64_t)sizeof(struct path_slot) +
	       (uint64_t)max * (sizeof(struct path_shape) + sizeof(uint32_t));
}

/* The id is a hash already, but one that an attacker can aim: key it. */
static uint32_t home(const struct paths *p, uint64_t path_id)
{
	return (uint32_t)(pl_hash_mix(path_id, p->seed) & p->mask);
}

__attribute__((cold, noinline)) static void make(struct paths *p, struct path_slot *slot,
	const struct pl_path *path, const struct pl_hop *hops)
{
	struct path_shape *shape = &p->shapes[p->n];

	slot->path_id = path->path_id;
	slot->info = p->n;
	p->order[p->n++] = (uint32_t)(slot - p->slots);
	shape->hop_count = path->hop_count;
	for (unsigned int i = 0; i < path->hop_count && i < PL_PATH_STEPS_MAX; i++) {
		shape->steps[i] = (struct pl_path_step){
			.node = hops[i].node,
			.ingress_port = hops[i].ingress_port,
			.egress_port = hops[i].egress_port,
		};
	}
}

const struct path_slot *paths_find(const struct paths *p, uint64_t path_id)
{
	uint32_t at = home(p, path_id);

	for (; p->slots[at].path_id != 0; at = (at + 1) & p->mask) {
		if (p->slots[at].path_id == path_id)
			return &p->slots[at];
	}
	return NULL;
}

static inline struct path_slot **recent_of(struct paths *p, uint64_t path_id)
{
	return &p->recent[path_id >> (64 - PATHS_RECENT_BITS)];
}

/* The slot of the path, made when it is new; NULL when there is no room for it. */
static struct path_slot *intern(
	struct paths *p, const struct pl_path *path, const struct pl_hop *hops)
{
	for (uint32_t at = home(p, path->path_id);; at = (at + 1) & p->mask) {
		struct path_slot *slot = &p->slots[at];

		if (slot->path_id == path->path_id)
			return *recent_of(p, path->path_id) = slot;
		if (slot->path_id != 0)
			continue;
		if (p->n == p->max)
			return NULL;
		make(p, slot, path, hops);
		return *recent_of(p, path->path_id) = slot;
	}
}

/* A path that is not at hand: its slot is on its way when its turn comes. */
static inline void fetch(struct paths *p, uint64_t path_id)
{
	if ((*recent_of(p, path_id))->path_id != path_id)
		pl_prefetch_write(&p->slots[home(p, path_id)]);
}

uint32_t paths_intern(struct paths *p, const struct pl_record_batch *batch, uint32_t first)
{
	uint32_t overflow = 0;

	for (uint32_t i = first; i < batch->n_paths; i++) {
		const struct pl_path *path = &batch->paths[i];
		struct path_slot *slot;

		if (i + PREFETCH_AHEAD < batch->n_paths)
			fetch(p, batch->paths[i + PREFETCH_AHEAD].path_id);
		if ((path->present & PL_PATH_HAS_path_id) == 0 ||
			(path->flags & PL_FLAG_UNPROVEN) != 0)
			continue;
		slot = *recent_of(p, path->path_id);
		if (slot->path_id != path->path_id)
			slot = intern(p, path, &batch->hops[batch->first_hop[i]]);
		if (__builtin_expect(slot == NULL, 0)) {
			overflow++;
			continue;
		}
		slot->reports++;
		slot->last_ts_ns = path->ts_ns;
	}
	return overflow;
}
