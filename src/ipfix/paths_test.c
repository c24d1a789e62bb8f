/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths and hops as a collector reads them: each value under its element, none that the record does not
 * have. */
#include "ipfix/paths.h"

#include "ipfix/test_reader.h"

#define PEN   64512u
#define EPOCH UINT64_C(1700000000123456789)

static uint32_t told; /* paths, by the writer */

static void take_paths(void *arg, const uint8_t *m, uint32_t bytes, uint32_t paths)
{
	told += paths;
	take(arg, m, bytes, 0);
}

static struct pl_ipfix_sets *begun(enum pl_ipfix_time time)
{
	const struct pl_ipfix_sets_options o = {
		.domain = 9, .time = time, .pen = PEN, .send = take_paths
	};
	struct pl_ipfix_sets *x = NULL;

	memset(&got, 0, sizeof(got));
	told = 0;
	if (pl_ipfix_paths_new(&x, &o) < 0)
		abort();
	return x;
}

static struct pl_path a_path(void)
{
	struct pl_path p = { .ts_ns = EPOCH,
		.exporter = pl_addr_v4((const uint8_t[4]){ 192, 0, 2, 9 }),
		.exporter_port = 5000,
		.mode = PL_MODE_MD,
		.hw_id = 3,
		.hop_count = 2,
		.seq = 77,
		.flags = PL_FLAG_TRACKED | PL_FLAG_CONGESTED,
		.node = UINT64_C(0x123456789abc),
		.src = pl_addr_v4((const uint8_t[4]){ 10, 0, 0, 1 }),
		.dst = pl_addr_v4((const uint8_t[4]){ 10, 0, 0, 2 }),
		.sport = 1234,
		.dport = 80,
		.proto = 6,
		.dscp = 46,
		.vlan = 100,
		.vni = 5001,
		.path_id = UINT64_C(0xfedcba9876543210),
		.latency_ns = UINT64_C(6000000000),
		.flow_seq = 8,
		.flow_id = 9,
		.report_id = UINT64_C(0x1122334455667788) };

	p.present = PL_PATH_HAS_exporter | PL_PATH_HAS_exporter_port | PL_PATH_HAS_hw_id |
		    PL_PATH_HAS_seq | PL_PATH_HAS_node | PL_PATH_HAS_src | PL_PATH_HAS_sport |
		    PL_PATH_HAS_vlan | PL_PATH_HAS_vni | PL_PATH_HAS_path_id |
		    PL_PATH_HAS_latency_ns | PL_PATH_HAS_flow_seq | PL_PATH_HAS_flow_id;
	return p;
}

static const struct pl_hop hops[2] = {
	{ .ingress_ts_ns = 1000,
		.egress_ts_ns = 1700,
		.node = 7,
		.ingress_port = 1,
		.egress_port = 2,
		.hop_latency_ns = 700,
		.queue_depth = 12,
		.tx_util = 13,
		.buffer_depth = 14,
		.queue = 3,
		.buffer = 4,
		.index = 0,
		.congestion = 15,
		.ingress_port2 = 16,
		.egress_port2 = 17,
		.hop_limit = 61,
		.path_id = UINT64_C(0xfedcba9876543210),
		.ns_data_wide = 1500, /* bytes of the queue */
		.node_wide = 3000,    /* and of the buffer */
		.present = PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_egress_ts_ns | PL_HOP_HAS_node |
			   PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port |
			   PL_HOP_HAS_hop_latency_ns | PL_HOP_HAS_queue_depth | PL_HOP_HAS_tx_util |
			   PL_HOP_HAS_buffer_depth | PL_HOP_HAS_queue | PL_HOP_HAS_buffer |
			   PL_HOP_HAS_congestion | PL_HOP_HAS_ingress_port2 |
			   PL_HOP_HAS_egress_port2 | PL_HOP_HAS_hop_limit | PL_HOP_HAS_path_id |
			   PL_HOP_HAS_queue_bytes | PL_HOP_HAS_buffer_bytes },
	{ .node = 8,
		.index = 1,
		.link_latency_ns = -5,
		.clock = PL_CLOCK_SKEWED,
		.node_wide = UINT64_C(0xaabbccddeeff11),
		.present = PL_HOP_HAS_node | PL_HOP_HAS_link_latency_ns | PL_HOP_HAS_clock |
			   PL_HOP_HAS_node_wide },
};

/* All data records, with the elements of each in their order of use. */
struct want {
	unsigned int row;
	uint32_t pen;
	uint16_t id;
	uint64_t value;
	const char *name;
};

static const struct want wanted[] = {
	{ 0, 0, 152, EPOCH / 1000000, "flowStartMilliseconds" },
	{ 0, 0, 153, EPOCH / 1000000, "flowEndMilliseconds" },
	{ 0, 0, 8, 0x0a000001, "sourceIPv4Address" },
	{ 0, 0, 12, 0x0a000002, "destinationIPv4Address" },
	{ 0, 0, 7, 1234, "sourceTransportPort" },
	{ 0, 0, 11, 80, "destinationTransportPort" },
	{ 0, 0, 4, 6, "protocolIdentifier" },
	{ 0, 0, 130, 0xc0000209, "exporterIPv4Address" },
	{ 0, 0, 217, 5000, "exporterTransportPort" },
	{ 0, 0, 58, 100, "vlanId" },
	{ 0, 0, 195, 46, "ipDiffServCodePoint" },
	{ 0, 0, 89, 0x40, "forwardingStatus: forwarded" },
	{ 0, PEN, 101, UINT64_C(0x1122334455667788), "report id" },
	{ 0, PEN, 102, UINT64_C(0xfedcba9876543210), "path id" },
	{ 0, PEN, 103, UINT64_C(0x123456789abc), "reporting node" },
	{ 0, PEN, 104, UINT64_C(6000000000), "latency of the path" },
	{ 0, PEN, 105, 77, "sequence number" },
	{ 0, PEN, 106, 8, "number within the flow" },
	{ 0, PEN, 107, 9, "flow id" },
	{ 0, PEN, 109, 5001, "network" },
	{ 0, PEN, 110, PL_FLAG_TRACKED | PL_FLAG_CONGESTED, "flags" },
	{ 0, PEN, 111, 2, "hops" },
	{ 0, PEN, 112, PL_MODE_MD, "mode" },
	{ 0, PEN, 114, 3, "hardware unit" },
	{ 1, 0, 152, EPOCH / 1000000, "of a hop: flowStartMilliseconds" },
	{ 1, 0, 8, 0x0a000001, "sourceIPv4Address" },
	{ 1, 0, 11, 80, "destinationTransportPort" },
	{ 1, PEN, 101, UINT64_C(0x1122334455667788), "report id" },
	{ 1, PEN, 102, UINT64_C(0xfedcba9876543210), "path id" },
	{ 1, PEN, 131, 7, "node" },
	{ 1, PEN, 133, 1000, "ingress time" },
	{ 1, PEN, 134, 1700, "egress time" },
	{ 1, PEN, 136, 1500, "bytes of the queue" },
	{ 1, PEN, 137, 3000, "bytes of the buffer" },
	{ 1, 0, 10, 1, "ingressInterface" },
	{ 1, 0, 14, 2, "egressInterface" },
	{ 1, PEN, 138, 16, "ingress logical port" },
	{ 1, PEN, 139, 17, "egress logical port" },
	{ 1, PEN, 140, 700, "hop latency" },
	{ 1, PEN, 141, 12, "queue depth" },
	{ 1, PEN, 142, 13, "utilization" },
	{ 1, PEN, 143, 14, "buffer depth" },
	{ 1, PEN, 144, 15, "congestion" },
	{ 1, PEN, 145, 3, "queue" },
	{ 1, PEN, 146, 0, "index" },
	{ 1, PEN, 147, 4, "buffer" },
	{ 1, 0, 192, 61, "ipTTL" },
	{ 2, 0, 152, EPOCH / 1000000, "of the next: flowStartMilliseconds" },
	{ 2, PEN, 131, 8, "node" },
	{ 2, PEN, 132, UINT64_C(0xaabbccddeeff11), "wide node" },
	{ 2, PEN, 135, (uint64_t)-5, "link latency, below zero" },
	{ 2, PEN, 146, 1, "index" },
	{ 2, PEN, 148, PL_CLOCK_SKEWED, "clock" },
};

static unsigned int fields_of(unsigned int row)
{
	unsigned int n = 0;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		n += wanted[i].row == row;
	return n;
}

static void test_values(void)
{
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	const struct pl_path p = a_path();

	eq(pl_ipfix_paths_put(x, &p, hops, 1001), true);
	eq(pl_ipfix_sets_waiting(x), 1);
	pl_ipfix_sets_flush(x, 1002);
	eq(told, 1, "a message in which a path ends");
	eq(got.messages, 2, "templates, then path and hops in one message");
	eq(got.n, 3, "a data record of the path and one of each hop");
	eq(got.malformed + got.wrong_sequence, 0, "well formed, in sequence");
	ok(got.domain == 9 && got.export_s == 1002, "domain and time of the export");
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		value(&got.rows[wanted[i].row], wanted[i].pen, wanted[i].id, wanted[i].value,
			wanted[i].name);
	eq(got.rows[0].n, fields_of(0), "and no other value of the path");
	ok(has(&got.rows[1], 0, 12) && has(&got.rows[1], 0, 7) && has(&got.rows[1], 0, 4) &&
			has(&got.rows[1], 0, 153) && got.rows[1].n == fields_of(1) + 4,
		"nor of the first hop, which has the key of the path");
	eq(got.rows[2].n, fields_of(2) + 7, "nor of the second, which does not know its path id");
	pl_ipfix_sets_free(x);
}

/* Another family, no flow at all, a drop, a summary of losses; each with a template of its own. */
static void test_kinds(void)
{
	struct pl_ipfix_sets *x = begun(PL_IPFIX_NANOSECONDS);
	struct pl_path p = a_path();

	p.hop_count = 0;
	memcpy(p.src.b, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	memcpy(p.exporter.b, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2", 16);
	p.proto = 58;
	p.sport = 128;
	p.dport = 1;
	p.flags = PL_FLAG_DROPPED;
	p.drop_reason = 71;
	p.present |= PL_PATH_HAS_drop_reason;
	eq(pl_ipfix_paths_put(x, &p, NULL, 1001), true);
	p.present = PL_PATH_HAS_lost_count;
	p.flow_id = 4711;
	eq(pl_ipfix_paths_put(x, &p, NULL, 1001), true);
	pl_ipfix_sets_flush(x, 1002);
	eq(got.n, 2);
	memeq(find(&got.rows[0], 0, 27)->bytes, p.src.b, 16, "sourceIPv6Address");
	memeq(find(&got.rows[0], 0, 131)->bytes, p.exporter.b, 16, "exporterIPv6Address");
	value(&got.rows[0], 0, 139, 128 << 8 | 1, "icmpTypeCodeIPv6");
	ok(!has(&got.rows[0], 0, 7) && !has(&got.rows[0], 0, 8), "no ports, no IPv4");
	value(&got.rows[0], 0, 89, 0x80, "forwardingStatus: dropped");
	value(&got.rows[0], PEN, 113, 71, "reason of the drop");
	ok(has(&got.rows[0], 0, 156) && !has(&got.rows[0], 0, 152), "nanoseconds");
	value(&got.rows[1], PEN, 108, 4711, "lost packets");
	ok(!has(&got.rows[1], PEN, 107) && !has(&got.rows[1], 0, 4) && !has(&got.rows[1], 0, 195),
		"no flow id, no flow");
	pl_ipfix_sets_free(x);
}

/* More sets of values than there are templates; they are forgotten when they were not used for the time
 * between two renewals, and numbers of templates are not used again at once. */
static void test_sets(void)
{
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	struct pl_path p = a_path();
	const uint32_t all = p.present & ~(uint32_t)PL_PATH_HAS_sport;
	unsigned int put = 0;

	p.hop_count = 0;
	for (unsigned int i = 0; i < 200; i++) {
		/* Eight values that are there or not. */
		p.present = all & ~((i & 1) * PL_PATH_HAS_seq | (i >> 1 & 1) * PL_PATH_HAS_node |
					  (i >> 2 & 1) * PL_PATH_HAS_vlan |
					  (i >> 3 & 1) * PL_PATH_HAS_vni |
					  (i >> 4 & 1) * PL_PATH_HAS_path_id |
					  (i >> 5 & 1) * PL_PATH_HAS_latency_ns |
					  (i >> 6 & 1) * PL_PATH_HAS_flow_seq |
					  (i >> 7 & 1) * PL_PATH_HAS_flow_id);
		put += pl_ipfix_paths_put(x, &p, NULL, 1001);
	}
	pl_ipfix_sets_flush(x, 1001);
	eq(put, PL_IPFIX_SETS_MAX, "as many sets as there are templates");
	ok(got.n == put && told == put, "each of them was sent");
	eq(got.n_templates, put);
	eq(pl_ipfix_paths_put(x, &p, NULL, 1001), false, "the last found none");
	pl_ipfix_sets_renew(x, 1060);
	pl_ipfix_sets_renew(x, 1120);
	eq(pl_ipfix_paths_put(x, &p, NULL, 1121), true, "after two renewals it does");
	pl_ipfix_sets_flush(x, 1121);
	eq(got.n_templates, put + 1, "under a number of its own");
	eq(got.malformed + got.wrong_sequence, 0, "in one sequence with all before");
	pl_ipfix_sets_free(x);
}

static void test_renewal(void)
{
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	const struct pl_path p = a_path();
	uint32_t sets;

	for (unsigned int i = 0; i < 100; i++)
		eq(pl_ipfix_paths_put(x, &p, hops, 1001), true);
	pl_ipfix_sets_flush(x, 1002);
	sets = got.template_sets;
	eq(sets, 1, "templates are sent once");
	eq(told, 100);
	ok(got.longest <= PL_IPFIX_MESSAGE_BYTES && got.messages > 5, "in messages of that size");
	pl_ipfix_sets_renew(x, 1060);
	eq(got.template_sets, sets, "a renewal alone sends nothing");
	eq(pl_ipfix_paths_put(x, &p, hops, 1061), true);
	pl_ipfix_sets_flush(x, 1061);
	eq(got.template_sets, sets + 1, "what is used again is told again");
	eq(got.n_templates, 3, "under its number");
	eq(got.malformed + got.wrong_sequence, 0, "in sequence");
	pl_ipfix_sets_begin(x);
	got.next = 0;
	eq(pl_ipfix_paths_put(x, &p, hops, 1062), true);
	pl_ipfix_sets_flush(x, 1062);
	eq(got.sequence, 0, "a new session counts from 0");
	eq(got.template_sets, sets + 2, "and tells all again");
	eq(got.malformed + got.wrong_sequence, 0, "well formed");
	pl_ipfix_sets_free(x);
	pl_ipfix_sets_free(NULL);
}

/* So many hops that they take several messages: all are there, and the path ends once. */
static void test_long(void)
{
	static struct pl_hop many[255];
	struct pl_ipfix_sets *x = begun(PL_IPFIX_MILLISECONDS);
	struct pl_path p = a_path();

	for (unsigned int i = 0; i < 255; i++) {
		many[i] = hops[0];
		many[i].index = (uint8_t)i;
	}
	p.hop_count = 255;
	eq(pl_ipfix_paths_put(x, &p, many, 1001), true);
	pl_ipfix_sets_flush(x, 1001);
	ok(got.n == 256 && told == 1 && got.messages > 10, "a path of 255 hops");
	eq(got.malformed + got.wrong_sequence, 0, "well formed, in sequence");
	for (unsigned int i = 0; i < 255; i++)
		value(&got.rows[i + 1], PEN, 146, i, "index");
	pl_ipfix_sets_free(x);
}

int main(void)
{
	test_values();
	test_kinds();
	test_sets();
	test_renewal();
	test_long();
	return pl_test_done();
}
