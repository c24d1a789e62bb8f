/* SPDX-License-Identifier: BSD-2-Clause */
/* Aggregates in SQL. */
#include "lang/export_state.h"

static void put_call(struct exporter *e, const char *begin, const struct agg *agg, const char *end)
{
	pl_buf_str(e->out, begin);
	for (uint32_t i = 0; i < agg->n_args; i++) {
		pl_buf_str(e->out, i > 0 ? ", " : "");
		pl_export_node(e, agg->args[i], false);
	}
	pl_buf_str(e->out, end);
}

/* Writes the function of that name, by the kind of the aggregate. */
static void put_named(
	struct exporter *e, const struct agg *agg, const char *const *names, size_t n_names)
{
	if (agg->kind >= n_names || names[agg->kind] == NULL)
		pl_export_refuse(e, agg->at, "this aggregate does");
	else
		put_call(e, names[agg->kind], agg, ")");
}

/* The value at the least or largest time. */
static void put_by_time(struct exporter *e, const char *begin, const struct agg *agg)
{
	put_call(e, begin, agg, ", ");
	pl_export_time(e);
	pl_buf_chr(e->out, ')');
}

static void for_clickhouse(struct exporter *e, const struct agg *agg)
{
	static const char *const names[] = { [AGG_COUNT] = "count(",
		[AGG_COUNT_DISTINCT] = "uniqExact(",
		[AGG_SUM] = "sum(",
		[AGG_MIN] = "min(",
		[AGG_MAX] = "max(",
		[AGG_AVG] = "avg(",
		[AGG_STDDEV] = "stddevPopStable(",
		[AGG_FIRST] = "argMin(",
		[AGG_LAST] = "argMax(",
		[AGG_BIT_OR] = "groupBitOr(",
		[AGG_APPROX_DISTINCT] = "uniqCombined(",
		[AGG_HIST] = "sumMap(map(roundToExp2(" };

	switch (agg->kind) {
	case AGG_QUANTILE:
		pl_buf_str(e->out, "quantileExactLow(");
		pl_buf_double(e->out, agg->q);
		put_call(e, ")(", agg, ")");
		break;
	case AGG_TOPK:
		pl_buf_printf(e->out, "topK(%u, 4, 'counts'", agg->k);
		put_call(e, ")(", agg, ")");
		break;
	case AGG_FIRST:
	case AGG_LAST:
		put_by_time(e, names[agg->kind], agg);
		break;
	case AGG_HIST:
		put_call(e, names[agg->kind], agg, "), toUInt64(1)))");
		break;
	default:
		put_named(e, agg, names, sizeof(names) / sizeof(names[0]));
		break;
	}
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

static void for_duckdb(struct exporter *e, const struct agg *agg)
{
	static const char *const names[] = { [AGG_SUM] = "sum(",
		[AGG_MIN] = "min(",
		[AGG_MAX] = "max(",
		[AGG_AVG] = "avg(",
		[AGG_STDDEV] = "stddev_pop(",
		[AGG_FIRST] = "arg_min(",
		[AGG_LAST] = "arg_max(",
		[AGG_BIT_OR] = "bit_or(" };

	switch (agg->kind) {
	case AGG_COUNT:
		put_call(e, "count(", agg, agg->n_args == 0 ? "*)" : ")");
		break;
	case AGG_COUNT_DISTINCT:
	case AGG_APPROX_DISTINCT:
		if (agg->n_args > 1)
			put_tuple_of_duckdb(e, agg);
		else
			put_call(e, "count(DISTINCT ", agg, ")");
		break;
	case AGG_QUANTILE:
		put_call(e, "quantile_disc(", agg, ", ");
		pl_buf_double(e->out, agg->q);
		pl_buf_chr(e->out, ')');
		break;
	case AGG_FIRST:
	case AGG_LAST:
		put_by_time(e, names[agg->kind], agg);
		break;
	case AGG_TOPK:
	case AGG_HIST:
		pl_export_refuse(e, agg->at, "lists, which topk and hist make, do");
		break;
	default:
		put_named(e, agg, names, sizeof(names) / sizeof(names[0]));
		break;
	}
}

static void for_flink(struct exporter *e, const struct agg *agg)
{
	static const char *const names[] = { [AGG_APPROX_DISTINCT] = "COUNT(DISTINCT ",
		[AGG_SUM] = "SUM(",
		[AGG_MIN] = "MIN(",
		[AGG_MAX] = "MAX(" };

	switch (agg->kind) {
	case AGG_COUNT:
		put_call(e, "COUNT(", agg, agg->n_args == 0 ? "*)" : ")");
		break;
	case AGG_COUNT_DISTINCT:
		if (agg->n_args > 1)
			put_tuple(e, agg);
		else
			put_call(e, "COUNT(DISTINCT ", agg, ")");
		break;
	case AGG_AVG:
		put_call(e, "AVG(CAST(", agg, " AS DOUBLE))");
		break;
	case AGG_STDDEV:
		put_call(e, "STDDEV_POP(CAST(", agg, " AS DOUBLE))");
		break;
	case AGG_QUANTILE:
		pl_export_refuse(e, agg->at, "quantile does");
		break;
	case AGG_FIRST:
	case AGG_LAST:
		pl_export_refuse(e, agg->at, "first and last by event time do");
		break;
	case AGG_BIT_OR:
		pl_export_refuse(e, agg->at, "bit_or does");
		break;
	case AGG_TOPK:
	case AGG_HIST:
		pl_export_refuse(e, agg->at, "lists, which topk and hist make, do");
		break;
	default:
		put_named(e, agg, names, sizeof(names) / sizeof(names[0]));
		break;
	}
}

void pl_export_agg(struct exporter *e, const struct agg *agg)
{
	if (agg->kind == AGG_EWMA)
		pl_export_refuse(e, agg->at, "ewma does");
	else if (agg->kind == AGG_FOLD)
		pl_export_refuse(e, agg->at, "folds do");
	else if (e->dialect == PL_QUERY_CLICKHOUSE)
		for_clickhouse(e, agg);
	else if (e->dialect == PL_QUERY_DUCKDB)
		for_duckdb(e, agg);
	else
		for_flink(e, agg);
}
