/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the stream of a daemon. */
#include "ask/tail_daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ask/stream_hex.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "runtime/confine_reader.h"
#include "show/flat_out.h"
#include "show/stdout.h"

enum {
	LINE_MAX_BYTES = 256 * 1024, /* a path of 255 hops in JSON has about 120 KiB */
	FIRST_WAIT_MS = 500,
	LAST_WAIT_MS = 10000,
};

struct tail {
	const struct pl_tail_daemon *args;
	struct pl_buf line;  /* the line received so far */
	struct pl_buf clean; /* text to print */
	uint64_t printed, dropped;
	unsigned int skip; /* lines of a repeated header to skip */
	bool began;        /* a header was printed */
	struct pl_flat_out tapped;
	bool gone; /* the reader of standard output is gone */
	int error;
};

/* Prints text of a server, which may be hostile: control characters are replaced. */
static void print(struct tail *t, const char *text, size_t n)
{
	pl_buf_reset(&t->clean);
	pl_client_line(&t->clean, text, n, strcmp(t->args->form, "jsonl") == 0);
	pl_stdout_flush(&t->clean, &t->gone, &t->error);
}

static bool begins(const char *line, size_t n, const char *with)
{
	return n >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* As take_line, for a record of a tap. */
static bool take_tapped(struct tail *t, const char *line, size_t n)
{
	union pl_stream_tapped record;

	if (pl_stream_tapped(&record, line, n - 1) != t->args->tapped) {
		t->error = -EPROTO;
		return false;
	}
	pl_flat_out_add(&t->tapped, &record, 1);
	pl_flat_out_write(&t->tapped);
	t->printed++;
	return !pl_flat_out_full(&t->tapped);
}

/* Takes a whole line with its end. Returns false when no more is wanted. */
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
		if (t->args->show_loss)
			print(t, line, n);
		return !t->gone && t->error == 0;
	}
	if (t->args->tapped != NULL)
		return take_tapped(t, line, n);
	if (t->skip > 0) {
		t->skip--;
		if (!t->began)
			print(t, line, n);
		return !t->gone && t->error == 0;
	}
	t->began = true;
	/* Hops belong to their path; they are not counted. */
	if (line[0] != '\t' && t->args->limit > 0 && t->printed >= t->args->limit)
		return false;
	t->printed += line[0] != '\t';
	print(t, line, n);
	/* In text form hops of the last path may follow. */
	return !t->gone && t->error == 0 &&
	       (t->args->limit == 0 || t->printed < t->args->limit ||
		       strcmp(t->args->form, "text") == 0);
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

unsigned int pl_tail_kinds(const struct pl_tail_daemon *args)
{
	return (unsigned int)args->events + args->paths + args->values;
}

/* Returns the lines of the header of the form. */
static unsigned int header_lines(const struct pl_tail_daemon *args)
{
	if (args->tapped != NULL)
		return 0;
	if (strcmp(args->form, "csv") == 0)
		return 1;
	if (strcmp(args->form, "table") == 0 || strcmp(args->form, "wide") == 0)
		return pl_tail_kinds(args) > 0 ? pl_tail_kinds(args) : 3;
	return 0;
}

static bool make_path(const struct pl_tail_daemon *args, char *dst, size_t cap)
{
	char kind[32];
	bool good = true;

	snprintf(dst, cap, "/api/v1/tail");
	snprintf(kind, sizeof(kind), "%s%s%s", args->events ? ",events" : "",
		args->paths ? ",paths" : "", args->values ? ",values" : "");
	if (args->tapped != NULL)
		snprintf(kind, sizeof(kind), ",%s", args->tapped->name);
	if (pl_tail_kinds(args) > 0 || args->tapped != NULL)
		good = pl_client_parameter(dst, cap, "kind", kind + 1);
	if (good && args->where != NULL)
		good = pl_client_parameter(dst, cap, "where", args->where);
	/* Records of taps are formatted here. */
	return good &&
	       pl_client_parameter(dst, cap, "form", args->tapped != NULL ? "record" : args->form);
}

/* Prints until no more is wanted. Returns the exit code. */
static int follow(struct pl_client *client, struct tail *t, const char *path)
{
	unsigned int wait_ms = FIRST_WAIT_MS;
	struct pl_diag diag = { .text = "" };
	bool ever = false, told = false, began;

	for (;;) {
		int r;

		t->skip = header_lines(t->args);
		pl_buf_reset(&t->line);
		r = pl_client_stream(client, path, on_data, t, t->args->stopped, &began, &diag);
		if (*t->args->stopped || t->gone || t->tapped.rows.gone ||
			(t->args->limit > 0 && t->printed >= t->args->limit))
			return PL_EXIT_OK;
		if (t->error != 0)
			return pl_fail(PL_EXIT_FAILED, "%s", strerrordesc_np(-t->error));
		ever = ever || began || r == 0;
		/* No further try when the daemon refused the request, or never answered. */
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
		if (*t->args->stopped)
			return PL_EXIT_OK;
		wait_ms = wait_ms * 2 < LAST_WAIT_MS ? wait_ms * 2 : LAST_WAIT_MS;
	}
}

int pl_tail_daemon(const struct pl_tail_daemon *args)
{
	struct pl_diag diag = { .text = "" };
	struct tail t = { .args = args };
	struct pl_client *client;
	char path[1200];
	int code;

	if (!make_path(args, path, sizeof(path)))
		return pl_fail(PL_EXIT_USAGE, "--where: too long for a request");
	code = pl_client_new(&client, args->client, &diag);
	if (code != 0) {
		pl_complain_diag(&diag);
		return code;
	}
	pl_buf_init(&t.line);
	pl_buf_init(&t.clean);
	t.line.limit = LINE_MAX_BYTES;
	if (args->tapped != NULL)
		pl_flat_out_init(&t.tapped, args->tapped->flat, args->form, args->limit);
	if (args->community_id)
		pl_flat_out_community_id(&t.tapped);
	code = pl_client_confine(args->client, NULL);
	if (code == 0)
		code = follow(client, &t, path);
	if (t.dropped > 0)
		pl_complain(
			"%" PRIu64
			" entries were dropped on the way: this command, or the daemon's stream, did not keep up",
			t.dropped);
	if (args->tapped != NULL && !pl_flat_out_end(&t.tapped) && code == PL_EXIT_OK)
		code = PL_EXIT_FAILED;
	pl_buf_done(&t.line);
	pl_buf_done(&t.clean);
	pl_client_free(client);
	return code;
}
