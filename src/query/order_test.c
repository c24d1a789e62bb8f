/* SPDX-License-Identifier: BSD-2-Clause */
/* Random ORDER BY and LIMIT over random packets, against groups that a loop makes and a sort of them.
 * usage: order_test [SEED|today [ROUNDS]] */
#include <stdlib.h>

#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

enum { PACKETS = 300, KEYS = 12, WINDOWS = 4, LENGTH = 1000 };

static struct pl_rng rng;
static struct pl_pkt64 packets[PACKETS];
static unsigned int n_packets;

/* Numbers are small enough for a double; an address is one by its order. */
struct value {
	bool absent;
	double d;
};

struct row {
	int64_t start;
	struct value key, v, n;
};

struct rows {
	struct row rows[KEYS * WINDOWS + PACKETS];
	unsigned int n;
};

static struct rows got;

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

static struct value number(double d)
{
	return (struct value){ .d = d };
}

static struct pl_addr random_addr(void)
{
	const uint8_t v4[4] = { 10, 0, 0, (uint8_t)below(5) },
		      v6[16] = { 0xfd, [15] = (uint8_t)below(5) };

	return below(2) ? pl_addr_v4(v4) : pl_addr_v6(v6);
}

static double order_of(const struct pl_addr *addr)
{
	return addr->b[15] + (addr->b[0] == 0xfd ? 256 : 0);
}

static void make_packets(void)
{
	uint64_t ts = 0;

	n_packets = below(PACKETS);
	for (unsigned int i = 0; i < n_packets; i++) {
		ts += 1 + below(WINDOWS * LENGTH / PACKETS);
		packets[i] = (struct pl_pkt64){ .ts_ns = ts,
			.src = random_addr(),
			.sport = (uint16_t)below(KEYS),
			.tcp_seq = below(20),
			.ttl = (uint8_t)below(9),
			.tos = (uint8_t)below(9) };
	}
}

/* ---- what is asked ---- */

enum what { MOST, DIFFERENCE, MEAN, FIRST, SHARE, WHATS };
enum by { BY_KEY, BY_VALUE, BY_COUNT, BYS };

static const char *const values[WHATS] = { "max(tcp_seq)", "sum(ttl - tos)", "avg(ttl)",
	"first(src)", "100 / (count(*) - 3)" };
static const char *const columns[BYS] = { "sport", "v", "n" };

struct question {
	enum what what;
	enum by by;
	bool windowed, descending, has_limit;
	unsigned int limit;
	char text[256];
};

static struct question q;

static void make_question(void)
{
	const bool pipe = below(2);
	const char *desc;
	char limit[32] = "";

	q = (struct question){ .what = (enum what)below(WHATS),
		.by = (enum by)below(BYS),
		.windowed = below(2),
		.descending = below(2),
		.has_limit = below(3) > 0,
		.limit = below(KEYS + 2) };
	desc = q.descending ? " desc" : "";
	if (q.has_limit)
		snprintf(limit, sizeof(limit), pipe ? " | limit %u" : " LIMIT %u", q.limit);
	if (pipe)
		snprintf(q.text, sizeof(q.text),
			"packets | group sport%s agg v=%s, n=count() | sort %s%s%s",
			q.windowed ? " over 1000ns" : "", values[q.what], columns[q.by], desc,
			limit);
	else
		snprintf(q.text, sizeof(q.text),
			"SELECT sport, %s AS v, count(*) AS n FROM packets%s GROUP BY sport ORDER "
			"BY %s%s%s",
			values[q.what], q.windowed ? " TUMBLE(ts, 1000ns)" : "", columns[q.by],
			desc, limit);
}

/* ---- the loop ---- */

/* Returns false when the group has no packet. */
static bool make_group(unsigned int key, int64_t start, struct row *ret)
{
	double most = 0, difference = 0, sum = 0, first = 0;
	int n = 0;

	for (unsigned int i = 0; i < n_packets; i++) {
		const struct pl_pkt64 *p = &packets[i];

		if (p->sport != key || (q.windowed && (int64_t)p->ts_ns / LENGTH != start / LENGTH))
			continue;
		first = n == 0 ? order_of(&p->src) : first;
		most = p->tcp_seq > most ? p->tcp_seq : most;
		difference += p->ttl - p->tos;
		sum += p->ttl;
		n++;
	}
	*ret = (struct row){ .start = start, .key = number(key), .n = number(n) };
	if (n == 0)
		return false;
	ret->v = q.what == MOST         ? number(most)
		 : q.what == DIFFERENCE ? number(difference)
		 : q.what == MEAN       ? number(sum / n)
		 : q.what == FIRST      ? number(first)
		 : n == 3               ? (struct value){ .absent = true }
					: number(100 / (n - 3));
	return true;
}

static struct value ordered_by(const struct row *row)
{
	return q.by == BY_KEY ? row->key : q.by == BY_VALUE ? row->v : row->n;
}

/* Absent values come last in either order. */
static int in_order(const void *a, const void *b)
{
	const struct value x = ordered_by(a), y = ordered_by(b);

	if (x.absent || y.absent)
		return x.absent - y.absent;
	return x.d == y.d ? 0 : (x.d < y.d) != q.descending ? -1 : 1;
}

static bool same(struct value a, struct value b)
{
	return a.absent == b.absent && (a.absent || a.d == b.d);
}

/* The rows from number `at` on are those of the window: in order, and each that of its group. Returns
 * the number of the row behind them; UINT32_MAX: they are others. */
static unsigned int compare_window(int64_t start, unsigned int at)
{
	struct row all[KEYS];
	bool told[KEYS] = { false };
	unsigned int n = 0, wanted;

	for (unsigned int key = 0; key < KEYS; key++)
		n += make_group(key, start, &all[n]);
	qsort(all, n, sizeof(all[0]), in_order);
	wanted = q.has_limit && q.limit < n ? q.limit : n;
	for (unsigned int i = 0; i < wanted; i++, at++) {
		const struct row *row = &got.rows[at];
		struct row group;

		if (at >= got.n || row->start != start || row->key.d >= KEYS ||
			told[(unsigned int)row->key.d])
			return UINT32_MAX;
		told[(unsigned int)row->key.d] = true;
		if (!make_group((unsigned int)row->key.d, start, &group) ||
			!same(row->v, group.v) || !same(row->n, group.n) ||
			!same(ordered_by(row), ordered_by(&all[i])))
			return UINT32_MAX;
	}
	return at;
}

/* ---- the query ---- */

static struct value value_of(const struct pl_query_value *v)
{
	if (v->absent)
		return (struct value){ .absent = true };
	return number(v->type == PL_QUERY_UNSIGNED ? (double)v->u
		      : v->type == PL_QUERY_SIGNED ? (double)v->i
		      : v->type == PL_QUERY_DOUBLE ? v->d
						   : order_of(&v->addr));
}

static void sink(void *arg, const struct pl_query_row *row)
{
	struct row *to = &got.rows[got.n];

	(void)arg;
	if (got.n == sizeof(got.rows) / sizeof(got.rows[0]))
		return;
	*to = (struct row){ .start = row->start_ns, .key = value_of(&row->values[0]) };
	if (row->n == 3) {
		to->v = value_of(&row->values[1]);
		to->n = value_of(&row->values[2]);
	}
	got.n++;
}

static bool run(const char *text)
{
	const struct pl_query_config config = { .max_groups = 256, .seed = pl_rng_u64(&rng) };
	struct pl_query *query = NULL;
	struct pl_query_run *r = NULL;
	struct pl_diag diag = { 0 };

	got.n = 0;
	if (pl_query_parse(&query, text, &diag) < 0 ||
		pl_query_run_new(&r, query, &config, sink, NULL, &diag) < 0) {
		printf("# %s\n# %u: %s\n", text, diag.column, diag.text);
		pl_query_free(query);
		return false;
	}
	for (unsigned int i = 0, n; i < n_packets; i += n) {
		n = 1 + below(n_packets - i);
		pl_query_feed(r, PL_FLAT_PKT64, packets + i, n, 0);
	}
	pl_query_finish(r);
	pl_query_run_free(r);
	pl_query_free(query);
	return true;
}

static void test_order(unsigned int rounds)
{
	unsigned int refused = 0, differ = 0, rows = 0, cut = 0;

	for (unsigned int round = 0; round < rounds; round++) {
		unsigned int at = 0;

		make_packets();
		make_question();
		refused += !run(q.text);
		for (int64_t w = 0; w < (q.windowed ? WINDOWS + 1 : 1) && at <= got.n; w++)
			at = compare_window(w * LENGTH, at);
		if (at != got.n && differ++ < 5)
			printf("# round %u, %u rows: %s\n", round, got.n, q.text);
		rows += got.n;
		cut += q.has_limit && q.limit < KEYS;
	}
	eq(refused, 0, "every question is understood");
	eq(differ, 0, "rows are in order, and as many as LIMIT says of each window");
	ok(rows > 5 * rounds && cut > rounds / 3, "%u rows, %u questions with a short LIMIT", rows,
		cut);
}

/* LIMIT of rows of records: the first ones that pass. */
static void test_records(unsigned int rounds)
{
	unsigned int differ = 0;

	for (unsigned int round = 0; round < rounds; round++) {
		const unsigned int limit = below(200), most = below(9);
		unsigned int n = 0;
		char text[128];
		bool good;

		make_packets();
		snprintf(text, sizeof(text), "SELECT sport FROM packets WHERE ttl < %u LIMIT %u",
			most, limit);
		good = run(text);
		for (unsigned int i = 0; i < n_packets && n < limit && good; i++) {
			if (packets[i].ttl >= most)
				continue;
			good = n < got.n && got.rows[n].key.d == packets[i].sport;
			n++;
		}
		if ((!good || n != got.n) && differ++ < 5)
			printf("# round %u, %u rows, wanted %u: %s\n", round, got.n, n, text);
	}
	eq(differ, 0, "the first records that pass");
}

int main(int argc, char **argv)
{
	const unsigned int rounds = pl_test_rounds(argc, argv, 3000);

	pl_rng_seed(&rng, pl_test_seed(argc, argv, 2611));
	test_order(rounds);
	test_records(rounds / 4);
	return pl_test_done();
}
