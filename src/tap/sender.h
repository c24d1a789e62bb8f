/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records into datagrams of tmpkt/1. Records of one flow, in both directions, go into the datagrams
 * of one lane: a lane is sent from a source port of its own, so the receiver's NIC and sockets
 * spread lanes over processors and keep a flow together.
 */
#pragma once

#include <stdbool.h>

#include "tap/tmpkt.h"

struct pl_tmpkt_sender;

struct pl_tmpkt_sender_config {
	enum pl_flat_kind kind;
	uint32_t records; /* of a datagram, at most: 1 to pl_tmpkt_fits(…) */
	uint32_t lanes;   /* 1 to PL_TMPKT_LANES_MAX */
	uint32_t exporter;
	bool tells_clock; /* datagrams say pl_tmpkt_sender_clock; false: as receivers knew them before */
	/* Takes a datagram, whose bytes are the sender's. */
	void (*send)(
		void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records);
	void *arg;
};

#define PL_TMPKT_LANES_MAX 64

/* -EINVAL: a number is outside its range; -ENOMEM. */
int pl_tmpkt_sender_new(struct pl_tmpkt_sender **ret, const struct pl_tmpkt_sender_config *config);
void pl_tmpkt_sender_free(struct pl_tmpkt_sender *sender); /* what is not flushed is lost */

/* n records of the kind, one behind the other; of PL_FLAT_PKT64 they are given as struct
 * pl_pkt96. */
void pl_tmpkt_sender_put(struct pl_tmpkt_sender *sender, const void *records, uint32_t n);

/* Which clock the times of records are of that are put from now on. */
void pl_tmpkt_sender_clock(struct pl_tmpkt_sender *sender, enum pl_clock_kind clock);

/* Sends what is waiting in the lanes. */
void pl_tmpkt_sender_flush(struct pl_tmpkt_sender *sender);
