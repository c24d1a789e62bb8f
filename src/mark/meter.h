/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A meter as an engine: marked packets of flows to records of blocks. It owns no port and no clock;
 * the time of a packet is that at the measurement point (TAI). A marker's counts are the same: what
 * it sends, by its own clock.
 *
 * Flows are found by their packets, up to a bound. From its first packet on a flow has a record for
 * each block, without packets too, until it has been idle for so many blocks. A block is read at
 * (k + 1.5) periods.
 */
#pragma once

#include "base/diag.h"
#include "base/stats.h"
#include "mark/record.h"

struct pl_mark_meter_config {
	struct pl_mark_point point;
	uint64_t guard_ns;
	uint32_t flows_max;   /* 0: 65536 */
	uint32_t idle_blocks; /* 0: 10 */
	void (*record)(void *arg, const struct pl_mark128 *record);
	void *arg;
};

struct pl_mark_meter_stats {
#define PL_STAT PL_STAT_MEMBER
#include "mark/meter_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_mark_meter_stats_list;

struct pl_mark_meter;

/* -EINVAL with diag, -ENOMEM. */
int pl_mark_meter_new(struct pl_mark_meter **ret, const struct pl_mark_meter_config *config,
	struct pl_diag *diag);
void pl_mark_meter_free(struct pl_mark_meter *m);

/*
 * `packets` of one buffer, with the bits as pl_mark_bits() numbers them. Blocks that are at rest by
 * then are read first. The time is that of the point's clock.
 */
void pl_mark_meter_count(struct pl_mark_meter *m, const struct pl_mark_flow *flow, uint64_t time_ns,
	unsigned int bits, uint32_t packets, uint64_t bytes);

/*
 * The marker's side: what pl_mark_send() says of `packets` of one buffer that is sent at the time,
 * counted as such. A flow without room has the colour, and no pulse.
 */
unsigned int pl_mark_meter_send(struct pl_mark_meter *m, const struct pl_mark_flow *flow,
	uint64_t time_ns, uint32_t packets, uint64_t bytes);

/* A flow that is known before its first packet: it has a record for each block from that time on, and
 * is never forgotten. -EINVAL: the time cannot be; -ENOSPC. */
int pl_mark_meter_follow(
	struct pl_mark_meter *m, const struct pl_mark_flow *flow, uint64_t time_ns);

/* Reads blocks that are at rest at that time. */
void pl_mark_meter_until(struct pl_mark_meter *m, uint64_t time_ns);

/* Reads the blocks that are left; the meter is empty then. */
void pl_mark_meter_finish(struct pl_mark_meter *m);

const struct pl_mark_meter_stats *pl_mark_meter_stats(const struct pl_mark_meter *m);

/*
 * The marker's state of a flow: the block of its last pulse. Returns the bits of the packet that is
 * sent at the time, as pl_mark_bits() numbers them. Processors share the state of a flow, or there
 * are two pulses in a block (the kernel's marker has a compare-and-swap of its own).
 */
static inline unsigned int pl_mark_send(uint64_t *pulsed, unsigned int method, uint64_t period_ns,
	uint64_t guard_ns, uint64_t time_ns)
{
	const uint64_t block = time_ns / period_ns, into = time_ns - block * period_ns;
	const struct pl_mark_window w = pl_mark_pulse_window(method, period_ns, guard_ns);
	const unsigned int pulse = into >= w.from_ns && into < w.to_ns && *pulsed != block;

	if (pulse != 0)
		*pulsed = block;
	return pl_mark_bits(method, block, pulse);
}
