/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of places for marks, and what is read there. */
#include "base/test.h"
#include "mark/bits.h"
#include "record/packet.h"

static const struct {
	const char *text;
	uint8_t carrier, mask;
	bool ipv4, ipv6;
} names[] = {
	{ "dscp:0", PL_MARK_AT_TOS, 0x04, true, true },
	{ "dscp:1", PL_MARK_AT_TOS, 0x08, true, true },
	{ "dscp:5", PL_MARK_AT_TOS, 0x80, true, true },
	{ "tos:2", PL_MARK_AT_TOS, 0x04, true, false },
	{ "tclass:7", PL_MARK_AT_TOS, 0x80, false, true },
	{ "ecn:1", PL_MARK_AT_TOS, 0x02, true, true },
	{ "ipv4-reserved", PL_MARK_AT_RESERVED, 0, true, false },
	{ "altmark", PL_MARK_AT_OPTION, 0, false, true },
	{ "altmark-dst", PL_MARK_AT_OPTION, 0, false, true },
	{ "sfl:16/1048575", PL_MARK_AT_LABEL, 0, true, true },
	{ "sfl:16/17/18/0", PL_MARK_AT_LABEL, 0, true, true },
};

static const char *const bad[] = { "", "dscp", "dscp:", "dscp:6", "dscp:00", "dscp:-1", "dscp:a",
	"tos:0", "tos:1", "tclass:0", "tos:8", "ecn:2", "ipv4-reserved:1", "Altmark", "altmark-",
	"flow-label:0", "sfl:", "sfl:1", "sfl:1/", "sfl:1/1", "sfl:1/2/3", "sfl:1/2/3/2",
	"sfl:1/2/3/4/5", "sfl:1/1048576", "sfl:-1/2", "sfl:1//2", "sfl:1/2x", "sfl:a/b" };

static void texts(void)
{
	struct pl_diag diag = { 0 };
	struct pl_mark_bit bit;

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ok(pl_mark_bit_parse(&bit, names[i].text, NULL) == 0 &&
				bit.carrier == names[i].carrier && bit.mask == names[i].mask &&
				bit.ipv4 == names[i].ipv4 && bit.ipv6 == names[i].ipv6,
			"%s", names[i].text);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(pl_mark_bit_parse(&bit, bad[i], &diag) < 0, "'%s' is refused: %s", bad[i],
			diag.text);
	(void)pl_mark_bit_parse(&bit, "tos:1", &diag);
	ok(strstr(diag.text, "ecn:1") != NULL, "ECN must be asked for by its name");
	(void)pl_mark_bit_parse(&bit, "flow-label:0", &diag);
	ok(strstr(diag.text, "RFC 9343") != NULL, "the flow label is refused with the reason");
}

static void pairs(void)
{
	static const char *const two[] = { "dscp:0", "dscp:1" },
				 *const same[] = { "dscp:0", "tos:2" },
				 *const equal[] = { "dscp:0", "dscp:0" },
				 *const option[] = { "altmark", "dscp:0" };
	static const char *const labels[] = { "sfl:16/17", "dscp:0" }, *const four[] = {
		"sfl:16/17/18/19", "dscp:0"
	};
	struct pl_mark_where where;
	struct pl_diag diag;

	ok(pl_mark_where_parse(&where, PL_MARK_STEP, labels, 1, &diag) == 0,
		"two labels are one bit");
	ok(pl_mark_where_is_written(&where, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, four, 1, &diag) == 0, "four are two");
	ok(pl_mark_where_parse(&where, PL_MARK_CYCLIC, four, 1, &diag) == 0,
		"also of cyclic marking");
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, labels, 1, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_STEP, four, 1, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, four, 2, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, two, 2, &diag) == 0 &&
			pl_mark_where_is_written(&where, &diag) == 0,
		"bits of the header are written, too");
	ok(pl_mark_where_parse(&where, PL_MARK_STEP, two, 1, &diag) == 0, "step: one bit");
	ok(pl_mark_where_parse(&where, PL_MARK_STEP, two, 2, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_STEP, two, 0, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, two, 2, &diag) == 0, "double: two bits");
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, two, 1, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, equal, 2, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, same, 2, &diag) < 0, "%s", diag.text);
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, option, 1, &diag) == 0, "or the option");
	ok(pl_mark_where_parse(&where, PL_MARK_DOUBLE, option, 2, &diag) < 0, "%s", diag.text);
}

/* Bits that differ between two packets which differ in one bit of their header. */
static unsigned int read_v4(const char *const *names_of, size_t n, uint8_t tos, uint8_t flags)
{
	const uint8_t ip[20] = { 0x45, tos, 0, 20, 0, 0, flags, 0, 64, 17 };
	const struct pl_layers layers = { .network = ip, .ip_version = 4 };
	struct pl_mark_where where;
	struct pl_altmark option;
	unsigned int bits = 99;

	if (pl_mark_where_parse(&where, n == 2 ? PL_MARK_DOUBLE : PL_MARK_STEP, names_of, n, NULL) <
			0 ||
		pl_mark_read(&where, &layers, &bits, &option) != PL_MARK_READ_OK)
		return 98;
	return bits;
}

static void headers(void)
{
	static const char *const dscp[] = { "dscp:0", "dscp:1" },
				 *const flag[] = { "ipv4-reserved" },
				 *const tclass[] = { "tclass:2" }, *const option[] = { "altmark" };
	static const uint8_t six[48] = { 0x60, 0x40 };
	static const uint8_t opts[] = { 0x12, 4, 0x12, 0x34, 0x5c, 0 };
	struct pl_layers layers = { .network = six, .ip_version = 6 };
	struct pl_mark_where where;
	struct pl_altmark altmark;
	unsigned int bits = 0;

	eq(read_v4(dscp, 1, 0x04, 0), 1);
	eq(read_v4(dscp, 1, 0xfb, 0), 0);
	eq(read_v4(dscp, 2, 0x04, 0), 1);
	eq(read_v4(dscp, 2, 0x08, 0), 2);
	eq(read_v4(dscp, 2, 0x0c, 0), 3);
	eq(read_v4(flag, 1, 0, 0x80), 1);
	eq(read_v4(flag, 1, 0xff, 0x7f), 0);
	eq(read_v4(tclass, 1, 0xff, 0), 98, "IPv4 has no traffic class");
	(void)pl_mark_where_parse(&where, PL_MARK_STEP, tclass, 1, NULL);
	eq(pl_mark_read(&where, &layers, &bits, &altmark), PL_MARK_READ_OK);
	eq(bits, 1, "the traffic class is over two bytes");
	(void)pl_mark_where_parse(&where, PL_MARK_DOUBLE, option, 1, NULL);
	eq(pl_mark_read(&where, &layers, &bits, &altmark), PL_MARK_READ_ELSEWHERE);
	layers.flags = PL_LAYERS_DST_OPTS;
	layers.dst_opts = pl_cursor(opts, sizeof(opts));
	eq(pl_mark_read(&where, &layers, &bits, &altmark), PL_MARK_READ_OK);
	ok(bits == 3 && altmark.flow_id == 0x12345, "the option's bits and its flow");
	layers.dst_opts = pl_cursor(opts, 3);
	eq(pl_mark_read(&where, &layers, &bits, &altmark), PL_MARK_READ_BROKEN);
}

/* The sum over all words of a header whose checksum is right is 0xffff. */
static unsigned int sum_of(const uint8_t *ip)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < 20; i += 2)
		sum += pl_be16(ip + i);
	return (sum & 0xffff) + (sum >> 16);
}

static void writing(void)
{
	static const char *const bit_names[][2] = { { "dscp:0", "dscp:5" },
		{ "ipv4-reserved", "tos:3" }, { "tclass:7", "tclass:2" }, { "altmark", NULL } };

	for (unsigned int i = 0; i < 4; i++) {
		/* The header of the reference for RFC 1624, 10.0.0.1 to 10.0.0.2. */
		uint8_t four[20] = { 0x45, 0, 0, 0x54, 0, 1, 0x40, 0, 0x40, 0x11, 0x26, 0x96, 10, 0,
			0, 1, 10, 0, 0, 2 };
		uint8_t six[40] = { 0x6a, 0xbc, 0xde, 0xf0 };
		struct pl_layers layers = { .network = four, .ip_version = 4 };
		struct pl_mark_where where;
		struct pl_altmark option;
		unsigned int bits = 99;

		(void)pl_mark_where_parse(&where, PL_MARK_DOUBLE, bit_names[i],
			bit_names[i][1] != NULL ? 2 : 1, NULL);
		for (unsigned int b = 0; b < 8; b++) {
			if (pl_mark_write(&where, four, b & 3)) {
				(void)pl_mark_read(&where, &layers, &bits, &option);
				eq(bits, b & 3, "%s of IPv4", bit_names[i][0]);
				eq(sum_of(four), 0xffff, "and its checksum is right");
			} else {
				ok(i >= 2, "%s is not of IPv4, or is an option", bit_names[i][0]);
			}
		}
		layers = (struct pl_layers){ .network = six, .ip_version = 6 };
		ok(pl_mark_write(&where, six, 2) == (i == 0 || i == 2), "%s of IPv6",
			bit_names[i][0]);
		if (i == 0 || i == 2) {
			(void)pl_mark_read(&where, &layers, &bits, &option);
			ok(bits == 2 && (six[1] & 0x0f) == 0x0c && pl_be16(six + 2) == 0xdef0,
				"and no other bit of the flow label");
		}
	}
}

/* The option before a Segment Routing header, where each segment's end reads it (RFC 9343 4): the
 * header is walked, and the option is read whether others stand behind it or not. */
static void segment_routing(void)
{
	static const char *const option[] = { "altmark" };
	static const uint8_t packet[] = {
		/* IPv6, 64 bytes behind it, next header Destination Options */
		0x60, 0, 0, 0, 0, 64, 60, 64,                           /* addresses */
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, /* */
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
		/* Destination Options: Segment Routing is next; 0x12345, L and D */
		43, 0, 0x12, 4, 0x12, 0x34, 0x5c, 0,
		/* Segment Routing: two segments, one left */
		17, 4, 4, 1, 1, 0, 0, 0,                                /* */
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, /* */
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
		/* UDP */
		3, 0xe8, 7, 0xd0, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8
	};
	struct pl_mark_where where;
	struct pl_layers layers;
	struct pl_altmark altmark;
	unsigned int bits = 0;

	(void)pl_mark_where_parse(&where, PL_MARK_DOUBLE, option, 1, NULL);
	eq(pl_layers_walk(&layers, pl_cursor(packet, sizeof(packet)), PL_LINK_RAW_IP, false),
		PL_V_OK);
	eq(layers.flow.dport, 2000, "the Segment Routing header is walked");
	ok((layers.flags & PL_LAYERS_ROUTED) != 0 && layers.last_segment == packet + 56,
		"the last segment is the flow's destination");
	eq(pl_mark_read(&where, &layers, &bits, &altmark), PL_MARK_READ_OK);
	ok(bits == 3 && altmark.flow_id == 0x12345, "the option before it is read");
}

int main(void)
{
	texts();
	pairs();
	headers();
	segment_routing();
	writing();
	return pl_test_done();
}
