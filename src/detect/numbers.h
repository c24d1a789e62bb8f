/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Account of each exporter, whether the kernel program or user space reads its reports. The kernel
 * program counts the sequence numbers that it can read. When it escalates a report whose number it
 * cannot read (the report carries INT itself, the exporter has a profile, …), a gap in its account
 * would not be a loss. So from then on user space counts all numbers of that exporter, in the same
 * entry of the same table: the program sees `above` in the entry and passes the numbers of the
 * reports that it settles among the frames, in their order. Reports that the program escalated
 * because user space had the turn (core/turn.h) are counted here as well. The holder of the turn
 * writes the entry. A number that comes here after later ones were counted was delayed inside this
 * program: it counts neither as lost nor as reordered.
 */
#pragma once

#include "bpf/detect_kernel.h"
#include "detect/tables.h"

/* Counts a number that user space read (UNREAD by the program, or LATE) or was left with (LEFT), of
 * a report on the queue whose tables env has; program_ts_ns: the time with which the program stamps
 * frames now. True when the report counts: its exporter is proven, or need not be. */
bool pl_numbers_step(struct pl_core_env *env, const struct pl_core_numbered *n,
	enum pl_kernel_number kind, uint64_t now_ns, uint64_t ts_ns, uint64_t program_ts_ns);
