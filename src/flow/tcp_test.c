/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP analytics by situations: what passes the tap, written from RFC 9293 (numbers, handshake),
 * RFC 5681 (duplicate ACKs), RFC 7323 (timestamps) and RFC 1122 (keep-alives), and what the record
 * and the counters must say. Whatever a situation does not name must be zero.
 */
#include "flow/test_packets.h"

enum { STEPS = 14 };

struct step {
	uint32_t us; /* since the first packet */
	uint8_t back, flags;
	uint32_t seq, ack;
	uint16_t len;
	uint16_t ip_id;
	uint32_t tsval, tsecr; /* the option is there when tsval is not 0 */
	uint16_t window;       /* 0: 1000; 1: 0 */
	uint16_t obs;
};

struct situation {
	const char *name;
	struct step steps[STEPS];
	uint32_t external, internal, rtt_min, rtt_avg;
	uint32_t retrans[2], ooo[2];
	struct by {
		uint32_t min, mean, n, missed;
	} seq[2], ts[2];                  /* looked at where one of them says something */
	struct pl_flow_counters counters; /* those of TCP */
};

#define SYN_                                                                                       \
	{                                                                                          \
		0, 0, SYN, 100, 0, 0                                                               \
	}
#define SYN_ACK_                                                                                   \
	{                                                                                          \
		30, 1, SACK, 500, 101, 0                                                           \
	}
#define ACK_                                                                                       \
	{                                                                                          \
		50, 0, ACK, 101, 501, 0                                                            \
	}
#define HANDSHAKE  SYN_, SYN_ACK_, ACK_
#define MEASURED   .external = 30, .internal = 20, .rtt_min = 50, .rtt_avg = 50
#define COUNT(...) .counters = { .handshakes = 1, .rtt_ack = 2, __VA_ARGS__ }

static const struct situation situations[] = {
	/* Handshake */
	{ "a handshake", { HANDSHAKE }, MEASURED, COUNT() },
	{ "one across the end of the numbers",
		{ { 0, 0, SYN, UINT32_MAX, 0, 0 }, { 30, 1, SACK, UINT32_MAX, 0, 0 },
			{ 50, 0, ACK, 0, 0, 0 } },
		MEASURED, COUNT() },
	{ "one with ECN's bits",
		{ { 0, 0, SYN | ECE | CWR, 100, 0, 0 }, { 30, 1, SACK | ECE, 500, 101, 0 },
			{ 50, 0, ACK, 101, 501, 0 } },
		MEASURED, COUNT() },
	{ "an ACK with the first bytes", { SYN_, SYN_ACK_, { 50, 0, ACK | PSH, 101, 501, 10 } },
		MEASURED, COUNT() },
	{
		"an ACK without SYN-ACK",
		{ SYN_, { 50, 0, ACK, 101, 501, 0 } },
	},
	{ "a SYN-ACK for another SYN", { SYN_, { 30, 1, SACK, 500, 99, 0 }, ACK_ },
		.counters = { .rtt_ack = 1 } },
	{ "an ACK for another SYN-ACK", { SYN_, SYN_ACK_, { 50, 0, ACK, 101, 499, 0 } },
		.external = 30, .counters = { .rtt_ack = 1 } },
	{ "an ACK from the wrong side", { SYN_, SYN_ACK_, { 50, 1, ACK, 501, 101, 0 } },
		.external = 30, .counters = { .rtt_ack = 1 } },
	{ "a SYN-ACK that comes without SYN", { SYN_ACK_, ACK_ }, .counters = { .rtt_ack = 1 } },
	{ "a SYN repeated: the first counts, and no round trip (Karn)",
		{ SYN_, { 10, 0, SYN, 100, 0, 0 }, SYN_ACK_, ACK_ }, .external = 30, .internal = 20,
		.retrans = { 1 },
		.counters = { .handshakes = 1, .rtt_ack = 1, .retrans_other = 1 } },
	{ "a SYN-ACK repeated", { SYN_, SYN_ACK_, { 40, 1, SACK, 500, 101, 0 }, ACK_ },
		.external = 30, .internal = 20, .retrans = { 0, 1 },
		.counters = { .handshakes = 1, .rtt_ack = 1, .retrans_other = 1 } },
	{ "another attempt while nothing answered",
		{ SYN_, { 10, 0, SYN, 7000, 0, 0 }, { 30, 1, SACK, 500, 7001, 0 },
			{ 50, 0, ACK, 7001, 501, 0 } },
		.external = 20, .internal = 20, .rtt_min = 40, .rtt_avg = 40, COUNT() },
	{ "a stray SYN into an open connection",
		{ HANDSHAKE, { 60, 0, SYN, 7000, 0, 0 }, { 70, 0, ACK, 101, 501, 10 } }, MEASURED,
		COUNT(.stray_syns = 1) },
	{ "a SYN in the midst of one that was open before",
		{ { 0, 0, ACK, 101, 501, 10 }, { 10, 0, SYN, 100, 0, 0 } },
		.counters = { .stray_syns = 1 } },
	{ "a SYN-ACK 31 s after its SYN is of another",
		{ SYN_, { 10000000, 0, SYN, 100, 0, 0 }, { 20000000, 0, SYN, 100, 0, 0 },
			{ 31000000, 1, SACK, 500, 101, 0 }, { 31000020, 0, ACK, 101, 501, 0 } },
		.retrans = { 2 }, .counters = { .retrans_timeout = 2, .rtt_ack = 1 } },
	{ "a handshake of sampled packets: the rest is not looked at",
		{ { 0, 0, SYN, 100, 0, 0, .obs = PL_OBS_SAMPLED },
			{ 30, 1, SACK, 500, 101, 0, .obs = PL_OBS_SAMPLED },
			{ 50, 0, ACK, 101, 501, 0, .obs = PL_OBS_SAMPLED },
			{ 60, 0, ACK, 101, 501, 9, .obs = PL_OBS_SAMPLED },
			{ 70, 0, ACK, 101, 501, 9, .obs = PL_OBS_SAMPLED } },
		.external = 30, .internal = 20, .counters = { .handshakes = 1 } },
	{ "a truncated SYN", { { 0, 0, SYN, 100, 0, 0, .obs = PL_OBS_TRUNCATED }, SYN_ACK_, ACK_ },
		.counters = { .rtt_ack = 1 } },
	{ "two SYNs that cross", { SYN_, { 10, 1, SYN, 500, 0, 0 }, SYN_ACK_, ACK_ },
		.external = 30, .internal = 20, .retrans = { 0, 1 },
		.counters = { .handshakes = 1, .rtt_ack = 1, .retrans_other = 1 } },

	/* Round-trip times */
	{ "bytes and their ACK, both ways",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 110, 1, ACK, 501, 111, 20 },
			{ 130, 0, ACK, 111, 521, 0 } },
		.external = 30, .internal = 20, .rtt_min = 30, .rtt_avg = 40,
		.counters = { .handshakes = 1, .rtt_ack = 4 } },
	{ "only one side is measured", { { 0, 0, ACK, 101, 501, 10 }, { 9, 1, ACK, 501, 111, 0 } },
		.counters = { .rtt_ack = 1 } },
	{ "an ACK of more than the segment measures nothing",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 101, 0, ACK, 111, 501, 10 },
			{ 110, 1, ACK, 501, 121, 0 } },
		MEASURED, COUNT() },
	{ "an ACK of a part measures nothing yet",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 110, 1, ACK, 501, 106, 0 },
			{ 115, 1, ACK, 501, 111, 0 } },
		.external = 30, .internal = 20, .rtt_min = 35, .rtt_avg = 42,
		.counters = { .handshakes = 1, .rtt_ack = 3 } },
	{ "an ACK that comes before its segment, by the clock",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 90, 1, ACK, 501, 111, 0 } }, MEASURED,
		COUNT() },
	{ "an ACK more than 10 s later",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 10000101, 1, ACK, 501, 111, 0 } },
		MEASURED, COUNT() },
	{ "a FIN and its ACK",
		{ HANDSHAKE, { 100, 0, FIN | ACK, 101, 501, 0 }, { 110, 1, ACK, 501, 102, 0 } },
		.external = 30, .internal = 20, .rtt_min = 30, .rtt_avg = 40,
		.counters = { .handshakes = 1, .rtt_ack = 3 } },
	{ "timestamps, where the ACK is of more than the segment",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10, .tsval = 5, .tsecr = 1 },
			{ 101, 0, ACK, 111, 501, 10, .tsval = 6, .tsecr = 1 },
			{ 110, 1, ACK, 501, 121, 0, .tsval = 9, .tsecr = 5 } },
		.external = 30, .internal = 20, .rtt_min = 30, .rtt_avg = 40,
		.counters = { .handshakes = 1, .rtt_ack = 2, .rtt_timestamp = 1 } },
	{ "only the first echo",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10, .tsval = 5, .tsecr = 1 },
			{ 101, 0, ACK, 111, 501, 10, .tsval = 5, .tsecr = 1 },
			{ 110, 1, ACK, 501, 121, 0, .tsval = 9, .tsecr = 5 },
			{ 150, 1, ACK, 501, 121, 9, .tsval = 9, .tsecr = 5 } },
		.external = 30, .internal = 20, .rtt_min = 30, .rtt_avg = 40,
		.counters = { .handshakes = 1, .rtt_ack = 2, .rtt_timestamp = 1 } },
	{ "two timestamps are awaited; a third that passed meanwhile is not measured later",
		{ { 0, 0, ACK, 1, 1, 9, .tsval = 5, .tsecr = 1 },
			{ 1, 0, ACK, 10, 1, 9, .tsval = 6, .tsecr = 1 },
			{ 2, 0, ACK, 19, 1, 9, .tsval = 7, .tsecr = 1 },
			{ 10, 1, ACK, 1, 15, 0, .tsval = 9, .tsecr = 5 },
			{ 21, 1, ACK, 1, 20, 0, .tsval = 9, .tsecr = 6 },
			{ 22, 0, ACK, 28, 1, 9, .tsval = 7, .tsecr = 1 },
			{ 32, 1, ACK, 1, 29, 0, .tsval = 9, .tsecr = 7 } },
		.seq = { { .missed = 4 } }, .ts = { { 10, 15, 2, 2 } },
		.counters = { .rtt_timestamp = 2 } },
	{ "a timestamp that is passed over is not waited for",
		{ { 0, 0, ACK, 1, 1, 9, .tsval = 5, .tsecr = 1 },
			{ 1, 0, ACK, 10, 1, 9, .tsval = 6, .tsecr = 1 },
			{ 21, 1, ACK, 1, 19, 0, .tsval = 9, .tsecr = 6 } },
		.seq = { { .missed = 2 } }, .ts = { { 20, 20, 1, 1 } },
		.counters = { .rtt_timestamp = 1 } },
	{ "a timestamp that is 10 s old makes room for another",
		{ { 0, 0, ACK, 1, 1, 9, .tsval = 5, .tsecr = 1 },
			{ 1, 0, ACK, 10, 1, 9, .tsval = 6, .tsecr = 1 },
			{ 10000001, 0, ACK, 19, 1, 9, .tsval = 7, .tsecr = 1 },
			{ 10000031, 1, ACK, 1, 28, 0, .tsval = 9, .tsecr = 7 } },
		.seq = { { 30, 30, 1, 2 } }, .ts = { { 30, 30, 1, 2 } },
		.counters = { .rtt_ack = 1, .rtt_timestamp = 1 } },
	{ "a timestamp that is never echoed, and a newer one that is",
		{ { 0, 0, ACK, 1, 1, 9, .tsval = 5, .tsecr = 1 },
			{ 9, 1, ACK, 1, 5, 0, .tsval = 9, .tsecr = 7 },
			{ 10, 0, ACK, 10, 1, 9, .tsval = 8, .tsecr = 1 },
			{ 20, 1, ACK, 1, 15, 0, .tsval = 9, .tsecr = 8 } },
		.counters = { .rtt_timestamp = 1 } },
	{
		"a timestamp of a pure ACK is not awaited",
		{ { 0, 0, ACK, 1, 1, 0, .tsval = 5, .tsecr = 1 },
			{ 90, 1, ACK, 1, 1, 9, .tsval = 9, .tsecr = 5 } },
	},
	{ "nor is that of a segment when a pure ACK had it before: its echo may be the ACK's",
		{ { 0, 0, ACK, 1, 1, 0, .tsval = 5, .tsecr = 1 },
			{ 300, 0, ACK, 1, 1, 9, .tsval = 5, .tsecr = 1 },
			{ 500, 1, ACK, 1, 1, 9, .tsval = 9, .tsecr = 5 } },
		.seq = { { .missed = 1 }, { .missed = 1 } },
		.ts = { { .missed = 1 }, { .missed = 1 } } },
	{ "one ACK, measured by both methods",
		{ { 0, 0, ACK, 1, 1, 9, .tsval = 5, .tsecr = 1 },
			{ 9, 1, ACK, 1, 10, 0, .tsval = 9, .tsecr = 5 } },
		.seq = { { 9, 9, 1 } }, .ts = { { 9, 9, 1 } },
		.counters = { .rtt_ack = 1, .rtt_timestamp = 1 } },
	{ "timestamps across the end of their numbers, after a retransmission",
		{ { 0, 0, ACK, 1, 1, 9, .tsval = UINT32_MAX, .tsecr = 1 },
			{ 5, 1, ACK, 1, 5, 0, .tsval = 9, .tsecr = 2 },
			{ 300000, 0, ACK, 1, 1, 9, .tsval = 3, .tsecr = 9 },
			{ 300009, 1, ACK, 1, 10, 0, .tsval = 9, .tsecr = 3 } },
		.retrans = { 1 }, .counters = { .retrans_timeout = 1, .rtt_timestamp = 1 } },

	/* Retransmissions and order */
	{ "retransmitted after a timeout",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 200100, 0, ACK, 101, 501, 10 },
			{ 200110, 1, ACK, 501, 111, 0 } },
		MEASURED, .retrans = { 1 }, COUNT(.retrans_timeout = 1) },
	{ "one microsecond sooner than a timeout",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 200099, 0, ACK, 101, 501, 10 } },
		MEASURED, .retrans = { 1 }, COUNT(.retrans_other = 1) },
	{ "retransmitted after three duplicate ACKs",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 101, 0, ACK, 111, 501, 10 },
			{ 110, 1, ACK, 501, 101, 0 }, { 111, 1, ACK, 501, 101, 0 },
			{ 112, 1, ACK, 501, 101, 0 }, { 120, 0, ACK, 101, 501, 10 },
			{ 130, 1, ACK, 501, 121, 0 } },
		MEASURED, .retrans = { 1 }, COUNT(.retrans_fast = 1, .duplicate_acks = 3) },
	{ "after two",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 101, 0, ACK, 111, 501, 10 },
			{ 110, 1, ACK, 501, 101, 0 }, { 111, 1, ACK, 501, 101, 0 },
			{ 120, 0, ACK, 101, 501, 10 } },
		MEASURED, .retrans = { 1 }, COUNT(.retrans_other = 1, .duplicate_acks = 2) },
	{ "retransmitted though acknowledged",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 110, 1, ACK, 501, 111, 0 },
			{ 200200, 0, ACK, 101, 501, 10 } },
		.external = 30, .internal = 20, .rtt_min = 30, .rtt_avg = 40, .retrans = { 1 },
		.counters = { .handshakes = 1, .rtt_ack = 3, .retrans_spurious = 1 } },
	{ "a retransmission with new bytes behind it",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 5000, 0, ACK, 101, 501, 20 },
			{ 5010, 1, ACK, 501, 121, 0 } },
		MEASURED, .retrans = { 1 }, COUNT(.retrans_other = 1) },
	{ "overtaken by one",
		{ HANDSHAKE, { 100, 0, ACK, 111, 501, 10 }, { 3099, 0, ACK, 101, 501, 10 } },
		MEASURED, .ooo = { 1 }, COUNT(.gaps = 1, .out_of_order = 1) },
	{ "too late to have been overtaken",
		{ HANDSHAKE, { 100, 0, ACK, 111, 501, 10 }, { 3100, 0, ACK, 101, 501, 10 } },
		MEASURED, .retrans = { 1 }, COUNT(.gaps = 1, .retrans_other = 1) },
	{ "late by less than half of a long round trip",
		{ SYN_, { 30000, 1, SACK, 500, 101, 0 }, { 50000, 0, ACK, 101, 501, 0 },
			{ 50100, 0, ACK, 111, 501, 10 }, { 75099, 0, ACK, 101, 501, 10 } },
		.external = 30000, .internal = 20000, .rtt_min = 50000, .rtt_avg = 50000,
		.ooo = { 1 }, COUNT(.gaps = 1, .out_of_order = 1) },
	{ "late by half of it",
		{ SYN_, { 30000, 1, SACK, 500, 101, 0 }, { 50000, 0, ACK, 101, 501, 0 },
			{ 50100, 0, ACK, 111, 501, 10 }, { 75100, 0, ACK, 101, 501, 10 } },
		.external = 30000, .internal = 20000, .rtt_min = 50000, .rtt_avg = 50000,
		.retrans = { 1 }, COUNT(.gaps = 1, .retrans_other = 1) },
	{ "overtaken by two; the second copy is no straggler",
		{ HANDSHAKE, { 100, 0, ACK, 121, 501, 10 }, { 101, 0, ACK, 101, 501, 10 },
			{ 102, 0, ACK, 111, 501, 10 }, { 103, 0, ACK, 111, 501, 10 } },
		MEASURED, .retrans = { 1 }, .ooo = { 2 },
		COUNT(.gaps = 1, .out_of_order = 2, .retrans_other = 1) },
	{ "a range that was seen, with an older IP id",
		{ { 0, 0, ACK, 101, 501, 10, 7 }, { 1, 0, ACK, 111, 501, 10, 9 },
			{ 2, 0, ACK, 101, 501, 10, 8 } },
		.ooo = { 1 }, .counters = { .out_of_order = 1 } },
	{ "with an older IP id across the end of the numbers",
		{ { 0, 0, ACK, 101, 501, 10, 7 }, { 1, 0, ACK, 111, 501, 10, 2 },
			{ 2, 0, ACK, 101, 501, 10, 65535 } },
		.ooo = { 1 }, .counters = { .out_of_order = 1 } },
	{ "with a newer IP id",
		{ { 0, 0, ACK, 101, 501, 10, 7 }, { 1, 0, ACK, 111, 501, 10, 8 },
			{ 2, 0, ACK, 101, 501, 10, 9 } },
		.retrans = { 1 }, .counters = { .retrans_other = 1 } },
	{ "without an IP id",
		{ { 0, 0, ACK, 101, 501, 10, 7 }, { 1, 0, ACK, 111, 501, 10, 8 },
			{ 2, 0, ACK, 101, 501, 10, 0 } },
		.retrans = { 1 }, .counters = { .retrans_other = 1 } },
	{
		"numbers that go over the end are no old ones",
		{ { 0, 0, ACK, UINT32_MAX - 4, 1, 10 }, { 1, 0, ACK, 5, 1, 10 } },
	},
	{ "a gap", { HANDSHAKE, { 100, 0, ACK, 1000, 501, 10 } }, MEASURED, COUNT(.gaps = 1) },
	{ "a keep-alive of a byte",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 110, 1, ACK, 501, 111, 0 },
			{ 9000000, 0, ACK, 110, 501, 1 }, { 9000010, 1, ACK, 501, 111, 0 } },
		.external = 30, .internal = 20, .rtt_min = 30, .rtt_avg = 40,
		.counters = { .handshakes = 1, .rtt_ack = 3, .keepalives = 1 } },
	{ "a byte sent again that nobody has acknowledged is no keep-alive",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 1 }, { 300100, 0, ACK, 101, 501, 1 } },
		MEASURED, .retrans = { 1 }, COUNT(.retrans_timeout = 1) },
	{ "a keep-alive without a byte",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 9000000, 0, ACK, 110, 501, 0 } },
		MEASURED, COUNT() },
	{ "a RST's numbers mean nothing",
		{ HANDSHAKE, { 100, 1, RST, 4000000000, 0, 10 }, { 110, 0, ACK, 101, 501, 10 } },
		MEASURED, COUNT() },

	/* Duplicate ACKs and windows */
	{ "an ACK repeated with nothing outstanding",
		{ HANDSHAKE, { 100, 1, ACK, 501, 101, 0 }, { 110, 1, ACK, 501, 101, 0 } }, MEASURED,
		COUNT() },
	{ "with a new window",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 },
			{ 110, 1, ACK, 501, 101, 0, .window = 999 } },
		MEASURED, COUNT() },
	{ "with bytes", { HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 110, 1, ACK, 501, 101, 5 } },
		MEASURED, COUNT() },
	{ "a duplicate ACK drops the sample under way",
		{ HANDSHAKE, { 100, 0, ACK, 101, 501, 10 }, { 110, 1, ACK, 501, 101, 0 },
			{ 120, 1, ACK, 501, 111, 0 } },
		MEASURED, .seq = { { 30, 30, 1, 1 }, { 20, 20, 1, 0 } },
		.ts = { { .missed = 2 }, { .missed = 1 } }, COUNT(.duplicate_acks = 1) },
	{ "a window of zero", { HANDSHAKE, { 100, 1, ACK, 501, 101, 0, .window = 1 } }, MEASURED,
		COUNT(.zero_windows = 1) },
	{ "a FIN's and a RST's window mean nothing",
		{ HANDSHAKE, { 100, 1, FIN | ACK, 501, 101, 0, .window = 1 },
			{ 110, 1, RST, 502, 0, 0, .window = 1 } },
		MEASURED, COUNT() },
};

static void put(struct pl_flow_cache *cache, const struct step *s)
{
	struct pl_pkt96 p = packet(EPOCH + s->us * UINT64_C(1000), s->back, 40000, 6);

	p.tcp_flags = s->flags;
	p.tcp_seq = s->seq;
	p.tcp_ack = s->ack;
	p.pay_len = s->len;
	p.ip_id = s->ip_id;
	p.tsval = s->tsval;
	p.tsecr = s->tsecr;
	p.tcp_opts = s->tsval != 0 ? 1 << 8 : 0;
	p.tcp_win = s->window == 0 ? 1000 : s->window == 1 ? 0 : s->window;
	p.obs = s->obs;
	pl_flow_cache_feed(cache, &p, 1);
}

static bool tcp_counters_equal(
	const struct pl_flow_counters *got, const struct pl_flow_counters *want)
{
	bool good = true;

	for (unsigned int i = 0; i < pl_flow_counters_list.n; i++) {
		const struct pl_stat *row = &pl_flow_counters_list.rows[i];

		if (strncmp(row->key, "tcp.", 4) != 0 ||
			pl_stat_read(row, got) == pl_stat_read(row, want))
			continue;
		good = false;
		printf("# %s: got %" PRIu64 ", wanted %" PRIu64 "\n", row->name,
			pl_stat_read(row, got), pl_stat_read(row, want));
	}
	return good;
}

/* Every segment with bytes, SYN or FIN that is looked at, and is no stray, is measured or missed by
 * either method. */
static bool all_told(const struct situation *s, const struct by *seq, const struct by *ts)
{
	uint64_t segments = 0, by_seq = 0, by_ts = 0;

	for (unsigned int i = 0; i < STEPS && s->steps[i].flags != 0; i++) {
		const struct step *p = &s->steps[i];

		segments += (p->flags & RST) == 0 && p->obs == 0 &&
			    (p->len > 0 || (p->flags & (SYN | FIN)) != 0);
	}
	segments -= s->counters.stray_syns;
	for (unsigned int d = 0; d < 2; d++) {
		by_seq += (uint64_t)seq[d].n + seq[d].missed;
		by_ts += (uint64_t)ts[d].n + ts[d].missed;
	}
	if (by_seq != segments || by_ts != segments)
		printf("# %" PRIu64 " segments, %" PRIu64 " by numbers, %" PRIu64
		       " by timestamps\n",
			segments, by_seq, by_ts);
	return by_seq == segments && by_ts == segments;
}

/* What a record and the counters both say. */
static bool counted_alike(const struct pl_flow288 *r, const struct pl_flow_counters *c)
{
	return (uint64_t)r->dup_acks_fwd + r->dup_acks_rev == c->duplicate_acks &&
	       (uint64_t)r->zero_win_fwd + r->zero_win_rev == c->zero_windows &&
	       (uint64_t)r->keepalives_fwd + r->keepalives_rev == c->keepalives &&
	       (uint64_t)r->gaps_fwd + r->gaps_rev == c->gaps &&
	       (uint64_t)r->retrans_fast_fwd + r->retrans_fast_rev == c->retrans_fast &&
	       (uint64_t)r->retrans_timeout_fwd + r->retrans_timeout_rev == c->retrans_timeout &&
	       (uint64_t)r->retrans_spurious_fwd + r->retrans_spurious_rev == c->retrans_spurious &&
	       (uint64_t)r->rtt_seq_dst_n + r->rtt_seq_src_n == c->rtt_ack &&
	       (uint64_t)r->rtt_ts_dst_n + r->rtt_ts_src_n == c->rtt_timestamp;
}

static void by_method(const struct situation *s, const struct pl_flow288 *r)
{
	const struct by seq[2] = { { r->rtt_seq_dst_min_us, r->rtt_seq_dst_avg_us, r->rtt_seq_dst_n,
					   r->rtt_seq_dst_missed },
		{ r->rtt_seq_src_min_us, r->rtt_seq_src_avg_us, r->rtt_seq_src_n,
			r->rtt_seq_src_missed } };
	const struct by ts[2] = { { r->rtt_ts_dst_min_us, r->rtt_ts_dst_avg_us, r->rtt_ts_dst_n,
					  r->rtt_ts_dst_missed },
		{ r->rtt_ts_src_min_us, r->rtt_ts_src_avg_us, r->rtt_ts_src_n,
			r->rtt_ts_src_missed } };
	static const struct by nothing[2];

	ok(all_told(s, seq, ts), "%s: measured or missed", s->name);
	if (memcmp(s->seq, nothing, sizeof(nothing)) == 0 &&
		memcmp(s->ts, nothing, sizeof(nothing)) == 0)
		return;
	memeq(seq, s->seq, sizeof(seq), "%s: by numbers", s->name);
	memeq(ts, s->ts, sizeof(ts), "%s: by timestamps", s->name);
}

/* The situations' first way is that of `back` 0; the record's is that of the first packet. */
static void one(const struct situation *s)
{
	const struct pl_flow_config config = PL_FLOW_CONFIG;
	struct kept kept;
	struct pl_flow_cache *cache = new_cache(&config, &kept);
	const struct pl_flow288 *r;
	struct pl_flow_counters counters = s->counters;
	uint32_t got[8], back = s->steps[0].back;

	for (unsigned int i = 0; i < STEPS && s->steps[i].flags != 0; i++)
		put(cache, &s->steps[i]);
	pl_flow_cache_finish(cache);
	ok(kept.n == 1, "%s: one record", s->name);
	r = kept.records;
	memcpy(got,
		(const uint32_t[]){ r->hs_external_us, r->hs_internal_us, r->rtt_min_us,
			r->rtt_avg_us, back ? r->retrans_rev : r->retrans_fwd,
			back ? r->retrans_fwd : r->retrans_rev, back ? r->ooo_rev : r->ooo_fwd,
			back ? r->ooo_fwd : r->ooo_rev },
		sizeof(got));
	if (!ok(memcmp(got,
			(const uint32_t[]){ s->external, s->internal, s->rtt_min, s->rtt_avg,
				s->retrans[0], s->retrans[1], s->ooo[0], s->ooo[1] },
			sizeof(got)) == 0,
		    "%s: the record", s->name))
		printf("# handshake %u %u, rtt %u %u, retrans %u %u, ooo %u %u\n", got[0], got[1],
			got[2], got[3], got[4], got[5], got[6], got[7]);
	/* It is one flow, whose handshake was measured or not. */
	counters.handshakes_missed = 1 - counters.handshakes;
	ok(tcp_counters_equal(pl_flow_cache_counters(cache), &counters), "%s: the counters",
		s->name);
	ok(counted_alike(r, &s->counters), "%s: the record's counts", s->name);
	by_method(s, r);
	pl_flow_cache_free(cache);
	free(kept.records);
}

int main(void)
{
	for (unsigned int i = 0; i < sizeof(situations) / sizeof(situations[0]); i++)
		one(&situations[i]);
	return pl_test_done();
}
