/* SPDX-License-Identifier: BSD-2-Clause */
/* For sender_test.c: a scripted server without a network, a kind of entry for it, and senders to
 * it. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/test.h"
#include "base/test_folder.h"
#include "export/sender.h"

#define MS        UINT64_C(1000000)

#define VALUES    200000
#define IS_BAD(v) ((v) % 1000 == 777)

/* ---- the server ---- */

enum mode {
	FINE,
	AWAY,        /* connection refused */
	REFUSES_BAD, /* 400 if the request has a bad value; nothing of it is stored */
	PARTIAL,     /* 400; all good values are stored */
	ALL_BAD,     /* 400 to every request */
	DOUBTS_BAD,  /* 500 if the request has a bad value */
	ILL,         /* 500 to every request */
	LIMITED,     /* 413 above 200 bytes */
	LOCKED,      /* 401 until credentials are read again */
	BUSY,        /* 503 with Retry-After, once */
	HANGS,       /* no answer until the request is aborted */
};

struct server {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum mode mode;
	bool aborted, fresh_credentials, ordered;
	unsigned int requests, credentials;
	uint64_t busy_ns, back_ns; /* times of the BUSY answer and of the next request */
	uint64_t last;
	uint8_t got[VALUES];
	size_t largest;
};

static struct server server;

static void say(struct pl_http_answer *a, int status, const char *text)
{
	a->status = status;
	a->len = (uint32_t)snprintf(a->body, sizeof(a->body), "%s", text);
}

/* Stores a body's values, one per line, with `bad` the bad ones, too; true: there are bad ones. */
static bool store(const char *body, size_t len, bool bad, bool dry)
{
	bool any = false;

	for (const char *p = body, *end = body + len; p < end;) {
		char *after;
		uint64_t v = strtoull(p + 1, &after, 10);

		any = any || IS_BAD(v);
		if (!dry && (bad || !IS_BAD(v))) {
			server.got[v]++;
			server.ordered = server.ordered && v >= server.last;
			server.last = v;
		}
		p = after + 1;
	}
	return any;
}

static void post(void *arg, const char *body, size_t len, struct pl_http_answer *a)
{
	struct server *s = arg;

	*a = (struct pl_http_answer){ .status = 0 };
	pthread_mutex_lock(&s->lock);
	s->requests++;
	if (len > s->largest)
		s->largest = len;
	if (s->busy_ns != 0 && s->back_ns == 0)
		s->back_ns = pl_clock_mono_ns();
	while (s->mode == HANGS && !s->aborted)
		pthread_cond_wait(&s->wake, &s->lock);
	if (s->aborted) {
		a->error = -ECANCELED;
	} else if (s->mode == AWAY) {
		a->error = -ECONNREFUSED;
		a->len = (uint32_t)snprintf(a->body, sizeof(a->body), "nobody there");
	} else if (s->mode == ALL_BAD || (s->mode == REFUSES_BAD && store(body, len, true, true))) {
		say(a, 400, "bad\001 value\nmore");
	} else if (s->mode == PARTIAL && store(body, len, false, false)) {
		say(a, 400, "partial");
	} else if (s->mode == ILL || (s->mode == DOUBTS_BAD && store(body, len, true, true))) {
		say(a, 500, "internal");
	} else if (s->mode == LIMITED && len > 200) {
		say(a, 413, "too much");
	} else if (s->mode == LOCKED && !s->fresh_credentials) {
		say(a, 401, "who are you");
	} else if (s->mode == BUSY) {
		say(a, 503, "later");
		a->retry_after_ns = 300 * MS;
		s->busy_ns = pl_clock_mono_ns();
		s->mode = FINE;
	} else {
		if (s->mode != PARTIAL)
			store(body, len, true, false);
		a->status = 204;
	}
	pthread_mutex_unlock(&s->lock);
}

static void abort_post(void *arg)
{
	struct server *s = arg;

	pthread_mutex_lock(&s->lock);
	s->aborted = true;
	pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

static int credentials(void *arg, struct pl_diag *diag)
{
	struct server *s = arg;

	(void)diag;
	pthread_mutex_lock(&s->lock);
	s->credentials++;
	s->fresh_credentials = s->credentials >= 2;
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static void free_nothing(void *arg)
{
	(void)arg;
}

static const struct pl_transport transport = { post, abort_post, credentials, free_nothing };

static void become(enum mode mode)
{
	pthread_mutex_lock(&server.lock);
	server.mode = mode;
	pthread_cond_broadcast(&server.wake);
	pthread_mutex_unlock(&server.lock);
}

static void restart(enum mode mode)
{
	pthread_mutex_lock(&server.lock);
	memset(server.got, 0, sizeof(server.got));
	server.requests = server.credentials = 0;
	server.aborted = server.fresh_credentials = false;
	server.ordered = true;
	server.last = server.busy_ns = server.back_ns = server.largest = 0;
	server.mode = mode;
	pthread_mutex_unlock(&server.lock);
}

static bool was_aborted(void)
{
	bool aborted;

	pthread_mutex_lock(&server.lock);
	aborted = server.aborted;
	pthread_mutex_unlock(&server.lock);
	return aborted;
}

/* Returns how many of the values below n were stored `times` (255: at least once). */
static uint64_t stored(uint64_t n, uint8_t times)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&server.lock);
	for (uint64_t i = 0; i < n; i++)
		sum += times == 255 ? server.got[i] > 0 : server.got[i] == times;
	pthread_mutex_unlock(&server.lock);
	return sum;
}

/* ---- the kind ---- */

static int format_event(
	void *format, const struct pl_event *e, uint64_t real_ns, struct pl_buf *out)
{
	(void)format;
	(void)real_ns;
	if (e->seq == 1)
		return -ERANGE;
	if (e->seq == 2)
		return -ENODATA;
	for (unsigned int i = 0; e->seq == 3 && i < 300000; i++)
		pl_buf_chr(out, 'x');
	pl_buf_chr(out, 'v');
	pl_buf_u64(out, e->value);
	pl_buf_chr(out, '\n');
	return 0;
}

static const struct pl_format_ops ops = { .name = "test", .event = format_event };
static const struct pl_format_ops other_ops = { .name = "other", .event = format_event };

/* ---- helpers ---- */

static struct pl_sender_options quick(const char *spool)
{
	return (struct pl_sender_options){
		.name = "test",
		.batch_entries = 100,
		.batch_bytes = 4096,
		.batch_age_ns = MS,
		.memory_bytes = 8 * 4096,
		.spool_path = spool,
		.spool_bytes = 4 << 20,
		.retry_min_ns = MS,
		.retry_max_ns = 8 * MS,
		.hold_ns = 20 * MS,
		.transport = &transport,
		.transport_arg = &server,
	};
}

static struct pl_export *sender(const struct pl_sender_options *o)
{
	struct pl_export *e = NULL;
	struct pl_diag diag = { .text = "" };

	if (pl_sender_open(&e, o, &ops, NULL, pl_clock_mono_ns(), &diag) < 0)
		printf("# %s\n", diag.text);
	return e;
}

static void offer(struct pl_export *e, uint64_t from, uint64_t n)
{
	struct pl_event events[50] = { 0 };

	while (n > 0) {
		uint32_t k = n < 50 ? (uint32_t)n : 50;

		for (uint32_t i = 0; i < k; i++)
			events[i].value = from++;
		pl_export_write_events(e, events, k, pl_clock_mono_ns());
		n -= k;
	}
}

static uint64_t dropped(const struct pl_export *e, enum pl_export_drop cause)
{
	return pl_counter_read(&e->stats.dropped[cause]);
}

/* Checks the account: every entry ever taken is counted in one place. */
static void balanced(const struct pl_export *e, const char *when)
{
	uint64_t sum = pl_counter_read(&e->stats.delivered) + atomic_load(&e->stats.queued) +
		       atomic_load(&e->stats.spooled);

	for (unsigned int c = 0; c < PL_EXPORT_DROP_MAX; c++)
		sum += dropped(e, c);
	eq(sum, pl_counter_read(&e->stats.accepted) + pl_counter_read(&e->stats.recovered),
		"%s: the accounts are closed", when);
}

/* After it, the server's state does not change and may be read without its lock. */
static bool drained(struct pl_export *e)
{
	bool all;

	pl_export_flush(e, pl_clock_mono_ns(), false);
	all = eventually(atomic_load(&e->stats.queued) == 0 && atomic_load(&e->stats.spooled) == 0,
		pl_export_flush(e, pl_clock_mono_ns(), false));
	pthread_mutex_lock(&server.lock);
	pthread_mutex_unlock(&server.lock);
	return all;
}

static unsigned int requests_made(void)
{
	unsigned int n;

	pthread_mutex_lock(&server.lock);
	n = server.requests;
	pthread_mutex_unlock(&server.lock);
	return n;
}

static bool requests(unsigned int n)
{
	return eventually(requests_made() >= n);
}

static unsigned int lines_with(const char *path, const char *text)
{
	char *data;
	size_t len;
	unsigned int n = 0;

	if (pl_file_read(path, 1 << 24, &data, &len) < 0)
		return 0;
	for (char *p = data; (p = strstr(p, text)) != NULL; p++)
		n++;
	free(data);
	return n;
}
