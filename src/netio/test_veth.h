/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests and benchmarks: veth pairs in the calling thread's network namespace. Needs
 * CAP_NET_ADMIN. All return 0 or negative errno. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <unistd.h>

#include "netio/rtnl_message.h"
#include "netio/rtnl_net.h"

/* Creates a pair, each end with `queues` queues. The peer goes into the namespace of the descriptor
 * (of /proc/PID/ns/net); -1 = this one. */
static inline int veth_make(const char *name, const char *peer, int peer_ns, unsigned int queues)
{
	return pl_rtnl_veth_between(
		&(struct pl_rtnl_end){ .name = name, .ns = -1, .queues = queues },
		&(struct pl_rtnl_end){ .name = peer, .ns = peer_ns, .queues = queues });
}

/* Removes an interface; a veth's peer goes with it. */
static inline int veth_remove(const char *name)
{
	struct pl_rtnl_request q;
	struct ifinfomsg *info = pl_rtnl_begin(&q, RTM_DELLINK, 0, sizeof(*info));

	info->ifi_index = (int)if_nametoindex(name);
	return info->ifi_index == 0 ? -ENODEV : pl_rtnl_ask(&q);
}

/* Disables IPv6 on interfaces created later in this namespace, so that no neighbour or multicast
 * messages are among the counted frames. 0 also for a kernel without IPv6. */
static inline int veth_hush(void)
{
	int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (write(fd, "1", 1) != 1)
		r = -errno;
	close(fd);
	return r;
}
