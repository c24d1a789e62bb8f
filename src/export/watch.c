/* SPDX-License-Identifier: BSD-2-Clause */
/* The output for live viewers: formats each record for the clients that want it. */
#include "export/watch.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "export/watch_state.h"
#include "record/json.h"
#include "record/rows.h"
#include "record/table.h"
#include "record/text.h"
#include "record/where.h"

const char *pl_watch_form_name(enum pl_watch_form form)
{
	static const char *const names[PL_WATCH_FORM_MAX] = { "api", "jsonl", "table", "wide",
		"csv", "text", "record" };

	return names[form];
}

static const struct pl_watch_kind kinds[] = {
	{ PL_FLAT_FLOW288, "flows", "flow " },
	{ PL_FLAT_PKT96, "packets", "packet " },
	{ PL_FLAT_DNS64, "dns", "dns " },
	{ PL_FLAT_DROP168, "drops", "drop " },
	{ PL_FLAT_MARK128, "marks", "mark " },
	{ PL_FLAT_SEG192, "segments", "segment " },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

const struct pl_watch_kind *pl_watch_kind_at(unsigned int i)
{
	return i < N_KINDS ? &kinds[i] : NULL;
}

const struct pl_watch_kind *pl_watch_kind_of(enum pl_flat_kind flat)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		if (kinds[i].flat == flat)
			return &kinds[i];
	}
	return NULL;
}

/* ---- the driver's thread ---- */

static void put_hex(struct pl_buf *out, const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char *to = pl_buf_reserve(out, 2 * n);
	const uint8_t *p = bytes;

	for (size_t i = 0; to != NULL && i < n; i++) {
		*to++ = digits[p[i] >> 4];
		*to++ = digits[p[i] & 15];
	}
	if (to != NULL)
		pl_buf_advance(out, 2 * n);
}

static void put_record(struct pl_buf *out, const char *word, const void *record, size_t n)
{
	pl_buf_str(out, word);
	put_hex(out, record, n);
}

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
	case PL_WATCH_RECORD:
		put_record(out, "path ", path, sizeof(*path));
		put_hex(out, hops, n * sizeof(*hops));
		break;
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
	case PL_WATCH_RECORD:
		put_record(out, "event ", event, sizeof(*event));
		break;
	default:
		pl_event_text(out, event);
		return;
	}
	pl_buf_chr(out, '\n');
}

static void format_value(struct pl_buf *out, enum pl_watch_form form, const struct pl_value *value)
{
	struct pl_json json;

	switch (form) {
	case PL_WATCH_API:
		pl_json_init(&json, out);
		pl_value_api(&json, value);
		break;
	case PL_WATCH_JSONL:
		pl_value_json(out, value);
		break;
	case PL_WATCH_TABLE:
	case PL_WATCH_WIDE:
		pl_value_table(out, value);
		return;
	case PL_WATCH_CSV:
		pl_value_csv(out, value);
		return;
	case PL_WATCH_RECORD:
		put_record(out, "value ", value, sizeof(*value));
		break;
	default:
		pl_value_text(out, value);
		return;
	}
	pl_buf_chr(out, '\n');
}

static void format_flat(
	struct pl_buf *out, enum pl_watch_form form, enum pl_flat_kind kind, const void *record)
{
	const struct pl_watch_kind *watched = pl_watch_kind_of(kind);

	/* Records of other kinds have no watcher. */
	assert(watched != NULL);
	if (form == PL_WATCH_RECORD)
		put_record(out, watched->word, record, pl_flat(kind)->size);
	else
		pl_flat_json(out, kind, record);
	pl_buf_chr(out, '\n');
}

static struct pl_watch *of(struct pl_export *e)
{
	return (struct pl_watch *)e;
}

/* An entry that is offered to the clients. */
struct offer {
	enum { OFFER_PATH, OFFER_EVENT, OFFER_VALUE, OFFER_FLAT } kind;
	enum pl_flat_kind flat;
	const void *record;
	const struct pl_hop *hops; /* of a path */
	uint32_t present;          /* of an event or a value */
};

static bool wants(
	const struct pl_watch_client *c, const struct offer *o, const struct pl_where **ret_where)
{
	switch (o->kind) {
	case OFFER_PATH:
		*ret_where = c->path_where;
		return c->paths;
	case OFFER_EVENT:
		*ret_where = c->event_where;
		return c->events;
	case OFFER_VALUE:
		*ret_where = c->value_where;
		return c->values;
	default:
		*ret_where = c->flat_where;
		return (c->flat & 1u << o->flat) != 0;
	}
}

static bool matches(const struct pl_where *where, const struct offer *o)
{
	const struct pl_path *path = o->record;

	return o->kind == OFFER_PATH ? pl_where_match(where, path, o->hops, path->hop_count)
				     : pl_where_match_row(where, o->record, o->present);
}

static void format(struct pl_buf *out, enum pl_watch_form form, const struct offer *o)
{
	if (o->kind == OFFER_PATH)
		format_path(out, form, o->record, o->hops);
	else if (o->kind == OFFER_EVENT)
		format_event(out, form, o->record);
	else if (o->kind == OFFER_VALUE)
		format_value(out, form, o->record);
	else
		format_flat(out, form, o->flat, o->record);
}

/* Offers one entry to all clients; false when one that wanted it had no room. */
static bool offer(struct pl_watch *live, const struct offer *o)
{
	const struct pl_where *where;
	bool good = true;

	for (unsigned int i = 0; i < live->max_clients; i++) {
		struct pl_watch_client *c = &live->clients[i];

		if (!c->used || !wants(c, o, &where))
			continue;
		c->stats.seen++;
		if (where != NULL && !matches(where, o)) {
			c->stats.filtered++;
			continue;
		}
		/* A tap's record is not formatted for a client that does not read. */
		if (o->kind == OFFER_FLAT && pl_watch_client_full(c, FLAT_LINE_MAX))
			continue;
		pl_buf_reset(&live->line);
		format(&live->line, c->form, o);
		good = pl_watch_client_put(c) && good;
	}
	return good;
}

/* Wakes the clients' side once per client that found nothing before and has data now. */
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
		delivered += offer(live, &(struct offer){ .kind = OFFER_PATH,
						 .record = &batch->paths[i],
						 .hops = &batch->hops[batch->first_hop[i]] });
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
		delivered += offer(live, &(struct offer){ .kind = OFFER_EVENT,
						 .record = &events[i],
						 .present = events[i].present });
	}
	unlock_and_wake(live);
	account(e, n, delivered);
}

static void write_values(
	struct pl_export *e, const struct pl_value *values, uint32_t n, uint64_t now_ns)
{
	struct pl_watch *live = of(e);
	uint32_t delivered = 0;

	(void)now_ns;
	pthread_mutex_lock(&live->lock);
	for (uint32_t i = 0; i < n; i++) {
		live->recent_values[live->n_recent_values++ % live->max_recent] = values[i];
		delivered += offer(live, &(struct offer){ .kind = OFFER_VALUE,
						 .record = &values[i],
						 .present = values[i].present });
	}
	unlock_and_wake(live);
	account(e, n, delivered);
}

/* ---- the taps' thread ---- */

static bool wanted(const struct pl_watch *live, enum pl_flat_kind kind)
{
	return atomic_load_explicit(&live->n_flat[kind], memory_order_relaxed) > 0;
}

bool pl_watch_wants_tapped(const struct pl_watch *live)
{
	bool any = false;

	for (size_t i = 0; i < N_KINDS; i++)
		any |= wanted(live, kinds[i].flat);
	return any;
}

static void keep(struct pl_watch *live, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct pl_watch_pending *p = &live->pending[kind];
	const uint32_t size = pl_flat(kind)->size, room = PENDING_BYTES / size - p->n,
		       kept = n < room ? n : room;

	if (kept > 0)
		memcpy(p->records + (size_t)p->n * size, records, (size_t)kept * size);
	p->n += kept;
	if (n > kept)
		atomic_fetch_add(&live->missed_flat[kind], n - kept);
}

static void offer_all(
	struct pl_watch *live, enum pl_flat_kind kind, const uint8_t *records, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		(void)offer(live, &(struct offer){ .kind = OFFER_FLAT,
					  .flat = kind,
					  .record = records + (size_t)i * pl_flat(kind)->size });
}

void pl_watch_tapped(struct pl_watch *live, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct pl_watch_pending *p = &live->pending[kind];

	if (!wanted(live, kind)) {
		p->n = 0;
		return;
	}
	if (p->n + n == 0)
		return;
	if (pthread_mutex_trylock(&live->lock) != 0) {
		keep(live, kind, records, n);
		return;
	}
	offer_all(live, kind, p->records, p->n);
	p->n = 0;
	offer_all(live, kind, records, n);
	unlock_and_wake(live);
}

void pl_watch_turned(struct pl_watch *live)
{
	for (size_t i = 0; i < N_KINDS; i++)
		pl_watch_tapped(live, kinds[i].flat, NULL, 0);
}

static void close_live(struct pl_export *e)
{
	struct pl_watch *live = of(e);

	for (unsigned int i = 0; i < live->max_clients && live->clients != NULL; i++)
		free(live->clients[i].ring);
	free(live->clients);
	free(live->recent);
	free(live->recent_values);
	for (size_t i = 0; i < N_KINDS; i++)
		free(live->pending[kinds[i].flat].records);
	pl_buf_done(&live->line);
	pthread_mutex_destroy(&live->lock);
	free(live);
}

static const struct pl_export_ops ops = {
	.name = "live",
	.write_paths = write_paths,
	.write_events = write_events,
	.write_values = write_values,
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
	live->recent_values = calloc(live->max_recent, sizeof(*live->recent_values));
	if (live->clients == NULL || live->recent == NULL || live->recent_values == NULL)
		goto fail;
	for (size_t i = 0; i < N_KINDS; i++) {
		live->pending[kinds[i].flat].records = malloc(PENDING_BYTES);
		if (live->pending[kinds[i].flat].records == NULL)
			goto fail;
	}
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
	       (uint64_t)recent_of(options) * (sizeof(struct pl_event) + sizeof(struct pl_value)) +
	       N_KINDS * PENDING_BYTES + 2 * pl_path_json_max(PL_BATCH_HOPS_MIN);
}

void pl_watch_set_hooks(struct pl_watch *live, const struct pl_watch_hooks *hooks)
{
	pthread_mutex_lock(&live->lock);
	live->hooks = *hooks;
	pthread_mutex_unlock(&live->lock);
}

void pl_watch_missed(struct pl_watch *live, uint64_t paths, uint64_t events, uint64_t values)
{
	pthread_mutex_lock(&live->lock);
	live->missed_paths = paths;
	live->missed_events = events;
	live->missed_values = values;
	pthread_mutex_unlock(&live->lock);
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

uint32_t pl_watch_values(
	struct pl_watch *live, struct pl_value *dst, uint32_t cap, uint64_t *ret_total)
{
	uint64_t head;
	uint32_t n = 0;

	pthread_mutex_lock(&live->lock);
	head = live->n_recent_values;
	for (; n < cap && n < live->max_recent && n < head; n++)
		dst[n] = live->recent_values[(head - 1 - n) % live->max_recent];
	*ret_total = head;
	pthread_mutex_unlock(&live->lock);
	return n;
}
