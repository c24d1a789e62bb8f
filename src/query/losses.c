/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the times of records that were left out. */
#include "query/losses.h"

#include <string.h>

/* Returns true when `b`, which does not begin before `a`, belongs to its stretch. */
static bool is_near(const struct losses *l, const struct loss *a, const struct loss *b)
{
	return b->from <= a->to || b->from - a->to <= l->near;
}

/* Unites stretch `i` with the next one. */
static void unite(struct losses *l, uint32_t i)
{
	if (l->at[i + 1].to > l->at[i].to)
		l->at[i].to = l->at[i + 1].to;
	l->n--;
	memmove(&l->at[i + 1], &l->at[i + 2], (l->n - i - 1) * sizeof(l->at[0]));
}

void pl_query_losses_add(struct losses *l, int64_t from, int64_t to)
{
	uint32_t i = l->n;

	/* Most are of the latest stretch. */
	if (i > 0 && from >= l->at[i - 1].from && to <= l->at[i - 1].to)
		return;
	while (i > 0 && l->at[i - 1].from > from)
		i--;
	memmove(&l->at[i + 1], &l->at[i], (l->n - i) * sizeof(l->at[0]));
	l->at[i] = (struct loss){ from, to };
	l->n++;
	if (i > 0 && is_near(l, &l->at[i - 1], &l->at[i]))
		unite(l, --i);
	while (i + 1 < l->n && is_near(l, &l->at[i], &l->at[i + 1]))
		unite(l, i);
	if (l->n > LOSSES_MAX)
		unite(l, 0);
}

bool pl_query_losses_within(const struct losses *l, int64_t start, int64_t end)
{
	for (uint32_t i = l->n; i > 0; i--) {
		if (l->at[i - 1].to < start)
			return false;
		if (l->at[i - 1].from < end)
			return true;
	}
	return false;
}
