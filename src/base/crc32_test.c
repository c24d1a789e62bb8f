/* SPDX-License-Identifier: BSD-2-Clause */
/* zlib is the witness: every length up to 3000 at every alignment, both ways, whole and in two
 * parts. */
#include "base/crc32.h"

#include <zlib.h>

#include "base/rng.h"
#include "base/test.h"

enum { LENGTH_MAX = 3000, ALIGNMENTS = 16 };

/* In fresh memory of just that size, so that a sanitizer sees a byte read too many. */
static bool agrees(const uint8_t *data, size_t at, size_t n, uint32_t begin)
{
	uint8_t *copy = malloc(at + n + 1);
	uint32_t want;
	bool good;

	memcpy(copy + at + 1, data, n);
	want = (uint32_t)crc32(begin, copy + at + 1, (uInt)n);
	good = pl_crc32(begin, copy + at + 1, n) == want &&
	       pl_crc32_plain(begin, copy + at + 1, n) == want;
	free(copy);
	return good;
}

static void lengths(const uint8_t *data)
{
	unsigned int wrong = 0;

	for (size_t n = 0; n <= LENGTH_MAX; n++) {
		for (size_t at = 0; at < ALIGNMENTS; at++)
			wrong += !agrees(data, at, n, at % 2 == 0 ? 0 : (uint32_t)n * 2654435761u);
	}
	eq(wrong, 0, "lengths 0 to %d at %d alignments", LENGTH_MAX, ALIGNMENTS);
}

static void parts(const uint8_t *data, struct pl_rng *rng)
{
	unsigned int wrong = 0;

	for (int i = 0; i < 20000; i++) {
		size_t n = pl_rng_below(rng, LENGTH_MAX), cut = pl_rng_below(rng, n + 1);

		wrong += pl_crc32(pl_crc32(0, data, cut), data + cut, n - cut) !=
			 crc32(0, data, (uInt)n);
	}
	eq(wrong, 0, "continued from any place");
}

static void bare_register(const uint8_t *data)
{
	uint32_t reg = ~0u, word;

	memcpy(&word, data, sizeof(word));
	reg = pl_crc32_step4(&pl_crc32_ieee, reg, word);
	reg = pl_crc32_step1(&pl_crc32_ieee, reg, data[4]);
	eq(~reg, crc32(0, data, 5), "four bytes and one by the table");
}

static void other_polynomial(void)
{
	static struct pl_crc32_table castagnoli;
	const char *digits = "123456789";
	uint32_t reg = ~0u;

	pl_crc32_table_init(&castagnoli, 0x82F63B78);
	for (int i = 0; i < 9; i++)
		reg = pl_crc32_step1(&castagnoli, reg, (uint8_t)digits[i]);
	eq(~reg, 0xE3069283, "the check value of CRC-32C");
}

int main(void)
{
	static uint8_t data[LENGTH_MAX];
	struct pl_rng rng;

	pl_rng_seed(&rng, 32);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)pl_rng_u64(&rng);
	eq(pl_crc32(0, "123456789", 9), 0xCBF43926, "the check value");
	lengths(data);
	parts(data, &rng);
	bare_register(data);
	other_polynomial();
	return pl_test_done();
}
