/* SPDX-License-Identifier: BSD-2-Clause */
/* The clauses of a query, around the expressions of parse.c. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lang/ast.h"
#include "lang/plan.h"

int pl_query_parse_items(struct lexer *lx, struct ast_item **ret)
{
	struct ast_item **tail = ret;

	do {
		struct ast_item *item = pl_query_new(lx, sizeof(*item));

		if (item == NULL)
			return lx->error;
		item->at = lx->token.at;
		item->expr = pl_query_parse_expr(lx);
		if (item->expr == NULL)
			return lx->error;
		if (pl_query_take(lx, "as"))
			item->name = pl_query_take_name(lx, "a name for the column");
		if (item->name != NULL && strchr(item->name, '.') != NULL)
			return pl_query_fail(lx, item->at, "a column's name has no point");
		*tail = item;
		tail = &item->next;
	} while (pl_query_take_kind(lx, T_COMMA));
	return lx->error;
}

/* Most panes of a window: each may have groups of its own, and a record is in at most as many
 * windows. */
#define PANES_MAX 65536

int pl_query_parse_duration(struct lexer *lx, uint64_t *ret)
{
	if (lx->token.kind != T_NUMBER || !lx->token.duration)
		return pl_query_expected(lx, "a duration such as 1s");
	if (lx->token.u == 0 || lx->token.u > (uint64_t)1 << 60)
		return pl_query_fail(lx, lx->token.at, "a window lasts from 1ns to 36 years");
	*ret = lx->token.u;
	return pl_query_next(lx);
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
	while (b != 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

uint64_t pl_query_windows_pane(const struct ast_window *spec)
{
	return divisor(spec->size_ns, spec->step_ns);
}

int pl_query_parse_step(struct lexer *lx, struct ast_window *window)
{
	const uint32_t at = lx->token.at;

	window->kind = W_HOP;
	pl_query_parse_duration(lx, &window->step_ns);
	if (lx->error == 0 && window->step_ns > window->size_ns)
		return pl_query_fail(
			lx, at, "a step longer than the window would leave records out");
	if (lx->error == 0 && window->size_ns / pl_query_windows_pane(window) > PANES_MAX)
		return pl_query_fail(lx, at,
			"windows of so many parts: window and step have to be multiples of at least a 65536th of the window");
	return lx->error;
}

static const struct {
	const char *word;
	enum window_kind kind;
} windows[] = { { "tumble", W_TUMBLE }, { "hop", W_HOP }, { "session", W_SESSION } };

bool pl_query_is_window(const char *name)
{
	bool is = false;

	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		is = is || strcasecmp(name, windows[i].word) == 0;
	return is;
}

/* TUMBLE(ts, 1s), HOP(ts, 10s, 1s) or SESSION(ts, 30s), when it is there. */
static int parse_window(struct lexer *lx, struct ast_window *ret)
{
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		if (pl_query_is(lx, windows[i].word)) {
			ret->kind = windows[i].kind;
			ret->at = lx->token.at;
			break;
		}
	}
	if (ret->kind == W_NONE)
		return lx->error;
	pl_query_next(lx);
	if (!pl_query_take_kind(lx, T_OPEN))
		return pl_query_expected(lx, "\"(\"");
	if (!pl_query_take(lx, "ts"))
		return pl_query_expected(lx, "ts, the time of the record");
	if (!pl_query_take_kind(lx, T_COMMA))
		return pl_query_expected(lx, "a comma and a duration");
	pl_query_parse_duration(lx, &ret->size_ns);
	ret->step_ns = ret->size_ns;
	if (ret->kind == W_HOP) {
		if (!pl_query_take_kind(lx, T_COMMA))
			return pl_query_expected(lx, "a comma and the step: HOP(ts, 10s, 1s)");
		if (pl_query_parse_step(lx, ret) < 0)
			return lx->error;
	}
	if (!pl_query_take_kind(lx, T_CLOSE))
		return pl_query_expected(lx, "\")\"");
	return lx->error;
}

static struct ast_select *parse_select(struct lexer *lx);

struct ast_select *pl_query_parse_nested(struct lexer *lx)
{
	uint32_t open_at = lx->token.at;
	const bool pipe = lx->pipe;
	struct ast_select *select;

	if (!pl_query_take_kind(lx, T_OPEN)) {
		pl_query_expected(lx, "\"(\" and a query");
		return NULL;
	}
	if (++lx->depth > QUERY_DEPTH_MAX)
		pl_query_fail(
			lx, open_at, "more than %d parentheses within each other", QUERY_DEPTH_MAX);
	lx->pipe = pl_query_is_pipe(lx);
	select = lx->pipe ? pl_query_parse_pipe(lx) : parse_select(lx);
	lx->pipe = pipe;
	lx->depth--;
	if (!pl_query_take_kind(lx, T_CLOSE))
		pl_query_expected(lx, "\")\" behind the sub-query");
	return lx->error == 0 ? select : NULL;
}

void pl_query_parse_alias(struct lexer *lx, struct ast_source *source)
{
	if (lx->error == 0 && pl_query_take(lx, "as"))
		source->alias = pl_query_take_name(lx, "a name for the source");
	if (source->alias != NULL && strchr(source->alias, '.') != NULL)
		pl_query_fail(lx, source->at, "a source's name has no point");
}

static struct ast_source *parse_source(struct lexer *lx)
{
	struct ast_source *source = pl_query_new(lx, sizeof(*source));

	if (source == NULL)
		return NULL;
	source->at = lx->token.at;
	if (lx->token.kind == T_OPEN) {
		source->sub = pl_query_parse_nested(lx);
	} else {
		source->stream =
			pl_query_take_name(lx, "a stream, such as packets, or a sub-query");
		lx->records = lx->records || pl_query_has_records(source->stream);
		parse_window(lx, &source->window);
	}
	pl_query_parse_alias(lx, source);
	return lx->error == 0 ? source : NULL;
}

/* Parses name, … or a.x = b.y and … [WITHIN 100ms]. */
void pl_query_parse_on(struct lexer *lx, struct ast_source *source)
{
	if (!pl_query_take(lx, "on"))
		pl_query_expected(lx, "ON and the keys of the join");
	pl_query_parse_list(lx, &source->on);
	if (lx->error < 0 || !pl_query_is(lx, "within"))
		return;
	pl_query_next(lx);
	source->within_at = lx->token.at;
	pl_query_parse_duration(lx, &source->within_ns);
}

bool pl_query_parse_join(struct lexer *lx, enum join_kind *ret)
{
	static const struct {
		const char *word;
		enum join_kind kind;
	} kinds[] = { { "inner", J_INNER }, { "left", J_LEFT }, { "anti", J_ANTI } };

	*ret = J_INNER;
	if (pl_query_take(lx, "join"))
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!pl_query_take(lx, kinds[i].word))
			continue;
		*ret = kinds[i].kind;
		if (!pl_query_take(lx, "join"))
			pl_query_expected(lx, lx->pipe ? "join" : "JOIN");
		return true;
	}
	return false;
}

/* [INNER | LEFT | ANTI] JOIN source ON keys [WITHIN 100ms], or ZIP source, when it is there. */
static bool parse_join(struct lexer *lx, struct ast_source **ret)
{
	enum join_kind kind = J_ZIP;

	if (!pl_query_take(lx, "zip") && !pl_query_parse_join(lx, &kind))
		return false;
	*ret = parse_source(lx);
	if (*ret == NULL)
		return false;
	(*ret)->join = kind;
	if (kind != J_ZIP)
		pl_query_parse_on(lx, *ret);
	return lx->error == 0;
}

static void parse_from(struct lexer *lx, struct ast_select *select)
{
	struct ast_source **tail = &select->from;

	*tail = parse_source(lx);
	if (*tail == NULL)
		return;
	do
		tail = &(*tail)->next;
	while (parse_join(lx, tail));
}

static void take_by(struct lexer *lx, const char *word)
{
	if (!pl_query_take(lx, "by") && lx->error == 0) {
		char what[40];

		snprintf(what, sizeof(what), "BY behind %s", word);
		pl_query_expected(lx, what);
	}
}

void pl_query_parse_order(struct lexer *lx, struct ast_select *select)
{
	select->order_at = lx->token.at;
	select->order = pl_query_take_name(lx, "a column of the result");
	select->descending = pl_query_take(lx, "desc");
	if (!select->descending)
		pl_query_take(lx, "asc");
}

void pl_query_parse_limit(struct lexer *lx, struct ast_select *select)
{
	if (lx->token.kind != T_NUMBER || lx->token.duration) {
		pl_query_expected(lx, "a number of rows");
		return;
	}
	select->has_limit = true;
	select->limit = lx->token.u;
	pl_query_next(lx);
}

void pl_query_parse_emit(struct lexer *lx, struct ast_select *select)
{
	select->emit_at = lx->token.at;
	select->emit_told = true;
	select->emit_first = pl_query_take(lx, "first");
	if (!select->emit_first && !pl_query_take(lx, "final"))
		pl_query_expected(lx, "FIRST or FINAL");
}

/* WINDOW 1s [STEP 100ms] behind GROUP BY: another place for the TUMBLE or HOP of the one stream. */
static void parse_window_clause(struct lexer *lx, struct ast_select *select)
{
	struct ast_source *source = select->from;
	struct ast_window window = { .kind = W_TUMBLE, .at = lx->token.at };

	if (lx->error != 0 || !pl_query_take(lx, "window"))
		return;
	if (source->sub != NULL || source->next != NULL) {
		pl_query_fail(lx, window.at,
			"WINDOW is for a question of one stream: write TUMBLE(ts, 1s) behind the name of each");
		return;
	}
	if (source->window.kind != W_NONE) {
		pl_query_fail(lx, window.at, "the stream has a window already");
		return;
	}
	pl_query_parse_duration(lx, &window.size_ns);
	window.step_ns = window.size_ns;
	if (pl_query_take(lx, "step"))
		pl_query_parse_step(lx, &window);
	source->window = window;
}

static struct ast_select *parse_select(struct lexer *lx)
{
	struct ast_select *select = pl_query_new(lx, sizeof(*select));

	if (select == NULL)
		return NULL;
	select->at = lx->token.at;
	if (!pl_query_take(lx, "select")) {
		pl_query_expected(lx, "SELECT");
		return NULL;
	}
	select->distinct_at = lx->token.at;
	select->distinct = pl_query_take(lx, "distinct");
	select->star_at = lx->token.at;
	if (pl_query_take_kind(lx, T_STAR))
		select->star = true;
	else
		pl_query_parse_items(lx, &select->items);
	if (!pl_query_take(lx, "from"))
		pl_query_expected(lx, "a comma, AS or FROM");
	parse_from(lx, select);
	if (pl_query_take(lx, "where"))
		select->where = pl_query_parse_expr(lx);
	if (pl_query_take(lx, "group")) {
		take_by(lx, "GROUP");
		pl_query_parse_list(lx, &select->group);
	}
	parse_window_clause(lx, select);
	if (pl_query_take(lx, "having"))
		select->having = pl_query_parse_expr(lx);
	if (pl_query_take(lx, "order")) {
		take_by(lx, "ORDER");
		pl_query_parse_order(lx, select);
	}
	if (pl_query_take(lx, "limit"))
		pl_query_parse_limit(lx, select);
	if (pl_query_take(lx, "emit"))
		pl_query_parse_emit(lx, select);
	pl_query_take_into(lx);
	return lx->error == 0 ? select : NULL;
}

static void parse_with(struct lexer *lx, struct ast_with **tail)
{
	do {
		struct ast_with *with = pl_query_new(lx, sizeof(*with));

		if (with == NULL)
			return;
		with->at = lx->token.at;
		with->name = pl_query_take_name(lx, "a name for the query");
		if (!pl_query_take(lx, "as"))
			pl_query_expected(lx, "AS");
		with->select = pl_query_parse_nested(lx);
		if (lx->error != 0)
			return;
		*tail = with;
		tail = &with->next;
	} while (pl_query_take_kind(lx, T_COMMA));
}

int pl_query_parse_text(struct lexer *lx, struct ast_query *ret)
{
	pl_query_next(lx);
	lx->explain = pl_query_take(lx, "explain");
	if (lx->error == 0 && lx->token.kind == T_END)
		return pl_query_fail(lx, lx->token.at, "the query is empty");
	pl_query_parse_folds(lx, &ret->folds);
	if (pl_query_is_pipe(lx)) {
		lx->pipe = true;
		ret->select = pl_query_parse_pipe(lx);
		if (lx->error == 0 && lx->token.kind != T_END)
			pl_query_expected(
				lx, lx->into != NULL ? "the end" : "\"|\" and a step, or the end");
		return lx->error;
	}
	if (pl_query_take(lx, "with"))
		parse_with(lx, &ret->with);
	ret->select = parse_select(lx);
	if (lx->error == 0 && lx->token.kind != T_END)
		pl_query_expected(
			lx, lx->into != NULL
				    ? "the end"
				    : "the next clause (WHERE, GROUP BY, WINDOW, HAVING, "
				      "ORDER BY, LIMIT, EMIT, INTO, in this order), or the end");
	return lx->error;
}
