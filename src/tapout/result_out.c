/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the output for rows of a query by its URI; has the output to files. */
#include "tapout/result_out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/line_file.h"
#include "export/clickhouse_rows.h"
#include "kafka/uri.h"
#include "runtime/say.h"

#define WRITE_NS UINT64_C(200000000)

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_result_stats, __VA_ARGS__)
#include "tapout/result_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_result_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

uint64_t pl_result_lost(const struct pl_result_stats *stats)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < pl_result_stats_list.n; i++) {
		const struct pl_stat *row = &pl_result_stats_list.rows[i];

		if (strncmp(row->name, "drop_", 5) == 0)
			sum += pl_stat_read(row, stats);
	}
	return sum;
}

/* ---- a file ---- */

struct file_out {
	struct pl_result_out out; /* first */
	struct pl_line_file file;
	uint64_t due_ns;
};

static int check_file(const char *uri, const struct pl_query *query, struct pl_diag *diag)
{
	(void)uri;
	(void)query;
	(void)diag;
	return 0;
}

static int file_files(const char *uri, struct pl_confine *confine)
{
	return pl_confine_path(confine, uri + strlen(PL_RESULT_FILE), true);
}

static int open_file(struct pl_result_out **ret, const char *uri, const struct pl_query *query,
	uint32_t wait_ms, struct pl_diag *diag)
{
	struct file_out *self = calloc(1, sizeof(*self));
	int r;

	(void)query;
	(void)wait_ms;
	if (self == NULL)
		return -ENOMEM;
	r = pl_line_file_make(&self->file, uri + strlen(PL_RESULT_FILE));
	if (r == 0)
		r = pl_line_file_open(&self->file, diag);
	if (r < 0) {
		pl_line_file_close(&self->file);
		free(self);
		return r;
	}
	*ret = &self->out;
	return 0;
}

static void write_file(struct file_out *self)
{
	struct pl_result_stats *stats = &self->out.stats;
	const bool failing = self->file.failing;
	uint64_t lines;
	const int r = pl_line_file_write(&self->file, &lines);

	stats->waiting -= lines;
	if (r == 0)
		stats->delivered += lines;
	else
		stats->drop_file += lines;
	if (r < 0 && !failing)
		pl_say("%s: %s", self->out.name, strerror(-r));
}

static void put_line(struct pl_result_out *out, const struct pl_result_item *item)
{
	struct file_out *self = (struct file_out *)out;

	out->stats.waiting++;
	if (pl_line_file_add(&self->file, item->line, item->len))
		write_file(self);
}

static uint64_t turn_file(struct pl_result_out *out, uint64_t now_ns)
{
	struct file_out *self = (struct file_out *)out;

	if (now_ns >= self->due_ns) {
		write_file(self);
		self->due_ns = now_ns + WRITE_NS;
	}
	return out->stats.waiting > 0 ? self->due_ns : UINT64_MAX;
}

static bool settle_file(struct pl_result_out *out, bool all)
{
	(void)all;
	write_file((struct file_out *)out);
	return true;
}

static void mark_file(struct pl_result_out *out)
{
	(void)out;
}

static void finish_file(struct pl_result_out *out, uint32_t wait_ms)
{
	(void)wait_ms;
	write_file((struct file_out *)out);
}

static void close_file(struct pl_result_out *out)
{
	struct file_out *self = (struct file_out *)out;

	pl_line_file_close(&self->file);
	free(self);
}

static const struct pl_result_driver to_file = {
	.check = check_file,
	.files = file_files,
	.open = open_file,
	.put = put_line,
	.turn = turn_file,
	.settled = settle_file,
	.mark = mark_file,
	.finish = finish_file,
	.close = close_file,
};

/* ---- which ---- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

const struct pl_result_driver *pl_result_out_driver(const char *uri)
{
	return begins(uri, PL_KAFKA_SCHEME)        ? &pl_result_topic
	       : begins(uri, PL_RESULT_INFLUX)     ? &pl_result_server
	       : begins(uri, PL_RESULT_CLICKHOUSE) ? &pl_result_server
	       : begins(uri, PL_RESULT_FILE) && uri[strlen(PL_RESULT_FILE)] != '\0' ? &to_file
										    : NULL;
}

int pl_result_out_check(const char *uri, const struct pl_query *query, struct pl_diag *diag)
{
	const struct pl_result_driver *driver = pl_result_out_driver(uri);

	if (driver != NULL)
		return driver->check(uri, query, diag);
	return pl_diag_fail(diag, -EINVAL,
		"\"%s\": rows go to file:PATH, kafka://HOST/TOPIC, influx://HOST/DATABASE or clickhouse://HOST/TABLE",
		uri);
}

int pl_result_out_files(const char *uri, struct pl_confine *confine)
{
	return pl_result_out_driver(uri)->files(uri, confine);
}

bool pl_result_out_fits(const char *uri, const struct pl_query *query, const struct pl_query *other)
{
	struct pl_buf one, two;
	bool same;

	if (!begins(uri, PL_RESULT_CLICKHOUSE))
		return true;
	pl_buf_init(&one);
	pl_buf_init(&two);
	pl_clickhouse_rows_columns(query, &one);
	pl_clickhouse_rows_columns(other, &two);
	same = !one.failed && !two.failed && one.len == two.len &&
	       memcmp(one.data, two.data, one.len) == 0;
	pl_buf_done(&one);
	pl_buf_done(&two);
	return same;
}

int pl_result_out_open(struct pl_result_out **ret, const char *uri, const struct pl_query *query,
	uint32_t wait_ms, struct pl_diag *diag)
{
	const struct pl_result_driver *driver = pl_result_out_driver(uri);
	char *name = strndup(uri, strcspn(uri, "?"));
	int r = pl_result_out_check(uri, query, diag);

	if (r == 0 && name == NULL)
		r = -ENOMEM;
	if (r == 0)
		r = driver->open(ret, uri, query, wait_ms, diag);
	if (r == -ENOMEM)
		pl_diag_set(diag, "%s", strerror(ENOMEM));
	if (r < 0) {
		free(name);
		return r;
	}
	(*ret)->driver = driver;
	(*ret)->name = name;
	return 0;
}

void pl_result_out_put(struct pl_result_out *out, const struct pl_result_item *item)
{
	out->stats.rows++;
	out->driver->put(out, item);
}

void pl_result_out_refuse(struct pl_result_out *out)
{
	out->stats.rows++;
	out->refused++;
	out->stats.drop_failed++;
}

uint64_t pl_result_out_turn(struct pl_result_out *out, uint64_t now_ns)
{
	return out->driver->turn(out, now_ns);
}

bool pl_result_out_settled(struct pl_result_out *out, bool all)
{
	return out->driver->settled(out, all);
}

void pl_result_out_mark(struct pl_result_out *out)
{
	out->driver->mark(out);
}

bool pl_result_out_failing(const struct pl_result_out *out, struct pl_diag *ret)
{
	return out->driver->failing != NULL && out->driver->failing(out, ret);
}

void pl_result_out_reopen(struct pl_result_out *out)
{
	if (out->driver->reopen != NULL)
		out->driver->reopen(out);
}

void pl_result_out_finish(struct pl_result_out *out, uint32_t wait_ms)
{
	out->driver->finish(out, wait_ms);
}

void pl_result_out_close(struct pl_result_out *out)
{
	char *name;

	if (out == NULL)
		return;
	name = out->name;
	out->driver->close(out);
	free(name);
}
