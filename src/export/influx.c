/* SPDX-License-Identifier: BSD-2-Clause */
/* The format of InfluxDB outputs: rulings on answers of the server, sets of tags, the URL. */
#include "export/influx.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "export/influx_state.h"
#include "export/ruling.h"

/* ---- answers ---- */

/* Copies the text value of a member at any depth; returns false when there is none. */
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

/* Returns the number in "… dropped=12". */
static uint64_t dropped_of(const char *words)
{
	const char *at = strstr(words, "dropped=");

	return at != NULL ? strtoull(at + 8, NULL, 10) : 0;
}

static void format_answer(
	void *format, const struct pl_http_answer *answer, uint32_t n, struct pl_ruling *ret)
{
	/* Error texts of versions 1 and 2 for faults that an operator must mend. */
	static const char *const to_mend[] = { "database is required", "database not found",
		"retention policy not found", "bucket", "organization" };
	const struct influx *x = format;
	char error[PL_ANSWER_BODY_MAX];

	pl_ruling_by_status(answer, ret);
	if (ret->kind == PL_RULING_DELIVERED && answer->status != 204 && answer->len > 0) {
		/* A portal or proxy may answer 200 with a page; the server's answer to a successful
		 * write has no body. */
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

/* ---- forms of lines ---- */

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

/* Makes the form of a kind of record. `tags` names the fields that are tags, `left_out` those that
 * are not written; numbers_only leaves out texts. */
static void make_form(struct form *f, const struct pl_field *fields, size_t n,
	const char *const *tags, const char *const *left_out, bool numbers_only,
	uint32_t present_at)
{
	f->n_tags = f->n_fields = 0;
	f->present_at = present_at;
	f->max = 128; /* starts with the measurement, first field and time */
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
		f->max +=
			m->key_len + 8u + (d->form >= PL_FORM_TEXT ? PUT_LONG_MAX : PUT_VALUE_MAX);
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

int pl_influx_format_new(void **ret, uint32_t max_keys, bool community_id)
{
	static const char *const event_tags[] = { "event", "phase", "node", "port", "queue",
		"buffer", "ingress_port", "peer.node", "peer.port", "exporter", "drop_reason",
		"role", "quantity", "region", NULL };
	static const char *const hop_tags[] = { "node", "egress_port", "queue", NULL };
	static const char *const value_tags[] = { "region", "primitive", "name", NULL };
	static const char *const event_not[] = { "ts_ns", NULL };
	static const char *const hop_not[] = { "ts_ns", "index", NULL };
	const struct pl_field *fields;
	struct influx *x;
	size_t n;

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
	x->community_id = community_id;
	x->kind = PL_FLAT_MAX;
	fields = pl_fields(PL_KIND_EVENT, &n);
	make_form(&x->event, fields, n, event_tags, event_not, false,
		offsetof(struct pl_event, present));
	fields = pl_fields(PL_KIND_HOP, &n);
	make_form(&x->hop, fields, n, hop_tags, hop_not, true, offsetof(struct pl_hop, present));
	fields = pl_fields(PL_KIND_VALUE, &n);
	make_form(&x->value, fields, n, value_tags, event_not, false,
		offsetof(struct pl_value, present));
	*ret = x;
	return 0;
}

void pl_influx_make_flat(struct influx *x, enum pl_flat_kind kind)
{
	/* Tags have values from fixed lists or identify a device; of a flow only its protocol. */
	static const char *const tags[] = { "proto", "end_reason", "role", "role_by", "reason",
		"interface", "method", "segment", "from_point", "to_point", "point", NULL };
	const struct pl_flat *flat = pl_flat(kind);
	/* This field is the time of the line, and not repeated. */
	const char *const left_out[] = {
		pl_flat_short(kind) == PL_FLAT_FLOW128 ? "last_ts" : "ts_ns", NULL
	};

	make_form(&x->flat, flat->fields, flat->n_fields, tags, left_out, false, flat->present_at);
	x->kind = kind;
}

const struct pl_format_ops pl_influx_format = {
	.name = "influx",
	.path = pl_influx_format_path,
	.event = pl_influx_format_event,
	.value = pl_influx_format_value,
	.flat = pl_influx_format_flat,
	.point = pl_influx_format_point,
	.answer = format_answer,
	.folded = format_folded,
	.free = format_free,
};

/* Appends a parameter; all but unreserved characters (RFC 3986, 2.3) become %XX. */
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

	if (r < 0)
		return pl_diag_fail(diag, r, "the address of the server is too long");
	r = pl_influx_format_new(&format, options->max_keys, options->community_id);
	if (r < 0)
		return r;
	s.url = url;
	s.headers = headers;
	s.token_scheme = "Token";
	return pl_sender_open(ret, &s, &pl_influx_format, format, now_ns, diag);
}
