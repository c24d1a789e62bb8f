/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys asked of a region, or of those of several collectors, each of the one that has it. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/query_keys.h"
#include "cli/region_read.h"
#include "cli/region_values.h"
#include "cli/row_out.h"
#include "dta/translator.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"
#include "memory/words.h"

#define COLUMNS 7 /* the most that a lookup has in one region */
#define SPREAD  2 /* and more of them in several */

const char *const pl_key_forms[] = { "text", "hex", "u32", "be32", "u64", NULL };

/* ---- lookups: each fills the values of its columns and says whether the key is there ---- */

struct lookup {
	const struct pl_region_args *args;
	struct pl_key_write kw;
	struct pl_append a;
	struct pl_counters c;
	struct pl_postcards p;
	struct pl_sketch s;
	struct pl_value_set nodes;
	double total;
	uint64_t complete; /* the fewest columns that the sketch was seen to have */
	char text[COLUMNS][2 * PL_ENTRY_MAX + 1]; /* one for each column */
};

static const char *fill(struct lookup *l, unsigned int i, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static const char *fill(struct lookup *l, unsigned int i, const char *fmt, ...)
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

static bool look_key_write(struct lookup *l, const void *key, size_t n, const char **values)
{
	uint8_t value[PL_VALUE_MAX];
	struct pl_key_write_result r = pl_key_write_get(&l->kw,
		pl_key_carried(&l->kw.hashing, key, n), (unsigned int)l->args->threshold, value);

	values[1] = pl_answer_name(r.answer);
	values[2] = fill(l, 2, "%u", r.votes);
	values[3] = fill(l, 3, "%u", r.matches);
	values[4] = NULL;
	if (r.answer == PL_FOUND)
		values[4] = pl_hex_text(l->text[4], value, l->kw.value_bytes);
	return r.answer == PL_FOUND;
}

static const struct pl_column append_columns[] = {
	{ "number", -20, false, false },
	{ "answer", -9, false, false },
	{ "value", -8, false, false },
};

/* The key is a number. */
static bool look_append(struct lookup *l, const void *key, size_t n, const char **values)
{
	uint8_t entry[PL_ENTRY_MAX];
	struct pl_append_reader r;
	uint64_t number, got = 0;
	bool found;

	(void)n;
	memcpy(&number, key, sizeof(number));
	pl_append_reader_init(&r, &l->a, (uint32_t)l->args->list, number);
	found = number < pl_append_head(&l->a, r.list) && pl_append_read(&r, entry, &got, 1) == 1 &&
		got == number;
	values[1] = pl_answer_name(found ? PL_FOUND : PL_NOT_FOUND);
	values[2] = found ? pl_hex_text(l->text[2], entry, l->a.entry_bytes) : NULL;
	return found;
}

static const struct pl_column estimate_columns[] = {
	{ "key", -24, false, false },
	{ "value", 20, true, false },
	{ "error", 12, true, false },
	{ "confidence", 10, true, false },
	{ "saturated", -9, false, true, .flag = true },
};

static void fill_estimate(struct lookup *l, const struct pl_estimate *e, const char **values)
{
	values[1] = fill(l, 1, "%" PRIu64, e->value);
	values[2] = fill(l, 2, "%.1f", e->error);
	values[3] = fill(l, 3, "%.4f", e->confidence);
}

static bool look_counters(struct lookup *l, const void *key, size_t n, const char **values)
{
	struct pl_estimate e =
		pl_counters_estimate(&l->c, pl_key_carried(&l->c.hashing, key, n), l->total);

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

/* Whether the sketch is whole, and was since this was first asked. */
static bool is_whole(struct lookup *l)
{
	uint64_t n;

	pl_words_acquire();
	n = pl_sketch_completed(&l->s);
	l->complete = n < l->complete ? n : l->complete;
	return l->complete == l->s.columns;
}

static bool look_sketch(struct lookup *l, const void *key, size_t n, const char **values)
{
	struct pl_estimate e = { .value = 0 };
	bool saturated = false;

	if (pl_sketch_estimate(&l->s, pl_sketch_key(&l->s, key, n), l->total, &e, &saturated) < 0)
		return false;
	fill_estimate(l, &e, values);
	values[4] = saturated ? "yes" : "no";
	values[5] = is_whole(l) ? "yes" : "no";
	values[6] = fill(l, 6, "%" PRIu64, l->complete);
	return e.value > 0 && l->complete == l->s.columns;
}

static const struct pl_column postcards_columns[] = {
	{ "key", -24, false, false },
	{ "answer", -9, false, false },
	{ "copies", 6, true, false },
	{ "hops", 4, true, false },
	{ "path", -8, false, false },
};

static bool look_postcards(struct lookup *l, const void *key, size_t n, const char **values)
{
	uint32_t path[PL_HOPS_MAX];
	struct pl_postcards_result r = pl_postcards_get(&l->p, pl_postcards_key(&l->p, key, n),
		l->nodes.table != NULL ? &l->nodes : NULL, path);
	size_t at = 0;

	values[1] = pl_answer_name(r.answer);
	values[2] = fill(l, 2, "%u", r.copies);
	values[3] = values[4] = NULL;
	if (r.answer != PL_FOUND)
		return false;
	values[3] = fill(l, 3, "%u", r.n);
	for (unsigned int i = 0; i < r.n; i++)
		at += (size_t)snprintf(l->text[4] + at, sizeof(l->text[4]) - at, "%s%" PRIu32,
			i > 0 ? ">" : "", path[i]);
	values[4] = l->text[4];
	return true;
}

/* ---- what a translator chooses a collector by ---- */

static uint64_t spread_key_write(const struct lookup *l, const void *key, size_t n)
{
	return pl_key_carried(&l->kw.hashing, key, n).h;
}

static uint64_t spread_append(const struct lookup *l, const void *key, size_t n)
{
	(void)key;
	(void)n;
	return l->args->list;
}

static uint64_t spread_counters(const struct lookup *l, const void *key, size_t n)
{
	return pl_key_carried(&l->c.hashing, key, n).h;
}

static uint64_t spread_postcards(const struct lookup *l, const void *key, size_t n)
{
	return pl_postcards_key(&l->p, key, n).h;
}

static uint64_t spread_sketch(const struct lookup *l, const void *key, size_t n)
{
	(void)l;
	(void)key;
	(void)n;
	return 0;
}

struct looker {
	const struct pl_column *columns;
	unsigned int n;
	bool (*look)(struct lookup *l, const void *key, size_t key_bytes, const char **values);
	uint64_t (*spread)(const struct lookup *l, const void *key, size_t key_bytes);
	/* A collector that was down has its keys at the next one. Entries of the same number in other lists are others. */
	bool goes_on;
};

#define LOOKER(columns, name, goes_on)                                                             \
	{                                                                                          \
		columns, sizeof(columns) / sizeof((columns)[0]), look_##name, spread_##name,       \
			goes_on                                                                    \
	}

static const struct looker lookers[] = {
	[PL_KEY_WRITE] = LOOKER(key_write_columns, key_write, true),
	[PL_APPEND] = LOOKER(append_columns, append, false),
	[PL_COUNTERS] = LOOKER(estimate_columns, counters, true),
	[PL_POSTCARDS] = LOOKER(postcards_columns, postcards, true),
	[PL_SKETCH] = LOOKER(sketch_columns, sketch, true),
};

/* A HyperLogLog knows no keys, only how many there are. */
static int show_cardinality(struct lookup *l)
{
	static const struct pl_column columns[] = { { "keys", 16, true, false },
		{ "standard_error", 14, true, false }, { "whole", -5, false, false, .flag = true },
		{ "complete", 10, true, false } };
	const char *values[4];
	struct pl_row_out out;
	double keys, error;

	if (pl_sketch_cardinality(&l->s, &keys, &error) < 0) {
		pl_complain("the sketch is damaged: a register holds what no key can make");
		return PL_EXIT_FAILED;
	}
	values[0] = fill(l, 0, "%.1f", keys);
	values[1] = fill(l, 1, "%.1f", keys * error);
	values[2] = is_whole(l) ? "yes" : "no";
	values[3] = fill(l, 3, "%" PRIu64, l->complete);
	pl_row_out_init(&out, l->args->form, columns, 4);
	pl_row_out_add(&out, values);
	if (!pl_row_out_end(&out))
		return PL_EXIT_FAILED;
	return l->complete == l->s.columns ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

/* The five structures that stand for the store; one of them is of its primitive. 0, or an exit code. */
static int open_lookup(struct lookup *l, const struct pl_region *g, void *base)
{
	const struct pl_store_params *params = pl_region_params(g);

	switch (params->primitive) {
	case PL_KEY_WRITE:
		return -pl_key_write_init(&l->kw, params, base);
	case PL_APPEND:
		if (l->args->list >= params->append.lists) {
			pl_complain("the region has lists 0 to %" PRIu32, params->append.lists - 1);
			return PL_EXIT_USAGE;
		}
		return -pl_append_init(&l->a, params, base);
	case PL_COUNTERS:
		(void)pl_counters_init(&l->c, params, base);
		l->total = pl_counters_total(&l->c);
		return 0;
	case PL_POSTCARDS:
		if (params->hash == PL_HASH_DTA && l->args->nodes == NULL) {
			pl_complain("without check values paths are told by their nodes: which can "
				    "there be? (--nodes 1-100)");
			return PL_EXIT_USAGE;
		}
		return -pl_postcards_init(&l->p, params, base);
	default:
		(void)pl_sketch_init(&l->s, params, base);
		l->complete = pl_sketch_completed(&l->s);
		l->total = pl_sketch_total(&l->s);
		return 0;
	}
}

/* As reports of the published forms carry a number: most significant byte first, whichever way it was written. */
static void carry(const struct pl_store_params *params, const char *form, uint8_t *key)
{
	uint32_t word;

	if (params->hash != PL_HASH_DTA || strcmp(form, "u32") != 0)
		return;
	memcpy(&word, key, sizeof(word));
	word = __builtin_bswap32(word);
	memcpy(key, &word, sizeof(word));
}

/* The same store of several collectors, in their order. */
struct spread {
	struct lookup **lookups;
	unsigned int n;
	const struct pl_region_args *args;
	char collector[16], elsewhere[24];
};

/* What the others count for a key: what was added there while its collector was down, and what collides with it there. NULL:
 * they do not count. */
static const char *count_elsewhere(struct spread *s, const struct looker *looker, unsigned int here,
	const void *key, size_t bytes)
{
	uint64_t sum = 0;

	if (looker->look != look_counters)
		return NULL;

	for (unsigned int i = 0; i < s->n; i++) {
		struct lookup *l = s->lookups[i];

		if (i != here)
			sum += pl_counters_estimate(
				&l->c, pl_key_carried(&l->c.hashing, key, bytes), l->total)
				       .value;
	}
	snprintf(s->elsewhere, sizeof(s->elsewhere), "%" PRIu64, sum);
	return s->elsewhere;
}

/* Asks the collector that has the key while all are up, then, in the order in which they take its place, the others. */
static bool look_one(struct spread *s, const struct looker *looker, const void *key, size_t bytes,
	const char **values)
{
	const uint64_t hash = looker->spread(s->lookups[0], key, bytes);
	uint64_t up = s->n == 64 ? UINT64_MAX : (UINT64_C(1) << s->n) - 1;
	const char *one[COLUMNS];
	bool found = false;
	int first = -1, c = 0;

	if (s->n == 1)
		return looker->look(s->lookups[0], key, bytes, values);
	while (!found &&
		(c = pl_collector_choose((unsigned int)s->args->store, hash, up, s->n)) >= 0) {
		one[0] = values[0];
		found = looker->look(s->lookups[c], key, bytes, one);
		if (first < 0 || found) {
			memcpy(values, one, looker->n * sizeof(*values));
			first = c;
		}
		if (!looker->goes_on)
			break;
		up &= ~(UINT64_C(1) << c);
	}
	snprintf(s->collector, sizeof(s->collector), "%d", first);
	values[looker->n] = s->collector;
	values[looker->n + 1] = count_elsewhere(s, looker, (unsigned int)first, key, bytes);
	return found;
}

static int look_up_all(struct spread *s, const struct looker *looker,
	const struct pl_store_params *params, struct pl_key_source *source)
{
	const bool counters = params->primitive == PL_COUNTERS;
	const unsigned int more = s->n == 1 ? 0 : counters ? 2 : 1;
	const char *values[COLUMNS + SPREAD], *text, *form;
	struct pl_column columns[COLUMNS + SPREAD];
	struct pl_row_out out;
	bool all = true;
	int code = 0;

	form = params->primitive == PL_APPEND ? "u64" : s->args->key_form;
	memcpy(columns, looker->columns, looker->n * sizeof(*columns));
	columns[looker->n] = (struct pl_column){ "collector", 9, true, false };
	columns[looker->n + 1] = (struct pl_column){ "elsewhere", 20, true, false };
	pl_row_out_init(&out, s->args->form, columns, looker->n + more);
	while ((text = pl_key_source_next(source)) != NULL) {
		uint8_t *key;
		size_t bytes;

		if (pl_key_parse(text, form, &key, &bytes) < 0) {
			pl_complain("'%s' is no key of the form %s", text, form);
			code = PL_EXIT_USAGE;
			break;
		}
		values[0] = text;
		carry(params, form, key);
		all &= look_one(s, looker, key, bytes, values);
		pl_row_out_add(&out, values);
		free(key);
	}
	if (!pl_row_out_end(&out) || source->failed)
		return PL_EXIT_FAILED;
	return code != 0 ? code : all ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

/* One for each region. 0, or an exit code. */
static int open_lookups(struct spread *s, struct pl_region *const *regions)
{
	for (unsigned int i = 0; i < s->n; i++) {
		struct lookup *l = s->lookups[i] = calloc(1, sizeof(*l));
		void *base = pl_region_store_of(regions[i], s->args);
		int code;

		if (l == NULL) {
			pl_complain("out of memory");
			return PL_EXIT_FAILED;
		}
		if (base == NULL)
			return PL_EXIT_NOTHING;
		l->args = s->args;
		code = open_lookup(l, regions[i], base);
		if (code != 0)
			return code;
		if (s->args->nodes != NULL && pl_nodes_parse(s->args->nodes, &l->nodes) < 0) {
			pl_complain("--nodes takes numbers and ranges: 1-100,205");
			return PL_EXIT_USAGE;
		}
	}
	return 0;
}

static int look_up(
	struct spread *s, const struct pl_store_params *params, const char *const *keys, size_t n)
{
	const uint32_t primitive = params->primitive;
	struct pl_key_source source = { .keys = keys, .n = n };
	/* A sketch is at one collector as a whole. */
	const int at = s->n == 1
			       ? 0
			       : pl_collector_choose((unsigned int)s->args->store, 0,
					 s->n == 64 ? UINT64_MAX : (UINT64_C(1) << s->n) - 1, s->n);
	struct lookup *l = s->lookups[at];
	int code;

	if (primitive == PL_SKETCH && l->s.kind == PL_SKETCH_HYPERLOGLOG) {
		code = show_cardinality(l);
	} else if (n == 0) {
		pl_complain("%s: which key?", s->args->command);
		code = PL_EXIT_USAGE;
	} else {
		code = look_up_all(s, &lookers[primitive], params, &source);
	}
	if (primitive == PL_SKETCH && (code == PL_EXIT_OK || code == PL_EXIT_NOTHING))
		pl_region_tell_whole(&l->s, l->complete);
	pl_key_source_done(&source);
	return code;
}

static int look_up_in(struct pl_region *const *regions, unsigned int n_regions,
	const struct pl_region_args *args, const char *const *keys, size_t n)
{
	struct lookup *lookups[PL_COLLECTORS_MAX] = { NULL };
	struct spread s = { .lookups = lookups, .n = n_regions, .args = args };
	int code = open_lookups(&s, regions);

	if (code == 0)
		code = look_up(&s, pl_region_params(regions[0]), keys, n);
	for (unsigned int i = 0; i < n_regions; i++) {
		if (lookups[i] != NULL)
			pl_value_set_done(&lookups[i]->nodes);
		free(lookups[i]);
	}
	return code;
}

/* The region of another collector: the same store, or its keys are elsewhere. 0, or an exit code. */
static int open_other(const struct pl_region *first, const char *path, struct pl_region **ret)
{
	struct pl_diag diag = { .text = "" };

	if (pl_region_open(ret, path, PL_REGION_READ, NULL, &diag) < 0) {
		pl_complain("%s", diag.text);
		return PL_EXIT_FAILED;
	}
	if (/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): unused bytes are zero */
		memcmp(pl_region_params(first), pl_region_params(*ret),
			sizeof(struct pl_store_params)) == 0)
		return 0;
	pl_complain(
		"%s is not the same store as the first collector's (the seed counts too)", path);
	return PL_EXIT_USAGE;
}

int pl_region_lookup(
	struct pl_region *g, const struct pl_region_args *args, const char *const *keys, size_t n)
{
	struct pl_region *regions[PL_COLLECTORS_MAX] = { g };
	unsigned int n_regions = 1;
	int code = 0;

	if (args->collectors.n >= PL_COLLECTORS_MAX) {
		pl_complain("--collector: there are at most %u collectors", PL_COLLECTORS_MAX);
		return PL_EXIT_USAGE;
	}
	for (size_t i = 0; code == 0 && i < args->collectors.n; i++) {
		code = open_other(g, args->collectors.items[i], &regions[n_regions]);
		n_regions += regions[n_regions] != NULL;
	}
	if (code == 0)
		code = look_up_in(regions, n_regions, args, keys, n);
	for (unsigned int i = 1; i < n_regions; i++)
		(void)pl_region_close(regions[i]);
	return code;
}
