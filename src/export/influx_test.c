/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/influx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>

#include "base/test.h"
#include "record/path_book.h"

#define T    UINT64_C(1700000000000000000)
#define HOUR (UINT64_C(3600) * 1000000000u)

static struct pl_addr v4(const char *text)
{
	struct pl_addr a = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff } };

	inet_pton(AF_INET, text, &a.b[12]);
	return a;
}

static struct pl_addr v6(const char *text)
{
	struct pl_addr a;

	inet_pton(AF_INET6, text, a.b);
	return a;
}

static void *format_new(uint32_t max_keys)
{
	void *f = NULL;

	ok(pl_influx_format_new(&f, max_keys, false) == 0, "a formatter");
	return f;
}

static const char *event_line(void *f, const struct pl_event *e)
{
	static struct pl_buf out;
	int r;

	pl_buf_reset(&out);
	r = pl_influx_format.event(f, e, T, &out);
	return r == 0 ? out.data : r == -ERANGE ? "time" : r == -ENODATA ? "empty" : "failed";
}

static const char *point_line(void *f, const struct pl_series_point *p)
{
	static struct pl_buf out;
	int r;

	pl_buf_reset(&out);
	r = pl_influx_format.point(f, p, T, &out);
	return r == 0 ? out.data : r == -ERANGE ? "time" : r == -ENODATA ? "empty" : "failed";
}

static struct pl_event queue_event(void)
{
	return (struct pl_event){
		.ts_ns = T,
		.event = PL_EVENT_QUEUE_DEPTH,
		.phase = PL_PHASE_BEGIN,
		.present = PL_EVENT_HAS_node | PL_EVENT_HAS_port | PL_EVENT_HAS_queue |
			   PL_EVENT_HAS_value | PL_EVENT_HAS_threshold,
		.node = 17,
		.port = 3,
		.queue = 5,
		.value = 107,
		.threshold = 100,
	};
}

static void test_events(void)
{
	const struct pl_path_nodes old_nodes = { 3, 3, { 1, 6, 2 } };
	void *f = format_new(0);
	struct pl_event e = queue_event(), full = queue_event();

	streq(event_line(f, &e),
		"pathline_event,event=queue_depth,node=17,phase=begin,port=3,queue=5 "
		"count=1i,value=107i,threshold=100i 1700000000000000000\n",
		"tags sorted, integers with i, nanoseconds");
	e.phase = PL_PHASE_END;
	e.present = 0;
	streq(event_line(f, &e),
		"pathline_event,event=queue_depth,phase=end count=1i 1700000000000000000\n",
		"what is absent is absent");
	e.value = UINT64_MAX;
	e.node = (uint64_t)INT64_MAX;
	e.present = PL_EVENT_HAS_value | PL_EVENT_HAS_node;
	streq(event_line(f, &e),
		"pathline_event,event=queue_depth,node=9223372036854775807,phase=end "
		"count=1i,value_u64=\"18446744073709551615\" 1700000000000000000\n",
		"beyond 2^63 - 1: as text, under a name of its own");
	e.value = (uint64_t)INT64_MAX;
	e.ts_ns++;
	streq(event_line(f, &e),
		"pathline_event,event=queue_depth,node=9223372036854775807,phase=end "
		"count=1i,value=9223372036854775807i 1700000000000000001\n",
		"the largest integer");
	full.event = PL_EVENT_PATH_CHANGE;
	full.phase = PL_PHASE_ONCE;
	full.present = 0x3fff;
	full.seq = 9;
	full.src = v4("10.1.0.6");
	full.dst = v6("fd00::1");
	full.sport = 59916;
	full.dport = 6379;
	full.proto = 17;
	full.hw_id = 1;
	full.drop_reason = 4;
	full.path_id = 0x57ff9b4614af69b4;
	full.old_path_id = 1;
	full.exporter = v4("127.0.0.1");
	full.report_id = 0x6a;
	pl_path_book_note(1, &old_nodes);
	streq(event_line(f, &full),
		"pathline_event,drop_reason=4,event=path_change,exporter=127.0.0.1,node=17,phase=once,"
		"port=3,queue=5 count=1i,path_nodes=\"unknown\",old_path_nodes=\"1>6>2\",seq=9i,value=107i,threshold=100i,flow_src=\"10.1.0.6\","
		"flow_dst=\"fd00::1\",flow_sport=59916i,flow_dport=6379i,flow_proto=17i,hw_id=1i,"
		"path_id=\"57ff9b4614af69b4\",old_path_id=\"0000000000000001\","
		"report_id=\"000000000000006a\" 1700000000000000000\n",
		"all fields: of a flow nothing is a tag");
	e = (struct pl_event){
		.ts_ns = T,
		.event = PL_EVENT_LINK_LATENCY,
		.phase = PL_PHASE_BEGIN,
		.present = PL_EVENT_HAS_node | PL_EVENT_HAS_ingress_port | PL_EVENT_HAS_peer_node |
			   PL_EVENT_HAS_peer_port | PL_EVENT_HAS_value,
		.node = 2,
		.port = 4,
		.old_path_id = 1,
		.seq = 3,
		.value = 1500,
	};
	streq(event_line(f, &e),
		"pathline_event,event=link_latency,ingress_port=4,node=2,peer_node=1,peer_port=3,"
		"phase=begin count=1i,value=1500i 1700000000000000000\n",
		"of a link, both ends are tags");
	pl_influx_format.free(f);
}

static void test_times(void)
{
	static const struct {
		uint64_t ts_ns;
		bool good;
	} table[] = {
		{ 0, false },
		{ 1, false },
		{ UINT64_C(1700000000), false },
		{ UINT64_C(1700000000000), false },
		{ UINT64_C(946684799999999999), false },
		{ UINT64_C(946684800000000000), true },
		{ T - 48 * HOUR, true },
		{ T, true },
		{ T + 24 * HOUR, true },
		{ T + 24 * HOUR + 1, false },
		{ INT64_MAX, false },
		{ UINT64_MAX, false },
	};
	void *f = format_new(0);
	struct pl_event e = queue_event();

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		e.ts_ns = table[i].ts_ns;
		ok((strcmp(event_line(f, &e), "time") != 0) == table[i].good, "time %llu: %s",
			(unsigned long long)e.ts_ns, table[i].good ? "good" : "refused");
	}
	pl_influx_format.free(f);
}

/* Returns the last word of a line, its time. */
static uint64_t time_of(const char *line)
{
	const char *space = strrchr(line, ' ');

	return space != NULL ? strtoull(space + 1, NULL, 10) : 0;
}

static void test_apart(void)
{
	void *f = format_new(0);
	struct pl_event e = queue_event(), other = queue_event();

	other.node = 18;
	eq(time_of(event_line(f, &e)), T);
	eq(time_of(event_line(f, &e)), T + 1, "the same tags and time: moved on");
	eq(time_of(event_line(f, &e)), T + 2);
	eq(time_of(event_line(f, &other)), T, "other tags: not");
	e.ts_ns = T + 1;
	eq(time_of(event_line(f, &e)), T + 3, "nor onto one that was moved");
	e.ts_ns = T + 10;
	eq(time_of(event_line(f, &e)), T + 10);
	e.ts_ns = T - 10 * HOUR;
	eq(time_of(event_line(f, &e)), T - 10 * HOUR, "a clock that was put back is believed");
	pl_influx_format.free(f);
}

static void test_limit(void)
{
	void *f = format_new(100);
	struct pl_event e = queue_event();
	unsigned int own = 0, folded = 0;

	for (unsigned int i = 0; i < 5000; i++) {
		const char *line;

		e.node = i;
		e.ts_ns = T + i;
		line = event_line(f, &e);
		own += strstr(line, "node=other") == NULL;
		folded += strncmp(line,
				  "pathline_event,event=queue_depth,node=other,phase=begin,"
				  "port=other,queue=other count=1i,value=107i",
				  strlen("pathline_event,event=queue_depth,node=other,phase=begin,"
					 "port=other,queue=other count=1i,value=107i")) == 0;
	}
	eq(own, 100, "as many sets of tags as were asked for");
	eq(folded, 4900, "the others share one");
	eq(pl_influx_format.folded(f), 4900, "and are counted");
	e.node = 7;
	e.ts_ns = T + 10000;
	ok(strstr(event_line(f, &e), "node=7,") != NULL, "known ones go on unharmed");
	pl_influx_format.free(f);
}

static void test_hops(void)
{
	void *f = format_new(0);
	struct pl_path path = { .ts_ns = T, .hop_count = 2 };
	struct pl_hop hops[2] = { {
					  .present = PL_HOP_HAS_node | PL_HOP_HAS_egress_port |
						     PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth |
						     PL_HOP_HAS_hop_latency_ns |
						     PL_HOP_HAS_link_latency_ns,
					  .node = 1,
					  .egress_port = 2,
					  .queue = 3,
					  .queue_depth = 4,
					  .hop_latency_ns = 5,
					  .link_latency_ns = -6,
				  },
		{ .present = 0 } };
	struct pl_buf out;

	pl_buf_init(&out);
	eq(pl_influx_format.path(f, &path, hops, T, &out), 0);
	streq(out.data,
		"pathline_hop,node=1,port=2,queue=3 index=0i,hop_latency_ns=5i,queue_depth=4i,"
		"link_latency_ns=-6i 1700000000000000000\n"
		"pathline_hop index=1i 1700000000000000000\n",
		"a line per hop, numbers only");
	path.hop_count = 0;
	eq(pl_influx_format.path(f, &path, hops, T, &out), -ENODATA, "no hops: nothing to write");
	pl_buf_done(&out);
	pl_influx_format.free(f);
}

static void test_points(void)
{
	static const struct pl_series_label odd[] = { { "a b", "c,d=e f" }, { "empty", "" },
		{ "nl", "x\ny\\" }, { "q", "\"quoted\" \\n" } };
	static const struct pl_hist hist;
	struct pl_series_field fields[] = {
		{ .name = "n", .kind = PL_SERIES_COUNTER, .u64 = 12 },
		{ .name = "big", .kind = PL_SERIES_GAUGE, .u64 = (uint64_t)INT64_MAX + 1 },
		{ .name = "x y", .kind = PL_SERIES_NUMBER, .f64 = 0.1 },
		{ .name = "nan", .kind = PL_SERIES_NUMBER, .f64 = NAN },
		{ .name = "inf", .kind = PL_SERIES_NUMBER, .f64 = -INFINITY },
		{ .name = "h", .kind = PL_SERIES_HIST, .hist = &hist },
		{ .metric = "m", .kind = PL_SERIES_GAUGE, .u64 = 1 },
	};
	struct pl_series_point p = { .name = "link",
		.ts_ns = T,
		.n_labels = 4,
		.labels = odd,
		.n_fields = 7,
		.fields = fields };
	void *f = format_new(0);

	streq(point_line(f, &p),
		"pathline_link,a\\ b=c\\,d\\=e\\ f,nl=x?y?,q=\"quoted\"\\ \\n "
		"n=12i,big_u64=\"9223372036854775808\",x\\ y=0.1 1700000000000000000\n",
		"escapes; no empty tags, no NaN, no histograms");
	p.fields = &fields[3];
	p.n_fields = 4;
	streq(point_line(f, &p), "empty", "no field that can be written: no line");
	p.ts_ns = 12;
	streq(point_line(f, &p), "time");
	pl_influx_format.free(f);
}

static void test_answers(void)
{
	static const struct {
		int status;
		const char *body;
		uint32_t n;
		enum pl_ruling_kind kind;
		bool whole;
		const char *words;
	} table[] = {
		{ 204, "", 5, PL_RULING_DELIVERED, false, "HTTP 204" },
		{ 200, "", 5, PL_RULING_DELIVERED, false, "HTTP 200" },
		{ 200, "<html>Welcome to the hotel", 5, PL_RULING_RETRY, false,
			"HTTP 200: <html>Welcome to the hotel" },
		{ 400,
			"{\"error\":\"partial write: field type conflict: input field \\\"v\\\" on "
			"measurement \\\"m\\\" is type float, already exists as type integer dropped=1\"}\n",
			5, PL_RULING_REFUSED, false,
			"partial write: field type conflict: input field \"v\" on measurement \"m\" is type "
			"float, already exists as type integer dropped=1" },
		{ 400, "{\"error\":\"partial write: points beyond retention policy dropped=5\"}", 5,
			PL_RULING_REFUSED, true,
			"partial write: points beyond retention policy dropped=5" },
		{ 400, "{\"error\":\"partial write: unable to parse 'x': missing fields dropped=0\"}",
			1, PL_RULING_REFUSED, false,
			"partial write: unable to parse 'x': missing fields dropped=0" },
		{ 400, "{\"error\":\"database is required\"}", 5, PL_RULING_HOLD, false,
			"database is required" },
		{ 400, "{\"error\":\"retention policy not found: nope\"}", 5, PL_RULING_HOLD, false,
			"retention policy not found: nope" },
		{ 404, "{\"error\":\"database not found: \\\"xx\\\"\"}", 5, PL_RULING_HOLD, false,
			"database not found: \"xx\"" },
		{ 404, "{\"code\":\"not found\",\"message\":\"bucket \\\"b\\\" not found\"}", 5,
			PL_RULING_HOLD, false, "bucket \"b\" not found" },
		{ 401, "{\"error\":\"authorization failed\"}", 5, PL_RULING_HOLD, false,
			"authorization failed" },
		{ 413, "{\"error\":\"Request Entity Too Large\"}", 5, PL_RULING_TOO_BIG, false,
			"Request Entity Too Large" },
		{ 422, "{\"code\":\"unprocessable entity\",\"message\":\"too old\"}", 5,
			PL_RULING_REFUSED, false, "too old" },
		{ 500, "{\"error\":\"timeout\"}", 5, PL_RULING_RETRY, false, "timeout" },
		{ 500, "{\"error\":\"engine is closed\"}", 5, PL_RULING_DOUBTFUL, false,
			"engine is closed" },
		{ 503, "overloaded", 5, PL_RULING_RETRY, false, "HTTP 503: overloaded" },
		{ 400, "{\"error\":", 5, PL_RULING_REFUSED, false, "HTTP 400: {\"error\":" },
		{ 400, "{\"error\":\"", 5, PL_RULING_REFUSED, false, "HTTP 400: {\"error\":\"" },
		{ 400, "{\"error\":\"a\\", 5, PL_RULING_REFUSED, false, "a\\" },
		{ 400, "", 5, PL_RULING_REFUSED, false, "HTTP 400" },
	};
	void *f = format_new(0);

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct pl_http_answer a = { .status = table[i].status };
		struct pl_ruling r;

		a.len = (uint32_t)snprintf(a.body, sizeof(a.body), "%s", table[i].body);
		pl_influx_format.answer(f, &a, table[i].n, &r);
		eq(r.kind, table[i].kind, "%d %.40s", a.status, table[i].body);
		eq(r.whole, table[i].whole, "whole");
		streq(r.words, table[i].words, "words");
	}
	pl_influx_format.free(f);
}

static void test_urls(void)
{
	struct pl_influx_options o = {
		.url = "http://h:8086/", .database = "d b&x", .retention_policy = "r/p"
	};
	char url[PL_INFLUX_URL_MAX], longer[5000];

	eq(pl_influx_url(url, &o), 0);
	streq(url, "http://h:8086/write?precision=ns&db=d%20b%26x&rp=r%2Fp");
	o.retention_policy = NULL;
	o.url = "https://h/influx";
	pl_influx_url(url, &o);
	streq(url, "https://h/influx/write?precision=ns&db=d%20b%26x");
	o.v2 = true;
	o.org = "\xc3\xa4";
	o.bucket = "b/c";
	pl_influx_url(url, &o);
	streq(url, "https://h/influx/api/v2/write?precision=ns&org=%C3%A4&bucket=b%2Fc");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	o.bucket = longer;
	eq(pl_influx_url(url, &o), -ENAMETOOLONG);
}

int main(void)
{
	test_events();
	test_times();
	test_apart();
	test_limit();
	test_hops();
	test_points();
	test_answers();
	test_urls();
	return pl_test_done();
}
