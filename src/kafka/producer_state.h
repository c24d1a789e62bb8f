/* SPDX-License-Identifier: BSD-2-Clause */
/* State of a producer, for producer.c (opens, closes, librdkafka's callbacks), producer_send.c
 * (batches and messages), producer_pool.c (their memory) and producer_room.c (their sizes). */
#pragma once

#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "kafka/producer.h"
#include "kafka/renew.h"
#include "kafka/room.h"
#include "kafka/skew.h"
#include "record/protobuf.h"

/* A buffer: free, being filled (in `filling`, and its partition's), or lent to librdkafka. */
struct pl_kafka_batch {
	TAILQ_ENTRY(pl_kafka_batch) link;
	uint8_t *records;
	uint32_t n;
	uintptr_t side; /* value of the producer's `side` when it was begun */
	size_t bytes;   /* of its records */
	uint32_t partition;
	uint64_t oldest_ns, newest_ns; /* of its records */
	uint32_t clocks;               /* bits 1 << enum pl_clock_kind, of its records */
	uint64_t since_ns;             /* of the turn before its first record */
};

TAILQ_HEAD(pl_kafka_batches, pl_kafka_batch);

/* Bits of a message's opaque word, PL_KAFKA_MESSAGES. The others are the address of its note, of
 * malloc. */
#define SIDE   ((uintptr_t)1)
#define STORED ((uintptr_t)2)
#define NOTE   (~(SIDE | STORED))

/* A second client beside the present one. */
struct pl_kafka_side {
	rd_kafka_t *rk; /* NULL: there is none */
	rd_kafka_topic_t *topic;
};

struct pl_kafka_producer {
	rd_kafka_t *rk;
	rd_kafka_topic_t *topic;
	/* Clients during a replacement (producer_renew.c): `next` until a broker has described the
	 * topic to it, `old` until its messages are acknowledged. */
	struct pl_kafka_side next, old;
	bool next_ready;
	/* Thread that closes a client, `closed`: its end is waited for where it waits for nothing. */
	pthread_t closer;
	bool has_closer;
	atomic_bool closing; /* cleared by the thread */
	struct pl_kafka_side closed;
	uint64_t next_ns; /* when `next` was opened */
	struct pl_diag next_trouble;
	struct pl_kafka_renew renew;
	/* The limit of messages (producer_room.c). `resize`: before anything is sent, the client
	 * has to be replaced by one with this batch.size; 0: it need not. */
	rd_kafka_queue_t *asked; /* the question to the brokers; NULL: none is open */
	bool room_known;
	struct pl_kafka_room room;
	struct pl_diag misfit; /* why messages of `least` bytes do not fit; empty: they do */
	uint32_t least, resize;
	char topic_name[PL_KAFKA_TOPIC_MAX + 1];
	enum pl_kafka_mode mode;
	enum pl_flat_kind kind;
	uint32_t exporter;
	const char *format; /* of entries */
	uint32_t size;      /* of a record, or of its row */
	size_t batch_bytes; /* of a full batch */
	bool protobuf;      /* records are written as rows, from the template `row` */
	uint8_t row[PL_PROTOBUF_ROW_MAX];
	uint32_t records; /* in a full batch */
	uint64_t age_ns;
	uint64_t now_ns; /* of the last turn */
	/* Times of the first turn, and of the last refusal by librdkafka or a broker; 0: there was
	 * none, or a message was delivered since. */
	uint64_t began_ns, refused_ns;
	bool absent; /* brokers are up, and none has described the topic */

	bool spread;
	uint32_t turn_of; /* spread: the partition that gets the next records */
	struct pl_kafka_skew skew;
	uint32_t n_partitions;                                        /* 0: not known */
	struct pl_kafka_batch *of_partition[PL_KAFKA_PARTITIONS_MAX]; /* being filled, or NULL */

	struct pl_kafka_pool *pool; /* producer_pool.c */
	size_t pool_bytes;
	uint32_t buffers;                   /* of the configuration */
	uint32_t n_buffers, n_free, n_lent; /* the rest is being filled */
	struct pl_kafka_batches free;
	struct pl_kafka_batches filling; /* the oldest first */

	enum pl_clock_kind clock; /* of records that are put now */
	uint64_t sequence;
	uint64_t waiting; /* items being filled or lent */
	/* older: messages, or buffers, from before the last mark that have not ended. stored:
	 * messages that the caller still keeps. side: bit that marks messages sent, and buffers
	 * begun, since the last mark. */
	uint64_t older, stored;
	uintptr_t side;
	struct pl_kafka_producer_stats stats;
	struct pl_kafka_client client;
	bool (*undelivered)(void *arg, const void *records, uint32_t n);
	bool (*undelivered_message)(
		void *arg, const void *key, size_t key_len, const void *value, size_t len);
	bool (*undelivered_note)(void *arg, const void *note);
	void *arg;
	struct pl_diag trouble;
};

/* Counts a batch that ended with this error: delivered, returned or dropped. */
void pl_kafka_batch_ended(
	struct pl_kafka_producer *p, rd_kafka_resp_err_t err, const struct pl_kafka_batch *batch);
/* Counts a message that ended with this error; returns true when it was delivered, or the caller
 * took it back. */
bool pl_kafka_message_ended(struct pl_kafka_producer *p, rd_kafka_resp_err_t err, const void *key,
	size_t key_len, const void *value, size_t len);
/* The same for a message with a note. */
bool pl_kafka_noted_ended(struct pl_kafka_producer *p, rd_kafka_resp_err_t err, const void *note);
/* Gives a batch that is being filled to librdkafka. */
void pl_kafka_batch_send(struct pl_kafka_producer *p, struct pl_kafka_batch *batch);
void pl_kafka_batch_free(struct pl_kafka_producer *p, struct pl_kafka_batch *batch);
