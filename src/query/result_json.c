/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a row of a result as a JSON object, with its key. */
#include "query/result_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "lang/lex.h"
#include "lang/plan.h"

#define EXACT_MAX (UINT64_C(1) << 53) /* integers up to this are exact as doubles */

/* ---- which columns are the group's ---- */

uint32_t pl_query_key_columns(const struct pl_query *query, bool *ret)
{
	const uint32_t n_items = query->stages[query->n_stages - 1]->n_items;
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_items; i++) {
		ret[i] = pl_query_column_is_key(query, i);
		n += ret[i];
	}
	return n;
}

/* Returns true when a column of the result is an estimate. */
static bool approximates(const struct pl_query *query)
{
	bool some = false;

	for (uint32_t i = 0; i < query->n_stages; i++) {
		const struct stage *stage = query->stages[i];

		for (uint32_t a = 0; a < stage->n_aggs; a++)
			some = some || stage->aggs[a].kind == AGG_APPROX_DISTINCT ||
			       stage->aggs[a].kind == AGG_QUANTILE ||
			       stage->aggs[a].kind == AGG_TOPK;
	}
	return some;
}

/* ---- the object ---- */

/* Writes an integer, and once more as a string when a double would round it. */
static void put_integer(
	struct pl_json *json, const char *name, bool negative, uint64_t size, bool always)
{
	char text[24], second[NAME_MAX_LEN + 2];
	const int len = snprintf(text, sizeof(text), "%s%" PRIu64, negative ? "-" : "", size);

	pl_json_key(json, name);
	pl_json_raw(json, text, (size_t)len);
	if (!always && size <= EXACT_MAX)
		return;
	snprintf(second, sizeof(second), "%s_s", name);
	pl_json_key(json, second);
	pl_json_strn(json, text, (size_t)len);
}

static void put_signed(struct pl_json *json, const char *name, int64_t value, bool always)
{
	put_integer(
		json, name, value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, always);
}

static void put_member(
	struct pl_json *json, const char *name, const char *unit, const struct pl_query_value *v);

static void put_list(struct pl_json *json, const struct pl_query_value *v)
{
	pl_json_array(json);
	for (uint32_t i = 0; i < v->list.n; i++) {
		pl_json_object(json);
		put_member(json, "value", "", &v->list.items[i].value);
		pl_json_number(json, "count", v->list.items[i].count);
		pl_json_number(json, "error", v->list.items[i].error);
		pl_json_object_end(json);
	}
	pl_json_array_end(json);
}

static void put_other(struct pl_json *json, const struct pl_query_value *v)
{
	char addr[PL_ADDR_TEXT_MAX];

	if (v->absent)
		pl_json_null(json);
	else if (v->type == PL_QUERY_DOUBLE)
		pl_json_double(json, v->d);
	else if (v->type == PL_QUERY_ADDR)
		pl_json_strn(json, addr, pl_format_addr(addr, &v->addr));
	else if (v->type == PL_QUERY_BOOL)
		pl_json_bool(json, v->b);
	else if (v->type == PL_QUERY_TEXT)
		pl_json_str(json, v->text);
	else
		put_list(json, v);
}

static void put_member(
	struct pl_json *json, const char *name, const char *unit, const struct pl_query_value *v)
{
	const bool is_time = strcmp(unit, "ns") == 0;

	if (!v->absent && v->type == PL_QUERY_UNSIGNED) {
		put_integer(json, name, false, v->u, is_time);
	} else if (!v->absent && v->type == PL_QUERY_SIGNED) {
		put_signed(json, name, v->i, is_time);
	} else {
		pl_json_key(json, name);
		put_other(json, v);
	}
}

static void put_column(
	struct pl_json *json, const struct pl_query_column *column, const struct pl_query_value *v)
{
	char text[PL_QUERY_WORD_MAX];
	const char *word = pl_query_value_word(column, v, text);

	if (word == NULL) {
		put_member(json, column->name, column->unit != NULL ? column->unit : "", v);
		return;
	}
	pl_json_key(json, column->name);
	pl_json_str(json, word);
}

static void put_members(struct pl_json *json, const char *name, const struct pl_query *query,
	const struct pl_query_row *row, const bool *keys, bool wanted)
{
	pl_json_key(json, name);
	pl_json_object(json);
	for (uint32_t i = 0; i < row->n; i++) {
		if (keys[i] == wanted)
			put_column(json, &query->columns[i], &row->values[i]);
	}
	pl_json_object_end(json);
}

/* Writes the number that HAVING compares with, when HAVING is one comparison. */
static void put_threshold(struct pl_json *json, const struct pl_query *query)
{
	const struct node *having = query->stages[query->n_stages - 1]->having, *value;
	struct pl_query_value v = { 0 };

	if (having == NULL || having->op != N_COMPARE || having->compare == T_EQ ||
		having->compare == T_NE)
		return;
	value = having->b->op == N_CONST ? having->b : having->a;
	if (value->op != N_CONST || value->type > PL_QUERY_DOUBLE)
		return;
	v.type = value->type;
	memcpy(&v.u, &value->u, sizeof(v.u));
	put_member(json, "thr", "", &v);
}

/* Writes the origin of the row. */
static void put_origin(struct pl_json *json, const struct pl_query_row *row)
{
	if (row->first_ns == PL_QUERY_NO_TIME) {
		pl_json_key(json, "first_ts");
		pl_json_null(json);
	} else {
		put_integer(json, "first_ts", false, row->first_ns, true);
	}
	pl_json_number(json, PL_QUERY_RESULT_LATE, row->late);
	pl_json_key(json, "exp");
	pl_json_array(json);
	for (uint32_t i = 0; i < row->n_exp; i++)
		pl_json_u64(json, row->exp[i]);
	if (row->exp_more)
		pl_json_null(json);
	pl_json_array_end(json);
}

static void put_object(const struct pl_query *query, const char *name,
	const struct pl_query_row *row, const bool *keys, struct pl_buf *value)
{
	struct pl_json json;

	pl_json_init(&json, value);
	pl_json_object(&json);
	pl_json_text(&json, "q", name);
	pl_json_number(&json, "v", PL_QUERY_RESULT_VERSION);
	if (row->windowed) {
		put_signed(&json, "w0", row->start_ns, true);
		put_signed(&json, "w1", row->end_ns, true);
	}
	put_members(&json, "key", query, row, keys, true);
	put_members(&json, "val", query, row, keys, false);
	put_threshold(&json, query);
	pl_json_key(&json, "final");
	pl_json_bool(&json, row->final);
	put_origin(&json, row);
	pl_json_key(&json, "incomplete");
	pl_json_bool(&json, row->incomplete);
	pl_json_key(&json, "approx");
	pl_json_bool(&json, approximates(query));
	pl_json_object_end(&json);
}

/* ---- the key ---- */

void pl_query_result_json(const struct pl_query *query, const char *name,
	const struct pl_query_row *row, struct pl_buf *key, struct pl_buf *value)
{
	bool keys[PL_QUERY_ITEMS_MAX] = { false };
	const uint32_t n = pl_query_key_columns(query, keys);
	bool first = true;

	if (value != NULL)
		put_object(query, name, row, keys, value);
	if (key == NULL || (n == 0 && !row->windowed))
		return;
	pl_buf_str(key, name);
	pl_buf_chr(key, '|');
	for (uint32_t i = 0; i < row->n; i++) {
		if (!keys[i])
			continue;
		if (!first)
			pl_buf_chr(key, ',');
		if (!row->values[i].absent)
			pl_query_value_put(key, &row->values[i]);
		first = false;
	}
}
