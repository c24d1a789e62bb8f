/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow cache, one thread: packet records in memory, 96 bytes each, in batches of 256 as a worker
 * has them, of 64 k flows in a table of 128 k, in a fixed scramble so that none is near the one
 * before. TCP flows take turns to send bytes and acknowledge, with timestamps, so every packet is
 * looked at for a round-trip time; a microsecond lies between two packets. In the flood every packet
 * is a SYN of a new flow, which evicts another. Those of a state have the table in a file on tmpfs. The ceiling has the flow's number from the
 * benchmark: it adds packet and bytes to one line per flow, without a key, times or TCP.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "base/hash.h"
#include "flow/state.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/flow_peers.h"

enum { FLOWS = 1 << 16, PACKETS = 2 * FLOWS, BATCH = 256, SENT = 100, ANSWERED = 1000 };

struct line {
	uint64_t packets, bytes, rest[6];
};

struct flow_bench {
	struct pl_pkt96 *packets; /* a first half forward, a second one back */
	struct line *lines;
	struct pl_flow_cache *cache;
	struct pl_flow_state *state; /* NULL: its memory is the process's */
	uint32_t at;
	uint64_t now_ns, flood, sink;
	bool flooded;
};

static uint32_t flow_of(uint32_t packet)
{
	return packet * 2654435761u % FLOWS;
}

static void fill(struct flow_bench *b, uint8_t proto)
{
	for (uint32_t i = 0; i < PACKETS; i++) {
		const uint32_t flow = flow_of(i), address = 0x0a000000u + flow / 16;
		const bool back = i >= FLOWS;
		const struct pl_addr client = pl_addr_v4(&address),
				     server = pl_addr_v4((const uint8_t[4]){ 192, 0, 2, 1 });
		const uint16_t port = (uint16_t)(40000 + flow % 16);

		b->packets[i] = (struct pl_pkt96){
			.src = back ? server : client,
			.dst = back ? client : server,
			.sport = back ? 443 : port,
			.dport = back ? port : 443,
			.proto = proto,
			.wire_len = (uint16_t)(52 + (back ? ANSWERED : SENT)),
			.pay_len = back ? ANSWERED : SENT,
		};
		if (proto != 6)
			continue;
		b->packets[i].tcp_flags = 16;
		b->packets[i].tcp_win = 1000;
		b->packets[i].tcp_opts = 1 << 8;
		b->packets[i].tcp_seq = 1;
		b->packets[i].tcp_ack = back ? 1 + SENT : 1;
		b->packets[i].tsval = b->packets[i].tsecr = 1;
	}
}

/* The next batch: time and the connections' numbers go on. */
static struct pl_pkt96 *turn(struct flow_bench *b)
{
	struct pl_pkt96 *batch = b->packets + b->at;
	const bool back = b->at >= FLOWS, tcp = batch->proto == 6;

	for (uint32_t i = 0; i < BATCH; i++) {
		struct pl_pkt96 *p = &batch[i];

		p->ts_ns = b->now_ns += 1000;
		if (b->flooded) {
			const uint64_t random = pl_hash_mix(b->flood++, 1);

			memcpy(p->src.b + 12, &random, 4);
			p->sport = (uint16_t)(random >> 32);
			p->tcp_flags = 2;
		} else if (tcp) {
			p->tcp_seq += back ? ANSWERED : SENT;
			p->tcp_ack += back ? SENT : ANSWERED;
			p->tsval++;
			p->tsecr++;
		}
	}
	b->at = (b->at + BATCH) % PACKETS;
	return batch;
}

static void feed(struct flow_bench *b, const struct pl_pkt96 *batch)
{
	pl_flow_cache_feed(b->cache, batch, BATCH);
}

static void add(struct flow_bench *b, const struct pl_pkt96 *batch)
{
	const uint32_t first = (uint32_t)(batch - b->packets);

	for (uint32_t i = 0; i < BATCH; i++) {
		struct line *line = &b->lines[flow_of(first + i)];

		line->packets++;
		line->bytes += batch[i].wire_len;
	}
}

static int timed(struct flow_bench *b, uint64_t budget_ns, struct pl_bench_sample *ret,
	void (*step)(struct flow_bench *b, const struct pl_pkt96 *batch))
{
	const uint64_t start = pl_cpu_thread_ns();

	ret->items = 0;
	do {
		for (unsigned int i = 0; i < 16; i++)
			step(b, turn(b));
		ret->items += 16 * (uint64_t)BATCH;
		ret->ns = pl_cpu_thread_ns() - start;
	} while (ret->ns < budget_ns);
	return 0;
}

static int caching(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, feed);
}

static int ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return timed(arg, budget_ns, ret, add);
}

static void take(void *arg, const struct pl_flow288 *records, uint32_t n)
{
	struct flow_bench *b = arg;

	for (uint32_t i = 0; i < n; i++)
		b->sink += records[i].bytes_fwd + records[i].flow_seq;
}

/* The table in a file on tmpfs, as --flow-state has it; the file is unlinked at once. */
static int new_kept(struct flow_bench *b, const struct pl_flow_config *config, struct pl_diag *diag)
{
	char path[] = "/dev/shm/pathline-bench-XXXXXX";
	const struct pl_flow_state_options options = { .path = path };
	const int fd = mkstemp(path);
	int r = fd < 0 ? -errno : 0;

	if (r < 0) {
		pl_diag_set(diag, "no file in /dev/shm: %s", strerror(-r));
		return r;
	}
	close(fd);
	r = pl_flow_state_open(&b->state, &options, config, diag);
	(void)unlink(path);
	return r == 0 ? pl_flow_cache_new_kept(&b->cache, config, b->state, take, b, diag) : r;
}

static int one(
	struct pl_bench_ctx *ctx, struct flow_bench *b, const char *name, uint8_t proto, bool kept)
{
	const struct pl_bench_case c = { .name = name,
		.ceiling_name = "one known line",
		.subject = caching,
		.ceiling = ceiling,
		.arg = b,
		.warm_items = 4 * PACKETS };
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct pl_diag diag = { .text = "" };
	int r;

	config.max_flows = 2 * FLOWS;
	r = kept ? new_kept(b, &config, &diag)
		 : pl_flow_cache_new(&b->cache, &config, take, b, &diag);
	if (r < 0) {
		pl_complain("benchmark %s: %s", name, diag.text);
	} else {
		fill(b, proto);
		r = pl_bench_compare(ctx, &c);
	}
	pl_flow_cache_free(b->cache);
	pl_flow_state_close(b->state);
	b->cache = NULL;
	b->state = NULL;
	return r;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct flow_bench b = { .now_ns = UINT64_C(1000000000) };
	int r = -ENOMEM;

	b.packets = calloc(PACKETS, sizeof(*b.packets));
	b.lines = calloc(FLOWS, sizeof(*b.lines));
	if (b.packets == NULL || b.lines == NULL) {
		pl_complain("benchmark flow: %s", strerror(ENOMEM));
		goto out;
	}
	r = one(ctx, &b, "flow/64k-tcp", 6, false);
	if (r == 0)
		r = one(ctx, &b, "flow/64k-udp", 17, false);
	if (r == 0)
		r = one(ctx, &b, "flow/64k-tcp-state", 6, true);
	b.flooded = true;
	if (r == 0)
		r = one(ctx, &b, "flow/flood", 6, false);
	if (r == 0)
		r = one(ctx, &b, "flow/flood-state", 6, true);
	if (r == 0)
		r = pl_bench_flow_peers(ctx);
out:
	free(b.packets);
	free(b.lines);
	return r;
}

const struct pl_bench pl_bench_flow = {
	.name = "flow",
	.summary =
		"packet records to flow records, against adding to one known line per flow; with softflowd and pmacctd over a capture, against libpcap alone",
	.run = run,
};
