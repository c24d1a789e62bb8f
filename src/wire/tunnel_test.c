/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "base/test.h"
#include "wire/layers.h"

/* A level whose payload is given, as the walk leaves it. */
static struct pl_layers level(uint8_t proto, uint16_t dport, const void *payload, size_t n)
{
	return (struct pl_layers){
		.flow = { .proto = proto, .dport = dport, .have = PL_FLOW_PORTS },
		.transport = pl_cursor(payload, n),
		.payload = pl_cursor(payload, n),
		.ip_version = 4,
	};
}

static const struct good {
	const char *name;
	uint8_t proto;
	uint16_t dport;
	size_t n;
	const char *bytes;
	uint8_t kind;
	bool have_vni;
	uint32_t vni;
	uint16_t next;
	size_t options, inner;
	enum pl_link link;
} goods[] = {
	/* clang-format off */
	{ "tcp is no tunnel", PL_IP_TCP, PL_PORT_VXLAN, 8, "\x08\0\0\0\0\0\1\0", PL_TUNNEL_NONE, false, 0, 0, 0, 8, PL_LINK_UNKNOWN },
	{ "udp to another port", PL_IP_UDP, 53, 8, "\x08\0\0\0\0\0\1\0", PL_TUNNEL_NONE, false, 0, 0, 0, 8, PL_LINK_UNKNOWN },
	{ "ip in ip", PL_IP_IPIP, 0, 4, "\x45\0\0\0", PL_TUNNEL_IP, false, 0, PL_ETH_IPV4, 0, 4, PL_LINK_RAW_IP },
	{ "ipv6 in ip", PL_IP_IPV6, 0, 4, "\x60\0\0\0", PL_TUNNEL_IP, false, 0, PL_ETH_IPV6, 0, 4, PL_LINK_RAW_IP },
	{ "gre", PL_IP_GRE, 0, 6, "\0\0\x08\0\x45\0", PL_TUNNEL_GRE, false, 0, 0x800, 0, 2, PL_LINK_RAW_IP },
	{ "gre with key", PL_IP_GRE, 0, 10, "\x20\0\x65\x58\1\2\3\4\xaa\xbb", PL_TUNNEL_GRE, true, 0x01020304, 0x6558, 0, 2, PL_LINK_ETHERNET },
	{ "gre with checksum, key, sequence", PL_IP_GRE, 0, 17, "\xb0\0\x86\xdd\xff\xff\0\0\0\0\0\7\0\0\0\1\x60", PL_TUNNEL_GRE, true, 7, 0x86dd, 0, 1, PL_LINK_RAW_IP },
	{ "gre of something else", PL_IP_GRE, 0, 4, "\0\0\x88\xcc", PL_TUNNEL_GRE, false, 0, 0x88cc, 0, 0, PL_LINK_UNKNOWN },
	{ "erspan i", PL_IP_GRE, 0, 5, "\0\0\x88\xbe\2", PL_TUNNEL_ERSPAN, false, 0, 0x88be, 0, 1, PL_LINK_ETHERNET },
	{ "erspan i with key", PL_IP_GRE, 0, 9, "\x20\0\x88\xbe\0\0\0\7\2", PL_TUNNEL_ERSPAN, true, 7, 0x88be, 0, 1, PL_LINK_ETHERNET },
	{ "erspan ii", PL_IP_GRE, 0, 18, "\x10\0\x88\xbe\0\0\0\1\x10\5\0\7\0\0\0\1\2\2", PL_TUNNEL_ERSPAN, false, 0, 0x88be, 0, 2, PL_LINK_ETHERNET },
	{ "erspan iii", PL_IP_GRE, 0, 21, "\x10\0\x22\xeb\0\0\0\1\x20\5\0\7\0\0\0\1\0\0\0\0\2", PL_TUNNEL_ERSPAN, false, 0, 0x22eb, 0, 1, PL_LINK_ETHERNET },
	{ "erspan iii without sequence", PL_IP_GRE, 0, 17, "\0\0\x22\xeb\x20\5\0\7\0\0\0\1\0\0\0\0\2", PL_TUNNEL_ERSPAN, false, 0, 0x22eb, 0, 1, PL_LINK_ETHERNET },
	{ "erspan iii, subheader", PL_IP_GRE, 0, 29, "\x10\0\x22\xeb\0\0\0\1\x20\5\0\7\0\0\0\1\0\0\0\1\xc\0\0\0\0\0\0\0\2", PL_TUNNEL_ERSPAN, false, 0, 0x22eb, 0, 1, PL_LINK_ETHERNET },
	{ "erspan iii of ip", PL_IP_GRE, 0, 21, "\x10\0\x22\xeb\0\0\0\1\x20\5\0\7\0\0\0\1\0\0\x8\0\x45", PL_TUNNEL_ERSPAN, false, 0, 0x22eb, 0, 1, PL_LINK_RAW_IP },
	{ "erspan iii of something else", PL_IP_GRE, 0, 21, "\x10\0\x22\xeb\0\0\0\1\x20\5\0\7\0\0\0\1\0\0\x4\0\x45", PL_TUNNEL_ERSPAN, false, 0, 0x22eb, 0, 1, PL_LINK_UNKNOWN },
	{ "gtp-u", PL_IP_UDP, PL_PORT_GTPU, 9, "\x30\xff\0\1\0\0\0\7\x45", PL_TUNNEL_GTPU, false, 0, 0, 0, 1, PL_LINK_RAW_IP },
	{ "gtp-u with sequence", PL_IP_UDP, PL_PORT_GTPU, 13, "\x32\xff\0\5\0\0\0\7\0\1\0\0\x60", PL_TUNNEL_GTPU, false, 0, 0, 0, 1, PL_LINK_RAW_IP },
	{ "gtp-u, next without e", PL_IP_UDP, PL_PORT_GTPU, 13, "\x32\xff\0\5\0\0\0\7\0\1\0\x85\x60", PL_TUNNEL_GTPU, false, 0, 0, 0, 1, PL_LINK_RAW_IP },
	{ "gtp-u, pdu session", PL_IP_UDP, PL_PORT_GTPU, 17, "\x34\xff\0\x9\0\0\0\7\0\0\0\x85\1\0\1\0\x45", PL_TUNNEL_GTPU, false, 0, 0, 0, 1, PL_LINK_RAW_IP },
	{ "gtp-u, two extensions", PL_IP_UDP, PL_PORT_GTPU, 25, "\x34\xff\0\x11\0\0\0\7\0\0\0\x84\1\0\1\x85\2\0\0\0\0\0\0\0\x45", PL_TUNNEL_GTPU, false, 0, 0, 0, 1, PL_LINK_RAW_IP },
	{ "gtp-u, padding behind", PL_IP_UDP, PL_PORT_GTPU, 12, "\x30\xff\0\1\0\0\0\7\x45\0\0\0", PL_TUNNEL_GTPU, false, 0, 0, 0, 1, PL_LINK_RAW_IP },
	{ "gtp-u of something else", PL_IP_UDP, PL_PORT_GTPU, 9, "\x30\xff\0\1\0\0\0\7\2", PL_TUNNEL_GTPU, false, 0, 0, 0, 1, PL_LINK_UNKNOWN },
	{ "gtp-u, empty", PL_IP_UDP, PL_PORT_GTPU, 8, "\x30\xff\0\0\0\0\0\7", PL_TUNNEL_GTPU, false, 0, 0, 0, 0, PL_LINK_UNKNOWN },
	{ "gtp-u, echo", PL_IP_UDP, PL_PORT_GTPU, 12, "\x32\1\0\4\0\0\0\0\0\1\0\0", PL_TUNNEL_NONE, false, 0, 0, 0, 12, PL_LINK_UNKNOWN },
	{ "gtp'", PL_IP_UDP, PL_PORT_GTPU, 9, "\x20\xff\0\1\0\0\0\7\x45", PL_TUNNEL_NONE, false, 0, 0, 0, 9, PL_LINK_UNKNOWN },
	{ "gtp version 2", PL_IP_UDP, PL_PORT_GTPU, 9, "\x50\xff\0\1\0\0\0\7\x45", PL_TUNNEL_NONE, false, 0, 0, 0, 9, PL_LINK_UNKNOWN },
	{ "too short for gtp", PL_IP_UDP, PL_PORT_GTPU, 7, "\x30\xff\0\0\0\0\0", PL_TUNNEL_NONE, false, 0, 0, 0, 7, PL_LINK_UNKNOWN },
	{ "vxlan, old port", PL_IP_UDP, PL_PORT_VXLAN_OLD, 9, "\x08\0\0\0\0\x12\x34\0\2", PL_TUNNEL_VXLAN, true, 0x1234, 3, 0, 1, PL_LINK_ETHERNET },
	{ "pptp", PL_IP_GRE, 0, 8, "\x20\1\x88\x0b\0\0\0\0", PL_TUNNEL_NONE, false, 0, 0, 0, 8, PL_LINK_UNKNOWN },
	{ "vxlan", PL_IP_UDP, PL_PORT_VXLAN, 9, "\x08\0\0\0\0\x12\x34\0\2", PL_TUNNEL_VXLAN, true, 0x1234, 3, 0, 1, PL_LINK_ETHERNET },
	{ "gpe to ipv4", PL_IP_UDP, PL_PORT_VXLAN_GPE, 9, "\x0c\0\0\1\0\0\1\0\x45", PL_TUNNEL_VXLAN_GPE, true, 1, 1, 0, 1, PL_LINK_RAW_IP },
	{ "gpe to int 2", PL_IP_UDP, PL_PORT_VXLAN_GPE, 8, "\x0c\0\0\x82\0\0\1\0", PL_TUNNEL_VXLAN_GPE, true, 1, PL_GPE_INT_20, 0, 0, PL_LINK_UNKNOWN },
	{ "gpe without p is ethernet", PL_IP_UDP, PL_PORT_VXLAN_GPE, 8, "\x08\0\0\x82\0\0\1\0", PL_TUNNEL_VXLAN_GPE, true, 1, 3, 0, 0, PL_LINK_ETHERNET },
	{ "gpe without i has no vni", PL_IP_UDP, PL_PORT_VXLAN_GPE, 8, "\x04\0\0\3\0\0\1\0", PL_TUNNEL_VXLAN_GPE, false, 0, 3, 0, 0, PL_LINK_ETHERNET },
	{ "geneve", PL_IP_UDP, PL_PORT_GENEVE, 9, "\0\0\x65\x58\0\0\5\0\2", PL_TUNNEL_GENEVE, true, 5, 0x6558, 0, 1, PL_LINK_ETHERNET },
	{ "geneve with options", PL_IP_UDP, PL_PORT_GENEVE, 17, "\2\0\x08\0\0\0\5\0\1\3\1\1\0\0\0\0\x45", PL_TUNNEL_GENEVE, true, 5, 0x800, 8, 1, PL_LINK_RAW_IP },
	/* clang-format on */
};

static const struct bad {
	const char *name;
	uint8_t proto;
	uint16_t dport;
	uint8_t flags;
	size_t n;
	const char *bytes;
	enum pl_verdict verdict;
} bads[] = {
	/* clang-format off */
	{ "gre cut", PL_IP_GRE, 0, 0, 3, "\0\0\x08", PL_V_SHORT },
	{ "gre key cut", PL_IP_GRE, 0, 0, 7, "\x20\0\x08\0\1\2\3", PL_V_SHORT },
	{ "gre checksum cut", PL_IP_GRE, 0, 0, 4, "\x80\0\x08\0", PL_V_SHORT },
	{ "gre sequence cut", PL_IP_GRE, 0, 0, 8, "\x30\0\x08\0\1\2\3\4", PL_V_SHORT },
	{ "gre version 2", PL_IP_GRE, 0, 0, 4, "\0\2\x08\0", PL_V_TUNNEL_HEADER },
	{ "gre routing", PL_IP_GRE, 0, 0, 12, "\x40\0\x08\0\0\0\0\0\0\0\0\0", PL_V_TUNNEL_HEADER },
	{ "erspan ii cut", PL_IP_GRE, 0, 0, 15, "\x10\0\x88\xbe\0\0\0\1\x10\5\0\7\0\0\0", PL_V_SHORT },
	{ "erspan ii that says iii", PL_IP_GRE, 0, 0, 16, "\x10\0\x88\xbe\0\0\0\1\x20\5\0\7\0\0\0\1", PL_V_TUNNEL_HEADER },
	{ "erspan iii that says ii", PL_IP_GRE, 0, 0, 20, "\x10\0\x22\xeb\0\0\0\1\x10\5\0\7\0\0\0\1\0\0\0\0", PL_V_TUNNEL_HEADER },
	{ "erspan iii cut", PL_IP_GRE, 0, 0, 19, "\x10\0\x22\xeb\0\0\0\1\x20\5\0\7\0\0\0\1\0\0\0", PL_V_SHORT },
	{ "erspan iii subheader cut", PL_IP_GRE, 0, 0, 27, "\x10\0\x22\xeb\0\0\0\1\x20\5\0\7\0\0\0\1\0\0\0\1\xc\0\0\0\0\0\0", PL_V_SHORT },
	{ "gtp-u past the datagram", PL_IP_UDP, PL_PORT_GTPU, 0, 9, "\x30\xff\0\2\0\0\0\7\x45", PL_V_TUNNEL_HEADER },
	{ "gtp-u below its fields", PL_IP_UDP, PL_PORT_GTPU, 0, 12, "\x32\xff\0\3\0\0\0\7\0\1\0\0", PL_V_TUNNEL_HEADER },
	{ "gtp-u fields cut", PL_IP_UDP, PL_PORT_GTPU, PL_LAYERS_CUT, 11, "\x32\xff\0\x20\0\0\0\7\0\1\0", PL_V_SHORT },
	{ "gtp-u, extension of no length", PL_IP_UDP, PL_PORT_GTPU, 0, 16, "\x34\xff\0\x8\0\0\0\7\0\0\0\x85\0\0\1\0", PL_V_TUNNEL_HEADER },
	{ "gtp-u, extension missing", PL_IP_UDP, PL_PORT_GTPU, 0, 12, "\x34\xff\0\4\0\0\0\7\0\0\0\x85", PL_V_TUNNEL_HEADER },
	{ "gtp-u, extension past the end", PL_IP_UDP, PL_PORT_GTPU, 0, 16, "\x34\xff\0\x8\0\0\0\7\0\0\0\x85\2\0\1\0", PL_V_TUNNEL_HEADER },
	{ "gtp-u, extension cut", PL_IP_UDP, PL_PORT_GTPU, PL_LAYERS_CUT, 15, "\x34\xff\0\x20\0\0\0\7\0\0\0\x85\1\0\1", PL_V_SHORT },
	{ "gtp-u, extensions without end", PL_IP_UDP, PL_PORT_GTPU, 0, 48, "\x34\xff\0\x28\0\0\0\7\0\0\0\x85\1\0\1\x85\1\0\1\x85\1\0\1\x85\1\0\1\x85\1\0\1\x85\1\0\1\x85\1\0\1\x85\1\0\1\x85\1\0\1\0", PL_V_TUNNEL_HEADER },
	{ "vxlan on the old port, without i", PL_IP_UDP, PL_PORT_VXLAN_OLD, 0, 8, "\0\0\0\0\0\0\1\0", PL_V_TUNNEL_HEADER },
	{ "vxlan cut", PL_IP_UDP, PL_PORT_VXLAN, 0, 7, "\x08\0\0\0\0\0\1", PL_V_SHORT },
	{ "vxlan without i", PL_IP_UDP, PL_PORT_VXLAN, 0, 8, "\0\0\0\0\0\0\1\0", PL_V_TUNNEL_HEADER },
	{ "gpe cut", PL_IP_UDP, PL_PORT_VXLAN_GPE, 0, 0, "", PL_V_SHORT },
	{ "gpe version 1", PL_IP_UDP, PL_PORT_VXLAN_GPE, 0, 8, "\x1c\0\0\3\0\0\1\0", PL_V_TUNNEL_HEADER },
	{ "geneve cut", PL_IP_UDP, PL_PORT_GENEVE, 0, 7, "\0\0\x65\x58\0\0\5", PL_V_SHORT },
	{ "geneve version 1", PL_IP_UDP, PL_PORT_GENEVE, 0, 8, "\x40\0\x65\x58\0\0\5\0", PL_V_TUNNEL_HEADER },
	{ "geneve options past the end", PL_IP_UDP, PL_PORT_GENEVE, 0, 11, "\1\0\x65\x58\0\0\5\0\1\3\1", PL_V_TUNNEL_HEADER },
	{ "geneve options cut", PL_IP_UDP, PL_PORT_GENEVE, PL_LAYERS_CUT, 11, "\1\0\x65\x58\0\0\5\0\1\3\1", PL_V_SHORT },
	/* clang-format on */
};

static void test_open(void)
{
	struct pl_tunnel t;

	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		const struct good *g = &goods[i];
		uint8_t *copy = malloc(g->n);
		struct pl_layers l;

		memcpy(copy, g->bytes, g->n);
		l = level(g->proto, g->dport, copy, g->n);
		eq(pl_tunnel_open(&t, &l, PL_VXLAN_PORTS), PL_V_OK, "%s", g->name);
		ok(t.kind == g->kind && t.have_vni == g->have_vni && t.vni == g->vni &&
				t.next == g->next && t.inner_link == g->link,
			"%s: kind %u vni %u next %#x link %u", g->name, t.kind, t.vni, t.next,
			t.inner_link);
		eq(pl_cursor_left(&t.options), g->options, "%s: options", g->name);
		eq(pl_cursor_left(&t.inner), g->inner, "%s: inner", g->name);
		free(copy);
	}
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		const struct bad *g = &bads[i];
		uint8_t *copy = malloc(g->n == 0 ? 1 : g->n);
		struct pl_layers l;

		memcpy(copy, g->bytes, g->n);
		l = level(g->proto, g->dport, copy, g->n);
		l.flags = g->flags;
		streq(pl_verdict_name(pl_tunnel_open(&t, &l, PL_VXLAN_PORTS)),
			pl_verdict_name(g->verdict), "%s", g->name);
		eq(t.kind, PL_TUNNEL_NONE, "%s: not opened", g->name);
		free(copy);
	}
}

/* Every port against both words, and words as options and configurations write them. */
static void test_ports(void)
{
	static const struct {
		const char *texts[4];
		size_t n;
		int error;
		uint16_t others[3]; /* beside 4789 */
	} rows[] = {
		{ { NULL }, 0, 0, { 8472 } },
		{ { "8473" }, 1, 0, { 8473 } },
		{ { "1", "65535", "8472" }, 3, 0, { 1, 65535, 8472 } },
		{ { "4789" }, 1, 0, { 4789 } },
		{ { "0" }, 1, -EINVAL, { 0 } },
		{ { "8472", "65536" }, 2, -EINVAL, { 0 } },
		{ { "x" }, 1, -EINVAL, { 0 } },
		{ { "1", "2", "3", "4" }, 4, -EINVAL, { 0 } },
	};
	unsigned int wrong = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *bad;
		uint64_t word = 0;

		eq(pl_vxlan_ports_parse(&word, rows[i].texts, rows[i].n, &bad), rows[i].error,
			"ports, row %zu", i);
		for (uint32_t port = 0; rows[i].error == 0 && port <= UINT16_MAX; port++) {
			const bool vxlan =
				port == 4789 || (port != 0 && (port == rows[i].others[0] ||
								      port == rows[i].others[1] ||
								      port == rows[i].others[2]));

			wrong += (pl_ports_have(word, port) != 0) != vxlan;
			wrong += (pl_is_tunnel_port(word, port) != 0) !=
				 (vxlan || port == 2152 || port == 4790 || port == 6081);
		}
	}
	eq(wrong, 0, "each port is told from the others");
}

/* The middle of a datagram is no header, whatever it looks like. */
static void test_fragment(void)
{
	struct pl_layers l = level(PL_IP_GRE, 0, "\0\0\x08\0", 4);
	struct pl_tunnel t;

	l.flags = PL_LAYERS_FRAGMENT;
	eq(pl_tunnel_open(&t, &l, PL_VXLAN_PORTS), PL_V_OK);
	eq(t.kind, PL_TUNNEL_NONE);
	l.flags = PL_LAYERS_NO_L4;
	eq(pl_tunnel_open(&t, &l, PL_VXLAN_PORTS), PL_V_OK);
	eq(t.kind, PL_TUNNEL_NONE);
}

/* Every tunnel that can be written is opened again, one inside the other. */
static void test_put(void)
{
	uint8_t memory[512];
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_flow outer = { .proto = PL_IP_UDP, .sport = 1, .dport = PL_PORT_GENEVE };
	struct pl_flow gre = { .proto = PL_IP_GRE };
	struct pl_flow inner = { .proto = PL_IP_TCP, .sport = 2, .dport = 3, .vlan = 4 };
	size_t at[5];
	struct pl_layers l;
	struct pl_tunnel t;
	struct pl_cursor c;
	enum pl_link link = PL_LINK_ETHERNET;
	static const uint32_t vnis[] = { 70, 71, 72, 73 };

	outer.src = gre.src = pl_addr_v4("\12\0\0\1");
	outer.dst = gre.dst = pl_addr_v4("\12\0\0\2");
	inner.src.b[0] = inner.dst.b[0] = 0xfd;
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	at[0] = pl_put_ip(&b, &outer, 64, 0);
	pl_put_geneve(&b, vnis[0], PL_ETH_TEB, 8);
	pl_put(&b, "\1\3\1\1\0\0\0\0", 8);
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	outer.dport = PL_PORT_VXLAN;
	at[1] = pl_put_ip(&b, &outer, 64, 0);
	pl_put_vxlan(&b, vnis[1]);
	pl_put_eth(&b, PL_ETH_IPV4, 9);
	outer.dport = PL_PORT_VXLAN_GPE;
	at[2] = pl_put_ip(&b, &outer, 64, 0);
	pl_put_vxlan_gpe(&b, vnis[2], 1);
	at[3] = pl_put_ip(&b, &gre, 64, 0);
	pl_put_gre(&b, PL_ETH_IPV6, vnis[3]);
	at[4] = pl_put_ip(&b, &inner, 64, 2);
	pl_put(&b, "end", 3);
	for (int i = 4; i >= 0; i--)
		pl_end_ip(&b, at[i]);
	ok(!b.full);
	c = pl_cursor(b.data, b.len);
	for (int i = 0; i < 4; i++) {
		eq(pl_layers_walk(&l, c, link, false), PL_V_OK, "level %d", i);
		eq(pl_tunnel_open(&t, &l, PL_VXLAN_PORTS), PL_V_OK, "tunnel %d", i);
		ok(t.have_vni && t.vni == vnis[i], "vni %d", i);
		link = t.inner_link;
		c = t.inner;
	}
	eq(pl_layers_walk(&l, c, link, false), PL_V_OK, "innermost");
	eq(l.flow.proto, PL_IP_TCP);
	eq(pl_cursor_left(&l.payload), 3);
	memeq(l.payload.pos, "end", 3);
	eq(pl_tunnel_open(&t, &l, PL_VXLAN_PORTS), PL_V_OK);
	eq(t.kind, PL_TUNNEL_NONE);
}

int main(void)
{
	test_open();
	test_ports();
	test_fragment();
	test_put();
	return pl_test_done();
}
