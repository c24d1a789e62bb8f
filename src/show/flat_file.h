/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a file of records (record/packet.h) that may grow meanwhile. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "record/packet.h"

struct pl_flat_file {
	enum pl_flat_kind kind;
	int fd;
	uint64_t at; /* of the next record */
};

/* Returns true for the name of a file of such records, NAME.seg192. */
bool pl_flat_file_is(const char *path, enum pl_flat_kind kind);

/* Opens a file, and skips a header before the records (header=yes, header=clock of a tap's output).
 * Returns -errno or -EINVAL with diag. */
int pl_flat_file_open(
	struct pl_flat_file *ret, const char *path, enum pl_flat_kind kind, struct pl_diag *diag);
void pl_flat_file_close(struct pl_flat_file *f);

/* Reads at most `room` new, whole records; returns how many, 0: none now, or -errno. */
int64_t pl_flat_file_read(struct pl_flat_file *f, void *records, uint32_t room);
