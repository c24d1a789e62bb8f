/* SPDX-License-Identifier: BSD-2-Clause */
/* The heavy senders are found, and no others, whatever the other senders do. */
#include "netio/heavy.h"

#include "base/rng.h"
#include "base/test.h"

static struct pl_heavy heavy;
static struct pl_packet packets[PL_HEAVY_SAMPLE];
static struct pl_prefix found[2 * PL_HEAVY_PART];

static struct pl_addr v4(uint32_t number)
{
	uint8_t b[4] = { 10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };

	return pl_addr_v4(b);
}

static struct pl_addr v6(uint8_t network, uint64_t host)
{
	struct pl_addr a = { { 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, network } };

	memcpy(a.b + 8, &host, 8);
	return a;
}

static uint32_t ask(uint32_t n)
{
	memset(&heavy, 0, sizeof(heavy));
	pl_heavy_add(&heavy, packets, n);
	return pl_heavy_senders(&heavy, found, 2 * PL_HEAVY_PART);
}

/* Shuffles the packets. */
static void shuffle(uint32_t seed)
{
	struct pl_rng rng;

	pl_rng_seed(&rng, seed);
	for (uint32_t i = PL_HEAVY_SAMPLE - 1; i > 0; i--) {
		uint32_t k = (uint32_t)(pl_rng_below(&rng, i + 1));
		struct pl_addr a = packets[i].src;

		packets[i].src = packets[k].src;
		packets[k].src = a;
	}
}

static bool is(uint32_t i, struct pl_addr a, uint8_t bits)
{
	return found[i].bits == bits && pl_addr_equal(&found[i].addr, &a);
}

static void test_one_among_many(void)
{
	unsigned int wrong = 0;

	for (uint32_t seed = 1; seed <= 200; seed++) {
		/* A fifth of the packets is from one sender; each other packet is from another
		 * one. */
		for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++)
			packets[i].src = i % 5 == 0 ? v4(7) : v4(1000 + i);
		shuffle(seed);
		wrong += ask(PL_HEAVY_SAMPLE) != 1 || !is(0, v4(7), 128);
	}
	eq(wrong, 0, "a fifth is found in any order, beside senders of one datagram");
	for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++)
		packets[i].src = v4(i % 20);
	eq(ask(PL_HEAVY_SAMPLE), 0, "of twenty that send the same nobody is heavy");
	for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++)
		packets[i].src = v4(i % 1000 == 3 ? 2 : 1);
	eq(ask(PL_HEAVY_SAMPLE), 1);
	ok(is(0, v4(1), 128), "who sends all but one in a thousand");
}

static void test_some(void)
{
	for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++)
		packets[i].src = i % 10 < 5 ? v4(1) : i % 10 < 8 ? v4(2) : v4(100 + i % 70);
	eq(ask(PL_HEAVY_SAMPLE), 2, "two of them");
	ok(is(0, v4(1), 128) && is(1, v4(2), 128), "the heaviest first");
	for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++)
		packets[i].src = v4(i % PL_HEAVY_PART);
	eq(ask(PL_HEAVY_SAMPLE), PL_HEAVY_PART, "as many as there can be");
	eq(pl_heavy_senders(&heavy, found, 3), 3, "and no more than are asked for");
}

static void test_networks(void)
{
	for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++)
		packets[i].src = i % 4 == 0 ? v6(1, i) : v4(100 + i % 70);
	eq(ask(PL_HEAVY_SAMPLE), 1, "a host with an address for each datagram");
	ok(is(0, v6(1, 0), 64), "is its network");
	for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++)
		packets[i].src = v6(1, i % 10 < 9 ? 1 : 2 + i % 70);
	eq(ask(PL_HEAVY_SAMPLE), 1);
	ok(is(0, v6(1, 1), 128), "an address, where it is only one: its neighbours are others");
	for (uint32_t i = 0; i < PL_HEAVY_SAMPLE; i++) {
		packets[i].src = v6(0, 2 + i % 70);
		packets[i].src.b[0] = 0xfe;
		packets[i].src.b[1] = 0x80;
	}
	eq(ask(PL_HEAVY_SAMPLE), 0, "link-local addresses are of no network");
}

int main(void)
{
	test_one_among_many();
	test_some();
	test_networks();
	return pl_test_done();
}
