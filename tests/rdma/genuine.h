/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder beside a genuine one: answers as lines of text, to compare. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/responder.h"

#define GENUINE_VA    UINT64_C(0x7ffff7cce000)
#define GENUINE_BYTES 65536

static bool is_answer(const struct pl_roce *p)
{
	const uint8_t op = p->opcode & PL_ROCE_OP_MASK;

	return (p->opcode & PL_ROCE_SERVICE_MASK) == PL_ROCE_RC && op >= PL_ROCE_READ_FIRST &&
	       op <= PL_ROCE_ATOMIC_ACK;
}

/* "opcode:number:syndrome:messages", and of those that carry it the original value or the payload's
 * length and sum. */
static void append(char *text, size_t cap, const struct pl_roce *p)
{
	const size_t at = strlen(text);
	uint32_t sum = 0;
	int n = snprintf(text + at, cap - at, "%s%x:%x:%x:%x", at > 0 ? " " : "", p->opcode, p->psn,
		p->headers & PL_ROCE_H_AETH ? p->syndrome : 0u,
		p->headers & PL_ROCE_H_AETH ? p->msn : 0u);

	for (const uint8_t *b = p->payload.pos; b < p->payload.end; b++)
		sum = sum * 31 + *b;
	if (p->headers & PL_ROCE_H_ORIGINAL)
		snprintf(text + at + n, cap - at - (size_t)n, ":%llx",
			(unsigned long long)p->original);
	else if (p->payload.pos < p->payload.end)
		snprintf(text + at + n, cap - at - (size_t)n, ":%zu/%x",
			(size_t)(p->payload.end - p->payload.pos), sum);
}

/* One frame in, its answers appended. */
static enum pl_rdma_cause ask(
	struct pl_responder *r, const struct pl_packet *pkt, char *text, size_t cap)
{
	static uint8_t space[64 * PL_ROCE_FRAME_MAX];
	static struct pl_frames frames;
	static struct pl_batch batch;
	uint8_t cause;

	batch.n = 1;
	batch.pkts[0] = *pkt;
	pl_responder_batch(r, &batch, &cause);
	pl_frames_init(&frames, space, sizeof(space));
	if (!pl_responder_answers(r, &frames))
		abort();
	for (uint32_t i = 0; i < frames.batch.n; i++) {
		struct pl_roce p;

		if (pl_roce_parse(&p,
			    pl_cursor(frames.batch.pkts[i].data, frames.batch.pkts[i].len),
			    PL_LINK_ETHERNET) != PL_ROCE_F_OK)
			abort();
		append(text, cap, &p);
	}
	return (enum pl_rdma_cause)cause;
}

static struct pl_roce_path genuine_path(const struct pl_addr *own, const struct pl_addr *peer)
{
	return (struct pl_roce_path){ .src = *own, .dst = *peer, .ttl = 64, .sport = 49152 };
}
