/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a packet port, for packet.c (the driver) and packet_socket.c (its socket). */
#pragma once

#include <linux/if_packet.h>
#include <pthread.h>

#include "netio/iface.h"
#include "netio/rights.h"

#define TAG_BYTES 4u

/* What the members of a fanout group have in common. */
struct pl_packet_group {
	pthread_mutex_t lock;
	unsigned int refs, members; /* ports; of them, those that have a socket in the group */
	uint16_t id;
};

struct settings {
	uint64_t fanout;
	uint32_t ring;
	uint64_t block_bytes;
	struct pl_filter_rules rules;
};

/*
 * Datagrams in a row behind one header: what a sender leaves to its NIC to take apart arrives in
 * one piece over veth, and from a virtual machine's host. They are handed over as datagrams.
 * Kernels before 6.2 drop such a frame on the way to a ring, and count it.
 */
struct row {
	const uint8_t *at; /* the next one's bytes */
	uint32_t left;     /* bytes; 0 = there is no row */
	uint32_t each;     /* bytes, the last one's may be fewer */
	struct pl_addr src, dst;
	uint16_t sport, dport;
};

struct packet_port {
	struct pl_iface iface; /* first */
	struct settings set;
	const struct pl_rights *rights;
	struct pl_packet_group *group; /* NULL: alone */
	uint8_t *ring;
	size_t ring_bytes;
	uint32_t blocks;
	uint32_t block;                  /* that is being read */
	uint32_t left;                   /* packets of it that were not lent yet */
	const struct tpacket3_hdr *next; /* the first of them */
	struct row row;                  /* what is left of the frame at next */
};

/* ---- packet_socket.c ---- */

void pl_packet_group_put(struct pl_packet_group *g);
int pl_packet_socket_open(struct packet_port *self, struct pl_diag *diag);
/* The kernel's counts begin anew when they are read. */
void pl_packet_socket_stats(struct pl_port *port);
void pl_packet_socket_close(struct packet_port *self);
int pl_packet_group_open(struct packet_port *self, const struct pl_port_options *options);
