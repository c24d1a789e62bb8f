/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of records (record/packet.h) that may grow while it is read. */
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

/* Whether the name is that of a file of such records, NAME.seg192. */
bool pl_flat_file_is(const char *path, enum pl_flat_kind kind);

/* -errno, -EINVAL with diag. What stands in front of the records (header=yes, header=clock of a
 * tap's output) is passed over. */
int pl_flat_file_open(
	struct pl_flat_file *ret, const char *path, enum pl_flat_kind kind, struct pl_diag *diag);
void pl_flat_file_close(struct pl_flat_file *f);

/* At most `room` records that are new and whole; 0: none now. -errno. */
int64_t pl_flat_file_read(struct pl_flat_file *f, void *records, uint32_t room);
