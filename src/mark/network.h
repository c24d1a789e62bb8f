/* SPDX-License-Identifier: BSD-2-Clause */
/* Measurement points of a network by name, and the segments to compare: each link of a path and the
 * whole path, or each cluster of a network (clusters.h) and the whole network; then parts of it
 * (zoom.h). */
#pragma once

#include "base/buf.h"
#include "mark/zoom.h"

#define PL_MARK_POINTS_MAX     PL_MARK_ZOOM_POINTS_MAX
#define PL_MARK_ARCS_MAX       PL_MARK_CLUSTERS_MAX
#define PL_MARK_POINT_NAME_MAX 16 /* characters */

struct pl_mark_network {
	struct {
		char name[PL_MARK_POINT_NAME_MAX + 1];
		uint32_t number; /* number in records */
	} points[PL_MARK_POINTS_MAX];
	uint32_t n_points;
	struct pl_mark_segment segments[PL_MARK_ARCS_MAX + 1 + PL_MARK_ZOOMS_MAX];
	uint32_t n_segments;
	uint32_t *places, *zoomed; /* memory of the segments' points */
	struct pl_mark_clusters clusters;
};

/* Makes a network. points: "NAME=NUMBER" or "NUMBER", of a path in the order in which packets pass
 * them; links: "FROM>TO", or none for a path. Returns 0, or -EINVAL with diag or -ENOMEM, both with
 * nothing to free. */
int pl_mark_network_make(struct pl_mark_network *ret, char *const *points, size_t n_points,
	char *const *links, size_t n_links, struct pl_diag *diag);
/* Adds a segment of each part of the network, "FROM+FROM>TO+TO" by names of points; a part that has
 * a segment already is not reported twice. To be called once, before the segments are used. 0;
 * -EINVAL with diag or -ENOMEM: the network is as before, or has some of the parts. */
int pl_mark_network_add_zooms(
	struct pl_mark_network *w, char *const *zooms, size_t n, struct pl_diag *diag);
void pl_mark_network_done(struct pl_mark_network *network);

/* Returns the name of the point with this number; NULL when there is none. */
const char *pl_mark_network_point(const struct pl_mark_network *network, uint32_t number);
/* Writes the segment's name: "a>b", of a cluster "a+b>c+d". A name that does not fit is cut and
 * ends with "~" and the segment's number in records, so that no two segments have the same name. */
void pl_mark_network_segment(
	const struct pl_mark_network *network, uint32_t segment, char *dst, size_t cap);
/* Puts "~" and the segment's number in records at the end of a cut name that fills dst. */
void pl_mark_network_cut(char *dst, size_t cap, uint32_t segment);
