/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of standing queries their taps do in the kernel (query_push.h): taps without outputs and
 * without rules of their own, all of whose sources are in the kernel. Their rules become those of
 * the filters of all queries that read them. Of a tap that one query alone reads from the start, and
 * that reads nothing else, packets are counted by key, until a reload brings another one.
 */
#pragma once

#include "service/standing.h"

/* As the taps are to do it for these queries: before the taps are opened, or between two turns,
 * before others take the place of s->queries. */
void pl_standing_push(
	struct pl_standing *s, struct pl_standing_query *const *queries, unsigned int n);
/* Tells the log what each query has done in the kernel. */
void pl_standing_tell_pushed(struct pl_standing_query *const *queries, unsigned int n);

/* For struct pl_taps; `standing` is a struct pl_standing. */
void pl_standing_passed(void *standing, unsigned int tap, uint64_t ts_ns);
void pl_standing_counts(
	void *standing, unsigned int tap, const struct pl_tap_count *counts, uint32_t n);
void pl_standing_counting(void *standing, unsigned int tap, bool on);
