/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine of an observer of QUIC: it turns datagrams of both directions into round-trip times
 * and loss of connections, by the bits of explicit flow measurement (mark/efm.h). It owns no port
 * and no clock.
 *
 * A connection is a pair of addresses and UDP ports. It is followed from its first long header of a
 * known version on, or from its first datagram where a port is that of QUIC (443) or any_port is
 * set. The client is the sender of the first datagram if that has an Initial packet; otherwise the
 * edges of the spin bit show which end it is.
 *
 * Connection ids: their length in short headers is known when the handshake was seen, from the
 * peer's source connection id. When a packet has another id, the spin bit, the blocks and the delay
 * sample of its direction start again (RFC 9000 17.4). When the handshake was not seen, such a
 * change is not seen either.
 */
#pragma once

#include "base/diag.h"
#include "base/stats.h"
#include "mark/efm.h"
#include "mark/quic.h"
#include "mark/record.h"

#define PL_OBSERVER_PORT 443

struct pl_observer_config {
	struct pl_efm_config efm;
	uint32_t flows_max; /* 0: 65536 */
	bool any_port;      /* QUIC is expected on all ports */
};

struct pl_observer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "mark/observer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_observer_stats_list;

/* Result of one direction of a connection. */
struct pl_observed {
	struct pl_mark_flow flow; /* from the sender to the receiver */
	uint64_t packets;         /* packets with a short header */
	uint64_t first_ns, last_ns;
	uint64_t edges, rejected, paused; /* spin bit: edges seen; rejected; intervals too long */
	uint64_t congested;               /* packets with CE */
	uint64_t cids;                    /* changes of the connection id */
	uint64_t handshake_ns;            /* round-trip time of the handshake; 0: not seen */
	struct pl_efm_result efm;
};

struct pl_observer;

/* Makes an observer. Returns 0, -EINVAL with diag for an impossible N or X, or -ENOMEM. */
int pl_observer_new(
	struct pl_observer **ret, const struct pl_observer_config *config, struct pl_diag *diag);
void pl_observer_free(struct pl_observer *o);

/* Takes a datagram. flow: its addresses, ports and protocol, the rest zero. ecn: of its IP header.
 * missing: number of payload bytes that the capture lacks. False when it counts for no
 * connection. */
bool pl_observer_take(struct pl_observer *o, const struct pl_mark_flow *flow, uint64_t time_ns,
	uint8_t ecn, struct pl_cursor payload, uint32_t missing);

/* Gives the result of every direction that had a packet with a short header, in the order of the
 * connections' arrival, the client's direction first if it is known. The observer is empty then. */
void pl_observer_finish(
	struct pl_observer *o, void (*told)(void *arg, const struct pl_observed *one), void *arg);

const struct pl_observer_stats *pl_observer_stats(const struct pl_observer *o);
