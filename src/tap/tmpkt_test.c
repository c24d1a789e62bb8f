/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/rng.h"
#include "base/test.h"
#include "record/flow_hash.h"
#include "tap/receiver.h"
#include "tap/sender.h"

/* docs/protocols/tmpkt.md's example, by hand: one pkt64 of exporter 7, number 258. */
static const uint8_t example[PL_TMPKT_HEADER_BYTES + 64] = { 'T', 'P', 'K', '1', 1, 1, 1, 0, 7, 0,
	0, 0, 2, 1, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11 };

static void test_header(void)
{
	struct pl_tmpkt h;
	const uint8_t *records;
	uint8_t again[PL_TMPKT_HEADER_BYTES];

	eq(pl_tmpkt_parse(&h, &records, example, sizeof(example)), PL_TMPKT_OK);
	eq(h.kind, PL_FLAT_PKT64);
	eq(h.count, 1);
	eq(h.exporter, 7);
	eq(h.seq, 258);
	eq(h.base_ns, 0x0102030405060708u);
	eq(h.hash, 0x1112131415161718u);
	ok(records == example + 32, "records stand behind the header");
	pl_tmpkt_put(again, &h);
	memeq(again, example, sizeof(again), "written as it was read");
	eq(pl_tmpkt_fits(PL_FLAT_PKT64, PL_TMPKT_DATAGRAM_BYTES), 139, "as the format's page says");
	eq(pl_tmpkt_fits(PL_FLAT_PKT64, 31), 0);
}

static const struct {
	const char *name;
	size_t at;
	uint8_t byte;
	size_t len;
	enum pl_tmpkt_fault fault;
} faults[] = {
	{ "nothing", 0, 'T', 0, PL_TMPKT_SHORT },
	{ "half a header", 0, 'T', 31, PL_TMPKT_SHORT },
	{ "another magic", 3, '2', 96, PL_TMPKT_MAGIC },
	{ "version 0", 4, 0, 96, PL_TMPKT_VERSION },
	{ "version 2", 4, 2, 96, PL_TMPKT_VERSION },
	{ "kind 0", 5, 0, 96, PL_TMPKT_KIND },
	{ "kind 4", 5, 4, 96, PL_TMPKT_KIND },
	{ "kind 11", 5, 11, 96, PL_TMPKT_KIND },
	{ "kind 13", 5, 13, 96, PL_TMPKT_KIND },
	{ "kind 255", 5, 255, 96, PL_TMPKT_KIND },
	{ "kind 13 with a clock", 5, 0xad, 96, PL_TMPKT_KIND },
	{ "the length of pkt64, the kind of mark128", 5, 6, 96, PL_TMPKT_LENGTH },
	{ "the length of pkt64, the kind of seg192", 5, 7, 96, PL_TMPKT_LENGTH },
	{ "a clock without a kind", 5, 0xa0, 96, PL_TMPKT_KIND },
	{ "the length of pkt64, the kind of flow128", 5, 5, 96, PL_TMPKT_LENGTH },
	{ "no records", 6, 0, 32, PL_TMPKT_OK },
	{ "no records, and one", 6, 0, 96, PL_TMPKT_LENGTH },
	{ "two announced, one there", 6, 2, 96, PL_TMPKT_LENGTH },
	{ "65281 announced", 7, 255, 96, PL_TMPKT_LENGTH },
	{ "a byte too few", 6, 1, 95, PL_TMPKT_LENGTH },
	{ "a byte too many", 6, 1, 97, PL_TMPKT_LENGTH },
	{ "the length of pkt64, the kind of pkt96", 5, 2, 96, PL_TMPKT_LENGTH },
};

static void test_faults(void)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		uint8_t bytes[128] = { 0 };
		const uint8_t *records;
		struct pl_tmpkt h;

		memcpy(bytes, example, sizeof(example));
		bytes[faults[i].at] = faults[i].byte;
		eq(pl_tmpkt_parse(&h, &records, bytes, faults[i].len), faults[i].fault, "%s",
			faults[i].name);
	}
}

/* ---- from a sender to a receiver ---- */

#define PACKETS 5000

struct channel {
	struct pl_tmpkt_receiver *receiver;
	struct pl_addr from;
	unsigned int datagrams, lose, repeat; /* numbers of datagrams, from 1; 0: none */
	uint32_t lane_of_flow[64];
	unsigned int mixed; /* flows in more than one lane */
	struct pl_pkt96 got[PACKETS];
	unsigned int n;
};

static void take(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct channel *c = arg;

	if (kind == PL_FLAT_PKT96 && c->n + n <= PACKETS)
		memcpy(&c->got[c->n], records, n * sizeof(c->got[0]));
	c->n += n;
}

static void deliver(struct channel *c, const void *datagram, uint32_t len)
{
	static struct pl_batch batch;

	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){
		.data = datagram, .len = len, .wire_len = len, .link = PL_LINK_UDP, .src = c->from
	};
	pl_tmpkt_receiver_feed(c->receiver, &batch);
}

static void pass(void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records)
{
	struct channel *c = arg;
	uint8_t odd[PL_TMPKT_DATAGRAM_BYTES + 1]; /* at an odd address, as in a ring */
	struct pl_tmpkt h;
	const uint8_t *first;

	memcpy(odd + 1, datagram, len);
	c->datagrams++;
	if (pl_tmpkt_parse(&h, &first, odd + 1, len) == PL_TMPKT_OK && h.count == records) {
		uint32_t *seen = &c->lane_of_flow[h.hash % 64];

		c->mixed += *seen != 0 && *seen != lane + 1;
		*seen = lane + 1;
	}
	if (c->datagrams == c->lose)
		return;
	deliver(c, odd + 1, len);
	if (c->datagrams == c->repeat)
		deliver(c, odd + 1, len);
}

static struct pl_pkt96 some_packet(struct pl_rng *rng)
{
	struct pl_pkt96 p = { 0 };

	for (size_t i = 0; i < sizeof(p); i += 8) {
		const uint64_t word = pl_rng_u64(rng);

		memcpy((uint8_t *)&p + i, &word, 8);
	}
	p.flow_hash = pl_flow_hash_packet(&p);
	return p;
}

static void run(struct channel *c, enum pl_flat_kind kind, uint32_t records, uint32_t lanes,
	struct pl_pkt96 *sent)
{
	const struct pl_tmpkt_sender_config config = { .kind = kind,
		.records = records,
		.lanes = lanes,
		.exporter = 3,
		.send = pass,
		.arg = c };
	struct pl_tmpkt_sender *sender;
	struct pl_rng rng;

	pl_rng_seed(&rng, records);
	(void)pl_tmpkt_receiver_new(&c->receiver, 64, false, take, c);
	eq(pl_tmpkt_sender_new(&sender, &config), 0, "a sender of %u records a datagram", records);
	for (int i = 0; i < PACKETS; i++) {
		sent[i] = some_packet(&rng);
		pl_tmpkt_sender_put(sender, &sent[i], 1);
	}
	pl_tmpkt_sender_flush(sender);
	pl_tmpkt_sender_free(sender);
}

static struct pl_pkt96 sent[PACKETS];
static struct channel c;

static void test_through(void)
{
	static const uint32_t records[] = { 1, 2, 20, 139 };

	for (size_t k = 0; k < sizeof(records) / sizeof(records[0]); k++) {
		c = (struct channel){ 0 };
		run(&c, PL_FLAT_PKT64, records[k], 1, sent);
		eq(c.n, PACKETS, "all records, %u a datagram", records[k]);
		eq(c.datagrams, (PACKETS + records[k] - 1) / records[k], "in as few datagrams");
		for (int i = 0; i < PACKETS; i++) {
			/* Members that pkt64 lacks are zero, but for the hash, which is computed
			 * again. */
			const uint64_t hash = sent[i].flow_hash;

			memset((uint8_t *)&sent[i] + 64, 0, 32);
			sent[i].flow_hash = hash;
		}
		memeq(c.got, sent, sizeof(sent), "the same records in the same order");
		pl_tmpkt_receiver_free(c.receiver);
	}
	c = (struct channel){ 0 };
	run(&c, PL_FLAT_PKT96, 93, 1, sent);
	memeq(c.got, sent, sizeof(sent), "pkt96 whole");
	pl_tmpkt_receiver_free(c.receiver);
}

struct told {
	struct pl_tmpkt_receiver *receiver;
	enum pl_clock_kind clocks[8];
	uint8_t kinds[8]; /* bytes of the datagrams */
	unsigned int n;
};

static void take_clock(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct told *told = arg;

	(void)kind;
	(void)records;
	(void)n;
	told->clocks[told->n++ % 8] = pl_tmpkt_receiver_clock(told->receiver);
}

static void tell_clock(
	void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records)
{
	static struct pl_batch batch;
	struct told *told = arg;

	(void)lane;
	(void)records;
	batch.n = 1;
	batch.pkts[0] = (struct pl_packet){ .data = datagram, .len = len, .link = PL_LINK_UDP };
	told->kinds[told->n % 8] = ((const uint8_t *)datagram)[5];
	pl_tmpkt_receiver_feed(told->receiver, &batch);
}

/* Three bits above the kind say which clock, where the sender is to say so. */
static void test_clock(void)
{
	static const enum pl_clock_kind put[] = { PL_STAMP_NIC, PL_STAMP_NIC, PL_STAMP_NIC,
		PL_STAMP_TAI };
	struct pl_tmpkt_sender_config config = {
		.kind = PL_FLAT_PKT96, .records = 2, .lanes = 1, .send = tell_clock
	};
	const struct pl_pkt96 record = { .proto = 6, .flow_hash = 1 };

	for (int tells = 0; tells < 2; tells++) {
		struct pl_tmpkt_sender *sender;
		struct told told = { .n = 0 };

		config.tells_clock = tells == 1;
		config.arg = &told;
		(void)pl_tmpkt_receiver_new(&told.receiver, 64, false, take_clock, &told);
		(void)pl_tmpkt_sender_new(&sender, &config);
		for (int i = 0; i < 4; i++) {
			pl_tmpkt_sender_clock(sender, put[i]);
			pl_tmpkt_sender_put(sender, &record, 1);
		}
		eq(told.n, 2, "two datagrams");
		eq(told.kinds[0], tells ? 0xa2 : 2, "the byte of the kind");
		eq(told.kinds[1], tells ? 0xe2 : 2, "of records of two clocks");
		eq(told.clocks[0], tells ? PL_STAMP_NIC : PL_STAMP_SENDER, "as received");
		eq(told.clocks[1], tells ? PL_STAMP_MIXED : PL_STAMP_SENDER);
		pl_tmpkt_sender_free(sender);
		pl_tmpkt_receiver_free(told.receiver);
	}
}

static unsigned int others;
static _Alignas(8) uint8_t last[PL_FLAT_BYTES_MAX];

static void take_other(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	const struct pl_flat *flat = pl_flat(*(const enum pl_flat_kind *)arg);

	ok(flat == pl_flat(kind) && (uintptr_t)records % 8 == 0, "%s, aligned", flat->name);
	others += n;
	memcpy(last, (const uint8_t *)records + (size_t)(n - 1) * flat->size, flat->size);
}

/* Flows, DNS messages and segments, both directions of a conversation in one lane. */
static void test_other_kinds(void)
{
	static enum pl_flat_kind kinds[] = { PL_FLAT_FLOW288, PL_FLAT_DNS64, PL_FLAT_SEG192 };
	struct pl_flow288 flows[2] = { { .first_ts = 5, .sport = 1, .dport = 2, .proto = 6 },
		{ .first_ts = 6, .sport = 2, .dport = 1, .proto = 6, .rtt_ts_src_missed = 7 } };
	struct pl_dns64 messages[2] = { { .ts_ns = 7, .id = 1 }, { .ts_ns = 8, .id = 2 } };
	struct pl_seg192 segments[2] = { { .ts_ns = 9, .sport = 1, .dport = 2, .loss = -1 },
		{ .ts_ns = 10, .sport = 2, .dport = 1, .clock_error_ns = 7 } };
	const void *const all[] = { flows, messages, segments };

	for (int k = 0; k < 3; k++) {
		const struct pl_tmpkt_sender_config config = {
			.kind = kinds[k], .records = 2, .lanes = 64, .send = pass, .arg = &c
		};
		const void *records = all[k];
		const size_t size = pl_flat(kinds[k])->size;
		struct pl_tmpkt_sender *sender;

		c = (struct channel){ 0 };
		others = 0;
		(void)pl_tmpkt_receiver_new(&c.receiver, 16, false, take_other, &kinds[k]);
		eq(pl_tmpkt_sender_new(&sender, &config), 0);
		pl_tmpkt_sender_put(sender, records, 2);
		eq(c.datagrams, 1, "both in one lane, so the datagram is full");
		eq(others, 2);
		memeq(last, (const uint8_t *)records + size, size, "as it was put");
		pl_tmpkt_sender_free(sender);
		pl_tmpkt_receiver_free(c.receiver);
	}
}

/* Half of the record goes over the network, and comes with zeros for the rest. */
static void test_short_flows(void)
{
	static enum pl_flat_kind kind = PL_FLAT_FLOW288;
	const struct pl_tmpkt_sender_config config = {
		.kind = PL_FLAT_FLOW128, .records = 69, .lanes = 1, .send = pass, .arg = &c
	};
	struct pl_flow288 flows[69] = { { .first_ts = 5 } }, want;
	struct pl_tmpkt_sender *sender;

	for (uint16_t i = 0; i < 69; i++) {
		flows[i].sport = i;
		flows[i].flow_seq = i;
		flows[i].role = PL_FLOW_ROLE_CLIENT;
		flows[i].rtt_ts_src_missed = 9;
	}
	want = flows[68];
	memset((uint8_t *)&want + sizeof(struct pl_flow128), 0,
		sizeof(want) - sizeof(struct pl_flow128));
	c = (struct channel){ 0 };
	others = 0;
	(void)pl_tmpkt_receiver_new(&c.receiver, 16, false, take_other, &kind);
	eq(pl_tmpkt_sender_new(&sender, &config), 0);
	pl_tmpkt_sender_put(sender, flows, 69);
	eq(c.datagrams, 1);
	eq(others, 69);
	memeq(last, &want, sizeof(want), "flow128, and zeros");
	pl_tmpkt_sender_free(sender);
	pl_tmpkt_receiver_free(c.receiver);
}

/* The flows of the largest UDP payload fit into the receiver's room as flow288. */
static void test_most_flows(void)
{
	static enum pl_flat_kind kind = PL_FLAT_FLOW288;
	static uint8_t payload[65507];
	const struct pl_flow128 flow = { .first_ts = 5, .flow_seq = 7 };
	const uint16_t n = (sizeof(payload) - 32) / sizeof(flow);

	memcpy(payload, example, sizeof(example));
	payload[5] = 5;
	memcpy(payload + 6, &n, sizeof(n));
	for (uint32_t i = 0; i < n; i++)
		memcpy(payload + 32 + i * sizeof(flow), &flow, sizeof(flow));
	c = (struct channel){ 0 };
	others = 0;
	(void)pl_tmpkt_receiver_new(&c.receiver, 16, false, take_other, &kind);
	deliver(&c, payload, (uint32_t)(32 + n * sizeof(flow)));
	eq(others, 511);
	eq(((const struct pl_flow288 *)(const void *)last)->flow_seq, 7);
	pl_tmpkt_receiver_free(c.receiver);
}

static void test_lanes(void)
{
	const struct pl_tmpkt_sender_config wrong[] = {
		{ .kind = PL_FLAT_PKT64, .records = 0, .lanes = 1 },
		{ .kind = PL_FLAT_PKT64, .records = 140, .lanes = 1 },
		{ .kind = PL_FLAT_PKT96, .records = 94, .lanes = 1 },
		{ .kind = PL_FLAT_PKT64, .records = 1, .lanes = 0 },
		{ .kind = PL_FLAT_PKT64, .records = 1, .lanes = 65 },
		{ .kind = PL_FLAT_FLOW128, .records = 70, .lanes = 1 },
	};
	struct pl_tmpkt_sender *none;

	c = (struct channel){ 0 };
	run(&c, PL_FLAT_PKT64, 1, 8, sent);
	eq(c.n, PACKETS);
	eq(c.mixed, 0, "hashes that are equal modulo 64 are in one of 8 lanes");
	pl_tmpkt_receiver_free(c.receiver);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(pl_tmpkt_sender_new(&none, &wrong[i]) < 0, "refused: row %zu", i);
}

static void test_losses(void)
{
	const struct pl_tmpkt_stats *s;

	c = (struct channel){ .lose = 40, .repeat = 60 };
	run(&c, PL_FLAT_PKT64, 20, 4, sent);
	s = pl_tmpkt_receiver_stats(c.receiver);
	eq(s->lost, 1, "a datagram lost");
	eq(s->duplicates, 1, "a datagram repeated");
	eq(c.n, PACKETS - 20, "its records come once");
	eq(s->datagrams, s->accepted + s->duplicates, "accounted for");
	eq(s->records, c.n);
	eq(s->exporters, 1);
	pl_tmpkt_receiver_free(c.receiver);
}

/* Strangers fill the table; one who is proven keeps its place while it sends. */
static void test_strangers(void)
{
	uint8_t bytes[sizeof(example)];
	struct pl_rng rng;
	const struct pl_tmpkt_stats *s;
	uint32_t seq = 0;

	c = (struct channel){ 0 };
	pl_rng_seed(&rng, 9);
	(void)pl_tmpkt_receiver_new(&c.receiver, 4096, false, take, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	memcpy(bytes, example, sizeof(bytes));
	for (int i = 0; i < 100000; i++) {
		const uint32_t noise = (uint32_t)pl_rng_u64(&rng);

		if (i % 100 == 0) {
			/* Every tenth of its datagrams is lost. */
			seq += seq % 10 == 8 ? 2 : 1;
			c.from = (struct pl_addr){ { 1 } };
			memcpy(bytes + 12, &seq, 4);
			memcpy(bytes + 8, "\7\0\0\0", 4);
		} else {
			c.from = (struct pl_addr){ { 2, (uint8_t)noise } };
			memcpy(bytes + 12, &noise, 4);
			memcpy(bytes + 8, &noise, 4);
		}
		deliver(&c, bytes, sizeof(bytes));
	}
	eq(s->exporters, 1, "only one of them is an exporter");
	eq(s->displaced + s->untracked, 0, "and strangers take nothing from it");
	eq(s->lost, seq - 1000, "the losses of the one are all told");
	pl_tmpkt_receiver_free(c.receiver);
}

/* Delivers a datagram of one record, from a sender under an exporter id with a number. */
static void hear(uint8_t sender, uint32_t exporter, uint32_t seq)
{
	uint8_t bytes[sizeof(example)];

	memcpy(bytes, example, sizeof(bytes));
	memcpy(bytes + 8, &exporter, 4);
	memcpy(bytes + 12, &seq, 4);
	memcpy(bytes + 32, &seq, 4);
	c.from = (struct pl_addr){ { sender } };
	deliver(&c, bytes, sizeof(bytes));
}

/* Numbers of datagrams of one exporter, and the datagrams that are taken, wait and repeat others
 * then. */
static const struct {
	const char *name;
	uint32_t seqs[5];
	unsigned int n, taken, held, duplicates;
} proofs[] = {
	{ "one datagram is no proof", { 7 }, 1, 0, 1, 0 },
	{ "two in a row", { 7, 8 }, 2, 2, 0, 0 },
	{ "the wrong way round", { 8, 7 }, 2, 2, 0, 0 },
	{ "others were lost between them", { 7, 100 }, 2, 2, 0, 0 },
	{ "random numbers", { 7, 1u << 30, 1u << 29, 5u << 28, 3u << 27 }, 5, 0, 5, 0 },
	{ "random ones, and then two in a row", { 7, 1u << 30, 1u << 29, 9, 10 }, 5, 5, 0, 0 },
	{ "twice the same", { 7, 7 }, 2, 1, 0, 1 },
	{ "always the same", { 7, 7, 7, 7 }, 4, 3, 0, 1 },
	{ "a duplicate behind the proof", { 7, 8, 9, 8 }, 4, 3, 0, 1 },
	{ "begun anew behind the proof", { 7, 8, 1u << 30 }, 3, 3, 0, 0 },
};

static void test_proof(void)
{
	for (size_t i = 0; i < sizeof(proofs) / sizeof(proofs[0]); i++) {
		const struct pl_tmpkt_stats *s;

		c = (struct channel){ 0 };
		(void)pl_tmpkt_receiver_new(&c.receiver, 64, true, take, &c);
		s = pl_tmpkt_receiver_stats(c.receiver);
		for (unsigned int k = 0; k < proofs[i].n; k++)
			hear(1, 7, proofs[i].seqs[k]);
		eq(c.n, proofs[i].taken, "%s", proofs[i].name);
		eq(s->held, proofs[i].held, "datagrams that wait");
		eq(s->duplicates, proofs[i].duplicates, "duplicates");
		eq(s->datagrams, s->accepted + s->duplicates + s->held + s->unproven, "account");
		eq(s->records, c.n, "records");
		for (unsigned int k = 1; k < c.n && proofs[i].duplicates == 0; k++)
			memeq(&c.got[k], &proofs[i].seqs[k], 4, "in the order in which they came");
		pl_tmpkt_receiver_free(c.receiver);
	}
}

/* Strangers fill the room of those that wait; what makes room is counted. */
static void test_held(void)
{
	const struct pl_tmpkt_stats *s;

	c = (struct channel){ 0 };
	(void)pl_tmpkt_receiver_new(&c.receiver, 4096, true, take, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	hear(1, 7, 100);
	for (uint32_t i = 0; i < 1023; i++)
		hear(2, i, i << 20);
	eq(s->held, 1024);
	hear(1, 7, 101);
	eq(c.n, 2, "an exporter among strangers loses nothing");
	hear(3, 7, 100);
	for (uint32_t i = 0; i < 2000; i++)
		hear(2, i + 1023, i << 20);
	eq(s->held, 1024);
	eq(s->unproven, 2000);
	eq(s->unproven_records, 2000);
	hear(3, 7, 101);
	eq(c.n, 3, "among too many it loses what came before its proof");
	eq(s->datagrams, s->accepted + s->held + s->unproven);
	eq(s->exporters, 2);
	pl_tmpkt_receiver_free(c.receiver);
}

/* A sender that proves as many exporters as there is room for, and more, shares it with others. */
static void test_shares(void)
{
	const struct pl_tmpkt_stats *s;
	struct pl_exporter x;
	uint64_t lost = 0;
	uint32_t pos = 0;

	c = (struct channel){ 0 };
	(void)pl_tmpkt_receiver_new(&c.receiver, 64, true, take, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	for (uint32_t i = 0; i < 1000; i++) {
		hear(2, i, 1);
		hear(2, i, 2);
	}
	eq(s->exporters, 64);
	for (uint32_t seq = 1; seq <= 1000; seq++) {
		if (seq != 500)
			hear(1, 7, seq);
		hear(2, 1000 + seq, 1);
		hear(2, 1000 + seq, 2);
	}
	eq(s->lost, 1, "the losses of another sender are told all the same");
	eq(s->displaced, 1, "one of the many made room");
	ok(s->untracked > 1900, "others found none: %" PRIu64, s->untracked);
	eq(c.n, 4999, "but their records are taken");
	while (pl_tmpkt_receiver_exporter(c.receiver, &pos, &x))
		lost += x.node == 7 && x.addr.b[0] == 1 && x.reports == 999 ? x.lost : 0;
	eq(lost, 1, "which one lost it is told");
	pl_tmpkt_receiver_free(c.receiver);
}

/* Delivers a datagram without records. */
static void hear_empty(uint8_t sender, uint32_t exporter, uint32_t seq)
{
	uint8_t bytes[PL_TMPKT_HEADER_BYTES];

	memcpy(bytes, example, sizeof(bytes));
	bytes[6] = 0;
	memcpy(bytes + 8, &exporter, 4);
	memcpy(bytes + 12, &seq, 4);
	c.from = (struct pl_addr){ { sender } };
	deliver(&c, bytes, sizeof(bytes));
}

/* An empty datagram proves its exporter as any other does, and takes no room of those that wait. */
static void test_empty(void)
{
	const struct pl_tmpkt_stats *s;

	c = (struct channel){ 0 };
	(void)pl_tmpkt_receiver_new(&c.receiver, 4096, true, take, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	hear_empty(1, 7, 0);
	hear(1, 7, 1);
	eq(c.n, 1, "records behind an empty datagram do not wait");
	hear(2, 7, 5);
	eq(c.n, 1, "others do");
	for (uint32_t i = 0; i < 2000; i++)
		hear_empty(3, i, i << 20);
	eq(s->held, 1, "empty datagrams of strangers do not wait");
	hear_empty(2, 7, 6);
	eq(c.n, 2, "until an empty one comes behind");
	eq(s->held + s->unproven, 0);
	eq(s->empty, 2002);
	eq(s->datagrams, s->accepted + s->duplicates + s->held + s->unproven);
	eq(s->records, c.n);
	hear_empty(2, 7, 6);
	eq(s->duplicates, 1, "an empty one that comes again is a duplicate");
	pl_tmpkt_receiver_free(c.receiver);
}

static bool torn[8];
static unsigned int n_torn;

static void take_torn(void *arg, enum pl_flat_kind kind, const void *records, uint32_t n)
{
	struct channel *from = arg;

	(void)kind;
	(void)records;
	(void)n;
	torn[n_torn++ % 8] = pl_tmpkt_receiver_torn(from->receiver);
}

/* The last datagram with records is lost: the empty one behind it tells, and the records that come
 * next are told to be behind a loss. */
static void test_tail(void)
{
	const struct pl_tmpkt_stats *s;

	c = (struct channel){ 0 };
	n_torn = 0;
	(void)pl_tmpkt_receiver_new(&c.receiver, 64, true, take_torn, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	hear(1, 7, 10);
	hear_empty(1, 7, 11);
	eq(n_torn, 1, "the first, proven by an empty one");
	ok(torn[0], "before it something may be lost");
	hear(1, 7, 12);
	ok(!torn[1], "before the second nothing is");
	hear_empty(1, 7, 14);
	eq(s->lost, 1, "13 is missing");
	hear_empty(1, 7, 15);
	hear(1, 7, 16);
	ok(torn[2], "records behind it know");
	hear(1, 7, 17);
	ok(!torn[3], "once");
	eq(n_torn, 4);
	pl_tmpkt_receiver_free(c.receiver);
}

/* A tap that is started again, as its output numbers its datagrams (tapout/tap_udp.c). */
static void test_starts_again(void)
{
	const struct pl_pkt96 record = { .proto = 6, .flow_hash = 3 };
	const struct pl_tmpkt_stats *s;

	c = (struct channel){ 0 };
	(void)pl_tmpkt_receiver_new(&c.receiver, 64, true, take, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	for (uint32_t life = 0; life < 2; life++) {
		const struct pl_tmpkt_sender_config config = { .kind = PL_FLAT_PKT96,
			.records = 1,
			.lanes = 1,
			.exporter = 9,
			.first = 7 + life * 0x40000000,
			.send = pass,
			.arg = &c };
		struct pl_tmpkt_sender *sender;

		eq(pl_tmpkt_sender_new(&sender, &config), 0);
		for (int i = 0; i < 5; i++)
			pl_tmpkt_sender_put(sender, &record, 1);
		pl_tmpkt_sender_free(sender);
	}
	eq(c.n, 10, "all records of both lives come");
	eq(s->duplicates + s->lost, 0, "none is taken for a repeated one");
	eq(s->restarts, 1, "it was started again");
	pl_tmpkt_receiver_free(c.receiver);
}

/* What a sender says while it has no records. */
static void test_sends_empty(void)
{
	const struct pl_tmpkt_sender_config config = { .kind = PL_FLAT_PKT96,
		.records = 2,
		.lanes = 4,
		.exporter = 9,
		.send = pass,
		.arg = &c };
	const struct pl_pkt96 record = { .proto = 6, .flow_hash = 3 };
	struct pl_tmpkt_sender *sender;
	const struct pl_tmpkt_stats *s;

	c = (struct channel){ .lose = 2 };
	(void)pl_tmpkt_receiver_new(&c.receiver, 64, true, take, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	eq(pl_tmpkt_sender_new(&sender, &config), 0);
	pl_tmpkt_sender_empty(sender);
	pl_tmpkt_sender_put(sender, &record, 1);
	pl_tmpkt_sender_flush(sender);
	pl_tmpkt_sender_empty(sender);
	eq(s->empty, 2);
	eq(s->lost, 1, "one datagram, with the record");
	eq(c.n, 0);
	pl_tmpkt_sender_free(sender);
	pl_tmpkt_receiver_free(c.receiver);
}

static void test_malformed(void)
{
	uint8_t bytes[sizeof(example)];
	const struct pl_tmpkt_stats *s;

	c = (struct channel){ 0 };
	(void)pl_tmpkt_receiver_new(&c.receiver, 64, false, take, &c);
	s = pl_tmpkt_receiver_stats(c.receiver);
	memcpy(bytes, example, sizeof(bytes));
	deliver(&c, bytes, 5);
	deliver(&c, bytes, 95);
	bytes[0] = 'X';
	deliver(&c, bytes, 96);
	bytes[0] = 'T';
	bytes[4] = 9;
	deliver(&c, bytes, 96);
	bytes[4] = 1;
	bytes[5] = 4;
	deliver(&c, bytes, 96);
	eq(s->too_short, 1);
	eq(s->bad_length, 1);
	eq(s->bad_magic, 1);
	eq(s->bad_version, 1);
	eq(s->bad_kind, 1);
	eq(s->datagrams, 5);
	eq(s->accepted + c.n, 0, "nothing of them is taken");
	pl_tmpkt_receiver_free(c.receiver);
}

int main(void)
{
	test_header();
	test_faults();
	test_through();
	test_lanes();
	test_other_kinds();
	test_short_flows();
	test_most_flows();
	test_losses();
	test_strangers();
	test_proof();
	test_held();
	test_shares();
	test_empty();
	test_tail();
	test_starts_again();
	test_sends_empty();
	test_malformed();
	test_clock();
	return pl_test_done();
}
