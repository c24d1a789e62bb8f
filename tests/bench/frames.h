/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of benchmarks, in memory: 64 k slots of 2 KiB, so that headers are not in the cache when
 * they are read. Frames are of TCP with timestamps or of UDP, 200 bytes of payload each, of as many
 * flows as there are slots; datagrams are of tmpkt/1 with pkt64 records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

#define PL_FRAMES_SLOTS     (1u << 16)
#define PL_FRAMES_DATAGRAMS (1u << 13)

struct pl_frames {
	uint8_t *memory;
	uint32_t len;   /* of what is in a slot */
	uint32_t slots; /* that are filled */
	uint32_t at;    /* the slot that is lent next */
	uint32_t seq;   /* of the next datagram */
	bool datagrams;
};

/* One frame, number i, of PL_IP_TCP or PL_IP_UDP. Returns its length. */
uint32_t pl_frames_make(uint8_t *dst, uint32_t cap, uint32_t i, uint8_t proto);

/* -ENOMEM. Fills slots with frames, or with datagrams of `each` records; may be called again. */
int pl_frames_packets(struct pl_frames *f, uint8_t proto);
int pl_frames_tmpkt(struct pl_frames *f, uint32_t each);
void pl_frames_done(struct pl_frames *f);

/* The next PL_BATCH_MAX slots. Datagrams are numbered anew: each is the next one of its exporter. */
void pl_frames_lend(struct pl_frames *f, struct pl_batch *batch);
