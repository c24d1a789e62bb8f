/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline tail: records and events of a running daemon as they come. The daemon filters and
 * formats; what this does is to ask again when the connection is lost, to count, and to keep what
 * is said about the stream out of it. With --from they are read out of a history instead
 * (tail_history.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/confine_reader.h"
#include "cli/record_out.h"
#include "cli/stdout.h"
#include "cli/tail_history.h"
#include "service/signals.h"
#include "web/client.h"

enum {
	LINE_MAX_BYTES = 256 * 1024, /* a path of 255 hops in JSON has about 120 KiB */
	FIRST_WAIT_MS = 500,
	LAST_WAIT_MS = 10000,
};

static struct {
	struct pl_client_args client;
	const char *where, *form, *from, *since;
	bool events, paths, values, show_loss, follow;
	uint64_t limit;
} args;

struct tail {
	struct pl_buf line;  /* begun, not ended */
	struct pl_buf clean; /* as it is printed */
	uint64_t printed, dropped;
	unsigned int skip; /* lines that are a header said before */
	bool began;        /* a header was printed */
	bool gone;         /* nobody reads any more */
	int error;
};

static volatile sig_atomic_t stopped;
static volatile int stop_flag;

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_STRING, 'w', "where", &args.where, "EXPR",
			"only records and events that match the expression (see 'pathline help where')",
			NULL },
		{ PL_OPT_FLAG, 'e', "events", &args.events, NULL, "events only", NULL },
		{ PL_OPT_FLAG, 'p', "paths", &args.paths, NULL, "paths (reports) only", NULL },
		{ PL_OPT_FLAG, 0, "values", &args.values, NULL,
			"values only: new contents of regions of telemetry memory", NULL },
		{ PL_OPT_U64, 'n', "count", &args.limit, "N", "stop after N records", NULL },
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM",
			"format (default table); json is one array and works with --from only",
			pl_out_forms },
		{ PL_OPT_FLAG, 0, "show-loss", &args.show_loss, NULL,
			"print notices of lost entries at their place in the stream (with jsonl)",
			NULL },
		{ PL_OPT_HEADING, 0, "History", NULL, NULL, NULL, NULL },
		{ PL_OPT_STRING, 0, "from", &args.from, "FOLDER",
			"print this history and stop, without asking a daemon: the folder of an output of type region, or one of its files",
			NULL },
		{ PL_OPT_STRING, 0, "since", &args.since, "TIME",
			"with --from: only entries not older than this: 10m or 2026-11-22T01:37:27Z",
			NULL },
		{ PL_OPT_FLAG, 'f', "follow", &args.follow, NULL,
			"with --from: then print new entries as they are written, also after a restart of the daemon",
			NULL },
		{ PL_OPT_HEADING, 0, "Daemon", NULL, NULL, NULL, NULL },
		PL_CLIENT_ARGS(args.client),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

static void on_signal(int signal_number)
{
	(void)signal_number;
	stopped = 1;
	stop_flag = 1;
}

/* What comes is a server's, which may be a stranger's. */
static void print(struct tail *t, const char *text, size_t n)
{
	pl_buf_reset(&t->clean);
	pl_client_line(&t->clean, text, n, strcmp(args.form, "jsonl") == 0);
	pl_stdout_flush(&t->clean, &t->gone, &t->error);
}

static bool begins(const char *line, size_t n, const char *with)
{
	return n >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* A whole line, its end included. False when no more is wanted. */
static bool take_line(struct tail *t, const char *line, size_t n)
{
	static const char dropped[] = "{\"kind\":\"dropped\",\"count\":";

	if (begins(line, n, "{\"kind\":\"alive\""))
		return true;
	if (begins(line, n, dropped)) {
		for (const char *p = line + sizeof(dropped) - 1; *p >= '0' && *p <= '9'; p++) {
			if (p == line + sizeof(dropped) - 1)
				t->dropped += strtoull(p, NULL, 10);
		}
		if (args.show_loss)
			print(t, line, n);
		return !t->gone && t->error == 0;
	}
	if (t->skip > 0) {
		t->skip--;
		if (!t->began)
			print(t, line, n);
		return !t->gone && t->error == 0;
	}
	t->began = true;
	/* Hops belong to their path; they are not counted. */
	if (line[0] != '\t' && args.limit > 0 && t->printed >= args.limit)
		return false;
	t->printed += line[0] != '\t';
	print(t, line, n);
	/* In text form hops may still follow. */
	return !t->gone && t->error == 0 &&
	       (args.limit == 0 || t->printed < args.limit || strcmp(args.form, "text") == 0);
}

static bool on_data(void *arg, const char *data, size_t n)
{
	struct tail *t = arg;

	while (n > 0) {
		const char *end = memchr(data, '\n', n);
		size_t part = end != NULL ? (size_t)(end - data) + 1 : n;

		pl_buf_add(&t->line, data, part);
		if (t->line.failed) {
			t->error = -EMSGSIZE;
			return false;
		}
		data += part;
		n -= part;
		if (end == NULL)
			return true;
		if (!take_line(t, t->line.data, t->line.len))
			return false;
		pl_buf_reset(&t->line);
	}
	return true;
}

static void pause_ms(unsigned int ms)
{
	const struct timespec t = pl_clock_timespec(ms * UINT64_C(1000000));

	nanosleep(&t, NULL);
}

/* How many kinds are asked for; none is all. */
static unsigned int kinds(void)
{
	return (unsigned int)args.events + args.paths + args.values;
}

/* Lines of the header that the form begins with. */
static unsigned int header_lines(void)
{
	if (strcmp(args.form, "csv") == 0)
		return 1;
	if (strcmp(args.form, "table") == 0 || strcmp(args.form, "wide") == 0)
		return kinds() > 0 ? kinds() : 3;
	return 0;
}

static bool make_path(char *dst, size_t cap)
{
	char kind[32];
	bool good = true;

	snprintf(dst, cap, "/api/v1/tail");
	snprintf(kind, sizeof(kind), "%s%s%s", args.events ? ",events" : "",
		args.paths ? ",paths" : "", args.values ? ",values" : "");
	if (kinds() > 0)
		good = pl_client_parameter(dst, cap, "kind", kind + 1);
	if (good && args.where != NULL)
		good = pl_client_parameter(dst, cap, "where", args.where);
	return good && pl_client_parameter(dst, cap, "form", args.form);
}

/* Until no more is wanted. The exit code. */
static int follow(struct pl_client *client, struct tail *t, const char *path)
{
	unsigned int wait_ms = FIRST_WAIT_MS;
	struct pl_diag diag = { .text = "" };
	bool ever = false, told = false, began;

	for (;;) {
		int r;

		t->skip = header_lines();
		pl_buf_reset(&t->line);
		r = pl_client_stream(client, path, on_data, t, &stop_flag, &began, &diag);
		if (stopped || t->gone || (args.limit > 0 && t->printed >= args.limit))
			return PL_EXIT_OK;
		if (t->error != 0) {
			pl_complain("%s", strerrordesc_np(-t->error));
			return PL_EXIT_FAILED;
		}
		ever = ever || began || r == 0;
		/* What is refused stays refused; and who was never there is not waited for. */
		if (r != 0 && (!ever || r != PL_EXIT_UNAVAILABLE) && !began) {
			pl_complain_diag(&diag);
			return r;
		}
		if (began) {
			wait_ms = FIRST_WAIT_MS;
			told = false;
		}
		if (!told)
			pl_complain(
				"%s: the stream has ended; trying again", pl_client_url(client));
		told = true;
		pause_ms(wait_ms);
		if (stopped)
			return PL_EXIT_OK;
		wait_ms = wait_ms * 2 < LAST_WAIT_MS ? wait_ms * 2 : LAST_WAIT_MS;
	}
}

static void catch_signals(void)
{
	stopped = 0;
	stop_flag = 0;
	signal(SIGPIPE, SIG_IGN);
	pl_signals_handle(on_signal, (const int[]){ 0 });
}

static int tail_history(void)
{
	struct pl_tail_history history = {
		.from = args.from,
		.since = args.since,
		.where = args.where,
		.form = args.form,
		.events = args.events,
		.paths = args.paths,
		.follow = args.follow,
		.show_loss = args.show_loss,
		.limit = args.limit,
		.stopped = &stopped,
	};

	if (args.follow && strcmp(args.form, "json") == 0) {
		pl_complain(
			"-o json prints one array, which never ends with --follow: use -o jsonl");
		return PL_EXIT_USAGE;
	}
	return pl_tail_history(&history);
}

static int run(int argc, char **argv)
{
	struct pl_diag diag = { .text = "" };
	struct pl_opt_list operands;
	struct pl_client *client;
	struct tail t = { 0 };
	char path[1200];
	int code, r;

	memset(&args, 0, sizeof(args));
	args.form = "table";
	if (pl_command_parse(&pl_command_tail, argc, argv, &operands, &code) != 0)
		return code;
	r = operands.n > 0;
	pl_opt_list_done(&operands);
	if (r) {
		pl_complain("tail takes no operand: give an expression with --where");
		return PL_EXIT_USAGE;
	}
	if (args.from != NULL && args.values) {
		pl_complain("a history (--from) has no values of regions");
		return PL_EXIT_USAGE;
	}
	if (args.from != NULL) {
		catch_signals();
		r = pl_client_confine(&args.client, args.from);
		return r != 0 ? r : tail_history();
	}
	if (args.since != NULL || args.follow) {
		pl_complain("--since and --follow need a history (--from FOLDER)");
		return PL_EXIT_USAGE;
	}
	if (strcmp(args.form, "json") == 0) {
		pl_complain("-o json prints one array, and a stream never ends: use -o jsonl");
		return PL_EXIT_USAGE;
	}
	if (strcmp(args.form, "csv") == 0 && kinds() != 1) {
		pl_complain("CSV has one header: give --events, --paths or --values");
		return PL_EXIT_USAGE;
	}
	if (!make_path(path, sizeof(path))) {
		pl_complain("--where: too long for a request");
		return PL_EXIT_USAGE;
	}
	r = pl_client_new(&client, &args.client, &diag);
	if (r != 0) {
		pl_complain_diag(&diag);
		return r;
	}
	catch_signals();
	pl_buf_init(&t.line);
	pl_buf_init(&t.clean);
	t.line.limit = LINE_MAX_BYTES;
	code = pl_client_confine(&args.client, NULL);
	if (code == 0)
		code = follow(client, &t, path);
	if (t.dropped > 0)
		pl_complain(
			"%" PRIu64
			" entries were dropped on the way: this command, or the daemon's stream, did not keep up",
			t.dropped);
	pl_buf_done(&t.line);
	pl_buf_done(&t.clean);
	pl_client_free(client);
	return code;
}

const struct pl_command pl_command_tail = {
	.name = "tail",
	.summary = "print records, events and values of a running daemon, or of its history",
	.usage = "[--from FOLDER] [--where EXPR] [--events | --paths | --values]",
	.description =
		"Prints the records and events of a running daemon, and the values that it reads from regions\n"
		"of telemetry memory, as they occur, until N records, SIGINT or SIGTERM. When the connection\n"
		"is lost, tail connects again. Without --events, --paths or --values it prints all of them, or\n"
		"those that have all fields of the expression.\n"
		"\n"
		"A slow reader does not slow the daemon: the daemon drops entries for this reader and counts\n"
		"them, and tail prints their number at the end on standard error.\n"
		"\n"
		"With --from it reads the history that an output of type region keeps, in order of time, and\n"
		"asks no daemon: a history is there while the daemon runs and after its end. Entries that\n"
		"were overwritten before tail read them are counted on standard error. Exit code 3: the\n"
		"history has no matching entry.",
	.examples = "  pathline tail --events\n"
		    "  pathline tail --where 'flags.dropped or hops.queue_depth > 100'\n"
		    "  pathline tail --values --where 'region == lists and value > 100'\n"
		    "  pathline tail --events -o jsonl --where 'node == 3' | jq .value\n"
		    "  pathline tail --from /var/lib/pathline/history --since 10m --events\n",
	.options = options,
	.run = run,
};
