/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries as they run: windows, watermarks, first crossings, limits of memory. */
#include <errno.h>
#include <math.h>

#include "base/test.h"
#include "query/partial.h"
#include "record/record.h"

#define SECOND 1000000000

struct seen {
	unsigned int n, incomplete, not_final;
	struct pl_query_row rows[64];
	struct pl_query_value values[64][8];
	struct pl_query_item items[8];
};

static void sink(void *arg, const struct pl_query_row *row)
{
	struct seen *seen = arg;

	if (seen->n < 64) {
		seen->rows[seen->n] = *row;
		memcpy(seen->values[seen->n], row->values,
			(row->n < 8 ? row->n : 8) * sizeof(*row->values));
		if (row->values[0].type == PL_QUERY_LIST)
			memcpy(seen->items, row->values[0].list.items,
				row->values[0].list.n * sizeof(*seen->items));
	}
	seen->n++;
	seen->incomplete += row->incomplete;
	seen->not_final += !row->final;
}

struct fixture {
	struct pl_query *query;
	struct pl_query_run *run;
	struct seen seen;
};

static bool begin(struct fixture *f, const char *text, const struct pl_query_config *config)
{
	struct pl_diag diag = { 0 };
	bool good;

	memset(f, 0, sizeof(*f));
	good = ok(pl_query_parse(&f->query, text, &diag) == 0, "%s", text) &&
	       ok(pl_query_run_new(&f->run, f->query, config, sink, &f->seen, &diag) == 0);

	if (!good)
		printf("# %u: %s\n", diag.column, diag.text);
	return good;
}

struct taken {
	unsigned int n;
	struct pl_event events[16];
};

static void take_record(void *arg, const void *record)
{
	struct taken *taken = arg;

	if (taken->n < 16)
		taken->events[taken->n] = *(const struct pl_event *)record;
	taken->n++;
}

/* Rows tell the records that came too late since the window before closed, each once. */
static void test_late(void)
{
	static const struct {
		const char *text;
		uint64_t ts[9], late[4];
	} of[] = {
		{ "SELECT count(*) AS n FROM packets TUMBLE(ts, 10ns)",
			{ 5, 15, 6, 7, 25, 8, 35, 9, 36 }, { 0, 2, 1, 1 } },
		{ "SELECT count(*) AS n FROM packets HOP(ts, 20ns, 10ns)",
			{ 5, 15, 25, 35, 6, 36, 8, 45, 46 }, { 0, 0, 0, 2 } },
		{ "SELECT count(*) AS n FROM packets SESSION(ts, 5ns)",
			{ 5, 15, 6, 25, 7, 35, 8, 45, 9 }, { 0, 1, 1, 1 } },
		{ "SELECT sum(n) AS n FROM (SELECT sport, count(*) AS n FROM packets TUMBLE(ts, 10ns) "
		  "GROUP BY sport) AS a",
			{ 5, 15, 6, 7, 25, 8, 35, 9, 36 }, { 0, 2, 1, 1 } },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const struct pl_query_config config = { .lateness_ns = PL_QUERY_NO_LATENESS };
		struct fixture f;

		if (!begin(&f, of[i].text, &config))
			continue;
		for (unsigned int k = 0; k < 9; k++)
			pl_query_feed(f.run, PL_FLAT_PKT64,
				&(struct pl_pkt64){ .ts_ns = of[i].ts[k] }, 1, 0);
		pl_query_finish(f.run);
		for (unsigned int k = 0; k < 4; k++)
			eq(f.seen.rows[k].late, of[i].late[k], "row %u of %s", k, of[i].text);
		pl_query_run_free(f.run);
		pl_query_free(f.query);
	}
}

/* Windows that another run has closed: what is read again for those that are open is late for none. */
static void test_late_resumed(void)
{
	const struct pl_query_config config = { .lateness_ns = PL_QUERY_NO_LATENESS };
	static const uint64_t ts[] = { 5, 15, 9, 25, 16, 35 };
	struct fixture f;

	if (!begin(&f, "SELECT count(*) AS n FROM packets TUMBLE(ts, 10ns)", &config))
		return;
	pl_query_run_resume(f.run, 10);
	for (unsigned int k = 0; k < 6; k++)
		pl_query_feed(f.run, PL_FLAT_PKT64, &(struct pl_pkt64){ .ts_ns = ts[k] }, 1, 0);
	pl_query_finish(f.run);
	eq(pl_query_run_stats(f.run)->late, 3, "the account has them all");
	eq(f.seen.rows[0].start_ns, 10, "the first window that is open");
	eq(f.seen.rows[0].late, 0, "those before were given by another run");
	eq(f.seen.rows[1].late, 1, "and one came too late for this one");
	pl_query_run_free(f.run);
	pl_query_free(f.query);
}

/* In the place of rows the records that satisfy WHERE, byte by byte, up to LIMIT. */
static void test_records(void)
{
	static const char *const others[] = {
		"SELECT node, count(*) AS n FROM events GROUP BY node",
		"SELECT n FROM (SELECT count(*) AS n FROM events) AS a"
	};
	const struct pl_query_config config = { 0 };
	struct pl_event events[40];
	struct taken taken = { 0 };
	struct pl_query *query = NULL;
	struct pl_query_run *run = NULL;
	unsigned int same = 0;

	for (unsigned int i = 0; i < 40; i++) {
		events[i] = (struct pl_event){ .ts_ns = 1000 + i, .event = PL_EVENT_QUERY };
		pl_event_set_duration_ns(&events[i], i);
	}
	ok(pl_query_parse(
		   &query, "SELECT ts FROM events WHERE duration_ns % 3 = 1 LIMIT 9", NULL) == 0 &&
		pl_query_run_new(&run, query, &config, sink, &taken, NULL) == 0 &&
		pl_query_take_records(run, take_record) == 0);
	for (unsigned int i = 0; i < 40; i += 10)
		pl_query_feed(run, PL_QUERY_EVENTS, &events[i], 10, 0);
	pl_query_finish(run);
	eq(taken.n, 9, "as many as LIMIT says");
	for (unsigned int i = 0; i < taken.n && i < 9; i++)
		same += memcmp(&taken.events[i], &events[3 * i + 1], sizeof(events[0])) == 0;
	eq(same, 9, "each as it was fed, in order");
	eq(pl_query_run_stats(run)->rows, 9, "they are counted as rows");
	pl_query_run_free(run);
	pl_query_free(query);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		run = NULL;
		query = NULL;
		ok(pl_query_parse(&query, others[i], NULL) == 0 &&
			pl_query_run_new(&run, query, &config, sink, &taken, NULL) == 0);
		eq(pl_query_take_records(run, take_record), -EINVAL, "refused: %s", others[i]);
		pl_query_run_free(run);
		pl_query_free(query);
	}
}

static void end(struct fixture *f)
{
	pl_query_run_free(f->run);
	pl_query_free(f->query);
}

static struct pl_addr host(unsigned int n)
{
	uint8_t b[4] = { 10, 0, (uint8_t)(n >> 8), (uint8_t)n };

	return pl_addr_v4(b);
}

static void feed(struct fixture *f, uint64_t ms, unsigned int src, unsigned int dst, uint16_t dport,
	uint8_t flags, uint32_t partition)
{
	struct pl_pkt64 p = { .ts_ns = ms * 1000000,
		.src = host(src),
		.dst = host(dst),
		.dport = dport,
		.proto = 6,
		.tcp_flags = flags,
		.wire_len = 100 };

	pl_query_feed(f->run, PL_FLAT_PKT64, &p, 1, partition);
}

static void test_windows(void)
{
	const struct pl_query_config config = { .max_groups = 64 };
	struct fixture f;

	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1s)", &config))
		return;
	feed(&f, 1000, 1, 2, 80, 2, 0);
	feed(&f, 1999, 1, 2, 80, 2, 0);
	feed(&f, 2199, 1, 2, 80, 2, 0);
	eq(f.seen.n, 0, "the watermark is 200 ms behind");
	feed(&f, 1500, 1, 2, 80, 2, 0);
	feed(&f, 2200, 1, 2, 80, 2, 0);
	eq(f.seen.n, 1, "it is at the end of the window");
	eq(f.seen.values[0][0].u, 3);
	eq(f.seen.rows[0].start_ns, SECOND);
	eq(f.seen.rows[0].end_ns, 2 * (int64_t)SECOND);
	ok(f.seen.rows[0].final && f.seen.rows[0].windowed && !f.seen.rows[0].incomplete);
	feed(&f, 1999, 1, 2, 80, 2, 0);
	eq(pl_query_run_stats(f.run)->late, 1, "late");
	pl_query_finish(f.run);
	eq(f.seen.n, 2);
	eq(f.seen.values[1][0].u, 2, "without the late one");
	eq(pl_query_feed(f.run, PL_FLAT_PKT64, &f, 1, 0), -EINVAL, "nothing is fed behind the end");
	pl_query_finish(f.run);
	eq(f.seen.n, 2, "a second end changes nothing");
	end(&f);
}

static void test_partitions(void)
{
	const struct pl_query_config config = {
		.max_groups = 64, .partitions = 2, .idle_ns = 3 * (uint64_t)SECOND
	};
	struct fixture f;

	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1s)", &config))
		return;
	pl_query_advance(f.run, 100);
	feed(&f, 1000, 1, 2, 80, 2, 0);
	feed(&f, 9000, 1, 2, 80, 2, 0);
	eq(f.seen.n, 0, "a partition that is not there yet holds the window");
	feed(&f, 1100, 1, 2, 80, 2, 1);
	eq(f.seen.n, 0);
	feed(&f, 2200, 1, 2, 80, 2, 1);
	eq(f.seen.n, 1, "the slower one decides");
	eq(f.seen.values[0][0].u, 2);
	pl_query_advance(f.run, 100 + 2 * (uint64_t)SECOND);
	feed(&f, 9900, 1, 2, 80, 2, 0);
	eq(f.seen.n, 1);
	pl_query_advance(f.run, 101 + 3 * (uint64_t)SECOND);
	eq(f.seen.n, 2, "an idle one no longer does");
	feed(&f, 3000, 1, 2, 80, 2, 1);
	eq(pl_query_run_stats(f.run)->late, 1, "when it comes back it is late");
	eq(pl_query_feed(f.run, PL_FLAT_PKT64, &f, 1, 2), -EINVAL, "no such partition");
	end(&f);

	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1s)", &config))
		return;
	feed(&f, 1000, 1, 2, 80, 2, 0);
	feed(&f, 9000, 1, 2, 80, 2, 0);
	pl_query_advance(f.run, 5);
	eq(f.seen.n, 0, "idle since the first time told");
	pl_query_advance(f.run, 6 + 3 * (uint64_t)SECOND);
	eq(f.seen.n, 2, "all idle: time goes on as the clock does, 11.8 s now");
	end(&f);
}

/* A source that tells how far it is, with records or without. */
static void test_passed(void)
{
	const struct pl_query_config config = { .max_groups = 64, .partitions = 2 };
	struct fixture f;

	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1s)", &config))
		return;
	feed(&f, 1100, 1, 2, 80, 2, 0);
	eq(pl_query_passed(f.run, PL_FLAT_PKT64, 2199999999, 0), 0);
	eq(pl_query_passed(f.run, PL_FLAT_PKT64, 2199999999, 1), 0);
	eq(f.seen.n, 0, "a nanosecond before the lateness is over");
	eq(pl_query_passed(f.run, PL_FLAT_PKT64, 2200000000, 0), 0);
	eq(f.seen.n, 0, "the slower partition decides");
	eq(pl_query_passed(f.run, PL_FLAT_DNS64, 9000000000, 1), 0);
	eq(pl_query_passed(f.run, PL_FLAT_PKT64, UINT64_MAX, 1), 0);
	eq(f.seen.n, 0, "another stream does not, nor a time that is none");
	eq(pl_query_passed(f.run, PL_FLAT_PKT64, 2200000000, 1), 0);
	eq(f.seen.n, 1, "both are there: the window has closed without another record");
	feed(&f, 1200, 1, 2, 80, 2, 0);
	eq(pl_query_run_stats(f.run)->late, 1, "a record behind that time is late");
	feed(&f, 2100, 1, 2, 80, 2, 0);
	eq(pl_query_passed(f.run, PL_FLAT_PKT64, 1000, 0), 0);
	eq(pl_query_run_stats(f.run)->late, 1, "time does not go back");
	eq(pl_query_passed(f.run, PL_FLAT_PKT64, 1, 2), -EINVAL, "no such partition");
	end(&f);
}

static void test_first(void)
{
	const struct pl_query_config config = { .max_groups = 64 };
	struct fixture f;

	if (!begin(&f,
		    "SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE syn_only GROUP BY "
		    "dst HAVING n >= 3 EMIT FIRST",
		    &config))
		return;
	for (unsigned int i = 0; i < 6; i++) {
		eq(f.seen.n, i < 3 ? 0 : 1, "%u so far", i);
		feed(&f, 1000 + i, i, 9, 80, i == 2 ? 0xc2 : 2, 0);
		feed(&f, 1000 + i, i, 8, 80, 18, 0);
	}
	eq(f.seen.values[0][1].u, 3, "at once, and once only before the end");
	ok(!f.seen.rows[0].final && f.seen.rows[0].start_ns == SECOND);
	for (unsigned int i = 0; i < 3; i++)
		feed(&f, 2500, i, 9, 80, 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.n, 4, "anew in the next window, and each when its window closes");
	ok(f.seen.rows[1].final && f.seen.rows[1].start_ns == SECOND && !f.seen.rows[2].final &&
		f.seen.rows[3].final);
	eq(f.seen.values[1][1].u, 6, "with the last count");
	end(&f);
}

static void test_memory(void)
{
	const struct pl_query_config config = { .max_groups = 8, .max_windows = 3 };
	struct fixture f;

	if (!begin(&f,
		    "SELECT src, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY src ORDER BY n "
		    "DESC LIMIT 20",
		    &config))
		return;
	for (unsigned int i = 0; i < 12; i++)
		feed(&f, 1000 + i, i, 1, 80, 2, 0);
	feed(&f, 1100, 3, 1, 80, 2, 0);
	feed(&f, 9000, 3, 1, 80, 2, 0);
	eq(pl_query_run_stats(f.run)->groups_refused, 5,
		"no room for four groups, and for one of the window behind");
	eq(f.seen.n, 8);
	eq(f.seen.incomplete, 8, "which every row of the window says");
	eq(f.seen.values[0][1].u, 2, "in order");
	feed(&f, 9001, 3, 1, 80, 2, 0);
	feed(&f, 19000, 3, 1, 80, 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.n, 10, "there is room again");
	eq(f.seen.incomplete, 9, "and nothing missing in the last");
	end(&f);

	if (!begin(&f, "SELECT count(distinct src) FROM packets TUMBLE(ts, 1s)",
		    &(struct pl_query_config){ .max_groups = 2, .max_distinct = 5 }))
		return;
	for (unsigned int i = 0; i < 12; i++)
		feed(&f, 1000 + i, i % 6, 1, 80, 2, 0);
	feed(&f, 9000, 3, 1, 80, 2, 0);
	eq(f.seen.values[0][0].u, 5);
	eq(f.seen.incomplete, 1, "a set that is too small");
	eq(pl_query_run_stats(f.run)->distinct_refused, 3);
	feed(&f, 9001, 3, 1, 80, 2, 0);
	feed(&f, 19000, 3, 1, 80, 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.values[1][0].u, 1);
	eq(f.seen.values[2][0].u, 1);
	eq(f.seen.incomplete, 2);
	end(&f);

	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1s)",
		    &(struct pl_query_config){ .max_windows = 3, .partitions = 2 }))
		return;
	for (unsigned int i = 1; i < 6; i++)
		feed(&f, i * 1000, 1, 1, 80, 2, 0);
	eq(pl_query_run_stats(f.run)->windows_refused, 2, "too many windows open");
	feed(&f, 5000, 1, 1, 80, 2, 1);
	eq(f.seen.n, 3, "three that close");
	eq(f.seen.incomplete, 0, "have all their records");
	feed(&f, 4900, 1, 1, 80, 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.n, 4);
	eq(f.seen.values[3][0].u, 1, "the next has a record that came when there was room");
	eq(f.seen.incomplete, 1, "and says that others are missing");
	end(&f);

	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1s)",
		    &(struct pl_query_config){ .max_windows = 3, .partitions = 2 }))
		return;
	for (unsigned int k = 0; k < 2; k++) {
		for (unsigned int i = 1; i < 5; i++)
			feed(&f, k * 5000 + i * 1000, 1, 1, 80, 2, 0);
		feed(&f, k * 5000 + 5000, 1, 1, 80, 2, 1);
	}
	eq(pl_query_run_stats(f.run)->windows_refused, 4, "twice two windows have no room");
	eq(f.seen.n, 5);
	eq(f.seen.incomplete, 0, "the windows between them have all their records");
	feed(&f, 9500, 1, 1, 80, 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.n, 7);
	eq(f.seen.incomplete, 1, "and one that lost a record says so");
	end(&f);
}

/* Windows that are short beside the lateness, and that every record needs another of. */
static void test_short_windows(void)
{
	static struct pl_pkt64 packets[3000];
	struct fixture f;

	for (uint32_t i = 0; i < 3000; i++)
		packets[i] = (struct pl_pkt64){ .ts_ns = SECOND + i * (SECOND / 1000) };
	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1ms)", NULL))
		return;
	pl_query_feed(f.run, PL_FLAT_PKT64, packets, 3000, 0);
	pl_query_finish(f.run);
	eq(pl_query_run_stats(f.run)->windows_refused, 0, "a window of 1 ms for each record");
	eq(pl_query_run_stats(f.run)->windows, 3000);
	end(&f);
}

static void test_bad_times(void)
{
	struct pl_pkt64 p = { .ts_ns = UINT64_MAX };
	struct fixture f;

	if (!begin(&f, "SELECT count(*) FROM packets HOP(ts, 10s, 1s)", NULL))
		return;
	pl_query_feed(f.run, PL_FLAT_PKT64, &p, 1, 0);
	p.ts_ns = INT64_MAX;
	pl_query_feed(f.run, PL_FLAT_PKT64, &p, 1, 0);
	p.ts_ns = 0;
	pl_query_feed(f.run, PL_FLAT_PKT64, &p, 1, 0);
	pl_query_finish(f.run);
	eq(pl_query_run_stats(f.run)->bad_time, 2);
	eq(f.seen.n, 10, "the first time there is has ten windows");
	eq(f.seen.rows[0].start_ns, -9 * (int64_t)SECOND);
	end(&f);
}

/* A record of a time that the clock has not reached is left out, and those that follow are as late as
 * they were before. */
static void test_ahead(void)
{
	static const char *const texts[] = {
		"SELECT count(*) FROM packets TUMBLE(ts, 10s)",
		"SELECT count(*) FROM packets SESSION(ts, 10s)",
	};
	const struct pl_query_config config = { .ahead_ns = 2 * (uint64_t)SECOND };
	struct fixture f;

	for (unsigned int i = 0; i < 2; i++) {
		if (!begin(&f, texts[i], &config))
			return;
		pl_query_clock(f.run, 11 * (uint64_t)SECOND);
		feed(&f, 11000, 1, 2, 80, 2, 0);
		feed(&f, 13000, 1, 2, 80, 2, 0); /* just as far as may be */
		feed(&f, 13001, 1, 2, 80, 2, 0); /* in a window that is open */
		feed(&f, UINT64_C(4000000000000), 1, 2, 80, 2, 0);
		feed(&f, 12900, 1, 2, 80, 2, 0);
		eq(pl_query_run_stats(f.run)->ahead, 2, "%s", texts[i]);
		eq(pl_query_run_stats(f.run)->late, 0, "nothing is late");
		eq(f.seen.n, 0, "and no window has closed");
		pl_query_clock(f.run, 12 * (uint64_t)SECOND);
		feed(&f, 14000, 1, 2, 80, 2, 0);
		eq(pl_query_run_stats(f.run)->ahead, 2, "the clock goes on");
		pl_query_finish(f.run);
		eq(f.seen.n, 1);
		eq(f.seen.values[0][0].u, 4, "of the records that may be");
		end(&f);
	}
	/* Without a clock, and without a window. */
	if (!begin(&f, texts[0], &config))
		return;
	feed(&f, UINT64_C(4000000000000), 1, 2, 80, 2, 0);
	eq(pl_query_run_stats(f.run)->ahead, 0, "no clock was told");
	feed(&f, 11000, 1, 2, 80, 2, 0);
	eq(pl_query_run_stats(f.run)->late, 1, "so what follows is late");
	end(&f);
	if (!begin(&f, "SELECT count(*) FROM packets", &config))
		return;
	pl_query_clock(f.run, 11 * (uint64_t)SECOND);
	feed(&f, UINT64_C(4000000000000), 1, 2, 80, 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.values[0][0].u, 1, "without a window any time will do");
	end(&f);
	if (!begin(&f, "SELECT a.dport AS p FROM packets AS a JOIN packets AS b ON src WITHIN 1s",
		    &config))
		return;
	pl_query_clock(f.run, 11 * (uint64_t)SECOND);
	feed(&f, UINT64_C(4000000000000), 1, 2, 80, 2, 0);
	feed(&f, 11000, 1, 2, 80, 2, 0);
	pl_query_finish(f.run);
	eq(pl_query_run_stats(f.run)->ahead, 1);
	eq(f.seen.n, 1, "none waits for a partner in the far future");
	end(&f);
}

/* A pair may be missing in rows that do not wait for the end of their window, too. */
static void test_joined_early(void)
{
	static const char *const texts[] = {
		"SELECT a.src, count(*) AS n FROM packets AS a JOIN packets AS b ON src WITHIN 1s "
		"GROUP BY a.src HAVING n >= 1 EMIT FIRST",
		"FOLD f (n = 0) STEP { n = n + 1, EMIT } SELECT a.src, f.n FROM packets TUMBLE(ts, 1s) "
		"AS a JOIN packets AS b ON src WITHIN 1s GROUP BY a.src",
	};
	const struct pl_query_config config = { .max_groups = 2 };
	struct fixture f;

	for (unsigned int i = 0; i < 2; i++) {
		if (!begin(&f, texts[i], &config))
			return;
		for (unsigned int k = 0; k < 3; k++)
			feed(&f, 1000, 1, 2, 80, 2, 0);
		pl_query_finish(f.run);
		eq(pl_query_run_stats(f.run)->held_refused, 2, "%s", texts[i]);
		eq(f.seen.n, i == 0 ? 2 : 4);
		eq(f.seen.incomplete, f.seen.n, "each row says so");
		end(&f);
	}
}

static void test_many_partners(void)
{
	struct fixture f;

	if (!begin(&f,
		    "SELECT count(*) AS n FROM packets AS a JOIN packets AS b ON src WITHIN 1s "
		    "WHERE a.dport = 1",
		    NULL))
		return;
	feed(&f, 1000, 1, 2, 1, 2, 0);
	for (unsigned int i = 1; i < 4100; i++)
		feed(&f, 1000, 1, 2, 80, 2, 0);
	pl_query_finish(f.run);
	eq(pl_query_run_stats(f.run)->partners_refused, 1);
	eq(f.seen.values[0][0].u, 4096, "a record has so many partners at most");
	eq(f.seen.incomplete, 1, "and the row says so");
	end(&f);
}

/* A partition whose records are all ahead of the clock has none: it is idle. */
static void test_ahead_is_idle(void)
{
	const struct pl_query_config config = { .partitions = 2, .idle_ns = SECOND };
	const uint64_t now = 100 * (uint64_t)SECOND;
	struct fixture f;

	if (!begin(&f, "SELECT count(*) FROM packets TUMBLE(ts, 1s)", &config))
		return;
	pl_query_clock(f.run, now);
	pl_query_advance(f.run, now);
	for (unsigned int i = 0; i < 5; i++) {
		pl_query_advance(f.run, now + i * (uint64_t)SECOND);
		feed(&f, 100000 + i * 1000, 1, 2, 80, 2, 0);
		feed(&f, UINT64_C(4000000000000), 1, 2, 80, 2, 1);
	}
	pl_query_advance(f.run, now + 5 * (uint64_t)SECOND);
	ok(f.seen.n >= 3, "the other's windows close: %u", f.seen.n);
	eq(pl_query_run_stats(f.run)->ahead, 5);
	end(&f);
}

static void test_aggregates(void)
{
	struct fixture f;

	if (!begin(&f,
		    "SELECT topk(dport, 2), stddev(dport), quantile(dport, 0.5) AS p50, quantile(dport, "
		    "0.99), approx_distinct(src), avg(dport) FROM packets HOP(ts, 2s, 1s)",
		    NULL))
		return;
	/* Twice 0 … 999, in two panes of one window; 7 and 70 more often. */
	for (unsigned int i = 0; i < 2000; i++)
		feed(&f, 1000 + i / 1000 * 1000, i % 1000, 1, (uint16_t)(i % 1000), 2, 0);
	for (unsigned int i = 0; i < 300; i++)
		feed(&f, 2500, i, 1, i < 200 ? 7 : 70, 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.n, 3);
	eq(f.seen.values[1][0].list.n, 2);
	ok(fabs((double)f.seen.values[1][2].u - 424) < 14, "median %" PRIu64,
		f.seen.values[1][2].u);
	ok(fabs((double)f.seen.values[1][3].u - 988) < 32);
	ok(fabs((double)f.seen.values[1][4].u - 1000) < 100, "about %" PRIu64 " of 1000",
		f.seen.values[1][4].u);
	ok(fabs(f.seen.values[1][5].d - (999000.0 + 200 * 7 + 100 * 70) / 2300) < 1e-9);
	/* By Python's statistics.pstdev, and the sorted list. */
	ok(fabs(f.seen.values[1][1].d - 312.7199052) < 1e-6, "spread %f", f.seen.values[1][1].d);
	/* The counters are fewer than the values: the bound is what Space-Saving promises. */
	ok(f.seen.items[0].count >= 1 && f.seen.items[0].count >= f.seen.items[1].count);
	end(&f);

	if (!begin(&f, "SELECT hist(dport), max(dport) FROM packets HOP(ts, 2s, 1s)", NULL))
		return;
	for (unsigned int i = 0; i < 2000; i++)
		feed(&f, 1000 + i / 1000 * 1000, i % 1000, 1, (uint16_t)(i % 100), 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.n, 3);
	eq(f.seen.values[1][0].list.n, 8, "0, 1, 2 to 3, …, 64 to 127");
	for (unsigned int i = 0; i < 8; i++) {
		/* The items are those of the last window, which has half of it. */
		const uint64_t from = i == 0 ? 0 : 1 << (i - 1), to = i == 7 ? 100 : 1 << i;

		eq(f.seen.items[i].value.u, from);
		eq(f.seen.items[i].count, 10 * (to - from), "from %" PRIu64, from);
	}
	end(&f);

	if (!begin(&f, "SELECT topk(dport, 3), count(*), topk(sport, 3) AS of FROM packets", NULL))
		return;
	for (unsigned int i = 0; i < 60; i++)
		feed(&f, 1000, 1, 1, (uint16_t)(i % 10 < 5 ? 80 : i % 10 < 8 ? 443 : i % 3), 2, 0);
	pl_query_finish(f.run);
	eq(f.seen.n, 1);
	eq(f.seen.items[0].value.u, 80);
	eq(f.seen.items[0].count, 30);
	eq(f.seen.items[1].value.u, 443);
	eq(f.seen.items[1].count, 18);
	eq(f.seen.items[1].error, 0, "exact with room for all");
	ok(f.seen.values[0][0].list.items != f.seen.values[0][2].list.items,
		"a second list is another");
	ok(!f.seen.rows[0].windowed && f.seen.rows[0].final);
	end(&f);

	if (!begin(&f,
		    "SELECT sum(9223372036854775807 + dport), sum(1 / (dport - 80)) AS s, min(dport / "
		    "(dport - dport)) FROM packets",
		    NULL))
		return;
	for (unsigned int i = 0; i < 4; i++)
		feed(&f, 1000, 1, 1, (uint16_t)(79 + i), 2, 0);
	pl_query_finish(f.run);
	ok(f.seen.values[0][0].absent, "a sum beyond 64 bits");
	ok(!f.seen.values[0][1].absent && f.seen.values[0][1].i == 0,
		"-1 + 1 + 1/2, one is absent");
	ok(f.seen.values[0][2].absent, "the least of nothing");
	eq(pl_query_run_stats(f.run)->absent, 1 + 4 + 1, "each is counted");
	end(&f);
}

static void test_rows_of_records(void)
{
	struct fixture f;

	if (!begin(&f,
		    "SELECT src, dport * 2 AS d, syn FROM packets WHERE dport in (22, 80, 443) LIMIT "
		    "2",
		    NULL))
		return;
	for (unsigned int i = 0; i < 4; i++) {
		feed(&f, 1, i, 1, 22, 2, 0);
		feed(&f, 1, i, 1, 23, 2, 0);
	}
	eq(f.seen.n, 2, "at once, and no more than asked for");
	ok(pl_addr_equal(&f.seen.values[1][0].addr,
		&(struct pl_addr){ .b = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } }));
	eq(f.seen.values[1][1].u, 44);
	ok(f.seen.values[1][2].type == PL_QUERY_BOOL && f.seen.values[1][2].b);
	ok(!f.seen.rows[0].final && !f.seen.rows[0].windowed);
	eq(pl_query_run_stats(f.run)->records, 8);
	eq(pl_query_run_stats(f.run)->passed, 4);
	end(&f);
}

static void all(void *arg, const struct pl_query_row *row)
{
	struct pl_query_value *values = arg;

	memcpy(values, row->values, row->n * sizeof(*values));
}

/* Of more columns than a row has bits the first may be absent. */
static void test_many_columns(void)
{
	const struct pl_flow288 flow = { .last_ts = 5, .bytes_fwd = 7, .elsewhere_rev = 9 };
	struct pl_query_value values[PL_QUERY_ITEMS_MAX];
	struct pl_query_run *run;
	struct pl_query *query;
	struct pl_diag diag;
	char text[2048] = "SELECT bytes_fwd / pkts_fwd AS none, ";
	size_t n = strlen(text);

	for (int i = 1; i < 90; i++)
		n += (size_t)sprintf(text + n, "bytes_fwd AS a%d, ", i);
	strcpy(text + n, "elsewhere_rev FROM flows288");
	eq(pl_query_parse(&query, text, &diag), 0);
	eq(pl_query_run_new(&run, query, NULL, all, values, &diag), 0);
	pl_query_feed(run, PL_FLAT_FLOW288, &flow, 1, 0);
	pl_query_finish(run);
	ok(values[0].absent, "the first is absent");
	for (int i = 1; i < 90; i++)
		if (values[i].absent || values[i].u != 7)
			ok(false, "column %d", i);
	ok(!values[90].absent && values[90].u == 9, "the last is not");
	pl_query_run_free(run);
	pl_query_free(query);
}

static void test_joins(void)
{
	static const char *const texts[] = {
		"WITH a AS (SELECT dst AS host, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE syn_only "
		"GROUP BY dst), b AS (SELECT src AS host, count(*) AS n FROM packets TUMBLE(ts, 1s) WHERE "
		"syn_ack GROUP BY src) SELECT host, a.n - coalesce(b.n, 0) AS open FROM a LEFT JOIN b ON "
		"host ORDER BY host",
		"SELECT a.host, a.n - b.n AS open FROM (SELECT dst AS host, count(*) AS n FROM packets "
		"TUMBLE(ts, 1s) WHERE syn_only GROUP BY dst) AS a JOIN (SELECT src AS h, count(*) AS n "
		"FROM packets TUMBLE(ts, 1s) WHERE syn_ack GROUP BY src) AS b ON b.h = a.host",
		"SELECT host, a.n FROM (SELECT dst AS host, count(*) AS n FROM packets TUMBLE(ts, 1s) "
		"WHERE syn_only GROUP BY dst) AS a ANTI JOIN (SELECT src AS h, count(*) AS n FROM "
		"packets TUMBLE(ts, 1s) WHERE syn_ack GROUP BY src) AS b ON host = h",
		("SELECT n, count(*) AS hosts FROM (SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) "
		 "WHERE syn_only GROUP BY dst) GROUP BY n HAVING hosts > 1"),
	};
	static const struct {
		unsigned int n;
		uint64_t second[3];
	} want[] = { { 3, { 1, 2, 3 } }, { 1, { 1 } }, { 2, { 2, 3 } }, { 0 } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fixture f;

		if (!begin(&f, texts[i], &(struct pl_query_config){ .max_groups = 64 }))
			return;
		/* Host 1: 2 SYNs and 1 answer; host 2: 2 SYNs; host 3: 3. Later, host 2 answers. */
		for (unsigned int k = 0; k < 7; k++)
			feed(&f, 1000 + k, 50 + k, k < 2 ? 1 : k < 4 ? 2 : 3, 80, 2, 0);
		feed(&f, 1900, 1, 50, 80, 18, 0);
		feed(&f, 2100, 2, 50, 80, 18, 0);
		pl_query_finish(f.run);
		if (i == 3) {
			eq(f.seen.n, 1, "groups of groups");
			eq(f.seen.values[0][0].u, 2);
			eq(f.seen.values[0][1].u, 2);
		} else {
			eq(f.seen.n, want[i].n, "rows of the join");
		}
		for (unsigned int k = 0; k < want[i].n && i < 3; k++)
			eq(f.seen.values[k][1].u, want[i].second[k]);
		eq(f.seen.incomplete, 0);
		end(&f);
	}
}

static void test_refused(void)
{
	struct pl_diag diag = { 0 };
	struct pl_query_run *run;
	struct pl_query *query;

	eq(pl_query_parse(&query, "SELECT src, count(*) FROM packets GROUP BY src", NULL), 0);
	eq(pl_query_run_new(&run, query, &(struct pl_query_config){ .max_groups = UINT32_MAX },
		   sink, NULL, &diag),
		-EINVAL, "more groups than a table can have");
	ok(strstr(diag.text, "2^28") != NULL);
	eq(pl_query_run_new(&run, query, &(struct pl_query_config){ .partitions = 1 << 20 }, sink,
		   NULL, &diag),
		-EINVAL);
	ok(pl_query_reads(query, PL_FLAT_PKT64) && !pl_query_reads(query, PL_FLAT_DNS64));
	pl_query_free(query);
}

int main(void)
{
	test_late();
	test_late_resumed();
	test_records();
	test_windows();
	test_partitions();
	test_passed();
	test_first();
	test_memory();
	test_short_windows();
	test_bad_times();
	test_ahead();
	test_joined_early();
	test_many_partners();
	test_ahead_is_idle();
	test_aggregates();
	test_rows_of_records();
	test_many_columns();
	test_joins();
	test_refused();
	return pl_test_done();
}
