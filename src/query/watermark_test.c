/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watermarks: partitions that are never seen, that nobody has, and that end; old records replayed; and
 * random records out of order in several partitions, against a model that goes through all of them for
 * each one. usage: watermark_test [SEED [ROUNDS]]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

#define MS       UINT64_C(1000000)
#define SECOND   (1000 * MS)
#define YEAR     (365 * 24 * 3600 * SECOND)
#define ROWS_MAX 512

struct row {
	int64_t start;
	uint64_t n, late;
};

static struct row rows[ROWS_MAX];
static uint32_t n_rows;
static struct pl_query *query;
static struct pl_query_run *run;

static void sink(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	if (n_rows < ROWS_MAX)
		rows[n_rows] = (struct row){ row->start_ns, row->values[0].u, row->late };
	n_rows++;
}

static bool restarts;

static void begin(const char *text, uint32_t partitions, uint64_t lateness_ns, uint64_t idle_ns)
{
	const struct pl_query_config config = { .max_groups = 64,
		.partitions = partitions,
		.lateness_ns = lateness_ns > 0 ? lateness_ns : PL_QUERY_NO_LATENESS,
		.idle_ns = idle_ns,
		.restarts = restarts };

	n_rows = 0;
	if (pl_query_parse(&query, text, NULL) < 0 ||
		pl_query_run_new(&run, query, &config, sink, NULL, NULL) < 0)
		abort();
}

static void end(void)
{
	pl_query_run_free(run);
	pl_query_free(query);
}

static void feed(uint64_t ts_ns, uint32_t partition)
{
	const struct pl_pkt64 p = { .ts_ns = ts_ns, .proto = 6 };

	if (pl_query_feed(run, PL_FLAT_PKT64, &p, 1, partition) < 0)
		abort();
}

static const char counts[] = "SELECT count(*) AS n FROM packets TUMBLE(ts, 1s)";

static void test_never_seen_partition(void)
{
	begin(counts, 3, 200 * MS, 5 * SECOND);
	pl_query_advance(run, SECOND);
	for (uint64_t s = 10; s < 14; s++) {
		feed(s * SECOND, 0);
		feed(s * SECOND, 1);
		pl_query_advance(run, (s - 8) * SECOND);
	}
	eq(n_rows, 0,
		"a partition that nobody has seen may still have records of the first window");
	pl_query_advance(run, 6 * SECOND + 1);
	eq(n_rows, 2, "after the idle time it is not waited for any more");
	feed(10 * SECOND, 2);
	eq(pl_query_run_stats(run)->late, 1, "its first record comes late, which is counted");
	feed(14 * SECOND, 0);
	feed(14 * SECOND, 1);
	eq(n_rows, 2, "and it is one that windows wait for");
	feed(14 * SECOND, 2);
	eq(n_rows, 3, "until it is as far");
	eq(rows[2].late, 1, "the next row tells of the late one");
	end();
}

/* A member of a group to which no partition was given, and one whose partitions are taken away. */
static void test_member_without_partition(void)
{
	begin(counts, 2, 200 * MS, 5 * SECOND);
	for (uint32_t partition = 0; partition < 2; partition++)
		eq(pl_query_ended(run, PL_FLAT_PKT64, partition), 0, "nobody gives partition %u",
			partition);
	pl_query_advance(run, SECOND);
	pl_query_advance(run, 100 * SECOND);
	eq(n_rows, 0, "without partitions there are no rows, however long it lasts");
	pl_query_finish(run);
	eq(n_rows, 0, "nor at the end");
	eq(pl_query_run_stats(run)->windows, 0, "and no window");
	end();

	begin(counts, 2, 200 * MS, 5 * SECOND);
	feed(10 * SECOND, 0);
	feed(10 * SECOND, 1);
	feed(12 * SECOND, 0);
	eq(n_rows, 0, "both have a partition");
	eq(pl_query_ended(run, PL_FLAT_PKT64, 1), 0);
	eq(n_rows, 1, "what was taken away holds nothing back");
	eq(rows[0].n, 2, "and has what it gave");
	end();
}

/* Much is stored, and one partition is read while others wait for longer than the idle time. */
static void test_behind(void)
{
	begin(counts, 2, 200 * MS, 5 * SECOND);
	pl_query_advance(run, SECOND);
	for (uint32_t partition = 0; partition < 2; partition++) {
		eq(pl_query_behind(run, PL_FLAT_PKT64, partition, true), 0);
		feed(10 * SECOND, partition);
	}
	for (uint64_t s = 11; s < 40; s++)
		feed(s * SECOND, 0);
	pl_query_advance(run, 60 * SECOND);
	eq(n_rows, 0, "what is stored in a partition is waited for, however long that takes");
	feed(12 * SECOND, 1);
	eq(pl_query_run_stats(run)->late, 0, "and is not late");
	eq(n_rows, 1, "windows close as far as it has come");
	pl_query_advance(run, 61 * SECOND);
	eq(pl_query_behind(run, PL_FLAT_PKT64, 1, false), 0, "it was read to its end");
	pl_query_advance(run, 66 * SECOND);
	eq(n_rows, 1, "from then on its idle time runs");
	pl_query_advance(run, 66 * SECOND + 1);
	eq(n_rows, 28, "and then it holds nothing back");
	eq(pl_query_behind(run, PL_FLAT_PKT64, 2, true), -EINVAL, "a partition that there is not");
	end();
}

static void test_end_of_input(void)
{
	begin(counts, 2, 200 * MS, 5 * SECOND);
	feed(10 * SECOND, 0);
	feed(20 * SECOND, 1);
	feed(20 * SECOND + 900 * MS, 1);
	eq(n_rows, 0, "the one that is behind decides");
	eq(pl_query_ended(run, PL_FLAT_PKT64, 0), 0);
	eq(n_rows, 1, "when it has ended the other one does");
	eq(pl_query_ended(run, PL_FLAT_DNS64, 1), 0, "a stream that is not read may end too");
	eq(pl_query_ended(run, PL_FLAT_PKT64, 2), -EINVAL, "a partition that there is not");
	eq(pl_query_ended(run, PL_FLAT_PKT64, 1), 0);
	eq(pl_query_ended(run, PL_FLAT_PKT64, 1), 0, "and twice");
	pl_query_finish(run);
	eq(n_rows, 2, "at the end of all input the open window closes");
	eq(rows[1].n, 2, "with all that it has");
	eq(pl_query_run_stats(run)->late, 0, "nothing was late");
	end();
}

/* A random walk with steps back: times of `n` records, from 0 on. */
static void make_times(struct pl_rng *rng, uint64_t *ts, uint32_t n, uint64_t disorder_ns)
{
	uint64_t now = 65 * SECOND;

	for (uint32_t i = 0; i < n; i++) {
		now += pl_rng_below(rng, 100 * MS);
		ts[i] = now - pl_rng_below(rng, disorder_ns + 1);
	}
}

/* The same records as they come now, and from a file that is a year old. */
static void test_replay(void)
{
	static struct row live[ROWS_MAX];
	uint64_t ts[1000];
	struct pl_rng rng;
	uint32_t n = 0, same = 0;
	uint64_t late[2];

	pl_rng_seed(&rng, 4);
	make_times(&rng, ts, 1000, 600 * MS);
	for (unsigned int old = 0; old < 2; old++) {
		const uint64_t now = 1700000000 * SECOND, from = now - (old ? YEAR : 0);

		begin(counts, 2, 200 * MS, 5 * SECOND);
		for (uint32_t i = 0; i < 1000; i++) {
			/* Live, the clock goes on with the records; a replay takes no time. */
			pl_query_clock(run, old ? now : now + ts[i]);
			pl_query_advance(run, old ? now : now + ts[i]);
			feed(from + ts[i], i % 2);
		}
		pl_query_finish(run);
		late[old] = pl_query_run_stats(run)->late;
		eq(pl_query_run_stats(run)->ahead, 0, "none is ahead");
		if (old == 0) {
			memcpy(live, rows, sizeof(live));
			n = n_rows;
		}
		end();
	}
	for (uint32_t i = 0; i < n && n == n_rows; i++)
		same += live[i].n == rows[i].n && live[i].late == rows[i].late &&
			live[i].start - rows[i].start == (int64_t)YEAR;
	ok(n > 40 && same == n, "%u windows are the same a year later", n);
	ok(late[0] > 0 && late[0] == late[1], "with as many late records, %" PRIu64, late[0]);
}

/* ---- the model ---- */

#define RECORDS    400
#define PARTITIONS 3

struct record {
	uint64_t ts;
	uint32_t partition;
};

static struct record records[RECORDS];

/* The end of time that record i finds closed: by all records before it. INT64_MIN: nothing is. */
static int64_t closed_before(uint32_t i, uint32_t partitions, uint64_t lateness)
{
	int64_t least = INT64_MAX;

	for (uint32_t p = 0; p < partitions; p++) {
		int64_t greatest = INT64_MIN;

		for (uint32_t k = 0; k < i; k++) {
			if (records[k].partition == p && (int64_t)records[k].ts > greatest)
				greatest = (int64_t)records[k].ts;
		}
		if (greatest == INT64_MIN)
			return INT64_MIN;
		least = greatest < least ? greatest : least;
	}
	return least - (int64_t)lateness;
}

/* Rows by their definition: a record counts in each window that holds it and was open. */
static uint32_t model(uint64_t size, uint64_t step, uint32_t partitions, uint64_t lateness,
	struct row *ret, uint64_t *ret_late)
{
	uint32_t n = 0;

	*ret_late = 0;
	for (int64_t start = 0; start < (int64_t)(150 * SECOND); start += (int64_t)step)
		ret[n++] = (struct row){ .start = start };
	for (uint32_t i = 0; i < RECORDS; i++) {
		const int64_t closed = closed_before(i, partitions, lateness);
		const int64_t ts = (int64_t)records[i].ts;
		bool counts_somewhere = false;

		for (uint32_t k = 0; k < n; k++) {
			const int64_t stop = ret[k].start + (int64_t)size;

			if (ts < ret[k].start || ts >= stop || stop <= closed)
				continue;
			ret[k].n++;
			counts_somewhere = true;
		}
		*ret_late += !counts_somewhere;
	}
	return n;
}

static bool same_rows(const struct row *want, uint32_t n)
{
	uint32_t at = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (want[k].n == 0)
			continue;
		if (at == n_rows || rows[at].start != want[k].start || rows[at].n != want[k].n)
			return false;
		at++;
	}
	return at == n_rows;
}

static void test_random(uint64_t seed, unsigned int rounds)
{
	static struct row want[ROWS_MAX];
	unsigned int wrong = 0;
	uint64_t all_late = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, seed);
	for (unsigned int round = 0; round < rounds; round++) {
		const uint32_t partitions = 1 + (uint32_t)pl_rng_below(&rng, PARTITIONS);
		const uint64_t lateness = pl_rng_below(&rng, 3) * 250 * MS;
		const uint64_t step = (1 + pl_rng_below(&rng, 4)) * 500 * MS;
		const uint64_t size = step * (1 + pl_rng_below(&rng, 3));
		uint64_t ts[RECORDS], late;
		char text[120];
		uint32_t n;

		make_times(&rng, ts, RECORDS, pl_rng_below(&rng, 4) * 400 * MS);
		for (uint32_t i = 0; i < RECORDS; i++)
			records[i] =
				(struct record){ ts[i], (uint32_t)pl_rng_below(&rng, partitions) };
		snprintf(text, sizeof(text),
			"SELECT count(*) AS n FROM packets HOP(ts, %" PRIu64 "ms, %" PRIu64 "ms)",
			size / MS, step / MS);
		begin(text, partitions, lateness, 5 * SECOND);
		for (uint32_t i = 0; i < RECORDS; i++)
			feed(records[i].ts, records[i].partition);
		pl_query_finish(run);
		n = model(size, step, partitions, lateness, want, &late);
		if (!same_rows(want, n) || late != pl_query_run_stats(run)->late) {
			printf("# round %u: %s, %u partitions, lateness %" PRIu64 " ms\n", round,
				text, partitions, lateness / MS);
			wrong++;
		}
		all_late += late;
		end();
	}
	eq(wrong, 0, "%u rounds of records out of order: the model's rows and late records",
		rounds);
	ok(all_late > rounds, "%" PRIu64 " records were late", all_late);
}

/* ---- times that go back ---- */

/* Feeds `n` records, ten a second of their time and of the clock, from `ts` on. */
static void feed_from(uint64_t ts, unsigned int n, uint32_t partition, uint64_t *clock_ns)
{
	for (unsigned int i = 0; i < n; i++) {
		feed(ts + i * 100 * MS, partition);
		*clock_ns += 100 * MS;
		pl_query_advance(run, *clock_ns);
	}
}

/* The records of `n` rows from number `from` on. */
static uint64_t counted(uint32_t from, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = from; i < from + n && i < n_rows; i++)
		sum += rows[i].n;
	return sum;
}

static void test_back(void)
{
	static const char *const questions[] = { counts,
		"SELECT count(*) AS n, proto FROM packets SESSION(ts, 1s) GROUP BY proto",
		"SELECT count(*) AS n FROM packets TUMBLE(ts, 1s) AS a LEFT JOIN packets AS b ON a.dport "
		"= b.sport and a.ts + 1h = b.ts WITHIN 100ms" };
	uint64_t clock_ns = SECOND;

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		const struct pl_query_stats *stats;
		/* A record of a join is late on each side. */
		const uint64_t sides = strstr(questions[i], "JOIN") != NULL ? 2 : 1;

		begin(questions[i], 1, 200 * MS, SECOND);
		stats = pl_query_run_stats(run);
		pl_query_advance(run, clock_ns);
		feed_from(1000 * SECOND, 100, 0, &clock_ns);
		feed_from(900 * SECOND, 8, 0, &clock_ns);
		ok(stats->restarts == 0 && pl_query_went_back(run) == 0 && stats->late == 8 * sides,
			"late for less than a second: %s", questions[i]);
		feed_from(900 * SECOND + 800 * MS, 92, 0, &clock_ns);
		eq(stats->restarts, 1, "then the time begins anew");
		/* The eleventh or twelfth is the last late one, as the clock is told behind it. */
		ok(stats->late >= 11 * sides && stats->late <= 13 * sides, "%u are late",
			(unsigned int)stats->late);
		ok(pl_query_went_back(run) >= 99 * SECOND && pl_query_went_back(run) < 101 * SECOND,
			"and is behind what it was");
		feed_from(1000 * SECOND + 9900 * MS, 1, 0, &clock_ns);
		eq(pl_query_went_back(run), 0, "until it is there again");
		pl_query_finish(run);
		eq(counted(0, n_rows) + stats->late / sides, 201, "each other record counts once");
		end();
	}
}

/* Records that are late without their own time going back stay late. */
static void test_not_back(void)
{
	uint64_t clock_ns = SECOND;

	begin(counts, 2, 200 * MS, SECOND);
	pl_query_advance(run, clock_ns);
	feed_from(1000 * SECOND, 10, 0, &clock_ns);
	feed_from(1000 * SECOND, 200, 1, &clock_ns);
	feed_from(1001 * SECOND, 50, 0, &clock_ns);
	eq(pl_query_run_stats(run)->restarts, 0, "a partition that was away brings what it had");
	ok(pl_query_run_stats(run)->late > 40, "late");
	end();
	begin(counts, 2, 200 * MS, SECOND);
	pl_query_advance(run, clock_ns);
	for (unsigned int i = 0; i < 100; i++) {
		feed_from(1000 * SECOND + i * 100 * MS, 1, 0, &clock_ns);
		feed_from((i < 50 ? 1000 : 900) * SECOND + i * 100 * MS, 1, 1, &clock_ns);
	}
	eq(pl_query_run_stats(run)->restarts, 0,
		"windows of a partition do not wait for another one that went back");
	eq(pl_query_run_stats(run)->late, 50, "whose records are late");
	ok(pl_query_went_back(run) > 90 * SECOND, "and it is said");
	feed_from(920 * SECOND, 30, 1, &clock_ns);
	eq(pl_query_run_stats(run)->restarts, 1, "once it is alone it begins anew");
	end();
	begin(counts, 2, 200 * MS, SECOND);
	pl_query_advance(run, clock_ns);
	for (unsigned int i = 0; i < 100; i++) {
		feed_from((i < 50 ? 1000 : 900) * SECOND + i * 100 * MS, 1, 0, &clock_ns);
		feed_from((i < 50 ? 1000 : 900) * SECOND + i * 100 * MS, 1, 1, &clock_ns);
	}
	eq(pl_query_run_stats(run)->restarts, 1, "both go back together");
	pl_query_finish(run);
	eq(counted(0, n_rows) + pl_query_run_stats(run)->late, 200,
		"each record counts once, or is late");
	ok(pl_query_run_stats(run)->late < 20, "%u are",
		(unsigned int)pl_query_run_stats(run)->late);
	end();
	restarts = false;
	begin(counts, 1, 200 * MS, SECOND);
	pl_query_advance(run, clock_ns);
	feed_from(1000 * SECOND, 100, 0, &clock_ns);
	feed_from(900 * SECOND, 100, 0, &clock_ns);
	ok(pl_query_run_stats(run)->restarts == 0 && pl_query_run_stats(run)->late == 100,
		"nor does a run that was not told to");
	end();
}

int main(int argc, char **argv)
{
	const uint64_t seed = pl_test_seed(argc, argv, 20261129);

	test_never_seen_partition();
	test_member_without_partition();
	test_behind();
	test_end_of_input();
	test_replay();
	restarts = true;
	test_back();
	test_not_back();
	test_random(seed, pl_test_rounds(argc, argv, 1000));
	return pl_test_done();
}
