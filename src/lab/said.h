/* SPDX-License-Identifier: BSD-2-Clause */
/* State and account of the named commands of a running lab. */
#pragma once

#include "base/json.h"
#include "lab/state.h"

struct pl_lab_said {
	const struct pl_lab_command *of;
	int pid;        /* 0: ended, or not started */
	char state[32]; /* as in commands.h; "silent": it printed no account when asked */
	char *account;  /* the last one in its log, without the line end; NULL: none. Owned */
};

struct pl_lab_sayings {
	struct pl_lab_said all[PL_LAB_RUN_MAX];
	unsigned int n;
};

/* Returns true when there are commands to ask: named ones, and not in a simulated lab. */
bool pl_lab_has_sayings(const struct pl_lab_found *f);

/* Asks the commands for their accounts and waits up to two seconds. Negative errno with diag. */
int pl_lab_sayings_ask(
	const struct pl_lab_found *f, struct pl_lab_sayings *ret, struct pl_diag *diag);
/* Ends the next command (commands.h) and reads the states. Returns 1 while some run; 0 when all
 * have ended, with their accounts; negative errno with diag. */
int pl_lab_sayings_finish(
	const struct pl_lab_found *f, struct pl_lab_sayings *ret, struct pl_diag *diag);
void pl_lab_sayings_done(struct pl_lab_sayings *s);

/* Print a table, or the member `commands` of the open JSON object. */
void pl_lab_sayings_text(
	const struct pl_lab_found *f, const struct pl_lab_sayings *s, struct pl_buf *out);
void pl_lab_sayings_json(
	const struct pl_lab_found *f, const struct pl_lab_sayings *s, struct pl_json *j);
