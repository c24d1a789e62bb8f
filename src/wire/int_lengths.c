/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which length to believe. Several lengths describe the same bytes: those of the capture,
 * of IP and UDP, of the shim and of the report, the hop length times the hops, and the one of the
 * header behind INT. Devices exist that do not raise one of them when they add INT, or count it by
 * another version's rule. In every carrier and version:
 *
 *   - where one length disagrees with all others, the others are followed, and a note names it;
 *   - where it is not known which one is wrong, a verdict names what does not fit;
 *   - bytes that another length claims are never read as a node, port or path.
 *
 * A length that no other length confirms is followed, because its error could not be detected: for
 * example the end of a stack in front of an ordinary payload, when it is a whole number of hops.
 */
#include "wire/int_lengths.h"

enum fit {
	FIT_NO,     /* required bytes are missing or wrong */
	FIT_MAY,    /* nothing contradicts it, and little supports it */
	FIT_LIKELY, /* payload and metadata seldom look so */
	FIT_SURE,   /* its length is that of the remaining bytes */
};

/* Least bytes of an Ethernet frame, to which senders pad; without and with the checksum behind
 * it. */
#define FRAME_MIN     60
#define FRAME_MIN_FCS 64

/* Least EtherType, below which it is a length; and ARP's. */
#define ETHERTYPE_MIN 0x0600
#define ETH_ARP       0x0806

static enum fit fit_udp(struct pl_cursor c, size_t rest)
{
	const uint8_t *p = pl_cursor_peek(&c, 8);

	if (p == NULL)
		return pl_cursor_left(&c) < rest && rest >= 8 ? FIT_MAY : FIT_NO;
	return pl_be16(p + 4) == rest ? FIT_SURE : FIT_NO;
}

/* Returns true when the checksum of a segment is right, or the segment is cut so that it cannot be
 * checked. The addresses are those of the packet with INT, which the source left as they were. */
static bool has_tcp_checksum(struct pl_cursor c, const struct pl_layers *l, size_t rest)
{
	const uint8_t *p = pl_cursor_peek(&c, rest);
	const unsigned int from = l->ip_version == 4 ? 12 : 0;
	const uint8_t tail[4] = { (uint8_t)(rest >> 8), (uint8_t)rest, 0, PL_IP_TCP };
	uint32_t sum;

	if (p == NULL)
		return true;
	sum = pl_checksum_add(0, l->flow.src.b + from, 16 - from);
	sum = pl_checksum_add(sum, l->flow.dst.b + from, 16 - from);
	sum = pl_checksum_add(sum, tail, sizeof(tail));
	return pl_checksum_fold(pl_checksum_add(sum, p, rest)) == 0;
}

/* RFC 9293 3.1: port 0 is not used; three reserved bits are 0; all but the first segments have ACK;
 * without URG no stack fills the urgent pointer, and with it, which is rare, the checksum
 * decides. */
static enum fit fit_tcp(struct pl_cursor c, const struct pl_layers *l, size_t rest)
{
	enum { FIN = 0x01, SYN = 0x02, RST = 0x04, ACK = 0x10, URG = 0x20 };
	const uint8_t *p = pl_cursor_peek(&c, 20);
	size_t header;

	if (p == NULL)
		return pl_cursor_left(&c) < rest && rest >= 20 ? FIT_MAY : FIT_NO;
	header = 4 * (size_t)(p[12] >> 4);
	if (pl_be16(p) == 0 || pl_be16(p + 2) == 0 || header < 20 || header > rest ||
		(p[12] & 0x0e) != 0 || (p[13] & (SYN | RST | ACK)) == 0 ||
		((p[13] & SYN) != 0 && (p[13] & (FIN | RST)) != 0) ||
		((p[13] & URG) == 0 ? pl_be16(p + 18) != 0 : !has_tcp_checksum(c, l, rest)))
		return FIT_NO;
	return FIT_LIKELY;
}

/* ICMP has no length, but a checksum over all of it. */
static enum fit fit_icmp(struct pl_cursor c, size_t rest)
{
	const uint8_t *p = pl_cursor_peek(&c, rest);

	if (rest < 8)
		return FIT_NO;
	if (p == NULL)
		return FIT_MAY;
	return pl_checksum_fold(pl_checksum_add(0, p, rest)) == 0 ? FIT_SURE : FIT_NO;
}

static enum fit fit_original(
	struct pl_cursor c, const struct pl_layers *l, uint8_t proto, size_t rest)
{
	switch (proto) {
	case PL_IP_UDP:
		return fit_udp(c, rest);
	case PL_IP_TCP:
		return fit_tcp(c, l, rest);
	case PL_IP_ICMP:
		return fit_icmp(c, rest);
	default:
		return FIT_MAY;
	}
}

/* Checks for an IP packet of `rest` bytes, or of fewer when it may be `padded`. */
static enum fit fit_ip(struct pl_cursor c, unsigned int version, size_t rest, bool padded)
{
	const uint8_t *p = pl_cursor_peek(&c, version == 4 ? 20 : 40);
	size_t length;

	if (p == NULL)
		return pl_cursor_left(&c) < rest ? FIT_MAY : FIT_NO;
	if (p[0] >> 4 != version)
		return FIT_NO;
	if (version == 6) {
		length = 40 + (size_t)pl_be16(p + 4);
	} else {
		length = pl_be16(p + 2);
		if ((p[0] & 0xf) < 5 || length < 20)
			return FIT_NO;
	}
	if (length == rest || (padded && length < rest))
		return FIT_SURE;
	/* The length is wrong, but the header is IP beyond doubt. */
	return version == 4 && p[0] == 0x45 && pl_checksum_fold(pl_checksum_add(0, p, 20)) == 0
		       ? FIT_MAY
		       : FIT_NO;
}

bool pl_ethertype_is_known(uint16_t type)
{
	static const uint16_t known[] = {
		0x0806 /* ARP */,
		0x22f3 /* TRILL */,
		0x6558 /* bridging */,
		0x8035 /* RARP */,
		0x8137 /* IPX */,
		0x8809 /* slow protocols */,
		0x8847 /* MPLS */,
		0x8848 /* MPLS */,
		0x8863 /* PPPoE */,
		0x8864 /* PPPoE */,
		0x888e /* 802.1X */,
		0x8892 /* PROFINET */,
		0x88b5 /* experiments */,
		0x88b6 /* experiments */,
		0x88cc /* LLDP */,
		0x88e5 /* MACsec */,
		0x88f7 /* PTP */,
		0x8902 /* CFM */,
		0x8906 /* FCoE */,
		0x8915 /* RoCE */,
		0x894f /* NSH */,
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i] == type)
			return true;
	}
	return false;
}

/* IEEE 802.3: a length in place of the type, then LLC, whose two addresses are equal in spanning
 * tree, SNAP, IS-IS and others. */
static enum fit fit_llc(struct pl_cursor c, uint16_t length, size_t rest, bool padded)
{
	const uint8_t *p = pl_cursor_peek(&c, 3);

	if (p == NULL || p[0] != p[1] || p[0] < 0x42 || p[2] != 3)
		return FIT_NO;
	return length == rest || (padded && length < rest) ? FIT_MAY : FIT_NO;
}

/* RFC 826: Ethernet addresses for those of IPv4. */
static enum fit fit_arp(struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_peek(&c, 6);

	return p != NULL && pl_be32(p) == 0x00010800 && pl_be16(p + 4) == 0x0604 ? FIT_MAY : FIT_NO;
}

/* MPLS with IP behind the last label. Other protocols over Ethernet cannot be told from random
 * bytes. */
static enum fit fit_labels(struct pl_cursor c, uint16_t type, size_t rest, bool padded)
{
	const uint8_t *p;

	if (type != PL_ETH_MPLS && type != PL_ETH_MPLS_MC)
		return FIT_NO;
	for (unsigned int i = 0; i < PL_LABELS_MAX && rest >= 4; i++) {
		p = pl_cursor_take(&c, 4);
		rest -= 4;
		if (p == NULL)
			return FIT_NO;
		if ((p[2] & 1) != 0) {
			p = pl_cursor_peek(&c, 1);
			return p == NULL ? FIT_NO : fit_ip(c, p[0] >> 4 == 6 ? 6 : 4, rest, padded);
		}
	}
	return FIT_NO;
}

static enum fit fit_ethernet(struct pl_cursor c, size_t rest)
{
	const bool padded = rest == FRAME_MIN || rest == FRAME_MIN_FCS;
	const bool cut = pl_cursor_left(&c) < rest;
	const uint8_t *p = pl_cursor_take(&c, 14);
	uint16_t type;

	if (rest < 14)
		return FIT_NO;
	if (p == NULL)
		return cut ? FIT_MAY : FIT_NO;
	type = pl_be16(p + 12);
	rest -= 14;
	for (unsigned int i = 0; i < PL_VLANS_MAX && pl_eth_is_tag(type); i++) {
		p = pl_cursor_take(&c, 4);
		if (p == NULL || rest < 4)
			return cut ? FIT_MAY : FIT_NO;
		type = pl_be16(p + 2);
		rest -= 4;
	}
	switch (type) {
	case PL_ETH_IPV4:
		return fit_ip(c, 4, rest, padded);
	case PL_ETH_IPV6:
		return fit_ip(c, 6, rest, padded);
	default:
		if (type < ETHERTYPE_MIN)
			return fit_llc(c, type, rest, padded);
		return type == ETH_ARP ? fit_arp(c) : fit_labels(c, type, rest, padded);
	}
}

enum { GPE_IPV4 = 1, GPE_IPV6 = 2, GPE_ETHERNET = 3 };

static enum fit fit_next(struct pl_cursor c, const struct pl_layers *l, enum pl_int_next_kind kind,
	uint16_t value, size_t rest)
{
	if (kind == PL_INT_NEXT_ORIGINAL)
		return fit_original(c, l, (uint8_t)value, rest);
	if (kind == PL_INT_NEXT_GPE)
		return value == GPE_IPV4       ? fit_ip(c, 4, rest, false)
		       : value == GPE_IPV6     ? fit_ip(c, 6, rest, false)
		       : value == GPE_ETHERNET ? fit_ethernet(c, rest)
					       : FIT_MAY;
	return value == PL_ETH_IPV4   ? fit_ip(c, 4, rest, false)
	       : value == PL_ETH_IPV6 ? fit_ip(c, 6, rest, false)
	       : value == PL_ETH_TEB  ? fit_ethernet(c, rest)
				      : FIT_MAY;
}

/* Returns the bytes of the IP packet behind the end of UDP's length. */
static size_t behind_udp(const struct pl_layers *l)
{
	return l->flow.proto == PL_IP_UDP
		       ? pl_cursor_left(&l->transport) - 8 - pl_cursor_left(&l->payload)
		       : 0;
}

/* Returns the bytes that the lengths around INT announce from where `there` counts; more than
 * `there` when the packet is cut. */
static size_t announced(const struct pl_int_around *around)
{
	const struct pl_layers *l = around->layers;
	const uint8_t *udp = pl_cursor_peek(&l->transport, 8);
	size_t before, length;

	if (l->flow.proto != PL_IP_UDP || around->beyond_udp || udp == NULL)
		return around->there + l->missing;
	before = pl_cursor_left(&l->transport) - behind_udp(l) - around->there;
	length = pl_be16(udp + 4);
	return length > before ? length - before : 0;
}

/* Checks what would follow INT of this number of words at *c. INT that is itself cut cannot be
 * checked. */
static enum fit fit_behind(const struct pl_int_around *around, const struct pl_cursor *c,
	unsigned int words, enum pl_int_next_kind kind, uint16_t value)
{
	const size_t all = announced(around);
	struct pl_cursor at = *c;
	size_t before;

	if (pl_cursor_take(&at, 4 * (size_t)words) == NULL)
		return all > around->there ? FIT_MAY : FIT_NO;
	before = around->there - pl_cursor_left(&at);
	return all < before ? FIT_NO : fit_next(at, around->layers, kind, value, all - before);
}

unsigned int pl_int_believe(const struct pl_int_around *around, const struct pl_cursor *c,
	unsigned int words, unsigned int other, enum pl_int_next_kind kind, uint16_t value,
	uint64_t *notes)
{
	if (around == NULL || around->layers == NULL ||
		fit_behind(around, c, words, kind, value) != FIT_NO)
		return words;
	if (fit_behind(around, c, other, kind, value) >= FIT_LIKELY) {
		*notes |= PL_NOTE_BIT(SHIM_LENGTH_RULE);
		return other;
	}
	/* A length past the end of the packet has a verdict of its own. */
	return pl_cursor_peek(c, 4 * (size_t)words) == NULL ? words : PL_INT_NO_LENGTH;
}

/* Returns true for verdicts on bytes that end too early for INT, perhaps by a length that is too
 * short. */
static bool is_past_end(enum pl_verdict v)
{
	return v == PL_V_SHIM_LENGTH_MAX || v == PL_V_INT_TRUNCATED || v == PL_V_INT_TAIL ||
	       v == PL_V_SHORT || v == PL_V_INT_NEXT;
}

/* Parses INT of a source or node that did not raise the UDP length: IP and shim agree, and the
 * bytes are there. */
static enum pl_verdict parse_beyond_udp(struct pl_int *ret, struct pl_cursor *c,
	const struct pl_layers *l, enum pl_int_carrier carrier, const struct pl_int_hints *hints,
	struct pl_int_cache *cache)
{
	struct pl_cursor wide = l->transport;
	struct pl_int_around around = { .layers = l, .beyond_udp = true };
	enum pl_verdict v;

	pl_cursor_skip(&wide, pl_cursor_left(&l->transport) - behind_udp(l) - pl_cursor_left(c));
	around.there = pl_cursor_left(&wide);
	v = pl_int_parse_around(
		ret, &wide, carrier, hints, cache, (l->flags & PL_LAYERS_CUT) != 0, &around);
	if (v == PL_V_OK || v == PL_V_INT_TRUNCATED) {
		ret->notes |= PL_NOTE_BIT(UDP_LENGTH_SHORT);
		*c = wide;
	}
	return v;
}

enum pl_verdict pl_int_parse_in(struct pl_int *ret, struct pl_cursor *c, const struct pl_layers *l,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int_cache *cache)
{
	const struct pl_int_around around = { .layers = l, .there = pl_cursor_left(c) };
	struct pl_cursor at = *c;
	enum pl_verdict v = pl_int_parse_around(
		ret, &at, carrier, hints, cache, (l->flags & PL_LAYERS_CUT) != 0, &around);

	if (__builtin_expect(v != PL_V_OK, 0) && is_past_end(v) && behind_udp(l) > 0)
		return parse_beyond_udp(ret, c, l, carrier, hints, cache);
	*c = at;
	return v;
}

bool pl_int_resembles(struct pl_cursor c)
{
	const uint8_t *p = pl_cursor_peek(&c, 12);
	unsigned int version;

	if (p == NULL || pl_be16(p + 8) == 0)
		return false;
	version = p[4] >> 4;
	if (version == 2 && ((p[4] & 1) != 0 || p[5] != 0 || p[6] >> 5 != 0))
		return false;
	if (p[0] == 0x01 || p[0] == 0x03) {
		/* Some generators leave the length 0. */
		if (p[1] != 0 || (p[3] & 3) != 0)
			return false;
		return version == 0   ? p[5] >> 5 == 0 && pl_be16(p + 10) == 0
		       : version == 1 ? (p[5] & 0x7f) == 0 && p[6] >> 5 == 0
				      : version == 2;
	}
	return version == 2 && ((p[0] & 0xf3) == 0x10 || (p[0] & 0xf3) == 0x30);
}

/* Returns true when the source's additional word is the number of the packet within its flow. */
bool pl_int_is_numbered(const struct pl_int *ret)
{
	return ret->ds_id == PL_INT_DS_HOSTS && ret->ds_bitmap == PL_INT_DS_NUMBERED &&
	       (ret->bitmap & PL_INT_CHECKSUM) == 0;
}

/*
 * v2.1 5.8: with a domain id the source may add words of its own, behind its baseline, at the end
 * of the stack. Sets how many of `words` they are; returns false when that is not known. Every
 * instruction of a domain adds at least a word: when a hop has fewer than there are instructions,
 * some are the source's.
 */
static bool source_words(struct pl_int *ret, unsigned int words, const struct pl_int_hints *hints)
{
	unsigned int of_hop = ret->layout->words - ret->layout->baseline_words;

	if (ret->version != PL_INT_V20 || ret->ds_id == 0 || words == 0)
		return true;
	if (pl_int_is_numbered(ret)) {
		ret->source_words = 1;
		return true;
	}
	if (hints->source_words != 0) {
		/* A node that emptied the stack because of the MTU removed the source's words
		 * too. */
		if (hints->source_words % ret->hop_words == 0 || words % ret->hop_words != 0)
			ret->source_words = hints->source_words;
		return true;
	}
	of_hop -= hints->trailing_words;
	return ret->ds_bitmap == 0 || (of_hop >= (unsigned int)__builtin_popcount(ret->ds_bitmap) &&
					      words % ret->hop_words == 0);
}

/* Reads a stack in which the source's own words cannot be distinguished from hops: only the newest
 * block is known to be a hop's. */
static void take_newest(struct pl_int *ret, unsigned int words)
{
	ret->announced_hops = words >= ret->hop_words;
	ret->source_words = (uint8_t)(words - ret->announced_hops * ret->hop_words);
	ret->partial = true;
	ret->notes |= PL_NOTE_BIT(SOURCE_UNKNOWN) | PL_NOTE_BIT(PARTIAL);
}

bool pl_int_divide_domain(struct pl_int *ret, unsigned int words, const struct pl_int_hints *hints)
{
	unsigned int of_hops, hops;

	if (!source_words(ret, words, hints)) {
		take_newest(ret, words);
		return ret->announced_hops != 0;
	}
	if (ret->source_words > words)
		return false;
	if (ret->source_words != 0 && !pl_int_is_numbered(ret))
		ret->notes |= PL_NOTE_BIT(SOURCE_METADATA);
	of_hops = words - ret->source_words;
	hops = of_hops / ret->hop_words;
	ret->announced_hops = (uint8_t)hops;
	/* The source's words are part of a whole block. */
	return hops * ret->hop_words == of_hops && (hops != 0 || ret->source_words == 0);
}
