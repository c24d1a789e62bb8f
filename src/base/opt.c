/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses a command line by a table of options, and prints the table as help. */
#include "base/opt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/utf8.h"

#define WIDTH       80
#define HELP_COLUMN 30
#define TABLE_MAX   128

static int append(struct pl_opt_list *list, const char *item, struct pl_diag *diag)
{
	/* Grows at each power of two. */
	if ((list->n & (list->n - 1)) == 0) {
		size_t cap = list->n == 0 ? 1 : list->n * 2;
		const char **items = reallocarray(list->items, cap, sizeof(*items));

		if (items == NULL) {
			pl_diag_set(diag, "out of memory");
			return -ENOMEM;
		}
		list->items = items;
	}
	list->items[list->n++] = item;
	return 0;
}

void pl_opt_list_done(struct pl_opt_list *list)
{
	free(list->items);
	*list = (struct pl_opt_list){ 0 };
}

unsigned int pl_opt_place(const char *const *words, const char *word)
{
	unsigned int i = 0;

	while (words[i] != NULL && strcmp(words[i], word) != 0)
		i++;
	return i;
}

static bool is_row(const struct pl_opt *opt)
{
	return opt->type != PL_OPT_HEADING;
}

static const struct pl_opt *find_short(const struct pl_opt *table, char c)
{
	for (; table->type != PL_OPT_END; table++) {
		if (is_row(table) && table->short_name == c)
			return table;
	}
	return NULL;
}

static const struct pl_opt *find_long(const struct pl_opt *table, const char *name, size_t n)
{
	for (; table->type != PL_OPT_END; table++) {
		if (is_row(table) && table->name != NULL && strncmp(table->name, name, n) == 0 &&
			table->name[n] == '\0')
			return table;
	}
	return NULL;
}

static int unknown_long(
	const struct pl_opt *table, const char *name, size_t n, struct pl_diag *diag)
{
	const char *names[TABLE_MAX] = { "help" };
	size_t count = 1;
	char word[64];
	const char *near = NULL;

	for (; table->type != PL_OPT_END && count < TABLE_MAX; table++) {
		if (is_row(table) && table->name != NULL)
			names[count++] = table->name;
	}
	if (n < sizeof(word)) {
		memcpy(word, name, n);
		word[n] = '\0';
		near = pl_nearest(word, names, count);
	}
	if (near != NULL)
		pl_diag_set(diag, "unknown option --%.*s, did you mean --%s?", (int)n, name, near);
	else
		pl_diag_set(diag, "unknown option --%.*s", (int)n, name);
	return -EINVAL;
}

/* Description of a value of this kind, for the error message. */
static const char *wanted(enum pl_opt_type type)
{
	switch (type) {
	case PL_OPT_U64:
		return "a number such as 10 or 0x1f";
	case PL_OPT_COUNT:
		return "a number of 1 or more";
	case PL_OPT_SIZE:
		return "a size such as 4096, 64KiB or 1GiB";
	case PL_OPT_DURATION:
		return "a duration such as 250us, 1.5s or 2m";
	case PL_OPT_RATE:
		return "a rate such as 1000, 10k or 2.5M";
	case PL_OPT_DOUBLE:
		return "a number such as 0.5 or 1e3";
	default:
		return "another value";
	}
}

static int choose(
	const struct pl_opt *opt, const char *shown, const char *value, struct pl_diag *diag)
{
	char words[256] = "";
	size_t used = 0;

	for (const char *const *c = opt->choices; *c != NULL; c++) {
		size_t n = strlen(*c);

		if (strcmp(*c, value) == 0) {
			*(const char **)opt->target = *c;
			return 0;
		}
		if (used + n + 3 < sizeof(words)) {
			if (used > 0) {
				memcpy(words + used, ", ", 2);
				used += 2;
			}
			memcpy(words + used, *c, n + 1);
			used += n;
		}
	}
	pl_diag_set(diag, "option %s must be one of %s, not \"%s\"", shown, words, value);
	return -EINVAL;
}

/* Assigns a value. shown: the option as the user wrote it, for messages. */
static int assign(
	const struct pl_opt *opt, const char *shown, const char *value, struct pl_diag *diag)
{
	int error = 0;

	switch (opt->type) {
	case PL_OPT_ONCE:
		if (*(const char **)opt->target != NULL) {
			pl_diag_set(diag, "option %s is given twice", shown);
			return -EINVAL;
		}
		*(const char **)opt->target = value;
		return 0;
	case PL_OPT_STRING:
		*(const char **)opt->target = value;
		return 0;
	case PL_OPT_LIST:
		return append(opt->target, value, diag);
	case PL_OPT_CHOICE:
		return choose(opt, shown, value, diag);
	case PL_OPT_U64:
		error = pl_parse_u64(value, opt->target);
		break;
	case PL_OPT_COUNT:
		error = pl_parse_u64(value, opt->target);
		if (error == 0 && *(uint64_t *)opt->target == 0)
			error = -EINVAL;
		break;
	case PL_OPT_SIZE:
		error = pl_parse_size(value, opt->target);
		break;
	case PL_OPT_DURATION:
		error = pl_parse_duration(value, opt->target);
		break;
	case PL_OPT_RATE:
		error = pl_parse_rate(value, opt->target);
		break;
	case PL_OPT_DOUBLE:
		error = pl_parse_double(value, opt->target);
		break;
	case PL_OPT_FLAG:
	case PL_OPT_HEADING:
	case PL_OPT_END:
		return -EINVAL;
	}
	if (error == -ERANGE)
		pl_diag_set(diag, "option %s: \"%s\" is too large", shown, value);
	else if (error < 0)
		pl_diag_set(
			diag, "option %s must be %s, not \"%s\"", shown, wanted(opt->type), value);
	return error < 0 ? -EINVAL : 0;
}

static int missing_value(const struct pl_opt *opt, const char *shown, struct pl_diag *diag)
{
	pl_diag_set(diag, "option %s needs a value%s%s", shown, opt->value != NULL ? ": " : "",
		opt->value != NULL ? opt->value : "");
	return -EINVAL;
}

/* Parses "--name" or "--name=value" at argv[*at]. Moves *at over a value that stands alone. */
static int parse_long(
	const struct pl_opt *table, int argc, char **argv, int *at, struct pl_diag *diag)
{
	const char *name = argv[*at] + 2;
	size_t n = strcspn(name, "=");
	const struct pl_opt *opt = find_long(table, name, n);
	char shown[64] = "--";

	if (opt == NULL && n == 4 && memcmp(name, "help", 4) == 0 && name[n] == '\0')
		return 1;
	if (opt == NULL)
		return unknown_long(table, name, n, diag);
	strncat(shown, opt->name, sizeof(shown) - 3);
	if (opt->type == PL_OPT_FLAG) {
		if (name[n] == '=') {
			pl_diag_set(diag, "option %s takes no value", shown);
			return -EINVAL;
		}
		*(bool *)opt->target = true;
		return 0;
	}
	if (name[n] == '=')
		return assign(opt, shown, name + n + 1, diag);
	if (*at + 1 >= argc)
		return missing_value(opt, shown, diag);
	return assign(opt, shown, argv[++*at], diag);
}

/* Parses "-x", "-xy", "-n5" or "-n" at argv[*at]. */
static int parse_short(
	const struct pl_opt *table, int argc, char **argv, int *at, struct pl_diag *diag)
{
	const char *p = argv[*at] + 1;

	for (; *p != '\0'; p++) {
		const struct pl_opt *opt = find_short(table, *p);
		char shown[3] = { '-', *p, '\0' };

		if (opt == NULL && *p == 'h')
			return 1;
		if (opt == NULL) {
			pl_diag_set(diag, "unknown option %s%s%s", shown,
				argv[*at][2] != '\0' ? " in " : "",
				argv[*at][2] != '\0' ? argv[*at] : "");
			return -EINVAL;
		}
		if (opt->type == PL_OPT_FLAG) {
			*(bool *)opt->target = true;
			continue;
		}
		if (p[1] != '\0')
			return assign(opt, shown, p + 1, diag);
		if (*at + 1 >= argc)
			return missing_value(opt, shown, diag);
		return assign(opt, shown, argv[++*at], diag);
	}
	return 0;
}

int pl_opt_parse(const struct pl_opt *table, int argc, char **argv,
	struct pl_opt_list *ret_operands, struct pl_diag *diag)
{
	bool options = true;
	int result = 0;

	*ret_operands = (struct pl_opt_list){ 0 };
	for (int i = 1; i < argc && result == 0; i++) {
		const char *arg = argv[i];

		if (!options || arg[0] != '-' || arg[1] == '\0')
			result = append(ret_operands, arg, diag);
		else if (strcmp(arg, "--") == 0)
			options = false;
		else if (arg[1] == '-')
			result = parse_long(table, argc, argv, &i, diag);
		else
			result = parse_short(table, argc, argv, &i, diag);
	}
	if (result != 0)
		pl_opt_list_done(ret_operands);
	return result;
}

static size_t width(const char *text, size_t n)
{
	size_t columns = 0;

	while (n > 0) {
		size_t len;
		uint32_t cp;

		pl_utf8_next(text, n, &len, &cp);
		text += len;
		n -= len;
		columns++;
	}
	return columns;
}

static void spaces(struct pl_buf *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pl_buf_chr(out, ' ');
}

/* Adds the words of text from `column` on, breaking lines before they pass WIDTH. Returns the
 * column reached. */
static size_t add_wrapped(struct pl_buf *out, const char *text, size_t column)
{
	while (*text != '\0') {
		size_t n = strcspn(text, " "), w = width(text, n);

		if (column > HELP_COLUMN && column + 1 + w > WIDTH) {
			pl_buf_chr(out, '\n');
			spaces(out, HELP_COLUMN);
			column = HELP_COLUMN;
		} else if (column > HELP_COLUMN) {
			pl_buf_chr(out, ' ');
			column++;
		}
		pl_buf_add(out, text, n);
		column += w;
		text += n + strspn(text + n, " ");
	}
	return column;
}

/* Adds a row's text beside what stands in the row since `start`, or below it when that is too wide.
 * Returns the column reached. */
static size_t add_text(struct pl_buf *out, size_t start, const char *text)
{
	size_t column;

	if (out->failed)
		return 0;
	column = width(out->data + start, out->len - start);
	if (column + 2 > HELP_COLUMN) {
		pl_buf_chr(out, '\n');
		column = 0;
	}
	spaces(out, HELP_COLUMN - column);
	return add_wrapped(out, text, HELP_COLUMN);
}

void pl_opt_help_row(const char *name, const char *text, struct pl_buf *out)
{
	const size_t start = out->len;

	pl_buf_printf(out, "  %s", name);
	(void)add_text(out, start, text);
	pl_buf_chr(out, '\n');
}

static void add_choices(struct pl_buf *out, const struct pl_opt *opt, size_t column)
{
	struct pl_buf words;

	pl_buf_init(&words);
	for (const char *const *c = opt->choices; *c != NULL; c++)
		pl_buf_printf(&words, "%s%s%s", c == opt->choices ? "(" : "", *c,
			c[1] != NULL ? ", " : ")");
	if (words.failed)
		out->failed = true;
	else if (words.data != NULL)
		add_wrapped(out, words.data, column);
	pl_buf_done(&words);
}

static void add_row(struct pl_buf *out, const struct pl_opt *opt)
{
	const size_t start = out->len;
	size_t column;

	if (opt->short_name != 0)
		pl_buf_printf(out, "  -%c%s", opt->short_name, opt->name != NULL ? ", " : "");
	else
		pl_buf_str(out, "      ");
	if (opt->name != NULL)
		pl_buf_printf(out, "--%s", opt->name);
	if (opt->type != PL_OPT_FLAG)
		pl_buf_printf(out, " %s", opt->value != NULL ? opt->value : "VALUE");
	column = add_text(out, start, opt->help != NULL ? opt->help : "");
	if (opt->type == PL_OPT_CHOICE)
		add_choices(out, opt, column);
	pl_buf_chr(out, '\n');
}

void pl_opt_help(const struct pl_opt *table, struct pl_buf *out)
{
	static const struct pl_opt help = { PL_OPT_FLAG, 'h', "help", .help = "show this help" };
	struct pl_opt row = help;

	if (table->type != PL_OPT_HEADING)
		pl_buf_str(out, "Options:\n");
	for (const struct pl_opt *opt = table; opt->type != PL_OPT_END; opt++) {
		if (opt->type != PL_OPT_HEADING)
			add_row(out, opt);
		else
			pl_buf_printf(out, "%s%s:\n", opt == table ? "" : "\n", opt->name);
	}
	if (find_long(table, "help", 4) != NULL)
		return;
	if (find_short(table, 'h') != NULL)
		row.short_name = 0;
	add_row(out, &row);
}
