/* SPDX-License-Identifier: BSD-2-Clause */
/* The exporters of tmpkt/1 in the account of a tap: a bounded list. */
#pragma once

#include "export/exposition.h"
#include "service/tap.h"

/* Counts received records of flows that several exporters send under one observation point, which a
 * flow takes for one place; warns of it once. */
void pl_tap_exporters_watch(struct pl_tap_service *t, const struct pl_pkt96 *records, uint32_t n);

/* Adds the members "by_exporter" and "other_exporters". */
void pl_tap_exporters_json(struct pl_tap_service *t, struct pl_json *json);

/* Writes each family once, with samples of n taps. names: of the taps; NULL: without a label. */
void pl_tap_exporters_page(struct pl_tap_service *const *taps, const char *const *names,
	unsigned int n, struct pl_exposition *page);
