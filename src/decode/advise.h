/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which profile would decode what an exporter sends. A sample of each exporter's failing packets,
 * and of those whose queue depths can hardly be right, is decoded by one setting after another; the
 * first under which the whole sample decodes, and under which packets that decoded before say the
 * same, is proposed. Looks at few packets of few batches, never at all of them. No I/O, no clock.
 *
 * Not decided here, because bytes do not tell: units of times, and source_words. A dialect whose
 * packets decode as the specification's is not proposed, but for the split of the queue word.
 *
 * One thread. After pl_advise_new nothing allocates.
 */
#pragma once

#include "base/buf.h"
#include "decode/decode.h"

struct pl_advise;

struct pl_advice {
	struct pl_addr exporter;
	struct pl_profile profile; /* for it alone: the one that it has, with what is missing */
	uint8_t verdict; /* of the packets; PL_V_OK: they decode, their depths are doubted */
	uint8_t packets; /* in the sample */
	uint32_t depth;  /* PL_V_OK: one that is doubted, and the node that has it */
	uint64_t node;
	struct pl_profile before; /* the one that it has */
};

/*
 * decode: the options of the decoder whose outcomes will be looked at. look_ns: the shortest time
 * between two batches that are looked at; 0: all are. -ENOMEM.
 */
int pl_advise_new(struct pl_advise **ret, const struct pl_decode_options *decode, uint64_t look_ns);
void pl_advise_free(struct pl_advise *a);
uint64_t pl_advise_memory(const struct pl_decode_options *decode);

/* outcomes: of the packets of this batch, in order. now_ns: monotonic, of any origin. True: there
 * is an advice more or less than before. */
bool pl_advise_batch(struct pl_advise *a, const struct pl_batch *batch,
	const struct pl_outcome *outcomes, uint64_t now_ns);
/* Nothing more comes: samples that are not full are tried as they are. */
bool pl_advise_end(struct pl_advise *a);

/* The advices there are; start with *pos = 0, NULL at the end. Valid until the next batch. */
const struct pl_advice *pl_advise_next(const struct pl_advise *a, unsigned int *pos);

/* One that this has not given yet; NULL: none. */
const struct pl_advice *pl_advise_fresh(struct pl_advise *a);

/* advise_text.c */

/* "{match: 192.0.2.7, dialect: intcollector}": an entry of the key profiles. */
void pl_advice_entry(const struct pl_advice *advice, struct pl_buf *out);
/* " --dialect intcollector": the settings that are missing, as options of commands, a space before
 * each. */
void pl_advice_options(const struct pl_advice *advice, struct pl_buf *out);
/* "192.0.2.7 sends packets that do not decode (shim_length_min)", and the like. */
void pl_advice_reason(const struct pl_advice *advice, struct pl_buf *out);
/* All of it, for whoever asked by a command: the reason, the options, and the entry as lines of a
 * configuration. */
void pl_advice_text(const struct pl_advice *advice, struct pl_buf *out);
