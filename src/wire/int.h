/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes In-band Network Telemetry: shim, metadata header, stack. Documents: "In-band
 * Network Telemetry (INT) Dataplane Specification", P4.org, v0.5 (2017), v1.0 (2018), v2.0/v2.1
 * (2020), and the dialects that devices send instead. Everything is big-endian; a "word" is 4
 * bytes; bit 0 of a bitmap is its most significant.
 *
 * The layout of a hop's block follows from (version, instruction bitmap, hop length): they are
 * looked up once as a `layout`, a table of offsets, by which hops are then decoded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/build.h"
#include "wire/cursor.h"
#include "wire/verdict.h"

enum pl_int_version {
	PL_INT_V05, /* also 0.4, which differs in flag positions only */
	PL_INT_V10,
	PL_INT_V20, /* 2.0 and 2.1 */
	PL_INT_VERSION_MAX,
};

/* Dialects of exporters. SPEC is the published text; the others deviate from it as described. */
enum pl_dialect {
	PL_DIALECT_SPEC,
	/* v1.0: level-2 ports 16+16, queue word 16+16. v0.5: queue and congestion words 16+16; with
	 * a shim length of 0 the hop count gives the length */
	PL_DIALECT_INTCOLLECTOR,
	/* v1.0: 64-bit timestamps, level-2 ports 16+16, sequence in the reserved half word */
	PL_DIALECT_GEANT,
	PL_DIALECT_NOVIFLOW, /* v1.0: 0xFC00 only, as SPEC on the wire; queue in 80-byte cells */
	PL_DIALECT_HOST_INT, /* v0.5: shim type 3, then a flow sequence number behind the stack */
	/* v0.4: other flag positions, 31-bit values, a bottom-of-stack bit; only when pinned */
	PL_DIALECT_V04,
	PL_DIALECT_MAX,
};

const char *pl_dialect_name(
	enum pl_dialect d); /* "spec", "intcollector", "geant", "noviflow", "host-int", "v0.4" */

/* The mode of INT; names of records also use it ("md", "mx", "xd", "ioam-trace", …). */
enum pl_int_kind { PL_INT_MD, PL_INT_MX, PL_INT_DESTINATION };

/* The carrier of a shim: its layout and what its length counts depend on it. */
enum pl_int_carrier {
	PL_INT_OVER_L4, /* TCP or UDP, in the payload or after a probe marker */
	PL_INT_OVER_GPE,
	PL_INT_OVER_GRE,    /* v2.x only */
	PL_INT_OVER_GENEVE, /* the option body: no shim */
};

/* The values a node can report, in the order of the v2.x bitmap. */
enum pl_int_field {
	PL_INT_F_NODE,
	PL_INT_F_PORTS, /* level 1: ingress and egress */
	PL_INT_F_LATENCY,
	PL_INT_F_QUEUE, /* queue id and occupancy */
	PL_INT_F_INGRESS_TS,
	PL_INT_F_EGRESS_TS,
	PL_INT_F_PORTS2, /* v0.5: queue id and congestion status */
	PL_INT_F_TX_UTIL,
	PL_INT_F_BUFFER, /* v2.x */
	PL_INT_F_MAX,
};

#define PL_INT_BIT(n)       (0x8000u >> (n))
#define PL_INT_CHECKSUM     0x0001u /* bit 15: checksum complement, v1.0 and v2.x */
#define PL_INT_NO_OFFSET    0xff
#define PL_INT_HOP_ML_MAX   31
#define PL_INT_HOPS_MAX     255 /* more than an 8-bit length can hold */
#define PL_INT_TRAILING_MAX 30
#define PL_INT_SOURCE_MAX   252 /* words behind the header, in an 8-bit length */

/*
 * The domain of hosts that are sources and sinks (v2.1 5.8: domain-specific metadata). Its only
 * instruction is for the source: the last block has one more word at its end, the number of the
 * packet within its flow. A sink that reports only some packets sets a flag in the copy it reports:
 * gaps between numbers are no losses then, so numbers are ignored.
 */
#define PL_INT_DS_HOSTS     0x504c
#define PL_INT_DS_NUMBERED  0x8000 /* of the domain's instructions */
#define PL_INT_DS_SAMPLED   0x8000 /* of the domain's flags */

struct pl_int_layout {
	uint16_t bitmap;
	uint8_t version;        /* enum pl_int_version */
	uint8_t dialect;        /* enum pl_dialect */
	uint8_t words;          /* of a hop's block */
	uint8_t baseline_words; /* without domain-specific words; v2.x: words >= baseline_words */
	bool ts64;              /* timestamps are 64 bits wide */
	bool ports2_16;         /* level-2 ports are 16+16 instead of 32+32 */
	bool queue_16;          /* queue word is 16+16 instead of 8+24 */
	uint8_t off[PL_INT_F_MAX]; /* bytes from the block's start; PL_INT_NO_OFFSET = absent */
};

/* Widths of the two parts of a queue word, which its bytes do not show. */
enum pl_queue_word { PL_QUEUE_WORD_AUTO, PL_QUEUE_WORD_8_24, PL_QUEUE_WORD_16_16 };

/* Cache of layouts, owned by one decoder: each key has two places, and it never grows. Zeros:
 * empty. */
#define PL_INT_CACHE_SLOTS 128
struct pl_int_cache {
	uint64_t key[PL_INT_CACHE_SLOTS]; /* 0 = empty */
	struct pl_int_layout layout[PL_INT_CACHE_SLOTS];
};

/* Known properties of an exporter; zero: not known. */
struct pl_int_hints {
	uint8_t dialect;     /* enum pl_dialect to prefer */
	bool dialect_pinned; /* accept only that dialect */
	uint8_t queue_word;  /* enum pl_queue_word */
	/* words behind each hop's values that no instruction asks for; at most
	 * PL_INT_TRAILING_MAX */
	uint8_t trailing_words;
	/* v2.x: words that a source with a domain id adds under the stack; 0 = not known */
	uint8_t source_words;
};

static inline uint64_t pl_int_layout_key(unsigned int version, uint16_t bitmap,
	unsigned int hop_words, bool has_ds, unsigned int prefer, const struct pl_int_hints *hints)
{
	return UINT64_C(1) << 63 | (uint64_t)hints->trailing_words << 48 | (uint64_t)bitmap << 32 |
	       (uint64_t)prefer << 24 | (uint64_t)hints->queue_word << 20 |
	       (uint64_t)hints->dialect_pinned << 19 | (uint64_t)has_ds << 18 |
	       (uint64_t)version << 16 | hop_words;
}

/* Returns a key's first place; the second is the other one of the pair (slot ^ 1). */
static inline uint32_t pl_int_layout_slot(uint64_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 57);
}

/* Returns the place of a key among `keys`, or where to put it: a free one of its two places, else
 * the first. */
static inline uint32_t pl_int_layout_place(const uint64_t *keys, uint64_t key)
{
	uint32_t slot = pl_int_layout_slot(key);

	if (__builtin_expect(keys[slot] == key, 1))
		return slot;
	return keys[slot ^ 1] == key || (keys[slot] != 0 && keys[slot ^ 1] == 0) ? slot ^ 1 : slot;
}

/*
 * Finds the layout of (version, bitmap, hop_words). Of several candidates it takes the dialect
 * `prefer` first, then SPEC, INTCOLLECTOR, GEANT. Returns 0, or -ENOENT when none fits (also when
 * hop_words is 0). In v2.x has_ds, a non-zero domain id, allows hop_words above the baseline; the
 * additional words are domain specific.
 */
int pl_int_layout_find(struct pl_int_layout *ret, enum pl_int_version version, uint16_t bitmap,
	unsigned int hop_words, bool has_ds, enum pl_dialect prefer, enum pl_queue_word queue);

/* Makes the layout of a dialect, for encoders. Returns -EINVAL when the dialect has no such
 * version, or domain-specific words not; -E2BIG when a hop has too many words. */
int pl_int_layout_make(struct pl_int_layout *ret, enum pl_int_version version, uint16_t bitmap,
	unsigned int ds_words, enum pl_dialect dialect);

/* A parsed INT header with its stack. Cursors point into the packet. */
struct pl_int {
	uint8_t version; /* enum pl_int_version; MAX when cut before the metadata header */
	uint8_t kind;    /* enum pl_int_kind */
	uint8_t carrier; /* enum pl_int_carrier */
	uint8_t npt;     /* v2.x TCP/UDP shim: next protocol type 0, 1, 2 */
	bool hop_limit, mtu_limit, copy, partial;
	bool gre_added;         /* v2.x GRE and VXLAN-GPE: G, the source added the encapsulation */
	bool host_int;          /* shim type 3 */
	uint8_t hop_words;      /* HopML, or InsCnt in v0.5 */
	uint8_t hops;           /* whole hops present */
	uint8_t announced_hops; /* hops by the lengths; more than `hops` when cut */
	uint8_t source_words;   /* v2.x: source-only words in the last block, behind the baseline */
	uint8_t hops_left;      /* v1.0, v2.x RemainingHopCnt; v0.5 MaxHopCnt - TotalHopCnt */
	uint16_t bitmap;
	uint16_t ds_id, ds_bitmap, ds_flags;
	uint16_t next; /* GPE next protocol, GRE EtherType behind the INT shim */
	const struct pl_int_layout *layout; /* in the cache; set when hops > 0 */
	const uint8_t *stack;               /* `hops` blocks of hop_words words, newest first */
	struct pl_cursor rest;              /* the bytes behind INT: the original payload */

	/* Values that the shim restores, each with its have_ flag. */
	bool have_dscp, have_dport, have_proto, have_flow_seq;
	uint8_t dscp, proto;
	uint16_t dport;
	uint32_t flow_seq; /* GEANT (16 bits), Host-INT and PL_INT_DS_HOSTS (32 bits) */
	uint64_t notes;    /* PL_NOTE_BIT set */
};

struct pl_layers; /* wire/layers.h */

/*
 * Parses a shim and the header and stack behind it. *c is consumed up to the end of INT only on
 * PL_V_OK and PL_V_INT_TRUNCATED (whole hops kept, ret->partial set). Skips destination-type shims
 * before the hop-by-hop one (noted). `truncated` says that a capture or a report cut the packet:
 * then a stack past the end is INT_TRUNCATED rather than SHIM_LENGTH_MAX. Never allocates, never
 * loops without consuming.
 */
enum pl_verdict pl_int_parse(struct pl_int *ret, struct pl_cursor *c, enum pl_int_carrier carrier,
	const struct pl_int_hints *hints, struct pl_int_cache *cache, bool truncated);

/*
 * Parses INT within a packet, and checks its lengths against the packet's others
 * (wire/int_lengths.c). *c begins where the shim may be, in the payload or transport of the level
 * `l`.
 */
enum pl_verdict pl_int_parse_in(struct pl_int *ret, struct pl_cursor *c, const struct pl_layers *l,
	enum pl_int_carrier carrier, const struct pl_int_hints *hints, struct pl_int_cache *cache);

/* Returns true for bytes that can hardly be anything but INT, although they do not parse: type,
 * version and all reserved bits agree, and there is an instruction. An encrypted payload does so
 * once in two million. */
bool pl_int_resembles(struct pl_cursor c);

/* Parses the body of a Geneve option of class 0x0103 (or a configured one); type is the option's
 * type byte. */
enum pl_verdict pl_int_parse_geneve(struct pl_int *ret, struct pl_cursor body, uint8_t type,
	const struct pl_int_hints *hints, struct pl_int_cache *cache);

/* ---- writing ---- */

#define PL_INT_HAS(field) (1u << (field))

/* One node's values, as an encoder takes them. A field not in `have` is written as all ones. */
struct pl_int_hop {
	uint32_t have; /* PL_INT_HAS() bits */
	uint32_t node;
	uint32_t ingress_port, egress_port; /* 16 bits */
	uint32_t ingress_port2, egress_port2;
	uint32_t latency;
	uint32_t queue, queue_depth;
	uint64_t ingress_ts, egress_ts;        /* cut to 32 bits where the layout has 32 */
	uint32_t congestion_queue, congestion; /* v0.5, with PL_INT_F_PORTS2 */
	uint32_t tx_util;
	uint32_t buffer, buffer_depth;
};

/* A header to write. Zeros make a plain MD header over UDP. */
struct pl_int_header {
	enum pl_int_version version;
	enum pl_dialect dialect;
	enum pl_int_kind kind;
	enum pl_int_carrier carrier;
	uint16_t bitmap;
	uint8_t npt; /* v2.x TCP/UDP */
	bool hop_limit, mtu_limit, copy;
	uint8_t hops_left; /* RemainingHopCnt; v0.5: MaxHopCnt = hops + hops_left */
	uint16_t ds_id, ds_bitmap, ds_flags;
	uint8_t ds_words;     /* v2.x: domain-specific words per hop (written as zero) */
	uint8_t source_words; /* v2.x: extra words in the source's block */
	uint8_t dscp, proto;  /* values to restore */
	uint16_t dport;
	uint16_t next; /* GPE, GRE */
	bool gre_added;
	uint32_t flow_seq; /* GEANT, Host-INT */
};

/*
 * Writes shim, metadata header, `n` hops given source first (the stack is newest first on the wire)
 * and, for v0.5 over TCP/UDP, the tail. Returns -ENOBUFS when b is full, -E2BIG when the length
 * does not fit 8 bits, -EINVAL when the dialect has no such header. For Geneve it writes the whole
 * option, of class 0x0103, or ds_id before v2.x.
 */
int pl_int_put(struct pl_build *b, const struct pl_int_header *h, const struct pl_int_hop *hops,
	unsigned int n);

/* Writes one hop's block by a layout, as a node adds it: words * 4 bytes, domain-specific words
 * zero, the checksum complement (v1.0, v2.x) zero too. Returns -ENOBUFS when b is full. */
int pl_int_put_block(
	struct pl_build *b, const struct pl_int_layout *l, const struct pl_int_hop *hop);
