/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a record (seg192/1 of record/fields.def) of a correlator's result. */
#include "mark/correlate.h"

#define NS_PER_S UINT64_C(1000000000)
#define BILLION  1000000000

static uint32_t at_most(uint64_t n, uint32_t most)
{
	return n < most ? (uint32_t)n : most;
}

/* Returns the loss in billionths of `sent`, which is not 0. Rounded toward 0: a few of many are not
 * rounded up to a loss that alarms. */
static int64_t parts(int64_t loss, uint64_t sent)
{
	const __int128 parts = (__int128)loss * BILLION / (__int128)sent;

	return parts > INT64_MAX ? INT64_MAX : parts < INT64_MIN ? INT64_MIN : (int64_t)parts;
}

static void put_loss(struct pl_seg192 *ret, const struct pl_mark_result *r)
{
	if ((r->has & PL_MARK_HAS_LOSS) == 0)
		return;
	ret->has |= PL_SEG_HAS_loss;
	ret->sent = r->sent;
	ret->received = r->received;
	ret->loss = r->loss;
	if (r->method == PL_MARK_PULSE) {
		ret->has |= PL_SEG_HAS_since;
		ret->since = r->since;
	}
	if (r->sent == 0)
		return;
	ret->has |= PL_SEG_HAS_loss_ppb;
	ret->loss_ppb = parts(r->loss, r->sent);
}

static void put_delays(struct pl_seg192 *ret, const struct pl_mark_result *r)
{
#define DELAY(bit, id)                                                                             \
	if ((r->has & PL_MARK_HAS_##bit) != 0) {                                                   \
		ret->has |= PL_SEG_HAS_##id;                                                       \
		ret->id = r->id;                                                                   \
	}
	DELAY(DELAY, delay_ns)
	DELAY(MEAN, mean_ns)
	DELAY(FIRST, first_ns)
	DELAY(JITTER, jitter_ns)
#undef DELAY
	if (r->clock_error_ns != UINT64_MAX) {
		ret->has |= PL_SEG_HAS_clock_error_ns;
		ret->clock_error_ns = r->clock_error_ns;
	}
}

void pl_mark_segment_record(
	struct pl_seg192 *ret, const struct pl_mark_result *r, const struct pl_mark_segment *s)
{
	const bool has_id = r->flow.has_flow_id != 0;

	*ret = (struct pl_seg192){
		.ts_ns = r->block * r->period_ns - r->tai_offset * NS_PER_S,
		.src = r->flow.src,
		.dst = r->flow.dst,
		.sport = r->flow.sport,
		.dport = r->flow.dport,
		.proto = r->flow.proto,
		.method = r->method,
		.tai_offset = (uint16_t)at_most(r->tai_offset, UINT16_MAX),
		.block = r->block,
		.period_ns = r->period_ns,
		.has = has_id ? PL_SEG_HAS_flow_id : 0,
		.flow_id = has_id ? r->flow.flow_id : 0,
		.alarms = r->alarms,
		.segment = r->segment + 1,
		.from_point = s->from[0],
		.to_point = s->to[0],
		.from_count = (uint8_t)at_most(s->n_from, UINT8_MAX),
		.to_count = (uint8_t)at_most(s->n_to, UINT8_MAX),
		.missing_count = (uint16_t)at_most(r->n_missing, UINT16_MAX),
		.late = at_most(r->late, UINT32_MAX),
		.early = at_most(r->early, UINT32_MAX),
		.pulses_sent = r->pulses_sent,
		.pulses_received = r->pulses_received,
	};
	if (r->n_missing > 0) {
		ret->has |= PL_SEG_HAS_missing_point;
		ret->missing_point = r->missing[0];
	}
	put_loss(ret, r);
	put_delays(ret, r);
}
