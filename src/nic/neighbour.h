/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's routes and neighbours of a host, in the calling thread's network namespace; no right
 * is needed. */
#pragma once

#include "base/addr.h"
#include "base/diag.h"

struct pl_route {
	struct pl_addr source;   /* our address towards the host */
	struct pl_addr next_hop; /* the host itself, or a router */
};

/* Finds the route to `to` through the interface. Returns -ENETUNREACH with diag when there is none,
 * or we have no address. */
int pl_route_find(
	int ifindex, const struct pl_addr *to, struct pl_route *ret, struct pl_diag *diag);

/* Finds the interface by which packets to `to` leave. Returns -ENETUNREACH with diag when there is
 * no route, or `to` is this host. */
int pl_route_interface(const struct pl_addr *to, int *ret_ifindex, struct pl_diag *diag);

/* Reads the MAC address of a host on the interface's link. Returns -ENOENT when it is unknown (call
 * pl_neighbour_ask); -EAGAIN while it is being resolved; -EHOSTUNREACH when that failed. */
int pl_neighbour_find(int ifindex, const struct pl_addr *host, uint8_t ret_mac[6]);

/* Makes the kernel resolve the address, by an empty datagram to the host's discard port (9).
 * Returns negative errno. */
int pl_neighbour_ask(int ifindex, const struct pl_addr *host);
