/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes in situ OAM in IPv6: RFC 9197 (trace, proof of transit, edge to edge), RFC 9322
 * (loopback and active flags), RFC 9326 (direct export), RFC 9486 (options in IPv6). Parsers are
 * pure, allocate nothing, and give cursors into the packet. A field of all ones means "not
 * available" (RFC 9197 4.4.2) and has no bit in `have`.
 *
 * Reading: pl_ioam_next over an options area gives IOAM options; one parser per kind; for traces
 * pl_ioam_node_next over the nodes, newest first as on the wire. docs/protocols/ioam.md lists the
 * readings chosen where the documents leave a choice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/build.h"
#include "wire/cursor.h"
#include "wire/verdict.h"

/* IPv6 option types (RFC 9486): 0x31 is one whose data may change on the way. */
enum { PL_IP6_OPT_IOAM = 0x11, PL_IP6_OPT_IOAM_MUTABLE = 0x31 };

/* IOAM option types; integrity-protected ones count as the type that they protect. */
enum pl_ioam_kind {
	PL_IOAM_PREALLOCATED = 0,
	PL_IOAM_INCREMENTAL = 1,
	PL_IOAM_POT = 2,
	PL_IOAM_E2E = 3,
	PL_IOAM_DEX = 4,
};

struct pl_ioam_option {
	uint8_t kind;          /* enum pl_ioam_kind */
	uint8_t option_type;   /* PL_IP6_OPT_IOAM* */
	bool integrity;        /* option types 64 to 66: read without checking the signature */
	struct pl_cursor body; /* from the namespace id to the end of the option */
};

/*
 * Reads the next IOAM option of an IPv6 options area (the inside of the header). Returns true with
 * *ret; false at the end with *ret_verdict OK, or with the error. Other options are skipped. An
 * unassigned IOAM option type is IOAM_OPTION, and the iteration may go on.
 */
bool pl_ioam_next(struct pl_cursor *area, struct pl_ioam_option *ret, enum pl_verdict *ret_verdict);

/* ---- trace ---- */

#define PL_IOAM_BIT(n)    (0x800000u >> (n)) /* bit n of a trace type */
#define PL_IOAM_SNAPSHOT  PL_IOAM_BIT(22)
#define PL_IOAM_OVERFLOW  0x8 /* a node had no room */
#define PL_IOAM_LOOPBACK  0x4
#define PL_IOAM_ACTIVE    0x2
#define PL_IOAM_NODES_MAX 61 /* of one word each: 255 - 10 bytes of data space */

struct pl_ioam_trace {
	uint32_t type; /* 24 bits */
	uint16_t ns;
	uint8_t node_len;  /* words per node without the snapshot */
	uint8_t flags;     /* PL_IOAM_OVERFLOW, … */
	uint8_t remaining; /* free words */
	bool incremental;
	struct pl_cursor nodes; /* the used part of the data space */
	uint64_t notes;         /* PL_NOTE_BIT set */
};

enum {
	PL_IOAM_HAS_HOP_LIMIT = 1 << 0, /* from either form of the node id */
	PL_IOAM_HAS_NODE = 1 << 1,
	PL_IOAM_HAS_INGRESS = 1 << 2,
	PL_IOAM_HAS_EGRESS = 1 << 3,
	PL_IOAM_HAS_SECONDS = 1 << 4,
	PL_IOAM_HAS_FRACTION = 1 << 5,
	PL_IOAM_HAS_DELAY = 1 << 6,
	PL_IOAM_HAS_NS_DATA = 1 << 7,
	PL_IOAM_HAS_QUEUE = 1 << 8,
	PL_IOAM_HAS_CHECKSUM = 1 << 9,
	PL_IOAM_HAS_NODE_WIDE = 1 << 10,
	PL_IOAM_HAS_INGRESS_WIDE = 1 << 11,
	PL_IOAM_HAS_EGRESS_WIDE = 1 << 12,
	PL_IOAM_HAS_NS_DATA_WIDE = 1 << 13,
	PL_IOAM_HAS_BUFFER = 1 << 14,
	PL_IOAM_HAS_SCHEMA = 1 << 15,
};

/* Data of one node, read or to be written. Fields without their bit in `have` are zero. */
struct pl_ioam_node {
	uint32_t have;       /* PL_IOAM_HAS_* */
	uint8_t hop_limit;   /* as it left the node */
	bool delay_overflow; /* the delay did not fit 31 bits */
	uint16_t ingress, egress;
	uint32_t node;              /* 24 bits */
	uint32_t seconds, fraction; /* format: configuration of the namespace */
	uint32_t delay_ns;          /* 31 bits */
	uint32_t ns_data;
	uint32_t queue;
	uint32_t checksum;
	uint32_t ingress_wide, egress_wide;
	uint32_t buffer;
	uint32_t schema;    /* 24 bits */
	uint64_t node_wide; /* 56 bits */
	uint64_t ns_data_wide;
	struct pl_cursor snapshot; /* the schema's opaque words */
};

/* Number of words of a node's data for a trace type, without its snapshot. */
uint8_t pl_ioam_node_len(uint32_t type);

/* Reads the header and finds the nodes. Verdicts: IOAM_SHORT, IOAM_NODE_LEN, IOAM_REMAINING,
 * IOAM_WALK. */
enum pl_verdict pl_ioam_trace_parse(struct pl_ioam_trace *ret, const struct pl_ioam_option *option);

/* Reads the next node of trace->nodes, newest first, which it consumes. Returns false at the end
 * with *ret_verdict OK, or IOAM_WALK when the blocks do not end where the option does. */
bool pl_ioam_node_next(
	struct pl_ioam_trace *trace, struct pl_ioam_node *ret, enum pl_verdict *ret_verdict);

/* ---- the others ---- */

struct pl_ioam_e2e {
	uint16_t ns, type;
	bool have_seq, have_seconds, have_fraction;
	uint64_t seq; /* the 64-bit number when both are present */
	uint32_t seconds, fraction;
	uint64_t notes;
};
enum pl_verdict pl_ioam_e2e_parse(struct pl_ioam_e2e *ret, const struct pl_ioam_option *option);

struct pl_ioam_pot {
	uint16_t ns;
	uint8_t type, flags;
	bool have_values; /* type 0 */
	uint64_t packet_id, cumulative;
	uint64_t notes;
};
enum pl_verdict pl_ioam_pot_parse(struct pl_ioam_pot *ret, const struct pl_ioam_option *option);

struct pl_ioam_dex {
	uint32_t type; /* 24 bits: data that nodes are asked to export */
	uint16_t ns;
	uint8_t flags, extensions;
	bool have_flow, have_seq;
	uint32_t flow, seq;
	uint64_t notes;
};
enum pl_verdict pl_ioam_dex_parse(struct pl_ioam_dex *ret, const struct pl_ioam_option *option);

/* ---- writing ---- */

/*
 * Each writes one whole IPv6 option, with the padding before it that aligns it to a word. `b` must
 * hold nothing but the options area (pl_ip6_options in wire/layers.h takes it), so that offsets
 * count from 2 bytes behind the start of the header. They return -ENOBUFS when b is full, -E2BIG
 * when the option would exceed 255 bytes, -EINVAL for values that the format cannot hold.
 */

/* Writes a trace; nodes come source first. Pre-allocated: `remaining` free words stand before them;
 * incremental: `remaining` is the budget only. node_len is computed. Words of unassigned bits are
 * all ones. */
int pl_ioam_put_trace(struct pl_build *b, const struct pl_ioam_trace *head, uint8_t option_type,
	const struct pl_ioam_node *nodes, unsigned int n);
/* Sets the E2E-Type bits of the values present; seq_64 chooses the width. */
int pl_ioam_put_e2e(
	struct pl_build *b, const struct pl_ioam_e2e *e2e, uint8_t option_type, bool seq_64);
int pl_ioam_put_pot(struct pl_build *b, const struct pl_ioam_pot *pot, uint8_t option_type);
/* Sets the extension flags of the values present. */
int pl_ioam_put_dex(struct pl_build *b, const struct pl_ioam_dex *dex, uint8_t option_type);
/* Writes one node's data for a trace type, as a node on the path does. */
int pl_ioam_put_node(struct pl_build *b, uint32_t type, const struct pl_ioam_node *node);
