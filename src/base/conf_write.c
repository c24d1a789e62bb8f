/* SPDX-License-Identifier: BSD-2-Clause */
/* Configuration back to text: the dump and the template. */
#include <stdio.h>
#include <string.h>

#include "base/conf.h"
#include "base/num.h"
#include "base/utf8.h"

#define WIDTH  100
#define INDENT 2

/* One walk writes both texts: that of a configuration (dump) and that of the schema alone
 * (template, conf NULL). */
struct writer {
	struct pl_buf *out;
	bool commented; /* template: the present lines begin with "# " */
};

static void margin(struct writer *w, unsigned int depth)
{
	if (w->commented)
		pl_buf_str(w->out, "# ");
	for (unsigned int i = 0; i < depth * INDENT; i++)
		pl_buf_chr(w->out, ' ');
}

/* Bytes that YAML reads as themselves anywhere in an unquoted value. */
static bool is_plain(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || text[0] == '-' || text[n - 1] == ':')
		return false;
	/* Three dots end a document only at the start of a line, but are quoted everywhere. */
	return strspn(text,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-") ==
		       n &&
	       strcmp(text, "...") != 0;
}

/* True when YAML (1.2, 5.1) prints this letter and does not take it for a line break or a mark. */
static bool is_printable(uint32_t cp)
{
	return (cp >= 0x20 && cp < 0x7f) ||
	       (cp >= 0xa0 && cp <= 0xd7ff && cp != 0x2028 && cp != 0x2029) ||
	       (cp >= 0xe000 && cp <= 0xfffd && cp != 0xfeff) || cp >= 0x10000;
}

/* expands: the text may hold ${NAME} already; else a dollar is only a dollar. */
static void add_text(struct pl_buf *out, const char *text, bool expands)
{
	size_t n = strlen(text);

	if (is_plain(text)) {
		pl_buf_str(out, text);
		return;
	}
	pl_buf_chr(out, '"');
	while (n > 0) {
		size_t len;
		uint32_t cp;

		/* Values come from a parser that took only UTF-8; others would not read back. */
		if (!pl_utf8_next(text, n, &len, &cp))
			pl_buf_str(out, "\xef\xbf\xbd");
		else if (cp == '"' || cp == '\\')
			pl_buf_printf(out, "\\%c", (char)cp);
		else if (cp == '$' && !expands)
			pl_buf_str(out, "$$");
		else if (is_printable(cp))
			pl_buf_add(out, text, len);
		else
			pl_buf_printf(out, "\\u%04x", (unsigned int)cp);
		text += len;
		n -= len;
	}
	pl_buf_chr(out, '"');
}

/* True when the value is zero, and zero is out of range: no value was given. */
static bool is_absent(const struct pl_conf_row *row, const void *value)
{
	if (row->def != NULL || row->required || row->min == 0)
		return false;
	if (row->type == PL_CONF_DOUBLE || row->type == PL_CONF_RATE)
		return *(const double *)value == 0;
	return (row->type == PL_CONF_U64 || row->type == PL_CONF_SIZE ||
		       row->type == PL_CONF_DURATION) &&
	       *(const uint64_t *)value == 0;
}

static void add_scalar(struct pl_buf *out, const struct pl_conf_row *row, const void *value)
{
	char text[PL_EXACT_TEXT_MAX];

	if (is_absent(row, value))
		return;
	switch (row->type) {
	case PL_CONF_BOOL:
		pl_buf_str(out, *(const bool *)value ? "true" : "false");
		break;
	case PL_CONF_U64:
		pl_buf_u64(out, *(const uint64_t *)value);
		break;
	case PL_CONF_DOUBLE:
	case PL_CONF_RATE:
		pl_buf_double(out, *(const double *)value);
		break;
	case PL_CONF_SIZE:
		pl_format_size_exact(text, *(const uint64_t *)value);
		pl_buf_str(out, text);
		break;
	case PL_CONF_DURATION:
		pl_format_duration_exact(text, *(const uint64_t *)value);
		pl_buf_str(out, text);
		break;
	case PL_CONF_CHOICE:
		add_text(out, row->choices[*(const unsigned int *)value], true);
		break;
	case PL_CONF_STRING:
		if (*(char *const *)value != NULL)
			add_text(out, *(char *const *)value, false);
		break;
	case PL_CONF_STRINGS:
	case PL_CONF_LIST:
	case PL_CONF_PAIRS:
	case PL_CONF_END:
		break;
	}
}

/* The segment of a dotted key that begins at `at`. */
static size_t segment(const struct pl_conf_row *row, size_t at)
{
	return strcspn(row->key + at, ".");
}

/* True when an earlier row has the same key up to `end`: then its map was written already. */
static bool written_before(
	const struct pl_conf_row *rows, const struct pl_conf_row *row, size_t end)
{
	for (; rows != row; rows++) {
		if (strncmp(rows->key, row->key, end) == 0 && rows->key[end] == '.')
			return true;
	}
	return false;
}

static void dump_map(struct writer *w, const struct pl_conf_row *rows, const char *prefix,
	size_t at, const void *conf, unsigned int depth, bool item);

static void dump_list(struct writer *w, const struct pl_conf_row *row,
	const struct pl_conf_list *list, unsigned int depth)
{
	if (list->n == 0)
		pl_buf_str(w->out, " []");
	pl_buf_chr(w->out, '\n');
	for (size_t i = 0; i < list->n; i++) {
		margin(w, depth);
		pl_buf_str(w->out, "- ");
		if (row->type == PL_CONF_LIST) {
			dump_map(w, row->rows, "", 0,
				(const char *)list->items + i * row->item_size, depth + 1, true);
		} else {
			add_text(w->out, ((char *const *)list->items)[i], false);
			pl_buf_chr(w->out, '\n');
		}
	}
}

static void dump_pairs(struct writer *w, const struct pl_conf_list *list, unsigned int depth)
{
	const struct pl_conf_pair *pair = list->items;

	if (list->n == 0)
		pl_buf_str(w->out, " {}");
	pl_buf_chr(w->out, '\n');
	for (size_t i = 0; i < list->n; i++) {
		margin(w, depth);
		/* Keys are never expanded, so their dollars are not doubled. */
		add_text(w->out, pair[i].name, true);
		pl_buf_str(w->out, ": ");
		add_text(w->out, pair[i].value, false);
		pl_buf_chr(w->out, '\n');
	}
}

/* Writes the rows whose key begins with the `at` bytes of prefix. item: the first line follows "- ". */
static void dump_map(struct writer *w, const struct pl_conf_row *rows, const char *prefix,
	size_t at, const void *conf, unsigned int depth, bool item)
{
	for (const struct pl_conf_row *row = rows; row->type != PL_CONF_END; row++) {
		const void *value = (const char *)conf + row->offset;
		size_t n;

		if (strncmp(row->key, prefix, at) != 0)
			continue;
		n = segment(row, at);
		if (row->key[at + n] == '.' && written_before(rows, row, at + n))
			continue;
		if (!item)
			margin(w, depth);
		item = false;
		pl_buf_add(w->out, row->key + at, n);
		pl_buf_chr(w->out, ':');
		if (row->key[at + n] == '.') {
			pl_buf_chr(w->out, '\n');
			dump_map(w, rows, row->key, at + n + 1, conf, depth + 1, false);
		} else if (row->type == PL_CONF_LIST || row->type == PL_CONF_STRINGS) {
			dump_list(w, row, value, depth + 1);
		} else if (row->type == PL_CONF_PAIRS) {
			dump_pairs(w, value, depth + 1);
		} else {
			size_t before = w->out->len;

			pl_buf_chr(w->out, ' ');
			add_scalar(w->out, row, value);
			if (w->out->len == before + 1)
				w->out->len = before; /* absent: nothing behind the colon */
			pl_buf_chr(w->out, '\n');
		}
	}
}

void pl_conf_dump(const struct pl_conf_row *rows, const void *conf, struct pl_buf *out)
{
	struct writer w = { .out = out };

	dump_map(&w, rows, "", 0, conf, 0, false);
}

/* Words as comment lines, broken at WIDTH. */
static void add_comment(struct writer *w, unsigned int depth, const char *text)
{
	size_t column = 0;

	while (*text != '\0') {
		size_t n = strcspn(text, " ");

		if (column == 0 || column + 1 + n > WIDTH) {
			if (column != 0)
				pl_buf_chr(w->out, '\n');
			for (unsigned int i = 0; i < depth * INDENT; i++)
				pl_buf_chr(w->out, ' ');
			pl_buf_str(w->out, "##");
			column = depth * INDENT + 2;
		}
		pl_buf_chr(w->out, ' ');
		pl_buf_add(w->out, text, n);
		column += 1 + n;
		text += n + strspn(text + n, " ");
	}
	if (column > 0)
		pl_buf_chr(w->out, '\n');
}

static void add_bound(struct pl_buf *out, const struct pl_conf_row *row, uint64_t v)
{
	char text[PL_EXACT_TEXT_MAX];

	if (row->type == PL_CONF_SIZE) {
		pl_format_size_exact(text, v);
		pl_buf_str(out, text);
	} else if (row->type == PL_CONF_DURATION) {
		pl_format_duration_exact(text, v);
		pl_buf_str(out, text);
	} else {
		pl_buf_u64(out, v);
	}
}

/* Help, choices and range of a row, as words. */
static void describe(const struct pl_conf_row *row, struct pl_buf *out)
{
	pl_buf_str(out, row->help != NULL ? row->help : "");
	if (row->required)
		pl_buf_str(out, " (required)");
	if (row->type == PL_CONF_CHOICE) {
		for (size_t i = 0; row->choices[i] != NULL; i++)
			pl_buf_printf(out, "%s%s", i == 0 ? " One of: " : ", ", row->choices[i]);
		pl_buf_chr(out, '.');
	}
	if ((row->min == 0 && row->max == 0) || row->type == PL_CONF_STRING)
		return;
	pl_buf_str(out, row->type == PL_CONF_LIST || row->type == PL_CONF_STRINGS ||
					row->type == PL_CONF_PAIRS
				? " Entries: "
				: " Range: ");
	if (row->max == 0) {
		pl_buf_str(out, "at least ");
		add_bound(out, row, row->min);
	} else {
		add_bound(out, row, row->min);
		pl_buf_str(out, " to ");
		add_bound(out, row, row->max);
	}
	pl_buf_chr(out, '.');
}

/* Writes the default; for a required key without one, the least possible value. */
static void add_example(struct pl_buf *out, const struct pl_conf_row *row)
{
	if (row->def == NULL && !row->required)
		return;
	pl_buf_chr(out, ' ');
	if (row->type == PL_CONF_STRING)
		add_text(out, row->def != NULL ? row->def : "", true);
	else if (row->def != NULL)
		pl_buf_str(out, row->def);
	else if (row->type == PL_CONF_BOOL)
		pl_buf_str(out, "false");
	else if (row->type == PL_CONF_CHOICE)
		pl_buf_str(out, row->choices[0]);
	else if (row->type == PL_CONF_STRINGS)
		pl_buf_str(out, "[]");
	else if (row->type == PL_CONF_PAIRS)
		pl_buf_str(out, "{}");
	else
		add_bound(out, row, row->min);
}

static void template_map(struct writer *w, const struct pl_conf_row *rows, const char *prefix,
	size_t at, unsigned int depth, bool commented);

static void template_row(struct writer *w, const struct pl_conf_row *row, size_t at,
	unsigned int depth, bool commented)
{
	struct pl_buf words;
	bool hidden;

	pl_buf_init(&words);
	describe(row, &words);
	w->out->failed |= words.failed;
	add_comment(w, depth, words.data != NULL ? words.data : "");
	pl_buf_done(&words);
	hidden = commented || !row->required;
	w->commented = hidden;
	margin(w, depth);
	pl_buf_printf(w->out, "%s:", row->key + at);
	if (row->type != PL_CONF_LIST)
		add_example(w->out, row);
	pl_buf_chr(w->out, '\n');
	if (row->type == PL_CONF_LIST) {
		margin(w, depth);
		pl_buf_str(w->out, "-\n");
		template_map(w, row->rows, "", 0, depth + 1, hidden);
	}
}

static void template_map(struct writer *w, const struct pl_conf_row *rows, const char *prefix,
	size_t at, unsigned int depth, bool commented)
{
	for (const struct pl_conf_row *row = rows; row->type != PL_CONF_END; row++) {
		size_t n;

		if (strncmp(row->key, prefix, at) != 0)
			continue;
		n = segment(row, at);
		if (row->key[at + n] != '.') {
			template_row(w, row, at, depth, commented);
			continue;
		}
		if (written_before(rows, row, at + n))
			continue;
		if (depth == 0)
			pl_buf_chr(w->out, '\n');
		w->commented = commented;
		margin(w, depth);
		pl_buf_add(w->out, row->key + at, n);
		pl_buf_str(w->out, ":\n");
		template_map(w, rows, row->key, at + n + 1, depth + 1, commented);
	}
}

void pl_conf_template(const struct pl_conf_row *rows, struct pl_buf *out)
{
	struct writer w = { .out = out };

	template_map(&w, rows, "", 0, 0, false);
}
