/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes the bits of a connection's packets, and judges the edges of its spin bit. */
#include "mark/efm.h"

#include <stdlib.h>
#include <string.h>

#define AROUND        8u /* intervals on each side of an edge that give the usual one */
#define HOLD_PART     4  /* an edge within usual / HOLD_PART of the last is a straggler's */
#define PAUSE_TIMES   4

#define T_MAX_NS      UINT64_C(1000000000)
#define T_MAX_MORE_NS UINT64_C(100000000)

static void add(struct pl_efm_stat *s, uint64_t value)
{
	s->least = s->n == 0 || value < s->least ? value : s->least;
	s->most = value > s->most ? value : s->most;
	s->sum += value;
	s->n++;
}

/* ---- the delay bit (RFC 9506 2.2) ---- */

/* Returns T_max - K: when two samples are further apart, the second is a new sample of the
 * client. */
static uint64_t furthest(const struct pl_efm *e)
{
	uint64_t t_max = T_MAX_NS;

	if (e->delay_rtt_ns != 0 && e->delay_rtt_ns < (T_MAX_NS - T_MAX_MORE_NS) / 2)
		t_max = 2 * e->delay_rtt_ns + T_MAX_MORE_NS;
	return t_max - t_max / 10;
}

static void take_sample(struct pl_efm *e, unsigned int way, uint64_t now)
{
	struct pl_efm_way *w = &e->ways[way], *other = &e->ways[way ^ 1];
	const uint64_t limit = furthest(e);

	/* A sample in the other direction since the last one in this direction is the same sample
	 * on its way. */
	if (other->has_sample && (!w->has_sample || other->sample_ns >= w->sample_ns) &&
		now - other->sample_ns < limit)
		add(&other->delay_half, now - other->sample_ns);
	if (w->has_sample) {
		if (now - w->sample_ns < limit) {
			add(&w->delay_rtt, now - w->sample_ns);
			e->delay_rtt_ns = now - w->sample_ns;
		} else {
			w->far_apart++;
		}
	}
	w->has_sample = true;
	w->sample_ns = now;
}

/* ---- the usual interval ---- */

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns the weighted median of n intervals, each weighing its own length, but at most `most`. */
static uint64_t middle_of_time(const uint64_t *sorted, unsigned int n, uint64_t most)
{
	uint64_t all = 0, sum = 0;
	unsigned int i = 0;

	for (i = 0; i < n; i++)
		all += sorted[i] < most ? sorted[i] : most;
	for (i = 0; i + 1 < n; i++) {
		sum += sorted[i] < most ? sorted[i] : most;
		if (sum >= all - sum)
			break;
	}
	return sorted[i];
}

static uint64_t usual_of(uint64_t *intervals, unsigned int n)
{
	uint64_t third;

	if (n == 0)
		return 0;
	qsort(intervals, n, sizeof(*intervals), compare);
	third = intervals[n >= 12 ? n - 3 : n >= 4 ? n - 2 : n - 1];
	return middle_of_time(intervals, n, third > UINT64_MAX / 256 ? third : 4 * third);
}

/* Returns the usual interval between edges of one direction around edge `at`; intervals across a
 * break do not count, and the handshake's counts when there are few. */
static uint64_t usual_at(const struct pl_efm *e, uint32_t at)
{
	const unsigned int way = e->edges[at].way;
	uint64_t intervals[2 * AROUND + 1];
	unsigned int n = 0, seen = 0;
	uint64_t later = e->edges[at].ns;
	bool broken = e->edges[at].broken;

	for (uint32_t i = at; i-- > 0 && seen < AROUND;) {
		if (e->edges[i].way != way)
			continue;
		if (!broken)
			intervals[n++] = later - e->edges[i].ns;
		later = e->edges[i].ns;
		broken = e->edges[i].broken;
		seen++;
	}
	seen = 0;
	later = e->edges[at].ns;
	for (uint32_t i = at + 1; i < e->n && seen < AROUND; i++) {
		if (e->edges[i].way != way)
			continue;
		if (!e->edges[i].broken)
			intervals[n++] = e->edges[i].ns - later;
		later = e->edges[i].ns;
		seen++;
	}
	if (n < 4 && e->handshake_ns != 0)
		intervals[n++] = e->handshake_ns;
	return usual_of(intervals, n);
}

/* ---- trains of the round-trip loss bit (RFC 9506 3.1) ---- */

static void end_period(struct pl_efm_trains *t, uint64_t marked)
{
	const unsigned int second = (unsigned int)(t->n & 1);

	if (marked > 0) {
		t->now += marked;
		return;
	}
	if (t->now == 0)
		return;
	if (t->n > 0) {
		/* Pairs (0, 1), (2, 3) if the first one was generated, or (1, 2), (3, 4). */
		t->generated[second ^ 1] += t->last;
		t->reflected[second ^ 1] += t->now;
		t->negative[second ^ 1] += t->now > t->last;
	}
	t->last = t->now;
	t->now = 0;
	t->n++;
}

/* ---- edges that are taken ---- */

static void take_edge(struct pl_efm *e, const struct pl_efm_edge *edge, uint64_t usual)
{
	struct pl_efm_way *w = &e->ways[edge->way], *last = &e->ways[e->last_way];
	const bool paused =
		w->taken && usual != 0 && (edge->ns - w->taken_ns) / PAUSE_TIMES > usual;

	if (w->taken) {
		w->paused += paused;
		if (!paused)
			add(&w->spin_rtt, edge->ns - w->taken_ns);
	}
	if (w->taken || e->from_start)
		end_period(&w->trains, w->period_marked);
	w->period_marked = 0;
	if (e->has_last && e->last_way != edge->way) {
		last->copied += e->last_spin == edge->spin;
		last->inverted += e->last_spin != edge->spin;
		if (usual == 0 || (edge->ns - e->last_ns) / PAUSE_TIMES <= usual)
			add(&last->spin_half, edge->ns - e->last_ns);
	}
	w->taken = true;
	w->taken_ns = edge->ns;
	w->taken_spin = edge->spin;
	e->has_last = true;
	e->last_way = edge->way;
	e->last_spin = edge->spin;
	e->last_ns = edge->ns;
}

static void judge(struct pl_efm *e)
{
	for (uint32_t i = 0; i < e->n; i++) {
		const struct pl_efm_edge *edge = &e->edges[i];
		struct pl_efm_way *w = &e->ways[edge->way];
		const uint64_t usual = usual_at(e, i);

		if (edge->broken) {
			w->taken = false;
			w->trains = (struct pl_efm_trains){ .n = w->trains.n & ~UINT64_C(1),
				.generated = { w->trains.generated[0], w->trains.generated[1] },
				.reflected = { w->trains.reflected[0], w->trains.reflected[1] },
				.negative = { w->trains.negative[0], w->trains.negative[1] } };
			w->period_marked = 0;
			if (e->last_way == edge->way)
				e->has_last = false;
			continue;
		}
		w->period_marked += edge->marked;
		if (w->taken && edge->spin == w->taken_spin)
			continue;
		if (w->taken && edge->ns - w->taken_ns < usual / HOLD_PART) {
			w->rejected++;
			continue;
		}
		take_edge(e, edge, usual);
	}
	e->n = 0;
}

static void put_edge(
	struct pl_efm *e, unsigned int way, uint64_t time_ns, unsigned int spin, bool broken)
{
	struct pl_efm_way *w = &e->ways[way];

	if (e->n == PL_EFM_EDGES)
		judge(e);
	e->edges[e->n++] = (struct pl_efm_edge){ .ns = time_ns,
		.marked = w->marked,
		.way = (uint8_t)way,
		.spin = (uint8_t)spin,
		.broken = broken };
	w->marked = 0;
}

/* ---- packets ---- */

static void take_spin(struct pl_efm *e, unsigned int way, uint64_t now, unsigned int spin)
{
	struct pl_efm_way *w = &e->ways[way];

	if (w->has_spin && w->spin != spin) {
		put_edge(e, way, now, spin, false);
		w->edges++;
		w->single += w->run == 1;
		w->run = 0;
	}
	w->has_spin = true;
	w->spin = (uint8_t)spin;
	w->run += w->run < UINT32_MAX;
}

void pl_efm_take(struct pl_efm *e, const struct pl_efm_config *config, unsigned int way,
	uint64_t time_ns, uint8_t byte, bool congested)
{
	struct pl_efm_way *w = &e->ways[way], *other = &e->ways[way ^ 1];
	const uint8_t *m = config->masks;
	uint64_t now = time_ns;

	now = w->packets > 0 && now < w->last_ns ? w->last_ns : now;
	now = other->packets > 0 && now < other->last_ns ? other->last_ns : now;
	if (w->packets++ == 0)
		w->first_ns = now;
	w->last_ns = now;
	w->congested += congested;
	w->loss += (byte & m[PL_EFM_LOSS]) != 0;
	w->echo += (byte & m[PL_EFM_ECN_ECHO]) != 0;
	if (m[PL_EFM_SPIN] != 0)
		take_spin(e, way, now, (byte & m[PL_EFM_SPIN]) != 0);
	/* Behind the edge: the packet is of the period that it begins. */
	w->marked += (byte & m[PL_EFM_ROUND_TRIP]) != 0;
	if ((byte & m[PL_EFM_DELAY]) != 0)
		take_sample(e, way, now);
	if (m[PL_EFM_SQUARE] != 0)
		pl_efm_square_take(&w->square, (byte & m[PL_EFM_SQUARE]) != 0, config->threshold);
	if (m[PL_EFM_REFLECTION] != 0)
		pl_efm_square_take(
			&w->reflection, (byte & m[PL_EFM_REFLECTION]) != 0, config->threshold);
}

void pl_efm_break(struct pl_efm *e, unsigned int way, uint64_t time_ns)
{
	struct pl_efm_way *w = &e->ways[way], *other = &e->ways[way ^ 1];
	uint64_t now = time_ns;

	now = w->packets > 0 && now < w->last_ns ? w->last_ns : now;
	now = other->packets > 0 && now < other->last_ns ? other->last_ns : now;
	if (w->has_spin)
		put_edge(e, way, now, w->spin, true);
	w->has_spin = false;
	w->run = 0;
	w->has_sample = false;
	pl_efm_square_break(&w->square);
	pl_efm_square_break(&w->reflection);
}

void pl_efm_finish(struct pl_efm *e)
{
	judge(e);
}
