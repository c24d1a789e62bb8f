/* SPDX-License-Identifier: BSD-2-Clause */
/* Test runs of a kernel program (BPF_PROG_TEST_RUN) over one frame, of one flow or of many. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/bench/bench.h"

struct pl_bpf_bench;

/* A report of pl_wire_report, and how many flows it is made the report of, one drawn for each
 * run. */
struct pl_turn {
	struct pl_bpf_bench *bare;
	const uint8_t *frame;
	uint32_t frame_bytes;
	uint32_t flows;          /* 0: the frame stays as it is, its number too */
	bool frags;              /* the program knows packets of several pieces (xdp.frags) */
	bool tc;                 /* it is one of traffic control */
	uint32_t seq_at, src_at; /* where number and source stand; 0: where a report has them */
};

/* One test run (BPF_PROG_TEST_RUN) of `repeat` calls over a frame; ns of a call. -errno. */
int pl_turn_call(
	int prog_fd, const uint8_t *frame, uint32_t frame_bytes, int repeat, uint32_t *ret_ns);

/* Runs the program for about budget_ns and says how often and how long. -errno. */
int pl_turn_run(
	const struct pl_turn *t, int prog_fd, uint64_t budget_ns, struct pl_bench_sample *ret);
