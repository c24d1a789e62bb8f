/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline top: tables of a running daemon in the terminal. Only attributes (bold, reverse), never
 * colour, carry anything, so that it reads the same everywhere. Without a terminal that can be
 * drawn on it prints and ends.
 */
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/confine_reader.h"
#include "cli/stdout.h"
#include "cli/top.h"
#include "cli/top_fetch.h"
#include "cli/top_terminal.h"
#include "service/signals.h"
#include "web/client.h"

/* Last: it has macros. */
#include <curses.h>

enum {
	HEAD_LINES = 4, /* two about the whole, screens, titles */
	FOOT_LINES = 1,
	ROWS_ASKED = 1000,
	BATCH_ROWS = 20,
	BATCH_COLS = 132,
	KEY_WAIT_MS = 100,
	FILTER_MAX = 400,
	PATH_BYTES = 1400,
};

static struct {
	struct pl_client_args client;
	const char *screen, *sort, *where, *form, *from, *since;
	bool batch;
	uint64_t interval_ns, times, rows;
} args;

static const char *const forms[] = { "table", "json", NULL };
static const char *const screen_words[] = { "queues", "links", "ports", "paths", "events",
	"exporters", "drops", "flows", "regions", "values", NULL };

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_CHOICE, 's', "screen", &args.screen, "SCREEN",
			"first table (default queues)", screen_words },
		{ PL_OPT_STRING, 0, "sort", &args.sort, "COLUMN",
			"first column to sort by; rate is one", NULL },
		{ PL_OPT_STRING, 'w', "where", &args.where, "EXPR",
			"only rows that match the expression, such as node == 3 and depth > 100",
			NULL },
		{ PL_OPT_DURATION, 'd', "interval", &args.interval_ns, "TIME",
			"interval between requests (default 2s)", NULL },
		{ PL_OPT_FLAG, 'b', "batch", &args.batch, NULL,
			"print once instead of drawing the terminal", NULL },
		{ PL_OPT_U64, 'n', "times", &args.times, "N",
			"with --batch: print N times (default 1)", NULL },
		{ PL_OPT_U64, 0, "rows", &args.rows, "N",
			"with --batch: at most N rows (default 20, at most 1000)", NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM",
			"with --batch: format (default table)", forms },
		{ PL_OPT_HEADING, 0, "Without a daemon", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "from", &args.from, "FOLDER",
			"show the history of an output of type region: queues, links, ports, paths, events",
			NULL },
		{ PL_OPT_STRING, 0, "since", &args.since, "TIME",
			"with --from: only entries not older than this: 10m or 2026-11-22T01:37:27Z",
			NULL },
		PL_CLIENT_ARGS(args.client),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* What is looked at, in which order. */
struct view {
	unsigned int screen;
	unsigned int sort[16]; /* per screen: column */
	bool descending[16];
	char where[FILTER_MAX];
	struct pl_top_rates rates;
	json_t *status, *before, *table; /* before: the status before that */
};

static const struct pl_top_screen *screen_of(const struct view *v)
{
	return &pl_top_screens[v->screen];
}

static const struct pl_top_column *sort_column(const struct view *v)
{
	return &screen_of(v)->columns[v->sort[v->screen]];
}

static bool by_rate(const struct view *v)
{
	return sort_column(v)->cell == PL_TOP_RATE;
}

/* What is asked of the daemon for this view. A rate is sorted by here: the daemon orders by the
 * counter. */
static bool make_path(const struct view *v, unsigned int rows, char *dst, size_t cap)
{
	char sort[64], limit[16];

	snprintf(dst, cap, "/api/v1/%s", screen_of(v)->name);
	snprintf(sort, sizeof(sort), "%s%s", v->descending[v->screen] || by_rate(v) ? "-" : "",
		strcmp(sort_column(v)->key, "time") == 0        ? "ts_ns"
		: strcmp(sort_column(v)->key, "last_time") == 0 ? "last_ts_ns"
								: sort_column(v)->key);
	snprintf(limit, sizeof(limit), "%u", by_rate(v) ? (unsigned int)ROWS_ASKED : rows);
	return pl_client_parameter(dst, cap, "sort", sort) &&
	       pl_client_parameter(dst, cap, "limit", limit) &&
	       (v->where[0] == '\0' || pl_client_parameter(dst, cap, "where", v->where));
}

static void view_done(struct view *v)
{
	json_decref(v->status);
	json_decref(v->before);
	json_decref(v->table);
	pl_top_rates_done(&v->rates);
}

/* Takes an answer's documents over. */
static void view_take(struct view *v, struct pl_top_answer *a)
{
	json_decref(v->before);
	v->before = v->status;
	v->status = a->status;
	json_decref(v->table);
	v->table = a->table;
	a->status = a->table = NULL;
	pl_top_rates_apply(&v->rates, screen_of(v), v->table, by_rate(v), v->descending[v->screen]);
}

static bool is_ascii(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

/* Where the tables come from, for people. */
static const char *name_of(const struct pl_top_source *source)
{
	return source->client != NULL ? pl_client_url(source->client) : args.from;
}

/* ---- printing ---- */

static void print_table(const struct view *v, const char *url, struct pl_buf *out)
{
	const json_t *rows = json_object_get(v->table, "rows");

	pl_top_head(out, v->status, url, BATCH_COLS);
	pl_buf_chr(out, '\n');
	pl_top_sums(out, v->status, v->before, BATCH_COLS);
	pl_buf_str(out, "\n\n");
	pl_top_titles(out, screen_of(v), v->sort[v->screen], v->descending[v->screen], BATCH_COLS);
	pl_buf_chr(out, '\n');
	for (size_t i = 0; i < json_array_size(rows) && i < args.rows; i++) {
		pl_top_row(out, screen_of(v), json_array_get(rows, i), BATCH_COLS, is_ascii());
		pl_buf_chr(out, '\n');
	}
	pl_buf_printf(out, "%s: %" PRIu64 " of %" PRIu64 "\n", screen_of(v)->name,
		pl_json_member_u64(v->table, "matched"), pl_json_member_u64(v->table, "total"));
}

static int batch(const struct pl_top_source *source, struct view *v)
{
	int code = 0;

	for (uint64_t i = 0; i < args.times && code == 0; i++) {
		struct pl_top_answer a;
		struct pl_buf out;
		char path[PATH_BYTES];

		if (!make_path(v, (unsigned int)args.rows, path, sizeof(path))) {
			pl_complain("--where: too long for a request");
			return PL_EXIT_USAGE;
		}
		if (i > 0) {
			const struct timespec interval = pl_clock_timespec(args.interval_ns);

			nanosleep(&interval, NULL);
		}
		pl_top_fetch_once(source, path, &a);
		if (a.code != 0) {
			pl_complain_diag(&a.diag);
			code = a.code;
			pl_top_answer_done(&a);
			break;
		}
		view_take(v, &a);
		pl_buf_init(&out);
		if (strcmp(args.form, "json") == 0) {
			char *text = json_dumps(v->table, JSON_COMPACT | JSON_ENSURE_ASCII);

			pl_buf_str(&out, text != NULL ? text : "{}");
			pl_buf_chr(&out, '\n');
			free(text);
		} else {
			if (i > 0)
				pl_buf_chr(&out, '\n');
			print_table(v, name_of(source), &out);
		}
		if (out.failed || fwrite(out.data, 1, out.len, stdout) != out.len ||
			fflush(stdout) != 0)
			code = errno == EPIPE ? -1 : PL_EXIT_FAILED;
		pl_buf_done(&out);
	}
	return code < 0 ? 0 : code;
}

/* ---- drawing ---- */

struct top {
	struct view view;
	struct pl_top_fetch *fetch;
	const char *url;
	unsigned int question; /* whose answer is wanted */
	unsigned int first;    /* row at the top of the list */
	bool frozen, help, typing, quit;
	char typed[FILTER_MAX];
	char trouble[600]; /* of the last answer; empty = none */
	uint64_t interval_ns;
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
	char path[PATH_BYTES];

	/* FILTER_MAX bytes, tripled by the encoding, and the rest fit. */
	if (!make_path(&t->view, ROWS_ASKED, path, sizeof(path))) {
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
		"  1 to 9, 0, Tab    the screens named above, 9 regions and 0 values",
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
		"  Columns by their names: pathline help top. PER S is what came since the last",
		"  answer. A number in the last 30 s of fixed slots is a maximum (DEEPEST, UTIL MAX).",
	};

	for (unsigned int i = 0; i + HEAD_LINES - 1 < rows - FOOT_LINES; i++)
		put((int)(i + HEAD_LINES - 1), A_NORMAL,
			i < sizeof(lines) / sizeof(lines[0]) ? lines[i] : "");
}

static void draw_list(struct top *t, unsigned int rows, unsigned int cols, struct pl_buf *line)
{
	const struct view *v = &t->view;
	const json_t *list = json_object_get(v->table, "rows");
	unsigned int room = rows - HEAD_LINES - FOOT_LINES, n = (unsigned int)json_array_size(list);

	if (t->first + room > n)
		t->first = n > room ? n - room : 0;
	pl_buf_reset(line);
	pl_top_titles(line, screen_of(v), v->sort[v->screen], v->descending[v->screen], cols);
	put(HEAD_LINES - 1, A_BOLD, line->data);
	for (unsigned int i = 0; i < room; i++) {
		pl_buf_reset(line);
		pl_buf_str(line, "");
		if (t->first + i < n)
			pl_top_row(line, screen_of(v), json_array_get(list, t->first + i), cols,
				is_ascii());
		else if (n == 0 && i == 1)
			pl_buf_str(line, v->table == NULL      ? "  waiting for the daemon"
					 : v->where[0] != '\0' ? "  nothing matches the filter"
							       : "  nothing yet");
		put((int)(HEAD_LINES + i), A_NORMAL, line->data);
	}
}

static void draw_foot(struct top *t, unsigned int rows, unsigned int cols, struct pl_buf *line)
{
	const struct view *v = &t->view;
	int attribute = A_NORMAL;

	pl_buf_reset(line);
	if (t->typing) {
		pl_buf_printf(line, "filter: %s", t->typed);
		attribute = A_BOLD;
	} else if (t->trouble[0] != '\0') {
		pl_buf_printf(line, "! %s", t->trouble);
		attribute = A_REVERSE;
	} else {
		pl_buf_printf(line, "%s%" PRIu64 " of %" PRIu64, t->frozen ? "FROZEN  " : "",
			pl_json_member_u64(v->table, "matched"),
			pl_json_member_u64(v->table, "total"));
		if (v->where[0] != '\0')
			pl_buf_printf(line, "  filter: %s", v->where);
		pl_buf_printf(
			line, "  every %.1f s  ? help  q quit", (double)t->interval_ns * 1e-9);
	}
	/* The last cell of the last line cannot be written without scrolling. What is typed shows
	 * its end. */
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
		pl_top_head(&line, t->view.status, t->url, (unsigned int)cols);
	put(0, A_BOLD, line.data);
	pl_buf_reset(&line);
	pl_buf_str(&line, "");
	if (t->view.status != NULL)
		pl_top_sums(&line, t->view.status, t->view.before, (unsigned int)cols);
	put(1, A_NORMAL, line.data);
	draw_screens(t, (unsigned int)cols);
	if (t->help)
		draw_help((unsigned int)rows);
	else
		draw_list(t, (unsigned int)rows, (unsigned int)cols, &line);
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
	/* Rows of another table say nothing here. */
	json_decref(t->view.table);
	t->view.table = NULL;
	pl_top_rates_done(&t->view.rates);
	/* An expression is of one table's columns. */
	t->view.where[0] = '\0';
	t->trouble[0] = '\0';
	ask(t);
}

static void sort_by(struct top *t, int step)
{
	struct view *v = &t->view;
	int n = (int)screen_of(v)->n_columns;
	int at = (int)v->sort[v->screen];

	/* A flow has no one column to sort by. */
	do
		at = (at + step + n) % n;
	while (screen_of(v)->columns[at].cell == PL_TOP_FLOW);
	v->sort[v->screen] = (unsigned int)at;
	v->descending[v->screen] = pl_top_descends(sort_column(v));
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
	unsigned int page = (unsigned int)getmaxy(stdscr) > HEAD_LINES + FOOT_LINES
				    ? (unsigned int)getmaxy(stdscr) - HEAD_LINES - FOOT_LINES
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

/* True when the screen changes. */
static bool take_answer(struct top *t)
{
	struct pl_top_answer a;

	if (!pl_top_fetch_take(t->fetch, &a))
		return false;
	if (a.code != 0) {
		/* Diagnostic texts hold no control characters (base/diag.h). */
		snprintf(t->trouble, sizeof(t->trouble), "%s", a.diag.text);
	} else if (a.question == t->question && !t->frozen) {
		t->trouble[0] = '\0';
		view_take(&t->view, &a);
	}
	pl_top_answer_done(&a);
	return true;
}

static void loop(struct top *t)
{
	bool changed = true;

	while (!t->quit && !ended) {
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

/* Takes the source over. */
static int watch(const struct pl_top_source *source, struct view *v)
{
	struct top t = { .view = *v, .interval_ns = args.interval_ns, .url = name_of(source) };
	SCREEN *screen;
	int r;

	r = pl_top_fetch_new(&t.fetch, source, t.interval_ns);
	if (r < 0) {
		pl_complain("cannot start: %s", strerrordesc_np(-r));
		return PL_EXIT_FAILED;
	}
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

/* Screens and orders as the options say; complains. */
static int init_view(struct view *v)
{
	const struct pl_top_screen *s = pl_top_screen_find(args.screen);
	int column;

	*v = (struct view){ .screen = (unsigned int)(s - pl_top_screens) };
	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		v->sort[i] = pl_top_screens[i].sort;
		v->descending[i] = true;
	}
	if (args.where != NULL) {
		if (strlen(args.where) >= sizeof(v->where)) {
			pl_complain("--where: longer than %d characters", FILTER_MAX - 1);
			return PL_EXIT_USAGE;
		}
		snprintf(v->where, sizeof(v->where), "%s", args.where);
	}
	if (args.sort == NULL)
		return 0;
	column = pl_top_column_find(s, args.sort);
	if (column < 0 || s->columns[column].cell == PL_TOP_FLOW) {
		pl_complain("--sort: %s have no column \"%s\"", s->name, args.sort);
		return PL_EXIT_USAGE;
	}
	v->sort[v->screen] = (unsigned int)column;
	v->descending[v->screen] = pl_top_descends(&s->columns[column]);
	return 0;
}

/* An exit code, 0 when good; complains. */
static int open_source(struct pl_top_source *ret)
{
	struct pl_diag diag = { .text = "" };
	uint64_t since_ns = 0;
	int r;

	if (args.from == NULL) {
		r = pl_client_new(&ret->client, &args.client, &diag);
		if (r != 0)
			pl_complain_diag(&diag);
		return r;
	}
	if (args.since != NULL && pl_parse_time(args.since, pl_clock_real_ns(), &since_ns) < 0) {
		pl_complain("--since needs a time (2026-11-22T01:37:27Z) or an age (10m)");
		return PL_EXIT_USAGE;
	}
	return pl_top_history_open(&ret->history, args.from, since_ns);
}

static int show(struct view *v)
{
	struct pl_top_source source = { .client = NULL };
	const char *why = args.batch ? NULL : pl_top_no_terminal();
	int r = open_source(&source);

	if (r != 0)
		return r;
	r = pl_client_confine(&args.client, args.from);
	if (r != 0) {
		pl_top_source_done(&source);
		return r;
	}
	if (!args.batch && why == NULL)
		return watch(&source, v);
	if (why != NULL)
		pl_complain("%s: printing once", why);
	r = batch(&source, v);
	pl_top_source_done(&source);
	return r;
}

static int run(int argc, char **argv)
{
	struct pl_opt_list operands;
	struct view view;
	int code, r;

	memset(&args, 0, sizeof(args));
	args.screen = "queues";
	args.form = "table";
	args.interval_ns = UINT64_C(2) * 1000000000u;
	args.times = 1;
	args.rows = BATCH_ROWS;
	if (pl_command_parse(&pl_command_top, argc, argv, &operands, &code) != 0)
		return code;
	r = operands.n > 0;
	pl_opt_list_done(&operands);
	if (r) {
		pl_complain("top takes no operand: name a table with --screen");
		return PL_EXIT_USAGE;
	}
	if (args.from != NULL ? args.client.url != NULL : args.since != NULL) {
		pl_complain(
			"--since needs a history (--from FOLDER), and --from and --url exclude each other");
		return PL_EXIT_USAGE;
	}
	if (args.interval_ns < UINT64_C(250) * 1000000u || args.rows == 0 ||
		args.rows > ROWS_ASKED) {
		pl_complain(args.rows == 0 || args.rows > ROWS_ASKED
				    ? "--rows must be from 1 to 1000"
				    : "--interval must be at least 250ms");
		return PL_EXIT_USAGE;
	}
	/* Characters only: numbers stay as they are. */
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	r = init_view(&view);
	if (r == 0)
		r = show(&view);
	view_done(&view);
	return r;
}

const struct pl_command pl_command_top = {
	.name = "top",
	.summary =
		"live tables of queues, links, ports, paths, flows, events, exporters, drops, regions",
	.usage = "[--screen SCREEN]",
	.description =
		"Shows tables of a running daemon in a terminal of at least 80 by 24 characters: deepest\n"
		"queues, slowest links, exporters that lose reports, latest events, drops by place. Keys\n"
		"choose table, order and filter; ? lists them. With --from it shows the tables of a history\n"
		"instead, with or without a daemon. Numbers come from the daemon; rates are differences\n"
		"between two answers.\n"
		"\n"
		"Without a terminal, or with --batch, top prints one table and ends.",
	.examples = "  pathline top\n"
		    "  pathline top --screen links --sort rate\n"
		    "  pathline top --batch --screen drops\n"
		    "  pathline top -b -s queues --where 'depth > 1000' -o json\n",
	.options = options,
	.run = run,
};
