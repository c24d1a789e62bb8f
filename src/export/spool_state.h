/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a spool, for spool.c (open, write, read), spool_record.c (its bytes) and
 * spool_recover.c (what the last process left). */
#pragma once

#include "export/spool.h"

/* docs/formats/spool.md. Little-endian, naturally aligned. */
struct pl_spool_header {
	uint8_t magic[4];
	uint32_t len;
	uint32_t entries;
	uint32_t flags;
	uint64_t sequence;
	uint32_t head_check; /* low half of XXH3-64 over what is before it */
	uint32_t settled; /* not checked: SETTLED once a copy is not needed any more, else zero */
	uint64_t check;   /* XXH3-64 of the payload, seeded with that of what is before it */
};

#define SETTLED UINT32_C(0x6c746573) /* "setl" */

static const uint8_t record_magic[4] = { 'P', 'L', 'r', 1 };

/* Out of reach for who counts from one, and far from where a 64-bit number wraps. */
#define SEQUENCE_END (UINT64_C(1) << 62)

enum {
	SEGMENTS_MAX = 4096,
	SCAN_BYTES = 64 << 10,
	ASIDE_BYTES = 16 << 20, /* of damaged bytes kept */
	BYTES_MIN = 1 << 20,
	SEGMENT_MAX = 64 << 20,
};

struct pl_spool_segment {
	uint64_t first;   /* sequence in its name */
	uint64_t size;    /* whole records up to here */
	uint64_t read;    /* settled up to here */
	uint64_t entries; /* not settled */
	uint64_t records;
};

struct pl_spool {
	struct pl_spool_options options;
	int folder, lock, cursor;
	int out; /* the last segment, when it may be added to; else -1 */
	int in;  /* the first segment, when open; else -1 */
	bool unsynced;
	uint64_t next_sequence;
	struct pl_spool_segment *segments;
	uint32_t n_segments;
	/* While records are held: segments that were read to their end, still on the disk; the
	 * first record that was not read. */
	bool holding;
	uint64_t *passed, passed_to;
	uint32_t n_passed;
	struct pl_spool_counts counts;
	/* The record lent. */
	bool peeked, detached; /* detached: its segment is gone */
	struct pl_spool_header head;
	uint8_t *payload;
	uint32_t payload_cap;
};

/* ---- spool.c ---- */

void pl_spool_segment_name(const struct pl_spool_segment *g, char dst[32]);
/* Takes segment i off the list and off the disk; what it still held is the caller's to count. The
 * first one, while records are held, stays on the disk. */
void pl_spool_remove_segment(struct pl_spool *s, uint32_t i);

/* ---- spool_record.c ---- */

int pl_spool_write_all(struct pl_spool *s, int fd, const void *data, size_t len);
/* As many bytes as there are, at most len; -errno. */
ssize_t pl_spool_read_at(int fd, void *dst, size_t len, uint64_t at);
uint32_t pl_spool_head_check(const struct pl_spool_header *h);
uint64_t pl_spool_full_check(const struct pl_spool_header *h, const void *payload);
/* Whether this can be the header of a record from `least` on. */
bool pl_spool_header_good(const struct pl_spool_header *h, uint64_t least);
/* The payload of the record at `at` into s->payload; false when it is not what was written. */
bool pl_spool_read_payload(
	struct pl_spool *s, int fd, uint64_t at, const struct pl_spool_header *h);
/* Damaged bytes are kept for whoever wants to look, as far as there is room. Best effort. */
void pl_spool_set_aside(struct pl_spool *s, int fd, uint64_t from, uint64_t to);
/*
 * The first record header at or behind *at that lies in the file whole; *at moves there. False when
 * there is none before `size`. Usually it is at *at; one with a wrong bit is mended, and behind
 * other damage the next one is looked for byte by byte.
 */
bool pl_spool_find_header(struct pl_spool *s, int fd, uint64_t size, uint64_t least, uint64_t *at,
	struct pl_spool_header *ret);
void pl_spool_write_cursor(struct pl_spool *s, uint64_t sequence, bool sync);
uint64_t pl_spool_read_cursor(const struct pl_spool *s);

/* ---- spool_recover.c ---- */

int pl_spool_recover(struct pl_spool *s, struct pl_diag *diag);
