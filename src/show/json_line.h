/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a JSON object as a line on standard output. */
#pragma once

#include "base/json.h"

struct pl_json_line {
	struct pl_json json;
	struct pl_buf buf;
};

/* Opens the object, with `kind` as its first member unless it is NULL. Returns the writer for the
 * other members. */
struct pl_json *pl_json_line_begin(struct pl_json_line *line, const char *kind);

/* Closes the object and prints it at once; prints an error when memory is missing. */
void pl_json_line_end(struct pl_json_line *line);
