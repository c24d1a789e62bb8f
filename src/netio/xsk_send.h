/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames out of an AF_XDP socket's memory onto the wire. A frame is on the free list, in the
 * transmit ring, with the kernel, or in the completion ring. Where the kernel copies it takes
 * frames only in our system calls, some 32 in each; where it does not the driver takes them by
 * itself, and is woken when it sleeps.
 */
#pragma once

#include "netio/xsk.h"
#include "wire/packet.h"

struct pl_xsk_send {
	uint32_t *free, nfree; /* numbers of frames */
	uint64_t sent;         /* frames put into the ring */
	/* times that there was no room, in the ring or the socket, and it was waited for */
	uint64_t full;
	/* of those sent: the driver threw them away, or they stood in the ring when it was
	 * closed */
	uint64_t dropped;
};

/* Room for the free list of so many frames. -ENOMEM. */
int pl_xsk_send_init(struct pl_xsk_send *s, uint32_t frames);
void pl_xsk_send_done(struct pl_xsk_send *s);

/* The socket was opened: all of its frames are free. */
void pl_xsk_send_begin(struct pl_xsk_send *s, const struct pl_xsk *x);
/* It is about to be closed: what is still in its ring will not be sent, and is counted. */
void pl_xsk_send_end(struct pl_xsk_send *s, const struct pl_xsk *x);

/* Sends frames, each no longer than x->frame_bytes. Returns how many were put into the ring, and in
 * *ret_error 0, or what is wrong, a negative errno: -ETIMEDOUT when the interface took none for a
 * second. Frames in the ring go out with the next ones then. */
uint32_t pl_xsk_send(struct pl_xsk_send *s, const struct pl_xsk *x, const struct pl_packet *frames,
	uint32_t n, int *ret_error);

/* Waits until the kernel is done with all frames. 0 or as *ret_error above. */
int pl_xsk_send_drain(struct pl_xsk_send *s, const struct pl_xsk *x);
