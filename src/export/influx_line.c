/* SPDX-License-Identifier: BSD-2-Clause */
/* InfluxDB line protocol: records and points as lines. */
#include "export/influx_state.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "record/community_id.h"
#include "record/path_book.h"

#define TIME_LEAST_NS (UINT64_C(946684800) * 1000000000u) /* 2000-01-01 in ns since the epoch */
#define TIME_AHEAD_NS (UINT64_C(24) * 3600 * 1000000000u) /* a day */
#define NUDGE_NS      (UINT64_C(1000000)) /* equal times within this span are moved apart */

/* ---- sets of tags ---- */

/* Returns the entry of a set of tags; NULL: there are max_keys already. */
static struct key *find_key(struct influx *x, const char *text, size_t len, bool always)
{
	uint64_t hash = pl_hash(text, len, 0) | 1;
	uint32_t i = (uint32_t)(hash >> 32) & x->mask;

	for (; x->keys[i].hash != 0; i = (i + 1) & x->mask) {
		if (x->keys[i].hash == hash)
			return &x->keys[i];
	}
	/* Overflow sets are few, made of fixed words; there is always room for them. */
	if (!always && x->n_keys >= x->max_keys)
		return NULL;
	if (x->n_keys >= x->mask - x->mask / 4)
		return NULL;
	x->keys[i].hash = hash;
	x->n_keys++;
	return &x->keys[i];
}

/* Returns a time not used yet with these tags: the server keeps only one point for each time. */
static uint64_t tell_apart(struct key *k, uint64_t ts_ns)
{
	if (ts_ns <= k->ts_ns && k->ts_ns - ts_ns < NUDGE_NS)
		ts_ns = k->ts_ns + 1;
	k->ts_ns = ts_ns;
	return ts_ns;
}

bool pl_influx_place(
	void *format, const char *tags, size_t len, bool passing, uint64_t ts_ns, uint64_t *ret_ns)
{
	struct key *k = find_key(format, tags, len, false);
	uint64_t before;

	if (k == NULL)
		return false;
	before = k->ts_ns;
	*ret_ns = tell_apart(k, ts_ns);
	if (passing)
		k->ts_ns = before;
	return true;
}

bool pl_influx_time_good(uint64_t ts_ns, uint64_t real_ns)
{
	return ts_ns >= TIME_LEAST_NS && ts_ns <= real_ns + TIME_AHEAD_NS && ts_ns <= INT64_MAX;
}

/* ---- values ---- */

static uint64_t number_at(const uint8_t *at, unsigned int form)
{
	uint64_t v = 0;

	switch (form) {
	case PL_FORM_U64:
	case PL_FORM_S64:
	case PL_FORM_HEX64:
		memcpy(&v, at, 8);
		break;
	case PL_FORM_U32:
		memcpy(&v, at, 4);
		break;
	case PL_FORM_U16:
		memcpy(&v, at, 2);
		break;
	default:
		v = *at;
	}
	return v;
}

/* Copies the first n bytes of a key in pieces of fixed size: the buffer has room behind it, and
 * most keys are short. */
static char *put_key(char *p, const struct member *m, size_t n)
{
	memcpy(p, m->key, 16);
	if (n > 16)
		memcpy(p + 16, m->key + 16, KEY_MAX - 16);
	return p + n;
}

static char *put_text(char *p, const char *text)
{
	*p++ = '"';
	p = put_str(p, text);
	*p++ = '"';
	return p;
}

static const char *word_at(const uint8_t *at, unsigned int form)
{
	uint16_t reason;

	if (form != PL_FORM_DROP_REASON)
		return pl_form_word(form, *at);
	memcpy(&reason, at, sizeof(reason));
	return pl_form_word(form, reason);
}

/* Words of the fixed lists have only letters, digits, '_', '-' and '.', which need no escape; a
 * number without a word is written as a number. */
static char *put_tag(char *p, const uint8_t *at, unsigned int form)
{
	const char *word;
	struct pl_addr addr;

	if (form <= PL_FORM_U64)
		return put_u64(p, number_at(at, form));
	if (form == PL_FORM_ADDR) {
		memcpy(&addr, at, sizeof(addr));
		return put_addr(p, &addr);
	}
	if (form == PL_FORM_TEXT)
		return put_plain(p, (const char *)at, PL_TEXT_TOLD);
	word = word_at(at, form);
	return word != NULL ? put_str(p, word) : put_u64(p, number_at(at, form));
}

static char *put_field(char *p, const struct member *m, const uint8_t *at)
{
	const char *word;
	struct pl_addr addr;
	uint64_t v;

	switch (m->form) {
	case PL_FORM_U8:
	case PL_FORM_U16:
	case PL_FORM_U32:
	case PL_FORM_U64:
		v = number_at(at, m->form);
		if (v > INT64_MAX) {
			p = put_key(p, m, m->key_len - 1u);
			p = put_str(p, "_u64=\"");
			p = put_u64(p, v);
			*p++ = '"';
			return p;
		}
		p = put_key(p, m, m->key_len);
		p = put_u64(p, v);
		*p++ = 'i';
		return p;
	case PL_FORM_S64:
		p = put_key(p, m, m->key_len);
		p = put_i64(p, (int64_t)number_at(at, m->form));
		*p++ = 'i';
		return p;
	case PL_FORM_HEX64:
		p = put_key(p, m, m->key_len);
		*p++ = '"';
		p = put_hex64(p, number_at(at, m->form));
		*p++ = '"';
		return p;
	case PL_FORM_ADDR:
		memcpy(&addr, at, sizeof(addr));
		p = put_key(p, m, m->key_len);
		*p++ = '"';
		p = put_addr(p, &addr);
		*p++ = '"';
		return p;
	case PL_FORM_BYTES:
		p = put_key(p, m, m->key_len);
		*p++ = '"';
		p = put_told(p, (const void *)at);
		*p++ = '"';
		return p;
	case PL_FORM_TEXT:
		p = put_key(p, m, m->key_len);
		*p++ = '"';
		p = put_plain(p, (const char *)at, PL_TEXT_TOLD);
		*p++ = '"';
		return p;
	default:
		word = word_at(at, m->form);
		if (word == NULL)
			return p;
		p = put_key(p, m, m->key_len);
		return put_text(p, word);
	}
}

/* ---- records as lines ---- */

static bool is_word(unsigned int form)
{
	return form > PL_FORM_HEX64;
}

static char *put_tags(
	char *p, const struct form *f, const uint8_t *record, uint32_t present, bool fold)
{
	for (unsigned int i = 0; i < f->n_tags; i++) {
		const struct member *m = &f->tags[i];

		if (m->present != 0 && (present & m->present) == 0)
			continue;
		p = put_key(p, m, m->key_len);
		p = fold && !is_word(m->form) ? put_str(p, "other")
					      : put_tag(p, record + m->offset, m->form);
	}
	return p;
}

/* Appends one line; `name` is its measurement, `first_field` precedes the other fields. */
static int put_line(struct influx *x, const struct form *f, const void *record, const char *name,
	const char *first_field, uint64_t ts_ns, struct pl_buf *out)
{
	const uint8_t *bytes = record;
	const size_t max = f->max + strlen(first_field);
	char *begin = pl_buf_reserve(out, max), *tags, *p;
	struct key *k;
	uint32_t present;

	if (begin == NULL)
		return -E2BIG;
	memcpy(&present, bytes + f->present_at, sizeof(present));
	tags = put_str(begin, name);
	p = put_tags(tags, f, bytes, present, false);
	k = find_key(x, begin, (size_t)(p - begin), false);
	if (k == NULL) {
		p = put_tags(tags, f, bytes, present, true);
		k = find_key(x, begin, (size_t)(p - begin), true);
		atomic_fetch_add_explicit(&x->folded, 1, memory_order_relaxed);
		if (k == NULL)
			return -ENOSPC;
	}
	p = put_str(p, first_field);
	for (unsigned int i = 0; i < f->n_fields; i++) {
		const struct member *m = &f->fields[i];

		if (m->present == 0 || (present & m->present) != 0)
			p = put_field(p, m, bytes + m->offset);
	}
	*p++ = ' ';
	p = put_u64(p, tell_apart(k, ts_ns));
	*p++ = '\n';
	assert((size_t)(p - begin) <= max);
	pl_buf_advance(out, (size_t)(p - begin));
	return 0;
}

int pl_influx_format_event(
	void *format, const struct pl_event *event, uint64_t real_ns, struct pl_buf *out)
{
	struct influx *x = format;

	char fields[64 + 2 * PL_PATH_NODES_TEXT] = " count=1i", nodes[PL_PATH_NODES_TEXT];
	struct pl_path_nodes now, old;

	if (!pl_influx_time_good(event->ts_ns, real_ns))
		return -ERANGE;
	if (pl_event_paths(event, &now, &old)) {
		int n = snprintf(fields, sizeof(fields), " count=1i,path_nodes=\"%s\"",
			pl_path_nodes_text(nodes, &now) > 0 ? nodes : "");

		(void)pl_path_nodes_text(nodes, &old);
		snprintf(fields + n, sizeof(fields) - (size_t)n, ",old_path_nodes=\"%s\"", nodes);
	}
	return put_line(x, &x->event, event, "pathline_event", fields, event->ts_ns, out);
}

int pl_influx_format_value(
	void *format, const struct pl_value *value, uint64_t real_ns, struct pl_buf *out)
{
	struct influx *x = format;

	if (!pl_influx_time_good(value->ts_ns, real_ns))
		return -ERANGE;
	return put_line(x, &x->value, value, "pathline_value", " count=1i", value->ts_ns, out);
}

int pl_influx_format_flat(void *format, enum pl_flat_kind kind, const void *record,
	uint64_t real_ns, struct pl_buf *out)
{
	static const char *const names[PL_FLAT_MAX] = {
		[PL_FLAT_PKT64] = "pathline_packet",
		[PL_FLAT_PKT96] = "pathline_packet",
		[PL_FLAT_DNS64] = "pathline_dns",
		[PL_FLAT_FLOW128] = "pathline_flow",
		[PL_FLAT_FLOW288] = "pathline_flow",
		[PL_FLAT_MARK128] = "pathline_mark",
		[PL_FLAT_SEG192] = "pathline_segment_block",
		[PL_FLAT_DROP168] = "pathline_drop",
	};
	struct influx *x = format;
	const uint64_t ts_ns = pl_flat_time(kind, record);
	char fields[64 + PL_COMMUNITY_ID_MAX] = " count=1i", id[PL_COMMUNITY_ID_MAX];

	if (names[kind] == NULL)
		return -ENODATA;
	if (!pl_influx_time_good(ts_ns, real_ns))
		return -ERANGE;
	if (x->kind != kind)
		pl_influx_make_flat(x, kind);
	if (x->community_id && pl_community_id(id, kind, record))
		snprintf(fields, sizeof(fields), " count=1i,community_id=\"%s\"", id);
	return put_line(x, &x->flat, record, names[kind], fields, ts_ns, out);
}

int pl_influx_format_path(void *format, const struct pl_path *path, const struct pl_hop *hops,
	uint64_t real_ns, struct pl_buf *out)
{
	struct influx *x = format;
	char index[] = " index=000i";
	int r = path->hop_count > 0 ? 0 : -ENODATA;

	if (!pl_influx_time_good(path->ts_ns, real_ns))
		return -ERANGE;
	atomic_store_explicit(&x->many_lines, true, memory_order_relaxed);
	for (unsigned int i = 0; r == 0 && i < path->hop_count; i++) {
		snprintf(index, sizeof(index), " index=%ui", i & 0xffu);
		r = put_line(x, &x->hop, &hops[i], "pathline_hop", index, path->ts_ns, out);
	}
	return r;
}

/* ---- points as lines ---- */

/* Appends a measurement, a key of a tag or field, or a tag's value: comma, equals sign and space
 * are escaped; a character that cannot be escaped (newline, other control characters) becomes "?".
 * A backslash stands for itself, but at the end it would escape the next character. */
void pl_influx_escape(struct pl_buf *out, const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == ',' || c == '=' || c == ' ')
			pl_buf_chr(out, '\\');
		if ((unsigned char)c < 0x20 || c == 0x7f || (c == '\\' && i == len - 1))
			c = '?';
		pl_buf_chr(out, c);
	}
}

static void add_labels(struct pl_buf *out, const struct pl_series_point *point, bool fold)
{
	for (uint32_t i = 0; i < point->n_labels; i++) {
		if (point->labels[i].value[0] == '\0')
			continue; /* an empty value is not allowed for a tag */
		pl_buf_chr(out, ',');
		pl_influx_escape(out, point->labels[i].name);
		pl_buf_chr(out, '=');
		pl_influx_escape(out, fold ? "other" : point->labels[i].value);
	}
}

static bool add_field(struct pl_buf *out, const struct pl_series_field *f, char before)
{
	bool number = f->kind == PL_SERIES_NUMBER || f->kind == PL_SERIES_RUNNING;

	if (f->name == NULL || f->kind == PL_SERIES_HIST || (number && !isfinite(f->f64)))
		return false;
	pl_buf_chr(out, before);
	pl_influx_escape(out, f->name);
	if (number) {
		pl_buf_chr(out, '=');
		pl_buf_double(out, f->f64);
	} else if (f->u64 <= INT64_MAX) {
		pl_buf_chr(out, '=');
		pl_buf_u64(out, f->u64);
		pl_buf_chr(out, 'i');
	} else {
		pl_buf_str(out, "_u64=\"");
		pl_buf_u64(out, f->u64);
		pl_buf_chr(out, '"');
	}
	return true;
}

int pl_influx_format_point(
	void *format, const struct pl_series_point *point, uint64_t real_ns, struct pl_buf *out)
{
	struct influx *x = format;
	size_t begin = out->len, tags;
	struct key *k;
	bool any = false;

	if (!pl_influx_time_good(point->ts_ns, real_ns))
		return -ERANGE;
	pl_buf_str(out, "pathline_");
	pl_influx_escape(out, point->name);
	tags = out->len;
	add_labels(out, point, false);
	if (out->failed)
		return -E2BIG;
	k = find_key(x, out->data + begin, out->len - begin, false);
	if (k == NULL) {
		out->len = tags;
		add_labels(out, point, true);
		if (out->failed)
			return -E2BIG;
		k = find_key(x, out->data + begin, out->len - begin, true);
		atomic_fetch_add_explicit(&x->folded, 1, memory_order_relaxed);
		if (k == NULL)
			return -ENOSPC;
	}
	for (uint32_t i = 0; i < point->n_fields; i++)
		any = add_field(out, &point->fields[i], any ? ',' : ' ') || any;
	if (!any)
		return -ENODATA;
	pl_buf_chr(out, ' ');
	pl_buf_u64(out, tell_apart(k, point->ts_ns));
	pl_buf_chr(out, '\n');
	return 0;
}
