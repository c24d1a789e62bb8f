/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages: made on a thread of their own, one at a time, each once for all clients that wait for the
 * same, and held until the last of them has read it. The thread of connections chooses the next
 * page, and passes it on under `lock`; everything else belongs to the thread of connections.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "web/http_internal.h"

/* When there is no room for another page, readers that make progress are dropped too after this
 * time. */
#define PATIENCE_NS (UINT64_C(5) * 1000000000u)

/* A requested page. */
struct pl_http_page {
	struct pl_http_page *next;
	const struct pl_http_route *route;
	struct pl_http_context *waiting;
	char *accept; /* NULL = none */
	char query[PL_HTTP_QUERY_MAX];
	struct pl_addr client;
	struct pl_http_reply reply;
	bool gzip; /* gzip is requested; later: was done */
};

struct pl_http_pages {
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under `lock`: */
	struct pl_http_page *making, *made;
	bool stop;

	/* Of the thread of connections: */
	struct pl_http_page *asked, **last;
	struct pl_http_page *current; /* being made, or made and not given to its requests yet */
	uint64_t n_made;              /* clock of the peers' turns */
	struct pl_http_body *bodies;  /* the newest first */
	uint64_t held_bytes;
};

/* ---- bodies ---- */

struct pl_http_body *pl_http_body_new(struct pl_http *h, struct pl_http_reply *reply, bool gzip)
{
	struct pl_http_pages *pages = h->pages;
	struct pl_http_body *b = calloc(1, sizeof(*b));
	char *fits;

	if (b == NULL) {
		pl_buf_done(&reply->body);
		return NULL;
	}
	*b = (struct pl_http_body){ .data = reply->body.data,
		.len = reply->body.len,
		.made_ns = pl_clock_mono_ns(),
		.status = reply->status,
		.content_type = reply->content_type,
		.gzip = gzip,
		.next = pages->bodies,
		.link = &pages->bodies };
	/* Buffers double: they are shrunk, so that the memory held is the memory counted. */
	fits = b->len > 0 ? realloc(b->data, b->len) : NULL;
	if (fits != NULL)
		b->data = fits;
	reply->body.data = NULL;
	pl_buf_done(&reply->body);
	if (b->next != NULL)
		b->next->link = &b->next;
	pages->bodies = b;
	pages->held_bytes += b->len;
	b->holders = 1;
	return b;
}

static void release_body(struct pl_http *h, struct pl_http_body *b)
{
	if (b == NULL || --b->holders > 0)
		return;
	*b->link = b->next;
	if (b->next != NULL)
		b->next->link = b->link;
	h->pages->held_bytes -= b->len;
	free(b->data);
	free(b);
}

/* A connection that reads a body. */
struct taker {
	struct pl_http *http;
	struct MHD_Connection *connection;
	struct pl_http_body *body;
};

static ssize_t take_piece(void *arg, uint64_t pos, char *dst, size_t cap)
{
	struct taker *t = arg;
	size_t n = t->body->len - (size_t)pos;

	if (n == 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n > cap)
		n = cap;
	memcpy(dst, t->body->data + pos, n);
	if (pos > 0) {
		struct pl_http_connection *k = pl_http_connection_of(t->connection);

		if (k != NULL)
			k->moved_ns = pl_clock_mono_ns();
	}
	return (ssize_t)n;
}

static void taken(void *arg)
{
	struct taker *t = arg;
	struct pl_http_connection *k = pl_http_connection_of(t->connection);

	if (k != NULL && k->body == t->body)
		k->body = NULL;
	release_body(t->http, t->body);
	free(t);
}

struct MHD_Response *pl_http_body_begin(
	struct pl_http *h, struct MHD_Connection *c, struct pl_http_body *b)
{
	struct pl_http_connection *k = pl_http_connection_of(c);
	struct MHD_Response *response;
	struct taker *t;

	if (b->len == 0)
		return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	*t = (struct taker){ .http = h, .connection = c, .body = b };
	response = MHD_create_response_from_callback(b->len,
		b->len < PL_HTTP_PIECE_BYTES ? b->len : PL_HTTP_PIECE_BYTES, take_piece, t, taken);
	if (response == NULL) {
		free(t);
		return NULL;
	}
	b->holders++;
	if (k != NULL)
		k->body = b;
	return response;
}

/* ---- room for the next page ---- */

struct held {
	bool stalled;       /* all its readers read nothing */
	unsigned int share; /* the smallest number of connections of an address among its readers */
};

static struct held look_at(const struct pl_http *h, const struct pl_http_body *b, uint64_t now)
{
	struct held ret = { .stalled = true, .share = UINT32_MAX };

	for (const struct pl_http_connection *k = h->connections; k != NULL; k = k->next) {
		unsigned int share = k->peer != NULL ? k->peer->connections : 1;

		if (k->body != b || k->ended)
			continue;
		ret.stalled &= pl_http_is_stalled(k, now);
		if (share < ret.share)
			ret.share = share;
	}
	return ret;
}

/* Ends the readers of a body: of one whose readers stall, or have had it for long; of addresses
 * with most connections, the oldest. */
static void let_go_of_one(struct pl_http *h)
{
	uint64_t now = pl_clock_mono_ns();
	const struct pl_http_body *best = NULL;
	struct held of_best = { .stalled = false };

	for (const struct pl_http_body *b = h->pages->bodies; b != NULL; b = b->next) {
		struct held x = look_at(h, b, now);

		/* No reader is left: the body is freed when the library releases it. */
		if (x.share == UINT32_MAX)
			return;
		if (!x.stalled && now - b->made_ns < PATIENCE_NS)
			continue;
		/* The oldest body is last. */
		if (best == NULL || x.stalled > of_best.stalled ||
			(x.stalled == of_best.stalled && x.share >= of_best.share)) {
			best = b;
			of_best = x;
		}
	}
	for (struct pl_http_connection *k = h->connections; best != NULL && k != NULL;
		k = k->next) {
		if (k->body == best && !k->ended) {
			pl_count(&h->counters.ended, 1);
			pl_http_end_connection(k);
		}
	}
}

/* ---- asking ---- */

static void free_page(struct pl_http_page *p)
{
	pl_buf_done(&p->reply.body);
	free(p->accept);
	free(p);
}

static struct pl_http_page *page_new(struct pl_http_context *req, const struct pl_http_route *route,
	const char *accept, bool gzip, struct pl_addr client)
{
	struct pl_http_page *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->route = route;
	p->client = client;
	p->gzip = gzip;
	memcpy(p->query, req->target.query, sizeof(p->query));
	p->accept = accept != NULL ? strdup(accept) : NULL;
	if (accept != NULL && p->accept == NULL) {
		free(p);
		return NULL;
	}
	pl_buf_init(&p->reply.body);
	return p;
}

int pl_http_page_ask(struct pl_http *h, struct MHD_Connection *c, struct pl_http_context *req,
	const struct pl_http_route *route)
{
	struct pl_http_pages *pages = h->pages;
	const char *accept =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool gzip = pl_http_wants_gzip(
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING));
	struct pl_http_page *p = pages->asked;

	while (p != NULL && !(p->route == route && p->gzip == gzip &&
				    strcmp(p->query, req->target.query) == 0 &&
				    pl_text_same(p->accept, accept)))
		p = p->next;
	if (p == NULL) {
		p = page_new(req, route, accept, gzip, pl_http_client_address(c));
		if (p == NULL)
			return -ENOMEM;
		*pages->last = p;
		pages->last = &p->next;
	}
	req->page = p;
	req->page_next = p->waiting;
	req->connection = c;
	p->waiting = req;
	pl_http_set_phase(c, PL_HTTP_WORK, UINT64_MAX);
	MHD_suspend_connection(c);
	return 0;
}

void pl_http_page_forget(struct pl_http *h, struct pl_http_context *req)
{
	struct pl_http_context **link;

	if (req->page != NULL) {
		for (link = &req->page->waiting; *link != req; link = &(*link)->page_next)
			assert(*link != NULL);
		*link = req->page_next;
		req->page = NULL;
	}
	release_body(h, req->body);
	req->body = NULL;
}

/* ---- making ---- */

/* Time at which one of its clients was served last. */
static uint64_t turn_of(const struct pl_http_page *p)
{
	uint64_t least = UINT64_MAX;

	for (const struct pl_http_context *w = p->waiting; w != NULL; w = w->page_next) {
		const struct pl_http_connection *k = pl_http_connection_of(w->connection);
		uint64_t turn = k != NULL && k->peer != NULL ? k->peer->served : 0;

		if (turn < least)
			least = turn;
	}
	return least;
}

static struct pl_http_page *take_out(struct pl_http_pages *pages, struct pl_http_page **at)
{
	struct pl_http_page *p = *at;

	*at = p->next;
	if (p->next == NULL)
		pages->last = at;
	p->next = NULL;
	return p;
}

/* Removes pages that no client waits for any more. */
static void drop_unwanted(struct pl_http_pages *pages)
{
	for (struct pl_http_page **at = &pages->asked; *at != NULL;) {
		if ((*at)->waiting == NULL)
			free_page(take_out(pages, at));
		else
			at = &(*at)->next;
	}
}

/* Chooses the next page: the first of the address that was served longest ago. */
static struct pl_http_page *choose(struct pl_http_pages *pages)
{
	struct pl_http_page **best = &pages->asked;

	for (struct pl_http_page **at = &pages->asked; *at != NULL; at = &(*at)->next) {
		if (turn_of(*at) < turn_of(*best))
			best = at;
	}
	return take_out(pages, best);
}

static void make(struct pl_http *h, struct pl_http_page *p)
{
	const struct pl_http_request request = {
		.path = p->route->path, .query = p->query, .accept = p->accept, .client = p->client
	};

	p->reply.status = 200;
	p->reply.content_type = "text/plain; charset=utf-8";
	p->reply.body.limit = h->max_body_bytes;
	p->route->handler(p->route->arg, &request, &p->reply);
	assert(p->reply.stream_ops == NULL);
	p->gzip = p->gzip && pl_http_pack(&p->reply.body);
}

static void *make_loop(void *arg)
{
	struct pl_http *h = arg;
	struct pl_http_pages *pages = h->pages;

	pthread_mutex_lock(&pages->lock);
	for (;;) {
		struct pl_http_page *p = pages->making;

		if (pages->stop)
			break;
		if (p == NULL) {
			pthread_cond_wait(&pages->changed, &pages->lock);
			continue;
		}
		pthread_mutex_unlock(&pages->lock);
		make(h, p);
		pthread_mutex_lock(&pages->lock);
		pages->making = NULL;
		pages->made = p;
		pl_http_wake(h);
	}
	pthread_mutex_unlock(&pages->lock);
	return NULL;
}

/* ---- handing out ---- */

/* Resumes a request that waits for a page, with this body; NULL: none. */
static void go_on(struct pl_http *h, struct pl_http_context *w, struct pl_http_body *b)
{
	struct pl_http_connection *k = pl_http_connection_of(w->connection);

	w->page = NULL;
	w->body = b;
	w->failed = b == NULL;
	if (b != NULL)
		b->holders++;
	if (k != NULL && k->peer != NULL)
		k->peer->served = h->pages->n_made;
	pl_http_set_phase(w->connection, PL_HTTP_ANSWER, PL_HTTP_ANSWER_LIMIT_NS);
	MHD_resume_connection(w->connection);
}

static void hand_out(struct pl_http *h, struct pl_http_page *p)
{
	struct pl_http_body *b = NULL;
	struct pl_http_context *w;

	if (p->reply.body.failed) {
		pl_buf_done(&p->reply.body);
		p->gzip = false;
		pl_http_problem(&p->reply, 503, "too_large",
			"The answer is larger than the configured limit.");
	}
	if (!p->reply.body.failed)
		b = pl_http_body_new(h, &p->reply, p->gzip);
	h->pages->n_made++;
	while ((w = p->waiting) != NULL) {
		p->waiting = w->page_next;
		go_on(h, w, b);
	}
	release_body(h, b);
	free_page(p);
}

void pl_http_pages_tick(struct pl_http *h)
{
	struct pl_http_pages *pages = h->pages;
	struct pl_http_page *made;

	if (pages->current != NULL) {
		pthread_mutex_lock(&pages->lock);
		made = pages->made;
		pages->made = NULL;
		pthread_mutex_unlock(&pages->lock);
		if (made == NULL)
			return;
		pages->current = NULL;
		hand_out(h, made);
	}
	drop_unwanted(pages);
	if (pages->asked == NULL)
		return;
	if (pages->held_bytes >= PL_HTTP_BODIES_HELD * h->max_body_bytes) {
		let_go_of_one(h);
		return;
	}
	pages->current = choose(pages);
	pthread_mutex_lock(&pages->lock);
	pages->making = pages->current;
	pthread_cond_signal(&pages->changed);
	pthread_mutex_unlock(&pages->lock);
}

static void end_page(struct pl_http *h, struct pl_http_page *p, const struct MHD_Daemon *daemon)
{
	for (struct pl_http_context **link = &p->waiting; *link != NULL;) {
		struct pl_http_context *w = *link;
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(w->connection, MHD_CONNECTION_INFO_DAEMON);

		if (daemon != NULL && info->daemon != daemon) {
			link = &w->page_next;
			continue;
		}
		*link = w->page_next;
		go_on(h, w, NULL);
	}
}

void pl_http_pages_end(struct pl_http *h, const struct pl_http_listener *l)
{
	const struct MHD_Daemon *daemon = l != NULL ? l->daemon : NULL;

	if (h->pages->current != NULL)
		end_page(h, h->pages->current, daemon);
	for (struct pl_http_page *p = h->pages->asked; p != NULL; p = p->next)
		end_page(h, p, daemon);
}

/* ---- life ---- */

int pl_http_pages_open(struct pl_http *h)
{
	struct pl_http_pages *pages = calloc(1, sizeof(*pages));

	if (pages == NULL)
		return -ENOMEM;
	pages->last = &pages->asked;
	pthread_mutex_init(&pages->lock, NULL);
	pthread_cond_init(&pages->changed, NULL);
	h->pages = pages;
	return 0;
}

int pl_http_pages_start(struct pl_http *h)
{
	int r = pl_thread_start(&h->pages->thread, "pl-pages", make_loop, h);

	if (r < 0)
		return r;
	h->pages->running = true;
	return 0;
}

void pl_http_pages_stop(struct pl_http *h)
{
	struct pl_http_pages *pages = h->pages;

	if (pages == NULL || !pages->running)
		return;
	pthread_mutex_lock(&pages->lock);
	pages->stop = true;
	pthread_cond_signal(&pages->changed);
	pthread_mutex_unlock(&pages->lock);
	pthread_join(pages->thread, NULL);
	pages->running = false;
}

void pl_http_pages_free(struct pl_http *h)
{
	struct pl_http_pages *pages = h->pages;

	if (pages == NULL)
		return;
	if (pages->current != NULL)
		free_page(pages->current);
	while (pages->asked != NULL)
		free_page(take_out(pages, &pages->asked));
	pthread_cond_destroy(&pages->changed);
	pthread_mutex_destroy(&pages->lock);
	free(pages);
	h->pages = NULL;
}
