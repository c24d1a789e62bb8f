/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the steps of detection over record batches. */
#include "detect/events.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "detect/events_state.h"
#include "detect/flow_fetch.h"
#include "detect/rules.h"

#include "core/detect_steps.h"

#define TURN 8 /* reports stepped while the kernel program waits: a microsecond or two */
#define LOOK 8 /* the cache lines of a flow are fetched this many reports ahead */

struct exporter_cell {
	struct pl_core_exporter_key key;
	struct pl_core_loss loss;
	/* Gaps and disorder of its numbers, by the last check and the one before. */
	uint64_t trouble, trouble_before;
	bool unsequenced;
	struct pl_exporter last; /* state when it was last reported */
	uint64_t looked_ns;
};

_Static_assert(sizeof(struct pl_core_exporter_key) == 32, "no padding: keys are compared as bytes");

struct pl_core_env *pl_detect_env(struct pl_detect *det)
{
	return &det->env;
}

struct pl_sweep *pl_detect_sweep(struct pl_detect *det)
{
	return &det->sweep;
}

void pl_detect_geometry(struct pl_core_rules *rules, const uint32_t entries[PL_CORE_T_MAX])
{
	struct pl_rng rng;

	pl_rng_seed(&rng, pl_hash_seed());
	for (unsigned int i = 0; i < PL_CORE_SECRETS; i++)
		rules->secret[i] = pl_rng_u64(&rng);
	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		rules->mask[i] = pl_tables_sets(entries[i]) - 1;
	pl_fast_prepare(rules);
}

static bool wants_hops(const struct pl_core_rules *rules)
{
	return rules->watch != 0 || (rules->flags & PL_CORE_KEEP_PLACES) != 0 ||
	       pl_core_watches(rules, PL_EVENT_LOOP);
}

/* Number of flows whose own numbers are followed: few kinds of telemetry have any. */
static uint32_t numbered_flows(const struct pl_detect_options *o)
{
	uint32_t n = o->max_numbered != 0 ? o->max_numbered : o->max_flows / 8;

	return o->numbers ? 1 : n > 8 ? n : 8;
}

static struct pl_detect *begun(const struct pl_detect_options *options)
{
	struct pl_detect *det = aligned_alloc(64, (sizeof(*det) + 63) / 64 * 64);

	if (det == NULL)
		return NULL;
	memset(det, 0, sizeof(*det));
	det->options = pl_detect_with_defaults(options);
	det->seed = pl_hash_seed();
	return det;
}

int pl_detect_new(struct pl_detect **ret, const struct pl_detect_options *options)
{
	struct pl_core_rules rules;
	uint32_t entries[PL_CORE_T_MAX];
	struct pl_detect *det;
	int r = pl_detect_rules(&rules, options);

	if (r < 0)
		return r;
	det = begun(options);
	if (det == NULL)
		return -ENOMEM;
	pl_detect_entries(options, entries);
	if (pl_tables_init(&det->env.tables, entries) < 0 ||
		pl_cells_init(&det->exporters, det->options.max_exporters,
			sizeof(struct exporter_cell)) < 0 ||
		pl_node_watch_init(&det->nodes, det->options.max_queues) < 0 ||
		pl_flow_numbers_init(&det->numbers, numbered_flows(&det->options)) < 0) {
		pl_detect_free(det);
		return -ENOMEM;
	}
	pl_detect_geometry(&rules, entries);
	det->env.rules = rules;
	det->levels = wants_hops(&rules);
	*ret = det;
	return 0;
}

int pl_detect_over(struct pl_detect **ret, const struct pl_detect_options *options,
	const struct pl_core_rules *rules, void *const sets[PL_CORE_T_MAX])
{
	struct pl_core_rules checked;
	struct pl_detect *det;
	int r = pl_detect_rules(&checked, options);

	if (r < 0)
		return r;
	det = begun(options);
	if (det == NULL)
		return -ENOMEM;
	pl_tables_borrow(&det->env.tables, sets, rules->mask);
	det->env.rules = *rules;
	det->levels = wants_hops(rules);
	*ret = det;
	return 0;
}

void pl_detect_free(struct pl_detect *det)
{
	if (det == NULL)
		return;
	pl_tables_done(&det->env.tables);
	pl_cells_done(&det->exporters);
	pl_node_watch_done(&det->nodes);
	pl_flow_numbers_done(&det->numbers);
	free(det);
}

uint64_t pl_detect_memory(const struct pl_detect_options *options)
{
	struct pl_detect_options o = pl_detect_with_defaults(options);
	uint32_t entries[PL_CORE_T_MAX];

	pl_detect_entries(options, entries);
	return sizeof(struct pl_detect) + pl_tables_memory(entries) +
	       pl_cells_memory(o.max_exporters, sizeof(struct exporter_cell)) +
	       pl_node_watch_memory(o.max_queues) + pl_flow_numbers_memory(numbered_flows(&o));
}

uint64_t pl_detect_over_memory(void)
{
	return sizeof(struct pl_detect);
}

int pl_detect_check_change(const struct pl_detect *det, const struct pl_detect_options *options,
	struct pl_core_rules *ret)
{
	uint32_t had[PL_CORE_T_MAX], wants[PL_CORE_T_MAX];
	struct pl_core_rules rules;
	int r = pl_detect_rules(&rules, options);

	if (r < 0)
		return r;
	pl_detect_entries(&det->options, had);
	pl_detect_entries(options, wants);
	if (memcmp(had, wants, sizeof(had)) != 0)
		return -EINVAL;
	memcpy(rules.secret, det->env.rules.secret, sizeof(rules.secret));
	memcpy(rules.mask, det->env.rules.mask, sizeof(rules.mask));
	pl_fast_prepare(&rules);
	*ret = rules;
	return 0;
}

int pl_detect_change(struct pl_detect *det, const struct pl_detect_options *options,
	uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_core_rules rules;
	int r = pl_detect_check_change(det, options, &rules);

	if (r < 0)
		return r;
	det->options = pl_detect_with_defaults(options);
	det->env.rules = rules;
	det->env.out = out;
	det->levels = wants_hops(&rules);
	pl_tables_unband(&det->env, now_ns, ts_ns);
	return 0;
}

static pl_exporter_trouble_fn exporter_trouble;

void pl_detect_end(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_core_rules *rules = &det->env.rules;
	struct exporter_cell *x;
	uint32_t pos = 0;

	/* As if all rules were off. */
	for (unsigned int i = 0; i < PL_CORE_Q_MAX; i++) {
		rules->q[i].level.threshold = PL_CORE_NO_THRESHOLD;
		rules->q[i].relative = 0;
		rules->q[i].odd_times = 0;
	}
	rules->on = 0;
	det->env.out = out;
	pl_tables_unband(&det->env, now_ns, ts_ns);
	pl_tables_exporters_tick(&det->env, now_ns, ts_ns);
	while ((x = pl_cells_next(&det->exporters, &pos)) != NULL) {
		if (x->loss.open)
			pl_loss_tell(&det->env, &x->loss, &x->last, now_ns, ts_ns);
	}
	pl_flow_numbers_tick(&det->numbers, &det->env, exporter_trouble, det, now_ns, ts_ns);
	pl_nodes_tell(&det->env, &det->nodes, now_ns, ts_ns);
}

int pl_event_batch_init(struct pl_event_batch *batch, uint32_t cap)
{
	assert(cap > 0);
	*batch = (struct pl_event_batch){ .cap = cap };
	batch->events = calloc(cap, sizeof(*batch->events));
	return batch->events == NULL ? -ENOMEM : 0;
}

void pl_event_batch_done(struct pl_event_batch *batch)
{
	free(batch->events);
	*batch = (struct pl_event_batch){ 0 };
}

/* --- records to the input of the steps -------------------------------------------------------- */

static inline void report_of(struct pl_core_report *r, const struct pl_path *path, uint64_t now_ns)
{
	struct pl_flow_key *k = &r->flow;
	uint64_t tail[2]; /* sport, dport, vlan, proto, has; vni, zero */

	r->now_ns = now_ns;
	r->ts_ns = path->ts_ns;
	k->src = path->src;
	k->dst = path->dst;
	/* The parts are set as words: they are hashed at once. */
	tail[0] = (uint64_t)path->proto << 48;
	tail[1] = 0;
	if (path->present & PL_PATH_HAS_sport)
		tail[0] |= path->sport | (uint64_t)path->dport << 16 |
			   (uint64_t)PL_FLOW_KEY_HAS_PORTS << 56;
	if (path->present & PL_PATH_HAS_vlan)
		tail[0] |= (uint64_t)path->vlan << 32 | (uint64_t)PL_FLOW_KEY_HAS_VLAN << 56;
	if (path->present & PL_PATH_HAS_vni) {
		tail[0] |= (uint64_t)PL_FLOW_KEY_HAS_VNI << 56;
		tail[1] = path->vni;
	}
	memcpy(&k->sport, tail, sizeof(tail));
	r->exporter = path->exporter;
	r->node = path->node;
	/* In packets that carry IOAM themselves these bytes have another meaning. */
	if (__builtin_expect((path->present & PL_PATH_HAS_ioam_namespace) != 0, 0)) {
		memset(&r->exporter, 0, sizeof(r->exporter));
		r->node = 0;
	}
	r->report_id = path->report_id;
	r->path_id = path->path_id;
	r->present = path->present;
	r->seq = path->seq;
	r->flags = path->flags;
	r->mode = path->mode;
	r->hw_id = path->hw_id;
	r->report_version = path->report_version;
	r->drop_reason = path->drop_reason;
	r->hop_count = path->hop_count;
	r->zero = 0;
	r->packet_bytes = 0;
	r->drops = (path->present & PL_PATH_HAS_lost_count) != 0 && path->flow_id > 0
			   ? path->flow_id - 1
			   : 0;
}

/* before: the hop before in the path, NULL for the first. */
static inline void hop_of(struct pl_core_hop *h, const struct pl_path *path,
	const struct pl_hop *hop, const struct pl_hop *before)
{
	memcpy(h, &hop->node, offsetof(struct pl_core_hop, link_latency_ns));
	h->link_latency_ns = (uint32_t)hop->link_latency_ns;
	h->clock = hop->clock;
	h->zero[0] = h->zero[1] = h->zero[2] = 0;
	h->before_present = 0;
	h->before_node = 0;
	h->before_port = 0;
	/* Entries side by side in a partial path need not be neighbours. */
	if (before != NULL &&
		((path->flags & PL_FLAG_PARTIAL) == 0 || (hop->present & PL_HOP_HAS_clock) != 0)) {
		h->before_present = before->present & (PL_HOP_HAS_node | PL_HOP_HAS_egress_port);
		h->before_node = before->node;
		h->before_port = before->egress_port;
	}
}

static void step(struct pl_detect *det, const struct pl_record_batch *batch, uint32_t at,
	const struct pl_core_report *r, uint64_t hash)
{
	struct pl_core_env *env = &det->env;
	const struct pl_core_rules *rules = &env->rules;
	const struct pl_path *path = &batch->paths[at];
	const struct pl_hop *hops = batch->hops + batch->first_hop[at];
	struct pl_core_hop hop;

	if (__builtin_expect((r->flags & PL_FLAG_UNPROVEN) != 0, 0))
		return;
	env->records = hops;
	env->hops = NULL;
	pl_core_report_begin(env, r);
	for (unsigned int h = 0; det->levels && h < path->hop_count; h++) {
		hop_of(&hop, path, &hops[h], h > 0 ? &hops[h - 1] : NULL);
		pl_core_hop_step(env, r, &hop);
	}
	if (__builtin_expect((r->flags & PL_FLAG_DROPPED) != 0, 0) &&
		pl_core_watches(rules, PL_EVENT_PACKET_DROP)) {
		if (path->hop_count > 0)
			hop_of(&hop, path, &hops[path->hop_count - 1], NULL);
		pl_core_drop_step(env, r, path->hop_count > 0 ? &hop : NULL);
	}
	if (pl_core_flow_counts(r))
		pl_core_flow_step(env, r, hash);
	if (__builtin_expect(pl_core_delay_counts(rules, r), 0))
		pl_core_delay_step(env, r, &hop, path->latency_ns);
	if (rules->flags & PL_CORE_KEEP_AGGREGATES)
		pl_core_route_step(env, r, path->latency_ns);
}

static void chunk(struct pl_detect *det, const struct pl_record_batch *batch, uint32_t first,
	uint32_t n, uint64_t now_ns)
{
	struct pl_core_env *env = &det->env;

	for (uint32_t i = 0; i < n; i++) {
		report_of(&det->reports[i], &batch->paths[first + i], now_ns);
		if (!pl_core_flow_counts(&det->reports[i]))
			continue;
		det->hashes[i] = pl_core_flow_hash(&env->rules, &det->reports[i].flow);
		pl_flow_fetch_set(env, det->hashes[i]);
	}
	/* Flows are not all prefetched at once, because a core can have only a few cache misses
	 * under way. */
	for (uint32_t i = 0; i < n + LOOK; i++) {
		if (i < n && pl_core_flow_counts(&det->reports[i]))
			pl_flow_fetch(env, det->hashes[i]);
		if (i >= LOOK)
			step(det, batch, first + i - LOOK, &det->reports[i - LOOK],
				det->hashes[i - LOOK]);
	}
}

void pl_detect_batch(struct pl_detect *det, const struct pl_record_batch *batch, uint64_t now_ns,
	struct pl_event_batch *out)
{
	const uint32_t most = det->env.turn != NULL ? TURN : PL_DETECT_CHUNK;

	det->env.out = out;
	for (uint32_t i = 0; i < batch->n_paths; i += most) {
		pl_tables_turn(&det->env);
		chunk(det, batch, i, batch->n_paths - i < most ? batch->n_paths - i : most, now_ns);
		pl_tables_turn_end(&det->env);
	}
}

/* --- report loss ------------------------------------------------------------------------------ */

/* Notes the trouble of an exporter's numbers. An exporter on several receive queues comes here from
 * each, and counts once. */
static void hear_of(struct pl_detect *det, struct exporter_cell *x,
	const struct pl_exporter *exporter, uint64_t now_ns)
{
	if (x->looked_ns != now_ns) {
		x->trouble_before = x->trouble;
		x->trouble = det->uncounted;
		x->unsequenced = false;
	}
	x->trouble += exporter->skipped + exporter->reordered + exporter->restarts;
	x->unsequenced |= exporter->unsequenced || exporter->shared;
	x->last = *exporter;
	x->looked_ns = now_ns;
}

/* Returns the cell of an exporter, made when new, whatever the rules are: after a change of them
 * present events must end, and what was lost before is no event. NULL: there is no room. */
static struct exporter_cell *cell_of(struct pl_detect *det, const struct pl_exporter *exporter)
{
	struct pl_core_exporter_key key = {
		.addr = exporter->addr, .node = exporter->node, .hw_id = exporter->hw_id
	};
	uint64_t hash = pl_hash(&key, sizeof(key), det->seed);
	uint32_t cell = pl_cells_find(&det->exporters, hash, &key, sizeof(key));
	struct exporter_cell *x;

	if (cell != PL_CELL_NONE)
		return pl_cells_at(&det->exporters, cell);
	cell = pl_cells_insert(&det->exporters, hash, &key, sizeof(key));
	if (cell == PL_CELL_NONE) {
		det->env.counters.full[PL_CORE_T_exporter]++;
		return NULL;
	}
	x = pl_cells_at(&det->exporters, cell);
	if (exporter->late)
		pl_loss_pass(&x->loss, exporter);
	return x;
}

void pl_detect_exporter(struct pl_detect *det, const struct pl_exporter *exporter, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out)
{
	struct exporter_cell *x = cell_of(det, exporter);

	if (x == NULL)
		return;
	hear_of(det, x, exporter, now_ns);
	det->env.out = out;
	pl_loss_tell(&det->env, &x->loss, exporter, now_ns, ts_ns);
}

void pl_detect_exporters_over(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	struct exporter_cell *x;
	uint32_t pos = 0;

	det->env.out = out;
	while ((x = pl_cells_next(&det->exporters, &pos)) != NULL) {
		if (x->looked_ns == now_ns)
			continue;
		if (x->loss.open)
			pl_loss_tell(&det->env, &x->loss, &x->last, now_ns, ts_ns);
		if (!x->loss.open)
			pl_cells_remove(&det->exporters, pos - 1);
	}
}

void pl_detect_exporters(struct pl_detect *det, const struct pl_decode *decode, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out)
{
	struct pl_exporter exporter;

	for (uint32_t pos = 0; pl_decode_exporter(decode, &pos, &exporter);)
		pl_detect_exporter(det, &exporter, now_ns, ts_ns, out);
	pl_detect_exporters_over(det, now_ns, ts_ns, out);
}

void pl_detect_adopt(struct pl_detect *det, const struct pl_decode *decode, uint64_t now_ns,
	uint64_t ts_ns, struct pl_event_batch *out)
{
	const uint32_t on = det->env.rules.on;

	/* Losses that are not watched are counted, and are told neither now nor later. */
	det->env.rules.on = on & ~(1u << PL_EVENT_REPORT_LOSS);
	pl_detect_exporters(det, decode, now_ns, ts_ns, out);
	det->env.rules.on = on;
}

/* --- packets lost and out of order ------------------------------------------------------------ */

void pl_detect_unseen(struct pl_detect *det, uint64_t packets, bool counted)
{
	det->unseen_before = det->unseen;
	det->unseen = packets;
	det->uncounted = counted ? packets : 0;
}

static bool exporter_trouble(void *arg, const struct pl_core_exporter_key *exporter,
	uint64_t *ret_now, uint64_t *ret_before)
{
	static const struct pl_core_exporter_key none;
	const struct pl_detect *det = arg;
	uint64_t hash = pl_hash(exporter, sizeof(*exporter), det->seed);
	uint32_t cell = pl_cells_find(&det->exporters, hash, exporter, sizeof(*exporter));
	const struct exporter_cell *x;

	if (memcmp(exporter, &none, sizeof(none)) == 0) {
		*ret_now = det->unseen;
		*ret_before = det->unseen_before;
		return true;
	}
	if (cell == PL_CELL_NONE)
		return false;
	x = pl_cells_at(&det->exporters, cell);
	*ret_now = x->trouble;
	*ret_before = x->trouble_before;
	return !x->unsequenced;
}

void pl_detect_numbers(struct pl_detect *det, const struct pl_record_batch *batch, uint64_t now_ns)
{
	pl_flow_numbers_batch(&det->numbers, batch, now_ns);
}

void pl_detect_numbers_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	det->env.out = out;
	pl_flow_numbers_tick(&det->numbers, &det->env, exporter_trouble, det, now_ns, ts_ns);
}

const struct pl_flow_number_counters *pl_detect_number_counters(const struct pl_detect *det)
{
	return &det->numbers.counters;
}

void pl_detect_tick(
	struct pl_detect *det, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	det->env.out = out;
	pl_tables_tick(&det->env, &det->sweep, pl_detect_raised(det) > 0, now_ns, ts_ns);
	pl_nodes_hear(&det->env, &det->nodes, now_ns);
	pl_nodes_tell(&det->env, &det->nodes, now_ns, ts_ns);
}
