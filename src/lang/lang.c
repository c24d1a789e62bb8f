/* SPDX-License-Identifier: BSD-2-Clause */
/* A query: from its text to its plan, and the properties of the plan. */
#include "lang/lang.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lang/plan.h"

int pl_query_parse(struct pl_query **ret, const char *text, struct pl_diag *diag)
{
	struct pl_query *query = calloc(1, sizeof(*query));
	struct ast_query ast = { 0 };
	struct lexer lx = { .text = text, .diag = diag };
	size_t len = strlen(text);
	int r;

	if (query == NULL) {
		pl_diag_set(diag, "out of memory");
		return -ENOMEM;
	}
	lx.len = (uint32_t)(len > PL_QUERY_TEXT_MAX ? PL_QUERY_TEXT_MAX : len);
	lx.arena = &query->arena;
	if (len > PL_QUERY_TEXT_MAX)
		pl_query_fail(
			&lx, PL_QUERY_TEXT_MAX, "longer than %d characters", PL_QUERY_TEXT_MAX);
	r = pl_query_parse_text(&lx, &ast);
	if (r == 0)
		r = pl_query_check_query(&lx, query, &ast);
	if (r < 0) {
		pl_query_free(query);
		return r;
	}
	query->into = lx.into;
	query->explain = lx.explain;
	*ret = query;
	return 0;
}

void pl_query_free(struct pl_query *query)
{
	if (query == NULL)
		return;
	pl_query_arena_done(&query->arena);
	free(query);
}

uint32_t pl_query_columns(const struct pl_query *query, const struct pl_query_column **ret)
{
	*ret = query->columns;
	return query->stages[query->n_stages - 1]->out.n;
}

bool pl_query_has_column(const struct pl_query *query, const char *name)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(query, &columns);

	for (uint32_t i = 0; i < n; i++) {
		if (strcmp(columns[i].name, name) == 0)
			return true;
	}
	return false;
}

uint64_t pl_query_window_ns(const struct pl_query *query)
{
	return query->window.kind == W_NONE ? 0 : query->window.size_ns;
}

uint64_t pl_query_step_ns(const struct pl_query *query)
{
	return query->window.kind == W_NONE ? 0 : query->window.step_ns;
}

uint32_t pl_query_source_of(const struct stage *stage, uint32_t *number)
{
	uint32_t i = 0;

	while (i + 1 < stage->n_sources) {
		const uint32_t n =
			stage->sources[i].kind == J_ANTI ? 0 : stage->sources[i].stage->out.n;

		if (*number < n)
			break;
		*number -= n;
		i++;
	}
	return i;
}

/* The depth of the recursion is that of the stages. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bool is_key(const struct stage *stage, uint32_t number)
{
	const struct node *item = number < stage->n_items ? stage->items[number] : NULL;
	const struct column *column = item != NULL ? item->column : NULL;
	uint32_t source;

	if (item == NULL || item->op != N_COLUMN)
		return false;
	if (stage->grouped)
		return column >= stage->groups.columns &&
		       column < stage->groups.columns + stage->n_keys;
	if (column < stage->input.columns || column >= stage->input.columns + stage->input.n)
		return false;
	if (stage->n_sources == 0)
		return false;
	number = (uint32_t)(column - stage->input.columns);
	source = pl_query_source_of(stage, &number);
	return is_key(stage->sources[source].stage, number);
}

bool pl_query_column_is_key(const struct pl_query *query, uint32_t number)
{
	return is_key(query->stages[query->n_stages - 1], number);
}

uint64_t pl_query_within_ns(const struct pl_query *query)
{
	return query->within_ns;
}

const char *pl_query_into(const struct pl_query *query)
{
	return query->into;
}

bool pl_query_is_explain(const struct pl_query *query)
{
	return query->explain;
}

const char *pl_query_behind_explain(const char *text)
{
	static const char word[] = "explain", blanks[] = " \t\r\n";
	const char *at = text + strspn(text, blanks);

	if (strncasecmp(at, word, strlen(word)) != 0)
		return text;
	at += strlen(word);
	return strspn(at, blanks) > 0 ? at + strspn(at, blanks) : text;
}

bool pl_query_has_sessions(const struct pl_query *query)
{
	return query->window.kind == W_SESSION;
}

bool pl_query_gives_windows(const struct pl_query *query)
{
	const struct stage *last = query->stages[query->n_stages - 1];

	return query->window.kind != W_NONE && (last->grouped || last->n_sources > 0);
}

bool pl_query_keeps_all(const struct pl_query *query)
{
	for (uint32_t i = 0; query->window.kind == W_NONE && i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];
		const bool joins_rows = stage->n_sources > 0 && stage->zip == NULL;

		/* A fold that emits gives its rows meanwhile, and keeps its groups. */
		if ((stage->grouped && (!stage->emits || stage->n_keys > 0)) || joins_rows ||
			stage->order >= 0)
			return true;
	}
	return false;
}

bool pl_query_gives_early(const struct pl_query *query)
{
	const struct stage *last = query->stages[query->n_stages - 1];

	return last->emit_first ||
	       (last->emits && last->n_sources == 0 && last->order < 0 && !last->has_limit);
}

bool pl_query_reads(const struct pl_query *query, unsigned int stream)
{
	for (uint32_t i = 0; i < query->n_stages; i++) {
		if (query->stages[i]->n_sources == 0 && query->stages[i]->kind == stream)
			return true;
	}
	return false;
}

bool pl_query_reads_paths_of_hops(const struct pl_query *query)
{
	return query->paths_of_hops;
}

bool pl_query_reads_marks(const struct pl_query *query)
{
	return query->marks;
}
