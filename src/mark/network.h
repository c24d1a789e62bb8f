/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measurement points of a network by name, and what is compared between them: the links of a
 * path and all of it, or the clusters of a network (clusters.h) and all of it.
 */
#pragma once

#include "base/buf.h"
#include "mark/clusters.h"

#define PL_MARK_POINTS_MAX     64
#define PL_MARK_ARCS_MAX       256
#define PL_MARK_POINT_NAME_MAX 16 /* characters */

struct pl_mark_network {
	struct {
		char name[PL_MARK_POINT_NAME_MAX + 1];
		uint32_t number; /* in records */
	} points[PL_MARK_POINTS_MAX];
	uint32_t n_points;
	struct pl_mark_segment segments[PL_MARK_ARCS_MAX + 1];
	uint32_t n_segments;
	bool whole;       /* the last segment is all of it */
	uint32_t *places; /* what segments lie in */
	struct pl_mark_clusters clusters;
};

/*
 * points: "NAME=NUMBER" or "NUMBER", of a path in the order in which packets pass them; links:
 * "FROM>TO", none: they are a path. -EINVAL with diag, -ENOMEM: nothing is left.
 */
int pl_mark_network_make(struct pl_mark_network *ret, char *const *points, size_t n_points,
	char *const *links, size_t n_links, struct pl_diag *diag);
void pl_mark_network_done(struct pl_mark_network *network);

/* The name of a point by its number; NULL: there is none. */
const char *pl_mark_network_point(const struct pl_mark_network *network, uint32_t number);
/* "a>b", of a cluster "a+b>c+d"; where that has no room in `cap`, its begin and "~" with the segment's
 * number in records: names of two segments are never the same. */
void pl_mark_network_segment(
	const struct pl_mark_network *network, uint32_t segment, char *dst, size_t cap);
/* Such an end for what fills dst and was cut. */
void pl_mark_network_cut(char *dst, size_t cap, uint32_t segment);
