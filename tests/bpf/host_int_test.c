/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * INT at hosts, the lines that kernel and user space share, over random packets: what a source adds
 * is read by wire/int, every checksum is right when all bytes are added up anew, and a sink gives
 * the packet back, also behind switches that added to it. Damaged and cut packets are refused or
 * keep what was wrong with them.
 */
#include "base/test.h"

#include "host_int_packets.h"
#include "hostint/reporter.h"

#include "decode/decode.h"

#define ROUNDS 20000
#define NOW    UINT64_C(1795647209781872930)

static struct pl_host_template template;

static uint32_t read_head(struct pl_host_walk *w, const uint8_t *data, uint32_t len, uint32_t wire)
{
	memset(w, 0, sizeof(*w));
	w->wire = wire;
	w->there = len < PL_HOST_HEAD ? len : PL_HOST_HEAD;
	memcpy(w->bytes, data, w->there);
	return pl_host_read(w, false);
}

/* As the kernel's program does it. */
static bool add(struct packet *p, uint32_t number)
{
	static uint8_t rest[PACKET_BYTES];
	const uint32_t by = 4 * template.words;
	struct pl_host_walk w;
	uint32_t n;

	if (read_head(&w, p->data, p->len, p->len) != PL_HOST_TAKEN)
		return false;
	n = w.end - w.payload;
	memset(rest, 0, sizeof(rest));
	memcpy(rest, p->data + w.payload, n);
	pl_host_add(&w, &template, number, NOW, pl_host_sum(rest, (n + 3) / 4 * 4, 0));
	memmove(p->data + w.payload + by, p->data + w.payload, p->len - w.payload);
	memcpy(p->data, w.bytes, w.payload + by);
	p->len += by;
	return true;
}

/* 1: INT was taken off; 0: there is none of ours. */
static int take_off(struct packet *p)
{
	struct pl_host_walk w;
	uint32_t bytes;

	if (read_head(&w, p->data, p->len, p->len) != PL_HOST_TAKEN ||
		w.end - w.payload < PL_HOST_INT_MIN)
		return 0;
	bytes = pl_host_int_bytes(p->data + w.payload, w.end - w.payload);
	if (bytes == 0)
		return 0;
	pl_host_remove(
		&w, bytes, p->data[w.payload + 3] >> 2, pl_host_sum(p->data + w.payload, bytes, 0));
	memmove(p->data + w.payload, p->data + w.payload + bytes, p->len - w.payload - bytes);
	memcpy(p->data, w.bytes, w.payload);
	p->len -= bytes;
	return 1;
}

static bool same(const struct packet *a, const struct packet *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static bool parsed_right(
	const struct packet *p, const struct packet *before, uint32_t number, unsigned int hops)
{
	static struct pl_int_cache cache;
	const struct pl_int_hints hints = { .dialect = PL_DIALECT_SPEC };
	struct pl_cursor c = pl_cursor(p->data + p->payload, p->len - p->payload);
	const uint8_t *ip = before->data + before->network;
	const uint32_t dscp = before->v6 ? (get16(ip) >> 6 & 0x3f) : (uint32_t)(ip[1] >> 2);
	struct pl_int in;

	return pl_int_parse(&in, &c, PL_INT_OVER_L4, &hints, &cache, false) == PL_V_OK &&
	       in.version == PL_INT_V20 && in.hops == hops && in.have_flow_seq &&
	       in.flow_seq == number && in.have_dscp && in.dscp == dscp && in.notes == 0 &&
	       pl_be32(in.stack + 4 * (size_t)(hops - 1) * in.hop_words) == 77 &&
	       pl_be64(in.stack + 4 * (size_t)(hops - 1) * in.hop_words + in.layout->off[5]) == NOW;
}

static void set_template(uint16_t bitmap)
{
	const struct pl_hostint_options o = { .node = 77, .bitmap = bitmap, .hops = 8, .dscp = 23 };
	struct pl_diag diag;

	if (pl_hostint_template(&template, &o, &diag) < 0)
		abort();
}

static void test_round_trip(uint16_t bitmap)
{
	static struct packet before, p;
	uint32_t wrong = 0;

	set_template(bitmap);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		const uint32_t number = random_number(0x7fffffff), hops = random_number(4);
		bool good;

		make_packet(&before, true);
		p = before;
		good = add(&p, number) && checks_hold(&p) &&
		       p.len == before.len + 4 * template.words &&
		       parsed_right(&p, &before, number, 1);
		for (uint32_t k = 0; k < hops; k++)
			add_transit(&p);
		good = good && parsed_right(&p, &before, number, 1 + hops) && take_off(&p) == 1 &&
		       same(&p, &before);
		wrong += !good;
	}
	eq(wrong, 0, "0x%04x: of %u packets each has INT, and is what it was behind the sink",
		bitmap, ROUNDS);
}

/* A bit that changed on the way, anywhere behind the network header. */
static void test_damage(void)
{
	static struct packet p;
	uint32_t hidden = 0, refused = 0;

	set_template(PL_HOSTINT_BITMAP);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		make_packet(&p, false);
		if (p.unchecked)
			continue;
		(void)add(&p, i);
		p.data[p.transport + random_number(p.len - p.transport)] ^=
			(uint8_t)(1u << random_number(8));
		if (take_off(&p) == 0)
			refused++;
		else if (p.transport + (p.tcp ? 20u : 8u) <= p.len && checks_hold(&p))
			hidden++;
	}
	eq(hidden, 0, "a damaged packet is as wrong behind the sink as before");
	ok(refused > 0 && refused < ROUNDS, "INT that is damaged is refused: %u", refused);
}

/* Bytes that are random from the shim on, and packets cut anywhere: nothing is read or written
 * beyond (this runs under the address sanitizer too), and what is taken off was there. */
static void test_forged(void)
{
	static struct packet p;
	uint32_t beyond = 0, taken = 0;

	set_template(PL_HOSTINT_BITMAP);
	for (uint32_t i = 0; i < 10 * ROUNDS; i++) {
		struct pl_host_walk w;
		uint32_t len, bytes;
		uint8_t *exact;

		make_packet(&p, true);
		(void)add(&p, i);
		for (uint32_t k = random_number(3); k > 0; k--)
			p.data[p.payload + random_number(32)] = (uint8_t)random_number(256);
		len = random_number(2) == 0 ? p.len : random_number(p.len + 1);
		exact = malloc(len > 0 ? len : 1);
		memcpy(exact, p.data, len);
		if (read_head(&w, exact, len, len) == PL_HOST_TAKEN &&
			w.end - w.payload >= PL_HOST_INT_MIN) {
			bytes = pl_host_int_bytes(exact + w.payload, w.end - w.payload);
			beyond += bytes > len - w.payload || bytes > PL_HOST_INT_MAX;
			taken += bytes > 0;
		}
		free(exact);
	}
	eq(beyond, 0, "INT never goes beyond the packet");
	ok(taken > 0, "some is taken off all the same: %u", taken);
}

/* What each field of the header may be. */
static void test_header(void)
{
	static const struct {
		const char *what;
		uint8_t at, value;
	} wrong[] = { { "type 2", 0, 0x20 }, { "mode MX", 0, 0x30 }, { "NPT 1", 0, 0x14 },
		{ "v1.0's type", 0, 0x01 }, { "length below the header", 1, 3 },
		{ "length beyond the packet", 1, 255 }, { "length that hops do not divide", 1, 8 },
		{ "version 1", 4, 0x10 }, { "no hop length", 6, 0 }, { "another hop length", 6, 4 },
		{ "a checksum complement", 9, 0x01 }, { "another domain", 10, 0x51 },
		{ "another instruction of the domain", 12, 0x40 } };
	static struct packet p;

	set_template(PL_HOSTINT_BITMAP);
	do
		make_packet(&p, false);
	while (p.len - p.payload > 200);
	(void)add(&p, 1);
	ok(pl_host_int_bytes(p.data + p.payload, p.len - p.payload) == 32, "32 bytes are INT");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint8_t *at = p.data + p.payload + wrong[i].at, right = *at;

		*at = wrong[i].value;
		eq(pl_host_int_bytes(p.data + p.payload, p.len - p.payload), 0, "refused: %s",
			wrong[i].what);
		*at = right;
	}
}

/* ---- reports ---- */

static uint32_t datagrams, reported;
static struct pl_decode *decode;
static struct pl_record_batch records;

static void decode_datagram(void *arg, const void *data, uint32_t len, uint32_t n)
{
	static struct pl_batch batch;

	(void)arg;
	datagrams++;
	reported += n;
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = data, .len = len, .wire_len = len, .link = PL_LINK_UDP, .ts_ns = NOW
	};
	pl_decode_batch(decode, &batch, &records);
}

static void test_reports(bool sampled)
{
	const struct pl_decode_options o = { .any_port = true };
	static struct pl_hostint_reporter r;
	static struct pl_host_event e;
	static struct packet p;
	uint32_t wrong = 0;

	datagrams = reported = 0;
	if (pl_decode_new(&decode, &o) < 0 || pl_record_batch_init(&records, 1024, 8192) < 0)
		abort();
	r = (struct pl_hostint_reporter){ .node = 9, .sampled = sampled, .send = decode_datagram };
	pl_hostint_reporter_init(&r);
	for (uint32_t i = 0; i < 500; i++) {
		do
			make_packet(&p, true);
		while (p.tagged);
		(void)add(&p, i);
		for (uint32_t k = i % 4; k > 0; k--)
			add_transit(&p);
		e.ts_ns = NOW + 1000;
		e.int_at = p.payload;
		e.bytes = p.payload + 4 + 4 * p.data[p.payload + 1];
		memcpy(e.head, p.data, e.bytes);
		pl_hostint_report(&r, &e);
	}
	pl_hostint_flush(&r);
	eq(reported, 500, "every packet is reported");
	ok(datagrams < 250 && datagrams > 10, "in datagrams of several: %u", datagrams);
	eq(records.n_paths, 500, "and every report is decoded");
	for (uint32_t i = 0; i < records.n_paths; i++) {
		const struct pl_path *path = &records.paths[i];
		const struct pl_hop *hops = records.hops + records.first_hop[i];
		const bool numbered = (path->present & PL_PATH_HAS_flow_seq) != 0;

		wrong += path->hop_count != 2 + i % 4 || hops[0].node != 77 ||
			 hops[path->hop_count - 1].node != 9 || path->node != 9 ||
			 hops[path->hop_count - 1].ingress_ts_ns != NOW + 1000 ||
			 hops[0].egress_ts_ns != NOW || numbered == sampled ||
			 (numbered && path->flow_seq != i);
	}
	eq(wrong, 0, "%s: with both hosts, their times, and %s",
		sampled ? "sampled" : "each packet",
		sampled ? "no numbers, whose gaps would be taken for losses"
			: "the numbers of flows");
	pl_decode_free(decode);
	pl_record_batch_done(&records);
}

int main(void)
{
	test_round_trip(PL_HOSTINT_BITMAP);
	test_round_trip(0xfc00);
	test_damage();
	test_forged();
	test_header();
	test_reports(false);
	test_reports(true);
	return pl_test_done();
}
