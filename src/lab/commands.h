/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What runs in the nodes of a lab that is up: programs of the lab's own, then the commands of its file
 * in their order, each after the one before is ready, if it says that. They are watched, asked for their
 * accounts, and ended the other way round, so that nothing is under way from one to the other.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "lab/plan.h"

#define PL_LAB_COMMANDS_MAX 1024

struct pl_lab_running {
	pid_t pid; /* 0: it has ended */
	unsigned int node;
	const char *text;
	const struct pl_lab_command *of; /* NULL: a program of the lab's own */
	bool serves;                     /* until it listens, the lab is not up */
	bool told;                       /* to end */
	bool waits;                      /* it has not been started */
	bool dismissed;                  /* ended on purpose: nobody has to be told */
	int status;                      /* of waitpid, once it has ended */
};

struct pl_lab_commands {
	const struct pl_lab_topology *t;
	const int *ns;             /* descriptors of nodes' network namespaces */
	struct rlimit descriptors; /* for what is started */
	/* Waits a little while something starts; whether to go on waiting. */
	bool (*wait)(void *arg);
	void *arg;
	struct pl_lab_running all[PL_LAB_COMMANDS_MAX];
	unsigned int n;
};

/* Starts all of the plan, whose texts stay; returns when those that are waited for are ready. Negative
 * errno with diag; what was started runs on. */
int pl_lab_commands_start(
	struct pl_lab_commands *c, const struct pl_lab_plan *plan, struct pl_diag *diag);
/* Whether there is room for those of a plan. -E2BIG with diag. */
int pl_lab_commands_check(const struct pl_lab_plan *plan, struct pl_diag *diag);
/*
 * Another topology, with the same nodes, and its plan take the places of those before, whose texts may go
 * then. Programs of the lab's own go on, and so do commands that are the same (change.h), also those that
 * have ended by themselves; others are ended, the last first, and the new ones started in their order, as
 * above, with NAME.log begun anew: the old one is NAME.log.1. A line for each (change.h). A new one
 * that is not ready, or ends before it is: negative errno with diag, and those behind it are not started.
 * Unless c->t is `t` then, the texts before are still in use.
 */
int pl_lab_commands_become(struct pl_lab_commands *c, const struct pl_lab_topology *t,
	const struct pl_lab_plan *plan, struct pl_buf *out, struct pl_diag *diag);
/* A child of this process has ended; others than these are left alone. */
void pl_lab_commands_ended(struct pl_lab_commands *c, pid_t pid, int status);

/*
 * "ask" has those with an account print it now. "finish" has the last of those that are ready end,
 * once all that have no such moment have ended by themselves, and the one before when it is asked
 * again, and so on. Both then add a line for each that has a name: NAME PID STATE, of which STATE is
 * "running", "ending", "not started", "exit code N" or "signal N". -EINVAL with diag: other words.
 */
int pl_lab_commands_serve(struct pl_lab_commands *c, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag);
