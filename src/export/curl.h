/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POST over libcurl: one request at a time, each with a connection of its own, bounded in time and
 * in the size of the answer, redirects not followed, TLS 1.2 and up. The environment's proxy
 * variables are honoured.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "export/sender.h"

extern const struct pl_transport pl_curl_transport;

/* Whether this can be the address of a server: http or https, a host, no credentials, no query and
 * no fragment (those are the exporter's). -EINVAL with diag. */
int pl_curl_url_check(const char *url, struct pl_diag *diag);

/* Of the options only those about the request, credentials, TLS, and the timeout. -EINVAL, or the
 * errno of a file of credentials, with diag. */
int pl_curl_new(void **ret, const struct pl_sender_options *options, struct pl_diag *diag);
