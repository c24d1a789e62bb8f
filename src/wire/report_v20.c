/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads telemetry reports of version 2.0. Their lengths chain reports, so that a wrong one makes
 * reports of the bytes of a packet. So a length is checked against all others of the same bytes
 * (those of the datagram, of the metadata, of the inner packet), as in wire/int_lengths.c.
 */
#include "wire/report_state.h"

#include "wire/layers.h"

/* Reads baseline metadata of a v2.0 individual report (3.4.1): the v2.x instruction bitmap, but
 * bits 4 to 6 have 8 bytes and bit 15 is queue, drop reason, pad. */
static enum pl_verdict v20_metadata(struct pl_report *ret, struct pl_cursor md, uint16_t bits)
{
	struct pl_int_hop *hop = &ret->hop;

	for (unsigned int bit = 0; bit < 16; bit++) {
		uint64_t v64 = 0;
		uint32_t v = 0;

		if ((bits & PL_INT_BIT(bit)) == 0)
			continue;
		if (bit >= 4 && bit <= 6)
			v64 = pl_get_be64(&md);
		else
			v = pl_get_be32(&md);
		if (md.short_read)
			return PL_V_REPORT_MD_LENGTH;
		switch (bit) {
		case PL_INT_F_PORTS:
			get_ports(hop, v);
			break;
		case PL_INT_F_LATENCY:
			have_u32(hop, PL_INT_F_LATENCY, &hop->latency, v);
			break;
		case PL_INT_F_QUEUE:
			get_queue(hop, v);
			break;
		case PL_INT_F_INGRESS_TS:
			if (v64 != UINT64_MAX) {
				hop->ingress_ts = v64;
				hop->have |= PL_INT_HAS(PL_INT_F_INGRESS_TS);
			}
			break;
		case PL_INT_F_EGRESS_TS:
			if (v64 != UINT64_MAX) {
				hop->egress_ts = v64;
				hop->have |= PL_INT_HAS(PL_INT_F_EGRESS_TS);
			}
			break;
		case PL_INT_F_PORTS2:
			if (v64 != UINT64_MAX) {
				hop->ingress_port2 = (uint32_t)(v64 >> 32);
				hop->egress_port2 = (uint32_t)v64;
				hop->have |= PL_INT_HAS(PL_INT_F_PORTS2);
			}
			break;
		case PL_INT_F_TX_UTIL:
			have_u32(hop, PL_INT_F_TX_UTIL, &hop->tx_util, v);
			break;
		case PL_INT_F_BUFFER:
			if (v != 0xffffffff) {
				hop->buffer = v >> 24;
				hop->buffer_depth = v & 0xffffff;
				hop->have |= PL_INT_HAS(PL_INT_F_BUFFER);
			}
			break;
		case 15:
			set_drop(ret, v);
			break;
		default:
			ret->notes |= PL_NOTE_BIT(RESERVED_BITS);
			break;
		}
	}
	/* Words beyond the baseline are domain specific. */
	if (pl_cursor_left(&md) > 0)
		ret->notes |= PL_NOTE_BIT(REPORT_DS_RAW);
	return PL_V_OK;
}

/* Reads inner contents made of TLVs (3.4.3): TLVType:4 Rsvd:4 | TLVLength:8 | template:16. The
 * first packet among them is the inner packet. */
static enum pl_verdict v20_tlvs(struct pl_report *ret, struct pl_cursor c, bool cut)
{
	while (pl_cursor_left(&c) > 0) {
		const uint8_t *p = pl_cursor_take(&c, 4);
		struct pl_cursor body;
		size_t size;

		if (p == NULL)
			return cut ? PL_V_OK : PL_V_REPORT_TLV;
		size = 4 * (size_t)p[1];
		if (cut && size > pl_cursor_left(&c))
			size = pl_cursor_left(&c);
		body = pl_cursor_split(&c, size);
		if (body.short_read)
			return PL_V_REPORT_TLV;
		switch (p[0] >> 4) {
		case TLV_ETHERNET:
		case TLV_IPV4:
		case TLV_IPV6:
			if (ret->inner_link == PL_LINK_UNKNOWN)
				pl_report_set_inner(ret, body,
					p[0] >> 4 == TLV_ETHERNET ? 0
					: p[0] >> 4 == TLV_IPV4   ? 4
								  : 6);
			break;
		case TLV_DS:
			ret->notes |= PL_NOTE_BIT(REPORT_DS_RAW);
			break;
		default:
			ret->notes |= PL_NOTE_BIT(REPORT_TYPE_SKIPPED);
			break;
		}
	}
	return PL_V_OK;
}

/* Returns the words of the metadata of these bits. */
static unsigned int baseline_words(uint16_t bits)
{
	return (unsigned int)__builtin_popcount(bits) +
	       (unsigned int)__builtin_popcount(bits & 0x0e00);
}

/* Returns the bytes of an IP packet by its own length; 0: it is none, or its length is not
 * known. */
static size_t ip_size(struct pl_cursor c, unsigned int version)
{
	const uint8_t *p = pl_cursor_peek(&c, version == 4 ? 20 : 40);

	if (p == NULL || p[0] >> 4 != version)
		return 0;
	if (version == 6)
		return 40 + (size_t)pl_be16(p + 4);
	return (p[0] & 0xf) < 5 || pl_be16(p + 2) < 4 * (p[0] & 0xf) ? 0 : pl_be16(p + 2);
}

/* Returns the bytes of a frame by the length of the IP packet in it; 0: not known. *ret_other: it
 * holds a known protocol without a length that is read here. */
static size_t frame_size(struct pl_cursor c, bool *ret_other)
{
	const uint8_t *p = pl_cursor_take(&c, 14);
	size_t before = 14, size;
	uint16_t type;

	if (p == NULL)
		return 0;
	type = pl_be16(p + 12);
	for (unsigned int i = 0; type == PL_ETH_VLAN || type == PL_ETH_QINQ; i++) {
		p = pl_cursor_take(&c, 4);
		if (p == NULL || i == PL_VLANS_MAX)
			return 0;
		type = pl_be16(p + 2);
		before += 4;
	}
	if (type == PL_ETH_MPLS || type == PL_ETH_MPLS_MC) {
		for (unsigned int i = 0; i < PL_LABELS_MAX; i++) {
			p = pl_cursor_take(&c, 4);
			if (p == NULL)
				return 0;
			before += 4;
			if ((p[2] & 1) != 0)
				break;
		}
		size = ip_size(c, 4);
		size = size != 0 ? size : ip_size(c, 6);
	} else {
		size = type == PL_ETH_IPV4   ? ip_size(c, 4)
		       : type == PL_ETH_IPV6 ? ip_size(c, 6)
					     : 0;
		*ret_other = pl_ethertype_is_known(type);
	}
	return size == 0 ? 0 : before + size;
}

/* Returns the bytes of the inner packet at c by its own length, whatever its announced type; 0: not
 * known. */
static size_t inner_size(const struct pl_report *r, struct pl_cursor c, bool *ret_other)
{
	size_t size;

	*ret_other = false;
	if (r->inner_link == PL_LINK_ETHERNET)
		return frame_size(c, ret_other);
	size = ip_size(c, 4);
	return size != 0 ? size : ip_size(c, 6);
}

/* Returns true when a packet of `size` bytes fills `room`, in whole words. */
static bool fills(size_t size, size_t room)
{
	return size != 0 && size <= room && room - size < 4;
}

/* Returns true when the bytes may be a report's header: no reserved bits, assigned types, and
 * lengths that have room for each other. */
static bool looks_like_report(const uint8_t *p)
{
	unsigned int rep_type = p[0] >> 4, in_type = p[0] & 0xf;

	if ((p[3] & 0xf) != 0 || rep_type > REPTYPE_IOAM || in_type > INTYPE_IPV6 || p[1] == 0)
		return false;
	return rep_type == REPTYPE_INT ? p[1] >= 2 + p[2]
				       : rep_type != REPTYPE_INNER || in_type != 0;
}

/* Follows the lengths of the reports from c on, up to the place that chain[strict] is about. Returns
 * whether they end with the datagram. */
static bool follow(struct pl_report_iter *it, struct pl_cursor c, bool strict)
{
	const struct pl_report_chain *known = &it->chain[strict];

	while (pl_cursor_left(&c) > known->left) {
		const uint8_t *p = pl_cursor_take(&c, 4);

		it->ahead++;
		if (p == NULL)
			return it->cut;
		if (strict && !looks_like_report(p))
			return false;
		if (p[1] == 0xff && pl_cursor_peek(&c, 4 * 0xff) != NULL)
			return true;
		if (pl_cursor_take(&c, 4 * (size_t)p[1]) == NULL)
			return it->cut;
	}
	return pl_cursor_left(&c) == 0 || known->closes;
}

/* Returns true when the reports from c on, by their lengths, end with the datagram, or are cut as
 * it is. `strict`: they must also look like reports. The result holds for every later report that
 * the iterator comes to; but when only the strict one fails, a report in between may be why. */
static bool closes(struct pl_report_iter *it, struct pl_cursor c, bool strict)
{
	struct pl_report_chain *known = &it->chain[strict];
	const size_t left = pl_cursor_left(&c);
	const bool good = follow(it, c, strict);

	if (left > known->left && (good || !strict))
		*known = (struct pl_report_chain){ .left = (uint32_t)left, .closes = good };
	return good;
}

static bool has_packet(unsigned int in_type)
{
	return in_type >= INTYPE_ETHERNET && in_type <= INTYPE_IPV6;
}

/* Takes the two fixed words and the metadata off body. *ret_extra: words that no bit asks for. */
static enum pl_verdict take_metadata(struct pl_report *ret, struct pl_cursor *body,
	unsigned int md_length, bool cut, unsigned int *ret_extra)
{
	const uint8_t *fixed = pl_cursor_take(body, 8);
	struct pl_cursor md;
	uint16_t bits;

	if (fixed == NULL)
		return cut ? PL_V_REPORT_SHORT : PL_V_REPORT_MD_LENGTH;
	bits = pl_be16(fixed);
	*ret_extra = md_length > baseline_words(bits) ? md_length - baseline_words(bits) : 0;
	/* Only a domain may have such words. */
	if (*ret_extra != 0 && pl_be16(fixed + 2) == 0)
		return PL_V_REPORT_MD_LENGTH;
	md = pl_cursor_split(body, 4 * (size_t)md_length);
	if (md.short_read)
		return cut ? PL_V_REPORT_SHORT : PL_V_REPORT_MD_LENGTH;
	ret->have_hop = bits != 0;
	return v20_metadata(ret, md, bits);
}

/* Reads the contents behind the metadata, up to the end of body. */
static void take_contents(
	struct pl_report *ret, struct pl_cursor body, unsigned int in_type, bool cut)
{
	switch (in_type) {
	case INTYPE_NONE:
		/* "None" with bytes left is only believable when the length itself was a lie. */
		if ((ret->notes & PL_NOTE_BIT(REPORT_LENGTH_ZERO)) != 0)
			pl_report_set_inner(ret, body, 0);
		break;
	case INTYPE_TLV:
		ret->verdict = (uint8_t)v20_tlvs(ret, body, cut);
		ret->unread = ret->inner_link == PL_LINK_UNKNOWN;
		break;
	case INTYPE_DS:
		ret->notes |= PL_NOTE_BIT(REPORT_DS_RAW);
		break;
	case INTYPE_ETHERNET:
		pl_report_set_inner(ret, body, 0);
		break;
	case INTYPE_IPV4:
		pl_report_set_inner(ret, body, 4);
		break;
	case INTYPE_IPV6:
		pl_report_set_inner(ret, body, 6);
		break;
	default:
		ret->notes |= PL_NOTE_BIT(REPORT_TYPE_SKIPPED);
		break;
	}
}

/*
 * Returns true for a plausible report. When only the lengths of earlier reports show that one
 * begins here, its own bytes must look like a report, and so must all reports behind it, up to the
 * end of the datagram.
 */
static bool is_plausible(struct pl_report_iter *it, const uint8_t *p, struct pl_cursor start,
	bool packet_there, bool vouched)
{
	if (!closes(it, start, true))
		return false;
	return p[0] >> 4 == REPTYPE_IOAM || (has_packet(p[0] & 0xf) ? packet_there : vouched);
}

/*
 * Checks the length of a report with an inner packet against the packet's own and the datagram's:
 * for the packet the report has `there` bytes left, the datagram `room`, of which it->c are not the
 * report's. Returns false when the report's length must be wrong. *ret_vouched: the packet ends
 * where the report does.
 */
static bool hold_against_packet(struct pl_report_iter *it, struct pl_report *ret, size_t size,
	size_t there, size_t room, bool past_end, bool *ret_vouched)
{
	*ret_vouched = fills(size, there);
	if (there == room && !past_end)
		return true;
	/* The packet fills the rest of the datagram. But a report that has only the beginning of a
	 * packet may have this length by chance: then reports follow. */
	if (fills(size, room) && (past_end || (!*ret_vouched && !closes(it, it->c, true)))) {
		ret->notes |= PL_NOTE_BIT(REPORT_LENGTH_INNER);
		return true;
	}
	return !past_end;
}

enum pl_verdict pl_report_v20(struct pl_report_iter *it, struct pl_report *ret, bool *ret_skip)
{
	const struct pl_cursor start = it->c;
	const uint8_t *p = pl_cursor_take(&it->c, 4);
	const bool doubtful = it->doubtful;
	unsigned int rep_type, in_type, length, md_extra;
	bool length_zero, past_end, vouched = false, other = false;
	struct pl_cursor body, whole;
	size_t size = 0;
	enum pl_verdict v;

	*ret_skip = false;
	if (p == NULL)
		return doubtful && !it->cut ? PL_V_REPORT_LENGTH : PL_V_REPORT_SHORT;
	rep_type = p[0] >> 4;
	in_type = p[0] & 0xf;
	length = p[1];
	ret->version = PL_REPORT_V20;
	ret->hw_id = it->hw_id;
	ret->seq = it->seq;
	ret->ts_bits = 64;
	set_node(ret, it->node);
	ret->dropped = p[3] >> 7;
	ret->congested = p[3] >> 6 & 1;
	ret->tracked = p[3] >> 5 & 1;
	ret->intermediate = p[3] >> 4 & 1;

	/* 0xff: 255 words or more, to the end of the datagram. 0 cannot be true with INT contents,
	 * which have two fixed words; some exporters send it, and the rest of the datagram is
	 * theirs. */
	length_zero = length == 0 && rep_type == REPTYPE_INT;
	whole = it->c;
	past_end = false;
	if (length == 0xff || length_zero) {
		body = pl_cursor_split(&it->c, pl_cursor_left(&it->c));
	} else {
		past_end = 4 * (size_t)length > pl_cursor_left(&it->c);
		if (past_end && !it->cut && !has_packet(in_type))
			return PL_V_REPORT_LENGTH;
		body = pl_cursor_split(
			&it->c, past_end ? pl_cursor_left(&it->c) : 4 * (size_t)length);
		past_end = past_end && !it->cut;
	}
	if (length_zero)
		ret->notes |= PL_NOTE_BIT(REPORT_LENGTH_ZERO);

	/* The contents of a skipped report do not show its length. */
	if (rep_type > REPTYPE_INT) {
		*ret_skip = true;
		return doubtful && !is_plausible(it, p, start, false, false) ? PL_V_REPORT_LENGTH
									     : PL_V_OK;
	}
	md_extra = p[2];
	if (rep_type == REPTYPE_INT) {
		v = take_metadata(ret, &body, p[2], it->cut, &md_extra);
		if (v != PL_V_OK)
			return past_end || doubtful ? PL_V_REPORT_LENGTH : v;
	}
	take_contents(ret, body, in_type, it->cut);
	if (has_packet(in_type) && !doubtful && !past_end && md_extra == 0 &&
		pl_cursor_left(&it->c) == 0) {
		/* The common case: the last report, and all lengths agree. */
		return PL_V_OK;
	}
	if (has_packet(in_type) || length_zero) {
		size_t there = pl_cursor_left(&body), room = there + pl_cursor_left(&it->c);

		pl_cursor_skip(&whole, pl_cursor_left(&whole) - room);
		size = inner_size(ret, whole, &other);
		if (!hold_against_packet(it, ret, size, there, room, past_end, &vouched))
			return PL_V_REPORT_LENGTH;
		if ((ret->notes & PL_NOTE_BIT(REPORT_LENGTH_INNER)) != 0) {
			pl_cursor_skip(&it->c, pl_cursor_left(&it->c));
			take_contents(ret, whole, in_type, it->cut);
		}
		if (size > there && pl_cursor_left(&it->c) > 0 && !closes(it, it->c, false))
			ret->unread = true;
		/* No packet begins where one must: perhaps an earlier length is wrong. */
		if (size == 0 && !other && there != 0) {
			if (!closes(it, start, false))
				return PL_V_REPORT_LENGTH;
			if (md_extra != 0)
				return PL_V_REPORT_MD_LENGTH;
		}
	} else {
		vouched = in_type == INTYPE_TLV ? ret->verdict == PL_V_OK
						: pl_cursor_left(&body) == 0;
	}
	if (doubtful && !is_plausible(it, p, start, size != 0 || other, vouched && !ret->unread))
		return PL_V_REPORT_LENGTH;
	it->doubtful = !vouched;
	return PL_V_OK;
}
