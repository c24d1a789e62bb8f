/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions: mapped files of one store each, that one process writes and any number read meanwhile.
 * The same files that `pathline translate` and `pathline collect` write and `pathline region` reads
 * (docs/formats/region.md).
 *
 *   pathline_region_open(&r, "/var/lib/pathline/last.plr", PATHLINE_READ, &error);
 *   if (pathline_key_write_get(r, key, sizeof(key), value, sizeof(value)) == PATHLINE_FOUND) ...
 *   pathline_region_close(r);
 *
 * A file is checked before it is believed. One that another process cuts while it is mapped raises
 * SIGBUS in whoever touches what is gone: keep files from being truncated, or handle that signal.
 */
#ifndef PATHLINE_REGION_H
#define PATHLINE_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "pathline/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pathline_region;

enum pathline_primitive {
	PATHLINE_KEY_WRITE = 1, /* the last value of a key */
	PATHLINE_APPEND = 2,    /* lists of entries in the order of arrival */
	PATHLINE_COUNTERS = 3,  /* sums by key, never too low */
	PATHLINE_POSTCARDS = 4, /* paths by key: opened, not read here */
	PATHLINE_SKETCH = 5,    /* merged sketches: likewise */
};

/* The record that values or entries begin with. */
enum pathline_content {
	PATHLINE_CONTENT_BYTES = 0,
	PATHLINE_CONTENT_PATH = 1, /* records (pathline/record.h) */
	PATHLINE_CONTENT_HOP = 2,
	PATHLINE_CONTENT_EVENT = 3,
};

/* Members that a primitive does not have are zero. */
struct pathline_shape {
	uint32_t primitive; /* enum pathline_primitive */
	uint32_t content;   /* enum pathline_content; key-write and append */
	uint64_t slots; /* key-write: slots. append: entries of a list. counters: cells of a row */
	uint32_t value_bytes; /* key-write: of a value, to 1020. append: of an entry, to 4088 */
	/* key-write: slots of a value, 1 to 8, 0: 2. counters: rows, 1 to 16, 0: 4 */
	uint32_t copies;
	uint32_t lists; /* append; 0: 1 */
	/* append: the most entries written before they are seen; 0: 1. slots is a multiple of it,
	 * at least twice */
	uint32_t batch;
	/* of the hash; 0: drawn at random, as it must be where keys come from a network */
	uint64_t seed;
	uint64_t reserved[4];
};

enum pathline_access { PATHLINE_READ = 0, PATHLINE_WRITE = 1 };

/* A new file, opened for writing: all of its space is allocated. -EEXIST, -ENOSPC, -EINVAL for a
 * shape that cannot be. Entries of lists are sealed: each carries its number and a check value. */
int pathline_region_create(struct pathline_region **ret, const char *path,
	const struct pathline_shape *shape, struct pathline_error *error);
/* -ENOENT, -EACCES ...; -EBUSY: another process writes; -EBADMSG: no region, or damaged; -EPROTO:
 * of a newer version. */
int pathline_region_open(struct pathline_region **ret, const char *path,
	enum pathline_access access, struct pathline_error *error);
/* Writes to disk all that was written to the region; returns the error of that, or 0. */
int pathline_region_close(struct pathline_region *region);
/* The same without closing. Writers only (-EACCES). */
int pathline_region_sync(struct pathline_region *region);
void pathline_region_shape(const struct pathline_region *region, struct pathline_shape *ret);

/* All functions below: -EINVAL for a region of another primitive, or a length that is not its;
 * -EACCES for writing what was opened for reading. They write and read the present epoch. */

enum pathline_answer {
	PATHLINE_NOT_FOUND = 0,
	PATHLINE_FOUND = 1,
	PATHLINE_AMBIGUOUS = 2, /* copies disagree, and none has the most votes */
};

/* value_bytes is that of the shape. */
int pathline_key_write_put(struct pathline_region *region, const void *key, size_t key_bytes,
	const void *value, size_t value_bytes);
/* enum pathline_answer; the value only where it is found. A key that was never written is found
 * with a probability of at most copies / 2^32. */
int pathline_key_write_get(struct pathline_region *region, const void *key, size_t key_bytes,
	void *ret_value, size_t value_bytes);

/* -EOVERFLOW, and nothing is added, when a cell would pass 2^64 - 1. One writer. */
int pathline_counters_add(
	struct pathline_region *region, const void *key, size_t key_bytes, uint64_t increment);
/* Never below the true sum. */
int pathline_counters_get(
	struct pathline_region *region, const void *key, size_t key_bytes, uint64_t *ret_sum);

/* n entries one behind the other, seen together when n is at most the shape's batch. ret_first (may
 * be NULL): the number of the first. One writer. -EINVAL also for a list that is not there. */
int pathline_append_put(struct pathline_region *region, uint32_t list, const void *entries,
	size_t n, uint64_t *ret_first);

/* A place in a list. The region stays open until it is closed. */
struct pathline_reader;

#define PATHLINE_OLDEST UINT64_C(0)
#define PATHLINE_NEXT   UINT64_MAX /* entries appended from now on */

/* from: the number of an entry, or one of these. */
int pathline_reader_open(
	struct pathline_reader **ret, struct pathline_region *region, uint32_t list, uint64_t from);
/* Copies up to n entries, and their numbers (ret_numbers may be NULL); how many, 0 when there is
 * nothing new. Never one that is torn. */
int pathline_reader_next(
	struct pathline_reader *reader, void *ret_entries, uint64_t *ret_numbers, size_t n);
/* Entries that were overwritten before they were read, and published ones whose seal does not
 * fit. */
void pathline_reader_lost(
	const struct pathline_reader *reader, uint64_t *ret_overrun, uint64_t *ret_damaged);
void pathline_reader_close(struct pathline_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
