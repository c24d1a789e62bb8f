/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole-file reads and replacements. Negative errno on failure. */
#pragma once

#include <stddef.h>

/* Reads all of `path` ("-" is standard input) into fresh memory, terminated with a NUL that ret_len
 * does not count. -EFBIG beyond max_bytes. The caller frees. */
int pl_file_read(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len);

/* Reads a file that others must not choose: a password, a token, a key. Returns -EKEYREJECTED for a
 * file that everybody may write. */
int pl_file_read_secret(const char *path, size_t max_bytes, char **ret_data, size_t *ret_len);
/* Text of such an error: strerrordesc_np, and a text for -EKEYREJECTED. */
const char *pl_file_secret_trouble(int error);

/* Replaces a file whole or not at all: temporary name beside it, sync, rename, sync of the folder.
 * A symbolic link at `path` is replaced, not followed. */
int pl_file_replace(const char *path, const void *data, size_t len, unsigned int mode);
