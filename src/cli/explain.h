/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says in words, on standard error, why datagrams do not decode: the first of each verdict from each
 * exporter (up to a limit) with its bytes and the place where the fault shows, later ones as counts at most
 * every ten seconds.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "decode/decode.h"

struct pl_explain;

/* decode: the options of the decoder whose outcomes will be explained. -ENOMEM. */
int pl_explain_new(struct pl_explain **ret, const struct pl_decode_options *decode);
void pl_explain_free(struct pl_explain *ex);

/* outcomes: of the packets of this batch, in order. */
void pl_explain_batch(
	struct pl_explain *ex, const struct pl_batch *batch, const struct pl_outcome *outcomes);

/* Prints the counts when they are due. */
void pl_explain_tick(struct pl_explain *ex, uint64_t now_ns);

/* The words for one packet, as pl_explain_batch prints them; for tests. */
void pl_explain_packet(struct pl_explain *ex, const struct pl_packet *packet,
	enum pl_verdict verdict, struct pl_buf *out);
