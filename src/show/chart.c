/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws rows of a query as a chart. */
#include "show/chart.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lang/lang.h"
#include "record/rows.h"

#define NAME_BYTES 80
#define HEIGHT     8u
#define STEPS      8u
#define COLS_LEAST 40u
#define COLS_MOST  1000u

struct point {
	char name[NAME_BYTES];
	int64_t start_ns;
	double value;
	uint32_t number; /* of the row */
	bool absent;
};

struct pl_chart {
	const struct pl_query *query;
	const struct pl_query_column *columns;
	uint32_t n_columns, value; /* the column that is drawn */
	struct point *points;
	uint32_t n, room, added;
	uint64_t left_out;
	bool windowed, no_memory, follows;
};

/* A name and its points in the order of time. */
struct series {
	const struct point *first;
	uint32_t n;
	double most;
};

/* ---- rows ---- */

static bool is_number(const struct pl_query_column *c)
{
	return (c->type == PL_QUERY_UNSIGNED || c->type == PL_QUERY_SIGNED ||
		       c->type == PL_QUERY_DOUBLE) &&
	       !pl_query_column_has_words(c);
}

static bool is_time(const struct pl_query_column *c)
{
	return strcmp(c->unit, "ns") == 0;
}

int pl_chart_new(struct pl_chart **ret, const struct pl_query *query, struct pl_diag *diag)
{
	struct pl_chart *chart = calloc(1, sizeof(*chart));
	uint32_t i = 0;

	if (chart == NULL)
		return -ENOMEM;
	chart->query = query;
	chart->n_columns = pl_query_columns(query, &chart->columns);
	while (i < chart->n_columns &&
		(!is_number(&chart->columns[i]) || is_time(&chart->columns[i]) ||
			pl_query_column_is_key(query, i)))
		i++;
	if (i == chart->n_columns) {
		free(chart);
		return pl_diag_fail(diag, -EINVAL,
			"a chart draws a number, and the question gives none but keys: "
			"count(*) AS n, for example");
	}
	chart->value = i;
	*ret = chart;
	return 0;
}

void pl_chart_free(struct pl_chart *chart)
{
	if (chart == NULL)
		return;
	free(chart->points);
	free(chart);
}

static double number_of(const struct pl_query_value *v)
{
	return v->type == PL_QUERY_DOUBLE   ? v->d
	       : v->type == PL_QUERY_SIGNED ? (double)v->i
					    : (double)v->u;
}

static void name_value(
	struct pl_buf *out, const struct pl_query_column *c, const struct pl_query_value *v)
{
	char word[PL_QUERY_WORD_MAX];
	const char *text = v->absent ? "-" : pl_query_value_word(c, v, word);

	if (text != NULL)
		pl_buf_str(out, text);
	else if (v->type == PL_QUERY_LIST)
		pl_buf_str(out, "…");
	else if (is_number(c))
		pl_buf_printf(out, "%.10g", number_of(v));
	else
		pl_query_value_put(out, v);
}

static void name_row(
	const struct pl_chart *chart, const struct pl_query_row *row, char ret[NAME_BYTES])
{
	struct pl_buf text;

	pl_buf_init(&text);
	for (uint32_t i = 0; i < row->n; i++) {
		const struct pl_query_column *c = &chart->columns[i];

		if (i == chart->value || (is_number(c) && !pl_query_column_is_key(chart->query, i)))
			continue;
		pl_buf_str(&text, text.len > 0 ? " " : "");
		name_value(&text, c, &row->values[i]);
	}
	snprintf(ret, NAME_BYTES, "%s", text.len > 0 && !text.failed ? text.data : "");
	pl_buf_done(&text);
}

static bool make_room(struct pl_chart *chart)
{
	const uint32_t room = chart->room > 0 ? 2 * chart->room : 256;
	struct point *points;

	if (chart->n < chart->room)
		return true;
	points = realloc(chart->points, room * sizeof(*points));
	if (points == NULL) {
		chart->no_memory = true;
		return false;
	}
	chart->points = points;
	chart->room = room;
	return true;
}

void pl_chart_follow(struct pl_chart *chart)
{
	chart->follows = true;
}

/* Keeps the points from that time on, in their order; returns how many. */
static uint32_t keep_from(struct point *points, uint32_t n, int64_t from_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (points[i].start_ns >= from_ns)
			points[kept++] = points[i];
	}
	return kept;
}

/* Drops the older half of the rows; with windows, the rows of the older half of the time. */
static void forget(struct pl_chart *chart)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	const uint32_t n = chart->n;

	for (uint32_t i = 0; i < n && chart->windowed; i++) {
		const int64_t start = chart->points[i].start_ns;

		first = start < first ? start : first;
		last = start > last ? start : last;
	}
	if (chart->windowed)
		chart->n = keep_from(chart->points, n, first + (last - first) / 2 + 1);
	/* All were of one window, or there are no windows. */
	if (chart->n == 0 || chart->n == n) {
		chart->n = n / 2;
		memmove(chart->points, chart->points + n - n / 2, (n / 2) * sizeof(*chart->points));
	}
}

void pl_chart_add(struct pl_chart *chart, const struct pl_query_row *row)
{
	struct point *p;

	if (chart->follows && chart->n == PL_CHART_LIVE)
		forget(chart);
	if (chart->n == PL_CHART_ROWS || !make_room(chart)) {
		chart->left_out++;
		return;
	}
	p = &chart->points[chart->n];
	*p = (struct point){ .start_ns = row->windowed ? row->start_ns : 0,
		.number = chart->added++,
		.absent = row->values[chart->value].absent };
	if (!p->absent)
		p->value = number_of(&row->values[chart->value]);
	name_row(chart, row, p->name);
	chart->windowed = chart->windowed || row->windowed;
	chart->n++;
}

/* ---- characters ---- */

/* A full block and its parts by eighths: of a bar from the left, of a column from below. */
static const char *const bars[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };
static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
static const char ascii_blocks[] = " .:-=+*#@";

static void put_block(struct pl_buf *out, unsigned int eighths, bool ascii)
{
	if (ascii)
		pl_buf_chr(out, ascii_blocks[eighths]);
	else
		pl_buf_str(out, blocks[eighths]);
}

/* Returns the eighths of `width` places that a value fills; at least one for a value above 0. */
static unsigned int eighths_of(double value, double most, unsigned int width)
{
	const double share = most > 0 && value > 0 ? value / most : 0;
	const unsigned int n = (unsigned int)(share * width * STEPS + 0.5);

	return n == 0 && value > 0 ? 1 : n;
}

static void put_bar(struct pl_buf *out, unsigned int eighths, bool ascii)
{
	for (unsigned int i = 0; i < eighths / STEPS; i++)
		pl_buf_str(out, ascii ? "#" : bars[STEPS]);
	if (ascii)
		pl_buf_str(out, eighths % STEPS >= STEPS / 2 || (eighths > 0 && eighths < STEPS)
					? "#"
					: "");
	else
		pl_buf_str(out, bars[eighths % STEPS]);
}

static void put_number(struct pl_buf *out, int width, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	pl_buf_printf(out, "%*s", width, text);
}

/* Returns the length in characters, not bytes. */
static unsigned int length_of(const char *text)
{
	unsigned int n = 0;

	for (; *text != '\0'; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void put_name(struct pl_buf *out, const char *name, unsigned int width)
{
	const unsigned int n = length_of(name);

	pl_buf_str(out, name);
	for (unsigned int i = n; i < width; i++)
		pl_buf_chr(out, ' ');
}

/* Writes day and time, with as many digits of the second as the windows need. */
static void put_time(struct pl_buf *out, int64_t ns, int64_t step_ns)
{
	char text[PL_TIME_TEXT_MAX];
	const int length = step_ns % 1000000000 == 0 ? 19 : step_ns % 1000000 == 0 ? 23 : 29;

	(void)pl_time_text(text, ns > 0 ? (uint64_t)ns : 0);
	pl_buf_printf(out, "%.*sZ", length, text);
}

/* ---- without windows ---- */

/* Returns the lines of `most` that fit beside `others` into an area; lines 0: all. */
static uint32_t at_most(uint32_t most, unsigned int lines, unsigned int others)
{
	return lines != 0 && lines - others < most ? lines - others : most;
}

static void draw_bars(
	const struct pl_chart *chart, const struct pl_chart_area *area, struct pl_buf *out)
{
	const unsigned int cols = area->cols;
	const uint32_t most_bars = at_most(PL_CHART_BARS, area->lines, 3);
	const uint32_t n = chart->n < most_bars ? chart->n : most_bars;
	/* A live stream shows the latest rows. */
	const struct point *points = chart->points + (chart->follows ? chart->n - n : 0);
	unsigned int width = 0, room;
	double most = 0;

	for (uint32_t i = 0; i < n; i++) {
		const unsigned int length = length_of(points[i].name);

		width = length > width ? length : width;
		most = fmax(most, points[i].value);
	}
	room = cols > width + 13 + 8 ? cols - width - 13 : 8;
	for (uint32_t i = 0; i < n; i++) {
		const struct point *p = &points[i];

		put_name(out, p->name, width);
		if (p->absent)
			pl_buf_printf(out, "%12s", "-");
		else
			put_number(out, 12, p->value);
		pl_buf_chr(out, ' ');
		put_bar(out, eighths_of(p->value, most, room), area->ascii);
		while (out->len > 0 && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		pl_buf_chr(out, '\n');
	}
	if (chart->n > n)
		pl_buf_printf(
			out, "%u %s rows\n", chart->n - n, chart->follows ? "earlier" : "more");
}

/* ---- over time ---- */

static int by_name_and_time(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	const int names = strcmp(x->name, y->name);

	if (names != 0)
		return names;
	if (x->start_ns != y->start_ns)
		return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
	return (x->number > y->number) - (x->number < y->number);
}

static int largest_first(const void *a, const void *b)
{
	const struct series *x = a, *y = b;

	if (x->most != y->most)
		return (x->most < y->most) - (x->most > y->most);
	return strcmp(x->first->name, y->first->name);
}

/* The time and value axes of all series. */
struct axis {
	int64_t first_ns, last_ns, step_ns;
	uint64_t each;    /* windows of a column */
	uint32_t windows; /* columns */
	double most;
};

static struct axis axis_of(
	const struct point *points, uint32_t n, uint64_t step_ns, unsigned int room)
{
	struct axis a = { points[0].start_ns, points[0].start_ns, (int64_t)step_ns, 1, 0, 0 };
	uint64_t windows;

	assert(step_ns > 0 && room > 0);
	for (uint32_t i = 0; i < n; i++) {
		a.first_ns = points[i].start_ns < a.first_ns ? points[i].start_ns : a.first_ns;
		a.last_ns = points[i].start_ns > a.last_ns ? points[i].start_ns : a.last_ns;
		a.most = fmax(a.most, points[i].value);
	}
	windows = ((uint64_t)a.last_ns - (uint64_t)a.first_ns) / step_ns + 1;
	if (windows > room)
		a.each = (windows - 1) / room + 1;
	a.windows = (uint32_t)((windows - 1) / a.each + 1);
	assert(a.windows > 0 && a.windows <= room);
	return a;
}

/* Sets the largest value of each column; 0 without one. */
static void columns_of(const struct axis *a, const struct series *s, double *ret)
{
	memset(ret, 0, a->windows * sizeof(*ret));
	for (uint32_t i = 0; i < s->n; i++) {
		const uint64_t window = ((uint64_t)s->first[i].start_ns - (uint64_t)a->first_ns) /
					(uint64_t)a->step_ns / a->each;

		/* The last row of a window is the final one. */
		if (a->each == 1)
			ret[window] = s->first[i].value;
		else
			ret[window] = fmax(ret[window], s->first[i].value);
	}
}

static void put_axis(struct pl_buf *out, const struct axis *a, unsigned int indent)
{
	pl_buf_printf(out, "%*s", (int)indent, "");
	put_time(out, a->first_ns, a->step_ns);
	pl_buf_str(out, " to ");
	put_time(out, a->last_ns, a->step_ns);
	if (a->each > 1)
		pl_buf_printf(out, ", each column the largest of %" PRIu64 " windows", a->each);
	pl_buf_chr(out, '\n');
}

static void draw_columns(
	const struct axis *a, const struct series *s, bool ascii, struct pl_buf *out)
{
	double *values = calloc(a->windows, sizeof(*values));

	if (values == NULL) {
		out->failed = true;
		return;
	}
	columns_of(a, s, values);
	for (unsigned int line = HEIGHT; line-- > 0;) {
		if (line + 1 == HEIGHT || line == 0)
			put_number(out, 12, line == 0 ? 0 : a->most);
		else
			pl_buf_printf(out, "%12s", "");
		pl_buf_str(out, ascii ? " |" : " │");
		for (uint32_t i = 0; i < a->windows; i++) {
			const unsigned int all = eighths_of(values[i], a->most, HEIGHT);
			const unsigned int above = all > line * STEPS ? all - line * STEPS : 0;

			put_block(out, above < STEPS ? above : STEPS, ascii);
		}
		while (out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		pl_buf_chr(out, '\n');
	}
	free(values);
	put_axis(out, a, 14);
}

static void draw_lines(const struct axis *a, const struct series *series, uint32_t n,
	unsigned int width, const struct pl_chart_area *area, struct pl_buf *out)
{
	const uint32_t most = at_most(PL_CHART_LINES, area->lines, 4);
	const uint32_t shown = n < most ? n : most;
	double *values = calloc(a->windows, sizeof(*values));

	if (values == NULL) {
		out->failed = true;
		return;
	}
	for (uint32_t i = 0; i < shown; i++) {
		put_name(out, series[i].first->name, width);
		put_number(out, 12, series[i].most);
		pl_buf_chr(out, ' ');
		columns_of(a, &series[i], values);
		for (uint32_t k = 0; k < a->windows; k++)
			put_block(out, eighths_of(values[k], a->most, 1), area->ascii);
		while (out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		pl_buf_chr(out, '\n');
	}
	free(values);
	put_axis(out, a, width + 13);
	if (n > shown)
		pl_buf_printf(out, "%u more lines\n", n - shown);
}

/* Finds the series; points of a name lie together. */
static uint32_t find_series(const struct point *points, uint32_t n, struct series *ret)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || strcmp(points[i].name, points[i - 1].name) != 0)
			ret[found++] = (struct series){ .first = &points[i] };
		ret[found - 1].n++;
		ret[found - 1].most = fmax(ret[found - 1].most, points[i].value);
	}
	qsort(ret, found, sizeof(*ret), largest_first);
	return found;
}

/* Returns the width of the names that are drawn. */
static unsigned int width_of(const struct series *series, uint32_t n, unsigned int cols)
{
	unsigned int width = 0;

	for (uint32_t i = 0; i < n && i < PL_CHART_LINES; i++) {
		const unsigned int length = length_of(series[i].first->name);

		width = length > width ? length : width;
	}
	return width > cols / 2 ? cols / 2 : width;
}

/* Keeps the points of the last `room` windows; returns how many. */
static uint32_t keep_latest(struct point *points, uint32_t n, int64_t step_ns, unsigned int room)
{
	int64_t last = INT64_MIN, span, first;

	for (uint32_t i = 0; i < n; i++)
		last = points[i].start_ns > last ? points[i].start_ns : last;
	/* The room may hold more than all of time. */
	if (__builtin_mul_overflow((int64_t)(room - 1), step_ns, &span) ||
		__builtin_sub_overflow(last, span, &first))
		return n;
	return keep_from(points, n, first);
}

static void draw_series(const struct pl_chart *chart, struct point *points, struct series *series,
	const struct pl_chart_area *area, struct pl_buf *out)
{
	const uint64_t step = pl_query_step_ns(chart->query), step_ns = step > 0 ? step : 1;
	unsigned int width, room;
	uint32_t n, n_points = chart->n;
	struct axis a;

	qsort(points, n_points, sizeof(*points), by_name_and_time);
	n = find_series(points, n_points, series);
	width = width_of(series, n, area->cols);
	room = area->cols - width - 14;
	if (chart->follows) {
		n_points = keep_latest(points, n_points, (int64_t)step_ns, room);
		n = find_series(points, n_points, series);
	}
	a = axis_of(points, n_points, step_ns, room);
	if (n == 1 && series[0].first->name[0] == '\0')
		draw_columns(&a, &series[0], area->ascii, out);
	else
		draw_lines(&a, series, n, width, area, out);
}

static void draw_over_time(
	const struct pl_chart *chart, const struct pl_chart_area *area, struct pl_buf *out)
{
	struct point *points = malloc(chart->n * sizeof(*points));
	struct series *series = malloc(chart->n * sizeof(*series));

	if (points != NULL && series != NULL) {
		memcpy(points, chart->points, chart->n * sizeof(*points));
		draw_series(chart, points, series, area, out);
	} else {
		out->failed = true;
	}
	free(points);
	free(series);
}

void pl_chart_draw(
	const struct pl_chart *chart, const struct pl_chart_area *area, struct pl_buf *out)
{
	struct pl_chart_area fits = *area;

	fits.cols = fits.cols < COLS_LEAST  ? COLS_LEAST
		    : fits.cols > COLS_MOST ? COLS_MOST
					    : fits.cols;
	if (chart->n == 0)
		return;
	pl_buf_str(out, chart->columns[chart->value].name);
	pl_buf_str(out, chart->windowed ? ", the largest of a window\n" : "\n");
	if (chart->windowed)
		draw_over_time(chart, &fits, out);
	else
		draw_bars(chart, &fits, out);
	if (chart->left_out > 0)
		pl_buf_printf(out, "%" PRIu64 " rows beyond %u are left out%s\n", chart->left_out,
			chart->n, chart->no_memory ? ": there is no memory" : "");
}
