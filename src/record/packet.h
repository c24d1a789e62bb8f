/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of packets, DNS messages and flows, generated from fields.def: packed, little-endian,
 * naturally aligned, of the sizes in their names. The same bytes go over UDP, into files and
 * regions, and into Kafka messages, where they are rows of ClickHouse's RowBinary.
 *
 * Addresses are in network order, IPv4 as ::ffff:a.b.c.d. Everything else is a number in the
 * machine's order.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

#define PL_FLAT_MEMBER(off, id, type, form, name, unit, help) type id;

struct pl_pkt64 {
#define PL_PKT_FIELD PL_FLAT_MEMBER
#include "record/fields.def"
#undef PL_PKT_FIELD
};

struct pl_pkt96 {
#define PL_PKT_FIELD      PL_FLAT_MEMBER
#define PL_PKT_MORE_FIELD PL_FLAT_MEMBER
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
};

struct pl_dns64 {
#define PL_DNS_FIELD PL_FLAT_MEMBER
#include "record/fields.def"
#undef PL_DNS_FIELD
};

struct pl_flow128 {
#define PL_FLOW_FIELD PL_FLAT_MEMBER
#include "record/fields.def"
#undef PL_FLOW_FIELD
};

#define PL_PKT_FIELD(off, id, ...)                                                                 \
	PL_OFFSET_CHECK(pl_pkt64, off, id) PL_OFFSET_CHECK(pl_pkt96, off, id)
#define PL_PKT_MORE_FIELD(off, id, ...) PL_OFFSET_CHECK(pl_pkt96, off, id)
#define PL_DNS_FIELD(off, id, ...)      PL_OFFSET_CHECK(pl_dns64, off, id)
#define PL_FLOW_FIELD(off, id, ...)     PL_OFFSET_CHECK(pl_flow128, off, id)
#include "record/fields.def"
#undef PL_PKT_FIELD
#undef PL_PKT_MORE_FIELD
#undef PL_DNS_FIELD
#undef PL_FLOW_FIELD

_Static_assert(sizeof(struct pl_pkt64) == 64, "pkt64/1 has 64 bytes");
_Static_assert(sizeof(struct pl_pkt96) == 96, "pkt96/1 has 96 bytes");
_Static_assert(sizeof(struct pl_dns64) == 64, "dns64/1 has 64 bytes");
_Static_assert(sizeof(struct pl_flow128) == 128, "flow128/1 has 128 bytes");

/* Bits of obs; below them the observation point's number. */
enum {
	PL_OBS_POINT_MASK = 0x03ff,
	PL_OBS_FRAGMENT = 0x0400, /* a fragment; ports only of the first */
	PL_OBS_RULE = 0x0800,     /* a rule matched that asked to be marked */
	PL_OBS_OUT = 0x1000,      /* leaving the host */
	PL_OBS_TRUNCATED =
		0x2000,          /* the packet ended before its headers did: what is missing is 0 */
	PL_OBS_SAMPLED = 0x4000, /* one of several: not every packet has a record */
	PL_OBS_TUNNEL = 0x8000,  /* addresses and ports are those of the inner packet */
};

/* pl_flow128.end_reason */
enum pl_flow_end {
#define PL_FLOW_END_REASON(number, id, name, help) PL_FLOW_END_##id = (number),
#include "record/fields.def"
#undef PL_FLOW_END_REASON
};

/* Kinds of records without presence, as data. */
enum pl_flat_kind { PL_FLAT_PKT64, PL_FLAT_PKT96, PL_FLAT_DNS64, PL_FLAT_FLOW128, PL_FLAT_MAX };

struct pl_flat {
	const char *name;   /* "pkt64": with its version, "/1", the name of the format */
	const char *stream; /* in queries: "packets", "packets96", "dns", "flows" */
	const char *help;
	uint32_t size; /* bytes */
	uint32_t n_fields;
	const struct pl_field *fields;
};

#define PL_FLAT_VERSION 1

const struct pl_flat *pl_flat(enum pl_flat_kind kind);
