/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of a run: each one that came stands here once, so that texts are equal when their
 * addresses are. None leaves before the run does: there is room for PL_QUERY_TEXTS_MAX.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PL_QUERY_TEXTS_MAX 65536u

struct texts;

/* -ENOMEM. NULL is allowed to be freed. */
int pl_query_texts_new(struct texts **ret, uint64_t seed);
void pl_query_texts_free(struct texts *texts);
uint64_t pl_query_texts_bytes(void);

/* The text of `n` bytes, of which those behind a zero do not count; at most PL_TEXT_TOLD. NULL: it
 * is new, and there is no room. */
const char *pl_query_text(struct texts *texts, const char *from, size_t n);
