/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What would read the packets in which a decoder found no telemetry: the ports of datagrams that
 * are reports, link types and protocols that are not read. For whoever reads a capture and must
 * say why nothing came of it; not for the path of live packets.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "decode/decode.h"

struct pl_hint;

/* decode: the options of the decoder whose outcomes will be looked at. -ENOMEM. */
int pl_hint_new(struct pl_hint **ret, const struct pl_decode_options *decode);
void pl_hint_free(struct pl_hint *hint);

/* outcomes: of the packets of this batch, in order. ports: look for reports, too. */
void pl_hint_batch(struct pl_hint *hint, const struct pl_batch *batch,
	const struct pl_outcome *outcomes, bool ports);

/* "--report-port 6000 would read 50 packets", the ports with most packets first; nothing when no
 * port has more reports than other packets. */
void pl_hint_ports(const struct pl_hint *hint, struct pl_buf *out);
/* "link type 9 (PPP) is not read: 3 packets", a sentence each for link types and protocols,
 * with "; " between them; nothing when there was none. */
void pl_hint_unread(const struct pl_hint *hint, struct pl_buf *out);
