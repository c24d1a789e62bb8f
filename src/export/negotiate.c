/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the format of a page by the Accept header (RFC 9110, 12.5.1) with its weights. Unknown
 * parameters (escaping, charset) are ignored; a version is compared. A malformed header counts as
 * no preference: text.
 */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "export/exposition.h"

#define ELEMENTS_MAX 64

struct slice {
	const char *at;
	size_t len;
};

static struct slice trim(struct slice s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
		s.at++;
		s.len--;
	}
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* Removes from *rest, and returns, the part before the next `sep` outside quotes. */
static struct slice cut(struct slice *rest, char sep)
{
	struct slice part = { rest->at, 0 };
	bool quoted = false;
	size_t i;

	for (i = 0; i < rest->len; i++) {
		char c = rest->at[i];

		if (c == '\\' && quoted && i + 1 < rest->len)
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (c == sep && !quoted)
			break;
	}
	part.len = i < rest->len ? i : rest->len;
	rest->at += part.len;
	rest->len -= part.len;
	if (rest->len > 0) {
		rest->at++;
		rest->len--;
	}
	return trim(part);
}

static bool is(struct slice s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static struct slice unquote(struct slice s)
{
	if (s.len >= 2 && s.at[0] == '"' && s.at[s.len - 1] == '"') {
		s.at++;
		s.len -= 2;
	}
	return s;
}

/* Returns a weight in thousandths of "0", "1", "0.5", "0.755" or "1.000"; -1 for any other text. */
static int weight(struct slice s)
{
	int thousandths, place = 100;

	if (s.len == 0 || s.len > 5 || (s.at[0] != '0' && s.at[0] != '1'))
		return -1;
	thousandths = (s.at[0] - '0') * 1000;
	if (s.len > 1 && s.at[1] != '.')
		return -1;
	for (size_t i = 2; i < s.len; i++, place /= 10) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return -1;
		thousandths += (s.at[i] - '0') * place;
	}
	return thousandths <= 1000 ? thousandths : -1;
}

/* One media range; the most specific matching range decides. */
struct range {
	struct slice type, version;
	int weight;
};

static struct range parse_range(struct slice element)
{
	struct range r = { .weight = 1000 };

	r.type = cut(&element, ';');
	while (element.len > 0) {
		struct slice param = cut(&element, ';');
		struct slice name = cut(&param, '=');

		if (is(name, "q"))
			r.weight = weight(trim(param));
		else if (is(name, "version"))
			r.version = unquote(trim(param));
	}
	return r;
}

/* Returns 0 when the range does not match; a higher number is more specific. */
static int specificity(
	const struct range *r, const char *type, const char *family, const char *version)
{
	if (is(r->type, type)) {
		if (r->version.len == 0)
			return 3;
		return is(r->version, version) ? 4 : 0;
	}
	if (is(r->type, family))
		return 2;
	return is(r->type, "*/*") ? 1 : 0;
}

enum pl_exposition_format pl_exposition_negotiate(const char *accept)
{
	static const struct {
		const char *type, *family, *version;
	} formats[] = {
		[PL_EXPOSITION_TEXT] = { "text/plain", "text/*", "0.0.4" },
		[PL_EXPOSITION_OPENMETRICS] = { "application/openmetrics-text", "application/*",
			"1.0.0" },
	};
	int best[2] = { 0, 0 }, q[2] = { 0, 0 };
	struct slice rest;

	if (accept == NULL)
		return PL_EXPOSITION_TEXT;
	rest = (struct slice){ accept, strlen(accept) };
	for (unsigned int n = 0; rest.len > 0 && n < ELEMENTS_MAX; n++) {
		struct range r = parse_range(cut(&rest, ','));

		if (r.weight < 0)
			continue;
		for (unsigned int f = 0; f < 2; f++) {
			int s = specificity(
				&r, formats[f].type, formats[f].family, formats[f].version);

			if (s > best[f] || (s != 0 && s == best[f] && r.weight > q[f])) {
				best[f] = s;
				q[f] = r.weight;
			}
		}
	}
	/* OpenMetrics only for who names it, and does not like plain text better. */
	if (best[PL_EXPOSITION_OPENMETRICS] >= 3 && q[PL_EXPOSITION_OPENMETRICS] > 0 &&
		q[PL_EXPOSITION_OPENMETRICS] >= q[PL_EXPOSITION_TEXT])
		return PL_EXPOSITION_OPENMETRICS;
	return PL_EXPOSITION_TEXT;
}
