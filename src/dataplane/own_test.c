/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of a node itself, compared by bytes if short, else by checksums over all bytes. */
#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "dataplane/program.h"
#include "wire/layers.h"

#define SECOND    UINT64_C(1000000000)
#define NOW       (1000 * SECOND)
#define OUT_MAX   256
#define FRAME_MAX 2000

static const char program_text[] =
	"ports:\n"
	"  - { number: 1, uri: \"packet:a\", mac: \"02:00:00:00:00:01\", icmp: 100,\n"
	"      addresses: [ 10.0.1.1, \"fd00:1::1\" ] }\n"
	"  - { number: 2, uri: \"packet:b\", mac: \"02:00:00:00:00:02\", mtu: 1000, icmp: 0,\n"
	"      addresses: [ 10.0.2.1 ] }\n"
	"  - { number: 3, uri: \"packet:c\", mac: \"02:00:00:00:00:03\" }\n"
	"tables:\n"
	"  - name: routes\n    key: [ ip.dst prefix ]\n    entries:\n"
	"      - ip.dst=10.0.2.0/24 -> route 2 02:00:00:00:00:22\n"
	"      - ip.dst=fd00:2::/64 -> route 2 02:00:00:00:00:22\n"
	"      - ip.dst=224.0.0.0/4 -> route 2 02:00:00:00:00:22\n"
	"  - name: bridge\n    key: [ eth.dst exact ]\n    entries:\n"
	"      - \"eth.dst=ff:ff:ff:ff:ff:ff -> flood\"\n";

static const uint8_t port_mac[6] = { 2, 0, 0, 0, 0, 1 }, host_mac[6] = { 2, 0, 0, 0, 0, 0x11 };
static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

struct bench {
	struct pl_dp_pool *pool;
	struct pl_dp_pipeline *p;
	struct pl_dp_packet *out[OUT_MAX];
	unsigned int n;
};

static void keep(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	struct bench *b = arg;

	(void)stage;
	if (b->n < OUT_MAX)
		b->out[b->n++] = pkt;
	else
		pl_dp_packet_free(pkt);
}

static void empty(struct bench *b)
{
	while (b->n > 0)
		pl_dp_packet_free(b->out[--b->n]);
}

static void build_of(struct bench *b, const char *text)
{
	struct pl_dp_pipeline_options o = { .ops = { .out = keep, .arg = b } };
	struct pl_dp_program program;
	struct pl_diag diag = { .text = "" };
	int r;

	*b = (struct bench){ .n = 0 };
	r = pl_dp_program_parse(&program, "s.yaml", text, strlen(text), &diag);
	(void)pl_dp_pool_new(&b->pool, PL_DP_HEADROOM + FRAME_MAX, OUT_MAX + 10);
	o.pool = b->pool;
	if (r == 0)
		r = pl_dp_program_build(&program, &o, NULL, &b->p, &diag);
	if (r < 0) {
		printf("Bail out! %s\n", diag.text);
		exit(1);
	}
	pl_dp_program_done(&program);
}

static void build(struct bench *b)
{
	build_of(b, program_text);
}

static void done(struct bench *b)
{
	const struct pl_dp_account *k = pl_dp_pipeline_account(b->p, PL_DP_INGRESS);
	uint64_t sum = k->out + k->consumed;

	for (unsigned int i = 0; i < PL_DP_DROP_MAX; i++)
		sum += k->dropped[i];
	eq(sum, k->in + k->made, "accounts agree");
	empty(b);
	pl_dp_pipeline_free(b->p);
	eq(pl_dp_pool_alive(b->pool), 0, "every packet came back");
	pl_dp_pool_free(b->pool);
}

struct cell {
	const char *name;
	uint64_t value;
};

static void match_cell(void *arg, const char *name, uint32_t index, const uint64_t values[3])
{
	struct cell *c = arg;

	(void)index;
	if (strcmp(c->name, name) == 0)
		c->value = values[0];
}

static uint64_t counter(const struct bench *b, const char *name)
{
	struct cell c = { name, UINT64_MAX };

	pl_dp_pipeline_cells(b->p, PL_DP_COUNTERS, NULL, match_cell, &c, NULL);
	return c.value;
}

static void give(struct bench *b, const struct pl_build *frame, uint16_t port, uint64_t ns)
{
	struct pl_dp_packet *pkt = pl_dp_packet_of(b->pool, frame->data, (uint32_t)frame->len);

	pkt->in_port = port;
	pkt->in_ns = ns;
	pl_dp_pipeline_ingress(b->p, &pkt, 1);
}

/* Returns the only packet that came out; NULL with a failed test when there is not one. */
static struct pl_dp_packet *only(struct bench *b, const char *what)
{
	return ok(b->n == 1, "%s: one packet (%u)", what, b->n) ? b->out[0] : NULL;
}

static struct pl_addr addr(const char *text)
{
	struct pl_addr a = { .b = { 0 } };

	(void)pl_parse_addr(text, &a);
	return a;
}

static void put_macs(struct pl_build *b, const uint8_t *to)
{
	pl_patch(b, 0, to, 6);
	pl_patch(b, 6, host_mac, 6);
}

struct want {
	const char *src, *dst;
	uint8_t proto, ttl, type, code;
	uint16_t vlan;
	size_t payload;
};

/* Makes a frame to the MAC address of port 1. */
static struct pl_build make(uint8_t bytes[FRAME_MAX], const struct want *w)
{
	const struct pl_flow f = { .src = addr(w->src),
		.dst = addr(w->dst),
		.proto = w->proto,
		.sport = w->type,
		.dport = w->code };
	struct pl_build b = pl_build(bytes, FRAME_MAX);
	size_t at;

	pl_put_eth(&b, pl_addr_is_v4(&f.dst) ? PL_ETH_IPV4 : PL_ETH_IPV6, w->vlan);
	put_macs(&b, port_mac);
	at = pl_put_ip(&b, &f, w->ttl, 0);
	for (size_t i = 0; i < w->payload; i++)
		pl_put_u8(&b, (uint8_t)(i * 7));
	pl_end_ip(&b, at);
	return b;
}

/* Returns true when the checksums of IP and its payload are correct. */
static bool sums_right(const struct pl_dp_packet *pkt, uint32_t link)
{
	const uint8_t *ip = pkt->data + link;
	const bool v4 = ip[0] >> 4 == 4;
	const uint32_t header = v4 ? 20 : 40,
		       bytes = v4 ? pl_be16(ip + 2) - 20u : (uint32_t)pl_be16(ip + 4);
	uint32_t sum = v4 ? 0 : pl_checksum_add(58 + bytes, ip + 8, 32);

	if (link + header + bytes > pkt->len)
		return false;
	if (v4 && pl_checksum_fold(pl_checksum_add(0, ip, 20)) != 0)
		return false;
	return pl_checksum_fold(pl_checksum_add(sum, ip + header, bytes)) == 0;
}

/* ---- ARP ---- */

static struct pl_build make_arp(uint8_t bytes[FRAME_MAX], const uint8_t *to, uint8_t last)
{
	static const uint8_t head[] = { 8, 6, 0, 1, 8, 0, 6, 4, 0, 1 };
	struct pl_build b = pl_build(bytes, FRAME_MAX);

	pl_put(&b, to, 6);
	pl_put(&b, host_mac, 6);
	pl_put(&b, head, sizeof(head));
	pl_put(&b, host_mac, 6);
	pl_put(&b, (const uint8_t[]){ 10, 0, 1, 2 }, 4);
	pl_put_zero(&b, 6);
	pl_put(&b, (const uint8_t[]){ 10, 0, 1, last }, 4);
	pl_put_zero(&b, 18);
	return b;
}

static void test_arp(void)
{
	static const uint8_t answer[] = { 2, 0, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0,
		6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 1, 1, 2, 0, 0, 0, 0, 0x11, 10, 0, 1, 2 };
	uint8_t bytes[FRAME_MAX];
	struct pl_dp_packet *pkt;
	struct pl_build f = make_arp(bytes, broadcast, 1);
	struct bench b;

	build(&b);
	give(&b, &f, 1, NOW);
	pkt = only(&b, "ARP request");
	if (pkt != NULL) {
		eq(pkt->out_port, 1, "the answer goes back");
		eq(pkt->len, 60);
		memeq(pkt->data, answer, sizeof(answer), "RFC 826's answer");
	}
	empty(&b);
	give(&b, &f, 2, NOW);
	eq(b.n, 2, "at the other port, which has not the address, it is a broadcast as any");
	empty(&b);
	f = make_arp(bytes, broadcast, 3);
	give(&b, &f, 1, NOW);
	eq(b.n, 2, "one for another host too");
	empty(&b);
	f = make_arp(bytes, port_mac, 1);
	give(&b, &f, 1, NOW);
	(void)only(&b, "a unicast request");
	empty(&b);
	f.len = 30;
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "one that is cut is not answered");
	eq(counter(&b, "own.arp"), 2);
	done(&b);
}

/* ---- neighbour discovery ---- */

static struct pl_build make_solicitation(
	uint8_t bytes[FRAME_MAX], const char *src, const char *target, uint8_t ttl)
{
	static const uint8_t group[6] = { 0x33, 0x33, 0xff, 0, 0, 1 };
	struct pl_flow f = {
		.src = addr(src), .dst = addr("ff02::1:ff00:1"), .proto = PL_IP_ICMPV6, .sport = 135
	};
	struct pl_build b = pl_build(bytes, FRAME_MAX);
	struct pl_addr t = addr(target);
	size_t at;

	pl_put_eth(&b, PL_ETH_IPV6, 0);
	put_macs(&b, group);
	at = pl_put_ip(&b, &f, ttl, 0);
	pl_put(&b, t.b, 16);
	if (!pl_addr_is_unspecified(&f.src)) {
		pl_put(&b, (const uint8_t[]){ 1, 1 }, 2);
		pl_put(&b, host_mac, 6);
	}
	pl_end_ip(&b, at);
	return b;
}

/* Changes the destination of an IPv6 packet, and the checksum of ICMPv6. */
static void to_address(struct pl_build *f, const char *to)
{
	const struct pl_addr dst = addr(to);
	const size_t bytes = f->len - 14 - 40;
	uint32_t sum = 58 + (uint32_t)bytes;

	pl_patch(f, 14 + 24, dst.b, 16);
	pl_patch_be16(f, 14 + 42, 0);
	sum = pl_checksum_add(sum, f->data + 14 + 8, 32);
	pl_patch_be16(f, 14 + 42, pl_checksum_fold(pl_checksum_add(sum, f->data + 54, bytes)));
}

/* Makes the packet a single fragment. */
static void put_fragment_header(struct pl_build *f)
{
	const size_t bytes = f->len - 54;

	pl_put_zero(f, 8);
	memmove(f->data + 62, f->data + 54, bytes);
	memset(f->data + 54, 0, 8);
	f->data[54] = PL_IP_ICMPV6;
	f->data[14 + 6] = PL_IP_FRAGMENT;
	pl_patch_be16(f, 14 + 4, (uint16_t)(bytes + 8));
}

static void check_advertisement(const struct pl_dp_packet *pkt, const char *to, uint8_t flags)
{
	const struct pl_addr us = addr("fd00:1::1"), dst = addr(to);
	const uint8_t *ip = pkt->data + 14;

	eq(pkt->len, 14 + 40 + 32);
	eq(ip[7], 255, "hop limit 255");
	memeq(ip + 8, us.b, 16, "from the address asked for");
	memeq(ip + 24, dst.b, 16, "to who asked");
	eq(ip[40], 136);
	eq(ip[44], flags, "R, S and O");
	memeq(ip + 48, us.b, 16, "target");
	memeq(ip + 64, ((const uint8_t[]){ 2, 1, 2, 0, 0, 0, 0, 1 }), 8, "its MAC address");
	ok(sums_right(pkt, 14), "checksum");
}

static void test_solicitation(void)
{
	uint8_t bytes[FRAME_MAX];
	struct pl_build f = make_solicitation(bytes, "fd00:1::2", "fd00:1::1", 255);
	struct pl_dp_packet *pkt;
	struct bench b;

	build(&b);
	give(&b, &f, 1, NOW);
	pkt = only(&b, "solicitation");
	if (pkt != NULL) {
		check_advertisement(pkt, "fd00:1::2", 0xe0);
		memeq(pkt->data, host_mac, 6, "to its MAC address");
	}
	empty(&b);
	f = make_solicitation(bytes, "::", "fd00:1::1", 255);
	give(&b, &f, 1, NOW);
	pkt = only(&b, "search for duplicates");
	if (pkt != NULL) {
		check_advertisement(pkt, "ff02::1", 0xa0);
		memeq(pkt->data, ((const uint8_t[]){ 0x33, 0x33, 0, 0, 0, 1 }), 6, "to all nodes");
	}
	empty(&b);
	f = make_solicitation(bytes, "fd00:1::2", "fd00:1::1", 254);
	give(&b, &f, 1, NOW);
	f = make_solicitation(bytes, "fd00:1::2", "fd00:1::9", 255);
	give(&b, &f, 1, NOW);
	f = make_solicitation(bytes, "fd00:1::2", "fd00:1::1", 255);
	give(&b, &f, 2, NOW);
	bytes[14 + 42] ^= 1; /* checksum */
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "routed, for others, at another port or damaged: no answer");
	f = make_solicitation(bytes, "fd00:1::2", "::ffff:10.0.1.1", 255);
	give(&b, &f, 1, NOW);
	f = make_solicitation(bytes, "ff02::5", "fd00:1::1", 255);
	give(&b, &f, 1, NOW);
	f = make_solicitation(bytes, "::1", "fd00:1::1", 255);
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "for an IPv4 address, or from what is no host: no answer");
	empty(&b);
	f = make_solicitation(bytes, "::", "fd00:1::1", 255);
	to_address(&f, "fd00:1::1");
	memcpy(bytes, port_mac, 6);
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "a search for duplicates that is not for a group: no answer");
	empty(&b);
	f = make_solicitation(bytes, "fd00:1::2", "fd00:1::1", 255);
	put_fragment_header(&f);
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "a fragment (RFC 6980): no answer");
	empty(&b);
	eq(counter(&b, "own.nd"), 2);
	done(&b);
}

/* ---- echo ---- */

/* Inserts a loose source route (RFC 791 3.1) into an IPv4 header. */
static void put_source_route(struct pl_build *f)
{
	static const uint8_t option[8] = { 131, 7, 4, 10, 0, 2, 2, 0 };
	const size_t bytes = f->len - 34;

	pl_put_zero(f, 8);
	memmove(f->data + 42, f->data + 34, bytes);
	memcpy(f->data + 34, option, sizeof(option));
	f->data[14] = 0x47;
	pl_patch_be16(f, 16, (uint16_t)(28 + bytes));
	pl_patch_be16(f, 24, 0);
	pl_patch_be16(f, 24, pl_checksum_fold(pl_checksum_add(0, f->data + 14, 28)));
}

static void test_echo(void)
{
	const struct want asks[] = {
		{ "10.0.1.2", "10.0.1.1", PL_IP_ICMP, 64, 8, 0, 0, 56 },
		{ "10.9.9.9", "10.0.2.1", PL_IP_ICMP, 1, 8, 0, 7, 1 },
		{ "fd00:1::2", "fd00:1::1", PL_IP_ICMPV6, 64, 128, 0, 0, 56 },
		{ "fd00:1::2", "fd00:1::1", PL_IP_ICMPV6, 1, 128, 0, 9, 1200 },
	};
	uint8_t bytes[FRAME_MAX];
	struct pl_dp_packet *pkt;
	struct pl_build f;
	struct bench b;

	build(&b);
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		const bool v4 = asks[i].proto == PL_IP_ICMP;
		const uint32_t link = asks[i].vlan != 0 ? 18 : 14, at = link + (v4 ? 20 : 40),
			       n = v4 ? 4 : 16, src = link + (v4 ? 12 : 8);

		f = make(bytes, &asks[i]);
		give(&b, &f, 1, NOW);
		pkt = only(&b, "echo");
		if (pkt == NULL)
			continue;
		eq(pkt->len, f.len, "as long as it came");
		eq(pkt->data[at], v4 ? 0 : 129, "a reply");
		eq(pkt->data[link + (v4 ? 8 : 7)], 64, "TTL anew");
		memeq(pkt->data, host_mac, 6);
		memeq(pkt->data + 6, port_mac, 6);
		memeq(pkt->data + src, bytes + src + n, n, "from the address asked");
		memeq(pkt->data + src + n, bytes + src, n);
		memeq(pkt->data + at + 4, bytes + at + 4, f.len - at - 4, "with what it brought");
		ok(sums_right(pkt, link), "checksums");
		empty(&b);
	}
	eq(counter(&b, "own.echo"), 4);
	f = make(bytes, &asks[0]);
	memset(bytes, 2, 6);
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "to another station's MAC address: not ours to answer");
	f = make(bytes, &(struct want){ "10.0.2.1", "10.0.1.1", PL_IP_ICMP, 64, 8, 0, 0, 56 });
	give(&b, &f, 1, NOW);
	f = make(bytes, &asks[2]);
	memcpy(bytes + 22, (const uint8_t[13]){ [10] = 0xff, [11] = 0xff, [12] = 10 }, 13);
	give(&b, &f, 1, NOW);
	f = make(bytes, &asks[2]);
	memcpy(bytes + 38, addr("10.0.1.1").b, 16);
	give(&b, &f, 1, NOW);
	eq(counter(&b, "own.echo"), 4,
		"from an address of the node, from or to an IPv4 address by IPv6: none");
	empty(&b);
	f = make(bytes, &asks[0]);
	put_source_route(&f);
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "with a source route, which would have to be turned round: none");
	done(&b);
}

/* ---- errors ---- */

/* Checks an error's type, code and next word, and that it quotes the packet as received. */
static void check_error(struct bench *b, const struct pl_build *f, const char *what, uint8_t type,
	uint8_t code, uint32_t word)
{
	const struct pl_dp_packet *pkt = only(b, what);
	const bool v4 = f->data[14] >> 4 == 4;
	const uint32_t at = v4 ? 34 : 54, max = v4 ? 576 - 28 : 1280 - 48;
	const struct pl_addr us = addr(v4 ? "10.0.1.1" : "fd00:1::1");
	uint32_t inside = (uint32_t)f->len - 14;

	if (pkt == NULL)
		return;
	inside = inside < max ? inside : max;
	eq(pkt->len, at + 8 + inside, "%s: as much as fits", what);
	eq(pkt->data[at] << 8 | pkt->data[at + 1], type << 8 | code, "%s: type and code", what);
	eq(pl_be32(pkt->data + at + 4), word, "%s: word", what);
	eq(pkt->out_port, 1, "%s: goes back", what);
	memeq(pkt->data, host_mac, 6);
	memeq(pkt->data + (v4 ? 26 : 22), v4 ? us.b + 12 : us.b, v4 ? 4 : 16, "%s: from us", what);
	memeq(pkt->data + (v4 ? 30 : 38), f->data + (v4 ? 26 : 22), v4 ? 4 : 16);
	memeq(pkt->data + at + 8, f->data + 14, inside, "%s: with the packet as it came", what);
	ok(sums_right(pkt, 14), "%s: checksums", what);
	empty(b);
}

static void test_errors(void)
{
	static const struct {
		struct want w;
		uint8_t type, code;
		uint32_t word;
		const char *what;
	} cases[] = {
		{ { "10.0.1.2", "10.0.2.2", PL_IP_UDP, 1, 0, 0, 0, 20 }, 11, 0, 0, "TTL" },
		{ { "10.0.1.2", "10.0.2.2", PL_IP_ICMP, 1, 8, 0, 0, 1400 }, 11, 0, 0, "ping, TTL" },
		{ { "fd00:1::2", "fd00:2::2", PL_IP_UDP, 1, 0, 0, 0, 20 }, 3, 0, 0, "hop limit" },
		{ { "10.0.1.2", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 1400 }, 3, 4, 1000, "MTU" },
		{ { "fd00:1::2", "fd00:2::2", PL_IP_UDP, 9, 0, 0, 0, 1400 }, 2, 0, 1000,
			"IPv6, MTU" },
		{ { "10.0.1.2", "10.7.0.1", PL_IP_UDP, 9, 0, 0, 0, 20 }, 3, 0, 0, "no route" },
		{ { "fd00:1::2", "fd00:7::1", PL_IP_TCP, 9, 0, 0, 0, 20 }, 1, 0, 0,
			"IPv6, no route" },
		{ { "10.0.1.2", "10.0.1.1", PL_IP_UDP, 9, 0, 0, 0, 20 }, 3, 3, 0, "no listener" },
		{ { "fd00:1::2", "fd00:1::1", PL_IP_UDP, 1, 0, 0, 0, 20 }, 1, 4, 0,
			"IPv6, no listener" },
	};
	static const struct want silent[] = {
		{ "10.0.1.2", "10.0.2.2", PL_IP_ICMP, 1, 11, 0, 0, 20 },
		{ "fd00:1::2", "fd00:2::2", PL_IP_ICMPV6, 1, 1, 0, 0, 20 },
		{ "127.0.0.1", "10.0.2.2", PL_IP_UDP, 1, 0, 0, 0, 20 },
		{ "224.0.0.5", "10.0.2.2", PL_IP_UDP, 1, 0, 0, 0, 20 },
		{ "10.0.1.2", "224.0.0.9", PL_IP_UDP, 1, 0, 0, 0, 20 },
		{ "10.0.1.1", "10.0.2.2", PL_IP_UDP, 1, 0, 0, 0, 20 },
	};
	uint8_t bytes[FRAME_MAX];
	struct pl_build f;
	struct bench b;

	build(&b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		f = make(bytes, &cases[i].w);
		give(&b, &f, 1, NOW + i * SECOND);
		check_error(&b, &f, cases[i].what, cases[i].type, cases[i].code, cases[i].word);
	}
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		f = make(bytes, &silent[i]);
		give(&b, &f, 1, NOW + (20 + i) * SECOND);
		eq(b.n, 0, "%s to %s: no error", silent[i].src, silent[i].dst);
	}
	eq(counter(&b, "own.refused"), 6);
	f = make(bytes, &cases[0].w);
	memcpy(bytes, (const uint8_t[]){ 2, 0, 0, 0, 0, 9 }, 6);
	give(&b, &f, 1, NOW + 30 * SECOND);
	eq(b.n, 0, "of a frame to another station: none");
	eq(counter(&b, "own.time_exceeded"), 3);
	eq(counter(&b, "own.too_big"), 2);
	eq(counter(&b, "own.unreachable"), 4);
	done(&b);
}

/* An error is sent in the VLAN of the received packet, even if tables changed that. */
static void test_vlan_of_error(void)
{
	static const char text[] =
		"ports:\n"
		"  - { number: 1, uri: \"packet:a\", mac: \"02:00:00:00:00:01\","
		" addresses: [ 10.0.1.1 ] }\n"
		"  - { number: 2, uri: \"packet:b\", mtu: 100 }\n"
		"tables:\n"
		"  - name: routes\n    key: [ vlan.id exact ]\n    entries:\n"
		"      - vlan.id=10 -> pop_vlan; push_vlan 20; route 2 02:00:00:00:00:22\n"
		"      - vlan.id=11 -> pop_vlan; route 2 02:00:00:00:00:22\n"
		"      - vlan.id=0 -> push_vlan 20; route 2 02:00:00:00:00:22\n";
	static const uint16_t vlans[] = { 0, 10, 11 };
	struct bench b;

	build_of(&b, text);
	for (size_t i = 0; i < 3; i++) {
		const struct want w = { "10.0.1.2", "10.0.2.2", PL_IP_UDP, 9, 0, 0, vlans[i], 200 };
		const uint32_t link = vlans[i] != 0 ? 18 : 14;
		uint8_t bytes[FRAME_MAX];
		const struct pl_build f = make(bytes, &w);
		const struct pl_dp_packet *pkt;

		give(&b, &f, 1, NOW);
		pkt = only(&b, "an error of a VLAN");
		if (pkt != NULL) {
			memeq(pkt->data + 12, bytes + 12, link - 12, "VLAN %u", vlans[i]);
			ok(sums_right(pkt, link), "checksums");
		}
		empty(&b);
	}
	done(&b);
}

/* An error quotes a packet without the changes that actions made before it was dropped. */
static void test_quote(void)
{
	static const char text[] =
		"ports:\n"
		"  - { number: 1, uri: \"packet:a\", mac: \"02:00:00:00:00:01\","
		" addresses: [ 10.0.1.1, \"fd00:1::1\" ] }\n"
		"  - { number: 2, uri: \"packet:b\", mtu: 100 }\n"
		"tables:\n"
		"  - name: change\n    key: [ ip.version exact ]\n    entries:\n"
		"      - ip.version=4 -> set ip.src 10.9.9.9; set ip.dst 10.0.2.9; set ip.dscp 7;"
		" set l4.src 77; set l4.dst 78; route 2 02:00:00:00:00:22\n"
		"      - ip.version=6 -> set ip.src fd00:9::9; set ip.dscp 7; set l4.dst 78;"
		" push_vlan 20; route 2 02:00:00:00:00:22\n";
	static const struct want sent[] = {
		{ "10.0.1.2", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 80 },
		{ "10.0.1.2", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 300 },
		{ "10.0.1.2", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 1400 },
		{ "fd00:1::2", "fd00:2::2", PL_IP_UDP, 9, 0, 0, 0, 300 },
		{ "fd00:1::2", "fd00:2::2", PL_IP_UDP, 9, 0, 0, 0, 1400 },
	};
	/* No error for invalid sources and groups, even if actions write other addresses. */
	static const struct want silent[] = {
		{ "0.0.0.0", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 300 },
		{ "224.0.0.5", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 300 },
		{ "127.0.0.1", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 300 },
		{ "10.0.1.1", "10.0.2.2", PL_IP_UDP, 9, 0, 0, 0, 300 },
		{ "10.0.1.2", "224.0.0.9", PL_IP_UDP, 9, 0, 0, 0, 300 },
		{ "ff02::5", "fd00:2::2", PL_IP_UDP, 9, 0, 0, 0, 1400 },
	};
	struct bench b;

	build_of(&b, text);
	for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		uint8_t bytes[FRAME_MAX];
		const struct pl_build f = make(bytes, &silent[i]);

		give(&b, &f, 1, NOW);
		eq(b.n, 0, "%s to %s, written anew: no error", silent[i].src, silent[i].dst);
		empty(&b);
	}
	eq(counter(&b, "own.refused"), sizeof(silent) / sizeof(silent[0]));
	for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
		const bool v4 = strchr(sent[i].src, ':') == NULL;
		uint8_t bytes[FRAME_MAX];
		const struct pl_build f = make(bytes, &sent[i]);

		give(&b, &f, 1, NOW);
		check_error(&b, &f, sent[i].src, v4 ? 3 : 2, v4 ? 4 : 0, 100);
	}
	done(&b);
}

/* No errors for packets that may have none (RFC 1812 4.3.2.7, RFC 4443 2.4e). */
static void test_broken(void)
{
	static const struct want redirect = { "fd00:1::2", "fd00:2::2", PL_IP_ICMPV6, 1, 137, 0, 0,
		32 };
	static const struct want lost = { "10.0.1.2", "10.7.0.1", PL_IP_UDP, 9, 0, 0, 0, 20 };
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const struct want six[] = {
		{ "fd00:1::2", "fd00:2::2", PL_IP_UDP, 1, 0, 0, 0, 20 },
		{ "fd00:1::2", "fd00:2::2", PL_IP_UDP, 9, 0, 0, 0, 1400 },
	};
	uint8_t bytes[FRAME_MAX];
	struct pl_build f = make(bytes, &redirect);
	struct bench b;

	build(&b);
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "a redirect: no error");
	empty(&b);
	f = make(bytes, &lost);
	bytes[14 + 10] ^= 1;
	give(&b, &f, 1, NOW + SECOND);
	eq(b.n, 0, "an IPv4 header with a wrong checksum: no error");
	empty(&b);
	for (unsigned int i = 0; i < 2; i++) {
		f = make(bytes, &six[i]);
		memcpy(bytes + 22, mapped, 12);
		bytes[34] = 10;
		give(&b, &f, 1, NOW + (2 + i) * SECOND);
		eq(b.n, 0, "IPv6 with an IPv4 address for a source: no error");
		empty(&b);
	}
	eq(counter(&b, "own.refused"), 4);
	f = make(bytes, &six[0]);
	memcpy(bytes + 38, addr("10.0.1.1").b, 16);
	give(&b, &f, 1, NOW + 9 * SECOND);
	for (unsigned int i = 0; i < b.n; i++)
		ok(sums_right(b.out[i], 14) && b.out[i]->data[14] >> 4 == 6,
			"IPv6 for an IPv4 address of the node: the refusal is worded right");
	done(&b);
}

static void test_rate(void)
{
	const struct want w = { "10.0.1.2", "10.0.2.2", PL_IP_UDP, 1, 0, 0, 0, 20 };
	uint8_t bytes[FRAME_MAX];
	struct pl_build f = make(bytes, &w);
	struct bench b;

	build(&b);
	for (unsigned int i = 0; i < 150; i++)
		give(&b, &f, 1, NOW);
	eq(b.n, 100, "as many errors at once as in a second");
	empty(&b);
	for (unsigned int i = 1; i <= 1000; i++)
		give(&b, &f, 1, NOW + i * SECOND / 1000);
	eq(b.n, 100, "and not more in the next one");
	eq(counter(&b, "own.held"), 150 + 1000 - 200);
	empty(&b);
	memcpy(bytes, (const uint8_t[]){ 2, 0, 0, 0, 0, 2 }, 6);
	give(&b, &f, 2, NOW);
	eq(b.n, 0, "icmp: 0 is none");
	memcpy(bytes, (const uint8_t[]){ 2, 0, 0, 0, 0, 3 }, 6);
	give(&b, &f, 3, NOW);
	eq(b.n, 1, "a port without addresses borrows one");
	done(&b);
	build_of(&b, "ports:\n"
		     "  - { number: 1, uri: \"packet:a\", mac: \"02:00:00:00:00:01\", icmp: 0 }\n"
		     "  - { number: 2, uri: \"packet:b\", addresses: [ 10.0.2.1 ] }\n");
	memcpy(bytes, port_mac, 6);
	give(&b, &f, 1, NOW);
	eq(b.n, 0, "icmp: 0 is none, also before the first port with an address");
	done(&b);
}

/* Packets sent are well-formed, whatever is received. */
static void test_hostile(void)
{
	uint8_t bytes[FRAME_MAX];
	struct pl_rng rng;
	struct bench b;
	int wrong = 0;
	unsigned int outs = 0;

	pl_rng_seed(&rng, 9);
	build(&b);
	for (unsigned int i = 0; i < 100000; i++) {
		static const struct want seeds[] = {
			{ "10.0.1.2", "10.0.1.1", PL_IP_ICMP, 64, 8, 0, 0, 20 },
			{ "fd00:1::2", "fd00:1::1", PL_IP_ICMPV6, 64, 128, 0, 0, 20 },
			{ "10.0.1.2", "10.0.2.2", PL_IP_UDP, 1, 0, 0, 0, 20 },
			{ "fd00:1::2", "fd00:2::2", PL_IP_TCP, 1, 0, 0, 0, 20 },
		};
		struct pl_build f = make(bytes, &seeds[i % 4]);

		if (i % 5 == 3)
			f = make_arp(bytes, broadcast, 1);
		else if (i % 5 == 4)
			f = make_solicitation(bytes, "fd00:1::2", "fd00:1::1", 255);
		for (uint64_t k = pl_rng_below(&rng, 4); k > 0; k--)
			bytes[pl_rng_below(&rng, f.len)] = (uint8_t)pl_rng_u64(&rng);
		f.len -= pl_rng_below(&rng, 4) == 0 ? pl_rng_below(&rng, f.len) : 0;
		give(&b, &f, (uint16_t)(1 + pl_rng_below(&rng, 3)), NOW + i * SECOND);
		for (unsigned int k = 0; k < b.n; k++) {
			struct pl_layers l;
			const enum pl_verdict v = pl_layers_walk(&l,
				pl_cursor(b.out[k]->data, b.out[k]->len), PL_LINK_ETHERNET, false);

			wrong += v != PL_V_OK && v != PL_V_ETHERTYPE_UNKNOWN;
			outs++;
		}
		empty(&b);
	}
	eq(wrong, 0, "no packet of %u is malformed", outs);
	ok(outs > 10000, "many were answered");
	done(&b);
}

int main(void)
{
	test_arp();
	test_solicitation();
	test_echo();
	test_errors();
	test_vlan_of_error();
	test_quote();
	test_broken();
	test_rate();
	test_hostile();
	return pl_test_done();
}
