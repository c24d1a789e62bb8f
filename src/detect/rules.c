/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts options, as people set them, into rules, as the steps of detection read them. */
#include <errno.h>

#include "detect/rules.h"

#define MS        ((uint64_t)1000000)
#define SECOND    (1000 * MS)
#define LIMIT_MAX (1U << 26)

void pl_detect_defaults(struct pl_detect_options *ret)
{
	*ret = (struct pl_detect_options){
		.path_change = true,
		.report_loss = true,
		.packet_drop = true,
		.packet_loss = true,
		.loop = true,
		.queue_depth = { .on = true, .threshold = 1000, .begin_hold_ns = 10 * MS },
		.hop_latency = { .on = true, .threshold = MS, .begin_hold_ns = 10 * MS },
	};
}

static void default_u64(uint64_t *value, uint64_t def)
{
	if (*value == 0)
		*value = def;
}

static void default_u32(uint32_t *value, uint32_t def)
{
	if (*value == 0)
		*value = def;
}

struct pl_detect_options pl_detect_with_defaults(const struct pl_detect_options *given)
{
	struct pl_detect_options o = *given;
	struct pl_detect_level *levels[] = { &o.queue_depth, &o.hop_latency, &o.link_latency,
		&o.tx_util, &o.buffer_depth, &o.flow_latency };

	default_u64(&o.limit_interval_ns, SECOND);
	default_u32(&o.limit_burst, 5);
	for (unsigned int i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		default_u64(&levels[i]->low, levels[i]->threshold / 2);
		default_u64(&levels[i]->end_hold_ns, SECOND);
		default_u64(&levels[i]->limit_interval_ns, o.limit_interval_ns);
		default_u32(&levels[i]->limit_burst, o.limit_burst);
	}
	default_u64(&o.microburst.max_ns, 10 * MS);
	default_u64(&o.learn.window_ns, SECOND);
	default_u32(&o.learn.windows, 30);
	default_u32(&o.learn.shift, 5);
	default_u32(&o.learn.deviations, 6);
	default_u64(&o.learn.end_hold_ns, 100 * MS);
	default_u32(&o.max_flows, 131072);
	default_u32(&o.max_queues, 4096);
	default_u32(&o.max_links, 4096);
	default_u32(&o.max_drops, 1024);
	default_u32(&o.max_exporters, 4096);
	default_u64(&o.flow_idle_ns, 60 * SECOND);
	default_u64(&o.idle_ns, 5 * SECOND);
	default_u64(&o.forget_ns, 600 * SECOND);
	default_u64(&o.loss_hold_ns, 10 * SECOND);
	default_u32(&o.sequence_gap_max, 65536);
	return o;
}

static bool level_good(const struct pl_detect_level *l)
{
	return l->low <= l->threshold && l->threshold < PL_CORE_NO_THRESHOLD && l->step_bits < 32 &&
	       l->relative <= 1000000 && l->step_relative <= 1000000 && l->limit_burst <= 1000000 &&
	       l->limit_interval_ns <= 3600 * SECOND;
}

static bool units_good(const struct pl_core_units *units)
{
	if (units->n > PL_CORE_UNITS)
		return false;
	for (uint32_t i = 0; i < units->n; i++) {
		const struct pl_core_unit *u = &units->of[i];

		if (u->first > u->last || u->queue_bytes > PL_CORE_UNIT_BYTES ||
			u->buffer_bytes > PL_CORE_UNIT_BYTES)
			return false;
	}
	return true;
}

static bool options_good(const struct pl_detect_options *o)
{
	return level_good(&o->queue_depth) && level_good(&o->hop_latency) &&
	       level_good(&o->link_latency) && level_good(&o->tx_util) &&
	       level_good(&o->buffer_depth) && level_good(&o->flow_latency) &&
	       o->max_flows <= LIMIT_MAX && o->max_queues <= LIMIT_MAX &&
	       o->max_links <= LIMIT_MAX && o->max_drops <= LIMIT_MAX &&
	       o->max_exporters <= LIMIT_MAX && o->limit_burst <= 1000000 &&
	       o->limit_interval_ns <= 3600 * SECOND &&
	       o->microburst.flows <= PL_CORE_BURST_FLOWS && o->learn.shift < 32 &&
	       o->learn.deviations <= 1000000 && units_good(&o->units);
}

/* Converts per cent to 65536ths. */
static uint32_t per_cent(uint32_t v)
{
	return (uint32_t)(((uint64_t)v * 65536 + 50) / 100);
}

static struct pl_core_quantity_rule quantity_rule(
	const struct pl_detect_level *l, const struct pl_detect_options *o)
{
	bool absolute = l->on && l->threshold > 0;
	struct pl_core_quantity_rule r = {
		.level = {
			.threshold = absolute ? l->threshold : PL_CORE_NO_THRESHOLD,
			.low = absolute ? l->low : PL_CORE_NO_THRESHOLD,
			.begin_hold_ns = l->begin_hold_ns,
			.end_hold_ns = l->end_hold_ns,
		},
		.odd = {
			.threshold = l->anomaly_min,
			.begin_hold_ns = o->learn.begin_hold_ns,
			.end_hold_ns = o->learn.end_hold_ns,
		},
		.relative = l->on ? per_cent(l->relative) : 0,
		.relative_min = l->relative_min,
		.odd_times = l->anomaly ? o->learn.deviations * 16 : 0,
		.step = l->step,
		.step_relative = per_cent(l->step_relative),
		.step_shift = (uint8_t)l->step_bits,
		.step_first = l->step_first,
	};

	r.learn = r.relative != 0 || r.odd_times != 0;
	r.on = absolute || r.learn || r.step != 0 || r.step_relative != 0 || r.step_shift != 0 ||
	       r.step_first != 0;
	return r;
}

static struct pl_core_limit_rule limit_rule(uint64_t interval_ns, uint32_t burst)
{
	return (struct pl_core_limit_rule){
		.interval_ns = interval_ns,
		.burst_ns = (burst - 1) * interval_ns,
	};
}

static void level_limit(
	struct pl_core_rules *r, enum pl_event_kind kind, const struct pl_detect_level *l)
{
	r->limit[kind] = limit_rule(l->limit_interval_ns, l->limit_burst);
}

static uint32_t on(bool it_is, enum pl_event_kind kind)
{
	return it_is ? UINT32_C(1) << kind : 0;
}

int pl_detect_rules(struct pl_core_rules *ret, const struct pl_detect_options *options)
{
	struct pl_detect_options o = pl_detect_with_defaults(options);
	struct pl_core_rules r = {
		.q = {
			[PL_CORE_Q_HOP_LATENCY] = quantity_rule(&o.hop_latency, &o),
			[PL_CORE_Q_QUEUE_DEPTH] = quantity_rule(&o.queue_depth, &o),
			[PL_CORE_Q_TX_UTIL] = quantity_rule(&o.tx_util, &o),
			[PL_CORE_Q_BUFFER_DEPTH] = quantity_rule(&o.buffer_depth, &o),
			[PL_CORE_Q_LINK_LATENCY] = quantity_rule(&o.link_latency, &o),
			[PL_CORE_Q_FLOW_LATENCY] = quantity_rule(&o.flow_latency, &o),
		},
		.flow_idle_ns = o.flow_idle_ns,
		.idle_ns = o.idle_ns,
		.forget_ns = o.forget_ns,
		.loss_hold_ns = o.loss_hold_ns,
		.node_silent_ns = o.node_silent_ns,
		.keepalive_ns = o.keepalive_ns,
		.burst_max_ns = o.microburst.max_ns,
		.burst_threshold =
			o.microburst.on ? o.microburst.threshold : PL_CORE_NO_THRESHOLD,
		.burst_flows = o.microburst.flows,
		.learn_window_ns = o.learn.window_ns,
		.learn_windows = o.learn.windows,
		.learn_shift = o.learn.shift,
		.sequence_gap_max = o.sequence_gap_max,
		.on = on(o.path_change, PL_EVENT_PATH_CHANGE) |
		      on(o.report_loss, PL_EVENT_REPORT_LOSS) |
		      on(o.packet_drop, PL_EVENT_PACKET_DROP) |
		      on(o.packet_loss, PL_EVENT_PACKET_LOSS) |
		      on(o.reordering, PL_EVENT_REORDERING) | on(o.loop, PL_EVENT_LOOP) |
		      on(o.flow_start, PL_EVENT_FLOW_START) | on(o.flow_end, PL_EVENT_FLOW_END) |
		      on(o.node_silent_ns > 0, PL_EVENT_NODE_SILENT) |
		      on(o.keepalive_ns > 0, PL_EVENT_KEEPALIVE),
		.flags = (o.aggregates ? PL_CORE_KEEP_AGGREGATES : 0) |
			 (o.prove ? PL_CORE_PROVE : 0) |
			 (o.aggregates || o.node_silent_ns > 0 ? PL_CORE_KEEP_PLACES : 0),
		.units = o.units,
	};

	if (!options_good(&o))
		return -EINVAL;
	for (unsigned int i = 0; i < PL_EVENT_KIND_MAX; i++)
		r.limit[i] = limit_rule(o.limit_interval_ns, o.limit_burst);
	level_limit(&r, PL_EVENT_HOP_LATENCY, &o.hop_latency);
	level_limit(&r, PL_EVENT_QUEUE_DEPTH, &o.queue_depth);
	level_limit(&r, PL_EVENT_TX_UTIL, &o.tx_util);
	level_limit(&r, PL_EVENT_BUFFER_DEPTH, &o.buffer_depth);
	level_limit(&r, PL_EVENT_LINK_LATENCY, &o.link_latency);
	level_limit(&r, PL_EVENT_FLOW_LATENCY, &o.flow_latency);
	if (o.microburst.on)
		r.q[PL_CORE_Q_QUEUE_DEPTH].on = 1;
	for (unsigned int i = 0; i < PL_CORE_Q_MAX; i++)
		r.watch |= r.q[i].on || (o.aggregates && i != PL_CORE_Q_FLOW_LATENCY) ? 1u << i : 0;
	*ret = r;
	return 0;
}

/* Keys fill sets unevenly, and a part of each set is for exporters that are not proven: of max
 * exporters in a table four times as large, three in a thousand find no room. */
static uint32_t exporters_room(uint32_t max)
{
	return max < UINT32_MAX / 4 ? 4 * max : max;
}

void pl_detect_entries(const struct pl_detect_options *options, uint32_t ret[PL_CORE_T_MAX])
{
	struct pl_detect_options o = pl_detect_with_defaults(options);

	for (unsigned int i = 0; i < PL_CORE_T_MAX; i++)
		ret[i] = PL_CORE_WAYS;
	ret[PL_CORE_T_place] = o.max_queues;
	ret[PL_CORE_T_gauge] = ret[PL_CORE_T_link] = o.max_links;
	ret[PL_CORE_T_flow] = o.max_flows;
	ret[PL_CORE_T_delay] = quantity_rule(&o.flow_latency, &o).on ? o.max_flows : PL_CORE_WAYS;
	ret[PL_CORE_T_drop] = o.max_drops;
	ret[PL_CORE_T_burst] = o.microburst.on ? 256 : PL_CORE_WAYS;
	if (o.numbers)
		ret[PL_CORE_T_exporter] = exporters_room(o.max_exporters);
	if (o.aggregates)
		ret[PL_CORE_T_route] = o.max_links;
}
