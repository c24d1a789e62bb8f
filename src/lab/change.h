/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes that a running lab can follow. Compares two topologies, without any effect. Nodes and
 * links, and with them names and addresses, must stay; qualities of links, costs, INT, marking,
 * commands and the story may differ.
 */
#pragma once

#include "lab/topology.h"

/* Returns -EINVAL with diag when the lab cannot become `want`; diag names the difference, with line
 * and column of want's file where known. simulated: INT, marking, the story and the links that it
 * changes must stay too. Both topologies have the lab's collector, or neither. */
int pl_lab_change_check(const struct pl_lab_topology *was, const struct pl_lab_topology *want,
	bool simulated, struct pl_diag *diag);
/* Returns true when two commands of two topologies differ at most in `check`: a running one may
 * continue. */
bool pl_lab_change_same_command(
	const struct pl_lab_command *was, const struct pl_lab_command *want);
bool pl_lab_change_same_story(const struct pl_lab_story *was, const struct pl_lab_story *want);
bool pl_lab_change_same_quality(
	const struct pl_lab_quality *was, const struct pl_lab_quality *want);

/* Adds a line for a change, "KIND\tDID\tNAME": KIND is "switch", "link", "routes", "command" or
 * "story". */
struct pl_buf;
void pl_lab_change_tell(struct pl_buf *out, const char *kind, const char *did, const char *name);
