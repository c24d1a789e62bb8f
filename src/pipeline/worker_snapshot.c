/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up a worker's counters, publishes them with its state, and exchanges parts of its engine. */
#include "pipeline/worker_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static const struct pl_stat totals_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_totals, __VA_ARGS__)
#include "decode/counters.def"
#include "pipeline/totals.def"
#undef PL_STAT
};
const struct pl_stats pl_totals_stats = { totals_rows,
	sizeof(totals_rows) / sizeof(totals_rows[0]) };

void pl_totals_add(struct pl_totals *into, const struct pl_totals *from)
{
	uint64_t *to = (uint64_t *)into;
	const uint64_t *add = (const uint64_t *)from;

	_Static_assert(sizeof(*into) % sizeof(uint64_t) == 0, "nothing but 64-bit sums");
	for (size_t i = 0; i < sizeof(*into) / sizeof(uint64_t); i++)
		to[i] += add[i];
}

void pl_totals_flow_numbers(struct pl_totals *t, const struct pl_flow_number_counters *n)
{
	t->numbered += n->packets;
	t->flow_lost += n->lost;
	t->flow_reordered += n->reordered;
	t->flow_unsure += n->unsure;
	t->flow_restarts += n->restarts;
	t->flow_numbers_full += n->full;
	t->flow_numbers_displaced += n->displaced;
}

void pl_worker_totals(struct pl_totals *t, const struct pl_engine *e)
{
	const struct pl_decode_counters *d = pl_decode_counters(e->decode);
	const struct pl_core_counters *v = pl_detect_counters(e->detect);

	*t = (struct pl_totals){
#define PL_STAT(kind, member, ...) .member = pl_counter_read(&d->member),
#include "decode/counters.def"
#undef PL_STAT
		.events_dropped = v->events_dropped,
		.nodes_full = v->nodes_full,
		.flows_evicted = v->evicted[PL_CORE_T_flow],
		.queues_full = v->evicted[PL_CORE_T_place] + v->full[PL_CORE_T_place],
	};
	for (unsigned int i = 0; i < PL_V_MAX; i++)
		t->verdicts[i] = pl_counter_read(&d->verdicts[i]);
	for (unsigned int i = 0; i < PL_N_MAX; i++)
		t->notes[i] = pl_counter_read(&d->notes[i]);
	pl_totals_flow_numbers(t, pl_detect_number_counters(e->detect));
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++) {
		t->events[i] = v->events[i];
		t->events_limited[i] = v->limited[i];
	}
}

static void take_exporter(struct pl_snapshot *s, const struct pl_exporter *x)
{
	if (s->n_exporters < s->cap_exporters) {
		s->exporters[s->n_exporters++] = *x;
		return;
	}
	s->n_others++;
	s->others.reports += x->reports;
	s->others.skipped += x->skipped;
	s->others.recovered += x->recovered;
	s->others.reordered += x->reordered;
	s->others.duplicates += x->duplicates;
	s->others.restarts += x->restarts;
}

/* Copies exporters. A decoder that gets only a part of the reports does not track them. */
static void take_exporters(struct pl_snapshot *s, const struct pl_worker *w)
{
	const struct pl_worker_aside *aside = w->source.aside;
	struct pl_exporter x;
	uint64_t pos = 0;

	s->n_exporters = 0;
	s->n_others = 0;
	s->others = (struct pl_exporter){ 0 };
	for (uint32_t at = 0; !w->source.partial && pl_decode_exporter(w->engine->decode, &at, &x);)
		take_exporter(s, &x);
	while (aside != NULL && aside->exporter(aside->arg, &pos, &x))
		take_exporter(s, &x);
}

void pl_worker_harvest(struct pl_worker *w)
{
	const struct pl_worker_aside *aside = w->source.aside;

	if (aside != NULL)
		aside->harvest(aside->arg, w->engine->aggregate, w->now_ns, w->ts_ns);
}

void pl_worker_publish(struct pl_worker *w)
{
	struct pl_snapshot *s = &w->filling;
	bool top;

	pl_worker_totals(&s->totals, w->engine);
	pl_totals_add(&s->totals, &w->carried);
	s->totals.stored = w->stored;
	memcpy(s->totals.by_version, w->by_version, sizeof(w->by_version));
	memcpy(s->totals.by_mode, w->by_mode, sizeof(w->by_mode));
	if (w->source.aside != NULL)
		w->source.aside->totals(w->source.aside->arg, &s->totals);
	if (w->source.feed != NULL && w->source.feed->totals != NULL)
		w->source.feed->totals(w->source.feed->arg, &s->totals);
	s->port = w->gone;
	s->n_floods = 0;
	if (w->port != NULL) {
		struct pl_port_stats now;
		int error;

		pl_port_stats(w->port, &now);
		pl_port_stats_add(&s->port, &now);
		s->n_floods = pl_port_floods(w->port, s->floods, &error);
	}
	take_exporters(s, w);
	s->flows = pl_detect_flows(w->engine->detect);
	s->raised = pl_detect_raised(w->engine->detect);
	s->n_top = 0;
	/* The request for the snapshot orders this. */
	top = atomic_exchange_explicit(&w->top_wanted, false, memory_order_relaxed);
	s->has_top = top;
	s->top_ns = w->rule_ns;
	if (top)
		s->n_top = pl_detect_top_flows(w->engine->detect, s->top, PL_TOP_FLOWS, 0);
	if (w->source.aside != NULL)
		w->source.aside->state(w->source.aside->arg, s, top);
	pl_worker_harvest(w);
	pl_aggregate_heed(w->engine->aggregate, w->engine->aggregate_copy);
	pl_aggregate_copy(w->engine->aggregate_copy, w->engine->aggregate);
	s->aggregate = *pl_aggregate_totals(w->engine->aggregate_copy);
}

void pl_worker_take(struct pl_worker *w)
{
	struct pl_exporter *free_room = w->snap.exporters;

	if (!w->filling.has_top) {
		memcpy(w->filling.top, w->snap.top, w->snap.n_top * sizeof(w->snap.top[0]));
		w->filling.n_top = w->snap.n_top;
		w->filling.top_ns = w->snap.top_ns;
	}
	w->snap = w->filling;
	w->filling.exporters = free_room;
}

#define TAKE_OVER(part)                                                                            \
	do {                                                                                       \
		if (next->part == NULL) {                                                          \
			next->part = old->part;                                                    \
			old->part = NULL;                                                          \
		}                                                                                  \
	} while (0)

void pl_worker_install(struct pl_worker *w, struct pl_engine *next)
{
	struct pl_engine *old = w->engine;
	struct pl_totals now, after;
	uint64_t *carried = (uint64_t *)&w->carried;
	bool new_aggregate = next->aggregate != NULL;
	const bool adopts = next->detect != NULL && next->decode == NULL;

	assert(new_aggregate == (next->aggregate_copy != NULL));
	/* The new detector does not know what the old one has begun. */
	if (next->detect != NULL)
		pl_detect_end(old->detect, w->rule_ns, w->rule_ts_ns, &w->events);
	pl_worker_totals(&now, old);
	/* Keep advices only with their decoder. */
	if (next->decode == NULL)
		TAKE_OVER(advise);
	TAKE_OVER(decode);
	TAKE_OVER(aggregate);
	TAKE_OVER(aggregate_copy);
	TAKE_OVER(detect);
	pl_worker_totals(&after, next);
	for (size_t i = 0; i < sizeof(now) / sizeof(uint64_t); i++)
		carried[i] += ((uint64_t *)&now)[i] - ((uint64_t *)&after)[i];
	w->engine = next;
	if (adopts && !w->source.partial)
		pl_detect_adopt(next->detect, next->decode, w->rule_ns, w->rule_ts_ns, &w->events);
	pl_worker_show_advices(w);
	/* The controller checked that they fit. */
	if (next->rules != NULL && pl_detect_change(next->detect, next->rules, w->rule_ns,
					   w->rule_ts_ns, &w->events) < 0)
		pl_error("worker", "%s: the old thresholds stay", w->uri);
	free(next->rules);
	next->rules = NULL;
	/* Parts keep their own time; a new one gets it before the next batch. */
	pl_aggregate_tick(next->aggregate, w->now_ns);
	/* Pairs with the acquire in pl_worker_exchange, which then sees all of the above. */
	atomic_store_explicit(&w->old_engine, old, memory_order_release);
}

void pl_engine_free(struct pl_engine *e)
{
	if (e == NULL)
		return;
	pl_decode_free(e->decode);
	pl_advise_free(e->advise);
	pl_aggregate_free(e->aggregate);
	pl_aggregate_free(e->aggregate_copy);
	pl_detect_free(e->detect);
	free(e->rules);
	/* Outputs own queued entries; a tap is only closed. */
	for (unsigned int i = 0; i < e->n_taps; i++)
		pl_tap_close(e->taps[i]);
	free(e->taps);
	free(e);
}
