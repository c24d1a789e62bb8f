/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a flow cache continue the flows in a file, and leaves its flows in the file at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "flow/cache_state.h"
#include "flow/tcp.h"

int pl_flow_cache_new_kept(struct pl_flow_cache **ret, const struct pl_flow_config *config,
	struct pl_flow_state *state, pl_flow_sink *sink, void *arg, struct pl_diag *diag)
{
	struct pl_flow_cache *c = pl_flow_cache_bare(config, sink, arg);

	if (c == NULL)
		return pl_diag_fail(diag, -ENOMEM, "no memory for a flow cache");
	c->state = state;
	pl_flow_cache_place(c, state->kept, state->kept->n_buckets);
	pl_flow_mend(c);
	*ret = c;
	return 0;
}

/* The flow in the slot; NULL: there is none. */
static struct pl_flow_entry *flow_at(const struct pl_flow_cache *c, uint32_t slot)
{
	return c->buckets[slot / PL_FLOW_WAYS].tag[slot % PL_FLOW_WAYS] != 0 ? &c->flows[slot]
									     : NULL;
}

/* ---- going on ---- */

/* Drops outages that ended before the beginning of every unfinished record. */
static void forget_outages(struct pl_flow_cache *c)
{
	struct pl_flow_kept *k = c->kept;
	uint64_t first = UINT64_MAX;
	uint32_t kept = 0;

	for (uint32_t slot = 0; slot < c->n_buckets * PL_FLOW_WAYS; slot++) {
		const struct pl_flow_entry *f = flow_at(c, slot);

		if (f != NULL && !pl_flow_is_empty(f) && f->first_ts < first)
			first = f->first_ts;
	}
	for (uint32_t i = 0; i < k->n_outages; i++) {
		if (k->outages[i].to > first)
			k->outages[kept++] = k->outages[i];
	}
	k->n_outages = kept;
}

/* Adds the outage from the clock that the last process left until now. False when the list is
 * full. */
static bool note_outage(struct pl_flow_cache *c, uint64_t boot_ns, struct pl_flow_resumed *ret)
{
	struct pl_flow_kept *k = c->kept;
	struct pl_flow_outage *o = &k->outages[k->n_outages];
	uint64_t from = k->clock_ns, to = k->newest_ns;

	to += boot_ns > k->newest_boot_ns ? boot_ns - k->newest_boot_ns : 0;
	if (k->newest_ns == 0 || to <= from)
		return true;
	/* A process killed after the next lines has already noted a part of this outage. */
	if (k->n_outages > 0 && o[-1].to > from)
		from = o[-1].to;
	ret->unseen_ns = to > from ? to - from : 0;
	if (k->n_outages == PL_FLOW_OUTAGES)
		return false;
	if (to > from) {
		*o = (struct pl_flow_outage){ from, to };
		PL_FLOW_FENCE();
		k->n_outages++;
		PL_FLOW_FENCE();
	}
	k->clock_ns = to;
	return true;
}

/* Notes in all flows that packets passed unseen. */
static void mark_all(struct pl_flow_cache *c)
{
	for (uint32_t slot = 0; slot < c->n_buckets * PL_FLOW_WAYS; slot++) {
		struct pl_flow_entry *f = flow_at(c, slot);

		if (f == NULL)
			continue;
		f->continued = 1;
		if (f->proto == PL_PROTO_TCP)
			pl_flow_tcp_lost_sight(f);
	}
}

/* The file as it is to be now; numbers of records and the time go on. */
static int begin_anew(struct pl_flow_cache *c, struct pl_diag *diag)
{
	struct pl_flow_kept *k = c->kept;
	const struct pl_flow_given given = k->given;
	const uint64_t clock_ns = k->clock_ns, newest_ns = k->newest_ns,
		       newest_boot_ns = k->newest_boot_ns;
	const uint32_t n_buckets = pl_flow_buckets_for(&c->config), clocks = k->clocks;
	int r = 0;

	if (n_buckets != c->n_buckets)
		r = pl_flow_state_make(c->state, n_buckets, c->seed, diag);
	if (r < 0)
		return r;
	pl_flow_cache_place(c, c->state->kept, n_buckets);
	k = c->kept;
	k->given = k->next = given;
	k->clock_ns = clock_ns;
	k->newest_ns = newest_ns;
	k->newest_boot_ns = newest_boot_ns;
	k->clocks = clocks;
	k->n_outages = 0;
	pl_flow_state_points(c->state, c->state->points, c->state->n_points);
	return 0;
}

int pl_flow_cache_resume(struct pl_flow_cache *c, uint64_t boot_ns, struct pl_flow_resumed *ret,
	struct pl_diag *diag)
{
	struct pl_flow_state *s = c->state;
	const uint64_t live = c->counters.live;
	int r = 0;

	*ret = (struct pl_flow_resumed){ .was_there = s->was_there,
		.records = c->kept->given.records,
		.records_packets = c->kept->given.packets,
		.packets = c->kept->given.packets + c->kept->held,
		.waited = c->kept->n_records };
	if (!s->was_there)
		return 0;
	pl_flow_flush(c);
	forget_outages(c);
	mark_all(c);
	if (!note_outage(c, boot_ns, ret) && s->found.differs == NULL)
		s->found.differs =
			"taps were killed too often to tell when its flows were not seen";
	if (s->found.differs != NULL) {
		pl_flow_cache_finish(c);
		r = begin_anew(c, diag);
	} else {
		pl_flow_cache_expire(c, c->kept->clock_ns);
	}
	ret->flows = c->counters.live;
	ret->ended = live - ret->flows;
	c->state_counters.continued = ret->flows;
	return r;
}

void pl_flow_cache_came(
	struct pl_flow_cache *c, uint64_t newest_ns, uint64_t boot_ns, uint32_t clocks)
{
	c->kept->newest_ns = newest_ns;
	c->kept->newest_boot_ns = boot_ns;
	c->kept->clocks |= clocks;
}

uint32_t pl_flow_cache_clocks(const struct pl_flow_cache *c)
{
	return c->kept->clocks;
}

/* ---- leaving ---- */

void pl_flow_cache_leave(struct pl_flow_cache *c, uint64_t now_ns)
{
	pl_flow_cache_expire(c, now_ns);
	for (uint32_t slot = 0; slot < c->n_buckets * PL_FLOW_WAYS; slot++) {
		struct pl_flow_entry *f = flow_at(c, slot);

		if (f == NULL)
			continue;
		if ((f->state & PL_FLOW_CLOSING) != 0) {
			pl_flow_end_of(c, f, PL_FLOW_END_FINISHED);
			continue;
		}
		if (f->proto == PL_PROTO_TCP)
			pl_flow_tcp_lost_sight(f);
		pl_flow_give(c, f, PL_FLOW_END_SHUTDOWN, f->last_ts);
	}
	pl_flow_flush(c);
}

uint64_t pl_flow_cache_cut(struct pl_flow_cache *c, uint64_t *ret_pages)
{
	struct pl_flow_state *s = c->state;
	const uint64_t lost = atomic_load(&s->guard.lost_pages), live = c->counters.live,
		       damaged = c->state_counters.damaged;

	*ret_pages = lost - s->seen_lost;
	if (*ret_pages == 0)
		return 0;
	pl_flow_mend(c);
	s->seen_lost = lost;
	/* Flows in lost buckets have no bytes to check, so they are counted here. */
	c->state_counters.damaged = damaged + live - c->counters.live;
	return live - c->counters.live;
}
