/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries of a store whose bytes need not be mapped here. A source reads runs of bytes at offsets
 * of the store: from a mapping, or from a collector's memory by RDMA READ (remote/reader.h). The
 * primitives (key_write.h and so on) name the bytes that an answer needs, and check them, for all
 * sources alike.
 *
 * Check values work as in mapped memory. Bytes without a valid answer are read again, up to
 * PL_QUERY_TRIES times, as long as they change, because a writer may be active.
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

/* A run of bytes to read from a store, and the memory for them, aligned to 8 bytes. */
struct pl_store_read {
	uint64_t offset;
	uint64_t bytes;
	void *into;
};

/* Source of a store's bytes. `read` fills all runs, in any order among them, after all runs of the
 * call before. It returns 0, or a negative errno with diag, which may be NULL. */
struct pl_store_source {
	int (*read)(void *arg, const struct pl_store_read *reads, size_t n, struct pl_diag *diag);
	void *arg;
};

/* `read` for a store that is mapped here; `arg` is its first byte. It never fails. */
int pl_store_read_mapped(
	void *base, const struct pl_store_read *reads, size_t n, struct pl_diag *diag);

#define PL_QUERY_AHEAD 64u /* keys */

/* Words read ahead for the next keys: `stride` words for each of n keys, the first `at` of which
 * were used. */
struct pl_query_ahead {
	uint64_t keys[PL_QUERY_AHEAD];
	uint64_t *words; /* heap */
	size_t room, stride;
	unsigned int n, at;
	uint64_t head; /* append: head of `list` before it was read */
	uint32_t list;
};

struct pl_query {
	struct pl_store_source source;
	struct pl_store_params params;
	/* Geometry; only the one of the store's primitive is used. */
	struct pl_key_write kw;
	struct pl_append a;
	struct pl_counters c;
	struct pl_postcards p;
	struct pl_sketch s;
	double total;      /* counters, count-min: sum of all increments */
	uint64_t complete; /* sketch: fewest complete columns seen */
	struct pl_query_ahead ahead;
};

/* Initializes a query in the caller's memory. Returns 0, or -EINVAL when the parameters are of no
 * store. */
int pl_query_init(struct pl_query *q, const struct pl_store_params *params,
	const struct pl_store_source *source);

/* Reads what all keys share: of counters and count-min a row of cells for `total`, which bounds the
 * error of answers; of a sketch the number of complete columns. May return -ENOMEM. */
int pl_query_begin(struct pl_query *q, struct pl_diag *diag);

/* Reads ahead all bytes that the first try of up to PL_QUERY_AHEAD queries needs, in one read:
 * where reading has to wait, many keys wait once. `keys` are those asked next, in their order: h of
 * struct pl_key, or of append numbers of entries of `list`. May return -ENOMEM. */
int pl_query_fetch(struct pl_query *q, const uint64_t *keys, unsigned int n, uint32_t list,
	struct pl_diag *diag);

void pl_query_done(struct pl_query *q);

/* Queries as pl_key_write_get, pl_counters_estimate and pl_postcards_get answer them. */
int pl_query_value(struct pl_query *q, struct pl_key key, unsigned int threshold,
	struct pl_key_write_result *ret, void *ret_value, struct pl_diag *diag);
int pl_query_sum(
	struct pl_query *q, struct pl_key key, struct pl_estimate *ret, struct pl_diag *diag);
int pl_query_path(struct pl_query *q, struct pl_key key, const struct pl_value_set *set,
	struct pl_postcards_result *ret, uint32_t *ret_values, struct pl_diag *diag);

/* Reads the entry of this number: PL_FOUND while it is still there. */
int pl_query_entry(struct pl_query *q, uint32_t list, uint64_t number, enum pl_answer *ret_answer,
	void *ret_entry, struct pl_diag *diag);

/* Estimates as pl_sketch_bound does; lowers `complete` to the number of complete columns
 * afterwards. */
int pl_query_estimate(struct pl_query *q, struct pl_key key, struct pl_estimate *ret,
	bool *ret_saturated, struct pl_diag *diag);
/* Counts keys as pl_sketch_cardinality does, and returns -EBADMSG for a register that is too large;
 * lowers `complete` likewise. */
int pl_query_cardinality(
	struct pl_query *q, double *ret_keys, double *ret_error, struct pl_diag *diag);
