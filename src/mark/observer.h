/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An observer of QUIC as an engine: datagrams of both directions to round-trip times and loss of
 * connections, by the bits of explicit flow measurement (mark/efm.h). It owns no port and no clock.
 *
 * A connection is a pair of addresses and UDP ports. It is followed from its first long header of a
 * known version on, or from its first short header where a port is that of QUIC (443) or the caller
 * says that all datagrams are. Whose long header came first is the client.
 *
 * Connection ids: the length of that in short headers is known where the handshake was seen, from
 * the source connection id of the other side. A packet to another id begins the spin bit, the blocks
 * and the delay sample of its direction anew (RFC 9000 17.4). Where the handshake was not seen, such
 * a change is not.
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
	bool any_port;      /* short headers of all ports are taken */
};

struct pl_observer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "mark/observer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_observer_stats_list;

/* Of a direction of a connection. */
struct pl_observed {
	struct pl_mark_flow flow; /* from the sender to the receiver */
	uint64_t packets;         /* with a short header */
	uint64_t first_ns, last_ns;
	uint64_t edges, rejected, paused; /* of the spin bit, as they came; not taken; too long */
	uint64_t congested;               /* packets with CE */
	uint64_t cids;                    /* changes of the connection id */
	uint64_t handshake_ns;            /* round-trip time of the handshake; 0: not seen */
	struct pl_efm_result efm;
};

struct pl_observer;

/* -EINVAL with diag: N or X cannot be; -ENOMEM. */
int pl_observer_new(
	struct pl_observer **ret, const struct pl_observer_config *config, struct pl_diag *diag);
void pl_observer_free(struct pl_observer *o);

/* A datagram. flow: its addresses, ports, protocol, the rest zero. ecn: of IP. missing: bytes of
 * the payload that the capture has not. False: it counts for no connection. */
bool pl_observer_take(struct pl_observer *o, const struct pl_mark_flow *flow, uint64_t time_ns,
	uint8_t ecn, struct pl_cursor payload, uint32_t missing);

/* Every direction that had a packet with a short header, in the order that connections came, the
 * client's first where it is known; the observer is empty then. */
void pl_observer_finish(
	struct pl_observer *o, void (*told)(void *arg, const struct pl_observed *one), void *arg);

const struct pl_observer_stats *pl_observer_stats(const struct pl_observer *o);
