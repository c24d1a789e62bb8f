/* SPDX-License-Identifier: BSD-2-Clause */
/* Header of a region, and an open region, shared by region*.c. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/map_guard.h"
#include "memory/region.h"

#define REGION_MAGIC      "PLREGION"
#define REGION_ORDER      0x01020304u
#define REGION_CHECKED    512u /* bytes of the header under its check value */
#define REGION_HUGE       (UINT64_C(2) << 20)
#define REGION_OFFSET_MAX (UINT64_C(1) << 30)

/* Part of the header that never changes after creation. */
struct region_header {
	char magic[8];
	uint32_t version;
	uint32_t byte_order;
	uint32_t check; /* CRC-32 of the first 512 bytes with this field zero */
	uint32_t halves;
	uint64_t id;
	uint64_t created_ns;
	uint64_t data_offset;
	uint64_t store_bytes;
	uint64_t file_bytes;
	struct pl_store_params params;
};

/* Part of the header that the writer changes, word by word. */
struct region_state {
	uint64_t epochs; /* epoch << 2, and the flags below */
	uint32_t clean;
	uint32_t writer_pid;
	uint64_t synced_ns;
	uint64_t sync_failures;
	uint32_t clocks, spare;
};

#define EPOCH_BOTH     1u /* the epoch before is readable too */
#define EPOCH_EMPTYING 2u /* the present epoch is being emptied: not readable */

_Static_assert(sizeof(struct region_header) == 128, "as in docs/formats/region.md");
_Static_assert(sizeof(struct region_state) == 40, "as in docs/formats/region.md");

struct region_ahead;

struct region_commit {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool running, stop;
	struct region_ahead *ahead; /* NULL: of no use to this region */
};

struct pl_region {
	struct pl_region_info info; /* state when the region was opened */
	uint8_t *map;
	size_t map_bytes;
	size_t page_bytes; /* page size of the file system */
	struct region_state *state;
	struct pl_map_guard guard; /* of `map` */
	int fd;
	bool writer;
	uint32_t mended; /* list heads repaired at opening; of the first: */
	uint32_t mended_list;
	uint64_t mended_from, mended_to;
	_Atomic uint64_t prepared; /* epoch whose half is empty already; 0: none */
	uint64_t sync_ns;
	struct region_commit commit;
};

static inline uint64_t region_stride(uint64_t store_bytes, uint64_t data_offset)
{
	return (store_bytes + data_offset - 1) & ~(data_offset - 1);
}

/* region_file.c */

/* A file that is being made. */
struct region_file {
	int fd;
	char *name; /* present name; NULL: none, or its final one */
};

/* Makes a new file for the path, locked, under a name that nobody looks for. Returns -EEXIST when
 * the path has a file. */
int region_file_make(struct region_file *f, const char *path, unsigned int mode);
/* Gives the complete file the path's name. Returns -EEXIST when the path has a file. */
int region_file_publish(struct region_file *f, const char *path);
void region_file_forget(struct region_file *f);
/* Opens the existing file; for a writer it is locked, and the name still its own. Returns -EBUSY
 * when another process has the lock; *ret_fd is open then, too. In any case *ret_fd is -1 or the
 * caller closes it. */
int region_file_open(const char *path, bool writer, int *ret_fd);
/* True when the path names this file. */
bool region_file_is_at(int fd, const char *path);

/* Reads and checks the header of a file, with the errors of pl_region_open. */
int region_header_read(int fd, const char *path, struct pl_region_info *ret, struct pl_diag *diag);

/* Makes the header of a new region, with its check value. */
void region_header_make(struct region_header *h, const struct pl_region_info *info);

static inline uint64_t region_epochs(const struct pl_region *region)
{
	return __atomic_load_n(&region->state->epochs, __ATOMIC_ACQUIRE);
}

/* ---- region_epoch.c ---- */

/* Returns the half of the file that has an epoch. */
uint8_t *region_half(const struct pl_region *region, uint64_t epoch);
/* Tells readers which epochs are in the region; flags: EPOCH_…. */
void region_publish(struct pl_region *region, uint64_t epoch, unsigned int flags);
/* Finishes the emptying that a killed writer began. */
void region_finish_emptying(struct pl_region *region);

/* The thread that writes to disk every sync_ns. */
int region_commit_start(struct pl_region *region);
void region_commit_stop(struct pl_region *region);

/* region_ahead.c, for that thread: allocates nothing, and returns 0, for a region to which it is of
 * no use. Returns -ENOMEM. */
int region_ahead_new(struct pl_region *region);
void region_ahead_free(struct pl_region *region);
/* Writes to disk as pl_region_sync does, but not the entries ahead of the heads of lists that
 * grow. */
int region_ahead_sync(struct pl_region *region);

/* region_sync.c: writes a part of the file to disk, from the beginning of its page on. */
int region_sync_part(const struct pl_region *region, uint64_t begin, uint64_t bytes);
/* Notes the result of a write to disk in the region: r is 0 or -errno, and returned. */
int region_synced(struct pl_region *region, int r);
