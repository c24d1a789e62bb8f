/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames over the wire of benchmarks into an AF_XDP socket, and a loop that takes them there: what
 * afxdp-recv and afxdp-collect have in common, R2 included.
 *
 * NAPI and the taking thread share the first processor, the sender has the second: NAPI in a thread
 * of its own. With self_clocked, NAPI runs behind the sender on its processor, which so cannot
 * overrun it: what is lost then is lost because the taking thread, alone on the first, was too
 * slow.
 *
 * With a window in `live`, the sender has no more on its way than the pair's ring holds and nothing
 * is lost before it is taken, NAPI where it is otherwise: for streams whose order matters.
 *
 * Rates are per second of processor time of the taking thread and NAPI's together: on a busy
 * machine the two do not have their processor for themselves. Self-clocked the clock on the wall
 * counts, as NAPI's time is the sender's.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "netio/port.h"
#include "tests/bench/bench.h"
#include "tests/bench/wire.h"
#include "wire/packet.h"

#define PL_AFXDP_RING 16384
#define PL_AFXDP_URI  "afxdp:" PL_WIRE_RECEIVER_NAME "?ring=16384"

/* What is sent on leaves by a packet socket, or by the ring of the port that receives. */
enum pl_afxdp_send {
	PL_AFXDP_UNSENT,
	PL_AFXDP_BY_PACKET,
	PL_AFXDP_BY_RING,
};

struct pl_afxdp_bench {
	const char *name; /* of the benchmark, for complaints */
	struct pl_wire wire;
	struct pl_live_cfg live; /* what is sent; its interface is filled in */
	bool self_clocked;
	enum pl_afxdp_send send_by;
	struct pl_port *send; /* while a run lasts; NULL: unsent */
	/* Called where the measured time begins and where it ends, the sender still at work; or
	 * NULL. */
	void (*mark)(struct pl_afxdp_bench *b, void *receiver, bool end);
	/* Processor time of further threads that take part; NULL: there are none. R2 has none. */
	uint64_t (*more_ns)(void);
	cpu_set_t allowed;
	uint64_t sum;               /* of what was touched, so that it is */
	uint64_t taken;             /* frames of this run, for a sender with a window */
	uint32_t idle;              /* waits in vain since the last one */
	uint64_t lost, lost_before; /* counted by pl_afxdp_mark_lost */
};

/* A case of a benchmark, on the receiver's side of the open wire. -errno, said so, ends the
 * benchmark. */
typedef int pl_afxdp_case_fn(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *b, size_t i);

/* Opens the wire, runs cases 0 to n - 1 and closes it. 0 also where there is but one processor,
 * said so; -errno, said so. */
int pl_afxdp_run(struct pl_bench_ctx *ctx, struct pl_afxdp_bench *b, const char *name,
	pl_afxdp_case_fn *one, size_t n);

/* Takes what is there, waiting for up to some milliseconds; how many frames. */
typedef int pl_afxdp_take_fn(struct pl_afxdp_bench *b, void *receiver);

/* One run: frames come, take() takes them, for the budget behind a warm-up. Then the sender stops
 * and take() is called until nothing is left. */
int pl_afxdp_measure(struct pl_afxdp_bench *b, pl_afxdp_take_fn *take, void *receiver,
	uint64_t budget_ns, struct pl_bench_sample *ret);

/* The same with a port of this URI as the receiver; b->send is there meanwhile as b->send_by wants
 * it. */
int pl_afxdp_measure_port(struct pl_afxdp_bench *b, const char *uri, pl_afxdp_take_fn *take,
	uint64_t budget_ns, struct pl_bench_sample *ret);

/* A mark for a receiver that is a port: frames that the XDP program passed on and that found no
 * room, in the measured time. */
void pl_afxdp_mark_lost(struct pl_afxdp_bench *b, void *receiver, bool end);

/* A pl_bench_fn, arg is the struct pl_afxdp_bench. R2: a bare loop over the rings that touches and
 * recycles. */
int pl_afxdp_bare(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret);
