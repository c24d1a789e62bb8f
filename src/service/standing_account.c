/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the account of standing queries: on the metrics page, as JSON and in words. */
#include "service/standing_account.h"

#include <inttypes.h>

#include "service/standing.h"
#include "service/standing_query.h"
#include "service/standing_topic.h"

uint64_t pl_standing_topics_lost(const struct pl_standing_query *q)
{
	uint64_t lost = 0;

	for (unsigned int i = 0; i < q->outs.n_topics; i++) {
		if (q->outs.topics[i].out != NULL)
			lost += pl_result_lost(&q->outs.topics[i].out->stats);
	}
	return lost;
}

static uint64_t topics_waiting(const struct pl_standing_query *q)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < q->outs.n_topics; i++) {
		if (q->outs.topics[i].out != NULL)
			n += q->outs.topics[i].out->stats.waiting;
	}
	return n;
}

static void put_list(const struct pl_standing *s, const struct pl_stats *list, bool of_run,
	struct pl_exposition *page)
{
	for (unsigned int k = 0; k < list->n; k++) {
		const struct pl_stat *stat = &list->rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < s->n; i++) {
			const struct pl_standing_query *q = s->queries[i];
			const struct pl_label label = {
				.name = "query", .form = PL_LABEL_TEXT, .text = q->name
			};
			const void *object =
				of_run ? (const void *)pl_query_run_stats(q->run) : &q->stats;

			pl_exposition_u64(page, &label, 1, pl_stat_read(stat, object));
		}
	}
}

static void put_topics(
	const struct pl_standing *s, const struct pl_stat *stat, struct pl_exposition *page)
{
	bool open = false;

	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_standing_query *q = s->queries[i];

		for (unsigned int k = 0; k < q->outs.n_topics; k++) {
			const struct pl_result_out *out = q->outs.topics[k].out;
			const struct pl_label labels[] = {
				{ .name = "query", .form = PL_LABEL_TEXT, .text = q->name },
				{ .name = "output", .form = PL_LABEL_TEXT, .text = out->name }
			};

			if (!open)
				pl_exposition_stat(page, stat);
			open = true;
			pl_exposition_u64(page, labels, 2, pl_stat_read(stat, &out->stats));
		}
	}
}

static void put_numbers(const struct pl_standing *s, struct pl_exposition *page)
{
	put_list(s, &pl_query_stats_list, true, page);
	put_list(s, &pl_standing_stats_list, false, page);
	pl_standing_topics_page(s->queries, s->n, page);
	for (unsigned int k = 0; k < pl_result_stats_list.n; k++)
		put_topics(s, &pl_result_stats_list.rows[k], page);
	pl_exposition_family(page, "pathline_query_memory_bound_bytes", PL_METRIC_GAUGE, "bytes",
		"The most memory that the query can take, with as many groups as it has room for.");
	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_label label = {
			.name = "query", .form = PL_LABEL_TEXT, .text = s->queries[i]->name
		};

		pl_exposition_u64(page, &label, 1, pl_query_run_bytes(s->queries[i]->run));
	}
	pl_exposition_family(page, "pathline_query_value", PL_METRIC_GAUGE, NULL,
		"Numbers of the result of a query with to: metrics, in the latest window that had rows.");
	for (unsigned int i = 0; i < s->n; i++) {
		if (s->queries[i]->outs.series != NULL)
			pl_standing_series_page(
				s->queries[i]->outs.series, s->queries[i]->name, page);
	}
}

static void put_members(const struct pl_standing *s, const struct pl_account *a)
{
	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_standing_query *q = s->queries[i];

		pl_account_object(a, q->name);
		pl_account_stats(a, &pl_query_stats_list, pl_query_run_stats(q->run));
		pl_account_stats(a, &pl_standing_stats_list, &q->stats);
		if (q->clocks.kinds != 0)
			pl_clocks_json(&q->clocks, a->json);
		for (unsigned int k = 0; k < q->outs.n_topics; k++) {
			pl_account_object(a, q->outs.topics[k].out->name);
			pl_account_stats(a, &pl_result_stats_list, &q->outs.topics[k].out->stats);
			pl_account_object_end(a);
		}
		pl_account_object_end(a);
	}
}

void pl_standing_put(void *standing, const struct pl_account *a)
{
	const struct pl_standing none = { .n = 0 }, *s = standing;

	if (s == NULL) {
		put_numbers(&none, a->page);
		pl_account_stats(a, &pl_result_stats_list, NULL);
	} else if (a->json != NULL) {
		put_members(s, a);
	} else if (s->n > 0) {
		put_numbers(s, a->page);
	}
}

void pl_standing_put_text(void *arg, struct pl_buf *text)
{
	const struct pl_standing *s = arg;

	for (unsigned int i = 0; i < s->n; i++) {
		const struct pl_standing_query *q = s->queries[i];
		const struct pl_query_stats *stats = pl_query_run_stats(q->run);

		pl_buf_printf(text, "%s%s: ", i > 0 ? "; " : "", q->name);
		if (q->reads_rows)
			pl_buf_printf(text, "%" PRIu64 " rows read", q->stats.rows_read);
		else
			pl_buf_printf(text, "%" PRIu64 " records, %" PRIu64 " rows", stats->records,
				stats->rows);
		pl_account_add(text, stats->counted, "packets counted in the kernel");
		pl_account_add(text, q->stats.rows_repeated, "repeated");
		pl_account_add(text, q->stats.rows_other, "messages of other questions");
		pl_account_add(text, q->stats.rows_bad, "messages that are no rows of it");
		pl_account_add(text, q->stats.told + q->stats.escalated, "told");
		pl_account_add(text, q->stats.limited, "limited");
		pl_account_add(text, stats->late, "records late");
		pl_account_add(text, stats->restarts, "times that the time went back");
		pl_account_add(text, stats->ahead, "records ahead of the clock");
		pl_account_add(text, stats->groups_refused, "records without room for their group");
		pl_account_add(text, stats->texts_refused, "texts without room");
		pl_account_add(text, stats->held_refused, "records of a join without room");
		pl_account_add(
			text, stats->partners_refused, "records of a join with too many partners");
		pl_account_add(text, q->stats.events_dropped, "events dropped");
		pl_account_add(text, q->stats.lines_failed, "lines not written");
		pl_account_add(text, pl_standing_topics_lost(q), "rows not delivered");
		pl_account_add(text, topics_waiting(q), "rows waiting for their output");
		pl_account_add(
			text, pl_standing_topics_refused(q), "records of partitions beyond 4096");
		if (q->clocks.told) {
			pl_buf_str(text, ", times of the clocks ");
			pl_clocks_names(&q->clocks, text);
		}
	}
	if (pl_standing_missed(s) > 0)
		pl_buf_printf(text,
			"; reports and events that queries missed for want of room: %" PRIu64,
			pl_standing_missed(s));
}
