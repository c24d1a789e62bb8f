/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws "pathline top" in a terminal and reads its keys. */
#include "show/top_draw.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "runtime/signals.h"
#include "show/stdout.h"
#include "web/client.h"

/* Included last, because of its macros. */
#include <curses.h>

enum {
	HEAD_LINES = 4, /* two about the daemon, screens, titles */
	FOOT_LINES = 1,
	KEY_WAIT_MS = 100,
};

struct top {
	struct pl_top_view view;
	struct pl_top_fetch *fetch;
	unsigned int question; /* number of the last request */
	unsigned int first;    /* row at the top of the list */
	bool frozen, help, typing, quit;
	char typed[PL_TOP_FILTER_MAX];
	char trouble[600]; /* error of the last answer; empty: none */
	uint64_t interval_ns;
	const struct pl_top_below *below;
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void put(int row, int attribute, const char *text)
{
	move(row, 0);
	clrtoeol();
	attrset(attribute);
	addstr(text != NULL ? text : "");
	attrset(A_NORMAL);
}

static void ask(struct top *t)
{
	char path[PL_TOP_PATH_BYTES];

	/* Has room for PL_TOP_FILTER_MAX bytes, tripled by the encoding, and the rest. */
	if (!pl_top_view_path(&t->view, PL_TOP_ROWS, path, sizeof(path))) {
		snprintf(t->trouble, sizeof(t->trouble), "the filter is too long for a request");
		return;
	}
	t->question = pl_top_fetch_ask(t->fetch, path);
	t->frozen = false;
}

static void draw_screens(const struct top *t, unsigned int cols)
{
	move(2, 0);
	clrtoeol();
	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		char text[32];
		int y, x;

		snprintf(text, sizeof(text), " %u %s ", i + 1, pl_top_screens[i].name);
		getyx(stdscr, y, x);
		(void)y;
		if ((unsigned int)x + strlen(text) >= cols)
			break;
		attrset(i == t->view.screen ? A_REVERSE | A_BOLD : A_NORMAL);
		addstr(text);
		attrset(A_NORMAL);
	}
}

static void draw_help(unsigned int rows)
{
	static const char *const lines[] = {
		"",
		"  1 to 9, 0, Tab    the screens named above, 9 regions, 0 values; Tab goes on to segments, tapped",
		"  < and >, arrows   the column it is sorted by; r turns the order round",
		"  /                 filter: an expression over columns, as in",
		"                      node == 3 and depth > 100     hop_latency_p99_ns > 50us",
		"                      place == output               exporter in 10.0.0.0/8",
		"                    Enter takes it, an empty one takes it away, Esc leaves it",
		"  space             freeze and go on",
		"  + and -           ask more often, less often",
		"  up, down, PgUp, PgDn, Home    move in the list",
		"  h or ?            this page",
		"  q                 quit",
		"",
		"  Columns by their names: pathline help columns. PER S is the rate since the",
		"  last answer. A number in the last 30 s of fixed slots is a maximum (DEEPEST, UTIL MAX).",
	};

	for (unsigned int i = 0; i + HEAD_LINES - 1 < rows - FOOT_LINES; i++)
		put((int)(i + HEAD_LINES - 1), A_NORMAL,
			i < sizeof(lines) / sizeof(lines[0]) ? lines[i] : "");
}

static void draw_list(struct top *t, unsigned int rows, unsigned int cols, struct pl_buf *line)
{
	const struct pl_top_view *v = &t->view;
	const json_t *list = json_object_get(v->table, "rows");
	unsigned int room = rows - HEAD_LINES - FOOT_LINES, n = (unsigned int)json_array_size(list);

	if (t->first + room > n)
		t->first = n > room ? n - room : 0;
	pl_buf_reset(line);
	pl_top_titles(
		line, pl_top_view_screen(v), v->sort[v->screen], v->descending[v->screen], cols);
	put(HEAD_LINES - 1, A_BOLD, line->data);
	for (unsigned int i = 0; i < room; i++) {
		pl_buf_reset(line);
		pl_buf_str(line, "");
		if (t->first + i < n)
			pl_top_row(line, pl_top_view_screen(v), json_array_get(list, t->first + i),
				cols, pl_top_ascii());
		else if (n == 0 && i == 1)
			pl_buf_str(line, v->table == NULL      ? "  waiting for the daemon"
					 : v->where[0] != '\0' ? "  nothing matches the filter"
							       : "  nothing yet");
		put((int)(HEAD_LINES + i), A_NORMAL, line->data);
	}
}

/* Returns the lines that the second table takes; the first one keeps two thirds of them. */
static unsigned int below_lines(const struct top *t, unsigned int rows)
{
	const unsigned int room = (rows - HEAD_LINES - FOOT_LINES) / 3;

	if (t->below == NULL)
		return 0;
	return t->below->lines < room ? t->below->lines : room;
}

/* Draws the second table, from this row on. */
static void draw_below(const struct top *t, unsigned int from, unsigned int n, unsigned int cols,
	struct pl_buf *line)
{
	json_t *list = n > 0 ? t->below->rows(t->below->arg) : NULL;

	for (unsigned int i = 0; i < n; i++) {
		pl_buf_reset(line);
		pl_buf_str(line, "");
		if (i == 0)
			pl_top_titles(line, t->below->screen, t->below->screen->sort, true, cols);
		else if (i - 1 < json_array_size(list))
			pl_top_row(line, t->below->screen, json_array_get(list, i - 1), cols,
				pl_top_ascii());
		put((int)(from + i), i == 0 ? A_BOLD : A_NORMAL, line->data);
	}
	json_decref(list);
}

static void draw_foot(struct top *t, unsigned int rows, unsigned int cols, struct pl_buf *line)
{
	const struct pl_top_view *v = &t->view;
	int attribute = A_NORMAL;

	pl_buf_reset(line);
	if (t->typing) {
		pl_buf_printf(line, "filter: %s", t->typed);
		attribute = A_BOLD;
	} else if (t->trouble[0] != '\0') {
		pl_buf_printf(line, "! %s", t->trouble);
		attribute = A_REVERSE;
	} else {
		pl_buf_str(line, t->frozen ? "FROZEN  " : "");
		pl_top_counts(line, pl_top_view_screen(v), v->table);
		if (v->where[0] != '\0')
			pl_buf_printf(line, "  filter: %s", v->where);
		pl_buf_printf(
			line, "  every %.1f s  ? help  q quit", (double)t->interval_ns * 1e-9);
	}
	/* The last cell of the last line cannot be written without scrolling. While a filter is
	 * typed its end is shown. */
	if (!line->failed && line->len >= cols && t->typing)
		memmove(line->data, line->data + line->len - cols + 1, cols);
	move((int)rows - 1, 0);
	clrtoeol();
	attrset(attribute);
	if (!line->failed)
		addnstr(line->data, (int)cols - 1);
	attrset(A_NORMAL);
	curs_set(t->typing);
}

static void draw(struct top *t)
{
	int rows, cols;
	unsigned int below;
	struct pl_buf line;

	getmaxyx(stdscr, rows, cols);
	if (rows < HEAD_LINES + FOOT_LINES + 1 || cols < 20) {
		erase();
		mvaddstr(0, 0, "too small");
		refresh();
		return;
	}
	pl_buf_init(&line);
	pl_buf_str(&line, "");
	if (t->view.status != NULL)
		pl_top_head(&line, t->view.status, t->view.source, (unsigned int)cols);
	put(0, A_BOLD, line.data);
	pl_buf_reset(&line);
	pl_buf_str(&line, "");
	if (t->view.status != NULL)
		pl_top_sums(&line, t->view.status, t->view.before, (unsigned int)cols);
	put(1, A_NORMAL, line.data);
	draw_screens(t, (unsigned int)cols);
	below = below_lines(t, (unsigned int)rows);
	if (t->help) {
		draw_help((unsigned int)rows);
	} else {
		draw_list(t, (unsigned int)rows - below, (unsigned int)cols, &line);
		draw_below(t, (unsigned int)rows - FOOT_LINES - below, below, (unsigned int)cols,
			&line);
	}
	draw_foot(t, (unsigned int)rows, (unsigned int)cols, &line);
	pl_buf_done(&line);
	refresh();
}

static void show_screen(struct top *t, unsigned int i)
{
	if (i >= pl_top_n_screens || i == t->view.screen)
		return;
	t->view.screen = i;
	t->first = 0;
	/* Rows of the other table do not belong here. */
	json_decref(t->view.table);
	t->view.table = NULL;
	pl_top_rates_done(&t->view.rates);
	/* A filter is for the columns of one table. */
	t->view.where[0] = '\0';
	t->trouble[0] = '\0';
	ask(t);
}

static void sort_by(struct top *t, int step)
{
	struct pl_top_view *v = &t->view;
	int n = (int)pl_top_view_screen(v)->n_columns;
	int at = (int)v->sort[v->screen];

	/* A flow consists of several values: it cannot be sorted by. */
	do
		at = (at + step + n) % n;
	while (pl_top_view_screen(v)->columns[at].cell == PL_TOP_FLOW);
	v->sort[v->screen] = (unsigned int)at;
	v->descending[v->screen] = pl_top_descends(pl_top_view_column(v));
	t->first = 0;
	ask(t);
}

static void take_filter(struct top *t)
{
	snprintf(t->view.where, sizeof(t->view.where), "%s", t->typed);
	t->first = 0;
	ask(t);
}

static void key_while_typing(struct top *t, int key)
{
	size_t n = strlen(t->typed);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		t->typing = false;
		take_filter(t);
	} else if (key == 27) {
		t->typing = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
		if (n > 0)
			t->typed[n - 1] = '\0';
	} else if (key == 21) {
		t->typed[0] = '\0';
	} else if (key >= ' ' && key < 127 && n + 1 < sizeof(t->typed)) {
		t->typed[n] = (char)key;
		t->typed[n + 1] = '\0';
	}
}

static void set_interval(struct top *t, uint64_t ns)
{
	const uint64_t least = UINT64_C(250) * 1000000u, most = UINT64_C(60) * 1000000000u;

	t->interval_ns = ns < least ? least : ns > most ? most : ns;
	pl_top_fetch_set_interval(t->fetch, t->interval_ns);
}

static void on_key(struct top *t, int key)
{
	const unsigned int rows = (unsigned int)getmaxy(stdscr);
	const unsigned int page = rows > HEAD_LINES + FOOT_LINES
					  ? rows - HEAD_LINES - FOOT_LINES - below_lines(t, rows)
					  : 1;

	if (key == KEY_RESIZE)
		return;
	if (t->typing) {
		key_while_typing(t, key);
		return;
	}
	switch (key) {
	case 'q':
	case 'Q':
		t->quit = true;
		break;
	case 'h':
	case '?':
		t->help = !t->help;
		break;
	case 27:
		t->help = false;
		break;
	case '\t':
		show_screen(t, (t->view.screen + 1) % pl_top_n_screens);
		break;
	case KEY_BTAB:
		show_screen(t, (t->view.screen + pl_top_n_screens - 1) % pl_top_n_screens);
		break;
	case '<':
	case KEY_LEFT:
		sort_by(t, -1);
		break;
	case '>':
	case KEY_RIGHT:
		sort_by(t, 1);
		break;
	case 'r':
		t->view.descending[t->view.screen] = !t->view.descending[t->view.screen];
		ask(t);
		break;
	case '/':
		t->typing = true;
		snprintf(t->typed, sizeof(t->typed), "%s", t->view.where);
		break;
	case ' ':
		t->frozen = !t->frozen;
		break;
	case '+':
		set_interval(t, t->interval_ns / 2);
		break;
	case '-':
		set_interval(t, t->interval_ns * 2);
		break;
	case KEY_UP:
		t->first -= t->first > 0;
		break;
	case KEY_DOWN:
		t->first++;
		break;
	case KEY_PPAGE:
		t->first -= t->first < page ? t->first : page;
		break;
	case KEY_NPAGE:
		t->first += page;
		break;
	case KEY_HOME:
		t->first = 0;
		break;
	default:
		if (key == '0')
			show_screen(t, 9);
		else if (key >= '1' && key <= '9')
			show_screen(t, (unsigned int)(key - '1'));
		break;
	}
}

/* Takes an answer; returns true when the screen changes. */
static bool take_answer(struct top *t)
{
	struct pl_top_answer a;

	if (!pl_top_fetch_take(t->fetch, &a))
		return false;
	if (a.code != 0) {
		/* Diagnostic texts have no control characters (base/diag.h). */
		snprintf(t->trouble, sizeof(t->trouble), "%s", a.diag.text);
	} else if (a.question == t->question && !t->frozen) {
		t->trouble[0] = '\0';
		pl_top_view_take(&t->view, &a);
	}
	pl_top_answer_done(&a);
	return true;
}

static void loop(struct top *t)
{
	bool changed = true;

	while (!t->quit && !ended && (t->below == NULL || !t->below->ends(t->below->arg))) {
		int key;

		if (changed)
			draw(t);
		key = getch();
		changed = key != ERR;
		if (key != ERR)
			on_key(t, key);
		changed = take_answer(t) || changed;
	}
}

int pl_top_draw(struct pl_top_view *v, const struct pl_top_source *source, uint64_t interval_ns,
	const struct pl_top_below *below)
{
	struct top t = { .view = *v, .interval_ns = interval_ns, .below = below };
	SCREEN *screen;
	int r;

	r = pl_top_fetch_new(&t.fetch, source, t.interval_ns);
	if (r < 0)
		return pl_fail(PL_EXIT_FAILED, "cannot start: %s", strerrordesc_np(-r));
	ended = 0;
	pl_signals_handle(on_signal, (const int[]){ SIGHUP, 0 });
	set_escdelay(25);
	screen = newterm(NULL, pl_stdout_terminal(), stdin);
	if (screen == NULL) {
		pl_complain("cannot set up the terminal");
		pl_top_fetch_free(t.fetch);
		return PL_EXIT_FAILED;
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	timeout(KEY_WAIT_MS);
	curs_set(0);
	ask(&t);
	loop(&t);
	endwin();
	delscreen(screen);
	pl_top_fetch_free(t.fetch);
	*v = t.view;
	return PL_EXIT_OK;
}
