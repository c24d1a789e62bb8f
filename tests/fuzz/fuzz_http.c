/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of an HTTP request. Three lines of input: the target, the Host value, the value of
 * Accept and of Accept-Encoding. A path that was accepted holds no control characters and is found
 * again when it is escaped; a loopback listener serves no host that a public one would not.
 */
#include <ctype.h>

#include "base/num.h"
#include "export/exposition.h"
#include "fuzz.h"
#include "web/request.h"

static bool clean(const char *s)
{
	for (; *s != '\0'; s++) {
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	}
	return true;
}

static void target(const char *raw)
{
	struct pl_http_target t, again;
	char escaped[3 * PL_HTTP_PATH_MAX + PL_HTTP_QUERY_MAX + 2], value[64];
	size_t n = 0;

	if (pl_http_target_parse(&t, raw) < 0)
		return;
	must(raw[0] == '/' && t.path[0] == '/');
	must(strlen(t.path) < sizeof(t.path) && strlen(t.query) < sizeof(t.query));
	must(clean(t.path) && strchr(t.query, '#') == NULL);
	for (const char *s = t.path; *s != '\0'; s++)
		n += (size_t)snprintf(
			escaped + n, sizeof(escaped) - n, "%%%02x", (unsigned char)*s);
	/* The path begins with a slash as such, not with an escaped one. */
	escaped[2] = '/';
	snprintf(escaped + n, sizeof(escaped) - n, "?%s", t.query);
	must(pl_http_target_parse(&again, escaped + 2) == 0);
	must(strcmp(again.path, t.path) == 0 && strcmp(again.query, t.query) == 0);
	if (pl_http_query_get(t.query, "verbose", value, sizeof(value)) == 1)
		must(strlen(value) < sizeof(value) && clean(value));
	must(pl_http_query_get(t.query, "n", value, 1) <= 1);
}

static void host(const char *text)
{
	static const char *const names[] = { "collector.example", "c" };
	struct pl_http_hosts local = { .names = names, .n = 2 }, any = local, nameless = { 0 };
	char upper[300];
	bool allowed;

	must(pl_parse_addr("127.0.0.1", &local.listen) == 0);
	nameless.listen = local.listen;
	allowed = pl_http_host_allowed(text, &local);
	must(!allowed || pl_http_host_allowed(text, &any));
	must(!pl_http_host_allowed(text, &nameless) || allowed);
	if (!allowed)
		return;
	/* Served on loopback: localhost, an address of loopback, or one of the names; never
	 * less. */
	must(strncasecmp(text, "localhost", 9) == 0 || strncmp(text, "127.", 4) == 0 ||
		text[0] == '[' || strchr(text, ':') != NULL ||
		strncasecmp(text, names[0], strlen(names[0])) == 0 ||
		strncasecmp(text, names[1], 1) == 0);
	must(strlen(text) < sizeof(upper));
	for (size_t i = 0; i <= strlen(text); i++)
		upper[i] = (char)toupper((unsigned char)text[i]);
	must(pl_http_host_allowed(upper, &local));
}

static void accept_values(const char *accept, const char *encoding)
{
	enum pl_exposition_format f = pl_exposition_negotiate(accept);
	char twice[5000];

	must(f == PL_EXPOSITION_TEXT || f == PL_EXPOSITION_OPENMETRICS);
	must(pl_exposition_content_type(f) != NULL);
	must(f == PL_EXPOSITION_TEXT || strcasestr(accept, "application/") != NULL);
	must(!pl_http_wants_gzip(encoding) || strcasestr(encoding, "gzip") != NULL ||
		strchr(encoding, '*') != NULL);
	/* Empty list elements before it change nothing (RFC 9110 5.6.1). */
	must((size_t)snprintf(twice, sizeof(twice), ", ,%s", encoding) < sizeof(twice));
	must(pl_http_wants_gzip(encoding) == pl_http_wants_gzip(twice));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char empty[] = "";
	const char *lines[4] = { empty, empty, empty, empty };
	char *text = malloc(size + 1), *rest = text;

	if (size > 4096) {
		free(text);
		return 0;
	}
	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	for (unsigned int i = 0; i < 4 && rest != NULL; i++)
		lines[i] = strsep(&rest, "\n");
	target(lines[0]);
	host(lines[1]);
	accept_values(lines[2], lines[3]);
	free(text);
	return 0;
}
