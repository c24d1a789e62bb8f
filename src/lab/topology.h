/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topology of a lab: nodes, links with their qualities, addresses; data only. Read from a YAML
 * file, or made by a shape with parameters:
 *
 *   line:N           hosts h1 and h2 with N switches between them (default 3)
 *   diamond          two hosts, two equal paths of one switch each between their switches
 *   leaf-spine:LxSxH L leaves, each linked to S spines, H hosts on each leaf (default 4x2x2)
 *   wan-ring:N       N switches in a circle, a host on each; 10 Mb/s and 10 ms between them
 *                    (default 6)
 *
 * Ports of a node count from 1 in the order of its links; an interface is named after the node at
 * its peer, with ".2" for a second link between the same two.
 *
 * Addresses follow from the order of the links alone, so that a link added at the end moves none.
 * The k-th link with a host (k from 0) has 10.X.Y.0/31 and fd00:1:0:k::/127, X = 1 + k / 256, Y = k
 * % 256: 0 is the switch's or router's end, 1 the host's; between two hosts the one listed first
 * has 0. The k-th other link has the same in 10.128.0.0/10 and fd00:2:0:k::/127. The k-th switch or
 * router (k from 1) has 10.255.K.k/32 and fd00:ff::k/128 on its loopback.
 */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/conf.h"
#include "base/diag.h"
#include "lab/marking.h"
#include "lab/story.h"

#define PL_LAB_NODES_MAX    512
#define PL_LAB_LINKS_MAX    4096
#define PL_LAB_RUN_MAX      256 /* in the list `run` */
#define PL_LAB_PORTS_MAX    128
#define PL_LAB_NAME_MAX     12 /* of a node: an interface name has room for it and ".99" */
#define PL_LAB_LAB_NAME_MAX 24 /* of a lab */
#define PL_LAB_COST_MAX     65535
#define PL_LAB_PARALLEL_MAX 99 /* links between the same two nodes */

enum pl_lab_kind {
	PL_LAB_HOST,
	PL_LAB_SWITCH, /* forwards by pathline switch */
	PL_LAB_ROUTER, /* forwards by the kernel */
};
extern const char *const pl_lab_kinds[]; /* ends with NULL */

/* Telemetry of the switches. */
enum pl_lab_telemetry { PL_LAB_INT, PL_LAB_NO_TELEMETRY };
/* Version of the INT in packets. */
enum pl_lab_int_version { PL_LAB_INT_V05, PL_LAB_INT_V10, PL_LAB_INT_V21 };
extern const char *const pl_lab_int_versions[]; /* ends with NULL */
/* Default instruction bits: id, ports, latency, queue, both times, utilization. */
#define PL_LAB_INT_FIELDS 0xfd00

/* Name of the host that receives the reports; the lab adds it. */
#define PL_LAB_COLLECTOR  "collector"

/* Quality of a link, the same in both directions. */
struct pl_lab_quality {
	uint64_t rate_bps;    /* bits per second; 0: as fast as the machine */
	uint64_t queue_bytes; /* limit of the queue in front of it, with a rate */
	uint64_t delay_ns;
	double loss; /* share of packets, 0 to 1 */
	/* Only a pair of kernel interfaces: faster, with rate and queue, but without delay, loss
	 * and counters, and unchangeable by impair. */
	bool bare;
};

struct pl_lab_end {
	unsigned int node;
	unsigned int port; /* from 1 */
	char interface[IF_NAMESIZE];
	uint8_t mac[6];
	struct pl_addr v4, v6; /* of /31 and /127 */
};

struct pl_lab_link {
	struct pl_lab_end end[2];
	struct pl_lab_quality quality;
	uint32_t cost;             /* added to paths that take it, at least 1 */
	bool host;                 /* an end is at a host */
	bool down;                 /* excluded from paths */
	unsigned int line, column; /* in the file; 0: of a shape */
};

struct pl_lab_node {
	char name[PL_LAB_NAME_MAX + 1];
	unsigned int kind;
	bool collector; /* the lab's collector: a host with links to switches only */
	unsigned int n_ports;
	unsigned int links[PL_LAB_PORTS_MAX]; /* link index by port - 1 */
	struct pl_addr v4, v6;                /* a host's first; a switch's or router's loopback */
	int64_t clock_offset_ns, clock_drift_ppb; /* of a switch's clock from true time */
	unsigned int line, column;                /* in the file; 0: of a shape */
};

/* A command that runs in a node while the lab is up, or until it finishes. */
struct pl_lab_command {
	unsigned int node;
	char *name;   /* its output goes to NAME.log; NULL: to NODE.log */
	char *text;   /* shell command */
	char *ready;  /* text that it prints when others can use it; NULL: none */
	char *check;  /* shell command: exit code 0 if the results are right; NULL: none */
	bool account; /* prints its account at SIGUSR1 and at its end */
};

struct pl_lab_topology {
	char name[PL_LAB_LAB_NAME_MAX + 1];
	struct pl_lab_node *nodes;
	struct pl_lab_link *links;
	struct pl_lab_command *commands; /* in starting order; owned */
	unsigned int n_nodes, n_links, n_commands;
	unsigned int telemetry;   /* enum pl_lab_telemetry */
	unsigned int int_version; /* enum pl_lab_int_version */
	uint16_t int_fields;      /* instruction bits */
	struct pl_lab_marking marking;
	struct pl_lab_story story;
	/* Text of a file that makes a loaded topology again, as a pipe cannot be read twice.
	 * Owned. */
	char *text;
};

/* Returns the text of a published network's file, by its name; NULL: none. */
const char *pl_lab_published(const char *name);

/* Checks a node's or command's name: short, and usable for files and interfaces. -EINVAL with
 * diag. */
int pl_lab_check_name(const char *value, struct pl_diag *diag);
/* Checks the name of a lab. -EINVAL with diag. */
int pl_lab_check_lab_name(const char *value, struct pl_diag *diag);

/* Keys of the file, for help and manual. */
extern const struct pl_conf_row pl_lab_rows[];

/*
 * Loads a shape as above, a published network by its name, or a file: `what` has a "/", ends in
 * ".yaml" or ".yml", or is "-". -EINVAL with diag (file, line and column where known), -ENOMEM,
 * errors of reading. The structure is to be released with _done also after a failure.
 */
int pl_lab_topology_load(struct pl_lab_topology *ret, const char *what, struct pl_diag *diag);
/* Parses the text of a file; `name` is for diag->file, and names the lab unless the text does. */
int pl_lab_topology_parse(struct pl_lab_topology *ret, const char *name, const char *text,
	size_t len, struct pl_diag *diag);
void pl_lab_topology_done(struct pl_lab_topology *t);
/* Adds the node PL_LAB_COLLECTOR and a link to each switch, behind all others, when there are
 * switches with telemetry. -EINVAL with diag: the name is taken, or there is no room. */
int pl_lab_topology_add_collector(struct pl_lab_topology *t, struct pl_diag *diag);

/* Return the index by name, or -ENOENT with diag, which suggests the nearest name. A link is "A-B",
 * in either order, or "A-B.2" for the second parallel one; *ret_end is the end named first. */
int pl_lab_find_node(const struct pl_lab_topology *t, const char *name, struct pl_diag *diag);
/* Returns the command of that name, or NULL. */
const struct pl_lab_command *pl_lab_find_command(const struct pl_lab_topology *t, const char *name);
int pl_lab_find_link(const struct pl_lab_topology *t, const char *name, unsigned int *ret_end,
	struct pl_diag *diag);
/* Returns the link of "A-B" (both directions) or "A>B" (from A to B), with bits of the sending
 * ends. Refuses a bare link: the lab cannot change it. -EINVAL, -ENOENT with diag. */
int pl_lab_find_directions(const struct pl_lab_topology *t, const char *name,
	unsigned int *ret_ends, struct pl_diag *diag);
/* Names a link as pl_lab_find_link takes it, "h1-leaf1". */
#define PL_LAB_LINK_TEXT_MAX (2 * PL_LAB_NAME_MAX + 8)
void pl_lab_link_text(const struct pl_lab_topology *t, const struct pl_lab_link *link,
	char ret[PL_LAB_LINK_TEXT_MAX]);

/* ---- shapes.c, for building ---- */

/* Append a node or link. Return its index; -E2BIG, -ENOMEM. kind: enum pl_lab_kind. */
int pl_lab_add_node(struct pl_lab_topology *t, const char *name, unsigned int kind);
int pl_lab_add_link(struct pl_lab_topology *t, unsigned int a, unsigned int b,
	const struct pl_lab_quality *quality);
/* Adds the nodes and links of a shape. -EINVAL with diag, -ENOMEM. */
int pl_lab_shape(struct pl_lab_topology *t, const char *text, const struct pl_lab_quality *quality,
	struct pl_diag *diag);

/* ---- addresses.c ---- */

/* Sets ports, interface names and addresses. -EINVAL with diag when a limit is exceeded, by
 * *ret_link. */
int pl_lab_number(struct pl_lab_topology *t, unsigned int *ret_link, struct pl_diag *diag);

/* ---- routes.c ---- */

/*
 * Gets each node's distance to node `to`: the lowest sum of costs, UINT32_MAX without a path; hosts
 * do not forward. ret_distance has n_nodes entries.
 */
void pl_lab_distances(const struct pl_lab_topology *t, unsigned int to, uint32_t *ret_distance);
/* Gets the ports of `from` on shortest paths, in order; room for PL_LAB_PORTS_MAX. Returns their
 * number. */
unsigned int pl_lab_next_hops(const struct pl_lab_topology *t, const uint32_t *distance,
	unsigned int from, unsigned int *ret_ports);
/* Returns -EINVAL with diag when a host and another node have no path between them; -ENOMEM. */
int pl_lab_check_connected(const struct pl_lab_topology *t, struct pl_diag *diag);
