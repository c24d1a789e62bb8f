/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads files of records for a question, such as a tap writes to file:NAME.pkt64. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/packet.h"

#define PL_QUERY_FILES_MAX 64

struct pl_query_file {
	bool (*reads)(void *arg, enum pl_flat_kind kind); /* returns true when the question reads
							   * the kind */
	/* Takes records; `file` is the file's number among the paths. */
	void (*feed)(
		void *arg, uint32_t file, enum pl_flat_kind kind, const void *records, uint32_t n);
	/* With several files: the file's next records of the kind are of this time or later. This
	 * and the next two may be NULL. */
	void (*passed)(void *arg, uint32_t file, enum pl_flat_kind kind, uint64_t ts_ns);
	/* The file has no records of the kind, or no more. */
	void (*ended)(void *arg, uint32_t file, enum pl_flat_kind kind);
	/* Takes the clocks of the file's times, bits 1 << enum pl_clock_kind, when its header has
	 * them. */
	void (*clocks)(void *arg, uint32_t clocks);
	bool (*full)(void *arg); /* no more are wanted */
	void *arg;
};

/* Returns the kind of a file by its name; PL_FLAT_MAX: it is no file of records. */
enum pl_flat_kind pl_query_file_kind(const char *path);

/* Prints the error that the source of records of this kind has nothing that the question reads. */
void pl_query_complain_unread(const char *path, enum pl_flat_kind kind,
	bool (*reads)(void *arg, enum pl_flat_kind kind), void *arg);

/* Reads all records of at most 64 files; of several, always a block of the file that is furthest
 * behind, so in the order of their times. Returns 0, or prints the error and returns an exit
 * code. */
int pl_query_file_all(const char *const *paths, size_t n, const struct pl_query_file *to);

/* A file that is read beside other sources. */
struct pl_query_one_file;

/* Opens a file. *ret is to be closed also after an error. Returns 0, or prints the error and
 * returns an exit code. */
int pl_query_file_open(
	struct pl_query_one_file **ret, const char *path, const struct pl_query_file *to);
/* Reads up to `most` records, at most 1024. Returns false when there are no more. */
bool pl_query_file_step(struct pl_query_one_file *f, uint32_t most, const struct pl_query_file *to);
/* Closes the file, which may be NULL. Returns an exit code: not 0 when its end could not be
 * read. */
int pl_query_file_close(struct pl_query_one_file *f);
