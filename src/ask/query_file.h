/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of records as a source of a question: those that a tap wrote into file:NAME.pkt64 and the
 * like. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/packet.h"

#define PL_QUERY_FILES_MAX 64

struct pl_query_file {
	bool (*reads)(void *arg, enum pl_flat_kind kind); /* whether the question does */
	/* `file` is its number among the paths. */
	void (*feed)(
		void *arg, uint32_t file, enum pl_flat_kind kind, const void *records, uint32_t n);
	/* Of several: records of the kind that come of it are of this time or later. This and the next
	 * two may be NULL. */
	void (*passed)(void *arg, uint32_t file, enum pl_flat_kind kind, uint64_t ts_ns);
	/* There are no records of the kind in it, or none any more. */
	void (*ended)(void *arg, uint32_t file, enum pl_flat_kind kind);
	/* Which clocks the times in it are of, bits 1 << enum pl_clock_kind; told when it says so. */
	void (*clocks)(void *arg, uint32_t clocks);
	bool (*full)(void *arg); /* no more are wanted */
	void *arg;
};

/* By its name. PL_FLAT_MAX: it is no file of records. */
enum pl_flat_kind pl_query_file_kind(const char *path);

/* Complains that the source of records of this kind has nothing that the question reads. */
void pl_query_complain_unread(const char *path, enum pl_flat_kind kind,
	bool (*reads)(void *arg, enum pl_flat_kind kind), void *arg);

/* All records of the files, of several in the order of their times: a block of the file that is behind
 * the others. Up to 64. 0, or an exit code; complains. */
int pl_query_file_all(const char *const *paths, size_t n, const struct pl_query_file *to);
