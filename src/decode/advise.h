/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Advice of a profile that would decode an exporter's packets. A sample of each exporter's failing
 * packets, and of those whose queue depths can hardly be right, is decoded by one setting after
 * another; the first under which the whole sample decodes, and under which packets that decoded
 * before give the same records, is proposed. It examines few packets of few batches. It does no I/O
 * and reads no clock. It does not decide units of times and source_words, because the bytes do not
 * show them. A dialect whose packets decode as the specification's is not proposed, but for the
 * split of the queue word.
 *
 * One thread. After pl_advise_new nothing allocates.
 */
#pragma once

#include "base/buf.h"
#include "decode/decode.h"

struct pl_advise;

struct pl_advice {
	struct pl_addr exporter;
	struct pl_profile profile; /* profile for this exporter alone: its present one, completed */
	uint8_t verdict; /* verdict of the packets; PL_V_OK: they decode, but depths are doubted */
	uint8_t packets; /* packets in the sample */
	uint32_t depth;  /* PL_V_OK: a doubted depth, and the node that sent it */
	uint64_t node;
	struct pl_profile before; /* the exporter's present profile */
};

/* Makes an adviser. decode: options of the decoder whose outcomes it gets. look_ns: shortest time
 * between two batches that it examines; 0: it examines all. Returns 0 or -ENOMEM. */
int pl_advise_new(struct pl_advise **ret, const struct pl_decode_options *decode, uint64_t look_ns);
void pl_advise_free(struct pl_advise *a);
uint64_t pl_advise_memory(const struct pl_decode_options *decode);

/* Looks at a batch. outcomes: those of its packets, in order. now_ns: monotonic, of any origin.
 * True when the advices have changed. */
bool pl_advise_batch(struct pl_advise *a, const struct pl_batch *batch,
	const struct pl_outcome *outcomes, uint64_t now_ns);
/* Ends the input: samples that are not full are tried as they are. True when the advices have
 * changed. */
bool pl_advise_end(struct pl_advise *a);

/* Iterates over the advices: start with *pos = 0, NULL at the end. Valid until the next batch. */
const struct pl_advice *pl_advise_next(const struct pl_advise *a, unsigned int *pos);

/* Next advice that this function has not given yet; NULL: none. */
const struct pl_advice *pl_advise_fresh(struct pl_advise *a);

/* advise_text.c */

/* Writes an entry of the key profiles: "{match: 192.0.2.7, dialect: intcollector}". */
void pl_advice_entry(const struct pl_advice *advice, struct pl_buf *out);
/* Writes the missing settings as options of commands, each after a space: " --dialect
 * intcollector". */
void pl_advice_options(const struct pl_advice *advice, struct pl_buf *out);
/* Writes the reason: "192.0.2.7 sends packets that do not decode (shim_length_min)", and the
 * like. */
void pl_advice_reason(const struct pl_advice *advice, struct pl_buf *out);
/* Writes all of it for users of a command: the reason, the options, and the entry as lines of a
 * configuration. */
void pl_advice_text(const struct pl_advice *advice, struct pl_buf *out);
