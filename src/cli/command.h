/* SPDX-License-Identifier: BSD-2-Clause */
/* A subcommand: one cmd_NAME.c each, listed once in commands.def. */
#pragma once

#include "base/opt.h"

/* Exit codes, the same for every subcommand. */
enum {
	PL_EXIT_OK = 0,
	PL_EXIT_FAILED = 1,
	PL_EXIT_USAGE = 2,
	PL_EXIT_NOTHING = 3,       /* ran, but found nothing or crossed a threshold */
	PL_EXIT_UNAVAILABLE = 69,  /* something needed is not there */
	PL_EXIT_PRIVILEGE = 77,
	PL_EXIT_CONFIG = 78,
};

struct pl_command {
	const char *name;
	const char *summary;              /* one line for the list of commands */
	const char *usage;                /* operands: "[OPTION]… FILE…" */
	const char *description;          /* a paragraph for the help page */
	const char *examples;             /* lines "  pathline …", or NULL */
	const struct pl_opt *(*options)(void);  /* its table, for help, manual and completion; NULL = none */
	int (*run)(int argc, char **argv);      /* argv[0] is the subcommand's name; returns an exit code */
};

#define PL_COMMAND(id) extern const struct pl_command pl_command_##id;
#include "cli/commands.def"
#undef PL_COMMAND

/* All commands in the order of commands.def, NULL behind the last. */
extern const struct pl_command *const pl_commands[];

/* Parses with the command's table; prints help or the usage error. 0 = go on (operands to be freed), else
 * *ret_exit is the exit code. */
int pl_command_parse(const struct pl_command *cmd, int argc, char **argv,
	struct pl_opt_list *ret_operands, int *ret_exit);

/* "pathline: TEXT" on standard error. */
void pl_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void pl_complain_diag(const struct pl_diag *diag);
