/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output to remote telemetry memory, by a translator of Direct Telemetry Access: each record is an
 * entry of a list (export/dta_append.h):
 *
 *   dta://ADDRESS[:PORT][?region=N&list=N&kind=KIND]
 *
 * PORT is 40040 by default; region=N: number of the region, as the translator counts its files (0);
 * list=N: number of the list (0).
 */
#include "export/dta_append.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "tapout/tap_export.h"

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_export_stats, __VA_ARGS__)
#include "tapout/tap_dta_stats.def"
#undef PL_STAT
};
static const struct pl_stats stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static const char *const keys[] = { "region", "list", "kind", NULL };

/* Reads the URI. address: of the translator, in the form of export/dta_to.h. */
static int read_uri(const struct pl_uri *uri, const struct pl_tap_out_settings *settings,
	char *address, size_t cap, struct pl_dta_append_options *ret, enum pl_flat_kind *ret_kind,
	struct pl_diag *diag)
{
	const char *host = strncmp(uri->target, "//", 2) == 0 ? uri->target + 2 : "";
	struct pl_addr addr;
	uint64_t region = 0, list = 0;
	int r;

	/* An address alone gets the default port. */
	if (pl_parse_addr(host, &addr) == 0) {
		const bool bare = !pl_addr_is_v4(&addr) && host[0] != '[';

		snprintf(address, cap, "udp://%s%.64s%s:%u", bare ? "[" : "", host, bare ? "]" : "",
			PL_PORT_DTA);
	} else {
		snprintf(address, cap, "udp://%.70s", host);
	}
	if (pl_dta_to_udp_check(address, NULL) < 0)
		return pl_diag_fail(diag, -EINVAL,
			"a translator is dta://ADDRESS:PORT, such as dta://10.0.0.9:%u?list=1",
			PL_PORT_DTA);
	r = pl_uri_get_size(uri, "region", 0, UINT16_MAX, &region, diag);
	if (r == 0)
		r = pl_uri_get_size(uri, "list", 0, UINT32_MAX, &list, diag);
	if (r < 0)
		return r;
	*ret = (struct pl_dta_append_options){ .store = (uint16_t)region, .list = (uint32_t)list };
	return pl_tap_out_kind(pl_uri_get(uri, "kind"), settings, ret_kind, diag);
}

static int dta_check(
	const struct pl_uri *uri, const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_dta_append_options o;
	enum pl_flat_kind kind;
	char address[96];

	return read_uri(uri, settings, address, sizeof(address), &o, &kind, diag);
}

static int dta_open(struct pl_tap_out *out, const struct pl_uri *uri,
	const struct pl_tap_out_settings *settings, struct pl_diag *diag)
{
	struct pl_tap_export *self = pl_tap_export_begin(out, settings);
	struct pl_dta_append_options o;
	struct pl_dta_to *to;
	char address[96];
	int r = read_uri(uri, settings, address, sizeof(address), &o, &self->kind, diag);

	if (r == 0)
		r = pl_dta_to_udp(&to, address, PL_DTA_TO_RING_DEFAULT, true, diag);
	return r == 0 ? pl_dta_append_open(&self->export, &o, to) : r;
}

const struct pl_tap_out_driver pl_tap_out_dta = {
	.scheme = "dta",
	.size = sizeof(struct pl_tap_export),
	.keys = keys,
	.check = dta_check,
	.open = dta_open,
	.put = pl_tap_export_put,
	.turn = pl_tap_export_turn,
	.finish = pl_tap_export_finish,
	.lost = pl_tap_export_lost,
	.conditions = pl_tap_export_conditions,
	.numbers = { { &stats_list, pl_tap_export_counters } },
	.close = pl_tap_export_close,
};
