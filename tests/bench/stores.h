/* SPDX-License-Identifier: BSD-2-Clause */
/* R3, a ceiling: 64 bytes are stored to random lines of a memory. */
#pragma once

#include <stdint.h>

#include "base/rng.h"
#include "tests/bench/bench.h"

/* Of `bytes` bytes, at least 64. Places are drawn before: the generator is no part of the
 * ceiling. */
void pl_bench_random_stores(struct pl_rng *rng, uint8_t *memory, uint64_t bytes, uint64_t budget_ns,
	struct pl_bench_sample *ret);
