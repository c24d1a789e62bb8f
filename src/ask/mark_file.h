/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads points from a file of meters' records, as captures that have been metered. */
#pragma once

#include "ask/mark_capture.h"

/* Returns true for the name of such a file, NAME.mark128. */
bool pl_mark_file_is(const char *path);

/* Reads the file. It may hold records of several points, each of which becomes a capture: the
 * marker first, the others in the order of their numbers, which are their names. A single point has
 * the name in `like`. Captures are added behind the *n present ones, up to PL_MARK_READ_MAX in all.
 * After an error, prints it and returns false. */
bool pl_mark_file_read(
	struct pl_mark_capture *captures, size_t *n, const struct pl_mark_capture *like);
