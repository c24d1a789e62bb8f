/* SPDX-License-Identifier: BSD-2-Clause */
/* What the HTTP server is made of; for the files of this folder. All of it is the server's thread's, but what is
 * marked. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include "base/num.h"
#include "netio/tcp.h"

#include "web/auth.h"
#include "web/http.h"

enum {
	PL_HTTP_MAX_HEADER_BYTES = 8192,
	PL_HTTP_MAX_ROUTES = 32,
	PL_HTTP_MAX_NAMES = 34,
	PL_HTTP_BODIES_HELD =
		2, /* answers of full size that slow clients may keep us holding, together */
};

#define PL_HTTP_HEAD_LIMIT_NS   (UINT64_C(5) * 1000000000u)
#define PL_HTTP_ANSWER_LIMIT_NS (UINT64_C(30) * 1000000000u)
#define PL_HTTP_IDLE_LIMIT_NS   (UINT64_C(30) * 1000000000u)

/*
 * A socket with the library's daemon that serves it. A change of security makes a new one over the same socket; the
 * old one is quiet then: it takes no connection, and is stopped when its last one ends or the time is over.
 */
struct pl_http_listener {
	struct pl_http_listener *next;
	struct pl_http *http;
	struct MHD_Daemon *daemon;
	struct pl_webconf *security; /* its own; NULL = none */
	bool local;                  /* a Unix socket: who can open it may ask */
	uint64_t quiet_by_ns;        /* 0 = in use */
};

struct pl_http_connection {
	struct pl_http *http;
	struct pl_http_connection *next, **link;
	uint64_t deadline_ns; /* monotonic; the connection is ended when it passes */
	int fd;
	bool expired;
	bool cert_good; /* the client's certificate was looked at */
};

struct pl_http_stream {
	struct pl_http_listener *listener;
	struct MHD_Connection *connection;
	struct pl_http_stream *next, **link;
	const struct pl_http_stream_ops *ops;
	void *stream;
	bool suspended, ending;
};

/* One request; the library keeps it between its calls. */
struct pl_http_context {
	struct pl_http_target target; /* path "" = refused */
	uint64_t held_bytes;
	bool begun; /* its head was looked at */
	bool may;   /* its credentials are good, or none are asked for */
	/* While they are checked: */
	struct pl_auth_job *job;
	struct MHD_Connection *connection;
	struct pl_http_context *next, **link;
};

struct pl_http {
	struct pl_http_listener *listeners;
	struct pl_auth *auth;
	struct pl_http_context *pending; /* requests whose credentials are checked; suspended */
	pthread_t thread;
	bool running;
	_Atomic bool stop; /* set by pl_http_close */
	int wake_fd;       /* an eventfd; written by any thread */
	struct pl_http_connection *connections;
	struct pl_http_stream *streams;
	struct pl_http_route routes[PL_HTTP_MAX_ROUTES];
	size_t n_routes;
	struct pl_http_hosts hosts;
	char *names[PL_HTTP_MAX_NAMES];
	size_t n_names;
	uint64_t max_body_bytes;
	uint64_t held_bytes; /* answers not yet taken by their clients */
	char address[PL_TCP_TEXT_MAX];
	char *socket_path; /* to be removed; NULL = none */
	struct pl_http_counters counters;
	unsigned int max_connections, max_per_address;
	bool secure; /* the TCP listener speaks TLS */

	/* pl_http_secure's; under `lock`. */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool asked;
	struct pl_webconf *wanted;
	int answer;
};

/* The library's callbacks about requests (http_request.c). */
void *pl_http_on_target(void *listener, const char *uri, struct MHD_Connection *c);
void pl_http_on_done(void *listener, struct MHD_Connection *c, void **context,
	enum MHD_RequestTerminationCode why);
enum MHD_Result pl_http_on_request(void *listener, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len,
	void **context);

/* UINT64_MAX: none. */
void pl_http_set_deadline(struct MHD_Connection *c, uint64_t limit_ns);

/* http_stream.c: begins the answer; closes the stream when it cannot. */
struct MHD_Response *pl_http_stream_begin(struct pl_http_listener *listener,
	struct MHD_Connection *c, const struct pl_http_reply *reply);
/* Goes on with those that have something; lets go of those whose client is gone. */
void pl_http_streams_tick(struct pl_http *http);
/* Ends those of a listener, NULL = all, at what they have said. */
void pl_http_streams_end(struct pl_http *http, const struct pl_http_listener *listener);

/* http_access.c: whether the request may be served. */
enum pl_http_access {
	PL_HTTP_ACCESS_YES,
	PL_HTTP_ACCESS_WAIT, /* suspended until the credentials are checked */
	PL_HTTP_ACCESS_NO,   /* *ret_refusal says how to refuse */
};
struct pl_http_refusal {
	unsigned int status;
	const char *code, *text;
	const char *challenge; /* of WWW-Authenticate; NULL = none */
};
enum pl_http_access pl_http_access(struct pl_http_listener *l, struct MHD_Connection *c,
	struct pl_http_context *req, struct pl_http_refusal *ret_refusal);
/* Goes on with requests whose credentials are checked; `all`: with every one, for the end. */
void pl_http_access_tick(struct pl_http *http, bool all);
/* The request is over. */
void pl_http_access_done(struct pl_http *http, struct pl_http_context *req);

struct pl_addr pl_http_client_address(struct MHD_Connection *c);
