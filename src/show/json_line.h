/* SPDX-License-Identifier: BSD-2-Clause */
/* A JSON object as a line on standard output. */
#pragma once

#include "base/json.h"

struct pl_json_line {
	struct pl_json json;
	struct pl_buf buf;
};

/* Opens the object, with `kind` as its first member unless it is NULL. Returns what to write the
 * others with. */
struct pl_json *pl_json_line_begin(struct pl_json_line *line, const char *kind);

/* Closes and prints it, at once; complains when there was no memory for it. */
void pl_json_line_end(struct pl_json_line *line);
