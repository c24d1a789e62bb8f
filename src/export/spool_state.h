/* SPDX-License-Identifier: BSD-2-Clause */
/* Internals of a spool, for spool.c (open, write, read), spool_record.c (bytes) and spool_recover.c
 * (recovery). */
#pragma once

#include "export/spool.h"

/* See docs/formats/spool.md. Little-endian, naturally aligned. */
struct pl_spool_header {
	uint8_t magic[4];
	uint32_t len;
	uint32_t entries;
	uint32_t flags;
	uint64_t sequence;
	uint32_t head_check; /* low half of XXH3-64 over the members above */
	uint32_t settled;    /* not in a checksum: SETTLED once a copy is not needed, else zero */
	uint64_t check;      /* XXH3-64 of the payload, seeded with that of the members above */
};

#define SETTLED UINT32_C(0x6c746573) /* "setl" */

static const uint8_t record_magic[4] = { 'P', 'L', 'r', 1 };

/* Sequences stay below this, which counting does not reach and is far from overflow. */
#define SEQUENCE_END (UINT64_C(1) << 62)

enum {
	SEGMENTS_MAX = 4096,
	SCAN_BYTES = 64 << 10,
	ASIDE_BYTES = 16 << 20, /* limit of damaged bytes kept */
	BYTES_MIN = 1 << 20,
	SEGMENT_MAX = 64 << 20,
};

struct pl_spool_segment {
	uint64_t first;   /* its first sequence, which is its name */
	uint64_t size;    /* end of the last whole record */
	uint64_t read;    /* end of the settled records */
	uint64_t entries; /* unsettled entries */
	uint64_t records;
};

struct pl_spool {
	struct pl_spool_options options;
	int folder, lock, cursor;
	int out; /* descriptor of the last segment while it may grow; else -1 */
	int in;  /* descriptor of the first segment when open; else -1 */
	bool unsynced;
	int lost; /* error of a sync that the next pl_spool_sync returns; 0: none */
	uint64_t next_sequence;
	struct pl_spool_segment *segments;
	uint32_t n_segments;
	/* While records are held: segments read to their end that are still on disk, and the first
	 * record not read. */
	bool holding;
	uint64_t *passed, passed_to;
	uint32_t n_passed;
	struct pl_spool_counts counts;
	/* The lent record. */
	bool peeked, detached; /* detached: its segment is removed */
	struct pl_spool_header head;
	uint8_t *payload;
	uint32_t payload_cap;
};

/* ---- spool.c ---- */

void pl_spool_segment_name(const struct pl_spool_segment *g, char dst[32]);
/* Removes segment i from the list and from the disk; the caller counts entries left in it. While
 * records are held, the first segment stays on disk. */
void pl_spool_remove_segment(struct pl_spool *s, uint32_t i);

/* ---- spool_record.c ---- */

int pl_spool_write_all(struct pl_spool *s, int fd, const void *data, size_t len);
/* Reads at most len bytes; returns the number of bytes read, or -errno. */
ssize_t pl_spool_read_at(int fd, void *dst, size_t len, uint64_t at);
uint32_t pl_spool_head_check(const struct pl_spool_header *h);
uint64_t pl_spool_full_check(const struct pl_spool_header *h, const void *payload);
/* Returns true for a valid header of a record with sequence `least` or higher. */
bool pl_spool_header_good(const struct pl_spool_header *h, uint64_t least);
/* Reads the payload of the record at `at` into s->payload; returns false when it is damaged. */
bool pl_spool_read_payload(
	struct pl_spool *s, int fd, uint64_t at, const struct pl_spool_header *h);
/* Keeps damaged bytes for inspection while there is room for them. Best effort. */
void pl_spool_set_aside(struct pl_spool *s, int fd, uint64_t from, uint64_t to);
/*
 * Finds the first header at or behind *at whose record is whole in the file, and moves *at there.
 * Returns false when there is none before `size`. Usually the header is at *at. A header with one
 * wrong bit is corrected; behind other damage the search continues byte by byte.
 */
bool pl_spool_find_header(struct pl_spool *s, int fd, uint64_t size, uint64_t least, uint64_t *at,
	struct pl_spool_header *ret);
void pl_spool_write_cursor(struct pl_spool *s, uint64_t sequence, bool sync);
uint64_t pl_spool_read_cursor(const struct pl_spool *s);

/* ---- spool_recover.c ---- */

int pl_spool_recover(struct pl_spool *s, struct pl_diag *diag);
