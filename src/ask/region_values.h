/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes keys, values and sets of nodes as text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "memory/postcards.h"

/* Reads a key into new memory, which the caller frees. form: "text" as it is; "hex"; "u32", "u64" a
 * number, least significant byte first; "be32" most significant first. -EINVAL, -ENOMEM. */
int pl_key_parse(const char *text, const char *form, uint8_t **ret_key, size_t *ret_bytes);

/* Reads a set such as "1-100,205". -EINVAL for other text, or more than a million nodes;
 * -ENOMEM. */
int pl_nodes_parse(const char *text, struct pl_value_set *ret);

/* Writes two digits a byte, terminated; returns dst, which has room for 2 * n + 1. */
const char *pl_hex_text(char *dst, const uint8_t *bytes, size_t n);
