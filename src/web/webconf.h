/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File of the allowed clients and of TLS: the format of Prometheus' exporter-toolkit
 * (web-configuration.md), so that one file serves every exporter of a host.
 *
 *   tls_server_config:   cert_file, key_file, client_auth_type, client_ca_file,
 *                        client_allowed_sans, min_version, max_version, cipher_suites,
 *                        curve_preferences; also cert, key and client_ca as text
 *   http_server_config:  headers; http2 (ignored: there is HTTP/1.1 only)
 *   basic_auth_users:    NAME: bcrypt hash
 *   bearer_token_files:  files whose first line is a token (not in exporter-toolkit)
 *
 * Relative names are relative to the file. Everything is read and checked when it is loaded:
 * certificates, keys, and that TLS can enable exactly the given suites; suites that bring others
 * along are an error. An unknown key is an error too, with its line and the nearest key.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

enum pl_web_client_auth {
	PL_WEB_NO_CLIENT_CERT,
	PL_WEB_REQUEST_CLIENT_CERT,
	PL_WEB_REQUIRE_ANY_CLIENT_CERT,
	PL_WEB_VERIFY_CLIENT_CERT_IF_GIVEN,
	PL_WEB_REQUIRE_AND_VERIFY_CLIENT_CERT,
};

struct pl_web_user {
	char *name, *hash;
};

struct pl_web_header {
	const char *name; /* static */
	char *value;
};

#define PL_WEB_HEADERS_MAX 8
#define PL_WEB_TOKENS_MAX  32

struct pl_webconf {
	bool tls;
	char *cert, *key, *client_ca; /* PEM texts */
	enum pl_web_client_auth client_auth;
	char **allowed_sans;
	size_t n_allowed_sans;
	char *priorities; /* of GnuTLS */
	struct pl_web_user *users;
	size_t n_users;
	char *tokens[PL_WEB_TOKENS_MAX];
	size_t n_tokens;
	struct pl_web_header headers[PL_WEB_HEADERS_MAX];
	size_t n_headers;
};

/* Returns -EINVAL with diag (file, line), the errno of a file that cannot be read, -ENOMEM; *ret is
 * NULL then. */
int pl_webconf_load(struct pl_webconf **ret, const char *path, struct pl_diag *diag);
/* Parses text; names are relative to `folder`. Also for tests. */
int pl_webconf_parse(struct pl_webconf **ret, const char *name, const char *folder,
	const char *text, size_t len, struct pl_diag *diag);
void pl_webconf_free(struct pl_webconf *conf);

/* Calls `take` for every file that the configuration names, as far as it can be read; loading
 * reports its errors. Returns the first error of `take`, or 0. */
int pl_webconf_files(const char *path, int (*take)(void *arg, const char *file), void *arg);

/* Returns true when clients must authenticate. */
bool pl_webconf_asks(const struct pl_webconf *conf);
