/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/events.h"

#include <errno.h>

#include "core/detect_core.h"
#include "detect/batch_maker.h"

#define MS     ((uint64_t)1000000)
#define SECOND (1000 * MS)

static struct pl_record_batch batch;
static struct pl_event_batch out;

/* --- the rules -------------------------------------------------------------------------------- */

/* Steps of a level: at time t (ms) value v; or v < 0: only time passes. What must come of it: '-',
 * 'B', 'E'. */
struct step {
	uint64_t t;
	int64_t v;
	char want;
};

static void level_steps(const char *name, struct pl_core_level_rule rule, const struct step *steps,
	size_t n, uint64_t want_max)
{
	struct pl_core_level s = { 0 };
	char got[64], want[64];

	for (size_t i = 0; i < n; i++) {
		uint64_t now = steps[i].t * MS;

		got[i] = "-BE"[steps[i].v < 0
				       ? pl_core_level_wait(&s, &rule, now)
				       : pl_core_level_step(&s, &rule, (uint64_t)steps[i].v, now)];
		want[i] = steps[i].want;
	}
	got[n] = want[n] = '\0';
	streq(got, want, "level: %s", name);
	eq(s.max, want_max, "level: %s: the largest value", name);
}

#define STEPS(name, rule, max, ...)                                                                \
	do {                                                                                       \
		static const struct step steps[] = { __VA_ARGS__ };                                \
		level_steps(name, rule, steps, sizeof(steps) / sizeof(steps[0]), max);             \
	} while (0)

static void levels(void)
{
	struct pl_core_level_rule plain = { .threshold = 100, .low = 100 };
	struct pl_core_level_rule hyst = { .threshold = 100, .low = 50, .end_hold_ns = 10 * MS };
	struct pl_core_level_rule hold = { .threshold = 100, .low = 100, .begin_hold_ns = 10 * MS };

	STEPS("at the threshold is not above", plain, 0, { 0, 100, '-' }, { 1, 0, '-' });
	STEPS("above, then at it", plain, 101, { 0, 101, 'B' }, { 0, 100, 'E' });
	STEPS("twice", plain, 300, { 0, 200, 'B' }, { 1, 0, 'E' }, { 2, 300, 'B' }, { 2, 9, 'E' });
	STEPS("between low and threshold it goes on", hyst, 200, { 0, 200, 'B' }, { 1, 51, '-' },
		{ 100, 60, '-' }, { 200, -1, '-' });
	STEPS("a short dip does not end it", hyst, 250, { 0, 200, 'B' }, { 1, 50, '-' },
		{ 10, 50, '-' }, { 10, 51, '-' }, { 11, 50, '-' }, { 20, 0, '-' },
		{ 20, 250, '-' });
	STEPS("low for long enough ends it", hyst, 200, { 0, 200, 'B' }, { 1, 50, '-' },
		{ 10, 50, '-' }, { 11, 50, 'E' }, { 12, 50, '-' });
	STEPS("time alone ends it when low", hyst, 200, { 0, 200, 'B' }, { 1, 50, '-' },
		{ 10, -1, '-' }, { 11, -1, 'E' }, { 99, -1, '-' });
	STEPS("time alone does not when high", hyst, 200, { 0, 200, 'B' }, { 9999, -1, '-' });
	STEPS("time going back ends nothing", hyst, 200, { 50, 200, 'B' }, { 50, 50, '-' },
		{ 0, 50, '-' }, { 0, -1, '-' }, { 60, -1, 'E' });
	STEPS("too short to begin", hold, 120, { 0, 150, '-' }, { 9, 120, '-' }, { 9, 100, '-' },
		{ 10, 120, '-' }, { 20, 90, '-' });
	STEPS("long enough to begin", hold, 180, { 0, 150, '-' }, { 5, 180, '-' }, { 10, 101, 'B' },
		{ 10, 100, 'E' });
	STEPS("time alone does not begin it", hold, 150, { 0, 150, '-' }, { 99, -1, '-' });
	{
		struct pl_core_level s = { 0 };

		eq(pl_core_level_step(&s, &hyst, 200, 5 * MS), PL_CORE_BEGIN);
		eq(pl_core_level_step(&s, &hyst, 0, 5 * MS), PL_CORE_NONE, "low in the same batch");
		eq(pl_core_level_wait(&s, &hyst, 99 * MS), PL_CORE_END);
		eq(pl_core_level_lasted(&s, 99 * MS), 0, "the hold time is not counted");
		eq(pl_core_level_step(&s, &hyst, 200, 100 * MS), PL_CORE_BEGIN);
		eq(pl_core_level_drop(&s), PL_CORE_END);
		eq(pl_core_level_lasted(&s, 130 * MS), 30 * MS, "above until it was dropped");
	}
}

static void limits(void)
{
	struct pl_core_limit_rule rule = { .interval_ns = 10, .burst_ns = 20 };
	uint64_t due = 0, mark = 0;
	unsigned int passed = 0;

	for (unsigned int i = 0; i < 100; i++)
		passed += pl_core_limit_pass(&due, &rule, 1000);
	eq(passed, 3, "three at once");
	ok(!pl_core_limit_pass(&due, &rule, 1009), "not before the interval is over");
	ok(pl_core_limit_pass(&due, &rule, 1010), "then one");
	ok(!pl_core_limit_pass(&due, &rule, 1010), "and one only");
	ok(!pl_core_limit_pass(&due, &rule, 0), "time going back opens nothing");
	passed = 0;
	for (unsigned int t = 2000; t < 3000; t++)
		passed += pl_core_limit_pass(&due, &rule, t);
	eq(passed, 102, "a hundred intervals, and the burst");

	eq(pl_core_growth(&mark, 5), 5, "growth");
	mark = 5;
	eq(pl_core_growth(&mark, 5), 0, "none");
	eq(pl_core_growth(&mark, 3), 0, "corrected downwards");
	eq(pl_core_growth(&mark, 4), 1, "and up again");
}

/* --- the detector ----------------------------------------------------------------------------- */

static struct pl_detect *made(struct pl_detect_options o)
{
	struct pl_detect *det = NULL;

	if (pl_detect_new(&det, &o) < 0)
		abort();
	out.n = 0;
	return det;
}

static const struct pl_event *only_event(const char *name)
{
	static const struct pl_event none;

	return eq(out.n, 1, "%s: one event", name) ? &out.events[0] : &none;
}

static struct pl_path *flow_path(unsigned int flags, unsigned int flow, uint64_t path_id)
{
	struct pl_path *p = add_path(&batch, flags);

	p->present = PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_path_id | PL_PATH_HAS_seq;
	p->src.b[15] = 1;
	p->dst.b[15] = 2;
	p->sport = (uint16_t)flow;
	p->vni = 0;
	p->dport = 443;
	p->proto = 6;
	p->path_id = path_id;
	p->ts_ns = 5000;
	p->seq = 77;
	p->report_id = 88;
	return p;
}

/* One report of flow 1 with path 10, then one more as the row says: a change or not. */
static void path_changes(void)
{
	static const struct {
		const char *name;
		unsigned int flags;
		uint8_t mode;
		uint64_t path_id;
		uint32_t absent;
		uint64_t after_ns;
		unsigned int want;
	} rows[] = {
		{ "same path", 0, PL_MODE_MD, 10, 0, 1, 0 },
		{ "partial", PL_FLAG_PARTIAL, PL_MODE_MD, 11, 0, 1, 0 },
		{ "intermediate", PL_FLAG_INTERMEDIATE, PL_MODE_MD, 11, 0, 1, 0 },
		{ "dropped on the way", PL_FLAG_DROPPED, PL_MODE_MD, 11, 0, 1, 0 },
		{ "copy", PL_FLAG_COPY, PL_MODE_MD, 11, 0, 1, 0 },
		{ "congestion report from midway", PL_FLAG_CONGESTED, PL_MODE_MD, 11, 0, 1, 0 },
		{ "node by node", 0, PL_MODE_XD, 11, 0, 1, 0 },
		{ "node by node, MX", 0, PL_MODE_MX, 11, 0, 1, 0 },
		{ "direct export", 0, PL_MODE_IOAM_DEX, 11, 0, 1, 0 },
		{ "no path id", 0, PL_MODE_MD, 0, PL_PATH_HAS_path_id, 1, 0 },
		{ "no flow", 0, PL_MODE_MD, 11, PL_PATH_HAS_src, 1, 0 },
		{ "no ports: another flow", 0, PL_MODE_MD, 11, PL_PATH_HAS_sport, 1, 0 },
		{ "after a long silence", 0, PL_MODE_MD, 11, 0, 61 * SECOND, 0 },
		{ "another path", 0, PL_MODE_MD, 11, 0, 1, 1 },
		{ "another path, a while later", 0, PL_MODE_MD, 11, 0, 60 * SECOND, 1 },
		{ "another path, tracked and congested", PL_FLAG_TRACKED | PL_FLAG_CONGESTED,
			PL_MODE_MD, 11, 0, 1, 1 },
		{ "another path, IOAM trace", 0, PL_MODE_IOAM_TRACE, 11, 0, 1, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_detect *det = made((struct pl_detect_options){ .path_change = true });
		struct pl_path *p;

		pl_record_batch_clear(&batch);
		flow_path(0, 1, 10);
		pl_detect_batch(det, &batch, 7 * SECOND, &out);
		pl_record_batch_clear(&batch);
		p = flow_path(rows[i].flags, 1, rows[i].path_id);
		p->mode = rows[i].mode;
		p->present &= ~rows[i].absent;
		pl_detect_batch(det, &batch, 7 * SECOND + rows[i].after_ns, &out);
		eq(out.n, rows[i].want, "path change: %s", rows[i].name);
		if (rows[i].want == 1 && out.n == 1) {
			const struct pl_event *e = &out.events[0];

			ok(e->event == PL_EVENT_PATH_CHANGE && e->phase == PL_PHASE_ONCE &&
					e->path_id == 11 && e->old_path_id == 10 && e->sport == 1 &&
					e->ts_ns == 5000 && e->report_id == 88,
				"path change: %s: from where to where", rows[i].name);
		}
		pl_detect_free(det);
	}
}

#define PORTS (PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port)

/* A report of flow 1 whose path is the text: hops NODE:INGRESS:EGRESS, '-' for a port that is
 * missing. */
static void tell_path(struct pl_detect *det, const char *text)
{
	struct pl_path *p;

	pl_record_batch_clear(&batch);
	p = flow_path(0, 1, 0);
	p->mode = PL_MODE_MD;
	while (*text != '\0') {
		struct pl_hop *h =
			add_hop(&batch, strtoul(text, (char **)&text, 10), PL_HOP_HAS_node | PORTS);

		if (*++text == '-')
			h->present &= ~(uint32_t)PL_HOP_HAS_ingress_port, text++;
		else
			h->ingress_port = (uint32_t)strtoul(text, (char **)&text, 10);
		if (*++text == '-')
			h->present &= ~(uint32_t)PL_HOP_HAS_egress_port, text++;
		else
			h->egress_port = (uint32_t)strtoul(text, (char **)&text, 10);
		text += *text == ' ';
	}
	set_path_id(&batch);
	for (unsigned int i = 0; i < p->hop_count; i++)
		p->path_id += batch.hops[i].present * (UINT64_C(1) << (i + 8));
	pl_detect_batch(det, &batch, 7 * SECOND, &out);
}

/* Paths are compared by what both reports know. */
static void paths_with_ports_missing(void)
{
	static const struct {
		const char *name;
		const char *path[4];
		unsigned int want;
	} rows[] = {
		{ "all known", { "1:1:2 2:1:2 3:1:2", "1:1:2 2:1:2 3:1:2" }, 0 },
		{ "a node's ports missing", { "1:1:2 2:1:2 3:1:2", "1:1:2 2:-:- 3:1:2" }, 0 },
		{ "missing first", { "1:1:2 2:-:- 3:1:2", "1:1:2 2:1:2 3:1:2" }, 0 },
		{ "now here, now there",
			{ "1:1:2 2:1:2 3:1:2", "1:-:- 2:1:2 3:1:2", "1:1:2 2:1:2 3:-:-",
				"1:1:2 2:1:2 3:1:2" },
			0 },
		{ "never all", { "1:-:- 2:1:2 3:1:2", "1:1:2 2:1:2 3:-:-", "1:-:- 2:1:2 3:1:2" },
			0 },
		{ "one of two ports", { "1:1:2 2:1:2", "1:1:- 2:1:2", "1:-:2 2:1:2" }, 0 },
		{ "no ports at all", { "1:1:2 2:1:2", "1:-:- 2:-:-", "1:1:2 2:1:2" }, 0 },
		{ "another node", { "1:1:2 2:1:2 3:1:2", "1:1:2 4:-:- 3:1:2" }, 1 },
		{ "nodes in another order", { "1:-:- 2:1:2", "2:1:2 1:-:-" }, 1 },
		{ "a node less", { "1:1:2 2:-:- 3:1:2", "1:1:2 3:1:2" }, 1 },
		{ "another port, all known", { "1:1:2 2:1:2 3:1:2", "1:1:2 2:1:7 3:1:2" }, 1 },
		{ "another port, the same missing",
			{ "1:-:- 2:1:2 3:1:2", "1:-:- 2:1:7 3:1:2", "1:-:- 2:1:7 3:1:2" }, 1 },
		/* By this report and not by the next at least. */
		{ "another port, then others missing",
			{ "1:1:2 2:1:2 3:1:2", "1:1:2 2:1:2 3:-:-", "1:1:2 2:1:7 3:-:-",
				"1:1:2 2:1:7 3:1:2" },
			1 },
		/* What was learned is kept, whatever came between. */
		{ "learned, missing, another",
			{ "1:-:- 2:1:2", "1:1:2 2:1:2", "1:-:- 2:1:2", "1:1:9 2:1:2" }, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_detect *det = made((struct pl_detect_options){ .path_change = true });

		for (unsigned int k = 0; k < 4 && rows[i].path[k] != NULL; k++)
			tell_path(det, rows[i].path[k]);
		eq(out.n, rows[i].want, "ports missing: %s", rows[i].name);
		pl_detect_free(det);
	}
}

/* More hops than have marks of their own in what a flow remembers. */
static void long_paths_with_ports_missing(void)
{
	struct pl_detect *det = made((struct pl_detect_options){ .path_change = true });
	char text[2][1024];

	for (unsigned int without = 1; without <= 40; without++) {
		for (unsigned int k = 0; k < 2; k++) {
			size_t n = 0;

			for (unsigned int i = 1; i <= 40; i++)
				n += (size_t)snprintf(text[k] + n, sizeof(text[k]) - n,
					k == 1 && i == without ? "%u:-:- " : "%u:1:2 ", i);
			tell_path(det, text[k]);
		}
	}
	eq(out.n, 0, "40 hops, a port missing at each of them in turn: no change");
	tell_path(det, "1:1:2");
	eq(out.n, 1, "40 hops: another path is told");
	pl_detect_free(det);
}

/* A flow that flaps for ever is told of five times, then once per second; the rest is counted. */
static void flapping(void)
{
	struct pl_detect *det = made((struct pl_detect_options){ .path_change = true });
	const struct pl_core_counters *c = pl_detect_counters(det);
	uint64_t told;

	for (unsigned int i = 0; i < 3001; i++) {
		pl_record_batch_clear(&batch);
		flow_path(0, 1, 10 + i % 2);
		out.n = 0;
		pl_detect_batch(det, &batch, SECOND + i * MS, &out);
	}
	told = c->events[PL_EVENT_PATH_CHANGE];
	ok(told == 7 || told == 8, "told of %" PRIu64 " times in three seconds", told);
	eq(told + c->limited[PL_EVENT_PATH_CHANGE], 3000, "the rest is counted");
	pl_detect_free(det);
}

/* Against a table without bounds, as long as all flows fit. */
static void flows_against_model(void)
{
	static uint64_t last[20000], seen[20000];
	struct pl_detect *det = made((struct pl_detect_options){ .path_change = true,
		.max_flows = 1 << 18,
		.limit_burst = 1000000,
		.flow_idle_ns = 50 * SECOND });
	const struct pl_core_counters *c = pl_detect_counters(det);
	uint64_t now = 1000 * SECOND, want = 0, got = 0;
	struct pl_rng rng;
	bool good = true;

	printf("# seed 3\n");
	pl_rng_seed(&rng, 3);
	for (unsigned int round = 0; round < 2000; round++) {
		uint64_t expect = 0;

		now += pl_rng_below(&rng, 2 * SECOND);
		pl_record_batch_clear(&batch);
		for (uint64_t n = pl_rng_below(&rng, 256); n > 0; n--) {
			unsigned int flow = (unsigned int)pl_rng_below(&rng, 20000);
			unsigned int flags = pl_rng_below(&rng, 8) == 0 ? PL_FLAG_PARTIAL : 0;
			uint64_t id = 1 + pl_rng_below(&rng, 2);

			flow_path(flags, flow, id);
			if (now - seen[flow] > 50 * SECOND)
				last[flow] = 0; /* it begins anew */
			seen[flow] = now;
			if (flags != 0)
				continue; /* keeps it alive, says nothing of its path */
			expect += last[flow] != 0 && last[flow] != id;
			last[flow] = id;
		}
		out.n = 0;
		pl_detect_batch(det, &batch, now, &out);
		good &= out.n == expect;
		got += out.n;
		want += expect;
	}
	eq(got, want, "all path changes, %" PRIu64 " of them", want);
	ok(good && want > 1000, "each in its batch");
	eq(c->evicted[PL_CORE_T_flow], 0, "nothing was evicted");
	pl_detect_free(det);
}

/* More flows than places: bounded, counted, and no change is made up. */
static void too_many_flows(void)
{
	struct pl_detect *det =
		made((struct pl_detect_options){ .path_change = true, .max_flows = 64 });
	const struct pl_core_counters *c = pl_detect_counters(det);

	for (unsigned int i = 0; i < 10000; i++) {
		pl_record_batch_clear(&batch);
		flow_path(0, i % 5000, i % 5000);
		pl_detect_batch(det, &batch, SECOND + i, &out);
	}
	eq(out.n, 0, "no change is made up");
	eq(pl_detect_flows(det), 64, "the table is full");
	eq(c->made[PL_CORE_T_flow], 10000, "all were new");
	eq(c->evicted[PL_CORE_T_flow], 10000 - 64, "evictions are counted");
	pl_detect_free(det);
}

static struct pl_hop *queue_hop(uint64_t node, uint32_t depth)
{
	struct pl_hop *h = add_hop(&batch, node,
		PL_HOP_HAS_node | PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth |
			PL_HOP_HAS_egress_port);

	h->egress_port = 4;
	h->queue = 2;
	h->queue_depth = depth;
	return h;
}

static void report_depth(struct pl_detect *det, uint64_t node, uint32_t depth, uint64_t now_ns)
{
	pl_record_batch_clear(&batch);
	add_path(&batch, 0)->ts_ns = now_ns + 1;
	queue_hop(node, depth);
	out.n = 0;
	pl_detect_batch(det, &batch, now_ns, &out);
}

static void queue_depth(void)
{
	struct pl_detect_options o = { .queue_depth = { .on = true, .threshold = 100 } };
	struct pl_detect *det = made(o);
	const struct pl_event *e;
	uint64_t t = 10 * SECOND;

	report_depth(det, 9, 100, t);
	eq(out.n, 0, "at the threshold");
	pl_record_batch_clear(&batch);
	add_path(&batch, 0);
	add_hop(&batch, 0, PL_HOP_HAS_queue_depth)->queue_depth = 5000;
	pl_detect_batch(det, &batch, t, &out);
	eq(out.n, 0, "a depth of no node");
	report_depth(det, 9, 101, t);
	e = only_event("begin");
	ok(e->event == PL_EVENT_QUEUE_DEPTH && e->phase == PL_PHASE_BEGIN && e->value == 101 &&
			e->threshold == 100 && e->node == 9 && e->port == 4 && e->queue == 2 &&
			e->ts_ns == t + 1,
		"begin: what and where");
	eq(pl_detect_raised(det), 1, "raised");
	report_depth(det, 9, 700, t + MS);
	eq(out.n, 0, "more of it");
	report_depth(det, 9, 51, t + 2 * MS);
	report_depth(det, 9, 50, t + 95 * MS);
	eq(out.n, 0, "half of the threshold, not long enough");
	report_depth(det, 9, 10, t + SECOND + 95 * MS);
	e = only_event("end");
	ok(e->phase == PL_PHASE_END && e->value == 700, "end: the largest depth");
	eq(pl_event_get_duration_ns(e), 95 * MS, "how long, without the time it was held");
	eq(pl_detect_raised(det), 0, "not raised");
	t += SECOND;
	report_depth(det, 9, 200, t + SECOND);
	eq(out.n, 1, "begins again");
	out.n = 0;
	pl_detect_tick(det, t + 5 * SECOND, 123, &out);
	eq(out.n, 0, "silent, not for long enough");
	pl_detect_tick(det, t + 7 * SECOND, 123, &out);
	e = only_event("silent");
	ok(e->phase == PL_PHASE_END && e->value == 200 && e->ts_ns == 123, "silence ends it");
	pl_detect_tick(det, t + 100 * SECOND, 124, &out);
	eq(out.n, 1, "once");
	report_depth(det, 9, 200, t + 101 * SECOND);
	e = only_event("as deep as before the silence");
	eq(e->phase, PL_PHASE_BEGIN, "a begin");
	pl_detect_free(det);
}

/* Begins held back by the limit have no ends: begins and ends stand in pairs. */
static void pairs(void)
{
	struct pl_detect_options o = { .queue_depth = {
					       .on = true, .threshold = 100, .end_hold_ns = 1 } };
	struct pl_detect *det = made(o);
	struct pl_rng rng;
	unsigned int begun = 0, ended = 0;
	bool good = true;
	uint64_t t = SECOND;

	printf("# seed 4\n");
	pl_rng_seed(&rng, 4);
	for (unsigned int i = 0; i < 20000; i++) {
		t += pl_rng_below(&rng, 5 * MS);
		report_depth(det, 1, (uint32_t)pl_rng_below(&rng, 200), t);
		for (uint32_t n = 0; n < out.n; n++) {
			begun += out.events[n].phase == PL_PHASE_BEGIN;
			ended += out.events[n].phase == PL_PHASE_END;
			good &= begun - ended <= 1;
		}
	}
	ok(good && begun > 5, "begins and ends in pairs, %u of them", begun);
	ok(pl_detect_counters(det)->limited[PL_EVENT_QUEUE_DEPTH] > 100,
		"many were held back, and counted");
	pl_detect_free(det);
}

static void hop_latency(void)
{
	struct pl_detect_options o = { .hop_latency = { .on = true, .threshold = 1000 },
		.max_queues = 8 };
	struct pl_detect *det = made(o);
	const struct pl_core_counters *c = pl_detect_counters(det);
	unsigned int begun = 0, ended = 0;

	pl_record_batch_clear(&batch);
	add_path(&batch, 0);
	for (unsigned int i = 0; i < 20; i++)
		add_hop(&batch, i, PL_HOP_HAS_node | PL_HOP_HAS_hop_latency_ns)->hop_latency_ns =
			i == 0 ? 1000 : 5000;
	pl_detect_batch(det, &batch, SECOND, &out);
	ok(out.events[0].event == PL_EVENT_HOP_LATENCY && out.events[0].node == 1 &&
			!(out.events[0].present & (PL_EVENT_HAS_port | PL_EVENT_HAS_queue)),
		"hop latency at a node without ports");
	for (uint32_t i = 0; i < out.n; i++) {
		begun += out.events[i].phase == PL_PHASE_BEGIN;
		ended += out.events[i].phase == PL_PHASE_END;
	}
	eq(begun, 19, "all begin");
	eq(ended, begun - pl_detect_raised(det), "what lost its place has ended");
	eq(c->made[PL_CORE_T_place] - c->evicted[PL_CORE_T_place], 8, "eight places are taken");
	eq(c->evicted[PL_CORE_T_place], 12, "the others were evicted, counted");
	out.n = 0;
	pl_detect_tick(det, 100 * SECOND, 0, &out);
	eq(out.n, begun - ended, "the others end");
	eq(pl_detect_raised(det), 0, "nothing is raised");
	pl_detect_free(det);
}

static struct pl_path *drop_path(uint64_t node, int reason)
{
	struct pl_path *p = add_path(&batch, PL_FLAG_DROPPED);

	p->node = node;
	p->present = PL_PATH_HAS_node;
	if (reason >= 0) {
		p->drop_reason = (uint8_t)reason;
		p->present |= PL_PATH_HAS_drop_reason;
	}
	return p;
}

static void packet_drops(void)
{
	struct pl_detect *det = made((struct pl_detect_options){ .packet_drop = true });
	const struct pl_event *e;
	struct pl_path *p;
	uint64_t sum = 0;

	pl_record_batch_clear(&batch);
	add_path(&batch, 0);
	pl_detect_batch(det, &batch, SECOND, &out);
	eq(out.n, 0, "no drop");
	pl_record_batch_clear(&batch);
	drop_path(3, 0);
	pl_detect_batch(det, &batch, SECOND, &out);
	e = only_event("drop");
	ok(e->event == PL_EVENT_PACKET_DROP && e->node == 3 && e->drop_reason == 0 &&
			(e->present & PL_EVENT_HAS_drop_reason) && e->value == 1,
		"drop: reason 0 is a reason");
	out.n = 0;
	pl_record_batch_clear(&batch);
	drop_path(3, -1);
	pl_detect_batch(det, &batch, SECOND, &out);
	e = only_event("drop without a reason");
	ok(!(e->present & PL_EVENT_HAS_drop_reason), "drop without a reason has none");
	out.n = 0;
	pl_record_batch_clear(&batch);
	p = drop_path(9, -1);
	p->mode = PL_MODE_DROP_SUMMARY;
	p->flow_id = 7; /* lost_count */
	p->present |= PL_PATH_HAS_lost_count;
	pl_detect_batch(det, &batch, SECOND, &out);
	eq(only_event("a summary of seven packets")->value, 7, "counts seven");
	out.n = 0;
	pl_record_batch_clear(&batch);
	for (unsigned int i = 0; i < 200; i++)
		drop_path(4, 7);
	for (unsigned int i = 0; i < 5; i++)
		pl_detect_batch(det, &batch, 2 * SECOND, &out);
	eq(out.n, 5, "a thousand drops at once are five events");
	pl_detect_tick(det, 2 * SECOND + SECOND / 2, 0, &out);
	eq(out.n, 5, "the limit holds");
	pl_detect_tick(det, 4 * SECOND, 0, &out);
	for (uint32_t i = 0; i < out.n; i++)
		sum += out.events[i].value;
	eq(sum, 1000, "and all thousand are told of");
	pl_detect_free(det);
}

static void report_loss(void)
{
	struct pl_detect *det = made((struct pl_detect_options){
		.report_loss = true, .max_exporters = 2, .loss_hold_ns = 3 * SECOND });
	struct pl_exporter x = { .node = 5, .hw_id = 1, .reports = 100, .lost = 0, .last_seq = 9 };
	const struct pl_event *e;

	pl_detect_exporter(det, &x, SECOND, 1, &out);
	eq(out.n, 0, "nothing lost");
	x.lost = 4;
	pl_detect_exporter(det, &x, 2 * SECOND, 1, &out);
	e = only_event("lost");
	ok(e->event == PL_EVENT_REPORT_LOSS && e->phase == PL_PHASE_BEGIN && e->value == 4 &&
			e->node == 5 && e->seq == 9,
		"begins: how many, of whom");
	out.n = 0;
	x.lost = 9;
	pl_detect_exporter(det, &x, 4 * SECOND, 1, &out);
	pl_detect_exporter(det, &x, 7 * SECOND - 1, 1, &out);
	eq(out.n, 0, "it goes on");
	x.lost = 8;
	pl_detect_exporter(det, &x, 7 * SECOND, 1, &out);
	e = only_event("nothing more for so long");
	ok(e->phase == PL_PHASE_END && e->value == 8 && pl_event_get_duration_ns(e) == 2 * SECOND,
		"ends: what it came to, late ones aside, and how long");
	out.n = 0;
	x.lost = 6;
	pl_detect_exporter(det, &x, 8 * SECOND, 1, &out);
	eq(out.n, 0, "late ones came in: no loss");
	x.lost = 8;
	pl_detect_exporter(det, &x, 9 * SECOND, 1, &out);
	e = only_event("two more");
	ok(e->phase == PL_PHASE_BEGIN && e->value == 2, "begins again");
	out.n = 0;
	x.reports = 10;
	x.lost = 3;
	pl_detect_exporter(det, &x, 10 * SECOND, 1, &out);
	pl_detect_exporter(det, &x, 13 * SECOND, 1, &out);
	e = only_event("a new decoder counts from zero");
	ok(e->phase == PL_PHASE_END && e->value == 3, "with what it counted");
	out.n = 0;
	x.node = 6;
	pl_detect_exporter(det, &x, 13 * SECOND, 1, &out);
	x.node = 7;
	pl_detect_exporter(det, &x, 13 * SECOND, 1, &out);
	(void)only_event("the third exporter finds no place");
	eq(pl_detect_counters(det)->full[PL_CORE_T_exporter], 1, "counted");
	pl_detect_free(det);
}

/* A gap that was opened since the last look may still be filled. */
static void report_gaps(void)
{
	struct pl_detect_options o = { .report_loss = true };
	struct pl_detect *det = made(o);
	struct pl_exporter x = { .reports = 100, .span = 128, .seen = { UINT64_MAX, UINT64_MAX } };

	x.last_seq = 100;
	pl_detect_exporter(det, &x, SECOND, 1, &out);
	x.last_seq = 110;
	x.lost = 2;
	x.seen[0] = ~UINT64_C(0x30);
	pl_detect_exporter(det, &x, 2 * SECOND, 1, &out);
	eq(out.n, 0, "two gaps among the last ten numbers: not sure yet");
	x.lost = 1;
	x.seen[0] = ~UINT64_C(0x10);
	pl_detect_exporter(det, &x, 3 * SECOND, 1, &out);
	eq(only_event("no number came since: one was filled")->value, 1, "the other is lost");
	pl_detect_free(det);

	det = made(o);
	x.last_seq = 300;
	x.lost = 9;
	x.seen[0] = ~UINT64_C(0x10);
	x.seen[1] = ~UINT64_C(3);
	pl_detect_exporter(det, &x, SECOND, 1, &out);
	eq(only_event("a new one")->value, 6, "what left the window is lost");
	out.n = 0;
	o.report_loss = false;
	eq(pl_detect_change(det, &o, 2 * SECOND, 1, &out), 0, "losses are not told any more");
	pl_detect_exporter(det, &x, 2 * SECOND, 1, &out);
	eq(only_event("what went on ends")->phase, PL_PHASE_END, "with an end");
	out.n = 0;
	pl_detect_exporter(det, &x, 3 * SECOND, 1, &out);
	eq(out.n, 0, "and nothing after");
	pl_detect_free(det);
}

/* Losses from before they were watched, or from before there was room for the exporter, are no
 * event. */
static void report_loss_before(void)
{
	for (unsigned int late = 0; late < 2; late++) {
		struct pl_detect_options o = { .report_loss = late };
		struct pl_detect *det = made(o);
		struct pl_exporter x = { .reports = 100,
			.lost = 9,
			.last_seq = 300,
			.span = 128,
			.seen = { ~UINT64_C(0x10), ~UINT64_C(3) },
			.late = late };

		pl_detect_exporter(det, &x, SECOND, 1, &out);
		o.report_loss = true;
		eq(pl_detect_change(det, &o, SECOND, 1, &out), 0, "losses are watched");
		pl_detect_exporter(det, &x, 2 * SECOND, 1, &out);
		x.seen[0] = x.seen[1] = UINT64_MAX;
		x.last_seq += 300;
		pl_detect_exporter(det, &x, 3 * SECOND, 1, &out);
		eq(out.n, 0, "losses of before are not told");
		x.lost = 11;
		pl_detect_exporter(det, &x, 4 * SECOND, 1, &out);
		eq(only_event("two more")->value, 2, "these are");
		pl_detect_free(det);
	}
}

static void no_room(void)
{
	struct pl_detect *det = made((struct pl_detect_options){ .path_change = true });
	struct pl_event_batch small = { 0 };

	eq(pl_event_batch_init(&small, 1), 0, "room for one");
	for (unsigned int path = 0; path < 2; path++) {
		pl_record_batch_clear(&batch);
		for (unsigned int f = 0; f < 3; f++)
			flow_path(0, f, 10 + path);
		pl_detect_batch(det, &batch, SECOND, &small);
	}
	eq(small.n, 1, "one event");
	eq(pl_detect_counters(det)->events_dropped, 2, "two had no room: counted");
	pl_event_batch_done(&small);
	pl_detect_free(det);
}

static void refused(void)
{
	static const struct {
		const char *name;
		struct pl_detect_options o;
	} rows[] = {
		{ "low above threshold", { .queue_depth = { .threshold = 5, .low = 6 } } },
		{ "too many flows", { .max_flows = (1 << 26) + 1 } },
		{ "too many drops", { .max_drops = UINT32_MAX } },
		{ "burst", { .limit_burst = 1000001 } },
		{ "interval", { .limit_interval_ns = UINT64_MAX } },
	};
	struct pl_detect_options off = { 0 }, all;
	struct pl_detect *det = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		eq(pl_detect_new(&det, &rows[i].o), -EINVAL, "refused: %s", rows[i].name);
	ok(det == NULL, "nothing made");
	pl_detect_free(NULL);
	pl_detect_defaults(&all);
	ok(pl_detect_memory(&all) > 131072 * 128, "memory is stated");
	ok(pl_detect_memory(&off) > 131072 * 128, "flows are kept whatever is told of them");
	all.flow_latency.on = true;
	all.flow_latency.threshold = 1;
	ok(pl_detect_memory(&off) < pl_detect_memory(&all), "what is off takes none");
	det = made(off);
	pl_record_batch_clear(&batch);
	flow_path(PL_FLAG_DROPPED, 1, 1);
	queue_hop(1, UINT32_MAX);
	flow_path(0, 1, 2);
	flow_path(0, 1, 3);
	pl_detect_batch(det, &batch, 1, &out);
	pl_detect_tick(det, 100 * SECOND, 0, &out);
	eq(out.n, 0, "all off: no event");
	pl_detect_free(det);
}

int main(void)
{
	if (pl_record_batch_init(&batch, 512, 1024) < 0 || pl_event_batch_init(&out, 512) < 0)
		return EXIT_FAILURE;
	levels();
	limits();
	refused();
	path_changes();
	paths_with_ports_missing();
	long_paths_with_ports_missing();
	flapping();
	flows_against_model();
	too_many_flows();
	queue_depth();
	pairs();
	hop_latency();
	packet_drops();
	report_loss();
	report_gaps();
	report_loss_before();
	no_room();
	pl_record_batch_done(&batch);
	pl_event_batch_done(&out);
	return pl_test_done();
}
