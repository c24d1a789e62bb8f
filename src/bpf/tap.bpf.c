/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tap in the kernel: of each packet that enters (XDP, tc) or leaves (tc) it writes a record
 * into a ring, and lets the packet go on as if the program were not there. Headers are read from a
 * copy of the packet's first bytes by core/tap_core.h; each step is a function that the verifier
 * looks at once.
 *
 * Needs Linux 6.1: bpf_ktime_get_tai_ns, and XDP over packets of several pieces.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>

#include "bpf/tap_kernel.h"
#include "core/tap_counts.h"
#include "core/tap_rules.h"

struct pl_tap_walk;
int pl_tap_do_tag(struct pl_tap_walk *w, uint32_t i);
int pl_tap_do_label(struct pl_tap_walk *w, uint32_t i);
int pl_tap_do_extension(struct pl_tap_walk *w, uint32_t i);
int pl_tap_do_option(struct pl_tap_walk *w);

#define PL_TAP_TAG       (uint32_t) pl_tap_do_tag
#define PL_TAP_LABEL     (uint32_t) pl_tap_do_label
#define PL_TAP_EXTENSION (uint32_t) pl_tap_do_extension
#define PL_TAP_OPTION    pl_tap_do_option

#include "core/tap_core.h"

#define NEXT (-1) /* TC_ACT_UNSPEC, TCX_NEXT: go on with the next program */

struct work {
	struct pl_tap_kernel_counts counts;
	struct pl_tap_walk walk;
	uint64_t woken_ns;
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
uint64_t pl_tap_ahead_ns; /* so far is CLOCK_TAI ahead of the time of day */
struct pl_tap_rule_set pl_tap_sets[PL_TAP_RULE_SETS];
uint32_t pl_tap_set; /* the one in force */

/* ---- steps ---- */

__attribute__((noinline)) int pl_tap_do_link(struct work *w)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_link(&w->walk, pl_tap_control.link);
}

__attribute__((noinline)) int pl_tap_do_tag(struct pl_tap_walk *w, uint32_t i)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_tag(w, i);
}

__attribute__((noinline)) int pl_tap_do_label(struct pl_tap_walk *w, uint32_t i)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_label(w, i);
}

__attribute__((noinline)) int pl_tap_do_option(struct pl_tap_walk *w)
{
	return w == NULL ? 0 : pl_tap_core_option(w);
}

__attribute__((noinline)) int pl_tap_do_extension(struct pl_tap_walk *w, uint32_t i)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_extension(w, i);
}

__attribute__((noinline)) int pl_tap_do_ip6(struct work *w)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_ip6(&w->walk);
}

__attribute__((noinline)) int pl_tap_do_options(struct work *w)
{
	if (w != NULL)
		pl_tap_core_options(&w->walk);
	return 0;
}

/* What the first rule that matches says; enum pl_tap_ruling. */
__attribute__((noinline)) int pl_tap_do_rules(struct work *w)
{
	struct pl_tap_rule_set *set =
		&pl_tap_sets[*(volatile uint32_t *)&pl_tap_set & (PL_TAP_RULE_SETS - 1)];
	uint32_t n = set->n;

	if (w == NULL)
		return PL_TAP_RULED_SKIP;
	w->walk.record.obs |= set->point;
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
	return PL_TAP_RULED_TAKE;
}

static __always_inline int read_rules(struct work *w)
{
	const struct pl_tap_rule_set *set =
		&pl_tap_sets[*(volatile uint32_t *)&pl_tap_set & (PL_TAP_RULE_SETS - 1)];

	if (set->n != 0)
		return pl_tap_do_rules(w);
	w->walk.record.obs |= set->point;
	return PL_TAP_RULED_TAKE;
}

/* The usual packet takes no call: where returns are slow, each costs as much as the rest of it. */
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
					       : (uint32_t)pl_tap_do_ip6(w);
	if (outcome == PL_TAP_MADE)
		outcome = pl_tap_core_transport(&w->walk);
	if (outcome == PL_TAP_MADE && w->walk.left > 0 && !pl_tap_core_usual_options(&w->walk))
		(void)pl_tap_do_options(w);
	return outcome;
}

static __always_inline void add_count(
	struct pl_tap_count_value *to, const struct pl_pkt96 *r, uint64_t now_ns)
{
	if (now_ns < to->first_ns)
		to->first_ns = now_ns;
	__sync_fetch_and_add(&to->packets, 1);
	__sync_fetch_and_add(&to->wire_bytes, r->wire_len);
	__sync_fetch_and_add(&to->pay_bytes, r->pay_len);
}

/*
 * Whether the packet was counted; else it gets its record. The time is read behind the look at which
 * table is in force, so a packet in a table has no time before that table's turn.
 */
__attribute__((noinline)) int pl_tap_do_count(struct work *w)
{
	struct pl_tap_count_key key;
	struct pl_tap_count_value one, *value;
	uint32_t zero = 0;
	uint64_t now_ns;
	void *table = bpf_map_lookup_elem(&pl_tap_counting, &zero);

	if (w == NULL || table == NULL)
		return 0;
	now_ns = bpf_ktime_get_tai_ns() - *(volatile uint64_t *)&pl_tap_ahead_ns;
	key.window = pl_tap_count_window(pl_tap_plan.pane_ns, now_ns);
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < PL_TAP_COUNT_WORDS; i++)
		key.words[i] =
			pl_tap_count_word(&w->walk.record, pl_tap_plan.at[i], pl_tap_plan.mask[i]);
	value = bpf_map_lookup_elem(table, &key);
	if (value == NULL) {
		one = (struct pl_tap_count_value){ 1, w->walk.record.wire_len,
			w->walk.record.pay_len, now_ns };
		if (bpf_map_update_elem(table, &key, &one, BPF_NOEXIST) == 0) {
			w->counts.counted++;
			return 1;
		}
		/* Another processor was first, or there is no room. */
		value = bpf_map_lookup_elem(table, &key);
	}
	if (value == NULL) {
		w->counts.count_full++;
		return 0;
	}
	add_count(value, &w->walk.record, now_ns);
	w->counts.counted++;
	return 1;
}

/* User space looks by itself once it was woken, for longer than nobody wakes it again. */
static __always_inline uint64_t wakes(struct work *w, uint64_t now_ns)
{
	if (now_ns - w->woken_ns < pl_tap_control.wake_ns)
		return BPF_RB_NO_WAKEUP;
	w->woken_ns = now_ns;
	return BPF_RB_FORCE_WAKEUP;
}

/* The record of the packet whose head was copied. hardware_ns: the NIC's time, 0 without one. */
static __always_inline void record(struct work *w, uint16_t out, uint64_t hardware_ns)
{
	const uint32_t outcome = read_headers(w);
	struct pl_pkt96 *r = &w->walk.record;
	uint64_t now_ns;
	long failed;

	/* A record without number cannot say whose time it has: it gets the kernel's. */
	if (pl_tap_control.record_bytes == sizeof(struct pl_pkt64))
		hardware_ns = 0;
	w->counts.stamped += hardware_ns != 0;
	if (outcome == PL_TAP_NOT_IP) {
		w->counts.not_ip++;
		return;
	}
	if (outcome != PL_TAP_MADE) {
		w->counts.broken++;
		return;
	}
	w->counts.bad_options += (w->walk.flags & PL_TAP_BAD_OPTIONS) != 0;
	r->obs |= out;
	r->flow_hash = pl_tap_core_hash(r);
	switch (read_rules(w)) {
	case PL_TAP_RULED_TAKE:
		break;
	case PL_TAP_RULED_SKIP:
		w->counts.skipped++;
		return;
	default:
		w->counts.not_sampled++;
		return;
	}
	/* Of the NIC's clock nobody knows which window is open. */
	if (pl_tap_plan.on && hardware_ns == 0 && pl_tap_do_count(w))
		return;
	now_ns = bpf_ktime_get_tai_ns();
	r->ts_ns = hardware_ns != 0 ? hardware_ns : now_ns;
	/* Of the number that user space gives a record one bit says until then whose time it has. */
	r->record_seq = hardware_ns != 0;
	failed = pl_tap_control.record_bytes == sizeof(struct pl_pkt64)
			 ? bpf_ringbuf_output(
				   &pl_tap_ring, r, sizeof(struct pl_pkt64), wakes(w, now_ns))
			 : bpf_ringbuf_output(
				   &pl_tap_ring, r, sizeof(struct pl_pkt96), wakes(w, now_ns));
	if (failed) {
		w->counts.ring_full++;
		return;
	}
	w->counts.records++;
	w->counts.hardware += hardware_ns != 0;
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

static __always_inline struct work *begin(uint32_t wire)
{
	uint32_t zero = 0;
	struct work *w = bpf_map_lookup_elem(&pl_tap_work, &zero);

	if (w == NULL)
		return NULL;
	w->walk.wire = wire;
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
	struct work *w = begin((uint32_t)bpf_xdp_get_buff_len(ctx));
	uint32_t n;

	if (w == NULL)
		return XDP_PASS;
	n = bounded(w->walk.there);
	if (n == 0 || (!copy_words(FIRST_PIECE(ctx), w->walk.bytes, n) &&
			      bpf_xdp_load_bytes(ctx, 0, w->walk.bytes, n) < 0))
		w->walk.there = 0;
	record(w, 0, 0);
	return XDP_PASS;
}

/* Where the kernel took the outer VLAN tag out of the frame it goes back where it was. */
static __always_inline int copy_tagged(struct __sk_buff *skb, struct work *w)
{
	uint8_t *b = w->walk.bytes;
	uint32_t n = bounded(w->walk.there - 16), tci = skb->vlan_tci, type = skb->vlan_proto;

	if (n == 0 || bpf_skb_load_bytes(skb, 0, b, 12) < 0 ||
		bpf_skb_load_bytes(skb, 12, b + 16, n) < 0)
		return -1;
	/* In network order already. */
	b[12] = (uint8_t)type;
	b[13] = (uint8_t)(type >> 8);
	b[14] = (uint8_t)(tci >> 8);
	b[15] = (uint8_t)tci;
	return 0;
}

static __always_inline int tc(struct __sk_buff *skb, uint16_t out, uint64_t hardware_ns)
{
	const int tagged = skb->vlan_present != 0 && pl_tap_control.link == PL_TAP_ETHERNET;
	struct work *w = begin(skb->len + (tagged ? 4 : 0));
	uint32_t n;

	if (w == NULL)
		return NEXT;
	n = bounded(w->walk.there);
	if (tagged) {
		if (copy_tagged(skb, w) < 0)
			w->walk.there = 0;
	} else if (n == 0 || (!copy_words(FIRST_PIECE(skb), w->walk.bytes, n) &&
				     bpf_skb_load_bytes(skb, 0, w->walk.bytes, n) < 0)) {
		w->walk.there = 0;
	}
	record(w, out, hardware_ns);
	return NEXT;
}

SEC("tc") int pl_tap_in(struct __sk_buff *skb)
{
	return tc(skb, 0, skb->hwtstamp);
}

/* A packet that is passed on has the NIC's time of its arrival, which is not that of its leaving. */
SEC("tc") int pl_tap_out(struct __sk_buff *skb)
{
	return tc(skb, PL_OBS_OUT, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
