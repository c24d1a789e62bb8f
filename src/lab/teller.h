/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out the story of a lab that is up (story.h), in the lab's process: links by its wires,
 * traffic by processes of its own. What was done is a line of the file `story` in the current folder.
 */
#pragma once

#include <sys/types.h>

#include "lab/topology.h"
#include "lab/wires.h"

struct pl_lab_teller;

/* The story begins at now_ns of the clock that never steps. All that is given outlives it;
 * namespaces: descriptors, by node. *ret is NULL without a story. -ENOMEM. */
int pl_lab_teller_new(struct pl_lab_teller **ret, const struct pl_lab_topology *t,
	struct pl_lab_wires *wires, const int *namespaces, uint64_t now_ns);
void pl_lab_teller_free(struct pl_lab_teller *l);
/* Does what there is to do; when it has to be called next, UINT64_MAX: never. */
uint64_t pl_lab_teller_run(struct pl_lab_teller *l, uint64_t now_ns);
/* Another topology takes the place of its own, with the same story. */
void pl_lab_teller_keep(struct pl_lab_teller *l, const struct pl_lab_topology *t);
/* A child of this process has ended. */
void pl_lab_teller_ended(struct pl_lab_teller *l, pid_t pid);
/* A line of what was done, with what more there is to say; also for a simulated lab. */
void pl_lab_story_note(const struct pl_lab_story_step *step, const char *what, const char *text);
