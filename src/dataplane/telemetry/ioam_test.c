/* SPDX-License-Identifier: BSD-2-Clause */
/* IOAM nodes: written values are read back, and packets leave as they entered. */
#include "dataplane/telemetry/ioam_node.h"
#include "dataplane/test_packets.h"

#define PACKETS 500 /* of each form */
#define NS      123

static struct pl_dp_pool *pool;

/* Reads the trace of a packet and its nodes, newest first; false: inconsistent. */
static bool read_trace(const struct pl_dp_packet *pkt, struct pl_ioam_trace *trace,
	struct pl_ioam_node *nodes, uint32_t *ret_n)
{
	struct pl_ioam_option option;
	struct pl_layers l;
	enum pl_verdict v;

	*ret_n = 0;
	if (pl_layers_walk(&l, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, false) !=
			PL_V_OK ||
		(l.flags & PL_LAYERS_HOP_OPTS) == 0 || !pl_ioam_next(&l.hop_opts, &option, &v) ||
		pl_ioam_trace_parse(trace, &option) != PL_V_OK ||
		(option.body.pos - l.network) % 4 != 0)
		return false;
	while (*ret_n < PL_IOAM_NODES_MAX && pl_ioam_node_next(trace, &nodes[*ret_n], &v))
		++*ret_n;
	return v == PL_V_OK;
}

static bool node_equals(const struct pl_ioam_node *n, const struct pl_dp_packet *pkt, uint32_t id)
{
	uint64_t delay = pkt->out_ns - pkt->in_ns, us = pkt->in_ns / 1000;

#define SAME(has, member, want)                                                                    \
	if ((n->have & PL_IOAM_HAS_##has) != 0 && n->member != (want))                             \
		return false;
	SAME(NODE, node, id)
	SAME(INGRESS, ingress, pkt->in_port)
	SAME(EGRESS, egress, pkt->out_port)
	SAME(SECONDS, seconds, us / 1000000)
	SAME(FRACTION, fraction, us % 1000000)
	SAME(DELAY, delay_ns, delay)
	SAME(QUEUE, queue, pkt->depth_bytes)
	SAME(INGRESS_WIDE, ingress_wide, pkt->in_port)
	SAME(EGRESS_WIDE, egress_wide, pkt->out_port)
	SAME(NODE_WIDE, node_wide, UINT64_C(0xab00000000) + id)
	SAME(NS_DATA, ns_data, 77u)
#undef SAME
	return (n->have & (PL_IOAM_HAS_CHECKSUM | PL_IOAM_HAS_BUFFER)) == 0;
}

static void round_trips(const char *name, uint32_t type, bool incremental, uint32_t must)
{
	const struct pl_dp_ioam_config c = { .ns = NS,
		.type = type,
		.incremental = incremental,
		.nodes = 4,
		.have_data = true,
		.data = 77 };
	struct pl_dp_ioam io;
	struct pl_rng rng;
	uint32_t wrong = 0, done = 0, values = 0, flags = 0;
	struct pl_ioam_trace trace;
	static struct pl_ioam_node nodes[PL_IOAM_NODES_MAX];

	pl_rng_seed(&rng, 11);
	eq(pl_dp_ioam_init(&io, &c, NULL), 0);
	for (uint32_t k = 0; k < PACKETS; k++) {
		uint8_t before[TEST_BYTES];
		uint32_t len = test_make(
				 before, &rng, (enum test_kind)pl_rng_below(&rng, TEST_KINDS)),
			 hops = 1 + (uint32_t)pl_rng_below(&rng, 6), n = 0;
		struct pl_dp_packet *pkt = pl_dp_packet_of(pool, before, len), at[8];
		enum pl_dp_int_outcome r;

		test_locate(pkt);
		for (uint32_t i = 0; i < hops; i++) {
			struct pl_dp_node node = { .id = 500 + i,
				.id_wide = UINT64_C(0xab00000000) + 500 + i };

			pkt->in_port = (uint16_t)(10 + i);
			pkt->out_port = (uint16_t)(20 + i);
			pkt->depth_bytes = (uint32_t)pl_rng_below(&rng, 1 << 30);
			pkt->in_ns = UINT64_C(1700000000000000000) + pl_rng_below(&rng, 1u << 31);
			pkt->out_ns = pkt->in_ns + 1 + pl_rng_below(&rng, 1 << 30);
			at[i] = *pkt;
			r = i == 0 ? pl_dp_ioam_encapsulate(&io, &node, pkt)
				   : pl_dp_ioam_transit(&io, &node, pkt);
			if (i == 0 && r != PL_DP_INT_DONE)
				break;
			wrong += r != (i < 4 ? PL_DP_INT_DONE : PL_DP_INT_HOP_LIMIT);
			if (test_wrong(pkt) != NULL || !read_trace(pkt, &trace, nodes, &n)) {
				wrong++;
				continue;
			}
			values += n != (i < 4 ? i + 1 : 4);
			flags += ((trace.flags & PL_IOAM_OVERFLOW) != 0) != (i >= 4);
			for (uint32_t j = 0; j < n; j++)
				values += (nodes[j].have & must) != must ||
					  !node_equals(&nodes[j], &at[n - 1 - j], 500 + n - 1 - j);
		}
		if (n > 0) {
			done++;
			wrong += pl_dp_ioam_decapsulate(&io, pkt) != PL_DP_INT_DONE;
		}
		wrong += pkt->len != len || memcmp(pkt->data, before, len) != 0 ||
			 test_wrong(pkt) != NULL;
		pl_dp_packet_free(pkt);
	}
	ok(wrong == 0, "%s: %u wrong", name, wrong);
	ok(values == 0, "%s: %u values wrong", name, values);
	ok(flags == 0, "%s: overflow is set when it is", name);
	ok(done > PACKETS / 4, "%s: %u of %u were traced", name, done, PACKETS);
}

/* Other options in the header, another namespace, an invalid trace. */
static void test_others(void)
{
	const struct pl_ioam_trace head = {
		.ns = NS, .type = PL_IOAM_BIT(0), .remaining = 2, .incremental = false
	};
	struct pl_ioam_trace trace;
	struct pl_ioam_node node = { .have = 0 };
	static struct pl_ioam_node nodes[PL_IOAM_NODES_MAX];
	const struct pl_dp_node me = { .id = 9 };
	uint8_t area[64], bytes[200], after[200];
	struct pl_build a = pl_build(area, sizeof(area)), b = pl_build(bytes, sizeof(bytes));
	struct pl_ip6_options options = { .hop = area };
	struct pl_dp_ioam_config c = { .ns = NS + 1 };
	struct pl_dp_ioam io;
	struct pl_dp_packet *pkt;
	struct pl_rng rng;
	struct pl_flow f;
	uint32_t n;
	size_t at;

	pl_rng_seed(&rng, 2);
	f = test_flow(&rng, PL_IP_UDP, true);
	pl_put_be32(&a, 0x05020000); /* router alert */
	eq(pl_ioam_put_trace(&a, &head, PL_IP6_OPT_IOAM_MUTABLE, &node, 1), 0);
	options.hop_len = a.len;
	pl_put_eth(&b, PL_ETH_IPV6, 0);
	at = pl_put_ip_options(&b, &f, 60, 0, &options);
	pl_put_be32(&b, 0x12345678);
	pl_end_ip(&b, at);
	pkt = pl_dp_packet_of(pool, bytes, (uint32_t)b.len);
	test_locate(pkt);

	eq(pl_dp_ioam_init(&io, &c, NULL), 0);
	eq(pl_dp_ioam_transit(&io, &me, pkt), PL_DP_INT_NAMESPACE);
	eq(pl_dp_ioam_decapsulate(&io, pkt), PL_DP_INT_NAMESPACE);
	eq(pl_dp_ioam_encapsulate(&io, &me, pkt), PL_DP_INT_ALREADY);
	memeq(pkt->data, bytes, b.len);
	c.ns = NS;
	eq(pl_dp_ioam_init(&io, &c, NULL), 0);
	eq(pl_dp_ioam_transit(&io, &me, pkt), PL_DP_INT_DONE);
	ok(read_trace(pkt, &trace, nodes, &n) && n == 2, "two nodes");
	eq(nodes[0].node, 9);
	eq(pl_dp_ioam_decapsulate(&io, pkt), PL_DP_INT_DONE);
	ok(!read_trace(pkt, &trace, nodes, &n), "no trace any more");
	eq(pkt->len, b.len);
	ok(test_wrong(pkt) == NULL, "and a packet still");
	eq(pkt->data[54 + 2], 5, "whose router alert stands");
	/* a malformed packet is not changed */
	memcpy(after, bytes, b.len);
	for (uint32_t i = 54; i < 54 + 32; i++) {
		uint32_t len = pkt->len;

		memcpy(pkt->data, bytes, b.len);
		pkt->data[i] ^= 0xff;
		test_locate(pkt);
		pl_dp_ioam_transit(&io, &me, pkt);
		eq(pkt->len, len, "byte %u inverted: no growth", i);
		pl_dp_ioam_decapsulate(&io, pkt);
		pl_dp_packet_free(pkt);
		pkt = pl_dp_packet_of(pool, bytes, (uint32_t)b.len);
		test_locate(pkt);
	}
	pl_dp_packet_free(pkt);
}

static void test_refused(void)
{
	static const struct pl_dp_ioam_config wrong[] = {
		{ .type = 1 },
		{ .type = 2 },
		{ .type = 0x1000000 },
		{ .type = PL_IOAM_BIT(0), .nodes = 62 },
		{ .type = PL_IOAM_BIT(10), .nodes = 31 },
	};
	struct pl_dp_ioam io;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pl_diag diag = { 0 };

		eq(pl_dp_ioam_init(&io, &wrong[i], &diag), -22);
		ok(diag.text[0] != '\0', "%s", diag.text);
	}
}

/* Bytes of the packet's IPv6 packet. */
static uint16_t ip6_bytes(const struct pl_dp_packet *pkt)
{
	return (uint16_t)(40 + pl_be16(pkt->data + pkt->headers.l3 + 4));
}

/* A node adds its words when the result is as long as the next interface allows, and not when it is
 * longer by a byte. */
static void test_mtu(void)
{
	const struct pl_dp_ioam_config c = {
		.ns = NS, .type = PL_IOAM_BIT(0), .incremental = true, .nodes = 6
	};
	uint32_t refused = 0, taken = 0, wrong = 0, in_padding = 0;
	struct pl_dp_ioam io;
	struct pl_rng rng;

	pl_rng_seed(&rng, 5);
	eq(pl_dp_ioam_init(&io, &c, NULL), 0);
	for (uint32_t k = 0; k < PACKETS; k++) {
		struct pl_dp_port_ids port = { .mtu = 0 };
		const struct pl_dp_node node = { .id = 9, .ports = &port, .n_ports = 1 };
		uint8_t bytes[TEST_BYTES];
		const uint32_t len =
			test_make(bytes, &rng, (enum test_kind)pl_rng_below(&rng, TEST_KINDS));
		struct pl_dp_packet *pkt = pl_dp_packet_of(pool, bytes, len), *ahead;

		test_locate(pkt);
		pkt->out_port = 0;
		if (pl_dp_ioam_encapsulate(&io, &node, pkt) != PL_DP_INT_DONE) {
			pl_dp_packet_free(pkt);
			continue;
		}
		for (int i = 1; i < 6; i++) {
			ahead = pl_dp_packet_clone(pkt);
			test_locate(ahead);
			port.mtu = 0;
			wrong += pl_dp_ioam_transit(&io, &node, ahead) != PL_DP_INT_DONE;
			in_padding += ahead->len == pkt->len;
			port.mtu = ip6_bytes(ahead);
			if (ahead->len > pkt->len) {
				struct pl_dp_packet *refusing = pl_dp_packet_clone(pkt);

				test_locate(refusing);
				port.mtu--;
				refused +=
					pl_dp_ioam_transit(&io, &node, refusing) == PL_DP_INT_MTU;
				port.mtu++;
				pl_dp_packet_free(refusing);
			}
			taken += pl_dp_ioam_transit(&io, &node, pkt) == PL_DP_INT_DONE;
			wrong += pkt->len != ahead->len ||
				 memcmp(pkt->data, ahead->data, pkt->len) != 0;
			pl_dp_packet_free(ahead);
		}
		pl_dp_packet_free(pkt);
	}
	eq(wrong, 0, "packets are as without a limit");
	ok(taken > 0 && refused + in_padding == taken, "%u fit, %u of them in padding", taken,
		in_padding);
	ok(in_padding > 0 && refused > 0, "%u were too long by a byte", refused);
}

int main(void)
{
	const uint32_t usual = PL_IOAM_HAS_NODE | PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_INGRESS |
			       PL_IOAM_HAS_EGRESS | PL_IOAM_HAS_SECONDS | PL_IOAM_HAS_FRACTION |
			       PL_IOAM_HAS_DELAY | PL_IOAM_HAS_QUEUE,
		       wide = PL_IOAM_HAS_NODE_WIDE | PL_IOAM_HAS_EGRESS_WIDE;

	eq(pl_dp_pool_new(&pool, 4096, 4), 0);
	round_trips("usual", 0, false, usual);
	round_trips("usual, incremental", 0, true, usual);
	round_trips("ids only", PL_IOAM_BIT(0), false, PL_IOAM_HAS_NODE);
	round_trips("ids only, incremental", PL_IOAM_BIT(0), true, PL_IOAM_HAS_NODE);
	round_trips("wide", PL_IOAM_BIT(8) | PL_IOAM_BIT(9) | PL_IOAM_BIT(7), false, wide);
	round_trips(
		"wide, incremental", PL_IOAM_BIT(8) | PL_IOAM_BIT(9) | PL_IOAM_BIT(7), true, wide);
	round_trips("unknown bits",
		PL_IOAM_BIT(0) | PL_IOAM_BIT(5) | PL_IOAM_BIT(12) | PL_IOAM_BIT(21), false,
		PL_IOAM_HAS_NODE | PL_IOAM_HAS_NS_DATA);
	test_others();
	test_mtu();
	test_refused();
	eq(pl_dp_pool_alive(pool), 0);
	pl_dp_pool_free(pool);
	return pl_test_done();
}
