/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs packets through a pipeline: tables, actions, and the end of each packet. */
#include "base/hash.h"
#include "base/prefetch.h"
#include "dataplane/parse.h"
#include "dataplane/pipeline_state.h"
#include "dataplane/rewrite.h"

/* Results of an entry's actions, beside the number of the next table. */
enum {
	AT_END = PL_DP_TABLES_MAX, /* end of the stage */
	DROPPED,
	TAKEN,
};

/* ---- ends of packets ---- */

static void finish_drop(
	struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	p->account[call->stage].dropped[pkt->drop]++;
	for (size_t i = 0; i < p->n_watchers; i++)
		p->watchers[i].ext->dropped(p->watchers[i].state, pkt, call);
	if (p->own != NULL)
		pl_dp_own_dropped(p->own, pkt, call);
	if (p->ops.dropped != NULL)
		p->ops.dropped(p->ops.arg, pkt, call->stage);
	pl_dp_packet_free(pkt);
}

/* Returns the bytes behind Ethernet and its tags. */
static uint32_t network_bytes(const struct pl_dp_packet *pkt)
{
	uint32_t at = 14;

	if (pkt->headers.l3 != PL_DP_NONE)
		at = pkt->headers.l3;
	else
		while (at + 4 <= pkt->len && pl_eth_is_tag(pl_be16(pkt->data + at - 2)))
			at += 4;
	return pkt->len > at ? pkt->len - at : 0;
}

static uint8_t why_not(const struct pl_dp_pipeline *p, const struct pl_dp_packet *pkt)
{
	const struct pl_dp_gate *g;

	if (pkt->out_port == 0)
		return PL_DP_DROP_NO_ROUTE;
	if (pkt->out_port > PL_DP_PORTS_MAX)
		return PL_DP_DROP_PORT;
	g = &p->gates[pkt->out_port];
	if (!g->there || !g->up)
		return PL_DP_DROP_PORT;
	return network_bytes(pkt) > g->mtu ? PL_DP_DROP_MTU : PL_DP_GOES_ON;
}

static void send(struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	pkt->drop = why_not(p, pkt);
	if (pkt->drop != PL_DP_GOES_ON) {
		finish_drop(p, pkt, call);
		return;
	}
	p->account[call->stage].out++;
	if (p->marking != NULL && call->stage == PL_DP_EGRESS)
		pl_dp_marking_out(p->marking, pkt, call);
	p->ops.out(p->ops.arg, pkt, call->stage);
}

/* Sends a copy of the packet, which is counted as made. */
static void send_copy(struct pl_dp_pipeline *p, const struct pl_dp_packet *pkt, uint16_t port,
	const struct pl_dp_call *call)
{
	struct pl_dp_packet *copy = pl_dp_packet_clone(pkt);

	p->account[call->stage].made++;
	if (copy == NULL) {
		p->account[call->stage].dropped[PL_DP_DROP_MEMORY]++;
		return;
	}
	copy->out_port = port;
	copy->from_mac = 0; /* no ICMP error is sent for a copy */
	/* It has not left a queue, though the packet that is mirrored may have. */
	if (call->stage == PL_DP_INGRESS)
		copy->out_ns = 0;
	send(p, copy, call);
}

/* Sends the packet by every other port that is up; the last one gets the packet itself. */
static void flood(struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	uint16_t last = 0;

	for (uint16_t i = 1; i <= PL_DP_PORTS_MAX; i++) {
		if (!p->gates[i].there || !p->gates[i].up || i == pkt->in_port)
			continue;
		if (last != 0)
			send_copy(p, pkt, last, call);
		last = i;
	}
	pkt->out_port = last != 0 ? last : PL_DP_PORT_FLOOD;
	send(p, pkt, call);
}

static void mirror(struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, uint16_t port,
	const struct pl_dp_call *call)
{
	struct pl_dp_call ingress = *call;

	/* A copy made in egress has not been queued yet. */
	ingress.stage = PL_DP_INGRESS;
	if (pkt->copies == PL_DP_COPIES_MAX) {
		p->account[PL_DP_INGRESS].made++;
		p->account[PL_DP_INGRESS].dropped[PL_DP_DROP_LOOP]++;
		return;
	}
	pkt->copies++;
	send_copy(p, pkt, port, &ingress);
	pkt->copies--;
}

void pl_dp_emit(const struct pl_dp_call *call, struct pl_dp_packet *pkt, uint16_t port)
{
	struct pl_dp_pipeline *p = call->pipeline;
	struct pl_dp_call ingress = *call;

	/* The interface may have another address than when the action was made. */
	if (port <= PL_DP_PORTS_MAX && p->gates[port].there)
		pl_dp_mac_set(pkt->data + 6, p->gates[port].mac);
	(void)pl_dp_parse(pkt); /* succeeds: the packet is well-formed */
	if (p->hashes)
		pkt->flow_hash = pl_dp_flow_hash(pkt);
	pkt->in_ns = call->now_ns;
	pkt->mark = PL_DP_MARK_OWN;
	pkt->own = true;
	pkt->out_port = port <= PL_DP_PORTS_MAX ? port : 0;
	ingress.stage = PL_DP_INGRESS;
	p->account[PL_DP_INGRESS].made++;
	send(p, pkt, &ingress);
}

/* ---- actions ---- */

static uint64_t number(
	uint8_t field, uint64_t otherwise, const struct pl_dp_packet *pkt, uint64_t time_ns)
{
	uint64_t v;

	if (field == PL_DP_FIELD_MAX)
		return otherwise;
	pl_dp_field_read(pkt, (enum pl_dp_field)field, time_ns, &v);
	return v;
}

static uint32_t cell_of(
	const struct pl_dp_step *s, const struct pl_dp_packet *pkt, uint64_t time_ns)
{
	if (s->index_field == PL_DP_FIELD_MAX)
		return s->index;
	return (uint32_t)((number(s->index_field, 0, pkt, time_ns) + s->index) % s->cells->size);
}

static unsigned int drop(struct pl_dp_packet *pkt, enum pl_dp_drop why)
{
	pkt->drop = (uint8_t)why;
	return DROPPED;
}

/* Routes a packet after checking its header (RFC 1812 5.2.2, 5.3.1). Returns the next table, or
 * DROPPED. */
static unsigned int route(const struct pl_dp_pipeline *p, const struct pl_dp_step *s,
	struct pl_dp_packet *pkt, unsigned int next)
{
	if (pkt->headers.ip_version == 0)
		return drop(pkt, PL_DP_DROP_NO_ROUTE);
	if (!pl_dp_ip_checksum_right(pkt))
		return drop(pkt, PL_DP_DROP_MALFORMED);
	if (!pl_dp_ttl_take(pkt))
		return drop(pkt, PL_DP_DROP_TTL);
	pl_dp_mac_set(pkt->data, s->value[0]);
	pl_dp_mac_set(pkt->data + 6, p->gates[s->port].mac);
	pkt->out_port = s->port;
	return next;
}

static void write_register(
	const struct pl_dp_step *s, const struct pl_dp_packet *pkt, uint64_t time_ns)
{
	uint64_t *cell = &s->cells->registers[cell_of(s, pkt, time_ns)];
	const uint64_t v = number(s->value_field, s->value[0], pkt, time_ns);

	*cell = s->add ? *cell + v : v;
}

/* Writes a field; bits in s->mask keep their values. */
static void set_field(const struct pl_dp_step *s, struct pl_dp_packet *pkt, uint64_t time_ns)
{
	uint64_t value[2] = { s->value[0], s->value[1] };

	if (s->mask != 0)
		value[0] |= number(s->field, 0, pkt, time_ns) & s->mask;
	pl_dp_field_write(pkt, (enum pl_dp_field)s->field, value);
}

/* Returns 1, and stores the time, for the first packet of a period; else 0. A register with the
 * value 0 belongs to no present period. */
static uint64_t first_of(
	const struct pl_dp_step *s, const struct pl_dp_packet *pkt, uint64_t time_ns)
{
	uint64_t *cell = &s->cells->registers[cell_of(s, pkt, time_ns)];
	const uint64_t offset = s->value[0], period = s->mask;

	if (*cell >= offset && time_ns >= offset &&
		(*cell - offset) / period == (time_ns - offset) / period)
		return 0;
	*cell = time_ns;
	return 1;
}

static enum pl_dp_colour meter(
	const struct pl_dp_step *s, struct pl_dp_packet *pkt, uint64_t time_ns)
{
	enum pl_dp_colour c = pl_dp_meter_colour(
		&s->cells->meters[cell_of(s, pkt, time_ns)], &s->cells->meter, pkt->len, time_ns);

	pkt->colour = (uint8_t)c;
	return c;
}

static unsigned int run_extern(const struct pl_dp_step *s, struct pl_dp_packet *pkt,
	const struct pl_dp_call *call, unsigned int next)
{
	if (s->ext->run(s->state, pkt, call) == PL_DP_RUN_TAKEN)
		return TAKEN;
	return pkt->drop != PL_DP_GOES_ON ? DROPPED : next;
}

/* Chooses by the flow and the node: if all nodes chose by the same bits, a node would send all
 * packets from another node to a single member. */
static const struct pl_dp_actions *member_of(const struct pl_dp_pipeline *p,
	const struct pl_dp_group *group, const struct pl_dp_packet *pkt)
{
	const uint64_t hash = pl_hash_mix(pkt->flow_hash, p->node_key) >> 32;

	return group->members[hash * group->n >> 32];
}

static unsigned int run(struct pl_dp_pipeline *p, const struct pl_dp_actions *a,
	struct pl_dp_packet *pkt, const struct pl_dp_call *call, unsigned int next)
{
	for (unsigned int i = 0; i < a->n && next <= AT_END; i++) {
		const struct pl_dp_step *s = &a->steps[i];

		switch ((enum pl_dp_action)s->action) {
		case PL_DP_ACTION_FORWARD:
			pkt->out_port = s->port;
			break;
		case PL_DP_ACTION_ROUTE:
			next = route(p, s, pkt, next);
			break;
		case PL_DP_ACTION_FLOOD:
			pkt->out_port = PL_DP_PORT_FLOOD;
			break;
		case PL_DP_ACTION_DROP:
			return drop(pkt, PL_DP_DROP_TABLE);
		case PL_DP_ACTION_SET:
			set_field(s, pkt, call->now_ns);
			break;
		case PL_DP_ACTION_TTL:
			if (!pl_dp_ttl_take(pkt))
				return drop(pkt, PL_DP_DROP_TTL);
			break;
		case PL_DP_ACTION_PUSH_VLAN:
			if (pl_dp_vlan_push(pkt, PL_ETH_VLAN, (uint16_t)s->value[0]) < 0)
				return drop(pkt, PL_DP_DROP_MEMORY);
			break;
		case PL_DP_ACTION_PUSH_SVLAN:
			if (pl_dp_vlan_push(pkt, PL_ETH_QINQ, (uint16_t)s->value[0]) < 0)
				return drop(pkt, PL_DP_DROP_MEMORY);
			break;
		case PL_DP_ACTION_POP_VLAN:
			pl_dp_vlan_pop(pkt);
			break;
		case PL_DP_ACTION_QUEUE:
			pkt->queue = (uint8_t)s->value[0];
			break;
		case PL_DP_ACTION_MARK:
			pkt->mark = (uint8_t)s->value[0];
			break;
		case PL_DP_ACTION_COUNT: {
			uint64_t *cell = s->cells->counters[cell_of(s, pkt, call->now_ns)];

			cell[0]++;
			cell[1] += pkt->len;
			break;
		}
		case PL_DP_ACTION_METER:
			(void)meter(s, pkt, call->now_ns);
			break;
		case PL_DP_ACTION_POLICE:
			if (meter(s, pkt, call->now_ns) == PL_DP_RED)
				return drop(pkt, PL_DP_DROP_METER);
			break;
		case PL_DP_ACTION_READ:
			pkt->value = s->cells->registers[cell_of(s, pkt, call->now_ns)];
			break;
		case PL_DP_ACTION_WRITE:
			write_register(s, pkt, call->now_ns);
			break;
		case PL_DP_ACTION_FIRST:
			pkt->value = first_of(s, pkt, call->now_ns);
			break;
		case PL_DP_ACTION_MIRROR:
			mirror(p, pkt, s->port, call);
			break;
		case PL_DP_ACTION_SELECT:
			if (s->group->n > 0)
				next = run(p, member_of(p, s->group, pkt), pkt, call, next);
			break;
		case PL_DP_ACTION_GOTO:
			next = s->index;
			break;
		case PL_DP_ACTION_STOP:
			next = AT_END;
			break;
		case PL_DP_ACTION_EXTERN:
			next = run_extern(s, pkt, call, next);
			break;
		}
	}
	return next;
}

/* ---- tables ---- */

static unsigned int pass(struct pl_dp_pipeline *p, unsigned int i, struct pl_dp_packet *pkt,
	const struct pl_dp_call *call)
{
	struct pl_dp_table *t = p->tables[i];
	uint64_t words[PL_DP_KEY_WORDS_MAX];
	struct pl_dp_entry *e;

	pl_dp_key_read(&t->key, pkt, call->now_ns, words);
	e = pl_dp_lookup_find(t->lookup, words);
	if (e != NULL) {
		t->hits++;
		e->packets++;
		e->bytes += pkt->len;
		return run(p, e->actions, pkt, call, i + 1);
	}
	t->misses++;
	return t->miss != NULL ? run(p, t->miss, pkt, call, i + 1) : i + 1;
}

static void pass_all(
	struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	unsigned int next = 0;

	while (next < p->n_tables) {
		if (p->tables[next]->stage == call->stage)
			next = pass(p, next, pkt, call);
		else
			next++;
	}
	if (next == DROPPED)
		finish_drop(p, pkt, call);
	else if (next == TAKEN)
		p->account[call->stage].consumed++;
	else if (pkt->out_port == PL_DP_PORT_FLOOD)
		flood(p, pkt, call);
	else
		send(p, pkt, call);
}

/* Handles packets for the node itself, which pass no table. Returns true when the packet was
 * one. */
static bool taken(struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	const enum pl_dp_own_end end = pl_dp_own_take(p->own, pkt, call);

	if (end == PL_DP_OWN_DROPPED) {
		finish_drop(p, pkt, call);
	} else if (end == PL_DP_OWN_ANSWERED) {
		p->account[PL_DP_INGRESS].consumed++;
		if (p->ops.answered != NULL)
			p->ops.answered(p->ops.arg, pkt);
		pl_dp_packet_free(pkt);
	}
	return end != PL_DP_OWN_NOT;
}

void pl_dp_pipeline_ingress(struct pl_dp_pipeline *p, struct pl_dp_packet *const *pkts, size_t n)
{
	struct pl_dp_call call = { .pipeline = p, .stage = PL_DP_INGRESS };

	for (size_t i = 0; i < n; i++) {
		struct pl_dp_packet *pkt = pkts[i];

		if (i + 4 < n)
			pl_prefetch(pkts[i + 4]);
		if (i + 2 < n)
			pl_prefetch(pkts[i + 2]->data);
		p->account[PL_DP_INGRESS].in++;
		call.now_ns = pkt->in_ns;
		pkt->out_port = 0;
		pkt->copies = 0;
		if (!pl_dp_parse(pkt)) {
			finish_drop(p, pkt, &call);
			continue;
		}
		if (p->marking != NULL)
			pl_dp_marking_in(p->marking, pkt, &call);
		if (p->own != NULL && taken(p, pkt, &call))
			continue;
		if (p->hashes)
			pkt->flow_hash = pl_dp_flow_hash(pkt);
		pass_all(p, pkt, &call);
	}
}

void pl_dp_pipeline_egress(struct pl_dp_pipeline *p, struct pl_dp_packet *const *pkts, size_t n)
{
	struct pl_dp_call call = { .pipeline = p, .stage = PL_DP_EGRESS };

	for (size_t i = 0; i < n; i++) {
		p->account[PL_DP_EGRESS].in++;
		call.now_ns = pkts[i]->out_ns;
		if (p->marking != NULL)
			pl_dp_marking_turn(p->marking, &call);
		pass_all(p, pkts[i], &call);
	}
}

void pl_dp_pipeline_dropped(struct pl_dp_pipeline *p, struct pl_dp_packet *pkt, uint64_t now_ns)
{
	const struct pl_dp_call call = { .pipeline = p, .stage = PL_DP_EGRESS, .now_ns = now_ns };

	p->account[PL_DP_EGRESS].in++;
	finish_drop(p, pkt, &call);
}
