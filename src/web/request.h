/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parsing of HTTP requests: pure functions over untrusted bytes. Documents: RFC 9110 (4.2 URI, 7.2
 * Host, 12.4.2 q-values, 12.5.3 Accept-Encoding), RFC 9112 3.2. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"

#define PL_HTTP_PATH_MAX  256
#define PL_HTTP_QUERY_MAX 1024

/* The parts of a request target. The path is percent-decoded, the query is not. */
struct pl_http_target {
	char path[PL_HTTP_PATH_MAX];
	char query[PL_HTTP_QUERY_MAX];
};

/* Returns -EINVAL for something else than an absolute path, a broken or forbidden escape, control
 * characters; -ENAMETOOLONG. */
int pl_http_target_parse(struct pl_http_target *ret, const char *raw);

/* Reads the value of a query parameter, decoded. Returns 1 and dst when it is there ("?verbose" has
 * the value ""), 0 when not, -EINVAL when the value is broken or longer than cap. */
int pl_http_query_get(const char *query, const char *name, char *dst, size_t cap);

/* Finds the first parameter whose name is not among `names` (n of them). Returns 1 and its name,
 * cut to cap - 1 and with "?" in place of special characters; 0 when there is none. */
int pl_http_query_unknown(
	const char *query, const char *const *names, size_t n, char *dst, size_t cap);

/*
 * Host names that are served. A page of a hostile site can make a browser send requests here under
 * a name that resolves to this host (DNS rebinding), but never under an address or a name of our
 * own. On a loopback listener only loopback names are ours; else any literal address is too.
 */
struct pl_http_hosts {
	struct pl_addr listen;    /* address of the listener; unspecified = all */
	const char *const *names; /* further allowed names, n of them; case is ignored */
	size_t n;
};
/* Returns true when the value of a Host header may be served; its port is not compared (ports get
 * forwarded). */
bool pl_http_host_allowed(const char *host, const struct pl_http_hosts *hosts);

bool pl_http_is_loopback(const struct pl_addr *addr);

/* Accept-Encoding: returns true when gzip may be sent. */
bool pl_http_wants_gzip(const char *accept_encoding);
