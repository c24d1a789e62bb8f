/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs and commands in the nodes of a running lab: the lab's own programs, then the commands of
 * its file in order, each after the one before is ready, if that has a `ready` text. They are
 * watched, asked for their accounts, and ended in reverse order, so that nothing is in flight
 * between them.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/buf.h"
#include "lab/plan.h"

#define PL_LAB_COMMANDS_MAX 1024

struct pl_lab_running {
	pid_t pid; /* 0: ended, or not started */
	unsigned int node;
	const char *text;
	const struct pl_lab_command *of; /* NULL: a program of the lab's own */
	bool serves;                     /* the lab is not up before it listens */
	bool told;                       /* asked to end */
	bool waits;                      /* not started yet */
	bool dismissed;                  /* ended on purpose: its end is not reported */
	uint64_t log_at;                 /* up to there the log has no `ready` text */
	pid_t group;                     /* its process group; 0: none of it is left */
	int status;                      /* from waitpid, once it has ended */
};

struct pl_lab_commands {
	const struct pl_lab_topology *t;
	const int *ns;             /* descriptors of nodes' network namespaces */
	struct rlimit descriptors; /* for the started programs */
	/* Waits briefly for a program to start or end. Returns false to give up. */
	bool (*wait)(void *arg);
	void *arg;
	struct pl_lab_running all[PL_LAB_COMMANDS_MAX];
	unsigned int n;
};

/* Starts all commands of the plan, whose texts must stay, and returns when those that must become
 * ready are. Negative errno with diag; started ones then keep running. */
int pl_lab_commands_start(
	struct pl_lab_commands *c, const struct pl_lab_plan *plan, struct pl_diag *diag);
/* Returns 0 when there is room for the plan's commands, else -E2BIG with diag. */
int pl_lab_commands_check(const struct pl_lab_plan *plan, struct pl_diag *diag);
/*
 * Switches to the plan of another topology with the same nodes; the previous texts may be freed
 * afterwards. The lab's own programs continue, as do commands that are the same (change.h), even
 * ended ones; others are ended, the last first, and the new ones started in order, as above, each
 * with a new NAME.log: the old one becomes NAME.log.1. `out` gets a line for each (change.h). When
 * a new one ends or times out before it is ready: negative errno with diag, and later ones are not
 * started. After an error with c->t != t the previous texts are still in use.
 */
int pl_lab_commands_become(struct pl_lab_commands *c, const struct pl_lab_topology *t,
	const struct pl_lab_plan *plan, struct pl_buf *out, struct pl_diag *diag);
/* To be called when a child of this process has ended; unknown children are ignored. */
void pl_lab_commands_ended(struct pl_lab_commands *c, pid_t pid, int status);

/*
 * Serves a request. "ask": commands with an account print it now. "finish": once all commands
 * without a `ready` text have finished, the last running command is asked to end; at the next
 * request after its end, the command before it, and so on. Both then add a line for each named
 * command: NAME PID STATE, where STATE is "running", "ending", "not started", "exit code N" or
 * "signal N". -EINVAL with diag: other words.
 */
int pl_lab_commands_serve(struct pl_lab_commands *c, const char *const *words, unsigned int n,
	struct pl_buf *out, struct pl_diag *diag);
