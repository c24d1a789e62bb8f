/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of report traffic as a classic BPF program: the twin of bpf/filter.bpf.h for packet sockets. The
 * outer VLAN tag stands beside the frame, a second one in it. Classic programs only jump forward.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>

#include "netio/iface.h"

#define TAKE_ALL    0x40000u
#define NOWHERE     0xffffffffu

/* Scratch memory. */
#define NEXT_HEADER 0
#define FRAGMENT    1 /* not zero: the frame is the first fragment of a datagram */

/* Where to go on. Until that is known, the jumps to it form a chain through their own operands. */
struct label {
	uint32_t last;
};

struct assembler {
	struct sock_filter *code;
	uint32_t n, cap;
};

static void put(struct assembler *a, uint16_t op, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (a->n < a->cap)
		a->code[a->n] = (struct sock_filter){ .code = op, .jt = jt, .jf = jf, .k = k };
	a->n++;
}

static void op(struct assembler *a, uint16_t code, uint32_t k)
{
	put(a, code, k, 0, 0);
}

static void jump(struct assembler *a, struct label *to)
{
	uint32_t before = to->last;

	to->last = a->n;
	op(a, BPF_JMP | BPF_JA, before);
}

/* Goes to the label when the accumulator compares so, else on. By a jump of its own: those of a comparison
 * reach 255 instructions only. */
static void jump_if(struct assembler *a, uint16_t compare, uint32_t k, struct label *to)
{
	put(a, BPF_JMP | BPF_K | compare, k, 0, 1);
	jump(a, to);
}

static void here(struct assembler *a, struct label *l)
{
	while (l->last != NOWHERE && a->n <= a->cap) {
		uint32_t at = l->last;

		l->last = a->code[at].k;
		a->code[at].k = a->n - at - 1;
	}
	l->last = NOWHERE;
}

static void refuse(struct assembler *a)
{
	op(a, BPF_RET | BPF_K, 0);
}

static bool has(const uint8_t *bits, uint32_t i)
{
	return (bits[i >> 3] >> (i & 7) & 1) != 0;
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The accumulator holds a tag's control information. */
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

/* Refuses what does not begin with the version. */
static void check_version(struct assembler *a, uint32_t version)
{
	struct label good = { NOWHERE };

	op(a, BPF_LD | BPF_B | BPF_IND, 0);
	op(a, BPF_ALU | BPF_RSH | BPF_K, 4);
	jump_if(a, BPF_JEQ, version, &good);
	refuse(a);
	here(a, &good);
}

/* X is where the IP header begins. Leaves X at the UDP header. */
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
		/* Each word that differs skips the rest of this address: 2 instructions a word, one jump. */
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
	/* Up to two headers of hop-by-hop or destination options. X is where the next header begins. */
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
	check_v4(&a, rules);
	jump(&a, &ports);
	here(&a, &v6);
	check_v6(&a, rules);
	here(&a, &ports);
	/* A load behind the end refuses the frame: a UDP header that is cut. */
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

/* Multiplied hashing of 32-bit words; the upper bits are the mixed ones. */
static void hash_words(struct assembler *a, uint32_t at, uint32_t words)
{
	const uint32_t golden = 0x9e3779b1;

	for (uint32_t w = 0; w < words; w++) {
		op(a, BPF_LD | BPF_W | BPF_ABS, at + 4 * w);
		if (w > 0)
			op(a, BPF_ALU | BPF_XOR | BPF_X, 0);
		op(a, BPF_ALU | BPF_MUL | BPF_K, golden);
		op(a, BPF_MISC | BPF_TAX, 0);
	}
	op(a, BPF_ALU | BPF_RSH | BPF_K, 16);
	op(a, BPF_ALU | BPF_XOR | BPF_X, 0);
	op(a, BPF_RET | BPF_A, 0);
}

static void hash_source(struct assembler *a, uint32_t ip)
{
	struct label v4 = { NOWHERE };

	op(a, BPF_LD | BPF_B | BPF_ABS, ip);
	op(a, BPF_ALU | BPF_RSH | BPF_K, 4);
	jump_if(a, BPF_JEQ, 4, &v4);
	hash_words(a, ip + 8, 4);
	here(a, &v4);
	hash_words(a, ip + 12, 1);
}

int pl_iface_cbpf_source(struct sock_filter *dst, uint32_t cap)
{
	struct assembler a = { .code = dst, .cap = cap };
	struct label tagged = { NOWHERE };

	/* The outer tag is beside the frame; behind a second one the IP header begins four bytes later. */
	op(&a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL));
	jump_if(&a, BPF_JEQ, ETH_P_8021Q, &tagged);
	jump_if(&a, BPF_JEQ, ETH_P_8021AD, &tagged);
	hash_source(&a, (uint32_t)SKF_NET_OFF);
	here(&a, &tagged);
	hash_source(&a, (uint32_t)SKF_NET_OFF + 4);
	return a.n <= cap ? (int)a.n : -E2BIG;
}
