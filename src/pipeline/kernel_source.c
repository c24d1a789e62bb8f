/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the detector in the kernel as a source. */
#include "pipeline/kernel_source.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "detect/harvest.h"

#define PACE_NS     200000 /* time that an event may stay in its ring: nothing wakes its reader */
#define EVENT_BYTES (4u << 20)
#define FRAME_BYTES (4u << 20)
#define TICK_NS     (UINT64_C(100) * 1000000u)

struct change {
	struct pl_detect_options detect;
	struct pl_kernel_wanted wanted;
};

struct pl_kernel_source {
	struct pl_kernel_detect *detect;
	struct pl_kernel *kernel;     /* owned by `detect` */
	struct pl_harvest **harvests; /* one per queue; NULL: the kernel keeps no aggregates */
	char *uri, *name;             /* of the source, and of its driving worker */
	bool both;
	unsigned int n_queues;
	uint32_t exporters; /* capacity of all queues' tables together */
	struct pl_worker_aside aside;

	_Atomic(struct change *) next; /* set by a reload, taken by the driving worker */

	/* For the driving worker's thread. */
	uint64_t ticked_ns, now_ns;
	struct pl_batch frames;
	struct pl_kernel_frame_of of[PL_BATCH_MAX];
	uint32_t at, n;                     /* of frames: not given yet */
	uint32_t batch_at;                  /* of frames: first of the last batch */
	struct pl_kernel_frame_of batch_of; /* common to all frames of the last batch */
	struct pl_port_stats given;         /* frames given so far */
	struct pl_kernel_counters counters;
	/* Copy of the last snapshot, which pages read until they ask for the next one. */
	struct pl_kernel_counters shown;
};

/* ---- frames ---- */

/* Counts numbers without a frame. They are in the order of the frames, so those before the next
 * frame are counted before it. */
static void take_numbers(struct pl_kernel_source *s)
{
	for (; s->at < s->n && s->frames.pkts[s->at].len == 0; s->at++)
		pl_kernel_detect_number(s->detect, s->of[s->at].queue, &s->of[s->at].numbered,
			PL_NUMBER_LEFT, s->now_ns, s->frames.pkts[s->at].ts_ns);
}

static bool same_kind(const struct pl_kernel_frame_of *a, const struct pl_kernel_frame_of *b)
{
	return a->settled == b->settled && a->number == b->number && a->queue == b->queue;
}

static int receive(void *arg, struct pl_batch *batch, int timeout_ms, bool *ret_settled)
{
	struct pl_kernel_source *s = arg;
	uint64_t bytes = 0;

	batch->n = 0;
	if (s->at == s->n) {
		s->n = pl_kernel_frames(s->kernel, &s->frames, s->of);
		s->at = 0;
		pl_kernel_detect_caught_up(s->detect, s->n == 0, s->now_ns);
	}
	take_numbers(s);
	if (s->at == s->n) {
		/* A ring that filled the batch may have more. */
		if (timeout_ms != 0 && s->n < PL_BATCH_MAX)
			nanosleep(&(struct timespec){ .tv_nsec = PACE_NS }, NULL);
		return 0;
	}
	/* A batch is of one kind, so that batch_of holds for all of it. */
	s->batch_of = s->of[s->at];
	s->batch_at = s->at;
	while (s->at < s->n && same_kind(&s->of[s->at], &s->batch_of) &&
		s->frames.pkts[s->at].len > 0) {
		bytes += s->frames.pkts[s->at].len;
		batch->pkts[batch->n++] = s->frames.pkts[s->at++];
	}
	/* Copies of settled reports count as settled (totals), and not as received again. */
	if (!s->batch_of.settled) {
		s->given.packets += batch->n;
		s->given.bytes += bytes;
	}
	*ret_settled = s->batch_of.settled;
	return (int)batch->n;
}

/* ---- work of the driving worker ---- */

static void work(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_kernel_source *s = arg;

	struct change *next;

	s->now_ns = now_ns;
	(void)pl_kernel_detect_poll(s->detect, now_ns, ts_ns, out);
	if (now_ns - s->ticked_ns >= TICK_NS) {
		s->ticked_ns = now_ns;
		pl_kernel_detect_tick(s->detect, now_ns, ts_ns, out);
	}
	/* Acquire pairs with the release in pl_kernel_source_change: the options are complete. */
	next = atomic_load_explicit(&s->next, memory_order_acquire);
	if (next != NULL && atomic_compare_exchange_strong(&s->next, &next, NULL)) {
		pl_kernel_want(s->kernel, &next->wanted);
		if (pl_kernel_detect_change(s->detect, &next->detect, now_ns, ts_ns, out) < 0)
			pl_warn("source",
				"%s: the kernel keeps its old thresholds: table sizes change only with a restart",
				s->uri);
		free(next);
	}
}

static void end(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	pl_kernel_detect_end(((struct pl_kernel_source *)arg)->detect, now_ns, ts_ns, out);
}

/* Teaches the program layouts that it lacks, from reports of proven exporters. */
static void learn_layouts(struct pl_kernel_source *s, const struct pl_record_batch *batch)
{
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		const uint32_t at = s->batch_at + batch->pkt[i];

		if (at < s->at && s->of[at].layout &&
			(batch->paths[i].flags & PL_FLAG_UNPROVEN) == 0)
			(void)pl_kernel_learn(
				s->kernel, &s->frames.pkts[at], &batch->paths[i].exporter);
	}
}

/* Runs detection on escalated reports, with the program's state and its time. */
static void detect_records(
	void *arg, const struct pl_record_batch *batch, struct pl_event_batch *out)
{
	struct pl_kernel_source *s = arg;

	learn_layouts(s, batch);
	pl_kernel_detect_batch(s->detect, s->batch_of.queue, batch, s->now_ns, out);
}

/* Counts a number that the decoder read in the last batch. Copies are left out: their reports were
 * counted when they were settled, and their exporters were proven. */
static bool number(void *arg, const struct pl_core_numbered *n, uint64_t ts_ns)
{
	struct pl_kernel_source *s = arg;

	return s->batch_of.settled ||
	       pl_kernel_detect_number(s->detect, s->batch_of.queue, n,
		       (enum pl_kernel_number)s->batch_of.number, s->now_ns, ts_ns);
}

static bool path(void *arg, uint64_t path_id, struct pl_path_nodes *ret)
{
	return pl_kernel_detect_path(((struct pl_kernel_source *)arg)->detect, path_id, ret);
}

static bool exporter(void *arg, uint64_t *pos, struct pl_exporter *ret)
{
	return pl_kernel_detect_exporter(((struct pl_kernel_source *)arg)->detect, pos, ret);
}

/* Adds what the kernel settled. Copies that went through a decoder are not counted there. */
static void totals(void *arg, struct pl_totals *t)
{
	struct pl_kernel_source *s = arg;
	struct pl_kernel_counters *c = &s->counters;
	uint64_t settled;

	pl_totals_flow_numbers(t, pl_kernel_detect_flow_numbers(s->detect));
	if (pl_kernel_detect_counters(s->detect, c) < 0)
		pl_warn("source", "%s: cannot read the counters of the detector in the kernel",
			s->uri);
	/* With `both`, the workers of the queues decode everything that was settled. */
	settled = s->both ? 0 : c->settled;
	t->packets += settled;
	t->verdicts[PL_V_OK] += settled;
	t->settled += settled;
	if (!s->both) {
		t->reports += c->core.reports;
		t->paths += settled;
		t->stored += settled;
		t->by_version[PL_TOTALS_SETTLED] += settled;
		t->hops += c->core.hops;
		t->unproven += c->core.unproven;
		for (unsigned int i = 0; i < PL_N_MAX; i++)
			t->notes[i] += c->notes[i];
	}
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++) {
		t->events[i] += c->core.events[i];
		t->events_limited[i] += c->core.limited[i];
	}
	t->lost += c->core.accounts.skipped - c->core.accounts.recovered;
	t->reordered += c->core.accounts.reordered;
	t->duplicates += c->core.accounts.duplicates;
	t->restarts += c->core.accounts.restarts;
	t->exporters_full += c->core.untracked;
	t->exporters_gone += c->core.displaced;
	t->events_dropped += c->core.events_dropped;
	t->nodes_full += c->core.nodes_full;
	t->flows_evicted += c->core.evicted[PL_CORE_T_flow];
	t->queues_full += c->core.full[PL_CORE_T_place] + c->core.evicted[PL_CORE_T_place];
}

static void harvest(void *arg, struct pl_aggregate *into, uint64_t now_ns, uint64_t ts_ns)
{
	struct pl_kernel_source *s = arg;
	struct pl_detect *const *queues;
	unsigned int n = pl_kernel_detect_queues(s->detect, &queues);

	for (unsigned int q = 0; s->harvests != NULL && q < n; q++)
		pl_harvest_take(s->harvests[q], queues[q], into, now_ns, ts_ns);
}

static uint32_t live(const struct pl_core_counters *c, unsigned int table)
{
	return (uint32_t)(c->made[table] - c->aged[table] - c->evicted[table]);
}

static void state(void *arg, struct pl_snapshot *snap, bool top)
{
	struct pl_kernel_source *s = arg;
	const struct pl_core_counters *c = &s->counters.core;
	struct pl_detect *const *queues;
	unsigned int n = pl_kernel_detect_queues(s->detect, &queues);

	/* Lost copies of settled reports are not counted here: they count as settled. */
	s->given.kernel_drops = s->counters.escalated_lost + s->counters.escalated_over_share;
	s->given.flood_drops = s->counters.escalated_over_share;
	pl_port_stats_add(&snap->port, &s->given);
	s->shown = s->counters;
	snap->flows += live(c, PL_CORE_T_flow);
	snap->raised += (uint32_t)(c->raised - c->ended);
	for (unsigned int q = 0; top && q < n; q++)
		snap->n_top = pl_detect_top_flows(queues[q], snap->top, PL_TOP_FLOWS, snap->n_top);
	if (top)
		pl_kernel_detect_add_numbers(s->detect, snap->top, snap->n_top);
}

static void close_source(void *arg)
{
	pl_kernel_source_free(arg);
}

/* ---- life ---- */

/* Makes options for the detector. With `both`, aggregates are made from records instead. */
static void kernel_options(struct pl_detect_options *ret, const struct pl_config *config, bool both)
{
	pl_config_detect(config, ret);
	ret->aggregates = config->detect_aggregates && !both;
}

/* Returns the number of exporters for which all tables together have room. */
static uint32_t exporters_room(const struct pl_detect_options *options, unsigned int queues)
{
	struct pl_detect_options o = *options;
	uint32_t entries[PL_CORE_T_MAX];
	uint64_t room;

	o.numbers = true;
	pl_detect_entries(&o, entries);
	room = (uint64_t)entries[PL_CORE_T_exporter] * queues;
	return room < UINT32_MAX ? (uint32_t)room : UINT32_MAX - 1;
}

static int open_harvests(struct pl_kernel_source *s)
{
	struct pl_detect *const *queues;
	unsigned int n = pl_kernel_detect_queues(s->detect, &queues);
	int r = 0;

	s->harvests = calloc(n, sizeof(struct pl_harvest *));
	if (s->harvests == NULL)
		return -ENOMEM;
	for (unsigned int q = 0; r == 0 && q < n; q++)
		r = pl_harvest_new(&s->harvests[q], queues[q]);
	return r;
}

int pl_kernel_source_new(struct pl_kernel_source **ret, const struct pl_config *config,
	const struct pl_profile *profiles, const struct pl_config_source *source,
	unsigned int queues, bool both, struct pl_diag *diag)
{
	struct pl_kernel_source *s = calloc(1, sizeof(*s));
	struct pl_detect_options detect;
	struct pl_decode_options decode;
	/* Escalated frames come through the ring; the thread that reads it adds new layouts for the
	 * program. */
	const struct pl_kernel_detect_options options = { .detect = &detect,
		.decode = &decode,
		.queues = queues,
		.events_bytes = EVENT_BYTES,
		.frames_bytes = FRAME_BYTES,
		.both = both };
	struct pl_kernel_wanted wanted;
	int r = -ENOMEM;

	if (s == NULL)
		return -ENOMEM;
	s->both = both;
	s->n_queues = queues;
	s->uri = strdup(source->uri);
	if (s->uri == NULL || asprintf(&s->name, "kernel:%s", s->uri) < 0) {
		s->name = NULL;
		goto fail;
	}
	kernel_options(&detect, config, both);
	pl_config_decode(config, &decode);
	decode.profiles = profiles;
	s->exporters = exporters_room(&detect, queues);
	r = pl_kernel_detect_new(&s->detect, &options, diag);
	if (r == 0 && detect.aggregates)
		r = open_harvests(s);
	if (r < 0)
		goto fail;
	s->kernel = pl_kernel_detect_kernel(s->detect);
	pl_kernel_time(s->kernel, pl_clock_mono_ns(), pl_clock_real_ns());
	pl_config_copies(config, &wanted);
	pl_kernel_want(s->kernel, &wanted);
	s->aside = (struct pl_worker_aside){ .work = work,
		.end = end,
		.receive = receive,
		.detect = detect_records,
		.number = number,
		.totals = totals,
		.harvest = harvest,
		.state = state,
		.path = path,
		.exporter = exporter,
		.close = close_source,
		.name = s->name,
		.arg = s };
	*ret = s;
	return 0;
fail:
	pl_kernel_source_free(s);
	return r;
}

int pl_kernel_source_change(struct pl_kernel_source *s, const struct pl_config *config)
{
	struct change *o = malloc(sizeof(*o));

	if (o == NULL)
		return -ENOMEM;
	kernel_options(&o->detect, config, s->both);
	o->detect.aggregates = s->harvests != NULL; /* the tables are fixed */
	pl_config_copies(config, &o->wanted);
	/* Release pairs with the acquire in work. Options not taken yet are replaced. */
	free(atomic_exchange_explicit(&s->next, o, memory_order_acq_rel));
	return 0;
}

void pl_kernel_source_free(struct pl_kernel_source *s)
{
	if (s == NULL)
		return;
	for (unsigned int q = 0; s->harvests != NULL && q < s->n_queues; q++)
		pl_harvest_free(s->harvests[q]);
	free(s->harvests);
	pl_kernel_detect_free(s->detect);
	free(atomic_load(&s->next));
	free(s->uri);
	free(s->name);
	free(s);
}

const struct pl_xdp_program *pl_kernel_source_program(const struct pl_kernel_source *s)
{
	return pl_kernel_program(s->kernel);
}

int pl_kernel_source_worker(struct pl_worker **ret, struct pl_kernel_source *s, unsigned int queues,
	unsigned int id, struct pl_diag *diag)
{
	struct pl_worker_source source = { .name = s->uri,
		.uri = s->uri,
		.index = queues,
		.of = queues + 1,
		.aside = &s->aside,
		.partial = true };
	int r = pl_worker_new(ret, &source, id, s->exporters, diag);

	if (r < 0)
		pl_kernel_source_free(s);
	return r;
}

struct pl_kernel_source *pl_kernel_source_of(const struct pl_worker *worker)
{
	return worker->source.aside != NULL ? worker->source.aside->arg : NULL;
}

void pl_kernel_source_tell_kept(const struct pl_worker *worker, const struct pl_config *config)
{
	const struct pl_kernel_source *kernel = pl_kernel_source_of(worker);
	const struct pl_config_source *s = config->sources.items;

	for (size_t i = 0; i < config->sources.n && kernel != NULL && !kernel->both; i++) {
		if (strcmp(s[i].uri, kernel->uri) == 0 &&
			pl_config_where(config, &s[i]) == PL_DETECT_BOTH)
			pl_warn("reload",
				"%s: the kernel goes on keeping the reports that it settles: outputs and queries of paths and hops lack these until a restart",
				kernel->uri);
	}
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_kernel_counters, __VA_ARGS__)
#include "bpf/kernel_counters.def"
	PL_STAT(COUNTER, core.events_dropped, "events_lost", "pathline_kernel_events_lost", NULL,
		"Events of the detector in the kernel that were lost because their ring was full.")
#undef PL_STAT
};
const struct pl_stats pl_kernel_stats = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_kernel_counters *pl_kernel_source_counters(const struct pl_kernel_source *s)
{
	return &s->shown;
}

uint64_t pl_kernel_source_memory(const struct pl_config *config, unsigned int queues, bool both)
{
	struct pl_detect_options detect;
	struct pl_decode_options decode;
	const struct pl_kernel_detect_options options = { .detect = &detect,
		.decode = &decode,
		.queues = queues,
		.events_bytes = EVENT_BYTES,
		.frames_bytes = FRAME_BYTES };

	kernel_options(&detect, config, both);
	pl_config_decode(config, &decode);
	return pl_kernel_detect_memory(&options) +
	       pl_worker_memory(exporters_room(&detect, queues)) +
	       (detect.aggregates ? queues * pl_harvest_memory(&detect) : 0);
}
