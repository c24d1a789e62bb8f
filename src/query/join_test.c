/* SPDX-License-Identifier: BSD-2-Clause */
/* Random joins of three sub-queries over random records, against loops over all pairs of rows.
 * usage: join_test [SEED|today [ROUNDS]] */
#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

enum { PACKETS = 200, MESSAGES = 100, KEYS = 6, WINDOWS = 4 };

static struct pl_rng rng;
static struct pl_pkt64 packets[PACKETS];
static struct pl_dns64 messages[MESSAGES];

struct text_rows {
	char rows[16384][96];
	unsigned int n;
};

static struct text_rows got, want;

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

static void make_records(void)
{
	for (unsigned int i = 0; i < PACKETS; i++)
		packets[i] = (struct pl_pkt64){ .ts_ns = below(WINDOWS) * 100 + i % 100,
			.sport = (uint16_t)below(KEYS),
			.dport = (uint16_t)below(KEYS),
			.ttl = (uint8_t)below(3),
			.proto = (uint8_t)(below(2) ? 6 : 17) };
	for (unsigned int i = 0; i < MESSAGES; i++)
		messages[i] = (struct pl_dns64){ .ts_ns = below(WINDOWS) * 100 + i % 100,
			.qtype = (uint16_t)below(KEYS),
			.id = (uint16_t)below(3) };
}

/* Numbers of records in a window: TCP by sport and ttl, UDP by dport, messages by qtype. */
struct counts {
	unsigned int a[KEYS][3], b[KEYS], c[KEYS];
};

static void count_window(struct counts *n, unsigned int window)
{
	memset(n, 0, sizeof(*n));
	for (unsigned int i = 0; i < PACKETS; i++) {
		if (packets[i].ts_ns / 100 != window)
			continue;
		if (packets[i].proto == 6)
			n->a[packets[i].sport][packets[i].ttl]++;
		else
			n->b[packets[i].dport]++;
	}
	for (unsigned int i = 0; i < MESSAGES; i++) {
		if (messages[i].ts_ns / 100 == window)
			n->c[messages[i].qtype]++;
	}
}

static void add(struct text_rows *rows, int64_t start, int a, int t, int an, int bn, int cn)
{
	if (rows->n < 16384)
		snprintf(rows->rows[rows->n++], sizeof(rows->rows[0]), "%d: %d %d %d %d %d",
			(int)start, a, t, an, bn, cn);
}

static int value(const struct pl_query_value *v)
{
	return v->absent ? -1 : (int)v->u;
}

static void sink(void *arg, const struct pl_query_row *row)
{
	const struct pl_query_value *v = row->values;

	add(arg, row->start_ns, value(&v[0]), value(&v[1]), value(&v[2]),
		row->n > 3 ? value(&v[3]) : -2, row->n > 4 ? value(&v[4]) : -2);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

enum kind { INNER, LEFT, ANTI };

/* a JOIN b ON k [JOIN c ON k]: rows of b and of c have a key once, those of a have it three times;
 * turned around, the right side has it three times. */
static void expect(enum kind kind, enum kind then, bool turned)
{
	for (unsigned int w = 0; w < WINDOWS; w++) {
		struct counts n;

		count_window(&n, w);
		for (unsigned int k = 0; k < KEYS; k++) {
			bool some = n.a[k][0] + n.a[k][1] + n.a[k][2] > 0;

			if (turned) {
				if (n.b[k] == 0)
					continue;
				if (kind == LEFT && !some)
					add(&want, w * 100, (int)k, -1, -1, (int)n.b[k], -2);
				if (kind == ANTI && !some)
					add(&want, w * 100, (int)k, (int)n.b[k], -1, -2, -2);
				for (unsigned int t = 0; t < 3 && kind != ANTI; t++) {
					if (n.a[k][t] > 0)
						add(&want, w * 100, (int)k, (int)t, (int)n.a[k][t],
							(int)n.b[k], -2);
				}
				continue;
			}
			for (unsigned int t = 0; t < 3; t++) {
				if (n.a[k][t] == 0 || (kind == INNER && n.b[k] == 0) ||
					(kind == ANTI && n.b[k] > 0) ||
					(then == INNER && n.c[k] == 0) ||
					(then == ANTI && n.c[k] > 0))
					continue;
				add(&want, w * 100, (int)k, (int)t, (int)n.a[k][t],
					kind == ANTI || n.b[k] == 0 ? -1 : (int)n.b[k],
					then == ANTI || n.c[k] == 0 ? -1 : (int)n.c[k]);
			}
		}
	}
}

static void make_text(char *text, enum kind kind, enum kind then, bool turned)
{
	static const char *const words[] = { "JOIN", "LEFT JOIN", "ANTI JOIN" };
	static const char with[] =
		"WITH a AS (SELECT sport AS k, ttl, count(*) AS n FROM packets TUMBLE(ts, 100ns) WHERE "
		"tcp GROUP BY sport, ttl), b AS (SELECT dport AS k, count(*) AS n FROM packets "
		"TUMBLE(ts, 100ns) WHERE udp GROUP BY dport), c AS (SELECT qtype AS q, count(*) AS n "
		"FROM dns TUMBLE(ts, 100ns) GROUP BY qtype) SELECT ";

	/* 0 - 1 and 1 / 0 are no numbers of these types: an absent column is told by both. */
	if (turned && kind == ANTI)
		sprintf(text,
			"%sk, n, ttl FROM (SELECT k, n, n / (n - n) AS ttl FROM b GROUP BY k, n) AS "
			"b2 ANTI JOIN a ON k",
			with);
	else if (turned)
		sprintf(text, "%sb.k, ttl, a.n, b.n FROM b %s a ON b.k = a.k", with, words[kind]);
	else
		sprintf(text, "%sa.k, a.ttl, a.n, %s, %s FROM a %s b ON k %s c ON a.k = c.q", with,
			kind == ANTI ? "1 / (a.n - a.n)" : "b.n",
			then == ANTI ? "1 / (a.n - a.n) AS x" : "c.n AS x", words[kind],
			words[then]);
	/* Two columns have no name in common. */
	if (!turned && kind != ANTI) {
		char *at = strstr(text, ", b.n, ");

		memmove(at + 7 + 5, at + 7, strlen(at + 7) + 1);
		memcpy(at, ", b.n AS y, ", 12);
	} else if (turned && kind != ANTI) {
		char *at = strstr(text, ", b.n FROM");

		memmove(at + 5 + 5, at + 5, strlen(at + 5) + 1);
		memcpy(at, ", b.n AS y", 10);
	}
}

static bool run(const char *text)
{
	const struct pl_query_config config = {
		.max_groups = 1024, .seed = pl_rng_u64(&rng), .lateness_ns = 1000
	};
	struct pl_query *query = NULL;
	struct pl_diag diag = { 0 };
	struct pl_query_run *r;

	if (pl_query_parse(&query, text, &diag) < 0 ||
		pl_query_run_new(&r, query, &config, sink, &got, &diag) < 0) {
		printf("# %s\n# %u: %s\n", text, diag.column, diag.text);
		pl_query_free(query);
		return false;
	}
	pl_query_feed(r, PL_FLAT_PKT64, packets, PACKETS, 0);
	pl_query_feed(r, PL_FLAT_DNS64, messages, MESSAGES, 0);
	pl_query_finish(r);
	pl_query_run_free(r);
	pl_query_free(query);
	return true;
}

int main(int argc, char **argv)
{
	const unsigned int rounds = pl_test_rounds(argc, argv, 600);
	unsigned int differ = 0, refused = 0, rows = 0;

	pl_rng_seed(&rng, pl_test_seed(argc, argv, 24));
	for (unsigned int round = 0; round < rounds; round++) {
		enum kind kind = (enum kind)(round % 3), then = (enum kind)(round / 3 % 3);
		bool turned = round / 9 % 2 != 0;
		char text[1024];

		make_records();
		got.n = want.n = 0;
		make_text(text, kind, then, turned);
		refused += !run(text);
		expect(kind, then, turned);
		qsort(got.rows, got.n, sizeof(got.rows[0]), by_text);
		qsort(want.rows, want.n, sizeof(want.rows[0]), by_text);
		rows += want.n;
		if (got.n == want.n) {
			unsigned int i = 0;

			while (i < got.n && strcmp(got.rows[i], want.rows[i]) == 0)
				i++;
			if (i == got.n)
				continue;
			printf("# got %s, wanted %s\n", got.rows[i], want.rows[i]);
		}
		if (differ++ < 3)
			printf("# %u rows, wanted %u: %s\n", got.n, want.n, text);
	}
	eq(refused, 0, "every join is understood");
	eq(differ, 0, "rows are those of the loops");
	ok(rows > 10000, "%u rows", rows);
	return pl_test_done();
}
