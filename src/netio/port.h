/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where packets enter and leave. A port is named by a URI:
 *
 *   pcap:FILE  or a bare path      capture file, pcap or pcapng, gzip too; "-" is standard input
 *   udp://HOST:PORT?sockets=N&rcvbuf=SIZE    UDP socket; an empty host is every address, v4 and v6
 *
 * A receive batch is a loan: every pl_port_recv that returned packets is answered by pl_port_release before
 * the next one. Sending is by pl_port_send, which copies or hands over before it returns. A port belongs to
 * one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "wire/packet.h"

struct pl_port;

struct pl_port_stats {
	uint64_t packets, bytes;     /* handed to the caller (receive) or sent */
	uint64_t kernel_drops;       /* lost before us: no room in the socket or ring */
	uint64_t cut;                /* longer than the buffer: handed over cut, wire_len tells */
	uint64_t errors;             /* receive or send errors reported by the system */
	uint64_t rcvbuf_bytes;       /* socket buffer really granted; 0 = not a socket */
};

enum pl_port_mode { PL_PORT_RECV, PL_PORT_SEND };

/* Options beyond the URI; zero is the default. */
struct pl_port_options {
	unsigned int index, of;      /* this is socket `index` of `of` sharing the address (SO_REUSEPORT) */
	unsigned int snaplen;        /* send to a capture file: 0 = whole packets */
};

/* -EINVAL (bad URI), or the system's errno, with diag. For a capture file of a link type that is not read,
 * packets come as PL_LINK_UNKNOWN. */
int pl_port_open(struct pl_port **ret_port, const char *uri, enum pl_port_mode mode,
	const struct pl_port_options *options, struct pl_diag *diag);

/* How many sockets the URI asks for ("?sockets=4"), 1 when it says nothing. -EINVAL with diag. */
int pl_port_uri_sockets(const char *uri, struct pl_diag *diag);

/* The port's canonical name, for logs and labels: "udp://[::]:32766". Valid while the port is open. */
const char *pl_port_name(const struct pl_port *port);

/* The bound UDP port number (after port 0 was asked for), 0 when not a socket. */
uint16_t pl_port_local_port(const struct pl_port *port);

/* The descriptor to poll, or -1 when there is none (files). */
int pl_port_fd(const struct pl_port *port);

/*
 * Up to PL_BATCH_MAX packets into *ret_batch. Returns their number; 0 when none came within timeout_ms (-1 =
 * wait for ever; a signal also returns 0). At the end of a file -ENODATA. A damaged file: the packets before
 * the damage first, then -EBADMSG with diag. Other negative errno: the port is of no more use.
 */
int pl_port_recv(struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms, struct pl_diag *diag);
void pl_port_release(struct pl_port *port, struct pl_batch *batch);

/* Sends the batch. PL_LINK_UDP packets go to the URI's address from a socket; frames go to a capture file.
 * Returns how many were taken, or negative errno when none. */
int pl_port_send(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag);

void pl_port_stats(const struct pl_port *port, struct pl_port_stats *ret);

/* Close flushes; a capture file whose last bytes could not be written makes it return negative errno. */
int pl_port_close(struct pl_port *port);
