/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up keys in a store, in files or at collectors: the answers of each primitive. */
#include "ask/region_lookup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ask/region_values.h"
#include "base/complain.h"
#include "base/exit_code.h"

const char *const pl_key_forms[] = { "text", "hex", "u32", "be32", "u64", NULL };

static const char *fill(struct pl_lookup *l, unsigned int i, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static const char *fill(struct pl_lookup *l, unsigned int i, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->text[i], sizeof(l->text[i]), fmt, ap);
	va_end(ap);
	return l->text[i];
}

static const struct pl_column key_write_columns[] = {
	{ "key", -24, false, false },
	{ "answer", -9, false, false },
	{ "votes", 5, true, false },
	{ "matches", 7, true, true },
	{ "value", -8, false, false },
};

static int look_key_write(
	struct pl_lookup *l, const void *key, size_t n, const char **values, struct pl_diag *diag)
{
	const struct pl_key_write *kw = &l->q.kw;
	uint8_t value[PL_VALUE_MAX];
	struct pl_key_write_result r;
	int e = pl_query_value(&l->q, pl_key_carried(&kw->hashing, key, n),
		(unsigned int)l->args->threshold, &r, value, diag);

	if (e < 0)
		return e;
	values[1] = pl_answer_name(r.answer);
	values[2] = fill(l, 2, "%u", r.votes);
	values[3] = fill(l, 3, "%u", r.matches);
	values[4] = NULL;
	if (r.answer == PL_FOUND)
		values[4] = pl_hex_text(l->text[4], value, kw->value_bytes);
	return r.answer == PL_FOUND;
}

static const struct pl_column append_columns[] = {
	{ "number", -20, false, false },
	{ "answer", -9, false, false },
	{ "value", -8, false, false },
};

/* The key is a number. */
static int look_append(
	struct pl_lookup *l, const void *key, size_t n, const char **values, struct pl_diag *diag)
{
	uint8_t entry[PL_ENTRY_MAX];
	enum pl_answer answer;
	uint64_t number;
	int e;

	(void)n;
	memcpy(&number, key, sizeof(number));
	e = pl_query_entry(&l->q, (uint32_t)l->args->list, number, &answer, entry, diag);
	if (e < 0)
		return e;
	values[1] = pl_answer_name(answer);
	values[2] = NULL;
	if (answer == PL_FOUND)
		values[2] = pl_hex_text(l->text[2], entry, l->q.a.entry_bytes);
	return answer == PL_FOUND;
}

static const struct pl_column estimate_columns[] = {
	{ "key", -24, false, false },
	{ "value", 20, true, false },
	{ "error", 12, true, false },
	{ "confidence", 10, true, false },
	{ "saturated", -9, false, true, .flag = true },
};

static void fill_estimate(struct pl_lookup *l, const struct pl_estimate *e, const char **values)
{
	values[1] = fill(l, 1, "%" PRIu64, e->value);
	values[2] = fill(l, 2, "%.1f", e->error);
	values[3] = fill(l, 3, "%.4f", e->confidence);
}

static int look_counters(
	struct pl_lookup *l, const void *key, size_t n, const char **values, struct pl_diag *diag)
{
	struct pl_estimate e;
	int r = pl_query_sum(&l->q, pl_key_carried(&l->q.c.hashing, key, n), &e, diag);

	if (r < 0)
		return r;
	fill_estimate(l, &e, values);
	values[4] = NULL;
	return e.value > 0;
}

static const struct pl_column sketch_columns[] = {
	{ "key", -24, false, false },
	{ "value", 20, true, false },
	{ "error", 12, true, false },
	{ "confidence", 10, true, false },
	{ "saturated", -9, false, true, .flag = true },
	{ "whole", -5, false, false, .flag = true },
	{ "complete", 10, true, false },
};

static bool is_whole(const struct pl_lookup *l)
{
	return l->q.complete == l->q.s.columns;
}

static int look_sketch(
	struct pl_lookup *l, const void *key, size_t n, const char **values, struct pl_diag *diag)
{
	struct pl_estimate e;
	bool saturated;
	int r = pl_query_estimate(&l->q, pl_sketch_key(&l->q.s, key, n), &e, &saturated, diag);

	if (r < 0)
		return r;
	fill_estimate(l, &e, values);
	values[4] = saturated ? "yes" : "no";
	values[5] = is_whole(l) ? "yes" : "no";
	values[6] = fill(l, 6, "%" PRIu64, l->q.complete);
	return e.value > 0 && is_whole(l);
}

static const struct pl_column postcards_columns[] = {
	{ "key", -24, false, false },
	{ "answer", -9, false, false },
	{ "copies", 6, true, false },
	{ "hops", 4, true, false },
	{ "path", -8, false, false },
};

static int look_postcards(
	struct pl_lookup *l, const void *key, size_t n, const char **values, struct pl_diag *diag)
{
	uint32_t path[PL_HOPS_MAX];
	struct pl_postcards_result r;
	size_t at = 0;
	int e = pl_query_path(&l->q, pl_postcards_key(&l->q.p, key, n),
		l->nodes->table != NULL ? l->nodes : NULL, &r, path, diag);

	if (e < 0)
		return e;
	values[1] = pl_answer_name(r.answer);
	values[2] = fill(l, 2, "%u", r.copies);
	values[3] = values[4] = NULL;
	if (r.answer != PL_FOUND)
		return 0;
	values[3] = fill(l, 3, "%u", r.n);
	for (unsigned int i = 0; i < r.n; i++)
		at += (size_t)snprintf(l->text[4] + at, sizeof(l->text[4]) - at, "%s%" PRIu32,
			i > 0 ? ">" : "", path[i]);
	values[4] = l->text[4];
	return 1;
}

/* ---- the hash of a key; that of an entry is its number ---- */

static uint64_t hash_key_write(const struct pl_lookup *l, const void *key, size_t n)
{
	return pl_key_carried(&l->q.kw.hashing, key, n).h;
}

static uint64_t hash_append(const struct pl_lookup *l, const void *key, size_t n)
{
	uint64_t number;

	(void)l;
	(void)n;
	memcpy(&number, key, sizeof(number));
	return number;
}

static uint64_t hash_counters(const struct pl_lookup *l, const void *key, size_t n)
{
	return pl_key_carried(&l->q.c.hashing, key, n).h;
}

static uint64_t hash_postcards(const struct pl_lookup *l, const void *key, size_t n)
{
	return pl_postcards_key(&l->q.p, key, n).h;
}

static uint64_t hash_sketch(const struct pl_lookup *l, const void *key, size_t n)
{
	return pl_sketch_key(&l->q.s, key, n).h;
}

#define LOOKER(columns, name, goes_on)                                                             \
	{                                                                                          \
		columns, sizeof(columns) / sizeof((columns)[0]), look_##name, hash_##name, goes_on \
	}

const struct pl_looker pl_lookers[] = {
	[PL_KEY_WRITE] = LOOKER(key_write_columns, key_write, true),
	[PL_APPEND] = LOOKER(append_columns, append, false),
	[PL_COUNTERS] = LOOKER(estimate_columns, counters, true),
	[PL_POSTCARDS] = LOOKER(postcards_columns, postcards, true),
	[PL_SKETCH] = LOOKER(sketch_columns, sketch, true),
};

int pl_lookup_cardinality(struct pl_lookup *l, struct pl_diag *diag)
{
	static const struct pl_column columns[] = { { "keys", 16, true, false },
		{ "standard_error", 14, true, false }, { "whole", -5, false, false, .flag = true },
		{ "complete", 10, true, false } };
	const char *values[4];
	struct pl_row_out out;
	double keys, error;
	int r = pl_query_cardinality(&l->q, &keys, &error, diag);

	if (r < 0)
		return r;
	values[0] = fill(l, 0, "%.1f", keys);
	values[1] = fill(l, 1, "%.1f", keys * error);
	values[2] = is_whole(l) ? "yes" : "no";
	values[3] = fill(l, 3, "%" PRIu64, l->q.complete);
	pl_row_out_init(&out, l->args->form, columns, 4);
	pl_row_out_add(&out, values);
	return pl_row_out_end(&out) ? is_whole(l) : -EPIPE;
}

int pl_lookup_check(const struct pl_store_params *params, const struct pl_region_args *args)
{
	if (params->primitive == PL_APPEND && args->list >= params->append.lists)
		return pl_fail(PL_EXIT_USAGE, "the region has lists 0 to %" PRIu32,
			params->append.lists - 1);
	if (params->primitive == PL_POSTCARDS && params->hash == PL_HASH_DTA && args->nodes == NULL)
		return pl_fail(PL_EXIT_USAGE,
			"missing --nodes: without check values a path is recognised by its possible nodes, such as --nodes 1-100");
	return 0;
}
