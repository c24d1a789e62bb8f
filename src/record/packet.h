/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of packets, DNS messages, flows, blocks of marked packets and segments between points, accounts of links and flows, packets that the kernel dropped, generated from fields.def: packed, little-endian,
 * naturally aligned, of the sizes in their names. The same bytes go over UDP, into files and
 * regions, and into Kafka messages, where they are rows of ClickHouse's RowBinary.
 *
 * Addresses are in network order, IPv4 as ::ffff:a.b.c.d, texts have zeros behind them. Everything
 * else is a number in the machine's order.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "record/record.h"

/* struct pl_pkt64, and so on. */
#define PL_FLAT_BEGIN(KIND, kind, ...)                        struct pl_##kind {
#define PL_FLAT_FIELD(KIND, kind, has, offset, id, type, ...) type id;
/* clang-format off */
#define PL_FLAT_END(KIND, kind) };
/* clang-format on */
#include "record/flats.def"

#define PL_FLAT_FIELD(KIND, kind, has, offset, id, ...) PL_OFFSET_CHECK(pl_##kind, offset, id)
#define PL_FLAT_BEGIN(KIND, kind, bytes, ...)                                                      \
	_Static_assert(sizeof(struct pl_##kind) == (bytes), "bytes of " #kind "/1");
#include "record/flats.def"

/* Bytes of the largest record. */
#define PL_FLAT_BYTES_MAX sizeof(struct pl_flow288)

/* Presence masks in pl_seg192.has: PL_SEG_HAS_<id>; 0 for fields always there. An absent field is
 * zero. */
enum {
#define ALWAYS                                           -1
#define PL_SEG_FIELD(off, id, type, form, presence, ...) PL_SEG_HAS_##id = PL_BIT(presence),
#include "record/fields.def"
#undef ALWAYS
};

/* Bits of obs; below them the observation point's number. */
enum {
	PL_OBS_POINT_MASK = 0x03ff,
	PL_OBS_FRAGMENT = 0x0400,  /* a fragment; only the first has ports */
	PL_OBS_RULE = 0x0800,      /* a matching rule asked to mark the packet */
	PL_OBS_OUT = 0x1000,       /* the packet left the host */
	PL_OBS_TRUNCATED = 0x2000, /* the packet ended within its headers: missing fields are 0 */
	PL_OBS_SAMPLED = 0x4000,   /* a sampled packet: not every packet has a record */
	PL_OBS_TUNNEL = 0x8000,    /* addresses and ports are of the inner packet */
};

/* Values of pl_flow128.end_reason. */
enum pl_flow_end {
#define PL_FLOW_END_REASON(number, id, name, help) PL_FLOW_END_##id = (number),
#include "record/fields.def"
};

/* Values of pl_drop168.reason. */
enum pl_drop_reason {
#define PL_DROP_REASON(number, name) PL_DROP_##name = (number),
#include "record/drop_reasons.def"
#undef PL_DROP_REASON
	PL_DROP_REASONS,
};

/* Values of pl_flow288.role. */
enum pl_flow_role {
#define PL_FLOW_ROLE(number, id, name, help) PL_FLOW_ROLE_##id = (number),
#include "record/fields.def"
};

/* Values of pl_flow288.role_by. */
enum pl_flow_role_by {
#define PL_FLOW_ROLE_BY(number, id, name, help) PL_FLOW_ROLE_BY_##id = (number),
#include "record/fields.def"
};

/* Bits of pl_flow288.flow_flags. */
enum {
	PL_FLOW_FURTHER = 1,   /* the flow has an earlier record */
	PL_FLOW_CONTINUED = 2, /* an earlier process began the flow */
};

/* Values of pl_mark128.method. */
enum pl_mark_method {
#define PL_MARK_METHOD(number, id, name, help) PL_MARK_##id = (number),
#include "record/fields.def"
	PL_MARK_METHOD_MAX,
};

/* Names of the methods, from 1 on; NULL behind the last. */
extern const char *const pl_mark_methods[];

/* Bits of pl_mark128.mark_flags. */
enum {
	PL_MARK_IS_MARKER = 1, /* the point marks: it counts the packets it sends */
	PL_MARK_IS_SYNCED = 2, /* the kernel calls its clock synchronised */
	PL_MARK_HAS_FLOW_ID = 4,
	PL_MARK_IS_PARTIAL =
		8,            /* the point did not see the whole block: it started or ended in it */
	PL_MARK_NO_ROOM = 16, /* some flows had no room in the block: their records are missing */
	PL_MARK_IS_BEYOND = 32,  /* a packet was early or late by more than the guard band */
	PL_MARK_IS_STEPPED = 64, /* the clock was set while the block lasted */
	PL_MARK_IN_USE = 128,    /* a marker met packets that had the bit already */
	PL_MARK_UNTIMED = 256,   /* no packet's time was taken: offsets are 0 and mean nothing */
	PL_MARK_LATE_CHANGE =
		512, /* the block changed too late (mark/tick.h): it is unknown to which block the
		      * counts belong */
	/* Number for the place of the bit and the parts of a flow (mark/pair.h); 0: not known. */
	PL_MARK_TERMS_MASK = 0xfc00,
};

/* Kinds of flat records, as data: PL_FLAT_PKT64, and so on. */
enum pl_flat_kind {
#define PL_FLAT_BEGIN(KIND, ...) PL_FLAT_##KIND,
#include "record/flats.def"
	PL_FLAT_MAX
};

struct pl_flat {
	const char *name;   /* "pkt64"; with "/1" for its version, the name of the format */
	const char *stream; /* name in queries: "packets", "packets96", "dns", "flows", … */
	const char *help;
	uint32_t size; /* bytes */
	uint32_t n_fields;
	const struct pl_field *fields;
	uint32_t present_at; /* offset of the 32 bits of valid fields; 0: all are valid */
};

#define PL_FLAT_VERSION 1

const struct pl_flat *pl_flat(enum pl_flat_kind kind);

/* Bits that tell which fields of the record hold a value; a field without such a bit always
 * does. */
static inline uint32_t pl_flat_present(const struct pl_flat *flat, const void *record)
{
	uint32_t present = 0;

	if (flat->present_at != 0)
		memcpy(&present, (const uint8_t *)record + flat->present_at, sizeof(present));
	return present;
}

/* Returns the kind whose record is the beginning of this kind's: PKT64 for PKT96, FLOW128 for
 * FLOW288, else the kind itself. */
static inline enum pl_flat_kind pl_flat_short(enum pl_flat_kind kind)
{
	return kind == PL_FLAT_PKT96     ? PL_FLAT_PKT64
	       : kind == PL_FLAT_FLOW288 ? PL_FLAT_FLOW128
					 : kind;
}

/* The reverse: returns the kind that is made when records of this kind are requested. */
static inline enum pl_flat_kind pl_flat_long(enum pl_flat_kind kind)
{
	return kind == PL_FLAT_PKT64     ? PL_FLAT_PKT96
	       : kind == PL_FLAT_FLOW128 ? PL_FLAT_FLOW288
					 : kind;
}

/* Returns the time of a record; for a flow that of its last packet. */
static inline uint64_t pl_flat_time(enum pl_flat_kind kind, const void *record)
{
	/* Every kind begins with its time, a flow with those of its first and last packet. */
	const size_t at =
		pl_flat_short(kind) == PL_FLAT_FLOW128 ? offsetof(struct pl_flow128, last_ts) : 0;
	uint64_t time;

	memcpy(&time, (const uint8_t *)record + at, sizeof(time));
	return time;
}

/* Number of packets that the record of a packet stands for: a sampled one has this number in place
 * of a SYN's maximum segment size. A SYN is never sampled. */
static inline uint32_t pl_pkt96_weight(const struct pl_pkt96 *packet)
{
	if ((packet->obs & PL_OBS_SAMPLED) == 0 ||
		(packet->proto == 6 && (packet->tcp_flags & 2) != 0))
		return 1;
	return packet->mss > 1 ? packet->mss : 1;
}
