/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Into a topic of Kafka, without ever waiting: what finds no room is dropped and counted.
 *
 * PL_KAFKA_RECORDS: records of one fixed size (record/packet.h) are gathered into messages of up to
 * uri->records of them (message.h), one being filled per partition; partition = hash modulo their
 * number, so that a symmetric hash keeps both directions of a connection together; with uri->spread the
 * partitions take turns, a message each. Records are
 * copied once, into one of a fixed number of buffers; librdkafka reads them there, and a delivery
 * report gives the buffer back: the buffers bound the number of messages on their way.
 *
 * PL_KAFKA_ENTRIES: the same with entries of any length, which the caller writes (raw/message.h).
 *
 * PL_KAFKA_MESSAGES: texts such as JSON results, each a message with a key, copied.
 *
 * Messages, and batches of them, are made no larger than the topic takes.
 *
 *   pl_kafka_producer_open(&p, &config, &diag);
 *   for each burst: pl_kafka_producer_put(p, hash, record) ...; pl_kafka_producer_turn(p, now_ns);
 *   pl_kafka_producer_close(p, timeout_ms, &stats);
 *
 * One thread at a time, which is also the one that delivery reports run in. librdkafka has threads
 * of its own: one, and one per broker, which may begin later.
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

#define PL_KAFKA_ENTRIES_BYTES   ((size_t)512 << 10) /* of a message of entries, at most */

enum pl_kafka_mode { PL_KAFKA_RECORDS, PL_KAFKA_ENTRIES, PL_KAFKA_MESSAGES };

struct pl_kafka_producer_config {
	const struct pl_kafka_uri *uri; /* needed by open only */
	enum pl_kafka_mode mode;
	enum pl_flat_kind kind; /* of records */
	const char *format;     /* header "f" of entries; lasts as long as the producer */
	uint32_t exporter;      /* header "x" */
	uint32_t buffers;       /* 0: 64, or two per partition when that is more */
	/* A message is sent when its first record waited this long, 0: 20 ms; or when it is full,
	 * while more than half of the buffers wait for their acknowledgement. */
	uint64_t age_ns;
	/* How long open may wait for a broker to tell of the topic. 0: not at all; records are
	 * dropped (drop_no_partitions) until one has. */
	uint32_t wait_ms;
	/* Bytes that a message has at least room for: the longest entry that is to be expected, or the
	 * longest text. Of records it is one of them. 0: not known. A topic that takes less is refused by
	 * open, or with wait_ms 0 told of. */
	uint32_t least;
	/* Takes back the records of a message that the brokers did not acknowledge, but may another
	 * time; called in put, turn and close. True: they are the caller's again (`returned`); some
	 * may have been stored all the same. False, or NULL: they are dropped. Of records, and of
	 * entries, which stand one behind the other. */
	bool (*undelivered)(void *arg, const void *records, uint32_t n);
	/* The same of a message: its key (NULL: none) and value, which last as long as the call. Also
	 * of one that found no room in the client's queue. */
	bool (*undelivered_message)(
		void *arg, const void *key, size_t key_len, const void *value, size_t len);
	void *arg;
	struct pl_diag
		*warning; /* takes the properties that librdkafka does not know; may be NULL */
};

struct pl_kafka_producer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/producer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_producer_list;

struct pl_kafka_producer;

/* Whether the configuration and the URI's properties are such as open takes, without a broker and
 * without the file of properties. -EINVAL with diag. */
int pl_kafka_producer_check(const struct pl_kafka_producer_config *config, struct pl_diag *diag);

/* -EINVAL (the configuration, or a property), -ENOENT (no such topic), -EACCES, -ETIMEDOUT (no
 * broker answered), -E2BIG (the topic has more partitions than there may be), -EMSGSIZE (it takes no
 * messages that are large enough), -ENOMEM, with diag. */
int pl_kafka_producer_open(struct pl_kafka_producer **ret,
	const struct pl_kafka_producer_config *config, struct pl_diag *diag);

/* Takes one record of config.kind, which is copied. 0, or why it was dropped, which is counted:
 * -ENOBUFS (no buffer), -EAGAIN (partitions not known). */
int pl_kafka_producer_put(struct pl_kafka_producer *p, uint64_t hash, const void *record);

/* PL_KAFKA_ENTRIES: one entry of the time ts_ns, of `head` and then `body` and zeros up to
 * `size` bytes, at most PL_KAFKA_ENTRIES_BYTES; copied. As pl_kafka_producer_put; -EMSGSIZE: the topic takes
 * no message that is as long. */
struct pl_kafka_entry {
	const void *head, *body;
	size_t head_len, body_len, size;
	uint64_t ts_ns;
};
int pl_kafka_producer_put_entry(
	struct pl_kafka_producer *p, uint64_t hash, const struct pl_kafka_entry *entry);

/* Which clock the times of records are of that are put from now on; until then PL_STAMP_NONE. */
void pl_kafka_producer_clock(struct pl_kafka_producer *p, enum pl_clock_kind clock);

/* Whether a broker has told of the topic, so that there are partitions to put into. */
bool pl_kafka_producer_knows(const struct pl_kafka_producer *p);

/* Whether a put with this hash would find room now; for whoever can wait instead of dropping. */
bool pl_kafka_producer_room(const struct pl_kafka_producer *p, uint64_t hash);

/* The same of an entry of so many bytes. */
bool pl_kafka_producer_room_for(const struct pl_kafka_producer *p, uint64_t hash, size_t size);

/* PL_KAFKA_MESSAGES: one message; key and value are copied. A key (NULL: none) chooses the
 * partition as Java's clients do. 0, or why it was dropped, which is counted: -ENOBUFS (the queue
 * is full), -EMSGSIZE, -EIO (another reason). */
int pl_kafka_producer_send(struct pl_kafka_producer *p, const void *key, size_t key_len,
	const void *value, size_t len);

/* The same, of a message that the caller keeps until it has ended: 0 only when it is on its way. How
 * many of these have not ended, delivered, returned or dropped; in turn and close they do. */
int pl_kafka_producer_send_stored(struct pl_kafka_producer *p, const void *key, size_t key_len,
	const void *value, size_t len);
uint64_t pl_kafka_producer_stored(const struct pl_kafka_producer *p);

/* The same without a key: the partition is that of the hash, as for records, and the message has
 * the time ts_ns. -EAGAIN besides: partitions are not known. */
int pl_kafka_producer_send_hashed(
	struct pl_kafka_producer *p, uint64_t hash, uint64_t ts_ns, const void *value, size_t len);

/* Whether everything that was put or sent before the last mark has ended, delivered, returned or
 * dropped; then there may be another mark. In turn it becomes so. */
bool pl_kafka_producer_settled(const struct pl_kafka_producer *p);
void pl_kafka_producer_mark(struct pl_kafka_producer *p);

/* Once per burst, and at least every few milliseconds while anything waits: takes delivery reports
 * and statistics, and sends what is old enough. now_ns is monotonic. */
void pl_kafka_producer_turn(struct pl_kafka_producer *p, uint64_t now_ns);

/* As of now. */
void pl_kafka_producer_stats(
	const struct pl_kafka_producer *p, struct pl_kafka_producer_stats *ret);
/* What librdkafka told last, up to a second old. */
const struct pl_kafka_client *pl_kafka_producer_client(const struct pl_kafka_producer *p);
/* How even its partitions are. */
struct pl_kafka_skew;
const struct pl_kafka_skew *pl_kafka_producer_skew(const struct pl_kafka_producer *p);
/* Sum of the rows drop_*. */
uint64_t pl_kafka_producer_dropped(const struct pl_kafka_producer_stats *stats);
/* Why the topic takes no message of `least` bytes, empty when it does; what is shorter is sent. */
const char *pl_kafka_producer_misfit(const struct pl_kafka_producer *p);
/* The last error in words, empty when there was none; it may be over. */
const char *pl_kafka_producer_trouble(const struct pl_kafka_producer *p);

/* Sends what is there, waits up to timeout_ms for acknowledgements, gives the rest up
 * (drop_purged; that takes two seconds at most), and tells the final numbers, in which nothing
 * waits. `ret` may be NULL, and so may p. */
void pl_kafka_producer_close(
	struct pl_kafka_producer *p, uint32_t timeout_ms, struct pl_kafka_producer_stats *ret);
