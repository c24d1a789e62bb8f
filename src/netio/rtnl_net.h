/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a network out of interfaces, by netlink, in the calling thread's network namespace:
 * addresses, neighbours, routes with equal next hops, a rate. CAP_NET_ADMIN. All return negative
 * errno; -ENODEV when there is no interface of the name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* One end of a pair of virtual interfaces: its name, its hardware address (NULL: any), the namespace it is put
 * into (a descriptor of /proc/PID/ns/net). */
struct pl_rtnl_end {
	const char *name;
	const uint8_t *mac;
	int ns;
};

#define PL_RTNL_HOPS_MAX 128

struct pl_rtnl_hop {
	const char *interface;
	const struct pl_addr *via;
};

/* Both ends are made where they are to be: nothing of it is seen in this namespace. */
int pl_rtnl_veth_between(const struct pl_rtnl_end *a, const struct pl_rtnl_end *b);
/* Lengths of prefixes count in the bits of the address itself, 32 or 128. No search for duplicates
 * of IPv6. */
int pl_rtnl_address(const char *interface, const struct pl_addr *addr, unsigned int bits);
/* For good: it is never asked for. */
int pl_rtnl_neighbour(const char *interface, const struct pl_addr *addr, const uint8_t mac[6]);
/* -E2BIG beyond PL_RTNL_HOPS_MAX next hops. bits 0 is the default route. In the place of
 * the one that there is to the same destination. */
int pl_rtnl_route(const struct pl_addr *to, unsigned int bits, const struct pl_rtnl_hop *hops,
	unsigned int n);
/* The interface sends so many bits per second at most, from a queue of so many bytes (a token
 * bucket of the kernel's); again to change it, 0 to have it as it was. -EOPNOTSUPP from a kernel
 * without it. */
int pl_rtnl_rate(const char *interface, uint64_t bps, uint64_t queue_bytes);
/* Frames as on a wire: with checksums, not larger than the MTU. 0 also when the interface has no
 * such offload. */
int pl_rtnl_no_offload(const char *interface);
