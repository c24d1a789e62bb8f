/* SPDX-License-Identifier: BSD-2-Clause */
/* The binary: finds the subcommand and runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "cli/command.h"
#include "raw/port.h"
#include "runtime/signals.h"
#include "show/stdout.h"

static int overview(FILE *to)
{
	struct pl_buf out;

	pl_buf_init(&out);
	pl_help_overview(&out);
	fwrite(out.data, 1, out.len, to);
	pl_buf_done(&out);
	return to == stdout ? PL_EXIT_OK : PL_EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
	static char version[] = "version";
	const struct pl_command *cmd;
	const char *nearest;

	if (argc < 2)
		return overview(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return overview(stdout);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		argv[1] = version;
	cmd = pl_command_find(argv[1]);
	if (cmd != NULL)
		return cmd->run(argc - 1, argv + 1);
	nearest = pl_command_nearest(argv[1]);
	if (nearest != NULL)
		pl_complain("unknown command '%s'; did you mean '%s'?", argv[1], nearest);
	else
		pl_complain("unknown command '%s'", argv[1]);
	fputs("'pathline help' lists the commands.\n", stderr);
	return PL_EXIT_USAGE;
}

int main(int argc, char **argv)
{
	int code;

	/* With SIGCHLD ignored, as it may be inherited, ended children could not be waited for. */
	(void)signal(SIGCHLD, SIG_DFL);
	pl_raw_port_add();
	pl_stdout_open();
	pl_signals_on_end(pl_stdout_hurry);
	code = dispatch(argc, argv);
	pl_log_flush(true);
	/* A full disk must not look like success. */
	errno = 0;
	if ((fflush(stdout) != 0 || ferror(stdout)) && code == PL_EXIT_OK && !pl_stdout_given_up())
		code = pl_fail(PL_EXIT_FAILED, "cannot write the output: %s",
			errno != 0 ? strerror(errno) : "an earlier write failed");
	return code;
}
