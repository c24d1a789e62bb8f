/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes messages to topics for a member of a group, which commits its positions only when the
 * messages are stored: it sends, flushes, and then commits. In a transaction, messages and
 * positions become visible together, or not at all.
 *
 * One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kafka/consumer.h"

struct pl_kafka_writer_config {
	const struct pl_kafka_uri *uri; /* brokers and properties; its topic is not used */
	/* The member's own transactional.id; NULL: no transactions. */
	const char *transactions;
	uint32_t wait_ms;   /* for a broker to answer before transactions */
	uint32_t max_batch; /* bytes of messages sent together, at most; 0: librdkafka's default */
};

struct pl_kafka_writer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/writer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_writer_list;

struct pl_kafka_writer;

/* Opens a writer. Returns -EINVAL or -ETIMEDOUT (no transactions) with diag, or -ENOMEM. */
int pl_kafka_writer_open(struct pl_kafka_writer **ret, const struct pl_kafka_writer_config *config,
	struct pl_diag *diag);
void pl_kafka_writer_close(struct pl_kafka_writer *w);

/* Creates a topic with that many partitions, and the brokers' default of replicas, unless it
 * exists. Returns -EINVAL or -EIO with diag. */
int pl_kafka_writer_topic(struct pl_kafka_writer *w, const char *topic, uint32_t partitions,
	uint32_t wait_ms, struct pl_diag *diag);

/* Returns the largest message of a topic in bytes: the lower limit of the client
 * (message.max.bytes) and the topic (max.message.bytes, where the brokers tell it within wait_ms).
 * `ret_setting` names the setting that limits it. */
uint32_t pl_kafka_writer_room(
	struct pl_kafka_writer *w, const char *topic, uint32_t wait_ms, const char **ret_setting);

#define PL_KAFKA_BY_KEY (-1)

/* Sends a message; key and value are copied. `partition` may be PL_KAFKA_BY_KEY: the key chooses it
 * as Java's clients do. Waits while the queue is full. Returns a negative errno when it was not
 * taken; the writer cannot go on then. */
int pl_kafka_writer_send(struct pl_kafka_writer *w, const char *topic, int32_t partition,
	const void *key, size_t key_len, const void *value, size_t len);

/* Waits up to wait_ms until every message is acknowledged. Returns -EIO with diag when one was not;
 * so does each later call. */
int pl_kafka_writer_flush(struct pl_kafka_writer *w, uint32_t wait_ms, struct pl_diag *diag);

/* Commits the messages sent, with positions of consumers, of which there may be none; without
 * either it does nothing. Returns -EIO with diag: the transaction is to be aborted; when brokers
 * gave no answer, the committed positions tell whether it happened after all. */
int pl_kafka_writer_commit(struct pl_kafka_writer *w, struct pl_kafka_consumer *const *consumers,
	const struct pl_kafka_position *const *positions, const uint32_t *n, uint32_t n_consumers,
	uint32_t wait_ms, struct pl_diag *diag);

/* Aborts the transaction: takes back the messages sent since the last commit. Returns -EIO with
 * diag: this writer cannot go on, and the next one opened with the same name takes them back. */
int pl_kafka_writer_abort(struct pl_kafka_writer *w, uint32_t wait_ms, struct pl_diag *diag);

const struct pl_kafka_writer_stats *pl_kafka_writer_stats(const struct pl_kafka_writer *w);
/* Text of the last error; empty when there was none. */
const char *pl_kafka_writer_trouble(const struct pl_kafka_writer *w);
