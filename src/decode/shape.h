/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Header shapes. The reports of an exporter differ in addresses, ports, numbers and values; the
 * bytes of their headers that fast.c checks are the same from one to the next. Once fast.c has
 * taken a packet, the checked bytes are kept with a mask of the checked bits. A later packet of the
 * same length that agrees in all of them is then accepted by comparing 112 bytes, instead of
 * parsing the headers again. A shape makes no decision of its own: every bit that fast.c checked is
 * in the mask or is checked again. fast_test.c turns each bit of the headers to prove it.
 */
#pragma once

#include "decode/internal.h"

/* Bytes compared: outer Ethernet, IPv4 and UDP (not in a socket's payload), the report header (12
 * bytes in v2.0, 16 in v1.0), the inner Ethernet, IPv4 and UDP or TCP, shim and metadata header (16
 * in v2.x, 12 in v1.0): 112 bytes, if report and INT are of the same generation and UDP is inside,
 * or up to 128. */
#define SHAPE_BLOCKS        7
#define SHAPE_BYTES         (16 * SHAPE_BLOCKS)
#define SHAPE_LONG          (SHAPE_BYTES + 16)

#define SHAPE_NONE          UINT32_MAX /* length of no packet; 0 would fit an empty one */

/* Offsets of fields of the outer headers in Ethernet frames. */
#define SHAPE_EXPORTER      26
#define SHAPE_EXPORTER_PORT 34

typedef uint64_t shape_block __attribute__((vector_size(16)));

/* Offsets of a packet's parts from its first byte. */
struct usual_places {
	uint16_t report, inner, l4, shim, stack;
};

struct header_shape {
	shape_block value[SHAPE_BLOCKS + 1] __attribute__((aligned(64)));
	shape_block mask[SHAPE_BLOCKS + 1];
	/* Record of the path: the bytes that are the same in every one, and zeros for those that
	 * the packet gives. */
	struct pl_path path;
	/* For each byte of the record, the byte of the headers that goes there, as one of the first
	 * 64 or, 64 + i, as the i-th of those from the 49th on; and the mask of its bits. */
	uint8_t permute[128], bits[128];
	const struct pl_profile *profile;
	const struct hop_plan *plan;
	uint64_t plan_key; /* the plan is this layout's while plan_keys has this at plan_slot */
	uint32_t plan_slot;
	uint32_t len; /* length of the packet; SHAPE_NONE: nothing learned */
	struct usual_places at;
	uint8_t link, version, hops;
	bool is_long;   /* the last block counts */
	uint8_t misses; /* common reports of this length since then that differ */
};

static inline struct header_shape *shape_place(struct pl_decode *d, uint32_t len)
{
	return &d->shapes[len / 4 % SHAPES];
}

/* True when the packet may have this shape: then it has the bytes that are compared. */
static inline bool shape_may_be(
	const struct header_shape *s, const struct pl_decode *d, const struct pl_packet *pkt)
{
	return s->len == pkt->len && s->link == pkt->link &&
	       d->plan_keys[s->plan_slot] == s->plan_key;
}

static inline shape_block shape_bytes(const uint8_t *p)
{
	shape_block v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Difference of block i, at data, from the shape; 0: none. */
static inline shape_block shape_differs(
	const struct header_shape *s, unsigned int i, const uint8_t *data)
{
	return (shape_bytes(data) & s->mask[i]) ^ s->value[i];
}

/* Allocates SHAPES shapes, with nothing learned. Returns 0 or -ENOMEM. */
int shapes_new(struct header_shape **ret);
void shapes_forget(struct header_shape *shapes);

/* Keeps the shape of j's packet, a common report without metadata in its own header and with
 * Ethernet and IPv4 inside, unless the place has another one. `path` is its record without the
 * values of the hops. */
__attribute__((cold)) void shape_learn(struct job *j, const struct pl_path *path,
	const struct usual_places *at, const struct hop_plan *plan, uint8_t hops);
