/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads what the tap's program counted (core/tap_counts.h), each packet once. Two tables take turns.
 * The kernel lets a program find its table in a map of one map, and changes that map only when no
 * program runs that began before (the RCU grace period of bpf(2)'s update of a map of maps): behind
 * the change the table that was in force is user space's alone, to be read and emptied.
 *
 *   pl_tap_counter_turn(c, &began_ns);          other programs count in the other table from now on
 *   pl_tap_counter_read(c, plan, sink, arg);    what the table before has; it is empty then
 *
 * What is counted behind the turn has times of began_ns or later.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/tap_counts.h"

#define PL_TAP_COUNTER_BATCH 512

/* Takes counts, which last as long as the call. */
typedef void pl_tap_count_sink(void *arg, const struct pl_tap_count *counts, uint32_t n);

struct pl_tap_counter {
	int turns_fd, table_fd[2]; /* the map of one map, and the tables; not owned */
	unsigned int now;          /* the table in force */
	struct pl_tap_count_key keys[PL_TAP_COUNTER_BATCH];
	struct pl_tap_count_value values[PL_TAP_COUNTER_BATCH];
	struct pl_tap_count counts[PL_TAP_COUNTER_BATCH];
};

/* Waits, for some milliseconds. *ret_began_ns: the time of day before it. Negative errno. */
int pl_tap_counter_turn(struct pl_tap_counter *c, uint64_t *ret_began_ns);

/* The same, and no table is in force any more: packets become records. */
int pl_tap_counter_stop(struct pl_tap_counter *c);

/* Gives away the counts of the table that is not in force. Negative errno. */
int pl_tap_counter_read(struct pl_tap_counter *c, const struct pl_tap_count_plan *plan,
	pl_tap_count_sink *sink, void *arg);
