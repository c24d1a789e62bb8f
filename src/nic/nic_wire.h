/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport of a NIC's frames: ports of netio/ on an interface (port_wire.c), or a UDP socket
 * (udp_wire.c). Structures and rules are those of nic/nic.h, which counts, follows the interface,
 * and keeps frames true to it.
 */
#pragma once

#include "nic/interface.h"
#include "nic/nic.h"

#define NIC_HOP_LIMIT 64

struct nic_wire;

/* Bytes of the longest frames, counted as on Ethernet. */
struct nic_wire_room {
	uint32_t send, receive;
};

struct nic_wire_ops {
	/* Opens the wire and its interface, which the caller owns and keeps open as long as the
	 * wire. Descriptors that are readable when there is something to receive go to poll_fd.
	 * Returns negative errno with diag. */
	int (*open)(struct nic_wire **ret, const char *uri, const struct pl_nic_options *options,
		struct nic_interface *interface, int poll_fd, struct pl_diag *diag);
	void (*close)(struct nic_wire *wire);
	const char *(*name)(const struct nic_wire *wire); /* "afxdp:eth0" */
	/* Remark for the user, valid while it is open; NULL: none. The operation may be NULL. */
	const char *(*note)(const struct nic_wire *wire);
	struct nic_wire_room (*room)(const struct nic_wire *wire);
	/* The wire's only address. NULL: all of the interface's. */
	const struct pl_addr *(*address)(const struct nic_wire *wire);
	/* Tells that the interface has another number. NULL: not needed. */
	void (*renumbered)(struct nic_wire *wire);

	/* Packets are lent until `release`. */
	int (*recv)(struct nic_wire *wire, struct pl_batch *ret_batch, int timeout_ms,
		struct pl_diag *diag);
	void (*release)(struct nic_wire *wire, struct pl_batch *batch);
	/* Sends frames, whose bytes it may change. Returns the number of frames taken; -errno with
	 * diag when none was. */
	int (*send)(struct nic_wire *wire, struct pl_batch *frames, struct pl_diag *diag);
	int (*path)(struct nic_wire *wire, const struct pl_addr *peer, const uint8_t *mac,
		struct pl_roce_path *ret, struct pl_diag *diag);
	/* Reads the counters of the receiving side. */
	void (*stats)(struct nic_wire *wire, struct pl_port_stats *ret);
};

extern const struct nic_wire_ops nic_port_wire, nic_udp_wire;
