/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the standing queries of a configuration. */
#include "service/standing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "service/report_feed.h"
#include "service/standing_account.h"
#include "service/standing_push.h"
#include "service/standing_query.h"
#include "service/standing_reports.h"
#include "service/standing_rows.h"
#include "service/standing_source.h"
#include "service/standing_topic.h"

#define TURN_NS   UINT64_C(200000000)
/* Longest waits for acknowledgements, for all topics together: */
#define CLOSE_NS  UINT64_C(10000000000) /* at the end of the process */
#define LEAVE_NS  UINT64_C(2000000000)  /* when a reload removes topics; other services wait */
#define ASK_NS    UINT64_C(2000000000)  /* at a reload that opens sources, likewise */
#define COMMIT_MS 2000                  /* commit of the position in a topic of rows */

/* ---- one query ---- */

static void free_query(struct pl_standing_query *q)
{
	if (q == NULL)
		return;
	/* Sources first: closing a source of rows commits the delivered ones. */
	pl_standing_sources_close(q);
	pl_standing_outs_close(q, &q->outs);
	pl_query_run_free(q->run);
	pl_query_free(q->query);
	pl_buf_done(&q->key);
	pl_buf_done(&q->line);
	free(q->limits);
	free(q->name);
	free(q->text);
	free(q->group);
	free(q);
}

/* Makes a query. The caller opens its outputs later, because a removed query may still have the
 * same files open. */
static int new_query(struct pl_standing_query **ret, const struct pl_standing *s,
	const struct pl_config_query *c, struct pl_diag *diag)
{
	struct pl_standing_query *q = calloc(1, sizeof(*q));
	uint32_t partitions = 1;
	int r;

	if (q == NULL)
		return -ENOMEM;
	*ret = q;
	pl_buf_init(&q->key);
	pl_buf_init(&q->line);
	q->put = s->put;
	q->arg = s->arg;
	q->name = strdup(c->name);
	q->text = strdup(c->query);
	q->reads_rows = c->reads == PL_QUERY_READS_ROWS;
	if (c->group != NULL) {
		q->group = strdup(c->group);
		if (q->group == NULL)
			return -ENOMEM;
	}
	for (size_t i = 0; i < c->to.n; i++)
		q->alerts |= strcmp(((char *const *)c->to.items)[i], "events") == 0;
	q->groups = c->groups;
	q->lateness_ns = c->lateness_ns;
	q->ahead_ns = c->ahead_ns;
	q->outs.value = -1;
	if (q->name == NULL || q->text == NULL)
		return -ENOMEM;
	r = pl_config_query_parse(q->text, &q->query, diag);
	if (r == 0)
		r = pl_standing_sources_make(q, s->taps, c, &partitions, diag);
	if (r == 0)
		r = pl_standing_run_new(&q->run, q->query, c, partitions, q, diag);
	return r == 0 ? pl_standing_look(q) : r;
}

/* Returns whether the query needs no new run for this configuration. */
static bool same(const struct pl_standing_query *q, const struct pl_config_query *c)
{
	return strcmp(q->name, c->name) == 0 && strcmp(q->text, c->query) == 0 &&
	       pl_standing_sources_same(q, c) && q->groups == c->groups &&
	       q->reads_rows == (c->reads == PL_QUERY_READS_ROWS) &&
	       strcmp(q->group != NULL ? q->group : "", c->group != NULL ? c->group : "") == 0 &&
	       q->lateness_ns == c->lateness_ns && q->ahead_ns == c->ahead_ns;
}

/* ---- records ---- */

static void take(
	void *arg, unsigned int tap, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	const struct pl_standing *s = arg;

	for (unsigned int i = 0; i < s->n; i++)
		pl_standing_sources_take(s->queries[i], s->taps, (int)tap, kind, records, n);
}

/* Returns the kinds of records that the queries read of the tap, as bits. */
static uint32_t kinds_of(struct pl_standing_query *const *queries, unsigned int n, int tap)
{
	uint32_t kinds = 0;

	for (unsigned int i = 0; i < n; i++)
		kinds |= pl_standing_sources_kinds(queries[i], tap);
	return kinds;
}

/* Returns the collector's streams that the queries read, as bits. */
static uint32_t streams_of(struct pl_standing_query *const *queries, unsigned int n)
{
	uint32_t streams = 0;

	for (unsigned int i = 0; i < n; i++)
		streams |= pl_standing_sources_streams(queries[i]);
	return streams;
}

static int want(struct pl_standing *s, struct pl_standing_query *const *queries, unsigned int n,
	struct pl_diag *diag)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < s->taps->n; i++)
		r = pl_taps_want(s->taps, i, kinds_of(queries, n, (int)i), diag);
	if (r == 0)
		r = pl_standing_want_reports(s, streams_of(queries, n));
	if (r == 0)
		pl_standing_push(s, queries, n);
	return r;
}

int pl_standing_init(struct pl_standing *s, struct pl_taps *taps, const struct pl_config *config,
	struct pl_diag *diag)
{
	const struct pl_config_query *c = config->queries.items;
	int r = 0;

	s->taps = taps;
	for (size_t i = 0; r == 0 && i < config->queries.n; i++) {
		struct pl_standing_query *q = NULL;

		r = new_query(&q, s, &c[i], diag);
		if (q != NULL)
			s->queries[s->n++] = q;
		if (r == 0 && q != NULL)
			r = pl_standing_outs_make(&q->outs, &c[i], q->query, diag);
	}
	if (r == 0)
		r = pl_standing_check_memory(s->queries, s->n, diag);
	taps->passed = pl_standing_passed;
	taps->counts = pl_standing_counts;
	taps->counting = pl_standing_counting;
	if (r == 0)
		r = want(s, s->queries, s->n, diag);
	taps->take = take;
	taps->arg = s;
	return r;
}

int pl_standing_attach(struct pl_standing *s, struct pl_pipeline *pipeline, struct pl_diag *diag)
{
	return pl_standing_open_reports(s, pipeline, streams_of(s->queries, s->n), diag);
}

/* ---- reload ---- */

struct change {
	struct pl_standing *s;
	unsigned int n;
	struct pl_standing_query *fresh[PL_CONFIG_QUERIES_MAX]; /* or one that stays */
	struct pl_standing_outs outs[PL_CONFIG_QUERIES_MAX];    /* new outputs; then, old ones */
	int error;
	struct pl_diag *diag;
};

static struct pl_standing_query *find_same(
	const struct pl_standing *s, const struct pl_config_query *c)
{
	for (unsigned int i = 0; i < s->n; i++) {
		if (same(s->queries[i], c))
			return s->queries[i];
	}
	return NULL;
}

static bool is_among(
	const struct pl_standing_query *q, struct pl_standing_query *const *queries, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		if (queries[i] == q)
			return true;
	}
	return false;
}

/* Makes and opens all that may fail. */
static int plan(struct change *ch, const struct pl_config *config, struct pl_diag *diag)
{
	const struct pl_config_query *c = config->queries.items;
	const uint64_t open_by_ns = pl_clock_mono_ns() + ASK_NS;
	int r = 0;

	pl_standing_outs_unclaim(ch->s->queries, ch->s->n);
	for (size_t i = 0; r == 0 && i < config->queries.n; i++) {
		struct pl_standing_query *q = find_same(ch->s, &c[i]);
		const bool fresh = q == NULL;

		if (fresh)
			r = new_query(&q, ch->s, &c[i], diag);
		if (q == NULL)
			return -ENOMEM;
		ch->fresh[ch->n++] = q;
		q->open_by_ns = open_by_ns;
		if (r == 0)
			r = pl_standing_outs_make(&ch->outs[i], &c[i], q->query, diag);
		if (r == 0)
			r = pl_standing_outs_open(
				&ch->outs[i], q->query, ch->s->queries, ch->s->n, diag);
		if (r == 0 && fresh)
			r = pl_standing_sources_open(q, diag);
	}
	return r == 0 ? pl_standing_check_memory(ch->fresh, ch->n, diag) : r;
}

/* Exchanges the queries between two turns, when no page reads them and no record comes. */
static void swap(void *arg)
{
	struct change *ch = arg;
	struct pl_standing *s = ch->s;
	struct pl_standing_query *had[PL_CONFIG_QUERIES_MAX];
	const unsigned int n_had = s->n;

	ch->error = want(s, ch->fresh, ch->n, ch->diag);
	if (ch->error < 0) {
		/* Some taps may have changed already; the old kinds cannot fail. */
		(void)want(s, s->queries, s->n, NULL);
		return;
	}
	for (unsigned int i = 0; i < ch->n; i++)
		pl_standing_outs_take_over(&ch->outs[i]);
	memcpy(had, s->queries, sizeof(had));
	memcpy(s->queries, ch->fresh, sizeof(s->queries));
	memcpy(ch->fresh, had, sizeof(ch->fresh));
	s->n = ch->n;
	ch->n = n_had;
	/* No turn is due when there was no topic before. */
	s->outs_due_ns = 0;
	for (unsigned int i = 0; i < s->n; i++) {
		struct pl_standing_outs old;

		pl_standing_write(s->queries[i]);
		old = s->queries[i]->outs;
		s->queries[i]->outs = ch->outs[i];
		ch->outs[i] = old;
		pl_standing_outs_keep(&s->queries[i]->outs, &ch->outs[i]);
	}
}

/* Finishes outputs that no query has any more, and tells of their rows that are lost with them. */
static void end_outs(struct pl_standing_outs *outs, uint64_t until_ns)
{
	pl_standing_outs_finish(outs, until_ns);
	for (unsigned int i = 0; i < outs->n_topics; i++) {
		const struct pl_result_out *out = outs->topics[i].out;

		if (out != NULL && out->stats.drop_purged > 0)
			pl_warn("reload", "%s: %llu rows that waited for it are lost", out->name,
				(unsigned long long)out->stats.drop_purged);
	}
}

int pl_standing_change(struct pl_standing *s, const struct pl_config *config, struct pl_diag *diag)
{
	struct change *ch;
	uint64_t until_ns;
	int r;

	if (!s->began && config->queries.n > 0) {
		pl_diag_set(diag,
			"queries in a process that began with neither taps nor queries: restart it");
		return -EINVAL;
	}
	ch = calloc(1, sizeof(*ch));
	if (ch == NULL)
		return -ENOMEM;
	ch->s = s;
	ch->diag = diag;
	r = plan(ch, config, diag);
	if (r == 0) {
		pl_runtime_visit(swap, ch);
		r = ch->error;
	}
	until_ns = pl_clock_mono_ns() + LEAVE_NS;
	/* Frees removed queries on success, else the new ones; queries in use stay. */
	for (unsigned int i = 0; i < ch->n; i++) {
		struct pl_standing_query *q = ch->fresh[i];

		if (is_among(q, s->queries, s->n))
			continue;
		if (r == 0)
			pl_notice("reload", "query %s is removed; its open windows are left out",
				q->name);
		end_outs(&q->outs, until_ns);
		q->leaves = true;
		free_query(q);
	}
	/* Closes the old outputs on success, else the new ones; their lines are written. */
	for (unsigned int i = 0; i < PL_CONFIG_QUERIES_MAX; i++) {
		end_outs(&ch->outs[i], until_ns);
		pl_standing_outs_close(NULL, &ch->outs[i]);
	}
	free(ch);
	return r;
}

bool pl_standing_lost(const struct pl_standing *s)
{
	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_standing_query *q = s->queries[i];

		if (q->stats.lines_failed + q->stats.events_dropped + pl_standing_topics_lost(q) >
			0)
			return true;
	}
	return pl_standing_missed(s) > 0;
}

void pl_standing_close(struct pl_standing *s)
{
	for (unsigned int i = 0; i < s->n; i++)
		free_query(s->queries[i]);
	s->n = 0;
}

/* ---- as a service ---- */

static int files(void *arg, struct pl_confine *confine)
{
	const struct pl_standing *s = arg;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < s->n; i++) {
		const struct pl_standing_query *q = s->queries[i];

		for (unsigned int k = 0; r == 0 && k < q->outs.n_files; k++)
			r = pl_confine_path(confine, q->outs.files[k].path, true);
		for (unsigned int k = 0; r == 0 && k < q->outs.n_topics; k++)
			r = pl_result_out_files(q->outs.topics[k].uri, confine);
		if (r == 0)
			r = pl_standing_sources_files(q, confine);
	}
	return r;
}

static int open_service(void *arg, struct pl_diag *diag)
{
	struct pl_standing *s = arg;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < s->n; i++) {
		r = pl_standing_outs_open(
			&s->queries[i]->outs, s->queries[i]->query, NULL, 0, diag);
		if (r == 0)
			r = pl_standing_sources_open(s->queries[i], diag);
	}
	s->began = r == 0;
	if (r == 0)
		pl_standing_tell_pushed(s->queries, s->n);
	return r;
}

static void add_conditions(const struct pl_standing_query *q, struct pl_conditions *ret)
{
	if (pl_query_lacks_texts(q->run))
		pl_condition_add(ret, PL_CONDITION_WARNING, "query_texts_full",
			"query %s: it has had 65536 different texts, and others are absent: shorter windows, or a condition that leaves texts out",
			q->name);
	if (pl_query_went_back(q->run) > 0)
		pl_condition_add(ret, PL_CONDITION_WARNING, "query_time_back",
			"query %s: times of its records went back, and are %.0f s behind what they were: set the clock of their source",
			q->name, (double)pl_query_went_back(q->run) / 1e9);
	for (unsigned int k = 0; k < q->outs.n_files; k++) {
		if (q->outs.files[k].failing)
			pl_condition_add(ret, PL_CONDITION_FAULT, "query_file_failing",
				"query %s: %s cannot be written", q->name, q->outs.files[k].path);
	}
	for (unsigned int k = 0; k < q->outs.n_topics; k++) {
		const struct pl_result_out *out = q->outs.topics[k].out;
		struct pl_diag why = { .text = "" };

		if (out != NULL && pl_result_out_failing(out, &why))
			pl_condition_add(ret, PL_CONDITION_FAULT, "output_failing",
				"query %s: %s: %s", q->name, out->name, why.text);
	}
}

static void tell_back(struct pl_standing_query *q)
{
	const uint64_t back_ns = pl_query_went_back(q->run);
	const uint64_t restarts = pl_query_run_stats(q->run)->restarts;

	if (restarts > q->restarts_told || (back_ns > 0 && !q->back_told))
		pl_warn("query", "%s: times of its records went back by %.3f s: %s", q->name,
			(double)back_ns / 1e9,
			restarts > q->restarts_told
				? "windows begin anew there"
				: "these are late, since the times of others go on");
	q->restarts_told = restarts;
	q->back_told = back_ns > 0;
}

static void turn_outs(struct pl_standing *s, uint64_t now_ns)
{
	s->outs_due_ns = UINT64_MAX;
	for (unsigned int i = 0; i < s->n; i++) {
		const uint64_t due_ns = pl_standing_outs_turn(s->queries[i], now_ns);

		s->outs_due_ns = due_ns < s->outs_due_ns ? due_ns : s->outs_due_ns;
	}
}

static unsigned int fds(void *arg, struct pollfd *ret, unsigned int max)
{
	const struct pl_standing *s = arg;

	if (s->feed == NULL || max == 0)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_report_feed_fd(s->feed), .events = POLLIN };
	return 1;
}

static int turn(void *arg, const struct pollfd *polled, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_standing *s = arg;
	struct pl_conditions list;
	bool busy = false;

	(void)polled;
	(void)diag;
	pl_standing_take_reports(s);
	for (unsigned int i = 0; i < s->n; i++)
		busy |= pl_standing_sources_turn(s->queries[i], now_ns);
	if (now_ns >= s->outs_due_ns)
		turn_outs(s, now_ns);
	if (now_ns < s->due_ns)
		return busy ? PL_TURN_BUSY : PL_TURN_IDLE;
	s->due_ns = now_ns + TURN_NS;
	pl_conditions_clear(&list);
	for (unsigned int i = 0; i < s->n; i++) {
		pl_query_advance(s->queries[i]->run, now_ns);
		tell_back(s->queries[i]);
		pl_standing_write(s->queries[i]);
		add_conditions(s->queries[i], &list);
	}
	pl_condition_board_put(&s->conditions, &list);
	return busy ? PL_TURN_BUSY : PL_TURN_IDLE;
}

static uint64_t due_ns(void *arg, uint64_t now_ns)
{
	const struct pl_standing *s = arg;
	uint64_t due = s->due_ns < s->outs_due_ns ? s->due_ns : s->outs_due_ns;

	for (unsigned int i = 0; i < s->n; i++) {
		if (pl_standing_sources_poll(s->queries[i]) && now_ns + PL_STANDING_TOPIC_NS < due)
			due = now_ns + PL_STANDING_TOPIC_NS;
	}
	return due;
}

/* Called by a page's thread, while a reload may exchange the queries. */
static void conditions(void *arg, struct pl_conditions *ret)
{
	struct pl_standing *s = arg;

	pl_condition_board_get(&s->conditions, ret);
}

static void drain(void *arg)
{
	struct pl_standing *s = arg;
	uint64_t until_ns;

	if (streams_of(s->queries, s->n) != 0)
		pl_standing_end_reports(s);
	for (unsigned int i = 0; i < s->n; i++) {
		/* Even without records there may be a row: a count of 0. */
		if (!s->queries[i]->reads_rows)
			pl_query_finish(s->queries[i]->run);
		pl_standing_write(s->queries[i]);
	}
	until_ns = pl_clock_mono_ns() + CLOSE_NS;
	for (unsigned int i = 0; i < s->n; i++)
		pl_standing_outs_finish(&s->queries[i]->outs, until_ns);
	for (unsigned int i = 0; i < s->n; i++)
		pl_standing_rows_commit(s->queries[i], COMMIT_MS);
}

static void reopen(void *arg)
{
	struct pl_standing *s = arg;

	for (unsigned int i = 0; i < s->n; i++)
		pl_standing_reopen(s->queries[i]);
}

const struct pl_service_ops pl_standing_service = {
	.name = "queries",
	.files = files,
	.open = open_service,
	.fds = fds,
	.turn = turn,
	.due_ns = due_ns,
	.conditions = conditions,
	.reload = reopen,
	.drain = drain,
	.account = pl_standing_put_text,
	.counters = pl_standing_put,
};
