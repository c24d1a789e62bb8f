/* SPDX-License-Identifier: BSD-2-Clause */
/* What a generated stream must have left behind is asked of the regions, key by key. */
#pragma once

#include <stdint.h>

#include "base/diag.h"

/* A stream of gen/dta_gen.h in which keys follow each other, and values follow from them. */
struct pl_dta_made {
	uint64_t reports;   /* so many were made, by all together */
	uint64_t keys;      /* increments: of so many keys in turn, by 1 */
	uint32_t lists;     /* append: in turn, as many as the regions have at the most */
	uint32_t hops;      /* postcards: of a path, 1 to so many by its flow */
	uint32_t nodes;     /* postcards: so many different ones */
	uint32_t reporters; /* sketch: that delivered it, each the same */
};

/* asked = right + wrong + missing. */
struct pl_dta_checked {
	uint64_t asked, right, wrong;
	uint64_t missing; /* no answer, lists and sums: not all of it */
	/* share of `asked` that later keys overwrite on average; of lists and sums 0 */
	double expected;
	const char *primitive; /* of the regions, its name */
};

/*
 * Asks the region of each collector, and of each epoch that ended (paths), for what was made; what
 * several have is put together. Of lists only what has not been overwritten counts as asked. A sum that
 * is too high is wrong as soon as all of them together are more than was reported. Of a sketch the
 * columns of the last epoch are asked for. `expected` is that of one collector: several have more room.
 * Negative errno with diag.
 */
int pl_dta_check(const struct pl_dta_made *made, const char *const *paths, unsigned int n,
	struct pl_dta_checked *ret, struct pl_diag *diag);
