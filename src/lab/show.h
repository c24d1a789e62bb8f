/* SPDX-License-Identifier: BSD-2-Clause */
/* A lab in words: for people, or as a JSON object in a line. */
#pragma once

#include "base/buf.h"
#include "lab/up.h"

/* After it came up; folder: of the lab. */
void pl_lab_show_up(const struct pl_lab_topology *t, enum pl_lab_tier tier, const char *folder,
	uint64_t took_ns, bool json, struct pl_buf *out);
/* What was changed, lines of change.h. */
void pl_lab_show_applied(
	const struct pl_lab_found *f, struct pl_buf *lines, bool json, struct pl_buf *out);
/* Nodes with their addresses, links with what they are like, commands that have ended. */
void pl_lab_show(const struct pl_lab_found *f, bool json, struct pl_buf *out);
