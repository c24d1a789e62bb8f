/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens next: things with a number each, of which each has at most one time. A heap whose
 * places are known, so that a time is moved and not added again; equal times go by number. One
 * thread.
 */
#pragma once

#include <stdint.h>

#define PL_DP_AGENDA_NEVER UINT64_MAX

struct pl_dp_agenda {
	uint64_t *at;    /* of each thing */
	uint32_t *place; /* of each thing in the heap; UINT32_MAX: not in it */
	uint32_t *heap;  /* numbers of things */
	uint32_t n, things, cap;
};

/* All zero is an empty agenda. */
void pl_dp_agenda_done(struct pl_dp_agenda *a);
/* A new thing, without a time. -ENOMEM. */
int pl_dp_agenda_add(struct pl_dp_agenda *a, uint32_t *ret_thing);
/* NEVER: it has none any more. */
void pl_dp_agenda_set(struct pl_dp_agenda *a, uint32_t thing, uint64_t at_ns);
/* The earliest time and its thing; NEVER when there is none. */
uint64_t pl_dp_agenda_first(const struct pl_dp_agenda *a, uint32_t *ret_thing);
