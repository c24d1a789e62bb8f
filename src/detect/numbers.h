/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One account per exporter, whoever reads its reports. The kernel program counts the sequence
 * numbers that it can read. When a number comes up that it could not (the report carries INT
 * itself, the exporter has a profile, …), a gap in its books would be no loss; so from then on user
 * space counts all numbers of that exporter, in the same entry of the same table: the program sees
 * `above` there and sends the numbers of what it settles up among the frames, in their order. What
 * the program escalated because user space had the turn (core/turn.h), it did not count: that is
 * done here as well.
 *
 * The entry is written by whoever has the turn. A number that comes here after later ones were
 * counted is late by our own doing, and neither lost nor reordered.
 */
#pragma once

#include "bpf/detect_kernel.h"
#include "detect/tables.h"

/* A number that user space read (UNREAD by the program, or LATE) or was left with (LEFT), of a
 * report on the queue whose tables env has; program_ts_ns: the time by which the program stamps
 * frames now. Whether the report counts: its exporter is proven, or need not be. */
bool pl_numbers_step(struct pl_core_env *env, const struct pl_core_numbered *n,
	enum pl_kernel_number kind, uint64_t now_ns, uint64_t ts_ns, uint64_t program_ts_ns);
