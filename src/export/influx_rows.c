/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of queries as lines of InfluxDB. */
#include "export/influx_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "export/influx_state.h"
#include "query/result_json.h"

/* Columns that follow those of the query in every row. */
enum { END, FINAL, FIRST, LATE, POINTS, INCOMPLETE, N_OWN };
static const char *const own[N_OWN] = { "w1", "final", "first_ts", "late", "exp", "incomplete" };

int pl_influx_rows_check(const struct pl_query *query, struct pl_diag *diag)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(query, &columns);

	for (uint32_t i = 0; i < n; i++) {
		if (columns[i].type == PL_QUERY_LIST)
			return pl_diag_fail(diag, -EINVAL,
				"influx: the column \"%s\" is a list, for which a line of InfluxDB has no form",
				columns[i].name);
		if (strcmp(columns[i].name, "time") == 0)
			return pl_diag_fail(diag, -EINVAL,
				"influx: a column \"time\" is the time of a line in InfluxDB: name it otherwise, by AS");
	}
	return 0;
}

/* ---- tags ---- */

/* Appends a tag; an absent key or an empty text is left out. */
static void add_tag(
	struct pl_buf *out, const struct pl_query_column *column, const struct pl_query_value *v)
{
	char text[PL_QUERY_WORD_MAX];
	const char *word = pl_query_value_word(column, v, text);

	if (v->absent || (v->type == PL_QUERY_TEXT && v->text[0] == '\0'))
		return;
	pl_buf_chr(out, ',');
	pl_influx_escape(out, column->name);
	pl_buf_chr(out, '=');
	if (word != NULL || v->type == PL_QUERY_TEXT)
		pl_influx_escape(out, word != NULL ? word : v->text);
	else if (v->type == PL_QUERY_BOOL)
		pl_buf_str(out, v->b ? "true" : "false");
	else
		pl_query_value_put(out, v);
}

/* ---- fields ---- */

static void add_name(struct pl_buf *out, size_t begin, const char *name, const char *suffix)
{
	pl_buf_chr(out, out->len == begin ? ' ' : ',');
	pl_influx_escape(out, name);
	pl_buf_str(out, suffix);
	pl_buf_chr(out, '=');
}

/* Appends a text in quotes, escaped; control characters become "?". */
static void add_text(struct pl_buf *out, const char *text)
{
	pl_buf_chr(out, '"');
	for (; *text != '\0'; text++) {
		const char c = *text;

		if (c == '"' || c == '\\')
			pl_buf_chr(out, '\\');
		pl_buf_chr(out, (unsigned char)c < 0x20 || c == 0x7f ? '?' : c);
	}
	pl_buf_chr(out, '"');
}

/* Appends an integer: one above 63 bits, the server's limit, as a text of another name. */
static void add_unsigned(struct pl_buf *out, size_t begin, const char *name, uint64_t v)
{
	const bool large = v > INT64_MAX;

	add_name(out, begin, name, large ? "_u64" : "");
	pl_buf_printf(out, large ? "\"%" PRIu64 "\"" : "%" PRIu64 "i", v);
}

static void add_other(struct pl_buf *out, const struct pl_query_value *v)
{
	char text[PL_ADDR_TEXT_MAX + 1];

	if (v->type == PL_QUERY_ADDR) {
		text[pl_format_addr(text, &v->addr)] = '\0';
		add_text(out, text);
	} else if (v->type == PL_QUERY_SIGNED) {
		pl_buf_printf(out, "%" PRId64 "i", v->i);
	} else if (v->type == PL_QUERY_BOOL) {
		pl_buf_str(out, v->b ? "true" : "false");
	} else if (v->type == PL_QUERY_TEXT) {
		add_text(out, v->text);
	} else {
		pl_buf_double(out, v->d);
	}
}

static void add_field(struct pl_buf *out, size_t begin, const struct pl_query_column *column,
	const struct pl_query_value *v)
{
	char text[PL_QUERY_WORD_MAX];
	const char *word = pl_query_value_word(column, v, text);

	if (v->absent || (v->type == PL_QUERY_DOUBLE && !isfinite(v->d)))
		return;
	if (word == NULL && v->type == PL_QUERY_UNSIGNED) {
		add_unsigned(out, begin, column->name, v->u);
		return;
	}
	add_name(out, begin, column->name, "");
	if (word != NULL)
		add_text(out, word);
	else
		add_other(out, v);
}

static void add_points(struct pl_buf *out, const struct pl_query_row *row)
{
	pl_buf_chr(out, '"');
	for (uint32_t i = 0; i < row->n_exp; i++)
		pl_buf_printf(out, "%s%u", i > 0 ? " " : "", row->exp[i]);
	pl_buf_printf(out, "%s\"", row->exp_more ? " +" : "");
}

static bool has_own(const struct pl_query_row *row, unsigned int which)
{
	return which == END      ? row->windowed
	       : which == FIRST  ? row->first_ns != PL_QUERY_NO_TIME
	       : which == POINTS ? row->n_exp > 0
				 : true;
}

static void add_own(
	struct pl_buf *out, size_t begin, const struct pl_query_row *row, unsigned int which)
{
	if (which == LATE || which == FIRST) {
		add_unsigned(out, begin, own[which], which == LATE ? row->late : row->first_ns);
		return;
	}
	add_name(out, begin, own[which], "");
	if (which == END)
		pl_buf_printf(out, "%" PRId64 "i", row->end_ns);
	else if (which == POINTS)
		add_points(out, row);
	else
		pl_buf_str(out, (which == FINAL ? row->final : row->incomplete) ? "true" : "false");
}

/* ---- a line ---- */

static uint64_t time_of(const struct pl_query_row *row, uint64_t real_ns)
{
	if (row->windowed)
		return row->start_ns > 0 ? (uint64_t)row->start_ns : 0;
	return row->first_ns != PL_QUERY_NO_TIME ? row->first_ns : real_ns;
}

static void put_tags(struct pl_buf *out, const struct pl_query *query, const char *name,
	const struct pl_query_row *row, const bool *keys)
{
	const struct pl_query_column *columns;

	(void)pl_query_columns(query, &columns);
	pl_buf_str(out, "pathline_query_");
	pl_influx_escape(out, name);
	for (uint32_t i = 0; i < row->n; i++) {
		if (keys[i])
			add_tag(out, &columns[i], &row->values[i]);
	}
}

static void put_fields(struct pl_buf *out, const struct pl_query *query,
	const struct pl_query_row *row, const bool *keys)
{
	const struct pl_query_column *columns;
	const size_t begin = out->len;

	(void)pl_query_columns(query, &columns);
	for (uint32_t i = 0; i < row->n; i++) {
		if (!keys[i])
			add_field(out, begin, &columns[i], &row->values[i]);
	}
	for (unsigned int i = 0; i < N_OWN; i++) {
		if (has_own(row, i) && !pl_query_has_column(query, own[i]))
			add_own(out, begin, row, i);
	}
}

int pl_influx_put_row(void *format, const struct pl_query *query, const char *name,
	const struct pl_query_row *row, uint64_t real_ns, struct pl_buf *out)
{
	const uint64_t ts_ns = time_of(row, real_ns);
	const size_t begin = out->len;
	bool keys[PL_QUERY_ITEMS_MAX];
	uint64_t at_ns;

	if (!pl_influx_time_good(ts_ns, real_ns))
		return -ERANGE;
	(void)pl_query_key_columns(query, keys);
	put_tags(out, query, name, row, keys);
	if (out->failed)
		return -E2BIG;
	/* The row of a closed window replaces the row of its first crossing. */
	if (!pl_influx_place(format, out->data + begin, out->len - begin,
		    row->windowed && !row->final, ts_ns, &at_ns))
		return -ENOSPC;
	put_fields(out, query, row, keys);
	pl_buf_chr(out, ' ');
	pl_buf_u64(out, at_ns);
	pl_buf_chr(out, '\n');
	return out->failed ? -E2BIG : 0;
}

int pl_influx_write_row(struct pl_export *e, const struct pl_query *query, const char *name,
	const struct pl_query_row *row, uint64_t now_ns)
{
	struct pl_buf line;
	int r;

	pl_buf_init(&line);
	r = pl_influx_put_row(pl_sender_format(e), query, name, row, pl_clock_real_ns(), &line);
	if (r == 0)
		pl_sender_write(e, line.data, 1, (uint32_t)line.len, (uint32_t)line.len, now_ns);
	pl_buf_done(&line);
	return r;
}
