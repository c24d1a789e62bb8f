/* SPDX-License-Identifier: BSD-2-Clause */
#include "detect/kernel_detect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "detect/tables.h"

/* The tables of one receive queue, ticked from here. */
struct shard {
	struct pl_core_env env; /* its counters are those of this side */
	struct pl_sweep sweep;
};

struct pl_kernel_detect {
	struct pl_kernel *kernel;
	struct pl_detect_options options;
	struct shard *shards;
	unsigned int n;
	struct pl_node_watch nodes;
	bool watch_nodes;
};

static uint32_t sets_of(uint32_t entries)
{
	uint32_t sets = 1;

	while (sets < UINT32_C(1) << 26 && (uint64_t)sets * PL_CORE_WAYS < entries)
		sets *= 2;
	return sets;
}

static int rules_of(struct pl_core_rules *ret, const struct pl_detect_options *o)
{
	uint32_t entries[PL_CORE_T_MAX];
	struct pl_rng rng;
	int r = pl_detect_rules(ret, o);

	if (r < 0)
		return r;
	pl_detect_entries(o, entries);
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		ret->mask[i] = sets_of(entries[i]) - 1;
	pl_rng_seed(&rng, pl_hash_seed());
	for (unsigned int i = 0; i < PL_CORE_SECRETS; i++)
		ret->secret[i] = pl_rng_u64(&rng);
	return 0;
}

static struct pl_kernel_options kernel_options(
	const struct pl_kernel_detect_options *o, const struct pl_core_rules *rules)
{
	return (struct pl_kernel_options){
		.rules = rules,
		.decode = o->decode,
		.queues = o->queues,
		.events_bytes = o->events_bytes,
		.frames_bytes = o->frames_bytes,
		.to_sockets = o->to_sockets,
		.both = o->both,
	};
}

uint64_t pl_kernel_detect_memory(const struct pl_kernel_detect_options *o)
{
	struct pl_core_rules rules;
	struct pl_kernel_options k;

	if (rules_of(&rules, o->detect) < 0)
		return 0;
	k = kernel_options(o, &rules);
	return sizeof(struct pl_kernel_detect) + (o->queues + 1) * sizeof(struct shard) +
	       pl_kernel_memory(&k) + pl_node_watch_memory(rules.mask[PL_CORE_T_place] + 1);
}

/* Queue q's part of the mapped tables. */
static void map_shard(struct pl_kernel_detect *kd, unsigned int q)
{
	const struct pl_kernel_table *t = pl_kernel_tables(kd->kernel);
	struct pl_core_env *env = &kd->shards[q].env;

	env->rules = *pl_kernel_rules_now(kd->kernel);
	env->tables.borrowed = true; /* the program has them in hand: what goes rests first */
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		env->tables.sets[i] = env->rules.mask[i] + 1;
#define TABLE(name, help)                                                                          \
	env->tables.name = (struct pl_core_##name##_set *)t[PL_CORE_T_##name].sets +               \
			   (size_t)q * env->tables.sets[PL_CORE_T_##name];
	PL_CORE_TABLES(TABLE)
#undef TABLE
}

int pl_kernel_detect_new(struct pl_kernel_detect **ret, const struct pl_kernel_detect_options *o,
	struct pl_diag *diag)
{
	struct pl_kernel_detect *kd = calloc(1, sizeof(*kd));
	struct pl_core_rules rules;
	struct pl_kernel_options k;
	int r;

	if (kd == NULL)
		return -ENOMEM;
	r = rules_of(&rules, o->detect);
	if (r < 0) {
		pl_diag_set(diag, "the detector's options contradict each other");
		goto fail;
	}
	k = kernel_options(o, &rules);
	r = pl_kernel_open(&kd->kernel, &k, diag);
	if (r < 0)
		goto fail;
	kd->options = *o->detect;
	kd->n = pl_kernel_queues(kd->kernel);
	kd->shards = calloc(kd->n, sizeof(*kd->shards));
	r = kd->shards == NULL ? -ENOMEM
			       : pl_node_watch_init(&kd->nodes, rules.mask[PL_CORE_T_place] + 1);
	if (r < 0)
		goto fail;
	kd->watch_nodes = true;
	for (unsigned int q = 0; q < kd->n; q++)
		map_shard(kd, q);
	*ret = kd;
	return 0;
fail:
	pl_kernel_detect_free(kd);
	return r;
}

void pl_kernel_detect_free(struct pl_kernel_detect *kd)
{
	if (kd == NULL)
		return;
	if (kd->watch_nodes)
		pl_node_watch_done(&kd->nodes);
	pl_kernel_close(kd->kernel);
	free(kd->shards);
	free(kd);
}

struct pl_kernel *pl_kernel_detect_kernel(struct pl_kernel_detect *kd)
{
	return kd->kernel;
}

unsigned int pl_kernel_detect_poll(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	pl_kernel_time(kd->kernel, now_ns, ts_ns);
	return pl_kernel_events(kd->kernel, out);
}

void pl_kernel_detect_tick(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_kernel_counters c;
	bool raised;

	pl_kernel_time(kd->kernel, now_ns, ts_ns);
	/* Levels are raised by the program and may be ended here: only the sums tell. */
	raised = pl_kernel_detect_counters(kd, &c) < 0 || c.core.raised != c.core.ended;
	for (unsigned int q = 0; q < kd->n; q++) {
		struct shard *s = &kd->shards[q];

		s->env.out = out;
		/* Nodes are watched over one queue's places only: with several, a node is silent when none has it. */
		pl_tables_tick(
			&s->env, &s->sweep, kd->n == 1 ? &kd->nodes : NULL, raised, now_ns, ts_ns);
	}
}

int pl_kernel_detect_change(struct pl_kernel_detect *kd, const struct pl_detect_options *options,
	uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	uint32_t before[PL_CORE_T_MAX], after[PL_CORE_T_MAX];
	struct pl_core_rules rules;
	int r = pl_detect_rules(&rules, options);

	if (r < 0)
		return r;
	pl_detect_entries(&kd->options, before);
	pl_detect_entries(options, after);
	if (memcmp(before, after, sizeof(before)) != 0)
		return -EINVAL;
	kd->options = *options;
	pl_kernel_rules(kd->kernel, &rules);
	for (unsigned int q = 0; q < kd->n; q++) {
		struct shard *s = &kd->shards[q];

		s->env.rules = *pl_kernel_rules_now(kd->kernel);
		s->env.out = out;
		pl_tables_unband(&s->env, now_ns, ts_ns);
	}
	return 0;
}

int pl_kernel_detect_counters(struct pl_kernel_detect *kd, struct pl_kernel_counters *ret)
{
	int r = pl_kernel_counters(kd->kernel, ret);
	uint64_t *sum = (uint64_t *)(void *)&ret->core;

	if (r < 0)
		return r;
	for (unsigned int q = 0; q < kd->n; q++) {
		const uint64_t *one = (const uint64_t *)(void *)&kd->shards[q].env.counters;

		for (size_t i = 0; i < sizeof(ret->core) / 8; i++)
			sum[i] += one[i];
	}
	return 0;
}

uint32_t pl_kernel_detect_top_flows(
	const struct pl_kernel_detect *kd, struct pl_flow_seen *ret, uint32_t n)
{
	const struct pl_kernel_table *t = &pl_kernel_tables(kd->kernel)[PL_CORE_T_flow];
	const struct pl_core_flow_set *sets = t->sets;
	uint32_t have = 0;

	for (uint64_t i = 0; n > 0 && i < (uint64_t)t->n * PL_CORE_WAYS; i++) {
		const struct pl_core_flow_set *s = &sets[i / PL_CORE_WAYS];
		const struct pl_core_flow *f = &s->e[i % PL_CORE_WAYS];
		uint32_t at;

		if (!pl_way_live(s->way[i % PL_CORE_WAYS]) ||
			(have == n && f->packets <= ret[n - 1].packets))
			continue;
		at = have < n ? have++ : n - 1;
		for (; at > 0 && ret[at - 1].packets < f->packets; at--)
			ret[at] = ret[at - 1];
		ret[at] = (struct pl_flow_seen){
			.key = f->key,
			.path_id = f->path_id,
			.packets = f->packets,
			.bytes = f->bytes,
			.first_ns = f->first_ns,
			.last_ns = f->last_ns,
		};
	}
	return have;
}

bool pl_kernel_detect_exporter(
	const struct pl_kernel_detect *kd, uint64_t *pos, struct pl_exporter *ret)
{
	const struct pl_kernel_table *t = &pl_kernel_tables(kd->kernel)[PL_CORE_T_exporter];
	const struct pl_core_exporter_set *sets = t->sets;

	while (*pos < (uint64_t)t->n * PL_CORE_WAYS) {
		const struct pl_core_exporter_set *s = &sets[*pos / PL_CORE_WAYS];
		unsigned int w = (unsigned int)(*pos % PL_CORE_WAYS);
		const struct pl_core_exporter *x = &s->e[w];

		++*pos;
		if (!pl_way_live(s->way[w]))
			continue;
		*ret = (struct pl_exporter){
			.addr = x->key.addr,
			.node = x->key.node,
			.hw_id = (uint8_t)x->key.hw_id,
			.report_version = x->report_version,
			.unsequenced = x->seq.constant,
			.reports = x->seq.reports,
			.lost = x->seq.lost,
			.reordered = x->seq.reordered,
			.duplicates = x->seq.duplicates,
			.restarts = x->seq.restarts,
			.skipped = x->seq.skipped,
			.recovered = x->seq.recovered,
			.stragglers = x->seq.stragglers,
			.first_ts_ns = x->first_ts_ns,
			.last_ts_ns = x->last_ts_ns,
			.last_seq = x->seq.highest,
		};
		return true;
	}
	return false;
}
