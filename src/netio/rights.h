/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two steps for which a port on a network interface needs a right, also when it takes up again
 * after its interface was away. A process that has given up the right passes functions by
 * which a helper does them (pl_port_options.rights); without these the process tries them itself.
 */
#pragma once

#include <stdint.h>

/* Where a program is attached: BPF_XDP, and what Linux 6.6 calls BPF_TCX_INGRESS and
 * BPF_TCX_EGRESS, which older headers do not name. */
enum { PL_LINK_XDP = 37, PL_LINK_TCX_IN = 46, PL_LINK_TCX_OUT = 47 };

struct pl_rights {
	/* A raw socket of AF_XDP or AF_PACKET (CAP_NET_RAW): its descriptor or -errno. Any
	 * thread. */
	int (*socket)(const struct pl_rights *rights, int domain);
	/* A BPF link of a program to an interface (CAP_NET_ADMIN): its descriptor or -errno. type:
	 * PL_LINK_*. Any thread. */
	int (*link)(const struct pl_rights *rights, int prog_fd, int ifindex, uint32_t type,
		uint32_t flags);
};
