/* SPDX-License-Identifier: BSD-2-Clause */
/* The screen of pathline status: faults of a daemon first, then its sources, totals and outputs. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

/* Prints the document /api/v1/status, with `json` as it is. PL_EXIT_OK without a fault,
 * PL_EXIT_NOTHING with one, PL_EXIT_FAILED when it cannot be written. */
int pl_status_print(const json_t *status, const char *url, bool json);
