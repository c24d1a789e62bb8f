/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the packets of a QUIC datagram. */
#include "mark/quic.h"

#include <string.h>

#define FORM_LONG  0x80u
#define FIXED      0x40u
#define VERSION_1  0x00000001u
#define VERSION_2  0x6b3343cfu
#define DRAFT_LAST 0xff000022u
#define DRAFT_1ST  0xff00001bu

/* Types of long headers of version 1, bits 0x30 of the first byte; version 2 counts one on. */
enum { INITIAL, ZERO_RTT, HANDSHAKE, RETRY };

static bool is_known(uint32_t version)
{
	return version == VERSION_1 || version == VERSION_2 ||
	       (version >= DRAFT_1ST && version <= DRAFT_LAST);
}

/* Reads a variable-length integer, whose first two bits give its length (RFC 9000 16). */
static uint64_t get_number(struct pl_cursor *c)
{
	const uint8_t *first = pl_cursor_peek(c, 1);

	if (first == NULL) {
		pl_cursor_fail(c);
		return 0;
	}
	switch (*first >> 6) {
	case 0:
		return pl_get_u8(c);
	case 1:
		return pl_get_be16(c) & 0x3fff;
	case 2:
		return pl_get_be32(c) & 0x3fffffff;
	default:
		return pl_get_be64(c) & UINT64_C(0x3fffffffffffffff);
	}
}

/* Reads a connection id and the length before it; returns the length. */
static uint8_t get_cid(struct pl_cursor *c, struct pl_cursor *ret)
{
	const uint8_t len = pl_get_u8(c);

	*ret = pl_cursor_split(c, len);
	return len;
}

/* Reads a long header and leaves the cursor behind its packet, at the end where the packet's length
 * is not known. */
static enum pl_quic_read read_long(
	struct pl_quic_datagram *ret, struct pl_cursor *c, struct pl_cursor *dcid, bool cut)
{
	const uint8_t first = pl_get_u8(c);
	const uint32_t version = pl_get_be32(c);
	struct pl_cursor scid;
	uint8_t dcid_len, scid_len;
	unsigned int type = first >> 4 & 3;
	uint64_t length;

	dcid_len = get_cid(c, dcid);
	scid_len = get_cid(c, &scid);
	if (c->short_read)
		return cut && is_known(version) ? PL_QUIC_OK
		       : is_known(version)      ? PL_QUIC_BROKEN
						: PL_QUIC_NOT;
	if (!is_known(version)) {
		/* Version negotiation, or an unknown version, where the end of a packet is not
		 * known. */
		c->pos = c->end;
		return PL_QUIC_OK;
	}
	if ((first & FIXED) == 0 || dcid_len > PL_QUIC_CID_MAX || scid_len > PL_QUIC_CID_MAX)
		return PL_QUIC_BROKEN;
	if (!ret->known)
		ret->scid_len = scid_len;
	ret->known = true;
	if (version == VERSION_2)
		type = (type + 3) & 3;
	ret->initial |= type == INITIAL;
	if (type == RETRY) {
		c->pos = c->end;
		return PL_QUIC_OK;
	}
	if (type == INITIAL) {
		length = get_number(c);
		if (length <= pl_cursor_left(c))
			pl_cursor_skip(c, (size_t)length);
		else
			pl_cursor_fail(c);
	}
	length = get_number(c);
	if (!c->short_read && length <= pl_cursor_left(c))
		pl_cursor_skip(c, (size_t)length);
	else
		pl_cursor_fail(c);
	return !c->short_read || cut ? PL_QUIC_OK : PL_QUIC_BROKEN;
}

/* True when the short header behind a long one has the same connection id, as packets of one
 * datagram have (RFC 9000 12.2). Otherwise these bytes are padding. */
static bool goes_to(const struct pl_cursor *behind, const struct pl_cursor *dcid)
{
	const size_t n = pl_cursor_left(dcid);
	const uint8_t *there = pl_cursor_peek(behind, n);

	return there != NULL && (n == 0 || memcmp(there, dcid->pos, n) == 0);
}

enum pl_quic_read pl_quic_read(
	struct pl_quic_datagram *ret, struct pl_cursor payload, uint32_t missing)
{
	struct pl_cursor dcid = pl_cursor(payload.pos, 0);

	memset(ret, 0, sizeof(*ret));
	for (unsigned int i = 0; i < PL_QUIC_PACKETS_MAX && pl_cursor_left(&payload) > 0; i++) {
		const uint8_t first = *pl_cursor_peek(&payload, 1);
		enum pl_quic_read read;

		if ((first & FORM_LONG) != 0) {
			read = read_long(ret, &payload, &dcid, missing > 0);
			if (read != PL_QUIC_OK)
				return ret->has_long ? PL_QUIC_OK : read;
			ret->has_long = true;
			continue;
		}
		if ((first & FIXED) == 0 || pl_cursor_left(&payload) + missing < PL_QUIC_SHORT_MIN)
			break;
		pl_cursor_skip(&payload, 1);
		if (ret->has_long && !goes_to(&payload, &dcid))
			break;
		ret->has_short = true;
		ret->first = first;
		ret->behind = payload;
		break;
	}
	return ret->has_long || ret->has_short ? PL_QUIC_OK : PL_QUIC_NOT;
}
