/* SPDX-License-Identifier: BSD-2-Clause */
#include "web/webconf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"

/* P-256, self-signed, for tests only: made with openssl req -x509 -days 36500. */
#define INDENT "    "
static char cert[4096], key[4096];

static void indent(char *dst, const char *pem)
{
	while (*pem != '\0') {
		size_t n = strcspn(pem, "\n");

		dst += sprintf(dst, INDENT "%.*s\n", (int)n, pem);
		pem += n + (pem[n] == '\n');
	}
}

static const char cert_pem[] = "-----BEGIN CERTIFICATE-----\n"
			       "MIIBdjCCARugAwIBAgIUfkijIFX+g3NWjT4iDw1OCvlMfVkwCgYIKoZIzj0EAwIw\n"
			       "DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjExMTE4NDdaGA8yMTI2MTAyODExMTg0\n"
			       "N1owDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIxQ\n"
			       "oDiE88ExNtF1GDt0ZRTI6yNF5tcUsgnq49LmbgPllPc0qpdosuPGoO5BW/+f5h+J\n"
			       "+TFLjsUyj0bHl6LtzLajUzBRMB0GA1UdDgQWBBQ/hDzuCGUuyvLGF5u0qB+KJrEb\n"
			       "MTAfBgNVHSMEGDAWgBQ/hDzuCGUuyvLGF5u0qB+KJrEbMTAPBgNVHRMBAf8EBTAD\n"
			       "AQH/MAoGCCqGSM49BAMCA0kAMEYCIQC7Xduh9C3DnNdzkTcFkEpwKFKk6QwqnFwo\n"
			       "hRLTQ/j6rwIhAMyFv/0PFaII8QlkWRypvRWvwtsV/Gq0D6PR6vdpmZIq\n"
			       "-----END CERTIFICATE-----\n";
static const char key_pem[] = "-----BEGIN PRIVATE KEY-----\n"
			      "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgFrmE1Q5b8rvIY2ay\n"
			      "Y30/50XHPkhjq94C0pJQP2H8l2ShRANCAASMUKA4hPPBMTbRdRg7dGUUyOsjRebX\n"
			      "FLIJ6uPS5m4D5ZT3NKqXaLLjxqDuQVv/n+YfifkxS47FMo9Gx5ei7cy2\n"
			      "-----END PRIVATE KEY-----\n";

static int parse(struct pl_webconf **ret, const char *text, struct pl_diag *diag)
{
	char full[16384];
	const char *at = strstr(text, "@TLS@");

	memset(diag, 0, sizeof(*diag));
	if (at == NULL)
		return pl_webconf_parse(ret, "web.yml", "/nowhere", text, strlen(text), diag);
	snprintf(full, sizeof(full), "%.*stls_server_config:\n  cert: |\n%s  key: |\n%s%s",
		(int)(at - text), text, cert, key, at + 5);
	return pl_webconf_parse(ret, "web.yml", "/nowhere", full, strlen(full), diag);
}

#define HASH "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"

static void good(void)
{
	static const struct {
		const char *text;
		bool tls, asks;
		size_t users, headers;
	} rows[] = {
		{ "", false, false, 0, 0 },
		{ "basic_auth_users:\n", false, false, 0, 0 },
		{ "basic_auth_users:\n  a: " HASH "\n  'b c': \"" HASH "\"\n", false, true, 2, 0 },
		{ "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: SAMEORIGIN\n"
		  "    Strict-Transport-Security: max-age=31536000\n",
			false, false, 0, 2 },
		{ "@TLS@", true, false, 0, 0 },
		{ "basic_auth_users:\n  a: " HASH "\n@TLS@  min_version: TLS13\n", true, true, 1,
			0 },
		{ "@TLS@  cipher_suites:\n    - TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n", true,
			false, 0, 0 },
		{ "@TLS@  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "
		  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n  max_version: TLS12\n",
			true, false, 0, 0 },
		{ "@TLS@  curve_preferences: [X25519, CurveP256]\n  prefer_server_cipher_suites: false\n",
			true, false, 0, 0 },
	};
	struct pl_webconf *c;
	struct pl_diag diag;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		eq(parse(&c, rows[i].text, &diag), 0, "%zu: %s", i, diag.text);
		if (c == NULL)
			continue;
		eq(c->tls, rows[i].tls);
		eq(pl_webconf_asks(c), rows[i].asks);
		eq(c->n_users, rows[i].users);
		eq(c->n_headers, rows[i].headers);
		ok(!c->tls || c->priorities != NULL, "priorities");
		pl_webconf_free(c);
	}
}

static void bad(void)
{
	static const struct {
		const char *text, *says;
		unsigned int line;
	} rows[] = {
		{ "tls_server_confi:\n", "did you mean \"tls_server_config\"", 1 },
		{ "tls_server_config:\n  cert_fil: x\n", "did you mean \"cert_file\"", 2 },
		{ "http_server_config:\n  headers:\n    X-Other: 1\n", "unknown key \"X-Other\"",
			3 },
		{ "http_server_config:\n  headers:\n    X-Frame-Options: \"a\\r\\nb\"\n",
			"printable", 3 },
		{ "basic_auth_users:\n  a: secret\n", "not a bcrypt hash", 2 },
		{ "basic_auth_users:\n  a: " HASH "\n  a: " HASH "\n", "duplicate key", 3 },
		{ "basic_auth_users: [a]\n", "map", 1 },
		{ "basic_auth_users:\n  'a:b': " HASH "\n", "colon", 0 },
		{ "basic_auth_users:\n  '': " HASH "\n", "empty", 0 },
		{ "tls_server_config:\n  cert_file: x\n  key_file: y\n", "cannot read /nowhere/x",
			0 },
		{ "tls_server_config:\n  cert: nonsense\n", "cert_file needs key_file", 0 },
		{ "tls_server_config:\n  cert: nonsense\n  key: nonsense\n", "certificate and key",
			0 },
		{ "@TLS@  key_file: x\n", "exclude each other", 0 },
		{ "@TLS@  client_auth_type: RequireAndVerifyClientCert\n", "needs client_ca_file",
			0 },
		{ "@TLS@  client_ca: x\n", "needs a client_auth_type", 0 },
		{ "@TLS@  client_ca: x\n  client_auth_type: RequireAndVerifyClientCert\n",
			"client_ca_file", 0 },
		{ "@TLS@  client_auth_type: RequireAndVerifyClientCrt\n",
			"RequireAndVerifyClientCert", 0 },
		{ "@TLS@  client_allowed_sans: [a]\n", "needs a client_auth_type", 0 },
		{ "@TLS@  min_version: TLS13\n  max_version: TLS12\n", "newer", 0 },
		{ "@TLS@  min_version: SSL3\n", "TLS12", 0 },
		{ "@TLS@  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA25]\n",
			"did you mean", 0 },
		{ "@TLS@  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]\n", "unknown value", 0 },
		/* Parts of two suites make a third and a fourth. */
		{ "@TLS@  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "
		  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]\n  max_version: TLS12\n",
			"these suites imply", 0 },
		{ "@TLS@  curve_preferences: [CurveP255]\n", "did you mean \"CurveP256\"", 0 },
		{ "bearer_token_files: [t]\n", "cannot read /nowhere/t", 0 },
		{ "a: b: c\n", "", 1 },
	};
	struct pl_webconf *c;
	struct pl_diag diag;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int r = parse(&c, rows[i].text, &diag);

		ok(r < 0 && c == NULL, "refused: %zu", i);
		ok(strstr(diag.text, rows[i].says) != NULL, "%zu says why: %s", i, diag.text);
		if (rows[i].line > 0)
			eq(diag.line, rows[i].line, "%zu: line", i);
		pl_webconf_free(c);
	}
}

/* Files beside the configuration, and tokens. */
static void files(void)
{
	char folder[] = "/tmp/pathline-webconf-XXXXXX", path[128], text[256];
	struct pl_diag diag = { .text = "" };
	struct pl_webconf *c;
	FILE *f;

	ok(mkdtemp(folder) != NULL, "a folder");
	snprintf(path, sizeof(path), "%s/token", folder);
	f = fopen(path, "w");
	fputs("0123456789abcdef0\nrest\n", f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/web.yml", folder);
	f = fopen(path, "w");
	fputs("bearer_token_files: [token]\n", f);
	fclose(f);
	eq(pl_webconf_load(&c, path, &diag), 0, "%s", diag.text);
	eq(c->n_tokens, 1);
	streq(c->tokens[0], "0123456789abcdef0");
	ok(pl_webconf_asks(c), "a token is asked for");
	pl_webconf_free(c);
	snprintf(path, sizeof(path), "%s/token", folder);
	f = fopen(path, "w");
	fputs("short\n", f);
	fclose(f);
	snprintf(text, sizeof(text), "%s/web.yml", folder);
	ok(pl_webconf_load(&c, text, &diag) < 0 && strstr(diag.text, "use a longer token") != NULL,
		"%s", diag.text);
	unlink(path);
	unlink(text);
	rmdir(folder);
	ok(pl_webconf_load(&c, text, &diag) == -ENOENT && strcmp(diag.file, text) == 0,
		"no such file");
}

int main(void)
{
	indent(cert, cert_pem);
	indent(key, key_pem);
	good();
	bad();
	files();
	return pl_test_done();
}
