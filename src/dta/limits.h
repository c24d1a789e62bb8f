/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits on the reports that a translator accepts into a store, in the form of options: "7=1000",
 * "100k", "3=20k@4+4". */
#pragma once

#include "dta/translator.h"

#define PL_DTA_EVERY_STORE UINT32_MAX

/* "RATE" or "STORE=RATE": reports per second, above 0. *store is PL_DTA_EVERY_STORE when there is
 * no STORE. Returns -EINVAL. */
int pl_dta_rate_parse(const char *text, uint32_t *store, double *rate);

/* "STORE=VALUE[@OFFSET+WIDTH]": only reports greater than VALUE. A width of 0 means all bytes of a
 * value or entry. Returns -EINVAL. */
int pl_dta_above_parse(const char *text, uint32_t *store, struct pl_dta_filter *filter);
