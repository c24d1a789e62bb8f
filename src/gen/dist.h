/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A distribution of a quantity: how long a node holds a packet, how deep its queue is. Written as
 * "NAME:A[,B]"; the numbers take the unit of the quantity, or a duration's suffix where it is a
 * time.
 *
 *   const:V        always V
 *   uniform:A,B    between A and B
 *   exp:M          exponential with mean M
 *   normal:M,S     normal with mean M and standard deviation S, cut off at 0
 *   pareto:M,A     Pareto with minimum M and shape A (> 1: a finite mean); the heavy tail of real
 *                  queues
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/rng.h"

enum pl_dist_kind {
	PL_DIST_DEFAULT, /* not given: whoever draws has put a default in before */
	PL_DIST_CONST,
	PL_DIST_UNIFORM,
	PL_DIST_EXP,
	PL_DIST_NORMAL,
	PL_DIST_PARETO,
};

struct pl_dist {
	enum pl_dist_kind kind;
	double a, b;
};

/* is_time: a plain number is ns, and "5us" is understood. -EINVAL with diag. */
int pl_dist_parse(struct pl_dist *ret, const char *text, bool is_time, struct pl_diag *diag);

/* One value, never negative, rounded to a whole number, at most `max`: a heavy tail has no end, but
 * the field that will carry the value has. */
uint64_t pl_dist_draw(const struct pl_dist *d, struct pl_rng *rng, uint64_t max);
