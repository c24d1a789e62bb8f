/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of pathline/region.h. */
#include <pathline/region.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/common.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/region.h"

enum { COPIES = 2, ROWS = 4 };

struct pathline_region {
	struct pl_region *region;
	bool writes;
	uint32_t primitive;
	uint64_t epoch; /* of which the store below is */
	union {
		struct pl_key_write key_write;
		struct pl_append append;
		struct pl_counters counters;
	};
};

struct pathline_reader {
	struct pathline_region *region;
	struct pl_append_reader reader;
};

/* ---- shapes ---- */

static uint32_t or_else(uint32_t n, uint32_t usual)
{
	return n != 0 ? n : usual;
}

static int read_shape(const struct pathline_shape *s, struct pl_store_params *ret)
{
	for (size_t i = 0; i < sizeof(s->reserved) / sizeof(s->reserved[0]); i++) {
		if (s->reserved[i] != 0)
			return -EINVAL;
	}
	*ret = (struct pl_store_params){ .primitive = s->primitive,
		.hash = PL_HASH_PATHLINE,
		.seed = s->seed != 0 ? s->seed : pl_hash_seed(),
		.content = s->content };
	switch (s->primitive) {
	case PATHLINE_KEY_WRITE:
		ret->key_write.slots = s->slots;
		ret->key_write.value_bytes = s->value_bytes;
		ret->key_write.copies = or_else(s->copies, COPIES);
		return 0;
	case PATHLINE_APPEND:
		ret->append.slots = s->slots;
		ret->append.entry_bytes = s->value_bytes;
		ret->append.lists = or_else(s->lists, 1);
		ret->append.batch_max = or_else(s->batch, 1);
		ret->append.sealed = 1;
		return 0;
	case PATHLINE_COUNTERS:
		ret->counters.width = s->slots;
		ret->counters.rows = or_else(s->copies, ROWS);
		return 0;
	default:
		return -EINVAL;
	}
}

void pathline_region_shape(const struct pathline_region *r, struct pathline_shape *ret)
{
	const struct pl_store_params *p = pl_region_params(r->region);

	*ret = (struct pathline_shape){
		.primitive = p->primitive, .content = p->content, .seed = p->seed
	};
	switch (p->primitive) {
	case PL_KEY_WRITE:
		ret->slots = p->key_write.slots;
		ret->value_bytes = p->key_write.value_bytes;
		ret->copies = p->key_write.copies;
		break;
	case PL_APPEND:
		ret->slots = p->append.slots;
		ret->value_bytes = p->append.entry_bytes;
		ret->lists = p->append.lists;
		ret->batch = p->append.batch_max;
		break;
	case PL_COUNTERS:
		ret->slots = p->counters.width;
		ret->copies = p->counters.rows;
		break;
	default:
		break;
	}
}

/* ---- life ---- */

/* The store of the present epoch. */
static int aim(struct pathline_region *r)
{
	const struct pl_store_params *p = pl_region_params(r->region);
	void *base;

	r->epoch = pl_region_epoch(r->region);
	base = pl_region_store(r->region, r->epoch);
	switch (r->primitive) {
	case PL_KEY_WRITE:
		return pl_key_write_init(&r->key_write, p, base);
	case PL_APPEND:
		return pl_append_init(&r->append, p, base);
	case PL_COUNTERS:
		return pl_counters_init(&r->counters, p, base);
	default:
		return 0;
	}
}

static int opened(struct pathline_region **ret, struct pathline_region *r, int result)
{
	if (result == 0) {
		r->primitive = pl_region_params(r->region)->primitive;
		result = aim(r);
	}
	if (result < 0) {
		(void)pathline_region_close(r);
		return result;
	}
	*ret = r;
	return 0;
}

int pathline_region_create(struct pathline_region **ret, const char *path,
	const struct pathline_shape *shape, struct pathline_error *error)
{
	struct pathline_region *r = calloc(1, sizeof(*r));
	struct pl_diag diag = { .text = "" };
	struct pl_store_params params;
	int result = r == NULL ? -ENOMEM : read_shape(shape, &params);

	if (result == -EINVAL)
		pl_diag_set(&diag,
			"key-write, append or counters are created here; reserved members are zero");
	if (result == 0) {
		r->writes = true;
		result = pl_region_create(&r->region, path, &params, NULL, &diag);
	}
	return lib_result(opened(ret, r, result), &diag, error);
}

int pathline_region_open(struct pathline_region **ret, const char *path,
	enum pathline_access access, struct pathline_error *error)
{
	struct pathline_region *r = calloc(1, sizeof(*r));
	struct pl_diag diag = { .text = "" };
	int result = r == NULL ? -ENOMEM : 0;

	if (result == 0) {
		r->writes = access == PATHLINE_WRITE;
		result = pl_region_open(&r->region, path,
			r->writes ? PL_REGION_WRITE : PL_REGION_READ, NULL, &diag);
		/* A file that is shorter than it says is a damaged one, too. */
		if (result == -ERANGE)
			result = -EBADMSG;
	}
	return lib_result(opened(ret, r, result), &diag, error);
}

int pathline_region_close(struct pathline_region *r)
{
	int result;

	if (r == NULL)
		return 0;
	result = pl_region_close(r->region);
	free(r);
	return result;
}

int pathline_region_sync(struct pathline_region *r)
{
	return r->writes ? pl_region_sync(r->region) : -EACCES;
}

/* Before each use: the primitive, the right to write, and the epoch. */
static int use(struct pathline_region *r, uint32_t primitive, bool writing)
{
	if (r->primitive != primitive)
		return -EINVAL;
	if (writing && !r->writes)
		return -EACCES;
	return pl_region_epoch(r->region) != r->epoch ? aim(r) : 0;
}

/* Returns true when the values read are of an epoch that was present all the time; else they must
 * be read again. */
static bool stayed(const struct pathline_region *r)
{
	return pl_region_has_epoch(r->region, r->epoch);
}

/* ---- key-write ---- */

int pathline_key_write_put(struct pathline_region *r, const void *key, size_t key_bytes,
	const void *value, size_t value_bytes)
{
	int result = use(r, PL_KEY_WRITE, true);

	if (result == 0 && value_bytes != r->key_write.value_bytes)
		result = -EINVAL;
	if (result == 0)
		pl_key_write_put(&r->key_write, pl_key_write_key(&r->key_write, key, key_bytes),
			value, r->key_write.copies);
	return result;
}

int pathline_key_write_get(struct pathline_region *r, const void *key, size_t key_bytes,
	void *ret_value, size_t value_bytes)
{
	struct pl_key_write_result got;
	int result;

	do {
		result = use(r, PL_KEY_WRITE, false);
		if (result == 0 && value_bytes != r->key_write.value_bytes)
			result = -EINVAL;
		if (result < 0)
			return result;
		got = pl_key_write_get(&r->key_write,
			pl_key_write_key(&r->key_write, key, key_bytes), 1, ret_value);
	} while (!stayed(r));
	return got.answer == PL_FOUND       ? PATHLINE_FOUND
	       : got.answer == PL_AMBIGUOUS ? PATHLINE_AMBIGUOUS
					    : PATHLINE_NOT_FOUND;
}

/* ---- counters ---- */

int pathline_counters_add(
	struct pathline_region *r, const void *key, size_t key_bytes, uint64_t increment)
{
	const int result = use(r, PL_COUNTERS, true);

	return result < 0 ? result
			  : pl_counters_add(&r->counters,
				    pl_counters_key(&r->counters, key, key_bytes), increment);
}

int pathline_counters_get(
	struct pathline_region *r, const void *key, size_t key_bytes, uint64_t *ret_sum)
{
	int result;

	do {
		result = use(r, PL_COUNTERS, false);
		if (result < 0)
			return result;
		*ret_sum = pl_counters_get(
			&r->counters, pl_counters_key(&r->counters, key, key_bytes));
	} while (!stayed(r));
	return 0;
}

/* ---- append ---- */

int pathline_append_put(struct pathline_region *r, uint32_t list, const void *entries, size_t n,
	uint64_t *ret_first)
{
	int result = use(r, PL_APPEND, true);
	uint64_t first;

	if (result == 0 && list >= r->append.lists)
		result = -EINVAL;
	if (result < 0)
		return result;
	first = pl_append_put(&r->append, list, entries, n);
	if (ret_first != NULL)
		*ret_first = first;
	return 0;
}

int pathline_reader_open(
	struct pathline_reader **ret, struct pathline_region *r, uint32_t list, uint64_t from)
{
	struct pathline_reader *reader;
	int result = use(r, PL_APPEND, false);

	if (result == 0 && list >= r->append.lists)
		result = -EINVAL;
	if (result < 0)
		return result;
	reader = calloc(1, sizeof(*reader));
	if (reader == NULL)
		return -ENOMEM;
	reader->region = r;
	if (from == PATHLINE_OLDEST)
		from = pl_append_oldest(&r->append, list);
	else if (from == PATHLINE_NEXT)
		from = pl_append_head(&r->append, list);
	pl_append_reader_init(&reader->reader, &r->append, list, from);
	*ret = reader;
	return 0;
}

int pathline_reader_next(
	struct pathline_reader *reader, void *ret_entries, uint64_t *ret_numbers, size_t n)
{
	/* At most as many as the result can count. */
	const size_t most = n < INT32_MAX ? n : INT32_MAX;

	return (int)pl_append_read(&reader->reader, ret_entries, ret_numbers, most);
}

void pathline_reader_lost(
	const struct pathline_reader *reader, uint64_t *ret_overrun, uint64_t *ret_damaged)
{
	*ret_overrun = reader->reader.overrun;
	*ret_damaged = reader->reader.damaged;
}

void pathline_reader_close(struct pathline_reader *reader)
{
	free(reader);
}
