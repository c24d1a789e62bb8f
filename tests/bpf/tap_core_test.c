/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers to records as the kernel's tap reads them (core/tap_core.h), against tap/tap.c over the
 * same bytes: random packets of all kinds, damaged and cut, byte by byte. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/test.h"
#include "core/tap_joined.h"
#include "record/flow_hash.h"
#include "tap/tap.h"

#include "tap_packets.h"

#define PACKETS 400000

/* gso_size: not 0 of a frame that stands for several packets. */
static enum pl_tap_outcome walk(
	struct pl_tap_walk *w, const struct tap_packet *p, enum pl_tap_link link, uint32_t gso_size)
{
	uint32_t outcome;

	w->gso = gso_size;
	w->wire = p->len;
	w->there = p->len < PL_TAP_HEAD_BYTES ? p->len : PL_TAP_HEAD_BYTES;
	/* What an earlier packet left behind it stays there, as in the kernel. */
	memcpy(w->bytes, p->bytes, w->there);
	outcome = pl_tap_core_link(w, link);
	if (outcome == PL_TAP_MADE)
		outcome = pl_tap_core_network(w);
	if (outcome == PL_TAP_MADE)
		outcome = pl_tap_core_transport(w);
	if (outcome == PL_TAP_MADE)
		pl_tap_core_options(w);
	return (enum pl_tap_outcome)outcome;
}

static void explain(const struct tap_packet *p, const struct pl_pkt96 *want,
	const struct pl_pkt96 *got, uint32_t i)
{
	char text[1100];

	for (uint32_t k = 0; k < p->len; k++)
		snprintf(text + (size_t)2 * k, 3, "%02x", p->bytes[k]);
	printf("# packet %u: %.*s\n", i, (int)(2 * p->len), text);
	for (uint32_t k = 0; k < sizeof(*want); k++) {
		if (((const uint8_t *)want)[k] != ((const uint8_t *)got)[k])
			printf("# byte %u: %02x, not %02x\n", k, ((const uint8_t *)got)[k],
				((const uint8_t *)want)[k]);
	}
}

static void test_records(void)
{
	struct tap_dice dice = { 20261125 };
	static struct pl_tap_walk w;
	static struct pl_tap tap;
	uint64_t made = 0, options = 0, wrong = 0;

	for (uint32_t i = 0; i < PACKETS && wrong < 5; i++) {
		const int raw = i % 8 == 7;
		struct pl_batch batch = { .n = 1 };
		struct pl_tap_stats before = tap.stats;
		struct tap_packet p;
		struct pl_pkt96 want;
		enum pl_tap_outcome outcome;
		bool same;

		make_packet(&p, &dice, raw);
		batch.pkts[0] = (struct pl_packet){ .data = p.bytes,
			.len = p.len < PL_TAP_BYTES ? p.len : PL_TAP_BYTES,
			.wire_len = p.len,
			.link = raw ? PL_LINK_RAW_IP : PL_LINK_ETHERNET };
		tap.seq = 0;
		outcome = walk(&w, &p, raw ? PL_TAP_RAW_IP : PL_TAP_ETHERNET, 0);
		if (pl_tap_batch(&tap, &batch, &want, 1) == 1) {
			w.record.flow_hash = pl_tap_core_hash(&w.record);
			made++;
			options += w.record.tcp_opts != 0;
			same = outcome == PL_TAP_MADE &&
			       memcmp(&want, &w.record, sizeof(want)) == 0 &&
			       (tap.stats.bad_options != before.bad_options) ==
				       ((w.flags & PL_TAP_BAD_OPTIONS) != 0);
		} else {
			same = outcome ==
			       (tap.stats.not_ip != before.not_ip ? PL_TAP_NOT_IP : PL_TAP_BROKEN);
		}
		wrong += !same;
		if (!same)
			explain(&p, &want, &w.record, i);
	}
	eq(wrong, 0, "the same record, or the same reason for none, of every packet");
	ok(made > PACKETS / 4 && options > PACKETS / 50,
		"%" PRIu64 " records, %" PRIu64 " with options; %" PRIu64 " broken, %" PRIu64
		" not IP",
		made, options, tap.stats.broken, tap.stats.not_ip);
}

/* Frames that stand for several packets: as many, of the same records, or not to be told by either. */
static void test_joined(void)
{
	struct tap_dice dice = { 20261129 };
	static struct pl_tap_walk w;
	static struct pl_tap tap;
	uint64_t made = 0, several = 0, big = 0, wrong = 0;

	for (uint32_t i = 0; i < PACKETS && wrong < 5; i++) {
		const uint16_t each = (uint16_t)(1 + roll(&dice, 30));
		const int raw = i % 8 == 7;
		struct pl_batch batch = { .n = 1 };
		struct pl_tap_joined j = { .n = 1 };
		static struct pl_pkt96 want[PL_BATCH_MAX];
		struct tap_packet p;
		struct pl_tap_stats before = tap.stats;
		enum pl_tap_outcome outcome;
		bool told, same;
		uint32_t n;

		make_packet(&p, &dice, raw);
		if (roll(&dice, 4) == 0 && !raw && p.len > 60) {
			/* A length of 0 (BIG TCP), now and then behind a Hop-by-Hop header. */
			big++;
			set16(&p, p.bytes[14] >> 4 == 4 ? 16 : 18, 0);
			if (roll(&dice, 2) == 0 && p.bytes[14] >> 4 == 6) {
				p.bytes[20] = 0;
				memcpy(p.bytes + 54, "\6\0\xc2\4", 4);
			}
		}
		outcome = walk(&w, &p, raw ? PL_TAP_RAW_IP : PL_TAP_ETHERNET, each);
		told = outcome == PL_TAP_MADE &&
		       pl_tap_joined_walk(&j, &w, each, 0, PL_VXLAN_PORTS);
		pl_tap_joined_keep(&j, &w.record);
		batch.pkts[0] = (struct pl_packet){ .data = p.bytes,
			.len = p.len < PL_TAP_BYTES ? p.len : PL_TAP_BYTES,
			.wire_len = p.len,
			.link = raw ? PL_LINK_RAW_IP : PL_LINK_ETHERNET,
			.gso = w.record.proto == 6 ? PL_GSO_TCP : PL_GSO_UDP,
			.gso_size = each };
		/* Of tunnels user space reads more. */
		if (outcome == PL_TAP_MADE && w.record.proto == 17 &&
			pl_is_tunnel_port(PL_VXLAN_PORTS, w.record.dport))
			continue;
		tap.seq = 0;
		n = 0;
		same = true;
		do {
			const uint32_t some = pl_tap_batch(&tap, &batch, want, PL_BATCH_MAX);

			for (uint32_t k = 0; k < some && same; k++) {
				struct pl_pkt96 got = w.record;

				if (told && j.n > 1)
					pl_tap_joined_packet(&j, n + k, &got);
				got.flow_hash = pl_tap_core_hash(&got);
				got.record_seq = n + k;
				same = memcmp(&want[k], &got, sizeof(got)) == 0;
				if (!same)
					explain(&p, &want[k], &got, i);
			}
			n += some;
		} while (tap.more);
		same = same && (n > 0) == (outcome == PL_TAP_MADE) &&
		       (tap.stats.joined != before.joined) == !told;
		if (told)
			same = same && j.n == n;
		made += n;
		several += n > 1;
		if (!same && wrong++ < 5)
			printf("# frame %u: %u records, told %d, %u packets\n", i, n, told, j.n);
	}
	eq(wrong, 0, "frames of several packets: the same of each");
	ok(several > PACKETS / 20 && big > PACKETS / 10,
		"%" PRIu64 " records, %" PRIu64 " frames of several packets, %" PRIu64
		" without length",
		made, several, big);
}

/* A tunnel's frame of 3000 bytes within, in packets of 1400, whose inner headers hide in the last one:
 * the kernel's number of packets fits UDP as well. */
static void test_named_tunnels(void)
{
	const uint64_t named = PL_PORTS(4789, 4789, 4789, 5555);
	static struct pl_tap_walk w;
	struct pl_tap_joined j;

	w.version = 4;
	w.whole = 28 + 62 + 3000;
	w.headers = 28;
	w.record.proto = 17;
	w.record.dport = 5555;
	ok(pl_tap_joined_walk(&j, &w, 1400, 3, PL_VXLAN_PORTS), "UDP at a port that nobody named");
	ok(!pl_tap_joined_walk(&j, &w, 1400, 3, named), "a port that is named is a tunnel's");
	w.record.dport = 8472;
	ok(!pl_tap_joined_walk(&j, &w, 1400, 3, PL_VXLAN_PORTS), "so is 8472");
	ok(pl_tap_joined_walk(&j, &w, 1400, 3, named), "unless others are named");
	w.record.dport = PL_PORT_GENEVE;
	ok(!pl_tap_joined_walk(&j, &w, 1400, 3, named), "Geneve always is");
}

static void test_hash(void)
{
	struct tap_dice dice = { 7 };
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < 100000; i++) {
		uint64_t a = (uint64_t)roll(&dice, UINT32_MAX) << 33 ^ roll(&dice, UINT32_MAX),
			 b = (uint64_t)roll(&dice, UINT32_MAX) << 33 ^ roll(&dice, UINT32_MAX);

		wrong += pl_tap_mix(a, b) != pl_hash_mix(a, b);
	}
	eq(wrong, 0, "products of 128 bits without them");
}

int main(void)
{
	_Static_assert(PL_TAP_HEAD_BYTES == PL_TAP_BYTES, "a tap reads as much wherever it is");
	test_records();
	test_joined();
	test_named_tunnels();
	test_hash();
	return pl_test_done();
}
