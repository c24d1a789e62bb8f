/* SPDX-License-Identifier: BSD-2-Clause */
/* Part of the model (random_model.h) for packets at several places: packets that may be added later
 * are kept one by one. */
#pragma once

#include "flow/random_model_flow.h"

#define MODEL_TICK UINT64_C(1024) /* ns: resolution of the cache's last packet of a direction */

static bool model_same_place(uint16_t a, uint16_t b)
{
	return a % 1024 == b % 1024 && (a & PL_OBS_OUT) == (b & PL_OBS_OUT);
}

/* Weight of a packet: the field mss of a sampled packet; in a SYN that field holds the MSS
 * option. */
static uint32_t model_weight(const struct pl_pkt96 *p)
{
	const bool syn = p->proto == 6 && p->tcp_flags & SYN;

	return p->obs & PL_OBS_SAMPLED && !syn && p->mss > 0 ? p->mss : 1;
}

static void model_heard(struct view *v, uint64_t ts)
{
	if (ts / MODEL_TICK * MODEL_TICK > v->heard)
		v->heard = ts / MODEL_TICK * MODEL_TICK;
	v->waits = false;
}

/* Gives up the packets that were kept. */
static void model_give_up(struct model_counts *m, struct mflow *f, unsigned int d)
{
	struct view *v = &f->view[d];

	for (uint32_t i = 0; i < v->n; i++) {
		v->elsewhere += model_weight(&v->kept[i]);
		m->n.elsewhere++;
	}
	v->n = 0;
	v->waits = false;
}

/* True when the place was known in this record. */
static bool model_note(struct mflow *f, uint16_t obs)
{
	const uint16_t place = obs & (1023 | PL_OBS_OUT);
	uint16_t *const also[] = { &f->r.also_1, &f->r.also_2, &f->r.also_3, &f->r.also_4,
		&f->r.also_5, &f->r.also_6 };

	for (unsigned int d = 0; d < 2; d++)
		if (f->view[d].moved && model_same_place(f->view[d].first_obs, place))
			return true;
	for (unsigned int i = 0; i < 6 && place != 0; i++) {
		if (*also[i] == place)
			return true;
		if (*also[i] == 0) {
			*also[i] = place;
			return false;
		}
	}
	f->r.also_more = 1;
	return false;
}

static void model_keep(struct view *v, const struct pl_pkt96 *p)
{
	if (v->n == v->max) {
		v->max = 2 * v->max + 8;
		v->kept = realloc(v->kept, v->max * sizeof(*v->kept));
		if (v->kept == NULL)
			abort();
	}
	v->kept[v->n++] = *p;
	if (!v->waits && p->ts_ns >= v->heard + SECOND) {
		v->waits = true;
		v->alone_ts = p->ts_ns;
	}
}

static void model_watch(struct view *v, uint16_t obs, bool copies)
{
	v->watches = true;
	v->watched = obs;
	v->copies = copies;
}

/* A packet at a place that does not count. */
static void model_elsewhere(
	struct model_counts *m, struct mflow *f, unsigned int d, const struct pl_pkt96 *p)
{
	struct view *v = &f->view[d];
	const bool known = model_note(f, p->obs),
		   fresh = !known && p->ts_ns >= f->r.first_ts + SECOND,
		   newer = p->ts_ns >= v->heard + MODEL_TICK;
	bool same, better;

	for (uint32_t i = 0; i < v->n; i++)
		if (v->kept[i].ts_ns < v->heard + MODEL_TICK) {
			model_give_up(m, f, d);
			v->copies = true;
		}
	same = v->watches && model_same_place(v->watched, p->obs);
	better =
		!v->watches ||
		(!v->waits && (v->n == 0 || p->ts_ns >= v->heard + SECOND || (fresh && v->copies)));
	if (!newer && (same || !v->watches))
		model_watch(v, p->obs, true);
	if (newer && !same && better) {
		model_give_up(m, f, d);
		model_watch(v, p->obs, !fresh);
		same = true;
	}
	if (newer && same && (!v->copies || p->ts_ns > v->heard + 1000000)) {
		model_keep(v, p);
	} else {
		v->elsewhere += model_weight(p);
		m->n.elsewhere++;
	}
}

/* Takes the numbers that were kept into the record. */
static void model_add_kept(struct mflow *f, unsigned int d)
{
	struct view *v = &f->view[d];
	uint64_t low = v->kept[0].ts_ns, high = low, gap = 0;
	struct pl_flow288 *r = &f->r;

	for (uint32_t i = 0; i < v->n; i++) {
		const struct pl_pkt96 *p = &v->kept[i];
		const uint64_t away = p->ts_ns > high  ? p->ts_ns - high
				      : p->ts_ns < low ? low - p->ts_ns
						       : 0;

		gap = away > gap ? away : gap;
		low = p->ts_ns < low ? p->ts_ns : low;
		high = p->ts_ns > high ? p->ts_ns : high;
		*(d == 0 ? &r->pkts_fwd : &r->pkts_rev) += model_weight(p);
		*(d == 0 ? &r->bytes_fwd : &r->bytes_rev) += model_weight(p) * p->wire_len;
		r->records++;
		f->sampled = f->sampled || p->obs & PL_OBS_SAMPLED;
	}
	if (high > r->last_ts) {
		if (low > r->last_ts)
			gap = low - r->last_ts > gap ? low - r->last_ts : gap;
		else
			gap = high - r->last_ts < gap ? high - r->last_ts : gap;
		f->gap_ns = gap > f->gap_ns ? gap : f->gap_ns;
		r->last_ts = high;
	}
	v->heard = high / MODEL_TICK * MODEL_TICK;
}

/* A connection whose packets were not all looked at. */
static void model_lost_sight(struct mflow *f, unsigned int d)
{
	struct view *v = &f->view[d];
	struct side *s = &f->s[d];
	uint64_t newest = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		const struct pl_pkt96 *p = &v->kept[i];

		newest = p->ts_ns > newest ? p->ts_ns : newest;
		*(d == 0 ? &f->r.flags_fwd : &f->r.flags_rev) |= p->tcp_flags;
		f->fin[d] = f->fin[d] || p->tcp_flags & FIN;
		f->rst = f->rst || p->tcp_flags & RST;
		if (!(p->obs & (PL_OBS_FRAGMENT | PL_OBS_TRUNCATED | PL_OBS_SAMPLED)) &&
			!(p->tcp_flags & RST) && (p->pay_len > 0 || p->tcp_flags & (SYN | FIN))) {
			model_lose(s, 0, 1);
			model_lose(s, 1, 1);
		}
	}
	if (!f->closed && (f->rst || (f->fin[0] && f->fin[1]))) {
		f->closed = true;
		f->closed_ts = newest;
	}
	for (unsigned int k = 0; k < 2; k++) {
		model_lose(&f->s[k], 0, f->s[k].sample);
		model_lose(&f->s[k], 1, f->s[k].stamps);
		f->s[k].sample = false;
		f->s[k].stamps = 0;
	}
	s->any = s->window_known = s->hole = false;
	f->s[1 - d].dups = 0;
	f->shaken = f->shaken || f->opened;
}

/* Places that have waited for a second count. */
static void model_settle(struct model_counts *m, struct mflow *f, uint64_t now)
{
	for (unsigned int d = 0; d < 2; d++) {
		struct view *v = &f->view[d];

		if (!v->waits || now < v->alone_ts + SECOND)
			continue;
		if ((d == 0 ? f->r.pkts_fwd : f->r.pkts_rev) > 0 && !v->moved) {
			v->moved = true;
			v->first_obs = v->obs;
		}
		v->obs = v->kept[0].obs & (uint16_t)~PL_OBS_SAMPLED;
		model_add_kept(f, d);
		if (f->r.proto == 6)
			model_lost_sight(f, d);
		v->n = 0;
		v->waits = v->watches = false;
		m->n.moved++;
	}
}

/* Writes the places into the record. */
static void model_tell_places(const struct mflow *f, struct pl_flow288 *r)
{
	const struct view *v = f->view;

	r->obs = v[0].moved ? v[0].first_obs : v[0].obs;
	r->obs |= f->sampled ? PL_OBS_SAMPLED : 0;
	r->obs_rev = r->pkts_rev == 0 ? 0 : v[1].moved ? v[1].first_obs : v[1].obs;
	r->elsewhere_fwd = (uint32_t)v[0].elsewhere;
	r->elsewhere_rev = (uint32_t)v[1].elsewhere;
}

/* The next record of the flow: `ts` is its first packet's. */
static void model_places_anew(struct mflow *f, uint64_t ts)
{
	f->sampled = false;
	f->view[0].moved = f->view[1].moved = false;
	for (unsigned int d = 0; d < 2; d++) {
		struct view *v = &f->view[d];

		v->elsewhere = 0;
		if (v->heard > ts)
			v->heard = ts / MODEL_TICK * MODEL_TICK;
		if (v->n > 0)
			(void)model_note(f, v->kept[0].obs);
	}
}
