/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records packets that the kernel drops, at the tracepoint skb:kfree_skb: it writes a record of
 * each, with reason and place, into a ring, up to a limit per second, and counts all of them by
 * reason. The program allocates nothing and frees nothing, so it causes no drop itself. While the
 * program runs, the kernel does not start it again on the same processor; it counts a drop in an
 * interrupt at that time as a miss of the program.
 *
 * Needs Linux 6.1 with BTF: members of the kernel's structures are found by their names (CO-RE).
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/drops_kernel.h"
#include "bpf/tap_steps.bpf.h"

#define AF_INET   2
#define AF_INET6  10
#define AF_PACKET 17

#define TRIES     8           /* tries to take a record's time, while other processors do */
#define ALLOWANCE 1000000000u /* ns of records that may come at once */
#define NO_HEADER 0xffffu     /* unset offset of a header in sk_buff */

/* Members of the kernel's structures that are read here. */
#define KERNEL    __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum;
} KERNEL;

struct net {
	struct ns_common ns;
} KERNEL;

typedef struct {
	struct net *net;
} KERNEL possible_net_t;

struct net_device {
	char name[16];
	int ifindex;
	possible_net_t nd_net;
} KERNEL;

struct sock_common {
	unsigned short skc_family;
	possible_net_t skc_net;
} KERNEL;

struct sock {
	struct sock_common __sk_common;
} KERNEL;

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	uint16_t protocol, vlan_proto, vlan_tci, network_header, mac_header;
	unsigned int tail; /* offset from head, on machines of 64 bits */
	unsigned char *head, *data;
} KERNEL;

/* Before Linux 6.2 a bit tells whether the tag holds. */
struct sk_buff___tag_bit {
	uint8_t vlan_present : 1;
} KERNEL;

struct work {
	struct pl_drops_book book; /* first */
	struct pl_tap_walk walk;
	struct pl_tap_share share;
	struct pl_drops_event event;
	uint64_t woken_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct work);
} pl_drops_work SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PL_DROPS_REASONS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} pl_drops_by SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} pl_drops_ring SEC(".maps");

const volatile struct pl_drops_control pl_drops_control;
uint64_t pl_drops_spent_ns; /* time up to which records are used up */

/* ---- the packet's headers ---- */

__attribute__((noinline)) int pl_drops_do_typed(struct pl_tap_walk *w)
{
	return w == NULL ? PL_TAP_BROKEN : (int)pl_tap_core_typed(w);
}

/* A number of bytes as the verifier believes it. */
static __always_inline uint32_t bounded(uint32_t n)
{
	if (n > PL_TAP_HEAD_BYTES)
		n = PL_TAP_HEAD_BYTES;
	PL_FRAME_OPAQUE(n);
	return n > PL_TAP_HEAD_BYTES ? 0 : n;
}

/* Finds the header that skb->protocol names. If that is a tag in the frame, the network header may
 * stand behind it. */
static __always_inline uint32_t find_network(struct sk_buff *skb, uint32_t tail, uint32_t data)
{
	const uint32_t network = skb->network_header, mac = skb->mac_header;
	const uint16_t type = __builtin_bswap16(skb->protocol);

	if ((type == ETH_P_8021Q || type == ETH_P_8021AD) && mac != NO_HEADER &&
		mac + ETH_HLEN <= tail)
		return mac + ETH_HLEN;
	return network == 0 || network == NO_HEADER || network > tail ? data : network;
}

/* Copies the bytes of the linear buffer from there on. Bytes in its pages are not read. */
static __always_inline void copy_head(struct pl_tap_walk *k, struct sk_buff *skb)
{
	const uint32_t tail = skb->tail, data = (uint32_t)(skb->data - skb->head);
	const uint32_t at = find_network(skb, tail, data);
	const uint32_t n = bounded(tail > at ? tail - at : 0);

	k->wire = data + skb->len > at ? data + skb->len - at : 0;
	k->there = 0;
	if (n > 0 && bpf_probe_read_kernel(k->bytes, n, skb->head + at) == 0)
		k->there = n < k->wire ? n : k->wire;
	k->at = 0;
	k->proto = __builtin_bswap16(skb->protocol);
}

static __always_inline bool is_tagged(struct sk_buff *skb)
{
	struct sk_buff___tag_bit *old = (struct sk_buff___tag_bit *)skb;

	if (bpf_core_field_exists(old->vlan_present))
		return BPF_CORE_READ_BITFIELD(old, vlan_present) != 0;
	return skb->vlan_proto != 0;
}

/* Reads the headers. Of a packet without IP header, or with wrong or cut headers, the record holds
 * those before. */
static __always_inline void read_headers(struct pl_tap_walk *k, struct sk_buff *skb)
{
	uint32_t outcome = PL_TAP_NOT_IP;

	memset(&k->record, 0, sizeof(k->record));
	k->flags = 0;
	if (is_tagged(skb))
		k->record.vlan = skb->vlan_tci & 0xfff;
	if (k->proto != 0)
		outcome = (uint32_t)pl_drops_do_typed(k);
	if (outcome == PL_TAP_MADE)
		outcome = k->version == 4 ? pl_tap_core_ip4(k) : (uint32_t)pl_tap_do_ip6(k);
	if (outcome == PL_TAP_MADE)
		outcome = pl_tap_core_transport(k);
	if (outcome == PL_TAP_MADE && k->left > 0)
		(void)pl_tap_do_options(k);
	if (outcome == PL_TAP_MADE)
		k->record.flow_hash = pl_tap_core_hash(&k->record);
	else if (k->there < PL_TAP_HEAD_BYTES && k->there < k->wire)
		k->record.obs |= PL_OBS_TRUNCATED;
}

/* ---- whose packet ---- */

enum { OURS, ELSEWHERE, NOBODY };

static __always_inline int whose(unsigned int netns)
{
	return netns == 0 ? NOBODY : netns == pl_drops_control.netns ? OURS : ELSEWHERE;
}

static __always_inline int of_socket(struct sock *sk)
{
	unsigned short family;

	if (sk == NULL)
		return NOBODY;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6 && family != AF_PACKET)
		return NOBODY;
	return whose(BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum));
}

/* A packet that waits at a UDP socket has something else where its interface was, which is no
 * address of the kernel: nothing can be read there. */
static __always_inline int find_owner(struct pl_drop168 *r, struct sk_buff *skb, struct sock *rx)
{
	struct net_device *dev = skb->dev;
	int owner = whose(BPF_CORE_READ(dev, nd_net.net, ns.inum));

	memset(&r->interface, 0, sizeof(r->interface));
	r->ifindex = 0;
	if (owner == OURS) {
		r->ifindex = (uint32_t)BPF_CORE_READ(dev, ifindex);
		bpf_probe_read_kernel_str(&r->interface, sizeof(r->interface), dev->name);
	}
	if (owner == NOBODY)
		owner = of_socket(rx);
	if (owner == NOBODY)
		owner = of_socket(skb->sk);
	return owner;
}

static __always_inline bool is_asked_for(const struct pl_drop168 *r)
{
	uint64_t name[2];

	if (pl_drops_control.interface[0] == 0)
		return true;
	memcpy(name, &r->interface, sizeof(name));
	return name[0] == pl_drops_control.interface[0] && name[1] == pl_drops_control.interface[1];
}

/* ---- records ---- */

/* Takes the time of a record out of the last second; false: it is spent. */
static __always_inline bool take_time(uint64_t now_ns)
{
#pragma clang loop unroll(full)
	for (int i = 0; i < TRIES; i++) {
		const uint64_t spent = *(volatile uint64_t *)&pl_drops_spent_ns;
		const uint64_t from = spent + ALLOWANCE < now_ns ? now_ns - ALLOWANCE : spent;
		const uint64_t to = from + pl_drops_control.cost_ns;

		if (to > now_ns)
			return false;
		if (__sync_val_compare_and_swap(&pl_drops_spent_ns, spent, to) == spent)
			return true;
	}
	return false;
}

static __always_inline void give(struct work *w, struct sk_buff *skb, uint64_t place)
{
	struct pl_drop168 *r = &w->event.record;
	const uint64_t now_ns = bpf_ktime_get_ns();

	if (!take_time(now_ns)) {
		w->book.counts.rate_limited++;
		return;
	}
	memcpy(r, &w->walk.record, sizeof(struct pl_pkt96));
	r->ts_ns = bpf_ktime_get_tai_ns();
	r->ethertype = __builtin_bswap16(skb->protocol);
	r->skb_len = skb->len;
	w->event.at[0] = '\0';
	/* A place that the kernel cannot print stays empty. */
	BPF_SNPRINTF(w->event.at, sizeof(w->event.at), "%pB", place);
	if (bpf_ringbuf_output(&pl_drops_ring, &w->event, sizeof(w->event),
		    pl_tap_wakes(&w->woken_ns, pl_drops_control.wake_ns, now_ns)))
		w->book.counts.ring_full++;
	else
		w->book.counts.records++;
}

static __always_inline void count_reason(uint32_t reason)
{
	const uint32_t slot = pl_drops_slot(reason);
	uint64_t *n = bpf_map_lookup_elem(&pl_drops_by, &slot);

	if (n != NULL)
		(*n)++;
}

/* Handles a drop. Arguments of the tracepoint: buffer, place, reason, and since Linux 6.11 the
 * socket that was to receive it. */
SEC("tp_btf/kfree_skb") int pl_drops_drop(uint64_t *told)
{
	struct sk_buff *skb = (struct sk_buff *)told[0];
	const uint32_t reason = (uint32_t)told[2];
	const uint32_t zero = 0;
	struct sock *rx = NULL;
	struct work *w;
	int owner;

	/* SKB_NOT_DROPPED_YET is 0. */
	if (reason == 0 || reason == pl_drops_control.consumed)
		return 0;
	w = bpf_map_lookup_elem(&pl_drops_work, &zero);
	if (w == NULL)
		return 0;
	if (pl_drops_control.has_rx_sock)
		rx = (struct sock *)told[3];
	owner = find_owner(&w->event.record, skb, rx);
	if (owner != OURS) {
		if (owner == ELSEWHERE)
			w->book.counts.other_namespace++;
		else
			w->book.counts.not_network++;
		return 0;
	}
	if (!is_asked_for(&w->event.record)) {
		w->book.counts.other_interface++;
		return 0;
	}
	count_reason(reason);
	w->event.record.kernel_reason = reason;
	copy_head(&w->walk, skb);
	read_headers(&w->walk, skb);
	w->share.n = 1;
	switch (pl_tap_read_rules(&w->walk, &w->share, &w->book.hits)) {
	case PL_TAP_RULED_TAKE:
		give(w, skb, told[1]);
		break;
	case PL_TAP_RULED_SKIP:
		w->book.counts.skipped++;
		break;
	default:
		w->book.counts.not_sampled++;
		break;
	}
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
