/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Appends records of packets, flows, marks and other flat kinds to a list of telemetry memory by
 * Direct Telemetry Access: each record, unchanged, is one entry, which a translator writes. A
 * record is delivered when the translator has confirmed it. Causes of dropped records:
 *
 *   rejected     the form of the report cannot express it
 *   memory_full  the ring was full of reports that the translator has not confirmed
 *   io           lost on the way, given up or refused by the translator
 */
#pragma once

#include "export/dta_to.h"

struct pl_dta_append_options {
	uint16_t store; /* number of the region in the translator's order of files */
	uint32_t list;
};

/* Opens the driver and takes ownership of `to`, also on failure. -ENOMEM. */
int pl_dta_append_open(
	struct pl_export **ret, const struct pl_dta_append_options *options, struct pl_dta_to *to);
