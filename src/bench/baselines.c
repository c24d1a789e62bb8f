/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a processor gets that keeps reports itself, without telemetry memory: the same reports
 * (key-write of DTA, 13 bytes of key, 4 of value, 1 M keys, a datagram each) from memory into the
 * two structures that the paper on Direct Telemetry Access compares itself with, and into
 * pathline's, one thread each. Against 64-byte stores to random lines of as much memory (R3).
 *
 *   cuckoo     a hash table of the least a collector can be: two buckets of four to choose from, a
 *              cache line each
 *   log        a log of all reports, and of each key the place of its last one, chained to those
 *              before
 *   translate  pathline in process: reports to a key-write region of one copy, by the translator
 *
 * Tables have room for four times the keys. Lines are asked for in groups of 64, as pathline's own
 * are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/hash.h"
#include "base/prefetch.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/stores.h"
#include "dta/apply.h"
#include "dta/translator.h"

#define REPORTS      65536u
#define KEYS         1000000u
#define KEY_BYTES    13u
#define BATCH        64u
#define WAYS         4u
#define BUCKETS      (1u << 20)
#define KICKS_MAX    64u
#define LOG_BYTES    (UINT64_C(1) << 28)
#define RECORD       32u
#define MEMORY_BYTES (LOG_BYTES + (uint64_t)BUCKETS * WAYS * sizeof(struct entry))

struct bucket {
	uint64_t key[WAYS]; /* its hash; 0: free */
	uint64_t value[WAYS];
};

struct record {
	uint64_t before; /* place of the one before it of this key, from 1 on */
	uint8_t key[16];
	uint32_t value, length;
};

struct entry {
	uint64_t key, last;
};

struct baselines {
	uint8_t *datagrams;
	uint32_t *at;            /* of datagram i; [REPORTS] is the end */
	uint8_t *memory, *other; /* other: of the ceiling */
	uint64_t used;           /* of each, by the case */
	struct bucket *buckets;
	struct record *log;
	struct entry *index;
	uint64_t logged, lost;
	struct pl_rng rng;
	struct pl_apply apply;
	struct pl_apply_store store;
	struct pl_translator *translator;
	uint64_t now_ns;
};

/* ---- reports ---- */

static int make_datagrams(struct baselines *b)
{
	struct pl_build build;

	b->datagrams = malloc((size_t)REPORTS * 64);
	b->at = calloc(REPORTS + 1, sizeof(*b->at));
	if (b->datagrams == NULL || b->at == NULL)
		return -ENOMEM;
	build = pl_build(b->datagrams, (size_t)REPORTS * 64);
	for (uint32_t i = 0; i < REPORTS; i++) {
		const uint64_t k = pl_rng_below(&b->rng, KEYS) * UINT64_C(0x9e3779b97f4a7c15);
		uint8_t key[KEY_BYTES] = { 0 };
		const struct pl_dta_report r = { .form = PL_DTA_PATHLINE,
			.op = PL_DTA_KEY_WRITE,
			.key = key,
			.key_bytes = KEY_BYTES,
			.data = (const uint8_t *)&i,
			.data_bytes = 4 };

		memcpy(key, &k, 8);
		b->at[i] = (uint32_t)build.len;
		if (pl_dta_put(&build, &r) < 0)
			return -EBADMSG;
	}
	b->at[REPORTS] = (uint32_t)build.len;
	return 0;
}

struct taken {
	uint8_t key[KEY_BYTES];
	uint32_t value;
	uint64_t hash; /* never 0 */
};

/* Reads the next ones, as any collector has to. False: it is something else. */
static bool take(const struct baselines *b, uint32_t first, struct taken ret[BATCH])
{
	for (uint32_t i = 0; i < BATCH; i++) {
		const uint32_t at = b->at[first + i];
		struct pl_cursor c = pl_cursor(b->datagrams + at, b->at[first + i + 1] - at);
		struct pl_dta_report r;

		if (pl_dta_next(&c, PL_DTA_PATHLINE, &r) != PL_DTA_OK || r.key_bytes != KEY_BYTES ||
			r.data_bytes != 4)
			return false;
		memcpy(ret[i].key, r.key, KEY_BYTES);
		memcpy(&ret[i].value, r.data, 4);
		ret[i].hash = pl_hash(r.key, KEY_BYTES, 1) | 1;
	}
	return true;
}

/* ---- cuckoo ---- */

static struct bucket *first_of(const struct baselines *b, uint64_t hash)
{
	return &b->buckets[hash >> 44];
}

static struct bucket *other_of(const struct baselines *b, const struct bucket *one, uint64_t hash)
{
	const uint64_t mix = (hash & 0xfffff) * 0x5bd1e995 >> 4 | 1;

	return &b->buckets[((uint64_t)(one - b->buckets) ^ mix) & (BUCKETS - 1)];
}

static bool put_in(struct bucket *at, uint64_t hash, uint64_t value)
{
	for (unsigned int w = 0; w < WAYS; w++) {
		if (at->key[w] == hash || at->key[w] == 0) {
			at->key[w] = hash;
			at->value[w] = value;
			return true;
		}
	}
	return false;
}

static bool is_in(struct bucket *at, uint64_t hash, uint64_t value)
{
	for (unsigned int w = 0; w < WAYS; w++) {
		if (at->key[w] == hash) {
			at->value[w] = value;
			return true;
		}
	}
	return false;
}

/* Where both are full one makes room, and goes to its own other place. */
static void put_cuckoo(struct baselines *b, uint64_t hash, uint64_t value)
{
	struct bucket *at = first_of(b, hash);

	if (is_in(at, hash, value) || is_in(other_of(b, at, hash), hash, value))
		return;
	for (unsigned int kicks = 0; kicks < KICKS_MAX; kicks++) {
		const unsigned int way = kicks % WAYS;
		uint64_t old_key, old_value;

		if (put_in(at, hash, value))
			return;
		old_key = at->key[way];
		old_value = at->value[way];
		at->key[way] = hash;
		at->value[way] = value;
		hash = old_key;
		value = old_value;
		at = other_of(b, at, hash);
	}
	b->lost++;
}

static bool cuckoo(struct baselines *b, uint32_t first)
{
	struct taken t[BATCH];

	if (!take(b, first, t))
		return false;
	for (uint32_t i = 0; i < BATCH; i++)
		pl_prefetch_write(first_of(b, t[i].hash));
	for (uint32_t i = 0; i < BATCH; i++)
		put_cuckoo(b, t[i].hash, t[i].value);
	return true;
}

/* ---- a log with an index ---- */

static bool put_log(struct baselines *b, uint32_t first)
{
	const uint64_t mask = BUCKETS * WAYS - 1;
	struct taken t[BATCH];

	if (!take(b, first, t))
		return false;
	for (uint32_t i = 0; i < BATCH; i++)
		pl_prefetch_write(&b->index[t[i].hash & mask]);
	for (uint32_t i = 0; i < BATCH; i++) {
		struct record *r = &b->log[b->logged % (LOG_BYTES / RECORD)];
		uint64_t at = t[i].hash & mask;

		while (b->index[at].key != t[i].hash && b->index[at].key != 0)
			at = (at + 1) & mask;
		memcpy(r->key, t[i].key, KEY_BYTES);
		r->value = t[i].value;
		r->length = KEY_BYTES;
		r->before = b->index[at].last;
		b->index[at] = (struct entry){ t[i].hash, ++b->logged };
	}
	return true;
}

/* ---- pathline ---- */

static void carry_out(void *arg, const struct pl_op *ops, size_t n)
{
	struct baselines *b = arg;

	pl_apply_ops(&b->apply, ops, n);
}

static bool translate(struct baselines *b, uint32_t first)
{
	static const struct pl_addr from = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } };

	for (uint32_t i = first; i < first + BATCH; i++)
		pl_translator_push(b->translator, b->now_ns, &from, 1000, b->datagrams + b->at[i],
			b->at[i + 1] - b->at[i]);
	pl_translator_done(b->translator);
	return true;
}

/* ---- measuring ---- */

static int timed(struct baselines *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	bool (*batch)(struct baselines *b, uint32_t first))
{
	const uint64_t start = pl_clock_cpu_ns();

	do {
		for (uint32_t i = 0; i < REPORTS; i += BATCH) {
			if (!batch(b, i))
				return -EBADMSG;
		}
		ret->items += REPORTS;
		ret->ns = pl_clock_cpu_ns() - start;
	} while (ret->ns < budget_ns);
	return b->lost == 0 ? 0 : -ENOSPC;
}

#define SUBJECT(name)                                                                              \
	static int run_##name(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)          \
	{                                                                                          \
		return timed(arg, budget_ns, ret, name);                                           \
	}

SUBJECT(cuckoo)
SUBJECT(put_log)

static int run_translate(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct baselines *b = arg;
	const struct pl_translator_counters *c = pl_translator_counters(b->translator);
	const uint64_t before = c->accepted;
	int r = timed(b, budget_ns, ret, translate);

	/* A figure for reports that were refused would mean nothing. */
	return r == 0 && c->accepted - before != ret->items ? -EBADMSG : r;
}

static int random_stores(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct baselines *b = arg;

	pl_bench_random_stores(&b->rng, b->other, b->used, budget_ns, ret);
	return 0;
}

static void clear(struct baselines *b, uint64_t bytes)
{
	memset(b->memory, 0, MEMORY_BYTES);
	b->used = bytes;
	b->logged = b->lost = 0;
}

static int one(
	struct pl_bench_ctx *ctx, struct baselines *b, const char *name, pl_bench_fn *subject)
{
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = "R3, random 64-byte stores",
		.subject = subject,
		.ceiling = random_stores,
		.arg = b };

	return pl_bench_compare(ctx, &c);
}

static int compare_translate(struct pl_bench_ctx *ctx, struct baselines *b)
{
	const struct pl_dta_store store = { .params = { .primitive = PL_KEY_WRITE,
						    .hash = PL_HASH_PATHLINE,
						    .seed = 1,
						    .key_write = { UINT64_C(8) << 20, 4, 1 } } };
	const struct pl_translator_config config = { .stores = &store, .n_stores = 1 };
	const struct pl_op_sink sink = { carry_out, NULL, b };
	int r = pl_store_bytes(&store.params, &b->store.bytes, NULL);

	clear(b, b->store.bytes);
	b->store.base = b->memory;
	b->apply = (struct pl_apply){ .stores = &b->store, .collectors = 1, .n_stores = 1 };
	if (r == 0)
		r = pl_translator_new(&b->translator, &config, &sink, NULL);
	if (r == 0)
		r = one(ctx, b, "baselines/translate", run_translate);
	pl_translator_free(b->translator);
	return r;
}

static int compare_all(struct pl_bench_ctx *ctx, struct baselines *b)
{
	int r;

	b->buckets = (void *)b->memory;
	clear(b, BUCKETS * sizeof(struct bucket));
	r = one(ctx, b, "baselines/cuckoo", run_cuckoo);
	b->log = (void *)b->memory;
	b->index = (void *)(b->memory + LOG_BYTES);
	clear(b, MEMORY_BYTES);
	if (r == 0)
		r = one(ctx, b, "baselines/log", run_put_log);
	return r == 0 ? compare_translate(ctx, b) : r;
}

static uint8_t *map(void)
{
	uint8_t *p = mmap(
		NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, MEMORY_BYTES, MADV_HUGEPAGE);
	memset(p, 0, MEMORY_BYTES);
	return p;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct baselines b = { .memory = map(), .other = map() };
	int r;

	pl_rng_seed(&b.rng, 1);
	r = b.memory == NULL || b.other == NULL ? -ENOMEM : make_datagrams(&b);
	if (r == 0)
		r = compare_all(ctx, &b);
	if (r < 0)
		pl_complain("benchmark baselines: %s", strerror(-r));
	if (b.memory != NULL)
		munmap(b.memory, MEMORY_BYTES);
	if (b.other != NULL)
		munmap(b.other, MEMORY_BYTES);
	free(b.datagrams);
	free(b.at);
	return r;
}

const struct pl_bench pl_bench_baselines = {
	.name = "baselines",
	.summary =
		"reports kept by the processor, in a cuckoo table and an indexed log, beside pathline, against random stores",
	.run = run,
};
