/* SPDX-License-Identifier: BSD-2-Clause */
#include "kafka/skew.h"

#include "base/test.h"

#define SECOND UINT64_C(1000000000)

static struct pl_kafka_skew skew;
static uint64_t now = 5 * SECOND;

/* A window in which partition i gets counts[i]. */
static void window(const uint64_t *counts, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pl_kafka_skew_count(&skew, i, counts[i]);
	now += PL_KAFKA_SKEW_NS;
	pl_kafka_skew_turn(&skew, now, n);
}

static void ended(void)
{
	static struct pl_kafka_skew brief;

	pl_kafka_skew_end(&brief, 0);
	eq(brief.percent, 0, "no partitions are known");
	pl_kafka_skew_count(&brief, 1, 2000);
	pl_kafka_skew_end(&brief, 2);
	eq(brief.percent, 200, "a run shorter than a window");
	pl_kafka_skew_count(&brief, 0, 90000);
	pl_kafka_skew_end(&brief, 2);
	eq(brief.percent, 200, "a window that there was stays");
}

int main(void)
{
	ended();
	pl_kafka_skew_turn(&skew, now, 4);
	eq(skew.percent, 0, "nothing is known yet");
	window((const uint64_t[]){ 1000, 1000, 1000, 1000 }, 4);
	eq(skew.percent, 100, "even");
	window((const uint64_t[]){ 1000, 1000, 5000, 1000 }, 4);
	eq(skew.percent, 250, "one has five of eight, where two are the mean");
	eq(skew.busiest, 2, "which one");
	eq(skew.partitions, 4, "of how many");
	pl_kafka_skew_count(&skew, 0, 1000000);
	pl_kafka_skew_turn(&skew, now + PL_KAFKA_SKEW_NS - 1, 4);
	eq(skew.percent, 250, "the window is not over");
	window((const uint64_t[]){ 0, 0, 0, 0 }, 4);
	eq(skew.percent, 400, "all in one");
	window((const uint64_t[]){ 100, 100, 100, 600 }, 4);
	eq(skew.percent, 400, "too few records say nothing");
	window((const uint64_t[]){ 3000, 3000, 3000, 3000, 3000, 3000 }, 6);
	eq(skew.percent, 100, "partitions were added");
	window((const uint64_t[]){ UINT64_MAX / 4, UINT64_MAX / 4 }, 2);
	eq(skew.percent, 100, "numbers of any size");
	window((const uint64_t[]){ 2000 }, 1);
	eq(skew.percent, 100, "one partition is even");
	return pl_test_done();
}
