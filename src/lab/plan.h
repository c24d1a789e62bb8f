/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has to be done for a lab, step by step: made from its topology, printed as commands of the
 * shell that do the same (lab up --dry-run), carried out by build.c.
 */
#pragma once

#include "base/buf.h"
#include "lab/topology.h"

/* A namespace is called "LAB-NODE". */
#define PL_LAB_NETNS_MAX (PL_LAB_LAB_NAME_MAX + 1 + PL_LAB_NAME_MAX + 1)
#define PL_LAB_NETNSES   (PL_LAB_NODES_MAX + 1)

enum pl_lab_step_kind {
	PL_LAB_NETNS,     /* a namespace for the node, its loopback up */
	PL_LAB_SYSCTL,    /* `sysctl` of the node is `value` */
	PL_LAB_VETH,      /* a bare link, with an end in each node */
	PL_LAB_WIRE,      /* this end of a link, whose other interface is among the wires */
	PL_LAB_OFFLOAD,   /* frames as on a wire, at this end of the link */
	PL_LAB_ADDRESS,   /* `addr` of `bits` on this end, or on the loopback */
	PL_LAB_UP,        /* this end */
	PL_LAB_NEIGHBOUR, /* the peer of this end, by its `addr` */
	PL_LAB_ROUTE,     /* to `addr` of `bits` by the ports from `first_port` on */
	PL_LAB_RATE,      /* of this end */
	PL_LAB_MTU,       /* of this end, and of its interface among the wires: `bits` */
	PL_LAB_FILE,      /* `file` in the lab's folder has `text` */
	PL_LAB_RUN,       /* `command` in the node */
};

struct pl_lab_step {
	enum pl_lab_step_kind kind;
	unsigned int node, link, side;
	bool loopback; /* ADDRESS: of the node */
	const char *sysctl, *value;
	struct pl_addr addr;
	unsigned int bits;                /* 32 or 128 for a whole address */
	unsigned int first_port, n_ports; /* in `ports` of the plan */
	const char *command;              /* the topology's, or the plan's */
	const struct pl_lab_command *of; /* RUN: the topology's; NULL: a program of the lab's own */
	const char *file, *text;         /* the plan's */
	bool serves; /* RUN: the lab is up when this program listens at NODE.sock */
};

struct pl_lab_plan {
	const struct pl_lab_topology *t; /* borrowed */
	bool wires;                      /* there are links that are not bare */
	struct pl_lab_step *steps;
	size_t n, room;
	unsigned int *ports;
	size_t n_ports, ports_room;
	char **texts; /* what steps have of the plan's own */
	size_t n_texts;
};

/* The topology outlives the plan. -ENOMEM; -EOPNOTSUPP with diag for a link that this build cannot
 * make as it is wanted. */
int pl_lab_plan_make(
	struct pl_lab_plan *ret, const struct pl_lab_topology *t, struct pl_diag *diag);
void pl_lab_plan_done(struct pl_lab_plan *p);

/* Of a node; of the wires, "LAB--wires", for the number behind the last node. */
void pl_lab_netns_name(
	const struct pl_lab_topology *t, unsigned int node, char ret[PL_LAB_NETNS_MAX]);
/* A step as a command of the shell, without a line end: what to try by hand, and what an error
 * names. */
void pl_lab_step_text(const struct pl_lab_plan *p, const struct pl_lab_step *s, struct pl_buf *out);
/* The interface among the wires behind which this end of a link is. */
void pl_lab_wire_name(unsigned int link, unsigned int side, char ret[IF_NAMESIZE]);
/* All of them, a line each. */
void pl_lab_plan_text(const struct pl_lab_plan *p, struct pl_buf *out);
/* The file of a lab's collector, which takes reports at the URI `source` and has its page at `listen`. */
void pl_lab_collector_text(const char *source, const char *listen, struct pl_buf *out);
