/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry memory in process: each primitive against random 64-byte stores to the same pages (R3),
 * reads against random 64-byte loads of them. Keys are 13 bytes, the size of a 5-tuple, hashed as
 * part of the work; a fresh key each time. The memory is shared, in huge pages if enough are
 * reserved, populated before anything is measured.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/complain.h"
#include "base/prefetch.h"
#include "base/rng.h"
#include "memory/append.h"
#include "memory/counters.h"
#include "memory/key_write.h"
#include "memory/postcards.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"

#define BATCH      256u
#define GROUP      32u /* keys whose places are prefetched together; divides BATCH */
#define ROUND      64u /* batches between two looks at the clock */
#define KEY_BYTES  13u
#define HUGE_BYTES (2u << 20) /* of a huge page */

struct memory_bench {
	uint8_t *base;
	uint64_t bytes;
	size_t map_bytes;
	struct pl_rng rng;
	struct pl_key_write kw;
	struct pl_append append;
	struct pl_counters counters;
	struct pl_postcards postcards;
	struct pl_append_reader reader;
	bool huge;        /* in reserved huge pages */
	uint64_t written; /* keys put so far: lookups ask for these */
	uint32_t batch;   /* entries put at once */
	struct pl_key keys[BATCH];
	uint64_t increments[BATCH];
	uint32_t paths[BATCH * 7];
	uint8_t counts[BATCH]; /* hops of each path */
	struct pl_key_write_result results[BATCH];
	uint8_t values[BATCH * 128];
	uint64_t sum; /* so that nothing that is read is left out */
};

/* ---- ceilings ---- */

/* Not the first one, where a list's head is. */
static uint64_t random_line(struct memory_bench *b)
{
	return (1 + pl_rng_below(&b->rng, b->bytes / 64 - 1)) * 64;
}

/* Places are drawn before: the generator is no part of the ceiling. */
static int random_access(struct memory_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	void (*each)(struct memory_bench *b, const uint64_t *at, unsigned int n))
{
	static uint64_t at[BATCH * ROUND];

	do {
		uint64_t start;

		for (unsigned int i = 0; i < BATCH * ROUND; i++)
			at[i] = random_line(b);
		start = pl_cpu_thread_ns();
		each(b, at, BATCH * ROUND);
		ret->ns += pl_cpu_thread_ns() - start;
		ret->items += BATCH * ROUND;
	} while (ret->ns < budget_ns);
	return 0;
}

typedef uint64_t line __attribute__((vector_size(64), aligned(64)));

static void store_lines(struct memory_bench *b, const uint64_t *at, unsigned int n)
{
	line v = { 1, 2, 3, 4, 5, 6, 7, 8 };

	for (unsigned int i = 0; i < n; i++) {
		v[0] = i;
		*(volatile line *)(void *)(b->base + at[i]) = v;
	}
}

static void load_lines(struct memory_bench *b, const uint64_t *at, unsigned int n)
{
	line sum = { 0 };

	for (unsigned int i = 0; i < n; i++)
		sum += *(volatile line *)(void *)(b->base + at[i]);
	b->sum += sum[0] + sum[7];
}

static int random_stores(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return random_access(arg, budget_ns, ret, store_lines);
}

static int random_loads(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return random_access(arg, budget_ns, ret, load_lines);
}

/* ---- subjects ---- */

static void make_key(uint8_t key[16], uint64_t i)
{
	uint64_t mixed = i * UINT64_C(0x9e3779b97f4a7c15);

	memcpy(key, &mixed, 8);
	memcpy(key + 8, &i, 8);
}

static int timed(struct memory_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	void (*batch)(struct memory_bench *b), unsigned int items)
{
	uint64_t start = pl_cpu_thread_ns();

	do {
		for (unsigned int i = 0; i < ROUND; i++)
			batch(b);
		ret->items += (uint64_t)ROUND * items;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static void hash_fresh(struct memory_bench *b, const struct pl_hashing *hashing)
{
	uint8_t key[16];

	for (unsigned int i = 0; i < BATCH; i++) {
		make_key(key, b->written++);
		b->keys[i] = pl_key_make(hashing, key, KEY_BYTES);
	}
}

/* Keys that were put, in no order. */
static void hash_known(struct memory_bench *b, const struct pl_hashing *hashing)
{
	uint8_t key[16];

	for (unsigned int i = 0; i < BATCH; i++) {
		make_key(key, pl_rng_below(&b->rng, b->written));
		b->keys[i] = pl_key_make(hashing, key, KEY_BYTES);
	}
}

static void put_values(struct memory_bench *b)
{
	hash_fresh(b, &b->kw.hashing);
	pl_key_write_put_batch(&b->kw, b->keys, b->values, BATCH);
}

static void get_values(struct memory_bench *b)
{
	hash_known(b, &b->kw.hashing);
	pl_key_write_get_batch(&b->kw, b->keys, BATCH, 1, b->results, b->values);
	b->sum += b->results[0].votes;
}

static void put_entries(struct memory_bench *b)
{
	for (unsigned int i = 0; i < BATCH; i += b->batch)
		pl_append_put(
			&b->append, 0, b->values + (size_t)i * b->append.entry_bytes, b->batch);
}

static void poll_entries(struct memory_bench *b)
{
	size_t n = pl_append_read(&b->reader, b->values, NULL, BATCH);

	if (n < BATCH) /* all of the list again */
		pl_append_reader_init(&b->reader, &b->append, 0, pl_append_oldest(&b->append, 0));
	b->sum += n;
}

/* Paths and increments are put one by one: their places are prefetched before, group by group, as
 * those of values are. */
static void put_paths(struct memory_bench *b)
{
	const struct pl_postcards *p = &b->postcards;

	hash_fresh(b, &p->hashing);
	for (unsigned int from = 0; from < BATCH; from += GROUP) {
		for (unsigned int i = 0; i < GROUP * p->copies; i++)
			pl_prefetch_all(
				p->base + pl_postcards_offset(
						  p, b->keys[from + i / p->copies], i % p->copies),
				p->write_bytes, true);
		for (unsigned int i = from; i < from + GROUP; i++)
			b->sum += pl_postcards_put(p, b->keys[i], b->paths + (size_t)i * p->hops,
					  b->counts[i]) != 0;
	}
}

static void add_counts(struct memory_bench *b)
{
	const struct pl_counters *c = &b->counters;

	hash_fresh(b, &c->hashing);
	for (unsigned int from = 0; from < BATCH; from += GROUP) {
		for (unsigned int i = 0; i < GROUP * c->rows; i++)
			pl_prefetch_write(
				c->base +
				pl_counters_offset(c, b->keys[from + i / c->rows], i % c->rows));
		for (unsigned int i = from; i < from + GROUP; i++)
			b->sum += pl_counters_add(c, b->keys[i], b->increments[i]) != 0;
	}
}

#define SUBJECT(name, batch)                                                                       \
	static int name(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)                \
	{                                                                                          \
		return timed(arg, budget_ns, ret, batch, BATCH);                                   \
	}

SUBJECT(run_put_values, put_values)
SUBJECT(run_get_values, get_values)
SUBJECT(run_put_entries, put_entries)
SUBJECT(run_poll_entries, poll_entries)
SUBJECT(run_put_paths, put_paths)
SUBJECT(run_add_counts, add_counts)

/* ---- memory ---- */

/* In reserved huge pages if there are enough of them, else in what shared memory has. */
static int open_memory(struct memory_bench *b, const struct pl_store_params *params)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_ANONYMOUS;
	int r = pl_store_bytes(params, &b->bytes, NULL);

	if (r < 0)
		return r;
	b->map_bytes = (b->bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
	b->base = mmap(NULL, b->map_bytes, prot, flags | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	b->huge = b->base != MAP_FAILED;
	if (!b->huge)
		b->base = mmap(NULL, b->map_bytes, prot, flags, -1, 0);
	if (b->base == MAP_FAILED) {
		r = -errno;
		b->base = NULL;
		pl_complain("no memory for the store: %s", strerror(-r));
		return r;
	}
	if (!b->huge) { /* advice only */
		(void)madvise(b->base, b->map_bytes, MADV_HUGEPAGE);
		(void)madvise(b->base, b->map_bytes, MADV_POPULATE_WRITE);
	}
	pl_rng_seed(&b->rng, 1);
	b->written = 0;
	for (unsigned int i = 0; i < BATCH; i++) {
		b->increments[i] = 1 + i;
		b->counts[i] = 5;
		for (unsigned int k = 0; k < 5; k++)
			b->paths[7 * i + k] = 11 + k;
	}
	return 0;
}

static void close_bench(struct memory_bench *b)
{
	if (b->base != NULL)
		munmap(b->base, b->map_bytes);
	free(b);
}

static struct memory_bench *new_bench(void)
{
	struct memory_bench *b = calloc(1, sizeof(*b));

	if (b == NULL)
		pl_complain("out of memory");
	return b;
}

static int compare(struct pl_bench_ctx *ctx, struct memory_bench *b, const char *name,
	pl_bench_fn *subject, bool reads)
{
	struct pl_bench_case c = { .name = name,
		.ceiling_name = reads ? (b->huge ? "random 64-byte loads, huge pages"
						 : "random 64-byte loads")
				      : (b->huge ? "R3, random 64-byte stores, huge pages"
						 : "R3, random 64-byte stores"),
		.subject = subject,
		.ceiling = reads ? random_loads : random_stores,
		.arg = b };

	return pl_bench_compare(ctx, &c);
}

/* ---- key-write and lookup ---- */

static int key_write_case(
	struct pl_bench_ctx *ctx, uint32_t value_bytes, uint32_t copies, bool lookup)
{
	struct pl_store_params params = { .primitive = PL_KEY_WRITE,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.key_write = { 0, value_bytes, copies } };
	struct memory_bench *b = new_bench();
	char name[48];
	int r;

	if (b == NULL)
		return -ENOMEM;
	params.key_write.slots =
		pl_bench_size_bytes(ctx, UINT64_C(1) << 30) / pl_key_write_slot_bytes(value_bytes);
	snprintf(name, sizeof(name), "%s/%u-bytes-N%u", lookup ? "lookup" : "key-write",
		value_bytes, copies);
	r = open_memory(b, &params);
	if (r == 0)
		r = pl_key_write_init(&b->kw, &params, b->base);
	/* Filled to a load of 0.2 first, so that what is asked for is mostly there. */
	while (r == 0 && lookup && b->written < params.key_write.slots / 5)
		put_values(b);
	if (r == 0)
		r = compare(ctx, b, name, lookup ? run_get_values : run_put_values, lookup);
	close_bench(b);
	return r;
}

static int run_key_write(struct pl_bench_ctx *ctx)
{
	static const uint32_t cases[][2] = { { 4, 1 }, { 28, 1 }, { 28, 2 }, { 28, 4 }, { 60, 1 } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(cases) / sizeof(cases[0]); i++)
		r = key_write_case(ctx, cases[i][0], cases[i][1], false);
	return r;
}

static int run_lookup(struct pl_bench_ctx *ctx)
{
	int r = 0;

	for (uint32_t copies = 1; r == 0 && copies <= 4; copies *= 2)
		r = key_write_case(ctx, 28, copies, true);
	return r;
}

/* ---- append and poll ---- */

static int append_case(
	struct pl_bench_ctx *ctx, uint32_t entry_bytes, bool sealed, uint32_t batch, bool poll)
{
	struct pl_store_params params = { .primitive = PL_APPEND,
		.hash = PL_HASH_PATHLINE,
		.seed = 7,
		.append = { 0, 1, entry_bytes, 64, sealed } };
	struct memory_bench *b = new_bench();
	char name[48];
	int r;

	if (b == NULL)
		return -ENOMEM;
	params.append.slots = pl_bench_size_bytes(ctx, UINT64_C(1) << 30) /
			      pl_append_entry_stride(entry_bytes, sealed) / 64 * 64;
	b->batch = batch;
	if (poll)
		snprintf(name, sizeof(name), "poll/%u-bytes%s", entry_bytes,
			sealed ? "-sealed" : "");
	else
		snprintf(name, sizeof(name), "append/%u-bytes%s-batch-%u", entry_bytes,
			sealed ? "-sealed" : "", batch);
	r = open_memory(b, &params);
	if (r == 0)
		r = pl_append_init(&b->append, &params, b->base);
	while (r == 0 && poll && pl_append_head(&b->append, 0) < params.append.slots)
		put_entries(b);
	if (r == 0 && poll)
		pl_append_reader_init(&b->reader, &b->append, 0, pl_append_oldest(&b->append, 0));
	if (r == 0)
		r = compare(ctx, b, name, poll ? run_poll_entries : run_put_entries, poll);
	close_bench(b);
	return r;
}

static int run_poll(struct pl_bench_ctx *ctx)
{
	int r = append_case(ctx, 4, false, 16, true);

	if (r == 0)
		r = append_case(ctx, 64, true, 16, true);
	if (r == 0)
		r = append_case(ctx, 128, true, 16, true);
	return r;
}

static int run_append(struct pl_bench_ctx *ctx)
{
	int r = append_case(ctx, 4, false, 16, false);

	if (r == 0)
		r = append_case(ctx, 64, true, 1, false);
	if (r == 0)
		r = append_case(ctx, 64, true, 16, false);
	if (r == 0)
		r = append_case(ctx, 128, true, 16, false);
	return r;
}

/* ---- postcards and counters ---- */

static int run_postcards(struct pl_bench_ctx *ctx)
{
	int r = 0;

	for (uint32_t copies = 1; r == 0 && copies <= 2; copies++) {
		struct pl_store_params params = { .primitive = PL_POSTCARDS,
			.hash = PL_HASH_PATHLINE,
			.seed = 7,
			.postcards = {
				pl_bench_size_bytes(ctx, UINT64_C(1) << 30) / 32, 7, copies } };
		struct memory_bench *b = new_bench();
		char name[48];

		if (b == NULL)
			return -ENOMEM;
		snprintf(name, sizeof(name), "postcards/5-hops-N%u", copies);
		r = open_memory(b, &params);
		if (r == 0)
			r = pl_postcards_init(&b->postcards, &params, b->base);
		if (r == 0)
			r = compare(ctx, b, name, run_put_paths, false);
		close_bench(b);
	}
	return r;
}

static int run_counters(struct pl_bench_ctx *ctx)
{
	int r = 0;

	for (uint32_t rows = 1; r == 0 && rows <= 4; rows *= 2) {
		struct pl_store_params params = { .primitive = PL_COUNTERS,
			.hash = PL_HASH_PATHLINE,
			.seed = 7,
			.counters = {
				pl_bench_size_bytes(ctx, UINT64_C(1) << 30) / 8 / rows, rows, 0 } };
		struct memory_bench *b = new_bench();
		char name[48];

		if (b == NULL)
			return -ENOMEM;
		snprintf(name, sizeof(name), "counters/%u-rows", rows);
		r = open_memory(b, &params);
		if (r == 0)
			r = pl_counters_init(&b->counters, &params, b->base);
		if (r == 0)
			r = compare(ctx, b, name, run_add_counts, false);
		close_bench(b);
	}
	return r;
}

const struct pl_bench pl_bench_key_write = {
	.name = "key-write",
	.summary = "key-write in process, key hashed and checked, against random stores",
	.run = run_key_write,
};

const struct pl_bench pl_bench_append = {
	.name = "append",
	.summary = "append in process, against random stores",
	.run = run_append,
};

const struct pl_bench pl_bench_postcards = {
	.name = "postcards",
	.summary = "paths of five hops into postcards, against random stores",
	.run = run_postcards,
};

const struct pl_bench pl_bench_counters = {
	.name = "counters",
	.summary = "increments of counters, against random stores",
	.run = run_counters,
};

const struct pl_bench pl_bench_lookup = {
	.name = "lookup",
	.summary = "key-write queries in batches, against random loads",
	.run = run_lookup,
};

const struct pl_bench pl_bench_poll = {
	.name = "poll",
	.summary = "entries of a list read and proved, against random loads",
	.run = run_poll,
};
