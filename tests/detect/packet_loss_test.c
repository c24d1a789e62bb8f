/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets lost and out of order by the flows' own numbers, told apart from what happened to the
 * reports about them. The network is that of the generator as GEANT's programs report it; it knows
 * what it dropped, lost and turned around.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/test.h"
#include "detect/events.h"
#include "gen/event.h"
#include "gen/gen.h"
#include "gen/preset.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define START  (UINT64_C(1700000000) * SECOND)

struct run {
	struct pl_gen_counters made;
	struct pl_flow_number_counters got;
	uint64_t begins, ends, told,
		others; /* events of packet_loss; the sum of what its ends say */
	uint64_t disorders;
	struct pl_flow_seen flows[16];
	uint32_t n_flows;
};

static void take_events(struct run *r, struct pl_event_batch *out)
{
	for (uint32_t i = 0; i < out->n; i++) {
		const struct pl_event *e = &out->events[i];

		if (e->event == PL_EVENT_REORDERING) {
			r->disorders++;
		} else if (e->event != PL_EVENT_PACKET_LOSS) {
			r->others++;
		} else {
			r->begins += e->phase == PL_PHASE_BEGIN;
			r->ends += e->phase == PL_PHASE_END;
			r->told += e->phase == PL_PHASE_END ? e->value : 0;
		}
	}
	out->n = 0;
}

static void no_flush(struct pl_record_batch *batch, void *arg)
{
	(void)arg;
	pl_record_batch_clear(batch);
}

/* Half a minute of it, then silence until every flow is over. */
static void run(struct run *r, struct pl_gen_cfg cfg, const char *event)
{
	struct pl_detect_options o = { .packet_loss = true, .reordering = true };
	const struct pl_profile profile = { .hints = { .dialect = cfg.dialect },
		.dscp_set = true,
		.dscp_value = cfg.dscp,
		.dscp_mask = 0x3f };
	struct pl_decode_options d = { .profiles = &profile, .n_profiles = 1, .any_port = true };
	static struct pl_batch batch;
	struct pl_record_batch records;
	struct pl_event_batch out;
	struct pl_decode *decode;
	struct pl_detect *detect;
	struct pl_gen *gen;
	int n = 0;

	*r = (struct run){ 0 };
	cfg.start_ns = START;
	cfg.udp = true;
	cfg.seed = 5;
	if (event != NULL && pl_gen_event_parse(&cfg.events[cfg.n_events++], event, NULL) < 0)
		abort();
	if (pl_gen_new(&gen, &cfg, NULL) < 0 || pl_decode_new(&decode, &d) < 0 ||
		pl_detect_new(&detect, &o) < 0 || pl_event_batch_init(&out, 1024) < 0 ||
		pl_record_batch_init(&records, 256, 256 * PL_BATCH_HOPS_MIN) < 0)
		abort();
	records.flush = no_flush;
	for (uint64_t at = 0; at < 120 * SECOND; at += 100 * MS) {
		while (n >= 0 && (n = pl_gen_next(gen, START + at, &batch)) > 0) {
			pl_record_batch_clear(&records);
			pl_decode_batch(decode, &batch, &records);
			pl_detect_batch(detect, &records, SECOND + at, &out);
			pl_detect_numbers(detect, &records, SECOND + at);
		}
		if (at == 29 * SECOND)
			r->n_flows = pl_detect_top_flows(detect, r->flows, 16, 0);
		pl_detect_tick(detect, SECOND + at, START + at, &out);
		if (at % SECOND == 0) {
			pl_detect_exporters(detect, decode, SECOND + at, START + at, &out);
			pl_detect_numbers_tick(detect, SECOND + at, START + at, &out);
		}
		take_events(r, &out);
	}
	r->made = *pl_gen_counters(gen);
	r->got = *pl_detect_number_counters(detect);
	pl_record_batch_done(&records);
	pl_event_batch_done(&out);
	pl_detect_free(detect);
	pl_decode_free(decode);
	pl_gen_free(gen);
}

static struct pl_gen_cfg geant(double rate, uint32_t flows)
{
	struct pl_gen_cfg cfg;

	if (pl_gen_preset_set(&cfg, "geant", NULL) < 0)
		abort();
	cfg.rate = rate;
	cfg.flows = flows;
	cfg.duration_ns = 30 * SECOND;
	return cfg;
}

static void quiet(const char *name, const struct run *r)
{
	eq(r->begins + r->ends + r->disorders + r->others, 0, "%s: no event", name);
	eq(r->got.lost, 0, "%s: nothing is lost", name);
	eq(r->got.reordered, 0, "%s: nothing is out of order", name);
}

int main(void)
{
	struct pl_gen_cfg cfg = geant(1000, 10);
	struct run r;

	run(&r, cfg, NULL);
	quiet("all is well", &r);
	eq(r.got.packets, 30000, "all is well: every packet has a number");
	eq(r.got.unsure, 0, "all is well: no doubt");
	eq(r.got.flows, 0, "all is well: flows that are over are forgotten");
	ok(r.n_flows == 10 && r.flows[0].numbered && r.flows[9].numbered,
		"all is well: the flows are known as numbered ones");

	run(&r, cfg, "drop@5s+5s:ratio=0.2");
	ok(r.made.dropped > 300, "drops: %" PRIu64 " packets", r.made.dropped);
	eq(r.got.lost, r.made.dropped, "drops: the numbers lack as many");
	eq(r.got.unsure, 0, "drops: no doubt");
	ok(r.begins > 0 && r.begins <= 10, "drops: told once per flow: %" PRIu64 " times",
		r.begins);
	eq(r.ends, r.begins, "drops: and that it is over");
	eq(r.told, r.made.dropped, "drops: the ends say how many");
	eq(r.got.reordered + r.disorders + r.others, 0, "drops: nothing else");
	for (uint32_t i = 0; i < r.n_flows; i++)
		r.told -= r.flows[i].lost;
	eq(r.told, 0, "drops: and so do the flows");

	cfg.loss = 0.05;
	run(&r, cfg, NULL);
	ok(r.made.lost > 1000, "lost reports: %" PRIu64, r.made.lost);
	quiet("lost reports", &r);
	ok(r.got.unsure > 1000, "lost reports: their packets are not accounted for: %" PRIu64,
		r.got.unsure);

	cfg.loss = 0;
	cfg.reorder = 0.05;
	run(&r, cfg, NULL);
	ok(r.made.reordered > 1000, "reports overtaken: %" PRIu64, r.made.reordered);
	quiet("reports overtaken", &r);

	/* 16 bits, once around and more. */
	cfg = geant(4000, 1);
	run(&r, cfg, NULL);
	quiet("around", &r);
	eq(r.got.restarts + r.got.unsure + r.got.duplicates, 0, "around: no restart");

	/* Host-INT's numbers have gaps by design: it reports now and then. */
	if (pl_gen_preset_set(&cfg, "host-int", NULL) < 0)
		abort();
	cfg.flows = 10;
	cfg.duration_ns = 30 * SECOND;
	run(&r, cfg, NULL);
	eq(r.got.packets, 0, "Host-INT: its numbers are not followed");
	return pl_test_done();
}
