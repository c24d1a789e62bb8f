/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of a run: each is stored once, so texts are equal when their addresses are. All stay until
 * the run is freed: there is room for PL_QUERY_TEXTS_MAX.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_QUERY_TEXTS_MAX 65536u

struct texts;

/* Returns -ENOMEM. Freeing NULL is allowed. */
int pl_query_texts_new(struct texts **ret, uint64_t seed);
void pl_query_texts_free(struct texts *texts);
uint64_t pl_query_texts_bytes(void);
/* Returns whether there is no room for another text. */
bool pl_query_texts_full(const struct texts *texts);

/* Finds or stores the text of `n` bytes, up to a zero byte; at most PL_TEXT_TOLD. NULL: the text is
 * new, and there is no room. */
const char *pl_query_text(struct texts *texts, const char *from, size_t n);
