/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rng.h"
#include "base/test.h"
#include "wire/layers.h"

/* The bytes in memory of exactly their size, so that a sanitizer sees a read behind them. */
static enum pl_verdict walk_copy(struct pl_layers *l, uint8_t **ret_copy, const void *data,
	size_t n, enum pl_link link, bool lenient)
{
	*ret_copy = malloc(n == 0 ? 1 : n);
	memcpy(*ret_copy, data, n);
	return pl_layers_walk(l, pl_cursor(*ret_copy, n), link, lenient);
}

#define ETH  "020000000002 020000000001 "
#define IP4U "4500 0020 0001 0000 40 11 0000 0a000001 0a000002 " /* 12 bytes of UDP */
#define UDP  "1389 07d0 000c 0000 "
#define IP4T "4500 0030 0001 4000 40 06 0000 0a000001 0a000002 " /* 28 bytes of TCP */
#define TCP6 "1389 01bb 00000001 00000001 6010 ffff 0000 0000 01010101 "
#define IP6(len, next)                                                                             \
	"6bb00000 " len " " next                                                                   \
	" 3f 20010db8000000000000000000000001 20010db8000000000000000000000002 "
#define DATA "deadbeef "
#define PADN "0104 00000000 "

/* The expected result of a frame. Addresses end in 1 and 2, sport is 5001 where there are ports. */
static const struct good {
	const char *name, *hex;
	enum pl_link link;
	bool lenient;
	uint8_t version, proto, flags, have;
	uint16_t dport, vlan, missing;
	int payload; /* bytes */
} goods[] = {
	/* clang-format off */
	{ "udp", ETH "0800" IP4U UDP DATA, PL_LINK_ETHERNET, false, 4, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "udp with padding", ETH "0800" IP4U UDP DATA "00000000 00000000", PL_LINK_ETHERNET, false, 4, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "udp shorter than its packet", ETH "0800" IP4U "1389 07d0 000a 0000" DATA, PL_LINK_ETHERNET, false, 4, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 2 },
	{ "tcp with a word of options", ETH "0800" IP4T TCP6 DATA, PL_LINK_ETHERNET, false, 4, 6, 0, PL_FLOW_PORTS, 443, 0, 0, 4 },
	{ "one tag", ETH "8100 2064 0800" IP4U UDP DATA, PL_LINK_ETHERNET, false, 4, 17, 0, PL_FLOW_PORTS | PL_FLOW_VLAN, 2000, 100, 0, 4 },
	{ "a priority tag is no vlan", ETH "8100 e000 0800" IP4U UDP DATA, PL_LINK_ETHERNET, false, 4, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "802.1ad: the inner tag counts", ETH "88a8 0064 8100 00c8 0800" IP4U UDP DATA, PL_LINK_ETHERNET, false, 4, 17, 0, PL_FLOW_PORTS | PL_FLOW_VLAN, 2000, 200, 0, 4 },
	{ "four tags", ETH "9100 0001 88a8 0002 8100 0003 8100 0004 86dd" IP6("000c", "11") UDP DATA, PL_LINK_ETHERNET, false, 6, 17, 0, PL_FLOW_PORTS | PL_FLOW_VLAN, 2000, 4, 0, 4 },
	{ "mpls, two labels", ETH "8847 00010040 00020140" IP4U UDP DATA, PL_LINK_ETHERNET, false, 4, 17, PL_LAYERS_MPLS, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "mpls, eight labels, ipv6", ETH "8848 00010040 00010040 00010040 00010040 00010040 00010040 00010040 00020140" IP6("000c", "11") UDP DATA, PL_LINK_ETHERNET, false, 6, 17, PL_LAYERS_MPLS, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "raw ipv4", IP4U UDP DATA, PL_LINK_RAW_IP, false, 4, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "raw ipv6", IP6("000c", "11") UDP DATA, PL_LINK_RAW_IP, false, 6, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "cooked v1", "0000 0001 0006 020000000001 0000 0800" IP4U UDP DATA, PL_LINK_SLL, false, 4, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "cooked v1 with a tag", "0000 0001 0006 020000000001 0000 8100 0007 0800" IP4U UDP DATA, PL_LINK_SLL, false, 4, 17, 0, PL_FLOW_PORTS | PL_FLOW_VLAN, 2000, 7, 0, 4 },
	{ "cooked v2", "86dd 0000 00000003 0001 00 06 020000000001 0000" IP6("000c", "11") UDP DATA, PL_LINK_SLL2, false, 6, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "ipv4 options", ETH "0800 4700 0028 0001 0000 40 11 0000 0a000001 0a000002 0101010107040400" UDP DATA, PL_LINK_ETHERNET, false, 4, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "icmp echo", ETH "0800 4500 001c 0001 0000 40 01 0000 0a000001 0a000002 0800 0000 0001 0001", PL_LINK_ETHERNET, false, 4, 1, 0, PL_FLOW_PORTS, 0, 0, 0, 4 },
	{ "icmpv6", IP6("0008", "3a") "8000 0000 0001 0001", PL_LINK_RAW_IP, false, 6, 58, 0, PL_FLOW_PORTS, 0, 0, 0, 4 },
	{ "icmp number in ipv6 is no icmp", IP6("0008", "01") "8000 0000 0001 0001", PL_LINK_RAW_IP, false, 6, 1, 0, 0, 0, 0, 0, 8 },
	{ "sctp", ETH "0800 4500 0024 0001 0000 40 84 0000 0a000001 0a000002 1389 07d0 00000001 00000000" DATA, PL_LINK_ETHERNET, false, 4, 132, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "sctp over ipv6", IP6("000c", "84") "1389 07d0 00000001 00000000", PL_LINK_RAW_IP, false, 6, 132, 0, PL_FLOW_PORTS, 2000, 0, 0, 0 },
	{ "sctp header cut, lenient", IP6("0100", "84") "1389 07d0 00000001 000000", PL_LINK_RAW_IP, true, 6, 132, PL_LAYERS_NO_L4 | PL_LAYERS_CUT, 0, 0, 0, 0x100 - 11, 11 },
	{ "another protocol", ETH "0800 4500 001c 0001 0000 40 59 0000 0a000001 0a000002 0102030405060708", PL_LINK_ETHERNET, false, 4, 0x59, 0, 0, 0, 0, 0, 8 },
	{ "first fragment", ETH "0800 4500 0020 0001 2000 40 11 0000 0a000001 0a000002 1389 07d0 0400 0000" DATA, PL_LINK_ETHERNET, false, 4, 17, PL_LAYERS_CUT, PL_FLOW_PORTS, 2000, 0, 0x400 - 12, 4 },
	{ "later fragment", ETH "0800 4500 0020 0001 2001 40 11 0000 0a000001 0a000002 1389 07d0 000c 0000" DATA, PL_LINK_ETHERNET, false, 4, 17, PL_LAYERS_FRAGMENT, 0, 0, 0, 0, 12 },
	{ "last fragment", ETH "0800 4500 0020 0001 0001 40 11 0000 0a000001 0a000002 1389 07d0 000c 0000" DATA, PL_LINK_ETHERNET, false, 4, 17, PL_LAYERS_FRAGMENT, 0, 0, 0, 0, 12 },
	{ "ipv6 later fragment", IP6("0014", "2c") "11 00 0008 00000001" UDP DATA, PL_LINK_RAW_IP, false, 6, 17, PL_LAYERS_FRAGMENT, 0, 0, 0, 0, 12 },
	{ "ipv6 atomic fragment", IP6("0014", "2c") "11 00 0000 00000001" UDP DATA, PL_LINK_RAW_IP, false, 6, 17, 0, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "ipv6 first fragment", IP6("0014", "2c") "11 00 0001 00000001 1389 07d0 0100 0000" DATA, PL_LINK_RAW_IP, false, 6, 17, PL_LAYERS_CUT, PL_FLOW_PORTS, 2000, 0, 0x100 - 12, 4 },
	{ "hop-by-hop", IP6("0014", "00") "11 00" PADN UDP DATA, PL_LINK_RAW_IP, false, 6, 17, PL_LAYERS_HOP_OPTS, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "every extension header", IP6("0044", "00") "2b 00" PADN "3c 00 0000 00000000 2c 00" PADN "33 00 0000 00000001 3c 02 0000 00000001 00000001 00000001 11 00" PADN UDP DATA, PL_LINK_RAW_IP, false, 6, 17, PL_LAYERS_HOP_OPTS | PL_LAYERS_DST_OPTS, PL_FLOW_PORTS, 2000, 0, 0, 4 },
	{ "no next header", IP6("0004", "3b") DATA, PL_LINK_RAW_IP, false, 6, 59, 0, 0, 0, 0, 0, 4 },
	{ "empty ipv6", IP6("0000", "3b"), PL_LINK_RAW_IP, false, 6, 59, 0, 0, 0, 0, 0, 0 },
	{ "cut payload", ETH "0800 4500 0100 0001 0000 40 11 0000 0a000001 0a000002 1389 07d0 00ec 0000" DATA, PL_LINK_ETHERNET, false, 4, 17, PL_LAYERS_CUT, PL_FLOW_PORTS, 2000, 0, 0x100 - 32, 4 },
	{ "cut payload, ipv6", IP6("0100", "06") TCP6 DATA, PL_LINK_RAW_IP, false, 6, 6, PL_LAYERS_CUT, PL_FLOW_PORTS, 443, 0, 0x100 - 28, 4 },
	{ "cut behind a udp length that ends before", ETH "0800 4500 0100 0001 0000 40 11 0000 0a000001 0a000002 1389 07d0 000a 0000" DATA "00000000", PL_LINK_ETHERNET, false, 4, 17, PL_LAYERS_CUT, PL_FLOW_PORTS, 2000, 0, 0x100 - 36, 2 },
	{ "lenient: no transport", IP4U "1389 07d0 0a", PL_LINK_RAW_IP, true, 4, 17, PL_LAYERS_CUT | PL_LAYERS_NO_L4, 0, 0, 0, 7, 5 },
	{ "lenient: tcp cut in its options", IP4T "1389 01bb 00000001 00000001 6010 ffff 0000 0000 01", PL_LINK_RAW_IP, true, 4, 6, PL_LAYERS_CUT, PL_FLOW_PORTS, 443, 0, 7, 0 },
	{ "lenient: cut in the ipv4 options", "4700 0028 0001 0000 40 11 0000 0a000001 0a000002 01010101", PL_LINK_RAW_IP, true, 4, 17, PL_LAYERS_CUT | PL_LAYERS_NO_L4, 0, 0, 0, 16, 0 },
	{ "lenient: cut in an extension header", IP6("0014", "00") "11 00 0104", PL_LINK_RAW_IP, true, 6, 0, PL_LAYERS_CUT | PL_LAYERS_NO_L4, 0, 0, 0, 16, 4 },
	/* clang-format on */
};

static void test_good(void)
{
	static const uint8_t v4[4] = { 10, 0, 0, 1 };
	uint8_t bytes[512], *copy;
	struct pl_layers l;
	size_t n;

	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		const struct good *g = &goods[i];
		struct pl_addr src = pl_addr_v4(v4);
		bool same;

		n = pl_test_hex(bytes, sizeof(bytes), g->hex);
		eq(walk_copy(&l, &copy, bytes, n, g->link, g->lenient), PL_V_OK, "%s: verdict",
			g->name);
		if (g->version == 6)
			src = pl_addr_v6("\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1");
		same = l.ip_version == g->version && l.flow.proto == g->proto &&
		       l.flags == g->flags && l.flow.have == g->have && l.flow.vlan == g->vlan &&
		       l.missing == g->missing && pl_addr_equal(&l.flow.src, &src) &&
		       l.ttl == (g->version == 6 ? 63 : 64) &&
		       l.flow.dscp == (g->version == 6 ? 46 : 0) &&
		       l.ecn == (g->version == 6 ? 3 : 0);
		ok(same, "%s: version %u proto %u flags %#x have %#x vlan %u missing %u", g->name,
			l.ip_version, l.flow.proto, l.flags, l.flow.have, l.flow.vlan, l.missing);
		ok(l.network >= copy && l.network < copy + n && l.network[0] >> 4 == g->version,
			"%s: where the IP header is", g->name);
		if (g->flags & PL_LAYERS_MPLS)
			eq(l.label, 0x10, "%s: the outer label", g->name);
		if (g->have & PL_FLOW_PORTS)
			eq(l.flow.dport, g->dport, "%s: dport", g->name);
		eq(pl_cursor_left(&l.payload), g->payload, "%s: payload", g->name);
		ok(l.payload.pos >= copy && l.payload.end <= copy + n, "%s: payload inside",
			g->name);
		free(copy);
	}
}

static const struct bad {
	const char *name, *hex;
	enum pl_link link;
	enum pl_verdict verdict;
} bads[] = {
	/* clang-format off */
	{ "nothing", "", PL_LINK_ETHERNET, PL_V_SHORT },
	{ "unknown link", ETH "0800" IP4U UDP DATA, PL_LINK_UNKNOWN, PL_V_LINK_UNKNOWN },
	{ "a datagram is no frame", IP4U UDP DATA, PL_LINK_UDP, PL_V_LINK_UNKNOWN },
	{ "arp", ETH "0806 0001 0800 0604 0001", PL_LINK_ETHERNET, PL_V_ETHERTYPE_UNKNOWN },
	{ "802.3", ETH "0026 424203", PL_LINK_ETHERNET, PL_V_ETHERTYPE_UNKNOWN },
	{ "five tags", ETH "8100 0001 8100 0001 8100 0001 8100 0001 8100 0001 0800" IP4U UDP DATA, PL_LINK_ETHERNET, PL_V_NESTING },
	{ "a tag cut", ETH "8100 00", PL_LINK_ETHERNET, PL_V_SHORT },
	{ "nine labels", ETH "8847 00010040 00010040 00010040 00010040 00010040 00010040 00010040 00010040 00010140" IP4U UDP DATA, PL_LINK_ETHERNET, PL_V_NESTING },
	{ "label stack without bottom", ETH "8847 00010040", PL_LINK_ETHERNET, PL_V_SHORT },
	{ "pseudowire", ETH "8847 00010140 00000000 020000000002", PL_LINK_ETHERNET, PL_V_ETHERTYPE_UNKNOWN },
	{ "ipv4 announced, ipv6 sent", ETH "0800" IP6("000c", "11") UDP DATA, PL_LINK_ETHERNET, PL_V_IP_VERSION },
	{ "ipv6 announced, ipv4 sent", ETH "86dd" IP4U UDP DATA, PL_LINK_ETHERNET, PL_V_IP_VERSION },
	{ "version 5", "5500 0020", PL_LINK_RAW_IP, PL_V_IP_VERSION },
	{ "ipv4 header cut", "4500 0020 0001 0000 40 11 0000 0a000001 0a0000", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "ipv6 header cut", "60000000 000c 11 40 20010db8", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "ihl 4", "4400 0020 0001 0000 40 11 0000 0a000001 0a000002" UDP DATA, PL_LINK_RAW_IP, PL_V_IP_LENGTH },
	{ "ihl 0", "4000 0020 0001 0000 40 11 0000 0a000001 0a000002" UDP DATA, PL_LINK_RAW_IP, PL_V_IP_LENGTH },
	{ "total length 0", "4500 0000 0001 0000 40 11 0000 0a000001 0a000002" UDP DATA, PL_LINK_RAW_IP, PL_V_IP_LENGTH },
	{ "total length 19", "4500 0013 0001 0000 40 11 0000 0a000001 0a000002" UDP DATA, PL_LINK_RAW_IP, PL_V_IP_LENGTH },
	{ "total length below the options", "4600 0017 0001 0000 40 11 0000 0a000001 0a000002 01010101" UDP DATA, PL_LINK_RAW_IP, PL_V_IP_LENGTH },
	{ "options cut", "4f00 0050 0001 0000 40 11 0000 0a000001 0a000002 01010101", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "packet ends in udp header", "4500 001b 0001 0000 40 11 0000 0a000001 0a000002" UDP DATA "00000000", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "udp length 0", IP4U "1389 07d0 0000 0000" DATA "00000000 00000000 00000000 00000000", PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "udp length 7", IP4U "1389 07d0 0007 0000" DATA "00000000 00000000 00000000 00000000", PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "udp length past the packet", IP4U "1389 07d0 000d 0000" DATA "00000000 00000000 00000000 00000000", PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "udp length past the packet, cut", "4500 0100 0001 0000 40 11 0000 0a000001 0a000002 1389 07d0 00ed 0000" DATA, PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "tcp offset 4", IP4T "1389 01bb 00000001 00000001 4010 ffff 0000 0000 01010101" DATA, PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "tcp offset 0", IP4T "1389 01bb 00000001 00000001 0010 ffff 0000 0000 01010101" DATA, PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "tcp offset past the packet", IP4T "1389 01bb 00000001 00000001 8010 ffff 0000 0000 01010101" DATA "00000000", PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "tcp header cut", IP4T "1389 01bb 00000001", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "tcp options cut", IP4T "1389 01bb 00000001 00000001 6010 ffff 0000 0000 01", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "icmp cut", "4500 001c 0001 0000 40 01 0000 0a000001 0a000002 0800", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "sctp header cut", IP6("000b", "84") "1389 07d0 00000001 000000", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "jumbogram", IP6("0000", "00") "11 00 c204 00010000" UDP DATA, PL_LINK_RAW_IP, PL_V_IP_LENGTH },
	{ "ipv6 udp length 0", IP6("000c", "11") "1389 07d0 0000 0000" DATA, PL_LINK_RAW_IP, PL_V_L4_LENGTH },
	{ "ipv6 payload length below udp", IP6("0007", "11") UDP DATA, PL_LINK_RAW_IP, PL_V_SHORT },
	{ "extension header past the packet", IP6("0014", "00") "11 02" PADN UDP DATA "00000000 00000000 00000000", PL_LINK_RAW_IP, PL_V_IP_OPTIONS },
	{ "no room for an extension header", IP6("0004", "3c") "11 00 0104", PL_LINK_RAW_IP, PL_V_IP_OPTIONS },
	{ "extension header cut", IP6("0014", "00") "11 00 0104", PL_LINK_RAW_IP, PL_V_SHORT },
	{ "long extension header cut", IP6("0100", "3c") "11 04" PADN UDP, PL_LINK_RAW_IP, PL_V_SHORT },
	{ "hop-by-hop in second place", IP6("001c", "3c") "00 00" PADN "11 00" PADN UDP DATA, PL_LINK_RAW_IP, PL_V_IP_OPTIONS },
	{ "nine extension headers", IP6("0054", "3c") "3c 00" PADN "3c 00" PADN "3c 00" PADN "3c 00" PADN "3c 00" PADN "3c 00" PADN "3c 00" PADN "3c 00" PADN "11 00" PADN UDP DATA, PL_LINK_RAW_IP, PL_V_NESTING },
	{ "cooked v1 cut", "0000 0001 0006 020000000001 0000 08", PL_LINK_SLL, PL_V_SHORT },
	{ "cooked v2 cut", "0800 0000 00000003 0001 00 06 020000000001", PL_LINK_SLL2, PL_V_SHORT },
	{ "cooked netlink", "0004 0338 0000 0000000000000000 0800" IP4U UDP DATA, PL_LINK_SLL, PL_V_ETHERTYPE_UNKNOWN },
	{ "cooked v2 netlink", "0800 0000 00000003 0338 00 06 020000000001 0000" IP4U UDP DATA, PL_LINK_SLL2, PL_V_ETHERTYPE_UNKNOWN },
	/* clang-format on */
};

static void test_bad(void)
{
	uint8_t bytes[512], *copy;
	struct pl_layers l;
	size_t n;

	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		n = pl_test_hex(bytes, sizeof(bytes), bads[i].hex);
		streq(pl_verdict_name(walk_copy(&l, &copy, bytes, n, bads[i].link, false)),
			pl_verdict_name(bads[i].verdict), "%s", bads[i].name);
		free(copy);
	}
}

static bool cursor_same(const struct pl_cursor *a, const struct pl_cursor *b)
{
	return a->pos == b->pos && a->end == b->end && a->short_read == b->short_read;
}

static bool layers_same(const struct pl_layers *a, const struct pl_layers *b)
{
	return pl_addr_equal(&a->flow.src, &b->flow.src) &&
	       pl_addr_equal(&a->flow.dst, &b->flow.dst) && a->flow.sport == b->flow.sport &&
	       a->flow.dport == b->flow.dport && a->flow.vlan == b->flow.vlan &&
	       a->flow.proto == b->flow.proto && a->flow.dscp == b->flow.dscp &&
	       a->flow.vni == b->flow.vni && a->flow.have == b->flow.have &&
	       cursor_same(&a->transport, &b->transport) && cursor_same(&a->payload, &b->payload) &&
	       a->ip_version == b->ip_version && a->ttl == b->ttl && a->ecn == b->ecn &&
	       a->flags == b->flags && a->missing == b->missing && a->network == b->network;
}

static bool inside(const struct pl_cursor *c, const uint8_t *data, size_t n)
{
	return c->pos >= data && c->pos <= c->end && c->end <= data + n;
}

/* The fast path gives what the general walk gives, or gives nothing; results stay inside the
 * frame. */
static bool walks_agree(const uint8_t *data, size_t n, enum pl_link link, bool lenient)
{
	struct pl_cursor c = pl_cursor(data, n);
	struct pl_layers usual, any;
	enum pl_verdict v = pl_layers_walk_any(&any, c, link, lenient);

	if (pl_layers_walk_usual(&usual, &c, link) && (v != PL_V_OK || !layers_same(&usual, &any)))
		return false;
	return inside(&any.transport, data, n) && inside(&any.payload, data, n) &&
	       ((any.flags & PL_LAYERS_HOP_OPTS) == 0 || inside(&any.hop_opts, data, n)) &&
	       ((any.flags & PL_LAYERS_DST_OPTS) == 0 || inside(&any.dst_opts, data, n));
}

static void test_truncation(void)
{
	uint8_t bytes[512], *copy;
	struct pl_layers l;
	size_t n;
	bool good = true;

	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		n = pl_test_hex(bytes, sizeof(bytes), goods[i].hex);
		for (size_t cut = 0; cut < n; cut++) {
			for (int lenient = 0; lenient < 2; lenient++) {
				enum pl_verdict v = walk_copy(
					&l, &copy, bytes, cut, goods[i].link, lenient != 0);

				good = good && (v == PL_V_OK || v == PL_V_SHORT) &&
				       walks_agree(copy, cut, goods[i].link, lenient != 0);
				free(copy);
			}
		}
	}
	ok(good, "cut anywhere: short or a part, never outside");
}

static void test_damage(void)
{
	uint8_t bytes[512], *copy;
	struct pl_rng rng;
	uint64_t seed = 20261120;
	bool good = true;
	size_t n;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	for (unsigned int round = 0; round < 200000 && good; round++) {
		const struct good *g = &goods[pl_rng_below(&rng, sizeof(goods) / sizeof(goods[0]))];

		n = pl_test_hex(bytes, sizeof(bytes), g->hex);
		for (uint64_t k = pl_rng_below(&rng, 4); k > 0; k--)
			bytes[pl_rng_below(&rng, n)] = (uint8_t)pl_rng_u64(&rng);
		n -= pl_rng_below(&rng, 3) == 0 ? pl_rng_below(&rng, n) : 0;
		copy = malloc(n == 0 ? 1 : n);
		memcpy(copy, bytes, n);
		good = walks_agree(copy, n, g->link, (round & 1) != 0);
		free(copy);
		if (!good)
			printf("# round %u: %s\n", round, g->name);
	}
	ok(good, "damaged frames: shortcut and general walk agree");
}

static void test_options_found(void)
{
	uint8_t bytes[256];
	struct pl_layers l;
	size_t n;

	n = pl_test_hex(bytes, sizeof(bytes),
		IP6("001c", "00") "3c 00 0104 01020304 11 00 0104 05060708" UDP DATA);
	eq(pl_layers_walk(&l, pl_cursor(bytes, n), PL_LINK_RAW_IP, false), PL_V_OK);
	eq(l.flags, PL_LAYERS_HOP_OPTS | PL_LAYERS_DST_OPTS);
	eq(pl_cursor_left(&l.hop_opts), 6);
	memeq(l.hop_opts.pos, "\1\4\1\2\3\4", 6);
	eq(pl_cursor_left(&l.dst_opts), 6);
	memeq(l.dst_opts.pos, "\1\4\5\6\7\10", 6);
}

/* Frames that are written are read again, with every checksum good. */
static void test_put(void)
{
	static const uint8_t protos[] = { PL_IP_UDP, PL_IP_TCP, PL_IP_ICMP, PL_IP_ICMPV6, 200 };
	uint8_t memory[2048], opts[64];
	struct pl_rng rng;
	uint64_t seed = 7;
	bool good = true;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	for (unsigned int round = 0; round < 20000 && good; round++) {
		struct pl_build b = pl_build(memory, sizeof(memory));
		struct pl_flow flow = {
			.sport = (uint16_t)(pl_rng_u64(&rng) & 0xff),
			.dport = (uint16_t)(pl_rng_u64(&rng) & 0xff),
			.vlan = (uint16_t)pl_rng_below(&rng, 4096),
			.dscp = (uint8_t)pl_rng_below(&rng, 64),
			.proto = protos[pl_rng_below(&rng, sizeof(protos))],
		};
		bool v6 = pl_rng_below(&rng, 2) != 0;
		struct pl_ip6_options ext = { opts, opts, pl_rng_below(&rng, 40),
			pl_rng_below(&rng, 40) };
		size_t payload = pl_rng_below(&rng, 200), at;
		struct pl_layers l;
		uint32_t sum;

		memset(opts, 0, sizeof(opts));
		for (int i = 0; i < 4; i++) {
			flow.src.b[12 + i] = (uint8_t)pl_rng_u64(&rng);
			flow.dst.b[12 + i] = (uint8_t)pl_rng_u64(&rng);
		}
		flow.src = v6 ? flow.src : pl_addr_v4(flow.src.b + 12);
		flow.dst = v6 ? flow.dst : pl_addr_v4(flow.dst.b + 12);
		flow.src.b[0] = flow.dst.b[0] = v6 ? 0xfd : 0;
		if (flow.proto == PL_IP_ICMP && v6)
			flow.proto = PL_IP_ICMPV6;
		else if (flow.proto == PL_IP_ICMPV6 && !v6)
			flow.proto = PL_IP_ICMP;
		pl_put_eth(&b, v6 ? PL_ETH_IPV6 : PL_ETH_IPV4, flow.vlan);
		at = pl_put_ip_options(
			&b, &flow, 9, (unsigned int)pl_rng_below(&rng, 11), v6 ? &ext : NULL);
		for (size_t i = 0; i < payload; i++)
			pl_put_u8(&b, (uint8_t)pl_rng_u64(&rng));
		pl_end_ip(&b, at);
		good = !b.full &&
		       pl_layers_walk(&l, pl_cursor(b.data, b.len), PL_LINK_ETHERNET, false) ==
			       PL_V_OK &&
		       pl_addr_equal(&l.flow.src, &flow.src) && l.flow.proto == flow.proto &&
		       l.flow.dscp == flow.dscp && l.ttl == 9 && l.flow.vlan == flow.vlan &&
		       l.transport.end == b.data + b.len &&
		       ((l.flow.have & PL_FLOW_PORTS) == 0 ||
			       (l.flow.sport == flow.sport && l.flow.dport == flow.dport));
		if (!good)
			break;
		if (!v6)
			good = pl_checksum_fold(pl_checksum_add(0, b.data + at, 20)) == 0;
		if (flow.proto == 200)
			continue;
		/* The sum over pseudo header and all bytes, checksum included, is all ones. */
		sum = pl_checksum_add(0, l.transport.pos, pl_cursor_left(&l.transport));
		if (flow.proto != PL_IP_ICMP) {
			sum = pl_checksum_add(sum, flow.src.b + (v6 ? 0 : 12), v6 ? 16 : 4);
			sum = pl_checksum_add(sum, flow.dst.b + (v6 ? 0 : 12), v6 ? 16 : 4);
			sum += (uint32_t)pl_cursor_left(&l.transport) + flow.proto;
		}
		good = good && pl_checksum_fold(sum) == 0;
	}
	ok(good, "written packets are read again with good checksums");
}

static void test_put_full(void)
{
	uint8_t memory[128];
	struct pl_flow flow = { .proto = PL_IP_UDP };

	for (size_t cap = 0; cap < 40; cap++) {
		struct pl_build b = pl_build(memory, cap);

		pl_put_eth(&b, PL_ETH_IPV6, 5);
		pl_end_ip(&b, pl_put_ip(&b, &flow, 64, 0));
		if (!b.full || b.len > cap)
			ok(false, "cap %zu", cap);
	}
	ok(true, "a full buffer is marked");
}

/* RFC 1071, section 3: the example's sum. */
static void test_checksum(void)
{
	static const uint8_t example[8] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };

	eq(pl_checksum_fold(pl_checksum_add(0, example, 8)), (uint16_t)~0xddf2);
	eq(pl_checksum_fold(pl_checksum_add(pl_checksum_add(0, example, 4), example + 4, 4)),
		(uint16_t)~0xddf2);
	eq(pl_checksum_fold(pl_checksum_add(0, example, 7)), (uint16_t)~0xdcfb, "odd length");
	eq(pl_checksum_fold(pl_checksum_add(0xffffffff, "\xff\xff\xff\xff", 4)), 0, "carries");
}

int main(void)
{
	test_good();
	test_bad();
	test_truncation();
	test_damage();
	test_options_found();
	test_put();
	test_put_full();
	test_checksum();
	return pl_test_done();
}
