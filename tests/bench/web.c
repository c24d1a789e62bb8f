/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a health check takes while others hold the web server up: a new connection on loopback,
 * GET /healthz, and the whole answer. The server is the one of `pathline run` with /healthz and a
 * /metrics of 4 MiB, and room for all connections.
 *
 *   alone        nobody else is there
 *   idle-1000    1000 connections stay open after a request each
 *   scrapers-100 as many clients fetch /metrics, each again when it has the page; the load is pages
 *   stalled-8    as many clients asked for /metrics and read nothing of it
 *
 * The ceiling of the others is `alone`: a user wants to know by how much others delay a health
 * check, and a least answer over loopback would tell mostly what a connection costs. All alternate.
 * The scrapers are one thread of this process, which the server shares its processors with.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/thread.h"
#include "tests/bench/bench.h"
#include "tests/bench/paced.h"
#include "tests/bench/priority.h"
#include "web/http.h"

enum { IDLE = 1000, SCRAPERS = 100, STALLED = 8, PROBES_MIN = 25, PROBES_MAX = 200000 };

#define PAGE_BYTES   ((size_t)4 << 20)
#define ANSWER_BYTES (2 * PAGE_BYTES)
#define DESCRIPTORS  (2 * (IDLE + SCRAPERS) + 256)

static const char ask_health[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char ask_health_once[] =
	"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
static const char ask_page[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct web_bench {
	struct pl_http *http;
	struct sockaddr_in address;
	char *text;        /* ANSWER_BYTES + 1: an answer */
	size_t page_bytes; /* bytes of an answer with the page */
	int fds[IDLE];     /* of whoever is there beside the probes */
	uint32_t n_fds;
	pthread_t thread; /* of the scrapers */
	int poll, error;
	atomic_bool stop;
	size_t left[SCRAPERS]; /* bytes that each still has to read */
	uint64_t pages;
};

/* ---- the server ---- */

static void page_health(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	(void)arg;
	(void)request;
	pl_buf_str(&reply->body, "ok\n");
}

static void page_metrics(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	(void)arg;
	(void)request;
	for (uint32_t i = 0; reply->body.len < PAGE_BYTES; i++)
		pl_buf_printf(&reply->body,
			"pathline_queue_packets_total{node=\"%u\",port=\"%u\",queue=\"0\"} %u\n",
			i / 64, i % 64, i * 7919);
}

static int open_server(struct web_bench *b, struct pl_diag *diag)
{
	static const struct pl_http_route routes[] = {
		{ "/healthz", page_health, NULL, PL_HTTP_ALWAYS },
		{ "/metrics", page_metrics, NULL, PL_HTTP_PAGE },
		{ 0 },
	};
	const struct pl_http_options options = { .listen = "127.0.0.1:0",
		.max_connections = IDLE + SCRAPERS,
		.max_per_address = IDLE + SCRAPERS };
	int r = pl_http_open(&b->http, &options, routes, diag);

	if (r < 0)
		return r;
	b->address.sin_family = AF_INET;
	b->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	b->address.sin_port = htons((uint16_t)atoi(strrchr(pl_http_address(b->http), ':') + 1));
	return 0;
}

/* ---- clients ---- */

/* A connection with its request. room: of its socket for what comes; 0: as usual. */
static int ask(const struct web_bench *b, const char *request, int room)
{
	const struct timeval patience = { .tv_sec = 60 };
	const size_t n = strlen(request);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (room > 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (connect(fd, (const struct sockaddr *)&b->address, sizeof(b->address)) < 0)
		r = -errno;
	else if (send(fd, request, n, MSG_NOSIGNAL) != (ssize_t)n)
		r = -EIO;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

/* Bytes of the answer, which is whole and good; 0: it is not. */
static size_t take_answer(struct web_bench *b, int fd)
{
	size_t have = 0, want = ANSWER_BYTES;

	while (have < want) {
		ssize_t n = recv(fd, b->text + have, want - have, 0);
		const char *body, *length;

		if (n <= 0)
			return 0;
		have += (size_t)n;
		if (want < ANSWER_BYTES)
			continue;
		b->text[have] = '\0';
		body = strstr(b->text, "\r\n\r\n");
		length = strstr(b->text, "Content-Length: ");
		if (body != NULL && length != NULL)
			want = (size_t)(body + 4 - b->text) + strtoull(length + 16, NULL, 10);
	}
	return strncmp(b->text, "HTTP/1.1 200 ", 13) == 0 ? have : 0;
}

/* Probes for the budget, at times that have nothing to do with anybody's clock. */
static int probe_for(struct web_bench *b, uint64_t budget_ns, struct pl_bench_times *times)
{
	const uint64_t start = pl_clock_mono_ns();
	uint32_t pause = 12345, n = 0;

	while ((n < PROBES_MIN || pl_clock_mono_ns() - start < budget_ns) &&
		times->n < PROBES_MAX) {
		const uint64_t begin = pl_clock_mono_ns();
		int fd = ask(b, ask_health_once, 0);

		if (fd < 0)
			return fd;
		if (take_answer(b, fd) > 0)
			times->ns[times->n++] = pl_clock_mono_ns() - begin;
		else
			times->lost++;
		close(fd);
		n++;
		pl_bench_doze(&pause);
	}
	return 0;
}

static int open_clients(struct web_bench *b, uint32_t n, const char *request, int room)
{
	for (b->n_fds = 0; b->n_fds < n; b->n_fds++) {
		b->fds[b->n_fds] = ask(b, request, room);
		if (b->fds[b->n_fds] < 0)
			return b->fds[b->n_fds];
	}
	return 0;
}

static void close_clients(struct web_bench *b)
{
	while (b->n_fds > 0)
		close(b->fds[--b->n_fds]);
}

/* ---- who is there beside the probes ---- */

static int nobody(struct web_bench *b)
{
	(void)b;
	return 0;
}

static int idle(struct web_bench *b)
{
	int r = open_clients(b, IDLE, ask_health, 0);

	for (uint32_t i = 0; r == 0 && i < IDLE; i++)
		r = take_answer(b, b->fds[i]) > 0 ? 0 : -EIO;
	return r;
}

static int stalled(struct web_bench *b)
{
	int r = open_clients(b, STALLED, ask_page, 4096);
	char byte;

	/* The page is made, and on its way. */
	for (uint32_t i = 0; r == 0 && i < STALLED; i++)
		r = recv(b->fds[i], &byte, 1, MSG_PEEK) == 1 ? 0 : -EIO;
	return r;
}

/* Reads what there is of a page; behind its end the scraper asks again. */
static int scrape(struct web_bench *b, uint32_t i, char *room, size_t bytes)
{
	ssize_t n = recv(b->fds[i], room, bytes < b->left[i] ? bytes : b->left[i], MSG_DONTWAIT);

	if (n <= 0)
		return n < 0 && errno == EAGAIN ? 0 : -EIO;
	b->left[i] -= (size_t)n;
	if (b->left[i] > 0)
		return 0;
	b->pages++;
	b->left[i] = b->page_bytes;
	n = (ssize_t)(sizeof(ask_page) - 1);
	return send(b->fds[i], ask_page, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -EIO;
}

static void *scrape_on(void *arg)
{
	static char room[256 << 10];
	struct epoll_event events[SCRAPERS];
	struct web_bench *b = arg;

	while (b->error == 0 && !atomic_load(&b->stop)) {
		int n = epoll_wait(b->poll, events, SCRAPERS, 100);

		for (int i = 0; b->error == 0 && i < n; i++)
			b->error = scrape(b, events[i].data.u32, room, sizeof(room));
	}
	return NULL;
}

static int scrapers(struct web_bench *b)
{
	int r = open_clients(b, SCRAPERS, ask_page, 0);

	b->poll = epoll_create1(EPOLL_CLOEXEC);
	if (r == 0 && b->poll < 0)
		r = -errno;
	for (uint32_t i = 0; r == 0 && i < SCRAPERS; i++) {
		b->left[i] = b->page_bytes;
		r = epoll_ctl(b->poll, EPOLL_CTL_ADD, b->fds[i],
			&(struct epoll_event){ .events = EPOLLIN, .data.u32 = i });
	}
	atomic_store(&b->stop, false);
	if (r == 0)
		r = pl_thread_start(&b->thread, "bench-scrapers", scrape_on, b);
	if (r < 0 && b->poll >= 0)
		close(b->poll);
	return r;
}

static void end_scrapers(struct web_bench *b)
{
	atomic_store(&b->stop, true);
	(void)pthread_join(b->thread, NULL);
	close(b->poll);
}

/* ---- all of it ---- */

struct situation {
	const char *name;
	int (*begin)(struct web_bench *b);
	void (*end)(struct web_bench *b); /* after a begin that worked; or NULL */
};

static const struct situation situations[] = {
	{ "web/alone", nobody, NULL },
	{ "web/idle-1000", idle, NULL },
	{ "web/scrapers-100", scrapers, end_scrapers },
	{ "web/stalled-8", stalled, NULL },
};

enum { SITUATIONS = sizeof(situations) / sizeof(situations[0]) };

static int measure_one(struct pl_bench_ctx *ctx, struct web_bench *b, const struct situation *s,
	struct pl_bench_times *times)
{
	int r = s->begin(b);

	if (r == 0) {
		r = probe_for(b, pl_bench_run_ns(ctx), times);
		if (s->end != NULL)
			s->end(b);
	}
	close_clients(b);
	return r < 0 ? r : b->error;
}

static int measure(struct pl_bench_ctx *ctx, struct web_bench *b, struct pl_bench_times *times)
{
	uint64_t scraping_ns = 0;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < pl_bench_pairs(ctx) * SITUATIONS; i++) {
		const uint64_t start = pl_clock_mono_ns();
		const unsigned int k = i % SITUATIONS;

		if (pl_bench_wanted(ctx, situations[k].name))
			r = measure_one(ctx, b, &situations[k], &times[k]);
		if (situations[k].begin == scrapers) {
			scraping_ns += pl_clock_mono_ns() - start;
			times[k].load_of = "pages";
			times[k].load_rate = (double)b->pages * 1e9 / (double)scraping_ns;
		}
	}
	for (unsigned int k = 0; r == 0 && k < SITUATIONS; k++)
		r = pl_bench_times(ctx, &times[k]);
	return r;
}

static int prepare(struct web_bench *b, struct pl_bench_times *times, struct pl_diag *diag)
{
	struct rlimit limit;
	int r, fd;

	b->text = malloc(ANSWER_BYTES + 1);
	for (unsigned int k = 0; k < SITUATIONS; k++) {
		times[k].name = situations[k].name;
		times[k].ns = calloc(PROBES_MAX, sizeof(uint64_t));
		if (times[k].ns == NULL || b->text == NULL)
			return -ENOMEM;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < DESCRIPTORS) {
		limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	r = open_server(b, diag);
	if (r < 0)
		return r;
	fd = ask(b, ask_page, 0);
	if (fd < 0)
		return fd;
	b->page_bytes = take_answer(b, fd);
	close(fd);
	return b->page_bytes > 0 ? 0 : -EIO;
}

/* The server let all clients be: otherwise the figures are of something else. */
static int undisturbed(const struct web_bench *b, struct pl_diag *diag)
{
	const struct pl_http_counters *c = pl_http_counters(b->http);

	if (pl_counter_read(&c->ended) + pl_counter_read(&c->expired) +
			pl_counter_read(&c->refused) ==
		0)
		return 0;
	pl_diag_set(diag, "the server ended or refused a connection that was to stay");
	return -ECONNRESET;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct pl_bench_times times[SITUATIONS] = { 0 };
	struct web_bench *b = calloc(1, sizeof(*b));
	struct pl_diag diag = { .text = "" };
	struct pl_bench_priority before;
	int r = b == NULL ? -ENOMEM : 0;

	pl_bench_raise(&before);
	if (r == 0)
		r = prepare(b, times, &diag);
	if (r == 0)
		r = measure(ctx, b, times);
	if (r == 0)
		r = undisturbed(b, &diag);
	if (b != NULL) {
		pl_http_close(b->http);
		free(b->text);
	}
	for (unsigned int k = 0; k < SITUATIONS; k++)
		free(times[k].ns);
	free(b);
	pl_bench_restore(&before);
	if (r < 0)
		pl_complain("benchmark web: %s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	return r;
}

const struct pl_bench pl_bench_web = {
	.name = "web",
	.summary =
		"connect, GET /healthz, whole answer: alone; beside 1000 idle connections, 100 scrapers, 8 stalled readers",
	.run = run,
};
