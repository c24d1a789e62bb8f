/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DTA datagrams in memory to operations, one thread: access, numbers, store, sizes, place, image;
 * the sink only counts what it is given. The ceiling is what nobody can leave out: a loop that
 * walks the same datagrams by their lengths, hashes each key and copies the data. Both are timed by
 * the thread's CPU clock; an item is a report. Each report is of another key out of a million
 * (postcards: a flow of five hops, one behind the other).
 *
 *   translate/key-write-1, -2   one or two copies of 8 bytes, a datagram for each report
 *   …-sequenced                 each numbered, of one reporter
 *   …-packed                    as many reports as fit 1400 bytes in a datagram
 *   …-to-memory                 operations carried out in a region of 64 MiB in this process
 *   …-to-frames                 RDMA WRITEs of an unreliable connection, with their ICRC, in
 *                               memory, as they would be sent
 *   translate/append            entries of 16 bytes into 16 lists, 16 written together
 *   translate/increment         Zipf-like keys, 64 increments at most in an addition
 *   translate/postcards         five hops to one write
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "base/hash.h"
#include "base/rng.h"
#include "dta/apply.h"
#include "dta/translator.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/uplink.h"

#define REPORTS      65536u
#define KEYS         1000000u
#define PACKED       35u /* of at most 40 bytes */
#define BATCH        64u
#define HOPS         5u
#define REGION_SLOTS (UINT64_C(4) << 20)

struct translate_bench {
	const struct variant *variant;
	uint8_t *memory;
	uint32_t *at; /* of datagram i; [datagrams] is the end */
	uint32_t datagrams;
	struct pl_translator *translator;
	struct pl_apply apply;
	struct pl_apply_store store;
	struct pl_bench_uplink uplink;
	uint64_t ops, now_ns;
};

enum sink {
	COUNTED,
	TO_MEMORY,
	TO_FRAMES,
};

struct variant {
	const char *name;
	struct pl_dta_store store;
	enum pl_dta_op op;
	bool packed, sequenced;
	enum sink sink;
};

/* ---- the datagrams ---- */

static struct pl_dta_report make_report(
	const struct variant *v, uint32_t i, struct pl_rng *rng, uint8_t key[8], uint8_t data[16])
{
	uint64_t k = pl_rng_below(rng, KEYS);
	struct pl_dta_report r = {
		.form = PL_DTA_PATHLINE,
		.op = v->op,
		.sequenced = v->sequenced,
		.seq = i,
		.key = key,
		.key_bytes = 8,
	};

	if (v->op == PL_DTA_INCREMENT) /* a share of 1/k to key k, about */
		k = (uint64_t)exp(pl_rng_unit(rng) * log(KEYS));
	if (v->op == PL_DTA_POSTCARD) {
		k = i / HOPS;
		r.hop = (uint8_t)(i % HOPS + 1);
		r.value = i;
	}
	r.increment = v->op == PL_DTA_INCREMENT ? 1500 : 0;
	memcpy(key, &k, 8);
	memset(data, (int)i, 16);
	if (v->op == PL_DTA_APPEND) {
		r.list = i % 16;
		r.key_bytes = 0;
		r.key = NULL;
	}
	if (v->op == PL_DTA_APPEND || v->op == PL_DTA_KEY_WRITE) {
		r.data = data;
		r.data_bytes = v->op == PL_DTA_APPEND ? 16 : 8;
	}
	return r;
}

/* -ENOMEM, -EBADMSG. */
static int make_datagrams(struct translate_bench *b, const struct variant *v)
{
	struct pl_build build;
	struct pl_rng rng;

	b->memory = malloc((size_t)REPORTS * 64);
	b->at = calloc(REPORTS + 1, sizeof(*b->at));
	if (b->memory == NULL || b->at == NULL)
		return -ENOMEM;
	build = pl_build(b->memory, (size_t)REPORTS * 64);
	pl_rng_seed(&rng, 1);
	b->datagrams = 0;
	for (uint32_t i = 0; i < REPORTS; i++) {
		uint8_t key[8], data[16];
		struct pl_dta_report r = make_report(v, i, &rng, key, data);

		if (i % (v->packed ? PACKED : 1) == 0)
			b->at[b->datagrams++] = (uint32_t)build.len;
		if (pl_dta_put(&build, &r) < 0)
			return -EBADMSG;
	}
	b->at[b->datagrams] = (uint32_t)build.len;
	return 0;
}

/* ---- what is measured ---- */

static void count(void *arg, const struct pl_op *ops, size_t n)
{
	struct translate_bench *b = arg;

	(void)ops;
	b->ops += n;
}

static void carry_out(void *arg, const struct pl_op *ops, size_t n)
{
	struct translate_bench *b = arg;

	b->ops += n;
	pl_apply_ops(&b->apply, ops, n);
}

static void give(void *arg, const struct pl_op *ops, size_t n)
{
	struct translate_bench *b = arg;

	b->ops += n;
	pl_uplink_ops(b->uplink.uplink, ops, n);
}

/* Behind each batch, as pathline translate does. */
static void finish_batch(struct translate_bench *b)
{
	pl_translator_done(b->translator);
	if (b->variant->sink == TO_FRAMES)
		(void)pl_bench_uplink_send(&b->uplink, b->now_ns, NULL);
}

static int translate(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	static const struct pl_addr from = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
	struct translate_bench *b = arg;
	const struct pl_translator_counters *c = pl_translator_counters(b->translator);
	const uint64_t before = c->accepted, start = pl_cpu_thread_ns();

	b->ops = b->uplink.made = 0;
	do {
		/* Numbers go on where the reporter was: a new one each time, by its port. */
		uint16_t port = (uint16_t)(b->now_ns >> 20);

		for (uint32_t i = 0; i < b->datagrams; i++) {
			pl_translator_push(b->translator, b->now_ns, &from, port,
				b->memory + b->at[i], b->at[i + 1] - b->at[i]);
			if (i % BATCH == BATCH - 1)
				finish_batch(b);
		}
		b->now_ns += 1u << 20;
		pl_translator_tick(b->translator, b->now_ns);
		finish_batch(b);
		ret->items += REPORTS;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	/* A figure for reports that were refused, or of which there is no frame, would mean
	 * nothing. */
	if (b->variant->sink == TO_FRAMES && b->uplink.made != b->ops)
		return -EBADMSG;
	return c->accepted - before == ret->items ? 0 : -EBADMSG;
}

/* What nobody can leave out: each report's limits found, its key hashed, its data copied. 0: it is
 * something else. */
static uint64_t walk(const struct variant *v, const uint8_t *p, uint32_t len, uint8_t *out)
{
	uint64_t sum = 1;

	while (len >= PL_DTA_HEADER_BYTES && p[0] == PL_DTA_MAGIC && p[1] == (uint8_t)v->op) {
		uint32_t n = PL_DTA_HEADER_BYTES + pl_be16(p + 6);
		const uint8_t *end = p + n;

		if (n < PL_DTA_HEADER_BYTES + 8 || n > len)
			return 0;
		if (v->op == PL_DTA_APPEND)
			memcpy(out, end - 16, 16);
		else if (v->op == PL_DTA_KEY_WRITE)
			sum += pl_hash(end - 16, 8, 1) | 1;
		else
			sum += pl_hash(end - 8, 8, 1) | 1;
		memcpy(out, end - 8, 8);
		p = end;
		len -= n;
	}
	return len == 0 ? sum : 0;
}

static int least(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const struct translate_bench *b = arg;
	const uint64_t start = pl_cpu_thread_ns();
	uint64_t empty = 0;
	static uint8_t out[16];

	do {
		for (uint32_t i = 0; i < b->datagrams; i++)
			empty += walk(b->variant, b->memory + b->at[i], b->at[i + 1] - b->at[i],
					 out) == 0;
		ret->items += REPORTS;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return empty == 0 ? 0 : -EBADMSG;
}

#define KEY_WRITE(n)                                                                               \
	{                                                                                          \
		.params = {                                                                        \
			.primitive = PL_KEY_WRITE,                                                 \
			.hash = PL_HASH_PATHLINE,                                                  \
			.seed = 1,                                                                 \
			.key_write = { .slots = REGION_SLOTS, .value_bytes = 8, .copies = (n) }    \
		}                                                                                  \
	}

#define APPEND                                                                                     \
	{                                                                                          \
		.params = {                                                                        \
			.primitive = PL_APPEND,                                                    \
			.hash = PL_HASH_PATHLINE,                                                  \
			.append = { .slots = 1 << 16,                                              \
				.lists = 16,                                                       \
				.entry_bytes = 16,                                                 \
				.batch_max = 16,                                                   \
				.sealed = 1 }                                                      \
		}                                                                                  \
	}

#define COUNTERS                                                                                   \
	{                                                                                          \
		.params = {                                                                        \
			.primitive = PL_COUNTERS,                                                  \
			.hash = PL_HASH_PATHLINE,                                                  \
			.seed = 1,                                                                 \
			.counters = { .width = 1 << 20, .rows = 4 }                                \
		}                                                                                  \
	}

#define POSTCARDS                                                                                  \
	{                                                                                          \
		.params = {                                                                        \
			.primitive = PL_POSTCARDS,                                                 \
			.hash = PL_HASH_PATHLINE,                                                  \
			.seed = 1,                                                                 \
			.postcards = { .chunks = 1 << 20, .hops = HOPS, .copies = 1 }              \
		}                                                                                  \
	}

#define CASE(name, store, op, sequenced, packed, sink)                                             \
	{                                                                                          \
		"translate/" name, store, PL_DTA_##op, packed, sequenced, sink                     \
	}

static const struct variant variants[] = {
	CASE("key-write-1", KEY_WRITE(1), KEY_WRITE, false, false, COUNTED),
	CASE("key-write-2", KEY_WRITE(2), KEY_WRITE, false, false, COUNTED),
	CASE("key-write-2-sequenced", KEY_WRITE(2), KEY_WRITE, true, false, COUNTED),
	CASE("key-write-2-packed", KEY_WRITE(2), KEY_WRITE, false, true, COUNTED),
	CASE("key-write-2-to-memory", KEY_WRITE(2), KEY_WRITE, false, false, TO_MEMORY),
	CASE("append", APPEND, APPEND, false, false, COUNTED),
	CASE("increment", COUNTERS, INCREMENT, false, false, COUNTED),
	CASE("postcards", POSTCARDS, POSTCARD, false, false, COUNTED),
	CASE("key-write-1-to-frames", KEY_WRITE(1), KEY_WRITE, false, false, TO_FRAMES),
	CASE("key-write-2-to-frames", KEY_WRITE(2), KEY_WRITE, false, false, TO_FRAMES),
	CASE("append-to-frames", APPEND, APPEND, false, false, TO_FRAMES),
	CASE("postcards-to-frames", POSTCARDS, POSTCARD, false, false, TO_FRAMES),
};

static int begin_sink(struct translate_bench *b, const struct variant *v)
{
	int r = pl_store_bytes(&v->store.params, &b->store.bytes, NULL);

	if (r < 0 || v->sink == COUNTED)
		return r;
	if (v->sink == TO_FRAMES)
		return pl_bench_uplink_begin(&b->uplink, b->store.bytes);
	b->store.base = aligned_alloc(64, b->store.bytes);
	if (b->store.base == NULL)
		return -ENOMEM;
	memset(b->store.base, 0, b->store.bytes);
	b->apply = (struct pl_apply){ .stores = &b->store, .collectors = 1, .n_stores = 1 };
	return 0;
}

static int measure(struct pl_bench_ctx *ctx, const struct variant *v)
{
	struct translate_bench b = { .variant = v, .now_ns = 1u << 20 };
	const struct pl_translator_config config = {
		.stores = &v->store, .n_stores = 1, .reporters = 1u << 14, .reporter_idle_ns = 1
	};
	static void (*const sinks[])(void *arg, const struct pl_op *ops,
		size_t n) = { [COUNTED] = count, [TO_MEMORY] = carry_out, [TO_FRAMES] = give };
	const struct pl_op_sink sink = { sinks[v->sink], NULL, &b };
	const struct pl_bench_case c = { .name = v->name,
		.ceiling_name = "hash and copy",
		.subject = translate,
		.ceiling = least,
		.arg = &b };
	int r = make_datagrams(&b, v);

	if (r == 0)
		r = begin_sink(&b, v);
	if (r == 0)
		r = pl_translator_new(&b.translator, &config, &sink, NULL);
	if (r == 0)
		r = pl_bench_compare(ctx, &c);
	if (r < 0)
		pl_complain("benchmark %s: %s", v->name, strerror(-r));
	pl_translator_free(b.translator);
	pl_bench_uplink_end(&b.uplink);
	free(b.store.base);
	free(b.memory);
	free(b.at);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]) && r == 0; i++)
		r = measure(ctx, &variants[i]);
	return r;
}

const struct pl_bench pl_bench_translate = {
	.name = "translate",
	.summary =
		"DTA datagrams in memory to operations on telemetry memory, against hashing and copying their contents",
	.run = run,
};
