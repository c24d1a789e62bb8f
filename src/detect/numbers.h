/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One account per exporter, whoever reads its reports. The kernel program counts the sequence numbers that it can read.
 * When a number comes up that it could not (the report carries INT itself, the exporter has a profile, …), a gap in its
 * books would be no loss; so from then on user space counts all numbers of that exporter, in the same entry of the same
 * table: the program sees `above` there, lets go of the sequence and sends the numbers of what it settles up among the
 * frames, in their order.
 *
 * Two never write at once: user space waits until a number came that the program left to it (or 100 ms, which no run of
 * the program takes). What was read meanwhile waits here; it is late by our own doing, and neither lost nor
 * reordered.
 *
 * One thread: the one that takes the frames.
 */
#pragma once

#include "bpf/detect_kernel.h"
#include "detect/tables.h"

enum { PL_NUMBERS_WAITING = 256 };

struct pl_numbers {
	struct {
		struct pl_core_env *env;
		struct pl_core_numbered n;
		uint64_t ts_ns;
	} waiting[PL_NUMBERS_WAITING];
	unsigned int n;
	uint64_t since_ns; /* when the oldest came */
};

/* A number that user space read (UNREAD by the program) or was left with (LEFT), of a report on the queue whose tables
 * env has; program_ts_ns: the time by which the program stamps frames now. */
void pl_numbers_step(struct pl_numbers *s, struct pl_core_env *env,
	const struct pl_core_numbered *n, enum pl_kernel_number kind, uint64_t now_ns,
	uint64_t ts_ns, uint64_t program_ts_ns);

/* About every 100 ms. */
void pl_numbers_tick(struct pl_numbers *s, uint64_t now_ns);
