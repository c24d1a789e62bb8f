/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tap in the kernel: it writes a record of each packet that enters (XDP, tc) or leaves (tc)
 * into a ring, and passes the packet on unchanged. A frame that stands for several packets on the
 * wire gives a record for each of these (core/tap_joined.h). Headers are read from a copy of the
 * packet's first bytes by core/tap_core.h; each step is a function that the verifier checks once.
 *
 * Needs Linux 6.1: bpf_ktime_get_tai_ns, and XDP over packets of several pieces.
 */
#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/if_ether.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>

#include "bpf/tap_kernel.h"
#include "core/tap_counts.h"
#include "core/tap_rules.h"

#include "bpf/skb_mac.bpf.h"
#include "bpf/tap_steps.bpf.h"
#include "core/tap_joined.h"

#define NEXT (-1) /* TC_ACT_UNSPEC, TCX_NEXT: go on with the next program */

struct work {
	struct pl_tap_kernel_book book; /* first */
	struct pl_tap_walk walk;
	uint64_t woken_ns;
	uint64_t hardware_ns;      /* the NIC's time of the frame; 0: none */
	uint64_t now_ns;           /* the kernel's time; 0: not read yet */
	uint32_t segs;             /* packets in the frame according to the kernel; 0: not known */
	struct pl_tap_share share; /* the packets at work */
	struct pl_tap_joined joined;
	struct pl_tap_row row;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct work);
} pl_tap_work SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} pl_tap_ring SEC(".maps");

/*
 * Packets that are counted by key. Two tables take turns: user space puts the other one into
 * pl_tap_counting, which waits until no program runs that began before, and then has the first one
 * to itself. Room for keys is set before the tables are made.
 */
struct pl_tap_count_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pl_tap_count_key);
	__type(value, struct pl_tap_count_value);
};
struct pl_tap_count_table pl_tap_counts_a SEC(".maps"), pl_tap_counts_b SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__array(values, struct pl_tap_count_table);
} pl_tap_counting SEC(".maps") = { .values = { &pl_tap_counts_a } };

const volatile struct pl_tap_control pl_tap_control;
const volatile struct pl_tap_count_plan pl_tap_plan;
uint64_t pl_tap_ahead_ns; /* CLOCK_TAI minus the time of day */

/* ---- steps ---- */

__attribute__((noinline)) int pl_tap_do_link(struct work *w)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_link(&w->walk, pl_tap_control.link);
}

/* A common packet takes no call: on processors with slow returns, each costs as much as the rest of
 * it. */
static __always_inline uint32_t read_link(struct work *w)
{
	struct pl_tap_walk *k = &w->walk;

	if (pl_tap_control.link != PL_TAP_ETHERNET || k->there < 14 ||
		pl_tap_be16(k, 12) != ETH_P_IP)
		return (uint32_t)pl_tap_do_link(w);
	memset(&k->record, 0, sizeof(k->record));
	k->flags = 0;
	return pl_tap_core_version(k, 14, 4);
}

static __always_inline uint32_t read_headers(struct work *w)
{
	uint32_t outcome = read_link(w);

	if (outcome == PL_TAP_MADE)
		outcome = w->walk.version == 4 ? pl_tap_core_ip4(&w->walk)
					       : (uint32_t)pl_tap_do_ip6(&w->walk);
	if (outcome == PL_TAP_MADE)
		outcome = pl_tap_core_transport(&w->walk);
	if (outcome == PL_TAP_MADE && w->walk.left > 0 && !pl_tap_core_usual_options(&w->walk))
		(void)pl_tap_do_options(&w->walk);
	return outcome;
}

static __always_inline void add_count(
	struct pl_tap_count_value *to, const struct pl_pkt96 *r, uint64_t now_ns, uint64_t n)
{
	if (now_ns < to->first_ns)
		to->first_ns = now_ns;
	__sync_fetch_and_add(&to->packets, n);
	__sync_fetch_and_add(&to->wire_bytes, n * r->wire_len);
	__sync_fetch_and_add(&to->pay_bytes, n * r->pay_len);
}

/*
 * Returns whether the packets were counted; if not, they get their records. The time is read after
 * the choice of the table, so no packet in a table has a time before that table's turn.
 */
__attribute__((noinline)) int pl_tap_do_count(struct work *w)
{
	struct pl_tap_count_key key;
	struct pl_tap_count_value one, *value;
	uint32_t zero = 0;
	uint64_t now_ns, n;
	int r;
	void *table = bpf_map_lookup_elem(&pl_tap_counting, &zero);

	if (w == NULL || table == NULL)
		return 0;
	n = w->share.taken;
	now_ns = bpf_ktime_get_tai_ns() - *(volatile uint64_t *)&pl_tap_ahead_ns;
	key.window = pl_tap_count_window(pl_tap_plan.pane_ns, now_ns);
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < PL_TAP_COUNT_WORDS; i++)
		key.words[i] =
			pl_tap_count_word(&w->walk.record, pl_tap_plan.at[i], pl_tap_plan.mask[i]);
	value = bpf_map_lookup_elem(table, &key);
	if (value == NULL) {
		one = (struct pl_tap_count_value){ n, n * w->walk.record.wire_len,
			n * w->walk.record.pay_len, now_ns };
		/* An int before Linux 6.4: the upper half of the register is not its sign. */
		r = (int)bpf_map_update_elem(table, &key, &one, BPF_NOEXIST);
		if (r == 0) {
			w->book.counts.counted += n;
			return 1;
		}
		/* Another processor was first, or there is no room, or the kernel was busy there. */
		value = bpf_map_lookup_elem(table, &key);
		if (value == NULL) {
			w->book.counts.count_full += r == -E2BIG ? n : 0;
			w->book.counts.count_busy += r == -E2BIG ? 0 : n;
			return 0;
		}
	}
	add_count(value, &w->walk.record, now_ns, n);
	w->book.counts.counted += n;
	return 1;
}

/* Puts the record into the ring; flags of bpf_ringbuf_output. */
static __always_inline long put(struct work *w, uint64_t flags)
{
	return pl_tap_control.record_bytes == sizeof(struct pl_pkt64)
		       ? bpf_ringbuf_output(
				 &pl_tap_ring, &w->walk.record, sizeof(struct pl_pkt64), flags)
		       : bpf_ringbuf_output(
				 &pl_tap_ring, &w->walk.record, sizeof(struct pl_pkt96), flags);
}

/* More than one record, as one entry, which is longer than a record is. */
static __always_inline long put_row(struct work *w, uint64_t flags)
{
	const uint32_t step = w->share.step;

	w->row.record = w->walk.record;
	w->row.n = w->share.taken;
	w->row.seq_step = w->joined.tcp ? step * w->joined.each : 0;
	w->row.id_step = w->joined.v4 ? step : 0;
	return bpf_ringbuf_output(&pl_tap_ring, &w->row, sizeof(w->row), flags);
}

/* Changes the record to the first packet taken, when that is not the first of the joined frame. */
static __always_inline void go_to_first(struct work *w)
{
	const uint32_t first = w->share.first;

	if (w->joined.tcp)
		w->walk.record.tcp_seq += first * w->joined.each;
	if (w->joined.v4)
		w->walk.record.ip_id = (uint16_t)(w->walk.record.ip_id + first);
}

/* Finishes packets whose record, or whose first one's, is made; their number is in the share. */
static __always_inline void finish(struct work *w, int joined)
{
	struct pl_pkt96 *r = &w->walk.record;
	uint64_t flags;

	switch (pl_tap_read_rules(&w->walk, &w->share, &w->book.hits)) {
	case PL_TAP_RULED_TAKE:
		break;
	case PL_TAP_RULED_SKIP:
		w->book.counts.skipped += w->share.n;
		return;
	default:
		w->book.counts.not_sampled += w->share.n;
		return;
	}
	w->book.counts.not_sampled += w->share.n - w->share.taken;
	if (joined && w->share.first != 0)
		go_to_first(w);
	/* When times are from a NIC's clock, it is unknown which window is open. */
	if (pl_tap_plan.on && w->hardware_ns == 0 && pl_tap_do_count(w))
		return;
	/* Packets of one frame have one time. */
	if (w->now_ns == 0)
		w->now_ns = bpf_ktime_get_tai_ns();
	r->ts_ns = w->hardware_ns != 0 ? w->hardware_ns : w->now_ns;
	/* Until user space gives the record its number, one bit of it shows which clock its time is
	 * from. */
	r->record_seq = w->hardware_ns != 0;
	flags = pl_tap_wakes(&w->woken_ns, pl_tap_control.wake_ns, w->now_ns);
	if (joined && w->share.taken > 1 ? put_row(w, flags) : put(w, flags)) {
		w->book.counts.ring_full += w->share.taken;
		return;
	}
	w->book.counts.entries++;
	w->book.counts.records += w->share.taken;
}

/* Handles n packets of the frame from packet i on, which differ only in what counts on. */
__attribute__((noinline)) int pl_tap_do_packets(struct work *w, uint32_t i, uint32_t n)
{
	if (w == NULL)
		return 0;
	pl_tap_joined_packet(&w->joined, i, &w->walk.record);
	w->share.n = n;
	finish(w, 1);
	return 0;
}

/* Handles the packets of a frame that stands for several: all but the last one are alike, unless
 * the first one has CWR. */
__attribute__((noinline)) int pl_tap_do_joined(struct work *w)
{
	struct pl_tap_joined *j;
	uint32_t i = 0, n;

	if (w == NULL)
		return 0;
	j = &w->joined;
	if (!pl_tap_joined_walk(j, &w->walk, w->walk.gso, w->segs, pl_tap_control.vxlan_ports)) {
		w->book.counts.joined++;
		j->n = 1;
	}
	n = j->n;
	w->share.n = 1;
	if (n <= 1) {
		finish(w, 0);
		return 0;
	}
	pl_tap_joined_keep(j, &w->walk.record);
	if ((w->walk.flags & PL_TAP_BAD_OPTIONS) != 0)
		w->book.counts.bad_options += n - 1;
	if (w->hardware_ns != 0)
		w->book.counts.stamped += n - 1;
	if ((j->flags & PL_TAP_CWR) != 0)
		(void)pl_tap_do_packets(w, i++, 1);
	if (i + 1 < n)
		(void)pl_tap_do_packets(w, i, n - 1 - i);
	return pl_tap_do_packets(w, n - 1, 1);
}

/* Makes the records of the frame whose head was copied. hardware_ns: the NIC's time, 0 without one;
 * tells: the kernel says which frames stand for several packets, and how many (segs). */
static __always_inline void record(
	struct work *w, uint16_t out, uint64_t hardware_ns, uint32_t segs, int tells)
{
	const uint32_t outcome = read_headers(w);
	struct pl_pkt96 *r = &w->walk.record;

	/* A record without number cannot name its clock, so it gets the kernel's time. */
	if (pl_tap_control.record_bytes == sizeof(struct pl_pkt64))
		hardware_ns = 0;
	w->book.counts.stamped += hardware_ns != 0;
	if (outcome != PL_TAP_MADE) {
		w->book.counts.joined += w->walk.gso != 0;
		if (outcome == PL_TAP_NOT_IP)
			w->book.counts.not_ip++;
		else
			w->book.counts.broken++;
		return;
	}
	w->book.counts.bad_options += (w->walk.flags & PL_TAP_BAD_OPTIONS) != 0;
	if (!tells)
		w->book.counts.joined +=
			w->walk.whole > PL_TAP_WIRE_MOST && w->walk.wire > PL_TAP_WIRE_MOST;
	r->obs |= out;
	r->flow_hash = pl_tap_core_hash(r);
	w->hardware_ns = hardware_ns;
	w->now_ns = 0;
	if (w->walk.gso != 0) {
		w->segs = segs;
		(void)pl_tap_do_joined(w);
		return;
	}
	w->share.n = 1;
	finish(w, 0);
}

/* A number of bytes as the verifier believes it: from 1 to PL_TAP_HEAD_BYTES, or 0. */
static __always_inline uint32_t bounded(uint32_t n)
{
	n--;
	PL_FRAME_OPAQUE(n);
	if (n >= PL_TAP_HEAD_BYTES)
		return 0;
	PL_FRAME_OPAQUE(n);
	return n + 1;
}

static __always_inline struct work *begin(uint32_t wire, uint32_t gso_size)
{
	uint32_t zero = 0;
	struct work *w = bpf_map_lookup_elem(&pl_tap_work, &zero);

	if (w == NULL)
		return NULL;
	w->walk.wire = wire;
	w->walk.gso = gso_size;
	w->walk.there = wire < PL_TAP_HEAD_BYTES ? wire : PL_TAP_HEAD_BYTES;
	return w;
}

/*
 * Copies the first n bytes of the piece between p and end; false: the piece is shorter. In words,
 * without a helper: where returns are slow, a call costs more than the copy.
 */
static __always_inline bool copy_words(
	const uint8_t *p, const uint8_t *const end, uint8_t *to, uint32_t n)
{
	uint32_t at = 0;

	if (p + n > end)
		return false;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < PL_TAP_HEAD_BYTES / 8; i++) {
		if (p + 8 > end || at + 8 > n)
			break;
		*(uint64_t *)(to + 8 * i) = *(const uint64_t *)p;
		p += 8;
		at += 8;
	}
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < 7; i++) {
		if (p + 1 > end || at >= n || at >= PL_TAP_HEAD_BYTES)
			break;
		to[at++] = *p++;
	}
	return true;
}

#define FIRST_PIECE(ctx) (const uint8_t *)(long)(ctx)->data, (const uint8_t *)(long)(ctx)->data_end

/* ---- programs ---- */

SEC("xdp.frags") int pl_tap_xdp(struct xdp_md *ctx)
{
	struct work *w = begin((uint32_t)bpf_xdp_get_buff_len(ctx), 0);
	uint32_t n;

	if (w == NULL)
		return XDP_PASS;
	n = bounded(w->walk.there);
	if (n == 0 || (!copy_words(FIRST_PIECE(ctx), w->walk.bytes, n) &&
			      bpf_xdp_load_bytes(ctx, 0, w->walk.bytes, n) < 0))
		w->walk.there = 0;
	record(w, 0, 0, 0, 0);
	return XDP_PASS;
}

/* Loads bytes of the frame from `at` on; front: number of its bytes in front of the packet's
 * data. */
static __always_inline long load(
	struct __sk_buff *skb, uint32_t front, uint32_t at, uint8_t *to, uint32_t n)
{
	return front != 0 ? bpf_skb_load_bytes_relative(skb, at, to, n, BPF_HDR_START_MAC)
			  : bpf_skb_load_bytes(skb, at, to, n);
}

/* Copies the frame. An outer VLAN tag that the kernel took out goes back into its place. */
static __always_inline int copy_tagged(struct __sk_buff *skb, uint32_t front, struct work *w)
{
	uint8_t *b = w->walk.bytes;
	uint32_t n = bounded(w->walk.there - 16), tci = skb->vlan_tci, type = skb->vlan_proto;

	if (n == 0 || load(skb, front, 0, b, 12) < 0 || load(skb, front, 12, b + 16, n) < 0)
		return -1;
	/* The tag is in network order already. */
	b[12] = (uint8_t)type;
	b[13] = (uint8_t)(type >> 8);
	b[14] = (uint8_t)(tci >> 8);
	b[15] = (uint8_t)tci;
	return 0;
}

/* front: bytes of the frame that are in front of the packet's data. */
static __always_inline int tc(
	struct __sk_buff *skb, uint16_t out, uint64_t hardware_ns, uint32_t front)
{
	const int tagged = skb->vlan_present != 0 && pl_tap_control.link == PL_TAP_ETHERNET;
	struct work *w = begin(skb->len + front + (tagged ? 4 : 0), skb->gso_size);
	uint32_t n;

	if (w == NULL)
		return NEXT;
	n = bounded(w->walk.there);
	if (tagged) {
		if (copy_tagged(skb, front, w) < 0)
			w->walk.there = 0;
	} else if (n == 0 || ((front != 0 || !copy_words(FIRST_PIECE(skb), w->walk.bytes, n)) &&
				     load(skb, front, 0, w->walk.bytes, n) < 0)) {
		w->walk.there = 0;
	}
	record(w, out, hardware_ns, skb->gso_segs, 1);
	return NEXT;
}

SEC("tc") int pl_tap_in(struct __sk_buff *skb)
{
	const int ethernet = pl_tap_control.link == PL_TAP_ETHERNET;

	return tc(skb, 0, skb->hwtstamp, ethernet ? pl_skb_mac_in_front(skb) : 0);
}

/* A forwarded packet has the NIC's time of its arrival, which is not the time at which it
 * leaves. */
SEC("tc") int pl_tap_out(struct __sk_buff *skb)
{
	return tc(skb, PL_OBS_OUT, 0, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
