/* SPDX-License-Identifier: BSD-2-Clause */
#include "tap/tap.h"

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "record/flow_hash.h"
#include "wire/layers.h"

static uint8_t frame[2048];
static struct pl_build b;
static struct pl_tap tap;
static struct pl_pkt96 record;

static struct pl_flow flow(const char *src, const char *dst, uint8_t proto)
{
	struct pl_flow f = {
		.sport = 1000, .dport = 443, .proto = proto, .dscp = 10, .have = PL_FLOW_PORTS
	};

	(void)pl_parse_addr(src, &f.src);
	(void)pl_parse_addr(dst, &f.dst);
	return f;
}

static struct pl_flow v4(uint8_t proto)
{
	return flow("10.0.0.1", "10.0.0.2", proto);
}

static struct pl_flow v6(uint8_t proto)
{
	return flow("2001:db8::1", "2001:db8::2", proto);
}

static void begin(uint16_t ethertype, uint16_t vlan)
{
	memset(frame, 0, sizeof(frame));
	b = pl_build(frame, sizeof(frame));
	pl_put_eth(&b, ethertype, vlan);
}

/* One packet of `len` captured bytes; how many records. */
static uint32_t see(uint32_t len, bool out)
{
	static struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = frame,
		.len = len,
		.wire_len = (uint32_t)b.len,
		.ts_ns = 77,
		.link = PL_LINK_ETHERNET,
		.out = out };
	memset(&record, 0xee, sizeof(record));
	return pl_tap_batch(&tap, &batch, &record, 1);
}

/* A packet of a capture of another link type. */
static void batch_of_link(uint8_t link, uint16_t number)
{
	static struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = frame, .len = 60, .wire_len = 60, .link = link, .sport = number
	};
	eq(pl_tap_batch(&tap, &batch, &record, 1), 0, "no record of link type %u", number);
}

static void fresh(void)
{
	memset(&tap, 0, sizeof(tap));
}

static void test_udp(void)
{
	const struct pl_flow f = v4(PL_IP_UDP);
	size_t at;

	fresh();
	tap.point = 5;
	begin(PL_ETH_IPV4, 7);
	at = pl_put_ip(&b, &f, 63, 0);
	pl_put_zero(&b, 100);
	pl_end_ip(&b, at);
	eq(see((uint32_t)b.len, true), 1);
	eq(record.ts_ns, 77);
	memeq(&record.src, &f.src, 16);
	memeq(&record.dst, &f.dst, 16);
	eq(record.sport, 1000);
	eq(record.dport, 443);
	eq(record.proto, 17);
	eq(record.ttl, 63);
	eq(record.tos, 10 << 2);
	eq(record.wire_len, 128);
	eq(record.pay_len, 100);
	eq(record.vlan, 7);
	eq(record.obs, 5 | PL_OBS_OUT);
	eq(record.tcp_flags | record.tcp_seq | record.tcp_ack | record.tcp_win, 0);
	eq(record.flow_hash, pl_flow_hash_packet(&record));
	eq(record.record_seq, 0);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.record_seq, 1);
	eq(record.obs, 5);
	/* Payload that the capture cut off is counted all the same. */
	eq(see(14 + 4 + 28 + 1, false), 1);
	eq(record.wire_len, 128);
	eq(record.pay_len, 100, "of a cut packet");
	eq(record.obs & PL_OBS_TRUNCATED, 0);
	/* Half a UDP header. */
	eq(see(14 + 4 + 20 + 4, false), 1);
	eq(record.obs & PL_OBS_TRUNCATED, PL_OBS_TRUNCATED);
	eq(record.sport, 0);
	eq(see(14 + 4 + 19, false), 0, "half an IP header is no record");
	eq(tap.stats.broken, 1);
	eq(tap.stats.packets, 5);
	eq(tap.stats.records, 4);
}

/* A TCP header of 60 bytes whose options are replaced. */
static void put_tcp(const char *options, size_t n, size_t payload)
{
	const struct pl_flow f = v4(PL_IP_TCP);
	size_t at, tcp;

	begin(PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &f, 64, (unsigned int)((n + 3) / 4));
	tcp = at + 20;
	pl_patch_be32(&b, tcp + 4, 0x01020304);
	pl_patch_be32(&b, tcp + 8, 0x0a0b0c0d);
	pl_patch_u8(&b, tcp + 13, 0x12);
	pl_patch_be16(&b, tcp + 14, 500);
	pl_patch(&b, tcp + 20, options, n);
	pl_put_zero(&b, payload);
	pl_end_ip(&b, at);
}

static void test_tcp(void)
{
	static const char all[] = "\2\4\5\xb4\4\2\x8\xa\0\0\1\0\0\0\2\0\1\3\3\7";

	fresh();
	put_tcp(all, 20, 11);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.tcp_seq, 0x01020304);
	eq(record.tcp_ack, 0x0a0b0c0d);
	eq(record.tcp_flags, 0x12);
	eq(record.tcp_win, 500);
	eq(record.mss, 1460);
	eq(record.tsval, 256);
	eq(record.tsecr, 512);
	eq(record.tcp_opts, 1 << 2 | 1 << 4 | 1 << 8 | 1 << 1 | 1 << 3);
	eq(record.pay_len, 11);
	eq(record.wire_len, 20 + 40 + 11);
	/* Cut within the options: those that are there are read, the lengths stay right. */
	eq(see(14 + 20 + 20 + 4, false), 1);
	eq(record.mss, 1460);
	eq(record.tsval, 0);
	eq(record.pay_len, 11);
	eq(record.obs, PL_OBS_TRUNCATED);
	eq(tap.stats.bad_options, 0);
}

static const struct {
	const char *name, *bytes;
	size_t n;
	uint16_t opts;
	bool bad;
} options[] = {
	{ "none", "", 0, 0, false },
	{ "NOPs", "\1\1\1\1", 4, 1 << 1, false },
	{ "end, then garbage", "\0\2\0\0", 4, 1 << 0, false },
	{ "of kind 14 and 15", "\xe\2\xf\2", 4, 1 << 14 | 1 << 15, false },
	{ "of kind 254", "\xfe\4\1\1", 4, 1 << 15, false },
	{ "length 0", "\2\0\0\0", 4, 1 << 2, true },
	{ "length 1", "\2\1\0\0", 4, 1 << 2, true },
	{ "length past the header", "\2\5\0\0", 4, 1 << 2, true },
	{ "kind without length", "\1\1\1\3", 4, 1 << 1 | 1 << 3, true },
	{ "MSS of 3 bytes", "\2\3\0\0", 4, 1 << 2, true },
	{ "timestamps of 4 bytes", "\x8\4\0\0", 4, 1 << 8, true },
};

static void test_options(void)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		fresh();
		put_tcp(options[i].bytes, options[i].n, 3);
		eq(see((uint32_t)b.len, false), 1, "options: %s", options[i].name);
		eq(record.tcp_opts, options[i].opts, "options: %s", options[i].name);
		eq(tap.stats.bad_options, options[i].bad, "options: %s", options[i].name);
		eq(record.pay_len, 3, "options: %s", options[i].name);
	}
}

/* The options of most segments are read in one piece, as those in another order are one by one. */
static void test_usual_options(void)
{
	static const char *const orders[] = { "\1\1\x8\xa\0\0\1\0\0\0\2\0",
		"\1\x8\xa\0\0\1\0\0\0\2\0\1", "\x8\xa\0\0\1\0\0\0\2\0\1\1" };

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		fresh();
		put_tcp(orders[i], 12, 11);
		eq(see((uint32_t)b.len, false), 1, "order %zu", i);
		eq(record.tcp_opts, 1 << 1 | 1 << 8, "order %zu: options", i);
		eq(record.tsval, 256, "order %zu: tsval", i);
		eq(record.tsecr, 512, "order %zu: tsecr", i);
		eq(record.pay_len, 11, "order %zu: payload", i);
		eq(record.obs, 0, "order %zu: not cut", i);
		/* Cut within them. */
		eq(see(14 + 20 + 20 + 11, false), 1);
		eq(record.pay_len, 11, "order %zu: payload of a cut packet", i);
		eq(record.obs, PL_OBS_TRUNCATED, "order %zu: cut", i);
		eq(tap.stats.bad_options, 0);
	}
}

static void test_fragments(void)
{
	const struct pl_flow f = v4(PL_IP_UDP), g = v6(PL_IP_UDP);
	size_t at;

	fresh();
	begin(PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &f, 64, 0);
	pl_put_zero(&b, 92);
	pl_end_ip(&b, at);
	pl_patch_be16(&b, 14 + 4, 0xabcd);
	pl_patch_be16(&b, 14 + 6, 0x2000);
	pl_patch_be16(&b, at + 20 + 4, 4000); /* the datagram is longer than its first fragment */
	eq(see((uint32_t)b.len, false), 1);
	eq(record.sport, 1000, "a first fragment has ports");
	eq(record.frag_off, 0x8000);
	eq(record.ip_id, 0xabcd);
	eq(record.obs, PL_OBS_FRAGMENT);
	eq(record.pay_len, 92, "what this fragment carries");
	pl_patch_be16(&b, 14 + 6, 0x0040);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.sport, 0, "a later one has not");
	eq(record.frag_off, 0x40);
	eq(record.pay_len, 100);
	/* IPv6: hop-by-hop options, then the fragment header. */
	begin(PL_ETH_IPV6, 0);
	at = pl_put_ip(&b, &g, 64, 0);
	b.len = at + 40;
	pl_patch_u8(&b, at + 6, PL_IP_HOPOPTS);
	pl_put(&b, "\x2c\0\1\4\0\0\0\0", 8);
	pl_put(&b, "\x11\0\0\x51\x11\x22\x33\x44", 8);
	pl_put_zero(&b, 50);
	pl_patch_be16(&b, at + 4, 66);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.proto, PL_IP_UDP);
	eq(record.frag_off, 0x8000 | 10);
	eq(record.ip_id, 0x3344);
	eq(record.obs, PL_OBS_FRAGMENT);
	eq(record.wire_len, 106);
	eq(record.pay_len, 50);
}

static void test_others(void)
{
	const struct pl_flow ping = { .src = v4(1).src,
		.dst = v4(1).dst,
		.proto = PL_IP_ICMP,
		.sport = 8,
		.dport = 0,
		.have = PL_FLOW_PORTS };
	const struct pl_flow gre = v4(PL_IP_GRE);
	size_t at;

	fresh();
	begin(0x0806, 0);
	pl_put_zero(&b, 28);
	eq(see((uint32_t)b.len, false), 0, "ARP");
	eq(tap.stats.not_ip, 1);
	batch_of_link(PL_LINK_UNKNOWN, 9);
	eq(tap.stats.not_ip, 2, "a link type that is not read");
	eq(tap.unread, 1 + 9, "which it was");
	eq(tap.stats.broken, 0);
	begin(PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &ping, 64, 0);
	pl_put_zero(&b, 60);
	pl_end_ip(&b, at);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.sport, 8, "ICMP type");
	begin(PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &gre, 64, 0);
	pl_put_zero(&b, 30);
	pl_end_ip(&b, at);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.sport | record.dport, 0, "GRE has no ports");
	eq(record.pay_len, 30);
	/* MPLS: the outer label. */
	begin(PL_ETH_MPLS, 0);
	pl_put_be32(&b, 0x12345u << 12 | 64);
	pl_put_be32(&b, 0x00077u << 12 | 1 << 8 | 64);
	at = pl_put_ip(&b, &ping, 64, 0);
	pl_end_ip(&b, at);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.label, 0x2345, "low 16 bits of the outer label");
	/* Two tags: the outer one. */
	begin(PL_ETH_QINQ, 0);
	pl_put_be16(&b, 100);
	pl_put_be16(&b, PL_ETH_VLAN);
	pl_put_be16(&b, 200);
	pl_put_be16(&b, PL_ETH_IPV4);
	at = pl_put_ip(&b, &ping, 64, 0);
	pl_end_ip(&b, at);
	eq(see((uint32_t)b.len, false), 1);
	eq(record.vlan, 100, "the outer tag");
}

static void test_tunnel(void)
{
	const struct pl_flow outer = { .src = v4(17).src,
		.dst = v4(17).dst,
		.proto = PL_IP_UDP,
		.sport = 5555,
		.dport = PL_PORT_VXLAN,
		.have = PL_FLOW_PORTS };
	const struct pl_flow inner = v6(PL_IP_TCP);
	size_t at, in;

	begin(PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &outer, 64, 0);
	pl_put_vxlan(&b, 0x54321);
	pl_put_eth(&b, PL_ETH_IPV6, 0);
	in = pl_put_ip(&b, &inner, 33, 0);
	pl_put_zero(&b, 9);
	pl_end_ip(&b, in);
	pl_end_ip(&b, at);
	fresh();
	eq(see((uint32_t)b.len, false), 1);
	eq(record.dport, PL_PORT_VXLAN, "without --inner the outer packet");
	eq(record.obs & PL_OBS_TUNNEL, 0);
	tap.inner = true;
	eq(see((uint32_t)b.len, false), 1);
	memeq(&record.src, &inner.src, 16, "the inner address");
	eq(record.dport, 443);
	eq(record.ttl, 33);
	eq(record.pay_len, 9);
	eq(record.label, 0x4321);
	eq(record.obs, PL_OBS_TUNNEL);
	/* An inner packet that is cut within its headers: the outer one is what is known. */
	eq(see((uint32_t)in + 10, false), 1);
	eq(record.dport, PL_PORT_VXLAN);
}

/* Headers of a tunnel behind the outer IP header, and for UDP behind its header; inner packets begin with
 * Ethernet where `ethernet`. */
static const struct {
	const char *name;
	uint8_t proto;
	uint16_t dport;
	size_t n;
	const char *bytes;
	bool ethernet;
	uint16_t label;
} tunnels[] = {
	{ "IP in IP", PL_IP_IPV6, 0, 0, "", false, 0 },
	{ "GRE", PL_IP_GRE, 0, 4, "\0\0\x86\xdd", false, 0 },
	{ "GRE of Ethernet with a key", PL_IP_GRE, 0, 8, "\x20\0\x65\x58\0\1\2\3", true, 0x203 },
	{ "ERSPAN I", PL_IP_GRE, 0, 4, "\0\0\x88\xbe", true, 0 },
	{ "ERSPAN II", PL_IP_GRE, 0, 16, "\x10\0\x88\xbe\0\0\0\1\x10\5\0\7\0\0\0\1", true, 0 },
	{ "ERSPAN III", PL_IP_GRE, 0, 20, "\x10\0\x22\xeb\0\0\0\1\x20\5\0\7\0\0\0\1\0\0\0\0", true,
		0 },
	{ "VXLAN", PL_IP_UDP, PL_PORT_VXLAN, 8, "\x08\0\0\0\x5\x43\x21\0", true, 0x4321 },
	{ "VXLAN at its old port", PL_IP_UDP, PL_PORT_VXLAN_OLD, 8, "\x08\0\0\0\0\0\7\0", true, 7 },
	{ "VXLAN-GPE of IPv6", PL_IP_UDP, PL_PORT_VXLAN_GPE, 8, "\x0c\0\0\2\0\0\7\0", false, 7 },
	{ "Geneve with an option", PL_IP_UDP, PL_PORT_GENEVE, 16,
		"\2\0\x65\x58\0\0\x5\0\1\3\1\1\0\0\0\0", true, 5 },
	{ "GTP-U", PL_IP_UDP, PL_PORT_GTPU, 8, "\x30\xff\0\x45\0\0\0\7", false, 0 },
};

/* Every kind of tunnel: the outer packet, and with --inner the one within. */
static void test_tunnels(void)
{
	const struct pl_flow inner = v6(PL_IP_TCP);

	for (size_t i = 0; i < sizeof(tunnels) / sizeof(tunnels[0]); i++) {
		struct pl_flow outer = v4(tunnels[i].proto);
		const char *name = tunnels[i].name;
		size_t at, in;

		outer.dport = tunnels[i].dport;
		begin(PL_ETH_IPV4, 0);
		at = pl_put_ip(&b, &outer, 64, 0);
		pl_put(&b, tunnels[i].bytes, tunnels[i].n);
		if (tunnels[i].ethernet)
			pl_put_eth(&b, PL_ETH_IPV6, 0);
		in = pl_put_ip(&b, &inner, 33, 0);
		pl_put_zero(&b, 9);
		pl_end_ip(&b, in);
		pl_end_ip(&b, at);
		fresh();
		eq(see((uint32_t)b.len, false), 1, "%s: a record", name);
		memeq(&record.src, &outer.src, 16, "%s: without --inner of the outer packet", name);
		eq(record.proto, tunnels[i].proto, "%s: its protocol", name);
		eq(record.obs | record.label, 0, "%s: nothing says that there is a tunnel", name);
		tap.inner = true;
		eq(see((uint32_t)b.len, false), 1, "%s: a record", name);
		memeq(&record.src, &inner.src, 16, "%s: with --inner of the inner packet", name);
		memeq(&record.dst, &inner.dst, 16, "%s: its destination", name);
		eq(record.sport, 1000, "%s: its port", name);
		eq(record.dport, 443, "%s: its other port", name);
		eq(record.ttl, 33, "%s: its hop limit", name);
		eq(record.wire_len, 40 + 20 + 9, "%s: its length", name);
		eq(record.pay_len, 9, "%s: its bytes", name);
		eq(record.label, tunnels[i].label, "%s: the network", name);
		eq(record.obs, PL_OBS_TUNNEL, "%s: and that it was in a tunnel", name);
	}
}

/* Whatever bytes come: packets = records + the others, and a record's lengths are within the
 * packet. */
static void test_garbage(void)
{
	struct pl_rng rng;
	uint64_t wrong = 0;

	pl_rng_seed(&rng, 1);
	fresh();
	tap.inner = true;
	put_tcp("\2\4\5\xb4", 4, 200);
	for (int i = 0; i < 200000; i++) {
		uint8_t before[8];
		size_t at[8];

		for (int k = 0; k < 8; k++) {
			at[k] = pl_rng_below(&rng, 90);
			before[k] = frame[at[k]];
			frame[at[k]] = (uint8_t)pl_rng_u64(&rng);
		}
		if (see((uint32_t)pl_rng_below(&rng, b.len + 1), false) == 1)
			wrong += record.pay_len > record.wire_len &&
				 (record.obs & PL_OBS_FRAGMENT) == 0 && record.proto != PL_IP_UDP;
		for (int k = 7; k >= 0; k--)
			frame[at[k]] = before[k];
	}
	eq(tap.stats.packets, 200000);
	eq(tap.stats.packets, tap.stats.records + tap.stats.not_ip + tap.stats.broken);
	eq(wrong, 0, "no payload is longer than its packet");
}

/* Records of a batch are counted each by its packet's clock; the batch's is theirs, or a mixture. */
static void test_clocks(void)
{
	static const struct {
		uint8_t clocks[3];
		enum pl_clock_kind wanted;
		uint64_t nic, kernel;
	} rows[] = {
		{ { PL_STAMP_NIC, PL_STAMP_NIC, PL_STAMP_NIC }, PL_STAMP_NIC, 2, 0 },
		{ { PL_STAMP_NIC, PL_STAMP_KERNEL, PL_STAMP_KERNEL }, PL_STAMP_MIXED, 1, 1 },
		/* The packet in the middle is not IP: it has no record. */
		{ { PL_STAMP_KERNEL, PL_STAMP_NIC, PL_STAMP_KERNEL }, PL_STAMP_KERNEL, 0, 2 },
	};
	static const uint8_t arp[42] = { [12] = 8, [13] = 6 };
	static struct pl_batch batch;
	const struct pl_flow f = v4(PL_IP_UDP);
	struct pl_pkt96 made[3];
	size_t at;

	begin(PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &f, 63, 0);
	pl_put_zero(&b, 100);
	pl_end_ip(&b, at);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fresh();
		batch.n = 3;
		for (int k = 0; k < 3; k++)
			batch.pkts[k] = (struct pl_packet){ .data = k == 1 ? arp : frame,
				.len = k == 1 ? sizeof(arp) : (uint32_t)b.len,
				.wire_len = k == 1 ? sizeof(arp) : (uint32_t)b.len,
				.link = PL_LINK_ETHERNET,
				.clock = rows[i].clocks[k] };
		eq(pl_tap_batch(&tap, &batch, made, 3), 2, "row %zu: two records", i);
		eq(tap.clock, rows[i].wanted, "the clock of all");
		eq(tap.stats.clock_nic, rows[i].nic);
		eq(tap.stats.clock_kernel, rows[i].kernel);
		eq(pl_tap_rule(&tap, made, 2, PL_STAMP_SENDER), 2);
		eq(tap.clock, PL_STAMP_SENDER, "of records of others");
		eq(tap.stats.clock_sender, 2);
	}
	eq(pl_clock_of(0), PL_STAMP_NONE);
	eq(pl_clock_of(1u << PL_STAMP_NIC), PL_STAMP_NIC);
	eq(pl_clock_of(1u << PL_STAMP_NIC | 1u << PL_STAMP_TAI), PL_STAMP_MIXED);
	streq(pl_clock_name(PL_STAMP_TAI), "tai");
	streq(pl_clock_name((enum pl_clock_kind)99), "none");
}

int main(void)
{
	test_udp();
	test_tcp();
	test_options();
	test_usual_options();
	test_fragments();
	test_others();
	test_tunnel();
	test_tunnels();
	test_garbage();
	test_clocks();
	return pl_test_done();
}
