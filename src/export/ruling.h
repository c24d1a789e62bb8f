/* SPDX-License-Identifier: BSD-2-Clause */
/* Pure functions of the sender. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "export/sender.h"

/* Copies the first line of a text from outside as printable UTF-8, terminated: as many whole
 * characters as fit into cap bytes (at least 1). */
void pl_words_clean(char *ret, size_t cap, const char *text, size_t len);

/* Returns the wait after this number of failures in a row (1, 2, …): a random time, evenly
 * distributed up to min_ns * 2^(failures - 1), at most max_ns, never below min_ns / 8. max_ns is at
 * least min_ns. */
uint64_t pl_backoff_ns(uint32_t failures, uint64_t min_ns, uint64_t max_ns, struct pl_rng *rng);
