/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the counts of the tap's program (core/tap_counts.h), each packet once. Two tables take
 * turns. The program finds its table in a map that holds one map, and the kernel returns from
 * changing that only when no program runs that began before (the RCU grace period of bpf(2)'s
 * update of a map of maps): after the change only user space uses the earlier table, reads and
 * empties it.
 *
 *   pl_tap_counter_turn(c, &began_ns);          programs count in the other table from now on
 *   pl_tap_counter_read(c, plan, sink, arg);    gives the earlier table's counts, and empties it
 *
 * Counts of the new table are of times from began_ns on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/tap_counts.h"

#define PL_TAP_COUNTER_BATCH 512

/* Takes counts, valid during the call. */
typedef void pl_tap_count_sink(void *arg, const struct pl_tap_count *counts, uint32_t n);

struct pl_tap_counter {
	int turns_fd, table_fd[2]; /* the map of one map, and the tables; not owned */
	unsigned int now;          /* the table in force */
	struct pl_tap_count_key keys[PL_TAP_COUNTER_BATCH];
	struct pl_tap_count_value values[PL_TAP_COUNTER_BATCH];
	struct pl_tap_count counts[PL_TAP_COUNTER_BATCH];
};

/* Switches to the other table, which takes some milliseconds. *ret_began_ns: the time of day
 * before. Negative errno. */
int pl_tap_counter_turn(struct pl_tap_counter *c, uint64_t *ret_began_ns);

/* Switches to no table: packets become records. Negative errno. */
int pl_tap_counter_stop(struct pl_tap_counter *c);

/* Gives the counts of the table that is not in force, and empties it. Negative errno. */
int pl_tap_counter_read(struct pl_tap_counter *c, const struct pl_tap_count_plan *plan,
	pl_tap_count_sink *sink, void *arg);
