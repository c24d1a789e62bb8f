/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws numbers from distributions given as text. */
#include "gen/dist.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"

static const struct {
	const char *name;
	enum pl_dist_kind kind;
	unsigned int n_args;
} kinds[] = {
	{ "const", PL_DIST_CONST, 1 },
	{ "uniform", PL_DIST_UNIFORM, 2 },
	{ "exp", PL_DIST_EXP, 1 },
	{ "normal", PL_DIST_NORMAL, 2 },
	{ "pareto", PL_DIST_PARETO, 2 },
};

static int parse_number(const char *text, bool is_time, double *ret)
{
	uint64_t ns;

	if (pl_parse_double(text, ret) == 0)
		return *ret >= 0 ? 0 : -EINVAL;
	if (is_time && pl_parse_duration(text, &ns) == 0) {
		*ret = (double)ns;
		return 0;
	}
	return -EINVAL;
}

static int check(const struct pl_dist *d, const char *text, struct pl_diag *diag)
{
	if (d->kind == PL_DIST_UNIFORM && d->b < d->a)
		pl_diag_set(diag, "\"%s\": the upper bound is below the lower one", text);
	else if (d->kind == PL_DIST_PARETO && d->b <= 1)
		pl_diag_set(diag, "\"%s\": a shape of 1 or less has no mean", text);
	else
		return 0;
	return -EINVAL;
}

int pl_dist_parse(struct pl_dist *ret, const char *text, bool is_time, struct pl_diag *diag)
{
	struct pl_dist d = { PL_DIST_CONST, 0, 0 };
	char copy[80], *args, *second;
	size_t len = strlen(text);

	if (len >= sizeof(copy))
		goto bad;
	memcpy(copy, text, len + 1);
	args = strchr(copy, ':');
	if (args == NULL) { /* a plain number is a constant */
		if (parse_number(copy, is_time, &d.a) < 0)
			goto bad;
		*ret = d;
		return 0;
	}
	*args++ = '\0';
	second = strchr(args, ',');
	if (second != NULL)
		*second++ = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(copy, kinds[i].name) != 0)
			continue;
		d.kind = kinds[i].kind;
		if ((kinds[i].n_args == 2) != (second != NULL))
			goto bad;
		/* the second number of a Pareto is a shape, not a quantity */
		if (parse_number(args, is_time, &d.a) < 0 ||
			(second != NULL && parse_number(second, is_time && d.kind != PL_DIST_PARETO,
						   &d.b) < 0))
			goto bad;
		if (check(&d, text, diag) < 0)
			return -EINVAL;
		*ret = d;
		return 0;
	}
bad:
	pl_diag_set(diag,
		"\"%.80s\" is not a distribution: const:V, uniform:A,B, exp:MEAN, normal:MEAN,SD or "
		"pareto:MIN,SHAPE",
		text);
	return -EINVAL;
}

/* Marsaglia's polar method; the second value of the pair is not kept, so that a draw always takes
 * the same random numbers. */
static double draw_normal(struct pl_rng *rng)
{
	double u, v, s;

	do {
		u = 2 * pl_rng_unit(rng) - 1;
		v = 2 * pl_rng_unit(rng) - 1;
		s = u * u + v * v;
	} while (s >= 1 || s == 0);
	return u * sqrt(-2 * log(s) / s);
}

/* ln of a positive normal number, to 9 digits: 2 atanh((m - 1) / (m + 1)) of the mantissa m, scaled
 * to between the roots of 1/2 and 2. A draw needs no more digits, and a generator would spend most
 * of its time in libm's log. */
static double quick_log(double x)
{
	uint64_t bits;
	double m, s, s2;
	int exponent;

	memcpy(&bits, &x, sizeof(bits));
	exponent = (int)(bits >> 52) - 1023;
	bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(0x3ff) << 52;
	memcpy(&m, &bits, sizeof(m));
	if (m > 1.4142135623730951) {
		m *= 0.5;
		exponent++;
	}
	s = (m - 1) / (m + 1);
	s2 = s * s;
	return exponent * 0.6931471805599453 +
	       2 * s * (1 + s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7 + s2 * (1.0 / 9)))));
}

uint64_t pl_dist_draw(const struct pl_dist *d, struct pl_rng *rng, uint64_t max)
{
	double v = d->a;

	switch (d->kind) {
	case PL_DIST_DEFAULT:
	case PL_DIST_CONST:
		break;
	case PL_DIST_UNIFORM:
		v = d->a + pl_rng_unit(rng) * (d->b - d->a);
		break;
	case PL_DIST_EXP:
		v = -quick_log(1 - pl_rng_unit(rng)) * d->a;
		break;
	case PL_DIST_NORMAL:
		v = d->a + draw_normal(rng) * d->b;
		break;
	case PL_DIST_PARETO:
		v = d->a * pow(1 - pl_rng_unit(rng), -1 / d->b);
		break;
	}
	if (v < 0)
		return 0;
	return v >= (double)max ? max : (uint64_t)(v + 0.5);
}
