/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline mark: colours packets that leave this host. */
#include "cli/args.h"
#include "cli/command.h"
#include "cli/mark_args.h"
#include "show/record_out.h"

static struct pl_mark_args args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		PL_MARK_ARGS_DEV(args, "interface that packets leave by"),
		PL_MARK_ARGS_RULES(args, "which packets are marked"),
		PL_MARK_ARGS_BITS(args),
		PL_MARK_ARGS_METHOD(args),
		PL_MARK_ARGS_BLOCKS(args),
		PL_MARK_ARGS_LOSS_ONLY(args),
		{ PL_OPT_DURATION, 0, "check", &args.check_ns, "TIME",
			"time to check that the packets to be marked do not have a marking bit "
			"already; then mark only if none has (default 2s; 0: mark at once)",
			NULL },
		{ PL_OPT_STRING, 0, "probe", &args.probe, "HOST[:PORT]",
			"send small UDP packets to this host through the interface, marked and "
			"counted like packets of a rule, so that there is loss and delay also "
			"while no other packets are sent (default port 9, discard)",
			NULL },
		{ PL_OPT_U64, 0, "probes", &args.probes, "COUNT",
			"number of these packets in each block, at most 1000 a second (default "
			"10)",
			NULL },
		{ PL_OPT_HEADING, 0, "Records of blocks", NULL, NULL, NULL, NULL },
		PL_MARK_ARGS_RECORDS(args,
			"HOST[:PORT]: mark packets to that host, whose pathline meter --from this one "
			"prints loss and delay; else ",
			"print the records in this form (default: none are)"),
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
	if (pl_command_parse(&pl_command_mark, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n > 0) {
		code = pl_fail(PL_EXIT_USAGE,
			"mark: '%s' is no option; packets are chosen by --rule", operands.items[0]);
	} else {
		code = pl_mark_args_serve(
			&pl_command_mark, &args, PL_HOSTMARK_MARKER, true, args.form != NULL);
	}
	pl_opt_list_done(&operands);
	pl_mark_args_done(&args);
	return code;
}

const struct pl_command pl_command_mark = {
	.name = "mark",
	.summary = "colour packets that leave, so that meters tell their loss and delay",
	.usage = "--to HOST [OPTION]…|--dev INTERFACE --rule RULE|--probe HOST [OPTION]…",
	.description =
		"Alternate marking (RFC 9341): chosen packets that leave by an interface get the colour of\n"
		"the current block of time, in a bit of their header (--bit), and are counted by flow and\n"
		"block. 'pathline meter' counts them elsewhere; the difference between two points is what\n"
		"was lost between them, exact to the packet. No packet is added unless --probe asks for some,\n"
		"and none gets longer, but by 8 bytes with --bit altmark, the option of RFC 9343. With a second\n"
		"bit, or --method multiplexed or pulse, one packet of each flow and block is marked to have its\n"
		"delay measured. It works in the kernel (eBPF, Linux 6.1), before the queue of the interface, so\n"
		"the queue is part of what is measured.\n"
		"\n"
		"With --to HOST all packets to another host are marked, whose 'pathline meter --from' of this\n"
		"one tells loss and delay: interface, rule and point are known then, and the method is\n"
		"multiplexed, which has both in one bit.\n"
		"\n"
		"Before it begins it looks whether the packets have the bit already, and refuses to mark if\n"
		"so. Data that TCP hands to the NIC to be taken apart into segments (TSO) is marked as a\n"
		"whole and counted as the segments that it becomes; a packet for delay is never one of\n"
		"these.\n"
		"\n"
		"Clocks of all points must agree better than half of the period (multiplexed and pulse: a\n"
		"quarter), less delays; blocks are those of CLOCK_TAI. The domain ends where 'pathline\n"
		"unmark' clears the bits. docs/guide/marking.md shows all of it.\n"
		"\n"
		"Every packet is accounted for by cause; --stats ends with all counters, SIGUSR1 prints\n"
		"them meanwhile. The program leaves with the process, also after kill -9, but for --pin.",
	.examples =
		"  pathline mark --to 10.1.0.2\n"
		"  pathline mark --dev eth0 --rule 'take dst=10.1.0.0/16' --point 1 --to udp://192.0.2.10:40050\n"
		"  pathline mark --dev eth0 --rule 'take proto=udp' --bit dscp:0 --bit dscp:1 -o jsonl\n"
		"  pathline mark --dev eth0 --rule take --by none --period 10s --pin /sys/fs/bpf/marker\n"
		"  pathline mark --dev eth0 --probe 192.0.2.20 --bit dscp:0 --bit dscp:1 -o jsonl\n",
	.options = options,
	.run = run,
};
