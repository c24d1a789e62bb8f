/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The folder of a lab that is up: /run/pathline/lab/NAME for root, else
 * $XDG_RUNTIME_DIR/pathline/lab/NAME or, without that, /tmp/pathline-UID/lab/NAME. In it
 *
 *   lock      held by the lab's keeper as long as it lives; its number in text
 *   tier      "root", "unprivileged" or "simulated"
 *   topology  text of the lab's file, or the name of its shape
 *   netns     names that the lab has, or is about to have, in /run/netns (root)
 *   ended     a line for each command that has ended
 *   story     a line for each step of the story that was done, and for traffic of it that ended
 *   NODE.yaml, NODE.sock  of a switch or the collector: file and socket of its program
 *   history   regions of the collector
 *   truth-NODE  regions of what a switch dropped
 *   truth     regions of what happened, by the books of links (truth_log.h)
 *   NODE.log  what the commands of a node print; keeper.log
 *
 *   view      which folder of names it saw, in /run/netns
 *
 * Whoever can take the lock of a folder has before him what a killed lab left, and sweeps it if he sees the same folder of
 * names; who is to come up under the same name sweeps it in any case.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/diag.h"
#include "lab/topology.h"

enum pl_lab_tier { PL_LAB_ROOT, PL_LAB_UNPRIVILEGED, PL_LAB_SIMULATED };
extern const char *const pl_lab_tiers[]; /* NULL behind the last */

#define PL_LAB_FOLDER_MAX 200

struct pl_lab_state {
	char folder[PL_LAB_FOLDER_MAX];
	int lock; /* descriptor; -1: not held */
};

/* The folder of labs of this user; made when it is not there. -EPERM with diag for one that is
 * somebody else's. */
int pl_lab_run_folder(char ret[PL_LAB_FOLDER_MAX], struct pl_diag *diag);

/* Makes the folder of a lab and takes its lock; what a killed lab of this name left is swept
 * before. -EBUSY with diag when it is up. */
int pl_lab_state_make(struct pl_lab_state *ret, const char *name, struct pl_diag *diag);
/* Closes the lock, which its other holders keep. */
void pl_lab_state_leave(struct pl_lab_state *s);
/* The lock is held: removes names and folder, and leaves. */
void pl_lab_state_sweep(struct pl_lab_state *s);

int pl_lab_state_write(const struct pl_lab_state *s, const char *file, const char *text);
/* A line more in `netns`, on disk before it returns. */
int pl_lab_state_note(const struct pl_lab_state *s, const char *netns);
/* The last line, of a name that turned out to be somebody else's. */
void pl_lab_state_take_back(const struct pl_lab_state *s, const char *netns);

/* A lab that is up. */
struct pl_lab_found {
	char name[PL_LAB_LAB_NAME_MAX + 1];
	char folder[PL_LAB_FOLDER_MAX];
	enum pl_lab_tier tier;
	pid_t keeper;
	int pidfd; /* of the keeper */
	struct pl_lab_topology topology;
};

/* By the name of the lab, or else by that which its file gives it. What killed labs left is swept
 * on the way. -ENOENT with diag when it is not up. */
int pl_lab_find(struct pl_lab_found *ret, const char *what, struct pl_diag *diag);
void pl_lab_found_done(struct pl_lab_found *f);

/* Adds the names of the labs of this user that are up, in order of the alphabet and with commas
 * between. What killed labs left is swept on the way. */
void pl_lab_names(struct pl_buf *out);

/* Sweeps what killed labs of this user left; how many there were. */
unsigned int pl_lab_sweep_all(void);
