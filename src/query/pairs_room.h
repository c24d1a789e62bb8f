/* SPDX-License-Identifier: BSD-2-Clause */
/* The room in which records of two streams wait for their partners, shared by the files of pairs. */
#pragma once

#include "base/rng.h"
#include "query/run.h"

/*
 * A record that waits: this, its key (of the left), the record. Those of one key on the right are a
 * list by time, and a treap over it: whatever their order, the place of one more is found in about
 * log n steps, and at either end in few. All are numbers of places, + 1; free ones go by `next`.
 */
struct held {
	int64_t ts;
	uint32_t next, before;
	uint32_t of_key;
	uint32_t above, earlier, later; /* in the treap */
	uint32_t weight;                /* random; none below has more */
	uint32_t spare;
};

/* What waits for its time. */
struct due {
	int64_t ts;
	uint32_t at;
};

struct side {
	uint8_t *held;
	struct due *due; /* a heap; the earliest first */
	uint32_t n, used, free_list, bytes, record_at, record_bytes;
	uint32_t compared; /* bytes of a record: those of a path without where its hops are */
};

/* The least place (pl_query_run_at) of the records of a stretch of time. */
struct place {
	int64_t number; /* of the stretch */
	uint64_t position;
	bool used;
};

#define PLACES 16

/* Behind a key in the table, in whole words: the first and the last record of it, and the treap's
 * root; + 1. */
struct chain {
	uint32_t first, last, root, spare;
};

struct pair_room {
	struct side sides[2];
	struct table keys; /* of the right */
	struct pl_rng rng; /* of weights */
	uint64_t steps;    /* what was looked at to find places of the right */
	int64_t watermark; /* records before it are late */
	int64_t refused_from, refused_to;
	int64_t resumed; /* pairs up to there were given by another run (windowless) */
	int64_t stretch; /* length of one */
	struct place places[PLACES];
	uint8_t *rows; /* pairs to be scanned */
	uint32_t n;
	uint32_t row_bytes;
	bool incomplete; /* what the rows are */
};

static inline struct held *held_at(const struct side *side, uint32_t at)
{
	return (struct held *)(void *)(side->held + (size_t)at * side->bytes);
}

static inline const uint8_t *record_of(const struct side *side, uint32_t at)
{
	return side->held + (size_t)at * side->bytes + side->record_at;
}
