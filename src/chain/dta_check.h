/* SPDX-License-Identifier: BSD-2-Clause */
/* What a generated stream must have left behind is asked of the regions, key by key. */
#pragma once

#include "chain/dta_conf.h"

/* asked = right + wrong + missing. */
struct pl_dta_checked {
	uint64_t asked, right, wrong;
	uint64_t missing; /* no answer, lists and sums: not all of it */
	/* share of `asked` that later keys overwrite on average; of lists and sums 0 */
	double expected;
};

/*
 * Asks the region of each collector (paths) for what the store's generator reported, in its order,
 * of which it made the first `made`; what several have is put together. Of lists only what has not
 * been overwritten counts as asked. A sum that is too high is wrong as soon as all of them together
 * are more than was reported. Of a sketch the columns of the last epoch are asked for. `expected`
 * is that of one collector: several have more room. Negative errno with diag.
 */
int pl_dta_check(const struct pl_dta_conf_store *s, uint64_t made, const char *const *paths,
	unsigned int n, struct pl_dta_checked *ret, struct pl_diag *diag);

/* The arguments of pathline gen dta for the store's stream, NULL behind the last; ret has room for
 * 24, text for 24 times 24 bytes. */
void pl_dta_check_stream(const struct pl_dta_conf_store *s, unsigned int number, const char *to,
	const char *ret[24], char text[24][24]);
