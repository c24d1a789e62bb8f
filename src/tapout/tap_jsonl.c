/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output to a file of JSON lines, an object for each record (export/jsonl.h):
 *
 *   jsonl:PATH[?max_bytes=SIZE&keep=N&community_id=yes]
 *
 * max_bytes=SIZE: a file that would be larger becomes PATH.1, PATH.1 becomes PATH.2, and so on;
 * keep=N: number of such files (5); community_id=yes: objects of packets and flows have the Community
 * ID.
 */
#include "export/jsonl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tapout/tap_export.h"

#define KEEP_MAX      1000

#define PL_TAP_EXPORT "jsonl"
static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_export_stats, __VA_ARGS__)
#include "tapout/tap_export_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static const char *const keys[] = { "max_bytes", "keep", "community_id", NULL };

static int read_uri(const struct pl_uri *uri, const struct pl_tap_out_settings *settings,
	struct pl_jsonl_options *ret, struct pl_diag *diag)
{
	uint64_t keep = 0;
	int r = pl_uri_get_size(
		uri, "max_bytes", 1 << 16, UINT64_C(1) << 44, &ret->max_bytes, diag);

	if (r == 0)
		r = pl_uri_get_size(uri, "keep", 1, KEEP_MAX, &keep, diag);
	if (r == 0 && keep != 0 && ret->max_bytes == 0)
		return pl_diag_fail(diag, -EINVAL, "jsonl: keep= needs max_bytes=");
	if (r == 0)
		r = pl_tap_out_community_id(
			pl_uri_get(uri, "community_id"), settings, &ret->community_id, diag);
	ret->path = uri->target;
	ret->keep = (unsigned int)keep;
	return r;
}

static int jsonl_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_jsonl_options o = { .path = NULL };

	return read_uri(uri, settings, &o, diag);
}

static int jsonl_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_tap_export *self = pl_tap_export_begin(out, settings);
	struct pl_jsonl_options o = { .path = NULL };
	int r = read_uri(uri, settings, &o, diag);

	self->kind = settings->kind;
	return r == 0 ? pl_jsonl_open(&self->export, &o, self->now_ns, diag) : r;
}

static int jsonl_files(const struct pl_uri *uri, struct pl_confine *confine)
{
	return pl_confine_path(confine, uri->target, true);
}

const struct pl_tap_out_driver pl_tap_out_jsonl = {
	.scheme = "jsonl",
	.size = sizeof(struct pl_tap_export),
	.keys = keys,
	.files = jsonl_files,
	.check = jsonl_check,
	.open = jsonl_open,
	.put = pl_tap_export_put,
	.turn = pl_tap_export_turn,
	.finish = pl_tap_export_finish,
	.lost = pl_tap_export_lost,
	.conditions = pl_tap_export_conditions,
	.numbers = { { &stats_list, pl_tap_export_counters } },
	.close = pl_tap_export_close,
};
