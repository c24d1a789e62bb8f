/* SPDX-License-Identifier: BSD-2-Clause */
/* Explanations why datagrams do not decode: the first of each verdict from each exporter (up to a
 * limit) with its bytes and the place where the fault shows, later ones as counts at most every ten
 * seconds. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "decode/decode.h"

struct pl_explain;

/* Takes lines of text, without the last one's end; the text is valid during the call. */
typedef void pl_explain_tell(void *arg, const char *text);

/* Makes an explainer. decode: options of the decoder whose outcomes it gets. Returns 0 or
 * -ENOMEM. */
int pl_explain_new(struct pl_explain **ret, const struct pl_decode_options *decode,
	pl_explain_tell *tell, void *arg);
void pl_explain_free(struct pl_explain *ex);

/* Explains a batch. outcomes: those of its packets, in order. */
void pl_explain_batch(
	struct pl_explain *ex, const struct pl_batch *batch, const struct pl_outcome *outcomes);

/* Gives the counts when they are due. */
void pl_explain_tick(struct pl_explain *ex, uint64_t now_ns);

/* Writes the text for one packet, as pl_explain_batch gives it; for tests. */
void pl_explain_packet(struct pl_explain *ex, const struct pl_packet *packet,
	enum pl_verdict verdict, struct pl_buf *out);
