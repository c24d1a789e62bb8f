/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/region_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cli/command.h"
#include "cli/query_keys.h"
#include "cli/region_values.h"
#include "cli/row_out.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/sketch.h"
#include "memory/words.h"

#define NUMBER  24
#define COLUMNS 7 /* the most that a lookup has */

const char *const pl_key_forms[] = { "text", "hex", "u32", "be32", "u64", NULL };

void *pl_region_store_of(const struct pl_region *g, const struct pl_region_args *args)
{
	uint64_t epoch = pl_region_epoch(g);
	void *base;

	if (args->epoch != NULL && pl_parse_u64(args->epoch, &epoch) < 0) {
		pl_complain("--epoch takes a number");
		return NULL;
	}
	base = pl_region_store(g, epoch);
	if (base == NULL)
		pl_complain("epoch %" PRIu64 " is not in the region, which is at %" PRIu64, epoch,
			pl_region_epoch(g));
	return base;
}

void pl_region_tell_whole(const struct pl_sketch *s, uint64_t complete)
{
	if (complete < s->columns)
		pl_complain("the sketch is not whole: %" PRIu64 " of %" PRIu64
			    " columns are of the present one, what the others hold is not",
			complete, s->columns);
}

static const char *u64(char dst[NUMBER], uint64_t v)
{
	snprintf(dst, NUMBER, "%" PRIu64, v);
	return dst;
}

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
	{ "saturated", -9, false, true },
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
	{ "saturated", -9, false, true },
	{ "whole", -5, false, false },
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

struct looker {
	const struct pl_column *columns;
	unsigned int n;
	bool (*look)(struct lookup *l, const void *key, size_t key_bytes, const char **values);
};

#define LOOKER(columns, look)                                                                      \
	{                                                                                          \
		columns, sizeof(columns) / sizeof((columns)[0]), look                              \
	}

static const struct looker lookers[] = {
	[PL_KEY_WRITE] = LOOKER(key_write_columns, look_key_write),
	[PL_APPEND] = LOOKER(append_columns, look_append),
	[PL_COUNTERS] = LOOKER(estimate_columns, look_counters),
	[PL_POSTCARDS] = LOOKER(postcards_columns, look_postcards),
	[PL_SKETCH] = LOOKER(sketch_columns, look_sketch),
};

/* A HyperLogLog knows no keys, only how many there are. */
static int show_cardinality(struct lookup *l)
{
	static const struct pl_column columns[] = { { "keys", 16, true, false },
		{ "standard_error", 14, true, false }, { "whole", -5, false, false },
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

static int look_up_all(struct lookup *l, const struct looker *looker,
	const struct pl_store_params *params, struct pl_key_source *source)
{
	const char *values[COLUMNS], *text, *form;
	struct pl_row_out out;
	bool all = true;
	int code = 0;

	form = params->primitive == PL_APPEND ? "u64" : l->args->key_form;
	pl_row_out_init(&out, l->args->form, looker->columns, looker->n);
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
		all &= looker->look(l, key, bytes, values);
		pl_row_out_add(&out, values);
		free(key);
	}
	if (!pl_row_out_end(&out) || source->failed)
		return PL_EXIT_FAILED;
	return code != 0 ? code : all ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

int pl_region_lookup(const struct pl_region *g, const struct pl_region_args *args,
	const char *const *keys, size_t n)
{
	uint32_t primitive = pl_region_params(g)->primitive;
	struct pl_key_source source = { .keys = keys, .n = n };
	void *base = pl_region_store_of(g, args);
	struct lookup *l;
	int code;

	if (base == NULL)
		return PL_EXIT_NOTHING;
	l = calloc(1, sizeof(*l));
	if (l == NULL) {
		pl_complain("out of memory");
		return PL_EXIT_FAILED;
	}
	l->args = args;
	code = open_lookup(l, g, base);
	if (code == 0 && args->nodes != NULL && pl_nodes_parse(args->nodes, &l->nodes) < 0) {
		pl_complain("--nodes takes numbers and ranges: 1-100,205");
		code = PL_EXIT_USAGE;
	}
	if (code == 0 && primitive == PL_SKETCH && l->s.kind == PL_SKETCH_HYPERLOGLOG) {
		code = show_cardinality(l);
	} else if (code == 0 && n == 0) {
		pl_complain("%s: which key?", args->command);
		code = PL_EXIT_USAGE;
	} else if (code == 0) {
		code = look_up_all(l, &lookers[primitive], pl_region_params(g), &source);
	}
	if (primitive == PL_SKETCH && (code == PL_EXIT_OK || code == PL_EXIT_NOTHING))
		pl_region_tell_whole(&l->s, l->complete);
	pl_key_source_done(&source);
	pl_value_set_done(&l->nodes);
	free(l);
	return code;
}

/* ---- what is whole ---- */

struct account {
	uint64_t used, whole, damaged, unpublished, wrong_heads;
	bool provable; /* whether `whole` was proved entry by entry */
};

#define HEADS_TOLD 3 /* the others are only counted */

static void verify_head(
	struct account *acc, const struct pl_append *a, uint32_t list, uint64_t slack)
{
	uint64_t head, end;

	if (pl_append_examine(a, list, slack, &head, &end) == PL_HEAD_FITS)
		return;
	if (acc->wrong_heads++ < HEADS_TOLD)
		pl_complain("list %" PRIu32 ": its head is not what the entries say: it is %" PRIu64
			    ", they end before number %" PRIu64,
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
		/* No key and value have that check value; whether others are whole only their keys tell. */
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

/* clean: its last writer closed it, and left nothing unpublished. */
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
		{ "closed", -6, false, false },
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
