/* SPDX-License-Identifier: BSD-2-Clause */
/* A producer's messages, no larger than its topic takes. */
#pragma once

#include "kafka/producer_state.h"

/* When a client was opened: asks how large messages may be, for at most wait_ms, and makes them no
 * larger. p->resize: a client is to be opened anew. 0 with wait_ms 0, which looks at what the client
 * allows only. -EMSGSIZE with diag. */
int pl_kafka_producer_find_room(
	struct pl_kafka_producer *p, uint32_t wait_ms, struct pl_diag *diag);

/* In turn, while no partitions are taken: whether it is known how large messages may be. */
bool pl_kafka_producer_room_turn(struct pl_kafka_producer *p);

/* Whether what the present client sends together is no more than the topic takes. */
bool pl_kafka_producer_batch_fits(const struct pl_kafka_producer *p);

/* Of the client that asked, which goes. */
void pl_kafka_producer_room_end(struct pl_kafka_producer *p);

/* Gives the configuration of the next client the batch.size that p->resize is. */
void pl_kafka_producer_resized(const struct pl_kafka_producer *p, rd_kafka_conf_t *conf);
