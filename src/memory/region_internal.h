/* SPDX-License-Identifier: BSD-2-Clause */
/* What region*.c share: the bytes of a region's header, and an open region. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/map_guard.h"
#include "memory/region.h"

#define REGION_MAGIC      "PLREGION"
#define REGION_ORDER      0x01020304u
#define REGION_CHECKED    512u /* bytes of the header that its check value covers */
#define REGION_HUGE       (UINT64_C(2) << 20)
#define REGION_OFFSET_MAX (UINT64_C(1) << 30)

/* What never changes after creation. */
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

/* What the writer changes, each word by itself. */
struct region_state {
	uint64_t epochs; /* epoch << 2, and the flags below */
	uint32_t clean;
	uint32_t writer_pid;
	uint64_t synced_ns;
	uint64_t sync_failures;
	uint32_t clocks, spare;
};

#define EPOCH_BOTH     1u /* the epoch before is readable too */
#define EPOCH_EMPTYING 2u /* the present one is being emptied: not readable */

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
	struct pl_region_info info; /* as it was when the region was opened */
	uint8_t *map;
	size_t map_bytes;
	size_t page_bytes; /* of the file system */
	struct region_state *state;
	struct pl_map_guard guard; /* of `map` */
	int fd;
	bool writer;
	uint32_t mended; /* heads of lists, when it was opened; of the first: */
	uint32_t mended_list;
	uint64_t mended_from, mended_to;
	_Atomic uint64_t prepared; /* the epoch whose half is empty already; 0: none */
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
	char *name; /* under which it stands for now; NULL: it has no name, or its own */
};

/* A new file for the path, locked, under no name that anybody looks for. -EEXIST: there is one at
 * the path. */
int region_file_make(struct region_file *f, const char *path, unsigned int mode);
/* It is whole: gives it the path's name. -EEXIST. */
int region_file_publish(struct region_file *f, const char *path);
void region_file_forget(struct region_file *f);
/* What is there; for a writer locked, and what the name stands for. -EBUSY: another process has the
 * lock; *ret_fd is open then, too, and -1 or to be closed in any case. */
int region_file_open(const char *path, bool writer, int *ret_fd);
/* Whether the path names this file. */
bool region_file_is_at(int fd, const char *path);

/* The header of a file, checked, as pl_region_open has its errors. */
int region_header_read(int fd, const char *path, struct pl_region_info *ret, struct pl_diag *diag);

/* The header of a new region, complete with its check value. */
void region_header_make(struct region_header *h, const struct pl_region_info *info);

static inline uint64_t region_epochs(const struct pl_region *region)
{
	return __atomic_load_n(&region->state->epochs, __ATOMIC_ACQUIRE);
}

/* Finishes what a killed writer had begun to empty. */
void region_finish_emptying(struct pl_region *region);

/* The thread that writes to disk every sync_ns. */
int region_commit_start(struct pl_region *region);
void region_commit_stop(struct pl_region *region);

/* region_ahead.c, for that thread: 0 with nothing made where it is of no use; -ENOMEM. */
int region_ahead_new(struct pl_region *region);
void region_ahead_free(struct pl_region *region);
/* As pl_region_sync, but for what is ahead of the heads of lists that grow. */
int region_ahead_sync(struct pl_region *region);

/* Part of the file to disk, from a page's beginning on. */
int region_sync_part(const struct pl_region *region, uint64_t begin, uint64_t bytes);
/* Has the region say what became of it: r is 0 or -errno, and returned. */
int region_synced(struct pl_region *region, int r);
