/* SPDX-License-Identifier: BSD-2-Clause */
/* The encoder, checked with protobuf-c's decoder and snappy's; tests/net/prometheus.py has real
 * servers. */
#include "export/remote_write.h"

#include <errno.h>
#include <math.h>
#include <snappy-c.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/test.h"
#include "export/exposition.h"
#include "export/remote.pb-c.h"

#define SECOND UINT64_C(1000000000)
#define NOW    (UINT64_C(1795255200) * SECOND)

static struct pl_buf chunk;

static void *new_format(uint32_t max, const char *const *labels, uint32_t n)
{
	struct pl_remote_options o = { .url = "", .labels = labels, .n_labels = n };
	void *f = NULL;

	o.max_series = max;
	if (pl_remote_format_new(&f, &o, NULL) < 0)
		abort();
	return f;
}

static int give(void *f, const struct pl_series_point *p, uint64_t now_ns)
{
	size_t before = chunk.len;
	int r = pl_remote_format.point(f, p, now_ns, &chunk);

	if (r < 0)
		chunk.len = before;
	return r;
}

/* Writes a gauge pathline_x{node=…} of value 1. */
static int give_gauge(void *f, const char *node, uint64_t ts_ns, uint64_t now_ns)
{
	struct pl_series_label label = { "node", node };
	struct pl_series_field field = {
		.metric = "pathline_x", .kind = PL_SERIES_GAUGE, .u64 = 1
	};
	struct pl_series_point p = {
		.ts_ns = ts_ns, .n_labels = 1, .n_fields = 1, .labels = &label, .fields = &field
	};

	return give(f, &p, now_ns);
}

static PlRemote__WriteRequest *read_chunk(void)
{
	PlRemote__WriteRequest *w = pl_remote__write_request__unpack(
		NULL, chunk.len, (const uint8_t *)(chunk.data != NULL ? chunk.data : ""));

	if (w == NULL)
		abort();
	return w;
}

/* Checks that labels are sorted, unique and not empty, and that there is one sample. */
static bool sound(const PlRemote__TimeSeries *t)
{
	bool good = t->n_samples == 1, name = false;

	for (size_t i = 0; i < t->n_labels; i++) {
		good &= t->labels[i]->name[0] != '\0' && t->labels[i]->value[0] != '\0';
		good &= i == 0 || strcmp(t->labels[i - 1]->name, t->labels[i]->name) < 0;
		name |= strcmp(t->labels[i]->name, "__name__") == 0;
	}
	return good && name;
}

/* Returns the labels as "a=1,b=2". */
static const char *labels_of(const PlRemote__TimeSeries *t)
{
	static char text[2048];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < t->n_labels; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%s", i > 0 ? "," : "",
			t->labels[i]->name, t->labels[i]->value);
	return text;
}

static bool is_stale(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits == UINT64_C(0x7ff0000000000002);
}

/* Times that are accepted and refused, from the first sample on. */
static void times(void)
{
	static const struct {
		uint64_t ts_ns;
		int want;
		const char *what;
	} rows[] = {
		{ NOW, 0, "now" },
		{ NOW + 60 * SECOND, 0, "a minute ahead" },
		{ NOW + 60 * SECOND + 1, -ERANGE, "more than a minute ahead" },
		{ NOW - 3600 * SECOND, 0, "an hour ago" },
		{ NOW - 3600 * SECOND - 1, -ERANGE, "more than an hour ago" },
		{ 0, -ERANGE, "1970" },
		{ UINT64_MAX, -ERANGE, "the largest time" },
		{ NOW / 1000000, -ERANGE, "milliseconds for nanoseconds" },
		{ NOW / 1000 * 1000000, -ERANGE, "nanoseconds taken for microseconds" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *f = new_format(0, NULL, 0);

		eq(give_gauge(f, "1", rows[i].ts_ns, NOW), rows[i].want, "time: %s", rows[i].what);
		pl_remote_format.free(f);
	}
}

static void order(void)
{
	void *f = new_format(0, NULL, 0);

	eq(give_gauge(f, "1", NOW, NOW), 0);
	eq(give_gauge(f, "1", NOW, NOW), -ERANGE, "the same time again is refused");
	eq(give_gauge(f, "1", NOW + 999999, NOW), -ERANGE, "and the same millisecond");
	eq(give_gauge(f, "1", NOW - SECOND, NOW), -ERANGE, "a clock set back");
	eq(give_gauge(f, "2", NOW - SECOND, NOW), 0, "another series has its own order");
	eq(give_gauge(f, "1", NOW + 1000000, NOW), 0, "later by a millisecond");
	pl_remote_format.free(f);
}

static void labels(void)
{
	static const char *const base[] = { "zone=z", "Job=x", "node=never" };
	static const struct {
		struct pl_series_label labels[3];
		uint32_t n;
		int want;
		const char *text, *what;
	} rows[] = {
		{ { { "port", "2" }, { "node", "1" } }, 2, 0,
			"Job=x,__name__=pathline_x,node=1,port=2,zone=z",
			"sorted, own before added" },
		{ { { "port", "" }, { "node", "1" } }, 2, 0,
			"Job=x,__name__=pathline_x,node=1,zone=z", "an empty one is none" },
		{ { { "node", "\xff"
			      "a\xc0" } },
			1, 0,
			"Job=x,__name__=pathline_x,node=\xef\xbf\xbd"
			"a\xef\xbf\xbd,zone=z",
			"not UTF-8" },
		{ { { "node", "\"\\\n" } }, 1, 0, "Job=x,__name__=pathline_x,node=\"\\\n,zone=z",
			"nothing is escaped" },
		{ { { "node", "1" }, { "node", "2" } }, 2, -EINVAL, NULL, "one twice" },
		{ { { "__name__", "y" } }, 1, -EINVAL, NULL, "a reserved name" },
		{ { { "a-b", "y" } }, 1, -EINVAL, NULL, "no name" },
		{ { { "", "y" } }, 1, -EINVAL, NULL, "an empty name" },
		{ { { "1a", "y" } }, 1, -EINVAL, NULL, "a digit first" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *f = new_format(0, base, 3);
		struct pl_series_field field = { .metric = "pathline_x", .kind = PL_SERIES_GAUGE };
		struct pl_series_point p = { .ts_ns = NOW,
			.n_labels = rows[i].n,
			.n_fields = 1,
			.labels = rows[i].labels,
			.fields = &field };
		PlRemote__WriteRequest *w;

		pl_buf_reset(&chunk);
		eq(give(f, &p, NOW), rows[i].want, "labels: %s", rows[i].what);
		if (rows[i].want == 0) {
			w = read_chunk();
			streq(labels_of(w->timeseries[0]), rows[i].text);
			ok(w->n_timeseries == 1 && sound(w->timeseries[0]));
			pl_remote__write_request__free_unpacked(w, NULL);
		}
		pl_remote_format.free(f);
	}
}

static void metrics(void)
{
	static const struct {
		struct pl_series_field field;
		int want;
		const char *name;
		double value;
	} rows[] = {
		{ { .metric = "a", .kind = PL_SERIES_COUNTER, .u64 = 5 }, 0, "a_total", 5 },
		{ { .metric = "a", .kind = PL_SERIES_GAUGE, .u64 = UINT64_MAX }, 0, "a",
			18446744073709551616.0 },
		{ { .metric = "a", .kind = PL_SERIES_NUMBER, .f64 = -1.5 }, 0, "a", -1.5 },
		{ { .metric = "a", .kind = PL_SERIES_RUNNING, .f64 = 0.25 }, 0, "a_total", 0.25 },
		{ { .metric = "a:b", .kind = PL_SERIES_GAUGE, .u64 = 0 }, 0, "a:b", 0 },
		{ { .metric = "a b", .kind = PL_SERIES_GAUGE }, -EINVAL, NULL, 0 },
		{ { .metric = "", .kind = PL_SERIES_GAUGE }, -EINVAL, NULL, 0 },
		{ { .name = "only_a_field", .kind = PL_SERIES_GAUGE }, -ENODATA, NULL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *f = new_format(0, NULL, 0);
		struct pl_series_point p = {
			.ts_ns = NOW, .n_fields = 1, .fields = &rows[i].field
		};
		PlRemote__WriteRequest *w;

		pl_buf_reset(&chunk);
		eq(give(f, &p, NOW), rows[i].want, "metric %zu", i);
		if (rows[i].want == 0) {
			w = read_chunk();
			streq(w->timeseries[0]->labels[0]->value, rows[i].name);
			ok(w->timeseries[0]->samples[0]->value == rows[i].value &&
					w->timeseries[0]->samples[0]->timestamp ==
						(int64_t)(NOW / 1000000),
				"value and time in ms");
			pl_remote__write_request__free_unpacked(w, NULL);
		}
		pl_remote_format.free(f);
	}
}

static void histogram(void)
{
	static struct pl_hist h;
	struct pl_exposition_bounds bounds = { .first = 0, .last = 40, .step = 20, .divisor = 1e3 };
	struct pl_label of[] = { { .name = "flow", .form = PL_LABEL_TEXT, .text = "a>b" } };
	struct pl_exposition_exemplar x = { 30, NOW, of, 1 };
	struct pl_series_field field = { .metric = "h", .kind = PL_SERIES_HIST };
	struct pl_series_point p = { .ts_ns = NOW, .n_fields = 1, .fields = &field };
	static const char *const want[] = { "__name__=h_bucket,le=0.001",
		"__name__=h_bucket,le=0.032", "__name__=h_bucket,le=1.024",
		"__name__=h_bucket,le=+Inf", "__name__=h_sum", "__name__=h_count" };
	const double values[] = { 1, 2, 2, 3, 1000.031, 3 };
	void *f = new_format(0, NULL, 0);
	PlRemote__WriteRequest *w;

	pl_hist_add(&h, 1);
	pl_hist_add(&h, 30);
	pl_hist_add(&h, 1000000);
	field.hist = &h;
	field.bounds = &bounds;
	field.exemplar = &x;
	pl_buf_reset(&chunk);
	eq(give(f, &p, NOW), 0);
	w = read_chunk();
	eq(w->n_timeseries, 6, "three buckets, +Inf, sum, count");
	for (size_t i = 0; i < w->n_timeseries && i < 6; i++) {
		const PlRemote__TimeSeries *t = w->timeseries[i];

		streq(labels_of(t), want[i]);
		ok(sound(t) && t->samples[0]->value == values[i], "value of %s", want[i]);
		eq(t->n_exemplars, i == 1, "exemplar");
	}
	ok(strcmp(w->timeseries[1]->exemplars[0]->labels[0]->value, "a>b") == 0 &&
			w->timeseries[1]->exemplars[0]->value == 0.03 &&
			w->timeseries[1]->exemplars[0]->timestamp == (int64_t)(NOW / 1000000),
		"the flow, its value and time");
	pl_remote__write_request__free_unpacked(w, NULL);
	pl_remote_format.free(f);
}

/* Writes a histogram h{x=…} with bounds that do not outlive the call. */
static int give_hist(
	void *f, const char *x, const struct pl_exposition_bounds *bounds, uint64_t ts_ns)
{
	static struct pl_hist h;
	struct pl_exposition_bounds *own = malloc(sizeof(*own));
	struct pl_series_label label = { "x", x };
	struct pl_series_field field = { .metric = "h", .kind = PL_SERIES_HIST };
	struct pl_series_point p = {
		.ts_ns = ts_ns, .n_labels = 1, .n_fields = 1, .labels = &label, .fields = &field
	};
	int r;

	if (own == NULL)
		abort();
	*own = *bounds;
	field.hist = &h;
	field.bounds = own;
	r = give(f, &p, NOW);
	memset(own, 0x5a, sizeof(*own));
	free(own);
	return r;
}

/* Lists labels of the chunk's samples, stale markers or others, as "a;b;". */
static void list_samples(bool stale, char *ret, size_t cap)
{
	PlRemote__WriteRequest *w = read_chunk();
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < w->n_timeseries && n < cap; i++) {
		if (is_stale(w->timeseries[i]->samples[0]->value) == stale)
			n += (size_t)snprintf(ret + n, cap - n, "%s;", labels_of(w->timeseries[i]));
	}
	pl_remote__write_request__free_unpacked(w, NULL);
}

/* Every series of a histogram that ends gets its marker, though its bounds are gone; so does every
 * bucket that new bounds lack. */
static void histogram_ends(void)
{
	static const struct pl_exposition_bounds wide = {
		.first = 0, .last = 40, .step = 10, .divisor = 1e3
	};
	static const struct pl_exposition_bounds narrow = {
		.first = 10, .last = 30, .step = 20, .divisor = 1e3
	};
	void *f = new_format(0, NULL, 0);
	char live[4096], stale[4096];

	pl_buf_reset(&chunk);
	eq(give_hist(f, "ends", &wide, NOW), 0);
	list_samples(false, live, sizeof(live));
	pl_buf_reset(&chunk);
	for (uint64_t t = 1; t < 4; t++)
		eq(give_gauge(f, "1", NOW + t * SECOND, NOW), 0, "others go on");
	list_samples(true, stale, sizeof(stale));
	streq(stale, live, "a marker for each series of the histogram");
	pl_remote_format.free(f);

	f = new_format(0, NULL, 0);
	eq(give_hist(f, "goes on", &wide, NOW), 0);
	pl_buf_reset(&chunk);
	eq(give_hist(f, "goes on", &narrow, NOW + SECOND), 0);
	list_samples(true, stale, sizeof(stale));
	streq(stale,
		"__name__=h_bucket,le=0.001,x=goes on;__name__=h_bucket,le=0.032,x=goes on;"
		"__name__=h_bucket,le=1.024,x=goes on;",
		"buckets that are no more");
	pl_remote_format.free(f);
}

/* Some of a hundred series end: each of these gets one marker, later than its last sample. */
static void ends(void)
{
	void *f = new_format(0, NULL, 0);
	unsigned int markers = 0;
	bool good = true;
	PlRemote__WriteRequest *w;

	pl_buf_reset(&chunk);
	for (uint64_t t = 0; t < 4; t++) {
		for (unsigned int i = 0; i < 100; i++) {
			char node[8];

			if (t >= 1 && i % 10 == 3)
				continue; /* ended */
			snprintf(node, sizeof(node), "%u", i);
			if (give_gauge(f, node, NOW + t * SECOND, NOW) != 0)
				good = false;
		}
	}
	w = read_chunk();
	for (size_t i = 0; i < w->n_timeseries; i++) {
		const PlRemote__TimeSeries *t = w->timeseries[i];

		if (!is_stale(t->samples[0]->value))
			continue;
		markers++;
		good &= atoi(t->labels[1]->value) % 10 == 3;
		good &= t->samples[0]->timestamp > (int64_t)(NOW / 1000000) &&
			t->samples[0]->timestamp < (int64_t)((NOW + 2 * SECOND) / 1000000);
		for (size_t k = 0; k < i; k++)
			good &= strcmp(w->timeseries[k]->labels[1]->value, t->labels[1]->value) !=
					0 ||
				!is_stale(w->timeseries[k]->samples[0]->value);
	}
	eq(markers, 10, "a marker for each that ended");
	ok(good, "once, at the time of the interval it was missing in");
	pl_remote__write_request__free_unpacked(w, NULL);
	pl_buf_reset(&chunk);
	eq(give_gauge(f, "3", NOW + 4 * SECOND, NOW), 0, "it may come again");
	pl_remote_format.free(f);
}

/* P35: series above the bound are refused, known ones continue. */
static void bound(void)
{
	void *f = new_format(1000, NULL, 0);
	unsigned int refused = 0;
	char node[24];

	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(node, sizeof(node), "%u", i);
		pl_buf_reset(&chunk);
		refused += give_gauge(f, node, NOW, NOW) == -ENOSPC;
	}
	eq(refused, 4000, "series beyond the bound are refused");
	eq(give_gauge(f, "5", NOW + SECOND, NOW), 0, "a known one goes on");
	for (uint64_t t = 2; t < 6; t++) {
		for (unsigned int i = 0; i < 500; i++) {
			snprintf(node, sizeof(node), "%u", i);
			pl_buf_reset(&chunk);
			if (give_gauge(f, node, NOW + t * SECOND, NOW) != 0)
				abort();
		}
	}
	refused = 0;
	for (unsigned int i = 10000; i < 10500; i++) {
		snprintf(node, sizeof(node), "%u", i);
		refused += give_gauge(f, node, NOW + 6 * SECOND, NOW) != 0;
	}
	eq(refused, 0, "what ended makes room");
	pl_remote_format.free(f);
}

static void bodies(void)
{
	static const struct {
		int status;
		const char *body;
		uint64_t span;
		enum pl_ruling_kind kind;
		bool whole;
	} rows[] = {
		{ 204, "", 0, PL_RULING_DELIVERED, false },
		{ 400, "out of order sample", 0, PL_RULING_REFUSED, false },
		{ 400, "duplicate sample for timestamp", 0, PL_RULING_REFUSED, false },
		{ 400, "out of bounds", 0, PL_RULING_REFUSED, true },
		{ 400, "out of bounds", SECOND, PL_RULING_REFUSED, false },
		{ 404, "remote write receiver needs to be enabled", 0, PL_RULING_HOLD, false },
		{ 429, "", 0, PL_RULING_RETRY, false },
		{ 500, "label name \"a\" is not unique", 0, PL_RULING_DOUBTFUL, false },
		{ 503, "", 0, PL_RULING_RETRY, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static struct pl_http_answer answer;
		void *f = new_format(0, NULL, 0);
		struct pl_chunks chunks;
		struct pl_ruling ruling;
		uint32_t ends_at[2];
		struct pl_buf body;
		size_t len = 0;
		char *plain;

		pl_buf_reset(&chunk);
		give_gauge(f, "1", NOW, NOW);
		ends_at[0] = (uint32_t)chunk.len;
		give_gauge(f, "2", NOW + rows[i].span, NOW);
		ends_at[1] = (uint32_t)chunk.len;
		chunks = (struct pl_chunks){ chunk.data, ends_at, 2 };
		pl_buf_init(&body);
		eq(pl_remote_format.body(f, &chunks, 0, 2, &body), 0);
		ok(snappy_uncompressed_length(body.data, body.len, &len) == SNAPPY_OK &&
			len == chunk.len);
		plain = malloc(len + 1);
		ok(plain != NULL &&
				snappy_uncompress(body.data, body.len, plain, &len) == SNAPPY_OK &&
				memcmp(plain, chunk.data, len) == 0,
			"one block of snappy");
		answer = (struct pl_http_answer){ .status = rows[i].status,
			.len = (uint32_t)strlen(rows[i].body) };
		memcpy(answer.body, rows[i].body, answer.len);
		pl_remote_format.answer(f, &answer, 2, &ruling);
		ok(ruling.kind == rows[i].kind && ruling.whole == rows[i].whole, "%d %s: %d%s",
			rows[i].status, rows[i].body, (int)ruling.kind,
			ruling.whole ? ", all of it" : "");
		free(plain);
		pl_buf_done(&body);
		pl_remote_format.free(f);
	}
}

static void label_texts(void)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = { { "a=b", 0 }, { "job=path line", 0 }, { "a=b=c", 0 }, { "a=", -EINVAL },
		{ "=b", -EINVAL }, { "a", -EINVAL }, { "", -EINVAL }, { "le=1", -EINVAL },
		{ "__name__=x", -EINVAL }, { "a-b=c", -EINVAL }, { "a=\xff", -EINVAL } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		eq(pl_remote_label_check(rows[i].text, NULL), rows[i].want, "label \"%s\"",
			rows[i].text);
}

int main(void)
{
	pl_buf_init(&chunk);
	times();
	order();
	labels();
	metrics();
	histogram();
	histogram_ends();
	ends();
	bound();
	bodies();
	label_texts();
	pl_buf_done(&chunk);
	return pl_test_done();
}
