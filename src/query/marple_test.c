/* SPDX-License-Identifier: BSD-2-Clause */
/* The queries by name that follow packets in their order or compare two points, each with traffic
 * in which it finds something and with the steady traffic in which it must not. */
#include "base/test.h"
#include "lang/builtin.h"
#include "query/query.h"

#define MS     1000000
#define SECOND (1000 * (uint64_t)MS)
#define START  (1000 * SECOND)

static struct pl_pkt96 packets[8192];
static unsigned int n_packets;
static struct pl_dns64 names[256];
static unsigned int n_names;

static struct pl_pkt96 *packet(unsigned int src, uint64_t ts, uint16_t len)
{
	struct pl_pkt96 *p = &packets[n_packets++];
	const uint8_t a[4] = { 10, 0, 0, (uint8_t)src }, b[4] = { 10, 0, 1, 1 };

	*p = (struct pl_pkt96){ .ts_ns = START + ts,
		.src = pl_addr_v4(a),
		.dst = pl_addr_v4(b),
		.sport = 4000,
		.dport = 80,
		.proto = 6,
		.tcp_flags = 0x18,
		.ttl = 60,
		.tcp_win = 100,
		.wire_len = len,
		.pay_len = (uint16_t)(len - 40),
		.obs = 1,
		.ip_id = (uint16_t)n_packets };
	return p;
}

/* The packet at another point, so much later. */
static void at(struct pl_pkt96 *p, uint16_t point, uint64_t later)
{
	packets[n_packets] = *p;
	packets[n_packets].obs = point;
	packets[n_packets++].ts_ns += later;
}

/* Four senders, a segment of each every 10 ms, seen at point 1 and 200 us later at point 2. */
static void steady(bool second_point)
{
	n_packets = n_names = 0;
	for (unsigned int i = 0; i < 300; i++) {
		for (unsigned int h = 1; h <= 4; h++) {
			struct pl_pkt96 *p = packet(h, i * 10 * (uint64_t)MS + h * MS, 540);

			p->tcp_seq = UINT32_MAX - 5000 + 500 * i;
			if (second_point)
				at(p, 2, MS / 5);
		}
	}
}

/* ---- what is to be found, all of host 99 ---- */

static void uneven(void)
{
	for (unsigned int i = 0; i < 40; i++)
		packet(99, 3200 * (uint64_t)MS + i * 10 * (uint64_t)MS + (i % 2) * 8 * MS, 540);
}

static void delayed(void)
{
	for (unsigned int i = 0; i < 40; i++)
		at(packet(99, 3200 * (uint64_t)MS + i * (uint64_t)MS, 540), 2,
			(i % 2 ? 9 : 3) * (uint64_t)MS);
}

static void bursts(void)
{
	for (unsigned int b = 0; b < 3; b++) {
		for (unsigned int i = 0; i < 100; i++)
			packet(99, (3200 + 200 * (uint64_t)b) * MS + i * (uint64_t)MS / 10, 1500);
	}
}

static void lost(void)
{
	for (unsigned int i = 0; i < 100; i++) {
		struct pl_pkt96 *p = packet(99, 3200 * (uint64_t)MS + i * (uint64_t)MS, 540);

		if (i % 10 != 0)
			at(p, 2, MS / 5);
	}
	/* On the way when the window ends. */
	at(packet(98, 9950 * (uint64_t)MS, 540), 2, 60 * (uint64_t)MS);
}

static void again(void)
{
	static const uint32_t seqs[] = { 0, 500, 1000, 2000, 1500, 2500, 2500, 3000 };

	for (unsigned int i = 0; i < 8; i++)
		packet(99, 3200 * (uint64_t)MS + i * (uint64_t)MS, 540)->tcp_seq = seqs[i];
}

static void pausing(void)
{
	for (unsigned int i = 0; i < 3; i++)
		packet(99, 3200 * (uint64_t)MS + i * 250 * (uint64_t)MS, 540);
}

static void together(void)
{
	for (unsigned int i = 0; i < 40; i++) {
		struct pl_pkt96 *p =
			packet(1 + i, 4000 * (uint64_t)MS + i * (uint64_t)MS / 10, 1500);

		p->dst.b[15] = 99;
	}
}

static void starved(void)
{
	for (unsigned int i = 0; i < 200; i++)
		packet(i < 199 ? 90 + i % 4 : 99, 4000 * (uint64_t)MS + i * (uint64_t)MS, 1500)
			->dst.b[15] = 7;
}

static void rerouted(void)
{
	for (unsigned int i = 0; i < 20; i++) {
		struct pl_pkt96 *p = packet(99, 3200 * (uint64_t)MS + i * (uint64_t)MS, 540);

		p->ttl = i < 10 ? 60 : 57;
		p->obs = i < 15 ? 1 : 2;
	}
}

static void many_names(void)
{
	static const uint8_t client[4] = { 10, 0, 0, 1 };

	for (unsigned int i = 0; i < 100; i++)
		names[n_names++] = (struct pl_dns64){ .ts_ns = START + i * (uint64_t)MS,
			.client = pl_addr_v4(client),
			.server = pl_addr_v4(client),
			.dns_flags = 0x8180,
			.answer = i < 50 ? 0x0a000063 : 0x0b000000 + i,
			.name_hash = 1000 + i };
}

/* ---- run ---- */

struct found {
	unsigned int n, of_99;
	struct pl_query_value last[16];
	uint64_t items, counted;
};

static void sink(void *arg, const struct pl_query_row *row)
{
	struct found *found = arg;
	bool is_99 = false;

	found->n++;
	for (uint32_t i = 0; i < row->n && i < 16; i++) {
		const struct pl_query_value *v = &row->values[i];

		is_99 = is_99 || (v->type == PL_QUERY_ADDR && v->addr.b[15] == 99);
		found->last[i] = *v;
		for (uint32_t k = 0; v->type == PL_QUERY_LIST && k < v->list.n; k++) {
			found->items++;
			found->counted += v->list.items[k].count;
		}
	}
	found->of_99 += is_99;
}

/* Packets in the order of their time. */
static int by_time(const void *a, const void *b)
{
	const struct pl_pkt96 *x = a, *y = b;

	return x->ts_ns < y->ts_ns ? -1 : x->ts_ns > y->ts_ns;
}

static bool run(const char *call, struct found *found)
{
	const struct pl_query_config config = { .max_groups = 1 << 14 };
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	struct pl_diag diag = { 0 };
	struct pl_buf text;
	bool good;

	*found = (struct found){ 0 };
	qsort(packets, n_packets, sizeof(packets[0]), by_time);
	pl_buf_init(&text);
	good = pl_query_builtin_text(&text, call, &diag) == 0 &&
	       pl_query_parse(&query, text.data, &diag) == 0 &&
	       pl_query_run_new(&r, query, &config, sink, found, &diag) == 0;
	if (good) {
		pl_query_feed_flat(r, PL_FLAT_PKT96, packets, n_packets, 0);
		pl_query_feed(r, PL_FLAT_DNS64, names, n_names, 0);
		pl_query_finish(r);
		good = pl_query_run_stats(r)->absent == 0 && pl_query_run_stats(r)->late == 0;
	}
	if (!good)
		printf("# %s: %u: %s\n", text.data != NULL ? text.data : "", diag.column,
			diag.text);
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
	return good;
}

static const struct {
	const char *call;
	void (*event)(void);
	bool second_point;
} cases[] = {
	{ "jitter", uneven, false },
	{ "owd_jitter", delayed, true },
	{ "flowlets(gap=5ms)", bursts, false },
	{ "ewma_length", bursts, false },
	{ "ewma_latency", delayed, true },
	{ "high_latency", delayed, true },
	{ "loss", lost, true },
	{ "out_of_sequence", again, false },
	{ "non_monotonic", again, false },
	{ "timeouts", pausing, false },
	{ "incast", together, false },
	{ "outcast", starved, false },
	{ "route_change", rerouted, false },
	{ "path_change", rerouted, false },
	{ "fastflux_names(emit=final)", many_names, false },
};

static void test_found(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct found found;

		steady(cases[i].second_point);
		ok(run(cases[i].call, &found), "%s", cases[i].call);
		eq(found.n, 0, "%s: nothing in steady traffic", cases[i].call);
		cases[i].event();
		ok(run(cases[i].call, &found));
		ok(found.n >= 1 && found.of_99 == found.n, "%s: %u rows, %u of the host",
			cases[i].call, found.n, found.of_99);
	}
}

/* Figures of the queries, counted by hand. */
static void test_figures(void)
{
	struct found found;

	n_packets = n_names = 0;
	lost();
	ok(run("loss", &found));
	eq(found.n, 1, "packets that may be on the way are not lost");
	eq(found.last[5].u, 10, "lost");
	eq(found.last[6].u, 100, "of so many");
	n_packets = 0;
	again();
	ok(run("out_of_sequence", &found));
	eq(found.last[4].u, 4, "2000, 1500, the first and the second 2500");
	ok(run("non_monotonic", &found));
	eq(found.last[4].u, 1, "1500; the same number again is not before it");
	n_packets = 0;
	bursts();
	ok(run("flowlets", &found));
	eq(found.n, 3, "bursts");
	eq(found.last[7].u, 100, "packets of the last");
	eq(found.last[8].u, 150000, "its bytes");
	ok(run("flowlet_hist", &found));
	eq(found.n, 1);
	eq(found.last[1].u, 3, "bursts of the destination");
	eq(found.counted, 6, "each in both histograms");
	ok(run("gap_hist(window=10s)", &found));
	eq(found.last[1].u, 299, "gaps");
	eq(found.counted, 299);
	ok(run("timeouts(least=100ms)", &found));
	eq(found.last[4].u, 2, "pauses between the bursts");
	n_packets = 0;
	delayed();
	ok(run("high_latency(delay=5ms)", &found));
	eq(found.last[5].u, 20, "every second packet is late");
	eq(found.last[7].u, 9 * MS);
	ok(run("owd_jitter", &found));
	eq(found.last[2].u, 39, "changes");
	ok(found.last[3].u > 5800000 && found.last[3].u < 6200000, "of 6 ms");
	ok(run("epoch_packets(window=10s)", &found));
	eq(found.last[0].u, 80);
}

/* A packet each 10 ms from 0 to 12 s; the clock of the second point, where all arrive after 200 us but
 * those of [from, to), is ahead or behind by `off`. */
static void clocks(int64_t off, unsigned int from, unsigned int to)
{
	n_packets = 0;
	for (unsigned int i = 0; i < 1200; i++) {
		struct pl_pkt96 *p = packet(99, i * 10 * (uint64_t)MS, 540);

		if (i < from || i >= to)
			at(p, 2, (uint64_t)(off + MS / 5));
	}
}

/* A packet is lost or not whatever window its other point's clock puts it in. */
static void test_loss(void)
{
	struct found found;

	for (int64_t off = -80; off <= 80; off += 40) {
		clocks(off * MS, 0, 0);
		ok(run("loss", &found));
		eq(found.n, 0, "nothing is lost with a clock off by %d ms", (int)off);
		clocks(off * MS, 995, 1005);
		ok(run("loss(percent=0)", &found));
		eq(found.n, 2, "five before the end of a window and five behind it");
		eq(found.last[5].u, 5, "with a clock off by %d ms", (int)off);
		eq(found.last[6].u, 200);
	}
	clocks(30 * MS, 0, 0);
	ok(run("loss(travel=20ms)", &found));
	eq(found.n, 2, "what takes longer than it may is lost");
	/* Two that look alike are left out, and so is one that arrives twice. */
	n_packets = 0;
	packet(99, 0, 540);
	packets[n_packets] = packets[0];
	packets[n_packets++].ts_ns += MS;
	at(packet(99, 5 * MS, 540), 2, MS);
	at(&packets[n_packets - 2], 2, 2 * MS);
	packet(99, 9 * MS, 540);
	ok(run("loss", &found));
	eq(found.n, 1);
	ok(found.last[5].u == 1 && found.last[6].u == 1, "one of one");
}

/* 120 packets of 1500 bytes in 120 us at 1 Gbit/s: 15,000 bytes drain, the others wait. */
static void test_queue(void)
{
	struct found found;

	steady(false);
	ok(run("queue_bursts", &found));
	eq(found.n, 0, "no queue in steady traffic");
	n_packets = 0;
	for (unsigned int i = 0; i < 120; i++)
		packet(1, 100 * MS + i * (uint64_t)1000, 1500);
	packet(1, 500 * MS, 100);
	ok(run("queue_bursts", &found));
	eq(found.n, 1, "one burst");
	/* Over 12,500 bytes with packet 9: 9 * 1500 - 8 * 125. */
	eq(found.last[2].u, START + 100 * MS + 9 * 1000, "when the queue passed the depth");
	eq(found.last[3].i, 110 * 1000, "as long as packets came");
	ok(found.last[4].d == 120 * 1500 - 119 * 125, "%.0f bytes at its deepest", found.last[4].d);
	eq(found.last[5].u, 111 * 1500, "bytes of the burst");
	ok(run("queue_bursts(bits=100000000000)", &found));
	eq(found.n, 0, "a link a hundred times as fast empties it");
}

int main(void)
{
	test_found();
	test_figures();
	test_loss();
	test_queue();
	return pl_test_done();
}
