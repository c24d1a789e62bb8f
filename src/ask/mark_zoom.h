/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of the network: the clusters between some points, taken together (RFC 9342 5, zooming). */
#pragma once

#include "ask/mark_capture.h"
#include "mark/clusters.h"

/*
 * Makes a segment of a part of the network. text: "FROM+FROM>TO+TO", names of the n captures, whose
 * points are numbered from 1. The part has all clusters that packets from FROM pass until they
 * reach TO; its points are put into `room`, for pl_mark_clusters_room() of them, to which the
 * segment refers. Complains, and returns false, for wrong names, or when packets enter or leave at
 * other points than those.
 */
bool pl_mark_zoom(struct pl_mark_segment *ret, const struct pl_mark_clusters *c,
	const struct pl_mark_capture *captures, size_t n, const char *text, uint32_t *room);
