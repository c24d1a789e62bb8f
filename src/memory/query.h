/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries of a store whose bytes need not be mapped here. A source reads runs of bytes at offsets
 * of the store: from a mapping, or from a collector's memory by RDMA READ (remote/reader.h). Which
 * bytes an answer takes, and what they say, is the geometry and the judgement of the primitives
 * (key_write.h and so on), the same for all sources.
 *
 * Copies prove themselves as they do in mapped memory. Bytes of which no answer is found are read
 * again, up to PL_QUERY_TRIES times, as long as they change: somebody writes them.
 *
 *   pl_query_init(&q, &params, source);
 *   pl_query_begin(&q, &diag);                          what is asked once for all keys
 *   pl_query_value(&q, key, threshold, &result, value, &diag);
 *
 * Functions return 0 or the negative errno of the source, with its diag.
 */
#pragma once

#include "base/diag.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"

#define PL_QUERY_TRIES 4u

/* A run of bytes of a store, and where they go: memory aligned to 8 bytes. */
struct pl_store_read {
	uint64_t offset;
	uint64_t bytes;
	void *into;
};

/* `read` fills all runs, in any order among them, and behind all runs of the call before. 0, or
 * negative errno with diag, which may be NULL. */
struct pl_store_source {
	int (*read)(void *arg, const struct pl_store_read *reads, size_t n, struct pl_diag *diag);
	void *arg;
};

/* `read` of a store that is mapped here; `arg` is its first byte. Never fails. */
int pl_store_read_mapped(
	void *base, const struct pl_store_read *reads, size_t n, struct pl_diag *diag);

#define PL_QUERY_AHEAD 64u /* keys */

/* What was read for keys that are going to be asked: `stride` words for each of n keys, of which
 * the first `at` were asked. */
struct pl_query_ahead {
	uint64_t keys[PL_QUERY_AHEAD];
	uint64_t *words; /* heap */
	size_t room, stride;
	unsigned int n, at;
	uint64_t head; /* append: of `list`, as it was before */
	uint32_t list;
};

struct pl_query {
	struct pl_store_source source;
	struct pl_store_params params;
	/* Geometry: the one of the store's primitive. */
	struct pl_key_write kw;
	struct pl_append a;
	struct pl_counters c;
	struct pl_postcards p;
	struct pl_sketch s;
	double total;      /* counters, count-min: the sum of all increments */
	uint64_t complete; /* sketch: the fewest columns that it was seen to have */
	struct pl_query_ahead ahead;
};

/* In the caller's memory. -EINVAL for parameters of no store. */
int pl_query_init(struct pl_query *q, const struct pl_store_params *params,
	const struct pl_store_source *source);

/* Counters and count-min: reads a row of cells for `total`, which bounds the error of answers; a
 * sketch: how many columns are complete. -ENOMEM. */
int pl_query_begin(struct pl_query *q, struct pl_diag *diag);

/*
 * Reads ahead what the first try of up to PL_QUERY_AHEAD queries takes, all of it at once: where
 * reading has to wait, many keys then wait once. `keys` are those that are going to be asked next,
 * in their order: struct pl_key's h; of append numbers of entries of `list`. -ENOMEM.
 */
int pl_query_fetch(struct pl_query *q, const uint64_t *keys, unsigned int n, uint32_t list,
	struct pl_diag *diag);

void pl_query_done(struct pl_query *q);

/* As pl_key_write_get, pl_counters_estimate and pl_postcards_get. */
int pl_query_value(struct pl_query *q, struct pl_key key, unsigned int threshold,
	struct pl_key_write_result *ret, void *ret_value, struct pl_diag *diag);
int pl_query_sum(
	struct pl_query *q, struct pl_key key, struct pl_estimate *ret, struct pl_diag *diag);
int pl_query_path(struct pl_query *q, struct pl_key key, const struct pl_value_set *set,
	struct pl_postcards_result *ret, uint32_t *ret_values, struct pl_diag *diag);

/* The entry of this number, if it is still there: PL_FOUND. */
int pl_query_entry(struct pl_query *q, uint32_t list, uint64_t number, enum pl_answer *ret_answer,
	void *ret_entry, struct pl_diag *diag);

/* As pl_sketch_estimate; lowers `complete` to what it is afterwards. */
int pl_query_estimate(struct pl_query *q, struct pl_key key, struct pl_estimate *ret,
	bool *ret_saturated, struct pl_diag *diag);
/* As pl_sketch_cardinality, -EBADMSG with it; lowers `complete` likewise. */
int pl_query_cardinality(
	struct pl_query *q, double *ret_keys, double *ret_error, struct pl_diag *diag);
