/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ceilings of benchmarks: programs that do nothing but what cannot be left out. */
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/least.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint64_t);
} pl_bench_frames SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} pl_bench_ring SEC(".maps");

uint64_t pl_bench_sum, pl_bench_new; /* new: flows, or their paths, to pl_bench_least_ids */

static __always_inline void count(void)
{
	uint32_t zero = 0;
	uint64_t *frames = bpf_map_lookup_elem(&pl_bench_frames, &zero);

	if (frames != NULL)
		++*frames;
}

SEC("xdp") int pl_bench_empty(struct xdp_md *ctx)
{
	return XDP_DROP;
}

/* What an interface does without a tap. */
SEC("xdp") int pl_bench_pass(struct xdp_md *ctx)
{
	count();
	return XDP_PASS;
}

SEC("tc") int pl_bench_next_program(struct __sk_buff *skb)
{
	return -1; /* TC_ACT_UNSPEC */
}

SEC("xdp") int pl_bench_pass_only(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* R1: every line of the frame is read, the frame dropped. */
SEC("xdp") int pl_bench_lines(struct xdp_md *ctx)
{
	const uint8_t *p = (const uint8_t *)(long)ctx->data,
		      *end = (const uint8_t *)(long)ctx->data_end;
	uint64_t sum = 0;

#pragma unroll
	for (int i = 0; i < 12; i++) {
		if (p + i * 64 + 8 > end)
			break;
		sum += *(const uint64_t *)(p + i * 64);
	}
	if (sum == 0x0123456789abcdef)
		pl_bench_sum = sum;
	count();
	return XDP_DROP;
}

/* bench/least.h, with an array or a hash table of nodes; the latter has four times as much room as
 * there are keys. */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * PL_LEAST_NODES);
	__type(key, uint32_t);
	__type(value, struct pl_least_node);
} pl_bench_nodes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4 * PL_LEAST_NODES);
	__type(key, uint32_t);
	__type(value, struct pl_least_node);
} pl_bench_keys SEC(".maps");

static __always_inline int least(struct xdp_md *ctx, void *nodes)
{
	const uint8_t *p = (const uint8_t *)(long)ctx->data,
		      *end = (const uint8_t *)(long)ctx->data_end;

	if (p + PL_LEAST_BYTES > end || !pl_least_form(p))
		return XDP_PASS;
#pragma unroll
	for (int i = 0; i < PL_LEAST_HOPS; i++) {
		const uint8_t *block = p + PL_LEAST_STACK + i * PL_LEAST_BLOCK;
		const uint32_t node = pl_frame_be32(block);
		struct pl_least_node *n = bpf_map_lookup_elem(nodes, &node);

		if (n == NULL)
			return XDP_PASS;
		pl_least_step(n, block);
	}
	count();
	return XDP_DROP;
}

SEC("xdp") int pl_bench_least(struct xdp_md *ctx)
{
	return least(ctx, &pl_bench_nodes);
}

SEC("xdp") int pl_bench_least_keys(struct xdp_md *ctx)
{
	return least(ctx, &pl_bench_keys);
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, uint32_t);
	__type(value, struct pl_least_exporter);
} pl_bench_exporters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PL_LEAST_FLOWS);
	__type(key, uint32_t);
	__type(value, struct pl_least_flow);
} pl_bench_least_flows SEC(".maps");

static __always_inline uint64_t word(const uint8_t *p)
{
	uint64_t v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

static __always_inline int step_exporter(const uint8_t *p)
{
	const uint32_t source = pl_frame_be32(p + 26), seq = pl_frame_be32(p + 50),
		       at = source & 255;
	struct pl_least_exporter *e = bpf_map_lookup_elem(&pl_bench_exporters, &at);

	if (e == NULL)
		return -1;
	e->source = source;
	e->gaps += seq != e->next_seq;
	e->next_seq = seq + 1;
	e->reports++;
	return 0;
}

/* Whose path differs, or is another flow's, is written anew: what a detector would hand up or take
 * its slow path for. */
static __always_inline int step_flow(const uint8_t *p, uint32_t hops)
{
	const uint64_t a = word(p + 84), b = (uint64_t)pl_frame_be32(p + 92) << 8 | p[81];
	const uint64_t h = (a ^ b * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
	const uint32_t at = (uint32_t)(h >> 32) & (PL_LEAST_FLOWS - 1);
	struct pl_least_flow *f = bpf_map_lookup_elem(&pl_bench_least_flows, &at);
	uint64_t differs;

	if (f == NULL)
		return -1;
	differs = (f->key[0] ^ a) | (f->key[1] ^ b) |
		  (word((const uint8_t *)f->path) ^ word(p + 112)) |
		  (f->path[2] ^ *(const uint32_t *)(p + 120));
	if (hops == 6)
		differs |= (f->path[3] ^ *(const uint32_t *)(p + 124)) |
			   (word((const uint8_t *)(f->path + 4)) ^ word(p + 128));
	if (differs != 0) {
		f->key[0] = a;
		f->key[1] = b;
		__builtin_memcpy(f->path, p + 112, 12);
		if (hops == 6)
			__builtin_memcpy(f->path + 3, p + 124, 12);
		pl_bench_new++;
	}
	f->reports++;
	f->last = pl_frame_be32(p + 54);
	return 0;
}

SEC("xdp") int pl_bench_least_ids(struct xdp_md *ctx)
{
	const uint8_t *p = (const uint8_t *)(long)ctx->data,
		      *end = (const uint8_t *)(long)ctx->data_end;
	uint32_t hops;

	if (p + 124 > end)
		return XDP_PASS;
	hops = pl_least_ids(p);
	if (hops == 0 || (hops == 6 && p + 136 > end))
		return XDP_PASS;
	/* Again for the verifier, which forgets what it knows of hops. */
	if (hops == 6) {
		if (p + 136 > end || step_exporter(p) < 0 || step_flow(p, 6) < 0)
			return XDP_PASS;
	} else if (step_exporter(p) < 0 || step_flow(p, 3) < 0) {
		return XDP_PASS;
	}
	count();
	return XDP_DROP;
}

/* R5: an event's size goes into a ring, nobody is woken. */
SEC("xdp") int pl_bench_event(struct xdp_md *ctx)
{
	uint64_t *e = bpf_ringbuf_reserve(&pl_bench_ring, 128, 0);

	if (e != NULL) {
#pragma unroll
		for (int i = 0; i < 16; i++)
			e[i] = (uint64_t)i;
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
		count();
	}
	return XDP_DROP;
}

/* Where a report's number and its flow's source stand in the frame, and how many flows there
 * are. */
uint32_t pl_bench_seq_at, pl_bench_src_at, pl_bench_flows = 1, pl_bench_next;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} pl_bench_then SEC(".maps");

static __always_inline void put32(uint8_t *data, const uint8_t *end, uint32_t at, uint32_t v)
{
	uint8_t *p = data + (at & 511);

	if (p + 4 <= end)
		*(uint32_t *)p = bpf_htonl(v);
}

/*
 * For test runs, which give a program the same frame again and again: makes it the report of a flow
 * drawn at random, and goes on with another program. Drawn, not in a cycle: where flows come again
 * in the order in which they were met first, a table that takes entries from a list finds them in
 * the order of memory, which no network does for it.
 */
static __always_inline void draw(uint8_t *data, const uint8_t *end)
{
	uint32_t n = pl_bench_next++;
	uint32_t x = n * 2654435769u;

	x = (x ^ x >> 16) * 0x7feb352d;
	x = (x ^ x >> 15) * 0x846ca68b;
	x ^= x >> 16;
	put32(data, end, pl_bench_seq_at, n);
	put32(data, end, pl_bench_src_at, 0x0a000000 | x % pl_bench_flows);
}

SEC("xdp") int pl_bench_turn(struct xdp_md *ctx)
{
	draw((uint8_t *)(long)ctx->data, (uint8_t *)(long)ctx->data_end);
	bpf_tail_call(ctx, &pl_bench_then, 0);
	return XDP_ABORTED;
}

/* Programs that know packets of several pieces, and others, are not called by each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} pl_bench_then_frags SEC(".maps");

SEC("xdp.frags") int pl_bench_turn_frags(struct xdp_md *ctx)
{
	draw((uint8_t *)(long)ctx->data, (uint8_t *)(long)ctx->data_end);
	bpf_tail_call(ctx, &pl_bench_then_frags, 0);
	return XDP_ABORTED;
}

/* And for programs of traffic control. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} pl_bench_then_tc SEC(".maps");

SEC("tc") int pl_bench_turn_tc(struct __sk_buff *skb)
{
	draw((uint8_t *)(long)skb->data, (uint8_t *)(long)skb->data_end);
	bpf_tail_call(skb, &pl_bench_then_tc, 0);
	return 2; /* TC_ACT_SHOT */
}

char _license[] SEC("license") = "Dual BSD/GPL";
