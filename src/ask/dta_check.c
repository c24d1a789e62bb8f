/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares regions with the stream that was generated. */
#include "ask/dta_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/dta_gen.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "memory/region.h"
#include "memory/sketch.h"

#define REGIONS   1024u
#define VALUE_MAX PL_VALUE_MAX
#define INTERVALS 200

struct regions {
	struct pl_region *region[REGIONS];
	const void *store[REGIONS];
	struct pl_store_params params;
	unsigned int n;
	const struct pl_dta_made *made;
};

/* ---- answers ---- */

static void put_number(uint8_t *to, size_t n, uint64_t v)
{
	memset(to, 0, n);
	for (size_t i = 0; i < n && i < 8; i++)
		to[n - 1 - i] = (uint8_t)(v >> (8 * i));
}

/* Writes a key as the store's hash takes it: DTA's takes keys of 4 bytes least significant byte
 * first. */
static void put_key(const struct regions *g, uint8_t to[4], uint64_t key)
{
	put_number(to, 4, g->params.hash == PL_HASH_DTA ? __builtin_bswap32((uint32_t)key) : key);
}

/* Returns the share of keys that are overwritten on average when `keys` went into `slots` with so
 * many copies each: a key behind which x times the slots were reported has lost all copies with
 * probability (1 - e^-copies x)^copies. Simpson's rule. */
static double overwritten(uint64_t keys, uint64_t slots, uint64_t copies)
{
	const double a = (double)keys / (double)slots, step = a / INTERVALS;
	double sum = 0;

	for (int i = 0; i <= INTERVALS; i++) {
		const double f = pow(1 - exp(-(double)copies * step * i), (double)copies);

		sum += f * (i == 0 || i == INTERVALS ? 1 : i % 2 == 1 ? 4 : 2);
	}
	return keys == 0 ? 0 : sum / (3 * INTERVALS);
}

/*
 * Returns the share of overwritten keys by counting, for the hash of DTA, whose positions are not
 * random: successive numbers hardly collide. Goes back from the last key and counts keys all of
 * whose copies were overwritten by later keys. `fill` gives a key's slots.
 */
static double overwritten_exactly(const struct regions *g, uint64_t keys, uint64_t slots,
	unsigned int (*fill)(const struct regions *g, uint64_t key, uint64_t ret[PL_COPIES_MAX]))
{
	uint8_t *taken = calloc(1, (slots + 7) / 8);
	uint64_t gone = 0;

	if (taken == NULL)
		return NAN;
	for (uint64_t k = keys; k-- > 0;) {
		uint64_t at[PL_COPIES_MAX];
		const unsigned int n = fill(g, k, at);
		bool left = false;

		for (unsigned int i = 0; i < n; i++)
			left |= (taken[at[i] / 8] >> at[i] % 8 & 1) == 0;
		for (unsigned int i = 0; i < n; i++)
			taken[at[i] / 8] |= (uint8_t)(1u << at[i] % 8);
		gone += !left;
	}
	free(taken);
	return keys == 0 ? 0 : (double)gone / (double)keys;
}

static unsigned int key_write_slots(
	const struct regions *g, uint64_t key, uint64_t ret[PL_COPIES_MAX])
{
	struct pl_key_write kw;
	uint8_t bytes[4];

	(void)pl_key_write_init(&kw, &g->params, NULL);
	put_key(g, bytes, key);
	for (unsigned int i = 0; i < kw.copies; i++)
		ret[i] = pl_key_slot(
			&kw.hashing, pl_key_write_key(&kw, bytes, sizeof(bytes)), i, kw.slots);
	return kw.copies;
}

static unsigned int postcard_chunks(
	const struct regions *g, uint64_t flow, uint64_t ret[PL_COPIES_MAX])
{
	struct pl_postcards p;
	uint8_t bytes[4];

	(void)pl_postcards_init(&p, &g->params, NULL);
	put_number(bytes, sizeof(bytes), flow);
	ret[0] = pl_postcards_offset(&p, pl_postcards_key(&p, bytes, sizeof(bytes)), 0) /
		 p.chunk_bytes;
	return 1;
}

static void add(struct pl_dta_checked *c, bool right, bool wrong)
{
	c->asked++;
	c->wrong += wrong;
	c->right += right && !wrong;
	c->missing += !right && !wrong;
}

static void check_key_write(const struct regions *g, struct pl_dta_checked *c)
{
	const size_t n = g->params.key_write.value_bytes;
	const uint64_t made = g->made->reports;
	struct pl_key_write kw[REGIONS];

	for (unsigned int i = 0; i < g->n; i++)
		(void)pl_key_write_init(&kw[i], &g->params, (void *)(uintptr_t)g->store[i]);
	for (uint64_t k = 0; k < made; k++) {
		uint8_t key[4], want[VALUE_MAX], value[VALUE_MAX];
		bool right = false, wrong = false;

		put_key(g, key, k);
		put_number(want, n, pl_dta_gen_value(k));
		for (unsigned int i = 0; i < g->n; i++) {
			if (pl_key_write_get(
				    &kw[i], pl_key_write_key(&kw[i], key, sizeof(key)), 1, value)
					.answer != PL_FOUND)
				continue;
			if (memcmp(value, want, n) == 0)
				right = true;
			else
				wrong = true;
		}
		add(c, right, wrong);
	}
	c->expected =
		g->params.hash == PL_HASH_DTA
			? overwritten_exactly(g, made, g->params.key_write.slots, key_write_slots)
			: overwritten(made, g->params.key_write.slots, g->params.key_write.copies);
}

/* Reads an entry's number; with the hash of DTA entries of 4 bytes are little-endian. */
static uint64_t get_entry(const struct regions *g, const uint8_t *from, size_t n)
{
	uint64_t v = 0;

	if (g->params.hash == PL_HASH_DTA && n == 4)
		return (uint64_t)from[3] << 24 | (uint64_t)from[2] << 16 | (uint64_t)from[1] << 8 |
		       from[0];
	for (size_t i = n > 8 ? n - 8 : 0; i < n; i++)
		v = v << 8 | from[i];
	return v;
}

/* Checks a list at one collector: its entries must be of this list, and rise. Returns how many are
 * right. */
static uint64_t check_list(
	const struct regions *g, const struct pl_append *a, uint32_t list, uint64_t *ret_wrong)
{
	const uint32_t lists = g->made->lists, bytes = g->params.append.entry_bytes;
	struct pl_append_reader reader;
	uint8_t entry[VALUE_MAX];
	uint64_t last = 0, right = 0;

	pl_append_reader_init(&reader, a, list, pl_append_oldest(a, list));
	while (pl_append_read(&reader, entry, NULL, 1) == 1) {
		const uint64_t v = get_entry(g, entry, bytes);

		if (v > last && v <= g->made->reports && (v - 1) % lists == list)
			right++;
		else
			(*ret_wrong)++;
		last = v;
	}
	return right;
}

static void check_append(const struct regions *g, struct pl_dta_checked *c)
{
	const uint64_t room = g->params.append.slots - g->params.append.batch_max;
	const uint64_t made = g->made->reports;
	const uint32_t lists = g->made->lists;

	for (uint32_t list = 0; list < lists; list++) {
		const uint64_t n = made / lists + (list < made % lists);
		const uint64_t want = n < room ? n : room;
		uint64_t right = 0, wrong = 0;

		for (unsigned int i = 0; i < g->n; i++) {
			struct pl_append a;

			(void)pl_append_init(&a, &g->params, (void *)(uintptr_t)g->store[i]);
			right += check_list(g, &a, list, &wrong);
		}
		/* The ring may hold a little more than it guarantees. */
		c->asked += want > right + wrong ? want : right + wrong;
		c->right += right;
		c->wrong += wrong;
	}
	c->missing = c->asked - c->right - c->wrong;
}

/* Sums a key's row over all regions. */
static uint64_t row_of(const struct pl_counters *sums, const struct regions *g,
	const uint8_t key[4], unsigned int row)
{
	uint64_t sum = 0, v;

	for (unsigned int i = 0; i < g->n; i++) {
		memcpy(&v,
			sums[i].base + pl_counters_offset(
					       &sums[i], pl_counters_key(&sums[i], key, 4), row),
			sizeof(v));
		sum += v;
	}
	return sum;
}

static void check_counters(const struct regions *g, struct pl_dta_checked *c)
{
	const uint64_t keys = g->made->keys, made = g->made->reports;
	struct pl_counters sums[REGIONS];
	double total = 0;

	for (unsigned int i = 0; i < g->n; i++) {
		(void)pl_counters_init(&sums[i], &g->params, (void *)(uintptr_t)g->store[i]);
		total += pl_counters_total(&sums[i]);
	}
	for (uint64_t k = 0; k < keys; k++) {
		const uint64_t want = made / keys + (k < made % keys);
		uint64_t least = UINT64_MAX;
		uint8_t key[4];

		put_key(g, key, k);
		/* Sums each row over the epochs: the rows of an increment that was being written
		 * when an epoch ended are in both. */
		for (unsigned int row = 0; row < sums[0].rows; row++) {
			const uint64_t v = row_of(sums, g, key, row);

			least = v < least ? v : least;
		}
		add(c, least >= want, total > (double)made);
	}
}

/* Makes the set of all nodes; the caller frees it. */
static int make_nodes(struct pl_value_set *set, uint32_t n, struct pl_diag *diag)
{
	uint32_t *nodes = calloc(n, sizeof(*nodes));
	int r = nodes == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; i < n && r == 0; i++)
		nodes[i] = i + 1;
	if (r == 0)
		r = pl_value_set_init(set, nodes, n);
	free(nodes);
	if (r < 0)
		pl_diag_set(diag, "%s", strerror(-r));
	return r;
}

static int check_postcards(const struct regions *g, struct pl_dta_checked *c, struct pl_diag *diag)
{
	const struct pl_dta_made *m = g->made;
	struct pl_postcards p[REGIONS];
	struct pl_value_set set;
	uint64_t sent = 0;

	if (make_nodes(&set, m->nodes, diag) < 0)
		return -ENOMEM;
	for (unsigned int i = 0; i < g->n; i++)
		(void)pl_postcards_init(&p[i], &g->params, (void *)(uintptr_t)g->store[i]);
	for (uint64_t flow = 0;; flow++) {
		const unsigned int length = (unsigned int)(1 + flow % m->hops);
		uint32_t want[PL_HOPS_MAX], nodes[PL_HOPS_MAX];
		bool right = false, wrong = false;
		uint8_t key[4];

		sent += length;
		if (sent > m->reports)
			break; /* its last postcards were never made */
		put_number(key, sizeof(key), flow);
		for (unsigned int hop = 1; hop <= length; hop++)
			want[hop - 1] = pl_dta_gen_node(flow, hop, m->nodes);
		for (unsigned int i = 0; i < g->n; i++) {
			const struct pl_postcards_result r = pl_postcards_get(
				&p[i], pl_postcards_key(&p[i], key, sizeof(key)), &set, nodes);

			if (r.answer != PL_FOUND)
				continue;
			if (r.n == length && memcmp(nodes, want, length * sizeof(nodes[0])) == 0)
				right = true;
			else
				wrong = true;
		}
		add(c, right, wrong);
	}
	c->expected = g->params.hash == PL_HASH_DTA
			      ? overwritten_exactly(
					g, c->asked, g->params.postcards.chunks, postcard_chunks)
			      : overwritten(c->asked, g->params.postcards.chunks,
					g->params.postcards.copies);
	pl_value_set_done(&set);
	return 0;
}

/* Returns true when a complete column is the sum, or maximum, of what each reporter delivered. */
static bool is_column(
	const struct pl_sketch *k, uint32_t epoch, uint32_t column, uint64_t reporters)
{
	const struct pl_extent at = pl_sketch_place(k, column, 1);

	for (uint32_t row = 0; row < k->rows; row++) {
		const uint64_t cell = pl_dta_gen_cell(epoch, column, row, k->cell_bytes);
		uint64_t v = 0;

		memcpy(&v, k->base + at.offset + (size_t)row * k->cell_bytes, k->cell_bytes);
		if (v != (k->kind == PL_SKETCH_COUNT_MIN ? cell * reporters : cell))
			return false;
	}
	return true;
}

/* Checks the columns of the last epoch that was begun, at the collector that has each. */
static void check_sketch(const struct regions *g, struct pl_dta_checked *c)
{
	const uint64_t made = g->made->reports / g->made->reporters; /* by each */
	struct pl_sketch k[REGIONS];
	uint64_t at_once, turns, delivered, left;
	uint32_t epoch;

	for (unsigned int i = 0; i < g->n; i++)
		(void)pl_sketch_init(&k[i], &g->params, (void *)(uintptr_t)g->store[i]);
	if (made == 0)
		return;
	at_once = pl_dta_gen_columns(k[0].rows, k[0].cell_bytes);
	turns = (k[0].columns + at_once - 1) / at_once; /* reports of an epoch */
	epoch = (uint32_t)((made - 1) / turns);
	left = ((made - 1) % turns + 1) * at_once;
	delivered = left < k[0].columns ? left : k[0].columns;
	for (uint32_t column = 0; column < delivered; column++) {
		bool right = false, other = false;

		for (unsigned int i = 0; i < g->n; i++) {
			if (pl_sketch_completed(&k[i]) <= column)
				continue;
			if (is_column(&k[i], epoch, column, g->made->reporters))
				right = true;
			else
				other = true;
		}
		add(c, right, other && !right);
	}
}

static bool same_params(const struct pl_store_params *a, const struct pl_store_params *b)
{
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): unused bytes are zero */
	return memcmp(a, b, sizeof(*a)) == 0;
}

static int open_all(
	struct regions *g, const char *const *paths, unsigned int n, struct pl_diag *diag)
{
	for (unsigned int i = 0; i < n; i++) {
		int r = pl_region_open(&g->region[i], paths[i], PL_REGION_READ, NULL, diag);

		if (r < 0)
			return r;
		g->n = i + 1;
		if (i > 0 && !same_params(&g->params, pl_region_params(g->region[i])))
			return pl_diag_fail(
				diag, -EINVAL, "%s differs from the store %s", paths[i], paths[0]);
		g->params = *pl_region_params(g->region[i]);
		g->store[i] = pl_region_store(g->region[i], pl_region_epoch(g->region[i]));
	}
	return 0;
}

/* Refuses regions with fewer lists, or shorter paths, than the stream had: they cannot be its
 * own. */
static int check_room(const struct regions *g, struct pl_diag *diag)
{
	const bool append = g->params.primitive == PL_APPEND;
	const uint32_t made = append ? g->made->lists : g->made->hops;
	const uint32_t room = append ? g->params.append.lists : g->params.postcards.hops;

	if ((!append && g->params.primitive != PL_POSTCARDS) || made <= room)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "the stream has %u %s, the regions have %u", made,
		append ? "lists" : "hops", room);
}

int pl_dta_check(const struct pl_dta_made *made, const char *const *paths, unsigned int n,
	struct pl_dta_checked *ret, struct pl_diag *diag)
{
	struct regions g = { .made = made };
	int r = n == 0 || n > REGIONS ? -E2BIG : 0;

	*ret = (struct pl_dta_checked){ 0 };
	if (r < 0)
		pl_diag_set(
			diag, "%u regions and epochs, of which 1 to %u can be asked", n, REGIONS);
	else
		r = open_all(&g, paths, n, diag);
	if (r == 0)
		r = check_room(&g, diag);
	if (r == 0)
		ret->primitive = pl_primitive_name(g.params.primitive);
	if (r == 0 && g.params.primitive == PL_KEY_WRITE)
		check_key_write(&g, ret);
	else if (r == 0 && g.params.primitive == PL_APPEND)
		check_append(&g, ret);
	else if (r == 0 && g.params.primitive == PL_COUNTERS)
		check_counters(&g, ret);
	else if (r == 0 && g.params.primitive == PL_POSTCARDS)
		r = check_postcards(&g, ret, diag);
	else if (r == 0)
		check_sketch(&g, ret);
	for (unsigned int i = 0; i < g.n; i++)
		(void)pl_region_close(g.region[i]);
	return r;
}
