/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of two streams that wait for their partners, shared by the files of pairs. */
#pragma once

#include "base/rng.h"
#include "query/run.h"

/*
 * A record that waits: this header, its key (left side), the record. Records of one key on the
 * right are a list by time, and a treap over it: in any order of arrival the place of one more is
 * found in about log n steps, and at either end in few. All links are numbers of places, + 1; free
 * places are linked by `next`.
 */
struct held {
	int64_t ts;
	uint32_t next, before;
	uint32_t of_key;
	uint32_t above, earlier, later; /* links of the treap */
	uint32_t weight;                /* random; no node below has more */
	uint32_t spare;
};

/* A record that waits until its time. */
struct due {
	int64_t ts;
	uint32_t at;
};

struct side {
	uint8_t *held;
	struct due *due; /* a heap, the earliest first */
	uint32_t n, used, free_list, bytes, record_at, record_bytes;
	/* bytes of a record that are compared: of a path those before the position of its hops */
	uint32_t compared;
};

/* The least position (pl_query_run_at) of the records of a stretch of time. */
struct place {
	int64_t number; /* number of the stretch */
	uint64_t position;
	bool used;
};

#define PLACES 16

/* Value of a key in the table, in whole words: its first and last record, and the root of the
 * treap; + 1. */
struct chain {
	uint32_t first, last, root, spare;
};

struct pair_room {
	struct side sides[2];
	struct table keys; /* keys of the right side */
	struct pl_rng rng; /* for weights */
	uint64_t steps;    /* steps to find places of the right side */
	int64_t watermark; /* records before it are late */
	/* Times near which records were left out. */
	struct losses refused;
	int64_t resumed; /* pairs up to this time were given by another run (windowless) */
	int64_t stretch; /* length of a stretch */
	struct place places[PLACES];
	uint8_t *rows; /* pairs to be scanned */
	uint32_t n;
	uint32_t row_bytes;
	bool incomplete; /* the rows are incomplete */
};

static inline struct held *held_at(const struct side *side, uint32_t at)
{
	return (struct held *)(void *)(side->held + (size_t)at * side->bytes);
}

static inline const uint8_t *record_of(const struct side *side, uint32_t at)
{
	return side->held + (size_t)at * side->bytes + side->record_at;
}
