/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the ticks and reports the events of the detector in the kernel. */
#include "detect/kernel_detect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detect/numbers.h"
#include "detect/rules.h"
#include "detect/tables.h"

#define BEHIND_MAX_NS UINT64_C(20000000)
#define FOLLOWED_NS   UINT64_C(1000000000)

struct pl_kernel_detect {
	struct pl_kernel *kernel;
	struct pl_detect **queues; /* detectors, over the tables of one receive queue each */
	unsigned int n;
	uint64_t behind_ns
		[PL_KERNEL_QUEUES]; /* time since user space keeps a queue's turn; 0: it does not */
	/* Detector of the flows' own numbers, over escalated reports and packets of all queues.
	 * Only that part of it is used. */
	struct pl_detect *followed;
	uint64_t followed_ns;
	struct pl_node_watch nodes; /* nodes of all queues: a node's reports come by any of them */
	struct pl_core_accounts accounts; /* of all exporters that there ever were, as read last */
};

/* The program counts sequence numbers: no decoder sees the reports that it settles. */
static struct pl_detect_options options_of(const struct pl_detect_options *given)
{
	struct pl_detect_options o = *given;

	o.numbers = true;
	return o;
}

static struct pl_detect_options followed_options(const struct pl_detect_options *given)
{
	const struct pl_detect_options all = pl_detect_with_defaults(given);

	return (struct pl_detect_options){
		.packet_loss = all.packet_loss,
		.reordering = all.reordering,
		.loss_hold_ns = all.loss_hold_ns,
		.flow_idle_ns = all.flow_idle_ns,
		.max_exporters = all.max_exporters,
		.max_numbered = all.max_flows / 8 > 8 ? all.max_flows / 8 : 8,
		.max_flows = 8,
		.max_queues = 8,
		.max_links = 8,
		.max_drops = 8,
	};
}

static int rules_of(struct pl_core_rules *ret, const struct pl_detect_options *o)
{
	uint32_t entries[PL_CORE_T_MAX];
	int r = pl_detect_rules(ret, o);

	if (r < 0)
		return r;
	pl_detect_entries(o, entries);
	pl_detect_geometry(ret, entries);
	return 0;
}

/* A queue may hold as many, and be all there is of a node. */
static uint32_t places(const struct pl_core_rules *rules)
{
	return (rules->mask[PL_CORE_T_place] + 1) * PL_CORE_WAYS;
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
	struct pl_detect_options detect = options_of(o->detect);
	const struct pl_detect_options followed = followed_options(&detect);
	struct pl_core_rules rules;
	struct pl_kernel_options k;

	if (rules_of(&rules, &detect) < 0)
		return 0;
	k = kernel_options(o, &rules);
	return sizeof(struct pl_kernel_detect) +
	       (o->queues + 1) * (sizeof(void *) + pl_detect_over_memory()) + pl_kernel_memory(&k) +
	       pl_node_watch_memory(places(&rules)) + pl_detect_memory(&followed);
}

static void hear(struct pl_core_env *env)
{
	(void)pl_kernel_events(env->hear_arg, env->out);
}

/* Leaves aggregates to the program: records that user space steps are counted in the aggregates of
 * records. */
static void counts_elsewhere(struct pl_detect *det)
{
	pl_detect_env(det)->rules.flags &= ~(uint32_t)PL_CORE_KEEP_AGGREGATES;
}

/* Makes a detector over queue q's part of the mapped tables. */
static int open_queue(
	struct pl_kernel_detect *kd, unsigned int q, const struct pl_detect_options *o)
{
	const struct pl_core_rules *rules = pl_kernel_rules_now(kd->kernel);
	const struct pl_kernel_table *t = pl_kernel_tables(kd->kernel);
	void *sets[PL_CORE_T_MAX];
	struct pl_core_env *env;
	int r;

#define TABLE(name, help)                                                                          \
	sets[PL_CORE_T_##name] = (struct pl_core_##name##_set *)t[PL_CORE_T_##name].sets +         \
				 (size_t)q * (rules->mask[PL_CORE_T_##name] + 1);
	PL_CORE_TABLES(TABLE)
#undef TABLE
	r = pl_detect_over(&kd->queues[q], o, rules, sets);
	if (r < 0)
		return r;
	counts_elsewhere(kd->queues[q]);
	env = pl_detect_env(kd->queues[q]);
	env->turn = pl_kernel_turn(kd->kernel, q);
	env->hear = hear;
	env->hear_arg = kd->kernel;
	return 0;
}

int pl_kernel_detect_new(struct pl_kernel_detect **ret, const struct pl_kernel_detect_options *o,
	struct pl_diag *diag)
{
	struct pl_kernel_detect *kd = calloc(1, sizeof(*kd));
	struct pl_detect_options detect = options_of(o->detect);
	const struct pl_detect_options followed = followed_options(&detect);
	struct pl_core_rules rules;
	struct pl_kernel_options k;
	int r;

	if (kd == NULL)
		return -ENOMEM;
	r = rules_of(&rules, &detect);
	if (r < 0) {
		pl_diag_set(diag, "the detector's options contradict each other");
		goto fail;
	}
	k = kernel_options(o, &rules);
	r = pl_kernel_open(&kd->kernel, &k, diag);
	if (r < 0)
		goto fail;
	kd->n = pl_kernel_queues(kd->kernel);
	kd->queues = calloc(kd->n, sizeof(struct pl_detect *));
	r = kd->queues == NULL ? -ENOMEM : pl_node_watch_init(&kd->nodes, places(&rules));
	for (unsigned int q = 0; r == 0 && q < kd->n; q++)
		r = open_queue(kd, q, &detect);
	if (r == 0)
		r = pl_detect_new(&kd->followed, &followed);
	if (r < 0)
		goto fail;
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
	for (unsigned int q = 0; kd->queues != NULL && q < kd->n; q++)
		pl_detect_free(kd->queues[q]);
	free(kd->queues);
	pl_detect_free(kd->followed);
	pl_node_watch_done(&kd->nodes);
	pl_kernel_close(kd->kernel);
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

/* Ticks the flows' own numbers: the trouble of exporters is summed over all queues, and packets
 * without room on the way to user space are noted. */
static void tick_followed(struct pl_kernel_detect *kd, const struct pl_kernel_counters *c,
	uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_exporter exporter;
	uint64_t pos = 0;

	kd->followed_ns = now_ns;
	pl_detect_unseen(
		kd->followed, c->escalated_lost + c->escalated_over_share + c->numbers_lost, true);
	while (pl_kernel_detect_exporter(kd, &pos, &exporter))
		pl_detect_exporter(kd->followed, &exporter, now_ns, ts_ns, out);
	pl_detect_exporters_over(kd->followed, now_ns, ts_ns, out);
	pl_detect_numbers_tick(kd->followed, now_ns, ts_ns, out);
}

void pl_kernel_detect_tick(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_kernel_counters c;
	bool raised, counted;

	pl_kernel_time(kd->kernel, now_ns, ts_ns);
	/* The program raises levels and ticks may end them, so only the sums of both counters are
	 * meaningful. */
	counted = pl_kernel_detect_counters(kd, &c) == 0;
	raised = !counted || c.core.raised != c.core.ended;
	for (unsigned int q = 0; q < kd->n; q++) {
		struct pl_core_env *env = pl_detect_env(kd->queues[q]);

		env->out = out;
		pl_tables_tick(env, pl_detect_sweep(kd->queues[q]), raised, now_ns, ts_ns);
		pl_nodes_hear(env, &kd->nodes, now_ns);
	}
	pl_nodes_tell(pl_detect_env(kd->queues[0]), &kd->nodes, now_ns, ts_ns);
	if (counted && pl_core_elapsed(now_ns, kd->followed_ns) >= FOLLOWED_NS)
		tick_followed(kd, &c, now_ns, ts_ns, out);
}

const struct pl_flow_number_counters *pl_kernel_detect_flow_numbers(
	const struct pl_kernel_detect *kd)
{
	return pl_detect_number_counters(kd->followed);
}

void pl_kernel_detect_add_numbers(
	const struct pl_kernel_detect *kd, struct pl_flow_seen *flows, uint32_t n)
{
	(void)pl_detect_top_flows(kd->followed, flows, n, n);
}

int pl_kernel_detect_change(struct pl_kernel_detect *kd, const struct pl_detect_options *options,
	uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_detect_options detect = options_of(options);
	const struct pl_detect_options followed = followed_options(&detect);
	struct pl_core_rules rules;
	int r = pl_detect_check_change(kd->queues[0], &detect, &rules);

	if (r < 0)
		return r;
	/* The program's rules change first. Once each queue's turn was had, the program sets bands
	 * by the new rules. */
	pl_kernel_rules(kd->kernel, &rules);
	for (unsigned int q = 0; q < kd->n; q++) {
		(void)pl_detect_change(kd->queues[q], &detect, now_ns, ts_ns, out);
		counts_elsewhere(kd->queues[q]);
	}
	(void)pl_detect_change(kd->followed, &followed, now_ns, ts_ns, out);
	return 0;
}

void pl_kernel_detect_end(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	pl_kernel_detect_tick(kd, now_ns, ts_ns, out);
	for (unsigned int q = 0; q < kd->n; q++)
		pl_detect_end(kd->queues[q], now_ns, ts_ns, out);
	pl_detect_end(kd->followed, now_ns, ts_ns, out);
	/* The rules of the first queue, by which nodes are told, are off now. */
	pl_nodes_tell(pl_detect_env(kd->queues[0]), &kd->nodes, now_ns, ts_ns);
}

/* Adds the present exporters to those that were removed. An exporter that the program replaces
 * meanwhile is in neither, so that a sum may be smaller than the one before. */
static void add_accounts(struct pl_kernel_detect *kd, struct pl_core_accounts *to)
{
	uint64_t *now = (uint64_t *)(void *)to, *last = (uint64_t *)(void *)&kd->accounts;

	for (unsigned int q = 0; q < kd->n; q++)
		pl_detect_add_accounts(kd->queues[q], to);
	for (size_t i = 0; i < sizeof(*to) / 8; i++)
		now[i] = last[i] = now[i] > last[i] ? now[i] : last[i];
}

int pl_kernel_detect_counters(struct pl_kernel_detect *kd, struct pl_kernel_counters *ret)
{
	int r = pl_kernel_counters(kd->kernel, ret);
	uint64_t *sum = (uint64_t *)(void *)&ret->core;
	uint64_t reports, hops;

	if (r < 0)
		return r;
	reports = ret->core.reports;
	hops = ret->core.hops;
	for (unsigned int q = 0; q <= kd->n; q++) {
		const struct pl_detect *det = q < kd->n ? kd->queues[q] : kd->followed;
		const uint64_t *one = (const uint64_t *)(const void *)pl_detect_counters(det);

		for (size_t i = 0; i < sizeof(ret->core) / 8; i++)
			sum[i] += one[i];
	}
	/* A decoder read the reports stepped here, and counts them. */
	ret->core.reports = reports;
	ret->core.hops = hops;
	add_accounts(kd, &ret->core.accounts);
	return 0;
}

unsigned int pl_kernel_detect_queues(
	const struct pl_kernel_detect *kd, struct pl_detect *const **ret)
{
	*ret = kd->queues;
	return kd->n;
}

bool pl_kernel_detect_number(struct pl_kernel_detect *kd, unsigned int queue,
	const struct pl_core_numbered *n, enum pl_kernel_number kind, uint64_t now_ns,
	uint64_t ts_ns)
{
	/* The program reads nothing of queues without state. */
	queue = queue < kd->n ? queue : 0;
	return pl_numbers_step(pl_detect_env(kd->queues[queue]), n, kind, now_ns, ts_ns,
		pl_kernel_ts_ns(kd->kernel));
}

void pl_kernel_detect_batch(struct pl_kernel_detect *kd, unsigned int queue,
	const struct pl_record_batch *batch, uint64_t now_ns, struct pl_event_batch *out)
{
	pl_detect_batch(kd->queues[queue < kd->n ? queue : 0], batch, now_ns, out);
	pl_detect_numbers(kd->followed, batch, now_ns);
}

void pl_kernel_detect_caught_up(struct pl_kernel_detect *kd, bool all, uint64_t now_ns)
{
	for (unsigned int q = 0; q < kd->n; q++) {
		struct pl_core_turn *turn = pl_kernel_turn(kd->kernel, q);

		if (!pl_core_turn_behind(turn)) {
			kd->behind_ns[q] = 0;
			continue;
		}
		if (kd->behind_ns[q] == 0)
			kd->behind_ns[q] = now_ns;
		if (all || pl_core_elapsed(now_ns, kd->behind_ns[q]) >= BEHIND_MAX_NS)
			pl_core_turn_caught_up(turn);
	}
}

bool pl_kernel_detect_exporter(
	const struct pl_kernel_detect *kd, uint64_t *pos, struct pl_exporter *ret)
{
	unsigned int queue = (unsigned int)(*pos >> 48);
	uint64_t at = *pos & ((UINT64_C(1) << 48) - 1);

	for (; queue < kd->n; queue++, at = 0) {
		bool found = pl_detect_sequence(kd->queues[queue], &at, ret);

		*pos = (uint64_t)queue << 48 | at;
		if (found)
			return true;
	}
	return false;
}

bool pl_kernel_detect_path(
	const struct pl_kernel_detect *kd, uint64_t path_id, struct pl_path_nodes *ret)
{
	for (unsigned int q = 0; q < kd->n; q++) {
		if (pl_detect_route(kd->queues[q], path_id, ret))
			return true;
	}
	return false;
}
