/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of pathline switch (docs/guide/switch.md) for a switch of a lab's network: its ports,
 * routes by all shortest paths, INT, reports. A lab that is up and a simulation have the same
 * tables; what differs is said at `real`.
 *
 * Packets get INT where they come in from what is no switch, and lose it where they go out to it.
 */
#pragma once

#include "base/buf.h"
#include "lab/topology.h"

/* Between switches there is room for INT in front of a host's 1500 bytes. */
#define PL_LAB_SWITCH_MTU 2000

struct pl_lab_program {
	const struct pl_lab_topology *t;
	const uint32_t *distances; /* of pl_lab_distances, n_nodes of each node in turn */
	/* Of a lab that is up: ports are interfaces and have the rates and queues of their links,
	 * packets are routed, reports go by the link with the lab's collector; without that there
	 * is no telemetry. In a simulation
	 * ports are set by it, packets forwarded, and the port behind the last has the reports. */
	bool real;
};

/* Appends the text. -ENOSPC: more sets of equal paths than a switch has groups; -ENOMEM. */
int pl_lab_program_text(const struct pl_lab_program *p, unsigned int node, struct pl_buf *out);
/* Whether a port leads out of the switches. */
bool pl_lab_program_is_edge(const struct pl_lab_program *p, unsigned int node, unsigned int port);
