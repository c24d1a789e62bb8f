/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds a list of exporters, and shares its places out between sources. */
#include "decode/exporter_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pl_exporter_compare(const void *a, const void *b)
{
	const struct pl_exporter *x = a, *y = b;
	int r = memcmp(&x->addr, &y->addr, sizeof(x->addr));

	if (r == 0)
		r = (x->node > y->node) - (x->node < y->node);
	if (r == 0)
		r = (int)x->hw_id - (int)y->hw_id;
	return r;
}

static int by_appearance(const void *a, const void *b)
{
	const struct pl_exporter *x = a, *y = b;

	if (x->first_ts_ns != y->first_ts_ns)
		return x->first_ts_ns < y->first_ts_ns ? -1 : 1;
	return pl_exporter_compare(a, b);
}

/* An exporter, with its rank among those of its source. */
struct ranked {
	const struct pl_exporter *x;
	struct pl_addr source;
	size_t rank;
};

static int by_source(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	int r = memcmp(&x->source, &y->source, sizeof(x->source));

	return r != 0 ? r : by_appearance(x->x, y->x);
}

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : by_appearance(x->x, y->x);
}

/* Puts exporters that get series first: as many of each source, in the order in which they
 * appeared, as there is room for. Returns -ENOMEM. */
static int share_out(struct pl_exporter *list, size_t n, size_t limit)
{
	struct ranked *order = calloc(n, sizeof(*order));
	struct pl_exporter *copy = calloc(n, sizeof(*copy));
	int r = order != NULL && copy != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		copy[i] = list[i];
		order[i] =
			(struct ranked){ .x = &copy[i], .source = pl_addr_source(&list[i].addr) };
	}
	if (r == 0) {
		qsort(order, n, sizeof(*order), by_source);
		for (size_t i = 1; i < n; i++)
			order[i].rank = pl_addr_equal(&order[i].source, &order[i - 1].source)
						? order[i - 1].rank + 1
						: 0;
		qsort(order, n, sizeof(*order), by_rank);
		for (size_t i = 0; i < n; i++)
			list[i] = *order[i].x;
		qsort(list, limit, sizeof(*list), by_appearance);
	}
	free(order);
	free(copy);
	return r;
}

void pl_exporter_add(struct pl_exporter *into, const struct pl_exporter *x)
{
	pl_stats_add(&pl_exporter_stats, into, x);
	into->unsequenced = into->unsequenced || x->unsequenced;
	into->shared = into->shared || x->shared;
	if (x->last_ts_ns > into->last_ts_ns)
		into->last_ts_ns = x->last_ts_ns;
	if (x->first_ts_ns < into->first_ts_ns)
		into->first_ts_ns = x->first_ts_ns;
}

int pl_exporters_bound(struct pl_exporters *e, size_t limit)
{
	struct pl_exporter *list = e->list;
	const size_t n = e->n;

	if (n <= limit) {
		qsort(list, n, sizeof(*list), by_appearance);
	} else if (share_out(list, n, limit) < 0) {
		free(list);
		e->list = NULL;
		return -ENOMEM;
	}
	for (size_t i = limit; i < n; i++) {
		pl_exporter_add(&e->others, &list[i]);
		e->n_others++;
	}
	e->n = n < limit ? n : limit;
	return 0;
}
