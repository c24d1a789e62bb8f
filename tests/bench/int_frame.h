/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames with INT for benchmarks. */
#pragma once

#include <stdint.h>

/* What instrumenting adds: shim, header of INT 2.1, and the seven values of a node. */
#define PL_BENCH_INT_BYTES (4 + 12 + 36)

/* Gives a frame of so many bytes, of TCP or UDP, the INT header and values of node 2; it has room for
 * PL_BENCH_INT_BYTES more. 0 or negative errno. */
int pl_bench_instrument(uint8_t *frame, uint32_t bytes);
