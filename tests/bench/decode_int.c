/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry reports in memory to records, one thread. The ceiling is a loop that only parses the
 * same frames: it checks the headers, steps over them by their lengths, and reads every word of
 * every hop. Both hand out batches of 64 as a port does, and both are timed by the thread's CPU
 * clock. The decoder does all of its work in every variant: records with derived latencies, path
 * ids interned, sequence numbers accounted; what varies is how many flows, paths and exporters
 * there are. The cases "walked" have reports that the fast path walks each time, against the slow
 * path on the same reports: their ratio is what the walk gains.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/complain.h"
#include "decode/decode.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "wire/layers.h"
#include "wire/report.h"

#define FRAME_BYTES 512 /* room for one; frames lie packed in this distance */
#define BATCH       64
#define HOPS_MAX    6

struct decode_bench {
	uint8_t *memory;
	uint32_t *len;
	uint32_t frames;                 /* a multiple of BATCH */
	struct pl_decode *decode, *slow; /* slow: without the fast path */
	struct pl_record_batch records;
	struct pl_batch batch;
	uint64_t clock_ns;
};

/* How one frame is made. */
struct kind {
	enum pl_report_version report;
	enum pl_int_version version;
	uint16_t bitmap;
	uint8_t hops;
	uint8_t proto;
	uint16_t vlan;
	uint16_t md_bits; /* metadata in the report's own header */
	bool v6;
};

struct variant {
	const char *name, *ceiling_name;
	pl_bench_fn *ceiling;
	uint32_t frames; /* each of another flow */
	uint32_t paths, exporters;
	const struct kind *kinds; /* in turn */
	unsigned int n_kinds;
};

static void put_inner(
	struct pl_build *b, const struct kind *k, uint32_t i, const struct variant *variant)
{
	const uint8_t v4[2][4] = { { 10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i },
		{ 10, 200, 0, 1 } };
	const uint8_t v6[2][16] = { { 0xfd, 1, [13] = (uint8_t)(i >> 16), (uint8_t)(i >> 8),
					    (uint8_t)i },
		{ 0xfd, 2, [15] = 1 } };
	struct pl_flow flow = {
		.src = k->v6 ? pl_addr_v6(v6[0]) : pl_addr_v4(v4[0]),
		.dst = k->v6 ? pl_addr_v6(v6[1]) : pl_addr_v4(v4[1]),
		.sport = (uint16_t)(1024 + i % 50000),
		.dport = 443,
		.proto = k->proto,
		.dscp = 0x17,
		.have = PL_FLOW_PORTS,
	};
	const struct pl_int_header header = {
		.version = k->version, .bitmap = k->bitmap, .hops_left = 3
	};
	struct pl_int_hop hops[HOPS_MAX] = { 0 };
	size_t ip;

	for (unsigned int h = 0; h < k->hops; h++) {
		hops[h] = (struct pl_int_hop){
			.have = UINT32_MAX,
			.node = h == 1 ? 100 + i % variant->paths : 10 + h,
			.ingress_port = h + 1,
			.egress_port = h + 2,
			.ingress_port2 = 1000 + h,
			.egress_port2 = 2000 + h,
			.latency = 500 + h,
			.queue = h,
			.queue_depth = i % 100,
			.ingress_ts = 1000 * (h + 1),
			.egress_ts = 1000 * (h + 1) + 500 + h,
			.tx_util = 40,
			.buffer = 1,
			.buffer_depth = 7,
		};
	}
	pl_put_eth(b, k->v6 ? PL_ETH_IPV6 : PL_ETH_IPV4, k->vlan);
	ip = pl_put_ip(b, &flow, 62, 0);
	if (pl_int_put(b, &header, hops, k->hops) < 0)
		b->full = true;
	pl_end_ip(b, ip);
}

static uint32_t put_frame(uint8_t *memory, const struct variant *variant, uint32_t i)
{
	const struct kind *k = &variant->kinds[i % variant->n_kinds];
	const struct pl_flow outer = {
		.src = pl_addr_v4(
			(const uint8_t[]){ 192, 0, 2, (uint8_t)(i % variant->exporters) }),
		.dst = pl_addr_v4((const uint8_t[]){ 198, 51, 100, 1 }),
		.sport = 40000,
		.dport = 32766,
		.proto = PL_IP_UDP,
		.have = PL_FLOW_PORTS,
	};
	const struct pl_report_head head = {
		.version = k->report,
		.tracked = true,
		.seq = i / variant->exporters,
		.node = 1 + i % variant->exporters,
		.md_bits = k->md_bits,
		.inner_link = PL_LINK_ETHERNET,
	};
	const struct pl_int_hop own = { .have = UINT32_MAX, .node = head.node, .egress_port = 9 };
	struct pl_build b = pl_build(memory, FRAME_BYTES);
	size_t ip, at;

	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &outer, 64, 0);
	pl_report_put_group(&b, &head);
	at = pl_report_put(&b, &head, k->md_bits != 0 ? &own : NULL);
	put_inner(&b, k, i, variant);
	pl_report_end(&b, &head, at);
	pl_end_ip(&b, ip);
	return b.full ? 0 : (uint32_t)b.len;
}

/* The next batch of frames, as a port hands them out. */
static void fill(struct decode_bench *b, uint32_t first)
{
	b->batch.n = BATCH;
	for (uint32_t i = 0; i < BATCH; i++) {
		struct pl_packet *pkt = &b->batch.pkts[i];

		pkt->data = b->memory + (size_t)(first + i) * FRAME_BYTES;
		pkt->len = b->len[first + i];
		pkt->wire_len = pkt->len;
		pkt->ts_ns = b->clock_ns++;
	}
}

static int decode_by(struct decode_bench *b, struct pl_decode *d, uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	const struct pl_decode_counters *c = pl_decode_counters(d);
	const uint64_t before = pl_counter_read(&c->verdicts[PL_V_OK]);
	const uint64_t start = pl_cpu_thread_ns();

	do {
		for (uint32_t i = 0; i < b->frames; i += BATCH) {
			fill(b, i);
			pl_decode_batch(d, &b->batch, &b->records);
			pl_record_batch_clear(&b->records);
		}
		ret->items += b->frames;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	/* A figure for reports that were refused would mean nothing. */
	return pl_counter_read(&c->verdicts[PL_V_OK]) - before == ret->items ? 0 : -EBADMSG;
}

static int decode_frames(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct decode_bench *b = arg;

	return decode_by(b, b->decode, budget_ns, ret);
}

static int decode_slow(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct decode_bench *b = arg;

	return decode_by(b, b->slow, budget_ns, ret);
}

/* The sum of all hop words of a report over Ethernet, IPv4 and UDP; 0 when it is something else. */
static inline uint32_t parse_frame(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0, at = 42, words, end;

	if (len < 42 + 12 + 42 + 16 || pl_be16(p + 12) != PL_ETH_IPV4 || p[14] != 0x45 ||
		p[23] != PL_IP_UDP || pl_be16(p + 36) != 32766)
		return 0;
	if (p[at] >> 4 == 2 && p[at + 8] == 0x03)
		at += 12;
	else if (p[at] >> 4 == 1 && (p[at + 1] & 0x80) == 0)
		at += 16;
	else
		return 0;
	if (pl_be16(p + at + 12) != PL_ETH_IPV4 || p[at + 14] != 0x45 || p[at + 23] != PL_IP_UDP)
		return 0;
	at += 42;
	if (p[at] == 0x10) {
		words = p[at + 1] - 3u;
		at += 16;
	} else if (p[at] == 0x01) {
		words = p[at + 2] - 3u;
		at += 12;
	} else {
		return 0;
	}
	end = at + 4 * words;
	if (end > len)
		return 0;
	for (; at < end; at += 4)
		sum += pl_be32(p + at);
	return sum;
}

/* The same for whatever it is: all its words. */
static inline uint32_t touch_frame(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t at = 0; at + 4 <= len; at += 4)
		sum += pl_be32(p + at);
	return sum;
}

static inline int walk_frames(struct decode_bench *b, uint64_t budget_ns,
	struct pl_bench_sample *ret, uint32_t (*const look)(const uint8_t *p, uint32_t len))
{
	const uint64_t start = pl_cpu_thread_ns();
	uint64_t empty = 0;

	do {
		for (uint32_t i = 0; i < b->frames; i += BATCH) {
			fill(b, i);
			for (uint32_t k = 0; k < BATCH; k++)
				empty += look(b->batch.pkts[k].data, b->batch.pkts[k].len) == 0;
		}
		ret->items += b->frames;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return empty == 0 ? 0 : -EBADMSG;
}

static int parse_only(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return walk_frames(arg, budget_ns, ret, parse_frame);
}

static int touch_only(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return walk_frames(arg, budget_ns, ret, touch_frame);
}

#define ALL_V21 0xff80 /* nine instructions, 48 bytes a hop */
#define ALL_V10 0xff00 /* all eight, 36 bytes a hop */

static const struct kind v21_3[] = {
	{ PL_REPORT_V20, PL_INT_V20, ALL_V21, 3, PL_IP_UDP, 0, 0, false },
};
static const struct kind v10_6[] = {
	{ PL_REPORT_V10, PL_INT_V10, ALL_V10, 6, PL_IP_UDP, 0, 0, false },
};
static const struct kind walked[] = {
	{ PL_REPORT_V20, PL_INT_V20, ALL_V21, 3, PL_IP_UDP, 100, 0, false },
	{ PL_REPORT_V20, PL_INT_V20, ALL_V21, 3, PL_IP_UDP, 0, 0, true },
	{ PL_REPORT_V20, PL_INT_V20, ALL_V21, 3, PL_IP_UDP, 0, 0x4000, false },
};
static const struct kind mix[] = {
	{ PL_REPORT_V20, PL_INT_V20, 0xfc00, 3, PL_IP_UDP, 0, 0, false },
	{ PL_REPORT_V10, PL_INT_V10, 0xdc00, 5, PL_IP_TCP, 0, 0, false },
	{ PL_REPORT_V20, PL_INT_V20, ALL_V21, 2, PL_IP_UDP, 100, 0, false },
	{ PL_REPORT_V10, PL_INT_V10, ALL_V10, 4, PL_IP_UDP, 0, 0, true },
	{ PL_REPORT_V20, PL_INT_V20, 0xdc00, 3, PL_IP_UDP, 0, 0x4000, false },
	{ PL_REPORT_V05, PL_INT_V05, 0xd000, 3, PL_IP_UDP, 0, 0, false },
	{ PL_REPORT_V10, PL_INT_V10, 0xfc00, 3, PL_IP_UDP, 0, 0, false },
	{ PL_REPORT_V20, PL_INT_V10, 0xdc00, 6, PL_IP_TCP, 0, 0, false },
};

static const struct variant variants[] = {
	{ "decode-int/v2.1-3-hops", "parse only", parse_only, 4096, 1, 4, v21_3, 1 },
	{ "decode-int/v1.0-6-hops", "parse only", parse_only, 4096, 1, 4, v10_6, 1 },
	{ "decode-int/v2.1-64k-flows", "parse only", parse_only, 65536, 65536, 64, v21_3, 1 },
	{ "decode-int/v1.0-64k-flows", "parse only", parse_only, 65536, 65536, 64, v10_6, 1 },
	{ "decode-int/mix", "read every word", touch_only, 4096, 256, 8, mix,
		sizeof(mix) / sizeof(mix[0]) },
	{ "decode-int/walked-vlan", "slow path", decode_slow, 4096, 1, 4, &walked[0], 1 },
	{ "decode-int/walked-ipv6", "slow path", decode_slow, 4096, 1, 4, &walked[1], 1 },
	{ "decode-int/walked-metadata", "slow path", decode_slow, 4096, 1, 4, &walked[2], 1 },
};

static void discard(struct pl_record_batch *records, void *arg)
{
	(void)arg;
	pl_record_batch_clear(records);
}

static int measure(struct pl_bench_ctx *ctx, struct decode_bench *b, const struct variant *variant)
{
	/* Of the exporters; a pinned version, which all of them send, needs the slow path. */
	const struct pl_profile pinned = { .prefix = pl_addr_v4((const uint8_t[]){ 192, 0, 2, 0 }),
		.prefix_bits = 96 + 24,
		.report_version = 1 + PL_REPORT_V20 };
	const struct pl_profile plain = { .prefix = pinned.prefix, .prefix_bits = 96 + 24 };
	const bool walks = variant->ceiling == decode_slow;
	const struct pl_decode_options options = {
		.max_paths = 131072, .profiles = &plain, .n_profiles = walks
	};
	const struct pl_decode_options slow = {
		.max_paths = 131072, .profiles = &pinned, .n_profiles = 1
	};
	const struct pl_bench_case c = { .name = variant->name,
		.ceiling_name = variant->ceiling_name,
		.subject = decode_frames,
		.ceiling = variant->ceiling,
		.arg = b };
	int r;

	b->frames = variant->frames;
	b->memory = aligned_alloc(64, (size_t)b->frames * FRAME_BYTES);
	b->len = calloc(b->frames, sizeof(*b->len));
	r = b->memory == NULL || b->len == NULL ? -ENOMEM : pl_decode_new(&b->decode, &options);
	if (r == 0 && walks)
		r = pl_decode_new(&b->slow, &slow);
	for (uint32_t i = 0; r == 0 && i < b->frames; i++) {
		b->len[i] = put_frame(b->memory + (size_t)i * FRAME_BYTES, variant, i);
		if (b->len[i] == 0)
			r = -EMSGSIZE;
	}
	if (r == 0)
		r = pl_bench_compare(ctx, &c);
	else
		pl_complain("benchmark %s: %s", variant->name, strerror(-r));
	pl_decode_free(b->decode);
	pl_decode_free(b->slow);
	free(b->memory);
	free(b->len);
	b->decode = b->slow = NULL;
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	static struct decode_bench b;
	int r = pl_record_batch_init(&b.records, 256, 2048);

	if (r < 0) {
		pl_complain("benchmark decode-int: %s", strerror(-r));
		return r;
	}
	b.records.flush = discard;
	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]) && r == 0; i++)
		r = measure(ctx, &b, &variants[i]);
	pl_record_batch_done(&b.records);
	return r;
}

const struct pl_bench pl_bench_decode_int = {
	.name = "decode-int",
	.summary = "reports in memory to records, against a loop that only parses them",
	.run = run,
};
