/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the parameters of a store, and computes its size. */
#include "memory/store.h"

#include <errno.h>
#include <string.h>

#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"

#define LINE UINT64_C(64)

static const char *const names[] = {
	[PL_KEY_WRITE] = "key-write",
	[PL_APPEND] = "append",
	[PL_COUNTERS] = "counters",
	[PL_POSTCARDS] = "postcards",
	[PL_SKETCH] = "sketch",
};

const char *pl_primitive_name(uint32_t primitive)
{
	return primitive < sizeof(names) / sizeof(names[0]) ? names[primitive] : NULL;
}

uint32_t pl_primitive_by_name(const char *name)
{
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i] != NULL && strcmp(names[i], name) == 0)
			return i;
	}
	return 0;
}

const char *pl_answer_name(enum pl_answer answer)
{
	return answer == PL_FOUND ? "found" : answer == PL_AMBIGUOUS ? "ambiguous" : "not_found";
}

static int refuse(struct pl_diag *diag, const char *what)
{
	pl_diag_set(diag, "%s", what);
	return -EINVAL;
}

/* Computes n * each, rounded up to a multiple of 64, unless that is too much. */
static int size_of(uint64_t n, uint64_t each, uint64_t *ret, struct pl_diag *diag)
{
	unsigned __int128 bytes = (unsigned __int128)n * each;

	if (bytes > PL_STORE_BYTES_MAX) {
		pl_diag_set(diag, "the store would be larger than 64 PiB");
		return -EOVERFLOW;
	}
	*ret = ((uint64_t)bytes + LINE - 1) / LINE * LINE;
	return 0;
}

/* Checks the limits of the published code's masks. */
static int check_mask(uint64_t slots, const char *what, struct pl_diag *diag)
{
	if ((slots & (slots - 1)) != 0 || slots < 2 || slots > UINT64_C(1) << 31) {
		pl_diag_set(diag,
			"with --hash dta the number of %s must be a power of two, 2 to 2^31", what);
		return -EINVAL;
	}
	return 0;
}

/* The next power of two; above a cache line whole lines. */
static uint32_t slot_size(uint32_t bytes)
{
	uint32_t size = 8;

	if (bytes > LINE)
		return (uint32_t)((bytes + LINE - 1) / LINE * LINE);
	while (size < bytes)
		size *= 2;
	return size;
}

uint32_t pl_key_write_slot_bytes(uint32_t value_bytes)
{
	return slot_size(4 + value_bytes);
}

uint32_t pl_postcards_chunk_bytes(uint32_t hash, uint32_t hops)
{
	return hash == PL_HASH_DTA ? 32 : slot_size(4 * hops + 4);
}

uint32_t pl_append_entry_stride(uint32_t entry_bytes, bool sealed)
{
	return sealed ? (entry_bytes + 7) / 8 * 8 + 8 : entry_bytes;
}

static int key_write_bytes(const struct pl_store_params *p, uint64_t *ret, struct pl_diag *diag)
{
	if (p->key_write.slots == 0)
		return refuse(diag, "a key-write store needs at least one slot");
	if (p->key_write.value_bytes == 0 || p->key_write.value_bytes > PL_VALUE_MAX)
		return refuse(diag, "a value must have 1 to 1020 bytes");
	if (p->key_write.copies == 0 || p->key_write.copies > PL_COPIES_MAX)
		return refuse(diag, "a value must have 1 to 8 copies");
	if (p->hash == PL_HASH_DTA && check_mask(p->key_write.slots, "slots", diag) != 0)
		return -EINVAL;
	return size_of(
		p->key_write.slots, pl_key_write_slot_bytes(p->key_write.value_bytes), ret, diag);
}

static int append_bytes(const struct pl_store_params *p, uint64_t *ret, struct pl_diag *diag)
{
	uint64_t list_bytes;
	int r;

	if (p->append.lists == 0)
		return refuse(diag, "an append store needs at least one list");
	if (p->append.sealed > 1)
		return refuse(diag, "entries are sealed (1) or not (0)");
	if (p->append.entry_bytes == 0 || p->append.entry_bytes > PL_ENTRY_MAX)
		return refuse(diag, "an entry must have 1 to 4088 bytes");
	if (p->append.sealed == 0 && p->append.entry_bytes % 4 != 0)
		return refuse(diag, "the size of unsealed entries must be a multiple of 4 bytes");
	if (p->append.batch_max == 0 || p->append.slots % p->append.batch_max != 0 ||
		p->append.slots / p->append.batch_max < 2)
		return refuse(diag,
			"the slots of a list must be a multiple of the largest batch, and at least two batches");
	r = size_of(p->append.slots,
		pl_append_entry_stride(p->append.entry_bytes, p->append.sealed != 0), &list_bytes,
		diag);
	return r < 0 ? r : size_of(p->append.lists, PL_APPEND_RING_AT + list_bytes, ret, diag);
}

static int counters_bytes(const struct pl_store_params *p, uint64_t *ret, struct pl_diag *diag)
{
	if (p->counters.width == 0)
		return refuse(diag, "a row of counters needs at least one cell");
	if (p->counters.rows == 0 || p->counters.rows > PL_ROWS_MAX)
		return refuse(diag, "counters must have 1 to 16 rows");
	if (p->counters.shared > 1)
		return refuse(diag, "rows are shared (1) or not (0)");
	if (p->hash == PL_HASH_DTA) {
		if (p->counters.shared == 0)
			return refuse(diag, "with the hash of DTA the rows share one array");
		if (check_mask(p->counters.width, "cells", diag) != 0)
			return -EINVAL;
	}
	return size_of(p->counters.width,
		8 * (uint64_t)(p->counters.shared != 0 ? 1 : p->counters.rows), ret, diag);
}

static int postcards_bytes(const struct pl_store_params *p, uint64_t *ret, struct pl_diag *diag)
{
	if (p->postcards.chunks == 0)
		return refuse(diag, "a postcard store needs at least one chunk");
	if (p->postcards.hops == 0 || p->postcards.hops > PL_HOPS_MAX)
		return refuse(diag, "a path must have 1 to 31 hops");
	if (p->postcards.copies == 0 || p->postcards.copies > PL_COPIES_MAX)
		return refuse(diag, "a path must have 1 to 8 copies");
	if (p->hash == PL_HASH_DTA) {
		if (p->postcards.hops != 5 || p->postcards.copies != 1)
			return refuse(diag, "with --hash dta paths must have 5 hops and one copy");
		if (check_mask(p->postcards.chunks, "chunks", diag) != 0)
			return -EINVAL;
	}
	return size_of(p->postcards.chunks, pl_postcards_chunk_bytes(p->hash, p->postcards.hops),
		ret, diag);
}

static int sketch_bytes(const struct pl_store_params *p, uint64_t *ret, struct pl_diag *diag)
{
	bool loglog = p->sketch.kind == PL_SKETCH_HYPERLOGLOG;
	int r;

	if (p->hash != PL_HASH_PATHLINE)
		return refuse(diag, "sketches need the hash pathline");
	if (p->sketch.kind != PL_SKETCH_COUNT_MIN && !loglog)
		return refuse(diag, "a sketch is of kind count-min (1) or HyperLogLog (2)");
	if (p->sketch.columns < (loglog ? 16 : 1))
		return refuse(diag, loglog ? "a HyperLogLog has at least 16 registers"
					   : "a sketch has at least one column");
	if (p->sketch.rows == 0 || p->sketch.rows > (loglog ? 1 : PL_ROWS_MAX))
		return refuse(
			diag, loglog ? "a HyperLogLog has one row" : "a sketch has 1 to 16 rows");
	if (loglog ? p->sketch.cell_bytes != 1
		   : p->sketch.cell_bytes != 4 && p->sketch.cell_bytes != 8)
		return refuse(diag, loglog ? "registers of HyperLogLog must have 1 byte"
					   : "cells of count-min must have 4 or 8 bytes");
	r = size_of(p->sketch.columns, (uint64_t)p->sketch.rows * p->sketch.cell_bytes, ret, diag);
	if (r == 0)
		*ret += PL_SKETCH_CELLS_AT;
	return r;
}

/* Bytes of the union that a primitive uses. */
static size_t used(const struct pl_store_params *p)
{
	const size_t begin = offsetof(struct pl_store_params, raw);

	switch (p->primitive) {
	case PL_KEY_WRITE:
		return offsetof(struct pl_store_params, key_write.zero) - begin;
	case PL_APPEND:
		return offsetof(struct pl_store_params, append.zero) - begin;
	case PL_COUNTERS:
		return offsetof(struct pl_store_params, counters.zero) - begin;
	case PL_POSTCARDS:
		return offsetof(struct pl_store_params, postcards.zero) - begin;
	case PL_SKETCH:
		return offsetof(struct pl_store_params, sketch.zero) - begin;
	default:
		return 0;
	}
}

static bool rest_is_zero(const struct pl_store_params *p)
{
	bool content = p->primitive == PL_KEY_WRITE || p->primitive == PL_APPEND;

	for (size_t i = used(p); i < sizeof(p->raw); i++) {
		if (p->raw[i] != 0)
			return false;
	}
	return p->zero == 0 && (content || p->content == 0);
}

uint32_t pl_content_bytes(uint32_t content)
{
	if (content >= PL_CONTENT_FLAT && content < PL_CONTENT_MAX)
		return pl_flat((enum pl_flat_kind)(content - PL_CONTENT_FLAT))->size;
	return content == PL_CONTENT_BYTES ? 0 : (uint32_t)sizeof(struct pl_path);
}

static int check_content(const struct pl_store_params *p, struct pl_diag *diag)
{
	uint32_t bytes =
		p->primitive == PL_APPEND ? p->append.entry_bytes : p->key_write.value_bytes;

	if (p->content >= PL_CONTENT_MAX)
		return refuse(diag, "unknown kind of content");
	if (bytes < pl_content_bytes(p->content))
		return refuse(
			diag, "values and entries are shorter than the records of the content");
	return 0;
}

int pl_store_bytes(const struct pl_store_params *p, uint64_t *ret, struct pl_diag *diag)
{
	static int (*const sizes[])(
		const struct pl_store_params *, uint64_t *, struct pl_diag *) = {
		[PL_KEY_WRITE] = key_write_bytes,
		[PL_APPEND] = append_bytes,
		[PL_COUNTERS] = counters_bytes,
		[PL_POSTCARDS] = postcards_bytes,
		[PL_SKETCH] = sketch_bytes,
	};
	int r;

	if (pl_primitive_name(p->primitive) == NULL)
		return refuse(diag, "unknown primitive");
	if (p->hash != PL_HASH_PATHLINE && p->hash != PL_HASH_DTA)
		return refuse(diag, "unknown hash");
	if (p->hash == PL_HASH_DTA && p->seed != 0)
		return refuse(diag, "the hash of DTA has no seed");
	if (!rest_is_zero(p))
		return refuse(diag, "unused bytes of the store's parameters are not zero");
	r = check_content(p, diag);
	return r < 0 ? r : sizes[p->primitive](p, ret, diag);
}
