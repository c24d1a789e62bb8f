/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the partitions of a topic by their records. */
#include "kafka/skew.h"

#include <string.h>

static void compare(struct pl_kafka_skew *skew, uint32_t partitions)
{
	uint64_t sum = 0;
	uint32_t most = 0;

	for (uint32_t i = 0; i < partitions; i++) {
		sum += skew->counts[i];
		if (skew->counts[i] > skew->counts[most])
			most = i;
	}
	if (sum < PL_KAFKA_SKEW_RECORDS)
		return;
	skew->percent = (uint64_t)((unsigned __int128)skew->counts[most] * partitions * 100 / sum);
	skew->busiest = most;
	skew->partitions = partitions;
}

void pl_kafka_skew_end(struct pl_kafka_skew *skew, uint32_t partitions)
{
	if (skew->percent == 0)
		compare(skew, partitions);
}

void pl_kafka_skew_turn(struct pl_kafka_skew *skew, uint64_t now_ns, uint32_t partitions)
{
	if (skew->begin_ns == 0)
		skew->begin_ns = now_ns;
	if (now_ns - skew->begin_ns < PL_KAFKA_SKEW_NS)
		return;
	compare(skew, partitions);
	memset(skew->counts, 0, partitions * sizeof(skew->counts[0]));
	skew->begin_ns = now_ns;
}
