/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of packets, flows, marks and their like into a list of telemetry memory, by Direct Telemetry
 * Access: each record as it is is an entry (append), which a translator writes. A record is delivered
 * when the translator has confirmed it. Dropped records have the causes
 *
 *   rejected     the form of the report cannot say it
 *   memory_full  the ring was full of reports that the translator has not confirmed
 *   io           lost on the way, given up or refused by the translator
 */
#pragma once

#include "export/dta_to.h"

struct pl_dta_append_options {
	uint16_t store; /* number of the region, as the translator counts its files */
	uint32_t list;
};

/* Takes `to` over, also on failure. -ENOMEM. */
int pl_dta_append_open(
	struct pl_export **ret, const struct pl_dta_append_options *options, struct pl_dta_to *to);
