/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detection in the kernel as its owner sees it: the program of detect/kernel.h with the options of
 * detect/events.h, the ticks over its tables, and everything told in one batch of events.
 *
 *   pl_kernel_detect_new(&kd, &options, &diag)
 *   pl_kernel_detect_poll(kd, …)   every 200 us or so: moves the program's clock, takes its events
 *   pl_kernel_detect_tick(kd, …)   every 100 ms or so: ends what is over, tells what waits and what
 *                                  was lost
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

/* As pl_kernel_open; -EINVAL also as pl_detect_new. */
int pl_kernel_detect_new(struct pl_kernel_detect **ret,
	const struct pl_kernel_detect_options *options, struct pl_diag *diag);
void pl_kernel_detect_free(struct pl_kernel_detect *kd);
uint64_t pl_kernel_detect_memory(const struct pl_kernel_detect_options *options);

/* The program itself: to attach it, for frames, counters and what is wanted in full. */
struct pl_kernel *pl_kernel_detect_kernel(struct pl_kernel_detect *kd);

/* Returns how many events came. */
unsigned int pl_kernel_detect_poll(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);
void pl_kernel_detect_tick(
	struct pl_kernel_detect *kd, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);

/* What the flows' own numbers say (detect/flow_numbers.h), of what was escalated; and into flows of
 * the queues' tables. */
const struct pl_flow_number_counters *pl_kernel_detect_flow_numbers(
	const struct pl_kernel_detect *kd);
void pl_kernel_detect_add_numbers(
	const struct pl_kernel_detect *kd, struct pl_flow_seen *flows, uint32_t n);

/* Other rules from here on, as pl_detect_change. */
int pl_kernel_detect_change(struct pl_kernel_detect *kd, const struct pl_detect_options *options,
	uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out);

/* The program's and the ticks' together. -errno. */
int pl_kernel_detect_counters(struct pl_kernel_detect *kd, struct pl_kernel_counters *ret);

/* The detectors over the queues' tables, for whoever reads them: levels raised, flows, aggregates.
 * A flow whose reports come by several queues is several. Returns how many. */
unsigned int pl_kernel_detect_queues(
	const struct pl_kernel_detect *kd, struct pl_detect *const **ret);

/*
 * Reports out of frames of that queue, which the program escalated, in the tables in which it
 * detects those that it settles. now_ns as given to pl_kernel_detect_poll last: one clock for both.
 */
void pl_kernel_detect_batch(struct pl_kernel_detect *kd, unsigned int queue,
	const struct pl_record_batch *batch, uint64_t now_ns, struct pl_event_batch *out);

/*
 * All frames that pl_kernel_frames gave were stepped; all: and it gave none. Where the program
 * escalates whatever comes because older reports wait (core/turn.h), it goes on by itself once all
 * are stepped, or after 20 ms of more than can be.
 */
void pl_kernel_detect_caught_up(struct pl_kernel_detect *kd, bool all, uint64_t now_ns);

/* A sequence number out of a frame of that queue, which the program did not read or left
 * (detect/numbers.h): into the account of its exporter that the program began. Whether the exporter
 * is proven (core/sequence.h). */
bool pl_kernel_detect_number(struct pl_kernel_detect *kd, unsigned int queue,
	const struct pl_core_numbered *n, enum pl_kernel_number kind, uint64_t now_ns,
	uint64_t ts_ns);

/* Sequence spaces that the tables have, counted by the program or here; start with *pos = 0; false
 * at the end. */
bool pl_kernel_detect_exporter(
	const struct pl_kernel_detect *kd, uint64_t *pos, struct pl_exporter *ret);

/* The nodes of a complete path, when aggregates are kept and it was taken lately. */
bool pl_kernel_detect_path(
	const struct pl_kernel_detect *kd, uint64_t path_id, struct pl_path_nodes *ret);
