/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources of a select: a stream with its window, or sub-queries and their joins. */
#include <string.h>

#include "lang/plan.h"

/* ---- sub-queries ---- */

static bool take_sub(struct checker *c, const struct ast_source *source, struct join *join)
{
	const struct ast_with *with =
		source->sub == NULL ? pl_query_find_with(c, source->stream) : NULL;
	const struct ast_with *end = c->with_end;
	struct stage *sub;

	if (source->sub == NULL && with == NULL) {
		if (pl_query_find_stream(source->stream) == PL_QUERY_STREAMS)
			return pl_query_unknown_stream(c, source);
		return pl_query_refuse(c, source->at,
			"a join is of groups, (SELECT … FROM %s … GROUP BY …), or of records near "
			"in time: JOIN %s AS b ON … WITHIN 100ms",
			source->stream, source->stream);
	}
	if (with != NULL) {
		if (source->window.kind != W_NONE)
			return pl_query_refuse(c, source->window.at,
				"a window is of a stream; \"%s\" is a query and has that of its own",
				source->stream);
		c->with_end = with; /* a query sees those before it */
	}
	sub = pl_query_check_stage(c, with != NULL ? with->select : source->sub);
	c->with_end = end;
	if (sub == NULL)
		return false;
	if ((!sub->grouped && sub->n_sources == 0) || sub->emit_first)
		return pl_query_refuse(c, source->at,
			sub->emit_first
				? "a sub-query cannot EMIT FIRST"
				: "a sub-query has GROUP BY or aggregates; conditions on records go into WHERE");
	for (uint32_t i = 0; i < sub->out.n; i++) {
		if (sub->out.columns[i].type == PL_QUERY_LIST)
			return pl_query_refuse(
				c, source->at, "topk and hist are of the outermost query only");
	}
	join->stage = sub;
	join->kind = source->join;
	return true;
}

/* ---- keys of a join ---- */

static const struct column *side(
	const struct schema *schema, const char *alias, const struct ast *name)
{
	const size_t len = alias != NULL ? strlen(alias) : 0;
	const char *bare = name->name;
	const struct column *column;
	int n;

	/* The sub-query's own columns carry no alias. */
	if (alias != NULL && strncmp(bare, alias, len) == 0 && bare[len] == '.')
		bare += len + 1;
	column = pl_query_find_column(schema, bare, &n);
	return n == 1 ? column : NULL;
}

static bool add_key(struct checker *c, struct join *join, const struct schema *left,
	const char *alias, const struct ast *a, const struct ast *b, uint32_t at)
{
	struct join_key *key = &join->keys[join->n_keys];

	if (join->n_keys == PL_QUERY_COLUMNS_MAX)
		return pl_query_refuse(c, at, "more than %d keys", PL_QUERY_COLUMNS_MAX);
	key->left = side(left, NULL, a);
	key->right = side(&join->stage->out, alias, b);
	if (a != b && (key->left == NULL || key->right == NULL)) {
		key->left = side(left, NULL, b);
		key->right = side(&join->stage->out, alias, a);
	}
	if (key->left == NULL || key->right == NULL)
		return pl_query_refuse(c, at,
			"a join key compares a column from the left with one of the sub-query \"%s\"",
			alias);
	if (key->left->type != key->right->type)
		return pl_query_refuse(c, at,
			"the key is of type %s before the join and of type %s in it",
			pl_query_type_name(key->left->type), pl_query_type_name(key->right->type));
	join->n_keys++;
	return true;
}

static bool take_on(struct checker *c, struct join *join, const struct schema *left,
	const char *alias, const struct ast *on)
{
	if (on->kind == A_NAME)
		return add_key(c, join, left, alias, on, on, on->at);
	if (on->kind == A_BINARY && on->op == T_AND)
		return take_on(c, join, left, alias, on->a) && take_on(c, join, left, alias, on->b);
	if (on->kind == A_BINARY && on->op == T_EQ && on->a->kind == A_NAME &&
		on->b->kind == A_NAME)
		return add_key(c, join, left, alias, on->a, on->b, on->at);
	return pl_query_refuse(c, on->at, "a key of a join is a name, or a.x = b.y");
}

static bool take_joined(struct checker *c, const struct ast_source *source, struct join *join,
	const struct schema *left)
{
	const char *alias = source->alias != NULL ? source->alias : source->stream;

	if (alias == NULL)
		return pl_query_refuse(c, source->at, "a joined sub-query needs a name: (…) AS b");
	if (source->join == J_ZIP)
		return pl_query_refuse(c, source->at, "ZIP is of two queries, and nothing else");
	if (source->within_ns > 0)
		return pl_query_refuse(c, source->within_at,
			"WITHIN is of a join of two streams of records, and nothing else");
	if (!take_sub(c, source, join))
		return false;
	join->keys = pl_query_new(c->lx, PL_QUERY_COLUMNS_MAX * sizeof(*join->keys));
	if (join->keys == NULL)
		return false;
	for (const struct ast *on = source->on; on != NULL; on = on->next) {
		if (!take_on(c, join, left, alias, on))
			return false;
	}
	if (!pl_query_check_columns(c, source, left, join))
		return false;
	/* A key with the same name on both sides means the left one, when it is named without a
	 * source. */
	for (uint32_t i = 0; i < join->n_keys && join->kind != J_ANTI; i++) {
		const struct join_key *key = &join->keys[i];

		if (strcmp(key->left->name, key->right->name) == 0)
			join->out
				.columns[left->n +
					 (uint32_t)(key->right - join->stage->out.columns)]
				.qualified = true;
	}
	return true;
}

bool pl_query_check_from(struct checker *c)
{
	const struct ast_source *source = c->select->from;
	struct stage *stage = c->stage;

	stage->at = source->next != NULL ? source->next->at : source->at;
	if (source->next == NULL && source->sub == NULL &&
		pl_query_find_with(c, source->stream) == NULL)
		return pl_query_check_stream(c, source);
	if (source->next != NULL && source->next->join == J_ZIP)
		return pl_query_check_zip(c);
	if (source->next != NULL && source->next->within_ns > 0)
		return pl_query_check_pairs(c);
	for (uint32_t i = 0; source != NULL; source = source->next, i++) {
		struct join *join = &stage->sources[i];

		if (i == JOINS_MAX)
			return pl_query_refuse(c, source->at, "more than %d joins", JOINS_MAX - 1);
		if (i == 0 ? !take_sub(c, source, join) ||
					!pl_query_check_columns(c, source, NULL, join)
			   : !take_joined(c, source, join, &stage->sources[i - 1].out))
			return false;
		stage->n_sources = i + 1;
		stage->input = join->out;
	}
	return true;
}
