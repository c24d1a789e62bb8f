/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of queries as lines of InfluxDB and rows of ClickHouse: every type, absent values, names and
 * texts with special characters, times. tests/net/query_rows.py asks the servers themselves. */
#include <errno.h>

#include "base/test.h"
#include "export/clickhouse_rows.h"
#include "export/influx_rows.h"

#define NOW_NS UINT64_C(1700000001000000000)
#define W0     INT64_C(1700000000000000000)

static struct pl_query *parse(const char *text)
{
	struct pl_diag diag = { .text = "" };
	struct pl_query *query = NULL;

	if (!ok(pl_query_parse(&query, text, &diag) == 0, "%s: %s", text, diag.text))
		exit(1);
	return query;
}

static struct pl_query_value number(uint64_t u)
{
	return (struct pl_query_value){ .type = PL_QUERY_UNSIGNED, .u = u };
}

static struct pl_query_value text(const char *t)
{
	return (struct pl_query_value){ .type = PL_QUERY_TEXT, .text = t };
}

static struct pl_query_row row_of(const struct pl_query_value *values, uint32_t n)
{
	return (struct pl_query_row){ .values = values,
		.n = n,
		.windowed = true,
		.final = true,
		.start_ns = W0,
		.end_ns = W0 + 1000000000,
		.first_ns = W0 + 5 };
}

static void *new_format(uint32_t series)
{
	void *format;

	if (!ok(pl_influx_format_new(&format, series, false) == 0))
		exit(1);
	return format;
}

static const char *line(void *format, const struct pl_query *query, const struct pl_query_row *row,
	struct pl_buf *out, int *ret)
{
	pl_buf_reset(out);
	*ret = pl_influx_put_row(format, query, "a b", row, NOW_NS, out);
	if (*ret < 0)
		return "";
	pl_buf_chr(out, '\0');
	return out->data;
}

static void test_influx_types(void)
{
	struct pl_query *q = parse(
		"SELECT region, name, sum(value) AS s, min(value) - 5 AS d, "
		"avg(value) AS m, last(key) AS k FROM values TUMBLE(ts, 1s) GROUP BY region, name");
	const uint16_t exp[] = { 3, 7 };
	struct pl_query_value v[] = { text("a,b=c d\\"), text(""), number(UINT64_MAX),
		{ .type = PL_QUERY_SIGNED, .i = -5 }, { .type = PL_QUERY_DOUBLE, .d = 0.5 },
		text("say \"x\\\"\n") };
	struct pl_query_row row = row_of(v, 6);
	void *format = new_format(0);
	struct pl_buf out;
	int r;

	pl_buf_init(&out);
	row.exp = exp;
	row.n_exp = 2;
	row.exp_more = true;
	row.incomplete = true;
	streq(line(format, q, &row, &out, &r),
		"pathline_query_a\\ b,region=a\\,b\\=c\\ d? s_u64=\"18446744073709551615\",d=-5i,m=0.5,"
		"k=\"say \\\"x\\\\\\\"?\",w1=1700000001000000000i,final=true,first_ts=1700000000000000005i,"
		"late=0i,exp=\"3 7 +\",incomplete=true 1700000000000000000\n",
		"every type; an empty text is no tag");
	for (int i = 2; i < 6; i++)
		v[i].absent = true;
	row.first_ns = PL_QUERY_NO_TIME;
	row.n_exp = 0;
	row.start_ns += 1000000000;
	streq(line(format, q, &row, &out, &r),
		"pathline_query_a\\ b,region=a\\,b\\=c\\ d? w1=1700000001000000000i,final=true,late=0i,"
		"incomplete=true 1700000001000000000\n",
		"what is absent is left out");
	pl_buf_done(&out);
	pl_influx_format.free(format);
	pl_query_free(q);
}

static void test_influx_times(void)
{
	struct pl_query *q =
		parse("SELECT dst, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY dst "
		      "HAVING n > 1 EMIT FIRST");
	struct pl_query_value v[] = { { .type = PL_QUERY_ADDR }, number(2) };
	struct pl_query_row row = row_of(v, 2);
	void *format = new_format(2);
	struct pl_buf out;
	int r;

	pl_buf_init(&out);
	row.final = false;
	ok(strstr(line(format, q, &row, &out, &r), " 1700000000000000000\n") != NULL);
	row.final = true;
	ok(strstr(line(format, q, &row, &out, &r), "final=true") != NULL);
	ok(strstr(out.data, " 1700000000000000000\n") != NULL, "takes the place of its crossing");
	ok(strstr(line(format, q, &row, &out, &r), " 1700000000000000001\n") != NULL,
		"another row of the same group and time has a place of its own");
	v[0].addr.b[15] = 1;
	line(format, q, &row, &out, &r);
	eq(r, 0, "a second group");
	v[0].addr.b[15] = 2;
	line(format, q, &row, &out, &r);
	eq(r, -ENOSPC, "a third one has no room");
	v[0].addr.b[15] = 1;
	row.start_ns = 5;
	line(format, q, &row, &out, &r);
	eq(r, -ERANGE, "long ago");
	row.start_ns = INT64_C(4000000000000000000);
	line(format, q, &row, &out, &r);
	eq(r, -ERANGE, "far ahead");
	row.windowed = false;
	row.first_ns = PL_QUERY_NO_TIME;
	ok(strstr(line(format, q, &row, &out, &r), " 1700000001000000000\n") != NULL,
		"a row of no record has the time of writing");
	pl_buf_done(&out);
	pl_influx_format.free(format);
	pl_query_free(q);
}

static void test_influx_check(void)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "SELECT dst, count(*) AS n FROM packets GROUP BY dst", NULL },
		{ "SELECT topk(dst, 3) AS best FROM packets", "\"best\" is a list" },
		{ "SELECT count(*) AS time FROM packets", "name it otherwise" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_query *q = parse(cases[i].text);
		struct pl_diag diag = { .text = "" };
		const int r = pl_influx_rows_check(q, &diag);

		ok(cases[i].says == NULL ? r == 0
					 : r == -EINVAL && strstr(diag.text, cases[i].says) != NULL,
			"%s: %s", cases[i].text, diag.text);
		pl_query_free(q);
	}
}

static void test_own_names(void)
{
	struct pl_query *q = parse("SELECT dst, max(ts) AS w1, count(*) AS late, min(ttl) AS final "
				   "FROM packets TUMBLE(ts, 1s) GROUP BY dst");
	struct pl_query_value v[] = { { .type = PL_QUERY_ADDR }, number(7), number(8), number(9) };
	const struct pl_query_row row = row_of(v, 4);
	void *format = new_format(0);
	struct pl_buf out;
	int r;

	pl_buf_init(&out);
	ok(strstr(line(format, q, &row, &out, &r),
		   " w1=7i,late=8i,final=9i,first_ts=1700000000000000005i,incomplete=false ") !=
			NULL,
		"a column takes the place of one of these names");
	pl_buf_reset(&out);
	pl_clickhouse_rows_columns(q, &out);
	pl_buf_chr(&out, '\0');
	streq(out.data, "`dst`, `w1`, `late`, `final`, w0, first_ts, exp, incomplete");
	pl_buf_done(&out);
	pl_influx_format.free(format);
	pl_query_free(q);
}

static void test_clickhouse(void)
{
	struct pl_query *q = parse(
		"SELECT src, proto, topk(dst, 2) AS best, avg(ttl) AS m, max(tcp_seq) - 9 AS d "
		"FROM packets TUMBLE(ts, 1s) GROUP BY src, proto");
	const struct pl_query_item items[] = { { { .type = PL_QUERY_ADDR }, 5, 1 } };
	struct pl_query_value v[] = { { .type = PL_QUERY_ADDR }, number(6),
		{ .type = PL_QUERY_LIST, .list = { items, 1 } },
		{ .type = PL_QUERY_DOUBLE, .absent = true }, { .type = PL_QUERY_SIGNED, .i = -9 } };
	struct pl_query_row row = row_of(v, 5);
	const uint16_t exp[] = { 4 };
	struct pl_buf out;

	v[0].addr.b[10] = v[0].addr.b[11] = 0xff;
	v[0].addr.b[12] = 10;
	v[0].addr.b[15] = 1;
	row.exp = exp;
	row.n_exp = 1;
	row.exp_more = true;
	pl_buf_init(&out);
	pl_clickhouse_put_row(q, &row, &out);
	pl_buf_chr(&out, '\0');
	streq(out.data,
		"{\"src\":\"::ffff:10.0.0.1\",\"proto\":6,\"best\":[{\"value\":\"::\",\"count\":5,\"error\":1}],\"m\":null,\"d\":-9,"
		"\"w0\":\"1700000000.000000000\",\"w1\":\"1700000001.000000000\",\"final\":true,"
		"\"first_ts\":\"1700000000.000000005\",\"late\":0,\"exp\":[4,null],\"incomplete\":false}\n");
	row.start_ns = -500000000; /* of a hopping window about the epoch */
	row.first_ns = PL_QUERY_NO_TIME;
	pl_buf_reset(&out);
	pl_clickhouse_put_row(q, &row, &out);
	pl_buf_chr(&out, '\0');
	ok(strstr(out.data, "\"w0\":\"-0.500000000\"") != NULL &&
			strstr(out.data, "\"first_ts\":null") != NULL,
		"before the epoch, and of no record: %s", out.data);
	pl_buf_done(&out);
	pl_query_free(q);
}

static void test_table(void)
{
	struct pl_query *q = parse("SELECT flow.dst, event, duration_ns FROM events");
	struct pl_buf out;

	pl_buf_init(&out);
	pl_clickhouse_rows_table(q, "rows", "a`b", &out);
	pl_buf_chr(&out, '\0');
	ok(strstr(out.data,
		   "CREATE TABLE IF NOT EXISTS `a\\`b`\n(\n    `flow.dst` Nullable(IPv6)") != NULL);
	ok(strstr(out.data, "`event` Nullable(String)") != NULL, "a word is a text");
	ok(strstr(out.data, "w0") == NULL && strstr(out.data, "ORDER BY tuple()") != NULL,
		"without windows");
	pl_buf_done(&out);
	pl_query_free(q);
}

int main(void)
{
	test_influx_types();
	test_influx_times();
	test_influx_check();
	test_own_names();
	test_clickhouse();
	test_table();
	return pl_test_done();
}
