/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the flows of a tap in a file, and logs what happened to those of the process before. */
#include "service/tap_state.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "service/tap_places.h"

_Static_assert(PL_TAP_PLACES_MAX <= PL_FLOW_POINTS, "a state has room for a tap's interfaces");

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- opening ---- */

int pl_tap_state_open(struct pl_tap_service *t, struct pl_diag *diag)
{
	struct pl_flow_point points[PL_FLOW_POINTS];
	struct pl_flow_state_options options = { .path = t->o->flow_state, .points = points };
	int r;

	if (!t->live) {
		pl_diag_set(diag,
			"a flow state is of sources that go on: captures have their end, and no process goes on with them");
		return -EINVAL;
	}
	/* Packets are seen from now on. */
	t->state_boot_ns = pl_clock_read(CLOCK_BOOTTIME);
	t->state_mono_ns = pl_clock_mono_ns();
	options.n_points = pl_tap_places_points(t, points);
	r = pl_flow_state_open(&t->state, &options, &t->flow_config, diag);
	if (r == 0)
		r = pl_flow_cache_new_kept(
			&t->flows, &t->flow_config, t->state, pl_tap_service_take_flows, t, diag);
	return r;
}

static void say_lost(const struct pl_tap_service *t, const struct pl_flow_found *found)
{
	const char *path = t->o->flow_state;

	if (found->packets == 0)
		pl_say("flow state %s: %s: %" PRIu64
		       " flow%s forgotten, all packets of which are in records; the file is %s.old now",
			path, found->lost, found->flows, found->flows == 1 ? " is" : "s are", path);
	else
		pl_say("flow state %s: %s: %" PRIu64 " flow%s lost, and %" PRIu64
		       " packet%s that no record has; the file is %s.old now",
			path, found->lost, found->flows, found->flows == 1 ? " is" : "s are",
			found->packets, plural(found->packets), path);
}

/* Logs records of the process before that still waited, and flows that it did not finish. */
static void say_torn(const struct pl_tap_service *t, const struct pl_flow_resumed *r)
{
	const struct pl_flow_state_counters *c = pl_flow_cache_state_counters(t->flows);

	if (r->waited > 0)
		pl_say("flow state %s: %" PRIu64
		       " record%s of flows waited there and went to the outputs",
			t->o->flow_state, r->waited, plural(r->waited));
	if (c->torn > 0)
		pl_say("flow state %s: the process before was killed while it counted a packet, which is in no flow",
			t->o->flow_state);
	if (c->damaged > 0)
		pl_say("flow state %s: %" PRIu64
		       " flow%s or record%s whose bytes cannot be right are left out",
			t->o->flow_state, c->damaged, plural(c->damaged), plural(c->damaged));
}

static void say_resumed(const struct pl_tap_service *t, const struct pl_flow_resumed *r)
{
	const struct pl_flow_found *found = pl_flow_state_found(t->state);
	const double seconds = (double)r->unseen_ns / 1e9;

	if (found->differs != NULL)
		pl_say("flow state %s: %s: %" PRIu64 " flow%s ended with what %s counted (%" PRIu64
		       " packets so far, %" PRIu64 " of them in %" PRIu64 " records of before)",
			t->o->flow_state, found->differs, r->ended, plural(r->ended),
			r->ended == 1 ? "it had" : "they had", r->packets, r->records_packets,
			r->records);
	else
		pl_say("flow state %s: %" PRIu64 " flow%s on, %" PRIu64
		       " ended meanwhile, unseen for %.1f s (%" PRIu64
		       " packets counted so far, %" PRIu64 " of them in %" PRIu64 " records)",
			t->o->flow_state, r->flows, r->flows == 1 ? " goes" : "s go", r->ended,
			seconds, r->packets, r->records_packets, r->records);
}

/* Resumed flows have times of their earlier clocks, too. */
static void tell_clocks(struct pl_tap_service *t)
{
	const uint32_t clocks = pl_flow_cache_clocks(t->flows);

	for (unsigned int kind = 0; kind < PL_STAMP_KINDS; kind++) {
		if ((clocks & 1u << kind) != 0)
			pl_tap_service_clock(t, (enum pl_clock_kind)kind);
	}
}

int pl_tap_state_begin(struct pl_tap_service *t, struct pl_diag *diag)
{
	const struct pl_flow_found *found;
	struct pl_flow_resumed resumed;
	int r;

	if (t->state == NULL || t->state_begun)
		return 0;
	t->state_begun = true;
	tell_clocks(t);
	found = pl_flow_state_found(t->state);
	r = pl_flow_cache_resume(t->flows, t->state_boot_ns, &resumed, diag);
	/* The resume has set the clock on over the outage. */
	if (resumed.was_there)
		pl_flow_cache_begin_live(t->flows, t->state_mono_ns);
	if (found->lost != NULL)
		say_lost(t, found);
	if (resumed.was_there)
		say_resumed(t, &resumed);
	say_torn(t, &resumed);
	return r;
}

/* ---- at work ---- */

void pl_tap_state_look(struct pl_tap_service *t)
{
	uint64_t pages, flows;

	if (t->state == NULL)
		return;
	flows = pl_flow_cache_cut(t->flows, &pages);
	t->state_cut = t->state_cut || pages > 0;
	if (pages > 0)
		pl_say("flow state %s: the file was cut by another process: %" PRIu64
		       " flow%s lost; the rest goes on until the tap ends, and nothing is kept any more",
			t->o->flow_state, flows, flows == 1 ? " is" : "s are");
}

void pl_tap_state_points(struct pl_tap_service *t)
{
	struct pl_flow_point points[PL_FLOW_POINTS];

	if (t->state != NULL)
		pl_flow_state_points(t->state, points, pl_tap_places_points(t, points));
}

void pl_tap_state_leave(struct pl_tap_service *t)
{
	pl_flow_cache_expire_live(t->flows, pl_clock_mono_ns());
	pl_flow_cache_leave(t->flows, 0);
}

void pl_tap_state_close(struct pl_tap_service *t)
{
	pl_flow_state_close(t->state);
	t->state = NULL;
}
