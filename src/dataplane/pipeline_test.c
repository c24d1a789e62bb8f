/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine from a file to packets: places of errors, actions, changes of entries,
 * and accounts that agree for any input. */
#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "base/test.h"
#include "dataplane/meter.h"
#include "dataplane/parse.h"
#include "dataplane/program.h"
#include "dataplane/rewrite.h"
#include "dataplane/test_frames.h"

#define OUT_MAX 64

/* ---- a pipeline that keeps what comes out ---- */

struct bench {
	struct pl_dp_pool *pool;
	struct pl_dp_pipeline *p;
	struct pl_dp_packet *out[OUT_MAX];
	unsigned int n, drops[PL_DP_DROP_MAX];
};

static void keep(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct bench *b = arg;

	(void)stage;
	if (b->n < OUT_MAX)
		b->out[b->n++] = pkt;
	else
		pl_dp_packet_free(pkt);
}

static void note_drop(void *arg, const struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct bench *b = arg;

	(void)stage;
	b->drops[pkt->drop]++;
}

static void empty(struct bench *b)
{
	while (b->n > 0)
		pl_dp_packet_free(b->out[--b->n]);
}

static int build(struct bench *b, const char *text, const struct pl_dp_extern *const *externs,
	struct pl_diag *diag)
{
	struct pl_dp_program program;
	struct pl_dp_pipeline_options o = { .ops = { .out = keep, .dropped = note_drop, .arg = b },
		.externs = externs };
	int r;

	*b = (struct bench){ 0 };
	r = pl_dp_program_parse(&program, "s.yaml", text, strlen(text), diag);
	if (r < 0)
		return r;
	(void)pl_dp_pool_new(&b->pool, PL_DP_HEADROOM + FRAME_MAX, 1000);
	o.pool = b->pool;
	r = pl_dp_program_build(&program, &o, NULL, &b->p, diag);
	pl_dp_program_done(&program);
	if (r < 0)
		pl_dp_pool_free(b->pool);
	return r;
}

static void done(struct bench *b)
{
	empty(b);
	pl_dp_pipeline_free(b->p);
	eq(pl_dp_pool_alive(b->pool), 0, "every packet came back");
	pl_dp_pool_free(b->pool);
}

static void ingress(struct bench *b, const struct frame *f, uint16_t port, uint64_t ns)
{
	struct pl_dp_packet *pkt = pl_dp_packet_of(b->pool, f->bytes, f->len);

	pkt->in_port = port;
	pkt->in_ns = ns;
	pl_dp_pipeline_ingress(b->p, &pkt, 1);
}

static void account_agree(const struct bench *b, enum pl_dp_stage stage)
{
	const struct pl_dp_account *k = pl_dp_pipeline_account(b->p, stage);
	uint64_t sum = k->out + k->consumed;

	for (unsigned int i = 0; i < PL_DP_DROP_MAX; i++)
		sum += k->dropped[i];
	eq(sum, k->in + k->made, "accounts of stage %d agree", stage);
}

/* ---- files ---- */

#define HEAD                                                                                       \
	"ports:\n  - { number: 1, uri: \"packet:a\" }\n  - { number: 2, uri: \"packet:b\" }\n"     \
	"  - { number: 3, uri: \"packet:c\" }\n"

static const char router[] = HEAD "name: s1\n"
				  "tables:\n"
				  "  - name: routes\n"
				  "    key: [ ip.dst prefix ]\n"
				  "    entries:\n"
				  "      - ip.dst=10.0.1.0/24 -> route 1 02:00:00:00:00:11\n"
				  "      - ip.dst=10.0.0.0/8 -> route 2 02:00:00:00:00:12\n"
				  "      - ip.dst=fd00::/16 -> route 2 02:00:00:00:00:12\n";

static void test_places(void)
{
	static const struct {
		const char *text, *says;
		unsigned int line, column;
	} cases[] = {
		{ "port: []\n", "did you mean \"ports\"", 1, 1 },
		{ "tables: []\n", "\"ports\" is missing", 1, 1 },
		{ HEAD "tables:\n  - name: t\n    kee: [ ip.dst prefix ]\n", "did you mean \"key\"",
			7, 5 },
		{ HEAD "tables:\n  - name: t\n    key: [ ip.dst prefix, l4.dts exact ]\n",
			"did you mean \"l4.dst\"", 7, 27 },
		{ HEAD "tables:\n  - name: t\n    key: [ ip.dst prefix ]\n    entries:\n"
		       "      - ip.dst=10.0.0.0/8 -> forward 1\n"
		       "      - ip.dst=10.0.0.0/9 -> forwrad 1\n",
			"did you mean \"forward\"", 10, 9 },
		{ HEAD "tables:\n  - name: t\n    key: [ ip.dst prefix ]\n    entries:\n"
		       "      - ip.dst=10.0.0.0/8 -> forward 4\n",
			"\"4\" is not the number of a port", 9, 9 },
		{ HEAD "tables:\n  - name: t\n    key: [ ip.dst prefix ]\n    entries:\n"
		       "      - ip.dst=10.0.0.0/8\n",
			"has no actions", 9, 9 },
		{ HEAD "tables:\n  - name: t\n    key: [ ip.dst prefix ]\n    entries:\n"
		       "      - ip.dst=10.0.0.0/8 -> drop\n      - ip.dst=10.0.0.0/8 -> flood\n",
			"matches the same", 10, 9 },
		{ HEAD "tables:\n  - name: t\n    miss: count hist\ncounters: [ { name: hits } ]\n",
			"did you mean \"hits\"", 7, 11 },
		{ HEAD "tables:\n  - name: t\n    miss: count hits[9]\ncounters: [ { name: hits } ]\n",
			"has 1 cells", 7, 11 },
		{ HEAD "tables:\n  - name: t\n    stage: egress\n    miss: forward 1\n",
			"for ingress tables", 8, 11 },
		{ HEAD "tables:\n  - name: t\n    miss: goto t\n", "not a later table", 7, 11 },
		{ HEAD "tables:\n  - name: t\n    miss: set length 5\n", "cannot be set", 7, 11 },
		{ HEAD "tables:\n  - name: t\n    miss: forward\n", "write \"forward PORT\"", 7,
			11 },
		{ HEAD "groups:\n  - name: g\n    members: [ forward 1, select g ]\n",
			"not for members", 7, 27 },
		{ HEAD "  - { number: 2, uri: \"packet:d\" }\n", "a port 2 already", 5, 15 },
		{ HEAD "meters: [ { name: m, rate: 10M, peak_rate: 5M } ]\n", "peak rate", 5, 11 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_diag diag = { .text = "" };
		struct bench b;
		int r = build(&b, cases[i].text, NULL, &diag);

		ok(r == -EINVAL && strstr(diag.text, cases[i].says) != NULL &&
				diag.line == cases[i].line && diag.column == cases[i].column &&
				strcmp(diag.file, "s.yaml") == 0,
			"%s: %u:%u: %s", cases[i].says, diag.line, diag.column, diag.text);
		if (r == 0)
			done(&b);
	}
}

/* ---- the parser ---- */

/* Ends with its memory, so that the address sanitizer detects reads past the end. */
static struct pl_dp_packet *at_end(struct pl_dp_pool *pool, const struct frame *f, uint32_t len)
{
	struct pl_dp_packet *pkt = pl_dp_packet_new(pool, len);

	pkt->data = (uint8_t *)(pkt + 1) + pkt->size - len;
	memcpy(pkt->data, f->bytes, len);
	return pkt;
}

/* Returns true when fast and slow path parse a frame alike. */
static bool same_parse(struct pl_dp_pool *pool, const struct frame *f, uint32_t len)
{
	struct pl_dp_packet *a = at_end(pool, f, len), *b = at_end(pool, f, len);
	const bool whole = pl_dp_parse(a),
		   same = whole == pl_dp_parse_any(b) && a->drop == b->drop &&
			  (!whole || memcmp(&a->headers, &b->headers, sizeof(a->headers)) == 0);

	pl_dp_packet_free(a);
	pl_dp_packet_free(b);
	return same;
}

static void test_parse_usual(void)
{
	struct pl_dp_pool *pool = NULL;
	struct pl_rng rng;
	struct frame f;
	int differ = 0;

	pl_rng_seed(&rng, 5);
	(void)pl_dp_pool_new(&pool, PL_DP_HEADROOM + FRAME_MAX, 10);
	for (int round = 0; round < 50000; round++) {
		random_frame(&rng, &f);
		/* Damages the headers of most frames. */
		for (uint64_t i = pl_rng_below(&rng, 4); i > 0; i--)
			f.bytes[12 + pl_rng_below(&rng, 66)] = (uint8_t)pl_rng_u64(&rng);
		differ += !same_parse(pool, &f, f.len);
		differ += !same_parse(pool, &f, (uint32_t)pl_rng_below(&rng, f.len));
	}
	eq(differ, 0, "the fast path for usual packets finds what the walk over all headers finds");
	pl_dp_pool_free(pool);
}

static void test_parse(void)
{
	struct pl_dp_pool *pool = NULL;
	struct pl_dp_packet *pkt;
	struct pl_rng rng;
	struct frame f;
	uint32_t hash;
	int wrong = 0, cut = 0;

	pl_rng_seed(&rng, 3);
	(void)pl_dp_pool_new(&pool, PL_DP_HEADROOM + FRAME_MAX, 10);
	for (int round = 0; round < 2000; round++) {
		random_frame(&rng, &f);
		pkt = pl_dp_packet_of(pool, f.bytes, f.len);
		wrong += !pl_dp_parse(pkt) || !sums_right(pkt);
		wrong += pkt->headers.vlan != (f.bytes[12] == 0x81 ? 12 : PL_DP_NONE);
		pl_dp_packet_free(pkt);
		/* A frame that is cut anywhere is malformed: its lengths exceed it. */
		pkt = pl_dp_packet_of(pool, f.bytes, (uint32_t)pl_rng_below(&rng, f.len));
		cut += !pl_dp_parse(pkt) && pkt->drop == PL_DP_DROP_MALFORMED;
		pl_dp_packet_free(pkt);
	}
	eq(wrong, 0, "whole frames are parsed");
	eq(cut, 2000, "cut frames are malformed");

	make_frame(&f, &(struct want){ .tcp = true,
			       .payload = 20,
			       .ttl = 64,
			       .flow = { .src = pl_addr_v4("\x0a\0\0\1"),
				       .dst = pl_addr_v4("\x0a\0\0\2"),
				       .sport = 1,
				       .dport = 2,
				       .proto = PL_IP_TCP,
				       .have = PL_FLOW_PORTS } });
	f.bytes[14 + 6] = 0x20; /* more fragments */
	pkt = pl_dp_packet_of(pool, f.bytes, f.len);
	ok(pl_dp_parse(pkt) && pkt->headers.fragment && pkt->headers.l4 == 34,
		"a first fragment has its transport");
	hash = pl_dp_flow_hash(pkt);
	pl_dp_packet_free(pkt);
	f.bytes[14 + 6] = 0x00;
	f.bytes[14 + 7] = 0x08;
	pkt = pl_dp_packet_of(pool, f.bytes, f.len);
	ok(pl_dp_parse(pkt) && pkt->headers.fragment && pkt->headers.l4 == PL_DP_NONE,
		"a later one has not");
	eq(pl_dp_flow_hash(pkt), hash, "and all have one hash");
	pl_dp_packet_free(pkt);
	pl_dp_pool_free(pool);
}

/* ---- routing ---- */

static const struct want to_10 = { .payload = 86,
	.ttl = 64,
	.flow = { .proto = PL_IP_UDP, .sport = 1000, .dport = 2000, .have = PL_FLOW_PORTS } };

static struct frame packet_to(const char dst[4], uint8_t ttl, uint32_t payload)
{
	struct want w = to_10;
	struct frame f;

	w.flow.src = pl_addr_v4("\x0a\1\1\1");
	w.flow.dst = pl_addr_v4(dst);
	w.ttl = ttl;
	w.payload = payload;
	make_frame(&f, &w);
	return f;
}

static void test_route(void)
{
	struct pl_diag diag = { .text = "" };
	struct bench b;
	struct frame f;

	if (!ok(build(&b, router, NULL, &diag) == 0, "%s", diag.text))
		return;
	f = packet_to("\x0a\0\1\5", 64, 86);
	ingress(&b, &f, 2, 1);
	ok(b.n == 1 && b.out[0]->out_port == 1 && b.out[0]->data[14 + 8] == 63 &&
			pl_dp_mac_get(b.out[0]->data) == 0x020000000011 &&
			pl_dp_mac_get(b.out[0]->data + 6) == 0x020000010001 && sums_right(b.out[0]),
		"the longest prefix, TTL, MAC addresses, checksums");
	empty(&b);
	f = packet_to("\x0a\7\7\7", 64, 86);
	ingress(&b, &f, 1, 1);
	ok(b.n == 1 && b.out[0]->out_port == 2, "the shorter prefix");
	f = packet_to("\x0b\7\7\7", 64, 86);
	ingress(&b, &f, 1, 1);
	eq(b.drops[PL_DP_DROP_NO_ROUTE], 1);
	f = packet_to("\x0a\7\7\7", 1, 86);
	ingress(&b, &f, 1, 1);
	eq(b.drops[PL_DP_DROP_TTL], 1);
	f = packet_to("\x0a\7\7\7", 64, 1473);
	ingress(&b, &f, 1, 1);
	eq(b.drops[PL_DP_DROP_MTU], 1);
	f = packet_to("\x0a\7\7\7", 64, 1472);
	ingress(&b, &f, 1, 1);
	eq(b.drops[PL_DP_DROP_MTU], 1, "1500 bytes fit");
	f.bytes[14 + 10] ^= 1;
	ingress(&b, &f, 1, 1);
	eq(b.drops[PL_DP_DROP_MALFORMED], 1, "a header with a wrong checksum is not routed");
	pl_dp_pipeline_port_up(b.p, 2, false);
	f = packet_to("\x0a\7\7\7", 64, 86);
	ingress(&b, &f, 1, 1);
	eq(b.drops[PL_DP_DROP_PORT], 1);
	account_agree(&b, PL_DP_INGRESS);
	done(&b);
}

/* ---- actions ---- */

static const char actions[] =
	HEAD "counters: [ { name: hits, size: 8 } ]\n"
	     "registers: [ { name: last, size: 4 } ]\n"
	     "meters: [ { name: m, rate: 8k, burst: 300B } ]\n"
	     "groups: [ { name: up, members: [ forward 2, forward 3 ] } ]\n"
	     "tables:\n"
	     "  - name: first\n"
	     "    key: [ l4.dst exact ]\n"
	     "    entries:\n"
	     "      - l4.dst=1 -> flood\n"
	     "      - l4.dst=2 -> mirror 3; set l4.dst 99; forward 2\n"
	     "      - l4.dst=3 -> select up\n"
	     "      - l4.dst=4 -> write last[1] +5; read last[1]; goto third\n"
	     "      - l4.dst=5 -> forward 1; stop\n"
	     "      - l4.dst=6 -> police m; forward 1\n"
	     "      - l4.dst=7 -> mark 9; count hits[mark]; queue 3; forward 2\n"
	     "      - l4.dst=8 -> push_vlan 100; push_vlan 200; pop_vlan; forward 2\n"
	     "      - l4.dst=9 -> drop; forward 2\n"
	     "      - l4.dst=10 -> push_vlan 100; push_svlan 200; set vlan.pcp 5; forward 2\n"
	     "      - l4.dst=11 -> route 2 02:00:00:00:00:05\n"
	     "      - l4.dst=12 -> ttl; set ip.dscp 5; set l4.src 7; forward 3\n"
	     "      - l4.dst=13 -> meter m; first last[2] 0s/1s; forward 3\n"
	     "  - name: second\n"
	     "    miss: count hits[2]\n"
	     "  - name: third\n"
	     "    key: [ value range ]\n"
	     "    entries:\n"
	     "      - value=10-12 -> forward 3\n";

static struct frame packet_for(uint16_t dport, uint16_t sport)
{
	struct want w = to_10;
	struct frame f;

	w.flow.src = pl_addr_v4("\x0a\1\1\1");
	w.flow.dst = pl_addr_v4("\x0a\2\2\2");
	w.flow.sport = sport;
	w.flow.dport = dport;
	make_frame(&f, &w);
	return f;
}

static uint64_t cells[8][3];

static void note_cell(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	(void)arg;
	(void)name;
	memcpy(cells[index], values, sizeof(cells[index]));
}

static void test_groups(struct bench *b)
{
	unsigned int by[4] = { 0 };
	struct frame f;
	int strayed = 0;

	for (uint16_t sport = 1; sport <= 400; sport++) {
		uint16_t port;

		f = packet_for(3, sport);
		ingress(b, &f, 1, 1);
		port = b->out[0]->out_port;
		by[port & 3]++;
		empty(b);
		ingress(b, &f, 1, 1);
		strayed += b->out[0]->out_port != port;
		empty(b);
	}
	eq(strayed, 0, "a flow keeps its path");
	ok(by[2] > 140 && by[3] > 140 && by[2] + by[3] == 400, "%u and %u flows", by[2], by[3]);
}

/* In a chain of two nodes the second one uses all of its paths for the flows of each path of the
 * first one. */
static void test_chain_of_groups(void)
{
	static const char text[] =
		HEAD "id: %u\n"
		     "groups: [ { name: up, members: [ forward 2, forward 3 ] } ]\n"
		     "tables: [ { name: all, miss: select up } ]\n";
	struct pl_diag diag = { .text = "" };
	unsigned int one_sided = 0;
	uint16_t first[400] = { 0 };

	for (unsigned int id = 1; id <= 20; id++) {
		unsigned int by[2][2] = { { 0 } };
		char node[sizeof(text) + 8];
		struct bench b;

		snprintf(node, sizeof(node), text, id);
		if (!ok(build(&b, node, NULL, &diag) == 0, "%u: %s", diag.line, diag.text))
			return;
		for (uint16_t i = 0; i < 400; i++) {
			const struct frame f = packet_for(3, (uint16_t)(i + 1));

			ingress(&b, &f, 1, 1);
			if (id == 1)
				first[i] = b.out[0]->out_port;
			by[first[i] & 1][b.out[0]->out_port & 1]++;
			empty(&b);
		}
		done(&b);
		for (unsigned int i = 0; i < 2 && id > 1; i++)
			one_sided += by[i][0] < 60 || by[i][1] < 60;
	}
	eq(one_sided, 0, "paths of node 1 behind which another node uses one path above all");
}

static void test_actions(void)
{
	struct pl_diag diag = { .text = "" };
	struct bench b;
	struct frame f;

	if (!ok(build(&b, actions, NULL, &diag) == 0, "%u: %s", diag.line, diag.text))
		return;
	f = packet_for(1, 1);
	ingress(&b, &f, 2, 1);
	ok(b.n == 2 && b.out[0]->out_port == 1 && b.out[1]->out_port == 3, "flood");
	empty(&b);
	f = packet_for(2, 1);
	ingress(&b, &f, 1, 1);
	ok(b.n == 2 && b.out[0]->out_port == 3 && pl_be16(b.out[0]->data + 36) == 2 &&
			b.out[1]->out_port == 2 && pl_be16(b.out[1]->data + 36) == 99 &&
			sums_right(b.out[1]),
		"the mirror's copy is from before the rewriting");
	empty(&b);
	test_groups(&b);
	f = packet_for(4, 1);
	ingress(&b, &f, 1, 1);
	eq(b.drops[PL_DP_DROP_NO_ROUTE], 1, "the register has 5");
	ingress(&b, &f, 1, 1);
	ok(b.n == 1 && b.out[0]->out_port == 3, "and 10");
	empty(&b);
	f = packet_for(5, 1);
	ingress(&b, &f, 1, 1);
	eq(b.n, 1);
	empty(&b);
	f = packet_for(6, 1);
	for (int i = 0; i < 5; i++)
		ingress(&b, &f, 1, 1);
	ok(b.n == 2 && b.drops[PL_DP_DROP_METER] == 3, "128 bytes each of a burst of 300");
	ingress(&b, &f, 1, UINT64_C(1000000001));
	eq(b.n, 4 - 1, "300 bytes more after a second");
	empty(&b);
	f = packet_for(7, 1);
	ingress(&b, &f, 1, 1);
	ok(b.n == 1 && b.out[0]->queue == 3 && b.out[0]->mark == 9, "mark, queue");
	empty(&b);
	f = packet_for(8, 1);
	ingress(&b, &f, 1, 1);
	ok(b.n == 1 && pl_be16(b.out[0]->data + 12) == 0x8100 &&
			pl_be16(b.out[0]->data + 14) == 100 &&
			pl_be16(b.out[0]->data + 16) == PL_ETH_IPV4,
		"one tag is left of two");
	empty(&b);
	f = packet_for(10, 1);
	ingress(&b, &f, 1, 1);
	ok(b.n == 1 && pl_be16(b.out[0]->data + 12) == 0x88a8 &&
			pl_be16(b.out[0]->data + 14) == (5 << 13 | 200) &&
			pl_be16(b.out[0]->data + 16) == 0x8100 &&
			pl_be16(b.out[0]->data + 18) == 100 &&
			pl_be16(b.out[0]->data + 20) == PL_ETH_IPV4,
		"a provider's tag with its priority in front of the customer's");
	empty(&b);
	f = packet_for(9, 1);
	ingress(&b, &f, 1, 1);
	ok(b.n == 0 && b.drops[PL_DP_DROP_TABLE] == 1, "drop");
	eq(pl_dp_pipeline_cells(b.p, PL_DP_COUNTERS, "hits", note_cell, NULL, &diag), 0);
	ok(cells[1][0] == 1 && cells[1][1] == f.len, "hits[9 modulo 8]");
	/* All packets but those of goto (2), stop (1), drops (3 + 1). */
	ok(cells[2][0] == 1 + 1 + 800 + 3 + 1 + 1 + 1, "%" PRIu64 " passed the second table",
		cells[2][0]);
	account_agree(&b, PL_DP_INGRESS);
	done(&b);
}

/* ---- time ---- */

static const char timed[] = HEAD "tables:\n"
				 "  - name: slots\n"
				 "    key: [ l4.dst exact, time window ]\n"
				 "    entries:\n"
				 "      - l4.dst=1 time=0s+250ms/1s -> forward 1\n"
				 "      - l4.dst=1 time=500ms+1ns/1s -> forward 2\n"
				 "      - l4.dst=1 time=900ms+200ms/1s -> forward 3\n";

static void test_time(void)
{
	static const struct {
		uint64_t ns;
		unsigned int port;
	} cases[] = {
		{ UINT64_C(1700000000000000000), 1 },
		{ UINT64_C(1700000000249999999), 1 },
		{ UINT64_C(1700000000250000000), 0 },
		{ UINT64_C(1700000000500000000), 2 },
		{ UINT64_C(1700000000500000001), 0 },
		{ UINT64_C(1700000000899999999), 0 },
		{ UINT64_C(1700000000900000000), 3 },
		{ UINT64_C(1700000000999999999), 3 },
	};
	const struct frame f = packet_for(1, 1);
	struct pl_diag diag = { .text = "" };
	struct bench b;

	if (!ok(build(&b, timed, NULL, &diag) == 0, "%s", diag.text))
		return;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ingress(&b, &f, 1, cases[i].ns);
		eq(b.n > 0 ? b.out[0]->out_port : 0, cases[i].port, "at %" PRIu64, cases[i].ns);
		empty(&b);
	}
	done(&b);
}

/* ---- meters, against their definitions ---- */

static void test_meters(void)
{
	const struct pl_dp_meter_cfg one = { 1000000, 1500, 0, 3000 },
				     two = { 1000000, 1500, 2000000, 1500 };
	struct pl_dp_meter m = { 0 };
	uint64_t bytes[3] = { 0 };

	eq(pl_dp_meter_colour(&m, &one, 1500, 0), PL_DP_GREEN, "the committed burst");
	eq(pl_dp_meter_colour(&m, &one, 1500, 0), PL_DP_YELLOW, "half of the excess burst");
	eq(pl_dp_meter_colour(&m, &one, 1500, 0), PL_DP_YELLOW);
	eq(pl_dp_meter_colour(&m, &one, 64, 0), PL_DP_RED);
	eq(pl_dp_meter_colour(&m, &one, 125, 999999), PL_DP_RED, "125 bytes take 1 ms");
	eq(pl_dp_meter_colour(&m, &one, 125, 1000000), PL_DP_GREEN);
	/* Twice the peak rate for a minute: of the packets within the peak half are green, half
	 * yellow. */
	m = (struct pl_dp_meter){ 0 };
	for (uint64_t ns = 0; ns < UINT64_C(60000000000); ns += 250000)
		bytes[pl_dp_meter_colour(&m, &two, 125, ns)] += 125;
	ok(bytes[0] >= 7500000 && bytes[0] <= 7500000 + 1500, "green: %" PRIu64 " bytes", bytes[0]);
	ok(bytes[0] + bytes[1] >= 15000000 - 125 && bytes[0] + bytes[1] <= 15000000 + 1500,
		"within the peak: %" PRIu64, bytes[0] + bytes[1]);
	/* No tokens while time stands still or goes back. */
	m = (struct pl_dp_meter){ 0 };
	(void)pl_dp_meter_colour(&m, &one, 1500, 1000);
	(void)pl_dp_meter_colour(&m, &one, 3000, 500);
	eq(pl_dp_meter_colour(&m, &one, 64, 0), PL_DP_RED);
}

/* ---- changes ---- */

static int change(
	struct bench *b, const struct pl_dp_change *c, size_t n, size_t *bad, struct pl_diag *diag)
{
	return pl_dp_pipeline_change(b->p, c, n, bad, diag);
}

static unsigned int entries_seen;

static void count_entry(void *arg, const char *entry, uint64_t packets, uint64_t bytes)
{
	struct pl_buf *text = arg;

	(void)bytes;
	entries_seen++;
	pl_buf_printf(text, "%s (%" PRIu64 ")\n", entry, packets);
}

static void test_change(void)
{
	struct pl_diag diag = { .text = "" };
	struct bench b;
	struct pl_buf text;
	struct frame f = packet_to("\x0a\0\1\5", 64, 86);
	size_t bad;

	pl_buf_init(&text);
	if (!ok(build(&b, router, NULL, &diag) == 0, "%s", diag.text))
		return;
	ingress(&b, &f, 2, 1);
	empty(&b);
	/* The third change is wrong, so none is made. */
	eq(change(&b,
		   (struct pl_dp_change[]){
			   { PL_DP_DELETE, "routes", "ip.dst=10.0.1.0/24" },
			   { PL_DP_ADD, "routes", "ip.dst=10.0.1.5 -> forward 3" },
			   { PL_DP_ADD, "routs", "ip.dst=10.0.1.6 -> forward 3" },
		   },
		   3, &bad, &diag),
		-ENOENT);
	ok(bad == 2 && strstr(diag.text, "did you mean \"routes\"") != NULL, "%s", diag.text);
	ingress(&b, &f, 2, 1);
	ok(b.n == 1 && b.out[0]->out_port == 1, "nothing changed");
	empty(&b);
	eq(change(&b,
		   (struct pl_dp_change[]){
			   { PL_DP_SET, "routes", "ip.dst=10.0.1.0/24 -> forward 2" },
			   { PL_DP_ADD, "routes", "ip.dst=10.0.1.5 -> forward 3" },
			   { PL_DP_SET, "routes", "ip.dst=10.0.1.5 -> forward 1" },
			   { PL_DP_DELETE, "routes", "ip.dst=10.0.1.5" },
			   { PL_DP_DELETE, "routes", "ip.dst=10.0.0.0/8" },
		   },
		   5, &bad, &diag),
		0, "%s", diag.text);
	ingress(&b, &f, 2, 1);
	ok(b.n == 1 && b.out[0]->out_port == 2, "the set is there");
	eq(pl_dp_pipeline_dump(b.p, "routes", count_entry, &text, &diag), 0);
	streq(text.data, "ip.dst=10.0.1.0/24 -> forward 2 (3)\n"
			 "ip.dst=fd00::/16 -> route 2 02:00:00:00:00:12 (0)\n");
	eq(change(&b, &(struct pl_dp_change){ PL_DP_ADD, "routes", "ip.dst=fd00::/16 -> drop" }, 1,
		   &bad, &diag),
		-EEXIST);
	eq(change(&b, &(struct pl_dp_change){ PL_DP_DELETE, "routes", "ip.dst=fd00::/17" }, 1, &bad,
		   &diag),
		-ENOENT);
	eq(change(&b,
		   (struct pl_dp_change[]){ { PL_DP_CLEAR, "routes", NULL },
			   { PL_DP_ADD, "routes", "ip.dst=0.0.0.0/0 -> forward 3" } },
		   2, &bad, &diag),
		0);
	empty(&b);
	ingress(&b, &f, 2, 1);
	ok(b.n == 1 && b.out[0]->out_port == 3, "cleared and filled in one set");
	pl_buf_done(&text);
	done(&b);
}

/* Entries that differ only by their bounds are found as fast as others: with one chain for all of
 * them this test would compare thousands of millions, and not end. */
static void test_many_bounds(void)
{
	static const char text[] = HEAD "tables:\n"
					"  - name: ports\n"
					"    key: [ l4.src range, l4.dst range ]\n"
					"    size: 65536\n";
	enum { N = 65535 };
	static char entries[N][64];
	static struct pl_dp_change changes[N];
	struct pl_diag diag = { .text = "" };
	struct bench b;
	size_t bad;

	if (!ok(build(&b, text, NULL, &diag) == 0, "%s", diag.text))
		return;
	for (unsigned int i = 0; i < N; i++) {
		snprintf(entries[i], sizeof(entries[i]), "l4.src=%u-%u l4.dst=%u -> forward 2",
			i / 2, i, i % 3);
		changes[i] = (struct pl_dp_change){ PL_DP_ADD, "ports", entries[i] };
	}
	eq(change(&b, changes, N, &bad, &diag), 0, "%s", diag.text);
	eq(change(&b,
		   &(struct pl_dp_change){
			   PL_DP_ADD, "ports", "l4.dst=0 l4.src=0-65535 -> forward 3" },
		   1, &bad, &diag),
		0, "one more");
	eq(change(&b, &(struct pl_dp_change){ PL_DP_ADD, "ports", "l4.dst=1 l4.src=0-1 -> drop" },
		   1, &bad, &diag),
		-EEXIST, "in another order it is the same");
	for (unsigned int i = 0; i < N; i++)
		changes[i].kind = PL_DP_SET;
	eq(change(&b, changes, N, &bad, &diag), 0, "all replaced");
	for (unsigned int i = 0; i < N; i++)
		changes[i].kind = PL_DP_DELETE;
	eq(change(&b, changes, N, &bad, &diag), 0, "all deleted");
	done(&b);
}

/* Random sets of changes against a list of the expected entries. */
static void test_random_changes(void)
{
	enum { KEYS = 40 };
	struct pl_diag diag = { .text = "" };
	struct pl_rng rng;
	struct bench b;
	bool there[KEYS] = { false };
	int wrong = 0, refused = 0;

	pl_rng_seed(&rng, 5);
	if (!ok(build(&b, actions, NULL, &diag) == 0))
		return;
	(void)change(
		&b, &(struct pl_dp_change){ PL_DP_CLEAR, "first", NULL }, 1, &(size_t){ 0 }, &diag);
	for (int round = 0; round < 3000; round++) {
		struct pl_dp_change set[8];
		char text[8][64];
		bool then[KEYS];
		const size_t n = 1 + pl_rng_below(&rng, 8);
		bool fine = true;
		size_t bad;
		int r;

		memcpy(then, there, sizeof(then));
		for (size_t i = 0; i < n; i++) {
			const unsigned int k = (unsigned int)pl_rng_below(&rng, KEYS);
			const enum pl_dp_change_kind kind =
				(enum pl_dp_change_kind)pl_rng_below(&rng, 3);

			snprintf(text[i], sizeof(text[i]), "l4.dst=%u -> forward %u", k, 1 + k % 3);
			set[i] = (struct pl_dp_change){ kind, "first", text[i] };
			fine = fine && (kind == PL_DP_SET || (kind == PL_DP_ADD) == !then[k]);
			if (fine)
				then[k] = kind != PL_DP_DELETE;
		}
		r = change(&b, set, n, &bad, &diag);
		wrong += (r == 0) != fine;
		refused += r != 0;
		if (r == 0)
			memcpy(there, then, sizeof(then));
		for (unsigned int k = 0; k < KEYS; k++) {
			const struct frame f = packet_for((uint16_t)k, 1);

			ingress(&b, &f, 1, 1);
			wrong += there[k] ? b.n != 1 || b.out[0]->out_port != 1 + k % 3 : b.n != 0;
			empty(&b);
		}
	}
	eq(wrong, 0, "entries are those of the sets that were taken");
	ok(refused > 300 && refused < 2700, "%d of 3000 sets were refused", refused);
	done(&b);
}

/* ---- actions that plug in ---- */

struct probe {
	unsigned int runs, drops, alive;
	struct pl_dp_packet *kept;
};
static struct probe probe;

static int probe_make(struct pl_dp_pipeline *p, const char *args, void **ret, struct pl_diag *diag)
{
	(void)p;
	if (strcmp(args, "on") != 0 && strcmp(args, "keep it") != 0 && strcmp(args, "emit") != 0) {
		pl_diag_set(diag, "probe: not \"%s\"", args);
		return -EINVAL;
	}
	probe.alive++;
	*ret = strdup(args);
	return 0;
}

static void probe_free(void *state)
{
	probe.alive--;
	free(state);
}

static enum pl_dp_run probe_run(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	probe.runs++;
	if (strcmp(state, "keep it") == 0) {
		probe.kept = pkt;
		return PL_DP_RUN_TAKEN;
	}
	if (strcmp(state, "emit") == 0)
		pl_dp_emit(call, pl_dp_packet_clone(pkt), 3);
	return PL_DP_RUN_ON;
}

static void probe_dropped(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	(void)state;
	probe.drops += pkt->drop == PL_DP_DROP_TABLE && call->stage == PL_DP_INGRESS;
}

static const struct pl_dp_extern probe_extern = { .name = "probe",
	.ingress = true,
	.make = probe_make,
	.free = probe_free,
	.run = probe_run,
	.dropped = probe_dropped };

static const char plugged[] = HEAD "tables:\n"
				   "  - name: t\n"
				   "    key: [ l4.dst exact ]\n"
				   "    entries:\n"
				   "      - l4.dst=1 -> probe on; forward 1\n"
				   "      - l4.dst=2 -> probe keep it\n"
				   "      - l4.dst=3 -> drop\n"
				   "      - l4.dst=4 -> probe emit; forward 1\n";

static void test_extern(void)
{
	static const struct pl_dp_extern *const externs[] = { &probe_extern, NULL };
	struct pl_diag diag = { .text = "" };
	struct bench b;
	struct frame f;
	size_t bad;

	if (!ok(build(&b, plugged, externs, &diag) == 0, "%s", diag.text))
		return;
	for (uint16_t port = 1; port <= 4; port++) {
		f = packet_for(port, 1);
		ingress(&b, &f, 1, 1);
	}
	ok(probe.runs == 3 && b.n == 3 && probe.kept != NULL && b.out[1]->out_port == 3,
		"ran, kept one, emitted one");
	eq(probe.drops, 3, "each of three entries is told of the drop");
	eq(change(&b, &(struct pl_dp_change){ PL_DP_ADD, "t", "l4.dst=5 -> probe off" }, 1, &bad,
		   &diag),
		-EINVAL, "%s", diag.text);
	eq(change(&b, &(struct pl_dp_change){ PL_DP_DELETE, "t", "l4.dst=1" }, 1, &bad, &diag), 0);
	eq(probe.alive, 2, "what an entry had goes with it");
	eq(pl_dp_pipeline_account(b.p, PL_DP_INGRESS)->consumed, 1);
	account_agree(&b, PL_DP_INGRESS);
	pl_dp_packet_free(probe.kept);
	done(&b);
	eq(probe.alive, 0);
}

/* ---- anything ---- */

/* Frames with random damage through every action: accounts agree, what comes out is well-formed, and
 * checksums that were right are right. */
static void test_hostile(void)
{
	struct pl_diag diag = { .text = "" };
	struct pl_rng rng;
	struct bench b;
	int wrong = 0, sums = 0;
	uint64_t outs = 0, whole = 0;

	pl_rng_seed(&rng, 6);
	if (!ok(build(&b, actions, NULL, &diag) == 0))
		return;
	for (int round = 0; round < 60000; round++) {
		const unsigned int hits = (unsigned int)pl_rng_below(&rng, 4);
		const bool cut = pl_rng_below(&rng, 8) == 0;
		struct frame f;

		random_frame_to(&rng, &f, (int)pl_rng_below(&rng, 14));
		for (unsigned int i = 0; i < hits; i++)
			f.bytes[pl_rng_below(&rng, f.len < 80 ? f.len : 80)] =
				(uint8_t)pl_rng_u64(&rng);
		if (cut)
			f.len = (uint32_t)pl_rng_below(&rng, f.len);
		ingress(&b, &f, (uint16_t)pl_rng_below(&rng, 5), (uint64_t)round * 1000);
		outs += b.n;
		for (unsigned int i = 0; i < b.n; i++) {
			wrong += !pl_dp_parse(b.out[i]);
			whole += hits == 0 && !cut;
			sums += hits == 0 && !cut && !sums_right(b.out[i]);
		}
		empty(&b);
	}
	eq(wrong, 0, "nothing malformed comes out");
	eq(sums, 0, "of %" PRIu64 " frames that came whole, none with a wrong checksum", whole);
	ok(outs > 1000 && b.drops[PL_DP_DROP_MALFORMED] > 1000,
		"%" PRIu64 " came out, %u malformed", outs, b.drops[PL_DP_DROP_MALFORMED]);
	account_agree(&b, PL_DP_INGRESS);
	done(&b);
}

int main(void)
{
	test_places();
	test_parse();
	test_parse_usual();
	test_route();
	test_actions();
	test_chain_of_groups();
	test_time();
	test_meters();
	test_change();
	test_many_bounds();
	test_random_changes();
	test_extern();
	test_hostile();
	return pl_test_done();
}
