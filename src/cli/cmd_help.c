/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline help: the overview, one command's page (--man writes either as a manual page), or a
 * topic. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/opt.h"
#include "cli/command.h"
#include "detect/direct.h"
#include "dta/translator.h"
#include "lang/builtin.h"
#include "pipeline/api.h"
#include "pipeline/config.h"
#include "rdma/responder.h"
#include "record/record.h"
#include "record/where.h"
#include "service/families.h"
#include "show/top.h"
#include "wire/dta.h"
#include "wire/verdict.h"

static bool man, markdown;

static const char *const topics[] = { "fields", "where", "causes", "events", "metrics", "queries",
	"ipfix", "columns", NULL };
#define N_TOPICS (sizeof(topics) / sizeof(topics[0]) - 1)

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_FLAG, 0, "man", &man, NULL,
			"write a manual page (roff); also of pathline.conf and queries", NULL },
		{ PL_OPT_FLAG, 0, "markdown", &markdown, NULL,
			"write the topic fields in the form of docs/formats/records.md", NULL },
		{ .type = PL_OPT_END },
	};

	man = markdown = false;
	return table;
}

#define ROWS(out, title, prefix, first, max)                                                       \
	do {                                                                                       \
		pl_buf_str(out, title ":\n");                                                      \
		for (unsigned int i = (first); i < (max); i++)                                     \
			pl_opt_help_row(prefix##_name(i), prefix##_help(i), out);                  \
	} while (0)

/* Names of causes in statistics, states and metrics: reasons why something was not taken. */
static void add_causes(struct pl_buf *out)
{
	ROWS(out, "Verdicts of packets (read, listen and run)", pl_verdict, 0, PL_V_MAX);
	ROWS(out,
		"\n"
		"Notes on reports that were decoded",
		pl_note, 0, PL_N_MAX);
	ROWS(out,
		"\n"
		"Causes for which the detector in the kernel escalates a packet to user space",
		pl_escalation, PL_ESCALATION_NONE + 1, PL_ESCALATION_MAX);
	ROWS(out,
		"\n"
		"Causes for which a report takes the slow path of the detector in the kernel",
		pl_slow, PL_SLOW_NONE + 1, PL_SLOW_MAX);
	ROWS(out,
		"\n"
		"Verdicts of DTA reports (translate)",
		pl_dta_verdict, PL_DTA_OK + 1, PL_DTA_VERDICT_MAX);
	ROWS(out,
		"\n"
		"Causes for which the translator refuses a DTA report",
		pl_refusal, 0, PL_REFUSED_MAX);
	ROWS(out,
		"\n"
		"Causes of RDMA requests (collect)",
		pl_rdma_cause, 0, PL_RDMA_CAUSE_MAX);
}

static void add_family(void *out, const char *name, const char *help)
{
	pl_opt_help_row(name, help, out);
}

/* The families of metrics pages: of "run" with every part of its configuration, and of services by
 * themselves. */
static void add_metrics(struct pl_buf *out)
{
	struct pl_exposition page;

	pl_exposition_init_names(&page, add_family, out);
	pl_buf_str(out, "Families on metrics pages, of the daemon and of single services:\n");
	out->failed = pl_families_describe(&page) < 0 || out->failed;
}

/* Named questions, their parameters, and their texts. */
static void add_queries(struct pl_buf *out)
{
	const struct pl_query_builtin *all;
	const uint32_t n = pl_query_builtins(&all);

	pl_buf_str(
		out, "Questions by name, for pathline query NAME or 'NAME(parameter=value, …)':\n");
	for (uint32_t i = 0; i < n; i++) {
		pl_buf_printf(out, "\n%s: %s\n", all[i].name, all[i].help);
		for (const struct pl_query_param *p = all[i].params; p->name != NULL; p++)
			pl_buf_printf(out, "  %s=%s  %s\n", p->name, p->value, p->help);
		pl_buf_printf(out, "  %s\n", all[i].text);
	}
}

/* The title that top has for a column; NULL: it has none. */
static const char *title_of(const char *table, const char *column)
{
	const struct pl_top_screen *screen = pl_top_screen_find(table);

	for (unsigned int i = 0; screen != NULL && i < screen->n_columns; i++) {
		const struct pl_top_column *c = &screen->columns[i];

		if (c->cell != PL_TOP_RATE && strcmp(c->key, column) == 0)
			return c->title;
	}
	return NULL;
}

/* Tables of the daemon's API, which top shows. */
static void add_columns(struct pl_buf *out)
{
	const struct pl_api_table *table;

	pl_buf_str(
		out, "Columns of the daemon's tables (/api/v1/TABLE), with their titles in top:\n");
	for (unsigned int i = 0; (table = pl_api_table_at(i)) != NULL; i++) {
		size_t n;
		const struct pl_field *fields = pl_api_table_fields(table, &n);

		pl_buf_printf(
			out, "\n%s: %s\n", pl_api_table_name(table), pl_api_table_help(table));
		for (size_t k = 0; k < n; k++) {
			const char *title = title_of(pl_api_table_name(table), fields[k].name);
			char name[96];

			snprintf(name, sizeof(name), "%s%s%s%s", fields[k].name,
				title != NULL ? " (" : "", title != NULL ? title : "",
				title != NULL ? ")" : "");
			pl_opt_help_row(name, fields[k].help, out);
		}
	}
}

struct element {
	unsigned int id, bytes;
	const char *name, *help;
};

static void add_elements(
	struct pl_buf *out, const char *title, const struct element *elements, size_t n)
{
	pl_buf_printf(out, "%s:\n", title);
	for (size_t i = 0; i < n; i++) {
		char name[96];

		/* Standard elements are only in docs/protocols/ipfix.md. */
		if (elements[i].id == 0)
			continue;
		snprintf(name, sizeof(name), "%u %s (%u)", elements[i].id, elements[i].name,
			elements[i].bytes);
		pl_opt_help_row(name, elements[i].help, out);
	}
}

#define ELEMENTS(out, title, list) add_elements(out, title, list, sizeof(list) / sizeof((list)[0]))

/* Elements of IPFIX under an enterprise's number. */
static void add_ipfix(struct pl_buf *out)
{
	static const struct element flows[] = {
#define PL_IPFIX_FLOW(id, bytes, name, help) { id, bytes, name, help },
#include "ipfix/flows.def"
#undef PL_IPFIX_FLOW
	};
#define VALUE(type, member, name, id, known, value, help) { id, sizeof(type), name, help },
#define PL_IPFIX_KEY(type, member, name, id, flag, help)  { id, sizeof(type), name, help },
#define PL_IPFIX_PATH                                     VALUE
	static const struct element paths[] = {
#include "ipfix/paths.def"
	};
#undef PL_IPFIX_PATH
#define PL_IPFIX_HOP VALUE
	static const struct element hops[] = {
#include "ipfix/paths.def"
	};
#undef PL_IPFIX_HOP
#define PL_IPFIX_SEGMENT VALUE
	static const struct element segments[] = {
#include "ipfix/marks.def"
	};
#undef PL_IPFIX_KEY
#undef PL_IPFIX_SEGMENT
#define PL_IPFIX_POINT VALUE
	static const struct element points[] = {
#include "ipfix/marks.def"
	};
#undef PL_IPFIX_POINT

	pl_buf_str(out,
		"Elements of IPFIX under the private enterprise number of pen=N: id, name, bytes.\n"
		"docs/protocols/ipfix.md also has those of the standard.\n\n");
	ELEMENTS(out, "Flows (pathline tap --flows --to 'ipfix://HOST?pen=N')", flows);
	ELEMENTS(out, "\nPaths (an output of the type ipfix)", paths);
	ELEMENTS(out, "\nHops", hops);
	ELEMENTS(out, "\nAlternate marking: results (pathline meter, tap --segments)", segments);
	ELEMENTS(out, "\nAnd block records of points (pathline mark, meter --dev, tap --marks)",
		points);
}

/* Pages that are not about one command. */
static bool add_topic(const char *name, struct pl_buf *out)
{
	if (strcmp(name, "fields") == 0)
		pl_fields_doc(out, markdown);
	else if (strcmp(name, "where") == 0)
		pl_buf_str(out, pl_where_help());
	else if (strcmp(name, "causes") == 0)
		add_causes(out);
	else if (strcmp(name, "events") == 0)
		ROWS(out, "Kinds of events", pl_event_kind, 0, PL_EVENT_KIND_MAX);
	else if (strcmp(name, "metrics") == 0)
		add_metrics(out);
	else if (strcmp(name, "queries") == 0)
		add_queries(out);
	else if (strcmp(name, "ipfix") == 0)
		add_ipfix(out);
	else if (strcmp(name, "columns") == 0)
		add_columns(out);
	else
		return false;
	return true;
}

/* The page of one kind of a command: "gen int". */
static const struct pl_command *find_kind(const char *name, const char *word)
{
	const struct pl_command *cmd = pl_command_find(name);

	for (size_t i = 0; cmd != NULL && cmd->kinds != NULL && cmd->kinds[i] != NULL; i++) {
		if (strcmp(cmd->kinds[i]->name + strlen(cmd->name) + 1, word) == 0)
			return cmd->kinds[i];
	}
	return NULL;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	const struct pl_command *cmd = NULL;
	const char *nearest;
	struct pl_buf out;
	int code = PL_EXIT_OK;

	if (pl_command_parse(&pl_command_help, argc, argv, &operands, &code) != 0)
		return code;
	pl_buf_init(&out);
	if (operands.n == 2 && (cmd = find_kind(operands.items[0], operands.items[1])) != NULL)
		goto page;
	if (operands.n > 1) {
		code = pl_fail(PL_EXIT_USAGE, "help needs one command, not %zu", operands.n);
		goto done;
	}
	if (operands.n == 1 && man && strcmp(operands.items[0], "pathline.conf") == 0) {
		pl_help_man_conf(pl_config_rows, &out);
		goto print;
	}
	if (operands.n == 1 && man && strcmp(operands.items[0], "queries") == 0) {
		pl_help_man_queries(&out);
		goto print;
	}
	if (operands.n == 1 && add_topic(operands.items[0], &out))
		goto print;
	if (operands.n == 1) {
		cmd = pl_command_find(operands.items[0]);
		if (cmd == NULL) {
			nearest = pl_command_nearest(operands.items[0]);
			if (nearest == NULL)
				nearest = pl_nearest(operands.items[0], topics, N_TOPICS);
			code = pl_fail(PL_EXIT_USAGE, "unknown command '%s'%s%s%s",
				operands.items[0], nearest != NULL ? "; did you mean '" : "",
				nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
			goto done;
		}
	}
page:
	if (cmd == NULL)
		man ? pl_help_man_overview(&out) : pl_help_overview(&out);
	else
		man ? pl_help_man(cmd, &out) : pl_help_page(cmd, &out);
print:
	if (out.failed) {
		code = pl_fail(PL_EXIT_FAILED, "out of memory");
		goto done;
	}
	fwrite(out.data, 1, out.len, stdout);
done:
	pl_buf_done(&out);
	pl_opt_list_done(&operands);
	return code;
}

const struct pl_command pl_command_help = {
	.name = "help",
	.summary = "show the help of a command",
	.usage = "[OPTION]… [COMMAND [KIND] | TOPIC]",
	.description =
		"Without a command it lists all commands. Topics: fields (the fields of records), where\n"
		"(filter expressions), causes (the meaning of each counted cause), events (the kinds of\n"
		"events), metrics (the families of the metrics page), queries (questions by name), ipfix\n"
		"(elements of flows, paths and hops), columns (those of the daemon's tables and of top).",
	.examples =
		"  pathline help fields\n  pathline help read\n  pathline help --man read | man -l -\n",
	.words = topics,
	.options = options,
	.run = run,
};
