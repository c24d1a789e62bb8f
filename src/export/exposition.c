/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/exposition.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/utf8.h"

const struct pl_exposition_bounds pl_bounds_latency = { .first = 16,
	.last = 64,
	.step = 4,
	.divisor = 1e9 };
const struct pl_exposition_bounds pl_bounds_depth = { .first = 0,
	.last = 48,
	.step = 4,
	.divisor = 1 };

const char *pl_exposition_content_type(enum pl_exposition_format format)
{
	return format == PL_EXPOSITION_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}

/* --- names ------------------------------------------------------------------------------------------- */

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

/* Endings that a format gives a meaning of its own. Not "_info": a gauge of value 1 that ends so is what all
 * exporters have, in both formats. */
static bool name_free(const char *name)
{
	static const char *const reserved[] = { "_total", "_created", "_bucket", "_count", "_sum" };

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (ends_with(name, reserved[i]))
			return false;
	}
	return true;
}

/* --- text -------------------------------------------------------------------------------------------- */

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

/* A bound or a value that is a float in both formats: "1.0", not "1", so that a series has one name. */
static void add_float(struct pl_buf *buf, double v)
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

static void add_label(struct pl_exposition *page, const struct pl_label *label, bool *first)
{
	struct pl_buf *buf = page->buf;
	char addr[PL_ADDR_TEXT_MAX];

	assert(name_good(label->name, false) && strncmp(label->name, "__", 2) != 0);
	assert(page->type != PL_METRIC_HISTOGRAM || strcmp(label->name, "le") != 0);
	pl_buf_chr(buf, *first ? '{' : ',');
	*first = false;
	pl_buf_str(buf, label->name);
	pl_buf_str(buf, "=\"");
	switch (label->form) {
	case PL_LABEL_TEXT:
		add_escaped(buf, label->text, true);
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
	pl_buf_chr(buf, '"');
}

/* The line up to and with the blank before its value. le: NULL, or "+Inf" with bound unused. */
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

/* --- the page ---------------------------------------------------------------------------------------- */

void pl_exposition_init(
	struct pl_exposition *page, struct pl_buf *buf, enum pl_exposition_format format)
{
	*page = (struct pl_exposition){ .buf = buf, .format = format };
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
	for (unsigned int i = 0; i < page->n_seen; i++)
		assert(page->seen[i] != hash); /* all samples of a family stand together */
	page->seen[page->n_seen++] = hash;
	page->type = type;
	memcpy(page->name, name, strlen(name) + 1);

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

void pl_exposition_u64(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, uint64_t value)
{
	sample_begin(page, value_suffix(page), labels, n);
	pl_buf_u64(page->buf, value);
	pl_buf_chr(page->buf, '\n');
}

void pl_exposition_double(
	struct pl_exposition *page, const struct pl_label *labels, unsigned int n, double value)
{
	assert(page->type != PL_METRIC_COUNTER || (value >= 0 && isfinite(value)));
	sample_begin(page, value_suffix(page), labels, n);
	pl_buf_double(page->buf, value);
	pl_buf_chr(page->buf, '\n');
}

/* One _bucket line: the caller's labels, then le. */
static void bucket(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	double bound, uint64_t count)
{
	bool first = true;

	pl_buf_str(page->buf, page->name);
	pl_buf_str(page->buf, "_bucket");
	for (unsigned int i = 0; i < n; i++)
		add_label(page, &labels[i], &first);
	pl_buf_str(page->buf, first ? "{le=\"" : ",le=\"");
	add_float(page->buf, bound);
	pl_buf_str(page->buf, "\"} ");
	pl_buf_u64(page->buf, count);
	pl_buf_chr(page->buf, '\n');
	page->samples++;
}

void pl_exposition_hist(struct pl_exposition *page, const struct pl_label *labels, unsigned int n,
	const struct pl_hist *hist, const struct pl_exposition_bounds *bounds)
{
	unsigned int next = bounds->first;
	uint64_t count = 0;

	assert(page->type == PL_METRIC_HISTOGRAM);
	assert(bounds->step > 0 && bounds->first <= bounds->last &&
		bounds->last < PL_HIST_BUCKETS - 1 && bounds->divisor > 0);
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		count += hist->buckets[i];
		if (i == next && i <= bounds->last) {
			bucket(page, labels, n, (double)pl_hist_upper(i) / bounds->divisor, count);
			next += bounds->step;
		}
	}
	bucket(page, labels, n, INFINITY, count);
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
