/* SPDX-License-Identifier: BSD-2-Clause */
/* The model (random_model.h), and its part for TCP: round-trip times, segments sent again,
 * acknowledgements. */
#pragma once

#include "flow/random_model_place.h"

struct model {
	struct mflow *first;
	struct pl_flow_config config;
	uint32_t room;
	uint64_t clock;
	uint32_t behind;
	struct kept *out;
	struct model_counts c;
};

/* How far a is ahead of b on the circle. */
static int64_t ahead(uint32_t a, uint32_t b)
{
	const uint32_t forward = a - b;

	return forward < UINT32_C(1) << 31 ? (int64_t)forward
					   : (int64_t)forward - (INT64_C(1) << 32);
}

static uint64_t elapsed(uint64_t from, uint64_t to)
{
	return to < from ? 0 : to - from;
}

static bool model_time(struct side *s, unsigned int m, uint64_t from, uint64_t to)
{
	const uint64_t ns = elapsed(from, to);
	const uint32_t us = (uint32_t)(ns / 1000 + (ns % 1000 != 0));

	if (ns == 0 || ns > 10 * SECOND) {
		model_lose(s, m, 1);
		return false;
	}
	if (s->by[m].times == 0 || us < s->by[m].least_us)
		s->by[m].least_us = us;
	s->by[m].sum_us += us;
	s->by[m].times++;
	return true;
}

/* True when a segment with a SYN is of this connection. */
static bool model_syn(struct mflow *f, unsigned int d, const struct pl_pkt96 *p)
{
	struct side *s = &f->s[d];

	if (s->isn_known && s->isn == p->tcp_seq)
		return true;
	if (s->isn_known && f->opened && !f->answered && !f->shaken && f->opener == d &&
		!(p->tcp_flags & ACK)) {
		struct side anew = { .window = s->window };

		model_lose(s, 0, s->sample);
		model_lose(s, 1, s->stamps);
		memcpy(anew.by, s->by, sizeof(anew.by));
		*s = anew;
		f->opened = false;
	} else if (s->isn_known || s->any) {
		return false;
	}
	s->isn_known = true;
	s->isn = p->tcp_seq;
	return true;
}

static void model_handshake(
	struct model *m, struct mflow *f, unsigned int d, const struct pl_pkt96 *p)
{
	const unsigned int flags = p->tcp_flags & (FIN | SYN | RST | ACK);
	uint64_t ns;

	if (f->shaken)
		return;
	if (!f->opened) {
		if (flags == SYN) {
			f->opened = true;
			f->opener = d;
			f->syn_ts = p->ts_ns;
		}
	} else if (!f->answered) {
		if (flags == SACK && d != f->opener && p->tcp_ack - f->s[f->opener].isn == 1) {
			f->answered = true;
			f->syn_ack_ts = p->ts_ns;
			ns = elapsed(f->syn_ts, p->ts_ns);
			if (ns <= 30 * SECOND)
				f->r.hs_external_us = (uint32_t)((ns + 999) / 1000);
			else
				f->shaken = true;
		}
	} else if (flags == ACK && d == f->opener && p->tcp_seq - f->s[d].isn == 1 &&
		   p->tcp_ack - f->s[!d].isn == 1) {
		f->shaken = true;
		ns = elapsed(f->syn_ack_ts, p->ts_ns);
		if (ns <= 30 * SECOND) {
			f->r.hs_internal_us = (uint32_t)((ns + 999) / 1000);
			m->c.n.handshakes++;
			f->measured = true;
		}
	}
}

/* A segment [from, to) of which some was seen, or should have been. */
static void model_again(struct model *m, struct mflow *f, unsigned int d, const struct pl_pkt96 *p,
	uint32_t from, uint32_t to)
{
	struct side *s = &f->s[d];
	const uint64_t late = elapsed(s->top_ts, p->ts_ns);
	uint64_t patience = 3000000;
	bool missing = false, id_before;

	if (model_times(&f->s[0]) > 0 && model_times(&f->s[1]) > 0) {
		const uint64_t half =
			((uint64_t)model_least(&f->s[0]) + model_least(&f->s[1])) * 1000 / 2;

		patience = half > patience ? half : patience;
	}
	if (s->hole && ahead(from, s->hole_a) >= 0 && ahead(s->hole_b, to) >= 0) {
		missing = true;
		if (to == s->hole_b)
			s->hole_b = from;
		else
			s->hole_a = to;
		s->hole = s->hole_a != s->hole_b;
	}
	if (p->pay_len == 1 && !(p->tcp_flags & (SYN | FIN)) && to == s->top &&
		(!s->acked_known || ahead(s->acked, to) >= 0)) {
		m->c.n.keepalives++;
		*(d == 0 ? &f->r.keepalives_fwd : &f->r.keepalives_rev) += 1;
		return;
	}
	id_before =
		p->ip_id != 0 && s->top_id != 0 && (uint16_t)(s->top_id - p->ip_id - 1) < 0x8000;
	if (late < patience && (missing || id_before)) {
		m->c.n.out_of_order++;
		if (d == 0)
			f->r.ooo_fwd++;
		else
			f->r.ooo_rev++;
		return;
	}
	if (d == 0)
		f->r.retrans_fwd++;
	else
		f->r.retrans_rev++;
	model_lose(s, 0, s->sample);
	s->sample = false;
	if (s->acked_known && ahead(s->acked, to) >= 0) {
		m->c.n.retrans_spurious++;
		*(d == 0 ? &f->r.retrans_spurious_fwd : &f->r.retrans_spurious_rev) += 1;
	} else if (s->dups >= 3) {
		m->c.n.retrans_fast++;
		*(d == 0 ? &f->r.retrans_fast_fwd : &f->r.retrans_fast_rev) += 1;
	} else if (late >= 200000000) {
		m->c.n.retrans_timeout++;
		*(d == 0 ? &f->r.retrans_timeout_fwd : &f->r.retrans_timeout_rev) += 1;
	} else {
		m->c.n.retrans_other++;
	}
}

/* True when the packet is the first with its timestamp or a later one. */
static bool model_new_stamp(struct side *s, const struct pl_pkt96 *p)
{
	if (!(p->tcp_opts >> 8 & 1) || (s->stamp_any && ahead(p->tsval, s->stamp_newest) <= 0))
		return false;
	s->stamp_any = true;
	s->stamp_newest = p->tsval;
	return true;
}

/* True when the segment's timestamp is followed. */
static bool model_stamp(struct side *s, const struct pl_pkt96 *p)
{
	if (!model_new_stamp(s, p))
		return false;
	while (s->stamps > 0 && elapsed(s->stamp[0].ts, p->ts_ns) > 10 * SECOND) {
		s->stamp[0] = s->stamp[1];
		s->stamps--;
		model_lose(s, 1, 1);
	}
	if (s->stamps == 2)
		return false;
	s->stamp[s->stamps].value = p->tsval;
	s->stamp[s->stamps].ts = p->ts_ns;
	s->stamps++;
	return true;
}

static void model_segment(
	struct model *m, struct mflow *f, unsigned int d, const struct pl_pkt96 *p)
{
	struct side *s = &f->s[d];
	const uint32_t from = p->tcp_seq;
	uint32_t to = from + p->pay_len;
	bool again;

	to += (p->tcp_flags & SYN) ? 1 : 0;
	to += (p->tcp_flags & FIN) ? 1 : 0;
	if (to == from) {
		(void)model_new_stamp(s, p);
		return;
	}
	model_lose(s, 1, !model_stamp(s, p));
	again = s->any && ahead(s->top, from) > 0;
	if (again) {
		model_again(m, f, d, p, from, to);
		model_lose(s, 0, 1);
	}
	if (s->any && ahead(to, s->top) <= 0)
		return;
	if (s->any && ahead(from, s->top) > 0) {
		m->c.n.gaps++;
		*(d == 0 ? &f->r.gaps_fwd : &f->r.gaps_rev) += 1;
		s->hole = true;
		s->hole_a = s->top;
		s->hole_b = from;
	}
	if (!again && s->sample) {
		/* This one is not followed, or the other one no more. */
		model_lose(s, 0, 1);
		s->sample = elapsed(s->sample_ts, p->ts_ns) <= 10 * SECOND;
	}
	if (!again && !s->sample) {
		s->sample = true;
		s->sample_top = to;
		s->sample_ts = p->ts_ns;
	}
	s->any = true;
	s->top = to;
	s->top_ts = p->ts_ns;
	s->top_id = p->ip_id;
}

static void model_ack(struct model *m, struct mflow *f, unsigned int d, const struct pl_pkt96 *p)
{
	struct side *mine = &f->s[d], *sent = &f->s[!d];

	if (!sent->acked_known || ahead(p->tcp_ack, sent->acked) > 0) {
		if (sent->sample && p->tcp_ack == sent->sample_top) {
			m->c.n.rtt_ack += model_time(sent, 0, sent->sample_ts, p->ts_ns);
			sent->sample = false;
		}
		if (sent->sample && ahead(p->tcp_ack, sent->sample_top) > 0) {
			model_lose(sent, 0, 1);
			sent->sample = false;
		}
		sent->acked_known = true;
		sent->acked = p->tcp_ack;
		sent->dups = 0;
	} else if (p->tcp_ack == sent->acked && p->pay_len == 0 && !(p->tcp_flags & (SYN | FIN)) &&
		   mine->window_known && mine->window == p->tcp_win && sent->any &&
		   ahead(sent->top, p->tcp_ack) > 0) {
		sent->dups++;
		model_lose(sent, 0, sent->sample);
		sent->sample = false;
		m->c.n.duplicate_acks++;
		*(d == 0 ? &f->r.dup_acks_fwd : &f->r.dup_acks_rev) += 1;
	}
	while ((p->tcp_opts >> 8 & 1) && sent->stamps > 0 &&
		ahead(p->tsecr, sent->stamp[0].value) >= 0) {
		if (p->tsecr != sent->stamp[0].value)
			model_lose(sent, 1, 1);
		else
			m->c.n.rtt_timestamp += model_time(sent, 1, sent->stamp[0].ts, p->ts_ns);
		sent->stamp[0] = sent->stamp[1];
		sent->stamps--;
	}
}

static void model_tcp(struct model *m, struct mflow *f, unsigned int d, const struct pl_pkt96 *p)
{
	if (p->tcp_flags & FIN)
		f->fin[d] = true;
	if (p->tcp_flags & RST)
		f->rst = true;
	if (!f->closed && (f->rst || (f->fin[0] && f->fin[1]))) {
		f->closed = true;
		f->closed_ts = p->ts_ns;
	}
	if ((p->obs & (PL_OBS_FRAGMENT | PL_OBS_TRUNCATED)) || (p->tcp_flags & RST))
		return;
	if ((p->tcp_flags & SYN) && !model_syn(f, d, p)) {
		m->c.n.stray_syns++;
		return;
	}
	if ((p->tcp_flags & (FIN | SYN | RST | ACK)) == SYN && f->syn_from < 0)
		f->syn_from = (int)d;
	if ((p->tcp_flags & (FIN | SYN | RST | ACK)) == SACK && f->answer_from < 0)
		f->answer_from = (int)d;
	model_handshake(m, f, d, p);
	if (p->obs & PL_OBS_SAMPLED)
		return;
	model_segment(m, f, d, p);
	if (p->tcp_flags & ACK)
		model_ack(m, f, d, p);
	if (p->tcp_win == 0 && !(p->tcp_flags & (SYN | FIN))) {
		m->c.n.zero_windows++;
		*(d == 0 ? &f->r.zero_win_fwd : &f->r.zero_win_rev) += 1;
	}
	f->s[d].window = p->tcp_win;
	f->s[d].window_known = true;
}
