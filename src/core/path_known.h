/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Known parts of a report's path, in so few bits that a flow can keep them and two reports can be
 * compared by the parts that both know. A port id may be missing (all ones) in one report and
 * present in the next: then their path ids differ although their paths may not. */
#pragma once

#include <stdint.h>

#include "record/record.h"

#include "core/detect_table.h"

/* Number of hops with separate marks; later hops share them. */
#define PL_CORE_KNOWN_HOPS 16

struct pl_core_known {
	/* Four bits for each hop: two for its ingress port and two for its egress port, 0 where it
	 * is missing, or else one of three values by the port's number. */
	uint64_t ports;
	uint32_t nodes; /* hash of the nodes in order, and of their number */
	uint32_t hops;  /* number of nodes */
};

#define PL_CORE_KNOWN_FIELDS UINT64_C(0x5555555555555555)

PL_CORE_INLINE uint64_t pl_core_port_mark(uint32_t port)
{
	return 1 + (port * 0x9e3779b1u >> 16) % 3;
}

/* Merges the marks of two hops that share a place: missing if either is. */
PL_CORE_INLINE uint64_t pl_core_mark_both(uint64_t a, uint64_t b)
{
	return a == 0 || b == 0 ? 0 : 1 + (a + b) % 3;
}

/* Adds hop i, in order from 0; k is zero before the first. */
PL_CORE_INLINE void pl_core_know(struct pl_core_known *k, uint32_t i, uint64_t node,
	uint32_t ingress_port, uint32_t egress_port, uint32_t present)
{
	const uint32_t at = i % PL_CORE_KNOWN_HOPS * 4;
	uint64_t in = 0, out = 0;

	if (present & PL_HOP_HAS_ingress_port)
		in = pl_core_port_mark(ingress_port);
	if (present & PL_HOP_HAS_egress_port)
		out = pl_core_port_mark(egress_port);
	if (i >= PL_CORE_KNOWN_HOPS) {
		in = pl_core_mark_both(in, k->ports >> at & 3);
		out = pl_core_mark_both(out, k->ports >> at >> 2 & 3);
		k->ports &= ~(UINT64_C(15) << at);
	}
	k->ports |= (in | out << 2) << at;
	k->nodes = (uint32_t)((node + k->nodes * UINT64_C(0xe7037ed1a0b428db) + 1) *
				      UINT64_C(0x9e3779b97f4a7c15) >>
			      32);
	k->hops = i + 1;
}

/* Returns one bit for each known port. */
PL_CORE_INLINE uint64_t pl_core_known_ports(uint64_t ports)
{
	return (ports | ports >> 1) & PL_CORE_KNOWN_FIELDS;
}

/* True when two reports with different path ids may have taken the same path: their nodes are
 * equal, and no port that both know differs. If both know the same ports, their ids already show
 * whether the paths differ. A changed port is missed in one of three cases, and only between
 * reports with missing ports; the next complete report detects it. */
PL_CORE_INLINE int pl_core_known_agree(const struct pl_core_known *a, const struct pl_core_known *b)
{
	const uint64_t in_a = pl_core_known_ports(a->ports), in_b = pl_core_known_ports(b->ports);
	const uint64_t differ = pl_core_known_ports(a->ports ^ b->ports);

	if (a->nodes != b->nodes)
		return 0;
	if (in_a == in_b && (a->hops <= PL_CORE_KNOWN_HOPS || in_a == PL_CORE_KNOWN_FIELDS))
		return 0;
	return (differ & in_a & in_b) == 0;
}

/* True when b knows all ports that a knows, and more. */
PL_CORE_INLINE int pl_core_known_more(const struct pl_core_known *a, const struct pl_core_known *b)
{
	const uint64_t in_a = pl_core_known_ports(a->ports), in_b = pl_core_known_ports(b->ports);

	return in_a != in_b && (in_a & ~in_b) == 0;
}
