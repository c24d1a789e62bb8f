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
	bool hwtstamp;      /* the driver is asked for the NIC's times */
	uint32_t tap_bytes; /* not 0: every frame, entering and leaving, and so much of it */
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

struct pl_packet_direct;

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
	bool vnet;                       /* a virtio_net_hdr is in front of each frame */
	bool forwards;                   /* no ring: packet_direct.c */
	struct pl_packet_direct *direct; /* NULL: a ring, or no socket */
};

/* Whether frames get the NIC's time where it has one. Of reports only on demand: their times are
 * compared with those of other sources by the host's clock. */
static inline bool pl_packet_takes_nic(const struct settings *set)
{
	return set->rules.all || set->hwtstamp;
}

/* The clock of a frame's time: the NIC's when the TPACKET status says so; else the kernel took it,
 * on the frame's way in (TP_STATUS_TS_SOFTWARE), or when it put it into the ring. */
static inline enum pl_clock_kind pl_packet_clock(uint32_t status)
{
	return (status & TP_STATUS_TS_RAW_HARDWARE) != 0 ? PL_STAMP_NIC : PL_STAMP_KERNEL;
}

/* ---- packet_socket.c ---- */

void pl_packet_group_put(struct pl_packet_group *g);
int pl_packet_socket_open(struct packet_port *self, struct pl_diag *diag);
/* The kernel's counts begin anew when they are read. */
void pl_packet_socket_stats(struct pl_port *port);
void pl_packet_socket_close(struct packet_port *self);
int pl_packet_group_open(struct packet_port *self, const struct pl_port_options *options);

/* ---- packet_direct.c ---- */

/* For a socket that is not bound yet, and a second one to send by, which is the port's then, also on
 * failure; so many bytes of each frame. Negative errno; pl_packet_direct_close in any case. */
int pl_packet_direct_open(struct packet_port *self, int fd, int send_fd, uint32_t bytes);
void pl_packet_direct_close(struct packet_port *self);
int pl_packet_direct_take(struct packet_port *self, struct pl_batch *batch);
int pl_packet_direct_fd(const struct packet_port *self); /* that sends */
