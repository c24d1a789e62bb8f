/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subcommand: one cmd_NAME.c each, listed once in commands.def. Help text, manual page and shell
 * completion come from what it says about itself here and in its option table.
 */
#pragma once

#include "base/complain.h"
#include "base/exit_code.h"
#include "base/opt.h"

struct pl_buf;

struct pl_command {
	const char *name;
	const char *summary;     /* one line for the list of commands: no capital, no full stop */
	const char *usage;       /* operands: "[OPTION]… FILE…" */
	const char *description; /* paragraphs for the help page, an empty line between them */
	const char *examples;    /* lines "  pathline …", or NULL */
	/* Its options, for parser, help, manual and completion; NULL = none. The function sets
	 * targets to their defaults; it may be called several times. */
	const struct pl_opt *(*options)(void);
	/* Words that its first operand may be ("bash", "zsh"), NULL-terminated; NULL = anything. */
	const char *const *words;
	/* Help pages of the words that have one ("help gen int"), NULL-terminated; NULL = none.
	 * Their names are "COMMAND WORD". */
	const struct pl_command *const *kinds;
	int (*run)(
		int argc, char **argv); /* argv[0] is the subcommand's name; returns an exit code */
};

#define PL_COMMAND(id) extern const struct pl_command pl_command_##id;
#include "cli/commands.def"
#undef PL_COMMAND

/* All commands in the order of commands.def, NULL behind the last. */
extern const struct pl_command *const pl_commands[];

/* Finds a command by its name; NULL when there is none. */
const struct pl_command *pl_command_find(const char *name);

/* Finds the command name nearest to a mistyped one; NULL when none is near. */
const char *pl_command_nearest(const char *name);

/*
 * Parses with the command's table; prints the help page or the usage error. 0 = go on (operands to
 * be freed with pl_opt_list_done); else *ret_exit is the exit code and nothing is to be freed.
 */
int pl_command_parse(const struct pl_command *cmd, int argc, char **argv,
	struct pl_opt_list *ret_operands, int *ret_exit);

/* The help page of a command, the overview of all, and the same as manual pages (roff). */
void pl_help_page(const struct pl_command *cmd, struct pl_buf *out);
void pl_help_overview(struct pl_buf *out);
void pl_help_man(const struct pl_command *cmd, struct pl_buf *out);
void pl_help_man_overview(struct pl_buf *out);

struct pl_conf_row;
/* pathline.conf(5), from the schema. */
void pl_help_man_conf(const struct pl_conf_row *rows, struct pl_buf *out);
void pl_help_man_queries(struct pl_buf *out);
