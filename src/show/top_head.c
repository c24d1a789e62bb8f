/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the two lines of "pathline top" about the whole daemon, and the counts of a table. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "show/top.h"
#include "web/client.h"

/* Appends a line of fixed words and a daemon's numbers, cut to the screen. */
static void add_line(struct pl_buf *out, char *text, unsigned int cols)
{
	pl_top_cut(text, cols);
	pl_buf_str(out, text);
}

void pl_top_head(struct pl_buf *out, const json_t *status, const char *url, unsigned int cols)
{
	const bool well = json_array_size(json_object_get(status, "conditions")) == 0 &&
			  pl_json_member_bool(status, "ready");
	char line[512], uptime[32], clock[16] = "", where[200];
	const json_t *history = json_object_get(status, "history");
	const char *t = strchr(pl_json_member_text(status, "time"), 'T');

	if (t != NULL)
		pl_client_text(clock, 9, t + 1);
	if (history != NULL) {
		pl_format_duration(uptime, sizeof(uptime),
			pl_json_member_u64(history, "seconds") * 1000000000u);
		snprintf(line, sizeof(line), "pathline top  %s  history of %s up to %.10s %s UTC",
			pl_client_text(where, sizeof(where), url), uptime,
			pl_json_member_text(status, "time"), clock);
		add_line(out, line, cols);
		return;
	}
	pl_format_duration(
		uptime, sizeof(uptime), pl_json_member_u64(status, "uptime_s") * 1000000000u);
	snprintf(line, sizeof(line), "pathline top  %s  up %s  %s UTC  %s",
		pl_client_text(where, sizeof(where), url), uptime, clock,
		well ? "all is well" : "NOT WELL: see pathline status");
	add_line(out, line, cols);
}

static double per_second(const json_t *status, const json_t *before, const char *object,
	const char *key, double seconds)
{
	uint64_t is = pl_json_member_u64(json_object_get(status, object), key);
	uint64_t was = pl_json_member_u64(json_object_get(before, object), key);

	return is >= was && seconds > 0 ? (double)(is - was) / seconds : 0;
}

static uint64_t sum_over(const json_t *list, const char *key)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		sum += pl_json_member_u64(json_array_get(list, i), key);
	return sum;
}

void pl_top_sums(struct pl_buf *out, const json_t *status, const json_t *before, unsigned int cols)
{
	uint64_t now = strtoull(pl_json_member_text(status, "time_ns"), NULL, 10);
	uint64_t then =
		before != NULL ? strtoull(pl_json_member_text(before, "time_ns"), NULL, 10) : now;
	double seconds = now > then ? (double)(now - then) * 1e-9 : 0;
	const json_t *reports = json_object_get(status, "reports");
	const json_t *packets = json_object_get(status, "packets");
	const json_t *history = json_object_get(status, "history");
	char line[512], rate[24];

	if (history != NULL) {
		snprintf(line, sizeof(line),
			"reports %" PRIu64 "  events %" PRIu64
			"  overwritten before they were read %" PRIu64,
			pl_json_member_u64(history, "reports"),
			pl_json_member_u64(history, "events"),
			pl_json_member_u64(history, "overwritten"));
		add_line(out, line, cols);
		return;
	}
	pl_format_count(
		rate, sizeof(rate), per_second(status, before, "reports", "stored", seconds));
	snprintf(line, sizeof(line),
		"reports %" PRIu64 " (%s/s)  missing %" PRIu64 "  refused %" PRIu64
		"  kernel drops %" PRIu64 "  raised %" PRIu64,
		pl_json_member_u64(reports, "stored"), seconds > 0 ? rate : "-",
		pl_json_member_u64(reports, "lost"),
		pl_json_member_u64(packets, "received") - pl_json_member_u64(packets, "decoded"),
		sum_over(json_object_get(status, "sources"), "kernel_drops"),
		pl_json_member_u64(status, "levels_raised"));
	add_line(out, line, cols);
}

void pl_top_counts(struct pl_buf *out, const struct pl_top_screen *screen, const json_t *table)
{
	const uint64_t beyond = pl_json_member_u64(table, "overflow");

	pl_buf_printf(out, "%" PRIu64 " of %" PRIu64, pl_json_member_u64(table, "matched"),
		pl_json_member_u64(table, "total"));
	if (beyond > 0 && screen->beyond != NULL)
		pl_buf_printf(out, ", and %" PRIu64 " %s", beyond, screen->beyond);
}
