/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region is a file with one store in it, or two (the epochs below), mapped by one writer and any
 * number of readers, of this process or others; docs/formats/region.md has its bytes. The file may
 * be on a disk, on tmpfs or hugetlbfs, or be a memfd that others open as /proc/PID/fd/N. The header
 * has pages of its own in front of the data, so that a NIC's registration covers data
 * alone.
 *
 * What a file says of itself is checked against its length before it is believed: magic, version,
 * byte order, check value, parameters, sizes. A process that is killed leaves a region that opens;
 * its entries prove themselves one by one (store.h). Space is allocated before it is mapped, so a
 * full disk is an error of creation and never a signal.
 *
 * Epochs: a region of two halves keeps the epoch before the present one readable while the present
 * one fills. Half (epoch mod 2) holds an epoch; the next one begins in the other half, which is
 * emptied first. Older epochs live on in files of their own (pl_region_spill), which are regions of
 * one half.
 *
 * Return values are 0 or negative errno; a diag, which may be NULL, says it for people, with the
 * name of the file.
 */
#pragma once

#include "memory/store.h"

struct pl_region;

enum pl_region_access {
	PL_REGION_READ,
	PL_REGION_WRITE, /* one process at a time */
};

enum pl_region_pages {
	PL_PAGES_ORDINARY, /* of the size the file system has: on hugetlbfs its own */
	PL_PAGES_ADVISE,   /* asks for transparent huge pages, which tmpfs and memfd may have */
	PL_PAGES_HUGETLB,  /* memfd of reserved huge pages of 2 MiB */
};

struct pl_region_options {
	enum pl_region_pages pages;
	bool populate;       /* touch every page now, not when it is first written */
	unsigned int mode;   /* of a new file; 0: 0640 */
	unsigned int halves; /* of a new region: 1 (or 0), 2 */
	/* a writer's data goes to disk this often, from a thread of its own; 0: when the kernel
	 * sees fit, and at close */
	uint64_t sync_ns;
};

/*
 * Creates a region for writing, all its space allocated and zero. Its name appears when it is whole
 * and locked. -EEXIST when there is a file, -ENOSPC when it does not fit, -EINVAL for parameters
 * that cannot be. On failure no file is left. `options` may be NULL.
 */
int pl_region_create(struct pl_region **ret, const char *path, const struct pl_store_params *params,
	const struct pl_region_options *options, struct pl_diag *diag);

/* The same without a path: a memfd, sealed against being cut; `name` is for people. Gone with its
 * last user. */
int pl_region_create_memory(struct pl_region **ret, const char *name,
	const struct pl_store_params *params, const struct pl_region_options *options,
	struct pl_diag *diag);

/*
 * Opens what is there. -ENOENT and the like from the system; -EBUSY when another process writes and
 * writing was asked for (the diag says which); -EBADMSG for what is no region, is damaged or was
 * not made to its end; -EPROTO for a newer version; -ERANGE for a file shorter than it says.
 */
int pl_region_open(struct pl_region **ret, const char *path, enum pl_region_access access,
	const struct pl_region_options *options, struct pl_diag *diag);

/*
 * Gives the file of a region that cannot be opened (-EBADMSG, -ERANGE) another name, PATH.damaged
 * or the like, which goes to *ret_aside, to be freed; the diag gets what is wrong with it. Looked
 * at again and renamed under the writer's lock: -EAGAIN when it is a good region by now, -EBUSY
 * when another process has it, -EINVAL when it is no file.
 */
int pl_region_set_aside(const char *path, char **ret_aside, struct pl_diag *diag);

/* Removes the file of a region that is open for writing; not another one that has its name by
 * now. */
void pl_region_unlink(const struct pl_region *region, const char *path);

/* A writer's data goes to disk and the region is marked clean; the error of that, or 0. NULL is
 * fine. */
int pl_region_close(struct pl_region *region);

const struct pl_store_params *pl_region_params(const struct pl_region *region);

/* The present epoch's number; the first is 0. */
uint64_t pl_region_epoch(const struct pl_region *region);

/* First byte of the store of an epoch; NULL when it is not in the region. For readers the memory is
 * read-only. It is of use while pl_region_has_epoch says so: ask again after reading. */
void *pl_region_store(const struct pl_region *region, uint64_t epoch);
bool pl_region_has_epoch(const struct pl_region *region, uint64_t epoch);

/*
 * Begins the next epoch: empties the other half, whose epoch is gone from then on, and publishes
 * the number. Regions of one half are emptied in place. Writer only (-EACCES). Who writes from afar
 * must be told the new address.
 *
 * To empty takes as long as to write the store once. pl_region_prepare_epoch does that part
 * beforehand, in any thread, while the present epoch is written in another: the epoch before it is
 * gone from then on, and pl_region_next_epoch takes no time. Regions of two halves only (-EINVAL).
 */
int pl_region_prepare_epoch(struct pl_region *region, struct pl_diag *diag);
int pl_region_next_epoch(struct pl_region *region, struct pl_diag *diag);

/* Copies an epoch to a file of its own, a region of one half with that epoch's number: whole or not
 * at all. An epoch that is still written is copied as it is at the time. -ENOENT when the epoch is
 * not there or left meanwhile. */
int pl_region_spill(
	const struct pl_region *region, uint64_t epoch, const char *path, struct pl_diag *diag);

/* The present epoch likewise, in place of the file that is there: a copy on disk of a region in
 * memory, for after a reboot. From any thread. */
int pl_region_save(const struct pl_region *region, const char *path, struct pl_diag *diag);

/* All that was written until now goes to disk. Writer only. */
int pl_region_sync(struct pl_region *region);

struct pl_region_info {
	struct pl_store_params params;
	uint64_t id;          /* random, drawn at creation */
	uint64_t created_ns;  /* since the Unix epoch */
	uint64_t store_bytes; /* of one half */
	uint64_t file_bytes;
	uint64_t data_offset; /* of the first half in the file */
	uint64_t half_stride;
	unsigned int version, halves;
	uint64_t epoch;
	bool both;              /* epoch - 1 is readable too */
	bool clean;             /* when it was opened here: the last writer had closed it */
	uint32_t writer_pid;    /* of the last or present writer */
	uint64_t synced_ns;     /* last time all of it was on disk; 0: never */
	uint64_t sync_failures; /* since creation */
	uint32_t clocks;        /* of entries' times, as pl_region_note_clocks; 0: nobody told */
	/* pages that were cut off the file under this mapping (pl_region_guard) */
	uint64_t lost_pages;
};

/* Entries that are written have times of these clocks: bits 1 << enum pl_clock_kind, beside those of
 * before. Of a region that is open for writing. */
void pl_region_note_clocks(struct pl_region *region, uint32_t clocks);

void pl_region_get_info(const struct pl_region *region, struct pl_region_info *ret);

/* Opened for writing, a region whose sealed lists have heads that are not what their entries say
 * (pl_append_examine) gets them mended. How many, with words about the first; 0: none. */
uint32_t pl_region_mended(const struct pl_region *region, struct pl_diag *diag);

/* Whether the file was cut since it was opened here: pages of it were lost, or it is shorter than
 * it was. Asks the kernel; not for every write. What is put into it from then on may be nowhere. */
bool pl_region_is_cut(const struct pl_region *region);

/* Whether the file that has this name is the one that is open here. Asks the kernel. */
bool pl_region_is_at(const struct pl_region *region, const char *path);

/* Its descriptor, to be sent or registered; -1 never. Stays the region's. */
int pl_region_fd(const struct pl_region *region);

/*
 * Installs a handler of SIGBUS for the process: when someone cuts a file that is mapped here, the
 * pages that vanished read as zeros (empty entries) and are counted in lost_pages, instead of the
 * end of the process. Faults elsewhere go on to the handler there was. Regions opened before and
 * after are covered.
 */
int pl_region_guard(void);

/* ---- what a header says, for those who have only its bytes ---- */

#define PL_REGION_HEADER_BYTES 4096u
#define PL_REGION_VERSION      1u

/* Checks the header of a file of `file_bytes` bytes, of which the first `n` are at `header`; fills
 * what it says. The same errors as pl_region_open; nothing is believed that does not follow from
 * checked numbers. */
int pl_region_check(const void *header, size_t n, uint64_t file_bytes, struct pl_region_info *ret,
	struct pl_diag *diag);
