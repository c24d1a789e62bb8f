/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records into telemetry memory by Direct Telemetry Access: what a map (dta_map.h) makes of them
 * goes to a translator or into a region of this process (dta_to.h).
 *
 * An entry is a path with its hops, or an event. It is delivered when each of its reports is: in
 * the region, or confirmed by the translator (without sequence numbers: sent). Dropped entries have
 * the causes
 *
 *   empty        nothing in it that could be written: a field of the key or value is missing in each
 *                of its records, or, for postcards, its path is a part only
 *   format       a number that the key's form or the primitive cannot say
 *   rejected     the region has no place for it: a list, length of a path, or sum that cannot be
 *   memory_full  the ring was full of reports that the translator has not confirmed
 *   io           lost on the way, or the region was cut
 *
 * Of an entry with several hops, those that lack a field are left out and counted (incomplete); a
 * path whose postcards are not all there is not written. There is no spool: memory that is behind is
 * of no use to its readers.
 */
#pragma once

#include "export/dta_map.h"
#include "export/dta_to.h"

/* Takes `to` over, also on failure. -EINVAL with diag, -ENOMEM. */
int pl_dta_out_open(struct pl_export **ret, const struct pl_dta_map_options *options,
	struct pl_dta_to *to, struct pl_diag *diag);
