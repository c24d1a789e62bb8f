/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints for packets in which a decoder found no telemetry: ports of datagrams that are reports,
 * link types and protocols that are not read. Commands that read a capture use them to say why they
 * found nothing; live packets do not pass here. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "decode/decode.h"

struct pl_hint;

/* Makes a collection of hints. decode: options of the decoder whose outcomes it gets. Returns 0 or
 * -ENOMEM. */
int pl_hint_new(struct pl_hint **ret, const struct pl_decode_options *decode);
void pl_hint_free(struct pl_hint *hint);

/* Examines a batch. outcomes: of its packets, in order. ports: also search for reports. */
void pl_hint_batch(struct pl_hint *hint, const struct pl_batch *batch,
	const struct pl_outcome *outcomes, bool ports);

/* Writes "--report-port 6000 would read 50 packets", the ports with most packets first; nothing
 * when no port has more reports than other packets. */
void pl_hint_ports(const struct pl_hint *hint, struct pl_buf *out);
/* Writes "link type 9 (PPP) is not read: 3 packets", a sentence each for link types and protocols,
 * with "; " between them; nothing when there was none. */
void pl_hint_unread(const struct pl_hint *hint, struct pl_buf *out);
