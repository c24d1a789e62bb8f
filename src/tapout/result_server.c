/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rows of a query to a database of InfluxDB or a table of ClickHouse, which keep their
 * types. The sender (export/sender.h) accounts for the requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "export/clickhouse_rows.h"
#include "export/influx_rows.h"
#include "runtime/say.h"
#include "tapout/result_out.h"
#include "tapout/tap_export.h"

#define TURN_NS   UINT64_C(100000000)
#define LOOK_NS   10000000             /* between checks at the end */
#define MEMORY    (UINT64_C(16) << 20) /* bytes of batches, without memory= */
#define ROW_BYTES 4096                 /* estimate of a row */
#define SERVER    300                  /* bytes of a URL of a server */

struct server_out {
	struct pl_result_out out; /* first */
	bool influx;
	struct pl_export *export;
	uint64_t drop_time, drop_series, drop_failed;
	struct pl_export_words told;
};

/* A URI as read; pointers of the options point into its text. */
struct parsed {
	struct pl_uri uri;
	char server[SERVER];
	struct pl_influx_options influx;
	struct pl_clickhouse_options clickhouse;
	struct pl_sender_options sender; /* of InfluxDB */
};

static bool is_influx(const char *uri)
{
	return strncmp(uri, PL_RESULT_INFLUX, strlen(PL_RESULT_INFLUX)) == 0;
}

static const char *target_of(const char *uri)
{
	return strchr(uri, ':') + 1;
}

/* ---- the URI ---- */

static int read_influx(struct parsed *ret, struct pl_diag *diag)
{
	uint64_t series = 0;
	int r = pl_tap_influx_uri(
		&ret->uri, ret->server, sizeof(ret->server), &ret->influx, &ret->sender, diag);

	if (r == 0)
		r = pl_uri_get_size(&ret->uri, "series", 1, 1 << 24, &series, diag);
	ret->influx.max_keys = (uint32_t)series;
	return r;
}

static int read_uri(struct parsed **ret, const char *uri, struct pl_diag *diag)
{
	static const char *const of_influx[] = { "bucket", "org", "token_file", "series",
		PL_TAP_EXPORT_KEYS, NULL };
	static const char *const of_clickhouse[] = { "database", PL_TAP_EXPORT_KEYS, NULL };
	struct parsed *p = calloc(1, sizeof(*p));
	int r;

	*ret = p;
	if (p == NULL)
		return -ENOMEM;
	p->sender.memory_bytes = p->clickhouse.sender.memory_bytes = MEMORY;
	r = pl_uri_split(&p->uri, target_of(uri), is_influx(uri) ? of_influx : of_clickhouse, diag);
	if (r == 0)
		r = is_influx(uri) ? read_influx(p, diag)
				   : pl_tap_clickhouse_uri(&p->uri, p->server, sizeof(p->server),
					     &p->clickhouse, diag);
	return r;
}

static int check_server(const char *uri, const struct pl_query *query, struct pl_diag *diag)
{
	struct parsed *parsed;
	int r = read_uri(&parsed, uri, diag);

	free(parsed);
	return r == 0 && is_influx(uri) ? pl_influx_rows_check(query, diag) : r;
}

static int server_files(const char *uri, struct pl_confine *confine)
{
	struct parsed *parsed;
	int r = read_uri(&parsed, uri, NULL);

	if (r == 0)
		r = pl_confine_path(confine, pl_uri_get(&parsed->uri, "token_file"), false);
	if (r == 0)
		r = pl_tap_export_files(&parsed->uri, confine);
	free(parsed);
	return r == -EINVAL ? 0 : r; /* opening it reports the error */
}

/* ---- accounts ---- */

static uint64_t dropped(const struct pl_export_stats *s, enum pl_export_drop cause)
{
	return pl_counter_read(&s->dropped[cause]);
}

static void count(struct server_out *self)
{
	const struct pl_export_stats *s = &self->export->stats;
	struct pl_result_stats *to = &self->out.stats;

	to->found = pl_counter_read(&s->recovered);
	to->delivered = pl_counter_read(&s->delivered);
	to->waiting = atomic_load(&s->queued);
	to->held = atomic_load(&s->spooled);
	to->drop_refused = dropped(s, PL_EXPORT_REJECTED);
	to->drop_queue_full = dropped(s, PL_EXPORT_MEMORY);
	to->drop_spool_full = dropped(s, PL_EXPORT_SPOOL_FULL) + dropped(s, PL_EXPORT_NO_SPACE) +
			      dropped(s, PL_EXPORT_IO);
	to->drop_spool_damaged = dropped(s, PL_EXPORT_DAMAGED);
	to->drop_time = self->drop_time;
	to->drop_series = self->drop_series;
	to->drop_failed = self->out.refused + self->drop_failed + dropped(s, PL_EXPORT_FORMAT);
}

/* Logs each new text once. */
static void tell_words(struct server_out *self)
{
	struct pl_export_words words = { .trouble = "" };

	self->export->ops->words(self->export, &words);
	if (words.refusal[0] != '\0' && strcmp(words.refusal, self->told.refusal) != 0)
		pl_say("%s: refused: %s", self->out.name, words.refusal);
	if (words.trouble[0] != '\0' && strcmp(words.trouble, self->told.trouble) != 0)
		pl_say("%s: %s", self->out.name, words.trouble);
	self->told = words;
}

/* ---- the output ---- */

static int open_clickhouse(struct server_out *self, struct parsed *p, const struct pl_query *query,
	struct pl_diag *diag)
{
	struct pl_clickhouse_options *o = &p->clickhouse;
	struct pl_buf columns;
	int r;

	pl_buf_init(&columns);
	pl_clickhouse_rows_columns(query, &columns);
	pl_buf_chr(&columns, '\0');
	o->columns = columns.data;
	o->sender.name = "clickhouse";
	o->sender.in_order = true;
	pl_tap_export_room(&o->sender, ROW_BYTES);
	r = columns.failed ? -ENOMEM
			   : pl_clickhouse_open(&self->export, o, pl_clock_mono_ns(), diag);
	pl_buf_done(&columns);
	return r;
}

static int open_influx(struct server_out *self, struct parsed *p, struct pl_diag *diag)
{
	p->sender.name = "influx";
	p->sender.in_order = true; /* a window's row replaces the row of its first crossing */
	p->sender.spool_kind = "rows";
	pl_tap_export_room(&p->sender, ROW_BYTES);
	return pl_influx_open(&self->export, &p->influx, &p->sender, pl_clock_mono_ns(), diag);
}

static int open_server(struct pl_result_out **ret, const char *uri, const struct pl_query *query,
	uint32_t wait_ms, struct pl_diag *diag)
{
	struct server_out *self = calloc(1, sizeof(*self));
	struct parsed *parsed;
	int r;

	(void)wait_ms;
	if (self == NULL)
		return -ENOMEM;
	self->influx = is_influx(uri);
	r = read_uri(&parsed, uri, diag);
	if (r == 0)
		r = self->influx ? open_influx(self, parsed, diag)
				 : open_clickhouse(self, parsed, query, diag);
	free(parsed);
	if (r < 0) {
		free(self);
		return r;
	}
	count(self);
	*ret = &self->out;
	return 0;
}

static void put_row(struct pl_result_out *out, const struct pl_result_item *item)
{
	struct server_out *self = (struct server_out *)out;
	const uint64_t now_ns = pl_clock_mono_ns();
	const int r = self->influx ? pl_influx_write_row(self->export, item->query, item->name,
					     item->row, now_ns)
				   : pl_clickhouse_write_row(
					     self->export, item->query, item->row, now_ns);

	if (r == -ENOSPC && self->drop_series++ == 0)
		pl_say("%s: more groups than series= allows: their rows are left out", out->name);
	self->drop_time += r == -ERANGE;
	self->drop_failed += r < 0 && r != -ENOSPC && r != -ERANGE;
	count(self);
}

static uint64_t turn_server(struct pl_result_out *out, uint64_t now_ns)
{
	struct server_out *self = (struct server_out *)out;

	pl_export_flush(self->export, now_ns, false);
	count(self);
	tell_words(self);
	return now_ns + TURN_NS;
}

/* A count of rows that have left memory does not suffice: a batch that a server doubts stands
 * behind later ones, and full memory drops later ones than the batch being sent. */
static bool settled(struct pl_result_out *out, bool all)
{
	struct server_out *self = (struct server_out *)out;
	const struct pl_export_stats *s = &self->export->stats;

	if (out->stats.drop_purged > 0 || (all && atomic_load(&s->queued) > 0))
		return false;
	/* Syncs the spool. */
	if (all || atomic_load(&s->spooled) > 0)
		pl_export_flush(self->export, pl_clock_mono_ns(), true);
	return pl_export_settled(self->export);
}

static void mark(struct pl_result_out *out)
{
	struct server_out *self = (struct server_out *)out;

	pl_export_mark(self->export);
}

static bool server_failing(const struct pl_result_out *out, struct pl_diag *ret)
{
	const struct server_out *self = (const struct server_out *)out;
	const int error = atomic_load(&self->export->stats.last_error);

	if (error != 0)
		pl_diag_set(ret, "%s",
			self->told.trouble[0] != '\0' ? self->told.trouble
						      : strerror(error < 0 ? -error : error));
	return error != 0;
}

static void reopen_server(struct pl_result_out *out)
{
	struct server_out *self = (struct server_out *)out;
	struct pl_diag diag = { .text = "" };

	if (pl_export_reopen(self->export, pl_clock_mono_ns(), &diag) < 0)
		pl_say("%s: %s", out->name, diag.text);
}

/* Returns the rows that the server may still take: those on disk only while it works. */
static uint64_t left_of(const struct pl_export_stats *s)
{
	return atomic_load(&s->queued) +
	       (atomic_load(&s->last_error) == 0 ? atomic_load(&s->spooled) : 0);
}

static void finish_server(struct pl_result_out *out, uint32_t wait_ms)
{
	const uint64_t end_ns = pl_clock_mono_ns() + UINT64_C(1000000) * wait_ms;
	const struct timespec look = pl_clock_timespec(LOOK_NS);
	struct server_out *self = (struct server_out *)out;

	for (;;) {
		const uint64_t now_ns = pl_clock_mono_ns();

		pl_export_flush(self->export, now_ns, true);
		if (left_of(&self->export->stats) == 0 || now_ns >= end_ns)
			break;
		nanosleep(&look, NULL);
	}
	pl_export_finish(self->export);
	count(self);
	tell_words(self);
	out->stats.drop_purged = out->stats.waiting;
	out->stats.waiting = 0;
}

static void close_server(struct pl_result_out *out)
{
	struct server_out *self = (struct server_out *)out;

	pl_export_close(self->export);
	free(self);
}

const struct pl_result_driver pl_result_server = {
	.check = check_server,
	.files = server_files,
	.open = open_server,
	.put = put_row,
	.turn = turn_server,
	.settled = settled,
	.mark = mark,
	.reopen = reopen_server,
	.failing = server_failing,
	.finish = finish_server,
	.close = close_server,
};
