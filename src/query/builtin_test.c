/* SPDX-License-Identifier: BSD-2-Clause */
/* Every query by name, with traffic in which it finds something and with traffic in which it must
 * not: the same amount of complete connections, requests with answers, short flows. */
#include "lang/builtin.h"

#include <errno.h>

#include "base/test.h"
#include "query/query.h"

#define MS     1000000
#define SECOND (1000 * (uint64_t)MS)

struct traffic {
	struct pl_pkt64 packets[4096];
	struct pl_dns64 dns[1024];
	struct pl_flow128 flows[64];
	unsigned int n_packets, n_dns, n_flows;
	uint64_t now;
};

static struct traffic t;

static struct pl_addr host(unsigned int n)
{
	uint8_t b[4] = { 10, 0, (uint8_t)(n >> 8), (uint8_t)n };

	return pl_addr_v4(b);
}

static struct pl_pkt64 *packet(unsigned int src, unsigned int dst, uint16_t sport, uint16_t dport,
	uint8_t proto, uint8_t flags)
{
	struct pl_pkt64 *p = &t.packets[t.n_packets++];

	t.now += MS / 10;
	*p = (struct pl_pkt64){ .ts_ns = t.now,
		.src = host(src),
		.dst = host(dst),
		.sport = sport,
		.dport = dport,
		.proto = proto,
		.tcp_flags = flags,
		.wire_len = 60,
		.tcp_win = 512 };
	return p;
}

static struct pl_dns64 *dns(
	unsigned int client, unsigned int server, uint16_t qtype, bool response, uint32_t answer)
{
	struct pl_dns64 *d = &t.dns[t.n_dns++];

	t.now += MS / 10;
	*d = (struct pl_dns64){ .ts_ns = t.now,
		.client = host(client),
		.server = host(server),
		.qtype = qtype,
		.dns_flags = response ? 0x8180 : 0x0100,
		.answer = answer,
		.name_hash = 1 + client };
	return d;
}

static struct pl_flow128 *flow(unsigned int dst)
{
	struct pl_flow128 *f = &t.flows[t.n_flows++];

	t.now += 10 * MS;
	*f = (struct pl_flow128){ .first_ts = t.now - 100 * MS,
		.last_ts = t.now,
		.src = host(1),
		.dst = host(dst),
		.proto = 6,
		.pkts_fwd = 50,
		.pkts_rev = 50,
		.bytes_fwd = 40000 };
	return f;
}

/* A whole connection, 13 packets: opened, used, ended by both. */
static void connection(unsigned int client, unsigned int server, uint16_t sport, uint16_t dport)
{
	struct pl_pkt64 *p;

	packet(client, server, sport, dport, 6, 0x02)->tcp_seq = 100;
	p = packet(server, client, dport, sport, 6, 0x12);
	p->tcp_seq = UINT32_MAX;
	p->tcp_ack = 101;
	packet(client, server, sport, dport, 6, 0x10)->tcp_ack = 0;
	p = packet(client, server, sport, dport, 6, 0x18);
	p->wire_len = (uint16_t)(400 + sport % 7);
	p->pay_len = (uint16_t)(p->wire_len - 40);
	for (int i = 0; i < 4; i++) {
		p = packet(server, client, dport, sport, 6, 0x10);
		p->wire_len = 1500;
		p->pay_len = 1460;
	}
	packet(client, server, sport, dport, 6, 0x10)->tcp_ack = 4 * 1460;
	packet(server, client, dport, sport, 6, 0x11);
	packet(client, server, sport, dport, 6, 0x10);
	packet(client, server, sport, dport, 6, 0x11);
	packet(server, client, dport, sport, 6, 0x10);
}

/* In each second a few connections of a few hosts, names resolved and used, flows without trouble. */
static void harmless(void)
{
	for (unsigned int i = 0; i < 60; i++) {
		unsigned int client = 1 + i % 5, server = 20 + i % 4;

		dns(client, 30, 1, false, 0);
		dns(client, 30, 1, true, 0x0a000000 + server);
		connection(client, server, (uint16_t)(40000 + i), 80);
		packet(client, 40, (uint16_t)(5000 + i), 123, 17, 0);
		packet(40, client, 123, (uint16_t)(5000 + i), 17, 0);
		if (i % 10 == 9)
			flow(server);
		t.now += 40 * MS;
	}
}

/* ---- attacks ---- */

static void many_syns(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(1 + i % 4, 99, (uint16_t)(1000 + i), 80, 6, i % 2 ? 0x02 : 0xc2);
}

static void ssh_tries(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(100 + i, 99, 40000, 22, 6, 0x18)->wire_len = 92;
}

static void one_to_many(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(99, 100 + i, 500, 500, 17, 0);
	for (unsigned int i = 0; i < 45; i++)
		packet(100 + i, 99, 500, 500, 17, 0);
}

static void many_ports(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(99, 1, 500, (uint16_t)(1 + i), 6, 0x02);
}

static void slow(void)
{
	for (unsigned int i = 0; i < 10; i++)
		packet(97, 99, (uint16_t)(500 + i), 80, 6, 0x18)->wire_len = 80;
}

static void tunnel(void)
{
	for (unsigned int i = 0; i < 12; i++)
		dns(99, 30, 1, true, 0xc0000200 + i);
}

static void similar(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(100 + i, 99, 500, 23, 6, 0x18)->wire_len = 77;
}

static void marked(void)
{
	packet(100, 99, 500, 23, 6, 0x18)->obs = PL_OBS_RULE;
}

static void telnet(void)
{
	similar();
	marked();
}

static void reflection(void)
{
	for (unsigned int i = 0; i < 45; i++)
		dns(99, 100 + i, i % 2 ? 46 : 255, true, 0);
}

static void large(void)
{
	for (unsigned int i = 0; i < 300; i++)
		packet(99, 98, 500, 500, 17, 0)->wire_len = 60000;
}

static void unasked(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(50, 99, 123, (uint16_t)(5000 + i), 17, 0);
}

static void stalled(void)
{
	packet(99, 98, 80, 5000, 6, 0x10)->tcp_win = 0;
}

static void flux(void)
{
	for (unsigned int i = 0; i < 45; i++)
		dns(99, 30, 1, true, 0xc0000200 + i)->name_hash = 7777;
}

static void measured(void)
{
	struct pl_flow128 *f = flow(99);

	f->rtt_min_us = 900;
	f->rtt_avg_us = 1000;
	f->hs_external_us = 600;
	f->hs_internal_us = 300;
}

static void again(void)
{
	flow(99)->retrans_rev = 5;
}

static void disordered(void)
{
	flow(99)->ooo_fwd = 5;
}

/* Offered, and acknowledged with a number that is not the one offered. */
static void half_open(void)
{
	for (unsigned int i = 0; i < 45; i++) {
		packet(99, 100 + i, 80, 1000, 6, 0x12)->tcp_seq = 5000;
		packet(100 + i, 99, 1000, 80, 6, 0x10)->tcp_ack = 5000;
	}
}

static void missing(void)
{
	for (unsigned int i = 0; i < 4; i++)
		packet(99, 98, 5000, 80, 6, 0x10)->tcp_ack = 7000;
}

static void burst(void)
{
	t.now += MS - t.now % MS;
	for (unsigned int i = 0; i < 4; i++) {
		packet(99, 98, 500, 500, 17, 0)->wire_len = 60000;
		t.packets[t.n_packets - 1].obs = 7;
	}
}

static void names(void)
{
	for (unsigned int i = 0; i < 110; i++)
		dns(99, 30, 16, false, 0)->name_hash = 100000 + i;
}

static void fat(void)
{
	flow(99)->bytes_rev = 2000000000;
}

static void fast(void)
{
	struct pl_flow128 *f = flow(99);

	f->bytes_rev = 300000000;
	f->first_ts = f->last_ts - 2 * SECOND;
}

/* ---- what only resembles an attack ---- */

static void established(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(1 + i % 4, 99, (uint16_t)(1000 + i), 80, 6, i % 2 ? 0x12 : 0x10);
}

static void many_lengths(void)
{
	for (unsigned int i = 0; i < 45; i++)
		packet(100 + i, 99, 40000, 22, 6, 0x18)->wire_len = (uint16_t)(60 + i);
}

static void few_bytes(void)
{
	for (unsigned int i = 0; i < 8; i++)
		packet(97, 99, (uint16_t)(500 + i), 80, 6, 0x10);
}

static void ended(void)
{
	for (unsigned int i = 0; i < 45; i++) {
		packet(1, 99, (uint16_t)(1000 + i), 80, 6, 0x02);
		packet(99, 1, 80, (uint16_t)(1000 + i), 6, 0x11);
	}
}

static void resolved(void)
{
	for (unsigned int i = 0; i < 12; i++) {
		dns(99, 30, 1, true, 0x0a000000 + 400 + i);
		packet(99, 400 + i, 1000, 80, 6, 0x02);
	}
}

static void asked(void)
{
	for (unsigned int i = 0; i < 45; i++) {
		dns(99, 100 + i, i % 2 ? 46 : 255, false, 0);
		dns(99, 100 + i, i % 2 ? 46 : 255, true, 0);
	}
}

static void reset(void)
{
	packet(99, 98, 80, 5000, 6, 0x04)->tcp_win = 0;
}

/* ---- run ---- */

struct found {
	unsigned int n, of_99;
};

static void sink(void *arg, const struct pl_query_row *row)
{
	struct found *found = arg;
	const struct pl_addr attacker = host(99);
	bool is_99 = false;

	found->n++;
	for (uint32_t i = 0; i < row->n; i++)
		is_99 = is_99 || (!row->values[i].absent && row->values[i].type == PL_QUERY_ADDR &&
					 pl_addr_equal(&row->values[i].addr, &attacker));
	found->of_99 += is_99;
}

static bool run(const char *call, struct found *found)
{
	const struct pl_query_config config = { .max_groups = 1 << 14 };
	struct pl_diag diag = { 0 };
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	struct pl_buf text;
	bool good;

	*found = (struct found){ 0 };
	pl_buf_init(&text);
	good = pl_query_builtin_text(&text, call, &diag) == 0 &&
	       pl_query_parse(&query, text.data, &diag) == 0 &&
	       pl_query_run_new(&r, query, &config, sink, found, &diag) == 0;
	if (good) {
		pl_query_feed(r, PL_FLAT_PKT64, t.packets, t.n_packets, 0);
		pl_query_feed(r, PL_FLAT_DNS64, t.dns, t.n_dns, 0);
		pl_query_feed(r, PL_FLAT_FLOW128, t.flows, t.n_flows, 0);
		pl_query_finish(r);
		good = pl_query_run_stats(r)->absent == 0 && pl_query_run_stats(r)->late == 0;
	} else {
		printf("# %s: %u: %s\n", text.data != NULL ? text.data : "", diag.column,
			diag.text);
	}
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
	return good;
}

static const struct {
	const char *call;
	void (*attack)(void);
} cases[] = {
	{ "new_conns", many_syns },
	{ "new_conns(emit=final)", many_syns },
	{ "ssh_brute", ssh_tries },
	{ "superspreader", one_to_many },
	{ "portscan", many_ports },
	{ "ddos", one_to_many },
	{ "syn_flood(threshold=20)", many_syns },
	{ "incomplete_flows", many_syns },
	{ "slowloris", slow },
	{ "dns_tunnel", tunnel },
	{ "zorro", telnet },
	{ "dns_reflection", reflection },
	{ "heavy_hitter", large },
	{ "udp_asym", unasked },
	{ "zero_window", stalled },
	{ "fastflux(emit=final)", flux },
	{ "rtt", measured },
	{ "retrans", again },
	{ "ooo", disordered },
	{ "syn_flood_halfopen", half_open },
	{ "dupack", missing },
	{ "dns_names", names },
	{ "hs_latency", measured },
	{ "elephant", fat },
	{ "elephant", fast },
};

static void test_found(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct found found;

		memset(&t, 0, sizeof(t));
		t.now = 1000 * SECOND;
		harmless();
		ok(run(cases[i].call, &found), "%s", cases[i].call);
		eq(found.n, 0, "%s: nothing in harmless traffic", cases[i].call);
		cases[i].attack();
		harmless();
		ok(run(cases[i].call, &found));
		/* Nobody else; fastflux tells names, not addresses. */
		ok(found.n >= 1 &&
				(found.of_99 == found.n || strncmp(cases[i].call, "fast", 4) == 0),
			"%s: %u rows, %u of the host", cases[i].call, found.n, found.of_99);
	}
}

/* A part of what a question looks for, or the same in another field, is not enough. */
static void test_resembling(void)
{
	static const struct {
		const char *call;
		void (*traffic)(void);
	} others[] = {
		{ "new_conns", established },
		{ "ssh_brute", similar },
		{ "ssh_brute", many_lengths },
		{ "superspreader", many_ports },
		{ "portscan", ssh_tries },
		{ "portscan", one_to_many },
		{ "ddos", many_ports },
		{ "incomplete_flows", ended },
		{ "slowloris", ssh_tries },
		{ "slowloris", few_bytes },
		{ "dns_tunnel", resolved },
		{ "zorro", similar },
		{ "zorro", marked },
		{ "dns_reflection", asked },
		{ "heavy_hitter", one_to_many },
		{ "zero_window", reset },
		{ "rtt", again },
		{ "retrans", disordered },
		{ "ooo", again },
		{ "hs_latency", again },
		{ "elephant", measured },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct found found;

		memset(&t, 0, sizeof(t));
		t.now = 1000 * SECOND;
		harmless();
		others[i].traffic();
		harmless();
		ok(run(others[i].call, &found), "%s", others[i].call);
		eq(found.n, 0, "%s: nothing in what resembles it, %zu", others[i].call, i);
	}
}

/* Its rows are of observation points, and names no host. */
static void test_burst(void)
{
	struct found found;

	memset(&t, 0, sizeof(t));
	t.now = 1000 * SECOND;
	harmless();
	ok(run("microburst", &found));
	eq(found.n, 0, "microburst: nothing in harmless traffic");
	burst();
	ok(run("microburst", &found));
	eq(found.n, 1, "microburst: a millisecond of 240,000 bytes");
	ok(run("microburst(bits=10000000000)", &found));
	eq(found.n, 0, "microburst: not on a link ten times as fast");
}

static uint64_t opened[3]; /* rows, half_open and clients of all */

static void count_open(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	opened[0]++;
	opened[1] += row->values[1].u;
	opened[2] += row->values[2].u;
}

/* `n` SYN-ACKs of host 99 from `from_ms` to `to_ms` behind the start of a window of 10 s, each twice, to
 * 50 clients, of which every `acked`-th is acknowledged 100 ms later. */
static void ask_open(const char *call, unsigned int from_ms, unsigned int to_ms, unsigned int acked)
{
	const unsigned int n = 500;
	const struct pl_query_config config = { .max_groups = 1 << 14 };
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	struct pl_buf text;

	memset(&t, 0, sizeof(t));
	memset(opened, 0, sizeof(opened));
	for (unsigned int i = 0; i < n; i++) {
		const uint64_t at = 1000 * SECOND + from_ms * (uint64_t)MS +
				    (to_ms - from_ms) * (uint64_t)MS / n * i;
		const unsigned int client = 100 + i % 50;
		struct pl_pkt64 *p;

		for (unsigned int again = 0; again < 2; again++) {
			t.now = at + again * 50 * MS;
			p = packet(99, client, 80, (uint16_t)(1000 + i), 6, 0x12);
			p->tcp_seq = UINT32_MAX - 3 + i;
		}
		t.now = at + 100 * MS;
		if (i % acked == 0)
			packet(client, 99, (uint16_t)(1000 + i), 80, 6, 0x10)->tcp_ack =
				UINT32_MAX - 2 + i;
	}
	pl_buf_init(&text);
	ok(pl_query_builtin_text(&text, call, NULL) == 0 &&
			pl_query_parse(&query, text.data, NULL) == 0 &&
			pl_query_run_new(&r, query, &config, count_open, NULL, NULL) == 0,
		"%s", call);
	pl_query_feed(r, PL_FLAT_PKT64, t.packets, t.n_packets, 0);
	if (r != NULL)
		pl_query_finish(r);
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
}

/* When in a window a connection is offered does not matter, and windows may be short. */
static void test_half_open(void)
{
	ask_open("syn_flood_halfopen", 7500, 9500, 500);
	ok(opened[0] == 1 && opened[1] == 499 && opened[2] == 50,
		"499 in the last 3 s of a window: %u rows, %u connections, %u clients",
		(unsigned int)opened[0], (unsigned int)opened[1], (unsigned int)opened[2]);
	ask_open("syn_flood_halfopen", 1000, 3000, 500);
	ok(opened[0] == 1 && opened[1] == 499, "and at its begin");
	ask_open("syn_flood_halfopen(window=2s)", 7500, 9500, 500);
	/* 12 of them are offered again in the next window. */
	ok(opened[0] == 2 && opened[1] == 499 + 12, "in windows shorter than the age");
	ask_open("syn_flood_halfopen", 9000, 11000, 1);
	eq(opened[0], 0, "none where all are acknowledged, some in the next window");
	ask_open("syn_flood_halfopen(age=50ms)", 1000, 3000, 1);
	ok(opened[0] == 1 && opened[1] == 500, "none is in time when the time is short");
}

/* ---- delay between two points ---- */

static void at_point(struct pl_pkt96 *p, uint16_t point, uint32_t seq, uint64_t ts_ns)
{
	*p = (struct pl_pkt96){ .ts_ns = ts_ns,
		.src = host(1),
		.dst = host(99),
		.sport = 1000,
		.dport = 80,
		.proto = 6,
		.tcp_seq = seq,
		.pay_len = 100,
		.obs = point,
		.ip_id = (uint16_t)seq };
}

struct delay {
	uint64_t packets;
	int64_t least, greatest;
	double mean;
};

static void delays(void *arg, const struct pl_query_row *row)
{
	struct delay *ret = arg;

	if (row->n != 6)
		return;
	*ret = (struct delay){ .packets = row->values[2].u,
		.least = row->values[3].i,
		.mean = row->values[4].d,
		.greatest = row->values[5].i };
}

/* Ten packets of 3 ms of delay but for one of 4, one lost, two that cannot be told apart. */
static void test_delay(void)
{
	const struct pl_query_config config = { .max_groups = 1 << 10 };
	struct pl_pkt96 packets[32];
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	struct delay got = { 0 };
	struct pl_buf text;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 10; i++) {
		const uint64_t ts = 1000 * SECOND + i * MS;

		at_point(&packets[n++], 1, i, ts);
		at_point(&packets[n++], 2, i, ts + (i == 4 ? 4 : 3) * MS);
	}
	at_point(&packets[n++], 1, 50, 1001 * SECOND);
	at_point(&packets[n++], 1, 60, 1001 * SECOND);
	at_point(&packets[n++], 1, 60, 1001 * SECOND + 1);
	at_point(&packets[n++], 2, 60, 1001 * SECOND + 9 * MS);
	pl_buf_init(&text);
	if (ok(pl_query_builtin_text(&text, "owd", NULL) == 0 &&
			    pl_query_parse(&query, text.data, NULL) == 0 &&
			    pl_query_run_new(&r, query, &config, delays, &got, NULL) == 0,
		    "owd: a query")) {
		pl_query_feed(r, PL_FLAT_PKT96, packets, n, 0);
		pl_query_finish(r);
	}
	eq(got.packets, 10, "owd: packets seen at both points");
	eq(got.least, 3 * MS, "least delay");
	eq(got.greatest, 4 * MS, "greatest delay");
	ok(got.mean > 3.09 * MS && got.mean < 3.11 * MS, "mean of %.0f ns", got.mean);
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
}

/* Queries that describe the traffic and have no alarms. */
static void test_told(void)
{
	struct found found;

	memset(&t, 0, sizeof(t));
	ok(run("top_talkers(k=3)", &found));
	eq(found.n, 0, "no traffic, no talkers");
	ok(run("pkt_size_hist", &found));
	eq(found.n, 0);
	t.now = 1000 * SECOND;
	harmless();
	ok(run("top_talkers(k=3, window=1h)", &found));
	eq(found.n, 3);
	measured();
	ok(run("iat_hist", &found));
	eq(found.of_99, 1, "a row of the host, and others of the harmless ones");
	ok(run("pkt_size_hist(bin=1000, window=1h)", &found));
	eq(found.n, 2, "lengths below 1000 and above");
}

static const struct {
	const char *call;
	int error;
	unsigned int column;
	const char *says;
} faults[] = {
	{ "", -EINVAL, 1, "expected the name" },
	{ "(SELECT src FROM packets)", -ENOENT, 1, "expected the name" },
	{ "ddoss", -ENOENT, 1, "did you mean \"ddos\"?" },
	{ "  xyzzy", -ENOENT, 3, "no query \"xyzzy\"" },
	{ "ddos(", -EINVAL, 6, "expected the name of a parameter" },
	{ "ddos(treshold=5)", -EINVAL, 6, "did you mean \"threshold\"?" },
	{ "ddos(threshold)", -EINVAL, 15, "expected \"=\"" },
	{ "ddos(threshold=)", -EINVAL, 16, "expected a value" },
	{ "ddos(threshold=abc)", -EINVAL, 16, "threshold is a number such as 45, not \"abc\"" },
	{ "ddos(threshold=0x)", -EINVAL, 16, "is a number" },
	{ "ddos(threshold=-3)", -EINVAL, 16, "expected a value" },
	{ "ddos(window=5)", -EINVAL, 13, "window is a duration such as 1s, not \"5\"" },
	{ "ddos(window= abc)", -EINVAL, 14, "is a duration" },
	{ "ddos(emit=frist)", -EINVAL, 11, "emit is first or final, not \"frist\"" },
	{ "ewma_length(weight=heavy)", -EINVAL, 20, "weight is a number such as 0.125" },
	{ "ddos(threshold=5", -EINVAL, 17, "expected a comma" },
	{ "ddos(threshold=5, threshold=6)", -EINVAL, 19, "given twice" },
	{ "ddos(threshold=5) x", -EINVAL, 19, "or the end" },
	{ "ddos(threshold=5 or 1)", -EINVAL, 18, "expected a comma" },
	{ "ddos;;", -EINVAL, 6, "or the end" },
	{ "ddos threshold=5", -EINVAL, 6, "in parentheses" },
};

static void reasons(void *arg, const struct pl_query_row *row)
{
	uint64_t *n = arg;

	/* reason, ifindex, n */
	if (row->values[0].u < PL_DROP_REASONS && row->values[1].u == 3)
		n[row->values[0].u] += row->values[2].u;
}

/* Drops by their reason: those below the threshold are not told. */
static void test_drops(void)
{
	static const uint16_t with[] = { PL_DROP_TCP_CSUM, PL_DROP_NO_SOCKET, PL_DROP_NO_SOCKET,
		PL_DROP_OTHER, PL_DROP_NO_SOCKET };
	const struct pl_query_config config = { .max_groups = 16 };
	struct pl_drop168 drops[5] = { { .ts_ns = 0 } };
	uint64_t n[PL_DROP_REASONS] = { 0 };
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	struct pl_buf text;

	for (unsigned int i = 0; i < 5; i++)
		drops[i] = (struct pl_drop168){
			.ts_ns = SECOND + i, .reason = with[i], .ifindex = 3, .ethertype = 0x800
		};
	pl_buf_init(&text);
	ok(pl_query_builtin_text(&text, "drops_by_reason(threshold=2)", NULL) == 0 &&
			pl_query_parse(&query, text.data, NULL) == 0 &&
			pl_query_run_new(&r, query, &config, reasons, n, NULL) == 0,
		"drops_by_reason");
	pl_query_feed(r, PL_FLAT_DROP168, drops, 5, 0);
	pl_query_finish(r);
	ok(n[PL_DROP_NO_SOCKET] == 3 && n[PL_DROP_TCP_CSUM] == 0 && n[PL_DROP_OTHER] == 0,
		"the reason that is frequent");
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
}

/* ---- hops of reports ---- */

static struct {
	uint32_t n;
	uint64_t values[4][5];
} told;

static void tell(void *arg, const struct pl_query_row *row)
{
	(void)arg;
	for (uint32_t i = 0; i < row->n && i < 5 && told.n < 4; i++)
		told.values[told.n][i] = row->values[i].absent ? 0 : row->values[i].u;
	told.n++;
}

/* Node 7: 100 packets, `deep` of which find 2000 in the queue and stay 3 ms; node 8 has neither. */
static void ask_hops(const char *call, unsigned int deep)
{
	const struct pl_query_config config = { .max_groups = 16 };
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	struct pl_buf text;

	told.n = 0;
	pl_buf_init(&text);
	ok(pl_query_builtin_text(&text, call, NULL) == 0 &&
			pl_query_parse(&query, text.data, NULL) == 0 &&
			pl_query_run_new(&r, query, &config, tell, NULL, NULL) == 0,
		"%s", call);
	for (unsigned int i = 0; r != NULL && i < 200; i++) {
		const bool is_deep = i < 2 * deep && i % 2 == 0;
		struct pl_query_hop h = { .hop = { .ts_ns = SECOND + i,
						  .node = 7 + i % 2,
						  .queue = 3,
						  .queue_depth = is_deep ? 2000 : 10,
						  .hop_latency_ns = is_deep ? 3000000 : 1000,
						  .present = PL_HOP_HAS_node | PL_HOP_HAS_queue |
							     PL_HOP_HAS_hop_latency_ns } };

		/* The last ones do not say how deep it was. */
		h.hop.present |= i < 180 ? PL_HOP_HAS_queue_depth : 0;
		pl_query_feed(r, PL_QUERY_HOPS, &h, 1, 0);
	}
	if (r != NULL)
		pl_query_finish(r);
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
}

static void test_hops(void)
{
	ask_hops("deep_queues", 5);
	eq(told.n, 1, "a queue that 5 of 90 packets find deep");
	ok(told.values[0][0] == 7 && told.values[0][1] == 3 && told.values[0][2] == 90 &&
			told.values[0][3] == 5 && told.values[0][4] == 2000,
		"with packets, how many found it deep, and how deep");
	ask_hops("deep_queues(percent=6)", 5);
	eq(told.n, 0, "5 of 90 are no more than 6 in a hundred");
	ask_hops("deep_queues", 0);
	eq(told.n, 0, "where none is deep nothing is told");
	ask_hops("slow_hops", 4);
	eq(told.n, 1, "a node in which packets stay long");
	ok(told.values[0][0] == 7 && told.values[0][2] == 4 && told.values[0][3] == 3000000,
		"how many, and how long");
	ask_hops("slow_hops(packets=5)", 4);
	eq(told.n, 0, "fewer than are asked for");
	ask_hops("slow_hops(latency=3ms)", 4);
	eq(told.n, 0, "3 ms are not above 3 ms");
}

/* Packets and bytes of two connections. */
static void test_flow_bytes(void)
{
	const struct pl_query_config config = { .max_groups = 16 };
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	struct pl_buf text;
	uint64_t n[PL_DROP_REASONS] = { 0 };

	pl_buf_init(&text);
	ok(pl_query_builtin_text(&text, "flow_bytes(bytes=300) ; ", NULL) == 0 &&
			pl_query_parse(&query, text.data, NULL) == 0 &&
			pl_query_run_new(&r, query, &config, tell, n, NULL) == 0,
		"flow_bytes");
	told.n = 0;
	for (unsigned int i = 0; i < 5; i++) {
		const struct pl_pkt64 p = { .ts_ns = SECOND + i,
			.sport = (uint16_t)(i % 2),
			.dport = 443,
			.proto = 6,
			.wire_len = 100 };

		pl_query_feed(r, PL_FLAT_PKT64, &p, 1, 0);
	}
	pl_query_finish(r);
	eq(told.n, 1, "the connection of three packets, and not that of two");
	ok(told.values[0][2] == 0 && told.values[0][3] == 443 && told.values[0][4] == 6,
		"by its ports and protocol");
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
}

static void figures(void *arg, const struct pl_query_row *row)
{
	double *ret = arg;

	for (uint32_t i = 0; i < row->n && i < 8; i++)
		ret[i] = row->values[i].type == PL_QUERY_DOUBLE ? row->values[i].d
								: (double)row->values[i].u;
}

/* Three names of 4 labels with 5 characters each, asked for by TXT; one of 2 labels with 9, and the
 * root, by A. */
static void test_names(void)
{
	const struct pl_query_config config = { .max_groups = 16 };
	struct pl_query_run *r = NULL;
	struct pl_query *query = NULL;
	double got[8] = { 0 };
	struct pl_buf text;

	memset(&t, 0, sizeof(t));
	for (unsigned int i = 0; i < 5; i++) {
		struct pl_dns64 *d = dns(99, 30, i < 3 ? 16 : 1, false, 0);

		d->name_hash = 1000 + i;
		d->labels = i < 3 ? 4 : i < 4 ? 2 : 0;
		d->name_len = i < 3 ? 4 * 6 + 1 : i < 4 ? 2 * 10 + 1 : 1;
		d->entropy = 96;
	}
	pl_buf_init(&text);
	ok(pl_query_builtin_text(&text, "dns_names(threshold=4)", NULL) == 0 &&
			pl_query_parse(&query, text.data, NULL) == 0 &&
			pl_query_run_new(&r, query, &config, figures, got, NULL) == 0,
		"dns_names");
	pl_query_feed(r, PL_FLAT_DNS64, t.dns, t.n_dns, 0);
	pl_query_finish(r);
	ok(got[2] == 5 && got[7] == 5, "names and requests");
	ok(got[3] == 19.4 && got[4] == 4.8, "length of the name %g, and of its labels %g", got[3],
		got[4]);
	ok(got[5] == 3 && got[6] == 0.6, "entropy %g, share of TXT %g", got[5], got[6]);
	pl_query_run_free(r);
	pl_query_free(query);
	pl_buf_done(&text);
}

static void test_faults(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct pl_diag diag = { 0 };
		struct pl_buf out;

		pl_buf_init(&out);
		eq(pl_query_builtin_text(&out, faults[i].call, &diag), faults[i].error,
			"refused: %s", faults[i].call);
		eq(diag.column, faults[i].column);
		if (!ok(strstr(diag.text, faults[i].says) != NULL, "says: %s", faults[i].says))
			printf("# says \"%s\"\n", diag.text);
		eq(out.len, 0);
		pl_buf_done(&out);
	}
}

static void test_list(void)
{
	const struct pl_query_builtin *list;
	uint32_t n = pl_query_builtins(&list);

	ok(n >= 20, "%u queries", n);
	for (uint32_t i = 0; i < n; i++) {
		struct pl_query *query = NULL;
		struct pl_buf text;

		pl_buf_init(&text);
		ok(pl_query_builtin_text(&text, list[i].name, NULL) == 0 &&
				strchr(text.data, '$') == NULL &&
				pl_query_parse(&query, text.data, NULL) == 0,
			"%s with what its parameters are when not given", list[i].name);
		for (uint32_t k = 0; k < PL_QUERY_PARAMS_MAX && list[i].params[k].name != NULL;
			k++) {
			char use[64];

			snprintf(use, sizeof(use), "$%s", list[i].params[k].name);
			ok(strstr(list[i].text, use) != NULL, "%s is used", use);
		}
		pl_query_free(query);
		pl_buf_done(&text);
	}
}

int main(void)
{
	test_found();
	test_resembling();
	test_told();
	test_burst();
	test_half_open();
	test_delay();
	test_drops();
	test_hops();
	test_flow_bytes();
	test_names();
	test_faults();
	test_list();
	return pl_test_done();
}
