/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tmpkt/1: records of packets in UDP datagrams, from exporters (a tap, a switch, a NIC) to
 * collectors. docs/protocols/tmpkt.md has the bytes. All numbers are little-endian, as in the
 * records behind the header.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock_kind.h"
#include "record/packet.h"

#define PL_TMPKT_HEADER_BYTES   32
#define PL_TMPKT_DATAGRAM_BYTES 8972 /* payload of a packet of 9000 bytes over IPv4 */
#define PL_TMPKT_PORT           40050

struct pl_tmpkt {
	enum pl_flat_kind kind;
	enum pl_clock_kind clock; /* of the records' times; PL_STAMP_NONE: not named */
	uint16_t count;           /* records; 0: an empty datagram */
	uint32_t exporter;
	uint32_t seq;     /* number of the datagram at its exporter, modulo 2^32 */
	uint64_t base_ns; /* time of the first record */
	uint64_t hash;    /* flow hash of the first record */
};

enum pl_tmpkt_fault {
	PL_TMPKT_OK,
	PL_TMPKT_SHORT,
	PL_TMPKT_MAGIC,
	PL_TMPKT_VERSION,
	PL_TMPKT_KIND,
	PL_TMPKT_LENGTH, /* not the length of `count` records */
};

/* Reads the header. *ret_records points into data, at any alignment. */
enum pl_tmpkt_fault pl_tmpkt_parse(
	struct pl_tmpkt *ret, const uint8_t **ret_records, const void *data, size_t len);

void pl_tmpkt_put(uint8_t dst[PL_TMPKT_HEADER_BYTES], const struct pl_tmpkt *header);

/* Returns the number of records of a kind that fit into this number of payload bytes of a
 * datagram. */
uint32_t pl_tmpkt_fits(enum pl_flat_kind kind, size_t bytes);
