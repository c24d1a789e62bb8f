/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports to events, over records as a decoder may give them. First byte: which rules. Then reports
 * of 8 bytes: flags, flow, path, step of time, three bytes of hop values, number of hops. What must
 * hold: cutting the stream into batches changes no event; begins and ends stand in pairs; what is
 * counted as told is what came; every table's account add up; at the end time alone brings all to
 * rest.
 */
#include "detect/events.h"
#include "fuzz.h"

enum { EVENTS = 65536, REPORTS = 512, HOPS = 8 };

static struct pl_record_batch batch;
static struct pl_event_batch first, second;

static struct pl_detect_options rules(uint8_t which)
{
	struct pl_detect_options o = { .path_change = true,
		.packet_drop = true,
		.loop = (which & 1) != 0,
		.flow_start = (which & 2) != 0,
		.flow_end = (which & 2) != 0,
		.queue_depth = { .on = true, .threshold = 100 },
		.hop_latency = { .on = (which & 4) != 0,
			.threshold = 50,
			.relative = 50,
			.anomaly = true,
			.begin_hold_ns = 1000 },
		.tx_util = { .step = 10, .step_bits = 4, .step_first = (which & 8) != 0 },
		.flow_latency = { .on = true, .threshold = 50, .step = 3 },
		.link_latency = { .anomaly = true, .anomaly_min = 5 },
		.microburst = { .on = (which & 16) != 0, .threshold = 80, .flows = 2 },
		.learn = { .window_ns = 1000000, .windows = 2, .shift = 1 },
		.node_silent_ns = (which & 32) != 0 ? 1000000000 : 0,
		.keepalive_ns = (which & 64) != 0 ? 1000000000 : 0,
		.aggregates = (which & 128) != 0,
		.limit_burst = 3 };

	return o;
}

static void add(const uint8_t *b, uint64_t ts_ns)
{
	const uint32_t has = PL_HOP_HAS_node | PL_HOP_HAS_egress_port | PL_HOP_HAS_queue_depth |
			     PL_HOP_HAS_hop_latency_ns | PL_HOP_HAS_tx_util;
	struct pl_path *p = &batch.paths[batch.n_paths];

	*p = (struct pl_path){ .ts_ns = ts_ns,
		.flags = b[0] & 0x3f,
		.sport = b[1],
		.path_id = b[2] % 4 + 1u,
		.node = b[2],
		.hop_count = b[7] % (HOPS + 1),
		.report_id = ts_ns,
		.present = PL_PATH_HAS_src | PL_PATH_HAS_sport | PL_PATH_HAS_path_id };
	batch.first_hop[batch.n_paths++] = batch.n_hops;
	for (unsigned int i = 0; i < p->hop_count; i++)
		batch.hops[batch.n_hops++] = (struct pl_hop){ .node = (b[2] + i * (b[7] / 9u)) % 16,
			.index = (uint8_t)i,
			.egress_port = b[4] % 4,
			.queue_depth = b[4],
			.hop_latency_ns = b[5],
			.tx_util = b[6],
			.link_latency_ns = i > 0 ? b[5] : 0,
			.present =
				has | (i > 0 ? PL_HOP_HAS_clock | PL_HOP_HAS_link_latency_ns : 0) };
}

/* The whole stream, cut after `cut` reports or after each; ticks at the same times whatever the
 * cut. */
static void run(struct pl_detect *det, struct pl_event_batch *out, const uint8_t *data, size_t size,
	bool cut)
{
	uint64_t now_ns = 10000000000, ticked_ns = now_ns;
	static const uint64_t steps_ns[4] = { 0, 1000, 700000, 300000000 };

	out->n = 0;
	pl_record_batch_clear(&batch);
	for (size_t i = 0; i + 8 <= size && i / 8 < REPORTS; i += 8) {
		uint64_t step = steps_ns[data[i + 3] % 4] * (data[i + 3] / 4);

		if (step > 0 || cut) {
			pl_detect_batch(det, &batch, now_ns, out);
			pl_record_batch_clear(&batch);
		}
		now_ns += step;
		if (now_ns - ticked_ns >= 100000000) {
			ticked_ns = now_ns;
			pl_detect_tick(det, now_ns, now_ns, out);
		}
		add(data + i, now_ns + i);
	}
	pl_detect_batch(det, &batch, now_ns, out);
	pl_detect_tick(det, now_ns + 1000000000, 1, out);
	for (unsigned int i = 0; i < 4; i++)
		pl_detect_tick(det, now_ns + UINT64_C(1000000000000) * (i + 1), 1, out);
}

static void account(const struct pl_detect *det, const struct pl_event_batch *out)
{
	const struct pl_core_counters *c = pl_detect_counters(det);
	uint64_t told[PL_EVENT_KIND_MAX] = { 0 };
	int64_t open[PL_EVENT_KIND_MAX] = { 0 };

	for (uint32_t i = 0; i < out->n; i++) {
		const struct pl_event *e = &out->events[i];

		must(e->event < PL_EVENT_KIND_MAX && e->phase < PL_PHASE_MAX);
		told[e->event]++;
		if (e->event == PL_EVENT_NODE_SILENT)
			continue; /* what is silent for ever has no end */
		open[e->event] += e->phase == PL_PHASE_BEGIN;
		open[e->event] -= e->phase == PL_PHASE_END;
		must(open[e->event] >= 0);
	}
	for (unsigned int k = 0; k < PL_EVENT_KIND_MAX; k++) {
		must(told[k] == c->events[k]);
		must(open[k] == 0);
	}
	must(c->raised == c->ended && c->events_dropped == 0);
	for (unsigned int t = 0; t < PL_CORE_T_MAX; t++)
		must(c->made[t] == pl_detect_present(det, t) + c->aged[t] + c->evicted[t]);
	must(pl_detect_flows(det) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_detect *a = NULL, *b = NULL;
	struct pl_detect_options o;

	if (size < 9)
		return 0;
	if (batch.paths == NULL) {
		must(pl_record_batch_init(&batch, REPORTS, REPORTS * HOPS) == 0);
		must(pl_event_batch_init(&first, EVENTS) == 0);
		must(pl_event_batch_init(&second, EVENTS) == 0);
	}
	o = rules(data[0]);
	o.max_flows = o.max_queues = o.max_links =
		4096; /* room for all: no choice depends on the secret */
	must(pl_detect_new(&a, &o) == 0 && pl_detect_new(&b, &o) == 0);
	run(a, &first, data + 1, size - 1, false);
	run(b, &second, data + 1, size - 1, true);
	account(a, &first);
	account(b, &second);
	must(first.n == second.n);
	must(memcmp(first.events, second.events, first.n * sizeof(first.events[0])) == 0);
	pl_detect_free(a);
	pl_detect_free(b);
	return 0;
}
