/* SPDX-License-Identifier: BSD-2-Clause */
/* SESSION windows: when they begin, end, become one, and what is counted where there is no room. */
#include <errno.h>

#include "base/test.h"
#include "query/query.h"

#define MS INT64_C(1000000)

struct seen {
	unsigned int n;
	struct pl_query_row rows[32];
	uint64_t values[32][2];
};

static void sink(void *arg, const struct pl_query_row *row)
{
	struct seen *seen = arg;

	if (seen->n == 32)
		return;
	seen->rows[seen->n] = *row;
	for (uint32_t i = 0; i < row->n && i < 2; i++)
		seen->values[seen->n][i] = row->values[i].u;
	seen->n++;
}

struct fixture {
	struct pl_query *query;
	struct pl_query_run *run;
	struct seen seen;
};

static bool begin(struct fixture *f, const char *text, uint32_t groups, uint64_t lateness_ms)
{
	const struct pl_query_config config = { .max_groups = groups,
		.lateness_ns = lateness_ms > 0 ? lateness_ms * MS : PL_QUERY_NO_LATENESS };
	struct pl_diag diag = { 0 };
	bool good;

	memset(f, 0, sizeof(*f));
	good = ok(pl_query_parse(&f->query, text, &diag) == 0, "%s", text) &&
	       ok(pl_query_run_new(&f->run, f->query, &config, sink, &f->seen, &diag) == 0);
	if (!good)
		printf("# %u: %s\n", diag.column, diag.text);
	return good;
}

static void end(struct fixture *f)
{
	pl_query_run_free(f->run);
	pl_query_free(f->query);
}

static void feed(struct fixture *f, int64_t ms, uint16_t port)
{
	struct pl_pkt64 p = { .ts_ns = (uint64_t)(ms * MS), .sport = port, .dport = port };

	pl_query_feed(f->run, PL_FLAT_PKT64, &p, 1, 0);
}

static void is_row(const struct fixture *f, unsigned int i, uint64_t port, uint64_t n,
	int64_t start_ms, int64_t end_ms)
{
	const struct pl_query_row *row = &f->seen.rows[i];

	if (!ok(i < f->seen.n, "there is row %u", i))
		return;
	eq(f->seen.values[i][0], port, "the key");
	eq(f->seen.values[i][1], n, "its count");
	eq(row->start_ns, start_ms * MS, "the first record");
	eq(row->end_ns, end_ms * MS, "a gap behind the last one");
	ok(row->windowed);
}

#define COUNTS "SELECT dport, count(*) AS n FROM packets SESSION(ts, 10ms) GROUP BY dport"

static void test_gaps(void)
{
	struct fixture f;

	if (!begin(&f, COUNTS, 16, 0))
		return;
	feed(&f, 100, 1);
	feed(&f, 109, 1);
	feed(&f, 110, 2);
	feed(&f, 118, 1);
	eq(f.seen.n, 0, "each less than the gap behind the one before");
	feed(&f, 128, 3);
	eq(f.seen.n, 2, "two keys had none for the gap");
	is_row(&f, 0, 2, 1, 110, 120);
	is_row(&f, 1, 1, 3, 100, 128);
	feed(&f, 128, 1);
	pl_query_finish(f.run);
	eq(f.seen.n, 4, "a record the whole gap later began another session");
	eq(pl_query_run_stats(f.run)->windows, 4);
	ok(f.seen.rows[3].final && !f.seen.rows[3].incomplete);
	end(&f);
}

static void test_disorder(void)
{
	struct fixture f;

	if (!begin(&f, COUNTS, 16, 100))
		return;
	feed(&f, 200, 1);
	feed(&f, 215, 1);
	feed(&f, 230, 1);
	feed(&f, 222, 1); /* between the second and the third */
	feed(&f, 194, 1); /* before the first */
	feed(&f, 299, 2);
	feed(&f, 300, 2);
	feed(&f, 189, 3); /* its end is before the watermark of 200 */
	eq(pl_query_run_stats(f.run)->late, 1, "late");
	feed(&f, 186, 1); /* so is that of this one, but an open session takes it in */
	eq(pl_query_run_stats(f.run)->late, 1);
	feed(&f, 310, 2);
	eq(f.seen.n, 1, "the watermark is at the end of the first session");
	is_row(&f, 0, 1, 3, 186, 210);
	pl_query_finish(f.run);
	eq(f.seen.n, 4);
	is_row(&f, 1, 1, 3, 215, 240);
	is_row(&f, 2, 2, 2, 299, 310);
	is_row(&f, 3, 2, 1, 310, 320);
	end(&f);
}

static void test_first(void)
{
	struct fixture f;

	if (!begin(&f, COUNTS " HAVING n >= 4 EMIT FIRST", 16, 100))
		return;
	feed(&f, 100, 1);
	feed(&f, 101, 1);
	feed(&f, 115, 1);
	eq(f.seen.n, 0);
	feed(&f, 108, 1); /* joins two sessions, and so makes four */
	eq(f.seen.n, 1, "told at once");
	ok(!f.seen.rows[0].final);
	is_row(&f, 0, 1, 4, 100, 125);
	feed(&f, 116, 1);
	eq(f.seen.n, 1, "and once");
	pl_query_finish(f.run);
	eq(f.seen.n, 2);
	ok(f.seen.rows[1].final);
	is_row(&f, 1, 1, 5, 100, 126);
	end(&f);
}

static void test_no_room(void)
{
	struct fixture f;

	if (!begin(&f, COUNTS, 2, 0))
		return;
	feed(&f, 100, 1);
	feed(&f, 101, 2);
	feed(&f, 102, 3);
	eq(pl_query_run_stats(f.run)->groups_refused, 1, "there is no room for a third session");
	feed(&f, 130, 3); /* of those of this record the sessions end behind it */
	eq(pl_query_run_stats(f.run)->groups_refused, 2);
	feed(&f, 131, 2);
	feed(&f, 132, 3);
	pl_query_finish(f.run);
	eq(f.seen.n, 4);
	ok(f.seen.rows[0].incomplete && f.seen.rows[1].incomplete, "those of that time say so");
	ok(!f.seen.rows[2].incomplete && !f.seen.rows[3].incomplete, "and no others");
	end(&f);

	if (!begin(&f,
		    "SELECT dport, count(distinct sport) FROM packets SESSION(ts, 10ms) "
		    "WHERE tcp or not tcp GROUP BY dport",
		    2, 0))
		return;
	for (unsigned int i = 0; i < 100; i++)
		feed(&f, 1000 + 20 * (int64_t)i, (uint16_t)i);
	pl_query_finish(f.run);
	eq(f.seen.n, 32, "the room of sessions that ended is used again");
	eq(pl_query_run_stats(f.run)->groups_refused, 0);
	end(&f);
}

static void test_idle(void)
{
	struct fixture f;

	if (!begin(&f, COUNTS, 16, 0))
		return;
	pl_query_advance(f.run, 1);
	feed(&f, 100, 1);
	pl_query_advance(f.run, (uint64_t)(6000 * MS));
	eq(f.seen.n, 1, "a session ends when nothing comes any more");
	pl_query_finish(f.run);
	eq(f.seen.n, 1);
	end(&f);
}

int main(void)
{
	test_gaps();
	test_disorder();
	test_first();
	test_no_room();
	test_idle();
	return pl_test_done();
}
