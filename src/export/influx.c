/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/influx.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "export/ruling.h"
#include "record/path_book.h"
#include "record/put.h"

#define TIME_LEAST_NS (UINT64_C(946684800) * 1000000000u) /* 2000-01-01 */
#define TIME_AHEAD_NS (UINT64_C(24) * 3600 * 1000000000u) /* a day */
#define NUDGE_NS      (UINT64_C(1000000)) /* times closer than this are told apart */

enum {
	MEMBERS_MAX = 48,
	KEY_MAX = 40,
	KEYS_DEFAULT = 10000,
	KEYS_MAX = 1 << 24,
};

/* A field of a record as a tag or a field of a line. */
struct member {
	char key[KEY_MAX]; /* ",node=" */
	uint8_t key_len;
	uint8_t form;
	uint16_t offset;
	uint32_t present;
};

/* A kind of record as a line: tags in the order of their names, then fields. */
struct form {
	struct member tags[MEMBERS_MAX], fields[MEMBERS_MAX];
	unsigned int n_tags, n_fields;
	size_t max; /* bytes of the longest line */
	uint16_t present_at;
};

/* A set of tags that was written: its hash, and the last time a point had it. */
struct key {
	uint64_t hash; /* 0: free */
	uint64_t ts_ns;
};

struct influx {
	struct form event, hop;
	struct key *keys;
	uint32_t mask, n_keys, max_keys;
	_Atomic uint64_t folded;
	_Atomic bool many_lines; /* an entry may be several lines */
};

/* ---- keys ---- */

/* The entry of a set of tags; NULL when it is one too many. */
static struct key *find_key(struct influx *x, const char *text, size_t len, bool always)
{
	uint64_t hash = pl_hash(text, len, 0) | 1;
	uint32_t i = (uint32_t)(hash >> 32) & x->mask;

	for (; x->keys[i].hash != 0; i = (i + 1) & x->mask) {
		if (x->keys[i].hash == hash)
			return &x->keys[i];
	}
	/* Overflow sets are few, by their words; there is always room for those. */
	if (!always && x->n_keys >= x->max_keys)
		return NULL;
	if (x->n_keys >= x->mask - x->mask / 4)
		return NULL;
	x->keys[i].hash = hash;
	x->n_keys++;
	return &x->keys[i];
}

/* The server would keep one of two points with the same tags and time. */
static uint64_t tell_apart(struct key *k, uint64_t ts_ns)
{
	if (ts_ns <= k->ts_ns && k->ts_ns - ts_ns < NUDGE_NS)
		ts_ns = k->ts_ns + 1;
	k->ts_ns = ts_ns;
	return ts_ns;
}

static bool time_good(uint64_t ts_ns, uint64_t real_ns)
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

/* The first n bytes of a key. Copied in fixed pieces: there is room behind, and most keys are short. */
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

/* Every word of our lists is of letters, digits, '_', '-' and '.', which need no escape; a number
 * without a word is shown as it is. */
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
	word = pl_form_word(form, *at);
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
	default:
		word = pl_form_word(m->form, *at);
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

/* One line; `first` is the measurement, `fields` what its fields begin with. */
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

static int format_event(
	void *format, const struct pl_event *event, uint64_t real_ns, struct pl_buf *out)
{
	struct influx *x = format;

	char fields[64 + 2 * PL_PATH_NODES_TEXT] = " count=1i", nodes[PL_PATH_NODES_TEXT];
	struct pl_path_nodes now, old;

	if (!time_good(event->ts_ns, real_ns))
		return -ERANGE;
	if (pl_event_paths(event, &now, &old)) {
		int n = snprintf(fields, sizeof(fields), " count=1i,path_nodes=\"%s\"",
			pl_path_nodes_text(nodes, &now) > 0 ? nodes : "");

		(void)pl_path_nodes_text(nodes, &old);
		snprintf(fields + n, sizeof(fields) - (size_t)n, ",old_path_nodes=\"%s\"", nodes);
	}
	return put_line(x, &x->event, event, "pathline_event", fields, event->ts_ns, out);
}

static int format_path(void *format, const struct pl_path *path, const struct pl_hop *hops,
	uint64_t real_ns, struct pl_buf *out)
{
	struct influx *x = format;
	char index[] = " index=000i";
	int r = path->hop_count > 0 ? 0 : -ENODATA;

	if (!time_good(path->ts_ns, real_ns))
		return -ERANGE;
	atomic_store_explicit(&x->many_lines, true, memory_order_relaxed);
	for (unsigned int i = 0; r == 0 && i < path->hop_count; i++) {
		snprintf(index, sizeof(index), " index=%ui", i & 0xffu);
		r = put_line(x, &x->hop, &hops[i], "pathline_hop", index, path->ts_ns, out);
	}
	return r;
}

/* ---- points as lines ---- */

/* Names of measurements, keys of tags and fields, values of tags: comma, equals sign and space are escaped;
 * what cannot be escaped (a line's end, other control characters) becomes "?". A backslash stands for itself, but at
 * the end it would take the next character with it. */
static void add_escaped(struct pl_buf *out, const char *text)
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
			continue; /* an empty tag is no tag */
		pl_buf_chr(out, ',');
		add_escaped(out, point->labels[i].name);
		pl_buf_chr(out, '=');
		add_escaped(out, fold ? "other" : point->labels[i].value);
	}
}

static bool add_field(struct pl_buf *out, const struct pl_series_field *f, char before)
{
	bool number = f->kind == PL_SERIES_NUMBER || f->kind == PL_SERIES_RUNNING;

	if (f->name == NULL || f->kind == PL_SERIES_HIST || (number && !isfinite(f->f64)))
		return false;
	pl_buf_chr(out, before);
	add_escaped(out, f->name);
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

static int format_point(
	void *format, const struct pl_series_point *point, uint64_t real_ns, struct pl_buf *out)
{
	struct influx *x = format;
	size_t begin = out->len, tags;
	struct key *k;
	bool any = false;

	if (!time_good(point->ts_ns, real_ns))
		return -ERANGE;
	pl_buf_str(out, "pathline_");
	add_escaped(out, point->name);
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

/* ---- answers ---- */

/* The string that is the value of a member, wherever it stands; false when there is none. */
static bool json_member(const char *body, const char *name, char *dst, size_t cap)
{
	const char *at = strstr(body, name);
	size_t n = 0;

	if (at == NULL)
		return false;
	at += strlen(name);
	at += strspn(at, " \t:");
	if (*at++ != '"')
		return false;
	for (; *at != '\0' && *at != '"' && n < cap - 1; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
		dst[n++] = *at;
	}
	dst[n] = '\0';
	return n > 0;
}

/* "… dropped=12" */
static uint64_t dropped_of(const char *words)
{
	const char *at = strstr(words, "dropped=");

	return at != NULL ? strtoull(at + 8, NULL, 10) : 0;
}

static void format_answer(
	void *format, const struct pl_http_answer *answer, uint32_t n, struct pl_ruling *ret)
{
	/* What an operator has to mend, in the words of versions 1 and 2. */
	static const char *const to_mend[] = { "database is required", "database not found",
		"retention policy not found", "bucket", "organization" };
	const struct influx *x = format;
	char error[PL_ANSWER_BODY_MAX];

	pl_ruling_by_status(answer, ret);
	if (ret->kind == PL_RULING_DELIVERED && answer->status != 204 && answer->len > 0) {
		/* A portal or a proxy says "fine" to everything; this one says nothing when it stored. */
		ret->kind = PL_RULING_RETRY;
		return;
	}
	if (!json_member(answer->body, "\"error\"", error, sizeof(error)) &&
		!json_member(answer->body, "\"message\"", error, sizeof(error)))
		return;
	pl_words_clean(ret->words, sizeof(ret->words), error, strlen(error));
	if (ret->kind == PL_RULING_DOUBTFUL && strcmp(error, "timeout") == 0)
		ret->kind = PL_RULING_RETRY;
	if (ret->kind != PL_RULING_REFUSED)
		return;
	if (strncmp(error, "partial write", 13) == 0) {
		ret->whole = dropped_of(error) >= n &&
			     !atomic_load_explicit(&x->many_lines, memory_order_relaxed);
		return;
	}
	for (size_t i = 0; i < sizeof(to_mend) / sizeof(to_mend[0]); i++) {
		if (strncmp(error, to_mend[i], strlen(to_mend[i])) == 0)
			ret->kind = PL_RULING_HOLD;
	}
}

static uint64_t format_folded(const void *format)
{
	const struct influx *x = format;

	return atomic_load_explicit(&x->folded, memory_order_relaxed);
}

/* ---- making ---- */

static void set_key(struct member *m, const char *name)
{
	size_t n = strlen(name);

	assert(n + 3 <= KEY_MAX);
	m->key[0] = ',';
	for (size_t i = 0; i < n; i++)
		m->key[1 + i] = name[i] == '.' ? '_' : name[i];
	m->key[n + 1] = '=';
	m->key_len = (uint8_t)(n + 2);
}

static bool named(const char *name, const char *const *list)
{
	while (*list != NULL && strcmp(name, *list) != 0)
		list++;
	return *list != NULL;
}

static bool writable(unsigned int form)
{
	return form != PL_FORM_FLAGS && form != PL_FORM_PRESENT;
}

static int compare_members(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

/* `tags` names those fields of the record that are tags; `left_out` those that do not belong into a line;
 * numbers_only leaves out texts. */
static void make_form(struct form *f, enum pl_record_kind kind, const char *const *tags,
	const char *const *left_out, bool numbers_only, uint16_t present_at)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	f->present_at = present_at;
	f->max = 128; /* measurement, first field, time */
	for (size_t i = 0; i < n; i++) {
		const struct pl_field *d = &fields[i];
		bool tag = named(d->name, tags);
		struct member *m;

		if (d->name[0] == '\0' || !writable(d->form) || named(d->name, left_out) ||
			(numbers_only && !tag && d->form > PL_FORM_S64))
			continue;
		assert(f->n_tags < MEMBERS_MAX && f->n_fields < MEMBERS_MAX);
		m = tag ? &f->tags[f->n_tags++] : &f->fields[f->n_fields++];
		*m = (struct member){ .form = d->form, .offset = d->offset, .present = d->present };
		set_key(m, strcmp(d->name, "egress_port") == 0 ? "port" : d->name);
		f->max += m->key_len + 8u + PUT_VALUE_MAX;
	}
	qsort(f->tags, f->n_tags, sizeof(f->tags[0]), compare_members);
}

static void format_free(void *format)
{
	struct influx *x = format;

	if (x == NULL)
		return;
	free(x->keys);
	free(x);
}

static uint32_t slots_for(uint32_t max_keys)
{
	uint32_t n = 1024;

	while (n < 2 * max_keys)
		n *= 2;
	return n;
}

uint64_t pl_influx_memory(uint32_t max_keys)
{
	return sizeof(struct influx) +
	       slots_for(max_keys != 0 ? max_keys : KEYS_DEFAULT) * sizeof(struct key);
}

int pl_influx_format_new(void **ret, uint32_t max_keys)
{
	static const char *const event_tags[] = { "event", "phase", "node", "port", "queue",
		"buffer", "ingress_port", "peer.node", "peer.port", "exporter", "drop_reason",
		"role", "quantity", NULL };
	static const char *const hop_tags[] = { "node", "egress_port", "queue", NULL };
	static const char *const event_not[] = { "ts_ns", NULL };
	static const char *const hop_not[] = { "ts_ns", "index", NULL };
	struct influx *x;

	if (max_keys == 0)
		max_keys = KEYS_DEFAULT;
	if (max_keys > KEYS_MAX)
		return -EINVAL;
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return -ENOMEM;
	x->max_keys = max_keys;
	x->mask = slots_for(max_keys) - 1;
	x->keys = calloc((size_t)x->mask + 1, sizeof(*x->keys));
	if (x->keys == NULL) {
		free(x);
		return -ENOMEM;
	}
	make_form(&x->event, PL_KIND_EVENT, event_tags, event_not, false,
		offsetof(struct pl_event, present));
	make_form(&x->hop, PL_KIND_HOP, hop_tags, hop_not, true, offsetof(struct pl_hop, present));
	*ret = x;
	return 0;
}

const struct pl_format_ops pl_influx_format = {
	.name = "influx",
	.path = format_path,
	.event = format_event,
	.point = format_point,
	.answer = format_answer,
	.folded = format_folded,
	.free = format_free,
};

/* What is not unreserved (RFC 3986, 2.3) goes as %XX. */
static void add_parameter(struct pl_buf *url, const char *name, const char *value)
{
	static const char digits[] = "0123456789ABCDEF";

	if (value == NULL)
		return;
	pl_buf_str(url, name);
	for (; *value != '\0'; value++) {
		unsigned char c = (unsigned char)*value;

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
			strchr("-._~", c) != NULL) {
			pl_buf_chr(url, (char)c);
		} else {
			pl_buf_chr(url, '%');
			pl_buf_chr(url, digits[c >> 4]);
			pl_buf_chr(url, digits[c & 15]);
		}
	}
}

int pl_influx_url(char dst[PL_INFLUX_URL_MAX], const struct pl_influx_options *o)
{
	size_t len = strlen(o->url);
	struct pl_buf url;
	int r;

	pl_buf_init(&url);
	url.limit = PL_INFLUX_URL_MAX - 1;
	while (len > 0 && o->url[len - 1] == '/')
		len--;
	pl_buf_add(&url, o->url, len);
	pl_buf_str(&url, o->v2 ? "/api/v2/write?precision=ns" : "/write?precision=ns");
	add_parameter(&url, "&db=", o->v2 ? NULL : o->database);
	add_parameter(&url, "&rp=", o->v2 ? NULL : o->retention_policy);
	add_parameter(&url, "&org=", o->v2 ? o->org : NULL);
	add_parameter(&url, "&bucket=", o->v2 ? o->bucket : NULL);
	r = url.failed ? -ENAMETOOLONG : 0;
	if (r == 0)
		memcpy(dst, url.data, url.len + 1);
	pl_buf_done(&url);
	return r;
}

int pl_influx_open(struct pl_export **ret, const struct pl_influx_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag)
{
	static const char *const headers[] = { "Content-Type: text/plain; charset=utf-8", NULL };
	struct pl_sender_options s = *sender;
	char url[PL_INFLUX_URL_MAX];
	void *format;
	int r = pl_influx_url(url, options);

	if (r < 0) {
		pl_diag_set(diag, "the address of the server is too long");
		return r;
	}
	r = pl_influx_format_new(&format, options->max_keys);
	if (r < 0)
		return r;
	s.url = url;
	s.headers = headers;
	s.token_scheme = "Token";
	return pl_sender_open(ret, &s, &pl_influx_format, format, now_ns, diag);
}
