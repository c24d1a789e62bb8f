/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers to records as the kernel's tap reads them (core/tap_core.h), against tap/tap.c over the
 * same bytes: random packets of all kinds, damaged and cut, byte by byte. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/test.h"
#include "core/tap_core.h"
#include "record/flow_hash.h"
#include "tap/tap.h"

#include "tap_packets.h"

#define PACKETS 400000

static enum pl_tap_outcome walk(
	struct pl_tap_walk *w, const struct tap_packet *p, enum pl_tap_link link)
{
	uint32_t outcome;

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
		outcome = walk(&w, &p, raw ? PL_TAP_RAW_IP : PL_TAP_ETHERNET);
		if (pl_tap_batch(&tap, &batch, &want) == 1) {
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
	test_hash();
	return pl_test_done();
}
