/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline demo: which demonstration runs, and how it is shown. */
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/simulate.h"
#include "demo/demo.h"

#define SECOND_NS UINT64_C(1000000000)
#define RATE      5000.0

static struct pl_demo_options args;

static const struct pl_opt *options(void)
{
	static const char *const forms[] = { "table", "json", "jsonl", NULL };
	static const struct pl_opt table[] = {
		{ PL_OPT_DURATION, 'd', "duration", &args.duration_ns, "TIME",
			"stop after this time of the network (default: 20s with --headless, else until q or SIGINT; packets: 30s; marking: 28s of simulated time)",
			NULL },
		{ PL_OPT_FLAG, 0, "headless", &args.headless, NULL,
			"print only the summary at the "
			"end",
			NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM", "format of the summary",
			forms },
		{ PL_OPT_RATE, 'r', "rate", &args.rate, "RATE", "reports per second (default 5000)",
			NULL },
		{ PL_OPT_STRING, 0, "to", &args.to, "OUTPUT",
			"packets: also send the records there, as pathline tap does", NULL },
		{ PL_OPT_U64, 0, "seed", &args.seed, "N",
			"the same seed makes the same network (default 1)", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

#define MARKING_NS (28 * SECOND_NS) /* of simulated time: the whole story */

static const char *const words[] = { "packets", "marking", NULL };

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	bool packets, marking;
	int code;

	args.headless = false;
	args.to = NULL;
	args.form = "table";
	args.duration_ns = 0;
	args.seed = 1;
	args.rate = RATE;
	if (pl_command_parse(&pl_command_demo, argc, argv, &operands, &code) != 0)
		return code;
	packets = operands.n == 1 && strcmp(operands.items[0], words[0]) == 0;
	marking = operands.n == 1 && strcmp(operands.items[0], words[1]) == 0;
	code = packets || marking ? 0 : (int)operands.n;
	pl_opt_list_done(&operands);
	if (code > 0 || args.rate <= 0 || (args.to != NULL && !packets))
		return pl_fail(
			PL_EXIT_USAGE, code > 0 ? "demo: operands are \"packets\" or \"marking\""
				       : args.rate <= 0 ? "--rate must be greater than 0"
							: "--to is for demo packets");
	if (packets)
		return pl_demo_packets(&args);
	if (marking)
		return pl_simulate_marking(args.duration_ns != 0 ? args.duration_ns : MARKING_NS,
			args.seed, args.form);
	if (args.headless && args.duration_ns == 0)
		args.duration_ns = 20 * SECOND_NS;
	pl_log_set_level(PL_LOG_WARNING);
	return pl_demo_reports(&args);
}

const struct pl_command pl_command_demo = {
	.name = "demo",
	.summary = "model a small network, collect its reports and show them; needs no privileges",
	.usage = "[--headless] [-d TIME] [-o FORM] [packets|marking]",
	.description =
		"Sends the telemetry reports of a small network over loopback to a collector in this process\n"
		"and shows its tables in the screen of pathline top, with a metrics page for Prometheus. Within\n"
		"the first minute a path changes, a queue builds up and reports get lost; the collector reports\n"
		"each as an event. A link loses 1 % of its packets, of which reports know nothing: the switches\n"
		"find it by alternate marking, and its losses stand below the tables, beside the true ones.\n"
		"Without a terminal demo prints the events every 5 s. It needs no root, no network and no file.\n"
		"\n"
		"demo packets shows the other half: ordinary traffic becomes records, flows and answers of\n"
		"four standing questions, which find a port scan, a SYN flood, a storm of retransmissions\n"
		"and a slow server; at the end the flows with the most bytes are listed. With\n"
		"--headless its 30 s pass as fast as they can.\n"
		"\n"
		"demo marking shows alternate marking in the experiment that was published for it, in simulated\n"
		"time: traffic of three senders fills the link that a measured flow takes; loss and delay by\n"
		"one bit of its packets stand beside what the queue did to them, block by block.\n"
		"\n"
		"At the end demo compares the accounts: every packet sent must have been received or counted as\n"
		"dropped. Exit code 1: the accounts do not agree.",
	.examples = "  pathline demo\n"
		    "  pathline demo --headless --duration 20s -o json\n"
		    "  pathline demo packets\n"
		    "  pathline demo marking\n"
		    "  pathline demo packets --to kafka://127.0.0.1/packets\n",
	.words = words,
	.options = options,
	.run = run,
};
