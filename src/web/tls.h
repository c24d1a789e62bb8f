/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS functions of the web configuration, by GnuTLS. Pure functions, any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "web/webconf.h"

struct pl_tls_wish {
	unsigned int min_version, max_version; /* 0 TLS 1.0 … 3 TLS 1.3 */
	char *const *
		/* IANA names, up to TLS 1.2, whose ciphers TLS 1.3 uses too; none = all secure
		 * ones */
		suites;
	size_t n_suites;
	char *const *curves; /* CurveP256, …; none = all secure ones */
	size_t n_curves;
	bool prefer_server;
};

/* Makes the priority string for exactly these. Returns -EINVAL with diag: an unknown name, nothing
 * in common, or suites that cannot be enabled without others. The caller frees. */
int pl_tls_priorities(const struct pl_tls_wish *wish, char **ret, struct pl_diag *diag);

/* Checks that chain and key are good and match, and that the CA (may be NULL) is one or more
 * certificates. Returns -EINVAL with diag. */
int pl_tls_check(const char *cert, const char *key, const char *client_ca, struct pl_diag *diag);

/* Checks that the client of a session (gnutls_session_t) has shown the certificate that `conf` asks
 * for. Returns NULL, or the reason of refusal. */
const char *pl_tls_refuses(void *session, const struct pl_webconf *conf);
