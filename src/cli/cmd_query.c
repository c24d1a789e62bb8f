/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline query: questions over records, and lists of telemetry memory in their order. */
#include <string.h>

#include "ask/query_export.h"
#include "ask/query_list.h"
#include "ask/query_sql.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/decode_args.h"
#include "lang/lang.h"
#include "show/record_out.h"
#include "web/client.h"

static const char *const words[] = { "events", "paths", "hops", NULL };

static struct {
	struct pl_query_sql sql;
	struct pl_opt_list from, rules;
	struct pl_query_list lists;
	struct pl_decode_args decode;
	struct pl_decode_options decoding;
	struct pl_profile profile;
	struct pl_client_args client;
} args;

static const struct pl_opt *options(void)
{
	static const char *const forms[] = { "table", "wide", "json", "jsonl", "csv", "text",
		PL_QUERY_CHART, NULL };
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.sql.form, "FORM",
			"form (default table); json is one array, jsonl an object per line, chart draws the rows of a question",
			forms },
		{ PL_OPT_COUNT, 'n', "count", &args.sql.count, "COUNT", "stop after this many rows",
			NULL },
		{ PL_OPT_STRING, 0, "into", &args.sql.into, "OUTPUT",
			"send the rows of a question there, as JSON objects: file:PATH (lines, "
			"appended), kafka://HOST/TOPIC (a message each), or - (lines); or by their "
			"columns: influx://HOST/DATABASE, clickhouse://HOST/TABLE",
			NULL },
		{ PL_OPT_HEADING, 0, "Questions", NULL, NULL, NULL, NULL },
		{ PL_OPT_CHOICE, 0, "export", &args.sql.export, "SYSTEM",
			"print tables and SQL with which another system answers: clickhouse, flink, duckdb",
			pl_query_export_systems },
		{ PL_OPT_DURATION, 0, "lateness", &args.sql.lateness_ns, "TIME",
			"time that a window waits for late records (default 200ms; with flows 25s)",
			NULL },
		{ PL_OPT_DURATION, 0, "ahead", &args.sql.ahead_ns, "TIME",
			"live sources: leave out records whose time is further ahead of the clock "
			"than this (default 1m)",
			NULL },
		{ PL_OPT_COUNT, 0, "groups", &args.sql.groups, "COUNT",
			"largest number of groups at a time; rows of windows that had more are marked "
			"incomplete (default 262144)",
			NULL },
		{ PL_OPT_FLAG, 0, "inner", &args.sql.inner, NULL,
			"use the addresses and ports of the inner packet for packets in a tunnel",
			NULL },
		{ PL_OPT_LIST, 0, "rule", &args.rules, "RULE",
			"rules for packets that this command itself takes: take, skip or mark, as "
			"for 'pathline tap', such as 'mark proto=tcp dport=23 contains=zorro' for "
			"zorro; may be repeated",
			NULL },
		{ PL_OPT_FLAG, 0, "no-push-down", &args.sql.no_push_down, NULL,
			"xdp: and tc: make records of all packets in the kernel, without filtering "
			"or counting there",
			NULL },
		{ PL_OPT_LIST, 0, "from", &args.from, "SOURCE",
			"another way to give SOURCE, may be repeated; for a list: the number of "
			"the entry to begin at (default the oldest)",
			NULL },
		{ PL_OPT_HEADING, 0, "Members of a group (SOURCE is kafka://HOST/TOPIC)", NULL,
			NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "group", &args.sql.group, "NAME",
			"with a topic: answer together with the other members of this consumer "
			"group; without: become this system group, with --user",
			NULL },
		{ PL_OPT_STRING, 0, "to", &args.sql.to, "TOPIC",
			"send rows to kafka://HOST/TOPIC, on the brokers of SOURCE, as JSON "
			"messages; - prints these messages",
			NULL },
		{ PL_OPT_STRING, 0, "partials", &args.sql.partials, "TOPIC",
			"name of the topic of partial results (default tm.partial.NAME, made when it is missing)",
			NULL },
		{ PL_OPT_FLAG, 0, "transactions", &args.sql.transactions, NULL,
			"write rows and positions in transactions: readers of committed messages see each row once",
			NULL },
		{ PL_OPT_DURATION, 0, "idle", &args.sql.idle_ns, "TIME",
			"time after which a partition that was read to its end, without new "
			"records, closes its windows and no longer delays others (default 5s)",
			NULL },
		PL_ARGS_WEB(args.sql.web),
		{ PL_OPT_HEADING, 0, "Running", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "user", &args.sql.user, "NAME",
			"become this user once everything that needs privileges is open", NULL },
		PL_ARGS_SERVING(args.sql.duration_ns, args.sql.stats),
		{ PL_OPT_HEADING, 0, "Lists", NULL, NULL, NULL, NULL },
		{ PL_OPT_ONCE, 'w', "where", &args.lists.where, "EXPR",
			"only records that match the expression (see 'pathline help where')",
			NULL },
		{ PL_OPT_STRING, 0, "since", &args.lists.since, "TIME",
			"not older than this: 10m or 2026-11-22T01:37:27Z", NULL },
		{ PL_OPT_STRING, 0, "until", &args.lists.until, "TIME", "older than this", NULL },
		{ PL_OPT_U64, 0, "last", &args.lists.last, "COUNT",
			"begin this many entries before the end", NULL },
		{ PL_OPT_FLAG, 0, "show-next", &args.lists.show_next, NULL,
			"print the number of the next entry on standard error, for a later --from",
			NULL },
		{ PL_OPT_U64, 0, "list", &args.lists.list, "NUMBER",
			"number of the list, in a file with several (default 0)", NULL },
		PL_DECODE_ARGS(args.decode),
		{ PL_OPT_HEADING, 0, "Daemon (SOURCE is http://, https:// or unix:PATH)", NULL,
			NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "ca", &args.client.ca, "FILE",
			"trust certificates signed by these instead of the system's", NULL },
		{ PL_OPT_STRING, 0, "cert", &args.client.cert, "FILE",
			"client certificate to present", NULL },
		{ PL_OPT_STRING, 0, "key", &args.client.key, "FILE",
			"private key of the client certificate", NULL },
		{ PL_OPT_STRING, 0, "token-file", &args.client.token_file, "FILE",
			"file whose first line is the bearer token", NULL },
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- which ---- */

/* Returns true for "flows | where …", "SELECT …", "ddos(threshold=9)"; false for a word that does
 * not begin a question. */
static bool is_question(const char *text)
{
	static const char *const moved[] = { "flow", "queue", "drops", "key", NULL };

	return text[0] != '\0' && words[pl_opt_place(words, text)] == NULL &&
	       moved[pl_opt_place(moved, text)] == NULL;
}

static int ask(const struct pl_opt_list *operands)
{
	const char *question = operands->items[0];

	if (args.from.n == 0)
		return pl_query_sql(&args.sql, question, operands->items + 1, operands->n - 1);
	if (operands->n > 1)
		return pl_fail(PL_EXIT_USAGE,
			"query: --from %s and %s: name all sources by --from, or none",
			args.from.items[0], operands->items[1]);
	return pl_query_sql(&args.sql, question, args.from.items, args.from.n);
}

static int query(const struct pl_opt_list *operands)
{
	const char *text = operands->n > 0 ? operands->items[0] : "";
	const char *word = pl_query_behind_explain(text);
	const bool explain = word != text;

	if (is_question(word))
		return ask(operands);
	if (pl_opt_place(words, word) == sizeof(words) / sizeof(words[0]) - 1) {
		const char *moved[] = { "flow", "queue", "drops", "key", NULL };

		if (pl_opt_place(moved, word) < 4)
			pl_complain("look-ups by key are \"pathline lookup %s FROM KEY…\"", word);
		else
			pl_complain(
				"query: missing operands: a question (\"SELECT …\") and where its records come from, or events, paths or hops and a folder or file");
		return PL_EXIT_USAGE;
	}
	if (args.from.n > 1)
		return pl_fail(PL_EXIT_USAGE,
			"query %s: --from %s and %s: a list is read from one entry on", word,
			args.from.items[0], args.from.items[1]);
	if (args.from.n == 1 && pl_parse_u64(args.from.items[0], &args.lists.first) < 0)
		return pl_fail(PL_EXIT_USAGE, "query %s: --from %s is no number of an entry", word,
			args.from.items[0]);
	if (args.rules.n > 0)
		return pl_fail(PL_EXIT_USAGE,
			"query %s: --rule is of packets; records are chosen by --where", word);
	if (operands->n != 2 && !(operands->n == 1 && explain))
		return pl_fail(PL_EXIT_USAGE,
			operands->n < 2 ? "query %s: missing folder or file"
					: "query %s takes one folder or file",
			word);
	if (args.sql.decode_given)
		return pl_fail(PL_EXIT_USAGE,
			"query %s: a history has records that were decoded already: --dialect and "
			"the like are of captures and ports",
			word);
	if (args.sql.into != NULL)
		return pl_fail(PL_EXIT_USAGE,
			"query %s prints records: rows of a question go --into an output "
			"(EXPLAIN has the question)",
			word);
	if (args.sql.form != NULL && strcmp(args.sql.form, PL_QUERY_CHART) == 0)
		return pl_fail(PL_EXIT_USAGE,
			"query %s: -o chart is for questions, such as 'SELECT …'", word);
	args.lists.kind = strcmp(word, "events") == 0  ? PL_OUT_EVENTS
			  : strcmp(word, "paths") == 0 ? PL_OUT_PATHS
						       : PL_OUT_HOPS;
	args.lists.from = operands->n == 2 ? operands->items[1] : NULL;
	args.lists.form = args.sql.form != NULL ? args.sql.form : pl_out_forms[PL_OUT_TABLE];
	args.lists.count = args.sql.count;
	args.lists.explain = explain;
	return pl_query_list(&args.lists);
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	int code;

	memset(&args, 0, sizeof(args));
	args.sql.lateness_ns = PL_OPT_NOT_GIVEN;
	args.sql.ahead_ns = PL_OPT_NOT_GIVEN;
	args.sql.idle_ns = PL_OPT_NOT_GIVEN;
	if (pl_command_parse(&pl_command_query, argc, argv, &operands, &code) != 0)
		return code;
	code = pl_decode_args_apply(&args.decode, &args.decoding, &args.profile);
	args.sql.decode = &args.decoding;
	args.sql.client = &args.client;
	args.sql.rules = &args.rules;
	args.sql.decode_given = pl_decode_args_given(&args.decode);
	if (code == 0)
		code = query(&operands);
	pl_decode_args_done(&args.decode);
	pl_opt_list_done(&args.from);
	pl_opt_list_done(&args.rules);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_query = {
	.name = "query",
	.summary = "ask questions over packets, flows, paths, hops, events, values and marks",
	.usage = "[OPTION]… QUESTION SOURCE… | events|paths|hops FROM",
	.description =
		"A question is a SELECT over packets, flows, paths, hops, events, values or marks, with filters,\n"
		"groups, aggregates, windows and joins, or the same as steps with bars between them;\n"
		"docs/guide/query.md has the language. 'pathline help queries' lists those that have\n"
		"names, such as syn_flood and portscan(threshold=100, window=5s). Records come from\n"
		"captures, interfaces (packet:IFACE, tc:, xdp:, afxdp:), drops:, taps elsewhere (udp://HOST:PORT,\n"
		"tmpkt/1), a topic (kafka://HOST/TOPIC), or files that 'pathline tap --to file:' wrote\n"
		"(NAME.pkt64, NAME.pkt96, NAME.flow128, NAME.flow288, NAME.mark128). Flows come\n"
		"out of the flow cache.\n"
		"Records of paths, hops and events come from the folder of a history, paths and hops also from\n"
		"captures and from the ports where reports arrive (udp://:32766; see 'pathline listen'),\n"
		"and all three from a running daemon (http://HOST:8400, unix:PATH; see 'pathline tail'),\n"
		"which also has packets, flows, DNS messages and drops of its taps, marks and segments of its\n"
		"marking domains, and values of its regions.\n"
		"Rows of a live source come as windows close; without a window, at the end.\n"
		"They go to standard output, or as JSON objects to what --into names, which the question\n"
		"may also say itself: … INTO 'kafka://HOST/TOPIC'. EXPLAIN in front of a question prints its\n"
		"plan, and where the parts run, instead of an answer.\n"
		"\n"
		"events, paths and hops are short for SELECT * FROM events and so on ('EXPLAIN events' prints it):\n"
		"they print a list of telemetry memory in its order, records whole, within a range of\n"
		"times or numbers. FROM is the folder that an output of type region writes, or one of its\n"
		"files; query reads it in place, also while the daemon writes it.\n"
		"\n"
		"Exit codes: 0 done; 1 something was damaged; 3 no row; 69 no such source.",
	.examples =
		"  pathline query 'SELECT dst, count(*) AS n FROM packets WHERE syn_only GROUP BY dst' a.pcap\n"
		"  pathline query 'packets | group src over 1s agg b=sum(wire_len) | where b > 1000000' packet:eth0\n"
		"  pathline query 'SELECT src, dst, rtt_min_us FROM flows WHERE retrans_fwd > 0' a.pcap\n"
		"  pathline query 'portscan(threshold=100)' packet:eth0\n"
		"  pathline query syn_flood --from kafka://mq/tm.pkt64 --group watch --to kafka://mq/alerts\n"
		"  pathline query 'SELECT node, max(queue_depth) AS deepest FROM hops TUMBLE(ts, 1s)\n"
		"      GROUP BY node' /var/lib/pathline/history\n"
		"  pathline query ddos packet:eth0 --into kafka://mq/alerts\n"
		"  pathline query 'EXPLAIN packets | where tcp | group dst agg n=count()'\n"
		"  pathline query events /var/lib/pathline/history --since 1h\n"
		"  pathline query paths /var/lib/pathline/history --where 'latency_ns > 1ms' -o jsonl\n",
	.options = options,
	.words = words,
	.run = run,
};
