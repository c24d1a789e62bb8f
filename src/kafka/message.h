/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A Kafka message of records: the value is `n` records of one kind, one behind the other and
 * nothing else, so that it is rows of ClickHouse's RowBinary. The message's headers hold the rest,
 * numbers little-endian:
 *
 *   f   format, "pkt64/1" (no terminator); of rows of Protocol Buffers "pkt64/1+proto"; of packets as
 *       they arrived "raw/1" (raw/message.h), whose value is no records
 *   n   u32, records in the value
 *   x   u32, exporter: the producer's number
 *   s   u64, sequence number of the message among those of its producer
 *   t0  u64, oldest time of a record, ns since the Unix epoch
 *   t1  u64, newest
 *   d   u64, records that the producer had dropped before
 *   c   which clock the records' times are of, "nic" (base/clock_kinds.def; no terminator)
 *
 * A ninth header is there only when several partitions get records of one flow: p, "spread" (no
 * terminator).
 *
 * Does not use librdkafka. Messages are from outside: any bytes give a message or one of the
 * verdicts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock_kind.h"
#include "record/packet.h"

#define PL_KAFKA_HEADERS    8
#define PL_KAFKA_FORMAT_MAX 16
#define PL_KAFKA_PLACING    "p" /* the ninth header */
#define PL_KAFKA_SPREAD     "spread"

enum pl_kafka_verdict {
	PL_KAFKA_GOOD,
	PL_KAFKA_NO_FORMAT,    /* no header "f" */
	PL_KAFKA_OTHER_FORMAT, /* a header "f" of another kind or version */
	PL_KAFKA_BAD_HEADER,   /* a header of ours with a wrong length, or twice */
	PL_KAFKA_BAD_LENGTH,   /* no whole number of records, or none */
	PL_KAFKA_TOO_LONG,     /* more than PL_KAFKA_RECORDS_MAX records */
	PL_KAFKA_BAD_COUNT,    /* header "n" is not the number of records */
	PL_KAFKA_VERDICTS,
};

struct pl_kafka_message {
	enum pl_flat_kind kind;
	uint32_t n, exporter;
	uint64_t sequence;
	uint64_t oldest_ns, newest_ns;
	uint64_t dropped;
	enum pl_clock_kind
		clock;      /* of the times; PL_STAMP_NONE: no header "c", or an unknown name */
	bool spread;        /* other partitions may have records of the same flow */
	uint32_t given;     /* bits of the headers that were there, in the order above */
	bool protobuf;      /* written only: the value is rows of record/protobuf.h */
	const char *format; /* written only: header "f" of a value that is no records; NULL */
};

/* ---- written ---- */

struct pl_kafka_header {
	const char *name;
	size_t len;
	uint8_t value[PL_KAFKA_FORMAT_MAX];
};

/* Makes the eight headers of a message. */
void pl_kafka_headers_make(
	const struct pl_kafka_message *message, struct pl_kafka_header ret[PL_KAFKA_HEADERS]);

/* ---- read: init, each header in turn, then the value ---- */

struct pl_kafka_reading {
	struct pl_kafka_message message;
	char format[PL_KAFKA_FORMAT_MAX];
	size_t format_len;
	bool bad;
};

void pl_kafka_reading_init(struct pl_kafka_reading *reading);
/* Reads one header; those of other programs are skipped. `value` is NULL for a header without
 * one. */
void pl_kafka_reading_header(
	struct pl_kafka_reading *reading, const char *name, const void *value, size_t len);
/* Checks that a value of `len` bytes behind these headers is records of this kind. Only with
 * PL_KAFKA_GOOD is reading->message complete: n is counted; headers other than "f" may be missing,
 * and their numbers are then 0 (`given` has the headers that were there). */
enum pl_kafka_verdict pl_kafka_reading_end(
	struct pl_kafka_reading *reading, enum pl_flat_kind kind, size_t len);
/* Checks that the headers are those of a message of another format, such as "raw/1". With
 * PL_KAFKA_GOOD reading->message is complete but for its kind; n is that of its header, 0 when it
 * is missing. */
enum pl_kafka_verdict pl_kafka_reading_format(
	const struct pl_kafka_reading *reading, const char *format);
