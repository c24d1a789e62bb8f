/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of packets into messages of Kafka: what the rows from memory and those from an AF_XDP port
 * have in common. */
#pragma once

#include <stdint.h>

#include "kafka/producer.h"
#include "tap/tap.h"
#include "tests/bench/bench.h"
#include "tests/bench/cluster.h"

#define PL_KAFKA_BENCH_RECORDS 1024 /* of pkt64: messages of 64 KiB */

struct pl_kafka_bench {
	const char *name;  /* of the case */
	const char *codec; /* compression.codec */
	struct pl_cluster cluster;
	struct pl_kafka_uri uri;
	struct pl_kafka_producer *producer;
	struct pl_tap tap;
	struct pl_batch batch;
	struct pl_pkt96 records[PL_BATCH_MAX];
	uint64_t before; /* delivered before this run */
};

/* Opens the producer. -errno, said so. */
int pl_kafka_bench_open(struct pl_kafka_bench *b);
void pl_kafka_bench_close(struct pl_kafka_bench *b);

/* Records into messages; waits, without using the processor, where there is no room. -ETIMEDOUT:
 * the brokers take nothing. */
int pl_kafka_bench_put(struct pl_kafka_bench *b, const struct pl_pkt96 *records, uint32_t n);

/* Waits until all is acknowledged, and checks that so many were delivered since the last call.
 * -errno, said so. */
int pl_kafka_bench_settle(struct pl_kafka_bench *b, uint64_t records);

/* kafka_wire.c: the rows from an AF_XDP port. */
int pl_kafka_bench_wire(struct pl_bench_ctx *ctx);
