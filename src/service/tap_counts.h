/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What taps in the kernel count instead of making records of it (core/tap_counts.h), read and given to
 * where records are printed. As soon as one packet has a time of a NIC, whose clock may be another,
 * every tap goes back to records.
 */
#pragma once

#include "service/tap.h"

/* Behind the opening of the sources. Negative errno with diag. */
int pl_tap_counts_begin(struct pl_tap_service *t, struct pl_diag *diag);
/* Goes back to records, and gives the last counts. Negative errno with diag: they could not be
 * read. */
int pl_tap_counts_stop(struct pl_tap_service *t, struct pl_diag *diag);
/* In each turn, before the rings are read. Waits for some milliseconds when it is time. */
int pl_tap_counts_turn(struct pl_tap_service *t, uint64_t now_ns, struct pl_diag *diag);
/* The last ones, of taps that are stopped. */
int pl_tap_counts_end(struct pl_tap_service *t, struct pl_diag *diag);
/* Tells the time up to which every packet was given, as a tap whose rules leave most packets out, or
 * that counts, tells nobody the time by its records. */
void pl_tap_tell_passed(struct pl_tap_service *t);
