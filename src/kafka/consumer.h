/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a topic of Kafka as a member of a group that shares its partitions (cooperative-sticky:
 * partitions that do not move are read on).
 *
 *   pl_kafka_consumer_open(&c, &config, &diag);
 *   while (pl_kafka_consumer_recv(c, &block, timeout_ms) > 0) ... block.records ...
 *   pl_kafka_consumer_commit(c, positions, n, wait_ms, &diag);    when the work on them is done
 *   pl_kafka_consumer_close(c);
 *
 * Messages are from outside: one that is not of records of the kind (message.h) is counted by its
 * fault, and the caller gets only its offset. Only positions of the caller are committed, so that
 * after a crash records come again, and none is missed.
 *
 * One thread at a time may call; callbacks run in it, within recv and close.
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

/* Numbers of partitions run through all topics: those of the first topic by name come first. With
 * one topic they are Kafka's. A partition that was added to one of several topics later is
 * PL_KAFKA_UNKNOWN: its messages come, but `assigned` and `revoked` leave it out. */
#define PL_KAFKA_UNKNOWN   UINT32_MAX

/* A place in a partition. */
struct pl_kafka_position {
	uint32_t partition;
	int64_t offset;   /* of the next message to read */
	const char *note; /* a text that is committed with it; NULL: none */
};

/* Offset in `assigned` of a partition that goes on where the group left off, or if the group never
 * read it, where the property auto.offset.reset says (librdkafka: the end; "earliest" is the
 * beginning). */
#define PL_KAFKA_COMMITTED    (-1000)

/* Most KiB of messages that were fetched and not received yet, unless the URI has another
 * queued.max.messages.kbytes. */
#define PL_KAFKA_QUEUE_KBYTES 262144

struct pl_kafka_consumer_config {
	const struct pl_kafka_uri *uri; /* needed by open only; several topics need wait_ms */
	enum pl_flat_kind kind;
	bool raw;           /* messages are any bytes, not records of the kind */
	const char *format; /* of raw messages: header "f"; NULL: any. It lasts as long as the
			     * consumer */
	const char *group;  /* NULL: the URI's property group.id */
	uint32_t wait_ms;   /* how long open may wait for a broker to describe the topic; 0: not at
			  * all */
	/* Time that brokers may gather a megabyte for an answer; 0: 100 ms. The URI's property
	 * fetch.wait.max.ms takes precedence. */
	uint32_t gather_ms;
	/* `assigned`: this member reads these partitions from now on; it may change their offsets,
	 * which are PL_KAFKA_COMMITTED. `revoked`: it no longer reads these, and may commit
	 * positions within the call, unless the partitions are lost (other members have them
	 * already). Each may be called for several parts of a list. Either may be NULL. */
	void (*assigned)(void *arg, struct pl_kafka_position *positions, uint32_t n);
	void (*revoked)(void *arg, const uint32_t *partitions, uint32_t n, bool lost);
	void *arg;
};

struct pl_kafka_block {
	uint32_t partition;
	int64_t offset;
	int64_t time_ms; /* the message's, since the Unix epoch; -1: none */
	bool appended; /* set by the broker as it arrived (message.timestamp.type=LogAppendTime) */
	struct pl_kafka_message message;
	int64_t next;        /* offset that is read after it */
	bool at_end;         /* no message: the partition was read up to its end, `next` */
	const void *records; /* message.n of the kind, aligned to 8 bytes; raw: the value. NULL: no
			      * message, or a bad one */
	size_t len;          /* bytes of the value */
};

struct pl_kafka_consumer_stats {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/consumer_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_consumer_list;

struct pl_kafka_consumer;

/* Joins the group. Returns -EINVAL (the configuration, or a property), with wait_ms also -ENOENT
 * (no such topic), -EACCES or -ETIMEDOUT; -ENOMEM; with diag. */
int pl_kafka_consumer_open(struct pl_kafka_consumer **ret,
	const struct pl_kafka_consumer_config *config, struct pl_diag *diag);

/* A topic as a URI names it, with properties of its file, and in a group of its own unless the URI,
 * or config.group, names one. */
struct pl_kafka_reader {
	const char *uri;
	bool several; /* of topics */
	bool oldest;  /* begins with the oldest message unless the URI says otherwise */
	bool alone;   /* in a group of its own, whatever the URI says */
	/* Takes the caller's own keys out of the URI, and checks the rest; may change what will be
	 * opened. NULL: there are none. */
	int (*keys)(void *arg, struct pl_kafka_uri *uri, struct pl_kafka_consumer_config *config,
		struct pl_diag *diag);
	void *arg;
};

/* Opens a consumer of `given`, whose `uri` is ignored. *ret_grouped (may be NULL): it shares a
 * group that was named. Returns as pl_kafka_consumer_open, or an error of the URI or its file, with
 * diag. */
int pl_kafka_reader_open(struct pl_kafka_consumer **ret, const struct pl_kafka_reader *reader,
	const struct pl_kafka_consumer_config *given, bool *ret_grouped, struct pl_diag *diag);

/* Fills *ret with the next message, for which it waits up to timeout_ms. Returns 1, or 0 when none
 * came. The records are lent until the next call. A message that is bad, and the end of a
 * partition, reported each time it is reached, are blocks without records. Must be called more
 * often than max.poll.interval.ms (5 min), or the group takes the partitions away. */
int pl_kafka_consumer_recv(
	struct pl_kafka_consumer *c, struct pl_kafka_block *ret, uint32_t timeout_ms);

/* Goes back in partitions that were read before: reads them from these offsets on, and drops
 * messages of theirs that were fetched. Returns -EIO with diag. */
int pl_kafka_consumer_seek(struct pl_kafka_consumer *c, const struct pl_kafka_position *positions,
	uint32_t n, uint32_t wait_ms, struct pl_diag *diag);

/* Latest time at which the block's records were made: when the broker took them (append time), else
 * now, real_ns. Both in ns since the Unix epoch. */
uint64_t pl_kafka_block_clock(const struct pl_kafka_block *block, uint64_t real_ns);

/* Commits the positions at which the group goes on. With wait_ms 0 the commit is only sent, and a
 * failure counted. Else returns -ETIMEDOUT (no answer in that time; the commit may still happen) or
 * -EIO (refused), with diag. */
int pl_kafka_consumer_commit(struct pl_kafka_consumer *c, const struct pl_kafka_position *positions,
	uint32_t n, uint32_t wait_ms, struct pl_diag *diag);

/* Requests the positions that the group committed, in one request. `each` (may be NULL) gets every
 * partition with its offset, or PL_KAFKA_COMMITTED when there is none, and the text committed with
 * it, or "". To be called in `assigned`: messages between the position and the first one that is
 * read count as `expired` when the topic does not have them any more. While the group has no
 * coordinator it repeats the request, for wait_ms. Returns -EIO with diag when no position is
 * known; `each` was not called then. */
typedef void pl_kafka_committed(void *arg, uint32_t partition, int64_t offset, const char *note);
int pl_kafka_consumer_committed(struct pl_kafka_consumer *c,
	const struct pl_kafka_position *positions, uint32_t n, uint32_t wait_ms,
	pl_kafka_committed *each, void *arg, struct pl_diag *diag);

const struct pl_kafka_consumer_stats *pl_kafka_consumer_stats(const struct pl_kafka_consumer *c);
/* librdkafka's last statistics, up to a second old. */
const struct pl_kafka_client *pl_kafka_consumer_client(const struct pl_kafka_consumer *c);
/* Sum of the rows bad_*. */
uint64_t pl_kafka_consumer_bad(const struct pl_kafka_consumer_stats *stats);
/* Text of the last error, which may be over; empty when there was none. */
const char *pl_kafka_consumer_trouble(const struct pl_kafka_consumer *c);
/* Text, for a log, of messages that came to count as `expired` since the last call, of the last
 * partition that had some; NULL: there were none. */
const char *pl_kafka_consumer_expired(struct pl_kafka_consumer *c);

/* Returns true when nothing can come: no broker is up, or the group has given this member nothing. */
bool pl_kafka_consumer_cut_off(const struct pl_kafka_consumer *c);

/* Leaves the group: `revoked` is called for the partitions it has. Without a broker that takes up
 * to session.timeout.ms. NULL is fine. */
void pl_kafka_consumer_close(struct pl_kafka_consumer *c);
/* Leaves the group in a thread of its own, so that the caller does not wait. `revoked` is not
 * called; earlier commits stay. When the process ends meanwhile, the group notices after
 * session.timeout.ms. NULL is fine. */
void pl_kafka_consumer_leave(struct pl_kafka_consumer *c);
