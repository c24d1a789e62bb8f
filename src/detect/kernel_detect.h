/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection in the kernel for its owner: the program of detect/kernel.h with the options of
 * detect/events.h, the ticks over its tables, and all events in one batch.
 *
 *   pl_kernel_detect_new(&kd, &options, &diag)
 *   pl_kernel_detect_poll(kd, …)   every 200 us or so: moves the program's clock, takes its events
 *   pl_kernel_detect_tick(kd, …)   every 100 ms or so: ends expired states, reports waiting events
 *                                  and losses
 *
 *   pl_kernel_frames, pl_kernel_detect_number, pl_kernel_detect_batch, pl_kernel_detect_caught_up
 *                                  what the program escalated, read by a decoder
 *
 * One thread.
 */
#pragma once

#include "detect/kernel.h"

struct pl_kernel_detect;

struct pl_kernel_detect_options {
	const struct pl_detect_options *detect;
	const struct pl_decode_options *decode;
	unsigned int queues;
	uint32_t events_bytes, frames_bytes;
	bool to_sockets, both; /* as in pl_kernel_options */
};

/* Loads the program as pl_kernel_open does; returns -EINVAL also as pl_detect_new. */
int pl_kernel_detect_new(struct pl_kernel_detect **ret,
	const struct pl_kernel_detect_options *options, struct pl_diag *diag);
void pl_kernel_detect_free(struct pl_kernel_detect *kd);
uint64_t pl_kernel_detect_memory(const struct pl_kernel_detect_options *options);

/* Returns the program itself: to attach it, and for frames, counters and copies of reports. */
struct pl_kernel *pl_kernel_detect_kernel(struct pl_kernel_detect *kd);

/* Moves the program's clock and takes its events; returns how many. */
unsigned int pl_kernel_detect_poll(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
void pl_kernel_detect_tick(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);

/* Counters of the flows' own numbers (detect/flow_numbers.h), of escalated reports; and the numbers
 * of flows in the queues' tables. */
const struct pl_flow_number_counters *pl_kernel_detect_flow_numbers(
	const struct pl_kernel_detect *kd);
void pl_kernel_detect_add_numbers(
	const struct pl_kernel_detect *kd, struct pl_flow_seen *flows, uint32_t n);

/* Changes the rules from here on, as pl_detect_change does. */
int pl_kernel_detect_change(struct pl_kernel_detect *kd, const struct pl_detect_options *options,
	uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);

/* Ends all that has begun, as pl_detect_end does, once no interface has the program any more. */
void pl_kernel_detect_end(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);

/* Counters of the program and the ticks together; their accounts are of all exporters, also of the
 * present ones. Returns 0 or -errno. */
int pl_kernel_detect_counters(struct pl_kernel_detect *kd, struct pl_kernel_counters *ret);

/* Detectors over the queues' tables, for reading: levels raised, flows, aggregates. A flow whose
 * reports come by several queues is in several. Returns how many. */
unsigned int pl_kernel_detect_queues(
	const struct pl_kernel_detect *kd, struct pl_detect *const **ret);

/* Steps reports of frames of that queue, which the program escalated, in the tables in which it
 * detects the reports that it settles. now_ns is the one given to pl_kernel_detect_poll last: one
 * clock for both. */
void pl_kernel_detect_batch(struct pl_kernel_detect *kd, unsigned int queue,
	const struct pl_record_batch *batch, uint64_t now_ns, struct pl_event_batch *out);

/* Marks that all frames of pl_kernel_frames were processed; all: and that it gave no more. While
 * older reports wait, the program escalates every report (core/turn.h); it settles reports again
 * once all are processed, or after 20 ms if there are too many. */
void pl_kernel_detect_caught_up(struct pl_kernel_detect *kd, bool all, uint64_t now_ns);

/* Counts a sequence number of a frame of that queue, which the program did not read or left
 * (detect/numbers.h), in the account of its exporter that the program began. True when the exporter
 * is proven (core/sequence.h). */
bool pl_kernel_detect_number(struct pl_kernel_detect *kd, unsigned int queue,
	const struct pl_core_numbered *n, enum pl_kernel_number kind, uint64_t now_ns,
	uint64_t ts_ns);

/* Iterates over the sequence spaces of the tables, counted by the program or here: start with *pos
 * = 0; false at the end. */
bool pl_kernel_detect_exporter(
	const struct pl_kernel_detect *kd, uint64_t *pos, struct pl_exporter *ret);

/* Nodes of a complete path; false unless aggregates are kept and a packet took it lately. */
bool pl_kernel_detect_path(
	const struct pl_kernel_detect *kd, uint64_t path_id, struct pl_path_nodes *ret);
