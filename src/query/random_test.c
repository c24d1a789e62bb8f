/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random queries over random records, against a second evaluation that shares nothing with the
 * engine: a record at a time, from the written tree, in 128-bit numbers, groups in a plain list,
 * windows by their definition, sessions as lists of records. Rows are compared as sorted texts,
 * exactly. usage: random_test [SEED|today [ROUNDS]]
 */
#include "query/random_test.h"

#define RECORDS   600
#define FEEDS_MAX 64

/* ---- rows as texts ---- */

struct text_rows {
	char *rows[20000];
	unsigned int n;
	bool out_of_order;
	int64_t last_end;
};

static void put_value(char **to, struct value v)
{
	char addr[64];

	if (v.absent) {
		*to += sprintf(*to, " absent");
	} else if (v.kind == D) {
		*to += sprintf(*to, " %a", v.d == 0 ? 0 : v.d);
	} else if (v.kind == A) {
		for (int i = 0; i < 16; i++)
			sprintf(addr + (ptrdiff_t)2 * i, "%02x", v.a.b[i]);
		*to += sprintf(*to, " %s", addr);
	} else if (v.i < 0) {
		*to += sprintf(*to, " -%" PRIu64, (uint64_t)-v.i);
	} else {
		*to += sprintf(*to, " %" PRIu64, (uint64_t)v.i);
	}
}

static void add_row(struct text_rows *rows, const char *text)
{
	if (rows->n < sizeof(rows->rows) / sizeof(rows->rows[0]))
		rows->rows[rows->n++] = strdup(text);
}

static void sink(void *arg, const struct pl_query_row *row)
{
	struct text_rows *rows = arg;
	char text[4096], *to = text;

	to += sprintf(to, "%" PRId64 "-%" PRId64 ":", row->start_ns, row->end_ns);
	for (uint32_t i = 0; i < row->n; i++) {
		const struct pl_query_value *v = &row->values[i];
		struct value made = { .absent = v->absent };

		switch (v->type) {
		case PL_QUERY_UNSIGNED:
			made.i = v->u;
			break;
		case PL_QUERY_SIGNED:
			made.i = v->i;
			break;
		case PL_QUERY_DOUBLE:
			made.kind = D;
			made.d = v->d;
			break;
		case PL_QUERY_BOOL:
			made.i = v->b;
			break;
		default:
			made.kind = A;
			made.a = v->addr;
			break;
		}
		put_value(&to, made);
	}
	to += sprintf(to, " from %" PRIu64, row->first_ns);
	for (uint32_t i = 0; i < row->n_exp; i++)
		to += sprintf(to, ",%u", row->exp[i]);
	sprintf(to, "%s", row->exp_more ? "+" : "");
	rows->out_of_order = rows->out_of_order || row->end_ns < rows->last_end;
	rows->last_end = row->end_ns;
	add_row(rows, text);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool same_rows(struct text_rows *got, struct text_rows *want)
{
	bool same = got->n == want->n;

	qsort(got->rows, got->n, sizeof(*got->rows), by_text);
	qsort(want->rows, want->n, sizeof(*want->rows), by_text);
	for (unsigned int i = 0; i < got->n && i < want->n; i++) {
		if (strcmp(got->rows[i], want->rows[i]) == 0)
			continue;
		if (same || i == 0)
			printf("# got    %s\n# wanted %s\n", got->rows[i], want->rows[i]);
		same = false;
		break;
	}
	if (got->n != want->n)
		printf("# %u rows, wanted %u\n", got->n, want->n);
	return same;
}

static void forget(struct text_rows *rows)
{
	for (unsigned int i = 0; i < rows->n; i++)
		free(rows->rows[i]);
	*rows = (struct text_rows){ .last_end = INT64_MIN };
}

/* ---- a query ---- */

enum agg { COUNT, COUNT_OF, DISTINCT, DISTINCT_2, SUM, MIN, MAX, AVG, BIT_OR, FIRST, LAST, AGGS };

struct item {
	enum agg agg;
	const struct expr *arg, *arg2;
};

struct query {
	const struct expr *where;
	unsigned int n_keys, n_items;
	const struct expr *keys[3];
	bool by_src;
	struct item items[4];
	bool has_having;
	char having;
	uint64_t threshold;
	int64_t size, step; /* 0: no windows */
	bool session;       /* of the gap `size` */
	bool distinct;      /* SELECT DISTINCT: keys, no items */
	char text[16384];
};

static bool sums_exactly(const struct query *q, const struct expr *e)
{
	return e->kind != D || (q->size == q->step && !q->session);
}

static void make_query(struct query *q)
{
	static const char *const names[] = { "count(*", "count(", "count(distinct ",
		"count(distinct ", "sum(", "min(", "max(", "avg(", "bit_or(", "first(", "last(" };
	char *to = q->text;

	pl_random_forget();
	*q = (struct query){ .where = below(4) ? pl_random_condition(3) : NULL,
		.n_keys = below(3),
		.by_src = below(2) };
	if (below(4) > 0) {
		q->step = (int64_t)(1 + below(40)) * 10;
		q->size = q->step * (below(2) ? 1 : 1 + below(4)) + (below(4) ? 0 : below(3) * 10);
		if (q->size > q->step && below(2))
			q->size += 5;
		if (below(3) == 0) {
			q->session = true;
			q->size = q->step = 1 + below(q->step > 200 ? 60 : 8);
		}
	}
	q->distinct = q->n_keys > 0 && below(10) == 0;
	to += sprintf(to, q->distinct ? "SELECT DISTINCT " : "SELECT ");
	for (unsigned int i = 0; i < q->n_keys; i++) {
		q->keys[i] = pl_random_number(below(3) == 0 ? 2 : 0);
		while (q->keys[i]->op == 'k')
			q->keys[i] = pl_random_number(1);
		pl_random_print(&to, q->keys[i]);
		to += sprintf(to, " AS k%u, ", i);
	}
	if (q->by_src)
		to += sprintf(to, "src, ");
	if (q->distinct)
		to -= 2; /* the last comma */
	q->n_items = q->distinct ? 0 : 1 + below(4);
	for (unsigned int i = 0; i < q->n_items; i++) {
		struct item *item = &q->items[i];

		item->agg = i == 0 ? COUNT : (enum agg)below(AGGS);
		to += sprintf(to, "%s%s", i == 0 ? "" : ", ", names[item->agg]);
		if (item->agg != COUNT) {
			do
				item->arg = pl_random_number(2);
			while ((item->agg == BIT_OR && item->arg->kind != U) ||
				((item->agg == SUM || item->agg == AVG) &&
					!sums_exactly(q, item->arg)));
			pl_random_print(&to, item->arg);
		}
		if (item->agg == DISTINCT_2) {
			item->arg2 = pl_random_number(1);
			to += sprintf(to, ", ");
			pl_random_print(&to, item->arg2);
		}
		to += sprintf(to, ") AS a%u", i);
	}
	to += sprintf(to, " FROM packets");
	if (q->session)
		to += sprintf(to, " SESSION(ts, %" PRId64 "ns)", q->size);
	else if (q->size > 0 && q->size == q->step)
		to += sprintf(to, " TUMBLE(ts, %" PRId64 "ns)", q->size);
	else if (q->size > 0)
		to += sprintf(to, " HOP(ts, %" PRId64 "ns, %" PRId64 "ns)", q->size, q->step);
	if (q->where != NULL) {
		to += sprintf(to, " WHERE ");
		pl_random_print(&to, q->where);
	}
	for (unsigned int i = 0; i < q->n_keys + q->by_src && !q->distinct; i++) {
		to += sprintf(to, "%s", i == 0 ? " GROUP BY " : ", ");
		if (i < q->n_keys)
			pl_random_print(&to, q->keys[i]);
		else
			to += sprintf(to, "src");
	}
	q->has_having = !q->distinct && below(2);
	q->having = "<>g"[below(3)];
	q->threshold = 1 + below(4);
	if (q->has_having)
		sprintf(to, " HAVING a0 %s %" PRIu64,
			q->having == 'g' ? ">=" : (char[]){ q->having, 0 }, q->threshold);
}

/* ---- the second evaluation ---- */

struct record {
	struct pl_pkt64 p;
	unsigned int feed, partition;
	int64_t closed; /* watermark when it came */
};

static struct record records[RECORDS];
static unsigned int n_records;

/* The observation points that come first: a run tells that many apart. */
static uint16_t points[PL_QUERY_EXP_MAX];
static unsigned int n_points;

static void number_point(const struct record *r)
{
	const uint16_t point = r->p.obs & PL_OBS_POINT_MASK;
	bool known = n_points == PL_QUERY_EXP_MAX;

	for (unsigned int i = 0; i < n_points; i++)
		known = known || points[i] == point;
	if (!known)
		points[n_points++] = point;
}

/* Writes the origin of a row: the earliest time of its records, and their points. */
static void put_origin(char *to, const struct record **in, unsigned int n)
{
	uint64_t first = UINT64_MAX;
	unsigned int others = 0;

	for (unsigned int i = 0; i < n; i++)
		first = in[i]->p.ts_ns < first ? in[i]->p.ts_ns : first;
	to += sprintf(to, " from %" PRIu64, first);
	for (unsigned int point = 0; point <= PL_OBS_POINT_MASK; point++) {
		bool there = false, numbered = false;

		for (unsigned int i = 0; i < n; i++)
			there = there || (in[i]->p.obs & PL_OBS_POINT_MASK) == point;
		for (unsigned int i = 0; i < n_points; i++)
			numbered = numbered || points[i] == point;
		if (there && numbered)
			to += sprintf(to, ",%u", point);
		others += there && !numbered;
	}
	sprintf(to, "%s", others > 0 ? "+" : "");
}

static bool same_value(struct value a, struct value b)
{
	if (a.absent || b.absent)
		return a.absent == b.absent;
	return a.kind == D ? a.d == b.d : a.kind == A ? memcmp(&a.a, &b.a, 16) == 0 : a.i == b.i;
}

/* Over the records `in`, n of them, which are those of a group in a window. */
static struct value aggregate(const struct item *item, const struct record **in, unsigned int n)
{
	struct value seen[2][RECORDS], total = { 0 }, v;
	const struct record *best = NULL;
	unsigned int n_seen = 0;

	if (item->agg == COUNT)
		return whole(U, n);
	for (unsigned int i = 0; i < n; i++) {
		struct value w = { 0 };
		bool known = false;

		v = pl_random_evaluate(item->arg, &in[i]->p);
		if (item->arg2 != NULL)
			w = pl_random_evaluate(item->arg2, &in[i]->p);
		if (v.absent || w.absent)
			continue;
		for (unsigned int k = 0;
			k < n_seen && (item->agg == DISTINCT || item->agg == DISTINCT_2); k++)
			known = known || (same_value(seen[0][k], v) && same_value(seen[1][k], w));
		if (known)
			continue;
		seen[0][n_seen] = v;
		seen[1][n_seen++] = w;
		if (item->agg == SUM || item->agg == AVG) {
			total.i += v.i;
			total.d += v.d;
		} else if (item->agg == BIT_OR) {
			total.i |= v.i;
		} else if (n_seen == 1 || (item->agg == MIN && pl_random_compared('<', v, total)) ||
			   (item->agg == MAX && pl_random_compared('>', v, total)) ||
			   (item->agg == FIRST && in[i]->p.ts_ns < best->p.ts_ns) ||
			   (item->agg == LAST && in[i]->p.ts_ns >= best->p.ts_ns)) {
			total = v;
			best = in[i];
		}
	}
	switch (item->agg) {
	case COUNT_OF:
	case DISTINCT:
	case DISTINCT_2:
		return whole(U, n_seen);
	case BIT_OR:
		return whole(U, total.i);
	case SUM:
		if (n_seen == 0)
			return absent(item->arg->kind);
		return item->arg->kind == D ? real(total.d) : whole(item->arg->kind, total.i);
	case AVG:
		if (n_seen == 0)
			return absent(D);
		return real((item->arg->kind == D ? total.d : (double)total.i) / (double)n_seen);
	default:
		return n_seen == 0 ? absent(item->arg->kind) : total;
	}
}

/* The row of a group, which are the records `in`, when HAVING is true of it. */
static void group_row(const struct query *q, const struct value *keys, const struct record **in,
	unsigned int n, int64_t start, int64_t end, struct text_rows *rows)
{
	char text[4096], *to = text;

	if (q->has_having && !pl_random_compared(q->having, whole(U, n), whole(U, q->threshold)))
		return;
	to += sprintf(to, "%" PRId64 "-%" PRId64 ":", start, end);
	for (unsigned int k = 0; k < q->n_keys + q->by_src; k++)
		put_value(&to, keys[k]);
	for (unsigned int k = 0; k < q->n_items; k++)
		put_value(&to, aggregate(&q->items[k], in, n));
	put_origin(to, in, n);
	add_row(rows, text);
}

static void keys_of(const struct query *q, const struct record *r, struct value keys[4])
{
	for (unsigned int k = 0; k < q->n_keys; k++)
		keys[k] = pl_random_evaluate(q->keys[k], &r->p);
	if (q->by_src)
		keys[q->n_keys] = (struct value){ .kind = A, .a = r->p.src };
}

static void window_rows(const struct query *q, const struct record **in, unsigned int n,
	int64_t start, int64_t end, struct text_rows *rows)
{
	static struct value keys[RECORDS][4];
	static bool done[RECORDS];
	unsigned int n_keys = q->n_keys + q->by_src;

	for (unsigned int i = 0; i < n; i++) {
		done[i] = false;
		keys_of(q, in[i], keys[i]);
	}
	for (unsigned int i = 0; i < n; i++) {
		const struct record *group[RECORDS];
		unsigned int members = 0;

		if (done[i])
			continue;
		for (unsigned int j = i; j < n; j++) {
			bool same = !done[j];

			for (unsigned int k = 0; k < n_keys; k++)
				same = same && same_value(keys[i][k], keys[j][k]);
			if (same) {
				group[members++] = in[j];
				done[j] = true;
			}
		}
		group_row(q, keys[i], group, members, start, end, rows);
	}
}

/* Sessions: each record in the order in which they came, with the watermark of then. A session is
 * the set of records whose number in `of` is its own. */
static uint64_t session_rows(
	const struct query *q, const struct record **in, unsigned int n, struct text_rows *rows)
{
	static struct value keys[RECORDS][4];
	static unsigned int of[RECORDS];
	static int64_t first[RECORDS], last[RECORDS];
	const unsigned int n_keys = q->n_keys + q->by_src;
	uint64_t late = 0;

	for (unsigned int i = 0; i < n; i++) {
		const int64_t ts = (int64_t)in[i]->p.ts_ns;
		bool found = false;

		keys_of(q, in[i], keys[i]);
		first[i] = last[i] = ts;
		of[i] = i;
		for (unsigned int j = 0; j < i; j++) {
			const unsigned int s = of[j];
			bool same = s != UINT32_MAX && s != i;

			for (unsigned int k = 0; k < n_keys; k++)
				same = same && same_value(keys[i][k], keys[j][k]);
			/* It is open still, and less than the gap away. */
			if (!same || last[s] + q->size <= in[i]->closed ||
				ts <= first[s] - q->size || ts >= last[s] + q->size)
				continue;
			found = true;
			first[i] = first[s] < first[i] ? first[s] : first[i];
			last[i] = last[s] > last[i] ? last[s] : last[i];
			for (unsigned int m = 0; m < i; m++)
				of[m] = of[m] == s ? i : of[m];
		}
		if (!found && ts + q->size <= in[i]->closed) {
			of[i] = UINT32_MAX;
			late++;
		} else {
			number_point(in[i]);
		}
	}
	for (unsigned int s = 0; s < n; s++) {
		const struct record *group[RECORDS];
		unsigned int members = 0;

		for (unsigned int i = 0; i < n; i++) {
			if (of[i] == s)
				group[members++] = in[i];
		}
		if (members > 0)
			group_row(q, keys[s], group, members, first[s], last[s] + q->size, rows);
	}
	return late;
}

static uint64_t evaluate_query(const struct query *q, struct text_rows *rows)
{
	static const struct record *passed[RECORDS], *in[RECORDS];
	unsigned int n_passed = 0, n;
	int64_t least = INT64_MAX, greatest = 0;
	uint64_t late = 0;

	n_points = 0;
	for (unsigned int i = 0; i < n_records; i++) {
		const struct record *r = &records[i];
		int64_t ts = (int64_t)r->p.ts_ns;

		if (q->where != NULL && !pl_random_evaluate(q->where, &r->p).i)
			continue;
		passed[n_passed++] = r;
		least = ts < least ? ts : least;
		greatest = ts > greatest ? ts : greatest;
		/* Late: every window that holds it ended before. */
		if (q->size > 0 && ts / q->step * q->step + q->size <= r->closed)
			late++;
		else if (!q->session)
			number_point(r);
	}
	if (q->size == 0) {
		window_rows(q, passed, n_passed, 0, 0, rows);
		return 0;
	}
	if (n_passed == 0)
		return 0;
	if (q->session)
		return session_rows(q, passed, n_passed, rows);
	for (int64_t start = (least / q->step - q->size / q->step - 2) * q->step; start <= greatest;
		start += q->step) {
		n = 0;
		for (unsigned int i = 0; i < n_passed; i++) {
			int64_t ts = (int64_t)passed[i]->p.ts_ns;

			if (ts >= start && ts < start + q->size &&
				start + q->size > passed[i]->closed)
				in[n++] = passed[i];
		}
		window_rows(q, in, n, start, start + q->size, rows);
	}
	return late;
}

/* ---- records ---- */

static struct pl_addr random_addr(void)
{
	uint8_t v4[4] = { 10, 0, 0, (uint8_t)below(7) },
		v6[16] = { 0xfd, [15] = (uint8_t)below(3) };

	if (below(8) == 0)
		v4[0] = 192;
	return below(4) ? pl_addr_v4(v4) : pl_addr_v6(v6);
}

static void make_records(unsigned int partitions, int64_t lateness)
{
	static const uint8_t protos[] = { 6, 6, 6, 17, 1, 58 },
			     flags[] = { 2, 18, 16, 1, 4, 17, 0xc2, 24 };
	int64_t now = 1000 + below(100), greatest[4], least = INT64_MIN;
	unsigned int feed = 0, left = 0, partition = 0, spread = 1 + below(400);

	n_records = below(10) == 0 ? 0 : 1 + below(RECORDS - 1);
	for (unsigned int i = 0; i < 4; i++)
		greatest[i] = INT64_MIN;
	for (unsigned int i = 0; i < n_records; i++) {
		struct record *r = &records[i];

		if (left-- == 0) {
			/* The watermark moves between feeds. */
			int64_t goal = INT64_MAX;

			for (unsigned int k = 0; k < partitions; k++) {
				int64_t mark = greatest[k] == INT64_MIN ? INT64_MIN
									: greatest[k] - lateness;

				goal = mark < goal ? mark : goal;
			}
			least = goal > least ? goal : least;
			left = below(60);
			partition = below(partitions);
			feed++;
		}
		now += below(4) == 0 ? below(60) : 0;
		*r = (struct record){ .feed = feed, .partition = partition, .closed = least };
		r->p = (struct pl_pkt64){ .src = random_addr(),
			.dst = random_addr(),
			.ts_ns = (uint64_t)(now > (int64_t)spread ? now - below(spread) : now),
			.sport = (uint16_t)below(4),
			.dport = (uint16_t)(below(3) ? below(5) : below(65536)),
			.proto = protos[below(6)],
			.ttl = (uint8_t)(below(2) ? 64 : below(256)),
			.tcp_seq = (uint32_t)pl_rng_u64(&pl_random),
			.wire_len = (uint16_t)below(1501),
			.obs = (uint16_t)(below(4) ? below(2) : below(65536)) };
		if (r->p.proto == 6)
			r->p.tcp_flags = flags[below(8)];
		if ((int64_t)r->p.ts_ns > greatest[partition])
			greatest[partition] = (int64_t)r->p.ts_ns;
	}
}

static uint64_t run_query(const struct pl_query *query, unsigned int partitions, int64_t lateness,
	struct text_rows *rows)
{
	struct pl_query_config config = { .max_groups = 16384,
		.max_windows = 4096,
		.partitions = partitions,
		.lateness_ns = lateness == 0 ? PL_QUERY_NO_LATENESS : (uint64_t)lateness,
		.seed = pl_rng_u64(&pl_random) };
	static struct pl_pkt64 batch[RECORDS];
	struct pl_query_run *run;
	uint64_t late;

	if (pl_query_run_new(&run, query, &config, sink, rows, NULL) < 0)
		return UINT64_MAX;
	for (unsigned int i = 0; i < n_records;) {
		unsigned int n = 0, first = i;

		for (; i < n_records && records[i].feed == records[first].feed; i++)
			batch[n++] = records[i].p;
		pl_query_feed(run, PL_FLAT_PKT64, batch, n, records[first].partition);
	}
	pl_query_finish(run);
	late = pl_query_run_stats(run)->late;
	pl_query_run_free(run);
	return late;
}

int main(int argc, char **argv)
{
	const uint64_t seed = pl_test_seed(argc, argv, 20181);
	const unsigned int rounds = pl_test_rounds(argc, argv, 3000);
	unsigned int refused = 0, differ = 0;
	unsigned int unlike_late = 0, disorder = 0;
	uint64_t all_rows = 0, all_late = 0;
	static struct text_rows got, want;
	static struct query q;

	pl_rng_seed(&pl_random, seed);
	for (unsigned int round = 0; round < rounds; round++) {
		unsigned int partitions = 1 + below(3);
		int64_t lateness = below(3) ? below(300) : 0;
		struct pl_diag diag = { 0 };
		struct pl_query *query;
		uint64_t late, want_late;

		make_query(&q);
		if (pl_query_parse(&query, q.text, &diag) < 0) {
			printf("# refused: %s\n# %u: %s\n", q.text, diag.column, diag.text);
			refused++;
			continue;
		}
		make_records(partitions, lateness);
		forget(&got);
		forget(&want);
		late = run_query(query, partitions, lateness, &got);
		want_late = evaluate_query(&q, &want);
		all_rows += want.n;
		all_late += want_late;
		disorder += got.out_of_order;
		if (!same_rows(&got, &want)) {
			if (differ++ < 5)
				printf("# round %u: %s\n", round, q.text);
		} else if (late != want_late) {
			unlike_late++;
			printf("# %" PRIu64 " late, wanted %" PRIu64 ": %s\n", late, want_late,
				q.text);
		}
		pl_query_free(query);
	}
	forget(&got);
	forget(&want);
	eq(refused, 0, "every generated query is understood");
	eq(differ, 0, "the rows are those of the plain evaluation");
	eq(unlike_late, 0, "late records are counted");
	eq(disorder, 0, "windows close in order");
	ok(all_rows > rounds * 5u && all_late > rounds,
		"there was something to compare: %" PRIu64 " rows, %" PRIu64 " late", all_rows,
		all_late);
	return pl_test_done();
}
