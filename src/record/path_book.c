/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the nodes of paths by path id. */
#include "record/path_book.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "record/put.h"

#define SETS 512
#define WAYS 4

/* `turn` is odd while the entry is written; a reader that sees the same even value before and after
 * has read a consistent path. The other members are written with release after it, and read with
 * acquire before it is read again. */
struct entry {
	_Atomic uint32_t turn;
	_Atomic uint32_t noted; /* time, by the set's count */
	_Atomic uint64_t path_id, counts;
	_Atomic uint64_t node[PL_PATH_NODES_MAX];
};

static struct set {
	_Atomic uint32_t count;
	struct entry entries[WAYS];
} sets[SETS];

/* Set of a path id. Ids come from the network, and a sender must not choose their sets. One product
 * does not spread ids that follow one another over all sets, with one seed in sixty. */
static struct set *set_of(uint64_t path_id)
{
	const uint64_t seed = pl_hash_seed();

	return &sets[pl_hash_mix(pl_hash_mix(path_id, seed), seed) % SETS];
}

static bool read_entry(const struct entry *e, uint64_t path_id, struct pl_path_nodes *ret)
{
	uint32_t turn = atomic_load_explicit(&e->turn, memory_order_acquire);
	uint64_t counts;

	if (turn == 0 || turn % 2 != 0 ||
		atomic_load_explicit(&e->path_id, memory_order_acquire) != path_id)
		return false;
	counts = atomic_load_explicit(&e->counts, memory_order_acquire);
	for (unsigned int i = 0; i < PL_PATH_NODES_MAX; i++)
		ret->node[i] = atomic_load_explicit(&e->node[i], memory_order_acquire);
	if (atomic_load_explicit(&e->turn, memory_order_relaxed) != turn)
		return false;
	ret->hops = (uint32_t)(counts >> 32);
	ret->n = (uint32_t)counts;
	return true;
}

bool pl_path_book_find(uint64_t path_id, struct pl_path_nodes *ret)
{
	const struct set *set = set_of(path_id);

	for (unsigned int w = 0; w < WAYS; w++) {
		if (read_entry(&set->entries[w], path_id, ret))
			return true;
	}
	*ret = (struct pl_path_nodes){ 0 };
	return false;
}

/* Returns the path's own entry, or else the oldest one. */
static struct entry *place_for(struct set *set, uint64_t path_id)
{
	uint32_t count = atomic_load_explicit(&set->count, memory_order_relaxed), oldest = 0;
	struct entry *best = &set->entries[0];

	for (unsigned int w = 0; w < WAYS; w++) {
		struct entry *e = &set->entries[w];
		uint32_t age = count - atomic_load_explicit(&e->noted, memory_order_relaxed);

		if (atomic_load_explicit(&e->turn, memory_order_relaxed) == 0 ||
			atomic_load_explicit(&e->path_id, memory_order_relaxed) == path_id)
			return e;
		if (age > oldest) {
			oldest = age;
			best = e;
		}
	}
	return best;
}

void pl_path_book_note(uint64_t path_id, const struct pl_path_nodes *nodes)
{
	struct set *set = set_of(path_id);
	struct entry *e = place_for(set, path_id);
	uint32_t turn = atomic_load_explicit(&e->turn, memory_order_relaxed);
	uint32_t n = nodes->n < PL_PATH_NODES_MAX ? nodes->n : PL_PATH_NODES_MAX;

	/* Another thread writes there: one of the two paths is not noted. */
	if (turn % 2 != 0 || !atomic_compare_exchange_strong_explicit(&e->turn, &turn, turn + 1,
				     memory_order_acquire, memory_order_relaxed))
		return;
	atomic_store_explicit(&e->path_id, path_id, memory_order_release);
	atomic_store_explicit(&e->counts, (uint64_t)nodes->hops << 32 | n, memory_order_release);
	for (unsigned int i = 0; i < PL_PATH_NODES_MAX; i++)
		atomic_store_explicit(
			&e->node[i], i < n ? nodes->node[i] : 0, memory_order_release);
	atomic_store_explicit(&e->noted,
		atomic_fetch_add_explicit(&set->count, 1, memory_order_relaxed) + 1,
		memory_order_relaxed);
	/* 0 means that the entry was never written. */
	atomic_store_explicit(&e->turn, turn + 2 != 0 ? turn + 2 : 2, memory_order_release);
}

bool pl_event_paths(
	const struct pl_event *event, struct pl_path_nodes *ret_now, struct pl_path_nodes *ret_old)
{
	const uint32_t both = PL_EVENT_HAS_path_id | PL_EVENT_HAS_old_path_id;

	if (event->event != PL_EVENT_PATH_CHANGE || (event->present & both) != both)
		return false;
	(void)pl_path_book_find(event->path_id, ret_now);
	(void)pl_path_book_find(event->old_path_id, ret_old);
	return true;
}

size_t pl_path_nodes_text(char dst[PL_PATH_NODES_TEXT], const struct pl_path_nodes *nodes)
{
	char *p = dst;

	if (nodes->hops == 0)
		p = put_str(p, "unknown");
	for (unsigned int i = 0; i < nodes->n; i++) {
		if (i > 0)
			*p++ = '>';
		p = put_u64(p, nodes->node[i]);
	}
	if (nodes->n < nodes->hops)
		p = put_str(p, ">...");
	*p = '\0';
	return (size_t)(p - dst);
}
