/* SPDX-License-Identifier: BSD-2-Clause */
/* What of TLS the web configuration needs, by GnuTLS. Pure functions, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "web/webconf.h"

struct pl_tls_wish {
	unsigned int min_version, max_version; /* 0 TLS 1.0 … 3 TLS 1.3 */
	char *const *
		suites; /* IANA names, up to TLS 1.2, whose ciphers TLS 1.3 uses too; none = all that are sound */
	size_t n_suites;
	char *const *curves; /* CurveP256, …; none = all that are sound */
	size_t n_curves;
	bool prefer_server;
};

/* The priority string that gives exactly these. -EINVAL with diag: an unknown name, nothing in
 * common, or suites that cannot be had without others. The caller frees. */
int pl_tls_priorities(const struct pl_tls_wish *wish, char **ret, struct pl_diag *diag);

/* Whether chain and key are sound and belong together, and the CA is one or more certificates (may
 * be NULL). -EINVAL with diag. */
int pl_tls_check(const char *cert, const char *key, const char *client_ca, struct pl_diag *diag);

/* Whether the client of a session (gnutls_session_t) has shown what `conf` asks of it: NULL, or why
 * not. */
const char *pl_tls_refuses(void *session, const struct pl_webconf *conf);
