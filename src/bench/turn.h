/* SPDX-License-Identifier: BSD-2-Clause */
/* Test runs of a kernel program (BPF_PROG_TEST_RUN) over one frame, of one flow or of many. */
#pragma once

#include <stdint.h>

#include "bench/bench.h"

struct pl_bpf_bench;

/* A report of pl_wire_report, and how many flows it is made the report of, one drawn for each
 * run. */
struct pl_turn {
	struct pl_bpf_bench *bare;
	const uint8_t *frame;
	uint32_t frame_bytes;
	uint32_t flows; /* 0: the frame stays as it is, its number too */
};

/* Runs the program for about budget_ns and says how often and how long. -errno. */
int pl_turn_run(
	const struct pl_turn *t, int prog_fd, uint64_t budget_ns, struct pl_bench_sample *ret);
