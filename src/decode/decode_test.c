/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole packets in, records and verdicts out. The INT and report bytes are the vectors written out
 * from the specifications; carriers are put around them here. */
#include "base/num.h"
#include "base/test.h"
#include "decode/decode.h"
#include "decode/internal.h"
#include "decode/test_flow.h"
#include "wire/layers.h"
#include "wire/report.h"

#define V05_TWO "01000800 00021002 90000000 00000002 00000140 00000001 0000000a 11138800"
#define V10_TWO "01000900 10000306 d0000000 00000002 00050006 0100012c 00000001 00030004 00000011"
#define V21_TWO                                                                                    \
	"101100b8 20000706 dc000000 00000000"                                                      \
	"00000002 00050006 0100012c 17979cfe362a03e8 17979cfe362a09c4"                             \
	"00000001 00030004 00000011 17979cfe362a0000 17979cfe362a0190"

static struct pl_record_batch out;
static struct pl_path got; /* the last path of the last packet */
static struct pl_hop hops[256];
static unsigned int paths; /* it gave */
static uint64_t notes;

static uint8_t frame[4096];
static struct pl_build b;

static void put_hex(const char *hex)
{
	uint8_t bytes[sizeof(frame)];

	pl_put(&b, bytes, pl_test_hex(bytes, sizeof(bytes), hex));
}

/* One packet through a fresh or given decoder; keeps the last path in `got`. */
static enum pl_verdict feed(struct pl_decode *d, enum pl_link link, struct pl_decode_options *opt)
{
	struct pl_decode *own = NULL;
	static struct pl_batch batch;
	uint8_t *exact = malloc(b.len + 1);
	enum pl_verdict v;

	if (d == NULL) {
		struct pl_decode_options none = { 0 };

		ok(pl_decode_new(&own, opt != NULL ? opt : &none) == 0);
		d = own;
	}
	memcpy(exact, frame, b.len);
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = exact,
		.len = (uint32_t)b.len,
		.wire_len = (uint32_t)b.len,
		.ts_ns = 1700000000000000000u,
		.link = (uint8_t)link,
		.sport = 40000,
		.dport = 32766,
		.src = addr("192.0.2.1") };
	pl_record_batch_clear(&out);
	pl_decode_batch(d, &batch, &out);
	v = pl_decode_outcomes(d)[0].verdict;
	notes = pl_decode_outcomes(d)[0].notes;
	paths = out.n_paths;
	memset(&got, 0, sizeof(got));
	if (paths > 0) {
		got = out.paths[paths - 1];
		memcpy(hops, &out.hops[out.first_hop[paths - 1]], got.hop_count * sizeof(hops[0]));
	}
	eq(pl_counter_read(&pl_decode_counters(d)->verdicts[v]) > 0, true);
	pl_decode_free(own);
	free(exact);
	return v;
}

static void begin(void)
{
	b = pl_build(frame, sizeof(frame));
}

/* A report datagram's payload: head, then an inner Ethernet frame of `flow` with the INT bytes. */
static void put_report(struct pl_report_head h, const struct pl_int_hop *hop,
	const struct pl_flow *flow, const char *int_hex)
{
	size_t at, ip;

	pl_report_put_group(&b, &h);
	at = pl_report_put(&b, &h, hop);
	if (h.inner_link == PL_LINK_ETHERNET)
		pl_put_eth(&b, pl_addr_is_v4(&flow->src) ? PL_ETH_IPV4 : PL_ETH_IPV6, flow->vlan);
	if (h.inner_link != PL_LINK_UNKNOWN) {
		ip = pl_put_ip(&b, flow, 62, 0);
		put_hex(int_hex);
		pl_end_ip(&b, ip);
	}
	pl_report_end(&b, &h, at);
}

static void stacks(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	struct pl_report_head h = { .version = PL_REPORT_V10,
		.hw_id = 5,
		.seq = 42,
		.node = 9,
		.ingress_ts = 77,
		.tracked = true,
		.inner_link = PL_LINK_ETHERNET };

	begin();
	put_report(h, NULL, &flow, V10_TWO);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "v1.0 in a v1.0 report");
	eq(paths, 1);
	eq(got.mode, PL_MODE_MD);
	eq(got.report_version, PL_REPORT_V10);
	eq(got.int_version, PL_INT_V10);
	eq(got.node, 9);
	eq(got.seq, 42);
	eq(got.hw_id, 5);
	eq(got.flags, PL_FLAG_TRACKED);
	eq(got.hop_count, 2, "the header has no metadata of its own, so it is no hop");
	eq(hops[0].node, 1, "source first");
	eq(hops[0].ingress_port, 3);
	eq(hops[0].egress_port, 4);
	eq(hops[0].queue, 0);
	eq(hops[0].queue_depth, 17);
	eq(hops[1].node, 2);
	eq(hops[1].queue, 1);
	eq(hops[1].queue_depth, 300);
	ok((hops[0].present & PL_HOP_HAS_ingress_ts_ns) == 0, "absent is absent");
	eq(got.dscp, 0, "DSCP restored from the shim");
	eq(got.dport, 5001);
	ok((got.present & PL_PATH_HAS_path_id) != 0 && hops[1].path_id == got.path_id);

	flow.vlan = 7;
	begin();
	put_report(h, NULL, &flow, V05_TWO);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "v0.5 behind a VLAN tag");
	eq(got.int_version, PL_INT_V05);
	eq(got.dport, 5000, "port restored from the tail");
	eq(got.vlan, 7);
	eq(hops[0].queue_depth, 10);
	eq(hops[1].queue_depth, 0x140);

	h.version = PL_REPORT_V20;
	begin();
	put_report(h, NULL, &flow, V21_TWO);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "v2.1 in a v2.0 report");
	eq(got.dscp, 46);
	eq(got.hop_count, 2);
	eq(hops[0].hop_latency_ns, 400);
	eq(hops[1].hop_latency_ns, 1500);
	eq(hops[1].link_latency_ns, 600);
	eq(hops[1].clock, PL_CLOCK_OK);
	ok((hops[0].present & PL_HOP_HAS_link_latency_ns) == 0);
	eq(hops[0].egress_ts_ns, UINT64_C(0x17979cfe362a0190));
	eq(got.latency_ns, 1900);

	flow = udp("fd00::1", "fd00::2", 5000, 5001, 0x17);
	begin();
	put_report(h, NULL, &flow, V21_TWO);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "IPv6 inside");
	ok(pl_addr_equal(&got.src, &flow.src) && got.hop_count == 2);

	h.tracked = false;
	begin();
	put_report(h, NULL, &flow, V21_TWO);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "F = 0 promises that no INT is inside");
	eq(got.mode, PL_MODE_XD);
	eq(got.dscp, 0x17);
}

static void reporter(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0);
	struct pl_report_head h = { .version = PL_REPORT_V20,
		.node = 9,
		.tracked = true,
		.md_bits = 0x5000,
		.inner_link = PL_LINK_ETHERNET };
	struct pl_int_hop hop = { .have = PL_INT_HAS(PL_INT_F_PORTS) | PL_INT_HAS(PL_INT_F_QUEUE),
		.ingress_port = 20,
		.egress_port = 21,
		.queue = 6,
		.queue_depth = 600 };

	begin();
	put_report(h, &hop, &flow, V21_TWO);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "the reporting node is the last hop");
	eq(got.hop_count, 3);
	eq(hops[2].node, 9);
	eq(hops[2].queue_depth, 600);
	eq(hops[2].index, 2);

	h.node = 2;
	begin();
	put_report(h, &hop, &flow, V21_TWO);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "never listed twice");
	eq(got.hop_count, 2);
	eq(hops[1].queue_depth, 600, "the header wins");
	eq(hops[1].hop_latency_ns, 1500, "what only the stack has stays");
	ok((notes & PL_NOTE_BIT(NODE_TWICE)) != 0);

	/* Header only: INT-XD. */
	begin();
	h.inner_link = PL_LINK_UNKNOWN;
	put_report(h, &hop, &flow, "");
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "a postcard");
	eq(got.mode, PL_MODE_XD);
	eq(got.hop_count, 1);
	ok((got.present & PL_PATH_HAS_src) == 0, "without a packet there is no flow");

	begin();
	put_hex("2140002a 00000007"
		"04050020 4500001c 00010000 40110000 0a000001 0a000002"
		"10040260 50000000 00000000 0009000a 03001000");
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "two reports in one datagram");
	eq(paths, 2);
	eq(out.paths[0].proto, 17);
	ok((out.paths[0].present & PL_PATH_HAS_sport) == 0, "cut before its ports");
	eq(got.flags, PL_FLAG_CONGESTED | PL_FLAG_TRACKED);

	begin();
	put_hex("01a00005 0000002a 075bcd15 00000007 0009000a 03500000");
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "a v0.5 drop report");
	eq(got.drop_reason, 80);
	eq(got.hop_count, 1);
	eq(hops[0].queue, 3);
	ok((hops[0].present & PL_HOP_HAS_queue_depth) == 0, "it tells the queue, not its depth");
}

/* A public BMv2 exporter: version 1 on a v2.0 group, lengths 0, Ethernet announced as IPv4, the
 * node's metadata inside the MX header. */
static void liar(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	size_t ip;

	begin();
	put_hex("1140002a 00000007 14000030 0000000000000000");
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &flow, 62, 0);
	put_hex("300e0000 20000000 ff000000 00000000 00000007 00010002 000005dc 03000020"
		"17979cfe362a0000 17979cfe362a05dc 0000000b0000000c 00000041");
	pl_end_ip(&b, ip);
	eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK);
	eq(got.mode, PL_MODE_MX);
	eq(got.report_version, PL_REPORT_V20);
	eq(got.hop_count, 1);
	eq(hops[0].node, 7);
	eq(hops[0].hop_latency_ns, 1500);
	eq(hops[0].ingress_port2, 11);
	eq(hops[0].tx_util, 0x41);
	ok((got.flags & PL_FLAG_INTERMEDIATE) != 0);
	ok((notes & PL_NOTE_BIT(REPORT_VERSION_LIES)) != 0 &&
		(notes & PL_NOTE_BIT(REPORT_LENGTH_ZERO)) != 0 &&
		(notes & PL_NOTE_BIT(INNER_TYPE_LIES)) != 0);
}

/* 32-bit clocks wrap; clocks differ. */
static void times(void)
{
	static const struct {
		const char *what;
		uint32_t in0, eg0, in1, eg1;
		int64_t hop0, link; /* -1 = absent */
		enum pl_clock_quality clock;
	} rows[] = {
		{ "plain", 1000, 1400, 2000, 2100, 400, 600, PL_CLOCK_OK },
		{ "wrap within the hop", 0xffffff00, 0x100, 0x200, 0x300, 512, 256, PL_CLOCK_OK },
		{ "wrap on the link", 0xfffffe00, 0xffffff00, 0x100, 0x200, 256, 512, PL_CLOCK_OK },
		{ "second clock behind", 1000, 1400, 1300, 1350, 400, -1, PL_CLOCK_SKEWED },
		{ "link above two seconds", 0, 100, 0x7f000000, 0x7f000100, 100, -1, PL_CLOCK_OK },
		{ "egress before ingress", 2000, 1000, 3000, 3100, -1, 2000, PL_CLOCK_OK },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
		struct pl_report_head h = {
			.version = PL_REPORT_V10, .tracked = true, .inner_link = PL_LINK_ETHERNET
		};
		char hex[128];

		snprintf(hex, sizeof(hex),
			"01000900 10000306 8c000000 00000002 %08x %08x 00000001 %08x %08x",
			rows[i].in1, rows[i].eg1, rows[i].in0, rows[i].eg0);
		begin();
		put_report(h, NULL, &flow, hex);
		eq(feed(NULL, PL_LINK_UDP, NULL), PL_V_OK, "%s", rows[i].what);
		eq(got.hop_count, 2);
		if (rows[i].hop0 < 0)
			ok((hops[0].present & PL_HOP_HAS_hop_latency_ns) == 0, "%s: no latency",
				rows[i].what);
		else
			eq(hops[0].hop_latency_ns, rows[i].hop0, "%s: hop", rows[i].what);
		if (rows[i].link < 0)
			ok((hops[1].present & PL_HOP_HAS_link_latency_ns) == 0 &&
					hops[1].link_latency_ns == 0,
				"%s: no link latency", rows[i].what);
		else
			eq(hops[1].link_latency_ns, rows[i].link, "%s: link", rows[i].what);
		if (i != 4)
			eq(hops[1].clock, rows[i].clock, "%s: clock", rows[i].what);
		else
			eq(hops[1].clock, PL_CLOCK_IMPLAUSIBLE, "%s: clock", rows[i].what);
		eq(hops[0].time_bits, 32);
	}
}

/* The inner packet of a tunnel over Ethernet, and the end of the outer one. */
static void put_inner(const struct pl_flow *inner, size_t outer_ip)
{
	size_t ip;

	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, inner, 64, 0);
	pl_put_zero(&b, 20);
	pl_end_ip(&b, ip);
	pl_end_ip(&b, outer_ip);
}

/* A packet with shims of v2.1 chained in VXLAN-GPE; hop i of each has node first + i. */
static void put_chain(const uint16_t *bitmaps, unsigned int n, unsigned int hop_count)
{
	struct pl_flow outer = udp("172.16.0.1", "172.16.0.2", 6000, PL_PORT_VXLAN_GPE, 0);
	struct pl_flow inner = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0);
	struct pl_int_hop hop[2] = { { .have = 0x1ff, .node = 1 }, { .have = 0x1ff, .node = 2 } };
	size_t ip;

	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &outer, 64, 0);
	pl_put_vxlan_gpe(&b, 77, PL_GPE_INT_20);
	for (unsigned int i = 0; i < n; i++)
		eq(pl_int_put(&b,
			   &(struct pl_int_header){ .version = PL_INT_V20,
				   .carrier = PL_INT_OVER_GPE,
				   .bitmap = bitmaps[i],
				   .next = i + 1 < n ? PL_GPE_INT_20 : 3 },
			   hop, hop_count),
			0);
	put_inner(&inner, ip);
}

/* The second of two chained shims has a layout that takes the first one's place in the cache. */
static void chained(void)
{
	static const uint16_t neighbour[] = { 0x8380 }, two[] = { 0x8000, 0xd680 };
	struct pl_decode_options none = { 0 };
	struct pl_decode *d;

	ok(pl_decode_new(&d, &none) == 0);
	put_chain(neighbour, 1, 1);
	eq(feed(d, PL_LINK_ETHERNET, NULL), PL_V_OK, "the other place of the pair is taken");
	put_chain(two, 2, 2);
	eq(feed(d, PL_LINK_ETHERNET, NULL), PL_V_OK, "two shims");
	ok(got.hop_count == 2 && hops[0].node == 1 && hops[1].node == 2,
		"the outermost gives the path");
	eq(hops[0].present & (PL_HOP_HAS_egress_port | PL_HOP_HAS_tx_util), 0, "by its own layout");
	pl_decode_free(d);
}

/* INT in packets on the wire, and where it may stand. */
static void carriers(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17), inner = flow, outer;
	struct pl_decode_options opt = { .gre_int_ethertype = 0x88b5 };
	struct pl_int_hop hop[2] = {
		{ .have = 0xff, .node = 1, .ingress_port = 3, .egress_port = 4 },
		{ .have = 0xff, .node = 2, .ingress_port = 5, .egress_port = 6 },
	};
	size_t ip, in_ip;

	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &flow, 64, 0);
	put_hex(V21_TWO);
	pl_end_ip(&b, ip);
	eq(feed(NULL, PL_LINK_ETHERNET, NULL), PL_V_OK, "UDP with the customary DSCP");
	ok(got.hop_count == 2 && (got.present & PL_PATH_HAS_exporter) == 0);

	flow.dscp = 0;
	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &flow, 64, 0);
	put_hex(V21_TWO);
	pl_end_ip(&b, ip);
	eq(feed(NULL, PL_LINK_ETHERNET, NULL), PL_V_NOT_TELEMETRY, "nothing announces it");

	{
		struct pl_profile p = { .marker_set = true, .marker = 0x1122334455667788 };
		struct pl_decode_options marked = { .profiles = &p, .n_profiles = 1 };

		begin();
		pl_put_eth(&b, PL_ETH_IPV4, 0);
		ip = pl_put_ip(&b, &flow, 64, 0);
		put_hex("1122334455667788" V10_TWO);
		pl_end_ip(&b, ip);
		eq(feed(NULL, PL_LINK_ETHERNET, &marked), PL_V_OK, "a probe marker");
		eq(got.hop_count, 2);
	}

	for (int before = 0; before < 2; before++) {
		struct pl_flow tcp = flow;

		tcp.proto = PL_IP_TCP;
		tcp.dscp = 0x17;
		begin();
		pl_put_eth(&b, PL_ETH_IPV4, 0);
		ip = pl_put_ip(&b, &tcp, 64, before ? 0 : 3);
		if (before) {
			/* Options announced, INT put in front of them. */
			put_hex(V10_TWO "010101010101010101010101");
			pl_patch_u8(&b, ip + 20 + 12, 8 << 4);
		} else {
			put_hex(V10_TWO);
		}
		pl_end_ip(&b, ip);
		eq(feed(NULL, PL_LINK_ETHERNET, NULL), PL_V_OK, "TCP, INT %s the options",
			before ? "before" : "after");
		eq(got.hop_count, 2);
	}

	outer = udp("172.16.0.1", "172.16.0.2", 6000, PL_PORT_VXLAN_GPE, 0);
	inner.dscp = 3;
	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &outer, 64, 0);
	pl_put_vxlan_gpe(&b, 77, PL_GPE_INT_20);
	eq(pl_int_put(&b,
		   &(struct pl_int_header){ .version = PL_INT_V20,
			   .carrier = PL_INT_OVER_GPE,
			   .bitmap = 0xc000,
			   .next = 3 },
		   hop, 2),
		0);
	put_inner(&inner, ip);
	eq(feed(NULL, PL_LINK_ETHERNET, NULL), PL_V_OK, "VXLAN-GPE");
	ok(got.hop_count == 2 && got.vni == 77 && pl_addr_equal(&got.src, &inner.src) &&
		got.dscp == 3);

	outer.dport = PL_PORT_GENEVE;
	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &outer, 64, 0);
	pl_put_geneve(&b, 78, PL_ETH_TEB, 4 + 4 * (3 + 4));
	eq(pl_int_put(&b,
		   &(struct pl_int_header){
			   .version = PL_INT_V20, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0xc000 },
		   hop, 2),
		0);
	put_inner(&inner, ip);
	eq(feed(NULL, PL_LINK_ETHERNET, NULL), PL_V_OK, "Geneve");
	ok(got.hop_count == 2 && got.vni == 78 && pl_addr_equal(&got.src, &inner.src));

	outer.proto = PL_IP_GRE;
	outer.have = 0;
	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &outer, 64, 0);
	pl_put_gre(&b, 0x88b5, 0);
	eq(pl_int_put(&b,
		   &(struct pl_int_header){ .version = PL_INT_V20,
			   .carrier = PL_INT_OVER_GRE,
			   .bitmap = 0xc000,
			   .next = PL_ETH_IPV4,
			   .gre_added = true },
		   hop, 2),
		0);
	in_ip = pl_put_ip(&b, &inner, 64, 0);
	pl_put_zero(&b, 20);
	pl_end_ip(&b, in_ip);
	pl_end_ip(&b, ip);
	eq(feed(NULL, PL_LINK_ETHERNET, &opt), PL_V_OK, "GRE with a configured protocol type");
	ok(got.hop_count == 2 && pl_addr_equal(&got.src, &inner.src));
}

static void frames(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	struct pl_flow outer = udp("192.0.2.7", "192.0.2.9", 40000, 32766, 0x17);
	struct pl_report_head h = { .version = PL_REPORT_V10,
		.tracked = true,
		.seq = 3,
		.node = 9,
		.inner_link = PL_LINK_ETHERNET };
	size_t ip;

	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &outer, 64, 0);
	put_report(h, NULL, &flow, V10_TWO);
	pl_end_ip(&b, ip);
	eq(feed(NULL, PL_LINK_ETHERNET, NULL), PL_V_OK,
		"a report whose own DSCP says INT, without INT");
	ok(pl_addr_equal(&got.exporter, &outer.src) && got.exporter_port == 40000 &&
		got.hop_count == 2 && (got.flags & PL_FLAG_INSTRUMENTED) == 0);

	begin();
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &outer, 64, 0);
	put_hex("101100b8 20000706 dc000000 00000000"
		"00000008 00050006 0100012c 17979cfe362a03e8 17979cfe362a09c4"
		"00000007 00030004 00000011 17979cfe362a0000 17979cfe362a0190");
	put_report(h, NULL, &flow, V10_TWO);
	pl_end_ip(&b, ip);
	eq(feed(NULL, PL_LINK_ETHERNET, NULL), PL_V_OK, "a report that was itself instrumented");
	ok(got.hop_count == 2 && hops[0].node == 1 && (got.flags & PL_FLAG_INSTRUMENTED) != 0);
	ok((notes & PL_NOTE_BIT(INSTRUMENTED)) != 0);
}

/* What makes a report with a broken stack: the verdict, and no path from it. */
static void hostile(void)
{
	static const struct {
		const char *what, *hex;
		enum pl_verdict want;
		unsigned int paths;
	} rows[] = {
		{ "shim length below its minimum", "01000200 10000306 d0000000",
			PL_V_SHIM_LENGTH_MIN, 0 },
		{ "shim length past the packet", "010009 00 10000306 d0000000 00000002 00050006",
			PL_V_SHIM_LENGTH_MAX, 0 },
		{ "not whole hops",
			"01000800 10000306 d0000000 00000002 00050006 0100012c 00000001 00030004",
			PL_V_INT_STACK_WORDS, 0 },
		{ "hop length 0", "01000300 10000006 d0000000", PL_V_INT_HOP_ML, 0 },
		{ "instruction count lies", "01000600 00031001 90000000 00000002 00000140 11138800",
			PL_V_INT_INS_COUNT, 0 },
		{ "hop count lies", "01000600 00021002 90000000 00000002 00000140 11138800",
			PL_V_INT_HOP_COUNT, 0 },
		{ "a version not known", "10030000 30000706 dc000000 00000000", PL_V_OK, 1 },
		{ "no INT at all", "47455420 2f20", PL_V_OK, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
		struct pl_report_head h = {
			.version = PL_REPORT_V10, .tracked = true, .inner_link = PL_LINK_ETHERNET
		};
		enum pl_verdict v;

		begin();
		put_report(h, NULL, &flow, rows[i].hex);
		v = feed(NULL, PL_LINK_UDP, NULL);
		ok(v == rows[i].want, "%s: %s", rows[i].what, pl_verdict_name(v));
		eq(paths, rows[i].paths, "%s: paths", rows[i].what);
	}
	{
		struct pl_profile p = { .dscp_set = true, .dscp_value = 0x17, .dscp_mask = 0x3f };
		struct pl_decode_options opt = { .profiles = &p, .n_profiles = 1 };
		struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
		struct pl_report_head h = {
			.version = PL_REPORT_V10, .tracked = true, .inner_link = PL_LINK_ETHERNET
		};

		begin();
		put_report(h, NULL, &flow, "10030000 30000706 dc000000 00000000");
		eq(feed(NULL, PL_LINK_UDP, &opt), PL_V_INT_VERSION,
			"announced, so a version not known is told");
		begin();
		put_report(h, NULL, &flow, "47455420 2f20");
		eq(feed(NULL, PL_LINK_UDP, &opt), PL_V_SHIM_TYPE, "announced, but no shim");
	}
}

/* A report whose inner packet the switch cut inside the stack: whole hops stay, at every length. */
static void cut(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	struct pl_report_head h = {
		.version = PL_REPORT_V10, .tracked = true, .inner_link = PL_LINK_ETHERNET
	};
	size_t whole, head = 16 + 14 + 20 + 8;
	struct pl_decode *d;

	ok(pl_decode_new(&d, &(struct pl_decode_options){ 0 }) == 0);
	begin();
	put_report(h, NULL, &flow, V10_TWO);
	whole = b.len;
	for (size_t n = 0; n < whole; n++) {
		enum pl_verdict v;

		b.len = n;
		v = feed(d, PL_LINK_UDP, NULL);
		if (n >= head + 12 + 12)
			ok(v == PL_V_INT_TRUNCATED && got.hop_count == 1 && hops[0].node == 2 &&
					(got.flags & PL_FLAG_PARTIAL) != 0 &&
					(got.present & PL_PATH_HAS_path_id) == 0,
				"cut to %zu: %s, one hop", n, pl_verdict_name(v));
		else if (n < 16)
			eq(v, PL_V_REPORT_SHORT, "cut to %zu", n);
		else
			ok(got.hop_count <= 1, "cut to %zu: %s", n, pl_verdict_name(v));
	}
	{
		const struct pl_decode_counters *c = pl_decode_counters(d);
		uint64_t sum = 0;

		for (unsigned int i = 0; i < PL_V_MAX; i++)
			sum += pl_counter_read(&c->verdicts[i]);
		eq(sum, pl_counter_read(&c->packets), "packets = sum of verdicts");
	}
	pl_decode_free(d);
}

static void exporters(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	struct pl_report_head h = {
		.version = PL_REPORT_V10, .tracked = true, .node = 4, .inner_link = PL_LINK_ETHERNET
	};
	static const uint32_t seqs[] = { 10, 11, 13, 12, 12, 20 };
	struct pl_exporter e;
	uint32_t pos = 0;
	struct pl_path_info p;
	struct pl_decode *d;

	ok(pl_decode_new(&d, &(struct pl_decode_options){ .max_exporters = 1, .max_paths = 1 }) ==
		0);
	for (size_t i = 0; i < 6; i++) {
		h.seq = seqs[i];
		begin();
		put_report(h, NULL, &flow, V10_TWO);
		feed(d, PL_LINK_UDP, NULL);
	}
	ok(pl_decode_exporter(d, &pos, &e));
	ok(e.reports == 6 && e.lost == 6 && e.reordered == 1 && e.duplicates == 1 && e.node == 4);
	eq(pl_counter_read(&pl_decode_counters(d)->lost), 6);
	ok(pl_decode_path(d, 0, &p) && p.reports == 6 && p.hop_count == 2 && p.steps[1].node == 2);
	ok(pl_decode_path_find(d, got.path_id, &p) && !pl_decode_path(d, 1, &p));

	h.node = 5;
	begin();
	put_report(h, NULL, &flow, V05_TWO);
	eq(feed(d, PL_LINK_UDP, NULL), PL_V_OK, "a table that is full loses no report");
	eq(pl_counter_read(&pl_decode_counters(d)->exporters_full), 1);
	eq(pl_counter_read(&pl_decode_counters(d)->paths_displaced), 1);
	ok(!pl_decode_exporter(d, &pos, &e));
	pl_decode_free(d);
}

/* Packets that were counted elsewhere give the same records, and count nothing. */
static void copies(void)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	struct pl_report_head h = {
		.version = PL_REPORT_V10, .tracked = true, .node = 4, .inner_link = PL_LINK_ETHERNET
	};
	static struct pl_batch batch;
	const struct pl_decode_counters *c;
	struct pl_decode_counters before;
	struct pl_decode *d;

	ok(pl_decode_new(&d, &(struct pl_decode_options){ 0 }) == 0);
	c = pl_decode_counters(d);
	begin();
	put_report(h, NULL, &flow, V10_TWO);
	feed(d, PL_LINK_UDP, NULL);
	before = *c;
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = frame,
		.len = (uint32_t)b.len,
		.wire_len = (uint32_t)b.len,
		.link = PL_LINK_UDP,
		.dport = 32766,
		.src = addr("192.0.2.1") };
	pl_record_batch_clear(&out);
	pl_decode_copies(d, &batch, &out);
	ok(out.n_paths == 1 && out.paths[0].path_id == got.path_id && out.n_hops == 2);
	ok(memcmp(&before, c, sizeof(before)) == 0, "copies are not counted");
	feed(d, PL_LINK_UDP, NULL);
	eq(pl_counter_read(&c->packets), 2, "the next packet is");
	eq(pl_counter_read(&c->hops), 4);
	pl_decode_free(d);
}

static void flush_nothing(struct pl_record_batch *batch, void *arg)
{
	(void)arg;
	pl_record_batch_clear(batch);
}

int main(void)
{
	if (pl_record_batch_init(&out, 64, 1024) < 0)
		return 1;
	out.flush = flush_nothing;
	stacks();
	reporter();
	liar();
	times();
	chained();
	carriers();
	frames();
	hostile();
	cut();
	exporters();
	copies();
	pl_record_batch_done(&out);
	return pl_test_done();
}
