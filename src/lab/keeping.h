/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that lab processes (up.h) with namespaces (keeper.c) and without (simulated.c) share.
 * The current folder is the lab's. */
#pragma once

#include "lab/up.h"

/* Makes this process the lab's: in its folder, with its output in keeper.log, without descriptors of
 * the starter, and with a signalfd of SIGTERM, SIGINT and SIGCHLD. Returns negative errno, told to
 * the process that waits for the lab. */
int pl_lab_keep_begin(const struct pl_lab_keeper *k, int *ret_signals);
/* Returns true when the process that starts the lab has ended before it is up. */
bool pl_lab_starter_is_gone(const struct pl_lab_keeper *k);
/* Sets every signal to its default action, also those that the starter ignored, as a shell does for
 * "&", and unblocks it. */
void pl_lab_reset_signals(void);
/* Redirects standard output and error to NAME.log, and standard input to /dev/null. Negative
 * errno. */
int pl_lab_redirect(const char *name);
/* Puts this program's folder first in PATH, so that commands find this pathline. */
void pl_lab_lead_path(void);
/* Returns true when a process listens at NODE.sock. */
bool pl_lab_listens(const char *node);
/* Returns true when NAME.log has the text behind the first *at bytes; else *at is moved to where the
 * next search begins. */
bool pl_lab_said(const char *name, const char *text, uint64_t *at);
/* Sets diag: a command of the node ended too early, with the last line of its log. Returns
 * -ECHILD. */
int pl_lab_say_ended(const char *node, const char *command, struct pl_diag *diag);
/* Tells the process that waits for the lab how it came up: r is 0, or negative errno with diag.
 * Returns r, or -ECANCELED when nobody waits any more: the lab is to end. */
int pl_lab_tell_verdict(struct pl_lab_keeper *k, int r, const struct pl_diag *diag);
/* Tells it that the lab's folder could not be used. */
void pl_lab_say_unable(const struct pl_lab_keeper *k, int error);
