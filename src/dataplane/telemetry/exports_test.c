/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that a node itself sends, read by the receivers' parsers. */
#include "dataplane/telemetry/exports.h"
#include "dataplane/test_packets.h"
#include "wire/roce.h"

static struct pl_dp_pool *pool;
static const uint8_t a[8] = { 10, 1, 1, 1, 10, 1, 1, 2 };

static struct pl_dp_packet *packet(struct pl_layers *ret)
{
	static uint8_t bytes[TEST_BYTES];
	struct pl_rng rng;
	struct pl_dp_packet *pkt;
	uint32_t len;

	pl_rng_seed(&rng, 77);
	len = test_make(bytes, &rng, TEST_PLAIN);
	pkt = pl_dp_packet_of(pool, bytes, len);
	test_locate(pkt);
	pl_layers_walk(ret, pl_cursor(bytes, len), PL_LINK_ETHERNET, false);
	pkt->in_port = 3;
	pkt->out_port = 4;
	pkt->queue = 5;
	pkt->depth_bytes = 6000;
	pkt->in_ns = UINT64_C(1700000000000000123);
	pkt->out_ns = pkt->in_ns + 777;
	return pkt;
}

/* Returns the payload of a datagram of the node; empty when it is not the expected one. */
static struct pl_cursor payload(struct pl_dp_packet *pkt, uint16_t dport)
{
	struct pl_layers l;

	if (pkt == NULL || !test_locate(pkt) || test_wrong(pkt) != NULL ||
		pl_layers_walk(&l, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, false) !=
			PL_V_OK ||
		l.flow.dport != dport)
		return pl_cursor(a, 0);
	return l.payload;
}

static void test_records(void)
{
	struct pl_dp_recorder_config c = { .to = { .src = pl_addr_v4(a), .dst = pl_addr_v4(a + 4) },
		.kind = PL_FLAT_PKT96,
		.records = 3,
		.point = 9,
		.exporter = 42 };
	struct pl_dp_recorder *r = NULL;
	struct pl_layers l;
	struct pl_dp_packet *pkt = packet(&l), *out = NULL;
	struct pl_tmpkt head = { 0 };
	const uint8_t *records = NULL;
	struct pl_pkt96 first = { 0 };
	struct pl_cursor p;

	eq(pl_dp_recorder_new(&r, &c, pool, NULL), 0);
	ok(pl_dp_record(r, pkt) == NULL && pl_dp_record(r, pkt) == NULL, "two wait");
	out = pl_dp_record(r, pkt);
	p = payload(out, PL_TMPKT_PORT);
	eq(pl_tmpkt_parse(&head, &records, p.pos, pl_cursor_left(&p)), PL_TMPKT_OK);
	eq(head.count, 3);
	eq(head.exporter, 42);
	if (records != NULL)
		memcpy(&first, records, sizeof(first));
	eq(first.ts_ns, pkt->in_ns);
	eq(first.sport, l.flow.sport);
	eq(first.obs & PL_OBS_POINT_MASK, 9);
	ok(pl_addr_equal(&first.dst, &l.flow.dst), "its destination");
	pl_dp_packet_free(out);
	eq(pl_dp_recorder_counts(r)->waiting, 0);
	ok(pl_dp_record(r, pkt) == NULL && pl_dp_record(r, pkt) == NULL, "two wait again");
	eq(pl_dp_recorder_counts(r)->waiting, 2);
	out = pl_dp_record(r, pkt);
	p = payload(out, PL_TMPKT_PORT);
	eq(pl_tmpkt_parse(&head, &records, p.pos, pl_cursor_left(&p)), PL_TMPKT_OK);
	eq(head.seq, 1);
	pl_dp_packet_free(out);
	pl_dp_recorder_free(r);
	c.records = 10000;
	eq(pl_dp_recorder_new(&r, &c, pool, NULL), -22);
	pl_dp_packet_free(pkt);
}

static struct pl_pack fields(const char *const *names, size_t n)
{
	struct pl_pack p;

	eq(pl_pack_init(&p, PL_KIND_HOP, names, n, NULL), 0);
	return p;
}

#define FIELDS(...)                                                                                \
	fields((const char *const[]){ __VA_ARGS__ },                                               \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void test_dta(void)
{
	const struct pl_dp_node node = { .id = 0x01020304 };
	struct pl_dp_dta_config c = { .to = { .src = pl_addr_v4(a), .dst = pl_addr_v4(a + 4) },
		.op = PL_DTA_KEY_WRITE,
		.store = 7,
		.copies = 2,
		.key = FIELDS("flow", "node"),
		.value = FIELDS("queue_depth", "hop_latency_ns") };
	struct pl_dp_dta d;
	struct pl_layers l;
	struct pl_dp_packet *pkt = packet(&l), *out;
	struct pl_dta_report r;
	struct pl_cursor p;
	uint64_t in_ns;

	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	out = pl_dp_dta(&d, &node, pkt);
	p = payload(out, PL_PORT_DTA);
	eq(pl_dta_next(&p, PL_DTA_PLAIN, &r), PL_DTA_OK);
	eq(r.op, PL_DTA_KEY_WRITE);
	eq(r.store, 7);
	eq(r.copies, 2);
	eq(r.key_bytes, 45);
	memeq(r.key, l.flow.src.b, 16);
	eq(r.data_bytes, 8);
	memeq(r.data, ((const uint32_t[]){ 6000, 777 }), 8);
	pl_dp_packet_free(out);

	/* egress values are unknown before the queue: no report, and counted */
	pkt->out_ns = 0;
	ok(pl_dp_dta(&d, &node, pkt) == NULL && d.missing == 1, "a field is missing");
	pkt->out_ns = pkt->in_ns + 777;

	/* before the output port is chosen, port and queue are unknown */
	c.value = FIELDS("egress_port");
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	pkt->out_ns = 0;
	pkt->out_port = 0;
	ok(pl_dp_dta(&d, &node, pkt) == NULL && d.missing == 1, "no port yet");
	pkt->out_port = 2;
	out = pl_dp_dta(&d, &node, pkt);
	ok(out != NULL, "chosen");
	pl_dp_packet_free(out);
	c.value = FIELDS("queue_depth");
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	ok(pl_dp_dta(&d, &node, pkt) == NULL && d.missing == 1, "no queue yet");
	pkt->drop = PL_DP_DROP_QUEUE;
	out = pl_dp_dta(&d, &node, pkt);
	ok(out != NULL, "a queue without room has a depth");
	pl_dp_packet_free(out);
	pkt->drop = PL_DP_GOES_ON;

	/* the clock was set back between arrival and departure */
	c.value = FIELDS("hop_latency_ns");
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	pkt->out_ns = pkt->in_ns - 1;
	ok(pl_dp_dta(&d, &node, pkt) == NULL && d.missing == 1, "no latency");
	pkt->out_ns = pkt->in_ns + 777;

	c.op = PL_DTA_POSTCARD;
	c.value = FIELDS("queue_depth");
	c.hop = 3;
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	out = pl_dp_dta(&d, &node, pkt);
	p = payload(out, PL_PORT_DTA);
	eq(pl_dta_next(&p, PL_DTA_PLAIN, &r), PL_DTA_OK);
	eq(r.op, PL_DTA_POSTCARD);
	eq(r.value, 6000);
	eq(r.hop, 3);
	pl_dp_packet_free(out);

	/* a path is of nodes, whose ids have 64 bits in records; a postcard has room for 32 */
	c.value = FIELDS("node");
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	out = pl_dp_dta(&d, &node, pkt);
	p = payload(out, PL_PORT_DTA);
	eq(pl_dta_next(&p, PL_DTA_PLAIN, &r), PL_DTA_OK);
	eq(r.value, 0x01020304);
	pl_dp_packet_free(out);
	c.value = FIELDS("ingress_ts_ns");
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	in_ns = pkt->in_ns;
	pkt->in_ns = UINT32_MAX - 1;
	out = pl_dp_dta(&d, &node, pkt);
	ok(out != NULL, "32 bits");
	pl_dp_packet_free(out);
	pkt->in_ns = UINT64_C(1) << 32;
	ok(pl_dp_dta(&d, &node, pkt) == NULL && d.missing == 1, "too large");
	pkt->in_ns = in_ns;

	c.op = PL_DTA_INCREMENT;
	c.value.n = 0;
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	out = pl_dp_dta(&d, &node, pkt);
	p = payload(out, PL_PORT_DTA);
	eq(pl_dta_next(&p, PL_DTA_PLAIN, &r), PL_DTA_OK);
	eq(r.increment, 1);
	pl_dp_packet_free(out);

	c.op = PL_DTA_APPEND;
	c.list = 12;
	c.value = FIELDS("node", "egress_port");
	eq(pl_dp_dta_init(&d, &c, pool, NULL), 0);
	out = pl_dp_dta(&d, &node, pkt);
	p = payload(out, PL_PORT_DTA);
	eq(pl_dta_next(&p, PL_DTA_PLAIN, &r), PL_DTA_OK);
	eq(r.list, 12);
	eq(r.data_bytes, 12);
	pl_dp_packet_free(out);

	c.op = PL_DTA_NACK;
	eq(pl_dp_dta_init(&d, &c, pool, NULL), -22);
	c.op = PL_DTA_KEY_WRITE;
	c.key.n = 0;
	eq(pl_dp_dta_init(&d, &c, pool, NULL), -22);
	pl_dp_packet_free(pkt);
}

static void test_roce(void)
{
	const struct pl_dp_node node = { .id = 5 };
	struct pl_dp_roce_config c = { .to = { .src = pl_addr_v4(a), .dst = pl_addr_v4(a + 4) },
		.service = PL_ROCE_UC,
		.qpn = 0x123456,
		.psn = 0xffffff,
		.rkey = 0xabcdef01,
		.va = UINT64_C(0x100000000),
		.slots = 2,
		.slot_bytes = 16,
		.value = FIELDS("node", "queue_depth") };
	const uint64_t at[] = { 0, 16, 0 };
	const uint32_t psn[] = { 0xffffff, 0, 1 };
	struct pl_dp_roce r;
	struct pl_layers l;
	struct pl_dp_packet *pkt = packet(&l);

	eq(pl_dp_roce_init(&r, &c, pool, NULL), 0);
	for (int i = 0; i < 3; i++) {
		struct pl_dp_packet *out = pl_dp_roce_write(&r, &node, pkt);
		struct pl_roce w;

		if (!ok(out != NULL, "a WRITE"))
			continue;
		/* the parser checks the ICRC */
		eq(pl_roce_parse(&w, pl_cursor(out->data, out->len), PL_LINK_ETHERNET),
			PL_ROCE_F_OK);
		eq(w.opcode, PL_ROCE_UC | PL_ROCE_WRITE_ONLY);
		eq(w.qpn, 0x123456);
		eq(w.rkey, 0xabcdef01);
		eq(w.psn, psn[i]);
		eq(w.va, c.va + at[i]);
		eq(w.length, 12);
		eq(pl_cursor_left(&w.payload), 12);
		memeq(w.payload.pos, ((const uint32_t[]){ 5, 0, 6000 }), 12);
		pl_dp_packet_free(out);
	}
	/* a register left by an entry with more slots */
	{
		uint64_t shared[2] = { 9, 7 };
		struct pl_dp_packet *out;
		struct pl_roce w = { .va = 0 };

		r.shared = shared;
		out = pl_dp_roce_write(&r, &node, pkt);
		if (ok(out != NULL, "a WRITE"))
			eq(pl_roce_parse(&w, pl_cursor(out->data, out->len), PL_LINK_ETHERNET),
				PL_ROCE_F_OK);
		eq(w.va, c.va, "inside the peer's slots");
		eq(shared[1], 1);
		pl_dp_packet_free(out);
	}
	/* as the P4-to-RDMA switch writes */
	{
		struct pl_dp_packet *out;
		struct pl_roce w = { .va = 0 };

		c.service = PL_ROCE_RC;
		c.v1 = c.has_imm = true;
		c.imm = 0x41414141;
		eq(pl_dp_roce_init(&r, &c, pool, NULL), 0);
		out = pl_dp_roce_write(&r, &node, pkt);
		if (ok(out != NULL, "a WRITE"))
			eq(pl_roce_parse(&w, pl_cursor(out->data, out->len), PL_LINK_ETHERNET),
				PL_ROCE_F_OK);
		eq(w.opcode, 0x0b);
		eq(w.imm, 0x41414141);
		ok(w.path.v1 && w.ack_req && w.migrated, "RoCEv1, acknowledged if anybody does");
		ok(pl_addr_equal(&w.path.src, &c.to.src) && pl_addr_equal(&w.path.dst, &c.to.dst),
			"GIDs");
		pl_dp_packet_free(out);
	}
	c.slot_bytes = 11;
	eq(pl_dp_roce_init(&r, &c, pool, NULL), -22);
	pl_dp_packet_free(pkt);
}

int main(void)
{
	eq(pl_dp_pool_new(&pool, 12000, 8), 0);
	test_records();
	test_dta();
	test_roce();
	eq(pl_dp_pool_alive(pool), 0);
	pl_dp_pool_free(pool);
	return pl_test_done();
}
