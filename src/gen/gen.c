/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns: chooses the next packet and the nodes that report it, and sends or loses the reports. */
#include "gen/gen.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gen/gen_cfg.h"
#include "gen/int_form.h"
#include "gen/int_gen.h"
#include "gen/ioam_gen.h"
#include "gen/replay.h"
#include "gen/template.h"

#define TRIES_MAX 65536

/* A sequence of report numbers. */
struct exporter {
	uint32_t next;
	uint32_t held_seq;
	bool held; /* held_seq was overtaken by its successor and is sent next */
};

/* A datagram still to be sent about the present packets. */
struct turn {
	enum pl_gen_why why;
	unsigned int hop, first; /* as in struct pl_gen_item */
	unsigned int n;          /* number of packets, from the first on */
};

struct pl_gen {
	struct pl_gen_cfg cfg;
	char *topology;
	struct pl_model *model;
	struct pl_gen_counters counters;
	/* time: slot s is at origin_ns + (s - origin_slot) / rate */
	uint64_t slot, origin_slot, origin_ns;
	double slot_ns;
	uint32_t next_flow;
	struct exporter
		*exporters; /* per node; the last one for reports without the id of their node */
	/* the packets that are reported */
	struct pl_model_packet packets[PL_GEN_REPORTS_MAX];
	struct turn turns[2 * PL_GEN_HOPS_MAX + 2];
	unsigned int n_turns, next_turn;
	struct pl_gen_lost
		/* Host-INT, per flow: packets that its sink has missed since the last one it saw */
		*gaps;
	struct pl_templates *templates; /* or NULL */
	struct pl_gen_lost lost;        /* to be summarized in this turn */
	/* the last packet, for duplicates */
	bool again;
	unsigned int last;
	struct pl_packet last_packet;
	uint8_t (*memory)[PL_GEN_PACKET_MAX]; /* PL_BATCH_MAX of them */
	struct pl_gen_truth *truth; /* per packet of the batch, reports_per_datagram each */
	uint8_t truth_n[PL_BATCH_MAX];
};

static uint64_t slot_time(const struct pl_gen *g, uint64_t slot)
{
	return g->origin_ns + (uint64_t)((double)(slot - g->origin_slot) * g->slot_ns);
}

static bool chance(struct pl_gen *g, double p)
{
	return p > 0 && pl_rng_unit(pl_model_rng(g->model)) < p;
}

static bool finished(const struct pl_gen *g, uint64_t due_ns)
{
	return (g->cfg.count != 0 && g->counters.packets >= g->cfg.count) ||
	       (g->cfg.duration_ns != 0 && due_ns - g->cfg.start_ns >= g->cfg.duration_ns);
}

uint64_t pl_gen_due_ns(const struct pl_gen *gen)
{
	uint64_t due = slot_time(gen, gen->slot);

	return finished(gen, due) ? UINT64_MAX : due;
}

void pl_gen_skip_to(struct pl_gen *gen, uint64_t now_ns)
{
	gen->origin_ns = now_ns;
	gen->origin_slot = gen->slot;
}

/* ---- sequence numbers ---- */

/* Exporter of a report: the node's, or the socket's for v0.5 reports through one socket, because
 * v0.5 tells devices apart by their addresses only. */
static struct exporter *exporter_of(struct pl_gen *g, unsigned int node)
{
	bool anonymous = g->cfg.udp && g->cfg.report == PL_GEN_REPORT_V05;

	return &g->exporters[anonymous ? pl_topo_nodes(pl_model_topology(g->model)) : node];
}

static uint32_t take_seq(struct pl_gen *g, struct exporter *e)
{
	uint32_t seq;

	if (e->held) {
		e->held = false;
		return e->held_seq;
	}
	seq = e->next++;
	if (chance(g, g->cfg.reorder)) {
		g->counters.reordered++;
		e->held = true;
		e->held_seq = seq;
		seq = e->next++;
	}
	return seq;
}

/* ---- turns ---- */

static void add_turn(
	struct pl_gen *g, enum pl_gen_why why, unsigned int hop, unsigned int first, unsigned int n)
{
	assert(g->n_turns < sizeof(g->turns) / sizeof(g->turns[0]));
	g->turns[g->n_turns++] = (struct turn){ why, hop, first, n };
}

static void note_gap(struct pl_gen_lost *gap, const struct pl_model_packet *p)
{
	if (gap->count++ == 0) {
		gap->first = p->flow_seq;
		gap->ts_ns = p->hops[p->n_hops - 1].ingress_ts;
	}
}

/* Plans the turns of the packets: the first packet decides. */
static void plan_turns(struct pl_gen *g, unsigned int n)
{
	const struct pl_gen_cfg *cfg = &g->cfg;
	const struct pl_model_packet *p = &g->packets[0];
	unsigned int last = p->n_hops - 1, first = 0;

	g->n_turns = g->next_turn = 0;
	if (cfg->report == PL_GEN_REPORT_NONE) {
		/* in its form on the last link inside the domain */
		if (!p->dropped)
			add_turn(g, PL_GEN_WHY_SINK, last > 0 ? last - 1 : 0, 0, 1);
		return;
	}
	if (g->gaps != NULL) { /* the end systems see a packet or miss it */
		struct pl_gen_lost *gap = &g->gaps[p->flow];

		if (p->dropped) {
			note_gap(gap, p);
			return;
		}
		if (gap->count > 0) {
			g->lost = *gap;
			gap->count = 0;
			add_turn(g, PL_GEN_WHY_SUMMARY, last, 0, 1);
		}
	}
	if (cfg->mode == PL_GEN_MD) {
		for (unsigned int hop = cfg->flush_hops; cfg->flush_hops > 0 && hop < last;
			hop += cfg->flush_hops) {
			add_turn(g, PL_GEN_WHY_FLUSH, hop, first, n);
			first = hop;
		}
		add_turn(g, p->dropped ? PL_GEN_WHY_DROP : PL_GEN_WHY_SINK, last, first, n);
	} else {
		for (unsigned int hop = 0; hop <= last; hop++)
			add_turn(g, p->dropped && hop == last ? PL_GEN_WHY_DROP : PL_GEN_WHY_NODE,
				hop, 0, n);
	}
	for (unsigned int hop = 0; cfg->queue_report > 0 && hop <= last; hop++) {
		if (p->hops[hop].queue_depth > cfg->queue_report)
			add_turn(g, PL_GEN_WHY_QUEUE, hop, 0, 1);
	}
}

static bool next_packets(struct pl_gen *g, uint64_t due_ns)
{
	unsigned int n = 1, node;
	uint32_t flow = g->next_flow;

	pl_model_advance(g->model, due_ns - g->cfg.start_ns);
	while (pl_model_restart(g->model, &node)) {
		g->exporters[node] = (struct exporter){ .next = 0 };
		g->counters.restarts++;
	}
	g->next_flow = flow + 1 == g->cfg.flows ? 0 : flow + 1;
	if (!pl_model_packet(g->model, flow, due_ns, true, &g->packets[0])) {
		g->counters.unrouted++;
		return false;
	}
	if (g->packets[0].dropped) {
		g->counters.dropped++;
	} else {
		for (; n < g->cfg.reports_per_datagram; n++)
			(void)pl_model_packet(g->model, flow, due_ns, false, &g->packets[n]);
	}
	plan_turns(g, n);
	return g->n_turns > 0;
}

/* ---- packets ---- */

static const struct pl_malform *pick_damage(struct pl_gen *g)
{
	double left;

	if (g->cfg.n_malform == 0)
		return NULL;
	left = pl_rng_unit(pl_model_rng(g->model));
	for (unsigned int i = 0; i < g->cfg.n_malform; i++) {
		left -= g->cfg.malform[i].ratio;
		if (left < 0)
			return g->cfg.malform[i].kind;
	}
	return NULL;
}

static struct pl_gen_truth *truth_at(struct pl_gen *g, unsigned int slot)
{
	return g->truth == NULL ? NULL : &g->truth[(size_t)slot * g->cfg.reports_per_datagram];
}

static void set_packet(const struct pl_gen *g, struct pl_packet *pkt, const struct pl_build *b,
	const struct pl_gen_damage *d, uint64_t due_ns)
{
	static const uint8_t local[4] = { 127, 0, 0, 1 };

	*pkt = (struct pl_packet){
		.data = b->data,
		.len = (uint32_t)b->len,
		.wire_len = d->wire_len > b->len ? d->wire_len : (uint32_t)b->len,
		.ts_ns = due_ns,
		.link = d->link,
	};
	if (g->cfg.udp) {
		pkt->link = PL_LINK_UDP;
		pkt->src = pkt->dst = pl_addr_v4(local);
		pkt->sport = 32766;
		pkt->dport = g->cfg.report_port;
	}
}

/* Writes the common report from its template, or encodes it and keeps it as the template. */
static bool put_usual(struct pl_gen *g, const struct turn *t, uint32_t seq, uint64_t due_ns,
	unsigned int slot, struct pl_packet *pkt)
{
	struct pl_build b = pl_build(g->memory[slot], PL_GEN_PACKET_MAX);
	struct pl_gen_damage d = { .link = PL_LINK_ETHERNET };
	struct pl_gen_item item = { .packet = &g->packets[0],
		.flow = pl_model_flow(g->model, g->packets[0].flow),
		.hop = t->hop,
		.why = t->why };
	uint32_t generation = pl_model_generation(g->model);

	if (g->templates == NULL || t->why != PL_GEN_WHY_SINK)
		return false;
	if (pl_templates_put(g->templates, &b, &item, seq, generation)) {
		g->counters.patched++;
	} else {
		size_t at = 0;

		if (!g->cfg.udp)
			at = pl_int_gen_open_frame(&g->cfg, &b, item.packet->hops[t->hop].node, &d);
		(void)pl_int_gen_reports(&g->cfg, &b, &item, 1, seq, &d, NULL);
		if (!g->cfg.udp)
			pl_end_ip(&b, at);
		assert(!b.full);
		pl_templates_learn(g->templates, &b, &item, &d, generation);
	}
	g->truth_n[slot] = 1;
	g->counters.reports++;
	set_packet(g, pkt, &b, &d, due_ns);
	return true;
}

/* Writes the datagram or packet of a turn into slot `slot`. */
static void put_turn(struct pl_gen *g, const struct turn *t, uint32_t seq, uint64_t due_ns,
	unsigned int slot, struct pl_packet *pkt)
{
	const struct pl_gen_cfg *cfg = &g->cfg;
	struct pl_build b = pl_build(g->memory[slot], PL_GEN_PACKET_MAX);
	struct pl_gen_damage d = { .kind = pick_damage(g), .link = PL_LINK_ETHERNET };
	struct pl_gen_item items[PL_GEN_REPORTS_MAX];
	struct pl_gen_truth *truth = truth_at(g, slot);
	unsigned int n = t->n;

	if (put_usual(g, t, seq, due_ns, slot, pkt))
		return;
	for (unsigned int i = 0; i < t->n; i++)
		items[i] = (struct pl_gen_item){ &g->packets[i],
			pl_model_flow(g->model, g->packets[i].flow), t->hop, t->why, t->first,
			chance(g, cfg->fragments), &g->lost };
	if (cfg->ioam.options != 0) {
		pl_ioam_gen_packet(cfg, &b, &items[0], &d, truth);
	} else if (cfg->report == PL_GEN_REPORT_NONE) {
		pl_int_gen_packet(cfg, &b, &items[0], &d, truth);
	} else if (cfg->udp) {
		n = pl_int_gen_reports(cfg, &b, items, t->n, seq, &d, truth);
	} else {
		size_t at = pl_int_gen_open_frame(cfg, &b, g->packets[0].hops[t->hop].node, &d);

		n = pl_int_gen_reports(cfg, &b, items, t->n, seq, &d, truth);
		pl_end_ip(&b, at);
		pl_malform_at(&d, PL_MALFORM_FRAME, &b);
	}
	assert(!b.full); /* pl_gen_new made sure that the longest fits */
	if (d.kind != NULL && !d.scrapped)
		g->counters.malformed++;
	if (truth != NULL) {
		for (unsigned int i = 0; i < n; i++) {
			truth[i].malform = d.scrapped ? NULL : d.kind;
			truth[i].duplicate = false;
		}
	}
	g->truth_n[slot] = (uint8_t)n;
	g->counters.reports += cfg->report == PL_GEN_REPORT_NONE ? 0 : n;
	g->counters.queue_reports += t->why == PL_GEN_WHY_QUEUE;
	g->counters.flushes += t->why == PL_GEN_WHY_FLUSH;
	g->counters.summaries += t->why == PL_GEN_WHY_SUMMARY;
	set_packet(g, pkt, &b, &d, due_ns);
}

static void put_again(struct pl_gen *g, uint64_t due_ns, unsigned int slot, struct pl_packet *pkt)
{
	unsigned int n = g->truth_n[g->last];

	*pkt = g->last_packet;
	pkt->ts_ns = due_ns;
	if (slot != g->last) {
		memcpy(g->memory[slot], g->memory[g->last], pkt->len);
		if (g->truth != NULL)
			memcpy(truth_at(g, slot), truth_at(g, g->last), n * sizeof(*g->truth));
	}
	pkt->data = g->memory[slot];
	g->truth_n[slot] = (uint8_t)n;
	for (unsigned int i = 0; g->truth != NULL && i < n; i++)
		truth_at(g, slot)[i].duplicate = true;
	g->counters.duplicated++;
	g->counters.reports += n;
	g->again = false;
	g->slot += n;
}

/* Does the work of one slot. Returns false when it gave no packet. */
static bool step(struct pl_gen *g, uint64_t due_ns, unsigned int slot, struct pl_packet *pkt)
{
	const struct turn *t;
	struct exporter *e;
	unsigned int node;
	uint32_t seq;

	if (g->again) {
		put_again(g, due_ns, slot, pkt);
		return true;
	}
	if (g->cfg.replay != PL_GEN_REPLAY_NONE) {
		struct pl_build b = pl_build(g->memory[slot], PL_GEN_PACKET_MAX);
		struct pl_gen_damage d = { .link = PL_LINK_ETHERNET };

		pl_replay_put(&g->cfg, &b, g->slot++, pl_model_rng(g->model));
		assert(!b.full);
		set_packet(g, pkt, &b, &d, due_ns);
		g->truth_n[slot] = 0;
		g->counters.reports++;
		return true;
	}
	if (g->next_turn == g->n_turns && !next_packets(g, due_ns)) {
		g->slot++;
		return false;
	}
	t = &g->turns[g->next_turn++];
	g->slot += t->n;
	if (g->cfg.report == PL_GEN_REPORT_NONE) {
		put_turn(g, t, 0, due_ns, slot, pkt);
		return true;
	}
	node = g->packets[0].node[t->hop];
	e = exporter_of(g, node);
	seq = take_seq(g, e);
	if (chance(g, pl_model_loss(g->model, node))) {
		g->counters.lost++;
		return false;
	}
	put_turn(g, t, seq, due_ns, slot, pkt);
	if (chance(g, g->cfg.duplicate)) {
		g->again = true;
		g->last = slot;
		g->last_packet = *pkt;
	}
	return true;
}

int pl_gen_next(struct pl_gen *gen, uint64_t until_ns, struct pl_batch *ret)
{
	unsigned int n = 0;

	for (unsigned int tries = 0; n < PL_BATCH_MAX && tries < TRIES_MAX; tries++) {
		uint64_t due = pl_gen_due_ns(gen);

		if (due >= until_ns)
			break;
		if (step(gen, due, n, &ret->pkts[n])) {
			gen->counters.packets++;
			gen->counters.bytes += ret->pkts[n].len;
			n++;
		}
	}
	ret->n = n;
	if (n == 0 && pl_gen_due_ns(gen) == UINT64_MAX)
		return -ENODATA;
	return (int)n;
}

const struct pl_gen_counters *pl_gen_counters(const struct pl_gen *gen)
{
	return &gen->counters;
}

unsigned int pl_gen_truth_reports(const struct pl_gen *gen, unsigned int packet)
{
	assert(gen->truth != NULL && packet < PL_BATCH_MAX);
	return gen->truth_n[packet];
}

const struct pl_gen_truth *pl_gen_truth(
	const struct pl_gen *gen, unsigned int packet, unsigned int report)
{
	assert(gen->truth != NULL && packet < PL_BATCH_MAX && report < gen->truth_n[packet]);
	return &gen->truth[(size_t)packet * gen->cfg.reports_per_datagram + report];
}

const struct pl_gen_cfg *pl_gen_cfg(const struct pl_gen *gen)
{
	return &gen->cfg;
}

/* ---- life ---- */

/* Returns 0 when the longest datagram fits: headers of every level, the stack of the longest path,
 * payload. */
static int check_size(const struct pl_gen *g, size_t *ret_bytes, struct pl_diag *diag)
{
	const struct pl_gen_cfg *cfg = &g->cfg;
	unsigned int stack =
		pl_int_gen_stack_bytes(cfg, pl_topo_nodes(pl_model_topology(g->model)));
	size_t need;

	if (cfg->ioam.options != 0) /* a trace, and all other IOAM, have an option each */
		stack = 5 * 257;
	need = 256 + (size_t)cfg->reports_per_datagram * (384 + stack + cfg->payload);
	*ret_bytes = need;
	if (need <= PL_GEN_PACKET_MAX)
		return 0;
	pl_diag_set(diag,
		"%u reports with such paths and payloads may take %zu bytes; a datagram has %d",
		cfg->reports_per_datagram, need, PL_GEN_PACKET_MAX);
	return -EINVAL;
}

int pl_gen_new(struct pl_gen **ret, const struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	struct pl_gen *g = calloc(1, sizeof(*g));
	unsigned int nodes;
	size_t bytes;
	int r = -ENOMEM;

	if (g == NULL)
		return -ENOMEM;
	g->cfg = *cfg;
	r = pl_gen_resolve(&g->cfg, diag);
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	g->topology = strdup(g->cfg.topology);
	if (g->topology == NULL)
		goto fail;
	g->cfg.topology = g->topology;
	g->origin_ns = g->cfg.start_ns;
	g->slot_ns = 1e9 / g->cfg.rate;
	r = pl_model_new(&g->model, &g->cfg, diag);
	if (r < 0)
		goto fail;
	r = check_size(g, &bytes, diag);
	if (r < 0)
		goto fail;
	r = pl_templates_new(&g->templates, &g->cfg, bytes);
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	nodes = pl_topo_nodes(pl_model_topology(g->model));
	g->exporters = calloc(nodes + 1, sizeof(*g->exporters));
	g->memory = calloc(PL_BATCH_MAX, sizeof(*g->memory));
	if (g->cfg.dialect == PL_DIALECT_HOST_INT && g->cfg.report != PL_GEN_REPORT_NONE) {
		g->gaps = calloc(g->cfg.flows, sizeof(*g->gaps));
		if (g->gaps == NULL)
			goto fail;
	}
	if (g->exporters == NULL || g->memory == NULL)
		goto fail;
	for (unsigned int i = 0; i <= nodes; i++)
		g->exporters[i].next = g->cfg.first_seq;
	if (g->cfg.truth) {
		g->truth = calloc(
			(size_t)PL_BATCH_MAX * g->cfg.reports_per_datagram, sizeof(*g->truth));
		if (g->truth == NULL)
			goto fail;
	}
	*ret = g;
	return 0;
fail:
	pl_gen_free(g);
	return r;
}

void pl_gen_free(struct pl_gen *gen)
{
	if (gen == NULL)
		return;
	pl_model_free(gen->model);
	free(gen->topology);
	pl_templates_free(gen->templates);
	free(gen->gaps);
	free(gen->exporters);
	free(gen->memory);
	free(gen->truth);
	free(gen);
}
