/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors with their places; and words of the language: the begin of a step of the pipe form, and the
 * nearest word to one that is none of them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "lang/lex.h"

int pl_query_fail(struct lexer *lx, uint32_t at, const char *fmt, ...)
{
	uint32_t line = 1, begin = 0;
	char text[sizeof(lx->diag->text)];
	va_list ap;

	if (lx->error != 0)
		return lx->error;
	lx->error = -EINVAL;
	lx->token.kind = T_END;
	for (uint32_t i = 0; i < at && i < lx->len; i++) {
		if (lx->text[i] == '\n') {
			line++;
			begin = i + 1;
		}
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pl_diag_at(lx->diag, line, at - begin + 1, "%s", text);
	return lx->error;
}

void *pl_query_new(struct lexer *lx, size_t size)
{
	void *made = pl_query_arena_new(lx->arena, size);

	if (made == NULL && lx->error == 0) {
		lx->error = -ENOMEM;
		lx->token.kind = T_END;
		pl_diag_set(lx->diag, "out of memory");
	}
	return made;
}

char *pl_query_new_text(struct lexer *lx, const char *text, size_t n)
{
	char *copy = pl_query_new(lx, n + 1);

	if (copy != NULL)
		memcpy(copy, text, n);
	return copy;
}

/* ---- words ---- */

static const char *const steps[] = { "where", "map", "group", "sort", "limit", "emit", "distinct",
	"join", "left", "anti", "inner", "into", "zip" };

/* Words that continue or end an expression. */
static const char *const behind[] = { "and", "or", "not", "in", "as", "over", "agg", "desc", "asc",
	"on", "step", "within" };

static const char *const of_select[] = { "EXPLAIN", "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP",
	"HAVING", "WINDOW", "ORDER", "LIMIT", "EMIT", "INTO", "FIRST", "FINAL", "TUMBLE", "HOP",
	"SESSION", "JOIN", "INNER", "LEFT", "ANTI", "WITH", "AND", "NOT", "DESC", "ASC", "FOLD",
	"STEP", "END", "WHEN", "WITHIN", "ZIP" };

static const char *const of_pipe[] = { "where", "map", "group", "sort", "limit", "emit", "distinct",
	"join", "left", "anti", "inner", "into", "first", "final", "over", "step", "agg", "session",
	"and", "not", "desc", "asc", "within", "zip" };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

uint32_t pl_query_behind_blanks(const struct lexer *lx, uint32_t at)
{
	while (at < lx->len && strchr(" \t\r\n", lx->text[at]) != NULL)
		at++;
	return at;
}

/* The word behind `from`; an empty one where there is none. Returns where it ends. */
static uint32_t word_behind(const struct lexer *lx, uint32_t from, char word[NAME_MAX_LEN])
{
	uint32_t n = 0;

	from = pl_query_behind_blanks(lx, from);
	while (from + n < lx->len && n < NAME_MAX_LEN - 1 &&
		(pl_query_is_letter(lx->text[from + n]) || pl_query_is_digit(lx->text[from + n]))) {
		word[n] = lx->text[from + n];
		n++;
	}
	word[n] = '\0';
	return from + n;
}

static bool quote_behind(const struct lexer *lx, uint32_t at)
{
	at = pl_query_behind_blanks(lx, at);
	return at < lx->len && (lx->text[at] == '\'' || lx->text[at] == '"');
}

/* Two words, or a word and a text in quotes, behind each other are in no expression: the first one is meant to be a step when it is
 * like one. */
bool pl_query_at_step(const struct lexer *lx)
{
	char word[NAME_MAX_LEN], next[NAME_MAX_LEN];
	uint32_t end;

	if (!lx->pipe || lx->token.kind != T_PIPE)
		return false;
	end = word_behind(lx, lx->pos, word);
	if (is_one_of(word, steps, COUNT(steps)))
		return true;
	word_behind(lx, end, next);
	return pl_query_is_letter(word[0]) && (next[0] != '\0' || quote_behind(lx, end)) &&
	       !is_one_of(next, behind, COUNT(behind)) &&
	       pl_nearest(word, steps, COUNT(steps)) != NULL;
}

/* Finds the word that was probably meant at a place where such a word is not allowed. */
static const char *meant(const struct lexer *lx)
{
	const char *const *words = lx->pipe ? of_pipe : of_select;
	const size_t n = lx->pipe ? COUNT(of_pipe) : COUNT(of_select);

	if (lx->token.kind != T_NAME || lx->token.len < 3 || is_one_of(lx->token.name, words, n))
		return NULL;
	return pl_nearest(lx->token.name, words, n);
}

int pl_query_expected(struct lexer *lx, const char *what)
{
	const char *near = meant(lx);

	if (lx->token.kind == T_END)
		return pl_query_fail(lx, lx->token.at, "expected %s, but the query ends", what);
	return pl_query_fail(lx, lx->token.at, "expected %s, not \"%.*s\"%s%s%s", what,
		(int)(lx->token.len < 60 ? lx->token.len : 60), lx->text + lx->token.at,
		near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
		near != NULL ? "\"?" : "");
}
