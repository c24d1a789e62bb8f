/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs detection over packets without records. */
#include "tests/bpf/frames.h"

#include "base/prefetch.h"
#include "detect/flow_fetch.h"
#include "detect/tables.h"

#include "core/detect_fast.h"

/* Reports parsed before they are stepped: their flows' lines are on the way meanwhile, those of the
 * set first, then, LOOK before the step, those of the flow. */
#define AHEAD    16
#define LOOK     8
/* Packets whose first lines are fetched before their turn. */
#define PREFETCH 4

struct parsed {
	struct pl_fast q;
	struct pl_fast_keys keys;
	uint32_t slow; /* enum pl_slow */
	bool usual;    /* q holds; else s does */
	bool counts;   /* keys.flow_hash holds */
	bool settled;
	struct pl_core_scratch s;
};

/* One call for all packets of a batch. */
struct run {
	struct pl_core_env *env;
	struct pl_direct *direct;
	const struct pl_batch *in;
	uint64_t now_ns;
	bool *settled;
	struct pl_frames_counters *counters;
};

/* The slow path, first half. */
static void read_general(const struct run *run, struct parsed *p, uint32_t i)
{
	struct pl_frames_counters *counters = run->counters;
	uint32_t escalate = pl_direct_report(run->direct, &p->s, &run->in->pkts[i], run->now_ns);

	p->settled = escalate == PL_ESCALATION_NONE;
	run->settled[i] = p->settled;
	counters->settled += p->settled;
	counters->escalated[escalate] += !p->settled;
	for (uint64_t notes = p->settled ? p->s.notes : 0; notes != 0; notes &= notes - 1)
		counters->notes[__builtin_ctzll(notes)]++;
}

/* False when the report's exporter is not proven. */
static bool step_general(struct pl_core_env *env, const struct parsed *p)
{
	const struct pl_core_scratch *s = &p->s;
	struct pl_core_hop path;

	uint32_t number = 0;

	if (s->numbered)
		number = pl_core_exporter_step(env, &s->report);
	if (!p->settled)
		return true;
	if (number & PL_CORE_UNPROVEN) {
		pl_core_report_unproven(env, &s->report);
		return false;
	}
	env->records = NULL;
	env->hops = s->hops;
	pl_core_report_begin(env, &s->report);
	for (uint32_t i = 0; i < s->n; i++)
		pl_core_hop_step(env, &s->report, &s->hops[i]);
	if (env->rules.flags & PL_CORE_KEEP_AGGREGATES)
		pl_core_route_step(env, &s->report, s->latency_ns);
	pl_core_report_end(env, &s->report, s->n > 0 ? &s->hops[s->n - 1] : NULL);
	if (pl_core_delay_counts(pl_env_rules(env), &s->report))
		pl_core_delay_step(env, &s->report, &path, s->latency_ns);
	return true;
}

static void read_one(const struct run *run, struct parsed *p, uint32_t i)
{
	struct pl_core_env *env = run->env;

	run->counters->packets++;
	p->q.keys = &p->keys;
	p->slow = env->rules.prepared.fast ? pl_direct_fast(run->direct, &p->q, &run->in->pkts[i])
					   : PL_SLOW_RULES;
	p->usual = p->slow == PL_SLOW_NONE;
	p->counts = p->usual;
	if (p->usual) {
		p->keys.flow_hash = pl_fast_flow_hash(&env->rules, &p->keys);
	} else {
		read_general(run, p, i);
		p->counts = p->settled && pl_core_flow_counts(&p->s.report);
		if (p->counts)
			p->keys.flow_hash = pl_core_flow_hash(&env->rules, &p->s.report.flow);
	}
	if (p->counts)
		pl_flow_fetch_set(env, p->keys.flow_hash);
}

/* The hops of a settled report that may have something to tell. */
static void step_changed(struct pl_core_env *env, const struct pl_fast *q, uint64_t ts_ns)
{
	const struct pl_fast_marks *m = &env->marks;
	struct pl_core_report r;
	struct pl_core_hop h;

	pl_fast_report(&r, q, m, ts_ns);
	for (uint32_t left = m->changed; left != 0; left &= left - 1) {
		pl_fast_hop(&h, m, (uint32_t)__builtin_ctz(left));
		pl_core_values_step(env, &r, &h);
	}
}

static void step_slow(const struct run *run, struct parsed *p, uint32_t i, uint32_t slow)
{
	run->counters->slow[slow]++;
	if (p->usual)
		read_general(run, p, i);
	if (step_general(run->env, p) && pl_fast_learns(slow) && p->settled)
		pl_fast_learn(run->env, &p->s);
}

static void step_one(const struct run *run, struct parsed *p, uint32_t i)
{
	struct pl_core_env *env = run->env;
	uint32_t slow = p->slow;

	if (p->usual)
		slow = pl_fast_step(env, &p->q,
			&run->direct->layouts.slot[p->q.layout & (PL_CORE_LAYOUTS - 1)],
			run->now_ns, run->in->pkts[i].ts_ns, run->direct->max_latency_ns);
	if (slow != PL_SLOW_NONE) {
		step_slow(run, p, i, slow);
		return;
	}
	run->settled[i] = true;
	run->counters->settled++;
	run->counters->fast++;
	run->counters->notes[PL_N_VALUES_MISSING] += env->marks.missing;
	env->counters.reports++;
	env->counters.hops += p->q.hops;
	if (__builtin_expect(env->marks.changed != 0, 0)) {
		run->counters->changed++;
		step_changed(env, &p->q, run->in->pkts[i].ts_ns);
	}
	for (uint32_t h = 0; env->marks.keep && h < p->q.hops; h++) {
		if ((env->marks.changed >> h & 1) == 0)
			pl_fast_sums(env, h);
	}
	if (env->marks.keep)
		pl_fast_route_sums(env, p->q.hops);
}

void pl_detect_frames(struct pl_detect *det, struct pl_direct *direct, const struct pl_batch *in,
	uint64_t now_ns, bool *settled, struct pl_frames_counters *counters,
	struct pl_event_batch *out)
{
	const struct run run = { pl_detect_env(det), direct, in, now_ns, settled, counters };
	struct parsed ring[AHEAD];
	const uint32_t n = in->n;

	run.env->out = out;
	run.env->memos = direct->memos;
	for (uint32_t i = 0; i < n + AHEAD; i++) {
		if (i >= AHEAD && i - AHEAD < n)
			step_one(&run, &ring[i % AHEAD], i - AHEAD);
		if (i >= AHEAD - LOOK && i - (AHEAD - LOOK) < n) {
			const struct parsed *p = &ring[(i - (AHEAD - LOOK)) % AHEAD];

			if (p->counts)
				pl_flow_fetch(run.env, p->keys.flow_hash);
		}
		if (i >= n)
			continue;
		if (i + PREFETCH < n) {
			const uint8_t *data = in->pkts[i + PREFETCH].data;

			pl_prefetch(data);
			pl_prefetch(data + 64);
			pl_prefetch(data + 128);
			pl_prefetch(data + 192);
		}
		read_one(&run, &ring[i % AHEAD], i);
	}
}
