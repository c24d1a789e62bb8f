/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of subcommands, how their options are parsed, and their help pages. */
#include "cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"

#define COMMANDS_MAX 64

const struct pl_command *const pl_commands[] = {
#define PL_COMMAND(id) &pl_command_##id,
#include "cli/commands.def"
#undef PL_COMMAND
	NULL,
};

_Static_assert(sizeof(pl_commands) / sizeof(pl_commands[0]) <= COMMANDS_MAX, "room in nearest()");

static const struct pl_opt no_options[] = { { .type = PL_OPT_END } };

const struct pl_command *pl_command_find(const char *name)
{
	for (size_t i = 0; pl_commands[i] != NULL; i++) {
		if (strcmp(name, pl_commands[i]->name) == 0)
			return pl_commands[i];
	}
	return NULL;
}

const char *pl_command_nearest(const char *name)
{
	const char *names[COMMANDS_MAX], *begins = NULL;
	size_t n = 0, matches = 0;

	for (; pl_commands[n] != NULL; n++) {
		names[n] = pl_commands[n]->name;
		if (strncmp(names[n], name, strlen(name)) == 0) {
			begins = names[n];
			matches++;
		}
	}
	return matches == 1 ? begins : pl_nearest(name, names, n);
}

int pl_command_parse(const struct pl_command *cmd, int argc, char **argv,
	struct pl_opt_list *ret_operands, int *ret_exit)
{
	const struct pl_opt *table = cmd->options != NULL ? cmd->options() : no_options;
	struct pl_diag diag = { 0 };
	struct pl_opt_list operands = { 0 };
	struct pl_buf out;
	int r;

	r = pl_opt_parse(table, argc, argv, &operands, &diag);
	if (r == 0) {
		*ret_operands = operands;
		return 0;
	}
	pl_opt_list_done(&operands);
	if (r > 0) {
		pl_buf_init(&out);
		pl_help_page(cmd, &out);
		fwrite(out.data, 1, out.len, stdout);
		pl_buf_done(&out);
		*ret_exit = PL_EXIT_OK;
		return 1;
	}
	pl_complain_diag(&diag);
	fprintf(stderr, "Try 'pathline %s --help'.\n", cmd->name);
	*ret_exit = r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_USAGE;
	return r;
}

#define COLUMNS 100

/* Characters of UTF-8. */
static size_t columns(const char *text, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += (text[i] & 0xc0) != 0x80;
	return n;
}

/* Goes on in another line between two alternatives when there is no room. */
static void usage_line(const struct pl_command *cmd, struct pl_buf *out)
{
	static const char between[] = " | ", indent[] = "           ";
	const char *p = cmd->usage;
	size_t at;

	pl_buf_printf(out, "Usage: pathline %s%s", cmd->name, *p != '\0' ? " " : "");
	at = sizeof("Usage: pathline") + strlen(cmd->name) + 1;
	while (*p != '\0') {
		const char *end = strstr(p + 1, between);
		const size_t bytes = end != NULL ? (size_t)(end - p) : strlen(p),
			     n = columns(p, bytes);

		if (at + n > COLUMNS && p != cmd->usage) {
			pl_buf_printf(out, "\n%s", indent);
			at = sizeof(indent) - 1;
		}
		pl_buf_printf(out, "%.*s", (int)bytes, p);
		at += n;
		p += bytes;
	}
	pl_buf_chr(out, '\n');
}

void pl_help_page(const struct pl_command *cmd, struct pl_buf *out)
{
	pl_buf_printf(out, "pathline %s: %s\n\n", cmd->name, cmd->summary);
	usage_line(cmd, out);
	if (cmd->description != NULL)
		pl_buf_printf(out, "\n%s\n", cmd->description);
	if (cmd->options != NULL) {
		pl_buf_chr(out, '\n');
		pl_opt_help(cmd->options(), out);
	}
	if (cmd->examples != NULL)
		pl_buf_printf(out, "\nExamples:\n%s%s", cmd->examples,
			cmd->examples[0] != '\0' && cmd->examples[strlen(cmd->examples) - 1] == '\n'
				? ""
				: "\n");
}

void pl_help_overview(struct pl_buf *out)
{
	pl_buf_str(out, "pathline: network telemetry from wire to memory to answer\n\n"
			"Usage: pathline COMMAND [OPTION]… [OPERAND]…\n\nCommands:\n");
	for (size_t i = 0; pl_commands[i] != NULL; i++)
		pl_buf_printf(out, "  %-12s %s\n", pl_commands[i]->name, pl_commands[i]->summary);
	pl_buf_str(out,
		"\n"
		"'pathline help COMMAND' shows the options of a command. Data go to standard output,\n"
		"messages to standard error. Exit codes: 0 done, 1 failed, 2 usage, 3 nothing found or a threshold\n"
		"crossed, 69 something needed is unavailable, 77 privilege missing, 78 bad\n"
		"configuration.\n");
}
