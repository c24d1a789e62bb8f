/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the source of a select: a query of WITH, or a stream with its window; and its columns. */
#include <stdio.h>
#include <string.h>

#include "lang/plan.h"

const struct ast_with *pl_query_find_with(const struct checker *c, const char *name)
{
	for (const struct ast_with *w = c->with; w != c->with_end; w = w->next) {
		if (strcmp(w->name, name) == 0)
			return w;
	}
	return NULL;
}

bool pl_query_unknown_stream(struct checker *c, const struct ast_source *source)
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

	stage->kind = pl_query_find_stream(source->stream);
	if (stage->kind == PL_QUERY_STREAMS)
		return pl_query_unknown_stream(c, source);
	if (stage->kind < PL_FLAT_MAX ? !pl_query_flat_schema(c->lx, stage->kind, &stage->input)
				      : !pl_query_record_schema(c->lx, stage->kind, &stage->input))
		return false;
	if (stage->kind == PL_QUERY_PATHS && !pl_query_hop_schema(c->lx, &stage->hops))
		return false;
	for (uint32_t i = 0; source->alias != NULL && i < stage->input.n; i++)
		stage->input.columns[i].source = source->alias;
	stage->time = pl_query_find_column(&stage->input, "ts", NULL);
	return take_window(c, source);
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

bool pl_query_check_enter(struct checker *c, struct stage *stage, uint32_t at)
{
	struct pl_query *query = c->query;

	if (query->n_stages >= STAGES_MAX)
		return pl_query_refuse(c, at, "more than %d queries within one", STAGES_MAX);
	stage->number = query->n_stages;
	query->stages[query->n_stages++] = stage;
	return true;
}
