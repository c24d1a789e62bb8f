/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON by the grammar of RFC 8259, for the targets whose text it is; shares nothing with the
 * writer. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"

enum { JSON_DEPTH = 8 };

static inline void blank(const char **s)
{
	*s += strspn(*s, " \t\r\n");
}

static inline bool json_string(const char **s)
{
	const char *p = *s;

	if (*p++ != '"')
		return false;
	for (; *p != '"'; p++) {
		if ((unsigned char)*p < 0x20)
			return false;
		if (*p != '\\')
			continue;
		p++;
		if (*p == 'u') {
			for (int i = 1; i <= 4; i++) {
				if (!isxdigit((unsigned char)p[i]))
					return false;
			}
			p += 4;
		} else if (*p == '\0' || strchr("\"\\/bfnrt", *p) == NULL) {
			return false;
		}
	}
	*s = p + 1;
	return true;
}

static inline bool digits(const char **s)
{
	size_t n = strspn(*s, "0123456789");

	*s += n;
	return n > 0;
}

static inline bool json_number(const char **s)
{
	if (**s == '-')
		++*s;
	if (**s == '0')
		++*s;
	else if (!digits(s))
		return false;
	if (**s == '.') {
		++*s;
		if (!digits(s))
			return false;
	}
	if (**s == 'e' || **s == 'E') {
		++*s;
		if (**s == '+' || **s == '-')
			++*s;
		return digits(s);
	}
	return true;
}

static inline bool json_value(const char **s, unsigned int depth);

/* Members of an object, or elements of an array, up to and with the closing bracket. */
static inline bool json_list(const char **s, unsigned int depth, char close)
{
	if (depth == JSON_DEPTH)
		return false;
	blank(s);
	if (**s == close) {
		++*s;
		return true;
	}
	for (;;) {
		blank(s);
		if (close == '}') {
			if (!json_string(s))
				return false;
			blank(s);
			if (*(*s)++ != ':')
				return false;
		}
		if (!json_value(s, depth + 1))
			return false;
		blank(s);
		if (**s == close)
			break;
		if (*(*s)++ != ',')
			return false;
	}
	++*s;
	return true;
}

static inline bool json_value(const char **s, unsigned int depth)
{
	static const char *const words[] = { "true", "false", "null" };

	blank(s);
	if (**s == '{' || **s == '[') {
		char close = **s == '{' ? '}' : ']';

		++*s;
		return json_list(s, depth, close);
	}
	if (**s == '"')
		return json_string(s);
	for (size_t i = 0; i < 3; i++) {
		if (strncmp(*s, words[i], strlen(words[i])) == 0) {
			*s += strlen(words[i]);
			return true;
		}
	}
	return json_number(s);
}

/* The whole of buf is one JSON value, and UTF-8. */
static inline void is_json(const struct pl_buf *buf)
{
	const char *s = buf->data;

	must(!buf->failed && strlen(buf->data) == buf->len);
	must(json_value(&s, 0));
	must(s == buf->data + buf->len);
}
