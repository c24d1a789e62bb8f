/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few changes to interfaces that tests and benchmarks make, by netlink, in the calling thread's
 * network namespace. CAP_NET_ADMIN. All return negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A pair of virtual interfaces, each with so many queues; the peer's end is put into the namespace
 * of the descriptor (of /proc/PID/ns/net), -1 = this one. */
int pl_rtnl_veth(const char *name, const char *peer, int peer_ns, unsigned int queues);
int pl_rtnl_up(const char *name, bool up);
int pl_rtnl_mtu(const char *name, uint32_t mtu);
/* Interfaces made from now on in this namespace do not speak of themselves: no neighbour or
 * multicast messages of IPv6 among the frames that are counted. A kernel without IPv6 has nothing
 * to say: 0. */
int pl_rtnl_hush(void);
int pl_rtnl_remove(const char *name); /* a veth's peer goes with it */
