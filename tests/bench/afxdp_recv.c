/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames out of an AF_XDP port, touched and released, against a bare loop over the rings that does
 * the same (bench_afxdp.h). Both have the same socket, rings, filter program and frames. What the
 * port adds is batches, packets with their time, the loan, and looking after the interface.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/bench/afxdp.h"

struct recv_bench {
	struct pl_afxdp_bench wire; /* first: what the runs are given */
	struct pl_batch batch;
	uint8_t frame[PL_LIVE_FRAME_MAX];
};

static volatile uint64_t keep;

/* A frame of this length; the report's sequence number differs from frame to frame. */
static int set_frame(struct recv_bench *b, uint32_t bytes)
{
	static const struct pl_live_field field = { .offset = 46, .len = 4, .kind = PL_LIVE_COUNT };
	static const uint8_t zero_rows[1][PL_LIVE_ROW_BYTES];
	uint8_t payload[PL_LIVE_FRAME_MAX] = { 0x20 };
	int r = pl_wire_frame(b->frame, sizeof(b->frame), payload, bytes - 42);

	b->wire.live = (struct pl_live_cfg){ .frame = b->frame,
		.frame_bytes = bytes,
		.restore_bytes = 48,
		.fields = &field,
		.nfields = 1,
		.rows = zero_rows,
		.nrows = 1 };
	return r < 0 ? r : 0;
}

static int take_port(struct pl_afxdp_bench *wire, void *receiver)
{
	struct recv_bench *b = (struct recv_bench *)wire;
	struct pl_port *port = receiver;
	uint64_t sum = 0;
	int n = pl_port_recv(port, &b->batch, 10, NULL);

	/* The carrier came: news for a daemon. */
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++)
		sum += b->batch.pkts[i].data[60];
	wire->sum += sum;
	pl_port_release(port, &b->batch);
	return n;
}

static int subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return pl_afxdp_measure_port(arg, PL_AFXDP_URI, take_port, budget_ns, ret);
}

static const struct {
	const char *name;
	uint32_t bytes;
} sizes[] = { { "afxdp-recv/128-bytes", 128 }, { "afxdp-recv/256-bytes", 256 } };

static int one(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *wire, size_t i)
{
	struct recv_bench *b = (struct recv_bench *)wire;
	const struct pl_bench_case c = { .name = sizes[i].name,
		.ceiling_name = "R2: touch and recycle",
		.subject = subject,
		.ceiling = pl_afxdp_bare,
		.arg = b,
		.crosses_cores = true };
	int r = set_frame(b, sizes[i].bytes);

	return r == 0 ? pl_bench_compare(ctx, &c) : r;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct recv_bench *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL)
		return -ENOMEM;
	r = pl_afxdp_run(ctx, &b->wire, "afxdp-recv", one, sizeof(sizes) / sizeof(sizes[0]));
	keep = b->wire.sum;
	free(b);
	return r;
}

const struct pl_bench pl_bench_afxdp_recv = {
	.name = "afxdp-recv",
	.summary =
		"frames of an AF_XDP port over a veth pair, against a bare loop over its rings (root)",
	.run = run,
};
