/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts that taps in the kernel make instead of records (core/tap_counts.h): read, and given to
 * the consumer of records. As soon as one packet has a time of a NIC, which may be another clock,
 * every tap makes records again.
 */
#pragma once

#include "service/tap.h"

/* To be called after the sources were opened. Returns negative errno with diag. */
int pl_tap_counts_begin(struct pl_tap_service *t, struct pl_diag *diag);
/* Makes taps return to records, and gives their last counts. Returns negative errno with diag when
 * these could not be read. */
int pl_tap_counts_stop(struct pl_tap_service *t, struct pl_diag *diag);
/* Reads counts that are due; call it in each turn before the rings are read. It waits some
 * milliseconds when counts are due. */
int pl_tap_counts_turn(struct pl_tap_service *t, uint64_t now_ns, struct pl_diag *diag);
/* Gives the last counts of taps that were stopped. */
int pl_tap_counts_end(struct pl_tap_service *t, struct pl_diag *diag);
/* Tells the time up to which every packet was given: records do not tell it when rules leave out
 * most packets, or packets are counted. */
void pl_tap_tell_passed(struct pl_tap_service *t);
