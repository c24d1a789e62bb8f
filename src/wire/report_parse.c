/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads telemetry reports. Telemetry Report Format Specification v0.5 3.1-3.4, v1.0 3.2, v2.0
 * 3.2-3.4.
 *
 *   v0.5   Ver:4 NProto:4 | D Q F R:15 hw_id:6 | seq:32 | ingress timestamp:32
 *   v1.0   Ver:4 Length:4 | NProt:3 RepMdBits:6 R:6 D Q F hw_id:6 | node:32 | seq:32 |
 *          ingress timestamp:32
 *   v2.0   Ver:4 hw_id:6 seq:22 | node:32 | then individual reports:
 *          RepType:4 InType:4 | ReportLength:8 | MDLength:8 | D Q F I Rsvd:4
 */
#include "wire/report_state.h"

#include "wire/layers.h"

enum { NPROTO_ETHERNET, NPROTO_DROP, NPROTO_LOCAL, NPROTO_HOST_SUMMARY, NPROTO_HOST_INT };

static bool known_ethertype(uint16_t t)
{
	return t == PL_ETH_IPV4 || t == PL_ETH_IPV6 || t == PL_ETH_VLAN || t == PL_ETH_QINQ ||
	       t == PL_ETH_MPLS || t == PL_ETH_MPLS_MC;
}

static bool looks_like_ethernet(struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_peek(&c, 14);

	return p != NULL && known_ethertype(pl_be16(p + 12));
}

static bool looks_like_ip(struct pl_cursor c, unsigned int version)
{
	const uint8_t *p = pl_cursor_peek(&c, 20);

	if (p == NULL || p[0] >> 4 != version)
		return false;
	if (version == 6)
		return true;
	return (p[0] & 0xf) >= 5 && pl_be16(p + 2) >= 4 * (p[0] & 0xf);
}

static bool ipv4_checksum_good(struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_peek(&c, 20);
	uint32_t sum = 0;

	if (p == NULL || p[0] != 0x45)
		return false;
	for (unsigned int i = 0; i < 20; i += 2)
		sum += pl_be16(p + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return ((sum & 0xffff) + (sum >> 16)) == 0xffff;
}

/* Returns true for IP beyond doubt. looks_like_ip alone is weak: a destination address, or ARP's
 * words behind an Ethernet header, pass it easily. */
static bool surely_ip(struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_peek(&c, 40);
	size_t announced;

	if (looks_like_ip(c, 4) && ipv4_checksum_good(c))
		return true;
	if (p == NULL || p[0] >> 4 != 6)
		return false;
	/* The packet fills the bytes, but for less than a word of padding. */
	announced = 40 + (size_t)pl_be16(p + 4);
	return announced <= pl_cursor_left(&c) && announced + 4 > pl_cursor_left(&c);
}

/* Returns true for the beginning of a cut IP header. */
static bool is_cut_ip(struct pl_cursor c, unsigned int version)
{
	const uint8_t *p = pl_cursor_peek(&c, 1);

	return p != NULL && p[0] >> 4 == version && pl_cursor_left(&c) < 20;
}

void pl_report_set_inner(struct pl_report *ret, struct pl_cursor inner, unsigned int ip)
{
	bool ethernet = ip == 0;

	ret->inner = inner;
	if (pl_cursor_left(&inner) == 0) {
		ret->inner_link = PL_LINK_UNKNOWN;
		return;
	}
	if (ip != 0) {
		bool fits = looks_like_ip(inner, ip);

		if (__builtin_expect(
			    !fits || (looks_like_ethernet(inner) && !surely_ip(inner)), 0)) {
			/* An address may begin with 0x4?; a known EtherType is better evidence. */
			ethernet = looks_like_ethernet(inner);
			/* The other version needs more evidence than the nibble. */
			bool other = !ethernet && !fits && surely_ip(inner);

			ret->inner_garbage = !ethernet && !fits && !other && !is_cut_ip(inner, ip);
			if (ethernet || other)
				ret->notes |= PL_NOTE_BIT(INNER_TYPE_LIES);
		}
	} else if (__builtin_expect(!looks_like_ethernet(inner), 0) && surely_ip(inner)) {
		ethernet = false;
		ret->notes |= PL_NOTE_BIT(INNER_TYPE_LIES);
	}
	ret->inner_link = ethernet ? PL_LINK_ETHERNET : PL_LINK_RAW_IP;
}

static void set_header_ts(struct pl_report *ret, uint32_t ts)
{
	ret->ts_bits = 32;
	ret->ingress_ts = ts;
	ret->have_ingress_ts = true;
	ret->hop.ingress_ts = ts;
	ret->hop.have |= PL_INT_HAS(PL_INT_F_INGRESS_TS);
}

static enum pl_verdict v05(struct pl_report *ret, struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 12);
	unsigned int nproto, ip = 0;

	if (p == NULL)
		return PL_V_REPORT_SHORT;
	nproto = p[0] & 0xf;
	ret->version = PL_REPORT_V05;
	ret->dropped = p[1] >> 7;
	ret->congested = p[1] >> 6 & 1;
	ret->tracked = p[1] >> 5 & 1;
	ret->hw_id = p[3] & 0x3f;
	ret->seq = pl_be32(p + 4);
	set_header_ts(ret, pl_be32(p + 8));

	switch (nproto) {
	case NPROTO_ETHERNET:
		break;
	case NPROTO_DROP:
		p = pl_cursor_take(c, 12);
		if (p == NULL)
			return PL_V_REPORT_SHORT;
		set_node(ret, pl_be32(p));
		get_ports(&ret->hop, pl_be32(p + 4));
		set_drop(ret, pl_be32(p + 8));
		ret->have_hop = true;
		break;
	case NPROTO_LOCAL:
		p = pl_cursor_take(c, 16);
		if (p == NULL)
			return PL_V_REPORT_SHORT;
		set_node(ret, pl_be32(p));
		get_ports(&ret->hop, pl_be32(p + 4));
		get_queue(&ret->hop, pl_be32(p + 8));
		if (pl_be32(p + 12) != 0xffffffff) {
			ret->hop.egress_ts = pl_be32(p + 12);
			ret->hop.have |= PL_INT_HAS(PL_INT_F_EGRESS_TS);
		}
		ret->have_hop = true;
		break;
	case NPROTO_HOST_SUMMARY:
		/* source node, sink node, ports, gap timestamp, first missing sequence, count; then
		 * headers that hold only the flow. */
		p = pl_cursor_take(c, 24);
		if (p == NULL)
			return PL_V_REPORT_SHORT;
		ret->form = PL_REPORT_DROP_SUMMARY;
		set_node(ret, pl_be32(p));
		ret->sink_node = pl_be32(p + 4);
		ret->hop.egress_port = pl_be16(p + 8);
		ret->hop.have |= PL_INT_HAS(PL_INT_F_PORTS);
		ret->sink_port = pl_be16(p + 10);
		ret->lost_ts = pl_be32(p + 12);
		ret->lost_first = pl_be32(p + 16);
		ret->lost_count = pl_be32(p + 20);
		ip = 4;
		break;
	case NPROTO_HOST_INT:
		p = pl_cursor_take(c, 4);
		if (p == NULL)
			return PL_V_REPORT_SHORT;
		set_node(ret, pl_be32(p));
		ip = 4;
		break;
	default:
		return PL_V_REPORT_PROTO;
	}
	pl_report_set_inner(ret, *c, ip);
	return PL_V_OK;
}

static enum pl_verdict v10(struct pl_report *ret, struct pl_cursor *c)
{
	const uint8_t *p = pl_cursor_take(c, 16);
	uint32_t w;
	unsigned int nprot, bits, words;

	if (__builtin_expect(p == NULL, 0))
		return PL_V_REPORT_SHORT;
	w = pl_be32(p);
	nprot = w >> 21 & 7;
	bits = w >> 15 & 0x3f;
	ret->version = PL_REPORT_V10;
	ret->dropped = w >> 8 & 1;
	ret->congested = w >> 7 & 1;
	ret->tracked = w >> 6 & 1;
	ret->hw_id = w & 0x3f;
	set_node(ret, pl_be32(p + 4));
	ret->seq = pl_be32(p + 8);
	set_header_ts(ret, pl_be32(p + 12));

	words = (unsigned int)__builtin_popcount(bits);
	if (__builtin_expect((w >> 24 & 0xf) != 4 + words, 0))
		ret->notes |= PL_NOTE_BIT(REPORT_LENGTH_LIES);
	if (bits != 0) {
		p = pl_cursor_take(c, 4 * (size_t)words);
		if (p == NULL)
			return PL_V_REPORT_SHORT;
		ret->have_hop = true;
		for (unsigned int i = 0; i < 6; i++) {
			if ((bits & (0x20u >> i)) == 0)
				continue;
			uint32_t v = pl_be32(p);

			p += 4; /* one of the `words` taken above */
			switch (i) {
			case 0:
				get_ports(&ret->hop, v);
				break;
			case 1:
				have_u32(&ret->hop, PL_INT_F_LATENCY, &ret->hop.latency, v);
				break;
			case 2:
				get_queue(&ret->hop, v);
				break;
			case 3:
				if (v != 0xffffffff) {
					ret->hop.egress_ts = v;
					ret->hop.have |= PL_INT_HAS(PL_INT_F_EGRESS_TS);
				}
				break;
			case 4:
				set_drop(ret, v);
				break;
			default:
				have_u32(&ret->hop, PL_INT_F_TX_UTIL, &ret->hop.tx_util, v);
				break;
			}
		}
	}
	if (nprot > 2)
		return PL_V_REPORT_PROTO;
	pl_report_set_inner(ret, *c, nprot == 0 ? 0 : nprot == 1 ? 4 : 6);
	return PL_V_OK;
}

/*
 * Finds the version of a report that has a version nibble of 1, but a length that no v1.0 report
 * can have. Two exporters are known: one writes v0.5 headers, one v2.0 group headers.
 */
static int version_of_liar(struct pl_cursor c)
{
	static const uint8_t local_bytes[] = { 12, 12 + 12, 12 + 16 };
	static const uint8_t zeros[8];
	const uint8_t *p = pl_cursor_peek(&c, 20);
	unsigned int words;
	struct pl_cursor as_v10 = c, as_v05 = c;

	if (p == NULL)
		return PL_REPORT_V10;
	words = (unsigned int)__builtin_popcount(pl_be32(p) >> 15 & 0x3f);
	if ((p[0] & 0xf) == 4 + words)
		return PL_REPORT_V10;
	/* v2.0: an individual report of type INT whose two lengths are 0, then four zero half
	 * words. */
	if (p[8] >> 4 == REPTYPE_INT && (p[8] & 0xf) <= INTYPE_IPV6 && p[9] == 0 && p[10] == 0 &&
		(p[11] & 0xf) == 0 && memcmp(p + 12, zeros, 8) == 0)
		return PL_REPORT_V20;
	if ((p[0] & 0xf) <= NPROTO_LOCAL) {
		pl_cursor_skip(&as_v10, 16 + 4 * (size_t)words);
		pl_cursor_skip(&as_v05, local_bytes[p[0] & 0xf]);
		if (!looks_like_ethernet(as_v10) && looks_like_ethernet(as_v05))
			return PL_REPORT_V05;
	}
	return PL_REPORT_V10;
}

enum pl_verdict pl_report_begin(
	struct pl_report_iter *it, struct pl_cursor datagram, int pin, bool cut)
{
	const uint8_t *p = pl_cursor_peek(&datagram, 4);
	int version;

	memset(it, 0, sizeof(*it));
	it->c = datagram;
	it->cut = cut;
	it->done = true;
	if (p == NULL)
		return PL_V_REPORT_SHORT;
	version = p[0] >> 4;
	if (pin >= 0) {
		if (pin != version)
			it->notes |= PL_NOTE_BIT(REPORT_VERSION_LIES);
		version = pin;
	} else if (version == PL_REPORT_V10 &&
		   __builtin_expect(
			   (p[0] & 0xf) != 4 + __builtin_popcount(pl_be32(p) >> 15 & 0x3f), 0)) {
		version = version_of_liar(datagram);
		if (version != PL_REPORT_V10)
			it->notes |= PL_NOTE_BIT(REPORT_VERSION_LIES);
	}
	if (version >= PL_REPORT_VERSION_MAX)
		return PL_V_REPORT_VERSION;
	it->version = (uint8_t)version;
	if (version == PL_REPORT_V20) {
		uint32_t w;

		p = pl_cursor_take(&it->c, 8);
		if (p == NULL)
			return PL_V_REPORT_SHORT;
		w = pl_be32(p);
		it->hw_id = w >> 22 & 0x3f;
		it->seq = w & 0x3fffff;
		it->node = pl_be32(p + 4);
		it->numbered = true;
		if (pl_cursor_left(&it->c) == 0)
			return PL_V_REPORT_SHORT;
	}
	it->done = false;
	return PL_V_OK;
}

bool pl_report_next(struct pl_report_iter *it, struct pl_report *ret, enum pl_verdict *ret_verdict)
{
	enum pl_verdict v = PL_V_OK;

	while (!it->done) {
		bool skip = false;

		memset(ret, 0, sizeof(*ret));
		ret->inner_link = PL_LINK_UNKNOWN;
		ret->notes = it->notes;
		if (it->version == PL_REPORT_V20) {
			v = pl_report_v20(it, ret, &skip);
			it->done = v != PL_V_OK || pl_cursor_left(&it->c) == 0;
		} else {
			v = it->version == PL_REPORT_V05 ? v05(ret, &it->c) : v10(ret, &it->c);
			it->done = true;
		}
		*ret_verdict = v;
		if (v != PL_V_OK)
			return false;
		if (!skip) {
			it->notes = 0;
			return true;
		}
		it->notes = ret->notes | PL_NOTE_BIT(REPORT_TYPE_SKIPPED);
	}
	*ret_verdict = v;
	return false;
}

const char *pl_report_version_name(enum pl_report_version v)
{
	static const char *const names[] = { "0.5", "1.0", "2.0" };

	return names[v];
}
