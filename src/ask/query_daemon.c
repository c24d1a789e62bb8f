/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads records from a running daemon for a question. */
#include "ask/query_daemon.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ask/stream_hex.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "record/record.h"
#include "runtime/signals.h"

#define HOPS_MAX      255
#define RECORD_DIGITS 256
#define LINE_MAX_LEN  (16 + (HOPS_MAX + 1) * RECORD_DIGITS)
#define AGAIN_NS      UINT64_C(500000000)

struct stream {
	const struct pl_query_daemon *d;
	struct pl_client *client;
	uint64_t end_ns; /* UINT64_MAX: none */
	uint64_t dropped, strange;
	struct pl_buf line; /* the line received so far */
	struct pl_hop hops[HOPS_MAX];
};

static volatile int stop;

static void on_signal(int signo)
{
	(void)signo;
	stop = 1;
}

bool pl_query_is_daemon(const char *source)
{
	return strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0 ||
	       strncmp(source, "unix:", 5) == 0;
}

/* ---- lines ---- */

static bool take_event(struct stream *s, const char *digits, size_t n)
{
	struct pl_event event;

	if (n != RECORD_DIGITS || !pl_stream_hex(&event, sizeof(event), digits) ||
		event.record_version != PL_RECORD_VERSION)
		return false;
	(void)pl_query_feed(s->d->run, PL_QUERY_EVENTS, &event, 1, 0);
	return true;
}

static bool take_path(struct stream *s, const char *digits, size_t n)
{
	struct pl_query_path path = { .hops = s->hops };
	const size_t n_hops = n / RECORD_DIGITS - 1;

	if (n < RECORD_DIGITS || n % RECORD_DIGITS != 0 || n_hops > HOPS_MAX ||
		!pl_stream_hex(&path.path, sizeof(path.path), digits) ||
		path.path.record_version != PL_RECORD_VERSION || path.path.hop_count != n_hops ||
		!pl_stream_hex(s->hops, n_hops * sizeof(s->hops[0]), digits + RECORD_DIGITS))
		return false;
	path.n_hops = n_hops;
	(void)pl_query_feed(s->d->run, PL_QUERY_PATHS, &path, 1, 0);
	for (size_t i = 0; i < n_hops && pl_query_reads(s->d->query, PL_QUERY_HOPS); i++) {
		const struct pl_query_hop hop = { .hop = s->hops[i], .path = path.path };

		(void)pl_query_feed(s->d->run, PL_QUERY_HOPS, &hop, 1, 0);
	}
	return true;
}

static bool take_value(struct stream *s, const char *digits, size_t n)
{
	struct pl_value value;

	if (n != RECORD_DIGITS || !pl_stream_hex(&value, sizeof(value), digits) ||
		value.record_version != PL_RECORD_VERSION)
		return false;
	(void)pl_query_feed(s->d->run, PL_QUERY_VALUES, &value, 1, 0);
	return true;
}

/* Feeds a record of a tap or marking domain. */
static bool take_tapped(struct stream *s, const char *line, size_t n)
{
	union pl_stream_tapped record;
	const struct pl_watch_kind *kind = pl_stream_tapped(&record, line, n);

	if (kind == NULL)
		return false;
	(void)pl_query_feed_flat(s->d->run, kind->flat, &record, 1, 0);
	return true;
}

/* Takes a complete line without its end. A line that is not a record is counted. */
static void take_line(struct stream *s, const char *line, size_t n)
{
	static const char dropped[] = "{\"kind\":\"dropped\",\"count\":";
	static const char alive[] = "{\"kind\":\"alive\"";
	bool good = true;

	if (n >= sizeof(dropped) && memcmp(line, dropped, sizeof(dropped) - 1) == 0)
		s->dropped += strtoull(line + sizeof(dropped) - 1, NULL, 10);
	else if (n >= 6 && memcmp(line, "event ", 6) == 0)
		good = take_event(s, line + 6, n - 6);
	else if (n >= 5 && memcmp(line, "path ", 5) == 0)
		good = take_path(s, line + 5, n - 5);
	else if (n >= 6 && memcmp(line, "value ", 6) == 0)
		good = take_value(s, line + 6, n - 6);
	else if (n < sizeof(alive) || memcmp(line, alive, sizeof(alive) - 1) != 0)
		good = take_tapped(s, line, n);
	s->strange += !good;
}

static void tick(void *arg)
{
	const struct stream *s = arg;

	s->d->turned(s->d->arg);
	if (pl_clock_mono_ns() >= s->end_ns || s->d->full(s->d->arg))
		stop = 1;
}

static bool on_data(void *arg, const char *data, size_t n)
{
	struct stream *s = arg;

	pl_query_clock(s->d->run, pl_clock_real_ns());
	while (n > 0) {
		const char *end = memchr(data, '\n', n);
		const size_t part = end != NULL ? (size_t)(end - data) + 1 : n;

		pl_buf_add(&s->line, data, part);
		if (s->line.failed)
			return false;
		data += part;
		n -= part;
		if (end == NULL)
			break;
		/* strtoull needs an end. */
		s->line.data[s->line.len - 1] = '\0';
		take_line(s, s->line.data, s->line.len - 1);
		pl_buf_reset(&s->line);
	}
	tick(s);
	return stop == 0;
}

/* ---- the stream ---- */

/* Returns the kinds of records of taps and marking domains that the question reads, as bits.
 * *ret_others: it reads kinds that neither makes. */
static uint32_t kinds_of(const struct pl_query *query, bool *ret_others)
{
	uint32_t tapped = 0;

	for (unsigned int kind = 0; kind < PL_FLAT_MAX; kind++) {
		const enum pl_flat_kind made = pl_flat_long((enum pl_flat_kind)kind);

		if (!pl_query_reads(query, kind))
			continue;
		if (pl_watch_kind_of(made) != NULL)
			tapped |= 1u << made;
		else
			*ret_others = true;
	}
	return tapped;
}

bool pl_query_daemon_check(const struct pl_query *query, const char *const *sources, size_t n)
{
	bool others = false;
	size_t daemons = 0;

	for (size_t i = 0; i < n; i++)
		daemons += pl_query_is_daemon(sources[i]);
	(void)kinds_of(query, &others);
	if (daemons == 0 || (n == 1 && !others))
		return true;
	return pl_fail(false, "%s",
		n > 1 ? "query: a daemon must be the only source of a question"
		      : "query: a daemon has packets, flows, dns, drops, marks, segments, paths, hops, events and "
			"values; others are asked for where they come from");
}

static void make_path(const struct stream *s, char *dst, size_t cap)
{
	const struct pl_query *q = s->d->query;
	const bool paths = pl_query_reads(q, PL_QUERY_PATHS) || pl_query_reads(q, PL_QUERY_HOPS);
	bool others = false;
	const uint32_t tapped = kinds_of(q, &others);
	const struct pl_watch_kind *kind;
	char kinds[96] = "";
	size_t len;

	len = (size_t)snprintf(kinds, sizeof(kinds), "%s%s%s", paths ? ",paths" : "",
		pl_query_reads(q, PL_QUERY_EVENTS) ? ",events" : "",
		pl_query_reads(q, PL_QUERY_VALUES) ? ",values" : "");
	for (unsigned int i = 0; (kind = pl_watch_kind_at(i)) != NULL; i++) {
		if ((tapped & 1u << kind->flat) != 0)
			len += (size_t)snprintf(
				kinds + len, sizeof(kinds) - len, ",%s", kind->name);
	}
	snprintf(dst, cap, "/api/v1/tail?kind=%s&form=record", kinds + 1);
}

static void pause_stream(struct stream *s)
{
	const struct timespec t = pl_clock_timespec(AGAIN_NS);

	nanosleep(&t, NULL);
	tick(s);
}

static int follow(struct stream *s, const char *path)
{
	struct pl_diag diag = { .text = "" };
	bool ever = false, told = false;

	while (stop == 0) {
		bool began = false;
		int r;

		pl_buf_reset(&s->line);
		r = pl_client_stream(s->client, path, on_data, s, &stop, &began, &diag);
		if (s->line.failed)
			return pl_fail(PL_EXIT_FAILED,
				"%s: a line of the stream is longer than any record",
				pl_client_url(s->client));
		ever = ever || began || r == 0;
		/* No further try when the daemon refused the request, or never answered. */
		if (stop == 0 && r != 0 && !began && (!ever || r != PL_EXIT_UNAVAILABLE)) {
			pl_complain_diag(&diag);
			/* Records that came before are answered. */
			return ever ? PL_EXIT_FAILED : r;
		}
		if (stop == 0 && (!told || began))
			pl_complain(
				"%s: the stream has ended; trying again", pl_client_url(s->client));
		told = true;
		if (stop == 0)
			pause_stream(s);
	}
	return 0;
}

static int read_stream(struct stream *s)
{
	char path[160];
	int code;

	make_path(s, path, sizeof(path));
	stop = 0;
	signal(SIGPIPE, SIG_IGN);
	pl_signals_handle(on_signal, (const int[]){ 0 });
	code = s->d->confine(s->d->arg);
	if (code == 0) {
		pl_complain("asking %s", pl_client_url(s->client));
		code = follow(s, path);
	}
	if (s->dropped > 0)
		pl_complain("%" PRIu64 " records were dropped on the way: this command, or the "
			    "daemon's stream, did not keep up",
			s->dropped);
	if (s->strange > 0)
		pl_complain("%" PRIu64 " lines of the stream were no records of this version of "
			    "pathline, and are left out",
			s->strange);
	return code == 0 && s->strange > 0 ? PL_EXIT_FAILED : code;
}

int pl_query_daemon_read(const struct pl_query_daemon *d, const char *url)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct pl_client_args args = *d->client;
	struct pl_diag diag = { .text = "" };
	int code;

	if (s == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	s->d = d;
	s->end_ns = d->duration_ns != 0 ? pl_clock_mono_ns() + d->duration_ns : UINT64_MAX;
	args.url = url;
	pl_buf_init(&s->line);
	s->line.limit = LINE_MAX_LEN;
	code = pl_client_new(&s->client, &args, &diag);
	if (code == 0) {
		pl_client_set_tick(s->client, tick, s);
		code = read_stream(s);
	} else {
		pl_complain_diag(&diag);
	}
	pl_client_free(s->client);
	pl_buf_done(&s->line);
	free(s);
	return code;
}
