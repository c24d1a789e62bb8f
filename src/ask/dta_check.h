/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares regions, key by key, with what a generated stream must have left in them. */
#pragma once

#include <stdint.h>

#include "base/diag.h"

/* A stream of gen/dta_gen.h, with successive keys and values that follow from them. */
struct pl_dta_made {
	uint64_t reports;   /* number of reports of all reporters together */
	uint64_t keys;      /* increments: number of keys, which take turns, each by 1 */
	uint32_t lists;     /* append: number of lists, which take turns; at most those of the
			     * regions */
	uint32_t hops;      /* postcards: longest path; a path has 1 to as many, by its flow */
	uint32_t nodes;     /* postcards: number of different nodes */
	uint32_t reporters; /* sketch: number of reporters, which delivered the same */
};

/* asked = right + wrong + missing. */
struct pl_dta_checked {
	uint64_t asked, right, wrong;
	uint64_t missing; /* no answer; lists and sums: only a part */
	/* share of `asked` that later keys overwrite on average; 0 for lists and sums */
	double expected;
	const char *primitive; /* name of the regions' primitive */
};

/*
 * Looks up everything that was reported in the region of each collector, and of each ended epoch
 * (paths), and joins the answers. In lists only entries that were not overwritten count as asked. A
 * sum that is too high is wrong as soon as all sums together are more than was reported. Of a
 * sketch the columns of the last epoch are asked. `expected` is for one collector: several have
 * more room. Negative errno with diag.
 */
int pl_dta_check(const struct pl_dta_made *made, const char *const *paths, unsigned int n,
	struct pl_dta_checked *ret, struct pl_diag *diag);
