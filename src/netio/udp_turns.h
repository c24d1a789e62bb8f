/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses which of a port's UDP sockets is read next. At first there is one. When it fills faster
 * than it is read, its heaviest senders get a lane, a socket with its own buffer: the kernel drops
 * their excess there, and the other senders lose nothing. The first socket may have
 * PL_UDP_FIRST_TURNS turns for each turn of a lane.
 *
 * A sender's datagrams keep their order: a lane is not read before the sender's older datagrams in
 * its former socket have been. When a lane had little traffic for PL_UDP_CALM_NS, its senders go
 * back.
 */
#pragma once

#include "netio/heavy.h"
#include "netio/port.h"
#include "netio/udp_group.h"

#define PL_UDP_FIRST_TURNS 8
#define PL_UDP_CALM_NS     (UINT64_C(10) * 1000000000u)

struct pl_udp_socket {
	int fd;                     /* -1: none */
	uint32_t senders, networks; /* of a lane: number of its senders; of these, networks */
	uint32_t drops_told, drops_looked;
	uint64_t behind; /* of a lane: number of datagrams of socket `after` to be read before the
			  * lane */
	unsigned int after;
	uint64_t busy_ns; /* last time of much traffic (monotonic) */
	struct pl_heavy heavy;
};

struct pl_udp_turns {
	struct pl_udp_group *group;
	unsigned int share;
	uint32_t much;   /* a batch of at least this size is a sign that more datagrams wait */
	uint32_t sample; /* datagrams that suffice to find heavy senders: few for the buffer */
	struct pl_udp_socket sockets[1 + PL_UDP_LANES];
	unsigned int bound; /* number of sockets that are bound and read */
	unsigned int at, streak, last_lane;
	bool more; /* the last batch of the first socket was `much` */
	struct pl_port_flood floods[PL_PORT_FLOODS];
	unsigned int n_floods;
	uint64_t dropped, flood_dropped, moved;
	int error; /* last errno for which a lane was refused */
};

/* Begins with sockets[0] only; sockets[1 …] with a descriptor, not bound yet, can become lanes.
 * rcvbuf: size of the buffer in the kernel's unit. */
void pl_udp_turns_start(struct pl_udp_turns *t, uint32_t rcvbuf);

/* Returns the index of the socket to read now. */
unsigned int pl_udp_turns_next(const struct pl_udp_turns *t);

/* Records that socket `i` returned n datagrams at now_ns; may move senders to lanes or back. */
void pl_udp_turns_took(struct pl_udp_turns *t, unsigned int i, const struct pl_packet *packets,
	uint32_t n, uint64_t now_ns);

/* Updates the counts of drops from the kernel. */
void pl_udp_turns_drops(struct pl_udp_turns *t);

/* Closes all sockets. */
void pl_udp_turns_close(struct pl_udp_turns *t);

/* Fill level, size and drops of a socket's receive buffer, bytes in the kernel's unit. Negative
 * errno. */
struct pl_udp_room {
	uint32_t used, size, drops;
};
int pl_udp_room(int fd, struct pl_udp_room *ret);
