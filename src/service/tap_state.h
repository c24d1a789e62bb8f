/* SPDX-License-Identifier: BSD-2-Clause */
/* The file in which a tap's flows outlive its process (flow/state.h). */
#pragma once

#include "service/tap.h"

/* Opens t->o->flow_state and makes the flow cache in it; the sources are open. Negative errno with diag. */
int pl_tap_state_open(struct pl_tap_service *t, struct pl_diag *diag);
/* In each turn, first of all, and before the end: goes on with what the file held, once, and says so. All outputs of the
 * process are open by then, so that no record is given to one that never begins. Negative errno with
 * diag. */
int pl_tap_state_begin(struct pl_tap_service *t, struct pl_diag *diag);
/* Behind the packets that made t->newest_ns what it is. */
void pl_tap_state_came(struct pl_tap_service *t);
/* Every second or so: whether the file was cut. */
void pl_tap_state_look(struct pl_tap_service *t);
/* The observation point is another now. */
void pl_tap_state_points(struct pl_tap_service *t);
/* Every flow gives a record and stays in the file. */
void pl_tap_state_leave(struct pl_tap_service *t);
void pl_tap_state_close(struct pl_tap_service *t);
