/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Alternate marking (RFC 9341) on an interface: a marker, which gives chosen leaving packets the
 * colour of the present block and counts them; a meter (traffic control, or XDP), which counts
 * packets by flow and block; and the edge of a domain, where marks are cleared. Reading and writing
 * headers is in mark/packet.h.
 *
 * A flow's counters are per processor, in cells that have the number of their block: nothing is
 * reset while it counts, and user space reads a block when no packet of it can come any more. Only
 * a block's pulse, which one processor may send, and the running count of pulse marking are words
 * that they share.
 *
 * Marks are bits of the header, or the option of RFC 9343, which the marker puts in behind the IPv6
 * header and the edge takes out. The transport header stays at its place in memory, so offloads to
 * the NIC (a checksum to complete, segmentation) stay right.
 *
 * Needs Linux 6.1: bpf_ktime_get_tai_ns, and XDP over packets of several pieces.
 */
#include "bpf/mark_flows.bpf.h"
#include "bpf/mark_place.bpf.h"
#include "bpf/mark_rules.bpf.h"

#define NEXT     (-1) /* TC_ACT_UNSPEC, TCX_NEXT: go on with the next program */
/* Bytes of a packet that must be linear: of usual headers, and of those with IPv6 extension headers. */
#define HEADERS  128u
#define EXTENDED 512u

static __always_inline struct work *begin(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&pl_mark_work, &zero);
}

static __always_inline struct pl_mark_packet *packet_of(struct work *w)
{
	w->packet = (struct pl_mark_packet){ 0 };
	return &w->packet;
}

/* Returns the time since the beginning of the block without a clock, as exactly as the part of the
 * block that user space wrote. */
static __always_inline uint64_t into_block_by_tick(struct work *w)
{
	const uint64_t tick = tick_now();

	w->block = pl_mark_tick_block(tick);
	return pl_mark_tick_offset(tick, pl_mark_setup.period_ns, pl_mark_setup.guard_ns);
}

/* Returns the block of the time, and the time since its beginning; the division is done only once
 * in a block. */
static __always_inline uint64_t into_block(struct work *w)
{
	const uint64_t period_ns = pl_mark_setup.period_ns;
	uint64_t now_ns;

	if (pl_mark_setup.ticks != 0)
		return into_block_by_tick(w);
	now_ns = bpf_ktime_get_tai_ns();
	if (now_ns - w->since_ns >= period_ns) {
		w->block = now_ns / period_ns;
		w->since_ns = w->block * period_ns;
	}
	return now_ns - w->since_ns;
}

/* Counts for pulse marking: the flow's count runs on, and a pulse takes its value. */
static __always_inline void count_running(const struct flow *f, struct pl_mark_cell *cell,
	const struct pl_mark_seen *at, uint32_t n, uint64_t bytes)
{
	const uint64_t packets = __sync_fetch_and_add(&f->head->packets, n) + n,
		       all = __sync_fetch_and_add(&f->head->bytes, bytes) + bytes;

	pl_mark_cell_turn(cell, at->block);
	if (!at->pulse)
		return;
	pl_mark_cell_pulse(cell, at);
	if (cell->pulses == 1)
		pl_mark_cell_snapshot(cell, at, packets, all);
}

static __always_inline void count(
	const struct flow *f, const struct pl_mark_seen *at, uint32_t n, uint64_t bytes)
{
	struct pl_mark_cell *cell = cell_of(f->slot, at->block);

	if (cell == NULL)
		return;
	if (pl_mark_setup.method == PL_MARK_PULSE) {
		count_running(f, cell, at, n, bytes);
		return;
	}
	pl_mark_cell_count(cell, at, n, bytes, pl_mark_setup.period_ns, pl_mark_setup.guard_ns);
	if (at->pulse)
		pl_mark_cell_pulse(cell, at);
}

/* ---- meter ---- */

static __always_inline void meter(struct work *w, const struct pl_mark_packet *s, uint32_t why,
	uint32_t length, uint32_t segs, uint32_t gso_size, bool leaving)
{
	struct pl_mark_meter_counts *c = &w->counts.meter;
	struct pl_mark_seen at;
	struct pl_mark_key key;
	struct flow f;
	uint32_t n, len;
	uint64_t into_ns;
	bool full;

	len = length - s->network;
	n = pl_mark_segments(s, len, segs, gso_size);
	c->packets += n;
	if (why == PL_MARK_PARSED && gso_size == 0 && s->bytes > len)
		why = PL_MARK_BROKEN;
	if (why != PL_MARK_PARSED) {
		c->not_ip += why == PL_MARK_NOT_IP ? n : 0;
		c->broken += why == PL_MARK_BROKEN ? n : 0;
		count_unread(w, s, why, leaving, n, &c->unread, &c->skipped);
		return;
	}
	if (s->later) {
		c->fragments += n;
		return;
	}
	if (!has_place(s) || (options() && s->option == 0)) {
		if (chosen(w, s, leaving))
			c->unmarked += n;
		else
			c->skipped += n;
		return;
	}
	pl_mark_key(s, pl_mark_setup.by, &key);
	if (options() && pl_mark_setup.by != PL_MARK_BY_NONE)
		pl_mark_key_of_id(&key, s->word >> 12);
	if (!flow_of(w, s, &key, leaving, &f, &full)) {
		c->overflow += full ? n : 0;
		c->skipped += full ? 0 : n;
		return;
	}
	into_ns = into_block(w);
	at = pl_mark_see_in(
		pl_mark_setup.method, w->block, into_ns, pl_mark_setup.period_ns, bits_of(s));
	count(&f, &at, n, pl_mark_wire_bytes(s, len, n));
	c->counted += n;
	c->late += at.what == PL_MARK_LATE ? n : 0;
	c->early += at.what == PL_MARK_EARLY ? n : 0;
	c->pulses += at.pulse ? n : 0;
}

/* The outer VLAN tag that the kernel took out of the frame; 0: none. */
static __always_inline uint32_t vlan_of(const struct __sk_buff *skb)
{
	return skb->vlan_present ? skb->vlan_tci & 0xfff : 0;
}

static __always_inline bool has_extensions(const uint8_t *p, const uint8_t *end, bool raw)
{
	if (p + 18 + 40 > end)
		return false;
	if (!raw)
		p += pl_mark_is_tag(pl_mark_be16(p + 12)) ? 18 : 14;
	return p[0] >> 4 == 6 && pl_mark_is_extension(p[6]);
}

static __always_inline void pull(struct __sk_buff *skb, uint32_t most)
{
	const uint32_t n = skb->len < most ? skb->len : most;

	if ((uint8_t *)(uintptr_t)skb->data + n > (uint8_t *)(uintptr_t)skb->data_end)
		(void)bpf_skb_pull_data(skb, n);
}

/* Headers in one piece, so far as there are any. */
static __always_inline void gather(struct __sk_buff *skb, bool leaving)
{
	pull(skb, HEADERS);
	if (has_extensions((void *)(uintptr_t)skb->data, (void *)(uintptr_t)skb->data_end,
		    is_raw(skb, leaving)))
		pull(skb, EXTENDED);
	/* Pointers of before, kept as words of 32 bits, would be none to the verifier. */
	asm volatile("" ::: "memory");
}

static __always_inline int meter_skb(struct __sk_buff *skb, bool leaving)
{
	struct work *w = begin();
	struct pl_mark_packet *s;
	uint32_t why;

	if (w == NULL)
		return NEXT;
	s = packet_of(w);
	gather(skb, leaving);
	why = pl_mark_why_of(parse_skb(skb, leaving, s), s, skb->len);
	if (vlan_of(skb) != 0)
		s->vlan = (uint16_t)vlan_of(skb);
	meter(w, s, why, skb->len, skb->gso_segs, skb->gso_size, leaving);
	return NEXT;
}

SEC("tc") int pl_mark_meter_in(struct __sk_buff *skb)
{
	return meter_skb(skb, false);
}

SEC("tc") int pl_mark_meter_out(struct __sk_buff *skb)
{
	return meter_skb(skb, true);
}

SEC("xdp.frags") int pl_mark_meter_xdp(struct xdp_md *ctx)
{
	struct work *w = begin();
	struct pl_mark_packet *s;
	uint32_t why;

	if (w == NULL)
		return XDP_PASS;
	s = packet_of(w);
	why = parse((void *)(uintptr_t)ctx->data, (void *)(uintptr_t)ctx->data_end, NULL, ctx,
		pl_mark_setup.raw != 0, s);
	why = pl_mark_why_of(why, s, (uint32_t)bpf_xdp_get_buff_len(ctx));
	meter(w, s, why, (uint32_t)bpf_xdp_get_buff_len(ctx), 1, 0, false);
	return XDP_PASS;
}

/* ---- marker ---- */

/* True when this packet is the one of its flow and block whose delay is measured. */
static __always_inline bool takes_pulse(const struct flow *f, uint64_t block, uint64_t in_ns)
{
	uint32_t *last = &f->head->pulsed, before = *(volatile uint32_t *)last;

	return before != (uint32_t)block && in_ns >= pl_mark_setup.from_ns &&
	       in_ns < pl_mark_setup.to_ns &&
	       __sync_val_compare_and_swap(last, before, (uint32_t)block) == before;
}

/* Reads a packet and counts one that stays as it is. True when the marker handles it. */
static __always_inline bool marker_reads(struct __sk_buff *skb, struct work *w,
	struct pl_mark_packet *s, uint32_t *ret_len, uint32_t *ret_n)
{
	struct pl_mark_marker_counts *c = &w->counts.marker;
	uint32_t why, n, len;

	gather(skb, true);
	why = pl_mark_why_of(parse_skb(skb, true, s), s, skb->len);
	len = skb->len - s->network;
	n = pl_mark_segments(s, len, skb->gso_segs, skb->gso_size);
	c->packets += n;
	if (why == PL_MARK_PARSED && skb->gso_size == 0 && s->bytes > len)
		why = PL_MARK_BROKEN;
	c->not_ip += why == PL_MARK_NOT_IP ? n : 0;
	c->broken += why == PL_MARK_BROKEN ? n : 0;
	if (vlan_of(skb) != 0)
		s->vlan = (uint16_t)vlan_of(skb);
	count_unread(w, s, why, true, n, &c->unread, &c->skipped);
	*ret_len = len;
	*ret_n = n;
	return why == PL_MARK_PARSED;
}

/* A fragment behind the first gets the colour, but no option: one in the first is enough (RFC 9343
 * 3.1), and is all that is counted. */
static __always_inline void mark_fragment(
	struct __sk_buff *skb, struct work *w, const struct pl_mark_packet *s, uint32_t n)
{
	struct pl_mark_marker_counts *c = &w->counts.marker;
	uint64_t k;
	unsigned int bits;

	if (options()) {
		c->fragments += n;
		return;
	}
	k = pl_mark_setup.ticks != 0
		    ? pl_mark_tick_block(tick_now())
		    : pl_mark_block(bpf_ktime_get_tai_ns(), pl_mark_setup.period_ns);
	bits = pl_mark_bits(pl_mark_setup.method, k, 0);
	if (set_marks(skb, s, pl_mark_marks(&pl_mark_setup, s->marks, bits), true))
		c->fragments += n;
	else
		c->broken += n;
}

/* A packet that cannot be marked, a fragment behind the first, or one before marking began. True:
 * it was one. */
static __always_inline bool marker_only_looks(struct __sk_buff *skb, struct work *w,
	const struct pl_mark_packet *s, uint32_t len, uint32_t n)
{
	struct pl_mark_marker_counts *c = &w->counts.marker;
	const bool armed = *(volatile uint32_t *)&pl_mark_armed != 0;
	const enum put put = has_place(s) ? fits(skb, s, len) : PUT_UNFIT;

	if (armed && !s->later && put == PUT_DONE)
		return false;
	if (!chosen(w, s, true)) {
		c->skipped += n;
		return true;
	}
	if (put != PUT_DONE) {
		c->no_place += put == PUT_UNFIT ? n : 0;
		c->over_mtu += put == PUT_LONG ? n : 0;
		return true;
	}
	c->in_use += is_marked(s) ? n : 0;
	if (!armed)
		c->checked += n;
	else
		mark_fragment(skb, w, s, n);
	return true;
}

/* The packet with the option; returns how many it becomes on the wire: TCP's segments have less room
 * now. */
static __always_inline uint32_t grown(
	const struct __sk_buff *skb, struct pl_mark_packet *s, uint32_t *len)
{
	s->headers += PL_MARK_GROWTH;
	s->bytes += PL_MARK_GROWTH;
	*len = skb->len - s->network;
	return pl_mark_segments(s, *len, 0, skb->gso_size);
}

static __always_inline int mark(struct __sk_buff *skb)
{
	struct work *w = begin();
	struct pl_mark_packet *s;
	struct pl_mark_marker_counts *c;
	struct pl_mark_seen at;
	struct pl_mark_key key;
	struct flow f;
	uint32_t len, n, id = 0;
	uint64_t into_ns;
	enum put put;
	bool full;

	if (w == NULL)
		return NEXT;
	s = packet_of(w);
	if (!marker_reads(skb, w, s, &len, &n) || marker_only_looks(skb, w, s, len, n))
		return NEXT;
	c = &w->counts.marker;
	pl_mark_key(s, pl_mark_setup.by, &key);
	if (options())
		id = pl_mark_flow_id(&key);
	if (options() && pl_mark_setup.by != PL_MARK_BY_NONE)
		pl_mark_key_of_id(&key, id);
	if (!flow_of(w, s, &key, true, &f, &full)) {
		c->overflow += full ? n : 0;
		c->skipped += full ? 0 : n;
		return NEXT;
	}
	into_ns = into_block(w);
	at = (struct pl_mark_seen){
		.block = w->block, .offset_ns = (int64_t)into_ns, .what = PL_MARK_ON_TIME
	};
	/* Several segments in one packet would all be pulses. */
	at.pulse = n == 1 && takes_pulse(&f, at.block, into_ns);
	put = put_mark(skb, s, id, pl_mark_bits(pl_mark_setup.method, at.block, at.pulse));
	if (put != PUT_DONE) {
		c->no_place += put == PUT_UNFIT ? n : 0;
		c->broken += put == PUT_FAILED ? n : 0;
		return NEXT;
	}
	if (options() && s->option == 0) {
		c->packets -= n;
		n = grown(skb, s, &len);
		c->packets += n;
	}
	count(&f, &at, n, pl_mark_wire_bytes(s, len, n));
	c->marked += n;
	c->in_use += is_marked(s) ? n : 0;
	c->pulses += at.pulse;
	return NEXT;
}

/* Program for leaving packets, behind the programs that change or drop them. */
SEC("tc") int pl_mark_marker(struct __sk_buff *skb)
{
	return mark(skb);
}

/* ---- edge ---- */

static __always_inline int unmark(struct __sk_buff *skb, bool leaving)
{
	struct work *w = begin();
	struct pl_mark_packet *s;
	struct pl_mark_edge_counts *c;
	uint32_t why, n;
	bool done;

	if (w == NULL)
		return NEXT;
	c = &w->counts.edge;
	s = packet_of(w);
	gather(skb, leaving);
	why = pl_mark_why_of(parse_skb(skb, leaving, s), s, skb->len);
	n = pl_mark_segments(s, skb->len - s->network, skb->gso_segs, skb->gso_size);
	c->packets += n;
	if (vlan_of(skb) != 0)
		s->vlan = (uint16_t)vlan_of(skb);
	if (why != PL_MARK_PARSED) {
		c->not_ip += why == PL_MARK_NOT_IP ? n : 0;
		c->broken += why == PL_MARK_BROKEN ? n : 0;
		count_unread(w, s, why, leaving, n, &c->unread, &c->skipped);
		return NEXT;
	}
	if (!chosen(w, s, leaving)) {
		c->skipped += n;
		return NEXT;
	}
	if (!has_place(s) || !is_marked(s)) {
		c->clean += n;
		return NEXT;
	}
	done = options() ? take_option(skb, s, leaving)
			 : set_marks(skb, s, pl_mark_marks(&pl_mark_setup, s->marks, 0), leaving);
	c->cleared += done ? n : 0;
	c->broken += done ? 0 : n;
	return NEXT;
}

SEC("tc") int pl_mark_edge_out(struct __sk_buff *skb)
{
	return unmark(skb, true);
}

SEC("tc") int pl_mark_edge_in(struct __sk_buff *skb)
{
	return unmark(skb, false);
}

static __noinline int mark_apart(struct __sk_buff *skb)
{
	return mark(skb);
}

/* A marker and the edge one behind the other, for the benchmark: a packet is as before then. */
SEC("?tc") int pl_mark_there_and_back(struct __sk_buff *skb)
{
	return mark_apart(skb) == NEXT ? unmark(skb, true) : NEXT;
}

char _license[] SEC("license") = "Dual BSD/GPL";
