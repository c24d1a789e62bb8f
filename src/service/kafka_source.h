/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Kafka topic as a source of records, as a service. Without the property group.id the reader is a
 * group of its own and gets all partitions; with one it shares them with the other members. It
 * commits nothing: each start begins where auto.offset.reset says.
 */
#pragma once

#include "kafka/consumer.h"
#include "runtime/runtime.h"

#define PL_KAFKA_SOURCE_PARTITIONS 4096

struct pl_kafka_source_options {
	/* kafka://HOST[:PORT],…/TOPIC[?property=value&…]; kind=NAME in it is the caller's */
	const char *uri;
	enum pl_flat_kind kind;
	/* Takes records. clock_ns: see pl_kafka_block_clock. */
	void (*records)(
		void *arg, uint32_t partition, const void *records, uint32_t n, uint64_t clock_ns);
	/* NULL, or called when a partition was read to its end, after its last records. */
	void (*at_end)(void *arg, uint32_t partition);
	/* NULL, or called for each message with the clock of its times. */
	void (*clock)(void *arg, enum pl_clock_kind clock);
	void (*turned)(void *arg); /* called after the records of a turn, at least every 200 ms */
	bool (*full)(void *arg);   /* returns true when no more records are wanted */
	void *arg;
	bool shared;        /* other services share the loop: a turn must not wait */
	uint32_t wait_ms;   /* for a broker to describe the topic; 0: 10 s */
	uint32_t gather_ms; /* as of a consumer */
};

struct pl_kafka_source {
	const struct pl_kafka_source_options *o;
	struct pl_kafka_consumer *consumer;
	char name[PL_KAFKA_URI_MAX]; /* the URI without its keys */
	char trouble[256];           /* the last error that was logged */
	uint64_t partitions_refused; /* records of partitions beyond the maximum */
};

extern const struct pl_service_ops pl_kafka_source_service;
extern const struct pl_stats pl_kafka_source_list; /* of a struct pl_kafka_source */

/* Logs the client's error when it is a new one. */
void pl_kafka_source_tell(struct pl_kafka_source *s);
void pl_kafka_source_close(struct pl_kafka_source *s);
void pl_kafka_source_leave(struct pl_kafka_source *s); /* leaves the group without waiting */
