/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of a run: each is stored once, so texts are equal when their addresses are. There is room for
 * PL_QUERY_TEXTS_MAX. When few places are free, texts that were last used before a batch named by
 * the caller are dropped; there is no reference count.
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
/* Begins the next batch, and returns its number. Texts that came last before batch `oldest` may be
 * forgotten; 0: none may. */
uint64_t pl_query_texts_next(struct texts *texts, uint64_t oldest);
/* Returns whether texts are refused for want of room. */
bool pl_query_texts_full(const struct texts *texts);

/* Finds or stores the text of `n` bytes, up to a zero byte; at most PL_TEXT_TOLD. NULL: the text is
 * new, and there is no room. */
const char *pl_query_text(struct texts *texts, const char *from, size_t n);
