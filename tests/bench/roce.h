/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts of benchmarks, by the last bytes of their addresses. */
#pragma once

#include "wire/roce.h"

static inline struct pl_roce_path pl_bench_path(uint8_t from, uint8_t to)
{
	return (struct pl_roce_path){ .src = pl_addr_v4((const uint8_t[]){ 10, 0, 0, from }),
		.dst = pl_addr_v4((const uint8_t[]){ 10, 0, 0, to }),
		.dmac = { 2, 0, 0, 0, 0, to },
		.smac = { 2, 0, 0, 0, 0, from },
		.ttl = 64,
		.sport = 49152 };
}
