/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams put into regions here, as a translator would have; then spoiled, and what the check says
 * of that. */
#include <stddef.h>
#include <unistd.h>

#include "ask/dta_check.h"
#include "base/test.h"
#include "gen/dta_gen.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/region.h"
#include "memory/sketch.h"
#include "memory/test_sketch.h"

static char folder[] = "/tmp/pathline-check-XXXXXX";
static char paths[2][64];
static const char *const both[] = { paths[0], paths[1] };

static struct pl_region *make(const struct pl_store_params *params, unsigned int i)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *g = NULL;

	(void)unlink(paths[i]);
	ok(pl_region_create(&g, paths[i], params, NULL, &diag) == 0, "%s", diag.text);
	return g;
}

static struct pl_dta_checked check(uint64_t reports, unsigned int n)
{
	const struct pl_dta_made made = {
		.reports = reports, .keys = 20, .lists = 2, .hops = 5, .nodes = 1000, .reporters = 2
	};
	struct pl_diag diag = { .text = "" };
	struct pl_dta_checked c;

	ok(pl_dta_check(&made, both, n, &c, &diag) == 0, "%s", diag.text);
	eq(c.asked, c.right + c.wrong + c.missing);
	return c;
}

static void be(uint8_t *to, size_t n, uint64_t v)
{
	for (size_t i = 0; i < n; i++)
		to[n - 1 - i] = i < 8 ? (uint8_t)(v >> (8 * i)) : 0;
}

/* Key k as the store's hash is given it. */
static uint32_t key_of(uint32_t k, bool published)
{
	return published ? k : __builtin_bswap32(k);
}

static void test_key_write(bool published)
{
	const struct pl_store_params p = { .primitive = PL_KEY_WRITE,
		.hash = published ? PL_HASH_DTA : PL_HASH_PATHLINE,
		.seed = published ? 0 : 99,
		.key_write = { .slots = 4096, .value_bytes = 12, .copies = 2 } };
	struct pl_region *g = make(&p, 0);
	struct pl_dta_checked c;
	struct pl_key_write kw;
	uint8_t value[12];

	(void)pl_key_write_init(&kw, &p, pl_region_store(g, 0));
	for (uint32_t k = 0; k < 3000; k++) {
		const uint32_t word = key_of(k, published);

		be(value, sizeof(value), pl_dta_gen_value(k));
		(void)pl_key_write_put(&kw, pl_key_write_key(&kw, &word, 4), value, 2);
	}
	c = check(3000, 1);
	ok(c.asked == 3000 && c.wrong == 0 && c.missing > 0, "later keys wrote over earlier ones");
	ok(published ? (uint64_t)(c.expected * 3000 + 0.5) == c.missing
		     : c.missing < c.expected * 3000 * 1.3 && c.missing > c.expected * 3000 * 0.7,
		"as many as is expected: %" PRIu64 ", %.1f", c.missing, c.expected * 3000);
	/* The last key's copies are there: another value is a wrong answer, no missing one. */
	{
		const uint32_t word = key_of(2999, published);

		be(value, sizeof(value), pl_dta_gen_value(2999) + 1);
		(void)pl_key_write_put(&kw, pl_key_write_key(&kw, &word, 4), value, 2);
	}
	eq(check(3000, 1).wrong, 1);
	eq(check(2999, 1).wrong, 0, "who did not ask is not told");
	pl_region_close(g);
}

/* A list's entries in their order; one twice, one of another list, one that was never made. */
static void test_append(void)
{
	const struct pl_store_params p = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 99,
		.append = {
			.slots = 64, .lists = 2, .entry_bytes = 8, .batch_max = 16, .sealed = 1 } };
	static const uint64_t bad[] = { 9, 2, 1000 };
	struct pl_dta_checked c;
	struct pl_append a;
	uint8_t entry[8];

	for (size_t turn = 0; turn <= sizeof(bad) / sizeof(bad[0]); turn++) {
		struct pl_region *g = make(&p, 0);

		(void)pl_append_init(&a, &p, pl_region_store(g, 0));
		for (uint64_t v = 1; v <= 20; v++) {
			be(entry, sizeof(entry), v);
			(void)pl_append_put(&a, (uint32_t)((v - 1) % 2), entry, 1);
		}
		if (turn > 0) {
			be(entry, sizeof(entry), bad[turn - 1]);
			(void)pl_append_put(&a, 0, entry, 1);
		}
		c = check(20, 1);
		ok(turn == 0 ? c.asked == 20 && c.right == 20 : c.right == 20 && c.wrong == 1,
			"turn %zu: %" PRIu64 " right, %" PRIu64 " wrong", turn, c.right, c.wrong);
		eq(check(24, 1).missing, turn == 0 ? 4 : 3, "two more of each are wanted");
		pl_region_close(g);
	}
}

static void test_counters(void)
{
	const struct pl_store_params p = { .primitive = PL_COUNTERS,
		.hash = PL_HASH_PATHLINE,
		.seed = 99,
		.counters = { .width = 4096, .rows = 2 } };
	struct pl_region *g[2] = { make(&p, 0), make(&p, 1) };
	struct pl_counters n[2];
	struct pl_dta_checked c;

	for (unsigned int i = 0; i < 2; i++)
		(void)pl_counters_init(&n[i], &p, pl_region_store(g[i], 0));
	/* 20 keys five times each, in two regions as two epochs have them. */
	for (uint32_t i = 0; i < 100; i++) {
		const uint32_t word = key_of(i % 20, false);

		(void)pl_counters_add(&n[i % 2], pl_counters_key(&n[0], &word, 4), 1);
	}
	c = check(100, 2);
	ok(c.asked == 20 && c.right == 20, "together they are whole");
	ok(check(100, 1).missing > 0, "one alone is short");
	eq(check(101, 2).missing, 1, "the first key is wanted once more");
	{
		const uint32_t word = key_of(0, false);

		for (unsigned int row = 0; row < 2; row++)
			n[row].base[pl_counters_offset(
				&n[row], pl_counters_key(&n[0], &word, 4), row)]++;
	}
	eq(check(101, 2).right, 20, "its rows were added to on both sides of a turn");
	{
		const uint32_t word = key_of(3, false);

		(void)pl_counters_add(&n[0], pl_counters_key(&n[0], &word, 4), 1);
	}
	eq(check(101, 2).wrong, 20, "more than was reported, no sum can be believed");
	pl_region_close(g[0]);
	pl_region_close(g[1]);
}

static void test_postcards(bool published)
{
	const struct pl_store_params p = { .primitive = PL_POSTCARDS,
		.hash = published ? PL_HASH_DTA : PL_HASH_PATHLINE,
		.seed = published ? 0 : 99,
		.postcards = { .chunks = 1024, .hops = 5, .copies = published ? 1 : 2 } };
	struct pl_region *g = make(&p, 0);
	struct pl_postcards cards;
	struct pl_dta_checked c;
	uint64_t made = 0;
	uint32_t flow;

	(void)pl_postcards_init(&cards, &p, pl_region_store(g, 0));
	for (flow = 0; flow < 100; flow++) {
		const uint32_t word = __builtin_bswap32(flow);
		const unsigned int n = 1 + flow % 5;
		uint32_t nodes[5];

		for (unsigned int hop = 1; hop <= n; hop++)
			nodes[hop - 1] = pl_dta_gen_node(flow, hop, 1000);
		if (flow == 42)
			nodes[0] = nodes[0] % 1000 + 1; /* another node */
		made += n;
		eq(pl_postcards_put(&cards, pl_postcards_key(&cards, &word, 4), nodes, n), 0);
	}
	c = check(made, 1);
	ok(c.asked == 100 && c.wrong == 1 && c.right + c.missing == 99, "one path is another");
	eq(check(made + 14, 1).missing, c.missing + 4,
		"flows whose last card was not made are not asked");
	pl_region_close(g);
}

/* Two reporters' columns merged; a cell too high, a column that is not complete, an epoch that is
 * not the last. */
static void test_sketch(bool loglog)
{
	const struct pl_store_params p = { .primitive = PL_SKETCH,
		.hash = PL_HASH_PATHLINE,
		.seed = 99,
		.sketch = { .columns = 100,
			.kind = loglog ? PL_SKETCH_HYPERLOGLOG : PL_SKETCH_COUNT_MIN,
			.rows = loglog ? 1 : 3,
			.cell_bytes = loglog ? 1 : 4 } };
	struct pl_region *g = make(&p, 0), *other = make(&p, 1);
	struct pl_sketch k;
	uint8_t *cell;

	(void)pl_sketch_init(&k, &p, pl_region_store(g, 0));
	for (unsigned int reporter = 0; reporter < 2; reporter++) {
		for (uint32_t column = 0; column < 100; column++) {
			uint8_t cells[12] = { 0 };

			for (uint32_t row = 0; row < k.rows; row++) {
				const uint64_t v = pl_dta_gen_cell(1, column, row, k.cell_bytes);

				memcpy(cells + (size_t)row * k.cell_bytes, &v, k.cell_bytes);
			}
			eq(pl_sketch_merge(&k, column, 1, cells), 0);
		}
	}
	sketch_complete(&k, 100);
	/* 13 reports of 8 columns are an epoch: 26 of each reporter are two. */
	eq(check(52, 2).right, 100, "the last epoch, whole");
	eq(check(2 * 14, 2).right, 8, "or as much of it as was delivered");
	/* A cell may be what it was by chance. */
	ok(check(26, 1).wrong >= 90, "not the epoch before");
	sketch_complete(&k, 60);
	ok(check(52, 2).right == 60 && check(52, 2).missing == 40,
		"what is not complete is missing");
	cell = (uint8_t *)pl_region_store(g, 0) + pl_sketch_place(&k, 59, 1).offset;
	(*cell)++;
	ok(check(52, 2).right == 59 && check(52, 2).wrong == 1, "a cell that is one too high");
	eq(check(0, 2).asked, 0);
	pl_region_close(g);
	pl_region_close(other);
}

static void test_refused(void)
{
	const struct pl_dta_made made = { .reports = 1 };
	const char *many[2000];
	struct pl_diag diag = { .text = "" };
	struct pl_dta_checked c;

	/* A larger store first: its places would be looked for in the smaller one. */
	for (unsigned int i = 0; i < 2; i++) {
		const struct pl_store_params p = { .primitive = PL_KEY_WRITE,
			.hash = PL_HASH_PATHLINE,
			.seed = 99,
			.key_write = {
				.slots = i == 0 ? 4096 : 64, .value_bytes = 4, .copies = 2 } };

		(void)pl_region_close(make(&p, i));
	}
	ok(pl_dta_check(&made, both, 2, &c, &diag) < 0 &&
			strstr(diag.text, "differs from the store") != NULL,
		"%s", diag.text);
	for (size_t i = 0; i < 2000; i++)
		many[i] = paths[0];
	ok(pl_dta_check(&made, many, 2000, &c, &diag) < 0 && strstr(diag.text, "2000") != NULL,
		"%s", diag.text);
	(void)unlink(paths[0]);
	diag.text[0] = '\0';
	ok(pl_dta_check(&made, both, 1, &c, &diag) < 0 && diag.text[0] != '\0', "%s", diag.text);
}

int main(void)
{
	if (mkdtemp(folder) == NULL)
		return 1;
	for (int i = 0; i < 2; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/%d", folder, i);
	test_key_write(false);
	test_key_write(true);
	test_append();
	test_counters();
	test_postcards(false);
	test_postcards(true);
	test_sketch(false);
	test_sketch(true);
	test_refused();
	for (int i = 0; i < 2; i++)
		(void)unlink(paths[i]);
	(void)rmdir(folder);
	return pl_test_done();
}
