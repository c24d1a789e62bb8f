/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/exposition.h"

#include <locale.h>
#include <math.h>

#include "base/test.h"

static const struct {
	const char *accept;
	enum pl_exposition_format want;
} accepts[] = {
	{ NULL, PL_EXPOSITION_TEXT },
	{ "", PL_EXPOSITION_TEXT },
	{ ",,;;==", PL_EXPOSITION_TEXT },
	{ "*/*", PL_EXPOSITION_TEXT },
	{ "application/*", PL_EXPOSITION_TEXT },
	{ "text/html, application/xhtml+xml, */*;q=0.8", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;q=0", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;q=0.0", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;q=2", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;q=0,5", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;q=-1", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;version=2.0.0", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;version=0.0.1", PL_EXPOSITION_TEXT },
	{ "xapplication/openmetrics-textx", PL_EXPOSITION_TEXT },
	{ "\"application/openmetrics-text\"", PL_EXPOSITION_TEXT },
	{ "text/plain;note=\"x,application/openmetrics-text\"", PL_EXPOSITION_TEXT },
	{ "text/plain;note=\"unclosed, application/openmetrics-text", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;q=0.3,text/plain;q=0.5", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text;q=0.3,*/*;q=0.5", PL_EXPOSITION_TEXT },
	{ "application/openmetrics-text", PL_EXPOSITION_OPENMETRICS },
	{ "Application/OpenMetrics-Text ; Version=\"1.0.0\" ; Q=1.000", PL_EXPOSITION_OPENMETRICS },
	{ "text/plain;q=0.5,application/openmetrics-text;q=0.75", PL_EXPOSITION_OPENMETRICS },
	{ "text/plain;q=0.500, application/openmetrics-text;q=0.501", PL_EXPOSITION_OPENMETRICS },
	{ "text/plain,application/openmetrics-text", PL_EXPOSITION_OPENMETRICS },
	/* what Prometheus 2.42 sends, without and with native histograms */
	{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
	  "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		PL_EXPOSITION_OPENMETRICS },
	{ "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="
	  "delimited,application/openmetrics-text;version=1.0.0;q=0.8,"
	  "application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
	  "*/*;q=0.1",
		PL_EXPOSITION_OPENMETRICS },
	{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,*/*;q=0.2",
		PL_EXPOSITION_OPENMETRICS },
};

static void negotiation(void)
{
	for (size_t i = 0; i < sizeof(accepts) / sizeof(accepts[0]); i++)
		eq(pl_exposition_negotiate(accepts[i].accept), accepts[i].want, "Accept: %s",
			accepts[i].accept == NULL ? "(none)" : accepts[i].accept);
}

/* One small page of each form, letter by letter. */
static void write_page(struct pl_buf *buf, enum pl_exposition_format format)
{
	static struct pl_hist h;
	struct pl_exposition page;
	struct pl_label labels[] = {
		{ .name = "node", .form = PL_LABEL_U64, .number = UINT64_MAX },
		{ .name = "what",
			.form = PL_LABEL_TEXT,
			.text = "a\"b\\c\nd\xff\xc3\xa9\xed\xa0\x80" },
		{ .name = "path_id", .form = PL_LABEL_HEX64, .number = 0x2a },
		{ .name = "exporter", .form = PL_LABEL_ADDR, .addr = pl_addr_v4("\x0a\0\0\1") },
	};
	struct pl_exposition_bounds bounds = { .first = 0, .last = 80, .step = 40, .divisor = 1e3 };

	memset(&h, 0, sizeof(h));
	pl_hist_add(&h, 0);
	pl_hist_add(&h, 1024);
	pl_hist_add(&h, 1025);
	pl_hist_add(&h, 1 << 30);
	pl_exposition_init(&page, buf, format);
	pl_exposition_family(&page, "pathline_received_bytes", PL_METRIC_COUNTER, "bytes",
		"Bytes \"received\",\nall \\ of them.");
	pl_exposition_u64(&page, NULL, 0, UINT64_MAX);
	pl_exposition_family(&page, "pathline_queue_depth", PL_METRIC_GAUGE, NULL, "Depth.");
	pl_exposition_double(&page, labels, 4, 1.5);
	pl_exposition_double(&page, labels, 1, NAN);
	pl_exposition_double(&page, labels, 0, -INFINITY);
	pl_exposition_family(
		&page, "pathline_hop_latency_seconds", PL_METRIC_HISTOGRAM, "seconds", "Latency.");
	pl_exposition_hist(&page, labels, 1, &h, &bounds, NULL);
	pl_exposition_end(&page);
}

static const char want_text[] =
	"# HELP pathline_received_bytes_total Bytes \"received\",\\nall \\\\ of them.\n"
	"# TYPE pathline_received_bytes_total counter\n"
	"pathline_received_bytes_total 18446744073709551615\n"
	"# HELP pathline_queue_depth Depth.\n"
	"# TYPE pathline_queue_depth gauge\n"
	"pathline_queue_depth{node=\"18446744073709551615\",what=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3"
	"\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",path_id=\"000000000000002a\","
	"exporter=\"10.0.0.1\"} 1.5\n"
	"pathline_queue_depth{node=\"18446744073709551615\"} NaN\n"
	"pathline_queue_depth -Inf\n"
	"# HELP pathline_hop_latency_seconds Latency.\n"
	"# TYPE pathline_hop_latency_seconds histogram\n"
	"pathline_hop_latency_seconds_bucket{node=\"18446744073709551615\",le=\"0.001\"} 1\n"
	"pathline_hop_latency_seconds_bucket{node=\"18446744073709551615\",le=\"1.024\"} 2\n"
	"pathline_hop_latency_seconds_bucket{node=\"18446744073709551615\",le=\"1048.576\"} 3\n"
	"pathline_hop_latency_seconds_bucket{node=\"18446744073709551615\",le=\"+Inf\"} 4\n"
	"pathline_hop_latency_seconds_sum{node=\"18446744073709551615\"} 1073743.873\n"
	"pathline_hop_latency_seconds_count{node=\"18446744073709551615\"} 4\n";

static void exact_pages(void)
{
	struct pl_buf buf;

	pl_buf_init(&buf);
	write_page(&buf, PL_EXPOSITION_TEXT);
	streq(buf.data, want_text, "text 0.0.4");
	pl_buf_reset(&buf);
	write_page(&buf, PL_EXPOSITION_OPENMETRICS);
	ok(strstr(buf.data, "# TYPE pathline_received_bytes counter\n"
			    "# UNIT pathline_received_bytes bytes\n"
			    "pathline_received_bytes_total 18446744073709551615\n") != NULL,
		"OpenMetrics: the family of a counter without _total, its sample with it");
	ok(strstr(buf.data, "Bytes \\\"received\\\",\\nall \\\\ of them.\n") != NULL,
		"OpenMetrics: quotes in the help are escaped");
	ok(buf.len > 6 && strcmp(buf.data + buf.len - 6, "# EOF\n") == 0,
		"OpenMetrics ends with EOF");
	pl_buf_done(&buf);
}

/* Bounds that are whole numbers are written as floats in both formats. */
static void whole_bounds(void)
{
	static struct pl_hist h;
	struct pl_exposition page;
	struct pl_buf buf;

	pl_buf_init(&buf);
	pl_exposition_init(&page, &buf, PL_EXPOSITION_TEXT);
	pl_exposition_family(&page, "pathline_depth", PL_METRIC_HISTOGRAM, NULL, "Depth.");
	pl_exposition_hist(&page, NULL, 0, &h, &pl_bounds_depth, NULL);
	ok(strstr(buf.data, "pathline_depth_bucket{le=\"1.0\"} 0\n") != NULL, "1.0");
	ok(strstr(buf.data, "pathline_depth_bucket{le=\"1.6777216e+07\"} 0\n") != NULL ||
			strstr(buf.data, "pathline_depth_bucket{le=\"16777216.0\"} 0\n") != NULL,
		"2^24");
	eq(page.samples, 28, "25 bounds, +Inf, sum, count");
	pl_buf_done(&buf);
}

/* An exemplar is written at the bucket of its value, only on OpenMetrics pages, and within its
 * limit. */
static void exemplars(void)
{
	static const struct {
		uint64_t value;
		const char *want; /* a whole line; NULL: none */
		const char *what;
	} rows[] = {
		{ 0,
			"h_bucket{le=\"0.001\"} 0 # {flow=\"a\\\"b\",path_id=\"000000000000002a\"} 0 "
			"1700000000.125\n",
			"below the first bound" },
		{ 1,
			"h_bucket{le=\"0.001\"} 0 # {flow=\"a\\\"b\",path_id=\"000000000000002a\"} 0.001 "
			"1700000000.125\n",
			"at the first bound" },
		{ 2,
			"h_bucket{le=\"1.024\"} 0 # {flow=\"a\\\"b\",path_id=\"000000000000002a\"} 0.002 "
			"1700000000.125\n",
			"above it" },
		{ 1 << 21,
			"h_bucket{le=\"+Inf\"} 0 # {flow=\"a\\\"b\",path_id="
			"\"000000000000002a\"} 2097.152 1700000000.125\n",
			"beyond the last" },
	};
	static struct pl_hist h;
	const struct pl_exposition_bounds bounds = {
		.first = 0, .last = 80, .step = 40, .divisor = 1e3
	};
	char text[128];
	struct pl_label labels[] = {
		{ .name = "flow", .form = PL_LABEL_TEXT, .text = "a\"b" },
		{ .name = "path_id", .form = PL_LABEL_HEX64, .number = 0x2a },
	};
	struct pl_exposition page;
	struct pl_buf buf;

	pl_buf_init(&buf);
	for (unsigned int format = 0; format < 2; format++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct pl_exposition_exemplar e = { rows[i].value, 1700000000125999999,
				labels, 2 };
			const char *mark;

			pl_buf_reset(&buf);
			pl_exposition_init(&page, &buf, format);
			pl_exposition_family(&page, "h", PL_METRIC_HISTOGRAM, NULL, "H.");
			pl_exposition_hist(&page, NULL, 0, &h, &bounds, &e);
			mark = strstr(buf.data, " # {");
			if (format == PL_EXPOSITION_TEXT)
				ok(mark == NULL, "text has none: %s", rows[i].what);
			else
				ok(strstr(buf.data, rows[i].want) != NULL && mark != NULL &&
						strstr(mark + 1, " # {") == NULL,
					"once, %s", rows[i].what);
		}
	}
	for (unsigned int n = 95; n <= 105; n++) {
		struct pl_exposition_exemplar e = { 5, 1, labels, 2 };

		memset(text, 'x', sizeof(text));
		text[n] = '\0';
		labels[0].text = text;
		pl_buf_reset(&buf);
		pl_exposition_init(&page, &buf, PL_EXPOSITION_OPENMETRICS);
		pl_exposition_family(&page, "h", PL_METRIC_HISTOGRAM, NULL, "H.");
		pl_exposition_hist(&page, NULL, 0, &h, &bounds, &e);
		/* flow and path_id are 11 characters, the id 16 */
		ok((strstr(buf.data, "path_id") != NULL) == (n <= 128 - 11 - 16) &&
				(strstr(buf.data, "x\"} 0.005 0.000\n") != NULL) ==
					(n > 128 - 11 - 16),
			"with a flow of %u characters, 128 in all", n);
	}
	pl_buf_done(&buf);
}

static void no_memory(void)
{
	struct pl_buf buf;

	pl_buf_init(&buf);
	buf.limit = 300;
	write_page(&buf, PL_EXPOSITION_TEXT);
	ok(buf.failed && buf.len <= 300, "a page beyond the limit has failed, and says so");
	pl_buf_done(&buf);
}

int main(void)
{
	/* Where the system has this locale, its decimal comma must not get into the page. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	negotiation();
	exact_pages();
	whole_bounds();
	exemplars();
	no_memory();
	return pl_test_done();
}
