/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection without records: packets straight through the parser and the steps that the kernel
 * program has, into the tables of a detector in user space. For those who want events only: no
 * record is made.
 *
 * Frames that are not settled are for the record way (pl_decode_batch, pl_detect_batch), which has
 * the same tables; order between the two matters only to the flows of one report. Here the
 * exporters' sequence numbers are counted, settled or not, so the caller leaves
 * pl_detect_exporters out; losses are told by pl_detect_tick.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "detect/direct.h"
#include "detect/events.h"
#include "wire/packet.h"

struct pl_frames_counters {
	uint64_t packets, settled;
	uint64_t fast;              /* of those settled: on the fast path (core/detect_fast.h) */
	uint64_t changed;           /* of those: a hop at least had something to look at */
	uint64_t slow[PL_SLOW_MAX]; /* of the packets: took the slow path, by cause */
	uint64_t escalated[PL_ESCALATION_MAX];
	uint64_t notes[PL_N_MAX]; /* of settled reports */
};

/* settled[i] says what became of packet i. Adds to counters. */
void pl_detect_frames(struct pl_detect *det, struct pl_direct *direct, const struct pl_batch *in,
	uint64_t now_ns, bool *settled, struct pl_frames_counters *counters,
	struct pl_event_batch *out);
