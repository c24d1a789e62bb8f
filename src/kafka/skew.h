/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How unevenly a topic's partitions get records: of each window of ten seconds the busiest partition's
 * share against the mean of all. Knows nothing of librdkafka; time is the caller's.
 */
#pragma once

#include <stdint.h>

#define PL_KAFKA_SKEW_NS      UINT64_C(10000000000) /* a window */
#define PL_KAFKA_SKEW_RECORDS 1000                  /* in a window, below which it says nothing */
#define PL_KAFKA_SKEW_HIGH    150                   /* percent of the mean, worth a warning */
#define PL_KAFKA_SKEW_COUNTED 4096                  /* partitions, at most */

struct pl_kafka_skew {
	uint64_t counts[PL_KAFKA_SKEW_COUNTED]; /* of the present window */
	uint64_t begin_ns;                      /* 0: there is none yet */
	/* Of the last window with enough records: records of the busiest partition in percent of the
	 * mean of all; 100: even; 0: there was no such window. */
	uint64_t percent;
	uint32_t busiest, partitions;
};

static inline void pl_kafka_skew_count(
	struct pl_kafka_skew *skew, uint32_t partition, uint64_t records)
{
	skew->counts[partition] += records;
}

/* Of a run that is shorter than a window: ends the first one now. */
void pl_kafka_skew_end(struct pl_kafka_skew *skew, uint32_t partitions);

/* Ends the window when its time is over. `partitions`: how many there are now. */
void pl_kafka_skew_turn(struct pl_kafka_skew *skew, uint64_t now_ns, uint32_t partitions);
