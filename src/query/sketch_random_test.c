/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Aggregates that random_test.c leaves out, of random records: stddev, hist, and the approximate
 * ones within the error that they promise, each against all values of the group, kept in an array;
 * in windows that are tumbling, made of panes, or sessions. EMIT FIRST against counts kept record
 * by record. usage: sketch_random_test [SEED|today [ROUNDS]]
 */
#include <math.h>

#include "base/rng.h"
#include "base/test.h"
#include "query/aggregate.h"
#include "query/query.h"

#define RECORDS 4000
#define GROUPS  4
#define TOP     4

static struct pl_rng rng;
static struct pl_pkt64 records[RECORDS];
static uint64_t values[RECORDS]; /* of a group in a window, in order */
static unsigned int wrong[6], compared;

enum { STDDEV, QUANTILE, DISTINCT, TOPK, HIST, COUNT };

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The values of the group in [start, end), in order. */
static unsigned int collect(uint64_t group, int64_t start, int64_t end, bool windowed)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < RECORDS; i++) {
		const int64_t ts = (int64_t)records[i].ts_ns;

		if (records[i].dport == group && (!windowed || (ts >= start && ts < end)))
			values[n++] = records[i].tcp_seq;
	}
	qsort(values, n, sizeof(*values), by_value);
	return n;
}

static bool stddev_fits(double got, unsigned int n)
{
	long double mean = 0, squares = 0;

	for (unsigned int i = 0; i < n; i++)
		mean += (long double)values[i] / n;
	for (unsigned int i = 0; i < n; i++)
		squares += (values[i] - mean) * (values[i] - mean) / n;
	return fabsl(got - sqrtl(squares)) <= 1e-9L * sqrtl(squares) + 1e-6L;
}

/* Within 1/32 of the value of this rank. */
static bool quantile_fits(uint64_t got, double q, unsigned int n)
{
	const uint64_t exact = values[(unsigned int)ceil(q * n) - 1];
	const uint64_t off = got > exact ? got - exact : exact - got;

	return exact < 64 ? off == 0 : off * 32 <= exact;
}

static unsigned int count_distinct(unsigned int n)
{
	unsigned int distinct = 0;

	for (unsigned int i = 0; i < n; i++)
		distinct += i == 0 || values[i] != values[i - 1];
	return distinct;
}

static uint64_t count_within(uint64_t from, uint64_t to, unsigned int n)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < n; i++)
		count += values[i] >= from && values[i] <= to;
	return count;
}

/* Counts are at most `error` too great, and all values that are more than a share of one in 64 of
 * the records are there when there are no more than are asked for. */
static bool topk_fits(const struct pl_query_value *v, unsigned int n)
{
	unsigned int frequent = 0, found = 0;

	if (v->list.n > TOP)
		return false;
	for (uint32_t i = 0; i < v->list.n; i++) {
		const struct pl_query_item *item = &v->list.items[i];
		const uint64_t exact = count_within(item->value.u, item->value.u, n);

		if (item->count < exact || item->count - item->error > exact)
			return false;
		found += exact > n / 16;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (i == 0 || values[i] != values[i - 1])
			frequent += count_within(values[i], values[i], n) > n / 16;
	}
	return found == (frequent < TOP ? frequent : TOP);
}

static bool hist_fits(const struct pl_query_value *v, unsigned int n)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < v->list.n; i++) {
		const uint64_t low = v->list.items[i].value.u;

		if (v->list.items[i].count != count_within(low, low == 0 ? 0 : 2 * low - 1, n))
			return false;
		total += v->list.items[i].count;
	}
	return total == n;
}

static void sink(void *arg, const struct pl_query_row *row)
{
	const unsigned int n = collect(row->values[0].u, row->start_ns, row->end_ns, row->windowed);
	const struct pl_query_value *v = &row->values[1];
	unsigned int distinct = count_distinct(n);
	bool fits[6];

	(void)arg;
	if (n == 0) {
		wrong[COUNT]++;
		return;
	}
	fits[STDDEV] = stddev_fits(v[STDDEV].d, n);
	fits[QUANTILE] = quantile_fits(v[QUANTILE].u, 0.9, n);
	/* Six standard errors of 3.3 %: less than one of 10^8 is further off. */
	fits[DISTINCT] = fabs((double)v[DISTINCT].u - distinct) <= 0.198 * distinct + 1;
	fits[TOPK] = topk_fits(&v[TOPK], n);
	fits[HIST] = hist_fits(&v[HIST], n);
	fits[COUNT] = v[COUNT].u == n;
	for (int i = 0; i < 6; i++)
		wrong[i] += !fits[i];
	compared++;
}

static void make_records(void)
{
	const unsigned int kind = below(4);
	uint64_t ts = 1000000;

	for (unsigned int i = 0; i < RECORDS; i++) {
		/* Every 500 records a second without any. */
		ts += i % 500 == 499 ? 1000000000 : below(2000000);
		records[i] = (struct pl_pkt64){ .ts_ns = ts, .dport = (uint16_t)below(GROUPS) };
		records[i].tcp_seq = kind == 0   ? (uint32_t)pl_rng_u64(&rng)
				     : kind == 1 ? below(3) == 0 ? below(100000) : below(5)
				     : kind == 2 ? below(1 + below(1000))
						 : 7;
	}
}

static void run(const char *text, pl_query_sink *to, void *arg, unsigned int step)
{
	const struct pl_query_config config = {
		.max_groups = 1024, .seed = pl_rng_u64(&rng), .lateness_ns = PL_QUERY_NO_LATENESS
	};
	struct pl_diag diag = { 0 };
	struct pl_query *query = NULL;
	struct pl_query_run *run = NULL;

	if (!ok(pl_query_parse(&query, text, &diag) == 0, "%s", text)) {
		printf("# %u: %s\n", diag.column, diag.text);
		return;
	}
	if (pl_query_run_new(&run, query, &config, to, arg, NULL) == 0) {
		for (unsigned int i = 0; i < RECORDS; i += step)
			pl_query_feed(run, PL_FLAT_PKT64, &records[i],
				i + step < RECORDS ? step : RECORDS - i, 0);
		pl_query_finish(run);
	}
	pl_query_run_free(run);
	pl_query_free(query);
}

#define ITEMS                                                                                      \
	"SELECT dport, stddev(tcp_seq), quantile(tcp_seq, 0.9), approx_distinct(tcp_seq), "        \
	"topk(tcp_seq, 4), hist(tcp_seq), count(*) FROM packets"

static void test_aggregates(unsigned int rounds)
{
	static const char *const texts[] = { ITEMS " GROUP BY dport",
		ITEMS " TUMBLE(ts, 700ms) GROUP BY dport",
		ITEMS " HOP(ts, 900ms, 300ms) GROUP BY dport",
		ITEMS " SESSION(ts, 500ms) GROUP BY dport" };

	for (unsigned int round = 0; round < rounds; round++) {
		make_records();
		run(texts[round % 4], sink, NULL, 1 + below(600));
	}
	eq(wrong[STDDEV], 0, "stddev to nine digits");
	eq(wrong[QUANTILE], 0, "quantile within 1/32");
	eq(wrong[DISTINCT], 0, "approx_distinct within six standard errors");
	eq(wrong[TOPK], 0, "topk within its errors, with all frequent values");
	eq(wrong[HIST], 0, "hist exactly");
	eq(wrong[COUNT], 0, "count exactly");
	ok(compared > 200, "%u groups compared", compared);
}

/* ---- first crossings ---- */

#define THRESHOLD 20

struct crossings {
	unsigned int first, final, early, again;
	int64_t crossed[GROUPS]; /* start of the window in which the group crossed last */
};

static void crossing_sink(void *arg, const struct pl_query_row *row)
{
	struct crossings *c = arg;
	const uint64_t group = row->values[0].u;

	if (row->final) {
		c->final++;
		/* It was told before, in the same window. */
		c->early += c->crossed[group] != row->start_ns;
		return;
	}
	c->first++;
	/* Fed one by one, it is told at the record that makes it true. */
	c->early += row->values[1].u != THRESHOLD;
	c->again += c->crossed[group] == row->start_ns;
	c->crossed[group] = row->start_ns;
}

static void test_first(void)
{
	struct crossings c = { .crossed = { -1, -1, -1, -1 } };
	unsigned int want = 0;
	int64_t last = 0;

	make_records();
	run("SELECT dport, count(*) AS n FROM packets TUMBLE(ts, 100ms) GROUP BY dport "
	    "HAVING n >= 20 EMIT FIRST",
		crossing_sink, &c, 1);
	last = (int64_t)records[RECORDS - 1].ts_ns;
	for (int64_t start = 0; start <= last; start += 100000000) {
		for (uint64_t group = 0; group < GROUPS; group++)
			want += collect(group, start, start + 100000000, true) >= THRESHOLD;
	}
	eq(c.first, want, "each group that crosses is told once in its window");
	eq(c.final, want, "and once more at its end");
	eq(c.early, 0, "at the record that makes the condition true");
	eq(c.again, 0);
	ok(want > 20, "%u crossings", want);
}

/* More values of one bucket than it can count, in two parts: as many as it can stay. */
static void test_full_bucket(void)
{
	static struct acc_quantile a, b;
	const struct agg agg = { .kind = AGG_QUANTILE };
	uint64_t median = 0;

	pl_query_quantile_add(&a, 1, UINT32_C(1) << 31);
	pl_query_quantile_add(&b, 1, UINT32_C(1) << 31);
	pl_query_quantile_add(&b, 1000, 1);
	pl_query_agg_merge(&agg, (uint8_t *)&a, (const uint8_t *)&b);
	ok(pl_query_quantile(&a, 0.5, &median) && median == 1, "a median of %llu",
		(unsigned long long)median);
}

/* Of n values 1, 2 or 3, only the one of rank ceil(q n) is 2: each share of whole percents finds it,
 * in one part and in two. */
static void test_ranks(void)
{
	static struct acc_quantile whole, parts[2];
	const struct agg agg = { .kind = AGG_QUANTILE };
	unsigned int off = 0;

	for (unsigned int n = 1; n <= 200; n++) {
		for (unsigned int percent = 0; percent <= 100; percent++) {
			const unsigned int rank = percent == 0 ? 1 : (percent * n + 99) / 100;
			uint64_t got[2] = { 0, 0 };
			char text[8];
			double q;

			snprintf(text, sizeof(text), "%u.%02u", percent / 100, percent % 100);
			q = strtod(text, NULL);
			whole = parts[0] = parts[1] = (struct acc_quantile){ { 0 } };
			for (unsigned int i = 1; i <= n; i++) {
				const uint64_t value = i < rank ? 1 : i == rank ? 2 : 3;

				pl_query_quantile_add(&whole, value, 1);
				pl_query_quantile_add(&parts[i % 2], value, 1);
			}
			pl_query_agg_merge(&agg, (uint8_t *)&parts[0], (const uint8_t *)&parts[1]);
			(void)pl_query_quantile(&whole, q, &got[0]);
			(void)pl_query_quantile(&parts[0], q, &got[1]);
			off += got[0] != 2 || got[1] != 2;
		}
	}
	eq(off, 0, "the value of each rank");
}

int main(int argc, char **argv)
{
	const unsigned int rounds = pl_test_rounds(argc, argv, 12);

	pl_rng_seed(&rng, pl_test_seed(argc, argv, 40437));
	test_aggregates(rounds);
	for (unsigned int i = 0; i <= rounds / 100; i++)
		test_first();
	test_full_bucket();
	test_ranks();
	return pl_test_done();
}
