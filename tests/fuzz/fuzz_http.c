/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stranger writes into a request: target, query, Host, Accept-Encoding, Accept. The first byte says
 * which. */
#include "export/exposition.h"
#include "fuzz.h"
#include "web/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "tele.example" };
	struct pl_http_hosts hosts = { .names = names, .n = 1 };
	struct pl_http_target target;
	char *text, value[32];

	if (size == 0)
		return 0;
	text = malloc(size);
	must(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		if (pl_http_target_parse(&target, text) < 0)
			break;
		must(target.path[0] == '/');
		must(strlen(target.path) < sizeof(target.path));
		for (const char *p = target.path; *p != '\0'; p++)
			must((unsigned char)*p >= 0x20 && *p != 0x7f);
		must(strchr(target.query, '#') == NULL);
		break;
	case 1:
		memset(value, 'x', sizeof(value));
		if (pl_http_query_get(text, "verbose", value, sizeof(value)) == 1) {
			must(memchr(value, '\0', sizeof(value)) != NULL);
			must(strstr(text, "verbose") != NULL);
		} else {
			must(pl_http_query_get(text, "verbose", value, 1) <= 1);
		}
		break;
	case 2:
		/* On a loopback listener nothing is allowed that does not name loopback or a given name. */
		hosts.listen = (struct pl_addr){ { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
		if (pl_http_host_allowed(text, &hosts))
			must(strcasestr(text, "localhost") != NULL ||
				strcasestr(text, "tele.example") != NULL ||
				strstr(text, "127.") != NULL || text[0] == '[');
		break;
	default:
		if (pl_http_wants_gzip(text))
			must(strcasestr(text, "gzip") != NULL || strchr(text, '*') != NULL);
		if (pl_exposition_negotiate(text) == PL_EXPOSITION_OPENMETRICS)
			must(strcasestr(text, "application/") != NULL);
		break;
	}
	free(text);
	return 0;
}
