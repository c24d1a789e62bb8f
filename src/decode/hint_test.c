/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reader is told of packets that gave nothing. */
#include "decode/hint.h"

#include "decode/test_flow.h"
#include "wire/report.h"

static struct pl_batch batch;
static uint8_t frames[PL_BATCH_MAX][256];

static struct pl_packet *add(const struct pl_build *b, enum pl_link link)
{
	struct pl_packet *p = &batch.pkts[batch.n++];

	*p = (struct pl_packet){ .data = b->data,
		.len = (uint32_t)b->len,
		.wire_len = (uint32_t)b->len,
		.ts_ns = 1,
		.link = link };
	return p;
}

/* A datagram to that port: a report, or bytes that are none. */
static void add_datagram(uint16_t port, bool report)
{
	const struct pl_report_head h = { .version = PL_REPORT_V10,
		.tracked = true,
		.node = 7,
		.md_bits = 0x20,
		.inner_link = PL_LINK_UNKNOWN };
	const struct pl_int_hop hop = { .node = 7 };
	const struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 40000, port, 0);
	struct pl_build b = pl_build(frames[batch.n], sizeof(frames[0]));
	size_t ip, at;

	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &flow, 64, 0);
	if (report) {
		pl_report_put_group(&b, &h);
		at = pl_report_put(&b, &h, &hop);
		pl_report_end(&b, &h, at);
	} else {
		pl_put_zero(&b, 40);
		pl_put_u8(&b, 0xff);
	}
	pl_end_ip(&b, ip);
	add(&b, PL_LINK_ETHERNET);
}

static void add_other(uint8_t proto)
{
	struct pl_flow flow = udp("10.0.0.1", "10.0.0.2", 0, 0, 0);
	struct pl_build b = pl_build(frames[batch.n], sizeof(frames[0]));
	size_t ip;

	flow.proto = proto;
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	ip = pl_put_ip(&b, &flow, 64, 0);
	pl_put_zero(&b, 32);
	pl_end_ip(&b, ip);
	add(&b, PL_LINK_ETHERNET);
}

static void add_link(uint16_t number)
{
	struct pl_build b = pl_build(frames[batch.n], sizeof(frames[0]));

	pl_put_zero(&b, 32);
	add(&b, PL_LINK_UNKNOWN)->sport = number;
}

/* What is told of the batch, which is empty after. */
static void told(bool look, const char *ports, const char *unread, const char *what)
{
	const struct pl_decode_options options = { 0 };
	struct pl_record_batch out;
	struct pl_decode *d;
	struct pl_hint *hint;
	struct pl_buf text;

	pl_buf_init(&text);
	if (pl_record_batch_init(&out, 512, 1024) < 0 || pl_decode_new(&d, &options) < 0 ||
		pl_hint_new(&hint, &options) < 0)
		abort();
	pl_decode_batch(d, &batch, &out);
	pl_hint_batch(hint, &batch, pl_decode_outcomes(d), look);
	pl_hint_ports(hint, &text);
	streq(text.len > 0 ? text.data : "", ports, "%s: ports", what);
	pl_buf_reset(&text);
	pl_hint_unread(hint, &text);
	streq(text.len > 0 ? text.data : "", unread, "%s: what is not read", what);
	pl_buf_done(&text);
	pl_hint_free(hint);
	pl_decode_free(d);
	pl_record_batch_done(&out);
	batch.n = 0;
}

int main(void)
{
	told(true, "", "", "nothing");
	for (unsigned int i = 0; i < 50; i++)
		add_datagram(6000, true);
	told(true, "--report-port 6000 would read 50 packets", "", "reports");
	add_datagram(6000, true);
	told(false, "", "", "nobody asked");
	add_datagram(6000, true);
	add_datagram(6000, false);
	told(true, "", "", "no more reports than others");
	for (unsigned int i = 0; i < 12; i++)
		add_datagram((uint16_t)(6000 + i % 5), i < 9);
	add_datagram(6003, true);
	add_datagram(53, false);
	told(true,
		"--report-port 6003 would read 3 packets, --report-port 6000 would read 2 packets, "
		"--report-port 6001 would read 2 packets",
		"", "the three ports with most");
	add_datagram(32766, true);
	add_other(PL_IP_TCP);
	add_other(89);
	told(true, "", "", "a report, and what is ordinary");
	for (unsigned int i = 0; i < 3; i++)
		add_link(9);
	add_link(1000);
	add_other(253);
	told(true, "",
		"link type 9 (PPP) is not read: 3 packets; link type 1000 is not read: 1 packet; "
		"IP protocol 253, as Broadcom's IFA has it, is not read: 1 packet",
		"what is not read");
	for (unsigned int i = 0; i < 10; i++)
		add_link((uint16_t)(1000 + i));
	told(true, "",
		"link type 1000 is not read: 1 packet; link type 1001 is not read: 1 packet; "
		"link type 1002 is not read: 1 packet; link type 1003 is not read: 1 packet; "
		"link type 1004 is not read: 1 packet; link type 1005 is not read: 1 packet; "
		"link type 1006 is not read: 1 packet; link type 1007 is not read: 1 packet; "
		"further link types are not read: 2 packets",
		"more link types than are told of one by one");
	return pl_test_done();
}
