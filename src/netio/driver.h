/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interface of port drivers. A driver is one file with one `struct pl_port_driver`, listed in
 * port.c. Its own structure begins with struct pl_port. port.c checks the contract's calling order
 * and counts packets and bytes; a driver counts only the numbers that port.c cannot know.
 */
#pragma once

#include "netio/port.h"
#include "netio/uri.h"

struct pl_port_driver {
	const char *scheme;
	uint32_t can; /* PL_PORT_CAN_* */
	const char *const
		*keys; /* query keys, NULL behind the last; NULL = the driver takes no query */

	/* NULL: the URI needs no further check than its form. Must not touch the system. */
	int (*check)(const struct pl_uri *uri, struct pl_diag *diag);
	int (*open)(struct pl_port **ret_port, const struct pl_uri *uri, enum pl_port_mode mode,
		const struct pl_port_options *options, struct pl_diag *diag);
	int (*recv)(struct pl_port *port, struct pl_batch *ret_batch, int timeout_ms,
		struct pl_diag *diag);
	/* NULL: nothing to do. batch->n is the number that recv returned; a filter may have
	 * reordered the packets. */
	void (*release)(struct pl_port *port, struct pl_batch *batch);
	int (*send)(struct pl_port *port, const struct pl_batch *batch, struct pl_diag *diag);
	/* Returns why a port that was to send too cannot; NULL: the driver has no such ports. */
	const char *(*why_not)(const struct pl_port *port);
	void (*stats)(struct pl_port *port); /* updates port->stats; or NULL */
	/* As pl_port_floods. NULL: the driver has no lanes. */
	uint32_t (*floods)(struct pl_port *port, struct pl_port_flood *ret, int *ret_error);
	/* As pl_port_lane_fds; NULL likewise. */
	unsigned int (*lane_fds)(const struct pl_port *port, int *ret, unsigned int max);
	int (*close)(struct pl_port *port); /* frees the port, whatever it returns */
};

/* Registers a driver of another folder, at most PL_PORT_DRIVERS_MORE, before a second thread runs.
 * Adding a driver twice has no effect. */
#define PL_PORT_DRIVERS_MORE 4
void pl_port_add(const struct pl_port_driver *driver);

struct pl_port {
	const struct pl_port_driver *driver;
	enum pl_port_mode mode;
	char *name; /* freed by the driver's close */
	int fd;     /* -1: nothing to poll */
	uint16_t local_port;
	int lent;   /* packets on loan from the driver, before the filter */
	bool sends; /* PL_PORT_RECV: pl_port_send works too */
	struct pl_pcap_filter
		*filter;          /* NULL: no filter, all packets are returned; freed by port.c */
	enum pl_clock_kind clock; /* expected clock of its packets */
	struct pl_port_stats stats;
};

/* A build without the AF_XDP driver uses this too, in its error. */
#define PL_PORT_AFXDP_CAN                                                                          \
	(PL_PORT_CAN_LIVE | PL_PORT_CAN_SEND | PL_PORT_CAN_INTERFACE | PL_PORT_CAN_DETECT |        \
		PL_PORT_CAN_BOTH)

extern const struct pl_port_driver pl_port_pcap, pl_port_udp, pl_port_packet, pl_port_ioam6;
#if PL_HAVE_BPF
extern const struct pl_port_driver pl_port_afxdp;
#endif
