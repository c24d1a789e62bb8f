/* SPDX-License-Identifier: BSD-2-Clause */
/* INT source, transit, sink: random packets leave as they entered, and are correct in between. */
#include "dataplane/telemetry/int_sink.h"
#include "dataplane/telemetry/int_source.h"
#include "dataplane/test_packets.h"

#define SEEDS 400 /* of each form */

static struct pl_dp_pool *pool;

/* Returns node i, with ids from 1 on; its values follow from id and packet. */
static struct pl_dp_node node_of(uint32_t i)
{
	return (struct pl_dp_node){ .id = 100 + i };
}

static void pass_node(struct pl_dp_packet *pkt, uint32_t i, struct pl_rng *rng)
{
	pkt->in_port = (uint16_t)(1 + i);
	pkt->out_port = (uint16_t)(50 + i);
	pkt->queue = (uint8_t)(i % 8);
	pkt->depth_bytes = (uint32_t)pl_rng_below(rng, 1 << 26);
	pkt->in_ns = UINT64_C(1700000000000000000) + pl_rng_below(rng, UINT64_C(1) << 40);
	pkt->out_ns = pkt->in_ns + pl_rng_below(rng, 1 << 20);
	pkt->tx_util = (uint32_t)pl_rng_below(rng, 65537);
}

/* Returns true when stack block `at` has the node's values. */
static bool block_equals(
	const struct pl_dp_int_found *f, unsigned int at, const struct pl_int_hop *hop)
{
	uint8_t want[4 * PL_INT_HOP_ML_MAX];
	struct pl_build b = pl_build(want, sizeof(want));
	struct pl_int_hop h = *hop;
	size_t n = 4 * (size_t)f->in.layout->words;

	if (f->in.version == PL_INT_V05)
		h.have &= ~PL_INT_HAS(PL_INT_F_PORTS2);
	if (at >= f->in.hops || pl_int_put_block(&b, f->in.layout, &h) < 0)
		return false;
	/* the complement compensates the checksum, which is tested elsewhere */
	if ((f->in.bitmap & PL_INT_CHECKSUM) != 0)
		n -= 4;
	return memcmp(f->in.stack + at * 4 * f->in.layout->words, want, n) == 0;
}

struct form {
	const char *name;
	struct pl_dp_int_source_config c;
	enum test_kind kind;
};

static void round_trips(const struct form *form)
{
	static struct pl_dp_int_source source;
	static struct pl_dp_int_transit transit;
	static struct pl_dp_int_sink sink;
	struct pl_rng rng;
	struct pl_diag diag = { 0 };
	uint32_t done = 0, wrong = 0, values = 0;
	const char *fault = NULL;

	pl_rng_seed(&rng, 1);
	if (!eq(pl_dp_int_source_init(&source, &form->c, &diag), 0, "%s", form->name))
		return;
	pl_dp_int_transit_init(&transit, &source.config.domain);
	pl_dp_int_sink_init(&sink, &source.config.domain);
	for (uint32_t seed = 0; seed < SEEDS; seed++) {
		uint8_t before[TEST_BYTES];
		uint32_t len = test_make(before, &rng, form->kind),
			 hops = (uint32_t)pl_rng_below(&rng, 6);
		struct pl_dp_packet *pkt = pl_dp_packet_of(pool, before, len);
		struct pl_int_hop told[8];
		struct pl_dp_int_sink_look look;
		struct pl_dp_node node = node_of(0);
		enum pl_dp_int_outcome r;

		if (!test_locate(pkt)) {
			wrong++;
			pl_dp_packet_free(pkt);
			continue;
		}
		pass_node(pkt, 0, &rng);
		pl_dp_node_hop(&told[0], &node, pkt);
		r = pl_dp_int_source(&source, &node, pkt);
		if (r != PL_DP_INT_DONE) {
			wrong += pkt->len != len || memcmp(pkt->data, before, len) != 0;
			pl_dp_packet_free(pkt);
			continue;
		}
		done++;
		fault = test_wrong(pkt) != NULL ? test_wrong(pkt) : fault;
		for (uint32_t i = 1; i <= hops; i++) {
			node = node_of(i);
			pass_node(pkt, i, &rng);
			pl_dp_node_hop(&told[i], &node, pkt);
			r = pl_dp_int_transit(&transit, &node, pkt);
			wrong += r !=
				 (form->c.kind == PL_INT_MX ? PL_DP_INT_NO_BLOCK : PL_DP_INT_DONE);
			fault = test_wrong(pkt) != NULL ? test_wrong(pkt) : fault;
		}
		r = pl_dp_int_sink_look(&sink, pkt, &look);
		if (r != PL_DP_INT_DONE) {
			wrong++;
		} else {
			if (form->c.kind == PL_INT_MD) {
				values += look.found.in.hops != hops + 1;
				for (uint32_t i = 0; i <= hops; i++)
					values += !block_equals(&look.found, hops - i, &told[i]);
			}
			pl_dp_int_sink_strip(&sink, &look);
			wrong += pkt->len != len || memcmp(pkt->data, before, len) != 0;
			fault = test_wrong(pkt) != NULL ? test_wrong(pkt) : fault;
		}
		pl_dp_packet_free(pkt);
	}
	eq(wrong, 0, "%s: the original bytes", form->name);
	eq(values, 0, "%s: what the nodes said", form->name);
	streq(fault == NULL ? "" : fault, "", "%s: lengths and checksums", form->name);
	ok(done > SEEDS / 4, "%s: %u of %u were instrumented", form->name, done, SEEDS);
	eq(pl_dp_pool_alive(pool), 0);
}

#define MD(v, ...)                                                                                 \
	{                                                                                          \
		.version = PL_INT_V##v, .kind = PL_INT_MD, __VA_ARGS__                             \
	}
#define MX(...)                                                                                    \
	{                                                                                          \
		.version = PL_INT_V20, .kind = PL_INT_MX, __VA_ARGS__                              \
	}

static const struct form forms[] = {
	{ "0.5 dscp", MD(05, .by = 0), TEST_PLAIN },
	{ "0.5 all bits", MD(05, .bitmap = 0xffff, .max_hops = 7), TEST_PLAIN },
	{ "0.5 port", MD(05, .by = PL_DP_BY_PORT), TEST_PLAIN },
	{ "0.5 gpe", MD(05, .carrier = PL_INT_OVER_GPE), TEST_GPE },
	{ "1.0 dscp", MD(10, .by = 0), TEST_PLAIN },
	{ "1.0 complement", MD(10, .bitmap = 0xff01), TEST_PLAIN },
	{ "1.0 all bits", MD(10, .bitmap = 0xffff), TEST_PLAIN },
	{ "1.0 marker", MD(10, .by = PL_DP_BY_MARKER), TEST_PLAIN },
	{ "1.0 before options", MD(10, .domain = { .tcp_before_options = true }), TEST_PLAIN },
	{ "1.0 a bit of the dscp", MD(10, .domain = { .dscp = 1, .dscp_mask = 1 }), TEST_PLAIN },
	{ "1.0 dscp beyond its mask", MD(10, .domain = { .dscp = 0x17, .dscp_mask = 0x07 }),
		TEST_PLAIN },
	{ "1.0 gpe", MD(10, .carrier = PL_INT_OVER_GPE), TEST_GPE },
	{ "1.0 geneve", MD(10, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0x9000), TEST_GENEVE },
	{ "2.1 dscp", MD(20, .by = 0), TEST_PLAIN },
	{ "2.1 all bits", MD(20, .bitmap = 0xffff), TEST_PLAIN },
	{ "2.1 complement", MD(20, .bitmap = 0xc001), TEST_PLAIN },
	{ "2.1 marker", MD(20, .by = PL_DP_BY_MARKER), TEST_PLAIN },
	{ "2.1 npt 1", MD(20, .by = PL_DP_BY_PORT, .npt = 1), TEST_PLAIN },
	{ "2.1 npt 2", MD(20, .by = PL_DP_BY_PORT, .npt = 2), TEST_PLAIN },
	{ "2.1 npt 2 complement", MD(20, .by = PL_DP_BY_PORT, .npt = 2, .bitmap = 0x8001),
		TEST_PLAIN },
	{ "2.1 gpe", MD(20, .carrier = PL_INT_OVER_GPE), TEST_GPE },
	{ "2.1 vxlan", MD(20, .carrier = PL_INT_OVER_GPE), TEST_VXLAN },
	{ "2.1 vxlan complement", MD(20, .carrier = PL_INT_OVER_GPE, .bitmap = 0x8001),
		TEST_VXLAN },
	{ "2.1 geneve", MD(20, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0x9000), TEST_GENEVE },
	{ "2.1 geneve of another class",
		MD(20, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0x9000,
			.domain = { .geneve_class = 0x00ab }),
		TEST_GENEVE },
	{ "2.1 gre", MD(20, .carrier = PL_INT_OVER_GRE), TEST_GRE },
	{ "2.1 mx", MX(.by = 0), TEST_PLAIN },
	{ "2.1 mx npt 2", MX(.by = PL_DP_BY_PORT, .npt = 2), TEST_PLAIN },
	{ "2.1 mx gre", MX(.carrier = PL_INT_OVER_GRE), TEST_GRE },
};

/* Packets that the source does not change, with their outcomes. */
static void test_not_eligible(void)
{
	static struct pl_dp_int_source source;
	static struct pl_dp_int_transit transit;
	struct pl_dp_int_source_config c = { .version = PL_INT_V10, .kind = PL_INT_MD };
	struct pl_dp_port_ids ports[] = { { 0 }, { .level1 = 1, .mtu = 0 } };
	struct pl_dp_node node = { .id = 1, .ports = ports, .n_ports = 2 };
	struct pl_dp_packet *pkt;
	uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	enum pl_dp_int_outcome r = PL_DP_INT_DONE;
	uint32_t len, hops = 0;
	uint16_t ip_bytes;

	pl_rng_seed(&rng, 5);
	eq(pl_dp_int_source_init(&source, &c, NULL), 0);
	pl_dp_int_transit_init(&transit, &source.config.domain);
	do
		len = test_make(bytes, &rng, TEST_PLAIN);
	while (bytes[12] != 0x08 || bytes[14] != 0x45 || len < 200);
	pkt = pl_dp_packet_of(pool, bytes, len);
	test_locate(pkt);
	pkt->out_port = 1;
	pkt->out_ns = 1;
	ip_bytes = pl_be16(bytes + 16);

	/* MTU: one byte too few for header (12) and block (7 words), then just enough */
	ports[1].mtu = (uint16_t)(ip_bytes + 12 + 28 - 1);
	eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_MTU);
	ok(pkt->len == len && memcmp(pkt->data, bytes, len) == 0, "untouched");
	ports[1].mtu++;
	eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_DONE);
	eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_ALREADY);
	/* M at a transit node; no byte more */
	len = pkt->len;
	eq(pl_dp_int_transit(&transit, &node, pkt), PL_DP_INT_MTU);
	eq(pkt->len, len);
	eq(pkt->data[pkt->headers.payload + 4 + 1], 0x80, "M");
	ok(test_wrong(pkt) == NULL, "and the checksum knows");
	/* E when no hops remain */
	ports[1].mtu = 0;
	for (int i = 0; i < 64; i++) {
		r = pl_dp_int_transit(&transit, &node, pkt);
		hops += r == PL_DP_INT_DONE;
		if (r != PL_DP_INT_DONE)
			break;
	}
	eq(hops, 252 / 7 - 1, "as many as 8 bits of length have room for");
	eq(r, PL_DP_INT_HOP_LIMIT);
	eq(pkt->data[pkt->headers.payload + 4], 0x11, "E");
	ok(test_wrong(pkt) == NULL, "and the checksum knows");
	pl_dp_packet_free(pkt);

	/* a fragment */
	bytes[20] = 0x20;
	bytes[21] = 0;
	pkt = pl_dp_packet_of(pool, bytes, ip_bytes + 14u);
	pkt->headers.fragment = true;
	pkt->headers.l3 = 14;
	pkt->headers.l4 = 34;
	pkt->headers.ip_version = 4;
	pkt->headers.proto = PL_IP_UDP;
	eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_FRAGMENT);
	pkt->headers.fragment = false;
	pkt->headers.proto = PL_IP_ICMP;
	eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_TRANSPORT);
	pkt->headers.proto = PL_IP_UDP;
	pkt->len -= 1;
	eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_MALFORMED);
	pkt->headers.l3 = PL_DP_NONE;
	eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_NOT_IP);
	pl_dp_packet_free(pkt);
}

/* Packets that have the domain's DSCP and port by chance, where all announcements are accepted: the
 * sink still finds the source's header. */
static void coincidences(const struct form *form)
{
	static struct pl_dp_int_source source;
	static struct pl_dp_int_transit transit;
	static struct pl_dp_int_sink sink;
	struct pl_dp_int_source_config c = form->c;
	const struct pl_dp_node node = node_of(0);
	uint32_t done = 0, wrong = 0;
	struct pl_rng rng;

	c.domain.by = PL_DP_BY_DSCP | PL_DP_BY_PORT | PL_DP_BY_MARKER | PL_DP_BY_TUNNEL;
	pl_rng_seed(&rng, 7);
	eq(pl_dp_int_source_init(&source, &c, NULL), 0);
	pl_dp_int_transit_init(&transit, &source.config.domain);
	pl_dp_int_sink_init(&sink, &source.config.domain);
	for (uint32_t i = 0; i < 300; i++) {
		uint8_t before[TEST_BYTES];
		uint32_t len = test_make(before, &rng, form->kind);
		struct pl_dp_packet *pkt = pl_dp_packet_of(pool, before, len);
		struct pl_dp_int_sink_look look;
		struct pl_dp_edit e;

		test_locate(pkt);
		eq(pl_dp_edit_open(&e, pkt), PL_DP_EDIT_OK);
		if (i % 3 != 0)
			pl_dp_edit_put_dscp(&e, source.config.domain.dscp);
		if (i % 3 != 1 && form->kind == TEST_PLAIN && e.proto == PL_IP_UDP)
			pl_dp_edit_put16(&e, e.l4 + 2, source.config.domain.port);
		pl_dp_edit_close(&e);
		memcpy(before, pkt->data, len);
		pkt->out_ns = 1;
		if (pl_dp_int_source(&source, &node, pkt) == PL_DP_INT_DONE) {
			done++;
			wrong += pl_dp_int_transit(&transit, &node, pkt) !=
				 (c.kind == PL_INT_MX ? PL_DP_INT_NO_BLOCK : PL_DP_INT_DONE);
			if (pl_dp_int_sink_look(&sink, pkt, &look) == PL_DP_INT_DONE)
				pl_dp_int_sink_strip(&sink, &look);
			wrong += pkt->len != len || memcmp(pkt->data, before, len) != 0;
		}
		pl_dp_packet_free(pkt);
	}
	eq(wrong, 0, "%s: DSCP and port of their own", form->name);
	ok(done > 75, "%s: %u were instrumented", form->name, done);
}

/* NPT 2 whose transport header behind INT is missing, or claims what is not there: nothing is removed, since the packet
 * would be malformed without INT. */
static void test_cut_behind(void)
{
	static const struct {
		bool tcp;
		uint8_t at, value;
	} wrong[] = { { false, 5, 7 }, { false, 5, 9 }, { true, 12, 4 << 4 },
		{ true, 12, 6 << 4 } };
	static struct pl_dp_int_source source;
	static struct pl_dp_int_sink sink;
	const struct pl_dp_int_source_config c = MD(20, .by = PL_DP_BY_PORT, .npt = 2);
	const struct pl_dp_node node = { .id = 1 };
	struct pl_dp_int_sink_look look;
	struct pl_dp_packet *pkt;
	uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	uint32_t len, min, end, shim, behind_int;

	pl_rng_seed(&rng, 6);
	eq(pl_dp_int_source_init(&source, &c, NULL), 0);
	pl_dp_int_sink_init(&sink, &source.config.domain);
	for (int tcp = 0; tcp < 2; tcp++) {
		do {
			len = test_make(bytes, &rng, TEST_PLAIN);
			pkt = pl_dp_packet_of(pool, bytes, len);
			if (test_locate(pkt) && pkt->headers.ip_version == 4 && len > 100 &&
				pkt->headers.proto == (tcp ? PL_IP_TCP : PL_IP_UDP))
				break;
			pl_dp_packet_free(pkt);
		} while (true);
		pkt->out_ns = 1;
		eq(pl_dp_int_source(&source, &node, pkt), PL_DP_INT_DONE);
		eq(pl_dp_int_sink_look(&sink, pkt, &look), PL_DP_INT_DONE);
		min = tcp ? 20 : 8;
		shim = look.found.shim;
		behind_int = look.found.end;
		if (tcp)
			pkt->data[behind_int + 12] = 5 << 4;
		else
			memcpy(pkt->data + behind_int + 4, (const uint8_t[]){ 0, 8 }, 2);
		for (uint32_t behind = 0; behind <= min; behind++) {
			end = behind_int + behind - pkt->headers.l4;
			pkt->data[pkt->headers.l4 + 4] = (uint8_t)(end >> 8);
			pkt->data[pkt->headers.l4 + 5] = (uint8_t)end;
			eq(pl_dp_int_sink_look(&sink, pkt, &look),
				behind == min ? PL_DP_INT_DONE : PL_DP_INT_MALFORMED,
				"%u bytes of it", behind);
		}
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			uint8_t *byte = pkt->data + behind_int + wrong[i].at, before = *byte;

			if (wrong[i].tcp != (tcp != 0))
				continue;
			*byte = wrong[i].value;
			eq(pl_dp_int_sink_look(&sink, pkt, &look), PL_DP_INT_MALFORMED,
				"%s whose length is wrong", tcp ? "TCP" : "UDP");
			*byte = before;
		}
		pkt->data[shim + 3] = PL_IP_DSTOPTS;
		eq(pl_dp_int_sink_look(&sink, pkt, &look), PL_DP_INT_MALFORMED,
			"an extension header");
		pl_dp_packet_free(pkt);
	}
}

static void test_refused(void)
{
	static const struct pl_dp_int_source_config wrong[] = {
		MD(10, .by = PL_DP_BY_PORT),
		MD(05, .by = PL_DP_BY_MARKER),
		MD(10, .carrier = PL_INT_OVER_GRE),
		{ .version = PL_INT_V10, .kind = PL_INT_MX },
		MD(20, .by = PL_DP_BY_DSCP, .npt = 2),
		MD(20, .by = 3),
		MD(20, .carrier = PL_INT_OVER_GPE, .by = PL_DP_BY_DSCP),
		MD(10, .carrier = PL_INT_OVER_GENEVE, .bitmap = 0xffff, .max_hops = 1, .npt = 1),
	};
	static struct pl_dp_int_source source;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pl_diag diag = { 0 };

		eq(pl_dp_int_source_init(&source, &wrong[i], &diag), -22);
		ok(diag.text[0] != '\0', "%s", diag.text);
	}
}

int main(void)
{
	eq(pl_dp_pool_new(&pool, 4096, 16), 0);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		round_trips(&forms[i]);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		coincidences(&forms[i]);
	test_not_eligible();
	test_cut_behind();
	test_refused();
	pl_dp_pool_free(pool);
	return pl_test_done();
}
