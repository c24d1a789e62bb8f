/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of a port's UDP sockets is read next. At first there is one. When it fills faster than it
 * is read, those who send most of it get a lane, a socket with a buffer of its own: what they send
 * beyond what is read finds no room there and is dropped, and the others' does not. The first
 * socket may have PL_UDP_FIRST_TURNS turns for each turn of a lane.
 *
 * A sender's datagrams keep their order: a lane is not read before what the sender left in the
 * socket it comes from has been. When a lane had little for PL_UDP_CALM_NS, its senders go back.
 */
#pragma once

#include "netio/heavy.h"
#include "netio/port.h"
#include "netio/udp_group.h"

#define PL_UDP_FIRST_TURNS 8
#define PL_UDP_CALM_NS     (UINT64_C(10) * 1000000000u)

struct pl_udp_socket {
	int fd;                     /* -1: none */
	uint32_t senders, networks; /* of a lane: who has it; among them networks */
	uint32_t drops_told, drops_looked;
	uint64_t behind; /* of a lane: unread until so many more of socket `after` are, or all */
	unsigned int after;
	uint64_t busy_ns; /* when it had much last (monotonic) */
	struct pl_heavy heavy;
};

struct pl_udp_turns {
	struct pl_udp_group *group;
	unsigned int share;
	uint32_t much;   /* so many datagrams at once are a sign that more wait */
	uint32_t sample; /* so many tell who sends most: a small part of what there is room for */
	struct pl_udp_socket sockets[1 + PL_UDP_LANES];
	unsigned int bound; /* so many of them are read */
	unsigned int at, streak, last_lane;
	bool more; /* the first socket had much */
	struct pl_port_flood floods[PL_PORT_FLOODS];
	unsigned int n_floods;
	uint64_t dropped, flood_dropped, moved;
	int error; /* errno for which a lane was refused last */
};

/* Lanes are those sockets[1 …] with a descriptor, unbound yet; rcvbuf as the kernel has it, in its
 * unit. */
void pl_udp_turns_start(struct pl_udp_turns *t, uint32_t rcvbuf);

/* The socket to read now. */
unsigned int pl_udp_turns_next(const struct pl_udp_turns *t);

/* Socket `i` gave n datagrams at that time. */
void pl_udp_turns_took(struct pl_udp_turns *t, unsigned int i, const struct pl_packet *packets,
	uint32_t n, uint64_t now_ns);

/* Brings the counts of drops up to date, from the kernel. */
void pl_udp_turns_drops(struct pl_udp_turns *t);

/* Closes all that is open. */
void pl_udp_turns_close(struct pl_udp_turns *t);

/* What the kernel knows of a socket's buffer, in its unit. Negative errno. */
struct pl_udp_room {
	uint32_t used, size, drops;
};
int pl_udp_room(int fd, struct pl_udp_room *ret);
