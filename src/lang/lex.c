/* SPDX-License-Identifier: BSD-2-Clause */
/* Splits the text of a query into tokens. */
#include "lang/lex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

/* ---- tokens that begin with a digit, a letter or a colon ---- */

static bool is_address(const char *word, size_t n)
{
	unsigned int points = 0, colons = 0;

	for (size_t i = 0; i < n; i++) {
		points += word[i] == '.';
		colons += word[i] == ':';
	}
	return colons >= 2 || (pl_query_is_digit(word[0]) && points >= 2);
}

/* An address; behind it "/" and digits make it a prefix. */
static int take_address(struct lexer *lx, const char *word)
{
	struct token *t = &lx->token;
	char text[NAME_MAX_LEN + 8];
	unsigned int bits;

	snprintf(text, sizeof(text), "%s", word);
	if (pl_parse_addr(text, &t->addr) < 0)
		return pl_query_fail(lx, t->at, "\"%s\" is not an address", text);
	t->kind = T_ADDR;
	if (lx->pos + 1 >= lx->len || lx->text[lx->pos] != '/' ||
		!pl_query_is_digit(lx->text[lx->pos + 1]))
		return 0;
	for (size_t n = strlen(text); n + 1 < sizeof(text); n++) {
		text[n] = lx->text[lx->pos++];
		text[n + 1] = '\0';
		if (lx->pos == lx->len || !pl_query_is_digit(lx->text[lx->pos]))
			break;
	}
	if (pl_parse_prefix(text, &t->addr, &bits) < 0)
		return pl_query_fail(lx, t->at, "\"%s\" is not a prefix such as 10.0.0.0/8", text);
	t->kind = T_PREFIX;
	t->bits = (uint8_t)bits;
	return 0;
}

static int take_number(struct lexer *lx, const char *word)
{
	struct token *t = &lx->token;
	char *end;
	int r = pl_parse_u64(word, &t->u);

	t->kind = T_NUMBER;
	if (r == 0)
		return 0;
	if (r == -ERANGE)
		return pl_query_fail(lx, t->at, "%s does not fit 64 bits", word);
	r = pl_parse_duration(word, &t->u);
	if (r == 0) {
		t->duration = true;
		return 0;
	}
	if (r == -ERANGE)
		return pl_query_fail(lx, t->at, "%s is too long a time", word);
	if (strspn(word, "0123456789.eE+-") == strlen(word)) {
		t->kind = T_REAL;
		t->d = strtod(word, &end);
		if (*end == '\0' && __builtin_isfinite(t->d))
			return 0;
	}
	return pl_query_fail(
		lx, t->at, "\"%s\" is neither a number nor a time such as 200ms", word);
}

static bool goes_on(const struct lexer *lx, uint32_t begin)
{
	char c = lx->text[lx->pos], last = lx->text[lx->pos - (lx->pos > begin)];

	if (pl_query_is_letter(c) || pl_query_is_digit(c) || c == '.' || c == ':')
		return true;
	/* 1e-3, but not 0x1e-3 */
	return (c == '-' || c == '+') && (last == 'e' || last == 'E') &&
	       pl_query_is_digit(lx->text[begin]) &&
	       (lx->pos - begin < 2 || (lx->text[begin + 1] | 0x20) != 'x') &&
	       lx->pos + 1 < lx->len && pl_query_is_digit(lx->text[lx->pos + 1]);
}

static int take_word(struct lexer *lx)
{
	struct token *t = &lx->token;
	uint32_t begin = lx->pos, n;

	do
		lx->pos++;
	while (lx->pos < lx->len && goes_on(lx, begin));
	n = lx->pos - begin;
	if (n >= NAME_MAX_LEN)
		return pl_query_fail(
			lx, begin, "a name or number of more than %d characters", NAME_MAX_LEN - 1);
	memcpy(t->name, lx->text + begin, n);
	t->name[n] = '\0';
	if (is_address(t->name, n))
		return take_address(lx, t->name);
	if (pl_query_is_digit(t->name[0]) || t->name[0] == '.')
		return take_number(lx, t->name);
	t->kind = T_NAME;
	if (strchr(t->name, ':') != NULL || t->name[n - 1] == '.')
		return pl_query_fail(lx, begin, "\"%s\" is neither a name nor an address", t->name);
	return 0;
}

/* '10.0.0.1' and "10.0.0.0/8", as other dialects write them; else a text. */
static int take_quoted(struct lexer *lx)
{
	struct token *t = &lx->token;
	const char *from = lx->text + lx->pos;
	const char *end = memchr(from + 1, from[0], lx->len - lx->pos - 1);
	unsigned int bits;
	size_t n;

	if (end == NULL)
		return pl_query_fail(lx, t->at, "the quote is not closed");
	n = (size_t)(end - from) - 1;
	if (n >= NAME_MAX_LEN)
		return pl_query_fail(
			lx, t->at, "the quoted text has more than %d characters", NAME_MAX_LEN - 1);
	memcpy(t->name, from + 1, n);
	t->name[n] = '\0';
	lx->pos += (uint32_t)n + 2;
	t->kind = T_ADDR;
	if (pl_parse_addr(t->name, &t->addr) == 0)
		return 0;
	t->kind = T_PREFIX;
	if (pl_parse_prefix(t->name, &t->addr, &bits) == 0)
		t->bits = (uint8_t)bits;
	else
		t->kind = T_TEXT;
	return 0;
}

/* ---- signs ---- */

static const struct {
	char text[3];
	enum token_kind kind;
} signs[] = { { "==", T_EQ }, { "!=", T_NE }, { "<>", T_NE }, { "<=", T_LE }, { ">=", T_GE },
	{ "=", T_EQ }, { "<", T_LT }, { ">", T_GT }, { "(", T_OPEN }, { ")", T_CLOSE },
	{ "{", T_OPEN_BRACE }, { "}", T_CLOSE_BRACE }, { ",", T_COMMA }, { "|", T_PIPE },
	{ "&", T_AMP }, { "+", T_PLUS }, { "-", T_MINUS }, { "*", T_STAR }, { "/", T_SLASH },
	{ "%", T_PERCENT } };

const char *pl_query_operator(enum token_kind kind)
{
	if (kind == T_AND)
		return "and";
	if (kind == T_OR)
		return "or";
	for (size_t i = sizeof(signs) / sizeof(signs[0]); i-- > 0;) {
		if (signs[i].kind == kind && strcmp(signs[i].text, "<>") != 0)
			return signs[i].text;
	}
	return "?";
}

static int take_sign(struct lexer *lx)
{
	static const char *const foreign[][2] = { { "&&", "and" }, { "||", "or" } };
	const char *at = lx->text + lx->pos;

	for (size_t i = 0; i < 2; i++) {
		if (strncmp(at, foreign[i][0], 2) == 0)
			return pl_query_fail(lx, lx->pos, "\"%s\" is written \"%s\" here",
				foreign[i][0], foreign[i][1]);
	}
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		size_t n = strlen(signs[i].text);

		if (strncmp(at, signs[i].text, n) == 0) {
			lx->token.kind = signs[i].kind;
			lx->pos += (uint32_t)n;
			return 0;
		}
	}
	if (*at == '!')
		return pl_query_fail(lx, lx->pos, "\"!\" is written \"not\" here");
	if (*at > ' ' && *at < 0x7f)
		return pl_query_fail(lx, lx->pos, "unexpected \"%c\"", *at);
	return pl_query_fail(lx, lx->pos, "unexpected byte 0x%02x", (unsigned char)*at);
}

static void skip_blanks(struct lexer *lx)
{
	while (lx->pos < lx->len) {
		if (strchr(" \t\r\n", lx->text[lx->pos]) != NULL) {
			lx->pos++;
		} else if (lx->pos + 1 < lx->len && lx->text[lx->pos] == '-' &&
			   lx->text[lx->pos + 1] == '-') {
			while (lx->pos < lx->len && lx->text[lx->pos] != '\n')
				lx->pos++;
		} else {
			break;
		}
	}
}

/* A semicolon ends the question, as in other systems: only blanks and remarks stand behind it. */
static int take_end(struct lexer *lx)
{
	lx->pos++;
	skip_blanks(lx);
	if (lx->pos < lx->len)
		return pl_query_fail(
			lx, lx->token.at, "\";\" ends a question, and more stands behind it");
	return 0;
}

int pl_query_next(struct lexer *lx)
{
	char c;
	int r;

	if (lx->error != 0)
		return lx->error;
	skip_blanks(lx);
	lx->token = (struct token){ .at = lx->pos };
	if (lx->pos == lx->len)
		return 0;
	c = lx->text[lx->pos];
	if (pl_query_is_letter(c) || pl_query_is_digit(c) || c == ':' || c == '.')
		r = take_word(lx);
	else if (c == '\'' || c == '"')
		r = take_quoted(lx);
	else if (c == ';')
		r = take_end(lx);
	else
		r = take_sign(lx);
	lx->token.len = lx->pos - lx->token.at;
	return r;
}

static uint32_t word_at(const struct lexer *lx, uint32_t at, const char *more)
{
	uint32_t n = 0;

	while (at + n < lx->len && lx->text[at + n] != '\0' &&
		(pl_query_is_letter(lx->text[at + n]) || pl_query_is_digit(lx->text[at + n]) ||
			strchr(more, lx->text[at + n]) != NULL))
		n++;
	return n;
}

int pl_query_next_word(struct lexer *lx)
{
	uint32_t n;
	bool name;

	if (lx->error != 0)
		return lx->error;
	skip_blanks(lx);
	n = word_at(lx, lx->pos, ".-");
	/* "on" is a word of the language, and a truth. */
	name = n > 0 && pl_query_is_letter(lx->text[lx->pos]) && word_at(lx, lx->pos, ".") == n &&
	       (n != 2 || strncmp(lx->text + lx->pos, "on", 2) != 0);
	if (n == 0 || n >= NAME_MAX_LEN || name || lx->text[lx->pos] == '-')
		return pl_query_next(lx);
	lx->token = (struct token){ .kind = T_TEXT, .at = lx->pos, .len = n };
	memcpy(lx->token.name, lx->text + lx->pos, n);
	lx->pos += n;
	return 0;
}

bool pl_query_take_into(struct lexer *lx)
{
	const char *from, *end;

	if (!pl_query_is(lx, "into"))
		return false;
	if (lx->depth > 0) {
		pl_query_fail(lx, lx->token.at,
			"INTO stands at the end of the whole question, not in a sub-query");
		return true;
	}
	skip_blanks(lx);
	from = lx->text + lx->pos;
	if (lx->pos == lx->len || (from[0] != '\'' && from[0] != '"')) {
		pl_query_next(lx);
		pl_query_expected(lx, "an output in quotes: INTO 'file:PATH', 'kafka://HOST/TOPIC' "
				      "or '-'");
		return true;
	}
	end = memchr(from + 1, from[0], lx->len - lx->pos - 1);
	if (end == NULL || end == from + 1) {
		pl_query_fail(lx, lx->pos,
			end == NULL ? "the quote is not closed" : "the output has no name");
		return true;
	}
	lx->into = pl_query_new_text(lx, from + 1, (size_t)(end - from) - 1);
	lx->pos += (uint32_t)(end - from) + 1;
	pl_query_next(lx);
	return true;
}

bool pl_query_name_follows(const struct lexer *lx)
{
	const uint32_t at = pl_query_behind_blanks(lx, lx->pos);

	return at < lx->len && pl_query_is_letter(lx->text[at]);
}

bool pl_query_follows(const struct lexer *lx, const char *word)
{
	const uint32_t at = pl_query_behind_blanks(lx, lx->pos);

	return word_at(lx, at, "") == strlen(word) &&
	       strncasecmp(lx->text + at, word, strlen(word)) == 0;
}

bool pl_query_is(const struct lexer *lx, const char *word)
{
	return lx->token.kind == T_NAME && strcasecmp(lx->token.name, word) == 0;
}

bool pl_query_take(struct lexer *lx, const char *word)
{
	if (!pl_query_is(lx, word))
		return false;
	pl_query_next(lx);
	return true;
}

bool pl_query_take_kind(struct lexer *lx, enum token_kind kind)
{
	if (lx->error != 0 || lx->token.kind != kind)
		return false;
	pl_query_next(lx);
	return true;
}
