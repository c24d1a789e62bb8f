/* SPDX-License-Identifier: BSD-2-Clause */
/* The sources of a select: a stream with its window, or sub-queries and their joins. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lang/plan.h"

/* ---- streams ---- */

const struct ast_with *pl_query_find_with(const struct checker *c, const char *name)
{
	for (const struct ast_with *w = c->with; w != c->with_end; w = w->next) {
		if (strcmp(w->name, name) == 0)
			return w;
	}
	return NULL;
}

static bool unknown_stream(struct checker *c, const struct ast_source *source)
{
	const char *names[PL_QUERY_STREAMS + 64];
	char hint[NAME_MAX_LEN + 32], list[256];
	size_t n = 0;
	int used = 0;

	for (unsigned int k = 0; k < PL_QUERY_STREAMS; k++) {
		names[n] = pl_query_stream_name(k);
		used += snprintf(list + used, sizeof(list) - (size_t)used, "%s%s",
			k > 0 ? ", " : "", names[n++]);
	}
	for (const struct ast_with *w = c->with; w != c->with_end && n < PL_QUERY_STREAMS + 64;
		w = w->next)
		names[n++] = w->name;
	pl_query_did_you_mean(hint, sizeof(hint), source->stream, names, n);
	return pl_query_refuse(c, source->at, "unknown stream \"%s\"%s%s", source->stream,
		hint[0] != '\0' ? hint : "; there are ", hint[0] != '\0' ? "" : list);
}

/* Takes the window, which must be the same for all streams of a query. */
static bool take_window(struct checker *c, const struct ast_source *source)
{
	const struct ast_window *w = &source->window;
	struct ast_window *of_all = &c->query->window;
	bool first = true;

	for (uint32_t i = 0; i < c->query->n_stages; i++)
		first = first && c->query->stages[i]->n_sources > 0;
	if (first)
		*of_all = *w;
	if (of_all->kind == w->kind && of_all->size_ns == w->size_ns &&
		of_all->step_ns == w->step_ns)
		return true;
	return pl_query_refuse(c, w->kind != W_NONE ? w->at : source->at,
		"the streams of a query have the same window, and this one differs");
}

bool pl_query_check_stream(struct checker *c, const struct ast_source *source)
{
	struct stage *stage = c->stage;
	int n;

	stage->kind = pl_query_find_stream(source->stream);
	if (stage->kind == PL_QUERY_STREAMS)
		return unknown_stream(c, source);
	if (!pl_query_stream_schema(c->lx, stage->kind, &stage->input) ||
		(stage->kind == PL_QUERY_PATHS && !pl_query_hop_schema(c->lx, &stage->hops)))
		return false;
	for (uint32_t i = 0; source->alias != NULL && i < stage->input.n; i++)
		stage->input.columns[i].source = source->alias;
	stage->time = pl_query_find_column(&stage->input, "ts", &n);
	return take_window(c, source);
}

/* ---- sub-queries ---- */

static bool take_sub(struct checker *c, const struct ast_source *source, struct join *join)
{
	const struct ast_with *with =
		source->sub == NULL ? pl_query_find_with(c, source->stream) : NULL;
	const struct ast_with *end = c->with_end;
	struct stage *sub;

	if (source->sub == NULL && with == NULL) {
		if (pl_query_find_stream(source->stream) == PL_QUERY_STREAMS)
			return unknown_stream(c, source);
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

/* Makes the columns of the sources before, then those of the sub-query. */
bool pl_query_check_columns(struct checker *c, const struct ast_source *source,
	const struct schema *left, struct join *join)
{
	const char *alias = source->alias != NULL ? source->alias : source->stream;
	const struct schema *right = &join->stage->out;
	uint32_t n_left = left != NULL ? left->n : 0;
	uint32_t n = n_left + (join->kind == J_ANTI ? 0 : right->n);

	if (n > PL_QUERY_COLUMNS_MAX)
		return pl_query_refuse(
			c, source->at, "a join of more than %d columns", PL_QUERY_COLUMNS_MAX);
	if (!pl_query_row_schema(c->lx, n, &join->out))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct column *to = &join->out.columns[i], made = *to;

		*to = i < n_left ? left->columns[i] : right->columns[i - n_left];
		to->offset = made.offset;
		to->absent = made.absent;
		if (i >= n_left)
			to->source = alias;
	}
	return true;
}

/* ---- keys of a join ---- */

static const struct column *side(
	struct checker *c, const struct schema *schema, const char *alias, const struct ast *name)
{
	const size_t len = alias != NULL ? strlen(alias) : 0;
	const char *bare = name->name;
	const struct column *column;
	int n;

	(void)c;
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
	char hint[80] = "";

	if (join->n_keys == PL_QUERY_COLUMNS_MAX)
		return pl_query_refuse(c, at, "more than %d keys", PL_QUERY_COLUMNS_MAX);
	key->left = side(c, left, NULL, a);
	key->right = side(c, &join->stage->out, alias, b);
	if (a != b && (key->left == NULL || key->right == NULL)) {
		key->left = side(c, left, NULL, b);
		key->right = side(c, &join->stage->out, alias, a);
	}
	if (key->left == NULL || key->right == NULL) {
		snprintf(hint, sizeof(hint), "the sub-query \"%s\"", alias != NULL ? alias : "");
		return pl_query_refuse(
			c, at, "a join key compares a column from the left with one of %s", hint);
	}
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
