/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of records in questions: keys, aggregates, joins, order, and the room for them. */
#include "query/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/test.h"
#include "query/query.h"
#include "record/record.h"

#define SECOND UINT64_C(1000000000)
#define VALUES 12

static struct pl_value values[VALUES];
static struct pl_buf seen;

/* Values of two regions in turn, in the second half of three; the name is there for every third. */
static void make_values(void)
{
	static const char *const regions[] = { "last", "lists", "a" };

	for (uint32_t i = 0; i < VALUES; i++) {
		struct pl_value *v = &values[i];

		*v = (struct pl_value){ .ts_ns = SECOND + i * SECOND / 4,
			.record_version = 1,
			.present = PL_VALUE_HAS_value | (i % 3 == 0 ? PL_VALUE_HAS_name : 0),
			.value = i };
		snprintf(v->region.c, sizeof(v->region.c), "%s",
			regions[i < VALUES / 2 ? i % 2 : i % 3]);
		snprintf(v->name.c, sizeof(v->name.c), "%s", i % 2 == 0 ? "even" : "odd");
	}
}

static void put_value(const struct pl_query_value *v)
{
	if (v->absent)
		pl_buf_chr(&seen, '-');
	else if (v->type == PL_QUERY_TEXT)
		pl_buf_str(&seen, v->text);
	else if (v->type == PL_QUERY_UNSIGNED)
		pl_buf_u64(&seen, v->u);
	for (uint32_t i = 0; v->type == PL_QUERY_LIST && i < v->list.n; i++) {
		put_value(&v->list.items[i].value);
		pl_buf_printf(&seen, ":%u,", (unsigned int)v->list.items[i].count);
	}
}

static struct pl_buf marks;

static void sink(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	pl_buf_chr(&marks, row->incomplete ? 'i' : '.');
	for (uint32_t i = 0; i < row->n; i++) {
		put_value(&row->values[i]);
		pl_buf_chr(&seen, i + 1 < row->n ? ' ' : ';');
	}
}

/* Returns the answer to a question over the values: its rows, one after the other. */
static const char *answer(const char *question)
{
	const struct pl_query_config config = { .max_groups = 64 };
	struct pl_diag diag = { .text = "" };
	struct pl_query *query = NULL;
	struct pl_query_run *run = NULL;

	pl_buf_reset(&seen);
	if (pl_query_parse(&query, question, &diag) < 0 ||
		pl_query_run_new(&run, query, &config, sink, NULL, &diag) < 0)
		pl_buf_str(&seen, diag.text);
	if (run != NULL) {
		pl_query_feed(run, PL_QUERY_VALUES, values, VALUES, 0);
		pl_query_finish(run);
	}
	pl_query_run_free(run);
	pl_query_free(query);
	pl_buf_chr(&seen, '\0');
	return seen.data;
}

static void test_answers(void)
{
	static const struct {
		const char *question, *wanted;
	} list[] = {
		{ "SELECT region, count() AS n, max(value) AS m FROM values GROUP BY region ORDER BY region",
			"a 2 11;last 5 9;lists 5 10;" },
		{ "SELECT region, value FROM values WHERE region = lists AND value < 4",
			"lists 1;lists 3;" },
		{ "SELECT value FROM values WHERE region in ('a', nothing) or name = odd",
			"3;8;9;11;" },
		{ "SELECT value FROM values WHERE region != last and 'lists' != region", "8;11;" },
		{ "SELECT value FROM values WHERE name != 'even'", "3;9;" },
		{ "SELECT name, count() AS n FROM values GROUP BY name ORDER BY name DESC",
			"odd 2;even 2;- 8;" },
		{ "SELECT count(distinct region) AS n, count(distinct region, name) AS p FROM values",
			"3 3;" },
		{ "SELECT first(region) AS f, last(region) AS l, topk(region, 2) AS t FROM values",
			"last a last:5,lists:5,;" },
		{ "SELECT coalesce(name, region) AS c, count() AS n FROM values WHERE value < 4 GROUP BY coalesce(name, region) ORDER BY c",
			"even 1;last 1;lists 1;odd 1;" },
		{ "SELECT if(region = last, 1, 0) AS is_last, count() AS n FROM values GROUP BY if(region = 'last', 1, 0) ORDER BY is_last",
			"0 7;1 5;" },
		{ "SELECT region, n FROM (SELECT region, count() AS n FROM values GROUP BY region) AS x WHERE region != a and n > 4 GROUP BY region, n ORDER BY region",
			"last 5;lists 5;" },
		{ "SELECT a.region, a.n, b.m FROM (SELECT region, count() AS n FROM values GROUP BY region) AS a "
		  "JOIN (SELECT region, count() AS m FROM values WHERE value > 7 GROUP BY region) AS b ON region ORDER BY n LIMIT 1",
			"a 2 2;" },
		{ "SELECT a.value, b.value AS then FROM values AS a JOIN values AS b ON region AND b.ts > a.ts WITHIN 500ms WHERE a.region = lists",
			"1 3;3 5;5 7;" },
		{ "SELECT max(if(value > 99, 1, 0)) AS same, region FROM values GROUP BY region ORDER BY same",
			"0 a;0 last;0 lists;" },
		{ "values | distinct region over 10s | where region != a", "lists;last;" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		const char *got = answer(list[i].question);

		/* Rows of a window without ORDER BY have none. */
		if (strcmp(got, "last;lists;") == 0)
			got = "lists;last;";
		streq(got, list[i].wanted, "%s", list[i].question);
	}
}

/* A text that has no end, and the longest of a value's key. */
static void test_ends(void)
{
	memset(values[0].region.c, 'x', sizeof(values[0].region.c));
	memset(values[0].name.c, 0, sizeof(values[0].name.c));
	values[0].present |= PL_VALUE_HAS_key;
	memset(&values[0].bytes, 'k', sizeof(values[0].bytes));
	streq(answer("SELECT region, key FROM values LIMIT 1"),
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk;",
		"texts end with their record");
	make_values();
}

/* Feeds values with keys of their own, from number `first` on, `step` apart in time. */
static void feed_keys(
	struct pl_query_run *run, uint32_t first, uint32_t n, uint64_t ts, uint64_t step)
{
	for (uint32_t i = first; i < first + n; i++, ts += step) {
		struct pl_value v = values[i % 2];

		v.ts_ns = ts;
		v.present |= PL_VALUE_HAS_key;
		snprintf((char *)&v.bytes, sizeof(v.bytes), "key-%u", i);
		pl_query_feed(run, PL_QUERY_VALUES, &v, 1, 0);
	}
}

/* As many different texts as there is room for, and more: these are absent, and counted. */
static void test_room(void)
{
	struct pl_query *query = NULL;
	struct pl_query_run *run = NULL;
	const struct pl_query_config config = { .max_groups = 1 << 18 };
	uint32_t refused = 0;

	pl_buf_reset(&seen);
	ok(pl_query_parse(&query,
		   "SELECT count() AS n, count(distinct key) AS k, count(distinct region) AS r FROM values",
		   NULL) == 0 &&
			pl_query_run_new(&run, query, &config, sink, NULL, NULL) == 0,
		"a query of keys");
	for (uint32_t i = 0; run != NULL && i < PL_QUERY_TEXTS_MAX + 100; i++) {
		struct pl_value v = values[i % 2];

		v.present |= PL_VALUE_HAS_key;
		snprintf((char *)&v.bytes, sizeof(v.bytes), "key-%u", i);
		pl_query_feed(run, PL_QUERY_VALUES, &v, 1, 0);
	}
	if (run != NULL) {
		pl_query_finish(run);
		refused = (uint32_t)pl_query_run_stats(run)->texts_refused;
		pl_buf_chr(&seen, '\0');
		streq(seen.data, "65636 65534 2;", "texts that had room are as they were");
		eq(refused, 102, "the others are counted");
	}
	pl_query_run_free(run);
	pl_query_free(query);
}

/* Asks over values with keys of their own: few within the first ten seconds, more than there is room
 * for within the next, one behind that, and a few when these windows have closed. Returns a sign for each row, 'i' for an incomplete one. */
static const char *ask_keys(const char *question)
{
	const struct pl_query_config config = { .max_groups = 1 << 18 };
	struct pl_query *query = NULL;
	struct pl_query_run *run = NULL;

	pl_buf_reset(&seen);
	pl_buf_reset(&marks);
	if (!ok(pl_query_parse(&query, question, NULL) == 0 &&
			    pl_query_run_new(&run, query, &config, sink, NULL, NULL) == 0,
		    "%s", question))
		return "";
	feed_keys(run, 0, 100, SECOND, SECOND / 100);
	ok(!pl_query_lacks_texts(run), "there is room for a hundred");
	feed_keys(run, 100, PL_QUERY_TEXTS_MAX + 100, 11 * SECOND, SECOND / 100000);
	ok(pl_query_lacks_texts(run), "there is none for 65636");
	feed_keys(run, PL_QUERY_TEXTS_MAX + 200, 1, 21 * SECOND, SECOND);
	feed_keys(run, PL_QUERY_TEXTS_MAX + 201, 10, 35 * SECOND, SECOND / 100);
	pl_query_finish(run);
	pl_query_run_free(run);
	pl_query_free(query);
	pl_buf_chr(&marks, '\0');
	return marks.data;
}

/* Rows whose records lack a text are incomplete. */
static void test_marks(void)
{
	static const struct {
		const char *question, *wanted;
	} list[] = {
		{ "SELECT count(distinct key) AS n FROM values TUMBLE(ts, 10s)", ".ii." },
		{ "SELECT count() AS n FROM values TUMBLE(ts, 10s) WHERE key != none", ".i." },
		{ "SELECT count(distinct key) AS n FROM values HOP(ts, 10s, 5s)", "..iiii.." },
		{ "SELECT count(distinct key) AS n FROM values SESSION(ts, 5s)", ".iii" },
		{ "SELECT count(distinct key) AS n FROM values", "i" },
		{ "SELECT count(b.ts) AS n FROM values TUMBLE(ts, 10s) AS a LEFT JOIN values AS b "
		  "ON key WITHIN 100ms",
			".iii" },
	};

	const char *pairs;

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		streq(ask_keys(list[i].question), list[i].wanted, "%s", list[i].question);
	/* Without windows each row is marked for itself: of the last ten the keys have no room. */
	pairs = ask_keys("SELECT a.ts FROM values AS a LEFT JOIN values AS b ON key WITHIN 100ms");
	ok(pairs[0] == '.', "a record with its partner");
	ok(pairs[0] != '\0' && pairs[strlen(pairs) - 1] == 'i', "one whose partner may be missing");
}

#define MANY 300000u

static uint64_t sum, wrong;

static void add_key(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	wrong += row->incomplete || row->values[0].absent ||
		 strncmp(row->values[0].text, "key-", 4) != 0 ||
		 (row->n > 1 && row->values[1].u != 1);
	if (!row->values[0].absent)
		sum += strtoul(row->values[0].text + 4, NULL, 10);
}

/* Keys that come and go, many more than there is room for, of which no windows at a time have more. */
static void test_forgotten(void)
{
	static const char *const questions[] = { "SELECT key FROM values",
		"SELECT key, count() AS n FROM values TUMBLE(ts, 1s) GROUP BY key",
		"SELECT key, count() AS n FROM values TUMBLE(ts, 1s) GROUP BY key ORDER BY key",
		("SELECT key, n FROM (SELECT key, count() AS n FROM values TUMBLE(ts, 1s) WHERE "
		 "region != none GROUP BY key) AS x WHERE key != none"),
		"SELECT key, count() AS n FROM values HOP(ts, 2s, 1s) GROUP BY key" };

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		const bool twice = strstr(questions[i], "HOP") != NULL;
		const struct pl_query_config config = { .max_groups = 1 << 18 };
		struct pl_query *query = NULL;
		struct pl_query_run *run = NULL;

		sum = wrong = 0;
		if (!ok(pl_query_parse(&query, questions[i], NULL) == 0 &&
				    pl_query_run_new(&run, query, &config, add_key, NULL, NULL) ==
					    0,
			    "%s", questions[i]))
			continue;
		feed_keys(run, 0, MANY, SECOND, SECOND / 10000);
		eq(pl_query_run_stats(run)->texts_refused, 0, "all have room");
		pl_query_finish(run);
		eq(wrong, 0, "each row is one key's");
		eq(sum, (uint64_t)MANY * (MANY - 1) / 2 * (twice ? 2 : 1),
			"and each key's is there");
		pl_query_run_free(run);
		pl_query_free(query);
	}
}

/* The Community ID of both directions of a flow, computed from the records: by itself, in conditions, as
 * key, and of the pairs of a join, where a record stands behind another one. A later fragment has none. */
static void test_community_id(void)
{
#define ID "1:LQU9qZlK+B5F3KDmev6m5PMibrg="
	static const struct {
		const char *question, *wanted;
	} list[] = {
		{ "SELECT community_id FROM packets", ID ";" ID ";-;" },
		{ "SELECT sport FROM packets WHERE community_id = '" ID "'", "34855;80;" },
		{ "SELECT ttl FROM packets WHERE community_id != '" ID "'", "" },
		{ "SELECT ttl FROM packets WHERE missing(community_id)", "5;" },
		{ "SELECT count(community_id) AS n, count(distinct community_id) AS d FROM packets",
			"2 1;" },
		{ "SELECT community_id, count() AS n FROM packets GROUP BY community_id ORDER BY n",
			"- 1;" ID " 2;" },
		{ "SELECT a.sport, b.community_id FROM packets AS a JOIN packets AS b ON a.sport = b.dport WITHIN 10ns "
		  "WHERE a.sport = 80",
			"80 " ID ";" },
	};
	const uint8_t client[4] = { 128, 232, 110, 120 }, server[4] = { 66, 35, 250, 204 };
	const struct pl_addr a = pl_addr_v4(client), b = pl_addr_v4(server);
	const struct pl_pkt64 packets[] = {
		{ .ts_ns = 1, .src = a, .dst = b, .sport = 34855, .dport = 80, .proto = 6 },
		{ .ts_ns = 2, .src = b, .dst = a, .sport = 80, .dport = 34855, .proto = 6 },
		{ .ts_ns = 3, .src = a, .dst = b, .proto = 6, .obs = PL_OBS_FRAGMENT, .ttl = 5 },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		const struct pl_query_config config = { .max_groups = 64 };
		struct pl_diag diag = { .text = "" };
		struct pl_query *query = NULL;
		struct pl_query_run *run = NULL;

		pl_buf_reset(&seen);
		if (pl_query_parse(&query, list[i].question, &diag) < 0 ||
			pl_query_run_new(&run, query, &config, sink, NULL, &diag) < 0)
			pl_buf_str(&seen, diag.text);
		if (run != NULL) {
			pl_query_feed(run, PL_FLAT_PKT64, packets, 3, 0);
			pl_query_finish(run);
		}
		pl_query_run_free(run);
		pl_query_free(query);
		pl_buf_chr(&seen, '\0');
		streq(seen.data, list[i].wanted, "%s", list[i].question);
	}
#undef ID
}

int main(void)
{
	pl_buf_init(&seen);
	pl_buf_init(&marks);
	make_values();
	test_answers();
	test_ends();
	test_room();
	test_marks();
	test_forgotten();
	test_community_id();
	pl_buf_done(&seen);
	pl_buf_done(&marks);
	return pl_test_done();
}
