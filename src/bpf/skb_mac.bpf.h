/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Place of the MAC header of a packet that enters at tc. It is at the packet's data, as tc
 * promises, unless generic XDP ran before: since Linux 6.9 that may give the stack a copy of the
 * packet without the length of its MAC header, and the data of the copy begins behind the
 * header. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <stdint.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* True when the 14 bytes at the packet's data are not its MAC header. */
__attribute__((noinline)) int pl_skb_do_compare_mac(struct __sk_buff *skb)
{
	uint64_t here[2] = { 0 }, mac[2] = { 0 };

	if (bpf_skb_load_bytes_relative(skb, 0, mac, ETH_HLEN, BPF_HDR_START_MAC) < 0)
		return 0;
	if (bpf_skb_load_bytes(skb, 0, here, ETH_HLEN) < 0)
		return 1;
	return here[0] != mac[0] || here[1] != mac[1];
}

/* Bytes of the Ethernet header that are in front of the packet's data: 0 or ETH_HLEN. For most
 * packets the type shows it: the header itself is read only when the type does not fit the packet,
 * or when an IP header may be in its place. */
static __always_inline uint32_t pl_skb_mac_in_front(struct __sk_buff *skb)
{
	const uint8_t *p = (const uint8_t *)(long)skb->data;
	const uint32_t len = skb->len;
	uint16_t type, length;

	if (p + ETH_HLEN <= (const uint8_t *)(long)skb->data_end) {
		type = *(const uint16_t *)(p + 12);
		length = bpf_ntohs(*(const uint16_t *)(p + (p[0] >> 4 == 6 ? 4 : 2)));
		if (type == (uint16_t)skb->protocol && length != len && length + 40u != len)
			return 0;
	}
	return pl_skb_do_compare_mac(skb) ? ETH_HLEN : 0;
}
