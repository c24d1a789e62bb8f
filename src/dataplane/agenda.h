/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An agenda: numbered items, each with at most one time, ordered in a heap. The place of each item
 * is known, so that its time can be changed; items with equal times are ordered by number. One
 * thread.
 */
#pragma once

#include <stdint.h>

#define PL_DP_AGENDA_NEVER UINT64_MAX

struct pl_dp_agenda {
	uint64_t *at;    /* time of each thing */
	uint32_t *place; /* place of each item in the heap; UINT32_MAX: not in it */
	uint32_t *heap;  /* numbers of things */
	uint32_t n, things, cap;
};

/* Frees the memory; the agenda is empty then. All zeros is an empty agenda. */
void pl_dp_agenda_done(struct pl_dp_agenda *a);
/* Adds an item without a time. -ENOMEM. */
int pl_dp_agenda_add(struct pl_dp_agenda *a, uint32_t *ret_thing);
/* Sets the time of an item; NEVER removes it. */
void pl_dp_agenda_set(struct pl_dp_agenda *a, uint32_t thing, uint64_t at_ns);
/* Returns the earliest time and its item; NEVER when there is none. */
uint64_t pl_dp_agenda_first(const struct pl_dp_agenda *a, uint32_t *ret_thing);
