/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a plan as an SQL statement: each stage that another one reads becomes stepN in WITH. */
#include "lang/export.h"

#include <string.h>

#include "lang/export_state.h"

const char *pl_query_dialect_name(enum pl_query_dialect dialect)
{
	static const char *const names[PL_QUERY_DIALECTS] = { "clickhouse", "flink", "duckdb" };

	return names[dialect];
}

/* ---- windows ---- */

static bool windowed(const struct exporter *e)
{
	/* A row of one record has no window. */
	return e->query->window.kind != W_NONE && (e->stage->grouped || e->stage->n_sources > 0);
}

/* Writes the begin of the window of the stage's rows, in ns. */
static void put_window(struct exporter *e)
{
	const struct ast_window *w = &e->query->window;

	if (e->stage->n_sources > 0) {
		pl_buf_str(e->out, "t1.window_start");
	} else if (w->kind == W_HOP || e->dialect == PL_QUERY_FLINK) {
		pl_buf_str(e->out, "r.window_start");
	} else if (e->dialect == PL_QUERY_DUCKDB) {
		pl_export_time(e);
		pl_buf_printf(e->out, " // %llu * %llu", (unsigned long long)w->size_ns,
			(unsigned long long)w->size_ns);
	} else {
		pl_buf_str(e->out, "intDiv(");
		pl_export_time(e);
		pl_buf_printf(e->out, ", %llu) * %llu", (unsigned long long)w->size_ns,
			(unsigned long long)w->size_ns);
	}
}

/* A record is of all windows that hold it. */
static void put_hop(struct exporter *e, const char *stream)
{
	const struct ast_window *w = &e->query->window;
	const unsigned long long size = w->size_ns, step = w->step_ns;

	pl_buf_str(e->out, "(SELECT *, arrayJoin(arrayFilter(w -> w + ");
	pl_buf_printf(e->out, "%llu > ", size);
	pl_export_time(e);
	pl_buf_str(e->out, ", arrayMap(i -> (intDiv(");
	pl_export_time(e);
	pl_buf_printf(e->out, ", %llu) - i) * %llu, range(%llu)))) AS window_start FROM ", step,
		step, (size + step - 1) / step);
	pl_export_name(e, stream);
	pl_buf_str(e->out, " AS r) AS r");
}

static void put_duckdb_hop(struct exporter *e, const char *stream)
{
	const struct ast_window *w = &e->query->window;
	const unsigned long long size = w->size_ns, step = w->step_ns;

	pl_buf_str(e->out, "(SELECT *, unnest([(");
	pl_export_time(e);
	pl_buf_printf(e->out, " // %llu - i) * %llu FOR i IN range(%llu) IF (", step, step,
		(size + step - 1) / step);
	pl_export_time(e);
	pl_buf_printf(e->out, " // %llu - i) * %llu + %llu > ", step, step, size);
	pl_export_time(e);
	pl_buf_str(e->out, "]) AS window_start FROM ");
	pl_export_name(e, stream);
	pl_buf_str(e->out, " AS r) AS r");
}

static void put_interval(struct exporter *e, uint64_t ns)
{
	const unsigned long long ms = ns / 1000000;

	if (ns % 1000000 != 0)
		pl_export_refuse(e, e->query->window.at, "windows of parts of a millisecond do");
	pl_buf_printf(e->out, "INTERVAL '%llu %02llu:%02llu:%02llu.%03llu' DAY TO SECOND(3)",
		ms / 86400000, ms / 3600000 % 24, ms / 60000 % 60, ms / 1000 % 60, ms % 1000);
}

static void put_flink_windows(struct exporter *e, const char *stream)
{
	const struct ast_window *w = &e->query->window;

	pl_buf_str(e->out, w->kind == W_HOP ? "TABLE(HOP(TABLE " : "TABLE(TUMBLE(TABLE ");
	pl_export_name(e, stream);
	pl_buf_str(e->out, ", DESCRIPTOR(rowtime), ");
	if (w->kind == W_HOP) {
		put_interval(e, w->step_ns);
		pl_buf_str(e->out, ", ");
	}
	put_interval(e, w->size_ns);
	pl_buf_str(e->out, ")) AS r");
}

/* ---- parts of a statement ---- */

static void put_stream(struct exporter *e)
{
	const char *stream = pl_flat(e->stage->kind)->stream;

	if (windowed(e) && e->dialect == PL_QUERY_FLINK) {
		put_flink_windows(e, stream);
	} else if (windowed(e) && e->query->window.kind == W_HOP && e->dialect == PL_QUERY_DUCKDB) {
		put_duckdb_hop(e, stream);
	} else if (windowed(e) && e->query->window.kind == W_HOP) {
		put_hop(e, stream);
	} else {
		pl_export_name(e, stream);
		pl_buf_str(e->out, " AS r");
	}
}

/* Writes the key's column in the sources before the join. A key that is NULL equals none, in all
 * three systems. */
static void put_left(struct exporter *e, const struct join_key *key, uint32_t source)
{
	const struct schema *before = &e->stage->sources[source - 1].out;
	const struct node node = { .op = N_COLUMN,
		.type = key->left->type,
		.column = &e->stage->input.columns[key->left - before->columns] };

	pl_export_node(e, &node, true);
}

static void put_on(struct exporter *e, uint32_t i, const char *begin)
{
	const struct join *join = &e->stage->sources[i];

	for (uint32_t k = 0; k < join->n_keys; k++) {
		pl_buf_str(e->out, k == 0 ? begin : " AND ");
		put_left(e, &join->keys[k], i);
		pl_buf_printf(e->out, " = t%u.", i + 1);
		pl_export_name(e, join->keys[k].right->name);
	}
	if (!windowed(e))
		return;
	pl_buf_printf(e->out, " AND t1.window_start = t%u.window_start", i + 1);
	if (e->dialect == PL_QUERY_FLINK)
		pl_buf_printf(e->out, " AND t1.window_end = t%u.window_end", i + 1);
}

static const char *join_of(const struct exporter *e, enum join_kind kind)
{
	static const char *const joins[] = { "", "INNER JOIN", "LEFT JOIN", "LEFT ANTI JOIN" };

	return kind == J_ANTI && e->dialect == PL_QUERY_DUCKDB ? "ANTI JOIN" : joins[kind];
}

static void put_sources(struct exporter *e)
{
	for (uint32_t i = 0; i < e->stage->n_sources; i++) {
		const struct join *join = &e->stage->sources[i];

		if (join->kind == J_ANTI && e->dialect == PL_QUERY_FLINK)
			continue; /* put_antis() */
		if (i > 0)
			pl_buf_printf(e->out, "\n%s ", join_of(e, join->kind));
		pl_buf_printf(e->out, "step%u AS t%u", join->stage->number + 1, i + 1);
		if (i > 0)
			put_on(e, i, " ON ");
	}
}

/* Flink has anti joins of windows as NOT EXISTS only. */
static void put_antis(struct exporter *e, const char *begin)
{
	for (uint32_t i = 1; i < e->stage->n_sources; i++) {
		const struct join *join = &e->stage->sources[i];

		if (join->kind != J_ANTI)
			continue;
		pl_buf_printf(e->out, "%sNOT EXISTS (SELECT * FROM step%u AS t%u", begin,
			join->stage->number + 1, i + 1);
		put_on(e, i, " WHERE ");
		pl_buf_chr(e->out, ')');
		begin = "\n    AND ";
	}
}

static void put_key_of(struct exporter *e, unsigned int side, uint32_t k)
{
	const struct stage *stage = e->stage;

	pl_export_side(e, side);
	pl_export_node(e, stage->pairs->keys[side][k].node, true);
	pl_export_whole(e, stage);
}

/* Writes the two sides, which are steps of their own, and the conditions of a pair. */
static void put_pairs(struct exporter *e)
{
	const struct stage *stage = e->stage;
	const struct pairs *pairs = stage->pairs;

	if (e->dialect == PL_QUERY_FLINK)
		pl_export_refuse(e, pairs->at, "joins of records WITHIN a time do");
	if (stage->grouped && e->query->window.kind == W_HOP)
		pl_export_refuse(e, e->query->window.at, "HOP windows of joined records do");
	pl_buf_printf(e->out, "step%u AS t1\n%s step%u AS t2 ON ", pairs->sides[0]->number + 1,
		join_of(e, pairs->kind), pairs->sides[1]->number + 1);
	for (uint32_t k = 0; k < pairs->n_keys; k++) {
		put_key_of(e, 0, k);
		pl_buf_str(e->out, " = ");
		put_key_of(e, 1, k);
		pl_buf_str(e->out, " AND ");
	}
	pl_buf_str(e->out, "abs(");
	pl_export_time(e);
	pl_buf_str(e->out, " - ");
	pl_export_side(e, 1);
	pl_export_time(e);
	pl_export_whole(e, stage);
	pl_buf_printf(e->out, ") <= %llu", (unsigned long long)pairs->within_ns);
	if (pairs->on != NULL) {
		pl_buf_str(e->out, " AND ");
		pl_export_node(e, pairs->on, true);
	}
}

static void put_where(struct exporter *e)
{
	const char *begin = "\nWHERE ";

	for (uint32_t i = 0; i < e->stage->n_where; i++) {
		pl_buf_str(e->out, begin);
		pl_export_node(e, e->stage->where[i], true);
		begin = "\n    AND ";
	}
	if (e->dialect == PL_QUERY_FLINK)
		put_antis(e, begin);
}

static void put_groups(struct exporter *e)
{
	const struct stage *stage = e->stage;
	bool first = true;

	if (!stage->grouped)
		return;
	if (windowed(e)) {
		pl_buf_str(e->out, "\nGROUP BY ");
		put_window(e);
		if (e->dialect == PL_QUERY_FLINK)
			pl_buf_str(e->out,
				stage->n_sources > 0 ? ", t1.window_end" : ", r.window_end");
		first = false;
	}
	for (uint32_t i = 0; i < stage->n_keys; i++) {
		/* A constant there is the number of a column. */
		if (stage->keys[i].node->op == N_CONST)
			continue;
		pl_buf_str(e->out, first ? "\nGROUP BY " : ", ");
		pl_export_node(e, stage->keys[i].node, false);
		first = false;
	}
	if (stage->having != NULL || first)
		pl_buf_str(e->out, "\nHAVING ");
	if (first) /* without records SQL has one row, a query none */
		pl_buf_str(e->out, "COUNT(*) > 0");
	if (stage->having != NULL) {
		pl_buf_str(e->out, first ? " AND " : "");
		pl_export_node(e, stage->having, true);
	}
}

/* The first rows of each window by the numbers of rows, in a query around this one. */
static bool numbered(const struct exporter *e)
{
	return e->dialect != PL_QUERY_CLICKHOUSE && windowed(e) && e->stage->has_limit;
}

static void put_items(struct exporter *e)
{
	const struct stage *stage = e->stage;
	const bool last = stage->number + 1 == e->query->n_stages;
	const bool text = last && e->dialect != PL_QUERY_FLINK && !numbered(e);
	const char *source = stage->n_sources > 0 ? "t1" : "r";

	pl_buf_str(e->out, "SELECT");
	if (windowed(e)) {
		pl_buf_str(e->out, !text                               ? " "
				   : e->dialect == PL_QUERY_CLICKHOUSE ? " fromUnixTimestamp64Nano("
								       : " make_timestamp_ns(");
		put_window(e);
		pl_buf_str(e->out, !text                               ? ""
				   : e->dialect == PL_QUERY_CLICKHOUSE ? ", 'UTC')"
								       : ")");
		pl_buf_str(e->out, " AS window_start,");
		if (e->dialect == PL_QUERY_FLINK)
			pl_buf_printf(e->out, " %s.window_end AS window_end,", source);
	}
	pl_buf_str(e->out, stage->n_items == 0 ? " *" : "");
	for (uint32_t i = 0; i < stage->n_items; i++) {
		const char *name = stage->out.columns[i].name;

		if (windowed(e) && strncmp(name, "window_", 7) == 0)
			pl_export_refuse(e, stage->items[i]->at, "columns named window_… do");
		pl_buf_str(e->out, i == 0 ? " " : ", ");
		pl_export_node(e, stage->items[i], false);
		pl_buf_str(e->out, " AS ");
		pl_export_name(e, name);
	}
	pl_buf_str(e->out, "\nFROM ");
}

static void put_numbers(struct exporter *e)
{
	const struct stage *stage = e->stage;

	const bool duckdb = e->dialect == PL_QUERY_DUCKDB;
	const bool last = stage->number + 1 == e->query->n_stages;

	if (stage->order < 0)
		pl_export_refuse(e, e->query->window.at, "LIMIT of a window without ORDER BY does");
	pl_buf_str(e->out, !duckdb ? "SELECT window_start, window_end"
			   : last  ? "SELECT make_timestamp_ns(window_start) AS window_start"
				   : "SELECT window_start");
	for (uint32_t i = 0; i < stage->n_items; i++) {
		pl_buf_str(e->out, ", ");
		pl_export_name(e, stage->out.columns[i].name);
	}
	pl_buf_str(e->out, "\nFROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start");
	pl_buf_str(e->out, duckdb ? " ORDER BY " : ", window_end ORDER BY ");
	if (stage->order >= 0)
		pl_export_name(e, stage->out.columns[stage->order].name);
	pl_buf_str(e->out, stage->descending ? " DESC" : " ASC");
	pl_buf_str(e->out, ") AS row_num FROM (\n");
}

/* Refuses to order by addresses that are texts, whose order differs. */
static void check_order(struct exporter *e)
{
	const struct stage *stage = e->stage;

	if (stage->order >= 0 && e->dialect != PL_QUERY_CLICKHOUSE &&
		stage->items[stage->order]->type == PL_QUERY_ADDR)
		pl_export_refuse(e, stage->items[stage->order]->at, "ORDER BY of addresses does");
}

static void put_order(struct exporter *e)
{
	const struct stage *stage = e->stage;

	check_order(e);
	if (numbered(e)) {
		pl_buf_printf(
			e->out, "\n)) WHERE row_num <= %llu", (unsigned long long)stage->limit);
		if (e->dialect == PL_QUERY_DUCKDB)
			pl_buf_str(e->out, " ORDER BY window_start, row_num");
		return;
	}
	if (e->dialect == PL_QUERY_FLINK && !stage->has_limit)
		return; /* put_notes() */

	if (stage->order >= 0) {
		pl_buf_str(e->out, windowed(e) ? "\nORDER BY window_start, " : "\nORDER BY ");
		pl_export_name(e, stage->out.columns[stage->order].name);
		pl_buf_str(e->out, stage->descending ? " DESC" : " ASC");
		if (e->dialect != PL_QUERY_FLINK)
			pl_buf_str(e->out, " NULLS LAST");
	}
	if (stage->has_limit)
		pl_buf_printf(e->out, windowed(e) ? "\nLIMIT %llu BY window_start" : "\nLIMIT %llu",
			(unsigned long long)stage->limit);
}

static void put_stage(struct exporter *e, const struct stage *stage)
{
	e->stage = stage;
	if (numbered(e))
		put_numbers(e);
	put_items(e);
	if (stage->n_sources > 0)
		put_sources(e);
	else if (stage->pairs != NULL)
		put_pairs(e);
	else
		put_stream(e);
	put_where(e);
	put_groups(e);
	put_order(e);
}

static void put_notes(struct exporter *e)
{
	const struct stage *last = e->query->stages[e->query->n_stages - 1];

	if (last->emit_first)
		pl_buf_str(e->out,
			"-- EMIT FIRST: here are the rows of whole windows only, as of EMIT FINAL.\n");
	if (last->order >= 0 && !last->has_limit && e->dialect == PL_QUERY_FLINK)
		pl_buf_str(e->out, "-- ORDER BY without LIMIT: here rows are in no order.\n");
}

static void put_statement(struct exporter *e)
{
	const uint32_t n = e->query->n_stages;

	if (e->query->window.kind == W_SESSION)
		pl_export_refuse(e, e->query->window.at, "SESSION does");
	put_notes(e);
	for (uint32_t i = 0; i + 1 < n; i++) {
		pl_buf_str(e->out, i == 0 ? "WITH " : ",\n");
		pl_buf_printf(e->out, "step%u AS (\n", i + 1);
		put_stage(e, e->query->stages[i]);
		pl_buf_str(e->out, "\n)");
	}
	pl_buf_str(e->out, n > 1 ? "\n" : "");
	put_stage(e, e->query->stages[n - 1]);
	if (n > 1 && e->dialect == PL_QUERY_CLICKHOUSE)
		pl_buf_str(e->out, "\nSETTINGS join_use_nulls = 1");
	pl_buf_chr(e->out, '\n');
}

int pl_query_export(const struct pl_query *query, const char *text, enum pl_query_dialect dialect,
	struct pl_buf *out, struct pl_diag *diag)
{
	struct exporter e = { .dialect = dialect,
		.query = query,
		.out = out,
		.source = "r",
		.lx = { .text = text, .len = (uint32_t)strlen(text), .diag = diag } };

	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];

		const bool other = stage->n_sources == 0 && stage->kind >= PL_FLAT_MAX;

		if (stage->zip != NULL)
			pl_export_refuse(
				&e, stage->at, "ZIP, which is of one record in two queries, does");
		else if (stage->pairs == NULL && other)
			pl_export_refuse(&e, stage->at, "paths, hops, events and values do");
	}
	if (!e.failed)
		put_statement(&e);
	if (e.failed)
		return -ENOTSUP;
	if (out->failed) {
		pl_diag_set(diag, "out of memory");
		return -ENOMEM;
	}
	return 0;
}
