/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the source of a flow cache whose clock is furthest behind, and feeds live packets by that
 * clock. */
#include "flow/live.h"

#include "flow/cache_state.h"

#define LATEST_NS (UINT64_MAX >> 2) /* differences of two distances have room */

/* Begins the next idle timeout, and forgets what is older than the one before. */
static void go_on(struct pl_flow_live *l, uint64_t now_ns, uint64_t idle_ns)
{
	const uint64_t since = now_ns - l->begun_ns;

	if (since < idle_ns)
		return;
	l->last[1] = since < 2 * idle_ns ? l->last[0] : (struct pl_flow_distances){ 0 };
	l->last[0].any = false;
	l->begun_ns = now_ns;
}

/* Distances of both timeouts. A source that is too far behind the highest has no part. */
static struct pl_flow_distances both(const struct pl_flow_live *l)
{
	const struct pl_flow_distances *a = &l->last[0], *b = &l->last[1];
	struct pl_flow_distances r = a->any ? *a : *b;

	if (a->any && b->any) {
		r.low = a->low < b->low ? a->low : b->low;
		r.high = a->high > b->high ? a->high : b->high;
	}
	if (r.high - r.low > (int64_t)PL_FLOW_APART_NS)
		r.low = r.high - (int64_t)PL_FLOW_APART_NS;
	return r;
}

static void add(struct pl_flow_distances *to, int64_t distance)
{
	to->low = to->any && to->low < distance ? to->low : distance;
	to->high = to->any && to->high > distance ? to->high : distance;
	to->any = true;
}

/* Notes n packets of which the newest is too far behind the highest, or not. Returns true when they show
 * that the clock was set back. */
static bool was_set_back(struct pl_flow_live *l, bool behind, uint32_t n, uint64_t now_ns)
{
	if (!behind) {
		l->behind = 0;
		l->agreed_ns = now_ns;
		return false;
	}
	if (l->most_ns == UINT64_MAX)
		l->behind += n;
	return l->behind >= PL_FLOW_BEHIND && now_ns - l->agreed_ns >= PL_FLOW_STEP_NS;
}

uint64_t pl_flow_live_came(struct pl_flow_live *l, uint64_t newest_ns, uint32_t n, uint64_t now_ns,
	uint64_t idle_ns, struct pl_flow_counters *counters)
{
	const uint64_t time_ns = newest_ns < LATEST_NS ? newest_ns : LATEST_NS;
	const int64_t distance = (int64_t)(time_ns - now_ns);
	const bool allowed = newest_ns <= l->most_ns;
	struct pl_flow_distances now;
	bool none, behind;

	go_on(l, now_ns, idle_ns);
	now = both(l);
	none = !now.any || (allowed && !l->allowed);
	behind = !none && now.high - distance > (int64_t)PL_FLOW_APART_NS;
	if (was_set_back(l, behind, n, now_ns)) {
		none = true;
		behind = false;
	}
	if (none) {
		l->last[0].any = l->last[1].any = false;
		l->allowed = allowed;
	}
	if (behind)
		counters->behind += n;
	else if (none || allowed || !l->allowed)
		add(&l->last[0], distance);
	now = both(l);
	counters->set_back += l->started && l->distance - now.low > (int64_t)PL_FLOW_APART_NS;
	counters->apart_ns = (uint64_t)(now.high - now.low);
	l->distance = now.low;
	l->started = true;
	return now_ns + (uint64_t)l->distance;
}

void pl_flow_live_count(struct pl_flow_live *l, uint64_t ts_ns, struct pl_flow_counters *counters)
{
	counters->ahead += ts_ns > l->most_ns;
	counters->backwards += ts_ns < l->newest_ns;
	if (ts_ns > l->newest_ns && ts_ns <= l->most_ns)
		l->newest_ns = ts_ns;
}

/* ---- the cache ---- */

void pl_flow_cache_begin_live(struct pl_flow_cache *c, uint64_t now_ns)
{
	c->live.started = true;
	c->live.distance = (int64_t)(c->kept->clock_ns - now_ns);
}

void pl_flow_cache_feed_live(struct pl_flow_cache *c, const struct pl_pkt96 *packets, uint32_t n,
	uint64_t now_ns, uint64_t most_ns)
{
	uint64_t newest_ns = 0;

	if (n == 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		newest_ns = packets[i].ts_ns > newest_ns ? packets[i].ts_ns : newest_ns;
	c->live.most_ns = most_ns;
	c->kept->clock_ns =
		pl_flow_live_came(&c->live, newest_ns, n, now_ns, c->config.idle_ns, &c->counters);
	pl_flow_cache_feed(c, packets, n);
}

void pl_flow_cache_expire_live(struct pl_flow_cache *c, uint64_t now_ns)
{
	if (c->live.started)
		c->kept->clock_ns = now_ns + (uint64_t)c->live.distance;
	pl_flow_cache_expire(c, c->kept->clock_ns);
}
