/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline bench: runs the benchmarks, which are a program of their own. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"

/* Relative to the folder of this program: after installation, and in a build folder. */
static const char *const places[] = { "../libexec/pathline/pathline-bench",
	"../../tests/bench/pathline-bench" };

static int run(int argc, char **argv)
{
	char self[PATH_MAX], path[PATH_MAX + 64];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	(void)argc;
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	/* Benchmarks of whole processes start this program. */
	if (setenv("PATHLINE_PROGRAM", self, 1) < 0)
		slash = NULL;
	for (size_t i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self), self, places[i]);
		execv(path, argv);
		if (errno == ENOENT || errno == ENOTDIR)
			continue;
		return pl_fail(PL_EXIT_UNAVAILABLE, "%s: %s", path, strerror(errno));
	}
	return pl_fail(PL_EXIT_UNAVAILABLE,
		"the benchmarks (pathline-bench) are not installed beside this program; "
		"in the source tree \"make bench\" builds and runs them");
}

const struct pl_command pl_command_bench = {
	.name = "bench",
	.summary = "run benchmarks, each compared with its ceiling in the same run",
	.usage = "[OPTION]… [NAME[/CASE]]…",
	.description =
		"Runs the named benchmarks or cases, or all of them. Each benchmark alternates with its\n"
		"ceiling, the fastest way to do its job on this machine, and the ratio is the median of the\n"
		"ratios of neighbouring runs: on a shared machine the ratio is stable even when the rates\n"
		"are not. 'pathline bench --list' lists the benchmarks, 'pathline bench --help' the options.\n"
		"\n"
		"The benchmarks are a program of their own, pathline-bench, which is built with the tests.",
	.examples = "  pathline bench decode-int\n  pathline bench -o jsonl --pairs 11 read udp\n"
		    "  pathline bench xdp-detect/3-hops-1-flow\n"
		    "  pathline bench alert/first-80%\n",
	.run = run,
};
