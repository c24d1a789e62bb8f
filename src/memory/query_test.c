/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries by way of a source say what the functions over mapped memory say, of every primitive and
 * hash; what changes under them is read again, a bounded number of times; errors come through. */
#include "memory/query.h"

#include <errno.h>

#include "base/test.h"
#include "memory/test_memory.h"
#include "memory/test_sketch.h"

#define KEYS 3000u

/* ---- the same answers ---- */

static void value_rows(const struct pl_store_params *params)
{
	uint8_t *base = memory_for(params), value[PL_VALUE_MAX], a[PL_VALUE_MAX], b[PL_VALUE_MAX];
	const struct pl_store_source source = { pl_store_read_mapped, base };
	unsigned int answers[3] = { 0 }, differ = 0;
	struct pl_key_write kw;
	struct pl_query q;

	(void)pl_key_write_init(&kw, params, base);
	eq(pl_query_init(&q, params, &source), 0);
	eq(pl_query_begin(&q, NULL), 0);
	for (uint32_t k = 0; k < KEYS; k++) {
		memset(value, (int)k, sizeof(value));
		memcpy(value, &k, params->key_write.value_bytes < 4 ? 1 : 4);
		pl_key_write_put(&kw, pl_key_write_key(&kw, &k, 4), value, kw.copies);
	}
	for (uint32_t k = 0; k < 2 * KEYS; k++) {
		const struct pl_key key = pl_key_write_key(&kw, &k, 4);
		const struct pl_key_write_result want = pl_key_write_get(&kw, key, 1, a);
		struct pl_key_write_result got;

		differ += pl_query_value(&q, key, 1, &got, b, NULL) != 0 ||
			  got.answer != want.answer || got.votes != want.votes ||
			  got.matches != want.matches ||
			  (got.answer == PL_FOUND && memcmp(a, b, kw.value_bytes) != 0);
		answers[got.answer]++;
	}
	eq(differ, 0, "values of %u bytes, hash %u", kw.value_bytes, params->hash);
	ok(answers[PL_FOUND] > KEYS / 4 && answers[PL_NOT_FOUND] >= KEYS / 2, "%u, %u",
		answers[PL_FOUND], answers[PL_NOT_FOUND]);
	free(base);
}

static void values(void)
{
	static const uint32_t bytes[] = { 1, 4, 5, 12, 28, 128, 1020 };

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		struct pl_store_params p = { .primitive = PL_KEY_WRITE,
			.hash = PL_HASH_PATHLINE,
			.seed = 7,
			.key_write = { 4096, bytes[i], 2 } };

		value_rows(&p);
		p.hash = PL_HASH_DTA;
		p.seed = 0;
		p.key_write.copies = 4;
		value_rows(&p);
	}
}

static void path_rows(const struct pl_store_params *params)
{
	uint8_t *base = memory_for(params);
	const struct pl_store_source source = { pl_store_read_mapped, base };
	uint32_t nodes[PL_HOPS_MAX], a[PL_HOPS_MAX], b[PL_HOPS_MAX];
	unsigned int differ = 0, found = 0;
	struct pl_value_set set;
	struct pl_postcards p;
	struct pl_query q;

	for (uint32_t i = 0; i < PL_HOPS_MAX; i++)
		nodes[i] = i + 1;
	if (pl_value_set_init(&set, nodes, PL_HOPS_MAX) < 0)
		abort();
	(void)pl_postcards_init(&p, params, base);
	eq(pl_query_init(&q, params, &source), 0);
	for (uint32_t k = 0; k < KEYS; k++)
		(void)pl_postcards_put(&p, pl_postcards_key(&p, &k, 4), nodes, 1 + k % p.hops);
	for (uint32_t k = 0; k < 2 * KEYS; k++) {
		const struct pl_key key = pl_postcards_key(&p, &k, 4);
		const struct pl_postcards_result want = pl_postcards_get(&p, key, &set, a);
		struct pl_postcards_result got;

		differ += pl_query_path(&q, key, &set, &got, b, NULL) != 0 ||
			  got.answer != want.answer || got.n != want.n ||
			  got.copies != want.copies || memcmp(a, b, got.n * sizeof(a[0])) != 0;
		found += got.answer == PL_FOUND;
	}
	eq(differ, 0, "paths of %u hops, hash %u", p.hops, params->hash);
	ok(found > KEYS / 3 && found <= KEYS, "%u", found);
	pl_value_set_done(&set);
	free(base);
}

static void paths(void)
{
	static const uint32_t hops[] = { 1, 2, 5, 7, 31 };

	for (size_t i = 0; i < sizeof(hops) / sizeof(hops[0]); i++)
		path_rows(&(struct pl_store_params){ .primitive = PL_POSTCARDS,
			.hash = PL_HASH_PATHLINE,
			.seed = 7,
			.postcards = { 8192, hops[i], 2 } });
	path_rows(&(struct pl_store_params){
		.primitive = PL_POSTCARDS, .hash = PL_HASH_DTA, .postcards = { 8192, 5, 1 } });
}

static void sum_rows(const struct pl_store_params *params)
{
	uint8_t *base = memory_for(params);
	const struct pl_store_source source = { pl_store_read_mapped, base };
	unsigned int differ = 0;
	struct pl_counters c;
	struct pl_query q;

	(void)pl_counters_init(&c, params, base);
	for (uint32_t k = 0; k < KEYS; k++)
		(void)pl_counters_add(&c, pl_counters_key(&c, &k, 4), 1 + k % 100);
	eq(pl_query_init(&q, params, &source), 0);
	eq(pl_query_begin(&q, NULL), 0);
	ok(q.total == pl_counters_total(&c) && q.total > KEYS, "%f", q.total);
	for (uint32_t k = 0; k < 2 * KEYS; k++) {
		const struct pl_key key = pl_counters_key(&c, &k, 4);
		const struct pl_estimate want =
			pl_counters_estimate(&c, key, pl_counters_total(&c));
		struct pl_estimate got;

		differ += pl_query_sum(&q, key, &got, NULL) != 0 || got.value != want.value ||
			  got.error != want.error || got.confidence != want.confidence;
	}
	eq(differ, 0, "sums in %u rows of %" PRIu64, c.rows, c.width);
	free(base);
}

static void sums(void)
{
	/* More cells than are read at once. */
	sum_rows(&(struct pl_store_params){ .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.counters = { 100003, 4, 0 } });
	sum_rows(&(struct pl_store_params){
		.primitive = PL_COUNTERS, .hash = PL_HASH_DTA, .counters = { 4096, 3, 1 } });
}

static void sketch_rows(uint32_t kind, uint32_t rows, uint32_t cell_bytes, uint64_t columns)
{
	const struct pl_store_params params = { .primitive = PL_SKETCH,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.sketch = { columns, rows, cell_bytes, kind } };
	uint8_t *base = memory_for(&params);
	const struct pl_store_source source = { pl_store_read_mapped, base };
	bool saturated[2], many = kind == PL_SKETCH_HYPERLOGLOG;
	double keys[2], error[2];
	unsigned int differ = 0;
	struct pl_estimate e[2];
	struct pl_sketch s;
	struct pl_query q;

	(void)pl_sketch_init(&s, &params, base);
	for (uint32_t k = 0; k < KEYS; k++)
		sketch_add(&s, pl_sketch_key(&s, &k, 4), k);
	sketch_complete(&s, columns);
	eq(pl_query_init(&q, &params, &source), 0);
	eq(pl_query_begin(&q, NULL), 0);
	eq(q.complete, columns);
	for (uint32_t k = 0; k < 2 * KEYS && !many; k++) {
		const struct pl_key key = pl_sketch_key(&s, &k, 4);

		(void)sketch_estimate(&s, key, pl_sketch_total(&s), &e[0], &saturated[0]);
		differ += pl_query_estimate(&q, key, &e[1], &saturated[1], NULL) != 0 ||
			  e[0].value != e[1].value || e[0].error != e[1].error ||
			  saturated[0] != saturated[1];
	}
	eq(differ, 0, "%u rows of cells of %u bytes", rows, cell_bytes);
	if (many) {
		eq(pl_sketch_cardinality(&s, &keys[0], &error[0]), 0);
		eq(pl_query_cardinality(&q, &keys[1], &error[1], NULL), 0);
		ok(keys[0] == keys[1] && error[0] == error[1], "%f, %f", keys[0], keys[1]);
		base[PL_SKETCH_CELLS_AT + columns - 1] = PL_SKETCH_RANK_MAX + 1;
		eq(pl_query_cardinality(&q, &keys[1], &error[1], NULL), -EBADMSG);
	}
	/* It is emptied for the next: fewer are complete from then on. */
	sketch_complete(&s, 3);
	eq(many ? pl_query_begin(&q, NULL)
		: pl_query_estimate(&q, pl_sketch_key(&s, "k", 1), &e[1], &saturated[1], NULL),
		0);
	sketch_complete(&s, columns);
	eq(q.complete, 3, "what was seen once holds");
	free(base);
}

static void sketches(void)
{
	sketch_rows(PL_SKETCH_COUNT_MIN, 4, 8, 30011);
	sketch_rows(PL_SKETCH_COUNT_MIN, 3, 4, 1021);
	sketch_rows(PL_SKETCH_HYPERLOGLOG, 1, 1, 300007);
}

static void entry_rows(uint32_t entry_bytes, uint32_t sealed)
{
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.append = { 256, 3, entry_bytes, 16, sealed } };
	uint8_t *base = memory_for(&params), entry[PL_ENTRY_MAX], got[PL_ENTRY_MAX];
	const struct pl_store_source source = { pl_store_read_mapped, base };
	enum pl_answer answer;
	unsigned int wrong = 0;
	struct pl_append a;
	struct pl_query q;

	(void)pl_append_init(&a, &params, base);
	for (uint32_t i = 0; i < 1000; i++) {
		memset(entry, (int)i, sizeof(entry));
		(void)pl_append_put(&a, 1, entry, 1);
	}
	eq(pl_query_init(&q, &params, &source), 0);
	for (uint32_t i = 0; i < 1100; i++) {
		const bool there = i >= pl_append_oldest(&a, 1) && i < 1000;

		memset(entry, (int)i, sizeof(entry));
		wrong += pl_query_entry(&q, 1, i, &answer, got, NULL) != 0 ||
			 (answer == PL_FOUND) != there ||
			 (there && memcmp(got, entry, entry_bytes) != 0);
	}
	eq(wrong, 0, "entries of %u bytes, %s", entry_bytes, sealed ? "sealed" : "bare");
	(void)pl_query_entry(&q, 2, 0, &answer, got, NULL);
	eq(answer, PL_NOT_FOUND, "of an empty list");
	free(base);
}

static void entries(void)
{
	entry_rows(4, 0);
	entry_rows(4, 1);
	entry_rows(129, 1);
	entry_rows(PL_ENTRY_MAX, 1);
	entry_rows(PL_ENTRY_MAX, 0);
}

/* ---- reading ahead ---- */

struct counted {
	uint8_t *base;
	unsigned int calls;
	size_t runs;
};

static int counted_read(
	void *arg, const struct pl_store_read *reads, size_t n, struct pl_diag *diag)
{
	struct counted *c = arg;

	c->calls++;
	c->runs += n;
	return pl_store_read_mapped(c->base, reads, n, diag);
}

static void ahead_of_sums(void)
{
	const struct pl_store_params params = { .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.counters = { 512, 3, 0 } };
	struct counted from = { .base = memory_for(&params) };
	const struct pl_store_source source = { counted_read, &from };
	uint64_t keys[PL_QUERY_AHEAD];
	struct pl_counters c;
	struct pl_estimate e;
	struct pl_query q;

	(void)pl_counters_init(&c, &params, from.base);
	(void)pl_query_init(&q, &params, &source);
	for (uint32_t k = 0; k < PL_QUERY_AHEAD; k++) {
		keys[k] = pl_counters_key(&c, &k, 4).h;
		(void)pl_counters_add(&c, (struct pl_key){ keys[k] }, 1 + k);
	}
	eq(pl_query_fetch(&q, keys, PL_QUERY_AHEAD, 0, NULL), 0);
	eq(from.calls, 1, "one call");
	eq(from.runs, 3 * PL_QUERY_AHEAD);
	for (uint32_t k = 0; k < PL_QUERY_AHEAD; k++) {
		const struct pl_key key = { keys[k] };

		eq(pl_query_sum(&q, key, &e, NULL), 0);
		eq(e.value, pl_counters_get(&c, key), "key %u", k);
	}
	eq(from.calls, 1, "and no other");
	eq(pl_query_sum(&q, (struct pl_key){ keys[3] }, &e, NULL), 0);
	eq(from.calls, 2, "what was taken is read anew");
	/* Out of order: the bytes of another key are not its own. */
	(void)pl_query_fetch(&q, keys, 2, 0, NULL);
	(void)pl_query_sum(&q, (struct pl_key){ keys[1] }, &e, NULL);
	eq(e.value, pl_counters_get(&c, (struct pl_key){ keys[1] }));
	eq(from.calls, 4);
	pl_query_done(&q);
	free(from.base);
}

static void ahead_of_values(void)
{
	const struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.key_write = { 4096, 20, 2 } };
	struct counted from = { .base = memory_for(&params) };
	const struct pl_store_source source = { counted_read, &from };
	uint8_t value[20] = "before", got[20];
	struct pl_key_write_result r;
	struct pl_key_write kw;
	struct pl_query q;
	uint64_t key;

	(void)pl_key_write_init(&kw, &params, from.base);
	(void)pl_query_init(&q, &params, &source);
	key = pl_key_write_key(&kw, "key", 3).h;
	(void)pl_query_fetch(&q, &key, 1, 0, NULL);
	eq(pl_query_value(&q, (struct pl_key){ key }, 1, &r, got, NULL), 0);
	eq(r.answer, PL_NOT_FOUND);
	eq(from.calls, 1, "empty slots are read once");
	from.base[pl_key_write_offset(&kw, (struct pl_key){ key }, 0)] = 1; /* half written */
	(void)pl_query_fetch(&q, &key, 1, 0, NULL);
	pl_key_write_put(&kw, (struct pl_key){ key }, value, 2);
	eq(pl_query_value(&q, (struct pl_key){ key }, 1, &r, got, NULL), 0);
	eq(r.answer, PL_FOUND, "what was half written when it was read ahead is read again");
	eq(from.calls, 3);
	(void)pl_query_fetch(&q, &key, 1, 0, NULL);
	(void)pl_query_value(&q, (struct pl_key){ key }, 1, &r, got, NULL);
	eq(r.answer, PL_FOUND);
	memeq(got, value, sizeof(value));
	eq(from.calls, 4);
	pl_query_done(&q);
	free(from.base);
}

static void ahead_of_entries(uint32_t sealed)
{
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.append = { 64, 2, 12, 16, sealed } };
	struct counted from = { .base = memory_for(&params) };
	const struct pl_store_source source = { counted_read, &from };
	uint64_t numbers[] = { 99, 60, 98, 100, 0 };
	uint8_t entry[12], got[12];
	enum pl_answer answer;
	struct pl_append a;
	struct pl_query q;

	(void)pl_append_init(&a, &params, from.base);
	(void)pl_query_init(&q, &params, &source);
	for (uint32_t i = 0; i < 100; i++) {
		memset(entry, (int)i, sizeof(entry));
		(void)pl_append_put(&a, 1, entry, 1);
	}
	eq(pl_query_fetch(&q, numbers, 5, 1, NULL), 0);
	eq(from.calls, 2, "head, entries");
	/* One of them is overwritten before it is asked for: 160 has the place of 96. */
	for (uint32_t i = 100; i < 163; i++) {
		memset(entry, (int)i, sizeof(entry));
		(void)pl_append_put(&a, 1, entry, 1);
	}
	for (unsigned int i = 0; i < 5; i++) {
		const bool there = numbers[i] >= 60 && numbers[i] < 100 && sealed;

		eq(pl_query_entry(&q, 1, numbers[i], &answer, got, NULL), 0);
		eq(answer, there ? PL_FOUND : PL_NOT_FOUND, "number %u, %s", (unsigned)numbers[i],
			sealed ? "sealed" : "bare: the head has gone past it");
		if (answer == PL_FOUND)
			eq(got[0], numbers[i]);
	}
	pl_query_done(&q);
	free(from.base);
}

/* ---- while somebody writes ---- */

struct writer {
	uint8_t *base;
	unsigned int torn; /* so many readings are damaged, each in another way */
	unsigned int calls, fail_at;
};

static int torn_read(void *arg, const struct pl_store_read *reads, size_t n, struct pl_diag *diag)
{
	struct writer *w = arg;

	w->calls++;
	if (w->calls == w->fail_at) {
		pl_diag_set(diag, "the wire is cut");
		return -EHOSTUNREACH;
	}
	(void)pl_store_read_mapped(w->base, reads, n, diag);
	for (size_t i = 0; w->calls <= w->torn && i < n; i++)
		((uint8_t *)reads[i].into)[reads[i].bytes - 1] ^= (uint8_t)(0x80 + w->calls);
	return 0;
}

static void torn(void)
{
	static const struct {
		const char *what;
		unsigned int torn, calls;
		enum pl_answer answer;
	} rows[] = {
		{ "whole at once", 0, 1, PL_FOUND },
		{ "torn once", 1, 2, PL_FOUND },
		{ "torn three times", 3, 4, PL_FOUND },
		{ "torn for ever", 1000, PL_QUERY_TRIES, PL_NOT_FOUND },
	};
	const struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.key_write = { 4096, 28, 2 } };
	uint8_t *base = memory_for(&params), value[28] = "a value of twenty-eight", got[28];
	struct pl_key_write_result r;
	struct pl_key_write kw;

	(void)pl_key_write_init(&kw, &params, base);
	pl_key_write_put(&kw, pl_key_write_key(&kw, "key", 3), value, 2);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct writer w = { .base = base, .torn = rows[i].torn };
		const struct pl_store_source source = { torn_read, &w };
		struct pl_query q;

		(void)pl_query_init(&q, &params, &source);
		eq(pl_query_value(&q, pl_key_write_key(&kw, "key", 3), 1, &r, got, NULL), 0);
		eq(r.answer, rows[i].answer, "%s", rows[i].what);
		eq(w.calls, rows[i].calls, "%s", rows[i].what);
		if (r.answer == PL_FOUND)
			memeq(got, value, sizeof(value), "%s", rows[i].what);
	}
	{
		struct writer w = { .base = base };
		const struct pl_store_source source = { torn_read, &w };
		struct pl_query q;

		(void)pl_query_init(&q, &params, &source);
		(void)pl_query_value(&q, pl_key_write_key(&kw, "other", 5), 1, &r, got, NULL);
		eq(r.answer, PL_NOT_FOUND);
		eq(w.calls, 1, "empty slots are read once");
		base[pl_key_write_offset(&kw, pl_key_write_key(&kw, "other", 5), 0)] = 7;
		(void)pl_query_value(&q, pl_key_write_key(&kw, "other", 5), 1, &r, got, NULL);
		eq(r.answer, PL_NOT_FOUND);
		eq(w.calls, 3, "what does not change is read twice");
	}
	free(base);
}

static void torn_entries(void)
{
	const struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.append = { 64, 1, 32, 16, 1 } };
	uint8_t *base = memory_for(&params), entry[32] = "an entry", got[32];
	struct writer w = { .base = base };
	const struct pl_store_source source = { torn_read, &w };
	enum pl_answer answer;
	struct pl_append a;
	struct pl_query q;

	(void)pl_append_init(&a, &params, base);
	(void)pl_append_put(&a, 0, entry, 1);
	(void)pl_query_init(&q, &params, &source);
	base[PL_APPEND_RING_AT] ^= 1;
	eq(pl_query_entry(&q, 0, 0, &answer, got, NULL), 0);
	eq(answer, PL_NOT_FOUND, "a damaged entry is none");
	eq(w.calls, 1 + 2 * PL_QUERY_TRIES, "and is read a bounded number of times");
	base[PL_APPEND_RING_AT] ^= 1;
	eq(pl_query_entry(&q, 0, 0, &answer, got, NULL), 0);
	eq(answer, PL_FOUND);
	memeq(got, entry, sizeof(entry));
	free(base);
}

static void failing(void)
{
	const struct pl_store_params params = { .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.counters = { 100003, 2, 0 } };
	uint8_t *base = memory_for(&params);

	for (unsigned int at = 1; at <= 4; at++) {
		struct writer w = { .base = base, .fail_at = at };
		const struct pl_store_source source = { torn_read, &w };
		struct pl_diag diag = { .text = "" };
		struct pl_query q;

		(void)pl_query_init(&q, &params, &source);
		eq(pl_query_begin(&q, &diag), -EHOSTUNREACH, "call %u", at);
		streq(diag.text, "the wire is cut");
		eq(w.calls, at, "and nothing is read after it");
	}
	free(base);
}

int main(void)
{
	values();
	paths();
	sums();
	sketches();
	entries();
	ahead_of_sums();
	ahead_of_values();
	ahead_of_entries(1);
	ahead_of_entries(0);
	torn();
	torn_entries();
	failing();
	return pl_test_done();
}
