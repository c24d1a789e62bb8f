/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random networks against an evaluation that knows each packet's fate: while delay and clocks are
 * within what the method bears, loss is exact in every block; where they are not, a wrong number
 * never comes without an alarm.
 */
#include "base/rng.h"
#include "mark/test_path.h"

#define SEEDS   3000u
#define EACH    40u /* packets of a block, about */
#define LENGTH  8u  /* blocks */
#define METHODS 4u

static struct test_path path;
static const uint8_t methods[METHODS] = { PL_MARK_STEP, PL_MARK_DOUBLE, PL_MARK_MULTIPLEXED,
	PL_MARK_CYCLIC };

/* Bound below which delay and clocks must stay for exact results. */
static uint64_t limit_of(uint8_t method)
{
	return method == PL_MARK_MULTIPLEXED ? PERIOD / 4
	       : method == PL_MARK_CYCLIC    ? PERIOD / 2 * 3
					     : PERIOD / 2;
}

struct truth {
	uint64_t sent, lost, copies, windows;
	int64_t pulse_ns; /* delay of the packet that was the pulse */
};

static struct truth truths[LENGTH];

/* Evaluates the fate of the packets by nothing but their times. The pulse is the first packet at or
 * behind the middle of the block, and before the end of the window. */
static void evaluate(uint64_t window_ns)
{
	memset(truths, 0, sizeof(truths));
	for (unsigned int k = 0; k < LENGTH; k++) {
		struct truth *t = &truths[k];

		for (uint32_t i = 0; i < path.n; i++) {
			const struct test_packet *p = &path.packets[i];
			const uint64_t from = (ZERO + k) * PERIOD;

			if (p->sent_ns < from || p->sent_ns >= from + PERIOD)
				continue;
			t->sent++;
			t->lost += p->lost;
			t->copies += p->lost ? 0 : p->copies;
			if (p->sent_ns < from + PERIOD / 2 || p->sent_ns >= from + window_ns ||
				t->windows != 0)
				continue;
			t->windows = p->lost ? 2 : 1 + 2u * p->copies;
			t->pulse_ns = (int64_t)p->delay_ns + path.offset_ns;
		}
	}
}

/* Times that ascend, in bursts and gaps; fates by the seed. */
static void make(struct pl_rng *rng, uint64_t spread_ns)
{
	const double loss = pl_rng_below(rng, 4) == 0 ? 0 : pl_rng_unit(rng) * 0.3;
	const double copies = pl_rng_below(rng, 2) == 0 ? 0 : pl_rng_unit(rng) * 0.1;
	uint64_t at = ZERO * PERIOD + pl_rng_below(rng, PERIOD / EACH);
	unsigned int burst = 0;

	path.n = 0;
	while (at < (ZERO + LENGTH) * PERIOD && path.n < PACKETS_MAX / 4) {
		if (burst == 0 && pl_rng_below(rng, 50) == 0)
			burst = 1 + (unsigned int)pl_rng_below(rng, 30);
		path.packets[path.n++] = (struct test_packet){
			.sent_ns = at,
			.delay_ns = pl_rng_below(rng, spread_ns),
			.lost = burst > 0 ? pl_rng_below(rng, 4) != 0 : pl_rng_unit(rng) < loss,
			.copies = pl_rng_unit(rng) < copies,
		};
		burst -= burst > 0;
		at += 1 + pl_rng_below(rng, 2 * PERIOD / EACH);
		if (pl_rng_below(rng, 100) == 0)
			at += pl_rng_below(rng, 2 * PERIOD);
	}
}

static const struct pl_mark_result *result(unsigned int k)
{
	return &path.results[k + BEFORE];
}

/* Blocks whose loss is not what it was. Those that had no packet at either end may be missing. */
static unsigned int wrong_losses(uint32_t *ret_alarms)
{
	unsigned int wrong = 0;

	*ret_alarms = 0;
	for (unsigned int k = 0; k < BLOCKS; k++)
		*ret_alarms |= path.results[k].alarms;
	for (unsigned int k = 0; k < LENGTH; k++) {
		const struct truth *t = &truths[k];

		if (t->sent == 0 && !path.has[k + BEFORE])
			continue;
		/* A meter knows no flow of which nothing came yet. */
		if (t->lost == t->sent && (result(k)->alarms & PL_MARK_ALARM_MISSING) != 0)
			continue;
		wrong += (result(k)->has & PL_MARK_HAS_LOSS) == 0 ||
			 result(k)->loss != (int64_t)t->lost - (int64_t)t->copies ||
			 result(k)->sent != t->sent;
	}
	return wrong;
}

static unsigned int wrong_delays(void)
{
	unsigned int wrong = 0;

	for (unsigned int k = 0; k < LENGTH; k++) {
		const struct truth *t = &truths[k];
		const bool told = (result(k)->has & PL_MARK_HAS_DELAY) != 0;

		wrong += told && (t->windows != 1 || result(k)->delay_ns != t->pulse_ns);
		wrong += !told && t->windows == 1;
	}
	return wrong;
}

static void start(uint8_t method, uint64_t guard_ns)
{
	path.method = method;
	path.guard_ns = guard_ns;
	path.clock_ns = PERIOD;
	path.tai_offset[0] = path.tai_offset[1] = 37;
}

static void within(void)
{
	struct pl_rng rng;
	unsigned int bad = 0, bad_delays = 0, first_bad = 0, alarmed = 0;
	uint64_t packets = 0;

	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		const uint8_t method = methods[seed % METHODS];
		const uint64_t limit = limit_of(method);
		uint64_t guard, spread;
		uint32_t alarms;
		unsigned int wrong;

		pl_rng_seed(&rng, seed);
		guard = limit / 4 + pl_rng_below(&rng, limit / 8 * 5);
		spread = 1 + guard / 8 * (seed % 7);
		start(method, guard);
		/* -guard < clocks, and clocks + delay < guard */
		path.offset_ns =
			(int64_t)pl_rng_below(&rng, 2 * guard - spread - 1) - (int64_t)guard + 1;
		make(&rng, spread);
		evaluate(method == PL_MARK_MULTIPLEXED ? PERIOD / 4 * 3 - path.guard_ns
			 : method == PL_MARK_CYCLIC    ? 0
						       : PERIOD - path.guard_ns);
		test_run(&path);
		packets += path.n;
		wrong = wrong_losses(&alarms);
		if (wrong > 0 && bad++ == 0)
			first_bad = seed;
		if (method == PL_MARK_DOUBLE || method == PL_MARK_MULTIPLEXED)
			bad_delays += wrong_delays();
		alarmed += (alarms & PL_MARK_ALARM_BEYOND) != 0;
	}
	eq(bad, 0, "loss is exact in all blocks of %u seeds, %" PRIu64 " packets (first: %u)",
		SEEDS, packets, first_bad);
	eq(bad_delays, 0, "delays are those of the pulses, and there when these were");
	eq(alarmed, 0, "no alarm while all is within the guard band");
}

static void beyond(void)
{
	struct pl_rng rng;
	unsigned int silent = 0, first_silent = 0, wrong_runs = 0;

	for (unsigned int seed = 1; seed <= SEEDS; seed++) {
		const uint8_t method = methods[seed % METHODS];
		const uint64_t limit = limit_of(method);
		uint32_t alarms;

		pl_rng_seed(&rng, 1000000 + seed);
		start(method, limit / 2);
		path.offset_ns = (int64_t)(limit + pl_rng_below(&rng, PERIOD / 2));
		if (seed / METHODS % 2 == 0)
			path.offset_ns = -path.offset_ns;
		make(&rng, 1 + limit / 4);
		evaluate(PERIOD);
		test_run(&path);
		if (wrong_losses(&alarms) == 0)
			continue;
		wrong_runs++;
		if ((alarms & (PL_MARK_ALARM_BEYOND | PL_MARK_ALARM_PULSES)) == 0 && silent++ == 0)
			first_silent = seed;
	}
	ok(wrong_runs > SEEDS / 2, "clocks beyond the limit make numbers wrong (%u runs)",
		wrong_runs);
	eq(silent, 0, "which is never silent (first: %u)", first_silent);
}

int main(void)
{
	within();
	beyond();
	return pl_test_done();
}
