/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks a question of the sources that the command line names. */
#include "ask/query_sql.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ask/query_export.h"
#include "ask/query_folder.h"
#include "ask/query_group.h"
#include "ask/query_sources.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/opt.h"
#include "lang/builtin.h"
#include "query/query.h"
#include "service/kafka_source.h"
#include "service/query_push.h"

#define IDLE_NS UINT64_C(1000000000) /* silence of a live source; then windows close by the clock */

void pl_complain_question(const char *text, const struct pl_diag *diag)
{
	if (diag->column == 0)
		pl_complain("%s", diag->text);
	else
		pl_complain_at("", diag, text);
}

static void add_to_chart(struct pl_asking *a, const struct pl_query_row *row)
{
	pl_query_chart_add(a->chart, row);
	a->rows.n++;
	a->rows.incomplete += row->incomplete;
}

static void take_row(void *arg, const struct pl_query_row *row)
{
	struct pl_asking *a = arg;

	if (a->into != NULL)
		pl_query_into_add(a->into, row);
	else if (a->chart != NULL)
		add_to_chart(a, row);
	else
		pl_query_out_add(&a->rows, row);
}

/* Asks as a member of a group. */
static int ask_group(const struct pl_asking *a, const char *name, const char *uri, const char *into)
{
	enum pl_flat_kind kind = PL_FLAT_MAX;
	struct pl_query_sql args = *a->args;

	if (into != NULL && args.to != NULL)
		return pl_fail(PL_EXIT_USAGE,
			"query: --to %s and rows into %s: they go to one of them", args.to, into);
	args.to = into != NULL ? into : args.to;
	if (args.form == NULL)
		args.form = pl_out_forms[PL_OUT_TABLE];

	if (pl_query_kinds_read(a, &kind) == 0)
		return pl_fail(PL_EXIT_USAGE,
			"query: a topic has packets, dns or flows, and the question reads none");
	return pl_query_group(&args, a->query, name, uri, kind);
}

/* Writes the last rows and reports lost ones; `code`: result of reading. */
static int end_rows(struct pl_asking *a, int code)
{
	const struct pl_query_stats *all = pl_query_run_stats(a->run);
	const struct pl_query_stats *stats = a->args->stats ? all : NULL;
	/* For a source that cannot be read not even the head of a table is printed. */
	const bool ended =
		code == 0 || (code == PL_EXIT_FAILED && (all->records > 0 || all->counted > 0));
	uint64_t n;

	if (ended)
		pl_query_finish(a->run);
	else
		a->rows.gone = true;
	a->rows.clocks = a->clocks.kinds;
	if (a->into != NULL) {
		a->rows.n = a->into->rows;
		a->rows.incomplete = a->into->incomplete;
		if (!pl_query_into_end(a->into, ended ? stats : NULL))
			code = PL_EXIT_FAILED;
	} else if (a->chart != NULL) {
		if (ended && !pl_query_chart_end(a->chart))
			code = PL_EXIT_FAILED;
		pl_buf_done(&a->rows.text);
	} else if (!pl_query_out_end(&a->rows, stats)) {
		code = PL_EXIT_FAILED;
	}
	n = a->rows.n;
	pl_query_out_tell(&a->rows, pl_query_run_stats(a->run));
	return code == 0 && n == 0 ? PL_EXIT_NOTHING : code;
}

static int new_run(struct pl_asking *a, uint32_t partitions)
{
	const struct pl_query_sql *args = a->args;
	const struct pl_query_config config = { .max_groups = (uint32_t)args->groups,
		.lateness_ns = args->lateness_ns == PL_OPT_NOT_GIVEN ? 0
			       : args->lateness_ns == 0              ? PL_QUERY_NO_LATENESS
								     : args->lateness_ns,
		.idle_ns = IDLE_NS,
		.ahead_ns = args->ahead_ns == PL_OPT_NOT_GIVEN
				    ? 0
				    : args->ahead_ns + (args->ahead_ns == 0),
		.partitions = partitions,
		.seed = pl_hash_seed() };
	struct pl_diag diag = { .text = "" };

	if (pl_query_run_new(&a->run, a->query, &config, take_row, a, &diag) == 0)
		return 0;
	return pl_fail(
		PL_EXIT_FAILED, "query: %s", diag.text[0] != '\0' ? diag.text : strerror(ENOMEM));
}

static int ask(struct pl_asking *a, const char *const *sources, size_t n)
{
	const struct pl_query_sql *args = a->args;
	int code = new_run(a, pl_query_sources_partitions(a, sources, n));

	if (code != 0)
		return code;
	pl_query_out_init(&a->rows, a->query,
		args->form != NULL ? args->form : pl_out_forms[PL_OUT_TABLE], args->stats,
		args->count);
	code = pl_query_sources_read(a, sources, n);
	return end_rows(a, code);
}

/* Runs the question, and draws the rows. */
static int ask_chart(struct pl_asking *a, const char *const *sources, size_t n)
{
	struct pl_diag diag = { .text = "" };
	struct pl_query_chart chart;
	int code;

	if (a->args->stats || a->args->count != 0)
		return pl_fail(PL_EXIT_USAGE, "query: -o chart draws all rows: without %s",
			a->args->stats ? "--stats" : "--count");
	if (pl_query_chart_init(&chart, a->query, &diag) < 0)
		return pl_fail(PL_EXIT_USAGE, "query: %s",
			diag.text[0] != '\0' ? diag.text : strerror(ENOMEM));
	a->chart = &chart;
	code = ask(a, sources, n);
	a->chart = NULL;
	pl_query_chart_done(&chart);
	return code;
}

/* Asks, and writes the rows to an output. */
static int ask_into(struct pl_asking *a, const char *name, const char *uri,
	const char *const *sources, size_t n)
{
	struct pl_query_into into;
	int code;

	if (a->args->form != NULL && strcmp(a->args->form, pl_out_forms[PL_OUT_JSONL]) != 0)
		return pl_fail(PL_EXIT_USAGE,
			"query: rows that go to %s are JSON lines: -o %s is a form of standard "
			"output without --into",
			uri, a->args->form);
	code = pl_query_into_init(&into, a->query, uri, name, a->args->count);
	if (code == 0) {
		a->into = &into;
		code = ask(a, sources, n);
		a->into = NULL;
	}
	pl_query_into_done(&into);
	return code;
}

/* Prints the plan of a question, and where its parts run. */
static int explain(struct pl_asking *a, const char *question, const char *const *sources, size_t n)
{
	const int code = new_run(a, 1);
	struct pl_buf plan;

	if (code != 0)
		return code;
	pl_buf_init(&plan);
	pl_buf_printf(&plan, "%s\nmemory, at most: %" PRIu64 " MiB\n",
		pl_query_behind_explain(question),
		(pl_query_run_bytes(a->run) + (1 << 20) - 1) >> 20);
	pl_query_explain(a->query, &plan);
	pl_query_push_explain(a->query, !a->args->no_push_down && a->args->rules->n == 0,
		a->args->count > 0, sources, n, &plan);
	if (plan.data != NULL)
		fwrite(plan.data, 1, plan.len, stdout);
	pl_buf_done(&plan);
	return 0;
}

/* Answers the parsed question. */
static int answer(struct pl_asking *a, const char *name, const char *question,
	const char *const *sources, size_t n)
{
	const char *into = NULL;
	int code;

	if (a->args->groups > UINT32_MAX)
		return pl_fail(PL_EXIT_USAGE,
			"--groups %" PRIu64 " is too large: at most 4294967295", a->args->groups);
	if (a->args->export != NULL && pl_query_is_explain(a->query))
		return pl_fail(PL_EXIT_USAGE,
			"query: EXPLAIN asks for the plan of pathline: without --export");
	if (a->args->export != NULL)
		return pl_query_export_print(a->query, question, a->args->export, sources, n);
	if (pl_query_is_explain(a->query))
		return explain(a, question, sources, n);
	code = pl_query_sources_check(a, sources, n);
	if (code == 0 && !pl_query_is_served(a, sources[0]) &&
		(a->args->user != NULL || a->args->group != NULL))
		code = pl_fail(PL_EXIT_USAGE,
			"query: --user and --group do nothing for %s; start pathline "
			"as that user instead",
			sources[0]);
	if (code == 0 && a->args->web != NULL && !pl_query_is_member(a, sources, n))
		code = pl_fail(PL_EXIT_USAGE,
			"query: --web needs a member of a group (--group, with a topic)");
	if (code == 0)
		code = pl_query_into_choose(&into, a->args->into, a->query);
	if (code != 0)
		return code;
	if (a->args->form != NULL && strcmp(a->args->form, PL_QUERY_CHART) == 0) {
		if (into == NULL && !pl_query_is_member(a, sources, n))
			return ask_chart(a, sources, n);
		return pl_fail(PL_EXIT_USAGE,
			"query: -o chart draws on standard output what this process answers alone: without --into and --group");
	}
	return pl_query_is_member(a, sources, n) ? ask_group(a, name, sources[0], into)
	       : into != NULL                    ? ask_into(a, name, into, sources, n)
						 : ask(a, sources, n);
}

/* Makes the text of a question by name. -ENOENT: it is no name; other errors are reported. */
static int expand(struct pl_buf *text, const char *question)
{
	struct pl_diag diag = { .text = "" };
	int r = pl_query_builtin_text(text, question, &diag);

	if (r == -ENOENT && strpbrk(pl_query_behind_explain(question), " \t\n|") != NULL)
		return r;
	if (r < 0)
		pl_complain_question(question, &diag);
	return r == -ENOENT ? -EINVAL : r;
}

int pl_query_sql(
	const struct pl_query_sql *args, const char *question, const char *const *sources, size_t n)
{
	struct pl_asking a = { .args = args };
	struct pl_query_folder folder = { .n = 0 };
	struct pl_diag diag = { .text = "" };
	struct pl_buf text;
	char name[128] = "";
	int r, code;

	pl_buf_init(&text);
	r = expand(&text, question);
	if (r == 0) {
		question = pl_query_behind_explain(question);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(question, "("), question);
		question = text.data;
	}
	code = r < 0 && r != -ENOENT ? PL_EXIT_USAGE : 0;
	if (code == 0 && pl_query_parse(&a.query, question, &diag) < 0) {
		pl_complain_question(question, &diag);
		code = PL_EXIT_USAGE;
	}
	if (code == 0)
		code = pl_query_folder_open(&folder, a.query, sources, n);
	if (code == 0)
		code = answer(&a, name, question, folder.sources, folder.n);
	pl_query_folder_done(&folder);
	pl_query_run_free(a.run);
	pl_query_free(a.query);
	pl_buf_done(&text);
	return code;
}
