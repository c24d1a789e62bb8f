/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads Kafka topics for standing queries. */
#include "service/standing_topic.h"

#include "base/clock.h"
#include "kafka/kafka.h"
#include "service/standing_rows.h"
#include "service/standing_source.h"

#if PL_HAVE_KAFKA
#include "runtime/kafka_files.h"

#define LEAST_MS 50

_Static_assert(PL_STANDING_PARTITIONS == PL_KAFKA_SOURCE_PARTITIONS, "as many as a topic gives");

static void records(void *arg, uint32_t partition, const void *data, uint32_t n, uint64_t clock_ns)
{
	const struct pl_standing_source *s = arg;

	pl_query_clock(s->run, clock_ns);
	(void)pl_query_behind(s->run, s->kind, s->partition + partition, true);
	(void)pl_query_feed(s->run, s->kind, data, n, s->partition + partition);
}

static void at_end(void *arg, uint32_t partition)
{
	const struct pl_standing_source *s = arg;

	(void)pl_query_behind(s->run, s->kind, s->partition + partition, false);
}

static void note_clock(void *arg, enum pl_clock_kind clock)
{
	const struct pl_standing_source *s = arg;

	pl_standing_sources_clocks(s->query, pl_clock_bit(clock));
}

static void turned(void *arg)
{
	(void)arg;
}

static bool full(void *arg)
{
	(void)arg;
	return false;
}

int pl_standing_topic_files(const struct pl_standing_source *s, struct pl_confine *confine)
{
	return pl_kafka_files(s->from, confine);
}

/* Milliseconds left for opening the topic, at least LEAST_MS; 0: the default. */
static uint32_t wait_of(const struct pl_standing_source *s)
{
	const uint64_t now_ns = pl_clock_mono_ns(), ms = 1000000;

	if (s->open_by_ns == 0)
		return 0;
	return s->open_by_ns > now_ns + LEAST_MS * ms ? (uint32_t)((s->open_by_ns - now_ns) / ms)
						      : LEAST_MS;
}

int pl_standing_topic_open(struct pl_standing_source *s, struct pl_diag *diag)
{
	s->options = (struct pl_kafka_source_options){ .uri = s->from,
		.kind = s->kind,
		.records = records,
		.at_end = at_end,
		.clock = note_clock,
		.turned = turned,
		.full = full,
		.arg = s,
		.wait_ms = wait_of(s),
		.gather_ms = s->alerts ? PL_STANDING_GATHER_MS : 0,
		.shared = true };
	s->topic.o = &s->options;
	return pl_kafka_source_service.open(&s->topic, diag);
}

bool pl_standing_topic_turn(struct pl_standing_source *s, uint64_t now_ns)
{
	const uint64_t before = pl_kafka_consumer_stats(s->topic.consumer)->received;
	struct pl_diag diag = { .text = "" };

	(void)pl_kafka_source_service.turn(&s->topic, NULL, now_ns, &diag);
	return pl_kafka_consumer_stats(s->topic.consumer)->received != before;
}

/* Returns whether any of its topics is open. */
static bool has_topics(const struct pl_standing_query *q)
{
	bool some = false;

	for (unsigned int i = 0; i < q->n_sources; i++)
		some = some || q->sources[i].topic.consumer != NULL;
	return some;
}

uint64_t pl_standing_topics_refused(const struct pl_standing_query *q)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < q->n_sources; i++)
		n += q->sources[i].topic.partitions_refused;
	return n;
}

static uint64_t sum_of_source(const struct pl_standing_query *q, const struct pl_stat *stat)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < q->n_sources; i++)
		n += pl_stat_read(stat, &q->sources[i].topic);
	return n;
}

static uint64_t sum_of_consumer(const struct pl_standing_query *q, const struct pl_stat *stat)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < q->n_sources; i++) {
		const struct pl_kafka_source *topic = &q->sources[i].topic;

		if (topic->consumer != NULL)
			n += pl_stat_read(stat, pl_kafka_consumer_stats(topic->consumer));
	}
	return n;
}

static void put_list(struct pl_standing_query *const *queries, unsigned int n,
	const struct pl_stats *list,
	uint64_t (*sum)(const struct pl_standing_query *q, const struct pl_stat *stat),
	struct pl_exposition *page)
{
	for (unsigned int k = 0; k < list->n; k++) {
		const struct pl_stat *stat = &list->rows[k];
		bool open = stat->family == NULL;

		for (unsigned int i = 0; stat->family != NULL && i < n; i++) {
			const struct pl_label label = {
				.name = "query", .form = PL_LABEL_TEXT, .text = queries[i]->name
			};

			if (!has_topics(queries[i]))
				continue;
			if (!open)
				pl_exposition_stat(page, stat);
			open = true;
			pl_exposition_u64(page, &label, 1, sum(queries[i], stat));
		}
	}
}

void pl_standing_topics_page(
	struct pl_standing_query *const *queries, unsigned int n, struct pl_exposition *page)
{
	put_list(queries, n, &pl_kafka_consumer_list, sum_of_consumer, page);
	put_list(queries, n, &pl_kafka_source_list, sum_of_source, page);
}

void pl_standing_topic_close(struct pl_standing_source *s, bool leaves)
{
	if (leaves)
		pl_kafka_source_leave(&s->topic);
	else
		pl_kafka_source_close(&s->topic);
}
#else
int pl_standing_topic_files(const struct pl_standing_source *s, struct pl_confine *confine)
{
	(void)s;
	(void)confine;
	return 0;
}

int pl_standing_topic_open(struct pl_standing_source *s, struct pl_diag *diag)
{
	(void)s;
	return pl_kafka_check(diag);
}

bool pl_standing_topic_turn(struct pl_standing_source *s, uint64_t now_ns)
{
	(void)s;
	(void)now_ns;
	return false;
}

void pl_standing_topics_page(
	struct pl_standing_query *const *queries, unsigned int n, struct pl_exposition *page)
{
	(void)queries;
	(void)n;
	(void)page;
}

uint64_t pl_standing_topics_refused(const struct pl_standing_query *q)
{
	(void)q;
	return 0;
}

void pl_standing_topic_close(struct pl_standing_source *s, bool leaves)
{
	(void)s;
	(void)leaves;
}

int pl_standing_rows_open(struct pl_standing_query *q, struct pl_diag *diag)
{
	(void)q;
	return pl_kafka_check(diag);
}

bool pl_standing_rows_turn(struct pl_standing_query *q, uint64_t now_ns)
{
	(void)q;
	(void)now_ns;
	return false;
}

void pl_standing_rows_commit(struct pl_standing_query *q, uint32_t wait_ms)
{
	(void)q;
	(void)wait_ms;
}

void pl_standing_rows_close(struct pl_standing_query *q)
{
	(void)q;
}
#endif
