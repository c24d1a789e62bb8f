/* SPDX-License-Identifier: BSD-2-Clause */
/* Private declarations of packet ports, for packet.c (the driver), packet_socket.c (its socket) and
 * packet_direct.c (forwarding). */
#pragma once

#include <linux/if_packet.h>
#include <pthread.h>

#include "netio/iface.h"
#include "netio/rights.h"

#define TAG_BYTES 4u

/* State that the members of a fanout group share. */
struct pl_packet_group {
	pthread_mutex_t lock;
	unsigned int refs, members; /* ports; ports with a socket in the group */
	uint16_t id;
};

struct settings {
	uint64_t fanout;
	uint32_t ring;
	uint64_t block_bytes;
	struct pl_filter_rules rules;
	bool hwtstamp;      /* ask the driver for the NIC's timestamps */
	uint32_t tap_bytes; /* not 0: a tap; bytes taken of every frame, in both directions */
};

/*
 * A row: several datagrams behind one header. UDP segmentation that a sender leaves to its NIC
 * (GSO) is not done over veth, or between a virtual machine and its host. The port returns them as
 * single datagrams. Kernels before 6.2 drop such a frame on the way to a ring, and count it.
 */
struct row {
	const uint8_t *at; /* payload of the next datagram */
	uint32_t left;     /* bytes left in the row; 0 = no row */
	uint32_t each;     /* bytes of a datagram; the last may have fewer */
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
	uint32_t block;                  /* index of the block that is being read */
	uint32_t left;                   /* packets of the block that were not lent yet */
	const struct tpacket3_hdr *next; /* the first of them */
	struct row row;                  /* the rest of the frame at next */
	bool vnet;                       /* a virtio_net_hdr is in front of each frame */
	bool forwards;                   /* no ring: packet_direct.c */
	struct pl_packet_direct *direct; /* NULL: a ring, or no socket */
};

/* Returns true when frames get the NIC's time where it has one: those of a tap, and reports only on
 * demand, because their times are compared by the host's clock with those of other sources. */
static inline bool pl_packet_takes_nic(const struct settings *set)
{
	return set->rules.all || set->hwtstamp;
}

/* Returns the clock of a frame's timestamp: the NIC's when the TPACKET status says so, else the
 * kernel's (taken on arrival, TP_STATUS_TS_SOFTWARE, or when the frame was put into the ring). */
static inline enum pl_clock_kind pl_packet_clock(uint32_t status)
{
	return (status & TP_STATUS_TS_RAW_HARDWARE) != 0 ? PL_STAMP_NIC : PL_STAMP_KERNEL;
}

/* ---- packet_socket.c ---- */

void pl_packet_group_put(struct pl_packet_group *g);
int pl_packet_socket_open(struct packet_port *self, struct pl_diag *diag);
/* Adds the kernel's drops to the port's; reading resets the kernel's count. */
void pl_packet_socket_stats(struct pl_port *port);
void pl_packet_socket_close(struct packet_port *self);
int pl_packet_group_open(struct packet_port *self, const struct pl_port_options *options);

/* ---- packet_direct.c ---- */

/* Prepares fd, which is not bound yet, for receiving `bytes` bytes of each frame, and send_fd for
 * sending; send_fd becomes the port's, also on failure. Negative errno; call pl_packet_direct_close
 * in any case. */
int pl_packet_direct_open(struct packet_port *self, int fd, int send_fd, uint32_t bytes);
void pl_packet_direct_close(struct packet_port *self);
int pl_packet_direct_take(struct packet_port *self, struct pl_batch *batch);
int pl_packet_direct_fd(const struct packet_port *self); /* the sending socket */
