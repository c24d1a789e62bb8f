/* SPDX-License-Identifier: BSD-2-Clause */
/* Alerts byte by byte; tests/net/prometheus.py has a real Alertmanager and Python's json. */
#include "export/webhook.h"

#include <errno.h>
#include <stdlib.h>

#include "base/test.h"
#include "record/path_book.h"

#define SECOND UINT64_C(1000000000)
#define NOW    (UINT64_C(1700000000) * SECOND)

static struct pl_buf out;

static void *new_format(enum pl_webhook_form form)
{
	static const char *const labels[] = { "severity=page", "team=\"a\"" };
	struct pl_webhook_options o = { .form = form,
		.labels = labels,
		.n_labels = 2,
		.link = "http://x/",
		.repeat_ns = 60 * SECOND,
		.resolve_ns = 300 * SECOND };
	void *f;

	if (pl_webhook_format_new(&f, &o) < 0)
		abort();
	return f;
}

static struct pl_event queue_event(unsigned int phase, uint64_t ts_ns, uint64_t node)
{
	return (struct pl_event){ .ts_ns = ts_ns,
		.event = PL_EVENT_QUEUE_DEPTH,
		.phase = (uint8_t)phase,
		.node = node,
		.port = 2,
		.queue = 3,
		.value = 500,
		.threshold = 100,
		.src = pl_addr_v4("\x0a\0\0\1"),
		.dst = pl_addr_v4("\x0a\0\0\2"),
		.sport = 7,
		.dport = 80,
		.proto = 6,
		.present = PL_EVENT_HAS_node | PL_EVENT_HAS_port | PL_EVENT_HAS_queue |
			   PL_EVENT_HAS_value | PL_EVENT_HAS_threshold | PL_EVENT_HAS_src |
			   PL_EVENT_HAS_sport };
}

static const char *tell(void *f, const struct pl_event *e, uint64_t real_ns)
{
	pl_buf_reset(&out);
	if (pl_webhook_format.event(f, e, real_ns, &out) < 0)
		return "refused";
	return out.data;
}

static unsigned int due(void *f, uint64_t real_ns)
{
	unsigned int n = 0;

	pl_buf_reset(&out);
	while (pl_webhook_format.due(f, real_ns, &out) == 1)
		n++;
	return n;
}

#define LABELS                                                                                     \
	"{\"alertname\":\"pathline_queue_depth\",\"node\":\"1\",\"port\":\"2\",\"queue\":\"3\","   \
	"\"severity\":\"page\",\"team\":\"\\\"a\\\"\"}"
#define ANNOTATIONS                                                                                \
	"{\"summary\":\"queue depth at node 1 port 2 queue 3: 500\",\"value\":\"500\","            \
	"\"threshold\":\"100\",\"flow\":\"10.0.0.1 port 7 to 10.0.0.2 port 80, protocol 6\"}"
#define ALERT(starts, ends)                                                                        \
	"{\"labels\":" LABELS ",\"annotations\":" ANNOTATIONS ",\"startsAt\":\"2023-11-14T" starts \
	"Z\",\"endsAt\":\"2023-11-14T" ends "Z\",\"generatorURL\":\"http://x/\"}"

static void begin_and_end(void)
{
	void *f = new_format(PL_WEBHOOK_ALERTMANAGER);
	struct pl_event begin = queue_event(PL_PHASE_BEGIN, NOW, 1);
	struct pl_event end = queue_event(PL_PHASE_END, NOW + 70 * SECOND + 5, 1);

	streq(tell(f, &begin, NOW), ALERT("22:13:20.000000000", "22:16:20.000000000"),
		"begin: ends three repeats ahead");
	eq(due(f, NOW + 59 * SECOND), 0, "nothing is due before a repeat");
	eq(due(f, NOW + 60 * SECOND), 1, "it is told again");
	streq(out.data, ALERT("22:13:20.000000000", "22:17:20.000000000"), "further ahead");
	eq(due(f, NOW + 60 * SECOND), 0, "once");
	streq(tell(f, &end, NOW + 71 * SECOND), ALERT("22:13:20.000000000", "22:14:30.000000005"),
		"end: from its begin on");
	eq(due(f, NOW + 1000 * SECOND), 0, "then it is forgotten");
	streq(tell(f, &end, NOW + 71 * SECOND), ALERT("22:14:30.000000005", "22:14:30.000000005"),
		"an end without a begin");
	begin.exporter = pl_addr_v4("\x0a\0\0\3");
	begin.present |= PL_EVENT_HAS_exporter | PL_EVENT_HAS_hw_id;
	ok(strstr(tell(f, &begin, NOW), "\"labels\":" LABELS) != NULL,
		"who reported it is not part of what it is");
	tell(f, &end, NOW);
	eq(due(f, NOW + 1000 * SECOND), 0, "so the end finds it");
	begin.present &= ~(uint32_t)(PL_EVENT_HAS_exporter | PL_EVENT_HAS_hw_id);
	tell(f, &begin, NOW);
	eq(due(f, NOW - SECOND), 1, "a clock set back makes it due, not silent");
	begin.ts_ns += 5 * SECOND;
	streq(tell(f, &begin, NOW + 5 * SECOND), ALERT("22:13:20.000000000", "22:16:25.000000000"),
		"a second begin goes on with the first");
	pl_webhook_format.free(f);
}

/* A standing query's event is placed by the query and its group. */
static void of_a_query(void)
{
	void *f = new_format(PL_WEBHOOK_ALERTMANAGER);
	struct pl_event e = { .ts_ns = NOW, .event = PL_EVENT_QUERY, .value = 57 };
	const char *said;

	e.present = PL_EVENT_HAS_value;
	pl_event_set_query(&e, (struct pl_text16){ "ddos" });
	pl_event_set_key(&e, (struct pl_text40){ "2001:db8::1/443" });
	pl_event_set_address(&e, pl_addr_v4("\x0a\0\0\1"));
	said = tell(f, &e, NOW);
	ok(strstr(said, "\"labels\":{\"alertname\":\"pathline_query\",\"query\":\"ddos\","
			"\"key\":\"2001:db8::1/443\",") != NULL,
		"labels: %s", said);
	ok(strstr(said, "\"summary\":\"query ddos of 2001:db8::1/443: 57\",\"value\":\"57\"}") !=
			NULL,
		"annotations: %s", said);
	pl_webhook_format.free(f);
}

/* An event from elsewhere may have all places: they stand in the summary one after the other. */
static void of_all_places(void)
{
	void *f = new_format(PL_WEBHOOK_ALERTMANAGER);
	struct pl_event e = queue_event(PL_PHASE_ONCE, NOW, 1);
	const char *said;

	pl_event_set_query(&e, (struct pl_text16){ "a-query-of-15-c" });
	pl_event_set_key(&e, (struct pl_text40){ "a-key-that-is-as-long-as-a-key-can-be-x" });
	e.event = PL_EVENT_QUERY;
	e.present |= PL_EVENT_HAS_region;
	said = tell(f, &e, NOW);
	/* Texts are in the same bytes as numbers. */
	ok(strstr(said, " a-query-of-15-c of a-key-that-is-as-long-as-a-key-can-be-x at node ") !=
				NULL &&
			strstr(said, " queue 3: ") != NULL,
		"each behind the other: %s", said);
	pl_webhook_format.free(f);
}

static void once(void)
{
	const struct pl_path_nodes nodes = { 3, 3, { 1, 5, 2 } };
	void *f = new_format(PL_WEBHOOK_ALERTMANAGER);
	struct pl_event e = queue_event(PL_PHASE_ONCE, NOW, 1);

	streq(tell(f, &e, NOW), ALERT("22:13:20.000000000", "22:18:20.000000000"),
		"once: resolved after a while");
	eq(due(f, NOW + 1000 * SECOND), 0, "not told again");
	e.event = PL_EVENT_KIND_MAX;
	streq(tell(f, &e, NOW), "refused", "no such kind");
	e = queue_event(PL_PHASE_MAX, NOW, 1);
	streq(tell(f, &e, NOW), "refused", "no such phase");
	e = queue_event(PL_PHASE_ONCE, UINT64_MAX, UINT64_MAX);
	ok(strstr(tell(f, &e, NOW), "\"node\":\"18446744073709551615\"") != NULL,
		"the largest node and time");
	e = (struct pl_event){ .ts_ns = NOW, .event = PL_EVENT_REPORT_LOSS };
	ok(strstr(tell(f, &e, NOW), "{\"alertname\":\"pathline_report_loss\",\"severity\"") != NULL,
		"nothing but a kind");
	pl_path_book_note(5, &nodes);
	e = (struct pl_event){ .ts_ns = NOW,
		.event = PL_EVENT_PATH_CHANGE,
		.path_id = 5,
		.old_path_id = 6,
		.present = PL_EVENT_HAS_path_id | PL_EVENT_HAS_old_path_id };
	ok(strstr(tell(f, &e, NOW), "\"path\":\"1>5>2\",\"old_path\":\"unknown\",\"path_id\"") !=
			NULL,
		"a path change names the nodes it knows");
	pl_webhook_format.free(f);
}

static void many(void)
{
	void *f = new_format(PL_WEBHOOK_ALERTMANAGER);

	for (uint64_t node = 0; node < PL_WEBHOOK_ALERTS + 10; node++) {
		struct pl_event e = queue_event(PL_PHASE_BEGIN, NOW, node);

		tell(f, &e, NOW);
	}
	eq(pl_webhook_format.folded(f), 10, "alerts beyond the bound are counted");
	ok(strstr(out.data, "\"endsAt\":\"2023-11-14T22:18:20") != NULL, "and end by themselves");
	eq(due(f, NOW + 61 * SECOND), PL_WEBHOOK_ALERTS, "those within are all told again");
	for (uint64_t node = 0; node < PL_WEBHOOK_ALERTS + 10; node++) {
		struct pl_event e = queue_event(PL_PHASE_END, NOW + SECOND, node);

		tell(f, &e, NOW);
	}
	eq(due(f, NOW + 200 * SECOND), 0, "all ended");
	pl_webhook_format.free(f);
}

static void bodies(void)
{
	static const struct {
		enum pl_webhook_form form;
		unsigned int second;
		const char *begin, *end, *what;
	} rows[] = {
		{ PL_WEBHOOK_ALERTMANAGER, PL_PHASE_BEGIN, "[{\"labels\":", "}]", "an array" },
		{ PL_WEBHOOK_RECEIVER, PL_PHASE_BEGIN,
			"{\"version\":\"4\",\"groupKey\":\"{}:{}\",\"truncatedAlerts\":0,"
			"\"status\":\"firing\",\"receiver\":\"pathline\",\"groupLabels\":{},"
			"\"commonLabels\":{\"severity\":\"page\",\"team\":\"\\\"a\\\"\"},"
			"\"commonAnnotations\":{},\"externalURL\":\"http://x/\",\"alerts\":["
			"{\"status\":\"resolved\",",
			"}]}", "firing when one is" },
		{ PL_WEBHOOK_RECEIVER, PL_PHASE_END,
			"{\"version\":\"4\",\"groupKey\":\"{}:{}\",\"truncatedAlerts\":0,"
			"\"status\":\"resolved\"",
			"}]}", "resolved when all are" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *f = new_format(rows[i].form);
		struct pl_event a = queue_event(PL_PHASE_END, NOW, 1);
		struct pl_event b = queue_event(rows[i].second, NOW, 2);
		struct pl_chunks c;
		uint32_t ends[2];
		struct pl_buf body;

		pl_buf_init(&body);
		pl_buf_reset(&out);
		pl_webhook_format.event(f, &a, NOW, &out);
		ends[0] = (uint32_t)out.len;
		pl_webhook_format.event(f, &b, NOW, &out);
		ends[1] = (uint32_t)out.len;
		c = (struct pl_chunks){ out.data, ends, 2 };
		eq(pl_webhook_format.body(f, &c, 0, 2, &body), 0);
		ok(strncmp(body.data, rows[i].begin, strlen(rows[i].begin)) == 0 &&
				strcmp(body.data + body.len - strlen(rows[i].end), rows[i].end) ==
					0,
			"%s", rows[i].what);
		eq(due(f, NOW + 100 * SECOND),
			rows[i].form == PL_WEBHOOK_ALERTMANAGER && rows[i].second == PL_PHASE_BEGIN,
			"a receiver is told once");
		pl_buf_done(&body);
		pl_webhook_format.free(f);
	}
}

int main(void)
{
	pl_buf_init(&out);
	begin_and_end();
	once();
	of_a_query();
	of_all_places();
	many();
	bodies();
	pl_buf_done(&out);
	return pl_test_done();
}
