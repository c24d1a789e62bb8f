/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The detector in the running kernel, by its test-run call: packet in; verdict, events and tables
 * out. The same packets go through the same parser and the same steps over plain memory; after them
 * every event, every byte of every table and every count must be equal. Time is moved by the test,
 * backwards too.
 *
 * kernel_test [REPORTS [SEED]]; exit code 77 when the kernel does not let us load programs.
 */
#include "steps_env.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/bpf.h>
#include <unistd.h>

#include "base/num.h"
#include "base/test.h"
#include "detect/direct.h"
#include "detect/kernel.h"
#include "detect/layouts.h"
#include "forms.h"
#include "wire/cursor.h"

enum { FRAME_MAX = 3400, QUIET = 50 };

static struct pl_kernel *kernel;
static struct pl_core_env env;
static struct pl_direct direct;
static struct pl_core_scratch scratch;
static struct pl_event_batch events;
static struct pl_batch frames;
static struct pl_kernel_frame_of settled_frames[PL_BATCH_MAX];
static uint64_t now_ns, ts_ns;
static struct pl_filter_rules filter;

static struct {
	uint64_t packets, passed, unwanted, settled, fast, changed, escalated[PL_ESCALATION_MAX],
		notes[64], events, frames;
} account;

/* --- rules ------------------------------------------------------------------------------------ */

static struct pl_core_quantity_rule quantity(uint32_t threshold)
{
	return (struct pl_core_quantity_rule){
		.level = { .threshold = threshold,
			.low = threshold - threshold / 8,
			.end_hold_ns = 3000000 },
		.odd = { .threshold = 3, .low = 2, .end_hold_ns = 1000000 },
		.relative = 64,
		.odd_times = 64,
		.step = threshold / 2,
		.step_first = 1,
		.on = 1,
		.learn = 1,
	};
}

/* Everything on, and low enough to have much to tell. */
static struct pl_core_rules busy_rules(uint32_t mask)
{
	struct pl_core_rules r = {
		.flow_idle_ns = 40000000,
		.idle_ns = 30000000,
		.forget_ns = 60000000,
		.loss_hold_ns = 1000000,
		.keepalive_ns = 5000000,
		.burst_max_ns = 4000000,
		.learn_window_ns = 2000000,
		.burst_threshold = 40,
		.learn_windows = 3,
		.learn_shift = 2,
		.burst_flows = 4,
		.on = UINT32_MAX,
		.flags = PL_CORE_KEEP_AGGREGATES | PL_CORE_KEEP_PLACES,
		.sequence_gap_max = 65536,
		.watch = (1u << PL_CORE_Q_MAX) - 1,
	};

	for (unsigned int i = 0; i < PL_CORE_SECRETS; i++)
		r.secret[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		r.mask[i] = mask;
	r.q[PL_CORE_Q_HOP_LATENCY] = quantity(4000);
	r.q[PL_CORE_Q_QUEUE_DEPTH] = quantity(60);
	r.q[PL_CORE_Q_TX_UTIL] = quantity(90);
	r.q[PL_CORE_Q_BUFFER_DEPTH] = quantity(60);
	r.q[PL_CORE_Q_LINK_LATENCY] = quantity(1500);
	r.q[PL_CORE_Q_FLOW_LATENCY] = quantity(9000);
	/* Nodes of several units; the rest in none. Small ones cross the thresholds often. */
	r.units.of[0] = (struct pl_core_unit){ 2, 2, 3, 208 };
	r.units.of[1] = (struct pl_core_unit){ 1, 3, 7, 1 };
	r.units.of[2] = (struct pl_core_unit){ 5, 6, 208, 3 };
	r.units.of[3] = (struct pl_core_unit){ 7, 1000, 1, 80 };
	r.units.n = 4;
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++)
		r.limit[i] =
			(struct pl_core_limit_rule){ .interval_ns = 500000, .burst_ns = 2000000 };
	return r;
}

/* --- both sides ------------------------------------------------------------------------------- */

static void event_flush(struct pl_event_batch *b, void *arg)
{
	(void)arg;
	(void)b;
}

/* Flows' own numbers are left to user space. */
static bool follows(const struct pl_core_rules *rules)
{
	return (rules->on & (1u << PL_EVENT_PACKET_LOSS | 1u << PL_EVENT_REORDERING)) != 0;
}

static void setup_for(const struct pl_core_rules *rules, const struct pl_decode_options *decode)
{
	const struct pl_kernel_options options = {
		.rules = rules,
		.decode = decode,
		.events_bytes = 1 << 20,
		.frames_bytes = 1 << 22,
	};
	struct pl_diag diag = { 0 };
	int r = pl_kernel_open(&kernel, &options, &diag);

	if (r < 0) {
		printf("%s\n", diag.text);
		exit(r == -EPERM || r == -ENOTSUP ? 77 : 1);
	}
	memset(&filter, 0, sizeof(filter));
	filter.any_vlan = 1;
	pl_filter_rules_add_port(&filter, 32766);
	pl_filter_rules_add_port(&filter, 54321);
	pl_filter_set(pl_kernel_program(kernel)->filter, &filter);
	env_init(&env, rules);
	if (pl_direct_init(&direct, decode) < 0 || pl_event_batch_init(&events, ENV_EVENTS) < 0)
		abort();
	pl_layouts_follow(&direct.layouts, follows(rules));
	events.flush = event_flush;
	memset(&account, 0, sizeof(account));
	now_ns = UINT64_C(1000000000);
	ts_ns = UINT64_C(1700000000000000000);
}

static void setup(const struct pl_core_rules *rules)
{
	static const struct pl_decode_options decode;

	setup_for(rules, &decode);
}

static void teardown(void)
{
	pl_kernel_close(kernel);
	env_done(&env);
	pl_direct_done(&direct);
	pl_event_batch_done(&events);
}

static int run(const struct pl_packet *pkt)
{
	struct bpf_test_run_opts opts = {
		.sz = sizeof(opts), .data_in = pkt->data, .data_size_in = pkt->len, .repeat = 1
	};
	int r = bpf_prog_test_run_opts(pl_kernel_program(kernel)->prog_fd, &opts);

	return r < 0 ? r : (int)opts.retval;
}

/* The events of both since the last time. */
static bool same_events(void)
{
	bool good = true;

	events.n = 0;
	pl_kernel_events(kernel, &events);
	account.events += events.n;
	if (events.n != env.n) {
		printf("# %u events of the kernel, %u of user space\n", events.n, env.n);
		good = false;
	}
	for (uint32_t i = 0; good && i < env.n; i++) {
		good = memcmp(&events.events[i], &env.events[i], sizeof(struct pl_event)) == 0;
		if (!good)
			printf("# event %u: kinds %u and %u\n", i, events.events[i].event,
				env.events[i].event);
	}
	env.n = 0;
	return good;
}

static void count_notes(uint64_t notes)
{
	for (; notes != 0; notes &= notes - 1)
		account.notes[__builtin_ctzll(notes)]++;
}

/* Whether the filter wants a frame, by its tags and destination; user space knows nothing of it. */
static bool wanted(const struct pl_packet *pkt)
{
	const uint8_t *p = pkt->data + 12, *end = pkt->data + pkt->len;
	bool tagged = false;
	struct pl_addr to;

	for (int i = 0; i < 2 && p + 6 <= end && (pl_be16(p) == 0x8100 || pl_be16(p) == 0x88a8);
		i++, p += 4) {
		unsigned int id = pl_be16(p + 2) & 0xfff;

		tagged = tagged || (filter.vlans[id >> 3] >> (id & 7) & 1) != 0;
	}
	if (!filter.any_vlan && !tagged)
		return false;
	if (filter.naddrs == 0)
		return true;
	if (p + 22 <= end && pl_be16(p) == 0x0800)
		to = pl_addr_v4(p + 18);
	else if (p + 42 <= end && pl_be16(p) == 0x86dd)
		memcpy(&to, p + 26, sizeof(to));
	else
		return false;
	for (uint32_t i = 0; i < filter.naddrs; i++) {
		if (memcmp(&filter.addrs[i], &to, sizeof(to)) == 0)
			return true;
	}
	return false;
}

/* Each layout is learned at once, from another exporter each time: shares are held elsewhere. */
static void take_frames(void)
{
	static uint32_t exporters;
	const unsigned int n = pl_kernel_frames(kernel, &frames, settled_frames);

	for (unsigned int i = 0; i < n; i++) {
		exporters += settled_frames[i].layout;
		if (settled_frames[i].layout)
			(void)pl_kernel_learn(kernel, &frames.pkts[i],
				&(struct pl_addr){
					.b = { exporters >> 16, exporters >> 8, exporters, 1 } });
	}
	account.frames += n;
}

/* One frame through both; false when they part. */
static bool both(const struct pl_packet *given)
{
	struct pl_packet pkt = *given;
	uint32_t number = 0, escalate;
	int action;

	if (pkt.len < 14 || pkt.len > FRAME_MAX || pkt.link != PL_LINK_ETHERNET)
		return true;
	pkt.wire_len = pkt.len;
	pkt.ts_ns = ts_ns;
	pl_kernel_time(kernel, now_ns, ts_ns);
	action = run(&pkt);
	if (action != XDP_DROP && action != XDP_PASS) {
		printf("# the program returned %d\n", action);
		return false;
	}
	if (!wanted(&pkt)) {
		account.packets++;
		account.passed++;
		account.unwanted++;
		if (action != XDP_PASS)
			printf("# taken from the host\n");
		return action == XDP_PASS;
	}
	escalate = pl_direct_try(&direct, &direct.layouts, &scratch, &pkt, now_ns);
	account.packets++;
	if (action == XDP_PASS) {
		account.passed++;
		if (escalate != PL_ESCALATION_CARRIER)
			printf("# passed to the host, but %s for us\n",
				escalate == PL_ESCALATION_NONE ? "settled"
							       : pl_escalation_name(escalate));
		return escalate == PL_ESCALATION_CARRIER;
	}
	if (escalate == PL_ESCALATION_NONE || scratch.numbered)
		number = pl_core_exporter_step(&env, &scratch.report);
	if (escalate == PL_ESCALATION_NONE) {
		account.settled++;
		count_notes(scratch.notes);
		if (number & PL_CORE_UNPROVEN)
			pl_core_report_unproven(&env, &scratch.report);
		else
			env_report(&env, &scratch);
		return true;
	}
	account.escalated[escalate]++;
	/* As pl_kernel_learn: a header and a stack may both be new. */
	for (int i = 0; i < 2 && escalate == PL_ESCALATION_LAYOUT; i++) {
		if (pl_layouts_learn(&direct.layouts, scratch.missing_key) < 0)
			break;
		escalate = pl_direct_try(&direct, &direct.layouts, &scratch, &pkt, now_ns);
	}
	take_frames();
	return true;
}

static bool same_counters(void)
{
	struct pl_kernel_counters c;
	bool good = pl_kernel_counters(kernel, &c) == 0;
	uint64_t slow = 0;

	take_frames();
	good = eq(c.packets, account.packets - account.passed, "report traffic is counted") && good;
	good = eq(c.settled, account.settled, "settled reports are counted") && good;
	for (unsigned int i = 1; i < PL_ESCALATION_MAX; i++)
		good = eq(c.escalated[i], account.escalated[i], "escalated, %s",
			       pl_escalation_name(i)) &&
		       good;
	for (unsigned int i = 0; i < PL_SLOW_MAX; i++)
		slow += c.slow[i];
	good = eq(c.fast + slow, c.packets, "fast path and slow path, by cause, are all") && good;
	good = eq(c.slow[PL_SLOW_NONE], 0, "each has a cause") && good;
	account.fast = c.fast;
	account.changed = c.changed;
	good = eq(c.escalated_lost, 0, "and none of these is lost") && good;
	good = eq(account.frames, account.packets - account.passed - account.settled,
		       "packets = passed + settled + frames escalated") &&
	       good;
	for (unsigned int i = 0; i < 64; i++) {
		if (c.notes[i] != account.notes[i])
			good = eq(c.notes[i], account.notes[i], "note %u", i) && good;
	}
	return memeq(&c.core, &env.counters, sizeof(c.core),
		       "all counters of the steps are equal") &&
	       good;
}

/* The prints of paths are the fast path's own; here there is none. */
static void forget_prints(void)
{
	struct pl_core_flow_set *sets = pl_kernel_tables(kernel)[PL_CORE_T_flow].sets;

	for (uint32_t i = 0; i < pl_kernel_tables(kernel)[PL_CORE_T_flow].n; i++) {
		for (unsigned int w = 0; w < PL_CORE_WAYS; w++)
			sets[i].e[w].print = 0;
	}
}

static bool same_tables(void)
{
	const struct pl_kernel_table *t = pl_kernel_tables(kernel);
	bool good = true;

	forget_prints();

	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		good = ok(memcmp(t[i].sets, env.sets[i], (size_t)t[i].n * env_set_bytes(i)) == 0,
			       "table %u is equal byte by byte", i) &&
		       good;
	return good;
}

/* --- random reports --------------------------------------------------------------------------- */

static void move_time(struct pl_rng *rng)
{
	uint64_t by = pl_rng_u64(rng) % 20000;

	if (form_pick(rng, 1000) == 0)
		by = pl_rng_u64(rng) % 100000000;
	now_ns += by;
	ts_ns += by;
	/* A clock stepped by hours, either way; time that goes back. */
	if (form_pick(rng, 20000) == 0)
		ts_ns += (form_pick(rng, 2) != 0 ? 1 : -1) * UINT64_C(7200000000000);
	if (form_pick(rng, 20000) == 0)
		now_ns -= now_ns > 2000000000 ? 50000000 : 0;
}

static bool damaged(const struct pl_packet *pkt, struct pl_rng *rng)
{
	static uint8_t copy[PL_GEN_PACKET_MAX + 8];
	struct pl_packet p = *pkt;

	memcpy(copy, pkt->data, pkt->len);
	p.data = copy;
	if (form_pick(rng, 3) == 0)
		p.len = form_pick(rng, pkt->len) + 1;
	for (uint32_t n = form_pick(rng, 3); n > 0; n--)
		copy[form_pick(rng, p.len)] = (uint8_t)pl_rng_u64(rng);
	return both(&p);
}

static bool run_form(const struct pl_gen_cfg *cfg, struct pl_rng *rng, uint64_t *left)
{
	static uint8_t room[PL_GEN_PACKET_MAX + 8];
	static struct pl_batch batch;
	struct pl_diag diag = { 0 };
	struct pl_gen *gen;
	bool good = true;

	if (pl_gen_new(&gen, cfg, &diag) < 0)
		return true;
	for (int i = 0; good && i < 8 && *left > 0; i++) {
		int n = pl_gen_next(gen, UINT64_MAX, &batch);

		for (int k = 0; good && k < n; k++) {
			form_tag(&batch.pkts[k], room, rng);
			move_time(rng);
			good = both(&batch.pkts[k]) &&
			       (form_pick(rng, 4) != 0 || damaged(&batch.pkts[k], rng)) &&
			       (k % 32 != 0 || same_events());
			*left -= *left > 0;
		}
		if (n <= 0)
			break;
	}
	pl_gen_free(gen);
	return good && same_events();
}

/* general: without the fast path, and without proof. */
static void test_random(uint64_t reports, uint64_t seed, uint32_t mask, bool general)
{
	struct pl_core_rules rules = busy_rules(mask);
	uint64_t left = reports;
	struct pl_gen_cfg cfg;
	struct pl_rng rng;
	bool good = true;

	rules.flags |= general ? 0 : PL_CORE_PROVE;
	setup(&rules);
	pl_kernel_general(kernel, general);
	pl_rng_seed(&rng, seed);
	printf("# seed %" PRIu64 ", tables of %u sets\n", seed, mask + 1);
	while (good && left > 0) {
		struct pl_diag diag = { 0 };

		form_random(&cfg, &rng);
		if (form_pick(&rng, 4) == 0)
			(void)pl_malform_add_all(&cfg, 0.5, &diag);
		good = run_form(&cfg, &rng, &left);
		if (form_pick(&rng, QUIET) == 0) {
			/* Other rules, at run time. */
			rules.burst_threshold = 20 + form_pick(&rng, 60);
			rules.q[PL_CORE_Q_QUEUE_DEPTH] = quantity(20 + form_pick(&rng, 100));
			rules.on =
				form_pick(&rng, 3) == 0 ? (uint32_t)pl_rng_u64(&rng) : UINT32_MAX;
			rules.watch = form_pick(&rng, 3) == 0 ? form_pick(&rng, 64) : 63;
			pl_kernel_rules(kernel, &rules);
			pl_layouts_follow(&direct.layouts, follows(&rules));
			env.rules = rules;
		}
	}
	ok(good, "the kernel's events are those of user space");
	same_counters();
	same_tables();
	printf("# %" PRIu64 " packets, %" PRIu64 " settled, %" PRIu64 " the fast path, %" PRIu64
	       " events\n",
		account.packets, account.settled, account.fast, account.events);
	if (general)
		eq(account.fast, 0, "none of them the fast path");
	else
		ok(env.counters.unproven > 0,
			"%" PRIu64 " reports came before the proof of their exporter",
			env.counters.unproven);
	ok(account.settled > account.packets / 8 && account.events > account.settled / 50,
		"enough was settled and told");
	teardown();
}

/* What is set for the exporters holds in the kernel as in user space, and forces nothing up. */
static void test_profiles(uint64_t reports, uint64_t seed)
{
	struct pl_core_rules rules = busy_rules(255);
	const unsigned int rounds = 10;
	uint64_t packets = 0, settled = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, seed);
	for (unsigned int i = 0; i < rounds; i++) {
		struct pl_profile profile = form_profile(&rng);
		const struct pl_decode_options decode = { .profiles = &profile, .n_profiles = 1 };
		uint64_t left = reports / rounds;
		struct pl_gen_cfg cfg;
		bool good = true;

		if (profile.hints.dialect == PL_DIALECT_V04)
			profile.hints.dialect_pinned = false;
		setup_for(&rules, &decode);
		while (good && left > 0) {
			form_random(&cfg, &rng);
			good = run_form(&cfg, &rng, &left);
		}
		ok(good,
			"seed %" PRIu64 ", profile %u: the kernel's events are those of user space",
			seed, i);
		same_counters();
		same_tables();
		packets += account.packets;
		settled += account.settled;
		teardown();
	}
	ok(settled > packets / 5, "%" PRIu64 " of %" PRIu64 " settled", settled, packets);
}

/* INTCollector's own streams are settled here, but for what tells the kernel their layout. */
static void test_intcollector(void)
{
	const struct pl_profile dialect = { .hints.dialect = PL_DIALECT_INTCOLLECTOR };
	const struct pl_decode_options decode = { .profiles = &dialect, .n_profiles = 1 };
	struct pl_core_rules rules = busy_rules(255);
	static struct pl_batch batch;

	for (int r = PL_GEN_REPLAY_INTCOLLECTOR_1; r < PL_GEN_REPLAY_MAX; r++) {
		struct pl_gen_cfg cfg = {
			.replay = (enum pl_gen_replay)r, .count = 500, .report_port = 54321
		};
		struct pl_diag diag = { 0 };
		struct pl_gen *gen;
		bool good = true;
		int n;

		if (!ok(pl_gen_new(&gen, &cfg, &diag) == 0, "%s", diag.text))
			continue;
		setup_for(&rules, &decode);
		while ((n = pl_gen_next(gen, UINT64_MAX, &batch)) > 0) {
			for (int k = 0; k < n; k++) {
				now_ns += 1000;
				ts_ns += 1000;
				good = good && both(&batch.pkts[k]) && same_events();
			}
		}
		ok(good, "INTCollector test %d: the kernel's events are those of user space", r);
		same_counters();
		same_tables();
		ok(account.packets == 500 && account.settled >= 499, "%" PRIu64 " of it settled",
			account.settled);
		teardown();
		pl_gen_free(gen);
	}
}

/* --- usual reports ---------------------------------------------------------------------------- */

/* Thresholds that are rarely crossed. */
static struct pl_core_rules calm_rules(uint32_t flags)
{
	struct pl_core_rules r = busy_rules(255);

	for (unsigned int i = 0; i < PL_CORE_Q_MAX; i++) {
		r.q[i].level.threshold *= 100;
		r.q[i].level.low *= 100;
		r.q[i].step *= 100;
		r.q[i].relative = 0;
		r.q[i].odd_times = 0;
		r.q[i].learn = flags != 0 && i == PL_CORE_Q_QUEUE_DEPTH;
	}
	r.burst_threshold = PL_CORE_NO_THRESHOLD;
	r.learn_window_ns = 50000000;
	r.flags = flags;
	r.watch &= ~(1u << PL_CORE_Q_FLOW_LATENCY); /* the fast path knows nothing of it */
	return r;
}

/* Exporters whose addresses end alike, in turn, with a profile each. */
static void test_profile_each(void)
{
	const struct pl_profile profiles[] = {
		{ .hints = { .dialect = PL_DIALECT_INTCOLLECTOR, .dialect_pinned = true } },
		{ .prefix = pl_addr_v4(&(uint32_t){ 20 }),
			.prefix_bits = 104,
			.hints = { .dialect = PL_DIALECT_SPEC, .dialect_pinned = true } },
		{ .prefix = pl_addr_v4(&(uint32_t){ 30 }), .prefix_bits = 104, .int_port = 1 },
	};
	const struct pl_decode_options decode = { .profiles = profiles, .n_profiles = 3 };
	struct pl_gen_cfg cfg = { .flows = 1,
		.seed = 1,
		.report = PL_GEN_REPORT_V10,
		.version = PL_GEN_INT_V10,
		.carrier = PL_GEN_UDP,
		.sink = PL_GEN_SINK_STACK,
		.bitmap = 0xff00,
		.dialect = PL_DIALECT_INTCOLLECTOR };
	struct pl_core_rules rules = calm_rules(0);
	static uint8_t frame[PL_GEN_PACKET_MAX];
	static struct pl_batch batch;
	struct pl_diag diag = { 0 };
	struct pl_gen *gen;
	bool good = true;
	int n;

	if (!ok(pl_gen_new(&gen, &cfg, &diag) == 0, "%s", diag.text))
		return;
	setup_for(&rules, &decode);
	for (unsigned int i = 0; i < 40 && (n = pl_gen_next(gen, UINT64_MAX, &batch)) > 0; i++) {
		for (int k = 0; k < n; k++) {
			struct pl_packet pkt = batch.pkts[k];

			memcpy(frame, pkt.data, pkt.len);
			frame[26] = (uint8_t)(10 * (1 + k % 3));
			pkt.data = frame;
			now_ns += 1000;
			ts_ns += 1000;
			good = good && both(&pkt) && same_events();
		}
	}
	ok(good, "each by its profile: the kernel's events are those of user space");
	same_counters();
	same_tables();
	/* Blocks of eight words are of INTCollector's dialect alone. */
	ok(account.fast > account.packets / 4 && account.fast < account.packets / 2,
		"%" PRIu64 " of %" PRIu64 " took the fast path: of one exporter out of three",
		account.fast, account.packets);
	teardown();
	pl_gen_free(gen);
}

/* As those of all reports, but for what the fast path leaves alone: most reports have something to
 * tell. */
static struct pl_core_rules restless_rules(void)
{
	struct pl_core_rules r = busy_rules(255);

	r.watch &= ~(1u << PL_CORE_Q_FLOW_LATENCY);
	r.flags |= PL_CORE_PROVE;
	return r;
}

static void test_usual(uint64_t reports, uint64_t seed, struct pl_core_rules rules)
{
	uint64_t left = reports;
	struct pl_gen_cfg cfg;
	struct pl_rng rng;
	bool good = true;

	setup(&rules);
	pl_rng_seed(&rng, seed);
	printf("# seed %" PRIu64 ", usual reports\n", seed);
	while (good && left > 0) {
		form_usual(&cfg, &rng);
		good = run_form(&cfg, &rng, &left);
		/* Each quantity on its own, and together. */
		rules.watch = form_pick(&rng, 4) == 0 ? form_pick(&rng, 32) : 31;
		pl_kernel_rules(kernel, &rules);
		env.rules = rules;
	}
	ok(good, "the kernel's events are those of user space");
	same_counters();
	same_tables();
	printf("# %" PRIu64 " packets, %" PRIu64 " settled, %" PRIu64 " the fast path, %" PRIu64
	       " events\n",
		account.packets, account.settled, account.fast, account.events);
	ok(account.fast > account.packets / 3 &&
			account.settled - account.fast > account.packets / 20,
		"both ways were gone often");
	ok(account.changed > account.fast / 50, "%" PRIu64 " of them with hops that changed",
		account.changed);
	teardown();
}

/* The frames that the filter wants go straight as they would without it, the others to the host. */
static void test_filters(uint64_t reports, uint64_t seed)
{
	struct pl_core_rules rules = calm_rules(0);
	uint64_t left = reports, filters = 0;
	struct pl_gen_cfg cfg;
	struct pl_rng rng;
	bool good = true;

	/* The fast path has its flows whatever is told of them. */
	rules.on &= ~(1u << PL_EVENT_PATH_CHANGE | 1u << PL_EVENT_FLOW_START |
		      1u << PL_EVENT_FLOW_END | 1u << PL_EVENT_KEEPALIVE);
	setup(&rules);
	pl_rng_seed(&rng, seed);
	printf("# seed %" PRIu64 ", filters\n", seed);
	while (good && left > 0) {
		const uint64_t which = filters++ % 3;

		memset(filter.vlans, 0, sizeof(filter.vlans));
		filter.any_vlan = which == 1;
		filter.naddrs = which == 0 ? 0 : 1 + form_pick(&rng, PL_FILTER_ADDRS_MAX);
		for (uint32_t i = 0; which != 1 && i < 4096; i++) {
			if (form_pick(&rng, 3) != 0)
				pl_filter_rules_add_vlan(&filter, (uint16_t)i);
		}
		for (uint32_t i = 0; i < filter.naddrs; i++)
			filter.addrs[i] = pl_addr_v4(&(uint32_t){ (uint32_t)pl_rng_u64(&rng) });
		form_usual(&cfg, &rng);
		/* Where the reports of the generator go; each third time nowhere that is wanted. */
		if (filter.naddrs > 0 && form_pick(&rng, 3) != 0 &&
			pl_parse_addr(cfg.outer_ip == 6 ? "fd00:ff::fffe" : "10.255.255.254",
				&filter.addrs[form_pick(&rng, filter.naddrs)]) < 0)
			abort();
		pl_filter_set(pl_kernel_program(kernel)->filter, &filter);
		good = run_form(&cfg, &rng, &left);
	}
	ok(good,
		"the kernel's events are those of user space, and the host's frames are left to it");
	same_counters();
	same_tables();
	printf("# %" PRIu64 " packets, %" PRIu64 " settled, %" PRIu64 " the fast path\n",
		account.packets, account.settled, account.fast);
	ok(account.unwanted > account.packets / 8, "%" PRIu64 " were not wanted", account.unwanted);
	ok(account.fast > (account.packets - account.unwanted) / 4,
		"of the others many took the fast path");
	teardown();
}

int main(int argc, char **argv)
{
	uint64_t reports = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261121;

	test_random(reports / 2, seed, 255, false);
	/* Tables far too small: everything is replaced all the time. */
	test_random(reports / 4, seed + 1, 0, false);
	test_random(reports / 8, seed, 255, true);
	test_profiles(reports / 8, seed + 6);
	test_intcollector();
	test_profile_each();
	test_usual(reports / 8, seed + 2, calm_rules(0));
	test_usual(
		reports / 4, seed + 3, calm_rules(PL_CORE_KEEP_AGGREGATES | PL_CORE_KEEP_PLACES));
	test_usual(reports / 4, seed + 4, restless_rules());
	test_filters(reports / 8, seed + 5);
	return pl_test_done();
}
