/* SPDX-License-Identifier: BSD-2-Clause */
/* What pathline region reads out of a region: lookups, dumps, and what is whole. Each returns an exit code. */
#pragma once

#include "base/opt.h"
#include "memory/region.h"

struct pl_region_args {
	const char *form;     /* one of pl_out_forms */
	const char *key_form; /* one of pl_key_forms */
	const char *epoch;    /* a number, or NULL: the present one */
	const char *nodes;    /* "1-100,205": the values that hops can have, or NULL */
	uint64_t threshold, list, from, count;
};

extern const char *const pl_key_forms[]; /* for PL_OPT_CHOICE */

/* The store of the epoch that was asked for; NULL after complaining. */
void *pl_region_store_of(const struct pl_region *region, const struct pl_region_args *args);

int pl_region_lookup(const struct pl_region *region, const struct pl_region_args *args,
	const char *const *keys, size_t n);
int pl_region_dump(const struct pl_region *region, const struct pl_region_args *args);
int pl_region_verify(const struct pl_region *region, const struct pl_region_args *args);
