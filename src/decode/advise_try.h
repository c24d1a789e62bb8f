/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries settings on a sample; for advise.c. */
#pragma once

#include "decode/advise.h"
#include "decode/internal.h"

#define KEPT_BYTES 1536 /* longer datagrams are not sampled */

/* A datagram of an exporter, as its socket would give it. */
struct kept {
	struct pl_packet packet; /* its data is at `bytes` */
	uint8_t bytes[KEPT_BYTES];
};

struct trial {
	struct pl_decode *probe;
	struct pl_profile *spare; /* the probe's last profile, which is for the exporter tried */
	struct pl_record_batch before, after;
	struct pl_batch one;
};

/*
 * How the queue words of a packet's hops look. Words of 16 + 16 bits that are read as 8 + 24 have
 * queue 0 and, in the upper bits of the depth, the queue, which is the same at all hops: that of
 * the packet's class. A depth of 24 bits is so at all hops of a packet by chance only.
 */
enum depths {
	DEPTHS_NONE, /* fewer than two words, or all small: those of queue 0 are read right */
	DEPTHS_DOUBTED,
	DEPTHS_BELIEVED, /* these are no words of 16 + 16 bits */
};

int trial_init(struct trial *t, const struct pl_decode_options *decode);
void trial_done(struct trial *t);
uint64_t trial_memory(const struct pl_decode_options *decode);

/* Decodes it with the profile that its exporter has, into t->before. */
enum pl_verdict trial_before(struct trial *t, const struct kept *k);
enum depths trial_depths(const struct pl_record_batch *records);

/* Finds the setting for exporter of bad, n_bad packets of one verdict, and good, n_good that
 * decode; one of the numbers may be 0. False: there is none. */
bool trial_find(struct trial *t, const struct pl_addr *exporter, const struct kept *bad,
	unsigned int n_bad, const struct kept *good, unsigned int n_good, struct pl_advice *ret);
