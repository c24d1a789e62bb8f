/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence spaces of exporters: which are proven and followed, and the shares that sources have of
 * the tables. The decoder keeps those of reports, the receiver of tmpkt/1 (tap/) its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/shares.h"
#include "core/sequence.h"

/* No padding: compared as bytes. */
struct pl_seq_space_key {
	struct pl_addr addr;
	uint64_t node, hw_id;
};

struct pl_seq_space {
	struct pl_seq_space_key key;
	uint64_t first_ts_ns, last_ts_ns;
	struct pl_sequence seq;
	uint32_t share; /* source that holds it, in its table */
	uint8_t report_version;
	bool followed; /* in `followed`; else on probation */
	bool late;     /* it was proven when there was no room in `followed` */
	bool torn;     /* of tmpkt/1: something is lost since its last datagram with records */
};

#define PL_SEQ_SPACES_RECENT_BITS 6

/* Two tables of `max` each. A sequence space begins on probation, where the next one soon takes its
 * place, and is followed once it is proven (core/sequence.h): senders that are no exporters
 * displace only each other. In both tables sources have shares (base/shares.h). */
struct pl_seq_spaces {
	struct pl_cells followed, probation; /* struct pl_seq_space */
	struct pl_shares followed_shares, probation_shares;
	uint32_t followed_hand, probation_hand;
	uint64_t seed, idle_ns;
	uint64_t gone; /* followed spaces that were evicted in the present batch */
	bool prove;    /* false: every space is followed from its first report on */
	/* Exporters seen last, since reports of few exporters follow each other. Their cheap hash
	 * can be aimed at; that costs a lookup in the tables. */
	struct pl_seq_space *recent[1 << PL_SEQ_SPACES_RECENT_BITS];
};

int pl_seq_spaces_init(struct pl_seq_spaces *e, uint32_t max, uint64_t idle_ns, bool prove);
void pl_seq_spaces_done(struct pl_seq_spaces *e);
uint64_t pl_seq_spaces_memory(uint32_t max, bool prove);
/* Finds the space in the tables; NULL when it is not known. */
struct pl_seq_space *pl_seq_spaces_find(
	struct pl_seq_spaces *e, const struct pl_addr *addr, uint64_t node, uint8_t hw_id);
/* Makes a space that is not known; NULL when there is no room. */
struct pl_seq_space *pl_seq_spaces_make(struct pl_seq_spaces *e, const struct pl_addr *addr,
	uint64_t node, uint8_t hw_id, uint64_t ts_ns);
/* Moves a proven space to the followed ones; NULL when there is no room, and it stays where it
 * is. */
struct pl_seq_space *pl_seq_spaces_follow(
	struct pl_seq_spaces *e, struct pl_seq_space *x, uint64_t ts_ns);

static inline bool pl_seq_space_is(
	const struct pl_seq_space *x, const struct pl_addr *addr, uint64_t node, uint8_t hw_id)
{
	return x->key.node == node && x->key.hw_id == hw_id && pl_addr_equal(&x->key.addr, addr);
}

static inline struct pl_seq_space **pl_seq_spaces_recent(
	struct pl_seq_spaces *e, const struct pl_addr *addr, uint64_t node, uint8_t hw_id)
{
	uint32_t tail;

	memcpy(&tail, addr->b + 12, 4);
	tail = (tail ^ (uint32_t)node ^ (uint32_t)hw_id << 8) * 0x9e3779b1u;
	return &e->recent[tail >> (32 - PL_SEQ_SPACES_RECENT_BITS)];
}

static inline struct pl_seq_space *pl_seq_spaces_get(
	struct pl_seq_spaces *e, const struct pl_addr *addr, uint64_t node, uint8_t hw_id)
{
	struct pl_seq_space *x = *pl_seq_spaces_recent(e, addr, node, hw_id);

	if (__builtin_expect(x != NULL && pl_seq_space_is(x, addr, node, hw_id), 1))
		return x;
	return pl_seq_spaces_find(e, addr, node, hw_id);
}
