/* SPDX-License-Identifier: BSD-2-Clause */
/* Live sources whose clocks differ, and times that were made up. */
#include "flow/test_packets.h"

#include "flow/cache_state.h"

enum { UDP = 17, TENTHS = 500 };

#define TENTH (SECOND / 10)
#define HOUR  (3600 * SECOND)

/* A source that sends a packet every `every` tenths of a second. */
struct source {
	int64_t ahead_ns; /* of its clock to the true one */
	unsigned int every;
	uint16_t port;
	bool received; /* from elsewhere, so that its times are doubted */
};

struct run {
	struct pl_flow_cache *cache;
	struct kept kept;
	const struct pl_flow_counters *n;
};

static void start(struct run *run)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;

	config.max_flows = 64;
	config.live = true;
	run->cache = new_cache(&config, &run->kept);
	run->n = pl_flow_cache_counters(run->cache);
}

static void done(struct run *run)
{
	pl_flow_cache_free(run->cache);
	free(run->kept.records);
}

/* The true time; the receiver's clock that never steps began 1000 s before EPOCH. */
static uint64_t mono_of(uint64_t true_ns)
{
	return true_ns - EPOCH + 1000 * SECOND;
}

static void send(struct run *run, const struct source *s, uint64_t true_ns)
{
	const struct pl_pkt96 p = packet(true_ns + (uint64_t)s->ahead_ns, 0, s->port, UDP);

	pl_flow_cache_feed_live(run->cache, &p, 1, mono_of(true_ns),
		s->received ? true_ns + PL_FLOW_AHEAD_NS : UINT64_MAX);
}

/* Sends from the n sources between two tenths of a second; flows are looked at every second. */
static void play(
	struct run *run, const struct source *s, unsigned int n, unsigned int from, unsigned int to)
{
	for (unsigned int t = from; t < to; t++) {
		for (unsigned int i = 0; i < n; i++) {
			if (t % s[i].every == 0)
				send(run, &s[i], EPOCH + t * TENTH);
		}
		if (t % 10 == 9)
			pl_flow_cache_expire_live(run->cache, mono_of(EPOCH + t * TENTH));
	}
}

/* Records of the flow with this port, and their packets. */
static unsigned int records_of(const struct run *run, uint16_t port, uint64_t *ret_packets)
{
	unsigned int n = 0;

	*ret_packets = 0;
	for (uint32_t i = 0; i < run->kept.n; i++) {
		if (run->kept.records[i].sport != port)
			continue;
		n++;
		*ret_packets += run->kept.records[i].pkts_fwd;
	}
	return n;
}

/* The flow of the source with port 1 is one record of all packets, whatever the other one says. */
static const struct {
	const char *name;
	struct source one, other;
	unsigned int records; /* of the other one; 0: not asked */
	uint64_t ahead, behind;
} pairs[] = {
	{ "equal clocks", { 0, 1, 1, true }, { 0, 1, 2, true }, 1, 0, 0 },
	{ "20 s apart", { 0, 1, 1, true }, { -20 * (int64_t)SECOND, 1, 2, true }, 1, 0, 0 },
	{ "the slower one is rare", { 0, 1, 1, true }, { -20 * (int64_t)SECOND, 100, 2, true }, 1,
		0, 0 },
	{ "the faster one is rare", { -20 * (int64_t)SECOND, 1, 1, true }, { 0, 100, 2, true }, 1,
		0, 0 },
	{ "59 s ahead and 60 s behind", { -60 * (int64_t)SECOND, 1, 1, true },
		{ 59 * (int64_t)SECOND, 1, 2, true }, 1, 0, 0 },
	{ "interfaces with clocks of their own", { -(int64_t)EPOCH + (int64_t)HOUR, 1, 1, false },
		{ -(int64_t)EPOCH + (int64_t)HOUR + 40 * (int64_t)SECOND, 1, 2, false }, 1, 0, 0 },
	{ "a forged time of tomorrow", { 0, 1, 1, true }, { 24 * (int64_t)HOUR, 50, 2, true }, 0,
		10, 0 },
	{ "a forged time within the bound", { 0, 1, 1, true },
		{ 59 * (int64_t)SECOND, 50, 2, true }, 0, 0, 0 },
	{ "a forged time without end", { 0, 1, 1, true }, { INT64_MAX, 50, 2, true }, 0, 10, 0 },
	{ "a forged time of yesterday", { 0, 1, 1, true }, { -24 * (int64_t)HOUR, 1, 2, true },
		TENTHS, 0, TENTHS },
};

static void keeps_flows_whole(unsigned int i)
{
	const struct source sources[2] = { pairs[i].one, pairs[i].other };
	uint64_t packets;
	struct run run;

	start(&run);
	play(&run, sources, 2, 0, TENTHS);
	pl_flow_cache_finish(run.cache);
	eq(records_of(&run, 1, &packets), 1, "%s: the flow is one record", pairs[i].name);
	eq(packets, TENTHS / pairs[i].one.every, "%s: with all packets", pairs[i].name);
	if (pairs[i].records != 0)
		eq(records_of(&run, 2, &packets), pairs[i].records, "%s: records of the other",
			pairs[i].name);
	eq(run.n->ahead, pairs[i].ahead, "%s: ahead", pairs[i].name);
	eq(run.n->behind, pairs[i].behind, "%s: behind", pairs[i].name);
	done(&run);
}

static void tells_how_far_they_are_apart(void)
{
	const struct source sources[2] = { { 0, 1, 1, true },
		{ -20 * (int64_t)SECOND, 1, 2, true } };
	struct run run;

	start(&run);
	play(&run, sources, 2, 0, 20);
	eq(run.n->apart_ns, 20 * SECOND);
	play(&run, sources, 1, 20, TENTHS);
	eq(run.n->apart_ns, 0, "the slower one was silent for two idle timeouts");
	done(&run);
}

/* A flow ends by its own source's clock, of the faster one at most so much later. */
static void ends_who_is_idle(void)
{
	const struct source sources[2] = { { 0, 1, 1, true },
		{ -20 * (int64_t)SECOND, 1, 2, true } };
	const struct source gap[2] = { { 0, 160, 3, true }, { -20 * (int64_t)SECOND, 1, 2, true } };
	uint64_t packets;
	struct run run;

	start(&run);
	play(&run, sources, 2, 0, 10);
	play(&run, &sources[0], 1, 10, 170);
	eq(records_of(&run, 2, &packets), 1, "the slower one's flow is over 15 s after its last");
	eq(records_of(&run, 1, &packets), 0, "the other goes on");
	pl_flow_cache_finish(run.cache);
	done(&run);
	start(&run);
	play(&run, gap, 2, 0, 170);
	pl_flow_cache_finish(run.cache);
	eq(records_of(&run, 3, &packets), 2, "a gap of 16 s divides the faster one's flow as well");
	done(&run);
}

/* A source alone may have any clock; it gives way to one that is possible. */
static void takes_any_clock_of_one_alone(void)
{
	const int64_t off[] = { 24 * (int64_t)HOUR, -24 * (int64_t)HOUR, -(int64_t)EPOCH };
	uint64_t packets;

	for (unsigned int i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
		const struct source alone = { off[i], 1, 1, true }, right = { 0, 1, 2, true };
		struct run run;

		start(&run);
		play(&run, &alone, 1, 0, 300);
		play(&run, &right, 1, 300, 400);
		pl_flow_cache_finish(run.cache);
		eq(records_of(&run, 1, &packets), 1, "its flow is one record");
		eq(records_of(&run, 2, &packets), 1, "and that of the right clock");
		eq(run.n->ahead, off[i] > 0 ? 300 : 0);
		done(&run);
	}
}

/* An interface's clock is set; after two idle timeouts at most it is the one that holds. */
static void follows_a_step(int64_t step_ns)
{
	struct source s = { 0, 1, 1, false };
	uint64_t records;
	struct run run;

	start(&run);
	play(&run, &s, 1, 0, 100);
	s.ahead_ns = step_ns;
	play(&run, &s, 1, 100, 500);
	records = run.n->started;
	play(&run, &s, 1, 500, 1000);
	eq(run.n->started, records, "flows are whole again after a step");
	eq(run.n->set_back, step_ns < 0, "and a clock that was set back is counted");
	done(&run);
}

/* The clock of an interface is set back by an hour: after a second, and 256 packets, its flows are whole
 * again. Received packets of such a time do not tell. */
static void follows_a_step_soon(bool received, uint64_t behind)
{
	struct source s = { 0, 1, 1, received };
	struct run run;

	start(&run);
	play(&run, &s, 1, 0, 100);
	s.ahead_ns = -(int64_t)HOUR;
	for (unsigned int t = 1000; t < 1140; t++) {
		for (unsigned int i = 0; i < 30; i++)
			send(&run, &s, EPOCH + t * TENTH / 10);
	}
	eq(run.n->behind, behind, "packets until then");
	eq(run.n->set_back, !received, "a clock that was set back is counted");
	done(&run);
}

int main(void)
{
	for (unsigned int i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		keeps_flows_whole(i);
	tells_how_far_they_are_apart();
	ends_who_is_idle();
	takes_any_clock_of_one_alone();
	follows_a_step((int64_t)HOUR);
	follows_a_step(-(int64_t)HOUR);
	follows_a_step_soon(false, 2700);
	follows_a_step_soon(true, 140 * 30);
	return pl_test_done();
}
