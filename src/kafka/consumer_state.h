/* SPDX-License-Identifier: BSD-2-Clause */
/* Structures and functions shared by consumer.c and consumer_recv.c. */
#pragma once

#include <librdkafka/rdkafka.h>

#include "kafka/consumer.h"

#define PL_KAFKA_BURST 64 /* messages fetched at a time */

struct pl_kafka_consumer {
	rd_kafka_t *rk;
	rd_kafka_queue_t *queue;
	struct pl_kafka_source_topic {
		char name[PL_KAFKA_TOPIC_MAX + 1];
		uint32_t first, n; /* numbers of its partitions */
	} topics[PL_KAFKA_TOPICS_MAX];
	unsigned int n_topics;
	struct pl_kafka_consumer_config config;

	rd_kafka_message_t *burst[PL_KAFKA_BURST];
	unsigned int n_burst, next;
	rd_kafka_message_t *lent;
	/* By partition: offset of the next message, or PL_KAFKA_UNEXPECTED (consumer_gaps.c). */
	int64_t *expected;
	uint32_t n_expected;
	struct pl_diag gone;   /* about the last messages that count as `expired` */
	uint64_t told_expired; /* stats.expired when the caller was told last */
	uint64_t span_ns,
		asked_ns; /* begin of a time span, and how long requests to brokers took in it */
	bool revoked;     /* the fetching call took partitions away */
	void *aligned;    /* room for the largest message */

	struct pl_kafka_consumer_stats stats;
	struct pl_kafka_client client;
	struct pl_diag trouble;
};

/* Returns the number of a partition, or PL_KAFKA_UNKNOWN for one that was added after the consumer
 * was opened. */
uint32_t pl_kafka_consumer_number(
	const struct pl_kafka_consumer *c, const char *topic, int32_t partition);

/* Makes a list of these positions; the caller destroys it. */
rd_kafka_topic_partition_list_t *pl_kafka_consumer_list_of(
	const struct pl_kafka_consumer *c, const struct pl_kafka_position *positions, uint32_t n);

/* Sets the offset that is read next in a partition. */
#define PL_KAFKA_UNEXPECTED (-1)
void pl_kafka_consumer_expect(struct pl_kafka_consumer *c, uint32_t partition, int64_t offset);
/* Takes note of a message, or of the end of a partition, and counts messages in front of it that the
 * topic deleted before they were read. */
void pl_kafka_consumer_reach(
	struct pl_kafka_consumer *c, const rd_kafka_message_t *m, uint32_t partition);

/* Frees the lent message and the fetched ones. */
void pl_kafka_consumer_forget(struct pl_kafka_consumer *c);
