/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host as INT source (tc, leaving) and sink (XDP, entering). The source inserts INT into chosen
 * packets; the sink removes it before the network stack and passes the INT that it read to user
 * space through a ring. Headers are read and edited in a copy by core/host_int.h.
 *
 * Needs Linux 6.1: bpf_ktime_get_tai_ns, and XDP over packets of several pieces.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/bpf_helpers.h>

#define PL_HOST_SUM(p, n, seed) ((uint32_t)bpf_csum_diff(NULL, 0, (void *)(p), n, seed))

#include "bpf/host_int_kernel.h"

#define NEXT    (-1)                /* TC_ACT_UNSPEC, TCX_NEXT: go on with the next program */
#define SHOT    2                   /* TC_ACT_SHOT, TCX_DROP */
#define CHUNK   256u                /* bytes summed at once; at most 512 */
#define GAP_MAX (UINT32_C(1) << 24) /* a larger jump of a flow's numbers is a restart */
#define AGAIN   128u                /* bytes behind the headers that are written back */

struct work {
	struct pl_host_source_counts source;
	struct pl_host_sink_counts sink;
	struct pl_host_walk walk;
	uint64_t woken_ns;
	uint64_t chunk[CHUNK / 8];
	uint8_t again[AGAIN];
	struct pl_host_key key;
	struct pl_host_flow flow; /* zeros, for a new flow */
	struct pl_host_event event;
	uint8_t slack[1024 - PL_HOST_EVENT_HEAD +
		      PL_HOST_SLACK]; /* positions in the head are below 1024 */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct work);
} pl_host_work SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} pl_host_ring SEC(".maps");

/* The next number of each flow of the source. A flow that was evicted starts again, which a sink
 * takes for a restart. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct pl_host_key);
	__type(value, uint32_t);
} pl_host_numbers SEC(".maps");

/* A flow's packets come by one queue, so one processor at a time has its entry. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct pl_host_key);
	__type(value, struct pl_host_flow);
} pl_host_flows SEC(".maps");

const volatile struct pl_host_control pl_host_control;
const volatile struct pl_host_template pl_host_template;
uint32_t pl_host_lost;     /* packets without room in the ring, of all processors */
uint64_t pl_host_ahead_ns; /* CLOCK_TAI minus the time of day */
struct pl_tap_rule_set pl_host_sets[PL_TAP_RULE_SETS];
uint32_t pl_host_set; /* number of the set in use */

/* ---- both ---- */

/* Applies the first rule that matches and returns its enum pl_tap_ruling; a packet that none
 * matches is not chosen. */
__attribute__((noinline)) int pl_host_do_rules(struct work *w)
{
	struct pl_tap_rule_set *set =
		&pl_host_sets[*(volatile uint32_t *)&pl_host_set & (PL_TAP_RULE_SETS - 1)];
	uint32_t n = set->n;

	if (w == NULL)
		return PL_TAP_RULED_SKIP;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_TAP_RULES_MAX && i < n; i++) {
		const struct pl_tap_rule *u = &set->rules[i & (PL_TAP_RULES_MAX - 1)];
		uint64_t before = 0;

		if (!pl_tap_rule_matches(u, &w->walk.record))
			continue;
		if (u->sample > 1)
			before = __sync_fetch_and_add(&set->matched[i & (PL_TAP_RULES_MAX - 1)], 1);
		return (int)pl_tap_rule_decide(u, &w->walk.record, before);
	}
	return PL_TAP_RULED_SKIP;
}

__attribute__((noinline)) int pl_host_do_read(struct work *w)
{
	if (w == NULL)
		return PL_HOST_BROKEN;
	return (int)pl_host_read(&w->walk, pl_host_control.raw != 0);
}

static __always_inline struct work *begin(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&pl_host_work, &zero);
}

/* A number of bytes as the verifier believes it: from 1 to max, or 0. */
static __always_inline uint32_t bounded(uint32_t n, uint32_t max)
{
	n--;
	PL_FRAME_OPAQUE(n);
	if (n >= max)
		return 0;
	PL_FRAME_OPAQUE(n);
	return n + 1;
}

static __always_inline void make_key(struct work *w)
{
	const struct pl_pkt96 *r = &w->walk.record;
	struct pl_host_key *k = &w->key;

	memcpy(k->src, r->src.b, 16);
	memcpy(k->dst, r->dst.b, 16);
	k->sport = r->sport;
	k->dport = r->dport;
	k->proto = r->proto;
}

static __always_inline uint64_t now(void)
{
	return bpf_ktime_get_tai_ns() - *(volatile uint64_t *)&pl_host_ahead_ns;
}

/* ---- source ---- */

/* The sum over n bytes of a packet, padded with zeros; ret_failed through the work, as a sum has no
 * value to spare. */
__attribute__((noinline)) uint64_t pl_host_do_sum(struct __sk_buff *skb, uint32_t at, uint32_t n)
{
	struct work *w = begin();
	uint32_t sum = 0;

	if (w == NULL)
		return UINT64_MAX;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < 65536 / CHUNK; i++) {
		uint32_t last;

		if (n < CHUNK)
			break;
		if (bpf_skb_load_bytes(skb, at, w->chunk, CHUNK) < 0)
			return UINT64_MAX;
		sum = PL_HOST_SUM(w->chunk, CHUNK, sum);
		at += CHUNK;
		n -= CHUNK;
		last = n;
		PL_FRAME_OPAQUE(last);
		n = last;
	}
	n = bounded(n, CHUNK - 1);
	if (n == 0)
		return sum;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < CHUNK / 8; i++)
		w->chunk[i] = 0;
	if (bpf_skb_load_bytes(skb, at, w->chunk, n) < 0)
		return UINT64_MAX;
	return PL_HOST_SUM(w->chunk, CHUNK, sum);
}

__attribute__((noinline)) int pl_host_do_summable(struct work *w, uint32_t rest)
{
	if (w == NULL)
		return 0;
	return pl_host_summable(&w->walk, rest);
}

/* The number of the next packet of the flow in w->key. False: there is no place for it. */
static __always_inline bool next_number(struct work *w, uint32_t *ret)
{
	uint32_t *number = bpf_map_lookup_elem(&pl_host_numbers, &w->key), zero = 0;

	if (number == NULL) {
		/* Another processor may be first. */
		(void)bpf_map_update_elem(&pl_host_numbers, &w->key, &zero, BPF_NOEXIST);
		number = bpf_map_lookup_elem(&pl_host_numbers, &w->key);
	}
	if (number == NULL)
		return false;
	*ret = __sync_fetch_and_add(number, 1);
	return true;
}

/* Makes the packet `by` bytes longer, and has the NIC's checksum made in software: if the stack
 * left the transport checksum to the sender (CHECKSUM_PARTIAL), its place is an offset that INT
 * moves. The kernel gives the offload up for a packet of which it removes the bytes up to the
 * transport header and more (skb_postpull_rcsum). So these are removed, and come back with room for
 * INT; headers, and bytes behind them that were removed too, are written again. A packet that is
 * too short for that is made longer meanwhile. Returns 0; 1 when nothing was changed; a negative
 * value when the packet is not whole. */
static __always_inline int make_room(struct __sk_buff *skb, struct work *w, uint32_t by)
{
	const struct pl_host_walk *k = &w->walk;
	const uint32_t base = k->network + (k->version == 4 ? 20 : 40), pull = k->transport + 2,
		       gone = base + pull, len = skb->len;
	uint32_t n = 0;

	if (len < gone + 4 && bpf_skb_change_tail(skb, gone + 4, 0) < 0)
		return 1;
	if (gone > k->payload) {
		n = bounded(gone - k->payload, AGAIN);
		if (n == 0 || bpf_skb_load_bytes(skb, k->payload, w->again, n) < 0)
			return -1;
	}
	if (bpf_skb_adjust_room(skb, -(int)pull, BPF_ADJ_ROOM_NET, 0) < 0)
		return len < gone + 4 && bpf_skb_change_tail(skb, len, 0) < 0 ? -1 : 1;
	if (bpf_skb_adjust_room(skb, (int)(pull + by), BPF_ADJ_ROOM_NET, 0) < 0)
		return -1;
	if (n != 0) {
		n = bounded(n, AGAIN);
		if (n == 0 || bpf_skb_store_bytes(skb, k->payload + by, w->again, n, 0) < 0)
			return -1;
	}
	if (len < gone + 4 && bpf_skb_change_tail(skb, len + by, 0) < 0)
		return -1;
	return 0;
}

static __always_inline bool too_long(
	struct __sk_buff *skb, const struct pl_host_walk *k, uint32_t by)
{
	uint32_t mtu = 0;

	if (pl_host_control.mtu != 0 && k->end - k->network + by > pl_host_control.mtu)
		return true;
	return bpf_check_mtu(skb, 0, &mtu, (int)by, 0) != 0;
}

static __always_inline int give(struct __sk_buff *skb, struct work *w)
{
	struct pl_host_walk *k = &w->walk;
	const uint32_t words = pl_host_template.words, by = 4 * words;
	uint32_t number, n;
	uint64_t sum;
	int r;

	if (skb->gso_size != 0) {
		w->source.segments++;
		return NEXT;
	}
	if (k->end != skb->len || words == 0 || words > PL_HOST_WORDS_MAX) {
		w->source.broken++;
		return NEXT;
	}
	if (too_long(skb, k, by)) {
		w->source.over_mtu++;
		return NEXT;
	}
	sum = pl_host_do_sum(skb, k->payload, k->end - k->payload);
	if (sum == UINT64_MAX) {
		w->source.no_room++;
		return NEXT;
	}
	if (!pl_host_do_summable(w, (uint32_t)sum)) {
		w->source.checksum++;
		return NEXT;
	}
	r = make_room(skb, w, by);
	if (r > 0) {
		w->source.no_room++;
		return NEXT;
	}
	make_key(w);
	if (r < 0 || !next_number(w, &number)) {
		w->source.dropped++;
		return SHOT;
	}
	pl_host_add(k, &pl_host_template, number, now(), (uint32_t)sum);
	n = bounded(k->payload + by, PL_HOST_SPAN);
	if (n == 0 || bpf_skb_store_bytes(skb, 0, k->bytes, n, 0) < 0) {
		w->source.dropped++;
		return SHOT;
	}
	w->source.instrumented++;
	return NEXT;
}

/* Program for leaving packets, behind the programs that change or drop them. */
SEC("tc") int pl_host_source(struct __sk_buff *skb)
{
	struct work *w = begin();
	uint32_t n, why;

	if (w == NULL)
		return NEXT;
	w->source.packets++;
	w->walk.wire = skb->len;
	w->walk.there = skb->len < PL_HOST_HEAD ? skb->len : PL_HOST_HEAD;
	n = bounded(w->walk.there, PL_HOST_HEAD);
	why = n == 0 || bpf_skb_load_bytes(skb, 0, w->walk.bytes, n) < 0
		      ? PL_HOST_BROKEN
		      : (uint32_t)pl_host_do_read(w);
	if (why != PL_HOST_TAKEN) {
		w->source.not_ip += why == PL_HOST_NOT_IP;
		w->source.other += why == PL_HOST_OTHER;
		w->source.broken += why == PL_HOST_BROKEN;
		return NEXT;
	}
	/* The kernel took the outer VLAN tag out of the frame. */
	if (skb->vlan_present)
		w->walk.record.vlan = (uint16_t)(skb->vlan_tci & 0xfff);
	w->walk.record.obs = PL_OBS_OUT;
	w->walk.record.flow_hash = pl_tap_core_hash(&w->walk.record);
	switch (pl_host_do_rules(w)) {
	case PL_TAP_RULED_TAKE:
		break;
	case PL_TAP_RULED_SKIP:
		w->source.skipped++;
		return NEXT;
	default:
		w->source.not_sampled++;
		return NEXT;
	}
	if (w->walk.record.tos >> 2 == pl_host_control.dscp) {
		w->source.marked++;
		return NEXT;
	}
	return give(skb, w);
}

/* ---- sink ---- */

static __always_inline const uint8_t *event_at(const struct work *w, uint32_t at)
{
	PL_FRAME_OPAQUE(at);
	return w->event.head + (at & 1023);
}

/* Time at which the packet left the source, by the last block of the stack; 0 when the block does
 * not have it. */
static __always_inline uint64_t left_ns(const struct work *w, uint32_t bytes)
{
	const uint8_t *h = event_at(w, w->event.int_at), *p;
	const uint32_t bits = (uint32_t)h[8] << 8 | h[9], hop = h[6] & 0x1f;
	uint32_t at = w->event.int_at + bytes - 4 - 4 * hop;
	uint64_t v = 0;

	if ((bits & 0x0400) == 0)
		return 0;
	at += ((bits >> 15 & 1) + (bits >> 14 & 1) + (bits >> 13 & 1) + (bits >> 12 & 1)) * 4 +
	      (bits >> 11 & 1) * 8;
	p = event_at(w, at);
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v == UINT64_MAX ? 0 : v;
}

/* The account of the flow, and whether the packet is to be reported. Linux 6.1 takes no key from the
 * memory of an argument, so the work is looked up again. */
__attribute__((noinline)) int pl_host_do_flow(uint32_t bytes)
{
	struct work *w = begin();
	struct pl_host_flow *f;
	struct pl_sequence before;
	uint32_t number = 0;
	uint64_t latency;
	const uint8_t *p;

	if (w == NULL)
		return 1;
	f = bpf_map_lookup_elem(&pl_host_flows, &w->key);
	if (f == NULL) {
		(void)bpf_map_update_elem(&pl_host_flows, &w->key, &w->flow, BPF_NOEXIST);
		f = bpf_map_lookup_elem(&pl_host_flows, &w->key);
		if (f == NULL) {
			w->sink.flows_full++;
			return 1;
		}
		w->sink.flows++;
	}
	p = event_at(w, w->event.int_at + bytes - 4);
	number = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	before = f->seq;
	if (!pl_sequence_next(&f->seq, number, UINT32_MAX))
		pl_sequence_step(&f->seq, number, UINT32_MAX, GAP_MAX);
	w->sink.skipped_numbers += f->seq.skipped - before.skipped;
	w->sink.late += f->seq.recovered - before.recovered;
	w->sink.duplicates += f->seq.duplicates - before.duplicates;
	w->sink.restarts += f->seq.restarts - before.restarts;
	if (pl_host_control.every != 0)
		return (f->seq.reports - 1) % pl_host_control.every == 0;
	/* Clocks of hosts differ: a latency may be negative, and so wraps; a difference does not. */
	latency = w->event.ts_ns - *(volatile uint64_t *)&pl_host_ahead_ns - left_ns(w, bytes);
	if (f->told_ns != 0 && f->told_bytes == bytes &&
		w->event.ts_ns - f->told_ns < pl_host_control.refresh_ns &&
		latency - f->told_latency_ns + pl_host_control.change_ns <=
			2 * pl_host_control.change_ns)
		return 0;
	f->told_ns = w->event.ts_ns;
	f->told_bytes = bytes;
	f->told_latency_ns = latency;
	return 1;
}

/* Returns the flags for the ring. After a wake-up user space polls the ring for some time; no
 * wake-up is sent for a shorter time. */
static __always_inline uint64_t wakes(struct work *w, uint64_t now_ns)
{
	if (now_ns - w->woken_ns < pl_host_control.wake_ns)
		return BPF_RB_NO_WAKEUP;
	w->woken_ns = now_ns;
	return BPF_RB_FORCE_WAKEUP;
}

static __always_inline void report(struct work *w, uint32_t bytes)
{
	uint32_t n;

	w->event.ts_ns = bpf_ktime_get_tai_ns();
	w->event.lost = *(volatile uint32_t *)&pl_host_lost;
	make_key(w);
	if (!pl_host_do_flow(bytes)) {
		w->sink.not_reported++;
		return;
	}
	n = bounded(PL_HOST_EVENT_FIXED + w->event.bytes, sizeof(struct pl_host_event));
	if (n == 0 ||
		bpf_ringbuf_output(&pl_host_ring, &w->event, n, wakes(w, w->event.ts_ns)) < 0) {
		w->sink.ring_full++;
		__sync_fetch_and_add(&pl_host_lost, 1);
	} else {
		w->sink.reports++;
	}
}

/* Computes the sum over INT. Words are added one by one, because the helper needs a constant
 * length. */
__attribute__((noinline)) uint64_t pl_host_do_gone(struct work *w, uint32_t bytes)
{
	uint64_t sum = 0;

	if (w == NULL)
		return 0;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_HOST_INT_MAX / 4; i++) {
		uint32_t v;

		if (4 * i >= bytes)
			break;
		memcpy(&v, event_at(w, w->event.int_at + 4 * i), 4);
		sum += v;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (sum & 0xffffffff) + (sum >> 32);
}

/* Copies the packet's head again, up to the end of INT, into the event. Returns the length of INT;
 * 0: there is none. */
static __always_inline uint32_t find(struct xdp_md *ctx, struct work *w)
{
	const struct pl_host_walk *k = &w->walk;
	uint32_t bytes, n;

	if (k->end - k->payload < PL_HOST_INT_MIN)
		return 0;
	w->event.int_at = (uint16_t)k->payload;
	n = bounded(k->payload + PL_HOST_INT_MIN, PL_HOST_EVENT_HEAD);
	if (n == 0 || bpf_xdp_load_bytes(ctx, 0, w->event.head, n) < 0)
		return 0;
	bytes = pl_host_int_bytes(event_at(w, k->payload), k->end - k->payload);
	if (bytes == 0)
		return 0;
	n = bounded(k->payload + bytes, PL_HOST_EVENT_HEAD);
	if (n == 0 || bpf_xdp_load_bytes(ctx, 0, w->event.head, n) < 0)
		return 0;
	w->event.bytes = (uint16_t)n;
	return bytes;
}

static __always_inline int strip(struct xdp_md *ctx, struct work *w, uint32_t bytes)
{
	struct pl_host_walk *k = &w->walk;
	uint32_t n;

	pl_host_remove(k, bytes, *event_at(w, w->event.int_at + 3) >> 2,
		(uint32_t)pl_host_do_gone(w, bytes));
	n = bounded(k->payload, PL_HOST_HEAD);
	if (n == 0 || bpf_xdp_adjust_head(ctx, (int)bytes) < 0 ||
		bpf_xdp_store_bytes(ctx, 0, k->bytes, n) < 0) {
		w->sink.failed++;
		return XDP_DROP;
	}
	w->sink.stripped++;
	return XDP_PASS;
}

/* Entering, before the network stack. */
SEC("xdp.frags") int pl_host_sink(struct xdp_md *ctx)
{
	const uint32_t wire = (uint32_t)bpf_xdp_get_buff_len(ctx);
	struct work *w = begin();
	uint32_t n, bytes;

	if (w == NULL)
		return XDP_PASS;
	w->sink.packets++;
	w->walk.wire = wire;
	w->walk.there = wire < PL_HOST_HEAD ? wire : PL_HOST_HEAD;
	n = bounded(w->walk.there, PL_HOST_HEAD);
	if (n == 0 || bpf_xdp_load_bytes(ctx, 0, w->walk.bytes, n) < 0 ||
		pl_host_do_read(w) != PL_HOST_TAKEN ||
		w->walk.record.tos >> 2 != pl_host_control.dscp) {
		w->sink.plain++;
		return XDP_PASS;
	}
	bytes = find(ctx, w);
	if (bytes == 0) {
		w->sink.malformed++;
		return pl_host_control.drop_malformed ? XDP_DROP : XDP_PASS;
	}
	w->walk.record.flow_hash = pl_tap_core_hash(&w->walk.record);
	if (pl_host_do_rules(w) != PL_TAP_RULED_TAKE) {
		w->sink.outside++;
		return pl_host_control.drop_outside ? XDP_DROP : XDP_PASS;
	}
	report(w, bytes);
	/* v2.1 5.6.2, D: a copy or a probe ends here. */
	if ((*event_at(w, w->event.int_at + 4) & 8) != 0) {
		w->sink.copies++;
		return XDP_DROP;
	}
	return strip(ctx, w, bytes);
}

char _license[] SEC("license") = "Dual BSD/GPL";
