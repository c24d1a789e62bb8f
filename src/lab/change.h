/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a lab that is up can become without going down. Pure: two topologies are compared. Nodes,
 * links and with them names and addresses stay; what links are like, costs, INT, marking, commands
 * and the story may be others.
 */
#pragma once

#include "lab/topology.h"

/* -EINVAL with diag, which names what a lab that is up cannot become, and has line and column of `want`'s
 * file where it has them. simulated: in a lab of that tier also INT, marking, the story and links
 * that it changes stay. Both topologies with the lab's collector, or both without. */
int pl_lab_change_check(const struct pl_lab_topology *was, const struct pl_lab_topology *want,
	bool simulated, struct pl_diag *diag);
/* Whether two commands, of two topologies, are the same but for what `check` does with them: one that
 * runs may go on. */
bool pl_lab_change_same_command(
	const struct pl_lab_command *was, const struct pl_lab_command *want);
bool pl_lab_change_same_story(const struct pl_lab_story *was, const struct pl_lab_story *want);
bool pl_lab_change_same_quality(
	const struct pl_lab_quality *was, const struct pl_lab_quality *want);

/* A line of what was changed, with tabs between: KIND is "switch", "link", "routes", "command" or "story". */
struct pl_buf;
void pl_lab_change_tell(struct pl_buf *out, const char *kind, const char *did, const char *name);
