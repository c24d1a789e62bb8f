/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Report traffic to the AF_XDP socket of its queue, everything else to the host. */
#include "bpf/collect_stamp.h"
#include "bpf/filter.bpf.h"

SEC("xdp") int pl_collect(struct xdp_md *ctx)
{
	struct pl_filter_frame f;
	uint32_t cause = pl_filter_frame(ctx, &f);

	if (cause != PL_FILTER_TAKEN)
		return pl_filter_pass(cause);
	return pl_filter_to_socket(ctx);
}

/* A frame has no stamp when the driver has no room in front of it. */
static __always_inline void stamp(struct xdp_md *ctx)
{
	struct pl_collect_stamp *s;

	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*s)) < 0)
		return;
	s = (struct pl_collect_stamp *)(long)ctx->data_meta;
	if ((const uint8_t *)(s + 1) > (const uint8_t *)(long)ctx->data)
		return;
	s->magic = PL_COLLECT_STAMP;
	s->tai_ns = bpf_ktime_get_tai_ns();
}

/* Takes frames for a tap, with the time at which each frame entered. Needs Linux 6.1. */
SEC("xdp") int pl_collect_stamped(struct xdp_md *ctx)
{
	struct pl_filter_frame f;
	uint32_t cause = pl_filter_frame(ctx, &f);
	int action;

	if (cause != PL_FILTER_TAKEN)
		return pl_filter_pass(cause);
	stamp(ctx);
	action = pl_filter_to_socket(ctx);
	/* The host gets its frames as they were: GRO joins none that have different metadata. */
	if (action != XDP_REDIRECT)
		(void)bpf_xdp_adjust_meta(ctx, (int)sizeof(struct pl_collect_stamp));
	return action;
}

/* The kernel takes this word for the dual licence of the first line. */
char _license[] SEC("license") = "Dual BSD/GPL";
