/* SPDX-License-Identifier: BSD-2-Clause */
/* Accounts for packets of a flow at places that do not count, and lets one of them take over. */
#include "flow/elsewhere.h"

#include <string.h>

#include "flow/tcp.h"

static bool has(const struct pl_flow_other *o, unsigned int d, unsigned int bit)
{
	return (o->known & bit << d) != 0;
}

static void set(struct pl_flow_other *o, unsigned int d, unsigned int bit, bool is)
{
	o->known = (uint8_t)((o->known & ~(bit << d)) | (is ? bit << d : 0));
}

static void make_hold(struct pl_flow_entry *f, struct pl_flow_other *o)
{
	if ((f->state & PL_FLOW_ELSEWHERE) == 0)
		*o = (struct pl_flow_other){ 0 };
	f->state |= PL_FLOW_ELSEWHERE;
}

/* True when the first packet of a direction in this record was at this place. */
static bool is_first(const struct pl_flow_other *o, uint16_t place)
{
	for (unsigned int d = 0; d < 2; d++) {
		if (has(o, d, PL_OTHER_MOVED) && pl_flow_same_place(o->first_obs[d], place))
			return true;
	}
	return false;
}

/* Lists the place. True when the record knew it before. */
static bool list(struct pl_flow_other *o, uint16_t obs)
{
	const uint16_t place = obs & PL_FLOW_PLACE;
	unsigned int i = 0;

	if (is_first(o, place))
		return true;
	while (place != 0 && i < o->n_also && o->also[i] != place)
		i++;
	if (place != 0 && i < o->n_also)
		return true;
	if (place != 0 && i < PL_FLOW_ALSO)
		o->also[o->n_also++] = place;
	else
		o->more = 1;
	return false;
}

static void add_uncounted(struct pl_flow_other *o, unsigned int d, uint32_t packets)
{
	o->uncounted[d] =
		packets > UINT32_MAX - o->uncounted[d] ? UINT32_MAX : o->uncounted[d] + packets;
}

/* Packets of the place that was watched are not added. */
static void drop(struct pl_flow_entry *f, struct pl_flow_other *o, unsigned int d,
	struct pl_flow_counters *c)
{
	f->places &= (uint8_t) ~(PL_FLOW_WAITS << d);
	if (o->packets[d] == 0)
		return;
	add_uncounted(o, d, o->packets[d]);
	c->elsewhere += o->records[d];
	o->packets[d] = 0;
}

static void watch(struct pl_flow_other *o, unsigned int d, uint16_t obs, bool copies)
{
	o->obs[d] = obs;
	set(o, d, PL_OTHER_WATCHED, true);
	set(o, d, PL_OTHER_COPIES, copies);
}

static bool is_later(uint64_t a, uint64_t b)
{
	return a >> PL_FLOW_HEARD > b >> PL_FLOW_HEARD;
}

/* True when a packet later than the last one counted makes its place the one to watch. */
static bool is_better(const struct pl_flow_entry *f, const struct pl_flow_other *o, unsigned int d,
	const struct pl_pkt96 *p, uint64_t heard, bool fresh)
{
	if (!has(o, d, PL_OTHER_WATCHED))
		return true;
	return (f->places & PL_FLOW_WAITS << d) == 0 &&
	       (o->packets[d] == 0 || p->ts_ns >= heard + PL_FLOW_LAG_NS ||
		       (fresh && has(o, d, PL_OTHER_COPIES)));
}

/* True when the packet is at the watched place and may be no copy of one that was counted. fresh:
 * the place saw nothing of the flow for so long that it does not see the same packets. */
static bool is_watched(struct pl_flow_entry *f, struct pl_flow_other *o, unsigned int d,
	const struct pl_pkt96 *p, uint64_t heard, bool fresh, struct pl_flow_counters *c)
{
	const bool same = has(o, d, PL_OTHER_WATCHED) && pl_flow_same_place(o->obs[d], p->obs);

	if (!is_later(p->ts_ns, heard)) {
		if (same || !has(o, d, PL_OTHER_WATCHED))
			watch(o, d, same ? o->obs[d] : p->obs, true);
		return false;
	}
	if (!same && !is_better(f, o, d, p, heard, fresh))
		return false;
	if (!same) {
		drop(f, o, d, c);
		watch(o, d, p->obs, !fresh);
	}
	return !has(o, d, PL_OTHER_COPIES) || p->ts_ns > heard + PL_FLOW_COPY_NS;
}

/* The longest gap that the packet makes known. */
static void add_gap(struct pl_flow_other *o, unsigned int d, uint64_t ns)
{
	const uint64_t us = ns / 1000;

	if (us > o->max_gap_us[d])
		o->max_gap_us[d] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static void begin(struct pl_flow_other *o, unsigned int d, const struct pl_pkt96 *p)
{
	o->obs[d] = p->obs;
	o->first_ts[d] = o->last_ts[d] = p->ts_ns;
	o->bytes[d] = 0;
	o->records[d] = o->segments[d] = o->max_gap_us[d] = 0;
	o->flags[d] = 0;
	set(o, d, PL_OTHER_SAMPLED, false);
}

static void add(struct pl_flow_entry *f, struct pl_flow_other *o, unsigned int d,
	const struct pl_pkt96 *p, uint64_t heard, struct pl_flow_counters *c)
{
	const uint32_t weight = pl_pkt96_weight(p);

	if (weight > UINT32_MAX - o->packets[d])
		drop(f, o, d, c);
	if (o->packets[d] == 0)
		begin(o, d, p);
	if (p->ts_ns > o->last_ts[d]) {
		add_gap(o, d, p->ts_ns - o->last_ts[d]);
		o->last_ts[d] = p->ts_ns;
	} else if (p->ts_ns < o->first_ts[d]) {
		add_gap(o, d, o->first_ts[d] - p->ts_ns);
		o->first_ts[d] = p->ts_ns;
	}
	o->packets[d] += weight;
	o->bytes[d] += (uint64_t)weight * p->wire_len;
	o->records[d]++;
	o->flags[d] |= p->tcp_flags;
	o->segments[d] += pl_flow_tcp_is_segment(p);
	if ((p->obs & PL_OBS_SAMPLED) != 0)
		set(o, d, PL_OTHER_SAMPLED, true);
	if ((f->places & PL_FLOW_WAITS << d) == 0 && p->ts_ns >= heard + PL_FLOW_LAG_NS) {
		o->alone_ts[d] = p->ts_ns;
		f->places |= (uint8_t)(PL_FLOW_WAITS << d);
	}
}

void pl_flow_elsewhere(struct pl_flow_entry *flow, struct pl_flow_other *other, unsigned int d,
	const struct pl_pkt96 *packet, struct pl_flow_counters *counters)
{
	const uint64_t heard = pl_flow_heard_ns(flow, d);
	bool fresh = !pl_flow_is_empty(flow) && packet->ts_ns > flow->first_ts &&
		     packet->ts_ns - flow->first_ts >= PL_FLOW_LAG_NS;

	make_hold(flow, other);
	fresh = !list(other, packet->obs) && fresh;
	if (other->packets[d] > 0 && !is_later(other->first_ts[d], heard)) {
		drop(flow, other, d, counters);
		set(other, d, PL_OTHER_COPIES, true);
	}
	if (is_watched(flow, other, d, packet, heard, fresh, counters)) {
		add(flow, other, d, packet, heard, counters);
	} else {
		add_uncounted(other, d, pl_pkt96_weight(packet));
		counters->elsewhere++;
	}
}

/* Packets of the other direction may lie between those that are added. */
static void add_times(struct pl_flow_entry *f, const struct pl_flow_other *o, unsigned int d)
{
	uint64_t gap = (uint64_t)o->max_gap_us[d] * 1000;

	if (o->last_ts[d] <= f->last_ts)
		return;
	if (o->first_ts[d] <= f->last_ts && gap > o->last_ts[d] - f->last_ts)
		gap = o->last_ts[d] - f->last_ts;
	if (o->first_ts[d] > f->last_ts && o->first_ts[d] - f->last_ts > gap)
		gap = o->first_ts[d] - f->last_ts;
	if (gap > f->max_gap_ns)
		f->max_gap_ns = gap;
	f->last_ts = o->last_ts[d];
}

static void move(struct pl_flow_entry *f, struct pl_flow_other *o, unsigned int d)
{
	if (f->packets[d] > 0 && !has(o, d, PL_OTHER_MOVED)) {
		o->first_obs[d] = f->place[d] & (uint16_t)~PL_OBS_SAMPLED;
		set(o, d, PL_OTHER_MOVED, true);
	}
	f->place[d] = (uint16_t)((f->place[d] & PL_OBS_SAMPLED) | (o->obs[d] & ~PL_OBS_SAMPLED));
	if (has(o, d, PL_OTHER_SAMPLED))
		f->place[0] |= PL_OBS_SAMPLED;
}

void pl_flow_take_over(struct pl_flow_entry *flow, struct pl_flow_other *other, unsigned int d,
	struct pl_flow_counters *counters)
{
	move(flow, other, d);
	add_times(flow, other, d);
	flow->packets[d] += other->packets[d];
	flow->bytes[d] += other->bytes[d];
	flow->records += other->records[d];
	flow->heard[d] = pl_flow_heard(other->last_ts[d]);
	if (flow->proto == PL_PROTO_TCP)
		pl_flow_tcp_moved(flow, other, d);
	other->packets[d] = 0;
	set(other, d, PL_OTHER_WATCHED, false);
	flow->places &= (uint8_t) ~(PL_FLOW_WAITS << d);
	counters->moved++;
}

void pl_flow_elsewhere_end(
	struct pl_flow_entry *flow, struct pl_flow_other *other, struct pl_flow_counters *counters)
{
	for (unsigned int d = 0; d < 2 && (flow->state & PL_FLOW_ELSEWHERE) != 0; d++)
		drop(flow, other, d, counters);
}

void pl_flow_elsewhere_restart(struct pl_flow_entry *flow, struct pl_flow_other *other)
{
	if ((flow->state & PL_FLOW_ELSEWHERE) == 0)
		return;
	memset(other->also, 0, sizeof(other->also));
	other->n_also = other->more = 0;
	other->known &= (uint8_t) ~(PL_OTHER_MOVED | PL_OTHER_MOVED << 1);
	for (unsigned int d = 0; d < 2; d++) {
		other->uncounted[d] = 0;
		if (other->packets[d] > 0)
			(void)list(other, other->obs[d]);
	}
}

void pl_flow_elsewhere_tell(struct pl_flow288 *ret, const struct pl_flow_other *other)
{
	if (has(other, 0, PL_OTHER_MOVED))
		ret->obs = (uint16_t)((ret->obs & PL_OBS_SAMPLED) | other->first_obs[0]);
	if (has(other, 1, PL_OTHER_MOVED))
		ret->obs_rev = other->first_obs[1];
	ret->also_1 = other->also[0];
	ret->also_2 = other->also[1];
	ret->also_3 = other->also[2];
	ret->also_4 = other->also[3];
	ret->also_5 = other->also[4];
	ret->also_6 = other->also[5];
	ret->also_more = other->more;
	ret->elsewhere_fwd = other->uncounted[0];
	ret->elsewhere_rev = other->uncounted[1];
}
