/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads records from datagrams of tmpkt/1, and accounts for every exporter's sequence. An exporter
 * is an address with its exporter id, whatever source port it uses. Duplicates are counted and
 * dropped.
 *
 * Any host can send a datagram. So exporters must be proven, and share the room for them, as
 * exporters of reports do (decode/exporters.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"
#include "decode/decode.h"
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

/* exporters: most exporters that are followed at a time. prove: datagrams of exporters
 * that are not proven yet wait for the proof, the last 1024 of them; those that make room are counted
 * and left out. -ENOMEM. */
int pl_tmpkt_receiver_new(struct pl_tmpkt_receiver **ret, uint32_t exporters, bool prove,
	pl_tmpkt_sink *sink, void *arg);
void pl_tmpkt_receiver_free(struct pl_tmpkt_receiver *receiver);

/* Takes payloads (PL_LINK_UDP) or frames with the datagrams. Checksums of frames are not checked:
 * the NIC does that, and over some links there are none. */
void pl_tmpkt_receiver_feed(struct pl_tmpkt_receiver *receiver, const struct pl_batch *batch);

/* Clock of the times of the records that the sink has now; PL_STAMP_SENDER: the datagram names
 * none. */
enum pl_clock_kind pl_tmpkt_receiver_clock(const struct pl_tmpkt_receiver *receiver);

/* Valid while the sink has records: their sender, its exporter number, and whether datagrams before them are known to be
 * lost, or may be because the exporter was not known. */
const struct pl_addr *pl_tmpkt_receiver_from(const struct pl_tmpkt_receiver *receiver);
uint32_t pl_tmpkt_receiver_number(const struct pl_tmpkt_receiver *receiver);
bool pl_tmpkt_receiver_torn(const struct pl_tmpkt_receiver *receiver);

/* Iterates over the exporters that are followed: start with *pos = 0, false at the end. The node is
 * the exporter's number. */
bool pl_tmpkt_receiver_exporter(
	const struct pl_tmpkt_receiver *receiver, uint32_t *pos, struct pl_exporter *ret);
/* Counts of an exporter, by its names here. */
extern const struct pl_stats pl_tmpkt_exporter_stats_list;

const struct pl_tmpkt_stats *pl_tmpkt_receiver_stats(const struct pl_tmpkt_receiver *receiver);
