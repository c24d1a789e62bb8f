/* SPDX-License-Identifier: BSD-2-Clause */
/* libpcap alone walking a capture file: the ceiling of whatever reads one. It looks at no byte of a packet. */
#pragma once

#include <stdint.h>

#include "tests/bench/bench.h"

/* Again and again, opening included, for budget_ns of the thread's time. precision:
 * PCAP_TSTAMP_PRECISION_*, of times that libpcap gives. -EIO: the file has another number of packets. */
int pl_bench_walk_pcap(const char *path, int precision, uint64_t packets, uint64_t budget_ns,
	struct pl_bench_sample *ret);
