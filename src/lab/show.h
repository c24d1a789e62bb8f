/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a lab as text, or as a JSON object in one line. */
#pragma once

#include "base/buf.h"
#include "lab/up.h"

/* Prints the summary after `lab up`, with commands to go on with. folder: the lab's. */
void pl_lab_show_up(const struct pl_lab_topology *t, enum pl_lab_tier tier, const char *folder,
	uint64_t took_ns, bool json, struct pl_buf *out);
/* Prints the changes, which `lines` has as in change.h; consumes `lines`. */
void pl_lab_show_applied(
	const struct pl_lab_found *f, struct pl_buf *lines, bool json, struct pl_buf *out);
/* Prints nodes with addresses, links with rates, named commands, ended commands, the story so
 * far. */
void pl_lab_show(const struct pl_lab_found *f, bool json, struct pl_buf *out);
