/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads share one lock: the output's, which formats and puts entries, and the sender's own,
 * which makes requests without holding the lock. It is held for memory work and for calls on the
 * local disk, never for the network. Each counter changes together with what it counts, under the
 * lock.
 */
#include "export/sender.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "export/sender_state.h"

#define SYNC_NS (UINT64_C(1) * 1000000000u)

static struct sender *self(struct pl_export *e)
{
	return (struct sender *)e;
}

_Static_assert(offsetof(struct sender, export) == 0, "a driver begins with the common part");

/* ---- the output's thread ---- */

/* Makes an entry of the chunk that a formatter appended to h, or removes it. */
static void settle_chunk(struct sender *s, struct held *h, size_t before, int r)
{
	s->entered++;
	if (r == 0 && !h->text.failed && h->text.len > before) {
		h->ends[h->n++] = (uint32_t)h->text.len;
		s->queued++;
		/* The sender's thread sleeps until the batch is old enough. */
		if (h->n == 1)
			pthread_cond_signal(&s->wake);
		return;
	}
	if (r == 0)
		r = h->text.failed ? -E2BIG : -ENODATA;
	h->text.len = before;
	h->text.failed = false;
	pl_sender_drop(s,
		r == -ERANGE    ? PL_EXPORT_TIME
		: r == -ENODATA ? PL_EXPORT_EMPTY
				: PL_EXPORT_FORMAT,
		1);
}

static void sender_write_paths(
	struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	struct sender *s = self(e);
	uint64_t real_ns = pl_clock_real_ns();

	if (s->ops->path == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	pl_count(&e->stats.accepted, batch->n_paths);
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		struct held *h = pl_sender_room(s, now_ns);
		size_t before = h->text.len;

		settle_chunk(s, h, before,
			s->ops->path(s->format, &batch->paths[i], batch->hops + batch->first_hop[i],
				real_ns, &h->text));
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

static void sender_write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	struct sender *s = self(e);
	uint64_t real_ns = pl_clock_real_ns();

	if (s->ops->event == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	pl_count(&e->stats.accepted, n);
	for (uint32_t i = 0; i < n; i++) {
		struct held *h = pl_sender_room(s, now_ns);
		size_t before = h->text.len;

		settle_chunk(s, h, before, s->ops->event(s->format, &events[i], real_ns, &h->text));
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

static void sender_write_values(
	struct pl_export *e, const struct pl_value *values, uint32_t n, uint64_t now_ns)
{
	struct sender *s = self(e);
	uint64_t real_ns = pl_clock_real_ns();

	if (s->ops->value == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	pl_count(&e->stats.accepted, n);
	for (uint32_t i = 0; i < n; i++) {
		struct held *h = pl_sender_room(s, now_ns);
		size_t before = h->text.len;

		settle_chunk(s, h, before, s->ops->value(s->format, &values[i], real_ns, &h->text));
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

static void sender_write_flat(struct pl_export *e, enum pl_flat_kind kind, const void *records,
	uint32_t n, uint32_t stride, uint64_t now_ns)
{
	struct sender *s = self(e);
	const uint64_t real_ns = pl_clock_real_ns();
	const uint8_t *p = records;

	if (s->ops->flat == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	pl_count(&e->stats.accepted, n);
	for (uint32_t i = 0; i < n; i++, p += stride) {
		struct held *h = pl_sender_room(s, now_ns);
		size_t before = h->text.len;

		settle_chunk(s, h, before, s->ops->flat(s->format, kind, p, real_ns, &h->text));
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

static void sender_write_series(
	struct pl_export *e, const struct pl_series_point *points, uint32_t n, uint64_t now_ns)
{
	struct sender *s = self(e);
	uint64_t real_ns = pl_clock_real_ns();

	if (s->ops->point == NULL)
		return;
	pthread_mutex_lock(&s->lock);
	pl_count(&e->stats.accepted, n);
	pl_count(&e->stats.points, n);
	for (uint32_t i = 0; i < n; i++) {
		struct held *h = pl_sender_room(s, now_ns);
		size_t before = h->text.len;

		settle_chunk(s, h, before, s->ops->point(s->format, &points[i], real_ns, &h->text));
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

void pl_sender_write(struct pl_export *e, const void *chunks, uint32_t n, uint32_t size,
	uint32_t stride, uint64_t now_ns)
{
	const uint8_t *p = chunks;
	struct sender *s = self(e);

	pthread_mutex_lock(&s->lock);
	pl_count(&e->stats.accepted, n);
	for (uint32_t i = 0; i < n; i++, p += stride) {
		struct held *h = pl_sender_room(s, now_ns);
		size_t before = h->text.len;

		pl_buf_add(&h->text, p, size);
		settle_chunk(s, h, before, 0);
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

void *pl_sender_format(struct pl_export *e)
{
	return self(e)->format;
}

/* Takes chunks that the format makes without an entry. */
static void take_due(struct sender *s, uint64_t now_ns)
{
	uint64_t real_ns = pl_clock_real_ns();

	for (;;) {
		struct held *h = pl_sender_room(s, now_ns);
		size_t before = h->text.len;

		if (s->ops->due(s->format, real_ns, &h->text) != 1)
			return;
		pl_count(&s->export.stats.accepted, 1);
		pl_count(&s->export.stats.points, 1);
		settle_chunk(s, h, before, 0);
	}
}

/* Returns the age at which the open batch is sent; with a spool low enough that it is delivered or
 * on disk within spool_within_ns. */
static uint64_t age_of_batches(const struct sender *s)
{
	uint64_t quarter = s->options.spool_within_ns / 4;

	return s->spool != NULL && quarter != 0 && quarter < s->options.batch_age_ns
		       ? quarter
		       : s->options.batch_age_ns;
}

/*
 * Group commit: entries not delivered within half of spool_within_ns are stored in the spool and
 * synced. The other half is for the queues before the sender, the time until the next flush, and
 * the disk.
 */
static void commit(struct sender *s, uint64_t now_ns)
{
	uint64_t half = s->options.spool_within_ns / 2;

	if (s->spool != NULL && half != 0 && now_ns > half)
		pl_sender_commit(s, now_ns - half);
}

static void sender_flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	struct sender *s = self(e);
	uint64_t sync_ns;

	pthread_mutex_lock(&s->lock);
	if (s->ops->due != NULL && !all)
		take_due(s, now_ns);
	if (s->open != NULL && s->open->n > 0 &&
		(all || pl_sender_full(s, s->open) ||
			(s->n_ring == 0 && !s->work.active &&
				now_ns - s->open->begun_ns >= age_of_batches(s)))) {
		pl_sender_ring_push(s, s->open);
		s->open = NULL;
	}
	commit(s, now_ns);
	/* A stop does not wait for a server that is away. */
	if (all && s->spool != NULL && s->send_error != 0 && !s->work.in_flight)
		pl_sender_put_away(s);
	sync_ns = s->options.spool_within_ns / 4;
	if (s->spool != NULL &&
		(all || now_ns - s->synced_ns >=
				(sync_ns != 0 && sync_ns < SYNC_NS ? sync_ns : SYNC_NS))) {
		int r = pl_spool_sync(s->spool);

		if (r < 0)
			s->spool_error = -r;
		s->unsynced = s->unsynced && r < 0;
		s->synced_ns = now_ns;
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

static void sender_mark(struct pl_export *e)
{
	struct sender *s = self(e);

	pthread_mutex_lock(&s->lock);
	s->marked = s->entered;
	pthread_mutex_unlock(&s->lock);
}

/* A batch that steps aside for others keeps its place in the order of entries, so the mark waits
 * for each earlier batch in memory. Entries in the spool count once they are synced. */
static bool sender_settled(struct pl_export *e)
{
	struct sender *s = self(e);
	const struct work *w = &s->work;
	bool waits;

	pthread_mutex_lock(&s->lock);
	waits = s->unsynced || (s->open != NULL && s->open->n > 0 && s->open->first < s->marked) ||
		(w->active && !w->spooled && !w->copied && w->held->first < s->marked);
	for (uint32_t i = 0; i < s->n_ring; i++)
		waits = waits || s->ring[(s->head + i) % s->n_all]->first < s->marked;
	pthread_mutex_unlock(&s->lock);
	return !waits;
}

static int sender_reopen(struct pl_export *e, uint64_t now_ns, struct pl_diag *diag)
{
	struct sender *s = self(e);
	int r = 0;

	pthread_mutex_lock(&s->lock);
	if (s->letters != NULL)
		r = pl_dead_letters_reopen(s->letters, diag);
	s->renew_credentials = true;
	s->not_before_ns = now_ns;
	s->body_limit = 0;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void sender_words(struct pl_export *e, struct pl_export_words *ret)
{
	struct sender *s = self(e);
	const char *away;

	pthread_mutex_lock(&s->lock);
	*ret = s->words;
	away = s->words.trouble;
	if (s->spool_error != 0)
		snprintf(ret->trouble, sizeof(ret->trouble), "cannot write the spool: %s%s%.200s",
			strerror(s->spool_error), away[0] != '\0' ? "; " : "", away);
	pthread_mutex_unlock(&s->lock);
}

/* ---- the sender's thread: requests ---- */

/* Runs without the lock: no other thread touches a batch in flight, and all that the two threads
 * share of `format` is atomic. */
static int make_body(struct sender *s, const char **ret, size_t *ret_len)
{
	const struct work *w = &s->work;
	uint32_t begin = pl_chunk_begin(&w->chunks, w->lo);
	int r;

	*ret = w->chunks.text + begin;
	*ret_len = w->chunks.ends[w->hi - 1] - begin;
	if (s->ops->body != NULL) {
		pl_buf_reset(&s->body);
		r = s->ops->body(s->format, &w->chunks, w->lo, w->hi - w->lo, &s->body);
		if (r == 0 && s->body.failed)
			r = -ENOMEM;
		if (r < 0)
			return r;
		*ret = s->body.data;
		*ret_len = s->body.len;
	}
	if (!s->options.gzip)
		return 0;
	if (deflateReset(&s->gzip) != Z_OK)
		return -EINVAL;
	if (deflateBound(&s->gzip, *ret_len) > s->zipped_cap) {
		size_t cap = deflateBound(&s->gzip, *ret_len);
		char *bigger = realloc(s->zipped, cap);

		if (bigger == NULL)
			return -ENOMEM;
		s->zipped = bigger;
		s->zipped_cap = cap;
	}
	s->gzip.next_in = (Bytef *)*ret;
	s->gzip.avail_in = (uInt)*ret_len;
	s->gzip.next_out = (Bytef *)s->zipped;
	s->gzip.avail_out = (uInt)s->zipped_cap;
	if (deflate(&s->gzip, Z_FINISH) != Z_STREAM_END)
		return -EINVAL;
	*ret = s->zipped;
	*ret_len = s->zipped_cap - s->gzip.avail_out;
	return 0;
}

static void send_once(struct sender *s)
{
	struct pl_diag diag = { .text = "" };
	const char *body;
	size_t len = 0;
	bool renew = s->renew_credentials;
	int r = 0;

	pl_sender_aim(s);
	s->work.in_flight = true;
	s->renew_credentials = false;
	pthread_mutex_unlock(&s->lock);
	if (renew)
		r = s->transport->credentials(s->transport_arg, &diag);
	if (r < 0) {
		/* An operator may be changing the file. */
		s->answer = (struct pl_http_answer){ .error = r };
		s->answer.len =
			(uint32_t)snprintf(s->answer.body, sizeof(s->answer.body), "%s", diag.text);
	} else {
		r = make_body(s, &body, &len);
		if (r < 0) {
			s->answer = (struct pl_http_answer){ .error = r };
			s->answer.len = (uint32_t)snprintf(s->answer.body, sizeof(s->answer.body),
				"the request could not be put together: %s", strerror(-r));
			if (r != -ENOMEM)
				s->answer.status = 400;
		} else {
			s->transport->post(s->transport_arg, body, len, &s->answer);
		}
	}
	pthread_mutex_lock(&s->lock);
	s->work.in_flight = false;
	s->renew_credentials = s->renew_credentials || (renew && s->answer.status == 0);
	if (s->answer.status >= 200 && s->answer.status < 300)
		pl_count(&s->export.stats.bytes, len);
	pl_sender_rule(s, pl_clock_mono_ns());
	pl_sender_account(s);
}

static void nap(struct sender *s, uint64_t until_ns)
{
	const struct timespec t = pl_clock_timespec(until_ns);

	pthread_cond_timedwait(&s->wake, &s->lock, &t);
}

/* With nothing to send, waits for the age of the open batch: it is sent then, however late the next
 * flush comes. */
static void await_open(struct sender *s, uint64_t now_ns)
{
	const bool any = s->open != NULL && s->open->n > 0;
	const uint64_t due_ns = any ? s->open->begun_ns + age_of_batches(s) : now_ns + SECOND_NS;

	if (now_ns < due_ns) {
		nap(s, due_ns < now_ns + SECOND_NS ? due_ns : now_ns + SECOND_NS);
		return;
	}
	pl_sender_ring_push(s, s->open);
	s->open = NULL;
}

static void *sender_loop(void *arg)
{
	struct sender *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->quit) {
		uint64_t now = pl_clock_mono_ns();

		if (now < s->not_before_ns) {
			nap(s, s->not_before_ns);
			continue;
		}
		if (!s->work.active && !pl_sender_choose(s)) {
			pl_sender_account(s);
			await_open(s, now);
			continue;
		}
		send_once(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int pl_sender_start(struct sender *s)
{
	int r;

	r = pl_thread_start(&s->thread, "pl-sender", sender_loop, s);
	if (r == 0) {
		s->running = true;
	}
	return r;
}

static void stop(struct sender *s)
{
	if (!s->running)
		return;
	pthread_mutex_lock(&s->lock);
	s->quit = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	s->transport->abort(s->transport_arg);
	pthread_join(s->thread, NULL);
	s->running = false;
}

static void sender_finish(struct pl_export *e)
{
	struct sender *s = self(e);

	stop(s);
	pthread_mutex_lock(&s->lock);
	if (s->spool != NULL) {
		pl_sender_drop_lent(s);
		pl_sender_put_away(s);
		s->unsynced = pl_spool_sync(s->spool) < 0;
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- life ---- */

void pl_sender_close(struct pl_export *e)
{
	struct sender *s = self(e);

	if (s->running)
		sender_finish(e);
	pl_spool_close(s->spool);
	pl_dead_letters_close(s->letters);
	if (s->transport != NULL)
		s->transport->free(s->transport_arg);
	if (s->gzip_made)
		deflateEnd(&s->gzip);
	pl_buf_done(&s->body);
	free(s->zipped);
	for (uint32_t i = 0; s->all != NULL && i < s->n_all; i++) {
		pl_buf_done(&s->all[i].text);
		free(s->all[i].ends);
	}
	free(s->all);
	free(s->free_list);
	free(s->ring);
	free(s->record);
	free(s->name);
	if (s->ops->free != NULL)
		s->ops->free(s->format);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const struct pl_export_ops pl_sender_ops = {
	.name = "sender",
	.write_paths = sender_write_paths,
	.write_events = sender_write_events,
	.write_values = sender_write_values,
	.write_flat = sender_write_flat,
	.write_series = sender_write_series,
	.flush = sender_flush,
	.mark = sender_mark,
	.settled = sender_settled,
	.reopen = sender_reopen,
	.finish = sender_finish,
	.words = sender_words,
	.close = pl_sender_close,
};
