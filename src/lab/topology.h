/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network of a lab: nodes, links with what they are to be like, addresses. Pure: it makes
 * nothing. Read from a YAML file, or made by a shape with parameters:
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
#define PL_LAB_RUN_MAX      256 /* commands in the list of them all */
#define PL_LAB_PORTS_MAX    128
#define PL_LAB_NAME_MAX     12 /* of a node: an interface has room for it and ".99" */
#define PL_LAB_LAB_NAME_MAX 24 /* of a lab */
#define PL_LAB_COST_MAX     65535
#define PL_LAB_PARALLEL_MAX 99 /* links between the same two nodes */

enum pl_lab_kind {
	PL_LAB_HOST,
	PL_LAB_SWITCH, /* forwards by pathline switch */
	PL_LAB_ROUTER, /* forwards by the kernel */
};
extern const char *const pl_lab_kinds[]; /* NULL behind the last */

/* What switches tell of packets. */
enum pl_lab_telemetry { PL_LAB_INT, PL_LAB_NO_TELEMETRY };
/* Of INT that they put into packets. */
enum pl_lab_int_version { PL_LAB_INT_V05, PL_LAB_INT_V10, PL_LAB_INT_V21 };
extern const char *const pl_lab_int_versions[]; /* NULL behind the last */
/* Instruction bits: id, ports, latency, queue, both times, utilization. */
#define PL_LAB_INT_FIELDS 0xfd00

/* The host that takes their reports, which the lab adds by itself. */
#define PL_LAB_COLLECTOR  "collector"

/* What a link does to packets, the same in both directions. */
struct pl_lab_quality {
	uint64_t rate_bps;    /* bits per second; 0: as fast as the machine */
	uint64_t queue_bytes; /* of the queue in front of it, with a rate */
	uint64_t delay_ns;
	double loss; /* share of packets, 0 to 1 */
	/* The kernel's interfaces and nothing in between: faster, with a rate and a queue, but
	 * without delay, loss and accounts, and not to be changed. */
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
	uint32_t cost;             /* of a path that takes it, 1 and more */
	bool host;                 /* one of its ends is a host's */
	bool down;                 /* no path takes it */
	unsigned int line, column; /* in the file; 0: of a shape */
};

struct pl_lab_node {
	char name[PL_LAB_NAME_MAX + 1];
	unsigned int kind;
	bool collector; /* the lab's own: a host whose links are with switches only */
	unsigned int n_ports;
	unsigned int links[PL_LAB_PORTS_MAX]; /* of ports, from 0: port 1 first */
	struct pl_addr v4, v6;     /* a host's first; of a switch or router that of its loopback */
	unsigned int line, column; /* in the file; 0: of a shape */
};

/* What runs in a node as long as the lab is up, or until it ends by itself. */
struct pl_lab_command {
	unsigned int node;
	char *name;  /* what it prints goes to NAME.log; NULL: to NODE.log */
	char *text;  /* for the shell */
	char *ready; /* text that it prints when others can use it; NULL: it has no such moment */
	char *check; /* for the shell: exit code 0 when what it did is right; NULL: nothing to check */
	bool account; /* prints its account when it gets SIGUSR1, and in the end */
};

struct pl_lab_topology {
	char name[PL_LAB_LAB_NAME_MAX + 1];
	struct pl_lab_node *nodes;
	struct pl_lab_link *links;
	struct pl_lab_command *commands; /* in the order in which they start; owned */
	unsigned int n_nodes, n_links, n_commands;
	unsigned int telemetry;   /* of enum pl_lab_telemetry */
	unsigned int int_version; /* of enum pl_lab_int_version */
	uint16_t int_fields;      /* instruction bits */
	struct pl_lab_marking marking;
	struct pl_lab_story story;
	/* Of a loaded one, as a file that makes it again: a pipe cannot be read twice. Owned. */
	char *text;
};

/* The file of a published network, by its name; NULL: there is none. */
const char *pl_lab_published(const char *name);

/* Of a node or command: it is short, and may be that of a file and of an interface. */
int pl_lab_check_name(const char *value, struct pl_diag *diag);

/* Keys of the file, for help and manual. */
extern const struct pl_conf_row pl_lab_rows[];

/*
 * what: a shape as above, the name of a published network, or the path of a file when it has a "/" or
 * ends in ".yaml" or ".yml", or is "-". -EINVAL with diag (file, line and column where there are any), -ENOMEM, errors of reading.
 * The structure is to be freed with _done also after a failure.
 */
int pl_lab_topology_load(struct pl_lab_topology *ret, const char *what, struct pl_diag *diag);
/* The text of a file; name is for diag->file, and names the lab unless the text does. */
int pl_lab_topology_parse(struct pl_lab_topology *ret, const char *name, const char *text,
	size_t len, struct pl_diag *diag);
void pl_lab_topology_done(struct pl_lab_topology *t);
/* For a lab that comes up: with switches that have telemetry, the node PL_LAB_COLLECTOR and a link
 * of it with each of them, behind all others. -EINVAL with diag: the name is taken, or there are
 * more switches than it can have links. */
int pl_lab_topology_add_collector(struct pl_lab_topology *t, struct pl_diag *diag);

/* By name; -ENOENT with diag, which has the nearest name. A link is "A-B", in either order, or
 * "A-B.2" for the second of parallel ones; ret_end is the end that was named first. */
int pl_lab_find_node(const struct pl_lab_topology *t, const char *name, struct pl_diag *diag);
/* By its name; NULL: there is none. */
const struct pl_lab_command *pl_lab_find_command(const struct pl_lab_topology *t, const char *name);
int pl_lab_find_link(const struct pl_lab_topology *t, const char *name, unsigned int *ret_end,
	struct pl_diag *diag);
/* Of "A-B" both directions, of "A>B" that from A to B: the link, and bits of the ends that send. A bare
 * link is refused: nobody stands in between. -EINVAL, -ENOENT with diag. */
int pl_lab_find_directions(const struct pl_lab_topology *t, const char *name,
	unsigned int *ret_ends, struct pl_diag *diag);
/* "h1-leaf1", as the function above reads it. */
#define PL_LAB_LINK_TEXT_MAX (2 * PL_LAB_NAME_MAX + 8)
void pl_lab_link_text(const struct pl_lab_topology *t, const struct pl_lab_link *link,
	char ret[PL_LAB_LINK_TEXT_MAX]);

/* ---- shapes.c, for building ---- */

/* Appends; the index, or negative errno. Kind is of enum pl_lab_kind. */
int pl_lab_add_node(struct pl_lab_topology *t, const char *name, unsigned int kind);
int pl_lab_add_link(struct pl_lab_topology *t, unsigned int a, unsigned int b,
	const struct pl_lab_quality *quality);
/* Nodes and links of a shape. -EINVAL with diag, -ENOMEM. */
int pl_lab_shape(struct pl_lab_topology *t, const char *text, const struct pl_lab_quality *quality,
	struct pl_diag *diag);

/* ---- addresses.c ---- */

/* Ports, names of interfaces, addresses. -EINVAL with diag when a limit is passed; the link it was
 * is *ret_link. */
int pl_lab_number(struct pl_lab_topology *t, unsigned int *ret_link, struct pl_diag *diag);

/* ---- routes.c ---- */

/*
 * Ports of each node towards node `to`, by the lowest sum of costs; hosts forward nothing. ret_distance
 * has room for every node: the costs to go, UINT32_MAX where there is no way.
 */
void pl_lab_distances(const struct pl_lab_topology *t, unsigned int to, uint32_t *ret_distance);
/* Ports of `from` on shortest paths, in order; their number. Room for PL_LAB_PORTS_MAX. */
unsigned int pl_lab_next_hops(const struct pl_lab_topology *t, const uint32_t *distance,
	unsigned int from, unsigned int *ret_ports);
/* -EINVAL with diag that names two hosts without a path between them. */
int pl_lab_check_connected(const struct pl_lab_topology *t, struct pl_diag *diag);
