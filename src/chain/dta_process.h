/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of a chain as processes of this same program: started in their network namespace, their
 * words passed on, what they print kept. They end with this one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/diag.h"

#define PL_DTA_LINE_MAX 512

struct pl_dta_process {
	char role[64]; /* "collector c1" */
	/* what a line of its standard error has in it once it is; NULL: it is at once */
	const char *ready;
	pid_t pid;    /* 0: not running */
	int out, err; /* -1: closed */
	bool is_ready, ended;
	int status;                 /* of waitpid, once it ended */
	struct pl_buf text;         /* the last whole line of its standard output */
	struct pl_buf text_line;    /* the one so far */
	char line[PL_DTA_LINE_MAX]; /* of standard error, so far */
	size_t line_bytes;
	char last[PL_DTA_LINE_MAX]; /* the last whole one */
	char said[PL_DTA_LINE_MAX]; /* the last one with `ready` in it */
	unsigned int answers;       /* lines of standard output, and such ones */
	unsigned int before;        /* of these when it was asked last */
	unsigned int restarts;      /* the caller's */
};

/* argv without the program's name, NULL behind the last. netns: descriptor of a network namespace,
 * -1: ours. The process's own memory is the caller's and must be zeroed. */
int pl_dta_process_start(struct pl_dta_process *p, const char *role, const char *const *argv,
	int netns, const char *ready, struct pl_diag *diag);

/* Waits up to timeout_ms for words or ends of n processes and takes them; a signal ends the wait.
 * With `loud` each line of standard error is passed on with the process's role before it. */
void pl_dta_process_pump(struct pl_dta_process *p, unsigned int n, int timeout_ms, bool loud);

/* Asks it to say how it is (SIGUSR1); whether it has since. False: it has ended. */
bool pl_dta_process_ask(struct pl_dta_process *p);
bool pl_dta_process_answered(const struct pl_dta_process *p);

/* Asks it to end. */
void pl_dta_process_stop(const struct pl_dta_process *p);
/* Ends what still runs and frees what is kept. */
void pl_dta_process_done(struct pl_dta_process *p);

/* "exit code 1", "signal 9", in 32 bytes. */
void pl_dta_process_status(const struct pl_dta_process *p, char ret[32]);
