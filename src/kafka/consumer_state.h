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
	bool revoked;  /* the fetching call took partitions away */
	void *aligned; /* room for the largest message */

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

/* Frees the lent message and the fetched ones. */
void pl_kafka_consumer_forget(struct pl_kafka_consumer *c);
