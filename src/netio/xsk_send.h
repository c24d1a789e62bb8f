/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends frames from the memory of an AF_XDP socket. A frame is on the free list, in the transmit
 * ring, with the kernel, or in the completion ring. In copy mode the kernel takes frames only in
 * our system calls, some 32 in each; with zero-copy the driver takes them without a call, and is
 * woken when it sleeps.
 */
#pragma once

#include "netio/xsk.h"
#include "wire/packet.h"

struct pl_xsk_send {
	uint32_t *free, nfree; /* stack of numbers of frames */
	uint64_t sent;         /* frames put into the ring */
	/* times that sending waited for room in the ring or the socket */
	uint64_t full;
	/* of those sent: dropped by the driver, or still in the ring when it was closed */
	uint64_t dropped;
};

/* Allocates the free list for this number of frames. Returns 0 or -ENOMEM. */
int pl_xsk_send_init(struct pl_xsk_send *s, uint32_t frames);
void pl_xsk_send_done(struct pl_xsk_send *s);

/* Puts all frames of a newly opened socket on the free list. */
void pl_xsk_send_begin(struct pl_xsk_send *s, const struct pl_xsk *x);
/* Counts the frames that are still in the ring as dropped; call it before the socket is closed. */
void pl_xsk_send_end(struct pl_xsk_send *s, const struct pl_xsk *x);

/* Sends frames, each no longer than x->frame_bytes. Returns how many were put into the ring.
 * *ret_error: 0 or negative errno; -ETIMEDOUT when the interface took none for a second, and the
 * frames in the ring go out with the next ones. */
uint32_t pl_xsk_send(struct pl_xsk_send *s, const struct pl_xsk *x, const struct pl_packet *frames,
	uint32_t n, int *ret_error);

/* Waits until the kernel is done with all frames. 0 or as *ret_error above. */
int pl_xsk_send_drain(struct pl_xsk_send *s, const struct pl_xsk *x);
