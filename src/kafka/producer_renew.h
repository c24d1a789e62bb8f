/* SPDX-License-Identifier: BSD-2-Clause */
/* What producer.c calls of producer_renew.c. */
#pragma once

#include <stdint.h>

struct pl_kafka_producer;

/* In each turn. */
void pl_kafka_producer_renew(struct pl_kafka_producer *p, uint64_t now_ns);
/* Before the close: what the first client of two still has is sent, or given up. */
void pl_kafka_producer_renew_end(struct pl_kafka_producer *p, int timeout_ms);
/* Frees. */
void pl_kafka_producer_renew_done(struct pl_kafka_producer *p);
