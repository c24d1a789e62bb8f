/* SPDX-License-Identifier: BSD-2-Clause */
/* The view of "pathline top": makes its requests and prints it. */
#include "show/top_view.h"

#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "web/client.h"

#define BATCH_COLS 132

int pl_top_view_init(struct pl_top_view *v, const char *screen, const char *sort, const char *where)
{
	const struct pl_top_screen *s = pl_top_screen_find(screen);
	int column;

	*v = (struct pl_top_view){ .screen = (unsigned int)(s - pl_top_screens) };
	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		v->sort[i] = pl_top_screens[i].sort;
		v->descending[i] = true;
	}
	if (where != NULL) {
		if (strlen(where) >= sizeof(v->where))
			return pl_fail(PL_EXIT_USAGE, "--where: longer than %d characters",
				PL_TOP_FILTER_MAX - 1);
		snprintf(v->where, sizeof(v->where), "%s", where);
	}
	if (sort == NULL)
		return 0;
	column = pl_top_column_find(s, sort);
	if (column < 0 || s->columns[column].cell == PL_TOP_FLOW)
		return pl_fail(PL_EXIT_USAGE, "--sort: %s have no column \"%s\"", s->name, sort);
	v->sort[v->screen] = (unsigned int)column;
	v->descending[v->screen] = pl_top_descends(&s->columns[column]);
	return 0;
}

const struct pl_top_screen *pl_top_view_screen(const struct pl_top_view *v)
{
	return &pl_top_screens[v->screen];
}

const struct pl_top_column *pl_top_view_column(const struct pl_top_view *v)
{
	return &pl_top_view_screen(v)->columns[v->sort[v->screen]];
}

static bool by_rate(const struct pl_top_view *v)
{
	return pl_top_view_column(v)->cell == PL_TOP_RATE;
}

/* Rates are sorted here: the daemon sorts by the counter. */
bool pl_top_view_path(const struct pl_top_view *v, unsigned int rows, char *dst, size_t cap)
{
	char sort[64], limit[16];

	snprintf(dst, cap, "/api/v1/%s", pl_top_view_screen(v)->name);
	snprintf(sort, sizeof(sort), "%s%s", v->descending[v->screen] || by_rate(v) ? "-" : "",
		strcmp(pl_top_view_column(v)->key, "time") == 0 ? "ts_ns"
		: strcmp(pl_top_view_column(v)->key, "last_time") == 0
			? "last_ts_ns"
			: pl_top_view_column(v)->key);
	snprintf(limit, sizeof(limit), "%u", by_rate(v) ? (unsigned int)PL_TOP_ROWS : rows);
	return pl_client_parameter(dst, cap, "sort", sort) &&
	       pl_client_parameter(dst, cap, "limit", limit) &&
	       (v->where[0] == '\0' || pl_client_parameter(dst, cap, "where", v->where));
}

void pl_top_view_done(struct pl_top_view *v)
{
	json_decref(v->status);
	json_decref(v->before);
	json_decref(v->table);
	pl_top_rates_done(&v->rates);
}

void pl_top_view_take(struct pl_top_view *v, struct pl_top_answer *a)
{
	json_decref(v->before);
	v->before = v->status;
	v->status = a->status;
	json_decref(v->table);
	v->table = a->table;
	a->status = a->table = NULL;
	pl_top_rates_apply(
		&v->rates, pl_top_view_screen(v), v->table, by_rate(v), v->descending[v->screen]);
}

bool pl_top_ascii(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

/* ---- printing ---- */

static void print_table(const struct pl_top_view *v, uint64_t most, struct pl_buf *out)
{
	const json_t *rows = json_object_get(v->table, "rows");

	pl_top_head(out, v->status, v->source, BATCH_COLS);
	pl_buf_chr(out, '\n');
	pl_top_sums(out, v->status, v->before, BATCH_COLS);
	pl_buf_str(out, "\n\n");
	pl_top_titles(out, pl_top_view_screen(v), v->sort[v->screen], v->descending[v->screen],
		BATCH_COLS);
	pl_buf_chr(out, '\n');
	for (size_t i = 0; i < json_array_size(rows) && i < most; i++) {
		pl_top_row(out, pl_top_view_screen(v), json_array_get(rows, i), BATCH_COLS,
			pl_top_ascii());
		pl_buf_chr(out, '\n');
	}
	pl_buf_printf(out, "%s: ", pl_top_view_screen(v)->name);
	pl_top_counts(out, pl_top_view_screen(v), v->table);
	pl_buf_chr(out, '\n');
}

int pl_top_view_print(
	struct pl_top_view *v, const struct pl_top_source *source, const struct pl_top_batch *batch)
{
	int code = 0;

	for (uint64_t i = 0; i < batch->times && code == 0; i++) {
		struct pl_top_answer a;
		struct pl_buf out;
		char path[PL_TOP_PATH_BYTES];

		if (!pl_top_view_path(v, (unsigned int)batch->rows, path, sizeof(path)))
			return pl_fail(PL_EXIT_USAGE, "--where: too long for a request");
		if (i > 0) {
			const struct timespec interval = pl_clock_timespec(batch->interval_ns);

			nanosleep(&interval, NULL);
		}
		pl_top_fetch_once(source, path, &a);
		if (a.code != 0) {
			pl_complain_diag(&a.diag);
			code = a.code;
			pl_top_answer_done(&a);
			break;
		}
		pl_top_view_take(v, &a);
		pl_buf_init(&out);
		if (batch->json) {
			char *text = json_dumps(v->table, JSON_COMPACT | JSON_ENSURE_ASCII);

			pl_buf_str(&out, text != NULL ? text : "{}");
			pl_buf_chr(&out, '\n');
			free(text);
		} else {
			if (i > 0)
				pl_buf_chr(&out, '\n');
			print_table(v, batch->rows, &out);
		}
		if (out.failed || fwrite(out.data, 1, out.len, stdout) != out.len ||
			fflush(stdout) != 0)
			code = errno == EPIPE ? -1 : PL_EXIT_FAILED;
		pl_buf_done(&out);
	}
	return code < 0 ? 0 : code;
}
