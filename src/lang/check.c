/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the plan of a parsed query: the stage of each select. */
#include <stdio.h>
#include <string.h>

#include "lang/plan.h"

/* ---- groups ---- */

static const struct ast *behind_alias(const struct checker *c, const struct ast *ast)
{
	if (ast->kind != A_NAME || pl_query_is_column(c, ast))
		return ast;
	for (const struct ast_item *i = c->select->items; i != NULL; i = i->next) {
		if (i->name != NULL && strcmp(i->name, ast->name) == 0)
			return i->expr;
	}
	return ast;
}

static bool check_key(struct checker *c, const struct ast *ast)
{
	struct stage *stage = c->stage;
	struct column *column = &stage->groups.columns[stage->n_keys];
	struct key *key = &stage->keys[stage->n_keys];
	const struct node *node;

	if (stage->n_keys == PL_QUERY_COLUMNS_MAX / 2)
		return pl_query_refuse(c, ast->at, "more than %d keys", PL_QUERY_COLUMNS_MAX / 2);
	ast = behind_alias(c, ast);
	if (ast->kind == A_CALL && pl_query_is_window(ast->name))
		return pl_query_refuse(c, ast->at,
			"a window stands behind the stream, FROM packets TUMBLE(ts, 1s), or behind GROUP BY as WINDOW 1s");
	if (pl_query_has_aggregate(c, ast))
		return pl_query_refuse(
			c, ast->at, "a key of GROUP BY is of records, not an aggregate");
	node = pl_query_check(c, ast);
	if (!pl_query_check_depth(c, node))
		return false;
	key->node = node;
	key->width = pl_query_key_width(node);
	pl_query_describe(column, node);
	column->name = node->op == N_COLUMN ? node->column->name : "";
	stage->n_keys++;
	return true;
}

/* SELECT DISTINCT: one group for each tuple, its key. */
static bool check_distinct(struct checker *c)
{
	const struct ast_select *select = c->select;
	const uint32_t at = select->distinct_at;

	if (select->star)
		pl_query_check_error(c, select->star_at, "with DISTINCT the columns are named");
	else if (select->group != NULL || select->having != NULL)
		pl_query_check_error(c, at,
			"DISTINCT and GROUP BY are of two queries: SELECT DISTINCT a FROM (SELECT … GROUP "
			"BY …) AS x");
	for (const struct ast_item *i = select->items; i != NULL && !c->failed; i = i->next) {
		if (pl_query_has_aggregate(c, i->expr))
			pl_query_check_error(c, i->at,
				"DISTINCT is of records, not of aggregates; the number of different "
				"values is count(distinct x)");
		else if (!check_key(c, i->expr))
			return false;
	}
	return !c->failed;
}

static bool check_groups(struct checker *c)
{
	const struct ast_select *select = c->select;
	struct stage *stage = c->stage;

	stage->grouped = select->distinct || select->group != NULL || select->having != NULL;
	for (const struct ast_item *i = select->items; i != NULL; i = i->next)
		stage->grouped = stage->grouped || pl_query_has_aggregate(c, i->expr);
	if (!stage->grouped)
		return true;
	if (!pl_query_row_schema(c->lx, PL_QUERY_COLUMNS_MAX, &stage->groups))
		return false;
	if (select->distinct && !check_distinct(c))
		return false;
	for (const struct ast *key = select->group; key != NULL; key = key->next) {
		if (!check_key(c, key))
			return false;
	}
	stage->key_bytes = pl_query_lay_out_keys(stage->keys, stage->n_keys);
	return true;
}

static bool check_having(struct checker *c)
{
	const struct ast_select *select = c->select;
	struct stage *stage = c->stage;
	uint32_t at = select->emit_at;

	if (select->having != NULL) {
		c->aliases = true;
		stage->having =
			pl_query_check_bool(c, pl_query_check_group(c, select->having), "HAVING");
		c->aliases = false;
		if (!pl_query_check_depth(c, stage->having))
			return false;
	}
	stage->emit_first = select->emit_first;
	if (!stage->emit_first)
		return true;
	if (stage->having == NULL || c->query->window.kind == W_HOP || stage->n_sources > 0 ||
		select->order != NULL || select->has_limit)
		return pl_query_refuse(c, at,
			"EMIT FIRST is of a stream with HAVING, and without HOP, "
			"ORDER BY and LIMIT");
	if (pl_query_monotone(c, stage->having, &at))
		return true;
	return pl_query_refuse(c, at,
		"with EMIT FIRST this condition would have to stay true once it is: a count, a sum of "
		"unsigned numbers, max, bit_or or a distinct count above a number, or min below one");
}

/* ---- items ---- */

static const char *item_name(const struct ast_item *item, const struct node *node)
{
	const char *point;

	if (item->name != NULL)
		return item->name;
	/* A column of a record may have points in its name. */
	if (node->op == N_COLUMN && item->expr->kind == A_NAME && node->column->name[0] != '\0')
		return node->column->name;
	if (item->expr->kind != A_NAME && item->expr->kind != A_CALL)
		return "";
	point = strrchr(item->expr->name, '.');
	return point != NULL ? point + 1 : item->expr->name;
}

/* False for a column that every record, or row of a sub-query, has. */
static bool may_be_absent(const struct node *node)
{
	return node->op != N_COLUMN || node->column->absent >= 0 || node->column->present != 0 ||
	       node->type == PL_QUERY_TEXT; /* there may be no room for it */
}

static bool add_item(struct checker *c, const struct node *node, const char *name, uint32_t at)
{
	struct stage *stage = c->stage;
	struct column *column = &stage->out.columns[stage->n_items];

	if (!pl_query_check_depth(c, node))
		return false;
	if (stage->n_items == PL_QUERY_ITEMS_MAX ||
		(stage->n_items >= PL_QUERY_COLUMNS_MAX && may_be_absent(node)))
		return pl_query_refuse(c, at,
			"more than %d columns; up to %d where those behind are a record's own",
			PL_QUERY_COLUMNS_MAX, PL_QUERY_ITEMS_MAX);
	for (uint32_t i = 0; i < stage->n_items; i++) {
		if (name[0] != '\0' && strcmp(stage->out.columns[i].name, name) == 0)
			return pl_query_refuse(c, at,
				"two columns of the name \"%s\": give one another with AS", name);
	}
	column->name = name;
	pl_query_describe(column, node);
	if (name[0] == '\0') {
		char made[24];

		snprintf(made, sizeof(made), "column%u", stage->n_items + 1);
		column->name = pl_query_new_text(c->lx, made, strlen(made));
		if (column->name == NULL)
			return false;
	}
	stage->items[stage->n_items++] = node;
	return true;
}

static bool check_star(struct checker *c)
{
	if (c->stage->grouped || (c->stage->pairs != NULL && c->stage->pairs->kind != J_ANTI))
		return pl_query_refuse(c, c->select->star_at,
			c->stage->grouped
				? "with GROUP BY the columns are named"
				: "in a join of records the columns are named: a.src, b.ts - a.ts AS x");
	for (uint32_t i = 0; i < c->schema->n_plain; i++) {
		const struct column *column = &c->schema->columns[i];

		if (!column->qualified &&
			!add_item(c, pl_query_column_node(c, column, c->select->star_at),
				column->name, c->select->star_at))
			return false;
	}
	return true;
}

static bool check_items(struct checker *c)
{
	struct stage *stage = c->stage;

	if (!pl_query_row_schema(c->lx, PL_QUERY_ITEMS_MAX, &stage->out))
		return false;
	if (c->select->star && !check_star(c))
		return false;
	for (const struct ast_item *i = c->select->items; i != NULL; i = i->next) {
		const struct node *node = stage->grouped ? pl_query_check_group(c, i->expr)
							 : pl_query_check(c, i->expr);

		if (node == NULL || !add_item(c, node, item_name(i, node), i->at))
			return false;
	}
	return true;
}

static bool has_list(const struct schema *schema)
{
	for (uint32_t i = 0; i < schema->n; i++) {
		if (schema->columns[i].type == PL_QUERY_LIST)
			return true;
	}
	return false;
}

static bool check_order(struct checker *c)
{
	const struct ast_select *select = c->select;
	const char *names[PL_QUERY_ITEMS_MAX];
	struct stage *stage = c->stage;
	char hint[NAME_MAX_LEN + 32];

	stage->order = -1;
	stage->descending = select->descending;
	stage->has_limit = select->has_limit;
	stage->limit = select->limit;
	if (select->order == NULL)
		return true;
	for (uint32_t i = 0; i < stage->n_items; i++) {
		names[i] = stage->out.columns[i].name;
		if (strcmp(names[i], select->order) == 0)
			stage->order = (int)i;
	}
	if (stage->order < 0)
		return pl_query_refuse(c, select->order_at, "no column \"%s\" in the result%s",
			select->order,
			pl_query_did_you_mean(
				hint, sizeof(hint), select->order, names, stage->n_items));
	if (!stage->grouped && stage->n_sources == 0)
		return pl_query_refuse(c, select->order_at,
			"ORDER BY needs GROUP BY or aggregates: records come as they are");
	if (has_list(&stage->out))
		return pl_query_refuse(c, select->order_at,
			"ORDER BY does not go together with lists: topk and hist");
	return true;
}

struct stage *pl_query_check_stage(struct checker *outer, const struct ast_select *select)
{
	struct checker c = *outer;
	struct pl_query *query = c.query;

	if (query->n_stages >= STAGES_MAX) {
		pl_query_check_error(
			outer, select->at, "more than %d queries within one", STAGES_MAX);
		return NULL;
	}
	c.stage = pl_query_new(c.lx, sizeof(*c.stage));
	if (c.stage == NULL)
		return NULL;
	c.select = select;
	c.schema = &c.stage->input;
	if (!pl_query_check_from(&c))
		return NULL;
	if (!pl_query_check_where(&c) || !check_groups(&c) || !check_items(&c) || !check_having(&c))
		return NULL;
	if (c.stage->grouped) {
		c.stage->groups.n = c.stage->n_keys + c.stage->n_aggs;
		c.stage->groups.size = ROW_HEAD + c.stage->groups.n * CELL_BYTES;
	}
	if (!pl_query_check_folds(&c))
		return NULL;
	c.stage->out.n = c.stage->out.n_plain = c.stage->n_items;
	c.stage->out.size = ROW_HEAD + c.stage->n_items * CELL_BYTES;
	if (!check_order(&c))
		return NULL;
	return pl_query_check_enter(outer, c.stage, select->at) ? c.stage : NULL;
}

/* The names of folds are different, and each is used. */
static bool check_fold_names(struct checker *c)
{
	for (const struct ast_fold *f = c->folds; f != NULL; f = f->next) {
		for (const struct ast_fold *g = c->folds; g != f; g = g->next) {
			if (strcmp(f->name, g->name) == 0)
				return pl_query_refuse(
					c, f->at, "two folds of the name \"%s\"", f->name);
		}
	}
	return true;
}

static bool check_folds_used(struct checker *c)
{
	for (const struct ast_fold *f = c->folds; f != NULL; f = f->next) {
		if (!f->used)
			return pl_query_refuse(c, f->at,
				"the fold \"%s\" is not used: its variables are named %s.%s",
				f->name, f->name, f->states->name);
	}
	return true;
}

/* Checks that names of WITH are not names of streams, that they differ, and that each is used. */
static bool check_with(struct checker *c, const struct ast_with *all)
{
	for (const struct ast_with *w = all; w != NULL; w = w->next) {
		if (pl_query_find_stream(w->name) != PL_QUERY_STREAMS)
			return pl_query_refuse(c, w->at, "\"%s\" is a stream", w->name);
		for (const struct ast_with *x = all; x != w; x = x->next) {
			if (strcmp(x->name, w->name) == 0)
				return pl_query_refuse(
					c, w->at, "two queries of the name \"%s\"", w->name);
		}
	}
	return true;
}

/* Every session is a window of its own, with one row. */
static bool check_session(struct checker *c, const struct ast_select *select)
{
	const struct pl_query *query = c->query;
	const uint32_t at = query->window.at;
	const struct stage *last = query->stages[query->n_stages - 1];

	if (query->window.kind != W_SESSION)
		return true;
	if (query->n_stages > 1)
		pl_query_check_error(c, at,
			"SESSION is of a query over one stream: sessions begin and end each at its own time, "
			"so their rows are neither joined nor grouped again; TUMBLE and HOP can be");
	else if (!last->grouped)
		pl_query_check_error(
			c, at, "SESSION needs GROUP BY or aggregates: its windows are of groups");
	else if (select->order != NULL || select->has_limit)
		pl_query_check_error(c, select->order != NULL ? select->order_at : at,
			"a session is a window with one row: ORDER BY and LIMIT, which are of the rows "
			"of a window, do not go together with SESSION");
	return c->lx->error == 0;
}

int pl_query_check_query(struct lexer *lx, struct pl_query *query, const struct ast_query *ast)
{
	struct checker c = { .lx = lx, .query = query, .with = ast->with, .folds = ast->folds };
	struct stage *last = check_fold_names(&c) && check_with(&c, ast->with)
				     ? pl_query_check_stage(&c, ast->select)
				     : NULL;

	if (last == NULL || !check_session(&c, ast->select) || !check_folds_used(&c))
		return lx->error != 0 ? lx->error : pl_query_fail(lx, 0, "the query cannot be run");
	for (uint32_t i = 0; i < last->out.n; i++) {
		query->columns[i] = (struct pl_query_column){
			.name = last->out.columns[i].name,
			.unit = last->out.columns[i].unit,
			.form = last->out.columns[i].form,
			.type = last->out.columns[i].type,
		};
	}
	return 0;
}
