/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures how unevenly a topic's partitions get records: for each window of ten seconds, the
 * records of the busiest partition against the mean of all. Does not use librdkafka; the caller
 * gives the time. */
#pragma once

#include <stdint.h>

#define PL_KAFKA_SKEW_NS      UINT64_C(10000000000) /* a window */
#define PL_KAFKA_SKEW_RECORDS 1000                  /* fewest in a window for a result */
#define PL_KAFKA_SKEW_HIGH    150                   /* percent of the mean from which on to warn */
#define PL_KAFKA_SKEW_COUNTED 4096                  /* partitions, at most */

struct pl_kafka_skew {
	uint64_t counts[PL_KAFKA_SKEW_COUNTED]; /* of the present window */
	uint64_t begin_ns;                      /* 0: no window has begun */
	/* Result of the last window with enough records: records of the busiest partition in
	 * percent of the mean of all; 100: even; 0: no window had enough. */
	uint64_t percent;
	uint32_t busiest, partitions;
};

static inline void pl_kafka_skew_count(
	struct pl_kafka_skew *skew, uint32_t partition, uint64_t records)
{
	skew->counts[partition] += records;
}

/* Ends the first window now, for a run that is shorter than a window. */
void pl_kafka_skew_end(struct pl_kafka_skew *skew, uint32_t partitions);

/* Ends the window when its time is over. `partitions`: their present number. */
void pl_kafka_skew_turn(struct pl_kafka_skew *skew, uint64_t now_ns, uint32_t partitions);
