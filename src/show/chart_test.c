/* SPDX-License-Identifier: BSD-2-Clause */
/* Charts of rows that are made here, each as its text. */
#include "show/chart.h"

#include <errno.h>

#include "base/num.h"
#include "base/test.h"
#include "lang/lang.h"

#define SECOND INT64_C(1000000000)
#define START  (INT64_C(1700000000) * SECOND)

static struct pl_query *query_of(const char *text)
{
	struct pl_query *q = NULL;
	struct pl_diag diag = { .text = "" };

	ok(pl_query_parse(&q, text, &diag) == 0, "%s %s", text, diag.text);
	return q;
}

static struct pl_query_value whole(uint64_t u)
{
	return (struct pl_query_value){ .type = PL_QUERY_UNSIGNED, .u = u };
}

static struct pl_query_value address(uint8_t last)
{
	return (struct pl_query_value){ .type = PL_QUERY_ADDR,
		.addr = pl_addr_v4((const uint8_t[4]){ 10, 0, 0, last }) };
}

static void add(
	struct pl_chart *chart, const struct pl_query_value *values, uint32_t n, int64_t second)
{
	const struct pl_query_row row = { .values = values,
		.n = n,
		.windowed = second >= 0,
		.final = true,
		.start_ns = second >= 0 ? START + second * SECOND : 0 };

	pl_chart_add(chart, &row);
}

static void is(const struct pl_chart *chart, unsigned int cols, bool ascii, const char *want)
{
	struct pl_buf text;

	pl_buf_init(&text);
	pl_chart_draw(chart, &(struct pl_chart_area){ .cols = cols, .ascii = ascii }, &text);
	streq(text.data != NULL ? text.data : "", want);
	pl_buf_done(&text);
}

static struct pl_chart *chart_of(const struct pl_query *q)
{
	struct pl_chart *chart = NULL;

	eq(pl_chart_new(&chart, q, NULL), 0);
	return chart;
}

static void test_bars(void)
{
	struct pl_query *q = query_of("SELECT dport, count(*) AS n FROM packets GROUP BY dport");
	struct pl_chart *chart = chart_of(q);

	is(chart, 60, false, "");
	for (uint32_t i = 0; i < 3; i++) {
		const struct pl_query_value row[] = { whole(443 * (i + 1)), whole(i * 50) };

		add(chart, row, 2, -1);
	}
	is(chart, 41, false,
		"n\n"
		"443            0\n"
		"886           50 ████████████\n"
		"1329         100 ████████████████████████\n");
	is(chart, 41, true,
		"n\n"
		"443            0\n"
		"886           50 ############\n"
		"1329         100 ########################\n");
	for (uint32_t i = 0; i < PL_CHART_BARS; i++) {
		const struct pl_query_value row[] = { whole(i), { .absent = true } };

		add(chart, row, 2, -1);
	}
	{
		struct pl_buf text;

		pl_buf_init(&text);
		pl_chart_draw(chart, &(struct pl_chart_area){ .cols = 80 }, &text);
		ok(strstr(text.data, "\n3 more rows\n") != NULL, "what is not drawn is counted");
		ok(strstr(text.data, "\n46             -\n") != NULL, "an absent value has no bar");
		pl_buf_done(&text);
	}
	pl_chart_free(chart);
	pl_query_free(q);
}

/* Rows of seconds 0, 1 and 3: second 2 has none. */
static void test_columns(void)
{
	struct pl_query *q = query_of("SELECT count(*) AS n FROM packets TUMBLE(ts, 1s)");
	struct pl_chart *chart = chart_of(q);
	static const uint8_t seconds[] = { 3, 0, 1 }, numbers[] = { 8, 4, 1 };

	for (uint32_t i = 0; i < 3; i++) {
		const struct pl_query_value row[] = { whole(numbers[i]) };

		add(chart, row, 1, seconds[i]);
	}
	is(chart, 80, false,
		"n, the largest of a window\n"
		"           8 │   █\n"
		"             │   █\n"
		"             │   █\n"
		"             │   █\n"
		"             │█  █\n"
		"             │█  █\n"
		"             │█  █\n"
		"           0 │██ █\n"
		"              2023-11-14T22:13:20Z to 2023-11-14T22:13:23Z\n");
	pl_chart_free(chart);
	pl_query_free(q);
}

static void test_lines(void)
{
	struct pl_query *q = query_of(
		"SELECT src, sum(wire_len) AS bytes FROM packets TUMBLE(ts, 1s) GROUP BY src");
	struct pl_chart *chart = chart_of(q);

	for (uint8_t second = 0; second < 8; second++) {
		const struct pl_query_value one[] = { address(1), whole(second) };
		const struct pl_query_value two[] = { address(2), whole(16) };

		add(chart, one, 2, second);
		if (second % 2 == 0)
			add(chart, two, 2, second);
	}
	is(chart, 80, false,
		"bytes, the largest of a window\n"
		"10.0.0.2          16 █ █ █ █\n"
		"10.0.0.1           7  ▁▁▂▂▃▃▄\n"
		"                     2023-11-14T22:13:20Z to 2023-11-14T22:13:27Z\n");
	/* A row of the whole window in the place of its first crossing. */
	{
		const struct pl_query_value more[] = { address(1), whole(16) };

		add(chart, more, 2, 7);
	}
	is(chart, 80, true,
		"bytes, the largest of a window\n"
		"10.0.0.1          16  ..::--@\n"
		"10.0.0.2          16 @ @ @ @\n"
		"                     2023-11-14T22:13:20Z to 2023-11-14T22:13:27Z\n");
	pl_chart_free(chart);
	pl_query_free(q);
}

/* More windows than columns: the largest value of several. */
static void test_long(void)
{
	struct pl_query *q = query_of("SELECT count(*) AS n FROM packets TUMBLE(ts, 1s)");
	struct pl_chart *chart = chart_of(q);
	struct pl_buf text;

	for (uint32_t second = 0; second < 1000; second++) {
		const struct pl_query_value row[] = { whole(second == 501 ? 800 : 100) };

		add(chart, row, 1, second);
	}
	pl_buf_init(&text);
	pl_chart_draw(chart, &(struct pl_chart_area){ .cols = 64 }, &text);
	ok(strstr(text.data, "each column the largest of 20 windows") != NULL,
		"a column is of several windows");
	ok(strstr(text.data, "         800 │                         █\n") != NULL,
		"the spike is there");
	pl_buf_done(&text);
	pl_chart_free(chart);
	pl_query_free(q);
}

/* A live stream has one window for each column, the latest. */
static void test_latest(void)
{
	struct pl_query *q = query_of("SELECT count(*) AS n FROM packets TUMBLE(ts, 1s)");
	struct pl_chart *chart = chart_of(q);
	struct pl_buf text;

	pl_chart_follow(chart);
	for (uint32_t second = 0; second < 3 * PL_CHART_LIVE; second++) {
		const struct pl_query_value row[] = { whole(
			second + 3 == 3 * PL_CHART_LIVE ? 800 : 100) };

		add(chart, row, 1, second);
	}
	pl_buf_init(&text);
	pl_chart_draw(chart, &(struct pl_chart_area){ .cols = 64 }, &text);
	ok(strstr(text.data, "largest of 2") == NULL, "a column is one window");
	ok(strstr(text.data, "         800 │                                               █\n") !=
			NULL,
		"the spike is the last column but two");
	ok(strstr(text.data, "2023-11-16T15:52:30Z to 2023-11-16T15:53:19Z\n") != NULL,
		"the last 50 windows are drawn");
	ok(strstr(text.data, "left out") == NULL, "rows that scrolled away are not missed");
	pl_buf_done(&text);
	pl_chart_free(chart);
	pl_query_free(q);
}

static void draw_high(
	const struct pl_chart *chart, unsigned int lines, unsigned int want, const char *more)
{
	struct pl_buf text;
	unsigned int n = 0;

	pl_buf_init(&text);
	pl_chart_draw(chart, &(struct pl_chart_area){ .cols = 80, .lines = lines }, &text);
	for (size_t i = 0; i < text.len; i++)
		n += text.data[i] == '\n';
	eq(n, want, "%u lines are room for %u", lines, want);
	ok(strstr(text.data, more) != NULL, "of so much the chart has %s", more + 1);
	pl_buf_done(&text);
}

/* The chart is as high as the terminal; a live stream of rows without windows. */
static void test_high(void)
{
	struct pl_query *q = query_of("SELECT dport, count(*) AS n FROM packets GROUP BY dport");
	struct pl_query *over_time =
		query_of("SELECT dport, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dport");
	struct pl_chart *bars = chart_of(q), *lines = chart_of(over_time);

	pl_chart_follow(bars);
	for (uint32_t i = 0; i < 30; i++) {
		const struct pl_query_value row[] = { whole(i), whole(i + 1) };

		add(bars, row, 2, -1);
		add(lines, row, 2, 1);
	}
	draw_high(bars, 12, 11, "\n29          30 █");
	draw_high(bars, 12, 11, "\n21 earlier rows");
	draw_high(lines, 12, 11, "\n22 more lines");
	draw_high(lines, 0, 23, "\n10 more lines");
	for (uint32_t i = 0; i < 2 * PL_CHART_LIVE; i++) {
		const struct pl_query_value row[] = { whole(i), whole(7) };

		add(bars, row, 2, -1);
	}
	draw_high(bars, 12, 11, "\n99999           7 █");
	pl_chart_free(bars);
	pl_chart_free(lines);
	pl_query_free(q);
	pl_query_free(over_time);
}

/* A column has more very short windows than 32 bits count; very long ones take more than all of
 * time. */
static void test_wide(void)
{
	struct pl_query *q = query_of("SELECT count(*) AS n FROM packets TUMBLE(ts, 1us)");
	struct pl_chart *chart = chart_of(q);
	const struct pl_query_value row[] = { whole(8) };
	struct pl_buf text;

	add(chart, row, 1, 0);
	add(chart, row, 1, 365 * 86400);
	pl_buf_init(&text);
	pl_chart_draw(chart, &(struct pl_chart_area){ .cols = 80, .ascii = true }, &text);
	ok(strstr(text.data, "each column the largest of 477818181819 windows\n") != NULL,
		"a year of microseconds");
	ok(strstr(text.data, "           8 |@                                                    "
			     "            @\n") != NULL,
		"its first and last column are drawn");
	pl_chart_free(chart);
	pl_query_free(q);

	q = query_of("SELECT count(*) AS n FROM packets TUMBLE(ts, 2920d)");
	chart = chart_of(q);
	pl_chart_follow(chart);
	add(chart, row, 1, 0);
	add(chart, row, 1, 2920 * INT64_C(86400));
	pl_buf_reset(&text);
	pl_chart_draw(chart, &(struct pl_chart_area){ .cols = 80, .ascii = true }, &text);
	ok(strstr(text.data, "           8 |@@\n") != NULL, "both windows are drawn");
	pl_buf_done(&text);
	pl_chart_free(chart);
	pl_query_free(q);
}

static void test_refused(void)
{
	static const char *const none[] = { "SELECT DISTINCT src FROM packets",
		"SELECT dport, src FROM packets GROUP BY dport, src", "SELECT ts FROM packets" };
	struct pl_chart *chart;
	struct pl_diag diag;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct pl_query *q = query_of(none[i]);

		diag.text[0] = '\0';
		eq(pl_chart_new(&chart, q, &diag), -EINVAL, "%s", none[i]);
		ok(strstr(diag.text, "draws a number") != NULL, "%s", diag.text);
		pl_query_free(q);
	}
}

int main(void)
{
	test_bars();
	test_columns();
	test_lines();
	test_long();
	test_latest();
	test_high();
	test_wide();
	test_refused();
	return pl_test_done();
}
