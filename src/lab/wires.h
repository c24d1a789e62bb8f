/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of a lab: in each direction a queue with a rate (dataplane/queues.h) and a link with
 * delay and faults (dataplane/link.h) between two nodes' interfaces. Packet sockets in the wires'
 * namespace read and write frames. Single-threaded: the owner calls pl_lab_wires_run when the
 * descriptor is readable or the time has come.
 */
#pragma once

#include "base/buf.h"
#include "dataplane/link.h"
#include "dataplane/queues.h"
#include "lab/topology.h"
#include "record/record.h"

/* Settings of one direction of a link. */
struct pl_lab_impairments {
	struct pl_dp_port_cfg port;
	struct pl_dp_link_cfg link;
};

struct pl_lab_wires;

/* Opens the wires, in their namespace, whose interfaces exist already. The topology must outlive
 * them. Negative errno with diag. */
int pl_lab_wires_new(struct pl_lab_wires **ret, const struct pl_lab_topology *t, uint64_t seed,
	struct pl_diag *diag);
void pl_lab_wires_free(struct pl_lab_wires *w);
/* Calls event() for each packet dropped by a queue or lost on a link from now on, as in the truth
 * of a simulation (dataplane/sim.h); nodes are numbered from 1. */
void pl_lab_wires_tell(
	struct pl_lab_wires *w, void (*event)(void *arg, const struct pl_event *event), void *arg);
int pl_lab_wires_fd(const struct pl_lab_wires *w);
/* Moves frames. Returns when it is to be called next, by the monotonic clock. */
uint64_t pl_lab_wires_run(struct pl_lab_wires *w, uint64_t now_ns);

/*
 * Changes a link: "A-B" both directions, "A>B" that from A to B, by words KEY=VALUE (impair.c). All
 * or nothing. -EINVAL, -ENOENT with diag.
 */
int pl_lab_wires_impair(struct pl_lab_wires *w, const char *link, const char *const *words,
	unsigned int n, struct pl_diag *diag);
/* Resets a link, named as above, to the topology's values. Negative errno with diag. */
int pl_lab_wires_restore(struct pl_lab_wires *w, const char *link, struct pl_diag *diag);
/* Switches to a topology with the same nodes and links, and sets all links that differ from it,
 * also impaired ones. Adds a line to `out` for each (change.h). The caller has checked that the
 * values are possible. Negative errno with diag. */
int pl_lab_wires_become(struct pl_lab_wires *w, const struct pl_lab_topology *t, struct pl_buf *out,
	struct pl_diag *diag);
/* Appends each direction's settings and counters (truth_account.h). */
struct pl_lab_truth_account;
void pl_lab_wires_truth(struct pl_lab_wires *w, uint64_t now_ns, struct pl_lab_truth_account *ret);

/* ---- impair.c ---- */

void pl_lab_impairments_of(const struct pl_lab_quality *q, struct pl_lab_impairments *ret);
/* Changes one setting by KEY=VALUE. -EINVAL with diag, which suggests the nearest key. */
int pl_lab_impair_word(struct pl_lab_impairments *i, const char *word, struct pl_diag *diag);
/* Returns true when all keys have the same values. */
bool pl_lab_impairments_same(
	const struct pl_lab_impairments *a, const struct pl_lab_impairments *b);
/* Checks the settings on an unused link and port. -EINVAL with diag, -ENOMEM. */
int pl_lab_impairments_check(const struct pl_lab_impairments *i, struct pl_diag *diag);
