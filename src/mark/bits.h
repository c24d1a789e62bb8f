/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bits of alternate marking live in a packet, named by texts:
 *
 *   dscp:N          bit N of the DSCP, 0 (the lowest) to 5; of IPv4 and IPv6
 *   tos:N           bit N of IPv4's type of service, 2 to 7
 *   tclass:N        bit N of IPv6's traffic class, 2 to 7
 *   ecn:N           bit N of ECN, 0 or 1, where that is known to be unused; both versions
 *   ipv4-reserved   the reserved bit in front of IPv4's DF
 *   altmark         the option of RFC 9343, which has both bits and an id of the flow; IPv6
 *   altmark-dst     the same; a marker puts it in Destination Options, not in Hop-by-Hop Options
 *   sfl:A/B         synonymous flow labels of MPLS (RFC 8957): packets with label A, 0 to 1048575,
 *                   anywhere in the stack have colour 0, with B colour 1. sfl:A/B/C/D has both bits:
 *                   C and D are the same with the second bit set. Read, but not written.
 *
 * Bits 0 and 1 of tos and tclass are ECN, where a mark would forge congestion: they are only had by
 * the name ecn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/diag.h"
#include "wire/altmark.h"
#include "wire/layers.h"

enum pl_mark_carrier {
	PL_MARK_AT_TOS = 1, /* byte 1 of IPv4's header, and the same bits of IPv6's traffic class */
	PL_MARK_AT_RESERVED,
	PL_MARK_AT_OPTION,
	PL_MARK_AT_LABEL,
};

#define PL_MARK_LABELS 4u

struct pl_mark_bit {
	uint8_t carrier;  /* enum pl_mark_carrier; 0: none */
	uint8_t mask;     /* of PL_MARK_AT_TOS: one bit */
	bool ipv4, ipv6;  /* packets that have it */
	bool dst;         /* the option is to be put into Destination Options; it is read in both */
	uint8_t n_labels; /* of PL_MARK_AT_LABEL: 2, or 4 */
	uint32_t labels[PL_MARK_LABELS]; /* by the bits that they stand for */
};

/* The colour (or the pulse of pulse marking, or the bit of multiplexed marking), and of double
 * marking with bits of the header the other. */
struct pl_mark_where {
	struct pl_mark_bit colour, second;
};

/* -EINVAL with diag. */
int pl_mark_bit_parse(struct pl_mark_bit *ret, const char *text, struct pl_diag *diag);

/* n texts, as many as the method needs. -EINVAL with diag. */
int pl_mark_where_parse(struct pl_mark_where *ret, unsigned int method, const char *const *texts,
	size_t n, struct pl_diag *diag);

/* 0, or -EINVAL with diag: such a mark is read only. */
int pl_mark_where_is_written(const struct pl_mark_where *where, struct pl_diag *diag);

enum pl_mark_read {
	PL_MARK_READ_OK,
	PL_MARK_READ_ELSEWHERE, /* of another version of IP, or without the option or such a label */
	PL_MARK_READ_BROKEN,    /* the option is */
};

/* The bits of a packet, as pl_mark_bits() of period.h numbers them. *ret_option: what the option
 * says, of PL_MARK_AT_OPTION. */
enum pl_mark_read pl_mark_read(const struct pl_mark_where *where, const struct pl_layers *layers,
	unsigned int *ret_bits, struct pl_altmark *ret_option);

/* Writes bits into the header at `network`, as a marker does, with IPv4's checksum: 20 bytes of IPv4
 * or 40 of IPv6. False, and nothing written: the packet has no such bits (other version of IP), or
 * they are in an option or label, which would have to be put in. */
bool pl_mark_write(const struct pl_mark_where *where, uint8_t *network, unsigned int bits);
