/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Labs up and down. A lab that is up is a process, its keeper: the first of a PID namespace, in
 * which the commands of nodes run, so that none of them outlives it, however it ends. It holds the
 * lock of the lab's folder (state.h). For root the nodes' namespaces have names in /run/netns as
 * those of ip netns; without root they are within a user namespace, with a /run of its own.
 */
#pragma once

#include "lab/state.h"

/*
 * The best tier that this machine and user have, or the one that is wanted (of pl_lab_tiers; NULL:
 * the best). One that is wanted and cannot be had: -EPERM with diag, which says what is missing and
 * what to do; diag says it, too, when the best is a simulation.
 */
int pl_lab_choose_tier(enum pl_lab_tier *ret, const char *wanted, struct pl_diag *diag);

/*
 * t: as pl_lab_topology_load made it. Returns once the lab is up and its commands are started;
 * after a failure nothing is left of it. SIGINT and SIGTERM have it taken down again, for which
 * `interrupted` is called before that is waited for: -EINTR with diag. -EEXIST, -EBUSY: a name is taken; -EPERM: no tier; -EINVAL:
 * the file; -EOPNOTSUPP: this build or kernel has not got what the file wants. With diag.
 */
int pl_lab_up(const struct pl_lab_topology *t, enum pl_lab_tier tier, void (*interrupted)(void),
	struct pl_diag *diag);

/* Ends the lab, its commands, and removes what it had. -ENOENT with diag when it is not up. */
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
	int go; /* readable once the lock has the keeper's number, and closed by its starter's end */
	int verdict; /* a struct pl_lab_verdict goes there */
	void (*interrupted)(void);
};

/* What the child of pl_lab_up does until it ends; the exit code. */
int pl_lab_keep(struct pl_lab_keeper *k);

/* ---- simulated.c ---- */

/* The same in a lab without namespaces, whose network is in simulated time. */
int pl_lab_keep_simulated(struct pl_lab_keeper *k);

/* ---- enter.c ---- */

/* Runs a command in a node of a lab that is up, within its PID namespace; its exit code, 128 + the
 * signal that ended it, 127 when there is no such command. Negative errno with diag. argv ends with
 * NULL. In a simulated lab commands run at the collector only, which is this machine: -EOPNOTSUPP. */
int pl_lab_exec(
	const struct pl_lab_found *f, unsigned int node, char *const *argv, struct pl_diag *diag);
/* The same for a function of this program, in a child; it returns the exit code. */
int pl_lab_call(const struct pl_lab_found *f, unsigned int node, int (*what)(void *arg), void *arg,
	struct pl_diag *diag);
