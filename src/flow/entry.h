/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow in the cache: seven lines of 64 bytes. A packet of an open TCP connection touches the first
 * two, that of its way or both, and that of round-trip times where it gives one. The last two lines
 * hold something only where `state` says so, and the ways and what follows them only of TCP: so a
 * new flow has few lines to clear. Arrays of two are by direction: 0 is forward, that of the first
 * packet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "record/packet.h"

enum { PL_PROTO_TCP = 6, PL_PROTO_UDP = 17, PL_PROTO_SCTP = 132 };
enum { PL_TCP_FIN = 1, PL_TCP_SYN = 2, PL_TCP_RST = 4, PL_TCP_ACK = 16 };

/* What one side sent, and how its peer answered. Sequence numbers are compared modulo 2^32. */
struct pl_flow_way {
	uint64_t newest_ts;   /* when `end` was reached */
	uint64_t sample_ts;   /* when the segment up to sample_end passed */
	uint64_t tsval_ts[2]; /* when each tsval passed first */
	uint32_t end;         /* behind the highest sequence number seen */
	uint32_t sample_end;
	uint32_t acked;    /* highest acknowledgement of the peer */
	uint32_t tsval[2]; /* timestamps whose echoes are awaited, in their order */
	uint32_t tsval_last;
	uint16_t ip_id; /* of the packet that reached `end` */
	uint16_t window;
	uint8_t duplicate_acks; /* of the peer, since it last acknowledged more; 255 for more */
	uint8_t known;          /* PL_WAY_* */
	uint8_t tsvals;         /* how many are awaited */
	uint8_t zero;
};

/* Which members of a way hold something. */
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
	uint32_t min_us; /* holds with n */
};

/* What few connections have, of one record. */
struct pl_flow_rare {
	uint32_t retrans[2], ooo[2], zero_win[2], keepalives[2], gaps[2];
	uint32_t fast[2], timeout[2], spurious[2]; /* of retrans */
};

enum pl_flow_method { PL_FLOW_BY_SEQ, PL_FLOW_BY_TS, PL_FLOW_METHODS };

enum pl_flow_handshake {
	PL_HANDSHAKE_NONE,
	PL_HANDSHAKE_SYN,
	PL_HANDSHAKE_SYN_ACK,
	PL_HANDSHAKE_OVER
};

/* pl_flow_entry.state */
enum {
	PL_FLOW_FIN_FWD = 1,
	PL_FLOW_FIN_REV = 2, /* PL_FLOW_FIN_FWD << 1 */
	PL_FLOW_RST = 4,
	PL_FLOW_CLOSING = 8, /* RST or both FIN: `ended_ts` holds */
	PL_FLOW_ENDS = 15,   /* all of these */
	PL_FLOW_GIVEN = 16,  /* a record was given away: the role stays */
	PL_FLOW_TIMED = 32,  /* `rtt` holds */
	PL_FLOW_MARRED = 64, /* `rare` holds */
};

struct pl_flow_entry {
	struct pl_addr src, dst;
	uint16_t sport, dport, vlan;
	uint8_t proto, state;
	uint64_t first_ts, last_ts; /* of this record; the newest packet's */
	uint16_t obs;
	uint8_t flags[2];
	uint8_t handshake; /* enum pl_flow_handshake */
	uint8_t opener;    /* direction of the SYN */
	uint8_t role;      /* enum pl_flow_role, as SYNs or an earlier record tell it */
	uint8_t role_by;   /* enum pl_flow_role_by */

	/* Of this record. */
	uint64_t bytes[2];
	uint32_t packets[2];
	uint32_t records;
	uint32_t zero;
	uint64_t max_gap_ns;
	uint32_t missed[2][PL_FLOW_METHODS]; /* segments that gave no time */
	uint32_t dup_acks[2];

	struct pl_flow_way way[2];

	uint64_t syn_ts, syn_ack_ts, ended_ts;
	uint32_t isn[2];
	uint32_t hole_from[2],
		hole_to[2]; /* the newest range that was skipped and not seen since */
	uint32_t hs_external_us, hs_internal_us; /* of this record */
	uint64_t spare;

	struct pl_flow_rtt rtt[2][PL_FLOW_METHODS]; /* of this record; 0: between tap and dst */
	struct pl_flow_rare rare;
};

_Static_assert(sizeof(struct pl_flow_way) == 64, "a way is one line");
_Static_assert(
	offsetof(struct pl_flow_entry, way) == 128, "what every packet touches is two lines");
_Static_assert(offsetof(struct pl_flow_entry, rtt) == 320, "round-trip times are one line");
_Static_assert(sizeof(struct pl_flow_entry) == 448, "a flow is seven lines");

/* For something that few connections have. */
static inline struct pl_flow_rare *pl_flow_rare_of(struct pl_flow_entry *flow)
{
	if ((flow->state & PL_FLOW_MARRED) == 0)
		flow->rare = (struct pl_flow_rare){ 0 };
	flow->state |= PL_FLOW_MARRED;
	return &flow->rare;
}

/* What is known of the round-trip times between the tap and side d by a method. */
static inline struct pl_flow_rtt pl_flow_rtt_of(
	const struct pl_flow_entry *flow, unsigned int d, enum pl_flow_method m)
{
	return (flow->state & PL_FLOW_TIMED) != 0 ? flow->rtt[d][m] : (struct pl_flow_rtt){ 0 };
}

/* By both methods. */
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

static inline bool pl_flow_has_ports(uint8_t proto)
{
	return proto == PL_PROTO_TCP || proto == PL_PROTO_UDP || proto == PL_PROTO_SCTP;
}

/* Whether sequence number a is behind b: RFC 9293 3.4. */
static inline bool pl_seq_after(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0;
}

/* Microseconds, rounded up: 0 says "not measured". */
static inline uint32_t pl_flow_us(uint64_t ns)
{
	return (uint32_t)((ns + 999) / 1000);
}
