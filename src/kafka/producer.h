/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes to a topic of Kafka without ever waiting: items that find no room are dropped and counted.
 *
 * PL_KAFKA_RECORDS: records of one fixed size (record/packet.h) are gathered into messages of up to
 * uri->records of them (message.h). Each partition has one message being filled; partition = hash
 * modulo their number, so that a symmetric hash keeps both directions of a connection together.
 * With uri->spread the partitions take turns, a message each. Records are copied once, into one of
 * a fixed number of buffers, where librdkafka reads them; a delivery report frees the buffer. So
 * the buffers bound the messages not yet acknowledged.
 *
 * PL_KAFKA_ENTRIES: the same with entries of any length, which the caller writes (raw/message.h).
 *
 * PL_KAFKA_MESSAGES: texts such as JSON results, each a message with a key, copied.
 *
 * Messages, and batches of them, are no larger than the topic takes.
 *
 *   pl_kafka_producer_open(&p, &config, &diag);
 *   for each burst: pl_kafka_producer_put(p, hash, record) ...; pl_kafka_producer_turn(p, now_ns);
 *   pl_kafka_producer_close(p, timeout_ms, &stats);
 *
 * One thread at a time may call; delivery reports run in it. librdkafka has threads of its own:
 * one, and one per broker, which may begin later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock_kind.h"
#include "base/diag.h"
#include "base/stats.h"
#include "kafka/statistics.h"
#include "kafka/uri.h"
#include "record/packet.h"

#define PL_KAFKA_BUFFERS_DEFAULT 64
#define PL_KAFKA_BUFFERS_MAX     65536
#define PL_KAFKA_POOL_MAX        ((size_t)512 << 20) /* bytes in all buffers */
#define PL_KAFKA_PARTITIONS_MAX  4096
#define PL_KAFKA_AGE_NS          20000000
#define PL_KAFKA_MESSAGES_MAX    10000 /* messages that wait, for callers that ask for room */

#define PL_KAFKA_ENTRIES_BYTES   ((size_t)512 << 10) /* of a message of entries, at most */

enum pl_kafka_mode { PL_KAFKA_RECORDS, PL_KAFKA_ENTRIES, PL_KAFKA_MESSAGES };

struct pl_kafka_producer_config {
	const struct pl_kafka_uri *uri; /* needed by open only */
	enum pl_kafka_mode mode;
	enum pl_flat_kind kind; /* of records */
	const char *format;     /* header "f" of entries; lasts as long as the producer */
	uint32_t exporter;      /* header "x" */
	/* 0: 64, or two per partition when that is more, also of partitions that become known later. */
	uint32_t buffers;
	/* A message is sent when it is full, or when its first record waited this long, 0: 20 ms.
	 * While more than half of the buffers wait for their acknowledgement, only full messages
	 * are sent. */
	uint64_t age_ns;
	/* Time that open may wait for a broker to describe the topic. 0: it does not wait; records
	 * are dropped (drop_no_partitions) until a broker has described it. */
	uint32_t wait_ms;
	/* Bytes that a message must have room for: the longest entry or text to be expected, 0: not
	 * known; with records one record, whatever this says. Open refuses a topic that takes less;
	 * with wait_ms 0 pl_kafka_producer_misfit tells of it. */
	uint32_t least;
	/* Called in put, turn and close with the records (or entries, one behind the other) of a
	 * message that the brokers did not acknowledge, but may at another try. Returns true to
	 * take them back (counted in `returned`); some may have been stored all the same. False, or
	 * NULL: they are dropped. */
	bool (*undelivered)(void *arg, const void *records, uint32_t n);
	/* The same for a message of PL_KAFKA_MESSAGES: its key (NULL: none) and value, valid during
	 * the call. Also called for a message that found no room in the client's queue. */
	bool (*undelivered_message)(
		void *arg, const void *key, size_t key_len, const void *value, size_t len);
	/* The same for a message with a note (pl_kafka_producer_send_hashed), from which the caller
	 * can make it again. */
	bool (*undelivered_note)(void *arg, const void *note);
	void *arg;
};

struct pl_kafka_producer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/producer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_producer_list;

struct pl_kafka_producer;

/* Checks that open would take the configuration and the URI's properties, without a broker and
 * without the file of properties. Returns -EINVAL with diag. */
int pl_kafka_producer_check(const struct pl_kafka_producer_config *config, struct pl_diag *diag);

/* Opens a producer. Returns -EINVAL (the configuration, or a property), -ENOENT (no such topic),
 * -EACCES, -ETIMEDOUT (no broker answered), -E2BIG (more than PL_KAFKA_PARTITIONS_MAX partitions),
 * -EMSGSIZE (the topic takes no messages of `least` bytes) or -ENOMEM, with diag. */
int pl_kafka_producer_open(struct pl_kafka_producer **ret,
	const struct pl_kafka_producer_config *config, struct pl_diag *diag);

/* Copies one record of config.kind. Returns 0, or the reason why it was dropped and counted:
 * -ENOBUFS (no buffer), -EAGAIN (partitions not known). */
int pl_kafka_producer_put(struct pl_kafka_producer *p, uint64_t hash, const void *record);

/* PL_KAFKA_ENTRIES: an entry of the time ts_ns: `head`, then `body`, then zeros up to `size` bytes,
 * at most PL_KAFKA_ENTRIES_BYTES. Copied; returns as pl_kafka_producer_put, or -EMSGSIZE when the
 * topic takes no message as long. */
struct pl_kafka_entry {
	const void *head, *body;
	size_t head_len, body_len, size;
	uint64_t ts_ns;
};
int pl_kafka_producer_put_entry(
	struct pl_kafka_producer *p, uint64_t hash, const struct pl_kafka_entry *entry);

/* Sets the clock of the times of the records put from now on; initially PL_STAMP_NONE. */
void pl_kafka_producer_clock(struct pl_kafka_producer *p, enum pl_clock_kind clock);

/* Returns true once a broker has described the topic's partitions. */
bool pl_kafka_producer_knows(const struct pl_kafka_producer *p);

/* Returns true when a put with this hash would find room now; for callers that can wait instead of
 * dropping. Of PL_KAFKA_MESSAGES 10,000 may wait. */
bool pl_kafka_producer_room(const struct pl_kafka_producer *p, uint64_t hash);

/* The same for an entry of `size` bytes. */
bool pl_kafka_producer_room_for(const struct pl_kafka_producer *p, uint64_t hash, size_t size);

/* PL_KAFKA_MESSAGES: sends one message; key and value are copied. A key (NULL: none) chooses the
 * partition as Java's clients do. Returns 0, or the reason why it was dropped and counted: -ENOBUFS
 * (the queue is full), -EMSGSIZE, -EIO (another reason). */
int pl_kafka_producer_send(struct pl_kafka_producer *p, const void *key, size_t key_len,
	const void *value, size_t len);

/* Sends a message that the caller keeps until it has ended; returns 0 only when the client has it.
 * pl_kafka_producer_stored: number of such messages that have not ended (delivered, returned or
 * dropped), which they do in turn and close. */
int pl_kafka_producer_send_stored(struct pl_kafka_producer *p, const void *key, size_t key_len,
	const void *value, size_t len);
uint64_t pl_kafka_producer_stored(const struct pl_kafka_producer *p);

/* Sends a message without a key: the partition is that of the hash, as for records, and the message
 * has the time ts_ns. note: bytes that come back when it is not delivered, copied; NULL: none. Also
 * returns -EAGAIN while partitions are not known. */
struct pl_kafka_note {
	const void *bytes;
	size_t len;
};
int pl_kafka_producer_send_hashed(struct pl_kafka_producer *p, uint64_t hash, uint64_t ts_ns,
	const void *value, size_t len, const struct pl_kafka_note *note);

/* Returns true when every record and message from before the last mark has ended: delivered,
 * returned or dropped. Only then another mark may be set. Changes in turn. */
bool pl_kafka_producer_settled(const struct pl_kafka_producer *p);
void pl_kafka_producer_mark(struct pl_kafka_producer *p);

/* Takes delivery reports and statistics, and sends messages that are old enough. To be called once
 * per burst, and at least every few milliseconds while anything waits. now_ns is monotonic. */
void pl_kafka_producer_turn(struct pl_kafka_producer *p, uint64_t now_ns);

/* Copies the present counters. */
void pl_kafka_producer_stats(
	const struct pl_kafka_producer *p, struct pl_kafka_producer_stats *ret);
/* librdkafka's last statistics, up to a second old. */
const struct pl_kafka_client *pl_kafka_producer_client(const struct pl_kafka_producer *p);
/* Unevenness of the topic's partitions. */
struct pl_kafka_skew;
const struct pl_kafka_skew *pl_kafka_producer_skew(const struct pl_kafka_producer *p);
/* Sum of the rows drop_*. */
uint64_t pl_kafka_producer_dropped(const struct pl_kafka_producer_stats *stats);
/* Returns the reason why the topic takes no message of `least` bytes, empty when it does; shorter
 * messages are sent nevertheless. */
const char *pl_kafka_producer_misfit(const struct pl_kafka_producer *p);
/* Text of the last error, which may be over; empty when there was none. */
const char *pl_kafka_producer_trouble(const struct pl_kafka_producer *p);
/* Returns true when records do not get through, as of the last turn, and sets *ret to the reason:
 * no broker is up, none described the topic within five seconds, or records were refused and none
 * was delivered since, for a minute. */
bool pl_kafka_producer_failing(const struct pl_kafka_producer *p, struct pl_diag *ret);

/* Sends the batches, waits for acknowledgements until none came for timeout_ms, or for six times that
 * in all, gives up the rest (drop_purged; two more seconds at most), and writes the final counters,
 * in which `waiting` is 0. While a second client replaces the first, the first has timeout_ms beside
 * that. `ret` may be NULL, and so may p. */
void pl_kafka_producer_close(
	struct pl_kafka_producer *p, uint32_t timeout_ms, struct pl_kafka_producer_stats *ret);
