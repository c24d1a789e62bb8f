/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fastest way to make packets on Linux without a NIC: the kernel runs an XDP program over a
 * pool of frames and each is redirected out of an interface, a veth's end that is; what comes in at
 * its peer is a packet. Some 12 to 14 M packets/s on one core, of one length, with fields that
 * differ from frame to frame. For benchmarks and tests. Linux 5.18, CAP_NET_ADMIN and CAP_BPF; the
 * interface's peer must have its NAPI on (an XDP program, or GRO), or nothing arrives.
 *
 * Frames sent while the peer's ring (256 slots) is full are lost there: pl_live_sent counts what
 * was made, the receiver's program what came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "bpf/live.h"

struct pl_live;

struct pl_live_cfg {
	int ifindex;            /* in the calling thread's network namespace */
	const uint8_t *frame;   /* all of it with the Ethernet header; copied */
	uint32_t frame_bytes;   /* 64 … PL_LIVE_FRAME_MAX */
	uint32_t restore_bytes; /* of the beginning are written anew each time; rounded up to 8 */
	const struct pl_live_field *fields;
	uint32_t nfields;
	/* A row is chosen at random for each frame; fields of kind PL_LIVE_ROW come from it. */
	const uint8_t (*rows)[PL_LIVE_ROW_BYTES];
	uint32_t nrows; /* a power of two; 0 = no table */
	bool in_order;  /* rows one after the other instead, the first again behind the last */
	/* At most so many are on their way, by pl_live_took; 0 = any number. Below 256 none is lost
	 * on the way to the receiver's program. */
	uint32_t window;
};

/* Negative errno with diag. */
int pl_live_new(struct pl_live **ret, const struct pl_live_cfg *cfg, struct pl_diag *diag);
void pl_live_free(struct pl_live *live); /* stops it; NULL is allowed */

/* Makes so many frames, by the calling thread. -EAGAIN: the window is full; those before were
 * made. */
int pl_live_send(struct pl_live *live, uint64_t frames);

/* Makes frames in a thread of its own on that processor until stopped: `rate` per second, 0 = what
 * is possible. */
int pl_live_start(struct pl_live *live, unsigned int cpu, double rate);
int pl_live_stop(struct pl_live *live); /* what went wrong meanwhile, or 0 */

/* The receiver has so many, all in all: by any thread. */
void pl_live_took(struct pl_live *live, uint64_t frames);

/* Made so far; to be read at any time. */
uint64_t pl_live_sent(const struct pl_live *live);
