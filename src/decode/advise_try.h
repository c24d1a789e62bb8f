/* SPDX-License-Identifier: BSD-2-Clause */
/* Trials of settings on a sample; for advise.c. */
#pragma once

#include "decode/advise.h"
#include "decode/internal.h"

#define KEPT_BYTES 1536 /* most bytes of a sampled datagram */

/* A datagram of an exporter, as its socket would give it. */
struct kept {
	struct pl_packet packet; /* its data is at `bytes` */
	uint8_t bytes[KEPT_BYTES];
};

struct trial {
	struct pl_decode *probe;
	struct pl_profile *spare; /* the probe's last profile, for the exporter that is tried */
	struct pl_record_batch before, after;
	struct pl_batch one;
};

/* Result for the queue words of a packet's hops. Words of 16 + 16 bits that are read as 8 + 24 have
 * queue 0 and, in the upper bits of the depth, the queue, which is the same at all hops: that of
 * the packet's class. A depth of 24 bits looks so at all hops of a packet by chance only. */
enum depths {
	DEPTHS_NONE, /* fewer than two words, or all are small: queue 0 is right */
	DEPTHS_DOUBTED,
	DEPTHS_BELIEVED, /* no words of 16 + 16 bits */
};

int trial_init(struct trial *t, const struct pl_decode_options *decode);
void trial_done(struct trial *t);
uint64_t trial_memory(const struct pl_decode_options *decode);

/* Decodes the packet with the present profile of its exporter, into t->before. */
enum pl_verdict trial_before(struct trial *t, const struct kept *k);
enum depths trial_depths(const struct pl_record_batch *records);

/* Finds the setting for an exporter: bad holds n_bad packets of one verdict, good n_good that
 * decode; one of the numbers may be 0. False when there is none. */
bool trial_find(struct trial *t, const struct pl_addr *exporter, const struct kept *bad,
	unsigned int n_bad, const struct kept *good, unsigned int n_good, struct pl_advice *ret);
