/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/events.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "bpf/detect_core.h"
#include "detect/cells.h"
#include "detect/flows.h"

#define MS          ((uint64_t)1000000)
#define SECOND      (1000 * MS)
#define LIMIT_MAX   (1U << 26)
#define CHUNK       64
#define LEVEL_KINDS 2

/* What a level is of; the place of each kind in a cell. */
enum level { LEVEL_DEPTH, LEVEL_LATENCY };

struct place_key {
	uint64_t node;
	uint32_t port;
	uint16_t queue;
	uint16_t has;
};

#define HAS_PORT  1
#define HAS_QUEUE 2

/* A place where something is above a threshold, or was until a moment ago. */
struct place {
	struct place_key key;
	uint64_t seen_ns;
	struct pl_core_level level[LEVEL_KINDS];
	uint64_t limit_due_ns[LEVEL_KINDS];
};

struct drop_key {
	uint64_t node;
	uint64_t reason; /* has_node << 16 | has_reason << 8 | reason */
};

struct drop {
	struct drop_key key;
	uint64_t waiting; /* reports not told of yet */
	uint64_t limit_due_ns;
};

struct exporter_key {
	struct pl_addr addr;
	uint64_t node;
	uint64_t hw_id;
};

struct exporter {
	struct exporter_key key;
	uint64_t lost_mark; /* losses told so far */
	uint64_t reports;
	uint64_t told_ns;
	bool told;
};

_Static_assert(sizeof(struct place_key) == 16, "no padding: keys are compared as bytes");
_Static_assert(sizeof(struct drop_key) == 16, "no padding: keys are compared as bytes");
_Static_assert(sizeof(struct exporter_key) == 32, "no padding: keys are compared as bytes");

struct pl_detect {
	struct pl_detect_options options; /* with the defaults filled in */
	bool level_on[LEVEL_KINDS];
	struct pl_core_level_rule rule[LEVEL_KINDS];
	struct pl_core_limit_rule limit;
	struct pl_flows flows;
	struct pl_cells places, drops, exporters;
	uint64_t seed;
	uint32_t raised;
	struct pl_detect_counters counters;
	struct pl_flow_key keys[CHUNK];
	uint64_t hashes[CHUNK];
};

static const enum pl_event_kind level_event[LEVEL_KINDS] = {
	[LEVEL_DEPTH] = PL_EVENT_QUEUE_DEPTH,
	[LEVEL_LATENCY] = PL_EVENT_HOP_LATENCY,
};

void pl_detect_defaults(struct pl_detect_options *ret)
{
	*ret = (struct pl_detect_options){
		.path_change = true,
		.report_loss = true,
		.packet_drop = true,
		.queue_depth = { .on = true, .threshold = 100 },
		.hop_latency = { .on = true, .threshold = MS },
	};
}

static void default_u64(uint64_t *value, uint64_t def)
{
	if (*value == 0)
		*value = def;
}

static void default_u32(uint32_t *value, uint32_t def)
{
	if (*value == 0)
		*value = def;
}

static struct pl_detect_options with_defaults(const struct pl_detect_options *given)
{
	struct pl_detect_options o = *given;
	struct pl_detect_level *levels[] = { &o.queue_depth, &o.hop_latency };

	for (unsigned int i = 0; i < LEVEL_KINDS; i++) {
		default_u64(&levels[i]->low, levels[i]->threshold - levels[i]->threshold / 8);
		default_u64(&levels[i]->end_hold_ns, 10 * MS);
	}
	default_u32(&o.max_flows, 131072);
	default_u32(&o.max_queues, 4096);
	default_u32(&o.max_drops, 1024);
	default_u32(&o.max_exporters, 4096);
	default_u64(&o.flow_idle_ns, 60 * SECOND);
	default_u64(&o.idle_ns, 5 * SECOND);
	default_u64(&o.loss_interval_ns, SECOND);
	default_u64(&o.limit_interval_ns, SECOND);
	default_u32(&o.limit_burst, 5);
	return o;
}

static bool options_good(const struct pl_detect_options *o)
{
	return o->queue_depth.low <= o->queue_depth.threshold &&
	       o->hop_latency.low <= o->hop_latency.threshold && o->max_flows <= LIMIT_MAX &&
	       o->max_queues <= LIMIT_MAX && o->max_drops <= LIMIT_MAX &&
	       o->max_exporters <= LIMIT_MAX && o->limit_burst <= 1000000 &&
	       o->limit_interval_ns <= 3600 * SECOND;
}

static struct pl_core_level_rule level_rule(const struct pl_detect_level *level)
{
	return (struct pl_core_level_rule){
		.threshold = level->threshold,
		.low = level->low,
		.begin_hold_ns = level->begin_hold_ns,
		.end_hold_ns = level->end_hold_ns,
	};
}

int pl_detect_new(struct pl_detect **ret, const struct pl_detect_options *options)
{
	struct pl_detect_options o = with_defaults(options);
	struct pl_detect *det;

	if (!options_good(&o))
		return -EINVAL;
	det = calloc(1, sizeof(*det));
	if (det == NULL)
		return -ENOMEM;
	det->options = o;
	det->seed = pl_hash_seed();
	det->level_on[LEVEL_DEPTH] = o.queue_depth.on;
	det->level_on[LEVEL_LATENCY] = o.hop_latency.on;
	det->rule[LEVEL_DEPTH] = level_rule(&o.queue_depth);
	det->rule[LEVEL_LATENCY] = level_rule(&o.hop_latency);
	det->limit.interval_ns = o.limit_interval_ns;
	det->limit.burst_ns = (o.limit_burst - 1) * o.limit_interval_ns;
	if (pl_flows_init(&det->flows, o.max_flows) < 0 ||
		pl_cells_init(&det->places, o.max_queues, sizeof(struct place)) < 0 ||
		pl_cells_init(&det->drops, o.max_drops, sizeof(struct drop)) < 0 ||
		pl_cells_init(&det->exporters, o.max_exporters, sizeof(struct exporter)) < 0) {
		pl_detect_free(det);
		return -ENOMEM;
	}
	*ret = det;
	return 0;
}

void pl_detect_free(struct pl_detect *det)
{
	if (det == NULL)
		return;
	pl_flows_done(&det->flows);
	pl_cells_done(&det->places);
	pl_cells_done(&det->drops);
	pl_cells_done(&det->exporters);
	free(det);
}

uint64_t pl_detect_memory(const struct pl_detect_options *options)
{
	struct pl_detect_options o = with_defaults(options);

	return sizeof(struct pl_detect) + pl_flows_memory(o.max_flows) +
	       pl_cells_memory(o.max_queues, sizeof(struct place)) +
	       pl_cells_memory(o.max_drops, sizeof(struct drop)) +
	       pl_cells_memory(o.max_exporters, sizeof(struct exporter));
}

int pl_event_batch_init(struct pl_event_batch *batch, uint32_t cap)
{
	assert(cap > 0);
	*batch = (struct pl_event_batch){ .cap = cap };
	batch->events = calloc(cap, sizeof(*batch->events));
	return batch->events == NULL ? -ENOMEM : 0;
}

void pl_event_batch_done(struct pl_event_batch *batch)
{
	free(batch->events);
	*batch = (struct pl_event_batch){ 0 };
}

/* --- telling ----------------------------------------------------------------------------------------- */

/* A fresh event, or NULL when the caller has no room for it. */
static struct pl_event *event_add(struct pl_detect *det, struct pl_event_batch *out,
	enum pl_event_kind kind, enum pl_event_phase phase, uint64_t ts_ns)
{
	struct pl_event *e;

	if (out->n == out->cap && out->flush != NULL)
		out->flush(out, out->flush_arg);
	if (out->n == out->cap) {
		pl_count(&det->counters.events_dropped, 1);
		return NULL;
	}
	pl_count(&det->counters.events[kind], 1);
	e = &out->events[out->n++];
	*e = (struct pl_event){
		.ts_ns = ts_ns,
		.event = (uint8_t)kind,
		.phase = (uint8_t)phase,
		.record_version = PL_RECORD_VERSION,
	};
	return e;
}

static bool limit_pass(
	struct pl_detect *det, uint64_t *due_ns, enum pl_event_kind kind, uint64_t now_ns)
{
	if (pl_core_limit_pass(due_ns, &det->limit, now_ns))
		return true;
	pl_count(&det->counters.limited[kind], 1);
	return false;
}

/* Which report showed it. */
static void event_cite(struct pl_event *e, const struct pl_path *path)
{
	e->report_id = path->report_id;
	e->present |= PL_EVENT_HAS_report_id;
	if (path->present & PL_PATH_HAS_src) {
		e->src = path->src;
		e->dst = path->dst;
		e->proto = path->proto;
		e->present |= PL_EVENT_HAS_src;
	}
	if (path->present & PL_PATH_HAS_sport) {
		e->sport = path->sport;
		e->dport = path->dport;
		e->present |= PL_EVENT_HAS_sport;
	}
	if (path->present & PL_PATH_HAS_path_id) {
		e->path_id = path->path_id;
		e->present |= PL_EVENT_HAS_path_id;
	}
	if (path->present & PL_PATH_HAS_exporter) {
		e->exporter = path->exporter;
		e->present |= PL_EVENT_HAS_exporter;
	}
	if (path->present & PL_PATH_HAS_seq) {
		e->seq = path->seq;
		e->present |= PL_EVENT_HAS_seq;
	}
	if (path->present & PL_PATH_HAS_hw_id) {
		e->hw_id = path->hw_id;
		e->present |= PL_EVENT_HAS_hw_id;
	}
}

/* --- levels ------------------------------------------------------------------------------------------ */

static struct place_key place_key(const struct pl_hop *hop)
{
	struct place_key k = { .node = hop->node };

	if (hop->present & PL_HOP_HAS_egress_port) {
		k.port = hop->egress_port;
		k.has |= HAS_PORT;
	}
	if (hop->present & PL_HOP_HAS_queue) {
		k.queue = hop->queue;
		k.has |= HAS_QUEUE;
	}
	return k;
}

/* path may be NULL: nothing but time showed it. */
static void level_tell(struct pl_detect *det, struct place *p, enum level level,
	enum pl_event_phase phase, uint64_t value, const struct pl_path *path, uint64_t ts_ns,
	struct pl_event_batch *out)
{
	struct pl_event *e = event_add(det, out, level_event[level], phase, ts_ns);

	if (e == NULL)
		return;
	if (path != NULL)
		event_cite(e, path);
	e->node = p->key.node;
	e->present |= PL_EVENT_HAS_node;
	if (p->key.has & HAS_PORT) {
		e->port = p->key.port;
		e->present |= PL_EVENT_HAS_port;
	}
	if (p->key.has & HAS_QUEUE) {
		e->queue = p->key.queue;
		e->present |= PL_EVENT_HAS_queue;
	}
	e->value = value;
	e->threshold = det->rule[level].threshold;
	e->present |= PL_EVENT_HAS_value | PL_EVENT_HAS_threshold;
}

static void level_change(struct pl_detect *det, struct place *p, enum level level, uint32_t change,
	uint64_t value, const struct pl_path *path, uint64_t now_ns, uint64_t ts_ns,
	struct pl_event_batch *out)
{
	struct pl_core_level *s = &p->level[level];

	if (change == PL_CORE_BEGIN) {
		det->raised++;
		s->silent = !limit_pass(det, &p->limit_due_ns[level], level_event[level], now_ns);
		if (!s->silent)
			level_tell(det, p, level, PL_PHASE_BEGIN, value, path, ts_ns, out);
	} else if (change == PL_CORE_END) {
		det->raised--;
		if (!s->silent)
			level_tell(det, p, level, PL_PHASE_END, s->max, path, ts_ns, out);
	}
}

/* Only places above a threshold have a cell, so in a quiet network this is two comparisons per hop. */
static inline void hop_levels(struct pl_detect *det, const struct pl_path *path,
	const struct pl_hop *hop, uint64_t now_ns, struct pl_event_batch *out)
{
	const bool has[LEVEL_KINDS] = {
		det->level_on[LEVEL_DEPTH] && (hop->present & PL_HOP_HAS_queue_depth),
		det->level_on[LEVEL_LATENCY] && (hop->present & PL_HOP_HAS_hop_latency_ns),
	};
	const uint64_t value[LEVEL_KINDS] = { hop->queue_depth, hop->hop_latency_ns };
	bool above =
		(has[LEVEL_DEPTH] && value[LEVEL_DEPTH] > det->rule[LEVEL_DEPTH].threshold) ||
		(has[LEVEL_LATENCY] && value[LEVEL_LATENCY] > det->rule[LEVEL_LATENCY].threshold);
	struct place_key key;
	struct place *p;
	uint64_t hash;
	uint32_t cell;

	if (__builtin_expect(!above && pl_cells_count(&det->places) == 0, 1))
		return;
	if (!(hop->present & PL_HOP_HAS_node) || (!has[LEVEL_DEPTH] && !has[LEVEL_LATENCY]))
		return;
	key = place_key(hop);
	hash = pl_hash_mix(key.node ^ det->seed,
		(uint64_t)key.has << 48 | (uint64_t)key.queue << 32 | key.port);
	cell = pl_cells_find(&det->places, hash, &key, sizeof(key));
	if (cell == PL_CELL_NONE) {
		if (!above)
			return;
		cell = pl_cells_insert(&det->places, hash, &key, sizeof(key));
		if (cell == PL_CELL_NONE) {
			pl_count(&det->counters.queues_full, 1);
			return;
		}
	}
	p = pl_cells_at(&det->places, cell);
	p->seen_ns = now_ns;
	for (unsigned int l = 0; l < LEVEL_KINDS; l++) {
		uint32_t change;

		if (!has[l])
			continue;
		change = pl_core_level_step(&p->level[l], &det->rule[l], value[l], now_ns);
		if (change != PL_CORE_NONE)
			level_change(det, p, l, change, value[l], path, now_ns, path->ts_ns, out);
	}
}

static void places_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	for (uint32_t i = 0; i < det->places.high; i++) {
		struct place *p = pl_cells_at(&det->places, i);
		bool needed = false;
		bool idle;

		if (!pl_cells_live(&det->places, i))
			continue;
		idle = pl_core_elapsed(now_ns, p->seen_ns) > det->options.idle_ns;
		for (unsigned int l = 0; l < LEVEL_KINDS; l++) {
			struct pl_core_level *s = &p->level[l];
			uint32_t change = pl_core_level_wait(s, &det->rule[l], now_ns);

			if (idle && s->state != PL_CORE_IDLE) {
				if (s->state != PL_CORE_RISING)
					change = PL_CORE_END;
				s->state = PL_CORE_IDLE;
			}
			if (change != PL_CORE_NONE)
				level_change(det, p, l, change, 0, NULL, now_ns, ts_ns, out);
			needed |= s->state != PL_CORE_IDLE || p->limit_due_ns[l] > now_ns;
		}
		if (!needed)
			pl_cells_remove(&det->places, i);
	}
}

/* --- drops ------------------------------------------------------------------------------------------- */

static struct drop_key drop_key(const struct pl_path *path, const struct pl_hop *hops)
{
	const struct pl_hop *last = path->hop_count > 0 ? &hops[path->hop_count - 1] : NULL;
	struct drop_key k = { 0 };

	if (path->present & PL_PATH_HAS_node) {
		k.node = path->node;
		k.reason |= 1 << 16;
	} else if (last != NULL && (last->present & PL_HOP_HAS_node)) {
		k.node = last->node;
		k.reason |= 1 << 16;
	}
	if (path->present & PL_PATH_HAS_drop_reason)
		k.reason |= 1 << 8 | path->drop_reason;
	return k;
}

static void drop_tell(struct pl_detect *det, struct drop *d, const struct pl_path *path,
	const struct pl_hop *last, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_event *e;

	if (!limit_pass(det, &d->limit_due_ns, PL_EVENT_PACKET_DROP, now_ns))
		return;
	e = event_add(det, out, PL_EVENT_PACKET_DROP, PL_PHASE_ONCE, ts_ns);
	if (e == NULL)
		return;
	if (path != NULL)
		event_cite(e, path);
	if (d->key.reason & 1 << 16) {
		e->node = d->key.node;
		e->present |= PL_EVENT_HAS_node;
	}
	if (d->key.reason & 1 << 8) {
		e->drop_reason = (uint8_t)d->key.reason;
		e->present |= PL_EVENT_HAS_drop_reason;
	}
	if (last != NULL && (last->present & PL_HOP_HAS_egress_port)) {
		e->port = last->egress_port;
		e->present |= PL_EVENT_HAS_port;
	}
	if (last != NULL && (last->present & PL_HOP_HAS_queue)) {
		e->queue = last->queue;
		e->present |= PL_EVENT_HAS_queue;
	}
	e->value = d->waiting;
	e->present |= PL_EVENT_HAS_value;
	d->waiting = 0;
}

static __attribute__((noinline)) void path_drop(struct pl_detect *det, const struct pl_path *path,
	const struct pl_hop *hops, uint64_t now_ns, struct pl_event_batch *out)
{
	struct drop_key key = drop_key(path, hops);
	uint64_t hash = pl_hash_mix(key.node ^ det->seed, key.reason);
	uint32_t cell = pl_cells_find(&det->drops, hash, &key, sizeof(key));
	const struct pl_hop *last = path->hop_count > 0 ? &hops[path->hop_count - 1] : NULL;
	struct drop *d;

	if (cell == PL_CELL_NONE)
		cell = pl_cells_insert(&det->drops, hash, &key, sizeof(key));
	if (cell == PL_CELL_NONE) {
		pl_count(&det->counters.drops_full, 1);
		return;
	}
	d = pl_cells_at(&det->drops, cell);
	d->waiting++;
	drop_tell(det, d, path, last, now_ns, path->ts_ns, out);
}

static void drops_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	for (uint32_t i = 0; i < det->drops.high; i++) {
		struct drop *d = pl_cells_at(&det->drops, i);

		if (!pl_cells_live(&det->drops, i))
			continue;
		if (d->waiting > 0)
			drop_tell(det, d, NULL, NULL, now_ns, ts_ns, out);
		if (d->waiting == 0 && d->limit_due_ns <= now_ns)
			pl_cells_remove(&det->drops, i);
	}
}

/* --- path changes ------------------------------------------------------------------------------------ */

/*
 * Only a stack that went all the way from source to sink says which path the flow takes. A congestion report
 * of an untracked flow may come from the middle of the path (Telemetry Report 2.0, 3.2: Q without F).
 */
static bool path_whole(const struct pl_path *path)
{
	const unsigned int partial =
		PL_FLAG_PARTIAL | PL_FLAG_DROPPED | PL_FLAG_INTERMEDIATE | PL_FLAG_COPY;
	const unsigned int tracked = PL_FLAG_CONGESTED | PL_FLAG_TRACKED;

	return (path->flags & partial) == 0 && (path->flags & tracked) != PL_FLAG_CONGESTED &&
	       (path->mode == PL_MODE_MD || path->mode == PL_MODE_IOAM_TRACE) &&
	       (path->present & PL_PATH_HAS_path_id) && (path->present & PL_PATH_HAS_src);
}

static __attribute__((noinline)) void path_changed(struct pl_detect *det,
	const struct pl_path *path, uint64_t old_path_id, uint64_t *due_ns, uint64_t now_ns,
	struct pl_event_batch *out)
{
	struct pl_event *e;

	if (!limit_pass(det, due_ns, PL_EVENT_PATH_CHANGE, now_ns))
		return;
	e = event_add(det, out, PL_EVENT_PATH_CHANGE, PL_PHASE_ONCE, path->ts_ns);
	if (e == NULL)
		return;
	event_cite(e, path);
	e->old_path_id = old_path_id;
	e->present |= PL_EVENT_HAS_old_path_id;
	if (path->present & PL_PATH_HAS_node) {
		e->node = path->node;
		e->present |= PL_EVENT_HAS_node;
	}
}

static inline void path_flow(struct pl_detect *det, const struct pl_path *path, uint64_t hash,
	const struct pl_flow_key *key, uint64_t now_ns, struct pl_event_batch *out)
{
	enum pl_flow_place place;
	uint64_t replaced_ns = 0, old_path_id, idle;
	uint32_t i = pl_flows_obtain(&det->flows, hash, key, &place, &replaced_ns);
	struct pl_flow *flow = &det->flows.flows[i];

	if (__builtin_expect(place != PL_FLOW_KNOWN, 0)) {
		pl_count(&det->counters.flows_new, 1);
		if (place == PL_FLOW_REPLACED) {
			idle = pl_core_elapsed(now_ns, replaced_ns);
			pl_count(idle > det->options.flow_idle_ns ? &det->counters.flows_aged
								  : &det->counters.flows_evicted,
				1);
		}
	}
	old_path_id = flow->path_id;
	switch (pl_core_path_step(&flow->path_id, &flow->seen_ns, place == PL_FLOW_KNOWN,
		path->path_id, det->options.flow_idle_ns, now_ns)) {
	case PL_CORE_PATH_CHANGED:
		path_changed(det, path, old_path_id, &det->flows.limit_due_ns[i], now_ns, out);
		break;
	case PL_CORE_PATH_FIRST:
		if (place == PL_FLOW_KNOWN) {
			pl_count(&det->counters.flows_aged, 1);
			pl_count(&det->counters.flows_new, 1);
		}
		break;
	default:
		break;
	}
}

static void chunk_flows(struct pl_detect *det, const struct pl_path *paths, uint32_t n,
	uint64_t now_ns, struct pl_event_batch *out)
{
	uint32_t whole[CHUNK];
	uint32_t n_whole = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!path_whole(&paths[i]))
			continue;
		pl_flow_key_set(&det->keys[n_whole], &paths[i]);
		det->hashes[n_whole] =
			pl_hash(&det->keys[n_whole], sizeof(det->keys[0]), det->seed);
		pl_flows_prefetch_tags(&det->flows, det->hashes[n_whole]);
		whole[n_whole++] = i;
	}
	for (uint32_t i = 0; i < n_whole; i++)
		pl_flows_prefetch_flow(&det->flows, det->hashes[i]);
	for (uint32_t i = 0; i < n_whole; i++)
		path_flow(det, &paths[whole[i]], det->hashes[i], &det->keys[i], now_ns, out);
}

void pl_detect_batch(struct pl_detect *det, const struct pl_record_batch *batch, uint64_t now_ns,
	struct pl_event_batch *out)
{
	bool levels = det->level_on[LEVEL_DEPTH] || det->level_on[LEVEL_LATENCY];

	for (uint32_t i = 0; det->options.path_change && i < batch->n_paths; i += CHUNK) {
		uint32_t n = batch->n_paths - i < CHUNK ? batch->n_paths - i : CHUNK;

		chunk_flows(det, batch->paths + i, n, now_ns, out);
	}
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		const struct pl_path *path = &batch->paths[i];
		const struct pl_hop *hops = batch->hops + batch->first_hop[i];

		if ((path->flags & PL_FLAG_DROPPED) && det->options.packet_drop)
			path_drop(det, path, hops, now_ns, out);
		for (unsigned int h = 0; levels && h < path->hop_count; h++)
			hop_levels(det, path, &hops[h], now_ns, out);
	}
}

/* --- report loss ------------------------------------------------------------------------------------- */

void pl_detect_exporter(struct pl_detect *det, const struct pl_exporter *exporter, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out)
{
	struct exporter_key key = {
		.addr = exporter->addr, .node = exporter->node, .hw_id = exporter->hw_id
	};
	uint64_t hash, lost;
	struct exporter *x;
	struct pl_event *e;
	uint32_t cell;

	if (!det->options.report_loss)
		return;
	hash = pl_hash(&key, sizeof(key), det->seed);
	cell = pl_cells_find(&det->exporters, hash, &key, sizeof(key));
	if (cell == PL_CELL_NONE)
		cell = pl_cells_insert(&det->exporters, hash, &key, sizeof(key));
	if (cell == PL_CELL_NONE) {
		pl_count(&det->counters.exporters_full, 1);
		return;
	}
	x = pl_cells_at(&det->exporters, cell);
	if (exporter->reports < x->reports)
		x->lost_mark = 0; /* a new decoder counts from the beginning */
	x->reports = exporter->reports;
	lost = pl_core_growth(&x->lost_mark, exporter->lost);
	if (lost == 0)
		return;
	if (x->told && pl_core_elapsed(now_ns, x->told_ns) < det->options.loss_interval_ns) {
		pl_count(&det->counters.limited[PL_EVENT_REPORT_LOSS], 1);
		return;
	}
	e = event_add(det, out, PL_EVENT_REPORT_LOSS, PL_PHASE_ONCE, ts_ns);
	if (e == NULL)
		return; /* told with the next one */
	x->told = true;
	x->told_ns = now_ns;
	x->lost_mark = exporter->lost;
	e->exporter = exporter->addr;
	e->node = exporter->node;
	e->hw_id = exporter->hw_id;
	e->seq = exporter->last_seq;
	e->value = lost;
	e->present = PL_EVENT_HAS_exporter | PL_EVENT_HAS_node | PL_EVENT_HAS_hw_id |
		     PL_EVENT_HAS_seq | PL_EVENT_HAS_value;
}

void pl_detect_exporters(struct pl_detect *det, const struct pl_decode *decode, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_exporter exporter;

	for (uint32_t i = 0; pl_decode_exporter(decode, i, &exporter); i++)
		pl_detect_exporter(det, &exporter, now_ns, ts_ns, out);
}

void pl_detect_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	places_tick(det, now_ns, ts_ns, out);
	drops_tick(det, now_ns, ts_ns, out);
}

const struct pl_detect_counters *pl_detect_counters(const struct pl_detect *det)
{
	return &det->counters;
}

uint32_t pl_detect_flows(const struct pl_detect *det)
{
	return det->flows.used;
}

uint32_t pl_detect_raised(const struct pl_detect *det)
{
	return det->raised;
}
