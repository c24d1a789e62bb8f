/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data of core/report_core.h: layouts of hops, settings of an exporter, and the report between the
 * passes. */
#pragma once

#include "core/detect_types.h"
#include "core/report_cursor.h"
#include "wire/int.h"
#include "wire/report.h"

#define PL_CORE_HOPS_MAX 32

/* Reasons for the slow path. */
enum pl_slow {
	PL_SLOW_NONE, /* settled on the fast path */
#define PL_SLOW(id, name, help) PL_SLOW_##id,
#include "core/slow_causes.def"
#undef PL_SLOW
	PL_SLOW_MAX
};

enum pl_escalation {
	PL_ESCALATION_NONE, /* settled */
#define PL_ESCALATION(id, name, help) PL_ESCALATION_##id,
#include "core/escalations.def"
#undef PL_ESCALATION
	PL_ESCALATION_MAX
};

/* --- layouts ---------------------------------------------------------------------------------- */

/* Fields, in the order of enum pl_int_field, then those of a report header. */
enum pl_core_field {
	PL_CORE_F_NODE,
	PL_CORE_F_PORTS,
	PL_CORE_F_LATENCY,
	PL_CORE_F_QUEUE,
	PL_CORE_F_INGRESS_TS,
	PL_CORE_F_EGRESS_TS,
	PL_CORE_F_PORTS2,
	PL_CORE_F_TX_UTIL,
	PL_CORE_F_BUFFER,
	PL_CORE_F_DROP, /* queue id, drop reason */
	PL_CORE_F_MAX,
};

struct pl_core_layout {
	uint64_t key;               /* pl_int_layout_key or pl_core_own_key; 0 = free */
	uint32_t present;           /* PL_HOP_HAS_* when every value is available */
	uint32_t hops_per_word;     /* 2^16 / words, rounded up */
	uint8_t off[PL_CORE_F_MAX]; /* bytes from the hop's block; 0 for absent values */
	uint8_t words;              /* words of a block */
	uint8_t time_bits;          /* 32 or 64 */
	uint8_t queue_shift;        /* 24 or 16 */
	uint8_t ports2_words;       /* 0, 1, 2 */
	uint8_t has_drop;
	uint8_t shape; /* enum pl_core_shape */
	/* Values for the fast path (core/report_fast.h), derived from those above. */
	uint64_t stack_mask; /* mask of node << 32 | ports that a block has */
	uint32_t depth_mask; /* mask of the queue's word */
	uint32_t queue_bits; /* mask of the same word, shifted by queue_shift */
	uint32_t place_has;  /* PL_CORE_HAS_* of a queue's key */
	uint32_t quantities; /* 1 << PL_CORE_Q_x of a hop's quantities, derived ones too */
	uint32_t derived;    /* 1: the hop latency is derived from both times */
	uint8_t reserved;    /* 1: a reserved instruction, or no node id */
	uint8_t numbered;    /* 1: INT of this layout has the packet's number within its flow */
	/* 1: reports go to user space, which follows these numbers, and not to the fast path. User
	 * space may change this member and shape, each at once, while the program reads them. */
	uint16_t escalate;
};

/* Ways in which the fast path compares stacks and finds values. */
enum pl_core_shape {
	PL_CORE_SHAPE_NONE,   /* no node id, or a reserved instruction: not for the fast path */
	PL_CORE_SHAPE_NODE,   /* a node id, nothing else */
	PL_CORE_SHAPE_VALUES, /* a node id, then anything */
};

_Static_assert(sizeof(struct pl_core_layout) == 64, "a cache line");

/* Layouts. Each stays in its place, so that the kernel program never reads one that is being
 * changed; when a key's four places are taken, its reports are escalated. */
#define PL_CORE_LAYOUTS_BITS 10
#define PL_CORE_LAYOUTS      (1 << PL_CORE_LAYOUTS_BITS)
struct pl_core_layouts {
	uint64_t seed;   /* random, against aimed keys; set before the first */
	uint64_t follow; /* user space: `escalate` of numbered layouts to be learned */
	uint64_t zero[6];
	struct pl_core_layout slot[PL_CORE_LAYOUTS];
};

PL_CORE_INLINE uint32_t pl_core_layout_slot(const struct pl_core_layouts *layouts, uint64_t key)
{
	return (uint32_t)((key * ((UINT64_C(0x9e3779b97f4a7c15) ^ layouts->seed) | 1)) >>
			  (64 - PL_CORE_LAYOUTS_BITS));
}

/* Finds a layout by its key; NULL when it is not in the table. */
PL_CORE_INLINE const struct pl_core_layout *pl_core_layout_find(
	const struct pl_core_layouts *layouts, uint64_t key)
{
	uint32_t at = pl_core_layout_slot(layouts, key);

#ifdef __bpf__
#pragma unroll
#endif
	for (uint32_t i = 0; i < 4; i++) {
		const struct pl_core_layout *l = &layouts->slot[(at ^ i) & (PL_CORE_LAYOUTS - 1)];

		if (l->key == key)
			return l;
	}
	return NULL;
}

/* Returns the key of metadata in a report header: bits as in the header; of v0.5: 1 drop, 2
 * local. */
#define PL_CORE_OWN UINT64_C(0x4000000000000000)
PL_CORE_INLINE uint64_t pl_core_own_key(uint32_t report_version, uint32_t bits)
{
	return PL_CORE_OWN | (uint64_t)bits << 32 | (uint64_t)report_version << 16;
}

/* The part of an exporter's profile in decode/ that matters here. */
struct pl_core_profile {
	uint64_t layout_key; /* the profile's part of layout keys */
	uint64_t marker;     /* probe marker; PL_CORE_MARKER when none is set */
	uint32_t escalate;   /* 1: all reports go to decode/ */
	/* 1: INT is announced by DSCP or port, so F = 0 does not end the search */
	uint32_t announces;
	uint32_t general;              /* 1: the profile has settings that the fast path does not
				        * know */
	uint16_t int_port;             /* 0: none */
	uint8_t dscp_mask, dscp_value; /* mask 0: none */
	uint8_t report_version;        /* 0: by the nibble; else 1 + enum pl_report_version */
	uint8_t marker_set;
	uint8_t tcp_placement, embedded; /* enum pl_tcp_placement, enum pl_embedded */
	uint8_t units;                   /* PL_CORE_TIMES_US, PL_CORE_LATENCIES_US */
	uint8_t zero[7];
};

/* Values of enum pl_tcp_placement and pl_embedded of decode/decode.h; detect/direct.c checks that
 * they agree. */
#define PL_CORE_TCP_BEFORE_OPTIONS 1
#define PL_CORE_TCP_AFTER_OPTIONS  2
#define PL_CORE_EMBEDDED_ANNOUNCED 1
#define PL_CORE_EMBEDDED_NEVER     2

#define PL_CORE_TIMES_US           1
#define PL_CORE_LATENCIES_US       2

/* --- between the passes ----------------------------------------------------------------------- */

#define PL_CORE_STACK_BYTES        1024 /* stacks have at most 255 words */
#define PL_CORE_OWN_BYTES          128

/* Customary announcements of INT, as in find.c. */
#define PL_CORE_DSCP               0x17
#define PL_CORE_PORT_HOST_INT      33122
#define PL_CORE_MARKER             UINT64_C(0xaaaaaaaabbbbbbbb)

struct pl_core_scratch {
	struct pl_core_report report;
	struct pl_core_hop hops[PL_CORE_HOPS_MAX];
	uint64_t notes;       /* 1 << enum pl_note */
	uint64_t missing_key; /* set with PL_ESCALATION_LAYOUT */
	uint64_t id;          /* path id so far */
	uint64_t latency_ns;  /* sum of the hops' so far; valid with PL_PATH_HAS_latency_ns */
	uint64_t before_egress_ts;
	uint64_t vxlan_ports; /* set of ports (wire/tunnel_ports.h) */
	uint32_t before_bits;
	uint32_t max_latency_ns;
	uint32_t links;      /* from this hop on, successive hops need not be neighbours */
	uint32_t n;          /* hops in all */
	uint32_t stack_hops; /* hops in the stack */
	uint32_t all;        /* presence bits that all hops so far have */
	uint32_t missing;    /* presence bits that some hop of the stack lacks */
	uint32_t header_ts;  /* v0.5, v1.0 */
	uint16_t own;        /* OWN_* */
	uint16_t own_bits;   /* width of the own times */
	uint32_t numbered;   /* 1: exporter, node, hw_id and seq are valid, settled or escalated */
	uint32_t own_bytes;  /* bytes of metadata in the header */
	uint32_t stack_bytes;
	/* 1: the outer DSCP announces INT on the report itself. Not cleared, but set for each
	 * report */
	uint32_t marked;
	uint32_t version;  /* version of the report: enum pl_report_version, or none of them */
	uint32_t follow;   /* 1: `escalate` of the stack's layout */
	uint32_t units;    /* units of the profile */
	uint32_t unscaled; /* 1: a time in µs overflows in ns: decode/ takes it */
#ifdef __bpf__
	/* Slots, and places in the frame, since pointers into it cannot be kept here. The bytes are
	 * copied. */
	uint32_t stack_layout, own_layout, stack_at,
		own_at; /* at: bytes before the end of the frame */
	uint32_t at[2],
		left[2]; /* cursors between functions; at: from the beginning of the frame */
	uint32_t inner, dscp, expected;
	uint8_t stack[PL_CORE_STACK_BYTES + 8];
	uint8_t own_block[PL_CORE_OWN_BYTES + 8];
#else
	const struct pl_core_layout *stack_layout, *own_layout;
	const uint8_t *stack, *own_block;
#endif
};

#define OWN_NODE      1 /* the header names the reporting node, */
#define OWN_METADATA  2 /* and has metadata of it */
#define OWN_HEADER_TS 4
#define OWN_LISTED    8 /* the node is a hop, or merged into the last one */
