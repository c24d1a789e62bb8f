/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Expressions over a batch, a column at a time. Columns come from the records by load.c; every
 * other operation is a loop over vectors without branches.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "query/texts.h"
#include "query/vector.h"

/* A text without room in the run's texts equals no other. */
static void fill_text(struct evaluator *e, struct vector *v, const struct node *node, uint32_t n)
{
	const char *text = pl_query_text(e->texts, node->text, strlen(node->text));

	v->some_absent = false;
	for (uint32_t k = 0; k < n; k++)
		v->u[k] = (uintptr_t)text;
}

static void fill(struct vector *v, const struct node *node, uint32_t n)
{
	v->some_absent = false;
	if (node->type == PL_QUERY_BOOL) {
		memset(v->b, node->u != 0, n);
	} else if (node->type == PL_QUERY_ADDR) {
		for (uint32_t k = 0; k < n; k++)
			v->a[k] = node->addr;
	} else {
		for (uint32_t k = 0; k < n; k++)
			v->u[k] = node->u;
	}
}

static void in_prefix(struct vector *v, const struct vector *a, const struct node *node, uint32_t n)
{
	uint64_t want[2], mask[2] = { 0, 0 };
	uint8_t bytes[16] = { 0 };

	for (unsigned int bit = 0; bit < node->bits; bit++)
		bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	memcpy(mask, bytes, 16);
	memcpy(want, &node->addr, 16);
	want[0] &= mask[0];
	want[1] &= mask[1];
	for (uint32_t k = 0; k < n; k++) {
		uint64_t w[2];

		memcpy(w, &a->a[k], 16);
		v->b[k] = (((w[0] & mask[0]) ^ want[0]) | ((w[1] & mask[1]) ^ want[1])) == 0;
	}
}

/* ---- absent values ---- */

/* Marks the values of a that are absent in b as absent. */
static void join_absent(struct vector *a, const struct vector *b, uint32_t n)
{
	if (!b->some_absent)
		return;
	if (!a->some_absent)
		memset(a->absent, 0, n);
	for (uint32_t k = 0; k < n; k++)
		a->absent[k] |= b->absent[k];
	a->some_absent = true;
}

/* Marks values that an operation could not compute: 1 in `lost`. */
static void note_lost(struct evaluator *e, struct vector *v, const uint8_t *lost, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t k = 0; k < n; k++)
		count += lost[k];
	if (count == 0)
		return;
	if (!v->some_absent)
		memset(v->absent, 0, n);
	count = 0;
	for (uint32_t k = 0; k < n; k++) {
		count += lost[k] & ~v->absent[k];
		v->absent[k] |= lost[k];
	}
	e->absent += count;
	v->some_absent = true;
}

/* ---- arithmetic ---- */

#define BUILTIN_LOOP(fn, m)                                                                        \
	for (uint32_t k = 0; k < n; k++)                                                           \
	lost[k] = fn(a->m[k], b->m[k], &a->m[k])

#define GUARDED_LOOP(m, op, bad)                                                                   \
	for (uint32_t k = 0; k < n; k++) {                                                         \
		lost[k] = bad;                                                                     \
		a->m[k] = lost[k] ? 0 : a->m[k] op b->m[k];                                        \
	}

static void unsigned_op(
	enum node_op op, struct vector *a, const struct vector *b, uint8_t *lost, uint32_t n)
{
	switch (op) {
	case N_ADD:
		BUILTIN_LOOP(__builtin_add_overflow, u);
		break;
	case N_SUB: /* signed subtraction */
		for (uint32_t k = 0; k < n; k++) {
			int64_t r;

			lost[k] = __builtin_sub_overflow(a->u[k], b->u[k], &r);
			a->i[k] = r;
		}
		break;
	case N_MUL:
		BUILTIN_LOOP(__builtin_mul_overflow, u);
		break;
	case N_DIV:
		GUARDED_LOOP(u, /, b->u[k] == 0)
		break;
	case N_MOD:
		GUARDED_LOOP(u, %, b->u[k] == 0)
		break;
	case N_BIT_AND:
		GUARDED_LOOP(u, &, 0)
		break;
	default:
		GUARDED_LOOP(u, |, 0)
		break;
	}
}

static void signed_op(
	enum node_op op, struct vector *a, const struct vector *b, uint8_t *lost, uint32_t n)
{
	switch (op) {
	case N_ADD:
		BUILTIN_LOOP(__builtin_add_overflow, i);
		break;
	case N_SUB:
		BUILTIN_LOOP(__builtin_sub_overflow, i);
		break;
	case N_MUL:
		BUILTIN_LOOP(__builtin_mul_overflow, i);
		break;
	case N_DIV:
		GUARDED_LOOP(i, /, (b->i[k] == 0 || (a->i[k] == INT64_MIN && b->i[k] == -1)))
		break;
	case N_MOD:
		/* The remainder of INT64_MIN by -1 is 0; the processor's division traps. */
		for (uint32_t k = 0; k < n; k++) {
			lost[k] = b->i[k] == 0;
			a->i[k] = lost[k] || b->i[k] == -1 ? 0 : a->i[k] % b->i[k];
		}
		break;
	case N_BIT_AND:
		GUARDED_LOOP(i, &, 0)
		break;
	default:
		GUARDED_LOOP(i, |, 0)
		break;
	}
}

static void double_op(
	enum node_op op, struct vector *a, const struct vector *b, uint8_t *lost, uint32_t n)
{
	switch (op) {
	case N_ADD:
		for (uint32_t k = 0; k < n; k++)
			a->d[k] += b->d[k];
		break;
	case N_SUB:
		for (uint32_t k = 0; k < n; k++)
			a->d[k] -= b->d[k];
		break;
	case N_MUL:
		for (uint32_t k = 0; k < n; k++)
			a->d[k] *= b->d[k];
		break;
	default:
		for (uint32_t k = 0; k < n; k++)
			a->d[k] = b->d[k] == 0 ? INFINITY : a->d[k] / b->d[k];
		break;
	}
	for (uint32_t k = 0; k < n; k++) {
		lost[k] = !(fabs(a->d[k]) <= 0x1.fffffffffffffp1023);
		a->d[k] = lost[k] ? 0 : a->d[k];
	}
}

static void arithmetic(struct evaluator *e, const struct node *node, struct vector *a,
	const struct vector *b, uint32_t n)
{
	uint8_t lost[PL_QUERY_BATCH];

	assert(node->b != NULL);
	join_absent(a, b, n);
	if (node->a->type == PL_QUERY_UNSIGNED && node->b->type == PL_QUERY_UNSIGNED)
		unsigned_op(node->op, a, b, lost, n);
	else if (node->type == PL_QUERY_SIGNED)
		signed_op(node->op, a, b, lost, n);
	else
		double_op(node->op, a, b, lost, n);
	note_lost(e, a, lost, n);
}

static void unary(struct evaluator *e, const struct node *node, struct vector *a, uint32_t n)
{
	uint8_t lost[PL_QUERY_BATCH];

	if (node->op == N_NEG && node->type == PL_QUERY_DOUBLE) {
		for (uint32_t k = 0; k < n; k++)
			a->d[k] = -a->d[k];
	} else if (node->op == N_NEG) {
		for (uint32_t k = 0; k < n; k++) {
			lost[k] = a->i[k] == INT64_MIN;
			a->i[k] = lost[k] ? 0 : -a->i[k];
		}
		note_lost(e, a, lost, n);
	} else if (node->op == N_TO_SIGNED) {
		for (uint32_t k = 0; k < n; k++)
			lost[k] = a->i[k] < 0;
		note_lost(e, a, lost, n);
	} else if (node->a->type == PL_QUERY_SIGNED) {
		for (uint32_t k = 0; k < n; k++)
			a->d[k] = (double)a->i[k];
	} else {
		for (uint32_t k = 0; k < n; k++)
			a->d[k] = (double)a->u[k];
	}
}

/* ---- comparisons ---- */

#define COMPARE_LOOP(x, y)                                                                         \
	do {                                                                                       \
		switch (node->compare) {                                                           \
		case T_EQ:                                                                         \
			for (uint32_t k = 0; k < n; k++)                                           \
				v->b[k] = (x) == (y);                                              \
			break;                                                                     \
		case T_NE:                                                                         \
			for (uint32_t k = 0; k < n; k++)                                           \
				v->b[k] = (x) != (y);                                              \
			break;                                                                     \
		case T_LT:                                                                         \
			for (uint32_t k = 0; k < n; k++)                                           \
				v->b[k] = (x) < (y);                                               \
			break;                                                                     \
		case T_LE:                                                                         \
			for (uint32_t k = 0; k < n; k++)                                           \
				v->b[k] = (x) <= (y);                                              \
			break;                                                                     \
		case T_GT:                                                                         \
			for (uint32_t k = 0; k < n; k++)                                           \
				v->b[k] = (x) > (y);                                               \
			break;                                                                     \
		default:                                                                           \
			for (uint32_t k = 0; k < n; k++)                                           \
				v->b[k] = (x) >= (y);                                              \
			break;                                                                     \
		}                                                                                  \
	} while (0)

static void compare(
	struct vector *v, const struct node *node, struct vector *a, struct vector *b, uint32_t n)
{
	enum pl_query_type x, y;

	assert(node->b != NULL);
	x = node->a->type;
	y = node->b->type;
	join_absent(a, b, n);
	v->some_absent = false;
	if (x == PL_QUERY_ADDR) {
		for (uint32_t k = 0; k < n; k++)
			v->b[k] = pl_addr_equal(&a->a[k], &b->a[k]) == (node->compare == T_EQ);
	} else if (x == PL_QUERY_BOOL) {
		COMPARE_LOOP(a->b[k], b->b[k]);
	} else if (x == PL_QUERY_DOUBLE) {
		COMPARE_LOOP(a->d[k], b->d[k]);
	} else if (x == PL_QUERY_SIGNED && y == PL_QUERY_SIGNED) {
		COMPARE_LOOP(a->i[k], b->i[k]);
	} else if ((x == PL_QUERY_UNSIGNED && y == PL_QUERY_UNSIGNED) || x == PL_QUERY_TEXT) {
		COMPARE_LOOP(a->u[k], b->u[k]);
	} else if (x == PL_QUERY_SIGNED) {
		COMPARE_LOOP((__int128)a->i[k], (__int128)b->u[k]);
	} else {
		COMPARE_LOOP((__int128)a->u[k], (__int128)b->i[k]);
	}
	if (a->some_absent) {
		for (uint32_t k = 0; k < n; k++)
			v->b[k] &= !a->absent[k];
	}
}

static void logic(const struct node *node, struct vector *a, const struct vector *b, uint32_t n)
{
	if (node->op == N_AND) {
		for (uint32_t k = 0; k < n; k++)
			a->b[k] &= b->b[k];
	} else if (node->op == N_OR) {
		for (uint32_t k = 0; k < n; k++)
			a->b[k] |= b->b[k];
	} else {
		for (uint32_t k = 0; k < n; k++)
			a->b[k] ^= 1;
	}
}

static void coalesce(const struct node *node, struct vector *a, const struct vector *b, uint32_t n)
{
	if (!a->some_absent)
		return;
	for (uint32_t k = 0; k < n; k++) {
		if (!a->absent[k])
			continue;
		if (node->type == PL_QUERY_ADDR)
			a->a[k] = b->a[k];
		else if (node->type == PL_QUERY_BOOL)
			a->b[k] = b->b[k];
		else
			a->u[k] = b->u[k];
	}
	if (b->some_absent) {
		for (uint32_t k = 0; k < n; k++)
			a->absent[k] &= b->absent[k];
	} else {
		a->some_absent = false;
	}
}

static void to_v4(struct evaluator *e, struct vector *v, const struct vector *a, uint32_t n)
{
	uint8_t lost[PL_QUERY_BATCH];

	v->some_absent = false;
	join_absent(v, a, n);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t bytes = __builtin_bswap32((uint32_t)a->u[k]);

		lost[k] = a->u[k] > UINT32_MAX;
		v->a[k] = pl_addr_v4(&bytes);
	}
	note_lost(e, v, lost, n);
}

/* ---- choices ---- */

/* Chooses from b where a is true, else from c, into v, which does not overlap them. */
static void choose(const struct node *node, struct vector *v, const struct vector *a,
	const struct vector *b, const struct vector *c, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const struct vector *from = a->b[k] ? b : c;

		if (node->type == PL_QUERY_ADDR)
			v->a[k] = from->a[k];
		else if (node->type == PL_QUERY_BOOL)
			v->b[k] = from->b[k];
		else
			v->u[k] = from->u[k];
		v->absent[k] = from->some_absent && from->absent[k];
	}
	v->some_absent = b->some_absent || c->some_absent;
}

static void magnitude(const struct node *node, struct vector *a, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		if (node->type == PL_QUERY_DOUBLE)
			a->d[k] = fabs(a->d[k]);
		else
			a->u[k] = a->i[k] < 0 ? -a->u[k] : a->u[k];
	}
}

#define EXTREME_LOOP(m)                                                                            \
	for (uint32_t k = 0; k < n; k++)                                                           \
	a->m[k] = (a->m[k] < b->m[k]) == least ? a->m[k] : b->m[k]

static void extreme(const struct node *node, struct vector *a, const struct vector *b, uint32_t n)
{
	const bool least = node->op == N_LEAST;

	join_absent(a, b, n);
	if (node->type == PL_QUERY_UNSIGNED)
		EXTREME_LOOP(u);
	else if (node->type == PL_QUERY_SIGNED)
		EXTREME_LOOP(i);
	else
		EXTREME_LOOP(d);
}

/* ---- hops of paths ---- */

/* Counts the paths from number k on whose hops follow each other in memory, up to a batch of
 * hops. */
static uint32_t hops_together(const struct rows *rows, uint32_t k, struct rows *ret_hops)
{
	const uint32_t from = k;
	uint64_t total = 0;

	*ret_hops = (struct rows){ .stride = sizeof(struct pl_hop) };
	for (; k < rows->n; k++) {
		const struct pl_query_path *path = (const void *)row_at(rows, k);
		const uint8_t *hops = (const uint8_t *)path->hops;

		assert(path->n_hops <= 255);
		if (path->n_hops == 0)
			continue;
		if (total + path->n_hops > PL_QUERY_BATCH ||
			(total > 0 && hops != ret_hops->base + total * sizeof(struct pl_hop)))
			break;
		if (total == 0)
			ret_hops->base = hops;
		total += path->n_hops;
	}
	ret_hops->n = (uint32_t)total;
	return k - from;
}

/* Evaluates the test over the hops of many paths at once, in vectors behind `at`. */
static void each_hop(
	struct evaluator *e, const struct node *node, const struct rows *rows, uint32_t at)
{
	struct vector *v = &e->vectors[at];
	const uint8_t *truth = e->vectors[at + 1].b;
	struct rows hops;

	v->some_absent = false;
	for (uint32_t k = 0, end; k < rows->n; k = end) {
		uint32_t hop = 0;

		end = k + hops_together(rows, k, &hops);
		if (hops.n > 0)
			pl_query_eval(e, node->a, &hops, at + 1);
		for (uint32_t i = k; i < end; i++) {
			const struct pl_query_path *path = (const void *)row_at(rows, i);
			uint32_t n = 0;

			for (uint64_t h = 0; h < path->n_hops; h++)
				n += truth[hop++];
			v->b[i] = n > 0 && (!node->invert || n == path->n_hops);
		}
	}
}

/* ---- all of it ---- */

void pl_query_eval(
	struct evaluator *e, const struct node *node, const struct rows *rows, uint32_t at)
{
	struct vector *v = &e->vectors[at], *a, *b;
	const uint32_t n = rows->n;

	if (node->op == N_CONST && node->type == PL_QUERY_TEXT) {
		fill_text(e, v, node, n);
		return;
	}
	if (node->op == N_CONST) {
		fill(v, node, n);
		return;
	}
	if (node->op == N_COLUMN) {
		pl_query_load(e, v, node->column, rows);
		return;
	}
	if (node->op == N_TEST) {
		pl_query_test(v, node, rows);
		return;
	}
	if (node->op == N_EXISTS) {
		pl_query_exists(v, node->a->column, rows);
		return;
	}
	if (node->op == N_EACH_HOP) {
		each_hop(e, node, rows, at);
		return;
	}
	at += pl_query_apart(node);
	a = &e->vectors[at];
	b = &e->vectors[at + 1];
	pl_query_eval(e, node->a, rows, at);
	if (node->b != NULL)
		pl_query_eval(e, node->b, rows, at + 1);
	if (node->c != NULL)
		pl_query_eval(e, node->c, rows, at + 2);
	switch (node->op) {
	case N_PREFIX:
		in_prefix(v, a, node, n);
		v->some_absent = false;
		for (uint32_t k = 0; a->some_absent && k < n; k++)
			v->b[k] &= !a->absent[k];
		break;
	case N_NEG:
	case N_TO_SIGNED:
	case N_TO_DOUBLE:
		unary(e, node, a, n);
		break;
	case N_COMPARE:
		compare(v, node, a, b, n);
		break;
	case N_AND:
	case N_OR:
	case N_NOT:
		logic(node, a, b, n);
		break;
	case N_V4:
		to_v4(e, v, a, n);
		break;
	case N_COALESCE:
		coalesce(node, a, b, n);
		break;
	case N_IF:
		choose(node, v, a, b, &e->vectors[at + 2], n);
		break;
	case N_ABS:
		magnitude(node, a, n);
		break;
	case N_LEAST:
	case N_GREATEST:
		extreme(node, a, b, n);
		break;
	default:
		arithmetic(e, node, a, b, n);
		break;
	}
}

uint32_t pl_query_filter(struct evaluator *e, const struct node *node, const struct rows *rows,
	uint16_t sel[PL_QUERY_BATCH])
{
	const uint8_t *truth = e->vectors[0].b;
	uint32_t n = 0;

	pl_query_eval(e, node, rows, 0);
	if (rows->sel == NULL) {
		for (uint32_t k = 0; k < rows->n; k++) {
			sel[n] = (uint16_t)k;
			n += truth[k];
		}
	} else {
		for (uint32_t k = 0; k < rows->n; k++) {
			sel[n] = rows->sel[k];
			n += truth[k];
		}
	}
	return n;
}
