/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes records into telemetry memory by Direct Telemetry Access: a map (dta_map.h) makes reports
 * of them, which go to a translator or into a region of this process (dta_to.h).
 *
 * An entry is a path with its hops, or an event. It is delivered when all of its reports are: in
 * the region, or confirmed by the translator (without sequence numbers: sent). Causes of dropped
 * entries:
 *
 *   empty        nothing to write: each of its records lacks a field of the key or value, or,
 *                for postcards, the path is incomplete
 *   format       a number does not fit the key's form or the primitive
 *   rejected     the region has no place for it: a list, a length of a path, or a sum that would
 *                overflow
 *   memory_full  the ring was full of reports that the translator has not confirmed
 *   io           lost on the way, or the region was cut
 *
 * Of an entry with several hops, those that lack a field are left out and counted (incomplete); a
 * path is not written unless all of its postcards can be. There is no spool: readers have no use
 * for memory that lags behind.
 */
#pragma once

#include "export/dta_map.h"
#include "export/dta_to.h"

/* Opens the driver and takes ownership of `to`, also on failure. -EINVAL with diag, -ENOMEM. */
int pl_dta_out_open(struct pl_export **ret, const struct pl_dta_map_options *options,
	struct pl_dta_to *to, struct pl_diag *diag);
