/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that stand for several packets on the wire: the record of each. */
#include "tap/tap.h"

#include "base/num.h"
#include "base/test.h"
#include "record/flow_hash.h"
#include "wire/layers.h"

#define SEQ      0xfffff000u /* wraps within the frames below */
#define HEAD_MAX 200

static uint8_t frame[HEAD_MAX];
static struct pl_build b;
static struct pl_batch batch;
static struct pl_tap tap;
static struct pl_pkt96 records[PL_BATCH_MAX];

static struct pl_flow flow(bool v6, uint8_t proto)
{
	struct pl_flow f = { .sport = 1000, .dport = 443, .proto = proto, .have = PL_FLOW_PORTS };

	(void)pl_parse_addr(v6 ? "2001:db8::1" : "10.0.0.1", &f.src);
	(void)pl_parse_addr(v6 ? "2001:db8::2" : "10.0.0.2", &f.dst);
	return f;
}

/* The head of a frame whose payload is not there; the length is in its IP header. Returns where that
 * begins. */
static size_t put_head(bool v6, uint8_t proto, uint16_t vlan, unsigned int words, uint32_t payload)
{
	const struct pl_flow f = flow(v6, proto);
	size_t ip, transport;
	uint32_t bytes;

	memset(frame, 0, sizeof(frame));
	b = pl_build(frame, sizeof(frame));
	pl_put_eth(&b, v6 ? PL_ETH_IPV6 : PL_ETH_IPV4, vlan);
	ip = b.len;
	(void)pl_put_ip(&b, &f, 64, words);
	transport = ip + (v6 ? 40 : 20);
	bytes = (uint32_t)(b.len - transport) + payload;
	pl_patch_be16(&b, ip + (v6 ? 4 : 2), (uint16_t)(v6 ? bytes : bytes + 20));
	if (!v6)
		pl_patch_be16(&b, ip + 4, 0xfffe);
	if (proto == PL_IP_UDP)
		pl_patch_be16(&b, transport + 4, (uint16_t)bytes);
	if (proto == PL_IP_TCP) {
		pl_patch_be32(&b, transport + 4, SEQ);
		/* CWR, ACK, PSH, FIN */
		pl_patch_u8(&b, transport + 13, 0x99);
	}
	return ip;
}

static void offer(enum pl_gso gso, uint16_t gso_size, uint32_t payload)
{
	memset(&tap, 0, sizeof(tap));
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = frame,
		.len = (uint32_t)b.len,
		.wire_len = (uint32_t)b.len + payload,
		.ts_ns = 77,
		.link = PL_LINK_ETHERNET,
		.gso = (uint8_t)gso,
		.gso_size = gso_size };
}

static const struct {
	const char *name;
	bool v6;
	uint8_t proto;
	uint16_t vlan;
	unsigned int words; /* of TCP options */
	uint32_t payload;
	uint16_t each;
	uint32_t n, last; /* packets, and bytes of the last one's payload */
} frames[] = {
	{ "TCP", false, PL_IP_TCP, 0, 0, 3000, 1460, 3, 80 },
	{ "TCP with timestamps", false, PL_IP_TCP, 0, 3, 14480, 1448, 10, 1448 },
	{ "TCP with a VLAN tag", false, PL_IP_TCP, 7, 3, 1449, 1448, 2, 1 },
	{ "TCP over IPv6", true, PL_IP_TCP, 0, 3, 60000, 1428, 43, 24 },
	{ "TCP, no longer than one", false, PL_IP_TCP, 0, 3, 1448, 1448, 1, 1448 },
	{ "TCP, shorter than one", true, PL_IP_TCP, 0, 0, 5, 1448, 1, 5 },
	{ "TCP without data", false, PL_IP_TCP, 0, 0, 0, 1448, 1, 0 },
	{ "UDP", false, PL_IP_UDP, 0, 0, 2500, 1000, 3, 500 },
	{ "UDP over IPv6", true, PL_IP_UDP, 9, 0, 65000, 1232, 53, 936 },
	{ "UDP, full to the last", true, PL_IP_UDP, 0, 0, 2000, 1000, 2, 1000 },
};

static void check_frame(size_t k)
{
	const bool tcp = frames[k].proto == PL_IP_TCP;
	const uint32_t headers = (frames[k].v6 ? 40 : 20) + (tcp ? 20 + frames[k].words * 4 : 8);
	uint32_t wrong = 0, n;

	(void)put_head(
		frames[k].v6, frames[k].proto, frames[k].vlan, frames[k].words, frames[k].payload);
	offer(tcp ? PL_GSO_TCP : PL_GSO_UDP, frames[k].each, frames[k].payload);
	n = pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX);
	eq(n, frames[k].n, "%s: packets on the wire", frames[k].name);
	ok(!tap.more, "%s: all of them", frames[k].name);
	for (uint32_t i = 0; i < n; i++) {
		const struct pl_pkt96 *r = &records[i];
		const bool last = i + 1 == n;
		const uint32_t bytes = last ? frames[k].last : frames[k].each;
		const uint8_t flags = (uint8_t)(0x10 | (i == 0 ? 0x80 : 0) | (last ? 0x09 : 0));

		wrong += r->pay_len != bytes || r->wire_len != headers + bytes ||
			 r->tcp_seq != (tcp ? SEQ + i * frames[k].each : 0) ||
			 r->tcp_flags != (tcp ? flags : 0) ||
			 r->ip_id != (frames[k].v6 ? 0 : (uint16_t)(0xfffe + i)) ||
			 r->ts_ns != 77 || r->record_seq != i || r->dport != 443 ||
			 r->vlan != frames[k].vlan || r->flow_hash != pl_flow_hash_packet(r);
	}
	eq(wrong, 0, "%s: values of each", frames[k].name);
	eq(tap.stats.packets, n, "%s: counted", frames[k].name);
	eq(tap.stats.records, n);
	eq(tap.stats.joined, 0);
}

/* A frame of a hostile guest: as many packets as bytes, over as many calls as that takes. */
static void test_one_byte_each(void)
{
	uint64_t bytes = 0, made = 0, wrong = 0;

	(void)put_head(false, PL_IP_TCP, 0, 0, 65495);
	offer(PL_GSO_TCP, 1, 65495);
	do {
		const uint32_t n = pl_tap_batch(&tap, &batch, records, 100);

		for (uint32_t i = 0; i < n; i++) {
			bytes += records[i].pay_len;
			wrong += records[i].tcp_seq != (uint32_t)(SEQ + made++);
		}
	} while (tap.more);
	eq(made, 65495, "a packet for each byte");
	eq(bytes, 65495);
	eq(wrong, 0);
	eq(tap.stats.packets, 65495);
	/* The batch is over: the next one begins at its beginning. */
	eq(pl_tap_batch(&tap, &batch, records, 7), 7);
	eq(records[0].tcp_seq, SEQ);
}

/* The frame is in the middle of a batch, and room ends within it. */
static void test_among_others(void)
{
	uint32_t n = 0, calls = 0;

	(void)put_head(false, PL_IP_TCP, 0, 0, 14600);
	offer(PL_GSO_TCP, 1460, 14600);
	batch.n = 3;
	batch.pkts[1] = batch.pkts[2] = batch.pkts[0];
	batch.pkts[0].gso = batch.pkts[2].gso = PL_GSO_NONE;
	do {
		n += pl_tap_batch(&tap, &batch, records + n, 5);
		calls++;
	} while (tap.more);
	eq(n, 12, "one, ten and one");
	eq(calls, 3);
	eq(records[0].pay_len, 14600);
	eq(records[1].pay_len, 1460);
	eq(records[11].pay_len, 14600);
	eq(records[11].record_seq, 11);
}

/* Rules are asked about every packet. */
static void test_rules(void)
{
	uint32_t n;

	(void)put_head(false, PL_IP_TCP, 0, 0, 14500);
	offer(PL_GSO_TCP, 1000, 14500);
	(void)pl_tap_rules_add(&tap.rules, "take flags=1/1 payload=500", NULL);
	(void)pl_tap_rules_add(&tap.rules, "mark sample=5", NULL);
	n = pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX);
	eq(n, 4, "one in five of fourteen, and the last one");
	eq(records[1].tcp_seq, SEQ + 5000);
	eq(records[1].obs, PL_OBS_RULE | PL_OBS_SAMPLED);
	eq(records[1].mss, 5, "for how many it stands");
	eq(records[3].mss, 0);
	eq(records[3].tcp_seq, SEQ + 14000);
	eq(records[3].obs, 0, "what one packet's rule says is not said of others");
	eq(tap.stats.packets, 15);
	eq(tap.stats.not_sampled, 11);
}

/* Each message has its record, as far as the copy of the frame goes. */
static void test_dns(void)
{
	static const uint8_t query[29] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 7, 'e', 'x',
		'a', 'm', 'p', 'l', 'e', 3, 'o', 'r', 'g', 0, 0, 1, 0, 1 };
	static struct pl_dns64 dns[PL_BATCH_MAX];
	const size_t ip = put_head(false, PL_IP_UDP, 0, 0, 4 * sizeof(query));

	pl_patch_be16(&b, ip + 22, 53);
	pl_put(&b, query, sizeof(query));
	pl_put(&b, query, sizeof(query));
	pl_put(&b, query, 20);
	offer(PL_GSO_UDP, sizeof(query), 4 * sizeof(query) - 78);
	tap.dns = dns;
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 4);
	eq(tap.n_dns, 2, "two are whole");
	eq(dns[1].name_len, 13);
	eq(tap.stats.dns_broken, 2, "of the others the copy has a part, and nothing");
}

/* The TCP inside a tunnel was joined: the outer packets have the sizes of its segments with their
 * headers. */
static void test_tunnel(void)
{
	const struct pl_flow outer = { .src = flow(false, 0).src,
		.dst = flow(false, 0).dst,
		.proto = PL_IP_UDP,
		.sport = 5555,
		.dport = PL_PORT_VXLAN,
		.have = PL_FLOW_PORTS };
	const struct pl_flow inner = flow(true, PL_IP_TCP);
	const uint32_t payload = 4000, around = 8 + 8 + 14 + 40 + 20;
	size_t at, in;

	memset(frame, 0, sizeof(frame));
	b = pl_build(frame, sizeof(frame));
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	at = b.len;
	(void)pl_put_ip(&b, &outer, 64, 0);
	pl_put_vxlan(&b, 5);
	pl_put_eth(&b, PL_ETH_IPV6, 0);
	in = b.len;
	(void)pl_put_ip(&b, &inner, 64, 0);
	pl_patch_be16(&b, at + 2, (uint16_t)(20 + around + payload));
	pl_patch_be16(&b, at + 24, (uint16_t)(around + payload));
	pl_patch_be16(&b, in + 4, (uint16_t)(20 + payload));
	pl_patch_be32(&b, in + 44, SEQ);
	offer(PL_GSO_TCP, 1300, payload);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 4, "outer packets");
	eq(records[0].dport, PL_PORT_VXLAN);
	eq(records[0].wire_len, 20 + around + 1300);
	eq(records[0].pay_len, around - 8 + 1300);
	eq(records[3].wire_len, 20 + around + 100);
	eq(records[3].ip_id, (uint16_t)(records[0].ip_id + 3));
	eq(records[3].tcp_seq, 0);
	offer(PL_GSO_TCP, 1300, payload);
	tap.inner = true;
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 4, "inner packets");
	eq(records[1].wire_len, 60 + 1300);
	eq(records[1].tcp_seq, SEQ + 1300);
	eq(records[3].pay_len, 100);
	/* Without its tunnel's port nobody knows what is within. */
	pl_patch_be16(&b, at + 22, 4999);
	offer(PL_GSO_TCP, 1300, payload);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 1);
	eq(records[0].wire_len, 20 + around + payload);
	eq(tap.stats.joined, 1, "left whole, and counted");
}

/* Frames too long for the length in their headers, which is 0 (BIG TCP). */
static void test_big(void)
{
	size_t ip;
	uint8_t *p;

	for (int form = 0; form < 3; form++) {
		const bool v6 = form > 0;

		ip = put_head(v6, PL_IP_TCP, 3, 3, 0);
		pl_patch_be16(&b, ip + (v6 ? 4 : 2), 0);
		if (form == 2) {
			/* Linux before 7.0: Hop-by-Hop options with the length. */
			p = frame + ip + 40;
			memmove(p + 8, p, b.len - ip - 40);
			memcpy(p, "\6\0\xc2\4\0\2\0\0", 8);
			frame[ip + 6] = 0;
			b.len += 8;
		}
		offer(PL_GSO_TCP, 1448, 144801);
		eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 101, "form %d", form);
		eq(records[0].wire_len, (v6 ? 40 : 20) + 32 + 1448);
		eq(records[0].tcp_opts, 1 << 1);
		eq(records[0].vlan, 3);
		eq(records[100].pay_len, 1);
		eq(records[100].tcp_seq, (uint32_t)(SEQ + 144800));
		eq(records[100].tcp_flags, 0x19);
		/* The same frame, when it is not joined, is still an error. */
		offer(PL_GSO_NONE, 0, 144801);
		(void)pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX);
		ok(tap.stats.broken == 1 || (records[0].obs & PL_OBS_TRUNCATED) != 0,
			"form %d: not of a frame that is one packet", form);
	}
}

/* Frames of which is not known what they stand for. */
static void test_untold(void)
{
	const size_t ip = put_head(false, PL_IP_TCP, 0, 0, 9216 - 40);

	offer(PL_GSO_UNTOLD, 0, 9216 - 40);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 1);
	eq(tap.stats.joined, 0, "a jumbo frame");
	pl_patch_be16(&b, ip + 2, 9217);
	offer(PL_GSO_UNTOLD, 0, 9217 - 40);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 1);
	eq(records[0].wire_len, 9217);
	eq(tap.stats.joined, 1, "of a capture, longer than a packet");
	offer(PL_GSO_NONE, 0, 9217 - 40);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 1);
	eq(tap.stats.joined, 0, "the port says that it is one");
	offer(PL_GSO_OTHER, 1000, 9217 - 40);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 1);
	eq(tap.stats.joined, 1, "of a kind that is not known");
	offer(PL_GSO_UDP, 1000, 9217 - 40);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 1);
	eq(tap.stats.joined, 1, "UDP that is not there");
	offer(PL_GSO_TCP, 0, 9217 - 40);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 1);
	eq(tap.stats.joined, 1, "without a size");
	frame[12] = 0x88;
	frame[13] = 0xcc;
	offer(PL_GSO_TCP, 1000, 9217 - 40);
	eq(pl_tap_batch(&tap, &batch, records, PL_BATCH_MAX), 0);
	eq(tap.stats.not_ip, 1);
	eq(tap.stats.joined, 1, "not IP");
}

int main(void)
{
	for (size_t k = 0; k < sizeof(frames) / sizeof(frames[0]); k++)
		check_frame(k);
	test_one_byte_each();
	test_among_others();
	test_rules();
	test_dns();
	test_tunnel();
	test_big();
	test_untold();
	return pl_test_done();
}
