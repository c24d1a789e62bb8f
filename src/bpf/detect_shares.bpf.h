/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shares of sources in the rings of frames and of events (detect_kernel.h has the rule), for
 * detect.bpf.c, which includes this behind the steps of detection. */
#pragma once

#include "bpf/detect_maps.bpf.h"
#include "core/detect_table.h"

static __always_inline struct pl_kernel_sender *sender_of(struct work *w)
{
	uint64_t source = pl_core_source(&w->scratch.report.exporter);

	source = pl_core_hash(pl_rules[pl_control.active & 1].secret, &source, 1);
	w->sender = (uint32_t)(pl_core_mixed(source) >> 32) & (PL_KERNEL_SENDERS - 1);
	return &pl_senders[w->sender];
}

/* True when a sender with so many bytes waiting, including new ones, is above its share of a ring
 * of `all` bytes, of which `taken` are in use. */
static __always_inline int above_share(uint64_t waits, uint64_t taken, uint64_t all)
{
	const uint64_t kept = taken + all / 8;

	return waits > all / 64 && (kept > all || waits > 4 * (all - kept));
}

/* Takes room for size bytes of the report's sender in the ring; 0 when its share is used. A caller
 * that does not put the bytes there gives the room back. */
__attribute__((noinline)) int pl_detect_room(struct work *w, uint32_t size)
{
	const uint64_t room = pl_kernel_ring_room(size);
	struct pl_kernel_sender *s;

	if (w == NULL)
		return 0;
	s = sender_of(w);
	if (above_share(s->put - *(volatile uint64_t *)&s->taken + room,
		    bpf_ringbuf_query(&pl_frames, BPF_RB_AVAIL_DATA), pl_control.frames_bytes))
		return 0;
	__sync_fetch_and_add(&s->put, room);
	return 1;
}

static __always_inline void give_room(struct work *w, uint64_t size)
{
	__sync_fetch_and_add(
		&pl_senders[w->sender & (PL_KERNEL_SENDERS - 1)].put, -pl_kernel_ring_room(size));
}

#define EVENT_ROOM pl_kernel_ring_room(sizeof(struct pl_event))

/* Called before the steps of a report: decides whether the sender's share has room for its events.
 * A ring that is nearly empty is open to every sender. */
__attribute__((noinline)) int pl_detect_may_tell(struct work *w)
{
	const uint32_t all = pl_control.events_bytes;
	const struct pl_kernel_sender *s;
	uint64_t taken, waits;

	if (w == NULL)
		return 0;
	w->events_flags = 0;
	w->events_at = bpf_ringbuf_query(&pl_events, BPF_RB_PROD_POS);
	taken = bpf_ringbuf_query(&pl_events, BPF_RB_AVAIL_DATA);
	if (taken <= all / 64)
		return 0;
	s = sender_of(w);
	waits = s->events_round == *(volatile uint32_t *)&pl_control.events_round
			? s->events_bytes + EVENT_ROOM
			: 0;
	w->events_flags = (uint64_t)above_share(waits, taken, all);
	w->events_dropped = w->counters.core.events_dropped;
	return 0;
}

/* Called after the steps: counts the events put into the ring for their sender. */
__attribute__((noinline)) int pl_detect_told(struct work *w)
{
	const uint32_t round = *(volatile uint32_t *)&pl_control.events_round;
	struct pl_kernel_sender *s;
	uint64_t put = 0;

	if (w == NULL)
		return 0;
	if (w->events_flags != 0) {
		w->counters.events_over_share +=
			w->counters.core.events_dropped - w->events_dropped;
		return 0;
	}
	if (bpf_ringbuf_query(&pl_events, BPF_RB_PROD_POS) == w->events_at)
		return 0;
	for (uint32_t i = 0; i < PL_EVENT_KIND_MAX; i++)
		put += w->counters.core.events[i];
	if (put == w->events_put)
		return 0;
	s = sender_of(w);
	if (s->events_round != round) {
		s->events_round = round;
		s->events_bytes = 0;
	}
	__sync_fetch_and_add(&s->events_bytes, (uint32_t)((put - w->events_put) * EVENT_ROOM));
	w->events_put = put;
	return 0;
}
