/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An AF_XDP socket with its memory and rings, straight on the kernel's interface (linux/if_xdp.h).
 * libxdp has this too, but with a dispatcher program, object files on disk and BTF required at run
 * time; pathline loads one program of its own and would use only two pages of libxdp's code.
 *
 * Rings are single producer, single consumer, shared with the kernel. A frame is named by its
 * offset in the memory; it is in exactly one place: fill ring, kernel, receive ring or caller
 * (receiving); free list, transmit ring, kernel or completion ring (sending, netio/xsk_send.h).
 * Frames for sending stand behind those for receiving.
 */
#pragma once

#include <linux/if_xdp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "netio/rights.h"

struct pl_xsk_ring {
	uint32_t *producer, *consumer, *flags; /* shared with the kernel */
	void *entries;
	uint32_t mask;
	void *map;
	size_t map_bytes;
};

struct pl_xsk {
	int fd;
	uint8_t *memory;
	size_t memory_bytes;
	uint32_t frame_bytes; /* power of two */
	uint32_t recv_frames, send_frames;
	bool zero_copy, huge_pages;
	struct pl_xsk_ring rx, tx, fill,
		done; /* rx where frames are received, tx where they are sent */
};

enum pl_xsk_copy { PL_XSK_COPY_AUTO, PL_XSK_COPY_ZERO, PL_XSK_COPY_COPY };

struct pl_xsk_cfg {
	const char *ifname;
	int ifindex;
	uint32_t queue;
	/* Number of frames, and of entries of the rings; powers of two. 0: does not receive, or not
	 * send. */
	uint32_t recv, send;
	uint32_t frame_bytes; /* 2048 or 4096 */
	enum pl_xsk_copy copy;
	int node;                       /* NUMA node of the memory; -1 = any */
	const struct pl_rights *rights; /* NULL: our own */
};

/* Opens the socket; it receives once its descriptor is in the program's map. Negative errno with
 * diag: a missing capability, a queue in use, a feature that is not supported. On failure nothing
 * is left open. */
int pl_xsk_open(struct pl_xsk *x, const struct pl_xsk_cfg *cfg, struct pl_diag *diag);
void pl_xsk_close(struct pl_xsk *x);

static inline uint32_t pl_xsk_load(const uint32_t *shared)
{
	return __atomic_load_n(shared, __ATOMIC_ACQUIRE);
}

static inline void pl_xsk_store(uint32_t *shared, uint32_t value)
{
	__atomic_store_n(shared, value, __ATOMIC_RELEASE);
}

static inline struct xdp_desc *pl_xsk_desc(const struct pl_xsk_ring *r, uint32_t at)
{
	return (struct xdp_desc *)r->entries + (at & r->mask);
}

static inline uint64_t *pl_xsk_addr(const struct pl_xsk_ring *r, uint32_t at)
{
	return (uint64_t *)r->entries + (at & r->mask);
}

static inline bool pl_xsk_needs_wakeup(const struct pl_xsk_ring *r)
{
	return (__atomic_load_n(r->flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP) != 0;
}
