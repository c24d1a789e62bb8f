/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a region's store, and checks its entries. */
#include "ask/region_read.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"
#include "memory/words.h"
#include "show/row_out.h"

#define NUMBER 24

void *pl_region_store_of(const struct pl_region *g, const struct pl_region_args *args)
{
	uint64_t epoch = pl_region_epoch(g);
	void *base;

	if (args->epoch != NULL && pl_parse_u64(args->epoch, &epoch) < 0) {
		pl_complain("--epoch needs a number");
		return NULL;
	}
	base = pl_region_store(g, epoch);
	if (base == NULL)
		pl_complain("epoch %" PRIu64
			    " is not in the region, whose present epoch is %" PRIu64,
			epoch, pl_region_epoch(g));
	return base;
}

void pl_region_tell_whole(const struct pl_sketch *s, uint64_t complete)
{
	if (complete < s->columns)
		pl_complain(
			"the sketch is not whole: %" PRIu64 " of %" PRIu64
			" columns belong to the present sketch, the others may hold an earlier one",
			complete, s->columns);
}

static const char *u64(char dst[NUMBER], uint64_t v)
{
	snprintf(dst, NUMBER, "%" PRIu64, v);
	return dst;
}

/* ---- entries that are whole ---- */

struct account {
	uint64_t used, whole, damaged, unpublished, wrong_heads;
	bool provable; /* `whole` was checked for each entry */
};

#define HEADS_TOLD 3 /* the others are only counted */

static void verify_head(
	struct account *acc, const struct pl_append *a, uint32_t list, uint64_t slack)
{
	uint64_t head, end;

	if (pl_append_examine(a, list, slack, &head, &end) == PL_HEAD_FITS)
		return;
	if (acc->wrong_heads++ < HEADS_TOLD)
		pl_complain("list %" PRIu32
			    ": its head disagrees with its entries: the head is %" PRIu64
			    ", the entries end before number %" PRIu64,
			list, head, end);
}

static void verify_append(struct account *acc, const struct pl_append *a, uint64_t slack)
{
	static uint8_t entries[64 * PL_ENTRY_MAX];

	for (uint32_t list = 0; list < a->lists; list++) {
		struct pl_append_reader r;
		size_t n;

		pl_append_reader_init(&r, a, list, pl_append_oldest(a, list));
		while ((n = pl_append_read(&r, entries, NULL, 64)) > 0)
			acc->whole += n;
		acc->damaged += r.damaged;
		acc->unpublished += pl_append_unpublished(a, list);
		verify_head(acc, a, list, slack);
	}
	acc->used = acc->whole + acc->damaged;
	acc->provable = a->sealed;
}

static void verify_key_write(struct account *acc, const struct pl_key_write *kw)
{
	uint8_t value[PL_VALUE_MAX];
	uint32_t check;

	for (uint64_t i = 0; i < kw->slots; i++) {
		if (!pl_key_write_slot(kw, i, &check, value))
			continue;
		acc->used++;
		/* A slot with this check value cannot be complete; for others only the key can show
		 * that. */
		acc->damaged += check == 0 && kw->hashing.kind == PL_HASH_PATHLINE;
	}
}

static void verify_words(struct account *acc, const uint8_t *base, uint64_t n, uint32_t bytes)
{
	for (uint64_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < bytes; k++) {
			if (base[i * bytes + k] != 0) {
				acc->used++;
				break;
			}
		}
	}
}

static void verify_registers(struct account *acc, const uint8_t *registers, uint64_t n)
{
	acc->provable = true;
	for (uint64_t i = 0; i < n; i++) {
		acc->used += registers[i] != 0;
		acc->damaged += registers[i] > PL_SKETCH_RANK_MAX;
	}
	acc->whole = acc->used - acc->damaged;
}

/* Counts entries. clean: the last writer closed the region, and left nothing unpublished. */
static void account_for(
	struct account *acc, const struct pl_store_params *params, void *base, bool clean)
{
	struct pl_key_write kw;
	struct pl_append a;

	switch (params->primitive) {
	case PL_APPEND:
		if (pl_append_init(&a, params, base) == 0)
			verify_append(acc, &a, clean ? 0 : a.batch_max);
		break;
	case PL_KEY_WRITE:
		if (pl_key_write_init(&kw, params, base) == 0)
			verify_key_write(acc, &kw);
		break;
	case PL_COUNTERS:
		verify_words(acc, base,
			params->counters.width *
				(params->counters.shared != 0 ? 1 : params->counters.rows),
			8);
		break;
	case PL_POSTCARDS:
		verify_words(acc, base, params->postcards.chunks,
			pl_postcards_chunk_bytes(params->hash, params->postcards.hops));
		break;
	default:
		if (params->sketch.kind == PL_SKETCH_HYPERLOGLOG)
			verify_registers(
				acc, (uint8_t *)base + PL_SKETCH_CELLS_AT, params->sketch.columns);
		else
			verify_words(acc, (uint8_t *)base + PL_SKETCH_CELLS_AT,
				params->sketch.columns * params->sketch.rows,
				params->sketch.cell_bytes);
	}
}

int pl_region_verify(const struct pl_region *g, const struct pl_region_args *args)
{
	static const struct pl_column columns[] = {
		{ "primitive", -10, false, false },
		{ "epoch", 8, true, false },
		{ "closed", -6, false, false, .flag = true },
		{ "used", 12, true, false },
		{ "whole", 12, true, false },
		{ "damaged", 12, true, false },
		{ "unpublished", 12, true, false },
		{ "lost_pages", 10, true, true },
		{ "wrong_heads", 11, true, true },
	};
	struct pl_region_info info;
	struct account acc = { .used = 0 };
	void *base = pl_region_store_of(g, args);
	char text[7][NUMBER];
	struct pl_row_out out;

	if (base == NULL)
		return PL_EXIT_NOTHING;
	pl_region_get_info(g, &info);
	account_for(&acc, pl_region_params(g), base, info.clean);
	pl_region_get_info(g, &info);
	pl_row_out_init(&out, args->form, columns, sizeof(columns) / sizeof(columns[0]));
	{
		const char *values[] = {
			pl_primitive_name(info.params.primitive),
			args->epoch != NULL ? args->epoch : u64(text[0], info.epoch),
			info.clean ? "yes" : "no",
			u64(text[1], acc.used),
			acc.provable ? u64(text[2], acc.whole) : NULL,
			u64(text[3], acc.damaged),
			info.params.primitive == PL_APPEND ? u64(text[4], acc.unpublished) : NULL,
			u64(text[5], info.lost_pages),
			acc.provable && info.params.primitive == PL_APPEND
				? u64(text[6], acc.wrong_heads)
				: NULL,
		};

		pl_row_out_add(&out, values);
	}
	if (!pl_row_out_end(&out))
		return PL_EXIT_FAILED;
	return acc.damaged > 0 || acc.wrong_heads > 0 || info.lost_pages > 0 ? PL_EXIT_NOTHING
									     : PL_EXIT_OK;
}
