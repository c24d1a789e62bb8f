/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline query: telemetry memory asked in place, by key, by number, by time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/history_walk.h"
#include "cli/query_keys.h"
#include "cli/region_read.h"
#include "cli/row_out.h"
#include "remote/roce_uri.h"

#define GROUP 64u /* keys looked up at once */

static const char *const words[] = { "events", "paths", "hops", "flow", "queue", "drops", "key",
	NULL };

static struct {
	struct pl_region_args region;
	const char *where, *since, *until;
	uint64_t list, first, last, count;
	bool show_next;
} args;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_HEADING, 0, "Output", NULL, NULL, NULL, NULL },
		PL_REGION_ARGS_FORM(args.region),
		{ PL_OPT_U64, 'n', "count", &args.count, "COUNT",
			"lists: stop after this many records", NULL },
		{ PL_OPT_STRING, 'w', "where", &args.where, "EXPR",
			"only records that match the expression (see 'pathline help where')",
			NULL },
		{ PL_OPT_HEADING, 0, "Which entries of a list", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "since", &args.since, "TIME",
			"not older than this: 10m or 2026-11-22T01:37:27Z", NULL },
		{ PL_OPT_STRING, 0, "until", &args.until, "TIME", "older than this", NULL },
		{ PL_OPT_U64, 0, "from", &args.first, "NUMBER",
			"begin at this entry (default the oldest)", NULL },
		{ PL_OPT_U64, 0, "last", &args.last, "COUNT",
			"begin this many entries before the end", NULL },
		{ PL_OPT_FLAG, 0, "show-next", &args.show_next, NULL,
			"print the number of the next entry on standard error, for a later --from",
			NULL },
		{ PL_OPT_U64, 0, "list", &args.list, "NUMBER",
			"number of the list, in a file with several (default 0)", NULL },
		{ PL_OPT_HEADING, 0, "Keys of any region", NULL, NULL, NULL, NULL },
		PL_REGION_ARGS_KEYS(args.region),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- lists ---- */

static int time_of(const char *text, const char *option, uint64_t *ret)
{
	if (text == NULL || pl_parse_time(text, pl_clock_real_ns(), ret) == 0)
		return 0;
	pl_complain("--%s needs a time (2026-11-22T01:37:27Z) or an age (10m)", option);
	return PL_EXIT_USAGE;
}

/* The entry number `last` before the end of the list. */
static int begin_at_last(struct pl_history_walk *w, const struct pl_history_walk_options *options)
{
	struct pl_history_walk_options again = *options;
	uint64_t head = pl_append_head(w->readers[0].list.a, options->list);

	again.first = head > args.last ? head - args.last : 0;
	again.told = true;
	/* Nothing is older than the first entry: 0 means the oldest there is. */
	pl_history_walk_close(w);
	return pl_history_walk_open(w, &again);
}

static int query_list(const char *from, unsigned int kind)
{
	struct pl_history_walk_options walk = { .from = from,
		.kinds = kind,
		.list = args.list > UINT32_MAX ? UINT32_MAX : (uint32_t)args.list,
		.first = args.first };
	struct pl_history_walk *w = calloc(1, sizeof(*w));
	const struct pl_history_record *record;
	struct pl_record_out out;
	bool good;
	int code;

	if (w == NULL) {
		pl_complain("out of memory");
		return PL_EXIT_FAILED;
	}
	code = pl_record_out_init_kinds(&out, args.region.form, kind, args.where, args.count);
	if (code == 0)
		code = time_of(args.since, "since", &walk.since_ns);
	if (code == 0)
		code = time_of(args.until, "until", &walk.until_ns);
	if (code == 0)
		code = pl_history_walk_open(w, &walk);
	if (code == 0 && args.last > 0)
		code = begin_at_last(w, &walk);
	if (code == 0) {
		while (!pl_record_out_full(&out) && (record = pl_history_walk_next(w)) != NULL)
			pl_history_walk_print(&out, record);
		pl_record_out_end(&out);
		good = pl_history_walk_tell(w);
		good &= pl_record_out_good(&out);
		if (args.show_next)
			pl_complain("next entry: %" PRIu64, pl_history_walk_cursor(w));
		code = !good ? PL_EXIT_FAILED : out.printed > 0 ? PL_EXIT_OK : PL_EXIT_NOTHING;
		pl_history_walk_close(w);
	}
	pl_record_out_done(&out);
	free(w);
	return code;
}

/* ---- keys ---- */

/* A group of keys with the texts they came from. Of a flow without protocol several keys have one
 * text. */
struct group {
	const struct pl_history *h;
	struct pl_record_out out;
	unsigned int n, texts;
	struct pl_key keys[GROUP];
	unsigned int text_of[GROUP];
	char *text[GROUP];
	bool found[GROUP]; /* by text */
	bool all;          /* nothing was missing so far */
	struct pl_key_write_result results[GROUP];
	struct pl_history_flow flows[GROUP];
	struct pl_hop hops[GROUP];
	struct pl_history_record record;
};

static void ask_flows(struct group *g)
{
	pl_history_flows(g->h, g->keys, g->n, g->results, g->flows);
	for (unsigned int i = 0; i < g->n; i++) {
		if (g->results[i].answer == PL_AMBIGUOUS)
			pl_complain("%s: its copies disagree", g->text[g->text_of[i]]);
		if (g->results[i].answer != PL_FOUND)
			continue;
		g->found[g->text_of[i]] = true;
		pl_history_flow_record(g->h, &g->flows[i], &g->record);
		if (g->record.n_hops < g->record.path.hop_count)
			pl_complain("%s: %u of its %u hops are present", g->text[g->text_of[i]],
				g->record.n_hops, g->record.path.hop_count);
		pl_record_out_path(&g->out, &g->record.path, g->record.hops, g->record.n_hops);
	}
}

static void ask_queues(struct group *g)
{
	pl_history_queues(g->h, g->keys, g->n, g->results, g->hops);
	for (unsigned int i = 0; i < g->n; i++) {
		if (g->results[i].answer == PL_AMBIGUOUS)
			pl_complain("%s: its copies disagree", g->text[g->text_of[i]]);
		if (g->results[i].answer != PL_FOUND)
			continue;
		g->found[g->text_of[i]] = true;
		pl_record_out_hop(&g->out, &g->hops[i]);
	}
}

static void ask_group(struct group *g, bool flows)
{
	if (flows)
		ask_flows(g);
	else
		ask_queues(g);
	for (unsigned int t = 0; t < g->texts; t++) {
		if (!g->found[t])
			pl_complain("%s: not found", g->text[t]);
		g->all &= g->found[t];
		free(g->text[t]);
	}
	g->n = g->texts = 0;
	memset(g->found, 0, sizeof(g->found));
}

static const uint8_t usual_protocols[] = { 6, 17, 1, 58, 132 };

/* False when it is no flow. */
static bool add_flow(struct group *g, const char *text)
{
	struct pl_path flow;
	bool given;

	if (pl_query_flow(text, &flow) < 0)
		return false;
	given = (flow.present & PL_PATH_HAS_proto) != 0;
	for (size_t i = 0; i < (given ? 1 : sizeof(usual_protocols)); i++) {
		if (!given)
			flow.proto = usual_protocols[i];
		g->text_of[g->n] = g->texts;
		g->keys[g->n++] = pl_history_flow_key(g->h, &flow);
	}
	return true;
}

static bool add_queue(struct group *g, const char *text)
{
	uint64_t n[3];

	if (pl_query_numbers(text, n, 3) < 0 || (n[2] != PL_HISTORY_ANY && n[2] >= UINT16_MAX))
		return false;
	g->text_of[g->n] = g->texts;
	g->keys[g->n++] = pl_history_queue_key(g->h, n[0], (uint32_t)n[1], (uint32_t)n[2]);
	return true;
}

/* An exit code, 0 while all is well. */
static int ask_all(struct group *g, struct pl_key_source *source, bool flows)
{
	const char *text;

	while ((text = pl_key_source_next(source)) != NULL && !pl_record_out_full(&g->out)) {
		if (!(flows ? add_flow(g, text) : add_queue(g, text))) {
			pl_complain(flows ? "'%s' is no flow, such as 10.0.0.1:5000,10.0.0.2:80/tcp"
					  : "'%s' is no NODE, NODE/PORT or NODE/PORT/QUEUE",
				text);
			return PL_EXIT_USAGE;
		}
		g->text[g->texts] = strdup(text);
		if (g->text[g->texts++] == NULL) {
			pl_complain("out of memory");
			return PL_EXIT_FAILED;
		}
		if (g->n > GROUP - sizeof(usual_protocols))
			ask_group(g, flows);
	}
	return 0;
}

static int query_last(const struct pl_history *h, struct pl_key_source *source, bool flows)
{
	struct group *g = calloc(1, sizeof(*g));
	int code;

	if (g == NULL) {
		pl_complain("out of memory");
		return PL_EXIT_FAILED;
	}
	g->h = h;
	g->all = true;
	code = pl_record_out_init_kinds(
		&g->out, args.region.form, flows ? PL_OUT_PATHS : PL_OUT_HOPS, args.where, 0);
	if (code == 0) {
		code = ask_all(g, source, flows);
		ask_group(g, flows);
		pl_record_out_end(&g->out);
		if (!pl_record_out_good(&g->out))
			code = PL_EXIT_FAILED;
		else if (code == 0 && !g->all)
			code = PL_EXIT_NOTHING;
	}
	pl_record_out_done(&g->out);
	free(g);
	return code;
}

/* ---- drops ---- */

static const struct pl_column drops_columns[] = {
	{ "node", 20, true, false },
	{ "reason", 6, true, false },
	{ "value", 20, true, false },
	{ "error", 12, true, false },
	{ "confidence", 10, true, false },
};

static void add_drops(struct pl_row_out *out, const uint64_t *key, const struct pl_estimate *e)
{
	char text[5][32];
	const char *values[] = { text[0], key[1] != PL_HISTORY_ANY ? text[1] : NULL, text[2],
		text[3], text[4] };

	snprintf(text[0], sizeof(text[0]), "%" PRIu64, key[0]);
	snprintf(text[1], sizeof(text[1]), "%" PRIu64, key[1]);
	snprintf(text[2], sizeof(text[2]), "%" PRIu64, e->value);
	snprintf(text[3], sizeof(text[3]), "%.1f", e->error);
	snprintf(text[4], sizeof(text[4]), "%.4f", e->confidence);
	pl_row_out_add(out, values);
}

static int query_drops(const struct pl_history *h, struct pl_key_source *source)
{
	double total = pl_history_drops_total(h);
	struct pl_row_out out;
	const char *text;
	bool any = false;
	int code = 0;

	pl_row_out_init(&out, args.region.form, drops_columns,
		sizeof(drops_columns) / sizeof(drops_columns[0]));
	while (code == 0 && (text = pl_key_source_next(source)) != NULL) {
		struct pl_estimate e;
		uint64_t n[2];

		if (pl_query_numbers(text, n, 2) < 0 ||
			(n[1] != PL_HISTORY_ANY && n[1] > UINT8_MAX)) {
			pl_complain("'%s' is no NODE or NODE/REASON", text);
			code = PL_EXIT_USAGE;
			break;
		}
		e = pl_history_drops(h, pl_history_drops_key(h, n[0], (uint32_t)n[1]), total);
		any |= e.value > 0;
		add_drops(&out, n, &e);
	}
	if (!pl_row_out_end(&out))
		return PL_EXIT_FAILED;
	return code != 0 ? code : any ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

/* ---- which ---- */

static int query_keys(const char *from, const char *word, struct pl_key_source *source)
{
	enum pl_history_store store = strcmp(word, "flow") == 0    ? PL_HISTORY_FLOWS
				      : strcmp(word, "queue") == 0 ? PL_HISTORY_QUEUES
								   : PL_HISTORY_DROPS;
	struct pl_diag diag = { .text = "" };
	struct pl_history *h;
	bool partial;
	int code;

	(void)pl_region_guard();
	code = pl_history_open(&h, from, &diag);
	if (code < 0) {
		pl_complain("%s", diag.text[0] != '\0' ? diag.text : strerror(-code));
		return code == -ENOENT ? PL_EXIT_UNAVAILABLE : PL_EXIT_FAILED;
	}
	/* A flow of many hops has the last of them in their list. */
	partial = pl_history_tell_troubles(
		h, 1u << store | (store == PL_HISTORY_FLOWS ? 1u << PL_HISTORY_HOPS : 0));
	if (pl_history_region(h, store) == NULL) {
		if (pl_history_trouble(h, store) == NULL)
			pl_complain("%s: this history does not keep %s", from,
				pl_history_store_name(store));
		code = PL_EXIT_NOTHING;
	} else if (store == PL_HISTORY_DROPS) {
		code = query_drops(h, source);
	} else {
		code = query_last(h, source, store == PL_HISTORY_FLOWS);
	}
	(void)pl_history_close(h);
	return partial && (code == PL_EXIT_OK || code == PL_EXIT_NOTHING) ? PL_EXIT_FAILED : code;
}

/* Any region by its own keys, as region lookup does. */
static int query_region(const char *path, const char *const *keys, size_t n)
{
	struct pl_diag diag = { .text = "" };
	struct pl_region *g;
	int code;

	args.region.list = args.list;
	args.region.command = "query key";
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

static int query(const char *from, const char *word, const char *const *keys, size_t n)
{
	struct pl_key_source source = { .keys = keys, .n = n };
	bool list = word[strlen(word) - 1] == 's' && strcmp(word, "drops") != 0;
	int code;

	if (list != (n == 0) && !(strcmp(word, "key") == 0)) {
		pl_complain(list ? "query %s takes no keys" : "query %s: missing key", word);
		return PL_EXIT_USAGE;
	}
	if (strcmp(word, "key") == 0)
		return query_region(from, keys, n);
	if (args.region.collectors.n > 0 || args.region.all) {
		pl_complain(
			"query %s: --%s is for key", word, args.region.all ? "all" : "collector");
		return PL_EXIT_USAGE;
	}
	if (list)
		return query_list(from, strcmp(word, "events") == 0  ? PL_OUT_EVENTS
					: strcmp(word, "paths") == 0 ? PL_OUT_PATHS
								     : PL_OUT_HOPS);
	code = query_keys(from, word, &source);
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
	if (pl_command_parse(&pl_command_query, argc, argv, &operands, &code) != 0)
		return code;
	if (operands.n < 2 || !is_word(operands.items[0])) {
		pl_complain(
			"query: missing operands: events, paths, hops, flow, queue, drops or key, then a folder or file");
		code = PL_EXIT_USAGE;
	} else {
		code = query(
			operands.items[1], operands.items[0], operands.items + 2, operands.n - 2);
	}
	pl_opt_list_done(&operands);
	pl_opt_list_done(&args.region.collectors);
	return code;
}

const struct pl_command pl_command_query = {
	.name = "query",
	.summary = "query telemetry memory by key, number or time",
	.usage = "events|paths|hops FROM | flow|queue|drops FROM KEY… | key REGION KEY…",
	.description =
		"Keys are FLOW, NODE[/PORT[/QUEUE]] and NODE[/REASON]. FROM is the folder that an output\n"
		"of type region writes, or one of its files. query reads it in place, also while the\n"
		"daemon writes it, and never asks the daemon.\n"
		"\n"
		"events, paths and hops print a list in its order, within a range of times or numbers.\n"
		"flow prints the last path of flows with its hops: 10.0.0.1:5000,10.0.0.2:80/tcp; without\n"
		"a protocol it tries TCP, UDP and so on. queue prints the last hop seen at a node, a port\n"
		"or a queue. drops prints the number of reported drops: never too low, and too high by at\n"
		"most the printed error, with the printed confidence. key looks up any region by its own\n"
		"keys, as \"pathline region lookup\" does. A single key \"-\" reads keys from standard input,\n"
		"one per line.\n"
		"\n"
		"Files that cannot be read are named on standard error, and query reads the rest.\n"
		"\n"
		"Exit codes: 0 done; 1 an entry is damaged; 3 nothing found, or a key was not found; 69\n"
		"no such folder or file.",
	.examples =
		"  pathline query events /var/lib/pathline/history --since 1h\n"
		"  pathline query paths /var/lib/pathline/history --where 'latency_ns > 1ms' -o jsonl\n"
		"  pathline query flow /var/lib/pathline/history 10.0.0.1:5000,10.0.0.2:80/tcp\n"
		"  pathline query queue /var/lib/pathline/history 3/1/0\n"
		"  pathline query drops /var/lib/pathline/history 3 3/5\n",
	.options = options,
	.words = words,
	.run = run,
};
