/* SPDX-License-Identifier: BSD-2-Clause */
/* Every kind of event by cases computed by hand, and the tables under pressure. */
#include "detect/events.h"

#include <errno.h>

#include "detect/batch_maker.h"
#include "detect/test_raised.h"

#define MS     ((uint64_t)1000000)
#define SECOND (1000 * MS)

static struct pl_record_batch batch;
static struct pl_event_batch out;

static struct pl_detect *made(struct pl_detect_options o)
{
	struct pl_detect *det = NULL;

	if (pl_detect_new(&det, &o) < 0)
		abort();
	out.n = 0;
	return det;
}

static struct pl_path *flow_path(unsigned int flow)
{
	struct pl_path *p = add_path(&batch, 0);

	p->present = PL_PATH_HAS_src | PL_PATH_HAS_sport;
	p->src.b[15] = 1;
	p->dst.b[15] = 2;
	p->sport = (uint16_t)flow;
	p->src.b[0] = (uint8_t)(flow >> 16);
	p->dport = 443;
	p->proto = 17;
	return p;
}

/* A report of flow 1 with one hop at node 7, port 3, queue 1, that holds `what`; its events are in
 * out. */
static void report(struct pl_detect *det, uint32_t what, uint32_t value, uint64_t now_ns)
{
	struct pl_hop *h;

	pl_record_batch_clear(&batch);
	flow_path(1)->ts_ns = now_ns;
	h = add_hop(&batch, 7,
		PL_HOP_HAS_node | PL_HOP_HAS_egress_port | PL_HOP_HAS_queue | PL_HOP_HAS_buffer |
			what);
	h->egress_port = 3;
	h->queue = 1;
	h->buffer = 5;
	if (what & PL_HOP_HAS_queue_depth)
		h->queue_depth = value;
	if (what & PL_HOP_HAS_tx_util)
		h->tx_util = value;
	if (what & PL_HOP_HAS_hop_latency_ns)
		h->hop_latency_ns = value;
	if (what & PL_HOP_HAS_buffer_depth)
		h->buffer_depth = value;
	pl_detect_batch(det, &batch, now_ns, &out);
}

/* --- steps: the rules of INTCollector --------------------------------------------------------- */

struct value {
	uint32_t v;
	/* -2: nothing is told; -1: told, as the first; else told, after this one */
	int64_t want_old;
};

static void stream(const char *name, struct pl_detect_options o, uint32_t what,
	enum pl_event_kind kind, const struct value *values, size_t n)
{
	struct pl_detect *det = made(o);

	for (size_t i = 0; i < n; i++) {
		const struct pl_event *e = &out.events[0];
		bool good;

		out.n = 0;
		report(det, what, values[i].v, SECOND + i);
		good = out.n == (values[i].want_old != -2);
		if (good && out.n == 1)
			good = e->event == kind && e->phase == PL_PHASE_ONCE &&
			       e->value == values[i].v && e->node == 7 &&
			       ((e->present & PL_EVENT_HAS_old_value) != 0) ==
				       (values[i].want_old >= 0) &&
			       (values[i].want_old < 0 ||
				       pl_event_get_old_value(e) == (uint64_t)values[i].want_old);
		ok(good, "%s: value %zu, %u", name, i, values[i].v);
	}
	pl_detect_free(det);
}

#define STREAM(name, o, what, kind, ...)                                                           \
	do {                                                                                       \
		static const struct value values[] = { __VA_ARGS__ };                              \
		stream(name, o, what, kind, values, sizeof(values) / sizeof(values[0]));           \
	} while (0)

/* INTCollector's definitions: THRESHOLD tells |new - stored| > 50, INTERVAL new >> 6 != stored >>
 * 6, both the first value of a key; stored moves only when told, so that slow drift is told when it
 * has added up. */
static void steps(void)
{
	struct pl_detect_level threshold = { .step = 50, .step_first = true, .limit_burst = 1000 };
	struct pl_detect_level interval = {
		.step_bits = 6, .step_first = true, .limit_burst = 1000
	};
	struct pl_detect_level relative = { .step_relative = 10, .limit_burst = 1000 };
	struct pl_detect_options depth = { .queue_depth = threshold };
	struct pl_detect_options util = { .tx_util = interval };
	struct pl_detect_options latency = { .hop_latency = threshold };
	struct pl_detect_options buffer = { .buffer_depth = relative };
	struct pl_detect_options both = { .queue_depth = threshold };

	STREAM("queue occupancy, THRESHOLD", depth, PL_HOP_HAS_queue_depth, PL_EVENT_QUEUE_DEPTH,
		{ 100, -1 }, { 150, -2 }, { 151, 100 }, { 101, -2 }, { 100, 151 }, { 110, -2 },
		{ 120, -2 }, { 130, -2 }, { 140, -2 }, { 150, -2 }, { 151, 100 }, { 0, 151 },
		{ 50, -2 }, { 51, 0 }, { UINT32_MAX, 51 }, { UINT32_MAX - 50, -2 },
		{ UINT32_MAX - 51, UINT32_MAX }, { 1, (int64_t)UINT32_MAX - 51 });
	STREAM("transmit utilization, INTERVAL", util, PL_HOP_HAS_tx_util, PL_EVENT_TX_UTIL,
		{ 100, -1 }, { 127, -2 }, { 64, -2 }, { 63, 100 }, { 0, -2 }, { 64, 63 },
		{ 190, 64 }, { 128, -2 }, { 192, 190 }, { 191, 192 });
	/* The 100 latencies of test 7 begin like this: 170 to 832, one per second. */
	STREAM("hop latency, THRESHOLD", latency, PL_HOP_HAS_hop_latency_ns, PL_EVENT_HOP_LATENCY,
		{ 170, -1 }, { 220, -2 }, { 221, 170 }, { 832, 221 }, { 800, -2 }, { 781, 832 });
	STREAM("buffer, by a tenth", buffer, PL_HOP_HAS_buffer_depth, PL_EVENT_BUFFER_DEPTH,
		{ 1000, -2 }, { 1100, -2 }, { 1101, 1000 }, { 1000, -2 }, { 991, -2 },
		{ 990, 1101 });
	both.queue_depth.step_bits = 6;
	STREAM("either of two rules", both, PL_HOP_HAS_queue_depth, PL_EVENT_QUEUE_DEPTH,
		{ 63, -1 }, { 64, 63 }, { 114, -2 }, { 115, 64 });
}

/* The same stream at one nanosecond and at one millisecond per report: time makes no events.
 * (INTCollector takes 100 ns since the last for a time-out, and with real clocks tells every
 * report.) */
static void steady(void)
{
	for (uint64_t every = 1; every <= MS; every *= 1000) {
		struct pl_detect *det = made((struct pl_detect_options){ .path_change = true,
			.flow_start = true,
			.queue_depth = { .step = 50, .step_first = true },
			.hop_latency = { .step = 50, .step_first = true } });

		for (unsigned int i = 0; i < 1000; i++)
			report(det, PL_HOP_HAS_queue_depth | PL_HOP_HAS_hop_latency_ns, 40 + i % 50,
				SECOND + i * every);
		eq(out.n, 3, "1000 reports, one per %" PRIu64 " ns: flow, queue and latency once",
			every);
		pl_detect_free(det);
	}
}

/* --- what is learned -------------------------------------------------------------------------- */

static const struct pl_event *only(
	const char *name, enum pl_event_kind kind, enum pl_event_phase phase)
{
	static const struct pl_event none;

	ok(out.n == 1 && out.events[0].event == kind && out.events[0].phase == phase,
		"%s: one event, %s %s (of %u)", name, pl_event_kind_name(kind),
		pl_form_word(PL_FORM_PHASE, phase), out.n);
	return out.n == 1 ? &out.events[0] : &none;
}

static void relative(void)
{
	struct pl_detect *det = made((struct pl_detect_options){
		.queue_depth = { .on = true, .relative = 50, .end_hold_ns = 1 },
		.learn = { .windows = 2, .shift = 1 } });
	const struct pl_event *e;
	uint64_t t = 10 * SECOND;

	report(det, PL_HOP_HAS_queue_depth, 100, t);
	report(det, PL_HOP_HAS_queue_depth, 1000, t + 1);
	report(det, PL_HOP_HAS_queue_depth, 100, t + SECOND); /* 1 window, mean 550 */
	eq(out.n, 0, "nothing is known yet");
	report(det, PL_HOP_HAS_queue_depth, 50,
		t + 2 * SECOND); /* mean 550 + (100 - 550) / 2 = 325 */
	eq(out.n, 0, "within");
	report(det, PL_HOP_HAS_queue_depth, 487, t + 2 * SECOND); /* 325 + 325 / 2 = 487 */
	eq(out.n, 0, "at the threshold");
	report(det, PL_HOP_HAS_queue_depth, 488, t + 2 * SECOND);
	e = only("above the usual", PL_EVENT_QUEUE_DEPTH, PL_PHASE_BEGIN);
	ok(e->value == 488 && e->threshold == 487, "what it crossed");
	out.n = 0;
	report(det, PL_HOP_HAS_queue_depth, 468, t + 2 * SECOND); /* 487 - 162 / 8 = 467 */
	report(det, PL_HOP_HAS_queue_depth, 467, t + 2 * SECOND + 1);
	eq(out.n, 0, "not low enough, then not long enough");
	report(det, PL_HOP_HAS_queue_depth, 0, t + 2 * SECOND + 2);
	e = only("back", PL_EVENT_QUEUE_DEPTH, PL_PHASE_END);
	ok(e->value == 488 && pl_event_get_duration_ns(e) == 1, "the largest, and how long");
	pl_detect_free(det);
}

static void anomaly(void)
{
	struct pl_detect_options o = { .hop_latency = { .anomaly = true, .limit_burst = 100 },
		.learn = { .windows = 2, .deviations = 3, .end_hold_ns = 1 } };
	struct pl_detect *det = made(o);
	const struct pl_event *e;
	uint64_t t = 10 * SECOND;

	for (unsigned int i = 0; i < 20; i++) /* two windows: mean 100, deviation 10 */
		report(det, PL_HOP_HAS_hop_latency_ns, i % 2 == 0 ? 90 : 110, t + i * 100 * MS);
	report(det, PL_HOP_HAS_hop_latency_ns, 90, t + 2 * SECOND);
	eq(out.n, 0, "learning");
	report(det, PL_HOP_HAS_hop_latency_ns, 130, t + 2 * SECOND + 1);
	report(det, PL_HOP_HAS_hop_latency_ns, 70, t + 2 * SECOND + 2);
	eq(out.n, 0, "three deviations are usual");
	report(det, PL_HOP_HAS_hop_latency_ns, 131, t + 2 * SECOND + 3);
	e = only("more than three", PL_EVENT_ANOMALY, PL_PHASE_BEGIN);
	ok(e->value == 131 && e->threshold == 130 && pl_event_get_mean(e) == 100 &&
			pl_event_get_deviation(e) == 10 &&
			pl_event_get_quantity(e) == PL_EVENT_HOP_LATENCY && e->node == 7 &&
			e->port == 3,
		"what, where, against what");
	eq(pl_detect_raised(det), 1, "raised");
	out.n = 0;
	report(det, PL_HOP_HAS_hop_latency_ns, 128, t + 2 * SECOND + 4);
	report(det, PL_HOP_HAS_hop_latency_ns, 127, t + 2 * SECOND + 5); /* 30 - 30 / 8 = 27 */
	report(det, PL_HOP_HAS_hop_latency_ns, 100, t + 2 * SECOND + 6);
	e = only("back", PL_EVENT_ANOMALY, PL_PHASE_END);
	ok(e->value == 31 && pl_event_get_duration_ns(e) == 2, "the largest distance, how long");
	out.n = 0;
	report(det, PL_HOP_HAS_hop_latency_ns, 69, t + 2 * SECOND + 10);
	e = only("below", PL_EVENT_ANOMALY, PL_PHASE_BEGIN);
	ok(e->value == 69 && e->threshold == 70, "too fast is unusual as well");
	pl_detect_free(det);

	o.hop_latency.anomaly_min = 500;
	det = made(o);
	for (unsigned int i = 0; i < 40; i++)
		report(det, PL_HOP_HAS_hop_latency_ns, 100, t + i * 100 * MS);
	report(det, PL_HOP_HAS_hop_latency_ns, 600, t + 5 * SECOND);
	eq(out.n, 0, "no deviation at all, but not far enough");
	report(det, PL_HOP_HAS_hop_latency_ns, 601, t + 5 * SECOND);
	eq(out.n, 1, "far enough");
	pl_detect_free(det);
}

/* --- flows ------------------------------------------------------------------------------------ */

/* A report of a flow whose hops took so long together. */
static void path_report(struct pl_detect *det, unsigned int flow, uint64_t latency_ns,
	uint16_t flags, uint64_t now_ns)
{
	struct pl_path *p;

	pl_record_batch_clear(&batch);
	p = flow_path(flow);
	p->ts_ns = now_ns;
	p->flags = flags;
	p->present |= PL_PATH_HAS_path_id | PL_PATH_HAS_latency_ns;
	p->path_id = 99;
	p->latency_ns = latency_ns;
	pl_detect_batch(det, &batch, now_ns, &out);
}

static void flow_latency(void)
{
	struct pl_detect *det = made((struct pl_detect_options){
		.flow_latency = { .on = true, .threshold = 1000, .end_hold_ns = 10 * MS } });
	struct raised_level level;
	const struct pl_event *e;
	uint64_t pos = 0;

	path_report(det, 1, 1000, 0, SECOND);
	path_report(det, 2, 900, 0, SECOND);
	eq(out.n, 0, "two flows within the threshold");
	path_report(det, 1, 5000, PL_FLAG_PARTIAL, SECOND);
	path_report(det, 1, 5000, PL_FLAG_COPY, SECOND);
	path_report(det, 1, 5000, PL_FLAG_DROPPED, SECOND);
	eq(out.n, 0, "parts of paths, copies and drops say nothing of a path's latency");
	path_report(det, 2, 1001, 0, SECOND);
	e = only("one flow above it", PL_EVENT_FLOW_LATENCY, PL_PHASE_BEGIN);
	ok(e->sport == 2 && e->value == 1001 && e->threshold == 1000 && e->path_id == 99 &&
			!(e->present & PL_EVENT_HAS_node),
		"which flow, by how much, on which path");
	out.n = 0;
	ok(next_raised(det, &pos, &level) && level.kind == PL_EVENT_FLOW_LATENCY &&
			level.flow.sport == 2 && level.max == 1001 && level.at.present == 0,
		"the raised level names it");
	ok(!next_raised(det, &pos, &level), "and is the only one");
	path_report(det, 2, 7000, 0, SECOND + MS);
	path_report(det, 2, 100, 0, SECOND + 2 * MS);
	eq(out.n, 0, "not long enough below");
	path_report(det, 2, 100, 0, SECOND + 13 * MS);
	e = only("long enough", PL_EVENT_FLOW_LATENCY, PL_PHASE_END);
	ok(e->sport == 2 && e->value == 7000 && pl_event_get_duration_ns(e) == 2 * MS,
		"the largest, how long");
	out.n = 0;
	/* 4.29 s stands for more. */
	path_report(det, 1, UINT64_C(1) << 40, 0, 2 * SECOND);
	e = only("hours", PL_EVENT_FLOW_LATENCY, PL_PHASE_BEGIN);
	ok(e->sport == 1 && e->value == UINT32_MAX, "are as long as 32 bits can say");
	out.n = 0;
	for (unsigned int i = 0; i <= 10; i++)
		pl_detect_tick(det, 10 * SECOND + i * 100 * MS, 9, &out);
	e = only("silence", PL_EVENT_FLOW_LATENCY, PL_PHASE_END);
	ok(e->sport == 1 && (e->present & PL_EVENT_HAS_src) && !(e->present & PL_EVENT_HAS_path_id),
		"ends it, told by time, of the flow that it was");
	eq(pl_detect_raised(det), 0, "nothing is raised");
	pl_detect_free(det);

	/* INTCollector's rule: every move by more than 50. */
	det = made((struct pl_detect_options){
		.flow_latency = { .step = 50, .step_first = true, .limit_burst = 100 } });
	path_report(det, 1, 300, 0, SECOND);
	path_report(det, 1, 350, 0, SECOND);
	path_report(det, 1, 351, 0, SECOND);
	path_report(det, 2, 351, 0, SECOND);
	eq(out.n, 3, "the first of each flow, and the one move");
	ok(out.events[1].sport == 1 && out.events[1].value == 351 &&
			pl_event_get_old_value(&out.events[1]) == 300,
		"from which value");
	pl_detect_free(det);

	/* Relative, and a table that is too small: levels of flows that are replaced end. */
	det = made((struct pl_detect_options){ .max_flows = 8,
		.limit_burst = 1000,
		.flow_latency = { .on = true, .threshold = 10 } });
	for (unsigned int flow = 1; flow <= 100; flow++)
		path_report(det, flow, 20, 0, SECOND);
	eq(pl_detect_counters(det)->raised, 100, "a hundred flows in eight places");
	eq(pl_detect_raised(det), 8, "eight are raised");
	eq(out.n, 192, "the others were told to end");
	for (unsigned int i = 1; i < out.n; i++) {
		if (out.events[i].phase == PL_PHASE_END && (out.events[i].sport == 0))
			ok(false, "an end without its flow");
	}
	pl_detect_free(det);
}

/* --- ports, buffers, links -------------------------------------------------------------------- */

static void keys(void)
{
	struct pl_detect *det =
		made((struct pl_detect_options){ .tx_util = { .on = true, .threshold = 80 },
			.buffer_depth = { .on = true, .threshold = 1000 },
			.link_latency = { .on = true, .threshold = 500 } });
	struct raised_level level;
	const struct pl_event *e = out.events;
	uint64_t pos = 0;
	unsigned int n = 0;
	struct pl_hop *h;

	pl_record_batch_clear(&batch);
	flow_path(1);
	for (unsigned int i = 0; i < 2; i++) { /* two queues of one port, two buffers */
		h = add_hop(&batch, 7,
			PL_HOP_HAS_node | PL_HOP_HAS_egress_port | PL_HOP_HAS_queue |
				PL_HOP_HAS_tx_util | PL_HOP_HAS_buffer | PL_HOP_HAS_buffer_depth);
		h->egress_port = 3;
		h->queue = (uint16_t)i;
		h->tx_util = 81;
		h->buffer = (uint8_t)i;
		h->buffer_depth = 2000 + i;
	}
	pl_detect_batch(det, &batch, SECOND, &out);
	eq(out.n, 3, "a port whatever the queue, and two buffers");
	ok(e[0].event == PL_EVENT_TX_UTIL && e[0].port == 3 &&
			!(e[0].present & PL_EVENT_HAS_queue) && e[0].value == 81,
		"the port");
	ok(e[1].event == PL_EVENT_BUFFER_DEPTH && pl_event_get_buffer(&e[1]) == 0 &&
			pl_event_get_buffer(&e[2]) == 1 && !(e[2].present & PL_EVENT_HAS_port),
		"the buffers");
	out.n = 0;
	pl_record_batch_clear(&batch);
	flow_path(1);
	add_hop(&batch, 1, PL_HOP_HAS_node | PL_HOP_HAS_egress_port)->egress_port = 11;
	h = add_hop(&batch, 2,
		PL_HOP_HAS_node | PL_HOP_HAS_ingress_port | PL_HOP_HAS_link_latency_ns |
			PL_HOP_HAS_clock);
	h->ingress_port = 22;
	h->link_latency_ns = 501;
	pl_detect_batch(det, &batch, SECOND, &out);
	e = only("a link", PL_EVENT_LINK_LATENCY, PL_PHASE_BEGIN);
	ok(e->node == 2 && pl_event_get_ingress_port(e) == 22 && pl_event_get_peer_node(e) == 1 &&
			pl_event_get_peer_port(e) == 11 && e->value == 501,
		"from where to where");
	while (next_raised(det, &pos, &level)) {
		n++;
		if (level.kind == PL_EVENT_LINK_LATENCY)
			ok(level.at.node == 2 && level.at.before_node == 1 && level.max == 501,
				"the raised link");
	}
	eq(n, 4, "four levels are raised");
	out.n = 0;
	pl_detect_tick(det, 10 * SECOND, 9, &out);
	eq(out.n, 4, "and end in silence");
	pl_detect_free(det);
}

/* --- loops ------------------------------------------------------------------------------------ */

static void loops(void)
{
	struct pl_detect *det =
		made((struct pl_detect_options){ .loop = true, .limit_burst = 1000 });
	static const uint64_t rows[][6] = { { 1, 2, 3, 2 }, { 1, 2, 3, 4, 5, 6 }, { 5, 5 },
		{ 1, 2, 1, 2, 1, 2 }, { 9 } };
	static const uint64_t want[][2] = { { 2, 2 }, { 0, 0 }, { 5, 1 }, { 1, 2 }, { 0, 0 } };
	struct pl_rng rng;
	unsigned int told = 0, expect = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		out.n = 0;
		pl_record_batch_clear(&batch);
		flow_path(1);
		for (unsigned int n = 0; n < 6 && rows[i][n] != 0; n++)
			add_hop(&batch, rows[i][n], PL_HOP_HAS_node);
		pl_detect_batch(det, &batch, SECOND, &out);
		eq(out.n, want[i][0] != 0, "loop: row %zu", i);
		if (out.n == 1)
			ok(out.events[0].event == PL_EVENT_LOOP &&
					out.events[0].node == want[i][0] &&
					out.events[0].value == want[i][1],
				"loop: which node, how long");
	}
	pl_detect_free(det);
	det = made((struct pl_detect_options){ .loop = true, .limit_burst = 1000000 });
	printf("# seed 5\n");
	pl_rng_seed(&rng, 5);
	for (unsigned int i = 0; i < 20000; i++) {
		uint64_t seen[64], node;
		unsigned int n = (unsigned int)pl_rng_below(&rng, 64);
		bool twice = false;

		pl_record_batch_clear(&batch);
		flow_path(1);
		for (unsigned int h = 0; h < n; h++) {
			/* Some do not say who they are. */
			bool named = pl_rng_below(&rng, 8) != 0;

			node = pl_rng_below(&rng, 1000);
			seen[h] = named ? node : UINT64_MAX;
			for (unsigned int j = 0; named && j < h; j++)
				twice |= seen[j] == node;
			add_hop(&batch, node, named ? PL_HOP_HAS_node : 0);
		}
		expect += twice;
		out.n = 0;
		pl_detect_batch(det, &batch, SECOND + i * MS, &out);
		told += out.n;
	}
	ok(expect > 1000 && told == expect, "as many loops as there are, %u of %u", told, expect);
	pl_detect_free(det);
}

/* --- microbursts ------------------------------------------------------------------------------ */

static void burst_report(
	struct pl_detect *det, unsigned int flow, uint32_t depth, uint32_t latency, uint64_t now_ns)
{
	struct pl_hop *h;

	pl_record_batch_clear(&batch);
	flow_path(flow)->ts_ns = now_ns + 1;
	h = add_hop(&batch, 7,
		PL_HOP_HAS_node | PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth |
			PL_HOP_HAS_hop_latency_ns);
	h->queue = 1;
	h->queue_depth = depth;
	h->hop_latency_ns = latency;
	pl_detect_batch(det, &batch, now_ns, &out);
}

static bool part(const struct pl_event *e, enum pl_burst_role role, unsigned int rank,
	unsigned int flow, uint64_t value)
{
	return e->event == PL_EVENT_MICROBURST && (e->present & PL_EVENT_HAS_role) &&
	       pl_event_get_role(e) == role && pl_event_get_rank(e) == rank && e->sport == flow &&
	       e->value == value && e->node == 7 && e->queue == 1;
}

static void microbursts(void)
{
	struct pl_detect *det = made((struct pl_detect_options){
		.microburst = { .on = true, .threshold = 100, .flows = 2 } });
	uint64_t t = 10 * SECOND;
	const struct pl_event *e = out.events;
	const struct pl_core_counters *c = pl_detect_counters(det);

	burst_report(det, 1, 100, 10, t);
	burst_report(det, 1, 150, 500, t + MS); /* begins */
	burst_report(det, 2, 300, 700, t + MS + 1);
	burst_report(det, 1, 250, 900, t + 2 * MS);
	burst_report(det, 3, 200, 100, t + 3 * MS);
	burst_report(det, 1, 180, 50, t + 3 * MS);
	burst_report(det, 2, 101, 60, t + 3 * MS);
	burst_report(det, 4, 100, 5000, t + 4 * MS); /* over: not part of it */
	eq(out.n, 0, "told by the tick");
	pl_detect_tick(det, t + 5 * MS, 0, &out);
	eq(out.n, 5, "the burst, two culprits, two victims");
	ok(e[0].event == PL_EVENT_MICROBURST && e[0].value == 300 &&
			pl_event_get_duration_ns(&e[0]) == 3 * MS &&
			pl_event_get_packets(&e[0]) == 6 && e[0].ts_ns == t + 4 * MS + 1,
		"how high, how long, how many");
	ok(part(&e[1], PL_ROLE_CULPRIT, 1, 1, 3) && part(&e[2], PL_ROLE_CULPRIT, 2, 2, 2),
		"who brought most");
	ok(part(&e[3], PL_ROLE_VICTIM, 1, 1, 900) && part(&e[4], PL_ROLE_VICTIM, 2, 2, 700),
		"who was delayed most");
	out.n = 0;
	burst_report(det, 1, 150, 1, t + 100 * MS);
	burst_report(det, 1, 99, 1, t + 111 * MS);
	pl_detect_tick(det, t + 200 * MS, 0, &out);
	eq(out.n, 0, "eleven milliseconds are too long");
	burst_report(det, 1, 150, 1, t + 300 * MS);
	pl_detect_tick(det, t + 400 * MS, 0, &out);
	burst_report(det, 1, 99, 1, t + 500 * MS);
	pl_detect_tick(det, t + 600 * MS, 0, &out);
	eq(out.n, 0, "without an end in time it is none");
	for (unsigned int i = 0; i < 20;
		i++) { /* flows beyond what is followed: the largest remain */
		burst_report(det, 100 + i, 150, 1000 + i, t + SECOND + i);
		burst_report(det, 50, 150, 10, t + SECOND + i);
	}
	burst_report(det, 1, 99, 1, t + SECOND + 50);
	pl_detect_tick(det, t + SECOND + MS, 0, &out);
	eq(out.n, 5, "again");
	ok(part(&e[1], PL_ROLE_CULPRIT, 1, 50, 20), "the largest of many flows, exactly");
	ok(part(&e[3], PL_ROLE_VICTIM, 1, 119, 1019) && part(&e[4], PL_ROLE_VICTIM, 2, 118, 1018),
		"the most delayed of many");
	pl_detect_tick(det, t + 9 * SECOND, 0, &out);
	eq(c->made[PL_CORE_T_burst], c->aged[PL_CORE_T_burst] + c->evicted[PL_CORE_T_burst],
		"all places are free again");
	pl_detect_free(det);
}

/* --- flows, nodes ----------------------------------------------------------------------------- */

static void flow_life(void)
{
	struct pl_detect *det = made((struct pl_detect_options){ .flow_start = true,
		.flow_end = true,
		.keepalive_ns = 10 * SECOND,
		.flow_idle_ns = 30 * SECOND });
	const struct pl_core_counters *c = pl_detect_counters(det);
	const struct pl_event *e;
	struct pl_flow_seen top[4];
	uint64_t t = 100 * SECOND;

	report(det, 0, 0, t);
	e = only("first heard of", PL_EVENT_FLOW_START, PL_PHASE_ONCE);
	ok(e->sport == 1 && e->proto == 17, "which");
	report(det, 0, 0, t + SECOND);
	report(det, 0, 0, t + 12 * SECOND);
	eq(out.n, 1, "it goes on");
	out.n = 0;
	pl_detect_tick(det, t + 13 * SECOND, 1, &out);
	e = only("a steady flow", PL_EVENT_KEEPALIVE, PL_PHASE_ONCE);
	ok(e->value == 3 && pl_event_get_duration_ns(e) == 12 * SECOND, "so much, so long");
	pl_detect_tick(det, t + 20 * SECOND, 1, &out);
	eq(out.n, 1, "not too often");
	eq(pl_detect_top_flows(det, top, 4, 0), 1, "the flows with most packets");
	ok(top[0].packets == 3 && top[0].key.sport == 1, "this one");
	out.n = 0;
	pl_detect_tick(det, t + 40 * SECOND, 1, &out);
	out.n = 0;
	pl_detect_tick(det, t + 44 * SECOND, 1, &out);
	e = only("silent", PL_EVENT_FLOW_END, PL_PHASE_ONCE);
	ok(e->value == 3 && pl_event_get_duration_ns(e) == 12 * SECOND && e->sport == 1,
		"all of it");
	eq(pl_detect_flows(det), 0, "gone");
	eq(c->aged[PL_CORE_T_flow], 1, "aged, counted");
	out.n = 0;
	report(det, 0, 0, t + 100 * SECOND);
	only("again", PL_EVENT_FLOW_START, PL_PHASE_ONCE);
	out.n = 0;
	report(det, 0, 0, t + 200 * SECOND); /* no tick between */
	ok(out.n == 2 && out.events[0].event == PL_EVENT_FLOW_END &&
			out.events[1].event == PL_EVENT_FLOW_START,
		"one ended, one began");
	pl_detect_free(det);
}

static void node_silent(void)
{
	struct pl_detect *det = made((struct pl_detect_options){ .node_silent_ns = 5 * SECOND });
	const struct pl_event *e;
	uint64_t t = 100 * SECOND;

	for (unsigned int i = 0; i <= 40; i++) {
		report(det, PL_HOP_HAS_queue_depth, 1, t + i * 100 * MS);
		pl_detect_tick(det, t + i * 100 * MS, 1, &out);
	}
	pl_detect_tick(det, t + 9 * SECOND, 1, &out);
	eq(out.n, 0, "not silent for long enough");
	pl_detect_tick(det, t + 9 * SECOND + 10 * MS, 1, &out);
	e = only("silent", PL_EVENT_NODE_SILENT, PL_PHASE_BEGIN);
	ok(e->node == 7 && e->threshold == 5 * SECOND && e->value > 5 * SECOND, "which");
	pl_detect_tick(det, t + 20 * SECOND, 1, &out);
	eq(out.n, 1, "once");
	out.n = 0;
	report(det, PL_HOP_HAS_queue_depth, 1, t + 30 * SECOND);
	pl_detect_tick(det, t + 30 * SECOND + MS, 1, &out);
	e = only("heard of again", PL_EVENT_NODE_SILENT, PL_PHASE_END);
	ok(pl_event_get_duration_ns(e) / SECOND == 25 || pl_event_get_duration_ns(e) / SECOND == 26,
		"26 seconds, to the millisecond of ways");
	pl_detect_free(det);
}

/* --- clocks, pressure, rules ------------------------------------------------------------------ */

static void clock_steps(void)
{
	struct pl_detect_options o = { .flow_start = true,
		.queue_depth = { .on = true, .threshold = 100 },
		.hop_latency = { .anomaly = true, .step = 50 } };
	const uint64_t hour = 3600 * SECOND;
	const uint64_t at[] = { 50 * hour, 50 * hour + 1, 47 * hour, 47 * hour + 1, 50 * hour + 2,
		53 * hour, 1, 53 * hour + 1 };
	struct pl_detect *det = made(o);
	unsigned int begun = 0, ended = 0;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		report(det, PL_HOP_HAS_queue_depth | PL_HOP_HAS_hop_latency_ns,
			i % 2 == 0 ? 200 : 10, at[i]);
		pl_detect_tick(det, at[i], 0, &out);
	}
	pl_detect_tick(det, 60 * hour, 0, &out);
	for (uint32_t i = 0; i < out.n; i++) {
		begun += out.events[i].phase == PL_PHASE_BEGIN;
		ended += out.events[i].phase == PL_PHASE_END;
		ok(!(out.events[i].present & PL_EVENT_HAS_duration_ns) ||
				pl_event_get_duration_ns(&out.events[i]) <= 60 * hour,
			"no time below zero");
	}
	eq(begun, ended, "clock steps of hours: begins and ends in pairs");
	eq(pl_detect_raised(det), 0, "nothing is left raised");
	pl_detect_free(det);
}

/* A million flows in a second, each once, through 65536 places, of which nine in ten are in use.
 * They spread as by chance, whatever the secret: some 433 000 go before they are idle. */
static void pressure(void)
{
	struct pl_detect *det = made((struct pl_detect_options){
		.path_change = true, .max_flows = 65536, .flow_idle_ns = 60 * MS });
	const struct pl_core_counters *c = pl_detect_counters(det);
	const uint64_t *made_n = &c->made[PL_CORE_T_flow];
	uint64_t present = 0;
	struct pl_flow_seen *all = calloc(65536, sizeof(*all));

	for (unsigned int i = 0; i < 1000000;) {
		pl_record_batch_clear(&batch);
		for (unsigned int n = 0; n < 500; n++, i++) {
			struct pl_path *p = flow_path(i);

			p->vni = i;
			p->present |= PL_PATH_HAS_vni | PL_PATH_HAS_path_id;
			p->path_id = i + UINT64_C(1);
		}
		pl_detect_batch(det, &batch, SECOND + (uint64_t)i * 1000, &out);
		if (i % 100000 == 0)
			pl_detect_tick(det, SECOND + (uint64_t)i * 1000, 0, &out);
	}
	eq(out.n, 0, "no change is made up");
	eq(*made_n, 1000000, "a million flows");
	if (all != NULL)
		present = pl_detect_top_flows(det, all, 65536, 0);
	eq(present, pl_detect_flows(det), "those that are there, counted by hand");
	eq(*made_n, present + c->aged[PL_CORE_T_flow] + c->evicted[PL_CORE_T_flow],
		"new = present + aged + evicted");
	ok(c->evicted[PL_CORE_T_flow] > 0 && c->aged[PL_CORE_T_flow] > 0 &&
			c->full[PL_CORE_T_flow] == 0,
		"evicted %" PRIu64 ", aged %" PRIu64, c->evicted[PL_CORE_T_flow],
		c->aged[PL_CORE_T_flow]);
	free(all);
	pl_detect_free(det);
}

/* Keys that differ in few bits, as an attacker may choose them, spread all the same. */
static void chosen_keys(void)
{
	struct pl_detect *det = made((struct pl_detect_options){ .path_change = true });
	const struct pl_core_counters *c = pl_detect_counters(det);

	for (unsigned int bit = 0; bit < 16; bit++) {
		pl_record_batch_clear(&batch);
		for (unsigned int i = 0; i < 256; i++) {
			struct pl_path *p = flow_path(1);

			p->src.b[bit] = (uint8_t)i;
			p->dst.b[15 - bit] = (uint8_t)i;
			p->path_id = 1;
			p->present |= PL_PATH_HAS_path_id;
		}
		pl_detect_batch(det, &batch, SECOND, &out);
	}
	ok(c->made[PL_CORE_T_flow] > 4000 && c->evicted[PL_CORE_T_flow] == 0,
		"%" PRIu64 " chosen flows, none evicted", c->made[PL_CORE_T_flow]);
	pl_detect_free(det);
}

static void changes(void)
{
	struct pl_detect_options o = { .queue_depth = { .on = true, .threshold = 100 } };
	struct pl_detect *det = made(o);

	report(det, PL_HOP_HAS_queue_depth, 90, SECOND);
	report(det, PL_HOP_HAS_queue_depth, 90, SECOND);
	eq(out.n, 0, "below");
	o.queue_depth.threshold = 80;
	eq(pl_detect_change(det, &o, SECOND, 1, &out), 0, "a lower threshold");
	report(det, PL_HOP_HAS_queue_depth, 90, SECOND);
	only("the same value", PL_EVENT_QUEUE_DEPTH, PL_PHASE_BEGIN);
	out.n = 0;
	o.queue_depth.on = false;
	eq(pl_detect_change(det, &o, 2 * SECOND, 1, &out), 0, "off");
	only("what was raised", PL_EVENT_QUEUE_DEPTH, PL_PHASE_END);
	eq(pl_detect_raised(det), 0, "ends");
	o.max_queues = 100000;
	eq(pl_detect_change(det, &o, 2 * SECOND, 1, &out), -EINVAL, "sizes stay");
	pl_detect_free(det);
}

/* A detector that is replaced leaves nothing begun behind. */
static void replaced(void)
{
	struct pl_detect_options o = { .queue_depth = { .on = true, .threshold = 100 } };
	struct pl_detect *det = made(o);

	report(det, PL_HOP_HAS_queue_depth, 200, SECOND);
	only("raised", PL_EVENT_QUEUE_DEPTH, PL_PHASE_BEGIN);
	out.n = 0;
	pl_detect_end(det, 2 * SECOND, 1, &out);
	only("replaced", PL_EVENT_QUEUE_DEPTH, PL_PHASE_END);
	eq(pl_detect_raised(det), 0, "nothing is left raised");
	pl_detect_free(det);
}

/* A silent node's event ends with its rule. */
static void silent_no_more(void)
{
	struct pl_detect_options o = { .node_silent_ns = 5 * SECOND };
	struct pl_detect *det = made(o);
	const uint64_t t = 100 * SECOND;

	report(det, PL_HOP_HAS_queue_depth, 1, t);
	pl_detect_tick(det, t, 1, &out);
	pl_detect_tick(det, t + 10 * SECOND, 1, &out);
	only("silent", PL_EVENT_NODE_SILENT, PL_PHASE_BEGIN);
	out.n = 0;
	o.node_silent_ns = 0;
	eq(pl_detect_change(det, &o, t + 11 * SECOND, 1, &out), 0, "nodes are not watched");
	pl_detect_tick(det, t + 11 * SECOND, 1, &out);
	only("its rule is off", PL_EVENT_NODE_SILENT, PL_PHASE_END);
	pl_detect_free(det);
}

int main(void)
{
	if (pl_record_batch_init(&batch, 512, 1024) < 0 || pl_event_batch_init(&out, 512) < 0)
		return EXIT_FAILURE;
	steps();
	steady();
	relative();
	anomaly();
	keys();
	flow_latency();
	loops();
	microbursts();
	flow_life();
	node_silent();
	clock_steps();
	pressure();
	chosen_keys();
	changes();
	replaced();
	silent_no_more();
	pl_record_batch_done(&batch);
	pl_event_batch_done(&out);
	return pl_test_done();
}
