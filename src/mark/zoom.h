/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of the network: the clusters between some points, taken together (RFC 9342 5, zooming). */
#pragma once

#include "mark/clusters.h"

#define PL_MARK_ZOOMS_MAX       16
#define PL_MARK_ZOOM_POINTS_MAX 64
#define PL_MARK_CLUSTERS_MAX    256

/* A point that a zoom may name. */
struct pl_mark_named {
	const char *name;
	uint32_t point;
};

/*
 * Makes a segment of a part of the network. text: "FROM+FROM>TO+TO", names of the n points. The
 * part has all clusters that packets from FROM pass until they reach TO; its points are put into
 * `room`, for pl_mark_clusters_room() of them, to which the segment refers. -EINVAL with diag for
 * wrong names, or when packets enter or leave at other points than those.
 */
int pl_mark_zoom(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const struct pl_mark_named *points, size_t n, const char *text, uint32_t *room,
	struct pl_diag *diag);

/* Returns true when one of n segments has the same points at both ends. */
bool pl_mark_zoom_is_known(
	const struct pl_mark_segment *segments, uint32_t n, const struct pl_mark_segment *s);
