/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes rows of a query as JSON objects to the output that --into or INTO names. */
#include "ask/query_into.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "query/result_json.h"
#include "runtime/account.h"
#include "show/stdout.h"

#define BROKER_WAIT_MS 10000 /* longest wait for the topic, before the first record is read */
#define CLOSE_WAIT_MS  10000 /* longest wait for acknowledgements of the last rows */

static bool is_stdout(const char *uri)
{
	return strcmp(uri, "-") == 0;
}

int pl_query_into_choose(const char **ret, const char *option, const struct pl_query *query)
{
	const char *of_text = pl_query_into(query);

	*ret = option != NULL ? option : of_text;
	if (option == NULL || of_text == NULL)
		return 0;
	return pl_fail(PL_EXIT_USAGE,
		"query: --into %s, and INTO in the question: rows go to one of them", option);
}

int pl_query_into_init(struct pl_query_into *into, const struct pl_query *query, const char *uri,
	const char *name, uint64_t limit)
{
	struct pl_diag diag = { .text = "" };

	*into = (struct pl_query_into){
		.query = query, .uri = uri, .name = name[0] != '\0' ? name : "query", .limit = limit
	};
	pl_buf_init(&into->key);
	pl_buf_init(&into->line);
	pl_buf_init(&into->text);
	if (is_stdout(uri) || pl_result_out_check(uri, query, &diag) == 0)
		return 0;
	return pl_fail(PL_EXIT_USAGE, "query: --into: %s%s", diag.text,
		strchr(uri, ':') == NULL ? ", or to -" : "");
}

static int open_out(struct pl_query_into *into, struct pl_diag *diag)
{
	int r = 0;

	if (!is_stdout(into->uri))
		r = pl_result_out_open(&into->out, into->uri, into->query, BROKER_WAIT_MS, diag);
	into->began = r == 0;
	return r;
}

int pl_query_into_open(struct pl_query_into *into)
{
	struct pl_diag diag = { .text = "" };
	int r = open_out(into, &diag);

	if (r == 0)
		return 0;
	pl_complain("query: --into: %s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	return r == -EINVAL ? PL_EXIT_USAGE : PL_EXIT_UNAVAILABLE;
}

/* ---- within a runtime ---- */

static int files(void *arg, struct pl_confine *confine)
{
	const struct pl_query_into *into = arg;

	return is_stdout(into->uri) ? 0 : pl_result_out_files(into->uri, confine);
}

static int open_service(void *arg, struct pl_diag *diag)
{
	return open_out(arg, diag);
}

static int turn(void *arg, const struct pollfd *fds, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_query_into *into = arg;

	(void)fds;
	(void)diag;
	if (into->out != NULL)
		(void)pl_result_out_turn(into->out, now_ns);
	return PL_TURN_IDLE;
}

static uint64_t due_ns(void *arg, uint64_t now_ns)
{
	const struct pl_query_into *into = arg;

	return into->out == NULL ? UINT64_MAX : now_ns + UINT64_C(20000000);
}

const struct pl_service_ops pl_query_into_service = {
	.name = "rows",
	.files = files,
	.open = open_service,
	.turn = turn,
	.due_ns = due_ns,
};

/* ---- rows ---- */

void pl_query_into_add(struct pl_query_into *into, const struct pl_query_row *row)
{
	struct pl_result_item item = { .query = into->query, .name = into->name, .row = row };

	if (pl_query_into_full(into))
		return;
	into->rows++;
	into->incomplete += row->incomplete;
	if (into->out == NULL) {
		pl_query_result_json(into->query, into->name, row, NULL, &into->text);
		pl_buf_chr(&into->text, '\n');
		return;
	}
	pl_buf_reset(&into->key);
	pl_buf_reset(&into->line);
	pl_query_result_json(into->query, into->name, row, &into->key, &into->line);
	if (into->key.failed || into->line.failed) {
		pl_result_out_refuse(into->out);
		return;
	}
	item.key = into->key.data;
	item.key_len = into->key.len;
	item.line = into->line.data;
	item.len = into->line.len;
	pl_result_out_put(into->out, &item);
}

void pl_query_into_turn(struct pl_query_into *into)
{
	if (into->out != NULL)
		(void)pl_result_out_turn(into->out, pl_clock_mono_ns());
	else
		pl_stdout_flush(&into->text, &into->gone, &into->error);
}

bool pl_query_into_full(const struct pl_query_into *into)
{
	return into->gone || into->error != 0 || (into->limit != 0 && into->rows >= into->limit);
}

/* ---- the end ---- */

/* Prints for example "3 rows were not delivered: 2 timed_out, 1 too_large". */
static void tell_lost(const struct pl_query_into *into)
{
	const struct pl_result_stats *stats = &into->out->stats;
	struct pl_buf causes;

	pl_buf_init(&causes);
	for (unsigned int i = 0; i < pl_result_stats_list.n; i++) {
		const struct pl_stat *stat = &pl_result_stats_list.rows[i];
		const uint64_t n = pl_stat_read(stat, stats);

		if (strncmp(stat->name, "drop_", 5) == 0 && n > 0)
			pl_buf_printf(&causes, "%s%" PRIu64 " %s", causes.len > 0 ? ", " : "", n,
				stat->name + 5);
	}
	if (causes.len > 0)
		pl_complain("%s: %" PRIu64 " of %" PRIu64 " rows were not delivered: %.*s",
			into->out->name, pl_result_lost(stats), stats->rows + stats->found,
			(int)causes.len, causes.data);
	if (stats->held > 0)
		pl_complain("%s: %" PRIu64
			    " rows wait in the spool for the next one that writes there",
			into->out->name, stats->held);
	pl_buf_done(&causes);
}

static void print_counters(struct pl_query_into *into, const struct pl_query_stats *stats)
{
	struct pl_json json;
	const struct pl_account a = { .json = &json };

	pl_json_init(&json, &into->text);
	pl_json_object(&json);
	pl_account_object(&a, "query");
	pl_account_stats(&a, &pl_query_stats_list, stats);
	pl_account_object_end(&a);
	if (into->out != NULL) {
		pl_account_object(&a, "into");
		pl_account_stats(&a, &pl_result_stats_list, &into->out->stats);
		pl_account_object_end(&a);
	}
	pl_json_object_end(&json);
	pl_buf_chr(&into->text, '\n');
}

bool pl_query_into_end(struct pl_query_into *into, const struct pl_query_stats *stats)
{
	bool good = true;

	if (!into->began)
		return true;
	if (into->out != NULL) {
		pl_result_out_finish(into->out, CLOSE_WAIT_MS);
		tell_lost(into);
		good = pl_result_lost(&into->out->stats) == 0;
	}
	if (stats != NULL)
		print_counters(into, stats);
	pl_stdout_flush(&into->text, &into->gone, &into->error);
	if (into->error == 0)
		return good;
	return pl_fail(false, "standard output: %s",
		strerror(into->error < 0 ? -into->error : into->error));
}

void pl_query_into_done(struct pl_query_into *into)
{
	pl_result_out_close(into->out);
	pl_buf_done(&into->key);
	pl_buf_done(&into->line);
	pl_buf_done(&into->text);
}
