/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/rows.h"

#include "base/num.h"
#include "base/test.h"
#include "record/where.h"

struct row {
	uint32_t present;
	int32_t pad;
	int64_t s;
	uint64_t last_ts_ns, big;
	struct pl_addr who;
	char name[24];
};

#define F(member, f, has)                                                                          \
	{                                                                                          \
		.name = #member, .unit = "", .help = "", .offset = offsetof(struct row, member),   \
		.form = PL_FORM_##f, .present = (has)                                              \
	}
static const struct pl_field fields[] = { F(name, TEXT, 0), F(s, S64, 1), F(big, U64, 2),
	F(who, ADDR, 0), F(last_ts_ns, U64, 4) };
#define N (sizeof(fields) / sizeof(fields[0]))

static void as_json(const struct row *row, struct pl_buf *out)
{
	struct pl_json json;

	pl_buf_reset(out);
	pl_json_init(&json, out);
	pl_json_object(&json);
	pl_row_json(&json, fields, N, row, row->present);
	pl_json_object_end(&json);
}

static void json_form(void)
{
	struct row row = {
		.present = 7, .s = -5, .big = UINT64_MAX, .last_ts_ns = 1795164712461614001u
	};
	struct pl_event event = { .ts_ns = 1,
		.event = PL_EVENT_QUEUE_DEPTH,
		.phase = PL_PHASE_BEGIN,
		.present = PL_EVENT_HAS_src | PL_EVENT_HAS_sport,
		.sport = 80 };
	struct pl_hop hop = { .present = PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_node,
		.node = 7,
		.ingress_ts_ns = (uint64_t)1 << 63 };
	struct pl_path path = { .ts_ns = 999999999, .hop_count = 1, .flags = 1 };
	struct pl_json json;
	struct pl_buf out;

	pl_buf_init(&out);
	eq(pl_parse_addr("10.0.0.1", &row.who), 0);
	snprintf(row.name, sizeof(row.name), "a\"\x1b\n\xff");
	as_json(&row, &out);
	streq(out.data,
		"{\"name\":\"a\\\"\\u001b\\n\xef\xbf\xbd\",\"s\":-5,\"big\":18446744073709551615,"
		"\"who\":\"10.0.0.1\",\"last_time\":\"2026-11-20T08:51:52.461614001Z\","
		"\"last_ts_ns\":\"1795164712461614001\"}");
	row.present = 0;
	row.name[0] = '\0';
	as_json(&row, &out);
	streq(out.data, "{\"name\":\"\",\"who\":\"10.0.0.1\"}");
	pl_buf_reset(&out);
	pl_json_init(&json, &out);
	event.src = event.dst = row.who;
	event.proto = 17;
	pl_event_api(&json, &event);
	streq(out.data,
		"{\"kind\":\"event\",\"time\":\"1970-01-01T00:00:00.000000001Z\",\"ts_ns\":\"1\","
		"\"event\":\"queue_depth\",\"phase\":\"begin\",\"flow\":{\"src\":\"10.0.0.1\","
		"\"dst\":\"10.0.0.1\",\"sport\":80,\"dport\":0,\"proto\":17}}");
	pl_buf_reset(&out);
	pl_json_init(&json, &out);
	pl_path_api(&json, &path, &hop, 1);
	ok(strstr(out.data, "\"ingress_ts_ns\":\"9223372036854775808\"") != NULL &&
			strstr(out.data, "ingress_time") == NULL,
		"a node's clock is a text and no date: %s", out.data);
	ok(strstr(out.data, "\"dropped\":true") != NULL, "flags by name");
	pl_buf_done(&out);
}

static void order(void)
{
	struct row rows[] = {
		{ .present = 3, .s = -1, .big = 1, .name = "b" },
		{ .present = 3, .s = 1, .big = UINT64_MAX, .name = "a" },
		{ .present = 2, .s = 0, .big = 1, .name = "b" },
	};
	static const struct {
		const char *column;
		unsigned int a, b;
		int want;
	} cases[] = {
		{ "s", 0, 1, -1 },
		{ "s", 1, 0, 1 },
		{ "s", 2, 0, -1 },
		{ "s", 0, 2, 1 },
		{ "big", 0, 1, -1 },
		{ "big", 0, 2, 0 },
		{ "name", 0, 1, 1 },
		{ "name", 0, 2, 0 },
		{ "who", 0, 1, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pl_field *f = pl_row_field(fields, N, cases[i].column);
		const struct row *a = &rows[cases[i].a], *b = &rows[cases[i].b];
		int got = pl_row_compare(f, a, a->present, b, b->present);

		eq((got > 0) - (got < 0), cases[i].want, "%s of %u and %u", cases[i].column,
			cases[i].a, cases[i].b);
	}
	ok(pl_row_field(fields, N, "no") == NULL, "no such column");
}

/* The filter language over rows: names, texts, what is not there, and no hops. */
static void filter(void)
{
	struct row row = { .present = 1 | 4, .s = -3, .last_ts_ns = 5, .name = "socket" };
	static const struct {
		const char *text;
		int want; /* -1: refused */
	} cases[] = {
		{ "s == -3", 1 },
		{ "s < -3", 0 },
		{ "name == socket", 1 },
		{ "name != socket", 0 },
		{ "name == \"soc\"", 0 },
		{ "big > 0", 0 },
		{ "missing(big)", 1 },
		{ "exists(s)", 1 },
		{ "who in 10.0.0.0/8", 1 },
		{ "who in 10.1.0.0/16", 0 },
		{ "not (s > 0) and (name == x or last_ts_ns == 5)", 1 },
		{ "name < socket", -1 },
		{ "hops.node == 1", -1 },
		{ "flow.src == 1.1.1.1", -1 },
		{ "all s == 1", -1 },
		{ "flags.dropped", -1 },
		{ "name ==", -1 },
		{ "", -1 },
		{ "name == socket and", -1 },
		{ "name == a name == b", -1 },
	};
	size_t n;
	const struct pl_field *events = pl_fields(PL_KIND_EVENT, &n);
	struct pl_event event = {
		.event = PL_EVENT_QUEUE_DEPTH, .node = 3, .present = PL_EVENT_HAS_node
	};
	struct pl_diag diag = { .text = "" };
	struct pl_where *w;

	eq(pl_parse_addr("10.0.0.1", &row.who), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = pl_where_new_over(&w, fields, N, cases[i].text, &diag);

		if (r < 0) {
			eq(cases[i].want, -1, "refused: %s (%s)", cases[i].text, diag.text);
			continue;
		}
		eq(pl_where_match_row(w, &row, row.present), cases[i].want, "%s", cases[i].text);
		pl_where_free(w);
	}
	eq(pl_where_new_over(&w, events, n, "event == queue_depth and node == 3", &diag), 0,
		"events: %s", diag.text);
	ok(pl_where_match_row(w, &event, event.present), "an event matches");
	event.node = 4;
	ok(!pl_where_match_row(w, &event, event.present), "another does not");
	pl_where_free(w);
	ok(pl_where_new_over(&w, fields, N, "nam == x", &diag) < 0 &&
			strstr(diag.text, "\"name\"") != NULL,
		"the nearest name: %s", diag.text);
}

int main(void)
{
	json_form();
	order();
	filter();
	return pl_test_done();
}
