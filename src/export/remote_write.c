/* SPDX-License-Identifier: BSD-2-Clause */
/* The format of remote write outputs: checks points, makes requests, rules on answers. */
#include "export/remote_write.h"

#include <errno.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "export/remote.pb-c.h"
#include "export/remote_state.h"

/* ---- operations of the format ---- */

static int check_fields(struct remote *r, const struct pl_series_point *p, int64_t ms)
{
	bool any = false;

	for (uint32_t i = 0; i < p->n_fields; i++) {
		const struct pl_series_field *f = &p->fields[i];
		struct series *s;
		int e;

		if (f->metric == NULL)
			continue;
		if (!pl_remote_name_good(f->metric, strlen(f->metric), true))
			return -EINVAL;
		e = pl_remote_obtain(r, f, &s);
		if (e < 0)
			return e;
		if (s->last_ms >= ms)
			return -ERANGE;
		any = true;
	}
	return any ? 0 : -ENODATA;
}

static int format_point(
	void *format, const struct pl_series_point *p, uint64_t real_ns, struct pl_buf *out)
{
	struct remote *r = format;
	int64_t ms = (int64_t)(p->ts_ns / 1000000);
	int e;

	if (p->ts_ns > real_ns + PL_REMOTE_FUTURE_NS || p->ts_ns + PL_REMOTE_PAST_NS < real_ns)
		return -ERANGE;
	e = pl_remote_identify(r, p);
	if (e == 0)
		e = check_fields(r, p, ms);
	if (e < 0)
		return e;
	if (ms > r->interval_ms) {
		r->interval++;
		r->before_ms = r->interval_ms;
		r->interval_ms = ms;
	}
	for (uint32_t i = 0; i < p->n_fields; i++) {
		const struct pl_series_field *f = &p->fields[i];
		struct series *s;

		if (f->metric == NULL || pl_remote_obtain(r, f, &s) < 0)
			continue;
		if (f->kind == PL_SERIES_HIST)
			pl_remote_take_bounds(r, s, f->bounds, ms, out);
		s->last_ms = ms;
		s->interval = r->interval;
		pl_remote_put(r, s, f, ms, out);
	}
	pl_remote_sweep(r, out);
	return 0;
}

/* Returns the time of a chunk's first sample; 0 when it cannot be read. */
static int64_t chunk_ms(const char *text, uint32_t len)
{
	PlRemote__WriteRequest *w =
		pl_remote__write_request__unpack(NULL, len, (const uint8_t *)text);
	int64_t ms = 0;

	if (w == NULL)
		return 0;
	if (w->n_timeseries > 0 && w->timeseries[0]->n_samples > 0)
		ms = w->timeseries[0]->samples[0]->timestamp;
	pl_remote__write_request__free_unpacked(w, NULL);
	return ms;
}

static int format_body(
	void *format, const struct pl_chunks *c, uint32_t first, uint32_t n, struct pl_buf *out)
{
	struct remote *r = format;
	uint32_t begin = pl_chunk_begin(c, first), end = c->ends[first + n - 1];
	uint32_t last = pl_chunk_begin(c, first + n - 1);
	size_t len = snappy_max_compressed_length(end - begin);
	char *to = pl_buf_reserve(out, len);

	if (to == NULL)
		return -ENOMEM;
	if (snappy_compress(c->text + begin, end - begin, to, &len) != SNAPPY_OK)
		return -EINVAL;
	pl_buf_advance(out, len);
	/* Chunks are in order of their times. */
	r->body_oldest = chunk_ms(c->text + begin, c->ends[first] - begin);
	r->body_newest = chunk_ms(c->text + last, end - last);
	return 0;
}

static void format_answer(
	void *format, const struct pl_http_answer *answer, uint32_t n, struct pl_ruling *ret)
{
	const struct remote *r = format;

	(void)n;
	pl_ruling_by_status(answer, ret);
	/* Prometheus checks bounds by time alone: samples of one time are all refused alike. */
	if (ret->kind == PL_RULING_REFUSED && r->body_oldest == r->body_newest &&
		(strcasestr(answer->body, "out of bounds") != NULL ||
			strcasestr(answer->body, "too old") != NULL))
		ret->whole = true;
}

static void format_free(void *format)
{
	struct remote *r = format;

	if (r == NULL)
		return;
	for (uint32_t i = 0; i < r->n; i++)
		free(r->series[i].labels);
	for (uint32_t i = 0; i < r->n_base; i++)
		free(r->base_text[i]);
	free(r->series);
	free(r->heads);
	pl_buf_done(&r->identity);
	pl_buf_done(&r->texts);
	free(r);
}

const struct pl_format_ops pl_remote_format = {
	.name = "remote_write",
	.point = format_point,
	.body = format_body,
	.answer = format_answer,
	.free = format_free,
};

int pl_remote_label_check(const char *text, struct pl_diag *diag)
{
	const char *is = strchr(text, '=');
	size_t len = is != NULL ? (size_t)(is - text) : 0;

	if (is == NULL || !pl_remote_name_good(text, len, false) ||
		(len == 2 && memcmp(text, "le", 2) == 0))
		return pl_diag_fail(diag, -EINVAL,
			"\"%s\" is not NAME=VALUE with a name of letters, digits and _, not le, not "
			"beginning with __",
			text);
	if (is[1] == '\0' || strlen(is + 1) > VALUE_MAX || !pl_utf8_valid(is + 1, strlen(is + 1)))
		return pl_diag_fail(diag, -EINVAL,
			"the value of label \"%.*s\" is empty, too long or not UTF-8", (int)len,
			text);
	return 0;
}

static int set_base(struct remote *r, const struct pl_remote_options *o, struct pl_diag *diag)
{
	if (o->n_labels > PL_REMOTE_LABELS_MAX)
		return pl_diag_fail(diag, -EINVAL, "more than %d labels", PL_REMOTE_LABELS_MAX);
	for (uint32_t i = 0; i < o->n_labels; i++) {
		int e = pl_remote_label_check(o->labels[i], diag);
		char *is;

		if (e < 0)
			return e;
		r->base_text[i] = strdup(o->labels[i]);
		if (r->base_text[i] == NULL)
			return -ENOMEM;
		r->n_base++;
		is = strchr(r->base_text[i], '=');
		if (is == NULL)
			return -EINVAL;
		*is = '\0';
		r->base[i] = (struct pair){ r->base_text[i], is + 1 };
		for (uint32_t k = 0; k < i; k++) {
			if (strcmp(r->base[k].name, r->base[i].name) == 0)
				return pl_diag_fail(
					diag, -EINVAL, "duplicate label \"%s\"", r->base[i].name);
		}
	}
	return 0;
}

static uint32_t capacity(uint32_t max_series)
{
	return max_series == 0 ? SERIES_DEFAULT : max_series;
}

static uint32_t head_count(uint32_t max)
{
	uint32_t n = 64;

	while (n < max)
		n *= 2;
	return n;
}

/* The labels of a series count as 128 bytes. */
uint64_t pl_remote_memory(uint32_t max_series)
{
	uint32_t max = capacity(max_series);

	return sizeof(struct remote) + (uint64_t)max * (sizeof(struct series) + 128) +
	       head_count(max) * sizeof(uint32_t);
}

int pl_remote_format_new(void **ret, const struct pl_remote_options *o, struct pl_diag *diag)
{
	struct remote *r;
	int e;

	if (o->max_series > SERIES_LIMIT)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	pl_buf_init(&r->identity);
	pl_buf_init(&r->texts);
	r->max = capacity(o->max_series);
	r->mask = head_count(r->max) - 1;
	r->seed = pl_hash_seed();
	r->series = calloc(r->max, sizeof(*r->series));
	r->heads = calloc((size_t)r->mask + 1, sizeof(*r->heads));
	e = r->series == NULL || r->heads == NULL ? -ENOMEM : set_base(r, o, diag);
	if (e < 0) {
		format_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

int pl_remote_open(struct pl_export **ret, const struct pl_remote_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag)
{
	static const char *const headers[] = { "Content-Type: application/x-protobuf",
		"Content-Encoding: snappy", "X-Prometheus-Remote-Write-Version: 0.1.0", NULL };
	struct pl_sender_options s = *sender;
	void *format;
	int e = pl_remote_format_new(&format, options, diag);

	if (e < 0)
		return e;
	s.url = options->url;
	s.headers = headers;
	s.gzip = false; /* the protocol compresses with snappy */
	s.in_order = true;
	return pl_sender_open(ret, &s, &pl_remote_format, format, now_ns, diag);
}
