/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps samples of flows' blocks in a hash table, and compares those of two points. */
#include "ask/mark_hashes.h"

#include <stdlib.h>
#include <string.h>

#include "ask/mark_capture.h"
#include "base/hash.h"

#define SETS_MAX (UINT32_C(1) << 20) /* flows' blocks of a point */
#define PLACES   (2 * SETS_MAX)

struct set {
	struct pl_mark_flow flow;
	uint64_t block;
	uint32_t capacity; /* room for samples, which are on the heap */
	struct pl_mark_samples samples;
};

struct pl_mark_hashes {
	uint32_t room, n, capacity;
	uint64_t seed;
	struct set *sets;
	uint32_t *places; /* hash table: index in sets plus 1; 0: empty */
};

/* ---- what a point chose ---- */

struct pl_mark_hashes *pl_mark_hashes_new(uint32_t room)
{
	struct pl_mark_hashes *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->room = room;
	h->seed = pl_hash_seed();
	h->places = calloc(PLACES, sizeof(*h->places));
	if (h->places != NULL)
		return h;
	free(h);
	return NULL;
}

void pl_mark_hashes_free(struct pl_mark_hashes *h)
{
	if (h == NULL)
		return;
	for (uint32_t i = 0; i < h->n; i++)
		free(h->sets[i].samples.samples);
	free(h->sets);
	free(h->places);
	free(h);
}

/* Returns the place of a flow's block, or the free one for it. The table is never full. */
static uint32_t *place_of(
	const struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block)
{
	uint32_t i = (uint32_t)pl_hash_mix(pl_hash(flow, sizeof(*flow), h->seed), block) % PLACES;

	while (h->places[i] != 0) {
		const struct set *s = &h->sets[h->places[i] - 1];

		if (s->block == block && memcmp(&s->flow, flow, sizeof(*flow)) == 0)
			break;
		i = (i + 1) % PLACES;
	}
	return &h->places[i];
}

static const struct set *find(
	const struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block)
{
	const uint32_t place = *place_of(h, flow, block);

	return place != 0 ? &h->sets[place - 1] : NULL;
}

static struct set *add_set(
	struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block, uint32_t *place)
{
	if (h->n == SETS_MAX)
		return NULL;
	if (h->n == h->capacity) {
		const uint32_t capacity = h->capacity == 0 ? 256 : 2 * h->capacity;
		struct set *more = realloc(h->sets, capacity * sizeof(*more));

		if (more == NULL)
			return NULL;
		h->sets = more;
		h->capacity = capacity;
	}
	h->sets[h->n] = (struct set){ .flow = *flow, .block = block };
	pl_mark_samples_init(&h->sets[h->n].samples, NULL, h->room);
	*place = ++h->n;
	return &h->sets[h->n - 1];
}

bool pl_mark_hashes_add(struct pl_mark_hashes *h, const struct pl_mark_flow *flow, uint64_t block,
	uint32_t hash, uint64_t time_ns)
{
	uint32_t *place = place_of(h, flow, block);
	struct set *s = *place != 0 ? &h->sets[*place - 1] : add_set(h, flow, block, place);

	if (s == NULL)
		return false;
	if (s->samples.n == s->capacity && s->capacity < h->room) {
		const uint32_t capacity = s->capacity == 0 ? 8 : 2 * s->capacity;
		struct pl_mark_sample *more = realloc(s->samples.samples, capacity * sizeof(*more));

		if (more == NULL)
			return false;
		s->samples.samples = more;
		s->capacity = capacity;
	}
	pl_mark_samples_add(&s->samples, hash, time_ns);
	return true;
}

uint32_t pl_mark_hashes_count(const struct pl_mark_hashes *h)
{
	return h->n;
}

struct pl_mark_hashes_key pl_mark_hashes_key(const struct pl_mark_hashes *h, uint32_t i)
{
	return (struct pl_mark_hashes_key){ .block = h->sets[i].block, .flow = h->sets[i].flow };
}

/* ---- comparison ---- */

static bool grow(void **array, size_t bytes)
{
	void *more = realloc(*array, bytes);

	if (more == NULL)
		return false;
	*array = more;
	return true;
}

static bool make_room(struct pl_mark_chooser *c, size_t n)
{
	const size_t bytes = n * sizeof(struct pl_mark_sample);
	void *from = c->from.samples, *to = c->to.samples, *delays = c->delays;
	bool grown;

	if (n <= c->room)
		return true;
	grown = grow(&from, bytes) && grow(&to, bytes) && grow(&delays, n * sizeof(*c->delays));
	c->from.samples = from;
	c->to.samples = to;
	c->delays = delays;
	if (grown)
		c->room = n;
	return grown;
}

static bool gather(struct pl_mark_chooser *c, struct pl_mark_samples *to, const struct set *set)
{
	if (set == NULL || set->samples.n == 0) {
		to->bits =
			set != NULL && set->samples.bits > to->bits ? set->samples.bits : to->bits;
		return true;
	}
	if (!make_room(c, (size_t)to->n + set->samples.n))
		return false;
	memcpy(&to->samples[to->n], set->samples.samples,
		set->samples.n * sizeof(*set->samples.samples));
	to->n += set->samples.n;
	to->bits = set->samples.bits > to->bits ? set->samples.bits : to->bits;
	return true;
}

static void tell_delays(struct pl_mark_chosen *ret, const int64_t *ns)
{
	const uint32_t n = ret->matched.matched;
	__int128 sum = 0;

	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		sum += ns[i];
	ret->least_ns = ns[0];
	ret->mean_ns = (int64_t)(sum / n);
	ret->median_ns = ns[(n - 1) / 2];
	ret->most_ns = ns[n - 1];
}

bool pl_mark_choose(struct pl_mark_chooser *c, struct pl_mark_chosen *ret,
	const struct pl_mark_capture *captures, const struct pl_mark_segment *s,
	const struct pl_mark_hashes_key *key, uint32_t around)
{
	bool good = make_room(c, 1);

	*ret = (struct pl_mark_chosen){ 0 };
	c->from.n = c->to.n = c->from.bits = c->to.bits = 0;
	for (uint32_t i = 0; i < s->n_from && good; i++)
		good = gather(
			c, &c->from, find(captures[s->from[i] - 1].hashes, &key->flow, key->block));
	for (uint32_t i = 0; i < s->n_to && good; i++) {
		const struct pl_mark_hashes *h = captures[s->to[i] - 1].hashes;

		for (uint64_t k = key->block - around; k <= key->block + around && good; k++)
			good = gather(c, &c->to, find(h, &key->flow, k));
	}
	if (!good)
		return false;
	pl_mark_samples_match(&ret->matched, c->delays, &c->from, &c->to);
	tell_delays(ret, c->delays);
	return true;
}

void pl_mark_chooser_done(struct pl_mark_chooser *c)
{
	free(c->from.samples);
	free(c->to.samples);
	free(c->delays);
}
