/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folder of a running lab: /run/pathline/lab/NAME for root, else $XDG_RUNTIME_DIR/pathline/lab/NAME
 * or, without that, /tmp/pathline-UID/lab/NAME. In it
 *
 *   lock      locked by the lab's keeper as long as it lives; has its PID as text
 *   tier      "root", "unprivileged" or "simulated"
 *   topology  text of the lab's file, or of one with its shape
 *   netns     names of the lab in /run/netns, each noted before it is made (root)
 *   ended     a line for each command that has ended
 *   story     a line for each step of the story that was done, and for traffic of it that ended
 *   NODE.yaml, NODE.sock  file and socket of a switch's or the collector's program
 *   history   regions of the collector
 *   truth-NODE  regions with a switch's drops
 *   truth     regions with the truth of links (truth_log.h)
 *   NODE.log  output of a node's commands; also keeper.log and NAME.log of a named command
 *   view identity of the /run/netns in the lab's mount namespace
 *
 * A folder whose lock is free was left by a killed lab. It is swept by a process that sees the same
 * /run/netns, or in any case before a lab of the same name comes up.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/diag.h"
#include "lab/topology.h"

enum pl_lab_tier { PL_LAB_ROOT, PL_LAB_UNPRIVILEGED, PL_LAB_SIMULATED };
extern const char *const pl_lab_tiers[]; /* ends with NULL */

#define PL_LAB_FOLDER_MAX 200

struct pl_lab_state {
	char folder[PL_LAB_FOLDER_MAX];
	int lock; /* descriptor; -1: not held */
};

/* Gets the folder of this user's labs, and makes it when missing. -EPERM with diag: another user
 * owns it. */
int pl_lab_run_folder(char ret[PL_LAB_FOLDER_MAX], struct pl_diag *diag);

/* Makes the folder of a lab and takes its lock, after sweeping remains of a killed lab. -EBUSY with
 * diag: a lab of this name is up. */
int pl_lab_state_make(struct pl_lab_state *ret, const char *name, struct pl_diag *diag);
/* Closes this process's descriptor of the lock; the keeper still holds it. */
void pl_lab_state_leave(struct pl_lab_state *s);
/* Removes the lab's names and folder, then closes the lock, which must be held. */
void pl_lab_state_sweep(struct pl_lab_state *s);

int pl_lab_state_write(const struct pl_lab_state *s, const char *file, const char *text);
/* Appends a name to `netns` with write(), without fsync: it survives a killed process. Negative
 * errno. */
int pl_lab_state_note(const struct pl_lab_state *s, const char *netns);
/* Removes the last line of `netns`, a name that another program has taken. */
void pl_lab_state_take_back(const struct pl_lab_state *s, const char *netns);

/* A running lab. */
struct pl_lab_found {
	char name[PL_LAB_LAB_NAME_MAX + 1];
	char folder[PL_LAB_FOLDER_MAX];
	enum pl_lab_tier tier;
	pid_t keeper;
	int pidfd; /* of the keeper */
	struct pl_lab_topology topology;
};

/* Finds a running lab by its name, or else by the name in its file or shape. Sweeps remains of
 * killed labs. -ENOENT with diag: not up. pl_lab_found_done is needed after errors, too. */
int pl_lab_find(struct pl_lab_found *ret, const char *what, struct pl_diag *diag);
void pl_lab_found_done(struct pl_lab_found *f);

/* Appends the names of this user's running labs, sorted, with ", " between. Sweeps remains of
 * killed labs. */
void pl_lab_names(struct pl_buf *out);

/* Sweeps remains of this user's killed labs. Returns their number. */
unsigned int pl_lab_sweep_all(void);
