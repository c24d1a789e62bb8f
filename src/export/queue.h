/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring between a worker and a driver's thread: records of 128 bytes each, a path followed by
 * its hops; or packets as they arrived, entries of raw/message.h, in as many slots as each needs.
 * One thread puts, one takes; neither waits. An entry that does not fit is dropped whole (a path
 * with its hops) and counted.
 */
#pragma once

#include <stdint.h>

#include "base/counter.h"
#include "record/record.h"
#include "wire/packet.h"

struct pl_export_queue;

struct pl_export_queue_stats {
	struct pl_counter accepted; /* entries put; the producer writes */
	/* entries dropped because the ring was full */
	struct pl_counter full_paths, full_events, full_values, full_packets;
	struct pl_counter taken; /* entries taken; the consumer writes */
};

/* Makes a ring of `records` slots (paths, hops, events and values take one each), rounded up to a
 * power of two, at least 1024, at most 2^24. -ENOMEM, -EINVAL. */
int pl_export_queue_new(struct pl_export_queue **ret, uint32_t records);
void pl_export_queue_free(struct pl_export_queue *q);
uint64_t pl_export_queue_memory(uint32_t records);

/* The functions that put are the producer's. */
void pl_export_queue_put_paths(struct pl_export_queue *q, const struct pl_record_batch *batch);
void pl_export_queue_put_events(
	struct pl_export_queue *q, const struct pl_event *events, uint32_t n);

void pl_export_queue_put_values(
	struct pl_export_queue *q, const struct pl_value *values, uint32_t n);

void pl_export_queue_put_packets(struct pl_export_queue *q, const struct pl_batch *batch);

/* Room for entries other than paths; the caller sets the counts to zero. */
struct pl_export_taken {
	struct pl_event *events;
	struct pl_value *values;
	uint32_t cap_events, cap_values;
	uint32_t n_events, n_values;
	/* Packets, one entry behind the other; with packets, room for at least one. */
	uint8_t *packets;
	size_t cap_packets, packets_bytes;
	uint32_t n_packets;
};

/*
 * Consumer: appends entries to `paths` (cleared by the caller; room for one report at least) and to
 * `ret` until one of them is full or the ring is empty. Returns the number of entries, 0 when none
 * waited.
 */
uint32_t pl_export_queue_take(
	struct pl_export_queue *q, struct pl_record_batch *paths, struct pl_export_taken *ret);

/* Returns the entries waiting, accepted - taken, approximately; any thread. */
uint64_t pl_export_queue_waiting(const struct pl_export_queue *q);
const struct pl_export_queue_stats *pl_export_queue_stats(const struct pl_export_queue *q);
