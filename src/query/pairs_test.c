/* SPDX-License-Identifier: BSD-2-Clause */
/* Random joins of records, in random orders and batches, against loops over all pairs of records.
 * usage: pairs_test [SEED|today [ROUNDS]] */
#include <stdlib.h>

#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

enum { RECORDS = 80, SPAN = 1200, WINDOW = 100 };

static struct pl_rng rng;

/* A record of either side: packets of TCP are the left one, of UDP or DNS messages the right one. */
struct item {
	uint64_t ts;
	unsigned int key, mark, id;
	bool left, late;
};

static struct item items[RECORDS];
static unsigned int n_items, order[RECORDS];

enum kind { INNER, LEFT, ANTI };

struct question {
	enum kind kind;
	bool dns, pipe, grouped;
	bool after;     /* ON … AND b.ts >= a.ts */
	bool remainder; /* the left key is sport % ttl, absent for 0 */
	bool marked;    /* WHERE a.ttl > 1 */
	bool missing;   /* WHERE missing(b.ts_ns) */
	bool open;      /* WHERE of both sides instead of filters in them (INNER) */
	unsigned int within, lateness, reach; /* reach: how far records are out of order */
	char text[1024];
};

struct row {
	bool incomplete;
	int64_t start;
	int v[4];
};

struct rows {
	struct row r[RECORDS * RECORDS];
	unsigned int n;
};

static struct rows got, again, want;
static struct pl_query_stats stats;

static unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&rng, n);
}

static void make_items(unsigned int unit)
{
	n_items = 20 + below(RECORDS - 20);
	/* Coarse times meet the bounds of windows, lateness and WITHIN. */
	for (unsigned int i = 0; i < n_items; i++)
		items[i] = (struct item){ .ts = below(SPAN / unit) * unit,
			.key = below(4),
			.mark = below(4),
			.id = i,
			.left = below(2) };
}

static unsigned int arrival[RECORDS];

static int by_arrival(const void *a, const void *b)
{
	const unsigned int x = arrival[*(const unsigned int *)a],
			   y = arrival[*(const unsigned int *)b];

	return x < y ? -1 : x > y;
}

/* No record comes more than `reach` behind one that is later. */
static void make_order(unsigned int reach)
{
	for (unsigned int i = 0; i < n_items; i++) {
		order[i] = i;
		arrival[i] = (unsigned int)items[i].ts + (reach > 0 ? below(reach) : 0);
	}
	qsort(order, n_items, sizeof(order[0]), by_arrival);
}

/* ---- the question ---- */

static void make_question(struct question *q, unsigned int unit)
{
	*q = (struct question){ .kind = (enum kind)below(3),
		.dns = below(2),
		.pipe = below(2),
		.grouped = below(2),
		.after = below(2),
		.remainder = below(3) == 0,
		.marked = below(3) == 0,
		.within = 1 + below(below(2) ? 20 : 300),
		.lateness = 1 + below(300) };
	q->within = (q->within + unit - 1) / unit * unit;
	q->lateness = (q->lateness + unit - 1) / unit * unit;
	q->missing = q->kind == LEFT && below(4) == 0;
	q->open = q->kind == INNER && !q->pipe && below(2);
	q->reach = below(4) == 0 ? 2 * q->lateness : q->lateness;
}

static void make_text(struct question *q)
{
	static const char *const joins[] = { "JOIN", "LEFT JOIN", "ANTI JOIN" };
	const char *b_key = q->dns ? "qtype" : "dport", *b_id = q->dns ? "name_hash" : "tcp_seq";
	const char *right = q->dns ? "dns" : "packets", *filter = q->dns ? "" : "proto = 17";
	char on[200], where[200], columns[200];

	snprintf(on, sizeof(on), "%s = b.%s%s%s", q->remainder ? "a.sport %% a.ttl" : "a.sport",
		b_key, q->after ? " AND b.ts >= a.ts" : "", q->marked ? "" : "");
	if (q->remainder)
		snprintf(on, sizeof(on), "a.sport %% a.ttl = b.%s%s", b_key,
			q->after ? " AND b.ts >= a.ts" : "");
	snprintf(where, sizeof(where), "%s%s%s%s", q->marked ? "a.ttl > 1" : "",
		q->marked && (q->missing || q->open) ? " AND " : "",
		q->missing ? "missing(b.ts_ns)" : "",
		q->open ? (q->dns ? "a.proto = 6" : "a.proto = 6 AND b.proto = 17") : "");
	if (q->grouped && q->kind != ANTI)
		snprintf(columns, sizeof(columns), "count(*) AS n, sum(b.%s) AS s", b_id);
	else if (q->grouped)
		snprintf(columns, sizeof(columns), "count(*) AS n, sum(a.tcp_seq) AS s");
	else if (q->kind != ANTI)
		snprintf(columns, sizeof(columns),
			"a.ts_ns AS at, a.tcp_seq AS a, b.ts_ns AS bt, b.%s AS b", b_id);
	else
		snprintf(columns, sizeof(columns), "a.ts_ns AS at, a.tcp_seq AS a");
	if (q->pipe) {
		const char *agg = q->kind == ANTI ? "a.tcp_seq"
				  : q->dns        ? "b.name_hash"
						  : "b.tcp_seq";

		snprintf(q->text, sizeof(q->text),
			"packets as a | where proto = 6 | %s (%s%s%s) as b on %s within %uns%s%s | ",
			joins[q->kind], right, q->dns ? " | where true" : " | where ", filter, on,
			q->within, where[0] != '\0' ? " | where " : "", where);
		if (q->grouped)
			snprintf(q->text + strlen(q->text), sizeof(q->text) - strlen(q->text),
				"group a.sport over %dns agg n=count(), s=sum(%s)", WINDOW, agg);
		else
			snprintf(q->text + strlen(q->text), sizeof(q->text) - strlen(q->text),
				"map %s", columns);
		return;
	}
	snprintf(q->text, sizeof(q->text),
		q->open ? "SELECT %s%s FROM packets%s%s AS a %s %s%s%s AS b ON %s WITHIN %uns%s%s%s"
			: "SELECT %s%s FROM (SELECT * FROM packets%s WHERE proto = 6%s) AS a %s "
			  "(SELECT * FROM %s%s%s) AS b ON %s WITHIN %uns%s%s%s",
		q->grouped ? "a.sport, " : "", columns, q->grouped ? " TUMBLE(ts, 100ns)" : "", "",
		joins[q->kind], right, q->open || filter[0] == '\0' ? "" : " WHERE ",
		q->open ? "" : filter, on, q->within, where[0] != '\0' ? " WHERE " : "", where,
		q->grouped ? " GROUP BY a.sport" : "");
}

/* ---- the loops ---- */

static bool is_pair(const struct question *q, const struct item *a, const struct item *b)
{
	const uint64_t apart = a->ts > b->ts ? a->ts - b->ts : b->ts - a->ts;

	if (b->left || b->late || apart > q->within || (q->after && b->ts < a->ts))
		return false;
	if (q->remainder)
		return a->mark != 0 && a->key % a->mark == b->key;
	return a->key == b->key;
}

static void want_row(const struct question *q, const struct item *a, const struct item *b)
{
	struct row *row;
	const int value = b != NULL ? (int)b->id : q->kind == ANTI ? (int)a->id : -1;

	if ((q->marked && a->mark <= 1) || (q->missing && b != NULL))
		return;
	if (!q->grouped) {
		want.r[want.n++] =
			(struct row){ .v = { (int)a->ts, (int)a->id, b != NULL ? (int)b->ts : -1,
					      b != NULL ? (int)b->id : -1 } };
		return;
	}
	row = &want.r[a->ts / WINDOW * 4 + a->key];
	row->start = (int64_t)(a->ts / WINDOW * WINDOW);
	row->v[0] = (int)a->key;
	row->v[1]++;
	if (value >= 0)
		row->v[2] = row->v[2] < 0 ? value : row->v[2] + value;
}

static void expect(const struct question *q)
{
	want.n = 0;
	for (unsigned int i = 0; q->grouped && i < (SPAN / WINDOW + 1) * 4; i++)
		want.r[i] = (struct row){ .v = { 0, 0, -1, -1 } };
	for (unsigned int i = 0; i < n_items; i++) {
		const struct item *a = &items[i];
		unsigned int found = 0;

		if (!a->left || a->late)
			continue;
		for (unsigned int k = 0; k < n_items; k++) {
			if (!is_pair(q, a, &items[k]))
				continue;
			found++;
			if (q->kind != ANTI)
				want_row(q, a, &items[k]);
		}
		if (found == 0 && q->kind != INNER)
			want_row(q, a, NULL);
	}
	for (unsigned int i = 0; q->grouped && i < (SPAN / WINDOW + 1) * 4; i++) {
		if (want.r[i].v[1] > 0)
			want.r[want.n++] = want.r[i];
	}
}

/* ---- the query ---- */

static int value(const struct pl_query_value *v)
{
	return v->absent ? -1 : (int)v->u;
}

static void sink(void *arg, const struct pl_query_row *row)
{
	struct rows *rows = arg;
	struct row *to = &rows->r[rows->n++];

	*to = (struct row){
		.incomplete = row->incomplete, .start = row->start_ns, .v = { -1, -1, -1, -1 }
	};
	for (unsigned int i = 0; i < row->n; i++)
		to->v[i] = value(&row->values[i]);
}

static void feed(struct pl_query_run *r, const struct question *q, const struct item *const *batch,
	unsigned int n, bool packets)
{
	struct pl_pkt64 p[RECORDS];
	struct pl_dns64 d[RECORDS];
	unsigned int k = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct item *item = batch[i];

		if ((item->left || !q->dns) != packets)
			continue;
		p[k] = (struct pl_pkt64){ .ts_ns = item->ts,
			.sport = (uint16_t)item->key,
			.dport = (uint16_t)item->key,
			.ttl = (uint8_t)item->mark,
			.tcp_seq = item->id,
			.proto = item->left ? 6 : 17 };
		d[k++] = (struct pl_dns64){
			.ts_ns = item->ts, .qtype = (uint16_t)item->key, .name_hash = item->id
		};
	}
	if (k > 0)
		pl_query_feed(r, packets ? PL_FLAT_PKT64 : PL_FLAT_DNS64,
			packets ? (const void *)p : (const void *)d, k, 0);
}

/* Feeds batches. An item is late by the records of earlier batches, of both streams. */
static void feed_all(struct pl_query_run *r, const struct question *q)
{
	int64_t greatest[2] = { -1, -1 };

	for (unsigned int at = 0; at < n_items;) {
		const struct item *batch[RECORDS];
		unsigned int n = 0, most = 1 + below(12);

		while (n < most && at < n_items)
			batch[n++] = &items[order[at++]];
		/* A batch is of one stream. */
		for (unsigned int dns = 0; dns < 2; dns++) {
			int64_t mark = greatest[0];

			if (q->dns && greatest[1] < mark)
				mark = greatest[1];
			for (unsigned int i = 0; i < n; i++) {
				struct item *item = &items[batch[i] - items];

				if ((q->dns && !item->left) != (dns == 1))
					continue;
				item->late = mark >= 0 &&
					     (int64_t)item->ts < mark - (int64_t)q->lateness;
			}
			for (unsigned int i = 0; i < n; i++) {
				if ((q->dns && !batch[i]->left) == (dns == 1) &&
					(int64_t)batch[i]->ts > greatest[dns])
					greatest[dns] = (int64_t)batch[i]->ts;
			}
			feed(r, q, batch, n, dns == 0);
		}
	}
}

static bool run(const struct question *q, struct rows *to, uint32_t max_groups)
{
	const struct pl_query_config config = {
		.max_groups = max_groups, .seed = pl_rng_u64(&rng), .lateness_ns = q->lateness
	};
	struct pl_query *query = NULL;
	struct pl_diag diag = { 0 };
	struct pl_query_run *r;

	to->n = 0;
	if (pl_query_parse(&query, q->text, &diag) < 0 ||
		pl_query_run_new(&r, query, &config, sink, to, &diag) < 0) {
		printf("# %s\n# %u: %s\n", q->text, diag.column, diag.text);
		pl_query_free(query);
		return false;
	}
	feed_all(r, q);
	pl_query_finish(r);
	stats = *pl_query_run_stats(r);
	pl_query_run_free(r);
	pl_query_free(query);
	return true;
}

/* ---- what they have in common ---- */

static int by_value(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return memcmp(x->v, y->v, sizeof(x->v));
}

static bool same(const struct rows *a, const struct rows *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned int i = 0; i < a->n; i++) {
		if (by_value(&a->r[i], &b->r[i]) != 0)
			return false;
	}
	return true;
}

static bool has(const struct rows *rows, const struct row *row)
{
	for (unsigned int i = 0; i < rows->n; i++) {
		if (by_value(&rows->r[i], row) == 0)
			return true;
	}
	return false;
}

static bool ordered(const struct rows *rows)
{
	for (unsigned int i = 1; i < rows->n; i++) {
		if (rows->r[i].v[0] < rows->r[i - 1].v[0])
			return false;
	}
	return true;
}

static unsigned int late_items(const struct question *q)
{
	unsigned int n = 0;

	/* Filtered ones are not looked at; the pushed part of WHERE is a filter. */
	for (unsigned int i = 0; i < n_items; i++)
		n += items[i].late && !(q->marked && items[i].left && items[i].mark <= 1);
	return n;
}

static void test_pairs(unsigned int rounds)
{
	unsigned int refused = 0, differ = 0, rows = 0, late = 0, late_differ = 0, unordered = 0,
		     moved = 0, orders = 0;

	for (unsigned int round = 0; round < rounds; round++) {
		struct question q;

		make_items(round % 3 == 0 ? 25 : 1);
		make_question(&q, round % 3 == 0 ? 25 : 1);
		make_text(&q);
		make_order(q.reach);
		if (!run(&q, &got, 1024)) {
			refused++;
			continue;
		}
		expect(&q);
		late += late_items(&q);
		late_differ += stats.late != late_items(&q);
		rows += want.n;
		unordered += !q.grouped && !ordered(&got);
		if (q.reach <= q.lateness) {
			make_order(q.reach);
			run(&q, &again, 512);
			orders++;
			moved += !q.grouped && !same(&got, &again);
		}
		qsort(got.r, got.n, sizeof(got.r[0]), by_value);
		qsort(want.r, want.n, sizeof(want.r[0]), by_value);
		if (!same(&got, &want) && differ++ < 3)
			printf("# round %u: %u rows, wanted %u: %s\n", round, got.n, want.n,
				q.text);
	}
	eq(refused, 0, "every join is understood");
	eq(differ, 0, "rows are those of the loops");
	eq(late_differ, 0, "late records are counted");
	eq(unordered, 0, "rows are in the order of the left records");
	eq(moved, 0, "rows and their order do not depend on the order of records");
	ok(rows > 30000 && late > 1000 && orders > 1000, "%u rows, %u late, %u again", rows, late,
		orders);
}

/* With room for few records, rows that are not marked are right. */
static void test_bound(void)
{
	unsigned int wrong = 0, counted = 0, marked = 0, unmarked = 0, silent = 0;

	for (unsigned int round = 0; round < 1200; round++) {
		struct question q;

		make_items(round % 3 == 0 ? 25 : 1);
		make_question(&q, round % 3 == 0 ? 25 : 1);
		make_text(&q);
		make_order(q.lateness);
		if (!run(&q, &got, 8))
			continue;
		expect(&q);
		counted += stats.held_refused > 0;
		for (unsigned int i = 0; i < got.n; i++) {
			const bool right = has(&want, &got.r[i]);

			marked += got.r[i].incomplete;
			unmarked += !got.r[i].incomplete;
			if (!got.r[i].incomplete && !right && wrong++ < 3)
				printf("# round %u: row %d %d of %d: %s\n", round, got.r[i].v[0],
					got.r[i].v[1], (int)got.r[i].start, q.text);
		}
		silent += stats.held_refused + stats.groups_refused == 0 && got.n != want.n;
	}
	eq(wrong, 0, "rows that are not marked are right");
	eq(silent, 0, "what is left out is counted");
	ok(counted > 300 && marked > 300 && unmarked > 300, "%u runs, %u rows marked, %u not",
		counted, marked, unmarked);
}

static void count_pairs(void *arg, const struct pl_query_row *row)
{
	uint64_t *sum = arg;

	*sum += row->values[0].u;
}

/* Sources may have clocks of their own: that of a topic is when the broker took a message. One behind
 * that of the records that wait leaves none of their pairs out. */
static void test_clocks(void)
{
	static const char text[] =
		"SELECT count(*) AS n FROM packets TUMBLE(ts, 100ns) AS a JOIN (SELECT * FROM packets "
		"WHERE proto = 17) AS b ON a.sport = b.sport WITHIN 10ns WHERE a.proto = 6";
	const struct pl_query_config config = {
		.max_groups = 64, .partitions = 2, .idle_ns = 100, .ahead_ns = 10
	};
	const struct pl_pkt64 now[] = { { .ts_ns = 5000, .sport = 1, .proto = 6 },
		{ .ts_ns = 5001, .sport = 1, .proto = 17 } };
	const struct pl_pkt64 old = { .ts_ns = 1000, .sport = 2, .proto = 6 };
	struct pl_query *query = NULL;
	struct pl_diag diag = { 0 };
	struct pl_query_run *r;
	uint64_t n = 0;

	if (!ok(pl_query_parse(&query, text, &diag) == 0 &&
			    pl_query_run_new(&r, query, &config, count_pairs, &n, &diag) == 0,
		    "a join of two sources: %s", diag.text))
		return;
	pl_query_clock(r, 5001);
	pl_query_feed(r, PL_FLAT_PKT64, now, 2, 0);
	pl_query_clock(r, 1000);
	pl_query_feed(r, PL_FLAT_PKT64, &old, 1, 1);
	for (uint64_t at = 5000; at < 7000; at += 50)
		pl_query_advance(r, at);
	pl_query_finish(r);
	eq(n, 1, "a clock that is behind leaves no pair out");
	pl_query_run_free(r);
	pl_query_free(query);
}

int main(int argc, char **argv)
{
	pl_rng_seed(&rng, pl_test_seed(argc, argv, 41));
	test_pairs(pl_test_rounds(argc, argv, 4000));
	test_bound();
	test_clocks();
	return pl_test_done();
}
