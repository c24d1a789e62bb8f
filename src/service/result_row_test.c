/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing rows from messages: a row that was written is read back, and anything else is refused. */
#include <string.h>

#include "base/test.h"
#include "query/result_json.h"
#include "service/result_row.h"

#define QUESTION                                                                                   \
	"SELECT src, proto, count(*) AS n, min(ts) - 5000 AS early, avg(wire_len) AS mean, "       \
	"max(ts) AS last FROM packets TUMBLE(ts, 1s) GROUP BY src, proto"

static struct pl_query *parse(const char *text)
{
	struct pl_query *query = NULL;
	struct pl_diag diag = { .text = "" };

	ok(pl_query_parse(&query, text, &diag) == 0, "parsed: %s", diag.text);
	return query;
}

struct seen {
	const struct pl_query *query;
	unsigned int n;
};

/* Compares a row with the one parsed from its message, which must give the same message again. */
static void there_and_back(void *arg, const struct pl_query_row *row)
{
	struct seen *seen = arg;
	struct pl_result_row back;
	struct pl_buf one, other;

	pl_buf_init(&one);
	pl_buf_init(&other);
	seen->n++;
	pl_query_result_json(seen->query, "q1", row, NULL, &one);
	pl_buf_chr(&one, '\0');
	if (eq(pl_result_row_read(&back, seen->query, "q1", one.data, one.len - 1),
		    PL_RESULT_ROW_GOOD, "%s", one.data)) {
		pl_query_result_json(seen->query, "q1", &back.row, NULL, &other);
		pl_buf_chr(&other, '\0');
		streq(other.data, one.data, "the same again");
	}
	eq(pl_result_row_read(&back, seen->query, "q2", one.data, one.len - 1), PL_RESULT_ROW_OTHER,
		"of another question");
	/* Every cut is refused. */
	for (size_t n = 0; n < one.len - 1; n++) {
		if (pl_result_row_read(&back, seen->query, "q1", one.data, n) != PL_RESULT_ROW_BAD)
			ok(false, "cut after %zu bytes", n);
	}
	pl_buf_done(&one);
	pl_buf_done(&other);
}

static void test_back(const char *text)
{
	const uint64_t second = UINT64_C(1000000000);
	struct pl_query *query = parse(text);
	struct seen seen = { .query = query };
	struct pl_query_run *run = NULL;
	struct pl_diag diag = { .text = "" };

	if (!ok(pl_query_run_new(&run, query, NULL, there_and_back, &seen, &diag) == 0, "%s",
		    diag.text))
		return;
	for (uint32_t i = 0; i < 40; i++) {
		struct pl_pkt64 p = { .ts_ns = 1700000000 * second + i * (second / 10),
			.sport = (uint16_t)i,
			.proto = i % 2 == 0 ? 6 : 17,
			.wire_len = (uint16_t)(100 + 7 * i) };

		p.src.b[15] = (uint8_t)(i % 3);
		p.dst.b[0] = 0xfd;
		(void)pl_query_feed(run, PL_FLAT_PKT64, &p, 1, 0);
	}
	pl_query_finish(run);
	ok(seen.n > 0, "%u rows", seen.n);
	pl_query_run_free(run);
	pl_query_free(query);
}

struct message {
	const char *what, *text;
	enum pl_result_verdict verdict;
};

#define W                      "\"w0\":1000,\"w0_s\":\"1000\",\"w1\":2000,\"w1_s\":\"2000\","
#define E                      ",\"final\":true,\"incomplete\":false,\"approx\":false}"
#define FROM(first, late, exp) ",\"first_ts\":" first ",\"late\":" late ",\"exp\":" exp

#define ROW                    "{\"q\":\"a\",\"v\":1," W "\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7}"

static void test_messages(void)
{
	static const struct message messages[] = {
		{ "a row",
			"{\"q\":\"a\",\"v\":1," W
			"\"key\":{\"src\":\"10.0.0.1\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_GOOD },
		{ "with a member that is new",
			"{\"q\":\"a\",\"v\":1,\"x\":[{}]," W
			"\"key\":{\"src\":\"fd00::1\"},\"val\":{\"n\":7,\"m\":1}" E,
			PL_RESULT_ROW_GOOD },
		{ "an integer as a text",
			"{\"q\":\"a\",\"v\":1," W
			"\"key\":{\"src\":\"::1\"},\"val\":{\"n\":18446744073709551615,\"n_s\":\"18446744073709551615\"}" E,
			PL_RESULT_ROW_GOOD },
		{ "an absent value",
			"{\"q\":\"a\",\"v\":1," W "\"key\":{\"src\":null},\"val\":{\"n\":null}" E,
			PL_RESULT_ROW_GOOD },
		{ "where it is from",
			ROW FROM("1000,\"first_ts_s\":\"1000\"", "3", "[0,7,1023,null]") E,
			PL_RESULT_ROW_GOOD },
		{ "a row of nothing", ROW FROM("null", "0", "[]") E, PL_RESULT_ROW_GOOD },
		{ "a time that is a text", ROW FROM("\"5\"", "0", "[]") E, PL_RESULT_ROW_BAD },
		{ "late below zero", ROW FROM("5", "-1", "[]") E, PL_RESULT_ROW_BAD },
		{ "no list of points", ROW FROM("5", "0", "7") E, PL_RESULT_ROW_BAD },
		{ "points out of order", ROW FROM("5", "0", "[7,3]") E, PL_RESULT_ROW_BAD },
		{ "a point twice", ROW FROM("5", "0", "[7,7]") E, PL_RESULT_ROW_BAD },
		{ "a point that is none", ROW FROM("5", "0", "[1024]") E, PL_RESULT_ROW_BAD },
		{ "a point below zero", ROW FROM("5", "0", "[-1]") E, PL_RESULT_ROW_BAD },
		{ "half a point", ROW FROM("5", "0", "[1.5]") E, PL_RESULT_ROW_BAD },
		{ "others before a point", ROW FROM("5", "0", "[null,3]") E, PL_RESULT_ROW_BAD },
		{ "nothing", "", PL_RESULT_ROW_BAD },
		{ "no JSON", "alert!", PL_RESULT_ROW_BAD },
		{ "no object", "[1]", PL_RESULT_ROW_BAD },
		{ "two objects", "{}{}", PL_RESULT_ROW_BAD },
		{ "no name", "{\"v\":1," W "\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_BAD },
		{ "another name", "{\"q\":\"b\",\"v\":1}", PL_RESULT_ROW_OTHER },
		{ "another version",
			"{\"q\":\"a\",\"v\":2," W "\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_BAD },
		{ "half a window",
			"{\"q\":\"a\",\"v\":1,\"w0\":5,\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_BAD },
		{ "a window turned round",
			"{\"q\":\"a\",\"v\":1,\"w0\":5,\"w1\":4,\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_BAD },
		{ "a window that does not fit",
			"{\"q\":\"a\",\"v\":1,\"w0\":0,\"w1\":1,\"w1_s\":\"9223372036854775808\",\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_BAD },
		{ "no key", "{\"q\":\"a\",\"v\":1," W "\"val\":{\"n\":7}" E, PL_RESULT_ROW_BAD },
		{ "no such column",
			"{\"q\":\"a\",\"v\":1," W "\"key\":{\"src\":\"::1\"},\"val\":{\"m\":7}" E,
			PL_RESULT_ROW_BAD },
		{ "no address",
			"{\"q\":\"a\",\"v\":1," W "\"key\":{\"src\":\"host\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_BAD },
		{ "a number below zero",
			"{\"q\":\"a\",\"v\":1," W "\"key\":{\"src\":\"::1\"},\"val\":{\"n\":-7}" E,
			PL_RESULT_ROW_BAD },
		{ "a fraction",
			"{\"q\":\"a\",\"v\":1," W "\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7.5}" E,
			PL_RESULT_ROW_BAD },
		{ "a number that was rounded",
			"{\"q\":\"a\",\"v\":1," W
			"\"key\":{\"src\":\"::1\"},\"val\":{\"n\":1e18}" E,
			PL_RESULT_ROW_BAD },
		{ "a text for a number",
			"{\"q\":\"a\",\"v\":1," W
			"\"key\":{\"src\":\"::1\"},\"val\":{\"n\":\"7\"}" E,
			PL_RESULT_ROW_BAD },
		{ "a member twice",
			"{\"q\":\"a\",\"q\":\"a\",\"v\":1," W
			"\"key\":{\"src\":\"::1\"},\"val\":{\"n\":7}" E,
			PL_RESULT_ROW_BAD },
	};
	struct pl_query *query =
		parse("SELECT src, count(*) AS n FROM packets TUMBLE(ts, 1s) GROUP BY src");
	struct pl_result_row row;

	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		const struct message *m = &messages[i];

		eq(pl_result_row_read(&row, query, "a", m->text, strlen(m->text)), m->verdict, "%s",
			m->what);
	}
	pl_query_free(query);
}

static void test_list(void)
{
	static const char message[] =
		"{\"q\":\"a\",\"v\":1,\"key\":{},\"val\":{\"n\":7,\"t\":[{\"value\":1}]}" E;
	struct pl_query *query = parse("SELECT count(*) AS n, topk(dport, 2) AS t FROM packets");
	struct pl_result_row row;

	eq(pl_result_row_read(&row, query, "a", message, strlen(message)), PL_RESULT_ROW_GOOD,
		"a row with a list");
	ok(row.values[0].u == 7 && row.values[1].absent, "whose list is absent");
	pl_query_free(query);
}

int main(void)
{
	test_back(QUESTION);
	test_back("SELECT src, sport, tcp, wire_len FROM packets");
	test_back("SELECT count(*) AS n, min(sport) AS low FROM packets");
	test_messages();
	test_list();
	return pl_test_done();
}
