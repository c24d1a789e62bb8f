/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline unmark: clears marks at the edge of a marking domain. */
#include "cli/args.h"
#include "cli/command.h"
#include "cli/mark_args.h"

static struct pl_mark_args args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		PL_MARK_ARGS_DEV(args, "interface at the domain's edge"),
		{ PL_OPT_CHOICE, 0, "direction", &args.direction, "WHICH",
			"packets that leave the domain by the interface: out (default), or that enter: in",
			pl_mark_arg_directions },
		PL_MARK_ARGS_RULES(args, "of which packets (default all)"),
		PL_MARK_ARGS_BITS(args),
		PL_MARK_ARGS_RUNNING(args),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands = { 0 };
	int code;

	pl_mark_args_begin(&args);
	args.direction = pl_mark_arg_directions[1];
	if (pl_command_parse(&pl_command_unmark, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		code = pl_fail(PL_EXIT_USAGE,
			"unmark: '%s' is no option; packets are chosen by --rule",
			operands.items[0]);
	} else {
		code = pl_mark_args_serve(
			&pl_command_unmark, &args, PL_HOSTMARK_EDGE, false, false);
	}
	pl_opt_list_done(&operands);
	pl_mark_args_done(&args);
	return code;
}

const struct pl_command pl_command_unmark = {
	.name = "unmark",
	.summary = "clear the marks of packets at the edge of a marking domain",
	.usage = "--dev INTERFACE [OPTION]…",
	.description =
		"Clears the marking bits of packets that leave by an interface, or enter by it: marks mean\n"
		"something within a domain only (RFC 9341), where 'pathline mark' sets them and 'pathline\n"
		"meter' counts them. On entering packets it keeps marks out that somebody else made. It\n"
		"works in the kernel (eBPF, Linux 6.1). A bit that was set before it became a marking bit\n"
		"is not restored: mark with bits that nobody uses.\n"
		"\n"
		"Every packet is accounted for by cause; --stats ends with all counters, SIGUSR1 prints\n"
		"them meanwhile. The program leaves with the process, also after kill -9.",
	.examples = "  pathline unmark --dev eth1\n"
		    "  pathline unmark --dev eth1 --direction in --bit dscp:0 --bit dscp:1\n",
	.options = options,
	.run = run,
};
