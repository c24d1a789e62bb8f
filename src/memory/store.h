/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store is a data structure laid out by a few numbers, its parameters, so that every writer that
 * knows them and the address of its first byte can write to it: this process, a translator that
 * computes addresses for someone else's memory, a NIC. Each of the five primitives (key_write.h,
 * append.h, counters.h, postcards.h, sketch.h) has
 *
 *   geometry    pure functions of the parameters and a key or index: which bytes go to which offset
 *   local put   the same, done to memory that is mapped here
 *   read side   queries while somebody writes
 *
 * All is made of plain stores; nothing in a store is a pointer. Integers are little-endian. A store
 * of zero bytes everywhere is an empty store. Memory that a store is given must be aligned to 64
 * bytes.
 *
 * Writing while others read: writers and readers touch the memory by relaxed atomic words
 * (words.h), never through locks. A reader takes a copy and believes it only if the copy proves
 * itself, by a check value over all of its bytes or by the published head of its list; what was
 * half written is seen as not there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "record/packet.h"

/* Kinds of store, numbered as the operation codes of Direct Telemetry Access. */
enum pl_primitive {
	PL_KEY_WRITE = 1, /* last value of a key */
	PL_APPEND = 2,    /* lists of entries in the order of arrival */
	PL_COUNTERS = 3,  /* sums by key, as estimates that are never too low */
	PL_POSTCARDS = 4, /* one value for each hop of a flow's path */
	PL_SKETCH = 5,    /* sketches of several reporters, merged */
};

/* Ways in which keys become positions and check values. */
enum pl_store_hash {
	PL_HASH_PATHLINE =
		1, /* XXH3 with the store's seed; any number of slots; check values cover the value too */
	PL_HASH_DTA =
		2, /* CRC-32 as the published DTA code; slots a power of two; no seed, check values of the
	                         key alone, and copies whose positions depend on each other */
};

/* Kind of record with which values of a key-write store or entries of a list begin, for programs
 * that print them. Bytes behind the record's 128 are between writer and reader (history.h). */
enum pl_content {
	PL_CONTENT_BYTES = 0,
	PL_CONTENT_PATH = 1,  /* struct pl_path */
	PL_CONTENT_HOP = 2,   /* struct pl_hop */
	PL_CONTENT_EVENT = 3, /* struct pl_event */
	PL_CONTENT_FLAT = 4,  /* plus enum pl_flat_kind: a record of record/packet.h */
	PL_CONTENT_MAX = PL_CONTENT_FLAT + PL_FLAT_MAX,
};

/* Size of the record with which a value or entry begins; 0 for PL_CONTENT_BYTES. */
uint32_t pl_content_bytes(uint32_t content);

enum pl_sketch_kind {
	PL_SKETCH_COUNT_MIN = 1,   /* merged by sums that stop at the largest value of a cell */
	PL_SKETCH_HYPERLOGLOG = 2, /* merged by the larger register */
};

#define PL_COPIES_MAX      8u
#define PL_VALUE_MAX       1020u /* bytes of a value: with its check value one MTU of 1024 */
#define PL_ENTRY_MAX       4088u /* bytes of an entry of a list */
#define PL_HOPS_MAX        31u
#define PL_ROWS_MAX        16u
#define PL_STORE_BYTES_MAX (UINT64_C(1) << 56)

/* Parameters as they stand in a region's header and in advertisements; unused bytes are zero. Each
 * member of the union has all of its bytes: an initializer of a shorter member need not clear the
 * rest, and clang's does not. */
struct pl_store_params {
	uint32_t primitive; /* enum pl_primitive */
	uint32_t hash;      /* enum pl_store_hash */
	/* seed of PL_HASH_PATHLINE: random (pl_hash_seed) if keys come from a network */
	uint64_t seed;
	uint32_t content; /* enum pl_content; key_write and append */
	uint32_t zero;
	union {
		struct {
			uint64_t slots;       /* PL_HASH_DTA: a power of two, at most 2^31 */
			uint32_t value_bytes; /* 1 to PL_VALUE_MAX */
			uint32_t copies;      /* most copies a writer makes, 1 to PL_COPIES_MAX */
			uint8_t zero[24];
		} key_write;
		struct {
			/* entries of a list; a multiple of batch_max, at least twice it */
			uint64_t slots;
			uint32_t lists;       /* 1 and up */
			uint32_t entry_bytes; /* 1 to PL_ENTRY_MAX; unsealed a multiple of 4 */
			/* most entries written before the head is published */
			uint32_t batch_max;
			uint32_t sealed; /* 1: each entry carries its number and a check value */
			uint8_t zero[16];
		} append;
		struct {
			/* cells of a row; of all rows if shared. PL_HASH_DTA: a power of two,
			 * shared */
			uint64_t width;
			uint32_t rows;   /* 1 to PL_ROWS_MAX */
			uint32_t shared; /* 1: the rows share one array, as DTA defines it */
			uint8_t zero[24];
		} counters;
		struct {
			uint64_t chunks; /* PL_HASH_DTA: a power of two, at most 2^31 */
			uint32_t hops;   /* longest path, 1 to PL_HOPS_MAX; PL_HASH_DTA: 5 */
			uint32_t copies; /* 1 to PL_COPIES_MAX; PL_HASH_DTA: 1 */
			uint8_t zero[24];
		} postcards;
		struct {
			uint64_t columns;
			uint32_t rows; /* cells of a column, 1 to PL_ROWS_MAX; HyperLogLog: 1 */
			uint32_t cell_bytes; /* count-min: 4 or 8; HyperLogLog: 1 */
			uint32_t kind;       /* enum pl_sketch_kind */
			uint8_t zero[20];
		} sketch;
		uint8_t raw[40];
	};
};

/* Checks the parameters, and computes the size of the store in bytes (a multiple of 64). Returns 0,
 * -EINVAL with a diag that names the fault, or -EOVERFLOW for more than PL_STORE_BYTES_MAX. Safe on
 * numbers from anywhere. */
int pl_store_bytes(const struct pl_store_params *params, uint64_t *ret_bytes, struct pl_diag *diag);

_Static_assert(sizeof(struct pl_store_params) == 64, "as in the file");
#define PL_STORE_WHOLE(member)                                                                     \
	_Static_assert(sizeof(((struct pl_store_params *)0)->member) == 40, "no byte is left out")
PL_STORE_WHOLE(key_write);
PL_STORE_WHOLE(append);
PL_STORE_WHOLE(counters);
PL_STORE_WHOLE(postcards);
PL_STORE_WHOLE(sketch);
#undef PL_STORE_WHOLE
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "stores are little-endian");

/* Name of a primitive: "key-write", "append", "counters", "postcards", "sketch", or NULL when
 * unknown; and the primitive of a name, 0 when unknown. */
const char *pl_primitive_name(uint32_t primitive);
uint32_t pl_primitive_by_name(const char *name);

/* Bytes from slot to slot, from chunk to chunk, from entry to entry; the parameters must be
 * valid. */
uint32_t pl_key_write_slot_bytes(uint32_t value_bytes);
uint32_t pl_postcards_chunk_bytes(uint32_t hash, uint32_t hops);
uint32_t pl_append_entry_stride(uint32_t entry_bytes, bool sealed);

/* A run of bytes within a store. */
struct pl_extent {
	uint64_t offset; /* offset from the store's first byte */
	uint64_t bytes;
};

/* Answer of a query by key. A key that was never written may be found with a probability that the
 * headers give. */
enum pl_answer {
	PL_NOT_FOUND,
	PL_FOUND,
	PL_AMBIGUOUS, /* copies disagree and no value has more votes than every other */
};

const char *pl_answer_name(enum pl_answer answer); /* "found", "not_found", "ambiguous" */
