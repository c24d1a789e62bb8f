/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathers records into datagrams of tmpkt/1. Records of one flow, in both directions, go into the
 * datagrams of one lane. A lane is sent from a source port of its own, so the receiver's NIC and
 * sockets spread lanes over processors and keep a flow together.
 */
#pragma once

#include <stdbool.h>

#include "tap/tmpkt.h"

struct pl_tmpkt_sender;

struct pl_tmpkt_sender_config {
	enum pl_flat_kind kind;
	uint32_t records; /* in a datagram, at most: 1 to pl_tmpkt_fits(…) */
	uint32_t lanes;   /* 1 to PL_TMPKT_LANES_MAX */
	uint32_t exporter;
	uint32_t first;   /* number of the first datagram */
	bool tells_clock; /* datagrams name the clock; false: not, as older receivers expect */
	/* Callback that sends a datagram; its bytes are valid during the call. */
	void (*send)(
		void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records);
	void *arg;
};

#define PL_TMPKT_LANES_MAX 64

/* -EINVAL: a number is outside its range; -ENOMEM. */
int pl_tmpkt_sender_new(struct pl_tmpkt_sender **ret, const struct pl_tmpkt_sender_config *config);
void pl_tmpkt_sender_free(struct pl_tmpkt_sender *sender); /* drops records not flushed */

/* Takes n records, one behind the other: of the long form of the kind, so for PL_FLAT_PKT64 struct
 * pl_pkt96, for PL_FLAT_FLOW128 struct pl_flow288. */
void pl_tmpkt_sender_put(struct pl_tmpkt_sender *sender, const void *records, uint32_t n);

/* Sets the clock of the times of records put from now on. */
void pl_tmpkt_sender_clock(struct pl_tmpkt_sender *sender, enum pl_clock_kind clock);

/* Sends the records that wait in the lanes. */
void pl_tmpkt_sender_flush(struct pl_tmpkt_sender *sender);

/* Sends a datagram without records, of the first lane: its number proves the exporter, and tells a
 * receiver whether those before it arrived. */
void pl_tmpkt_sender_empty(struct pl_tmpkt_sender *sender);
