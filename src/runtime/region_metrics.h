/* SPDX-License-Identifier: BSD-2-Clause */
/* Content of telemetry memory as families of the metrics page with the label region, for regions of
 * any writer. */
#pragma once

#include "export/exposition.h"
#include "memory/region.h"

#define PL_REGIONS_SHOWN_MAX      256
#define PL_REGION_LISTS_SHOWN_MAX 64 /* heads of lists of each region */

/* Regions of several services. Zeroed at first. */
struct pl_region_list {
	const struct pl_region *regions[PL_REGIONS_SHOWN_MAX];
	const char *names[PL_REGIONS_SHOWN_MAX]; /* owned by the services */
	unsigned int n, hidden;                  /* hidden: regions beyond the limit */
};

void pl_region_list_add(
	struct pl_region_list *list, const struct pl_region *region, const char *name);

/* Reads at most 65536 slots of each region. Called once a page. */
void pl_regions_metrics(struct pl_exposition *page, const struct pl_region_list *list);
