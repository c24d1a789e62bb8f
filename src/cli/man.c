/* SPDX-License-Identifier: BSD-2-Clause */
/* Help pages as manual pages: man(7) macros, which mandoc and groff both read. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/conf.h"
#include "cli/command.h"
#include "lang/builtin.h"

/* The date of the version in NEWS.md; not the day of the build, which would make builds
 * differ. */
#define RELEASED "2026-11-20"

/* Text that must come out as it stands: roff's escape, and control characters at a line's start. */
static void put(struct pl_buf *out, const char *text, bool line_start)
{
	for (; *text != '\0'; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			pl_buf_str(out, "\\&");
		line_start = *text == '\n';
		switch (*text) {
		case '\\':
			pl_buf_str(out, "\\e");
			break;
		case '-':
			pl_buf_str(out, "\\-");
			break;
		case '\'':
			pl_buf_str(out, "\\(aq");
			break;
		default:
			pl_buf_chr(out, *text);
		}
	}
}

static void heading(struct pl_buf *out, const char *title)
{
	pl_buf_printf(out, ".SH %s\n", title);
}

/*
 * Paragraphs are parted by empty lines, as in the help page; a line that begins with a space is an
 * example or a table and keeps its breaks.
 */
static void paragraphs(struct pl_buf *out, const char *text)
{
	bool verbatim = false, gap = false, begun = false;

	while (*text != '\0') {
		const char *end = strchrnul(text, '\n');
		char line[1024];
		size_t len = (size_t)(end - text);
		bool blank = len == 0, wants = *text == ' ';

		if (len >= sizeof(line))
			len = sizeof(line) - 1;
		memcpy(line, text, len);
		line[len] = '\0';
		if (blank) {
			gap = true;
		} else {
			if (!wants && verbatim)
				pl_buf_str(out, ".fi\n");
			if (begun && (gap || wants != verbatim))
				pl_buf_str(out, ".PP\n");
			if (wants && !verbatim)
				pl_buf_str(out, ".nf\n");
			begun = true;
			verbatim = wants;
			gap = false;
			put(out, line, true);
			pl_buf_chr(out, '\n');
		}
		text = *end == '\0' ? end : end + 1;
	}
	if (verbatim)
		pl_buf_str(out, ".fi\n");
}

static void option(struct pl_buf *out, const struct pl_opt *opt)
{
	if (opt->type == PL_OPT_HEADING) {
		pl_buf_str(out, ".SS \"");
		put(out, opt->name, false);
		pl_buf_str(out, "\"\n");
		return;
	}
	pl_buf_str(out, ".TP\n");
	if (opt->short_name != 0)
		pl_buf_printf(out, "\\fB\\-%c\\fR, ", opt->short_name);
	pl_buf_str(out, "\\fB\\-\\-");
	put(out, opt->name, false);
	pl_buf_str(out, "\\fR");
	if (opt->type != PL_OPT_FLAG) {
		pl_buf_str(out, " \\fI");
		put(out, opt->value != NULL ? opt->value : "VALUE", false);
		pl_buf_str(out, "\\fR");
	}
	pl_buf_chr(out, '\n');
	put(out, opt->help, true);
	if (opt->type == PL_OPT_CHOICE && opt->choices != NULL) {
		pl_buf_str(out, ": ");
		for (size_t i = 0; opt->choices[i] != NULL; i++) {
			if (i > 0)
				pl_buf_str(out, opt->choices[i + 1] == NULL ? " or " : ", ");
			put(out, opt->choices[i], false);
		}
	}
	pl_buf_chr(out, '\n');
}

static void title(struct pl_buf *out, const char *page, const char *section)
{
	pl_buf_str(out, ".\\\" Written by 'pathline help --man'; edit the command instead.\n.TH ");
	for (; *page != '\0'; page++)
		pl_buf_chr(out, *page >= 'a' && *page <= 'z' ? (char)(*page - 'a' + 'A') : *page);
	pl_buf_printf(out, " %s \"" RELEASED "\" \"pathline " PL_VERSION "\" \"%s\"\n", section,
		section[0] == '1'   ? "User Commands"
		: section[0] == '5' ? "File Formats"
				    : "Miscellaneous");
}

static void exit_codes(struct pl_buf *out)
{
	static const struct {
		int code;
		const char *means;
	} table[] = {
		{ PL_EXIT_OK, "done" },
		{ PL_EXIT_FAILED, "failed while running" },
		{ PL_EXIT_USAGE, "wrong usage" },
		{ PL_EXIT_NOTHING, "ran, but found nothing or crossed a threshold" },
		{ PL_EXIT_UNAVAILABLE, "a resource it needs is not available" },
		{ PL_EXIT_PRIVILEGE, "a privilege is missing" },
		{ PL_EXIT_CONFIG, "the configuration is wrong" },
	};

	heading(out, "EXIT STATUS");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		pl_buf_printf(out, ".TP\n%d\n%s\n", table[i].code, table[i].means);
}

static void environment(struct pl_buf *out)
{
	heading(out, "ENVIRONMENT");
	paragraphs(out,
		"PATHLINE_SANDBOX controls the sandbox of commands that serve, for debugging: off switches it\n"
		"off, no-seccomp and no-landlock switch off one half. A program with file capabilities\n"
		"ignores it.\n"
		"\n"
		"PATHLINE_URL names the daemon that status, tail and top ask.");
}

void pl_help_man(const struct pl_command *cmd, struct pl_buf *out)
{
	char page[64] = "pathline-";

	strncat(page, cmd->name, sizeof(page) - sizeof("pathline-"));
	title(out, page, "1");
	heading(out, "NAME");
	pl_buf_printf(out, "pathline\\-%s \\- ", cmd->name);
	put(out, cmd->summary, false);
	pl_buf_chr(out, '\n');
	heading(out, "SYNOPSIS");
	pl_buf_printf(out, "\\fBpathline %s\\fR ", cmd->name);
	put(out, cmd->usage, false);
	pl_buf_chr(out, '\n');
	if (cmd->description != NULL) {
		heading(out, "DESCRIPTION");
		paragraphs(out, cmd->description);
	}
	if (cmd->options != NULL) {
		heading(out, "OPTIONS");
		for (const struct pl_opt *o = cmd->options(); o->type != PL_OPT_END; o++)
			option(out, o);
	}
	if (cmd->examples != NULL) {
		heading(out, "EXAMPLES");
		paragraphs(out, cmd->examples);
	}
	exit_codes(out);
	heading(out, "SEE ALSO");
	pl_buf_str(out, "\\fBpathline\\fR(1)\n");
}

void pl_help_man_overview(struct pl_buf *out)
{
	title(out, "pathline", "1");
	heading(out, "NAME");
	pl_buf_str(out, "pathline \\- network telemetry from wire to memory to answer\n");
	heading(out, "SYNOPSIS");
	pl_buf_str(
		out, "\\fBpathline\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n");
	heading(out, "DESCRIPTION");
	paragraphs(out,
		"Switches and hosts report the fate of each packet: its path, its time in queues, the place\n"
		"where it was lost. pathline receives these reports (In-band Network Telemetry, IOAM),\n"
		"decodes them, and shows, counts and exports them.\n"
		"\n"
		"Each command has a page of its own, pathline-COMMAND(1).");
	heading(out, "COMMANDS");
	for (size_t i = 0; pl_commands[i] != NULL; i++) {
		pl_buf_printf(out, ".TP\n\\fBpathline\\-%s\\fR(1)\n", pl_commands[i]->name);
		put(out, pl_commands[i]->summary, true);
		pl_buf_chr(out, '\n');
	}
	exit_codes(out);
	environment(out);
}

/* The text of a question is one line: it is broken between its words. */
static void question_text(struct pl_buf *out, const char *text)
{
	pl_buf_str(out, ".IP\n");
	put(out, text, true);
	pl_buf_chr(out, '\n');
}

void pl_help_man_queries(struct pl_buf *out)
{
	const struct pl_query_builtin *all;
	const uint32_t n = pl_query_builtins(&all);

	title(out, "pathline-queries", "7");
	heading(out, "NAME");
	pl_buf_str(out, "pathline\\-queries \\- questions over records that have a name\n");
	heading(out, "DESCRIPTION");
	paragraphs(out,
		"Each stands in the place of a question of pathline query and of the daemon's standing\n"
		"queries. Parameters that have other values than those below stand in parentheses:\n"
		"\n"
		"  pathline query 'portscan(threshold=100, window=5s)' trace.pcap\n"
		"\n"
		"Below stand for each the parameters with their values when not given, and its text in the\n"
		"language, in which $NAME is the value of a parameter. A changed text is a question as any\n"
		"other is. pathline query 'EXPLAIN NAME' shows how it is run; --into sends its rows to a\n"
		"file or a topic of Kafka, under its name.");
	heading(out, "QUESTIONS");
	for (uint32_t i = 0; i < n; i++) {
		pl_buf_printf(out, ".SS %s\n", all[i].name);
		put(out, all[i].help, true);
		pl_buf_str(out, ".\n");
		for (const struct pl_query_param *p = all[i].params; p->name != NULL; p++) {
			pl_buf_printf(out, ".TP\n\\fB%s\\fR (", p->name);
			put(out, p->value, false);
			pl_buf_str(out, ")\n");
			put(out, p->help, true);
			pl_buf_chr(out, '\n');
		}
		question_text(out, all[i].text);
	}
	heading(out, "SEE ALSO");
	pl_buf_str(out, "\\fBpathline\\-query\\fR(1)\n");
}

static const char *type_word(enum pl_conf_type type)
{
	static const char *const words[] = {
		[PL_CONF_BOOL] = "true or false",
		[PL_CONF_U64] = "number",
		[PL_CONF_DOUBLE] = "number",
		[PL_CONF_RATE] = "rate",
		[PL_CONF_SIZE] = "size, such as 64KiB or 1GiB",
		[PL_CONF_DURATION] = "duration, such as 250us or 10s",
		[PL_CONF_STRING] = "text",
		[PL_CONF_CHOICE] = "word",
		[PL_CONF_STRINGS] = "list of texts",
		[PL_CONF_LIST] = "list of maps",
		[PL_CONF_PAIRS] = "map of texts",
	};

	return words[type];
}

/* One level of the schema; a list's own rows follow it, at most as deep as the schema is. */
static void conf_rows(const struct pl_conf_row *rows, const char *prefix, struct pl_buf *out)
{
	for (; rows->type != PL_CONF_END; rows++) {
		pl_buf_str(out, ".TP\n\\fB");
		put(out, prefix, false);
		put(out, rows->key, false);
		pl_buf_printf(out, "\\fR (%s%s)\n", type_word(rows->type),
			rows->required ? ", required" : "");
		put(out, rows->help, true);
		if (rows->choices != NULL) {
			pl_buf_str(out, "\nOne of:");
			for (size_t i = 0; rows->choices[i] != NULL; i++) {
				pl_buf_str(out, i == 0 ? " " : ", ");
				put(out, rows->choices[i], false);
			}
			pl_buf_chr(out, '.');
		}
		if (rows->max != 0)
			pl_buf_printf(out, "\nFrom %llu to %llu%s.", (unsigned long long)rows->min,
				(unsigned long long)rows->max,
				rows->type == PL_CONF_LIST || rows->type == PL_CONF_STRINGS
					? " entries"
				: rows->type == PL_CONF_SIZE     ? " bytes"
				: rows->type == PL_CONF_DURATION ? " ns"
								 : "");
		if (rows->def != NULL && !rows->required) {
			pl_buf_str(out, "\nDefault: ");
			put(out, rows->def, false);
			pl_buf_chr(out, '.');
		}
		pl_buf_chr(out, '\n');
		if (rows->type == PL_CONF_LIST) {
			char inner[256];

			snprintf(inner, sizeof(inner), "%s%s[].", prefix, rows->key);
			conf_rows(rows->rows, inner, out);
		}
	}
}

void pl_help_man_conf(const struct pl_conf_row *rows, struct pl_buf *out)
{
	title(out, "pathline.conf", "5");
	heading(out, "NAME");
	pl_buf_str(out, "pathline.conf \\- configuration of the pathline daemon\n");
	heading(out, "DESCRIPTION");
	paragraphs(out,
		"YAML, read by 'pathline run -c FILE'. Every key has a default; an empty file is a\n"
		"valid one. An unknown or repeated key, or a value out of range, is an error that names\n"
		"file, line, column and the nearest known key. Anchors and aliases are refused.\n"
		"\n"
		"'pathline config check FILE' reads a file and touches nothing, 'config dump' shows it with\n"
		"its defaults, 'config init' writes a short file to begin with, 'config init --full' every key. A\n"
		"running daemon reads its file again on SIGHUP and keeps the old configuration when the new\n"
		"one is wrong.\n"
		"\n"
		"Below, a dot goes one map deeper and [] stands for each entry of a list.");
	heading(out, "KEYS");
	conf_rows(rows, "", out);
	heading(out, "SEE ALSO");
	pl_buf_str(out, "\\fBpathline\\-run\\fR(1), \\fBpathline\\-config\\fR(1)\n");
}
