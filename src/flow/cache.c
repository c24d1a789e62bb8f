/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets go through in chunks and three passes, so that the lines of many are fetched at once:
 * hash and buckets; the flows in the buckets; the work itself. A pass may be outdated by the next,
 * when a packet of the same chunk changed the table, so the last pass searches again, in lines that
 * are in the cache by then. */
#include "flow/cache.h"

#include <stddef.h>
#include <string.h>

#include "base/prefetch.h"
#include "flow/cache_state.h"
#include "flow/elsewhere.h"
#include "flow/role.h"
#include "flow/step.h"
#include "flow/tcp.h"

#define AHEAD 8u

/* The records are the sink's before it sees them: kept.h. */
void pl_flow_flush(struct pl_flow_cache *c)
{
	struct pl_flow_kept *k = c->kept;
	const uint32_t n = k->n_records;
	uint64_t packets = 0;

	if (n == 0)
		return;
	for (uint32_t i = 0; i < n && c->keeps; i++)
		packets += (uint64_t)k->records[i].pkts_fwd + k->records[i].pkts_rev;
	k->next = (struct pl_flow_given){ k->given.records + n, k->given.packets + packets };
	PL_FLOW_FENCE();
	k->n_records = 0;
	PL_FLOW_FENCE();
	k->given = k->next;
	k->held -= packets;
	c->sink(c->arg, k->records, n);
}

static uint32_t slot_of(const struct pl_flow_cache *c, const struct pl_flow_entry *f)
{
	return (uint32_t)(f - c->flows);
}

static void emit(struct pl_flow_cache *c, const struct pl_flow_entry *f, enum pl_flow_end reason)
{
	struct pl_flow_counters *n = &c->counters;
	struct pl_flow_kept *k = c->kept;

	n->ended_idle += reason == PL_FLOW_END_IDLE;
	n->ended_active += reason == PL_FLOW_END_ACTIVE;
	n->ended_finished += reason == PL_FLOW_END_FINISHED;
	n->ended_evicted += reason == PL_FLOW_END_EVICTED;
	n->ended_shutdown += reason == PL_FLOW_END_SHUTDOWN;
	pl_flow_make_record(c, &k->records[k->n_records], f, reason,
		(uint32_t)(k->given.records + k->n_records));
	pl_flow_step_then(c);
	k->n_records++;
	pl_flow_step_then(c);
}

/* An empty flow has nothing to report. */
void pl_flow_give(
	struct pl_flow_cache *c, struct pl_flow_entry *f, enum pl_flow_end reason, uint64_t ts_ns)
{
	c->kept->journal.ts = ts_ns;
	pl_flow_step(c, PL_FLOW_STEP_GIVE, slot_of(c, f));
	if (!pl_flow_is_empty(f))
		emit(c, f, reason);
	pl_flow_record_restart(f, pl_flow_other_of(c, f), ts_ns, c->listening);
	pl_flow_step_made(c);
}

/* A flow whose connection ended has the end reason of that end, whatever made its record. */
static enum pl_flow_end unless_closing(const struct pl_flow_entry *f, enum pl_flow_end reason)
{
	return (f->state & PL_FLOW_CLOSING) != 0 ? PL_FLOW_END_FINISHED : reason;
}

/* True when a flow with this due tick may be over: the tick is not ahead of the clock, or further
 * ahead than any can be. A silence of 2^32 ticks, 52 days, within the idle timeout of it, seems to
 * be none: the scan ends the flow that much later, or its next packet does. */
static bool may_be_over(const struct pl_flow_cache *c, uint32_t due, uint32_t now)
{
	return due - now - 1 >= c->idle_ticks;
}

/* Places that have waited long enough by `now_ns` count. */
void pl_flow_settle(struct pl_flow_cache *c, struct pl_flow_entry *f, uint64_t now_ns)
{
	struct pl_flow_other *o = pl_flow_other_of(c, f);

	for (unsigned int d = 0; d < 2; d++) {
		uint32_t packets;

		if (!pl_flow_is_due(f, o, d, now_ns))
			continue;
		packets = o->packets[d];
		if (pl_flow_is_empty(f) || f->packets[d] > UINT32_MAX - packets)
			pl_flow_give(c, f, PL_FLOW_END_ACTIVE, o->first_ts[d]);
		pl_flow_step(c, PL_FLOW_STEP_TAKE, slot_of(c, f));
		pl_flow_take_over(f, o, d, &c->counters);
		pl_flow_step_end(c, packets);
	}
}

/* Makes the flow's last record. Packets of waiting places may count up to the time at which the
 * flow was over, even if it is examined much later. */
void pl_flow_end_of(struct pl_flow_cache *c, struct pl_flow_entry *f, enum pl_flow_end reason)
{
	const uint64_t due = pl_flow_due_ns(c, f), now = c->kept->clock_ns;
	const uint32_t slot = slot_of(c, f);

	if ((f->places & PL_FLOW_WAITING) != 0)
		pl_flow_settle(c, f, due < now ? due : now);
	pl_flow_step(c, PL_FLOW_STEP_END, slot);
	pl_flow_elsewhere_end(f, pl_flow_other_of(c, f), &c->counters);
	if (!pl_flow_is_empty(f))
		emit(c, f, unless_closing(f, reason));
	c->counters.handshakes_missed +=
		f->proto == PL_PROTO_TCP && f->handshake != PL_HANDSHAKE_SEEN;
	c->buckets[slot / PL_FLOW_WAYS].tag[slot % PL_FLOW_WAYS] = 0;
	c->counters.live--;
	pl_flow_step_made(c);
}

static void end_over(struct pl_flow_cache *c, uint32_t bucket, uint32_t way)
{
	struct pl_flow_entry *f = &c->flows[bucket * PL_FLOW_WAYS + way];

	if (pl_flow_is_over(c, f, c->kept->clock_ns))
		pl_flow_end_of(c, f, PL_FLOW_END_IDLE);
}

/* Ends flows of the bucket that are over. */
static void sweep(struct pl_flow_cache *c, uint32_t bucket)
{
	const uint32_t now = pl_flow_tick(c->kept->clock_ns);
	const struct pl_flow_bucket *b = &c->buckets[bucket];

	for (uint32_t w = 0; w < PL_FLOW_WAYS; w++)
		if (b->tag[w] != 0 && may_be_over(c, b->due[w], now))
			end_over(c, bucket, w);
}

/* Way of the flow in both buckets that is to be over first: the least of the ticks ahead, each with
 * its way's number below it, so that no branch depends on them. */
static uint32_t soonest(const struct pl_flow_cache *c, const struct pl_flow_place *place)
{
	const uint32_t now = pl_flow_tick(c->kept->clock_ns);
	uint64_t least = UINT64_MAX;

	for (unsigned int i = 0; i < 2 * PL_FLOW_WAYS; i++) {
		const struct pl_flow_bucket *b = &c->buckets[place->bucket[i / PL_FLOW_WAYS]];
		const uint64_t ahead = (uint64_t)(b->due[i % PL_FLOW_WAYS] - now) << 4 | i;

		least = ahead < least ? ahead : least;
	}
	return place->bucket[(least & 15) / PL_FLOW_WAYS] * PL_FLOW_WAYS +
	       (uint32_t)(least % PL_FLOW_WAYS);
}

/* A free slot in the emptier of both buckets; UINT32_MAX when they are full. */
static uint32_t free_slot(const struct pl_flow_cache *c, const struct pl_flow_place *place)
{
	uint32_t ways[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		ways[i] = pl_flow_matches(&c->buckets[place->bucket[i]], 0);
	if ((ways[0] | ways[1]) == 0)
		return UINT32_MAX;
	i = __builtin_popcount(ways[1]) > __builtin_popcount(ways[0]);
	return place->bucket[i] * PL_FLOW_WAYS + (uint32_t)__builtin_ctz(ways[i]);
}

/* A slot for a new flow, for which another may have to make room: one that is over, if any is. */
static uint32_t new_slot(struct pl_flow_cache *c, const struct pl_flow_place *place)
{
	uint32_t slot = free_slot(c, place);

	if (slot == UINT32_MAX) {
		sweep(c, place->bucket[0]);
		sweep(c, place->bucket[1]);
		slot = free_slot(c, place);
	}
	if (slot != UINT32_MAX)
		return slot;
	slot = soonest(c, place);
	pl_flow_end_of(c, &c->flows[slot], PL_FLOW_END_EVICTED);
	return slot;
}

/* A request and its answer, of any codes, are of one flow; of other messages direction, type and code
 * are. */
static bool is_of_icmp(const struct pl_flow_entry *f, const struct pl_pkt96 *p, unsigned int *ret_d)
{
	const int answer = pl_icmp_answer(p->proto, p->sport);

	*ret_d = f->sport != p->sport;
	if (*ret_d == 1)
		return f->sport == answer && pl_addr_equal(&f->src, &p->dst) &&
		       pl_addr_equal(&f->dst, &p->src);
	return (answer != PL_ICMP_NO_ANSWER || f->dport == p->dport) &&
	       pl_addr_equal(&f->src, &p->src) && pl_addr_equal(&f->dst, &p->dst);
}

static bool is_of(const struct pl_flow_entry *f, const struct pl_pkt96 *p, unsigned int *ret_d)
{
	if (f->proto != p->proto || f->vlan != p->vlan)
		return false;
	if (pl_flow_is_icmp(p->proto))
		return is_of_icmp(f, p, ret_d);
	*ret_d = 0;
	if (f->sport == p->sport && f->dport == p->dport && pl_addr_equal(&f->src, &p->src) &&
		pl_addr_equal(&f->dst, &p->dst))
		return true;
	*ret_d = 1;
	return f->sport == p->dport && f->dport == p->sport && pl_addr_equal(&f->src, &p->dst) &&
	       pl_addr_equal(&f->dst, &p->src);
}

/* The slot of the packet's flow and the packet's direction; UINT32_MAX when there is none. */
static uint32_t find(const struct pl_flow_cache *c, const struct pl_flow_place *place,
	const struct pl_pkt96 *p, unsigned int *ret_d)
{
	for (unsigned int i = 0; i < 2; i++) {
		const uint32_t first = place->bucket[i] * PL_FLOW_WAYS;
		uint32_t m = pl_flow_matches(&c->buckets[place->bucket[i]], place->tag);

		for (; m != 0; m &= m - 1) {
			const uint32_t slot = first + (uint32_t)__builtin_ctz(m);

			if (is_of(&c->flows[slot], p, ret_d))
				return slot;
		}
	}
	return UINT32_MAX;
}

/* Bytes to clear of a new flow; the rest is not read before it is written. */
static size_t cleared_bytes(uint8_t proto)
{
	return proto == PL_PROTO_TCP ? offsetof(struct pl_flow_entry, rtt)
				     : offsetof(struct pl_flow_entry, way);
}

static void start(struct pl_flow_cache *c, struct pl_flow_entry *f, const struct pl_pkt96 *p)
{
	memset(f, 0, cleared_bytes(p->proto));
	f->src = p->src;
	f->dst = p->dst;
	f->sport = p->sport;
	f->dport = p->dport;
	f->vlan = p->vlan;
	f->proto = p->proto;
	f->place[0] = p->obs;
	f->places = PL_FLOW_NOWHERE << 1;
	f->heard[0] = pl_flow_heard(p->ts_ns);
	f->first_ts = f->last_ts = p->ts_ns;
	pl_flow_role_start(f, c->listening, p->tcp_flags);
	c->counters.started++;
	c->counters.live++;
}

/* Relation of a packet to the flow in its slot; the value is the journal's step. */
enum belongs {
	FLOW_COUNTS = PL_FLOW_STEP_COUNT,
	FLOW_ELSEWHERE = PL_FLOW_STEP_ELSEWHERE,
	FLOW_ANOTHER = PL_FLOW_STEP_NEW
};

/* Tells whether the packet counts where it was seen, as the first of its direction does anywhere. A
 * packet at the place that counts ends the wait of any other place. */
static enum belongs place_of(struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p)
{
	if (pl_flow_same_place(f->place[d], p->obs) && (f->places & 5u << d) == 0)
		return FLOW_COUNTS;
	if ((f->places & PL_FLOW_NOWHERE << d) != 0) {
		f->place[d] = p->obs & (uint16_t)~PL_OBS_SAMPLED;
		f->heard[d] = pl_flow_heard(p->ts_ns);
	} else if (!pl_flow_same_place(f->place[d], p->obs)) {
		return FLOW_ELSEWHERE;
	}
	f->places &= (uint8_t) ~((PL_FLOW_WAITS | PL_FLOW_NOWHERE) << d);
	return FLOW_COUNTS;
}

/* Prepares a known flow for its packet, and returns how the packet relates to the flow. */
static enum belongs goes_on(
	struct pl_flow_cache *c, struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p)
{
	const uint64_t clock = c->kept->clock_ns, now = p->ts_ns > clock ? p->ts_ns : clock;
	enum belongs at;

	if (pl_flow_is_over(c, f, now)) {
		pl_flow_end_of(c, f, PL_FLOW_END_IDLE);
		return FLOW_ANOTHER;
	}
	if ((f->places & PL_FLOW_WAITING) != 0) {
		pl_flow_settle(c, f, now);
		if (pl_flow_is_over(c, f, now)) {
			pl_flow_end_of(c, f, PL_FLOW_END_IDLE);
			return FLOW_ANOTHER;
		}
	}
	at = place_of(f, d, p);
	/* A packet at another place may be a copy of one of an earlier connection. */
	if (f->proto == PL_PROTO_TCP && (at == FLOW_COUNTS || p->ts_ns > f->last_ts) &&
		pl_flow_tcp_reuses(f, d, p)) {
		pl_flow_end_of(c, f, PL_FLOW_END_FINISHED);
		c->counters.reused++;
		return FLOW_ANOTHER;
	}
	if (at == FLOW_ELSEWHERE)
		return at;
	if (pl_flow_is_empty(f) || f->packets[d] > UINT32_MAX - pl_pkt96_weight(p) ||
		((f->state & PL_FLOW_CLOSING) == 0 &&
			pl_flow_since(f->first_ts, now) >= c->config.active_ns))
		pl_flow_give(c, f, PL_FLOW_END_ACTIVE, p->ts_ns);
	return at;
}

static void add(
	struct pl_flow_cache *c, struct pl_flow_entry *f, unsigned int d, const struct pl_pkt96 *p)
{
	const uint32_t weight = pl_pkt96_weight(p);

	if (p->ts_ns > f->last_ts) {
		const uint64_t gap = p->ts_ns - f->last_ts;

		f->max_gap_ns = gap > f->max_gap_ns ? gap : f->max_gap_ns;
		f->last_ts = p->ts_ns;
	}
	f->records++;
	f->packets[d] += weight;
	f->bytes[d] += (uint64_t)weight * p->wire_len;
	f->place[0] |= p->obs & PL_OBS_SAMPLED;
	if (pl_seq_after(pl_flow_heard(p->ts_ns), f->heard[d]))
		f->heard[d] = pl_flow_heard(p->ts_ns);
	if (f->proto == PL_PROTO_TCP) {
		f->flags[d] |= p->tcp_flags;
		pl_flow_tcp_packet(f, d, p, &c->counters);
	}
}

static void sweep_all(struct pl_flow_cache *c)
{
	for (uint32_t i = 0; i < c->n_buckets; i++)
		sweep(c, i);
}

/* Sets the clock back. Flows that are over by the wrong clock end first, then flows of a time after
 * the new clock at once, so that the position of the scan makes no difference; ticks do not tell
 * the latter. */
static void set_back(struct pl_flow_cache *c, uint64_t ts_ns)
{
	sweep_all(c);
	c->kept->clock_ns = c->swept_ns = ts_ns;
	c->behind = 0;
	c->counters.set_back++;
	for (uint32_t i = 0; i < c->n_buckets; i++)
		for (uint32_t w = 0; w < PL_FLOW_WAYS; w++)
			if (c->buckets[i].tag[w] != 0)
				end_over(c, i, w);
}

static void set_clock(struct pl_flow_cache *c, uint64_t ts_ns)
{
	if (c->config.live) {
		pl_flow_live_count(&c->live, ts_ns, &c->counters);
		return;
	}
	if (ts_ns >= c->kept->clock_ns) {
		c->kept->clock_ns = ts_ns;
		c->behind = 0;
		if (ts_ns - c->swept_ns >= c->config.idle_ns / 2)
			pl_flow_cache_expire(c, ts_ns);
		return;
	}
	c->counters.backwards++;
	if (c->kept->clock_ns - ts_ns <= c->config.idle_ns)
		c->behind = 0;
	else if (++c->behind == PL_FLOW_BEHIND)
		set_back(c, ts_ns);
}

/* True when the packet has no ports, or type of ICMP, though its protocol has them. */
static bool lacks_ports(const struct pl_pkt96 *p)
{
	return p->sport == 0 && p->dport == 0 &&
	       (pl_flow_has_ports(p->proto) || pl_flow_is_icmp(p->proto));
}

/* True when the four bytes of ICMP that have type and code are there, behind an IPv4 header without
 * options: an echo reply has type and code 0. */
static bool has_icmp(const struct pl_pkt96 *p)
{
	return p->proto == PL_ICMP_PROTO && p->wire_len - p->pay_len == 24;
}

/* True for a fragment behind the first. A pkt64 has no offset: there the first one has ports. */
static bool is_later_fragment(const struct pl_pkt96 *p)
{
	return (p->obs & PL_OBS_FRAGMENT) != 0 &&
	       ((p->frag_off & 0x7fff) != 0 ||
		       (p->frag_off == 0 && lacks_ports(p) && !has_icmp(p)));
}

/* True when the packet has a complete key; otherwise the cause is counted. */
static bool has_key(const struct pl_pkt96 *p, struct pl_flow_counters *n)
{
	if (is_later_fragment(p)) {
		n->fragments++;
		n->fragment_bytes += (uint64_t)pl_pkt96_weight(p) * p->wire_len;
		return false;
	}
	if ((p->obs & PL_OBS_TRUNCATED) != 0 && lacks_ports(p)) {
		n->without_ports++;
		return false;
	}
	return true;
}

static void feed_one(
	struct pl_flow_cache *c, const struct pl_flow_place *place, const struct pl_pkt96 *p)
{
	unsigned int d;
	enum belongs what = FLOW_ANOTHER;
	struct pl_flow_bucket *b;
	struct pl_flow_entry *f;
	uint32_t slot;

	set_clock(c, p->ts_ns);
	if (!has_key(p, &c->counters))
		return;
	slot = find(c, place, p, &d);
	if (slot != UINT32_MAX)
		what = goes_on(c, &c->flows[slot], d, p);
	else
		slot = new_slot(c, place);
	f = &c->flows[slot];
	pl_flow_step(c, (enum pl_flow_step)what, slot);
	if (what == FLOW_ANOTHER) {
		d = 0;
		start(c, f, p);
	}
	if (what == FLOW_ELSEWHERE)
		pl_flow_elsewhere(f, pl_flow_other_of(c, f), d, p, &c->counters);
	else
		add(c, f, d, p);
	pl_flow_step_then(c);
	b = &c->buckets[slot / PL_FLOW_WAYS];
	b->tag[slot % PL_FLOW_WAYS] = place->tag;
	b->due[slot % PL_FLOW_WAYS] = pl_flow_tick(pl_flow_due_ns(c, f));
	pl_flow_step_end(c, what != FLOW_ELSEWHERE ? pl_pkt96_weight(p) : 0);
}

static struct pl_flow_place fetch_buckets(const struct pl_flow_cache *c, const struct pl_pkt96 *p)
{
	const struct pl_flow_place place =
		pl_flow_place_of(pl_flow_key_hash(p, c->seed), c->n_buckets);

	pl_prefetch_write(&c->buckets[place.bucket[0]]);
	pl_prefetch_write(&c->buckets[place.bucket[1]]);
	return place;
}

/* The flow that the buckets seem to have, or the slot that a new one seems to get; the ways only
 * when they are TCP's. */
static void fetch_flow(
	const struct pl_flow_cache *c, const struct pl_flow_place *place, const struct pl_pkt96 *p)
{
	const bool tcp = p->proto == PL_PROTO_TCP;
	size_t bytes =
		tcp ? offsetof(struct pl_flow_entry, syn_ts) : offsetof(struct pl_flow_entry, way);
	uint32_t slot = UINT32_MAX;

	for (unsigned int i = 0; i < 2 && slot == UINT32_MAX; i++) {
		const uint32_t m = pl_flow_matches(&c->buckets[place->bucket[i]], place->tag);

		if (m != 0)
			slot = place->bucket[i] * PL_FLOW_WAYS + (uint32_t)__builtin_ctz(m);
	}
	if (slot == UINT32_MAX) {
		slot = free_slot(c, place);
		if (slot == UINT32_MAX)
			slot = soonest(c, place);
		bytes = cleared_bytes(p->proto);
	} else if (tcp) {
		pl_prefetch_write(&c->flows[slot].rtt);
	}
	pl_prefetch_all(&c->flows[slot], bytes, true);
}

/* A bucket for every four packets: a flow that is over stays for no longer than it takes half as
 * many packets as there is room for flows to come. */
static void scan(struct pl_flow_cache *c)
{
	sweep(c, c->scanned);
	c->scanned = c->scanned + 1 < c->n_buckets ? c->scanned + 1 : 0;
	pl_prefetch_write(&c->buckets[c->scanned]);
}

void pl_flow_cache_feed(struct pl_flow_cache *cache, const struct pl_pkt96 *packets, uint32_t n)
{
	struct pl_flow_place places[2 * AHEAD];

	cache->counters.packets += n;
	for (uint64_t i = 0; i < (uint64_t)n + 2 * AHEAD; i++) {
		if (i >= 2 * AHEAD)
			feed_one(cache, &places[i % (2 * AHEAD)], &packets[i - 2 * AHEAD]);
		if (i < n)
			places[i % (2 * AHEAD)] = fetch_buckets(cache, &packets[i]);
		if (i >= AHEAD && i - AHEAD < n)
			fetch_flow(cache, &places[(i - AHEAD) % (2 * AHEAD)], &packets[i - AHEAD]);
		if (i < n && i % 4 == 0)
			scan(cache);
	}
}

void pl_flow_cache_expire(struct pl_flow_cache *cache, uint64_t now_ns)
{
	if (now_ns > cache->kept->clock_ns)
		cache->kept->clock_ns = now_ns;
	cache->swept_ns = cache->kept->clock_ns;
	sweep_all(cache);
	pl_flow_flush(cache);
}

void pl_flow_cache_finish(struct pl_flow_cache *cache)
{
	for (uint32_t slot = 0; slot < cache->n_buckets * PL_FLOW_WAYS; slot++) {
		struct pl_flow_entry *f = &cache->flows[slot];

		if (cache->buckets[slot / PL_FLOW_WAYS].tag[slot % PL_FLOW_WAYS] != 0)
			pl_flow_end_of(cache, f,
				pl_flow_is_over(cache, f, cache->kept->clock_ns)
					? PL_FLOW_END_IDLE
					: PL_FLOW_END_SHUTDOWN);
	}
	pl_flow_flush(cache);
}
