/* SPDX-License-Identifier: BSD-2-Clause */
/* What the processes of labs have in common (up.h): with namespaces (keeper.c), and without
 * (simulated.c). The lab's folder is the current one. */
#pragma once

#include "lab/up.h"

/* What whoever called had open besides is closed: a pipe that never ends, a lock that is never given
 * back. */
void pl_lab_close_inherited(const struct pl_lab_keeper *k);
/* A descriptor of SIGTERM, SIGINT and SIGCHLD; negative errno. */
int pl_lab_take_signals(void);
/* Every signal does again what it does by default: neither what this process ignores nor what its
 * caller did, as a shell does for "&". */
void pl_lab_reset_signals(void);
/* Output of what runs goes into NAME.log. Negative errno. */
int pl_lab_redirect(const char *name);
/* This program is found first under the name that it has. */
void pl_lab_lead_path(void);
/* Whether somebody listens at NODE.sock. */
bool pl_lab_listens(const char *node);
/* That a command of a node ended too early, with the last line in its log. -ECHILD. */
int pl_lab_say_ended(const char *node, const char *command, struct pl_diag *diag);
/* Tells whoever waits for the lab what became of it: r is 0, or a negative errno with diag. Returns r;
 * -ECANCELED when nobody waits any more: then the lab is not wanted. */
int pl_lab_tell_verdict(struct pl_lab_keeper *k, int r, const struct pl_diag *diag);
/* The same of a lab that did not come so far. */
void pl_lab_say_unable(const struct pl_lab_keeper *k, int error);
