/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that says who may ask (web/webconf.h), and an Authorization header. A refusal says why;
 * what is accepted holds: hashes are hashes, TLS has its parts. The first line of input is the
 * header.
 */
#include "fuzz.h"
#include "web/auth.h"
#include "web/webconf.h"

static void header(const char *text)
{
	char secret[PL_AUTH_SECRET_MAX];
	const char *password;

	if (pl_auth_parse_basic(text, secret, &password) < 0)
		return;
	must(password > secret && password <= secret + sizeof(secret) - 1);
	must(strchr(secret, ':') == NULL);
	must(strlen(password) < sizeof(secret));
	must(pl_auth_equal(secret, secret));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_diag diag = { .text = "" };
	struct pl_webconf *c;
	char *text, *end;

	if (size > 65536)
		return 0;
	text = malloc(size + 1);
	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	end = memchr(text, '\n', size);
	if (end != NULL) {
		*end++ = '\0';
		header(text);
		if (pl_webconf_parse(&c, "web.yml", "/nonexistent", end,
			    size - (size_t)(end - text), &diag) < 0) {
			must(c == NULL && diag.text[0] != '\0');
		} else {
			must(!c->tls ||
				(c->cert != NULL && c->key != NULL && c->priorities != NULL));
			for (size_t i = 0; i < c->n_users; i++)
				must(pl_auth_check_hash(c->users[i].hash, NULL) == 0 &&
					c->users[i].name[0] != '\0');
			must(c->n_users == 0 || pl_webconf_asks(c));
			pl_webconf_free(c);
		}
	}
	free(text);
	return 0;
}
