/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps that build a lab: made from its topology, printed as shell commands (lab up --dry-run),
 * carried out by build.c.
 */
#pragma once

#include "base/buf.h"
#include "lab/topology.h"

/* Bytes of a namespace's name, "LAB-NODE", with the zero byte. */
#define PL_LAB_NETNS_MAX (PL_LAB_LAB_NAME_MAX + 1 + PL_LAB_NAME_MAX + 1)
#define PL_LAB_NETNSES   (PL_LAB_NODES_MAX + 1)

enum pl_lab_step_kind {
	PL_LAB_NETNS,     /* makes the node's namespace, its loopback up */
	PL_LAB_SYSCTL,    /* sets `sysctl` of the node to `value` */
	PL_LAB_VETH,      /* makes a bare link, with an end in each node */
	PL_LAB_WIRE,      /* makes this end of a link, with its peer among the wires */
	PL_LAB_OFFLOAD,   /* disables offloads at this end of the link */
	PL_LAB_ADDRESS,   /* adds addr/bits to this end, or to the loopback */
	PL_LAB_UP,        /* sets this end up */
	PL_LAB_NEIGHBOUR, /* adds the peer of this end, `addr`, as neighbour */
	PL_LAB_ROUTE,     /* adds a route to addr/bits by ports from `first_port` on */
	PL_LAB_RATE,      /* sets the rate of this end */
	PL_LAB_MTU,       /* sets the MTU of this end and its peer to `bits` */
	PL_LAB_FILE,      /* writes `text` to `file` in the lab's folder */
	PL_LAB_RUN,       /* runs `command` in the node */
};

struct pl_lab_step {
	enum pl_lab_step_kind kind;
	unsigned int node, link, side;
	bool loopback; /* ADDRESS: on the node's loopback */
	const char *sysctl, *value;
	struct pl_addr addr;
	unsigned int bits;                /* 32 or 128 for a whole address */
	unsigned int first_port, n_ports; /* in the plan's `ports` */
	const char *command;              /* the topology's, or the plan's */
	const struct pl_lab_command *of; /* RUN: the topology's; NULL: a program of the lab's own */
	const char *file, *text;         /* the plan's */
	bool serves; /* RUN: the lab is up when this program listens at NODE.sock */
};

struct pl_lab_plan {
	const struct pl_lab_topology *t; /* borrowed */
	bool wires;                      /* some link is not bare */
	struct pl_lab_step *steps;
	size_t n, room;
	unsigned int *ports;
	size_t n_ports, ports_room;
	char **texts; /* texts of steps, owned */
	size_t n_texts;
	/* While it is made: memory was short; a step without room is written to `lost`. */
	bool failed;
	struct pl_lab_step lost;
};

/* Makes the plan; the topology must outlive it. -ENOMEM, or -ENOSPC (too many sets of equal paths),
 * with diag; -EOPNOTSUPP with diag: a bare link with delay or loss. */
int pl_lab_plan_make(
	struct pl_lab_plan *ret, const struct pl_lab_topology *t, struct pl_diag *diag);
void pl_lab_plan_done(struct pl_lab_plan *p);

/* Returns the name of a node's namespace; "LAB--wires" for number n_nodes, the wires. */
void pl_lab_netns_name(
	const struct pl_lab_topology *t, unsigned int node, char ret[PL_LAB_NETNS_MAX]);
/* Prints a step as a shell command, without a line end, for users and errors. The command of WIRE
 * does not disable the peer's offloads, which build.c does. */
void pl_lab_step_text(const struct pl_lab_plan *p, const struct pl_lab_step *s, struct pl_buf *out);
/* Names this end's peer interface among the wires. */
void pl_lab_wire_name(unsigned int link, unsigned int side, char ret[IF_NAMESIZE]);
/* Prints all steps, a line each. */
void pl_lab_plan_text(const struct pl_lab_plan *p, struct pl_buf *out);
/* Prints the configuration of a lab's collector, which receives reports at the URI `source` and
 * serves its page at `listen`. */
void pl_lab_collector_text(const char *source, const char *listen, struct pl_buf *out);
