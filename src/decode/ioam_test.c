/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv6 packets with IOAM in, path and hop records out. */
#include "base/test.h"
#include "decode/decode.h"
#include "wire/ioam.h"
#include "wire/layers.h"

#define NS_PER_S UINT64_C(1000000000)

static uint8_t packet[1024], area[600];
static struct pl_build opts;
static struct pl_record_batch out;
static struct pl_path got;
static struct pl_hop hops[64];
static uint64_t notes;
static struct pl_decode_options options;

static void put_hex(const char *hex)
{
	uint8_t bytes[sizeof(area)];

	pl_put(&opts, bytes, pl_test_hex(bytes, sizeof(bytes), hex));
}

static void begin(void)
{
	opts = pl_build(area, sizeof(area));
}

/* The options in an IPv6 packet, alone or around another one, through a fresh decoder. */
static enum pl_verdict feed(bool destination, bool tunnelled)
{
	static struct pl_batch batch;
	struct pl_build b = pl_build(packet, sizeof(packet));
	struct pl_flow flow = { .proto = PL_IP_UDP, .sport = 5001, .dport = 2000, .dscp = 46 };
	struct pl_flow outer = { .proto = PL_IP_IPV6 };
	struct pl_ip6_options ext = { 0 };
	struct pl_decode *d = NULL;
	enum pl_verdict v;
	size_t at, at_outer = 0;

	if (destination) {
		ext.dst = area;
		ext.dst_len = opts.len;
	} else {
		ext.hop = area;
		ext.hop_len = opts.len;
	}
	flow.src.b[0] = flow.dst.b[0] = outer.src.b[0] = outer.dst.b[0] = 0xfd;
	flow.dst.b[15] = 9;
	pl_put_eth(&b, PL_ETH_IPV6, 0);
	if (tunnelled)
		at_outer = pl_put_ip_options(&b, &outer, 64, 0, &ext);
	at = pl_put_ip_options(&b, &flow, 62, 0, tunnelled ? NULL : &ext);
	pl_put(&b, "data", 4);
	pl_end_ip(&b, at);
	if (tunnelled)
		pl_end_ip(&b, at_outer);
	if (b.full || opts.full || pl_decode_new(&d, &options) != 0)
		abort();
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = packet,
		.len = (uint32_t)b.len,
		.wire_len = (uint32_t)b.len,
		.ts_ns = 1700000000 * NS_PER_S,
		.link = PL_LINK_ETHERNET,
	};
	pl_record_batch_clear(&out);
	pl_decode_batch(d, &batch, &out);
	v = (enum pl_verdict)pl_decode_outcomes(d)[0].verdict;
	notes = pl_decode_outcomes(d)[0].notes;
	memset(&got, 0, sizeof(got));
	memset(hops, 0, sizeof(hops));
	if (out.n_paths == 1) {
		got = out.paths[0];
		memcpy(hops, out.hops, got.hop_count * sizeof(hops[0]));
	}
	if (v != PL_V_OK)
		eq(out.n_paths, 0, "no path beside a fault");
	pl_decode_free(d);
	return v;
}

#define LINUX                                                                                      \
	"0100 31da0000 007b7812 fff00200 "                                                         \
	"00000000 00000000 00000000 00000000 00000000 00000000 "                                   \
	"00000000 00000000 00000000 00000000 00000000 00000000 "                                   \
	"00000000 00000000 00000000 00000000 00000000 00000000 "                                   \
	"3e0a0002 00150016 6b000d60 0005efb4 ffffffff c0000002 00000000 ffffffff "                 \
	"3e000000 b0000002 00000834 00000898 d0000000 00000002 ffffffff 00ffffff "                 \
	"3f0a0001 000b000c 6b000d60 0005ef00 ffffffff c0000001 00000007 ffffffff "                 \
	"3f000000 b0000001 0000044c 000004b0 d0000000 00000001 ffffffff 02000309 68656c6c 6f393900 "

static void test_linux(void)
{
	const uint32_t both = PL_HOP_HAS_node | PL_HOP_HAS_node_wide | PL_HOP_HAS_ingress_port |
			      PL_HOP_HAS_egress_port | PL_HOP_HAS_ingress_port2 |
			      PL_HOP_HAS_egress_port2 | PL_HOP_HAS_ingress_ts_ns |
			      PL_HOP_HAS_time_bits | PL_HOP_HAS_queue_depth | PL_HOP_HAS_ns_data |
			      PL_HOP_HAS_ns_data_wide | PL_HOP_HAS_hop_limit |
			      PL_HOP_HAS_ioam_namespace | PL_HOP_HAS_path_id;

	begin();
	put_hex(LINUX);
	eq(feed(false, false), PL_V_OK);
	eq(got.mode, PL_MODE_IOAM_TRACE);
	eq(got.hop_count, 2);
	eq(got.flags, 0);
	ok((got.present & PL_PATH_HAS_path_id) != 0 && got.path_id != 0);
	eq(got.present & (PL_PATH_HAS_latency_ns | PL_PATH_HAS_flow_seq | PL_PATH_HAS_flow_id), 0);
	eq(got.sport, 5001);
	eq(got.dport, 2000);
	eq(got.dscp, 46);
	eq(hops[0].present, both | PL_HOP_HAS_schema_id, "source first");
	eq(hops[0].node, 0x0a0001);
	eq(hops[0].index, 0);
	eq(hops[0].schema_id, 777);
	eq(hops[0].queue_depth, 7);
	eq(hops[1].present, both);
	eq(hops[1].node, 0x0a0002);
	eq(hops[1].index, 1);
	eq(hops[1].node_wide, 0xb0000002);
	eq(hops[1].ingress_port, 21);
	eq(hops[1].egress_port, 22);
	eq(hops[1].ingress_port2, 2100);
	eq(hops[1].egress_port2, 2200);
	eq(hops[1].ingress_ts_ns, 1795165536 * NS_PER_S + 389044000);
	eq(hops[1].time_bits, 64);
	eq(hops[1].hop_limit, 62);
	eq(pl_hop_get_ns_data(&hops[1]), 0xc0000002);
	eq(hops[1].ns_data_wide, UINT64_C(0xd000000000000002));
	eq(hops[1].ioam_namespace, 123);
	eq(notes, PL_NOTE_BIT(VALUES_MISSING), "Linux never has delay and buffer");
}

static struct pl_ioam_node node_at(uint32_t id, uint32_t seconds, uint32_t fraction, uint32_t delay)
{
	return (struct pl_ioam_node){
		.have = PL_IOAM_HAS_NODE | PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_SECONDS |
			PL_IOAM_HAS_FRACTION | PL_IOAM_HAS_DELAY,
		.node = id,
		.hop_limit = 63,
		.seconds = seconds,
		.fraction = fraction,
		.delay_ns = delay,
	};
}

#define TIMED (PL_IOAM_BIT(0) | PL_IOAM_BIT(2) | PL_IOAM_BIT(3) | PL_IOAM_BIT(4))

static void test_latencies(void)
{
	struct pl_ioam_trace head = { .type = TIMED, .ns = 1 };
	struct pl_ioam_node nodes[] = {
		node_at(1, 1700000000, 100, 30000),
		node_at(2, 1700000000, 150, 2000),
	};

	begin();
	eq(pl_ioam_put_trace(&opts, &head, PL_IP6_OPT_IOAM_MUTABLE, nodes, 2), 0);
	eq(feed(false, true), PL_V_OK, "in a tunnel's outer header");
	eq(got.sport, 5001, "the flow is the inner one");
	eq(hops[0].hop_latency_ns, 30000);
	eq(hops[0].egress_ts_ns - hops[0].ingress_ts_ns, 30000);
	eq(hops[1].link_latency_ns, 20000);
	eq(got.latency_ns, 32000);
	eq(notes, 0);
	nodes[1].delay_overflow = true;
	begin();
	eq(pl_ioam_put_trace(&opts, &head, PL_IP6_OPT_IOAM_MUTABLE, nodes, 2), 0);
	eq(feed(false, false), PL_V_OK);
	eq(hops[1].present & (PL_HOP_HAS_hop_latency_ns | PL_HOP_HAS_egress_ts_ns), 0,
		"a delay that overflowed is not known");
	eq(got.present & PL_PATH_HAS_latency_ns, 0);
	eq(notes, PL_NOTE_BIT(LATENCY_IMPLAUSIBLE));
}

static void test_time_formats(void)
{
	static const struct {
		const char *name;
		enum pl_ioam_time format;
		uint32_t seconds, fraction;
		uint64_t want; /* 0 = left out */
	} rows[] = {
		/* clang-format off */
		{ "posix", PL_IOAM_TIME_POSIX, 1700000000, 999999, 1700000000999999000 },
		{ "posix with nanoseconds", PL_IOAM_TIME_POSIX, 1700000000, 1000000, 0 },
		{ "ptp", PL_IOAM_TIME_PTP, 1700000000, 999999999, 1700000000999999999 },
		{ "ptp beyond a second", PL_IOAM_TIME_PTP, 1700000000, 1000000000, 0 },
		{ "ntp", PL_IOAM_TIME_NTP, 3908988800, 0x80000000, 1700000000500000000 },
		{ "ntp before 1970", PL_IOAM_TIME_NTP, 2208988799, 0, 0 },
		{ "no fraction", PL_IOAM_TIME_NTP, 3908988800, UINT32_MAX, 0 },
		/* clang-format on */
	};
	struct pl_ioam_trace head = { .type = TIMED, .ns = 5 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_ioam_node node = node_at(1, rows[i].seconds, rows[i].fraction, 0);

		options.ioam_namespaces[0] =
			(struct pl_ioam_namespace){ 5, (uint8_t)rows[i].format };
		options.n_ioam_namespaces = 1;
		begin();
		eq(pl_ioam_put_trace(&opts, &head, PL_IP6_OPT_IOAM_MUTABLE, &node, 1), 0);
		eq(feed(false, false), PL_V_OK, "%s", rows[i].name);
		eq(hops[0].ingress_ts_ns, rows[i].want, "%s: time", rows[i].name);
		eq((hops[0].present & PL_HOP_HAS_ingress_ts_ns) != 0, rows[i].want != 0);
	}
	options.n_ioam_namespaces = 0;
}

static void test_others(void)
{
	struct pl_ioam_trace head = { .type = PL_IOAM_BIT(8) | PL_IOAM_BIT(9), .ns = 1 };
	struct pl_ioam_node node = {
		.have = PL_IOAM_HAS_NODE_WIDE | PL_IOAM_HAS_EGRESS_WIDE,
		.node_wide = 0xb0000002,
		.egress_wide = 70000,
	};

	begin();
	put_hex("0100 31120004 007b00c0 80000000 00000015 00000007");
	eq(feed(true, false), PL_V_OK, "direct export");
	eq(got.mode, PL_MODE_IOAM_DEX);
	ok((got.present & PL_PATH_HAS_flow_id) != 0 && got.flow_id == 21);
	ok((got.present & PL_PATH_HAS_flow_seq) != 0 && got.flow_seq == 7);
	ok((got.present & PL_PATH_HAS_ioam_namespace) != 0 &&
			pl_path_get_ioam_namespace(&got) == 123,
		"its namespace, without which flow and number mean nothing");
	eq(got.hop_count, 0);
	begin();
	put_hex("0100 11120003 007b7000 0000002a 6553f100 0003d090");
	eq(feed(true, false), PL_V_OK, "edge to edge");
	eq(got.mode, PL_MODE_IOAM_E2E);
	eq(got.flow_seq, 42);
	eq(got.hop_count, 1);
	eq(hops[0].egress_ts_ns, 1700000000 * NS_PER_S + 250000000);
	eq(hops[0].present & (PL_HOP_HAS_node | PL_HOP_HAS_ingress_ts_ns), 0);
	eq(got.present & PL_PATH_HAS_path_id, 0, "no node, no path");
	begin();
	put_hex("0100 110e0003 007b8000 00000001 00000000");
	eq(feed(true, false), PL_V_OK);
	eq(got.present & PL_PATH_HAS_flow_seq, 0, "a sequence number above 32 bits is left out");
	eq(notes, PL_NOTE_BIT(IOAM_SEQUENCE));
	begin();
	put_hex("0100 1116 0002 00010000 1122334455667788 99aabbccddeeff00");
	eq(feed(true, false), PL_V_OK, "proof of transit");
	eq(got.mode, PL_MODE_IOAM_POT);
	eq(pl_path_get_ioam_namespace(&got), 1);
	ok((got.present & PL_PATH_HAS_pot_packet_id) != 0 &&
			pl_path_get_pot_packet_id(&got) == UINT64_C(0x1122334455667788),
		"PktID");
	ok((got.present & PL_PATH_HAS_pot_cumulative) != 0 &&
			pl_path_get_pot_cumulative(&got) == UINT64_C(0x99aabbccddeeff00),
		"Cumulative");
	eq(got.present & (PL_PATH_HAS_exporter | PL_PATH_HAS_node | PL_PATH_HAS_e2e_ts_ns), 0);
	begin();
	eq(pl_ioam_put_trace(&opts, &head, PL_IP6_OPT_IOAM_MUTABLE, &node, 1), 0);
	eq(feed(false, false), PL_V_OK, "wide names only");
	eq(hops[0].node, 0xb0000002);
	eq(hops[0].node_wide, 0xb0000002);
	eq(hops[0].egress_port, 70000);
	eq(hops[0].egress_port2, 70000);
	eq(hops[0].present & (PL_HOP_HAS_ingress_port | PL_HOP_HAS_hop_limit), 0);
}

static void test_several(void)
{
	begin();
	put_hex("0100 310e0000 007b0800 80000000 3e000001 11120003 007b7000 0000002a 6553f100 0003d090");
	eq(feed(false, false), PL_V_OK, "a trace and edge to edge");
	eq(got.mode, PL_MODE_IOAM_TRACE);
	eq(got.flow_seq, 42);
	eq(pl_path_get_e2e_ts_ns(&got), 1700000000 * NS_PER_S + 250000000,
		"the encapsulating node's time beside the trace");
	eq(got.hop_count, 1);
	eq(hops[0].node, 1);
	begin();
	put_hex("0100 11120003 007b7000 0000002a 6553f100 0003d090 0100 31120004 007c00c0 80000000 00000015 00000007");
	eq(feed(false, false), PL_V_OK, "edge to edge and direct export of another namespace");
	eq(got.flow_seq, 7);
	eq(got.flow_id, 21);
	eq(pl_path_get_ioam_namespace(&got), 0x7c, "one namespace for flow and number");
	eq(pl_path_get_e2e_ts_ns(&got), 1700000000 * NS_PER_S + 250000000);
	begin();
	put_hex("0100 11120003 007b7000 0000002a 6553f100 0003d090 0100 310a0004 007c0000 80000000");
	eq(feed(false, false), PL_V_OK, "direct export without a flow");
	eq(got.flow_seq, 42, "leaves the number to edge to edge");
	eq(pl_path_get_ioam_namespace(&got), 0x7b);
	begin();
	put_hex("0100 310e0000 007b0800 80000000 3e000001 310e0000 007c0800 80000000 3e000002");
	eq(feed(false, false), PL_V_OK, "two traces");
	eq(hops[0].node, 1);
	ok((notes & PL_NOTE_BIT(IOAM_MORE)) != 0);
	begin();
	put_hex("0100 31120004 007b00c0 80000000 00000015 00000007 0100 31120004 007c00c0 80000000 00000016 00000009");
	eq(feed(true, false), PL_V_OK, "direct exports of two namespaces");
	eq(pl_path_get_ioam_namespace(&got), 0x7b, "namespace, flow and number are of the first");
	eq(got.flow_id, 21);
	eq(got.flow_seq, 7);
	ok((notes & PL_NOTE_BIT(IOAM_MORE)) != 0);
	begin();
	put_hex("0100 310a0004 007b0000 80000000 0100 31120004 007c00c0 80000000 00000016 00000009");
	eq(feed(true, false), PL_V_OK, "of two direct exports, the first without a flow");
	eq(pl_path_get_ioam_namespace(&got), 0x7c, "the one with a flow is read");
	eq(got.flow_id, 22);
	eq(notes & PL_NOTE_BIT(IOAM_MORE), 0, "nothing was left out");
	begin();
	put_hex("0100 110a0003 007b4000 0000002a 0100 110a0003 007c4000 0000002b");
	eq(feed(false, false), PL_V_OK, "edge to edge of two namespaces");
	eq(pl_path_get_ioam_namespace(&got), 0x7b, "namespace and number are of the first");
	eq(got.flow_seq, 42);
	ok((notes & PL_NOTE_BIT(IOAM_MORE)) != 0);
	begin();
	put_hex("0100 1116 0002 00010000 1122334455667788 99aabbccddeeff00 0100 1116 0002 00020000 0000000000000001 0000000000000002");
	eq(feed(true, false), PL_V_OK, "proofs of transit of two namespaces");
	eq(pl_path_get_ioam_namespace(&got), 1);
	eq(pl_path_get_pot_packet_id(&got), UINT64_C(0x1122334455667788));
	ok((notes & PL_NOTE_BIT(IOAM_MORE)) != 0);
	begin();
	put_hex("0100 31020005 0100 310e0000 007b0800 80000000 3e000001");
	eq(feed(false, false), PL_V_OK, "an unassigned type beside a trace");
	eq(hops[0].node, 1);
	ok((notes & PL_NOTE_BIT(UNASSIGNED)) != 0);
}

static const struct {
	const char *name, *hex;
	enum pl_verdict verdict;
	uint64_t notes;
	uint16_t flags;
} rows[] = {
	/* clang-format off */
	{ "other options only", "0100 c20400000001", PL_V_NOT_TELEMETRY, 0, 0 },
	{ "unassigned type alone", "0100 31020005", PL_V_IOAM_OPTION, 0, 0 },
	{ "overflow: a part of the path", "0100 310e0000 007b0c00 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_OVERFLOW) | PL_NOTE_BIT(PARTIAL), PL_FLAG_PARTIAL },
	{ "active: no traffic", "0100 310e0000 007b0900 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_ACTIVE), PL_FLAG_COPY },
	{ "loopback", "0100 310e0000 007b0a00 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_LOOPBACK), 0 },
	{ "nothing filled in", "0100 310e0000 007b0801 80000000 00000000", PL_V_OK, PL_NOTE_BIT(NO_HOPS), 0 },
	{ "integrity-protected", "0100 310e0040 007b0800 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_INTEGRITY), 0 },
	{ "node length", "0100 310e0000 007b1000 80000000 3e000001", PL_V_IOAM_NODE_LEN, 0, 0 },
	{ "free words", "0100 310e0000 007b0802 80000000 3e000001", PL_V_IOAM_REMAINING, 0, 0 },
	{ "half a node", "0100 310e0000 007b1000 c0000000 3e000001", PL_V_IOAM_WALK, 0, 0 },
	{ "a good trace, a damaged second option", "0100 310e0000 007b0800 80000000 3e000001 110a0003 007b7000 0000002a", PL_V_IOAM_LENGTH, 0, 0 },
	{ "option past its header", "0100 31200000 007b0800 80000000 3e000001", PL_V_IP_OPTIONS, 0, 0 },
	/* clang-format on */
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin();
		put_hex(rows[i].hex);
		streq(pl_verdict_name(feed((i & 1) != 0, false)), pl_verdict_name(rows[i].verdict),
			"%s", rows[i].name);
		if (rows[i].verdict == PL_V_OK) {
			eq(notes, rows[i].notes, "%s: notes", rows[i].name);
			eq(got.flags, rows[i].flags, "%s: flags", rows[i].name);
		}
	}
}

int main(void)
{
	if (pl_record_batch_init(&out, 16, 512) != 0)
		return EXIT_FAILURE;
	test_linux();
	test_latencies();
	test_time_formats();
	test_others();
	test_several();
	test_rows();
	pl_record_batch_done(&out);
	return pl_test_done();
}
