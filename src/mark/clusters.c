/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds clusters: arcs that leave the same point are of one cluster, and so are arcs that enter the
 * same point (RFC 9342 5.1). Clusters are the components of the arcs, by union-find over arcs
 * sorted by either end. */
#include "mark/clusters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct arc {
	struct pl_mark_arc ends;
	uint32_t number;
};

static int compare_from(const void *a, const void *b)
{
	const struct arc *x = a, *y = b;

	if (x->ends.from != y->ends.from)
		return x->ends.from < y->ends.from ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_to(const void *a, const void *b)
{
	const struct arc *x = a, *y = b;

	if (x->ends.to != y->ends.to)
		return x->ends.to < y->ends.to ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int compare_point(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The root is the arc with the least number. */
static uint32_t root_of(uint32_t *parents, uint32_t i)
{
	while (parents[i] != i) {
		parents[i] = parents[parents[i]];
		i = parents[i];
	}
	return i;
}

static void join(uint32_t *parents, uint32_t a, uint32_t b)
{
	a = root_of(parents, a);
	b = root_of(parents, b);
	parents[a > b ? a : b] = a < b ? a : b;
}

static uint32_t keep_each_once(uint32_t *points, uint32_t n)
{
	uint32_t kept = 0;

	qsort(points, n, sizeof(*points), compare_point);
	for (uint32_t i = 0; i < n; i++) {
		if (kept == 0 || points[kept - 1] != points[i])
			points[kept++] = points[i];
	}
	return kept;
}

static int check(const struct pl_mark_arc *arcs, uint32_t n, struct pl_diag *diag)
{
	if (n == 0)
		pl_diag_set(diag, "no link between measurement points");
	for (uint32_t i = 0; i < n; i++) {
		if (arcs[i].from != arcs[i].to)
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"link %u begins and ends at the same measurement point", i + 1);
	}
	return n > 0 ? 0 : -EINVAL;
}

/* Inputs of a cluster are the points that its arcs leave, outputs the points that they enter. */
static void fill(
	struct pl_mark_clusters *c, const struct pl_mark_arc *arcs, uint32_t n, uint32_t *parents)
{
	uint32_t *at = c->points;

	for (uint32_t i = 0; i < n; i++) {
		struct pl_mark_segment *s = &c->segments[c->n];
		uint32_t *from = at, *to;
		uint32_t arcs_of = 0;

		if (root_of(parents, i) != i)
			continue;
		for (uint32_t k = i; k < n; k++) {
			if (root_of(parents, k) == i)
				from[arcs_of++] = arcs[k].from;
		}
		s->n_from = keep_each_once(from, arcs_of);
		to = from + s->n_from;
		arcs_of = 0;
		for (uint32_t k = i; k < n; k++) {
			if (root_of(parents, k) == i)
				to[arcs_of++] = arcs[k].to;
		}
		s->n_to = keep_each_once(to, arcs_of);
		s->from = from;
		s->to = to;
		at = to + s->n_to;
		c->n++;
	}
}

int pl_mark_clusters_make(struct pl_mark_clusters *ret, const struct pl_mark_arc *arcs, uint32_t n,
	struct pl_diag *diag)
{
	struct arc *sorted;
	uint32_t *parents;
	int r = check(arcs, n, diag);

	*ret = (struct pl_mark_clusters){ 0 };
	if (r < 0)
		return r;
	sorted = calloc(n, sizeof(*sorted));
	parents = calloc(n, sizeof(*parents));
	ret->segments = calloc(n, sizeof(*ret->segments));
	ret->points = calloc(2 * (size_t)n, sizeof(*ret->points));
	if (sorted == NULL || parents == NULL || ret->segments == NULL || ret->points == NULL) {
		free(sorted);
		free(parents);
		pl_mark_clusters_done(ret);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = (struct arc){ arcs[i], i };
		parents[i] = i;
	}
	qsort(sorted, n, sizeof(*sorted), compare_from);
	for (uint32_t i = 1; i < n; i++) {
		if (sorted[i].ends.from == sorted[i - 1].ends.from)
			join(parents, sorted[i].number, sorted[i - 1].number);
	}
	qsort(sorted, n, sizeof(*sorted), compare_to);
	for (uint32_t i = 1; i < n; i++) {
		if (sorted[i].ends.to == sorted[i - 1].ends.to)
			join(parents, sorted[i].number, sorted[i - 1].number);
	}
	fill(ret, arcs, n, parents);
	free(sorted);
	free(parents);
	return 0;
}

void pl_mark_clusters_done(struct pl_mark_clusters *c)
{
	free(c->segments);
	free(c->points);
	*c = (struct pl_mark_clusters){ 0 };
}

uint32_t pl_mark_clusters_room(const struct pl_mark_clusters *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		n += c->segments[i].n_from + c->segments[i].n_to;
	return 2 * n;
}

/* Copies the elements of a that are not in b; both ascend. */
static uint32_t without(uint32_t *to, const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m)
{
	uint32_t kept = 0, k = 0;

	for (uint32_t i = 0; i < n; i++) {
		while (k < m && b[k] < a[i])
			k++;
		if (k == m || b[k] != a[i])
			to[kept++] = a[i];
	}
	return kept;
}

bool pl_mark_clusters_union(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const bool *chosen, uint32_t *room)
{
	uint32_t *from = room + pl_mark_clusters_room(c) / 2, *to, *kept;
	uint32_t n_from = 0, n_to = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		for (uint32_t k = 0; chosen[i] && k < c->segments[i].n_from; k++)
			from[n_from++] = c->segments[i].from[k];
	}
	n_from = keep_each_once(from, n_from);
	to = from + n_from;
	for (uint32_t i = 0; i < c->n; i++) {
		for (uint32_t k = 0; chosen[i] && k < c->segments[i].n_to; k++)
			to[n_to++] = c->segments[i].to[k];
	}
	n_to = keep_each_once(to, n_to);
	ret->from = room;
	ret->n_from = without(room, from, n_from, to, n_to);
	kept = room + ret->n_from;
	ret->to = kept;
	ret->n_to = without(kept, to, n_to, from, n_from);
	return ret->n_from > 0 && ret->n_to > 0;
}
