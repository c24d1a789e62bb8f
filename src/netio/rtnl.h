/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes interfaces by netlink, for tests and benchmarks, in the calling thread's network
 * namespace. Needs CAP_NET_ADMIN. All return 0 or negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Creates a veth pair, each end with `queues` queues. The peer goes into the namespace of the
 * descriptor (of /proc/PID/ns/net); -1 = this one. */
int pl_rtnl_veth(const char *name, const char *peer, int peer_ns, unsigned int queues);
int pl_rtnl_up(const char *name, bool up);
int pl_rtnl_mtu(const char *name, uint32_t mtu);
/* Disables IPv6 on interfaces created later in this namespace, so that no neighbour or multicast
 * messages are among the counted frames. 0 also for a kernel without IPv6. */
int pl_rtnl_hush(void);
int pl_rtnl_remove(const char *name); /* a veth's peer goes with it */
