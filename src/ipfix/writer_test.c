/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages as a collector reads them: by their own templates, with a reader that shares nothing with
 * libfixbuf. */
#include "ipfix/writer.h"

#include "base/test.h"
#include "ipfix/test_reader.h"

#define REVERSE_PEN 29305u /* RFC 5103 6.1 */
#define SECOND      UINT64_C(1000000000)
#define EPOCH       UINT64_C(1700000000000000000)

static const struct pl_ipfix_sum nothing;

static struct pl_ipfix *begun(enum pl_ipfix_time time, uint32_t pen, bool biflow)
{
	const struct pl_ipfix_options o = {
		.domain = 7, .biflow = biflow, .time = time, .pen = pen, .send = take
	};
	struct pl_ipfix *x = NULL;

	memset(&got, 0, sizeof(got));
	if (pl_ipfix_new(&x, &o) < 0)
		abort();
	pl_ipfix_begin(x, &nothing, 1000);
	return x;
}

static struct pl_flow288 flow(void)
{
	return (struct pl_flow288){ .first_ts = EPOCH + 123456789,
		.last_ts = EPOCH + SECOND,
		.src = pl_addr_v4((const uint8_t[4]){ 192, 0, 2, 1 }),
		.dst = pl_addr_v4((const uint8_t[4]){ 198, 51, 100, 2 }),
		.sport = 51000,
		.dport = 443,
		.proto = 6,
		.end_reason = PL_FLOW_END_FINISHED,
		.flags_fwd = 0x1b,
		.flags_rev = 0x13,
		.bytes_fwd = UINT64_C(5000000000),
		.bytes_rev = 70000,
		.pkts_fwd = 4000000,
		.pkts_rev = 600,
		.hs_external_us = 900,
		.hs_internal_us = 80,
		.rtt_min_us = 950,
		.rtt_avg_us = 1200,
		.retrans_fwd = 5,
		.retrans_rev = 6,
		.ooo_fwd = 7,
		.ooo_rev = 8,
		.max_gap_us = 90000,
		.iat_mean_us = 30,
		.obs = PL_OBS_OUT | 12,
		.obs_rev = 13,
		.vlan = 100,
		.role = PL_FLOW_ROLE_SERVER,
		.role_by = PL_FLOW_ROLE_BY_SYN_ACK,
		.dup_acks_fwd = 11,
		.dup_acks_rev = 12,
		.zero_win_fwd = 13,
		.zero_win_rev = 14,
		.rtt_seq_dst_min_us = 15,
		.rtt_seq_dst_avg_us = 16,
		.rtt_seq_dst_n = 17,
		.rtt_seq_dst_missed = 18,
		.rtt_ts_dst_min_us = 19,
		.rtt_ts_dst_avg_us = 20,
		.rtt_ts_dst_n = 21,
		.rtt_ts_dst_missed = 22,
		.rtt_seq_src_min_us = 23,
		.rtt_seq_src_avg_us = 24,
		.rtt_seq_src_n = 25,
		.rtt_seq_src_missed = 26,
		.rtt_ts_src_min_us = 27,
		.rtt_ts_src_avg_us = 28,
		.rtt_ts_src_n = 29,
		.rtt_ts_src_missed = 30,
		.flow_flags = PL_FLOW_FURTHER | PL_FLOW_CONTINUED,
		.unseen_ns = UINT64_C(5000000001) };
}

/* The one flow that came. */
static const struct row *flow_of(void)
{
	const struct row *row = NULL;

	for (unsigned int i = 0; i < got.n; i++) {
		if (has(&got.rows[i], 0, 4))
			row = &got.rows[i];
	}
	if (row == NULL)
		abort();
	return row;
}

static const struct row *sent(struct pl_ipfix *x, const struct pl_flow288 *f)
{
	pl_ipfix_flow(x, f, 1001);
	eq(pl_ipfix_waiting(x), 1, "a flow waits for its message");
	pl_ipfix_flush(x, 1002);
	eq(pl_ipfix_waiting(x), 0, "until the message is sent");
	eq(got.malformed + got.wrong_sequence, 0, "well formed, in sequence");
	return flow_of();
}

static void test_v4(void)
{
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 0, true);
	const struct pl_flow288 f = flow();
	const struct row *row = sent(x, &f);

	eq(got.domain, 7, "observation domain");
	eq(got.export_s, 1002, "export time");
	value(row, 0, 152, EPOCH / 1000000 + 123, "flowStartMilliseconds");
	value(row, 0, 153, EPOCH / 1000000 + 1000, "flowEndMilliseconds");
	value(row, 0, 8, 0xc0000201, "sourceIPv4Address");
	value(row, 0, 12, 0xc6336402, "destinationIPv4Address");
	value(row, 0, 7, 51000, "sourceTransportPort");
	value(row, 0, 11, 443, "destinationTransportPort");
	value(row, 0, 4, 6, "protocolIdentifier");
	value(row, 0, 1, f.bytes_fwd, "octetDeltaCount");
	value(row, 0, 2, f.pkts_fwd, "packetDeltaCount");
	value(row, REVERSE_PEN, 1, f.bytes_rev, "reverseOctetDeltaCount");
	value(row, REVERSE_PEN, 2, f.pkts_rev, "reversePacketDeltaCount");
	value(row, 0, 6, 0x1b, "tcpControlBits");
	value(row, REVERSE_PEN, 6, 0x13, "reverseTcpControlBits");
	value(row, 0, 136, 3, "flowEndReason: end of flow detected");
	value(row, 0, 58, 100, "vlanId");
	value(row, 0, 138, 12, "observationPointId");
	value(row, 0, 239, 2, "biflowDirection: the destination is the initiator");
	ok(!has(row, 0, 27) && !has(row, 0, 32) && !has(row, 0, 154) && !has(row, 0, 61),
		"no IPv6 address, no ICMP type, no other time, no direction that nobody knows");
	for (unsigned int i = 0; i < row->n; i++)
		ok(row->fields[i].pen == 0 || row->fields[i].pen == REVERSE_PEN,
			"no other enterprise");
	pl_ipfix_free(x);
}

static void test_v6(void)
{
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 0, true);
	struct pl_flow288 f = flow();
	const struct row *row;

	memcpy(f.src.b, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	row = sent(x, &f);
	ok(!has(row, 0, 8), "no IPv4 address, although the other end has one");
	memeq(find(row, 0, 27)->bytes, f.src.b, 16, "sourceIPv6Address");
	memeq(find(row, 0, 28)->bytes, f.dst.b, 16,
		"destinationIPv6Address, IPv4 as ::ffff:a.b.c.d");
	value(row, 0, 7, 51000, "sourceTransportPort");
	f.proto = 58;
	f.sport = 128;
	f.dport = 1;
	row = sent(x, &f);
	value(row, 0, 139, 128 << 8 | 1, "icmpTypeCodeIPv6");
	ok(!has(row, 0, 7), "and no ports");
	pl_ipfix_free(x);
}

static void test_icmp(void)
{
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 0, true);
	struct pl_flow288 f = flow();
	const struct row *row;

	f.proto = 1;
	f.sport = 3;
	f.dport = 13;
	row = sent(x, &f);
	value(row, 0, 32, 3 << 8 | 13, "icmpTypeCodeIPv4");
	ok(!has(row, 0, 7) && !has(row, 0, 11), "and no ports");
	f.proto = 58; /* over IPv4 it is nothing special */
	row = sent(x, &f);
	value(row, 0, 7, 3, "protocol 58 over IPv4 has what other protocols have");
	pl_ipfix_free(x);
}

static void test_times(void)
{
	const uint64_t seconds = (EPOCH / SECOND + UINT64_C(2208988800)) << 32;
	struct pl_ipfix *x = begun(PL_IPFIX_MICROSECONDS, 0, true);
	struct pl_flow288 f = flow();
	const struct row *row = sent(x, &f);
	/* 0.123456789 s in units of 2^-32 s, rounded down. */
	const uint64_t fraction = 530242871;

	value(row, 0, 154, seconds | (fraction & ~UINT64_C(0x7ff)),
		"flowStartMicroseconds in NTP format");
	value(row, 0, 155, seconds + (UINT64_C(1) << 32), "flowEndMicroseconds");
	ok(!has(row, 0, 152), "no milliseconds beside it");
	pl_ipfix_free(x);
	x = begun(PL_IPFIX_NANOSECONDS, 0, true);
	row = sent(x, &f);
	value(row, 0, 156, seconds | fraction, "flowStartNanoseconds in NTP format");
	eq(pl_ipfix_mended(x), 0, "its times are in order");
	f.first_ts = f.last_ts + 1;
	row = sent(x, &f);
	value(row, 0, 156, find(row, 0, 157)->value,
		"a flow that ends before it began starts at its end");
	eq(pl_ipfix_mended(x), 1, "and is counted");
	pl_ipfix_free(x);
}

static void test_more(void)
{
	static const uint32_t want[] = { 900, 80, 950, 1200, 5, 6, 7, 8, 90000, 30 };
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 64512, true);
	const struct pl_flow288 f = flow();
	const struct row *row = sent(x, &f);

	for (uint16_t i = 0; i < 10; i++)
		value(row, 64512, i + 1u, want[i], "an element under the enterprise number");
	for (uint16_t id = 11; id <= 30; id++)
		value(row, 64512, id, id, "an element of what flow288 adds");
	value(row, 64512, 31, 2, "pathlineRole");
	value(row, 64512, 32, 2, "pathlineRoleBy");
	value(row, 64512, 33, 3, "pathlineFlowFlags");
	value(row, 64512, 34, UINT64_C(5000000001), "pathlineUnseenNanoseconds");
	pl_ipfix_free(x);
}

static void test_roles(void)
{
	static const uint8_t want[][2] = { { PL_FLOW_ROLE_UNKNOWN, 0 }, { PL_FLOW_ROLE_CLIENT, 1 },
		{ PL_FLOW_ROLE_SERVER, 2 } };
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 0, true);
	struct pl_flow288 f = flow();

	for (unsigned int i = 0; i < 3; i++) {
		f.role = want[i][0];
		value(sent(x, &f), 0, 239, want[i][1], "biflowDirection");
	}
	pl_ipfix_free(x);
}

static void test_reasons(void)
{
	static const uint8_t want[][2] = { { PL_FLOW_END_IDLE, 1 }, { PL_FLOW_END_ACTIVE, 2 },
		{ PL_FLOW_END_FINISHED, 3 }, { PL_FLOW_END_SHUTDOWN, 4 },
		{ PL_FLOW_END_EVICTED, 5 }, { 200, 0 } };
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 0, true);
	struct pl_flow288 f = flow();

	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		f.end_reason = want[i][0];
		value(sent(x, &f), 0, 136, want[i][1], "flowEndReason");
	}
	pl_ipfix_free(x);
}

/* A data record for each direction that had packets. */
static void test_directions(void)
{
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 64512, false);
	struct pl_flow288 f = flow();
	const struct row *back = sent(x, &f), *row = back - 1;

	eq(pl_ipfix_of(x, &f).records, 2, "two data records");
	value(row, 0, 8, 0xc0000201, "sourceIPv4Address");
	value(row, 0, 2, f.pkts_fwd, "packetDeltaCount");
	value(row, 64512, 5, 5, "retransmitted");
	value(back, 0, 8, 0xc6336402, "back: sourceIPv4Address");
	value(back, 0, 12, 0xc0000201, "back: destinationIPv4Address");
	value(back, 0, 7, 443, "back: sourceTransportPort");
	value(back, 0, 11, 51000, "back: destinationTransportPort");
	value(back, 0, 1, f.bytes_rev, "back: octetDeltaCount");
	value(back, 0, 2, f.pkts_rev, "back: packetDeltaCount");
	value(back, 0, 6, 0x13, "back: tcpControlBits");
	value(row, 0, 138, 12, "observationPointId");
	value(back, 0, 138, 13, "back: where it was counted");
	value(back, 64512, 5, 6, "back: retransmitted");
	value(back, 64512, 7, 8, "back: out of order");
	value(back, 64512, 3, 950, "back: least round-trip time, of both directions");
	value(row, 64512, 15, 15, "least time towards the destination");
	value(back, 64512, 15, 23, "back: towards what is the destination there");
	value(back, 64512, 27, 19, "back: and towards the source");
	value(back, 64512, 11, 12, "back: duplicate ACKs");
	value(back, 64512, 13, 14, "back: zero windows");
	value(row, 64512, 31, 2, "a server's packets");
	value(back, 64512, 31, 1, "back: a client's");
	ok(!has(row, 0, 239), "a direction by itself is no biflow");
	ok(!has(row, REVERSE_PEN, 1) && !has(row, 64512, 6) && !has(row, 64512, 12),
		"none has elements of the other direction");
	f.proto = 1;
	f.sport = 8;
	f.dport = 0;
	f.obs_rev = 0;
	back = sent(x, &f);
	value(back, 0, 138, 12, "back: of flow128, which does not say where it was");
	value(back - 1, 0, 32, 8 << 8, "echo request");
	value(back, 0, 32, 0, "back: echo reply");
	f.sport = 0;
	back = sent(x, &f);
	value(back, 0, 32, 8 << 8, "back: the requests that were answered");
	f.sport = 10;
	value(sent(x, &f), 0, 32, 9 << 8, "back: a router's advertisement");
	f.sport = 128;
	value(sent(x, &f), 0, 32, 128 << 8, "back: a type of the other version is not paired");
	f.sport = 3;
	f.dport = 1;
	value(sent(x, &f), 0, 32, 3 << 8 | 1, "messages without answers have one type both ways");
	f.pkts_rev = 0;
	f.bytes_rev = 0;
	got.n = 0;
	(void)sent(x, &f);
	eq(got.n, 1, "one data record, when nothing came back");
	eq(pl_ipfix_of(x, &f).records, 1, "as was said before");
	f = flow();
	f.pkts_fwd = 0;
	f.bytes_fwd = 0;
	got.n = 0;
	back = sent(x, &f);
	eq(got.n, 1, "one data record, when a further record of the flow has none forward");
	value(back, 0, 8, 0xc6336402, "of what came back: sourceIPv4Address");
	value(back, 0, 2, f.pkts_rev, "packetDeltaCount");
	eq(pl_ipfix_of(x, &f).records, 1, "as was said before");
	pl_ipfix_free(x);
}

static void test_many(bool biflow)
{
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 64512, biflow);
	struct pl_flow288 f = flow();
	const unsigned int each = biflow ? 1 : 2;
	unsigned int records = 0, right = 0;

	for (unsigned int i = 0; i < 1500; i++) {
		f.proto = i % 3 == 0 ? 1 : 6;
		f.pkts_fwd = f.pkts_rev = i + 1;
		f.src.b[0] = i % 5 == 0 ? 0x20 : 0;
		pl_ipfix_flow(x, &f, 2000);
	}
	pl_ipfix_flush(x, 2000);
	eq(got.malformed, 0, "all messages are well formed");
	eq(got.wrong_sequence, 0, "each has the number of the records before it");
	ok(got.longest <= PL_IPFIX_MESSAGE_BYTES && got.longest > 1200, "none is too long: %u",
		got.longest);
	for (unsigned int i = 0; i < got.n; i++) {
		if (has(&got.rows[i], 0, 2))
			right += find(&got.rows[i], 0, 2)->value == records++ / each + 1;
	}
	eq(records, 1500 * each, "every flow came");
	eq(right, 1500 * each, "in its order");
	eq(got.flows_told, 1500, "and was told with its message");
	eq(got.split, 0, "in one message with its other direction");
	pl_ipfix_free(x);
}

/* Flows of any bytes: each gives well-formed messages. */
static void test_any(void)
{
	uint32_t state = 1;

	for (unsigned int form = 0; form < 6; form++) {
		struct pl_ipfix *x = begun(form % 3, form % 2 ? 4294967295u : 0, form > 2);

		for (unsigned int i = 0; i < 3000; i++) {
			struct pl_flow288 f;
			uint8_t bytes[sizeof(f)];

			for (unsigned int k = 0; k < sizeof(bytes); k++) {
				state = state * 1664525 + 1013904223;
				bytes[k] = (uint8_t)(state >> 24);
			}
			memcpy(&f, bytes, sizeof(f));
			if (i % 4 != 0) {
				memcpy(f.src.b, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
				memcpy(f.dst.b, f.src.b, 12);
			}
			if (i % 8 < 2)
				f.proto = i % 8 == 0 ? 58 : 1;
			pl_ipfix_flow(x, &f, i);
			if (i % 1000 == 999)
				pl_ipfix_templates(x, &nothing, i);
		}
		pl_ipfix_flush(x, 0);
		eq(got.malformed + got.wrong_sequence + got.split, 0,
			"form %u: well formed, in sequence", form);
		eq(got.flows_told, 3000, "and every flow is in them");
		ok(got.longest <= PL_IPFIX_MESSAGE_BYTES, "none is too long");
		pl_ipfix_free(x);
	}
}

static void test_sessions(void)
{
	const struct pl_ipfix_sum lost = { .records = 3, .packets = 50, .bytes = 60000 };
	struct pl_ipfix *x = begun(PL_IPFIX_MILLISECONDS, 0, true);
	const struct pl_flow288 f = flow();
	const struct row *account;

	(void)sent(x, &f);
	eq(got.n_templates, 5, "five templates");
	eq(got.template_sets, 2, "in a set of templates and one of options");
	account = &got.rows[0];
	eq(account->n, 4, "the account comes first");
	value(account, 0, 166, 0, "notSentFlowTotalCount");
	pl_ipfix_flow(x, &f, 1003);
	pl_ipfix_templates(x, &lost, 1004);
	eq(pl_ipfix_waiting(x), 0, "what waited is sent before templates");
	pl_ipfix_flush(x, 1005);
	eq(got.template_sets, 4, "templates are repeated");
	account = &got.rows[got.n - 1];
	value(account, 0, 144, 1, "exportingProcessId");
	value(account, 0, 166, 3, "notSentFlowTotalCount");
	value(account, 0, 167, 50, "notSentPacketTotalCount");
	value(account, 0, 168, 60000, "notSentOctetTotalCount");
	pl_ipfix_account(x, &nothing, 1005);
	pl_ipfix_flush(x, 1005);
	eq(got.template_sets, 4, "the account alone needs no templates");
	value(&got.rows[got.n - 1], 0, 166, 0, "its notSentFlowTotalCount");
	eq(got.wrong_sequence, 0, "all in sequence");
	pl_ipfix_flow(x, &f, 1006);
	memset(&got, 0, sizeof(got));
	pl_ipfix_begin(x, &lost, 1007);
	pl_ipfix_flush(x, 1008);
	eq(got.messages, 2, "a new session: templates, then those of options and the account");
	eq(got.sequence, 0, "counts from 0");
	eq(got.n_templates, 5, "and begins with the templates");
	eq(got.n, 1, "without the flow that waited");
	pl_ipfix_flush(x, 1009);
	eq(got.messages, 2, "where nothing waits, nothing is sent");
	pl_ipfix_free(x);
	pl_ipfix_free(NULL);
}

/* flowDirection is there where the tap knows it: of the packet that came first in each direction. */
static void test_flow_direction(bool biflow)
{
	const struct pl_ipfix_options o = {
		.domain = 7, .biflow = biflow, .directed = true, .send = take
	};
	struct pl_ipfix *x = NULL;
	struct pl_flow288 f = flow();
	unsigned int n[2][2] = { { 0 } };

	memset(&got, 0, sizeof(got));
	if (pl_ipfix_new(&x, &o) < 0)
		abort();
	pl_ipfix_begin(x, &nothing, 1000);
	f.obs_rev = 20;
	pl_ipfix_flow(x, &f, 1001);
	f.obs = 12;
	pl_ipfix_flow(x, &f, 1001);
	f.proto = 1;
	pl_ipfix_flow(x, &f, 1001);
	f.obs_rev = 20 | PL_OBS_OUT;
	memcpy(f.src.b, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	pl_ipfix_flow(x, &f, 1001);
	f.proto = 58;
	pl_ipfix_flow(x, &f, 1001);
	pl_ipfix_flush(x, 1002);
	eq(got.malformed + got.wrong_sequence, 0, "well formed, in sequence");
	for (unsigned int i = 0; i < got.n; i++) {
		const struct row *row = &got.rows[i];

		if (!has(row, 0, 4))
			continue;
		n[find(row, 0, 138)->value == 20][find(row, 0, 61)->value & 1]++;
	}
	eq(n[0][1] * 10 + n[0][0], 14, "the first leaves at point 12, then four enter");
	eq(n[1][1] * 10 + n[1][0], biflow ? 0 : 23,
		"what comes back at point 20 is told by itself: three enter, then two leave");
	pl_ipfix_free(x);
}

int main(void)
{
	test_v4();
	test_v6();
	test_icmp();
	test_times();
	test_more();
	test_roles();
	test_reasons();
	test_directions();
	test_many(true);
	test_many(false);
	test_sessions();
	test_any();
	test_flow_direction(false);
	test_flow_direction(true);
	return pl_test_done();
}
