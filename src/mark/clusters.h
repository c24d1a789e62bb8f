/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters of a network of measurement points (RFC 9342 5): the smallest parts into which as many
 * packets go as come out. An arc joins two points with no other point between them, and packets
 * enter and leave the network only at points. Loss is located to a cluster; a cluster of two points
 * is a link. */
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

/* Makes the clusters. Returns 0; -ENOMEM; -EINVAL with diag when there are no arcs, or one begins
 * and ends at the same point. */
int pl_mark_clusters_make(struct pl_mark_clusters *ret, const struct pl_mark_arc *arcs, uint32_t n,
	struct pl_diag *diag);
void pl_mark_clusters_done(struct pl_mark_clusters *c);

/* Joins the clusters with chosen[i] set (zooming out) to a segment: from the points that lead into
 * one of them and out of none, to those that lead out of one and into none. Its loss is the sum of
 * theirs. The segment's points lie in room, which has pl_mark_clusters_room(c) places. False when
 * no point leads in, or none leads out. */
bool pl_mark_clusters_union(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const bool *chosen, uint32_t *room);
/* Returns the number of points that a union needs room for. */
uint32_t pl_mark_clusters_room(const struct pl_mark_clusters *c);
