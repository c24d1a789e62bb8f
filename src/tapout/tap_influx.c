/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output to a database of InfluxDB, or of another server that takes its lines (export/influx.h):
 *
 *   influx://HOST[:PORT]/DATABASE[?KEY=VALUE&…]            its version 1
 *   influx://HOST[:PORT]/?bucket=NAME[&org=NAME&KEY=VALUE&…]      its version 2
 *
 * kind=KIND, community_id=yes (a field of packets and flows), user=NAME, password_file=FILE, token_file=FILE, tls=yes, ca=FILE; batch=LINES of a
 * request, memory=SIZE of batches that wait, spool=FOLDER and spool_bytes=SIZE for batches that do
 * not fit while the server is away.
 */
#include "export/influx.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tapout/tap_export.h"

#define BATCH         5000
#define LINE_BYTES    1024 /* estimate of a record */

#define PL_TAP_EXPORT "influx"
#define PL_TAP_EXPORT_SERVER
static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_export_stats, __VA_ARGS__)
#include "tapout/tap_export_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static const char *const keys[] = { "kind", "community_id", "bucket", "org", "token_file",
	PL_TAP_EXPORT_KEYS, NULL };

int pl_tap_influx_uri(const struct pl_uri *uri, char *server, size_t cap,
	struct pl_influx_options *ret, struct pl_sender_options *sender, struct pl_diag *diag)
{
	static const char *const ports[2] = { ":8086", ":8086" };
	static const char form[] =
		"a database of InfluxDB is influx://HOST:PORT/DATABASE, a bucket "
		"influx://HOST:PORT/?bucket=NAME";
	int r = pl_tap_export_target(uri, ports, form, server, cap, &ret->database, diag);

	ret->bucket = pl_uri_get(uri, "bucket");
	ret->org = pl_uri_get(uri, "org");
	ret->v2 = ret->bucket != NULL;
	ret->url = server;
	sender->token_file = pl_uri_get(uri, "token_file");
	if (r == 0 && (ret->database[0] != '\0') == ret->v2)
		return pl_diag_fail(diag, -EINVAL, "%s", form);
	if (r == 0 && ret->org != NULL && !ret->v2)
		return pl_diag_fail(diag, -EINVAL, "influx: org= needs bucket=");
	if (r == 0 && sender->token_file != NULL && pl_uri_get(uri, "user") != NULL)
		return pl_diag_fail(diag, -EINVAL, "influx: token_file= or user=, not both");
	return r == 0 ? pl_tap_export_keys(uri, "influx", BATCH, sender, diag) : r;
}

/* Reads the URI. server: room for the server's URL. */
static int read_uri(const struct pl_uri *uri, const struct pl_tap_out_settings *settings,
	char *server, size_t cap, struct pl_influx_options *ret, struct pl_sender_options *sender,
	enum pl_flat_kind *ret_kind, struct pl_diag *diag)
{
	int r = pl_tap_influx_uri(uri, server, cap, ret, sender, diag);

	if (r == 0)
		r = pl_tap_out_community_id(
			pl_uri_get(uri, "community_id"), settings, &ret->community_id, diag);
	return r == 0 ? pl_tap_out_kind(pl_uri_get(uri, "kind"), settings, ret_kind, diag) : r;
}

static int influx_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_influx_options o = { .url = NULL };
	struct pl_sender_options sender = { .name = NULL };
	enum pl_flat_kind kind;
	char server[300];

	return read_uri(uri, settings, server, sizeof(server), &o, &sender, &kind, diag);
}

static int influx_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_tap_export *self = pl_tap_export_begin(out, settings);
	struct pl_influx_options o = { .url = NULL };
	struct pl_sender_options sender = { .name = "influx" };
	char server[300];
	int r = read_uri(uri, settings, server, sizeof(server), &o, &sender, &self->kind, diag);

	if (r < 0)
		return r;
	pl_tap_export_room(&sender, LINE_BYTES);
	return pl_influx_open(&self->export, &o, &sender, self->now_ns, diag);
}

static int influx_files(const struct pl_uri *uri, struct pl_confine *confine)
{
	int r = pl_confine_path(confine, pl_uri_get(uri, "token_file"), false);

	return r == 0 ? pl_tap_export_files(uri, confine) : r;
}

const struct pl_tap_out_driver pl_tap_out_influx = {
	.scheme = "influx",
	.size = sizeof(struct pl_tap_export),
	.keys = keys,
	.files = influx_files,
	.check = influx_check,
	.open = influx_open,
	.put = pl_tap_export_put,
	.turn = pl_tap_export_turn,
	.finish = pl_tap_export_finish,
	.lost = pl_tap_export_lost,
	.conditions = pl_tap_export_conditions,
	.numbers = { { &stats_list, pl_tap_export_counters } },
	.close = pl_tap_export_close,
};
