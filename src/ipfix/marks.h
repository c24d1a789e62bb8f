/* SPDX-License-Identifier: BSD-2-Clause */
/* Alternate marking as IPFIX messages: results (struct pl_seg192) and block records of points
 * (struct pl_mark128), a data record each. Values with an IPFIX element use that; the others are
 * under a private enterprise number. A number that is not known is not in the template (sets.h,
 * docs/protocols/ipfix.md). The rest is as in writer.h. */
#pragma once

#include "ipfix/sets.h"
#include "ipfix/writer.h"
#include "record/packet.h"

/* Makes a writer, which sets.h frees, begins, renews and flushes. Returns 0 or -ENOMEM. */
int pl_ipfix_marks_new(struct pl_ipfix_sets **ret, const struct pl_ipfix_sets_options *options);

/* Puts a record. False when it was not put, as there are too many sets of values. */
bool pl_ipfix_marks_segment(
	struct pl_ipfix_sets *x, const struct pl_seg192 *segment, uint32_t export_s);
bool pl_ipfix_marks_point(
	struct pl_ipfix_sets *x, const struct pl_mark128 *point, uint32_t export_s);
