/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Situations with results that were worked out by hand: blocks of 1 s, 1000 packets in each at
 * (i + 0.5) ms, 10 ms on the way. What the method would say and is not published is looked at in the
 * records.
 */
#include "mark/test_path.h"

static struct test_path path;

#define SPREAD (40 * MS) /* the guard band of most */

static void start_n(uint8_t method, unsigned int blocks, unsigned int each)
{
	memset(&path, 0, sizeof(path));
	path.method = method;
	path.guard_ns = SPREAD;
	path.clock_ns = 1; /* same clocks unless told otherwise */
	for (unsigned int k = 0; k < blocks; k++) {
		for (unsigned int i = 0; i < each; i++)
			path.packets[path.n++] = (struct test_packet){
				.sent_ns = (ZERO + k) * PERIOD + (2 * i + 1) * (PERIOD / each / 2),
				.delay_ns = 10 * MS,
			};
	}
}

static void start(uint8_t method)
{
	start_n(method, 4, 1000);
}

static struct test_packet *packet(unsigned int block, unsigned int i)
{
	return &path.packets[block * 1000 + i];
}

static void lose(unsigned int block, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i <= to; i++)
		packet(block, i)->lost = true;
}

static const struct pl_mark_result *result(int block)
{
	return &path.results[block + BEFORE];
}

static const struct pl_mark128 *seen(unsigned int point, int block)
{
	return &path.records[point - 1][block + BEFORE];
}

static bool loss_is(int block, int64_t loss)
{
	const struct pl_mark_result *r = result(block);

	if ((r->has & PL_MARK_HAS_LOSS) != 0 && r->loss == loss)
		return true;
	printf("# block %d: has %x alarms %x loss %" PRId64 "\n", block, r->has, r->alarms,
		r->loss);
	return false;
}

/* In microseconds. */
static bool delay_is(int block, int64_t us)
{
	const struct pl_mark_result *r = result(block);

	if ((r->has & PL_MARK_HAS_DELAY) != 0 && r->delay_ns == us * 1000)
		return true;
	printf("# block %d: has %x alarms %x delay %" PRId64 " ns\n", block, r->has, r->alarms,
		r->delay_ns);
	return false;
}

static bool mean_is(int block, int64_t us)
{
	const struct pl_mark_result *r = result(block);

	return (r->has & PL_MARK_HAS_MEAN) != 0 && r->mean_ns == us * 1000;
}

static bool first_is(int block, int64_t us)
{
	const struct pl_mark_result *r = result(block);

	return (r->has & PL_MARK_HAS_FIRST) != 0 && r->first_ns == us * 1000;
}

static bool lacks(int block, uint32_t what)
{
	return (result(block)->has & what) == 0;
}

/* Difference of the mean offsets in the two points' records, in units of 100 ns. */
static int64_t raw_mean(int block)
{
	const struct pl_mark128 *s = seen(1, block), *r = seen(2, block);
	const double mean =
		(double)r->sum_ns / (double)r->packets - (double)s->sum_ns / (double)s->packets;

	return (int64_t)(mean / 100 + (mean < 0 ? -0.5 : 0.5));
}

static int64_t raw_first_us(int block)
{
	return (seen(2, block)->first_ns - seen(1, block)->first_ns) / 1000;
}

static bool others_are(int64_t us, unsigned int blocks, unsigned int but, bool pulses)
{
	bool good = true;

	for (unsigned int k = 0; k < blocks; k++) {
		if ((but >> k & 1) != 0)
			continue;
		good &= loss_is((int)k, 0) && mean_is((int)k, us) && first_is((int)k, us);
		good &= !pulses || delay_is((int)k, us);
	}
	return good;
}

static const uint8_t colours[] = { PL_MARK_STEP, PL_MARK_DOUBLE, PL_MARK_MULTIPLEXED };

static bool pulses(uint8_t method)
{
	return method != PL_MARK_STEP;
}

static void nothing_happens(uint8_t method)
{
	start(method);
	test_run(&path);
	ok(others_are(10000, 4, 0, pulses(method)), "N1, method %u: nothing happens", method);
	eq(result(2)->alarms, 0, "no alarm");
	ok(!pulses(method) || ((result(1)->has & PL_MARK_HAS_JITTER) != 0 &&
				      result(1)->jitter_ns == 0 && lacks(0, PL_MARK_HAS_JITTER)),
		"jitter from the second block on");
}

static void losses(uint8_t method)
{
	start(method);
	lose(1, 123, 123);
	test_run(&path);
	ok(loss_is(1, 1) && others_are(10000, 4, 2, pulses(method)), "N3: one packet is lost");
	ok(raw_mean(1) == 103769 && lacks(1, PL_MARK_HAS_MEAN),
		"the difference of means says 10.3769 ms, which is not told");
	ok(!pulses(method) || delay_is(1, 10000), "the pulse is not touched");

	start(method);
	lose(1, 0, 0);
	test_run(&path);
	ok(loss_is(1, 1) && others_are(10000, 4, 2, pulses(method)), "N4: the first one is lost");
	ok(raw_first_us(1) == 11000 && lacks(1, PL_MARK_HAS_FIRST) && raw_mean(1) == 105000,
		"the first that arrived says 11 ms, which is not told");

	start(method);
	lose(1, 900, 999);
	test_run(&path);
	ok(loss_is(1, 100) && others_are(10000, 4, 2, pulses(method)), "N5: the last 100 are lost");
	ok(raw_mean(1) == -400000 && lacks(1, PL_MARK_HAS_MEAN), "a mean of -40 ms is not told");

	start(method);
	lose(1, 0, 99);
	test_run(&path);
	ok(loss_is(1, 100) && raw_first_us(1) == 110000 && raw_mean(1) == 600000 &&
			others_are(10000, 4, 2, pulses(method)),
		"N6: the first 100 are lost");

	start(method);
	lose(1, 950, 999);
	lose(2, 0, 49);
	test_run(&path);
	ok(loss_is(1, 50) && loss_is(2, 50) && raw_first_us(2) == 60000 && raw_mean(1) == -150000 &&
			raw_mean(2) == 350000 && others_are(10000, 4, 6, pulses(method)),
		"N7: a burst across the boundary");

	start(method);
	lose(1, 0, 999);
	test_run(&path);
	ok(loss_is(1, 1000) && others_are(10000, 4, 2, pulses(method)), "N8: a block is lost");
	ok(lacks(1, PL_MARK_HAS_DELAY | PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST),
		"of which there are no delays");
	eq(result(1)->sent, 1000);
	eq(result(1)->received, 0);
}

static void reordering(uint8_t method)
{
	start(method);
	packet(0, 999)->delay_ns = 40 * MS;
	test_run(&path);
	ok(loss_is(0, 0) && mean_is(0, 10030) && first_is(0, 10000) &&
			others_are(10000, 4, 1, pulses(method)),
		"N9: one packet crosses the boundary");
	eq(result(0)->late, 10, "ten are late, the straggler among them");

	start(method);
	packet(1, 0)->delay_ns = 14500 * US;
	test_run(&path);
	ok(loss_is(1, 0) && first_is(1, 11000) && raw_mean(1) == 100045 &&
			others_are(10000, 4, 2, pulses(method)),
		"N10: the first packet is overtaken");
}

static void many_packets(void)
{
	start_n(PL_MARK_STEP, 2, 10000);
	for (unsigned int i = 0; i < 500; i++)
		path.packets[10000 + 13 * i].lost = true;
	test_run(&path);
	ok(loss_is(0, 0) && loss_is(1, 500), "N2: 500 of 10000 are lost");
	eq(result(1)->sent, 10000);
}

static void pulse_marking(void)
{
	start(PL_MARK_PULSE);
	test_run(&path);
	ok(lacks(0, PL_MARK_HAS_LOSS) && loss_is(1, 0) && loss_is(2, 0) && loss_is(3, 0) &&
			delay_is(0, 10000) && delay_is(3, 10000),
		"pulse marking: N1");
	start(PL_MARK_PULSE);
	lose(1, 123, 123);
	test_run(&path);
	ok(loss_is(1, 0) && loss_is(2, 1) && loss_is(3, 0), "N3 is in the interval 1 to 2");
	start(PL_MARK_PULSE);
	lose(1, 0, 0);
	test_run(&path);
	ok(lacks(1, PL_MARK_HAS_LOSS | PL_MARK_HAS_DELAY) && loss_is(2, 1) && loss_is(3, 0),
		"N4: a lost pulse joins two intervals");
	eq(result(2)->since, ZERO, "and the result says from where");
	eq(result(2)->sent, 2000);
	start(PL_MARK_PULSE);
	lose(1, 900, 999);
	test_run(&path);
	ok(loss_is(1, 0) && loss_is(2, 100) && loss_is(3, 0), "N5: 1 to 2 lose 100");
	start(PL_MARK_PULSE);
	lose(1, 0, 99);
	test_run(&path);
	ok(lacks(1, PL_MARK_HAS_LOSS | PL_MARK_HAS_DELAY) && loss_is(2, 100) && loss_is(3, 0),
		"N6: 0 to 2 lose 100");
	start(PL_MARK_PULSE);
	lose(1, 950, 999);
	lose(2, 0, 49);
	test_run(&path);
	ok(loss_is(1, 0) && loss_is(3, 100), "N7: 1 to 3 lose 100");
	start(PL_MARK_PULSE);
	lose(1, 0, 999);
	test_run(&path);
	ok(loss_is(2, 1000), "N8: 0 to 2 lose 1000");
	start(PL_MARK_PULSE);
	packet(0, 999)->delay_ns = 40 * MS;
	test_run(&path);
	ok(loss_is(1, 1) && loss_is(2, -1), "N9: a packet crosses the pulse");
	ok((result(2)->alarms & PL_MARK_ALARM_NEGATIVE) != 0, "and is seen to");
	start(PL_MARK_PULSE);
	packet(1, 0)->delay_ns = 14500 * US;
	test_run(&path);
	ok(loss_is(1, -4) && loss_is(2, 4) && delay_is(1, 14500), "N10: the pulse is overtaken");
}

static void offsets(void)
{
	start(PL_MARK_STEP);
	path.offset_ns = 300 * (int64_t)MS;
	path.guard_ns = 400 * MS;
	test_run(&path);
	ok(others_are(310000, 4, 0, false), "N11a: clocks 300 ms apart, step: no loss, 310 ms");
	path.guard_ns = SPREAD;
	test_run(&path);
	ok(loss_is(1, 0) && (result(1)->alarms & PL_MARK_ALARM_BEYOND) != 0 &&
			lacks(1, PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST),
		"delays that the guard band does not allow are not told");
}

/* Packets that the meter found in the block. */
static bool received(int block, uint64_t packets, unsigned int pulse_count)
{
	const struct pl_mark128 *r = seen(2, block);

	if (r->packets == packets && r->pulses == pulse_count)
		return true;
	printf("# block %d: %" PRIu64 " packets, %u pulses\n", block, r->packets, r->pulses);
	return false;
}

static void offsets_multiplexed(void)
{
	start_n(PL_MARK_MULTIPLEXED, 5, 1000);
	path.offset_ns = 300 * (int64_t)MS;
	test_run(&path);
	ok(received(0, 939, 0) && received(1, 1000, 60) && received(4, 1000, 60) &&
			received(5, 61, 60),
		"N11a, multiplexed: 60 packets of each block look like pulses");
	for (int k = 0; k < 5; k++)
		ok(lacks(k, PL_MARK_HAS_DELAY) &&
				(result(k)->alarms &
					(k > 0 ? PL_MARK_ALARM_PULSES : PL_MARK_ALARM_BEYOND)) != 0,
			"no delay, an alarm");

	start_n(PL_MARK_MULTIPLEXED, 5, 1000);
	path.offset_ns = -300 * (int64_t)MS;
	test_run(&path);
	ok(received(-1, 41, 40) && received(0, 1000, 40) && received(3, 1000, 40) &&
			received(4, 959, 0),
		"N11b, multiplexed: 300 ms the other way");
	for (int k = 0; k < 5; k++)
		ok(lacks(k, PL_MARK_HAS_DELAY) && (result(k)->alarms & PL_MARK_ALARM_BEYOND) != 0,
			"no delay, an alarm");

	start_n(PL_MARK_MULTIPLEXED, 5, 1000);
	path.offset_ns = 240 * (int64_t)MS;
	path.guard_ns = 249 * MS;
	test_run(&path);
	ok(received(0, 999, 0) && received(1, 1000, 0) && received(5, 1, 0),
		"N11e: a quarter of a period exactly is too much");
	ok((result(1)->alarms & PL_MARK_ALARM_PULSES) != 0, "and is seen");
	start_n(PL_MARK_MULTIPLEXED, 5, 1000);
	path.offset_ns = -250 * (int64_t)MS;
	path.guard_ns = 249 * MS;
	path.clock_ns = 250 * MS;
	test_run(&path);
	ok(loss_is(0, 0) && loss_is(4, 0) && delay_is(0, -240000) && delay_is(4, -240000),
		"-250 ms is not, with clocks that may be so far apart");
}

static void offsets_beyond(void)
{
	start_n(PL_MARK_STEP, 4, 1000);
	path.offset_ns = -300 * (int64_t)MS;
	path.clock_ns = 300 * MS;
	path.guard_ns = 310 * MS;
	test_run(&path);
	ok(others_are(-290000, 4, 0, false), "N11b, step: no loss, -290 ms");
	path.clock_ns = 100 * MS;
	test_run(&path);
	ok(loss_is(1, 0) && lacks(1, PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST) &&
			(result(1)->alarms & PL_MARK_ALARM_CLOCK_FAULT) != 0,
		"where clocks are said to be closer, it is a fault of theirs");

	start_n(PL_MARK_STEP, 5, 1000);
	path.offset_ns = 600 * (int64_t)MS;
	test_run(&path);
	ok(received(0, 890, 0) && received(1, 890, 0) && received(2, 1000, 0) &&
			received(4, 1000, 0) && received(5, 110, 0) && received(6, 110, 0),
		"N11c: 600 ms: blocks lose to the one behind the next");
	for (int k = 0; k < 7; k++)
		ok((result(k)->alarms & PL_MARK_ALARM_BEYOND) != 0, "and say so, in all of them");
	ok(loss_is(5, -110) && loss_is(6, -110) && result(5)->sent == 0 && result(6)->sent == 0,
		"those behind receive what nobody sent in them");
	eq(-seen(2, 3)->first_ns, 499500 * US, "first packets come half a period early");

	start_n(PL_MARK_STEP, 5, 1000);
	path.offset_ns = -600 * (int64_t)MS;
	test_run(&path);
	ok(received(-2, 90, 0) && received(-1, 90, 0) && received(0, 1000, 0) &&
			received(2, 1000, 0) && received(3, 910, 0) && received(4, 910, 0),
		"N11d: the other way");
	ok((result(1)->alarms & PL_MARK_ALARM_BEYOND) != 0, "and say so");
}

static void time_scales(void)
{
	start(PL_MARK_STEP);
	path.tai_offset[0] = 37;
	path.offset_ns = 37 * 1000 * -(int64_t)MS;
	test_run(&path);
	for (int k = -BEFORE; k < BLOCKS - BEFORE; k++) {
		if (path.has[k + BEFORE])
			ok(lacks(k, PL_MARK_HAS_LOSS),
				"N12: TAI of one point only: no loss is told");
	}
	ok((result(3)->alarms & PL_MARK_ALARM_CLOCK_DOMAIN) != 0 ||
			(path.results[BLOCKS - 1].alarms & PL_MARK_ALARM_CLOCK_DOMAIN) != 0,
		"and the cause is");
	start(PL_MARK_STEP);
	path.tai_offset[0] = 37;
	test_run(&path);
	ok(lacks(1, PL_MARK_HAS_LOSS) && (result(1)->alarms & PL_MARK_ALARM_CLOCK_DOMAIN) != 0,
		"blocks that have the same number by chance are not compared either");
}

static void idle(uint8_t method)
{
	start(method);
	for (unsigned int i = 0; i < 1000; i++)
		*packet(2, i) = *packet(3, i);
	path.n = 3000;
	test_run(&path);
	ok(path.has[2 + BEFORE] && loss_is(2, 0) && result(2)->sent == 0 &&
			lacks(2, PL_MARK_HAS_DELAY | PL_MARK_HAS_MEAN | PL_MARK_HAS_FIRST) &&
			others_are(10000, 4, 4, pulses(method)),
		"N13: an idle block");

	start(method);
	memmove(packet(1, 400), packet(2, 0), 2000 * sizeof(path.packets[0]));
	path.n = 3400;
	test_run(&path);
	ok(loss_is(1, 0) && mean_is(1, 10000) && first_is(1, 10000) &&
			lacks(1, PL_MARK_HAS_DELAY) && result(1)->pulses_sent == 0 &&
			result(1)->pulses_received == 0 && others_are(10000, 4, 2, pulses(method)),
		"N14: a block that ends before its pulse");
	eq(result(1)->alarms, 0, "which is no fault");
}

static void pulse_faults(uint8_t method)
{
	start(method);
	lose(1, 500, 500);
	test_run(&path);
	ok(loss_is(1, 1) && result(1)->pulses_sent == 1 && result(1)->pulses_received == 0 &&
			lacks(1, PL_MARK_HAS_DELAY | PL_MARK_HAS_MEAN) &&
			others_are(10000, 4, 2, true),
		"N15: the pulse is lost");
	eq(raw_mean(1), 99995, "the difference of means says 9.9995 ms");

	start(method);
	packet(1, 500)->delay_ns = 300 * MS;
	test_run(&path);
	if (method == PL_MARK_DOUBLE)
		ok(loss_is(1, 0) && delay_is(1, 300000), "N16: the pulse takes 300 ms");
	else
		ok(loss_is(1, 1) && loss_is(2, -1) && lacks(1, PL_MARK_HAS_DELAY) &&
				(result(2)->alarms & PL_MARK_ALARM_BEYOND) != 0 &&
				(result(2)->alarms & PL_MARK_ALARM_NEGATIVE) != 0,
			"N16: the pulse takes 300 ms and is of the next block: seen");

	start(method);
	packet(1, 501)->flip = method == PL_MARK_DOUBLE ? 2 : 1;
	test_run(&path);
	ok(loss_is(1, 0) && result(1)->pulses_received == 2 && lacks(1, PL_MARK_HAS_DELAY) &&
			(result(1)->alarms & PL_MARK_ALARM_PULSES) != 0 &&
			others_are(10000, 4, 2, true),
		"N18: two pulses: no delay, loss is not touched");
	start(method);
	packet(1, 500)->copies = 1;
	test_run(&path);
	ok(loss_is(1, -1) && lacks(1, PL_MARK_HAS_DELAY) &&
			(result(1)->alarms & PL_MARK_ALARM_PULSES) != 0,
		"the pulse comes twice: no delay either");
}

/* Loss of a block as the published demonstration (FlaseClase) account it: its receiver counts a packet
 * by the bit that it has, so the pulse of a block is among the packets of the next one. */
static int64_t loss_by_bit(unsigned int block)
{
	int64_t loss = 0;

	for (uint32_t i = 0; i < path.n; i++) {
		const struct test_packet *p = &path.packets[i];
		const uint64_t k = p->sent_ns / PERIOD;

		loss += k == ZERO + block;
		loss -= !p->lost && k + ((k ^ p->bits) & 1) == ZERO + block;
	}
	return loss;
}

static void demonstration(void)
{
	start(PL_MARK_MULTIPLEXED);
	test_run(&path);
	ok(loss_by_bit(1) == 0 && loss_by_bit(2) == 0 && loss_by_bit(3) == 0,
		"N24: by its bits no packet is lost, either");
	start(PL_MARK_MULTIPLEXED);
	lose(1, 500, 500);
	test_run(&path);
	ok(loss_by_bit(1) == 0 && loss_by_bit(2) == 1 && loss_by_bit(3) == 0,
		"N24: by its bits a lost pulse is one of the next block");
	ok(loss_is(1, 1) && loss_is(2, 0) && loss_is(3, 0), "here it is one of its own block");
}

static void duplicates(uint8_t method)
{
	start(method);
	for (unsigned int i = 10; i < 15; i++)
		packet(2, i)->copies = 1;
	test_run(&path);
	ok(loss_is(2, -5) && (result(2)->alarms & PL_MARK_ALARM_NEGATIVE) != 0 &&
			others_are(10000, 4, 4, pulses(method)),
		"N17: five packets come twice");
	lose(2, 100, 104);
	test_run(&path);
	ok(loss_is(2, 0), "with five others lost nothing is seen: what the method cannot see");
}

static void buffers(void)
{
	struct pl_mark_cell cell = { 0 };
	const struct pl_mark_seen at =
		pl_mark_see_step(ZERO * PERIOD + 5 * MS, PERIOD, ZERO & 1, 0);

	pl_mark_cell_count(&cell, &at, 45, 64000, PERIOD, SPREAD);
	eq(cell.packets, 45, "N23: a buffer of 45 segments is 45 packets");
	eq(cell.sum_ns, 45 * 5 * MS);
}

/* Results come when meters read the block, at (k + 1.5) periods, neither earlier nor later; in cyclic marking
 * at (k + 2.5). */
static void in_time(uint8_t method)
{
	static const uint32_t ends[] = { 1, 2 };
	const struct pl_mark_segment link = {
		.from = &ends[0], .to = &ends[1], .n_from = 1, .n_to = 1
	};
	const struct pl_mark_correlator_config config = { .segments = &link,
		.n_segments = 1,
		.clock_ns = MS,
		.blocks_max = 64,
		.patience_ns = PERIOD,
		.result = test_result,
		.arg = &path };
	unsigned int early = 0, on_time = 0;
	uint32_t next = 0;

	start(method);
	if (pl_mark_correlator_new(&path.correlator, &config, NULL) < 0)
		abort();
	test_own_begin(&path);
	for (unsigned int k = 0; k < 4; k++) {
		const uint64_t at = pl_mark_read_at(method, ZERO + k, PERIOD);

		for (; next < path.n && path.packets[next].sent_ns + 10 * MS < at; next++) {
			const struct test_packet *p = &path.packets[next];

			test_own_arrive(
				&path, p->sent_ns + p->delay_ns, test_own_send(&path, p->sent_ns));
		}
		pl_mark_meter_until(path.meters[0], at - 1);
		pl_mark_meter_until(path.meters[1], at - 1);
		early += path.has[k + BEFORE];
		pl_mark_meter_until(path.meters[0], at);
		pl_mark_meter_until(path.meters[1], at);
		on_time += path.has[k + BEFORE] && loss_is((int)k, 0);
	}
	eq(early, 0, "method %u: no result before its block is read", method);
	eq(on_time, 4, "method %u: each at (k + %u.5) periods", method,
		(unsigned int)pl_mark_reach(method));
	test_own_end(&path, path.packets[path.n - 1].sent_ns + 5 * PERIOD);
	pl_mark_correlator_free(path.correlator);
	path.correlator = NULL;
}

int main(void)
{
	for (unsigned int i = 0; i < sizeof(colours); i++) {
		nothing_happens(colours[i]);
		losses(colours[i]);
		reordering(colours[i]);
		idle(colours[i]);
		duplicates(colours[i]);
		if (pulses(colours[i]))
			pulse_faults(colours[i]);
	}
	many_packets();
	pulse_marking();
	demonstration();
	offsets();
	offsets_multiplexed();
	offsets_beyond();
	time_scales();
	buffers();
	in_time(PL_MARK_STEP);
	in_time(PL_MARK_MULTIPLEXED);
	in_time(PL_MARK_CYCLIC);
	return pl_test_done();
}
