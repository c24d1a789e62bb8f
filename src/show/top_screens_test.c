/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/test.h"
#include "pipeline/api.h"
#include "show/top.h"
#include "show/top_pages.h"
#include "web/client.h"

/* Characters of a text, control characters counted too. */
static unsigned int width_of(const struct pl_buf *out)
{
	unsigned int n = 0;

	for (size_t i = 0; i < out->len; i++)
		n += ((unsigned char)out->data[i] & 0xc0) != 0x80;
	return n;
}

static bool has_control(const struct pl_buf *out)
{
	for (size_t i = 0; i < out->len; i++) {
		if ((unsigned char)out->data[i] < ' ' || out->data[i] == 127)
			return true;
	}
	return false;
}

/* A row of a stranger: every member is there, as long as it likes, with escapes of a terminal. */
static json_t *hostile_row(const struct pl_top_screen *s, bool numbers)
{
	static const char text[] =
		"\x1b[2J\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 a text that is longer than any column "
		"of any screen, and goes on behind it, and on, and on, to the end of the line\r\n\t";
	json_t *row = json_object();

	for (unsigned int i = 0; i < s->n_columns; i++)
		json_object_set_new(row, s->columns[i].key,
			numbers ? json_integer(INT64_MAX) : json_string(text));
	json_object_set_new(row, "rate", json_real(1e300));
	if (!numbers) {
		json_t *flow = json_object();

		json_object_set_new(flow, "src", json_string(text));
		json_object_set_new(flow, "dst", json_string(text));
		json_object_set_new(flow, "sport", json_integer(INT64_MIN));
		json_object_set_new(row, "flow", flow);
		json_object_set_new(row, "path_nodes", json_string(text));
		json_object_set_new(row, "old_path_nodes", json_string(text));
	}
	return row;
}

static bool lines_fit(const struct pl_top_screen *s, const json_t *row, unsigned int cols)
{
	struct pl_buf out;
	bool good;

	pl_buf_init(&out);
	pl_buf_str(&out, "");
	pl_top_row(&out, s, row, cols, cols % 2 == 0);
	good = width_of(&out) <= cols && !has_control(&out);
	if (!good)
		printf("# %s, %u columns: '%s'\n", s->name, cols, out.data);
	pl_buf_reset(&out);
	pl_top_titles(&out, s, cols % s->n_columns, cols % 3 == 0, cols);
	good = good && width_of(&out) <= cols;
	pl_buf_done(&out);
	return good;
}

static void test_lines(void)
{
	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		const struct pl_top_screen *s = &pl_top_screens[i];
		json_t *rows[] = { json_object(), hostile_row(s, false), hostile_row(s, true) };
		bool good = true;

		for (unsigned int cols = 1; cols <= 200; cols++) {
			for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
				good = lines_fit(s, rows[k], cols) && good;
		}
		ok(good, "%s: lines fit into 1 to 200 columns, without control characters",
			s->name);
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			json_decref(rows[k]);
	}
}

/* Whatever the width, a number is whole or not there. */
static void test_whole_numbers(void)
{
	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		const struct pl_top_screen *s = &pl_top_screens[i];
		json_t *row = json_object();
		unsigned int cut = 0, whole = 0;

		for (unsigned int c = 0; c < s->n_columns; c++)
			json_object_set_new(row, s->columns[c].key, json_integer(4157));
		for (unsigned int cols = 1; cols <= 200; cols++) {
			struct pl_buf out;
			char *word, *at;

			pl_buf_init(&out);
			pl_buf_str(&out, "");
			pl_top_row(&out, s, row, cols, true);
			for (word = strtok_r(out.data, " ", &at); word != NULL;
				word = strtok_r(NULL, " ", &at)) {
				const bool digits = word[strspn(word, "0123456789")] == '\0';

				whole += digits && strcmp(word, "4157") == 0;
				cut += digits && strcmp(word, "4157") != 0;
			}
			pl_buf_done(&out);
		}
		ok(cut == 0, "%s: %u numbers in 1 to 200 columns, none cut", s->name, whole);
		json_decref(row);
	}
}

/* Numbers that are larger than the parser's integers, as values of regions may be. */
static void test_large_numbers(void)
{
	static const char text[] =
		"{\"rows\": [{\"region\": \"k\", \"value\": 18446744073709551615, \"number\": 4157, \"list\": 7}]}";
	json_t *page = pl_client_json(text, strlen(text));
	const json_t *row = json_array_get(json_object_get(page, "rows"), 0);
	struct pl_buf out;

	ok(json_is_object(row), "a document with 2^64 - 1 is read");
	ok(json_is_integer(json_object_get(row, "number")), "other numbers are integers in it");
	pl_buf_init(&out);
	pl_top_row(&out, pl_top_screen_find("values"), row, 120, true);
	ok(strstr(out.data, "18.4E") != NULL && strstr(out.data, " 4157 ") != NULL, "values: %s",
		out.data);
	pl_buf_done(&out);
	json_decref(page);
	page = pl_client_json("{\"value\": 1", 11);
	ok(page == NULL, "half a document is none");
}

/* The last column of a row of the screen, in so many columns. */
static const char *last_cell(const char *screen, const json_t *row, unsigned int cols)
{
	static char cell[600];
	const struct pl_top_screen *s = pl_top_screen_find(screen);
	struct pl_buf out;
	unsigned int before = 0;

	for (unsigned int i = 0; i + 1 < s->n_columns; i++)
		before += s->columns[i].width + 1;
	pl_buf_init(&out);
	pl_top_row(&out, s, row, before + cols, true);
	snprintf(cell, sizeof(cell), "%s", out.len > before ? out.data + before : "");
	pl_buf_done(&out);
	return cell;
}

/* Nodes are whole: the first ones and the last, or none. */
static void test_nodes(void)
{
	static const struct {
		unsigned int cols;
		const char *nodes, *want;
	} cases[] = {
		{ 20, "1>5>2", "1>5>2" },
		{ 5, "1>5>2", "1>5>2" },
		{ 4, "1>5>2", "..>2" },
		{ 3, "1>5>2", "#" },
		{ 12, "101>205>317>422", "101>..>422" },
		{ 14, "101>205>317>422", "101>205>..>422" },
		{ 15, "101>205>317>422", "101>205>317>422" },
		{ 9, "101>205>317>422", "..>422" },
		{ 5, "101>205>317>422", "#" },
		{ 6, "4294967295", "#" },
		{ 10, "4294967295", "4294967295" },
		{ 16, "1>2>3>4>5>6>7>8>9>10>11>12>13>14>15>16>...", "1>2>3>4>5>..>..." },
	};
	json_t *event, *flow = json_object(), *row;
	struct pl_buf out;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		row = json_object();
		json_object_set_new(row, "nodes", json_string(cases[i].nodes));
		streq(last_cell("paths", row, cases[i].cols), cases[i].want, "%s in %u columns",
			cases[i].nodes, cases[i].cols);
		json_decref(row);
	}
	event = json_object();
	json_object_set_new(flow, "src", json_string("10.0.0.1"));
	json_object_set_new(flow, "dst", json_string("10.0.0.2"));
	json_object_set(event, "flow", flow);
	json_object_set_new(event, "path_id", json_string("00112233445566aa"));
	streq(last_cell("events", event, 60), "10.0.0.1>10.0.0.2", "an event without paths");
	json_object_set_new(event, "path_nodes", json_string("11>5>12"));
	json_object_set_new(event, "old_path_nodes", json_string("unknown"));
	streq(last_cell("events", event, 60), "11>5>12 was unknown 10.0.0.1>10.0.0.2",
		"one that is not known");
	json_object_set_new(event, "old_path_nodes", json_string("11>6>12"));
	streq(last_cell("events", event, 60), "11>5>12 was 11>6>12 10.0.0.1>10.0.0.2",
		"paths stand before the flow");
	streq(last_cell("events", event, 19), "11>5>12 was 11>6>12", "which is cut first");
	streq(last_cell("events", event, 16), "..>12 was ..>12", "with less room");
	row = json_object();
	json_object_set_new(row, "path_id", json_string("00112233445566aa"));
	json_object_set_new(row, "path_nodes", json_string("11>5>12"));
	json_object_set(row, "flow", flow);
	pl_buf_init(&out);
	pl_top_row(&out, pl_top_screen_find("flows"), row, 80, true);
	ok(strstr(out.data, " 11>5>12 ") != NULL && strstr(out.data, "0011") == NULL,
		"a flow has nodes and no hash: '%s'", out.data);
	pl_buf_reset(&out);
	json_object_del(row, "path_nodes");
	pl_top_row(&out, pl_top_screen_find("flows"), row, 80, true);
	ok(strstr(out.data, " 0011223344556") != NULL, "an id where they are not known: '%s'",
		out.data);
	pl_buf_done(&out);
	json_decref(row);
	json_decref(event);
	json_decref(flow);
}

static void test_columns(void)
{
	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		const struct pl_top_screen *s = &pl_top_screens[i];
		bool good = s->sort < s->n_columns && pl_top_screen_find(s->name) == s;

		/* A column is found by its title, whatever the case. */
		for (unsigned int c = 0; c < s->n_columns; c++) {
			int at = pl_top_column_find(s, s->columns[c].title);

			good = good && at >= 0 &&
			       strcmp(s->columns[at].title, s->columns[c].title) == 0;
		}
		ok(good, "%s: found by name, its columns by title", s->name);
		ok(pl_top_column_find(s, "") < 0 && pl_top_column_find(s, "no such") < 0,
			"%s: no column of another name", s->name);
	}
	ok(pl_top_screen_find("queue") == NULL, "no screen of half a name");
}

/* A document of the table of links: each with its packets. */
static json_t *links(const char *time_ns, const int64_t *packets, unsigned int n)
{
	json_t *doc = json_object(), *rows = json_array();

	for (unsigned int i = 0; i < n; i++) {
		json_t *row = json_object();

		json_object_set_new(row, "node", json_integer(i));
		json_object_set_new(row, "port", json_integer(1));
		json_object_set_new(row, "packets", json_integer(packets[i]));
		json_array_append_new(rows, row);
	}
	json_object_set_new(doc, "time_ns", json_string(time_ns));
	json_object_set_new(doc, "rows", rows);
	return doc;
}

static const json_t *row_of(const json_t *doc, size_t i)
{
	return json_array_get(json_object_get(doc, "rows"), i);
}

static double rate(const json_t *doc, size_t i)
{
	const json_t *v = json_object_get(row_of(doc, i), "rate");

	return v != NULL ? json_real_value(v) : -1;
}

static void test_rates(void)
{
	const struct pl_top_screen *s = pl_top_screen_find("links");
	struct pl_top_rates rates = { .before = NULL };
	json_t *first = links("1000000000", (const int64_t[]){ 10, 20, 30 }, 3);
	json_t *second = links("3000000000", (const int64_t[]){ 20, 60, 4, 9 }, 4);
	json_t *third = links("2000000000", (const int64_t[]){ 30, 70, 5, 10 }, 4);

	pl_top_rates_apply(&rates, s, first, false, false);
	ok(rate(first, 0) < 0, "the first answer has no rate");
	pl_top_rates_apply(&rates, s, second, true, true);
	ok(rate(second, 0) == 20 && rate(second, 1) == 5 && rate(second, 2) == 2,
		"growth over two seconds, the largest first");
	eq(json_integer_value(json_object_get(row_of(second, 2), "packets")), 4,
		"a counter that fell began anew");
	ok(rate(second, 3) < 0, "a new link has none");
	pl_top_rates_apply(&rates, s, third, false, false);
	ok(rate(third, 0) < 0 && rate(third, 3) < 0, "a clock that went back gives none");
	pl_top_rates_done(&rates);
	json_decref(first);
	json_decref(second);
	json_decref(third);
}

/* The page of a daemon that watches marks has no order: the table has, and no more rows than asked for. */
static void test_segments(void)
{
	static const char text[] =
		"{\"ts_ns\": 5, \"segments\": ["
		"{\"domain\": \"d\", \"segment\": \"a>b\", \"loss\": 2, \"alarms\": [\"missing\", \"pulses\"],"
		" \"totals\": {\"lost\": 7}},"
		"{\"domain\": \"d\", \"segment\": \"b>c\"},"
		"{\"domain\": \"d\", \"segment\": \"c>d\", \"loss\": -1},"
		"{\"domain\": \"d\", \"segment\": \"d>e\", \"loss\": 9}]}";
	static const struct {
		const char *path, *order;
	} cases[] = {
		{ "/api/v1/segments?sort=-loss&limit=10", "d>e a>b c>d b>c " },
		{ "/api/v1/segments?sort=loss&limit=10", "c>d a>b d>e b>c " },
		{ "/api/v1/segments?sort=-segment&limit=2", "d>e c>d " },
		{ "/api/v1/segments?sort=-loss&limit=0", "" },
		{ "/api/v1/segments", "a>b b>c c>d d>e " },
	};
	json_t *page = json_loads(text, 0, NULL);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *doc =
			pl_top_page_make(pl_top_page_asked(cases[i].path), page, cases[i].path);
		const json_t *rows = json_object_get(doc, "rows");
		char order[64] = "";

		for (size_t k = 0; k < json_array_size(rows); k++) {
			strcat(order, pl_json_member_text(json_array_get(rows, k), "segment"));
			strcat(order, " ");
		}
		streq(order, cases[i].order, "%s", cases[i].path);
		eq(pl_json_member_u64(doc, "total"), 4);
		if (i == 4) {
			const json_t *row = json_array_get(rows, 0);

			streq(pl_json_member_text(row, "words"), "missing+pulses");
			eq(pl_json_member_u64(row, "lost"), 7, "of all blocks");
		}
		json_decref(doc);
	}
	json_decref(page);
	page = json_loads("{\"segments\": [1, \"x\"]}", 0, NULL);
	ok(pl_top_page_make(pl_top_page_asked("/api/v1/segments"), page, "/api/v1/segments") ==
			NULL,
		"a page that is none");
	json_decref(page);
	ok(pl_top_page_asked("/api/v1/segments?limit=1") != NULL &&
		pl_top_page_asked("/api/v1/segmentsx") == NULL &&
		pl_top_page_asked("/api/v1/links") == NULL);
}

static void test_tapped(void)
{
	static const char text[] =
		"{\"ts_ns\": 5, \"tapped\": ["
		"{\"tap\": \"a\", \"flow\": {\"src\": \"192.0.2.1\", \"dst\": \"192.0.2.2\", \"sport\": 1,"
		" \"dport\": 2, \"proto\": 6}, \"packets\": 3, \"bytes\": 100, \"rtt_ns\": 2000000,"
		" \"retransmitted\": 7, \"idle_ns\": 0},"
		"{\"tap\": \"b\", \"flow\": {\"src\": \"192.0.2.1\", \"dst\": \"192.0.2.3\", \"sport\": 1,"
		" \"dport\": 2, \"proto\": 17}, \"packets\": 1, \"bytes\": 900, \"idle_ns\": 0}]}";
	static const char path[] = "/api/v1/tapped";
	const struct pl_top_screen *s = pl_top_screen_find("tapped");
	json_t *page = json_loads(text, 0, NULL),
	       *doc = pl_top_page_make(pl_top_page_asked(path), page, path);
	const json_t *rows = json_object_get(doc, "rows");
	struct pl_buf out;

	pl_buf_init(&out);
	streq(pl_json_member_text(json_array_get(rows, 0), "tap"), "b", "the most bytes first");
	pl_top_row(&out, s, json_array_get(rows, 1), 80, true);
	ok(strstr(out.data, "2.00ms") != NULL && strstr(out.data, " 7 ") != NULL &&
			strlen(out.data) <= 80,
		"%s", out.data);
	out.len = 0;
	pl_top_row(&out, s, json_array_get(rows, 1), 132, true);
	ok(strstr(out.data, "192.0.2.1:1") != NULL && strstr(out.data, "192.0.2.2:2") != NULL, "%s",
		out.data);
	pl_buf_done(&out);
	json_decref(doc);
	json_decref(page);
}

static void test_counts(void)
{
	static const struct {
		const char *screen, *table, *says;
	} rows[] = {
		{ "queues", "{\"matched\": 2, \"total\": 4, \"overflow\": 0}", "2 of 4" },
		{ "queues", "{\"matched\": 2, \"total\": 4, \"overflow\": 812}",
			"2 of 4, and 812 readings of other queues (aggregate.max_queues)" },
		{ "links", "{\"matched\": 4, \"total\": 4, \"overflow\": 1}",
			"4 of 4, and 1 readings of other links (aggregate.max_links)" },
		{ "events", "{\"matched\": 4, \"total\": 4, \"overflow\": 9}",
			"4 of 4, and 9 earlier ones" },
		{ "segments", "{\"matched\": 4, \"total\": 4}", "4 of 4" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *table = json_loads(rows[i].table, 0, NULL);
		struct pl_buf out;

		pl_buf_init(&out);
		pl_top_counts(&out, pl_top_screen_find(rows[i].screen), table);
		pl_buf_chr(&out, '\0');
		streq(out.data, rows[i].says);
		pl_buf_done(&out);
		json_decref(table);
	}
}

/* The name that a column has in the API. Times are there as texts, too; a flow is an object. */
static const char *api_name(const struct pl_top_column *c)
{
	if (strcmp(c->key, "time") == 0)
		return "ts_ns";
	return strcmp(c->key, "last_time") == 0 ? "last_ts_ns" : c->key;
}

static bool has_field(const struct pl_api_table *table, const char *name)
{
	size_t n;
	const struct pl_field *fields = pl_api_table_fields(table, &n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(fields[i].name, name) == 0)
			return true;
	}
	return false;
}

static void test_api(void)
{
	unsigned int tables = 0;

	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		const struct pl_top_screen *s = &pl_top_screens[i];
		const struct pl_api_table *table = pl_api_table_find(s->name);

		tables += table != NULL;
		for (unsigned int k = 0; table != NULL && k < s->n_columns; k++)
			ok(has_field(table, api_name(&s->columns[k])),
				"the table of %s has the column %s", s->name, s->columns[k].key);
	}
	eq(tables, 10);
	ok(pl_api_table_at(tables) == NULL, "every table has a screen");
}

int main(void)
{
	test_api();
	test_lines();
	test_counts();
	test_whole_numbers();
	test_large_numbers();
	test_nodes();
	test_columns();
	test_rates();
	test_segments();
	test_tapped();
	return pl_test_done();
}
