/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clusters of a network of measurement points (RFC 9342 5): its smallest parts that let out as
 * many packets as go in. Arcs join points that have none between them; every way out of the network
 * is a point. Loss is placed on a cluster; one of two points is a link.
 */
#pragma once

#include "mark/correlate.h"

struct pl_mark_arc {
	uint32_t from, to; /* points */
};

struct pl_mark_clusters {
	struct pl_mark_segment *segments; /* in the order of their first arcs; points ascend */
	uint32_t n;
	uint32_t *points; /* what the segments lie in */
};

/* -EINVAL with diag: an arc to its own beginning, none at all, or a network in which every point is
 * an end and a beginning, so that nothing goes in or out. -ENOMEM. */
int pl_mark_clusters_make(struct pl_mark_clusters *ret, const struct pl_mark_arc *arcs, uint32_t n,
	struct pl_diag *diag);
void pl_mark_clusters_done(struct pl_mark_clusters *c);

/*
 * The union of clusters, chosen[i] of cluster i: what goes into one of them and comes out of none, to
 * what comes out of one and goes into none. Its loss is the sum of theirs: zooming out. The points
 * are put into room for 2 * c's points, which the segment lends. False: no way in or out.
 */
bool pl_mark_clusters_union(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const bool *chosen, uint32_t *room);
/* How many points of room that takes. */
uint32_t pl_mark_clusters_room(const struct pl_mark_clusters *c);
