/* SPDX-License-Identifier: BSD-2-Clause */
/* An assembler for classic BPF programs, whose jumps only go forward. */
#pragma once

#include "netio/iface.h"

#define NOWHERE 0xffffffffu

/* A jump target. Until its place is known, the jumps to it form a chain through their operands. */
struct label {
	uint32_t last;
};

struct assembler {
	struct sock_filter *code;
	uint32_t n, cap;
};

static inline void put(struct assembler *a, uint16_t op, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (a->n < a->cap)
		a->code[a->n] = (struct sock_filter){ .code = op, .jt = jt, .jf = jf, .k = k };
	a->n++;
}

static inline void op(struct assembler *a, uint16_t code, uint32_t k)
{
	put(a, code, k, 0, 0);
}

static inline void jump(struct assembler *a, struct label *to)
{
	uint32_t before = to->last;

	to->last = a->n;
	op(a, BPF_JMP | BPF_JA, before);
}

/* Jumps to the label if the comparison of the accumulator holds. A separate JA does the jump,
 * because a conditional jump reaches only 255 instructions. */
static inline void jump_if(struct assembler *a, uint16_t compare, uint32_t k, struct label *to)
{
	put(a, BPF_JMP | BPF_K | compare, k, 0, 1);
	jump(a, to);
}

static inline void here(struct assembler *a, struct label *l)
{
	while (l->last != NOWHERE && a->n <= a->cap) {
		uint32_t at = l->last;

		l->last = a->code[at].k;
		a->code[at].k = a->n - at - 1;
	}
	l->last = NOWHERE;
}

static inline uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
