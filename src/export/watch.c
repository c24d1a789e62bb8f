/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "record/json.h"
#include "record/rows.h"
#include "record/table.h"
#include "record/text.h"
#include "record/where.h"

enum {
	MAX_CLIENTS = 8,
	RECENT_EVENTS = 1024,
	BUFFER_MIN = 64 * 1024,
	BUFFER_DEFAULT = 1024 * 1024,
	NOTICE_MAX = 128,
};
#define ALIVE_NS (UINT64_C(10) * 1000000000u)

struct pl_watch_client {
	struct pl_watch *live;
	bool used;
	bool paths, events;
	enum pl_watch_form form;
	struct pl_where *path_where, *event_where;
	struct pl_watch_stats stats;
	uint64_t untold;      /* dropped, not yet said in the stream */
	uint64_t missed_from; /* missed_of() when it came, and what of it was told */
	uint64_t read_ns;     /* when something was last read */
	bool hungry;          /* found nothing at its last read: wake it */
	char *ring;           /* live->buffer_bytes of them */
	size_t at, len;       /* first byte waiting, bytes waiting */
};

struct pl_watch {
	struct pl_export export;
	pthread_mutex_t lock; /* everything below */
	struct pl_watch_hooks hooks;
	struct pl_watch_client *clients;
	unsigned int max_clients, n_clients;
	size_t buffer_bytes;
	uint64_t missed_paths, missed_events; /* in the output's queues */
	struct pl_event *recent;              /* a ring of max_recent */
	uint32_t max_recent;
	uint64_t n_recent;  /* ever */
	struct pl_buf line; /* scratch */
};

const char *pl_watch_form_name(enum pl_watch_form form)
{
	static const char *const names[PL_WATCH_FORM_MAX] = { "api", "jsonl", "table", "wide",
		"csv", "text" };

	return names[form];
}

/* ---- a client's buffer ---- */

static void ring_put(struct pl_watch_client *c, const char *data, size_t n)
{
	size_t cap = c->live->buffer_bytes, end = (c->at + c->len) % cap;
	size_t first = n < cap - end ? n : cap - end;

	memcpy(c->ring + end, data, first);
	memcpy(c->ring, data + first, n - first);
	c->len += n;
}

static size_t ring_get(struct pl_watch_client *c, char *dst, size_t n)
{
	size_t cap = c->live->buffer_bytes, first;

	if (n > c->len)
		n = c->len;
	first = n < cap - c->at ? n : cap - c->at;
	memcpy(dst, c->ring + c->at, first);
	memcpy(dst + first, c->ring, n - first);
	c->at = (c->at + n) % cap;
	c->len -= n;
	return n;
}

static size_t dropped_notice(char dst[NOTICE_MAX], uint64_t count, const char *cause)
{
	return (size_t)snprintf(dst, NOTICE_MAX,
		"{\"kind\":\"dropped\",\"count\":%" PRIu64 ",\"cause\":\"%s\"}\n", count, cause);
}

/* The line in live->line goes in whole, behind the word about what was dropped before it, or not at all. */
static bool client_put(struct pl_watch_client *c)
{
	const struct pl_buf *line = &c->live->line;
	char notice[NOTICE_MAX];
	size_t n = c->untold > 0 ? dropped_notice(notice, c->untold, "slow_client") : 0;

	if (line->failed || c->live->buffer_bytes - c->len < line->len + n) {
		c->untold++;
		c->stats.dropped++;
		return false;
	}
	if (n > 0)
		ring_put(c, notice, n);
	c->untold = 0;
	ring_put(c, line->data, line->len);
	c->stats.sent++;
	return true;
}

/* ---- the exporter's thread ---- */

static void format_path(struct pl_buf *out, enum pl_watch_form form, const struct pl_path *path,
	const struct pl_hop *hops)
{
	size_t n = path->hop_count;
	struct pl_json json;

	switch (form) {
	case PL_WATCH_API:
		pl_json_init(&json, out);
		pl_path_api(&json, path, hops, n);
		break;
	case PL_WATCH_JSONL:
		pl_path_json(out, path, hops, n);
		break;
	case PL_WATCH_TABLE:
	case PL_WATCH_WIDE:
		pl_path_table(out, path, hops, n, form == PL_WATCH_WIDE);
		return;
	case PL_WATCH_CSV:
		pl_path_csv(out, path, hops, n);
		return;
	default:
		pl_path_text(out, path, hops, n);
		return;
	}
	pl_buf_chr(out, '\n');
}

static void format_event(struct pl_buf *out, enum pl_watch_form form, const struct pl_event *event)
{
	struct pl_json json;

	switch (form) {
	case PL_WATCH_API:
		pl_json_init(&json, out);
		pl_event_api(&json, event);
		break;
	case PL_WATCH_JSONL:
		pl_event_json(out, event);
		break;
	case PL_WATCH_TABLE:
	case PL_WATCH_WIDE:
		pl_event_table(out, event);
		return;
	case PL_WATCH_CSV:
		pl_event_csv(out, event);
		return;
	default:
		pl_event_text(out, event);
		return;
	}
	pl_buf_chr(out, '\n');
}

static struct pl_watch *of(struct pl_export *e)
{
	return (struct pl_watch *)e;
}

/* One entry to all clients; false when one that wanted it has no room. */
static bool offer_path(struct pl_watch *live, const struct pl_path *path, const struct pl_hop *hops)
{
	bool good = true;

	for (unsigned int i = 0; i < live->max_clients; i++) {
		struct pl_watch_client *c = &live->clients[i];

		if (!c->used || !c->paths)
			continue;
		c->stats.seen++;
		if (c->path_where != NULL &&
			!pl_where_match(c->path_where, path, hops, path->hop_count)) {
			c->stats.filtered++;
			continue;
		}
		pl_buf_reset(&live->line);
		format_path(&live->line, c->form, path, hops);
		good = client_put(c) && good;
	}
	return good;
}

static bool offer_event(struct pl_watch *live, const struct pl_event *event)
{
	bool good = true;

	for (unsigned int i = 0; i < live->max_clients; i++) {
		struct pl_watch_client *c = &live->clients[i];

		if (!c->used || !c->events)
			continue;
		c->stats.seen++;
		if (c->event_where != NULL &&
			!pl_where_match_row(c->event_where, event, event->present)) {
			c->stats.filtered++;
			continue;
		}
		pl_buf_reset(&live->line);
		format_event(&live->line, c->form, event);
		good = client_put(c) && good;
	}
	return good;
}

/* Says that there is something, once per client that found nothing. */
static void unlock_and_wake(struct pl_watch *live)
{
	struct pl_watch_hooks hooks = live->hooks;
	bool wake = false;

	for (unsigned int i = 0; i < live->max_clients; i++) {
		struct pl_watch_client *c = &live->clients[i];

		if (c->used && c->hungry && c->len > 0) {
			c->hungry = false;
			wake = true;
		}
	}
	pthread_mutex_unlock(&live->lock);
	if (wake && hooks.wake != NULL)
		hooks.wake(hooks.arg);
}

static void account(struct pl_export *e, uint32_t n, uint32_t delivered)
{
	pl_count(&e->stats.accepted, n);
	pl_count(&e->stats.delivered, delivered);
	pl_count(&e->stats.dropped[PL_EXPORT_QUEUE_FULL], n - delivered);
}

static void write_paths(struct pl_export *e, const struct pl_record_batch *batch, uint64_t now_ns)
{
	struct pl_watch *live = of(e);
	uint32_t delivered = 0;

	(void)now_ns;
	pthread_mutex_lock(&live->lock);
	for (uint32_t i = 0; i < batch->n_paths; i++)
		delivered += offer_path(live, &batch->paths[i], &batch->hops[batch->first_hop[i]]);
	unlock_and_wake(live);
	account(e, batch->n_paths, delivered);
}

static void write_events(
	struct pl_export *e, const struct pl_event *events, uint32_t n, uint64_t now_ns)
{
	struct pl_watch *live = of(e);
	uint32_t delivered = 0;

	(void)now_ns;
	pthread_mutex_lock(&live->lock);
	for (uint32_t i = 0; i < n; i++) {
		live->recent[live->n_recent++ % live->max_recent] = events[i];
		delivered += offer_event(live, &events[i]);
	}
	unlock_and_wake(live);
	account(e, n, delivered);
}

static void flush(struct pl_export *e, uint64_t now_ns, bool all)
{
	(void)e;
	(void)now_ns;
	(void)all;
}

static int reopen(struct pl_export *e, uint64_t now_ns, struct pl_diag *diag)
{
	(void)e;
	(void)now_ns;
	(void)diag;
	return 0;
}

static void close_live(struct pl_export *e)
{
	struct pl_watch *live = of(e);

	for (unsigned int i = 0; i < live->max_clients && live->clients != NULL; i++)
		free(live->clients[i].ring);
	free(live->clients);
	free(live->recent);
	pl_buf_done(&live->line);
	pthread_mutex_destroy(&live->lock);
	free(live);
}

static const struct pl_export_ops ops = {
	.name = "live",
	.write_paths = write_paths,
	.write_events = write_events,
	.flush = flush,
	.reopen = reopen,
	.close = close_live,
};

/* ---- the clients' side ---- */

static unsigned int clients_of(const struct pl_watch_options *o)
{
	return o->max_clients > 0 ? o->max_clients : (unsigned int)MAX_CLIENTS;
}

static size_t buffer_of(const struct pl_watch_options *o)
{
	size_t n = o->buffer_bytes > 0 ? o->buffer_bytes : (size_t)BUFFER_DEFAULT;

	return n > BUFFER_MIN ? n : (size_t)BUFFER_MIN;
}

static uint32_t recent_of(const struct pl_watch_options *o)
{
	return o->recent_events > 0 ? o->recent_events : (uint32_t)RECENT_EVENTS;
}

int pl_watch_new(
	struct pl_export **ret, struct pl_watch **ret_live, const struct pl_watch_options *options)
{
	struct pl_watch *live = calloc(1, sizeof(*live));

	if (live == NULL)
		return -ENOMEM;
	live->export.ops = &ops;
	pthread_mutex_init(&live->lock, NULL);
	pl_buf_init(&live->line);
	live->max_clients = clients_of(options);
	live->buffer_bytes = buffer_of(options);
	live->max_recent = recent_of(options);
	live->clients = calloc(live->max_clients, sizeof(*live->clients));
	live->recent = calloc(live->max_recent, sizeof(*live->recent));
	if (live->clients == NULL || live->recent == NULL)
		goto fail;
	for (unsigned int i = 0; i < live->max_clients; i++) {
		live->clients[i].live = live;
		live->clients[i].ring = malloc(live->buffer_bytes);
		if (live->clients[i].ring == NULL)
			goto fail;
	}
	*ret = &live->export;
	*ret_live = live;
	return 0;
fail:
	close_live(&live->export);
	return -ENOMEM;
}

uint64_t pl_watch_memory(const struct pl_watch_options *options)
{
	return clients_of(options) * (sizeof(struct pl_watch_client) + buffer_of(options)) +
	       (uint64_t)recent_of(options) * sizeof(struct pl_event) +
	       2 * pl_path_json_max(PL_BATCH_HOPS_MIN);
}

void pl_watch_set_hooks(struct pl_watch *live, const struct pl_watch_hooks *hooks)
{
	pthread_mutex_lock(&live->lock);
	live->hooks = *hooks;
	pthread_mutex_unlock(&live->lock);
}

/* The expression for each kind asked for. Without a kind, those that have its fields. */
static int compile(
	struct pl_watch_client *c, const struct pl_watch_request *r, struct pl_diag *diag)
{
	bool any = !r->paths && !r->events;
	size_t n;
	const struct pl_field *fields = pl_fields(PL_KIND_EVENT, &n);
	int p = 0, e = 0;

	c->paths = r->paths || any;
	c->events = r->events || any;
	if (r->where == NULL)
		return 0;
	if (c->events)
		e = pl_where_new_over(&c->event_where, fields, n, r->where, diag);
	/* Last: of two refusals the one about paths is told, whose names are more. */
	if (c->paths)
		p = pl_where_new(&c->path_where, r->where, diag);
	if (any && (p == 0 || e == 0)) {
		c->paths = p == 0;
		c->events = e == 0;
		return 0;
	}
	return p < 0 ? p : e;
}

/* What the output's queues lost of the kinds that the client wants. */
static uint64_t missed_of(const struct pl_watch_client *c)
{
	return (c->paths ? c->live->missed_paths : 0) + (c->events ? c->live->missed_events : 0);
}

static void header(struct pl_watch_client *c)
{
	struct pl_buf *line = &c->live->line;

	pl_buf_reset(line);
	if (c->form == PL_WATCH_CSV && c->paths)
		pl_path_csv_header(line);
	else if (c->form == PL_WATCH_CSV)
		pl_event_csv_header(line);
	else if (c->form == PL_WATCH_TABLE || c->form == PL_WATCH_WIDE) {
		if (c->paths)
			pl_path_table_header(line, c->form == PL_WATCH_WIDE);
		if (c->events)
			pl_event_table_header(line);
	}
	if (!line->failed && line->len > 0)
		ring_put(c, line->data, line->len);
}

/* Whether any client wants paths, apart from one. */
static bool others_want_paths(const struct pl_watch *live, const struct pl_watch_client *but)
{
	for (unsigned int i = 0; i < live->max_clients; i++) {
		const struct pl_watch_client *c = &live->clients[i];

		if (c != but && c->used && c->paths)
			return true;
	}
	return false;
}

static void forget(struct pl_watch_client *c)
{
	pl_where_free(c->path_where);
	pl_where_free(c->event_where);
	c->path_where = c->event_where = NULL;
	c->used = false;
}

int pl_watch_open(struct pl_watch_client **ret, struct pl_watch *live,
	const struct pl_watch_request *request, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_watch_client *c = NULL;
	struct pl_watch_hooks hooks;
	bool want;
	int r;

	pthread_mutex_lock(&live->lock);
	for (unsigned int i = 0; i < live->max_clients && c == NULL; i++) {
		if (!live->clients[i].used)
			c = &live->clients[i];
	}
	if (c == NULL) {
		pthread_mutex_unlock(&live->lock);
		pl_diag_set(diag, "%u streams are open, which is the limit", live->max_clients);
		return -EBUSY;
	}
	*c = (struct pl_watch_client){ .live = live, .ring = c->ring, .form = request->form };
	r = compile(c, request, diag);
	if (r == 0 && c->form == PL_WATCH_CSV && c->paths && c->events) {
		pl_diag_set(diag, "CSV has one header: ask for paths or for events");
		r = -EINVAL;
	}
	if (r < 0) {
		forget(c);
		pthread_mutex_unlock(&live->lock);
		return r;
	}
	c->stats.address = request->address;
	c->stats.paths = c->paths;
	c->stats.events = c->events;
	c->stats.form = c->form;
	c->missed_from = missed_of(c);
	c->read_ns = now_ns;
	header(c);
	want = c->paths && !others_want_paths(live, c);
	c->used = true;
	live->n_clients++;
	hooks = live->hooks;
	pthread_mutex_unlock(&live->lock);
	if (want && hooks.want != NULL)
		hooks.want(hooks.arg, true);
	*ret = c;
	return 0;
}

void pl_watch_close(struct pl_watch_client *c)
{
	struct pl_watch *live = c->live;
	struct pl_watch_hooks hooks;
	bool cease;

	pthread_mutex_lock(&live->lock);
	cease = c->paths && !others_want_paths(live, c);
	forget(c);
	live->n_clients--;
	hooks = live->hooks;
	pthread_mutex_unlock(&live->lock);
	if (cease && hooks.want != NULL)
		hooks.want(hooks.arg, false);
}

static bool alive_due(const struct pl_watch_client *c, uint64_t now_ns)
{
	return now_ns - c->read_ns >= ALIVE_NS;
}

static bool has_something(const struct pl_watch_client *c, uint64_t now_ns)
{
	return c->len > 0 || c->untold > 0 || missed_of(c) != c->missed_from ||
	       alive_due(c, now_ns);
}

static size_t alive_notice(char dst[NOTICE_MAX])
{
	uint64_t ts_ns = pl_clock_real_ns();
	char text[PL_TIME_TEXT_MAX];

	pl_time_text(text, ts_ns);
	return (size_t)snprintf(dst, NOTICE_MAX,
		"{\"kind\":\"alive\",\"time\":\"%s\",\"time_ns\":\"%" PRIu64 "\"}\n", text, ts_ns);
}

static void put_dropped(struct pl_watch_client *c, uint64_t count, const char *cause)
{
	char notice[NOTICE_MAX];
	size_t n = dropped_notice(notice, count, cause);

	ring_put(c, notice, n);
}

/* What is to be said beside the data, into the empty buffer. */
static void put_notices(struct pl_watch_client *c, uint64_t now_ns)
{
	uint64_t missed = missed_of(c) - c->missed_from;

	if (c->untold > 0)
		put_dropped(c, c->untold, "slow_client");
	c->untold = 0;
	if (missed > 0)
		put_dropped(c, missed, "queue_full");
	c->stats.missed += missed;
	c->missed_from += missed;
	if (c->len == 0 && alive_due(c, now_ns)) {
		char notice[NOTICE_MAX];
		size_t n = alive_notice(notice);

		ring_put(c, notice, n);
	}
}

size_t pl_watch_read(struct pl_watch_client *c, char *dst, size_t cap, uint64_t now_ns)
{
	struct pl_watch *live = c->live;
	size_t n;

	pthread_mutex_lock(&live->lock);
	if (c->len == 0)
		put_notices(c, now_ns);
	n = ring_get(c, dst, cap);
	c->hungry = n == 0;
	if (n > 0)
		c->read_ns = now_ns;
	pthread_mutex_unlock(&live->lock);
	return n;
}

bool pl_watch_ready(struct pl_watch_client *c, uint64_t now_ns)
{
	bool ready;

	pthread_mutex_lock(&c->live->lock);
	ready = has_something(c, now_ns);
	pthread_mutex_unlock(&c->live->lock);
	return ready;
}

void pl_watch_missed(struct pl_watch *live, uint64_t paths, uint64_t events)
{
	pthread_mutex_lock(&live->lock);
	live->missed_paths = paths;
	live->missed_events = events;
	pthread_mutex_unlock(&live->lock);
}

bool pl_watch_stats(struct pl_watch *live, unsigned int i, struct pl_watch_stats *ret)
{
	bool found = false;

	pthread_mutex_lock(&live->lock);
	for (unsigned int k = 0; k < live->max_clients && !found; k++) {
		const struct pl_watch_client *c = &live->clients[k];

		if (!c->used || i-- > 0)
			continue;
		*ret = c->stats;
		ret->waiting_bytes = c->len;
		found = true;
	}
	pthread_mutex_unlock(&live->lock);
	return found;
}

void pl_watch_remember(struct pl_watch *live, const struct pl_event *events, uint32_t n)
{
	pthread_mutex_lock(&live->lock);
	for (uint32_t i = 0; i < n; i++)
		live->recent[live->n_recent++ % live->max_recent] = events[i];
	pthread_mutex_unlock(&live->lock);
}

uint32_t pl_watch_events(
	struct pl_watch *live, struct pl_event *dst, uint32_t cap, uint64_t *ret_total)
{
	uint32_t n = 0;

	pthread_mutex_lock(&live->lock);
	for (uint64_t i = live->n_recent; i > 0 && n < cap && live->n_recent - i < live->max_recent;
		i--)
		dst[n++] = live->recent[(i - 1) % live->max_recent];
	*ret_total = live->n_recent;
	pthread_mutex_unlock(&live->lock);
	return n;
}

uint32_t pl_watch_events_max(const struct pl_watch *live)
{
	return live->max_recent;
}
