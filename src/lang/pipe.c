/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipe form of a query, step by step into what clauses.c makes of the SELECT form:
 *
 *   packets | where tcp and syn_only | group dst over 1s agg n=count() | where n >= 40 | emit first
 *
 *   packets | distinct src, dst over 1s | group src agg n=count()
 *   packets | where syn_only | group dst over 1s agg a=count()
 *     | left join (packets | where ack_only | group dst over 1s agg b=count()) on dst
 *
 *   packets as a | where point = 1 | join (packets | where point = 2) as b on flow_hash within 1s
 *
 * A condition before `group` is of records (WHERE), one behind it of groups (HAVING). Steps behind a
 * group, other than conditions, are a query over the rows so far.
 */
#include <string.h>

#include "lang/ast.h"

struct pipe {
	struct lexer *lx;
	struct ast_select *select; /* select of the steps so far */
	struct ast_source *stream; /* source that gets the window */
	bool grouped, mapped;      /* select has its groups; only its last steps may follow */
	bool joined;               /* select has joined sources, and nothing else yet */
	bool paired;               /* records are joined: a window still goes to the stream */
};

static struct ast_select *new_select(struct lexer *lx, uint32_t at)
{
	struct ast_select *select = pl_query_new(lx, sizeof(*select));

	if (select == NULL)
		return NULL;
	select->from = pl_query_new(lx, sizeof(*select->from));
	select->at = select->star_at = at;
	return lx->error == 0 ? select : NULL;
}

/* The rows so far become the source of a query behind them. */
static bool wrap(struct pipe *p, uint32_t at)
{
	struct ast_select *outer = new_select(p->lx, at);

	if (outer == NULL)
		return false;
	p->select->star = p->select->items == NULL;
	outer->from->sub = p->select;
	outer->from->at = at;
	p->select = outer;
	p->grouped = p->joined = p->paired = false;
	return true;
}

static void both(struct lexer *lx, struct ast **to, struct ast *more, uint32_t at)
{
	struct ast *and;

	if (*to == NULL || more == NULL) {
		*to = more != NULL ? more : *to;
		return;
	}
	and = pl_query_new(lx, sizeof(*and));
	if (and == NULL)
		return;
	*and = (struct ast){ .kind = A_BINARY, .op = T_AND, .at = at, .a = *to, .b = more };
	*to = and;
}

static bool add_item(
	struct lexer *lx, struct ast_item ***tail, struct ast *expr, const char *name, uint32_t at)
{
	struct ast_item *item = pl_query_new(lx, sizeof(*item));

	if (item == NULL || expr == NULL)
		return false;
	*item = (struct ast_item){ .expr = expr, .name = name, .at = at };
	**tail = item;
	*tail = &item->next;
	return true;
}

/* Parses name = expression, … */
static void take_named(struct pipe *p, struct ast_item **tail)
{
	struct lexer *lx = p->lx;

	do {
		uint32_t at = lx->token.at;
		const char *name = pl_query_take_name(lx, "a name: n = count()");
		struct ast *expr;

		if (!pl_query_take_kind(lx, T_EQ))
			pl_query_expected(lx, "\"=\" behind the name");
		expr = pl_query_parse_expr(lx);
		if (!add_item(lx, &tail, expr, name, at))
			return;
	} while (pl_query_take_kind(lx, T_COMMA));
}

/* Parses over 1s, over 10s step 1s, over session 30s. */
static void take_over(struct pipe *p, uint32_t at)
{
	struct lexer *lx = p->lx;
	struct ast_window *w = &p->stream->window;

	if (p->select->from != p->stream && !p->paired) {
		pl_query_fail(lx, at, "a group of groups has their window");
		return;
	}
	w->at = at;
	w->kind = pl_query_take(lx, "session") ? W_SESSION : W_TUMBLE;
	pl_query_parse_duration(lx, &w->size_ns);
	w->step_ns = w->size_ns;
	if (w->kind == W_TUMBLE && pl_query_take(lx, "step"))
		pl_query_parse_step(lx, w);
}

static void take_group(struct pipe *p, uint32_t at)
{
	struct lexer *lx = p->lx;
	struct ast_item **tail;

	if (p->grouped && !wrap(p, at))
		return;
	p->grouped = true;
	p->joined = false;
	pl_query_take(lx, "by");
	if (!pl_query_is(lx, "over") && !pl_query_is(lx, "agg"))
		pl_query_parse_list(lx, &p->select->group);
	tail = &p->select->items;
	for (struct ast *key = p->select->group; key != NULL && lx->error == 0; key = key->next)
		add_item(lx, &tail, key, NULL, key->at);
	at = lx->token.at;
	if (pl_query_take(lx, "over"))
		take_over(p, at);
	if (pl_query_take(lx, "agg"))
		take_named(p, tail);
	else if (p->select->group == NULL)
		pl_query_expected(lx, "keys, or agg and aggregates");
}

/* Parses distinct, as SELECT DISTINCT: the items are the keys. */
static void take_distinct(struct pipe *p, uint32_t at)
{
	struct lexer *lx = p->lx;
	struct ast **tail;

	if (p->grouped && !wrap(p, at))
		return;
	p->grouped = true;
	p->joined = false;
	tail = &p->select->group;
	if (pl_query_parse_items(lx, &p->select->items) < 0)
		return;
	for (struct ast_item *i = p->select->items; i != NULL; i = i->next) {
		*tail = i->expr;
		tail = &i->expr->next;
	}
	at = lx->token.at;
	if (pl_query_take(lx, "over"))
		take_over(p, at);
}

/* Parses join (query) as b on keys [within 100ms], behind the kind. The steps before become a
 * query, too. */
static void take_join(struct pipe *p, enum join_kind kind, uint32_t at)
{
	struct lexer *lx = p->lx;
	struct ast_source *source, **tail;

	if (!p->joined && !wrap(p, at))
		return;
	p->joined = true;
	source = pl_query_new(lx, sizeof(*source));
	if (source == NULL)
		return;
	source->at = lx->token.at;
	source->join = kind;
	if (lx->token.kind == T_NAME)
		source->stream = pl_query_take_name(lx, "a stream, or a query in parentheses");
	else
		source->sub = pl_query_parse_nested(lx);
	pl_query_parse_alias(lx, source);
	if (source->alias == NULL)
		source->alias = "right";
	if (lx->error == 0)
		pl_query_parse_on(lx, source);
	if (source->within_ns > 0) {
		p->paired = true;
		if (p->stream->alias == NULL)
			p->stream->alias = "left";
	}
	tail = &p->select->from;
	while (*tail != NULL)
		tail = &(*tail)->next;
	*tail = source;
}

/* Parses zip (query) as b, behind the word: rows of the same record. */
static void take_zip(struct pipe *p, uint32_t at)
{
	struct lexer *lx = p->lx;
	struct ast_source *source = pl_query_new(lx, sizeof(*source));

	if (source == NULL || !wrap(p, at))
		return;
	p->mapped = false;
	p->paired = true;
	p->select->from->alias = p->stream->alias != NULL ? p->stream->alias : "left";
	source->at = lx->token.at;
	source->join = J_ZIP;
	source->sub = pl_query_parse_nested(lx);
	pl_query_parse_alias(lx, source);
	if (source->alias == NULL)
		source->alias = "right";
	p->select->from->next = source;
}

static void take_map(struct pipe *p, uint32_t at)
{
	if (p->grouped && !wrap(p, at))
		return;
	p->mapped = true;
	pl_query_parse_items(p->lx, &p->select->items);
}

static void take_step(struct pipe *p)
{
	struct lexer *lx = p->lx;
	uint32_t at = lx->token.at;
	enum join_kind kind;

	if (pl_query_take(lx, "sort")) {
		pl_query_take(lx, "by");
		pl_query_parse_order(lx, p->select);
	} else if (pl_query_take(lx, "limit")) {
		pl_query_parse_limit(lx, p->select);
	} else if (pl_query_take(lx, "emit")) {
		pl_query_parse_emit(lx, p->select);
	} else if (pl_query_take_into(lx)) {
		return;
	} else if (pl_query_take(lx, "zip")) {
		take_zip(p, at);
	} else if (p->mapped || p->select->order != NULL || p->select->has_limit ||
		   p->select->emit_told) {
		pl_query_expected(lx, "sort, limit, emit or into, the last steps, or zip");
	} else if (pl_query_take(lx, "where")) {
		p->joined = false;
		both(lx, p->grouped ? &p->select->having : &p->select->where,
			pl_query_parse_expr(lx), at);
	} else if (pl_query_take(lx, "group")) {
		take_group(p, at);
	} else if (pl_query_take(lx, "distinct")) {
		take_distinct(p, at);
	} else if (pl_query_parse_join(lx, &kind)) {
		take_join(p, kind, at);
	} else if (pl_query_take(lx, "map")) {
		take_map(p, at);
	} else {
		pl_query_expected(lx, "a step: where, group, distinct, join, left join, anti join, "
				      "zip, map, sort, limit, emit or into");
	}
}

static uint32_t skip(const struct lexer *lx, uint32_t at, const char *signs)
{
	return at + (uint32_t)strspn(lx->text + at, signs);
}

/* A name, AS and another perhaps, and "|". */
bool pl_query_is_pipe(const struct lexer *lx)
{
	static const char space[] = " \t\r\n",
			  name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_";
	uint32_t at = skip(lx, lx->pos, space);

	if (lx->token.kind != T_NAME || pl_query_is(lx, "select") || pl_query_is(lx, "with"))
		return false;
	if (strncasecmp(lx->text + at, "as", 2) == 0 && skip(lx, at + 2, space) > at + 2)
		at = skip(lx, skip(lx, skip(lx, at + 2, space), name), space);
	return lx->text[at] == '|';
}

struct ast_select *pl_query_parse_pipe(struct lexer *lx)
{
	struct pipe p = { .lx = lx };

	p.select = new_select(lx, lx->token.at);
	if (p.select == NULL)
		return NULL;
	p.stream = p.select->from;
	p.stream->at = lx->token.at;
	p.stream->stream = pl_query_take_name(lx, "a stream");
	lx->records = lx->records || pl_query_has_records(p.stream->stream);
	pl_query_parse_alias(lx, p.stream);
	while (lx->into == NULL && pl_query_take_kind(lx, T_PIPE))
		take_step(&p);
	p.select->star = p.select->items == NULL;
	return lx->error == 0 ? p.select : NULL;
}
