/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow in the cache: seven lines of 64 bytes. A packet of an open TCP connection touches the
 * first two, the line of its direction or of both, and the line of round-trip times if it gives
 * one. The last two lines are valid only if `state` says so, and the lines from `ways` on only for
 * TCP, so a new flow has few lines to clear. Arrays of two are by direction: 0 is forward, that of
 * the first packet. A place is an observation point and whether packets enter or leave there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "record/packet.h"

enum { PL_PROTO_TCP = 6, PL_PROTO_UDP = 17, PL_PROTO_SCTP = 132 };
enum { PL_TCP_FIN = 1, PL_TCP_SYN = 2, PL_TCP_RST = 4, PL_TCP_ACK = 16 };

/* State of one sender of a TCP connection, and how its peer answered. Sequence numbers are compared
 * modulo 2^32. */
struct pl_flow_way {
	uint64_t newest_ts;   /* time at which `end` was reached */
	uint64_t sample_ts;   /* time at which the segment up to sample_end passed */
	uint64_t tsval_ts[2]; /* time at which each tsval passed first */
	uint32_t end;         /* sequence number behind the highest seen */
	uint32_t sample_end;
	uint32_t acked;    /* highest acknowledgement of the peer */
	uint32_t tsval[2]; /* timestamps whose echoes are awaited, the oldest first */
	uint32_t tsval_last;
	uint16_t ip_id; /* IP id of the packet that reached `end` */
	uint16_t window;
	uint8_t duplicate_acks; /* ACKs that the peer repeated since its last new one; 255 for
				 * more */
	uint8_t known;          /* PL_WAY_* */
	uint8_t tsvals;         /* number of timestamps in tsval */
	uint8_t zero;
};

/* Members of a way that hold something. */
enum {
	PL_WAY_END = 1,
	PL_WAY_SAMPLE = 2,
	PL_WAY_ACKED = 4,
	PL_WAY_TSVAL_LAST = 8,
	PL_WAY_WINDOW = 16,
	PL_WAY_ISN = 32,
	PL_WAY_HOLE = 64,
};

/* Round-trip times of one side of the tap by one method. */
struct pl_flow_rtt {
	uint64_t sum_us;
	uint32_t n;
	uint32_t min_us; /* holds when n > 0 */
};

/* Counts of one record that few connections have. */
struct pl_flow_rare {
	uint32_t retrans[2], ooo[2], zero_win[2], keepalives[2], gaps[2];
	uint32_t fast[2], timeout[2], spurious[2]; /* causes of retransmissions, in retrans too */
};

#define PL_FLOW_ALSO  6u
#define PL_FLOW_PLACE (PL_OBS_POINT_MASK | PL_OBS_OUT) /* bits of obs that name the place */
#define PL_FLOW_HEARD 10 /* log2 of the ns in a tick of `heard`, about a microsecond */

/* Bits of pl_flow_other.known, shifted by the direction. */
enum {
	PL_OTHER_WATCHED = 1,  /* `obs` holds: the place that is watched, not the one that counts */
	PL_OTHER_COPIES = 4,   /* the watched place gave copies of packets that were counted */
	PL_OTHER_MOVED = 16,   /* `first_obs` holds: another place counts now than at first */
	PL_OTHER_SAMPLED = 64, /* some packets of the watched place were sampled */
};

/* Packets at places that do not count: apart from the flow, since few taps have several places, and
 * memory that is never written takes no room. */
struct pl_flow_other {
	/* Packets of the watched place since the last one that was counted; these hold when packets
	 * > 0. */
	uint64_t bytes[2], first_ts[2], last_ts[2];
	uint64_t alone_ts[2]; /* holds with PL_FLOW_WAITS */
	uint32_t packets[2], records[2], segments[2], max_gap_us[2];

	uint32_t uncounted[2];       /* packets of this record left out; UINT32_MAX for more */
	uint16_t obs[2];             /* obs of the watched place's first packet */
	uint16_t first_obs[2];       /* obs of the first packet in this record */
	uint16_t also[PL_FLOW_ALSO]; /* other places, in the order seen in this record */
	uint8_t flags[2];
	uint8_t known; /* PL_OTHER_* */
	uint8_t n_also : 7, more : 1;
};

enum pl_flow_method { PL_FLOW_BY_SEQ, PL_FLOW_BY_TS, PL_FLOW_METHODS };

enum pl_flow_handshake {
	PL_HANDSHAKE_NONE,
	PL_HANDSHAKE_SYN,
	PL_HANDSHAKE_SYN_ACK,
	PL_HANDSHAKE_OVER, /* without a time, or with one of its two */
	PL_HANDSHAKE_SEEN, /* over, and its times were measured */
};

/* Bits of pl_flow_entry.state. */
enum {
	PL_FLOW_FIN_FWD = 1,
	PL_FLOW_FIN_REV = 2, /* PL_FLOW_FIN_FWD << 1 */
	PL_FLOW_RST = 4,
	PL_FLOW_CLOSING = 8,     /* RST or both FIN: `ended_ts` holds */
	PL_FLOW_ENDS = 15,       /* all of the above */
	PL_FLOW_GIVEN = 16,      /* a record was given to the sink: the role stays */
	PL_FLOW_TIMED = 32,      /* `rtt` holds */
	PL_FLOW_MARRED = 64,     /* `rare` holds */
	PL_FLOW_ELSEWHERE = 128, /* the flow's struct pl_flow_other holds */
};

/* Bits of pl_flow_entry.places, shifted by the direction. */
enum {
	PL_FLOW_WAITS = 1, /* the watched place is to count, unless the present one has a packet */
	PL_FLOW_WAITING = 3, /* PL_FLOW_WAITS of both directions */
	PL_FLOW_NOWHERE = 4, /* no place counts yet: the place of the next packet will */
};

struct pl_flow_entry {
	struct pl_addr src, dst;
	uint16_t sport, dport, vlan;
	uint8_t proto, state;
	uint64_t first_ts, last_ts; /* first packet of this record; newest packet */
	uint8_t places;             /* PL_FLOW_WAITS, PL_FLOW_NOWHERE */
	uint8_t continued;          /* 1: an earlier process began the flow (state.h) */
	uint8_t flags[2];
	uint8_t handshake; /* enum pl_flow_handshake */
	uint8_t opener;    /* direction of the SYN */
	uint8_t role;      /* enum pl_flow_role, from SYNs, listening ports or an earlier record */
	uint8_t role_by;   /* enum pl_flow_role_by */

	/* Counts of this record. */
	uint64_t bytes[2];
	uint32_t packets[2];
	uint32_t records;
	uint16_t place[2]; /* obs of the first packet at the place that counts. PL_OBS_SAMPLED of
			    * [0]: any packet of this record was sampled; of [1] it is never set */
	uint64_t max_gap_ns;
	uint32_t missed[2][PL_FLOW_METHODS]; /* segments that gave no round-trip time */
	uint32_t heard[2]; /* time of the newest packet that was counted, in ticks modulo 2^32 */

	struct pl_flow_way way[2];

	uint64_t syn_ts, syn_ack_ts, ended_ts;
	uint32_t isn[2];
	uint32_t hole_from[2], hole_to[2]; /* newest range that was skipped and not seen since */
	uint32_t hs_external_us, hs_internal_us; /* handshake times, in this record */
	uint32_t dup_acks[2];                    /* duplicate ACKs, in this record */

	struct pl_flow_rtt rtt[2][PL_FLOW_METHODS]; /* of this record; [0]: between tap and dst */
	struct pl_flow_rare rare;
};

_Static_assert(sizeof(struct pl_flow_way) == 64, "a way is one line");
_Static_assert(
	offsetof(struct pl_flow_entry, way) == 128, "what every packet touches is two lines");
_Static_assert(offsetof(struct pl_flow_entry, rtt) == 320, "round-trip times are one line");
_Static_assert(sizeof(struct pl_flow_other) == 128, "what is seen elsewhere is two lines");
_Static_assert(sizeof(struct pl_flow_entry) == 448, "a flow is seven lines");

/* Counts that few connections have: zeroed at the first use, and marked as held. */
static inline struct pl_flow_rare *pl_flow_rare_of(struct pl_flow_entry *flow)
{
	if ((flow->state & PL_FLOW_MARRED) == 0)
		flow->rare = (struct pl_flow_rare){ 0 };
	flow->state |= PL_FLOW_MARRED;
	return &flow->rare;
}

/* Round-trip times between the tap and side d by method m; 0 when there are none. */
static inline struct pl_flow_rtt pl_flow_rtt_of(
	const struct pl_flow_entry *flow, unsigned int d, enum pl_flow_method m)
{
	return (flow->state & PL_FLOW_TIMED) != 0 ? flow->rtt[d][m] : (struct pl_flow_rtt){ 0 };
}

/* Round-trip times between the tap and side d by both methods. */
static inline struct pl_flow_rtt pl_flow_rtt_both(const struct pl_flow_entry *flow, unsigned int d)
{
	const struct pl_flow_rtt a = pl_flow_rtt_of(flow, d, PL_FLOW_BY_SEQ),
				 b = pl_flow_rtt_of(flow, d, PL_FLOW_BY_TS);

	if (a.n == 0 || b.n == 0)
		return a.n != 0 ? a : b;
	return (struct pl_flow_rtt){ .sum_us = a.sum_us + b.sum_us,
		.n = a.n + b.n,
		.min_us = a.min_us < b.min_us ? a.min_us : b.min_us };
}

/* True when the flow's record was given away and no packet was counted since (state.h). */
static inline bool pl_flow_is_empty(const struct pl_flow_entry *flow)
{
	return (flow->packets[0] | flow->packets[1]) == 0;
}

static inline bool pl_flow_has_ports(uint8_t proto)
{
	return proto == PL_PROTO_TCP || proto == PL_PROTO_UDP || proto == PL_PROTO_SCTP;
}

static inline bool pl_flow_same_place(uint16_t obs_a, uint16_t obs_b)
{
	return ((obs_a ^ obs_b) & PL_FLOW_PLACE) == 0;
}

static inline uint32_t pl_flow_heard(uint64_t ts_ns)
{
	return (uint32_t)(ts_ns >> PL_FLOW_HEARD);
}

/* Time at which the newest packet of direction d was counted, to a tick. After a silence of 2^32
 * ticks, 73 minutes, while the other direction goes on, the time seems to be newer, but not newer
 * than `last_ts`. */
static inline uint64_t pl_flow_heard_ns(const struct pl_flow_entry *flow, unsigned int d)
{
	const uint64_t last = flow->last_ts >> PL_FLOW_HEARD;

	return (last - ((uint32_t)last - flow->heard[d])) << PL_FLOW_HEARD;
}

/* True when sequence number a is behind b (RFC 9293 3.4). */
static inline bool pl_seq_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Microseconds, rounded up: 0 says "not measured". */
static inline uint32_t pl_flow_us(uint64_t ns)
{
	return (uint32_t)((ns + 999) / 1000);
}
