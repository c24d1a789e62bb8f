/* SPDX-License-Identifier: BSD-2-Clause */
/* How large the messages of a topic may be: what the client allows, and what the brokers say. */
#pragma once

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a message and its batch beside the value: headers, lengths, Kafka's own framing. */
#define PL_KAFKA_BESIDE 512

struct pl_kafka_room {
	uint32_t bytes;
	const char *setting; /* the one that does not allow more */
	uint32_t
		batch; /* of messages that go together: what the topic takes. UINT32_MAX: not told */
};

/* What the client allows (message.max.bytes). */
struct pl_kafka_room pl_kafka_room_client(const rd_kafka_t *rk);

/* A question to the brokers; its answer comes by the queue, which the caller destroys before the client. */
rd_kafka_queue_t *pl_kafka_room_ask(rd_kafka_t *rk, const char *topic, uint32_t limit_ms);
/* Whether the answer, or that there is none, came within wait_ms. *room becomes less where the topic
 * takes less (its max.message.bytes, or the brokers' message.max.bytes). */
bool pl_kafka_room_answer(rd_kafka_queue_t *queue, uint32_t wait_ms, struct pl_kafka_room *room);

/* All of it. Where the brokers do not tell, it is what the client allows. */
struct pl_kafka_room pl_kafka_room_of(rd_kafka_t *rk, const char *topic, uint32_t wait_ms);

/* librdkafka's batch.size of a client or its configuration. */
uint64_t pl_kafka_room_batch(const rd_kafka_conf_t *conf);
