/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence spaces, one per (address, node, hardware id). Keys come from the network, so the hash is
 * keyed and no source can fill the tables; time is that of the packets. */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "decode/exporters.h"

_Static_assert(
	sizeof(struct pl_seq_space_key) == 32, "keys have no padding: they are compared as bytes");

int pl_seq_spaces_init(struct pl_seq_spaces *e, uint32_t max, uint64_t idle_ns, bool prove)
{
	*e = (struct pl_seq_spaces){ .idle_ns = idle_ns, .prove = prove, .seed = pl_hash_seed() };
	if (pl_cells_init(&e->followed, max, sizeof(struct pl_seq_space)) < 0 ||
		pl_shares_init(&e->followed_shares, max) < 0)
		return -ENOMEM;
	if (prove && (pl_cells_init(&e->probation, max, sizeof(struct pl_seq_space)) < 0 ||
			     pl_shares_init(&e->probation_shares, max) < 0))
		return -ENOMEM;
	return 0;
}

void pl_seq_spaces_done(struct pl_seq_spaces *e)
{
	pl_cells_done(&e->followed);
	pl_cells_done(&e->probation);
	pl_shares_done(&e->followed_shares);
	pl_shares_done(&e->probation_shares);
}

uint64_t pl_seq_spaces_memory(uint32_t max, bool prove)
{
	return (prove ? 2 : 1) *
	       (pl_cells_memory(max, sizeof(struct pl_seq_space)) + pl_shares_memory(max));
}

static uint64_t hash_of(const struct pl_seq_spaces *e, const struct pl_seq_space_key *key)
{
	uint64_t lo, hi;

	memcpy(&lo, key->addr.b, 8);
	memcpy(&hi, key->addr.b + 8, 8);
	return pl_hash_mix(pl_hash_mix(lo ^ e->seed, hi), key->node << 8 ^ key->hw_id);
}

static struct pl_seq_space_key key_of(const struct pl_addr *addr, uint64_t node, uint8_t hw_id)
{
	return (struct pl_seq_space_key){ .addr = *addr, .node = node, .hw_id = hw_id };
}

struct pl_seq_space *pl_seq_spaces_find(
	struct pl_seq_spaces *e, const struct pl_addr *addr, uint64_t node, uint8_t hw_id)
{
	const struct pl_seq_space_key key = key_of(addr, node, hw_id);
	const uint64_t hash = hash_of(e, &key);
	const struct pl_cells *table = &e->followed;
	uint32_t cell = pl_cells_find(table, hash, &key, sizeof(key));

	if (cell == PL_CELL_NONE && e->prove) {
		table = &e->probation;
		cell = pl_cells_find(table, hash, &key, sizeof(key));
	}
	if (cell == PL_CELL_NONE)
		return NULL;
	return *pl_seq_spaces_recent(e, addr, node, hw_id) = pl_cells_at(table, cell);
}

/* Arguments of a choice. */
struct age {
	uint64_t now_ns, idle_ns;
};

static struct pl_share_entry entry_of(const void *arg, const void *cell)
{
	const struct age *age = arg;
	const struct pl_seq_space *x = cell;

	return (struct pl_share_entry){ .share = x->share,
		.seen_ns = x->last_ts_ns,
		.idle = age->now_ns > x->last_ts_ns && age->now_ns - x->last_ts_ns > age->idle_ns };
}

static bool free_one(struct pl_seq_spaces *e, struct pl_cells *table, struct pl_shares *shares,
	uint32_t *hand, uint32_t held, bool always, uint64_t ts_ns)
{
	const struct age age = { .now_ns = ts_ns, .idle_ns = e->idle_ns };
	uint32_t victim;

	if (pl_cells_count(table) < table->cap)
		return true;
	victim = pl_shares_choose(shares, table, hand, held, always, entry_of, &age);
	if (victim == PL_CELL_NONE)
		return false;
	pl_shares_give(shares, ((struct pl_seq_space *)pl_cells_at(table, victim))->share);
	pl_cells_remove(table, victim);
	e->gone += table == &e->followed;
	return true;
}

struct pl_seq_space *pl_seq_spaces_make(struct pl_seq_spaces *e, const struct pl_addr *addr,
	uint64_t node, uint8_t hw_id, uint64_t ts_ns)
{
	const struct pl_seq_space_key key = key_of(addr, node, hw_id);
	const struct pl_addr source = pl_addr_source(addr);
	struct pl_cells *table = e->prove ? &e->probation : &e->followed;
	struct pl_shares *shares = e->prove ? &e->probation_shares : &e->followed_shares;
	uint32_t *hand = e->prove ? &e->probation_hand : &e->followed_hand;
	struct pl_seq_space *x;

	/* Among the spaces on probation there is always one that can be replaced. */
	if (!free_one(e, table, shares, hand, pl_shares_held(shares, &source), e->prove, ts_ns))
		return NULL;
	x = pl_cells_at(table, pl_cells_insert(table, hash_of(e, &key), &key, sizeof(key)));
	x->share = pl_shares_take(shares, &source);
	x->first_ts_ns = x->last_ts_ns = ts_ns;
	x->followed = !e->prove;
	x->seq.proven = !e->prove;
	return *pl_seq_spaces_recent(e, addr, node, hw_id) = x;
}

struct pl_seq_space *pl_seq_spaces_follow(
	struct pl_seq_spaces *e, struct pl_seq_space *x, uint64_t ts_ns)
{
	const struct pl_seq_space_key key = x->key;
	const struct pl_addr source = pl_addr_source(&key.addr);
	struct pl_seq_space *to;

	if (!free_one(e, &e->followed, &e->followed_shares, &e->followed_hand,
		    pl_shares_held(&e->followed_shares, &source), false, ts_ns))
		return NULL;
	to = pl_cells_at(
		&e->followed, pl_cells_insert(&e->followed, hash_of(e, &key), &key, sizeof(key)));
	*to = *x;
	to->share = pl_shares_take(&e->followed_shares, &source);
	to->followed = true;
	pl_shares_give(&e->probation_shares, x->share);
	pl_cells_remove(
		&e->probation, (uint32_t)(((uint8_t *)x - e->probation.cells) / e->probation.size));
	return *pl_seq_spaces_recent(e, &key.addr, key.node, (uint8_t)key.hw_id) = to;
}
