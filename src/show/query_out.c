/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the rows of a question in a form of row_out.h. */
#include "show/query_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/complain.h"
#include "base/json.h"
#include "record/clocks.h"
#include "record/rows.h"
#include "show/stdout.h"

void pl_query_out_init(struct pl_query_out *rows, const struct pl_query *query, const char *form,
	bool stats, uint64_t limit)
{
	const bool array = strcmp(form, pl_out_forms[PL_OUT_JSON]) == 0;

	*rows = (struct pl_query_out){ .query = query,
		.form = array && stats ? pl_out_forms[PL_OUT_JSONL] : form,
		.limit = limit };
	pl_buf_init(&rows->text);
}

static bool is_time(const struct pl_query_column *c)
{
	return c->type == PL_QUERY_UNSIGNED && strcmp(c->unit, "ns") == 0;
}

static struct pl_column column_of(const struct pl_query_column *c)
{
	const int name = (int)strlen(c->name);

	return (struct pl_column){ .name = c->name,
		.number = !pl_query_column_has_words(c) &&
			  (c->type == PL_QUERY_UNSIGNED || c->type == PL_QUERY_SIGNED ||
				  c->type == PL_QUERY_DOUBLE || c->type == PL_QUERY_LIST),
		.flag = c->type == PL_QUERY_BOOL,
		.width = is_time(c)                     ? -30
			 : c->type == PL_QUERY_ADDR     ? -15
			 : c->type == PL_QUERY_TEXT     ? -16
			 : pl_query_column_has_words(c) ? -16
			 : c->type == PL_QUERY_LIST     ? -30
			 : name > 8                     ? name
							: 8 };
}

/* Columns that every row has behind the question's. */
enum extra { FIRST_TS, LATE, EXP, FINAL, INCOMPLETE };

static const struct pl_column extra_columns[PL_QUERY_OUT_EXTRA] = {
	[FIRST_TS] = { .name = "first_ts", .width = -30, .number = true, .wide = true },
	[LATE] = { .name = "late", .width = 6, .number = true, .wide = true },
	[EXP] = { .name = "exp", .width = -12, .number = true, .wide = true },
	[FINAL] = { .name = "final", .width = 5, .flag = true, .wide = true },
	[INCOMPLETE] = { .name = "incomplete", .width = 10, .flag = true, .wide = true },
};

/* Begins the output at the first row, which shows whether there are windows and first crossings.
 * With crossings a column distinguishes their rows from the final ones. */
static void begin(struct pl_query_out *rows, bool windowed, bool crossings)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(rows->query, &columns);
	unsigned int k = 0;

	if (windowed) {
		rows->columns[k++] =
			(struct pl_column){ .name = "window_start", .width = -30, .number = true };
		rows->columns[k++] = (struct pl_column){ .name = "window_end",
			.width = -30,
			.number = true,
			.wide = !pl_query_has_sessions(rows->query) };
	}
	for (uint32_t i = 0; i < n; i++)
		rows->columns[k++] = column_of(&columns[i]);
	rows->n_extra = 0;
	for (uint8_t i = 0; i < PL_QUERY_OUT_EXTRA; i++) {
		/* A column of the question with the same name replaces an extra one. */
		if ((i == FINAL && !windowed) ||
			pl_query_has_column(rows->query, extra_columns[i].name))
			continue;
		rows->extra[rows->n_extra++] = i;
		rows->columns[k] = extra_columns[i];
		rows->columns[k++].wide = i != FINAL || !crossings;
	}
	rows->begun = true;
	rows->windowed = windowed;
	pl_row_out_init(&rows->out, rows->form, rows->columns, k);
}

static bool for_people(const struct pl_query_out *rows)
{
	return rows->out.form == PL_OUT_TABLE || rows->out.form == PL_OUT_WIDE;
}

static void put_time(struct pl_query_out *rows, int64_t ns)
{
	char text[PL_TIME_TEXT_MAX];

	if (for_people(rows) && ns >= 0)
		pl_buf_add(&rows->text, text, pl_time_text(text, (uint64_t)ns));
	else
		pl_buf_printf(&rows->text, "%" PRId64, ns);
}

static void put_value(struct pl_buf *text, const struct pl_query_value *v);

/* Writes "443:1000 80:20": values with their counts. */
static void put_list(struct pl_buf *text, const struct pl_query_value *v)
{
	for (uint32_t i = 0; i < v->list.n; i++) {
		if (i > 0)
			pl_buf_chr(text, ' ');
		put_value(text, &v->list.items[i].value);
		pl_buf_printf(text, ":%" PRIu64, v->list.items[i].count);
	}
}

static void put_value(struct pl_buf *text, const struct pl_query_value *v)
{
	if (v->type == PL_QUERY_DOUBLE)
		pl_buf_printf(text, "%.10g", v->d);
	else if (v->type == PL_QUERY_LIST)
		put_list(text, v);
	else
		pl_query_value_put(text, v);
}

/* Writes [{"value":443,"count":1000,"error":0},…]. */
static void put_json_list(struct pl_buf *text, const struct pl_query_value *v)
{
	struct pl_json json;
	struct pl_buf one;

	pl_buf_init(&one);
	pl_json_init(&json, text);
	pl_json_array(&json);
	for (uint32_t i = 0; i < v->list.n; i++) {
		const struct pl_query_item *item = &v->list.items[i];

		one.len = 0;
		put_value(&one, &item->value);
		pl_json_object(&json);
		pl_json_key(&json, "value");
		if (item->value.type == PL_QUERY_ADDR || item->value.type == PL_QUERY_TEXT)
			pl_json_strn(&json, one.data, one.len);
		else if (item->value.type == PL_QUERY_BOOL)
			pl_json_bool(&json, item->value.b);
		else
			pl_json_raw(&json, one.data, one.len);
		pl_json_number(&json, "count", item->count);
		pl_json_number(&json, "error", item->error);
		pl_json_object_end(&json);
	}
	pl_json_array_end(&json);
	pl_buf_done(&one);
}

static bool for_json(const struct pl_query_out *rows)
{
	return rows->out.form == PL_OUT_JSON || rows->out.form == PL_OUT_JSONL;
}

static void put_column(
	struct pl_query_out *rows, const struct pl_query_column *c, const struct pl_query_value *v)
{
	char text[PL_QUERY_WORD_MAX];
	const char *word = pl_query_value_word(c, v, text);

	if (word != NULL)
		pl_buf_str(&rows->text, word);
	else if (is_time(c))
		put_time(rows, (int64_t)v->u);
	else if (v->type == PL_QUERY_LIST && for_json(rows))
		put_json_list(&rows->text, v);
	else
		put_value(&rows->text, v);
}

/* Writes "[3,7]" or "3 7", with null or "+" behind them when there are more. */
static void put_exp(struct pl_query_out *rows, const struct pl_query_row *row)
{
	const bool json = for_json(rows);
	const char between = json ? ',' : ' ';

	if (json)
		pl_buf_chr(&rows->text, '[');
	for (uint32_t i = 0; i < row->n_exp; i++) {
		if (i > 0)
			pl_buf_chr(&rows->text, between);
		pl_buf_u64(&rows->text, row->exp[i]);
	}
	if (row->exp_more && row->n_exp > 0)
		pl_buf_chr(&rows->text, between);
	if (row->exp_more)
		pl_buf_str(&rows->text, json ? "null" : "+");
	if (json)
		pl_buf_chr(&rows->text, ']');
}

/* Writes the value of an extra column; returns false when it is absent. */
static bool put_extra(struct pl_query_out *rows, const struct pl_query_row *row, enum extra extra)
{
	switch (extra) {
	case FIRST_TS:
		put_time(rows, (int64_t)row->first_ns);
		return row->first_ns != PL_QUERY_NO_TIME;
	case LATE:
		pl_buf_u64(&rows->text, row->late);
		break;
	case EXP:
		put_exp(rows, row);
		return row->n_exp > 0 || row->exp_more;
	case FINAL:
		pl_buf_str(&rows->text, row->final ? "yes" : "no");
		break;
	case INCOMPLETE:
		pl_buf_str(&rows->text, row->incomplete ? "yes" : "no");
		break;
	}
	return true;
}

/* Writes the texts of a row one behind the other, each with a zero behind it; `places` has the
 * beginning of each. */
static void put_row(
	struct pl_query_out *rows, const struct pl_query_row *row, size_t *places, bool *there)
{
	const struct pl_query_column *columns;
	unsigned int k = 0;

	(void)pl_query_columns(rows->query, &columns);
	rows->text.len = 0;
	if (rows->windowed) {
		const int64_t times[] = { row->start_ns, row->end_ns };

		for (int i = 0; i < 2; i++) {
			there[k] = true;
			places[k++] = rows->text.len;
			put_time(rows, times[i]);
			pl_buf_chr(&rows->text, '\0');
		}
	}
	for (uint32_t i = 0; i < row->n; i++) {
		there[k] = !row->values[i].absent;
		places[k++] = rows->text.len;
		if (!row->values[i].absent)
			put_column(rows, &columns[i], &row->values[i]);
		pl_buf_chr(&rows->text, '\0');
	}
	for (uint8_t i = 0; i < rows->n_extra; i++) {
		places[k] = rows->text.len;
		there[k++] = put_extra(rows, row, (enum extra)rows->extra[i]);
		pl_buf_chr(&rows->text, '\0');
	}
}

void pl_query_out_add(struct pl_query_out *rows, const struct pl_query_row *row)
{
	const char *values[PL_QUERY_OUT_COLUMNS];
	size_t places[PL_QUERY_OUT_COLUMNS] = { 0 };
	bool there[PL_QUERY_OUT_COLUMNS] = { false };

	if (pl_query_out_full(rows))
		return;
	if (!rows->begun)
		begin(rows, row->windowed, !row->final);
	put_row(rows, row, places, there);
	if (rows->text.failed) {
		rows->out.error = -ENOMEM;
		return;
	}
	for (unsigned int k = 0; k < rows->out.n; k++)
		values[k] = there[k] ? rows->text.data + places[k] : NULL;
	rows->n++;
	rows->incomplete += row->incomplete;
	pl_row_out_add(&rows->out, values);
}

void pl_query_out_write(struct pl_query_out *rows)
{
	if (rows->begun)
		pl_row_out_write(&rows->out);
}

bool pl_query_out_full(const struct pl_query_out *rows)
{
	return rows->gone || (rows->limit != 0 && rows->n >= rows->limit) ||
	       (rows->begun && pl_row_out_full(&rows->out));
}

bool pl_query_out_end(struct pl_query_out *rows, const struct pl_query_stats *stats)
{
	struct pl_json json;
	struct pl_buf text;

	pl_buf_done(&rows->text);
	if (rows->gone && !rows->begun)
		return true;
	if (!rows->begun)
		begin(rows, pl_query_gives_windows(rows->query), false);
	if (!pl_row_out_end(&rows->out))
		return false;
	if (stats == NULL)
		return true;
	pl_buf_init(&text);
	pl_json_init(&json, &text);
	pl_json_object(&json);
	pl_json_key(&json, "query");
	pl_json_object(&json);
	pl_stats_json(&pl_query_stats_list, stats, NULL, &json);
	pl_json_object_end(&json);
	if (rows->clocks != 0)
		pl_clocks_json(&(const struct pl_clocks){ .kinds = rows->clocks }, &json);
	pl_json_object_end(&json);
	pl_buf_chr(&text, '\n');
	pl_stdout_flush(&text, &rows->out.gone, &rows->out.error);
	pl_buf_done(&text);
	return true;
}

/* Causes for which records are missing in the answer. */
static const struct {
	size_t at; /* of the counter in struct pl_query_stats */
	const char *text;
} left_out[] = {
#define COUNTER(member) offsetof(struct pl_query_stats, member)
	{ COUNTER(texts_refused), "texts are absent: there were more than 65536 different ones" },
	{ COUNTER(groups_refused), "records were left out: there were more groups than --groups" },
	{ COUNTER(held_refused),
		"records were left out of a join: more than --groups of their side waited for partners" },
	{ COUNTER(partners_refused),
		"records had more than 4096 partners in a join, and the later ones were left out: a shorter WITHIN or one more key" },
	{ COUNTER(late),
		"records came too late for their windows and were left out; --lateness waits longer" },
	{ COUNTER(ahead), "records were ahead of the clock and were left out; --ahead takes them" },
	{ COUNTER(bad_time), "records have no time that is possible" },
	{ COUNTER(windows_refused), "records were left out because too many windows were open" },
#undef COUNTER
};

void pl_query_out_tell(const struct pl_query_out *rows, const struct pl_query_stats *stats)
{
	uint64_t n;

	if (rows->incomplete > 0)
		pl_complain("%" PRIu64
			    " rows are incomplete: records or texts of theirs were left out",
			rows->incomplete);
	for (size_t i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++) {
		memcpy(&n, (const char *)stats + left_out[i].at, sizeof(n));
		if (n > 0)
			pl_complain("%" PRIu64 " %s", n, left_out[i].text);
	}
}
