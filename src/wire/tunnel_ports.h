/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP destination ports that announce a tunnel, for user space and the kernel's program: the
 * assigned ones, and ports of VXLAN that a network uses besides. Four ports in a word are compared
 * at once.
 */
#pragma once

#include <stdint.h>

enum {
	PL_PORT_GTPU = 2152,
	PL_PORT_VXLAN = 4789,
	PL_PORT_VXLAN_GPE = 4790,
	PL_PORT_GENEVE = 6081,
	PL_PORT_VXLAN_OLD = 8472, /* of Linux before the assignment; flannel, Cilium, k3s keep it */
};

#define PL_PORTS_MAX 4
#define PL_PORTS(a, b, c, d)                                                                       \
	((uint64_t)(a) | (uint64_t)(b) << 16 | (uint64_t)(c) << 32 | (uint64_t)(d) << 48)

/* The assigned ports. */
#define PL_TUNNEL_PORTS PL_PORTS(PL_PORT_GTPU, PL_PORT_VXLAN, PL_PORT_VXLAN_GPE, PL_PORT_GENEVE)
/* Default ports of VXLAN. */
#define PL_VXLAN_PORTS  PL_PORTS(PL_PORT_VXLAN, PL_PORT_VXLAN, PL_PORT_VXLAN, PL_PORT_VXLAN_OLD)

/* Returns true when the word has the port. */
static inline int pl_ports_have(uint64_t ports, uint32_t port)
{
	const uint64_t ones = PL_PORTS(1, 1, 1, 1), v = ports ^ port * ones;

	return ((v - ones) & ~v & ones << 15) != 0;
}

/* Returns true for a port of a tunnel; vxlan_ports: a word of VXLAN's. */
static inline int pl_is_tunnel_port(uint64_t vxlan_ports, uint32_t port)
{
	return pl_ports_have(PL_TUNNEL_PORTS, port) || pl_ports_have(vxlan_ports, port);
}
