/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bits of alternate marking in a packet, named by texts:
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
 * Bits 0 and 1 of tos and tclass are ECN, where a mark would forge congestion: only ecn:N names
 * them.
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
	uint8_t mask;     /* PL_MARK_AT_TOS: one bit */
	bool ipv4, ipv6;  /* versions of IP that have the bit */
	bool dst;         /* the option is put into Destination Options; it is read in both */
	uint8_t n_labels; /* PL_MARK_AT_LABEL: 2, or 4 */
	uint32_t labels[PL_MARK_LABELS]; /* label of each value of the bits */
};

/* Bits of a method. colour: the colour, the pulse of pulse marking, or the bit of multiplexed
 * marking; second: the second bit of double and of cyclic marking in header bits. */
struct pl_mark_where {
	struct pl_mark_bit colour, second;
};

/* Parses a bit's name. Returns 0, or -EINVAL with diag. */
int pl_mark_bit_parse(struct pl_mark_bit *ret, const char *text, struct pl_diag *diag);

/* Parses n names, as many as the method needs. Returns 0, or -EINVAL with diag. */
int pl_mark_where_parse(struct pl_mark_where *ret, unsigned int method, const char *const *texts,
	size_t n, struct pl_diag *diag);

/* Returns 0 when such marks can be written, or -EINVAL with diag when they are only read. */
int pl_mark_where_is_written(const struct pl_mark_where *where, struct pl_diag *diag);

enum pl_mark_read {
	PL_MARK_READ_OK,
	PL_MARK_READ_ELSEWHERE, /* another version of IP, or no such option or label */
	PL_MARK_READ_BROKEN,    /* the option is malformed */
};

/* Reads the bits of a packet, as pl_mark_bits() of period.h numbers them. *ret_option: the option,
 * for PL_MARK_AT_OPTION. */
enum pl_mark_read pl_mark_read(const struct pl_mark_where *where, const struct pl_layers *layers,
	unsigned int *ret_bits, struct pl_altmark *ret_option);

/* Writes bits into the header at `network`, as a marker does, with IPv4's checksum: 20 bytes of
 * IPv4 or 40 of IPv6. False, with nothing written, when the packet has no such bits (other version
 * of IP), or they are in an option or label, which would have to be put in. */
bool pl_mark_write(const struct pl_mark_where *where, uint8_t *network, unsigned int bits);
