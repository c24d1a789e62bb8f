/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The carriers for witnesses. "carriers walk" reads lines of "LINK HEX" (LINK a number of enum
 * pl_link) and answers each with one line of JSON: the levels, outermost first. "carriers put"
 * writes frames of every kind as "NAME HEX" lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/ioam.h"
#include "wire/layers.h"

static void print_addr(const char *key, const struct pl_addr *a)
{
	printf("\"%s\":\"", key);
	for (int i = 0; i < 16; i++)
		printf("%02x", a->b[i]);
	printf("\",");
}

static void print_level(const struct pl_layers *l, const struct pl_tunnel *t)
{
	printf("{");
	print_addr("src", &l->flow.src);
	print_addr("dst", &l->flow.dst);
	if (l->flow.have & PL_FLOW_PORTS)
		printf("\"sport\":%u,\"dport\":%u,", l->flow.sport, l->flow.dport);
	if (l->flow.have & PL_FLOW_VLAN)
		printf("\"vlan\":%u,", l->flow.vlan);
	if (t->have_vni)
		printf("\"vni\":%" PRIu32 ",", t->vni);
	printf("\"proto\":%u,\"dscp\":%u,\"ttl\":%u,\"flags\":%u,\"payload\":%zu}", l->flow.proto,
		l->flow.dscp, l->ttl, l->flags, pl_cursor_left(&l->payload));
}

static void walk(enum pl_link link, struct pl_cursor c)
{
	enum pl_verdict v;

	printf("{\"levels\":[");
	for (unsigned int level = 0; level < PL_NESTING_MAX; level++) {
		struct pl_layers l;
		struct pl_tunnel t;

		v = pl_layers_walk(&l, c, link, false);
		if (v == PL_V_OK)
			v = pl_tunnel_open(&t, &l, PL_VXLAN_PORTS);
		if (v != PL_V_OK)
			break;
		printf(level > 0 ? "," : "");
		print_level(&l, &t);
		if (t.kind == PL_TUNNEL_NONE || t.inner_link == PL_LINK_UNKNOWN)
			break;
		c = t.inner;
		link = t.inner_link;
	}
	printf("],\"verdict\":\"%s\"}\n", pl_verdict_name(v));
}

static int walk_lines(void)
{
	static char line[140000];
	static uint8_t bytes[65536];
	unsigned int link, v;
	int at;

	while (fgets(line, sizeof(line), stdin) != NULL) {
		size_t n = 0;

		if (sscanf(line, "%u %n", &link, &at) != 1)
			return EXIT_FAILURE;
		while (n < sizeof(bytes) && sscanf(line + at, "%2x", &v) == 1) {
			bytes[n++] = (uint8_t)v;
			at += 2;
		}
		walk((enum pl_link)link, pl_cursor(bytes, n));
	}
	return EXIT_SUCCESS;
}

static void print_frame(const char *name, const struct pl_build *b)
{
	if (b->full)
		abort();
	printf("%s ", name);
	for (size_t i = 0; i < b->len; i++)
		printf("%02x", b->data[i]);
	printf("\n");
}

static struct pl_flow flow_of(uint8_t proto, bool v6, uint16_t dport)
{
	struct pl_flow f = { .proto = proto, .sport = 40001, .dport = dport, .dscp = 46 };

	f.src = pl_addr_v4("\12\0\0\1");
	f.dst = pl_addr_v4("\12\0\0\2");
	if (v6) {
		f.src = pl_addr_v6("\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1");
		f.dst = pl_addr_v6("\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2");
	}
	if (proto == PL_IP_ICMP || proto == PL_IP_ICMPV6) {
		f.sport = v6 ? 128 : 8;
		f.dport = 0;
	}
	return f;
}

static uint8_t memory[2048], area[600];

static void put_plain(const char *name, uint8_t proto, bool v6, uint16_t vlan, unsigned int words)
{
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_flow f = flow_of(proto, v6, 40002);
	size_t at;

	pl_put_eth(&b, v6 ? PL_ETH_IPV6 : PL_ETH_IPV4, vlan);
	at = pl_put_ip(&b, &f, 64, words);
	pl_put(&b, "seven b", 7);
	pl_end_ip(&b, at);
	print_frame(name, &b);
}

static void put_tunnel(const char *name, uint8_t kind, bool v6)
{
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_flow inner = flow_of(PL_IP_UDP, !v6, 40002);
	static const uint16_t ports[] = { [PL_TUNNEL_VXLAN] = PL_PORT_VXLAN,
		[PL_TUNNEL_VXLAN_GPE] = PL_PORT_VXLAN_GPE,
		[PL_TUNNEL_GENEVE] = PL_PORT_GENEVE };
	bool gre = kind == PL_TUNNEL_GRE;
	struct pl_flow outer = flow_of(gre ? PL_IP_GRE : PL_IP_UDP, v6, ports[kind]);
	uint16_t type = v6 ? PL_ETH_IPV4 : PL_ETH_IPV6;
	size_t at[2];

	pl_put_eth(&b, v6 ? PL_ETH_IPV6 : PL_ETH_IPV4, 7);
	at[0] = pl_put_ip(&b, &outer, 64, 0);
	if (gre)
		pl_put_gre(&b, type, 77);
	else if (kind == PL_TUNNEL_VXLAN)
		pl_put_vxlan(&b, 78);
	else if (kind == PL_TUNNEL_VXLAN_GPE)
		pl_put_vxlan_gpe(&b, 79, v6 ? 1 : 2);
	else
		pl_put_geneve(&b, 80, type, 8);
	if (kind == PL_TUNNEL_GENEVE)
		pl_put(&b, "\1\3\1\1\0\0\0\0", 8);
	if (kind == PL_TUNNEL_VXLAN)
		pl_put_eth(&b, type, 0);
	at[1] = pl_put_ip(&b, &inner, 64, 0);
	pl_put(&b, "x", 1);
	pl_end_ip(&b, at[1]);
	pl_end_ip(&b, at[0]);
	print_frame(name, &b);
}

static void put_ioam(const char *name, const struct pl_build *options, bool destination)
{
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_flow f = flow_of(PL_IP_UDP, true, 40002);
	struct pl_ip6_options ext = { 0 };
	size_t at;

	if (destination) {
		ext.dst = options->data;
		ext.dst_len = options->len;
	} else {
		ext.hop = options->data;
		ext.hop_len = options->len;
	}
	pl_put_eth(&b, PL_ETH_IPV6, 0);
	at = pl_put_ip_options(&b, &f, 64, 0, &ext);
	pl_put(&b, "ioam", 4);
	pl_end_ip(&b, at);
	print_frame(name, &b);
}

static void put_ioams(void)
{
	static const uint8_t snapshot[8] = "snapshot";
	struct pl_ioam_node node[2] = {
		{ .have = 0xffff,
			.hop_limit = 63,
			.node = 0xa1,
			.ingress = 1,
			.egress = 2,
			.seconds = 1700000000,
			.fraction = 250000,
			.delay_ns = 900,
			.ns_data = 0xc1,
			.queue = 5,
			.checksum = 6,
			.ingress_wide = 11,
			.egress_wide = 12,
			.buffer = 7,
			.schema = 777,
			.node_wide = 0xb1,
			.ns_data_wide = 0xd1,
			.snapshot = pl_cursor(snapshot, 8) },
	};
	struct pl_ioam_trace head = { .type = 0xfff002, .ns = 123, .remaining = 3 };
	struct pl_ioam_dex dex = { 0x800000, 123, 0, 0, true, true, 21, 7, 0 };
	struct pl_ioam_e2e e2e = { 123, 0, true, true, true, 42, 1700000000, 250000, 0 };
	struct pl_ioam_pot pot = { 123, 0, 0, true, 1, 2, 0 };
	struct pl_build o;
	int r;

	node[1] = node[0];
	node[1].node = 0xa2;
	node[1].hop_limit = 62;
	node[1].have &= ~(uint32_t)PL_IOAM_HAS_SCHEMA;
	node[1].snapshot.end = node[1].snapshot.pos;
	o = pl_build(area, sizeof(area));
	r = pl_ioam_put_trace(&o, &head, PL_IP6_OPT_IOAM_MUTABLE, node, 2);
	put_ioam("ioam-trace", &o, false);
	/* No budget: tshark 4.0 takes it for free words in the packet. */
	head.incremental = true;
	head.remaining = 0;
	o = pl_build(area, sizeof(area));
	r |= pl_ioam_put_trace(&o, &head, PL_IP6_OPT_IOAM_MUTABLE, node, 2);
	put_ioam("ioam-incremental", &o, false);
	o = pl_build(area, sizeof(area));
	r |= pl_ioam_put_dex(&o, &dex, PL_IP6_OPT_IOAM_MUTABLE);
	put_ioam("ioam-dex", &o, false);
	o = pl_build(area, sizeof(area));
	r |= pl_ioam_put_e2e(&o, &e2e, PL_IP6_OPT_IOAM, false);
	put_ioam("ioam-e2e", &o, true);
	o = pl_build(area, sizeof(area));
	r |= pl_ioam_put_pot(&o, &pot, PL_IP6_OPT_IOAM_MUTABLE);
	put_ioam("ioam-pot", &o, false);
	if (r != 0)
		abort();
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "walk") == 0)
		return walk_lines();
	if (argc != 2 || strcmp(argv[1], "put") != 0)
		return 64;
	put_plain("udp", PL_IP_UDP, false, 0, 0);
	put_plain("udp6", PL_IP_UDP, true, 0, 0);
	put_plain("tcp-vlan", PL_IP_TCP, false, 100, 3);
	put_plain("tcp6-vlan", PL_IP_TCP, true, 100, 10);
	put_plain("icmp", PL_IP_ICMP, false, 0, 0);
	put_plain("icmpv6", PL_IP_ICMPV6, true, 0, 0);
	for (int v6 = 0; v6 < 2; v6++) {
		put_tunnel("gre", PL_TUNNEL_GRE, v6 != 0);
		put_tunnel("vxlan", PL_TUNNEL_VXLAN, v6 != 0);
		put_tunnel("gpe", PL_TUNNEL_VXLAN_GPE, v6 != 0);
		put_tunnel("geneve", PL_TUNNEL_GENEVE, v6 != 0);
	}
	put_ioams();
	return EXIT_SUCCESS;
}
