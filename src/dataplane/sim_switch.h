/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches of a simulation from files (dataplane/conf.h). */
#pragma once

#include "dataplane/pipeline.h"
#include "dataplane/program.h"
#include "dataplane/sim.h"

struct pl_dp_sim_switch;

/* Sets the receiver of block records of the switch's points (dataplane/marking/marking.h), before
 * the first run. */
struct pl_dp_sim_blocks {
	void (*block)(void *arg, const struct pl_mark128 *record);
	void *arg;
};
void pl_dp_sim_switch_blocks(struct pl_dp_sim_switch *w, const struct pl_dp_sim_blocks *blocks);

/* Adds a node with the program's id and ports, all configured as `ports` (pl_dp_sim_port_set
 * changes one). The program may be freed then. -EINVAL with diag, -ENOMEM. Free it before the
 * simulation. */
int pl_dp_sim_switch_new(struct pl_dp_sim_switch **ret, struct pl_dp_sim *sim,
	const struct pl_dp_program *program, const struct pl_dp_port_cfg *ports,
	const struct pl_dp_extern *const *externs, struct pl_diag *diag);
void pl_dp_sim_switch_free(struct pl_dp_sim_switch *w);
unsigned int pl_dp_sim_switch_node(const struct pl_dp_sim_switch *w);
/* Returns the pipeline, whose entries may be changed between runs and from timers. */
struct pl_dp_pipeline *pl_dp_sim_switch_pipeline(struct pl_dp_sim_switch *w);
