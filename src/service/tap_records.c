/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the records of a tap to its outputs, its consumer and the flow cache. */
#include "base/clock.h"
#include "flow/largest.h"
#include "flow/live.h"
#include "service/tap.h"

void pl_tap_service_give(
	struct pl_tap_service *t, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	if (n == 0)
		return;
	for (unsigned int i = 0; i < t->n_outs && kind == t->o->out; i++)
		t->outs[i]->driver->put(t->outs[i], records, n);
	if (t->o->print.records != NULL)
		t->o->print.records(t->o->print.arg, kind, records, n);
	t->records += kind == t->o->out ? n : 0;
}

/* Flow records may have times of any clock so far. */
void pl_tap_service_clock(struct pl_tap_service *t, enum pl_clock_kind clock)
{
	t->clocks |= 1u << clock;
	if (t->o->out == PL_FLAT_FLOW288)
		clock = pl_clock_of(t->clocks);
	if (clock == t->clock)
		return;
	t->clock = clock;
	for (unsigned int i = 0; i < t->n_outs; i++) {
		if (t->outs[i]->driver->clock != NULL)
			t->outs[i]->driver->clock(t->outs[i], clock);
	}
}

bool pl_tap_asked_for(const struct pl_tap_service *t, enum pl_flat_kind kind)
{
	return (t->o->kinds & 1u << kind) != 0;
}

void pl_tap_service_take_flows(void *arg, const struct pl_flow288 *records, uint32_t n)
{
	pl_tap_service_give(arg, PL_FLAT_FLOW288, records, n);
}

void pl_tap_service_packets(struct pl_tap_service *t, const struct pl_pkt96 *records, uint32_t n)
{
	if (pl_tap_asked_for(t, PL_FLAT_PKT96))
		pl_tap_service_give(t, PL_FLAT_PKT96, records, n);
	if (t->flows == NULL)
		return;
	if (!t->live) {
		pl_flow_cache_feed(t->flows, records, n);
		return;
	}
	/* Anybody can send a datagram, but not stamp a packet of this host. */
	pl_flow_cache_feed_live(t->flows, records, n, pl_clock_mono_ns(),
		t->receiving ? pl_clock_real_ns() + PL_FLOW_AHEAD_NS : UINT64_MAX);
	if (n > 0 && t->state != NULL)
		pl_flow_cache_came(t->flows, pl_flow_cache_clock(t->flows),
			pl_clock_read(CLOCK_BOOTTIME), t->clocks);
}

bool pl_tap_service_enough(const struct pl_tap_service *t)
{
	return t->o->print.records != NULL && t->o->print.full(t->o->print.arg);
}
