/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Report traffic to the AF_XDP socket of its queue, everything else to the host. */
#include "bpf/filter.bpf.h"

SEC("xdp") int pl_collect(struct xdp_md *ctx)
{
	struct pl_filter_frame f;
	uint32_t cause = pl_filter_frame(ctx, &f);

	if (cause != PL_FILTER_TAKEN)
		return pl_filter_pass(cause);
	return pl_filter_to_socket(ctx);
}

/* The kernel takes this word for the dual licence of the first line. */
char _license[] SEC("license") = "Dual BSD/GPL";
