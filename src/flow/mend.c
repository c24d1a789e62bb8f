/* SPDX-License-Identifier: BSD-2-Clause */
/* Repairs the memory of a flow cache whose process ended, at whatever point (kept.h). */
#include <string.h>

#include "flow/cache_state.h"

static uint32_t *tag_of(struct pl_flow_cache *c, uint32_t slot)
{
	return &c->buckets[slot / PL_FLOW_WAYS].tag[slot % PL_FLOW_WAYS];
}

/* ---- the step that was under way ---- */

static void put_back(struct pl_flow_entry *f, const struct pl_flow_journal *j)
{
	memcpy(f->packets, j->packets, sizeof(f->packets));
	memcpy(f->bytes, j->bytes, sizeof(f->bytes));
	f->records = j->records;
	f->last_ts = j->last_ts;
	f->state = j->state;
	f->places = j->places;
	memcpy(f->flags, j->flags, sizeof(f->flags));
}

static void put_other_back(
	struct pl_flow_cache *c, struct pl_flow_entry *f, const struct pl_flow_journal *j)
{
	f->state = j->state;
	f->places = j->places;
	if ((j->state & PL_FLOW_ELSEWHERE) != 0)
		*pl_flow_other_of(c, f) = j->other;
}

/* The record was made: its role is the flow's, and the next one begins. */
static void begin_next(
	struct pl_flow_cache *c, struct pl_flow_entry *f, const struct pl_flow_journal *j)
{
	const struct pl_flow288 *r = &c->kept->records[c->kept->n_records - 1];

	f->role = r->role;
	f->role_by = r->role_by;
	f->state |= PL_FLOW_GIVEN;
	pl_flow_record_restart(f, pl_flow_other_of(c, f), j->ts, NULL);
}

static bool is_step(const struct pl_flow_cache *c, const struct pl_flow_journal *j)
{
	return j->kind != PL_FLOW_STEP_NONE && j->kind < PL_FLOW_STEPS &&
	       j->slot < c->n_buckets * PL_FLOW_WAYS && c->kept->n_records - j->n_records <= 1;
}

static void mend_step(struct pl_flow_cache *c)
{
	const struct pl_flow_journal *j = &c->kept->journal;
	struct pl_flow_entry *f = &c->flows[j->slot];
	const bool made = c->kept->n_records != j->n_records;

	switch ((enum pl_flow_step)j->kind) {
	case PL_FLOW_STEP_COUNT:
		put_back(f, j);
		c->state_counters.torn++;
		break;
	case PL_FLOW_STEP_ELSEWHERE:
		put_other_back(c, f, j);
		c->state_counters.torn++;
		break;
	case PL_FLOW_STEP_NEW:
		*tag_of(c, j->slot) = 0;
		c->state_counters.torn++;
		break;
	case PL_FLOW_STEP_TAKE:
		*f = j->entry;
		put_other_back(c, f, j);
		break;
	case PL_FLOW_STEP_GIVE:
		if (made)
			begin_next(c, f, j);
		break;
	case PL_FLOW_STEP_END:
		if (made)
			*tag_of(c, j->slot) = 0;
		else
			put_other_back(c, f, j);
		break;
	case PL_FLOW_STEP_NONE:
	case PL_FLOW_STEPS:
		break;
	}
}

/* ---- impossible values ---- */

static bool is_role(uint8_t role, uint8_t by)
{
	return role <= PL_FLOW_ROLE_SERVER && by <= PL_FLOW_ROLE_BY_PORTS &&
	       (role == PL_FLOW_ROLE_UNKNOWN) == (by == PL_FLOW_ROLE_BY_NOTHING);
}

/* True when the flow is in a place that its key allows. */
static bool is_in_place(const struct pl_flow_cache *c, uint32_t slot)
{
	const struct pl_flow_entry *f = &c->flows[slot];
	const struct pl_pkt96 key = { .src = f->src,
		.dst = f->dst,
		.sport = f->sport,
		.dport = f->dport,
		.vlan = f->vlan,
		.proto = f->proto };
	const struct pl_flow_place at =
		pl_flow_place_of(pl_flow_key_hash(&key, c->seed), c->n_buckets);
	const uint32_t bucket = slot / PL_FLOW_WAYS;

	return c->buckets[bucket].tag[slot % PL_FLOW_WAYS] == at.tag &&
	       (bucket == at.bucket[0] || bucket == at.bucket[1]);
}

static bool is_other(const struct pl_flow_entry *f, const struct pl_flow_other *o)
{
	bool good = (f->state & PL_FLOW_ELSEWHERE) == 0 || o->n_also <= PL_FLOW_ALSO;

	for (unsigned int d = 0; d < 2 && good; d++) {
		if ((f->places & PL_FLOW_WAITS << d) != 0)
			good = (f->state & PL_FLOW_ELSEWHERE) != 0 && o->packets[d] > 0;
		if ((f->state & PL_FLOW_ELSEWHERE) != 0 && o->packets[d] > 0)
			good = good && o->records[d] > 0 && o->first_ts[d] <= o->last_ts[d];
	}
	return good;
}

static bool is_right(const struct pl_flow_cache *c, uint32_t slot)
{
	const struct pl_flow_entry *f = &c->flows[slot];
	const uint64_t packets = (uint64_t)f->packets[0] + f->packets[1];

	if (!is_in_place(c, slot) || f->first_ts > f->last_ts || f->continued > 1)
		return false;
	if (packets < f->records || (packets == 0) != (f->records == 0) ||
		(packets == 0 && (f->state & PL_FLOW_GIVEN) == 0))
		return false;
	if (f->proto == PL_PROTO_TCP && (f->way[0].tsvals > 2 || f->way[1].tsvals > 2))
		return false;
	return f->handshake <= PL_HANDSHAKE_SEEN && f->opener <= 1 && f->places <= 15 &&
	       is_role(f->role, f->role_by) && is_other(f, &c->others[slot]);
}

static bool is_record(const struct pl_flow_kept *k, const struct pl_flow288 *r, uint32_t at)
{
	return r->flow_seq == (uint32_t)(k->given.records + at) && r->end_reason > 0 &&
	       r->end_reason <= PL_FLOW_END_SHUTDOWN && is_role(r->role, r->role_by) &&
	       (uint64_t)r->pkts_fwd + r->pkts_rev >= r->records && r->records > 0 &&
	       r->first_ts <= r->last_ts;
}

/* Counts packets in waiting records. An impossible record is left out, together with all records
 * behind it. */
static uint64_t check_records(struct pl_flow_cache *c)
{
	struct pl_flow_kept *k = c->kept;
	uint64_t packets = 0;
	uint32_t i = 0;

	while (i < k->n_records && is_record(k, &k->records[i], i)) {
		packets += (uint64_t)k->records[i].pkts_fwd + k->records[i].pkts_rev;
		i++;
	}
	c->state_counters.damaged += k->n_records - i;
	k->n_records = i;
	return packets;
}

/* Counts packets in flows. Timeouts may differ from those of the last process. */
static uint64_t check_flows(struct pl_flow_cache *c)
{
	uint64_t packets = 0;

	c->counters.live = 0;
	for (uint32_t slot = 0; slot < c->n_buckets * PL_FLOW_WAYS; slot++) {
		const struct pl_flow_entry *f = &c->flows[slot];
		struct pl_flow_bucket *b = &c->buckets[slot / PL_FLOW_WAYS];

		if (b->tag[slot % PL_FLOW_WAYS] == 0)
			continue;
		if (!is_right(c, slot)) {
			b->tag[slot % PL_FLOW_WAYS] = 0;
			c->state_counters.damaged++;
			continue;
		}
		b->due[slot % PL_FLOW_WAYS] = pl_flow_tick(pl_flow_due_ns(c, f));
		packets += (uint64_t)f->packets[0] + f->packets[1];
		c->counters.live++;
	}
	return packets;
}

void pl_flow_mend(struct pl_flow_cache *c)
{
	struct pl_flow_kept *k = c->kept;

	if (k->n_records > PL_FLOW_RECORDS || k->n_outages > PL_FLOW_OUTAGES ||
		k->n_points > PL_FLOW_POINTS) {
		c->state_counters.damaged++;
		k->n_records = k->n_outages = k->n_points = 0;
		k->journal.kind = PL_FLOW_STEP_NONE;
	}
	if (k->n_records == 0)
		k->given = k->next;
	if (is_step(c, &k->journal))
		mend_step(c);
	else if (k->journal.kind != PL_FLOW_STEP_NONE)
		c->state_counters.damaged++;
	PL_FLOW_FENCE();
	k->journal.kind = PL_FLOW_STEP_NONE;
	k->held = check_records(c);
	k->held += check_flows(c);
	k->live = (uint32_t)c->counters.live;
}
