/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the default configuration tells of the network that "gen int --story" plays, by the story's
 * own time: nothing while all is well, and of each fault one begin and one end at each place it
 * concerns. By records, and by the lines that the kernel program runs, with and without its
 * fast path. What a flow's path is is taken from the generator, not from the decoder.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "gen/event.h"
#include "gen/gen.h"
#include "pipeline/config.h"
#include "tests/bpf/frames.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define START  (UINT64_C(1700000000) * SECOND)
#define FLOWS  200

enum way { RECORDS, FRAMES, GENERAL_FRAMES, WAYS };
static const char *const way_names[WAYS] = { "records", "the kernel's lines", "its general way" };

struct told {
	uint64_t at_ns; /* since the start */
	struct pl_event e;
};

/* A run: the events of it. */
struct run {
	struct pl_detect *det;
	struct pl_decode *decode;
	struct pl_direct direct;
	struct pl_record_batch records;
	struct pl_event_batch out;
	struct pl_frames_counters frames;
	struct told *told;
	size_t n, cap;
	uint64_t paths[FLOWS]; /* of each flow's last whole report, by the generator; 0: none yet */
	uint64_t moves;        /* times that a flow's path became another one */
	uint64_t reports, lost;
};

static void take_events(struct run *r, uint64_t at_ns)
{
	for (uint32_t i = 0; i < r->out.n; i++) {
		if (r->n == r->cap) {
			r->cap = r->cap == 0 ? 1024 : 2 * r->cap;
			r->told = realloc(r->told, r->cap * sizeof(*r->told));
			if (r->told == NULL)
				abort();
		}
		r->told[r->n++] = (struct told){ at_ns, r->out.events[i] };
	}
	r->out.n = 0;
}

static void no_flush(struct pl_record_batch *batch, void *arg)
{
	(void)arg;
	pl_record_batch_clear(batch);
}

/* As the daemon is made by an empty configuration file. */
static void begin(struct run *r, enum way way)
{
	struct pl_decode_options decode;
	struct pl_detect_options detect;
	struct pl_config config;
	struct pl_diag diag = { .text = "" };

	*r = (struct run){ 0 };
	if (pl_config_parse(&config, "empty", "", 0, &diag) < 0)
		abort();
	pl_config_decode(&config, &decode);
	pl_config_detect(&config, &detect);
	detect.numbers = way != RECORDS;
	if (pl_decode_new(&r->decode, &decode) < 0 || pl_detect_new(&r->det, &detect) < 0 ||
		pl_direct_init(&r->direct, &decode) < 0 || pl_event_batch_init(&r->out, 4096) < 0 ||
		pl_record_batch_init(&r->records, 64, 4096) < 0)
		abort();
	r->records.flush = no_flush;
	r->direct.general = way == GENERAL_FRAMES;
	pl_config_done(&config);
}

static void end(struct run *r)
{
	pl_record_batch_done(&r->records);
	pl_event_batch_done(&r->out);
	pl_direct_done(&r->direct);
	pl_detect_free(r->det);
	pl_decode_free(r->decode);
	free(r->told);
}

/* A hash of the hops, so that two paths can be told apart. */
static uint64_t way_of(const struct pl_gen_truth *t)
{
	uint64_t h = t->n_hops;

	for (unsigned int i = 0; i < t->n_hops; i++)
		h = h * UINT64_C(0x9e3779b97f4a7c15) + t->hops[i].node * 65599u +
		    t->hops[i].egress_port;
	return h | 1;
}

static void witness(struct run *r, const struct pl_gen *gen, unsigned int packet)
{
	for (unsigned int i = 0; i < pl_gen_truth_reports(gen, packet); i++) {
		const struct pl_gen_truth *t = pl_gen_truth(gen, packet, i);
		uint64_t *path = &r->paths[t->flow_index], now = way_of(t);

		r->reports++;
		r->moves += *path != 0 && *path != now;
		*path = now;
	}
}

static void packets(struct run *r, enum way way, struct pl_batch *batch)
{
	bool settled[PL_BATCH_MAX];

	/* One by one, each at its own time, as they would come. */
	for (uint32_t i = 0; i < batch->n; i++) {
		static struct pl_batch one = { .n = 1 };
		uint64_t now_ns = batch->pkts[i].ts_ns - START + SECOND;

		one.pkts[0] = batch->pkts[i];
		settled[0] = false;
		if (way != RECORDS)
			pl_detect_frames(
				r->det, &r->direct, &one, now_ns, settled, &r->frames, &r->out);
		if (settled[0])
			continue;
		pl_record_batch_clear(&r->records);
		pl_decode_batch(r->decode, &one, &r->records);
		pl_detect_batch(r->det, &r->records, now_ns, &r->out);
	}
}

/* reorder: share of the reports that are overtaken. */
static void play(struct run *r, enum way way, bool story, double reorder)
{
	struct pl_gen_cfg cfg = { .flows = FLOWS,
		.rate = 5000,
		.start_ns = START,
		.truth = true,
		.duration_ns = 60 * SECOND,
		.reorder = reorder,
		/* the fast path takes stacks that say everything. */
		.sink = way == FRAMES ? PL_GEN_SINK_STACK : PL_GEN_SINK_AUTO,
		.seed = 1 };
	static struct pl_batch batch;
	struct pl_diag diag = { .text = "" };
	struct pl_gen *gen;
	int n = 0;

	begin(r, way);
	if (story)
		pl_gen_story(&cfg);
	if (pl_gen_new(&gen, &cfg, &diag) < 0)
		abort();
	/* Ticks as often as the daemon's. */
	for (uint64_t at = 0; n >= 0; at += 100 * MS) {
		while ((n = pl_gen_next(gen, START + at, &batch)) > 0) {
			for (uint32_t i = 0; i < batch.n; i++)
				witness(r, gen, i);
			packets(r, way, &batch);
		}
		pl_detect_tick(r->det, SECOND + at, START + at, &r->out);
		if (way == RECORDS && at % SECOND == 0)
			pl_detect_exporters(r->det, r->decode, SECOND + at, START + at, &r->out);
		take_events(r, at);
	}
	r->lost = pl_gen_counters(gen)->lost;
	pl_gen_free(gen);
}

static uint64_t count(const struct run *r, enum pl_event_kind kind, enum pl_event_phase phase)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->told[i].e.event == kind && r->told[i].e.phase == phase;
	return n;
}

static bool same_place(const struct pl_event *a, const struct pl_event *b)
{
	return a->event == b->event && a->node == b->node && a->port == b->port &&
	       a->queue == b->queue &&
	       (a->event != PL_EVENT_REPORT_LOSS ||
		       (memcmp(&a->exporter, &b->exporter, sizeof(a->exporter)) == 0 &&
			       a->hw_id == b->hw_id));
}

/* Each place that tells of this kind has one begin, then one end, between the two times. */
static void once_each(const struct run *r, enum pl_event_kind kind, uint64_t from_s, uint64_t to_s,
	const char *name)
{
	const char *what = pl_event_kind_name(kind);
	uint64_t begins = count(r, kind, PL_PHASE_BEGIN), pairs = 0, outside = 0;

	for (size_t i = 0; i < r->n; i++) {
		uint64_t ends = 0, others = 0;

		if (r->told[i].e.event != kind)
			continue;
		outside += r->told[i].at_ns < from_s * SECOND || r->told[i].at_ns > to_s * SECOND;
		if (r->told[i].e.phase != PL_PHASE_BEGIN)
			continue;
		for (size_t k = 0; k < r->n; k++) {
			if (k == i || !same_place(&r->told[i].e, &r->told[k].e))
				continue;
			ends += k > i && r->told[k].e.phase == PL_PHASE_END;
			others += r->told[k].e.phase != PL_PHASE_END;
		}
		pairs += ends == 1 && others == 0;
	}
	ok(begins > 0, "%s: the fault shows as %s", name, what);
	eq(pairs, begins, "%s: %s: one begin and one end at each place", name, what);
	eq(count(r, kind, PL_PHASE_END), begins, "%s: %s: as many ends", name, what);
	eq(count(r, kind, PL_PHASE_ONCE), 0, "%s: %s: and nothing else", name, what);
	eq(outside, 0, "%s: %s: while the fault lasts", name, what);
}

static void steady(enum way way)
{
	struct run r;

	play(&r, way, false, 0);
	ok(r.reports == 300000, "%s: a minute of a healthy network: %" PRIu64 " reports",
		way_names[way], r.reports);
	eq(r.n, 0, "%s: not one event", way_names[way]);
	ok(way != FRAMES || r.frames.fast > r.reports / 2, "%s: %" PRIu64 " of them the fast path",
		way_names[way], r.frames.fast);
	for (size_t i = 0; i < r.n && i < 5; i++)
		printf("# %s of node %" PRIu64 ", value %" PRIu64 "\n",
			pl_event_kind_name(r.told[i].e.event), r.told[i].e.node, r.told[i].e.value);
	end(&r);
}

static void story(enum way way)
{
	const char *name = way_names[way];
	uint64_t known = 0, lost = 0;
	struct run r;

	/* The path fails at 5 s for 20 s, the queue builds up at 10 s for 8 s, reports are lost at
	 * 16 s for 2 s. */
	play(&r, way, true, 0);
	ok(r.moves > 0, "%s: %" PRIu64 " times a flow takes another way", name, r.moves);
	eq(count(&r, PL_EVENT_PATH_CHANGE, PL_PHASE_ONCE), r.moves, "%s: each is told once", name);
	once_each(&r, PL_EVENT_QUEUE_DEPTH, 10, 20, name);
	once_each(&r, PL_EVENT_HOP_LATENCY, 10, 20, name);
	once_each(&r, PL_EVENT_REPORT_LOSS, 16, 30, name);
	for (size_t i = 0; i < r.n; i++) {
		const struct pl_event *e = &r.told[i].e;

		known += e->event == PL_EVENT_PATH_CHANGE || e->event == PL_EVENT_QUEUE_DEPTH ||
			 e->event == PL_EVENT_HOP_LATENCY || e->event == PL_EVENT_REPORT_LOSS;
		if (e->event == PL_EVENT_REPORT_LOSS && e->phase == PL_PHASE_END)
			lost += e->value;
	}
	eq(known, r.n, "%s: and of nothing else", name);
	eq(lost, r.lost, "%s: the ends count every report that was lost", name);
	end(&r);
}

/* Reports that overtake each other are not lost. */
static void reordered(enum way way)
{
	struct run r;

	play(&r, way, false, 0.05);
	eq(r.n, 0, "%s: a minute in which one report of twenty is overtaken: not one event",
		way_names[way]);
	end(&r);
}

int main(void)
{
	for (enum way way = 0; way < WAYS; way++) {
		steady(way);
		story(way);
		reordered(way);
	}
	return pl_test_done();
}
