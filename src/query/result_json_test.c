/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows as messages: which columns are the key, and the object by its text. */
#include "base/test.h"
#include "query/result_json.h"

struct seen {
	const struct pl_query *query;
	struct pl_buf keys, values;
};

static void sink(void *arg, const struct pl_query_row *row)
{
	struct seen *seen = arg;

	pl_query_result_json(seen->query, "q1", row, &seen->keys, &seen->values);
	pl_buf_chr(&seen->keys, '\n');
	pl_buf_chr(&seen->values, '\n');
}

static struct pl_addr addr(uint8_t last)
{
	return (struct pl_addr){ .b = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = last } };
}

/* Two packets, of 10.0.0.1 and 10.0.0.2. */
static void check(const char *text, const char *keys, const char *values)
{
	struct pl_pkt64 packets[2] = {
		{ .ts_ns = 5, .src = addr(1), .dst = addr(9), .sport = 7, .wire_len = 100 },
		{ .ts_ns = 6, .src = addr(2), .dst = addr(9), .sport = 8, .wire_len = 50 },
	};
	struct seen seen = { 0 };
	struct pl_diag diag = { .text = "" };
	struct pl_query_run *run = NULL;
	struct pl_query *query = NULL;

	pl_buf_init(&seen.keys);
	pl_buf_init(&seen.values);
	if (!ok(pl_query_parse(&query, text, &diag) == 0, "%s %s", text, diag.text))
		return;
	seen.query = query;
	if (ok(pl_query_run_new(&run, query, NULL, sink, &seen, &diag) == 0, "%s", diag.text)) {
		pl_query_feed(run, PL_FLAT_PKT64, packets, 2, 0);
		pl_query_finish(run);
		pl_buf_chr(&seen.keys, '\0');
		pl_buf_chr(&seen.values, '\0');
		streq(seen.keys.data, keys, "its keys");
		streq(seen.values.data, values, "its objects");
	}
	pl_query_run_free(run);
	pl_query_free(query);
	pl_buf_done(&seen.keys);
	pl_buf_done(&seen.values);
}

#define WINDOW       "\"w0\":0,\"w0_s\":\"0\",\"w1\":10,\"w1_s\":\"10\","
#define FROM(ts)     "\"first_ts\":" ts ",\"first_ts_s\":\"" ts "\",\"late\":0,\"exp\":"
#define END(ts, exp) "\"final\":true," FROM(ts) exp ",\"incomplete\":false,\"approx\":false}\n"

int main(void)
{
	check("SELECT src, sum(wire_len) AS b FROM packets TUMBLE(ts, 10ns) GROUP BY src",
		"q1|10.0.0.1\nq1|10.0.0.2\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW
		"\"key\":{\"src\":\"10.0.0.1\"},\"val\":{\"b\":100}," END(
			"5", "[0]") "{\"q\":\"q1\",\"v\":1," WINDOW
				    "\"key\":{\"src\":\"10.0.0.2\"},\"val\":{\"b\":50}," END(
					    "6", "[0]"));
	check("SELECT count(*) AS n, dst, proto, max(ts) AS t, min(sport) - 8 AS d "
	      "FROM packets TUMBLE(ts, 10ns) GROUP BY dst, proto",
		"q1|10.0.0.9,0\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW
		"\"key\":{\"dst\":\"10.0.0.9\",\"proto\":0},\"val\":{\"n\":2,\"t\":6,\"t_s\":\"6\",\"d\":-1}," END(
			"5", "[0]"));
	check("SELECT a.src, a.n + b.n AS n FROM "
	      "(SELECT src, count(*) AS n FROM packets TUMBLE(ts, 10ns) GROUP BY src) AS a JOIN "
	      "(SELECT src, sum(wire_len) AS n FROM packets TUMBLE(ts, 10ns) GROUP BY src) AS b ON src "
	      "WHERE b.n > 60",
		"q1|10.0.0.1\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW
		"\"key\":{\"src\":\"10.0.0.1\"},\"val\":{\"n\":101}," END("5", "[0]"));
	check("SELECT count(*) AS n, sum(wire_len) + 9007199254740992 AS s "
	      "FROM packets TUMBLE(ts, 10ns)",
		"q1|\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW "\"key\":{},\"val\":{\"n\":2,"
		"\"s\":9007199254741142,\"s_s\":\"9007199254741142\"}," END("5", "[0]"));
	check("SELECT src, sum(wire_len) AS b FROM packets TUMBLE(ts, 10ns) GROUP BY src HAVING b >= 60",
		"q1|10.0.0.1\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW
		"\"key\":{\"src\":\"10.0.0.1\"},\"val\":{\"b\":100},\"thr\":60," END("5", "[0]"));
	check("SELECT src, avg(wire_len) AS b FROM packets TUMBLE(ts, 10ns) GROUP BY src HAVING 60.5 < b",
		"q1|10.0.0.1\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW
		"\"key\":{\"src\":\"10.0.0.1\"},\"val\":{\"b\":100},\"thr\":60.5," END("5", "[0]"));
	check("SELECT src, sum(wire_len) AS b FROM packets TUMBLE(ts, 10ns) GROUP BY src "
	      "HAVING b >= 60 and b < 900",
		"q1|10.0.0.1\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW
		"\"key\":{\"src\":\"10.0.0.1\"},\"val\":{\"b\":100}," END("5", "[0]"));
	check("SELECT sport, ts, rst FROM packets WHERE sport = 7", "\n",
		"{\"q\":\"q1\",\"v\":1,\"key\":{},\"val\":{\"sport\":7,\"ts\":5,\"ts_s\":\"5\","
		"\"rst\":false},\"final\":false," FROM(
			"5") "[0],\"incomplete\":false,\"approx\":false}\n");
	check("SELECT topk(sport, 1) AS t, avg(wire_len) AS a FROM packets TUMBLE(ts, 10ns) "
	      "WHERE sport = 8",
		"q1|\n",
		"{\"q\":\"q1\",\"v\":1," WINDOW
		"\"key\":{},\"val\":{\"t\":[{\"value\":8,\"count\":1,\"error\":0}],\"a\":50},"
		"\"final\":true," FROM("6") "[0],\"incomplete\":false,\"approx\":true}\n");
	return pl_test_done();
}
