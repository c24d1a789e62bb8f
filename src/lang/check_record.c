/* SPDX-License-Identifier: BSD-2-Clause */
/* Properties that only paths, hops, events and values have: values that may be missing, words, ids,
 * texts, and the hops of a path. Conditions mean the same as in --where (record/where.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "lang/plan.h"

#define HOPS     "hops."
#define HOPS_LEN 5

/* ---- words, ids and texts beside a column ---- */

/* Returns the text of an operand; NULL when the operand cannot be a word. */
static const char *text_of(const struct ast *ast)
{
	return ast->kind == A_NAME || ast->kind == A_TEXT ? ast->name : NULL;
}

static bool find_word(enum pl_form form, const char *text, uint64_t *ret)
{
	for (unsigned int v = 0; v < 256; v++) {
		const char *word = pl_form_word(form, v);

		if (word != NULL && strcmp(word, text) == 0) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static const struct node *no_word(
	struct checker *c, const struct ast *ast, const struct column *column, const char *text)
{
	const char *words[256], *nearest;
	char list[280] = "";
	size_t used = 0, n = 0;

	for (unsigned int v = 0; v < 256; v++) {
		words[n] = pl_form_word(column->form, v);
		if (words[n] == NULL)
			continue;
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
				n == 0 ? "" : ", ", words[n]);
		n++;
	}
	nearest = text != NULL ? pl_nearest(text, words, n) : NULL;
	if (nearest != NULL)
		return pl_query_check_error(c, ast->at, "%s cannot be \"%s\", did you mean \"%s\"?",
			column->name, text, nearest);
	if (text != NULL)
		return pl_query_check_error(c, ast->at, "%s cannot be \"%s\"; it is one of %s",
			column->name, text, list);
	return pl_query_check_error(
		c, ast->at, "%s is compared with a word: %s", column->name, list);
}

/* Digits of an id are hexadecimal, however they are written. */
static const struct node *id(
	struct checker *c, const struct ast *ast, const struct column *column, const char *text)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	const size_t n = strlen(digits);

	if (n == 0 || n > 16 || strspn(digits, "0123456789abcdefABCDEF") != n)
		return pl_query_check_error(c, ast->at,
			"%s is compared with an id of up to 16 hexadecimal digits, and \"%s\" is none",
			column->name, text);
	return pl_query_constant(c, PL_QUERY_UNSIGNED, strtoull(digits, NULL, 16), ast->at);
}

static const struct node *boolean(struct checker *c, const struct ast *ast, const char *text)
{
	bool v;

	if (pl_parse_bool(text, &v) < 0)
		return pl_query_check_error(c, ast->at, "\"%s\" is neither true nor false", text);
	return pl_query_constant(c, PL_QUERY_BOOL, v, ast->at);
}

/* Checks a number in quotes that is compared with a column of numbers, or a time with one of times. */
static const struct node *quoted_number(
	struct checker *c, const struct ast *ast, const struct column *column)
{
	/* A_TEXT has one. */
	const char *text = ast->name != NULL ? ast->name : "";
	const bool negative = text[0] == '-', time = pl_query_is_time(column);
	uint64_t v;

	if (pl_parse_u64(text + negative, &v) < 0 && pl_parse_duration(text + negative, &v) < 0 &&
		(!time || pl_parse_time(text, 0, &v) < 0))
		return pl_query_check_error(c, ast->at, "\"%s\" is %s", text,
			time ? "neither a time such as 2026-11-22T01:37:27Z nor a number"
			     : "not a number");
	if (!negative)
		return pl_query_constant(c, PL_QUERY_UNSIGNED, v, ast->at);
	if (v > (uint64_t)1 << 63)
		return pl_query_check_error(
			c, ast->at, "%s does not fit a signed number", ast->name);
	return pl_query_constant(c, PL_QUERY_SIGNED, -v, ast->at);
}

/* The digits of a number as they are written. */
static const char *digits_at(const struct checker *c, const struct ast *ast, char text[32])
{
	uint32_t n = 0;

	while (ast->at + n < c->lx->len && n < 31 &&
		strchr("0123456789abcdefABCDEFxX", c->lx->text[ast->at + n]) != NULL)
		n++;
	memcpy(text, c->lx->text + ast->at, n);
	text[n] = '\0';
	return text;
}

static const struct node *text_beside(
	struct checker *c, const struct ast *ast, const struct node *with)
{
	if (with == NULL || with->op != N_COLUMN)
		return pl_query_check_error(
			c, ast->at, "\"%s\" is a text: it stands beside a column", ast->name);
	if (with->type == PL_QUERY_BOOL)
		return boolean(c, ast, ast->name);
	if (with->type == PL_QUERY_UNSIGNED || with->type == PL_QUERY_SIGNED)
		return quoted_number(c, ast, with->column);
	return pl_query_check_error(c, ast->at,
		"quotes stand around words, addresses and prefixes; \"%s\" is none of them here",
		ast->name);
}

/* An operand as it is written, without its quotes: beside a text, an address or a number is a text
 * as well. */
static size_t written(const struct checker *c, const struct ast *ast, const char **ret)
{
	const char *from = c->lx->text + ast->at;
	const char *const end = c->lx->text + c->lx->len;
	const char quote = *from == '\'' || *from == '"' ? *from++ : '\0';
	size_t n = 0;

	if (ast->kind == A_TEXT || ast->kind == A_NAME)
		from = ast->name;
	*ret = from;
	if (from == ast->name)
		return strlen(from);
	while (from + n < end &&
		(quote != '\0' ? from[n] != quote
			       : pl_query_is_letter(from[n]) || pl_query_is_digit(from[n]) ||
					 strchr(".:/", from[n]) != NULL))
		n++;
	return n;
}

static const struct node *text_constant(struct checker *c, const struct ast *ast)
{
	const char *from;
	const size_t n = written(c, ast, &from);
	struct node *node;

	if (n > PL_TEXT_TOLD)
		return pl_query_check_error(
			c, ast->at, "no text has more than %d characters", PL_TEXT_TOLD);
	node = pl_query_node(c, N_CONST, PL_QUERY_TEXT, ast->at);
	if (node == NULL)
		return NULL;
	node->text = pl_query_new_text(c->lx, from, n);
	return node->text != NULL ? node : NULL;
}

/* True when the operand may be compared with a text: it is written without blanks, and is no column
 * of texts. */
static bool is_text(struct checker *c, const struct ast *ast)
{
	const struct column *column;

	if (ast->kind != A_NAME)
		return ast->kind == A_TEXT || ast->kind == A_ADDR || ast->kind == A_PREFIX ||
		       ast->kind == A_NUMBER;
	column = pl_query_find_column(c->schema, ast->name, NULL);
	return column == NULL || column->type != PL_QUERY_TEXT;
}

const struct node *pl_query_check_beside(
	struct checker *c, const struct ast *ast, const struct node *with, check_fn *check)
{
	const struct column *column = with != NULL && with->op == N_COLUMN ? with->column : NULL;
	const char *text = text_of(ast);
	const struct node *node;
	char digits[32];
	uint64_t v;

	if (with != NULL && with->type == PL_QUERY_TEXT && is_text(c, ast))
		return text_constant(c, ast);
	if (pl_query_check_word(c, ast, with, &node))
		return node;
	/* Reasons, roles and a method can be words or numbers. */
	if (column != NULL && ast->kind == A_NUMBER && pl_form_of_flat_words(column->form))
		return check(c, ast);

	if (column != NULL && pl_query_form_has_words(column->form)) {
		if (text != NULL && find_word(column->form, text, &v))
			return pl_query_constant(c, PL_QUERY_UNSIGNED, v, ast->at);
		if (ast->kind != A_NAME || !pl_query_is_column(c, ast))
			return no_word(c, ast, column, text);
	}
	if (column != NULL && column->form == PL_FORM_HEX64) {
		if (ast->kind == A_NUMBER)
			text = digits_at(c, ast, digits);
		if (text != NULL && !pl_query_is_column(c, ast))
			return id(c, ast, column, text);
	}
	if (column != NULL && with->type == PL_QUERY_BOOL && ast->kind == A_NAME &&
		!pl_query_is_column(c, ast) && pl_parse_bool(text, &(bool){ false }) == 0)
		return boolean(c, ast, text);
	return ast->kind == A_TEXT ? text_beside(c, ast, with) : check(c, ast);
}

/* ---- hops of a path ---- */

static bool names_hops(const struct ast *ast)
{
	if (ast == NULL)
		return false;
	if (ast->kind == A_NAME && strncmp(ast->name, HOPS, HOPS_LEN) == 0)
		return true;
	for (const struct ast *x = ast->list; x != NULL; x = x->next) {
		if (names_hops(x))
			return true;
	}
	return names_hops(ast->a) || names_hops(ast->b);
}

static bool is_presence(const struct ast *ast)
{
	return ast->kind == A_CALL &&
	       (strcasecmp(ast->name, "exists") == 0 || strcasecmp(ast->name, "missing") == 0);
}

bool pl_query_is_hop_test(const struct checker *c, const struct ast *ast)
{
	if (c->in_hop || c->stage->hops.n == 0)
		return false;
	if (ast->kind != A_IN && !is_presence(ast) &&
		(ast->kind != A_BINARY || ast->op < T_EQ || ast->op > T_GE))
		return false;
	return names_hops(ast);
}

/* A name within the test of a hop, with or without "hops." before it. */
const struct node *pl_query_check_name_of_hop(struct checker *c, const struct ast *ast)
{
	const char *name = ast->name;
	const struct column *column;

	if (strncmp(name, HOPS, HOPS_LEN) == 0)
		name += HOPS_LEN;
	column = pl_query_find_column(c->schema, name, NULL);
	if (column != NULL)
		return pl_query_column_node(c, column, ast->at);
	if (pl_query_find_column(&c->stage->input, ast->name, NULL) != NULL)
		return pl_query_check_error(c, ast->at,
			"\"%s\" is a field of the path, not of a hop: test it outside of the parentheses",
			ast->name);
	return NULL;
}

/* ---- values that may be missing ---- */

const struct node *pl_query_check_exists(struct checker *c, const struct ast *ast, check_fn *check)
{
	const bool missing = strcasecmp(ast->name, "missing") == 0;
	const struct node *column = ast->list != NULL ? check(c, ast->list) : NULL;
	const struct node *node;

	if (column == NULL && ast->list != NULL)
		return NULL;
	if (column == NULL || ast->list->next != NULL || column->op != N_COLUMN || ast->distinct)
		return pl_query_check_error(c, ast->at, "%s needs the name of a column", ast->name);
	node = pl_query_operation(c, N_EXISTS, PL_QUERY_BOOL, ast->at, column, NULL);
	return missing && node != NULL
		       ? pl_query_operation(c, N_NOT, PL_QUERY_BOOL, ast->at, node, NULL)
		       : node;
}
