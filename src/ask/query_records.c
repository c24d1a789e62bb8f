/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives paths, hops and events of histories and captures to a question. */
#include "ask/query_records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ask/query_daemon.h"
#include "ask/query_file.h"
#include "ask/query_region.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "decode/decode.h"
#include "netio/port.h"
#include "service/history_walk.h"
#include "show/record_out.h"

#define BATCH          256
#define BATCH_HOPS     4096
/* Sources read at the same time; when there are more, they are read one after the other. */
#define PARTITIONS_MAX 64

/* ---- from a history ---- */

/* Records read but not yet fed. */
struct gathered {
	const struct pl_query_records *to;
	uint32_t partition;
	bool paths, hops, events, paths_of_hops;
	bool truth; /* there were drops without an exporter, as in the truth of a lab or switch */
	uint32_t n_paths, n_path_hops, n_hops, n_events;
	struct pl_query_path path[BATCH];
	struct pl_hop path_hops[BATCH_HOPS];
	struct pl_query_hop hop[BATCH];
	struct pl_event event[BATCH];
};

static void feed_paths(struct gathered *g)
{
	(void)pl_query_feed(g->to->run, PL_QUERY_PATHS, g->path, g->n_paths, g->partition);
	g->n_paths = g->n_path_hops = 0;
}

static void feed_hops(struct gathered *g)
{
	(void)pl_query_feed(g->to->run, PL_QUERY_HOPS, g->hop, g->n_hops, g->partition);
	g->n_hops = 0;
}

static void feed_events(struct gathered *g)
{
	(void)pl_query_feed(g->to->run, PL_QUERY_EVENTS, g->event, g->n_events, g->partition);
	g->n_events = 0;
}

static void feed_all(struct gathered *g)
{
	feed_paths(g);
	feed_hops(g);
	feed_events(g);
}

static void take_path(struct gathered *g, const struct pl_history_record *record)
{
	if (g->n_paths == BATCH || g->n_path_hops + record->n_hops > BATCH_HOPS)
		feed_paths(g);
	memcpy(&g->path_hops[g->n_path_hops], record->hops,
		record->n_hops * sizeof(record->hops[0]));
	g->path[g->n_paths++] = (struct pl_query_path){ record->path, &g->path_hops[g->n_path_hops],
		record->n_hops };
	g->n_path_hops += record->n_hops;
}

static void take_hop(struct gathered *g, const struct pl_hop *hop, const struct pl_path *path)
{
	if (g->n_hops == BATCH)
		feed_hops(g);
	g->hop[g->n_hops].hop = *hop;
	g->hop[g->n_hops].path = path != NULL ? *path : (struct pl_path){ 0 };
	g->n_hops++;
}

static void take(struct gathered *g, const struct pl_history_record *record)
{
	if (record->kind == PL_KIND_EVENT) {
		g->truth |= record->event.event == PL_EVENT_PACKET_DROP &&
			    (record->event.present & PL_EVENT_HAS_exporter) == 0;
		if (g->n_events == BATCH)
			feed_events(g);
		g->event[g->n_events++] = record->event;
		return;
	}
	if (record->kind == PL_KIND_HOP) {
		take_hop(g, &record->hop, NULL);
		return;
	}
	if (g->paths)
		take_path(g, record);
	for (unsigned int i = 0; g->hops && g->paths_of_hops && i < record->n_hops; i++)
		take_hop(g, &record->hops[i], &record->path);
}

/* Returns the lists to read: hops are read through their paths when the question needs these. */
static unsigned int lists(const struct gathered *g)
{
	const bool by_path = g->hops && g->paths_of_hops;

	return (g->paths || by_path ? PL_OUT_PATHS : 0) | (g->hops && !by_path ? PL_OUT_HOPS : 0) |
	       (g->events ? PL_OUT_EVENTS : 0);
}

/* ---- sources ---- */

struct reading {
	const char *from;
	/* One of walk, decode and file is set while the source is read. */
	struct pl_history_walk *walk;
	struct pl_decode *decode;
	struct pl_query_one_file *file;
	struct gathered *gathered;
	struct pl_port *port;
	struct pl_record_batch records;
	struct pl_batch packets;
	const struct pl_query_records *to;
	uint32_t partition;
	bool apart; /* it has a partition of its own */
	bool began, ended;
	uint64_t reached_ns;
	uint64_t events_gone; /* events before the first that the history still has */
};

/* Reports that a source has no more records before this time in any of its lists, as it is in the
 * order of time. So a rare kind, or one that never comes, delays no window and no join. */
static void passed(const struct reading *r, uint64_t ts_ns)
{
	for (unsigned int stream = 0; r->apart && stream < PL_QUERY_STREAMS; stream++)
		(void)pl_query_passed(r->to->run, stream, ts_ns, r->partition);
}

static void end(struct reading *r)
{
	for (unsigned int stream = 0; r->apart && stream < PL_QUERY_STREAMS; stream++)
		(void)pl_query_ended(r->to->run, stream, r->partition);
	r->ended = true;
}

static int begin_history(struct reading *r, const char *from)
{
	const struct pl_query *query = r->to->query;
	struct gathered *g = calloc(1, sizeof(*g));
	int code;

	r->walk = calloc(1, sizeof(*r->walk));
	r->gathered = g;
	if (r->walk == NULL || g == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	*g = (struct gathered){ .to = r->to,
		.partition = r->partition,
		.paths = pl_query_reads(query, PL_QUERY_PATHS),
		.hops = pl_query_reads(query, PL_QUERY_HOPS),
		.events = pl_query_reads(query, PL_QUERY_EVENTS),
		.paths_of_hops = pl_query_reads_paths_of_hops(query) };
	code = pl_history_walk_open(
		r->walk, &(struct pl_history_walk_options){ .from = from, .kinds = lists(g) });
	if (code == 0 && r->walk->kinds != lists(g))
		code = pl_fail(PL_EXIT_UNAVAILABLE,
			"%s does not have all the lists that the question reads", from);
	for (unsigned int i = 0; code == 0 && i < r->walk->n; i++) {
		if (r->walk->readers[i].store == PL_HISTORY_EVENTS)
			r->events_gone = r->walk->readers[i].list.cursor;
	}
	return code;
}

/* Reports events that were overwritten before the question was asked, where drops are the truth: counts
 * of it are compared with telemetry. */
static void tell_short_truth(const struct reading *r)
{
	if (r->gathered->truth && r->events_gone > 0)
		pl_complain("%s: %" PRIu64 " earlier events are no longer there", r->from,
			r->events_gone);
}

/* Reads a batch of a history. Returns an exit code. */
static int step_history(struct reading *r)
{
	const struct pl_history_record *record = NULL;

	for (unsigned int i = 0; i < BATCH; i++) {
		record = pl_history_walk_next(r->walk);
		if (record == NULL)
			break;
		take(r->gathered, record);
		r->reached_ns = pl_history_record_ns(record);
	}
	feed_all(r->gathered);
	if (record != NULL) {
		passed(r, r->reached_ns);
		return 0;
	}
	end(r);
	tell_short_truth(r);
	return pl_history_walk_tell(r->walk) ? 0 : PL_EXIT_FAILED;
}

static void flush(struct pl_record_batch *batch, void *arg)
{
	const struct reading *r = arg;

	(void)pl_query_feed_reports(r->to->run, batch, r->partition);
	pl_record_batch_clear(batch);
}

static int begin_capture(struct reading *r)
{
	struct pl_diag diag = { .text = "" };

	if (pl_record_batch_init(&r->records, BATCH * 4, BATCH_HOPS) < 0 ||
		pl_decode_new(&r->decode, r->to->decode) < 0)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	r->records.flush = flush;
	r->records.flush_arg = r;
	/* Only histories have events. */
	if (r->apart)
		(void)pl_query_ended(r->to->run, PL_QUERY_EVENTS, r->partition);
	if (pl_port_open(&r->port, r->from, PL_PORT_RECV, &(struct pl_port_options){ 0 }, &diag) <
		0) {
		pl_complain_diag(&diag);
		return PL_EXIT_UNAVAILABLE;
	}
	return 0;
}

static int step_capture(struct reading *r)
{
	struct pl_diag diag = { .text = "" };
	int n = pl_port_recv(r->port, &r->packets, -1, &diag);

	if (n < 0) {
		end(r);
		if (n != -ENODATA)
			pl_complain_diag(&diag);
		return n == -ENODATA ? 0 : PL_EXIT_FAILED;
	}
	if (n == 0)
		return 0;
	for (unsigned int i = 0; i < r->packets.n; i++) {
		if (r->packets.pkts[i].ts_ns > r->reached_ns)
			r->reached_ns = r->packets.pkts[i].ts_ns;
	}
	pl_decode_batch(r->decode, &r->packets, &r->records);
	flush(&r->records, r);
	pl_port_release(r->port, &r->packets);
	/* Few of its packets may be reports. */
	passed(r, r->reached_ns);
	return 0;
}

/* ---- from a file of records ---- */

static void feed_file(
	void *arg, uint32_t file, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct reading *r = arg;

	(void)file;
	r->reached_ns = pl_flat_time(
		kind, (const uint8_t *)records + (size_t)(n - 1) * pl_flat(kind)->size);
	(void)pl_query_feed_flat(r->to->run, kind, records, n, r->partition);
}

static bool reads_kind(void *arg, enum pl_flat_kind kind)
{
	const struct reading *r = arg;

	return pl_query_reads(r->to->query, kind) ||
	       pl_query_reads(r->to->query, pl_flat_short(kind));
}

static int begin_file(struct reading *r)
{
	const struct pl_query_file to = { .reads = reads_kind, .feed = feed_file, .arg = r };

	return pl_query_file_open(&r->file, r->from, &to);
}

/* Reads a block of a file, as of a history: it is not far ahead of the other sources, and no more
 * windows are open than there is room for. */
static int step_file(struct reading *r)
{
	const struct pl_query_file to = { .reads = reads_kind, .feed = feed_file, .arg = r };
	int code;

	if (pl_query_file_step(r->file, BATCH, &to)) {
		passed(r, r->reached_ns);
		return 0;
	}
	end(r);
	code = pl_query_file_close(r->file);
	r->file = NULL;
	return code;
}

/* ---- which ---- */

static void close_reading(struct reading *r)
{
	if (r->walk != NULL)
		pl_history_walk_close(r->walk);
	(void)pl_port_close(r->port);
	pl_decode_free(r->decode);
	pl_record_batch_done(&r->records);
	(void)pl_query_file_close(r->file);
	free(r->walk);
	free(r->gathered);
	r->file = NULL;
	r->walk = NULL;
	r->gathered = NULL;
	r->port = NULL;
	r->decode = NULL;
	r->records = (struct pl_record_batch){ 0 };
}

/* Returns the path of "region:PATH". */
static const char *path_of(const char *source)
{
	const size_t n = strlen(PL_QUERY_REGION);

	return strncmp(source, PL_QUERY_REGION, n) == 0 ? source + n : source;
}

static bool is_history(const char *source)
{
	const char *dot = strrchr(source, '.');
	struct stat st;

	return path_of(source) != source || (dot != NULL && strcmp(dot, ".region") == 0) ||
	       (stat(source, &st) == 0 && S_ISDIR(st.st_mode));
}

bool pl_query_reads_records(const struct pl_query *query)
{
	return pl_query_reads(query, PL_QUERY_PATHS) || pl_query_reads(query, PL_QUERY_HOPS) ||
	       pl_query_reads(query, PL_QUERY_EVENTS) || pl_query_reads(query, PL_QUERY_VALUES);
}

static bool is_live(const char *source)
{
	return !is_history(source) && (pl_port_uri_can(source) & PL_PORT_CAN_LIVE) != 0;
}

static bool has_events(const char *source)
{
	return is_history(source) || pl_query_is_daemon(source);
}

/* Checks that values come from a daemon, and that events have a source with events. Returns 0, or
 * prints the error and returns an exit code. */
static int check(const struct pl_query *query, const char *const *sources, size_t n)
{
	if (pl_query_reads(query, PL_QUERY_VALUES) && !pl_query_is_daemon(sources[0]))
		return pl_fail(PL_EXIT_USAGE,
			"%s: values of regions come from the daemon that reads them (http://HOST:PORT, unix:PATH)",
			sources[0]);
	if (!pl_query_reads(query, PL_QUERY_EVENTS))
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (has_events(sources[i]))
			return 0;
	}
	return pl_fail(PL_EXIT_USAGE,
		"%s: events are read from a daemon (http://HOST:PORT) or its history: %s",
		sources[0],
		is_live(sources[0]) ? "reports have paths and hops"
				    : "a capture has paths and hops");
}

static bool has_file(unsigned int stream, const char *const *sources, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const enum pl_flat_kind kind = pl_query_file_kind(sources[i]);

		if (kind == stream || (kind != PL_FLAT_MAX && pl_flat_short(kind) == stream))
			return true;
	}
	return false;
}

int pl_query_records_live(
	const struct pl_query *query, const char *const *sources, size_t n, bool *ret)
{
	const bool daemon = pl_query_is_daemon(sources[0]);
	size_t live = 0;
	int code;

	for (unsigned int stream = 0; stream < PL_FLAT_MAX && !daemon; stream++) {
		if (!pl_query_reads(query, stream) || has_file(stream, sources, n))
			continue;
		return pl_fail(PL_EXIT_USAGE,
			"query: %s beside paths, hops or events are read from files, NAME.%s, or from a daemon, and none is given",
			pl_query_stream_name(stream), pl_flat((enum pl_flat_kind)stream)->name);
	}
	code = check(query, sources, n);
	for (size_t i = 0; code == 0 && i < n; i++)
		live += is_live(sources[i]);
	*ret = live > 0;
	if (code != 0 || live == 0 || live == n)
		return code;
	return pl_fail(PL_EXIT_USAGE,
		"query: reports as they arrive cannot be read together with what is stored");
}

uint32_t pl_query_records_partitions(size_t n)
{
	return n <= PARTITIONS_MAX ? (uint32_t)n : 1;
}

static int step(struct reading *r)
{
	int code;

	if (!r->began) {
		r->began = true;
		code = pl_query_file_kind(r->from) != PL_FLAT_MAX ? begin_file(r)
		       : is_history(r->from) ? begin_history(r, path_of(r->from))
					     : begin_capture(r);
		if (code != 0)
			return code;
	}
	code = r->file != NULL ? step_file(r) : r->walk != NULL ? step_history(r) : step_capture(r);
	if (r->ended)
		close_reading(r);
	return code;
}

/* Returns the source that is furthest behind; when too many to be open at once, the first. NULL:
 * all have ended. */
static struct reading *next_of(struct reading *all, size_t n)
{
	struct reading *least = NULL;

	for (size_t i = 0; i < n; i++) {
		if (all[i].ended)
			continue;
		if (!all[i].apart)
			return &all[i];
		if (least == NULL || all[i].reached_ns < least->reached_ns)
			least = &all[i];
	}
	return least;
}

int pl_query_records_read(
	const struct pl_query_records *records, const char *const *sources, size_t n)
{
	struct reading *all = calloc(n, sizeof(*all)), *r;
	int code = 0;

	if (all == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	for (size_t i = 0; i < n; i++) {
		all[i].from = sources[i];
		all[i].to = records;
		all[i].apart = n <= PARTITIONS_MAX;
		all[i].partition = all[i].apart ? (uint32_t)i : 0;
	}
	while (code == 0 && !records->full(records->arg) && (r = next_of(all, n)) != NULL) {
		code = step(r);
		records->turned(records->arg);
	}
	for (size_t i = 0; i < n; i++)
		close_reading(&all[i]);
	free(all);
	return code;
}
