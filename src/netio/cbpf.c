/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of report traffic as a classic BPF program: the twin of bpf/filter.bpf.h for packet
 * sockets. The kernel takes the outer VLAN tag out of the frame into its metadata; a second tag
 * stays in the frame.
 */
#include "netio/cbpf_asm.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>

#define TAKE_ALL      0x40000u

/* Customary ports and markers of INT, as in decode/find.c; ports of VXLAN-GPE and Geneve. */
#define PORT_HOST_INT 33122
#define PORT_GPE      4790
#define PORT_GENEVE   6081
#define MARKER_HIGH   0xaaaaaaaau
#define MARKER_LOW    0xbbbbbbbbu

/* Words of the scratch memory. */
#define NEXT_HEADER   0
#define FRAGMENT      1 /* not zero: the frame is the first fragment of a datagram */
#define IP_AT         2 /* offset of the IP header */
#define OPTION_AT     3 /* offset of an option; next word: of its header's end */
#define OPTIONS_END   4

#define OPTIONS_MAX   4 /* options checked in each header; next: headers checked */
#define HEADERS_MAX   3

static void refuse(struct assembler *a)
{
	op(a, BPF_RET | BPF_K, 0);
}

static bool has(const uint8_t *bits, uint32_t i)
{
	return (bits[i >> 3] >> (i & 7) & 1) != 0;
}

/* Goes to `good` if the VLAN id is wanted; the accumulator holds the tag control information. */
static void check_vlan(struct assembler *a, const struct pl_filter_rules *rules, struct label *good)
{
	op(a, BPF_ALU | BPF_AND | BPF_K, 0xfff);
	for (uint32_t v = 0; v < 4096; v++) {
		if (has(rules->vlans, v))
			jump_if(a, BPF_JEQ, v, good);
	}
}

static void check_vlans(struct assembler *a, const struct pl_filter_rules *rules)
{
	struct label good = { NOWHERE }, untagged = { NOWHERE }, inner = { NOWHERE };

	op(a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT));
	jump_if(a, BPF_JEQ, 0, &untagged);
	op(a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG));
	check_vlan(a, rules, &good);
	here(a, &untagged);
	op(a, BPF_LD | BPF_H | BPF_ABS, 12);
	jump_if(a, BPF_JEQ, ETH_P_8021Q, &inner);
	jump_if(a, BPF_JEQ, ETH_P_8021AD, &inner);
	refuse(a);
	here(a, &inner);
	op(a, BPF_LD | BPF_H | BPF_ABS, 14);
	check_vlan(a, rules, &good);
	refuse(a);
	here(a, &good);
}

/* Refuses packets of another IP version; X is the offset of the IP header. */
static void check_version(struct assembler *a, uint32_t version)
{
	struct label good = { NOWHERE };

	op(a, BPF_LD | BPF_B | BPF_IND, 0);
	op(a, BPF_ALU | BPF_RSH | BPF_K, 4);
	jump_if(a, BPF_JEQ, version, &good);
	refuse(a);
	here(a, &good);
}

/* Checks an IPv4 header at X. Leaves X at the UDP header. */
static void check_v4(struct assembler *a, const struct pl_filter_rules *rules)
{
	struct label udp = { NOWHERE }, addressed = { NOWHERE }, broken = { NOWHERE },
		     good = { NOWHERE };

	check_version(a, 4);
	op(a, BPF_LD | BPF_B | BPF_IND, 9);
	jump_if(a, BPF_JEQ, IPPROTO_UDP, &udp);
	refuse(a);
	here(a, &udp);
	op(a, BPF_LD | BPF_H | BPF_IND, 6);
	jump_if(a, BPF_JSET, 0x1fff, &broken); /* a later fragment has no ports */
	op(a, BPF_ALU | BPF_AND | BPF_K, 0x2000);
	op(a, BPF_ST, FRAGMENT);
	op(a, BPF_LD | BPF_W | BPF_IND, 16);
	for (uint32_t i = 0; i < rules->naddrs; i++) {
		if (pl_addr_is_v4(&rules->addrs[i]))
			jump_if(a, BPF_JEQ, be32(rules->addrs[i].b + 12), &addressed);
	}
	if (rules->naddrs > 0)
		refuse(a);
	here(a, &addressed);
	op(a, BPF_LD | BPF_B | BPF_IND, 0);
	op(a, BPF_ALU | BPF_AND | BPF_K, 0x0f);
	jump_if(a, BPF_JGE, 5, &good);
	here(a, &broken);
	refuse(a);
	here(a, &good);
	op(a, BPF_ALU | BPF_LSH | BPF_K, 2);
	op(a, BPF_ALU | BPF_ADD | BPF_X, 0);
	op(a, BPF_MISC | BPF_TAX, 0);
}

static void check_v6_addrs(struct assembler *a, const struct pl_filter_rules *rules)
{
	struct label addressed = { NOWHERE };

	if (rules->naddrs == 0)
		return;
	for (uint32_t i = 0; i < rules->naddrs; i++) {
		if (pl_addr_is_v4(&rules->addrs[i]))
			continue;
		/* Each word that differs skips the rest of this address: 2 instructions a word, one
		 * jump. */
		for (uint8_t w = 0; w < 4; w++) {
			op(a, BPF_LD | BPF_W | BPF_IND, 24u + 4u * w);
			put(a, BPF_JMP | BPF_JEQ | BPF_K, be32(rules->addrs[i].b + 4 * w), 0,
				(uint8_t)(2 * (3 - w) + 1));
		}
		jump(a, &addressed);
	}
	refuse(a);
	here(a, &addressed);
}

static void check_v6(struct assembler *a, const struct pl_filter_rules *rules)
{
	struct label good = { NOWHERE }, fragment = { NOWHERE }, later = { NOWHERE };

	check_version(a, 6);
	check_v6_addrs(a, rules);
	op(a, BPF_LD | BPF_B | BPF_IND, 6);
	op(a, BPF_ST, NEXT_HEADER);
	op(a, BPF_MISC | BPF_TXA, 0);
	op(a, BPF_ALU | BPF_ADD, 40);
	op(a, BPF_MISC | BPF_TAX, 0);
	/* Skips up to two headers of hop-by-hop or destination options. X is the offset of the next
	 * header. */
	for (int i = 0; i < 2; i++) {
		struct label skip = { NOWHERE }, done = { NOWHERE };

		op(a, BPF_LD | BPF_MEM, NEXT_HEADER);
		jump_if(a, BPF_JEQ, IPPROTO_HOPOPTS, &skip);
		jump_if(a, BPF_JEQ, IPPROTO_DSTOPTS, &skip);
		jump(a, &done);
		here(a, &skip);
		op(a, BPF_LD | BPF_B | BPF_IND, 0);
		op(a, BPF_ST, NEXT_HEADER);
		op(a, BPF_LD | BPF_B | BPF_IND, 1);
		op(a, BPF_ALU | BPF_ADD, 1);
		op(a, BPF_ALU | BPF_LSH | BPF_K, 3);
		op(a, BPF_ALU | BPF_ADD | BPF_X, 0);
		op(a, BPF_MISC | BPF_TAX, 0);
		here(a, &done);
	}
	op(a, BPF_LD | BPF_MEM, NEXT_HEADER);
	jump_if(a, BPF_JEQ, IPPROTO_UDP, &good);
	jump_if(a, BPF_JEQ, IPPROTO_FRAGMENT, &fragment);
	refuse(a);
	here(a, &fragment);
	op(a, BPF_LD | BPF_H | BPF_IND, 2);
	jump_if(a, BPF_JSET, 0xfff8, &later);
	op(a, BPF_LD | BPF_IMM, 1);
	op(a, BPF_ST, FRAGMENT);
	op(a, BPF_LD | BPF_B | BPF_IND, 0);
	op(a, BPF_ST, NEXT_HEADER);
	op(a, BPF_MISC | BPF_TXA, 0);
	op(a, BPF_ALU | BPF_ADD, 8);
	op(a, BPF_MISC | BPF_TAX, 0);
	op(a, BPF_LD | BPF_MEM, NEXT_HEADER);
	jump_if(a, BPF_JEQ, IPPROTO_UDP, &good);
	here(a, &later);
	refuse(a);
	here(a, &good);
}

/* ---- packets that carry telemetry themselves ---- */

/* Goes to `otherwise` unless the frame has `bytes` bytes from X on: a load beyond the end would
 * refuse it. */
static void need(struct assembler *a, uint32_t bytes, struct label *otherwise)
{
	op(a, BPF_MISC | BPF_TXA, 0);
	op(a, BPF_ALU | BPF_ADD, bytes);
	op(a, BPF_MISC | BPF_TAX, 0);
	op(a, BPF_LD | BPF_W | BPF_LEN, 0);
	put(a, BPF_JMP | BPF_JGE | BPF_X, 0, 1, 0); /* the length against X */
	jump(a, otherwise);
	op(a, BPF_MISC | BPF_TXA, 0);
	op(a, BPF_ALU | BPF_SUB | BPF_K, bytes);
	op(a, BPF_MISC | BPF_TAX, 0);
}

/* Goes to `take` if the DSCP in the accumulator is wanted. */
static void data_dscp(struct assembler *a, const struct pl_filter_data *data, struct label *take)
{
	uint64_t dscps = data->dscps | (data->in_band ? UINT64_C(1) << 0x17 : 0);

	for (uint32_t d = 0; d < 64; d++) {
		if (dscps >> d & 1)
			jump_if(a, BPF_JEQ, d, take);
	}
}

/* Checks the transport header at X, protocol in NEXT_HEADER, for a probe marker or a UDP port of
 * telemetry. */
static void data_transport(struct assembler *a, const struct pl_filter_data *data,
	struct label *take, struct label *none)
{
	struct label udp = { NOWHERE }, marker = { NOWHERE }, gpe = { NOWHERE },
		     geneve = { NOWHERE };

	op(a, BPF_LD | BPF_MEM, NEXT_HEADER);
	if (data->gre)
		jump_if(a, BPF_JEQ, IPPROTO_GRE, take);
	jump_if(a, BPF_JEQ, IPPROTO_UDP, &udp);
	put(a, BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 1, 0);
	jump(a, none);
	/* TCP: X moves behind the options. */
	need(a, 20, none);
	op(a, BPF_LD | BPF_B | BPF_IND, 12);
	op(a, BPF_ALU | BPF_AND | BPF_K, 0xf0);
	op(a, BPF_ALU | BPF_RSH | BPF_K, 2);
	op(a, BPF_ALU | BPF_ADD | BPF_X, 0);
	op(a, BPF_MISC | BPF_TAX, 0);
	jump(a, &marker);
	here(a, &udp);
	need(a, 8, none);
	op(a, BPF_LD | BPF_H | BPF_IND, 2);
	for (uint32_t i = 0; i < data->nports; i++)
		jump_if(a, BPF_JEQ, data->ports[i], take);
	if (data->in_band) {
		jump_if(a, BPF_JEQ, PORT_HOST_INT, take);
		jump_if(a, BPF_JEQ, PORT_GPE, &gpe);
		jump_if(a, BPF_JEQ, PORT_GENEVE, &geneve);
	}
	op(a, BPF_MISC | BPF_TXA, 0);
	op(a, BPF_ALU | BPF_ADD, 8);
	op(a, BPF_MISC | BPF_TAX, 0);
	here(a, &marker);
	if (data->in_band) {
		need(a, 8, none);
		op(a, BPF_LD | BPF_W | BPF_IND, 0);
		put(a, BPF_JMP | BPF_JEQ | BPF_K, MARKER_HIGH, 1, 0);
		jump(a, none);
		op(a, BPF_LD | BPF_W | BPF_IND, 4);
		jump_if(a, BPF_JEQ, MARKER_LOW, take);
	}
	jump(a, none);
	/* VXLAN-GPE names INT in its next-protocol field; Geneve carries it in options. */
	here(a, &gpe);
	need(a, 16, none);
	op(a, BPF_LD | BPF_B | BPF_IND, 8 + 3);
	jump_if(a, BPF_JEQ, 0x05, take);
	jump_if(a, BPF_JEQ, 0x08, take);
	jump_if(a, BPF_JEQ, 0x82, take);
	jump(a, none);
	here(a, &geneve);
	need(a, 16, none);
	op(a, BPF_LD | BPF_B | BPF_IND, 8);
	jump_if(a, BPF_JSET, 0x3f, take);
	jump(a, none);
}

/* Goes to `take` if IOAM is among the first options of the header at X, which ends at OPTIONS_END.
 * Changes X. */
static void data_options(struct assembler *a, struct label *take)
{
	struct label done = { NOWHERE };

	op(a, BPF_MISC | BPF_TXA, 0);
	op(a, BPF_ALU | BPF_ADD, 2);
	op(a, BPF_ST, OPTION_AT);
	for (int i = 0; i < OPTIONS_MAX; i++) {
		struct label pad = { NOWHERE }, next = { NOWHERE };

		op(a, BPF_LD | BPF_MEM, OPTION_AT);
		op(a, BPF_ALU | BPF_ADD, 2);
		op(a, BPF_LDX | BPF_MEM, OPTIONS_END);
		put(a, BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1);
		jump(a, &done);
		op(a, BPF_LDX | BPF_MEM, OPTION_AT);
		op(a, BPF_LD | BPF_B | BPF_IND, 0);
		jump_if(a, BPF_JEQ, 0x11, take);
		jump_if(a, BPF_JEQ, 0x31, take);
		jump_if(a, BPF_JEQ, 0, &pad);
		op(a, BPF_LD | BPF_B | BPF_IND, 1);
		op(a, BPF_ALU | BPF_ADD, 2);
		jump(a, &next);
		here(a, &pad);
		op(a, BPF_LD | BPF_IMM, 1);
		here(a, &next);
		op(a, BPF_ALU | BPF_ADD | BPF_X, 0);
		op(a, BPF_ST, OPTION_AT);
	}
	here(a, &done);
}

/* Moves X from the IPv6 header to the transport header, past options and routing headers; goes to
 * `take` on IOAM. */
static void data_v6(struct assembler *a, const struct pl_filter_data *data, struct label *take)
{
	struct label done = { NOWHERE };

	op(a, BPF_LD | BPF_B | BPF_IND, 6);
	op(a, BPF_ST, NEXT_HEADER);
	op(a, BPF_MISC | BPF_TXA, 0);
	op(a, BPF_ALU | BPF_ADD, 40);
	op(a, BPF_MISC | BPF_TAX, 0);
	for (int i = 0; i < HEADERS_MAX; i++) {
		struct label options = { NOWHERE }, skip = { NOWHERE };

		op(a, BPF_LD | BPF_MEM, NEXT_HEADER);
		jump_if(a, BPF_JEQ, IPPROTO_HOPOPTS, &options);
		jump_if(a, BPF_JEQ, IPPROTO_DSTOPTS, &options);
		jump_if(a, BPF_JEQ, IPPROTO_ROUTING, &options);
		jump(a, &done);
		here(a, &options);
		op(a, BPF_LD | BPF_B | BPF_IND, 1);
		op(a, BPF_ALU | BPF_ADD, 1);
		op(a, BPF_ALU | BPF_LSH | BPF_K, 3);
		op(a, BPF_ALU | BPF_ADD | BPF_X, 0);
		op(a, BPF_ST, OPTIONS_END);
		op(a, BPF_LD | BPF_MEM, NEXT_HEADER);
		jump_if(a, BPF_JEQ, IPPROTO_ROUTING, &skip);
		op(a, BPF_LD | BPF_B | BPF_IND, 0);
		op(a, BPF_ST, NEXT_HEADER);
		if (data->ioam)
			data_options(a, take);
		op(a, BPF_LDX | BPF_MEM, OPTIONS_END);
		jump(a, &done);
		here(a, &skip);
		op(a, BPF_LD | BPF_B | BPF_IND, 0);
		op(a, BPF_ST, NEXT_HEADER);
		op(a, BPF_LDX | BPF_MEM, OPTIONS_END);
		here(a, &done);
	}
}

/* Goes to `take` if the packet at X carries telemetry itself; otherwise X is the offset of the IP
 * header again. */
static void check_data(struct assembler *a, const struct pl_filter_data *data, uint32_t version,
	struct label *take)
{
	struct label none = { NOWHERE };

	op(a, BPF_STX, IP_AT);
	op(a, BPF_LD | BPF_B | BPF_IND, 0);
	op(a, BPF_ALU | BPF_RSH | BPF_K, 4);
	put(a, BPF_JMP | BPF_JEQ | BPF_K, version, 1, 0);
	jump(a, &none);
	if (version == 4) {
		op(a, BPF_LD | BPF_H | BPF_IND, 6);
		jump_if(a, BPF_JSET, 0x1fff, &none);
		op(a, BPF_LD | BPF_B | BPF_IND, 1);
		op(a, BPF_ALU | BPF_RSH | BPF_K, 2);
		data_dscp(a, data, take);
		op(a, BPF_LD | BPF_B | BPF_IND, 9);
		op(a, BPF_ST, NEXT_HEADER);
		op(a, BPF_LD | BPF_B | BPF_IND, 0);
		op(a, BPF_ALU | BPF_AND | BPF_K, 0x0f);
		op(a, BPF_ALU | BPF_LSH | BPF_K, 2);
		op(a, BPF_ALU | BPF_ADD | BPF_X, 0);
		op(a, BPF_MISC | BPF_TAX, 0);
	} else {
		op(a, BPF_LD | BPF_H | BPF_IND, 0);
		op(a, BPF_ALU | BPF_RSH | BPF_K, 6);
		op(a, BPF_ALU | BPF_AND | BPF_K, 0x3f);
		data_dscp(a, data, take);
		data_v6(a, data, take);
	}
	data_transport(a, data, take, &none);
	here(a, &none);
	op(a, BPF_LDX | BPF_MEM, IP_AT);
}

int pl_iface_cbpf(const struct pl_filter_rules *rules, struct sock_filter *dst, uint32_t cap)
{
	struct assembler a = { .code = dst, .cap = cap };
	struct label tagged = { NOWHERE }, v4 = { NOWHERE }, v6 = { NOWHERE },
		     network = { NOWHERE }, ports = { NOWHERE }, take = { NOWHERE },
		     fragment = { NOWHERE };

	op(&a, BPF_LD | BPF_IMM, 0);
	op(&a, BPF_ST, FRAGMENT);
	if (!rules->any_vlan)
		check_vlans(&a, rules);
	op(&a, BPF_LDX | BPF_IMM, ETH_HLEN);
	op(&a, BPF_LD | BPF_H | BPF_ABS, 12);
	jump_if(&a, BPF_JEQ, ETH_P_8021Q, &tagged);
	jump_if(&a, BPF_JEQ, ETH_P_8021AD, &tagged);
	jump(&a, &network);
	here(&a, &tagged);
	op(&a, BPF_LDX | BPF_IMM, ETH_HLEN + 4);
	op(&a, BPF_LD | BPF_H | BPF_ABS, ETH_HLEN + 2);
	here(&a, &network);
	jump_if(&a, BPF_JEQ, ETH_P_IP, &v4);
	jump_if(&a, BPF_JEQ, ETH_P_IPV6, &v6);
	if (rules->roce1)
		jump_if(&a, BPF_JEQ, ETH_P_IBOE, &take);
	refuse(&a);
	here(&a, &v4);
	if (pl_filter_rules_have_data(rules))
		check_data(&a, &rules->data, 4, &take);
	check_v4(&a, rules);
	jump(&a, &ports);
	here(&a, &v6);
	if (pl_filter_rules_have_data(rules))
		check_data(&a, &rules->data, 6, &take);
	check_v6(&a, rules);
	here(&a, &ports);
	/* For a frame with a truncated UDP header this load reads beyond the end, which rejects the
	 * frame. */
	op(&a, BPF_LD | BPF_B | BPF_IND, 7);
	op(&a, BPF_LD | BPF_H | BPF_IND, 2);
	for (uint32_t p = 0; p < 65536; p++) {
		if (has(rules->ports, p))
			jump_if(&a, BPF_JEQ, p, &take);
	}
	refuse(&a);
	here(&a, &take);
	op(&a, BPF_LD | BPF_MEM, FRAGMENT);
	jump_if(&a, BPF_JGT, 0, &fragment);
	op(&a, BPF_RET | BPF_K, TAKE_ALL);
	here(&a, &fragment);
	op(&a, BPF_RET | BPF_K, PL_IFACE_FRAGMENT);
	return a.n <= cap ? (int)a.n : -E2BIG;
}
