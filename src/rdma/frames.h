/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames to send: an engine builds them one behind the other in memory of the caller, in a batch
 * that pl_port_send takes as it is. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"
#include "wire/roce.h"

struct pl_frames {
	struct pl_build build;
	struct pl_batch batch;
};

/* Starts with no frames in `cap` bytes of the caller's memory; fewer than PL_ROCE_FRAME_MAX have no
 * room for a frame. */
static inline void pl_frames_init(struct pl_frames *frames, void *memory, size_t cap)
{
	frames->build = pl_build(memory, cap);
	frames->batch.n = 0;
}

/* Removes the frames after they were sent; the memory is used again. */
static inline void pl_frames_clear(struct pl_frames *frames)
{
	pl_frames_init(frames, frames->build.data, frames->build.cap);
}

/* Returns true when n more frames with up to `payload` bytes fit. */
static inline bool pl_frames_room(const struct pl_frames *frames, uint32_t n, uint32_t payload)
{
	return frames->batch.n + (uint64_t)n <= PL_BATCH_MAX &&
	       frames->build.cap - frames->build.len >=
		       (size_t)n * (PL_ROCE_OVERHEAD + ((payload + 3u) & ~3u));
}

static inline void pl_frames_name(struct pl_frames *frames, size_t at)
{
	assert(frames->batch.n < PL_BATCH_MAX && at <= frames->build.len);
	frames->batch.pkts[frames->batch.n++] = (struct pl_packet){ .data = frames->build.data + at,
		.len = (uint32_t)(frames->build.len - at),
		.wire_len = (uint32_t)(frames->build.len - at),
		.link = PL_LINK_ETHERNET };
}

/* Appends a frame for the caller to write; pl_frames_room must have returned that it fits. */
static inline uint8_t *pl_frames_make(struct pl_frames *frames, size_t len)
{
	const size_t at = frames->build.len;

	assert(len <= frames->build.cap - at);
	frames->build.len += len;
	pl_frames_name(frames, at);
	return frames->build.data + at;
}

/* Appends a frame; pl_frames_room must have returned that it fits. */
static inline void pl_frames_put(
	struct pl_frames *frames, const struct pl_roce *packet, const void *payload, size_t len)
{
	const size_t at = frames->build.len;

	pl_roce_put(&frames->build, packet, payload, len);
	if (!frames->build.full)
		pl_frames_name(frames, at);
}
