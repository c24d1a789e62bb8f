/* SPDX-License-Identifier: BSD-2-Clause */
/* Random zips of filters and folds over random packets, against a loop over the packets.
 * usage: zip_test [SEED|today [ROUNDS]] */
#include <stdlib.h>

#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

enum { PACKETS = 300, HOSTS = 4 };

static struct pl_rng rng;
static struct pl_pkt64 packets[PACKETS];
static unsigned int n_packets;

enum side { FILTER, GAPS, TWICE, SIDES };

struct rows {
	int64_t v[PACKETS * 4][4];
	unsigned int n;
};

static struct rows got, want;

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

static void make_packets(void)
{
	uint64_t ts = 0;

	n_packets = 1 + below(PACKETS);
	for (unsigned int i = 0; i < n_packets; i++) {
		ts += below(20);
		packets[i] = (struct pl_pkt64){ .ts_ns = ts,
			.sport = (uint16_t)below(HOSTS),
			.ttl = (uint8_t)below(8),
			.tcp_seq = i,
			.wire_len = (uint16_t)below(100) };
	}
}

/* Query of each side; rows_of() has the rows that it makes of a packet. */
static const char *const texts[SIDES] = {
	[FILTER] = "SELECT tcp_seq AS id, wire_len * 2 AS x FROM packets%s WHERE ttl > 2",
	[GAPS] = "SELECT sport, gap.g AS x FROM packets%s WHERE ttl < 6 GROUP BY sport",
	[TWICE] = "SELECT sport, twice.n AS x FROM packets%s GROUP BY sport",
};

static const char *const pipes[SIDES] = {
	[FILTER] = "packets | where ttl > 2 | map tcp_seq as id, wire_len * 2 as x",
	[GAPS] = "packets | where ttl < 6 | group sport%s agg x=gap.g",
	[TWICE] = "packets | group sport%s agg x=twice.n",
};

static const char folds[] =
	"FOLD gap (last = ts, g = -0) STEP { g = ts - last, EMIT WHEN g > 15, last = ts } "
	"FOLD twice (n = 0) STEP { n = n + 1, EMIT WHEN n % 2 = 1, n = n + wire_len, "
	"EMIT WHEN ttl > 3 } ";

struct state {
	uint64_t last[HOSTS], n[HOSTS];
	int64_t window[HOSTS];
	bool began[HOSTS];
};

/* Returns how many rows the packet makes. With windows a fold begins anew in each. */
static unsigned int rows_of(
	enum side side, struct state *s, const struct pl_pkt64 *p, int64_t window, int64_t ret[2])
{
	const unsigned int host = p->sport;
	unsigned int n = 0;

	if (side == FILTER) {
		ret[0] = p->wire_len * 2;
		return p->ttl > 2;
	}
	if (side == GAPS && p->ttl >= 6)
		return 0;
	if (!s->began[host] || s->window[host] != window) {
		s->began[host] = true;
		s->window[host] = window;
		s->last[host] = p->ts_ns;
		s->n[host] = 0;
	}
	if (side == GAPS) {
		ret[0] = (int64_t)(p->ts_ns - s->last[host]);
		s->last[host] = p->ts_ns;
		return ret[0] > 15;
	}
	s->n[host]++;
	if (s->n[host] % 2 == 1)
		ret[n++] = (int64_t)s->n[host];
	s->n[host] += p->wire_len;
	if (p->ttl > 3)
		ret[n++] = (int64_t)s->n[host];
	return n;
}

/* Rows: x of a, x of b; grouped: the window, x of a % 3, how many, the sum of x of b. */
static void expect(enum side a, enum side b, bool windowed, bool grouped)
{
	struct state states[2] = { 0 };

	want.n = 0;
	for (unsigned int i = 0; i < n_packets; i++) {
		const int64_t window = windowed ? (int64_t)(packets[i].ts_ns / 100 * 100) : 0;
		int64_t x[2], y[2];
		unsigned int n = rows_of(a, &states[0], &packets[i], window, x);
		unsigned int m = rows_of(b, &states[1], &packets[i], window, y);

		for (unsigned int k = 0; k < n * m; k++) {
			const int64_t left = x[k / m], right = y[k % m];
			unsigned int at = 0;

			if (left % 5 == 0)
				continue;
			if (!grouped) {
				memset(want.v[want.n], 0, sizeof(want.v[0]));
				want.v[want.n][0] = left;
				want.v[want.n++][1] = right;
				continue;
			}
			while (at < want.n &&
				(want.v[at][0] != window || want.v[at][1] != left % 3))
				at++;
			if (at == want.n)
				memcpy(want.v[want.n++], (int64_t[]){ window, left % 3, 0, 0 }, 32);
			want.v[at][2]++;
			want.v[at][3] += right;
		}
	}
}

static void sink(void *arg, const struct pl_query_row *row)
{
	struct rows *rows = arg;
	int64_t *v = rows->v[rows->n++];
	unsigned int n = 0;

	memset(v, 0, sizeof(rows->v[0]));
	if (row->n > 2)
		v[n++] = row->start_ns;
	for (unsigned int i = 0; i < row->n; i++)
		v[n++] = row->values[i].i;
}

static void make_text(char *text, enum side a, enum side b, bool windowed, bool grouped, bool pipe)
{
	const char *window = windowed ? pipe ? " over 100ns" : " TUMBLE(ts, 100ns)" : "";
	char left[160], right[160];

	snprintf(left, sizeof(left), pipe ? pipes[a] : texts[a], window);
	snprintf(right, sizeof(right), pipe ? pipes[b] : texts[b],
		a == FILTER || !pipe ? window : "");
	text[0] = '\0';
	if (a != FILTER || b != FILTER)
		strcpy(text, folds);
	/* A fold that is not used is refused. */
	if (a != TWICE && b != TWICE && text[0] != '\0')
		*strstr(text + 1, "FOLD twice") = '\0';
	if (a != GAPS && b != GAPS && text[0] != '\0')
		memmove(text, strstr(text, "FOLD twice"), strlen(strstr(text, "FOLD twice")) + 1);
	if (pipe)
		sprintf(text + strlen(text), "%s | zip (%s) as b | where left.x %% 5 != 0 | %s",
			left, right,
			grouped ? "group left.x % 3 agg n=count(), s=sum(b.x)"
				: "map left.x as l, b.x as r");
	else
		sprintf(text + strlen(text),
			"SELECT %s FROM (%s) AS a ZIP (%s) AS b WHERE a.x %% 5 != 0%s",
			grouped ? "a.x % 3 AS k, count(*) AS n, sum(b.x) AS s"
				: "a.x AS l, b.x AS r",
			left, right, grouped ? " GROUP BY a.x % 3" : "");
}

static bool run(const char *text, bool tell)
{
	const struct pl_query_config config = { .max_groups = 4096, .seed = pl_rng_u64(&rng) };
	struct pl_query *query = NULL;
	struct pl_diag diag = { 0 };
	struct pl_query_run *r;

	got.n = 0;
	if (pl_query_parse(&query, text, &diag) < 0 ||
		pl_query_run_new(&r, query, &config, sink, &got, &diag) < 0) {
		if (tell)
			printf("# %s\n# %u: %s\n", text, diag.column, diag.text);
		pl_query_free(query);
		return false;
	}
	for (unsigned int at = 0; at < n_packets;) {
		unsigned int n = 1 + below(n_packets - at);

		pl_query_feed(r, PL_FLAT_PKT64, packets + at, n, 0);
		at += n;
	}
	pl_query_finish(r);
	pl_query_run_free(r);
	pl_query_free(query);
	return true;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	for (unsigned int i = 0; i < 4; i++) {
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}

static void test_zips(unsigned int rounds)
{
	unsigned int refused = 0, differ = 0, rows = 0;

	for (unsigned int round = 0; round < rounds; round++) {
		const enum side a = (enum side)(round % 3), b = (enum side)(round / 3 % 3);
		const bool pipe = below(2), grouped = below(2);
		/* In the pipe form a window stands behind a group. */
		const bool windowed = (!pipe || a != FILTER) && below(2);
		char text[1024];

		make_packets();
		make_text(text, a, b, windowed, grouped, pipe);
		if (!run(text, refused == 0)) {
			refused++;
			continue;
		}
		expect(a, b, windowed, grouped);
		rows += want.n;
		if (grouped) {
			qsort(got.v, got.n, sizeof(got.v[0]), by_value);
			qsort(want.v, want.n, sizeof(want.v[0]), by_value);
		}
		if ((got.n != want.n || memcmp(got.v, want.v, want.n * sizeof(want.v[0])) != 0) &&
			differ++ < 3)
			printf("# round %u: %u rows, wanted %u: %s\n", round, got.n, want.n, text);
	}
	eq(refused, 0, "every zip is understood");
	eq(differ, 0, "rows, and their order, are those of the loop");
	ok(rows > 50000, "%u rows", rows);
}

int main(int argc, char **argv)
{
	pl_rng_seed(&rng, pl_test_seed(argc, argv, 42));
	test_zips(pl_test_rounds(argc, argv, 3000));
	return pl_test_done();
}
