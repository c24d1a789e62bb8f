/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of standing queries that their taps do in the kernel (query_push.h): of taps without
 * outputs and without rules of their own, all of whose sources are in the kernel. The rules of such
 * a tap become those of the filters of all queries that read it. When a single query reads the tap
 * from the start, and reads nothing else, its packets are counted by key, until a reload adds
 * another query.
 */
#pragma once

#include "service/standing.h"

/* Sets up the taps for these queries: before the taps are opened, or between two turns, before they
 * replace s->queries. */
void pl_standing_push(
	struct pl_standing *s, struct pl_standing_query *const *queries, unsigned int n);
/* Logs what the kernel does for each query, if that has changed. */
void pl_standing_tell_pushed(struct pl_standing_query *const *queries, unsigned int n);

/* Callbacks of struct pl_taps; `standing` is a struct pl_standing. */
void pl_standing_passed(void *standing, unsigned int tap, uint64_t ts_ns);
void pl_standing_counts(
	void *standing, unsigned int tap, const struct pl_tap_count *counts, uint32_t n);
void pl_standing_counting(void *standing, unsigned int tap, bool on);
