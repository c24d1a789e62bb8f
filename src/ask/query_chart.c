/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws rows of a question on standard output, those of a live source again and again. */
#include "ask/query_chart.h"

#include <assert.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "show/stdout.h"
#include "show/top_view.h"

#define COLS_ELSE 100                 /* columns without a terminal */
#define PAUSE_NS  UINT64_C(200000000) /* least time between two drawings */

int pl_query_chart_init(
	struct pl_query_chart *c, const struct pl_query *query, struct pl_diag *diag)
{
	*c = (struct pl_query_chart){ .chart = NULL };
	setlocale(LC_CTYPE, ""); /* the terminal's characters */
	c->ascii = pl_top_ascii();
	return pl_chart_new(&c->chart, query, diag);
}

void pl_query_chart_done(struct pl_query_chart *c)
{
	pl_chart_free(c->chart);
	c->chart = NULL;
}

/* Returns the terminal's area; without a terminal it has no lines. */
static struct pl_chart_area area_of(const struct pl_query_chart *c)
{
	struct pl_chart_area area = { .cols = COLS_ELSE, .ascii = c->ascii };
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
		area.cols = size.ws_col;
		area.lines = size.ws_row > 0 ? size.ws_row - 1u : 0;
	}
	return area;
}

void pl_query_chart_follow(struct pl_query_chart *c)
{
	const struct pl_chart_area area = area_of(c);

	c->follows = area.lines >= PL_CHART_LEAST && isatty(STDOUT_FILENO);
	if (c->follows)
		pl_chart_follow(c->chart);
}

void pl_query_chart_add(struct pl_query_chart *c, const struct pl_query_row *row)
{
	pl_chart_add(c->chart, row);
	c->stale = true;
}

/* Returns the lines of the text on a terminal with `cols` columns, where longer lines are
 * wrapped. */
static unsigned int lines_of(const struct pl_buf *text, unsigned int cols)
{
	unsigned int lines = 0, width = 0;

	assert(text->len == 0 || text->data != NULL);
	for (size_t i = 0; i < text->len; i++) {
		const char ch = text->data[i];

		if (ch == '\n') {
			lines += width > 0 ? (width - 1) / cols + 1 : 1;
			width = 0;
		} else {
			width += (ch & 0xc0) != 0x80;
		}
	}
	return lines;
}

/* Draws the chart in place of the earlier one. */
static void draw(struct pl_query_chart *c)
{
	struct pl_chart_area area = area_of(c);
	struct pl_buf chart, text;

	if (!c->follows || (area.lines != 0 && area.lines < PL_CHART_LEAST))
		area.lines = 0;
	pl_buf_init(&chart);
	pl_buf_init(&text);
	pl_chart_draw(c->chart, &area, &chart);
	/* Moves up and erases to the end (ECMA-48 CUU, ED). */
	if (c->lines > 0)
		pl_buf_printf(&text, "\x1b[%uA\x1b[J", c->lines);
	pl_buf_add(&text, chart.data != NULL ? chart.data : "", chart.len);
	text.failed = text.failed || chart.failed;
	c->lines = c->follows ? lines_of(&chart, area.cols) : 0;
	pl_buf_done(&chart);
	pl_stdout_flush(&text, &c->gone, &c->error);
	pl_buf_done(&text);
	c->stale = false;
	c->drawn_ns = pl_clock_mono_ns();
}

void pl_query_chart_turn(struct pl_query_chart *c)
{
	if (c->follows && c->stale && !c->gone && c->error == 0 &&
		pl_clock_mono_ns() - c->drawn_ns >= PAUSE_NS)
		draw(c);
}

bool pl_query_chart_end(struct pl_query_chart *c)
{
	if (c->stale && !c->gone && c->error == 0)
		draw(c);
	if (c->error == 0)
		return true;
	return pl_fail(false, "cannot write to standard output: %s", strerror(-c->error));
}
