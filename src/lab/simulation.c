/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a simulation of a lab's topology: switches, ports, links, flows. */
#include "lab/simulation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/rng.h"
#include "dataplane/sim_switch.h"
#include "dataplane/traffic.h"
#include "lab/change.h"
#include "lab/program.h"
#include "lab/truth_account.h"
#include "lab/wires.h"

#define SOURCE_PORT 30000
/* Source ports of the story's traffic from hosts to SERVER_PORT. */
#define STORY_PORT  40000
#define SERVER_PORT 5201
/* Header bytes of a frame. */
#define UDP_HEAD    (14 + 20 + 8)
#define TCP_HEAD    (14 + 20 + 20)
#define SEGMENT     1448
#define QUESTION    40
#define REQUEST     64
#define PAYLOAD_MAX 9000
#define ANSWER_NS   UINT64_C(2000000000)
/* Defaults of links without delay or queue. */
#define DELAY_NS    1000
#define QUEUE_BYTES 262144

struct sender {
	unsigned int node, port, link;
};

struct pl_lab_simulation {
	struct pl_lab_simulation_cfg cfg;
	struct pl_dp_sim *sim;
	struct pl_dp_traffic *traffic;
	struct pl_dp_sim_switch **switches; /* by node; NULL: a host */
	unsigned int *nodes;                /* simulation node by topology node */
	unsigned int n_nodes, collector, collector_ports;
	struct sender (*senders)[2]; /* by topology link and end */
	uint16_t story_port;         /* offset of the next flow's source port */
	struct pl_flow *flows;       /* by number - 1 */
	uint32_t n_flows;
};

/* State while it is made. */
struct maker {
	struct pl_lab_simulation *s;
	const struct pl_lab_topology *t;
	struct pl_diag *diag;
	uint32_t *distances; /* [to][node] */
};

/* ---- nodes and links ---- */

static const struct pl_dp_port_cfg open_port = { .n_classes = 1 };

static int add_switch(struct maker *m, unsigned int node)
{
	struct pl_lab_simulation *s = m->s;
	struct pl_dp_program program;
	struct pl_buf text;
	unsigned int link;
	int r;

	pl_buf_init(&text);
	r = pl_lab_program_text(
		&(struct pl_lab_program){ .t = m->t, .distances = m->distances }, node, &text);
	if (r == 0)
		r = pl_dp_program_parse(
			&program, m->t->nodes[node].name, text.data, text.len, m->diag);
	pl_buf_done(&text);
	if (r != 0)
		return r;
	r = pl_dp_sim_switch_new(&s->switches[node], s->sim, &program, &open_port, NULL, m->diag);
	pl_dp_program_done(&program);
	if (r != 0)
		return r;
	s->nodes[node] = pl_dp_sim_switch_node(s->switches[node]);
	pl_dp_sim_switch_blocks(
		s->switches[node], &(struct pl_dp_sim_blocks){ s->cfg.block, s->cfg.arg });
	r = pl_dp_sim_port(s->sim, s->collector, ++s->collector_ports, &open_port, m->diag);
	if (r == 0)
		r = pl_dp_sim_link(s->sim, s->collector, s->collector_ports, s->nodes[node],
			m->t->nodes[node].n_ports + 1, &(struct pl_dp_link_cfg){ .delay_ns = 1000 },
			&link, m->diag);
	return r;
}

static int add_host(struct maker *m, unsigned int node)
{
	const struct pl_dp_sim_node_cfg cfg = { .id = node + 1,
		.host = true,
		.ops = { .receive = pl_dp_traffic_receive, .arg = m->s->traffic } };
	int r = pl_dp_sim_node(m->s->sim, &cfg, &m->s->nodes[node]);

	for (unsigned int p = 1; r == 0 && p <= m->t->nodes[node].n_ports; p++)
		r = pl_dp_sim_port(m->s->sim, m->s->nodes[node], p, &open_port, m->diag);
	return r;
}

/* Returns a link's impairments, with defaults for what the topology leaves open; the rate is never
 * unlimited. */
static struct pl_lab_impairments as_built(const struct pl_lab_quality *q)
{
	const uint64_t limit =
		q->rate_bps != 0 && q->queue_bytes != 0 ? q->queue_bytes : QUEUE_BYTES;

	return (struct pl_lab_impairments){
		.port = { .n_classes = 1,
			.rate_bps = q->rate_bps != 0 ? q->rate_bps : PL_LAB_SIMULATION_RATE_BPS,
			.classes = { { .limit_bytes =
					       (uint32_t)(limit < UINT32_MAX ? limit
									     : UINT32_MAX) } } },
		.link = { .delay_ns = q->delay_ns != 0 ? q->delay_ns : DELAY_NS, .loss = q->loss },
	};
}

static int add_link(struct maker *m, unsigned int i)
{
	const struct pl_lab_link *l = &m->t->links[i];
	const struct pl_lab_impairments as = as_built(&l->quality);
	unsigned int link;
	int r = 0;

	for (unsigned int e = 0; r == 0 && e < 2; e++)
		r = pl_dp_sim_port_set(
			m->s->sim, m->s->nodes[l->end[e].node], l->end[e].port, &as.port, m->diag);
	if (r == 0)
		r = pl_dp_sim_link(m->s->sim, m->s->nodes[l->end[0].node], l->end[0].port,
			m->s->nodes[l->end[1].node], l->end[1].port, &as.link, &link, m->diag);
	for (unsigned int e = 0; r == 0 && e < 2; e++)
		m->s->senders[i][e] =
			(struct sender){ m->s->nodes[l->end[e].node], l->end[e].port, link + e };
	return r;
}

/* ---- traffic ---- */

/* Returns the MAC address of a host's first port. */
static const uint8_t *mac_of(const struct pl_lab_topology *t, unsigned int node)
{
	const struct pl_lab_link *l = &t->links[t->nodes[node].links[0]];

	return l->end[l->end[0].node != node].mac;
}

static int add_flow(struct pl_lab_simulation *s, const struct pl_dp_flow_cfg *cfg,
	uint32_t *ret_flow, struct pl_diag *diag)
{
	struct pl_flow *more = reallocarray(s->flows, s->n_flows + 1, sizeof(*more));
	int r;

	if (more == NULL)
		return -ENOMEM;
	s->flows = more;
	r = pl_dp_traffic_add(s->traffic, cfg, ret_flow, diag);
	if (r == 0)
		s->flows[s->n_flows++] = cfg->tuple;
	return r;
}

static int add_flows(struct maker *m)
{
	const struct pl_lab_simulation_cfg *c = &m->s->cfg;
	unsigned int hosts[PL_LAB_NODES_MAX], n = 0;
	struct pl_rng rng;
	uint32_t flow;
	int r = 0;

	pl_rng_seed(&rng, c->seed);
	for (unsigned int i = 0; i < m->t->n_nodes; i++) {
		if (m->t->nodes[i].kind == PL_LAB_HOST)
			hosts[n++] = i;
	}
	if (n < 2) {
		pl_diag_set(m->diag, "the network has fewer than two hosts: nobody can send");
		return -EINVAL;
	}
	for (unsigned int i = 0; r == 0 && i < c->flows; i++) {
		/* Hosts take turns as senders. */
		unsigned int from = i % n,
			     to = (from + 1 + (unsigned int)pl_rng_below(&rng, n - 1)) % n;
		const struct pl_lab_node *a = &m->t->nodes[hosts[from]],
					 *b = &m->t->nodes[hosts[to]];
		struct pl_dp_flow_cfg cfg = { .pattern = PL_DP_POISSON,
			.from = m->s->nodes[hosts[from]],
			.to = m->s->nodes[hosts[to]],
			.tuple = { .src = a->v4,
				.dst = b->v4,
				.sport = (uint16_t)(SOURCE_PORT + i),
				.dport = 5000,
				.proto = PL_IP_UDP,
				.have = PL_FLOW_PORTS },
			.bytes = c->bytes,
			.rate = c->rate / c->flows,
			.stop_ns = c->start_ns + c->duration_ns };

		memcpy(cfg.from_mac, mac_of(m->t, hosts[from]), 6);
		memcpy(cfg.to_mac, mac_of(m->t, hosts[to]), 6);
		r = add_flow(m->s, &cfg, &flow, m->diag);
	}
	return r;
}

/* Sets the pattern and packet sizes that model this traffic. */
static int set_pattern(
	struct pl_dp_flow_cfg *c, const struct pl_lab_traffic *t, struct pl_diag *diag)
{
	const double rate = (double)t->rate_bps / 8 / t->size;
	const double burst = rate * (double)t->on_ns / 1e9;
	const uint32_t segments = (t->size + SEGMENT - 1) / SEGMENT;

	c->bytes = UDP_HEAD + t->size;
	c->rate = rate;
	switch (t->kind) {
	case PL_LAB_BULK:
		pl_diag_set(diag, "bulk is TCP, and a simulation has no TCP: use udp with a rate");
		return -EINVAL;
	case PL_LAB_UDP:
		c->pattern = PL_DP_CONSTANT;
		break;
	case PL_LAB_ONOFF:
	case PL_LAB_INCAST:
		c->pattern = PL_DP_BURSTS;
		c->burst = burst < 1 ? 1 : burst > UINT32_MAX ? UINT32_MAX : (uint32_t)burst;
		c->period_ns = t->on_ns + t->off_ns;
		break;
	case PL_LAB_REQUEST:
		c->pattern = PL_DP_REQUESTS;
		c->tuple.proto = PL_IP_TCP;
		c->bytes = TCP_HEAD + REQUEST;
		c->burst = segments;
		c->reply_bytes = TCP_HEAD + (segments == 1 ? t->size : SEGMENT);
		c->timeout_ns = ANSWER_NS;
		c->rate = 0;
		return 0;
	case PL_LAB_DNS:
		c->pattern = PL_DP_REQUESTS;
		c->bytes = UDP_HEAD + QUESTION;
		c->burst = 1;
		c->reply_bytes = UDP_HEAD + t->size;
		c->timeout_ns = ANSWER_NS;
		c->off_ns = (uint64_t)(1e9 / rate);
		c->rate = 0;
		break;
	}
	if (t->size <= PAYLOAD_MAX)
		return 0;
	pl_diag_set(diag, "a simulated packet has %d bytes of payload at most", PAYLOAD_MAX);
	return -EINVAL;
}

int pl_lab_simulation_send(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	const struct pl_lab_traffic *traffic, uint64_t start_ns, uint64_t stop_ns,
	uint32_t *ret_first, struct pl_diag *diag)
{
	const struct pl_lab_node *to = &t->nodes[traffic->to];
	uint32_t flow;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < traffic->n_from; i++) {
		const struct pl_lab_node *from = &t->nodes[traffic->from[i]];
		struct pl_dp_flow_cfg cfg = { .from = s->nodes[traffic->from[i]],
			.to = s->nodes[traffic->to],
			.tuple = { .src = from->v4,
				.dst = to->v4,
				.sport = (uint16_t)(STORY_PORT + s->story_port++ % 20000),
				.dport = SERVER_PORT,
				.proto = PL_IP_UDP,
				.have = PL_FLOW_PORTS },
			.start_ns = start_ns,
			.stop_ns = stop_ns != 0 ? stop_ns : s->cfg.start_ns + s->cfg.duration_ns };

		memcpy(cfg.from_mac, mac_of(t, traffic->from[i]), 6);
		memcpy(cfg.to_mac, mac_of(t, traffic->to), 6);
		r = set_pattern(&cfg, traffic, diag);
		if (r == 0)
			r = add_flow(s, &cfg, &flow, diag);
		if (r == 0 && i == 0)
			*ret_first = flow;
	}
	return r;
}

/* Returns when the traffic of a step ends: after its duration, at its stop, or at end_ns. */
static uint64_t end_of(const struct pl_lab_story *story, size_t i, uint64_t end_ns)
{
	const struct pl_lab_story_step *step = &story->steps[i];
	uint64_t end =
		step->traffic.duration_ns != 0 ? step->at_ns + step->traffic.duration_ns : end_ns;

	for (size_t k = i + 1; k < story->n; k++) {
		if (story->steps[k].kind == PL_LAB_STORY_STOP && story->steps[k].stops == i &&
			story->steps[k].at_ns < end)
			end = story->steps[k].at_ns;
	}
	return end < end_ns ? end : end_ns;
}

static int add_story(struct maker *m)
{
	const struct pl_lab_simulation_cfg *c = &m->s->cfg;
	const struct pl_lab_story *story = &m->t->story;
	uint32_t first;
	int r = 0;

	for (size_t i = 0; r == 0 && i < story->n; i++) {
		const struct pl_lab_story_step *step = &story->steps[i];
		const uint64_t end = end_of(story, i, c->duration_ns);

		if (step->kind != PL_LAB_STORY_TRAFFIC || end <= step->at_ns)
			continue;
		r = pl_lab_simulation_send(m->s, m->t, &step->traffic, c->start_ns + step->at_ns,
			c->start_ns + end, &first, m->diag);
		if (r == -EINVAL) {
			char why[sizeof(m->diag->text)];

			snprintf(why, sizeof(why), "%s", m->diag->text);
			pl_diag_set(m->diag, "story, %s: %s", step->text, why);
		}
	}
	return r;
}

static int make(struct maker *m)
{
	struct pl_lab_simulation *s = m->s;
	const struct pl_dp_sim_cfg cfg = { .seed = s->cfg.seed,
		.start_ns = s->cfg.start_ns,
		.packet_bytes = 9700,
		.truth = s->cfg.truth };
	const struct pl_dp_sim_node_cfg collector = { .host = true,
		.ops = { .receive = s->cfg.collect, .arg = s->cfg.arg } };
	int r = pl_dp_sim_new(&s->sim, &cfg);

	if (r == 0)
		r = pl_dp_traffic_new(&s->traffic, s->sim, s->cfg.seed);
	if (r == 0)
		r = pl_dp_sim_node(s->sim, &collector, &s->collector);
	for (unsigned int i = 0; r == 0 && i < m->t->n_nodes; i++) {
		pl_lab_distances(m->t, i, m->distances + (size_t)i * m->t->n_nodes);
		if (m->t->nodes[i].kind != PL_LAB_HOST)
			continue;
		r = add_host(m, i);
	}
	for (unsigned int i = 0; r == 0 && i < m->t->n_nodes; i++) {
		if (m->t->nodes[i].kind != PL_LAB_HOST)
			r = add_switch(m, i);
	}
	for (unsigned int i = 0; r == 0 && i < m->t->n_links; i++)
		r = add_link(m, i);
	if (r == 0)
		r = add_flows(m);
	return r == 0 ? add_story(m) : r;
}

int pl_lab_simulation_new(struct pl_lab_simulation **ret, const struct pl_lab_topology *t,
	const struct pl_lab_simulation_cfg *cfg, struct pl_diag *diag)
{
	struct maker *m = calloc(1, sizeof(*m));
	struct pl_lab_simulation *s = calloc(1, sizeof(*s));
	int r = -ENOMEM;

	if (m == NULL || s == NULL)
		goto out;
	s->cfg = *cfg;
	s->n_nodes = t->n_nodes;
	s->nodes = calloc(t->n_nodes, sizeof(*s->nodes));
	s->switches = calloc(t->n_nodes, sizeof(struct pl_dp_sim_switch *));
	s->senders = calloc((size_t)t->n_links + 1, sizeof(*s->senders));
	m->s = s;
	m->t = t;
	m->diag = diag;
	m->distances = calloc((size_t)t->n_nodes * t->n_nodes, sizeof(*m->distances));
	if (s->nodes != NULL && s->switches != NULL && s->senders != NULL && m->distances != NULL)
		r = make(m);
out:
	if (m != NULL)
		free(m->distances);
	free(m);
	if (r != 0) {
		pl_lab_simulation_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void pl_lab_simulation_free(struct pl_lab_simulation *s)
{
	if (s == NULL)
		return;
	for (unsigned int i = 0; s->switches != NULL && i < s->n_nodes; i++)
		pl_dp_sim_switch_free(s->switches[i]);
	pl_dp_traffic_free(s->traffic);
	pl_dp_sim_free(s->sim);
	free(s->switches);
	free(s->nodes);
	free(s->senders);
	free(s->flows);
	free(s);
}

/* ---- links ---- */

/* Returns a direction's current impairments. */
static struct pl_lab_impairments as_it_is(struct pl_lab_simulation *s, const struct sender *d)
{
	return (struct pl_lab_impairments){
		.port = *pl_dp_port_get(pl_dp_sim_port_at(s->sim, d->node, d->port)),
		.link = *pl_dp_link_get(pl_dp_sim_link_at(s->sim, d->link)),
	};
}

static int set(struct pl_lab_simulation *s, const struct sender *d,
	const struct pl_lab_impairments *as, struct pl_diag *diag)
{
	int r = pl_dp_sim_port_set(s->sim, d->node, d->port, &as->port, diag);

	return r == 0 ? pl_dp_sim_link_set(s->sim, d->link, &as->link, diag) : r;
}

static int change(struct pl_lab_simulation *s, const struct sender *d, const char *const *words,
	unsigned int n, bool now, struct pl_diag *diag)
{
	struct pl_lab_impairments i = as_it_is(s, d);
	int r = 0;

	for (unsigned int k = 0; k < n && r == 0; k++)
		r = pl_lab_impair_word(&i, words[k], diag);
	if (i.port.rate_bps == 0)
		i.port.rate_bps = PL_LAB_SIMULATION_RATE_BPS;
	if (r == 0 && now)
		return set(s, d, &i, diag);
	return r == 0 ? pl_lab_impairments_check(&i, diag) : r;
}

int pl_lab_simulation_impair(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	const char *link, const char *const *words, unsigned int n, struct pl_diag *diag)
{
	unsigned int ends;
	int at = pl_lab_find_directions(t, link, &ends, diag), r = 0;

	if (at < 0)
		return at;
	for (unsigned int i = 0; i < 4 && r == 0; i++) {
		if ((ends >> i % 2 & 1) != 0)
			r = change(s, &s->senders[at][i % 2], words, n, i >= 2, diag);
	}
	return r;
}

int pl_lab_simulation_become(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	struct pl_buf *out, struct pl_diag *diag)
{
	char name[PL_LAB_LINK_TEXT_MAX];
	int r = 0;

	for (unsigned int i = 0; i < t->n_links && r == 0; i++) {
		const struct pl_lab_impairments as = as_built(&t->links[i].quality),
						a = as_it_is(s, &s->senders[i][0]),
						b = as_it_is(s, &s->senders[i][1]);

		if (pl_lab_impairments_same(&a, &as) && pl_lab_impairments_same(&b, &as))
			continue;
		pl_lab_link_text(t, &t->links[i], name);
		pl_lab_change_tell(out, "link", "set", name);
		r = set(s, &s->senders[i][0], &as, diag);
		if (r == 0)
			r = set(s, &s->senders[i][1], &as, diag);
	}
	return r;
}

struct pl_dp_sim *pl_lab_simulation_sim(struct pl_lab_simulation *s)
{
	return s->sim;
}

void pl_lab_simulation_sender(const struct pl_lab_simulation *s, unsigned int link,
	unsigned int end, unsigned int *ret_node, unsigned int *ret_port, unsigned int *ret_link)
{
	*ret_node = s->senders[link][end].node;
	*ret_port = s->senders[link][end].port;
	*ret_link = s->senders[link][end].link;
}

struct pl_dp_sim_switch *pl_lab_simulation_switch(struct pl_lab_simulation *s, unsigned int node)
{
	return node < s->n_nodes ? s->switches[node] : NULL;
}

/* ---- the truth ---- */

void pl_lab_simulation_truth(struct pl_lab_simulation *s, const struct pl_lab_topology *t,
	struct pl_lab_truth_account *ret)
{
	const uint64_t now = pl_dp_sim_now(s->sim);

	for (unsigned int i = 0; i < 2 * t->n_links; i++) {
		const struct sender *d = &s->senders[i / 2][i % 2];
		const struct pl_lab_truth_link l = { .link = i / 2,
			.from = i % 2,
			.port = pl_dp_sim_port_at(s->sim, d->node, d->port),
			.dp = pl_dp_sim_link_at(s->sim, d->link) };

		pl_lab_truth_link(t, &l, now, ret);
	}
	for (uint32_t f = 1; f <= pl_dp_sim_flows(s->sim); f++)
		pl_lab_truth_flow(&s->flows[f - 1], f, pl_dp_sim_flow_account(s->sim, f), now, ret);
}
