/* SPDX-License-Identifier: BSD-2-Clause */
/* INT headers: the vectors written out by hand from the specifications, every rule for hostile
 * input, and what the builder writes read back. */
#include <errno.h>

#include "base/rng.h"
#include "wire/int.h"
#include "wire/test_hex.h"

static struct pl_int_cache cache;
static const struct pl_int_hints none;

static enum pl_verdict parse(struct pl_int *ret, const char *hex, enum pl_int_carrier carrier,
	const struct pl_int_hints *hints, bool truncated)
{
	struct pl_cursor c = from_hex(hex);
	const enum pl_verdict v = pl_int_parse(ret, &c, carrier, hints, &cache, truncated);

	ok(c.pos <= c.end);
	return v;
}

#define V05_TWO "01000800 00021002 90000000 00000002 00000140 00000001 0000000a 11138800"
#define V10_TWO "01000900 10000306 d0000000 00000002 00050006 0100012c 00000001 00030004 00000011"
#define V21_TWO                                                                                    \
	"101100b8 20000706 dc000000 00000000"                                                      \
	"00000002 00050006 0100012c 17979cfe362a03e8 17979cfe362a09c4"                             \
	"00000001 00030004 00000011 17979cfe362a0000 17979cfe362a0190"

static void vectors(void)
{
	struct pl_int h;

	eq(parse(&h, V05_TWO, PL_INT_OVER_L4, &none, false), PL_V_OK, "v0.5 vector");
	eq(h.version, PL_INT_V05);
	eq(h.hops, 2);
	eq(h.hop_words, 2);
	eq(h.hops_left, 14);
	eq(h.bitmap, 0x9000);
	ok(h.have_proto && h.proto == 17 && h.have_dport && h.dport == 5000 && h.have_dscp &&
		h.dscp == 0);
	eq(pl_be32(h.stack), 2);
	eq(h.layout->off[PL_INT_F_QUEUE], 4);
	eq(h.layout->off[PL_INT_F_PORTS], PL_INT_NO_OFFSET);
	eq(pl_cursor_left(&h.rest), 0);

	eq(parse(&h, V10_TWO, PL_INT_OVER_L4, &none, false), PL_V_OK, "v1.0 vector");
	eq(h.version, PL_INT_V10);
	eq(h.hops, 2);
	eq(h.hops_left, 6);
	eq(h.layout->dialect, PL_DIALECT_SPEC);
	ok(!h.partial && !h.copy);

	eq(parse(&h, V21_TWO, PL_INT_OVER_L4, &none, false), PL_V_OK, "v2.1 vector");
	eq(h.version, PL_INT_V20);
	eq(h.kind, PL_INT_MD);
	eq(h.hops, 2);
	ok(h.have_dscp && h.dscp == 46, "original DSCP restored");
	eq(pl_be64(h.stack + h.layout->off[PL_INT_F_EGRESS_TS]), UINT64_C(0x17979cfe362a09c4));
	ok(h.layout->ts64);
}

/* Hop length chooses the dialect (v1.0). */
static void dialects(void)
{
	static const struct {
		uint16_t bitmap;
		unsigned int words;
		int want; /* dialect, -1 = none fits */
		enum pl_dialect prefer;
	} rows[] = {
		{ 0xff00, 9, PL_DIALECT_SPEC, 0 },
		{ 0xff00, 8, PL_DIALECT_INTCOLLECTOR, 0 },
		{ 0xff00, 10, PL_DIALECT_GEANT, 0 },
		{ 0xff00, 7, -1, 0 },
		{ 0xff00, 11, -1, 0 },
		{ 0xff00, 0, -1, 0 },
		{ 0xfc00, 6, PL_DIALECT_SPEC, 0 },
		{ 0xfc00, 6, PL_DIALECT_INTCOLLECTOR, PL_DIALECT_INTCOLLECTOR },
		{ 0xfc00, 6, PL_DIALECT_NOVIFLOW, PL_DIALECT_NOVIFLOW },
		{ 0xfc00, 8, PL_DIALECT_GEANT, 0 },
		{ 0xfc00, 8, PL_DIALECT_GEANT, PL_DIALECT_NOVIFLOW },
		{ 0xfc01, 7, PL_DIALECT_SPEC, 0 },
		{ 0x0000, 1, -1, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_int_layout l;
		int r = pl_int_layout_find(&l, PL_INT_V10, rows[i].bitmap, rows[i].words, false,
			rows[i].prefer, PL_QUEUE_WORD_AUTO);

		if (rows[i].want < 0)
			eq(r, -ENOENT, "bitmap %04x, %u words: none", rows[i].bitmap,
				rows[i].words);
		else
			ok(r == 0 && l.dialect == rows[i].want, "bitmap %04x, %u words: %s",
				rows[i].bitmap, rows[i].words, pl_dialect_name(rows[i].want));
	}

	struct pl_int_layout l;

	eq(pl_int_layout_find(&l, PL_INT_V10, 0xff00, 8, false, 0, PL_QUEUE_WORD_8_24), 0);
	ok(!l.queue_16, "the queue word can be overridden");
	eq(pl_int_layout_find(&l, PL_INT_V20, 0xff00, 12, false, 0, 0), -ENOENT);
	eq(pl_int_layout_find(&l, PL_INT_V20, 0xff00, 12, true, 0, 0), 0,
		"domain words need a domain id");
	eq(l.baseline_words, 11);
	eq(pl_int_layout_find(&l, PL_INT_V20, 0xff00, 10, true, 0, 0), -ENOENT);
}

static void hostile(void)
{
	static const struct {
		const char *what, *hex;
		enum pl_int_carrier carrier;
		bool truncated;
		enum pl_verdict want;
		uint64_t notes; /* that must be there */
	} rows[] = {
		{ "empty", "", PL_INT_OVER_L4, false, PL_V_SHORT, 0 },
		{ "three bytes", "101100", PL_INT_OVER_L4, false, PL_V_SHORT, 0 },
		{ "type 0", "00110000 20000706 dc000000 00000000", PL_INT_OVER_L4, false,
			PL_V_SHIM_TYPE, 0 },
		{ "type 4 of v2", "40110000 20000706 dc000000 00000000", PL_INT_OVER_L4, false,
			PL_V_SHIM_TYPE, 0 },
		{ "NPT 3", "1c030000 20000706 dc000000 00000000", PL_INT_OVER_L4, false,
			PL_V_SHIM_TYPE, 0 },
		{ "v0.5 length 3", "01000300 00021000 90000000 11138800", PL_INT_OVER_L4, false,
			PL_V_SHIM_LENGTH_MIN, 0 },
		{ "v1.0 length 2", "01000200 10000306 d0000000", PL_INT_OVER_L4, false,
			PL_V_SHIM_LENGTH_MIN, 0 },
		{ "v1.0 length 0", "01000000 10000306 d0000000", PL_INT_OVER_L4, false,
			PL_V_SHIM_LENGTH_MIN, 0 },
		{ "v2 length 2", "10020000 20000706 dc000000 00000000", PL_INT_OVER_L4, false,
			PL_V_SHIM_LENGTH_MIN, 0 },
		{ "length 255 of a short packet", "10ff0000 20000706 dc000000 00000000",
			PL_INT_OVER_L4, false, PL_V_SHIM_LENGTH_MAX, 0 },
		{ "length 255, cut", "10ff0000 20000706 dc000000 00000000", PL_INT_OVER_L4, true,
			PL_V_INT_TRUNCATED, PL_NOTE_BIT(PARTIAL) },
		{ "version 3", "10030000 30000706 dc000000 00000000", PL_INT_OVER_L4, false,
			PL_V_INT_VERSION, 0 },
		{ "v2 shim, v1.0 header", "10050000 10000306 d0000000 00000002 00050006 0100012c",
			PL_INT_OVER_L4, false, PL_V_INT_SHIM_VERSION, 0 },
		{ "v1 shim, v2 header", "01000600 20000706 dc000000 00000000 00000000 00000000",
			PL_INT_OVER_L4, false, PL_V_INT_SHIM_VERSION, 0 },
		{ "v2 shim, v3 header", "10060000 30000306 d0000000 00000000 00000000 00000000",
			PL_INT_OVER_L4, false, PL_V_INT_VERSION, 0 },
		{ "v1.0 stack not whole hops",
			"01000800 10000306 d0000000 00000002 00050006 0100012c 00000001 00030004",
			PL_INT_OVER_L4, false, PL_V_INT_STACK_WORDS, 0 },
		{ "v2 stack not whole hops, no domain",
			"10080000 20000406 f0000000 00000000 00000002 00050006 0100012c 00000001 00030004",
			PL_INT_OVER_L4, false, PL_V_INT_STACK_WORDS, 0 },
		{ "v2 words that no instruction of the domain asks for",
			"10080000 20000406 f0000001 00000000 00000002 00050006 0100012c 00000001 00030004",
			PL_INT_OVER_L4, false, PL_V_INT_STACK_WORDS, 0 },
		{ "v2 source-only words of an unknown domain",
			"10080000 20000406 f0000001 80000000 00000002 00050006 0100012c 00000001 00030004",
			PL_INT_OVER_L4, false, PL_V_OK, PL_NOTE_BIT(SOURCE_UNKNOWN) },
		{ "v2 fewer words than a hop of an unknown domain",
			"10040000 20000406 f0000001 80000000 00000002", PL_INT_OVER_L4, false,
			PL_V_INT_STACK_WORDS, 0 },
		{ "v2 MD behind the type of MX",
			"30050000 20000206 c0000000 00000000 00000001 00010002", PL_INT_OVER_L4,
			false, PL_V_OK, PL_NOTE_BIT(INT_TYPE_LIES) },
		{ "v2 MX with words and no domain", "30040000 20000000 c0000000 00000000 00000001",
			PL_INT_OVER_L4, false, PL_V_OK, PL_NOTE_BIT(MX_WORDS) },
		{ "HopML 0", "01000300 10000006 d0000000", PL_INT_OVER_L4, false, PL_V_INT_HOP_ML,
			0 },
		{ "HopML of no dialect", "01000500 10000206 d0000000 00000001 00030004",
			PL_INT_OVER_L4, false, PL_V_INT_HOP_ML, 0 },
		{ "InsCnt lies", "01000600 00031001 90000000 00000002 00000140 11138800",
			PL_INT_OVER_L4, false, PL_V_INT_INS_COUNT, 0 },
		{ "TotalHopCnt lies", "01000600 00021002 90000000 00000002 00000140 11138800",
			PL_INT_OVER_L4, false, PL_V_INT_HOP_COUNT, 0 },
		{ "TotalHopCnt above MaxHopCnt",
			"01000600 00020001 90000000 00000002 00000140 11138800", PL_INT_OVER_L4,
			false, PL_V_INT_HOP_COUNT, 0 },
		{ "zero hops v1.0", "01000300 10000306 d0000000", PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(NO_HOPS) },
		{ "zero hops v0.5", "01000400 00021000 90000000 11138800", PL_INT_OVER_L4, false,
			PL_V_OK, PL_NOTE_BIT(NO_HOPS) },
		{ "zero hops v2", "10030000 20000706 dc000000 00000000", PL_INT_OVER_L4, false,
			PL_V_OK, PL_NOTE_BIT(NO_HOPS) },
		{ "E", "01000300 11000300 d0000000", PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(HOP_LIMIT) | PL_NOTE_BIT(PARTIAL) },
		{ "M", "01000300 10800306 d0000000", PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(MTU_LIMIT) | PL_NOTE_BIT(PARTIAL) },
		{ "C", "01000300 12000306 d0000000", PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(COPY) },
		{ "v2 E", "10030000 24000706 dc000000 00000000", PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(HOP_LIMIT) },
		{ "v2 M", "10030000 22000706 dc000000 00000000", PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(MTU_LIMIT) },
		{ "v2 D", "10030000 28000706 dc000000 00000000", PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(COPY) },
		{ "reserved bitmap bit", "01000500 10000206 80400000 00000001 ffffffff",
			PL_INT_OVER_L4, false, PL_V_OK, PL_NOTE_BIT(RESERVED_BITS) },
		{ "unknown domain",
			"10060000 20000306 c0000007 00000000 00000001 00010002 deadbeef",
			PL_INT_OVER_L4, false, PL_V_OK, PL_NOTE_BIT(DS_UNKNOWN) },
		{ "tail missing", "01000400 00021000 90000000", PL_INT_OVER_L4, false,
			PL_V_INT_TAIL, 0 },
		{ "tail of no transport", "01000400 00021000 90000000 63138800", PL_INT_OVER_L4,
			false, PL_V_INT_TAIL, 0 },
		{ "destination shim first", "02000200 aabbccdd 01000300 10000306 d0000000",
			PL_INT_OVER_L4, false, PL_V_OK,
			PL_NOTE_BIT(DESTINATION_SHIM) | PL_NOTE_BIT(NO_HOPS) },
		{ "v2 destination shim, then payload", "20010000 aabbccdd 63626160", PL_INT_OVER_L4,
			false, PL_V_OK, PL_NOTE_BIT(DESTINATION_SHIM) },
		{ "destination shim past the end", "02000900 aabbccdd", PL_INT_OVER_L4, false,
			PL_V_SHIM_LENGTH_MAX, 0 },
		{ "destination shim of length 0", "02000000 aabbccdd", PL_INT_OVER_L4, false,
			PL_V_SHIM_LENGTH_MIN, 0 },
		{ "v1.0 over GRE", "01000300 10000306 d0000000", PL_INT_OVER_GRE, false,
			PL_V_SHIM_TYPE, 0 },
		{ "GRE with G", "18030800 20000706 dc000000 00000000", PL_INT_OVER_GRE, false,
			PL_V_OK, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_int h;
		enum pl_verdict v =
			parse(&h, rows[i].hex, rows[i].carrier, &none, rows[i].truncated);

		ok(v == rows[i].want, "%s: %s", rows[i].what, pl_verdict_name(v));
		if (v == PL_V_OK)
			ok((h.notes & rows[i].notes) == rows[i].notes, "%s: notes", rows[i].what);
	}
}

static void truncation(void)
{
	static const char *const all[] = { V05_TWO, V10_TWO, V21_TWO };
	uint8_t bytes[256];

	for (size_t i = 0; i < 3; i++) {
		size_t n = pl_test_hex(bytes, sizeof(bytes), all[i]);

		for (size_t cut = 0; cut < n; cut++) {
			for (int truncated = 0; truncated < 2; truncated++) {
				uint8_t *exact = malloc(cut + 1);
				struct pl_cursor c = pl_cursor(exact, cut);
				struct pl_int h;
				enum pl_verdict v;

				memcpy(exact, bytes, cut);
				v = pl_int_parse(&h, &c, PL_INT_OVER_L4, &none, &cache, truncated);
				ok(v != PL_V_OK, "vector %zu cut to %zu: %s", i, cut,
					pl_verdict_name(v));
				if (v == PL_V_INT_TRUNCATED && h.hops > 0)
					ok(h.stack + 4 * h.hops * h.hop_words <= exact + cut &&
						h.partial);
				free(exact);
			}
		}
	}
}

static uint32_t some(struct pl_rng *rng, unsigned int bits)
{
	return (uint32_t)pl_rng_below(rng, (UINT64_C(1) << bits) - 1); /* never all ones */
}

/* The parser reads what the builder wrote, for random headers of every kind. */
static void round_trips(void)
{
	const uint64_t seed = 20261120;
	struct pl_rng rng;
	unsigned int done = 0;

	pl_rng_seed(&rng, seed);
	for (int round = 0; round < 20000; round++) {
		struct pl_int_header h = {
			.version = (enum pl_int_version)pl_rng_below(&rng, 3),
			.carrier = (enum pl_int_carrier)pl_rng_below(&rng, 4),
			.bitmap = (uint16_t)pl_rng_u64(&rng),
			.hops_left = (uint8_t)pl_rng_below(&rng, 16),
			.npt = (uint8_t)pl_rng_below(&rng, 3),
			.copy = pl_rng_below(&rng, 8) == 0,
			.hop_limit = pl_rng_below(&rng, 8) == 0,
			.dscp = (uint8_t)pl_rng_below(&rng, 64),
			.dport = (uint16_t)pl_rng_u64(&rng),
			.proto = pl_rng_below(&rng, 2) != 0 ? 17 : 6,
		};
		struct pl_int_hints hints = { 0 };
		struct pl_int_hop hops[8], *hop;
		unsigned int n = (unsigned int)pl_rng_below(&rng, 8);
		uint8_t bytes[2048];
		struct pl_build b = pl_build(bytes, sizeof(bytes));
		struct pl_cursor c;
		struct pl_int got;
		enum pl_verdict v;

		memset(hops, 0, sizeof(hops));
		for (unsigned int i = 0; i < n; i++) {
			hop = &hops[i];
			hop->have = (uint32_t)pl_rng_u64(&rng);
			hop->node = some(&rng, 32);
			hop->ingress_port = some(&rng, 16);
			hop->egress_port = some(&rng, 16);
			hop->latency = some(&rng, 32);
			hop->queue = some(&rng, 8);
			hop->queue_depth = some(&rng, 24);
			hop->ingress_ts = some(&rng, 32);
			hop->egress_ts = some(&rng, 32);
			hop->ingress_port2 = some(&rng, 16);
			hop->egress_port2 = some(&rng, 16);
		}
		if (pl_rng_below(&rng, 3) == 0) {
			static const enum pl_dialect speak[3][3] = {
				{ PL_DIALECT_HOST_INT, PL_DIALECT_V04, PL_DIALECT_SPEC },
				{ PL_DIALECT_INTCOLLECTOR, PL_DIALECT_GEANT, PL_DIALECT_NOVIFLOW },
				{ PL_DIALECT_SPEC, PL_DIALECT_SPEC, PL_DIALECT_SPEC },
			};

			h.dialect = speak[h.version][pl_rng_below(&rng, 3)];
			if (h.dialect == PL_DIALECT_HOST_INT)
				h.carrier = PL_INT_OVER_L4;
			hints.dialect = h.dialect;
			hints.dialect_pinned = true;
		}
		if (h.bitmap == 0)
			continue;
		if (pl_int_put(&b, &h, hops, n) < 0)
			continue;
		done++;

		c = pl_cursor(bytes, b.len);
		if (h.carrier == PL_INT_OVER_GENEVE) {
			uint8_t type = bytes[2];

			pl_cursor_skip(&c, 4);
			v = pl_int_parse_geneve(&got, c, type, &hints, &cache);
		} else {
			v = pl_int_parse(&got, &c, h.carrier, &hints, &cache, false);
		}
		if (v != PL_V_OK || got.hops != n || got.version != h.version ||
			got.bitmap != h.bitmap || got.copy != h.copy ||
			got.hop_limit != h.hop_limit || got.hops_left != h.hops_left) {
			ok(false, "round %d of seed %" PRIu64 ": %s, %u hops of %u", round, seed,
				pl_verdict_name(v), got.hops, n);
			return;
		}
		for (unsigned int i = 0; i < n; i++) {
			const uint8_t *block = got.stack + 4 * got.hop_words * (n - 1 - i);
			uint8_t off = got.layout->off[PL_INT_F_PORTS];

			hop = &hops[i];
			if (off == PL_INT_NO_OFFSET)
				continue;
			uint32_t want = (hop->have & PL_INT_HAS(PL_INT_F_PORTS)) == 0
						? 0xffffffff
						: hop->ingress_port << 16 | hop->egress_port;
			uint32_t saw = pl_be32(block + off);

			if (h.dialect == PL_DIALECT_V04) {
				saw &= 0x7fffffff;
				want &= 0x7fffffff;
			}
			if (saw != want) {
				ok(false, "round %d of seed %" PRIu64 ": ports of hop %u", round,
					seed, i);
				return;
			}
		}
	}
	ok(done > 5000, "%u round trips (seed %" PRIu64 ")", done, seed);
}

/* v0.5's words of queue and congestion: 8 bits of the queue and 24 of the value; INTCollector's are
 * 16 and 16. */
static void congestion_words(void)
{
	static const struct {
		enum pl_dialect dialect;
		uint32_t queue, congestion;
	} rows[] = {
		{ PL_DIALECT_SPEC, 0x02000003, 0x04000005 },
		{ PL_DIALECT_HOST_INT, 0x02000003, 0x04000005 },
		{ PL_DIALECT_INTCOLLECTOR, 0x00020003, 0x00040005 },
	};
	const struct pl_int_hop hop = {
		.have = PL_INT_HAS(PL_INT_F_QUEUE) | PL_INT_HAS(PL_INT_F_PORTS2),
		.queue = 2,
		.queue_depth = 3,
		.congestion_queue = 4,
		.congestion = 5,
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t bytes[8];
		struct pl_build b = pl_build(bytes, sizeof(bytes));
		struct pl_int_layout l;

		eq(pl_int_layout_make(&l, PL_INT_V05,
			   PL_INT_BIT(PL_INT_F_QUEUE) | PL_INT_BIT(PL_INT_F_PORTS2), 0,
			   rows[i].dialect),
			0);
		eq(pl_int_put_block(&b, &l, &hop), 0);
		eq(pl_be32(bytes), rows[i].queue, "%s", pl_dialect_name(rows[i].dialect));
		eq(pl_be32(bytes + 4), rows[i].congestion, "%s", pl_dialect_name(rows[i].dialect));
	}
}

int main(void)
{
	vectors();
	dialects();
	hostile();
	truncation();
	round_trips();
	congestion_words();
	return pl_test_done();
}
