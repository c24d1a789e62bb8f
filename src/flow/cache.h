/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow cache: packet records in, flow records out (RFC 7011's metering process, with the TCP
 * analytics of tcp.h). One record holds both directions of a flow: packets of equal protocol and
 * VLAN id whose addresses and ports are equal, or equal when swapped. Of ICMP, messages of one type
 * and those that answer them (record/icmp.h) are the directions of a flow; other messages are of one
 * flow when type, code and direction are equal. Type and code stand for ports in the record.
 *
 * Time is that of the packet records. The cache's clock is the newest time seen, whatever the
 * order of packets; of live packets it is that of the slowest source (live.h). A flow is over when
 * its last packet is `idle_ns` or more behind the clock or the flow's next packet, or its end, a RST
 * or the second FIN, is `end_ns` or more. Unless flows are evicted or live, this alone decides
 * which packets share a record, and not when the table is scanned or how packets are grouped into
 * batches. The record of an ended flow is made at most half an `idle_ns` later. A flow that lasts
 * gets a record with the first packet that comes `active_ns` or more after the first packet of the
 * record. When PL_FLOW_BEHIND packets in a row are more than `idle_ns` behind the clock, the clock
 * was wrong: it is set back, and flows from the time after it are over.
 *
 * A packet that is seen at several places counts at one of them (elsewhere.h): in each direction at
 * the place of the first packet. Packets seen at other places do not prolong the flow.
 *
 * Packets and bytes of sampled packets count by their weight (pl_pkt96_weight), so they are estimates;
 * the record says from how many packet records. After the first record of a flow, its role and its
 * forward direction stay the same in further records.
 *
 * The table takes all of its memory at the start; that for packets seen elsewhere, 128 bytes a flow,
 * is there once it is written to. A flow has its place in one of two lines of eight,
 * chosen by a hash with a random seed of the cache's own (the record's flow_hash has a public key,
 * so its collisions can be made to order). When all sixteen are taken, a new flow replaces the one
 * that would have ended first: a flood evicts flows, but takes no memory.
 *
 * One thread uses a cache. The cache keeps no reference to the caller's packets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"
#include "record/packet.h"

struct pl_diag;
struct pl_flow_cache;
struct pl_flow_listening;

#define PL_FLOW_BEHIND     256u
#define PL_FLOW_RECORDS    64u /* most records in one call of the sink */

/* Largest values of a configuration: beyond them fields of a flow record could overflow. */
#define PL_FLOW_MAX_FLOWS  (1u << 26)
#define PL_FLOW_IDLE_MAX   UINT64_C(3600000000000)
#define PL_FLOW_ACTIVE_MAX UINT64_C(86400000000000)

struct pl_flow_config {
	uint32_t max_flows; /* slots of the table; rounded up to a multiple of 8 */
	uint64_t idle_ns;   /* a flow is over after so long without a packet */
	uint64_t active_ns; /* a flow that lasts gets a record after this time, at its next
			     * packet */
	uint64_t end_ns;    /* a flow is over so long after a RST or its second FIN, or after
			     * idle_ns, if that is less */
	bool live;          /* packets are fed as they come, by pl_flow_cache_feed_live() alone */
};

#define PL_FLOW_CONFIG                                                                             \
	{                                                                                          \
		.max_flows = 1u << 16, .idle_ns = UINT64_C(15000000000),                           \
		.active_ns = UINT64_C(60000000000), .end_ns = UINT64_C(1000000000),                \
	}

struct pl_flow_counters {
#define PL_STAT PL_STAT_MEMBER
#include "flow/stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_flow_counters_list;

/* Takes `n` records, 1 to PL_FLOW_RECORDS; they are valid during the call. */
typedef void pl_flow_sink(void *arg, const struct pl_flow288 *records, uint32_t n);

/* Returns 0, -EINVAL with the reason in `diag` (may be NULL), or -ENOMEM. */
int pl_flow_cache_new(struct pl_flow_cache **ret, const struct pl_flow_config *config,
	pl_flow_sink *sink, void *arg, struct pl_diag *diag);

/* Frees the cache; NULL is fine. Flows still in it are lost: call pl_flow_cache_finish() first. */
void pl_flow_cache_free(struct pl_flow_cache *cache);

/* Sets the listening ports of the host (listening.h), from now on; the set stays the caller's, and
 * NULL says that they are not known. The cache asks it when a flow begins without a SYN, and when
 * it makes a record of a flow whose role is not known yet. */
void pl_flow_cache_set_listening(struct pl_flow_cache *cache, const struct pl_flow_listening *set);

/* Counts `n` packets, in the order seen. Each call also looks for flows that are over, in a part of
 * the table that grows with `n`. */
void pl_flow_cache_feed(struct pl_flow_cache *cache, const struct pl_pkt96 *packets, uint32_t n);

/* Counts packets that came at now_ns by the receiver's clock, which never steps, from one source. A
 * time after most_ns is another's mistake or lie; UINT64_MAX: packets of this host. */
void pl_flow_cache_feed_live(struct pl_flow_cache *cache, const struct pl_pkt96 *packets,
	uint32_t n, uint64_t now_ns, uint64_t most_ns);
/* Sets the time now_ns for the clock that the cache took over from another process; call it behind
 * the resume, which sets that clock on to now_ns. */
void pl_flow_cache_begin_live(struct pl_flow_cache *cache, uint64_t now_ns);
/* As pl_flow_cache_expire(), by the receiver's clock. */
void pl_flow_cache_expire_live(struct pl_flow_cache *cache, uint64_t now_ns);

/* Sets the clock on to `now_ns`, on the packets' time scale (an earlier time does nothing), ends
 * all flows that are over, and hands all finished records to the sink. The caller calls it every
 * second or so: between calls up to PL_FLOW_RECORDS records wait. */
void pl_flow_cache_expire(struct pl_flow_cache *cache, uint64_t now_ns);

/* Ends all flows and gives their records to the sink. The cache is then empty and can be used
 * further. */
void pl_flow_cache_finish(struct pl_flow_cache *cache);

/* Returns the present counters; the pointer is valid as long as the cache. */
const struct pl_flow_counters *pl_flow_cache_counters(const struct pl_flow_cache *cache);
