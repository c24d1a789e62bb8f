/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One packet goes through three parts: ends (FIN, RST), handshake, and the sequence numbers of its
 * own side and acknowledgements of the peer's. Round-trip times are measured separately on each
 * side of the tap, and by two methods: from a segment to the acknowledgement of exactly this
 * segment (Karn and Partridge, SIGCOMM 1987; outstanding samples are dropped after a retransmission
 * or a duplicate ACK, as Dart, SIGCOMM 2022, collapses its range), and from a timestamp to its
 * first echo (RFC 7323). For each method every segment with bytes, SYN or FIN counts as measured or
 * as missed.
 */
#include "flow/tcp.h"

#include <string.h>

#include "flow/role.h"

#define HANDSHAKE_NS UINT64_C(30000000000) /* a later answer belongs to another SYN */
#define SAMPLE_NS    UINT64_C(10000000000) /* a later acknowledgement or echo does not count */
#define OVERTAKEN_NS UINT64_C(3000000)     /* an overtaken segment comes sooner than this */
#define TIMEOUT_NS   UINT64_C(200000000)   /* least retransmission timeout of common systems */
#define OPTION_TS    (1u << 8)

static uint64_t since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

bool pl_flow_tcp_reuses(
	const struct pl_flow_entry *flow, unsigned int d, const struct pl_pkt96 *packet)
{
	const uint8_t flags = packet->tcp_flags & (PL_TCP_SYN | PL_TCP_ACK | PL_TCP_RST);

	return flags == PL_TCP_SYN && (flow->state & PL_FLOW_ENDS) != 0 &&
	       (packet->obs & (PL_OBS_FRAGMENT | PL_OBS_TRUNCATED)) == 0 &&
	       ((flow->way[d].known & PL_WAY_ISN) == 0 || flow->isn[d] != packet->tcp_seq);
}

static void ends(struct pl_flow_entry *f, unsigned int d, uint8_t flags, uint64_t ts_ns)
{
	const uint8_t both = PL_FLOW_FIN_FWD | PL_FLOW_FIN_REV;

	if ((flags & PL_TCP_FIN) != 0)
		f->state |= (uint8_t)(PL_FLOW_FIN_FWD << d);
	if ((flags & PL_TCP_RST) != 0)
		f->state |= PL_FLOW_RST;
	if ((f->state & PL_FLOW_CLOSING) == 0 &&
		((f->state & PL_FLOW_RST) != 0 || (f->state & both) == both)) {
		f->state |= PL_FLOW_CLOSING;
		f->ended_ts = ts_ns;
	}
}

/* Gives up the segment whose acknowledgement is awaited. */
static void drop_sample(struct pl_flow_entry *f, unsigned int d)
{
	struct pl_flow_way *w = &f->way[d];

	if ((w->known & PL_WAY_SAMPLE) == 0)
		return;
	w->known &= (uint8_t)~PL_WAY_SAMPLE;
	f->missed[d][PL_FLOW_BY_SEQ]++;
}

/* The oldest timestamp is awaited no more. */
static void shift_timestamps(struct pl_flow_way *w)
{
	w->tsval[0] = w->tsval[1];
	w->tsval_ts[0] = w->tsval_ts[1];
	w->tsvals--;
}

/*
 * Whether a SYN (or SYN-ACK) belongs to the flow: the first of its side before any other segment,
 * its repetition, or another attempt while nothing has answered. Sequence numbers of any other
 * would ruin the account.
 */
static bool takes_syn(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p)
{
	struct pl_flow_way *w = &f->way[d];

	if ((w->known & PL_WAY_ISN) != 0) {
		if (f->isn[d] == p->tcp_seq)
			return true;
		if (f->handshake != PL_HANDSHAKE_SYN || f->opener != d ||
			(p->tcp_flags & PL_TCP_ACK) != 0)
			return false;
		drop_sample(f, d);
		f->missed[d][PL_FLOW_BY_TS] += w->tsvals;
		w->tsvals = 0;
		w->known = 0;
		w->duplicate_acks = 0;
		f->handshake = PL_HANDSHAKE_NONE;
	} else if ((w->known & PL_WAY_END) != 0) {
		return false;
	}
	w->known |= PL_WAY_ISN;
	f->isn[d] = p->tcp_seq;
	return true;
}

/* Measures Ruru's three times, by flags other than ECN's. Repetitions change nothing: the first SYN
 * and the first SYN-ACK count. */
static void handshake(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p,
	struct pl_flow_counters *c)
{
	const uint8_t flags = p->tcp_flags & (PL_TCP_FIN | PL_TCP_SYN | PL_TCP_RST | PL_TCP_ACK);
	const unsigned int o = f->opener;
	uint64_t ns;

	if (f->handshake == PL_HANDSHAKE_NONE && flags == PL_TCP_SYN) {
		f->handshake = PL_HANDSHAKE_SYN;
		f->opener = (uint8_t)d;
		f->syn_ts = p->ts_ns;
	} else if (f->handshake == PL_HANDSHAKE_SYN && flags == (PL_TCP_SYN | PL_TCP_ACK) &&
		   d != o && p->tcp_ack == f->isn[o] + 1) {
		ns = since(p->ts_ns, f->syn_ts);
		f->handshake = ns > HANDSHAKE_NS ? PL_HANDSHAKE_OVER : PL_HANDSHAKE_SYN_ACK;
		f->hs_external_us = ns > HANDSHAKE_NS ? 0 : pl_flow_us(ns);
		f->syn_ack_ts = p->ts_ns;
	} else if (f->handshake == PL_HANDSHAKE_SYN_ACK && flags == PL_TCP_ACK && d == o &&
		   p->tcp_seq == f->isn[o] + 1 && p->tcp_ack == f->isn[1 - o] + 1) {
		ns = since(p->ts_ns, f->syn_ack_ts);
		f->handshake = ns > HANDSHAKE_NS ? PL_HANDSHAKE_OVER : PL_HANDSHAKE_SEEN;
		f->hs_internal_us = ns > HANDSHAKE_NS ? 0 : pl_flow_us(ns);
		c->handshakes += ns <= HANDSHAKE_NS;
	}
}

/* Counts a time from side d over its peer and back to the tap, if it is one. */
static bool sampled(
	struct pl_flow_entry *f, unsigned int d, enum pl_flow_method m, uint64_t now, uint64_t then)
{
	const uint64_t ns = since(now, then);
	struct pl_flow_rtt *rtt = &f->rtt[d][m];
	uint32_t us;

	if (ns == 0 || ns > SAMPLE_NS) {
		f->missed[d][m]++;
		return false;
	}
	if ((f->state & PL_FLOW_TIMED) == 0)
		memset(f->rtt, 0, sizeof(f->rtt));
	f->state |= PL_FLOW_TIMED;
	us = pl_flow_us(ns);
	if (rtt->n == 0 || us < rtt->min_us)
		rtt->min_us = us;
	rtt->sum_us += us;
	rtt->n++;
	return true;
}

/* True when the segment [seq, end) lies in the range that was skipped; the rest of the range
 * follows the segment, or comes before it when nothing follows. */
static bool fills_hole(struct pl_flow_entry *f, unsigned int d, uint32_t seq, uint32_t end)
{
	if ((f->way[d].known & PL_WAY_HOLE) == 0 || pl_seq_after(f->hole_from[d], seq) ||
		pl_seq_after(end, f->hole_to[d]))
		return false;
	if (end == f->hole_to[d])
		f->hole_to[d] = seq;
	else
		f->hole_from[d] = end;
	if (f->hole_from[d] == f->hole_to[d])
		f->way[d].known &= (uint8_t)~PL_WAY_HOLE;
	return true;
}

/* Longest delay of an overtaken segment: half the least round-trip time, or 3 ms if that is
 * longer. */
static uint64_t overtaken_ns(const struct pl_flow_entry *f)
{
	const struct pl_flow_rtt a = pl_flow_rtt_both(f, 0), b = pl_flow_rtt_both(f, 1);
	const uint64_t half = a.n != 0 && b.n != 0 ? ((uint64_t)a.min_us + b.min_us) * 500 : 0;

	return half > OVERTAKEN_NS ? half : OVERTAKEN_NS;
}

/* A segment that begins before the highest sequence number seen. */
static void old_segment(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p,
	uint32_t end, struct pl_flow_counters *c)
{
	struct pl_flow_way *w = &f->way[d];
	const bool acked = (w->known & PL_WAY_ACKED) != 0;
	const uint64_t late = since(p->ts_ns, w->newest_ts);
	const bool unseen = fills_hole(f, d, p->tcp_seq, end);
	const bool precedes =
		p->ip_id != 0 && w->ip_id != 0 && (int16_t)(uint16_t)(p->ip_id - w->ip_id) < 0;

	if (p->pay_len == 1 && (p->tcp_flags & (PL_TCP_SYN | PL_TCP_FIN)) == 0 && end == w->end &&
		!(acked && pl_seq_after(end, w->acked))) {
		pl_flow_rare_of(f)->keepalives[d]++;
		c->keepalives++;
		return;
	}
	if (late < overtaken_ns(f) && (precedes || unseen)) {
		pl_flow_rare_of(f)->ooo[d]++;
		c->out_of_order++;
		return;
	}
	pl_flow_rare_of(f)->retrans[d]++;
	if (acked && !pl_seq_after(end, w->acked)) {
		pl_flow_rare_of(f)->spurious[d]++;
		c->retrans_spurious++;
	} else if (w->duplicate_acks >= 3) {
		pl_flow_rare_of(f)->fast[d]++;
		c->retrans_fast++;
	} else if (late >= TIMEOUT_NS) {
		pl_flow_rare_of(f)->timeout[d]++;
		c->retrans_timeout++;
	} else {
		c->retrans_other++;
	}
	drop_sample(f, d);
}

/* True when no earlier packet of the side had the timestamp or a later one. A pure ACK counts: the
 * peer may echo its timestamp before a segment with the same one has arrived. */
static bool has_new_timestamp(struct pl_flow_way *w, const struct pl_pkt96 *p)
{
	if ((p->tcp_opts & OPTION_TS) == 0 ||
		((w->known & PL_WAY_TSVAL_LAST) != 0 && !pl_seq_after(p->tsval, w->tsval_last)))
		return false;
	w->tsval_last = p->tsval;
	w->known |= PL_WAY_TSVAL_LAST;
	return true;
}

/* A timestamp is followed from the first packet that has it, if that is a segment; two at a
 * time. */
static void follow_timestamp(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p)
{
	struct pl_flow_way *w = &f->way[d];
	const bool newer = has_new_timestamp(w, p);

	while (newer && w->tsvals > 0 && since(p->ts_ns, w->tsval_ts[0]) > SAMPLE_NS) {
		f->missed[d][PL_FLOW_BY_TS]++;
		shift_timestamps(w);
	}
	if (!newer || w->tsvals == 2) {
		f->missed[d][PL_FLOW_BY_TS]++;
		return;
	}
	w->tsval[w->tsvals] = p->tsval;
	w->tsval_ts[w->tsvals++] = p->ts_ns;
}

/* Follows one segment at a time, unless it was under way for too long. */
static void follow_segment(
	struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p, uint32_t end)
{
	struct pl_flow_way *w = &f->way[d];

	if ((w->known & PL_WAY_SAMPLE) != 0 && since(p->ts_ns, w->sample_ts) <= SAMPLE_NS) {
		f->missed[d][PL_FLOW_BY_SEQ]++;
		return;
	}
	drop_sample(f, d);
	w->sample_end = end;
	w->sample_ts = p->ts_ns;
	w->known |= PL_WAY_SAMPLE;
}

/* Accounts a segment that takes sequence numbers: bytes, SYN, FIN. */
static void segment(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p,
	struct pl_flow_counters *c)
{
	struct pl_flow_way *w = &f->way[d];
	const uint32_t seq = p->tcp_seq,
		       length = p->pay_len + ((p->tcp_flags & PL_TCP_SYN) != 0) +
				((p->tcp_flags & PL_TCP_FIN) != 0),
		       end = seq + length;
	const bool first = (w->known & PL_WAY_END) == 0;
	const bool old = !first && pl_seq_after(w->end, seq);

	if (length == 0) {
		(void)has_new_timestamp(w, p);
		return;
	}
	follow_timestamp(f, d, p);
	if (old) {
		f->missed[d][PL_FLOW_BY_SEQ]++;
		old_segment(f, d, p, end, c);
	}
	if (!first && !pl_seq_after(end, w->end))
		return;
	if (!first && pl_seq_after(seq, w->end)) {
		f->hole_from[d] = w->end;
		f->hole_to[d] = seq;
		w->known |= PL_WAY_HOLE;
		pl_flow_rare_of(f)->gaps[d]++;
		c->gaps++;
	}
	w->end = end;
	w->newest_ts = p->ts_ns;
	w->ip_id = p->ip_id;
	w->known |= PL_WAY_END;
	if (!old)
		follow_segment(f, d, p, end);
}

/* True when the acknowledgement of data that `sent` sent repeats the last one because a segment is
 * missing (RFC 5681 2); `w` is the side that sends it. */
static bool repeats_ack(
	const struct pl_flow_way *sent, const struct pl_flow_way *w, const struct pl_pkt96 *p)
{
	return p->tcp_ack == sent->acked && p->pay_len == 0 &&
	       (p->tcp_flags & (PL_TCP_SYN | PL_TCP_FIN)) == 0 && (w->known & PL_WAY_WINDOW) != 0 &&
	       w->window == p->tcp_win && (sent->known & PL_WAY_END) != 0 &&
	       pl_seq_after(sent->end, p->tcp_ack);
}

/* Handles the acknowledgement of data that side d sent. */
static void acknowledged(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p,
	struct pl_flow_counters *c)
{
	struct pl_flow_way *sent = &f->way[d];

	if ((sent->known & PL_WAY_ACKED) == 0 || pl_seq_after(p->tcp_ack, sent->acked)) {
		if ((sent->known & PL_WAY_SAMPLE) != 0 && p->tcp_ack == sent->sample_end) {
			sent->known &= (uint8_t)~PL_WAY_SAMPLE;
			c->rtt_ack += sampled(f, d, PL_FLOW_BY_SEQ, p->ts_ns, sent->sample_ts);
		} else if ((sent->known & PL_WAY_SAMPLE) != 0 &&
			   pl_seq_after(p->tcp_ack, sent->sample_end)) {
			drop_sample(f, d);
		}
		sent->acked = p->tcp_ack;
		sent->known |= PL_WAY_ACKED;
		sent->duplicate_acks = 0;
	} else if (repeats_ack(sent, &f->way[1 - d], p)) {
		sent->duplicate_acks += sent->duplicate_acks < UINT8_MAX;
		drop_sample(f, d);
		f->dup_acks[1 - d]++;
		c->duplicate_acks++;
	}
}

/* Handles the first echo of a timestamp that side d sent. Older timestamps count as missed, because
 * they are not echoed any more. */
static void echoed(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p,
	struct pl_flow_counters *c)
{
	struct pl_flow_way *sent = &f->way[d];

	if ((p->tcp_opts & OPTION_TS) == 0)
		return;
	while (sent->tsvals > 0 && !pl_seq_after(sent->tsval[0], p->tsecr)) {
		if (p->tsecr == sent->tsval[0])
			c->rtt_timestamp +=
				sampled(f, d, PL_FLOW_BY_TS, p->ts_ns, sent->tsval_ts[0]);
		else
			f->missed[d][PL_FLOW_BY_TS]++;
		shift_timestamps(sent);
	}
}

bool pl_flow_tcp_is_segment(const struct pl_pkt96 *packet)
{
	return packet->proto == PL_PROTO_TCP &&
	       (packet->obs & (PL_OBS_FRAGMENT | PL_OBS_TRUNCATED | PL_OBS_SAMPLED)) == 0 &&
	       (packet->tcp_flags & PL_TCP_RST) == 0 &&
	       (packet->pay_len > 0 || (packet->tcp_flags & (PL_TCP_SYN | PL_TCP_FIN)) != 0);
}

/* Leaves a handshake without times that would lack something. */
static void give_up_handshake(struct pl_flow_entry *f)
{
	if (f->handshake == PL_HANDSHAKE_SYN || f->handshake == PL_HANDSHAKE_SYN_ACK)
		f->handshake = PL_HANDSHAKE_OVER;
}

void pl_flow_tcp_lost_sight(struct pl_flow_entry *flow)
{
	for (unsigned int d = 0; d < 2; d++) {
		drop_sample(flow, d);
		flow->missed[d][PL_FLOW_BY_TS] += flow->way[d].tsvals;
		flow->way[d].tsvals = 0;
		flow->way[d].known &= PL_WAY_ISN | PL_WAY_ACKED | PL_WAY_TSVAL_LAST;
		flow->way[d].duplicate_acks = 0;
	}
	give_up_handshake(flow);
}

void pl_flow_tcp_moved(struct pl_flow_entry *flow, const struct pl_flow_other *o, unsigned int d)
{
	flow->flags[d] |= o->flags[d];
	ends(flow, d, o->flags[d], o->last_ts[d]);
	for (unsigned int s = 0; s < 2; s++) {
		drop_sample(flow, s);
		flow->missed[s][PL_FLOW_BY_TS] += flow->way[s].tsvals;
		flow->way[s].tsvals = 0;
	}
	for (unsigned int m = 0; m < PL_FLOW_METHODS; m++)
		flow->missed[d][m] += o->segments[d];
	flow->way[d].known &= PL_WAY_ISN | PL_WAY_ACKED | PL_WAY_TSVAL_LAST;
	flow->way[1 - d].duplicate_acks = 0;
	give_up_handshake(flow);
}

void pl_flow_tcp_packet(struct pl_flow_entry *flow, unsigned int d, const struct pl_pkt96 *packet,
	struct pl_flow_counters *counters)
{
	const uint8_t flags = packet->tcp_flags;
	struct pl_flow_way *w = &flow->way[d];

	if ((flags & (PL_TCP_FIN | PL_TCP_RST)) != 0)
		ends(flow, d, flags, packet->ts_ns);
	if ((packet->obs & (PL_OBS_FRAGMENT | PL_OBS_TRUNCATED)) != 0 || (flags & PL_TCP_RST) != 0)
		return;
	if ((flags & PL_TCP_SYN) != 0 && !takes_syn(flow, d, packet)) {
		counters->stray_syns++;
		return;
	}
	if ((flags & PL_TCP_SYN) != 0)
		pl_flow_role_syn(flow, d, flags);
	if (flow->handshake < PL_HANDSHAKE_OVER)
		handshake(flow, d, packet, counters);
	if ((packet->obs & PL_OBS_SAMPLED) != 0)
		return;
	segment(flow, d, packet, counters);
	if ((flags & PL_TCP_ACK) != 0) {
		acknowledged(flow, 1 - d, packet, counters);
		echoed(flow, 1 - d, packet, counters);
	}
	if (packet->tcp_win == 0 && (flags & (PL_TCP_SYN | PL_TCP_FIN)) == 0) {
		pl_flow_rare_of(flow)->zero_win[d]++;
		counters->zero_windows++;
	}
	w->window = packet->tcp_win;
	w->known |= PL_WAY_WINDOW;
}
