/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver that all benchmarks share: runs in turn, medians, results as a table or JSON lines. */
#include "tests/bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/json.h"
#include "base/num.h"
#include "tests/bench/cpu.h"
#include "tests/bench/driver.h"

#define TIMES_MIN 100 /* for a 99th percentile */

static const struct pl_bench *const benches[] = {
#define PL_BENCH(id) &pl_bench_##id,
#include "tests/bench/benches.def"
#undef PL_BENCH
	NULL,
};

uint64_t pl_bench_size_bytes(const struct pl_bench_ctx *ctx, uint64_t fallback)
{
	return ctx->size_bytes != 0 ? ctx->size_bytes : fallback;
}

const char *pl_bench_program(void)
{
	const char *program = getenv("PATHLINE_PROGRAM");

	return program != NULL ? program : "pathline";
}

const char *pl_bench_broker(const struct pl_bench_ctx *ctx)
{
	return ctx->broker;
}

const char *pl_bench_records(const struct pl_bench_ctx *ctx)
{
	return ctx->records;
}

const char *pl_bench_question(const struct pl_bench_ctx *ctx)
{
	return ctx->question;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts v. */
static double median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), compare_double);
	return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct result {
	uint64_t items;
	double seconds, rate, ceiling_rate, ratio, ratio_min, ratio_max;
	double added_ns;               /* median of the pairs' differences */
	unsigned int pairs, discarded; /* that count, and that do not because processors moved */
	double pingpong_before_ns, pingpong_after_ns; /* NaN when there is one processor only */
};

static void json_number(struct pl_json *json, const char *key, double value)
{
	if (isnan(value))
		return;
	pl_json_key(json, key);
	pl_json_double(json, value);
}

static void print_jsonl(const struct pl_bench_case *c, const struct result *r)
{
	struct pl_json json;
	struct pl_buf out;

	pl_buf_init(&out);
	pl_json_init(&json, &out);
	pl_json_object(&json);
	pl_json_key(&json, "name");
	pl_json_str(&json, c->name);
	pl_json_key(&json, "items");
	pl_json_u64(&json, r->items);
	json_number(&json, "seconds", r->seconds);
	json_number(&json, "rate", r->rate);
	json_number(&json, "ns_per_item", 1e9 / r->rate);
	if (c->ceiling != NULL) {
		pl_json_key(&json, "ceiling_name");
		pl_json_str(&json, c->ceiling_name);
		json_number(&json, "ceiling_rate", r->ceiling_rate);
		json_number(&json, "ratio", r->ratio);
		json_number(&json, "ratio_min", r->ratio_min);
		json_number(&json, "ratio_max", r->ratio_max);
	}
	if (c->adds)
		json_number(&json, "added_ns", r->added_ns);
	pl_json_key(&json, "pairs");
	pl_json_u64(&json, r->pairs);
	pl_json_key(&json, "pairs_discarded");
	pl_json_u64(&json, r->discarded);
	if (c->lost != NULL) {
		pl_json_key(&json, "lost");
		pl_json_u64(&json, *c->lost);
	}
	json_number(&json, "pingpong_before_ns", r->pingpong_before_ns);
	json_number(&json, "pingpong_after_ns", r->pingpong_after_ns);
	pl_json_object_end(&json);
	pl_buf_chr(&out, '\n');
	fwrite(out.data, 1, out.len, stdout);
	pl_buf_done(&out);
}

static void print_table(
	struct pl_bench_ctx *ctx, const struct pl_bench_case *c, const struct result *r)
{
	char rate[32], ceiling[32];

	if (!ctx->header_done)
		printf("%-34s %9s %9s %9s %6s %13s  %s\n", "benchmark", "rate/s", "ns/item",
			"ceiling/s", "ratio", "(min-max)", "ceiling; ping-pong before/after");
	ctx->header_done = true;
	pl_format_count(rate, sizeof(rate), r->rate);
	printf("%-34s %9s %9.2f ", c->name, rate, 1e9 / r->rate);
	if (c->ceiling != NULL) {
		pl_format_count(ceiling, sizeof(ceiling), r->ceiling_rate);
		printf("%9s %6.3f (%.3f-%.3f)  %s", ceiling, r->ratio, r->ratio_min, r->ratio_max,
			c->ceiling_name);
	} else {
		printf("%9s %6s %13s  none", "", "", "");
	}
	if (c->adds)
		printf("; adds %.1f ns", r->added_ns);
	if (!isnan(r->pingpong_before_ns))
		printf("; %.0f/%.0f ns", r->pingpong_before_ns, r->pingpong_after_ns);
	if (c->lost != NULL)
		printf("; lost %" PRIu64, *c->lost);
	if (r->discarded > 0)
		printf("; %u pairs discarded", r->discarded);
	putchar('\n');
}

unsigned int pl_bench_pairs(const struct pl_bench_ctx *ctx)
{
	return ctx->pairs;
}

uint64_t pl_bench_run_ns(const struct pl_bench_ctx *ctx)
{
	return ctx->budget_ns;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of sorted times the one that so many per cent do not exceed. */
static uint64_t at_share(const struct pl_bench_times *t, unsigned int percent)
{
	return t->ns[(uint64_t)t->n * percent / 100];
}

static double micro(uint64_t ns)
{
	return (double)ns / 1e3;
}

static void print_times_jsonl(const struct pl_bench_times *t)
{
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{ "items", t->n },
		{ "median_ns", at_share(t, 50) },
		{ "p99_ns", at_share(t, 99) },
		{ "max_ns", t->ns[t->n - 1] },
		{ "lost", t->lost },
		{ "load_rate", (uint64_t)t->load_rate },
	};
	struct pl_json json;
	struct pl_buf out;

	pl_buf_init(&out);
	pl_json_init(&json, &out);
	pl_json_object(&json);
	pl_json_key(&json, "name");
	pl_json_str(&json, t->name);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		pl_json_key(&json, numbers[i].key);
		pl_json_u64(&json, numbers[i].value);
	}
	pl_json_object_end(&json);
	pl_buf_chr(&out, '\n');
	fwrite(out.data, 1, out.len, stdout);
	pl_buf_done(&out);
}

bool pl_bench_wanted(const struct pl_bench_ctx *ctx, const char *name)
{
	return ctx->only == NULL || strcmp(ctx->only, name) == 0;
}

void pl_bench_leave_out(struct pl_bench_ctx *ctx, const char *name, const char *why)
{
	ctx->cases++;
	pl_complain("benchmark %s is left out: %s", name, why);
}

int pl_bench_times(struct pl_bench_ctx *ctx, const struct pl_bench_times *t)
{
	char rate[32];

	if (!pl_bench_wanted(ctx, t->name))
		return 0;
	ctx->cases++;
	if (t->n < TIMES_MIN) {
		pl_complain("benchmark %s: %u times are too few to say anything", t->name, t->n);
		return -ENODATA;
	}
	qsort(t->ns, t->n, sizeof(*t->ns), compare_u64);
	if (ctx->jsonl) {
		print_times_jsonl(t);
	} else {
		printf("%-34s median %.0f us, 99%% %.0f us, most %.0f us; %u times, %u lost",
			t->name, micro(at_share(t, 50)), micro(at_share(t, 99)),
			micro(t->ns[t->n - 1]), t->n, t->lost);
		pl_format_count(rate, sizeof(rate), t->load_rate);
		if (t->load_rate > 0)
			printf(", beside it %s %s/s", rate, t->load_of);
		putchar('\n');
	}
	fflush(stdout);
	return 0;
}

/* One run, as a rate. */
static int measure(pl_bench_fn *fn, const struct pl_bench_ctx *ctx, void *arg, double *ret_rate,
	struct pl_bench_sample *total)
{
	struct pl_bench_sample s = { 0 };
	int r = fn(arg, ctx->budget_ns, &s);

	if (r < 0)
		return r;
	if (s.items == 0 || s.ns == 0)
		return -ENODATA;
	*ret_rate = (double)s.items * 1e9 / (double)s.ns;
	total->items += s.items;
	total->ns += s.ns;
	return 0;
}

#define AGREE 1.3 /* ping-pongs that differ by more are of different placements */

/* Whether the processors were equally far apart each time; with one there is nothing to move. */
static bool agree(const double *ns, unsigned int n)
{
	double low = ns[0], high = ns[0];

	for (unsigned int i = 1; i < n; i++) {
		low = ns[i] < low ? ns[i] : low;
		high = ns[i] > high ? ns[i] : high;
	}
	return !(high > low * AGREE);
}

/* One pair. 0 when it does not count, because the processors moved, or one had no time at all for
 * what ran on it. */
static int run_pair(const struct pl_bench_ctx *ctx, const struct pl_bench_case *c, double *ret_rate,
	double *ret_ceiling, struct pl_bench_sample *total)
{
	struct pl_bench_sample ceiling_total = { 0 };
	double ns[3] = { 0 };
	int r = 0;

	if (c->crosses_cores)
		ns[0] = pl_cpu_pingpong_ns();
	if (c->ceiling != NULL)
		r = measure(c->ceiling, ctx, c->arg, ret_ceiling, &ceiling_total);
	if (c->crosses_cores)
		ns[1] = pl_cpu_pingpong_ns();
	if (r == 0)
		r = measure(c->subject, ctx, c->arg, ret_rate, total);
	if (r == -ENODATA && c->crosses_cores)
		return 0;
	if (r < 0)
		return r;
	if (!c->crosses_cores)
		return 1;
	ns[2] = pl_cpu_pingpong_ns();
	return agree(ns, 3);
}

/* Until the case is warm, or given up. */
static int warm_up(const struct pl_bench_ctx *ctx, const struct pl_bench_case *c, uint64_t until_ns)
{
	int r = 0;

	for (uint64_t items = 0; r == 0 && items < c->warm_items;) {
		struct pl_bench_sample sample = { 0 };

		r = c->subject(c->arg, pl_bench_run_ns(ctx), &sample);
		if (r == 0 && sample.items == 0 && !c->crosses_cores)
			r = -ENODATA;
		items += sample.items;
		if (pl_clock_mono_ns() >= until_ns)
			break;
	}
	return r;
}

/* When a case that still lacks pairs is given up. */
static uint64_t patience_ends_ns(const struct pl_bench_ctx *ctx, const struct pl_bench_case *c)
{
	if (!c->crosses_cores)
		return UINT64_MAX;
	return pl_clock_mono_ns() + PL_BENCH_PATIENCE_SECONDS * UINT64_C(1000000000) +
	       UINT64_C(2) * PL_BENCH_PATIENCE_TIMES * ctx->pairs * ctx->budget_ns;
}

static int lacks(struct pl_bench_ctx *ctx, const char *name, unsigned int pairs, unsigned int tries)
{
	pl_complain("benchmark %s: the processors moved or had no time in all but %u of %u pairs",
		name, pairs, tries);
	if (ctx->lacking.len > 0)
		pl_buf_str(&ctx->lacking, ", ");
	pl_buf_str(&ctx->lacking, name);
	return 0;
}

int pl_bench_compare(struct pl_bench_ctx *ctx, const struct pl_bench_case *c)
{
	const uint64_t until_ns = patience_ends_ns(ctx, c);
	struct pl_bench_sample total = { 0 };
	static double rates[PL_BENCH_PAIRS_MAX], ceilings[PL_BENCH_PAIRS_MAX],
		ratios[PL_BENCH_PAIRS_MAX], added[PL_BENCH_PAIRS_MAX];
	struct result res = { 0 };
	unsigned int n = 0, tries = 0;
	int r;

	if (!pl_bench_wanted(ctx, c->name))
		return 0;
	ctx->cases++;
	r = warm_up(ctx, c, until_ns);
	if (r < 0)
		goto fail;
	res.pingpong_before_ns = pl_cpu_pingpong_ns();
	while (n < ctx->pairs && tries < 3 * ctx->pairs && pl_clock_mono_ns() < until_ns) {
		tries++;
		r = run_pair(ctx, c, &rates[n], &ceilings[n], &total);
		if (r < 0)
			goto fail;
		if (r > 0 && c->ceiling != NULL) {
			ratios[n] = rates[n] / ceilings[n];
			added[n] = 1e9 / rates[n] - 1e9 / ceilings[n];
		}
		n += r > 0;
	}
	if (n < PL_BENCH_PAIRS_MIN)
		return lacks(ctx, c->name, n, tries);
	res.pairs = n;
	res.discarded = tries - n;
	res.pingpong_after_ns = pl_cpu_pingpong_ns();
	res.items = total.items;
	res.seconds = (double)total.ns / 1e9;
	res.rate = median(rates, n);
	if (c->ceiling != NULL) {
		res.added_ns = median(added, n);
		res.ceiling_rate = median(ceilings, n);
		res.ratio = median(ratios, n);
		res.ratio_min = ratios[0];
		res.ratio_max = ratios[n - 1];
	}
	if (ctx->jsonl)
		print_jsonl(c, &res);
	else
		print_table(ctx, c, &res);
	fflush(stdout);
	return 0;
fail:
	pl_complain("benchmark %s: %s", c->name, strerror(-r));
	return r;
}

const struct pl_bench *pl_bench_find(const char *name)
{
	const size_t len = strcspn(name, "/");

	for (size_t i = 0; benches[i] != NULL; i++) {
		if (strlen(benches[i]->name) == len && strncmp(benches[i]->name, name, len) == 0)
			return benches[i];
	}
	return NULL;
}

const char *pl_bench_nearest(const char *name)
{
	const char *names[sizeof(benches) / sizeof(benches[0])];
	char text[64];
	size_t n = 0;

	for (; benches[n] != NULL; n++)
		names[n] = benches[n]->name;
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(name, "/"), name);
	return pl_nearest(text, names, n);
}

void pl_bench_list(void)
{
	for (size_t i = 0; benches[i] != NULL; i++)
		printf("%-16s %s\n", benches[i]->name, benches[i]->summary);
}

int pl_bench_run(struct pl_bench_ctx *ctx, const char *name)
{
	const struct pl_bench *bench = pl_bench_find(name);
	int r;

	if (bench == NULL)
		return -ENOENT;
	ctx->only = strchr(name, '/') != NULL ? name : NULL;
	ctx->cases = 0;
	pl_buf_init(&ctx->lacking);
	r = bench->run(ctx);
	if (r == 0 && ctx->only != NULL && ctx->cases == 0) {
		pl_complain("benchmark %s has no case '%s'; without a case it measures all",
			bench->name, name);
		r = -ENOENT;
	}
	if (ctx->lacking.len > 0) {
		pl_complain(
			"benchmark %s has no result for %.*s: run it again on a quieter machine",
			bench->name, (int)ctx->lacking.len, (const char *)ctx->lacking.data);
		ctx->lacked = true;
	}
	pl_buf_done(&ctx->lacking);
	return r;
}

int pl_bench_run_all(struct pl_bench_ctx *ctx)
{
	int first = 0;

	for (size_t i = 0; benches[i] != NULL; i++) {
		int r = pl_bench_run(ctx, benches[i]->name);

		first = first == 0 ? r : first;
	}
	return first;
}
