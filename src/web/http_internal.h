/* SPDX-License-Identifier: BSD-2-Clause */
/* What the HTTP server is made of; for the files of this folder. All of it is the server's
 * thread's, but what is marked. */
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
	/* Pages of full size that slow clients may keep us holding, together. */
	PL_HTTP_BODIES_HELD = 2,
	/* Connections beyond the limit, for what is answered always. */
	PL_HTTP_EXTRA_CONNECTIONS = 32,
	/* What a client is given at once: nobody waits for a large answer of somebody else. */
	PL_HTTP_PIECE_BYTES = 64 * 1024,
};

#define PL_HTTP_HEAD_LIMIT_NS   (UINT64_C(5) * 1000000000u)
#define PL_HTTP_ANSWER_LIMIT_NS (UINT64_C(30) * 1000000000u)
#define PL_HTTP_IDLE_LIMIT_NS   (UINT64_C(30) * 1000000000u)

/*
 * A socket with the library's daemon that serves it. A change of security makes a new one over the
 * same socket; the old one is quiet then: it takes no connection, and is stopped when its last one
 * ends or the time is over.
 */
struct pl_http_listener {
	struct pl_http_listener *next;
	struct pl_http *http;
	struct MHD_Daemon *daemon;
	struct pl_webconf *security; /* its own; NULL = none */
	bool local;                  /* a Unix socket: who can open it may ask */
	uint64_t quiet_by_ns;        /* 0 = in use */
};

/* A client's address (of IPv6 its /64), with what it has now. */
struct pl_http_peer {
	struct pl_http_peer *next, **link;
	struct pl_addr address;
	unsigned int connections;
	uint64_t served; /* when a page was last made for it: a count of pages */
};

enum pl_http_phase {
	PL_HTTP_HEAD,   /* the request's head is not there as a whole */
	PL_HTTP_WORK,   /* the answer is being made */
	PL_HTTP_ANSWER, /* it is being taken */
	PL_HTTP_IDLE,   /* between two requests */
};

struct pl_http_connection {
	struct pl_http *http;
	struct pl_http_connection *next, **link;
	struct pl_http_peer *peer; /* NULL: of the Unix socket */
	struct pl_http_body *body; /* what it is sent; NULL = none, or a short answer */
	uint64_t deadline_ns;      /* monotonic; the connection is ended when it passes */
	uint64_t moved_ns; /* when it came into its phase, or last took a piece of its answer */
	enum pl_http_phase phase;
	int fd;
	bool ended;     /* by us; the library has not closed it yet */
	bool extra;     /* beyond the limit: for what is answered always */
	bool cert_good; /* the client's certificate was looked at */
};

/* A page, made once for everyone who waits for it. */
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
	size_t target_bytes;          /* as it came */
	bool begun;                   /* its head was looked at */
	bool may;                     /* its credentials are good, or none are asked for */
	/* While its page is made (suspended), and when it is there: */
	struct pl_http_page *page;
	struct pl_http_context *page_next;
	struct pl_http_body *body; /* held for it */
	bool failed;               /* there is none: no memory, or the server stops */
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
	unsigned int n_connections; /* without those ended by us */
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

/* http_room.c: connections, their deadlines, and room for the next one. */
void pl_http_on_connection(void *listener, struct MHD_Connection *c, void **context,
	enum MHD_ConnectionNotificationCode what);
/* NULL when there was no memory for it. */
struct pl_http_connection *pl_http_connection_of(struct MHD_Connection *c);
/* limit UINT64_MAX: none. */
void pl_http_set_phase(struct MHD_Connection *c, enum pl_http_phase phase, uint64_t limit_ns);
/* The library closes it when it finds that nothing can be sent. */
void pl_http_end_connection(struct pl_http_connection *k);
/* Whether it is one of those that there may be, perhaps by now. */
bool pl_http_has_place(struct pl_http_connection *k);
/* Whether the client has closed its side. */
bool pl_http_is_gone(int fd);
/* Whether it takes nothing of what there is for it. */
bool pl_http_is_stalled(const struct pl_http_connection *k, uint64_t now_ns);
/* Ends those whose deadline has passed. */
void pl_http_expire(struct pl_http *http);

/* http_pages.c: what takes long is made on a thread of its own, once for all who wait for the
 * same. */
int pl_http_pages_open(struct pl_http *http);
int pl_http_pages_start(struct pl_http *http);
void pl_http_pages_stop(struct pl_http *http); /* the thread; what there is stays */
void pl_http_pages_free(struct pl_http *http); /* when there is no request any more */
/* Suspends the request until pl_http_pages_tick gives it a body. 0, -ENOMEM. */
int pl_http_page_ask(struct pl_http *http, struct MHD_Connection *c, struct pl_http_context *req,
	const struct pl_http_route *route);
/* Hands out what is made, and has the next one made. */
void pl_http_pages_tick(struct pl_http *http);
/* Lets the requests of a listener, NULL = all, go on with nothing. */
void pl_http_pages_end(struct pl_http *http, const struct pl_http_listener *listener);
/* The request is over. */
void pl_http_page_forget(struct pl_http *http, struct pl_http_context *req);
/* Takes a body's memory; NULL without any. */
struct pl_http_body *pl_http_body_new(struct pl_http *http, struct pl_http_reply *reply, bool gzip);
void pl_http_body_release(struct pl_http *http, struct pl_http_body *body);
/* An answer that the client is given piece by piece. Holds the body. */
struct MHD_Response *pl_http_body_begin(
	struct pl_http *http, struct MHD_Connection *c, struct pl_http_body *body);
/* Compresses a body that is worth it in place; whether it did. */
bool pl_http_pack(struct pl_buf *body);

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
