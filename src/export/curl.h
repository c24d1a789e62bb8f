/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POST over libcurl: one request at a time, each over its own connection, with a timeout and a
 * limit on the size of the answer; redirects are not followed; TLS 1.2 or later. The environment's
 * proxy variables apply.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "export/sender.h"

extern const struct pl_transport pl_curl_transport;

/* Checks that `url` can be the address of a server: http or https, a host, no credentials, no query
 * and no fragment (the driver adds its own query). -EINVAL with diag. */
int pl_curl_url_check(const char *url, struct pl_diag *diag);

/* Uses only these options: requests, credentials, TLS, timeout. -EINVAL, or the errno of a file of
 * credentials, with diag. */
int pl_curl_new(void **ret, const struct pl_sender_options *options, struct pl_diag *diag);
