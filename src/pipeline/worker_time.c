/* SPDX-License-Identifier: BSD-2-Clause */
/* Drives detection by time: the host's, or that of a capture's packets. */
#include "pipeline/worker_parts.h"

#include <string.h>

#include "base/clock.h"

#define MS           (UINT64_C(1) * 1000000u)
#define TICK_NS      (100 * MS)
#define SLOW_TICK_NS (1000 * MS)
/* In a gap between packets of a capture, ticks are at most this part of the gap so far apart: a
 * second without packets takes ten ticks, a year a thousand. */
#define GAP_PART     128

static void begin_at(struct pl_worker *w, uint64_t rule_ns, uint64_t ts_ns)
{
	w->rule_ns = w->ticked_ns = w->slow_ticked_ns = rule_ns;
	w->rule_ts_ns = ts_ns;
}

void pl_worker_time(struct pl_worker *w, bool first)
{
	w->now_ns = pl_clock_mono_ns();
	w->ts_ns = pl_clock_real_ns();
	if (first)
		begin_at(w, w->now_ns, w->ts_ns);
	if (!w->replays) {
		w->rule_ns = w->now_ns;
		w->rule_ts_ns = w->ts_ns;
	}
}

/* Checks the numbers of exporters and flows at a time of the rules. */
static void look(struct pl_worker *w, uint64_t now_ns)
{
	const struct pl_engine *e = w->engine;

	if (pl_worker_follows(w))
		pl_detect_unseen(e->detect, pl_worker_unseen(w), false);
	if (!w->source.partial)
		pl_detect_exporters(e->detect, e->decode, now_ns, w->rule_ts_ns, &w->events);
	if (pl_worker_follows(w))
		pl_detect_numbers_tick(e->detect, now_ns, w->rule_ts_ns, &w->events);
}

void pl_worker_tick(struct pl_worker *w)
{
	const struct pl_engine *e = w->engine;

	if (w->rule_ns - w->ticked_ns >= TICK_NS) {
		w->ticked_ns = w->rule_ns;
		pl_detect_tick(e->detect, w->rule_ns, w->rule_ts_ns, &w->events);
	}
	if (w->rule_ns - w->slow_ticked_ns < SLOW_TICK_NS)
		return;
	w->slow_ticked_ns = w->rule_ns;
	look(w, w->rule_ns);
}

void pl_worker_last_tick(struct pl_worker *w)
{
	const struct pl_engine *e = w->engine;

	if (!w->source.partial && !w->replays)
		pl_detect_exporters(e->detect, e->decode, w->rule_ns, w->rule_ts_ns, &w->events);
	if (!w->replays)
		return;
	/* Nothing fills a gap behind the end of a capture, so that the second look need not wait
	 * for gaps that are new to the first. Each look has a time of its own: two at one time
	 * would add up, as those of several queues. */
	look(w, w->rule_ns + 1);
	look(w, w->rule_ns + 2);
}

/* Advances time to at_ns, never back: a capture may have packets out of order. */
static void pass_time(struct pl_worker *w, uint64_t at_ns)
{
	const uint64_t from_ns = w->ticked_ns;
	uint64_t step_ns = TICK_NS;

	if (!w->begun)
		begin_at(w, at_ns, at_ns);
	w->begun = true;
	while (w->rule_ns < at_ns) {
		w->rule_ns = at_ns - w->ticked_ns > step_ns ? w->ticked_ns + step_ns : at_ns;
		w->rule_ts_ns = w->rule_ns;
		pl_worker_tick(w);
		if ((w->ticked_ns - from_ns) / GAP_PART > step_ns)
			step_ns = (w->ticked_ns - from_ns) / GAP_PART;
	}
}

void pl_worker_replay(
	struct pl_worker *w, void (*take)(struct pl_worker *w, const struct pl_batch *packets))
{
	const struct pl_packet *pkts = w->packets.pkts;

	for (uint32_t i = 0; i < w->packets.n; i += w->part.n) {
		const uint64_t ms = pkts[i].ts_ns / MS;
		uint32_t n = 1;

		while (i + n < w->packets.n && pkts[i + n].ts_ns / MS == ms)
			n++;
		pass_time(w, ms * MS);
		w->part.n = n;
		memcpy(w->part.pkts, pkts + i, n * sizeof(*pkts));
		take(w, &w->part);
	}
}
