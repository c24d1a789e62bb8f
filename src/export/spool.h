/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded queue on disk: records in segment files of one folder, oldest first.
 * docs/formats/spool.md specifies the bytes.
 *
 * A record is a header (magic, lengths, number of entries, sequence, checksum of the header,
 * checksum of header and payload) and a payload. A partial record is never continued: after any
 * failed write, the file is cut back to the last whole record and a new file begins. At opening, a
 * record that was never whole is the end of its file. One wrong bit of a header is corrected. Any
 * other damage costs only the record it is in: it is counted, reading goes on at the next header,
 * and the bytes are set aside in FOLDER/damaged. The reading position is in FOLDER/cursor; if that
 * is lost, records are read twice, never left out. Every record that was put comes out, or is
 * counted in one of the counts below.
 *
 * Kill -9 loses nothing that pl_spool_put returned 0 for. A power cut can lose records put since
 * the last pl_spool_sync. One process at a time: a lock on FOLDER/lock ends with its process.
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

/* System calls that tests replace to make them fail. */
struct pl_spool_sys {
	ssize_t (*write)(int fd, const void *data, size_t n);
	int (*sync)(int fd);
};

struct pl_spool_options {
	const char *path;               /* the folder, created if missing */
	uint64_t bytes;                 /* size on disk, at least 1 MiB */
	uint64_t segment_bytes;         /* 0: a sixteenth of `bytes`, at most 64 MiB;
					 * more where that were too many files */
	uint32_t payload_max;           /* size of the largest payload */
	bool drop_newest;               /* true: refuses when full; false: drops the oldest */
	const struct pl_spool_sys *sys; /* NULL: the system's */
};

struct pl_spool_counts {
	uint64_t entries, records, bytes; /* present numbers */
	uint64_t recovered;               /* entries found when opened */
	uint64_t dropped;                 /* entries of segments removed for lack of room */
	uint64_t damaged_records;
	/* only of records with a readable header; others were never recovered */
	uint64_t damaged_entries;
};

struct pl_spool_record {
	uint32_t entries;
	uint32_t flags; /* for the caller's use */
	uint64_t sequence;
	const void *payload;
	uint32_t len;
};

struct pl_spool;

/* -EBUSY with diag when another process uses it; -errno. */
int pl_spool_open(
	struct pl_spool **ret, const struct pl_spool_options *options, struct pl_diag *diag);
void pl_spool_close(struct pl_spool *spool); /* syncs */

/* Adds a record behind the last and sets its sequence. 0; -EXFULL when full and drop_newest;
 * -ENOSPC and other device errors: the record is not stored. */
int pl_spool_put(struct pl_spool *spool, struct pl_spool_record *record);
/* Adds a record that the caller took from the spool, or was about to deliver, and still has. It is
 * stored also when the spool is full, so the files may exceed `bytes` by what is on its way. */
int pl_spool_put_back(struct pl_spool *spool, struct pl_spool_record *record);

/*
 * Stores a copy of a record that the caller keeps and may settle: the copy is on disk in case the
 * process ends, and is neither counted nor read until then. -ENODATA when the spool is empty. The
 * caller settles it before it reads on; an unsettled copy is a normal record when the spool is
 * opened next.
 */
struct pl_spool_copy {
	uint64_t segment, at;
};
int pl_spool_put_copy(
	struct pl_spool *spool, struct pl_spool_record *record, struct pl_spool_copy *ret);
void pl_spool_settle_copy(struct pl_spool *spool, const struct pl_spool_copy *copy);

/* Returns the oldest record; its payload is lent until pl_spool_next, even if its segment is
 * removed in the meantime. -ENODATA. */
int pl_spool_peek(struct pl_spool *spool, struct pl_spool_record *ret);
/* Returns true when the record of the last peek is in memory only: its segment was removed for lack
 * of room. */
bool pl_spool_lent_only(const struct pl_spool *spool);
/* Settles the record of the last peek. */
void pl_spool_next(struct pl_spool *spool);

/*
 * From here on settled records stay on disk until released, and are read again if the process ends
 * before: for callers that settle many records before the first is acknowledged. Counts and room
 * exclude them, so the files may exceed `bytes`. With drop_newest only.
 */
void pl_spool_hold(struct pl_spool *spool);
void pl_spool_release(struct pl_spool *spool); /* also allowed while nothing is held */

/* Place behind the records settled so far, for callers that go on settling: a later
 * pl_spool_release_to releases those before it, and the others stay held. The oldest place is
 * released first. */
struct pl_spool_place {
	uint64_t to;     /* sequence of the first record behind it; 0: none was settled */
	uint32_t passed; /* files before it */
};
struct pl_spool_place pl_spool_place(const struct pl_spool *spool);
void pl_spool_release_to(struct pl_spool *spool, const struct pl_spool_place *place);

/* Syncs records to the device. A failure ends the present file: its records are still read, but
 * none are added. */
int pl_spool_sync(struct pl_spool *spool);

void pl_spool_counts(const struct pl_spool *spool, struct pl_spool_counts *ret);
