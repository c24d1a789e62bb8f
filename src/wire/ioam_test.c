/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "base/rng.h"
#include "base/test.h"
#include "wire/ioam.h"
#include "wire/layers.h"

/* Reads a whole area as a collector would: the first fault, and what was found. */
struct seen {
	unsigned int options, nodes;
	struct pl_ioam_node node[PL_IOAM_NODES_MAX];
	struct pl_ioam_trace trace;
	struct pl_ioam_e2e e2e;
	struct pl_ioam_pot pot;
	struct pl_ioam_dex dex;
	uint64_t notes;
};

static enum pl_verdict read_option(struct seen *s, const struct pl_ioam_option *o)
{
	enum pl_verdict v;

	switch ((enum pl_ioam_kind)o->kind) {
	case PL_IOAM_PREALLOCATED:
	case PL_IOAM_INCREMENTAL:
		v = pl_ioam_trace_parse(&s->trace, o);
		if (v != PL_V_OK)
			return v;
		s->notes |= s->trace.notes;
		while (s->nodes < PL_IOAM_NODES_MAX &&
			pl_ioam_node_next(&s->trace, &s->node[s->nodes], &v))
			s->nodes++;
		return v;
	case PL_IOAM_POT:
		v = pl_ioam_pot_parse(&s->pot, o);
		s->notes |= v == PL_V_OK ? s->pot.notes : 0;
		return v;
	case PL_IOAM_E2E:
		v = pl_ioam_e2e_parse(&s->e2e, o);
		s->notes |= v == PL_V_OK ? s->e2e.notes : 0;
		return v;
	case PL_IOAM_DEX:
		v = pl_ioam_dex_parse(&s->dex, o);
		s->notes |= v == PL_V_OK ? s->dex.notes : 0;
		return v;
	}
	abort();
}

static enum pl_verdict read_area(struct seen *s, struct pl_cursor area)
{
	struct pl_ioam_option o;
	enum pl_verdict v;

	memset(s, 0, sizeof(*s));
	while (pl_ioam_next(&area, &o, &v)) {
		s->options++;
		v = read_option(s, &o);
		if (v != PL_V_OK)
			return v;
	}
	return v;
}

/* In memory of exactly the size. */
static enum pl_verdict read_copy(struct seen *s, const uint8_t *bytes, size_t n, uint8_t **ret_copy)
{
	*ret_copy = malloc(n == 0 ? 1 : n);
	memcpy(*ret_copy, bytes, n);
	return read_area(s, pl_cursor(*ret_copy, n));
}

/* The trace that a Linux node filled; of the first node only its schema was noted, the rest is by
 * analogy. */
#define LINUX_HEAD "0100 31da0000 007b7812 fff00200 "
#define WORDS6     "00000000 00000000 00000000 00000000 00000000 00000000 "
#define LINUX_NODE2                                                                                \
	"3e0a0002 00150016 6b000d60 0005efb4 ffffffff c0000002 00000000 ffffffff "                 \
	"3e000000 b0000002 00000834 00000898 d0000000 00000002 ffffffff 00ffffff "
#define LINUX_NODE1                                                                                \
	"3f0a0001 000b000c 6b000d60 0005ef00 ffffffff c0000001 00000000 ffffffff "                 \
	"3f000000 b0000001 0000044c 000004b0 d0000000 00000001 ffffffff 02000309 68656c6c 6f393900 "

static void test_linux(void)
{
	uint8_t bytes[256], *copy;
	size_t n = pl_test_hex(
		bytes, sizeof(bytes), LINUX_HEAD WORDS6 WORDS6 WORDS6 LINUX_NODE2 LINUX_NODE1);
	struct seen s;
	const struct pl_ioam_node *two = &s.node[0], *one = &s.node[1];
	const uint32_t missing = PL_IOAM_HAS_DELAY | PL_IOAM_HAS_CHECKSUM | PL_IOAM_HAS_BUFFER;

	eq(n, 222);
	eq(read_copy(&s, bytes, n, &copy), PL_V_OK);
	eq(s.nodes, 2);
	eq(s.trace.ns, 123);
	eq(s.trace.type, 0xfff002);
	eq(s.trace.node_len, 15);
	eq(s.trace.remaining, 18);
	eq(s.notes, 0);
	eq(two->have, 0xffff & ~(missing | PL_IOAM_HAS_SCHEMA));
	eq(two->hop_limit, 62);
	eq(two->node, 0x0a0002);
	eq(two->ingress, 21);
	eq(two->egress, 22);
	eq(two->seconds, 1795165536);
	eq(two->fraction, 389044);
	eq(two->ns_data, 0xc0000002);
	eq(two->queue, 0);
	eq(two->node_wide, 0xb0000002);
	eq(two->ingress_wide, 2100);
	eq(two->egress_wide, 2200);
	eq(two->ns_data_wide, 0xd000000000000002);
	eq(pl_cursor_left(&two->snapshot), 0);
	eq(one->have, 0xffff & ~missing);
	eq(one->hop_limit, 63);
	eq(one->schema, 777);
	eq(pl_cursor_left(&one->snapshot), 8);
	memeq(one->snapshot.pos, "hello99", 8);
	free(copy);
}

static void test_vectors(void)
{
	uint8_t bytes[64], *copy;
	struct seen s;
	size_t n;

	n = pl_test_hex(bytes, sizeof(bytes), "31120004 007b00c0 80000000 00000015 00000007");
	eq(read_copy(&s, bytes, n, &copy), PL_V_OK, "direct export");
	eq(s.dex.ns, 123);
	eq(s.dex.type, 0x800000);
	ok(s.dex.have_flow && s.dex.flow == 21);
	ok(s.dex.have_seq && s.dex.seq == 7);
	eq(s.notes, 0);
	free(copy);
	n = pl_test_hex(bytes, sizeof(bytes), "31120004 007b0003 80000000 00000015 00000007");
	eq(read_copy(&s, bytes, n, &copy), PL_V_OK, "early direct export");
	ok(s.dex.have_flow && s.dex.flow == 21 && s.dex.have_seq && s.dex.seq == 7);
	eq(s.notes, PL_NOTE_BIT(IOAM_LEGACY_DEX));
	free(copy);
	n = pl_test_hex(bytes, sizeof(bytes), "11120003 007b7000 0000002a 6553f100 0003d090");
	eq(read_copy(&s, bytes, n, &copy), PL_V_OK, "edge to edge");
	eq(s.e2e.ns, 123);
	ok(s.e2e.have_seq && s.e2e.seq == 42);
	ok(s.e2e.have_seconds && s.e2e.seconds == 1700000000);
	ok(s.e2e.have_fraction && s.e2e.fraction == 250000);
	free(copy);
	n = pl_test_hex(bytes, sizeof(bytes),
		"0100 05020000 1116 0002 00010000 1122334455667788 99aabbccddeeff00");
	eq(read_copy(&s, bytes, n, &copy), PL_V_OK, "proof of transit behind other options");
	eq(s.pot.ns, 1);
	eq(s.pot.packet_id, 0x1122334455667788);
	eq(s.pot.cumulative, 0x99aabbccddeeff00);
	free(copy);
}

static const struct {
	const char *name, *hex;
	enum pl_verdict verdict;
	uint64_t notes;
} rows[] = {
	/* clang-format off */
	{ "empty area", "", PL_V_OK, 0 },
	{ "padding only", "00 0102 0000 00", PL_V_OK, 0 },
	{ "another option", "c2 04 00000001", PL_V_OK, 0 },
	{ "option without a length", "31", PL_V_IP_OPTIONS, 0 },
	{ "option past its header", "31 14 0004 007b00c0 80000000 00000015", PL_V_IP_OPTIONS, 0 },
	{ "padding past its header", "01 04 00", PL_V_IP_OPTIONS, 0 },
	{ "no ioam type", "31 01 00", PL_V_IOAM_SHORT, 0 },
	{ "empty option", "11 00", PL_V_IOAM_SHORT, 0 },
	{ "unassigned ioam type 5", "31 04 0005 007b", PL_V_IOAM_OPTION, 0 },
	{ "unassigned ioam type 63", "31 04 003f 007b", PL_V_IOAM_OPTION, 0 },
	{ "unassigned ioam type 67", "31 04 0043 007b", PL_V_IOAM_OPTION, 0 },
	{ "trace header cut", "31 09 0000 007b0800 800000", PL_V_IOAM_SHORT, 0 },
	{ "trace, no nodes yet", "31 0e 0000 007b0801 80000000 00000000", PL_V_OK, 0 },
	{ "trace, no data space", "31 0a 0000 007b0800 80000000", PL_V_OK, 0 },
	{ "trace, one node", "31 0e 0000 007b0800 80000000 3e000001", PL_V_OK, 0 },
	{ "node length too small", "31 12 0000 007b0800 c0000000 3e000001 00010002", PL_V_IOAM_NODE_LEN, 0 },
	{ "node length too large", "31 12 0000 007b1000 80000000 3e000001 00010002", PL_V_IOAM_NODE_LEN, 0 },
	{ "node length 0", "31 0e 0000 007b0000 80000000 3e000001", PL_V_IOAM_NODE_LEN, 0 },
	{ "node length without a type", "31 0e 0000 007b0800 00000000 3e000001", PL_V_IOAM_NODE_LEN, 0 },
	{ "no type, nodes all the same", "31 0e 0000 007b0000 00000000 3e000001", PL_V_IOAM_WALK, 0 },
	{ "bit 23 is ignored", "31 0e 0000 007b0800 80000100 3e000001", PL_V_OK, 0 },
	{ "bit 23 alone, with nodes", "31 0e 0000 007b0000 00000100 3e000001", PL_V_IOAM_WALK, 0 },
	{ "more free words than there are", "31 0e 0000 007b0802 80000000 00000000", PL_V_IOAM_REMAINING, 0 },
	{ "half a word left", "31 10 0000 007b0800 80000000 3e000001 0000", PL_V_IOAM_WALK, 0 },
	{ "half a node", "31 0e 0000 007b1000 c0000000 3e000001", PL_V_IOAM_WALK, 0 },
	{ "one node and a half", "31 16 0000 007b1000 c0000000 3e000001 00010002 3f000002", PL_V_IOAM_WALK, 0 },
	{ "snapshot past the option", "31 0e 0000 007b0000 00000200 02000309", PL_V_IOAM_WALK, 0 },
	{ "snapshot of 255 words", "31 0e 0000 007b0000 00000200 ff000309", PL_V_IOAM_WALK, 0 },
	{ "snapshot only", "31 12 0000 007b0000 00000200 01000309 41424344", PL_V_OK, 0 },
	{ "unassigned bits are a word each", "31 12 0000 007b1000 80080000 3e000001 ffffffff", PL_V_OK, PL_NOTE_BIT(UNASSIGNED) },
	{ "overflow", "31 0e 0000 007b0c00 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_OVERFLOW) },
	{ "loopback", "31 0e 0000 007b0a00 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_LOOPBACK) },
	{ "active", "31 0e 0000 007b0900 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_ACTIVE) },
	{ "unassigned flag", "31 0e 0000 007b0880 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(UNASSIGNED) },
	{ "incremental, budget of 5", "31 0e 0001 007b0805 80000000 3e000001", PL_V_OK, 0 },
	{ "incremental, half a node", "31 0e 0001 007b1005 c0000000 3e000001", PL_V_IOAM_WALK, 0 },
	{ "integrity-protected trace", "31 0e 0040 007b0800 80000000 3e000001", PL_V_OK, PL_NOTE_BIT(IOAM_INTEGRITY) },
	{ "integrity-protected proof of transit", "11 16 0042 00010000 1122334455667788 99aabbccddeeff00", PL_V_OK, PL_NOTE_BIT(IOAM_INTEGRITY) },
	{ "edge to edge header cut", "11 05 0003 007b70", PL_V_IOAM_SHORT, 0 },
	{ "edge to edge too short", "11 0e 0003 007b7000 0000002a 6553f100", PL_V_IOAM_LENGTH, 0 },
	{ "edge to edge too long", "11 0e 0003 007b4000 0000002a 6553f100", PL_V_IOAM_LENGTH, 0 },
	{ "edge to edge of nothing", "11 06 0003 007b0000", PL_V_OK, 0 },
	{ "edge to edge, unassigned bit", "11 0e 0003 007b4001 0000002a 6553f100", PL_V_OK, PL_NOTE_BIT(UNASSIGNED) },
	{ "edge to edge, 64 bits cut", "11 0a 0003 007b8000 0000002a", PL_V_IOAM_LENGTH, 0 },
	{ "proof of transit header cut", "11 05 0002 000100", PL_V_IOAM_SHORT, 0 },
	{ "proof of transit too short", "11 0e 0002 00010000 1122334455667788", PL_V_IOAM_LENGTH, 0 },
	{ "proof of transit too long", "11 17 0002 00010000 1122334455667788 99aabbccddeeff00 00", PL_V_IOAM_LENGTH, 0 },
	{ "proof of transit, unassigned type", "11 07 0002 00010100 01", PL_V_OK, PL_NOTE_BIT(UNASSIGNED) },
	{ "proof of transit, unassigned flag", "11 16 0002 00010001 1122334455667788 99aabbccddeeff00", PL_V_OK, PL_NOTE_BIT(UNASSIGNED) },
	{ "direct export header cut", "31 09 0004 007b00c0 800000", PL_V_IOAM_SHORT, 0 },
	{ "direct export, word missing", "31 0e 0004 007b00c0 80000000 00000015", PL_V_IOAM_LENGTH, 0 },
	{ "direct export, word too many", "31 0e 0004 007b0000 80000000 00000015", PL_V_IOAM_LENGTH, 0 },
	{ "direct export, no extensions", "31 0a 0004 007b0000 80000000", PL_V_OK, 0 },
	{ "direct export, unassigned extension", "31 0e 0004 007b0020 80000000 00000015", PL_V_OK, PL_NOTE_BIT(UNASSIGNED) },
	{ "direct export, unassigned flag", "31 0a 0004 007b0100 80000000", PL_V_OK, PL_NOTE_BIT(UNASSIGNED) },
	/* clang-format on */
};

static void test_rows(void)
{
	uint8_t bytes[256], *copy;
	struct seen s;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = pl_test_hex(bytes, sizeof(bytes), rows[i].hex);

		streq(pl_verdict_name(read_copy(&s, bytes, n, &copy)),
			pl_verdict_name(rows[i].verdict), "%s", rows[i].name);
		if (rows[i].verdict == PL_V_OK)
			eq(s.notes, rows[i].notes, "%s: notes", rows[i].name);
		free(copy);
	}
}

/* A fault in one option does not hide that the iteration may go on behind an unassigned type. */
static void test_goes_on(void)
{
	uint8_t bytes[64];
	size_t n = pl_test_hex(
		bytes, sizeof(bytes), "31040005007b 31120004 007b00c0 80000000 00000015 00000007");
	struct pl_cursor c = pl_cursor(bytes, n);
	struct pl_ioam_option o;
	enum pl_verdict v;

	ok(!pl_ioam_next(&c, &o, &v) && v == PL_V_IOAM_OPTION);
	ok(pl_ioam_next(&c, &o, &v) && v == PL_V_OK && o.kind == PL_IOAM_DEX);
	ok(!pl_ioam_next(&c, &o, &v) && v == PL_V_OK);
}

static struct pl_ioam_node random_node(struct pl_rng *rng, uint32_t type, const uint8_t *snapshot)
{
	struct pl_ioam_node n = {
		.have = (uint32_t)pl_rng_u64(rng) & 0xffff,
		.hop_limit = (uint8_t)pl_rng_below(rng, 255),
		.delay_overflow = pl_rng_below(rng, 2) != 0,
		.ingress = (uint16_t)pl_rng_below(rng, 0xffff),
		.egress = (uint16_t)pl_rng_below(rng, 0xffff),
		.node = (uint32_t)pl_rng_below(rng, 0xffffff),
		.seconds = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.fraction = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.delay_ns = (uint32_t)pl_rng_below(rng, 0x7fffffff),
		.ns_data = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.queue = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.checksum = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.ingress_wide = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.egress_wide = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.buffer = (uint32_t)pl_rng_below(rng, UINT32_MAX),
		.schema = (uint32_t)pl_rng_below(rng, 0xffffff),
		.node_wide = pl_rng_below(rng, UINT64_C(0xffffffffffffff)),
		.ns_data_wide = pl_rng_below(rng, UINT64_MAX),
		.snapshot = pl_cursor(snapshot, 4 * pl_rng_below(rng, 4)),
	};

	if ((type & PL_IOAM_SNAPSHOT) == 0)
		n.snapshot.end = n.snapshot.pos;
	return n;
}

/* The bits that a trace type has room for. */
static uint32_t possible(uint32_t type)
{
	static const uint32_t has[23] = {
		PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_NODE,
		PL_IOAM_HAS_INGRESS | PL_IOAM_HAS_EGRESS,
		PL_IOAM_HAS_SECONDS,
		PL_IOAM_HAS_FRACTION,
		PL_IOAM_HAS_DELAY,
		PL_IOAM_HAS_NS_DATA,
		PL_IOAM_HAS_QUEUE,
		PL_IOAM_HAS_CHECKSUM,
		PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_NODE_WIDE,
		PL_IOAM_HAS_INGRESS_WIDE | PL_IOAM_HAS_EGRESS_WIDE,
		PL_IOAM_HAS_NS_DATA_WIDE,
		PL_IOAM_HAS_BUFFER,
		[22] = PL_IOAM_HAS_SCHEMA,
	};
	uint32_t all = 0;

	for (unsigned int bit = 0; bit < 23; bit++)
		all |= type & PL_IOAM_BIT(bit) ? has[bit] : 0;
	return all;
}

#define SAME(has, field) ((want & (has)) == 0 || got->field == put->field)

static bool node_same(const struct pl_ioam_node *got, const struct pl_ioam_node *put, uint32_t type)
{
	uint32_t want = put->have & possible(type);
	size_t len = pl_cursor_left(&put->snapshot);

	return got->have == want && SAME(PL_IOAM_HAS_HOP_LIMIT, hop_limit) &&
	       SAME(PL_IOAM_HAS_NODE, node) && SAME(PL_IOAM_HAS_INGRESS, ingress) &&
	       SAME(PL_IOAM_HAS_EGRESS, egress) && SAME(PL_IOAM_HAS_SECONDS, seconds) &&
	       SAME(PL_IOAM_HAS_FRACTION, fraction) && SAME(PL_IOAM_HAS_DELAY, delay_ns) &&
	       SAME(PL_IOAM_HAS_DELAY, delay_overflow) && SAME(PL_IOAM_HAS_NS_DATA, ns_data) &&
	       SAME(PL_IOAM_HAS_QUEUE, queue) && SAME(PL_IOAM_HAS_CHECKSUM, checksum) &&
	       SAME(PL_IOAM_HAS_NODE_WIDE, node_wide) &&
	       SAME(PL_IOAM_HAS_INGRESS_WIDE, ingress_wide) &&
	       SAME(PL_IOAM_HAS_EGRESS_WIDE, egress_wide) &&
	       SAME(PL_IOAM_HAS_NS_DATA_WIDE, ns_data_wide) && SAME(PL_IOAM_HAS_BUFFER, buffer) &&
	       SAME(PL_IOAM_HAS_SCHEMA, schema) && pl_cursor_left(&got->snapshot) == len &&
	       memcmp(got->snapshot.pos, put->snapshot.pos, len) == 0;
}

static void test_trace_round_trip(void)
{
	static const uint8_t snapshot[16] = "fifteen letters";
	uint8_t memory[600], *copy = NULL;
	struct pl_ioam_node nodes[PL_IOAM_NODES_MAX];
	struct pl_rng rng;
	uint64_t seed = 9197;
	unsigned int written = 0, big = 0;
	struct seen s;
	bool good = true;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	for (unsigned int round = 0; round < 30000 && good; round++) {
		struct pl_build b = pl_build(memory, sizeof(memory));
		struct pl_ioam_trace head = {
			.type = (uint32_t)(pl_rng_u64(&rng) & pl_rng_u64(&rng)) & 0xffffff,
			.ns = (uint16_t)pl_rng_u64(&rng),
			.flags = (uint8_t)pl_rng_below(&rng, 16),
			.remaining = (uint8_t)pl_rng_below(&rng, 30),
			.incremental = pl_rng_below(&rng, 2) != 0,
		};
		unsigned int n = (unsigned int)pl_rng_below(&rng, 8);
		size_t before = pl_rng_below(&rng, 6);
		int r;

		if (pl_ioam_node_len(head.type) == 0 && (head.type & PL_IOAM_SNAPSHOT) == 0)
			n = 0;
		for (unsigned int i = 0; i < n; i++)
			nodes[i] = random_node(&rng, head.type, snapshot);
		pl_put_zero(&b, before);
		r = pl_ioam_put_trace(&b, &head, PL_IP6_OPT_IOAM_MUTABLE, nodes, n);
		if (r == -E2BIG) {
			big++;
			continue;
		}
		written++;
		good = r == 0 && read_copy(&s, memory, b.len, &copy) == PL_V_OK && s.options == 1 &&
		       s.nodes == n && s.trace.type == head.type && s.trace.ns == head.ns &&
		       s.trace.flags == head.flags && s.trace.remaining == head.remaining &&
		       s.trace.incremental == head.incremental;
		for (unsigned int i = 0; i < n && good; i++)
			good = node_same(&s.node[i], &nodes[n - 1 - i], head.type);
		free(copy);
		copy = NULL;
	}
	ok(good && written > 1000 && big > 100, "random traces: %u written, %u too big", written,
		big);
}

static void test_put_bytes(void)
{
	uint8_t memory[64], want[64];
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_ioam_dex dex = { 0x800000, 123, 0, 0, true, true, 21, 7, 0 };
	struct pl_ioam_e2e e2e = { 123, 0, true, true, true, 42, 1700000000, 250000, 0 };
	size_t n;

	eq(pl_ioam_put_dex(&b, &dex, PL_IP6_OPT_IOAM_MUTABLE), 0);
	n = pl_test_hex(want, sizeof(want), "0100 31120004 007b00c0 80000000 00000015 00000007");
	eq(b.len, n);
	memeq(memory, want, n);
	eq(pl_ioam_put_e2e(&b, &e2e, PL_IP6_OPT_IOAM, false), 0);
	pl_test_hex(want, sizeof(want), "11120003 007b7000 0000002a 6553f100 0003d090");
	eq(b.len, n + 20);
	memeq(memory + n, want, 20, "on a word already: no padding");
}

static void test_put_refused(void)
{
	uint8_t memory[1100], memory2[8], *copy;
	struct seen s;
	struct pl_build b = pl_build(memory, sizeof(memory));
	struct pl_build small = pl_build(memory2, sizeof(memory2));
	struct pl_ioam_trace head = { .type = 0x800000, .remaining = 61 };
	struct pl_ioam_node node = { .snapshot = pl_cursor(memory, 3) };
	struct pl_ioam_pot pot = { .have_values = true };

	eq(pl_ioam_put_trace(&b, &head, 0x31, NULL, 0), 0, "61 words fit");
	head.remaining = 62;
	eq(pl_ioam_put_trace(&b, &head, 0x31, NULL, 0), -E2BIG);
	head.remaining = 1;
	eq(pl_ioam_put_trace(&b, &head, 0x31, &node, 1), -EINVAL, "a snapshot of 3 bytes");
	head.type = 0x1000000;
	eq(pl_ioam_put_trace(&b, &head, 0x31, NULL, 0), -EINVAL, "25 bits");
	/* The largest data space, full of the smallest nodes; one byte more is no node. */
	memset(memory, 0, sizeof(memory));
	memcpy(memory, "\x31\xfe\0\0\0\0\x08\0\x80\0\0\0", 12);
	eq(read_copy(&s, memory, 256, &copy), PL_V_OK, "61 nodes");
	eq(s.nodes, PL_IOAM_NODES_MAX);
	free(copy);
	memory[1] = 0xff;
	eq(read_copy(&s, memory, 257, &copy), PL_V_IOAM_WALK, "61 nodes and a byte");
	free(copy);
	eq(pl_ioam_put_pot(&small, &pot, 0x11), -ENOBUFS);
	ok(small.full && small.len <= 8);
}

static void test_truncation_and_damage(void)
{
	uint8_t bytes[256], *copy;
	struct seen s;
	struct pl_rng rng;
	uint64_t seed = 65;
	size_t n = pl_test_hex(
		bytes, sizeof(bytes), LINUX_HEAD WORDS6 WORDS6 WORDS6 LINUX_NODE2 LINUX_NODE1);
	unsigned int refused = 0;

	for (size_t cut = 0; cut < n; cut++) {
		enum pl_verdict v = read_copy(&s, bytes, cut, &copy);

		free(copy);
		if (v != (cut == 0 || cut == 2 ? PL_V_OK : PL_V_IP_OPTIONS))
			ok(false, "cut at %zu: %s", cut, pl_verdict_name(v));
	}
	/* The option itself shortened: everything behind the header changes place. */
	for (unsigned int len = 0; len < 218; len++) {
		enum pl_verdict v;

		bytes[3] = (uint8_t)len;
		v = read_copy(&s, bytes, 4 + len, &copy);
		free(copy);
		if (v == PL_V_OK && (len < 10 + 72 || (len - 10 - 72) % 4 != 0))
			ok(false, "length %u accepted", len);
	}
	bytes[3] = 218;
	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	for (unsigned int round = 0; round < 100000; round++) {
		size_t at = 2 + pl_rng_below(&rng, 12);
		uint8_t was = bytes[at];

		bytes[at] = (uint8_t)pl_rng_u64(&rng);
		refused += read_copy(&s, bytes, n, &copy) != PL_V_OK;
		free(copy);
		bytes[at] = was;
	}
	ok(refused > 10000, "%u damaged headers refused", refused);
}

/* Within a packet: the walk finds the area, at the alignment the option asks for. */
static void test_in_packet(void)
{
	uint8_t memory[512], area[128];
	struct pl_build b = pl_build(memory, sizeof(memory)), o = pl_build(area, sizeof(area));
	struct pl_flow flow = { .proto = PL_IP_UDP, .sport = 1, .dport = 2 };
	struct pl_ioam_dex dex = { 0x800000, 123, 0, 0, true, true, 21, 7, 0 };
	struct pl_layers l;
	struct seen s;
	size_t at;

	flow.src.b[0] = flow.dst.b[0] = 0xfd;
	eq(pl_ioam_put_dex(&o, &dex, PL_IP6_OPT_IOAM_MUTABLE), 0);
	at = pl_put_ip_options(
		&b, &flow, 64, 0, &(struct pl_ip6_options){ .dst = area, .dst_len = o.len });
	pl_end_ip(&b, at);
	eq(pl_layers_walk(&l, pl_cursor(memory, b.len), PL_LINK_RAW_IP, false), PL_V_OK);
	eq(l.flags, PL_LAYERS_DST_OPTS);
	eq(read_area(&s, l.dst_opts), PL_V_OK);
	eq(s.dex.flow, 21);
	eq(((size_t)(l.dst_opts.pos - memory) + 2) % 4, 0, "type on a word");
}

int main(void)
{
	test_linux();
	test_vectors();
	test_rows();
	test_goes_on();
	test_trace_round_trip();
	test_put_bytes();
	test_put_refused();
	test_truncation_and_damage();
	test_in_packet();
	return pl_test_done();
}
