/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline top: tables of a running daemon or a history in the terminal. Without a terminal that
 * can be drawn on it prints and ends. */
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/command.h"
#include "runtime/confine_reader.h"
#include "show/top_draw.h"
#include "show/top_terminal.h"
#include "show/top_view.h"
#include "web/client.h"

#define BATCH_ROWS 20

static struct {
	struct pl_client_args client;
	const char *screen, *sort, *where, *form, *from, *since;
	bool batch;
	uint64_t interval_ns, times, rows;
} args;

static const char *const forms[] = { "table", "json", NULL };
static const char *const screen_words[] = { "queues", "links", "ports", "paths", "events",
	"exporters", "drops", "flows", "regions", "values", "segments", "tapped", NULL };

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_CHOICE, 's', "screen", &args.screen, "SCREEN",
			"first table (default queues)", screen_words },
		{ PL_OPT_STRING, 0, "sort", &args.sort, "COLUMN",
			"first column to sort by; rate is one", NULL },
		{ PL_OPT_ONCE, 'w', "where", &args.where, "EXPR",
			"only rows that match the expression, such as node == 3 and depth > 100",
			NULL },
		{ PL_OPT_DURATION, 'd', "interval", &args.interval_ns, "TIME",
			"interval between requests (default 2s)", NULL },
		{ PL_OPT_FLAG, 'b', "batch", &args.batch, NULL, "print the table once and exit",
			NULL },
		{ PL_OPT_U64, 'n', "times", &args.times, "N",
			"with --batch: print N times (default 1)", NULL },
		{ PL_OPT_U64, 0, "rows", &args.rows, "N",
			"with --batch: at most N rows (default 20, at most 1000)", NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM",
			"with --batch: format (default table)", forms },
		{ PL_OPT_HEADING, 0, "Without a daemon", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "from", &args.from, "FOLDER",
			"show the history of an output of type region: queues, links, ports, paths, events",
			NULL },
		{ PL_OPT_STRING, 0, "since", &args.since, "TIME",
			"with --from: only entries not older than this: 10m or 2026-11-22T01:37:27Z",
			NULL },
		PL_CLIENT_ARGS(args.client),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* Returns an exit code, 0 for success; prints errors. */
static int open_source(struct pl_top_source *ret)
{
	struct pl_diag diag = { .text = "" };
	uint64_t since_ns = 0;
	int r;

	if (args.from == NULL) {
		r = pl_client_new(&ret->client, &args.client, &diag);
		if (r != 0)
			pl_complain_diag(&diag);
		return r;
	}
	if (args.since != NULL && pl_parse_time(args.since, pl_clock_real_ns(), &since_ns) < 0)
		return pl_fail(PL_EXIT_USAGE,
			"--since needs a time (2026-11-22T01:37:27Z) or an age (10m)");
	return pl_top_history_open(&ret->history, args.from, since_ns);
}

static int show(struct pl_top_view *v)
{
	const struct pl_top_batch batch = { .times = args.times,
		.rows = args.rows,
		.interval_ns = args.interval_ns,
		.json = strcmp(args.form, "json") == 0 };
	struct pl_top_source source = { .client = NULL };
	const char *why = args.batch ? NULL : pl_top_no_terminal();
	int r = open_source(&source);

	if (r != 0)
		return r;
	v->source = source.client != NULL ? pl_client_url(source.client) : args.from;
	r = pl_client_confine(&args.client, args.from);
	if (r != 0) {
		pl_top_source_done(&source);
		return r;
	}
	if (!args.batch && why == NULL)
		return pl_top_draw(v, &source, args.interval_ns, NULL);
	if (why != NULL)
		pl_complain("%s: printing once", why);
	r = pl_top_view_print(v, &source, &batch);
	pl_top_source_done(&source);
	return r;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	struct pl_top_view view;
	int code, r;

	memset(&args, 0, sizeof(args));
	args.screen = "queues";
	args.form = "table";
	args.interval_ns = UINT64_C(2) * 1000000000u;
	args.times = 1;
	args.rows = BATCH_ROWS;
	if (pl_command_parse(&pl_command_top, argc, argv, &operands, &code) != 0)
		return code;
	r = operands.n > 0;
	pl_opt_list_done(&operands);
	if (r)
		return pl_fail(PL_EXIT_USAGE, "top takes no operand: name a table with --screen");
	if (args.from != NULL ? args.client.url != NULL : args.since != NULL)
		return pl_fail(PL_EXIT_USAGE,
			"--since needs a history (--from FOLDER), and --from and --url exclude each other");
	if (args.interval_ns < UINT64_C(250) * 1000000u || args.rows == 0 ||
		args.rows > PL_TOP_ROWS)
		return pl_fail(PL_EXIT_USAGE, args.rows == 0 || args.rows > PL_TOP_ROWS
						      ? "--rows must be from 1 to 1000"
						      : "--interval must be at least 250ms");
	/* Characters only: numbers stay as they are. */
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	r = pl_top_view_init(&view, args.screen, args.sort, args.where);
	if (r == 0)
		r = show(&view);
	pl_top_view_done(&view);
	return r;
}

const struct pl_command pl_command_top = {
	.name = "top",
	.summary =
		"live tables of queues, links, ports, paths, flows, events, exporters, drops, regions",
	.usage = "[--screen SCREEN]",
	.description =
		"Shows tables of a running daemon in a terminal of at least 80 by 24 characters: deepest\n"
		"queues, slowest links, exporters that lose reports, latest events, drops by place. Keys\n"
		"choose table, order and filter; ? lists them. With --from it shows the tables of a history\n"
		"instead, with or without a daemon. Numbers come from the daemon; rates are differences\n"
		"between two answers. The table of segments has loss and delay of marked traffic, of a daemon\n"
		"that watches marking domains (marks of the configuration); the table tapped has the flows with\n"
		"the most bytes in the caches of its taps, before they are over. The last line has the number of\n"
		"rows, and what the daemon's table had no room for.\n"
		"\n"
		"Without a terminal, or with --batch, top prints one table and ends.",
	.examples = "  pathline top\n"
		    "  pathline top --screen links --sort rate\n"
		    "  pathline top --batch --screen drops\n"
		    "  pathline top -b -s queues --where 'depth > 1000' -o json\n",
	.options = options,
	.run = run,
};
