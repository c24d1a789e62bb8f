/* SPDX-License-Identifier: BSD-2-Clause */
/* The case "mark/wire" of the benchmark `mark`. */
#pragma once

struct pl_bench_ctx;

/* Measures it, if it is wanted. Returns 0 or negative errno, said with pl_complain. */
int pl_mark_wire_run(struct pl_bench_ctx *ctx);
