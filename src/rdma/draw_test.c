/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that are drawn look like chance: bits, bytes, neighbours, repeats. usage: draw_test
 * [DRAWS] */
#include "rdma/draw.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/test.h"

#define SIGMAS 6.0 /* one run in some 10^8 is farther off by chance */

static unsigned int far_bits(const uint64_t *counts, unsigned int bits, uint64_t n)
{
	unsigned int far = 0;

	for (unsigned int i = 0; i < bits; i++)
		far += fabs((double)counts[i] - (double)n / 2) > SIGMAS * sqrt((double)n) / 2;
	return far;
}

static unsigned int far_bytes(uint64_t counts[4][256], unsigned int bytes, uint64_t n)
{
	unsigned int far = 0;

	for (unsigned int k = 0; k < bytes; k++) {
		const double each = (double)n / 256;
		double chi = 0;

		for (int v = 0; v < 256; v++)
			chi += ((double)counts[k][v] - each) * ((double)counts[k][v] - each) / each;
		/* 255 degrees of freedom: about normal, of variance 510. */
		far += fabs(chi - 255) > SIGMAS * sqrt(510);
	}
	return far;
}

static void test_chance(unsigned int bits, uint64_t n)
{
	const uint32_t mask = (uint32_t)((UINT64_C(1) << bits) - 1);
	static uint64_t ones[32], changes[32], bytes[4][256];
	struct pl_rdma_index none;
	uint64_t low = 0, outside = 0, repeats = 0;
	uint8_t *seen = calloc((size_t)1 << 24, 1);
	uint32_t before = 0;
	double expected;

	if (seen == NULL || !pl_rdma_index_init(&none, 1))
		abort();
	memset(ones, 0, sizeof(ones));
	memset(changes, 0, sizeof(changes));
	memset(bytes, 0, sizeof(bytes));
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t v = pl_rdma_draw(&none, 0, mask);

		low += v < 2;
		outside += (v & ~mask) != 0;
		for (unsigned int k = 0; k < bits; k++) {
			ones[k] += v >> k & 1;
			changes[k] += i > 0 && ((v ^ before) >> k & 1) != 0;
		}
		for (unsigned int k = 0; k < bits / 8; k++)
			bytes[k][v >> 8 * k & 0xff]++;
		repeats += seen[v & 0xffffff];
		seen[v & 0xffffff] = 1;
		before = v;
	}
	expected = (double)n - 0x1p24 * -expm1(-(double)n / 0x1p24);
	ok(low == 0 && outside == 0, "%u bits: none is 0 or 1, none too wide", bits);
	eq(far_bits(ones, bits, n), 0, "%u bits: each is set half of the time", bits);
	eq(far_bits(changes, bits, n), 0, "%u bits: and tells nothing of the next one", bits);
	eq(far_bytes(bytes, bits / 8, n), 0, "%u bits: every byte is as frequent", bits);
	ok(fabs((double)repeats - expected) < SIGMAS * sqrt(expected) + 1,
		"%u bits: %" PRIu64 " repeats of 24 bits among %" PRIu64 ", %.0f expected", bits,
		repeats, n, expected);
	pl_rdma_index_done(&none);
	free(seen);
}

/* What is there already is not drawn: 200 of 254 are taken, and the others come. */
static void test_taken(void)
{
	struct pl_rdma_index index;
	unsigned int taken = 0;
	bool came[256] = { false };

	if (!pl_rdma_index_init(&index, 256))
		abort();
	for (uint32_t v = 2; v < 202; v++)
		pl_rdma_index_add(&index, v, v);
	for (int i = 0; i < 5000; i++) {
		const uint32_t v = pl_rdma_draw(&index, 0, 0xff);

		taken += v < 202;
		came[v & 0xff] = true;
	}
	eq(taken, 0, "none that is taken");
	for (int v = 202; v < 256; v++)
		taken += !came[v];
	eq(taken, 0, "all others");
	eq(pl_rdma_draw(&index, 77, 0xff), 0, "one that is asked for and taken");
	eq(pl_rdma_draw(&index, 250, 0xff), 250, "and not taken");
	pl_rdma_index_done(&index);
}

int main(int argc, char **argv)
{
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;

	test_chance(24, n); /* queue pairs, packet numbers */
	test_chance(32, n); /* keys */
	test_taken();
	return pl_test_done();
}
