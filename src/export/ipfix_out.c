/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends paths and hops as IPFIX. */
#include "export/ipfix_out.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/queue.h"
#include "ipfix/paths.h"

#define RENEW_NS      UINT64_C(60000000000) /* UDP: between transmissions of the templates */
#define WAITING       65536u                /* capacity of `waiting`, in records: 8 MiB */
#define BATCH_PATHS   64
#define BATCH_RECORDS 512
#define UNSENT_BYTES  (UINT64_C(1) << 20) /* TCP: most bytes of messages of one batch */

struct ipfix_out {
	struct pl_export export;
	struct pl_ipfix_sets *writer;
	struct pl_ipfix_link link;
	bool tcp;
	uint64_t renew_ns;
	struct pl_export_queue *waiting; /* TCP */
	struct pl_record_batch batch;    /* taken from `waiting` */
	uint64_t full;                   /* paths dropped by `waiting`, at the last check */
	struct pl_ipfix_amount making, sent, failed; /* making: in the open message */
	uint64_t bytes, errors;
	uint64_t marked; /* entries ever queued, at the last mark */
	uint64_t now_ns; /* time of the present call */
	char endpoint[128];
	pthread_mutex_t lock; /* guards `trouble` */
	char trouble[PL_WORDS_MAX];
};

_Static_assert(offsetof(struct ipfix_out, export) == 0, "a driver begins with the common part");

static struct ipfix_out *self(struct pl_export *e)
{
	return (struct ipfix_out *)e;
}

/* ---- accounts ---- */

static uint64_t queued(const struct ipfix_out *o)
{
	return o->making.entries + o->link.in_unsent.entries +
	       (o->waiting != NULL ? pl_export_queue_waiting(o->waiting) : 0);
}

static void set_words(struct ipfix_out *o)
{
	pthread_mutex_lock(&o->lock);
	o->trouble[0] = '\0';
	if (o->link.trouble[0] != '\0')
		snprintf(o->trouble, sizeof(o->trouble), "ipfix://%s: %s", o->endpoint,
			o->link.trouble);
	pthread_mutex_unlock(&o->lock);
	o->link.news = false;
}

static void settle(struct ipfix_out *o)
{
	struct pl_export_stats *s = &o->export.stats;
	const struct pl_ipfix_link *l = &o->link;
	const uint64_t full =
		o->waiting != NULL ? pl_counter_read(&pl_export_queue_stats(o->waiting)->full_paths)
				   : 0;

	pl_count(&s->delivered, l->sent.entries - o->sent.entries);
	pl_count(&s->dropped[PL_EXPORT_IO], l->failed.entries - o->failed.entries);
	pl_count(&s->errors, l->failed.entries != o->failed.entries);
	pl_count(&s->dropped[PL_EXPORT_MEMORY], full - o->full);
	pl_count(&s->bytes, l->bytes - o->bytes);
	o->sent = l->sent;
	o->failed = l->failed;
	o->full = full;
	o->bytes = l->bytes;
	atomic_store_explicit(
		&s->last_error, l->trouble[0] != '\0' ? EIO : 0, memory_order_relaxed);
	atomic_store_explicit(&s->queued, queued(o), memory_order_relaxed);
	if (l->news)
		set_words(o);
}

/* ---- messages ---- */

static void on_message(void *arg, const uint8_t *message, uint32_t bytes, uint32_t paths)
{
	struct ipfix_out *o = arg;

	(void)paths;
	pl_ipfix_link_send(&o->link, message, bytes, &o->making, o->now_ns);
	o->making = (struct pl_ipfix_amount){ 0 };
}

static void put(struct ipfix_out *o, const struct pl_record_batch *b, uint32_t i, uint32_t at_s)
{
	if (pl_ipfix_paths_put(o->writer, &b->paths[i], &b->hops[b->first_hop[i]], at_s))
		o->making.entries++;
	else
		pl_count(&o->export.stats.dropped[PL_EXPORT_FORMAT], 1);
}

static void put_batch(struct ipfix_out *o, const struct pl_record_batch *b)
{
	const uint32_t at_s = pl_ipfix_now_s();

	for (uint32_t i = 0; i < b->n_paths; i++)
		put(o, b, i, at_s);
}

/* Puts waiting paths into messages while the connection takes them, one batch at a time. */
static void drain(struct ipfix_out *o)
{
	struct pl_export_taken none = { .events = NULL };

	while (pl_ipfix_link_ready(&o->link)) {
		pl_record_batch_clear(&o->batch);
		if (pl_export_queue_take(o->waiting, &o->batch, &none) == 0)
			return;
		put_batch(o, &o->batch);
		pl_ipfix_sets_flush(o->writer, pl_ipfix_now_s());
	}
}

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	struct ipfix_out *o = self(e);

	o->now_ns = now_ns;
	pl_count(&e->stats.accepted, batch->n_paths);
	if (o->tcp) {
		pl_export_queue_put_paths(o->waiting, batch);
		drain(o);
	} else {
		put_batch(o, batch);
	}
	settle(o);
}

/* Never called for: this kind takes no events. */
static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	(void)events;
	(void)now_ns;
	pl_count(&e->stats.accepted, n);
	pl_count(&e->stats.dropped[PL_EXPORT_EMPTY], n);
}

static void flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	struct ipfix_out *o = self(e);

	(void)all;
	o->now_ns = now_ns;
	if (pl_ipfix_link_turn(&o->link, now_ns))
		pl_ipfix_sets_begin(o->writer);
	if (o->tcp) {
		drain(o);
	} else {
		pl_ipfix_sets_flush(o->writer, pl_ipfix_now_s());
		if (now_ns >= o->renew_ns) {
			pl_ipfix_sets_renew(o->writer, pl_ipfix_now_s());
			o->renew_ns = now_ns + RENEW_NS;
		}
	}
	settle(o);
}

/* ---- operations ---- */

/* Returns entries ever queued; they leave in order, and those without room are not queued. */
static uint64_t ever_queued(const struct pl_export *e)
{
	return pl_counter_read(&e->stats.accepted) -
	       pl_counter_read(&e->stats.dropped[PL_EXPORT_MEMORY]) -
	       pl_counter_read(&e->stats.dropped[PL_EXPORT_EMPTY]);
}

static void mark(struct pl_export *e)
{
	self(e)->marked = ever_queued(e);
}

static bool settled(struct pl_export *e)
{
	return ever_queued(e) - queued(self(e)) >= self(e)->marked;
}

static void words(struct pl_export *e, struct pl_export_words *ret)
{
	struct ipfix_out *o = self(e);

	ret->refusal[0] = '\0';
	pthread_mutex_lock(&o->lock);
	memcpy(ret->trouble, o->trouble, sizeof(ret->trouble));
	pthread_mutex_unlock(&o->lock);
}

static void close_out(struct pl_export *e)
{
	struct ipfix_out *o = self(e);

	pl_ipfix_link_close(&o->link);
	pl_ipfix_sets_free(o->writer);
	pl_export_queue_free(o->waiting);
	pl_record_batch_done(&o->batch);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static const struct pl_export_ops ops = {
	.name = "ipfix",
	.write_paths = write_paths,
	.write_events = write_events,
	.flush = flush,
	.mark = mark,
	.settled = settled,
	.words = words,
	.close = close_out,
};

int pl_ipfix_built(struct pl_diag *diag)
{
	(void)diag;
	return 0;
}

struct config {
	struct pl_ipfix_target target;
	uint64_t domain;
};

static int configure(struct config *ret, const char *text, struct pl_diag *diag)
{
	static const char *const keys[] = { PL_IPFIX_KEYS, "domain", NULL };
	struct pl_uri uri;
	int r;

	*ret = (struct config){ .domain = 0 };
	if (strncmp(text, "ipfix:", 6) != 0)
		return pl_diag_fail(diag, -EINVAL, "\"%s\" is not ipfix://HOST[:PORT]?pen=N", text);
	r = pl_uri_split(&uri, text + 6, keys, diag);
	if (r == 0)
		r = pl_ipfix_target_read(&ret->target, &uri, diag);
	if (r == 0)
		r = pl_uri_get_size(&uri, "domain", 0, UINT32_MAX, &ret->domain, diag);
	if (r == 0 && ret->target.pen == 0)
		r = pl_diag_fail(diag, -EINVAL,
			"'pen=N' is missing in the URI: elements for values of INT are under a private enterprise number");
	return r;
}

int pl_ipfix_out_check(const char *uri, struct pl_diag *diag)
{
	struct config c;

	return configure(&c, uri, diag);
}

static int open_parts(struct ipfix_out *o, const struct config *c, struct pl_diag *diag)
{
	const struct pl_ipfix_sets_options writer = { .domain = (uint32_t)c->domain,
		.time = c->target.time,
		.pen = (uint32_t)c->target.pen,
		.send = on_message,
		.arg = o };
	int r = pl_ipfix_link_open(&o->link, &c->target, diag);

	o->tcp = c->target.tcp;
	snprintf(o->endpoint, sizeof(o->endpoint), "%.127s", c->target.endpoint);
	if (r == 0)
		r = pl_ipfix_paths_new(&o->writer, &writer);
	if (r == 0 && o->tcp)
		r = pl_export_queue_new(&o->waiting, WAITING);
	if (r == 0 && o->tcp)
		r = pl_record_batch_init(&o->batch, BATCH_PATHS, BATCH_RECORDS);
	return r;
}

int pl_ipfix_out_open(
	struct pl_export **ret, const char *uri, uint64_t now_ns, struct pl_diag *diag)
{
	struct ipfix_out *o = calloc(1, sizeof(*o));
	struct config c;
	int r = configure(&c, uri, diag);

	if (o == NULL || r < 0) {
		free(o);
		return r < 0 ? r : -ENOMEM;
	}
	o->export.ops = &ops;
	o->renew_ns = now_ns + RENEW_NS;
	pthread_mutex_init(&o->lock, NULL);
	r = open_parts(o, &c, diag);
	if (r < 0) {
		close_out(&o->export);
		return r;
	}
	*ret = &o->export;
	return 0;
}

uint64_t pl_ipfix_out_memory(void)
{
	return pl_export_queue_memory(WAITING) + UNSENT_BYTES +
	       (BATCH_PATHS + BATCH_RECORDS) * (uint64_t)sizeof(struct pl_path);
}
