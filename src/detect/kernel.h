/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The detector in the kernel (bpf/detect.bpf.c): loaded, told its rules, heard. Report traffic on
 * the interfaces that its program is attached to is read, detected and dropped in the kernel; here
 * come its events, the frames that it did not settle, and its counts.
 *
 *   pl_kernel_open(&k, &options, &diag);
 *   pl_xdp_attach(&xdp, "eth0", pl_kernel_program(k)->prog_fd, …)   or as the program of an afxdp:
 *   port
 *   every 200 us or so:  pl_kernel_time, pl_kernel_events, pl_kernel_frames
 *   now and then:        a tick over pl_kernel_tables, pl_kernel_counters
 *   pl_kernel_close(k);  the program goes with the last descriptor and attachment
 *
 * Nothing wakes anybody: whoever drains paces himself. The program counts reports by the sequence
 * numbers of their exporters itself, settled or not, as far as it can read the header; the decoder
 * that takes what is escalated does so for the others (an exporter with a profile that the program
 * does not know).
 *
 * One thread drives it; pl_kernel_time and the readers of counters may be others.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "bpf/detect_kernel.h"
#include "decode/decode.h"
#include "detect/events.h"
#include "netio/xdp.h"
#include "wire/packet.h"

struct pl_kernel;

struct pl_kernel_options {
	const struct pl_core_rules *rules;      /* copied; its masks are the tables' sizes */
	const struct pl_decode_options *decode; /* profiles, plausibility limit */
	unsigned int queues;   /* receive queues that have state of their own; 0: 1 */
	uint32_t events_bytes; /* ring of events; 0: 4 MiB. Rounded up to a power of two of pages */
	uint32_t frames_bytes; /* ring of frames; 0: 4 MiB */
	/* what is not settled goes to AF_XDP sockets, where there is one; else into the ring */
	bool to_sockets;
	bool both; /* settled reports go to the sockets too, and all others into the ring */
};

/*
 * Negative errno, with a sentence that names what is missing: -EPERM the capability, -ENOTSUP a
 * program without kernel parts or a kernel that refuses this one, -ENOMEM, -EINVAL. The caller may
 * then detect in user space.
 */
int pl_kernel_open(
	struct pl_kernel **ret, const struct pl_kernel_options *options, struct pl_diag *diag);
void pl_kernel_close(struct pl_kernel *k);

/* Bytes of kernel memory that the maps take. */
uint64_t pl_kernel_memory(const struct pl_kernel_options *options);

/* For pl_xdp_attach, or for ports (pl_port_options.program). Lives as long as k. Its filter is set
 * by the port, or by pl_filter_set. */
const struct pl_xdp_program *pl_kernel_program(const struct pl_kernel *k);

/* The time that reports are detected at: monotonic, and since the Unix epoch. Before the first the
 * program sees 0. */
void pl_kernel_time(struct pl_kernel *k, uint64_t now_ns, uint64_t ts_ns);

/* The latter, as it is now. */
uint64_t pl_kernel_ts_ns(const struct pl_kernel *k);

/* New rules, at once for the next report; masks and secret stay. The caller then empties the bands
 * (detect_state.h). */
void pl_kernel_rules(struct pl_kernel *k, const struct pl_core_rules *rules);
const struct pl_core_rules *pl_kernel_rules_now(const struct pl_kernel *k);

/* The settled reports that are copied into the ring of frames, to be stored: 1 in `sample`, and
 * those that match every field that is given. All zero: none. */
struct pl_kernel_wanted {
	uint32_t sample;
	bool match;
	uint32_t flags; /* PL_FLAG_*: any of them */
	bool node_set;
	uint64_t node;
	struct pl_addr addr; /* either end of the flow; zero: any */
};
void pl_kernel_want(struct pl_kernel *k, const struct pl_kernel_wanted *wanted);

/* A layout that a report of `exporter` asked for which was escalated for PL_ESCALATION_LAYOUT: to
 * be called once the exporter is proven (core/sequence.h), since a layout is never forgotten. One
 * source (pl_addr_source) has PL_KERNEL_LAYOUTS_SHARE of the table at most; reports that ask for
 * more are in the counter layouts_full. True when one was added. */
#define PL_KERNEL_LAYOUTS_SHARE 32
bool pl_kernel_learn(
	struct pl_kernel *k, const struct pl_packet *pkt, const struct pl_addr *exporter);

/* Events into the batch, which is flushed when full; returns how many. */
unsigned int pl_kernel_events(struct pl_kernel *k, struct pl_event_batch *out);

/* What goes with a frame of the ring. */
struct pl_kernel_frame_of {
	bool settled;   /* a copy, detected already */
	bool layout;    /* escalated for its layout: see pl_kernel_learn */
	uint8_t number; /* enum pl_kernel_number */
	uint16_t queue;
	struct pl_core_numbered numbered; /* of a frame of length 0: that is all there is */
};

/*
 * Frames of the ring, in the order in which each queue's came, at most PL_BATCH_MAX; they live
 * until the next call. A frame of length 0 is the number of a settled report that was left to user
 * space (detect/numbers.h). Returns how many.
 */
unsigned int pl_kernel_frames(
	struct pl_kernel *k, struct pl_batch *ret, struct pl_kernel_frame_of *ret_of);

/* On: the fast path of the program (core/detect_fast.h) is left out. Events, tables and counts are
 * the same, which is what this is for: to compare. */
void pl_kernel_general(struct pl_kernel *k, bool on);

/* Sums over all processors. -errno. */
int pl_kernel_counters(struct pl_kernel *k, struct pl_kernel_counters *ret);

/* The tables as the program has them, for ticks and harvests (detect_state.h says who may write
 * what): sets of all queues after one another. */
struct pl_kernel_table {
	void *sets; /* struct pl_core_T_set */
	uint32_t n; /* of them: queues * (mask + 1) */
};
const struct pl_kernel_table *pl_kernel_tables(const struct pl_kernel *k); /* by PL_CORE_T_* */
unsigned int pl_kernel_queues(const struct pl_kernel *k);

/* By which the tables of a queue are stepped (detect/turn.h). */
struct pl_core_turn *pl_kernel_turn(struct pl_kernel *k, unsigned int queue);
