/* SPDX-License-Identifier: BSD-2-Clause */
/* A live viewer: its filter, its bounded buffer, and reports of dropped records in its stream. */
#include "export/watch_state.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "record/rows.h"
#include "record/table.h"
#include "record/where.h"

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

static void drop_one(struct pl_watch_client *c)
{
	c->untold++;
	c->stats.dropped++;
}

bool pl_watch_client_full(struct pl_watch_client *c, size_t most)
{
	const bool full = c->live->buffer_bytes - c->len < most + NOTICE_MAX;

	if (full)
		drop_one(c);
	return full;
}

bool pl_watch_client_put(struct pl_watch_client *c)
{
	const struct pl_buf *line = &c->live->line;
	char notice[NOTICE_MAX];
	size_t n = c->untold > 0 ? dropped_notice(notice, c->untold, "slow_client") : 0;

	if (line->failed || c->live->buffer_bytes - c->len < line->len + n) {
		drop_one(c);
		return false;
	}
	if (n > 0)
		ring_put(c, notice, n);
	c->untold = 0;
	ring_put(c, line->data, line->len);
	c->stats.sent++;
	return true;
}

static int compile_rows(struct pl_where **ret, enum pl_record_kind kind, bool wanted,
	const char *where, struct pl_diag *diag)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);

	return wanted ? pl_where_new_over(ret, fields, n, where, diag) : 0;
}

/* Compiles the expression for kinds of tap records. */
static int compile_flat(
	struct pl_watch_client *c, const struct pl_watch_request *r, struct pl_diag *diag)
{
	const enum pl_flat_kind kind = (enum pl_flat_kind)__builtin_ctz(r->flat);
	const struct pl_flat *flat = pl_flat(kind);
	const char *name = pl_watch_kind_of(kind)->name;
	const bool alone = !r->paths && !r->events && !r->values && r->flat == 1u << kind;

	if (!alone && (r->form != PL_WATCH_RECORD || r->where != NULL))
		return pl_diag_fail(diag, -EINVAL,
			"%s come with other kinds in the form record only, without where", name);
	if (r->form != PL_WATCH_JSONL && r->form != PL_WATCH_RECORD)
		return pl_diag_fail(diag, -EINVAL, "%s come in the forms jsonl and record", name);
	c->paths = r->paths;
	c->events = r->events;
	c->values = r->values;
	c->flat = r->flat;
	return r->where == NULL ? 0
				: pl_where_new_over(&c->flat_where, flat->fields, flat->n_fields,
					  r->where, diag);
}

/* Compiles the expression for each kind asked for; without any, for those that have its fields. */
static int compile(
	struct pl_watch_client *c, const struct pl_watch_request *r, struct pl_diag *diag)
{
	bool any = !r->paths && !r->events && !r->values;
	int p = 0, e, v;

	if (r->flat != 0)
		return compile_flat(c, r, diag);
	c->paths = r->paths || any;
	c->events = r->events || any;
	c->values = r->values || any;
	if (r->where == NULL)
		return 0;
	v = compile_rows(&c->value_where, PL_KIND_VALUE, c->values, r->where, diag);
	e = compile_rows(&c->event_where, PL_KIND_EVENT, c->events, r->where, diag);
	/* Last: of several errors that about paths is reported, which have most fields. */
	if (c->paths)
		p = pl_where_new(&c->path_where, r->where, diag);
	if (any && (p == 0 || e == 0 || v == 0)) {
		c->paths = p == 0;
		c->events = e == 0;
		c->values = v == 0;
		return 0;
	}
	return p < 0 ? p : e < 0 ? e : v;
}

/* Returns how many entries of the client's kinds the output's queues have dropped. */
static uint64_t missed_of(const struct pl_watch_client *c)
{
	uint64_t missed = 0;

	for (unsigned int kind = 0; kind < PL_FLAT_MAX; kind++) {
		if ((c->flat & 1u << kind) != 0)
			missed += atomic_load(&c->live->missed_flat[kind]);
	}
	return missed + (c->paths ? c->live->missed_paths : 0) +
	       (c->events ? c->live->missed_events : 0) + (c->values ? c->live->missed_values : 0);
}

/* Adds the client to the counts of clients for its kinds of tap records, or removes it. */
static void count_flat(const struct pl_watch_client *c, unsigned int by)
{
	for (unsigned int kind = 0; kind < PL_FLAT_MAX; kind++) {
		if ((c->flat & 1u << kind) != 0)
			atomic_fetch_add(&c->live->n_flat[kind], by);
	}
}

static void header(struct pl_watch_client *c)
{
	struct pl_buf *line = &c->live->line;

	pl_buf_reset(line);
	if (c->form == PL_WATCH_CSV && c->paths)
		pl_path_csv_header(line);
	else if (c->form == PL_WATCH_CSV && c->events)
		pl_event_csv_header(line);
	else if (c->form == PL_WATCH_CSV)
		pl_value_csv_header(line);
	else if (c->form == PL_WATCH_TABLE || c->form == PL_WATCH_WIDE) {
		if (c->paths)
			pl_path_table_header(line, c->form == PL_WATCH_WIDE);
		if (c->events)
			pl_event_table_header(line);
		if (c->values)
			pl_value_table_header(line);
	}
	if (!line->failed && line->len > 0)
		ring_put(c, line->data, line->len);
}

/* Returns true when a client other than `but` wants paths. */
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
	pl_where_free(c->value_where);
	pl_where_free(c->flat_where);
	c->path_where = c->event_where = c->value_where = c->flat_where = NULL;
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
		return pl_diag_fail(
			diag, -EBUSY, "%u streams are open, which is the limit", live->max_clients);
	}
	*c = (struct pl_watch_client){ .live = live, .ring = c->ring, .form = request->form };
	r = compile(c, request, diag);
	if (r == 0 && c->form == PL_WATCH_CSV && c->paths + c->events + c->values > 1)
		r = pl_diag_fail(diag, -EINVAL,
			"CSV has one header: ask for paths, for events or for values");
	if (r < 0) {
		forget(c);
		pthread_mutex_unlock(&live->lock);
		return r;
	}
	c->stats.address = request->address;
	c->stats.paths = c->paths;
	c->stats.events = c->events;
	c->stats.values = c->values;
	c->stats.flat = c->flat;
	c->stats.form = c->form;
	c->missed_from = missed_of(c);
	c->read_ns = now_ns;
	header(c);
	want = c->paths && !others_want_paths(live, c);
	c->used = true;
	live->n_clients++;
	count_flat(c, 1);
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
	count_flat(c, -1u);
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

/* Puts reports of drops, or a sign of life, into the empty buffer. */
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
