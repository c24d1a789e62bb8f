/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two operations for which a port on a network interface needs privileges, also when it reopens
 * after its interface was away. A process that gave up the privileges passes functions that ask the
 * helper (pl_port_options.rights); without them the port does both itself.
 */
#pragma once

#include <stdint.h>

/* Attach types: BPF_XDP, BPF_TCX_INGRESS and BPF_TCX_EGRESS; older headers lack the latter two
 * (Linux 6.6). */
enum { PL_LINK_XDP = 37, PL_LINK_TCX_IN = 46, PL_LINK_TCX_OUT = 47 };

struct pl_rights {
	/* Opens a raw socket of AF_XDP or AF_PACKET (CAP_NET_RAW). Returns its descriptor or
	 * -errno. Thread-safe. */
	int (*socket)(const struct pl_rights *rights, int domain);
	/* Creates a BPF link of a program to an interface (CAP_NET_ADMIN), type PL_LINK_*. Returns
	 * its descriptor or -errno. Thread-safe. */
	int (*link)(const struct pl_rights *rights, int prog_fd, int ifindex, uint32_t type,
		uint32_t flags);
};
