/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Zipf's law by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate
 * variates from monotone discrete distributions", 1996): no tables, about one draw each, any n.
 */
#include <math.h>

#include "base/rng.h"
#include "gen/dta_gen.h"

/* Integral of x^-s from 1, and its inverse; precise around s = 1, where both are logarithms. */
static double integral(const struct pl_zipf *z, double x)
{
	double l = log(x), t = (1 - z->s) * l;

	return fabs(t) < 1e-8 ? l * (1 + t / 2) : l * expm1(t) / t;
}

static double inverse(const struct pl_zipf *z, double y)
{
	double t = (1 - z->s) * y;

	if (t < -1)
		t = -1;
	return exp(fabs(t) < 1e-8 ? y * (1 - t / 2) : y * log1p(t) / t);
}

static double density(const struct pl_zipf *z, double x)
{
	return exp(-z->s * log(x));
}

void pl_zipf_init(struct pl_zipf *z, uint64_t n, double s)
{
	*z = (struct pl_zipf){ .n = (double)n, .s = s };
	z->below = integral(z, 1.5) - 1;
	z->above = integral(z, z->n + 0.5);
	z->sure = 2 - inverse(z, integral(z, 2.5) - density(z, 2));
}

uint64_t pl_zipf_draw(const struct pl_zipf *z, struct pl_rng *rng)
{
	for (;;) {
		double u = z->above + pl_rng_unit(rng) * (z->below - z->above);
		double x = inverse(z, u), k = floor(x + 0.5);

		k = k < 1 ? 1 : k > z->n ? z->n : k;
		if (k - x <= z->sure || u >= integral(z, k + 0.5) - density(z, k))
			return (uint64_t)k;
	}
}
