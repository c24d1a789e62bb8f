/* SPDX-License-Identifier: BSD-2-Clause */
/* Telemetry reports of version 2.0. */
#include "wire/report_state.h"

#include "wire/layers.h"

/* Baseline metadata of a v2.0 individual report (3.4.1): as the v2.x instruction bitmap, but bits 4
 * to 6 are 8 bytes and bit 15 is queue, drop reason, pad. */
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

/* Inner contents made of TLVs (3.4.3): TLVType:4 Rsvd:4 | TLVLength:8 | template:16. The first
 * packet among them is the inner packet. */
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

enum pl_verdict pl_report_v20(struct pl_report_iter *it, struct pl_report *ret, bool *ret_skip)
{
	const uint8_t *p = pl_cursor_take(&it->c, 4), *fixed;
	unsigned int rep_type, in_type, length, md_length;
	bool length_zero;
	struct pl_cursor body, md;
	enum pl_verdict v;

	*ret_skip = false;
	if (p == NULL)
		return PL_V_REPORT_SHORT;
	rep_type = p[0] >> 4;
	in_type = p[0] & 0xf;
	length = p[1];
	md_length = p[2];
	ret->version = PL_REPORT_V20;
	ret->hw_id = it->hw_id;
	ret->seq = it->seq;
	ret->ts_bits = 64;
	set_node(ret, it->node);
	ret->dropped = p[3] >> 7;
	ret->congested = p[3] >> 6 & 1;
	ret->tracked = p[3] >> 5 & 1;
	ret->intermediate = p[3] >> 4 & 1;

	/* 0xff: 255 words or more, to the end of the datagram. 0 with INT contents cannot be true,
	 * since those have two fixed words: exporters send it, and the rest of the datagram is
	 * theirs. */
	length_zero = length == 0 && rep_type == REPTYPE_INT;
	if (length == 0xff || length_zero) {
		body = pl_cursor_split(&it->c, pl_cursor_left(&it->c));
	} else {
		bool cut = it->cut && 4 * (size_t)length > pl_cursor_left(&it->c);

		body = pl_cursor_split(&it->c, cut ? pl_cursor_left(&it->c) : 4 * (size_t)length);
		if (body.short_read)
			return PL_V_REPORT_LENGTH;
	}
	if (length_zero)
		ret->notes |= PL_NOTE_BIT(REPORT_LENGTH_ZERO);

	if (rep_type > REPTYPE_INT) {
		*ret_skip = true;
		return PL_V_OK;
	}
	if (rep_type == REPTYPE_INT) {
		uint16_t bits;

		fixed = pl_cursor_take(&body, 8);
		if (fixed == NULL)
			return it->cut ? PL_V_REPORT_SHORT : PL_V_REPORT_MD_LENGTH;
		bits = pl_be16(fixed);
		md = pl_cursor_split(&body, 4 * (size_t)md_length);
		if (md.short_read)
			return it->cut ? PL_V_REPORT_SHORT : PL_V_REPORT_MD_LENGTH;
		v = v20_metadata(ret, md, bits);
		if (v != PL_V_OK)
			return v;
		ret->have_hop = bits != 0;
	}

	switch (in_type) {
	case INTYPE_NONE:
		/* "None" with bytes left is only believable when the length itself was a lie. */
		if (length_zero)
			pl_report_set_inner(ret, body, 0);
		return PL_V_OK;
	case INTYPE_TLV:
		ret->verdict = (uint8_t)v20_tlvs(ret, body, it->cut);
		return PL_V_OK;
	case INTYPE_DS:
		ret->notes |= PL_NOTE_BIT(REPORT_DS_RAW);
		return PL_V_OK;
	case INTYPE_ETHERNET:
		pl_report_set_inner(ret, body, 0);
		return PL_V_OK;
	case INTYPE_IPV4:
		pl_report_set_inner(ret, body, 4);
		return PL_V_OK;
	case INTYPE_IPV6:
		pl_report_set_inner(ret, body, 6);
		return PL_V_OK;
	default:
		ret->notes |= PL_NOTE_BIT(REPORT_TYPE_SKIPPED);
		return PL_V_OK;
	}
}
