/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output to a table of ClickHouse (export/clickhouse.h):
 *
 *   clickhouse://HOST[:PORT]/TABLE[?KEY=VALUE&…]
 *
 * kind=KIND, database=NAME, user=NAME, password_file=FILE, tls=yes, ca=FILE; batch=ROWS of an
 * INSERT, memory=SIZE of batches that wait, spool=FOLDER and spool_bytes=SIZE for batches that do
 * not fit while the server is away.
 */
#include "export/clickhouse.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tapout/tap_export.h"

#define BATCH         65536

#define PL_TAP_EXPORT "clickhouse"
#define PL_TAP_EXPORT_SERVER
static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_export_stats, __VA_ARGS__)
#include "tapout/tap_export_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static const char *const keys[] = { "kind", "database", PL_TAP_EXPORT_KEYS, NULL };

int pl_tap_clickhouse_uri(const struct pl_uri *uri, char *server, size_t cap,
	struct pl_clickhouse_options *ret, struct pl_diag *diag)
{
	static const char *const ports[2] = { ":8123", ":8443" };
	static const char form[] = "a table of ClickHouse is clickhouse://HOST:PORT/TABLE";
	int r = pl_tap_export_target(uri, ports, form, server, cap, &ret->table, diag);

	if (r == 0 && ret->table[0] == '\0')
		r = pl_diag_fail(diag, -EINVAL, "%s", form);
	if (r == 0)
		r = pl_tap_export_keys(uri, "clickhouse", BATCH, &ret->sender, diag);
	ret->server = server;
	ret->database = pl_uri_get(uri, "database");
	return r;
}

/* Reads the URI. server: room for the server's URL. */
static int read_uri(const struct pl_uri *uri, const struct pl_tap_out_settings *settings,
	char *server, size_t cap, struct pl_clickhouse_options *ret, struct pl_diag *diag)
{
	const int r = pl_tap_clickhouse_uri(uri, server, cap, ret, diag);

	return r == 0 ? pl_tap_out_kind(pl_uri_get(uri, "kind"), settings, &ret->kind, diag) : r;
}

static int clickhouse_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_clickhouse_options o = { .sender = { .name = NULL } };
	char server[300];

	return read_uri(uri, settings, server, sizeof(server), &o, diag);
}

static int clickhouse_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_tap_export *self = pl_tap_export_begin(out, settings);
	struct pl_clickhouse_options o = { .sender = { .name = "clickhouse", .in_order = true } };
	char server[300];
	int r = read_uri(uri, settings, server, sizeof(server), &o, diag);

	if (r < 0)
		return r;
	self->kind = o.kind;
	pl_tap_export_room(&o.sender, pl_flat(o.kind)->size);
	return pl_clickhouse_open(&self->export, &o, self->now_ns, diag);
}

/* Records are written as they are: they are rows of RowBinary. */
static void clickhouse_put(struct pl_tap_out *out, const void *records, uint32_t n)
{
	struct pl_tap_export *self = (struct pl_tap_export *)out;

	pl_clickhouse_write(self->export, records, n, self->given, self->now_ns);
}

const struct pl_tap_out_driver pl_tap_out_clickhouse = {
	.scheme = "clickhouse",
	.size = sizeof(struct pl_tap_export),
	.keys = keys,
	.files = pl_tap_export_files,
	.check = clickhouse_check,
	.open = clickhouse_open,
	.put = clickhouse_put,
	.turn = pl_tap_export_turn,
	.finish = pl_tap_export_finish,
	.lost = pl_tap_export_lost,
	.conditions = pl_tap_export_conditions,
	.numbers = { { &stats_list, pl_tap_export_counters } },
	.close = pl_tap_export_close,
};
