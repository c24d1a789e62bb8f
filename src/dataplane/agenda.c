/* SPDX-License-Identifier: BSD-2-Clause */
/* A heap of numbered items ordered by time, where the time of an item can be changed. */
#include "dataplane/agenda.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define NOWHERE UINT32_MAX

void pl_dp_agenda_done(struct pl_dp_agenda *a)
{
	free(a->at);
	free(a->place);
	free(a->heap);
	*a = (struct pl_dp_agenda){ .n = 0 };
}

static int grow(struct pl_dp_agenda *a)
{
	uint32_t cap = a->cap == 0 ? 64 : a->cap * 2;
	uint64_t *at = reallocarray(a->at, cap, sizeof(*at));
	uint32_t *place, *heap;

	if (at == NULL)
		return -ENOMEM;
	a->at = at;
	place = reallocarray(a->place, cap, sizeof(*place));
	if (place == NULL)
		return -ENOMEM;
	a->place = place;
	heap = reallocarray(a->heap, cap, sizeof(*heap));
	if (heap == NULL)
		return -ENOMEM;
	a->heap = heap;
	a->cap = cap;
	return 0;
}

int pl_dp_agenda_add(struct pl_dp_agenda *a, uint32_t *ret_thing)
{
	if (a->things == a->cap && grow(a) != 0)
		return -ENOMEM;
	*ret_thing = a->things++;
	a->at[*ret_thing] = PL_DP_AGENDA_NEVER;
	a->place[*ret_thing] = NOWHERE;
	return 0;
}

static bool before(const struct pl_dp_agenda *a, uint32_t x, uint32_t y)
{
	return a->at[x] != a->at[y] ? a->at[x] < a->at[y] : x < y;
}

static void put(struct pl_dp_agenda *a, uint32_t place, uint32_t thing)
{
	a->heap[place] = thing;
	a->place[thing] = place;
}

/* Moves the item from the free place i to its position in the heap. */
static void settle(struct pl_dp_agenda *a, uint32_t i, uint32_t thing)
{
	uint32_t child;

	while (i > 0 && before(a, thing, a->heap[(i - 1) / 2])) {
		put(a, i, a->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	while ((child = 2 * i + 1) < a->n) {
		if (child + 1 < a->n && before(a, a->heap[child + 1], a->heap[child]))
			child++;
		if (!before(a, a->heap[child], thing))
			break;
		put(a, i, a->heap[child]);
		i = child;
	}
	put(a, i, thing);
}

void pl_dp_agenda_set(struct pl_dp_agenda *a, uint32_t thing, uint64_t at_ns)
{
	uint32_t place = a->place[thing];

	if (a->at[thing] == at_ns)
		return;
	a->at[thing] = at_ns;
	if (at_ns != PL_DP_AGENDA_NEVER) {
		settle(a, place != NOWHERE ? place : a->n++, thing);
		return;
	}
	a->place[thing] = NOWHERE;
	a->n--;
	if (place != a->n)
		settle(a, place, a->heap[a->n]);
}

uint64_t pl_dp_agenda_first(const struct pl_dp_agenda *a, uint32_t *ret_thing)
{
	if (a->n == 0)
		return PL_DP_AGENDA_NEVER;
	*ret_thing = a->heap[0];
	return a->at[a->heap[0]];
}
