/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters over batches: the packets that are kept, their order, and errors for expressions and link
 * types. That expressions select as in tcpdump is tested by tests/net/filters.py. */
#include "netio/pcap_filter.h"

#include <errno.h>
#include <string.h>

#include "base/test.h"

#define N 40

static uint8_t frames[N][64];
static struct pl_batch batch;

/* Makes an IPv4 datagram to port 5000 + i % 4, behind an Ethernet header unless `link` is
 * RAW_IP. */
static struct pl_packet packet(unsigned int i, enum pl_link link, uint32_t len)
{
	uint8_t *f = frames[i];

	memset(f, 0, sizeof(frames[i]));
	f[12] = 0x08;
	f[14] = 0x45;
	f[17] = 50;
	f[23] = 17;
	f[36] = (5000 + i % 4) >> 8;
	f[37] = (uint8_t)(5000 + i % 4);
	return (struct pl_packet){ .data = link == PL_LINK_RAW_IP ? f + 14 : f,
		.len = len,
		.wire_len = 64,
		.ts_ns = i,
		.link = (uint8_t)link };
}

static int ask(const char *expression, uint32_t n, struct pl_diag *diag)
{
	struct pl_pcap_filter *f = NULL;
	int r = pl_pcap_filter_new(&f, expression, diag);

	if (r == 0)
		r = pl_pcap_filter_batch(f, &batch, n, diag);
	pl_pcap_filter_free(f);
	return r;
}

static void fill(enum pl_link link, uint32_t len)
{
	for (unsigned int i = 0; i < N; i++)
		batch.pkts[i] = packet(i, link, len);
}

static void test_batch(void)
{
	struct pl_diag diag = { .text = "" };

	for (int raw = 0; raw < 2; raw++) {
		fill(raw ? PL_LINK_RAW_IP : PL_LINK_ETHERNET, 50);
		eq(ask("udp dst port 5002", N, &diag), N / 4, "a fourth matches");
		for (unsigned int i = 0; i < N / 4; i++) {
			eq(batch.pkts[i].ts_ns, 4 * i + 2, "in their order");
			eq(batch.pkts[i].data == frames[4 * i + 2] + 14 * raw, true, "whole");
		}
	}
	fill(PL_LINK_ETHERNET, 50);
	eq(ask("tcp", N, &diag), 0, "none matches");
	eq(ask("", N, &diag), N, "the empty expression: all do");
	eq(ask("ip", 0, &diag), 0, "of no packet");
	eq(ask("greater 60", N, &diag), N, "lengths are those on the wire");
	fill(PL_LINK_ETHERNET, 30);
	eq(ask("udp dst port 5002", N, &diag), 0, "what was cut off does not match");
	eq(ask("udp", N, &diag), N, "what is there does");
	fill(PL_LINK_ETHERNET, 0);
	eq(ask("ip", N, &diag), 0, "packets without a byte");
}

static void test_links(void)
{
	struct pl_diag diag = { .text = "" };

	fill(PL_LINK_RAW_IP, 50);
	eq(ask("ether host 02:00:00:00:00:01", N, &diag), -EINVAL, "there is no such address");
	ok(strstr(diag.text, "IP packets without a link's header") != NULL, "%s", diag.text);
	fill(PL_LINK_ETHERNET, 50);
	batch.pkts[3].link = PL_LINK_UNKNOWN;
	eq(ask("ip", N, &diag), -EINVAL, "a link that is not read");
	ok(strstr(diag.text, "not read") != NULL, "%s", diag.text);
	fill(PL_LINK_ETHERNET, 50);
	batch.pkts[0].link = PL_LINK_UDP;
	eq(ask("ip", N, &diag), -EINVAL, "contents of datagrams");
	ok(strstr(diag.text, "whole frames") != NULL, "%s", diag.text);
}

/* Refuses expressions about ancillary data of the kernel, and those that take minutes to
 * compile. */
static void test_refused(void)
{
	static const char *const kernel[] = { "inbound", "not outbound", "udp and ifindex 2" };
	char text[PL_PCAP_FILTER_MAX + 20] = "udp";

	fill(PL_LINK_ETHERNET, 50);
	for (size_t i = 0; i < sizeof(kernel) / sizeof(kernel[0]); i++) {
		struct pl_diag diag = { .text = "" };

		eq(ask(kernel[i], N, &diag), -EINVAL, "%s", kernel[i]);
		ok(strstr(diag.text, "of the kernel alone") != NULL, "%s", diag.text);
	}
	while (strlen(text) <= PL_PCAP_FILTER_MAX) {
		struct pl_diag diag = { .text = "" };

		strcat(text, " or udp");
		if (strlen(text) > PL_PCAP_FILTER_MAX) {
			eq(ask(text, 0, &diag), -EINVAL, "one that is too long");
			ok(strstr(diag.text, "--rules") != NULL, "%s", diag.text);
		}
	}
}

static void test_expressions(void)
{
	static const char *const bad[] = { "udp prot 5000", "(ip", "host 10.0.0.300", "port 70000",
		"a b c" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pl_diag diag = { .text = "" };

		eq(ask(bad[i], 0, &diag), -EINVAL, "%s", bad[i]);
		ok(strstr(diag.text, bad[i]) != NULL, "%s", diag.text);
	}
}

int main(void)
{
	test_batch();
	test_links();
	test_refused();
	test_expressions();
	return pl_test_done();
}
