/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/roce.h"

#include "base/crc32.h"
#include "base/rng.h"
#include "base/test.h"

#define IP4_WRITE "4500 0044 2C75 4000 4011 F99C 0A000065 0A000033 2710 12B7 0030 0000 "
#define V1_TRANSPORT                                                                               \
	"0A40FFFF000011B900000064 00007F0000000568 00012345 00000008 79B8F899 0000002A "

/* From the network header to the ICRC; confirmed by two implementations that are not ours, and by
 * scapy. */
static const struct vector {
	const char *name, *bytes;
	enum pl_roce_net net;
	uint8_t opcode;
	uint32_t qpn, psn;
	size_t payload;
} vectors[] = {
	{ "RC WRITE Only", IP4_WRITE V1_TRANSPORT "5289F181", PL_ROCE_NET_IP4, 0x0a, 0x11b9, 0x64,
		8 },
	{ "RC FETCH_ADD",
		"4500 0048 2C75 4000 4011 F998 0A000065 0A000033 2710 12B7 0034 0000"
		"1440FFFF000011B980000065 00007F0000000040 00012345 0000000000000007"
		"0000000000000000 89464B6B",
		PL_ROCE_NET_IP4, 0x14, 0x11b9, 0x65, 0 },
	{ "RC ACK",
		"4500 0030 2C75 4000 4011 F9B0 0A000065 0A000033 2710 12B7 001C 0000"
		"1100FFFF0000053900000064 1F000003 150326DF",
		PL_ROCE_NET_IP4, 0x11, 0x539, 0x64, 0 },
	{ "RC NAK",
		"4500 0030 2C75 4000 4011 F9B0 0A000065 0A000033 2710 12B7 001C 0000"
		"1100FFFF0000053900000064 60000003 DFB37AEC",
		PL_ROCE_NET_IP4, 0x11, 0x539, 0x64, 0 },
	{ "RC ATOMIC ACK",
		"4500 0038 2C75 4000 4011 F9A8 0A000065 0A000033 2710 12B7 0024 0000"
		"1200FFFF0000053900000065 1F000004 0000000000000023 65DEB778",
		PL_ROCE_NET_IP4, 0x12, 0x539, 0x65, 0 },
	{ "UC WRITE Only, pad 3",
		IP4_WRITE "2A70FFFF000011B900000066 00007F0000000080 00012345 00000005"
			  "68656C6C6F 000000 28027E26",
		PL_ROCE_NET_IP4, 0x2a, 0x11b9, 0x66, 5 },
	{ "RC WRITE Only, IPv6",
		"60000000 0030 11 40 FD000000000000000000000000000065"
		"FD000000000000000000000000000033 2710 12B7 0030 0000 " V1_TRANSPORT "F5681765",
		PL_ROCE_NET_IP6, 0x0a, 0x11b9, 0x64, 8 },
	{ "RC WRITE Only with Immediate, RoCEv1",
		"60000000 0050 1B 40 00000000000000000000FFFF0A010101"
		"00000000000000000000FFFF0A010102 0B40FFFF0000026380000000"
		"0000556EB06B4800 58010101 0000002C 41414141"
		"000000000000000000000000C0000201 000000000000000000000000C0000202"
		"04D2 0050 01020304 05060708 5F25AB41",
		PL_ROCE_NET_GRH, 0x0b, 0x263, 0, 44 },
	{ "RC WRITE Only with Immediate, solicited",
		"4500 0050 2C75 4000 4011 F990 0A000065 0A000033 2710 12B7 003C 0000"
		"0BC0FFFF000011B900000067 00007F0000000010 00012345 00000010 00000001"
		"01000000 02000000 03000000 04000000 31FD19BB",
		PL_ROCE_NET_IP4, 0x0b, 0x11b9, 0x67, 16 },
};

#define VECTORS (sizeof(vectors) / sizeof(vectors[0]))

/* The vector behind an Ethernet header. */
static size_t frame_of(uint8_t frame[256], const struct vector *v, bool tagged)
{
	static const uint16_t types[] = { 0x0800, 0x86dd, 0x8915 };
	struct pl_build b = pl_build(frame, 256);

	pl_put(&b, "\2\0\0\0\0\1\2\0\0\0\0\2", 12);
	if (tagged)
		pl_put_be32(&b, 0x8100a005);
	pl_put_be16(&b, types[v->net]);
	return b.len + pl_test_hex(frame + b.len, 256 - b.len, v->bytes);
}

static void test_specification_sample(void)
{
	static const char text[] = "F012375C000E17D2 0A202487FF87B1B3000DEC2A"
				   "01710A1C015D400238F27A050000000E"
				   "BB884D85FD5CFBA4728BC0690ED40000";
	uint8_t bytes[64];
	uint32_t icrc = 0;
	size_t n = pl_test_hex(bytes, sizeof(bytes), text);

	eq(n, 52);
	icrc = pl_crc32(0, bytes, n);
	memeq(&icrc, "\x96\x25\xb7\x5a", 4, "the specification's sample packet");
}

static void test_vectors(void)
{
	for (size_t i = 0; i < VECTORS; i++) {
		const struct vector *v = &vectors[i];
		uint8_t frame[256], again[256];
		struct pl_roce r;

		for (int tagged = 0; tagged < 2; tagged++) {
			size_t n = frame_of(frame, v, tagged);
			struct pl_build b = pl_build(again, sizeof(again));

			eq(pl_roce_parse(&r, pl_cursor(frame, n), PL_LINK_ETHERNET), PL_ROCE_F_OK,
				"%s: decodes", v->name);
			ok(r.opcode == v->opcode && r.qpn == v->qpn && r.psn == v->psn &&
					pl_cursor_left(&r.payload) == v->payload,
				"%s: its fields", v->name);
			pl_roce_put(&b, &r, r.payload.pos, pl_cursor_left(&r.payload));
			ok(!b.full && b.len == n, "%s: as long again", v->name);
			memeq(again, frame, n, "%s: encodes to the same bytes", v->name);
			/* Bytes behind the packet, as short frames have them, are not its own. */
			memset(frame + n, 0x55, 20);
			eq(pl_roce_parse(&r, pl_cursor(frame, n + 20), PL_LINK_ETHERNET),
				PL_ROCE_F_OK, "%s: with bytes behind it", v->name);
		}
	}
}

static void test_fields(void)
{
	uint8_t frame[256];
	struct pl_roce r;
	size_t n = frame_of(frame, &vectors[8], true);

	pl_roce_parse(&r, pl_cursor(frame, n), PL_LINK_ETHERNET);
	ok(r.va == 0x7f0000000010 && r.rkey == 0x12345 && r.length == 16 && r.imm == 1,
		"RETH, ImmDt");
	ok(r.solicited && r.migrated && !r.ack_req && r.pad == 0 && r.pkey == 0xffff, "BTH");
	ok(r.path.tagged && r.path.tci == 0xa005 && r.path.sport == 10000 &&
			r.path.ip_id == 11381 && r.path.ttl == 64 && !r.path.may_fragment &&
			!r.path.v1,
		"path");
	n = frame_of(frame, &vectors[1], false);
	pl_roce_parse(&r, pl_cursor(frame, n), PL_LINK_ETHERNET);
	ok(r.va == 0x7f0000000040 && r.rkey == 0x12345 && r.swap_add == 7 && r.compare == 0 &&
			r.ack_req,
		"AtomicETH");
	n = frame_of(frame, &vectors[4], false);
	pl_roce_parse(&r, pl_cursor(frame, n), PL_LINK_ETHERNET);
	ok(r.syndrome == 0x1f && r.msn == 4 && r.original == 0x23, "AETH, AtomicAckETH");
	n = frame_of(frame, &vectors[7], false);
	pl_roce_parse(&r, pl_cursor(frame, n), PL_LINK_ETHERNET);
	ok(r.path.v1 && pl_addr_is_v4(&r.path.src) && r.path.dst.b[15] == 2, "GRH");
}

/* Returns true when a bit may change on the way, by the specification's list, written here once
 * more. */
static bool may_change(enum pl_roce_net net, size_t byte, unsigned int bit)
{
	if (net == PL_ROCE_NET_IP4)
		return byte == 1 || byte == 8 || byte == 10 || byte == 11 || byte == 26 ||
		       byte == 27 || byte == 32;
	if ((byte == 0 && bit < 4) || (byte >= 1 && byte <= 3) || byte == 7)
		return true;
	return net == PL_ROCE_NET_IP6 ? byte == 46 || byte == 47 || byte == 52 : byte == 44;
}

static void test_every_bit(void)
{
	for (size_t i = 0; i < VECTORS; i++) {
		const struct vector *v = &vectors[i];
		unsigned int missed = 0, refused = 0, detected = 0;
		uint8_t frame[256];
		struct pl_roce r;
		size_t n = frame_of(frame, v, false);

		for (size_t byte = 14; byte < n; byte++) {
			for (unsigned int bit = 0; bit < 8; bit++) {
				enum pl_roce_fault fault;
				bool may = may_change(v->net, byte - 14, bit);
				/* A UDP checksum that is there is checked. */
				bool sum = may && v->net != PL_ROCE_NET_GRH &&
					   (byte - 14 == (v->net == PL_ROCE_NET_IP4 ? 26u : 46u) ||
						   byte - 14 ==
							   (v->net == PL_ROCE_NET_IP4 ? 27u : 47u));

				frame[byte] ^= (uint8_t)(1u << bit);
				fault = pl_roce_parse(&r, pl_cursor(frame, n), PL_LINK_ETHERNET);
				frame[byte] ^= (uint8_t)(1u << bit);
				if (sum)
					refused += fault != PL_ROCE_F_UDP_CHECKSUM;
				else if (may)
					refused += fault != PL_ROCE_F_OK;
				else
					missed += fault == PL_ROCE_F_OK;
				detected += fault == PL_ROCE_F_ICRC;
			}
		}
		eq(missed, 0, "%s: no changed bit is missed", v->name);
		eq(refused, 0, "%s: what may change does not matter", v->name);
		ok(detected > 8 * 20, "%s: by the ICRC", v->name);
	}
}

static void test_cut(void)
{
	for (size_t i = 0; i < VECTORS; i++) {
		unsigned int accepted = 0;
		uint8_t frame[256];
		struct pl_roce r;
		size_t n = frame_of(frame, &vectors[i], i % 2);

		for (size_t len = 0; len < n; len++) {
			uint8_t *tight = malloc(len);

			memcpy(tight, frame, len);
			accepted += pl_roce_parse(&r, pl_cursor(tight, len), PL_LINK_ETHERNET) ==
				    PL_ROCE_F_OK;
			free(tight);
		}
		eq(accepted, 0, "%s: no beginning of it is taken for a packet", vectors[i].name);
	}
}

/* A wrong frame made of the first vector: bytes replaced, then the ICRC made right again unless
 * that is the fault. */
static void test_faults(void)
{
	static const struct {
		const char *name;
		size_t at; /* from the network header */
		uint8_t value;
		bool reseal;
		enum pl_roce_fault fault;
	} cases[] = {
		{ "another port", 23, 0xb8, true, PL_ROCE_F_NOT_ROCE },
		{ "TCP", 9, 6, true, PL_ROCE_F_NOT_ROCE },
		{ "options", 0, 0x46, true, PL_ROCE_F_NOT_ROCE },
		{ "header of 16 bytes", 0, 0x44, true, PL_ROCE_F_IP_HEADER },
		{ "version 6 behind 0800", 0, 0x65, true, PL_ROCE_F_IP_HEADER },
		{ "more fragments", 6, 0x20, true, PL_ROCE_F_FRAGMENT },
		{ "a later fragment", 7, 1, true, PL_ROCE_F_FRAGMENT },
		{ "IP length above the frame", 3, 0x45, false, PL_ROCE_F_SHORT },
		{ "IP length below its header", 3, 19, false, PL_ROCE_F_IP_LENGTH },
		{ "UDP length below the IP payload", 25, 0x2f, true, PL_ROCE_F_IP_LENGTH },
		{ "UDP length above the IP payload", 25, 0x31, true, PL_ROCE_F_IP_LENGTH },
		{ "UDP checksum", 27, 1, true, PL_ROCE_F_UDP_CHECKSUM },
		{ "TVer 1", 29, 0x41, true, PL_ROCE_F_TVER },
		{ "reserved opcode 15", 28, 0x15, true, PL_ROCE_F_OPCODE },
		{ "reserved opcode 1f", 28, 0x1f, true, PL_ROCE_F_OPCODE },
		{ "UC READ", 28, 0x2c, true, PL_ROCE_F_OPCODE },
		{ "UC FETCH_ADD", 28, 0x34, true, PL_ROCE_F_OPCODE },
		{ "UD WRITE", 28, 0x6a, true, PL_ROCE_F_OPCODE },
		{ "a manufacturer's", 28, 0xc0, true, PL_ROCE_F_OPCODE },
		{ "no room for an AtomicETH", 28, 0x14, true, PL_ROCE_F_SHORT },
		{ "payload changed", 60, 1, false, PL_ROCE_F_ICRC },
	};
	struct pl_roce r;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t frame[256];
		size_t n = frame_of(frame, &vectors[0], false);

		frame[14 + cases[i].at] = cases[i].value;
		if (cases[i].reseal) {
			uint32_t icrc = pl_roce_icrc(frame + 14, n - 18, PL_ROCE_NET_IP4);

			memcpy(frame + n - 4, &icrc, 4);
		}
		eq(pl_roce_parse(&r, pl_cursor(frame, n), PL_LINK_ETHERNET), cases[i].fault, "%s",
			cases[i].name);
	}
	eq(pl_roce_parse(&r, pl_cursor("", 0), PL_LINK_UDP), PL_ROCE_F_NOT_ROCE,
		"a datagram's payload has no network header");
}

static void test_pads_and_sizes(void)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 4, 255, 256, 1023, 4095, 4096 };
	static uint8_t frame[PL_ROCE_FRAME_MAX + 16], data[PL_ROCE_PATH_MTU + 1];
	struct pl_roce in = { .opcode = PL_ROCE_WRITE_ONLY_IMM, .pkey = 0xffff, .qpn = 7 }, out;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	in.path = (struct pl_roce_path){ .src = pl_addr_v4("\12\0\0\1"),
		.dst = pl_addr_v4("\12\0\0\2"),
		.ttl = 64,
		.sport = 50000 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct pl_build b = pl_build(frame, sizeof(frame));

		pl_roce_put(&b, &in, data, sizes[i]);
		eq(pl_roce_parse(&out, pl_cursor(frame, b.len), PL_LINK_ETHERNET), PL_ROCE_F_OK,
			"%zu bytes", sizes[i]);
		ok(out.pad == (4 - sizes[i] % 4) % 4 && pl_cursor_left(&out.payload) == sizes[i] &&
				memcmp(out.payload.pos, data, sizes[i]) == 0,
			"%zu bytes: pad %u", sizes[i], out.pad);
		b = pl_build(frame, b.len - 1);
		pl_roce_put(&b, &in, data, sizes[i]);
		ok(b.full, "%zu bytes: no room for the last", sizes[i]);
	}
	{
		struct pl_build b = pl_build(frame, sizeof(frame));

		pl_roce_put(&b, &in, data, PL_ROCE_PATH_MTU + 1);
		ok(b.full && b.len == 0, "a payload above the largest MTU");
		b = pl_build(frame, sizeof(frame));
		in.opcode = PL_ROCE_UC | PL_ROCE_READ_REQUEST;
		pl_roce_put(&b, &in, NULL, 0);
		ok(b.full && b.len == 0, "an operation that the service has not");
	}
}

/* All lengths that the shorter way takes and those around them, whatever stands before the
 * packet. */
/* Packets that differ in their last 16 bytes have ICRCs that differ as these do. */
static void test_icrc_tail(void)
{
	uint8_t bytes[96];
	unsigned int wrong = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, 17);
	for (unsigned int i = 0; i < 1000; i++) {
		const size_t n = 52 + 4 * pl_rng_below(&rng, 11); /* behind what is masked */
		uint64_t tail[2] = { pl_rng_u64(&rng), pl_rng_u64(&rng) };
		uint32_t icrc;

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)pl_rng_u64(&rng);
		memcpy(bytes + n - 16, tail, 16);
		icrc = pl_roce_icrc(bytes, n, PL_ROCE_NET_IP4) ^
		       pl_roce_icrc_tail(tail[0], tail[1]);
		tail[0] = i == 0 ? 0 : pl_rng_u64(&rng);
		tail[1] = i == 1 ? 0 : pl_rng_u64(&rng);
		memcpy(bytes + n - 16, tail, 16);
		wrong += (icrc ^ pl_roce_icrc_tail(tail[0], tail[1])) !=
			 pl_roce_icrc(bytes, n, PL_ROCE_NET_IP4);
	}
	eq(wrong, 0, "of packets that differ in their last 16 bytes");
}

/* A socket does not tell an IPv4 packet's identification, its ICRC does. */
static void test_icrc_find_id(void)
{
	unsigned int tried = 0, wrong = 0, plausible = 0;
	struct pl_rng rng;

	pl_rng_seed(&rng, 3);
	for (size_t i = 0; i < VECTORS; i++) {
		uint8_t frame[256], *net = frame + 14;
		const size_t n = frame_of(frame, &vectors[i], false) - 14 - 4;
		uint32_t icrc;
		uint16_t id;
		bool fragments;

		if (vectors[i].net != PL_ROCE_NET_IP4)
			continue;
		for (uint32_t k = 0; k < 65536; k += 257) {
			net[4] = (uint8_t)(k >> 8);
			net[5] = (uint8_t)k;
			net[6] = k & 1 ? 0 : 0x40;
			icrc = pl_roce_icrc(net, n, PL_ROCE_NET_IP4);
			net[4] = net[5] = 0;
			net[6] = 0x40;
			tried++;
			wrong += !pl_roce_icrc_find_id(net, n, icrc, &id, &fragments) || id != k ||
				 fragments != ((k & 1) != 0);
		}
		for (uint32_t k = 0; k < 1u << 17; k++)
			plausible += pl_roce_icrc_find_id(
				net, n, (uint32_t)pl_rng_u64(&rng), &id, &fragments);
	}
	ok(tried >= 4 * 256 && wrong == 0, "%u identifications, %u not found", tried, wrong);
	tried = tried / 256 << 17;
	ok(plausible >= tried >> 16 && plausible <= tried >> 14,
		"of %u wrong ICRCs %u have an explanation: one in 2^15", tried, plausible);
}

static void test_icrc_in_place(void)
{
	uint8_t bytes[14 + 300];
	unsigned int wrong = 0;

	for (size_t n = 40; n <= 300; n++) {
		for (unsigned int turn = 0; turn < 8; turn++) {
			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = (uint8_t)(i * 31 + n * 7 + turn * 101);
			wrong += pl_roce_icrc_ip4(bytes + 14, n) !=
				 pl_roce_icrc(bytes + 14, n, PL_ROCE_NET_IP4);
		}
	}
	eq(wrong, 0, "the ICRC where the packet lies");
}

static void test_numbers(void)
{
	eq(pl_psn_diff(0, 0xffffff), 1, "PSN wraps");
	ok(pl_psn_diff(0xffffff, 0) == -1, "and back");
	ok(pl_psn_diff(0x800000, 0) == -0x800000, "half of the space away is behind");
	eq(pl_psn_diff(0x7fffff, 0), 0x7fffff, "one less is ahead");
	eq(pl_psn_add(0xfffffe, 3), 1);
	eq(pl_roce_packets(0, 1024), 1);
	eq(pl_roce_packets(1024, 1024), 1);
	eq(pl_roce_packets(1025, 1024), 2);
	eq(pl_roce_packets(PL_ROCE_LEN_MAX, 256), 1u << 23);
	eq(pl_roce_rnr_ns(12), 640000);
	eq(pl_roce_rnr_ns(0), 655360000);
	eq(pl_roce_headers(PL_ROCE_UD | PL_ROCE_SEND_ONLY_IMM), PL_ROCE_H_DETH | PL_ROCE_H_IMM);
	ok(pl_roce_headers(PL_ROCE_CNP) == -1 && pl_roce_headers(0x40) == -1, "CNP, RD");
}

int main(void)
{
	test_specification_sample();
	test_vectors();
	test_fields();
	test_every_bit();
	test_cut();
	test_faults();
	test_pads_and_sizes();
	test_icrc_in_place();
	test_icrc_tail();
	test_icrc_find_id();
	test_numbers();
	return pl_test_done();
}
