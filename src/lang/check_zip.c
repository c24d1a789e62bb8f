/* SPDX-License-Identifier: BSD-2-Clause */
/* A zip: two queries over one stream, each of which makes its rows of single records. */

#include "lang/plan.h"

static bool emits_at_the_end(const struct stage *stage)
{
	for (uint32_t i = 0; i < stage->n_folds; i++) {
		for (uint32_t k = 0; k < stage->folds[i]->n_end; k++) {
			if (stage->folds[i]->end[k].emit)
				return true;
		}
	}
	return false;
}

static const char *fault_of(const struct stage *side, const struct ast_select *select)
{
	if (side->n_sources > 0 || side->kind >= PL_QUERY_STREAMS)
		return "a side of a zip reads a stream: (SELECT … FROM packets …)";
	if (side->grouped && !side->emits)
		return "a side of a zip makes its rows of single records: without GROUP BY and "
		       "aggregates, or by a fold that EMITs";
	if (emits_at_the_end(side))
		return "a row of END is of no record, and cannot be in a zip";
	if (select->order != NULL || select->has_limit)
		return "ORDER BY and LIMIT stand behind the zip, not in a side of it";
	return NULL;
}

/* The right stream has the window of the left one unless it has its own. */
static void take_over_window(const struct checker *c, const struct ast_select *select)
{
	struct ast_source *from = select->from;

	if (from->sub == NULL && from->next == NULL && from->window.kind == W_NONE)
		from->window = c->query->window;
}

static bool take_side(
	struct checker *c, const struct ast_source *source, struct zip *zip, unsigned int i)
{
	const struct ast_with *with =
		source->sub == NULL ? pl_query_find_with(c, source->stream) : NULL;
	const struct ast_select *select = with != NULL ? with->select : source->sub;
	const struct ast_with *end = c->with_end;
	const char *fault;

	if (select == NULL)
		return pl_query_refuse(c, source->at,
			"a zip is of two queries over one stream: (SELECT … FROM packets) AS a ZIP "
			"(SELECT … FROM packets) AS b");
	if (source->alias == NULL && source->stream == NULL)
		return pl_query_refuse(c, source->at, "a zipped query needs a name: (…) AS a");
	if (source->window.kind != W_NONE)
		return pl_query_refuse(c, source->window.at,
			"a window stands behind the stream that the query reads");
	if (i == 1)
		take_over_window(c, select);
	if (with != NULL)
		c->with_end = with; /* a query sees those before it */
	zip->sides[i] = pl_query_check_stage(c, select);
	c->with_end = end;
	if (zip->sides[i] == NULL)
		return false;
	fault = fault_of(zip->sides[i], select);
	return fault == NULL || pl_query_refuse(c, source->at, "%s", fault);
}

bool pl_query_check_zip(struct checker *c)
{
	const struct ast_source *left = c->select->from, *right = left->next;
	struct zip *zip = pl_query_new(c->lx, sizeof(*zip));
	struct column *time = pl_query_new(c->lx, sizeof(*time));
	struct join first = { .kind = J_FIRST }, second = { .kind = J_INNER };

	if (zip == NULL || time == NULL)
		return false;
	if (right->next != NULL)
		return pl_query_refuse(
			c, right->next->at, "a zip is of two queries, and nothing else");
	if (!take_side(c, left, zip, 0) || !take_side(c, right, zip, 1))
		return false;
	if (zip->sides[0]->kind != zip->sides[1]->kind)
		return pl_query_refuse(c, right->at,
			"both sides of a zip read the same stream: their rows come from the same "
			"record");
	first.stage = zip->sides[0];
	second.stage = zip->sides[1];
	if (!pl_query_check_columns(c, left, NULL, &first) ||
		!pl_query_check_columns(c, right, &first.out, &second))
		return false;
	c->stage->zip = zip;
	c->stage->kind = PL_QUERY_STREAMS;
	c->stage->input = second.out;
	*time = *zip->sides[0]->time;
	time->offset = second.out.size;
	c->stage->input.size += sizeof(uint64_t);
	c->stage->time = time;
	return true;
}
