/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow in the cache: five lines of 64 bytes. A packet of an open TCP connection touches the first
 * two and that of its way or both; the last is for what is rare. Arrays of two are by direction: 0
 * is forward, that of the first packet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "record/packet.h"

enum { PL_TCP_FIN = 1, PL_TCP_SYN = 2, PL_TCP_RST = 4, PL_TCP_ACK = 16 };

/* What one side sent, and how its peer answered. Sequence numbers are compared modulo 2^32. */
struct pl_flow_way {
	uint64_t newest_ts; /* when `end` was reached */
	uint64_t sample_ts; /* when the segment up to sample_end passed */
	uint64_t tsval_ts;  /* when tsval passed first */
	uint64_t rtt_sum_us;
	uint32_t rtt_n;
	uint32_t end; /* behind the highest sequence number seen */
	uint32_t sample_end;
	uint32_t acked; /* highest acknowledgement of the peer */
	uint32_t tsval; /* timestamp whose echo is awaited */
	uint32_t tsval_last;
	uint16_t ip_id; /* of the packet that reached `end` */
	uint16_t window;
	uint8_t duplicate_acks; /* of the peer, since it last acknowledged more; 255 for more */
	uint8_t known;          /* PL_WAY_* */
	uint16_t zero;
};

/* Which members of a way hold something. */
enum {
	PL_WAY_END = 1,
	PL_WAY_SAMPLE = 2,
	PL_WAY_ACKED = 4,
	PL_WAY_TSVAL = 8,
	PL_WAY_TSVAL_LAST = 16,
	PL_WAY_WINDOW = 32,
	PL_WAY_ISN = 64,
	PL_WAY_HOLE = 128,
};

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
	uint16_t zero;

	uint64_t bytes[2];
	uint32_t packets[2];
	uint32_t hs_external_us, hs_internal_us;
	uint32_t retrans[2], ooo[2];
	uint32_t rtt_min_us[2]; /* holds with rtt_n of the way */
	uint64_t max_gap_ns;

	struct pl_flow_way way[2];

	uint64_t syn_ts, syn_ack_ts, ended_ts;
	uint32_t isn[2];
	uint32_t hole_from[2],
		hole_to[2]; /* the newest range that was skipped and not seen since */
	uint64_t spare[2];
};

_Static_assert(sizeof(struct pl_flow_way) == 64, "a way is one line");
_Static_assert(sizeof(struct pl_flow_entry) == 320, "a flow is five lines");

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
