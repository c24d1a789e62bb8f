/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration of `pathline switch` (docs/guide/switch.md) for a switch of a lab's network: ports,
 * routes by all shortest paths, INT, reports. A running lab and a simulation have the same tables,
 * but for the differences at `real`.
 *
 * Packets get INT where they enter from a node that is no switch, and lose it where they leave to
 * one.
 */
#pragma once

#include "base/buf.h"
#include "lab/topology.h"

/* The MTU between switches leaves room for INT beside a host's 1500 bytes. */
#define PL_LAB_SWITCH_MTU 2000

struct pl_lab_program {
	const struct pl_lab_topology *t;
	const uint32_t *distances; /* from pl_lab_distances, n_nodes for each destination in turn */
	/* true: a running lab. Ports are interfaces with the rates and queues of their links,
	 * packets are routed, reports go by the link to the lab's collector; without one there is
	 * no telemetry. false: a simulation. It sets the ports' rates, packets are forwarded, and
	 * the port behind the last gets the reports. */
	bool real;
};

/* Appends the configuration. -ENOSPC: more sets of equal paths than a switch has groups;
 * -ENOMEM. */
int pl_lab_program_text(const struct pl_lab_program *p, unsigned int node, struct pl_buf *out);
