/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region's file as anybody could have made it. The first byte of input says whether the header's
 * check value is made to fit (1), so that what lies behind it is reached; the rest is the file. A
 * header that is accepted describes a store within the file, and every query and reader stays in
 * that store, whatever its bytes are, and ends.
 */
#include "base/crc32.h"
#include "fuzz.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/region.h"
#include "memory/sketch.h"
#include "memory/test_sketch.h"

#define FILE_MAX 65536u

static void fit_check_value(uint8_t *file)
{
	uint32_t check;

	memset(file + 16, 0, 4);
	check = pl_crc32(0, file, 512);
	memcpy(file + 16, &check, 4);
}

static void ask_key_write(const struct pl_store_params *params, void *base)
{
	uint8_t value[PL_VALUE_MAX];
	struct pl_key_write kw;
	uint32_t check;

	must(pl_key_write_init(&kw, params, base) == 0);
	for (uint32_t k = 0; k < 8; k++) {
		struct pl_key_write_result r =
			pl_key_write_get(&kw, pl_key_write_key(&kw, &k, 4), 1, value);

		must(r.votes <= r.matches && r.matches <= kw.copies);
		must((r.answer == PL_NOT_FOUND) == (r.matches == 0));
	}
	for (uint64_t i = 0; i < kw.slots; i++)
		(void)pl_key_write_slot(&kw, i, &check, value);
	pl_key_write_put(&kw, pl_key_write_key(&kw, "k", 1), value, kw.copies);
	must(pl_key_write_get(&kw, pl_key_write_key(&kw, "k", 1), 1, value).answer != PL_AMBIGUOUS);
}

static void ask_append(const struct pl_store_params *params, void *base)
{
	static uint8_t entries[32 * PL_ENTRY_MAX];
	struct pl_append a;

	must(pl_append_init(&a, params, base) == 0);
	for (uint32_t list = 0; list < a.lists && list < 8; list++) {
		uint64_t head = pl_append_head(&a, list), numbers[32], last = 0, got = 0;
		struct pl_append_reader r;
		size_t n;

		pl_append_reader_init(&r, &a, list, pl_append_oldest(&a, list));
		while ((n = pl_append_read(&r, entries, numbers, 32)) > 0) {
			for (size_t i = 0; i < n; i++) {
				must(numbers[i] < head && (got + i == 0 || numbers[i] > last));
				last = numbers[i];
			}
			got += n;
		}
		must(got + r.damaged <= a.slots && r.overrun == 0 && r.cursor == head);
		must(pl_append_unpublished(&a, list) <= a.slots);
		must(pl_append_put(&a, list, entries, 1) == head);
	}
}

static void ask_others(const struct pl_store_params *params, void *base)
{
	uint32_t path[PL_HOPS_MAX];
	struct pl_estimate e;
	struct pl_counters c;
	struct pl_postcards p;
	double keys, error;
	struct pl_sketch s;
	bool saturated;

	if (params->primitive == PL_COUNTERS) {
		must(pl_counters_init(&c, params, base) == 0);
		e = pl_counters_estimate(&c, pl_counters_key(&c, "k", 1), pl_counters_total(&c));
		if (pl_counters_add(&c, pl_counters_key(&c, "k", 1), 1) == 0)
			must(pl_counters_get(&c, pl_counters_key(&c, "k", 1)) > e.value);
	} else if (params->primitive == PL_POSTCARDS) {
		must(pl_postcards_init(&p, params, base) == 0);
		must(pl_postcards_get(&p, pl_postcards_key(&p, "f", 1), NULL, path).n <= p.hops);
		path[0] = 1;
		must(pl_postcards_put(&p, pl_postcards_key(&p, "f", 1), path, 1) == 0);
	} else {
		must(pl_sketch_init(&s, params, base) == 0);
		if (pl_sketch_cardinality(&s, &keys, &error) == 0)
			must(keys >= 0);
		(void)sketch_estimate(
			&s, pl_sketch_key(&s, "k", 1), pl_sketch_total(&s), &e, &saturated);
		sketch_add(&s, pl_sketch_key(&s, "k", 1), 1);
		(void)pl_sketch_merge(&s, 0, s.columns, (const uint8_t *)base + PL_SKETCH_CELLS_AT);
	}
}

static void ask(const struct pl_region_info *info, const uint8_t *file)
{
	uint8_t *base = aligned_alloc(64, info->store_bytes);

	must(base != NULL);
	memcpy(base, file + info->data_offset, info->store_bytes);
	if (info->params.primitive == PL_KEY_WRITE)
		ask_key_write(&info->params, base);
	else if (info->params.primitive == PL_APPEND)
		ask_append(&info->params, base);
	else
		ask_others(&info->params, base);
	free(base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region_info info;
	uint8_t *file;
	size_t n;

	if (size == 0 || size > FILE_MAX)
		return 0;
	n = size - 1;
	file = malloc(n + 1);
	must(file != NULL);
	memcpy(file, data + 1, n);
	if ((data[0] & 1) != 0 && n >= 512)
		fit_check_value(file);
	if (pl_region_check(file, n, n, &info, &diag) < 0) {
		must(diag.text[0] != '\0');
	} else {
		must(info.data_offset >= PL_REGION_HEADER_BYTES && info.store_bytes % 64 == 0);
		must(info.half_stride >= info.store_bytes);
		must(info.data_offset + info.halves * info.half_stride == info.file_bytes);
		must(info.file_bytes <= n);
		ask(&info, file);
		/* What is refused one byte shorter is refused for that reason only. */
		must(pl_region_check(file, n, info.file_bytes - 1, &info, NULL) < 0);
	}
	free(file);
	return 0;
}
