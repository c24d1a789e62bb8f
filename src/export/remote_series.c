/* SPDX-License-Identifier: BSD-2-Clause */
/* Series of remote write: names, the table of unfinished series, samples as messages. */
#include "export/remote_state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "export/remote.pb-c.h"

#define STALE UINT64_C(0x7ff0000000000002) /* NaN of a stale marker, which ends a series */

/* ---- names and values ---- */

bool pl_remote_name_good(const char *name, size_t len, bool metric)
{
	if (len == 0 || len > NAME_MAX_LEN || (!metric && len >= 2 && memcmp(name, "__", 2) == 0))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
			    (metric && c == ':') || (i > 0 && c >= '0' && c <= '9')))
			return false;
	}
	return true;
}

static void add_clean(struct pl_buf *buf, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		size_t len;
		uint32_t cp;

		if (pl_utf8_next(text, left, &len, &cp))
			pl_buf_add(buf, text, len);
		else
			pl_buf_str(buf, "\xef\xbf\xbd");
		text += len;
		left -= len;
	}
}

/* Sorts the labels by name into ret; returns their number or -EINVAL. */
static int gather(const struct remote *r, const struct pl_series_point *p, struct pair *ret)
{
	uint32_t n = 0;

	if (p->n_labels > PL_SERIES_LABELS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < p->n_labels + r->n_base; i++) {
		bool own = i < p->n_labels;
		struct pair x = own ? (struct pair){ p->labels[i].name, p->labels[i].value }
				    : r->base[i - p->n_labels];
		uint32_t at = n;
		int order = 1;

		if (own && (!pl_remote_name_good(x.name, strlen(x.name), false) ||
				   strlen(x.value) > VALUE_MAX))
			return -EINVAL;
		while (at > 0 && (order = strcmp(x.name, ret[at - 1].name)) < 0)
			at--;
		if (at > 0 && order == 0) {
			if (own)
				return -EINVAL; /* a name given twice */
			continue;               /* the point's own label takes precedence */
		}
		memmove(&ret[at + 1], &ret[at], (n - at) * sizeof(*ret));
		ret[at] = x;
		n++;
	}
	return (int)n;
}

int pl_remote_identify(struct remote *r, const struct pl_series_point *p)
{
	struct pair pairs[LABELS_MAX];
	int n = gather(r, p, pairs);

	if (n < 0)
		return n;
	pl_buf_reset(&r->identity);
	for (int i = 0; i < n; i++) {
		if (pairs[i].value[0] == '\0')
			continue;
		pl_buf_add(&r->identity, pairs[i].name, strlen(pairs[i].name) + 1);
		add_clean(&r->identity, pairs[i].value);
		pl_buf_chr(&r->identity, '\0');
	}
	return r->identity.failed ? -ENOMEM : 0;
}

/* ---- protobuf ---- */

struct message {
	PlRemote__Label labels[LABELS_MAX], *label_at[LABELS_MAX];
	PlRemote__Label extra[EXEMPLAR_LABELS_MAX], *extra_at[EXEMPLAR_LABELS_MAX];
	PlRemote__Sample sample, *sample_at;
	PlRemote__Exemplar exemplar, *exemplar_at;
	PlRemote__TimeSeries series, *series_at;
	PlRemote__WriteRequest request;
	char name[NAME_MAX_LEN + 16];
};

static void message_label(struct message *m, const char *name, const char *value)
{
	size_t at = m->series.n_labels++;

	/* Inserts in order: __name__ (upper case may precede it) and le come after the others. */
	while (at > 0 && strcmp(name, m->labels[at - 1].name) < 0) {
		m->labels[at] = m->labels[at - 1];
		at--;
	}
	pl_remote__label__init(&m->labels[at]);
	m->labels[at].name = (char *)(uintptr_t)name;
	m->labels[at].value = (char *)(uintptr_t)value;
}

static void message_begin(struct message *m, const char *metric, const char *suffix,
	const char *labels, size_t labels_len, int64_t ms)
{
	pl_remote__sample__init(&m->sample);
	pl_remote__time_series__init(&m->series);
	pl_remote__write_request__init(&m->request);
	snprintf(m->name, sizeof(m->name), "%s%s", metric, suffix);
	m->sample.timestamp = ms;
	m->sample_at = &m->sample;
	m->series.samples = &m->sample_at;
	m->series.n_samples = 1;
	m->series.labels = m->label_at;
	m->series_at = &m->series;
	m->request.timeseries = &m->series_at;
	m->request.n_timeseries = 1;
	message_label(m, "__name__", m->name);
	for (size_t i = 0; i < labels_len;) {
		const char *name = labels + i, *value = name + strlen(name) + 1;

		message_label(m, name, value);
		i = (size_t)(value + strlen(value) + 1 - labels);
	}
}

static void message_end(struct message *m, double value, struct pl_buf *out)
{
	char *to;
	size_t len;

	for (size_t i = 0; i < m->series.n_labels; i++)
		m->label_at[i] = &m->labels[i];
	m->sample.value = value;
	len = pl_remote__write_request__get_packed_size(&m->request);
	to = pl_buf_reserve(out, len);
	if (to == NULL)
		return;
	pl_remote__write_request__pack(&m->request, (uint8_t *)to);
	pl_buf_advance(out, len);
}

static void message_exemplar(
	struct remote *r, struct message *m, const struct pl_exposition_exemplar *x, double divisor)
{
	size_t used = 0, at[EXEMPLAR_LABELS_MAX], n = 0;

	pl_buf_reset(&r->texts);
	for (unsigned int i = 0; i < x->n && i < EXEMPLAR_LABELS_MAX; i++) {
		at[i] = r->texts.len;
		pl_label_text(&r->texts, &x->labels[i]);
		pl_buf_chr(&r->texts, '\0');
		if (r->texts.failed)
			return;
		used += strlen(x->labels[i].name) + r->texts.len - at[i] - 1;
		if (used > PL_EXEMPLAR_CHARACTERS_MAX)
			break;
		n++;
	}
	pl_remote__exemplar__init(&m->exemplar);
	for (size_t i = 0; i < n; i++) {
		pl_remote__label__init(&m->extra[i]);
		m->extra[i].name = (char *)(uintptr_t)x->labels[i].name;
		m->extra[i].value = r->texts.data + at[i];
		m->extra_at[i] = &m->extra[i];
	}
	m->exemplar.labels = m->extra_at;
	m->exemplar.n_labels = n;
	m->exemplar.value = (double)x->value / divisor;
	m->exemplar.timestamp = (int64_t)(x->ts_ns / 1000000);
	m->exemplar_at = &m->exemplar;
	m->series.exemplars = &m->exemplar_at;
	m->series.n_exemplars = 1;
}

/* ---- samples of a point ---- */

/* Writes one sample; f NULL: a stale marker. */
static void put_plain(
	const struct series *s, const struct pl_series_field *f, int64_t ms, struct pl_buf *out)
{
	bool counter = s->kind == PL_SERIES_COUNTER || s->kind == PL_SERIES_RUNNING;
	bool real = s->kind == PL_SERIES_NUMBER || s->kind == PL_SERIES_RUNNING;
	const uint64_t bits = STALE;
	struct message m;
	double value;

	message_begin(&m, s->metric, counter ? "_total" : "", s->labels, s->labels_len, ms);
	if (f == NULL)
		memcpy(&value, &bits, sizeof(value));
	else
		value = real ? f->f64 : (double)f->u64;
	message_end(&m, value, out);
}

static void put_bucket(struct remote *r, const struct series *s, double bound, double value,
	const struct pl_exposition_exemplar *x, int64_t ms, struct pl_buf *out)
{
	struct message m;
	struct pl_buf le;
	char text[40];

	/* The same text as on the metrics page, so that both make one series. */
	pl_buf_init(&le);
	pl_exposition_float(&le, bound);
	if (le.failed)
		out->failed = true;
	snprintf(text, sizeof(text), "%s", le.failed ? "" : le.data);
	pl_buf_done(&le);
	message_begin(&m, s->metric, "_bucket", s->labels, s->labels_len, ms);
	message_label(&m, "le", text);
	if (x != NULL)
		message_exemplar(r, &m, x, s->bounds.divisor);
	message_end(&m, value, out);
}

static void put_hist(struct remote *r, const struct series *s, const struct pl_series_field *f,
	int64_t ms, struct pl_buf *out)
{
	const struct pl_exposition_exemplar *x = f != NULL ? f->exemplar : NULL;
	const struct pl_exposition_bounds *b = &s->bounds;
	const uint64_t bits = STALE;
	unsigned int next = b->first;
	struct message m;
	uint64_t count = 0;
	double stale, sum;

	memcpy(&stale, &bits, sizeof(stale));
	for (unsigned int i = 0; i < PL_HIST_BUCKETS; i++) {
		uint64_t upper = pl_hist_upper(i);

		if (f != NULL)
			count += f->hist->buckets[i];
		if (i == next && i <= b->last) {
			bool here = x != NULL && x->value <= upper;

			put_bucket(r, s, (double)upper / b->divisor,
				f != NULL ? (double)count : stale, here ? x : NULL, ms, out);
			x = here ? NULL : x;
			next += b->step;
		}
	}
	put_bucket(r, s, INFINITY, f != NULL ? (double)count : stale, x, ms, out);
	sum = f != NULL ? (double)f->hist->sum / b->divisor : stale;
	message_begin(&m, s->metric, "_sum", s->labels, s->labels_len, ms);
	message_end(&m, sum, out);
	message_begin(&m, s->metric, "_count", s->labels, s->labels_len, ms);
	message_end(&m, f != NULL ? (double)count : stale, out);
}

static bool has_bucket(const struct pl_exposition_bounds *b, unsigned int i)
{
	return i >= b->first && i <= b->last && (i - b->first) % b->step == 0;
}

void pl_remote_take_bounds(struct remote *r, struct series *s, const struct pl_exposition_bounds *b,
	int64_t ms, struct pl_buf *out)
{
	const struct pl_exposition_bounds old = s->bounds;
	const uint64_t bits = STALE;
	double stale;

	memcpy(&stale, &bits, sizeof(stale));
	for (unsigned int i = old.first; old.step > 0 && i <= old.last; i += old.step) {
		if (old.divisor != b->divisor || !has_bucket(b, i))
			put_bucket(
				r, s, (double)pl_hist_upper(i) / old.divisor, stale, NULL, ms, out);
	}
	s->bounds = *b;
}

void pl_remote_put(struct remote *r, const struct series *s, const struct pl_series_field *f,
	int64_t ms, struct pl_buf *out)
{
	if (s->kind == PL_SERIES_HIST)
		put_hist(r, s, f, ms, out);
	else
		put_plain(s, f, ms, out);
}

/* ---- table of series ---- */

static struct series *find(
	struct remote *r, const struct pl_series_field *f, uint64_t hash, uint32_t *ret_head)
{
	*ret_head = (uint32_t)hash & r->mask;
	for (uint32_t i = r->heads[*ret_head]; i != 0; i = r->series[i - 1].next) {
		struct series *s = &r->series[i - 1];

		if (s->hash == hash && s->kind == f->kind && strcmp(s->metric, f->metric) == 0 &&
			s->labels_len == r->identity.len &&
			(s->labels_len == 0 ||
				memcmp(s->labels, r->identity.data, s->labels_len) == 0))
			return s;
	}
	return NULL;
}

int pl_remote_obtain(struct remote *r, const struct pl_series_field *f, struct series **ret)
{
	uint64_t hash = pl_hash(f->metric, strlen(f->metric), r->seed);
	uint32_t head;
	struct series *s;
	char *labels;

	if (r->identity.len > 0)
		hash = pl_hash(r->identity.data, r->identity.len, hash);
	*ret = find(r, f, hash, &head);
	if (*ret != NULL)
		return 0;
	if (r->n == r->max)
		return -ENOSPC;
	labels = malloc(r->identity.len + 1);
	if (labels == NULL)
		return -ENOMEM;
	if (r->identity.len > 0)
		memcpy(labels, r->identity.data, r->identity.len);
	s = &r->series[r->n];
	*s = (struct series){ .hash = hash,
		.last_ms = INT64_MIN,
		.metric = f->metric,
		.labels = labels,
		.labels_len = (uint32_t)r->identity.len,
		.next = r->heads[head],
		.kind = f->kind };
	r->heads[head] = ++r->n;
	*ret = s;
	return 0;
}

/* Returns the link that holds number + 1 of the series in its chain. */
static uint32_t *link_of(struct remote *r, uint32_t number)
{
	uint32_t *link = &r->heads[(uint32_t)r->series[number].hash & r->mask];

	while (*link != number + 1)
		link = &r->series[*link - 1].next;
	return link;
}

static void forget(struct remote *r, uint32_t number)
{
	uint32_t last = r->n - 1;

	free(r->series[number].labels);
	*link_of(r, number) = r->series[number].next;
	if (number != last) {
		*link_of(r, last) = number + 1;
		r->series[number] = r->series[last];
	}
	r->series[last].labels = NULL;
	r->n--;
}

void pl_remote_sweep(struct remote *r, struct pl_buf *out)
{
	for (unsigned int k = 0; k < SWEEP && r->n > 0; k++) {
		struct series *s;

		if (r->sweep >= r->n)
			r->sweep = 0;
		s = &r->series[r->sweep];
		if (s->interval + 1 < r->interval && s->last_ms < r->before_ms) {
			if (s->last_ms != INT64_MIN) /* INT64_MIN: no sample was written */
				pl_remote_put(r, s, NULL, r->before_ms, out);
			forget(r, r->sweep);
		} else {
			r->sweep++;
		}
	}
}
