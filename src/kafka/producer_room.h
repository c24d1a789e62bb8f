/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps a producer's messages no larger than its topic takes. */
#pragma once

#include "kafka/producer_state.h"

/* Called for a client just opened: asks for the topic's limit, for at most wait_ms, and limits
 * messages to it; with wait_ms 0 only to the client's own limit. Sets p->resize when the client has
 * to be opened again with smaller batches. Returns -EMSGSIZE with diag. */
int pl_kafka_producer_find_room(
	struct pl_kafka_producer *p, uint32_t wait_ms, struct pl_diag *diag);

/* Called in turn when the number of partitions changed; returns true when the limit of messages is
 * known and the present client keeps it. */
bool pl_kafka_producer_room_turn(struct pl_kafka_producer *p);

/* Returns the largest batch.size whose batches the topic takes. */
uint32_t pl_kafka_producer_batch_most(const struct pl_kafka_producer *p);

/* Returns true when the batches of the present client are no larger than the topic takes. */
bool pl_kafka_producer_batch_fits(const struct pl_kafka_producer *p);

/* Drops the question to the brokers; to be called before its client is destroyed. */
void pl_kafka_producer_room_end(struct pl_kafka_producer *p);

/* Sets batch.size of the next client's configuration to p->resize. */
void pl_kafka_producer_resized(const struct pl_kafka_producer *p, rd_kafka_conf_t *conf);
