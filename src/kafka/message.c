/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes and reads the headers of a Kafka message of records. */
#include "kafka/message.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "kafka/uri.h"

enum { FORMAT, COUNT, EXPORTER, SEQUENCE, OLDEST, NEWEST, DROPPED, CLOCK };

static const struct {
	const char *name;
	uint8_t len; /* 0: a text */
} headers[PL_KAFKA_HEADERS] = {
	[FORMAT] = { "f", 0 },
	[COUNT] = { "n", 4 },
	[EXPORTER] = { "x", 4 },
	[SEQUENCE] = { "s", 8 },
	[OLDEST] = { "t0", 8 },
	[NEWEST] = { "t1", 8 },
	[DROPPED] = { "d", 8 },
	[CLOCK] = { "c", 0 },
};

static size_t format_of(enum pl_flat_kind kind, bool protobuf, char dst[PL_KAFKA_FORMAT_MAX])
{
	int n = snprintf(dst, PL_KAFKA_FORMAT_MAX, "%s/%d%s", pl_flat(kind)->name, PL_FLAT_VERSION,
		protobuf ? "+proto" : "");

	assert(n > 0 && n < PL_KAFKA_FORMAT_MAX);
	return (size_t)n;
}

static void put(struct pl_kafka_header *h, unsigned int which, uint64_t value)
{
	const uint64_t le = htole64(value);

	h->name = headers[which].name;
	h->len = headers[which].len;
	memcpy(h->value, &le, h->len);
}

void pl_kafka_headers_make(
	const struct pl_kafka_message *message, struct pl_kafka_header ret[PL_KAFKA_HEADERS])
{
	ret[FORMAT].name = headers[FORMAT].name;
	ret[FORMAT].len =
		message->format != NULL
			? (size_t)snprintf((char *)ret[FORMAT].value, sizeof(ret[FORMAT].value),
				  "%s", message->format)
			: format_of(message->kind, message->protobuf, (char *)ret[FORMAT].value);
	put(&ret[COUNT], COUNT, message->n);
	put(&ret[EXPORTER], EXPORTER, message->exporter);
	put(&ret[SEQUENCE], SEQUENCE, message->sequence);
	put(&ret[OLDEST], OLDEST, message->oldest_ns);
	put(&ret[NEWEST], NEWEST, message->newest_ns);
	put(&ret[DROPPED], DROPPED, message->dropped);
	ret[CLOCK].name = headers[CLOCK].name;
	ret[CLOCK].len = strlen(pl_clock_name(message->clock));
	memcpy(ret[CLOCK].value, pl_clock_name(message->clock), ret[CLOCK].len);
}

/* A clock's name that is not known may be of a later version: PL_STAMP_NONE then. */
static enum pl_clock_kind clock_named(const char *name, size_t len)
{
	for (unsigned int i = 0; i < PL_STAMP_KINDS; i++) {
		const char *known = pl_clock_name((enum pl_clock_kind)i);

		if (strlen(known) == len && memcmp(known, name, len) == 0)
			return (enum pl_clock_kind)i;
	}
	return PL_STAMP_NONE;
}

void pl_kafka_reading_init(struct pl_kafka_reading *reading)
{
	memset(reading, 0, sizeof(*reading));
}

static void take_number(struct pl_kafka_message *m, unsigned int which, uint64_t value)
{
	switch (which) {
	case COUNT:
		m->n = (uint32_t)value;
		break;
	case EXPORTER:
		m->exporter = (uint32_t)value;
		break;
	case SEQUENCE:
		m->sequence = value;
		break;
	case OLDEST:
		m->oldest_ns = value;
		break;
	case NEWEST:
		m->newest_ns = value;
		break;
	default:
		m->dropped = value;
		break;
	}
}

void pl_kafka_reading_header(
	struct pl_kafka_reading *reading, const char *name, const void *value, size_t len)
{
	struct pl_kafka_message *m = &reading->message;
	unsigned int which = 0;
	uint64_t le = 0;

	if (strcmp(name, PL_KAFKA_PLACING) == 0) {
		/* An unknown word may be of a later version. */
		m->spread = len == strlen(PL_KAFKA_SPREAD) && value != NULL &&
			    memcmp(value, PL_KAFKA_SPREAD, len) == 0;
		return;
	}
	while (which < PL_KAFKA_HEADERS && strcmp(headers[which].name, name) != 0)
		which++;
	if (which == PL_KAFKA_HEADERS)
		return;
	if ((m->given & 1u << which) != 0 || value == NULL)
		reading->bad = true;
	m->given |= 1u << which;
	if (reading->bad)
		return;
	if (which == FORMAT) {
		/* A format that is too long is not one of pathline's: length 0 matches none. */
		reading->format_len = len < PL_KAFKA_FORMAT_MAX ? len : 0;
		memcpy(reading->format, value, reading->format_len);
		return;
	}
	if (which == CLOCK) {
		m->clock = clock_named(value, len);
		return;
	}
	if (len != headers[which].len) {
		reading->bad = true;
		return;
	}
	memcpy(&le, value, len);
	take_number(m, which, le64toh(le));
}

enum pl_kafka_verdict pl_kafka_reading_format(
	const struct pl_kafka_reading *reading, const char *format)
{
	if ((reading->message.given & 1u << FORMAT) == 0)
		return PL_KAFKA_NO_FORMAT;
	if (reading->bad)
		return PL_KAFKA_BAD_HEADER;
	return reading->format_len == strlen(format) &&
			       memcmp(reading->format, format, reading->format_len) == 0
		       ? PL_KAFKA_GOOD
		       : PL_KAFKA_OTHER_FORMAT;
}

enum pl_kafka_verdict pl_kafka_reading_end(
	struct pl_kafka_reading *reading, enum pl_flat_kind kind, size_t len)
{
	struct pl_kafka_message *m = &reading->message;
	const size_t size = pl_flat(kind)->size;
	char format[PL_KAFKA_FORMAT_MAX];

	if ((m->given & 1u << FORMAT) == 0)
		return PL_KAFKA_NO_FORMAT;
	if (reading->bad)
		return PL_KAFKA_BAD_HEADER;
	if (reading->format_len != format_of(kind, false, format) ||
		memcmp(reading->format, format, reading->format_len) != 0)
		return PL_KAFKA_OTHER_FORMAT;
	if (len == 0 || len % size != 0)
		return PL_KAFKA_BAD_LENGTH;
	if (len / size > PL_KAFKA_RECORDS_MAX)
		return PL_KAFKA_TOO_LONG;
	if ((m->given & 1u << COUNT) != 0 && m->n != len / size)
		return PL_KAFKA_BAD_COUNT;
	m->kind = kind;
	m->n = (uint32_t)(len / size);
	return PL_KAFKA_GOOD;
}
