/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the record of a flow in the cache. */
#include "flow/record_of.h"

#include <string.h>

#include "flow/elsewhere.h"
#include "flow/role.h"

/* The mean of each side of the tap, added: both must have been measured. */
static void round_trip(struct pl_flow288 *r, const struct pl_flow_entry *f)
{
	const struct pl_flow_rtt a = pl_flow_rtt_both(f, 0), b = pl_flow_rtt_both(f, 1);

	if (a.n == 0 || b.n == 0)
		return;
	r->rtt_min_us = a.min_us + b.min_us;
	r->rtt_avg_us = (uint32_t)(a.sum_us / a.n + b.sum_us / b.n);
}

/* Writes min, mean, number and missed, in the order of the record. A time still awaited when the
 * flow ends is missed. */
static void method(uint32_t ret[4], const struct pl_flow_entry *f, unsigned int d,
	enum pl_flow_method m, bool over)
{
	const struct pl_flow_rtt rtt = pl_flow_rtt_of(f, d, m);
	const uint32_t awaited =
		m == PL_FLOW_BY_TS ? f->way[d].tsvals : (f->way[d].known & PL_WAY_SAMPLE) != 0;

	ret[0] = rtt.min_us;
	ret[1] = rtt.n != 0 ? (uint32_t)(rtt.sum_us / rtt.n) : 0;
	ret[2] = rtt.n;
	ret[3] = f->missed[d][m] + (over ? awaited : 0);
}

/* Each method has the same four fields in the same order. */
#define METHOD(name) offsetof(struct pl_flow288, rtt_##name##_min_us)
_Static_assert(offsetof(struct pl_flow288, rtt_ts_src_missed) == METHOD(ts_src) + 12, "");

static void methods(struct pl_flow288 *r, const struct pl_flow_entry *f, bool over)
{
	static const size_t at[2][PL_FLOW_METHODS] = { { METHOD(seq_dst), METHOD(ts_dst) },
		{ METHOD(seq_src), METHOD(ts_src) } };
	uint32_t numbers[4];

	for (unsigned int d = 0; d < 2; d++) {
		for (int m = 0; m < PL_FLOW_METHODS; m++) {
			method(numbers, f, d, (enum pl_flow_method)m, over);
			memcpy((uint8_t *)r + at[d][m], numbers, sizeof(numbers));
		}
	}
}

static void rare(struct pl_flow288 *r, const struct pl_flow_rare *f)
{
	r->retrans_fwd = f->retrans[0];
	r->retrans_rev = f->retrans[1];
	r->ooo_fwd = f->ooo[0];
	r->ooo_rev = f->ooo[1];
	r->zero_win_fwd = f->zero_win[0];
	r->zero_win_rev = f->zero_win[1];
	r->keepalives_fwd = f->keepalives[0];
	r->keepalives_rev = f->keepalives[1];
	r->gaps_fwd = f->gaps[0];
	r->gaps_rev = f->gaps[1];
	r->retrans_fast_fwd = f->fast[0];
	r->retrans_fast_rev = f->fast[1];
	r->retrans_timeout_fwd = f->timeout[0];
	r->retrans_timeout_rev = f->timeout[1];
	r->retrans_spurious_fwd = f->spurious[0];
	r->retrans_spurious_rev = f->spurious[1];
}

static void of_tcp(struct pl_flow288 *r, const struct pl_flow_entry *f, enum pl_flow_end reason)
{
	r->hs_external_us = f->hs_external_us;
	r->hs_internal_us = f->hs_internal_us;
	r->dup_acks_fwd = f->dup_acks[0];
	r->dup_acks_rev = f->dup_acks[1];
	round_trip(r, f);
	methods(r, f, reason != PL_FLOW_END_ACTIVE);
	if ((f->state & PL_FLOW_MARRED) != 0)
		rare(r, &f->rare);
}

void pl_flow_record_of(struct pl_flow288 *ret, const struct pl_flow_entry *flow,
	const struct pl_flow_other *other, enum pl_flow_end reason, uint32_t seq,
	const struct pl_flow_listening *set)
{
	const uint64_t packets = (uint64_t)flow->packets[0] + flow->packets[1];
	const struct pl_flow_told told = pl_flow_role_of(flow, set);

	*ret = (struct pl_flow288){
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
		.max_gap_us = (uint32_t)(flow->max_gap_ns / 1000),
		.obs = flow->place[0],
		.obs_rev = flow->packets[1] > 0 ? flow->place[1] : 0,
		.vlan = flow->vlan,
		.flow_seq = seq,
		.role = told.role,
		.role_by = told.by,
		.flow_flags =
			(uint16_t)(((flow->state & PL_FLOW_GIVEN) != 0 ? PL_FLOW_FURTHER : 0) |
				   (flow->continued != 0 ? PL_FLOW_CONTINUED : 0)),
		.records = flow->records,
	};
	if (packets > 1)
		ret->iat_mean_us =
			(uint32_t)((flow->last_ts - flow->first_ts) / (packets - 1) / 1000);
	if (flow->proto == PL_PROTO_TCP)
		of_tcp(ret, flow, reason);
	if ((flow->state & PL_FLOW_ELSEWHERE) != 0)
		pl_flow_elsewhere_tell(ret, other);
}

void pl_flow_record_restart(struct pl_flow_entry *flow, struct pl_flow_other *other, uint64_t ts_ns,
	const struct pl_flow_listening *set)
{
	const struct pl_flow_told told = pl_flow_role_of(flow, set);

	flow->role = told.role;
	flow->role_by = told.by;
	flow->state &= (uint8_t) ~(PL_FLOW_TIMED | PL_FLOW_MARRED);
	flow->state |= PL_FLOW_GIVEN;
	flow->first_ts = flow->last_ts = ts_ns;
	flow->place[0] &= (uint16_t)~PL_OBS_SAMPLED;
	pl_flow_elsewhere_restart(flow, other);
	flow->records = 0;
	flow->hs_external_us = flow->hs_internal_us = 0;
	flow->max_gap_ns = 0;
	memset(flow->missed, 0, sizeof(flow->missed));
	if (flow->proto == PL_PROTO_TCP)
		memset(flow->dup_acks, 0, sizeof(flow->dup_acks));
	for (unsigned int d = 0; d < 2; d++) {
		flow->flags[d] = 0;
		flow->bytes[d] = 0;
		flow->packets[d] = 0;
		/* Never newer than `last_ts`: pl_flow_heard_ns(). */
		if (pl_seq_after(flow->heard[d], pl_flow_heard(ts_ns)))
			flow->heard[d] = pl_flow_heard(ts_ns);
	}
}
