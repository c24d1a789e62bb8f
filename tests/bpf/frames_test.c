/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection without records against detection with them: the same packets, packet by packet, the same rules; event by
 * event equal but for the report id, which only a record has.
 *
 * frames_test [REPORTS [SEED]]
 */
#include <inttypes.h>

#include "base/test.h"
#include "detect/frames.h"
#include "forms.h"

#define MS UINT64_C(1000000)

static struct pl_detect *lean_det, *record_det;
static struct pl_decode *decode;
static struct pl_lean lean;
static struct pl_record_batch records;
static struct pl_event_batch lean_events, record_events;
static struct pl_frames_counters counters;
static uint64_t now_ns = 1000 * MS, n_events;

static void no_flush(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	pl_record_batch_clear(b);
}

static void by_records(
	struct pl_detect *det, const struct pl_batch *one, struct pl_event_batch *out)
{
	pl_record_batch_clear(&records);
	pl_decode_batch(decode, one, &records);
	pl_detect_batch(det, &records, now_ns, out);
}

static bool same_events(void)
{
	bool good = lean_events.n == record_events.n;

	if (!good)
		printf("# %u events without records, %u with\n", lean_events.n, record_events.n);
	for (uint32_t i = 0; good && i < lean_events.n; i++) {
		struct pl_event a = lean_events.events[i], b = record_events.events[i];

		/* A report that was handed up has an id on both sides, though not the same. */
		a.report_id = b.report_id = 0;
		a.present &= ~(uint32_t)PL_EVENT_HAS_report_id;
		b.present &= ~(uint32_t)PL_EVENT_HAS_report_id;
		good = memcmp(&a, &b, sizeof(a)) == 0;
		if (!good)
			printf("# events %u: kinds %u and %u\n", i, a.event, b.event);
	}
	n_events += lean_events.n;
	lean_events.n = record_events.n = 0;
	return good;
}

static bool one_packet(const struct pl_packet *pkt, struct pl_rng *rng)
{
	static struct pl_batch one = { .n = 1 };
	bool settled[1];

	one.pkts[0] = *pkt;
	now_ns += form_pick(rng, 1000) == 0 ? 100 * MS : form_pick(rng, 20000);
	by_records(record_det, &one, &record_events);
	pl_detect_frames(lean_det, &lean, &one, now_ns, settled, &counters, &lean_events);
	if (!settled[0])
		by_records(lean_det, &one, &lean_events);
	if (form_pick(rng, 500) == 0) {
		pl_detect_tick(record_det, now_ns, pkt->ts_ns, &record_events);
		pl_detect_tick(lean_det, now_ns, pkt->ts_ns, &lean_events);
	}
	return same_events();
}

static bool run_form(const struct pl_gen_cfg *cfg, struct pl_rng *rng, uint64_t *left)
{
	static struct pl_batch batch;
	struct pl_diag diag = { 0 };
	struct pl_gen *gen;
	bool good = true;

	if (pl_gen_new(&gen, cfg, &diag) < 0)
		return true;
	for (int i = 0; good && i < 6 && *left > 0; i++) {
		int n = pl_gen_next(gen, UINT64_MAX, &batch);

		for (int k = 0; good && k < n; k++) {
			good = one_packet(&batch.pkts[k], rng);
			*left -= *left > 0;
		}
		if (n <= 0)
			break;
	}
	pl_gen_free(gen);
	return good;
}

static struct pl_detect_options busy(void)
{
	struct pl_detect_level level = {
		.on = true, .threshold = 40, .step = 30, .step_first = true
	};
	struct pl_detect_options o;

	pl_detect_defaults(&o);
	o.report_loss = false; /* counted in different books */
	o.loop = o.flow_start = o.flow_end = true;
	o.queue_depth = o.tx_util = o.buffer_depth = level;
	level.threshold = 4000;
	level.step = 2000;
	o.hop_latency = o.link_latency = level;
	o.microburst.on = true;
	o.microburst.threshold = 50;
	o.microburst.flows = 4;
	o.flow_idle_ns = 500 * MS;
	o.max_flows = 2048;
	o.max_queues = 256;
	o.aggregates = true;
	o.limit_interval_ns = MS;
	return o;
}

int main(int argc, char **argv)
{
	uint64_t left = argc > 1 ? strtoull(argv[1], NULL, 0) : 150000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261121;
	const struct pl_decode_options options = { .max_exporters = 4096 };
	const struct pl_detect_options detect = busy();
	struct pl_gen_cfg cfg;
	struct pl_rng rng;
	bool good = true;

	if (pl_decode_new(&decode, &options) < 0 || pl_lean_init(&lean, &options) < 0 ||
		pl_record_batch_init(&records, 256, 4096) < 0 ||
		pl_event_batch_init(&lean_events, 65536) < 0 ||
		pl_event_batch_init(&record_events, 65536) < 0 ||
		pl_detect_new(&lean_det, &detect) < 0 || pl_detect_new(&record_det, &detect) < 0)
		return 1;
	records.flush = no_flush;
	pl_rng_seed(&rng, seed);
	printf("# seed %" PRIu64 "\n", seed);
	while (good && left > 0) {
		struct pl_diag diag = { 0 };

		form_random(&cfg, &rng);
		cfg.udp = form_pick(&rng, 4) == 0;
		if (form_pick(&rng, 4) == 0)
			(void)pl_malform_add_all(&cfg, 0.5, &diag);
		good = run_form(&cfg, &rng, &left);
	}
	ok(good, "the same events with records and without");
	ok(counters.settled > counters.packets / 4 && n_events > counters.settled / 50,
		"%" PRIu64 " packets, %" PRIu64 " settled, %" PRIu64 " events", counters.packets,
		counters.settled, n_events);
	pl_detect_free(lean_det);
	pl_detect_free(record_det);
	pl_event_batch_done(&lean_events);
	pl_event_batch_done(&record_events);
	pl_record_batch_done(&records);
	pl_lean_done(&lean);
	pl_decode_free(decode);
	return pl_test_done();
}
