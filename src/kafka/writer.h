/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages into topics by a member of a group, which goes on in what it reads only when they are
 * there: it sends, flushes, and then commits. As a transaction, messages and positions become
 * visible together, or not at all.
 *
 * One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kafka/consumer.h"

struct pl_kafka_writer_config {
	const struct pl_kafka_uri *uri; /* brokers and properties; its topic is not used */
	/* The member's own name among those that write in transactions; NULL: without. */
	const char *transactions;
	uint32_t wait_ms;   /* for a broker, to begin transactions */
	uint32_t max_batch; /* bytes of messages sent together, at most; 0: as librdkafka has it */
	struct pl_diag *warning;
};

struct pl_kafka_writer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/writer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_writer_list;

struct pl_kafka_writer;

/* -EINVAL, -ETIMEDOUT (no transactions), -ENOMEM, with diag. */
int pl_kafka_writer_open(struct pl_kafka_writer **ret, const struct pl_kafka_writer_config *config,
	struct pl_diag *diag);
void pl_kafka_writer_close(struct pl_kafka_writer *w);

/* Makes a topic unless it is there; `partitions` as many, replicas as the brokers have it. */
int pl_kafka_writer_topic(struct pl_kafka_writer *w, const char *topic, uint32_t partitions,
	uint32_t wait_ms, struct pl_diag *diag);

/* Bytes that a message may have for a topic: what the client (message.max.bytes) and the topic
 * (max.message.bytes, where the brokers tell it within wait_ms) allow. `ret_setting` names the one
 * that does not allow more. */
uint32_t pl_kafka_writer_room(
	struct pl_kafka_writer *w, const char *topic, uint32_t wait_ms, const char **ret_setting);

#define PL_KAFKA_BY_KEY (-1)

/* A message; key and value are copied. A partition, or PL_KAFKA_BY_KEY: the key chooses as Java's
 * clients do. Waits while the queue is full. Negative errno: it was not taken, and the writer
 * cannot go on. */
int pl_kafka_writer_send(struct pl_kafka_writer *w, const char *topic, int32_t partition,
	const void *key, size_t key_len, const void *value, size_t len);

/* Waits until all is acknowledged. -EIO with diag: something was not, which is so for ever. */
int pl_kafka_writer_flush(struct pl_kafka_writer *w, uint32_t wait_ms, struct pl_diag *diag);

/* Commits what was sent together with positions of consumers, of which there may be none; a
 * transaction that had neither does nothing. -EIO with diag: it is to be aborted; where the brokers
 * gave no answer, the positions that they have tell whether it happened after all. */
int pl_kafka_writer_commit(struct pl_kafka_writer *w, struct pl_kafka_consumer *const *consumers,
	const struct pl_kafka_position *const *positions, const uint32_t *n, uint32_t n_consumers,
	uint32_t wait_ms, struct pl_diag *diag);

/* Takes back what was sent since the last commit. -EIO with diag: this writer cannot go on; one that
 * is opened with the same name takes it back. */
int pl_kafka_writer_abort(struct pl_kafka_writer *w, uint32_t wait_ms, struct pl_diag *diag);

const struct pl_kafka_writer_stats *pl_kafka_writer_stats(const struct pl_kafka_writer *w);
/* The last error in words; empty: there was none. */
const char *pl_kafka_writer_trouble(const struct pl_kafka_writer *w);
