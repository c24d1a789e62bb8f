/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of queries for a table of ClickHouse, and the statement that creates the table. */
#include "export/clickhouse_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "record/clickhouse.h"

/* Columns that follow those of the query in every row; BEGIN and END only in rows of windows. */
enum { BEGIN, END, FINAL, FIRST, LATE, POINTS, INCOMPLETE, N_OWN };

static const struct {
	const char *name, *type, *help;
} own[N_OWN] = {
	[BEGIN] = { "w0", "DateTime64(9, 'UTC')", "begin of the window" },
	[END] = { "w1", "DateTime64(9, 'UTC')", "end of the window" },
	[FINAL] = { "final", "Bool", "the window has closed; false: a first crossing" },
	[FIRST] = { "first_ts", "Nullable(DateTime64(9, 'UTC'))",
		"earliest time of the records that it is made of" },
	[LATE] = { "late", "UInt64", "records that came too late since the window before closed" },
	[POINTS] = { "exp", "Array(Nullable(UInt16))",
		"observation points of its records; NULL at the end: and others" },
	[INCOMPLETE] = { "incomplete", "Bool", "something of it was left out for want of room" },
};

static const char *const types[PL_QUERY_TYPE_MAX] = {
	[PL_QUERY_UNSIGNED] = "Nullable(UInt64)",
	[PL_QUERY_SIGNED] = "Nullable(Int64)",
	[PL_QUERY_DOUBLE] = "Nullable(Float64)",
	[PL_QUERY_ADDR] = "Nullable(IPv6)",
	[PL_QUERY_BOOL] = "Nullable(Bool)",
	[PL_QUERY_LIST] = "Array(Tuple(value Nullable(String), count UInt64, error UInt64))",
	[PL_QUERY_TEXT] = "Nullable(String)",
};

static const char *type_of(const struct pl_query_column *column)
{
	return pl_query_column_has_words(column) ? types[PL_QUERY_TEXT] : types[column->type];
}

static bool has_own(const struct pl_query *query, unsigned int which)
{
	return (which > END || pl_query_gives_windows(query)) &&
	       !pl_query_has_column(query, own[which].name);
}

/* ---- the table ---- */

void pl_clickhouse_rows_columns(const struct pl_query *query, struct pl_buf *out)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(query, &columns);

	for (uint32_t i = 0; i < n; i++) {
		pl_buf_str(out, i > 0 ? ", " : "");
		pl_clickhouse_put_name(out, columns[i].name);
	}
	for (unsigned int i = 0; i < N_OWN; i++) {
		if (has_own(query, i))
			pl_buf_printf(out, ", %s", own[i].name);
	}
}

static void put_table_columns(const struct pl_query *query, struct pl_buf *out)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(query, &columns);
	const char *unit;

	for (uint32_t i = 0; i < n; i++) {
		unit = columns[i].unit != NULL ? columns[i].unit : "";
		pl_buf_str(out, i > 0 ? ",\n    " : "    ");
		pl_clickhouse_put_name(out, columns[i].name);
		pl_buf_printf(out, " %s", type_of(&columns[i]));
		if (unit[0] != '\0')
			pl_buf_printf(out, " COMMENT '%s'", unit);
	}
	for (unsigned int i = 0; i < N_OWN; i++) {
		if (has_own(query, i))
			pl_buf_printf(out, ",\n    %s %s COMMENT '%s'", own[i].name, own[i].type,
				own[i].help);
	}
}

void pl_clickhouse_rows_table(
	const struct pl_query *query, const char *what, const char *table, struct pl_buf *out)
{
	pl_buf_printf(out, "-- %s: a row is an object of JSONEachRow.\n", what);
	pl_buf_str(out, "CREATE TABLE IF NOT EXISTS ");
	pl_clickhouse_put_name(out, table);
	pl_buf_str(out, "\n(\n");
	put_table_columns(query, out);
	pl_buf_str(out, "\n)\nENGINE = MergeTree\n");
	pl_buf_str(out, has_own(query, BEGIN) ? "PARTITION BY toDate(w0)\nORDER BY w0\n"
					      : "ORDER BY tuple()\n");
	pl_buf_str(out, PL_CLICKHOUSE_ONCE);
}

/* ---- a row ---- */

/* Writes any address in the form of IPv6, which the column has. */
static void put_addr(struct pl_json *json, const struct pl_addr *addr)
{
	char text[PL_ADDR_TEXT_MAX + 8] = "::ffff:";
	const size_t n = pl_format_addr(text + 7, addr);
	const bool v4 = memchr(text + 7, ':', n) == NULL;

	pl_json_strn(json, v4 ? text : text + 7, v4 ? n + 7 : n);
}

/* Writes any value as a text. */
static void put_as_text(struct pl_json *json, const struct pl_query_value *v)
{
	struct pl_buf text;

	if (v->absent || v->type == PL_QUERY_LIST) {
		pl_json_null(json);
		return;
	}
	if (v->type == PL_QUERY_TEXT || v->type == PL_QUERY_BOOL) {
		pl_json_str(json, v->type == PL_QUERY_TEXT ? v->text : v->b ? "true" : "false");
		return;
	}
	pl_buf_init(&text);
	pl_query_value_put(&text, v);
	pl_json_strn(json, text.failed ? "" : text.data, text.failed ? 0 : text.len);
	json->buf->failed |= text.failed;
	pl_buf_done(&text);
}

static void put_list(struct pl_json *json, const struct pl_query_value *v)
{
	pl_json_array(json);
	for (uint32_t i = 0; i < v->list.n; i++) {
		pl_json_object(json);
		pl_json_key(json, "value");
		put_as_text(json, &v->list.items[i].value);
		pl_json_number(json, "count", v->list.items[i].count);
		pl_json_number(json, "error", v->list.items[i].error);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

static void put_value(
	struct pl_json *json, const struct pl_query_column *column, const struct pl_query_value *v)
{
	char text[PL_QUERY_WORD_MAX];
	const char *word = pl_query_value_word(column, v, text);

	if (word != NULL)
		pl_json_str(json, word);
	else if (v->type == PL_QUERY_LIST)
		put_list(json, v);
	else if (v->absent)
		pl_json_null(json);
	else if (pl_query_column_has_words(column) || v->type == PL_QUERY_TEXT)
		put_as_text(json, v);
	else if (v->type == PL_QUERY_ADDR)
		put_addr(json, &v->addr);
	else if (v->type == PL_QUERY_BOOL)
		pl_json_bool(json, v->b);
	else if (v->type == PL_QUERY_UNSIGNED)
		pl_json_u64(json, v->u);
	else if (v->type == PL_QUERY_SIGNED)
		pl_json_i64(json, v->i);
	else
		pl_json_double(json, v->d);
}

static void put_points(struct pl_json *json, const struct pl_query_row *row)
{
	pl_json_array(json);
	for (uint32_t i = 0; i < row->n_exp; i++)
		pl_json_u64(json, row->exp[i]);
	if (row->exp_more)
		pl_json_null(json);
	pl_json_array_end(json);
}

/* Writes seconds with nine decimals as a text: of a number only whole seconds would be read. */
static void put_time(struct pl_json *json, bool negative, uint64_t ns)
{
	char text[40];
	const int n = snprintf(text, sizeof(text), "%s%" PRIu64 ".%09" PRIu64, negative ? "-" : "",
		ns / 1000000000, ns % 1000000000);

	pl_json_strn(json, text, (size_t)n);
}

static void put_own(struct pl_json *json, const struct pl_query_row *row, unsigned int which)
{
	const int64_t bound_ns = which == BEGIN ? row->start_ns : row->end_ns;

	pl_json_key(json, own[which].name);
	if (which == BEGIN || which == END)
		put_time(json, bound_ns < 0,
			bound_ns < 0 ? 0 - (uint64_t)bound_ns : (uint64_t)bound_ns);
	else if (which == FINAL || which == INCOMPLETE)
		pl_json_bool(json, which == FINAL ? row->final : row->incomplete);
	else if (which == LATE)
		pl_json_u64(json, row->late);
	else if (which == POINTS)
		put_points(json, row);
	else if (row->first_ns == PL_QUERY_NO_TIME)
		pl_json_null(json);
	else
		put_time(json, false, row->first_ns);
}

void pl_clickhouse_put_row(
	const struct pl_query *query, const struct pl_query_row *row, struct pl_buf *out)
{
	const struct pl_query_column *columns;
	struct pl_json json;

	(void)pl_query_columns(query, &columns);
	pl_json_init(&json, out);
	pl_json_object(&json);
	for (uint32_t i = 0; i < row->n; i++) {
		pl_json_key(&json, columns[i].name);
		put_value(&json, &columns[i], &row->values[i]);
	}
	for (unsigned int i = 0; i < N_OWN; i++) {
		if (has_own(query, i))
			put_own(&json, row, i);
	}
	pl_json_object_end(&json);
	pl_buf_chr(out, '\n');
}

int pl_clickhouse_write_row(struct pl_export *e, const struct pl_query *query,
	const struct pl_query_row *row, uint64_t now_ns)
{
	struct pl_buf line;
	int r;

	pl_buf_init(&line);
	pl_clickhouse_put_row(query, row, &line);
	r = line.failed ? -ENOMEM : 0;
	if (r == 0)
		pl_sender_write(e, line.data, 1, (uint32_t)line.len, (uint32_t)line.len, now_ns);
	pl_buf_done(&line);
	return r;
}
