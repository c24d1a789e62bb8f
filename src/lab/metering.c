/* SPDX-License-Identifier: BSD-2-Clause */
/* Marks and meters the packets of a simulated network, and compares both ends of each link. */
#include "lab/metering.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lab/metering_truth.h"
#include "mark/meter.h"
#include "wire/layers.h"

#define FLOWS_MAX  4096u
/* Maximum number of blocks, of all flows of a link direction, that wait for their result. */
#define BLOCKS_MAX (16u * 1024)

/* One direction of a link. Point 1 is in front of its queue, point 2 at the end of the link. */
struct direction {
	struct pl_lab_metering *m;
	unsigned int link, end;
	unsigned int node[2], port[2]; /* of the simulation */
	char name[2][PL_LAB_NAME_MAX + 1];
	bool edge;                       /* from a host to a switch, which marks */
	bool metered;                    /* the sender is no host */
	struct pl_mark_meter *meters[2]; /* made with the first packet */
	struct pl_mark_correlator *correlator;
	struct pl_mark128 *records; /* of blocks not reported yet */
	size_t n, room;
};

/* A marked flow, and the times of its last pulses by the marker's clock. */
struct marked_flow {
	struct pl_mark_flow key;
	bool used;
	uint64_t pulsed;
	struct {
		uint64_t block, at_ns;
	} pulses[METERING_BLOCKS];
};

/* The directions that leave and enter a port: index + 1; 0: none. */
struct place {
	uint32_t out, in;
};

struct pl_lab_metering {
	struct pl_lab_metering_cfg cfg;
	struct pl_dp_sim *sim;
	struct direction *directions;
	uint32_t n_directions;
	struct place *places; /* port n of node k is at k * ports + n */
	unsigned int nodes, ports;
	unsigned int *node_of; /* simulation node by topology node */
	unsigned int n_topology;
	struct marked_flow *flows;
	uint32_t n_flows, room;
	struct metering_truth truth;
	bool has_truth;
	uint32_t timer;
	uint64_t next; /* block that is reported next */
	struct pl_lab_metering_account account;
};

/* ---- flows ---- */

static struct marked_flow *find(
	struct marked_flow *flows, uint32_t room, const struct pl_mark_flow *key)
{
	uint32_t at = (uint32_t)pl_hash(key, sizeof(*key), 0) & (room - 1);

	while (flows[at].used && memcmp(&flows[at].key, key, sizeof(*key)) != 0)
		at = (at + 1) & (room - 1);
	return &flows[at];
}

static struct marked_flow *flow_of(struct pl_lab_metering *m, const struct pl_mark_flow *key)
{
	struct marked_flow *f;

	if (m->n_flows >= m->room / 2) {
		const uint32_t room = m->room == 0 ? 256 : m->room * 2;
		struct marked_flow *more = calloc(room, sizeof(*more));

		if (more == NULL)
			return NULL;
		for (uint32_t i = 0; i < m->room; i++) {
			if (m->flows[i].used)
				*find(more, room, &m->flows[i].key) = m->flows[i];
		}
		free(m->flows);
		m->flows = more;
		m->room = room;
	}
	f = find(m->flows, m->room, key);
	if (!f->used) {
		*f = (struct marked_flow){ .key = *key, .used = true };
		m->n_flows++;
	}
	return f;
}

static struct pl_mark_flow key_of(const struct pl_flow *f)
{
	return (struct pl_mark_flow){ .src = f->src,
		.dst = f->dst,
		.sport = f->sport,
		.dport = f->dport,
		.proto = f->proto };
}

/* ---- records and results ---- */

static void keep(void *arg, const struct pl_mark128 *record)
{
	struct direction *d = arg;

	if (d->n == d->room) {
		const size_t room = d->room == 0 ? 64 : 2 * d->room;
		struct pl_mark128 *more = realloc(d->records, room * sizeof(*more));

		if (more == NULL) {
			d->m->account.no_memory++;
			return;
		}
		d->records = more;
		d->room = room;
	}
	d->records[d->n++] = *record;
}

static void tell(void *arg, const struct pl_mark_result *r)
{
	const struct direction *d = arg;
	const struct pl_lab_metering *m = d->m;
	struct pl_lab_metering_result told = { .by_marking = r,
		.link = d->link,
		.end = d->end,
		.from = d->name[0],
		.to = d->name[1] };
	const uint64_t after = r->method == PL_MARK_PULSE && (r->has & PL_MARK_HAS_LOSS) != 0
				       ? r->since
				       : r->block - 1;

	metering_truth_sum(&m->truth, after, r->block, &r->flow, 2 * d->link + d->end, &told.truth);
	told.truth.known &= m->has_truth;
	/* The flow pauses, or takes another path now. */
	if (r->sent == 0 && r->received == 0 && told.truth.sent == 0 &&
		(r->alarms & ~(uint32_t)PL_MARK_ALARM_PULSES) == 0)
		return;
	m->cfg.result(m->cfg.arg, &told);
}

static struct pl_mark_point point_of(const struct pl_lab_metering *m, unsigned int end)
{
	return (struct pl_mark_point){ .point = end + 1,
		.method = m->cfg.method,
		.period_ns = m->cfg.period_ns,
		.flags = PL_MARK_IS_SYNCED,
		.clock_error_ns = m->cfg.clock_ns / 2 };
}

static int make_meters(struct direction *d)
{
	static const uint32_t points[2] = { 1, 2 };
	const struct pl_mark_segment segment = { &points[0], &points[1], 1, 1 };
	const struct pl_lab_metering_cfg *c = &d->m->cfg;
	const struct pl_mark_correlator_config correlator = { .segments = &segment,
		.n_segments = 1,
		.blocks_max = BLOCKS_MAX,
		.clock_ns = c->clock_ns,
		.result = tell,
		.arg = d };
	int r = 0;

	for (unsigned int end = 0; end < 2 && r == 0; end++) {
		const struct pl_mark_meter_config meter = { .point = point_of(d->m, end),
			.guard_ns = c->guard_ns,
			.flows_max = c->flows_max,
			.record = keep,
			.arg = d };

		r = d->meters[end] != NULL ? 0 : pl_mark_meter_new(&d->meters[end], &meter, NULL);
	}
	return r == 0 ? pl_mark_correlator_new(&d->correlator, &correlator, NULL) : r;
}

/* Gives the correlator a point's record. A point that never saw the flow gives an empty one; while
 * its clock has not passed the block's reading time, none: the result then says it is missing. */
static void give(struct direction *d, const struct pl_mark128 *some,
	const struct pl_mark128 *record, unsigned int end, bool last)
{
	static const struct pl_mark_cell nothing;
	struct pl_mark_point point = point_of(d->m, end);
	struct pl_mark128 r;

	if (record != NULL) {
		pl_mark_correlate(d->correlator, record);
		return;
	}
	if (!last && pl_dp_sim_node_ns(d->m->sim, d->node[end]) <
			     pl_mark_read_at(some->method, some->block, some->period_ns))
		return;
	if (pl_mark_meter_stats(d->meters[end])->without_room > 0)
		point.flags |= PL_MARK_NO_ROOM;
	pl_mark_record(&r, &point,
		&(struct pl_mark_flow){ .src = some->src,
			.dst = some->dst,
			.sport = some->sport,
			.dport = some->dport,
			.proto = some->proto },
		some->block, &nothing);
	pl_mark_correlate(d->correlator, &r);
}

/* Correlates the records of both ends for all blocks up to this one. */
static void compare_ends(struct direction *d, uint64_t block, bool last)
{
	size_t i = 0;

	if (d->n == 0)
		return;
	qsort(d->records, d->n, sizeof(*d->records), pl_mark_compare);
	while (i < d->n && d->records[i].block <= block) {
		const struct pl_mark128 *some = &d->records[i];

		for (unsigned int end = 0; end < 2; end++) {
			const bool is = i < d->n && d->records[i].point == end + 1 &&
					d->records[i].block == some->block &&
					pl_mark_compare_flow(&d->records[i], some) == 0;

			give(d, some, is ? &d->records[i] : NULL, end, last);
			i += is;
		}
		pl_mark_correlate_until(
			d->correlator, pl_mark_read_at(some->method, some->block, some->period_ns));
	}
	if (i > 0)
		memmove(d->records, d->records + i, (d->n - i) * sizeof(*d->records));
	d->n -= i;
	pl_mark_correlate_until(d->correlator,
		last ? UINT64_MAX
		     : pl_mark_read_at(d->m->cfg.method, block, d->m->cfg.period_ns) + 1);
}

static uint64_t due_ns(const struct pl_lab_metering *m)
{
	return pl_mark_read_at(m->cfg.method, m->next, m->cfg.period_ns) + m->cfg.clock_ns;
}

static void tick(void *arg)
{
	struct pl_lab_metering *m = arg;

	for (uint32_t i = 0; i < m->n_directions; i++) {
		struct direction *d = &m->directions[i];

		if (d->correlator == NULL)
			continue;
		for (unsigned int end = 0; end < 2; end++)
			pl_mark_meter_until(
				d->meters[end], pl_dp_sim_node_ns(m->sim, d->node[end]));
		compare_ends(d, m->next, false);
	}
	m->next++;
	pl_dp_sim_arm(m->sim, m->timer, due_ns(m));
}

void pl_lab_metering_finish(struct pl_lab_metering *m)
{
	pl_dp_sim_set_watch(m->sim, NULL);
	pl_dp_sim_arm(m->sim, m->timer, UINT64_MAX);
	for (uint32_t i = 0; i < m->n_directions; i++) {
		struct direction *d = &m->directions[i];

		if (d->correlator == NULL)
			continue;
		pl_mark_meter_finish(d->meters[0]);
		pl_mark_meter_finish(d->meters[1]);
		compare_ends(d, UINT64_MAX, true);
	}
}

/* ---- packets ---- */

static void mark(struct pl_lab_metering *m, struct pl_dp_packet *pkt,
	const struct pl_layers *layers, const struct pl_mark_flow *key, uint64_t now_ns)
{
	const uint64_t block = now_ns / m->cfg.period_ns;
	uint8_t *network = pkt->data + (layers->network - pkt->data);
	struct marked_flow *f = flow_of(m, key);
	uint64_t before;
	unsigned int bits;

	if (f == NULL) {
		m->account.no_memory++;
		return;
	}
	before = f->pulsed;
	bits = pl_mark_send(&f->pulsed, m->cfg.method, m->cfg.period_ns, m->cfg.guard_ns, now_ns);
	if (!pl_mark_write(&m->cfg.where, network, bits)) {
		m->account.unmarked++;
		return;
	}
	m->account.marked++;
	if (f->pulsed != before) {
		f->pulses[block % METERING_BLOCKS].block = block;
		f->pulses[block % METERING_BLOCKS].at_ns = now_ns;
	}
}

static void count(struct direction *d, unsigned int end, const struct pl_dp_packet *pkt,
	const struct pl_layers *layers, const struct pl_mark_flow *key, uint64_t now_ns)
{
	struct pl_mark_meter *meter;
	struct pl_altmark option;
	unsigned int bits = 0;
	uint64_t before;

	if (pl_mark_read(&d->m->cfg.where, layers, &bits, &option) != PL_MARK_READ_OK)
		return;
	if (d->correlator == NULL && make_meters(d) != 0) {
		d->m->account.no_memory++;
		return;
	}
	meter = d->meters[end];
	before = pl_mark_meter_stats(meter)->without_room;
	pl_mark_meter_count(meter, key, now_ns, bits, 1, pkt->len);
	d->m->account.without_room += pl_mark_meter_stats(meter)->without_room - before;
}

static void pass(
	void *arg, unsigned int node, unsigned int port, bool out, struct pl_dp_packet *pkt)
{
	struct pl_lab_metering *m = arg;
	const struct place *p = node < m->nodes && port < m->ports
					? &m->places[(size_t)node * m->ports + port]
					: NULL;
	const uint32_t at = p == NULL ? 0 : out ? p->out : p->in;
	struct direction *d = at != 0 ? &m->directions[at - 1] : NULL;
	struct pl_layers layers;
	struct pl_mark_flow key;

	if (d == NULL || !(d->metered || (d->edge && !out)))
		return;
	if (pl_layers_walk(&layers, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, true) !=
			PL_V_OK ||
		layers.network == NULL || (layers.flags & PL_LAYERS_FRAGMENT) != 0 ||
		(layers.flow.have & PL_FLOW_PORTS) == 0 ||
		(layers.flow.proto != PL_IP_UDP && layers.flow.proto != PL_IP_TCP))
		return;
	key = key_of(&layers.flow);
	if (d->metered)
		count(d, out ? 0 : 1, pkt, &layers, &key, pl_dp_sim_node_ns(m->sim, node));
	else
		mark(m, pkt, &layers, &key, pl_dp_sim_node_ns(m->sim, node));
}

/* ---- the truth ---- */

/* Returns the block that counts a packet: in pulse marking the one whose pulse comes next. */
static uint64_t block_of(
	const struct pl_lab_metering *m, const struct marked_flow *f, uint64_t marked_ns)
{
	const uint64_t block = marked_ns / m->cfg.period_ns;

	if (m->cfg.method != PL_MARK_PULSE)
		return block;
	return f->pulses[block % METERING_BLOCKS].block == block &&
			       marked_ns <= f->pulses[block % METERING_BLOCKS].at_ns
		       ? block
		       : block + 1;
}

static void add_hop(struct pl_lab_metering_truth *c, const struct pl_path *path,
	const struct pl_hop *h, bool last, bool is_pulse)
{
	const bool left = (h->present & PL_HOP_HAS_egress_ts_ns) != 0;
	const bool dropped = last && (path->flags & PL_FLAG_DROPPED) != 0;
	uint64_t transit;

	c->sent++;
	if (left) {
		const uint64_t residence = h->egress_ts_ns - h->ingress_ts_ns;

		c->left++;
		c->residence_ns += residence;
		if (residence > c->residence_max_ns)
			c->residence_max_ns = residence;
	}
	if (dropped) {
		c->lost += left;
		c->dropped += !left;
		return;
	}
	transit = (last ? path->ts_ns : h[1].ingress_ts_ns) - h->ingress_ts_ns;
	c->arrived++;
	c->transit_ns += transit;
	if (is_pulse) {
		c->has_pulse = true;
		c->pulse_ns = transit;
	}
}

static const struct direction *direction_of(const struct pl_lab_metering *m, const struct pl_hop *h)
{
	unsigned int node;
	uint32_t at;

	if (h->node == 0 || h->node > m->n_topology || h->egress_port >= m->ports)
		return NULL;
	node = m->node_of[h->node - 1];
	at = m->places[(size_t)node * m->ports + h->egress_port].out;
	return at != 0 ? &m->directions[at - 1] : NULL;
}

void pl_lab_metering_path(
	struct pl_lab_metering *m, const struct pl_path *path, const struct pl_hop *hops)
{
	const struct pl_flow tuple = { .src = path->src,
		.dst = path->dst,
		.sport = path->sport,
		.dport = path->dport,
		.proto = path->proto };
	const struct pl_mark_flow key = key_of(&tuple);
	const unsigned int n =
		path->hop_count < PL_DP_SIM_HOPS_MAX ? path->hop_count : PL_DP_SIM_HOPS_MAX;
	const struct marked_flow *f;
	uint64_t marked_ns, own;
	bool is_pulse;

	m->has_truth = true;
	if (n == 0 || hops[0].node == 0 || hops[0].node > m->n_topology || m->room == 0 ||
		(path->flags & PL_FLAG_COPY) != 0)
		return;
	f = find(m->flows, m->room, &key);
	if (!f->used)
		return;
	marked_ns = pl_dp_clock_read(
		pl_dp_sim_clock(m->sim, m->node_of[hops[0].node - 1]), hops[0].ingress_ts_ns);
	own = marked_ns / m->cfg.period_ns;
	is_pulse = f->pulses[own % METERING_BLOCKS].block == own &&
		   f->pulses[own % METERING_BLOCKS].at_ns == marked_ns;
	for (unsigned int i = 0; i < n; i++) {
		const struct direction *d = direction_of(m, &hops[i]);
		struct pl_lab_metering_truth *c;

		/* The packet entered no queue: a table dropped it. */
		if (d == NULL || (hops[i].present & PL_HOP_HAS_egress_port) == 0)
			continue;
		c = metering_truth_cell(
			&m->truth, block_of(m, f, marked_ns), &key, 2 * d->link + d->end);
		if (c == NULL)
			m->account.no_memory++;
		else
			add_hop(c, path, &hops[i], i + 1 == n, is_pulse);
	}
}

/* ---- life ---- */

static void add_direction(struct pl_lab_metering *m, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, unsigned int link, unsigned int end)
{
	struct direction *d = &m->directions[m->n_directions++];
	const struct pl_lab_link *l = &t->links[link];
	unsigned int ignored;

	*d = (struct direction){ .m = m, .link = link, .end = end };
	for (unsigned int i = 0; i < 2; i++) {
		const unsigned int node = l->end[end ^ i].node;

		pl_lab_simulation_sender(s, link, end ^ i, &d->node[i], &d->port[i], &ignored);
		memcpy(d->name[i], t->nodes[node].name, sizeof(d->name[i]));
		m->node_of[node] = d->node[i];
		m->nodes = d->node[i] >= m->nodes ? d->node[i] + 1 : m->nodes;
		m->ports = d->port[i] >= m->ports ? d->port[i] + 1 : m->ports;
	}
	d->metered = t->nodes[l->end[end].node].kind != PL_LAB_HOST;
	d->edge = !d->metered && t->nodes[l->end[end ^ 1].node].kind != PL_LAB_HOST;
}

static int make(
	struct pl_lab_metering *m, struct pl_lab_simulation *s, const struct pl_lab_topology *t)
{
	const struct pl_dp_sim_watch watch = { pass, m };
	int r;

	m->directions = calloc(2 * (size_t)t->n_links + 1, sizeof(*m->directions));
	m->node_of = calloc(t->n_nodes, sizeof(*m->node_of));
	m->n_topology = t->n_nodes;
	if (m->directions == NULL || m->node_of == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < 2 * t->n_links; i++)
		add_direction(m, s, t, i / 2, i % 2);
	m->places = calloc((size_t)m->nodes * m->ports + 1, sizeof(*m->places));
	if (m->places == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_directions; i++) {
		const struct direction *d = &m->directions[i];

		m->places[(size_t)d->node[0] * m->ports + d->port[0]].out = i + 1;
		m->places[(size_t)d->node[1] * m->ports + d->port[1]].in = i + 1;
	}
	r = pl_dp_sim_timer(m->sim, tick, m, &m->timer);
	if (r != 0)
		return r;
	m->next = pl_dp_sim_now(m->sim) / m->cfg.period_ns;
	pl_dp_sim_arm(m->sim, m->timer, due_ns(m));
	pl_dp_sim_set_watch(m->sim, &watch);
	return 0;
}

int pl_lab_metering_new(struct pl_lab_metering **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const struct pl_lab_metering_cfg *cfg,
	struct pl_diag *diag)
{
	struct pl_lab_metering *m;
	int r;

	if (cfg->where.colour.carrier == PL_MARK_AT_OPTION) {
		pl_diag_set(diag,
			"switches mark bits of headers, and altmark is an option: take dscp:N or ipv4-reserved");
		return -EINVAL;
	}
	r = pl_mark_where_is_written(&cfg->where, diag);
	if (r < 0)
		return r;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	m->cfg = *cfg;
	if (m->cfg.flows_max == 0)
		m->cfg.flows_max = FLOWS_MAX;
	m->sim = pl_lab_simulation_sim(s);
	r = make(m, s, t);
	if (r != 0) {
		pl_lab_metering_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void pl_lab_metering_free(struct pl_lab_metering *m)
{
	if (m == NULL)
		return;
	for (uint32_t i = 0; i < m->n_directions; i++) {
		pl_mark_meter_free(m->directions[i].meters[0]);
		pl_mark_meter_free(m->directions[i].meters[1]);
		pl_mark_correlator_free(m->directions[i].correlator);
		free(m->directions[i].records);
	}
	metering_truth_done(&m->truth);
	free(m->directions);
	free(m->node_of);
	free(m->places);
	free(m->flows);
	free(m);
}

const struct pl_lab_metering_account *pl_lab_metering_account(const struct pl_lab_metering *m)
{
	return &m->account;
}
