/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers queries of a store through a source of its bytes. */
#include "memory/query.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/words.h"

#define CHUNK       (256u * 1024) /* bytes of a piece, of stores read from end to end */
#define SLOT_WORDS  ((4 + PL_VALUE_MAX) / 8)
#define RUNS_MAX    PL_ROWS_MAX /* most runs of a key: rows, or copies, which are fewer */
#define ENTRY_WORDS ((PL_ENTRY_MAX + PL_APPEND_SEAL_BYTES) / 8)

/* ---- a mapped store as source ---- */

static void load_bytes(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

int pl_store_read_mapped(
	void *base, const struct pl_store_read *reads, size_t n, struct pl_diag *diag)
{
	(void)diag;
	pl_words_acquire();
	for (size_t i = 0; i < n; i++) {
		const struct pl_store_read *r = &reads[i];
		const uint8_t *from = (const uint8_t *)base + r->offset;
		const uint64_t words = r->offset % 8 == 0 ? r->bytes & ~UINT64_C(7) : 0;

		if (r->offset % 4 == 0 && r->bytes % 4 == 0 && words < r->bytes) {
			pl_words32_load(r->into, from, r->bytes);
			continue;
		}
		pl_words_load(r->into, from, words);
		load_bytes((uint8_t *)r->into + words, from + words, r->bytes - words);
	}
	pl_words_acquire();
	return 0;
}

static int read_one(
	const struct pl_query *q, uint64_t offset, uint64_t bytes, void *into, struct pl_diag *diag)
{
	const struct pl_store_read r = { offset, bytes, into };

	return q->source.read(q->source.arg, &r, 1, diag);
}

/* ---- values read once ---- */

int pl_query_init(struct pl_query *q, const struct pl_store_params *params,
	const struct pl_store_source *source)
{
	*q = (struct pl_query){ .source = *source, .params = *params };
	switch (params->primitive) {
	case PL_KEY_WRITE:
		return pl_key_write_init(&q->kw, params, NULL);
	case PL_APPEND:
		return pl_append_init(&q->a, params, NULL);
	case PL_COUNTERS:
		return pl_counters_init(&q->c, params, NULL);
	case PL_POSTCARDS:
		return pl_postcards_init(&q->p, params, NULL);
	default:
		q->complete = UINT64_MAX;
		return pl_sketch_init(&q->s, params, NULL);
	}
}

/* Lowers `complete` to its present value. */
static int look_at_complete(struct pl_query *q, struct pl_diag *diag)
{
	uint64_t word, n;
	int r = read_one(q, 0, sizeof(word), &word, diag);

	if (r < 0)
		return r;
	n = pl_sketch_completed_of(&q->s, word);
	q->complete = n < q->complete ? n : q->complete;
	return 0;
}

/* Runs of `items` of item_bytes each, from `offset` on, as large as there is room for. */
static int walk(const struct pl_query *q, uint64_t offset, uint64_t items, uint64_t item_bytes,
	int (*take)(void *arg, const void *bytes, uint64_t n), void *arg, struct pl_diag *diag)
{
	const uint64_t at_once = CHUNK / item_bytes;
	void *memory = malloc(CHUNK);
	int r = memory == NULL ? -ENOMEM : 0;

	if (r < 0)
		pl_diag_set(diag, "out of memory");
	while (r == 0 && items > 0) {
		const uint64_t n = items < at_once ? items : at_once;

		r = read_one(q, offset, n * item_bytes, memory, diag);
		if (r == 0)
			r = take(arg, memory, n);
		offset += n * item_bytes;
		items -= n;
	}
	free(memory);
	return r;
}

static int add_cells(void *arg, const void *cells, uint64_t n)
{
	struct pl_query *q = arg;

	q->total = pl_counters_add_up(q->total, cells, n);
	return 0;
}

static int add_columns(void *arg, const void *columns, uint64_t n)
{
	struct pl_query *q = arg;

	q->total = pl_sketch_add_up(&q->s, q->total, columns, n);
	return 0;
}

int pl_query_begin(struct pl_query *q, struct pl_diag *diag)
{
	int r = 0;

	q->total = 0;
	if (q->params.primitive == PL_COUNTERS) {
		r = walk(q, 0, q->c.width, 8, add_cells, q, diag);
		q->total = pl_counters_total_of(&q->c, q->total);
	} else if (q->params.primitive == PL_SKETCH) {
		r = look_at_complete(q, diag);
		if (r == 0 && q->s.kind == PL_SKETCH_COUNT_MIN)
			r = walk(q, PL_SKETCH_CELLS_AT, q->s.columns,
				(uint64_t)q->s.rows * q->s.cell_bytes, add_columns, q, diag);
	}
	return r;
}

void pl_query_done(struct pl_query *q)
{
	free(q->ahead.words);
	q->ahead = (struct pl_query_ahead){ .n = 0 };
}

/* ---- runs of a query ---- */

/* The runs of a key, into words one behind the other; how many. */
static unsigned int runs_of(
	const struct pl_query *q, struct pl_key key, uint64_t *into, struct pl_store_read *ret)
{
	const uint32_t primitive = q->params.primitive;
	const unsigned int n = primitive == PL_KEY_WRITE   ? q->kw.copies
			       : primitive == PL_POSTCARDS ? q->p.copies
			       : primitive == PL_COUNTERS  ? q->c.rows
							   : q->s.rows;

	for (unsigned int i = 0; i < n; i++) {
		ret[i].into = into;
		switch (primitive) {
		case PL_KEY_WRITE:
			ret[i].offset = pl_key_write_offset(&q->kw, key, i);
			ret[i].bytes = (q->kw.write_bytes + 7) & ~7u;
			break;
		case PL_POSTCARDS:
			ret[i].offset = pl_postcards_offset(&q->p, key, i);
			ret[i].bytes = (q->p.write_bytes + 7) & ~7u;
			break;
		case PL_COUNTERS:
			ret[i].offset = pl_counters_offset(&q->c, key, i);
			ret[i].bytes = 8;
			break;
		default:
			ret[i].offset = pl_sketch_offset(&q->s, key, i);
			ret[i].bytes = q->s.cell_bytes;
		}
		into += (ret[i].bytes + 7) / 8;
	}
	return n;
}

/* Words that the runs of a key take. */
static size_t stride_of(const struct pl_query *q)
{
	struct pl_store_read runs[RUNS_MAX] = { 0 };
	uint64_t none;
	unsigned int n;

	if (q->params.primitive == PL_APPEND)
		return (q->a.entry_stride + 7) / 8;
	n = runs_of(q, (struct pl_key){ 0 }, &none, runs);
	return n * ((runs[0].bytes + 7) / 8);
}

/* Next words read ahead, if they are of this key; else NULL. */
static const uint64_t *take_ahead(struct pl_query *q, uint64_t key)
{
	struct pl_query_ahead *a = &q->ahead;

	if (a->at == a->n || a->keys[a->at] != key)
		return NULL;
	return a->words + a->stride * a->at++;
}

/* ---- copies of a value or a path ---- */

struct copies {
	uint64_t words[2][PL_COPIES_MAX * SLOT_WORDS]; /* words as they are, and as they were */
	const void *at[PL_COPIES_MAX];
	struct pl_store_read reads[RUNS_MAX];
	const uint64_t *ahead; /* words for the first try; NULL: it reads */
	unsigned int n, tries;
	size_t bytes;
};

static void prepare(struct pl_query *q, struct copies *c, struct pl_key key)
{
	c->n = runs_of(q, key, c->words[0], c->reads);
	c->bytes = 8 * stride_of(q);
	c->tries = 0;
	c->ahead = take_ahead(q, key.h);
	for (unsigned int i = 0; i < c->n; i++)
		c->at[i] = c->reads[i].into;
}

/* True when nothing was written there, so nothing is half written. */
static bool all_empty(const struct copies *c)
{
	uint64_t any = 0;

	for (size_t i = 0; i < c->bytes / 8; i++)
		any |= c->words[0][i];
	return any == 0;
}

/* Reads all copies at once. Returns 1 when they were read; 0 when they are as they were the last
 * time, or empty, or were read often enough. */
static int read_copies(const struct pl_query *q, struct copies *c, struct pl_diag *diag)
{
	int r = 0;

	if (c->tries == PL_QUERY_TRIES || (c->tries > 0 && all_empty(c)))
		return 0;
	if (c->tries > 0)
		memcpy(c->words[1], c->words[0], c->bytes);
	if (c->tries == 0 && c->ahead != NULL)
		memcpy(c->words[0], c->ahead, c->bytes);
	else
		r = q->source.read(q->source.arg, c->reads, c->n, diag);
	if (r < 0)
		return r;
	return c->tries++ == 0 || memcmp(c->words[0], c->words[1], c->bytes) != 0;
}

int pl_query_value(struct pl_query *q, struct pl_key key, unsigned int threshold,
	struct pl_key_write_result *ret, void *ret_value, struct pl_diag *diag)
{
	struct copies c;
	int r;

	prepare(q, &c, key);
	while ((r = read_copies(q, &c, diag)) == 1) {
		*ret = pl_key_write_judge(&q->kw, key, c.at, threshold, ret_value);
		if (ret->answer == PL_FOUND)
			return 0;
	}
	return r;
}

int pl_query_path(struct pl_query *q, struct pl_key key, const struct pl_value_set *set,
	struct pl_postcards_result *ret, uint32_t *ret_values, struct pl_diag *diag)
{
	struct copies c;
	int r;

	prepare(q, &c, key);
	while ((r = read_copies(q, &c, diag)) == 1) {
		*ret = pl_postcards_judge(&q->p, key, c.at, set, ret_values);
		if (ret->answer == PL_FOUND)
			return 0;
	}
	return r;
}

/* ---- cells ---- */

/* The smallest of a key's cells, all read at once. 1: they were read ahead; 0; negative errno. */
static int least_cell(
	struct pl_query *q, struct pl_key key, uint64_t *ret_least, struct pl_diag *diag)
{
	const bool counters = q->params.primitive == PL_COUNTERS;
	const uint64_t *ahead = take_ahead(q, key.h);
	struct pl_store_read runs[RUNS_MAX];
	uint64_t cells[PL_ROWS_MAX] = { 0 };
	const unsigned int n = runs_of(q, key, cells, runs);
	int r = 0;

	if (ahead == NULL)
		r = q->source.read(q->source.arg, runs, n, diag);
	else
		memcpy(cells, ahead, n * sizeof(cells[0]));
	*ret_least = UINT64_MAX;
	for (unsigned int i = 0; r == 0 && i < n; i++) {
		const uint64_t v = counters ? cells[i] : pl_sketch_cell(&q->s, &cells[i]);

		*ret_least = v < *ret_least ? v : *ret_least;
	}
	return r < 0 ? r : ahead != NULL;
}

int pl_query_sum(
	struct pl_query *q, struct pl_key key, struct pl_estimate *ret, struct pl_diag *diag)
{
	uint64_t least;
	int r = least_cell(q, key, &least, diag);

	if (r < 0)
		return r;
	*ret = pl_counters_bound(&q->c, least, q->total);
	return 0;
}

int pl_query_estimate(struct pl_query *q, struct pl_key key, struct pl_estimate *ret,
	bool *ret_saturated, struct pl_diag *diag)
{
	uint64_t least;
	int r = least_cell(q, key, &least, diag), e;

	if (r < 0)
		return r;
	e = pl_sketch_bound(&q->s, least, q->total, ret, ret_saturated);
	/* Behind the words read ahead that were used. */
	return e < 0 || r == 1 ? e : look_at_complete(q, diag);
}

struct ranks {
	const struct pl_sketch *s;
	uint64_t n[PL_SKETCH_RANKS];
};

static int count(void *arg, const void *registers, uint64_t n)
{
	struct ranks *ranks = arg;

	return pl_sketch_count_ranks(ranks->s, ranks->n, registers, n);
}

int pl_query_cardinality(
	struct pl_query *q, double *ret_keys, double *ret_error, struct pl_diag *diag)
{
	struct ranks ranks = { .s = &q->s };
	int r = walk(q, PL_SKETCH_CELLS_AT, q->s.columns, q->s.cell_bytes, count, &ranks, diag);

	if (r == -EBADMSG)
		pl_diag_set(diag, "the sketch is damaged: a register holds an impossible value");
	if (r < 0)
		return r;
	pl_sketch_cardinality_of(&q->s, ranks.n, ret_keys, ret_error);
	return look_at_complete(q, diag);
}

/* ---- entries ---- */

static int read_head(
	const struct pl_query *q, uint32_t list, uint64_t *ret_head, struct pl_diag *diag)
{
	return read_one(q, pl_append_head_place(&q->a, list).offset, 8, ret_head, diag);
}

/* Reads the head first, then the entry, then, unless the entry's seal fits, the head again, to see
 * whether it was overwritten meanwhile. Each is read before the next is asked for, since a READ may
 * be carried out later than one that was sent after it. */
int pl_query_entry(struct pl_query *q, uint32_t list, uint64_t number, enum pl_answer *ret_answer,
	void *ret_entry, struct pl_diag *diag)
{
	const uint64_t *ahead = q->ahead.list == list ? take_ahead(q, number) : NULL;
	struct pl_extent at[2];
	uint64_t image[ENTRY_WORDS], head = q->ahead.head;
	int r = ahead == NULL ? read_head(q, list, &head, diag) : 0;

	*ret_answer = PL_NOT_FOUND;
	(void)pl_append_place(&q->a, list, number, 1, at);
	for (unsigned int i = 0; r == 0 && i < PL_QUERY_TRIES; i++) {
		bool whole;

		if (number >= head || number < pl_append_oldest_of(&q->a, head))
			return 0;
		if (ahead == NULL)
			r = read_one(q, at[0].offset, at[0].bytes, image, diag);
		else
			memcpy(image, ahead, at[0].bytes);
		ahead = NULL;
		if (r < 0)
			return r;
		whole = pl_append_take(&q->a, list, number, image, ret_entry);
		if (!whole || !q->a.sealed)
			r = read_head(q, list, &head, diag);
		if (r == 0 && whole &&
			(q->a.sealed || number >= pl_append_oldest_of(&q->a, head))) {
			*ret_answer = PL_FOUND;
			return 0;
		}
	}
	return r;
}

/* ---- reading ahead ---- */

static int make_room(struct pl_query_ahead *a, size_t words)
{
	uint64_t *more;

	if (words <= a->room)
		return 0;
	more = realloc(a->words, words * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	a->words = more;
	a->room = words;
	return 0;
}

/* Collects all runs of all keys. */
static unsigned int gather(const struct pl_query *q, struct pl_store_read *ret)
{
	const struct pl_query_ahead *a = &q->ahead;
	unsigned int at = 0;

	for (unsigned int i = 0; i < a->n; i++) {
		uint64_t *into = a->words + i * a->stride;
		struct pl_extent place[2];

		if (q->params.primitive != PL_APPEND) {
			at += runs_of(q, (struct pl_key){ a->keys[i] }, into, ret + at);
			continue;
		}
		(void)pl_append_place(&q->a, a->list, a->keys[i], 1, place);
		ret[at++] = (struct pl_store_read){ place[0].offset, place[0].bytes, into };
	}
	return at;
}

int pl_query_fetch(struct pl_query *q, const uint64_t *keys, unsigned int n, uint32_t list,
	struct pl_diag *diag)
{
	struct pl_query_ahead *a = &q->ahead;
	struct pl_store_read *reads;
	int r;

	n = n < PL_QUERY_AHEAD ? n : PL_QUERY_AHEAD;
	a->n = a->at = 0;
	a->stride = stride_of(q);
	a->list = list;
	reads = calloc((size_t)PL_QUERY_AHEAD * RUNS_MAX, sizeof(*reads));
	r = reads == NULL ? -ENOMEM : make_room(a, a->stride * n);
	if (r < 0)
		pl_diag_set(diag, "out of memory");
	else if (q->params.primitive == PL_APPEND)
		r = read_head(q, list, &a->head, diag);
	if (r == 0 && n > 0) {
		memcpy(a->keys, keys, n * sizeof(keys[0]));
		a->n = n;
		r = q->source.read(q->source.arg, reads, gather(q, reads), diag);
	}
	if (r == 0 && q->params.primitive == PL_SKETCH)
		r = look_at_complete(q, diag);
	a->n = r < 0 ? 0 : a->n;
	free(reads);
	return r;
}
