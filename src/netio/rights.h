/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two steps for which a port on a network interface needs a right, also when it takes up again
 * after its interface was away. Who has given up the right passes functions that get it done by
 * somebody else (pl_port_options.rights); without them the steps are tried as they are.
 */
#pragma once

#include <stdint.h>

struct pl_rights {
	/* A raw socket of AF_XDP or AF_PACKET (CAP_NET_RAW): its descriptor or -errno. Any
	 * thread. */
	int (*socket)(const struct pl_rights *rights, int domain);
	/* A BPF link of an XDP program to an interface (CAP_NET_ADMIN): its descriptor or -errno.
	 * Any thread. */
	int (*link)(const struct pl_rights *rights, int prog_fd, int ifindex, uint32_t flags);
};
