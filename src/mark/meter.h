/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine of a meter: it turns marked packets of flows into records of blocks. It owns no port
 * and no clock; the time of a packet is that at the measurement point (TAI). A marker counts the
 * packets that it sends in the same way, by its own clock.
 *
 * Flows are found by their packets, up to flows_max. From its first packet on a flow has a record
 * for each block, even without packets, until it was idle for idle_blocks. Blocks are read at the
 * time of pl_mark_read_at().
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

/* Makes a meter. Returns 0, -EINVAL with diag, or -ENOMEM. */
int pl_mark_meter_new(struct pl_mark_meter **ret, const struct pl_mark_meter_config *config,
	struct pl_diag *diag);
void pl_mark_meter_free(struct pl_mark_meter *m);

/* Counts `packets` of one buffer, with bits as pl_mark_bits() numbers them. Blocks that are at rest
 * at time_ns, of the point's clock, are read first. */
void pl_mark_meter_count(struct pl_mark_meter *m, const struct pl_mark_flow *flow, uint64_t time_ns,
	unsigned int bits, uint32_t packets, uint64_t bytes);

/* Counts `packets` of one buffer that a marker sends at time_ns, and returns their bits
 * (pl_mark_send()). A flow without room gets the colour and no pulse. */
unsigned int pl_mark_meter_send(struct pl_mark_meter *m, const struct pl_mark_flow *flow,
	uint64_t time_ns, uint32_t packets, uint64_t bytes);

/* Follows a flow before its first packet: it has a record for each block from time_ns on, and is
 * never forgotten. Returns 0, -EINVAL when the time is out of range, or -ENOSPC. */
int pl_mark_meter_follow(
	struct pl_mark_meter *m, const struct pl_mark_flow *flow, uint64_t time_ns);

/* Reads the blocks that are at rest at time_ns. */
void pl_mark_meter_until(struct pl_mark_meter *m, uint64_t time_ns);

/* Reads the remaining blocks, and leaves the meter empty. */
void pl_mark_meter_finish(struct pl_mark_meter *m);

const struct pl_mark_meter_stats *pl_mark_meter_stats(const struct pl_mark_meter *m);

/* Returns the bits of a packet that a marker sends at time_ns, as pl_mark_bits() numbers them.
 * *pulsed is the marker's state of a flow: the block of its last pulse. All processors must share
 * it, or a block has two pulses (the kernel's marker has a compare-and-swap of its own). */
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
