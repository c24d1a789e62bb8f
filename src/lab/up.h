/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brings labs up and down. A running lab is a process, its keeper: PID 1 of the PID namespace in
 * which the nodes' commands run, so that none of them outlives it, however it ends. It holds the
 * lock of the lab's folder (state.h). For root the nodes' namespaces have names in /run/netns, as
 * with `ip netns`; without root they are within a user namespace, with a /run of its own.
 */
#pragma once

#include "lab/state.h"

/*
 * Gets the wanted tier (of pl_lab_tiers), or for NULL the best that this machine and user allow.
 * -EPERM with diag when the wanted one is not possible: diag says why and how to allow it, also
 * when the best is a simulation.
 */
int pl_lab_choose_tier(enum pl_lab_tier *ret, const char *wanted, struct pl_diag *diag);

/*
 * Brings up a lab of a topology, as pl_lab_topology_load made it, with its collector added. Returns
 * once it is up and its commands are started; after a failure it is down again. SIGINT or SIGTERM
 * cancel: `interrupted` is called, then the lab is taken down: -EINTR. -EEXIST, -EBUSY: a name is
 * taken; -EPERM: another user's folder, or no right to namespaces; -EINVAL: the file; -EOPNOTSUPP:
 * this build or kernel lacks something that the file needs. All with diag.
 */
int pl_lab_up(const struct pl_lab_topology *t, enum pl_lab_tier tier, void (*interrupted)(void),
	struct pl_diag *diag);

/* Ends a lab and its commands, and removes its namespaces and folder. -ENOENT with diag: not up. */
int pl_lab_down(const char *what, char ret_name[PL_LAB_LAB_NAME_MAX + 1], struct pl_diag *diag);

/* ---- keeper.c ---- */

struct pl_lab_verdict {
	int error; /* 0: the lab is up */
	struct pl_diag diag;
};

struct pl_lab_keeper {
	const struct pl_lab_topology *t;
	enum pl_lab_tier tier;
	struct pl_lab_state *state;
	int go; /* readable once the lock file has the keeper's PID; closed when the starter ends */
	int verdict; /* gets a struct pl_lab_verdict */
	void (*interrupted)(void);
};

/* Runs the keeper in the child of pl_lab_up. Returns the exit code. */
int pl_lab_keep(struct pl_lab_keeper *k);

/* ---- simulated.c ---- */

/* Runs a lab without namespaces, with a network in simulated time. */
int pl_lab_keep_simulated(struct pl_lab_keeper *k);

/* ---- enter.c ---- */

/* Runs a command in a node of a running lab, within its PID namespace. Returns its exit code, 128 +
 * the signal that ended it, 127 when it is not found, or negative errno with diag. argv ends with
 * NULL. Commands of a simulated lab run at its collector only, on this machine: else
 * -EOPNOTSUPP. */
int pl_lab_exec(
	const struct pl_lab_found *f, unsigned int node, char *const *argv, struct pl_diag *diag);
/* Runs a function in a node, in a child of this process. Returns its exit code like pl_lab_exec, or
 * negative errno, with diag unless no process could be started. */
int pl_lab_call(const struct pl_lab_found *f, unsigned int node, int (*what)(void *arg), void *arg,
	struct pl_diag *diag);
