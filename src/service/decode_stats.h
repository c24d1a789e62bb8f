/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of a decoder, printed at the end of read and listen: as one JSON object, or as text. */
#pragma once

#include "base/buf.h"
#include "decode/decode.h"
#include "netio/port.h"

/* Appends {"kind":"stats",…} and a line feed. ports may be NULL (a capture loses nothing before
 * us). Verdicts: "ok" always, others when not 0; their sum is packets. */
void pl_decode_stats_json(
	struct pl_buf *out, const struct pl_decode *d, const struct pl_port_stats *ports);
void pl_decode_stats_text(
	struct pl_buf *out, const struct pl_decode *d, const struct pl_port_stats *ports);

/* Appends "3 of 10 packets did not decode: report_short 2, shim_type 1"; nothing when all did. */
void pl_decode_stats_faults(struct pl_buf *out, const struct pl_decode *d);
