/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates the traffic of a simulated network. */
#include "dataplane/traffic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/rng.h"

#define SECOND    1e9
#define RATE_MAX  1e9
#define BURST_MAX 65536
/* Limit of times, so that a random time always fits. */
#define TIME_MAX  UINT64_C(1000000000000000)

/* The frame of one direction, without the packet's number. */
struct template
{
	uint8_t *bytes;
	uint32_t len, payload; /* payload: offset of the number; len: no number */
};

struct flow {
	struct pl_dp_traffic *t;
	struct pl_dp_flow_cfg cfg;
	struct pl_rng rng;
	struct template there, back;
	uint32_t number, timer, back_timer;
	uint64_t serial; /* serial of the next packet to the destination */
	double next;     /* next time, from start_ns, with the fraction of a ns */
	double base;     /* CONSTANT: time of packet base_serial; a sum of gaps would drift */
	uint64_t base_serial;
	double pause;      /* ON_OFF: end of the burst */
	uint32_t in_burst; /* packets sent of this burst */
	double burst_at;   /* BURSTS: begin of the burst */
	/* REQUESTS, at the source: the open request, its time, and which of its answers arrived. */
	bool open;
	uint64_t asked, asked_ns;
	uint32_t answers;
	uint8_t *seen;
	/* At the destination: 1 + the last request that arrived, and the packets of its answer
	 * sent. A new request ends the answer to the one before, whose time is over. */
	uint64_t heard;
	uint32_t answered;
	struct flow *before;
};

struct pl_dp_traffic {
	struct pl_dp_sim *sim;
	uint64_t seed;
	struct flow **flows; /* by number - 1; NULL: flows of others */
	uint32_t n, cap;
	struct flow *last;
	struct pl_dp_traffic_account account;
};

int pl_dp_traffic_new(struct pl_dp_traffic **ret, struct pl_dp_sim *sim, uint64_t seed)
{
	struct pl_dp_traffic *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->sim = sim;
	t->seed = seed;
	*ret = t;
	return 0;
}

static void free_flow(struct flow *f)
{
	free(f->there.bytes);
	free(f->back.bytes);
	free(f->seen);
	free(f);
}

void pl_dp_traffic_free(struct pl_dp_traffic *t)
{
	struct flow *f;

	if (t == NULL)
		return;
	while ((f = t->last) != NULL) {
		t->last = f->before;
		free_flow(f);
	}
	free(t->flows);
	free(t);
}

/* ---- packets ---- */

static void put_tag(struct pl_build *b, const uint8_t to[6], const uint8_t from[6], uint16_t vlan)
{
	pl_put(b, to, 6);
	pl_put(b, from, 6);
	if (vlan != 0) {
		pl_put_be16(b, PL_ETH_VLAN);
		pl_put_be16(b, vlan);
	}
}

static int make(struct template *ret, const struct pl_dp_flow_cfg *cfg, bool back, uint32_t len)
{
	struct pl_flow tuple = cfg->tuple;
	const bool v4 = pl_addr_is_v4(&tuple.src);
	struct pl_build b;
	size_t ip, network;

	ret->bytes = malloc(len);
	if (ret->bytes == NULL)
		return -ENOMEM;
	ret->len = len;
	if (back) {
		tuple.src = cfg->tuple.dst;
		tuple.dst = cfg->tuple.src;
		tuple.sport = cfg->tuple.dport;
		tuple.dport = cfg->tuple.sport;
	}
	b = pl_build(ret->bytes, len);
	put_tag(&b, back ? cfg->from_mac : cfg->to_mac, back ? cfg->to_mac : cfg->from_mac,
		tuple.vlan);
	pl_put_be16(&b, v4 ? PL_ETH_IPV4 : PL_ETH_IPV6);
	network = b.len;
	ip = pl_put_ip(&b, &tuple, 64, 0);
	ret->payload = (uint32_t)b.len;
	if (b.len > len || b.full)
		return -EINVAL;
	if (len - b.len < 8)
		ret->payload = len;
	pl_put_zero(&b, len - b.len);
	/* ECN is set before the IPv4 header's checksum is computed. */
	ret->bytes[network + 1] |= (uint8_t)(v4 ? cfg->ecn : cfg->ecn << 4);
	pl_end_ip(&b, ip);
	return b.full ? -EINVAL : 0;
}

/* Writes the packet's number into a payload of zeros and updates the transport's checksum. */
static void put_number(
	struct pl_dp_packet *pkt, const struct template *t, uint8_t proto, uint64_t n)
{
	uint8_t *p = pkt->data + t->payload, *at;
	uint32_t sum;

	if (t->payload == t->len)
		return;
	for (unsigned int i = 0; i < 8; i++)
		p[i] = (uint8_t)(n >> (56 - 8 * i));
	at = proto == PL_IP_UDP ? p - 2 : p - 4;
	sum = pl_checksum_add((uint16_t) ~(at[0] << 8 | at[1]), p, 8);
	sum = pl_checksum_fold(sum);
	/* UDP: 0 would mean no checksum (RFC 768). */
	if (sum == 0 && proto == PL_IP_UDP)
		sum = 0xffff;
	at[0] = (uint8_t)(sum >> 8);
	at[1] = (uint8_t)sum;
}

static void send_packet(struct flow *f, bool back, uint64_t serial)
{
	struct pl_dp_traffic *t = f->t;
	const struct template *from = back ? &f->back : &f->there;
	struct pl_dp_packet *pkt = pl_dp_packet_of(pl_dp_sim_pool(t->sim), from->bytes, from->len);

	if (pkt == NULL)
		return;
	pkt->flow = f->number;
	pkt->queue = f->cfg.queue;
	pkt->serial = back ? PL_DP_SERIAL_BACK | serial : serial;
	put_number(pkt, from, f->cfg.tuple.proto, serial);
	t->account.sent += !back;
	pl_dp_sim_send(t->sim, back ? f->cfg.to : f->cfg.from, pkt);
}

/* ---- patterns ---- */

static bool over(const struct flow *f, uint64_t at_ns)
{
	return (f->cfg.stop_ns != 0 && at_ns >= f->cfg.stop_ns) ||
	       (f->cfg.packets != 0 && f->serial >= f->cfg.packets);
}

static double drawn(struct flow *f, uint64_t mean_ns)
{
	return fmin(pl_rng_exp(&f->rng, (double)mean_ns), (double)TIME_MAX);
}

static void arm(struct flow *f)
{
	uint64_t at = f->cfg.start_ns + (uint64_t)f->next;

	/* The time-out of an open request runs in any case. */
	pl_dp_sim_arm(f->t->sim, f->timer, !f->open && over(f, at) ? UINT64_MAX : at);
}

static double gap(const struct flow *f)
{
	return f->cfg.rate > 0 ? SECOND / f->cfg.rate : 0;
}

static void turn_bursts(struct flow *f)
{
	for (;;) {
		send_packet(f, false, f->serial++);
		if (++f->in_burst == f->cfg.burst) {
			f->in_burst = 0;
			f->burst_at += (double)f->cfg.period_ns;
			/* After a burst longer than the period the next one follows at once. */
			f->next = fmax(f->burst_at, f->next + gap(f));
			return;
		}
		f->next += gap(f);
		if (f->cfg.rate > 0 || over(f, pl_dp_sim_now(f->t->sim)))
			return;
	}
}

static void turn_on_off(struct flow *f)
{
	send_packet(f, false, f->serial++);
	f->next += gap(f);
	if (f->next < f->pause)
		return;
	f->next = f->pause + drawn(f, f->cfg.off_ns);
	f->pause = f->next + drawn(f, f->cfg.on_ns);
}

/* Sends a request, or ends the one whose answer timed out. */
static void turn_requests(struct flow *f)
{
	struct pl_dp_traffic *t = f->t;

	if (f->open) {
		t->account.timeouts++;
		f->open = false;
		f->next += drawn(f, f->cfg.off_ns);
		return;
	}
	f->open = true;
	f->asked = f->serial;
	f->asked_ns = pl_dp_sim_now(t->sim);
	f->answers = 0;
	memset(f->seen, 0, f->cfg.burst);
	f->next += (double)f->cfg.timeout_ns;
	send_packet(f, false, f->serial++);
}

static void turn(void *arg)
{
	struct flow *f = arg;

	switch (f->cfg.pattern) {
	case PL_DP_CONSTANT:
		send_packet(f, false, f->serial++);
		f->next = f->base + (double)(f->serial - f->base_serial) * SECOND / f->cfg.rate;
		break;
	case PL_DP_POISSON:
		send_packet(f, false, f->serial++);
		f->next += fmin(pl_rng_exp(&f->rng, gap(f)), (double)TIME_MAX);
		break;
	case PL_DP_ON_OFF:
		turn_on_off(f);
		break;
	case PL_DP_BURSTS:
		turn_bursts(f);
		break;
	case PL_DP_REQUESTS:
		turn_requests(f);
		break;
	}
	arm(f);
}

static void answer(void *arg)
{
	struct flow *f = arg;

	while (f->answered < f->cfg.burst) {
		send_packet(f, true, (f->heard - 1) * f->cfg.burst + f->answered++);
		if (f->cfg.rate > 0)
			break;
	}
	if (f->answered < f->cfg.burst)
		pl_dp_sim_arm(
			f->t->sim, f->back_timer, pl_dp_sim_now(f->t->sim) + (uint64_t)gap(f));
}

static void complete(struct flow *f)
{
	struct pl_dp_traffic *t = f->t;
	uint64_t now = pl_dp_sim_now(t->sim), took = now - f->asked_ns;

	f->open = false;
	t->account.completed++;
	t->account.completion_ns += took;
	if (took > t->account.completion_max_ns)
		t->account.completion_max_ns = took;
	f->next = (double)(now - f->cfg.start_ns) + drawn(f, f->cfg.off_ns);
	arm(f);
}

void pl_dp_traffic_receive(void *traffic, const struct pl_dp_packet *pkt)
{
	struct pl_dp_traffic *t = traffic;
	struct flow *f = pkt->flow != 0 && pkt->flow <= t->n ? t->flows[pkt->flow - 1] : NULL;
	uint64_t serial = pkt->serial & ~PL_DP_SERIAL_BACK;

	if (f == NULL || f->cfg.pattern != PL_DP_REQUESTS)
		return;
	if ((pkt->serial & PL_DP_SERIAL_BACK) == 0) {
		/* A duplicate of a request is not answered again. */
		if (serial < f->heard)
			return;
		f->heard = serial + 1;
		f->answered = 0;
		pl_dp_sim_arm(t->sim, f->back_timer, pl_dp_sim_now(t->sim));
		return;
	}
	if (!f->open || serial / f->cfg.burst != f->asked || f->seen[serial % f->cfg.burst] != 0)
		return;
	f->seen[serial % f->cfg.burst] = 1;
	if (++f->answers == f->cfg.burst)
		complete(f);
}

/* ---- flows ---- */

static int check(const struct pl_dp_flow_cfg *c, struct pl_diag *diag)
{
	const struct pl_flow *f = &c->tuple;
	const char *wrong = NULL;

	if (f->proto != PL_IP_UDP && f->proto != PL_IP_TCP)
		wrong = "a flow is of UDP or TCP";
	else if (pl_addr_is_v4(&f->src) != pl_addr_is_v4(&f->dst))
		wrong = "a flow's addresses are both IPv4 or both IPv6";
	else if (!(c->rate >= 0 && c->rate <= RATE_MAX))
		wrong = "a flow's rate is at most 1000 million packets per second";
	else if (c->pattern <= PL_DP_ON_OFF && c->rate == 0)
		wrong = "the flow needs a rate";
	else if (c->pattern >= PL_DP_BURSTS && (c->burst == 0 || c->burst > BURST_MAX))
		wrong = "a burst, or an answer, is of 1 to 65536 packets";
	else if (c->pattern == PL_DP_BURSTS && c->period_ns == 0)
		wrong = "bursts need a period";
	else if (c->pattern == PL_DP_REQUESTS && c->timeout_ns == 0)
		wrong = "requests need the time in which an answer is expected";
	else if (c->pattern == PL_DP_ON_OFF && (c->on_ns == 0 || c->off_ns == 0))
		wrong = "on and off need their mean times";
	else if (c->period_ns > TIME_MAX || c->timeout_ns > TIME_MAX || c->ecn > 3)
		wrong = "a time of the flow is above 1000000 s, or its ECN codepoint above 3";
	if (wrong == NULL)
		return 0;
	pl_diag_set(diag, "%s", wrong);
	return -EINVAL;
}

static int make_templates(struct flow *f, struct pl_diag *diag)
{
	uint32_t bytes = f->cfg.bytes;
	int r = make(&f->there, &f->cfg, false, bytes);

	if (r == 0 && f->cfg.pattern == PL_DP_REQUESTS) {
		bytes = f->cfg.reply_bytes;
		r = make(&f->back, &f->cfg, true, bytes);
	}
	if (r == -EINVAL)
		pl_diag_set(diag,
			"a frame of %u bytes has no room for its headers, or is longer "
			"than an IP packet",
			bytes);
	return r;
}

static int by_number(struct pl_dp_traffic *t, struct flow *f)
{
	struct flow **flows;

	if (f->number > t->cap) {
		uint32_t cap = f->number * 2;

		flows = reallocarray(t->flows, cap, sizeof(struct flow *));
		if (flows == NULL)
			return -ENOMEM;
		t->flows = flows;
		t->cap = cap;
	}
	while (t->n < f->number)
		t->flows[t->n++] = NULL;
	t->flows[f->number - 1] = f;
	return 0;
}

int pl_dp_traffic_add(struct pl_dp_traffic *t, const struct pl_dp_flow_cfg *cfg, uint32_t *ret_flow,
	struct pl_diag *diag)
{
	struct flow *f;
	int r = check(cfg, diag);

	if (r != 0)
		return r;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return -ENOMEM;
	f->t = t;
	f->cfg = *cfg;
	if (f->cfg.start_ns < pl_dp_sim_now(t->sim))
		f->cfg.start_ns = pl_dp_sim_now(t->sim);
	f->seen = calloc(1, cfg->pattern == PL_DP_REQUESTS ? cfg->burst : 1);
	r = f->seen != NULL ? make_templates(f, diag) : -ENOMEM;
	if (r == 0)
		r = pl_dp_sim_timer(t->sim, turn, f, &f->timer);
	if (r == 0)
		r = pl_dp_sim_timer(t->sim, answer, f, &f->back_timer);
	if (r == 0)
		r = pl_dp_sim_flow(t->sim, &f->number);
	if (r == 0)
		r = by_number(t, f);
	if (r != 0) {
		free_flow(f);
		return r;
	}
	f->before = t->last;
	t->last = f;
	pl_rng_seed(&f->rng, pl_hash_mix(t->seed, f->number));
	if (cfg->pattern == PL_DP_POISSON)
		f->next = fmin(pl_rng_exp(&f->rng, gap(f)), (double)TIME_MAX);
	if (cfg->pattern == PL_DP_ON_OFF)
		f->pause = drawn(f, cfg->on_ns);
	arm(f);
	*ret_flow = f->number;
	return 0;
}

const struct pl_dp_traffic_account *pl_dp_traffic_account(const struct pl_dp_traffic *t)
{
	return &t->account;
}
