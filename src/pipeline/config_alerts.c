/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the rules on values of regions (the key alert) against each other and the region. */
#include <errno.h>
#include <stdio.h>

#include "base/num.h"
#include "memory/region.h"
#include "pipeline/config.h"
#include "pipeline/config_words.h"
#include "pipeline/region_input.h"

static bool has_alerts(const struct pl_config_region *r)
{
	return r->alert.above != NULL || r->alert.below != NULL || r->alert.rate != NULL;
}

/* Checks the store of a region that exists; others are checked when they are opened. */
static const char *fault_of_store(const struct pl_config_region *r)
{
	struct pl_region *region;
	const char *wrong;

	if (pl_region_open(&region, r->path, PL_REGION_READ, NULL, NULL) < 0)
		return NULL;
	wrong = pl_region_alert_fault(r, pl_region_params(region));
	(void)pl_region_close(region);
	return wrong;
}

static bool more(const char *a, const char *b)
{
	uint64_t x, y;

	return a != NULL && b != NULL && pl_parse_u64(a, &x) == 0 && pl_parse_u64(b, &y) == 0 &&
	       x > y;
}

/* Returns what is wrong with the rules of a region, with the key at fault; NULL: nothing. */
static const char *fault_of(const struct pl_config_region *r, const char **ret_key)
{
	const char *first = r->alert.above != NULL   ? "alert.above"
			    : r->alert.below != NULL ? "alert.below"
						     : "alert.rate";

	*ret_key = "alert.low";
	if (r->alert.low != NULL && r->alert.above == NULL)
		return "without alert.above: there is nothing that it ends";
	if (more(r->alert.low, r->alert.above))
		return "is more than alert.above";
	*ret_key = "alert.high";
	if (r->alert.high != NULL && r->alert.below == NULL)
		return "without alert.below: there is nothing that it ends";
	if (more(r->alert.below, r->alert.high))
		return "is less than alert.below";
	*ret_key = "alert.below";
	if (more(r->alert.below, r->alert.above))
		return "is more than alert.above: values between them would be both";
	if (!has_alerts(r))
		return NULL;
	*ret_key = first;
	if (!pl_config_reads_region(r))
		return r->writer == PL_WRITER_OUTPUT
			       ? "of a region with writer: output, which is not read"
			       : "of a region that is not read (read.every: 0s)";
	if (r->value.format == PL_VALUE_RECORD)
		return "of a region of records (value.format: record): rules on those are detect and queries";
	return fault_of_store(r);
}

int pl_config_check_alerts(struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_region *r = c->regions.items;

	for (size_t i = 0; i < c->regions.n; i++) {
		const char *key, *wrong = fault_of(&r[i], &key);

		if (wrong == NULL)
			continue;
		snprintf(c->fault, sizeof(c->fault), "regions[%zu].%s", i, key);
		return pl_diag_fail(diag, -EINVAL, "region %s: %s %s", r[i].name, key, wrong);
	}
	return 0;
}
