/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the record of a flow in the cache. */
#include "flow/record_of.h"

/* The mean of each side of the tap, added: both must have been measured. */
static void round_trip(struct pl_flow128 *r, const struct pl_flow_entry *f)
{
	const struct pl_flow_way *a = &f->way[0], *b = &f->way[1];

	if (a->rtt_n == 0 || b->rtt_n == 0)
		return;
	r->rtt_min_us = f->rtt_min_us[0] + f->rtt_min_us[1];
	r->rtt_avg_us = (uint32_t)(a->rtt_sum_us / a->rtt_n + b->rtt_sum_us / b->rtt_n);
}

struct pl_flow128 pl_flow_record_of(
	const struct pl_flow_entry *flow, enum pl_flow_end reason, uint32_t seq)
{
	const uint64_t packets = (uint64_t)flow->packets[0] + flow->packets[1];
	struct pl_flow128 r = {
		.first_ts = flow->first_ts,
		.last_ts = flow->last_ts,
		.src = flow->src,
		.dst = flow->dst,
		.sport = flow->sport,
		.dport = flow->dport,
		.proto = flow->proto,
		.end_reason = (uint8_t)reason,
		.flags_fwd = flow->flags[0],
		.flags_rev = flow->flags[1],
		.bytes_fwd = flow->bytes[0],
		.bytes_rev = flow->bytes[1],
		.pkts_fwd = flow->packets[0],
		.pkts_rev = flow->packets[1],
		.hs_external_us = flow->hs_external_us,
		.hs_internal_us = flow->hs_internal_us,
		.retrans_fwd = flow->retrans[0],
		.retrans_rev = flow->retrans[1],
		.ooo_fwd = flow->ooo[0],
		.ooo_rev = flow->ooo[1],
		.max_gap_us = (uint32_t)(flow->max_gap_ns / 1000),
		.obs = flow->obs,
		.vlan = flow->vlan,
		.flow_seq = seq,
	};

	if (packets > 1)
		r.iat_mean_us = (uint32_t)((flow->last_ts - flow->first_ts) / (packets - 1) / 1000);
	round_trip(&r, flow);
	return r;
}

void pl_flow_record_restart(struct pl_flow_entry *flow, uint64_t ts_ns)
{
	flow->first_ts = flow->last_ts = ts_ns;
	flow->hs_external_us = flow->hs_internal_us = 0;
	flow->max_gap_ns = 0;
	for (unsigned int d = 0; d < 2; d++) {
		flow->flags[d] = 0;
		flow->bytes[d] = 0;
		flow->packets[d] = 0;
		flow->retrans[d] = flow->ooo[d] = 0;
		flow->rtt_min_us[d] = 0;
		flow->way[d].rtt_sum_us = 0;
		flow->way[d].rtt_n = 0;
	}
}
