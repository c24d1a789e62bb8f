/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline tail: records and events of a running daemon as they come, or out of a history. */
#include <signal.h>
#include <string.h>

#include "ask/tail_daemon.h"
#include "ask/tail_history.h"
#include "ask/tail_segments.h"
#include "cli/command.h"
#include "runtime/confine_reader.h"
#include "runtime/signals.h"
#include "show/record_out.h"

static struct {
	struct pl_client_args client;
	const char *where, *form, *from, *since;
	bool events, paths, values, show_loss, follow;
	bool flows, packets, dns, drops, community_id;
	uint64_t limit;
} args;

static volatile sig_atomic_t stopped;
static volatile int stop_flag;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_ONCE, 'w', "where", &args.where, "EXPR",
			"only records and events that match the expression (see 'pathline help where')",
			NULL },
		{ PL_OPT_FLAG, 'e', "events", &args.events, NULL, "events only", NULL },
		{ PL_OPT_FLAG, 'p', "paths", &args.paths, NULL, "paths (reports) only", NULL },
		{ PL_OPT_FLAG, 0, "values", &args.values, NULL,
			"values only: new contents of regions of telemetry memory", NULL },
		{ PL_OPT_FLAG, 0, "flows", &args.flows, NULL,
			"print only records of flows that the daemon's taps make, as the flows "
			"end",
			NULL },
		{ PL_OPT_FLAG, 0, "packets", &args.packets, NULL,
			"print only records of packets that the daemon's taps make", NULL },
		{ PL_OPT_FLAG, 0, "dns", &args.dns, NULL, "DNS messages likewise", NULL },
		{ PL_OPT_FLAG, 0, "drops", &args.drops, NULL,
			"print only records of packets that the kernel dropped", NULL },
		{ PL_OPT_FLAG, 0, "community-id", &args.community_id, NULL,
			"with --flows or --packets: the Community ID of each, too (not in the form table)",
			NULL },
		{ PL_OPT_COUNT, 'n', "count", &args.limit, "N", "stop after N records", NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM",
			"format (default table); json is one array and works with --from only",
			pl_out_forms },
		{ PL_OPT_FLAG, 0, "show-loss", &args.show_loss, NULL,
			"print notices of lost entries at their place in the stream (with jsonl)",
			NULL },
		{ PL_OPT_HEADING, 0, "History", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "from", &args.from, "FOLDER",
			"print this history and stop, without asking a daemon: the folder of an output of type region, "
			"or one of its files; or loss and delay of marked packets, NAME.seg192",
			NULL },
		{ PL_OPT_STRING, 0, "since", &args.since, "TIME",
			"with --from: only entries not older than this: 10m or 2026-11-22T01:37:27Z",
			NULL },
		{ PL_OPT_FLAG, 'f', "follow", &args.follow, NULL,
			"with --from: then print new entries as they are written, also after a restart of the daemon",
			NULL },
		{ PL_OPT_HEADING, 0, "Daemon", NULL, NULL, NULL, NULL },
		PL_CLIENT_ARGS(args.client),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	stopped = 1;
	stop_flag = 1;
}

static void catch_signals(void)
{
	stopped = 0;
	stop_flag = 0;
	signal(SIGPIPE, SIG_IGN);
	pl_signals_handle(on_signal, (const int[]){ 0 });
}

static int tail_history(void)
{
	struct pl_tail_history history = {
		.from = args.from,
		.since = args.since,
		.where = args.where,
		.form = args.form,
		.events = args.events,
		.paths = args.paths,
		.follow = args.follow,
		.show_loss = args.show_loss,
		.limit = args.limit,
		.stopped = &stopped,
	};

	if (args.follow && strcmp(args.form, "json") == 0)
		return pl_fail(PL_EXIT_USAGE,
			"-o json prints one array, which never ends with --follow: use -o jsonl");
	return pl_tail_is_segments(args.from) ? pl_tail_segments(&history)
					      : pl_tail_history(&history);
}

/* The requested kind of tap records; NULL: none. */
static const struct pl_watch_kind *tapped_kind(void)
{
	return pl_watch_kind_of(args.flows     ? PL_FLAT_FLOW288
				: args.packets ? PL_FLAT_PKT96
				: args.dns     ? PL_FLAT_DNS64
				: args.drops   ? PL_FLAT_DROP168
					       : PL_FLAT_MAX);
}

/* Returns false after printing the error. */
static bool check_tapped(void)
{
	const int n = args.flows + args.packets + args.dns + args.drops;

	if (args.from != NULL && (args.values || n > 0))
		return pl_fail(false,
			"a history (--from) has no values of regions, and no records of taps");
	if (args.community_id && (n != 1 || (!args.flows && !args.packets)))
		return pl_fail(false, "--community-id goes with --flows or --packets");
	if (args.community_id && strcmp(args.form, "table") == 0)
		return pl_fail(false,
			"--community-id: the form table has no room for it: use -o wide or -o jsonl");
	if (n > 1 || (n == 1 && (args.events || args.paths || args.values)))
		return pl_fail(false, "--%s is given alone, without another kind of records",
			tapped_kind()->name);
	return true;
}

static int run(int argc, char **argv)
{
	struct pl_tail_daemon daemon;
	struct pl_opt_list operands;
	int code, r;

	memset(&args, 0, sizeof(args));
	args.form = "table";
	if (pl_command_parse(&pl_command_tail, argc, argv, &operands, &code) != 0)
		return code;
	r = operands.n > 0;
	pl_opt_list_done(&operands);
	if (r)
		return pl_fail(
			PL_EXIT_USAGE, "tail takes no operand: give an expression with --where");
	if (!check_tapped())
		return PL_EXIT_USAGE;
	if (args.from != NULL) {
		catch_signals();
		r = pl_client_confine(&args.client, args.from);
		return r != 0 ? r : tail_history();
	}
	if (args.since != NULL || args.follow)
		return pl_fail(
			PL_EXIT_USAGE, "--since and --follow need a history (--from FOLDER)");
	if (strcmp(args.form, "json") == 0)
		return pl_fail(PL_EXIT_USAGE,
			"-o json prints one array, and a stream never ends: use -o jsonl");
	daemon = (struct pl_tail_daemon){ .client = &args.client,
		.where = args.where,
		.form = args.form,
		.events = args.events,
		.paths = args.paths,
		.values = args.values,
		.tapped = tapped_kind(),
		.community_id = args.community_id,
		.show_loss = args.show_loss,
		.limit = args.limit,
		.stopped = &stop_flag };
	if (strcmp(args.form, "csv") == 0 && daemon.tapped == NULL && pl_tail_kinds(&daemon) != 1)
		return pl_fail(
			PL_EXIT_USAGE, "CSV has one header: give --events, --paths or --values");
	catch_signals();
	return pl_tail_daemon(&daemon);
}

const struct pl_command pl_command_tail = {
	.name = "tail",
	.summary = "print records, events and values of a running daemon, or of its history",
	.usage =
		"[--from FOLDER] [--where EXPR] [--events | --paths | --values | --flows | --packets | --dns | --drops]",
	.description =
		"Prints the records and events of a running daemon, and the values that it reads from regions\n"
		"of telemetry memory, as they occur, until N records, SIGINT or SIGTERM. When the connection\n"
		"is lost, tail connects again. Without --events, --paths or --values it prints all three, or\n"
		"those that have all fields of the expression. --flows, --packets, --dns and --drops print\n"
		"records of the daemon's taps instead, each when it is made (a flow's when it ends); --where\n"
		"is of their fields then.\n"
		"\n"
		"A slow reader does not slow the daemon: the daemon drops entries for this reader and counts\n"
		"them, and tail prints their number at the end on standard error.\n"
		"\n"
		"With --from it reads the history that an output of type region keeps, in order of time, and\n"
		"asks no daemon: a history is there while the daemon runs and after its end. Entries that\n"
		"were overwritten before tail read them are counted on standard error. A file NAME.seg192 has\n"
		"loss and delay of marked packets ('pathline meter --to file:NAME.seg192'). Exit code 3: the\n"
		"history has no matching entry.",
	.examples = "  pathline tail --events\n"
		    "  pathline tail --where 'flags.dropped or hops.queue_depth > 100'\n"
		    "  pathline tail --values --where 'region == lists and value > 100'\n"
		    "  pathline tail --flows -o wide --where 'retrans_fwd > 10'\n"
		    "  pathline tail --drops --where 'reason != NO_SOCKET'\n"
		    "  pathline tail --events -o jsonl --where 'node == 3' | jq .value\n"
		    "  pathline tail --from /var/lib/pathline/history --since 10m --events\n"
		    "  pathline tail --from lost.seg192 --follow\n",
	.options = options,
	.run = run,
};
