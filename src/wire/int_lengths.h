/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks INT's own lengths against those of its carrier and of the header behind it; for
 * int_parse.c. */
#pragma once

#include "wire/int.h"
#include "wire/layers.h"

/* Lengths around a shim. */
struct pl_int_around {
	/* the level of the shim; NULL: not known, and nothing behind INT is checked */
	const struct pl_layers *layers;
	size_t there;    /* bytes from the shim, or from destination shims before it, to the end */
	bool beyond_udp; /* `there` counts to the end of the IP packet, past UDP's length */
};

/* The protocol behind INT by the shim. */
enum pl_int_next_kind {
	PL_INT_NEXT_ORIGINAL,  /* a transport header; `value` is its IP protocol */
	PL_INT_NEXT_ETHERTYPE, /* in GRE */
	PL_INT_NEXT_GPE,
};

#define PL_INT_NO_LENGTH UINT32_MAX

/*
 * Returns the words of INT behind the shim at *c: `words` as its length says, or `other` by another
 * version's rule, when the next header stands there and not here. PL_INT_NO_LENGTH: neither.
 */
unsigned int pl_int_believe(const struct pl_int_around *around, const struct pl_cursor *c,
	unsigned int words, unsigned int other, enum pl_int_next_kind kind, uint16_t value,
	uint64_t *notes);

/* Divides a stack with a domain id into hops and the source's words behind them. Returns false when
 * that fails. */
bool pl_int_divide_domain(struct pl_int *ret, unsigned int words, const struct pl_int_hints *hints);

/* Returns true when the source's only word is the number of the packet within its flow. */
bool pl_int_is_numbered(const struct pl_int *ret);

/* ---- int_parse.c ---- */

enum pl_verdict pl_int_parse_around(struct pl_int *ret, struct pl_cursor *c,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int_cache *cache,
	bool truncated, const struct pl_int_around *around);
