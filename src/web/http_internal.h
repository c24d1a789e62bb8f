/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the HTTP server; for the files of this folder. Everything belongs to the server's
 * thread, unless marked. */
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
	/* Pages of full size that are held for slow clients, together. */
	PL_HTTP_BODIES_HELD = 2,
	/* Connections beyond the limit, for PL_HTTP_ALWAYS routes. */
	PL_HTTP_EXTRA_CONNECTIONS = 32,
	/* Bytes that a client gets at once: no client waits for a large answer of another one. */
	PL_HTTP_PIECE_BYTES = 64 * 1024,
};

#define PL_HTTP_HEAD_LIMIT_NS   (UINT64_C(5) * 1000000000u)
#define PL_HTTP_ANSWER_LIMIT_NS (UINT64_C(30) * 1000000000u)
#define PL_HTTP_IDLE_LIMIT_NS   (UINT64_C(30) * 1000000000u)

/*
 * A socket with the library's daemon that serves it. A change of security makes a new daemon over
 * the same socket; the old one then accepts no further connections, and is stopped when its last
 * one ends or its time is over.
 */
struct pl_http_listener {
	struct pl_http_listener *next;
	struct pl_http *http;
	struct MHD_Daemon *daemon;
	struct pl_webconf *security; /* owned; NULL = none */
	bool local;                  /* a Unix socket: every user who can open it has access */
	uint64_t quiet_by_ns;        /* 0 = in use */
};

/* A client's address (of IPv6 its /64), with its present connections. */
struct pl_http_peer {
	struct pl_http_peer *next, **link;
	struct pl_addr address;
	unsigned int connections;
	uint64_t served; /* when a page was last made for it, as a count of pages */
};

enum pl_http_phase {
	PL_HTTP_HEAD,   /* the request's head is incomplete */
	PL_HTTP_WORK,   /* the answer is being made */
	PL_HTTP_ANSWER, /* the client reads the answer */
	PL_HTTP_IDLE,   /* between two requests */
};

struct pl_http_connection {
	struct pl_http *http;
	struct pl_http_connection *next, **link;
	struct pl_http_peer *peer; /* NULL: on the Unix socket */
	struct pl_http_body *body; /* the answer; NULL = none, or a short one */
	uint64_t deadline_ns;      /* monotonic; time at which the connection is ended */
	uint64_t moved_ns;         /* begin of the phase, or time of the last piece of the answer */
	enum pl_http_phase phase;
	int fd;
	bool ended;     /* ended by us; the library has not closed it yet */
	bool extra;     /* beyond the limit: for PL_HTTP_ALWAYS routes */
	bool cert_good; /* the client's certificate was checked */
};

/* A page, made once for all clients that wait for it. */
struct pl_http_body {
	struct pl_http_body *next, **link;
	char *data;
	size_t len;
	uint64_t made_ns;
	unsigned int holders;
	unsigned int status;
	const char *content_type;
	bool gzip;
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
	size_t target_bytes;          /* bytes of the target as received */
	bool begun;                   /* its head was checked */
	bool may;                     /* its credentials are good, or none are needed */
	/* While its page is made (suspended), and when it is made: */
	struct pl_http_page *page;
	struct pl_http_context *page_next;
	struct pl_http_body *body; /* held for the request */
	bool failed;               /* there is no page: no memory, or the server stops */
	/* While its credentials are checked: */
	struct pl_auth_job *job;
	struct MHD_Connection *connection;
	struct pl_http_context *next, **link;
};

struct pl_http {
	struct pl_http_listener *listeners;
	struct pl_auth *auth;
	struct pl_http_context *pending; /* suspended requests whose credentials are checked */
	pthread_t thread;
	bool running;
	_Atomic bool stop; /* set by pl_http_close */
	int wake_fd;       /* an eventfd; written by any thread */
	struct pl_http_connection *connections;
	unsigned int n_connections; /* without those that we ended */
	struct pl_http_peer *peers;
	struct pl_http_pages *pages;
	struct pl_http_stream *streams;
	struct pl_http_route routes[PL_HTTP_MAX_ROUTES];
	size_t n_routes;
	struct pl_http_hosts hosts;
	char *names[PL_HTTP_MAX_NAMES];
	size_t n_names;
	uint64_t max_body_bytes;
	char address[PL_TCP_TEXT_MAX];
	char *socket_path; /* file to be removed; NULL = none */
	struct pl_http_counters counters;
	unsigned int max_connections, max_per_address;
	bool secure; /* the TCP listener uses TLS */

	/* For pl_http_secure; under `lock`. */
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

/* http_room.c: connections, their deadlines, and room for the next one. */
void pl_http_on_connection(void *listener, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode what);
/* Finds the connection; NULL when there was no memory for it. */
struct pl_http_connection *pl_http_connection_of(struct MHD_Connection *c);
/* limit UINT64_MAX: none. */
void pl_http_set_phase(struct MHD_Connection *c, enum pl_http_phase phase, uint64_t limit_ns);
/* Ends a connection: the library closes it when it finds that nothing can be sent. */
void pl_http_end_connection(struct pl_http_connection *k);
/* Returns true when the connection is within the limit, perhaps only by now. */
bool pl_http_has_place(struct pl_http_connection *k);
/* Returns true when the client has closed its side. */
bool pl_http_is_gone(int fd);
/* Returns true when the client reads nothing of the available bytes. */
bool pl_http_is_stalled(const struct pl_http_connection *k, uint64_t now_ns);
/* Ends connections whose deadline has passed. */
void pl_http_expire(struct pl_http *http);

/* http_pages.c: makes pages on a thread of its own, once for all clients that wait for the same. */
int pl_http_pages_open(struct pl_http *http);
int pl_http_pages_start(struct pl_http *http);
void pl_http_pages_stop(struct pl_http *http); /* ends the thread; finished pages stay */
void pl_http_pages_free(struct pl_http *http); /* when no request is left */
/* Suspends the request until pl_http_pages_tick gives it a body. Returns 0, -ENOMEM. */
int pl_http_page_ask(struct pl_http *http, struct MHD_Connection *c, struct pl_http_context *req,
	const struct pl_http_route *route);
/* Gives finished pages to their requests, and starts the next one. */
void pl_http_pages_tick(struct pl_http *http);
/* Resumes the requests of a listener, NULL = all, without a page. */
void pl_http_pages_end(struct pl_http *http, const struct pl_http_listener *listener);
/* Forgets a request that has ended. */
void pl_http_page_forget(struct pl_http *http, struct pl_http_context *req);
/* Makes a body of the reply's memory; NULL without memory. */
struct pl_http_body *pl_http_body_new(struct pl_http *http, struct pl_http_reply *reply, bool gzip);
/* Begins an answer that the client gets piece by piece. Holds the body. */
struct MHD_Response *pl_http_body_begin(
	struct pl_http *http, struct MHD_Connection *c, struct pl_http_body *body);
/* Compresses a body in place when that is worthwhile. Returns true when it did. */
bool pl_http_pack(struct pl_buf *body);

/* http_stream.c: begins the answer; closes the stream on failure. */
struct MHD_Response *pl_http_stream_begin(struct pl_http_listener *listener,
	struct MHD_Connection *c, const struct pl_http_reply *reply);
/* Continues streams that have data; drops those whose client is gone. */
void pl_http_streams_tick(struct pl_http *http);
/* Ends the streams of a listener, NULL = all, behind their last bytes. */
void pl_http_streams_end(struct pl_http *http, const struct pl_http_listener *listener);

/* http_access.c: access of a request. */
enum pl_http_access {
	PL_HTTP_ACCESS_YES,
	PL_HTTP_ACCESS_WAIT, /* suspended until the credentials are checked */
	PL_HTTP_ACCESS_NO,   /* *ret_refusal has the refusal */
};
struct pl_http_refusal {
	unsigned int status;
	const char *code, *text;
	const char *challenge; /* for WWW-Authenticate; NULL = none */
};
enum pl_http_access pl_http_access(struct pl_http_listener *l, struct MHD_Connection *c,
	struct pl_http_context *req, struct pl_http_refusal *ret_refusal);
/* Continues requests whose credentials are checked. */
void pl_http_access_tick(struct pl_http *http);
/* Continues the requests of a listener, NULL = all, without their checks. */
void pl_http_access_end(struct pl_http *http, const struct pl_http_listener *listener);
/* Forgets a request that has ended. */
void pl_http_access_done(struct pl_http *http, struct pl_http_context *req);

struct pl_addr pl_http_client_address(struct MHD_Connection *c);
