/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes JSON into a buffer. */
#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"

/* Form of each byte in a string: 0 as it is, 'u' as \u00XX, 'm' needs the UTF-8 check, else \ and
 * the letter. */
// clang-format off
static const char escapes[256] = {
	'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b', 't', 'n', 'u', 'f', 'r', 'u', 'u',
	'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
	['"'] = '"',
	['\\'] = '\\',
	[0x80 ... 0xff] = 'm',
};
// clang-format on

void pl_json_init(struct pl_json *json, struct pl_buf *buf)
{
	*json = (struct pl_json){ .buf = buf };
}

/* The comma a value or key needs before it. */
static void separate(struct pl_json *json)
{
	if (json->after_key) {
		json->after_key = false;
		return;
	}
	if (json->depth == 0)
		return;
	if (!json->first[json->depth - 1])
		pl_buf_chr(json->buf, ',');
	json->first[json->depth - 1] = false;
}

static void begin(struct pl_json *json, char c)
{
	assert(json->depth < PL_JSON_DEPTH_MAX);
	separate(json);
	json->first[json->depth++] = true;
	pl_buf_chr(json->buf, c);
}

static void end(struct pl_json *json, char c)
{
	assert(json->depth > 0 && !json->after_key);
	json->depth--;
	pl_buf_chr(json->buf, c);
}

void pl_json_object(struct pl_json *json)
{
	begin(json, '{');
}

void pl_json_object_end(struct pl_json *json)
{
	end(json, '}');
}

void pl_json_array(struct pl_json *json)
{
	begin(json, '[');
}

void pl_json_array_end(struct pl_json *json)
{
	end(json, ']');
}

static void add_escape(struct pl_buf *buf, char how, uint8_t c)
{
	char text[6] = { '\\', how, '0', '0', "0123456789abcdef"[c >> 4],
		"0123456789abcdef"[c & 15] };

	pl_buf_add(buf, text, how == 'u' ? 6 : 2);
}

static void add_string(struct pl_buf *buf, const char *s, size_t n)
{
	size_t run = 0; /* bytes at s that need no escape */

	pl_buf_chr(buf, '"');
	while (run < n) {
		char how = escapes[(uint8_t)s[run]];
		size_t len = 1;
		uint32_t cp;

		if (how == 0 || (how == 'm' && pl_utf8_next(s + run, n - run, &len, &cp))) {
			run += len;
			continue;
		}
		pl_buf_add(buf, s, run);
		if (how == 'm')
			pl_buf_str(buf, "\xef\xbf\xbd"); /* U+FFFD */
		else
			add_escape(buf, how, (uint8_t)s[run]);
		s += run + len;
		n -= run + len;
		run = 0;
	}
	pl_buf_add(buf, s, run);
	pl_buf_chr(buf, '"');
}

void pl_json_key(struct pl_json *json, const char *key)
{
	size_t n = strlen(key);
	bool comma;
	char *to;

	assert(json->depth > 0 && !json->after_key);
	comma = !json->first[json->depth - 1];
	json->first[json->depth - 1] = false;
	json->after_key = true;
	to = pl_buf_reserve(json->buf, n + 3 + comma);
	if (to == NULL)
		return;
	/* Keys are fixed words that need no escape: one pass checks that, and only a key with a
	 * special character is escaped. */
	if (comma)
		*to++ = ',';
	*to++ = '"';
	for (size_t i = 0; i < n; i++) {
		to[i] = key[i];
		if (escapes[(uint8_t)key[i]] != 0) {
			if (comma)
				pl_buf_chr(json->buf, ',');
			add_string(json->buf, key, n);
			pl_buf_chr(json->buf, ':');
			return;
		}
	}
	to[n] = '"';
	to[n + 1] = ':';
	pl_buf_advance(json->buf, n + 3 + comma);
}

void pl_json_strn(struct pl_json *json, const char *value, size_t len)
{
	separate(json);
	add_string(json->buf, value, len);
}

void pl_json_str(struct pl_json *json, const char *value)
{
	pl_json_strn(json, value, strlen(value));
}

void pl_json_raw(struct pl_json *json, const char *value, size_t len)
{
	separate(json);
	pl_buf_add(json->buf, value, len);
}

void pl_json_u64(struct pl_json *json, uint64_t value)
{
	separate(json);
	pl_buf_u64(json->buf, value);
}

void pl_json_text(struct pl_json *json, const char *key, const char *value)
{
	pl_json_key(json, key);
	pl_json_str(json, value);
}

void pl_json_number(struct pl_json *json, const char *key, uint64_t value)
{
	pl_json_key(json, key);
	pl_json_u64(json, value);
}

void pl_json_i64(struct pl_json *json, int64_t value)
{
	separate(json);
	pl_buf_i64(json->buf, value);
}

void pl_json_bool(struct pl_json *json, bool value)
{
	separate(json);
	pl_buf_str(json->buf, value ? "true" : "false");
}

void pl_json_null(struct pl_json *json)
{
	separate(json);
	pl_buf_str(json->buf, "null");
}

void pl_json_double(struct pl_json *json, double value)
{
	separate(json);
	if (isfinite(value))
		pl_buf_double(json->buf, value);
	else
		pl_buf_str(json->buf, "null");
}
