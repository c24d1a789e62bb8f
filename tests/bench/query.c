/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queries over packet records that lie in memory, one thread, in batches of 1024 as a run takes
 * them. The ceiling reads one word of every record. least-…: against the least program that gives the
 * same numbers, tables of keys and counts without windows, limits and seed.
 * sonata: each batch goes to the eleven queries of Sonata (lang/builtins.def), their windows of a
 * second and longer, which stay open. asked: records of a file and a question of the caller's. The records are those of 200 000 flows, some
 * much more frequent than others, each SYN one of 40 packets; --size says how much of them there is.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/complain.h"
#include "base/hash.h"
#include "base/prefetch.h"
#include "base/rng.h"
#include "lang/builtin.h"
#include "query/query.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"

#define FLOWS       200000
#define ALL         "packets TUMBLE(ts, 1h)"

#define RUNS_MAX    11
#define LEAST_SLOTS 4096u /* four times as many as there are destinations */
#define FLOW_BITS   19    /* of slots, at least twice as many as there are flows */
#define FLOW_BYTES  (sizeof(struct least_flow) << FLOW_BITS)
#define KEY_BYTES   offsetof(struct least_flow, packets)
#define BLOCK       64u
#define LARGE_PAGE  ((size_t)2 << 20)
#define INPUTS_MAX  2

/* What the least program knows of a flow, or of a pair of addresses. */
struct least_flow {
	struct pl_addr src, dst;
	uint16_t sport, dport;
	uint32_t proto;
	uint64_t packets, bytes;
	uint64_t pad; /* a line of the cache each */
};

/* A file of the caller's: records of 64 bytes in the order of time. */
struct input {
	struct pl_pkt64 *records; /* or struct pl_dns64 */
	uint32_t n;
	enum pl_flat_kind kind;
};

_Static_assert(sizeof(struct pl_pkt64) == sizeof(struct pl_dns64) &&
		       offsetof(struct pl_pkt64, ts_ns) == offsetof(struct pl_dns64, ts_ns),
	"records of a file are as long as those of another, and begin with their time");

struct query_bench {
	struct pl_pkt64 *records;
	uint32_t n;
	struct input inputs[INPUTS_MAX]; /* of the caller's; the first one's are `records` */
	uint32_t n_inputs;
	struct pl_query *queries[RUNS_MAX];
	struct pl_query_run *runs[RUNS_MAX];
	uint32_t n_runs;
	struct {
		struct pl_addr key;
		uint64_t count;
	} least[LEAST_SLOTS];
	struct least_flow *flows; /* 1 << FLOW_BITS */
	uint64_t rows, lost;
};

static void fill(struct query_bench *b)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, 64);
	for (uint32_t i = 0; i < b->n; i++) {
		/* The share of a flow falls with its number: the square of a uniform one. */
		const double u = pl_rng_unit(&rng);
		const uint32_t flow = (uint32_t)(u * u * FLOWS);
		const uint8_t src[4] = { 10, (uint8_t)(flow >> 16), (uint8_t)(flow >> 8),
			(uint8_t)flow };
		const uint8_t dst[4] = { 192, 168, (uint8_t)(flow % 4), (uint8_t)(flow % 251) };

		b->records[i] = (struct pl_pkt64){
			.ts_ns = UINT64_C(1800000000000000000) + i * UINT64_C(100),
			.src = pl_addr_v4(src),
			.dst = pl_addr_v4(dst),
			.sport = (uint16_t)(1024 + flow % 60000),
			.dport = flow % 3 == 0 ? 80 : 443,
			.proto = flow % 10 == 0 ? 17 : 6,
			.tcp_flags = pl_rng_below(&rng, 40) == 0 ? 0x02 : 0x10,
			.wire_len = (uint16_t)(60 + pl_rng_below(&rng, 1440)),
		};
	}
}

static void count(void *arg, const struct pl_query_row *row)
{
	struct query_bench *b = arg;

	(void)row;
	b->rows++;
}

/* What was left out for want of room, or came too late. */
static uint64_t lost(const struct query_bench *b)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < b->n_runs; i++) {
		const struct pl_query_stats *s = pl_query_run_stats(b->runs[i]);

		sum += s->groups_refused + s->distinct_refused + s->late;
	}
	return sum;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct query_bench *b = arg;
	uint64_t start = pl_cpu_thread_ns();

	*ret = (struct pl_bench_sample){ 0 };
	do {
		for (uint32_t at = 0; at < b->n; at += PL_QUERY_BATCH) {
			const uint32_t n = b->n - at < PL_QUERY_BATCH ? b->n - at : PL_QUERY_BATCH;

			for (uint32_t i = 0; i < b->n_runs; i++)
				pl_query_feed(b->runs[i], PL_FLAT_PKT64, b->records + at, n, 0);
		}
		ret->items += b->n;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	b->lost = lost(b);
	return 0;
}

static void count_least(struct query_bench *b, const struct pl_addr *key)
{
	uint64_t words[2];
	uint32_t i;

	memcpy(words, key, sizeof(words));
	i = (uint32_t)(((words[0] ^ words[1]) * UINT64_C(0x9e3779b97f4a7c15)) >> 52);
	while (b->least[i].count != 0 && memcmp(&b->least[i].key, key, sizeof(*key)) != 0)
		i = (i + 1) % LEAST_SLOTS;
	b->least[i].key = *key;
	b->least[i].count++;
}

static int least_count(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct query_bench *b = arg;
	uint64_t start = pl_cpu_thread_ns();

	*ret = (struct pl_bench_sample){ 0 };
	do {
		for (uint32_t i = 0; i < b->n; i++)
			count_least(b, &b->records[i].dst);
		ret->items += b->n;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

/* The key of a record, all of it or its addresses, and where to look for it first. */
static uint32_t key_of(const struct pl_pkt64 *p, bool all, struct least_flow *ret)
{
	uint64_t words[KEY_BYTES / 8], hash = 0;

	ret->src = p->src;
	ret->dst = p->dst;
	ret->sport = all ? p->sport : 0;
	ret->dport = all ? p->dport : 0;
	ret->proto = all ? p->proto : 0;
	memcpy(words, ret, KEY_BYTES);
	for (size_t k = 0; k < KEY_BYTES / 8; k++)
		hash = pl_hash_mix(hash, words[k]);
	return (uint32_t)(hash >> (64 - FLOW_BITS));
}

static struct least_flow *find_least(
	struct query_bench *b, const struct least_flow *key, uint32_t i)
{
	while (b->flows[i].packets != 0 && memcmp(&b->flows[i], key, KEY_BYTES) != 0)
		i = (i + 1) & ((1u << FLOW_BITS) - 1);
	memcpy(&b->flows[i], key, KEY_BYTES);
	return &b->flows[i];
}

/* Places of a block are fetched before the first of them is looked at: without that the least program
 * waits for memory, and is the slower one. */
static inline __attribute__((always_inline)) void step_block(
	struct query_bench *b, const struct pl_pkt64 *records, uint32_t n, bool all)
{
	struct least_flow keys[BLOCK];
	uint32_t at[BLOCK];

	for (uint32_t k = 0; k < n; k++) {
		at[k] = key_of(&records[k], all, &keys[k]);
		pl_prefetch(&b->flows[at[k]]);
	}
	for (uint32_t k = 0; k < n; k++) {
		struct least_flow *flow = find_least(b, &keys[k], at[k]);

		if (flow->packets++ == 0 && !all)
			count_least(b, &records[k].dst);
		flow->bytes += records[k].wire_len;
	}
}

static inline __attribute__((always_inline)) int least_by_key(
	struct query_bench *b, bool all, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	uint64_t start = pl_cpu_thread_ns();

	*ret = (struct pl_bench_sample){ 0 };
	do {
		for (uint32_t i = 0; i < b->n; i += BLOCK)
			step_block(b, b->records + i, b->n - i < BLOCK ? b->n - i : BLOCK, all);
		ret->items += b->n;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int least_distinct(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return least_by_key(arg, false, budget_ns, ret);
}

static int least_flows(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return least_by_key(arg, true, budget_ns, ret);
}

static int ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct query_bench *b = arg;
	uint64_t start = pl_cpu_thread_ns();

	*ret = (struct pl_bench_sample){ 0 };
	do {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < b->n; i++)
			sum += b->records[i].tcp_flags;
		__asm__ volatile("" : : "r"(sum) : "memory");
		ret->items += b->n;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int open_run(struct query_bench *b, const char *name, const char *text)
{
	const struct pl_query_config config = { .max_groups = 2 * FLOWS,
		.max_distinct = 4 * FLOWS };
	struct pl_diag diag = { 0 };
	const uint32_t i = b->n_runs++;
	int r = pl_query_parse(&b->queries[i], text, &diag);

	if (r == 0)
		r = pl_query_run_new(&b->runs[i], b->queries[i], &config, count, b, &diag);
	if (r < 0)
		pl_complain("benchmark %s: %s", name, diag.text);
	return r;
}

static void close_runs(struct query_bench *b)
{
	for (uint32_t i = 0; i < b->n_runs; i++) {
		pl_query_run_free(b->runs[i]);
		pl_query_free(b->queries[i]);
		b->runs[i] = NULL;
		b->queries[i] = NULL;
	}
	b->n_runs = 0;
}

/* against: the least program; NULL: reading the records. */
static int compare(
	struct pl_bench_ctx *ctx, struct query_bench *b, const char *name, pl_bench_fn *against)
{
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = against != NULL ? "the least that counts" : "read a byte of each",
		.subject = subject,
		.ceiling = against != NULL ? against : ceiling,
		.arg = b,
		.warm_items = b->n,
		.lost = &b->lost };

	return pl_bench_compare(ctx, &c);
}

static int one(struct pl_bench_ctx *ctx, struct query_bench *b, const char *name, const char *text,
	pl_bench_fn *against)
{
	int r;

	if (!pl_bench_wanted(ctx, name))
		return 0;
	memset(b->least, 0, sizeof(b->least));
	memset(b->flows, 0, FLOW_BYTES);
	r = open_run(b, name, text);
	if (r == 0)
		r = compare(ctx, b, name, against);
	close_runs(b);
	return r;
}

/* All of Sonata's at once. */
static int sonata(struct pl_bench_ctx *ctx, struct query_bench *b)
{
	static const char name[] = "query/sonata";
	const struct pl_query_builtin *builtins;
	const uint32_t n = pl_query_builtins(&builtins);
	int r = 0;

	if (!pl_bench_wanted(ctx, name))
		return 0;
	for (uint32_t i = 0; r == 0 && i < RUNS_MAX && i < n; i++) {
		struct pl_diag diag = { 0 };
		struct pl_buf text;

		pl_buf_init(&text);
		r = pl_query_builtin_text(&text, builtins[i].name, &diag);
		pl_buf_chr(&text, '\0');
		if (r == 0)
			r = open_run(b, name, text.data);
		pl_buf_done(&text);
	}
	if (r == 0)
		r = compare(ctx, b, name, NULL);
	close_runs(b);
	return r;
}

/* ---- a question of the caller's ---- */

/* The input whose next records are the earliest; NULL: all were fed. */
static struct input *next_input(struct query_bench *b, const uint32_t at[INPUTS_MAX])
{
	struct input *next = NULL;
	uint64_t ts_ns = 0;

	for (uint32_t i = 0; i < b->n_inputs; i++) {
		struct input *in = &b->inputs[i];

		if (at[i] == in->n || (next != NULL && in->records[at[i]].ts_ns >= ts_ns))
			continue;
		next = in;
		ts_ns = in->records[at[i]].ts_ns;
	}
	return next;
}

/* Of several streams a batch of each in turn, by their times. */
static void feed_all(struct query_bench *b)
{
	const uint32_t most = b->n_inputs == 1 ? b->n : PL_QUERY_BATCH;
	uint32_t at[INPUTS_MAX] = { 0 };
	struct input *in;

	while ((in = next_input(b, at)) != NULL) {
		uint32_t *from = &at[in - b->inputs];
		const uint32_t n = in->n - *from < most ? in->n - *from : most;

		pl_query_feed(b->runs[0], in->kind, in->records + *from, n, 0);
		*from += n;
	}
}

static int answer(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct query_bench *b = arg;
	int r = 0;

	*ret = (struct pl_bench_sample){ 0 };
	do {
		struct pl_diag diag = { 0 };
		uint64_t start;

		r = pl_query_run_new(&b->runs[0], b->queries[0], NULL, count, b, &diag);
		if (r < 0)
			break;
		start = pl_cpu_thread_ns();
		feed_all(b);
		pl_query_finish(b->runs[0]);
		ret->ns += pl_cpu_thread_ns() - start;
		for (uint32_t i = 0; i < b->n_inputs; i++)
			ret->items += b->inputs[i].n;
		b->lost = lost(b);
		pl_query_run_free(b->runs[0]);
		b->runs[0] = NULL;
	} while (ret->ns < budget_ns);
	return r;
}

static int read_input(struct input *in, const char *path)
{
	const char *end = strrchr(path, '.');
	FILE *f = fopen(path, "re");
	int r = 0;

	in->kind = end != NULL && strcmp(end, ".dns64") == 0 ? PL_FLAT_DNS64 : PL_FLAT_PKT64;
	if (f == NULL) {
		r = -errno;
	} else {
		fseek(f, 0, SEEK_END);
		in->n = (uint32_t)((size_t)ftell(f) / sizeof(*in->records));
		rewind(f);
		in->records = aligned_alloc(64, (size_t)in->n * sizeof(*in->records));
		if (in->records == NULL)
			r = -ENOMEM;
		else if (in->n == 0 || fread(in->records, sizeof(*in->records), in->n, f) != in->n)
			r = -ENODATA;
		fclose(f);
	}
	if (r < 0)
		pl_complain("benchmark query/asked: %s: %s", path,
			r == -ENODATA ? "no records of pkt64 or dns64" : strerror(-r));
	return r;
}

/* "FILE" or "FILE,FILE" */
static int read_records(struct query_bench *b, const char *paths)
{
	char *copy = strdup(paths), *rest = copy, *path;
	int r = copy != NULL ? 0 : -ENOMEM;

	while (r == 0 && b->n_inputs < INPUTS_MAX && (path = strsep(&rest, ",")) != NULL)
		r = read_input(&b->inputs[b->n_inputs++], path);
	if (r == 0 && rest != NULL) {
		pl_complain("benchmark query/asked: %d files of records at most", INPUTS_MAX);
		r = -EINVAL;
	}
	free(copy);
	b->records = b->inputs[0].records;
	b->n = b->inputs[0].n;
	return r;
}

/* An answer from the first record to the end of its last window, for each run. */
static int asked(struct pl_bench_ctx *ctx, struct query_bench *b)
{
	const struct pl_bench_case c = { .name = "query/asked",
		.ceiling_name = "read a byte of each",
		.subject = answer,
		.ceiling = ceiling,
		.arg = b,
		.lost = &b->lost };
	struct pl_diag diag = { 0 };
	struct pl_buf text;
	int r = read_records(b, pl_bench_records(ctx));

	pl_buf_init(&text);
	/* A name, or the text itself. */
	if (r == 0 && pl_query_builtin_text(&text, pl_bench_question(ctx), &diag) < 0)
		pl_buf_str(&text, pl_bench_question(ctx));
	if (r == 0) {
		b->n_runs = 1;
		r = pl_query_parse(&b->queries[0], text.data, &diag);
		if (r < 0)
			pl_complain("benchmark query/asked: %s", diag.text);
	}
	if (r == 0)
		r = pl_bench_compare(ctx, &c);
	close_runs(b);
	pl_buf_done(&text);
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static const struct {
		const char *name, *text;
		pl_bench_fn *against;
	} cases[] = {
		{ "query/filter", "SELECT count(*) FROM " ALL " WHERE syn_only and ttl = 1" },
		{ "query/filter-syn", "SELECT count(*) FROM " ALL " WHERE syn_only" },
		{ "query/new-conns",
			"SELECT dst, count(*) AS n FROM " ALL " WHERE syn_only GROUP BY dst" },
		{ "query/count-by-dst", "SELECT dst, count(*) AS n FROM " ALL " GROUP BY dst" },
		{ "query/count-by-port",
			"SELECT dport, count(*) AS n FROM " ALL " GROUP BY dport" },
		{ "query/sum-by-dst",
			"SELECT dst, count(*), sum(wire_len) FROM " ALL " GROUP BY dst" },
		{ "query/distinct",
			"SELECT dst, count(distinct src) AS n FROM " ALL " GROUP BY dst" },
		{ "query/5-tuple",
			"SELECT src, dst, sport, dport, proto, count(*), sum(wire_len) FROM " ALL
			" GROUP BY src, dst, sport, dport, proto" },
		{ "query/least-count-by-dst", "SELECT dst, count(*) AS n FROM " ALL " GROUP BY dst",
			least_count },
		{ "query/least-distinct",
			"SELECT dst, count(distinct src) AS n FROM " ALL " GROUP BY dst",
			least_distinct },
		{ "query/least-5-tuple",
			"SELECT src, dst, sport, dport, proto, count(*), sum(wire_len) FROM " ALL
			" GROUP BY src, dst, sport, dport, proto",
			least_flows },
	};
	static struct query_bench b;
	int r = 0;

	if (pl_bench_records(ctx) != NULL) {
		r = asked(ctx, &b);
		for (uint32_t i = 0; i < b.n_inputs; i++)
			free(b.inputs[i].records);
		return r;
	}
	b.n = (uint32_t)(pl_bench_size_bytes(ctx, UINT64_C(64) << 20) / sizeof(*b.records));
	b.records = aligned_alloc(64, (size_t)b.n * sizeof(*b.records));
	b.flows = aligned_alloc(LARGE_PAGE, FLOW_BYTES);
	if (b.flows != NULL)
		(void)madvise(b.flows, FLOW_BYTES, MADV_HUGEPAGE);
	if (b.records == NULL || b.flows == NULL) {
		free(b.records);
		free(b.flows);
		return -ENOMEM;
	}
	fill(&b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && r == 0; i++)
		r = one(ctx, &b, cases[i].name, cases[i].text, cases[i].against);
	if (r == 0)
		r = sonata(ctx, &b);
	free(b.records);
	free(b.flows);
	return r;
}

const struct pl_bench pl_bench_query = {
	.name = "query",
	.summary = "queries over records of packets in memory, against reading the records",
	.run = run,
};
