/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary: finds the subcommand and runs it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

const struct pl_command *const pl_commands[] = {
#define PL_COMMAND(id) &pl_command_##id,
#include "cli/commands.def"
#undef PL_COMMAND
	NULL,
};

int main(int argc, char **argv)
{
	if (argc < 2)
		return PL_EXIT_USAGE;
	for (size_t i = 0; pl_commands[i] != NULL; i++) {
		if (strcmp(argv[1], pl_commands[i]->name) == 0)
			return pl_commands[i]->run(argc - 1, argv + 1);
	}
	return PL_EXIT_USAGE;
}
