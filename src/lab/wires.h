/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of a lab: between the interfaces of two nodes stands, in each direction, a queue with a
 * rate (dataplane/queues.h) and a link with delay and faults (dataplane/link.h). Frames are read and
 * written by packet sockets in the namespace of the wires; one thread, which the owner calls when
 * `fd` is readable or a time has come.
 */
#pragma once

#include "base/buf.h"
#include "base/stats.h"
#include "dataplane/link.h"
#include "dataplane/queues.h"
#include "lab/topology.h"
#include "record/record.h"

struct pl_lab_wire_books {
#define PL_STAT PL_STAT_MEMBER
#include "lab/wire_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_lab_wire_stats;

/* What a direction of a link is like. */
struct pl_lab_impairments {
	struct pl_dp_port_cfg port;
	struct pl_dp_link_cfg link;
};

struct pl_lab_wires;

/* In the namespace of the wires, whose interfaces are there. The topology outlives it. Negative
 * errno with diag. */
int pl_lab_wires_new(struct pl_lab_wires **ret, const struct pl_lab_topology *t, uint64_t seed,
	struct pl_diag *diag);
void pl_lab_wires_free(struct pl_lab_wires *w);
/* Of each packet that is dropped in a queue or lost on a link from now on, as in the truth of a
 * simulation (dataplane/sim.h): nodes are numbered from 1. */
void pl_lab_wires_tell(
	struct pl_lab_wires *w, void (*event)(void *arg, const struct pl_event *event), void *arg);
int pl_lab_wires_fd(const struct pl_lab_wires *w);
/* Does what there is to do; when it has to be called next, by the clock that never steps. */
uint64_t pl_lab_wires_run(struct pl_lab_wires *w, uint64_t now_ns);

/*
 * Changes a link: "A-B" both directions, "A>B" that from A to B, by words KEY=VALUE (impair.c). All
 * or nothing. -EINVAL, -ENOENT with diag.
 */
int pl_lab_wires_impair(struct pl_lab_wires *w, const char *link, const char *const *words,
	unsigned int n, struct pl_diag *diag);
/* The same link, as the topology has it. */
int pl_lab_wires_restore(struct pl_lab_wires *w, const char *link, struct pl_diag *diag);
/* The topology, with the same nodes and links, takes the place of the one before, and what is not as it
 * says becomes so: also what was impaired. A line for each such link (change.h). Whether links can be
 * so is for the caller to have checked. Negative errno with diag. */
int pl_lab_wires_become(struct pl_lab_wires *w, const struct pl_lab_topology *t, struct pl_buf *out,
	struct pl_diag *diag);
/* A JSON object in a line for each direction of each link: what is set, and all accounts. */
struct pl_lab_truth_books;
void pl_lab_wires_truth(struct pl_lab_wires *w, uint64_t now_ns, struct pl_lab_truth_books *ret);

/* ---- impair.c ---- */

void pl_lab_impairments_of(const struct pl_lab_quality *q, struct pl_lab_impairments *ret);
/* One KEY=VALUE over what is there. -EINVAL with diag, which has the nearest key. */
int pl_lab_impair_word(struct pl_lab_impairments *i, const char *word, struct pl_diag *diag);
/* Whether every key has the same value. */
bool pl_lab_impairments_same(
	const struct pl_lab_impairments *a, const struct pl_lab_impairments *b);
/* Whether a link and its port would take them: tried on ones that nothing goes through. -EINVAL with
 * diag, -ENOMEM. */
int pl_lab_impairments_check(const struct pl_lab_impairments *i, struct pl_diag *diag);
