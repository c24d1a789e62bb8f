/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ceilings of benchmarks: programs that do nothing but what cannot be left out. */
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/bpf_helpers.h>

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

uint64_t pl_bench_sum;

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

char _license[] SEC("license") = "Dual BSD/GPL";
