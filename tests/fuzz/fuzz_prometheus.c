/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is Prometheus-shaped, out of any bytes: an event as an alert, labels on a page and in remote
 * write. The first bytes are an event; what is left is, split at zero bytes, names and values of
 * labels.
 *
 * What is written is read by readers that share nothing with the writers: a body to Alertmanager is
 * one JSON value; a page's label is unescaped and is the same again; remote write is walked field
 * by field, and its labels are sorted, unique, not empty and UTF-8, and one sample has the time
 * that was given.
 */
#include "base/utf8.h"
#include "export/exposition.h"
#include "export/remote_write.h"
#include "export/webhook.h"
#include "fuzz.h"
#include "json.h"

#define NOW    UINT64_C(1700000000000000000)
#define LABELS 4

static void alert(const struct pl_event *event)
{
	static void *format[2];
	struct pl_chunks chunks;
	struct pl_buf chunk, body;
	uint32_t end;

	pl_buf_init(&chunk);
	pl_buf_init(&body);
	for (unsigned int form = 0; form < 2; form++) {
		struct pl_webhook_options o = { .form = form, .link = "http://\"\xff" };

		if (format[form] == NULL)
			must(pl_webhook_format_new(&format[form], &o) == 0);
		pl_buf_reset(&chunk);
		pl_buf_reset(&body);
		if (pl_webhook_format.event(format[form], event, NOW, &chunk) < 0) {
			must(event->event >= PL_EVENT_KIND_MAX || event->phase >= PL_PHASE_MAX);
			continue;
		}
		is_json(&chunk);
		end = (uint32_t)chunk.len;
		chunks = (struct pl_chunks){ chunk.data, &end, 1 };
		must(pl_webhook_format.body(format[form], &chunks, 0, 1, &body) == 0);
		is_json(&body);
	}
	pl_buf_done(&chunk);
	pl_buf_done(&body);
}

/* What a text is once its bytes that are not UTF-8 are replaced. */
static void cleaned(struct pl_buf *buf, const char *text)
{
	size_t left = strlen(text), len;
	uint32_t cp;

	pl_buf_reset(buf);
	pl_buf_str(buf, "");
	for (; left > 0; text += len, left -= len) {
		if (pl_utf8_next(text, left, &len, &cp))
			pl_buf_add(buf, text, len);
		else
			pl_buf_str(buf, "\xef\xbf\xbd");
	}
}

/* x{l="…"} 1 */
static void on_a_page(const char *value)
{
	struct pl_label label = { .name = "l", .form = PL_LABEL_TEXT, .text = value };
	struct pl_exposition page;
	struct pl_buf buf, want, got;
	const char *p;

	pl_buf_init(&buf);
	pl_buf_init(&want);
	pl_buf_init(&got);
	pl_exposition_init(&page, &buf, PL_EXPOSITION_OPENMETRICS);
	pl_exposition_family(&page, "x", PL_METRIC_GAUGE, NULL, value);
	pl_exposition_u64(&page, &label, 1, 1);
	pl_exposition_end(&page);
	must(!buf.failed && pl_utf8_valid(buf.data, buf.len));
	p = strstr(buf.data, "\nx{l=\"");
	must(p != NULL);
	for (p += 6; *p != '"'; p++) {
		char c = *p;

		must(c != '\n' && c != '\0');
		if (c == '\\') {
			p++;
			must(*p == '\\' || *p == '"' || *p == 'n');
			c = *p == 'n' ? '\n' : *p;
		}
		pl_buf_chr(&got, c);
	}
	must(strcmp(p, "\"} 1\n# EOF\n") == 0);
	cleaned(&want, value);
	must(want.len == got.len && (want.len == 0 || memcmp(want.data, got.data, want.len) == 0));
	pl_buf_done(&buf);
	pl_buf_done(&want);
	pl_buf_done(&got);
}

/* ---- protobuf, walked by hand ---- */

struct bytes {
	const uint8_t *at, *end;
};

static uint64_t varint(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t byte;

		must(b->at < b->end && shift < 64);
		byte = *b->at++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return v;
	}
}

static struct bytes field(struct bytes *b, unsigned int number)
{
	struct bytes inner;
	uint64_t len;

	must(varint(b) == (number << 3 | 2));
	len = varint(b);
	must(len <= (uint64_t)(b->end - b->at));
	inner = (struct bytes){ b->at, b->at + len };
	b->at += len;
	return inner;
}

static int compare(struct bytes a, struct bytes b)
{
	size_t n = (size_t)(a.end - a.at), m = (size_t)(b.end - b.at);
	int r = memcmp(a.at, b.at, n < m ? n : m);

	return r != 0 ? r : (n > m) - (n < m);
}

static void check_series(struct bytes series, int64_t first_ms, int64_t last_ms)
{
	struct bytes before = { NULL, NULL }, sample;
	int64_t ms;

	while (series.at < series.end && *series.at == (1 << 3 | 2)) {
		struct bytes label = field(&series, 1), name = field(&label, 1);
		struct bytes value = field(&label, 2);

		must(name.at < name.end && value.at < value.end && label.at == label.end);
		must(before.at == NULL || compare(before, name) < 0);
		must(pl_utf8_valid((const char *)value.at, (size_t)(value.end - value.at)));
		before = name;
	}
	must(before.at != NULL);
	sample = field(&series, 2);
	if (sample.at < sample.end && *sample.at == (1 << 3 | 1))
		sample.at += 9;
	must(varint(&sample) == 2 << 3);
	ms = (int64_t)varint(&sample);
	must(ms >= first_ms && ms <= last_ms);
	must(sample.at == sample.end && series.at == series.end);
}

static void written(const struct pl_series_label *labels, uint32_t n, uint64_t value)
{
	static void *format;
	static uint64_t ts_ns = NOW;
	struct pl_series_field f = { .metric = "x", .kind = PL_SERIES_GAUGE, .u64 = value };
	struct pl_series_point p = { .n_labels = n, .n_fields = 1, .labels = labels, .fields = &f };
	struct pl_remote_options o = { .max_series = 1000 };
	struct pl_buf out;

	if (format == NULL)
		must(pl_remote_format_new(&format, &o, NULL) == 0);
	pl_buf_init(&out);
	p.ts_ns = ts_ns += 1000000;
	if (pl_remote_format.point(format, &p, ts_ns, &out) == 0) {
		struct bytes b = { (const uint8_t *)out.data, (const uint8_t *)out.data + out.len };

		int64_t ms = (int64_t)(p.ts_ns / 1000000);

		check_series(field(&b, 1), ms, ms);
		/* markers of what ended, at the time of an interval before */
		while (b.at < b.end)
			check_series(field(&b, 1), (int64_t)(NOW / 1000000), ms - 1);
	}
	pl_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_series_label labels[LABELS];
	struct pl_event event = { .ts_ns = 0 };
	size_t n = size < sizeof(event) ? size : sizeof(event), count = 0, at = 0;
	char *text;

	memcpy(&event, data, n);
	event.event %= PL_EVENT_KIND_MAX + 1;
	event.phase %= PL_PHASE_MAX + 1;
	alert(&event);
	size -= n;
	text = malloc(size + 2);
	must(text != NULL);
	memcpy(text, data + n, size);
	text[size] = text[size + 1] = '\0';
	on_a_page(text);
	while (at < size && count < LABELS) {
		const char *name = text + at;

		at += strlen(name) + 1;
		labels[count++] = (struct pl_series_label){ name, at <= size ? text + at : "" };
		at += at <= size ? strlen(text + at) + 1 : 0;
	}
	written(labels, (uint32_t)count, size);
	free(text);
	return 0;
}
