/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "cli/command.h"

static int run(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("pathline " PL_VERSION);
	return PL_EXIT_OK;
}

const struct pl_command pl_command_version = {
	.name = "version",
	.summary = "print the version and what it was built with",
	.usage = "",
	.run = run,
};
