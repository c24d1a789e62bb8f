/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of producer_renew.c that producer.c calls. */
#pragma once

#include <stdint.h>

struct pl_kafka_producer;

/* Moves a replacement of the client on, or begins one; called in each turn. */
void pl_kafka_producer_renew(struct pl_kafka_producer *p, uint64_t now_ns);
/* Called before the close: sends or gives up the messages of the client being replaced. */
void pl_kafka_producer_renew_end(struct pl_kafka_producer *p, int timeout_ms);
void pl_kafka_producer_renew_done(struct pl_kafka_producer *p);
