/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow cache in its simplest form, for comparison: a linked list, searched from the front for
 * every packet, and every flow looked at for its end whenever the clock moves. Nothing of cache.c
 * and tcp.c is used.
 */
#pragma once

#include "flow/random_model_tcp.h"

static void model_init(
	struct model *m, const struct pl_flow_config *config, uint32_t room, struct kept *out)
{
	*m = (struct model){ .config = *config, .room = room, .out = out };
}

/* Gives a record of the flow away. */
static void model_record(struct model *m, struct mflow *f, enum pl_flow_end why)
{
	const uint64_t packets = (uint64_t)f->r.pkts_fwd + f->r.pkts_rev;
	const bool over = why != PL_FLOW_END_ACTIVE;
	struct pl_flow288 r;

	if (!f->given)
		model_role(f);
	f->r.flow_flags = f->given;
	f->given = true;
	r = f->r;
	model_tell_places(f, &r);
	r.end_reason = (uint8_t)why;
	r.max_gap_us = (uint32_t)(f->gap_ns / 1000);
	if (packets > 1)
		r.iat_mean_us = (uint32_t)((r.last_ts - r.first_ts) / (packets - 1) / 1000);
	if (model_times(&f->s[0]) > 0 && model_times(&f->s[1]) > 0) {
		r.rtt_min_us = model_least(&f->s[0]) + model_least(&f->s[1]);
		r.rtt_avg_us = (uint32_t)(model_mean(&f->s[0]) + model_mean(&f->s[1]));
	}
	model_method(&r.rtt_seq_dst_min_us, &f->s[0], 0, over);
	model_method(&r.rtt_ts_dst_min_us, &f->s[0], 1, over);
	model_method(&r.rtt_seq_src_min_us, &f->s[1], 0, over);
	model_method(&r.rtt_ts_src_min_us, &f->s[1], 1, over);
	keep(m->out, &r, 1);
	switch (why) {
	case PL_FLOW_END_IDLE:
		m->c.n.ended_idle++;
		break;
	case PL_FLOW_END_ACTIVE:
		m->c.n.ended_active++;
		break;
	case PL_FLOW_END_FINISHED:
		m->c.n.ended_finished++;
		break;
	case PL_FLOW_END_EVICTED:
		m->c.n.ended_evicted++;
		break;
	case PL_FLOW_END_SHUTDOWN:
		m->c.n.ended_shutdown++;
		break;
	}
}

static void model_end(struct model *m, struct mflow *f, enum pl_flow_end why)
{
	struct mflow **at = &m->first;
	uint64_t due;

	while (*at != NULL && *at != f)
		at = &(*at)->next;
	if (*at == NULL)
		abort();
	*at = f->next;
	due = f->closed ? f->closed_ts + m->config.end_ns : f->r.last_ts + m->config.idle_ns;
	model_settle(&m->c, f, due < m->clock ? due : m->clock);
	model_give_up(&m->c, f, 0);
	model_give_up(&m->c, f, 1);
	m->c.n.handshakes_missed += f->r.proto == 6 && !f->measured;
	model_record(m, f, f->closed && why != PL_FLOW_END_ACTIVE ? PL_FLOW_END_FINISHED : why);
	free(f->view[0].kept);
	free(f->view[1].kept);
	free(f);
}

static void model_end_those_over(struct model *m)
{
	for (struct mflow *f = m->first, *next; f != NULL; f = next) {
		next = f->next;
		if (m->clock < f->r.last_ts || m->clock >= f->r.last_ts + m->config.idle_ns ||
			(f->closed && m->clock >= f->closed_ts + m->config.end_ns))
			model_end(m, f, PL_FLOW_END_IDLE);
	}
}

static void model_expire(struct model *m, uint64_t now)
{
	if (now > m->clock)
		m->clock = now;
	model_end_those_over(m);
}

static void model_finish(struct model *m)
{
	model_end_those_over(m);
	while (m->first != NULL)
		model_end(m, m->first, PL_FLOW_END_SHUTDOWN);
}

/* Makes room by the flow that would be over first. */
static void model_evict(struct model *m)
{
	uint64_t least = UINT64_MAX;
	struct mflow *victim = NULL;
	uint32_t n = 0;

	for (struct mflow *f = m->first; f != NULL; f = f->next, n++) {
		const uint64_t due = f->closed ? f->closed_ts + m->config.end_ns
					       : f->r.last_ts + m->config.idle_ns;

		if (due < least) {
			least = due;
			victim = f;
		}
	}
	if (n >= m->room)
		model_end(m, victim, PL_FLOW_END_EVICTED);
}

static struct mflow *model_start(struct model *m, const struct pl_pkt96 *p)
{
	struct mflow *f = calloc(1, sizeof(*f));

	if (f == NULL)
		abort();
	model_evict(m);
	f->r = (struct pl_flow288){ .first_ts = p->ts_ns,
		.last_ts = p->ts_ns,
		.src = p->src,
		.dst = p->dst,
		.sport = p->sport,
		.dport = p->dport,
		.proto = p->proto,
		.vlan = p->vlan };
	f->view[0].placed = true;
	f->view[0].obs = p->obs & (uint16_t)~PL_OBS_SAMPLED;
	f->view[0].heard = p->ts_ns / MODEL_TICK * MODEL_TICK;
	f->syn_from = f->answer_from = -1;
	f->next = m->first;
	m->first = f;
	m->c.n.started++;
	return f;
}

/* Direction of a message, of the types that random_icmp() makes. */
static int model_direction_icmp(const struct pl_flow288 *r, const struct pl_pkt96 *p)
{
	const bool same = memcmp(&r->src, &p->src, 16) == 0 && memcmp(&r->dst, &p->dst, 16) == 0,
		   back = memcmp(&r->src, &p->dst, 16) == 0 && memcmp(&r->dst, &p->src, 16) == 0;

	if (r->sport == p->sport)
		return same && (r->sport != 3 || r->dport == p->dport) ? 0 : -1;
	return back && ((r->sport == 8 && p->sport == 0) || (r->sport == 0 && p->sport == 8) ||
			       (r->sport == 13 && p->sport == 14) ||
			       (r->sport == 14 && p->sport == 13))
		       ? 1
		       : -1;
}

/* Direction of the packet in the flow, or -1. */
static int model_direction(const struct mflow *f, const struct pl_pkt96 *p)
{
	const struct pl_flow288 *r = &f->r;

	if (r->proto != p->proto || r->vlan != p->vlan)
		return -1;
	if (r->proto == 1)
		return model_direction_icmp(r, p);
	if (memcmp(&r->src, &p->src, 16) == 0 && memcmp(&r->dst, &p->dst, 16) == 0 &&
		r->sport == p->sport && r->dport == p->dport)
		return 0;
	if (memcmp(&r->src, &p->dst, 16) == 0 && memcmp(&r->dst, &p->src, 16) == 0 &&
		r->sport == p->dport && r->dport == p->sport)
		return 1;
	return -1;
}

static void model_clock(struct model *m, uint64_t ts)
{
	if (ts < m->clock) {
		m->c.n.backwards++;
		m->behind = m->clock - ts > m->config.idle_ns ? m->behind + 1 : 0;
		if (m->behind < PL_FLOW_BEHIND)
			return;
		model_end_those_over(m);
		m->c.n.set_back++;
	}
	m->behind = 0;
	m->clock = ts;
	model_end_those_over(m);
}

static void model_anew(struct model *m, struct mflow *f, uint64_t ts)
{
	struct pl_flow288 old;

	model_record(m, f, PL_FLOW_END_ACTIVE);
	old = f->r;
	f->r = (struct pl_flow288){ .first_ts = ts,
		.last_ts = ts,
		.src = old.src,
		.dst = old.dst,
		.sport = old.sport,
		.dport = old.dport,
		.proto = old.proto,
		.vlan = old.vlan,
		.role = old.role,
		.role_by = old.role_by };
	f->gap_ns = 0;
	model_places_anew(f, ts);
	memset(f->s[0].by, 0, sizeof(f->s[0].by));
	memset(f->s[1].by, 0, sizeof(f->s[1].by));
}

/* True when the packet counts at the place where it was seen. */
static bool model_counts_here(struct mflow *f, unsigned int d, const struct pl_pkt96 *p)
{
	struct view *v = &f->view[d];

	if (!v->placed) {
		v->placed = true;
		v->obs = p->obs & (uint16_t)~PL_OBS_SAMPLED;
	}
	if (!model_same_place(v->obs, p->obs))
		return false;
	v->waits = false;
	return true;
}

static struct mflow *model_find(struct model *m, const struct pl_pkt96 *p, int *ret_d)
{
	struct mflow *f = m->first;

	while (f != NULL && (*ret_d = model_direction(f, p)) < 0)
		f = f->next;
	return f;
}

static void model_packet(struct model *m, const struct pl_pkt96 *p)
{
	struct mflow *f;
	bool here = true;
	int d = -1;
	bool nameless;

	m->c.n.packets++;
	model_clock(m, p->ts_ns);
	nameless = p->sport == 0 && p->dport == 0 &&
		   (p->proto == 1 || p->proto == 6 || p->proto == 17 || p->proto == 58 ||
			   p->proto == 132);
	if ((p->obs & PL_OBS_FRAGMENT) &&
		(p->frag_off % 32768 != 0 ||
			(nameless && p->frag_off == 0 &&
				!(p->proto == 1 && p->wire_len == p->pay_len + 24)))) {
		m->c.n.fragments++;
		m->c.n.fragment_bytes += (uint64_t)model_weight(p) * p->wire_len;
		return;
	}
	if ((p->obs & PL_OBS_TRUNCATED) && nameless) {
		m->c.n.without_ports++;
		return;
	}
	model_end_those_over(m);
	f = model_find(m, p, &d);
	if (f != NULL) {
		model_settle(&m->c, f, m->clock);
		model_end_those_over(m);
		f = model_find(m, p, &d);
	}
	if (f != NULL)
		here = model_counts_here(f, (unsigned int)d, p);
	if (f != NULL && (here || p->ts_ns > f->r.last_ts) && p->proto == 6 &&
		(p->tcp_flags & (SYN | ACK | RST)) == SYN &&
		!(p->obs & (PL_OBS_FRAGMENT | PL_OBS_TRUNCATED)) &&
		(f->fin[0] || f->fin[1] || f->rst) &&
		(!f->s[d].isn_known || f->s[d].isn != p->tcp_seq)) {
		model_end(m, f, PL_FLOW_END_FINISHED);
		m->c.n.reused++;
		f = NULL;
	}
	if (f != NULL && !here) {
		model_elsewhere(&m->c, f, (unsigned int)d, p);
		return;
	}
	if (f == NULL) {
		f = model_start(m, p);
		d = 0;
	} else if (!f->closed && m->clock - f->r.first_ts >= m->config.active_ns) {
		model_anew(m, f, p->ts_ns);
	}
	if (p->ts_ns > f->r.last_ts) {
		if (p->ts_ns - f->r.last_ts > f->gap_ns)
			f->gap_ns = p->ts_ns - f->r.last_ts;
		f->r.last_ts = p->ts_ns;
	}
	for (uint32_t w = model_weight(p); w > 0; w--) {
		*(d == 0 ? &f->r.pkts_fwd : &f->r.pkts_rev) += 1;
		*(d == 0 ? &f->r.bytes_fwd : &f->r.bytes_rev) += p->wire_len;
	}
	f->r.records++;
	f->sampled = f->sampled || p->obs & PL_OBS_SAMPLED;
	model_heard(&f->view[d], p->ts_ns);
	if (p->proto == 6) {
		*(d == 0 ? &f->r.flags_fwd : &f->r.flags_rev) |= p->tcp_flags;
		model_tcp(m, f, (unsigned int)d, p);
	}
}
