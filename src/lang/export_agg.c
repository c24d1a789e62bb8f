/* SPDX-License-Identifier: BSD-2-Clause */
/* Aggregates in SQL. */
#include "lang/export_state.h"

/* Text around the arguments of an aggregate. */
struct form {
	const char *begin, *end; /* NULL: it has none; ")" */
};

static const struct form forms[PL_QUERY_DIALECTS][AGG_FOLD + 1] = {
	[PL_QUERY_CLICKHOUSE] = { [AGG_COUNT] = { "count(", NULL },
		[AGG_COUNT_DISTINCT] = { "uniqExact(", NULL },
		[AGG_SUM] = { "sum(", NULL },
		[AGG_MIN] = { "min(", NULL },
		[AGG_MAX] = { "max(", NULL },
		[AGG_AVG] = { "avg(", NULL },
		[AGG_STDDEV] = { "stddevPopStable(", NULL },
		[AGG_FIRST] = { "argMin(", NULL },
		[AGG_LAST] = { "argMax(", NULL },
		[AGG_BIT_OR] = { "groupBitOr(", NULL },
		[AGG_APPROX_DISTINCT] = { "uniqCombined(", NULL },
		/* quantileExactLow has the value one rank higher where the share is a whole number
		 * of values. */
		[AGG_QUANTILE] = { "quantileExactWeighted(", NULL },
		[AGG_TOPK] = { "topK(", NULL },
		[AGG_HIST] = { "sumMap(map(roundToExp2(", "), toUInt64(1)))" } },
	[PL_QUERY_FLINK] = { [AGG_COUNT] = { "COUNT(", NULL },
		[AGG_COUNT_DISTINCT] = { "COUNT(DISTINCT ", NULL },
		[AGG_SUM] = { "SUM(", NULL },
		[AGG_MIN] = { "MIN(", NULL },
		[AGG_MAX] = { "MAX(", NULL },
		[AGG_AVG] = { "AVG(CAST(", " AS DOUBLE))" },
		[AGG_STDDEV] = { "STDDEV_POP(CAST(", " AS DOUBLE))" },
		[AGG_APPROX_DISTINCT] = { "COUNT(DISTINCT ", NULL } },
	[PL_QUERY_DUCKDB] = { [AGG_COUNT] = { "count(", NULL },
		[AGG_COUNT_DISTINCT] = { "count(DISTINCT ", NULL },
		[AGG_SUM] = { "sum(", NULL },
		[AGG_MIN] = { "min(", NULL },
		[AGG_MAX] = { "max(", NULL },
		[AGG_AVG] = { "avg(", NULL },
		[AGG_STDDEV] = { "stddev_pop(", NULL },
		[AGG_FIRST] = { "arg_min(", NULL },
		[AGG_LAST] = { "arg_max(", NULL },
		[AGG_BIT_OR] = { "bit_or(", NULL },
		[AGG_APPROX_DISTINCT] = { "count(DISTINCT ", NULL },
		[AGG_QUANTILE] = { "quantile_disc(", NULL } },
};

/* Aggregates that some dialect does not have, for pl_export_refuse. */
static const char *const refused[] = { [AGG_FIRST] = "first and last by event time do",
	[AGG_LAST] = "first and last by event time do",
	[AGG_BIT_OR] = "bit_or does",
	[AGG_QUANTILE] = "quantile does",
	[AGG_TOPK] = "lists, which topk and hist make, do",
	[AGG_HIST] = "lists, which topk and hist make, do",
	[AGG_EWMA] = "ewma does",
	[AGG_FOLD] = "folds do" };

static void put_call(struct exporter *e, const char *begin, const struct agg *agg, const char *end)
{
	pl_buf_str(e->out, begin);
	for (uint32_t i = 0; i < agg->n_args; i++) {
		pl_buf_str(e->out, i > 0 ? ", " : "");
		pl_export_node(e, agg->args[i], false);
	}
	pl_buf_str(e->out, end);
}

/* The value at the least or largest time. */
static void put_by_time(struct exporter *e, const char *begin, const struct agg *agg)
{
	put_call(e, begin, agg, ", ");
	pl_export_time(e);
	pl_buf_chr(e->out, ')');
}

/* An aggregate with a number beside its argument: quantile and topk. */
static void put_with_number(struct exporter *e, const char *begin, const struct agg *agg)
{
	if (e->dialect == PL_QUERY_DUCKDB) {
		put_call(e, begin, agg, ", ");
		pl_buf_double(e->out, agg->q);
		pl_buf_chr(e->out, ')');
		return;
	}
	pl_buf_str(e->out, begin);
	if (agg->kind == AGG_TOPK)
		pl_buf_printf(e->out, "%u, 4, 'counts'", agg->k);
	else
		pl_buf_double(e->out, agg->q);
	put_call(e, ")(", agg, agg->kind == AGG_QUANTILE ? ", 1)" : ")");
}

/* Distinct tuples are distinct texts: COUNT(DISTINCT …) takes one value. */
static void put_tuple(struct exporter *e, const struct agg *agg)
{
	for (uint32_t i = 0; i < agg->n_args; i++) {
		pl_buf_str(e->out, i > 0 ? " || '|' || CAST(" : "COUNT(DISTINCT CAST(");
		pl_export_node(e, agg->args[i], false);
		pl_buf_str(e->out, " AS STRING)");
	}
	pl_buf_chr(e->out, ')');
}

/* A tuple with a NULL is no NULL in DuckDB, and would count. */
static void put_tuple_of_duckdb(struct exporter *e, const struct agg *agg)
{
	const char *begin = "count(DISTINCT CASE WHEN ";
	bool some = false;

	for (uint32_t i = 0; i < agg->n_args; i++) {
		if (!pl_export_nullable(e, agg->args[i]))
			continue;
		pl_buf_str(e->out, begin);
		pl_export_node(e, agg->args[i], false);
		pl_buf_str(e->out, " IS NOT NULL");
		begin = " AND ";
		some = true;
	}
	put_call(e, some ? " THEN (" : "count(DISTINCT (", agg, some ? ") END)" : "))");
}

void pl_export_agg(struct exporter *e, const struct agg *agg)
{
	const struct form *form = &forms[e->dialect][agg->kind];
	const char *end = form->end != NULL ? form->end : ")";

	if (form->begin == NULL)
		pl_export_refuse(e, agg->at, refused[agg->kind]);
	else if (agg->kind == AGG_FIRST || agg->kind == AGG_LAST)
		put_by_time(e, form->begin, agg);
	else if (agg->kind == AGG_QUANTILE || agg->kind == AGG_TOPK)
		put_with_number(e, form->begin, agg);
	else if (agg->n_args > 1 && e->dialect == PL_QUERY_FLINK)
		put_tuple(e, agg);
	else if (agg->n_args > 1 && e->dialect == PL_QUERY_DUCKDB)
		put_tuple_of_duckdb(e, agg);
	else
		put_call(e, form->begin, agg,
			agg->n_args == 0 && e->dialect != PL_QUERY_CLICKHOUSE ? "*)" : end);
}
