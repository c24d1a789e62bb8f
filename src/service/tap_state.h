/* SPDX-License-Identifier: BSD-2-Clause */
/* The file in which a tap's flows outlive its process (flow/state.h). */
#pragma once

#include "service/tap.h"

/* Opens t->o->flow_state with the flow cache in it, after the sources. Negative errno with diag. */
int pl_tap_state_open(struct pl_tap_service *t, struct pl_diag *diag);
/* Resumes the flows in the file, at the first call, and logs that; to be called first in each turn,
 * and before the end. All outputs of the process are open by then, so that no record goes to an
 * output that never starts. Returns negative errno with diag. */
int pl_tap_state_begin(struct pl_tap_service *t, struct pl_diag *diag);
/* Checks, every second or so, whether the file was truncated. */
void pl_tap_state_look(struct pl_tap_service *t);
/* To be called after the observation point has changed. */
void pl_tap_state_points(struct pl_tap_service *t);
/* Makes a record of every flow, and leaves the flows in the file. */
void pl_tap_state_leave(struct pl_tap_service *t);
void pl_tap_state_close(struct pl_tap_service *t);
