/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes metrics pages, and passes the same values on as points. */
#include "export/exposition.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/utf8.h"

#define OCTAVE PL_HIST_PER_OCTAVE

const struct pl_exposition_bounds pl_bounds_latency = { .first = 8 * OCTAVE,
	.last = 32 * OCTAVE,
	.step = OCTAVE,
	.divisor = 1e9 };
const struct pl_exposition_bounds pl_bounds_depth = { .first = 0,
	.last = 24 * OCTAVE,
	.step = OCTAVE,
	.divisor = 1 };

const char *pl_exposition_content_type(enum pl_exposition_format format)
{
	return format == PL_EXPOSITION_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* --- names ------------------------------------------------------------------------------------ */

static bool name_char(char c, bool first, bool colon)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (colon && c == ':') || (!first && c >= '0' && c <= '9');
}

static bool name_good(const char *name, bool colon)
{
	if (name == NULL || name[0] == '\0')
		return false;
	for (const char *p = name; *p != '\0'; p++) {
		if (!name_char(*p, p == name, colon))
			return false;
	}
	return true;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && memcmp(text + n - m, end, m) == 0;
}

/* Returns false for endings that a format reserves. "_info" is not among them: gauges of value 1
 * with that ending are common in both formats. */
static bool name_free(const char *name)
{
	static const char *const reserved[] = { "_total", "_created", "_bucket", "_count", "_sum" };

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (ends_with(name, reserved[i]))
			return false;
	}
	return true;
}

/* --- text ------------------------------------------------------------------------------------- */

static void add_escaped(struct pl_buf *buf, const char *text, bool quotes)
{
	size_t n = strlen(text);

	while (n > 0) {
		size_t len;
		uint32_t cp;

		if (!pl_utf8_next(text, n, &len, &cp))
			pl_buf_str(buf, "\xef\xbf\xbd");
		else if (cp == '\\')
			pl_buf_str(buf, "\\\\");
		else if (cp == '\n')
			pl_buf_str(buf, "\\n");
		else if (cp == '"' && quotes)
			pl_buf_str(buf, "\\\"");
		else
			pl_buf_add(buf, text, len);
		text += len;
		n -= len;
	}
}

/* Writes a bound or a value that is a float in both formats: "1.0", not "1", so that a series keeps
 * its name. */
void pl_exposition_float(struct pl_buf *buf, double v)
{
	size_t before = buf->len;

	pl_buf_double(buf, v);
	if (buf->failed || !isfinite(v))
		return;
	for (size_t i = before; i < buf->len; i++) {
		if (strchr(".eE", buf->data[i]) != NULL)
			return;
	}
	pl_buf_str(buf, ".0");
}

void pl_label_text(struct pl_buf *buf, const struct pl_label *label)
{
	char addr[PL_ADDR_TEXT_MAX];

	switch (label->form) {
	case PL_LABEL_TEXT:
		pl_buf_str(buf, label->text);
		break;
	case PL_LABEL_U64:
		pl_buf_u64(buf, label->number);
		break;
	case PL_LABEL_HEX64:
		pl_buf_hex64(buf, label->number);
		break;
	case PL_LABEL_ADDR:
		pl_format_addr(addr, &label->addr);
		pl_buf_str(buf, addr);
		break;
	}
}

static void add_label_value(struct pl_buf *buf, const struct pl_label *label)
{
	if (label->form == PL_LABEL_TEXT)
		add_escaped(buf, label->text, true);
	else
		pl_label_text(buf, label);
}

static void add_label(struct pl_exposition *page, const struct pl_label *label, bool *first)
{
	struct pl_buf *buf = page->buf;

	assert(name_good(label->name, false) && strncmp(label->name, "__", 2) != 0);
	assert(page->type != PL_METRIC_HISTOGRAM || strcmp(label->name, "le") != 0);
	pl_buf_chr(buf, *first ? '{' : ',');
	*first = false;
	pl_buf_str(buf, label->name);
	pl_buf_str(buf, "=\"");
	add_label_value(buf, label);
	pl_buf_chr(buf, '"');
}

/* Counts characters of an escaped text: an escape counts as two, which errs on the safe side. */
static size_t characters(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* Appends " # {flow="…"} 0.000125 1795255200.125". */
static void add_exemplar(
	struct pl_exposition *page, const struct pl_exposition_exemplar *exemplar, double divisor)
{
	struct pl_buf *buf = page->buf;
	size_t used = 0;
	bool first = true;

	pl_buf_str(buf, " # {");
	for (unsigned int i = 0; i < exemplar->n; i++) {
		const struct pl_label *label = &exemplar->labels[i];
		size_t begin = buf->len, value;

		assert(name_good(label->name, false));
		if (!first)
			pl_buf_chr(buf, ',');
		pl_buf_str(buf, label->name);
		pl_buf_str(buf, "=\"");
		value = buf->len;
		add_label_value(buf, label);
		if (buf->failed)
			return;
		used += strlen(label->name) + characters(buf->data + value, buf->len - value);
		if (used > PL_EXEMPLAR_CHARACTERS_MAX) {
			buf->len = begin;
			buf->data[begin] = '\0';
			break;
		}
		pl_buf_chr(buf, '"');
		first = false;
	}
	pl_buf_str(buf, "} ");
	pl_buf_double(buf, (double)exemplar->value / divisor);
	pl_buf_printf(buf, " %" PRIu64 ".%03u", exemplar->ts_ns / 1000000000,
		(unsigned int)(exemplar->ts_ns / 1000000 % 1000));
}

/* Appends a sample's line up to the blank before its value. */
static void sample_begin(struct pl_exposition *page, const char *suffix,
	const struct pl_label *labels, unsigned int n)
{
	bool first = true;

	assert(page->name[0] != '\0');
	pl_buf_str(page->buf, page->name);
	pl_buf_str(page->buf, suffix);
	for (unsigned int i = 0; i < n; i++)
		add_label(page, &labels[i], &first);
	if (!first)
		pl_buf_chr(page->buf, '}');
	pl_buf_chr(page->buf, ' ');
	page->samples++;
}

static const char *value_suffix(const struct pl_exposition *page)
{
	assert(page->type != PL_METRIC_HISTOGRAM);
	return page->type == PL_METRIC_COUNTER ? "_total" : "";
}

/* --- points ----------------------------------------------------------------------------------- */

void pl_exposition_init_points(struct pl_exposition *page, struct pl_buf *buf, uint64_t ts_ns,
	void (*take)(void *ctx, const struct pl_series_point *point), void *ctx)
{
	*page = (struct pl_exposition){
		.buf = buf, .format = PL_EXPOSITION_POINTS, .take = take, .ctx = ctx, .ts_ns = ts_ns
	};
}

static void add_point(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	const struct pl_series_field *value)
{
	struct pl_series_label sorted[PL_SERIES_LABELS_MAX] = { { NULL, NULL } };
	struct pl_series_field field = *value;
	struct pl_series_point point = { .name = page->family,
		.ts_ns = page->ts_ns,
		.n_labels = n,
		.n_fields = 1,
		.labels = sorted,
		.fields = &field };
	size_t at[PL_SERIES_LABELS_MAX];

	assert(n <= PL_SERIES_LABELS_MAX);
	field.metric = page->family;
	pl_buf_reset(page->buf);
	for (unsigned int i = 0; i < n; i++) {
		at[i] = page->buf->len;
		pl_label_text(page->buf, &labels[i]);
		pl_buf_chr(page->buf, '\0');
	}
	if (page->buf->failed)
		return;
	for (unsigned int i = 0; i < n; i++) {
		unsigned int to = i;

		for (; to > 0 && strcmp(labels[i].name, sorted[to - 1].name) < 0; to--)
			sorted[to] = sorted[to - 1];
		sorted[to] = (struct pl_series_label){ labels[i].name, page->buf->data + at[i] };
	}
	page->take(page->ctx, &point);
	page->samples++;
}

/* --- the page --------------------------------------------------------------------------------- */

void pl_exposition_init(
	struct pl_exposition *page, struct pl_buf *buf, enum pl_exposition_format format)
{
	*page = (struct pl_exposition){ .buf = buf, .format = format };
}

void pl_exposition_init_names(struct pl_exposition *page,
	void (*take)(void *ctx, const char *name, const char *help), void *ctx)
{
	*page = (struct pl_exposition){
		.format = PL_EXPOSITION_NAMES, .take_name = take, .ctx = ctx
	};
}

static void take_name(struct pl_exposition *page, const char *help)
{
	char name[sizeof(page->name) + sizeof("_total")];

	snprintf(name, sizeof(name), "%s%s", page->name,
		page->type == PL_METRIC_COUNTER ? "_total" : "");
	page->take_name(page->ctx, name, help);
}

static bool was_seen(const struct pl_exposition *page, uint64_t hash)
{
	for (unsigned int i = 0; i < page->n_seen; i++) {
		if (page->seen[i] == hash)
			return true;
	}
	return false;
}

static void family_line(struct pl_exposition *page, const char *what)
{
	pl_buf_str(page->buf, what);
	pl_buf_str(page->buf, page->name);
	if (page->type == PL_METRIC_COUNTER && page->format == PL_EXPOSITION_TEXT)
		pl_buf_str(page->buf, "_total");
	pl_buf_chr(page->buf, ' ');
}

void pl_exposition_family(struct pl_exposition *page, const char *name, enum pl_metric_type type,
	const char *unit, const char *help)
{
	static const char *const types[] = {
		[PL_METRIC_COUNTER] = "counter\n",
		[PL_METRIC_GAUGE] = "gauge\n",
		[PL_METRIC_HISTOGRAM] = "histogram\n",
	};
	uint64_t hash = pl_hash(name, strlen(name), 0);

	assert(name_good(name, true) && name_free(name) && strlen(name) < sizeof(page->name));
	assert(unit == NULL || (ends_with(name, unit) && strlen(name) > strlen(unit) &&
				       name[strlen(name) - strlen(unit) - 1] == '_'));
	assert(page->n_seen < PL_EXPOSITION_FAMILIES_MAX);
	page->type = type;
	if (was_seen(page, hash)) {
		/* All samples of a family stand together. */
		assert(page->format == PL_EXPOSITION_NAMES);
		return;
	}
	page->seen[page->n_seen++] = hash;
	memcpy(page->name, name, strlen(name) + 1);
	page->family = name;
	if (page->format == PL_EXPOSITION_POINTS)
		return;
	if (page->format == PL_EXPOSITION_NAMES) {
		take_name(page, help);
		return;
	}

	family_line(page, "# HELP ");
	add_escaped(page->buf, help, page->format == PL_EXPOSITION_OPENMETRICS);
	pl_buf_chr(page->buf, '\n');
	family_line(page, "# TYPE ");
	pl_buf_str(page->buf, types[type]);
	if (unit != NULL && page->format == PL_EXPOSITION_OPENMETRICS) {
		family_line(page, "# UNIT ");
		pl_buf_str(page->buf, unit);
		pl_buf_chr(page->buf, '\n');
	}
}

bool pl_exposition_stat(struct pl_exposition *page, const struct pl_stat *stat)
{
	if (stat->family != NULL)
		pl_exposition_family(page, stat->family,
			stat->gauge ? PL_METRIC_GAUGE : PL_METRIC_COUNTER, stat->unit, stat->help);
	return stat->family != NULL;
}

void pl_exposition_u64(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, uint64_t value)
{
	if (page->format == PL_EXPOSITION_NAMES)
		return;
	if (page->format == PL_EXPOSITION_POINTS) {
		struct pl_series_field f = { .kind = page->type == PL_METRIC_COUNTER
							     ? PL_SERIES_COUNTER
							     : PL_SERIES_GAUGE,
			.u64 = value };

		add_point(page, labels, n, &f);
		return;
	}
	sample_begin(page, value_suffix(page), labels, n);
	pl_buf_u64(page->buf, value);
	pl_buf_chr(page->buf, '\n');
}

void pl_exposition_double(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, double value)
{
	assert(page->type != PL_METRIC_COUNTER || (value >= 0 && isfinite(value)));
	if (page->format == PL_EXPOSITION_NAMES)
		return;
	if (page->format == PL_EXPOSITION_POINTS) {
		struct pl_series_field f = { .kind = page->type == PL_METRIC_COUNTER
							     ? PL_SERIES_RUNNING
							     : PL_SERIES_NUMBER,
			.f64 = value };

		add_point(page, labels, n, &f);
		return;
	}
	sample_begin(page, value_suffix(page), labels, n);
	pl_buf_double(page->buf, value);
	pl_buf_chr(page->buf, '\n');
}

/* Appends one _bucket line: the caller's labels, then le. */
static void bucket(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	double bound, uint64_t count, const struct pl_exposition_exemplar *exemplar, double divisor)
{
	bool first = true;

	pl_buf_str(page->buf, page->name);
	pl_buf_str(page->buf, "_bucket");
	for (unsigned int i = 0; i < n; i++)
		add_label(page, &labels[i], &first);
	pl_buf_str(page->buf, first ? "{le=\"" : ",le=\"");
	pl_exposition_float(page->buf, bound);
	pl_buf_str(page->buf, "\"} ");
	pl_buf_u64(page->buf, count);
	if (exemplar != NULL)
		add_exemplar(page, exemplar, divisor);
	pl_buf_chr(page->buf, '\n');
	page->samples++;
}

void pl_exposition_hist(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	const struct pl_hist *hist, const struct pl_exposition_bounds *bounds,
	const struct pl_exposition_exemplar *exemplar)
{
	unsigned int next = bounds->first;
	uint64_t count = 0;

	assert(page->type == PL_METRIC_HISTOGRAM);
	assert(bounds->step > 0 && bounds->first <= bounds->last &&
		bounds->last < PL_HIST_BUCKETS - 1 && bounds->divisor > 0);
	if (page->format == PL_EXPOSITION_NAMES)
		return;
	if (page->format == PL_EXPOSITION_POINTS) {
		struct pl_series_field f = {
			.kind = PL_SERIES_HIST, .hist = hist, .bounds = bounds, .exemplar = exemplar
		};

		add_point(page, labels, n, &f);
		return;
	}
	if (page->format != PL_EXPOSITION_OPENMETRICS)
		exemplar = NULL;
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		count += hist->buckets[i];
		if (i == next && i <= bounds->last) {
			uint64_t upper = pl_hist_upper(i);
			bool here = exemplar != NULL && exemplar->value <= upper;

			bucket(page, labels, n, (double)upper / bounds->divisor, count,
				here ? exemplar : NULL, bounds->divisor);
			if (here)
				exemplar = NULL;
			next += bounds->step;
		}
	}
	bucket(page, labels, n, INFINITY, count, exemplar, bounds->divisor);
	sample_begin(page, "_sum", labels, n);
	pl_buf_double(page->buf, (double)hist->sum / bounds->divisor);
	pl_buf_chr(page->buf, '\n');
	sample_begin(page, "_count", labels, n);
	pl_buf_u64(page->buf, count);
	pl_buf_chr(page->buf, '\n');
}

void pl_exposition_end(struct pl_exposition *page)
{
	if (page->format == PL_EXPOSITION_OPENMETRICS)
		pl_buf_str(page->buf, "# EOF\n");
	page->name[0] = '\0';
}
