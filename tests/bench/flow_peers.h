/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow cache of `pathline tap` and those of other programs over one capture. */
#pragma once

#include "tests/bench/bench.h"

/* 0 or negative errno, said. A program that is not there is named and left out. */
int pl_bench_flow_peers(struct pl_bench_ctx *ctx);
