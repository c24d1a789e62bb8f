/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A distribution of a quantity, as the hop latency or the queue depth of a node. Written as
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
	PL_DIST_DEFAULT, /* not given: the caller has put in a default */
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

static inline bool pl_dist_same(const struct pl_dist *a, const struct pl_dist *b)
{
	return a->kind == b->kind && (a->kind == PL_DIST_DEFAULT || (a->a == b->a && a->b == b->b));
}

/* is_time: a plain number is ns, and "5us" is understood. Returns -EINVAL with diag. */
int pl_dist_parse(struct pl_dist *ret, const char *text, bool is_time, struct pl_diag *diag);

/* Draws a value: not negative, rounded to a whole number, at most `max`, the largest value of the
 * field that will carry it. */
uint64_t pl_dist_draw(const struct pl_dist *d, struct pl_rng *rng, uint64_t max);
