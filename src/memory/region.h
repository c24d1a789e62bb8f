/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region is a file with one store in it, or two (the epochs below), mapped by one writer and any
 * number of readers, of this process or others; docs/formats/region.md has its bytes. The file may
 * be on a disk, on tmpfs or hugetlbfs. The header has pages of its own in front of the data, so that
 * a NIC's registration covers data alone.
 *
 * The header of a file is checked against its length before it is used: magic, version, byte order,
 * check value, parameters, sizes. A killed process leaves a region that can be opened; each entry
 * has its own check value (store.h). Space is allocated before it is mapped, so a full disk is an
 * error of creation and never a signal.
 *
 * Epochs: a region of two halves keeps the epoch before the present one readable while the present
 * one fills. Half (epoch mod 2) holds an epoch; the next one begins in the other half, which is
 * emptied first. Older epochs live on in files of their own (pl_region_spill), which are regions of
 * one half.
 *
 * Return values are 0 or negative errno; a diag, which may be NULL, gets the error as text, with
 * the name of the file.
 */
#pragma once

#include "memory/store.h"

struct pl_region;

enum pl_region_access {
	PL_REGION_READ,
	PL_REGION_WRITE, /* one process at a time */
};

struct pl_region_options {
	bool populate;       /* touch every page now, not at its first write */
	unsigned int mode;   /* mode of a new file; 0: 0640 */
	unsigned int halves; /* halves of a new region: 1 (or 0), 2 */
	/* interval at which a thread writes a writer's data to disk; 0: only the kernel does, and
	 * close */
	uint64_t sync_ns;
};

/* Creates a region for writing, with all its space allocated and zero. Its name appears when it is
 * whole and locked. Returns 0; -EEXIST when there is a file, -ENOSPC when it does not fit, -EINVAL
 * for invalid parameters. After an error no file is left. `options` may be NULL. */
int pl_region_create(struct pl_region **ret, const char *path, const struct pl_store_params *params,
	const struct pl_region_options *options, struct pl_diag *diag);

/* Opens an existing region. Returns 0; -ENOENT and the like from the system; -EBUSY when writing
 * was asked for and another process writes (the diag says which); -EBADMSG for a file that is no
 * region, is damaged or incomplete; -EPROTO for a newer version; -ERANGE for a file shorter than
 * its header says. */
int pl_region_open(struct pl_region **ret, const char *path, enum pl_region_access access,
	const struct pl_region_options *options, struct pl_diag *diag);

/* Renames the file of a region that cannot be opened (-EBADMSG, -ERANGE) to PATH.damaged or the
 * like, which goes to *ret_aside, to be freed by the caller; the diag gets its fault. The file is
 * checked again and renamed under the writer's lock. Returns 0; -EAGAIN when it is a good region by
 * now, -EBUSY when another process has it, -EINVAL when it is no file. */
int pl_region_set_aside(const char *path, char **ret_aside, struct pl_diag *diag);

/* Removes the file of a region that is open for writing, unless another file has its name by
 * now. */
void pl_region_unlink(const struct pl_region *region, const char *path);

/* Closes the region; NULL is fine. A writer's data is written to disk and the region marked clean;
 * returns the error of that, or 0. */
int pl_region_close(struct pl_region *region);

const struct pl_store_params *pl_region_params(const struct pl_region *region);

/* Number of the present epoch; the first is 0. */
uint64_t pl_region_epoch(const struct pl_region *region);

/* First byte of the store of an epoch; NULL when the region does not have it. For readers the
 * memory is read-only. Bytes are valid while pl_region_has_epoch is true: ask again after
 * reading. */
void *pl_region_store(const struct pl_region *region, uint64_t epoch);
bool pl_region_has_epoch(const struct pl_region *region, uint64_t epoch);

/*
 * Begins the next epoch: empties the other half, whose epoch is gone from then on, and publishes
 * the number. Regions of one half are emptied in place. Only a writer may call these (-EACCES).
 * Remote writers must be told the new address.
 *
 * Emptying takes as long as writing the store once. pl_region_prepare_epoch does that part
 * beforehand, in any thread, while the present epoch is written in another: the epoch before it
 * is gone from then on, and pl_region_next_epoch takes no time. Regions of two halves only
 * (-EINVAL).
 */
int pl_region_prepare_epoch(struct pl_region *region, struct pl_diag *diag);
int pl_region_next_epoch(struct pl_region *region, struct pl_diag *diag);

/* Copies an epoch to a file of its own, a region of one half with that epoch's number: whole or not
 * at all. An epoch that is still written is copied in its present state; entries of an unsealed list
 * that its writer overwrites faster than they can be copied are zero in the copy. Returns -ENOENT
 * when the region does not have the epoch, or loses it meanwhile. */
int pl_region_spill(
	const struct pl_region *region, uint64_t epoch, const char *path, struct pl_diag *diag);

/* Copies the present epoch likewise, in place of an existing file: a copy on disk of a region in
 * memory, for after a reboot. Any thread may call it. */
int pl_region_save(const struct pl_region *region, const char *path, struct pl_diag *diag);

/* Writes all data put until now to disk. Writer only. */
int pl_region_sync(struct pl_region *region);

struct pl_region_info {
	struct pl_store_params params;
	uint64_t id;          /* random, drawn at creation */
	uint64_t created_ns;  /* time since the Unix epoch */
	uint64_t store_bytes; /* bytes of one half */
	uint64_t file_bytes;
	uint64_t data_offset; /* offset of the first half in the file */
	uint64_t half_stride;
	unsigned int version, halves;
	uint64_t epoch;
	bool both;              /* epoch - 1 is readable too */
	bool clean;             /* when opened here: the last writer had closed it */
	uint32_t writer_pid;    /* pid of the last or present writer */
	uint64_t synced_ns;     /* last time that all data was on disk; 0: never */
	uint64_t sync_failures; /* failures to write to disk, since creation */
	uint32_t clocks;        /* clocks of entries' times (pl_region_note_clocks); 0: not known */
	/* pages that were cut off the file under this mapping (pl_region_guard) */
	uint64_t lost_pages;
};

/* Notes the clocks of the times in entries: bits 1 << enum pl_clock_kind, added to the earlier
 * ones. The region is open for writing. */
void pl_region_note_clocks(struct pl_region *region, uint32_t clocks);

void pl_region_get_info(const struct pl_region *region, struct pl_region_info *ret);

/* Number of sealed lists whose heads were repaired when the region was opened for writing, since
 * their entries said otherwise (pl_append_examine). The diag describes the first. 0: none. */
uint32_t pl_region_mended(const struct pl_region *region, struct pl_diag *diag);

/* True when the file was cut since it was opened here: pages of it were lost, or it is shorter. The
 * call asks the kernel, so it is not for every write. Data put into the region from then on may be
 * lost. */
bool pl_region_is_cut(const struct pl_region *region);

/* True when the file of this name is the one that is open here. The call asks the kernel. */
bool pl_region_is_at(const struct pl_region *region, const char *path);

/* Descriptor of the file, to be sent or registered; never -1. It stays the region's. */
int pl_region_fd(const struct pl_region *region);

/* Installs a handler of SIGBUS for the process: when someone cuts a file that is mapped here, the
 * pages that vanished read as zeros (empty entries) and are counted in lost_pages, and the process
 * goes on. Other faults go to the previous handler. Regions opened before and after are covered. */
int pl_region_guard(void);

/* ---- reading a header from its bytes ---- */

#define PL_REGION_HEADER_BYTES 4096u
#define PL_REGION_VERSION      1u

/* Checks the header of a file of `file_bytes` bytes, of which the first `n` are at `header`, and
 * fills *ret from it. The errors are those of pl_region_open; every value follows from checked
 * numbers. */
int pl_region_check(const void *header, size_t n, uint64_t file_bytes, struct pl_region_info *ret,
	struct pl_diag *diag);
