/* SPDX-License-Identifier: BSD-2-Clause */
/* Clusters: the network of RFC 9342's appendix, and random ones against the RFC's own steps. */
#include "base/rng.h"
#include "base/test.h"
#include "mark/clusters.h"

#define ARCS_MAX 40u

/* "1 2 > 3 4" */
static const char *text_of(const struct pl_mark_segment *s)
{
	static char text[256];
	int n = 0;

	for (uint32_t i = 0; i < s->n_from; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%u ", s->from[i]);
	n += snprintf(text + n, sizeof(text) - (size_t)n, ">");
	for (uint32_t i = 0; i < s->n_to; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " %u", s->to[i]);
	return text;
}

static void appendix(void)
{
	static const struct pl_mark_arc arcs[] = { { 1, 2 }, { 1, 3 }, { 1, 10 }, { 2, 4 },
		{ 2, 5 }, { 3, 5 }, { 3, 9 }, { 4, 6 }, { 4, 7 }, { 5, 8 } };
	static const char *const want[] = { "1 > 2 3 10", "2 3 > 4 5 9", "4 > 6 7", "5 > 8" };
	struct pl_mark_clusters c;
	struct pl_mark_segment s;
	uint32_t room[64];
	bool chosen[4] = { true, true, true, true };

	eq(pl_mark_clusters_make(&c, arcs, 10, NULL), 0);
	eq(c.n, 4);
	for (uint32_t i = 0; i < c.n && i < 4; i++)
		streq(text_of(&c.segments[i]), want[i]);
	ok(pl_mark_clusters_room(&c) <= 64, "room");
	ok(pl_mark_clusters_union(&s, &c, chosen, room), "all of them together");
	streq(text_of(&s), "1 > 6 7 8 9 10", "are the network");
	chosen[0] = chosen[1] = false;
	ok(pl_mark_clusters_union(&s, &c, chosen, room), "two that do not touch");
	streq(text_of(&s), "4 5 > 6 7 8");
	chosen[1] = true;
	chosen[2] = false;
	ok(pl_mark_clusters_union(&s, &c, chosen, room), "two that do");
	streq(text_of(&s), "2 3 > 4 8 9");
	pl_mark_clusters_done(&c);
}

/* The steps of RFC 9342 5.1: groups by beginning, joined while two share an end. */
static void by_steps(const struct pl_mark_arc *arcs, uint32_t n, uint32_t *groups)
{
	bool again = true;

	for (uint32_t i = 0; i < n; i++) {
		groups[i] = i;
		for (uint32_t k = 0; k < i; k++) {
			if (arcs[k].from == arcs[i].from)
				groups[i] = groups[k];
		}
	}
	while (again) {
		again = false;
		for (uint32_t i = 0; i < n; i++) {
			for (uint32_t k = 0; k < n; k++) {
				const uint32_t old = groups[k];

				if (arcs[i].to != arcs[k].to || groups[i] >= old)
					continue;
				for (uint32_t m = 0; m < n; m++)
					groups[m] = groups[m] == old ? groups[i] : groups[m];
				again = true;
			}
		}
	}
}

static bool has(const uint32_t *points, uint32_t n, uint32_t point)
{
	for (uint32_t i = 0; i < n; i++) {
		if (points[i] == point)
			return true;
	}
	return false;
}

/* Every arc of a group is in the cluster at the place of the group's first arc, and nothing else. */
static bool agree(const struct pl_mark_clusters *c, const struct pl_mark_arc *arcs, uint32_t n,
	const uint32_t *groups)
{
	uint32_t cluster = 0, froms = 0, tos = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_mark_segment *s = &c->segments[cluster];
		uint32_t from[ARCS_MAX], to[ARCS_MAX], n_from = 0, n_to = 0;

		if (groups[i] != i)
			continue;
		for (uint32_t k = 0; k < n; k++) {
			if (groups[k] != i)
				continue;
			if (!has(from, n_from, arcs[k].from))
				from[n_from++] = arcs[k].from;
			if (!has(to, n_to, arcs[k].to))
				to[n_to++] = arcs[k].to;
			if (cluster >= c->n || !has(s->from, s->n_from, arcs[k].from) ||
				!has(s->to, s->n_to, arcs[k].to))
				return false;
		}
		if (n_from != s->n_from || n_to != s->n_to)
			return false;
		froms += n_from;
		tos += n_to;
		cluster++;
	}
	return cluster == c->n && froms > 0 && tos > 0;
}

/* Packets walk through the network at random, some are lost on the way: the clusters' losses are
 * those of their arcs and points, and a union's is the sum. */
static bool losses_add_up(const struct pl_mark_clusters *c, const struct pl_mark_arc *arcs,
	uint32_t n, struct pl_rng *rng)
{
	uint64_t seen[16] = { 0 }, lost[ARCS_MAX] = { 0 };
	int64_t sum = 0, of_union = 0;
	struct pl_mark_segment s;
	uint32_t room[8 * ARCS_MAX];
	bool chosen[ARCS_MAX], good = true;

	for (unsigned int packet = 0; packet < 200; packet++) {
		uint32_t at = 0;

		for (seen[at]++;;) {
			uint32_t ways[ARCS_MAX], n_ways = 0, way;

			for (uint32_t i = 0; i < n; i++) {
				if (arcs[i].from == at)
					ways[n_ways++] = i;
			}
			if (n_ways == 0)
				break;
			way = ways[pl_rng_below(rng, n_ways)];
			if (pl_rng_below(rng, 8) == 0) {
				lost[way]++;
				break;
			}
			at = arcs[way].to;
			seen[at]++;
		}
	}
	for (uint32_t i = 0; i < c->n; i++) {
		int64_t loss = 0, truth = 0;

		for (uint32_t k = 0; k < c->segments[i].n_from; k++)
			loss += (int64_t)seen[c->segments[i].from[k]];
		for (uint32_t k = 0; k < c->segments[i].n_to; k++)
			loss -= (int64_t)seen[c->segments[i].to[k]];
		for (uint32_t k = 0; k < n; k++)
			truth += has(c->segments[i].from, c->segments[i].n_from, arcs[k].from)
					 ? (int64_t)lost[k]
					 : 0;
		good &= loss == truth;
		chosen[i] = true;
		sum += loss;
	}
	if (!pl_mark_clusters_union(&s, c, chosen, room))
		return good;
	for (uint32_t k = 0; k < s.n_from; k++)
		of_union += (int64_t)seen[s.from[k]];
	for (uint32_t k = 0; k < s.n_to; k++)
		of_union -= (int64_t)seen[s.to[k]];
	return good && of_union == sum;
}

static void random_networks(void)
{
	struct pl_rng rng;
	unsigned int wrong = 0, wrong_losses = 0;

	for (unsigned int seed = 1; seed <= 2000; seed++) {
		struct pl_mark_arc arcs[ARCS_MAX];
		uint32_t groups[ARCS_MAX];
		struct pl_mark_clusters c;
		uint32_t n;

		pl_rng_seed(&rng, seed);
		n = 1 + (uint32_t)pl_rng_below(&rng, ARCS_MAX);
		/* No way leads back: packets end. */
		for (uint32_t i = 0; i < n; i++) {
			arcs[i].from = (uint32_t)pl_rng_below(&rng, 15);
			arcs[i].to =
				arcs[i].from + 1 + (uint32_t)pl_rng_below(&rng, 15 - arcs[i].from);
		}
		by_steps(arcs, n, groups);
		if (pl_mark_clusters_make(&c, arcs, n, NULL) < 0)
			abort();
		wrong += !agree(&c, arcs, n, groups);
		wrong_losses += !losses_add_up(&c, arcs, n, &rng);
		pl_mark_clusters_done(&c);
	}
	eq(wrong, 0, "clusters are those of the RFC's steps");
	eq(wrong_losses, 0, "and their losses those of their links");
}

static void refused(void)
{
	static const struct pl_mark_arc loop[] = { { 1, 2 }, { 2, 2 } };
	struct pl_diag diag = { 0 };
	struct pl_mark_clusters c;

	ok(pl_mark_clusters_make(&c, loop, 2, &diag) < 0, "%s", diag.text);
	ok(pl_mark_clusters_make(&c, loop, 0, &diag) < 0, "%s", diag.text);
}

int main(void)
{
	appendix();
	random_networks();
	refused();
	return pl_test_done();
}
