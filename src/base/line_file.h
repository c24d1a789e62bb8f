/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of lines to which is only added (O_APPEND): lines are gathered, and written whole or not at
 * all. Others may write to it, too, between two calls of pl_line_file_write.
 *
 * The structure may be copied as long as one of the copies is used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/diag.h"

struct pl_line_file {
	char *path;
	int fd;    /* -1: not open */
	off_t end; /* of what was written whole */
	struct pl_buf text;
	uint64_t lines; /* in the text */
	bool failing;   /* the last write failed */
};

/* Opens nothing. -ENOMEM. */
int pl_line_file_make(struct pl_line_file *f, const char *path);
/* Made when it is not there. -errno with diag. */
int pl_line_file_open(struct pl_line_file *f, struct pl_diag *diag);
/* One line, without its end. Whether so much waits that it is to be written now. */
bool pl_line_file_add(struct pl_line_file *f, const char *line, size_t n);
/* Writes what waits; *ret_lines: how many lines. 0, or why they are not in the file: negative
 * errno. */
int pl_line_file_write(struct pl_line_file *f, uint64_t *ret_lines);
/* What waits is left out. */
void pl_line_file_close(struct pl_line_file *f);
/* Lets go of the file and opens it by its name again. As pl_line_file_open. */
int pl_line_file_reopen(struct pl_line_file *f, struct pl_diag *diag);
