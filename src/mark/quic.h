/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an observer on the path can read of a QUIC datagram: which headers are in it, the first byte
 * of the short header, where the bits of explicit measurement are, and lengths of connection ids.
 * Everything else is encrypted. RFC 8999 (what all versions have in common), RFC 9000 17 (version
 * 1; drafts 27 to 34 have the same form), RFC 9369 (version 2).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"

#define PL_QUIC_CID_MAX   20u /* bytes, of versions 1 and 2 */
/* A short header packet that can be valid: 21 bytes at least (RFC 9000 10.3). */
#define PL_QUIC_SHORT_MIN 21u

enum pl_quic_read {
	PL_QUIC_OK,
	PL_QUIC_NOT,    /* cannot be QUIC */
	PL_QUIC_BROKEN, /* a long header of a known version is cut, or its lengths cannot be */
};

struct pl_quic_datagram {
	bool has_long, has_short;
	bool known;       /* the version of the long header is one of the above */
	bool initial;     /* an Initial packet is in it */
	uint8_t first;    /* byte 0 of the short header */
	uint8_t scid_len; /* what the other side sends to, of the first long header */
	/* From the short header's connection id on; its length is not in the packet. */
	struct pl_cursor behind;
};

/*
 * payload: of UDP; missing: bytes of it that a capture left out. Packets that share a datagram are
 * walked, at most PL_QUIC_PACKETS_MAX; the one with a short header is the last (RFC 9000 12.2).
 */
#define PL_QUIC_PACKETS_MAX 8
enum pl_quic_read pl_quic_read(
	struct pl_quic_datagram *ret, struct pl_cursor payload, uint32_t missing);
