/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of tmpkt/1 into records, with an account of every exporter's sequence. An exporter is an
 * address with its exporter id, whatever source port it uses. Duplicates are told and left out.
 *
 * Anybody can send a datagram, so the number of exporters that are followed is bounded: sixteen of
 * an address, which share their places with few other addresses. Where they are full, the longest
 * silent is displaced, and one that has proven itself (two numbers that go together) only when all
 * have. So an exporter must be seen twice before as many strangers as there are places come.
 */
#pragma once

#include <stdint.h>

#include "base/stats.h"
#include "tap/tmpkt.h"
#include "wire/packet.h"

struct pl_tmpkt_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tap/tmpkt_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_tmpkt_stats_list;

struct pl_tmpkt_receiver;

/* Records of one datagram, aligned, valid during the call: packets of either kind as pkt96/1, of
 * which pkt64/1 fills the first 64 bytes and flow_hash; likewise flows as flow288/1, of which
 * flow128/1 fills the first half. */
typedef void pl_tmpkt_sink(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n);

/* exporters: how many are followed, rounded up. -ENOMEM. */
int pl_tmpkt_receiver_new(
	struct pl_tmpkt_receiver **ret, uint32_t exporters, pl_tmpkt_sink *sink, void *arg);
void pl_tmpkt_receiver_free(struct pl_tmpkt_receiver *receiver);

/* Packets of PL_LINK_UDP, or frames in which the datagrams are. Checksums of frames are not looked
 * at: a NIC checks them, and over some links there are none. */
void pl_tmpkt_receiver_feed(struct pl_tmpkt_receiver *receiver, const struct pl_batch *batch);

/* Which clock the times of the records are of that the sink has now; PL_STAMP_SENDER: the datagram
 * does not tell. */
enum pl_clock_kind pl_tmpkt_receiver_clock(const struct pl_tmpkt_receiver *receiver);

/* While the sink has records: whom they are from, and whether datagrams before them are known to be
 * lost, or may be because the exporter is not known yet. */
const struct pl_addr *pl_tmpkt_receiver_from(const struct pl_tmpkt_receiver *receiver);
bool pl_tmpkt_receiver_torn(const struct pl_tmpkt_receiver *receiver);

const struct pl_tmpkt_stats *pl_tmpkt_receiver_stats(const struct pl_tmpkt_receiver *receiver);
