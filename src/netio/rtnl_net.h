/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configures a network by netlink, in the calling thread's network namespace: veth pairs and
 * interfaces, addresses, neighbours, routes with equal next hops, rates. Needs CAP_NET_ADMIN. All
 * return 0 or negative errno; -ENODEV when there is no interface of the name.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* One end of a veth pair: its name, its MAC address (NULL: any), the namespace it is put into (a
 * descriptor of /proc/PID/ns/net; -1: this one), and its queues (0: one). */
struct pl_rtnl_end {
	const char *name;
	const uint8_t *mac;
	int ns;
	uint32_t queues;
};

#define PL_RTNL_HOPS_MAX 128

struct pl_rtnl_hop {
	const char *interface;
	const struct pl_addr *via;
};

/* Creates a veth pair directly in the namespaces of its ends. */
int pl_rtnl_veth_between(const struct pl_rtnl_end *a, const struct pl_rtnl_end *b);
int pl_rtnl_up(const char *interface, bool up);
int pl_rtnl_mtu(const char *interface, uint32_t mtu);
/* Adds an address. bits: length of the prefix in the address's own family, at most 32 or 128.
 * Without IPv6 duplicate address detection. */
int pl_rtnl_address(const char *interface, const struct pl_addr *addr, unsigned int bits);
/* Adds a permanent neighbour entry, which the kernel never resolves again. */
int pl_rtnl_neighbour(const char *interface, const struct pl_addr *addr, const uint8_t mac[6]);
/* Sets the route to a prefix, replacing one to the same prefix; bits 0 is the default route. -E2BIG
 * beyond PL_RTNL_HOPS_MAX next hops. */
int pl_rtnl_route(const struct pl_addr *to, unsigned int bits, const struct pl_rtnl_hop *hops,
	unsigned int n);
/* Limits the interface's rate to bps, with a queue of queue_bytes (the kernel's token bucket
 * filter). Replaces an earlier limit; bps 0 removes it. -EOPNOTSUPP from a kernel without it. */
int pl_rtnl_rate(const char *interface, uint64_t bps, uint64_t queue_bytes);
/* Turns off checksum and segmentation offload, so that frames are as on a wire. 0 also when the
 * interface has no such offload. */
int pl_rtnl_no_offload(const char *interface);
