/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format "raw/1" for packets as they arrived, to be stored and decoded later: the value of a
 * Kafka message, or of a spool's record, consists of entries, one behind the other. An entry is
 *
 *   struct pl_raw_head   64 bytes, numbers little-endian, addresses in network order
 *   head.len bytes       of the packet
 *   zeros                up to a multiple of 8 bytes
 *
 * Entries come from outside: any bytes are either an entry or an error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define PL_RAW_VERSION   1
#define PL_RAW_FORMAT    "raw/1"
#define PL_RAW_LEN_MAX   (UINT32_C(1) << 18) /* most bytes of a packet, the longest of a capture */
#define PL_RAW_ENTRY_MAX (sizeof(struct pl_raw_head) + PL_RAW_LEN_MAX)

/* Members have the meaning they have in struct pl_packet. */
struct pl_raw_head {
	uint64_t ts_ns; /* arrival, since the Unix epoch */
	uint8_t src[16], dst[16];
	uint16_t sport;
	uint16_t dport; /* or gso_size, as in struct pl_packet */
	uint32_t len;
	uint32_t wire_len;
	uint8_t link;  /* enum pl_link, below PL_LINK_MAX */
	uint8_t out;   /* 0 or 1 */
	uint8_t clock; /* enum pl_clock_kind */
	uint8_t gso;   /* enum pl_gso */
	uint8_t zero[8];
};
_Static_assert(sizeof(struct pl_raw_head) == 64, "an entry begins with 64 bytes");

void pl_raw_head_make(struct pl_raw_head *ret, const struct pl_packet *packet);

/* Returns the bytes of an entry for a packet of len bytes. */
static inline size_t pl_raw_entry_size(uint32_t len)
{
	return sizeof(struct pl_raw_head) + (((size_t)len + 7) & ~(size_t)7);
}

/* Reads the entry at *at of `len` bytes: 1, with its packet, which points into it, and *at behind
 * it; 0 at the end; -EBADMSG: no valid entry, and nothing behind it can be read. */
int pl_raw_next(const void *data, size_t len, size_t *at, struct pl_packet *ret);

/* Returns a hash that chooses the partition: packets of one source share it, so that a reader gets
 * its sequence numbers in order. In a frame the outer source address counts. */
uint64_t pl_raw_hash(const struct pl_packet *packet);
