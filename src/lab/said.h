/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands of a lab that is up, those that have names, say of themselves. */
#pragma once

#include "base/json.h"
#include "lab/state.h"

struct pl_lab_said {
	const struct pl_lab_command *of;
	int pid;        /* 0: it has ended */
	char state[32]; /* as commands.h has it; "silent": asked for its account, it gives none */
	char *account;  /* the last line of it, without the line end; NULL: there is none. Owned */
};

struct pl_lab_sayings {
	struct pl_lab_said all[PL_LAB_RUN_MAX];
	unsigned int n;
};

/* Whether there is anybody to ask: in a simulated lab no commands run. */
bool pl_lab_has_sayings(const struct pl_lab_found *f);

/* Asks those with an account for it, and waits two seconds at the most. Negative errno with diag. */
int pl_lab_sayings_ask(
	const struct pl_lab_found *f, struct pl_lab_sayings *ret, struct pl_diag *diag);
/* One step of ending them (commands.h), with the accounts that they have left so far. 1: not all have
 * ended; 0; negative errno with diag. */
int pl_lab_sayings_finish(
	const struct pl_lab_found *f, struct pl_lab_sayings *ret, struct pl_diag *diag);
void pl_lab_sayings_done(struct pl_lab_sayings *s);

/* A table of all, or the member `commands` of an object that is open. */
void pl_lab_sayings_text(
	const struct pl_lab_found *f, const struct pl_lab_sayings *s, struct pl_buf *out);
void pl_lab_sayings_json(
	const struct pl_lab_found *f, const struct pl_lab_sayings *s, struct pl_json *j);
