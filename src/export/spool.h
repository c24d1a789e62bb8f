/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded queue on disk: records in segment files of one folder, oldest first.
 * docs/formats/spool.md has the bytes.
 *
 * A record is a header (magic, lengths, number of entries, sequence, checksum of the header,
 * checksum of header and payload) and a payload. A record is never continued: after any failure to
 * write one, the file is cut back to the last whole record and a new file begins. When opened, a
 * record that was never whole is the end of its file. One wrong bit of a header is mended. Other
 * damage costs the record it is in and no other: that is counted, reading goes on at the next
 * header, and the bytes are set aside in FOLDER/damaged. How far reading has come is kept in
 * FOLDER/cursor; when that is lost, records are read twice, never left out. Records come out once
 * they were put, or are counted in one of the counts below.
 *
 * Kill -9 loses nothing that pl_spool_put returned 0 for. A power cut can lose what came since the
 * last pl_spool_sync. One process at a time: a lock on FOLDER/lock, gone with its process.
 *
 * One thread at a time (the caller's lock).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"

#define PL_SPOOL_PAYLOAD_MAX (UINT32_C(1) << 28)

/* The system calls that can fail, so that tests make them fail. */
struct pl_spool_sys {
	ssize_t (*write)(int fd, const void *data, size_t n);
	int (*sync)(int fd);
};

struct pl_spool_options {
	const char *path;               /* the folder; made when it is not there */
	uint64_t bytes;                 /* on disk, at least 1 MiB */
	uint64_t segment_bytes;         /* 0: a sixteenth of `bytes`, at most 64 MiB */
	uint32_t payload_max;           /* largest payload there will be */
	bool drop_newest;               /* when full: refuse. Else the oldest segment gives way */
	const struct pl_spool_sys *sys; /* NULL: the system's */
};

struct pl_spool_counts {
	uint64_t entries, records, bytes; /* there now */
	uint64_t recovered;               /* entries found when opened */
	uint64_t dropped;                 /* entries that gave way */
	uint64_t damaged_records;
	/* of those whose header could be read; others were never recovered */
	uint64_t damaged_entries;
};

struct pl_spool_record {
	uint32_t entries;
	uint32_t flags; /* the caller's */
	uint64_t sequence;
	const void *payload;
	uint32_t len;
};

struct pl_spool;

/* -EBUSY with diag when another process has it; -errno. */
int pl_spool_open(
	struct pl_spool **ret, const struct pl_spool_options *options, struct pl_diag *diag);
void pl_spool_close(struct pl_spool *spool); /* syncs */

/* Adds behind the last; sequence is set. 0; -EXFULL when full and drop_newest; -ENOSPC and other
 * failures of the device: then it is not there. */
int pl_spool_put(struct pl_spool *spool, struct pl_spool_record *record);

/*
 * A copy of what the caller still has and may settle by itself: it is on disk for the case that the
 * process ends, and is neither counted nor read while it lasts. -ENODATA when there is nothing in
 * the spool. The caller settles it before it reads on; one that is not settled is a record like any
 * other when the spool is opened next.
 */
struct pl_spool_copy {
	uint64_t segment, at;
};
int pl_spool_put_copy(
	struct pl_spool *spool, struct pl_spool_record *record, struct pl_spool_copy *ret);
void pl_spool_settle_copy(struct pl_spool *spool, const struct pl_spool_copy *copy);

/* The oldest record; the payload is lent until pl_spool_next, and stays also when its segment gives
 * way in the meantime. -ENODATA. */
int pl_spool_peek(struct pl_spool *spool, struct pl_spool_record *ret);
/* The record last peeked at is settled. */
void pl_spool_next(struct pl_spool *spool);

/*
 * From here on settled records stay on disk, and come again when the process ends before they are
 * released: for whoever settles many before the first one is acknowledged. Counts and room are as
 * if they were gone, so the files may be larger than `bytes` by them. With drop_newest only.
 */
void pl_spool_hold(struct pl_spool *spool);
void pl_spool_release(struct pl_spool *spool); /* nothing held is allowed */

/* To the device. A failure ends the present file: what it holds is still read, nothing is added to
 * it. */
int pl_spool_sync(struct pl_spool *spool);

void pl_spool_counts(const struct pl_spool *spool, struct pl_spool_counts *ret);
