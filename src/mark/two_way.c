/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps one direction's delays of a block until the other direction's come. */
#include "mark/two_way.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct way {
	struct pl_mark_flow flow;
	uint32_t way; /* twice the link's number, plus 1 on the way back */
	uint32_t has;
	int64_t delay_ns, mean_ns;
};

struct pl_mark_two_way {
	uint64_t block; /* block of all kept ways */
	uint64_t seed;
	uint32_t n, room; /* ways; room is a power of two */
	struct way *ways;
	uint32_t *places; /* hash table of 2 * room: a way's number plus 1; 0: empty */
};

struct pl_mark_two_way *pl_mark_two_way_new(void)
{
	struct pl_mark_two_way *t = calloc(1, sizeof(*t));

	if (t != NULL)
		t->seed = pl_hash_seed();
	return t;
}

void pl_mark_two_way_free(struct pl_mark_two_way *t)
{
	if (t == NULL)
		return;
	free(t->ways);
	free(t->places);
	free(t);
}

/* Returns the place of the way, or the free place where it belongs. The table is at most half
 * full. */
static uint32_t *place_of(
	const struct pl_mark_two_way *t, const struct pl_mark_flow *flow, uint32_t way)
{
	const uint64_t hash = pl_hash_mix(pl_hash(flow, sizeof(*flow), t->seed), way);
	uint32_t i = (uint32_t)hash & (2 * t->room - 1);

	for (; t->places[i] != 0; i = (i + 1) & (2 * t->room - 1)) {
		const struct way *w = &t->ways[t->places[i] - 1];

		if (w->way == way && memcmp(&w->flow, flow, sizeof(*flow)) == 0)
			break;
	}
	return &t->places[i];
}

static bool grow(struct pl_mark_two_way *t)
{
	const uint32_t room = t->room == 0 ? 256 : 2 * t->room;
	uint32_t *places = calloc(2 * (size_t)room, sizeof(*places));
	struct way *ways = realloc(t->ways, room * sizeof(*ways));

	if (ways != NULL)
		t->ways = ways;
	if (ways == NULL || places == NULL) {
		free(places);
		return false;
	}
	free(t->places);
	t->places = places;
	t->room = room;
	for (uint32_t i = 0; i < t->n; i++)
		*place_of(t, &ways[i].flow, ways[i].way) = i + 1;
	return true;
}

static void forget(struct pl_mark_two_way *t, uint64_t block)
{
	if (t->n > 0)
		memset(t->places, 0, 2 * (size_t)t->room * sizeof(*t->places));
	t->n = 0;
	t->block = block;
}

static struct pl_mark_flow turned(const struct pl_mark_flow *f)
{
	struct pl_mark_flow back = *f;

	back.src = f->dst;
	back.dst = f->src;
	back.sport = f->dport;
	back.dport = f->sport;
	return back;
}

static void add_up(
	struct pl_mark_round *ret, const struct pl_mark_result *result, const struct way *other)
{
	ret->has = result->has & other->has & (PL_MARK_HAS_DELAY | PL_MARK_HAS_MEAN);
	if ((ret->has & PL_MARK_HAS_DELAY) != 0)
		ret->delay_ns = result->delay_ns + other->delay_ns;
	if ((ret->has & PL_MARK_HAS_MEAN) != 0)
		ret->mean_ns = result->mean_ns + other->mean_ns;
}

bool pl_mark_two_way_add(struct pl_mark_two_way *t, const struct pl_mark_result *result,
	uint32_t link, bool back, struct pl_mark_round *ret)
{
	const struct pl_mark_flow other = turned(&result->flow);
	const uint32_t way = 2 * link + back;
	uint32_t *place;

	*ret = (struct pl_mark_round){ 0 };
	if (result->block < t->block || result->flow.has_flow_id != 0)
		return true;
	if (result->block > t->block)
		forget(t, result->block);
	if (t->n == t->room && !grow(t))
		return false;
	place = place_of(t, &other, way ^ 1);
	if (*place != 0)
		add_up(ret, result, &t->ways[*place - 1]);
	place = place_of(t, &result->flow, way);
	if (*place == 0)
		*place = ++t->n;
	t->ways[*place - 1] = (struct way){ .flow = result->flow,
		.way = way,
		.has = result->has,
		.delay_ns = result->delay_ns,
		.mean_ns = result->mean_ns };
	return true;
}
