/* SPDX-License-Identifier: BSD-2-Clause */
/* What meters counted, out of a file of their records: points as captures that have been metered. */
#pragma once

#include "ask/mark_capture.h"

/* Whether the name is one of such a file, NAME.mark128. */
bool pl_mark_file_is(const char *path);

/* Reads all of it. It may hold records of several points, of which each becomes a capture: of these
 * the marker is the first, the others follow in the order of their numbers, which are their names.
 * A single point has the name that is in `like`. Captures are added behind the *n that are there, at
 * most PL_MARK_READ_MAX in all. Complains; false when something was wrong. */
bool pl_mark_file_read(
	struct pl_mark_capture *captures, size_t *n, const struct pl_mark_capture *like);
