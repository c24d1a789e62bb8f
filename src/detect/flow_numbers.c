/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds lost and overtaken packets of flows by their numbers. */
#include "detect/flow_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/detect_steps.h"

/* Sequence of numbers of a flow. No padding: it is hashed. */
struct scope {
	struct pl_flow_key flow;
	uint32_t flow_id; /* flow id of direct export */
	/* IOAM namespace if the record has one: flow ids and numbers belong to it */
	uint16_t space;
	uint8_t mode; /* enum pl_mode; a trace has the numbers of direct export, or end to end */
	uint8_t has_space; /* 1: space is set */
};
_Static_assert(sizeof(struct scope) == sizeof(struct pl_flow_key) + 8, "no padding");

/* Something that goes on. */
struct episode {
	uint64_t before, begun_ns, grown_ns;
	bool open;
};

struct numbered_flow {
	uint64_t id[2]; /* hash of its scope */
	uint64_t flow_hash;
	struct pl_flow_key flow;
	/* exporter of the last report; all zero: packets, not reports */
	struct pl_core_exporter_key exporter;
	struct pl_sequence seq;
	uint64_t heard_ns;
	uint32_t share;
	/* values at the last check */
	uint64_t reports, missing, overtaken, duplicates, restarts;
	uint64_t trouble; /* trouble of the exporter, before the flow's last report */
	uint32_t highest, mask;
	bool doubt;                    /* trouble before the last check */
	bool exporter_changed;         /* since the last check */
	uint64_t lost, late_packets;   /* certain cases */
	struct episode loss, disorder; /* events of lost and late_packets */
};

#define GONE_MAX 64 /* flows between two looks */
/* When a source begins its numbers again, that is a restart, and not the loss of two thousand
 * million packets. */
#define GAP_MAX  (UINT32_C(1) << 24)

int pl_flow_numbers_init(struct pl_flow_numbers *f, uint32_t max)
{
	*f = (struct pl_flow_numbers){ .seed = pl_hash_seed() };
	f->gone = calloc(GONE_MAX, sizeof(*f->gone));
	if (f->gone == NULL || pl_cells_init(&f->cells, max, sizeof(struct numbered_flow)) < 0)
		return -ENOMEM;
	return pl_shares_init(&f->shares, max);
}

void pl_flow_numbers_done(struct pl_flow_numbers *f)
{
	pl_cells_done(&f->cells);
	pl_shares_done(&f->shares);
	free(f->gone);
}

uint64_t pl_flow_numbers_memory(uint32_t max)
{
	return pl_cells_memory(max, sizeof(struct numbered_flow)) + pl_shares_memory(max) +
	       GONE_MAX * sizeof(struct numbered_flow);
}

/* --- reports ---------------------------------------------------------------------------------- */

/* Returns the width of the numbers; 0 when the report says nothing about losses. */
static uint32_t mask_of(const struct pl_path *path)
{
	if ((path->present & PL_PATH_HAS_flow_seq) == 0 || (path->present & PL_PATH_HAS_src) == 0 ||
		(path->flags & (PL_FLAG_COPY | PL_FLAG_DROPPED | PL_FLAG_INTERMEDIATE)) != 0)
		return 0;
	switch (path->mode) {
	case PL_MODE_MD:
		if ((path->present & PL_PATH_HAS_dialect) == 0)
			return 0;
		/* In v2.1 hosts set the numbers (wire/int.h). */
		return path->dialect == PL_DIALECT_GEANT ? UINT16_MAX
		       : path->int_version == PL_INT_V20 ? UINT32_MAX
							 : 0;
	case PL_MODE_IOAM_TRACE:
	case PL_MODE_IOAM_E2E:
	case PL_MODE_IOAM_DEX:
		return UINT32_MAX;
	default:
		return 0;
	}
}

static void scope_of(struct scope *s, const struct pl_path *path)
{
	struct pl_flow_key *k = &s->flow;

	*s = (struct scope){ .mode = path->mode };
	if (path->mode == PL_MODE_IOAM_TRACE)
		s->mode = path->present & PL_PATH_HAS_flow_id ? PL_MODE_IOAM_DEX : PL_MODE_IOAM_E2E;
	k->src = path->src;
	k->dst = path->dst;
	k->proto = path->proto;
	if (path->present & PL_PATH_HAS_sport) {
		k->sport = path->sport;
		k->dport = path->dport;
		k->has |= PL_FLOW_KEY_HAS_PORTS;
	}
	if (path->present & PL_PATH_HAS_vlan) {
		k->vlan = path->vlan;
		k->has |= PL_FLOW_KEY_HAS_VLAN;
	}
	if (path->present & PL_PATH_HAS_vni) {
		k->vni = path->vni;
		k->has |= PL_FLOW_KEY_HAS_VNI;
	}
	if (s->mode == PL_MODE_IOAM_DEX && (path->present & PL_PATH_HAS_flow_id))
		s->flow_id = path->flow_id;
	if (path->present & PL_PATH_HAS_ioam_namespace) {
		s->space = pl_path_get_ioam_namespace(path);
		s->has_space = 1;
	}
}

static uint32_t find(const struct pl_flow_numbers *f, const struct scope *s, uint64_t ret_id[2])
{
	XXH128_hash_t h = XXH3_128bits_withSeed(s, sizeof(*s), f->seed);

	ret_id[0] = h.low64;
	ret_id[1] = h.high64;
	return pl_cells_find(&f->cells, h.low64, ret_id, 2 * sizeof(ret_id[0]));
}

static struct pl_share_entry entry_of(const void *arg, const void *cell)
{
	const struct numbered_flow *x = cell;

	(void)arg;
	return (struct pl_share_entry){
		.share = x->share, .seen_ns = x->heard_ns, .idle = !x->seq.proven
	};
}

static void forget(struct pl_flow_numbers *f, uint32_t cell)
{
	pl_shares_give(&f->shares, ((struct numbered_flow *)pl_cells_at(&f->cells, cell))->share);
	pl_cells_remove(&f->cells, cell);
}

/* Room for one more flow of the source. */
static bool make_room(struct pl_flow_numbers *f, const struct pl_addr *source)
{
	const struct numbered_flow *x;
	uint32_t cell;

	if (pl_cells_count(&f->cells) < f->cells.cap)
		return true;
	cell = pl_shares_choose(&f->shares, &f->cells, &f->hand, pl_shares_held(&f->shares, source),
		false, entry_of, NULL);
	if (cell == PL_CELL_NONE)
		return false;
	x = pl_cells_at(&f->cells, cell);
	if (x->loss.open || x->disorder.open) {
		if (f->n_gone == GONE_MAX)
			return false;
		f->gone[f->n_gone++] = *x;
	}
	forget(f, cell);
	f->counters.displaced++;
	return true;
}

static struct pl_addr source_of(const struct pl_path *path)
{
	return pl_addr_source(
		(path->present & PL_PATH_HAS_report_version) != 0 ? &path->exporter : &path->src);
}

static struct numbered_flow *flow_of(struct pl_flow_numbers *f, const struct pl_path *path)
{
	const struct pl_addr source = source_of(path);
	struct numbered_flow *x;
	struct scope s;
	uint64_t id[2];
	uint32_t cell;

	scope_of(&s, path);
	cell = find(f, &s, id);
	if (cell != PL_CELL_NONE)
		return pl_cells_at(&f->cells, cell);
	if (!make_room(f, &source)) {
		f->counters.full++;
		return NULL;
	}
	cell = pl_cells_insert(&f->cells, id[0], id, sizeof(id));
	x = pl_cells_at(&f->cells, cell);
	x->share = pl_shares_take(&f->shares, &source);
	x->flow = s.flow;
	x->flow_hash = pl_hash(&s.flow, sizeof(s.flow), f->seed);
	return x;
}

static void step(
	struct pl_flow_numbers *f, const struct pl_path *path, uint32_t mask, uint64_t now_ns)
{
	const bool report = (path->present & PL_PATH_HAS_report_version) != 0;
	struct pl_core_exporter_key exporter;
	struct numbered_flow *x = flow_of(f, path);

	f->counters.packets++;
	if (x == NULL)
		return;
	memset(&exporter, 0, sizeof(exporter));
	if (report) {
		exporter.addr = path->exporter;
		exporter.node = path->report_version != 0 ? path->node : 0;
		exporter.hw_id = path->hw_id;
	}
	x->heard_ns = now_ns;
	x->mask = mask;
	if (memcmp(&x->exporter, &exporter, sizeof(exporter)) != 0) {
		x->exporter = exporter;
		x->exporter_changed = true;
	}
	if (!pl_sequence_next(&x->seq, path->flow_seq, mask))
		pl_sequence_step(&x->seq, path->flow_seq & mask, mask, GAP_MAX);
}

void pl_flow_numbers_batch(
	struct pl_flow_numbers *f, const struct pl_record_batch *batch, uint64_t now_ns)
{
	for (uint32_t i = 0; i < batch->n_paths; i++) {
		uint32_t mask = mask_of(&batch->paths[i]);

		if (mask != 0 && (batch->paths[i].flags & PL_FLAG_UNPROVEN) == 0)
			step(f, &batch->paths[i], mask, now_ns);
	}
}

/* --- looks ------------------------------------------------------------------------------------ */

static bool tell(struct pl_core_env *env, const struct numbered_flow *x, const struct episode *e,
	enum pl_event_kind kind, enum pl_event_phase phase, uint64_t total, uint64_t ts_ns)
{
	static const struct pl_addr none;
	struct pl_event *v = pl_core_event(env, kind, phase, ts_ns);

	if (v == NULL)
		return false;
	pl_core_cite_flow(v, &x->flow);
	if (memcmp(&x->exporter.addr, &none, sizeof(none)) != 0) {
		v->exporter = x->exporter.addr;
		v->present |= PL_EVENT_HAS_exporter;
	}
	v->value = total - e->before;
	v->present |= PL_EVENT_HAS_value;
	if (phase == PL_PHASE_END)
		pl_event_set_duration_ns(v, pl_core_elapsed(e->grown_ns, e->begun_ns));
	pl_env_tell(env, v);
	return true;
}

/* Begins or ends an event of a flow. total: packets so far. over: no more will come. */
static void episode_step(struct pl_core_env *env, const struct numbered_flow *x, struct episode *e,
	enum pl_event_kind kind, uint64_t total, bool grown, bool over, uint64_t now_ns,
	uint64_t ts_ns)
{
	const bool watched = pl_core_watches(&env->rules, kind) != 0;

	if (!e->open) {
		if (!watched)
			e->before = total;
		if (total == e->before || !tell(env, x, e, kind, PL_PHASE_BEGIN, total, ts_ns))
			return;
		e->open = true;
		e->begun_ns = e->grown_ns = now_ns;
	} else if (grown) {
		e->grown_ns = now_ns;
	}
	if (watched && !over && pl_core_elapsed(now_ns, e->grown_ns) < env->rules.loss_hold_ns)
		return;
	if (!tell(env, x, e, kind, PL_PHASE_END, total, ts_ns))
		return;
	e->open = false;
	e->before = total;
}

/* True when numbers that the flow lacks may be those of lost reports, or of packets for which this
 * machine had no room. */
static bool doubtful(struct numbered_flow *x, pl_exporter_trouble_fn *trouble, void *arg)
{
	uint64_t now = 0, before = 0;
	bool known, doubt;

	known = trouble(arg, &x->exporter, &now, &before);
	if (x->reports == 0) /* all reports came since the last check */
		doubt = !known || now != before;
	else
		doubt = !known || x->exporter_changed || now != x->trouble;
	x->trouble = before;
	x->exporter_changed = false;
	return doubt;
}

/* Increase of a count since the last check; 0 when it fell. */
static uint64_t grow(uint64_t *seen, uint64_t now)
{
	uint64_t by = now > *seen ? now - *seen : 0;

	*seen = now;
	return by;
}

static void look(struct pl_flow_numbers *f, struct pl_core_env *env, struct numbered_flow *x,
	pl_exporter_trouble_fn *trouble, void *arg, bool over, uint64_t now_ns, uint64_t ts_ns)
{
	const bool moved = x->seq.reports != x->reports;
	const uint32_t young =
		pl_sequence_gaps(x->seq.seen, x->seq.span, (x->seq.highest - x->highest) & x->mask);
	const uint64_t missing = x->seq.lost > young ? x->seq.lost - young : 0;
	const bool doubt_before = x->doubt;
	uint64_t lost, late;

	if (moved)
		x->doubt = doubtful(x, trouble, arg);
	lost = grow(&x->missing, missing);
	late = grow(&x->overtaken, x->seq.reordered);
	f->counters.restarts += grow(&x->restarts, x->seq.restarts);
	f->counters.duplicates += grow(&x->duplicates, x->seq.duplicates);
	x->reports = x->seq.reports;
	x->highest = x->seq.highest;
	if (x->doubt || doubt_before) {
		f->counters.unsure += lost + late;
		lost = late = 0;
	}
	x->lost += lost;
	x->late_packets += late;
	f->counters.lost += lost;
	f->counters.reordered += late;
	if (!moved)
		x->doubt = false;
	episode_step(
		env, x, &x->loss, PL_EVENT_PACKET_LOSS, x->lost, lost > 0, over, now_ns, ts_ns);
	episode_step(env, x, &x->disorder, PL_EVENT_REORDERING, x->late_packets, late > 0, over,
		now_ns, ts_ns);
}

/* Ends the events of evicted flows; events that do not fit the batch wait. */
static void tell_gone(
	struct pl_flow_numbers *f, struct pl_core_env *env, uint64_t now_ns, uint64_t ts_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n_gone; i++) {
		struct numbered_flow *x = &f->gone[i];

		if (x->loss.open)
			episode_step(env, x, &x->loss, PL_EVENT_PACKET_LOSS, x->lost, false, true,
				now_ns, ts_ns);
		if (x->disorder.open)
			episode_step(env, x, &x->disorder, PL_EVENT_REORDERING, x->late_packets,
				false, true, now_ns, ts_ns);
		if (x->loss.open || x->disorder.open)
			f->gone[kept++] = *x;
	}
	f->n_gone = kept;
}

void pl_flow_numbers_tick(struct pl_flow_numbers *f, struct pl_core_env *env,
	pl_exporter_trouble_fn *trouble, void *arg, uint64_t now_ns, uint64_t ts_ns)
{
	struct numbered_flow *x;
	uint32_t cell = 0;

	tell_gone(f, env, now_ns, ts_ns);
	while ((x = pl_cells_next(&f->cells, &cell)) != NULL) {
		bool over = pl_core_elapsed(now_ns, x->heard_ns) > env->rules.flow_idle_ns;

		look(f, env, x, trouble, arg, over, now_ns, ts_ns);
		if (over)
			forget(f, cell - 1);
	}
	f->counters.flows = pl_cells_count(&f->cells);
}

static void add_to(struct pl_flow_seen *seen, const struct numbered_flow *x)
{
	seen->numbered = true;
	seen->lost += x->lost;
	seen->reordered += x->late_packets;
}

void pl_flow_numbers_add(const struct pl_flow_numbers *f, struct pl_flow_seen *seen, uint32_t n)
{
	const struct numbered_flow *x;
	uint32_t cell = 0;

	if (f->cells.cap == 0 || pl_cells_count(&f->cells) == 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		seen[i].hash = pl_hash(&seen[i].key, sizeof(seen[i].key), f->seed);
	while ((x = pl_cells_next(&f->cells, &cell)) != NULL) {
		for (uint32_t i = 0; i < n; i++) {
			if (seen[i].hash == x->flow_hash &&
				memcmp(&seen[i].key, &x->flow, sizeof(x->flow)) == 0)
				add_to(&seen[i], x);
		}
	}
}
