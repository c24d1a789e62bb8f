/* SPDX-License-Identifier: BSD-2-Clause */
/* Feeds taps, streams of the collector and topics to the run of a standing query. */
#include "service/standing_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kafka/uri.h"
#include "service/standing_rows.h"
#include "service/standing_topic.h"

static bool is_topic(const char *from)
{
	return strncmp(from, PL_KAFKA_SCHEME, strlen(PL_KAFKA_SCHEME)) == 0;
}

static bool has_topic(const struct pl_standing_source *s)
{
	return s->tap < 0 && s->stream == PL_QUERY_STREAMS;
}

static int tap_of(const struct pl_taps *taps, const char *name)
{
	for (unsigned int i = 0; i < taps->n; i++) {
		if (strcmp(taps->taps[i]->name, name) == 0)
			return (int)i;
	}
	return -1;
}

int pl_standing_sources_make(struct pl_standing_query *q, const struct pl_taps *taps,
	const struct pl_config_query *c, uint32_t *ret_partitions, struct pl_diag *diag)
{
	char *const *from = c->from.items;
	int r = 0;

	*ret_partitions = 0;
	for (size_t i = 0; r == 0 && i < c->from.n; i++) {
		struct pl_standing_source *s = &q->sources[q->n_sources++];

		*s = (struct pl_standing_source){ .from = strdup(from[i]),
			.tap = -1,
			.stream = pl_config_query_stream(from[i]),
			.kind = PL_FLAT_MAX,
			.partition = *ret_partitions };
		if (s->from == NULL)
			return -ENOMEM;
		if (q->reads_rows) {
			*ret_partitions = 1; /* for a run without records */
			continue;
		}
		if (is_topic(s->from)) {
			r = pl_config_query_topic(c, q->query, s->from, &s->kind, diag);
			*ret_partitions += PL_STANDING_PARTITIONS;
			continue;
		}
		*ret_partitions += 1;
		if (s->stream != PL_QUERY_STREAMS)
			continue;
		s->tap = tap_of(taps, s->from);
		if (s->tap >= 0)
			continue;
		pl_diag_set(diag, "query %s: a restart starts its tap %s", q->name, s->from);
		r = -EINVAL;
	}
	return r;
}

bool pl_standing_sources_same(const struct pl_standing_query *q, const struct pl_config_query *c)
{
	char *const *from = c->from.items;

	for (unsigned int i = 0; i < q->n_sources && q->n_sources == c->from.n; i++) {
		if (strcmp(q->sources[i].from, from[i]) != 0)
			return false;
	}
	return q->n_sources == c->from.n;
}

int pl_standing_sources_files(const struct pl_standing_query *q, struct pl_confine *confine)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < q->n_sources; i++) {
		if (has_topic(&q->sources[i]))
			r = pl_standing_topic_files(&q->sources[i], confine);
	}
	return r;
}

int pl_standing_sources_open(struct pl_standing_query *q, struct pl_diag *diag)
{
	int r = 0;

	if (q->reads_rows)
		return pl_standing_rows_open(q, diag);
	for (unsigned int i = 0; r == 0 && i < q->n_sources; i++) {
		q->sources[i].run = q->run;
		q->sources[i].query = q;
		q->sources[i].open_by_ns = q->open_by_ns;
		q->sources[i].alerts = q->alerts;
		if (has_topic(&q->sources[i]))
			r = pl_standing_topic_open(&q->sources[i], diag);
	}
	return r;
}

bool pl_standing_sources_turn(struct pl_standing_query *q, uint64_t now_ns)
{
	bool busy = false;

	if (q->reads_rows)
		return pl_standing_rows_turn(q, now_ns);
	for (unsigned int i = 0; i < q->n_sources; i++)
		busy |= has_topic(&q->sources[i]) && pl_standing_topic_turn(&q->sources[i], now_ns);
	return busy;
}

bool pl_standing_sources_poll(const struct pl_standing_query *q)
{
	bool some = false;

	for (unsigned int i = 0; i < q->n_sources; i++)
		some |= has_topic(&q->sources[i]);
	return some;
}

void pl_standing_sources_clocks(struct pl_standing_query *q, uint32_t kinds)
{
	struct pl_buf text;

	if (!pl_clocks_note(&q->clocks, kinds))
		return;
	pl_buf_init(&text);
	pl_clocks_text(&q->clocks, &text);
	pl_warn("query", "%s: %.*s", q->name, (int)text.len, text.data != NULL ? text.data : "");
	pl_buf_done(&text);
}

void pl_standing_sources_take(struct pl_standing_query *q, const struct pl_taps *taps, int tap,
	enum pl_flat_kind kind, const void *records, uint32_t n)
{
	/* The times of a capture say nothing about this host's clock. */
	const bool live = taps->taps[tap]->service.live;

	for (unsigned int i = 0; i < q->n_sources; i++) {
		const struct pl_standing_source *s = &q->sources[i];

		if (s->tap != tap)
			continue;
		pl_standing_sources_clocks(q, taps->taps[tap]->service.clocks);
		if (live)
			pl_query_clock(q->run, pl_clock_real_ns());
		(void)pl_query_feed_flat(q->run, kind, records, n, s->partition);
	}
}

/* Returns the partition of the collector's stream; -1: it is no source. */
static int64_t partition_of(const struct pl_standing_query *q, unsigned int stream)
{
	for (unsigned int i = 0; i < q->n_sources; i++) {
		if (q->sources[i].stream == stream)
			return q->sources[i].partition;
	}
	return -1;
}

void pl_standing_sources_reports(struct pl_standing_query *q, const struct pl_record_batch *reports)
{
	const int64_t paths = partition_of(q, PL_QUERY_PATHS),
		      hops = partition_of(q, PL_QUERY_HOPS);

	if (paths < 0 && hops < 0)
		return;
	/* A watermark is kept for each stream of a partition: one partition does for both. */
	pl_query_clock(q->run, pl_clock_real_ns());
	(void)pl_query_feed_reports(q->run, reports, (uint32_t)(paths >= 0 ? paths : hops));
}

void pl_standing_sources_events(
	struct pl_standing_query *q, const struct pl_event *events, uint32_t n)
{
	const int64_t partition = partition_of(q, PL_QUERY_EVENTS);

	if (partition < 0)
		return;
	pl_query_clock(q->run, pl_clock_real_ns());
	for (uint32_t i = 0, from = 0; i <= n; i++) {
		if (i < n && events[i].event != PL_EVENT_QUERY)
			continue;
		(void)pl_query_feed(
			q->run, PL_QUERY_EVENTS, events + from, i - from, (uint32_t)partition);
		from = i + 1;
	}
}

void pl_standing_sources_values(
	struct pl_standing_query *q, const struct pl_value *values, uint32_t n)
{
	const int64_t partition = partition_of(q, PL_QUERY_VALUES);

	if (partition < 0)
		return;
	pl_query_clock(q->run, pl_clock_real_ns());
	(void)pl_query_feed(q->run, PL_QUERY_VALUES, values, n, (uint32_t)partition);
}

uint32_t pl_standing_sources_streams(const struct pl_standing_query *q)
{
	uint32_t streams = 0;

	for (unsigned int i = 0; i < q->n_sources; i++) {
		if (q->sources[i].stream != PL_QUERY_STREAMS)
			streams |= 1u << q->sources[i].stream;
	}
	return streams;
}

uint32_t pl_standing_sources_kinds(const struct pl_standing_query *q, int tap)
{
	uint32_t kinds = 0;

	for (unsigned int i = 0; i < q->n_sources; i++) {
		for (int kind = 0; kind < PL_FLAT_MAX && q->sources[i].tap == tap; kind++) {
			if (pl_query_reads(q->query, (enum pl_flat_kind)kind))
				kinds |= 1u << pl_flat_long((enum pl_flat_kind)kind);
		}
	}
	return kinds;
}

void pl_standing_sources_close(struct pl_standing_query *q)
{
	pl_standing_rows_close(q);
	for (unsigned int i = 0; i < q->n_sources; i++) {
		pl_standing_topic_close(&q->sources[i], q->leaves);
		free(q->sources[i].from);
	}
	q->n_sources = 0;
}
