/* SPDX-License-Identifier: BSD-2-Clause */
/* The ways for the usual report (fast.c, shape.c, the vector code) against the general way: the
 * same bytes have to give the same records, verdicts and account. */
#include <stdlib.h>

#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "decode/shape.h"
#include "decode/test_flow.h"

static struct pl_record_batch out, other;
static uint8_t frame[4096];
static struct pl_build b;

/* One packet for the comparison: a report of the usual kind, now and then with something
 * unusual. */
static void some_report(struct pl_rng *rng)
{
	static const uint16_t bitmaps[] = { 0xff80, 0xff00, 0xfc00, 0xd000, 0x8000, 0xcc00, 0xdc01,
		0xff01 };
	static const uint16_t tunnels[] = { PL_PORT_VXLAN, PL_PORT_VXLAN_GPE, PL_PORT_GENEVE,
		PL_PORT_GTPU, PL_PORT_VXLAN_OLD };
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	struct pl_flow from = udp("192.0.2.7", "192.0.2.9", 40000, 32766, 0);
	bool v2 = pl_rng_below(rng, 2) != 0, v6 = false;
	struct pl_report_head h = { .version = v2 ? PL_REPORT_V20 : PL_REPORT_V10,
		.tracked = true,
		.seq = (uint32_t)pl_rng_below(rng, 1 << 20),
		.node = (uint32_t)pl_rng_below(rng, 4),
		.hw_id = 3,
		.congested = pl_rng_below(rng, 2) != 0,
		.inner_link = PL_LINK_ETHERNET };
	struct pl_int_header in = { .version = pl_rng_below(rng, 2) ? PL_INT_V20 : PL_INT_V10,
		.bitmap = bitmaps[pl_rng_below(rng, 8)],
		.dscp = 9,
		.hops_left = 2 };
	unsigned int n = (unsigned int)pl_rng_below(rng, 8);
	struct pl_int_hop hop[8], own = { .ingress_ts = 40000, .egress_ts = 40900, .queue = 3 };
	size_t ip, in_ip, at;

	memset(hop, 0, sizeof(hop));
	if (in.version == PL_INT_V10)
		in.bitmap &= 0xff00;
	for (unsigned int i = 0; i < n; i++) {
		hop[i] = (struct pl_int_hop){
			.have = pl_rng_below(rng, 20) ? 0xffff : (uint32_t)pl_rng_u64(rng),
			.node = i + 1,
			.ingress_port = i,
			.egress_port = i + 1,
			.latency = pl_rng_below(rng, 20) ? 500 : (uint32_t)pl_rng_u64(rng),
			.queue = (uint32_t)pl_rng_below(rng, 256),
			.queue_depth = 77 * i,
			.ingress_ts = pl_rng_below(rng, 3000) + i * 2000,
			.egress_ts = pl_rng_below(rng, 3000) + i * 2000,
			.ingress_port2 = 1000 + i,
			.egress_port2 = 2000 + i,
			.tx_util = 40,
			.buffer = 1,
			.buffer_depth = 3
		};
	}
	if (pl_rng_below(rng, 4) == 0)
		flow.proto = PL_IP_TCP;
	if (pl_rng_below(rng, 8) == 0)
		flow.dport = tunnels[pl_rng_below(rng, 5)];
	if (pl_rng_below(rng, 3) == 0) {
		/* Metadata in the report's own header, mostly of the same values as the stack's. */
		h.md_bits = pl_rng_below(rng, 4) ? in.bitmap & 0x7f80 : (uint16_t)pl_rng_u64(rng);
		if (!v2)
			h.md_bits &= 0x3f;
		own.have = pl_rng_below(rng, 20) ? 0xffff : (uint32_t)pl_rng_u64(rng);
		h.node = (uint32_t)pl_rng_below(rng, 20);
	}
	b = pl_build(frame, sizeof(frame));
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &from, 64, 0);
	pl_report_put_group(&b, &h);
	at = pl_report_put(&b, &h, &own);
	if (pl_rng_below(rng, 4) == 0) {
		v6 = true;
		flow.src = addr("2001:db8::1");
		flow.dst = addr("2001:db8::2");
	}
	pl_put_eth(&b, v6 ? PL_ETH_IPV6 : PL_ETH_IPV4,
		pl_rng_below(rng, 4) == 0 ? (uint16_t)pl_rng_below(rng, 4096) : 0);
	in_ip = pl_put_ip(&b, &flow, 62, 0);
	(void)pl_int_put(&b, &in, hop, n);
	pl_put_zero(&b, pl_rng_below(rng, 60));
	pl_end_ip(&b, in_ip);
	pl_report_end(&b, &h, at);
	pl_end_ip(&b, ip);
}

/* The fast path for the usual report, and the vector version of the hop decoder, against the
 * general way. */
static void shortcut(hops_decode_fn *vector, shape_take_fn *take)
{
	const uint64_t seed = 99;
	struct pl_decode *usual, *general;
	static struct pl_batch batch;
	unsigned int taken = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, seed);
	ok(pl_decode_new(&usual, &(struct pl_decode_options){ 0 }) == 0);
	ok(pl_decode_new(&general, &(struct pl_decode_options){ 0 }) == 0);
	usual->decode_hops = vector;
	usual->take_shape = take;
	general->profiles[0].usual = false;
	general->decode_hops = hops_decode_none;
	for (int round = 0; round < 300000; round++) {
		uint8_t *exact;
		unsigned int mutations = (unsigned int)pl_rng_below(&rng, 4);

		some_report(&rng);
		for (unsigned int i = 0; i < mutations; i++)
			frame[12 + pl_rng_below(&rng, b.len - 12)] ^=
				(uint8_t)(1u << pl_rng_below(&rng, 8));
		if (pl_rng_below(&rng, 8) == 0)
			b.len = 1 + pl_rng_below(&rng, b.len);
		exact = malloc(b.len);
		memcpy(exact, frame, b.len);
		batch.n = 1;
		batch.pkts[0] = (struct pl_packet){ .data = exact,
			.len = (uint32_t)b.len,
			.wire_len = (uint32_t)b.len,
			.ts_ns = 1 + (uint64_t)round,
			.link = PL_LINK_ETHERNET };
		pl_record_batch_clear(&out);
		pl_record_batch_clear(&other);
		pl_decode_batch(usual, &batch, &out);
		pl_decode_batch(general, &batch, &other);
		taken += mutations == 0 && out.n_paths == 1;
		if (pl_decode_outcomes(usual)[0].verdict !=
				pl_decode_outcomes(general)[0].verdict ||
			pl_decode_outcomes(usual)[0].notes !=
				pl_decode_outcomes(general)[0].notes ||
			out.n_paths != other.n_paths || out.n_hops != other.n_hops ||
			memcmp(out.paths, other.paths, out.n_paths * sizeof(*out.paths)) != 0 ||
			memcmp(out.hops, other.hops, out.n_hops * sizeof(*out.hops)) != 0) {
			ok(false, "round %d of seed %" PRIu64 " differs: %s, %s", round, seed,
				pl_verdict_name(pl_decode_outcomes(usual)[0].verdict),
				pl_verdict_name(pl_decode_outcomes(general)[0].verdict));
			for (size_t i = 0; i < out.n_hops * sizeof(*out.hops); i++) {
				if (((uint8_t *)out.hops)[i] != ((uint8_t *)other.hops)[i])
					printf("# hop %zu byte %zu: %02x, %02x\n", i / 128, i % 128,
						((uint8_t *)out.hops)[i],
						((uint8_t *)other.hops)[i]);
			}
			for (size_t i = 0; i < out.n_paths * sizeof(*out.paths); i++) {
				if (((uint8_t *)out.paths)[i] != ((uint8_t *)other.paths)[i])
					printf("# path byte %zu: %02x, %02x\n", i,
						((uint8_t *)out.paths)[i],
						((uint8_t *)other.paths)[i]);
			}
			printf("# notes %#" PRIx64 ", %#" PRIx64 "\n",
				pl_decode_outcomes(usual)[0].notes,
				pl_decode_outcomes(general)[0].notes);
			free(exact);
			break;
		}
		free(exact);
	}
	ok(taken > 30000, "%u whole reports compared", taken);
	eq(pl_counter_read(&pl_decode_counters(usual)->lost),
		pl_counter_read(&pl_decode_counters(general)->lost));
	pl_decode_free(usual);
	pl_decode_free(general);
}

/* ---- shapes ---- */

/* Reports that are known by their shape: every form that there is. */
static const struct kind {
	const char *name;
	enum pl_report_version report;
	enum pl_int_version version;
	uint16_t bitmap;
	uint8_t hops, proto;
	bool payload; /* of a socket */
} kinds[] = {
	{ "v2.0, v2.x, UDP", PL_REPORT_V20, PL_INT_V20, 0xff80, 3, PL_IP_UDP, false },
	{ "v2.0, v1.0, UDP", PL_REPORT_V20, PL_INT_V10, 0xff00, 2, PL_IP_UDP, false },
	{ "v1.0, v1.0, UDP", PL_REPORT_V10, PL_INT_V10, 0xd000, 4, PL_IP_UDP, false },
	{ "v1.0, v2.x, UDP", PL_REPORT_V10, PL_INT_V20, 0xfc00, 1, PL_IP_UDP, false },
	{ "v2.0, v2.x, TCP", PL_REPORT_V20, PL_INT_V20, 0x8000, 6, PL_IP_TCP, false },
	{ "v1.0, v2.x, TCP", PL_REPORT_V10, PL_INT_V20, 0xfc00, 2, PL_IP_TCP, false },
	{ "v1.0, v1.0, TCP", PL_REPORT_V10, PL_INT_V10, 0xff00, 3, PL_IP_TCP, false },
	{ "v2.0, v2.x, UDP, of a socket", PL_REPORT_V20, PL_INT_V20, 0xdc00, 3, PL_IP_UDP, true },
	{ "v1.0, v1.0, TCP, of a socket", PL_REPORT_V10, PL_INT_V10, 0xff00, 5, PL_IP_TCP, true },
};

static void put_kind(const struct kind *k)
{
	const struct pl_flow from = udp("192.0.2.7", "192.0.2.9", 40000, 32766, 0);
	const struct pl_report_head h = {
		.version = k->report,
		.tracked = true,
		.seq = 0x12345,
		.node = 77,
		.hw_id = 3,
		.inner_link = PL_LINK_ETHERNET,
	};
	const struct pl_int_header in = {
		.version = k->version, .bitmap = k->bitmap, .dscp = 9, .hops_left = 2
	};
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 5000, 5001, 0x17);
	struct pl_int_hop hop[8] = { 0 };
	size_t ip = 0, in_ip, at;

	for (unsigned int i = 0; i < k->hops; i++)
		hop[i] = (struct pl_int_hop){
			.have = 0xffff, .node = i + 1, .ingress_port = i, .egress_ts = 5
		};
	flow.proto = k->proto;
	b = pl_build(frame, sizeof(frame));
	if (!k->payload) {
		pl_put_eth(&b, PL_ETH_IPV4, 0);
		ip = pl_put_ip(&b, &from, 64, 0);
	}
	pl_report_put_group(&b, &h);
	at = pl_report_put(&b, &h, NULL);
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	in_ip = pl_put_ip(&b, &flow, 62, 0);
	(void)pl_int_put(&b, &in, hop, k->hops);
	pl_put_zero(&b, 40);
	pl_end_ip(&b, in_ip);
	pl_report_end(&b, &h, at);
	if (!k->payload)
		pl_end_ip(&b, ip);
}

/* A packet through both ways; whether they agree. */
static bool agree(struct pl_decode *usual, struct pl_decode *general, const struct pl_packet *pkt)
{
	static struct pl_batch batch;
	const struct pl_outcome *x = pl_decode_outcomes(usual), *y = pl_decode_outcomes(general);

	batch.n = 1;
	batch.pkts[0] = *pkt;
	pl_record_batch_clear(&out);
	pl_record_batch_clear(&other);
	pl_decode_batch(usual, &batch, &out);
	pl_decode_batch(general, &batch, &other);
	return x->verdict == y->verdict && x->notes == y->notes && out.n_paths == other.n_paths &&
	       out.n_hops == other.n_hops &&
	       memcmp(out.paths, other.paths, out.n_paths * sizeof(*out.paths)) == 0 &&
	       memcmp(out.hops, other.hops, out.n_hops * sizeof(*out.hops)) == 0;
}

/* Each bit of the headers turned in a report whose shape is known. What still has the shape must be
 * decoded as the general way does, and what has not, too. */
static void turned(const struct kind *k, shape_take_fn *take)
{
	const struct pl_decode_options small = { .max_exporters = 4, .max_paths = 4 };
	unsigned int taken = 0, refused = 0, wrong = 0;
	struct pl_packet pkt;
	uint8_t *exact;

	put_kind(k);
	exact = malloc(b.len);
	for (unsigned int bit = 0; bit < 8 * 128; bit++) {
		struct pl_decode *usual, *general;
		struct pl_path path __attribute__((aligned(64)));
		const struct header_shape *s;

		if (pl_decode_new(&usual, &small) < 0 || pl_decode_new(&general, &small) < 0)
			abort();
		usual->take_shape = take;
		general->profiles[0].usual = false;
		general->decode_hops = hops_decode_none;
		memcpy(exact, frame, b.len);
		pkt = (struct pl_packet){ .data = exact,
			.len = (uint32_t)b.len,
			.wire_len = (uint32_t)b.len,
			.ts_ns = 1,
			.link = k->payload ? PL_LINK_UDP : PL_LINK_ETHERNET,
			.src = addr("192.0.2.7"),
			.sport = 40000,
			.dport = 32766 };
		/* The layout is found by the general way, the shape by the next packet. */
		wrong += !agree(usual, general, &pkt);
		wrong += !agree(usual, general, &pkt);
		s = shape_place(usual, pkt.len);
		wrong += !shape_may_be(s, usual, &pkt) || !take(s, exact, &path);
		exact[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (take(s, exact, &path))
			taken++;
		else
			refused++;
		if (!agree(usual, general, &pkt)) {
			printf("# byte %u bit %u: %s, %s\n", bit / 8, bit % 8,
				pl_verdict_name(pl_decode_outcomes(usual)[0].verdict),
				pl_verdict_name(pl_decode_outcomes(general)[0].verdict));
			wrong++;
		}
		pl_decode_free(usual);
		pl_decode_free(general);
	}
	free(exact);
	eq(wrong, 0, "%s: each bit turned, %u still of the shape, %u not", k->name, taken, refused);
	ok(taken > 300 && refused > 100);
}

/* Shapes give way to others of their length, and to a layout that took their layout's place. */
static void replaced(void)
{
	const struct pl_decode_options small = { .max_exporters = 4, .max_paths = 4 };
	struct pl_decode *usual, *general;
	struct pl_packet pkt = { .link = PL_LINK_ETHERNET, .ts_ns = 1 };
	struct header_shape *s;
	unsigned int wrong = 0;

	ok(pl_decode_new(&usual, &small) == 0);
	ok(pl_decode_new(&general, &small) == 0);
	general->profiles[0].usual = false;
	general->decode_hops = hops_decode_none;
	put_kind(&kinds[0]);
	pkt.data = frame;
	pkt.len = pkt.wire_len = (uint32_t)b.len;
	for (unsigned int i = 0; i < 3; i++)
		wrong += !agree(usual, general, &pkt);
	s = shape_place(usual, pkt.len);
	eq(s->at.report, 42);
	/* Another identification of fragments: not the usual kind, and no reason to learn. */
	frame[20] ^= 0x20;
	for (unsigned int i = 0; i < 40; i++)
		wrong += !agree(usual, general, &pkt);
	frame[20] ^= 0x20;
	eq(s->misses, 0, "what is not usual does not count");
	/* Reports of the same length with a header length byte that says "unknown". */
	frame[42 + 9] = 0xff;
	for (unsigned int i = 0; i < 40; i++)
		wrong += !agree(usual, general, &pkt);
	eq(((const uint8_t *)s->value)[42 + 9], 0xff, "given up for those that came instead");
	usual->plan_keys[s->plan_slot] ^= 1;
	ok(!shape_may_be(s, usual, &pkt), "not without its layout");
	usual->plan_keys[s->plan_slot] ^= 1;
	eq(wrong, 0, "and all as the general way has it");
	eq(pl_counter_read(&pl_decode_counters(usual)->duplicates),
		pl_counter_read(&pl_decode_counters(general)->duplicates));
	pl_decode_free(usual);
	pl_decode_free(general);
}

/* A report cut after each byte, the empty packet among them, before anything was learned and after.
 * Sanitizers see what is read behind it. */
static void cut(void)
{
	const struct pl_decode_options small = { .max_exporters = 4, .max_paths = 4 };
	struct pl_decode *usual, *general;
	unsigned int wrong = 0;

	ok(pl_decode_new(&usual, &small) == 0);
	ok(pl_decode_new(&general, &small) == 0);
	general->profiles[0].usual = false;
	general->decode_hops = hops_decode_none;
	put_kind(&kinds[0]);
	for (unsigned int round = 0; round < 3; round++) {
		for (uint32_t len = 0; len <= b.len; len++) {
			uint8_t *exact = malloc(len);
			const struct pl_packet pkt = {
				.data = exact, .len = len, .wire_len = len, .ts_ns = 1
			};

			memcpy(exact, frame, len);
			wrong += !agree(usual, general, &pkt);
			free(exact);
		}
	}
	eq(wrong, 0, "cut after every byte");
	pl_decode_free(usual);
	pl_decode_free(general);
}

static void flush_nothing(struct pl_record_batch *batch, void *arg)
{
	(void)arg;
	pl_record_batch_clear(batch);
}

int main(void)
{
	if (pl_record_batch_init(&out, 64, 1024) < 0 || pl_record_batch_init(&other, 64, 1024) < 0)
		return 1;
	out.flush = other.flush = flush_nothing;
	shortcut(hops_decode_best(), shape_take_best());
#if defined(__x86_64__)
	if (hops_decode_best() == hops_decode_avx512)
		shortcut(hops_decode_avx2, shape_take_plain);
#endif
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		turned(&kinds[i], shape_take_plain);
		if (shape_take_best() != shape_take_plain)
			turned(&kinds[i], shape_take_best());
	}
	replaced();
	cut();
	pl_record_batch_done(&out);
	pl_record_batch_done(&other);
	return pl_test_done();
}
