/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's answers about the way to a host: the route and the neighbour. In the calling
 * thread's network namespace; no right is needed. */
#pragma once

#include "base/addr.h"
#include "base/diag.h"

struct pl_route {
	struct pl_addr source;   /* ours, by which the host sees us */
	struct pl_addr next_hop; /* the host itself, or a router */
};

/* The way to `to` through the interface. -ENETUNREACH with diag: none, or no address of ours. */
int pl_route_find(
	int ifindex, const struct pl_addr *to, struct pl_route *ret, struct pl_diag *diag);

/* The interface by which packets to `to` leave. -ENETUNREACH with diag: there is no way, or it is this
 * host. */
int pl_route_interface(const struct pl_addr *to, int *ret_ifindex, struct pl_diag *diag);

/* The MAC address of a host on the interface's link. -ENOENT: not known, pl_neighbour_ask finds it
 * out; -EAGAIN: being asked for; -EHOSTUNREACH: asked for in vain. */
int pl_neighbour_find(int ifindex, const struct pl_addr *host, uint8_t ret_mac[6]);

/* Makes the kernel ask for it, by an empty datagram to the host's discard port (9). Negative
 * errno. */
int pl_neighbour_ask(int ifindex, const struct pl_addr *host);
