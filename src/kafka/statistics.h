/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads librdkafka's statistics: JSON, once in statistics.interval.ms (its STATISTICS.md). Does not
 * use librdkafka. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/stats.h"

struct pl_kafka_client {
#define PL_STAT PL_STAT_MEMBER
#include "kafka/client_stats.def"
#undef PL_STAT
};
extern const struct pl_stats pl_kafka_client_list;

/* Reads the statistics into *ret. Returns -EINVAL when they are no JSON object; *ret is unchanged
 * then. Missing members, and those of another type, count as 0. `partitions` is the number of
 * partitions known from brokers, of this topic or with NULL of all topics; it stays as it was when
 * none is known. */
int pl_kafka_client_read(
	struct pl_kafka_client *ret, const char *topic, const char *json, size_t len);
