/* SPDX-License-Identifier: BSD-2-Clause */
/* Measurement points of a switch: counts and marks packets, and sends block records. */
#include "dataplane/marking/marking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/marking/cells.h"
#include "dataplane/pipeline_state.h"
#include "dataplane/rewrite.h"
#include "dataplane/telemetry/act.h"
#include "mark/guard.h"
#include "tap/sender.h"
#include "wire/cursor.h"

#define POINTS_MAX  512
#define FLOWS_MAX   1024
/* Most blocks of cells that are read one by one after the clock jumped ahead. */
#define JUMP_BLOCKS 64

struct point {
	struct pl_dp_point_cfg cfg;
	struct pl_dp_marking *m;
	struct pl_mark_point as; /* the point as in records */
	struct pl_mark_meter *meter;
	struct pl_dp_block_cells *cells; /* in place of a meter */
	uint64_t next;                   /* next block to read from the cells */
	uint64_t stray;                  /* packets of the cells that came too late */
	uint64_t in_use; /* last block with packets that came marked to a marker; 0: none */
};

struct pl_dp_marking {
	struct pl_dp_pipeline *p;
	struct pl_dp_marking_cfg cfg;
	uint64_t guard_ns;
	uint64_t begun_ns; /* begin of counting by the node's clock; 0: not yet */
	uint64_t due_ns;   /* time of the next reading */
	bool synced;
	uint64_t error_ns;
	struct point *points[POINTS_MAX];
	unsigned int n;
	struct point *in[PL_DP_PORTS_MAX + 1], *out[PL_DP_PORTS_MAX + 1];
	/* Sending records as datagrams of the switch; NULL: not sent. */
	struct pl_tmpkt_sender *sender;
	struct pl_dp_datagram to;
	uint16_t out_port;
	const struct pl_dp_call *call; /* set during pl_dp_marking_turn */
	bool sending;
	uint64_t (*records)[2], (*unsent)[2], (*datagrams)[2], (*without_room)[2], (*too_late)[2];
};

/* ---- records ---- */

static void take_datagram(
	void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records)
{
	struct pl_dp_marking *m = arg;
	struct pl_dp_packet *pkt = pl_dp_datagram_make(&m->to, m->p->pool, datagram, len);

	(void)lane; /* there is one */
	if (pkt == NULL || m->call == NULL) {
		pl_dp_packet_free(pkt);
		(*m->unsent)[0] += records;
		return;
	}
	pl_dp_act_count(m->datagrams, pkt);
	pl_dp_emit(m->call, pkt, m->out_port);
}

/* Returns the first block that began, with its early packets, after the points. */
static uint64_t first_whole(const struct pl_dp_marking *m)
{
	return (m->begun_ns + m->guard_ns + m->cfg.period_ns - 1) / m->cfg.period_ns;
}

static void take_record(void *arg, const struct pl_mark128 *record)
{
	const struct point *point = arg;
	struct pl_dp_marking *m = point->m;
	struct pl_mark128 r = *record;

	if (r.block < first_whole(m))
		r.mark_flags |= PL_MARK_IS_PARTIAL;
	if (point->in_use != 0 && point->in_use >= r.block)
		r.mark_flags |= PL_MARK_IN_USE;
	r.mark_flags &= (uint16_t)~PL_MARK_IS_SYNCED;
	r.mark_flags |= m->synced ? PL_MARK_IS_SYNCED : 0;
	r.clock_error_ns = m->error_ns < UINT32_MAX ? (uint32_t)m->error_ns : UINT32_MAX;
	(*m->records)[0]++;
	if (m->p->ops.block != NULL)
		m->p->ops.block(m->p->ops.arg, &r);
	if (m->sender != NULL)
		pl_tmpkt_sender_put(m->sender, &r, 1);
}

/* Copies the numbers of packets that meters did not count into counters of the switch. */
static void read_stats(struct pl_dp_marking *m)
{
	uint64_t without_room = 0, too_late = 0;

	for (unsigned int i = 0; i < m->n; i++) {
		const struct pl_mark_meter_stats *s;

		too_late += m->points[i]->stray;
		if (m->points[i]->meter == NULL)
			continue;
		s = pl_mark_meter_stats(m->points[i]->meter);
		without_room += s->without_room;
		too_late += s->too_late + s->bad_time;
	}
	(*m->without_room)[0] = without_room;
	(*m->too_late)[0] = too_late;
}

static void begin(struct pl_dp_marking *m, uint64_t now_ns)
{
	static const struct pl_mark_flow all;

	m->begun_ns = now_ns;
	for (unsigned int i = 0; i < m->n; i++) {
		struct point *point = m->points[i];

		if (point->cells != NULL) {
			pl_dp_block_cells_begin(point->cells);
			point->next = now_ns / m->cfg.period_ns;
		} else if (point->cfg.by == PL_DP_BY_NONE) {
			(void)pl_mark_meter_follow(point->meter, &all, now_ns);
		}
	}
}

/* Reads the cells of due blocks; after a jump of the clock it skips most empty ones. */
static void read_cells(struct point *point, uint64_t now_ns)
{
	const uint64_t period = point->as.period_ns, now = now_ns / period;

	for (unsigned int i = 1; pl_mark_read_at(point->as.method, point->next, period) <= now_ns;
		i++) {
		point->stray += pl_dp_block_cells_read(
			point->cells, &point->as, point->next, take_record, point);
		point->next++;
		if (i == PL_MARK_CELLS && now > point->next + JUMP_BLOCKS)
			point->next = now - JUMP_BLOCKS;
	}
}

/* Returns the next reading time, in the middle of a block, for the one before. */
static uint64_t next_reading(const struct pl_dp_marking *m, uint64_t now_ns)
{
	const uint64_t half = m->cfg.period_ns / 2;

	return (now_ns + m->cfg.period_ns - half) / m->cfg.period_ns * m->cfg.period_ns + half;
}

void pl_dp_marking_turn(struct pl_dp_marking *m, const struct pl_dp_call *call)
{
	/* Behind a queue the time is that of the packet's last bit, on a slow port far ahead:
	 * other ports' meters still count blocks that are at rest then. */
	const bool ahead = call->stage == PL_DP_EGRESS;

	/* Called again for a datagram of records, a packet too. */
	if (m->sending)
		return;
	if (m->begun_ns == 0 && ahead)
		return;
	if (m->begun_ns == 0)
		begin(m, call->now_ns);
	if (m->due_ns > call->now_ns)
		return;
	if (!ahead)
		m->due_ns = next_reading(m, call->now_ns);
	if (!ahead && m->p->ops.clock != NULL)
		m->p->ops.clock(m->p->ops.arg, &m->synced, &m->error_ns);
	m->sending = true;
	m->call = call;
	for (unsigned int i = 0; i < m->n; i++) {
		if (ahead && (m->points[i]->cells == NULL ||
				     !pl_dp_block_cells_leave(m->points[i]->cells)))
			continue;
		if (m->points[i]->cells != NULL)
			read_cells(m->points[i], call->now_ns);
		else
			pl_mark_meter_until(m->points[i]->meter, call->now_ns);
	}
	if (m->sender != NULL)
		pl_tmpkt_sender_flush(m->sender);
	read_stats(m);
	m->call = NULL;
	m->sending = false;
}

uint64_t pl_dp_marking_due(const struct pl_dp_marking *m)
{
	return m->due_ns;
}

/* ---- bits ---- */

static bool has_bit(const struct pl_mark_bit *bit, const struct pl_dp_packet *pkt)
{
	return pkt->headers.ip_version == 4 ? bit->ipv4 : pkt->headers.ip_version == 6 && bit->ipv6;
}

/* Returns true when the packet's IP version has the bits for the marks. */
static bool is_markable(const struct pl_dp_marking *m, const struct pl_dp_packet *pkt)
{
	return has_bit(&m->cfg.where.colour, pkt) &&
	       (m->cfg.where.second.carrier == 0 || has_bit(&m->cfg.where.second, pkt));
}

static enum pl_dp_field field_of(const struct pl_mark_bit *bit, uint64_t *ret_mask)
{
	*ret_mask = 1;
	if (bit->carrier == PL_MARK_AT_RESERVED)
		return PL_DP_FIELD_IP_RESERVED;
	*ret_mask = (bit->mask & 3) != 0 ? bit->mask : bit->mask >> 2;
	return (bit->mask & 3) != 0 ? PL_DP_FIELD_IP_ECN : PL_DP_FIELD_IP_DSCP;
}

static unsigned int read_bit(const struct pl_mark_bit *bit, const struct pl_dp_packet *pkt)
{
	uint64_t mask, value;
	const enum pl_dp_field field = field_of(bit, &mask);

	pl_dp_field_read(pkt, field, 0, &value);
	return (value & mask) != 0;
}

static unsigned int read_bits(const struct pl_dp_marking *m, const struct pl_dp_packet *pkt)
{
	unsigned int bits = read_bit(&m->cfg.where.colour, pkt);

	if (m->cfg.where.second.carrier != 0)
		bits |= read_bit(&m->cfg.where.second, pkt) << 1;
	return bits;
}

static void write_bits(const struct pl_dp_marking *m, struct pl_dp_packet *pkt, unsigned int bits)
{
	(void)pl_mark_write(&m->cfg.where, pkt->data + pkt->headers.l3, bits);
}

/* ---- packets ---- */

static void addr_of(const struct pl_dp_packet *pkt, enum pl_dp_field field, struct pl_addr *ret)
{
	uint64_t words[2];

	pl_dp_field_read(pkt, field, 0, words);
	*ret = pl_dp_addr_of(words);
}

static void flow_of(struct pl_mark_flow *ret, const struct pl_dp_packet *pkt, uint8_t by)
{
	uint64_t port = 0;

	*ret = (struct pl_mark_flow){ .proto = 0 };
	if (by == PL_DP_BY_NONE)
		return;
	addr_of(pkt, PL_DP_FIELD_IP_SRC, &ret->src);
	addr_of(pkt, PL_DP_FIELD_IP_DST, &ret->dst);
	if (by == PL_DP_BY_HOSTS)
		return;
	ret->proto = pkt->headers.proto;
	pl_dp_field_read(pkt, PL_DP_FIELD_L4_SRC, 0, &port);
	ret->sport = (uint16_t)port;
	pl_dp_field_read(pkt, PL_DP_FIELD_L4_DST, 0, &port);
	ret->dport = (uint16_t)port;
}

static uint64_t ip_bytes(const struct pl_dp_packet *pkt)
{
	uint64_t bytes;

	pl_dp_field_read(pkt, PL_DP_FIELD_IP_LENGTH, 0, &bytes);
	return bytes;
}

/* Returns true for a later fragment, which gets the mark of its packet and is not counted. */
static bool is_later_fragment(const struct pl_dp_packet *pkt)
{
	return pkt->headers.fragment && pkt->headers.l4 == PL_DP_NONE;
}

static void pass(struct point *point, struct pl_dp_packet *pkt, uint64_t now_ns)
{
	struct pl_dp_marking *m = point->m;
	const uint64_t block = now_ns / m->cfg.period_ns;
	struct pl_mark_flow flow;
	unsigned int bits;

	if (!is_markable(m, pkt))
		return;
	bits = read_bits(m, pkt);
	/* The switch's own packets have got the colour already (pl_dp_marking_out). */
	if (point->cfg.role == PL_DP_MARKER && bits != 0 && !pkt->own)
		point->in_use = block;
	if (is_later_fragment(pkt)) {
		if (point->cfg.role != PL_DP_METER)
			write_bits(m, pkt,
				point->cfg.role == PL_DP_MARKER
					? pl_mark_bits(m->cfg.method, block, 0)
					: 0);
		return;
	}
	flow_of(&flow, pkt, point->cfg.by);
	if (point->cfg.role == PL_DP_MARKER) {
		bits = pl_mark_meter_send(point->meter, &flow, now_ns, 1, ip_bytes(pkt));
		write_bits(m, pkt, bits);
		return;
	}
	pl_mark_meter_count(point->meter, &flow, now_ns, bits, 1, ip_bytes(pkt));
	if (point->cfg.role == PL_DP_UNMARKER)
		write_bits(m, pkt, 0);
}

void pl_dp_marking_in(
	struct pl_dp_marking *m, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	pl_dp_marking_turn(m, call);
	if (m->in[pkt->in_port] != NULL)
		pass(m->in[pkt->in_port], pkt, call->now_ns);
}

void pl_dp_marking_out(
	struct pl_dp_marking *m, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	if (pkt->own && is_markable(m, pkt))
		write_bits(m, pkt, pl_mark_bits(m->cfg.method, call->now_ns / m->cfg.period_ns, 0));
	if (m->out[pkt->out_port] == NULL)
		return;
	/* The meter may read blocks first, whose records may fill a datagram. */
	m->call = m->sending ? m->call : call;
	pass(m->out[pkt->out_port], pkt, call->now_ns);
	m->call = m->sending ? m->call : NULL;
}

/* ---- making ---- */

static int make_sender(struct pl_dp_marking *m, const char *text, struct pl_diag *diag)
{
	struct pl_dp_to_args to;
	struct pl_dp_arg rows[PL_DP_TO_ARGS];
	const size_t n = pl_dp_to_args(&to, rows);
	const struct pl_tmpkt_sender_config sender = {
		.kind = PL_FLAT_MARK128,
		/* fits a frame of 1500 bytes */
		.records = pl_tmpkt_fits(PL_FLAT_MARK128, 1400),
		.lanes = 1,
		.exporter = m->p->node_id,
		.first = pl_dp_first_number(m->p),
		.send = take_datagram,
		.arg = m,
	};
	int r = pl_dp_args_read("marking.send", text, rows, n, diag);

	if (r == 0)
		r = pl_dp_to_of("marking.send", &to, m->p, &m->to, diag);
	if (r < 0)
		return r;
	m->out_port = to.out;
	if (m->to.dport == 0)
		m->to.dport = PL_TMPKT_PORT;
	if (m->to.sport == 0)
		m->to.sport = PL_TMPKT_PORT;
	return pl_tmpkt_sender_new(&m->sender, &sender);
}

static int make_counters(struct pl_dp_marking *m, struct pl_diag *diag)
{
	struct {
		const char *name;
		uint64_t (**cells)[2];
	} counters[] = {
		{ "records", &m->records },
		{ "unsent", &m->unsent },
		{ "datagrams", &m->datagrams },
		{ "without_room", &m->without_room },
		{ "too_late", &m->too_late },
	};

	for (unsigned int i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		*counters[i].cells = pl_dp_act_counter(m->p, "marking", counters[i].name, diag);
		if (*counters[i].cells == NULL)
			return -EINVAL;
	}
	return 0;
}

int pl_dp_marking_new(struct pl_dp_marking **ret, struct pl_dp_pipeline *p,
	const struct pl_dp_marking_cfg *cfg, struct pl_diag *diag)
{
	struct pl_dp_marking *m;
	uint64_t guard;
	int r = pl_mark_guard_check(&guard, cfg->method, cfg->period_ns, &cfg->spread, diag);

	if (r < 0)
		return r;
	if (cfg->where.colour.carrier == PL_MARK_AT_OPTION) {
		pl_diag_set(diag,
			"a switch marks bits of the IP header: dscp, tos, tclass, ecn or ipv4-reserved");
		return -EINVAL;
	}
	r = pl_mark_where_is_written(&cfg->where, diag);
	if (r < 0)
		return r;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	m->p = p;
	m->cfg = *cfg;
	m->guard_ns = guard;
	m->synced = true;
	m->error_ns = cfg->spread.clock_ns;
	r = make_counters(m, diag);
	if (r == 0 && cfg->send != NULL)
		r = make_sender(m, cfg->send, diag);
	m->cfg.send = NULL; /* owned by the caller */
	if (r < 0) {
		pl_dp_marking_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void pl_dp_marking_free(struct pl_dp_marking *m)
{
	if (m == NULL)
		return;
	for (unsigned int i = 0; i < m->n; i++) {
		pl_mark_meter_free(m->points[i]->meter);
		pl_dp_block_cells_free(m->points[i]->cells);
		free(m->points[i]);
	}
	pl_tmpkt_sender_free(m->sender);
	free(m);
}

static int refuse(const struct pl_dp_marking *m, const struct pl_dp_point_cfg *cfg,
	struct point *const *place, struct pl_diag *diag)
{
	if (cfg->cells == NULL &&
		(cfg->port == 0 || cfg->port > PL_DP_PORTS_MAX || !m->p->gates[cfg->port].there)) {
		pl_diag_set(diag, "there is no port %u", cfg->port);
		return -EINVAL;
	}
	if (cfg->cells != NULL && m->cfg.method == PL_MARK_CYCLIC) {
		pl_diag_set(diag,
			"cells of tables are of methods whose packets are a block away at most: give the point a port for the method cyclic");
		return -EINVAL;
	}
	if (cfg->cells == NULL && *place != NULL) {
		pl_diag_set(diag, "port %u has a point in this direction already: number %u",
			cfg->port, (*place)->cfg.number);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < m->n; i++) {
		if (m->points[i]->cfg.number == cfg->number) {
			pl_diag_set(diag, "there is a point %u already", cfg->number);
			return -EINVAL;
		}
	}
	if (m->n == POINTS_MAX) {
		pl_diag_set(diag, "a switch has %d points at most", POINTS_MAX);
		return -EINVAL;
	}
	return 0;
}

static int make_meter(struct point *point, struct pl_diag *diag)
{
	const struct pl_dp_point_cfg *cfg = &point->cfg;
	const struct pl_mark_meter_config meter = {
		.point = point->as,
		.guard_ns = point->m->guard_ns,
		.flows_max = cfg->by == PL_DP_BY_NONE ? 1
			     : cfg->flows_max != 0    ? cfg->flows_max
						      : FLOWS_MAX,
		.record = take_record,
		.arg = point,
	};

	return pl_mark_meter_new(&point->meter, &meter, diag);
}

int pl_dp_marking_point(
	struct pl_dp_marking *m, const struct pl_dp_point_cfg *cfg, struct pl_diag *diag)
{
	const bool port = cfg->cells == NULL && cfg->port <= PL_DP_PORTS_MAX;
	struct point **place = &(cfg->out ? m->out : m->in)[port ? cfg->port : 0], *point;
	int r = refuse(m, cfg, place, diag);

	if (r < 0)
		return r;
	point = calloc(1, sizeof(*point));
	if (point == NULL)
		return -ENOMEM;
	point->cfg = *cfg;
	point->m = m;
	point->as = (struct pl_mark_point){ .point = cfg->number,
		.method = m->cfg.method,
		.period_ns = m->cfg.period_ns,
		.flags = cfg->role == PL_DP_MARKER ? PL_MARK_IS_MARKER : 0 };
	r = cfg->cells == NULL ? make_meter(point, diag)
			       : pl_dp_block_cells_new(&point->cells, m->p, cfg->cells, cfg->table,
					 m->cfg.method, diag);
	point->cfg.cells = point->cfg.table = NULL; /* owned by the caller */
	if (r < 0) {
		free(point);
		return r;
	}
	m->points[m->n++] = point;
	if (port)
		*place = point;
	return 0;
}

/* ---- a new pipeline ---- */

static bool is_same_point(const struct pl_dp_point_cfg *a, const struct pl_dp_point_cfg *b)
{
	return a->number == b->number && a->port == b->port && a->out == b->out &&
	       a->role == b->role && a->by == b->by && a->flows_max == b->flows_max;
}

static bool is_same_bit(const struct pl_mark_bit *a, const struct pl_mark_bit *b)
{
	return a->carrier == b->carrier && a->mask == b->mask && a->ipv4 == b->ipv4 &&
	       a->ipv6 == b->ipv6 && a->dst == b->dst && a->n_labels == b->n_labels &&
	       memcmp(a->labels, b->labels, sizeof(a->labels)) == 0;
}

static bool is_same(const struct pl_dp_marking *a, const struct pl_dp_marking *b)
{
	bool same = a->n == b->n && a->cfg.method == b->cfg.method &&
		    a->cfg.period_ns == b->cfg.period_ns && a->guard_ns == b->guard_ns &&
		    is_same_bit(&a->cfg.where.colour, &b->cfg.where.colour) &&
		    is_same_bit(&a->cfg.where.second, &b->cfg.where.second);

	for (unsigned int i = 0; same && i < a->n; i++) {
		const struct point *x = a->points[i], *y = b->points[i];

		same = is_same_point(&x->cfg, &y->cfg) &&
		       (x->cells == NULL || y->cells == NULL
				       ? x->cells == y->cells
				       : pl_dp_block_cells_same(x->cells, y->cells));
	}
	return same;
}

void pl_dp_marking_inherit(struct pl_dp_marking *m, struct pl_dp_marking *old)
{
	if (!is_same(m, old))
		return;
	m->begun_ns = old->begun_ns;
	m->due_ns = old->due_ns;
	for (unsigned int i = 0; i < m->n; i++) {
		struct point *mine = m->points[i], *theirs = old->points[i];
		struct point **place = &(theirs->cfg.out ? m->out : m->in)[theirs->cfg.port];

		mine->next = theirs->next;
		mine->stray = theirs->stray;
		if (mine->cells != NULL) {
			pl_dp_block_cells_inherit(mine->cells, theirs->cells);
			continue;
		}
		/* A meter points to its point, so both structures swap points with their meters. */
		m->points[i] = *place = theirs;
		old->points[i] = mine;
		theirs->m = m;
		mine->m = old;
	}
}
