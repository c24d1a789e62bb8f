/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned paths: the steps of a path id, and its counts. The counters are in the slots, which are
 * touched per report; the shapes are touched once, when a path is new. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/prefetch.h"
#include "decode/internal.h"

#define PREFETCH_AHEAD  8
#define EXCHANGES       2 /* exchanges per batch; see struct paths */
#define IDLE_NS         (UINT64_C(60) * 1000 * 1000 * 1000)
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
	if (p->slots == NULL || p->shapes == NULL || p->order == NULL)
		return -ENOMEM;
	return pl_shares_init(&p->shares, max);
}

void paths_done(struct paths *p)
{
	if (p->slots != NULL)
		munmap(p->slots, slots_bytes(p));
	free(p->shapes);
	free(p->order);
	pl_shares_done(&p->shares);
}

uint64_t paths_memory(uint32_t max)
{
	return slots_for(max) * (uint64_t)sizeof(struct path_slot) +
	       (uint64_t)max * (sizeof(struct path_shape) + sizeof(uint32_t)) +
	       pl_shares_memory(max);
}

/* The id is a hash already, but one that an attacker can aim: key it. */
static uint32_t home(const struct paths *p, uint64_t path_id)
{
	return (uint32_t)(pl_hash_mix(path_id, p->seed) & p->mask);
}

/* The path's nodes and ports, at number `info`. */
static void keep_shape(
	struct paths *p, uint32_t info, const struct pl_path *path, const struct pl_hop *hops)
{
	struct path_shape *shape = &p->shapes[info];

	shape->hop_count = path->hop_count;
	for (unsigned int i = 0; i < path->hop_count && i < PL_PATH_STEPS_MAX; i++) {
		shape->steps[i] = (struct pl_path_step){
			.node = hops[i].node,
			.ingress_port = hops[i].ingress_port,
			.egress_port = hops[i].egress_port,
		};
	}
}

/* Removes a slot; those behind it move up, so that each is found by probing from its home. */
static void take_out(struct paths *p, uint32_t hole)
{
	uint32_t at = hole;

	for (;;) {
		at = (at + 1) & p->mask;
		if (p->slots[at].path_id == 0)
			break;
		/* Distance of the path from its home: it may move no further back than that. */
		if (((at - home(p, p->slots[at].path_id)) & p->mask) < ((at - hole) & p->mask))
			continue;
		p->slots[hole] = p->slots[at];
		p->order[p->slots[hole].info] = hole;
		hole = at;
	}
	p->slots[hole] = (struct path_slot){ 0 };
}

static bool is_idle(const struct path_slot *slot, uint64_t now_ns)
{
	return now_ns > slot->last_ts_ns && now_ns - slot->last_ts_ns > IDLE_NS;
}

/* Number of the path, of the next few, to displace for a source that holds `held`: an idle one, or
 * one of a source with more than that, or its own; of these one of the heaviest source, the one
 * least recently seen; p->max when there is none. */
static uint32_t choose(
	struct paths *p, const struct pl_addr *source, uint32_t held, uint64_t now_ns)
{
	uint32_t best = p->max, best_held = 0;
	uint64_t best_seen = 0;

	for (uint32_t i = 0; i < PL_SHARES_LOOK && i < p->n; i++) {
		const uint32_t info = p->hand < p->n ? p->hand : 0;
		const struct path_slot *slot = &p->slots[p->order[info]];
		const struct pl_share *share = pl_shares_at(&p->shares, slot->share);
		const uint32_t weight = is_idle(slot, now_ns) ? UINT32_MAX : share->held;

		p->hand = info + 1;
		if (weight <= held + 1 && !pl_addr_equal(&share->source, source))
			continue;
		if (best == p->max || weight > best_held ||
			(weight == best_held && slot->last_ts_ns < best_seen)) {
			best = info;
			best_held = weight;
			best_seen = slot->last_ts_ns;
		}
	}
	return best;
}

/* Returns a number for a path of the source: the next one, or the number of a replaced path;
 * p->max: none. */
static uint32_t make_place(struct paths *p, const struct pl_addr *source, uint64_t now_ns)
{
	const uint32_t held = p->n < p->max ? 0 : pl_shares_held(&p->shares, source);
	uint32_t info, slot;

	if (p->n < p->max)
		return p->n++;
	if ((uint64_t)held * pl_cells_count(&p->shares.cells) >= p->max) {
		if (p->exchanges == 0)
			return p->max;
		p->exchanges--;
	}
	info = choose(p, source, held, now_ns);
	if (info == p->max)
		return info;
	slot = p->order[info];
	pl_shares_give(&p->shares, p->slots[slot].share);
	take_out(p, slot);
	p->displaced++;
	return info;
}

/* The slot of a path that is new; NULL when there is no room for it. */
__attribute__((cold, noinline)) static struct path_slot *make(
	struct paths *p, const struct pl_path *path, const struct pl_hop *hops)
{
	const struct pl_addr source = pl_path_source(path);
	const uint32_t info = make_place(p, &source, path->ts_ns);
	uint32_t at = home(p, path->path_id);

	if (info == p->max)
		return NULL;
	while (p->slots[at].path_id != 0)
		at = (at + 1) & p->mask;
	p->slots[at] = (struct path_slot){
		.path_id = path->path_id, .info = info, .share = pl_shares_take(&p->shares, &source)
	};
	p->order[info] = at;
	keep_shape(p, info, path, hops);
	return &p->slots[at];
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
	struct path_slot *slot = &p->slots[home(p, path->path_id)];

	while (slot->path_id != 0 && slot->path_id != path->path_id)
		slot = slot == &p->slots[p->mask] ? p->slots : slot + 1;
	if (slot->path_id == 0)
		slot = make(p, path, hops);
	if (slot != NULL)
		*recent_of(p, path->path_id) = slot;
	return slot;
}

/* A path that is not cached: its slot is prefetched before its turn comes. */
static inline void fetch(struct paths *p, uint64_t path_id)
{
	if ((*recent_of(p, path_id))->path_id != path_id)
		pl_prefetch_write(&p->slots[home(p, path_id)]);
}

uint32_t paths_intern(struct paths *p, const struct pl_record_batch *batch, uint32_t first)
{
	uint32_t overflow = 0;

	p->displaced = 0;
	p->exchanges = EXCHANGES;
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
