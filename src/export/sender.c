/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads meet under one lock: the output's, which formats and puts, and the sender's own, which makes
 * requests with the lock let go of. The lock is held for memory work and for calls on the local disk, never
 * for the network. Every counter changes under it, in the same breath as what it counts.
 */
#include "export/sender.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "export/curl.h"
#include "export/sender_state.h"

enum {
	ENTRY_BYTES = 256 << 10, /* the longest chunk */
	BATCHES_MIN = 4,
	BATCHES_MAX = 4096,
	GZIP_LEVEL = 1,
};

#define SYNC_NS   (UINT64_C(1) * 1000000000u)
#define SECOND_NS UINT64_C(1000000000)
static struct sender *self(struct pl_export *e)
{
	return (struct sender *)e;
}

_Static_assert(offsetof(struct sender, export) == 0, "an exporter begins with the common part");

/* ---- the output's thread ---- */

/* The chunk that a formatter appended to h is an entry, or goes away again. */
static void settle_chunk(struct sender *s, struct held *h, size_t before, int r)
{
	if (r == 0 && !h->text.failed && h->text.len > before) {
		h->ends[h->n++] = (uint32_t)h->text.len;
		s->queued++;
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

/* What the kind has to say by itself. */
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

/* When the open batch leaves: with a spool early enough that it is delivered, or on disk, within spool_within_ns. */
static uint64_t age_of_batches(const struct sender *s)
{
	uint64_t quarter = s->options.spool_within_ns / 4;

	return s->spool != NULL && quarter != 0 && quarter < s->options.batch_age_ns
		       ? quarter
		       : s->options.batch_age_ns;
}

/*
 * Group commit: what is not delivered within half the time goes to the spool and to the device. The other half is for
 * what comes before, the queues to here and the time until the next look, and for the disk.
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
	/* A stop with the server away does not wait for it. */
	if (all && s->spool != NULL && s->send_error != 0 && !s->work.in_flight)
		pl_sender_put_away(s);
	sync_ns = s->options.spool_within_ns / 4;
	if (s->spool != NULL &&
		(all || now_ns - s->synced_ns >=
				(sync_ns != 0 && sync_ns < SYNC_NS ? sync_ns : SYNC_NS))) {
		int r = pl_spool_sync(s->spool);

		if (r < 0)
			s->spool_error = -r;
		s->synced_ns = now_ns;
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
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

	pthread_mutex_lock(&s->lock);
	*ret = s->words;
	if (ret->trouble[0] == '\0' && s->spool_error != 0)
		snprintf(ret->trouble, sizeof(ret->trouble), "cannot write the spool: %s",
			strerror(s->spool_error));
	pthread_mutex_unlock(&s->lock);
}

/* ---- the sender's thread: requests ---- */

/* Without the lock: nobody else touches a batch in flight, and `format` shares nothing between the two
 * threads that is not atomic. */
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
		/* An operator is at work. */
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
			nap(s, now + SECOND_NS);
			continue;
		}
		send_once(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int start(struct sender *s)
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
		pl_sender_put_away(s);
		(void)pl_spool_sync(s->spool);
	}
	pl_sender_account(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- life ---- */

static void sender_close(struct pl_export *e)
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

static const struct pl_export_ops sender_ops = {
	.name = "sender",
	.write_paths = sender_write_paths,
	.write_events = sender_write_events,
	.write_series = sender_write_series,
	.flush = sender_flush,
	.reopen = sender_reopen,
	.finish = sender_finish,
	.words = sender_words,
	.close = sender_close,
};

static uint64_t or_else(uint64_t value, uint64_t instead)
{
	return value != 0 ? value : instead;
}

static struct pl_sender_options with_defaults(const struct pl_sender_options *given)
{
	struct pl_sender_options o = *given;

	o.batch_entries = (uint32_t)or_else(o.batch_entries, 5000);
	o.batch_bytes = or_else(o.batch_bytes, 1 << 20);
	o.batch_age_ns = or_else(o.batch_age_ns, SECOND_NS);
	o.memory_bytes = or_else(o.memory_bytes, 16 << 20);
	o.timeout_ns = or_else(o.timeout_ns, 10 * SECOND_NS);
	o.spool_bytes = or_else(o.spool_bytes, UINT64_C(1) << 30);
	o.spool_within_ns = or_else(o.spool_within_ns, SECOND_NS);
	o.dead_letter_bytes = or_else(o.dead_letter_bytes, 64 << 20);
	o.retry_min_ns = or_else(o.retry_min_ns, SECOND_NS / 2);
	o.retry_max_ns = or_else(o.retry_max_ns, 30 * SECOND_NS);
	if (o.retry_max_ns < o.retry_min_ns)
		o.retry_max_ns = o.retry_min_ns;
	o.hold_ns = or_else(o.hold_ns, 30 * SECOND_NS);
	o.doubt_after = (uint32_t)or_else(o.doubt_after, 3);
	return o;
}

static uint32_t batch_count(const struct pl_sender_options *o)
{
	uint64_t n = o->memory_bytes / o->batch_bytes;

	return n < BATCHES_MIN ? BATCHES_MIN : n > BATCHES_MAX ? BATCHES_MAX : (uint32_t)n;
}

static uint64_t record_bytes(const struct pl_sender_options *o)
{
	return sizeof(uint32_t) * ((uint64_t)o->batch_entries + 1) + o->batch_bytes + ENTRY_BYTES;
}

uint64_t pl_sender_memory(const struct pl_sender_options *options)
{
	struct pl_sender_options o = with_defaults(options);
	uint64_t batch = o.batch_bytes + ENTRY_BYTES + sizeof(uint32_t) * (uint64_t)o.batch_entries;
	uint64_t sum = sizeof(struct sender) + batch_count(&o) * batch;

	sum += 2 * (o.batch_bytes + ENTRY_BYTES); /* the body, and it compressed */
	if (o.spool_path != NULL)
		sum += 2 * record_bytes(&o) + (256 << 10);
	return sum;
}

static int take_memory(struct sender *s)
{
	const struct pl_sender_options *o = &s->options;

	s->n_all = batch_count(o);
	s->all = calloc(s->n_all, sizeof(*s->all));
	s->free_list = calloc(s->n_all, sizeof(struct held *));
	s->ring = calloc(s->n_all, sizeof(struct held *));
	if (s->all == NULL || s->free_list == NULL || s->ring == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_all; i++) {
		struct held *h = &s->all[i];

		pl_buf_init(&h->text);
		h->text.limit = o->batch_bytes + ENTRY_BYTES;
		h->ends = malloc(o->batch_entries * sizeof(*h->ends));
		if (h->ends == NULL ||
			pl_buf_reserve(&h->text, o->batch_bytes + ENTRY_BYTES) == NULL)
			return -ENOMEM;
		pl_sender_release(s, h);
	}
	if (o->gzip) {
		if (deflateInit2(&s->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8,
			    Z_DEFAULT_STRATEGY) != Z_OK)
			return -ENOMEM;
		s->gzip_made = true;
	}
	return 0;
}

/* A folder with batches of another kind in it would be sent to a server that cannot know them. */
static int check_spool_kind(struct sender *s, struct pl_diag *diag)
{
	struct pl_spool_record r;

	if (pl_spool_peek(s->spool, &r) < 0 || r.flags >> 16 == s->kind_id)
		return 0;
	pl_diag_set(diag, "the spool in %s holds entries of an output of another kind than %s",
		s->options.spool_path, s->ops->name);
	return -EINVAL;
}

static int open_spool(struct sender *s, struct pl_diag *diag)
{
	const struct pl_sender_options *o = &s->options;
	struct pl_spool_options so = {
		.path = o->spool_path,
		.bytes = o->spool_bytes,
		.drop_newest = o->spool_drop_newest,
	};
	int r;

	s->record_cap = (uint32_t)record_bytes(o);
	so.payload_max = s->record_cap;
	s->record = malloc(s->record_cap);
	if (s->record == NULL)
		return -ENOMEM;
	r = pl_spool_open(&s->spool, &so, diag);
	if (r < 0)
		return r;
	pl_spool_counts(s->spool, &s->seen);
	pl_count(&s->export.stats.recovered, s->seen.recovered);
	pl_count(&s->export.stats.damaged, s->seen.damaged_records);
	return check_spool_kind(s, diag);
}

static int open_letters(struct sender *s, struct pl_diag *diag)
{
	const struct pl_sender_options *o = &s->options;
	char *path = NULL;
	int r;

	if (o->dead_letter_path == NULL && o->spool_path == NULL)
		return 0;
	if (o->dead_letter_path == NULL &&
		asprintf(&path, "%s/dead-letter.jsonl", o->spool_path) < 0)
		return -ENOMEM;
	r = pl_dead_letters_open(
		&s->letters, path != NULL ? path : o->dead_letter_path, o->dead_letter_bytes, diag);
	free(path);
	return r;
}

static int check_options(const struct pl_sender_options *o, struct pl_diag *diag)
{
	if (o->batch_entries > 1000000 || o->batch_bytes > 64 << 20 ||
		o->memory_bytes > UINT64_C(1) << 36) {
		pl_diag_set(diag, "batches are of at most a million entries and 64 MiB, and 64 GiB "
				  "of them are the most");
		return -EINVAL;
	}
	return 0;
}

int pl_sender_open(struct pl_export **ret, const struct pl_sender_options *options,
	const struct pl_format_ops *ops, void *format, uint64_t now_ns, struct pl_diag *diag)
{
	struct sender *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int r;

	if (s == NULL) {
		if (ops->free != NULL)
			ops->free(format);
		return -ENOMEM;
	}
	s->export.ops = &sender_ops;
	s->ops = ops;
	s->format = format;
	s->options = with_defaults(options);
	s->synced_ns = now_ns;
	s->kind_id = (uint16_t)pl_hash(ops->name, strlen(ops->name), 0);
	pl_rng_seed(&s->rng, pl_hash_seed() ^ now_ns);
	pl_buf_init(&s->body);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	s->name = strdup(options->name);
	r = s->name != NULL ? check_options(&s->options, diag) : -ENOMEM;
	if (r == 0)
		r = take_memory(s);
	if (r == 0 && options->transport != NULL) {
		s->transport = options->transport;
		s->transport_arg = options->transport_arg;
	} else if (r == 0) {
		r = pl_curl_new(&s->transport_arg, &s->options, diag);
		if (r == 0)
			s->transport = &pl_curl_transport;
	}
	if (r == 0 && s->options.spool_path != NULL)
		r = open_spool(s, diag);
	if (r == 0)
		r = open_letters(s, diag);
	pl_sender_account(s);
	if (r == 0)
		r = start(s);
	if (r < 0) {
		sender_close(&s->export);
		return r;
	}
	*ret = &s->export;
	return 0;
}
