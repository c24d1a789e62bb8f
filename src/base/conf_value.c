/* SPDX-License-Identifier: BSD-2-Clause */
/* The value of one configuration key: its text with variables, its kind and its range. */
#include "base/conf_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"

__attribute__((format(printf, 3, 4))) int pl_conf_fail(
	struct pl_diag *diag, const struct pl_conf_node *node, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pl_diag_at(diag, node->line, node->column, "%s", text);
	return -EINVAL;
}

__attribute__((format(printf, 2, 3))) void pl_conf_set_path(
	char dst[PATH_TEXT_MAX], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(dst, PATH_TEXT_MAX, fmt, ap);
	va_end(ap);
}

int pl_conf_no_memory(struct pl_diag *diag)
{
	pl_diag_set(diag, "out of memory");
	return -ENOMEM;
}

/* Formats a bound in the row's own unit. */
static void format_bound(const struct pl_conf_row *row, uint64_t v, char dst[PL_EXACT_TEXT_MAX])
{
	if (row->type == PL_CONF_SIZE)
		pl_format_size_exact(dst, v);
	else if (row->type == PL_CONF_DURATION)
		pl_format_duration_exact(dst, v);
	else
		snprintf(dst, PL_EXACT_TEXT_MAX, "%llu", (unsigned long long)v);
}

int pl_conf_out_of_range(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node, const char *what)
{
	char min[PL_EXACT_TEXT_MAX], max[PL_EXACT_TEXT_MAX];

	format_bound(row, row->min, min);
	format_bound(row, row->max, max);
	if (row->max == 0 && row->min == 0)
		return pl_conf_fail(p->diag, node, "\"%s\" is too large: %s", p->path, what);
	if (row->max == 0)
		return pl_conf_fail(
			p->diag, node, "\"%s\" must be at least %s, not %s", p->path, min, what);
	return pl_conf_fail(
		p->diag, node, "\"%s\" must be from %s to %s, not %s", p->path, min, max, what);
}

bool pl_conf_in_range(const struct pl_conf_row *row, uint64_t v)
{
	return v >= row->min && (row->max == 0 || v <= row->max);
}

static const char *wanted(enum pl_conf_type type)
{
	switch (type) {
	case PL_CONF_BOOL:
		return "true or false";
	case PL_CONF_U64:
		return "a whole number";
	case PL_CONF_DOUBLE:
		return "a number";
	case PL_CONF_RATE:
		return "a rate such as 1000, 10k or 2.5M";
	case PL_CONF_SIZE:
		return "a size such as 4096, 64KiB or 1GiB";
	case PL_CONF_DURATION:
		return "a duration such as 250us, 1.5s or 2m";
	case PL_CONF_STRINGS:
		return "a list of words";
	case PL_CONF_LIST:
		return "a list of maps";
	case PL_CONF_PAIRS:
		return "a map of keys and values";
	case PL_CONF_CHOICE:
		return "one word";
	case PL_CONF_STRING:
	case PL_CONF_END:
		break;
	}
	return "a value";
}

int pl_conf_wrong_kind(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	static const char *const kinds[] = { "", "a map", "a list" };

	if (node->kind != PL_CONF_SCALAR)
		return pl_conf_fail(p->diag, node, "\"%s\" must be %s, not %s", p->path,
			wanted(row->type), kinds[node->kind]);
	if (node->text[0] == '\0')
		return pl_conf_fail(p->diag, node, "\"%s\" needs %s", p->path, wanted(row->type));
	return pl_conf_fail(p->diag, node, "\"%s\" must be %s, not \"%s\"", p->path,
		wanted(row->type), node->text);
}

static bool name_char(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

/* *text is behind "${"; moves it behind "}" and adds the variable's value. */
static int add_variable(const struct pl_conf_place *p, const struct pl_conf_node *node,
	const char **text, struct pl_buf *out)
{
	const char *end = *text, *value;
	char name[128];
	size_t n;

	while (name_char(*end, end == *text))
		end++;
	n = (size_t)(end - *text);
	if (n == 0 || *end != '}' || n >= sizeof(name))
		return pl_conf_fail(p->diag, node,
			"\"%s\": ${NAME} is not closed or its name is not one (write $$ for $)",
			p->path);
	memcpy(name, *text, n);
	name[n] = '\0';
	value = getenv(name); // NOLINT(concurrency-mt-unsafe): nobody here calls setenv
	if (value == NULL)
		return pl_conf_fail(p->diag, node, "\"%s\": there is no environment variable %s",
			p->path, name);
	if (!pl_utf8_valid(value, strlen(value)))
		return pl_conf_fail(
			p->diag, node, "\"%s\": the variable %s is not UTF-8", p->path, name);
	pl_buf_str(out, value);
	*text = end + 1;
	return 0;
}

static int expand(const struct pl_conf_place *p, const struct pl_conf_node *node, char **ret)
{
	const char *text = node->text;
	struct pl_buf out;
	int error = 0;

	pl_buf_init(&out);
	out.limit = PL_CONF_TEXT_MAX;
	pl_buf_str(&out, "");
	while (*text != '\0' && error == 0) {
		if (text[0] == '$' && text[1] == '$') {
			pl_buf_chr(&out, '$');
			text += 2;
		} else if (text[0] == '$' && text[1] == '{') {
			text += 2;
			error = add_variable(p, node, &text, &out);
		} else {
			pl_buf_chr(&out, *text++);
		}
	}
	if (error == 0 && out.failed)
		error = pl_conf_no_memory(p->diag);
	if (error < 0) {
		pl_buf_done(&out);
		return error;
	}
	*ret = out.data;
	return 0;
}

int pl_conf_make_string(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node, char **ret)
{
	struct pl_diag why = { 0 };
	char *value;
	int error;

	if (node->kind != PL_CONF_SCALAR)
		return pl_conf_wrong_kind(p, row, node);
	error = expand(p, node, &value);
	if (error < 0)
		return error;
	if (row->check != NULL && row->check(value, &why) < 0) {
		error = pl_conf_fail(p->diag, node, "\"%s\": %s", p->path, why.text);
		free(value);
		return error;
	}
	*ret = value;
	return 0;
}

int pl_conf_set_choice(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	char words[256] = "";
	size_t n = 0, used = 0;
	int r;

	for (; row->choices[n] != NULL; n++) {
		if (strcmp(node->text, row->choices[n]) == 0) {
			*(unsigned int *)field(row, p->conf) = (unsigned int)n;
			return 0;
		}
		if (used < sizeof(words))
			used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s",
				n > 0 ? ", " : "", row->choices[n]);
	}
	r = pl_conf_fail(
		p->diag, node, "\"%s\" must be one of %s, not \"%s\"", p->path, words, node->text);
	pl_diag_nearest(p->diag, '"', node->text, row->choices, n);
	return r;
}

int pl_conf_set_double(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	double v;
	int error = row->type == PL_CONF_RATE ? pl_parse_rate(node->text, &v)
					      : pl_parse_double(node->text, &v);

	if (error == -EINVAL)
		return pl_conf_wrong_kind(p, row, node);
	if (error < 0 || ((row->min != 0 || row->max != 0) && v < (double)row->min) ||
		(row->max != 0 && v > (double)row->max))
		return pl_conf_out_of_range(p, row, node, node->text);
	*(double *)field(row, p->conf) = v;
	return 0;
}

int pl_conf_set_number(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	uint64_t v;
	int error;

	if (row->type == PL_CONF_SIZE)
		error = pl_parse_size(node->text, &v);
	else if (row->type == PL_CONF_DURATION)
		error = pl_parse_duration(node->text, &v);
	else
		error = pl_parse_u64(node->text, &v);
	if (error == -EINVAL)
		return pl_conf_wrong_kind(p, row, node);
	if (error < 0 || !pl_conf_in_range(row, v))
		return pl_conf_out_of_range(p, row, node, node->text);
	*(uint64_t *)field(row, p->conf) = v;
	return 0;
}

int pl_conf_set_string(const struct pl_conf_place *p, const struct pl_conf_row *row,
	const struct pl_conf_node *node)
{
	char **target = field(row, p->conf), *value = NULL;
	int error;

	error = pl_conf_make_string(p, row, node, &value);
	if (error < 0)
		return error;
	free(*target);
	*target = value;
	return 0;
}
