/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of lines that is only appended to (O_APPEND): lines are gathered, and written whole or not
 * at all. Others may write to it, too, between two calls of pl_line_file_write.
 *
 * The structure may be copied as long as only one of the copies is used.
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
	off_t end; /* end of the lines written whole */
	struct pl_buf text;
	uint64_t lines; /* lines in the text */
	bool failing;   /* the last write failed */
};

/* Sets the structure up, and opens nothing. Returns 0 or -ENOMEM. */
int pl_line_file_make(struct pl_line_file *f, const char *path);
/* Opens the file, or makes it. Returns 0 or -errno with diag. */
int pl_line_file_open(struct pl_line_file *f, struct pl_diag *diag);
/* Adds one line, given without its end. Returns true when enough bytes wait to write them now. */
bool pl_line_file_add(struct pl_line_file *f, const char *line, size_t n);
/* Writes the waiting lines; *ret_lines: their number. Returns 0, or a negative errno when they are
 * not in the file. */
int pl_line_file_write(struct pl_line_file *f, uint64_t *ret_lines);
/* Closes the file; lines that wait are lost. */
void pl_line_file_close(struct pl_line_file *f);
/* Closes the file and opens it by its name again, as pl_line_file_open does. */
int pl_line_file_reopen(struct pl_line_file *f, struct pl_diag *diag);
