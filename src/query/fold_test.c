/* SPDX-License-Identifier: BSD-2-Clause */
/* Folds: against the same written in C, rows that they emit, their windows, and what is refused. */
#include <errno.h>
#include <math.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

#define MS     1000000
#define SECOND (1000 * (uint64_t)MS)
#define START  (1000 * SECOND)

static struct pl_pkt64 packets[4096];
static unsigned int n_packets;

static void add(unsigned int host, uint64_t ts, uint16_t len)
{
	const uint8_t src[4] = { 10, 0, 0, (uint8_t)host }, dst[4] = { 10, 0, 0, 200 };

	packets[n_packets++] = (struct pl_pkt64){ .ts_ns = START + ts,
		.src = pl_addr_v4(src),
		.dst = pl_addr_v4(dst),
		.proto = 17,
		.wire_len = len,
		.ttl = (uint8_t)len };
}

/* Rows as texts: "start-end: value value", or "value value" without a window; times from START. */
struct got {
	char rows[512][160];
	unsigned int n, incomplete;
};

static void sink(void *arg, const struct pl_query_row *row)
{
	struct got *got = arg;
	char *to = got->n < 512 ? got->rows[got->n] : NULL, addr[PL_ADDR_TEXT_MAX];

	got->n++;
	got->incomplete += row->incomplete;
	if (to == NULL)
		return;
	to[0] = '\0';
	if (row->windowed)
		to += sprintf(to, "%d-%d:", (int)((row->start_ns - (int64_t)START) / MS),
			(int)((row->end_ns - (int64_t)START) / MS));
	for (uint32_t i = 0; i < row->n; i++) {
		const struct pl_query_value *v = &row->values[i];

		to += sprintf(to, "%s", to == got->rows[got->n - 1] ? "" : " ");
		if (v->absent) {
			to += sprintf(to, "-");
		} else if (v->type == PL_QUERY_ADDR) {
			pl_format_addr(addr, &v->addr);
			to += sprintf(to, "%s", addr);
		} else if (v->type == PL_QUERY_DOUBLE) {
			to += sprintf(to, "%.6g", v->d);
		} else if (v->type == PL_QUERY_LIST) {
			for (uint32_t k = 0; k < v->list.n; k++)
				to += sprintf(to, "%s%" PRIu64 "x%" PRIu64, k > 0 ? "," : "",
					v->list.items[k].value.u, v->list.items[k].count);
		} else if (v->type == PL_QUERY_SIGNED) {
			to += sprintf(to, "%" PRId64, v->i);
		} else {
			to += sprintf(to, "%" PRIu64, v->type == PL_QUERY_BOOL ? v->b : v->u);
		}
	}
}

/* Feeds in parts of `part` packets. */
static bool ask(struct got *got, const char *text, unsigned int part, uint32_t max_groups)
{
	const struct pl_query_config config = { .max_groups = max_groups };
	struct pl_query *query = NULL;
	struct pl_query_run *run = NULL;
	struct pl_diag diag = { 0 };

	memset(got, 0, sizeof(*got));
	if (pl_query_parse(&query, text, &diag) < 0 ||
		pl_query_run_new(&run, query, &config, sink, got, &diag) < 0) {
		printf("# %u: %s\n", diag.column, diag.text);
		pl_query_free(query);
		return false;
	}
	for (unsigned int i = 0; i < n_packets; i += part)
		pl_query_feed(run, PL_FLAT_PKT64, packets + i,
			n_packets - i < part ? n_packets - i : part, 0);
	pl_query_finish(run);
	pl_query_run_free(run);
	pl_query_free(query);
	return true;
}

static struct got got;

#define FLOWLET                                                                                    \
	"FOLD flowlet (last = ts, size = 0, n = 0) STEP { gap = ts - last, "                       \
	"EMIT WHEN gap > 50ms, size = if(gap > 50ms, 0, size) + wire_len, "                        \
	"n = if(gap > 50ms, 0, n) + 1, last = ts } "

/* Two hosts, whose packets alternate; host 1 pauses twice, host 2 once. */
static void flowlets(void)
{
	n_packets = 0;
	add(1, 0, 100);
	add(2, 1 * MS, 10);
	add(1, 10 * MS, 200);
	add(2, 20 * MS, 20);
	add(1, 100 * MS, 300);
	add(2, 110 * MS, 30);
	add(1, 150 * MS, 400);
	add(1, 250 * MS, 500);
}

static void test_emit(void)
{
	for (unsigned int part = 1; part <= 8; part += 7) {
		flowlets();
		ok(ask(&got,
			FLOWLET "SELECT src, flowlet.size, flowlet.n FROM packets GROUP BY src",
			part, 64));
		eq(got.n, 3, "a row for each pause");
		streq(got.rows[0], "10.0.0.1 300 2", "in the order of the records");
		streq(got.rows[1], "10.0.0.2 30 2");
		streq(got.rows[2], "10.0.0.1 700 2");
		ok(ask(&got,
			FLOWLET "END { EMIT } SELECT src, flowlet.size FROM packets GROUP BY src",
			part, 64));
		eq(got.n, 5, "and at the end one of each host");
		streq(got.rows[3], "10.0.0.1 500");
		streq(got.rows[4], "10.0.0.2 30");
		ok(ask(&got,
			FLOWLET "SELECT src, flowlet.size * 2 AS x FROM packets GROUP BY src "
				"HAVING flowlet.size > 100 and src = 10.0.0.1",
			part, 64));
		eq(got.n, 2, "HAVING is of the emitted rows");
		streq(got.rows[0], "10.0.0.1 600");
		ok(ask(&got,
			FLOWLET
			"END { EMIT } packets | group src agg s=flowlet.size | sort s desc | "
			"limit 2",
			part, 64));
		eq(got.n, 2, "in the pipe form, sorted");
		streq(got.rows[0], "10.0.0.1 700");
		streq(got.rows[1], "10.0.0.1 500");
	}
}

/* The variables begin anew in each window; rows are of the window of their record. */
static void test_windows(void)
{
	flowlets();
	ok(ask(&got,
		FLOWLET "END { EMIT } SELECT src, flowlet.size FROM packets TUMBLE(ts, 200ms) "
			"GROUP BY src",
		3, 64));
	eq(got.n, 5);
	streq(got.rows[0], "0-200: 10.0.0.1 300");
	streq(got.rows[1], "0-200: 10.0.0.2 30");
	streq(got.rows[2], "0-200: 10.0.0.1 700", "the last at the end of the window");
	streq(got.rows[3], "0-200: 10.0.0.2 30");
	streq(got.rows[4], "200-400: 10.0.0.1 500");
	ok(ask(&got,
		FLOWLET
		"END { EMIT } SELECT count(*) AS n, hist(size) FROM (SELECT src, flowlet.size "
		"FROM packets TUMBLE(ts, 200ms) GROUP BY src) AS f",
		3, 64));
	eq(got.n, 2, "rows of a fold are those of a sub-query");
	streq(got.rows[0], "0-200: 4 16x2,256x1,512x1");
	streq(got.rows[1], "200-400: 1 256x1");
	ok(ask(&got,
		FLOWLET "END { EMIT } SELECT src, flowlet.size FROM packets TUMBLE(ts, 200ms) "
			"GROUP BY src ORDER BY size DESC LIMIT 1",
		1, 64));
	eq(got.n, 2);
	streq(got.rows[0], "0-200: 10.0.0.1 700", "each window sorted by itself");
	streq(got.rows[1], "200-400: 10.0.0.1 500");
	/* A fold of a fold's rows has their order. */
	ok(ask(&got,
		"FOLD up (last = 0, n = 0) STEP { n = if(size > last, n + 1, n), last = size } " FLOWLET
		"END { EMIT } SELECT src, up.n FROM (SELECT src, flowlet.size FROM packets GROUP BY "
		"src) AS f GROUP BY src",
		3, 64));
	eq(got.n, 2);
	streq(got.rows[0], "10.0.0.1 2", "300, 700, 500");
	streq(got.rows[1], "10.0.0.2 1", "30, 30");
}

static void test_bounds(void)
{
	n_packets = 0;
	for (unsigned int i = 0; i < 600; i++)
		add(1, i * (uint64_t)MS, 100);
	ok(ask(&got,
		"FOLD f (n = 0) STEP { n = n + 1, EMIT } SELECT max(n) AS m, count(*) AS rows FROM "
		"(SELECT src, f.n FROM packets TUMBLE(ts, 1s) GROUP BY src) AS x",
		100, 64));
	eq(got.n, 1);
	streq(got.rows[0], "0-1000: 64 64", "as many rows are kept as groups have room");
	eq(got.incomplete, 1, "and the window says so");
	ok(ask(&got,
		"FOLD f (n = 0) STEP { EMIT, n = n + 1 } SELECT src, f.n FROM packets GROUP BY src",
		600, 64));
	eq(got.n, 600, "a row for each record, none kept");
	streq(got.rows[511], "10.0.0.1 511");
}

/* Values that are not there: the variable stays, a name is absent, a condition is false. */
static void test_absent(void)
{
	n_packets = 0;
	add(1, 0, 4);
	add(1, 1, 0);
	add(1, 2, 5);
	ok(ask(&got,
		"FOLD f (a = 0, b = 100 / wire_len, c = 1 / (ttl - ttl), none = 0) STEP { "
		"x = 100 / wire_len, a = x, b = b + x, none = none + if(x >= 0, 0, 1) } "
		"SELECT f.a, f.b, f.c, f.none FROM packets",
		3, 64));
	eq(got.n, 1);
	streq(got.rows[0], "20 70 - 1");
}

/* Values of each type, kept from record to record. */
static void test_types(void)
{
	n_packets = 0;
	add(1, 0, 4);
	add(2, 1 * MS, 9);
	add(3, 3 * MS, 2);
	ok(ask(&got,
		"FOLD f (who = src, d = 0.0, s = -0, u = 0, odd = false) STEP { "
		"who = if(wire_len > 5, src, who), d = d + wire_len / 2.0, s = s - wire_len, "
		"u = u + abs(s), odd = (wire_len & 1) = 1 or odd } "
		"SELECT f.who, f.d, f.s, f.u, f.odd FROM packets",
		2, 64));
	eq(got.n, 1);
	streq(got.rows[0], "10.0.0.2 7.5 -15 32 1");
}

/* The interarrival jitter of RFC 3550, and a queue with a constant rate, each written in C. */
static void test_model(void)
{
	struct pl_rng rng;
	double jitter[4] = { 0 }, queue[4] = { 0 }, peak[4] = { 0 };
	uint64_t last[4] = { 0 }, gap[4] = { 0 }, ts = 0;

	pl_rng_seed(&rng, 7);
	n_packets = 0;
	for (unsigned int i = 0; i < 2000; i++) {
		unsigned int h = (unsigned int)pl_rng_below(&rng, 4);
		uint16_t len = (uint16_t)(60 + pl_rng_below(&rng, 1400));
		uint64_t now;

		ts += pl_rng_below(&rng, 20000);
		add(h, ts, len);
		now = START + ts;
		if (last[h] != 0) {
			queue[h] = fmax(0, queue[h] - (double)(now - last[h]) * 0.125);
			if (gap[h] != 0)
				jitter[h] += (fabs((double)(now - last[h]) - (double)gap[h]) -
						     jitter[h]) /
					     16;
			gap[h] = now - last[h];
		}
		queue[h] += len;
		peak[h] = fmax(peak[h], queue[h]);
		last[h] = now;
	}
	ok(ask(&got,
		"FOLD j (last = ts, gap = 0, n = 0, j = 0.0) STEP { g = ts - last, "
		"j = if(n > 1, j + (abs(g - gap) - j) / 16, j), gap = abs(g), last = ts, n = n + 1 } "
		"FOLD q (last = ts, q = 0.0, peak = 0.0) STEP { "
		"q = greatest(0.0, q - (ts - last) * 0.125) + wire_len, peak = greatest(peak, q), "
		"last = ts } "
		"SELECT src, count(*) AS c, j.j, q.peak, j.n FROM packets GROUP BY src ORDER BY src",
		300, 64));
	eq(got.n, 4);
	for (unsigned int h = 0; h < 4; h++) {
		unsigned int host, n, m;
		double j, q;

		ok(sscanf(got.rows[h], "10.0.0.%u %u %lf %lf %u", &host, &n, &j, &q, &m) == 5 &&
				host == h && n == m,
			"%s", got.rows[h]);
		ok(fabs(j - jitter[h]) <= 1e-5 * jitter[h], "jitter of %g", jitter[h]);
		ok(fabs(q - peak[h]) <= 1e-5 * peak[h], "peak of %g", peak[h]);
	}
}

/* Folds whose parts merge give over HOP what the aggregates give. */
static void test_merge(void)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, 8);
	n_packets = 0;
	for (unsigned int i = 0; i < 1000; i++)
		add((unsigned int)pl_rng_below(&rng, 3), i * (uint64_t)MS,
			(uint16_t)pl_rng_below(&rng, 1500));
	ok(ask(&got,
		"FOLD f (n = 5, bytes = 0, most = 0, least = 65535, x = 0.5, neg = -0) STEP { "
		"n = n + 1, long = wire_len > 700, bytes = bytes + if(long, wire_len, 0), "
		"most = greatest(most, wire_len), least = least(wire_len, least), "
		"x = x + wire_len / 4.0, neg = neg - wire_len } "
		"SELECT src, f.n - count(*) AS five, f.bytes - sum(if(wire_len > 700, wire_len, 0)) "
		"AS b, f.most - max(wire_len) AS m, f.least - min(wire_len) AS l, "
		"f.x - sum(wire_len / 4.0) AS d, f.neg + sum(wire_len) AS z "
		"FROM packets HOP(ts, 300ms, 100ms) GROUP BY src",
		128, 256));
	ok(got.n > 20, "%u rows", got.n);
	for (unsigned int i = 0; i < got.n && i < 512; i++)
		ok(strstr(got.rows[i], " 5 0 0 0 0.5 0") != NULL, "%s", got.rows[i]);
	ok(ask(&got,
		"FOLD f (n = 0, end = 0) STEP { n = n + 1 } END { end = n * 2 } "
		"SELECT src, f.end - count(*) AS n, count(*) AS c FROM packets SESSION(ts, 10s) "
		"GROUP BY src",
		128, 256));
	eq(got.n, 3, "a session of each");
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int n = 0, c = 1;

		ok(sscanf(got.rows[i], "%*s %*s %u %u", &n, &c) == 2 && n == c, "%s", got.rows[i]);
	}
}

/* END has no record: a constant there is no input, whose place another fold uses. */
static void test_constants_at_the_end(void)
{
	flowlets();
	ok(ask(&got,
		"FOLD f (n = 0) STEP { n = n + 1 } END { n = n + 2 * 3 } "
		"FOLD g (m = 0) STEP { m = m + wire_len } SELECT f.n, g.m FROM packets",
		3, 64));
	eq(got.n, 1);
	streq(got.rows[0], "14 1560");
}

/* Against the same loop in C, and against a fold. */
static void test_ewma(void)
{
	double value = 0;

	n_packets = 0;
	for (unsigned int i = 0; i < 100; i++) {
		add(1, i * (uint64_t)MS, (uint16_t)(i * 37 % 101));
		value = i == 0 ? 0 : 0.25 * (i * 37 % 101) + 0.75 * value;
	}
	ok(ask(&got,
		"FOLD f (v = double(wire_len)) STEP { v = 0.25 * wire_len + 0.75 * v } "
		"SELECT ewma(wire_len, 0.25) AS e, f.v - ewma(wire_len, 0.25) AS d, "
		"ewma(100 / (wire_len - wire_len), 0.5) AS none FROM packets",
		7, 64));
	eq(got.n, 1);
	ok(fabs(strtod(got.rows[0], NULL) - value) < 1e-3, "%s for %g", got.rows[0], value);
	ok(fabs(strtod(strchr(got.rows[0], ' '), NULL)) < 1e-9, "as the fold");
	ok(strstr(got.rows[0], " -") != NULL, "absent without values");
}

#define F "FOLD f (n = 0) STEP { n = n + 1 } "

static const struct {
	const char *text;
	unsigned int column;
	const char *says;
} faults[] = {
	{ "FOLD", 5, "expected a name for the fold" },
	{ "FOLD f SELECT", 8, "\"(\" and the variables" },
	{ "FOLD f (n) STEP { n = 1 } SELECT f.n FROM packets", 10, "\"=\" behind the name" },
	{ "FOLD f (n = 0) { n = 1 }", 16, "expected STEP" },
	{ "FOLD f (n = 0) STEP n = 1", 21, "\"{\" and assignments" },
	{ "FOLD f (n = 0) STEP { n = n + 1 SELECT", 33, "a comma and an assignment" },
	{ "FOLD f (n = 0) STEP { }", 23, "an assignment, x = x + 1, or EMIT WHEN" },
	{ F, 35, "expected SELECT" },
	{ F "SELECT src, count(*) FROM packets GROUP BY src", 6, "\"f\" is not used" },
	{ F F "SELECT f.n FROM packets", 40, "two folds of the name" },
	{ F "SELECT f.m FROM packets", 42, "no variable \"m\"" },
	{ F "SELECT g.n FROM packets", 42, "unknown column \"g.n\"" },
	{ F "SELECT f.n FROM packets WHERE f.n > 1", 69, "HAVING" },
	{ F "SELECT src, f.n FROM packets GROUP BY src, f.n", 78, "not an aggregate" },
	{ "FOLD f (ttl = 0) STEP { ttl = 1 } SELECT f.ttl FROM packets", 9, "a column already" },
	{ "FOLD f (n = 0) STEP { ttl = 1 } SELECT f.n FROM packets", 23, "a column already" },
	{ "FOLD f (nummer = 0) STEP { numer = 1 } SELECT f.nummer FROM packets", 28,
		"did you mean \"nummer\"?" },
	{ "FOLD f (n = 0) STEP { n = tll } SELECT f.n FROM packets", 27, "did you mean \"ttl\"?" },
	{ "FOLD f (n = m, m = 0) STEP { n = m } SELECT f.n FROM packets", 13, "unknown column" },
	{ "FOLD f (n = 0) STEP { n = n - 1 } SELECT f.n FROM packets", 29,
		"begin it with one (-0)" },
	{ "FOLD f (n = 0) STEP { n = n * 0.5 } SELECT f.n FROM packets", 29, "(0.0)" },
	{ "FOLD f (n = 0) STEP { n = src } SELECT f.n FROM packets", 27, "of type address" },
	{ "FOLD f (n = 0) STEP { n = count(*) } SELECT f.n FROM packets", 27, "of a group" },
	{ "FOLD f (n = 0) STEP { EMIT WHEN n } SELECT f.n FROM packets", 33, "a condition" },
	{ "FOLD f (n = 0) STEP { n = 1 } END { n = ttl } SELECT f.n FROM packets", 41,
		"unknown column \"ttl\"" },
	{ "FOLD f (n = 0) STEP { n = 1, EMIT } SELECT f.n, count(*) FROM packets", 49,
		"no other fold or aggregate" },
	{ "FOLD f (n = 0) STEP { n = n + 1 } MERGE { n = n + n } SELECT f.n FROM packets", 35,
		"follows from its steps" },
	{ "FOLD f (n = 0) STEP { n = n * 2 } SELECT f.n FROM packets HOP(ts, 2s, 1s)", 42,
		"cannot be merged" },
	{ F "SELECT src, f.n FROM packets GROUP BY src HAVING f.n > 3 EMIT FIRST", 88,
		"would have to stay true" },
	{ F "SELECT src, f.n FROM packets GROUP BY src HAVING count(*) > 3 EMIT FIRST", 47,
		"EMIT FIRST" },
	{ F "SELECT f.n FROM (SELECT src, count(*) AS c FROM packets GROUP BY src) AS x", 42,
		"ORDER BY" },
	{ "SELECT ewma(ttl, 2) AS x FROM packets", 18, "between 0 and 1" },
	{ "SELECT ewma(src, 0.5) AS x FROM packets", 13, "needs a number" },
	{ "SELECT ewma(ttl, 0.5) AS x FROM packets HOP(ts, 2s, 1s)", 8, "ewma cannot be merged" },
	{ "SELECT if(ttl, 1, 2) AS x FROM packets", 11, "a condition" },
	{ "SELECT if(tcp, 1) AS x FROM packets", 8, "a condition and two values" },
	{ "SELECT if(tcp, 1, src) AS x FROM packets", 8, "unsigned number and of type address" },
	{ "SELECT abs(1, 2) AS x FROM packets", 8, "one number" },
	{ "SELECT least(1, src) AS x FROM packets", 17, "needs a number" },
};

static void test_faults(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct pl_query *query = NULL;
		struct pl_diag diag = { 0 };

		eq(pl_query_parse(&query, faults[i].text, &diag), -EINVAL, "%s", faults[i].text);
		eq(diag.column, faults[i].column, "%s", faults[i].text);
		if (!ok(strstr(diag.text, faults[i].says) != NULL, "says: %s", faults[i].says))
			printf("# says \"%s\"\n", diag.text);
		pl_query_free(query);
	}
}

static void test_limits(void)
{
	struct pl_query *query = NULL;
	struct pl_diag diag = { 0 };
	char text[4000], *to = text;

	to += sprintf(to, "FOLD f (");
	for (int i = 0; i < 17; i++)
		to += sprintf(to, "%sv%d = 0", i > 0 ? ", " : "", i);
	sprintf(to, ") STEP { v0 = 1 } SELECT f.v0 FROM packets");
	eq(pl_query_parse(&query, text, &diag), -EINVAL, "17 variables");
	ok(strstr(diag.text, "more than 16 variables") != NULL);
	to = text + sprintf(text, "FOLD f (n = 0) STEP { n = 0");
	for (int i = 0; i < 32; i++)
		to += sprintf(to, ", n = n + 1");
	sprintf(to, " } SELECT f.n FROM packets");
	eq(pl_query_parse(&query, text, &diag), -EINVAL, "33 steps");
	ok(strstr(diag.text, "more than 32 steps") != NULL);
}

static const struct {
	const char *fold, *says;
} plans[] = {
	{ "FOLD f (n = 0, m = 0) STEP { n = n + 1, m = greatest(ttl, m) }", "in any order" },
	{ "FOLD f (n = 0.0) STEP { n = n * 0.9 + wire_len * 0.1 }", "linear" },
	{ "FOLD f (n = 0.0) STEP { x = 0.5 * n, n = if(tcp, x + 1.0, n) }", "linear" },
	{ "FOLD f (n = ttl) STEP { n = n + 1 }", "linear" },
	{ "FOLD f (n = 0) STEP { n = if(n > 3, 0, n + 1) }", "in order" },
	{ "FOLD f (n = 0.0) STEP { n = n * n }", "in order" },
	{ "FOLD f (n = 0) STEP { n = n / 2 }", "in order" },
	{ "FOLD f (n = 0) STEP { n = n + 1, EMIT WHEN n > 3 }", "emit when (n > 3)" },
	{ "FOLD f (n = 0) STEP { n = n + (wire_len - 2) % 4 & 1 }", "" },
};

static void test_explain(void)
{
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct pl_query *query = NULL;
		char text[400];
		struct pl_buf out;

		snprintf(text, sizeof(text), "%s SELECT f.n FROM packets", plans[i].fold);
		if (plans[i].says[0] == '\0') {
			eq(pl_query_parse(&query, text, NULL), -EINVAL, "signed: %s", text);
			continue;
		}
		pl_buf_init(&out);
		if (ok(pl_query_parse(&query, text, NULL) == 0, "%s", text))
			pl_query_explain(query, &out);
		if (!ok(out.len > 0 && strstr(out.data, plans[i].says) != NULL, "says: %s",
			    plans[i].says))
			printf("# %s\n", out.len > 0 ? out.data : "");
		pl_query_free(query);
		pl_buf_done(&out);
	}
}

int main(void)
{
	test_emit();
	test_windows();
	test_bounds();
	test_absent();
	test_types();
	test_model();
	test_merge();
	test_constants_at_the_end();
	test_ewma();
	test_faults();
	test_limits();
	test_explain();
	return pl_test_done();
}
