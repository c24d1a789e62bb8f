/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints lists of telemetry memory in their order, as the answer of a question. */
#include "ask/query_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/hash.h"
#include "base/num.h"
#include "query/query.h"
#include "service/history_walk.h"
#include "show/record_out.h"

struct listing {
	const struct pl_query_list *args;
	struct pl_history_walk_options walk;
	struct pl_record_out out;
	struct pl_buf text; /* the question */
	const char *where;  /* the expression when the language cannot express it; else NULL */
	struct pl_query *query;
	struct pl_query_run *run;
	struct pl_history_walk w;
};

/* ---- the question ---- */

static unsigned int stream_of(const struct listing *l)
{
	return l->args->kind == PL_OUT_EVENTS  ? PL_QUERY_EVENTS
	       : l->args->kind == PL_OUT_PATHS ? PL_QUERY_PATHS
					       : PL_QUERY_HOPS;
}

static void and (struct pl_buf * text, bool *some)
{
	pl_buf_str(text, *some ? " AND " : " WHERE ");
	*some = true;
}

static void make_text(struct listing *l)
{
	const struct pl_query_list *args = l->args;
	bool some = false;

	pl_buf_reset(&l->text);
	pl_buf_printf(&l->text, "SELECT * FROM %s", pl_query_stream_name(stream_of(l)));
	if (args->where != NULL && l->where == NULL) {
		and(&l->text, &some);
		pl_buf_printf(&l->text, "(%s)", args->where);
	}
	if (l->walk.since_ns != 0) {
		and(&l->text, &some);
		pl_buf_printf(&l->text, "ts >= %" PRIu64, l->walk.since_ns);
	}
	if (l->walk.until_ns != 0) {
		and(&l->text, &some);
		pl_buf_printf(&l->text, "ts < %" PRIu64, l->walk.until_ns);
	}
	/* Records that the expression leaves out behind the question do not count. */
	if (args->count != 0 && l->where == NULL)
		pl_buf_printf(&l->text, " LIMIT %" PRIu64, args->count);
	pl_buf_chr(&l->text, '\0');
}

/* Makes the question. An expression that the language cannot express (a text that is too long for
 * it) is applied to the records behind the question. */
static int parse(struct listing *l)
{
	struct pl_diag diag = { .text = "" };

	make_text(l);
	if (!l->text.failed && pl_query_parse(&l->query, l->text.data, NULL) == 0)
		return 0;
	l->where = l->args->where;
	make_text(l);
	if (!l->text.failed && pl_query_parse(&l->query, l->text.data, &diag) == 0)
		return 0;
	return pl_fail(PL_EXIT_FAILED, "query: %s", l->text.failed ? "out of memory" : diag.text);
}

static int time_of(const char *text, const char *option, uint64_t *ret)
{
	if (text == NULL || pl_parse_time(text, pl_clock_real_ns(), ret) == 0)
		return 0;
	return pl_fail(
		PL_EXIT_USAGE, "--%s needs a time (2026-11-22T01:37:27Z) or an age (10m)", option);
}

/* Checks the expression as one of --where first, so that error messages name that. */
static int prepare(struct listing *l)
{
	const struct pl_query_list *args = l->args;
	int code =
		pl_record_out_init_kinds(&l->out, args->form, args->kind, args->where, args->count);

	if (code == 0)
		code = time_of(args->since, "since", &l->walk.since_ns);
	if (code == 0)
		code = time_of(args->until, "until", &l->walk.until_ns);
	if (code == 0)
		code = parse(l);
	if (code != 0 || l->where != NULL)
		return code;
	/* The question has the expression. */
	pl_record_out_done(&l->out);
	return pl_record_out_init_kinds(&l->out, args->form, args->kind, NULL, args->count);
}

/* ---- EXPLAIN ---- */

static void note(struct pl_buf *out, const char *option, const char *value, const char *what)
{
	pl_buf_printf(out, "-- %s %s: %s\n", option, value, what);
}

static int explain(struct listing *l)
{
	const struct pl_query_list *args = l->args;
	struct pl_buf out;
	char number[24];

	pl_buf_init(&out);
	pl_buf_printf(&out, "%s\n", l->text.data);
	if (l->where != NULL)
		note(&out, "--where", l->where,
			"not of the language; asked of the records behind the question");
	if (l->where != NULL && args->count != 0) {
		snprintf(number, sizeof(number), "%" PRIu64, args->count);
		note(&out, "-n", number, "of the records behind that");
	}
	snprintf(number, sizeof(number), "%" PRIu64, args->last != 0 ? args->last : args->first);
	if (args->last != 0 || args->first != 0)
		note(&out, args->last != 0 ? "--last" : "--from", number,
			"where reading of the list begins, which no question says");
	pl_query_explain(l->query, &out);
	if (out.data != NULL)
		fwrite(out.data, 1, out.len, stdout);
	pl_buf_done(&out);
	return 0;
}

/* ---- the answer ---- */

static void print_path(void *arg, const void *record)
{
	const struct pl_query_path *p = record;

	pl_record_out_path(&((struct listing *)arg)->out, &p->path, p->hops, p->n_hops);
}

static void print_hop(void *arg, const void *record)
{
	pl_record_out_hop(
		&((struct listing *)arg)->out, &((const struct pl_query_hop *)record)->hop);
}

static void print_event(void *arg, const void *record)
{
	pl_record_out_event(&((struct listing *)arg)->out, record);
}

/* There are no rows: print_* take the records. */
static void take_row(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	(void)row;
}

static int begin(struct listing *l)
{
	static pl_query_record_sink *const sinks[] = { [PL_QUERY_PATHS] = print_path,
		[PL_QUERY_HOPS] = print_hop,
		[PL_QUERY_EVENTS] = print_event };
	const struct pl_query_config config = { .seed = pl_hash_seed() };
	struct pl_diag diag = { .text = "" };

	if (pl_query_run_new(&l->run, l->query, &config, take_row, l, &diag) == 0 &&
		pl_query_take_records(l->run, sinks[stream_of(l)]) == 0)
		return 0;
	return pl_fail(
		PL_EXIT_FAILED, "query: %s", diag.text[0] != '\0' ? diag.text : "out of memory");
}

static void feed(struct listing *l, const struct pl_history_record *record)
{
	if (record->kind == PL_KIND_EVENT) {
		(void)pl_query_feed(l->run, PL_QUERY_EVENTS, &record->event, 1, 0);
	} else if (record->kind == PL_KIND_HOP) {
		const struct pl_query_hop hop = { .hop = record->hop };

		(void)pl_query_feed(l->run, PL_QUERY_HOPS, &hop, 1, 0);
	} else {
		const struct pl_query_path path = { record->path, record->hops, record->n_hops };

		(void)pl_query_feed(l->run, PL_QUERY_PATHS, &path, 1, 0);
	}
}

/* Begins `last` entries before the end of the list. */
static int begin_at_last(struct listing *l)
{
	struct pl_history_walk_options again = l->walk;
	uint64_t head = pl_append_head(l->w.readers[0].list.a, again.list);

	again.first = head > l->args->last ? head - l->args->last : 0;
	again.told = true;
	/* No entry is older than the first: 0 means the oldest present one. */
	pl_history_walk_close(&l->w);
	return pl_history_walk_open(&l->w, &again);
}

/* Reads records one at a time, so that reading ends at the last one wanted. */
static int read_list(struct listing *l)
{
	const struct pl_history_record *record;
	int code = pl_history_walk_open(&l->w, &l->walk);
	bool good;

	if (code == 0 && l->args->last > 0)
		code = begin_at_last(l);
	if (code != 0)
		return code;
	while (!pl_record_out_full(&l->out) && (record = pl_history_walk_next(&l->w)) != NULL)
		feed(l, record);
	pl_record_out_end(&l->out);
	good = pl_history_walk_tell(&l->w);
	good &= pl_record_out_good(&l->out);
	if (l->args->show_next)
		pl_complain("next entry: %" PRIu64, pl_history_walk_cursor(&l->w));
	pl_history_walk_close(&l->w);
	return !good ? PL_EXIT_FAILED : l->out.printed > 0 ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

int pl_query_list(const struct pl_query_list *args)
{
	struct listing *l = calloc(1, sizeof(*l));
	int code;

	if (l == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	l->args = args;
	l->walk = (struct pl_history_walk_options){ .from = args->from,
		.kinds = args->kind,
		.list = args->list > UINT32_MAX ? UINT32_MAX : (uint32_t)args->list,
		.first = args->first };
	pl_buf_init(&l->text);
	code = prepare(l);
	if (code == 0 && args->explain) {
		code = explain(l);
	} else if (code == 0) {
		code = begin(l);
		if (code == 0)
			code = read_list(l);
	}
	pl_query_run_free(l->run);
	pl_query_free(l->query);
	pl_record_out_done(&l->out);
	pl_buf_done(&l->text);
	free(l);
	return code;
}
