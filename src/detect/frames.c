/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/frames.h"

#include "detect/tables.h"

#include "bpf/detect_steps.h"

/* Reports parsed before they are stepped: their flows' lines are on the way meanwhile. */
#define AHEAD    8
/* Packets whose first lines are fetched before their turn. */
#define PREFETCH 4

struct parsed {
	struct pl_core_scratch s;
	uint64_t hash;
	bool settled;
};

static void step(struct pl_core_env *env, const struct parsed *p)
{
	const struct pl_core_scratch *s = &p->s;

	if (s->numbered)
		pl_core_exporter_step(env, &s->report);
	if (!p->settled)
		return;
	pl_core_report_begin(env, &s->report);
	for (uint32_t i = 0; i < s->n; i++)
		pl_core_hop_step(env, &s->report, &s->hops[i]);
	pl_core_report_end(env, &s->report, s->n > 0 ? &s->hops[s->n - 1] : NULL);
}

static void fetch_flow(struct pl_core_env *env, struct parsed *p)
{
	const struct pl_core_flow_set *set;
	const struct pl_core_flow *flow;

	if (!p->settled || !pl_core_flow_counts(&env->rules, &p->s.report))
		return;
	p->hash = pl_core_flow_hash(&env->rules, &p->s.report.flow);
	set = &env->tables.flow[pl_core_set_of(p->hash, env->rules.mask[PL_CORE_T_flow])];
	flow = &set->e[pl_core_home(p->hash)];
	__builtin_prefetch(set->way);
	__builtin_prefetch(flow, 1);
	__builtin_prefetch((const char *)flow + 64, 1);
}

void pl_detect_frames(struct pl_detect *det, struct pl_lean *lean, const struct pl_batch *in,
	uint64_t now_ns, bool *settled, struct pl_frames_counters *counters,
	struct pl_event_batch *out)
{
	struct pl_core_env *env = pl_detect_env(det);
	struct parsed ring[AHEAD];
	const uint32_t n = in->n;

	env->out = out;
	for (uint32_t i = 0; i < n + AHEAD; i++) {
		struct parsed *p = &ring[i % AHEAD];
		uint32_t hand_up;

		if (i >= AHEAD && i - AHEAD < n)
			step(env, p);
		if (i >= n)
			continue;
		if (i + PREFETCH < n) {
			__builtin_prefetch(in->pkts[i + PREFETCH].data);
			__builtin_prefetch(in->pkts[i + PREFETCH].data + 64);
			__builtin_prefetch(in->pkts[i + PREFETCH].data + 128);
			__builtin_prefetch(in->pkts[i + PREFETCH].data + 192);
		}
		hand_up = pl_lean_report(lean, &p->s, &in->pkts[i], now_ns);
		p->settled = hand_up == PL_HANDUP_NONE;
		settled[i] = p->settled;
		counters->packets++;
		counters->settled += p->settled;
		counters->handed_up[hand_up] += !p->settled;
		for (uint64_t notes = p->settled ? p->s.notes : 0; notes != 0; notes &= notes - 1)
			counters->notes[__builtin_ctzll(notes)]++;
		fetch_flow(env, p);
	}
}
