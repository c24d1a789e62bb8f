/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The detector in the kernel (bpf/detect.bpf.c): loading, rules, and results. Report traffic on the
 * interfaces that its program is attached to is read, detected and dropped in the kernel; these
 * functions give its events, the frames that it did not settle, and its counts.
 *
 *   pl_kernel_open(&k, &options, &diag);
 *   pl_xdp_attach(&xdp, "eth0", pl_kernel_program(k)->prog_fd, …)   or as the program of an afxdp:
 *   port
 *   every 200 us or so:  pl_kernel_time, pl_kernel_events, pl_kernel_frames
 *   now and then:        a tick over pl_kernel_tables, pl_kernel_counters
 *   pl_kernel_close(k); the program is freed with the last descriptor and attachment
 *
 * The reader polls at its own pace; the program does not wake it. The program counts reports by the
 * sequence numbers of their exporters itself, settled or not, as far as it can read the header; the
 * decoder of escalated reports counts the others (an exporter with a profile that the program does
 * not know).
 *
 * One thread calls these functions; other threads may call pl_kernel_time and read counters.
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
	const struct pl_core_rules *rules;      /* copied; its masks are the sizes of the tables */
	const struct pl_decode_options *decode; /* profiles, plausibility limit */
	unsigned int queues;                    /* receive queues with state of their own; 0: 1 */
	uint32_t events_bytes; /* ring of events; 0: 4 MiB. Rounded up to a power of two of pages */
	uint32_t frames_bytes; /* ring of frames; 0: 4 MiB */
	/* escalated frames go to AF_XDP sockets if there are any; else into the ring */
	bool to_sockets;
	bool both; /* settled reports go to the sockets too, and all others into the ring */
};

/* Loads the program. Returns 0, or a negative errno with a sentence that names what is missing:
 * -EPERM the capability, -ENOTSUP a program without kernel parts or a kernel that refuses this one,
 * -ENOMEM, -EINVAL. The caller may then detect in user space. */
int pl_kernel_open(
	struct pl_kernel **ret, const struct pl_kernel_options *options, struct pl_diag *diag);
void pl_kernel_close(struct pl_kernel *k);

/* Kernel memory that the maps take, in bytes. */
uint64_t pl_kernel_memory(const struct pl_kernel_options *options);

/* Program for pl_xdp_attach, or for ports (pl_port_options.program). It lives as long as k. The
 * port sets its filter, or pl_filter_set does. */
const struct pl_xdp_program *pl_kernel_program(const struct pl_kernel *k);

/* Sets the time at which reports are detected: monotonic, and since the Unix epoch. Before the
 * first call the program sees 0. */
void pl_kernel_time(struct pl_kernel *k, uint64_t now_ns, uint64_t ts_ns);

/* Time since the Unix epoch that was set last. */
uint64_t pl_kernel_ts_ns(const struct pl_kernel *k);

/* Changes the rules, at once for the next report; masks and secret stay. The caller then empties
 * the bands (detect_state.h). */
void pl_kernel_rules(struct pl_kernel *k, const struct pl_core_rules *rules);
const struct pl_core_rules *pl_kernel_rules_now(const struct pl_kernel *k);

/* Settled reports that are copied into the ring of frames, to be stored: 1 in `sample`, and those
 * that match every field that is given. All zero: none. */
struct pl_kernel_wanted {
	uint32_t sample;
	bool match;
	uint32_t flags; /* PL_FLAG_*: any of them */
	bool node_set;
	uint64_t node;
	struct pl_addr addr; /* source or destination of the flow; zero: any */
};
void pl_kernel_want(struct pl_kernel *k, const struct pl_kernel_wanted *wanted);

/* Learns the layout of a report of `exporter` that was escalated for PL_ESCALATION_LAYOUT. The
 * caller does so once the exporter is proven (core/sequence.h), since a layout is never forgotten.
 * One source (pl_addr_source) has at most PL_KERNEL_LAYOUTS_SHARE of the table; reports that need
 * more are in the counter layouts_full. True when a layout was added. */
#define PL_KERNEL_LAYOUTS_SHARE 32
bool pl_kernel_learn(
	struct pl_kernel *k, const struct pl_packet *pkt, const struct pl_addr *exporter);

/* Moves events into the batch, which is flushed when full; returns how many. */
unsigned int pl_kernel_events(struct pl_kernel *k, struct pl_event_batch *out);

/* Description of a frame of the ring. */
struct pl_kernel_frame_of {
	bool settled;   /* a copy of a settled report */
	bool layout;    /* escalated for its layout: see pl_kernel_learn */
	uint8_t number; /* enum pl_kernel_number */
	uint16_t queue;
	struct pl_core_numbered numbered; /* the number; a frame of length 0 has only this */
};

/* Gives frames of the ring, for each queue in the order of arrival, at most PL_BATCH_MAX; they live
 * until the next call. A frame of length 0 is the number of a settled report that was left to user
 * space (detect/numbers.h). Returns how many. */
unsigned int pl_kernel_frames(
	struct pl_kernel *k, struct pl_batch *ret, struct pl_kernel_frame_of *ret_of);

/* Switches the fast path of the program (core/detect_fast.h) off when `on`. Events, tables and
 * counts are the same, and can be compared. */
void pl_kernel_general(struct pl_kernel *k, bool on);

/* Sums the counters of all processors. Returns 0 or -errno. */
int pl_kernel_counters(struct pl_kernel *k, struct pl_kernel_counters *ret);

/* Tables of the program, for ticks and harvests (detect_state.h says who may write what): the sets
 * of all queues, one queue after the other. */
struct pl_kernel_table {
	void *sets; /* struct pl_core_T_set */
	uint32_t n; /* number of sets: queues * (mask + 1) */
};
const struct pl_kernel_table *pl_kernel_tables(const struct pl_kernel *k); /* by PL_CORE_T_* */
unsigned int pl_kernel_queues(const struct pl_kernel *k);

/* Turn by which the tables of a queue are stepped (detect/turn.h). */
struct pl_core_turn *pl_kernel_turn(struct pl_kernel *k, unsigned int queue);
