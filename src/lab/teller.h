/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries out the story (story.h) of a running lab in the keeper: changes links in its wires, and
 * starts processes for traffic. Each step done is a line of the file `story` in the current folder.
 */
#pragma once

#include <sys/types.h>

#include "lab/topology.h"
#include "lab/wires.h"

struct pl_lab_teller;

/* Begins the story at now_ns of the monotonic clock. All arguments must outlive it; namespaces:
 * descriptors by node. *ret is NULL without a story. -ENOMEM. */
int pl_lab_teller_new(struct pl_lab_teller **ret, const struct pl_lab_topology *t,
	struct pl_lab_wires *wires, const int *namespaces, uint64_t now_ns);
void pl_lab_teller_free(struct pl_lab_teller *l);
/* Carries out the steps that are due. Returns the time of the next one; UINT64_MAX: none. */
uint64_t pl_lab_teller_run(struct pl_lab_teller *l, uint64_t now_ns);
/* Replaces its topology by another one with the same story. */
void pl_lab_teller_keep(struct pl_lab_teller *l, const struct pl_lab_topology *t);
/* To be called when a child of this process has ended; others are ignored. */
void pl_lab_teller_ended(struct pl_lab_teller *l, pid_t pid);
/* Appends a step's line to `story`, with `what` and `text` behind it; also for a simulated lab. */
void pl_lab_story_note(const struct pl_lab_story_step *step, const char *what, const char *text);
