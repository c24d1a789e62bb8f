/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Out of a topic of Kafka, as a member of a group that shares its partitions (cooperative-sticky:
 * what is not moved goes on).
 *
 *   pl_kafka_consumer_open(&c, &config, &diag);
 *   while (pl_kafka_consumer_recv(c, &block, timeout_ms) > 0) ... block.records ...
 *   pl_kafka_consumer_commit(c, positions, n, wait_ms, &diag);    when the work on them is done
 *   pl_kafka_consumer_close(c);
 *
 * Messages are from outside: what is not a message of records of the kind (message.h) is counted
 * by its fault, and only its place is told. Nothing is committed but what the caller says, so that records come
 * again after a crash, and none is missed.
 *
 * One thread at a time, which is also the one that callbacks run in, within recv and close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/stats.h"
#include "kafka/message.h"
#include "kafka/statistics.h"
#include "kafka/uri.h"

#define PL_KAFKA_GROUP_MAX 255

/* Partitions are numbered through: of several topics those of the first, in the order of their
 * names, come first. Of one topic the numbers are Kafka's. A partition that was added to one of
 * several topics since is PL_KAFKA_UNKNOWN: its messages come, and nobody is told that it does. */
#define PL_KAFKA_UNKNOWN   UINT32_MAX

/* A place in a partition. */
struct pl_kafka_position {
	uint32_t partition;
	int64_t offset;   /* of the next message to read */
	const char *note; /* a text that is committed with it; NULL: none */
};

/* As an offset in `assigned`: where the group left off, or if it never read, where the property
 * auto.offset.reset says (librdkafka: the end; "earliest" is the beginning). */
#define PL_KAFKA_COMMITTED (-1000)

#define PL_KAFKA_OWN_GROUP 64

/* The name of a group that no other reader has. */
void pl_kafka_own_group(char ret[PL_KAFKA_OWN_GROUP]);

struct pl_kafka_consumer_config {
	const struct pl_kafka_uri *uri; /* needed by open only; several topics need wait_ms */
	enum pl_flat_kind kind;
	bool raw;           /* messages are any bytes, not records of the kind */
	const char *format; /* of raw ones: header "f"; NULL: none is asked for. It lasts as long as
			       the consumer */
	const char *group;  /* NULL: the URI's property group.id */
	uint32_t
		wait_ms; /* how long open may wait for a broker to tell of the topic; 0: not at all */
	/* How long brokers may gather a megabyte for an answer; 0: 100 ms. The property
	 * fetch.wait.max.ms of the URI counts instead. */
	uint32_t gather_ms;
	struct pl_diag
		*warning; /* takes the properties that librdkafka does not know; may be NULL */
	/*
	 * Partitions that are this member's from now on; offsets are PL_KAFKA_COMMITTED and may be
	 * changed. Partitions that are no longer: what is to be committed is committed in there,
	 * unless they are lost (others have them already). May be called in several parts. Either
	 * may be NULL.
	 */
	void (*assigned)(void *arg, struct pl_kafka_position *positions, uint32_t n);
	void (*revoked)(void *arg, const uint32_t *partitions, uint32_t n, bool lost);
	void *arg;
};

struct pl_kafka_block {
	uint32_t partition;
	int64_t offset;
	int64_t time_ms; /* the message's, since the Unix epoch; -1: none */
	bool appended; /* that is when the broker took it (message.timestamp.type=LogAppendTime) */
	struct pl_kafka_message message;
	int64_t next;        /* offset of what is read after it */
	bool at_end;         /* no message: the partition was read up to `next`, its end */
	const void *records; /* message.n of the kind, on a multiple of 8 bytes; raw: the value.
				NULL: no message, or none of ours */
	size_t len;          /* bytes of the value */
};

struct pl_kafka_consumer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/consumer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_consumer_list;

struct pl_kafka_consumer;

/* -EINVAL (the configuration, or a property), and with wait_ms -ENOENT (no such topic), -EACCES,
 * -ETIMEDOUT; -ENOMEM; with diag. */
int pl_kafka_consumer_open(struct pl_kafka_consumer **ret,
	const struct pl_kafka_consumer_config *config, struct pl_diag *diag);

/* The next message's records, for which it waits up to timeout_ms. 1, or 0: there was none. They
 * are lent until the next call. A message that is none of ours, and the end of a partition, which
 * is told each time that it is reached, are blocks without records. It has to be called more often than max.poll.interval.ms (5 min),
 * or the group takes the partitions away. */
int pl_kafka_consumer_recv(
	struct pl_kafka_consumer *c, struct pl_kafka_block *ret, uint32_t timeout_ms);

/* Reads these partitions, of which it has read something, from these offsets on: messages that were
 * fetched are left out. -EIO with diag. */
int pl_kafka_consumer_seek(struct pl_kafka_consumer *c, const struct pl_kafka_position *positions,
	uint32_t n, uint32_t wait_ms, struct pl_diag *diag);

/* What the clock showed at the latest when the block's records were made: now, or when the broker
 * took them. Both in ns since the Unix epoch. */
uint64_t pl_kafka_block_clock(const struct pl_kafka_block *block, uint64_t real_ns);

/* Where the group goes on. With wait_ms 0 it is asked for, and a failure is counted only. Else
 * -ETIMEDOUT (no answer in that time; it may still happen), -EIO (refused), with diag. */
int pl_kafka_consumer_commit(struct pl_kafka_consumer *c, const struct pl_kafka_position *positions,
	uint32_t n, uint32_t wait_ms, struct pl_diag *diag);

/* Positions that the group committed, asked for at once: `each` gets those of every partition, the
 * offset, or PL_KAFKA_COMMITTED when there is none, and the text that was given with it, or "". May
 * be called in `assigned`. While no broker coordinates the group it asks again, for wait_ms. -EIO
 * with diag: none is known, and `each` was not called. */
typedef void pl_kafka_committed(void *arg, uint32_t partition, int64_t offset, const char *note);
int pl_kafka_consumer_committed(struct pl_kafka_consumer *c,
	const struct pl_kafka_position *positions, uint32_t n, uint32_t wait_ms,
	pl_kafka_committed *each, void *arg, struct pl_diag *diag);

const struct pl_kafka_consumer_stats *pl_kafka_consumer_stats(const struct pl_kafka_consumer *c);
/* What librdkafka told last, up to a second old. */
const struct pl_kafka_client *pl_kafka_consumer_client(const struct pl_kafka_consumer *c);
/* Sum of the rows bad_*. */
uint64_t pl_kafka_consumer_bad(const struct pl_kafka_consumer_stats *stats);
/* The last error in words, empty when there was none; it may be over. */
const char *pl_kafka_consumer_trouble(const struct pl_kafka_consumer *c);

/* Leaves the group: `revoked` is called for what it has. With no broker there that takes up to
 * session.timeout.ms. NULL is fine. */
void pl_kafka_consumer_close(struct pl_kafka_consumer *c);
/* The same in the background, where nobody waits: `revoked` is not called, and what was committed
 * before is. A process that ends meanwhile leaves after session.timeout.ms. NULL is fine. */
void pl_kafka_consumer_leave(struct pl_kafka_consumer *c);
