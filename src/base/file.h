/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole-file reads and replacements. Negative errno on failure. */
#pragma once

#include <stddef.h>

#include "base/diag.h"

/* Reads all of `path` ("-" is standard input) into fresh memory, terminated with a NUL that ret_len
 * does not count. -EFBIG beyond max_bytes. The caller frees. */
int pl_file_read(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len);

/* Reads a file that others must not choose: a password, a token, a key. Returns -EKEYREJECTED for a
 * file that everybody may write. */
int pl_file_read_secret(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len);
/* Text of such an error: strerrordesc_np, and a text for -EKEYREJECTED. */
const char *pl_file_secret_trouble(int error);

/* Reads the first line of such a file: visible characters, at least one. diag quotes nothing of it.
 * The caller frees it by pl_file_forget. */
int pl_file_read_secret_line(const char *path, size_t max_bytes, char **ret, struct pl_diag *diag);
/* Overwrites and frees a secret; NULL is none. */
void pl_file_forget(char *secret);

/* Replaces a file whole or not at all: temporary name beside it, sync, rename, sync of the folder.
 * A symbolic link at `path` is replaced, not followed. */
int pl_file_replace(const char *path, const void *data, size_t len, unsigned int mode);
