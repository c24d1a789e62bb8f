/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of messages: their bytes, and what a message that is wrong in one way is said to be. */
#include "kafka/message.h"

#include "base/test.h"
#include "kafka/uri.h"

static const struct pl_kafka_message example = { .kind = PL_FLAT_PKT96,
	.n = 3,
	.exporter = 0x01020304,
	.sequence = 0x1112131415161718,
	.oldest_ns = 5,
	.newest_ns = 0x2122232425262728,
	.dropped = 0x3132333435363738,
	.clock = PL_STAMP_NIC };

static void test_bytes(void)
{
	static const struct pl_kafka_header wanted[PL_KAFKA_HEADERS] = {
		{ "f", 7, "pkt96/1" },
		{ "n", 4, { 3 } },
		{ "x", 4, { 4, 3, 2, 1 } },
		{ "s", 8, { 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11 } },
		{ "t0", 8, { 5 } },
		{ "t1", 8, { 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21 } },
		{ "d", 8, { 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31 } },
		{ "c", 3, "nic" },
	};
	struct pl_kafka_header got[PL_KAFKA_HEADERS];

	pl_kafka_headers_make(&example, got);
	for (int i = 0; i < PL_KAFKA_HEADERS; i++) {
		streq(got[i].name, wanted[i].name, "name of header %d", i);
		eq(got[i].len, wanted[i].len, "its length");
		memeq(got[i].value, wanted[i].value, wanted[i].len, "its bytes");
	}
}

/* The example's headers, the one named `but` with another value or (len < 0) without it. */
static enum pl_kafka_verdict read_with(
	struct pl_kafka_reading *reading, const char *but, const void *value, int len, size_t bytes)
{
	struct pl_kafka_header made[PL_KAFKA_HEADERS];

	pl_kafka_headers_make(&example, made);
	pl_kafka_reading_init(reading);
	for (int i = 0; i < PL_KAFKA_HEADERS; i++) {
		if (but == NULL || strcmp(made[i].name, but) != 0)
			pl_kafka_reading_header(reading, made[i].name, made[i].value, made[i].len);
		else if (len >= 0)
			pl_kafka_reading_header(reading, but, value, (size_t)len);
	}
	return pl_kafka_reading_end(reading, PL_FLAT_PKT96, bytes);
}

static void test_good(void)
{
	struct pl_kafka_reading r;

	eq(read_with(&r, NULL, NULL, 0, 3 * 96), PL_KAFKA_GOOD, "what was written is read");
	eq(r.message.kind, PL_FLAT_PKT96);
	eq(r.message.n, 3);
	eq(r.message.exporter, example.exporter);
	eq(r.message.sequence, example.sequence);
	eq(r.message.oldest_ns, example.oldest_ns);
	eq(r.message.newest_ns, example.newest_ns);
	eq(r.message.dropped, example.dropped);
	eq(r.message.given, 0xff, "every header");
	eq(read_with(&r, "n", NULL, -1, 5 * 96), PL_KAFKA_GOOD, "without n it is counted");
	eq(r.message.n, 5);
	eq(r.message.given, 0xfd, "and told to be missing");
	eq(read_with(&r, "s", NULL, -1, 3 * 96), PL_KAFKA_GOOD, "without s");
	eq(r.message.sequence, 0);
	eq(r.message.clock, PL_STAMP_NIC, "the clock of its times");
	eq(read_with(&r, "c", "sundial", 7, 3 * 96), PL_KAFKA_GOOD, "a clock by a name not known");
	eq(r.message.clock, PL_STAMP_NONE, "is not told");
	eq(read_with(&r, "c", NULL, -1, 3 * 96), PL_KAFKA_GOOD, "without c, as others write");
	eq(r.message.clock, PL_STAMP_NONE, "neither");
	ok(!r.message.spread, "a flow is in one partition");
	pl_kafka_reading_init(&r);
	pl_kafka_reading_header(&r, "f", "raw/1", 5);
	pl_kafka_reading_header(&r, "p", "spread", 6);
	ok(r.message.spread, "unless the message says otherwise");
	eq(pl_kafka_reading_format(&r, "raw/1"), PL_KAFKA_GOOD, "another format, asked for");
	eq(pl_kafka_reading_format(&r, "raw/2"), PL_KAFKA_OTHER_FORMAT, "or not");
	eq(pl_kafka_reading_end(&r, PL_FLAT_PKT64, 64), PL_KAFKA_OTHER_FORMAT, "is no record");
	pl_kafka_reading_header(&r, "p", "else", 4);
	ok(!r.message.spread, "a word of a later version");
	pl_kafka_reading_header(&r, "p", NULL, 6);
	ok(!r.message.spread, "no value");
	pl_kafka_reading_header(&r, "n", "12", 2);
	eq(pl_kafka_reading_format(&r, "raw/1"), PL_KAFKA_BAD_HEADER, "a bad header");
	pl_kafka_reading_init(&r);
	eq(pl_kafka_reading_format(&r, "raw/1"), PL_KAFKA_NO_FORMAT, "no format");
	pl_kafka_reading_init(&r);
	pl_kafka_reading_header(&r, "f", "pkt64/1", 7);
	pl_kafka_reading_header(&r, "traceparent", NULL, 0);
	pl_kafka_reading_header(&r, "", "x", 1);
	eq(pl_kafka_reading_end(&r, PL_FLAT_PKT64, 64 * PL_KAFKA_RECORDS_MAX), PL_KAFKA_GOOD,
		"f alone, headers of others, and as many records as there may be");
	eq(r.message.n, PL_KAFKA_RECORDS_MAX);
}

static void test_wrong(void)
{
	static const struct {
		const char *but;
		const char *value;
		int len;
		size_t bytes;
		enum pl_kafka_verdict wanted;
	} rows[] = {
		{ "f", NULL, -1, 288, PL_KAFKA_NO_FORMAT },
		{ "f", NULL, 0, 288, PL_KAFKA_BAD_HEADER },
		{ "f", "pkt64/1", 7, 288, PL_KAFKA_OTHER_FORMAT },
		{ "f", "pkt96/2", 7, 288, PL_KAFKA_OTHER_FORMAT },
		{ "f", "pkt96", 5, 288, PL_KAFKA_OTHER_FORMAT },
		{ "f", "", 0, 288, PL_KAFKA_OTHER_FORMAT },
		{ "f", "pkt96/1", 8, 288, PL_KAFKA_OTHER_FORMAT },
		{ "f", "pkt96/1 and much more", 21, 288, PL_KAFKA_OTHER_FORMAT },
		{ "n", "\3\0\0", 3, 288, PL_KAFKA_BAD_HEADER },
		{ "n", "\3\0\0\0\0", 5, 288, PL_KAFKA_BAD_HEADER },
		{ "n", NULL, 4, 288, PL_KAFKA_BAD_HEADER },
		{ "n", "\4\0\0\0", 4, 288, PL_KAFKA_BAD_COUNT },
		{ "n", "\0\0\0\3", 4, 288, PL_KAFKA_BAD_COUNT },
		{ "x", "", 0, 288, PL_KAFKA_BAD_HEADER },
		{ "s", "1234", 4, 288, PL_KAFKA_BAD_HEADER },
		{ "t0", "123456789", 9, 288, PL_KAFKA_BAD_HEADER },
		{ "t1", "1", 1, 288, PL_KAFKA_BAD_HEADER },
		{ "d", "1234567", 7, 288, PL_KAFKA_BAD_HEADER },
		{ "c", NULL, 3, 288, PL_KAFKA_BAD_HEADER },
		{ NULL, NULL, 0, 0, PL_KAFKA_BAD_LENGTH },
		{ NULL, NULL, 0, 95, PL_KAFKA_BAD_LENGTH },
		{ NULL, NULL, 0, 289, PL_KAFKA_BAD_LENGTH },
		{ NULL, NULL, 0, SIZE_MAX, PL_KAFKA_BAD_LENGTH },
		{ NULL, NULL, 0, 96 * (PL_KAFKA_RECORDS_MAX + 1), PL_KAFKA_TOO_LONG },
		{ "n", NULL, -1, SIZE_MAX / 96 * 96, PL_KAFKA_TOO_LONG },
		{ NULL, NULL, 0, 96, PL_KAFKA_BAD_COUNT },
	};
	struct pl_kafka_reading r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		eq(read_with(&r, rows[i].but, rows[i].value, rows[i].len, rows[i].bytes),
			rows[i].wanted, "row %zu: header %s, %zu bytes", i,
			rows[i].but != NULL ? rows[i].but : "none", rows[i].bytes);
	read_with(&r, NULL, NULL, 0, 288);
	pl_kafka_reading_header(&r, "s", "12345678", 8);
	eq(pl_kafka_reading_end(&r, PL_FLAT_PKT96, 288), PL_KAFKA_BAD_HEADER, "a header twice");
	eq(r.message.sequence, example.sequence, "of which the first one stays");
}

int main(void)
{
	test_bytes();
	test_good();
	test_wrong();
	return pl_test_done();
}
