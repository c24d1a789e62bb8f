/* SPDX-License-Identifier: BSD-2-Clause */
/* INT's own lengths against those of what it stands in and of what follows it; for int_parse.c. */
#pragma once

#include "wire/int.h"
#include "wire/layers.h"

/* What the lengths around a shim announce. */
struct pl_int_around {
	/* the level that it is in; NULL: not known, and nothing behind INT is looked at */
	const struct pl_layers *layers;
	size_t there;    /* bytes from the shim on, or from those before it that were skipped */
	bool beyond_udp; /* up to the end of the IP packet, which is behind that of UDP's length */
};

/* What a shim says comes behind INT. */
enum pl_int_next_kind {
	PL_INT_NEXT_ORIGINAL,  /* a transport header; `value` is its IP protocol */
	PL_INT_NEXT_ETHERTYPE, /* in GRE */
	PL_INT_NEXT_GPE,
};

#define PL_INT_NO_LENGTH UINT32_MAX

/*
 * The words of INT behind the shim at *c: `words` as its length says, or `other` as another
 * version's rule would have it, when the header that follows stands there and not here. Neither:
 * PL_INT_NO_LENGTH.
 */
unsigned int pl_int_believe(const struct pl_int_around *around, const struct pl_cursor *c,
	unsigned int words, unsigned int other, enum pl_int_next_kind kind, uint16_t value,
	uint64_t *notes);

/* Divides a stack with a domain id: how many hops it has, and words of the source behind them. False:
 * it cannot be. */
bool pl_int_divide_domain(struct pl_int *ret, unsigned int words, const struct pl_int_hints *hints);

/* Whether the source's only word is the number of the packet within its flow. */
bool pl_int_is_numbered(const struct pl_int *ret);

/* ---- int_parse.c ---- */

enum pl_verdict pl_int_parse_around(struct pl_int *ret, struct pl_cursor *c,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int_cache *cache,
	bool truncated, const struct pl_int_around *around);
