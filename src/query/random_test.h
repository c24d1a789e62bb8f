/* SPDX-License-Identifier: BSD-2-Clause */
/* Random expressions for the test of random queries: made, printed and evaluated. */
#pragma once

#include "base/rng.h"
#include "base/test.h"
#include "query/query.h"

extern struct pl_rng pl_random;

static inline unsigned int below(unsigned int n)
{
	return (unsigned int)pl_rng_below(&pl_random, n);
}

/* ---- values ---- */

enum kind { U, S, D, A, B };

struct value {
	enum kind kind;
	bool absent;
	__int128 i; /* U, S, B */
	double d;
	struct pl_addr a;
};

static inline struct value absent(enum kind kind)
{
	return (struct value){ .kind = kind, .absent = true };
}

static inline struct value whole(enum kind kind, __int128 i)
{
	bool fits = kind == S ? i >= INT64_MIN && i <= INT64_MAX : i >= 0 && i <= UINT64_MAX;

	return (struct value){ .kind = kind, .i = fits ? i : 0, .absent = !fits };
}

static inline struct value real(double d)
{
	return (struct value){ .kind = D, .d = d, .absent = !__builtin_isfinite(d) };
}

/* ---- expressions: trees that are printed and evaluated ---- */

struct expr {
	enum kind kind;
	char op; /* 'c' column, 'k' constant, else as cases below */
	unsigned int which;
	const struct expr *a, *b, *c;
	struct value constant;
	char word[48];
};

/* Frees all expressions. */
void pl_random_forget(void);
struct expr *pl_random_number(unsigned int depth);
struct expr *pl_random_condition(unsigned int depth);
/* Prints an expression; *to is set behind the text. */
void pl_random_print(char **to, const struct expr *e);
struct value pl_random_evaluate(const struct expr *e, const struct pl_pkt64 *p);
bool pl_random_compared(char op, struct value a, struct value b);
