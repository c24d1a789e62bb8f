/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP stream over the wire of benchmarks, with a tap in the kernel at its receiver and without:
 * bytes per second by the clock on the wall, the sender on one processor, the receiver and whoever
 * empties the tap's ring on the other. The kernel's large frames (TSO) are a record per segment. Beside
 * the tap of XDP a program stands that only lets packets pass: an XDP program of whatever kind
 * changes how a veth receives.
 */
#pragma once

#include "tests/bench/bench.h"
#include "tests/bench/wire.h"

/* The stream alone, for benchmarks of something else that stands in its way: addresses of both ends
 * of the open wire, then bytes for about budget_ns; the calling thread is in the receiver's
 * namespace behind the first. 0 or -errno, of addresses said so. */
int pl_tap_stream_addresses(const struct pl_wire *wire);
int pl_tap_stream_bytes(
	const struct pl_wire *wire, uint64_t budget_ns, struct pl_bench_sample *ret);

/* Its cases, on the receiver's side of the open wire. 0 or -errno, said so. */
int pl_tap_stream_run(struct pl_bench_ctx *ctx, const struct pl_wire *wire);
