/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire of benchmarks: a veth pair between two network namespaces of its own, without names,
 * which the kernel removes with the process. Live frames (tests/bench/live.h) go in at the sender's end,
 * and what is measured sits at the receiver's. Needs root.
 *
 * A thread enters a side with pl_wire_enter and comes home with PL_WIRE_HOME; threads it starts
 * inherit the side.
 *
 * The opening thread, those it starts, and NAPI's get the highest ordinary priority until the wire
 * is closed: rates are by the clock on the wall, and other jobs would be in them.
 *
 * NAPI of the receiver: not threaded, it runs on the sender's processor right behind the sender,
 * which so cannot overrun it (self-clocked, nothing is lost in the veth's ring of 256). Threaded,
 * it runs where it is pinned to. Threaded NAPI is set after the XDP program is attached, and
 * cleared before it is taken off.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "tests/bench/live.h"
#include "tests/bench/priority.h"
#include "wire/int.h"

enum pl_wire_side { PL_WIRE_HOME, PL_WIRE_SENDER, PL_WIRE_RECEIVER, PL_WIRE_SIDES };

#define PL_WIRE_SENDER_NAME   "plwtx"
#define PL_WIRE_RECEIVER_NAME "plwrx"

struct pl_wire {
	int ns[PL_WIRE_SIDES];      /* descriptors; -1 = none */
	int ifindex[PL_WIRE_SIDES]; /* each in its own namespace */
	struct pl_bench_priority priority;
};

/* The receiver's end in the namespace of the calling thread, for what talks to others there too;
 * until the wire is closed it has an interface PL_WIRE_RECEIVER_NAME. Otherwise as below. */
int pl_wire_open_at_home(struct pl_wire *w, struct pl_diag *diag);

/* Negative errno with diag: not root, mostly. */
int pl_wire_open(struct pl_wire *w, unsigned int queues, struct pl_diag *diag);
void pl_wire_close(struct pl_wire *w);

int pl_wire_enter(const struct pl_wire *w, enum pl_wire_side side);

/* The receiver's NAPI: in threads of its own, pinned to the i-th allowed processor, or inline
 * again. */
int pl_wire_threaded_napi(const struct pl_wire *w, bool threaded, unsigned int cpu);

/* Gives an interface of the thread's namespace an address of 24 bits. -errno. */
int pl_wire_address(const char *ifname, const char *address);
#define PL_WIRE_SENDER_ADDRESS   "10.255.0.1"
#define PL_WIRE_RECEIVER_ADDRESS "10.255.0.2"

/* Frames that a program counts in a map with a number of each processor (bench.bpf.c); 0 when it
 * cannot be read. */
uint64_t pl_wire_counted(int map_fd);

/* Processor time that the receiver's NAPI threads took so far; 0 when there are none. */
uint64_t pl_wire_napi_cpu_ns(void);

/* A UDP report's frame for this wire: Ethernet, IPv4, UDP to port 32766 around the payload. Returns
 * its length; -EMSGSIZE. */
int pl_wire_frame(uint8_t *dst, uint32_t cap, const uint8_t *payload, uint32_t payload_bytes);

/* Where such a report's number and its flow's source address stand in the frame. */
#define PL_WIRE_REPORT_SEQ (42 + 8)
#define PL_WIRE_REPORT_SRC (42 + 16 + 14 + 12)

/* A report v1.0 with a stack of INT v1.0 from a chain of so many nodes, as a frame for this wire.
 * Returns its length; -errno, said for the benchmark `name`. */
int pl_wire_report(uint8_t *dst, uint32_t cap, unsigned int hops, uint16_t bitmap,
	enum pl_dialect dialect, const char *name);
