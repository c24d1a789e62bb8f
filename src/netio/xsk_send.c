/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends frames from the memory of an AF_XDP socket. */
#include "netio/xsk_send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"

#define WAIT_NS  UINT64_C(1000000000)
#define PAUSE_NS 50000

int pl_xsk_send_init(struct pl_xsk_send *s, uint32_t frames)
{
	*s = (struct pl_xsk_send){ .free = calloc(frames, sizeof(*s->free)) };
	return s->free != NULL ? 0 : -ENOMEM;
}

void pl_xsk_send_done(struct pl_xsk_send *s)
{
	free(s->free);
	*s = (struct pl_xsk_send){ .free = NULL };
}

void pl_xsk_send_begin(struct pl_xsk_send *s, const struct pl_xsk *x)
{
	/* Frames are taken from the end of the list, in ascending order. Those for receiving come
	 * first in the memory. */
	for (uint32_t i = 0; i < x->send_frames; i++)
		s->free[i] = x->recv_frames + x->send_frames - 1 - i;
	s->nfree = x->send_frames;
}

static uint32_t in_ring(const struct pl_xsk *x)
{
	return *x->tx.producer - pl_xsk_load(x->tx.consumer);
}

void pl_xsk_send_end(struct pl_xsk_send *s, const struct pl_xsk *x)
{
	s->dropped += in_ring(x);
}

static void take_back(struct pl_xsk_send *s, const struct pl_xsk *x)
{
	const struct pl_xsk_ring *done = &x->done;
	const uint32_t at = *done->consumer, n = pl_xsk_load(done->producer) - at;

	for (uint32_t i = 0; i < n; i++)
		s->free[s->nfree++] = (uint32_t)(*pl_xsk_addr(done, at + i) / x->frame_bytes);
	pl_xsk_store(done->consumer, at + n);
}

/* Wakes the kernel to transmit frames from the ring, all or some. Returns 0 or negative errno. */
static int kick(struct pl_xsk_send *s, const struct pl_xsk *x)
{
	if (x->zero_copy && !pl_xsk_needs_wakeup(&x->tx))
		return 0;
	if (sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0)
		return 0;
	switch (errno) {
	case EBUSY:
		/* In copy mode EBUSY means that the driver dropped a frame. */
		s->dropped += !x->zero_copy;
		return 0;
	case EAGAIN: /* too many at once, or no room in the socket or the driver's queue */
	case ENOBUFS:
	case EINTR:
		return 0;
	case ENXIO: /* the interface is gone */
		return -ENETDOWN;
	default:
		return -errno;
	}
}

/* Kicks until `wanted` frames are free and, in copy mode, the ring is empty. 0 or negative
 * errno. */
static int kick_until(struct pl_xsk_send *s, const struct pl_xsk *x, uint32_t wanted)
{
	uint32_t taken = pl_xsk_load(x->tx.consumer), free = s->nfree;
	uint64_t since_ns = 0;

	for (;;) {
		const uint32_t before_taken = taken, before_free = free;
		int r = kick(s, x);

		if (r < 0)
			return r;
		take_back(s, x);
		free = s->nfree;
		taken = pl_xsk_load(x->tx.consumer);
		if (free >= wanted && (x->zero_copy || taken == *x->tx.producer))
			return 0;
		if (taken != before_taken || free != before_free) {
			since_ns = 0;
			continue;
		}
		if (since_ns == 0) {
			since_ns = pl_clock_mono_ns();
			s->full++;
		} else if (pl_clock_mono_ns() - since_ns >= WAIT_NS) {
			return -ETIMEDOUT;
		}
		(void)nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	}
}

static uint32_t put(
	struct pl_xsk_send *s, const struct pl_xsk *x, const struct pl_packet *frames, uint32_t n)
{
	const struct pl_xsk_ring *tx = &x->tx;
	const uint32_t at = *tx->producer;

	if (n > s->nfree)
		n = s->nfree;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t addr = (uint64_t)s->free[--s->nfree] * x->frame_bytes;

		memcpy(x->memory + addr, frames[i].data, frames[i].len);
		*pl_xsk_desc(tx, at + i) = (struct xdp_desc){ .addr = addr, .len = frames[i].len };
	}
	pl_xsk_store(tx->producer, at + n);
	s->sent += n;
	return n;
}

uint32_t pl_xsk_send(struct pl_xsk_send *s, const struct pl_xsk *x, const struct pl_packet *frames,
	uint32_t n, int *ret_error)
{
	uint32_t done = 0;

	*ret_error = 0;
	take_back(s, x);
	while (done < n && *ret_error == 0) {
		done += put(s, x, frames + done, n - done);
		*ret_error = kick_until(s, x, done < n);
	}
	return done;
}

int pl_xsk_send_drain(struct pl_xsk_send *s, const struct pl_xsk *x)
{
	return kick_until(s, x, x->send_frames);
}
