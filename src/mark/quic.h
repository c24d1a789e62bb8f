/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of a QUIC datagram that an observer on the path can read: which headers are in it, the
 * first byte of the short header, which has the bits of explicit measurement, and lengths of
 * connection ids. Everything else is encrypted. RFC 8999 (what all versions have in common), RFC
 * 9000 17 (version 1; drafts 27 to 34 have the same form), RFC 9369 (version 2).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"

#define PL_QUIC_CID_MAX   20u /* bytes, of versions 1 and 2 */
/* Least length of a packet with a short header (RFC 9000 10.3). */
#define PL_QUIC_SHORT_MIN 21u

enum pl_quic_read {
	PL_QUIC_OK,
	PL_QUIC_NOT,    /* cannot be QUIC */
	PL_QUIC_BROKEN, /* a long header of a known version is cut, lacks the fixed bit or has
			 * impossible lengths */
};

struct pl_quic_datagram {
	bool has_long, has_short;
	bool known;       /* a long header has one of these versions */
	bool initial;     /* the datagram has an Initial packet */
	uint8_t first;    /* byte 0 of the short header */
	uint8_t scid_len; /* length of the peer's destination id, from the first long header */
	/* Bytes from the short header's connection id on; its length is not in the packet. */
	struct pl_cursor behind;
};

/* Reads a datagram. payload: of UDP; missing: bytes of it that a capture left out. Packets that
 * share a datagram are walked, at most PL_QUIC_PACKETS_MAX; the one with a short header is the last
 * (RFC 9000 12.2). */
#define PL_QUIC_PACKETS_MAX 8
enum pl_quic_read pl_quic_read(
	struct pl_quic_datagram *ret, struct pl_cursor payload, uint32_t missing);
