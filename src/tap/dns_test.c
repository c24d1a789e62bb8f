/* SPDX-License-Identifier: BSD-2-Clause */
#include "tap/dns.h"

#include "base/rng.h"
#include "base/test.h"

#define HEADER(flags, qd, an, ns) "\x12\x34" flags "\0" qd "\0" an "\0" ns "\0\0"
#define WWW                       "\3www\7Example\3com\0"
#define WWW_LOWER                 "\3www\7example\3com\0"
#define ASK_A                     "\0\1\0\1"
#define POINT_A                   "\xc0\x0c\0\1\0\1\0\0\1\x2c\0\4"
#define POINT_CNAME               "\xc0\x0c\0\5\0\1\0\0\1\x2c\0\6\3alt\xc0\x10"

/* A literal without its closing zero. */
#define BYTES(literal)            (literal), sizeof(literal) - 1

static const struct {
	const char *name, *bytes;
	size_t len;
	uint16_t qtype, name_len, counts;
	uint8_t labels;
	uint32_t answer;
} goods[] = {
	{ "a question", BYTES(HEADER("\1\0", "\1", "\0", "\0") WWW ASK_A), 1, 17, 0, 3, 0 },
	{ "an answer", BYTES(HEADER("\x81\x80", "\1", "\1", "\0") WWW ASK_A POINT_A "\xc0\0\2\1"),
		1, 17, 1 << 6, 3, 3221225985 },
	{ "an alias, then an address",
		BYTES(HEADER("\x81\x80", "\1", "\2", "\0") WWW ASK_A POINT_CNAME POINT_A
			"\xc0\0\2\7"),
		1, 17, 2 << 6, 3, 3221225991 },
	{ "no such name", BYTES(HEADER("\x81\x83", "\1", "\0", "\1") WWW ASK_A), 1, 17, 3 << 12 | 1,
		3, 0 },
	{ "the root",
		BYTES(HEADER("\1\0", "\1", "\0", "\0") "\0"
						       "\0\2\0\1"),
		2, 1, 0, 0, 0 },
	{ "no question", BYTES(HEADER("\x80\5", "\0", "\0", "\0")), 0, 0, 5 << 12, 0, 0 },
	{ "two questions",
		BYTES(HEADER("\1\0", "\2", "\0", "\0") WWW ASK_A "\1x\0"
								 "\0\x1c\0\1"),
		1, 17, 0, 3, 0 },
	{ "two questions, the second of them by a pointer",
		BYTES(HEADER("\1\0", "\2", "\0", "\0") WWW ASK_A "\4mail\xc0\x10\0\x1c\0\1"), 1, 17,
		0, 3, 0 },
	{ "an answer that is cut",
		BYTES(HEADER("\x81\x80", "\1", "\1", "\0") WWW ASK_A POINT_A "\xc0"), 1, 17, 1 << 6,
		3, 0 },
	{ "an address of 3 bytes",
		BYTES(HEADER("\x81\x80", "\1", "\1", "\0") WWW ASK_A
			"\xc0\x0c\0\1\0\1\0\0\0\0\0\3abc"),
		1, 17, 1 << 6, 3, 0 },
	{ "255 answers announced",
		BYTES("\x12\x34\x81\x80\0\1\0\xff\0\xff\0\0" WWW ASK_A POINT_A "\xc0\0\2\1"), 1, 17,
		63 << 6 | 63, 3, 3221225985 },
};

static const struct {
	const char *name, *bytes;
	size_t len;
} bads[] = {
	{ "nothing", BYTES("") },
	{ "half a header", BYTES("\x12\x34\1\0\0\1") },
	{ "a question that is missing", BYTES(HEADER("\1\0", "\1", "\0", "\0")) },
	{ "a name without an end", BYTES(HEADER("\1\0", "\1", "\0", "\0") "\3www") },
	{ "a label longer than the message", BYTES(HEADER("\1\0", "\1", "\0", "\0") "\x20www") },
	{ "a label of 64", BYTES(HEADER("\1\0", "\1", "\0", "\0") "\x40www\0" ASK_A) },
	{ "a pointer in the question", BYTES(HEADER("\1\0", "\1", "\0", "\0") "\xc0\x0c" ASK_A) },
	{ "no type", BYTES(HEADER("\1\0", "\1", "\0", "\0") WWW "\0") },
	{ "no class", BYTES(HEADER("\1\0", "\1", "\0", "\0") WWW "\0\1\0") },
	{ "a second question without its class",
		BYTES(HEADER("\1\0", "\2", "\0", "\0") WWW ASK_A "\xc0\x0c\0\1") },
	{ "a pointer that is cut", BYTES(HEADER("\1\0", "\2", "\0", "\0") WWW ASK_A "\xc0") },
	{ "a second question that is cut",
		BYTES(HEADER("\1\0", "\2", "\0", "\0") WWW ASK_A "\5x") },
};

static struct pl_pkt96 packet(void)
{
	struct pl_pkt96 p = { .ts_ns = 9, .proto = 17, .sport = 40000, .dport = 53 };

	p.src.b[15] = 1;
	p.dst.b[15] = 2;
	return p;
}

static bool read_exact(struct pl_dns64 *ret, const char *bytes, size_t len)
{
	const struct pl_pkt96 p = packet();
	uint8_t *copy = malloc(len > 0 ? len : 1);
	bool good;

	memcpy(copy, bytes, len);
	good = pl_dns_read(ret, &p, pl_cursor(copy, len));
	free(copy);
	return good;
}

static void test_tables(void)
{
	struct pl_dns64 d, same;

	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		const bool response = (uint8_t)goods[i].bytes[2] >= 0x80;

		ok(read_exact(&d, goods[i].bytes, goods[i].len), "%s", goods[i].name);
		eq(d.ts_ns, 9);
		eq(d.id, 0x1234);
		eq(d.qtype, goods[i].qtype, "%s: type", goods[i].name);
		eq(d.name_len, goods[i].name_len, "%s: length", goods[i].name);
		eq(d.labels, goods[i].labels, "%s: labels", goods[i].name);
		eq(d.counts, goods[i].counts, "%s: counts", goods[i].name);
		eq(d.answer, goods[i].answer, "%s: address", goods[i].name);
		eq(d.client.b[15], response ? 2 : 1, "%s: client", goods[i].name);
		eq(d.server.b[15], response ? 1 : 2, "%s: server", goods[i].name);
	}
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		ok(!read_exact(&d, bads[i].bytes, bads[i].len), "refused: %s", bads[i].name);
	/* The same name in lower case, and another name of the same domain. */
	(void)read_exact(&d, goods[0].bytes, goods[0].len);
	(void)read_exact(&same, BYTES(HEADER("\1\0", "\1", "\0", "\0") WWW_LOWER ASK_A));
	eq(same.name_hash, d.name_hash, "letters of either case");
	(void)read_exact(
		&same, BYTES(HEADER("\1\0", "\1", "\0", "\0") "\1a\1b\7example\3com\0" ASK_A));
	ok(same.name_hash != d.name_hash && same.domain_hash == d.domain_hash, "one domain");
	(void)read_exact(&same, BYTES(HEADER("\1\0", "\1", "\0", "\0") "\7example\3com\0" ASK_A));
	ok(same.name_hash == same.domain_hash && same.domain_hash == d.domain_hash,
		"the domain itself");
}

static void test_entropy(void)
{
	struct pl_dns64 d;

	(void)read_exact(&d, BYTES(HEADER("\1\0", "\1", "\0", "\0") "\4aaaa\0" ASK_A));
	eq(d.entropy, 0, "one character");
	(void)read_exact(&d, BYTES(HEADER("\1\0", "\1", "\0", "\0") "\4abab\2ab\0" ASK_A));
	eq(d.entropy, 32, "two, equally often: 1 bit");
	(void)read_exact(&d, BYTES(HEADER("\1\0", "\1", "\0", "\0") "\x8"
								    "abcdefgh\0" ASK_A));
	eq(d.entropy, 96, "eight: 3 bits");
}

/* Names of up to 255 bytes and no more. */
static void test_long(void)
{
	struct pl_dns64 d;
	char bytes[12 + 300 + 4];
	size_t at = 12;

	memset(bytes, 0, sizeof(bytes));
	bytes[5] = 1;
	for (int i = 0; i < 127; i++) {
		bytes[at++] = 1;
		bytes[at++] = 'x';
	}
	ok(read_exact(&d, bytes, at + 5) && d.name_len == 255 && d.labels == 127, "255 bytes");
	bytes[at++] = 1;
	bytes[at++] = 'x';
	ok(!read_exact(&d, bytes, at + 5), "257 bytes");
}

/* Whatever stands there, reading ends and stays within the message. */
static void test_garbage(void)
{
	struct pl_rng rng;
	struct pl_dns64 d;
	char bytes[200];
	unsigned int read = 0;

	pl_rng_seed(&rng, 5);
	for (int i = 0; i < 200000; i++) {
		const size_t which = pl_rng_below(&rng, sizeof(goods) / sizeof(goods[0]));
		const size_t len = goods[which].len;

		memcpy(bytes, goods[which].bytes, len);
		for (int k = 0; k < 3; k++)
			bytes[pl_rng_below(&rng, len)] = (char)pl_rng_u64(&rng);
		read += read_exact(&d, bytes, pl_rng_below(&rng, len + 1));
	}
	ok(read > 1000 && read < 150000, "%u of 200000 are messages still", read);
}

int main(void)
{
	test_tables();
	test_entropy();
	test_long();
	test_garbage();
	return pl_test_done();
}
