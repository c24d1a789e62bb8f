/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Returns the known parts of the present report's path. This is a global function, which the
 * verifier checks once. */
#pragma once

#include "bpf/detect_maps.bpf.h"

__attribute__((noinline)) int pl_detect_known(struct work *w)
{
	uint32_t n;

	if (w == NULL)
		return 0;
	n = w->scratch.n;
	w->known = (struct pl_core_known){ 0 };
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PL_CORE_HOPS_MAX && i < n; i++) {
		const struct pl_core_hop *h = &w->scratch.hops[i & (PL_CORE_HOPS_MAX - 1)];

		pl_core_know(&w->known, i, h->node, h->ingress_port, h->egress_port, h->present);
	}
	return 0;
}
