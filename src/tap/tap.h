/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes records of packets (pkt96/1, of which the first 64 bytes are pkt64/1), as High Touch does
 * in an FPGA: one record per packet, from its headers only. The engine owns no port and no clock:
 * the time of a record is that of its packet. A frame that the host leaves to its NIC to split
 * (TSO), or that it joined (GRO), stands for the packets on the wire, which get a record each
 * (core/tap_joined.h), where the port tells their length (pl_packet.gso).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"
#include "record/packet.h"
#include "tap/joined.h"
#include "tap/rules.h"
#include "wire/packet.h"

struct pl_tap_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tap/tap_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_tap_stats_list;

/* Bytes of a packet that suffice for a record: Ethernet with tags and labels, IPv6 with extension
 * headers, TCP with options. Headers further back are missing in the record. */
#define PL_TAP_BYTES       192
#define PL_TAP_INNER_BYTES 256   /* behind a tunnel's headers */
#define PL_TAP_DNS_BYTES   1600  /* DNS messages over UDP, as large as they usually may be */
#define PL_TAP_WHOLE_BYTES 65600 /* IP packets of all lengths, for rules with contains= */

/* A frame that stands for several packets, some of which have their records already. */
struct pl_tap_frame {
	struct pl_tap_joined joined;
	uint32_t at; /* the next packet; joined.n: all are done */
	struct pl_pkt96 record;
	struct pl_layers layers;
	struct pl_tap_head head; /* layers point into it for a frame that needs a copy */
};

struct pl_tap {
	uint16_t point; /* observation point, at most PL_OBS_POINT_MASK */
	bool inner;     /* records have the inner addresses and ports of a tunnel that is known */
	uint64_t vxlan_ports; /* a word of them (wire/tunnel_ports.h); 0: 4789 and 8472 */
	struct pl_tap_rules rules;
	/* Room for records of the batch's DNS messages, PL_BATCH_MAX of them; NULL: none are made.
	 * Packets that rules leave out give none. */
	struct pl_dns64 *dns;
	uint32_t n_dns;
	uint32_t seq;             /* record_seq of the next record */
	enum pl_clock_kind clock; /* of the records that were made or chosen last */
	struct pl_tap_stats stats;
	uint32_t
		unread; /* 1 + the link type (LINKTYPE_) of a packet that is not read; 0: none came */
	uint32_t at;    /* the next packet of the present batch */
	bool more;      /* the batch has more records than there was room for */
	struct pl_tap_frame frame;
};

/* Makes records of the batch's packets, at most `room`, which is at most PL_BATCH_MAX; returns how
 * many. If tap->more is set afterwards, call it again with the same batch. */
uint32_t pl_tap_batch(
	struct pl_tap *tap, const struct pl_batch *batch, struct pl_pkt96 *ret, uint32_t room);

/* Applies the rules to records that others made, with times of one clock: keeps those that the
 * rules take, in place, and returns how many. All count as packets. */
uint32_t pl_tap_rule(
	struct pl_tap *tap, struct pl_pkt96 *records, uint32_t n, enum pl_clock_kind clock);

/* Counts records by the clock of their times. */
void pl_tap_count_clock(struct pl_tap_stats *stats, enum pl_clock_kind clock, uint64_t records);
