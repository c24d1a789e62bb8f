/* SPDX-License-Identifier: BSD-2-Clause */
/* Classic BPF programs: one takes every frame, others choose a socket of a group by the source
 * address. */
#include "netio/cbpf_asm.h"

#include <errno.h>
#include <linux/if_ether.h>

#include "netio/steer.h"

#define SHARE 0 /* scratch word: share of the group that the hash chose */

/* Multiplicative hash of 32-bit words; folds the upper bits down, which are mixed best. */
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
}

/* Leaves in the accumulator a hash of the source address of the IP header at `ip`. */
static void hash_source(struct assembler *a, uint32_t ip)
{
	struct label v4 = { NOWHERE }, done = { NOWHERE };

	op(a, BPF_LD | BPF_B | BPF_ABS, ip);
	op(a, BPF_ALU | BPF_RSH | BPF_K, 4);
	jump_if(a, BPF_JEQ, 4, &v4);
	hash_words(a, ip + 8, 4);
	jump(a, &done);
	here(a, &v4);
	hash_words(a, ip + 12, 1);
	here(a, &done);
}

int pl_iface_cbpf_all(uint32_t bytes, struct sock_filter *dst, uint32_t cap)
{
	struct assembler a = { .code = dst, .cap = cap };

	op(&a, BPF_RET | BPF_K, bytes);
	return (int)a.n;
}

int pl_iface_cbpf_source(struct sock_filter *dst, uint32_t cap)
{
	struct assembler a = { .code = dst, .cap = cap };
	struct label tagged = { NOWHERE };

	/* The outer VLAN tag is not in the frame; behind a second tag the IP header begins four
	 * bytes later. */
	op(&a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PROTOCOL));
	jump_if(&a, BPF_JEQ, ETH_P_8021Q, &tagged);
	jump_if(&a, BPF_JEQ, ETH_P_8021AD, &tagged);
	hash_source(&a, (uint32_t)SKF_NET_OFF);
	op(&a, BPF_RET | BPF_A, 0);
	here(&a, &tagged);
	hash_source(&a, (uint32_t)SKF_NET_OFF + 4);
	op(&a, BPF_RET | BPF_A, 0);
	return a.n <= cap ? (int)a.n : -E2BIG;
}

/* ---- sockets of a group ---- */

static void unless(struct assembler *a, uint32_t k, struct label *to)
{
	put(a, BPF_JMP | BPF_JEQ | BPF_K, k, 1, 0);
	jump(a, to);
}

/* Returns the sender's socket if source address and share match. The datagram has the sender's IP
 * version; its share is in scratch memory. */
static void steer_sender(struct assembler *a, const struct pl_steer_sender *s)
{
	const bool v4 = pl_addr_is_v4(&s->who.addr);
	const uint32_t source = (uint32_t)SKF_NET_OFF + (v4 ? 12 : 8), first = v4 ? 12 : 0,
		       bytes = s->who.bits / 8 - first;
	struct label other = { NOWHERE };

	for (uint32_t at = 0; at < bytes; at += 4) {
		op(a, BPF_LD | BPF_W | BPF_ABS, source + at);
		unless(a, be32(s->who.addr.b + first + at), &other);
	}
	op(a, BPF_LD | BPF_MEM, SHARE);
	unless(a, s->share, &other);
	op(a, BPF_RET | BPF_K, s->socket);
	here(a, &other);
}

static void steer_senders(struct assembler *a, const struct pl_steer *steer, bool v4, uint8_t bits)
{
	for (uint32_t i = 0; i < steer->n_senders; i++) {
		const struct pl_steer_sender *s = &steer->senders[i];

		if (pl_addr_is_v4(&s->who.addr) == v4 && s->who.bits == bits)
			steer_sender(a, s);
	}
}

int pl_steer_cbpf(const struct pl_steer *steer, struct sock_filter *dst, uint32_t cap)
{
	struct assembler a = { .code = dst, .cap = cap };
	struct label v4 = { NOWHERE }, shares = { NOWHERE };

	hash_source(&a, (uint32_t)SKF_NET_OFF);
	op(&a, BPF_ALU | BPF_MOD | BPF_K, steer->shares);
	op(&a, BPF_ST, SHARE);
	op(&a, BPF_LD | BPF_B | BPF_ABS, (uint32_t)SKF_NET_OFF);
	op(&a, BPF_ALU | BPF_RSH | BPF_K, 4);
	jump_if(&a, BPF_JEQ, 4, &v4);
	steer_senders(&a, steer, false, 128);
	steer_senders(&a, steer, false, 64);
	jump(&a, &shares);
	here(&a, &v4);
	steer_senders(&a, steer, true, 128);
	here(&a, &shares);
	op(&a, BPF_LD | BPF_MEM, SHARE);
	for (uint32_t i = 0; i < steer->shares; i++) {
		put(&a, BPF_JMP | BPF_JEQ | BPF_K, i, 0, 1);
		op(&a, BPF_RET | BPF_K, steer->sockets[i]);
	}
	op(&a, BPF_RET | BPF_K, steer->sockets[0]);
	return a.n <= cap ? (int)a.n : -E2BIG;
}
