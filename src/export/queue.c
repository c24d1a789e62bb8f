/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of records between a worker and a driver. */
#include "export/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "raw/message.h"

#define RECORDS_MIN 1024
#define RECORDS_MAX (1U << 24)

/* Records are of one size: a slot holds any kind. */
union slot {
	struct pl_path path;
	struct pl_hop hop;
	struct pl_event event;
	struct pl_value value;
	struct pl_raw_head packet; /* head of an entry; its bytes follow */
	uint8_t bytes[128];
};

_Static_assert(sizeof(union slot) == 128, "records are 128 bytes");

enum kind { KIND_PATH, KIND_EVENT, KIND_VALUE, KIND_PACKET };

/* head and tail count records since the start. Each side has its own cache line with its own copy
 * of the other's position, which it reads again only when it seems out of room or work. */
struct pl_export_queue {
	union slot *slots;
	uint8_t *kinds; /* kind of each entry's first slot */
	uint32_t mask;
	_Alignas(64) _Atomic uint64_t head; /* producer */
	uint64_t tail_seen;
	_Alignas(64) _Atomic uint64_t tail; /* consumer */
	uint64_t head_seen;
	_Alignas(64) struct pl_export_queue_stats stats;
};

static uint32_t slot_count(uint32_t records)
{
	uint32_t n = RECORDS_MIN;

	while (n < records)
		n *= 2;
	return n;
}

uint64_t pl_export_queue_memory(uint32_t records)
{
	uint64_t n = slot_count(records <= RECORDS_MAX ? records : RECORDS_MAX);

	return sizeof(struct pl_export_queue) + n * (sizeof(union slot) + 1);
}

int pl_export_queue_new(struct pl_export_queue **ret, uint32_t records)
{
	struct pl_export_queue *q;
	uint32_t n;

	if (records > RECORDS_MAX)
		return -EINVAL;
	n = slot_count(records);
	q = aligned_alloc(_Alignof(struct pl_export_queue), sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->mask = n - 1;
	q->slots = aligned_alloc(64, n * sizeof(*q->slots));
	q->kinds = calloc(n, 1);
	if (q->slots == NULL || q->kinds == NULL) {
		pl_export_queue_free(q);
		return -ENOMEM;
	}
	memset(q->slots, 0, n * sizeof(*q->slots)); /* maps the pages before the first reports */
	*ret = q;
	return 0;
}

void pl_export_queue_free(struct pl_export_queue *q)
{
	if (q == NULL)
		return;
	free(q->slots);
	free(q->kinds);
	free(q);
}

static bool room(struct pl_export_queue *q, uint64_t head, uint32_t n)
{
	if (head + n - q->tail_seen <= (uint64_t)q->mask + 1)
		return true;
	q->tail_seen = atomic_load_explicit(&q->tail, memory_order_acquire);
	return head + n - q->tail_seen <= (uint64_t)q->mask + 1;
}

void pl_export_queue_put_paths(struct pl_export_queue *q, const struct pl_record_batch *batch)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	uint64_t put = 0;

	for (uint32_t i = 0; i < batch->n_paths; i++) {
		const struct pl_path *path = &batch->paths[i];
		const struct pl_hop *hops = batch->hops + batch->first_hop[i];

		if (!room(q, head, 1U + path->hop_count))
			continue; /* a shorter path may fit */
		q->kinds[head & q->mask] = KIND_PATH;
		q->slots[head++ & q->mask].path = *path;
		for (unsigned int h = 0; h < path->hop_count; h++)
			q->slots[head++ & q->mask].hop = hops[h];
		put++;
	}
	pl_count(&q->stats.accepted, put);
	pl_count(&q->stats.full_paths, batch->n_paths - put);
	atomic_store_explicit(&q->head, head, memory_order_release);
}

void pl_export_queue_put_events(
	struct pl_export_queue *q, const struct pl_event *events, uint32_t n)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	uint32_t put = 0;

	for (; put < n && room(q, head, 1); put++) {
		q->kinds[head & q->mask] = KIND_EVENT;
		q->slots[head++ & q->mask].event = events[put];
	}
	pl_count(&q->stats.accepted, put);
	pl_count(&q->stats.full_events, n - put);
	atomic_store_explicit(&q->head, head, memory_order_release);
}

void pl_export_queue_put_values(
	struct pl_export_queue *q, const struct pl_value *values, uint32_t n)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	uint32_t put = 0;

	for (; put < n && room(q, head, 1); put++) {
		q->kinds[head & q->mask] = KIND_VALUE;
		q->slots[head++ & q->mask].value = values[put];
	}
	pl_count(&q->stats.accepted, put);
	pl_count(&q->stats.full_values, n - put);
	atomic_store_explicit(&q->head, head, memory_order_release);
}

/* Copies n bytes into the slots from `at` on, starting `skip` bytes behind their beginning. */
static void copy_in(
	struct pl_export_queue *q, uint64_t at, size_t skip, const uint8_t *from, size_t len)
{
	while (len > 0) {
		union slot *s = &q->slots[(at + skip / sizeof(*s)) & q->mask];
		const size_t in = skip % sizeof(*s), room = sizeof(*s) - in;
		const size_t n = len < room ? len : room;

		memcpy(s->bytes + in, from, n);
		from += n;
		skip += n;
		len -= n;
	}
}

/* Returns the slots needed for a packet of `len` bytes. */
static uint32_t slots_of(uint32_t len)
{
	return (uint32_t)((pl_raw_entry_size(len) + sizeof(union slot) - 1) / sizeof(union slot));
}

void pl_export_queue_put_packets(struct pl_export_queue *q, const struct pl_batch *batch)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	uint64_t put = 0;

	for (uint32_t i = 0; i < batch->n; i++) {
		const struct pl_packet *p = &batch->pkts[i];
		const uint32_t n = slots_of(p->len);

		if (p->len > PL_RAW_LEN_MAX || !room(q, head, n))
			continue; /* a shorter packet may fit */
		q->kinds[head & q->mask] = KIND_PACKET;
		pl_raw_head_make(&q->slots[head & q->mask].packet, p);
		copy_in(q, head, sizeof(struct pl_raw_head), p->data, p->len);
		head += n;
		put++;
	}
	pl_count(&q->stats.accepted, put);
	pl_count(&q->stats.full_packets, batch->n - put);
	atomic_store_explicit(&q->head, head, memory_order_release);
}

/* Copies the packet at `tail`; returns false when *ret has no room for it. */
static bool take_packet(struct pl_export_queue *q, uint64_t tail, struct pl_export_taken *ret)
{
	const uint32_t len = q->slots[tail & q->mask].packet.len;
	const size_t size = pl_raw_entry_size(len), bytes = sizeof(struct pl_raw_head) + len;
	uint8_t *to = ret->packets + ret->packets_bytes;

	if (ret->cap_packets - ret->packets_bytes < size)
		return false;
	for (size_t at = 0; at < bytes; at += sizeof(union slot)) {
		const size_t n = bytes - at < sizeof(union slot) ? bytes - at : sizeof(union slot);

		memcpy(to + at, q->slots[tail++ & q->mask].bytes, n);
	}
	memset(to + bytes, 0, size - bytes);
	ret->packets_bytes += size;
	ret->n_packets++;
	return true;
}

/* Copies the path at `tail` with its hops; returns false when the batch has no room for it. */
static bool take_path(struct pl_export_queue *q, uint64_t tail, struct pl_record_batch *paths)
{
	const struct pl_path *path = &q->slots[tail & q->mask].path;
	uint32_t p = paths->n_paths;

	if (p == paths->cap_paths || paths->cap_hops - paths->n_hops < path->hop_count)
		return false;
	paths->paths[p] = *path;
	paths->first_hop[p] = paths->n_hops;
	paths->pkt[p] = 0;
	for (unsigned int h = 0; h < path->hop_count; h++)
		paths->hops[paths->n_hops++] = q->slots[++tail & q->mask].hop;
	paths->n_paths++;
	return true;
}

uint32_t pl_export_queue_take(
	struct pl_export_queue *q, struct pl_record_batch *paths, struct pl_export_taken *ret)
{
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
	uint32_t taken = 0;

	if (tail == q->head_seen)
		q->head_seen = atomic_load_explicit(&q->head, memory_order_acquire);
	while (tail != q->head_seen) {
		const union slot *at = &q->slots[tail & q->mask];

		if (q->kinds[tail & q->mask] == KIND_EVENT) {
			if (ret->n_events == ret->cap_events)
				break;
			ret->events[ret->n_events++] = at->event;
			tail++;
		} else if (q->kinds[tail & q->mask] == KIND_VALUE) {
			if (ret->n_values == ret->cap_values)
				break;
			ret->values[ret->n_values++] = at->value;
			tail++;
		} else if (q->kinds[tail & q->mask] == KIND_PACKET) {
			const uint32_t n = slots_of(at->packet.len);

			if (!take_packet(q, tail, ret))
				break;
			tail += n;
		} else {
			uint32_t n = 1U + at->path.hop_count;

			if (!take_path(q, tail, paths))
				break;
			tail += n;
		}
		taken++;
	}
	pl_count(&q->stats.taken, taken);
	atomic_store_explicit(&q->tail, tail, memory_order_release);
	return taken;
}

uint64_t pl_export_queue_waiting(const struct pl_export_queue *q)
{
	uint64_t taken = pl_counter_read(&q->stats.taken);
	uint64_t accepted = pl_counter_read(&q->stats.accepted);

	return accepted > taken ? accepted - taken : 0;
}

const struct pl_export_queue_stats *pl_export_queue_stats(const struct pl_export_queue *q)
{
	return &q->stats;
}
