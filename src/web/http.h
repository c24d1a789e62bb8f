/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A read-only HTTP/1.1 server (RFC 9110, 9112; parsing by libmicrohttpd): GET and HEAD, exact
 * paths, two threads of its own that share nothing with the packet path. One holds the connections
 * and never waits, the other makes pages, one at a time, each once for all clients that wait for
 * it, and for the addresses in turn.
 *
 * Clients cannot block the server. A request's head must be complete within 5 s and below 8 KiB, an
 * answer must be read within 30 s, an idle connection ends after 30 s, by a deadline and not by
 * inactivity. Connections are limited in total and per address (of IPv6: per /64), and so is the
 * memory of answers for slow readers. When either is short, a new connection replaces the least
 * active one of the address with most connections: an idle one first, then one whose head does not
 * come, then one that reads nothing of its answer. A PL_HTTP_ALWAYS route is answered even when no
 * connection can be ended.
 *
 * pl_http_open binds and starts the threads. Routes and names are copied, a route's `arg` is
 * borrowed until pl_http_close.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/counter.h"
#include "base/diag.h"
#include "base/stats.h"
#include "web/request.h"
#include "web/webconf.h"

struct pl_http_request {
	const char *path;
	const char *query;     /* undecoded, see pl_http_query_get */
	const char *accept;    /* header or NULL */
	struct pl_addr client; /* of a page for several clients: one of them */
};

#define PL_HTTP_STREAM_OVER SIZE_MAX

/*
 * An answer without an end, sent piece by piece (chunked). All operations are called on the thread
 * of connections. A client that reads nothing of the available bytes for 30 s is dropped; a client
 * that is gone is noticed within a second.
 */
struct pl_http_stream_ops {
	/* returns 0 = nothing now, PL_HTTP_STREAM_OVER = the end */
	size_t (*read)(void *stream, char *dst, size_t cap);
	bool (*ready)(
		void *stream); /* true when read would give bytes; called ten times a second */
	void (*close)(void *stream);
};

struct pl_http_reply {
	unsigned int status;      /* 200 unless the handler sets it */
	const char *content_type; /* static text; text/plain unless the handler sets it */
	struct pl_buf body;       /* limited; a failed buffer is answered by 503 */
	/* If set, the answer is this stream instead of the body; the server closes it. */
	const struct pl_http_stream_ops *stream_ops;
	void *stream;
};

/* Makes the reply a problem document (RFC 9457): status, a stable code for programs, a sentence. */
void pl_http_problem(
	struct pl_http_reply *reply, unsigned int status, const char *code, const char *detail);

typedef void pl_http_handler(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply);

enum pl_http_effort {
	/* Made by the thread for pages. Clients that ask for the same path and query with the same
	 * headers before it begins get the same page. */
	PL_HTTP_PAGE,
	/* on the thread of all connections: must not wait. Streams are of this kind */
	PL_HTTP_QUICK,
	PL_HTTP_ALWAYS, /* as QUICK, and answered even with too many connections */
};

struct pl_http_route {
	const char *path; /* exact; NULL ends a table */
	pl_http_handler *handler;
	void *arg;
	enum pl_http_effort effort;
};

struct pl_http_options {
	const char *listen; /* "127.0.0.1:8400"; port 0 = any free one; NULL: the socket only */
	/* host names of requests that are served beyond its own, n_names of them */
	const char *const *names;
	size_t n_names;
	unsigned int max_connections; /* 0 = 128 */
	unsigned int max_per_address; /* 0 = 16 */
	uint64_t max_body_bytes;      /* of an answer; 0 = 16 MiB */
	/* A Unix socket that serves the same routes; NULL = none. Users who may open the file
	 * (owner and group) have access; a stale file is replaced, one in use is not. */
	const char *socket;
	/* TLS, users and headers of the TCP listener; NULL = plain, without users. The server
	 * always takes it over. The Unix socket is protected by its file's rights alone. */
	struct pl_webconf *security;
};

/* Answers by status, for metrics. */
enum pl_http_code {
	PL_HTTP_200,
	PL_HTTP_400,
	PL_HTTP_401,
	PL_HTTP_403,
	PL_HTTP_404,
	PL_HTTP_405,
	PL_HTTP_413,
	PL_HTTP_414,
	PL_HTTP_429,
	PL_HTTP_431,
	PL_HTTP_500,
	PL_HTTP_503,
	PL_HTTP_CODE_MAX,
};

struct pl_http_counters {
	struct pl_counter answers[PL_HTTP_CODE_MAX];
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "web/http_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_http_stats_list;

struct pl_http;

/* Returns -EINVAL (bad address), -EADDRINUSE and other errors of binding, with diag. */
int pl_http_open(struct pl_http **ret, const struct pl_http_options *options,
	const struct pl_http_route *routes, struct pl_diag *diag);
void pl_http_close(struct pl_http *http);

/* Changes the security without losing a connection: present connections end by the old rules within
 * 30 s. Always takes `security` over; NULL = none. One thread at a time, not the server's. Returns
 * 0, or a negative errno with diag: then nothing has changed. */
int pl_http_secure(struct pl_http *http, struct pl_webconf *security, struct pl_diag *diag);

/* Tells that a stream that had nothing may have something now. Any thread; not after
 * pl_http_close. */
void pl_http_wake(struct pl_http *http);

/* The address for which shares are counted: of IPv6 the /64. */
struct pl_addr pl_http_address_share(const struct pl_addr *address);

/* "127.0.0.1:8400", with the bound port; "" without one. Valid as long as the server. */
const char *pl_http_address(const struct pl_http *http);
/* "https" or "http": of the TCP listener now. For the thread that calls pl_http_secure. */
const char *pl_http_scheme(const struct pl_http *http);
const struct pl_http_counters *pl_http_counters(const struct pl_http *http);
unsigned int pl_http_code_number(enum pl_http_code code);

/* Largest memory of the server, including its answers. */
uint64_t pl_http_memory(const struct pl_http_options *options);
