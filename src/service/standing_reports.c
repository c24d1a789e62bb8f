/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes records, events and values of the collector for standing queries. */
#include "service/standing_reports.h"

#include <time.h>

#include "base/clock.h"
#include "export/queue.h"
#include "lang/lang.h"
#include "pipeline/pipeline.h"
#include "service/report_feed.h"
#include "service/standing_source.h"

/* No name in the configuration may have a blank. */
#define OUTPUT_NAME   "standing queries"
#define QUEUE_RECORDS 65536 /* per worker */
#define LOOK_NS       1000000

/* The output is needed for queries, which a reload may add where there are taps. */
static bool has_output(const struct pl_config *config)
{
	return config->taps.n + config->queries.n > 0;
}

static bool reads_collector(const struct pl_config_query *query)
{
	char *const *from = query->from.items;

	for (size_t i = 0; i < query->from.n; i++) {
		if (pl_config_query_stream(from[i]) != PL_QUERY_STREAMS)
			return true;
	}
	return false;
}

uint64_t pl_standing_reports_memory(const struct pl_config *config)
{
	const struct pl_config_query *q = config->queries.items;
	uint64_t sum = has_output(config)
			       ? pl_config_workers(config) * pl_export_queue_memory(QUEUE_RECORDS)
			       : 0;

	for (size_t i = 0; i < config->queries.n; i++) {
		if (reads_collector(&q[i]))
			return sum + pl_report_feed_memory();
	}
	return sum;
}

static void reports(void *arg, const struct pl_record_batch *batch)
{
	const struct pl_standing *s = arg;

	for (unsigned int i = 0; i < s->n; i++)
		pl_standing_sources_reports(s->queries[i], batch);
}

static void events(void *arg, const struct pl_event *found, uint32_t n)
{
	const struct pl_standing *s = arg;

	for (unsigned int i = 0; i < s->n; i++)
		pl_standing_sources_events(s->queries[i], found, n);
}

static void values(void *arg, const struct pl_value *found, uint32_t n)
{
	const struct pl_standing *s = arg;

	for (unsigned int i = 0; i < s->n; i++)
		pl_standing_sources_values(s->queries[i], found, n);
}

void pl_standing_take_reports(struct pl_standing *s)
{
	const struct pl_report_feed_sink sink = { reports, events, values, s };

	if (s->feed != NULL)
		pl_report_feed_take(s->feed, &sink);
}

int pl_standing_want_reports(struct pl_standing *s, uint32_t streams)
{
	const struct pl_output_options options = { .name = OUTPUT_NAME,
		.paths = (streams & (1u << PL_QUERY_PATHS | 1u << PL_QUERY_HOPS)) != 0,
		.events = (streams & 1u << PL_QUERY_EVENTS) != 0,
		.values = (streams & 1u << PL_QUERY_VALUES) != 0 };
	int r;

	if (s->output == NULL)
		return 0;
	r = streams != 0 ? pl_report_feed_make_room(s->feed) : 0;
	return r == 0 ? pl_output_configure(s->output, &options, NULL) : r;
}

int pl_standing_open_reports(
	struct pl_standing *s, struct pl_pipeline *pipeline, uint32_t streams, struct pl_diag *diag)
{
	struct pl_export *e;
	int r = pl_report_feed_new(&e, &s->feed);

	if (r == 0)
		r = pl_pipeline_add_output(pipeline, OUTPUT_NAME, e, QUEUE_RECORDS, diag);
	if (r < 0) {
		s->feed = NULL;
		return r;
	}
	s->pipeline = pipeline;
	s->output = pl_pipeline_find_output(pipeline, OUTPUT_NAME);
	return pl_standing_want_reports(s, streams);
}

void pl_standing_end_reports(struct pl_standing *s)
{
	uint64_t limit_ns, until_ns;
	struct pl_output_stats stats;

	if (s->output == NULL)
		return;
	limit_ns = pl_pipeline_config(s->pipeline)->drain_ns;
	until_ns = pl_clock_mono_ns() + limit_ns;
	pl_pipeline_end_sources(s->pipeline, limit_ns);
	/* Events that queries raise from now on are not read by queries. */
	(void)pl_standing_want_reports(s, 0);
	for (;;) {
		pl_standing_take_reports(s);
		pl_output_stats(s->output, &stats);
		if (stats.undelivered == 0 || pl_clock_mono_ns() >= until_ns)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
	/* The output's thread may still have held entries. */
	(void)pl_output_stop(s->output, pl_clock_mono_ns());
	pl_standing_take_reports(s);
}

uint64_t pl_standing_missed(const struct pl_standing *s)
{
	struct pl_output_stats stats = { .offered = 0 };

	if (s->output != NULL)
		pl_output_stats(s->output, &stats);
	return stats.dropped[PL_EXPORT_QUEUE_FULL];
}
