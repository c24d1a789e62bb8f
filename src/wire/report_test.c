/* SPDX-License-Identifier: BSD-2-Clause */
/* Telemetry reports: vectors, liars seen in the field, hostile lengths. */
#include "wire/layers.h"
#include "wire/report.h"
#include "wire/test_hex.h"

#define ETH  "020000000001 020000000002 0800 "
#define IP28 "4500001c 00010000 4011 66ce 0a000001 0a000002 138813890008 0000"

static void vectors(void)
{
	struct pl_report_iter it;
	struct pl_report r;
	enum pl_verdict v;

	eq(pl_report_begin(&it, from_hex("01a00005 0000002a 075bcd15 00000007 0009000a 03500000"),
		   -1, false),
		PL_V_OK, "v0.5 drop report");
	ok(pl_report_next(&it, &r, &v));
	ok(r.dropped && !r.congested && r.tracked && r.hw_id == 5 && r.seq == 42 && r.node == 7);
	ok(r.have_drop_reason && r.drop_reason == 80 && r.drop_queue == 3);
	ok(r.hop.ingress_port == 9 && r.hop.egress_port == 10 && r.ingress_ts == 0x075bcd15);
	ok(!pl_report_next(&it, &r, &v) && v == PL_V_OK);

	eq(pl_report_begin(&it, from_hex("161400c5 00000007 0000002a 075bcd15 0009000a 03001000"),
		   -1, false),
		PL_V_OK, "v1.0 report");
	ok(pl_report_next(&it, &r, &v));
	ok(!r.dropped && r.congested && r.tracked && r.hw_id == 5 && r.seq == 42 && r.node == 7);
	ok(r.hop.queue == 3 && r.hop.queue_depth == 4096 && r.notes == 0);

	eq(pl_report_begin(&it,
		   from_hex("2140002a 00000007"
			    "04050020 4500001c 00010000 40110000 0a000001 0a000002"
			    "10040260 50000000 00000000 0009000a 03001000"),
		   -1, false),
		PL_V_OK, "v2.0 group");
	ok(pl_report_next(&it, &r, &v));
	ok(r.hw_id == 5 && r.seq == 42 && r.node == 7 && r.tracked &&
		r.inner_link == PL_LINK_RAW_IP);
	eq(pl_cursor_left(&r.inner), 20);
	ok(pl_report_next(&it, &r, &v));
	ok(r.congested && r.tracked && r.inner_link == PL_LINK_UNKNOWN &&
		r.hop.queue_depth == 4096);
	ok(!pl_report_next(&it, &r, &v) && v == PL_V_OK);
}

static void rows(void)
{
	static const struct {
		const char *what, *hex;
		enum pl_verdict want;
		unsigned int reports;
		uint64_t notes;
		int version, link;
	} t[] = {
		{ "empty", "", PL_V_REPORT_SHORT, 0, 0, -1, -1 },
		{ "version 3", "30000000 00000000 00000000 00000000", PL_V_REPORT_VERSION, 0, 0, -1,
			-1 },
		{ "v0.5 cut", "00a00005 0000002a 075bcd", PL_V_REPORT_SHORT, 0, 0, -1, -1 },
		{ "v0.5 drop header cut", "01a00005 0000002a 075bcd15 00000007 0009000a 0350",
			PL_V_REPORT_SHORT, 0, 0, -1, -1 },
		{ "v0.5 protocol 7", "07a00005 0000002a 075bcd15", PL_V_REPORT_PROTO, 0, 0, -1,
			-1 },
		{ "v1.0 protocol 5", "14a000c5 00000007 0000002a 075bcd15", PL_V_REPORT_PROTO, 0, 0,
			-1, -1 },
		{ "v1.0 length 0", "10000045 00000007 0000002a 075bcd15 " ETH IP28, PL_V_OK, 1,
			PL_NOTE_BIT(REPORT_LENGTH_LIES), PL_REPORT_V10, PL_LINK_ETHERNET },
		{ "v0.5 that says 1", "10200005 0000002a 075bcd15 " ETH IP28, PL_V_OK, 1,
			PL_NOTE_BIT(REPORT_VERSION_LIES), PL_REPORT_V05, PL_LINK_ETHERNET },
		{ "v2.0 that says 1 with lengths 0",
			"1140002a 00000007 14000030 0000000000000000 " ETH IP28, PL_V_OK, 1,
			PL_NOTE_BIT(REPORT_VERSION_LIES) | PL_NOTE_BIT(REPORT_LENGTH_ZERO) |
				PL_NOTE_BIT(INNER_TYPE_LIES),
			PL_REPORT_V20, PL_LINK_ETHERNET },
		{ "v2.0 without reports", "2140002a 00000007", PL_V_REPORT_SHORT, 0, 0, -1, -1 },
		{ "v2.0 second report too long", "2140002a 00000007 00000020 04050020 45000000",
			PL_V_REPORT_LENGTH, 1, 0, -1, -1 },
		{ "v2.0 metadata past the report",
			"2140002a 00000007 10040360 50000000 00000000 0009000a 03001000",
			PL_V_REPORT_MD_LENGTH, 0, 0, -1, -1 },
		{ "v2.0 metadata below the bits",
			"2140002a 00000007 10040260 58000000 00000000 0009000a 03001000",
			PL_V_REPORT_MD_LENGTH, 0, 0, -1, -1 },
		{ "v2.0 INT report without its fixed words", "2140002a 00000007 10010020 00000000",
			PL_V_REPORT_MD_LENGTH, 0, 0, -1, -1 },
		{ "v2.0 IOAM type", "2140002a 00000007 20010020 00000000 00000020", PL_V_OK, 1,
			PL_NOTE_BIT(REPORT_TYPE_SKIPPED), -1, -1 },
		{ "v2.0 TLV too long", "2140002a 00000007 01020020 10050000 00000000",
			PL_V_REPORT_TLV, 1, 0, -1, -1 },
		{ "v2.0 TLV with IPv4",
			"2140002a 00000007 01070020 20060000 4500001c 00010000 40110000 0a000001 0a000002 00000000",
			PL_V_OK, 1, 0, PL_REPORT_V20, PL_LINK_RAW_IP },
		{ "v2.0 says IPv4, is Ethernet", "2140002a 00000007 04ff0020 " ETH IP28 "0000",
			PL_V_OK, 1, PL_NOTE_BIT(INNER_TYPE_LIES), PL_REPORT_V20, PL_LINK_ETHERNET },
		{ "v2.0 a cut packet as long as the reports from it on",
			"2140002a 00000007 04050020 4500002c 00010000 40110000 0a000001 0a000002 04050020 4500001c 00010000 40110000 0a000001 0a000002",
			PL_V_OK, 2, 0, PL_REPORT_V20, PL_LINK_RAW_IP },
		{ "v2.0 short, the packet ends with the datagram",
			"2140002a 00000007 04050020 4500001c 00010000 40110000 0a000001 0a000002 04d21388 00080000",
			PL_V_OK, 1, PL_NOTE_BIT(REPORT_LENGTH_INNER), PL_REPORT_V20,
			PL_LINK_RAW_IP },
		{ "v2.0 lengths that do not end with the datagram, and no packet",
			"2140002a 00000007 04020020 00000054 53000000 00000000 00020000",
			PL_V_REPORT_LENGTH, 0, 0, -1, -1 },
		{ "v2.0 metadata above the bits, without a domain",
			"2140002a 00000007 10050360 50000000 00000000 0009000a 03001000 00000000",
			PL_V_REPORT_MD_LENGTH, 0, 0, -1, -1 },
		{ "v2.0 trailing bytes", "2140002a 00000007 00000020 0000", PL_V_REPORT_SHORT, 1, 0,
			-1, -1 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct pl_report_iter it;
		struct pl_report r = { 0 }, last = { 0 };
		enum pl_verdict v = pl_report_begin(&it, from_hex(t[i].hex), -1, false);
		unsigned int n = 0;

		while (v == PL_V_OK && pl_report_next(&it, &r, &v)) {
			last = r;
			n++;
		}
		if (v == PL_V_OK)
			v = (enum pl_verdict)last.verdict;
		ok(v == t[i].want, "%s: %s", t[i].what, pl_verdict_name(v));
		eq(n, t[i].reports, "%s: reports", t[i].what);
		if (n > 0 && t[i].notes != 0)
			ok((last.notes & t[i].notes) == t[i].notes, "%s: notes %#" PRIx64,
				t[i].what, last.notes);
		if (t[i].version >= 0)
			eq(last.version, t[i].version, "%s: version", t[i].what);
		if (t[i].link >= 0)
			eq(last.inner_link, t[i].link, "%s: inner link", t[i].what);
	}
}

/* The reader reads what the writer wrote. */
static void round_trip(void)
{
	const struct pl_int_hop hop = {
		.have = 0xffff,
		.node = 7,
		.ingress_port = 9,
		.egress_port = 10,
		.latency = 1234,
		.queue = 3,
		.queue_depth = 4096,
		.ingress_ts = 111,
		.egress_ts = 222,
		.tx_util = 55,
		.ingress_port2 = 70000,
		.egress_port2 = 70001,
		.buffer = 2,
		.buffer_depth = 17,
	};
	static const struct pl_report_head heads[] = {
		{ .version = PL_REPORT_V05, .local_header = true, .congested = true },
		{ .version = PL_REPORT_V05,
			.drop_header = true,
			.dropped = true,
			.drop_reason = 80 },
		{ .version = PL_REPORT_V10, .md_bits = 0x3f, .tracked = true, .drop_reason = 9 },
		{ .version = PL_REPORT_V20,
			.md_bits = 0x7f81,
			.intermediate = true,
			.drop_reason = 9 },
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct pl_report_head h = heads[i];
		uint8_t mem[512];
		struct pl_build b = pl_build(mem, sizeof(mem));
		struct pl_report_iter it;
		struct pl_report r;
		enum pl_verdict v;
		size_t at;

		h.hw_id = 33;
		h.seq = 0x2abcde;
		h.node = 7;
		h.ingress_ts = 111;
		h.inner_link = PL_LINK_ETHERNET;
		pl_report_put_group(&b, &h);
		at = pl_report_put(&b, &h, &hop);
		pl_put(&b, "\2\0\0\0\0\1\2\0\0\0\0\2\x08\0", 14);
		pl_put_zero(&b, 21);
		pl_report_end(&b, &h, at);
		ok(!b.full);
		eq(pl_report_begin(&it, pl_cursor(mem, b.len), -1, false), PL_V_OK);
		ok(pl_report_next(&it, &r, &v), "report %zu", i);
		eq(r.version, h.version);
		ok(r.dropped == h.dropped && r.congested == h.congested && r.tracked == h.tracked &&
			r.intermediate == h.intermediate && r.hw_id == 33 && r.seq == 0x2abcde);
		eq(r.node, 7);
		eq(r.hop.egress_port, 10);
		eq(r.inner_link, PL_LINK_ETHERNET);
		if (h.version == PL_REPORT_V20) {
			eq(r.hop.ingress_ts, 111);
			eq(r.hop.egress_ts, 222);
			eq(r.hop.egress_port2, 70001);
			eq(r.hop.buffer_depth, 17);
			eq(r.drop_reason, 9);
		}
		ok(!pl_report_next(&it, &r, &v) && v == PL_V_OK, "and nothing more");
	}
}

/* Writes `n` reports of these words behind a group header. Returns the bytes written. */
static size_t put_many(uint8_t *dst, size_t cap, unsigned int n, const uint32_t *words, size_t each)
{
	struct pl_build b = pl_build(dst, cap);

	pl_put_be32(&b, 0x20000001);
	pl_put_be32(&b, 7);
	for (unsigned int i = 0; i < n; i++) {
		for (size_t w = 0; w < each; w++)
			pl_put_be32(&b, words[w]);
	}
	ok(!b.full, "%u reports fit into a datagram", n);
	return b.len;
}

/* Whether a report is one can depend on all behind it: however many depend, each length is followed
 * a fixed number of times. */
static void lengths_followed(void)
{
	/* Behind the first, which does not tell its own length, reports of a skipped type; then
	 * reports with the beginning of a packet, in a datagram that they fill, or do not. */
	static const uint32_t raw[] = { 0x02010000, 1 }, skipped[] = { 0x20010000, 1 },
			      begun[] = { 0x04050000, 0x450005dc, 0x00010000, 0x40110000,
				      0x0a000001, 0x0a000002 };
	static uint8_t mem[65507];
	const struct {
		const char *what;
		const uint32_t *words;
		size_t each;
		unsigned int n, extra, read;
		enum pl_verdict v;
	} rows[] = {
		{ "skipped types", skipped, 2, 8000, 0, 1, PL_V_OK },
		{ "begun packets", begun, 6, 2700, 0, 2701, PL_V_OK },
		{ "begun packets and too few bytes", begun, 6, 2700, 6, 1, PL_V_REPORT_LENGTH },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len =
			put_many(mem, sizeof(mem) - 24, rows[i].n, rows[i].words, rows[i].each);
		unsigned int read = 0;
		struct pl_report_iter it;
		struct pl_report r;
		enum pl_verdict v;

		memmove(mem + 8 + sizeof(raw), mem + 8, len - 8);
		put_many(mem, 16, 1, raw, 2);
		len += sizeof(raw);
		memcpy(mem + len, mem + 16, rows[i].extra);
		eq(pl_report_begin(&it, pl_cursor(mem, len + rows[i].extra), -1, false), PL_V_OK);
		while (pl_report_next(&it, &r, &v))
			read++;
		eq(read, rows[i].read, "%s: reports read", rows[i].what);
		eq(v, rows[i].v, "%s: the verdict", rows[i].what);
		ok(it.ahead <= 2 * (rows[i].n + 2), "%s: %u lengths were followed for %u reports",
			rows[i].what, it.ahead, rows[i].n);
	}
}

int main(void)
{
	vectors();
	lengths_followed();
	rows();
	round_trip();
	return pl_test_done();
}
