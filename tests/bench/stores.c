/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores 64 bytes to random lines of a memory, as a ceiling. */
#include "tests/bench/stores.h"

#include <string.h>

#include "tests/bench/cpu.h"

#define STORES 65536 /* between two looks at the clock */

void pl_bench_random_stores(struct pl_rng *rng, uint8_t *memory, uint64_t bytes, uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	static uint64_t at[STORES];
	uint8_t line[64];

	memset(line, 0x5a, sizeof(line));
	do {
		uint64_t start;

		for (uint32_t i = 0; i < STORES; i++)
			at[i] = 64 * pl_rng_below(rng, bytes / 64);
		start = pl_cpu_thread_ns();
		for (uint32_t i = 0; i < STORES; i++) {
			memcpy(line, &i, sizeof(i));
			memcpy(memory + at[i], line, sizeof(line));
		}
		ret->ns += pl_cpu_thread_ns() - start;
		ret->items += STORES;
	} while (ret->ns < budget_ns);
}
