/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The live-frame generator's program: the kernel runs it over frames of a pool (BPF_PROG_TEST_RUN
 * with BPF_F_TEST_XDP_LIVE_FRAMES), it writes what is to be different and sends each out of an
 * interface. Frames come back to the pool as the receiver left them, so the beginning can be
 * written anew too.
 */
#include <linux/bpf.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bpf/live.h"

const volatile struct pl_live_plan pl_live_plan;

uint64_t pl_live_words[PL_LIVE_FRAME_MAX / 8]; /* the frame */
uint64_t pl_live_frames;                       /* made; one thread runs the program */
uint32_t pl_live_count;
uint64_t pl_live_taken; /* by the receiver, as user space says */

struct pl_live_row {
	uint8_t bytes[PL_LIVE_ROW_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct pl_live_row);
} pl_live_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, uint32_t);
} pl_live_out SEC(".maps");

static __always_inline void put(uint8_t *at, const uint8_t *end, const uint8_t *from, uint32_t len)
{
	if (at + len > end)
		return;
	if (len == 8)
		*(uint64_t *)at = *(const uint64_t *)from;
	else if (len == 4)
		*(uint32_t *)at = *(const uint32_t *)from;
	else if (len == 2)
		*(uint16_t *)at = *(const uint16_t *)from;
	else
		*at = *from;
}

SEC("xdp") int pl_live(struct xdp_md *ctx)
{
	uint8_t *data = (uint8_t *)(long)ctx->data;
	const uint8_t *end = (const uint8_t *)(long)ctx->data_end;
	uint32_t words = pl_live_plan.restore_words, n = pl_live_plan.nfields, key;
	const struct pl_live_row *row;
	uint32_t number, count;

	if (pl_live_plan.window > 0 &&
		pl_live_frames - *(volatile uint64_t *)&pl_live_taken >= pl_live_plan.window)
		return XDP_DROP; /* back to the pool */
	number = pl_live_count++;
	count = bpf_htonl(number);
	key = (pl_live_plan.in_order ? number : bpf_get_prandom_u32()) & pl_live_plan.row_mask;
	row = bpf_map_lookup_elem(&pl_live_rows, &key);
	if (row == NULL)
		return XDP_ABORTED;
	for (uint32_t i = 0; i < PL_LIVE_FRAME_MAX / 8 && i < words; i++) {
		if (data + 8 * i + 8 > end)
			return XDP_ABORTED;
		*(uint64_t *)(data + 8 * i) = pl_live_words[i];
	}
#pragma unroll
	for (uint32_t i = 0; i < PL_LIVE_FIELDS_MAX; i++) {
		const volatile struct pl_live_field *f = &pl_live_plan.fields[i];
		uint32_t at = f->at;

		if (i >= n)
			break;
		if (f->kind == PL_LIVE_COUNT)
			put(data + f->offset, end, (const uint8_t *)&count, 4);
		else if (at <= PL_LIVE_ROW_BYTES - 8)
			put(data + f->offset, end, row->bytes + at, f->len);
	}
	pl_live_frames++;
	return (int)bpf_redirect_map(&pl_live_out, 0, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
