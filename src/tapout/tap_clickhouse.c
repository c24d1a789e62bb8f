/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output into a table of ClickHouse (export/clickhouse.h):
 *
 *   clickhouse://HOST[:PORT]/TABLE[?KEY=VALUE&…]
 *
 * kind=pkt64|pkt96|flow128|flow256, database=NAME, user=NAME, password_file=FILE, tls=yes, ca=FILE; batch=ROWS of
 * an INSERT, memory=SIZE of batches that wait, spool=FOLDER and spool_bytes=SIZE for those that do
 * not fit while the server is away.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "export/clickhouse.h"
#include "netio/uri.h"
#include "runtime/say.h"
#include "tapout/tap_out.h"

#define BATCH_DEFAULT   65536
#define BATCH_MAX       1000000
#define BATCH_BYTES_MIN (UINT64_C(1) << 20)
#define MEMORY_DEFAULT  (UINT64_C(64) << 20)
#define TURN_NS         UINT64_C(100000000)
#define CLOSE_WAIT_NS   UINT64_C(5000000000) /* for one more to be taken, at the end */
#define LOOK_NS         10000000             /* then again */

struct clickhouse_stats {
#define PL_STAT PL_STAT_MEMBER
#include "tapout/tap_clickhouse_stats.def"
#undef PL_STAT
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct clickhouse_stats, __VA_ARGS__)
#include "tapout/tap_clickhouse_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

struct clickhouse_out {
	struct pl_tap_out out; /* first */
	struct pl_export *export;
	uint32_t given; /* bytes of a record that is put */
	uint64_t now_ns;
	struct clickhouse_stats stats;
	struct pl_export_words told;
};

static const char *const keys[] = { "kind", "database", "user", "password_file", "tls", "ca",
	"batch", "memory", "spool", "spool_bytes", NULL };

static void take_stats(struct clickhouse_out *self)
{
	const struct pl_export_stats *s = &self->export->stats;
	struct clickhouse_stats *to = &self->stats;

	to->records = pl_counter_read(&s->accepted);
	to->recovered = pl_counter_read(&s->recovered);
	to->delivered = pl_counter_read(&s->delivered);
	to->waiting = atomic_load(&s->queued);
	to->spooled = atomic_load(&s->spooled);
	to->drop_refused = pl_counter_read(&s->dropped[PL_EXPORT_REJECTED]) +
			   pl_counter_read(&s->dropped[PL_EXPORT_FORMAT]);
	to->drop_memory = pl_counter_read(&s->dropped[PL_EXPORT_MEMORY]);
	to->drop_spool_full = pl_counter_read(&s->dropped[PL_EXPORT_SPOOL_FULL]);
	to->drop_disk = pl_counter_read(&s->dropped[PL_EXPORT_NO_SPACE]) +
			pl_counter_read(&s->dropped[PL_EXPORT_IO]) +
			pl_counter_read(&s->dropped[PL_EXPORT_DAMAGED]);
	to->requests = pl_counter_read(&s->requests);
	to->errors = pl_counter_read(&s->errors);
	to->bytes = pl_counter_read(&s->bytes);
}

/* ---- opening ---- */

/* "//HOST:PORT/TABLE" into the server's URL and the table. */
static int split_target(const struct pl_uri *uri, bool tls, char *server, size_t cap,
	const char **ret_table, struct pl_diag *diag)
{
	const char *host = uri->target + 2;
	const char *slash = strncmp(uri->target, "//", 2) == 0 ? strchr(host, '/') : NULL;
	const char *colon;
	int n;

	if (slash == NULL || slash == host || slash[1] == '\0' || strchr(slash + 1, '/') != NULL) {
		pl_diag_set(diag, "a table of ClickHouse is clickhouse://HOST:PORT/TABLE");
		return -EINVAL;
	}
	colon = memrchr(host, ':', (size_t)(slash - host));
	/* The colons of "[::1]" are none before a port. */
	if (colon != NULL && memchr(colon, ']', (size_t)(slash - colon)) != NULL)
		colon = NULL;
	n = snprintf(server, cap, "%s://%.*s%s", tls ? "https" : "http", (int)(slash - host), host,
		colon != NULL ? ""
		: tls         ? ":8443"
			      : ":8123");
	if (n < 0 || (size_t)n >= cap) {
		pl_diag_set(diag, "clickhouse: the name of the host is too long");
		return -EINVAL;
	}
	*ret_table = slash + 1;
	return 0;
}

static int read_keys(const struct pl_uri *uri, struct pl_sender_options *o, struct pl_diag *diag)
{
	uint64_t batch = BATCH_DEFAULT;
	int r;

	o->user = pl_uri_get(uri, "user");
	o->password_file = pl_uri_get(uri, "password_file");
	o->ca_file = pl_uri_get(uri, "ca");
	o->spool_path = pl_uri_get(uri, "spool");
	o->memory_bytes = MEMORY_DEFAULT;
	if (o->password_file != NULL && o->user == NULL) {
		pl_diag_set(diag, "clickhouse: password_file= needs user=");
		return -EINVAL;
	}
	if (o->spool_path == NULL && pl_uri_get(uri, "spool_bytes") != NULL) {
		pl_diag_set(diag, "clickhouse: spool_bytes= needs spool=");
		return -EINVAL;
	}
	r = pl_uri_get_size(uri, "batch", 1, BATCH_MAX, &batch, diag);
	if (r == 0)
		r = pl_uri_get_size(
			uri, "memory", 1 << 20, UINT64_C(1) << 36, &o->memory_bytes, diag);
	if (r == 0)
		r = pl_uri_get_size(
			uri, "spool_bytes", 16 << 20, UINT64_C(1) << 44, &o->spool_bytes, diag);
	o->batch_entries = (uint32_t)batch;
	return r;
}

static int clickhouse_check(
	const char *target, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_sender_options o = { .name = NULL };
	enum pl_flat_kind kind;
	const char *table;
	char server[300];
	struct pl_uri uri;
	bool tls = false;
	int r = pl_uri_split(&uri, target, keys, diag);

	if (r == 0)
		r = pl_uri_get_bool(&uri, "tls", &tls, diag);
	if (r == 0)
		r = split_target(&uri, tls, server, sizeof(server), &table, diag);
	if (r == 0)
		r = pl_tap_out_kind(pl_uri_get(&uri, "kind"), settings, &kind, diag);
	return r == 0 ? read_keys(&uri, &o, diag) : r;
}

static int open_export(struct clickhouse_out *self, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_clickhouse_options o = { .sender = { .name = "clickhouse", .in_order = true } };
	char server[300];
	bool tls = false;
	int r = pl_uri_get_bool(uri, "tls", &tls, diag);

	if (r == 0)
		r = split_target(uri, tls, server, sizeof(server), &o.table, diag);
	if (r == 0)
		r = pl_tap_out_kind(pl_uri_get(uri, "kind"), settings, &o.kind, diag);
	if (r == 0)
		r = read_keys(uri, &o.sender, diag);
	if (r < 0)
		return r;
	o.server = server;
	o.database = pl_uri_get(uri, "database");
	/* Room for the batch; small ones leave some of it empty, so that there are not too many. */
	o.sender.batch_bytes = (uint64_t)o.sender.batch_entries * pl_flat(o.kind)->size;
	if (o.sender.batch_bytes < BATCH_BYTES_MIN)
		o.sender.batch_bytes = BATCH_BYTES_MIN;
	if (o.sender.batch_bytes > o.sender.memory_bytes / 4)
		o.sender.batch_bytes = o.sender.memory_bytes / 4;
	self->now_ns = pl_clock_mono_ns();
	r = pl_clickhouse_open(&self->export, &o, self->now_ns, diag);
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	return r;
}

static int clickhouse_open(struct pl_tap_out **ret, const char *target,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct clickhouse_out *self = calloc(1, sizeof(*self));
	struct pl_uri uri;
	int r;

	if (self == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	r = pl_uri_split(&uri, target, keys, diag);
	if (r == 0)
		r = open_export(self, &uri, settings, diag);
	if (r < 0) {
		free(self);
		return r;
	}
	self->given = pl_flat(settings->kind)->size;
	*ret = &self->out;
	return 0;
}

static int clickhouse_files(const char *target, struct pl_confine *confine)
{
	struct pl_uri uri;
	int r;

	if (pl_uri_split(&uri, target, keys, NULL) < 0)
		return 0;
	r = pl_confine_path(confine, pl_uri_get(&uri, "spool"), true);
	if (r == 0)
		r = pl_confine_path(confine, pl_uri_get(&uri, "password_file"), false);
	return r == 0 ? pl_confine_path(confine, pl_uri_get(&uri, "ca"), false) : r;
}

/* ---- running ---- */

static void clickhouse_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct clickhouse_out *self = (struct clickhouse_out *)out;

	pl_clickhouse_write(self->export, records, n, self->given, self->now_ns);
}

/* Once each. */
static void tell_words(struct clickhouse_out *self)
{
	struct pl_export_words words = { .trouble = "" };

	self->export->ops->words(self->export, &words);
	if (words.refusal[0] != '\0' && strcmp(words.refusal, self->told.refusal) != 0)
		pl_say("%s: refused: %s", self->out.name, words.refusal);
	if (words.trouble[0] != '\0' && strcmp(words.trouble, self->told.trouble) != 0)
		pl_say("%s: %s", self->out.name, words.trouble);
	self->told = words;
}

static uint64_t clickhouse_turn(struct pl_tap_out *out, uint64_t now_ns)
{
	struct clickhouse_out *self = (struct clickhouse_out *)out;

	self->now_ns = now_ns;
	self->export->ops->flush(self->export, now_ns, false);
	take_stats(self);
	tell_words(self);
	return self->stats.waiting + self->stats.spooled > 0 ? now_ns + TURN_NS : UINT64_MAX;
}

/* Waits while the server takes some; the rest goes into the spool, or is counted. */
static void clickhouse_finish(struct pl_tap_out *out)
{
	struct clickhouse_out *self = (struct clickhouse_out *)out;
	struct pl_export_stats *stats = &self->export->stats;
	const struct timespec look = pl_clock_timespec(LOOK_NS);
	uint64_t left = UINT64_MAX, end_ns = 0;

	for (;;) {
		const uint64_t now_ns = pl_clock_mono_ns();

		self->export->ops->flush(self->export, now_ns, true);
		if (atomic_load(&stats->queued) < left) {
			left = atomic_load(&stats->queued);
			end_ns = now_ns + CLOSE_WAIT_NS;
		}
		if (left == 0 || now_ns >= end_ns)
			break;
		nanosleep(&look, NULL);
	}
	self->export->ops->finish(self->export);
	take_stats(self);
	tell_words(self);
	self->stats.drop_closed = self->stats.waiting;
	self->stats.waiting = 0;
}

static uint64_t clickhouse_lost(const struct pl_tap_out *out)
{
	const struct clickhouse_stats *s = &((const struct clickhouse_out *)out)->stats;

	return s->drop_refused + s->drop_memory + s->drop_spool_full + s->drop_disk +
	       s->drop_closed;
}

static void clickhouse_conditions(
	const struct pl_tap_out *out, const char *tap, struct pl_conditions *ret)
{
	const struct clickhouse_out *self = (const struct clickhouse_out *)out;
	const int error = atomic_load(&self->export->stats.last_error);

	if (error != 0)
		pl_condition_add(ret, PL_CONDITION_FAULT, "output_failing", "tap %s: %s: %s", tap,
			self->out.name,
			self->told.trouble[0] != '\0' ? self->told.trouble
						      : strerror(error < 0 ? -error : error));
}

static const void *clickhouse_counters(const struct pl_tap_out *out)
{
	return &((const struct clickhouse_out *)out)->stats;
}

static void clickhouse_close(struct pl_tap_out *out)
{
	struct clickhouse_out *self = (struct clickhouse_out *)out;

	self->export->ops->close(self->export);
	free(self);
}

const struct pl_tap_out_driver pl_tap_out_clickhouse = {
	.scheme = "clickhouse",
	.files = clickhouse_files,
	.check = clickhouse_check,
	.open = clickhouse_open,
	.put = clickhouse_put,
	.turn = clickhouse_turn,
	.finish = clickhouse_finish,
	.lost = clickhouse_lost,
	.conditions = clickhouse_conditions,
	.numbers = { { &stats_list, clickhouse_counters } },
	.close = clickhouse_close,
};
