/* SPDX-License-Identifier: BSD-2-Clause */
/* The translator's way to a collector's memory (remote/uplink.h), for benchmarks: one store of
 * one collector that is not there, over an unreliable connection; its frames are made and thrown
 * away. */
#pragma once

#include <stdint.h>

#include "netio/port.h"
#include "remote/uplink.h"

struct pl_bench_uplink {
	struct pl_uplink *uplink;
	uint8_t *memory; /* of frames */
	struct pl_frames frames;
	uint64_t made; /* frames */
};

/* -EINVAL, -ENOMEM, -EIO, -EPROTO. */
int pl_bench_uplink_begin(struct pl_bench_uplink *b, uint64_t store_bytes);
void pl_bench_uplink_end(struct pl_bench_uplink *b);

/* All that was given becomes frames, which go out of the port; NULL: nowhere. Returns how many were
 * not taken there. */
uint64_t pl_bench_uplink_send(struct pl_bench_uplink *b, uint64_t now_ns, struct pl_port *port);
