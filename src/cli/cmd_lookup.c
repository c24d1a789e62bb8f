/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline lookup: looks up keys in telemetry memory, in place. */
#include <errno.h>
#include <string.h>

#include "ask/lookup_history.h"
#include "ask/region_read.h"
#include "cli/command.h"
#include "cli/region_args.h"
#include "remote/roce_uri.h"

static const char *const words[] = { "flow", "queue", "drops", "key", NULL };

static struct {
	struct pl_region_args region;
	const char *where;
	uint64_t list;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		PL_REGION_ARGS_FORM(args.region),
		{ PL_OPT_ONCE, 'w', "where", &args.where, "EXPR",
			"flow, queue: only records that match the expression (see 'pathline help where')",
			NULL },
		{ PL_OPT_HEADING, 0, "Keys of any region", NULL, NULL, NULL, NULL },
		PL_REGION_ARGS_KEYS(args.region),
		{ PL_OPT_U64, 0, "list", &args.list, "NUMBER",
			"number of the list, in a file with several (default 0)", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* Any region by its own keys, as region lookup does. */
static int query_region(const char *path, const char *const *keys, size_t n)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *g;
	int code;

	args.region.list = args.list;
	args.region.command = "lookup key";
	if (pl_roce_uri_is(path))
		return pl_region_lookup_remote(path, &args.region, keys, n);
	(void)pl_region_guard();
	code = pl_region_open(&g, path, PL_REGION_READ, NULL, &diag);
	if (code < 0) {
		pl_complain("%s", diag.text);
		return code == -ENOENT ? PL_EXIT_UNAVAILABLE : PL_EXIT_FAILED;
	}
	code = pl_region_lookup(g, path, &args.region, keys, n);
	(void)pl_region_close(g);
	return code;
}

static bool is_word(const char *text)
{
	for (size_t i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], text) == 0)
			return true;
	}
	return false;
}

static int lookup(const char *from, const char *word, const char *const *keys, size_t n)
{
	struct pl_key_source source = { .keys = keys, .n = n };
	const struct pl_lookup_history history = { .from = from,
		.store = strcmp(word, "flow") == 0    ? PL_HISTORY_FLOWS
			 : strcmp(word, "queue") == 0 ? PL_HISTORY_QUEUES
						      : PL_HISTORY_DROPS,
		.source = &source,
		.form = args.region.form,
		.where = args.where };
	int code;

	if (strcmp(word, "key") == 0)
		return query_region(from, keys, n);
	if (n == 0)
		return pl_fail(PL_EXIT_USAGE, "lookup %s: missing key", word);
	if (args.region.collectors.n > 0 || args.region.all)
		return pl_fail(PL_EXIT_USAGE, "lookup %s: --%s is for key", word,
			args.region.all ? "all" : "collector");
	code = pl_lookup_history(&history);
	if (source.failed)
		code = PL_EXIT_FAILED;
	pl_key_source_done(&source);
	return code;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	int code;

	memset(&args, 0, sizeof(args));
	args.region.form = pl_out_forms[PL_OUT_TABLE];
	args.region.key_form = pl_key_forms[0];
	args.region.threshold = 1;
	if (pl_command_parse(&pl_command_lookup, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n < 2 || !is_word(operands.items[0])) {
		code = pl_fail(PL_EXIT_USAGE,
			"lookup: missing operands: flow, queue, drops or key, then a folder or file, then keys");
	} else {
		code = lookup(
			operands.items[1], operands.items[0], operands.items + 2, operands.n - 2);
	}
	pl_opt_list_done(&operands);
	pl_opt_list_done(&args.region.collectors);
	return code;
}

const struct pl_command pl_command_lookup = {
	.name = "lookup",
	.summary = "look keys up in telemetry memory: flows, queues, drops, any region",
	.usage = "flow|queue|drops FROM KEY… | key REGION KEY…",
	.description =
		"Keys are FLOW, NODE[/PORT[/QUEUE]] and NODE[/REASON]. FROM is the folder that an output\n"
		"of type region writes, or one of its files. lookup reads it in place, also while the\n"
		"daemon writes it, and never asks the daemon.\n"
		"\n"
		"flow prints the last path of flows with its hops: 10.0.0.1:5000,10.0.0.2:80/tcp; without\n"
		"a protocol it tries TCP, UDP and so on. queue prints the last hop seen at a node, a port\n"
		"or a queue. drops prints the number of reported drops: never too low, and too high by at\n"
		"most the printed error, with the printed confidence. key looks up any region by its own\n"
		"keys, as \"pathline region lookup\" does. A single key \"-\" reads keys from standard input,\n"
		"one per line.\n"
		"\n"
		"Files that cannot be read are named on standard error, and lookup reads the rest.\n"
		"\n"
		"Exit codes: 0 done; 1 an entry is damaged; 3 a key was not found; 69 no such folder or\n"
		"file.",
	.examples =
		"  pathline lookup flow /var/lib/pathline/history 10.0.0.1:5000,10.0.0.2:80/tcp\n"
		"  pathline lookup queue /var/lib/pathline/history 3/1/0\n"
		"  pathline lookup drops /var/lib/pathline/history 3 3/5\n",
	.options = options,
	.words = words,
	.run = run,
};
