/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets to records of packets (pkt96/1, of which the first 64 bytes are pkt64/1): what High Touch
 * has an FPGA for. One record per packet, made of its headers only. The engine owns no port and no
 * clock: the time of a record is that of its packet.
 *
 * A frame that the host leaves to its NIC to take apart (TSO), or that it joined (GRO), is the packets
 * that were on the wire, each with its record (core/tap_joined.h), where the port says how long they
 * were (pl_packet.gso).
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

/* So many bytes of a packet are enough for a record: Ethernet with tags and labels, IPv6 with
 * extension headers, TCP with options. What headers stand further back, a record has not. */
#define PL_TAP_BYTES       192
#define PL_TAP_INNER_BYTES 256  /* behind a tunnel's headers */
#define PL_TAP_DNS_BYTES   1600 /* DNS messages over UDP, as large as they usually may be */

/* A frame that stands for several packets, some of which got their records. */
struct pl_tap_frame {
	struct pl_tap_joined joined;
	uint32_t at; /* the next packet; joined.n: there is none */
	struct pl_pkt96 record;
	struct pl_layers layers;
	struct pl_tap_head head; /* where layers are, of a frame that needs a copy */
};

struct pl_tap {
	uint16_t point; /* observation point, at most PL_OBS_POINT_MASK */
	bool inner;     /* of a packet in a tunnel that is known: the inner addresses and ports */
	uint64_t vxlan_ports; /* a word of them (wire/tunnel_ports.h); 0: 4789 and 8472 */
	struct pl_tap_rules rules;
	/* Where records of the batch's DNS messages go, PL_BATCH_MAX of them; NULL: they are not
	 * asked for. Of packets that rules leave out there are none. */
	struct pl_dns64 *dns;
	uint32_t n_dns;
	uint32_t seq;             /* record_seq of the next record */
	enum pl_clock_kind clock; /* of the records that were made, or ruled, last */
	struct pl_tap_stats stats;
	uint32_t at; /* the next packet of the batch under way */
	bool more;   /* the batch has more records than there was room for */
	struct pl_tap_frame frame;
};

/* Records of the batch's packets into ret, at most `room`, of which PL_BATCH_MAX is the most; returns
 * how many. While tap->more is set behind it, it is to be called again with the same batch. */
uint32_t pl_tap_batch(
	struct pl_tap *tap, const struct pl_batch *batch, struct pl_pkt96 *ret, uint32_t room);

/* Records that somebody else made, with times of one clock: keeps in their place those that the
 * rules take, and returns how many. They count as packets. */
uint32_t pl_tap_rule(
	struct pl_tap *tap, struct pl_pkt96 *records, uint32_t n, enum pl_clock_kind clock);

/* Counts records by the clock of their times. */
void pl_tap_count_clock(struct pl_tap_stats *stats, enum pl_clock_kind clock, uint64_t records);
