/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a topic of Kafka as a source. */
#include "service/kafka_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/account.h"
#include "runtime/kafka_files.h"

#define WAIT_MS         200 /* for a message; a signal may come just before the wait */
#define BROKER_WAIT_MS  10000
#define MESSAGES_A_TURN 64

static int keys(void *arg, struct pl_kafka_uri *uri, struct pl_kafka_consumer_config *config,
	struct pl_diag *diag)
{
	const struct pl_kafka_source *s = arg;

	(void)config;
	(void)pl_kafka_uri_take(uri, "kind");
	if (uri->format <= PL_KAFKA_FORMAT_ROWBINARY)
		return 0;
	pl_diag_set(diag, "%s: records have format=rowbinary", s->name);
	return -EINVAL;
}

static int files(void *service, struct pl_confine *confine)
{
	const struct pl_kafka_source *s = service;

	return pl_kafka_files(s->o->uri, confine);
}

static int open_consumer(struct pl_kafka_source *s, struct pl_diag *diag)
{
	const struct pl_kafka_reader reader = {
		.uri = s->o->uri, .several = true, .keys = keys, .arg = s
	};
	const struct pl_kafka_consumer_config config = { .kind = s->o->kind,
		.gather_ms = s->o->gather_ms,
		.wait_ms = s->o->wait_ms > 0 ? s->o->wait_ms : BROKER_WAIT_MS };

	return pl_kafka_reader_open(&s->consumer, &reader, &config, NULL, diag);
}

static int open_service(void *service, struct pl_diag *diag)
{
	struct pl_kafka_source *s = service;

	snprintf(s->name, sizeof(s->name), "%.*s", (int)strcspn(s->o->uri, "?"), s->o->uri);
	return open_consumer(s, diag);
}

void pl_kafka_source_tell(struct pl_kafka_source *s)
{
	const char *trouble = pl_kafka_consumer_trouble(s->consumer);
	const char *expired = pl_kafka_consumer_expired(s->consumer);

	if (expired != NULL)
		pl_say("%s: %s", s->name, expired);
	if (trouble[0] == '\0' || strncmp(trouble, s->trouble, sizeof(s->trouble) - 1) == 0)
		return;
	snprintf(s->trouble, sizeof(s->trouble), "%s", trouble);
	pl_say("%s: %s", s->name, s->trouble);
}

static int turn(void *service, const struct pollfd *fds, uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_kafka_source *s = service;

	(void)fds;
	(void)now_ns;
	(void)diag;
	for (int i = 0; i < MESSAGES_A_TURN && !s->o->full(s->o->arg); i++) {
		struct pl_kafka_block block;

		/* Only the first call waits: other messages are there already, or the turn ends. */
		if (pl_kafka_consumer_recv(
			    s->consumer, &block, i == 0 && !s->o->shared ? WAIT_MS : 0) <= 0)
			break;
		if (block.at_end && s->o->at_end != NULL &&
			block.partition < PL_KAFKA_SOURCE_PARTITIONS)
			s->o->at_end(s->o->arg, block.partition);
		if (block.records == NULL)
			continue;
		if (s->o->clock != NULL)
			s->o->clock(s->o->arg, block.message.clock);
		if (block.partition >= PL_KAFKA_SOURCE_PARTITIONS)
			s->partitions_refused += block.message.n;
		else
			s->o->records(s->o->arg, block.partition, block.records, block.message.n,
				pl_kafka_block_clock(&block, pl_clock_real_ns()));
	}
	pl_kafka_source_tell(s);
	s->o->turned(s->o->arg);
	return s->o->full(s->o->arg) ? PL_TURN_OVER : PL_TURN_IDLE;
}

static bool waits(void *service)
{
	(void)service;
	return true;
}

static const struct pl_stat stat_rows[] = {
	PL_STAT_ROW(struct pl_kafka_source, COUNTER, partitions_refused, "partitions_refused",
		"pathline_kafka_partitions_refused", NULL,
		"Records left out because their partition's number is above 4095, or it was added to one of several topics since the start.")
};
const struct pl_stats pl_kafka_source_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

static void put(void *service, const struct pl_account *a)
{
	const struct pl_kafka_source *s = service;

	pl_account_object(a, "kafka");
	pl_account_stats(a, &pl_kafka_consumer_list,
		s != NULL ? pl_kafka_consumer_stats(s->consumer) : NULL);
	pl_account_stats(
		a, &pl_kafka_client_list, s != NULL ? pl_kafka_consumer_client(s->consumer) : NULL);
	pl_account_stats(a, &pl_kafka_source_list, s);
	pl_account_object_end(a);
}

static void put_text(void *service, struct pl_buf *text)
{
	const struct pl_kafka_source *s = service;
	const struct pl_kafka_consumer_stats *stats = pl_kafka_consumer_stats(s->consumer);
	const uint64_t bad = pl_kafka_consumer_bad(stats);

	pl_buf_printf(
		text, "%" PRIu64 " messages, %" PRIu64 " records", stats->received, stats->records);
	if (bad > 0)
		pl_buf_printf(text, ", %" PRIu64 " messages that are none of ours", bad);
	pl_account_add(text, stats->expired, "messages that were deleted before they were read");
	if (s->partitions_refused > 0)
		pl_buf_printf(text,
			", %" PRIu64
			" records of partitions beyond 4096, or of one that is new among several topics",
			s->partitions_refused);
}

void pl_kafka_source_leave(struct pl_kafka_source *s)
{
	pl_kafka_consumer_leave(s->consumer);
	s->consumer = NULL;
}

void pl_kafka_source_close(struct pl_kafka_source *s)
{
	pl_kafka_consumer_close(s->consumer);
	s->consumer = NULL;
}

const struct pl_service_ops pl_kafka_source_service = {
	.name = "kafka",
	.files = files,
	.open = open_service,
	.turn = turn,
	.waits = waits,
	.account = put_text,
	.counters = put,
};
