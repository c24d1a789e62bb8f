/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One state per key, whoever steps it: streams of all forms, of which the program in the kernel
 * settles a part and escalates the rest, with the ticks of user space between them. A detector in
 * user space that reads every report with the decoder must tell the same events, packet by packet
 * and tick by tick. Then both sides at the same time, on several processors: each begin has one
 * end, each report is counted once.
 *
 * one_state_test [REPORTS [SEED [CONTENDED]]]; exit code 77 when the kernel does not let us load
 * programs.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/test.h"
#include "detect/direct.h"
#include "detect/kernel_detect.h"
#include "detect/turn.h"
#include "forms.h"
#include "tests/bench/cpu.h"
#include "wire/cursor.h"

#define MS         UINT64_C(1000000)
#define EVENTS_MAX 65536
#define FRAME_MAX  3400

/* Where the report begins behind Ethernet, IPv4 and UDP, and the original packet behind a report
 * header of version 1.0. */
enum { UDP_AT = 34, REPORT_AT = 42, INNER_AT = 58 };

static struct pl_kernel_detect *kd;
static struct pl_event_batch events, twin_events;
static struct pl_batch frames;
static struct pl_kernel_frame_of of[PL_BATCH_MAX], now_of;
static const struct pl_packet *now_frame;
static struct pl_decode *decode, *twin_decode;
static struct pl_record_batch records, twin_records;
static struct pl_detect *twin;
static uint64_t now_ns, ts_ns;
static uint64_t ups;

/* --- the kernel with user space beside it ----------------------------------------------------- */

static bool count_number(void *arg, const struct pl_core_numbered *n, uint64_t ts)
{
	(void)arg;
	return pl_kernel_detect_number(
		kd, now_of.queue, n, (enum pl_kernel_number)now_of.number, now_ns, ts);
}

static void step_records(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; now_of.layout && i < b->n_paths; i++) {
		if ((b->paths[i].flags & PL_FLAG_UNPROVEN) == 0)
			(void)pl_kernel_learn(
				pl_kernel_detect_kernel(kd), now_frame, &b->paths[i].exporter);
	}
	pl_kernel_detect_batch(kd, now_of.queue, b, now_ns, &events);
	pl_record_batch_clear(b);
}

static uint32_t ring_bytes = 1 << 22;

static void open_kernel(const struct pl_detect_options *detect, const struct pl_decode_options *o)
{
	static struct pl_filter_rules filter;
	const struct pl_kernel_detect_options options = { .detect = detect,
		.decode = o,
		.queues = 1,
		.events_bytes = 1 << 22,
		.frames_bytes = ring_bytes };
	struct pl_decode_options numbered = *o;
	struct pl_diag diag = { 0 };
	int r = pl_kernel_detect_new(&kd, &options, &diag);

	if (r < 0) {
		printf("%s\n", diag.text);
		exit(r == -EPERM || r == -ENOTSUP ? 77 : 1);
	}
	numbered.number = count_number;
	if (pl_decode_new(&decode, &numbered) < 0 || pl_record_batch_init(&records, 512, 8192) < 0)
		abort();
	records.flush = step_records;
	filter.any_vlan = 1;
	pl_filter_rules_add_port(&filter, 32766);
	pl_filter_rules_add_port(&filter, 54321);
	pl_filter_set(pl_kernel_program(pl_kernel_detect_kernel(kd))->filter, &filter);
	now_ns = 1000 * MS;
	ts_ns = UINT64_C(1700000000000000000);
	pl_kernel_time(pl_kernel_detect_kernel(kd), now_ns, ts_ns);
	events.n = 0;
}

static void close_kernel(void)
{
	pl_decode_free(decode);
	pl_record_batch_done(&records);
	pl_kernel_detect_free(kd);
}

/* What came up, as the daemon does it: frame by frame, the numbers between them. */
static uint64_t take_frames(void)
{
	struct pl_kernel *kernel = pl_kernel_detect_kernel(kd);
	static struct pl_batch one = { .n = 1 };
	uint64_t taken = 0;
	unsigned int n;

	do {
		n = pl_kernel_frames(kernel, &frames, of);
		pl_kernel_detect_caught_up(kd, n == 0, now_ns);
		for (unsigned int i = 0; i < n; i++) {
			now_of = of[i];
			now_frame = &frames.pkts[i];
			if (frames.pkts[i].len == 0) {
				pl_kernel_detect_number(kd, of[i].queue, &of[i].numbered,
					PL_NUMBER_LEFT, now_ns, frames.pkts[i].ts_ns);
				continue;
			}
			one.pkts[0] = frames.pkts[i];
			pl_decode_batch(decode, &one, &records);
			step_records(&records, NULL);
			taken++;
		}
	} while (n > 0);
	return taken;
}

static int run(const struct pl_packet *pkt, uint32_t repeat)
{
	struct bpf_test_run_opts o = { .sz = sizeof(o),
		.data_in = pkt->data,
		.data_size_in = pkt->len,
		.repeat = (int)repeat };
	int r = bpf_prog_test_run_opts(pl_kernel_program(pl_kernel_detect_kernel(kd))->prog_fd, &o);

	return r < 0 ? r : (int)o.retval;
}

static struct pl_kernel_counters counters(void)
{
	struct pl_kernel_counters c = { 0 };

	if (pl_kernel_detect_counters(kd, &c) < 0)
		abort();
	return c;
}

static uint64_t escalated(const struct pl_kernel_counters *c)
{
	uint64_t n = 0;

	for (unsigned int i = 1; i < PL_ESCALATION_MAX; i++)
		n += c->escalated[i];
	return n;
}

/* --- the twin --------------------------------------------------------------------------------- */

static void step_twin(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	pl_detect_batch(twin, b, now_ns, &twin_events);
	pl_record_batch_clear(b);
}

static void open_twin(const struct pl_detect_options *detect, const struct pl_decode_options *o)
{
	if (pl_detect_new(&twin, detect) < 0 || pl_decode_new(&twin_decode, o) < 0 ||
		pl_record_batch_init(&twin_records, 512, 8192) < 0)
		abort();
	twin_records.flush = step_twin;
	twin_events.n = 0;
}

static void close_twin(void)
{
	pl_detect_free(twin);
	pl_decode_free(twin_decode);
	pl_record_batch_done(&twin_records);
}

/* --- the same events -------------------------------------------------------------------------- */

/* Without what a settled report does not have: a record to join. Losses of reports are compared by
 * the accounts. */
static uint32_t comparable(struct pl_event_batch *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		struct pl_event e = b->events[i];

		if (e.event == PL_EVENT_REPORT_LOSS)
			continue;
		e.report_id = 0;
		e.present &= ~(uint32_t)PL_EVENT_HAS_report_id;
		b->events[n++] = e;
	}
	return n;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct pl_event));
}

static const char *name_of(const struct pl_event *e)
{
	return pl_event_kind_name((enum pl_event_kind)e->event);
}

static bool same_events(const char *when, bool in_order, uint64_t *told)
{
	const uint32_t n = comparable(&events), m = comparable(&twin_events);
	bool same = n == m;

	if (!in_order) {
		qsort(events.events, n, sizeof(events.events[0]), by_bytes);
		qsort(twin_events.events, m, sizeof(events.events[0]), by_bytes);
	}
	for (uint32_t i = 0; same && i < n; i++)
		same = memcmp(&events.events[i], &twin_events.events[i], sizeof(struct pl_event)) ==
		       0;
	if (!same) {
		printf("# %s: %u events of the kernel, %u of user space\n", when, n, m);
		for (uint32_t i = 0; i < n || i < m; i++)
			printf("#   %s %u %" PRIu64 "   %s %u %" PRIu64 "\n",
				i < n ? name_of(&events.events[i]) : "-",
				i < n ? events.events[i].phase : 0,
				i < n ? events.events[i].value : 0,
				i < m ? name_of(&twin_events.events[i]) : "-",
				i < m ? twin_events.events[i].phase : 0,
				i < m ? twin_events.events[i].value : 0);
	}
	*told += n;
	events.n = twin_events.n = 0;
	return same;
}

/* One frame to both. */
static bool both(const struct pl_packet *given, uint64_t *told)
{
	static struct pl_batch one = { .n = 1 };
	struct pl_packet pkt = *given;
	int action;

	if (pkt.len < 14 || pkt.len > FRAME_MAX || pkt.link != PL_LINK_ETHERNET)
		return true;
	pkt.wire_len = pkt.len;
	pkt.ts_ns = ts_ns;
	pl_kernel_time(pl_kernel_detect_kernel(kd), now_ns, ts_ns);
	action = run(&pkt, 1);
	if (action != XDP_DROP)
		return action == XDP_PASS; /* no report: neither is told of it */
	(void)pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
	ups += take_frames();
	one.pkts[0] = pkt;
	pl_decode_batch(twin_decode, &one, &twin_records);
	step_twin(&twin_records, NULL);
	return same_events("a report", true, told);
}

static bool tick(uint64_t *told)
{
	(void)pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
	pl_kernel_detect_tick(kd, now_ns, ts_ns, &events);
	pl_detect_tick(twin, now_ns, ts_ns, &twin_events);
	/* Secrets differ, and with them the order of the sets. */
	return same_events("a tick", false, told);
}

/* --- random streams --------------------------------------------------------------------------- */

/* All kinds, with bounds that the generator's values cross, and times that the test passes. */
static struct pl_detect_options busy(struct pl_rng *rng)
{
	struct pl_detect_options o;

	pl_detect_defaults(&o);
	o.flow_start = o.flow_end = o.loop = true;
	o.queue_depth.threshold = 20 + form_pick(rng, 40);
	o.hop_latency.threshold = 3000;
	o.link_latency.threshold = 1200;
	o.tx_util.threshold = 90;
	o.buffer_depth.threshold = 50;
	o.flow_latency.threshold = form_pick(rng, 2) != 0 ? 9000 : 0;
	o.queue_depth.begin_hold_ns = form_pick(rng, 2) != 0 ? 20000 : 0;
	o.queue_depth.end_hold_ns = form_pick(rng, 2) != 0 ? 3 * MS : 1;
	o.queue_depth.step = form_pick(rng, 2) != 0 ? 30 : 0;
	o.queue_depth.anomaly = form_pick(rng, 2) != 0;
	o.queue_depth.step_bits = form_pick(rng, 2) != 0 ? 7 : 0;
	if (form_pick(rng, 2) != 0) {
		static const uint32_t sizes[] = { 0, 1, 3, 80, 176, 208, 256 };

		for (uint32_t i = 0; i < 4; i++)
			o.units.of[i] = (struct pl_core_unit){ .first = i + 1,
				.last = i == 3 ? UINT64_MAX : i + 1,
				.queue_bytes = sizes[form_pick(rng, 7)],
				.buffer_bytes = sizes[form_pick(rng, 7)] };
		o.units.n = 4;
		o.queue_depth.threshold *= 1 + form_pick(rng, 200);
		o.microburst.threshold = 1000;
		o.buffer_depth.threshold = 5000;
	}
	o.learn.window_ns = 2 * MS;
	o.learn.windows = 3;
	o.learn.shift = 2;
	o.microburst.on = form_pick(rng, 2) != 0;
	if (o.units.n == 0)
		o.microburst.threshold = 60;
	o.microburst.flows = 4;
	o.node_silent_ns = 80 * MS;
	o.keepalive_ns = 30 * MS;
	o.flow_idle_ns = 60 * MS;
	o.idle_ns = 40 * MS;
	o.forget_ns = 150 * MS;
	o.limit_interval_ns = MS;
	o.limit_burst = 3;
	o.aggregates = form_pick(rng, 2) != 0;
	/* None is replaced: which one would be depends on the secret. */
	o.max_flows = 1 << 15;
	o.max_queues = o.max_links = o.max_drops = 1 << 13;
	return o;
}

static void put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* The packet with IOAM as what a report of version 1.0 is about. */
static void wrap_ioam(struct pl_packet *pkt, uint8_t *room, const struct pl_packet *report)
{
	const uint32_t len = INNER_AT + pkt->len;

	memcpy(room, report->data, INNER_AT);
	memcpy(room + INNER_AT, pkt->data, pkt->len);
	put16(room + 16, len - 14);
	put16(room + UDP_AT + 4, len - UDP_AT);
	pkt->data = room;
	pkt->len = pkt->wire_len = len;
}

enum { SOURCES = 4 };

/* Generators over one network, so that a queue is seen in several forms: usual ones that are
 * settled, tunnels, anything. */
static unsigned int make_sources(
	struct pl_gen *ret[SOURCES], struct pl_gen **ret_ioam, struct pl_rng *rng)
{
	struct pl_gen_cfg cfg, first, ioam;
	struct pl_diag diag = { 0 };
	unsigned int n = 0;

	form_usual(&first, rng);
	first.outer_ip = 4;
	first.report = PL_GEN_REPORT_V10;
	first.version = PL_GEN_INT_V10;
	first.inner = PL_GEN_ETHERNET;
	for (unsigned int i = 0; i < SOURCES; i++) {
		if (i < 2)
			cfg = first;
		else
			form_random(&cfg, rng);
		if (i == 1)
			cfg.inner = PL_GEN_VXLAN;
		cfg.seed = first.seed;
		cfg.flows = first.flows;
		cfg.topology = first.topology;
		cfg.hw_id = (uint8_t)i;
		if (i == 3)
			cfg.carrier = (enum pl_gen_carrier[]){ PL_GEN_GRE, PL_GEN_GPE,
				PL_GEN_GENEVE }[form_pick(rng, 3)];
		if (i == 3 && form_pick(rng, 2) != 0)
			(void)pl_malform_add_all(&cfg, 0.3, &diag);
		n += pl_gen_new(&ret[n], &cfg, &diag) == 0;
	}
	ioam = (struct pl_gen_cfg){ .seed = first.seed,
		.flows = first.flows,
		.topology = first.topology,
		.report = PL_GEN_REPORT_NONE,
		.inner_ip = 6,
		.ioam = { .options = PL_GEN_IOAM_TRACE } };
	*ret_ioam = NULL;
	if (form_pick(rng, 2) != 0 && pl_gen_new(ret_ioam, &ioam, &diag) < 0)
		*ret_ioam = NULL;
	return n;
}

static void pass_time(struct pl_rng *rng)
{
	uint64_t by = pl_rng_u64(rng) % 20000;

	if (form_pick(rng, 500) == 0)
		by = pl_rng_u64(rng) % (100 * MS);
	now_ns += by;
	ts_ns += by;
}

static bool network_of(struct pl_rng *rng, uint64_t *left, uint64_t *told, uint64_t *ticked_ns)
{
	static uint8_t room[PL_GEN_PACKET_MAX + 128], tagged[PL_GEN_PACKET_MAX + 8];
	static struct pl_batch batch[SOURCES], ioam_batch;
	struct pl_gen *gen[SOURCES], *ioam;
	const unsigned int n = make_sources(gen, &ioam, rng);
	uint32_t at[SOURCES] = { 0 }, have[SOURCES] = { 0 }, ioam_at = 0, ioam_have = 0;
	bool good = true;

	for (unsigned int k = 0; good && k < 800 && n > 0; k++) {
		const unsigned int i = form_pick(rng, 2) != 0 ? 0 : form_pick(rng, n);
		struct pl_packet *pkt;

		if (at[i] == have[i]) {
			int got = pl_gen_next(gen[i], UINT64_MAX, &batch[i]);

			at[i] = 0;
			have[i] = got > 0 ? (uint32_t)got : 0;
			if (got <= 0)
				continue;
		}
		pkt = &batch[i].pkts[at[i]++];
		pass_time(rng);
		/* The first source has the report to wrap it in. */
		if (ioam != NULL && i == 0 && form_pick(rng, 8) == 0) {
			struct pl_packet with;

			if (ioam_at == ioam_have) {
				int got = pl_gen_next(ioam, UINT64_MAX, &ioam_batch);

				ioam_at = 0;
				ioam_have = got > 0 ? (uint32_t)got : 0;
			}
			if (ioam_at < ioam_have) {
				with = ioam_batch.pkts[ioam_at++];
				wrap_ioam(&with, room, pkt);
				good = both(&with, told);
			}
		} else {
			form_tag(pkt, tagged, rng);
			good = both(pkt, told);
		}
		if (good && now_ns - *ticked_ns >= 10 * MS) {
			*ticked_ns = now_ns;
			good = tick(told);
		}
		*left -= *left > 0;
	}
	for (unsigned int i = 0; i < n; i++)
		pl_gen_free(gen[i]);
	pl_gen_free(ioam);
	return good;
}

static uint64_t all_settled, all_ups, all_told;

static void test_streams(uint64_t reports, uint64_t seed)
{
	static const struct pl_decode_options plain;
	uint64_t left = reports, told = 0, ticked_ns = 0;
	struct pl_detect_options detect;
	struct pl_kernel_counters c;
	struct pl_rng rng;
	bool good = true;

	pl_rng_seed(&rng, seed);
	detect = busy(&rng);
	open_kernel(&detect, &plain);
	open_twin(&detect, &plain);
	ups = 0;
	while (good && left > 0)
		good = network_of(&rng, &left, &told, &ticked_ns);
	/* The end of everything. */
	for (unsigned int i = 0; good && i < 40; i++) {
		now_ns += 10 * MS;
		ts_ns += 10 * MS;
		good = tick(&told);
	}
	ok(good,
		"seed %" PRIu64
		": the kernel and user space tell the same events, in the same order",
		seed);
	c = counters();
	printf("# %" PRIu64 " settled, %" PRIu64 " escalated, %" PRIu64 " events\n", c.settled, ups,
		told);
	eq(c.escalated_lost, 0, "no frame is lost");
	eq(escalated(&c), ups, "all that was escalated came");
	eq(c.core.raised, c.core.ended, "raised = ended");
	all_settled += c.settled;
	all_ups += ups;
	all_told += told;
	close_twin();
	close_kernel();
}

/* --- user space takes too long ---------------------------------------------------------------- */

static uint32_t fed, at_hand; /* of a batch, by feed; none of a generator that was just made */

static struct pl_gen *steady(uint32_t seed, enum pl_gen_inner inner, uint32_t flows, double depth)
{
	const struct pl_gen_cfg cfg = { .topology = "chain:3",
		.seed = seed,
		.flows = flows,
		.report = PL_GEN_REPORT_V10,
		.version = PL_GEN_INT_V10,
		.mode = PL_GEN_MD,
		.carrier = PL_GEN_UDP,
		.inner = inner,
		.queue = { PL_DIST_CONST, depth, 0 } };
	struct pl_diag diag = { 0 };
	struct pl_gen *gen = NULL;

	fed = at_hand = 0;
	if (pl_gen_new(&gen, &cfg, &diag) < 0) {
		printf("Bail out! %s\n", diag.text);
		exit(1);
	}
	return gen;
}

/* The next n; returns how many of them were not taken. */
static uint64_t feed(struct pl_gen *gen, uint64_t n)
{
	static struct pl_batch batch;
	uint64_t passed = 0;

	for (; n > 0; n--) {
		if (fed == at_hand) {
			at_hand = (uint32_t)pl_gen_next(gen, UINT64_MAX, &batch);
			fed = 0;
		}
		passed += run(&batch.pkts[fed++], 1) != XDP_DROP;
	}
	return passed;
}

static struct pl_exporter sum_of_exporters(void)
{
	struct pl_exporter sum = { 0 }, x;
	uint64_t pos = 0;

	while (pl_kernel_detect_exporter(kd, &pos, &x)) {
		sum.reports += x.reports;
		sum.lost += x.lost;
		sum.skipped += x.skipped;
		sum.recovered += x.recovered;
		sum.reordered += x.reordered;
		sum.duplicates += x.duplicates;
		sum.stragglers += x.stragglers;
		sum.restarts += x.restarts;
	}
	return sum;
}

static void numbers_are_whole(uint64_t reports)
{
	const struct pl_exporter sum = sum_of_exporters();

	eq(sum.reports, reports, "every number is in its exporter's account, once");
	eq(sum.lost, 0, "none is missing");
	eq(sum.reordered + sum.duplicates + sum.stragglers + sum.restarts, 0,
		"nor late, double or from elsewhere");
}

static void test_behind(void)
{
	static const struct pl_decode_options plain;
	struct pl_gen *gen = steady(1, PL_GEN_ETHERNET, 10, 5);
	struct pl_detect_options o;
	struct pl_kernel_counters c;
	struct pl_core_turn *turn;

	pl_detect_defaults(&o);
	o.flow_start = true;
	open_kernel(&o, &plain);
	turn = pl_kernel_turn(pl_kernel_detect_kernel(kd), 0);
	eq(feed(gen, 200), 0, "reports are taken");
	(void)take_frames();
	c = counters();
	ok(c.settled > 190 && c.escalated[PL_ESCALATION_TURN] == 0, "and settled: nobody waits");
	/* The thread of user space stands still within its turn. */
	pl_core_turn_take(turn);
	eq(feed(gen, 100), 0, "reports are taken while user space has the turn");
	eq(counters().escalated[PL_ESCALATION_TURN], 100, "and escalated, all of them");
	eq(counters().settled, c.settled, "none is settled");
	pl_core_turn_give(turn);
	eq(pl_core_turn_holder(turn), PL_TURN_BEHIND, "the turn is user space's next");
	eq(feed(gen, 100), 0, "those behind them come up too");
	eq(counters().escalated[PL_ESCALATION_TURN], 200, "in their order");
	eq(take_frames(), 200, "user space steps them");
	eq(pl_core_turn_holder(turn), PL_TURN_FREE, "and gives back the turn");
	eq(feed(gen, 100), 0, "the program goes on");
	eq(counters().settled, c.settled + 100, "and settles");
	numbers_are_whole(500);
	(void)pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
	c = counters();
	eq(c.core.events[PL_EVENT_FLOW_START], 10, "each flow started once");
	/* More than can be stepped: after 20 ms the program goes on all the same. */
	pl_core_turn_take(turn);
	eq(feed(gen, 1), 0);
	pl_core_turn_give(turn);
	pl_kernel_detect_caught_up(kd, false, now_ns);
	eq(pl_core_turn_holder(turn), PL_TURN_BEHIND, "what waits is waited for");
	pl_kernel_detect_caught_up(kd, false, now_ns + 21 * MS);
	eq(pl_core_turn_holder(turn), PL_TURN_FREE, "but not for ever");
	close_kernel();
	pl_gen_free(gen);
}

/* Older reports wait, but half of the ring is taken: order is given up, no report. */
static void test_crowded(void)
{
	static const struct pl_decode_options plain;
	struct pl_gen *gen = steady(1, PL_GEN_ETHERNET, 10, 5);
	struct pl_detect_options o;
	struct pl_core_turn *turn;
	uint64_t up, settled;

	pl_detect_defaults(&o);
	ring_bytes = 1 << 16;
	open_kernel(&o, &plain);
	turn = pl_kernel_turn(pl_kernel_detect_kernel(kd), 0);
	(void)feed(gen, 20);
	(void)take_frames();
	settled = counters().settled;
	pl_core_turn_take(turn);
	(void)feed(gen, 20);
	pl_core_turn_give(turn);
	(void)feed(gen, 1000);
	up = counters().escalated[PL_ESCALATION_TURN];
	ok(up > 50 && up < 200, "%" PRIu64 " reports wait in a ring of 64 KiB", up);
	eq(counters().settled - settled, 1020 - up, "the others are settled");
	eq(counters().escalated_lost, 0, "and none is lost");
	eq(pl_core_turn_holder(turn), PL_TURN_FREE, "nobody waits");
	eq(take_frames(), up, "those that waited are stepped");
	numbers_are_whole(1040);
	close_kernel();
	pl_gen_free(gen);
	ring_bytes = 1 << 22;
}

/* --- both at once ----------------------------------------------------------------------------- */

/* AHEAD: how many reports a feeder may be ahead of the reader; the ring has room for those of two. */
enum { DEEP_EVERY = 200, AHEAD = 400, ENOUGH = 30000 };

static _Atomic bool stop;
static _Atomic uint64_t sent[2], taken[2];

/* Reports of one exporter's own flows, plain ones and ones in VXLAN, deep and flat ones in turn. */
struct feeder {
	unsigned int number;
	struct pl_gen *gen[4];
	struct pl_batch batch[4];
};

static void *feeder_loop(void *arg)
{
	struct feeder *f = arg;
	const unsigned int me = f->number;
	uint32_t at[4] = { 0 }, have[4] = { 0 };
	struct pl_rng rng;

	(void)pl_cpu_pin(me % (unsigned int)pl_cpu_count());
	pl_rng_seed(&rng, me + 1);
	for (uint64_t n = 0; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
		const unsigned int deep = n / DEEP_EVERY % 2;
		const unsigned int i = deep * 2 + (form_pick(&rng, 16) == 0);

		while (n - atomic_load(&taken[me]) >= AHEAD && !atomic_load(&stop))
			usleep(50);
		if (at[i] == have[i]) {
			have[i] = (uint32_t)pl_gen_next(f->gen[i], UINT64_MAX, &f->batch[i]);
			at[i] = 0;
		}
		if (run(&f->batch[i].pkts[at[i]++], 1) != XDP_DROP)
			abort();
		atomic_fetch_add_explicit(&sent[me], 1, memory_order_relaxed);
	}
	return NULL;
}

/* Levels by their place: a begin, an end, a begin, … */
struct place_seen {
	uint64_t node;
	uint32_t port, queue;
	int raised;
};

static struct place_seen places[256];
static uint64_t begins, ends, twice, starts;

static void look_at(const struct pl_event *e)
{
	struct place_seen *p = places;

	starts += e->event == PL_EVENT_FLOW_START;
	if (e->event != PL_EVENT_QUEUE_DEPTH)
		return;
	while (p->node != 0 && (p->node != e->node || p->port != e->port || p->queue != e->queue))
		p++;
	*p = (struct place_seen){ e->node, e->port, e->queue, p->raised };
	begins += e->phase == PL_PHASE_BEGIN;
	ends += e->phase == PL_PHASE_END;
	twice += (e->phase == PL_PHASE_BEGIN) == (p->raised != 0);
	p->raised = e->phase == PL_PHASE_BEGIN;
}

static void look_flush(struct pl_event_batch *b, void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < b->n; i++)
		look_at(&b->events[i]);
	b->n = 0;
}

static uint64_t packets_of_flows(void)
{
	const struct pl_kernel_table *t =
		&pl_kernel_tables(pl_kernel_detect_kernel(kd))[PL_CORE_T_flow];
	const struct pl_core_flow_set *s = t->sets;
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++)
			n += s[i].way[w] >> 32 != 0 ? s[i].e[w].packets : 0;
	}
	return n;
}

/* Values of depths that were looked at, with learning on. */
static uint64_t depths_of_places(void)
{
	const struct pl_kernel_table *t =
		&pl_kernel_tables(pl_kernel_detect_kernel(kd))[PL_CORE_T_place];
	const struct pl_core_place_set *s = t->sets;
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++)
			n += s[i].way[w] >> 32 != 0 ? s[i].e[w].q[1].n : 0;
	}
	return n;
}

/* feeders: processors on which the program runs at the same time, as in generic mode. */
static void test_at_once(unsigned int feeders)
{
	static const struct pl_decode_options plain;
	static struct feeder f[2];
	struct pl_detect_options o;
	struct pl_kernel_counters c;
	const uint64_t begun_ns = pl_clock_mono_ns();
	uint64_t ticked_ns = 0, all = 0;
	pthread_t thread[2];

	pl_detect_defaults(&o);
	o.flow_start = true;
	o.queue_depth = (struct pl_detect_level){ .on = true, .threshold = 100, .end_hold_ns = 1 };
	o.limit_interval_ns = 1;
	o.flow_idle_ns = o.forget_ns = o.idle_ns = 600000 * MS;
	open_kernel(&o, &plain);
	memset(places, 0, sizeof(places));
	begins = ends = twice = starts = 0;
	events.flush = look_flush;
	atomic_store(&stop, false);
	for (unsigned int i = 0; i < feeders; i++) {
		f[i].number = i;
		atomic_store(&sent[i], 0);
		atomic_store(&taken[i], 0);
		for (unsigned int k = 0; k < 4; k++)
			f[i].gen[k] = steady(1 + i * 4 + k, k % 2 ? PL_GEN_VXLAN : PL_GEN_ETHERNET,
				50, k < 2 ? 5 : 500);
		if (pthread_create(&thread[i], NULL, feeder_loop, &f[i]) != 0)
			abort();
	}
	while ((begins < 500 || all < ENOUGH * feeders) &&
		pl_clock_mono_ns() - begun_ns < PL_TEST_PATIENCE_NS) {
		uint64_t before[2];

		all = 0;
		for (unsigned int i = 0; i < feeders; i++)
			all += before[i] = atomic_load(&sent[i]);
		now_ns = 1000 * MS + (pl_clock_mono_ns() - begun_ns);
		ts_ns = UINT64_C(1700000000000000000) + now_ns;
		(void)pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
		if (now_ns - ticked_ns >= MS) {
			ticked_ns = now_ns;
			pl_kernel_detect_tick(kd, now_ns, ts_ns, &events);
		}
		(void)take_frames();
		look_flush(&events, NULL);
		for (unsigned int i = 0; i < feeders; i++)
			atomic_store(&taken[i], before[i]);
	}
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < feeders; i++)
		pthread_join(thread[i], NULL);
	(void)take_frames();
	(void)pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
	look_flush(&events, NULL);
	events.flush = NULL;
	all = 0;
	for (unsigned int i = 0; i < feeders; i++)
		all += atomic_load(&sent[i]);
	c = counters();
	printf("# %u at once: %" PRIu64 " reports, %" PRIu64 " settled, %" PRIu64
	       " of the others for "
	       "the turn, %" PRIu64 " begins\n",
		feeders, all, c.settled, c.escalated[PL_ESCALATION_TURN], begins);
	eq(c.escalated_lost + c.core.events_dropped, 0, "%u at once: nothing is lost", feeders);
	eq(c.settled + escalated(&c), all, "packets = settled + escalated");
	eq(packets_of_flows(), all, "every report is counted, once");
	eq(twice, 0, "each begin has one end, each end one begin");
	ok(begins >= 500 && begins - ends < 256, "levels began and ended");
	eq(starts, c.core.made[PL_CORE_T_flow], "flows start once each");
	for (unsigned int i = 0; i < feeders; i++) {
		for (unsigned int k = 0; k < 4; k++)
			pl_gen_free(f[i].gen[k]);
	}
	close_kernel();
}

/* --- the same entries, as often as they can be stepped ---------------------------------------- */

enum { RUNS = 20000, TWINS = 32 };

static struct pl_packet contended[2]; /* flat, deep */

static void *runner_loop(void *arg)
{
	(void)arg;
	(void)pl_cpu_pin(0);
	for (uint64_t n = 0; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
		if (run(&contended[n % 2], RUNS) != XDP_DROP)
			abort();
		atomic_fetch_add_explicit(&sent[0], RUNS, memory_order_relaxed);
	}
	return NULL;
}

/* Records of so many of the packet, in a batch of their own. */
static void records_of(struct pl_record_batch *ret, const struct pl_packet *pkt)
{
	static const struct pl_decode_options plain;
	struct pl_batch one = { .n = 1 };
	struct pl_decode *dec;

	if (pl_decode_new(&dec, &plain) < 0 || pl_record_batch_init(ret, 512, 8192) < 0)
		abort();
	one.pkts[0] = *pkt;
	for (unsigned int i = 0; i < TWINS; i++)
		pl_decode_batch(dec, &one, ret);
	eq(ret->n_paths, TWINS, "%u records of one packet", TWINS);
	pl_decode_free(dec);
}

/* One flow over three queues: the program steps it on one processor, user space on the other,
 * neither with a pause. */
static void test_contended(void)
{
	static const struct pl_decode_options plain;
	static uint8_t room[2][512];
	struct pl_record_batch twins[2];
	struct pl_detect_options o;
	struct pl_kernel_counters c;
	uint64_t stepped = 0, begun_ns;
	pthread_t thread;

	for (unsigned int deep = 0; deep < 2; deep++) {
		static struct pl_batch batch;
		struct pl_gen *gen = steady(1, PL_GEN_ETHERNET, 1, deep ? 500 : 5);

		if (pl_gen_next(gen, UINT64_MAX, &batch) < 1 || batch.pkts[0].len > sizeof(room[0]))
			abort();
		contended[deep] = batch.pkts[0];
		contended[deep].data = memcpy(room[deep], batch.pkts[0].data, batch.pkts[0].len);
		records_of(&twins[deep], &contended[deep]);
		pl_gen_free(gen);
	}
	pl_detect_defaults(&o);
	o.queue_depth = (struct pl_detect_level){ .on = true,
		.threshold = 100,
		.end_hold_ns = 1,
		.anomaly = true,
		.anomaly_min = 1u << 20 };
	o.limit_interval_ns = 1;
	o.flow_idle_ns = o.forget_ns = o.idle_ns = 600000 * MS;
	open_kernel(&o, &plain);
	memset(places, 0, sizeof(places));
	begins = ends = twice = 0;
	events.flush = look_flush;
	atomic_store(&stop, false);
	atomic_store(&sent[0], 0);
	run(&contended[0], 1);
	(void)take_frames();
	run(&contended[0], 1);
	(void)pl_cpu_pin(1 % (unsigned int)pl_cpu_count());
	if (pthread_create(&thread, NULL, runner_loop, NULL) != 0)
		abort();
	begun_ns = pl_clock_mono_ns();
	for (unsigned int n = 0;
		(n < 10000 || begins < 10) && pl_clock_mono_ns() - begun_ns < PL_TEST_PATIENCE_NS;
		n++) {
		now_ns = 1000 * MS + (pl_clock_mono_ns() - begun_ns);
		ts_ns = UINT64_C(1700000000000000000) + now_ns;
		(void)pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
		for (unsigned int i = 0; i < 4; i++, stepped += TWINS)
			pl_kernel_detect_batch(kd, 0, &twins[n % 2], now_ns, &events);
		(void)take_frames();
		look_flush(&events, NULL);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	(void)take_frames();
	(void)pl_kernel_detect_poll(kd, now_ns, ts_ns, &events);
	look_flush(&events, NULL);
	events.flush = NULL;
	c = counters();
	printf("# %" PRIu64 " by the program, %" PRIu64 " by user space; %" PRIu64
	       " escalated for the turn, %" PRIu64 " of them lost; %" PRIu64 " begins\n",
		c.settled, stepped, c.escalated[PL_ESCALATION_TURN], c.escalated_lost, begins);
	stepped += atomic_load(&sent[0]) + 2 - c.escalated_lost - c.escalated_over_share;
	eq(packets_of_flows(), stepped, "every report is counted, once");
	eq(depths_of_places(), 3 * stepped, "and every value of its hops");
	eq(twice, 0, "each begin has one end, each end one begin");
	ok(begins >= 10 && begins - ends <= 3, "levels began and ended");
	for (unsigned int deep = 0; deep < 2; deep++)
		pl_record_batch_done(&twins[deep]);
	close_kernel();
}

int main(int argc, char **argv)
{
	uint64_t reports = argc > 1 ? strtoull(argv[1], NULL, 0) : 60000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261123;

	if (pl_event_batch_init(&events, EVENTS_MAX) < 0 ||
		pl_event_batch_init(&twin_events, EVENTS_MAX) < 0)
		abort();
	if (argc > 3) { /* these alone */
		test_contended();
		return pl_test_done();
	}
	test_behind();
	test_crowded();
	for (unsigned int i = 0; i < 4; i++)
		test_streams(reports / 4, seed + i);
	ok(all_settled > reports / 8 && all_ups > reports / 16 && all_told > reports / 100,
		"enough was settled, escalated and told");
	test_at_once(1);
	test_at_once(2);
	test_contended();
	return pl_test_done();
}
