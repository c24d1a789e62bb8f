/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs for the rows of a standing query: events, the log, gauges, files of JSON lines,
 * topics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "kafka/uri.h"
#include "query/result_json.h"
#include "service/standing.h"
#include "service/standing_query.h"

#define WAYS     8
#define ALONE_NS INT64_C(1000000000) /* a row without a window is reported once in this time */

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_standing_stats, __VA_ARGS__)
#include "service/standing_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_standing_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

/* Time of the window in which a group was last reported, and the value then. */
struct span {
	int64_t start, end; /* end 0: none */
	double value;
};

/* A reported group: its newest window, and the one before, whose last row may come after the first
 * row of the newest. */
struct pl_standing_limit {
	uint64_t hash;
	struct span now, before;
};

/* ---- files ---- */

static void write_file(struct pl_standing_query *q, struct pl_line_file *f)
{
	const bool failing = f->failing;
	uint64_t lines;
	const int r = pl_line_file_write(f, &lines);

	if (r == 0) {
		q->stats.lines += lines;
		return;
	}
	q->stats.lines_failed += lines;
	if (!failing)
		pl_error("query", "%s: %s: %s", q->name, f->path, strerror(-r));
}

void pl_standing_write(struct pl_standing_query *q)
{
	for (unsigned int i = 0; i < q->outs.n_files; i++)
		write_file(q, &q->outs.files[i]);
}

void pl_standing_reopen(struct pl_standing_query *q)
{
	for (unsigned int i = 0; i < q->outs.n_files; i++) {
		struct pl_diag diag = { .text = "" };

		write_file(q, &q->outs.files[i]);
		if (pl_line_file_reopen(&q->outs.files[i], &diag) < 0)
			pl_error("query", "%s: %s", q->name, diag.text);
	}
	for (unsigned int i = 0; i < q->outs.n_topics; i++)
		pl_result_out_reopen(q->outs.topics[i].out);
}

/* ---- topics ---- */

static int add_topic(struct pl_standing_outs *outs, const char *uri)
{
	struct pl_standing_to_topic *t = &outs->topics[outs->n_topics++];

	*t = (struct pl_standing_to_topic){ .uri = strdup(uri) };
	return t->uri != NULL ? 0 : -ENOMEM;
}

/* Returns the topic with this URI that one of the queries has open and that no new query has taken
 * over yet, or NULL. */
static struct pl_standing_to_topic *find_open(const char *uri, const struct pl_query *query,
	struct pl_standing_query *const *queries, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct pl_standing_outs *outs = &queries[i]->outs;

		for (unsigned int k = 0; k < outs->n_topics; k++) {
			if (outs->topics[k].out != NULL && !outs->topics[k].claimed &&
				strcmp(outs->topics[k].uri, uri) == 0 &&
				pl_result_out_fits(uri, queries[i]->query, query))
				return &outs->topics[k];
		}
	}
	return NULL;
}

/* Never waits for a broker: one that is down must not keep the daemon from starting. */
static int open_topic(struct pl_standing_to_topic *t, const struct pl_query *query,
	struct pl_standing_query *const *queries, unsigned int n, struct pl_diag *diag)
{
	t->from = find_open(t->uri, query, queries, n);
	if (t->from == NULL)
		return pl_result_out_open(&t->out, t->uri, query, 0, diag);
	t->from->claimed = true;
	return 0;
}

void pl_standing_outs_unclaim(struct pl_standing_query *const *queries, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int k = 0; k < queries[i]->outs.n_topics; k++)
			queries[i]->outs.topics[k].claimed = false;
	}
}

void pl_standing_outs_take_over(struct pl_standing_outs *outs)
{
	for (unsigned int i = 0; i < outs->n_topics; i++) {
		struct pl_standing_to_topic *t = &outs->topics[i];

		if (t->from == NULL)
			continue;
		t->out = t->from->out;
		t->from->out = NULL;
		t->from = NULL;
	}
}

uint64_t pl_standing_outs_turn(struct pl_standing_query *q, uint64_t now_ns)
{
	uint64_t due_ns = UINT64_MAX;

	for (unsigned int i = 0; i < q->outs.n_topics; i++) {
		const uint64_t one_ns = pl_result_out_turn(q->outs.topics[i].out, now_ns);

		due_ns = one_ns < due_ns ? one_ns : due_ns;
	}
	return due_ns;
}

bool pl_standing_outs_settled(struct pl_standing_query *q, bool all)
{
	bool yes = true;

	pl_standing_write(q);
	/* A topic that another query took over has no information here. */
	for (unsigned int i = 0; yes && i < q->outs.n_topics; i++)
		yes = q->outs.topics[i].out != NULL &&
		      pl_result_out_settled(q->outs.topics[i].out, all);
	return yes;
}

void pl_standing_outs_mark(struct pl_standing_query *q)
{
	for (unsigned int i = 0; i < q->outs.n_topics; i++)
		pl_result_out_mark(q->outs.topics[i].out);
}

void pl_standing_outs_finish(struct pl_standing_outs *outs, uint64_t until_ns)
{
	for (unsigned int i = 0; i < outs->n_topics; i++) {
		const uint64_t now_ns = pl_clock_mono_ns();
		const uint64_t left_ns = now_ns < until_ns ? until_ns - now_ns : 0;

		if (outs->topics[i].out != NULL)
			pl_result_out_finish(outs->topics[i].out, (uint32_t)(left_ns / 1000000));
	}
}

static void close_topic(struct pl_standing_to_topic *t)
{
	pl_result_out_close(t->out);
	free(t->uri);
}

/* ---- all of them ---- */

int pl_standing_check_out(const struct pl_config_query *config, const struct pl_query *query,
	const char *to, struct pl_diag *diag)
{
	struct pl_diag why = { .text = "" };
	int r;

	if (pl_result_out_driver(to) == NULL)
		return 0;
	r = pl_result_out_check(to, query, &why);
	if (r < 0)
		pl_diag_set(diag, "query %s: %s", config->name, why.text);
	return r;
}

int pl_standing_outs_make(struct pl_standing_outs *ret, const struct pl_config_query *config,
	const struct pl_query *query, struct pl_diag *diag)
{
	char *const *to = config->to.items;
	int r = pl_config_query_value(config, query, &ret->value, diag);

	for (size_t i = 0; r == 0 && i < config->to.n; i++) {
		r = pl_standing_check_out(config, query, to[i], diag);
		if (r < 0)
			break;
		ret->events |= strcmp(to[i], "events") == 0;
		ret->metrics |= strcmp(to[i], "metrics") == 0;
		ret->log |= strcmp(to[i], "log") == 0;
		if (strncmp(to[i], PL_RESULT_FILE, strlen(PL_RESULT_FILE)) == 0)
			r = pl_line_file_make(
				&ret->files[ret->n_files++], to[i] + strlen(PL_RESULT_FILE));
		else if (pl_result_out_driver(to[i]) != NULL)
			r = add_topic(ret, to[i]);
	}
	if (r == 0 && ret->metrics)
		r = pl_standing_series_new(&ret->series, query, config->series);
	return r;
}

int pl_standing_outs_open(struct pl_standing_outs *outs, const struct pl_query *query,
	struct pl_standing_query *const *queries, unsigned int n, struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < outs->n_files; i++)
		r = pl_line_file_open(&outs->files[i], diag);
	for (unsigned int i = 0; r == 0 && i < outs->n_topics; i++)
		r = open_topic(&outs->topics[i], query, queries, n, diag);
	return r;
}

void pl_standing_outs_keep(struct pl_standing_outs *outs, struct pl_standing_outs *old)
{
	struct pl_standing_series *series = old->series;

	if (outs->series == NULL || series == NULL ||
		pl_standing_series_max(outs->series) != pl_standing_series_max(series))
		return;
	old->series = outs->series;
	outs->series = series;
}

void pl_standing_outs_close(struct pl_standing_query *q, struct pl_standing_outs *outs)
{
	for (unsigned int i = 0; i < outs->n_files; i++) {
		if (q != NULL)
			write_file(q, &outs->files[i]);
		pl_line_file_close(&outs->files[i]);
	}
	for (unsigned int i = 0; i < outs->n_topics; i++)
		close_topic(&outs->topics[i]);
	pl_standing_series_free(outs->series);
	*outs = (struct pl_standing_outs){ .value = -1 };
}

/* ---- rows ---- */

static int find(const struct pl_standing_query *q, const char *name, const char *other)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(q->query, &columns);

	for (uint32_t i = 0; i < n; i++) {
		if (q->keys[i] && (strcmp(columns[i].name, name) == 0 ||
					  (other != NULL && strcmp(columns[i].name, other) == 0)))
			return (int)i;
	}
	return -1;
}

int pl_standing_look(struct pl_standing_query *q)
{
	const struct pl_query_column *columns;
	const uint32_t n = pl_query_columns(q->query, &columns);

	(void)pl_query_key_columns(q->query, q->keys);
	q->src = find(q, "src", "client");
	q->dst = find(q, "dst", "server");
	q->sport = find(q, "sport", NULL);
	q->dport = find(q, "dport", NULL);
	q->proto = find(q, "proto", NULL);
	q->address = -1;
	for (uint32_t i = 0; i < n && q->address < 0; i++) {
		if (q->keys[i] && columns[i].type == PL_QUERY_ADDR)
			q->address = (int)i;
	}
	q->limits = calloc(PL_STANDING_LIMITS, sizeof(*q->limits));
	return q->limits != NULL ? 0 : -ENOMEM;
}

static double number(const struct pl_query_row *row, int column)
{
	const struct pl_query_value *v = column >= 0 ? &row->values[column] : NULL;

	if (v == NULL || v->absent)
		return 0;
	return v->type == PL_QUERY_UNSIGNED ? (double)v->u
	       : v->type == PL_QUERY_SIGNED ? (double)v->i
					    : v->d;
}

static struct pl_standing_limit *limit_of(struct pl_standing_query *q, uint64_t hash, int64_t start)
{
	struct pl_standing_limit *set = &q->limits[hash % (PL_STANDING_LIMITS / WAYS) * WAYS],
				 *oldest = set;

	for (unsigned int i = 0; i < WAYS; i++) {
		if (set[i].now.end != 0 && set[i].hash == hash)
			return &set[i];
		oldest = set[i].now.end < oldest->now.end ? &set[i] : oldest;
	}
	q->stats.displaced += oldest->now.end > start;
	*oldest = (struct pl_standing_limit){ .hash = hash };
	return oldest;
}

static bool overlap(const struct span *a, const struct span *b)
{
	return a->end != 0 && a->start < b->end && b->start < a->end;
}

/* Limits rows to the first of a group and window, and later ones whose value has doubled. Windows
 * that overlap count as one. */
static bool may_tell(struct pl_standing_query *q, uint64_t hash, const struct pl_query_row *row)
{
	const int64_t start = row->windowed ? row->start_ns : (int64_t)pl_clock_real_ns();
	const struct span fresh = { start, row->windowed ? row->end_ns : start + ALONE_NS,
		number(row, q->outs.value) };
	struct pl_standing_limit *l = limit_of(q, hash, start);
	struct span *told = overlap(&l->now, &fresh)      ? &l->now
			    : overlap(&l->before, &fresh) ? &l->before
							  : NULL;

	if (told == NULL) {
		if (fresh.start >= l->now.end) {
			l->before = l->now;
			l->now = fresh;
		} else {
			l->before = fresh;
		}
		q->stats.told++;
		return true;
	}
	if (row->windowed && fresh.end > told->end)
		told->end = fresh.end;
	if (told->value > 0 && fresh.value >= 2 * told->value) {
		told->value = fresh.value;
		q->stats.escalated++;
		return true;
	}
	q->stats.limited++;
	return false;
}

/* Copies a key, cut to its room: ',' becomes '/', others that need quotes become '?'. */
static void put_key(struct pl_text40 *ret, const char *key)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/";
	size_t i = 0;

	*ret = (struct pl_text40){ "" };
	for (; i < sizeof(ret->c) - 1 && key[i] != '\0'; i++)
		ret->c[i] = key[i] == ',' ? '/' : strchr(plain, key[i]) != NULL ? key[i] : '?';
}

/* Sets the flow when the group is one, else the group's address. */
static void put_addresses(
	const struct pl_standing_query *q, const struct pl_query_row *row, struct pl_event *e)
{
	const struct pl_query_value *v = row->values;
	const bool flow = q->src >= 0 && q->dst >= 0 && q->proto >= 0;

	if (!flow && q->address >= 0 && !v[q->address].absent)
		pl_event_set_address(e, v[q->address].addr);
	if (!flow || v[q->src].absent || v[q->dst].absent || v[q->proto].absent)
		return;
	e->src = v[q->src].addr;
	e->dst = v[q->dst].addr;
	e->proto = (uint8_t)v[q->proto].u;
	e->present |= PL_EVENT_HAS_src;
	if (q->sport < 0 || q->dport < 0 || v[q->sport].absent || v[q->dport].absent)
		return;
	e->sport = (uint16_t)v[q->sport].u;
	e->dport = (uint16_t)v[q->dport].u;
	e->present |= PL_EVENT_HAS_sport;
}

static void tell_event(struct pl_standing_query *q, const char *key, const struct pl_query_row *row)
{
	struct pl_event e = { .ts_ns = pl_clock_real_ns(),
		.event = PL_EVENT_QUERY,
		.phase = PL_PHASE_ONCE,
		.record_version = PL_RECORD_VERSION };
	const double value = number(row, q->outs.value);
	struct pl_text16 name = { "" };
	struct pl_text40 text;

	memcpy(name.c, q->name, strnlen(q->name, sizeof(name.c) - 1));
	pl_event_set_query(&e, name);
	if (q->outs.value >= 0 && !row->values[q->outs.value].absent && value >= 0 &&
		value < 18446744073709551616.0) {
		e.value = row->values[q->outs.value].type == PL_QUERY_UNSIGNED
				  ? row->values[q->outs.value].u
				  : (uint64_t)value;
		e.present |= PL_EVENT_HAS_value;
	}
	if (row->windowed)
		pl_event_set_duration_ns(&e, (uint64_t)(row->end_ns - row->start_ns));
	put_addresses(q, row, &e);
	put_key(&text, key);
	if (text.c[0] != '\0')
		pl_event_set_key(&e, text);
	q->stats.events_dropped += q->put(q->arg, &e, 1) == 0;
}

static void log_row(
	const struct pl_standing_query *q, const char *key, const struct pl_query_row *row)
{
	const struct pl_query_column *columns;
	const char *when = row->windowed && !row->final ? " so far" : "";
	const char *of = key[0] != '\0' ? key : "all";

	(void)pl_query_columns(q->query, &columns);
	if (q->outs.value < 0 || row->values[q->outs.value].absent)
		pl_notice("query", "%s: %s%s", q->name, of, when);
	else
		pl_notice("query", "%s: %s: %s %.15g%s", q->name, of, columns[q->outs.value].name,
			number(row, q->outs.value), when);
}

/* Passes the row to files and topics, which take every row. */
static void put_row(struct pl_standing_query *q, const struct pl_query_row *row)
{
	struct pl_standing_outs *outs = &q->outs;
	const bool failed = q->key.failed || q->line.failed;
	/* The key ends with a NUL. */
	const struct pl_result_item item = { .query = q->query,
		.name = q->name,
		.row = row,
		.key = q->key.data,
		.line = q->line.data,
		.key_len = failed ? 0 : q->key.len - 1,
		.len = q->line.len };

	if (failed)
		q->stats.lines_failed += outs->n_files;
	for (unsigned int i = 0; !failed && i < outs->n_files; i++) {
		if (pl_line_file_add(&outs->files[i], q->line.data, q->line.len))
			write_file(q, &outs->files[i]);
	}
	for (unsigned int i = 0; i < outs->n_topics; i++) {
		if (failed)
			pl_result_out_refuse(outs->topics[i].out);
		else
			pl_result_out_put(outs->topics[i].out, &item);
	}
}

/* Passes the row to all outputs; q->key and q->line have its key and line. */
static void give_row(struct pl_standing_query *q, const struct pl_query_row *row)
{
	const struct pl_standing_outs *outs = &q->outs;
	const char *key;

	pl_buf_chr(&q->key, '\0');
	put_row(q, row);
	if (q->key.failed || q->line.failed)
		return;
	key = strchr(q->key.data, '|');
	key = key != NULL ? key + 1 : "";
	/* Gauges show complete windows only. */
	if (outs->series != NULL && (row->final || !row->windowed))
		q->stats.series_refused += !pl_standing_series_put(outs->series, key, row);
	if ((outs->events || outs->log) && may_tell(q, pl_hash(key, strlen(key), 0), row)) {
		if (outs->events)
			tell_event(q, key, row);
		if (outs->log)
			log_row(q, key, row);
	}
}

void pl_standing_take_row(void *arg, const struct pl_query_row *row)
{
	struct pl_standing_query *q = arg;

	pl_buf_reset(&q->key);
	pl_buf_reset(&q->line);
	pl_query_result_json(q->query, q->name, row, &q->key, &q->line);
	give_row(q, row);
}

void pl_standing_take_message(struct pl_standing_query *q, const struct pl_query_row *row,
	const char *message, size_t len)
{
	pl_buf_reset(&q->key);
	pl_buf_reset(&q->line);
	pl_query_result_json(q->query, q->name, row, &q->key, NULL);
	pl_buf_add(&q->line, message, len);
	give_row(q, row);
}
