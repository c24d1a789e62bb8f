/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters and results of marking domains: on the metrics page, as a table, as JSON and as text. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "marks/marks.h"
#include "runtime/account.h"

#define TEXT(NAME, TEXT)                                                                           \
	{                                                                                          \
		.name = (NAME), .form = PL_LABEL_TEXT, .text = (TEXT)                              \
	}

/* ---- the metrics page ---- */

static const struct pl_stat topic_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_marks_topic_stats, __VA_ARGS__)
#include "marks/topic_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_marks_topic_list = { topic_rows,
	sizeof(topic_rows) / sizeof(topic_rows[0]) };

typedef const void *numbers(const struct pl_marks_one *one);

static const void *of_domain(const struct pl_marks_one *one)
{
	return pl_mark_domain_stats(one->domain);
}

static const void *of_correlator(const struct pl_marks_one *one)
{
	return pl_mark_domain_correlated(one->domain);
}

static const void *of_regions(const struct pl_marks_one *one)
{
	return &one->region_stats;
}

static void put_list(const struct pl_marks *marks, const struct pl_stats *list, numbers *of,
	struct pl_exposition *page)
{
	for (unsigned int k = 0; k < list->n; k++) {
		const struct pl_stat *stat = &list->rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < marks->n; i++) {
			const struct pl_label label = TEXT("domain", marks->items[i]->name);

			pl_exposition_u64(page, &label, 1, pl_stat_read(stat, of(marks->items[i])));
		}
	}
}

static void put_topics(const struct pl_marks *marks, struct pl_exposition *page)
{
	for (unsigned int k = 0; k < pl_marks_topic_list.n; k++) {
		const struct pl_stat *stat = &pl_marks_topic_list.rows[k];

		if (!pl_exposition_stat(page, stat))
			continue;
		for (unsigned int i = 0; i < marks->n; i++) {
			const struct pl_marks_one *one = marks->items[i];

			for (unsigned int t = 0; t < one->n_topics; t++) {
				const struct pl_label labels[] = { TEXT("domain", one->name),
					TEXT("topic", one->topics[t].name) };

				pl_exposition_u64(
					page, labels, 2, pl_stat_read(stat, &one->topics[t].stats));
			}
		}
	}
}

typedef void put_segment(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_segment_state *s, const void *arg);

static void each_segment(
	const struct pl_marks *marks, struct pl_exposition *page, put_segment *put, const void *arg)
{
	for (unsigned int i = 0; i < marks->n; i++) {
		uint32_t n;
		const struct pl_mark_segment_state *s =
			pl_mark_domain_segments(marks->items[i]->domain, &n);

		for (uint32_t k = 0; k < n; k++) {
			const struct pl_label labels[] = { TEXT("domain", marks->items[i]->name),
				TEXT("segment", s[k].name) };

			put(page, labels, &s[k], arg);
		}
	}
}

static void put_stat(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_segment_state *s, const void *stat)
{
	pl_exposition_u64(page, labels, 2, pl_stat_read(stat, &s->book));
}

static void put_alarms(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_segment_state *s, const void *arg)
{
	(void)arg;
	for (unsigned int bit = 0; bit < PL_MARK_ALARM_KINDS; bit++) {
		const struct pl_label with[] = { labels[0], labels[1],
			TEXT("alarm", pl_mark_alarm_name(bit)) };

		pl_exposition_u64(page, with, 3, s->alarms[bit]);
	}
}

static void put_ratio(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_segment_state *s, const void *arg)
{
	(void)arg;
	if (s->last.counted > 0 && s->last.sent > 0)
		pl_exposition_double(page, labels, 2, (double)s->last.lost / (double)s->last.sent);
}

static void put_delay(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_segment_state *s, const void *arg)
{
	(void)arg;
	if (s->last.delays > 0)
		pl_exposition_double(
			page, labels, 2, (double)s->last.delay_sum_ns / s->last.delays / 1e9);
}

static void put_delay_most(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_segment_state *s, const void *arg)
{
	(void)arg;
	if (s->last.delays > 0)
		pl_exposition_double(page, labels, 2, (double)s->last.delay_most_ns / 1e9);
}

static void put_jitter(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_segment_state *s, const void *arg)
{
	(void)arg;
	if (s->last.jitters > 0)
		pl_exposition_double(
			page, labels, 2, (double)s->last.jitter_sum_ns / s->last.jitters / 1e9);
}

static const struct {
	const char *name, *unit, *help;
	put_segment *put;
} gauges[] = {
	{ "pathline_segment_loss_ratio", NULL,
		"Share of packets lost within the segment, in the newest block that is over.",
		put_ratio },
	{ "pathline_segment_delay_seconds", "seconds",
		"Mean delay of the segment over flows, in the newest block that is over.",
		put_delay },
	{ "pathline_segment_delay_most_seconds", "seconds",
		"Largest delay of a flow in the segment, in the newest block that is over.",
		put_delay_most },
	{ "pathline_segment_jitter_seconds", "seconds",
		"Mean difference of delays from those of the block before, without sign, in the newest block that is over.",
		put_jitter },
};

typedef void put_point(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_point_state *p);

static void each_point(const struct pl_marks *marks, struct pl_exposition *page, put_point *put)
{
	for (unsigned int i = 0; i < marks->n; i++) {
		uint32_t n;
		const struct pl_mark_point_state *p =
			pl_mark_domain_points(marks->items[i]->domain, &n);

		for (uint32_t k = 0; k < n; k++) {
			const struct pl_label labels[] = { TEXT("domain", marks->items[i]->name),
				TEXT("point", p[k].name) };

			put(page, labels, &p[k]);
		}
	}
}

static void put_records(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_point_state *p)
{
	pl_exposition_u64(page, labels, 2, p->records);
}

static void put_missed(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_point_state *p)
{
	pl_exposition_u64(page, labels, 2, p->missed);
}

static void put_late(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_point_state *p)
{
	pl_exposition_u64(page, labels, 2, p->late);
}

static void put_lag(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_point_state *p)
{
	pl_exposition_double(page, labels, 2, (double)p->lag_ns / 1e9);
}

static void put_missing(struct pl_exposition *page, const struct pl_label *labels,
	const struct pl_mark_point_state *p)
{
	pl_exposition_u64(page, labels, 2, p->missing.raised);
}

static void put_all(const struct pl_marks *marks, struct pl_exposition *page)
{
	put_list(marks, &pl_mark_domain_stats_list, of_domain, page);
	put_list(marks, &pl_mark_correlator_stats_list, of_correlator, page);
	put_list(marks, &pl_marks_region_list, of_regions, page);
	put_topics(marks, page);
	pl_exposition_family(page, "pathline_mark_events_dropped", PL_METRIC_COUNTER, NULL,
		"Events of a marking domain that found no room.");
	for (unsigned int i = 0; i < marks->n; i++) {
		const struct pl_label label = TEXT("domain", marks->items[i]->name);

		pl_exposition_u64(page, &label, 1, marks->items[i]->events_dropped);
	}
	for (unsigned int k = 0; k < pl_mark_segment_book_list.n; k++) {
		const struct pl_stat *stat = &pl_mark_segment_book_list.rows[k];

		if (pl_exposition_stat(page, stat))
			each_segment(marks, page, put_stat, stat);
	}
	pl_exposition_family(page, "pathline_segment_alarms", PL_METRIC_COUNTER, NULL,
		"Results of a segment that had an alarm.");
	each_segment(marks, page, put_alarms, NULL);
	for (size_t k = 0; k < sizeof(gauges) / sizeof(gauges[0]); k++) {
		pl_exposition_family(
			page, gauges[k].name, PL_METRIC_GAUGE, gauges[k].unit, gauges[k].help);
		each_segment(marks, page, gauges[k].put, NULL);
	}
	pl_exposition_family(page, "pathline_mark_point_records", PL_METRIC_COUNTER, NULL,
		"Block records taken of a measurement point.");
	each_point(marks, page, put_records);
	pl_exposition_family(page, "pathline_mark_point_missed", PL_METRIC_COUNTER, NULL,
		"Blocks that other measurement points reported and this one did not.");
	each_point(marks, page, put_missed);
	pl_exposition_family(page, "pathline_mark_point_late", PL_METRIC_COUNTER, NULL,
		"Block records of a measurement point left out because the results of their block had been told.");
	each_point(marks, page, put_late);
	pl_exposition_family(page, "pathline_mark_point_lag_seconds", PL_METRIC_GAUGE, "seconds",
		"Least time by which records of a measurement point came after their block was read, over eight blocks.");
	each_point(marks, page, put_lag);
	pl_exposition_family(page, "pathline_mark_point_missing", PL_METRIC_GAUGE, NULL,
		"1 while a measurement point does not report blocks that others report.");
	each_point(marks, page, put_missing);
}

/* ---- the table ---- */

static void put_sum(struct pl_json *json, const struct pl_mark_segment_state *s)
{
	const struct pl_mark_sum *sum = &s->last;

	if (sum->window == 0)
		return;
	pl_json_number(json, "block", sum->block);
	pl_json_number(json, "flows", sum->flows);
	if (sum->counted > 0) {
		pl_json_number(json, "sent", sum->sent);
		pl_json_number(json, "received", sum->received);
		pl_json_key(json, "loss");
		pl_json_i64(json, (int64_t)(sum->sent - sum->received));
	}
	if (sum->counted > 0 && sum->sent > 0) {
		pl_json_key(json, "loss_ratio");
		pl_json_double(json, (double)sum->lost / (double)sum->sent);
	}
	if (sum->delays > 0) {
		pl_json_key(json, "delay_ns");
		pl_json_i64(json, sum->delay_sum_ns / (int64_t)sum->delays);
		pl_json_key(json, "delay_least_ns");
		pl_json_i64(json, sum->delay_least_ns);
		pl_json_key(json, "delay_most_ns");
		pl_json_i64(json, sum->delay_most_ns);
	}
	if (sum->jitters > 0)
		pl_json_number(json, "jitter_ns", sum->jitter_sum_ns / sum->jitters);
	pl_json_key(json, "alarms");
	pl_json_array(json);
	for (unsigned int bit = 0; bit < PL_MARK_ALARM_KINDS; bit++) {
		if ((sum->alarms >> bit & 1) != 0)
			pl_json_str(json, pl_mark_alarm_name(bit));
	}
	pl_json_array_end(json);
}

static void put_raised(struct pl_json *json, const char *name, const struct pl_mark_level *level)
{
	if (level->raised)
		pl_json_str(json, name);
}

static void put_segment_row(
	struct pl_json *json, const char *domain, const struct pl_mark_segment_state *s)
{
	pl_json_object(json);
	pl_json_text(json, "domain", domain);
	pl_json_text(json, "segment", s->name);
	put_sum(json, s);
	pl_json_key(json, "raised");
	pl_json_array(json);
	put_raised(json, pl_event_kind_name(PL_EVENT_SEGMENT_LOSS), &s->loss);
	put_raised(json, pl_event_kind_name(PL_EVENT_SEGMENT_DELAY), &s->delay);
	put_raised(json, pl_event_kind_name(PL_EVENT_SEGMENT_CLOCK), &s->clock);
	put_raised(json, pl_event_kind_name(PL_EVENT_MARK_CONFLICT), &s->conflict);
	pl_json_array_end(json);
	pl_json_key(json, "totals");
	pl_json_object(json);
	pl_stats_json(&pl_mark_segment_book_list, &s->book, NULL, json);
	pl_json_object_end(json);
	pl_json_object_end(json);
}

static void put_point_row(
	struct pl_json *json, const char *domain, const struct pl_mark_point_state *p)
{
	pl_json_object(json);
	pl_json_text(json, "domain", domain);
	pl_json_text(json, "point", p->name);
	pl_json_number(json, "number", p->number);
	pl_json_number(json, "records", p->records);
	pl_json_number(json, "missed", p->missed);
	pl_json_number(json, "late", p->late);
	pl_json_number(json, "lag_ns", p->lag_ns);
	pl_json_key(json, "missing");
	pl_json_bool(json, p->missing.raised);
	if (p->heard_ns != 0) {
		pl_json_number(json, "newest_block", p->newest_block);
		pl_json_number(json, "heard_ns", p->heard_ns);
	}
	pl_json_object_end(json);
}

static void put_table(const struct pl_marks *marks, struct pl_json *json)
{
	pl_json_key(json, "segments");
	pl_json_array(json);
	for (unsigned int i = 0; i < marks->n; i++) {
		uint32_t n;
		const struct pl_mark_segment_state *s =
			pl_mark_domain_segments(marks->items[i]->domain, &n);

		for (uint32_t k = 0; k < n; k++)
			put_segment_row(json, marks->items[i]->name, &s[k]);
	}
	pl_json_array_end(json);
	pl_json_key(json, "points");
	pl_json_array(json);
	for (unsigned int i = 0; i < marks->n; i++) {
		uint32_t n;
		const struct pl_mark_point_state *p =
			pl_mark_domain_points(marks->items[i]->domain, &n);

		for (uint32_t k = 0; k < n; k++)
			put_point_row(json, marks->items[i]->name, &p[k]);
	}
	pl_json_array_end(json);
}

struct asking {
	const struct pl_marks *marks;
	struct pl_json json;
};

static void write_table(void *arg)
{
	struct asking *a = arg;

	put_table(a->marks, &a->json);
}

void pl_marks_page(void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	struct asking a = { .marks = arg };
	char name[48];

	if (pl_http_query_unknown(request->query, NULL, 0, name, sizeof(name)) != 0) {
		pl_http_problem(reply, 400, "bad_parameter", "this page has no parameters");
		return;
	}
	if (a.marks == NULL) {
		pl_http_problem(reply, 404, "no_marks",
			"this process watches no marking domain (the key marks of the configuration)");
		return;
	}
	pl_json_init(&a.json, &reply->body);
	pl_json_object(&a.json);
	pl_json_number(&a.json, "ts_ns", pl_clock_real_ns());
	pl_runtime_visit(write_table, &a);
	pl_json_object_end(&a.json);
	pl_buf_chr(&reply->body, '\n');
	reply->content_type = "application/json";
}

/* ---- accounts ---- */

static void put_members(const struct pl_marks *marks, const struct pl_account *a)
{
	for (unsigned int i = 0; i < marks->n; i++) {
		const struct pl_marks_one *one = marks->items[i];

		pl_account_object(a, one->name);
		pl_account_stats(a, &pl_mark_domain_stats_list, of_domain(one));
		pl_account_stats(a, &pl_mark_correlator_stats_list, of_correlator(one));
		pl_account_stats(a, &pl_marks_region_list, of_regions(one));
		for (unsigned int k = 0; k < one->n_topics; k++) {
			pl_account_object(a, one->topics[k].name);
			pl_account_stats(a, &pl_marks_topic_list, &one->topics[k].stats);
			pl_account_object_end(a);
		}
		pl_account_counter(a, "events_dropped", NULL, NULL, one->events_dropped);
		pl_account_object_end(a);
	}
	put_table(marks, a->json);
}

void pl_marks_put(void *arg, const struct pl_account *a)
{
	const struct pl_marks none = { .n = 0 }, *marks = arg;

	if (marks == NULL)
		put_all(&none, a->page);
	else if (a->json != NULL)
		put_members(marks, a);
	else if (marks->n > 0)
		put_all(marks, a->page);
}

void pl_marks_put_text(void *arg, struct pl_buf *text)
{
	const struct pl_marks *marks = arg;

	for (unsigned int i = 0; i < marks->n; i++) {
		const struct pl_marks_one *one = marks->items[i];
		const struct pl_mark_domain_stats *d = of_domain(one);
		const struct pl_mark_correlator_stats *c = of_correlator(one);
		uint32_t n;
		const struct pl_mark_segment_state *s = pl_mark_domain_segments(one->domain, &n);

		pl_buf_printf(text,
			"%s%s: %" PRIu64 " block records = %" PRIu64 " correlated + %" PRIu64
			" left out; %" PRIu64 " results",
			i > 0 ? "; " : "", one->name, d->records, c->taken, d->records - c->taken,
			c->results);
		for (uint32_t k = 0; k < n; k++)
			pl_buf_printf(text, "; %s: sent %" PRIu64 ", lost %" PRIu64, s[k].name,
				s[k].book.sent, s[k].book.lost);
	}
}
