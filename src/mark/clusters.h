/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters of a network of measurement points (RFC 9342 5): its smallest parts that let out as many
 * packets as go in. Arcs join points that have none between them; every way out of the network is a
 * point. Loss is placed on a cluster; one of two points is a link. */
#pragma once

#include "mark/correlate.h"

struct pl_mark_arc {
	uint32_t from, to; /* points */
};

struct pl_mark_clusters {
	struct pl_mark_segment *segments; /* in the order of their first arcs; points ascend */
	uint32_t n;
	uint32_t *points; /* memory of the segments' points */
};

/* Makes the clusters. Returns 0; -ENOMEM; -EINVAL with diag for an arc to its own beginning, for no
 * arcs, or for a network in which every point is an end and a beginning, so that nothing goes in or
 * out. */
int pl_mark_clusters_make(struct pl_mark_clusters *ret, const struct pl_mark_arc *arcs, uint32_t n,
	struct pl_diag *diag);
void pl_mark_clusters_done(struct pl_mark_clusters *c);

/* Joins clusters (zooming out), chosen[i] telling whether cluster i is one of them: from the points
 * that lead into one of them and out of none, to those that lead out of one and into none. Its loss
 * is the sum of theirs. The segment's points lie in room, which has pl_mark_clusters_room(c)
 * places. False when there is no way in or out. */
bool pl_mark_clusters_union(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const bool *chosen, uint32_t *room);
/* Number of points of room for a union. */
uint32_t pl_mark_clusters_room(const struct pl_mark_clusters *c);
