/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the URI of a port. */
#include "netio/uri.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* Explains a wrong size; suggests "1GiB" for "1G". */
static void tell_size(const char *key, const char *text, struct pl_diag *diag)
{
	const size_t n = strlen(text);
	char whole[64];
	uint64_t v;

	if (n > 1 && n < sizeof(whole) - 3 && strchr("kKmMgG", text[n - 1]) != NULL) {
		snprintf(whole, sizeof(whole), "%.*s%s", (int)n - 1, text,
			strchr("kK", text[n - 1]) != NULL   ? "KiB"
			: strchr("mM", text[n - 1]) != NULL ? "MiB"
							    : "GiB");
		if (pl_parse_size(whole, &v) == 0) {
			pl_diag_set(diag, "'%s=%s' in the URI: no such unit, write %s", key, text,
				whole);
			return;
		}
	}
	pl_diag_set(diag, "'%s=%s' in the URI: not a number, nor a size like 64KiB, 16MiB or 1GiB",
		key, text);
}

int pl_uri_read_size(const char *key, const char *text, uint64_t min, uint64_t max, uint64_t *ret,
	struct pl_diag *diag)
{
	uint64_t v;

	if (pl_parse_size(text, &v) < 0) {
		tell_size(key, text, diag);
		return -EINVAL;
	}
	if (v < min || v > max) {
		pl_diag_set(diag, "'%s=%s' in the URI: not between %" PRIu64 " and %" PRIu64, key,
			text, min, max);
		return -EINVAL;
	}
	*ret = v;
	return 0;
}

static int add_param(struct pl_uri *uri, char *text, const char *const *keys, struct pl_diag *diag)
{
	char *value = strchr(text, '=');
	size_t nkeys = 0;

	if (value != NULL)
		*value++ = '\0';
	while (keys[nkeys] != NULL && strcmp(keys[nkeys], text) != 0)
		nkeys++;
	if (keys[nkeys] == NULL) {
		pl_diag_set(diag, "unknown key '%s' in the URI", text);
		pl_diag_nearest(diag, '\'', text, keys, nkeys);
		return -EINVAL;
	}
	if (value == NULL || *value == '\0') {
		pl_diag_set(diag, "key '%s' in the URI has no value", text);
		return -EINVAL;
	}
	if (pl_uri_get(uri, text) != NULL) {
		pl_diag_set(diag, "key '%s' is given twice in the URI", text);
		return -EINVAL;
	}
	if (uri->nparams == PL_URI_PARAMS_MAX) {
		pl_diag_set(diag, "more than %d keys in the URI", PL_URI_PARAMS_MAX);
		return -EINVAL;
	}
	uri->params[uri->nparams].key = text;
	uri->params[uri->nparams].value = value;
	uri->nparams++;
	return 0;
}

int pl_uri_split(
	struct pl_uri *uri, const char *target, const char *const *keys, struct pl_diag *diag)
{
	size_t len = strlen(target);
	char *query, *next;

	uri->nparams = 0;
	if (len >= sizeof(uri->text)) {
		pl_diag_set(diag, "URI of %zu bytes is too long", len);
		return -EINVAL;
	}
	memcpy(uri->text, target, len + 1);
	uri->target = uri->text;
	query = keys != NULL ? strchr(uri->text, '?') : NULL;
	if (query == NULL)
		return 0;
	*query++ = '\0';
	for (; query != NULL; query = next) {
		int r;

		next = strchr(query, '&');
		if (next != NULL)
			*next++ = '\0';
		r = add_param(uri, query, keys, diag);
		if (r < 0)
			return r;
	}
	return 0;
}

const char *pl_uri_get(const struct pl_uri *uri, const char *key)
{
	for (unsigned int i = 0; i < uri->nparams; i++) {
		if (strcmp(uri->params[i].key, key) == 0)
			return uri->params[i].value;
	}
	return NULL;
}

int pl_uri_get_size(const struct pl_uri *uri, const char *key, uint64_t min, uint64_t max,
	uint64_t *ret, struct pl_diag *diag)
{
	const char *text = pl_uri_get(uri, key);

	return text == NULL ? 0 : pl_uri_read_size(key, text, min, max, ret, diag);
}

int pl_uri_get_bool(const struct pl_uri *uri, const char *key, bool *ret, struct pl_diag *diag)
{
	const char *text = pl_uri_get(uri, key);

	if (text == NULL || pl_parse_bool(text, ret) == 0)
		return 0;
	pl_diag_set(diag, "'%s=%s' in the URI: write %s=yes or %s=no", key, text, key, key);
	return -EINVAL;
}
