/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A NIC for the engines of rdma/: an interface of this host, opened for RoCE in both directions.
 * Packets to UDP port 4791 are received; all others stay the host's. Frames of an engine are sent
 * unchanged. The path to a peer (our address, MAC address of the next hop) comes from the kernel's
 * routes and neighbours.
 *
 *   pl_nic_open(&nic, "afxdp:eth0?queues=0", NULL, &diag);
 *   while (pl_nic_path(nic, &peer, NULL, &path, &diag) == -EAGAIN) ...            resolve the peer
 *   n = pl_nic_recv(nic, &batch, timeout_ms, &diag);  engines read it;  pl_nic_release(nic,
 *                                                     &batch);
 *   pl_nic_send(nic, &frames, &diag);
 *
 * With packet: the host sees the frames too, and would answer them by ICMP "port unreachable". So
 * the NIC binds UDP port 4791 on its interface and drops the packets there (the system's
 * UdpInErrors counts them).
 *
 * The interface's MAC address, MTU, number and name may change while it is open, and are followed:
 * frames leave with the present MAC address, whatever path they were made for.
 *
 * One thread at a time.
 */
#pragma once

#include <stdint.h>

#include "base/counter.h"
#include "base/diag.h"
#include "base/stats.h"
#include "netio/port.h"
#include "rdma/frames.h"

struct pl_nic;

#define PL_NIC_PORTS_MAX 64

struct pl_nic_options {
	const struct pl_rights *rights; /* rights of a helper (netio/rights.h); NULL: our own */
};

/*
 * uri: packet:IFACE or afxdp:IFACE with the keys of netio/port.h; `port` is 4791 unless it says
 * otherwise; or udp://HOST, an address of this host, which needs no rights (nic/udp_wire.c). All
 * queues of the interface that the URI names are read, turn by turn. An afxdp: one sends by the
 * ring of the first queue that can send, and where none can, as packet: does, through a packet
 * socket past the queueing discipline (pl_nic_note). -EINVAL (no such URI, no interface), or as
 * pl_port_open, with diag.
 */
int pl_nic_open(struct pl_nic **ret, const char *uri, const struct pl_nic_options *options,
	struct pl_diag *diag);
void pl_nic_close(struct pl_nic *nic); /* NULL is fine */

/* Descriptor that is readable when there may be something to receive. Stays the same while it is
 * open. */
int pl_nic_fd(const struct pl_nic *nic);
const char *pl_nic_name(const struct pl_nic *nic); /* "afxdp:eth0", as it was opened */
/* Reason why an afxdp: NIC sends through a packet socket; NULL: it does not. Valid while it is
 * open. */
const char *pl_nic_note(const struct pl_nic *nic);
const uint8_t *pl_nic_mac(const struct pl_nic *nic); /* 6 bytes */
/* Count that grows when the interface or its addresses may have changed; read it after
 * pl_nic_recv. */
uint32_t pl_nic_changes(const struct pl_nic *nic);
/* Reads the interface's addresses, which the caller frees: IPv4, IPv6, link-local ones last.
 * Returns -EADDRNOTAVAIL with diag when there are only link-local ones; -ENOMEM. */
int pl_nic_addresses(
	const struct pl_nic *nic, struct pl_addr **ret, uint32_t *ret_n, struct pl_diag *diag);
/* Largest path MTU (256 to 4096) whose frames the interface and the ports carry; 256 also when not
 * even that fits, which pl_nic_fits reports. */
uint16_t pl_nic_mtu(const struct pl_nic *nic);
/* Returns 0 when RoCE's smallest path MTU fits the interface as it is now, or -EMSGSIZE with
 * diag. */
int pl_nic_fits(const struct pl_nic *nic, struct pl_diag *diag);
/* As pl_nic_mtu for received frames only, which may be larger than sent ones: for users that send
 * only short answers. */
uint16_t pl_nic_receive_mtu(const struct pl_nic *nic);

/* As pl_port_recv: packets lent until pl_nic_release; 0; -ENETDOWN and -EAGAIN with diag are news,
 * call again; other errors are final. */
int pl_nic_recv(
	struct pl_nic *nic, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag);
void pl_nic_release(struct pl_nic *nic, struct pl_batch *batch);

/* Sends all frames and empties `frames`. Frames that the interface did not take are lost, as on a
 * wire, and counted (unsent); then the error is returned, with diag. -ENETDOWN: the interface is
 * down, and `frames` is unchanged, for callers that can wait; others call pl_nic_drop. */
int pl_nic_send(struct pl_nic *nic, struct pl_frames *frames, struct pl_diag *diag);
/* Counts all frames as unsent and empties `frames`. */
void pl_nic_drop(struct pl_nic *nic, struct pl_frames *frames);

/*
 * Finds the path to a peer: path->src and smac are ours, dst the peer, dmac its or its router's,
 * hop limit 64, a UDP source port that differs from peer to peer. mac: the next hop's, where it is
 * known (6 bytes); NULL: the kernel's neighbour. -EAGAIN: the kernel was made to ask for it, call
 * again a moment later; -EHOSTUNREACH: it asked in vain, for now; -ENETUNREACH: the interface has
 * no address of the peer's kind; all with diag. A peer to which there is no route through the
 * interface counts as one on its link.
 */
int pl_nic_path(struct pl_nic *nic, const struct pl_addr *peer, const uint8_t *mac,
	struct pl_roce_path *ret, struct pl_diag *diag);

struct pl_nic_counters {
#define PL_STAT PL_STAT_COUNTER_MEMBER
#include "nic/nic_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_nic_stats_list;

const struct pl_nic_counters *pl_nic_counters(const struct pl_nic *nic);
/* Reads the counters of all receiving ports together, and of the sending ring of one of them. Calls
 * the kernel. */
void pl_nic_stats(struct pl_nic *nic, struct pl_port_stats *ret);
