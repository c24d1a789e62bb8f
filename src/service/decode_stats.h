/* SPDX-License-Identifier: BSD-2-Clause */
/* What a decoder counted, at the end of read and listen: one JSON object, or a page for a
 * person. */
#pragma once

#include "base/buf.h"
#include "decode/decode.h"
#include "netio/port.h"

/* {"kind":"stats",…} and a line feed. ports may be NULL (captures lose nothing before us). Keys of
 * verdicts: "ok" always, the others when not 0. packets = sum of verdicts. */
void pl_decode_stats_json(
	struct pl_buf *out, const struct pl_decode *d, const struct pl_port_stats *ports);
void pl_decode_stats_text(
	struct pl_buf *out, const struct pl_decode *d, const struct pl_port_stats *ports);

/* "3 of 10 packets did not decode: report_short 2, shim_type 1"; nothing when all did. */
void pl_decode_stats_faults(struct pl_buf *out, const struct pl_decode *d);
