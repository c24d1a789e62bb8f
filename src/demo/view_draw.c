/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draws the demonstration in the terminal that there is, whose size is asked for at every frame.
 * Columns that it has no room for are left out whole; with few rows tables have fewer, and events,
 * which are what is to be seen, get at least a third of them.
 */
#include "demo/view_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define FULL_ROWS      24 /* from so many rows on nothing is left out */
#define TABLE_ROWS     3
#define TABLE_ROWS_MAX 12

struct screen {
	struct pl_buf buf;
	unsigned int rows, cols, row;
	bool dense;                 /* few rows: without blank ones and what does not change */
	unsigned int queues, links; /* rows of the tables */
};

/* What there is room for; events get the rows that are left. */
static void share_rows(struct screen *s)
{
	const unsigned int more = s->rows > FULL_ROWS ? s->rows - FULL_ROWS : 0;

	s->dense = s->rows < FULL_ROWS - 2;
	s->queues = s->rows < FULL_ROWS / 2 ? 1 : TABLE_ROWS + more / 4;
	s->links = s->rows < FULL_ROWS / 2 ? 1 : TABLE_ROWS + more / 8;
	if (s->queues > TABLE_ROWS_MAX)
		s->queues = TABLE_ROWS_MAX;
	if (s->links > TABLE_ROWS_MAX)
		s->links = TABLE_ROWS_MAX;
}

/* Bytes of the text that take `cols` columns at most. */
static size_t bytes_of(const char *text, unsigned int cols)
{
	const char *p = text;

	for (unsigned int width = 0; *p != '\0' && width < cols; width++) {
		p++;
		/* Bytes 10xxxxxx continue a character. */
		while (((unsigned char)*p & 0xc0) == 0x80)
			p++;
	}
	return (size_t)(p - text);
}

/* One row of so many bytes, the rest of the row cleared. */
static void put_bytes(struct screen *s, const char *style, const char *text, size_t len)
{
	if (s->row >= s->rows)
		return;
	if (s->row++ > 0)
		pl_buf_str(&s->buf, "\r\n");
	if (style != NULL)
		pl_buf_str(&s->buf, style);
	pl_buf_add(&s->buf, text, len);
	pl_buf_str(&s->buf, style != NULL ? "\033[0m\033[K" : "\033[K");
}

/* One row, cut to the width behind a word: half a number is another one. */
static void put_row(struct screen *s, const char *style, const char *text)
{
	size_t len = bytes_of(text, s->cols);

	if (text[len] != '\0' && text[len] != ' ') {
		size_t word = len;

		while (word > 0 && text[word - 1] != ' ')
			word--;
		len = word > 0 ? word : len;
	}
	put_bytes(s, style, text, len);
}

/* One row of a table whose columns end at `ends` (0: no more): those that the width has room for. */
static void put_cells(
	struct screen *s, const char *style, const char *text, const unsigned int *ends)
{
	unsigned int width = ends[0];

	for (unsigned int i = 0; ends[i] != 0 && ends[i] <= s->cols; i++)
		width = ends[i];
	put_bytes(s, style, text, bytes_of(text, width < s->cols ? width : s->cols));
}

/* A blank row, where there is room for such. */
static void put_gap(struct screen *s)
{
	if (!s->dense)
		put_row(s, NULL, "");
}

struct queue_row {
	const struct pl_agg_queue *q;
	uint32_t max;
};

static int by_depth(const void *a, const void *b)
{
	const struct queue_row *x = a, *y = b;

	return x->max != y->max
		       ? (x->max > y->max ? -1 : 1)
		       : (x->q->key.node > y->q->key.node) - (x->q->key.node < y->q->key.node);
}

/* Where the columns of the tables end. */
static const unsigned int queue_ends[] = { 16, 29, 42, 52, 62, 75, 0 };
static const unsigned int link_ends[] = { 21, 33, 45, 59, 74, 0 };

static void draw_queues(
	struct screen *s, const struct pl_demo_view *v, const struct pl_aggregate *a)
{
	struct queue_row top[TABLE_ROWS_MAX + 1] = { 0 };
	const struct pl_agg_queue *q;
	unsigned int n = 0;
	uint32_t pos = 0;
	char text[160];

	while ((q = pl_aggregate_queue(a, &pos)) != NULL) {
		struct queue_row r = { .q = q };
		const bool full = n == s->queues;

		if (!pl_aggregate_max(a, &q->depth_max, &r.max))
			continue;
		top[full ? n : n++] = r;
		qsort(top, full ? n + 1 : n, sizeof(top[0]), by_depth);
	}
	put_cells(s, v->colour ? "\033[1m" : NULL,
		"  deepest queues    depth now      deepest   hop p50   hop p99      packets",
		queue_ends);
	for (unsigned int i = 0; i < n; i++) {
		char p50[16], p99[16], name[32];

		q = top[i].q;
		pl_format_duration(p50, sizeof(p50), pl_hist_quantile(&q->latency, 0.5));
		pl_format_duration(p99, sizeof(p99), pl_hist_quantile(&q->latency, 0.99));
		snprintf(name, sizeof(name), "%" PRIu64 ":%u:%u", q->key.node, q->key.port,
			q->key.queue);
		snprintf(text, sizeof(text), "  %-14s %12u %12u %9s %9s %12" PRIu64, name,
			q->last_depth, top[i].max, p50, p99, q->packets);
		put_cells(s, NULL, text, queue_ends);
	}
}

/* What alternate marking finds, beside what happened, and what INT can tell of it: reports of drops
 * in queues, and nothing of packets that a link lost. */
static void draw_losses(
	struct screen *s, struct pl_demo_view *v, const struct pl_demo_losses_sum *sum)
{
	char text[160];

	put_cells(s, v->colour ? "\033[1m" : NULL,
		"  lost on links        by marking       truth  drops by INT     of packets",
		link_ends);
	for (unsigned int i = 0; i < sum->n && i < s->links; i++) {
		const struct pl_demo_link_loss *l = &sum->links[i];
		char name[2 * PL_LAB_NAME_MAX + 5];

		if (l->lost == 0 && l->true_lost == 0)
			break;
		snprintf(name, sizeof(name), "%s to %s", l->from, l->to);
		snprintf(text, sizeof(text),
			"  %-19s %11" PRId64 " %11" PRIu64 " %13" PRIu64 " %14" PRIu64, name,
			l->lost, l->true_lost, pl_demo_view_drops(v, l->node, l->port), l->sent);
		put_cells(s, NULL, text, link_ends);
	}
}

static void draw_events(struct screen *s, struct pl_demo_view *v)
{
	unsigned int room = s->rows > s->row + 1 ? s->rows - s->row - 1 : 0;
	char text[256];

	put_row(s, v->colour ? "\033[1m" : NULL, "  events");
	pthread_mutex_lock(&v->lock);
	if (room > LINES_MAX)
		room = LINES_MAX;
	for (uint64_t i = v->n_lines > room ? v->n_lines - room : 0; i < v->n_lines; i++) {
		static const char *const styles[KINDS] = { "\033[36m", "\033[33m", "\033[31m",
			"\033[31m", "\033[33m", [KIND_LINK_LOSS] = "\033[31m" };
		const struct pl_demo_line *l = &v->lines[i % LINES_MAX];

		pl_demo_event_text(v, l, text + 2, sizeof(text) - 2);
		text[0] = text[1] = ' ';
		put_row(s, v->colour ? styles[l->kind] : NULL, text);
	}
	if (v->n_lines == 0)
		put_row(s, NULL,
			"  none yet: link loss, a path change, a queue build-up and lost reports will come");
	pthread_mutex_unlock(&v->lock);
}

void pl_demo_view_draw(struct pl_demo_view *v, const struct pl_demo_frame *f)
{
	struct screen s = { .rows = 24, .cols = 80 };
	struct winsize size;
	char text[256];

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
		s.rows = size.ws_row;
		s.cols = size.ws_col;
	}
	share_rows(&s);
	pl_buf_init(&s.buf);
	pl_buf_str(&s.buf, "\033[H");
	snprintf(text, sizeof(text), "pathline " PL_VERSION " demo  %02u:%02u   q quits",
		(unsigned int)f->seconds / 60, (unsigned int)f->seconds % 60);
	put_row(&s, v->colour ? "\033[1m" : NULL, text);
	snprintf(text, sizeof(text), "  network  %s", f->traffic);
	if (!s.dense)
		put_row(&s, NULL, text);
	snprintf(text, sizeof(text), "  metrics  %s", f->metrics);
	put_row(&s, NULL, text);
	put_gap(&s);
	text[0] = text[1] = ' ';
	pl_demo_status_text(f, text + 2, sizeof(text) - 2);
	put_row(&s, NULL, text);
	put_gap(&s);
	draw_queues(&s, v, f->aggregate);
	put_gap(&s);
	draw_losses(&s, v, f->losses);
	put_gap(&s);
	draw_events(&s, v);
	pl_buf_str(&s.buf, "\033[J");
	/* One write is one frame: nothing of it is seen half drawn. */
	if (!s.buf.failed)
		(void)!write(STDOUT_FILENO, s.buf.data, s.buf.len);
	pl_buf_done(&s.buf);
}

void pl_demo_view_terminal(struct pl_demo_view *v, bool on)
{
	static const char enter[] = "\033[?1049h\033[?25l", leave[] = "\033[?25h\033[?1049l";
	struct termios raw;

	if (on == v->terminal)
		return;
	if (!on) {
		(void)!write(STDOUT_FILENO, leave, sizeof(leave) - 1);
		tcsetattr(STDIN_FILENO, TCSANOW, &v->saved);
		v->terminal = false;
		return;
	}
	if (tcgetattr(STDIN_FILENO, &v->saved) < 0)
		return;
	raw = v->saved;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	(void)!write(STDOUT_FILENO, enter, sizeof(enter) - 1);
	v->terminal = true;
}
