/* SPDX-License-Identifier: BSD-2-Clause */
/* The largest message of a topic: the client's limit, and the brokers'. */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a message and its batch beside the value: headers, lengths, Kafka's framing. */
#define PL_KAFKA_BESIDE 512

struct pl_kafka_room {
	uint32_t bytes;
	const char *setting; /* the setting that has this limit */
	uint32_t batch; /* the topic's limit for messages sent together; UINT32_MAX: not known */
};

/* Returns the client's limit (message.max.bytes). */
struct pl_kafka_room pl_kafka_room_client(const rd_kafka_t *rk);

/* Asks the brokers; the answer comes to the queue, which the caller destroys before the client. */
rd_kafka_queue_t *pl_kafka_room_ask(rd_kafka_t *rk, const char *topic, uint32_t limit_ms);
/* Returns true when an answer, also an error, came within wait_ms. Lowers *room where the topic
 * takes less (its max.message.bytes, or the brokers' message.max.bytes). */
bool pl_kafka_room_answer(rd_kafka_queue_t *queue, uint32_t wait_ms, struct pl_kafka_room *room);

/* Asks and waits for the answer. Without one the client's limit is returned. */
struct pl_kafka_room pl_kafka_room_of(rd_kafka_t *rk, const char *topic, uint32_t wait_ms);

/* Returns librdkafka's batch.size of a configuration. */
uint64_t pl_kafka_room_batch(const rd_kafka_conf_t *conf);
