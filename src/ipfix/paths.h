/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths and their hops (struct pl_path, pl_hop) as IPFIX messages: a data record for the path, and
 * one behind it for each hop, which has the path's key, so that it can be read alone. Values
 * with an IPFIX element use that; the others are under a private enterprise number. A value that a
 * record does not have is not in its template: each set of values has a template of its own, made
 * when the set first comes (docs/protocols/ipfix.md). The rest is as in writer.h. */
#pragma once

#include "ipfix/sets.h"
#include "ipfix/writer.h"
#include "record/record.h"

/* Makes a writer, which sets.h frees, begins, renews and flushes. Returns 0 or -ENOMEM. */
int pl_ipfix_paths_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_sets_options *options);

/* Puts a path. False when it was not put, as there are too many sets of values. Its data records
 * are in one message if they fit into one. */
bool pl_ipfix_paths_put(struct pl_ipfix_sets *x, const struct pl_path *path,
	const struct pl_hop *hops, uint32_t export_s);
