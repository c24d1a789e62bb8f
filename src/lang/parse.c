/* SPDX-License-Identifier: BSD-2-Clause */
/* Recursive descent over the tokens of a query. Errors are sticky in the lexer: after the first one
 * every token is the end, so the functions need not look at each step; NULL is returned, and
 * half-built parts are freed with the arena. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lang/ast.h"

/* ---- expressions ---- */

static struct ast *new_ast(struct lexer *lx, enum ast_kind kind, uint32_t at)
{
	struct ast *ast = pl_query_new(lx, sizeof(*ast));

	if (ast == NULL)
		return NULL;
	ast->kind = kind;
	ast->at = at;
	return ast;
}

const char *pl_query_take_name(struct lexer *lx, const char *what)
{
	/* Words that continue the query: not names, so that a missing part before them is
	 * reported. */
	static const char *const words[] = { "select", "from", "where", "group", "having", "order",
		"limit", "emit", "into", "join", "on", "as", "and", "or", "not", "in", "by",
		"with" };
	const char *name;

	if (lx->error != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (lx->token.kind != T_NAME || pl_query_is(lx, words[i])) {
			pl_query_expected(lx, what);
			return NULL;
		}
	}
	name = pl_query_new_text(lx, lx->token.name, strlen(lx->token.name));
	pl_query_next(lx);
	return name;
}

int pl_query_parse_list(struct lexer *lx, struct ast **ret)
{
	struct ast **tail = ret;

	do {
		*tail = pl_query_parse_expr(lx);
		if (*tail == NULL)
			return lx->error;
		tail = &(*tail)->next;
	} while (pl_query_take_kind(lx, T_COMMA));
	return lx->error;
}

static void enter(struct lexer *lx)
{
	if (++lx->depth > QUERY_DEPTH_MAX)
		pl_query_fail(lx, lx->token.at, "more than %d parentheses within each other",
			QUERY_DEPTH_MAX);
}

static void leave(struct lexer *lx, uint32_t open_at)
{
	lx->depth--;
	if (!pl_query_take_kind(lx, T_CLOSE) && lx->error == 0) {
		char what[80];

		snprintf(what, sizeof(what), "\")\" for the \"(\" at character %u", open_at + 1);
		pl_query_expected(lx, what);
	}
}

/* The arguments behind the name of a function. */
static struct ast *parse_call(struct lexer *lx, const char *name, uint32_t at)
{
	struct ast *call = new_ast(lx, A_CALL, at);
	uint32_t open_at = lx->token.at;

	if (call == NULL)
		return NULL;
	call->name = name;
	enter(lx);
	pl_query_next(lx);
	if (lx->token.kind == T_STAR) {
		call->star = true;
		pl_query_next(lx);
	} else if (lx->token.kind != T_CLOSE) {
		call->distinct = pl_query_take(lx, "distinct");
		pl_query_parse_list(lx, &call->list);
	} else if (strcasecmp(name, "count") == 0) {
		call->star = true;
	}
	leave(lx, open_at);
	return lx->error == 0 ? call : NULL;
}

static struct ast *parse_literal(struct lexer *lx)
{
	static const enum ast_kind kinds[] = { [T_NUMBER] = A_NUMBER,
		[T_REAL] = A_REAL,
		[T_ADDR] = A_ADDR,
		[T_PREFIX] = A_PREFIX,
		[T_TEXT] = A_TEXT };
	struct ast *ast = new_ast(lx, kinds[lx->token.kind], lx->token.at);

	if (ast == NULL)
		return NULL;
	ast->bits = lx->token.bits;
	ast->addr = lx->token.addr; /* widest member of the union */
	ast->name = pl_query_new_text(lx, lx->token.name, strlen(lx->token.name));
	pl_query_next(lx);
	return ast;
}

static struct ast *parse_primary(struct lexer *lx)
{
	uint32_t at = lx->token.at;
	struct ast *ast;
	const char *name;

	if (lx->token.kind == T_OPEN) {
		enter(lx);
		pl_query_next(lx);
		ast = pl_query_parse_expr(lx);
		leave(lx, at);
		return ast;
	}
	if (lx->token.kind >= T_NUMBER && lx->token.kind <= T_TEXT)
		return parse_literal(lx);
	if (pl_query_is(lx, "true") || pl_query_is(lx, "false")) {
		ast = new_ast(lx, A_BOOL, at);
		if (ast != NULL)
			ast->u = pl_query_is(lx, "true");
		pl_query_next(lx);
		return ast;
	}
	name = pl_query_take_name(lx, "a column, a value or a function");
	if (name == NULL)
		return NULL;
	if (lx->token.kind == T_OPEN)
		return parse_call(lx, name, at);
	ast = new_ast(lx, A_NAME, at);
	if (ast != NULL)
		ast->name = name;
	return ast;
}

static struct ast *parse_unary(struct lexer *lx)
{
	uint32_t at = lx->token.at;
	unsigned int n = 0;
	struct ast *ast;

	while (pl_query_take_kind(lx, T_MINUS))
		n++;
	ast = parse_primary(lx);
	for (; n > 0 && ast != NULL; n--) {
		struct ast *neg = new_ast(lx, A_NEG, at);

		if (neg != NULL)
			neg->a = ast;
		ast = neg;
	}
	return ast;
}

static struct ast *binary(
	struct lexer *lx, enum token_kind op, uint32_t at, struct ast *a, struct ast *b)
{
	struct ast *ast = b != NULL ? new_ast(lx, A_BINARY, at) : NULL;

	if (ast != NULL) {
		ast->op = op;
		ast->a = a;
		ast->b = b;
	}
	return ast;
}

/* Operators of numbers by precedence, the lowest first. */
static const uint8_t levels[][4] = { { T_PIPE }, { T_AMP }, { T_PLUS, T_MINUS },
	{ T_STAR, T_SLASH, T_PERCENT } };

static struct ast *parse_level(struct lexer *lx, unsigned int level)
{
	const unsigned int n = sizeof(levels) / sizeof(levels[0]);
	struct ast *a;

	if (level == n)
		return parse_unary(lx);
	a = parse_level(lx, level + 1);
	while (a != NULL && lx->token.kind != T_END && memchr(levels[level], lx->token.kind, 4)) {
		enum token_kind op = lx->token.kind;
		uint32_t at = lx->token.at;

		/* In the pipe form "|" also ends an expression: behind it stands a step's name. */
		if (op == T_PIPE && pl_query_at_step(lx))
			break;
		pl_query_next(lx);
		a = binary(lx, op, at, a, parse_level(lx, level + 1));
	}
	return a;
}

/* Parses in PREFIX, in (list), behind the word. */
static struct ast *parse_in(struct lexer *lx, struct ast *a, uint32_t at)
{
	struct ast *ast = new_ast(lx, A_IN, at);
	uint32_t open_at = lx->token.at;

	if (ast == NULL)
		return NULL;
	ast->a = a;
	if (lx->token.kind == T_OPEN) {
		enter(lx);
		pl_query_next(lx);
		pl_query_parse_list(lx, &ast->list);
		leave(lx, open_at);
	} else if (lx->token.kind == T_PREFIX || lx->token.kind == T_ADDR) {
		ast->list = parse_literal(lx);
	} else {
		pl_query_expected(lx, "a prefix, or a list in parentheses");
	}
	return lx->error == 0 ? ast : NULL;
}

static struct ast *negated(struct lexer *lx, struct ast *a, uint32_t at)
{
	struct ast *ast = a != NULL ? new_ast(lx, A_NOT, at) : NULL;

	if (ast != NULL)
		ast->a = a;
	return ast;
}

/* Reads the operand behind a comparison. */
static void next_operand(struct lexer *lx, const struct ast *a)
{
	if (lx->records && a->kind == A_NAME && pl_query_has_words(a->name))
		pl_query_next_word(lx);
	else
		pl_query_next(lx);
}

static struct ast *parse_comparison(struct lexer *lx);

/* True when the words behind "all" are a test. */
static bool test_follows(const struct lexer *lx)
{
	static const char *const words[] = { "and", "or", "in", "not", "as", "from" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (pl_query_follows(lx, words[i]))
			return false;
	}
	return pl_query_name_follows(lx);
}

/* Parses any hop (X), all hops (X), all TEST; NULL also when it is none of them. */
static struct ast *parse_each_hop(struct lexer *lx)
{
	const bool all = pl_query_is(lx, "all"), any = pl_query_is(lx, "any");
	const bool group = pl_query_follows(lx, all ? "hops" : "hop");
	struct ast *ast;

	if (!lx->records || (!all && !any) || (any && !group) || (all && !test_follows(lx)))
		return NULL;
	ast = new_ast(lx, A_EACH_HOP, lx->token.at);
	if (ast == NULL)
		return NULL;
	ast->star = all;
	pl_query_next(lx);
	/* The form is "all hops.x > 5". */
	if (!group || strchr(lx->token.name, '.') != NULL) {
		ast->a = parse_comparison(lx);
		return ast;
	}
	pl_query_next(lx);
	if (lx->token.kind != T_OPEN) {
		pl_query_expected(lx, "\"(\" and tests of one hop");
		return NULL;
	}
	ast->a = parse_primary(lx);
	return ast;
}

static struct ast *parse_comparison(struct lexer *lx)
{
	struct ast *a = parse_each_hop(lx);
	uint32_t at;

	if (a != NULL || lx->error != 0)
		return lx->error == 0 ? a : NULL;
	a = parse_level(lx, 0);
	at = lx->token.at;
	if (a == NULL)
		return NULL;
	if (lx->token.kind >= T_EQ && lx->token.kind <= T_GE) {
		enum token_kind op = lx->token.kind;

		next_operand(lx, a);
		a = binary(lx, op, at, a, parse_level(lx, 0));
		if (a != NULL && lx->token.kind >= T_EQ && lx->token.kind <= T_GE)
			pl_query_fail(
				lx, lx->token.at, "comparisons are joined by and: 1 < x and x < 5");
		return lx->error == 0 ? a : NULL;
	}
	if (pl_query_take(lx, "in"))
		return parse_in(lx, a, at);
	if (!pl_query_take(lx, "not"))
		return a;
	if (!pl_query_take(lx, "in")) {
		pl_query_expected(lx, "\"in\" behind \"not\"");
		return NULL;
	}
	return negated(lx, parse_in(lx, a, at), at);
}

static struct ast *parse_not(struct lexer *lx)
{
	uint32_t at = lx->token.at;
	unsigned int n = 0;
	struct ast *a;

	while (pl_query_take(lx, "not"))
		n++;
	a = parse_comparison(lx);
	return n % 2 == 0 ? a : negated(lx, a, at);
}

static struct ast *parse_and(struct lexer *lx)
{
	struct ast *a = parse_not(lx);

	while (a != NULL && pl_query_is(lx, "and")) {
		uint32_t at = lx->token.at;

		pl_query_next(lx);
		a = binary(lx, T_AND, at, a, parse_not(lx));
	}
	return a;
}

struct ast *pl_query_parse_expr(struct lexer *lx)
{
	struct ast *a = parse_and(lx);

	while (a != NULL && pl_query_is(lx, "or")) {
		uint32_t at = lx->token.at;

		pl_query_next(lx);
		a = binary(lx, T_OR, at, a, parse_and(lx));
	}
	return lx->error == 0 ? a : NULL;
}
